// Package ngram is the postings of an n-gram index with positions: where in the texts of numbered
// items each run of three characters (a gram) occurs, and each single character. A longer text is
// found by joining grams at their distance from one another. That proves the match, so no item is
// read.
//
// Items are in blocks of 16,384, each with postings of its own. The postings of a gram in a block
// are, for each place in the texts, in order, the items that have the gram there: place(2) n(2),
// then n offsets in the block of 2 bytes, or if n ≥ 1,024 a bitmap of 2 KiB; least significant
// byte first.
//
// The last gram of a text is two characters and a padding, so that a needle of two is a prefix of
// grams.
package ngram

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// Block is how many items are in a block.
const Block = 1 << 14

// Pad is the padding of a text's last gram.
const Pad = '\x01'

const bitmapBytes = Block / 8

// ErrDamaged is returned for postings that cannot be read.
var ErrDamaged = errors.New("ngram: postings cannot be read")

// A Gram is up to three characters, 21 bits each, the first one highest.
type Gram uint64

func newGram(a, b, c rune) Gram { return Gram(a)<<42 | Gram(b)<<21 | Gram(c) }

// Parse reads a gram as String writes it.
func Parse(text []byte) (g Gram, ok bool) {
	var runes [3]rune
	n := 0
	for rest := text; len(rest) > 0; n++ {
		r, size := utf8.DecodeRune(rest)
		if n == len(runes) || r == 0 {
			return 0, false
		}
		runes[n], rest = r, rest[size:]
	}
	g = newGram(runes[0], runes[1], runes[2])
	return g, n > 0 && string(g.AppendTo(nil)) == string(text)
}

func (g Gram) String() string { return string(g.AppendTo(nil)) }

