package main

import (
	"encoding/binary"
	"iter"
)

// What sello keeps, as keys of the store. Numbers in keys are fixed width,
// most significant byte first, so that bytewise order is numeric order.
// `org` is the organization's number (4 bytes), `prog` the program's (4),
// `cust` the customer's id (16), times are milliseconds (8), days are 4.
// Sequences count from 1 without holes: the last one given is the total, and
// any page of a list is one seek.
//
// Primary: lost means lost.
//
//	v                            → schema version (schema.go)
//	o 'n'                        → how many organizations there are
//	o 'c' org                    → configuration (JSON)
//	a hash(32)                   → API key (JSON), by the SHA-256 of the key
//	c org cust 0                 → customer
//	c org cust 1 prog            → account: balance, pending, lifetime, lots while they are few, chain of movements
//	c org cust 2 prog expiry seq → lot that is available, of an account with many; seq is its credit's
//	c org cust 3 prog from seq   → lot that is pending until from, of an account with many
//	m org seq                    → movement
//	t org seq                    → sale
//	r org seq                    → redemption
//	i org number                 → replay: the answer to a POST (idempotency.go)
//	I org, I org slice name      → where replays are, by name (idempotency.go)
//	q org                        → number of the next customer to count anew (recount.go)
//	u keyID(16)                  → usage of an API key: day, month, last used
//
// Secondary: written with the primary data, and recomputed and compared by
// `sello verify`.
//
//	o 's' slug                   → org
//	k org keyID(16)              → hash(32)
//	p kind value 0 org           → cust, person id; kind is 'e' e-mail, 'p' phone
//	c org cust 4 prog expiry     → sum of what is left in available lots of that expiry, where the account has many
//	c org cust 5 prog day        → earned, spent and purchases of a day that a rolling tier window still holds, where the account has many
//	c org cust 6 prog day rule   → times the rule, by its key, was used by the customer on a day; only of late
//	c org cust 7 reward(16)      → redemptions of the reward by the customer, cancelled ones not counted
//	d due org cust prog          → nothing; the account changes by itself at due
//	n org                        → counters: the last of each sequence; the latest moment written (primary)
//	l org 'c' n                  → cust; customers in the order they came
//	l org 'p' n, l org 'r' n     → seq of the sale; purchases, returns
//	T org id(16)                 → seq of the sale
//	R org id(16)                 → seq of the redemption
//	w org code                   → seq of the redemption
//	x org hash(16) seq           → nothing; sales by the hash of their externalId
//	s org reward(16)             → redemptions of the reward, cancelled ones not counted
//	g org                        → how many customers are in the search index
//	g org block gram             → where in the texts of the block's customers the gram occurs (grams.go)
//	h org time seq               → kind of the sale, 'p' or 'r', and its customer's number (4); sales by when they happened
//	e org level slot             → how many purchases and returns were in a slot of time (salelog.go)
//	j org part number            → customers and moments of all sales, in blocks (salelog.go)
//	f org part end block         → how many sales customers had among the first so many (salelog.go)
//	y org prog day               → tally of the day (stats.go)
//	z org prog span day block    → customers who bought on the day or in the month (stats.go)
//	b org prog tier              → how many customers are in the tier (stats.go)
//
// What belongs to one customer lies together under `c org cust`, so that a
// write of points changes neighbouring keys; movements, sales and replays
// grow at their end.

// denseTables grow at the end of each organization's part alone, or nearly so.
const denseTables = "hijlmrt"

// A key is built from its parts in order.
type key []byte

func newKey(table byte) key             { return append(make(key, 0, 48), table) }
func orgKey(table byte, org uint32) key { return newKey(table).u32(org) }
func (k key) byte(v byte) key           { return append(k, v) }
func (k key) u32(v uint32) key          { return binary.BigEndian.AppendUint32(k, v) }
func (k key) u64(v uint64) key          { return binary.BigEndian.AppendUint64(k, v) }
func (k key) instant(v instant) key     { return k.u64(uint64(v) ^ 1<<63) } // keeps the order of negative ones
func (k key) day(v day) key             { return k.u32(uint32(v) ^ 1<<31) }
func (k key) id(v id) key               { return append(k, v[:]...) }
func (k key) text(v string) key         { return append(k, v...) }

