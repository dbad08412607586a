package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// A lapseStep is something done to a customer, after which the account lapses at End.
type lapseStep struct {
	at, do string
	end    string // "": nothing is left to lapse
}

// TestIdle: each step is at a moment of the shop, in UTC; its zone is six hours behind, and the shop
// opened on 2 March at 04:00 local time. Random histories are in TestAccounts.
func TestIdle(t *testing.T) {
	t.Parallel()
	const alone, beside = `"expiry":{"inactiveMonths":12}`, `"expiry":{"days":400,"inactiveMonths":12}`
	for name, test := range map[string]struct {
		expiry string
		steps  []lapseStep
	}{
		"enrolment alone": {alone, []lapseStep{
			{"2026-05-01T10:00:00Z", "add", "2027-03-03T05:59:59.999Z"}, // points given by hand are no activity
			{"2027-03-03T05:59:59.998Z", "", "2027-03-03T05:59:59.999Z"},
			{"2027-03-03T05:59:59.999Z", "", ""},
		}},
		"a minute before the end": {alone, []lapseStep{
			{"2026-03-02T10:00:00Z", "buy", "2027-03-03T05:59:59.999Z"},
			{"2027-03-03T05:58:59.999Z", "buy", "2028-03-03T05:59:59.999Z"},
			{"2028-03-03T05:59:59.999Z", "", ""},
		}},
		"a minute after the end": {alone, []lapseStep{
			{"2026-03-02T10:00:00Z", "buy", "2027-03-03T05:59:59.999Z"},
			{"2027-03-03T06:00:59.999Z", "", ""},
			{"2027-03-03T06:00:59.999Z", "buy", "2028-03-04T05:59:59.999Z"}, // 3 March there
		}},
		"a gift after the end": {alone, []lapseStep{
			{"2029-01-10T10:00:00Z", "add", "2030-01-11T05:59:59.999Z"},
			{"2029-06-10T10:00:00Z", "add", "2030-01-11T05:59:59.999Z"},
		}},
		"a return": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2026-07-05T10:00:00Z", "add", "2027-03-06T05:59:59.999Z"},
			{"2026-08-05T10:00:00Z", "buy", "2027-08-06T05:59:59.999Z"},
			{"2026-08-06T10:00:00Z", "return", "2027-03-06T05:59:59.999Z"},
		}},
		"a return leaves 30 days": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2027-02-20T10:00:00Z", "buy", "2028-02-21T05:59:59.999Z"},
			{"2027-03-01T10:00:00Z", "return", "2027-04-01T05:59:59.999Z"},
			{"2027-04-01T05:59:59.999Z", "", ""},
		}},
		"a return of an earlier purchase": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2026-05-05T10:00:00Z", "redeem", "2027-05-06T05:59:59.999Z"},
			{"2026-05-05T10:00:00Z", "add", "2027-05-06T05:59:59.999Z"},
			{"2026-05-05T10:00:00Z", "add", "2027-05-06T05:59:59.999Z"},
			{"2026-08-06T10:00:00Z", "return", "2027-05-06T05:59:59.999Z"},
		}},
		"a redemption": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2027-03-06T05:58:59.999Z", "redeem", "2028-03-06T05:59:59.999Z"},
			{"2027-03-06T05:59:00.000Z", "cancel", "2027-04-05T05:59:59.999Z"},
		}},
		"a redemption by hand": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2026-05-05T10:00:00Z", "spend", "2027-05-06T05:59:59.999Z"},
			{"2026-08-05T10:00:00Z", "buy", "2027-08-06T05:59:59.999Z"},
			{"2026-08-06T10:00:00Z", "return", "2027-05-06T05:59:59.999Z"},
		}},
		"a fee": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2026-05-05T10:00:00Z", "fee", "2027-03-06T05:59:59.999Z"},
		}},
		"a capture": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2026-05-05T10:00:00Z", "hold", ""},
			{"2026-05-05T10:10:00Z", "capture", "2027-05-06T05:59:59.999Z"},
		}},
		"a payment and its return": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2026-05-05T10:00:00Z", "pay", "2027-05-06T05:59:59.999Z"},
			{"2026-05-06T10:00:00Z", "return", "2027-03-06T05:59:59.999Z"},
		}},
		"held over the end": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2027-03-06T05:00:00.000Z", "hold", ""},
			{"2027-03-06T06:10:00.000Z", "release", ""}, // it expired at 00:00 there
		}},
		"held over the end, and a purchase after it": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2027-03-06T05:30:00.000Z", "hold", ""},
			{"2027-03-06T06:10:00.000Z", "buy", "2028-03-07T05:59:59.999Z"}, // 100 more
			{"2027-03-06T06:40:00.000Z", "lapsed 100", "2028-03-07T05:59:59.999Z"},
		}},
		"cancelled after the end": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2026-05-05T10:00:00Z", "redeem", "2027-05-06T05:59:59.999Z"},
			{"2027-06-05T10:00:00Z", "cancel", ""},
		}},
		"cancelled in another period": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2026-05-05T10:00:00Z", "redeem", "2027-05-06T05:59:59.999Z"},
			{"2027-06-05T10:00:00Z", "buy", "2028-06-06T05:59:59.999Z"},
			{"2027-06-05T10:00:00Z", "cancel", "2028-06-06T05:59:59.999Z"},
			{"2027-06-05T10:00:00Z", "lapsed 100", "2028-06-06T05:59:59.999Z"},
		}},
		"paid back after the end": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2026-05-05T10:00:00Z", "pay", "2027-05-06T05:59:59.999Z"},
			{"2027-06-06T10:00:00Z", "return", ""},
		}},
		"held over the end, paid with and returned": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2027-03-06T05:30:00.000Z", "hold", ""},
			{"2027-03-06T06:10:00.000Z", "pay held", ""},
			{"2027-03-06T06:11:00.000Z", "return", ""},
		}},
		"spent, and paid before that by a till that was late": {alone, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2026-05-05T06:01:00Z", "spend", "2027-05-06T05:59:59.999Z"},
			{"2026-05-05T06:02:00Z", "pay late", "2027-05-06T05:59:59.999Z"}, // on the day before
			{"2026-06-05T10:00:00Z", "redeem", "2027-06-06T05:59:59.999Z"},
			{"2026-06-05T10:00:00Z", "cancel", "2027-05-06T05:59:59.999Z"},
		}},
		"pending over the end": {alone, []lapseStep{
			{"2027-03-02T12:00:00Z", "later", ""},
			{"2027-03-04T12:00:00Z", "", "2028-03-05T05:59:59.999Z"},
		}},
		"beside a life": {beside, []lapseStep{
			{"2026-03-05T10:00:00Z", "buy", "2027-03-06T05:59:59.999Z"},
			{"2027-03-01T10:00:00Z", "redeem", "2027-04-09T10:00:00.000Z"}, // its own life is shorter now
			{"2027-04-09T10:00:00.000Z", "", ""},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newIdleShop(t, "America/Mexico_City", test.expiry)
			for i, step := range test.steps {
				s.shop.setClock(step.at)
				s.does(step.do)
				if got := s.end(); got != step.end {
					t.Fatalf("step %d, %s: lapses at %q, want %q", i, step.do, got, step.end)
				}
			}
			s.shop.verified()
			s.shop.swept()
		})
	}
}

