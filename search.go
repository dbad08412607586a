package main

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"unicode"
)

// Search finds customers by any part of their name, e-mail or phone, whatever
// the letter case and the accents, and phone digits whatever the punctuation
// (contract §7).
//
// Its index holds, for each run of three characters that occurs in a text of
// a customer (a gram), the numbers of the customers that have it. Ends of
// texts are padded, so that a needle of one or two characters is a prefix of
// grams. Numbers are kept in blocks of 4,096, so that one more customer
// changes short values:
//
//	g org gram 0 block(4) → the numbers in the block, as offsets: 2 bytes
//	                        each in order, up to 255 of them; from then on a
//	                        bitmap of 512 bytes
//
// A needle longer than three characters is looked up by its grams, and the
// customers that have all of them are read to see whether they have them in
// a row.

const (
	gramLength  = 3
	gramPad     = '\x01'
	searchBlock = 4096
	bitmapSize  = searchBlock / 8
)

// searchTexts are the folded texts by which the customer is found.
func (c *customer) searchTexts() []string {
	return []string{fold(strings.TrimSpace(c.FirstName + " " + c.LastName)), fold(c.Email), c.Phone}
}

// A needle is a search prepared: its folded text and, if it can be part of a
// phone number, its digits.
type needle struct{ text, digits string }

func newNeedle(s string) needle {
	n := needle{text: fold(s)}
	for _, r := range s {
		switch {
		case '0' <= r && r <= '9':
			n.digits += string(r)
		case !strings.ContainsRune("+-().·/ ", r):
			return needle{text: n.text}
		}
	}
	return n
}

// in tells whether one of the texts holds the needle.
func (n needle) in(texts []string) bool {
	return n.text != "" && (strings.Contains(texts[0], n.text) || strings.Contains(texts[1], n.text) || strings.Contains(texts[2], n.text)) ||
		n.digits != "" && strings.Contains(texts[2], n.digits)
}

// search returns the numbers of the customers that have the needle, lowest
// first.
func (t *txn) search(s string) ([]uint32, error) {
	n := newNeedle(s)
	if n.text == "" { // nothing but marks
		return nil, nil
	}
	found, exact, err := t.candidates(n.text)
	if err != nil {
		return nil, err
	}
	if n.digits != "" && n.digits != n.text {
		more, _, err := t.candidates(n.digits)
		if err != nil {
			return nil, err
		}
		found, exact = append(found, more...), false // digits count in the phone alone, grams in all texts
		slices.Sort(found)
		found = slices.Compact(found)
	}
	if exact {
		return found, nil
	}
	kept := found[:0]
	for _, number := range found {
		c, err := t.customerAt(uint64(number))
		if err != nil {
			return nil, err
		}
		if n.in(c.searchTexts()) {
			kept = append(kept, number)
		}
	}
	return kept, nil
}

// candidates returns the numbers of the customers that have every gram of a
// folded text, and whether that alone proves that they have the text.
func (t *txn) candidates(text string) (numbers []uint32, exact bool, err error) {
	runes := []rune(text)
	if len(runes) < gramLength {
		numbers, err = t.withPrefix(text)
		return numbers, true, err
	}
	var sets []map[uint32][]byte
	for _, gram := range grams(text, false) {
		blocks, err := t.blocks(gram)
		if err != nil {
			return nil, false, err
		}
		sets = append(sets, blocks)
	}
	// The gram with the fewest blocks decides which are looked at.
	slices.SortFunc(sets, func(a, b map[uint32][]byte) int { return len(a) - len(b) })
	for block, first := range sets[0] {
		bits := toBitmap(first)
		for _, other := range sets[1:] {
			also := toBitmap(other[block])
			for i := range bits {
				bits[i] &= also[i]
			}
		}
		numbers = appendNumbers(numbers, block, bits)
	}
	slices.Sort(numbers)
	return numbers, len(runes) == gramLength, nil
}

// blocks reads what the index has of one gram.
func (t *txn) blocks(gram string) (map[uint32][]byte, error) {
	blocks := map[uint32][]byte{}
	prefix := orgKey('g', t.org).text(gram).byte(0)
	for e, err := range scan(t.Tx, prefix, false) {
		if err != nil {
			return nil, err
		}
		blocks[uint32In(e.Key[len(prefix):])] = e.Value
	}
	return blocks, nil
}

// withPrefix returns the customers that have a gram which begins with text:
// those whose texts hold it.
func (t *txn) withPrefix(text string) ([]uint32, error) {
	found := blockSet{}
	for e, err := range scan(t.Tx, orgKey('g', t.org).text(text), false) {
		if err != nil {
			return nil, err
		}
		found.join(uint32In(e.Key[len(e.Key)-4:]), e.Value)
	}
	return found.numbers(), nil
}

