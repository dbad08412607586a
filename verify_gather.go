package main

import "bytes"

// Movements, sales and redemptions are stored in the order in which they happened,
// but checked customer by customer. So the customers are taken in several rounds,
// by their ids. Each round reads these tables from end to end and keeps the records
// of its customers. That takes bounded memory and reads the store in key order;
// following each account's chain would jump about in the store.
//
// A gather may lack a record: when there is no more room, or when the record names
// another customer than the one whose chain leads to it. Such a record is looked
// up. That changes what a verification costs, and nothing that it finds.

// Kinds of records that are gathered.
const (
	gatherMovements = iota
	gatherSales
	gatherRedemptions
	gatherKinds
)

// gatherBytes is roughly how many bytes of room a record of each kind takes.
var gatherBytes = [gatherKinds]uint64{200, 320, 240}

// A gather holds the records of the customers in a span of ids.
type gather struct {
	from, to id  // to is excluded; a zero to means that there is no end
	expected int // bytes of records, in each part
	parts    []gatherPart
}

// A gatherPart holds what one goroutine has gathered from records in a row. Parts
// are in the order of these records.
type gatherPart struct {
	bytes   []byte // of the records, one after the other
	records []gatheredRecord
	newest  map[id][gatherKinds]int32 // each customer's last record of each kind, as its place in records from 1 on; 0: none
}

type gatheredRecord struct {
	seq    uint64
	at     uint32 // in bytes
	size   uint32
	before int32 // the previous record of the same customer and kind, as in newest
}

// recordSize is the room that a record takes besides its bytes: in records and, for some, in newest.
const recordSize = 64

func (g *gather) has(cust id) bool {
	return bytes.Compare(cust[:], g.from[:]) >= 0 && (g.to == (id{}) || bytes.Compare(cust[:], g.to[:]) < 0)
}

// customerIn returns the customer that a record belongs to.
func customerIn(value []byte) (id, error) {
	c := readingRecord(value)
	var cust id // the first field of each kind
	c.id(&cust)
	return cust, c.err()
}

func (p *gatherPart) add(kind int, cust id, seq uint64, value []byte) {
	newest := p.newest[cust]
	p.records = append(p.records, gatheredRecord{seq, uint32(len(p.bytes)), uint32(len(value)), newest[kind]})
	p.bytes = append(p.bytes, value...)
	newest[kind] = int32(len(p.records))
	p.newest[cust] = newest
}

// A trail leads through a customer's records of one kind, newest first.
type trail struct {
	g    *gather
	cust id
	kind int
	part int   // the next part to look into is the one before
	at   int32 // as in newest
}

func (g *gather) trail(cust id, kind int) trail {
	t := trail{g: g, cust: cust, kind: kind}
	if g != nil {
		t.part = len(g.parts)
	}
	return t
}

// record returns the record that the trail is at; nil at its end.
func (t *trail) record() *gatheredRecord {
	for t.at == 0 {
		if t.part == 0 {
			return nil
		}
		t.part--
		t.at = t.g.parts[t.part].newest[t.cust][t.kind]
	}
	return &t.g.parts[t.part].records[t.at-1]
}

// take returns the bytes of the record that the trail is at, and goes on.
func (t *trail) take(r *gatheredRecord) []byte {
	t.at = r.before
	return t.g.parts[t.part].bytes[r.at : r.at+r.size : r.at+r.size]
}

// find returns the record at seq; nil if it was not gathered. Each call has to be
// for an earlier record than the one before.
func (t *trail) find(seq uint64) []byte {
	for r := t.record(); r != nil && r.seq >= seq; r = t.record() {
		if value := t.take(r); r.seq == seq {
			return value
		}
	}
	return nil
}
