package main

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// toIndex returns how many customers are in the search index; 0 if there is no index,
// or that number cannot be right.
func (v *verifier) toIndex() (uint64, error) {
	n, err := v.txn.count()
	if err != nil {
		return 0, err
	}
	done, err := v.txn.search.indexed()
	if err != nil || n.Customers < importIndexed && done == 0 {
		return 0, err
	}
	if done > n.Customers || n.Customers-done >= importIndexed {
		v.problem("búsqueda: hay %d clientes en el índice", done)
		return 0, nil
	}
	return done, nil
}

// searchIndex looks up the entries that the index must have for each block.
func (v *verifier) searchIndex() error {
	if v.inIndex == 0 {
		return nil
	}
	v.want[tableSearch].entries++ // the one that says how many customers are in the index
	if !v.run.careful[tableSearch] {
		return nil
	}
	v.want[tableSearch].sum += v.hash(orgKey('g', v.txn.org), numberValue(v.inIndex))
	for from := uint64(1); from <= v.inIndex; {
		block := from / gramBlock
		var list []gramAt
		for ; from <= v.inIndex && from/gramBlock == block; from++ {
			c, err := v.txn.customers.at(from)
			if err != nil {
				return err
			}
			list = appendGrams(list, c.Number, c.searchTexts())
		}
		slices.SortFunc(list, compareGrams)
		list = slices.Compact(list)
		for len(list) > 0 {
			g := list[0].gram
			var at []occurrence
			for ; len(list) > 0 && list[0].gram == g; list = list[1:] {
				at = append(at, list[0].at)
			}
			what := subject{kind: fmt.Sprintf("búsqueda %q", g)}
			if err := v.has(tableSearch, v.txn.search.gramKey(uint32(block), g.String()), encodeOccurrences(nil, at), what); err != nil {
				return err
			}
		}
	}
	return nil
}

// hashGram returns the hash of one occurrence of a gram in a block. The secret is
// the verification's own.
func hashGram(secret [2]uint64, block uint64, g gramAt) uint64 {
	hi, lo := bits.Mul64(uint64(g.gram)^secret[0], (block<<32|uint64(g.at))^secret[1])
	hi, lo = bits.Mul64(hi^secret[1], lo^secret[0])
	return hi ^ lo
}

// expectGrams adds up where the grams of a customer's texts occur.
func (v *verifier) expectGrams(c *customer) {
	if c.Number == 0 || c.Number > v.inIndex || v.run.careful[tableSearch] {
		return
	}
	s := &v.grams
	s.list = appendGrams(s.list[:0], c.Number, c.searchTexts())
	sum := &v.want[tableSearch].sum
	chars := s.chars[:0] // a single character is at its text's place, so it counts once for each text
	for _, g := range s.list {
		if g.gram&(1<<42-1) != 0 {
			*sum += hashGram(v.run.secret, c.Number/gramBlock, g)
		} else if !slices.Contains(chars, g) {
			chars = append(chars, g)
			*sum += hashGram(v.run.secret, c.Number/gramBlock, g)
		}
	}
	s.chars = chars
}

// addIndexed adds up what an entry of the index says. It reports whether the entry is
// encoded as sello encodes it.
func (v *verifier) addIndexed(e Entry) bool {
	if len(e.Key) == 5 {
		return true // how many customers are in the index, which toIndex has read
	}
	if len(e.Key) < 9 {
		return false
	}
	g, ok := gramIn(e.Key[9:])
	if !ok {
		return false
	}
	s, block := &v.grams, uint64(uint32In(e.Key[5:]))
	at, err := appendOccurrences(s.at[:0], e.Value)
	if err != nil {
		return false
	}
	s.at = at
	if s.value = encodeOccurrences(s.value[:0], s.at); len(s.at) == 0 || !bytes.Equal(s.value, e.Value) {
		return false
	}
	sum := &v.have[tableSearch].sum
	for i, at := range s.at {
		if i > 0 && at <= s.at[i-1] {
			return false
		}
		*sum += hashGram(v.run.secret, block, gramAt{g, at})
	}
	return true
}

// gramIn reads a gram as String writes it.
func gramIn(text []byte) (gram, bool) {
	var runes [3]rune
	n := 0
	for rest := text; len(rest) > 0; n++ {
		r, size := utf8.DecodeRune(rest)
		if n == len(runes) || r == 0 {
			return 0, false
		}
		runes[n], rest = r, rest[size:]
	}
	g := newGram(runes[0], runes[1], runes[2])
	return g, n > 0 && string(g.appendTo(nil)) == string(text)
}
