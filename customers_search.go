package main

import (
	"iter"
	"math/bits"
	"slices"
	"strings"

	"sello/internal/contact"
	"sello/internal/fold"
	"sello/internal/ngram"
)

// Search finds customers by words. Each word must be part of the name, the e-mail or the
// phone, in any order (contract §19). fold says what makes no difference. The index is
// at the end.
//
// Words of digits and the punctuation of phones that follow one another are a run. A run
// matches if its digits together are part of the phone, or if they are the phone as people
// of the organization's country write it, such as "044 55 4433 2211". Otherwise each of
// its words must match, as all others must. A run is judged for each customer:
// "ana 55 4433" finds the Ana whose phone has 554433, and one whose phone has 4433 and
// whose e-mail is ana55@b.mx.

// phoneLength is how many digits at least are read as a whole phone.
const phoneLength = 7

// searchTexts are the folded texts by which the customer is found: name, e-mail
// and phone. A hidden customer is not found.
func (c *customer) searchTexts() []string {
	if c.hidden() {
		return make([]string, 3)
	}
	return []string{strings.TrimSpace(fold.Text(c.FirstName + " " + c.LastName)), fold.Text(c.Email), c.Phone}
}

// A needle is a prepared search, or a part of one. It finds a customer that has any of
// the texts, or that all parts find.
type needle struct {
	any   []*wanted
	all   []*needle
	found ngram.Found // in the block that a joiner looked at last
}

// newNeedle prepares a search. A needle without words finds nobody.
func newNeedle(search, country string) *needle {
	var parts []*needle
	words := strings.Fields(fold.Text(search))
	for i := 0; i < len(words); {
		end := i
		for end < len(words) && isPhonePart(words[end]) {
			end++
		}
		if end == i {
			if end++; slices.Contains(words[:i], words[i]) {
				i = end
				continue
			}
		}
		parts = append(parts, newPart(words[i:end], country))
		i = end
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &needle{all: parts}
}

// newPart prepares one word or one run.
func newPart(words []string, country string) *needle {
	n := new(needle)
	if len(words) == 1 {
		n.any = []*wanted{newWanted(words[0], placeName)}
	} else {
		for i, word := range words {
			if !slices.Contains(words[:i], word) {
				n.all = append(n.all, newPart(words[i:i+1], country))
			}
		}
	}
	if !isPhonePart(words[0]) {
		return n
	}
	run := strings.TrimRight(strings.TrimLeft(strings.Join(words, ""), phoneMarks), phoneMarks+"+")
	digits := strings.Map(func(r rune) rune {
		if isDigit(r) {
			return r
		}
		return -1
	}, run)
	if digits != "" && (len(words) > 1 || digits != words[0]) {
		n.any = append(n.any, newWanted(digits, placePhone))
	}
	if len(digits) < phoneLength || strings.LastIndex(run, "+") > 0 {
		return n
	}
	number := digits
	if run[0] == '+' {
		number = "+" + digits
	}
	if e164, ok := contact.Phone(number, country); ok && !strings.Contains(e164, digits) { // else the digits find it
		n.any = append(n.any, newWantedPhone(e164))
	}
	return n
}

// phoneMarks is the punctuation of phones, without the plus.
const phoneMarks = "-().·/"

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// isPhonePart reports whether a word holds only digits and the punctuation of phones.
func isPhonePart(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return !isDigit(r) && r != '+' && !strings.ContainsRune(phoneMarks, r) })
}

// in reports whether a customer with these texts is found.
func (n *needle) in(texts []string) bool {
	if slices.ContainsFunc(n.any, func(w *wanted) bool { return w.in(texts) }) {
		return true
	}
	return len(n.all) > 0 && !slices.ContainsFunc(n.all, func(part *needle) bool { return !part.in(texts) })
}

// A wanted is a text to look for in customers' texts, at places from first on. Its
// grams prove that a text holds it: one for every three characters, and the last.
type wanted struct {
	text  string
	first int
	whole bool // the phone is the text
	grams []ngram.Piece
}

