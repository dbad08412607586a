package main

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"

	"sello/internal/blockset"
)

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

// addSlot adds up the sales of a slot of time.
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

// compareTables compares the entries of some tables with those they should have. It
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

func (v *verifier) stray(k []byte) { v.problem("entrada que no es de nada: %x", k) }

// seller returns the hash of a sale and its customer's number.
func (v *verifier) seller(seq, number uint64) uint64 {
	return v.hashNumber(v.txn.scratchOrgKey('t').u64(seq), number)
}
