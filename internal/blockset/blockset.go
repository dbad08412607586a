// Package blockset is sets of numbers that are kept in blocks of 1,024, so that adding a number
// changes only a short value. The value of a block is the numbers in it as offsets, 2 bytes each
// in order, up to 63 of them; from then on it is a bitmap of 128 bytes.
package blockset

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
	"sort"
)

const (
	Block = 1024      // numbers in a block
	Bytes = Block / 8 // of a bitmap
)

// A Bitmap is the numbers of one block.
type Bitmap [Bytes]byte

// Change returns what the value of a block becomes when a number is put
// in or taken out.
func Change(value []byte, offset uint64, member bool) (after []byte, changed bool) {
	place, had := findOffset(value, offset)
	switch {
	case had == member:
		return value, false
	case len(value) == Bytes, len(value)+2 == Bytes && member:
		bits := Decode(value)
		bits[offset/8] ^= 1 << (offset % 8)
		if member {
			return bits[:], true
		}
		return bits.Encode(), true
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
	if len(value) == Bytes {
		return 0, value[offset/8]&(1<<(offset%8)) != 0
	}
	at := func(i int) uint64 { return uint64(binary.BigEndian.Uint16(value[2*i:])) }
	n := len(value) / 2
	i := sort.Search(n, func(i int) bool { return at(i) >= offset })
	return 2 * i, i < n && at(i) == offset
}

// Count returns how many numbers are in a block.
func (s *Bitmap) Count() (n uint64) {
	for i := 0; i < Bytes; i += 8 {
		n += uint64(bits.OnesCount64(binary.NativeEndian.Uint64(s[i:])))
	}
	return n
}

// Newest yields the numbers of a block, the highest first. The loop may drop the number that
// it was given.
func (s *Bitmap) Newest(block uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := len(s) - 1; i >= 0; i-- {
			for b := s[i]; b != 0; {
				bit := bits.Len8(b) - 1
				b &^= 1 << bit
				if !yield(block*Block + uint64(8*i+bit)) {
					return
				}
			}
		}
	}
}

// A Set is a set of numbers in memory, by block.
type Set map[uint32]*Bitmap

// At is the bitmap of a block, made if there is none.
func (s Set) At(block uint32) *Bitmap {
	if s[block] == nil {
		s[block] = new(Bitmap)
	}
	return s[block]
}

// Join adds the numbers of a stored block.
func (s Set) Join(block uint32, value []byte) {
	set := s.At(block)
	if len(value) != Bytes {
		addOffsets(set, value)
		return
	}
	for i := 0; i < Bytes; i += 8 {
		word := binary.NativeEndian.Uint64(set[i:]) | binary.NativeEndian.Uint64(value[i:])
		binary.NativeEndian.PutUint64(set[i:], word)
	}
}

// Add adds one number.
func (s Set) Add(number uint64) {
	set, bit := s.At(uint32(number/Block)), number%Block
	set[bit/8] |= 1 << (bit % 8)
}

// Count returns how many numbers are in the set.
func (s Set) Count() (n uint64) {
	for _, bits := range s {
		n += bits.Count()
	}
	return n
}

// Valid reports whether a value has the form of a block.
func Valid(value []byte) bool {
	if len(value) == Bytes {
		return true
	}
	last := -1
	for ; len(value) >= 2 && len(value) < Bytes; value = value[2:] {
		offset := int(binary.BigEndian.Uint16(value))
		if offset <= last || offset >= Block {
			return false
		}
		last = offset
	}
	return len(value) == 0 && last >= 0
}

// Decode returns the bitmap of a block.
func Decode(value []byte) *Bitmap {
	bits := new(Bitmap)
	if len(value) == Bytes {
		copy(bits[:], value)
		return bits
	}
	addOffsets(bits, value)
	return bits
}

// addOffsets adds the numbers of a block that is kept as offsets.
func addOffsets(bits *Bitmap, value []byte) {
	for ; len(value) >= 2; value = value[2:] {
		bit := binary.BigEndian.Uint16(value) % Block
		bits[bit/8] |= 1 << (bit % 8)
	}
}

// Encode returns the value of a block; an empty one for no numbers.
func (bits *Bitmap) Encode() []byte {
	offsets := make([]byte, 0, Bytes)
	for i, b := range bits {
		for bit := range 8 {
			if b&(1<<bit) != 0 {
				offsets = binary.BigEndian.AppendUint16(offsets, uint16(8*i+bit))
			}
		}
	}
	if len(offsets) >= Bytes {
		return bits[:]
	}
	return offsets
}