// TestIdleDaylight: the end is that of a day whose clocks changed.
func TestIdleDaylight(t *testing.T) {
	t.Parallel()
	s := newIdleShop(t, "America/Santiago", `"expiry":{"inactiveMonths":1}`)
	s.shop.setClock("2026-03-04T12:00:00Z") // the clocks go back at midnight of 4 April
	s.does("buy")
	if got := s.end(); got != "2026-04-05T03:59:59.999Z" {
		t.Errorf("lapses at %s", got)
	}
	s.shop.setClock("2026-04-05T03:59:59.999Z")
	s.shop.swept()
	if list := s.shop.ledger(s.ana); list[len(list)-1].CreatedAt != s.shop.clock {
		t.Errorf("the ledger has %v", list)
	}
}

// TestIdleRecount: a program gets, changes and loses its months.
func TestIdleRecount(t *testing.T) {
	t.Parallel()
	s := newIdleShop(t, "UTC", `"pointsDecimals":0`)
	s.does("buy")
	s.shop.setClock("2028-02-10T10:00:00Z")
	for _, step := range []struct{ expiry, end string }{
		{`"expiry":{"inactiveMonths":12}`, "2028-03-11T23:59:59.999Z"}, // new: 30 days
		{`"expiry":{"inactiveMonths":12,"days":9000}`, "2028-03-11T23:59:59.999Z"},
		{`"expiry":{"inactiveMonths":36}`, "2029-03-02T23:59:59.999Z"}, // of the purchase
		{`"expiry":{"inactiveMonths":25}`, "2028-04-02T23:59:59.999Z"},
		{`"expiry":{"inactiveMonths":24}`, "2028-03-11T23:59:59.999Z"},
		{`"pointsDecimals":0`, ""},
	} {
		s.shop.apply(s.doc("UTC", step.expiry).document())
		if got := s.end(); got != step.end { // before its turn
			t.Errorf("%s: lapses at %q, want %q", step.expiry, got, step.end)
		}
		s.shop.ok(s.shop.engine.recount(t.Context()))
		if got := s.end(); got != step.end {
			t.Errorf("%s, recounted: lapses at %q, want %q", step.expiry, got, step.end)
		}
		s.shop.verified()
	}
}

