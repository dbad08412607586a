package main

import (
	"bytes"
	"encoding/binary"
)

// These tables let lists of sales count without reading sales. A sale adds to the
// newest entry of each, which sales made at the same time share.
//
//	e org level slot → purchases and returns of a slot of time: of 2^14 ms, 2^22 ms or 2^30 ms
//	j org block      → the log: customer and type (4) and moment (6) of each of 32 sales in a row
//
// A search that finds many customers passes over the whole log, newest first: some 10 ms for a
// million sales.

// slotLevels are the sizes of slots, as powers of two in milliseconds. Counting a
// span takes some hundred slots, and at each end the sales of less than one
// shortest slot.
var slotLevels = [3]uint{14, 22, 30}

const (
	logBlock  = 32 // sales
	logWord   = 4
	logMoment = 6
	logEntry  = logWord + logMoment
)

func (l *saleLogTxn) slotKey(level int, at instant) key {
	return orgKey('e', l.t.org).byte(byte(level)).instant(at >> slotLevels[level])
}

func (l *saleLogTxn) logKey(block uint64) key { return orgKey('j', l.t.org).u32(uint32(block)) }

// A saleLogTxn is the slots and the log in a transaction.
type saleLogTxn struct {
	t *txn
	logged
}

// logged is what a transaction has yet to write of them.
type logged struct {
	slots [len(slotLevels)]heldSlot // the last one used of each level
	last  heldBlock                 // the last one used
}

// A heldSlot is a slot of time that a transaction counts in and has yet to write.
type heldSlot struct {
	key   key // nil: none
	count typeCount
}

// A heldBlock is the block of the log that a transaction adds to and has yet to write.
type heldBlock struct {
	key   key // nil: none
	value []byte
}

// add counts a new sale in its slots of time and adds it to the log.
func (l *saleLogTxn) add(c *customer, s *sale) error {
	for level := range slotLevels {
		slot, err := l.slot(level, s.CreatedAt)
		if err != nil {
			return err
		}
		slot.count.count(s.Type == typePurchase)
	}
	block, err := l.block(s.Seq)
	if err != nil {
		return err
	}
	block.value = appendLogged(block.value, loggedSale{c.Number, s.CreatedAt, s.Type == typePurchase})
	return nil
}

// slot returns the slot of a moment for changing. It is written by save, or
// when another slot of the level is asked for.
func (l *saleLogTxn) slot(level int, at instant) (*heldSlot, error) {
	k, slot := l.slotKey(level, at), &l.slots[level]
	if bytes.Equal(slot.key, k) {
		return slot, nil
	}
	if err := l.saveSlot(slot); err != nil {
		return nil, err
	}
	kept, err := get[typeCount](l.t.Tx, k)
	if *slot = (heldSlot{key: k}); kept != nil {
		slot.count = *kept
	}
	return slot, err
}

// block returns, as slot does, the block of the log that a new sale belongs to.
func (l *saleLogTxn) block(seq uint64) (*heldBlock, error) {
	number, place, block := (seq-1)/logBlock, (seq-1)%logBlock, &l.last
	k := l.logKey(number)
	if place > 0 && bytes.Equal(block.key, k) {
		return block, nil
	}
	if err := l.saveBlock(block); err != nil {
		return nil, err
	}
	var value []byte
	var err error
	if place > 0 {
		value, err = l.loggedSales(number, place)
	}
	*block = heldBlock{k, append(make([]byte, 0, logBlock*logEntry), value...)}
	return block, err
}

// loggedSales reads a block of the log, which has so many sales.
func (l *saleLogTxn) loggedSales(block, sales uint64) ([]byte, error) {
	k := l.logKey(block)
	value, _, err := l.t.Get(k)
	if err == nil && uint64(len(value)) != sales*logEntry {
		err = unreadable(k)
	}
	return value, err
}

func (l *saleLogTxn) save() error {
	for level := range l.slots {
		if err := l.saveSlot(&l.slots[level]); err != nil {
			return err
		}
	}
	return l.saveBlock(&l.last)
}

func (l *saleLogTxn) saveSlot(s *heldSlot) error {
	if s.key == nil {
		return nil
	}
	return l.t.put(s.key, &s.count)
}

func (l *saleLogTxn) saveBlock(b *heldBlock) error {
	if b.key == nil {
		return nil
	}
	return l.t.Put(b.key, b.value)
}

// A loggedSale is what the log keeps about a sale.
type loggedSale struct {
	number   uint64 // of the customer
	at       instant
	purchase bool
}

// is reports whether the sale is of a type; "" means either.
func (s loggedSale) is(saleType string) bool {
	return saleType == "" || s.purchase == (saleType == typePurchase)
}

// appendLogged appends a sale's word and its moment. The word is the customer's
// number, followed by one bit that is 1 for a return.
func appendLogged(b []byte, s loggedSale) []byte {
	word := uint32(s.number) << 1
	if !s.purchase {
		word |= 1
	}
	b = binary.LittleEndian.AppendUint32(b, word)
	b = binary.LittleEndian.AppendUint32(b, uint32(s.at))
	return binary.LittleEndian.AppendUint16(b, uint16(s.at>>32))
}

func readLogged(b []byte) loggedSale {
	word := binary.LittleEndian.Uint32(b)
	at := instant(binary.LittleEndian.Uint16(b[8:]))<<32 | instant(binary.LittleEndian.Uint32(b[logWord:]))
	return loggedSale{uint64(word >> 1), at, word&1 == 0}
}

// scanLog calls take with the blocks of the log that hold the sales in (after, until], newest
// first; before is how many sales the log has before a block.
func (l *saleLogTxn) scanLog(after, until uint64, take func(before uint64, block []byte)) error {
	if until <= after {
		return nil
	}
	first, last := after/logBlock, (until-1)/logBlock
	next := last
	for e, err := range l.t.Scan(l.logKey(first), l.logKey(last+1), true) {
		if err != nil {
			return err
		}
		number := tableSaleLog.block(e.Key)
		if sales := min(until-number*logBlock, logBlock); number != next || uint64(len(e.Value)) != sales*logEntry {
			return unreadable(l.logKey(next))
		}
		take(number*logBlock, e.Value)
		next--
	}
	if next+1 != first {
		return unreadable(l.logKey(next))
	}
	return nil
}

// scanSpan calls take with the sales from one moment to another, both included,
// latest first.
func (l *saleLogTxn) scanSpan(from, to instant, take func(seq uint64, s loggedSale)) error {
	prefix := orgKey('h', l.t.org)
	for e, err := range l.t.Scan(append(key(nil), prefix...).instant(from), append(key(nil), prefix...).instant(to).after(), true) {
		if err != nil {
			return err
		}
		if len(e.Value) != 5 {
			return unreadable(e.Key)
		}
		k := e.Key[len(prefix):]
		take(uintIn(k[8:]), loggedSale{uint64(uint32In(e.Value[1:])), instantIn(k), e.Value[0] == kindPurchase})
	}
	return nil
}

// of is how many there are of a type; "" means both.
func (n typeCount) of(saleType string) uint64 {
	switch saleType {
	case typePurchase:
		return n.purchases
	case typeReturn:
		return n.returns
	}
	return n.purchases + n.returns
}
