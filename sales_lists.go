package main

import (
	"cmp"
	"slices"
)

// Lists of sales: of all, of one customer, with one externalId, between two moments, and of the
// customers that a search finds.

// A saleFilter chooses sales. An empty field does not restrict.
type saleFilter struct {
	search     string
	saleType   string
	customer   *id
	of         []id // the customer and its stubs, whose sales are the customer's; nil before salesOf
	externalID string
	from, to   instant // both included; 0 and never mean open
	byDate     bool    // latest first by the moment of each, where findSales can

	registeredFrom instant // included; 0 means open
	after          uint64  // the last sale before registeredFrom; found by findSales
}

func (f *saleFilter) dated() bool { return f.from != 0 || f.to != never }

// readsAll reports whether a page has to read all sales of its customers: because the filter
// restricts when a sale happened or was registered, or because the page is not in the order of a
// customer's chain of sales.
func (f *saleFilter) readsAll() bool { return f.dated() || f.after > 0 || f.byDate }

func (f *saleFilter) keeps(s *sale) bool {
	return s.Seq > f.after && (f.saleType == "" || f.saleType == s.Type) &&
		(f.of == nil || slices.Contains(f.of, s.Customer)) &&
		(f.externalID == "" || f.externalID == s.ExternalID) &&
		f.from <= s.CreatedAt && s.CreatedAt <= f.to
}

// A saleListsTxn is the lists of sales in a transaction.
type saleListsTxn struct{ t *txn }

// find returns a page of the sales that a filter chooses, newest first, and how many there
// are. The newest sale is the one registered last; within a span of time, and by date, the one
// that happened last. The sales of a customer, or of more than a search finds at once, stay in the
// order of registration. The narrowest part of the filter decides what is read: the sales of one
// customer, of one externalId, of the customers that a search finds, or of a span of time; or the
// list of all sales, where each page takes one seek.
func (lists *saleListsTxn) find(f saleFilter, p page) ([]*sale, uint64, error) {
	var err error
	if f.after, err = lists.t.sales.registeredBefore(f.registeredFrom); err != nil {
		return nil, 0, err
	}
	switch {
	case f.customer != nil:
		return lists.salesOf(f, p)
	case f.externalID != "":
		return lists.salesCalled(f, p)
	case f.search != "":
		return lists.search(f, p)
	case f.dated() && f.after > 0:
		return lists.salesOfAll(f, p)
	case f.dated() || f.byDate && f.after == 0:
		return lists.salesBetween(f, p)
	}
	n, err := lists.t.count()
	if err != nil {
		return nil, 0, err
	}
	switch f.saleType {
	case typePurchase:
		return lists.saleSpan(f, p, n.Purchases, kindPurchase)
	case typeReturn:
		return lists.saleSpan(f, p, n.Returns, kindReturn)
	}
	return lists.saleSpan(f, p, n.Sales, 0)
}

func (lists *saleListsTxn) key(kind byte, number uint64) key {
	return orgKey('l', lists.t.org).byte(kind).u64(number)
}

// seqOf finds the n-th sale of one type; kind 0 means of all.
func (lists *saleListsTxn) seqOf(kind byte, number uint64) (uint64, error) {
	if kind == 0 {
		return number, nil
	}
	k := lists.key(kind, number)
	seq, ok, err := getUint(lists.t.Tx, k)
	if err == nil && !ok {
		err = unreadable(k)
	}
	return seq, err
}

