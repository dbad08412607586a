package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var fallTiers = []tier{{Name: "Bronce"}, {Name: "Plata", Threshold: decimalOf(100)}, {Name: "Oro", Threshold: decimalOf(500)}}

// leavingDays yields days.
func leavingDays(list []dayBasis) func(func(dayBasis, error) bool) {
	return func(yield func(dayBasis, error) bool) {
		for _, d := range list {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// TestFall: day n leaves at n, but those in leaves.
func TestFall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		window string
		days   []int // what each day adds
		leaves map[day]instant
		want   string
	}{
		{"nothing", windowRolling, nil, nil, "never"},
		{"the lowest tier", windowRolling, []int{99}, nil, "never"},
		{"the first day that is missed", windowRolling, []int{10, 40, 100}, nil, "2 Bronce"},
		{"met exactly without the first days", windowRolling, []int{50, 60, 100}, nil, "2 Bronce"},
		{"not at the first day", windowRolling, []int{300, 150, 150, 350}, nil, "2 Plata"},
		{"at the first day", windowRolling, []int{30, 450, 30}, nil, "0 Plata"},
		{"past a tier", windowRolling, []int{450, 60}, nil, "0 Bronce"},
		{"two days leave together", windowRolling, []int{420, 20, 80}, map[day]instant{0: 1}, "1 Bronce"},
		{"together, and one of them was taken back", windowRolling, []int{60, -60, 500}, map[day]instant{0: 1}, "2 Bronce"},
		{"rises first", windowRolling, []int{-60, 160}, nil, "1 Bronce"},
		{"a year alone", windowCalendarYear, []int{120}, nil, "0 Bronce"},
		{"the better year is the last", windowCalendarYear, []int{120, 130}, nil, "1 Bronce"},
		{"the better year is the first", windowCalendarYear, []int{500, 130}, nil, "0 Plata"},
		{"the same tier in both", windowCalendarYear, []int{400, 130}, nil, "1 Bronce"},
		{"a year that ended below zero", windowCalendarYear, []int{400, -10}, nil, "0 Bronce"},
	} {
		p := &program{programDoc: programDoc{Tiers: fallTiers, TierBasis: tierBasis{Metric: metricPoints, Window: test.window}}}
		var window basis
		var days []dayBasis
		for i, n := range test.days {
			days = append(days, dayBasis{day(i), basis{Points: decimalOf(n)}})
			window = p.TierBasis.with(window, days[i].Basis)
		}
		f, err := p.fall(window, leavingDays(days), func(d day) instant { return cmp.Or(test.leaves[d], instant(d)) })
		got := fmt.Sprint(int64(f.At), " ", f.To.name())
		if f.At == never {
			got = "never"
		}
		if err != nil || got != test.want {
			t.Errorf("%s: falls at %s, %v, want %s", test.reason, got, err, test.want)
		}
	}
}

// TestFallProperty compares falls with what is left of random days at every moment.
func TestFallProperty(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(27, 1))
	for range 20_000 {
		p := &program{programDoc: programDoc{Tiers: fallTiers[:rnd.IntN(4)], TierBasis: tierBasis{Metric: pick(rnd, metricPoints, metricSpent, metricPurchases), Window: pick(rnd, windowRolling, windowCalendarYear)}}}
		days := make([]dayBasis, rnd.IntN(7))
		for i := range days {
			days[i] = dayBasis{day(i), basis{decimalOf(rnd.IntN(400) - 50), decimalOf(rnd.IntN(400) - 50), int64(rnd.IntN(400) - 50)}}
		}
		leaves := func(d day) instant { return instant(d/2*2 + 1) } // two at once
		tierFrom := func(at instant) *tier {
			var window basis
			for _, d := range days {
				if leaves(d.Day) > at {
					window = p.TierBasis.with(window, d.Basis)
				}
			}
			current, _ := p.tierAt(p.TierBasis.measure(window))
			return current
		}
		now, want := tierFrom(0), tierFall{At: never}
		for at := instant(1); at < 10; at++ {
			if to := tierFrom(at); p.isAbove(now.name(), to.name()) {
				want = tierFall{at, to}
				break
			}
		}
		var window basis
		for _, d := range days {
			window = p.TierBasis.with(window, d.Basis)
		}
		if got, err := p.fall(window, leavingDays(days), leaves); err != nil || got != want {
			t.Fatalf("%v of %v: %v, %v, want %v", p.TierBasis, days, got, err, want)
		}
	}
}

