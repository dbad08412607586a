package main

// A saleFilter chooses sales. An empty field does not restrict.
type saleFilter struct {
	search     string
	saleType   string
	customer   *id
	externalID string
	from, to   instant // both included; 0 and never mean open
}

func (f *saleFilter) dated() bool { return f.from != 0 || f.to != never }

func (f *saleFilter) keeps(s *sale) bool {
	return (f.saleType == "" || f.saleType == s.Type) &&
		(f.customer == nil || *f.customer == s.Customer) &&
		(f.externalID == "" || f.externalID == s.ExternalID) &&
		f.from <= s.CreatedAt && s.CreatedAt <= f.to
}

// findSales returns a page of the sales that a filter chooses, newest first,
// and how many there are. It goes by the narrowest part of the filter: one
// customer's sales, those of one externalId, those of the customers a search
// finds, those of a span of time, or the whole list, in which any page is one
// seek.
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

// saleList returns a function that finds the n-th sale of one type.
func (t *txn) saleList(kind byte) func(uint64) (uint64, error) {
	return func(number uint64) (uint64, error) {
		k := orgKey('l', t.org).byte(kind).u64(number)
		seq, ok, err := getUint(t.Tx, k)
		if err == nil && !ok {
			err = unreadable(k)
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

// A saleCutter cuts a page out of sales that it takes one by one.
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

// salesOf lists one customer's sales.
func (t *txn) salesOf(f saleFilter, p page) ([]*sale, uint64, error) {
	c, err := t.customer(*f.customer)
	if err != nil {
		return nil, 0, err
	}
	if f.search != "" && !newNeedle(f.search).in(c.searchTexts()) {
		return nil, 0, nil
	}
	f.search = ""
	switch {
	case f.externalID != "":
		return t.salesCalled(f, p)
	case f.saleType == "" && !f.dated():
		return t.chainSpan(c, p)
	case !f.followed([]*customer{c}, p):
		set := make(customerSet, c.Number/64+1)
		set.add(c.Number)
		return t.salesOfMany(set, f, p)
	}
	return t.salesOfFew([]*customer{c}, f, p)
}

// chainSpan lists a page of all of a customer's sales.
func (t *txn) chainSpan(c *customer, p page) ([]*sale, uint64, error) {
	first, last, ok := p.span(c.Sales.N)
	if !ok {
		return nil, c.Sales.N, nil
	}
	seq, err := c.Sales.seek(first, t.linkAt)
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

// linkAt returns the link of a sale in its customer's chain.
func (t *txn) linkAt(seq uint64) (link, error) {
	s, err := t.saleAt(seq)
	if err != nil {
		return link{}, err
	}
	return s.Link, nil
}

// salesCalled lists the sales with one externalId.
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

func (t *txn) salesAt(seqs []uint64) ([]*sale, error) {
	list := make([]*sale, len(seqs))
	for i, seq := range seqs {
		var err error
		if list[i], err = t.saleAt(seq); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// salesBetween lists the sales of a span of time, latest first. It counts whole
// slots of time where it can, and goes sale by sale only through the shortest slots
// that hold the page or an end of the span.
func (t *txn) salesBetween(f saleFilter, p page) ([]*sale, uint64, error) {
	s := slotCutter{txn: t, saleType: f.saleType, page: p}
	if err := s.take(len(slotLevels)-1, f.from, f.to); err != nil {
		return nil, 0, err
	}
	list, err := t.salesAt(s.found)
	return list, s.total, err
}

// A slotCutter cuts a page out of the sales of a span of time.
type slotCutter struct {
	*txn
	page
	saleType string
	found    []uint64
	total    uint64
}

// take goes through the sales from one moment to another, both included, latest
// first. It counts slots of a level whole, or goes through the level below.
func (c *slotCutter) take(level int, from, to instant) error {
	if level < 0 {
		return c.takeSales(from, to)
	}
	shift := slotLevels[level]
	for e, err := range c.Scan(c.slotKey(level, from), c.slotKey(level, to).after(), true) {
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

func (c *slotCutter) takeSales(from, to instant) error {
	return c.scanSpan(from, to, func(seq uint64, s loggedSale) bool {
		if !s.is(c.saleType) {
			return true
		}
		if c.total++; c.total > c.skip() && uint64(len(c.found)) < c.limit {
			c.found = append(c.found, seq)
		}
		return true
	})
}
