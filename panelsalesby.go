package main

import (
	"slices"
	"strconv"
)

// Sales by maker. The file has no index by maker: a request looks through the sales that the other
// filters choose, latest first, and at most mostScanned of them. So such a list has no total, and
// its pages lead only to older sales.

const (
	byParam     = "quien" // who made the sales
	olderParam  = "antes" // how many of the sales that the other filters choose are left to look at
	importMaker = "import"

	mostScanned = 5000
	scanPart    = 500 // sales that are read at once
)

// A saleScan is a page of one maker's sales, and how far the scan for it went.
type saleScan struct {
	sales  []*sale
	rows   []saleShape
	begun  bool    // the scan did not begin with the newest sale
	looked uint64  // sales that were looked at
	last   instant // when the last sale that was looked at happened
	older  uint64  // sales that the other filters choose and that were not looked at yet
	cut    bool    // the scan looked at most sales before the page was full
}

// whole reports whether the page has all sales of the maker.
func (s *saleScan) whole() bool { return !s.begun && s.older == 0 }

// scanSales looks for a maker's sales among those that a filter chooses, latest first. It begins
// where older sales are left to look at, and ends when it has found limit or has looked at most.
func scanSales(t *txn, f saleFilter, made func(creator) bool, older, limit, most uint64) (*saleScan, error) {
	_, total, err := t.saleLists.find(f, page{1, 1})
	if err != nil {
		return nil, err
	}
	s := &saleScan{begun: older < total, older: min(older, total)}
	for s.older > 0 && s.looked < most && uint64(len(s.sales)) < limit {
		skip := total - s.older
		part, _, err := t.saleLists.find(f, page{skip/scanPart + 1, scanPart})
		if err != nil {
			return nil, err
		}
		for _, each := range part[min(skip%scanPart, uint64(len(part))):] {
			s.older--
			s.looked++
			s.last = each.CreatedAt
			if made(each.By) {
				s.sales = append(s.sales, each)
			}
			if s.looked == most || uint64(len(s.sales)) == limit {
				break
			}
		}
		if s.older == total-skip { // nothing was read: there are no more
			s.older = 0
		}
	}
	s.cut = s.looked == most && s.older > 0 && uint64(len(s.sales)) < limit
	return s, nil
}

// listSalesBy is listTransactions for sales of one maker.
func listSalesBy(r *request) action {
	r.large = true
	f := r.saleFilter()
	f.byDate = true
	older, ok := r.whole(olderParam, 1, maxPage)
	if !ok {
		r.query.fail(newError(codePageInvalid).on(olderParam))
	}
	made := func(c creator) bool { return c.Type == byImport }
	if text, _ := r.query.text(byParam, 100); text != importMaker {
		who, _ := r.query.id(byParam)
		made = func(c creator) bool { return c.ID == who && who != (id{}) }
	}
	return func(t *txn) (any, error) {
		s, err := scanSales(t, f, made, older, defaultLimit, mostScanned)
		if err != nil {
			return nil, err
		}
		for _, each := range s.sales {
			shape, err := newSaleShape(t, each)
			if err != nil {
				return nil, err
			}
			s.rows = append(s.rows, shape)
		}
		return s, nil
	}
}

// withOlder is the address of the page that begins where older sales are left to look at; 0: of
// the page that begins with the newest.
func (v *panelRequest) withOlder(older uint64) string {
	params := slices.DeleteFunc(slices.Clone(v.request.query.object), func(p pair) bool { return p.name == olderParam })
	if older > 0 {
		params = append(params, pair{olderParam, strconv.FormatUint(older, 10)})
	}
	return withQuery(v.r.URL.EscapedPath(), params)
}
