package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/blockset"
)

// voucherRewards are rewards of each fulfilment.
const voucherRewards = `"rewards":[
	{"key":"now","program":"club","name":"Now","pointsCost":1},
	{"key":"ever","program":"club","name":"Ever","pointsCost":1,"fulfilment":"Voucher"},
	{"key":"today","program":"club","name":"Today","pointsCost":1,"fulfilment":"Voucher","validDays":0},
	{"key":"week","program":"club","name":"Week","pointsCost":1,"fulfilment":"Voucher","validDays":7,"stock":3,"limitPerCustomer":2,
		"effect":{"type":"Product","sku":"ESPRESSO"}}]`

func (s *shop) use(code string) (*redemption, error) {
	return do(s, func(t *txn) (*redemption, error) { return t.rewards.useCode(code, nil) })
}

// statusOf is what a redemption is now.
func (s *shop) statusOf(x *redemption) string {
	return ask(s, func(t *txn) (string, error) {
		x, err := t.rewards.redemption(x.ID)
		if err != nil {
			return "", err
		}
		return x.status(t.now), nil
	})
}

// countByStatus counts the redemptions that are listed by each status.
func (s *shop) countByStatus() map[string]uint64 {
	counts := map[string]uint64{}
	for _, status := range redemptionStatuses {
		total := ask(s, func(t *txn) (uint64, error) {
			_, total, err := t.rewards.findRedemptions(redemptionFilter{status: status, to: never}, page{1, 1})
			return total, err
		})
		if total > 0 {
			counts[status] = total
		}
	}
	return counts
}

// TestVoucherExpiry: a voucher can be used until the last millisecond before the end of
// its last local day, and has expired from then on, with no job run.
func TestVoucherExpiry(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reward, zone, at, end string
		reason                string
	}{
		{"today", "America/Mexico_City", "2026-03-02T10:00:00Z", "2026-03-03T05:59:59.999Z", "the day itself is day 0"},
		{"today", "America/Mexico_City", "2026-03-03T05:59:59Z", "2026-03-03T05:59:59.999Z", "a second of it is left"},
		{"today", "America/Mexico_City", "2026-03-03T06:00:00Z", "2026-03-04T05:59:59.999Z", "the next local day"},
		{"week", "America/Mexico_City", "2026-03-02T10:00:00Z", "2026-03-10T05:59:59.999Z", "seven days on"},
		{"week", "Europe/Madrid", "2026-03-28T22:00:00Z", "2026-04-04T21:59:59.999Z", "summer time has begun meanwhile"},
		{"week", "Africa/Cairo", "2026-04-17T10:00:00Z", "2026-04-24T20:59:59.999Z", "clocks change at midnight on the last day"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newShop(t, setup{zone: test.zone, at: test.at, also: voucherRewards})
			ana := s.customer("ana")
			s.add(ana, "10", 0)
			used, err := s.redeem(ana, test.reward)
			s.ok(err)
			late, err := s.redeem(ana, test.reward)
			s.ok(err)
			if got := used.Expires.String(); got != test.end {
				t.Fatalf("expires at %s, want %s", got, test.end)
			}
			s.clock = used.Expires - 1
			same(t, "a millisecond before", s.statusOf(late), redemptionIssued)
			same(t, "listed then", s.countByStatus(), map[string]uint64{redemptionIssued: 2})
			_, err = s.use(used.Code)
			s.ok(err)
			s.clock++
			same(t, "at the moment", s.statusOf(late), redemptionExpired)
			_, err = s.use(late.Code)
			s.want(err, "redemption_expired")
			_, err = s.cancel(late)
			s.want(err, "redemption_not_cancellable")
			same(t, "the used one", s.statusOf(used), redemptionUsed)
			same(t, "listed", s.countByStatus(), map[string]uint64{redemptionUsed: 1, redemptionExpired: 1})
			s.wantStanding(ana, "8 0 10", "points stay spent")
		})
	}
}

// TestVoucherExpiryKeepsStock: an expired voucher gives back neither stock nor limit.
func TestVoucherExpiryKeepsStock(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: voucherRewards})
	ana, eva := s.customer("ana"), s.customer("eva")
	s.add(ana, "10", 0)
	s.add(eva, "10", 0)
	for range 2 {
		_, err := s.redeem(ana, "week")
		s.ok(err)
	}
	s.pass(9 * oneDay)
	s.swept()
	_, err := s.redeem(ana, "week")
	s.want(err, "redemption_limit_reached")
	x, err := s.redeem(eva, "week")
	s.ok(err)
	_, err = s.redeem(eva, "week")
	s.want(err, "reward_out_of_stock")
	_, err = s.cancel(x)
	s.ok(err)
	_, err = s.redeem(eva, "week")
	s.ok(err)
}