// progress is what the customer's detail says of its tier at a moment.
func (s *shop) progress(cust id, at instant) (name string, v tierProgress) {
	s.Helper()
	now := s.clock
	s.clock = at
	defer func() { s.clock = now }()
	d := ask(s, func(t *txn) (customerDetail, error) {
		c, err := t.customers.get(cust)
		if err != nil {
			return customerDetail{}, err
		}
		return newCustomerDetail(t, c)
	})
	if d.TierProgress == nil {
		return "", tierProgress{FallsAt: never}
	}
	same(s, "the progress in its own program", *d.Programs[0].TierProgress, *d.TierProgress)
	return *d.TierName, *d.TierProgress
}

func newFallShop(t *testing.T, with setup) *fallShop { return &fallShop{shop: newShop(t, with)} }

// A fallShop is a shop that notes the falls that it tells, before the feed drops them.
type fallShop struct {
	shop *shop
	last uint64
	list []string
}

// falls returns the falls that were told: when, and from where to where.
func (s *fallShop) falls() []string {
	s.shop.Helper()
	dropped := ask(s.shop, func(t *txn) (uint64, error) { n, err := t.count(); return n.Dropped, err })
	for _, e := range s.shop.feed(dropped, "tier.expiring") {
		if e.Sequence > s.last {
			d := e.Data.(tierExpiringEvent)
			s.last, s.list = e.Sequence, append(s.list, fmt.Sprint(d.FallsAt.time().UTC().Format(time.DateOnly), " ", d.TierName, " ", d.FallsTo))
		}
	}
	return s.list
}

// TestTierFalls plays random histories. Just before fallsAt the tier is the one before, then fallsTo.
// Each fall that comes to be fallNotice away is told then, once, and no other.
func TestTierFalls(t *testing.T) {
	t.Parallel()
	told, postponed := 0, 0
	for seed := range uint64(sized(40, 12)) {
		rnd := rand.New(rand.NewPCG(seed, 22))
		window := pick(rnd, `"window":"CalendarYear"`, fmt.Sprintf(`"window":"Rolling","months":%d`, 1+rnd.IntN(14)))
		metric := pick(rnd, metricPoints, metricSpent, metricPurchases)
		thresholds := map[string][]int{metricPurchases: {3, 7}}[metric]
		if thresholds == nil {
			thresholds = []int{100, 300}
		}
		s := newFallShop(t, setup{zone: pick(rnd, "America/Mexico_City", "America/Santiago", "Asia/Tokyo"), program: fmt.Sprintf(
			`"returns":"Reverse","negativeBalance":"Debt","tierBasis":{"metric":%q,%s},"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":%d},{"name":"Oro","threshold":%d}],"rules":[%s]`,
			metric, window, thresholds[0], thresholds[1], onePer1), settings: `"maxLateDays":30`})
		s.shop.engine.sizes.inline.days = rnd.IntN(4)
		ana, eva := s.shop.customer("ana"), s.shop.customer("eva")
		var sales []*sale
		seen := 0
		for range 120 {
			switch rnd.IntN(8) {
			case 0, 1, 2:
				in := newSale{Customer: ana, Total: decimalOf(1 + rnd.IntN(60))}
				if rnd.IntN(5) == 0 {
					in.OccurredAt = s.shop.clock.add(-time.Duration(rnd.IntN(29)) * oneDay)
				}
				sold, err := s.shop.sell(in)
				s.shop.ok(err)
				sales = append(sales, sold)
			case 3:
				if len(sales) > 0 && rnd.IntN(2) == 0 {
					i := rnd.IntN(len(sales))
					s.shop.bring(sales[i], sales[i].Total.String())
					sales = slices.Delete(sales, i, i+1)
				}
			case 4:
				if eva != (id{}) && rnd.IntN(6) == 0 {
					s.shop.buy(eva, "150")
					s.shop.merged(ana, eva)
					eva = id{}
				}
			}
			same(t, fmt.Sprint("seed ", seed, ": told by a write"), len(s.falls()), seen)
			name, v := s.shop.progress(ana, s.shop.clock)
			if (v.FallsAt == never) != (name == "Bronce") || v.Metric != metric || (v.NextTierName == nil) != (name == "Oro") || (v.Missing == nil) != (name == "Oro") {
				t.Fatalf("seed %d: %s, %+v", seed, name, v)
			}
			if v.FallsAt != never {
				before, _ := s.shop.progress(ana, v.FallsAt-1)
				at, _ := s.shop.progress(ana, v.FallsAt)
				if before != name || at != *v.FallsTo {
					t.Fatalf("seed %d: %s to %s, and there it is %s and %s", seed, name, *v.FallsTo, before, at)
				}
			}
			from := s.shop.clock
			switch look := v.FallsAt - fallNotice; {
			case rnd.IntN(3) == 0 && look-1 > s.shop.clock && v.FallsAt != never:
				s.shop.clock = look - 1
			case rnd.IntN(2) == 0 && look > s.shop.clock && look < s.shop.clock.add(40*oneDay):
				s.shop.clock = look
			default:
				s.shop.pass(time.Duration(rnd.IntN(9*24)) * time.Hour)
			}
			s.shop.swept()
			name, now := s.shop.progress(ana, s.shop.clock)
			want := seen
			if look := now.FallsAt - fallNotice; now.FallsAt != never && from < look && look <= s.shop.clock {
				want++
			} else if now.FallsAt > v.FallsAt && v.FallsAt != never {
				postponed++
			}
			list := s.falls()
			if len(list) != want {
				t.Fatalf("seed %d, %s, %s: told %q at %s, %s falls at %s", seed, metric, window, list[seen:], s.shop.clock.time(), name, now.FallsAt.time())
			}
			if want > seen {
				told++
				if end := fmt.Sprint(now.FallsAt.time().UTC().Format(time.DateOnly), " ", name, " ", *now.FallsTo); list[seen] != end {
					t.Fatalf("seed %d: told %q, want %q", seed, list[seen], end)
				}
			}
			seen = want
		}
		s.shop.verified()
	}
	if told == 0 {
		t.Errorf("nothing was told")
	}
}