// reindex changes the index for a customer whose texts were before (nil: it
// is new) and are now after.
func (t *txn) reindex(number uint64, before, after []string) error {
	had, has := gramSet(before), gramSet(after)
	for gram := range has {
		if !had[gram] {
			if err := t.index(gram, number, true); err != nil {
				return err
			}
		}
	}
	for gram := range had {
		if !has[gram] {
			if err := t.index(gram, number, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// index puts one customer into, or takes it out of, what has the gram.
func (t *txn) index(gram string, number uint64, member bool) error {
	_, err := putInSet(t.Tx, orgKey('g', t.org).text(gram).byte(0), number, member)
	return err
}

// putInSet puts a customer's number into the set whose blocks lie under a
// key, or takes it out, and tells whether that changed the set.
func putInSet(tx Tx, set key, number uint64, member bool) (changed bool, err error) {
	k := set.u32(uint32(number / searchBlock))
	value, _, err := tx.Get(k)
	if err != nil {
		return false, err
	}
	bits := toBitmap(value)
	bit := number % searchBlock
	if had := bits[bit/8]&(1<<(bit%8)) != 0; had == member {
		return false, nil
	}
	bits[bit/8] ^= 1 << (bit % 8)
	if packed := fromBitmap(bits); len(packed) > 0 {
		return true, tx.Put(k, packed)
	}
	return true, tx.Delete(k)
}

// A blockSet is a set of customers' numbers in memory, by block.
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
	set, bit := s.at(uint32(number/searchBlock)), number%searchBlock
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

// numbers lists the set in order.
func (s blockSet) numbers() (list []uint32) {
	for _, block := range slices.Sorted(maps.Keys(s)) {
		list = appendNumbers(list, block, s[block])
	}
	return list
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
		bit := binary.BigEndian.Uint16(value) % searchBlock
		bits[bit/8] |= 1 << (bit % 8)
	}
}

func fromBitmap(bits *[bitmapSize]byte) []byte {
	numbers := appendNumbers(nil, 0, bits)
	if 2*len(numbers) >= bitmapSize {
		return bits[:]
	}
	packed := make([]byte, 0, 2*len(numbers))
	for _, n := range numbers {
		packed = binary.BigEndian.AppendUint16(packed, uint16(n))
	}
	return packed
}

func appendNumbers(numbers []uint32, block uint32, bits *[bitmapSize]byte) []uint32 {
	for i, b := range bits {
		for bit := range uint32(8) {
			if b&(1<<bit) != 0 {
				numbers = append(numbers, block*searchBlock+uint32(i)*8+bit)
			}
		}
	}
	return numbers
}

func gramSet(texts []string) map[string]bool {
	set := map[string]bool{}
	for _, text := range texts {
		for _, gram := range grams(text, true) {
			set[gram] = true
		}
	}
	return set
}

// grams cuts a folded text into its runs of three characters; padded, those
// that run over its end are among them.
func grams(text string, padded bool) []string {
	runes := []rune(text)
	ends := len(runes) - gramLength + 1
	if padded {
		ends = len(runes)
		runes = append(runes, gramPad, gramPad)
	}
	var all []string
	for i := range max(ends, 0) {
		all = append(all, string(runes[i:i+gramLength]))
	}
	return all
}

// fold makes texts alike that differ only in letter case or accents. Letters
// of the Latin script lose their marks; combining marks are dropped.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			return unicode.ToLower(r)
		}
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		r = unicode.ToLower(r)
		if base, ok := unmarked[r]; ok {
			return base
		}
		return r
	}, s)
}

// unmarked leads from a lower-case letter with a mark to the letter.
var unmarked = func() map[rune]rune {
	m := map[rune]rune{}
	for base, marked := range map[rune]string{
		'a': "àáâãäåāăąǎạảấầẩẫậắằẳẵặ", 'c': "çćĉċč", 'd': "ďđ", 'e': "èéêëēĕėęěẹẻẽếềểễệ", 'g': "ĝğġģ",
		'h': "ĥħ", 'i': "ìíîïĩīĭįıǐịỉ", 'j': "ĵ", 'k': "ķ", 'l': "ĺļľŀł", 'n': "ñńņňǹ",
		'o': "òóôõöøōŏőǒơọỏốồổỗộớờởỡợ", 'r': "ŕŗř", 's': "śŝşšș", 't': "ţťŧț",
		'u': "ùúûüũūŭůűųǔưụủứừửữự", 'w': "ŵẁẃẅ", 'y': "ýÿŷỳỵỷỹ", 'z': "źżž",
	} {
		for _, r := range marked {
			m[r] = base
		}
	}
	return m
}()