// TestVoucherKeepsItsTerms: what the document says later changes no voucher that was issued.
func TestVoucherKeepsItsTerms(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: voucherRewards})
	ana := s.customer("ana")
	s.add(ana, "10", 0)
	x, err := s.redeem(ana, "week")
	s.ok(err)
	s.apply(setup{also: `"rewards":[]`}.document())
	used, err := s.use(x.Code)
	s.ok(err)
	if used.Effect != (effect{Type: effectProduct, SKU: "ESPRESSO"}) || used.Expires != x.Expires {
		t.Errorf("used: %+v", used)
	}
}

// TestUseRefused shows each refusal, and that it changes nothing.
func TestUseRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: voucherRewards})
	ana, eva := s.customer("ana"), s.customer("eva")
	s.add(ana, "10", 0)
	purchase, others := s.buy(ana, "10"), s.buy(eva, "10")
	back := s.bring(s.buy(ana, "5"), "1")
	redeem := func(reward string) *redemption {
		x, err := s.redeem(ana, reward)
		s.ok(err)
		return x
	}
	completed, used, cancelled, open := redeem("now"), redeem("ever"), redeem("ever"), redeem("ever")
	s.pass(time.Second)
	first, err := s.use(used.Code)
	s.ok(err)
	_, err = s.cancel(cancelled)
	s.ok(err)
	s.pass(time.Second)

	before := s.entries()
	for _, test := range []struct {
		reason string
		code   string
		sale   *id
		want   string
		figure any
	}{
		{"used", used.Code, nil, "redemption_already_used", first.UsedAt},
		{"used, and the sale is right", used.Code, &purchase.ID, "redemption_already_used", first.UsedAt},
		{"given at once", completed.Code, nil, "redemption_already_used", completed.CreatedAt},
		{"cancelled", cancelled.Code, nil, "redemption_cancelled", nil},
		{"no code", "AAAA-AAAA", nil, "redemption_not_found", nil},
		{"no code that there can be", "", nil, "redemption_not_found", nil},
		{"another customer's sale", open.Code, &others.ID, "transaction_not_found", nil},
		{"a return", open.Code, &back.ID, "transaction_not_found", nil},
		{"no sale", open.Code, &id{}, "transaction_not_found", nil},
		{"no sale, and used", used.Code, &id{}, "transaction_not_found", nil},
	} {
		_, err := do(s, func(t *txn) (*redemption, error) { return t.rewards.useCode(test.code, test.sale) })
		if s.want(err, test.want); test.figure != nil {
			same(t, test.reason, err.(*apiError).context["usedAt"], test.figure)
		}
	}
	same(t, "entries after refusals", s.entries(), before)

	x, err := do(s, func(t *txn) (*redemption, error) { return t.rewards.useCode(open.Code, &purchase.ID) })
	s.ok(err)
	if x.Sale != purchase.ID || x.UsedAt != s.clock {
		t.Errorf("used: %+v", x)
	}
}

// TestRewardCodeUsedAtTwoTills: of all tills that take a code at once, however each
// writes it, one gets the reward. If the customer cancels meanwhile, either all tills are
// refused and the points are back, or one till got the reward and they are not.
func TestRewardCodeUsedAtTwoTills(t *testing.T) {
	t.Parallel()
	tills := sized(1000, 200)
	s := newShop(t, setup{also: voucherRewards})
	ana := s.customer("ana")
	s.add(ana, "10", 0)
	x, err := s.redeem(ana, "ever")
	s.ok(err)
	spelled := []string{x.Code, strings.ToLower(x.Code), strings.ReplaceAll(x.Code, "-", ""), " " + x.Code + " "}
	same(t, "tills", atOnce(tills, func(i int) error {
		_, err := s.use(spelled[i%len(spelled)])
		return err
	}), map[string]int{"": 1, "redemption_already_used": tills - 1})
	s.wantStanding(ana, "9 0 10", "it was paid for")

	for range 10 {
		x, err := s.redeem(ana, "ever")
		s.ok(err)
		before := s.standing(ana).Balance
		cancelled := false // written by one goroutine
		outcomes := atOnce(10, func(i int) error {
			if i == 5 {
				_, err := s.cancel(x)
				cancelled = err == nil
				return err
			}
			_, err := s.use(x.Code)
			return err
		})
		want, back := map[string]int{"": 1, "redemption_already_used": 8, "redemption_not_cancellable": 1}, dec("0")
		if cancelled {
			want, back = map[string]int{"": 1, "redemption_cancelled": 9}, dec("1")
		}
		same(t, "tills and a cancellation", outcomes, want)
		same(t, "balance", s.standing(ana).Balance, before+back)
		if !cancelled {
			s.add(ana, "1", 0)
		}
	}
}

