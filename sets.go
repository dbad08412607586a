package main

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"
)

// Sets of numbers, of customers or of redemptions, are kept in blocks of 1,024, so
// that adding a number changes only a short value:
//
//	set block(4) → the numbers in the block, as offsets: 2 bytes each in
//	               order, up to 63 of them; from then on a bitmap of 128 bytes

const (
	setBlock   = 1024
	bitmapSize = setBlock / 8
)

// putInSet puts a number into the set whose blocks lie under a key, or takes it
// out, and reports whether that changed the set.
func putInSet(tx Tx, set key, number uint64, member bool) (changed bool, err error) {
	return putInBlock(tx, set.u32(uint32(number/setBlock)), number, member)
}

// putInBlock is putInSet for the number's block, which is at k.
func putInBlock(tx Tx, k key, number uint64, member bool) (changed bool, err error) {
	value, _, err := tx.Get(k)
	if err != nil {
		return false, err
	}
	value, changed = changeBlock(value, number%setBlock, member)
	switch {
	case !changed:
		return false, nil
	case len(value) == 0:
		return true, tx.Delete(k)
	}
	return true, tx.Put(k, value)
}

// changeBlock returns what the value of a block becomes when a number is put
// in or taken out.
func changeBlock(value []byte, offset uint64, member bool) (after []byte, changed bool) {
	place, had := findOffset(value, offset)
	switch {
	case had == member:
		return value, false
	case len(value) == bitmapSize, len(value)+2 == bitmapSize && member:
		bits := toBitmap(value)
		bits[offset/8] ^= 1 << (offset % 8)
		if member {
			return bits[:], true
		}
		return fromBitmap(bits), true
	case member:
		after = append(make([]byte, 0, len(value)+2), value[:place]...)
		after = binary.BigEndian.AppendUint16(after, uint16(offset))
		return append(after, value[place:]...), true
	}
	return slices.Concat(value[:place], value[place+2:]), true
}

// findOffset reports whether a number is in a block. If the block is kept as
// offsets, place is where the number is or would be.
func findOffset(value []byte, offset uint64) (place int, found bool) {
	if len(value) == bitmapSize {
		return 0, value[offset/8]&(1<<(offset%8)) != 0
	}
	at := func(i int) uint64 { return uint64(binary.BigEndian.Uint16(value[2*i:])) }
	n := len(value) / 2
	i := sort.Search(n, func(i int) bool { return at(i) >= offset })
	return 2 * i, i < n && at(i) == offset
}

// A blockSet is a set of numbers in memory, by block.
type blockSet map[uint32]*[bitmapSize]byte

// at is the bitmap of a block, made if there is none.
func (s blockSet) at(block uint32) *[bitmapSize]byte {
	if s[block] == nil {
		s[block] = new([bitmapSize]byte)
	}
	return s[block]
}

// join adds the numbers of a stored block.
func (s blockSet) join(block uint32, value []byte) {
	set := s.at(block)
	if len(value) != bitmapSize {
		addOffsets(set, value)
		return
	}
	for i := 0; i < bitmapSize; i += 8 {
		word := binary.NativeEndian.Uint64(set[i:]) | binary.NativeEndian.Uint64(value[i:])
		binary.NativeEndian.PutUint64(set[i:], word)
	}
}

// add adds one number.
func (s blockSet) add(number uint64) {
	set, bit := s.at(uint32(number/setBlock)), number%setBlock
	set[bit/8] |= 1 << (bit % 8)
}

func (s blockSet) count() (n uint64) {
	for _, set := range s {
		for i := 0; i < bitmapSize; i += 8 {
			n += uint64(bits.OnesCount64(binary.NativeEndian.Uint64(set[i:])))
		}
	}
	return n
}

// isBlock reports whether a value has the form of a block.
func isBlock(value []byte) bool {
	if len(value) == bitmapSize {
		return true
	}
	last := -1
	for ; len(value) >= 2 && len(value) < bitmapSize; value = value[2:] {
		offset := int(binary.BigEndian.Uint16(value))
		if offset <= last || offset >= setBlock {
			return false
		}
		last = offset
	}
	return len(value) == 0 && last >= 0
}

func toBitmap(value []byte) *[bitmapSize]byte {
	bits := new([bitmapSize]byte)
	if len(value) == bitmapSize {
		copy(bits[:], value)
		return bits
	}
	addOffsets(bits, value)
	return bits
}

// addOffsets adds the numbers of a block that is kept as offsets.
func addOffsets(bits *[bitmapSize]byte, value []byte) {
	for ; len(value) >= 2; value = value[2:] {
		bit := binary.BigEndian.Uint16(value) % setBlock
		bits[bit/8] |= 1 << (bit % 8)
	}
}

func fromBitmap(bits *[bitmapSize]byte) []byte {
	offsets := make([]byte, 0, bitmapSize)
	for i, b := range bits {
		for bit := range 8 {
			if b&(1<<bit) != 0 {
				offsets = binary.BigEndian.AppendUint16(offsets, uint16(8*i+bit))
			}
		}
	}
	if len(offsets) >= bitmapSize {
		return bits[:]
	}
	return offsets
}
