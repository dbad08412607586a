package main

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A soldShop is a shop with many sales, which a test finds in several ways.
type soldShop struct {
	shop      *shop
	rnd       *rand.Rand
	customers []id
	names     map[id]string
	into      map[id]id // who was merged into whom
	all       []*sale   // newest first once fill has returned
}

// TestSalesOfMany finds sales by a search for customers in each way there is, and
// compares with the filter applied to every sale. Some customers are enrolled late, some
// are merged, and some sales are dated long ago.
func TestSalesOfMany(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	histories(t, 20, func(t *testing.T, rnd *rand.Rand) {
		h := &soldShop{shop: newShop(t, setup{program: `"rules":[` + onePer1 + `]`}), rnd: rnd, names: map[id]string{}, into: map[id]id{}}
		h.fill()
		for range 40 {
			h.find(h.filter(), page{1 + rnd.Uint64N(pick(rnd, uint64(1), 4, 30)), 1 + rnd.Uint64N(20)})
		}
	})
}

func (h *soldShop) enrol(n int) {
	for range n {
		name := fmt.Sprint(pick(h.rnd, "ana", "ana", "ana", "noe", "eva"), len(h.names))
		cust := h.shop.customer(name)
		h.customers, h.names[cust] = append(h.customers, cust), name
	}
}

// merge merges a customer into another one.
func (h *soldShop) merge() {
	h.rnd.Shuffle(len(h.customers), func(i, j int) { h.customers[i], h.customers[j] = h.customers[j], h.customers[i] })
	gone := len(h.customers) - 1
	h.shop.merged(h.customers[0], h.customers[gone])
	h.into[h.customers[gone]] = h.customers[0]
	h.customers = h.customers[:gone]
}

// owner follows merges.
func (h *soldShop) owner(cust id) id {
	for into, gone := h.into[cust]; gone; into, gone = h.into[cust] {
		cust = into
	}
	return cust
}

// fill enrols customers and sells to them until there are many sales.
func (h *soldShop) fill() {
	rnd := h.rnd
	h.enrol(1 + rnd.IntN(100))
	most := pick(rnd, 40, 300, 800)
	late, merges := rnd.IntN(3) == 0, rnd.IntN(2) == 0
	for len(h.all) < most {
		if rnd.IntN(30) == 0 && len(h.customers) < 200 {
			h.enrol(1 + rnd.IntN(10))
		}
		if merges && rnd.IntN(20) == 0 && len(h.customers) > 1 {
			h.merge()
		}
		h.shop.pass(time.Duration(rnd.Int64N(int64(pick(rnd, time.Second, time.Minute, 10*time.Hour)))))
		from := rnd.IntN(len(h.customers))
		if rnd.IntN(3) > 0 { // few buy most
			from = rnd.IntN(1 + from/10)
		}
		at := h.shop.clock
		in := newSale{Customer: h.customers[from], Total: dec("5"), Type: pick(rnd, typePurchase, typePurchase, typeReturn)}
		if late && rnd.IntN(50) == 0 {
			earlier := at - instant(rnd.Int64N(int64(at-began(h.all, at)+1)))
			if rnd.IntN(2) == 0 {
				h.shop.clock = earlier // as an import does
			} else {
				in.OccurredAt = earlier
			}
		}
		sold, err := h.shop.sell(in)
		h.shop.clock = at
		if err == nil {
			h.all = append(h.all, sold)
		}
	}
	slices.Reverse(h.all)
}

func (h *soldShop) filter() saleFilter {
	rnd := h.rnd
	f := saleFilter{saleType: pick(rnd, "", typePurchase, typeReturn), to: never}
	if rnd.IntN(3) > 0 {
		f.from, f.to = pick(rnd, h.all...).CreatedAt-instant(rnd.IntN(2)), pick(rnd, h.all...).CreatedAt+instant(rnd.IntN(2))
		if f.to < f.from && rnd.IntN(10) > 0 {
			f.from, f.to = f.to, f.from
		}
	}
	f.byDate = rnd.IntN(2) == 0
	f.search = pick(rnd, "ana", "noe", "eva", "a", "e", "@", "1", "17", "nobody", h.names[pick(rnd, h.customers...)])
	if rnd.IntN(2) == 0 {
		f.registeredFrom = pick(rnd, h.all...).RegisteredAt + instant(rnd.IntN(2))
		f.after = uint64(len(slices.DeleteFunc(slices.Clone(h.all), func(s *sale) bool { return s.RegisteredAt >= f.registeredFrom })))
	}
	return f
}

