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
