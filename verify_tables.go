package main

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
)

// A table is one of those that a verification compares. The last ones are none of
// the store's: they are sums of the same kind over something that two parts of a
// verification both see.
type table int

const (
	tableSlugs table = iota
	tableIdentities
	tableDue
	tableAPIKeys
	tableMovements
	tableSales
	tableRedemptions
	tableCustomers
	tablePurchases
	tableReturns
	tableSalesByID
	tableRedemptionsByID
	tableCodes
	tableExternalIDs
	tableRewardCounts
	tableSearch
	tableKeyList
	tableSalesByTime
	tableSlots
	tableSaleLog
	tableTotals
	tableTallies
	tableActive
	tableTiers
	tableRecords
	tableRewardUses // those records of customers that say how often they redeemed a reward
	tableSellers    // the customer of each sale
	tableRedeemed   // the debit of each redemption
	manyTables
)

// tables say how each is compared.
var tables = [manyTables]struct {
	name    string
	letter  byte   // of an organization's table
	kind    string // what follows the organization in its keys
	scanned bool   // by scanTable; else its records are counted where they are read
	compare comparison
}{
	tableSlugs:           {name: "slugs", compare: byEntry},
	tableIdentities:      {name: "identities"},
	tableDue:             {name: "due"},
	tableAPIKeys:         {name: "API keys", compare: byCount},
	tableMovements:       {name: "movements", letter: 'm', compare: byCount},
	tableSales:           {name: "sales of customers", letter: 't', compare: byCount},
	tableRedemptions:     {name: "redemptions", letter: 'r', compare: byCount},
	tableCustomers:       {name: "customers", letter: 'l', kind: "c", scanned: true},
	tablePurchases:       {name: "purchases", letter: 'l', kind: "p", scanned: true},
	tableReturns:         {name: "returns", letter: 'l', kind: "r", scanned: true},
	tableSalesByID:       {name: "sales by id", letter: 'T', scanned: true},
	tableRedemptionsByID: {name: "redemptions by id", letter: 'R', scanned: true},
	tableCodes:           {name: "codes", letter: 'w', scanned: true},
	tableExternalIDs:     {name: "externalIds", letter: 'x', scanned: true},
	tableRewardCounts:    {name: "reward counts", letter: 's', scanned: true, compare: byEntry},
	tableSearch:          {name: "search index", letter: 'g', scanned: true, compare: byContent},
	tableKeyList:         {name: "key list", letter: 'k', scanned: true, compare: byCount},
	tableSalesByTime:     {name: "sales by time", letter: 'h', scanned: true},
	tableSlots:           {name: "slots of time", letter: 'e', scanned: true, compare: byContent},
	tableSaleLog:         {name: "sale log", letter: 'j', scanned: true, compare: byEntry},
	tableTotals:          {name: "customers' totals", letter: 'f', scanned: true, compare: byEntry},
	tableTallies:         {name: "tallies", letter: 'y', scanned: true, compare: byEntry},
	tableActive:          {name: "active customers", letter: 'z', scanned: true, compare: byContent},
	tableTiers:           {name: "tiers", letter: 'b', scanned: true, compare: byEntry},
	tableRecords:         {name: "customer records", letter: 'c', compare: byCount},
	tableRewardUses:      {compare: byContent},
	tableSellers:         {compare: byContent},
	tableRedeemed:        {compare: byContent},
}

// A comparison is how what is in a table is compared with what should be.
type comparison int

const (
	bySum     comparison = iota // over its entries, each with its value
	byContent                   // by a sum over what its entries say: several records make one
	byEntry                     // each is looked up: there are few
	byCount                     // of its entries, which are primary or compared where they are read
)

// Tables in the order in which they are told of.
var (
	tablesOfAll = []table{tableIdentities, tableDue, tableAPIKeys, tableSlugs}
	tablesOfOne = []table{
		tableMovements, tableSales, tableRedemptions, tableCustomers, tablePurchases, tableReturns, tableSalesByID,
		tableRedemptionsByID, tableCodes, tableExternalIDs, tableRewardCounts, tableSearch, tableKeyList, tableSalesByTime,
		tableSlots, tableSaleLog, tableTotals, tableTallies, tableActive, tableTiers, tableRecords,
		tableRewardUses, tableSellers, tableRedeemed,
	}
)

type tableSet [manyTables]bool

func (s *tableSet) join(o *tableSet) {
	for t := range s {
		s[t] = s[t] || o[t]
	}
}

// alwaysCareful are the tables whose entries are looked up in any case.
func alwaysCareful() (s tableSet) {
	for t := range tables {
		s[t] = tables[t].compare == byEntry
	}
	return s
}

// A tableSum is how many entries there are, and the sum of their hashes. Two
// tables with the same sum have the same entries but for a chance of one in 2^64:
// the hash has a new seed in each verification.
type tableSum struct{ entries, sum uint64 }

func (s *tableSum) add(hash uint64) { s.entries++; s.sum += hash }
func (s *tableSum) join(o tableSum) { s.entries += o.entries; s.sum += o.sum }

// hash is that of an entry.
func (v *verifier) hash(k, value []byte) uint64 {
	b := binary.LittleEndian.AppendUint16(v.space[:0], uint16(len(k)))
	v.space = append(append(b, k...), value...)
	return maphash.Bytes(v.run.seed, v.space)
}

// hashNumber is hash of a key and a number.
func (v *verifier) hashNumber(k []byte, n uint64) uint64 {
	var value [8]byte
	binary.LittleEndian.PutUint64(value[:], n)
	return v.hash(k, value[:])
}

