package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"sello/internal/blockset"
	"sello/internal/ngram"
)

// Tables compared as sums of hashes: of the entries that each has, and of the entries that records
// say it must have. Also strays (entries of no table or organization), the search index and merged
// customers.

// scanTable adds up the entries of a table whose keys begin with prefix.
func (v *verifier) scanTable(t table, prefix key) error {
	for e, err := range scan(v.txn.Tx, prefix, false) {
		if err != nil {
			return err
		}
		v.have[t].entries++
		switch {
		case t.is(byCount):
		case v.run.careful[t]:
			v.have[t].sum += v.hash(e.Key, e.Value)
		case !v.addContent(t, e):
			v.doubt(t)
		}
	}
	return nil
}

// addContent adds up what an entry says. It reports whether the entry is encoded as
// sello encodes it.
func (v *verifier) addContent(t table, e Entry) bool {
	switch t {
	case tableSlots:
		return v.addSlot(e)
	case tableActive, tableAuditIndex, tableRedemptionState, tableRedeemedRewards, tableVoucherExpiries:
		return t.has(e.Key) && v.addBlock(t, e)
	case tableSearch:
		return v.addIndexed(e)
	default: // one record says it all
		v.have[t].sum += v.hash(e.Key, e.Value)
		return true
	}
}

func (v *verifier) addSlot(e Entry) bool {
	n, err := decodeRecord[typeCount](e.Value)
	if err != nil {
		return false
	}
	c := v.txn.scratch()
	if n.fields(c); *n == (typeCount{}) || !bytes.Equal(c.b, e.Value) {
		return false
	}
	v.have[tableSlots].sum += n.purchases*v.hashNumber(e.Key, kindPurchase) + n.returns*v.hashNumber(e.Key, kindReturn)
	return true
}

// addBlock adds up the numbers in a block of a set.
func (v *verifier) addBlock(t table, e Entry) bool {
	first, sum := t.block(e.Key)*blockset.Block, &v.have[t].sum
	if len(e.Value) == blockset.Bytes {
		members := 0
		for i, b := range e.Value {
			for members += bits.OnesCount8(b); b != 0; b &= b - 1 {
				*sum += v.hashNumber(e.Key, first+uint64(8*i+bits.TrailingZeros8(b)))
			}
		}
		return 2*members >= blockset.Bytes // a smaller set is kept as offsets
	}
	last := -1
	for value := e.Value; len(value) >= 2; value = value[2:] {
		offset := int(binary.BigEndian.Uint16(value))
		if offset <= last || offset >= blockset.Block {
			return false
		}
		last = offset
		*sum += v.hashNumber(e.Key, first+uint64(offset))
	}
	return len(e.Value) > 0 && len(e.Value) < blockset.Bytes && len(e.Value)%2 == 0
}

// compareTables compares the entries of some tables with the entries that they should have. It
// reports a difference where entries were looked up or counted, else it doubts the table.
func (v *verifier) compareTables(list []table) {
	for _, t := range list {
		want, have := v.want[t], v.have[t]
		careful := v.run.careful[t]
		switch {
		case t.is(untold) && careful: // the records that raised the doubt were checked one by one
		case t.is(byCount) || careful && want.entries != have.entries:
			equal(v, subject{kind: "entradas de " + t.inWords()}, "", have.entries, want.entries)
		case careful && want.sum != have.sum && !v.missed[t]:
			v.problem("entradas de %s: no son las que deberían", t.inWords())
		case careful:
		case want.sum != have.sum:
			v.doubt(t)
		}
	}
}

// A keySpan is the keys with from <= key < to.
type keySpan struct{ from, to key }

// knownSpans returns the spans that may have entries when there are so many
// organizations, in order.
func knownSpans(organizations uint32) (known []keySpan) {
	for t := range manyTables {
		k := t.fixed()
		switch {
		case t.org() == len(k):
			known = append(known, keySpan{slices.Clone(k).u32(1), slices.Clone(k).u32(organizations + 1)})
		case len(k) == len(keyParts[t]): // fixed is a whole key
			known = append(known, keySpan{k, slices.Clone(k).byte(0)})
		default:
			known = append(known, keySpan{k, k.after()})
		}
	}
	slices.SortFunc(known, func(a, b keySpan) int { return bytes.Compare(a.from, b.from) })
	return slices.CompactFunc(known, func(a, b keySpan) bool { return bytes.Equal(a.from, b.from) })
}