const rollingYear = `"returns":"Reverse","negativeBalance":"Debt","tierBasis":{"metric":"PointsEarned","window":"Rolling","months":12},` + threeTiers

// passTo sets the clock to a moment from which so much is left.
func (s *fallShop) passTo(end instant, left time.Duration) {
	s.shop.clock = end.add(-left)
	s.shop.swept()
}

// TestFallTold: a fall is told in its last month, again after it was put off, and not if a return brings it nearer.
func TestFallTold(t *testing.T) {
	t.Parallel()
	s := newFallShop(t, setup{zone: "UTC", program: rollingYear})
	ana := s.shop.customer("ana")
	s.shop.buy(ana, "120") // leaves on 3 March 2027
	falls := func() instant { _, v := s.shop.progress(ana, s.shop.clock); return v.FallsAt }
	first := falls()
	s.passTo(first, 30*oneDay+time.Millisecond)
	same(t, "told too soon", len(s.falls()), 0)
	s.passTo(first, 30*oneDay)
	want := []string{"2027-03-03 Plata Bronce"}
	same(t, "told", s.falls(), want)
	s.shop.pass(5 * oneDay)
	s.shop.swept()
	sold := s.shop.buy(ana, "110")
	second := falls()
	s.passTo(second, 30*oneDay)
	want = append(want, "2028-02-07 Plata Bronce")
	same(t, "put off", s.falls(), want)
	s.shop.clock = second.add(-100 * oneDay)
	s.passTo(second, 20*oneDay)
	s.shop.buy(ana, "100")
	s.passTo(second, 10*oneDay)
	s.shop.bring(sold, "110")
	same(t, "falls far away", falls() > s.shop.clock+fallNotice, true)
	s.shop.verified()
	same(t, "told in all", s.falls(), want)
}

// TestFallNearer: a fall that comes nearer than its notice by a return, or by another configuration, is not told.
func TestFallNearer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *fallShop, sold *sale){
		"return": func(s *fallShop, sold *sale) { s.shop.bring(sold, "50") },
		"tiers": func(s *fallShop, _ *sale) {
			s.shop.apply(setup{zone: "UTC", program: strings.Replace(rollingYear, `"threshold":100`, `"threshold":130`, 1)}.document())
		},
		"window": func(s *fallShop, _ *sale) {
			s.shop.apply(setup{zone: "UTC", program: strings.Replace(rollingYear, `"months":12`, `"months":7`, 1)}.document())
		},
	} {
		s := newFallShop(t, setup{zone: "UTC", program: rollingYear})
		ana := s.shop.customer("ana")
		s.shop.buy(ana, "60")
		s.shop.pass(200 * oneDay)
		sold := s.shop.buy(ana, "110")
		s.shop.setClock("2027-02-20T10:00:00Z")
		if name == "window" {
			s.shop.setClock("2026-09-25T10:00:00Z")
		}
		s.shop.swept()
		change(s, sold)
		s.shop.ok(s.shop.engine.recount(t.Context()))
		s.shop.swept()
		tier, v := s.shop.progress(ana, s.shop.clock)
		if near := v.FallsAt <= s.shop.clock+fallNotice; tier != "Plata" || near != (name != "window") {
			t.Errorf("%s: %s falls at %s", name, tier, v.FallsAt.time())
		}
		s.shop.verified()
		same(t, name+": told", len(s.falls()), 0)
		s.passTo(v.FallsAt, 0)
		tier, _ = s.shop.progress(ana, s.shop.clock)
		same(t, name+": fell to", tier, *v.FallsTo)
	}
}