// saleSpan lists a page of a list of all sales, or of the sales of one type, without the
// sales up to f.after.
func (lists *saleListsTxn) saleSpan(f saleFilter, p page, all uint64, kind byte) ([]*sale, uint64, error) {
	before := uint64(0)
	if f.after > 0 {
		var err error
		before, err = searchNumber(all, func(n uint64) (bool, error) {
			seq, err := lists.seqOf(kind, n)
			return seq > f.after, err
		})
		if err != nil {
			return nil, 0, err
		}
	}
	total := all - before
	first, last, ok := p.span(total)
	if !ok {
		return nil, total, nil
	}
	var seqs []uint64
	for n := before + first; n >= before+last; n-- {
		seqs = append(seqs, n)
	}
	if kind != 0 {
		warm(lists.t.Tx, seqs, func(n uint64) key { return lists.key(kind, n) })
	}
	for i, n := range seqs {
		var err error
		if seqs[i], err = lists.seqOf(kind, n); err != nil {
			return nil, 0, err
		}
	}
	list, err := lists.salesAt(seqs)
	return list, total, err
}

// A salePager collects a page of sales. It takes them one by one, the last registered first.
type salePager struct {
	page
	byDate bool
	list   []*sale
	dated  []datedSale // all of them, if byDate, or if they did not come in order
	total  uint64
}

// A datedSale is a sale's number, and when it happened.
type datedSale struct {
	seq uint64
	at  instant
}

func (c *salePager) take(s *sale) {
	switch {
	case c.byDate:
		c.dated = append(c.dated, datedSale{s.Seq, s.CreatedAt})
	case c.total >= c.skip() && uint64(len(c.list)) < c.limit:
		c.list = append(c.list, s)
	}
	c.total++
}

// cut returns the page, and how many sales were taken.
func (c *salePager) cut(t *txn) ([]*sale, uint64, error) {
	if c.dated == nil {
		return c.list, c.total, nil
	}
	if c.byDate {
		slices.SortStableFunc(c.dated, func(a, b datedSale) int { return cmp.Compare(b.at, a.at) })
	}
	var seqs []uint64
	for i := c.skip(); i < min(c.skip()+c.limit, c.total); i++ {
		seqs = append(seqs, c.dated[i].seq)
	}
	list, err := t.saleLists.salesAt(seqs)
	return list, c.total, err
}

func (lists *saleListsTxn) salesOf(f saleFilter, p page) ([]*sale, uint64, error) {
	c, err := lists.t.customers.get(*f.customer)
	if err != nil {
		return nil, 0, err
	}
	if f.search != "" && !lists.t.search.needle(f.search).in(c.searchTexts()) {
		return nil, 0, nil
	}
	if c.MergedInto != (id{}) { // its sales are the survivor's
		return nil, 0, nil
	}
	family, err := lists.t.merges.family(c)
	if err != nil {
		return nil, 0, err
	}
	f.search, f.of = "", make([]id, len(family))
	for i, member := range family {
		f.of[i] = member.ID
	}
	all, err := lists.t.count()
	if err != nil {
		return nil, 0, err
	}
	switch {
	case f.externalID != "":
		return lists.salesCalled(f, p)
	case len(family) == 1 && f.saleType == "" && !f.dated():
		return lists.chainSpan(c, f.after, p)
	case !f.followed(family, all.Sales, p):
		var set customerSet // takes memory up to the largest number: only where it is read
		for _, member := range family {
			set.add(member.Number)
		}
		return lists.salesOfMany(set, f, p)
	}
	return lists.salesOfFew(family, f, p)
}

// chainSpan lists a page of the customer's sales with a Seq above after, along the customer's chain.
func (lists *saleListsTxn) chainSpan(c *customer, after uint64, p page) ([]*sale, uint64, error) {
	total := c.Sales.N
	if after > 0 {
		seq, err := c.Sales.lastUntil(after, lists.linkAt)
		if err != nil {
			return nil, 0, err
		}
		if seq > 0 {
			l, err := lists.linkAt(seq)
			if err != nil {
				return nil, 0, err
			}
			total -= l.N
		}
	}
	first, last, ok := p.span(total)
	if !ok {
		return nil, total, nil
	}
	seq, err := c.Sales.seek(c.Sales.N-total+first, lists.linkAt)
	if err != nil {
		return nil, 0, err
	}
	var list []*sale
	err = lists.chained([]uint64{seq}, func(n, _ uint64) bool { return n >= c.Sales.N-total+last }, func(s *sale) { list = append(list, s) })
	if err == nil && uint64(len(list)) != first-last+1 {
		err = unreadable(lists.t.sales.key(seq)) // its chain is broken
	}
	slices.SortFunc(list, func(a, b *sale) int { return cmp.Compare(b.Seq, a.Seq) })
	return list, total, err
}

