package main

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"sello/internal/disk"
)

// BenchmarkStatisticsYear asks for a year by day after ten million sales to a
// million customers, 27,400 of whom bought on each day, and by month. It
// reports how many times as long as reading one customer that takes.
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
	month := blockSet{}
	for d := first; d < first+365; d++ {
		must(s, func(t *txn) (any, error) {
			bought := blockSet{}
			for range daily {
				n := rnd.Uint64N(customers) + 1
				bought.add(n)
				month.add(n)
			}
			of, err := t.tally(1, d.start(t.cfg.zone))
			if err != nil {
				return nil, err
			}
			of.Active, of.Purchases, of.SalesAmount = bought.count(), daily, decimalOf(daily)
			if err := t.putSet(t.activeKey(1, activeDay, d), bought); err != nil || d != d.monthEnd() {
				return nil, err
			}
			defer func() { month = blockSet{} }()
			return nil, t.putSet(t.activeKey(1, activeMonth, d.month()), month)
		})
	}
	one := timeOf(b, 2000, func() {
		ask(s, func(t *txn) (any, error) {
			c, err := t.customer(cust)
			if err != nil {
				return nil, err
			}
			return t.customerDetail(c)
		})
	})
	for _, groupBy := range []string{groupDay, groupMonth, groupWeek} {
		b.Run(groupBy, func(b *testing.B) {
			for b.Loop() {
				found := ask(s, func(t *txn) (*statistics, error) {
					return t.statistics(statsQuery{from: first, to: first + 364, groupBy: groupBy})
				})
				if found.total.tally.Purchases != 365*daily {
					b.Fatal(found.total.tally)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(one), "customers")
		})
	}
}

func (t *txn) putSet(prefix key, set blockSet) error {
	for block, bits := range set {
		if err := t.Put(append(key(nil), prefix...).u32(block), fromBitmap(bits)); err != nil {
			return err
		}
	}
	return nil
}

// timeOf is how long fn takes, of n runs.
func timeOf(b *testing.B, n int, fn func()) time.Duration {
	b.Helper()
	start := time.Now()
	for range n {
		fn()
	}
	return time.Since(start) / time.Duration(n)
}

// TestChangeBlock puts numbers into a block and takes them out, all of them
// and again, and compares with the bitmap.
func TestChangeBlock(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var value []byte
	var bits [bitmapSize]byte
	for _, likely := range []float64{0.9, 0.1, 0.6, 0} { // that a number is to be in
		for range 5000 {
			offset, member := rnd.Uint64N(setBlock), rnd.Float64() < likely
			if likely == 0.6 {
				offset %= 420 // about the size at which the form changes
			}
			had := bits[offset/8]&(1<<(offset%8)) != 0
			var changed bool
			if value, changed = changeBlock(value, offset, member); changed != (had != member) {
				t.Fatalf("%d in is %t, was %t: changed is %t", offset, member, had, changed)
			}
			if changed {
				bits[offset/8] ^= 1 << (offset % 8)
			}
			if string(value) != string(fromBitmap(&bits)) {
				t.Fatalf("after %d: %x, want %x", offset, value, fromBitmap(&bits))
			}
		}
	}
}
