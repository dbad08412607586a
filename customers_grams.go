package main

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// The search index is an n-gram index with positions: it holds where in the
// customers' texts each run of three characters (a gram) occurs, and each single
// character. A longer needle is found by joining grams at their distance from one
// another. That proves the match, so no customer is read.
//
//	g org            → how many customers are in the index
//	g org block gram → its postings: for each place in the texts, in order, the
//	                   customers that have the gram there: place(2) n(2), then
//	                   n offsets in the block of 2 bytes, or if n ≥ 1,024 a
//	                   bitmap of 2 KiB; least significant byte first
//
// A block is 16,384 customers, so that what the newest customers change lies
// together. Customers enter the index 64 at a time, imported ones more at a time.
// Until then a search reads them one by one.
//
// The places of the three texts do not overlap: a name begins at 0, an e-mail has
// its @ at 400, and a phone begins at 700. So customers with the same domain have it
// at the same place. The last gram of a text is two characters and a padding, so
// that a needle of two is a prefix of grams. A single character has place 0, 400 or
// 700, by its text.

const (
	gramBlock = 1 << 14
	gramGroup = 64

	placeName  = 0
	placeAt    = 400
	placePhone = 700

	gramPad = '\x01'
)

// A gram is up to three characters, 21 bits each, the first one highest.
type gram uint64

func newGram(a, b, c rune) gram { return gram(a)<<42 | gram(b)<<21 | gram(c) }

func (g gram) String() string { return string(g.appendTo(nil)) }