// AppendTo appends the characters of the gram.
func (g Gram) AppendTo(b []byte) []byte {
	for shift := 42; shift >= 0; shift -= 21 {
		if r := rune(g >> shift & 0x1fffff); r != 0 {
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

// IsSingle reports whether the gram is a single character.
func (g Gram) IsSingle() bool { return g&(1<<42-1) == 0 }

// An Occurrence is a place and, in the low 16 bits, the item's offset in the block.
type Occurrence uint32

// An At is one gram of one item.
type At struct {
	Gram Gram
	At   Occurrence
}

// Compare orders by gram, place and offset.
func Compare(a, b At) int {
	if a.Gram != b.Gram {
		return cmp.Compare(a.Gram, b.Gram)
	}
	return cmp.Compare(a.At, b.At)
}

// Append appends the grams of an item's text, which begins at the place first. All its single
// characters have the place singles.
func Append(list []At, number uint64, text string, first, singles int) []At {
	offset := Occurrence(number % Block)
	runes := []rune(text)
	for j, r := range runes {
		list = append(list, At{newGram(r, 0, 0), Occurrence(singles)<<16 | offset})
		if j+1 == len(runes) {
			break
		}
		third := rune(Pad)
		if j+2 < len(runes) {
			third = runes[j+2]
		}
		list = append(list, At{newGram(r, runes[j+1], third), Occurrence(first+j)<<16 | offset})
	}
	return list
}

// ByGram yields the grams of a list in order, each with its occurrences in order.
// The items in the list must be in order. It is a counting sort.
func ByGram(list []At) iter.Seq2[Gram, []Occurrence] {
	list = byPlace(list)
	type numbered struct {
		gram        Gram
		number, end int
	}
	var grams []numbered // by number; at the end sorted by gram
	numbers := map[Gram]int{}
	numberAt := make([]int32, len(list))
	for i, g := range list {
		number, ok := numbers[g.Gram]
		if !ok {
			number = len(grams)
			numbers[g.Gram] = number
			grams = append(grams, numbered{gram: g.Gram, number: number})
		}
		numberAt[i] = int32(number)
		grams[number].end++
	}
	starts := make([]int, len(grams))
	for i := range grams {
		if i > 0 {
			grams[i].end += grams[i-1].end
		}
		starts[i] = grams[i].end
	}
	all := make([]Occurrence, len(list))
	for i, number := range slices.Backward(numberAt) {
		starts[number]--
		all[starts[number]] = list[i].At
	}
	slices.SortFunc(grams, func(a, b numbered) int { return cmp.Compare(a.gram, b.gram) })
	return func(yield func(Gram, []Occurrence) bool) {
		for _, g := range grams {
			if !yield(g.gram, all[starts[g.number]:g.end]) {
				return
			}
		}
	}
}

// byPlace returns the list sorted by place, stably.
func byPlace(list []At) []At {
	var starts []int
	for _, g := range list {
		if place := int(g.At >> 16); place+1 >= len(starts) {
			starts = append(starts, make([]int, place+2-len(starts))...)
		}
		starts[g.At>>16+1]++
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	sorted := make([]At, len(list))
	for _, g := range list {
		at := &starts[g.At>>16]
		sorted[*at] = g
		*at++
	}
	return sorted
}

// A set is the items of a block that have a gram at one place: offsets or a bitmap.
type set []byte

func (s set) isBitmap() bool { return len(s) == bitmapBytes }

// offset is the i-th offset of a set that is not a bitmap.
func (s set) offset(i int) uint16 { return binary.LittleEndian.Uint16(s[2*i:]) }

// A placed is a set and its place.
type placed struct {
	place int
	set   set
}

// cut takes the first set off a gram's postings.
func cut(value []byte) (s placed, rest []byte, err error) {
	if len(value) < 4 {
		return s, nil, ErrDamaged
	}
	size := min(2*int(binary.LittleEndian.Uint16(value[2:])), bitmapBytes)
	if s.place = int(binary.LittleEndian.Uint16(value)); len(value) < 4+size {
		return s, nil, ErrDamaged
	}
	s.set = value[4 : 4+size]
	return s, value[4+size:], nil
}

// Decode appends the occurrences in a gram's postings.
func Decode(list []Occurrence, value []byte) ([]Occurrence, error) {
	for len(value) > 0 {
		s, rest, err := cut(value)
		if err != nil {
			return nil, err
		}
		value = rest
		if s.set.isBitmap() {
			for i := 0; i < Block; i += 64 {
				for word := binary.LittleEndian.Uint64(s.set[i/8:]); word != 0; word &= word - 1 {
					list = append(list, Occurrence(s.place)<<16|Occurrence(i+bits.TrailingZeros64(word)))
				}
			}
			continue
		}
		for i := range len(s.set) / 2 {
			list = append(list, Occurrence(s.place)<<16|Occurrence(s.set.offset(i)))
		}
	}
	return list, nil
}

// Encode appends the postings of a gram with these occurrences.
func Encode(value []byte, list []Occurrence) []byte {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n]>>16 == list[0]>>16 {
			n++
		}
		value = binary.LittleEndian.AppendUint16(value, uint16(list[0]>>16))
		value = binary.LittleEndian.AppendUint16(value, uint16(n))
		if 2*n < bitmapBytes {
			for _, at := range list[:n] {
				value = binary.LittleEndian.AppendUint16(value, uint16(at))
			}
		} else {
			bitmap := len(value)
			value = append(value, make([]byte, bitmapBytes)...)
			for _, at := range list[:n] {
				value[bitmap+int(at&0xffff/8)] |= 1 << (at % 8)
			}
		}
		list = list[n:]
	}
	return value
}

// A Merger changes postings. What it returns lasts until the next call.
type Merger struct {
	kept, merged []Occurrence
	value        []byte
}

// Merge returns postings with these occurrences, which are in order.
func (m *Merger) Merge(value []byte, added []Occurrence) (_ []byte, err error) {
	if m.kept, err = Decode(m.kept[:0], value); err != nil {
		return nil, err
	}
	m.merged = m.merged[:0]
	rest := m.kept
	for len(added) > 0 && len(rest) > 0 {
		if added[0] < rest[0] {
			m.merged, added = append(m.merged, added[0]), added[1:]
		} else {
			m.merged, rest = append(m.merged, rest[0]), rest[1:]
		}
	}
	m.merged = append(append(m.merged, added...), rest...)
	m.value = Encode(m.value[:0], slices.Compact(m.merged))
	return m.value, nil
}

// Remove returns postings without an occurrence; they are empty if no other is left.
func (m *Merger) Remove(value []byte, gone Occurrence) (_ []byte, err error) {
	if m.kept, err = Decode(m.kept[:0], value); err != nil {
		return nil, err
	}
	m.kept = slices.DeleteFunc(m.kept, func(at Occurrence) bool { return at == gone })
	m.value = Encode(m.value[:0], m.kept)
	return m.value, nil
}