// TestFallOfEarlierRecord: a record from before there was LookFall gets its notice, also if it is
// nearer by the time somebody writes it.
func TestFallOfEarlierRecord(t *testing.T) {
	t.Parallel()
	for _, days := range []int{40, 20} {
		s := newFallShop(t, setup{zone: "UTC", program: rollingYear})
		ana := s.shop.customer("ana")
		s.shop.buy(ana, "30")
		s.shop.pass(oneDay)
		s.shop.buy(ana, "90") // without what was before it falls
		_, v := s.shop.progress(ana, s.shop.clock)
		must(s.shop, func(x *txn) (any, error) {
			_, a, err := accountOf(x, ana)
			if err != nil {
				return nil, err
			}
			if err := x.Delete(x.points.dueKey(a, a.Due)); err != nil {
				return nil, err
			}
			a.LookFall, a.Due = 0, v.FallsAt
			if err := x.Put(x.points.dueKey(a, a.Due), nil); err != nil {
				return nil, err
			}
			return nil, x.put(x.points.accountKey(a.customer, a.program), a)
		})
		s.shop.verified()
		s.shop.clock = v.FallsAt.add(-time.Duration(days) * oneDay)
		_, err := s.shop.move(ana, &movement{Amount: -dec("1"), Category: deductCategories[0]})
		s.shop.ok(err)
		s.shop.verified()
		same(t, fmt.Sprint("told at once with ", days, " days to go"), len(s.falls()), map[bool]int{true: 1}[days < 30])
		s.passTo(v.FallsAt, 10*oneDay)
		same(t, "told", s.falls(), []string{"2027-03-03 Plata Bronce"})
	}
}

// TestFallVerify: verify finds a moment that is moved, and erasing or merging a customer ends it.
func TestFallVerify(t *testing.T) {
	t.Parallel()
	s := newFallShop(t, setup{zone: "UTC", program: rollingYear})
	ana, eva := s.shop.customer("ana"), s.shop.customer("eva")
	s.shop.buy(ana, "120")
	s.shop.buy(eva, "130")
	set := func(by instant) (before instant) {
		return must(s.shop, func(x *txn) (instant, error) {
			_, a, err := accountOf(x, ana)
			if err != nil {
				return 0, err
			}
			before := a.LookFall
			a.LookFall, a.lookDue = a.LookFall+by, true
			return before, x.points.saveAccount(a)
		})
	}
	for _, by := range []instant{-1, 1, -30 * 24 * 60 * 60 * 1000, 30 * 24 * 60 * 60 * 1000} {
		set(by)
		found, err := s.shop.verify()
		s.shop.ok(err)
		if !strings.Contains(strings.Join(found.Problems, "\n"), "bajar su nivel") {
			t.Errorf("moved by %d, and verify says %q", by, found.Problems)
		}
		set(-by)
	}
	s.shop.merged(ana, eva)
	s.shop.verified()
	must(s.shop, func(x *txn) (any, error) { return x.merges.erase(ana) })
	s.shop.verified()
	s.shop.pass(400 * oneDay)
	s.shop.swept()
	same(t, "told", len(s.falls()), 0)
}