// TestIdleLapsedBefore: what lapsed before a change stays lapsed, though nobody has written it down.
func TestIdleLapsedBefore(t *testing.T) {
	t.Parallel()
	s := newIdleShop(t, "UTC", `"expiry":{"inactiveMonths":12}`)
	s.does("buy")
	s.shop.setClock("2027-04-02T10:00:00Z")
	s.shop.apply(s.doc("UTC", `"expiry":{"inactiveMonths":36}`).document())
	s.shop.wantStanding(s.ana, "0 0 100", "it lapsed a month ago")
	s.shop.ok(s.shop.engine.recount(t.Context()))
}

// TestIdleMerge: the survivor gets the later end.
func TestIdleMerge(t *testing.T) {
	t.Parallel()
	for _, survivor := range []int{0, 1} {
		s := newIdleShop(t, "UTC", `"expiry":{"inactiveMonths":12}`)
		both := []id{s.ana, s.shop.customer("eva")}
		s.does("buy")
		s.shop.pass(50 * oneDay)
		s.shop.buy(both[1], "10")
		s.shop.merged(both[survivor], both[1-survivor])
		s.ana = both[survivor]
		if got := s.end(); got != "2027-04-21T23:59:59.999Z" {
			t.Errorf("lapses at %s", got)
		}
	}
}

// TestIdleNotice: points are announced a week before they lapse, and again after a purchase.
func TestIdleNotice(t *testing.T) {
	t.Parallel()
	s := newIdleShop(t, "UTC", `"expiry":{"inactiveMonths":1}`)
	told := func() int { return len(s.shop.feed(0, eventKinds[eventPointsExpiring].name)) }
	s.does("buy") // lapses on 2 April
	s.shop.setClock("2026-03-26T23:59:59.998Z")
	s.shop.swept()
	same(t, "told too soon", told(), 0)
	s.shop.pass(time.Millisecond)
	s.shop.swept()
	same(t, "told", told(), 1)
	s.does("buy")
	same(t, "told", told(), 1)
	s.shop.pass(40 * oneDay)
	s.shop.swept()
	s.shop.wantStanding(s.ana, "0 0 200", "lapsed")
}

