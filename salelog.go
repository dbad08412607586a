package main

import "encoding/binary"

// What lets lists of sales count without reading sales. A sale adds to the
// newest entries of each table, which the sales of the moment share.
//
//	e org level slot → purchases and returns of a slot of time: of 2^14 ms, 2^22 ms or 2^30 ms
//	j org pack       → the log: customer and moment of 32 sales in a row, 10 bytes each
//	f org block      → how many purchases and returns each of 32,768 customers
//	                   had among the first so many sales of the organization

// slotLevels are the sizes of slots, as powers of two in milliseconds. A span
// is counted by some hundred slots and the sales of less than the
// shortest slot at its ends.
var slotLevels = [3]uint{14, 22, 30}

const (
	logPack     = 32
	logEntry    = 10
	totalsBlock = 1 << 15
	totalsEvery = 1024 // sales, after which one block of totals takes in what is new in the log
)

func (t *txn) slotKey(level int, at instant) key {
	return orgKey('e', t.org).byte(byte(level)).instant(at >> slotLevels[level])
}

func (t *txn) logKey(pack uint64) key { return orgKey('j', t.org).u32(uint32(pack)) }

func (t *txn) totalsKey(block uint64) key { return orgKey('f', t.org).u32(uint32(block)) }

// logSale counts and logs a new sale.
func (t *txn) logSale(c *customer, s *sale, customers uint64) error {
	for level := range slotLevels {
		k := t.slotKey(level, s.CreatedAt)
		n, err := t.slotCount(k)
		if err != nil {
			return err
		}
		n.count(s.Type == typePurchase, 1)
		if err := t.put(k, &n); err != nil {
			return err
		}
	}
	k := t.logKey((s.Seq - 1) / logPack)
	value, _, err := t.Get(k)
	if err != nil {
		return err
	}
	if err := t.Put(k, appendLogged(append(make([]byte, 0, len(value)+logEntry), value...), loggedSale{c.Number, s.CreatedAt, s.Type == typePurchase})); err != nil {
		return err
	}
	if s.Seq%totalsEvery != 0 {
		return nil
	}
	return t.bringTotals(s.Seq/totalsEvery%(customers/totalsBlock+1), s.Seq)
}

// A typeCount is how many purchases and returns there are.
type typeCount struct{ purchases, returns uint64 }

func (n *typeCount) encode(w *writer) { w.uint(n.purchases); w.uint(n.returns) }
func (n *typeCount) decode(r *reader) { n.purchases, n.returns = r.uint(), r.uint() }

func (n *typeCount) count(purchase bool, more uint64) {
	if purchase {
		n.purchases += more
	} else {
		n.returns += more
	}
}

// of is how many there are of a type; "" is both.
func (n typeCount) of(saleType string) uint64 {
	switch saleType {
	case typePurchase:
		return n.purchases
	case typeReturn:
		return n.returns
	}
	return n.purchases + n.returns
}

func (t *txn) slotCount(k key) (n typeCount, err error) {
	kept, err := get[typeCount](t.Tx, k)
	if kept != nil {
		n = *kept
	}
	return n, err
}

// A loggedSale is what the log has of a sale.
type loggedSale struct {
	number   uint64 // of the customer
	at       instant
	purchase bool
}

// appendLogged appends the customer's number, its lowest bit telling a
// return, and the moment in 6 bytes.
func appendLogged(b []byte, s loggedSale) []byte {
	word := uint32(s.number) << 1
	if !s.purchase {
		word |= 1
	}
	b = binary.BigEndian.AppendUint32(b, word)
	b = binary.BigEndian.AppendUint16(b, uint16(s.at>>32))
	return binary.BigEndian.AppendUint32(b, uint32(s.at))
}

func loggedIn(b []byte) loggedSale {
	word := binary.BigEndian.Uint32(b)
	at := instant(binary.BigEndian.Uint16(b[4:]))<<32 | instant(binary.BigEndian.Uint32(b[6:]))
	return loggedSale{uint64(word >> 1), at, word&1 == 0}
}

// scanLog calls take with the log's sales after one and until another, both by
// sequence, oldest first or newest first, until it returns false.
func (t *txn) scanLog(after, until uint64, reverse bool, take func(seq uint64, s loggedSale) bool) error {
	if after >= until {
		return nil
	}
	for e, err := range t.Scan(t.logKey(after/logPack), t.logKey((until-1)/logPack+1), reverse) {
		if err != nil {
			return err
		}
		first := uint64(uint32In(e.Key[5:]))*logPack + 1
		n := uint64(len(e.Value) / logEntry)
		for i := range n {
			if reverse {
				i = n - 1 - i
			}
			if seq := first + i; seq > after && seq <= until && !take(seq, loggedIn(e.Value[i*logEntry:])) {
				return nil
			}
		}
	}
	return nil
}