func (g gram) appendTo(b []byte) []byte {
	for shift := 42; shift >= 0; shift -= 21 {
		if r := rune(g >> shift & 0x1fffff); r != 0 {
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

func (se *searchTxn) gramKey(block uint32, gram string) key {
	return orgKey('g', se.t.org).u32(block).text(gram)
}

// An occurrence is a place and, in the low 16 bits, the customer's offset in the
// block.
type occurrence uint32

// A gramAt is one gram of one customer.
type gramAt struct {
	gram gram
	at   occurrence
}

func compareGrams(a, b gramAt) int {
	if a.gram != b.gram {
		return cmp.Compare(a.gram, b.gram)
	}
	return cmp.Compare(a.at, b.at)
}

// appendGrams appends the grams of a customer's texts.
func appendGrams(list []gramAt, number uint64, texts []string) []gramAt {
	offset := occurrence(number % gramBlock)
	for i, first := range []int{placeName, placeAt - strings.IndexByte(texts[1], '@'), placePhone} {
		runes := []rune(texts[i])
		begins := []occurrence{placeName, placeAt, placePhone}[i]<<16 | offset
		for j, r := range runes {
			list = append(list, gramAt{newGram(r, 0, 0), begins})
			if j+1 == len(runes) {
				break
			}
			third := rune(gramPad)
			if j+2 < len(runes) {
				third = runes[j+2]
			}
			list = append(list, gramAt{newGram(r, runes[j+1], third), occurrence(first+j)<<16 | offset})
		}
	}
	return list
}

// indexed is the number of the last customer in the index. All before it are in it.
func (se *searchTxn) indexed() (uint64, error) {
	n, _, err := getUint(se.t.Tx, orgKey('g', se.t.org))
	return n, err
}

// indexUntil puts the customers with numbers up to last into the index, as far as
// they are not in it yet.
func (se *searchTxn) indexUntil(last uint64) error {
	done, err := se.indexed()
	if err != nil || done >= last {
		return err
	}
	const most = 80 // about as many grams as a customer has
	list := make([]gramAt, 0, most*min(last-done, gramBlock))
	for from := done + 1; from <= last; {
		to := min(last, (from/gramBlock+1)*gramBlock-1)
		list = list[:0]
		for c, err := range se.t.customers.between(from, to) {
			if err != nil {
				return err
			}
			list = appendGrams(list, c.Number, c.searchTexts())
		}
		if err := se.addGrams(uint32(from/gramBlock), list); err != nil {
			return err
		}
		from = to + 1
	}
	return putUint(se.t.Tx, orgKey('g', se.t.org), last)
}

// addGrams merges grams of customers of one block into the index.
func (se *searchTxn) addGrams(block uint32, list []gramAt) error {
	var kept, merged []occurrence
	var encoded []byte
	blockKey := se.gramKey(block, "")
	for g, added := range byGram(list) {
		k := g.appendTo(blockKey)
		value, _, err := se.t.Get(k)
		if err != nil {
			return err
		}
		if kept, err = appendOccurrences(kept[:0], value); err != nil {
			return atKey(k, err)
		}
		merged = merged[:0]
		rest := kept
		for len(added) > 0 && len(rest) > 0 {
			if added[0] < rest[0] {
				merged, added = append(merged, added[0]), added[1:]
			} else {
				merged, rest = append(merged, rest[0]), rest[1:]
			}
		}
		merged = append(append(merged, added...), rest...)
		encoded = encodeOccurrences(encoded[:0], slices.Compact(merged))
		if err := se.t.Put(k, encoded); err != nil {
			return err
		}
	}
	return nil
}

// byGram yields the grams of a list in order, each with its occurrences in order.
// The customers in the list must be in order. It is a counting sort.
func byGram(list []gramAt) iter.Seq2[gram, []occurrence] {
	list = byPlace(list)
	type numbered struct {
		gram        gram
		number, end int
	}
	var grams []numbered // by number; at the end sorted by gram
	numbers := map[gram]int{}
	numberAt := make([]int32, len(list))
	for i, g := range list {
		number, ok := numbers[g.gram]
		if !ok {
			number = len(grams)
			numbers[g.gram] = number
			grams = append(grams, numbered{gram: g.gram, number: number})
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
	all := make([]occurrence, len(list))
	for i, number := range slices.Backward(numberAt) {
		starts[number]--
		all[starts[number]] = list[i].at
	}
	slices.SortFunc(grams, func(a, b numbered) int { return cmp.Compare(a.gram, b.gram) })
	return func(yield func(gram, []occurrence) bool) {
		for _, g := range grams {
			if !yield(g.gram, all[starts[g.number]:g.end]) {
				return
			}
		}
	}
}

// byPlace returns the list sorted by place, stably.
func byPlace(list []gramAt) []gramAt {
	var starts []int
	for _, g := range list {
		if place := int(g.at >> 16); place+1 >= len(starts) {
			starts = append(starts, make([]int, place+2-len(starts))...)
		}
		starts[g.at>>16+1]++
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	sorted := make([]gramAt, len(list))
	for _, g := range list {
		at := &starts[g.at>>16]
		sorted[*at] = g
		*at++
	}
	return sorted
}

// reindex updates the index for a customer whose texts changed, if it is indexed. It
// writes only the grams that the customer gains or loses.
func (se *searchTxn) reindex(number uint64, before, after []string) error {
	if slices.Equal(before, after) {
		return nil
	}
	done, err := se.indexed()
	if err != nil || number > done {
		return err
	}
	block := uint32(number / gramBlock)
	had, has := appendGrams(nil, number, before), appendGrams(nil, number, after)
	for _, gone := range had {
		if slices.Contains(has, gone) {
			continue
		}
		k := se.gramKey(block, gone.gram.String())
		value, _, err := se.t.Get(k)
		if err != nil {
			return err
		}
		kept, err := appendOccurrences(nil, value)
		if err != nil {
			return atKey(k, err)
		}
		kept = slices.DeleteFunc(kept, func(at occurrence) bool { return at == gone.at })
		if len(kept) == 0 {
			err = se.t.Delete(k)
		} else {
			err = se.t.Put(k, encodeOccurrences(nil, kept))
		}
		if err != nil {
			return err
		}
	}
	return se.addGrams(block, slices.DeleteFunc(has, func(g gramAt) bool { return slices.Contains(had, g) }))
}

// A gramSet is the customers of a block that have a gram at one place: offsets or
// a bitmap.
type gramSet []byte

const gramBitmap = gramBlock / 8

func (s gramSet) isBitmap() bool { return len(s) == gramBitmap }

// offset is the i-th offset of a set that is not a bitmap.
func (s gramSet) offset(i int) uint16 { return binary.LittleEndian.Uint16(s[2*i:]) }

// A placedSet is a gramSet and its place.
type placedSet struct {
	place int
	set   gramSet
}

// cutSet takes the first set off a gram's value.
func cutSet(value []byte) (s placedSet, rest []byte, err error) {
	if len(value) < 4 {
		return s, nil, errRecord
	}
	size := min(2*int(binary.LittleEndian.Uint16(value[2:])), gramBitmap)
	if s.place = int(binary.LittleEndian.Uint16(value)); len(value) < 4+size {
		return s, nil, errRecord
	}
	s.set = value[4 : 4+size]
	return s, value[4+size:], nil
}

// appendOccurrences appends the occurrences in a gram's value.
func appendOccurrences(list []occurrence, value []byte) ([]occurrence, error) {
	for len(value) > 0 {
		s, rest, err := cutSet(value)
		if err != nil {
			return nil, err
		}
		value = rest
		if s.set.isBitmap() {
			for i := 0; i < gramBlock; i += 64 {
				for word := binary.LittleEndian.Uint64(s.set[i/8:]); word != 0; word &= word - 1 {
					list = append(list, occurrence(s.place)<<16|occurrence(i+bits.TrailingZeros64(word)))
				}
			}
			continue
		}
		for i := range len(s.set) / 2 {
			list = append(list, occurrence(s.place)<<16|occurrence(s.set.offset(i)))
		}
	}
	return list, nil
}

// encodeOccurrences appends the value of a gram with these occurrences.
func encodeOccurrences(value []byte, list []occurrence) []byte {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n]>>16 == list[0]>>16 {
			n++
		}
		value = binary.LittleEndian.AppendUint16(value, uint16(list[0]>>16))
		value = binary.LittleEndian.AppendUint16(value, uint16(n))
		if 2*n < gramBitmap {
			for _, at := range list[:n] {
				value = binary.LittleEndian.AppendUint16(value, uint16(at))
			}
		} else {
			bitmap := len(value)
			value = append(value, make([]byte, gramBitmap)...)
			for _, at := range list[:n] {
				value[bitmap+int(at&0xffff/8)] |= 1 << (at % 8)
			}
		}
		list = list[n:]
	}
	return value
}

// importIndexed is how many imported customers may wait for the search index. They
// enter it together, so that each gram of a block is written once for all of them.
const importIndexed = 4096
