package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// merged makes one customer part of another.
func (s *shop) merged(into, from id) contactLeft {
	s.Helper()
	left, err := s.tryMerge(into, from)
	s.ok(err)
	return left
}

func (s *shop) tryMerge(into, from id) (contactLeft, error) {
	return do(s, func(t *txn) (contactLeft, error) {
		_, left, err := t.merges.merge(into, from)
		return left, err
	})
}

// TestMerges plays random histories on two or three customers and on a model, and merges
// them now and then. The model hands over a customer's lots, debt, figures and days, and
// has no idea of records. A dry run of each merge shows what the merge shows.
func TestMerges(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	histories(t, 400, func(t *testing.T, rnd *rand.Rand) {
		h := newHistory(t, rnd)
		h.people = append(h.people, h.shop.customer("eva"))
		if rnd.IntN(2) == 0 {
			h.people = append(h.people, h.shop.customer("iris"))
		}
		h.enrolled = slices.Repeat([]instant{h.shop.clock}, len(h.people))
		for range 5 + rnd.IntN(25) {
			h.wait()
			h.compareAll("after waiting")
			if rnd.IntN(6) == 0 {
				h.shop.swept()
				h.compareAll("after the sweep")
			}
			h.turn(rnd.IntN(len(h.people)))
			if rnd.IntN(6) == 0 {
				h.merge()
			} else {
				h.act()
			}
			h.compareAll("after " + h.done[len(h.done)-1].kind)
			switch rnd.IntN(10) {
			case 0:
				must(h.shop, func(t *txn) (any, error) { return nil, recountAll(t.Tx, t.org) })
			case 1:
				h.shop.ok(h.shop.engine.recount(t.Context()))
			}
		}
		h.shop.verified()
		h.shop.swept() // and the shop is verified again when the test ends
		h.checkTotals()
	})
}

// merge merges another customer, if there is one, into the one whose turn it is.
func (h *history) merge() {
	others := []int{}
	for who := range h.people {
		if _, gone := h.into[who]; !gone && who != h.who {
			others = append(others, who)
		}
	}
	d := deed{at: h.shop.clock, kind: "nothing", who: h.who}
	if len(others) > 0 {
		d.kind, d.other = "merge", pick(h.rnd, others...)
		into, from := h.cust, h.people[d.other]
		shown := func(t *txn) (customerDetail, error) {
			c, _, err := t.merges.merge(into, from)
			if err != nil {
				return customerDetail{}, err
			}
			return newCustomerDetail(t, c)
		}
		dry, err := rehearse(h.t.Context(), h.shop.engine, h.shop.org, h.shop.clock, shown)
		h.shop.ok(err)
		before := h.shop.entries()
		same(h.t, "the merge, and its dry run", must(h.shop, shown), dry)
		if len(changed(before, h.shop.entries())) == 0 {
			h.t.Error("a merge changed nothing")
		}
		h.into[d.other] = h.who
	}
	h.done = append(h.done, d)
}

// compareAll compares every customer with the model. One that was merged has nothing.
func (h *history) compareAll(when string) {
	h.t.Helper()
	for who, cust := range h.people {
		if _, gone := h.into[who]; gone {
			if s := h.shop.standing(cust); s.Balance != 0 || s.Pending != 0 || s.Held != 0 || s.Lifetime != 0 || s.Figure != 0 || len(s.Expiring) > 0 {
				h.t.Fatalf("%s: %d was merged and still has %+v", when, who, s)
			}
			continue
		}
		h.turn(who)
		h.compare(fmt.Sprint(when, ", customer ", who))
	}
}

// checkTotals compares the statistics with the model.
func (h *history) checkTotals() {
	var want tally
	for _, p := range h.play(h.shop.clock).all {
		p.pass(h.shop.clock)
		p.moved.PointsExpired = p.expired()
		want.add(&p.moved)
	}
	got := ask(h.shop, func(t *txn) (*statistics, error) {
		return t.stats.answer(statsQuery{from: dayOn(2015, 1, 1), to: dayOn(2114, 1, 1), groupBy: groupMonth})
	})
	all := got.total.tally
	points := tally{PointsIssued: all.PointsIssued, PointsRedeemed: all.PointsRedeemed, PointsExpired: all.PointsExpired, PointsReversed: all.PointsReversed}
	same(h.t, "points in the statistics", points, want)
	if left := uint64(len(h.people) - len(h.into)); got.total.customers != left || got.tiers[0].Customers+got.tiers[1].Customers+got.tiers[2].Customers != left {
		h.t.Errorf("%d customers, by tier %v, want %d", got.total.customers, got.tiers, left)
	}
}