// chainedAtOnce is how many sales of chains are in memory at once.
const chainedAtOnce = 256

// chained calls take with the sales at seqs and those before them in their chains, in any order: as
// long as wanted holds for the number that one has in its chain, and for where it is. A sale tells
// where two earlier ones are, so that a few reads of many at once are enough.
func (lists *saleListsTxn) chained(seqs []uint64, wanted func(n, seq uint64) bool, take func(*sale)) error {
	told := map[uint64]bool{}
	for _, seq := range seqs {
		told[seq] = true
	}
	for len(seqs) > 0 {
		var earlier []uint64
		for some := range slices.Chunk(seqs, chainedAtOnce) {
			found, err := lists.salesAt(some)
			if err != nil {
				return err
			}
			for _, s := range found {
				take(s)
				l := s.Link
				for _, before := range []struct{ n, seq uint64 }{{l.N - 1, l.Prev}, {l.N & (l.N - 1), l.Jump}} {
					if before.seq > 0 && !told[before.seq] && wanted(before.n, before.seq) {
						told[before.seq] = true
						earlier = append(earlier, before.seq)
					}
				}
			}
		}
		seqs = earlier
	}
	return nil
}

func (lists *saleListsTxn) linkAt(seq uint64) (link, error) {
	s, err := lists.t.sales.at(seq)
	if err != nil {
		return link{}, err
	}
	return s.Link, nil
}

func (lists *saleListsTxn) salesCalled(f saleFilter, p page) ([]*sale, uint64, error) {
	cut, n := salePager{page: p, byDate: f.byDate}, lists.t.search.needle(f.search)
	prefix := lists.t.sales.externalKey(f.externalID)
	for e, err := range lists.t.Scan(slices.Clone(prefix).u64(f.after+1), prefix.after(), true) {
		if err != nil {
			return nil, 0, err
		}
		s, err := lists.t.sales.at(uintIn(e.Key[len(prefix):]))
		if err != nil {
			return nil, 0, err
		}
		if !f.keeps(s) {
			continue
		}
		if f.search != "" {
			c, err := lists.t.merges.owner(s.Customer)
			if err != nil {
				return nil, 0, err
			}
			if !n.in(c.searchTexts()) {
				continue
			}
		}
		cut.take(s)
	}
	return cut.cut(lists.t)
}

