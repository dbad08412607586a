package postgres

import (
	"bytes"
	"slices"
)

// A page is entries that a Scan reads at once: those with lo <= key < hi, in bytewise order or in
// reverse, up to limit of them. An empty hi means no upper end.
type page struct {
	lo, hi  []byte
	reverse bool
	limit   int64

	ended   bool // it was read
	entries []Entry
	size    int        // bytes of the entries
	done    chan error // told how reading it ahead has ended; nil: it is not read ahead
}

// Entries of a page: few at first, since many scans want few, then more as long as a page is not
// large. A scan that has come to a page of aheadPage will want the next one, too: that is read ahead.
const (
	firstPage = 16
	aheadPage = 256
	mostPage  = 1024
	pageBytes = 1 << 20
)

// nextPage returns how many entries to read after a page of so many, with so many bytes.
func nextPage(entries int64, bytes int) int64 {
	if bytes > pageBytes {
		return max(1, entries/8)
	}
	return min(4*entries, mostPage)
}

func (p *page) ask(t *trip) {
	open := len(p.hi) == 0
	switch {
	case open && p.reverse:
		t.add(sqlDownAll, p.lo, int8(p.limit))
	case open:
		t.add(sqlUpAll, p.lo, int8(p.limit))
	case p.reverse:
		t.add(sqlDown, p.lo, p.hi, int8(p.limit))
	default:
		t.add(sqlUp, p.lo, p.hi, int8(p.limit))
	}
}

func (p *page) take(rows []row) {
	p.entries = make([]Entry, len(rows))
	for i, r := range rows {
		p.entries[i] = Entry{r[0], r[1]}
		p.size += len(r[0]) + len(r[1])
	}
	p.ended = true
}

// after returns the page after one that was read; nil if there is none.
func (p *page) after() *page {
	if int64(len(p.entries)) < p.limit {
		return nil
	}
	next := &page{lo: p.lo, hi: p.hi, reverse: p.reverse, limit: nextPage(p.limit, p.size)}
	last := p.entries[len(p.entries)-1].Key
	if p.reverse {
		next.hi = last
	} else {
		next.lo = append(bytes.Clone(last), 0)
	}
	return next
}

// has reports whether a page that was read tells what is at a key: it lies between two of its entries,
// or is one of them.
func (p *page) has(key []byte) bool {
	if p == nil || len(p.entries) == 0 {
		return false
	}
	from, to := p.entries[0].Key, p.entries[len(p.entries)-1].Key
	if p.reverse {
		from, to = to, from
	}
	return bytes.Compare(from, key) <= 0 && bytes.Compare(key, to) <= 0
}

// get returns the value of a key that the page has.
func (p *page) get(key []byte) (value []byte, ok bool) {
	at, ok := slices.BinarySearchFunc(p.entries, key, func(e Entry, key []byte) int {
		if p.reverse {
			return bytes.Compare(key, e.Key)
		}
		return bytes.Compare(e.Key, key)
	})
	if !ok {
		return nil, false
	}
	return p.entries[at].Value, true
}
