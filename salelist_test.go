package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestSalesOfMany finds the sales of customers in the three ways there are,
// whatever the number of customers, and compares with all sales in turn.
func TestSalesOfMany(t *testing.T) {
	histories(t, 30, func(t *testing.T, rnd *rand.Rand) {
		s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`})
		var customers []id
		for i := range 6 {
			customers = append(customers, s.customer(fmt.Sprint(pick(rnd, "ana", "noe"), i)))
		}
		var all []*sale
		for range rnd.IntN(120) {
			s.pass(time.Duration(rnd.Int64N(int64(pick(rnd, time.Second, time.Minute, 10*time.Hour, 20*oneDay)))))
			sold, err := s.sell(newSale{Customer: pick(rnd, customers...), Total: dec("5"), Type: pick(rnd, typePurchase, typePurchase, typeReturn)})
			if err == nil {
				all = append(all, sold)
			}
			if rnd.IntN(20) == 0 { // as happens by itself after many more
				must(s, func(t *txn) (any, error) { return nil, t.bringTotals(0, uint64(len(all))) })
			}
		}
		slices.Reverse(all)
		for range 30 {
			f := saleFilter{saleType: pick(rnd, "", typePurchase, typeReturn), to: never}
			if len(all) > 0 && rnd.IntN(2) == 0 {
				f.from, f.to = pick(rnd, all...).CreatedAt-instant(rnd.IntN(2)), pick(rnd, all...).CreatedAt+instant(rnd.IntN(2))
			}
			needle := pick(rnd, "ana", "noe", "e", "2", "nobody")
			p := page{1 + rnd.Uint64N(4), 1 + rnd.Uint64N(20)}
			want, total := []uint64{}, uint64(0)
			for _, sold := range all {
				c := ask(s, func(t *txn) (*customer, error) { return t.customer(sold.Customer) })
				if !f.keeps(sold) || !newNeedle(needle).in(c.searchTexts()) {
					continue
				}
				if total >= p.skip() && uint64(len(want)) < p.limit {
					want = append(want, sold.Seq)
				}
				total++
			}
			ways := map[string]func(*txn, customerSet) ([]*sale, uint64, error){
				"few":  func(t *txn, set customerSet) ([]*sale, uint64, error) { return t.salesOfFew(set.numbers(), f, p) },
				"many": func(t *txn, set customerSet) ([]*sale, uint64, error) { return t.salesOfMany(set, f, p) },
				"in log": func(t *txn, set customerSet) ([]*sale, uint64, error) {
					n, _, err := t.totalOf(set, f.saleType)
					if err != nil {
						return nil, 0, err
					}
					return t.salesInLog(set, n, f, p)
				},
				"by time":  func(t *txn, set customerSet) ([]*sale, uint64, error) { return t.salesOfManyBetween(set, f, p, true) },
				"in order": func(t *txn, set customerSet) ([]*sale, uint64, error) { return t.salesOfManyBetween(set, f, p, false) },
			}
			if f.dated() {
				delete(ways, "many")
				delete(ways, "in log")
			}
			for way, find := range ways {
				got := ask(s, func(t *txn) ([]uint64, error) {
					set, _, err := t.searchAll(needle)
					if err != nil {
						return nil, err
					}
					list, n, err := find(t, set)
					if n != total {
						err = fmt.Errorf("%s: total of %q, %+v is %d, want %d", way, needle, f, n, total)
					}
					seqs := []uint64{}
					for _, sold := range list {
						seqs = append(seqs, sold.Seq)
					}
					return seqs, err
				})
				same(t, fmt.Sprintf("%s: %q, filter %+v, page %+v", way, needle, f, p), got, want)
			}
		}
	})
}

// TestTotals reads totals as they were written, however large.
func TestTotals(t *testing.T) {
	for _, most := range []uint64{0, 1, 255, 256, 1 << 16, 1<<40 - 1} {
		want := totals{7, []typeCount{{1, 0}, {}, {most, 1}, {0, most}, {}}}
		kept := storedTotals(encodeTotals(&want))
		if kept.until() != 7 {
			t.Errorf("until %d, want 7", kept.until())
		}
		for i, n := range want.counts {
			if got := kept.at(i); got != n {
				t.Errorf("with counts up to %d: %+v, want %+v", most, got, n)
			}
		}
		if got := kept.at(1000); got != (typeCount{}) {
			t.Errorf("beyond the end: %+v", got)
		}
	}
}
