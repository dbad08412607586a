package main

import (
	"container/heap"
	"encoding/binary"
	"slices"
)

// Sales of the customers that a search finds, newest first. For few customers,
// their chains of sales are followed. For many, sales are counted by the totals at
// the ends of the log's chapters and in the log between them (salelog.go); blocks
// of the log are read, newest first, until the page is full.

const (
	// fewCustomers is how many customers at most are read one by one. Beyond that,
	// counting in the log costs less.
	fewCustomers = 200
	// fewSales is the same for sales.
	fewSales = 300
)

// searchSales lists the sales of all customers that a search finds.
func (t *txn) searchSales(f saleFilter, p page) ([]*sale, uint64, error) {
	set, n, err := t.searchAll(f.search)
	if err != nil || n == 0 {
		return nil, 0, err
	}
	if set, err = t.withStubs(set); err != nil {
		return nil, 0, err
	}
	if n <= fewCustomers {
		list, err := t.customersIn(set)
		if err != nil {
			return nil, 0, err
		}
		if f.followed(list, p) {
			return t.salesOfFew(list, f, p)
		}
	}
	return t.salesOfMany(set, f, p)
}

// customersIn reads the customers of a set.
func (t *txn) customersIn(set customerSet) (list []*customer, err error) {
	for _, number := range set.numbers() {
		c, err := t.customerAt(number)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// followed reports whether the chains of customers can be followed by reading few
// sales.
func (f *saleFilter) followed(list []*customer, p page) bool {
	var sales uint64
	for _, c := range list {
		sales += c.Sales.N
	}
	if !f.readsAll() && f.saleType == "" {
		sales = min(sales, p.skip()+p.limit)
	}
	return sales <= fewSales
}

// salesOfFew follows the chains of all customers together, newest sale first.
// Without dates, and not by date, the total comes from the customers' own counts, and it reads no
// further than the page. It reads no sale up to f.after.
func (t *txn) salesOfFew(list []*customer, f saleFilter, p page) ([]*sale, uint64, error) {
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
	cut := saleCutter{page: p, byDate: f.byDate}
	for len(heads) > 0 && (f.readsAll() || cut.total < total && p.skip() < total && uint64(len(cut.list)) < p.limit) {
		s, err := t.saleAt(heads[0])
		if err != nil {
			return nil, 0, err
		}
		heads.replace(s.Link.Prev, f.after)
		if f.keeps(s) {
			cut.take(s)
		}
	}
	found, taken, err := cut.cut(t)
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

// salesOfAll lists the sales of all customers by counting in the log.
func (t *txn) salesOfAll(f saleFilter, p page) ([]*sale, uint64, error) {
	n, err := t.count()
	if err != nil {
		return nil, 0, err
	}
	set := make(customerSet, n.Customers/64+1)
	for i := range set {
		set[i] = ^uint64(0)
	}
	return t.salesOfMany(set, f, p)
}

// salesOfMany lists the sales of a set of customers by counting in the log.
func (t *txn) salesOfMany(set customerSet, f saleFilter, p page) ([]*sale, uint64, error) {
	n, err := t.count()
	if err != nil || f.to < f.from {
		return nil, 0, err
	}
	s := logSearch{txn: t, set: set, filter: f, page: p}
	if s.chapters, err = t.chaptersUntil(n.Sales, -1); err != nil {
		return nil, 0, err
	}
	if newest := s.chapters[0]; newest.end > 0 && newest.counted(&t.log, newest.blocks(&t.log)-1) > n.Sales {
		s.chapters = s.chapters[1:] // not all of its blocks are counted yet
	}
	s.sums = make([]*uint64, len(s.chapters))
	if err := s.passAll(n.Sales); err != nil {
		return nil, 0, err
	}
	list, err := t.salesAt(s.found)
	return list, s.total, err
}

// A logSearch cuts a page out of the sales of a set of customers, by the log.
type logSearch struct {
	txn    *txn
	set    customerSet
	filter saleFilter
	page
	chapters []chapter // those counted to the end, newest first
	sums     []*uint64 // the set's sales up to each chapter's end; nil until asked for

	total uint64   // matching sales passed so far
	found []uint64 // the page's sales
}

// passAll passes over the log down to the filter's first sale, newest first. A row of
// blocks whose sales are all within the dates is passed at once. Blocks that the dates
// cut are passed one by one.
func (s *logSearch) passAll(sales uint64) error {
	after := s.filter.after
	if !s.filter.dated() {
		return s.passRow(after, sales)
	}
	closed := sales / s.txn.log.block
	until := sales // the end of the row that is not passed yet
	err := s.txn.scanLog(max(after, closed*s.txn.log.block), sales, true, func(p logPart) bool {
		s.pass(p)
		until = p.after
		return true
	})
	if err != nil {
		return err
	}
	var zones []byte
	for block := closed; block*s.txn.log.block > after; {
		block--
		if zones == nil || block%zoneGroup == zoneGroup-1 {
			if zones, err = s.txn.logValue(logZones, block/zoneGroup, min(closed-block/zoneGroup*zoneGroup, zoneGroup)*zoneLength); err != nil {
				return err
			}
		}
		zone := zones[block%zoneGroup*zoneLength:]
		first, last := logMomentIn(zone), logMomentIn(zone[logMoment:])
		if s.filter.from <= first && last <= s.filter.to {
			continue
		}
		if err := s.passRow((block+1)*s.txn.log.block, until); err != nil {
			return err
		}
		if until = block * s.txn.log.block; last < s.filter.from || s.filter.to < first {
			continue
		}
		p, err := s.txn.logPart(block, true)
		if err != nil {
			return err
		}
		s.pass(p.between(after, until+s.txn.log.block))
	}
	return s.passRow(after, until)
}

func (s *logSearch) full() bool { return uint64(len(s.found)) == s.limit }

// pass passes over a part of the log, newest first: it counts the part's sales, and
// collects those of the page.
func (s *logSearch) pass(p logPart) {
	n := s.countIn(p)
	if n == 0 || s.full() || s.total+n <= s.skip() {
		s.total += n
		return
	}
	if p.sales() == 1 {
		s.total++
		s.found = append(s.found, p.after+1)
		return
	}
	middle, end := p.after+p.sales()/2, p.after+p.sales()
	s.pass(p.between(middle, end))
	s.pass(p.between(p.after, middle))
}

// countIn counts the set's sales in a part of the log. If the part has moments,
// only sales within the dates count.
func (s *logSearch) countIn(p logPart) uint64 {
	var n, returns uint64
	set, words, moments := s.set, p.words, p.moments
	if moments != nil {
		from, span := uint64(s.filter.from), uint64(s.filter.to-s.filter.from)
		for ; len(words) >= logWord && len(moments) >= logMoment; words, moments = words[logWord:], moments[logMoment:] {
			word := binary.LittleEndian.Uint32(words)
			if set.has(uint64(word>>1)) && uint64(logMomentIn(moments))-from <= span {
				n++
				returns += uint64(word & 1)
			}
		}
		return typeCount{n - returns, returns}.of(s.filter.saleType)
	}
	for ; len(words) >= logWord; words = words[logWord:] { // no branch that is hard to predict
		word := binary.LittleEndian.Uint32(words)
		if at := uint64(word >> 7); at < uint64(len(set)) {
			member := set[at] >> (word >> 1 % 64) & 1
			n += member
			returns += member & uint64(word)
		}
	}
	return typeCount{n - returns, returns}.of(s.filter.saleType)
}

// passRow passes over the sales in (after, until], which are all within the dates.
func (s *logSearch) passRow(after, until uint64) error {
	if after >= until {
		return nil
	}
	n, err := s.countRow(after, until)
	if err != nil {
		return err
	}
	end := s.total + n
	if n > 0 && s.isSparse(n, until-after) {
		err = s.follow(after, until, end)
		s.total = end
		return err
	}
	for until > after && !s.full() && s.total < end && end > s.skip() {
		next := max(after, s.chapters[s.chapterBefore(until)].end)
		before := s.total
		err := s.txn.scanLog(next, until, false, func(p logPart) bool {
			s.pass(p)
			return !s.full() && s.total < end
		})
		if err != nil {
			return err
		}
		if until = next; len(s.found) == 0 || s.total == before {
			if until, err = s.leap(after, until); err != nil {
				return err
			}
		}
	}
	s.total = end
	return nil
}

// isSparse reports whether n, the set's sales in a row, are so few that the page's
// are found faster by following their customers' chains than in the log.
func (s *logSearch) isSparse(n, row uint64) bool {
	passed := max(s.skip(), s.total) - s.total // in the row, before the page
	if s.full() || passed >= n {
		return false
	}
	wanted := min(passed+s.limit-uint64(len(s.found)), n)
	return n*s.txn.log.follow < row/n*wanted
}

// follow finds the page's sales in (after, until] by customers' chains. end is the
// total after the row.
func (s *logSearch) follow(after, until, end uint64) error {
	set, err := s.buyers(after, until)
	if err != nil {
		return err
	}
	list, err := s.txn.customersIn(set)
	if err != nil {
		return err
	}
	var heads newestFirst
	for _, c := range list {
		seq, err := c.Sales.lastUntil(until, s.txn.linkAt)
		if err != nil {
			return err
		}
		if seq > after {
			heads = append(heads, seq)
		}
	}
	heap.Init(&heads)
	for len(heads) > 0 && !s.full() && s.total < end {
		one, err := s.txn.saleAt(heads[0])
		if err != nil {
			return err
		}
		if s.filter.keeps(one) {
			if s.total++; s.total > s.skip() {
				s.found = append(s.found, one.Seq)
			}
		}
		heads.replace(one.Link.Prev, after)
	}
	return nil
}

// buyers returns those of the set that have sales in (after, until]. It compares
// their totals at the first and the last end of a chapter in this row, and reads
// the log before and after these two.
func (s *logSearch) buyers(after, until uint64) (customerSet, error) {
	buyers := make(customerSet, len(s.set))
	mark := func(p logPart) bool {
		for ; p.sales() > 0; p.words = p.words[logWord:] {
			word := binary.LittleEndian.Uint32(p.words)
			if number := uint64(word >> 1); s.set.has(number) && (loggedSale{purchase: word&1 == 0}).is(s.filter.saleType) {
				buyers.add(number)
			}
		}
		return true
	}
	last := s.chapterBefore(until + 1)
	first := s.chapterBefore(after+1) - 1
	if first < last {
		return buyers, s.txn.scanLog(after, until, false, mark)
	}
	if err := s.txn.scanLog(s.chapters[last].end, until, false, mark); err != nil {
		return nil, err
	}
	if err := s.txn.scanLog(after, s.chapters[first].end, false, mark); err != nil {
		return nil, err
	}
	return buyers, s.eachBlock(s.chapters[last], func(block uint64, set customerSet) error {
		had, err := s.txn.totals(s.chapters[first], block)
		if err != nil {
			return err
		}
		has, err := s.txn.totals(s.chapters[last], block)
		if err != nil {
			return err
		}
		for _, i := range set.numbers() {
			if has.at(int(i)).of(s.filter.saleType) > had.at(int(i)).of(s.filter.saleType) {
				buyers.add(block*s.txn.log.customers + i)
			}
		}
		return nil
	})
}

// leap passes over chapters that have no sale of the page, if one ends at until,
// and returns where the rest of the row ends.
func (s *logSearch) leap(after, until uint64) (uint64, error) {
	from := s.chapterBefore(until + 1)
	if s.chapters[from].end != until {
		return until, nil
	}
	most := max(s.skip(), s.total) // up to this total no sale of the page is passed
	last := s.chapterBefore(after + 1)
	if s.chapters[last].end < after {
		last--
	}
	start, err := s.sum(from)
	if err != nil {
		return 0, err
	}
	passed := func(i int) (n uint64, within bool, err error) {
		sum, err := s.sum(i)
		return start - sum, s.total+start-sum <= most, err
	}
	good, step := from, 1 // down to the end of good no sale of the page is passed
	for good+step <= last {
		_, within, err := passed(good + step)
		if err != nil {
			return 0, err
		}
		if !within {
			break
		}
		good, step = good+step, 2*step
	}
	for bad := min(good+step, last+1); good+1 < bad; {
		middle := (good + bad) / 2
		_, within, err := passed(middle)
		if err != nil {
			return 0, err
		}
		if within {
			good = middle
		} else {
			bad = middle
		}
	}
	n, _, err := passed(good)
	s.total += n
	return s.chapters[good].end, err
}

// chapterBefore returns the index of the newest chapter that ends before a sale.
func (s *logSearch) chapterBefore(sale uint64) int {
	i, _ := slices.BinarySearchFunc(s.chapters, sale, func(c chapter, sale uint64) int {
		if c.end >= sale {
			return -1
		}
		return 1
	})
	return i
}

// countRow counts the set's sales in (after, until], from the totals at the
// nearest ends of chapters if that reads less of the log.
func (s *logSearch) countRow(after, until uint64) (uint64, error) {
	from, to := s.nearest(after), s.nearest(until)
	if from == to || until-after <= s.distance(from, after)+s.distance(to, until) {
		return s.countLog(after, until)
	}
	before, err := s.countUntil(from, after)
	if err != nil {
		return 0, err
	}
	all, err := s.countUntil(to, until)
	return all - before, err
}

// nearest returns the index of the chapter whose end is nearest to a sale.
func (s *logSearch) nearest(sale uint64) int {
	i := s.chapterBefore(sale + 1)
	if i > 0 && s.distance(i-1, sale) < s.distance(i, sale) {
		i--
	}
	return i
}

func (s *logSearch) distance(i int, sale uint64) uint64 {
	end := s.chapters[i].end
	return max(sale, end) - min(sale, end)
}

// countUntil counts the set's sales up to sale, from the total at the end of
// chapter i.
func (s *logSearch) countUntil(i int, sale uint64) (uint64, error) {
	n, err := s.sum(i)
	if err != nil {
		return 0, err
	}
	end := s.chapters[i].end
	more, err := s.countLog(end, sale)
	if err != nil {
		return 0, err
	}
	less, err := s.countLog(sale, end)
	return n + more - less, err
}

func (s *logSearch) countLog(after, until uint64) (n uint64, err error) {
	err = s.txn.scanLog(after, until, false, func(p logPart) bool {
		p.moments = nil
		n += s.countIn(p)
		return true
	})
	return n, err
}

// sum is how many sales the set had up to the end of chapter i.
func (s *logSearch) sum(i int) (uint64, error) {
	if s.sums[i] != nil {
		return *s.sums[i], nil
	}
	var sum typeCount
	c := s.chapters[i]
	err := s.eachBlock(c, func(block uint64, set customerSet) error {
		kept, err := s.txn.totals(c, block)
		if err != nil {
			return err
		}
		n := kept.sum(set)
		sum.purchases += n.purchases
		sum.returns += n.returns
		return nil
	})
	if err != nil {
		return 0, err
	}
	n := sum.of(s.filter.saleType)
	s.sums[i] = &n
	return n, nil
}

// eachBlock calls take for each block of customers that is counted at the end of a
// chapter and holds some of the set. take is given the set's part in the block.
func (s *logSearch) eachBlock(c chapter, take func(block uint64, set customerSet) error) error {
	if c.end == 0 {
		return nil
	}
	for block := range c.blocks(&s.txn.log) {
		set := s.set.from(block * s.txn.log.customers)
		set = set[:min(s.txn.log.customers/64, uint64(len(set)))]
		if !slices.ContainsFunc(set, func(word uint64) bool { return word != 0 }) {
			continue
		}
		if err := take(block, set); err != nil {
			return err
		}
	}
	return nil
}