// TestMergeOtherProgram: a customer of another program is merged, and its purchases come
// back where they earned their points.
func TestMergeOtherProgram(t *testing.T) {
	t.Parallel()
	for _, window := range []string{`"window":"Lifetime"`, `"window":"Rolling","months":3`, `"window":"CalendarYear"`} {
		for _, metric := range []string{metricPoints, metricSpent, metricPurchases} {
			basis := `"tierBasis":{"metric":"` + metric + `",` + window + `},"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":45}]`
			document := func(first string) []byte {
				rules := `"rules":[` + onePer1 + `],` + basis
				return setup{program: `"default":` + first + `,` + rules + `},{"key":"old","name":"Old","default":` + map[string]string{"true": "false", "false": "true"}[first] + `,` + rules}.document()
			}
			s := newShop(t, setup{})
			s.apply(document("false"))
			old := s.customer("old")
			bought := s.buy(old, "30")
			s.apply(document("true"))
			s.pass(oneDay)
			ana := s.customer("ana")
			s.buy(ana, "20")
			s.merged(ana, old)
			figure := map[string]string{metricPoints: "20", metricSpent: "50", metricPurchases: "2"}[metric]
			later := map[string]string{metricPoints: "20", metricSpent: "20", metricPurchases: "1"}[metric]
			if !strings.Contains(window, windowLifetime) { // which counts only what was sold in the program
				figure = later
			}
			if got := s.standing(ana); got.Figure != dec(figure) || got.Balance != dec("20") {
				t.Errorf("%s %s: %+v", metric, window, got)
			}
			s.verified()
			back, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("30"), Original: &bought.ID})
			s.ok(err)
			if there := back.shareIn(bought.Program); there == nil || there.Reversed != dec("30") || back.Reversed != 0 {
				t.Errorf("%s %s: took back %+v", metric, window, back)
			}
			if got := s.standing(ana); got.Figure != dec(later) || got.Balance != dec("20") {
				t.Errorf("%s %s, after the return: %+v", metric, window, got)
			}
			s.verified()
			must(s, func(t *txn) (any, error) { return nil, recountAll(t.Tx, t.org) })
			s.ok(s.engine.recount(t.Context()))
		}
	}
}

// TestMergeLimit: a customer with too many records cannot be merged, and one with as many as
// may be can, into one with more.
func TestMergeLimit(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newShop(t, setup{program: `"expiry":{"days":300}`})
	many, twin, ana := s.customer("many"), s.customer("twin"), s.customer("ana")
	give := func(cust id, n int) {
		must(s, func(t *txn) (any, error) {
			_, a, err := accountOf(t, cust)
			if err != nil {
				return nil, err
			}
			for i := range n {
				if err := t.points.credit(a, &movement{Category: categoryBonus, Amount: decimalOf(1), Expires: t.now.add(oneDay + time.Duration(i%700)*time.Hour)}); err != nil {
					return nil, err
				}
			}
			return nil, t.points.saveAccount(a)
		})
	}
	give(many, mostMerged+1)
	give(twin, mostMerged)
	_, err := s.tryMerge(twin, many)
	s.want(err, "merge_too_large")
	s.merged(many, twin)
	s.wantStanding(many, "20001 0 20001", "all points of both")
	_, err = s.tryMerge(ana, many)
	s.want(err, "merge_too_large")
	_, err = s.tryMerge(ana, twin)
	s.want(err, "customer_merged")
}

// TestMergeFamilies: stubs follow their survivor, which counts them as records.
func TestMergeFamilies(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.engine.sizes.merged = 3
	var all []id
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		all = append(all, s.customer(name))
	}
	s.merged(all[1], all[0])
	s.merged(all[3], all[2])
	s.merged(all[3], all[1])
	s.merged(all[3], all[1]) // again
	for _, cust := range all[:3] {
		if c := ask(s, func(t *txn) (*customer, error) { return t.customers.get(cust) }); c.MergedInto != all[3] || c.Status != statusMerged {
			t.Errorf("%s is %s, merged into %s", cust, c.Status, c.MergedInto)
		}
	}
	s.merged(all[4], all[3]) // with three stubs
	_, err := s.tryMerge(all[5], all[4])
	s.want(err, "merge_too_large")
	_, err = s.tryMerge(all[3], all[5])
	s.want(err, "customer_merged")
	if len(ask(s, func(t *txn) ([]id, error) { return t.merges.idsOf(all[4]) })) != 5 {
		t.Error("the last one has not all stubs")
	}
}

