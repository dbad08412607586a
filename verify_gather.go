package main

import (
	"bytes"
)

// Movements, sales and redemptions are stored in the order in which they happened, but checked
// customer by customer. So the customers are taken in rounds, by their ids. Each round reads
// these tables from end to end and keeps the records of its customers. It takes bounded memory
// and reads the store in key order; following each account's chain would jump about in the store.
//
// A record may be missing from a gather: when there is no more room, or when the record names
// another customer than the one whose chain leads to it. Such a record is looked up. The
// verification takes longer, and finds the same.

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

// A saleHistory is what the sales of a customer and its stubs add up to.
type saleHistory struct {
	spent     decimal
	purchases uint64
	last      instant // of the last purchase that is not wholly returned
	owner     id
	limited   bool         // some purchase counted toward a daily limit
	counted   bool         // some purchase counts in a life or a budget of a rule
	uses      limitUses    // empty until somebody asks
	erased    bool         // the customer was
	all       []soldSale   // oldest first
	at        map[id]int   // in all
	bought    []programDay // buffer of countActive
}

// A soldSale is one sale of a saleHistory.
type soldSale struct {
	*sale
	again *sale // a purchase with its returns counted again; nil: it has none
	whole bool  // a return: it left nothing of its purchase
	moved saleMovements
	other []saleMovements // of Others
	paid  bool            // the movement of its payment was found
}

// movedIn returns what a sale's movements in a program add up to; nil if the sale has no
// share there.
func (s *soldSale) movedIn(program uint32) *saleMovements {
	if program == s.Program {
		return &s.moved
	}
	for i := range s.Others {
		if s.Others[i].Program == program {
			return &s.other[i]
		}
	}
	return nil
}

// saleMovements are what a sale's movements in one program add up to.
type saleMovements struct {
	any             bool
	points, pending decimal
	expired         decimal
	issued          decimal // points of vouchers that redeemed themselves with the sale
	lots            []pendingRef
	balance         decimal // after the last
}

// begin starts on another customer. It reuses the memory of the last one.
func (h *saleHistory) begin() {
	all, at, bought := h.all[:0], h.at, h.bought[:0]
	if len(h.all) > 0 {
		clear(h.all)
		clear(at)
	}
	*h = saleHistory{all: all, at: at, bought: bought}
}

// stands reports whether a sale is a purchase that its returns, counted again, leave a part of.
func (s *soldSale) stands() bool {
	return s.Type == typePurchase && (s.again == nil || !s.again.whollyReturned())
}

// limitUses are the uses of daily limits, and latest is the last day of them by program.
type limitUses struct {
	by     map[limitedDay]usesRange
	latest map[uint32]day
}

// A limitedDay is a day on which a rule with a daily limit gave to the customer.
type limitedDay struct {
	program uint32
	day     day
	rule    id
}

// A usesRange is how often the rule may have given: least counts the purchases that say so. The
// rest may be from before the rule had a limit.
type usesRange struct{ least, most uint64 }

// find returns a sale by its id; nil if the customer has no such sale.
func (h *saleHistory) find(saleID id) *soldSale {
	if i, ok := h.at[saleID]; ok {
		return &h.all[i]
	}
	return nil
}

// cameExpired reports whether the points of a late purchase had expired when it came: they
// pay no debt.
func (h *saleHistory) cameExpired(m *movement) bool {
	s := h.find(m.Transaction)
	if s == nil {
		return false
	}
	v := s.shareIn(m.Program)
	return v != nil && v.ExpiredLate > 0 && m.Expires <= s.RegisteredAt
}

// redeemed holds a customer's redemptions, which are read when the first is asked for.
type redeemed struct {
	known  trail
	unread bool
	all    map[id]*redemption
}

func (x *redeemed) begin(known trail) {
	x.known, x.unread = known, true
	if len(x.all) > 0 {
		clear(x.all)
	}
}

// An idleAgain is what an account's movements say about its activity.
type idleAgain struct {
	credits  []instant // moments of what came, or became available; only where accounts lapse
	latest   instant   // anything that can have begun a new period
	standing []instant // debits of category Redemption that were not undone
	always   instant   // the last of standing that was an activity before schema 13 too
	back     *movement // that gave points back, until other ones follow
}

func (i *idleAgain) join(o idleAgain) {
	i.latest = max(i.latest, o.latest)
	i.standing = append(i.standing, o.standing...)
	i.credits = append(i.credits, o.credits...)
	i.always = max(i.always, o.always)
}

// Besides tables of the store, a verification compares sums over data that two of
// its parts both read.
const (
	tableRecords  = manyTables + iota // all that is kept under customers
	tableSellers                      // the customer of each sale
	tableRedeemed                     // the debit of each redemption
	tableNoted                        // vouchers that are noted in the sale that they were used in
	manySums
)

// sums are these sums, as tables has them.
var sums = [manySums - manyTables]struct {
	words  string
	traits trait
}{
	tableRecords - manyTables:  {"registros de clientes", byCount},
	tableSellers - manyTables:  {"", untold | byContent},
	tableRedeemed - manyTables: {"", untold | byContent},
	tableNoted - manyTables:    {"", untold | byContent},
}

// is reports whether a table or a sum has all of some traits.
func (t table) is(of trait) bool {
	if t < manyTables {
		return tables[t].traits&of == of
	}
	return sums[t-manyTables].traits&of == of
}

func (t table) inWords() string {
	if t < manyTables {
		return tables[t].words
	}
	return sums[t-manyTables].words
}

// Tables that are compared, in the order in which problems are reported: of all organizations together,
// and of each.
var tablesOfAll, tablesOfOne = func() (all, one []table) {
	for t := range table(manySums) {
		switch compared := t.is(byContent) || t.is(byEntry) || t.is(byCount); {
		case compared && t.is(shared):
			all = append(all, t)
		case compared:
			one = append(one, t)
		}
	}
	return all, one
}()

type tableSet [manySums]bool

func (s *tableSet) join(o *tableSet) {
	for t := range s {
		s[t] = s[t] || o[t]
	}
}

// A tableSum is how many entries there are, and the sum of their hashes. Two
// tables with the same sum have the same entries, except for a chance of one in
// 2^64: the hash has a new seed in each verification.
type tableSum struct{ entries, sum uint64 }

func (s *tableSum) add(hash uint64) { s.entries++; s.sum += hash }
func (s *tableSum) join(o tableSum) { s.entries += o.entries; s.sum += o.sum }