// find compares the sales that each way finds with those that the filter keeps of all.
func (h *soldShop) find(f saleFilter, p page) {
	type way func(*txn, customerSet) ([]*sale, uint64, error)
	ways := map[string]way{
		"few": func(t *txn, set customerSet) ([]*sale, uint64, error) {
			list, err := t.saleLists.customersIn(set)
			if err != nil {
				return nil, 0, err
			}
			return t.saleLists.salesOfFew(list, f, p)
		},
		"many":   func(t *txn, set customerSet) ([]*sale, uint64, error) { return t.saleLists.salesOfMany(set, f, p) },
		"chosen": func(t *txn, _ customerSet) ([]*sale, uint64, error) { return t.saleLists.find(f, p) },
	}
	if h.rnd.IntN(5) == 0 { // of all customers
		f.search, ways = "", map[string]way{"chosen": ways["chosen"]}
	}
	if h.rnd.IntN(10) == 0 { // of one customer
		f.customer, f.byDate = &pick(h.rnd, h.all...).Customer, false
		ways = map[string]way{"chosen": ways["chosen"]}
	}
	for name, find := range ways {
		byDate := h.byDate(name, f, p)
		want, total := h.kept(f, p, byDate)
		got := ask(h.shop, func(t *txn) ([]uint64, error) {
			set, _, err := t.search.searchAll(f.search)
			if err == nil {
				set, err = t.merges.withStubs(set)
			}
			if err != nil {
				return nil, err
			}
			list, n, err := find(t, set)
			if n != total {
				err = fmt.Errorf("%s: total of %+v is %d, want %d", name, f, n, total)
			}
			seqs := []uint64{}
			for _, sold := range list {
				seqs = append(seqs, sold.Seq)
			}
			return seqs, err
		})
		same(h.shop, fmt.Sprintf("%s: filter %+v, page %+v", name, f, p), got, want)
	}
}

// byDate reports whether a way finds sales in the order in which they happened.
func (h *soldShop) byDate(way string, f saleFilter, p page) bool {
	switch {
	case way == "many":
		return false
	case way == "few":
		return f.byDate
	case f.search == "" && f.customer == nil:
		return f.after == 0 && (f.dated() || f.byDate)
	}
	return f.byDate && ask(h.shop, func(t *txn) (bool, error) {
		set, n, err := t.search.searchAll(f.search)
		if err != nil || n == 0 || n > fewCustomers {
			return false, err
		}
		if set, err = t.merges.withStubs(set); err != nil {
			return false, err
		}
		list, err := t.saleLists.customersIn(set)
		return f.followed(list, uint64(len(h.all)), p), err
	})
}

