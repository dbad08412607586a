package main

import "container/heap"

// Sales of the customers that a search finds, newest first. For few customers this follows their
// chains of sales. For many it scans the log of sales (sales_log.go).

const (
	// fewCustomers is how many customers at most are read one by one.
	fewCustomers = 200
	// fewSales is how many sales are read one by one however short the log is.
	fewSales = 300
	// logStep is how many sales of the log are scanned in the time that it takes to read
	// one.
	logStep = 1000
)

// search lists the sales of all customers that a search finds.
func (lists *saleListsTxn) search(f saleFilter, p page) ([]*sale, uint64, error) {
	set, n, err := lists.t.search.searchAll(f.search)
	if err != nil || n == 0 {
		return nil, 0, err
	}
	if set, err = lists.t.merges.withStubs(set); err != nil {
		return nil, 0, err
	}
	if n <= fewCustomers {
		list, err := lists.customersIn(set)
		if err != nil {
			return nil, 0, err
		}
		all, err := lists.t.count()
		if err != nil {
			return nil, 0, err
		}
		if f.followed(list, all.Sales, p) {
			return lists.salesOfFew(list, f, p)
		}
	}
	return lists.salesOfMany(set, f, p)
}

// customersIn reads the customers of a set.
func (lists *saleListsTxn) customersIn(set customerSet) (list []*customer, err error) {
	for _, number := range set.numbers() {
		c, err := lists.t.customers.at(number)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// followed reports whether to follow the chains of the customers; else the log of all sales is
// scanned.
func (f *saleFilter) followed(list []*customer, all uint64, p page) bool {
	var sales uint64
	for _, c := range list {
		sales += c.Sales.N
	}
	if !f.readsAll() && f.saleType == "" {
		sales = min(sales, p.skip()+p.limit)
	}
	return sales <= max(fewSales, all/logStep)
}

// salesOfFew follows the chains of all customers together, newest sale first. Unless f.readsAll,
// the total comes from the customers' own counts, and it stops reading at the end of the page. It
// reads no sale up to f.after.
func (lists *saleListsTxn) salesOfFew(list []*customer, f saleFilter, p page) ([]*sale, uint64, error) {
	var (
		total uint64
		heads newestFirst
	)
	for _, c := range list {
		total += c.salesCount().of(f.saleType)
		if seq := c.Sales.last(); seq > f.after {
			heads = append(heads, seq)
		}
	}
	heap.Init(&heads)
	cut := salePager{page: p, byDate: f.byDate}
	for len(heads) > 0 && (f.readsAll() || cut.total < total && p.skip() < total && uint64(len(cut.list)) < p.limit) {
		s, err := lists.t.sales.at(heads[0])
		if err != nil {
			return nil, 0, err
		}
		heads.replace(s.Link.Prev, f.after)
		if f.keeps(s) {
			cut.take(s)
		}
	}
	found, taken, err := cut.cut(lists.t)
	if f.readsAll() {
		total = taken
	}
	return found, total, err
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

// replace puts previous, the sale before it in its chain, in place of the newest
// sale. If previous <= after it only removes the newest sale.
func (h *newestFirst) replace(previous, after uint64) {
	if (*h)[0] = previous; previous <= after {
		heap.Pop(h)
	} else {
		heap.Fix(h, 0)
	}
}

// salesOfAll lists the sales of all customers by the log.
func (lists *saleListsTxn) salesOfAll(f saleFilter, p page) ([]*sale, uint64, error) {
	n, err := lists.t.count()
	if err != nil {
		return nil, 0, err
	}
	set := make(customerSet, n.Customers/64+1)
	for i := range set {
		set[i] = ^uint64(0)
	}
	return lists.salesOfMany(set, f, p)
}

// salesOfMany lists the sales of a set of customers by the log.
func (lists *saleListsTxn) salesOfMany(set customerSet, f saleFilter, p page) ([]*sale, uint64, error) {
	n, err := lists.t.count()
	if err != nil || f.to < f.from {
		return nil, 0, err
	}
	var (
		total uint64
		found []uint64 // the page's sales
	)
	err = lists.t.saleLog.scanLog(f.after, n.Sales, func(before uint64, block []byte) {
		for i := len(block)/logEntry - 1; i >= 0; i-- {
			s, seq := readLogged(block[i*logEntry:]), before+uint64(i)+1
			if !set.has(s.number) || !s.is(f.saleType) || s.at < f.from || s.at > f.to || seq <= f.after {
				continue
			}
			if total++; total > p.skip() && uint64(len(found)) < p.limit {
				found = append(found, seq)
			}
		}
	})
	if err != nil {
		return nil, 0, err
	}
	list, err := lists.salesAt(found)
	return list, total, err
}