// TestMergeBirthDates: the fuller of two dates that agree is kept, and otherwise the one's that stays.
func TestMergeBirthDates(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"day","name":"Day","on":"Birthday","points":10}]`})
	for i, test := range []struct{ kept, gone, want birthDate }{
		{620, 19900620, 19900620}, {19900620, 620, 19900620}, {620, 19900621, 620}, {0, 620, 620}, {620, 0, 620}, {620, 621, 620},
	} {
		enrol := func(name string, date birthDate) id {
			return must(s, func(t *txn) (*customer, error) {
				c, _, err := t.customers.enrol(enrolment{Email: fmt.Sprintf("%s%d@example.com", name, i), BirthDate: date})
				return c, err
			}).ID
		}
		kept, gone := enrol("kept", test.kept), enrol("gone", test.gone)
		s.merged(kept, gone)
		c := ask(s, func(t *txn) (*customer, error) { return t.customers.get(kept) })
		if c.BirthDate != test.want || c.BirthdayFrom != 2026 {
			t.Errorf("%s with %s is born %s, and counts from %d", test.kept, test.gone, c.BirthDate, c.BirthdayFrom)
		}
	}
	s.verified()
}

// TestMergeCounts: what limits a customer's rules, rewards and birthdays counts for both.
func TestMergeCounts(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-06-14T12:00:00Z", program: `"rules":[{"key":"hi","name":"Hi","points":5,"maxPerCustomerPerDay":2},
		{"key":"day","name":"Day","on":"Birthday","points":10}]`})
	born := func(name string, date birthDate) id {
		return must(s, func(t *txn) (id, error) {
			c, _, err := t.customers.enrol(enrolment{Email: name + "@example.com", BirthDate: date})
			if err != nil {
				return id{}, err
			}
			return c.ID, nil
		})
	}
	ana, twin := born("ana", 19900620), born("twin", 19900617)
	s.buy(ana, "1")
	s.buy(twin, "1")
	s.pass(4 * oneDay)
	s.swept() // the twin's birthday
	s.wantStanding(twin, "15 0 15", "a purchase and a birthday")
	s.buy(ana, "1")
	s.buy(twin, "1")
	s.merged(ana, twin)
	if got := s.buy(ana, "1").Earned; got != 0 {
		t.Errorf("the third purchase of the day earned %s", got)
	}
	s.pass(3 * oneDay)
	s.swept()
	s.wantStanding(ana, "30 0 30", "one birthday a year")
	s.pass(365 * oneDay)
	s.swept()
	s.wantStanding(ana, "40 0 40", "and one the next year")
}

// TestMergeContact: the survivor gets what it lacks, and the rest is free.
func TestMergeContact(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"day","name":"Day","on":"Birthday","points":10}]`})
	enrol := func(e enrolment) id {
		return must(s, func(t *txn) (id, error) {
			c, created, err := t.customers.enrol(e)
			if err == nil && !created {
				err = fmt.Errorf("%s is there", c.ID)
			}
			if err != nil {
				return id{}, err
			}
			return c.ID, nil
		})
	}
	ana := enrol(enrolment{FirstName: "Ana", Email: "ana@example.com", Attributes: []attribute{{"size", `"S"`}}})
	twin := enrolment{
		FirstName: "Anita", LastName: "Luz", Email: "luz@example.com", Phone: "+525580000001", ExternalID: "C-1", BirthDate: 19900620,
		Attributes: []attribute{{"size", `"M"`}, {"vip", "true"}},
	}
	gone := enrol(twin)
	must(s, func(t *txn) (any, error) { return nil, t.search.indexUntil(2) })
	if left := s.merged(ana, gone); left != (contactLeft{Email: "luz@example.com"}) {
		t.Errorf("left: %+v", left)
	}
	c := ask(s, func(t *txn) (*customer, error) { return t.customers.get(ana) })
	if c.FirstName != "Ana" || c.LastName != "Luz" || c.Email != "ana@example.com" || c.Phone != twin.Phone || c.ExternalID != "C-1" ||
		c.BirthDate != twin.BirthDate || c.BirthdayFrom != 2026 || !slices.Equal(c.Attributes, []attribute{{"size", `"S"`}, {"vip", "true"}}) {
		t.Errorf("%+v", c)
	}
	find := func(needle string) []id {
		return ask(s, func(t *txn) ([]id, error) {
			list, _, err := t.customers.search(needle, notHidden, page{1, 10})
			return list, err
		})
	}
	if got := find("luz@"); len(got) > 0 {
		t.Errorf("the stub is found: %v", got)
	}
	if got := find("80000001"); !slices.Equal(got, []id{ana}) {
		t.Errorf("by its new phone the survivor is found as %v", got)
	}
	if rows := ask(s, func(t *txn) (*exportPage, error) { return exportRows(t, exportRequest{Kind: importCustomers}) }).Rows; len(rows) != 1 {
		t.Errorf("the export has %v", rows)
	}
	again := enrol(enrolment{Email: "luz@example.com"})
	if left := s.merged(again, ana); left != (contactLeft{"ana@example.com", "", ""}) {
		t.Errorf("left: %+v", left)
	}
	if got := s.audited(auditFilter{action: auditCustomerMerged}); len(got) != 2 || strings.Contains(fmt.Sprint(got), "@") || strings.Contains(fmt.Sprint(got), "5580000001") {
		t.Errorf("the audit log has %v", got)
	}
	for cust, want := range map[id]int{ana: 2, again: 1} {
		if got := s.audited(auditFilter{action: auditCustomerMerged, subject: cust.String()}); len(got) != want {
			t.Errorf("merges of %s: %v", cust, got)
		}
	}
}