// TestFallImported: old sales tell nothing that is over or near, and a fall that is far is told in its time.
func TestFallImported(t *testing.T) {
	t.Parallel()
	s := newFallShop(t, setup{zone: "UTC", program: rollingYear})
	ana := s.shop.customer("ana")
	s.shop.importText(t, "A,2024-02-05T18:00:00Z,ana@example.com,,Purchase,120,,,,", "B,2025-03-10T18:00:00Z,ana@example.com,,Purchase,150,,,,",
		"C,2025-04-20T18:00:00Z,ana@example.com,,Purchase,160,,,,", "D,2025-05-20T18:00:00Z,ana@example.com,,Purchase,20,,,,")
	s.shop.verified()
	s.shop.swept()
	s.shop.verified()
	tier, v := s.shop.progress(ana, s.shop.clock)
	same(t, "tier", tier, "Plata")
	same(t, "told at once", len(s.falls()), 0)
	s.passTo(v.FallsAt, 30*oneDay+time.Millisecond)
	same(t, "told too soon", len(s.falls()), 0)
	s.passTo(v.FallsAt, 30*oneDay)
	same(t, "told", s.falls(), []string{"2026-04-21 Plata Bronce"})
}

const threeTiers = `"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100},{"name":"Oro","threshold":500}],"rules":[` + onePer1 + `]`

// TestTierThresholds shows that a tier begins exactly at its threshold, for each of the
// three metrics, and that the sale reports the change of tier.
func TestTierThresholds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		metric string
		totals []string
		want   string
	}{
		{"no sale", "PointsEarned", nil, "Bronce"},
		{"a ten-thousandth below", "PointsEarned", []string{"99.9999"}, "Bronce"},
		{"met exactly", "PointsEarned", []string{"100"}, "Plata"},
		{"met exactly by parts that floats do not have", "PointsEarned", []string{"33.3", "33.3", "33.4"}, "Plata"},
		{"a ten-thousandth above", "PointsEarned", []string{"100.0001"}, "Plata"},
		{"a tier passed over", "PointsEarned", []string{"500"}, "Oro"},
		{"a ten-thousandth below the highest", "PointsEarned", []string{"100", "399.9999"}, "Plata"},
		{"amount spent, met exactly", "AmountSpent", []string{"99.9", "0.1"}, "Plata"},
		{"amount spent, below", "AmountSpent", []string{"99.9", "0.0999"}, "Bronce"},
		{"purchases, below", "Purchases", []string{"1000"}, "Bronce"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newShop(t, setup{program: `"pointsDecimals":4,"tierBasis":{"metric":"` + test.metric + `","window":"Lifetime"},` + threeTiers})
			ana := s.customer("ana")
			before := "Bronce"
			for _, total := range test.totals {
				sold := s.buy(ana, total)
				now := s.standing(ana).Tier
				told := fmt.Sprint(before, " to ", now)
				if before == now {
					told = " to "
				}
				if got := fmt.Sprint(sold.TierFrom, " to ", sold.TierTo); got != told {
					t.Errorf("the sale of %s tells of a change from %q, want %q", total, got, told)
				}
				before = now
			}
			s.wantTier(ana, test.want, test.reason)
		})
	}

	s := newShop(t, setup{program: `"tierBasis":{"metric":"Purchases","window":"Lifetime"},` + threeTiers})
	ana := s.customer("ana")
	for range 99 {
		s.buy(ana, "1")
	}
	s.wantTier(ana, "Bronce", "99 purchases")
	last := s.buy(ana, "1")
	s.wantTier(ana, "Plata", "100 purchases")
	s.bring(last, "0.5")
	s.wantTier(ana, "Plata", "a purchase counts until it is wholly returned")
	s.bring(last, "0.5")
	s.wantTier(ana, "Bronce", "it is wholly returned")
}

// TestTierNeverFallsForSpending spends points in every way there is, and lets the rest
// expire. The tier stays.
func TestTierNeverFallsForSpending(t *testing.T) {
	t.Parallel()
	for _, window := range []string{`"window":"Lifetime"`, `"window":"Rolling","months":12`} {
		s := newShop(t, setup{
			program: `"expiry":{"days":10},"tierBasis":{"metric":"PointsEarned",` + window + `},` + threeTiers,
			also:    `"rewards":[{"key":"r","program":"club","name":"R","pointsCost":200}]`,
		})
		ana := s.customer("ana")
		s.buy(ana, "500")
		s.wantTier(ana, "Oro", "bought for 500")
		for _, category := range deductCategories {
			_, err := s.move(ana, &movement{Amount: -dec("10"), Category: category})
			s.ok(err)
			s.wantTier(ana, "Oro", "deducted as "+category)
		}
		x := must(s, func(t *txn) (*redemption, error) {
			return t.rewards.redeem(ana, t.cfg.Rewards[0].ID, "", nil, givenProof{})
		})
		s.wantTier(ana, "Oro", "redeemed")
		must(s, func(t *txn) (*redemption, error) { return t.rewards.cancel(x.ID) })
		s.wantTier(ana, "Oro", "redeemed and cancelled")
		if s.standing(ana).Figure != dec("500") {
			t.Errorf("what was given back counts again: %s", s.standing(ana).Figure)
		}
		s.pass(11 * oneDay)
		s.swept()
		s.wantStanding(ana, "0 0 500", "all has expired")
		s.wantTier(ana, "Oro", "all has expired")
	}
}

