package main

import (
	"slices"
	"strings"

	"sello/internal/ngram"
)

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