// TestUseOfInactive: a voucher of an inactive customer is used all the same.
func TestUseOfInactive(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: voucherRewards})
	ana := s.customer("ana")
	s.add(ana, "10", 0)
	x, err := s.redeem(ana, "ever")
	s.ok(err)
	must(s, func(t *txn) (*customer, error) {
		return t.customers.patch(ana, customerPatch{Status: new(statusInactive)}, nil)
	})
	_, err = s.use(x.Code)
	s.ok(err)
}

// TestSpelledCode shows how a code may be written.
func TestSpelledCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"KM7A-4XQP", "KM7A-4XQP"},
		{"km7a4xqp", "KM7A-4XQP"},
		{" km7a 4xqp\n", "KM7A-4XQP"},
		{"K-M-7-A-4-X-Q-P", "KM7A-4XQP"},
		{"km7a–4xqp", "KM7A-4XQP"}, // as phones write two hyphens
		{"km7a—4xqp", "KM7A-4XQP"},
		{"km7a\u00a04xqp", "KM7A-4XQP"},
		{"km7a−4xqp", "KM7A-4XQP"},
		{"km7a_4xqp", ""},
		{"km7a4xq", ""},
		{"km7a4xqpp", ""},
		{"", ""},
	} {
		if got := spelledCode(test.text); got != test.want {
			t.Errorf("%q is %q, want %q", test.text, got, test.want)
		}
	}
}

// TestRedemptionFilters redeems, uses and cancels at random, with a clock that is behind
// at times, and compares every list with what a walk through all redemptions finds. Then
// two customers are merged, one after the other.
func TestRedemptionFilters(t *testing.T) {
	t.Parallel()
	skipShort(t)
	size := sized(2500, 1300) // more than two blocks, or one
	s := newShop(t, setup{also: strings.Replace(voucherRewards, `"stock":3,"limitPerCustomer":2,`, "", 1)})
	rnd := rand.New(rand.NewPCG(18, 4))
	customers := []id{s.customer("ana"), s.customer("eva"), s.customer("noe")} // Noe redeems nothing
	for _, cust := range customers[:2] {
		s.add(cust, "100000", 0)
	}
	opened := s.clock
	var all []*redemption
	for len(all) < size {
		s.pass(time.Duration(rnd.IntN(30)) * time.Minute)
		number := rnd.Uint64()
		all = must(s, func(t *txn) ([]*redemption, error) { // several in one transaction: it is faster
			rnd, all := rand.New(rand.NewPCG(number, 0)), slices.Clip(all)
			for range 10 {
				x, err := randomRedemption(t, rnd, customers[:2], all)
				if err != nil {
					return nil, err
				}
				if x != nil {
					all = append(all, x)
				}
			}
			return all, nil
		})
	}
	filters := repeats(300, 100, 0)
	for i := range filters {
		switch i {
		case filters / 2:
			s.merged(customers[2], customers[1])
		case filters * 3 / 4:
			s.merged(customers[2], customers[0])
		}
		s.pass(time.Duration(rnd.Int64N(int64(oneDay))))
		s.compareRedemptions(randomRedemptionFilter(rnd, opened, s.clock, customers, all), page{1 + rnd.Uint64N(4), 1 + rnd.Uint64N(100)}, len(all))
	}
}

// randomRedemption redeems something, or uses or cancels one of those that there are:
// then it returns nil.
func randomRedemption(t *txn, rnd *rand.Rand, customers []id, all []*redemption) (*redemption, error) {
	if n := len(all); n > 0 && rnd.IntN(3) == 0 {
		x := all[n-1-rnd.IntN(min(n, 200))]
		var err error
		if rnd.IntN(2) == 0 {
			_, err = t.rewards.useCode(x.Code, nil)
		} else {
			_, err = t.rewards.cancel(x.ID)
		}
		if _, refused := err.(*apiError); refused {
			err = nil
		}
		return nil, err
	}
	now := t.now
	defer func() { t.now = now }()
	if rnd.IntN(50) == 0 {
		t.now -= instant(rnd.Int64N(3 * oneDay.Milliseconds()))
	}
	return t.rewards.redeem(pick(rnd, customers...), pick(rnd, t.cfg.Rewards...).ID, "", nil, givenProof{})
}

