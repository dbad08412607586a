package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// smallLog divides the log so that a few sales fill many blocks and chapters.
func smallLog() logSizes {
	return logSizes{block: 64, chapter: 128, perBlock: 64, every: 16, customers: 64, follow: 5}
}

// TestSalesOfMany finds the sales of customers in the ways there are, whatever
// the number of customers, and compares with all sales in turn. Some customers
// come late, some sales with dates of long ago.
func TestSalesOfMany(t *testing.T) {
	histories(t, 20, func(t *testing.T, rnd *rand.Rand) {
		s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`})
		s.engine.sizes.log = smallLog()
		var (
			customers []id
			all       []*sale
			names     = map[id]string{}
		)
		enrol := func(n int) {
			for range n {
				name := fmt.Sprint(pick(rnd, "ana", "ana", "ana", "noe", "eva"), len(customers))
				customers = append(customers, s.customer(name))
				names[customers[len(customers)-1]] = name
			}
		}
		enrol(1 + rnd.IntN(100))
		most := pick(rnd, 40, 300, 1500)
		late := rnd.IntN(3) == 0
		for len(all) < most {
			if rnd.IntN(30) == 0 && len(customers) < 200 {
				enrol(1 + rnd.IntN(10))
			}
			s.pass(time.Duration(rnd.Int64N(int64(pick(rnd, time.Second, time.Minute, 10*time.Hour)))))
			from := rnd.IntN(len(customers))
			if rnd.IntN(3) > 0 { // few buy most
				from = rnd.IntN(1 + from/10)
			}
			at := s.clock
			if late && rnd.IntN(100) == 0 {
				s.clock -= instant(rnd.Int64N(int64(s.clock - began(all, s.clock) + 1)))
			}
			sold, err := s.sell(newSale{Customer: customers[from], Total: dec("5"), Type: pick(rnd, typePurchase, typePurchase, typeReturn)})
			s.clock = at
			if err == nil {
				all = append(all, sold)
			}
		}
		slices.Reverse(all)
		for range 40 {
			f := saleFilter{saleType: pick(rnd, "", typePurchase, typeReturn), to: never}
			if rnd.IntN(3) > 0 {
				f.from, f.to = pick(rnd, all...).CreatedAt-instant(rnd.IntN(2)), pick(rnd, all...).CreatedAt+instant(rnd.IntN(2))
				if f.to < f.from && rnd.IntN(10) > 0 {
					f.from, f.to = f.to, f.from
				}
			}
			f.search = pick(rnd, "ana", "noe", "eva", "a", "e", "@", "1", "17", "nobody", names[pick(rnd, customers...)])
			p := page{1 + rnd.Uint64N(pick(rnd, uint64(1), 4, 30)), 1 + rnd.Uint64N(20)}
			ways := map[string]func(*txn, customerSet) ([]*sale, uint64, error){
				"few": func(t *txn, set customerSet) ([]*sale, uint64, error) {
					list, err := t.customersIn(set)
					if err != nil {
						return nil, 0, err
					}
					return t.salesOfFew(list, f, p)
				},
				"many":   func(t *txn, set customerSet) ([]*sale, uint64, error) { return t.salesOfMany(set, f, p) },
				"chosen": func(t *txn, _ customerSet) ([]*sale, uint64, error) { return t.findSales(f, p) },
			}
			if rnd.IntN(10) == 0 { // one customer's
				f.customer = &pick(rnd, all...).Customer
				ways = map[string]func(*txn, customerSet) ([]*sale, uint64, error){"chosen": ways["chosen"]}
			}
			want, total := []uint64{}, uint64(0)
			for _, sold := range all {
				if !f.keeps(sold) || !newNeedle(f.search).in([]string{names[sold.Customer], names[sold.Customer] + "@example.com", ""}) {
					continue
				}
				if total >= p.skip() && uint64(len(want)) < p.limit {
					want = append(want, sold.Seq)
				}
				total++
			}
			for way, find := range ways {
				got := ask(s, func(t *txn) ([]uint64, error) {
					set, _, err := t.searchAll(f.search)
					if err != nil {
						return nil, err
					}
					list, n, err := find(t, set)
					if n != total {
						err = fmt.Errorf("%s: total of %+v is %d, want %d", way, f, n, total)
					}
					seqs := []uint64{}
					for _, sold := range list {
						seqs = append(seqs, sold.Seq)
					}
					return seqs, err
				})
				same(t, fmt.Sprintf("%s: filter %+v, page %+v", way, f, p), got, want)
			}
		}
	})
}

// began is when the first sale was.
func began(all []*sale, now instant) instant {
	if len(all) == 0 {
		return now
	}
	return all[0].CreatedAt
}

// TestTotals adds up counts as they were stored, whatever they are.
func TestTotals(t *testing.T) {
	histories(t, 200, func(t *testing.T, rnd *rand.Rand) {
		const customers = 1 << 9
		counts := make(totals, 2*customers)
		full, most := rnd.IntN(100), pick[int64](rnd, 1, 255, 256, 1<<16, 1<<32-1)
		for i := range counts {
			if rnd.IntN(100) < full {
				counts[i] = uint32(rnd.Int64N(most + 1))
			}
		}
		kept := storedTotals(counts.encode())
		if !kept.whole(customers) {
			t.Error("not whole")
		}
		again := make(totals, len(counts))
		kept.addTo(again)
		same(t, "counts", again, counts)
		set := make(customerSet, rnd.IntN(customers/64+1))
		full = rnd.IntN(101)
		var want typeCount
		for i := range 64 * len(set) {
			if rnd.IntN(100) < full {
				set.add(uint64(i))
				want.purchases += uint64(counts[2*i])
				want.returns += uint64(counts[2*i+1])
			}
		}
		for i := range customers {
			if got, want := kept.at(i), (typeCount{uint64(counts[2*i]), uint64(counts[2*i+1])}); got != want {
				t.Errorf("customer %d: %+v, want %+v", i, got, want)
			}
		}
		if got := kept.sum(set); got != want {
			t.Errorf("sum %+v, want %+v", got, want)
		}
		for cut := range kept {
			if len(kept) > 0 && cut > 0 {
				kept[:cut].whole(customers) // whatever it says, it does not panic
			}
		}
	})
}