// has says that a table must have an entry.
func (v *verifier) has(t table, k key, value []byte, what subject) error {
	v.want[t].add(v.hash(k, value))
	if !v.run.careful[t] && tables[t].compare != byCount {
		return nil
	}
	kept, ok, err := v.Get(k)
	if err != nil {
		return err
	}
	if !ok || !bytes.Equal(kept, value) {
		v.missed[t] = true
		v.problem("%v: falta o difiere en %s", what, tables[t].name)
	}
	return nil
}

// doubt has what must be in a table looked up entry by entry.
func (v *verifier) doubt(t table) { v.doubted[t] = true }

// scanTable adds up what is in a table, of which the keys have a prefix.
func (v *verifier) scanTable(t table, prefix key) error {
	for e, err := range scan(v.Tx, prefix, false) {
		if err != nil {
			return err
		}
		switch {
		case tables[t].compare == byCount:
			v.have[t].entries++
		case tables[t].compare == byContent && !v.run.careful[t]:
			v.have[t].entries++
			if !v.addContent(t, e) {
				v.doubt(t)
			}
		default:
			v.have[t].add(v.hash(e.Key, e.Value))
		}
	}
	return nil
}

// addContent adds up what an entry says. It reports false if that is not said as
// sello says it.
func (v *verifier) addContent(t table, e Entry) bool {
	switch t {
	case tableSlots:
		return v.addSlot(e)
	case tableActive:
		return v.addActive(e)
	default:
		return v.addIndexed(e)
	}
}

// addSlot adds up the sales of a slot of time.
func (v *verifier) addSlot(e Entry) bool {
	n, err := decodeRecord[typeCount](e.Value)
	if err != nil {
		return false
	}
	v.buf.b = append(v.buf.b[:0], recordVersion)
	if n.encode(&v.buf); *n == (typeCount{}) || !bytes.Equal(v.buf.b, e.Value) {
		return false
	}
	v.have[tableSlots].sum += n.purchases*v.hashNumber(e.Key, kindPurchase) + n.returns*v.hashNumber(e.Key, kindReturn)
	return true
}

// addActive adds up the customers of a block of those who bought.
func (v *verifier) addActive(e Entry) bool {
	end := len(e.Key) - 4 // of the set
	if end < 5 {
		return false
	}
	set, first := e.Key[:end], uint64(uint32In(e.Key[end:]))*setBlock
	sum := &v.have[tableActive].sum
	if len(e.Value) == bitmapSize {
		members := 0
		for i, b := range e.Value {
			for members += bits.OnesCount8(b); b != 0; b &= b - 1 {
				*sum += v.hashNumber(set, first+uint64(8*i+bits.TrailingZeros8(b)))
			}
		}
		return 2*members >= bitmapSize // else they are kept as offsets
	}
	last := -1
	for value := e.Value; len(value) >= 2; value = value[2:] {
		offset := int(binary.BigEndian.Uint16(value))
		if offset <= last || offset >= setBlock {
			return false
		}
		last = offset
		*sum += v.hashNumber(set, first+uint64(offset))
	}
	return len(e.Value) > 0 && len(e.Value) < bitmapSize && len(e.Value)%2 == 0
}

// compareTables compares what is in some tables with what should be. A
// difference is told of where entries were looked up; else they will be.
func (v *verifier) compareTables(list []table) {
	for _, t := range list {
		want, have := v.want[t], v.have[t]
		careful, how := v.run.careful[t], tables[t].compare
		switch {
		case tables[t].name == "" && careful: // the records that made it doubtful were looked at one by one
		case how == byCount || careful && want.entries != have.entries:
			equal(v, subject{kind: "entradas de " + tables[t].name}, "", have.entries, want.entries)
		case careful && want.sum != have.sum && !v.missed[t]:
			v.problem("entradas de %s: no son las que deberían", tables[t].name)
		case careful:
		case want.sum != have.sum || how == bySum && want != have:
			v.doubt(t)
		}
	}
}

// Tables in which something may be that belongs to none of the others, and those
// of organizations.
const (
	lettersOfAll = "vapdu"
	lettersOfOne = "cmtriIqknlTRwxsghejfyzb"
)

// A keySpan is the keys from one on, before another.
type keySpan struct{ from, to key }

// knownSpans are where there may be entries when there are so many
// organizations, in order.
func knownSpans(organizations uint32) (known []keySpan) {
	ofEach := func(prefix key) {
		known = append(known, keySpan{slices.Clone(prefix).u32(1), slices.Clone(prefix).u32(organizations + 1)})
	}
	for letter := range 256 {
		whole := newKey(byte(letter))
		switch {
		case letter == 'o':
			number := whole.byte('n')
			ofEach(newKey('o').byte('c'))
			known = append(known, keySpan{number, slices.Clone(number).byte(0)})
			slugs := newKey('o').byte('s')
			known = append(known, keySpan{slugs, slugs.after()})
		case strings.IndexByte(lettersOfAll, byte(letter)) >= 0:
			known = append(known, keySpan{whole, whole.after()})
		case strings.IndexByte(lettersOfOne, byte(letter)) >= 0:
			ofEach(whole)
		}
	}
	return known
}

// strays looks for entries of a table or an organization that there is not. It
// passes over the others.
func (v *verifier) strays(organizations uint32) error {
	from := key{0}
	for _, span := range append(knownSpans(organizations), keySpan{}) {
		for e, err := range v.Scan(from, span.from, false) {
			if err != nil {
				return err
			}
			v.stray(e.Key)
		}
		from = span.to
	}
	return nil
}

func (v *verifier) stray(k []byte) { v.problem("entrada que no es de nada: %x", k) }