func (lists *saleListsTxn) salesAt(seqs []uint64) ([]*sale, error) {
	warm(lists.t.Tx, seqs, lists.t.sales.key)
	list := make([]*sale, len(seqs))
	for i, seq := range seqs {
		var err error
		if list[i], err = lists.t.sales.at(seq); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// salesBetween lists the sales of a span of time, latest first. It counts whole
// slots of time where it can, and goes sale by sale only through the shortest slots
// that hold the page or an end of the span.
func (lists *saleListsTxn) salesBetween(f saleFilter, p page) ([]*sale, uint64, error) {
	s := slotPager{txn: lists.t, saleType: f.saleType, page: p}
	if err := s.take(len(slotLevels)-1, f.from, f.to); err != nil {
		return nil, 0, err
	}
	list, err := lists.salesAt(s.found)
	return list, s.total, err
}

// A slotPager collects a page of the sales of a span of time.
type slotPager struct {
	txn *txn
	page
	saleType string
	found    []uint64
	total    uint64
}

// take goes through the sales from one moment to another, both included, latest
// first. It counts slots of a level whole, or goes through the level below.
func (c *slotPager) take(level int, from, to instant) error {
	if level < 0 {
		return c.txn.saleLog.scanSpan(from, to, func(seq uint64, s loggedSale) {
			if !s.is(c.saleType) {
				return
			}
			if c.total++; c.total > c.skip() && uint64(len(c.found)) < c.limit {
				c.found = append(c.found, seq)
			}
		})
	}
	shift := slotLevels[level]
	for e, err := range c.txn.Scan(c.txn.saleLog.slotKey(level, from), c.txn.saleLog.slotKey(level, to).after(), true) {
		if err != nil {
			return err
		}
		n, err := decodeEntry[typeCount](e)
		if err != nil {
			return err
		}
		begin := instant(uintIn(e.Key[6:])^1<<63) << shift
		end := begin + 1<<shift - 1
		count := n.of(c.saleType)
		switch {
		case count == 0:
		case from <= begin && end <= to && (c.total+count <= c.skip() || uint64(len(c.found)) == c.limit):
			c.total += count
		default:
			if err := c.take(level-1, max(from, begin), min(to, end)); err != nil {
				return err
			}
		}
	}
	return nil
}

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

func (lists *saleListsTxn) customersIn(set customerSet) ([]*customer, error) {
	ids, err := lists.t.customers.idsAt(slices.Collect(set.backward()))
	if err != nil {
		return nil, err
	}
	warm(lists.t.Tx, ids, func(u id) key { return lists.t.scratchKey(u, partCustomer) })
	list := make([]*customer, len(ids))
	for i, u := range ids {
		if list[i], err = lists.t.customers.listed(u); err != nil {
			return nil, err
		}
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
	if f.readsAll() {
		return lists.allOfFew(list, f, p)
	}
	var total uint64
	var heads []uint64 // the next sale of each, the newest last
	for _, c := range list {
		total += typeCount{c.PurchasesTotal, c.Sales.N - c.PurchasesTotal}.of(f.saleType)
		if seq := c.Sales.last(); seq > 0 {
			heads = append(heads, seq)
		}
	}
	slices.Sort(heads)
	cut, warmed := salePager{page: p}, map[uint64]bool{}
	for len(heads) > 0 && cut.total < total && p.skip() < total && uint64(len(cut.list)) < p.limit {
		newest := len(heads) - 1
		if !warmed[heads[newest]] {
			var some []uint64
			for _, seq := range heads {
				if !warmed[seq] {
					some, warmed[seq] = append(some, seq), true
				}
			}
			warm(lists.t.Tx, some, lists.t.sales.key)
		}
		s, err := lists.t.sales.at(heads[newest])
		if err != nil {
			return nil, 0, err
		}
		if heads = heads[:newest]; s.Link.Prev > 0 {
			place, _ := slices.BinarySearch(heads, s.Link.Prev)
			heads = slices.Insert(heads, place, s.Link.Prev)
		}
		if f.keeps(s) {
			cut.take(s)
		}
	}
	return cut.list, total, nil
}

// allOfFew is salesOfFew for a filter that reads all sales.
func (lists *saleListsTxn) allOfFew(list []*customer, f saleFilter, p page) ([]*sale, uint64, error) {
	var known []uint64
	for _, c := range list {
		for _, seq := range c.Sales.Path {
			if seq > f.after {
				known = append(known, seq)
			}
		}
	}
	cut := salePager{page: p, byDate: f.byDate}
	err := lists.chained(known, func(_, seq uint64) bool { return seq > f.after }, func(s *sale) {
		if f.keeps(s) {
			cut.dated = append(cut.dated, datedSale{s.Seq, s.CreatedAt})
		}
	})
	if err != nil {
		return nil, 0, err
	}
	slices.SortFunc(cut.dated, func(a, b datedSale) int { return cmp.Compare(b.seq, a.seq) })
	cut.total = uint64(len(cut.dated))
	return cut.cut(lists.t)
}

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