// strays reports entries of tables or organizations that do not exist. It passes over
// all other entries.
func (v *verifier) strays(organizations uint32) error {
	return v.straysBetween(key{0}, knownSpans(organizations), nil)
}

// straysBetween reports the entries with from <= key < to that are in none of the spans. These
// are in order; to is nil where there is no end.
func (v *verifier) straysBetween(from key, spans []keySpan, to key) error {
	for _, span := range append(spans, keySpan{from: to}) {
		for e, err := range v.txn.Scan(from, span.from, false) {
			if err != nil {
				return err
			}
			v.stray(e.Key)
		}
		from = span.to
	}
	return nil
}

// strayParts reports entries of the organization that are of no table, though their letter
// is one: where each table with the letter has a byte of its own after the organization.
func (v *verifier) strayParts() error {
	parts, mixed := map[byte][]keySpan{}, map[byte]bool{}
	for t := range manyTables {
		p := keyParts[t]
		switch letter := p[0].fixed; {
		case t.org() != 1:
		case len(p) > 2 && p[2].name == "":
			parts[letter] = append(parts[letter], keySpan{t.in(v.txn.org), t.in(v.txn.org).after()})
		default:
			mixed[letter] = true
		}
	}
	for _, letter := range slices.Sorted(maps.Keys(parts)) {
		if mixed[letter] {
			continue
		}
		all := orgKey(letter, v.txn.org)
		slices.SortFunc(parts[letter], func(a, b keySpan) int { return bytes.Compare(a.from, b.from) })
		if err := v.straysBetween(all, parts[letter], all.after()); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) seller(seq, number uint64) uint64 {
	return v.hashNumber(v.txn.scratchOrgKey('t').u64(seq), number)
}

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
		block := from / ngram.Block
		var list []ngram.At
		for ; from <= v.inIndex && from/ngram.Block == block; from++ {
			c, err := v.txn.customers.at(from)
			if err != nil {
				return err
			}
			list = appendGrams(list, c.Number, c.searchTexts())
		}
		slices.SortFunc(list, ngram.Compare)
		list = slices.Compact(list)
		for len(list) > 0 {
			g := list[0].Gram
			var at []ngram.Occurrence
			for ; len(list) > 0 && list[0].Gram == g; list = list[1:] {
				at = append(at, list[0].At)
			}
			what := subject{kind: fmt.Sprintf("búsqueda %q", g)}
			if err := v.has(tableSearch, v.txn.search.gramKey(uint32(block), g.String()), ngram.Encode(nil, at), what); err != nil {
				return err
			}
		}
	}
	return nil
}

