package disk

import "bytes"

// A rawPage is a page, or a bucket that lies in its parent's page.
type rawPage struct {
	b      []byte
	n      int // entries
	branch bool
	id     uint64 // 0 in its parent's page
	clean  bool   // its entries are valid
}

func newRawPage(b []byte) rawPage {
	return rawPage{b: b, n: int(u16(b[10:])), branch: u16(b[8:]) == branchKind}
}

func (p *rawPage) span() pageSpan { return pageSpan{p.id, uint64(len(p.b)) / pageSize} }

func (p *rawPage) key(i int) []byte {
	at := pageHeader + pageEntry*i
	e := p.b[at:][:pageEntry]
	if !p.branch {
		e = e[4:]
	}
	at += int(u32(e))
	end := at + int(u32(e[4:]))
	return p.b[at:end:end]
}

func (p *rawPage) value(i int) []byte {
	at := pageHeader + pageEntry*i
	e := p.b[at:][:pageEntry]
	at += int(u32(e[4:]) + u32(e[8:]))
	end := at + int(u32(e[12:]))
	return p.b[at:end:end]
}

// search returns the index of the first entry that is not before key, and whether it
// is the entry of key.
func (p *rawPage) search(key []byte) (i int, found bool) {
	lo, hi := 0, p.n
	for lo < hi {
		mid := (lo + hi) / 2
		switch bytes.Compare(p.key(mid), key) {
		case 0:
			return mid, true
		case -1:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false
}

// covers reports whether key is the page's first or after it, and before its last. Then
// no other page of its level has key or leads to it.
func (p *rawPage) covers(key []byte) bool {
	return p.n > 0 && bytes.Compare(p.key(0), key) <= 0 && bytes.Compare(key, p.key(p.n-1)) < 0
}

// way returns the entry of a branch that leads to key.
func (p *rawPage) way(key []byte) int {
	i, found := p.search(key)
	if !found && i > 0 {
		i--
	}
	return i
}

// layout returns an error unless the entries follow one another without a gap and the
// page ends with the last of them, rounded up to a unit. Entries of a leaf must have
// the mark.
func (p *rawPage) layout(mark uint32, unit uint64) error {
	if !p.branch && u16(p.b[8:]) != leafKind {
		return ErrDamaged
	}
	at := uint64(pageHeader + pageEntry*p.n)
	size := uint64(len(p.b))
	if at > size {
		return ErrDamaged
	}
	for i := range p.n {
		start := pageHeader + pageEntry*i
		e := p.b[start:][:pageEntry]
		length := uint64(0) // of the value
		if !p.branch {
			if length = uint64(u32(e[12:])); u32(e) != mark {
				return ErrDamaged
			}
			e = e[4:]
		}
		place, key := uint64(start)+uint64(u32(e)), uint64(u32(e[4:]))
		if place != at || key == 0 || key+length > size-at {
			return ErrDamaged
		}
		at += key + length
	}
	if (at+unit-1)/unit*unit != size {
		return ErrDamaged
	}
	return nil
}

// sealed reports whether the keys are in order and the values have their checksums.
func (p *rawPage) sealed() bool {
	var last []byte
	for i := range p.n {
		key := p.key(i)
		if bytes.Compare(last, key) >= 0 {
			return false
		}
		last = key
		if p.branch {
			continue
		}
		if _, err := Unseal(key, p.value(i)); err != nil {
			return false
		}
	}
	return true
}