// TestTierWindow shows how a rolling window moves. A customer's tier is right without the
// sweep; the sweep brings the counts of customers by tier up to date.
func TestTierWindow(t *testing.T) {
	t.Parallel()
	const rolling = `"tierBasis":{"metric":"PointsEarned","window":"Rolling","months":1},` + threeTiers
	counts := func(s *shop) string {
		n := ask(s, func(t *txn) (list []uint64, err error) {
			for _, tier := range t.cfg.Programs[0].Tiers {
				n, _, err := getUint(t.Tx, t.stats.tierCountKey(t.cfg.Programs[0].Number, tier.Name))
				if err != nil {
					return nil, err
				}
				list = append(list, n)
			}
			return list, nil
		})
		return fmt.Sprint(n)
	}
	for _, test := range []struct {
		reason  string
		bought  string // when the customer buys for 100 points; Mexico City is at UTC-6
		last    string // the last moment at which they count
		besides string // when for 400 more, which still count after last; empty: never
	}{
		{"the same date a month later counts whole", "2026-03-02T18:00:00Z", "2026-04-03T05:59:59.999Z", ""},
		{"from the first moment of the date", "2026-03-02T06:00:00Z", "2026-04-03T05:59:59.999Z", ""},
		{"to its last", "2026-03-03T05:59:59Z", "2026-04-03T05:59:59.999Z", ""},
		{"the month may be too short for the date", "2026-01-31T18:00:00Z", "2026-03-01T05:59:59.999Z", ""},
		{"or not, in a leap year", "2028-01-29T18:00:00Z", "2028-03-01T05:59:59.999Z", ""},
		{"what was bought later stays", "2026-03-02T18:00:00Z", "2026-04-03T05:59:59.999Z", "2026-03-03T18:00:00Z"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newShop(t, setup{at: test.bought, program: rolling})
			ana := s.customer("ana")
			s.buy(ana, "100")
			before, after, countsBefore, countsAfter := "Plata", "Bronce", "[0 1 0]", "[1 0 0]"
			if test.besides != "" {
				s.setClock(test.besides)
				s.buy(ana, "400")
				before, after, countsBefore, countsAfter = "Oro", "Plata", "[0 0 1]", "[0 1 0]"
			}
			s.setClock(test.last)
			s.wantTier(ana, before, "the last moment of the window")
			s.swept()
			s.wantTier(ana, before, "the sweep of the last moment")
			if got := counts(s); got != countsBefore {
				t.Errorf("customers by tier are %s, want %s", got, countsBefore)
			}
			s.pass(time.Millisecond)
			s.wantTier(ana, after, "the window is over, no sweep has run")
			s.swept()
			s.wantTier(ana, after, "the sweep has run")
			if got := counts(s); got != countsAfter {
				t.Errorf("customers by tier are %s, want %s", got, countsAfter)
			}
			if next := s.buy(ana, "500"); next.TierFrom != after || next.TierTo != "Oro" {
				t.Errorf("the next sale tells of a change from %q to %q", next.TierFrom, next.TierTo)
			}
		})
	}
}

// TestTierOfReturn shows that a return lowers the tier's figure as of the day of its
// purchase.
func TestTierOfReturn(t *testing.T) {
	t.Parallel()
	for _, metric := range []string{metricPoints, metricSpent} {
		s := newShop(t, setup{program: `"tierBasis":{"metric":"` + metric + `","window":"Rolling","months":1},` + threeTiers})
		ana := s.customer("ana")
		old := s.buy(ana, "450")
		s.pass(20 * oneDay)
		s.buy(ana, "100")
		s.wantTier(ana, "Oro", "550 in the window")
		back := s.bring(old, "60")
		s.wantTier(ana, "Plata", "490 in the window")
		if back.TierFrom != "Oro" || back.TierTo != "Plata" {
			t.Errorf("the return tells of a change from %q to %q", back.TierFrom, back.TierTo)
		}
		s.pass(15 * oneDay)
		s.wantTier(ana, "Plata", "100 in the window: the old purchase and its return have left it together")
		s.bring(old, "390")
		s.wantTier(ana, "Plata", "the return of what has left the window changes nothing in it")
	}
}