// hashGram returns the hash of one occurrence of a gram in a block. The secret is
// the verification's own.
func hashGram(secret [2]uint64, block uint64, g ngram.At) uint64 {
	hi, lo := bits.Mul64(uint64(g.Gram)^secret[0], (block<<32|uint64(g.At))^secret[1])
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
		if !g.Gram.IsSingle() {
			*sum += hashGram(v.run.secret, c.Number/ngram.Block, g)
		} else if !slices.Contains(chars, g) {
			chars = append(chars, g)
			*sum += hashGram(v.run.secret, c.Number/ngram.Block, g)
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
	g, ok := ngram.Parse(e.Key[9:])
	if !ok {
		return false
	}
	s, block := &v.grams, uint64(uint32In(e.Key[5:]))
	at, err := ngram.Decode(s.at[:0], e.Value)
	if err != nil {
		return false
	}
	s.at = at
	if s.value = ngram.Encode(s.value[:0], s.at); len(s.at) == 0 || !bytes.Equal(s.value, e.Value) {
		return false
	}
	sum := &v.have[tableSearch].sum
	for i, at := range s.at {
		if i > 0 && at <= s.at[i-1] {
			return false
		}
		*sum += hashGram(v.run.secret, block, ngram.At{Gram: g, At: at})
	}
	return true
}

// A customer is checked together with its stubs (merges.go): a sale of one of them may
// have returns by another, and a lot that one earned may be spent by another.

func (v *verifier) readMerges() (*merges, error) {
	m := &merges{stubs: map[id][]id{}, into: map[id]id{}}
	for s, err := range stubEntries(v.txn.Tx, orgKey('J', v.txn.org)) {
		if err != nil {
			return nil, err
		}
		stub, err := v.txn.customers.byID(s.id)
		if err != nil {
			return nil, err
		}
		if stub == nil || stub.MergedInto == (id{}) {
			v.problem("fusiones: %s no es un cliente que se fusionó", s.id)
			continue
		}
		if _, twice := m.into[s.id]; !twice {
			m.into[s.id] = stub.MergedInto
			m.stubs[stub.MergedInto] = append(m.stubs[stub.MergedInto], s.id)
		}
	}
	return m, nil
}

// stub checks what a merged customer still has of its own. The rest is checked with its
// survivor.
func (v *verifier) stub(c *customer) error {
	what := subject{kind: "cliente", id: c.ID}
	survivor, err := v.txn.customers.byID(c.MergedInto)
	if err != nil {
		return err
	}
	if survivor == nil || survivor.MergedInto != (id{}) {
		v.problem("%v: se fusionó con %s, que no existe o también se fusionó", what, c.MergedInto)
		return nil
	}
	if v.merges.into[c.ID] != survivor.ID {
		v.problem("%v: falta en %s", what, tableMerges.inWords())
	}
	if !c.hidden() {
		v.problem("%v: se fusionó y su estado es %s", what, c.Status)
	}
	equal(v, what, ": total gastado", c.TotalSpent, 0)
	equal(v, what, ": compras", c.Purchases, 0)
	equal(v, what, ": última compra", c.LastSaleAt, 0)
	return v.has(tableMerges, v.txn.merges.stubKey(survivor.Number, c.Number), c.ID[:], what)
}

func (v *verifier) family(c *customer) ([]*customer, error) {
	list := []*customer{c}
	for _, cust := range v.merges.stubs[c.ID] {
		stub, err := v.txn.customers.byID(cust)
		if err != nil {
			return nil, err
		}
		if stub == nil {
			continue // told by readMerges
		}
		list = append(list, stub)
	}
	return list, nil
}

// takeOver plays the credit of a merge that moves a lot.
func (r *replayer) takeOver(m *movement) {
	u := m.Uses[0]
	origin, ok := r.origin(u)
	if !ok || len(m.Uses) > 1 || u.Amount != m.Amount || m.Expires != u.Expires || m.AvailFrom != 0 && m.AvailFrom != origin.AvailFrom {
		r.v.problem("%v: %s mueve un lote que no existe", r.what, m.id())
	}
	left := m.Amount
	if m.AvailFrom > 0 {
		r.pending += m.Amount
	} else {
		left -= min(max(-r.balance, 0), m.Amount)
		r.balance += m.Amount
	}
	r.keep(creditLot{lot{Seq: u.Seq, AvailFrom: m.AvailFrom, Expires: u.Expires, Left: left}, origin.sale})
}

// origin returns the lot that a movement names, as its credit made it, if a stub or the
// customer itself has that credit.
func (r *replayer) origin(u use) (creditLot, bool) {
	if r.family == nil {
		return creditLot{}, false
	}
	l, ok := r.family.lots[u.Seq]
	return l, ok && l.Expires == u.Expires
}

// inherited returns the lot of a stub that a cancellation gives back to, empty if the
// account does not have it: it was spent when the stub was merged. nil: there is none.
func (r *replayer) inherited(u use) *creditLot {
	l, ok := r.origin(u)
	if !ok {
		return nil
	}
	l.AvailFrom, l.Left = 0, 0
	r.keep(l)
	return r.lot(u.Seq)
}

// compareOpening compares the opening balance with the movement that gave it. A customer
// without an opening balance has a stub's.
func (r *replayer) compareOpening(a *account) {
	opening := r.opening
	if f := r.family; f != nil {
		stub := a.customer.MergedInto != (id{})
		if stub && opening != 0 {
			f.openings = append(f.openings, opening)
		}
		switch {
		case stub:
			opening = 0
		case opening == 0 && slices.Contains(f.openings, a.Opening):
			opening = a.Opening
		case opening == 0 && len(f.openings) > 0:
			opening = f.openings[0]
		}
	}
	equal(r.v, r.what, ": saldo inicial", a.Opening, opening)
}