// TestMergeDebts: what one of two customers owes is paid from what the other one has, now or
// once it is available. What both have together is the same before and after.
func TestMergeDebts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason                    string
		survivor, gone            string // points that are there; below zero: owed
		pending                   string // of the one that is merged, for 10 days
		now, later, spent, cancel string // standing after the merge, in 10 days, after spending all, after a cancellation
	}{
		{"the survivor owes", "-50", "80", "5", "30 5 105", "35 0 105", "0 0 105", "20 0 105"},
		{"the merged one owes", "80", "-50", "5", "30 5 105", "35 0 105", "0 0 105", "20 0 105"},
		{"both owe", "-50", "-30", "5", "-80 5 25", "-75 0 25", "-75 0 25", "-55 0 25"},
		{"more is owed than there is", "-50", "20", "5", "-30 5 45", "-25 0 45", "-25 0 45", "-5 0 45"},
		{"what comes pays", "20", "-50", "100", "-30 100 140", "70 0 140", "0 0 140", "20 0 140"},
	} {
		s := newShop(t, setup{
			program: `"negativeBalance":"Debt","rules":[` + onePer1 + `]`,
			also:    `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":20}]`,
		})
		ana, twin := s.customer("ana"), s.customer("twin")
		s.add(twin, "20", 0)
		redeemed := must(s, func(t *txn) (*redemption, error) {
			return t.rewards.redeem(twin, t.cfg.Rewards[0].ID, "", nil, givenProof{})
		})
		for cust, has := range map[id]string{ana: test.survivor, twin: test.gone} {
			amount := dec(has)
			if amount > 0 {
				s.add(cust, has, s.clock.add(20*oneDay))
				continue
			}
			bought := s.buy(cust, (-amount).String())
			_, err := s.deduct(cust, (-amount).String())
			s.ok(err)
			s.bring(bought, (-amount).String())
		}
		_, err := s.move(twin, &movement{Category: categoryBonus, Amount: dec(test.pending), AvailFrom: s.clock.add(10 * oneDay)})
		s.ok(err)
		s.merged(ana, twin)
		s.wantStanding(twin, "0 0 0", test.reason)
		s.wantStanding(ana, test.now, test.reason)
		s.verified()
		s.pass(10 * oneDay)
		s.wantStanding(ana, test.later, test.reason+", later")
		if left := s.standing(ana).Balance; left > 0 {
			_, err := s.deduct(ana, left.String())
			s.ok(err)
		}
		s.wantStanding(ana, test.spent, test.reason+", spent")
		must(s, func(t *txn) (*redemption, error) { return t.rewards.cancel(redeemed.ID) })
		s.wantStanding(ana, test.cancel, test.reason+", cancelled")
	}
}