// kept applies the filter to every sale. It returns the page and the total.
func (h *soldShop) kept(f saleFilter, p page, byDate bool) (want []uint64, total uint64) {
	want = []uint64{}
	all := h.all
	if byDate {
		all = slices.Clone(all)
		slices.SortStableFunc(all, func(a, b *sale) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	}
	for _, sold := range all {
		owner := h.owner(sold.Customer)
		name := h.names[owner]
		if !f.keeps(sold) || f.customer != nil && *f.customer != owner || f.search != "" && !newNeedle(f.search, "MX").in([]string{name, name + "@example.com", ""}) {
			continue
		}
		if total >= p.skip() && uint64(len(want)) < p.limit {
			want = append(want, sold.Seq)
		}
		total++
	}
	return want, total
}

// began returns the moment of the first sale, or now if there is none.
func began(all []*sale, now instant) instant {
	if len(all) == 0 {
		return now
	}
	return all[0].CreatedAt
}

// TestLogDamaged: a search over a log that lacks a block, or has one of another length, fails.
func TestLogDamaged(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	for range 3*logBlock - 5 {
		s.buy(ana, "1")
	}
	all := s.entries()
	for block := range uint64(3) {
		at, there := all.find(bareTestTxn(nil, s.org).saleLog.logKey(block))
		if !there {
			t.Fatalf("no block %d", block)
		}
		short := slices.Clone(all)
		short[at].Value = short[at].Value[:len(short[at].Value)-logEntry]
		for reason, with := range map[string]memTx{"no": slices.Delete(slices.Clone(all), at, at+1), "a short": short} {
			_, err := runTxn(s.engine, with, s.org, s.clock, seed{}, func(t *txn) (uint64, error) {
				_, n, err := t.saleLists.salesOfAll(saleFilter{to: never}, page{1, 10})
				return n, err
			})
			if !errors.Is(err, errRecord) {
				t.Errorf("%s block %d: %v", reason, block, err)
			}
		}
	}
}

// TestFindSales compares pages of filtered sales with the same filter applied to every
// sale.
func TestFindSales(t *testing.T) {
	t.Parallel()
	histories(t, 30, func(t *testing.T, rnd *rand.Rand) {
		s := newShop(t, setup{at: "2026-04-03T20:00:00Z", zone: "America/Santiago", program: `"rules":[` + onePer1 + `]`})
		customers := []id{s.customer("ana"), s.customer("anabel"), s.customer("noé")}
		var all []*sale
		for range rnd.IntN(60) {
			s.pass(time.Duration(rnd.Int64N(int64(pick(rnd, time.Second, 10*time.Hour, 3*oneDay)))))
			in := newSale{Customer: pick(rnd, customers...), Total: dec("5"), ExternalID: pick(rnd, "", "T-1", "T-2"), Type: pick(rnd, typePurchase, typeReturn)}
			if sold, err := s.sell(in); err == nil {
				all = append(all, sold)
			}
		}
		slices.Reverse(all)
		moment := func() instant {
			at := s.clock.add(-time.Duration(rnd.Int64N(int64(30 * oneDay))))
			if len(all) > 0 && rnd.IntN(2) == 0 {
				at = pick(rnd, all...).CreatedAt
			}
			zone, _ := time.LoadLocation("America/Santiago")
			return pick(rnd, at, at-1, at+1, dayOf(at, zone).start(zone), dayOf(at, zone).start(zone)-1)
		}
		for i := range 40 {
			if i == 20 {
				s.merged(customers[0], customers[1])
			}
			f := randomFilter(rnd, customers, moment)
			p := page{1 + rnd.Uint64N(5), 1 + rnd.Uint64N(20)}
			want := []id{}
			total := uint64(0)
			for _, sold := range all {
				c := ask(s, func(t *txn) (*customer, error) { return t.merges.owner(sold.Customer) })
				if !f.keeps(sold) || f.customer != nil && *f.customer != c.ID || sold.RegisteredAt < f.registeredFrom || f.search != "" && !newNeedle(f.search, "MX").in(c.searchTexts()) {
					continue
				}
				if total >= p.skip() && uint64(len(want)) < p.limit {
					want = append(want, sold.ID)
				}
				total++
			}
			var gotTotal uint64
			got := ask(s, func(t *txn) ([]id, error) {
				list, n, err := t.saleLists.find(f, p)
				gotTotal = n
				ids := []id{}
				for _, sold := range list {
					ids = append(ids, sold.ID)
				}
				return ids, err
			})
			same(t, fmt.Sprintf("filter %+v, page %+v", f, p), got, want)
			same(t, fmt.Sprintf("total of filter %+v", f), gotTotal, total)
		}
	})
}

// randomFilter returns a filter by some fields at random, or by none.
func randomFilter(rnd *rand.Rand, customers []id, moment func() instant) saleFilter {
	f := saleFilter{
		search: pick(rnd, "", "", "", "ana", "NOE", "example", "nobody"), saleType: pick(rnd, "", typePurchase, typeReturn),
		externalID: pick(rnd, "", "", "", "T-1", "T-3"), to: never,
	}
	if rnd.IntN(4) == 0 {
		f.customer = ptr(pick(rnd, customers...))
	}
	if rnd.IntN(3) == 0 {
		f.from = moment()
	}
	if rnd.IntN(3) == 0 {
		f.to = moment()
	}
	if rnd.IntN(3) == 0 {
		f.registeredFrom = moment()
	}
	return f
}
