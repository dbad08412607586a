package main

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"unicode"
)

// Search finds customers by any part of their name, e-mail or phone. It ignores
// letter case and accents, and punctuation between the digits of a phone (contract
// §7). Its index is in grams.go.

// searchTexts are the folded texts by which the customer is found: name, e-mail
// and phone. A hidden customer is not found.
func (c *customer) searchTexts() []string {
	if c.hidden() {
		return make([]string, 3)
	}
	return []string{fold(strings.TrimSpace(c.FirstName + " " + c.LastName)), fold(c.Email), c.Phone}
}

// A needle is a prepared search: its folded text and, if it can be part of a phone
// number, its digits.
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

// in reports whether one of the texts holds the needle.
func (n needle) in(texts []string) bool {
	return n.text != "" && (strings.Contains(texts[0], n.text) || strings.Contains(texts[1], n.text) || strings.Contains(texts[2], n.text)) ||
		n.digits != "" && strings.Contains(texts[2], n.digits)
}

// A wanted is a text to look for in customers' texts, at places from first on. Its
// grams prove that a text holds it: one for every three characters, and the last.
type wanted struct {
	text  string
	first int
	grams []wantedGram
}

type wantedGram struct {
	gram   string
	offset int // from the beginning of the text
}

func newWanted(text string, first int) *wanted {
	w := &wanted{text: text, first: first}
	runes := []rune(text)
	if len(runes) < 3 {
		return w
	}
	for offset := 0; offset < len(runes); offset += 3 {
		offset = min(offset, len(runes)-3)
		w.grams = append(w.grams, wantedGram{string(runes[offset : offset+3]), offset})
	}
	return w
}

// wanted returns the texts to look for. A customer is found by any of them.
func (n needle) wanted() []*wanted {
	if n.text == "" { // empty, or only marks
		return nil
	}
	list := []*wanted{newWanted(n.text, placeName)}
	if n.digits != "" && n.digits != n.text {
		list = append(list, newWanted(n.digits, placePhone))
	}
	return list
}

// A foundSet is a bitmap of the customers of a block that were found.
type foundSet [gramBlock / 64]uint64

func (f *foundSet) add(offset uint16) { f[offset/64] |= 1 << (offset % 64) }

func (f *foundSet) join(s gramSet) {
	if s.isBitmap() {
		for i := range f {
			f[i] |= binary.LittleEndian.Uint64(s[8*i:])
		}
		return
	}
	for i := range len(s) / 2 {
		f.add(s.offset(i) % gramBlock)
	}
}

func (f *foundSet) count() (n uint64) {
	for _, word := range f {
		n += uint64(bits.OnesCount64(word))
	}
	return n
}

// backward yields the offsets, highest first.
func (f *foundSet) backward() iter.Seq[uint64] { return customerSet(f[:]).backward() }

// search returns a page of the numbers of the customers that match the needle and pass
// a filter, highest first, and how many there are.
func (t *txn) search(needle string, f statusFilter, p page) (numbers []uint64, total uint64, err error) {
	err = t.searchBlocks(needle, func(block uint64, found *foundSet) error {
		if err := t.keep(f, block, found); err != nil {
			return err
		}
		before := total
		if total += found.count(); total <= p.skip() || uint64(len(numbers)) == p.limit {
			return nil
		}
		for offset := range found.backward() {
			if before++; before <= p.skip() {
				continue
			}
			if uint64(len(numbers)) == p.limit {
				break
			}
			numbers = append(numbers, block*gramBlock+offset)
		}
		return nil
	})
	return numbers, total, err
}

// searchBlocks calls take for each block with customers that match s, highest
// block first. All calls are given the same set, filled anew.
func (t *txn) searchBlocks(s string, take func(block uint64, found *foundSet) error) error {
	n := newNeedle(s)
	list := n.wanted()
	if len(list) == 0 {
		return nil
	}
	counts, err := t.count()
	if err != nil {
		return err
	}
	done, err := t.indexed()
	if err != nil {
		return err
	}
	for _, w := range list {
		if err := t.rarestFirst(w, uint32(max(done/gramBlock, 1)-1)); err != nil {
			return err
		}
	}
	found, j := new(foundSet), joiner{txn: t}
	for block := counts.Customers / gramBlock; ; block-- {
		clear(found[:])
		if from, to := max(done+1, block*gramBlock), min(counts.Customers, (block+1)*gramBlock-1); from <= to {
			for c, err := range t.customersBetween(from, to) {
				if err != nil {
					return err
				}
				if n.in(c.searchTexts()) {
					found.add(uint16(c.Number % gramBlock))
				}
			}
		}
		for _, w := range list {
			if err := j.join(found, w, uint32(block)); err != nil {
				return err
			}
		}
		if *found != (foundSet{}) {
			if err := take(block, found); err != nil {
				return err
			}
		}
		if block == 0 {
			return nil
		}
	}
}

// A customerSet is a bitmap of customers' numbers.
type customerSet []uint64

// searchAll returns all customers that match the needle, and how many there are.
func (t *txn) searchAll(needle string) (set customerSet, n uint64, err error) {
	err = t.searchBlocks(needle, func(block uint64, found *foundSet) error {
		if set == nil { // the highest block comes first
			set = make(customerSet, (block+1)*uint64(len(found)))
		}
		copy(set[block*uint64(len(found)):], found[:])
		n += found.count()
		return nil
	})
	return set, n, err
}