// TestTierCalendarYear shows until when a tier holds that was reached in a calendar year, with no
// write in between, and what is missing to the next one. Rows are what a customer does, in order.
func TestTierCalendarYear(t *testing.T) {
	t.Parallel()
	const program = `"returns":"Reverse","negativeBalance":"Debt","tierBasis":{"metric":"PointsEarned","window":"CalendarYear"},` + threeTiers
	type step struct {
		at     string // local time
		buys   string
		brings string // of the first purchase
		late   string // local time at which the purchase happened, if not at
		want   string // tier, and what is missing to the next
	}
	for _, test := range []struct {
		reason string
		steps  []step
	}{
		{"holds to 31 December of the next year", []step{
			{at: "2025-01-01T00:00:00", buys: "500", want: "Oro"},
			{at: "2026-12-31T23:59:59.999", want: "Oro"},
			{at: "2027-01-01T00:00:00", want: "Bronce 100"}}},
		{"also what was reached in the year's last moment", []step{
			{at: "2025-12-31T23:59:59.999", buys: "500", want: "Oro"},
			{at: "2026-12-31T23:59:59.999", want: "Oro"},
			{at: "2027-01-01T00:00:00", want: "Bronce 100"}}},
		{"a year later for the first moment of the next", []step{
			{at: "2026-01-01T00:00:00", buys: "500", want: "Oro"},
			{at: "2027-12-31T23:59:59.999", want: "Oro"},
			{at: "2028-01-01T00:00:00", want: "Bronce 100"}}},
		{"earned anew", []step{
			{at: "2025-06-01T12:00:00", buys: "500", want: "Oro"},
			{at: "2026-12-31T23:59:59.999", buys: "500", want: "Oro"},
			{at: "2027-01-01T00:00:00", want: "Oro"},
			{at: "2027-12-31T23:59:59.999", want: "Oro"},
			{at: "2028-01-01T00:00:00", want: "Bronce 100"}}},
		{"earned anew in part", []step{
			{at: "2025-06-01T12:00:00", buys: "500", want: "Oro"},
			{at: "2026-06-01T12:00:00", buys: "120", want: "Oro"},
			{at: "2026-12-31T23:59:59.999", want: "Oro"},
			{at: "2027-01-01T00:00:00", want: "Plata 500"}}},
		{"two years are not added up, and the next tier is of this year alone", []step{
			{at: "2025-06-01T12:00:00", buys: "400", want: "Plata 100"},
			{at: "2026-01-01T00:00:00", want: "Plata 500"},
			{at: "2026-06-01T12:00:00", buys: "300", want: "Plata 200"},
			{at: "2026-07-01T12:00:00", buys: "200", want: "Oro"}}},
		{"several years without a look", []step{
			{at: "2025-06-01T12:00:00", buys: "500", want: "Oro"},
			{at: "2031-06-01T12:00:00", buys: "100", want: "Plata 400"}}},
		{"a return takes away from the year of its purchase", []step{
			{at: "2025-12-01T12:00:00", buys: "500", want: "Oro"},
			{at: "2026-01-10T12:00:00", buys: "150", want: "Oro"},
			{at: "2026-01-11T12:00:00", brings: "100", want: "Plata 350"},
			{at: "2026-01-12T12:00:00", brings: "400", want: "Plata 350"},
			{at: "2027-12-31T23:59:59.999", want: "Plata 500"},
			{at: "2028-01-01T00:00:00", want: "Bronce 100"}}},
		{"a return of what no longer counts changes nothing", []step{
			{at: "2025-12-01T12:00:00", buys: "500", want: "Oro"},
			{at: "2027-01-10T12:00:00", buys: "100", want: "Plata 400"},
			{at: "2027-01-11T12:00:00", brings: "500", want: "Plata 400"}}},
		{"a sale that comes late counts in the year in which it happened", []step{
			{at: "2025-12-01T12:00:00", buys: "300", want: "Plata 200"},
			{at: "2026-01-10T12:00:00", buys: "200", late: "2025-12-31T23:59:59.999", want: "Oro"},
			{at: "2026-12-31T23:59:59.999", want: "Oro"},
			{at: "2027-01-01T00:00:00", want: "Bronce 100"}}},
	} {
		for _, zone := range []string{"America/Mexico_City", "Asia/Tokyo", "Pacific/Kiritimati", "America/Sao_Paulo"} {
			t.Run(test.reason+" in "+zone, func(t *testing.T) {
				place, err := time.LoadLocation(zone)
				if err != nil {
					t.Fatal(err)
				}
				moment := func(local string) instant {
					at, err := time.ParseInLocation("2006-01-02T15:04:05", local, place)
					if err != nil {
						t.Fatal(err)
					}
					return instantOf(at)
				}
				s := newShop(t, setup{at: "2024-12-30T00:00:00Z", zone: zone, settings: `"maxLateDays":60`, program: program})
				ana := s.customer("ana")
				var first *sale
				for _, step := range test.steps {
					s.clock = moment(step.at)
					switch {
					case step.buys != "":
						in := newSale{Customer: ana, Total: dec(step.buys)}
						if step.late != "" {
							in.OccurredAt = moment(step.late)
						}
						sold, err := s.sell(in)
						s.ok(err)
						if first == nil {
							first = sold
						}
					case step.brings != "":
						s.bring(first, step.brings)
					}
					for _, when := range []string{"before", "after"} {
						got := ask(s, func(t *txn) (string, error) {
							c, err := t.customers.get(ana)
							if err != nil {
								return "", err
							}
							d, err := newCustomerDetail(t, c)
							if err != nil {
								return "", err
							}
							if d.PointsToNextTier == nil {
								return *d.TierName, nil
							}
							return fmt.Sprint(*d.TierName, " ", *d.PointsToNextTier), nil
						})
						if got != step.want {
							t.Fatalf("%s the sweep of %s: %s, want %s", when, step.at, got, step.want)
						}
						if when == "before" {
							s.verified()
							s.swept()
						}
					}
					s.verified()
				}
			})
		}
	}
}