// TestIdleVerify: verify finds an end that was moved, and points that should not have lapsed.
func TestIdleVerify(t *testing.T) {
	t.Parallel()
	for _, days := range []int{-1, 1, 0} {
		s := newIdleShop(t, "UTC", `"expiry":{"inactiveMonths":12}`)
		s.does("buy")
		s.shop.verified()
		must(s.shop, func(x *txn) (any, error) {
			_, a, err := accountOf(x, s.ana)
			if err != nil {
				return nil, err
			}
			if a.Idle.End = a.Idle.End.add(time.Duration(days) * oneDay); days == 0 {
				a.Idle.End++
			}
			return nil, x.points.saveAccount(a)
		})
		found, err := s.shop.verify()
		s.shop.ok(err)
		if !strings.Contains(strings.Join(found.Problems, "\n"), "inactividad") {
			t.Errorf("moved by %d days, and verify says %q", days, found.Problems)
		}
		must(s.shop, func(x *txn) (any, error) {
			_, a, err := accountOf(x, s.ana)
			if err != nil {
				return nil, err
			}
			x.points.beginIdle(a, x.now)
			return nil, x.points.saveAccount(a)
		})
	}
}

// An idleShop has one customer, a rule of a point for each peso and a reward of 10 points.
type idleShop struct {
	shop *shop
	ana  id
	sold *sale
	got  *redemption
	held id
}

func (s *idleShop) doc(zone, expiry string) setup {
	return setup{zone: zone, program: expiry + `,"payment":{"points":1,"amount":1},"rules":[` + onePer1 + `]`, also: `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":10}]`}
}

func newIdleShop(t *testing.T, zone, expiry string) *idleShop {
	s := new(idleShop)
	s.shop = newShop(t, s.doc(zone, expiry))
	s.ana = s.shop.customer("ana")
	return s
}

// does one thing; "" does nothing.
func (s *idleShop) does(what string) {
	s.shop.Helper()
	switch what {
	case "add":
		s.shop.add(s.ana, "10", 0)
	case "later":
		_, err := s.shop.move(s.ana, &movement{Category: categoryBonus, Amount: dec("10"), AvailFrom: s.shop.clock.add(2 * oneDay)})
		s.shop.ok(err)
	case "buy":
		s.sold = s.shop.buy(s.ana, "100")
	case "return":
		s.shop.bring(s.sold, "100")
	case "redeem":
		s.got = must(s.shop, func(t *txn) (*redemption, error) {
			return t.rewards.redeem(s.ana, t.cfg.Rewards[0].ID, "", nil, givenProof{})
		})
	case "cancel":
		must(s.shop, func(t *txn) (*redemption, error) { return t.rewards.cancel(s.got.ID) })
	case "spend", "fee":
		category := map[string]string{"spend": categoryRedemption, "fee": "Fee"}[what]
		_, err := s.shop.move(s.ana, &movement{Category: category, Amount: dec("-10")})
		s.shop.ok(err)
	case "pay", "pay held", "pay late":
		in := newSale{Type: typePurchase, Customer: s.ana, Total: dec("100"), Pay: &newPayment{Points: dec("50")}}
		switch what {
		case "pay held":
			in.Pay = &newPayment{Hold: &s.held}
		case "pay late":
			in.OccurredAt = s.shop.clock.add(-4 * time.Minute)
		}
		var err error
		s.sold, err = s.shop.sell(in)
		s.shop.ok(err)
	case "capture":
		must(s.shop, func(t *txn) (*hold, error) { return t.points.capture(s.held, dec("50")) })
	case "lapsed 100":
		s.shop.wantStanding(s.ana, "100 0 200", "what came back has lapsed")
	case "hold":
		s.held = s.shop.hold(s.ana, "100", 3600, "")
	case "release": // by itself
	}
}

// end is the first moment at which points of the customer expire or lapse.
func (s *idleShop) end() string {
	list := s.shop.standing(s.ana).Expiring
	if len(list) == 0 {
		return ""
	}
	return list[0].ExpiresAt.String()
}