func (s customerSet) has(number uint64) bool {
	word := number / 64
	return word < uint64(len(s)) && s[word]&(1<<(number%64)) != 0
}

// backward yields the numbers in the set, highest first.
func (s customerSet) backward() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i, word := range slices.Backward(s) {
			for word != 0 {
				bit := 63 - bits.LeadingZeros64(word)
				if word &^= 1 << bit; !yield(uint64(64*i + bit)) {
					return
				}
			}
		}
	}
}

func (s customerSet) add(number uint64) { s[number/64] |= 1 << (number % 64) }

// from returns the set without the numbers below number, a multiple of 64. The
// others count from it.
func (s customerSet) from(number uint64) customerSet {
	return s[min(number/64, uint64(len(s))):]
}

// numbers lists the set in order.
func (s customerSet) numbers() (list []uint64) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			list = append(list, uint64(64*i+bits.TrailingZeros64(word)))
		}
	}
	return list
}

// rarestFirst orders the grams by the size of their postings in one block, so that
// one or two grams are enough for most blocks.
func (t *txn) rarestFirst(w *wanted, block uint32) error {
	if len(w.grams) < 2 {
		return nil
	}
	sizes := map[int]int{}
	for _, g := range w.grams {
		value, _, err := t.Get(t.gramKey(block, g.gram))
		if err != nil {
			return err
		}
		sizes[g.offset] = len(value)
	}
	slices.SortStableFunc(w.grams, func(a, b wantedGram) int { return sizes[a.offset] - sizes[b.offset] })
	return nil
}

// A joiner finds texts in blocks of the index.
type joiner struct {
	txn           *txn
	before, after []placedSet // where the text may begin, by the grams looked at so far
	room          []byte      // for the sets of after
}

// join adds to found the customers of a block that have a text.
func (j *joiner) join(found *foundSet, w *wanted, block uint32) error {
	switch {
	case len(w.grams) > 0:
		return j.joinGrams(found, w, block)
	case len([]rune(w.text)) == 1:
		k := j.txn.gramKey(block, w.text)
		value, _, err := j.txn.Get(k)
		if err != nil {
			return err
		}
		return atKey(k, j.joinValue(found, w, value))
	}
	for e, err := range scan(j.txn.Tx, j.txn.gramKey(block, w.text), false) {
		if err != nil {
			return err
		}
		if err := j.joinValue(found, w, e.Value); err != nil {
			return atKey(e.Key, err)
		}
	}
	return nil
}

// joinValue adds the customers in one gram's postings, at places from w.first on.
func (j *joiner) joinValue(found *foundSet, w *wanted, value []byte) error {
	for len(value) > 0 {
		s, rest, err := cutSet(value)
		if err != nil {
			return err
		}
		if value = rest; s.place >= w.first {
			found.join(s.set)
		}
	}
	return nil
}

// joinGrams adds the customers that have all grams at their distances.
func (j *joiner) joinGrams(found *foundSet, w *wanted, block uint32) error {
	j.room = j.room[:0]
	for i, g := range w.grams {
		k := j.txn.gramKey(block, g.gram)
		value, _, err := j.txn.Get(k)
		if err != nil || len(value) == 0 {
			return err
		}
		j.before, j.after = j.after, j.before[:0]
		place := 0 // in before
		for len(value) > 0 {
			s, rest, err := cutSet(value)
			if err != nil {
				return atKey(k, err)
			}
			value = rest
			if s.place -= g.offset; s.place < w.first {
				continue
			}
			if i > 0 {
				for place < len(j.before) && j.before[place].place < s.place {
					place++
				}
				if place == len(j.before) {
					break
				}
				if j.before[place].place != s.place {
					continue
				}
				s.set = j.both(j.before[place].set, s.set)
			}
			if len(s.set) > 0 {
				j.after = append(j.after, s)
			}
		}
		if len(j.after) == 0 {
			return nil
		}
	}
	for _, s := range j.after {
		found.join(s.set)
	}
	return nil
}

// both is the intersection of two sets.
func (j *joiner) both(a, b gramSet) gramSet {
	if a.isBitmap() && b.isBitmap() {
		common := make(gramSet, gramBitmap)
		for i := 0; i < gramBitmap; i += 8 {
			binary.LittleEndian.PutUint64(common[i:], binary.LittleEndian.Uint64(a[i:])&binary.LittleEndian.Uint64(b[i:]))
		}
		return common
	}
	start := len(j.room)
	switch {
	case b.isBitmap():
		a, b = b, a
		fallthrough
	case a.isBitmap():
		for i := range len(b) / 2 {
			if offset := b.offset(i) % gramBlock; a[offset/8]&(1<<(offset%8)) != 0 {
				j.room = binary.LittleEndian.AppendUint16(j.room, offset)
			}
		}
	default:
		for len(a) > 0 && len(b) > 0 {
			switch x, y := a.offset(0), b.offset(0); {
			case x < y:
				a = a[2:]
			case x > y:
				b = b[2:]
			default:
				j.room = binary.LittleEndian.AppendUint16(j.room, x)
				a, b = a[2:], b[2:]
			}
		}
	}
	return j.room[start:len(j.room):len(j.room)]
}

// fold makes texts equal that differ only in letter case or accents. Letters
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

// unmarked maps lower-case letters with a mark to the letter without it.
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