// TestMergeHolds: two customers with many open holds have all of them together, and no new one until
// they are fewer than the limit. A part of a hold takes the points that expire first, and what is
// released pays a debt with those that do, also where the hold has moved (contract §31).
func TestMergeHolds(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"negativeBalance":"Debt","rules":[` + onePer1 + `]`})
	ana, twin := s.customer("ana"), s.customer("twin")
	place := func(cust id, amount string) (*hold, error) {
		return do(s, func(t *txn) (*hold, error) {
			return t.points.place(newHold{Customer: cust, Amount: dec(amount), Seconds: mostHold})
		})
	}
	days := func(n int) instant { return s.clock.add(time.Duration(n) * oneDay) }
	late, middle, soon := days(30), days(20), days(10)
	for _, expires := range []instant{late, soon, middle} { // each 10
		s.add(twin, "10", expires)
	}
	mixed, err := place(twin, "30")
	s.ok(err)
	var holds []id
	for _, cust := range []id{ana, twin} {
		s.add(cust, "30", late)
		for range mostHolds - 1 {
			h, err := place(cust, "1")
			s.ok(err)
			holds = append(holds, h.ID)
		}
	}
	s.merged(ana, twin)
	for len(holds) > mostHolds-1 {
		if _, err := place(ana, "1"); !errors.Is(err, newError(codeTooManyHolds)) {
			t.Fatalf("with %d holds: %v", len(holds)+1, err)
		}
		must(s, func(t *txn) (*hold, error) { return t.points.release(holds[0]) })
		holds = holds[1:]
	}
	must(s, func(t *txn) (*hold, error) { return t.points.release(holds[0]) })
	again, err := place(ana, "1")
	s.ok(err)
	must(s, func(t *txn) (*hold, error) { return t.points.release(again.ID) })
	for _, h := range holds[1:] {
		must(s, func(t *txn) (*hold, error) { return t.points.release(h) })
	}
	bought := s.buy(ana, "8")
	_, err = s.deduct(ana, s.standing(ana).Balance.String())
	s.ok(err)
	s.bring(bought, "8")
	if owed := s.standing(ana).Balance; owed != dec("-8") {
		t.Fatalf("the balance is %s", owed)
	}
	must(s, func(t *txn) (*hold, error) { return t.points.capture(mixed.ID, dec("5")) })
	same(t, "what is left", s.standing(ana).Expiring, []expiring{{dec("7"), middle}, {dec("10"), late}})
	s.verified()
}

// TestMergeCarriedOver: what both carried over from another system is added up, and the
// survivor's opening balance stays, or else it has that of the other one.
func TestMergeCarriedOver(t *testing.T) {
	t.Parallel()
	for _, window := range []string{`"window":"Lifetime"`, `"window":"Rolling","months":3`, `"window":"CalendarYear"`} {
		s := newShop(t, setup{
			program: `"default":true,"tierBasis":{"metric":"PointsEarned",` + window + `},"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100}],
				"rules":[` + onePer1 + `]},{"key":"stamps","name":"Stamps","join":"All","tierBasis":{"metric":"AmountSpent",` + window + `},
				"tiers":[{"name":"One","threshold":0},{"name":"Two","threshold":50}],"rules":[` + onePer1 + `]`,
		})
		ana, twin, eva := s.customer("ana"), s.customer("twin"), s.customer("eva")
		bring := func(cust id, points, historic string) {
			must(s, func(t *txn) (any, error) {
				c, err := t.customers.get(cust)
				if err != nil {
					return nil, err
				}
				t.by = creator{Type: byImport}
				return t.points.carryOver(c, carriedOver{program: t.cfg.Programs[0], points: ptr(dec(points)), historic: ptr(dec(historic))})
			})
		}
		bring(ana, "5", "60")
		bring(twin, "7", "50")
		s.buy(ana, "30")
		bought := s.buy(twin, "20")
		s.merged(ana, twin)
		s.wantStanding(ana, "62 0 160", "what both brought and earned")
		if tier := s.standing(ana).Tier; tier != "Plata" {
			t.Errorf("%s: the tier is %s", window, tier)
		}
		stamps := func(cust id) *account {
			return ask(s, func(t *txn) (*account, error) {
				c, err := t.customers.get(cust)
				if err != nil {
					return nil, err
				}
				return t.points.account(c, t.cfg.Programs[1])
			})
		}
		if a := stamps(ana); a.Balance != dec("50") || a.figure() != dec("50") || a.Tier != "Two" {
			t.Errorf("%s: stamps %s, figure %s, tier %s", window, a.Balance, a.figure(), a.Tier)
		}
		s.merged(eva, ana) // who brought nothing
		if got := ask(s, func(t *txn) (decimal, error) {
			_, a, err := accountOf(t, eva)
			return a.Opening, err
		}); got != dec("5") {
			t.Errorf("%s: the opening balance is %s", window, got)
		}
		_, err := s.sell(newSale{Type: typeReturn, Customer: eva, Total: dec("20"), Original: &bought.ID})
		s.ok(err)
		s.wantStanding(eva, "42 0 140", "a purchase of the first one returned")
		if a := stamps(eva); a.Balance != dec("30") || a.figure() != dec("30") || a.Tier != "One" {
			t.Errorf("%s: after the return stamps %s, figure %s, tier %s", window, a.Balance, a.figure(), a.Tier)
		}
		s.verified()
		must(s, func(t *txn) (any, error) { return nil, recountAll(t.Tx, t.org) })
		s.ok(s.engine.recount(t.Context()))
	}
}