// scanSpan calls take with the sales from one moment to another, both included,
// latest first, until it returns false.
func (t *txn) scanSpan(from, to instant, take func(seq uint64, s loggedSale) bool) error {
	prefix := orgKey('h', t.org)
	for e, err := range t.Scan(append(key(nil), prefix...).instant(from), append(key(nil), prefix...).instant(to).after(), true) {
		if err != nil {
			return err
		}
		if len(e.Value) != 5 {
			return errRecord
		}
		k := e.Key[len(prefix):]
		if !take(uintIn(k[8:]), loggedSale{uint64(uint32In(e.Value[1:])), instant(uintIn(k) ^ 1<<63), e.Value[0] == kindPurchase}) {
			return nil
		}
	}
	return nil
}

// A totals is how many sales customers had among the first ones of an
// organization.
type totals struct {
	until  uint64 // so many sales
	counts []typeCount
}

// In store: until(8), how many bytes a count takes, and for each customer the
// counts of purchases and returns, up to the last one that is not zero.

func encodeTotals(s *totals) []byte {
	var most uint64
	last := 0
	for i, n := range s.counts {
		if n != (typeCount{}) {
			last = i + 1
		}
		most = max(most, n.purchases, n.returns)
	}
	width := 1
	for most >= 1<<(8*width) {
		width++
	}
	value := append(key(nil).u64(s.until), byte(width))
	for _, n := range s.counts[:last] {
		for _, c := range []uint64{n.purchases, n.returns} {
			value = append(value, binary.BigEndian.AppendUint64(nil, c)[8-width:]...)
		}
	}
	return value
}

// A storedTotals is a value of totals.
type storedTotals []byte

func (v storedTotals) until() uint64 { return uintIn(v) }

// at is the counts of the i-th customer.
func (v storedTotals) at(i int) (n typeCount) {
	width := int(v[8])
	if v = v[9:]; len(v) < 2*width*(i+1) {
		return n
	}
	v = v[2*width*i:]
	if width == 1 { // of nearly all
		return typeCount{uint64(v[0]), uint64(v[1])}
	}
	for j := range width {
		n.purchases = n.purchases<<8 | uint64(v[j])
		n.returns = n.returns<<8 | uint64(v[width+j])
	}
	return n
}

func (t *txn) storedTotals(block uint64) (storedTotals, error) {
	value, ok, err := t.Get(t.totalsKey(block))
	if err == nil && (!ok || len(value) < 9) {
		err = errRecord
	}
	return value, err
}

// beginTotals makes the totals of a block when its first customer comes:
// none of it had a sale before.
func (t *txn) beginTotals(number, sales uint64) error {
	if number != 1 && number%totalsBlock != 0 {
		return nil
	}
	return t.Put(t.totalsKey(number/totalsBlock), encodeTotals(&totals{until: sales}))
}

// bringTotals takes what the log has since into a block's totals.
func (t *txn) bringTotals(block, until uint64) error {
	kept, err := t.storedTotals(block)
	if err != nil {
		return err
	}
	s := totals{until, make([]typeCount, totalsBlock)}
	for i := range s.counts {
		s.counts[i] = kept.at(i)
	}
	err = t.scanLog(kept.until(), until, false, func(_ uint64, l loggedSale) bool {
		if l.number/totalsBlock == block {
			s.counts[l.number%totalsBlock].count(l.purchase, 1)
		}
		return true
	})
	if err != nil {
		return err
	}
	return t.Put(t.totalsKey(block), encodeTotals(&s))
}

// totalOf is how many sales of a type the customers in a set had, and which of
// them had any, or the first found of these if they are more than fewCustomers.
func (t *txn) totalOf(set customerSet, saleType string) (total uint64, buyers map[uint64]bool, err error) {
	n, err := t.count()
	if err != nil {
		return 0, nil, err
	}
	buyers = map[uint64]bool{}
	until, oldest := map[uint64]uint64{}, n.Sales
	for i, found := range set {
		if found == nil {
			continue
		}
		first := uint64(i) * gramBlock
		block := first / totalsBlock
		kept, err := t.storedTotals(block)
		if err != nil {
			return 0, nil, err
		}
		until[block] = kept.until()
		oldest = min(oldest, kept.until())
		var sum typeCount
		for offset := range found.backward() {
			n := kept.at(int((first + offset) % totalsBlock))
			sum.purchases += n.purchases
			sum.returns += n.returns
			if len(buyers) <= fewCustomers && n.of(saleType) > 0 {
				buyers[first+offset] = true
			}
		}
		total += sum.of(saleType)
	}
	err = t.scanLog(oldest, n.Sales, false, func(seq uint64, s loggedSale) bool {
		if set.has(s.number) && seq > until[s.number/totalsBlock] && s.is(saleType) {
			if total++; len(buyers) <= fewCustomers {
				buyers[s.number] = true
			}
		}
		return true
	})
	return total, buyers, err
}

// is tells whether the sale is of a type; "" is both.
func (s loggedSale) is(saleType string) bool {
	return saleType == "" || s.purchase == (saleType == typePurchase)
}
