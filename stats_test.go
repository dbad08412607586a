package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sello/internal/blockset"
	"sello/internal/disk"
)

// TestStatistics compares answers for random spans with a plain count over
// all records.
func TestStatistics(t *testing.T) {
	skipRace(t)
	t.Parallel()
	s := newRetailShop(t)
	s.importFile(t, importCustomers, "testdata/retail/customers.csv")
	s.importFile(t, importSales, "testdata/retail/sales.csv")
	ctx := context.Background()
	last := dayOf(s.clock, time.UTC)
	for _, span := range []struct {
		from, to day
		groupBy  string
	}{
		{last - 40, last, groupDay}, {last - 3, last - 3, groupDay}, {last - 3, last - 2, groupWeek}, {last - 60, last + 60, groupMonth},
		{last - 2, last - 1, groupDay}, {last + 5, last + 9, groupWeek},
	} {
		t.Run(fmt.Sprint(span), func(t *testing.T) {
			_, err := read(ctx, s.engine, s.org, s.clock, func(x *txn) (any, error) {
				got, err := x.stats.answer(statsQuery{from: span.from, to: span.to, groupBy: span.groupBy})
				if err != nil {
					return nil, err
				}
				next := span.from
				for _, p := range append(slices.Clone(got.periods), got.total) {
					if p.from != got.total.from || len(got.periods) == 1 || p.to != got.total.to {
						if p.from != next && p != got.total {
							t.Errorf("a period begins on %v, want %v", p.from, next)
						}
						next = p.to + 1
					}
					want, err := naiveStatistics(x, p.from, p.to)
					if err != nil {
						return nil, err
					}
					if want != p {
						t.Errorf("%v–%v:\n got %+v\nwant %+v", p.from, p.to, p, want)
					}
				}
				return nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// naiveStatistics counts a period by reading every record.
func naiveStatistics(t *txn, from, to day) (period, error) {
	p := period{from: from, to: to}
	n, err := t.count()
	if err != nil {
		return p, err
	}
	in := func(at instant) bool { d := dayOf(at, t.cfg.zone); return from <= d && d <= to }
	upTo := func(at instant) bool { return dayOf(at, t.cfg.zone) <= to }
	for i := range n.Customers {
		c, err := t.customers.at(i + 1)
		if err != nil {
			return p, err
		}
		if in(c.CreatedAt) {
			p.tally.NewCustomers++
		}
		if upTo(c.CreatedAt) {
			p.customers++
		}
	}
	active := map[id]bool{}
	for i := range n.Sales {
		s, err := t.sales.at(i + 1)
		if err != nil {
			return p, err
		}
		switch {
		case !in(s.CreatedAt):
		case s.Type == typePurchase:
			p.tally.Purchases++
			p.tally.SalesAmount += s.Total
			active[s.Customer] = true
		default:
			p.tally.Returns++
			p.tally.ReturnsAmount += s.Total
		}
	}
	p.active = uint64(len(active))
	for i := range n.Movements {
		m, err := t.points.movement(i + 1)
		if err != nil {
			return p, err
		}
		if upTo(m.CreatedAt) {
			p.outstanding += m.Amount
		}
		switch {
		case !in(m.CreatedAt):
		case m.Category == categoryReturn:
			p.tally.PointsReversed -= m.Amount
		case m.Category == categoryExpiration:
			p.tally.PointsExpired -= m.Amount
		case m.Amount > 0:
			p.tally.PointsIssued += m.Amount
		default:
			p.tally.PointsRedeemed -= m.Amount
		}
	}
	return p, nil
}

// BenchmarkStatisticsYear asks for a year by day, month and week. There are 27,400 sales
// a day, ten million in all, to random customers out of a million. It reports the time as
// a multiple of the time to read one customer.
func BenchmarkStatisticsYear(b *testing.B) {
	const customers, daily = 1_000_000, 27_400
	store, err := openBolt(filepath.Join(b.TempDir(), "year.db"), disk.Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	s := &shop{TB: b, org: 1}
	s.setClock("2026-12-31T18:00:00Z")
	s.engine = newEngine(store, func() time.Time { return s.clock.time() }, cryptoSeed)
	s.ok(s.engine.open(b.Context()))
	s.apply(setup{}.document())
	cust := s.customer("ana")
	first := dayOn(2026, 1, 1)
	rnd := rand.New(rand.NewPCG(1, 1))
	month := blockset.Set{}
	for d := first; d < first+365; d++ {
		must(s, func(t *txn) (any, error) {
			bought := blockset.Set{}
			for range daily {
				n := rnd.Uint64N(customers) + 1
				bought.Add(n)
				month.Add(n)
			}
			of, err := t.stats.tally(1, d.start(t.cfg.zone))
			if err != nil {
				return nil, err
			}
			of.Active, of.Purchases, of.SalesAmount = bought.Count(), daily, decimalOf(daily)
			if err := putSet(t, t.stats.activeKey(1, activeDay, d), bought); err != nil || d != d.monthEnd() {
				return nil, err
			}
			defer func() { month = blockset.Set{} }()
			return nil, putSet(t, t.stats.activeKey(1, activeMonth, d.month()), month)
		})
	}
	one := timeOf(b, 2000, func() {
		ask(s, func(t *txn) (any, error) {
			c, err := t.customers.get(cust)
			if err != nil {
				return nil, err
			}
			return newCustomerDetail(t, c)
		})
	})
	for _, groupBy := range []string{groupDay, groupMonth, groupWeek} {
		b.Run(groupBy, func(b *testing.B) {
			for b.Loop() {
				found := ask(s, func(t *txn) (*statistics, error) {
					return t.stats.answer(statsQuery{from: first, to: first + 364, groupBy: groupBy})
				})
				if found.total.tally.Purchases != 365*daily {
					b.Fatal(found.total.tally)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(one), "customers")
		})
	}
}

func putSet(t *txn, prefix key, set blockset.Set) error {
	for block, bits := range set {
		if err := t.Put(append(key(nil), prefix...).u32(block), bits.Encode()); err != nil {
			return err
		}
	}
	return nil
}

// timeOf returns the mean time of n runs of fn.
func timeOf(b *testing.B, n int, fn func()) time.Duration {
	b.Helper()
	start := time.Now()
	for range n {
		fn()
	}
	return time.Since(start) / time.Duration(n)
}
