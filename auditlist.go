package main

import (
	"bytes"
	"slices"
	"sort"
	"strings"

	"sello/internal/blockset"
)

// Lengths in characters of what is looked for.
const (
	maxAction  = 100
	maxSubject = 255
)

// An auditFilter chooses entries. An empty field does not restrict.
type auditFilter struct {
	from, to               instant // both included; 0 and never mean open
	actor, action, subject string
	kind                   string       // one of auditKinds
	before                 uint64       // entries before this one; 0: all
	within                 []auditValue // entries that have one of these; nil: all
}

// Kinds of entries: log-ins and log-outs, which are most, and changes, which are all others.
const (
	auditKindChange  = "Change"
	auditKindSession = "Session"
)

var auditKinds = []string{"", auditKindChange, auditKindSession}

// auditKindOf is the kind of an action.
func auditKindOf(action string) string {
	if strings.HasPrefix(action, "session.") {
		return auditKindSession
	}
	return auditKindChange
}

// An auditValue is a value in a field that entries are found by.
type auditValue struct {
	field byte
	value string
}

// entries returns a page of the entries that a filter chooses, newest first, and
// how many there are.
func (a *auditTxn) entries(f auditFilter, p page) (list []*auditEntry, total uint64, err error) {
	spans, err := a.spans(&f)
	if err != nil {
		return nil, 0, err
	}
	cut := seqPager{page: p}
	for _, s := range spans {
		if err := a.cut(&cut, s, f.sets(a.t.org)...); err != nil {
			return nil, 0, err
		}
	}
	warm(a.t.Tx, cut.found, a.key)
	for _, seq := range cut.found {
		e, err := a.entry(seq)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, e)
	}
	return list, cut.total, nil
}

// An auditGroup holds the entries that are in one of its sets or, if none is true, those that
// are in none of them.
type auditGroup struct {
	sets []key
	none bool
}

// sets are those that the filter's entries are in, the group that is likely to be the
// smallest first.
func (f *auditFilter) sets(org uint32) (groups []auditGroup) {
	for _, by := range [...]auditValue{{auditSubject, f.subject}, {auditActor, f.actor}, {auditAction, f.action}} {
		if by.value != "" {
			groups = append(groups, auditGroup{sets: []key{auditSet(org, by.field, by.value)}})
		}
	}
	if f.within != nil {
		var any []key
		for _, by := range f.within {
			any = append(any, auditSet(org, by.field, by.value))
		}
		groups = append(groups, auditGroup{sets: any})
	}
	if f.kind != "" {
		var any []key
		for _, action := range auditActions {
			if auditKindOf(action) == auditKindSession {
				any = append(any, auditSet(org, auditAction, action))
			}
		}
		groups = append(groups, auditGroup{any, f.kind == auditKindChange})
	}
	return groups
}

// A seqSpan is a row of entries, both ends included.
type seqSpan struct{ first, last uint64 }

// spans returns the entries of the filter's span of time, newest first. Between
// two acceptances of a clock time only goes on, so that each such row has one span.
func (a *auditTxn) spans(f *auditFilter) (spans []seqSpan, err error) {
	n, err := a.t.count()
	if err != nil {
		return nil, err
	}
	last := n.Audit
	if f.before > 0 {
		last = min(last, f.before-1)
	}
	begins := []uint64{1}
	if f.from != 0 || f.to != never {
		var accepted seqPager
		accepted.page = page{1, last}
		if err := a.cut(&accepted, seqSpan{1, last}, auditGroup{sets: []key{auditSet(a.t.org, auditAction, auditClockAccepted)}}); err != nil {
			return nil, err
		}
		slices.Reverse(accepted.found)
		begins = append(begins, accepted.found...)
	}
	for _, first := range slices.Backward(begins) {
		s := seqSpan{first, last}
		if f.from != 0 {
			s.first, err = a.since(s, f.from)
		}
		if f.to != never && err == nil {
			s.last, err = a.since(s, f.to+1)
			s.last--
		}
		if err != nil {
			return nil, err
		}
		if s.first <= s.last {
			spans = append(spans, s)
		}
		last = first - 1
	}
	return spans, nil
}