// after is the end of the range of all keys that begin with k: the least key
// above them all.
func (k key) after() []byte {
	end := append(key(nil), k...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// scan yields the entries whose keys begin with prefix.
func scan(tx Tx, prefix key, reverse bool) iter.Seq2[Entry, error] {
	return tx.Scan(prefix, prefix.after(), reverse)
}

func customerKey(org uint32, cust id, part byte) key { return orgKey('c', org).id(cust).byte(part) }

// Parts of what is kept under a customer.
const (
	partCustomer = iota
	partAccount
	partLot
	partPending
	partExpiring
	partBasis
	partRuleUse
	partRewardUse
)

// counters are the last numbers given in each sequence of an organization,
// and so the totals; and the latest moment that a write of it carries (latest.go).
type counters struct {
	Customers, Movements, Sales, Purchases, Returns, Redemptions, Replays uint64

	Latest instant // 0: none that is known; never below
}

func (c *counters) encode(w *writer) {
	w.uints([]uint64{c.Customers, c.Movements, c.Sales, c.Purchases, c.Returns, c.Redemptions, c.Replays, uint64(c.Latest)})
}

// decode also reads records of earlier versions, which end sooner.
func (c *counters) decode(r *reader) {
	v := append(r.uints(), make([]uint64, 8)...)
	c.Customers, c.Movements, c.Sales, c.Purchases, c.Returns, c.Redemptions, c.Replays = v[0], v[1], v[2], v[3], v[4], v[5], v[6]
	c.Latest = instant(v[7])
}

// organizationNumber finds an organization by its slug; 0 if there is none.
func organizationNumber(tx Tx, slug string) (uint32, error) {
	n, _, err := getUint(tx, newKey('o').byte('s').text(slug))
	return uint32(n), err
}

// A chain orders the records of one account (or customer) that lie scattered
// in a sequence of the whole organization. Its n-th record holds where record
// n-1 is and where the record is whose number is n with its lowest set bit
// cleared, so that any record is found from the last one in O(log² n) steps,
// and appending reads nothing: the chain remembers the records that the next
// ones will point to.
type chain struct {
	N    uint64   // how many records there are
	Path []uint64 // where record N is, then those of N with its set bits cleared one by one, lowest first; never changed in place
}

// A link is what one record of a chain holds of it. Zero means no record.
type link struct{ N, Prev, Jump uint64 }

// last is where the newest record is; 0 in an empty chain.
func (c *chain) last() uint64 {
	if len(c.Path) == 0 {
		return 0
	}
	return c.Path[0]
}

// append adds the record that will be at seq.
func (c *chain) append(seq uint64) link {
	l := link{N: c.N + 1, Prev: c.last()}
	keep := c.Path
	for n := c.N; n&l.N != n; n &= n - 1 { // drop what N+1 no longer has among its cleared forms
		keep = keep[1:]
	}
	if len(keep) > 0 {
		l.Jump = keep[0]
	}
	c.N = l.N
	c.Path = append([]uint64{seq}, keep...)
	return l
}

// seek returns where record n of the chain is, 1 ≤ n ≤ c.N.
func (c *chain) seek(n uint64, linkAt func(seq uint64) (link, error)) (uint64, error) {
	at, seq := c.N, c.last()
	for at > n {
		l, err := linkAt(seq)
		if err != nil {
			return 0, err
		}
		if jump := at & (at - 1); jump >= n {
			at, seq = jump, l.Jump
		} else {
			at, seq = at-1, l.Prev
		}
	}
	return seq, nil
}

// lastUntil returns where the newest record is that is not behind a place; 0 if
// none is.
func (c *chain) lastUntil(until uint64, linkAt func(seq uint64) (link, error)) (uint64, error) {
	seq := c.last()
	for seq > until {
		l, err := linkAt(seq)
		if err != nil {
			return 0, err
		}
		if seq = l.Prev; l.Jump > until {
			seq = l.Jump
		}
	}
	return seq, nil
}

func (c *chain) encode(w *writer) { w.uint(c.N); w.uints(c.Path) }
func (c *chain) decode(r *reader) { c.N = r.uint(); c.Path = r.uintsInto(c.Path) }
func (l *link) encode(w *writer)  { w.uint(l.N); w.uint(l.Prev); w.uint(l.Jump) }
func (l *link) decode(r *reader)  { l.N, l.Prev, l.Jump = r.uint(), r.uint(), r.uint() }

// A page is a part of a list, as clients number them: from 1.
type page struct{ number, limit uint64 }

// span turns a page of a list of total records, newest first, into the
// numbers of its first and last record, first ≥ last ≥ 1; ok is false for a
// page beyond the end.
func (p page) span(total uint64) (first, last uint64, ok bool) {
	skip := p.skip()
	if skip >= total {
		return 0, 0, false
	}
	first = total - skip
	return first, first - min(first, p.limit) + 1, true
}

// skip is how many records lie on the pages before; beyond every total where
// the product does not fit.
func (p page) skip() uint64 {
	if p.number-1 > 1<<40 {
		return 1 << 50
	}
	return (p.number - 1) * p.limit
}