func newWanted(text string, first int) *wanted {
	return &wanted{text: text, first: first, grams: ngram.Cover(text)}
}

// newWantedPhone looks for a phone in E.164. No phone has its + elsewhere than at the
// beginning, and the padding of the last gram proves the end.
func newWantedPhone(e164 string) *wanted {
	w := newWanted(e164+string(ngram.Pad), placePhone)
	w.text, w.whole = e164, true
	return w
}

// in reports whether one of a customer's texts holds the text.
func (w *wanted) in(texts []string) bool {
	switch {
	case w.whole:
		return texts[2] == w.text
	case w.first == placePhone:
		return strings.Contains(texts[2], w.text)
	}
	return strings.Contains(texts[0], w.text) || strings.Contains(texts[1], w.text) || strings.Contains(texts[2], w.text)
}

// A searchTxn is the search for customers in a transaction.
type searchTxn struct{ t *txn }

// find returns a page of the numbers of the customers that match the needle and pass
// a filter, highest first, and how many there are.
func (se *searchTxn) find(needle string, f statusFilter, p page) (numbers []uint64, total uint64, err error) {
	err = se.searchBlocks(needle, func(block uint64, found *ngram.Found) error {
		if err := se.t.customers.keep(f, block, found); err != nil {
			return err
		}
		before := total
		if total += found.Count(); total <= p.skip() || uint64(len(numbers)) == p.limit {
			return nil
		}
		for offset := range customerSet(found[:]).backward() {
			if before++; before <= p.skip() {
				continue
			}
			if uint64(len(numbers)) == p.limit {
				break
			}
			numbers = append(numbers, block*ngram.Block+offset)
		}
		return nil
	})
	return numbers, total, err
}

func (se *searchTxn) needle(search string) *needle {
	return newNeedle(search, se.t.cfg.Organization.Profile.Country)
}

// searchBlocks calls take for each block with customers that match s, highest
// block first. All calls are given the same set, filled anew.
func (se *searchTxn) searchBlocks(s string, take func(block uint64, found *ngram.Found) error) error {
	n := se.needle(s)
	if len(n.any)+len(n.all) == 0 { // no words, or only marks
		return nil
	}
	counts, err := se.t.count()
	if err != nil {
		return err
	}
	done, err := se.indexed()
	if err != nil {
		return err
	}
	if err := se.rarestFirst(n, uint32(max(done/ngram.Block, 1)-1)); err != nil {
		return err
	}
	j := joiner{txn: se.t}
	for block, unread := counts.Customers/ngram.Block, uint64(0); ; block-- {
		if unread == 0 {
			unread = min(block+1, blocksAtOnce)
			se.warmGrams(n, uint32(block+1-unread), uint32(block))
		}
		unread--
		if err := j.find(n, uint32(block)); err != nil {
			return err
		}
		if from, to := max(done+1, block*ngram.Block), min(counts.Customers, (block+1)*ngram.Block-1); from <= to {
			for c, err := range se.t.customers.between(from, to) {
				if err != nil {
					return err
				}
				if n.in(c.searchTexts()) {
					n.found.Add(uint16(c.Number % ngram.Block))
				}
			}
		}
		if n.found != (ngram.Found{}) {
			if err := take(block, &n.found); err != nil {
				return err
			}
		}
		if block == 0 {
			return nil
		}
	}
}

// blocksAtOnce is of how many blocks grams are read at once, where that is faster.
const blocksAtOnce = 32

// warmGrams tells the transaction what find reads first in the blocks from one to another, once the
// rarest come first: of most texts one or two grams, and of parts only the first.
func (se *searchTxn) warmGrams(n *needle, from, to uint32) {
	var grams []string
	for parts := []*needle{n}; len(parts) > 0; parts = parts[0].all {
		for _, w := range parts[0].any {
			for _, g := range w.grams[:min(2, len(w.grams))] {
				grams = append(grams, g.Gram)
			}
		}
	}
	var keys []key
	for block := from; block <= to; block++ {
		for _, gram := range grams {
			keys = append(keys, se.gramKey(block, gram))
		}
	}
	warm(se.t.Tx, keys, func(k key) key { return k })
}

