package main

import (
	"container/heap"
	"iter"
	"maps"
	"slices"
)

// A saleFilter chooses sales; what is zero does not choose.
type saleFilter struct {
	search     string
	saleType   string
	customer   *id
	externalID string
	from, to   instant // both within; 0 and never are open
}

func (f *saleFilter) dated() bool { return f.from != 0 || f.to != never }

func (f *saleFilter) keeps(s *sale) bool {
	return (f.saleType == "" || f.saleType == s.Type) &&
		(f.customer == nil || *f.customer == s.Customer) &&
		(f.externalID == "" || f.externalID == s.ExternalID) &&
		f.from <= s.CreatedAt && s.CreatedAt <= f.to
}

// findSales returns a page of the sales that a filter chooses, newest first,
// and how many there are. It reads what the narrowest part of the filter
// leads to: one customer's sales, those of one externalId, those of the
// customers a search finds, those of a span of time, or the whole list, in
// which any page is one seek.
func (t *txn) findSales(f saleFilter, p page) ([]*sale, uint64, error) {
	switch {
	case f.customer != nil:
		return t.salesOf(f, p)
	case f.externalID != "":
		return t.salesCalled(f, p)
	case f.search != "":
		return t.searchSales(f, p)
	case f.dated():
		return t.salesBetween(f, p)
	}
	n, err := t.count()
	if err != nil {
		return nil, 0, err
	}
	switch f.saleType {
	case typePurchase:
		return t.saleSpan(p, n.Purchases, t.saleList(kindPurchase))
	case typeReturn:
		return t.saleSpan(p, n.Returns, t.saleList(kindReturn))
	}
	return t.saleSpan(p, n.Sales, func(number uint64) (uint64, error) { return number, nil })
}

// saleList finds the sale with a number in the list of one type.
func (t *txn) saleList(kind byte) func(uint64) (uint64, error) {
	return func(number uint64) (uint64, error) {
		seq, ok, err := getUint(t.Tx, orgKey('l', t.org).byte(kind).u64(number))
		if err == nil && !ok {
			err = errRecord
		}
		return seq, err
	}
}

func (t *txn) saleSpan(p page, total uint64, seqOf func(uint64) (uint64, error)) ([]*sale, uint64, error) {
	first, last, ok := p.span(total)
	if !ok {
		return nil, total, nil
	}
	var list []*sale
	for n := first; n >= last; n-- {
		seq, err := seqOf(n)
		if err != nil {
			return nil, 0, err
		}
		s, err := t.saleAt(seq)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, s)
	}
	return list, total, nil
}

// A saleCutter cuts a page out of sales that come one after the other.
type saleCutter struct {
	page
	list  []*sale
	total uint64
}

func (c *saleCutter) take(s *sale) {
	if c.total >= c.skip() && uint64(len(c.list)) < c.limit {
		c.list = append(c.list, s)
	}
	c.total++
}

// salesOf follows one customer's chain.
func (t *txn) salesOf(f saleFilter, p page) ([]*sale, uint64, error) {
	c, err := t.customer(*f.customer)
	if err != nil {
		return nil, 0, err
	}
	if f.search != "" && !newNeedle(f.search).in(c.searchTexts()) {
		return nil, 0, nil
	}
	if f.saleType == "" && f.externalID == "" && !f.dated() {
		return t.chainSpan(c, p)
	}
	cut := saleCutter{page: p}
	for seq := c.Sales.last(); seq != 0; {
		s, err := t.saleAt(seq)
		if err != nil {
			return nil, 0, err
		}
		if f.keeps(s) {
			cut.take(s)
		}
		seq = s.Link.Prev
	}
	return cut.list, cut.total, nil
}

// chainSpan is a page of all of a customer's sales.
func (t *txn) chainSpan(c *customer, p page) ([]*sale, uint64, error) {
	first, last, ok := p.span(c.Sales.N)
	if !ok {
		return nil, c.Sales.N, nil
	}
	seq, err := c.Sales.seek(first, func(seq uint64) (link, error) {
		s, err := t.saleAt(seq)
		if err != nil {
			return link{}, err
		}
		return s.Link, nil
	})
	if err != nil {
		return nil, 0, err
	}
	var list []*sale
	for range first - last + 1 {
		s, err := t.saleAt(seq)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, s)
		seq = s.Link.Prev
	}
	return list, c.Sales.N, nil
}

// salesCalled reads the sales with one externalId.
func (t *txn) salesCalled(f saleFilter, p page) ([]*sale, uint64, error) {
	cut := saleCutter{page: p}
	prefix := t.externalKey(f.externalID)
	for e, err := range scan(t.Tx, prefix, true) {
		if err != nil {
			return nil, 0, err
		}
		s, err := t.saleAt(uintIn(e.Key[len(prefix):]))
		if err != nil {
			return nil, 0, err
		}
		if !f.keeps(s) {
			continue
		}
		if f.search != "" {
			c, err := t.customer(s.Customer)
			if err != nil {
				return nil, 0, err
			}
			if !newNeedle(f.search).in(c.searchTexts()) {
				continue
			}
		}
		cut.take(s)
	}
	return cut.list, cut.total, nil
}

