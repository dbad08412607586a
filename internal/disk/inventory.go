package disk

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync/atomic"
)

// An inventory sums up what the bucket holds. It is kept beside the journal's state
// (see datafile.go). So a page that is exchanged for its earlier content, or for a part
// of its content, is noticed.
type inventory struct {
	entries uint64
	sum     uint64    // of their checksums
	ends    [2]uint32 // checksums of the first and the last key; 0 if there is none
}

func (v *inventory) add(stored []byte) { v.entries++; v.sum += uint64(binary.BigEndian.Uint32(stored)) }
func (v *inventory) remove(stored []byte) {
	v.entries--
	v.sum -= uint64(binary.BigEndian.Uint32(stored))
}

func (v *inventory) clone() *inventory {
	c := *v
	return &c
}

// holds returns an error unless the first and the last key are those of the inventory.
func (v *inventory) holds(t *pageTree) (err error) {
	defer catch(&err)
	found, err := v.withEnds(t)
	if err == nil && found != *v {
		err = fmt.Errorf("%w: it does not begin or end as it should", ErrDamaged)
	}
	return err
}

// withEnds returns v with the ends of t.
func (v inventory) withEnds(t *pageTree) (inventory, error) {
	v.ends = [2]uint32{}
	if t.root.n == 0 {
		return v, nil
	}
	c := pageCursor{pageTree: t}
	if err := c.descend(t.root, firstEntry); err != nil {
		return v, err
	}
	first, _ := c.entry()
	if err := c.last(); err != nil {
		return v, err
	}
	last, _ := c.entry()
	v.setEnds(first, last)
	return v, nil
}

func (v *inventory) setEnds(first, last []byte) {
	v.ends = [2]uint32{}
	if first != nil {
		v.ends = [2]uint32{crc32.Checksum(first, castagnoli), crc32.Checksum(last, castagnoli)}
	}
}

// A pageSet is a set of pages that several goroutines may add to at once.
type pageSet []atomic.Uint64

// with returns the set with room for so many pages, and some more if it has to grow.
func (s pageSet) with(pages uint64) pageSet {
	if uint64(len(s))*64 >= pages {
		return s
	}
	larger := make(pageSet, pages/64*5/4+64)
	for i := range s {
		larger[i].Store(s[i].Load())
	}
	return larger
}

func (s pageSet) has(id uint64) bool {
	return id/64 < uint64(len(s)) && s[id/64].Load()&(1<<(id%64)) != 0
}

func (s pageSet) add(id uint64) {
	if id/64 < uint64(len(s)) {
		s[id/64].Or(1 << (id % 64))
	}
}