// A customerSet is a bitmap of customers' numbers.
type customerSet []uint64

// searchAll returns all customers that match the needle, and how many there are.
func (se *searchTxn) searchAll(needle string) (set customerSet, n uint64, err error) {
	err = se.searchBlocks(needle, func(block uint64, found *ngram.Found) error {
		if set == nil { // the highest block comes first
			set = make(customerSet, (block+1)*uint64(len(found)))
		}
		copy(set[block*uint64(len(found)):], found[:])
		n += found.Count()
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

// add makes the set longer if it has to.
func (s *customerSet) add(number uint64) {
	if more := int(number/64) + 1 - len(*s); more > 0 {
		*s = append(*s, make(customerSet, more)...)
	}
	(*s)[number/64] |= 1 << (number % 64)
}

// rarestFirst orders parts and grams by the size of their postings in one block, so that
// one or two grams are enough for most blocks, and one part for blocks without a match.
func (se *searchTxn) rarestFirst(n *needle, block uint32) error {
	for _, w := range n.any {
		if err := se.rarestGramFirst(w, block); err != nil {
			return err
		}
	}
	if len(n.all) == 0 {
		return nil
	}
	sizes := map[*needle]int{}
	for _, part := range n.all {
		if err := se.rarestFirst(part, block); err != nil {
			return err
		}
		var err error
		if sizes[part], err = se.postings(part, block); err != nil {
			return err
		}
	}
	slices.SortStableFunc(n.all, func(a, b *needle) int { return sizes[a] - sizes[b] })
	return nil
}

// postings estimates how many bytes of postings prove a part.
func (se *searchTxn) postings(n *needle, block uint32) (size int, err error) {
	for _, w := range n.any {
		if len(w.grams) == 0 { // one or two characters, which are in many grams
			size += ngram.Block
			continue
		}
		value, _, err := se.t.Get(se.gramKey(block, w.grams[0].Gram))
		if err != nil {
			return 0, err
		}
		size += len(value)
	}
	return size + len(n.all)*ngram.Block, nil // a run's words are short
}

// rarestGramFirst orders the grams of one text.
func (se *searchTxn) rarestGramFirst(w *wanted, block uint32) error {
	if len(w.grams) < 2 {
		return nil
	}
	warm(se.t.Tx, w.grams, func(g ngram.Piece) key { return se.gramKey(block, g.Gram) })
	sizes := map[int]int{}
	for _, g := range w.grams {
		value, _, err := se.t.Get(se.gramKey(block, g.Gram))
		if err != nil {
			return err
		}
		sizes[g.Offset] = len(value)
	}
	slices.SortStableFunc(w.grams, func(a, b ngram.Piece) int { return sizes[a.Offset] - sizes[b.Offset] })
	return nil
}

// A joiner finds texts in blocks of the index.
type joiner struct {
	txn   *txn
	grams ngram.Joiner
}

// find sets n.found to the customers of a block that the index knows. It looks for no
// further part once none is left.
func (j *joiner) find(n *needle, block uint32) error {
	clear(n.found[:])
	for i, part := range n.all {
		if err := j.find(part, block); err != nil {
			return err
		}
		if i == 0 {
			n.found = part.found
		} else {
			n.found.Intersect(&part.found)
		}
		if n.found == (ngram.Found{}) {
			break
		}
	}
	for _, w := range n.any {
		if err := j.join(&n.found, w, block); err != nil {
			return err
		}
	}
	return nil
}

// join adds to found the customers of a block that have a text.
func (j *joiner) join(found *ngram.Found, w *wanted, block uint32) error {
	switch {
	case len(w.grams) > 0:
		return j.joinGrams(found, w, block)
	case len([]rune(w.text)) == 1:
		k := j.txn.search.gramKey(block, w.text)
		value, _, err := j.txn.Get(k)
		if err != nil {
			return err
		}
		if found.AddAll(value, w.first) != nil {
			return unreadable(k)
		}
		return nil
	}
	for e, err := range scan(j.txn.Tx, j.txn.search.gramKey(block, w.text), false) {
		if err != nil {
			return err
		}
		if found.AddAll(e.Value, w.first) != nil {
			return unreadable(e.Key)
		}
	}
	return nil
}

// joinGrams adds the customers that have all grams at their distances.
func (j *joiner) joinGrams(found *ngram.Found, w *wanted, block uint32) error {
	j.grams.Begin(w.first)
	for _, g := range w.grams {
		k := j.txn.search.gramKey(block, g.Gram)
		value, _, err := j.txn.Get(k)
		if err != nil || len(value) == 0 {
			return err
		}
		left, err := j.grams.Join(value, g.Offset)
		if err != nil {
			return unreadable(k)
		}
		if !left {
			return nil
		}
	}
	j.grams.AddTo(found)
	return nil
}

// The search index holds the grams of the customers' texts (internal/ngram).
//
//	g org            → how many customers are in the index
//	g org block gram → its postings
//
// What the newest customers change lies together, in their block. Customers enter the index 64 at
// a time, imported ones more at a time. Until then a search reads them one by one.
//
// The places of the three texts do not overlap: a name begins at 0, an e-mail has
// its @ at 400, and a phone begins at 700. So customers with the same domain have it
// at the same place. A single character has place 0, 400 or 700, by its text.

const (
	gramGroup = 64

	// importIndexed is how many imported customers may wait for the search index. They
	// enter it together, so that each gram of a block is written once for all of them.
	importIndexed = 4096

	placeName  = 0
	placeAt    = 400
	placePhone = 700
)

func (se *searchTxn) gramKey(block uint32, gram string) key {
	return orgKey('g', se.t.org).u32(block).text(gram)
}

func appendGrams(list []ngram.At, number uint64, texts []string) []ngram.At {
	list = ngram.Append(list, number, texts[0], placeName, placeName)
	list = ngram.Append(list, number, texts[1], placeAt-strings.IndexByte(texts[1], '@'), placeAt)
	return ngram.Append(list, number, texts[2], placePhone, placePhone)
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
	const most = 128 // about as many grams as a customer has
	list := make([]ngram.At, 0, most*min(last-done, ngram.Block))
	for from := done + 1; from <= last; {
		to := min(last, (from/ngram.Block+1)*ngram.Block-1)
		list = list[:0]
		for c, err := range se.t.customers.between(from, to) {
			if err != nil {
				return err
			}
			list = appendGrams(list, c.Number, c.searchTexts())
		}
		if err := se.addGrams(uint32(from/ngram.Block), list); err != nil {
			return err
		}
		from = to + 1
	}
	return putUint(se.t.Tx, orgKey('g', se.t.org), last)
}

// addGrams merges grams of customers of one block into the index.
func (se *searchTxn) addGrams(block uint32, list []ngram.At) error {
	var m ngram.Merger
	blockKey := se.gramKey(block, "")
	for g, added := range ngram.ByGram(list) {
		k := g.AppendTo(blockKey)
		value, _, err := se.t.Get(k)
		if err != nil {
			return err
		}
		if value, err = m.Merge(value, added); err != nil {
			return unreadable(k)
		}
		if err := se.t.Put(k, value); err != nil {
			return err
		}
	}
	return nil
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
	var m ngram.Merger
	block := uint32(number / ngram.Block)
	had, has := appendGrams(nil, number, before), appendGrams(nil, number, after)
	for _, gone := range had {
		if slices.Contains(has, gone) {
			continue
		}
		k := se.gramKey(block, gone.Gram.String())
		value, _, err := se.t.Get(k)
		if err != nil {
			return err
		}
		if value, err = m.Remove(value, gone.At); err != nil {
			return unreadable(k)
		}
		if len(value) == 0 {
			err = se.t.Delete(k)
		} else {
			err = se.t.Put(k, value)
		}
		if err != nil {
			return err
		}
	}
	return se.addGrams(block, slices.DeleteFunc(has, func(g ngram.At) bool { return slices.Contains(had, g) }))
}