// searchSales follows the chains of all customers that a search finds at
// once, newest sale first. Without dates, the customers' own counts are the
// total, and it reads no further than the page.
func (t *txn) searchSales(f saleFilter, p page) ([]*sale, uint64, error) {
	numbers, err := t.search(f.search)
	if err != nil {
		return nil, 0, err
	}
	var (
		total uint64
		heads newestFirst
	)
	for _, number := range numbers {
		c, err := t.customerAt(uint64(number))
		if err != nil {
			return nil, 0, err
		}
		switch f.saleType {
		case typePurchase:
			total += c.PurchasesTotal
		case typeReturn:
			total += c.Sales.N - c.PurchasesTotal
		default:
			total += c.Sales.N
		}
		if seq := c.Sales.last(); seq != 0 {
			heads = append(heads, seq)
		}
	}
	heap.Init(&heads)
	cut := saleCutter{page: p}
	for len(heads) > 0 && (f.dated() || p.skip() < total && uint64(len(cut.list)) < p.limit) {
		s, err := t.saleAt(heads[0])
		if err != nil {
			return nil, 0, err
		}
		if heads[0] = s.Link.Prev; heads[0] == 0 {
			heap.Pop(&heads)
		} else {
			heap.Fix(&heads, 0)
		}
		if f.keeps(s) {
			cut.take(s)
		}
	}
	if f.dated() {
		total = cut.total
	}
	return cut.list, total, nil
}

// salesBetween reads a span of time, latest first. The tallies of whole days
// say how many sales to pass over; only the days that the page lies in and
// those that the span cuts are read.
func (t *txn) salesBetween(f saleFilter, p page) ([]*sale, uint64, error) {
	days, err := t.daysOfSales(f)
	if err != nil {
		return nil, 0, err
	}
	var (
		list  []*sale
		total uint64
	)
	for _, d := range slices.Backward(slices.Sorted(maps.Keys(days))) {
		count := days[d]
		from, to := max(f.from, d.start(t.cfg.zone)), min(f.to, d.end(t.cfg.zone))
		if from != d.start(t.cfg.zone) || to != d.end(t.cfg.zone) {
			count = 0
			for _, err := range t.salesAt(from, to, f.saleType) {
				if err != nil {
					return nil, 0, err
				}
				count++
			}
		}
		before := total
		total += count
		if total <= p.skip() || uint64(len(list)) == p.limit {
			continue
		}
		for seq, err := range t.salesAt(from, to, f.saleType) {
			if err != nil {
				return nil, 0, err
			}
			if before++; before <= p.skip() {
				continue
			}
			if uint64(len(list)) == p.limit {
				break
			}
			s, err := t.saleAt(seq)
			if err != nil {
				return nil, 0, err
			}
			list = append(list, s)
		}
	}
	return list, total, nil
}

// daysOfSales is how many sales there were on each day that a span touches.
func (t *txn) daysOfSales(f saleFilter) (map[day]uint64, error) {
	days := map[day]uint64{}
	for _, p := range t.cfg.Programs {
		prefix := orgKey('y', t.org).u32(p.Number)
		lo, hi := slices.Clone(prefix).day(dayOf(f.from, t.cfg.zone)), prefix.after()
		if f.to != never {
			hi = slices.Clone(prefix).day(dayOf(f.to, t.cfg.zone) + 1)
		}
		for e, err := range t.Scan(lo, hi, false) {
			if err != nil {
				return nil, err
			}
			s, err := decodeRecord[tally](e.Value)
			if err != nil {
				return nil, err
			}
			d := dayIn(e.Key[len(prefix):])
			if f.saleType != typeReturn {
				days[d] += s.Purchases
			}
			if f.saleType != typePurchase {
				days[d] += s.Returns
			}
		}
	}
	return days, nil
}

// salesAt yields where the sales of a span are, latest first.
func (t *txn) salesAt(from, to instant, saleType string) iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		prefix := orgKey('h', t.org)
		for e, err := range t.Scan(slices.Clone(prefix).instant(from), slices.Clone(prefix).instant(to+1), true) {
			if err != nil {
				yield(0, err)
				return
			}
			isPurchase := e.Value[0] == kindPurchase
			if saleType == typePurchase && !isPurchase || saleType == typeReturn && isPurchase {
				continue
			}
			if !yield(uintIn(e.Key[len(prefix)+8:]), nil) {
				return
			}
		}
	}
}

// newestFirst is a heap of sales by sequence, the highest on top.
type newestFirst []uint64

func (h newestFirst) Len() int           { return len(h) }
func (h newestFirst) Less(i, j int) bool { return h[i] > h[j] }
func (h newestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *newestFirst) Push(x any)        { *h = append(*h, x.(uint64)) }
func (h *newestFirst) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