func randomRedemptionFilter(rnd *rand.Rand, opened, now instant, customers []id, all []*redemption) redemptionFilter {
	f := redemptionFilter{to: never}
	if rnd.IntN(2) == 0 {
		f.customer = ptr(pick(rnd, customers...))
	}
	if rnd.IntN(2) == 0 {
		f.reward = ptr(pick(rnd, all...).Reward)
	}
	if rnd.IntN(3) > 0 {
		f.status = pick(rnd, redemptionStatuses...)
	}
	moment := func() instant {
		if rnd.IntN(2) == 0 {
			return pick(rnd, all...).CreatedAt
		}
		return opened + instant(rnd.Int64N(int64(now-opened)))
	}
	if rnd.IntN(3) == 0 {
		f.from = moment()
	}
	if rnd.IntN(3) == 0 {
		f.to = moment()
	}
	if rnd.IntN(20) == 0 {
		f.code = ptr(strings.ToLower(pick(rnd, all...).Code))
	}
	return f
}

// compareRedemptions compares a page of a list with what a walk through so many
// redemptions finds.
func (s *shop) compareRedemptions(f redemptionFilter, p page, n int) {
	s.Helper()
	var want, got []string
	ask(s, func(t *txn) (any, error) {
		want = nil // it runs twice
		for seq := uint64(n); seq > 0; seq-- {
			x, err := t.rewards.redemptionAt(seq)
			if err != nil {
				return nil, err
			}
			owner, err := t.merges.owner(x.Customer)
			if err != nil {
				return nil, err
			}
			others := f
			others.customer = nil // is compared here
			if (f.customer == nil || *f.customer == owner.ID) && others.keeps(x, t.now) && (f.code == nil || strings.EqualFold(*f.code, x.Code)) {
				want = append(want, x.Code)
			}
		}
		return nil, nil
	})
	total := ask(s, func(t *txn) (int, error) {
		list, total, err := t.rewards.findRedemptions(f, p)
		got = nil
		for _, x := range list {
			got = append(got, x.Code)
		}
		return int(total), err
	})
	what := fmt.Sprintf("%+v, page %+v", f, p)
	same(s, what+", total", total, len(want))
	from := min(int(p.skip()), len(want))
	same(s, what, strings.Join(got, " "), strings.Join(want[from:min(from+int(p.limit), len(want))], " "))
}

// TestRedemptionFiltersNotFound: another's customer or reward is not found; a reward
// that is gone is, as long as it was redeemed.
func TestRedemptionFiltersNotFound(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: voucherRewards})
	ana := s.customer("ana")
	s.add(ana, "10", 0)
	x, err := s.redeem(ana, "now")
	s.ok(err)
	find := func(f redemptionFilter) (uint64, error) {
		f.to = never
		return do(s, func(t *txn) (uint64, error) {
			_, total, err := t.rewards.findRedemptions(f, page{1, 10})
			return total, err
		})
	}
	ever := ask(s, func(t *txn) (id, error) { return t.cfg.Rewards[1].ID, nil })
	s.apply(setup{also: `"rewards":[]`}.document())
	for _, test := range []struct {
		filter redemptionFilter
		total  uint64
		code   string
	}{
		{redemptionFilter{reward: &x.Reward}, 1, ""},
		{redemptionFilter{reward: &ever}, 0, "reward_not_found"},
		{redemptionFilter{customer: &id{1}}, 0, "customer_not_found"},
		{redemptionFilter{customer: &id{1}, code: &x.Code}, 0, "customer_not_found"},
	} {
		total, err := find(test.filter)
		s.want(err, test.code)
		same(t, "total", total, test.total)
	}
}

// TestWholeBlocks: a list of redemptions by date takes a block inside the dates whole, and
// leaves out one that lies outside.
func TestWholeBlocks(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: voucherRewards})
	ana := s.customer("ana")
	s.add(ana, "10000", 0)
	for range 3 {
		must(s, func(t *txn) (any, error) {
			for i := range 400 {
				x, err := t.rewards.redeem(ana, t.cfg.Rewards[i%3].ID, "", nil, givenProof{})
				if err != nil {
					return nil, err
				}
				if i%10 == 0 {
					_, err = t.rewards.cancel(x.ID)
				}
				if err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
		s.pass(time.Hour)
	}
	ask(s, func(tx *txn) (any, error) {
		c := redemptionPager{txn: tx, filter: redemptionFilter{from: s.clock.add(-90 * time.Minute), to: never}, last: 1200}
		if *c.wholeBlock(0) == (blockset.Bitmap{}) || *c.wholeBlock(1) == (blockset.Bitmap{}) {
			t.Error("a block is left out")
		}
		c.filter.from = s.clock
		if *c.wholeBlock(0) != (blockset.Bitmap{}) || *c.wholeBlock(1) != (blockset.Bitmap{}) {
			t.Error("a block from before the dates is made whole")
		}
		return nil, nil
	})
}