// TestTiersChanged shows that applying a document with other tiers or another basis gives
// every customer the tier that it now belongs to.
func TestTiersChanged(t *testing.T) {
	t.Parallel()
	with := func(basis, tiers string) setup {
		return setup{program: `"tierBasis":` + basis + `,"tiers":[` + tiers + `],"rules":[` + tenth + `]`}
	}
	lifetime := `{"metric":"PointsEarned","window":"Lifetime"}`
	two := `{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100}`
	s := newShop(t, with(lifetime, two))
	var customers []id
	for i := range 70 { // more than one batch
		cust := s.customer(fmt.Sprint("c", i))
		customers = append(customers, cust)
		returned := s.buy(cust, fmt.Sprint(1000+i)) // 100 points
		s.pass(oneDay)
		s.buy(cust, "500") // 50 points
		s.bring(returned, "500")
	}
	for _, test := range []struct {
		reason, basis, tiers string
		first, last          string // tiers of the first and the last customer, 70 days apart
	}{
		{"as it was", lifetime, two, "Plata", "Plata"},
		{"another threshold", lifetime, `{"name":"Bronce","threshold":0},{"name":"Plata","threshold":104}`, "Bronce", "Plata"},
		{"other names", lifetime, `{"name":"A","threshold":0},{"name":"B","threshold":104}`, "A", "B"},
		{"a rolling window", `{"metric":"PointsEarned","window":"Rolling","months":1}`, two, "Bronce", "Plata"},
		{"a longer one", `{"metric":"PointsEarned","window":"Rolling","months":12}`, two, "Plata", "Plata"},
		{"another metric", `{"metric":"AmountSpent","window":"Rolling","months":1}`, `{"name":"A","threshold":0},{"name":"B","threshold":1040}`, "A", "B"},
		{"purchases", `{"metric":"Purchases","window":"Lifetime"}`, `{"name":"A","threshold":0},{"name":"B","threshold":2}`, "B", "B"},
		{"calendar years", `{"metric":"AmountSpent","window":"CalendarYear"}`, `{"name":"A","threshold":0},{"name":"B","threshold":1035}`, "A", "B"},
		{"no tiers", lifetime, ``, "", ""},
		{"back again", lifetime, two, "Plata", "Plata"},
	} {
		s.apply(with(test.basis, test.tiers).document())
		s.wantTier(customers[0], test.first, test.reason)
		s.wantTier(customers[69], test.last, test.reason)
		s.verified()
	}
}