// since returns the first entry of a row that is not before a moment; the one
// behind it if there is none. The row's entries are in the order of time.
func (a *auditTxn) since(s seqSpan, at instant) (seq uint64, err error) {
	length := int(s.last + 1 - s.first)
	n := sort.Search(length, func(i int) bool {
		if err != nil {
			return true
		}
		var e *auditEntry
		e, err = a.entry(s.first + uint64(i))
		return err != nil || e.At >= at
	})
	return s.first + uint64(n), err
}

// A seqPager collects a page of entries. It takes them from the last to the first.
type seqPager struct {
	page
	found []uint64
	total uint64
}

// cut takes those entries of a row that each group holds; without groups, all.
func (a *auditTxn) cut(cut *seqPager, s seqSpan, groups ...auditGroup) error {
	if len(groups) == 0 {
		cut.row(s)
		return nil
	}
	if s.first > s.last {
		return nil
	}
	if len(groups[0].sets) != 1 || groups[0].none { // their blocks are not in one row
		for block := s.last / blockset.Block; ; block-- {
			if err := a.cutBlock(cut, s, uint32(block), wholeBlock(), groups); err != nil || block == s.first/blockset.Block {
				return err
			}
		}
	}
	prefix := groups[0].sets[0]
	from, to := slices.Clone(prefix).u32(uint32(s.first/blockset.Block)), slices.Clone(prefix).u32(uint32(s.last/blockset.Block)).after()
	for e, err := range a.t.Scan(from, to, true) {
		if err != nil {
			return err
		}
		if err := a.cutBlock(cut, s, uint32In(e.Key[len(prefix):]), blockset.Decode(e.Value), groups[1:]); err != nil {
			return err
		}
	}
	return nil
}

// cutBlock takes those entries of a block that each group holds.
func (a *auditTxn) cutBlock(cut *seqPager, s seqSpan, block uint32, members *blockset.Bitmap, groups []auditGroup) error {
	for _, group := range groups {
		var any blockset.Bitmap
		for _, set := range group.sets {
			value, _, err := a.t.Get(slices.Clone(set).u32(block))
			if err != nil {
				return err
			}
			for i, b := range blockset.Decode(value) {
				any[i] |= b
			}
		}
		for i, b := range any {
			if group.none {
				b = ^b
			}
			members[i] &= b
		}
	}
	cut.block(uint64(block)*blockset.Block, members, s)
	return nil
}

// wholeBlock is a block that every number is in.
func wholeBlock() *blockset.Bitmap {
	return (*blockset.Bitmap)(bytes.Repeat([]byte{0xff}, blockset.Bytes))
}

// row takes all entries of a row.
func (c *seqPager) row(s seqSpan) {
	if s.first > s.last {
		return
	}
	n := s.last - s.first + 1
	for i := max(c.skip(), c.total) - c.total; i < n && uint64(len(c.found)) < c.limit; i++ {
		c.found = append(c.found, s.last-i)
	}
	c.total += n
}

// block takes the entries of a block that are in a row.
func (c *seqPager) block(begin uint64, members *blockset.Bitmap, s seqSpan) {
	for i := range members {
		for bit := range uint64(8) {
			if seq := begin + uint64(8*i) + bit; seq < s.first || seq > s.last {
				members[i] &^= 1 << bit
			}
		}
	}
	count := members.Count()
	if c.total+count <= c.skip() || uint64(len(c.found)) == c.limit {
		c.total += count
		return
	}
	for at := blockset.Block - 1; at >= 0; at-- {
		if members[at/8]&(1<<(at%8)) == 0 {
			continue
		}
		if c.total++; c.total > c.skip() && uint64(len(c.found)) < c.limit {
			c.found = append(c.found, begin+uint64(at))
		}
	}
}