// TestIdleRenewed: a period that points began stays, whatever is undone since.
func TestIdleRenewed(t *testing.T) {
	t.Parallel()
	for _, deeds := range [][]string{{"add"}, {"add", "buy", "return"}, {"add", "redeem", "cancel"}} {
		s := newIdleShop(t, "UTC", `"expiry":{"inactiveMonths":12}`)
		s.shop.setClock("2029-01-10T10:00:00Z")
		for _, deed := range deeds {
			s.does(deed)
		}
		if got, want := s.end(), "2030-01-10"; !strings.HasPrefix(got, want) {
			t.Errorf("%v: the end is %s, want %s", deeds, got, want)
		}
	}
	s := newIdleShop(t, "UTC", `"expiry":{"inactiveMonths":12}`)
	s.shop.setClock("2029-01-10T10:00:00Z")
	s.does("add")
	s.shop.apply(s.doc("UTC", `"expiry":{"inactiveMonths":11}`).document())
	s.shop.ok(s.shop.engine.recount(t.Context()))
	if got, want := s.end(), "2029-12-10"; !strings.HasPrefix(got, want) {
		t.Errorf("with 11 months the end is %s, want %s", got, want)
	}
}

// TestIdleOfSchema12: an account that did not count a redemption by hand does after the migration.
func TestIdleOfSchema12(t *testing.T) {
	t.Parallel()
	s := newIdleShop(t, "UTC", `"expiry":{"inactiveMonths":12}`)
	s.does("buy")
	s.shop.pass(50 * oneDay)
	s.does("spend")
	want := s.end()
	must(s.shop, func(x *txn) (any, error) { // as it was then
		_, a, err := accountOf(x, s.ana)
		if err != nil {
			return nil, err
		}
		a.Idle = idleness{Months: 12}
		x.points.beginIdle(a, a.customer.CreatedAt)
		return nil, x.points.saveAccount(a)
	})
	if got := s.end(); got == want {
		t.Fatal("the account still counts it")
	}
	s.shop.ok(s.shop.engine.store.Update(t.Context(), func(tx Tx) error {
		_, err := moreActivity(tx, nil, s.shop.org, nil)
		return err
	}))
	s.shop = newShopOn(t, s.shop.engine.store.Store, s.shop.clock.String()) // which has read nothing before
	if got := s.end(); got != want {
		t.Errorf("before its turn it lapses at %s, want %s", got, want)
	}
	s.shop.ok(s.shop.engine.recount(t.Context()))
	if got := s.end(); got != want {
		t.Errorf("recounted it lapses at %s, want %s", got, want)
	}
	s.shop.verified()
}

// TestVerifySeesEarlyLapse: what came back lapses at once or in time, and nothing else does.
func TestVerifySeesEarlyLapse(t *testing.T) {
	t.Parallel()
	s := newIdleShop(t, "UTC", `"expiry":{"inactiveMonths":12}`)
	for _, deed := range []string{"buy", "redeem", "cancel", "add"} {
		s.does(deed)
	}
	s.shop.verified()
	dropped := errors.New("dropped")
	var report *verification
	_, err := do(s.shop, func(t *txn) (*account, error) {
		c, err := t.customers.get(s.ana)
		if err != nil {
			return nil, err
		}
		a, err := t.points.account(c, t.cfg.Programs[0])
		if err != nil {
			return nil, err
		}
		for l, err := range t.points.lots(a, partLot) { // of the purchase
			if err != nil {
				return nil, err
			}
			if err := t.points.expire(a, t.now, []*lot{l}); err != nil {
				return nil, err
			}
			break
		}
		if err := t.points.saveAccount(a); err != nil {
			return nil, err
		}
		if report, err = verifyWith(s.shop.engine.sizes, t.Tx, t.now, nil); err == nil {
			err = dropped
		}
		return nil, err
	})
	if !errors.Is(err, dropped) {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(report.Problems, func(p string) bool { return strings.Contains(p, "vence puntos antes de su fecha") }) {
		t.Errorf("verify says %q", report.Problems)
	}
}
