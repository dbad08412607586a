package main

import (
	"bytes"
	"slices"
)

// Movements, sales and redemptions lie in the order in which they happened, and
// are looked at customer by customer. So the customers are taken in several
// rounds, by their ids: each round reads these tables from end to end and keeps
// the records of its customers. That takes a bounded room, and reads the store in
// the order of its keys, where following each account's chain would jump about
// in it.
//
// What a gather lacks (for there is no more room, or a record names another
// customer than the one whose chain leads to it) is looked up: it changes
// what a verification costs, and nothing that it finds.

// Kinds of records that are gathered.
const (
	gatherMovements = iota
	gatherSales
	gatherRedemptions
	gatherKinds
)

// gatherBytes are about how many bytes of room a record of each kind takes.
var gatherBytes = [gatherKinds]uint64{200, 320, 240}

// A gather is what was gathered of the customers in a span of ids.
type gather struct {
	from, to id  // the last one is not in it, unless it is zero: then there is no end
	expected int // bytes of records, in each part
	parts    []gatherPart
}

// A gatherPart is what one goroutine has gathered, of some records in a row.
// Parts are in the order of these.
type gatherPart struct {
	bytes   []byte // of the records, one behind the other
	records []gatheredRecord
	newest  map[id][gatherKinds]int32 // a customer's last record of each kind, as its place in records from 1 on; 0: none
}

type gatheredRecord struct {
	seq    uint64
	at     uint32 // in bytes
	size   uint32
	before int32 // the record before it of the same customer and kind, as in newest
}

// recordSize is what a record takes beside its bytes: in records and, for some, in newest.
const recordSize = 64

func (g *gather) has(cust id) bool {
	return bytes.Compare(cust[:], g.from[:]) >= 0 && (g.to == (id{}) || bytes.Compare(cust[:], g.to[:]) < 0)
}

// customerIn is whose record it is.
func customerIn(kind int, value []byte) (id, error) {
	r, err := recordReader(value)
	if err != nil {
		return id{}, err
	}
	switch kind {
	case gatherSales:
		r.take(16)
	case gatherRedemptions:
		r.take(16)
		r.take(r.uint())
	}
	return r.id(), r.err
}

// fill gathers one part of so many.
func (v *verifier) fill(g *gather, part, of int) error {
	p := &g.parts[part]
	p.bytes, p.records = p.bytes[:0], p.records[:0]
	if p.newest == nil {
		p.bytes, p.newest = make([]byte, 0, g.expected), map[id][gatherKinds]int32{}
	}
	clear(p.newest)
	n, err := v.count()
	if err != nil {
		return err
	}
	room := v.run.room / of
	for kind, table := range [gatherKinds]struct {
		letter byte
		last   uint64
	}{{'m', n.Movements}, {'t', n.Sales}, {'r', n.Redemptions}} {
		from, to := orgKey(table.letter, v.org), orgKey(table.letter, v.org).after()
		if part > 0 {
			from = from.u64(table.last/uint64(of)*uint64(part) + 1)
		}
		if part < of-1 {
			to = orgKey(table.letter, v.org).u64(table.last/uint64(of)*uint64(part+1) + 1)
		}
		for e, err := range v.Scan(from, to, false) {
			if err != nil {
				return err
			}
			cust, err := customerIn(kind, e.Value)
			if err != nil {
				return err
			}
			if len(e.Key) != 13 || !g.has(cust) {
				continue
			}
			if len(p.bytes)+recordSize*len(p.records)+len(e.Value) > room {
				return nil
			}
			p.add(kind, cust, uintIn(e.Key[5:]), e.Value)
		}
	}
	return nil
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
	part int   // next to look into is the one before
	at   int32 // as in newest
}

func (g *gather) trail(cust id, kind int) trail {
	t := trail{g: g, cust: cust, kind: kind}
	if g != nil {
		t.part = len(g.parts)
	}
	return t
}

// record is the one that the trail is at; nil at its end.
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

// find returns the record at seq, which comes before those that were found
// earlier; nil if it was not gathered.
func (t *trail) find(seq uint64) []byte {
	for r := t.record(); r != nil && r.seq >= seq; r = t.record() {
		if value := t.take(r); r.seq == seq {
			return value
		}
	}
	return nil
}

// recordAt returns a record of which the trail may know.
func (v *verifier) recordAt(t *trail, letter byte, seq uint64) ([]byte, error) {
	if value := t.find(seq); value != nil {
		return value, nil
	}
	value, ok, err := v.Get(v.hotOrgKey(letter).u64(seq))
	if err == nil && !ok {
		err = errRecord
	}
	return value, err
}

// A round is the customers that are gathered at a time, in several spans.
type round []id // where spans begin, and where the last one ends

// partsOfRound is how many spans of customers there are for each goroutine.
const partsOfRound = 4

// rounds divides the customers.
func (v *verifier) rounds() ([]round, error) {
	n, err := v.count()
	if err != nil {
		return nil, err
	}
	bytes := n.Movements*gatherBytes[gatherMovements] + n.Sales*gatherBytes[gatherSales] + n.Redemptions*gatherBytes[gatherRedemptions]
	const few = 256 // customers are not worth a span
	inRound := min(uint64(partsOfRound*v.run.workers), n.Customers/few+1)
	spans := (min(bytes, 1<<36)/uint64(max(v.run.room, 1)) + 1) * inRound
	begins := []id{{}}
	for i := uint64(1); i < min(spans, n.Customers); i++ {
		value, _, err := v.Get(v.hotOrgKey('l').byte('c').u64(n.Customers * i / spans))
		if err != nil {
			return nil, err
		}
		if len(value) == 16 { // else the span before it is longer
			begins = append(begins, id(value))
		}
	}
	slices.SortFunc(begins, compareIDs)
	begins = slices.Compact(begins)
	var list []round
	for chunk := range slices.Chunk(begins, int(inRound)) {
		list = append(list, append(round(nil), chunk...))
	}
	for i := range list {
		var end id
		if i+1 < len(list) {
			end = list[i+1][0]
		}
		list[i] = append(list[i], end)
	}
	return list, nil
}

// allCustomers checks every customer, round by round.
func (v *verifier) allCustomers() error {
	rounds, err := v.rounds()
	if err != nil {
		return err
	}
	v.gathered = &gather{parts: make([]gatherPart, v.run.workers), expected: v.run.room / v.run.workers * 2 / 3}
	if len(rounds) == 1 {
		v.gathered.expected = 0 // far less may do
	}
	for _, r := range rounds {
		v.gathered.from, v.gathered.to = r[0], r[len(r)-1]
		_, err := v.inParallel(v.run.workers, func(w *verifier, part int) error {
			return w.fill(w.gathered, part, v.run.workers)
		})
		if err != nil {
			return err
		}
		found, err := v.inParallel(len(r)-1, func(w *verifier, i int) error { return w.customers(r[i], r[i+1]) })
		if err != nil {
			return err
		}
		for _, f := range found {
			v.problems = append(v.problems, f.problems...)
		}
	}
	v.gathered = nil
	return nil
}
