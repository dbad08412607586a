package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"
)

// These tables let lists of sales count without reading sales. A sale adds to the
// newest entries of each table, which sales made at the same time share.
//
//	e org level slot  → purchases and returns of a slot of time: of 2^14 ms, 2^22 ms or 2^30 ms
//	j org 0 pack      → the log's open block: customer and moment of 32 sales in
//	                    a row, 10 bytes each; a pack keeps its sales of the block
//	                    before until it is overwritten
//	j org 1 block     → 4,096 sales in a row: customer and type of each, 4 bytes
//	j org 2 block     → the moment of each, 6 bytes
//	j org 3 group     → the earliest and latest moment of each of 64 blocks, 6 bytes each
//	f org 0 end       → a chapter: the highest number of a customer in the log up to its end
//	f org 1 end block → how many purchases and returns each of 32,768 customers
//	                    had up to the end of a chapter; no entry: none had any
//
// The more customers there are, the more sales a chapter has, so that counting all
// customers at its end costs 8 bytes a sale.

// slotLevels are the sizes of slots, as powers of two in milliseconds. Counting a
// span takes some hundred slots, and at each end the sales of less than one
// shortest slot.
var slotLevels = [3]uint{14, 22, 30}

// logSizes say how the log is divided.
type logSizes struct {
	block     uint64 // sales; a multiple of logPack
	chapter   uint64 // fewest sales of a chapter
	perBlock  uint64 // fewest sales of a chapter for each block of customers
	every     uint64 // sales from one block of customers counted to the next; divides the two above
	customers uint64 // in a block; a multiple of 64
	follow    uint64 // sales counted in the log in the time it takes to reach one by a chain
}

func usualLog() logSizes {
	return logSizes{block: 4096, chapter: 1 << 16, perBlock: 8192, every: 1024, customers: 1 << 15, follow: 10_000}
}

const (
	logPack    = 32
	logWord    = 4
	logMoment  = 6
	logEntry   = logWord + logMoment
	zoneGroup  = 64
	zoneLength = 2 * logMoment
)

// Parts of the tables.
const (
	logOpen = iota
	logWords
	logMoments
	logZones

	totalsChapter = 0
	totalsCounts  = 1
)

func (t *txn) slotKey(level int, at instant) key {
	return orgKey('e', t.org).byte(byte(level)).instant(at >> slotLevels[level])
}

func (t *txn) logKey(part byte, number uint64) key {
	return orgKey('j', t.org).byte(part).u32(uint32(number))
}

func (t *txn) chapterKey(end uint64) key { return orgKey('f', t.org).byte(totalsChapter).u64(end) }

func (t *txn) totalsKey(end, block uint64) key {
	return orgKey('f', t.org).byte(totalsCounts).u64(end).u32(uint32(block))
}

// A heldSlot is a slot of time that a transaction counts in and has yet to write.
type heldSlot struct {
	key   key // nil: none
	count typeCount
}

// A heldPack is the pack of the log that a transaction adds to and has yet to write.
type heldPack struct {
	key   key // nil: none
	value []byte
}

// logSale counts a new sale in its slots of time and adds it to the log.
func (t *txn) logSale(c *customer, s *sale) error {
	for level := range slotLevels {
		slot, err := t.slot(level, s.CreatedAt)
		if err != nil {
			return err
		}
		slot.count.count(s.Type == typePurchase)
	}
	pack, err := t.packOf(s.Seq)
	if err != nil {
		return err
	}
	pack.value = appendLogged(pack.value, loggedSale{c.Number, s.CreatedAt, s.Type == typePurchase})
	full, due := s.Seq%t.log.block == 0, s.Seq%t.log.every == 0
	if !full && !due {
		return nil
	}
	if err := t.saveLogged(); err != nil {
		return err
	}
	if full {
		if err := t.closeBlock((s.Seq - 1) / t.log.block); err != nil {
			return err
		}
	}
	if due {
		return t.bringTotals(s.Seq)
	}
	return nil
}

// slot returns the slot of a moment for changing. It is written by saveLogged, or
// when another slot of the level is asked for.
func (t *txn) slot(level int, at instant) (*heldSlot, error) {
	k, slot := t.slotKey(level, at), &t.slots[level]
	if bytes.Equal(slot.key, k) {
		return slot, nil
	}
	if err := t.saveSlot(slot); err != nil {
		return nil, err
	}
	n, err := t.slotCount(k)
	*slot = heldSlot{k, n}
	return slot, err
}

// packOf returns, as slot does, the pack of the log that a sale belongs to.
func (t *txn) packOf(seq uint64) (*heldPack, error) {
	place, pack := (seq-1)%t.log.block, &t.pack
	k, begun := t.logKey(logOpen, place/logPack), place%logPack > 0
	if begun && bytes.Equal(pack.key, k) {
		return pack, nil
	}
	if err := t.savePack(pack); err != nil {
		return nil, err
	}
	var value []byte
	var err error
	if begun { // a pack that lost sales is noticed here, not only when the block is full
		value, err = t.logValue(logOpen, place/logPack, place%logPack*logEntry)
	}
	*pack = heldPack{k, append(make([]byte, 0, logPack*logEntry), value...)}
	return pack, err
}

// saveLogged writes the slots and the pack that the transaction holds.
func (t *txn) saveLogged() error {
	for level := range t.slots {
		if err := t.saveSlot(&t.slots[level]); err != nil {
			return err
		}
	}
	return t.savePack(&t.pack)
}

func (t *txn) saveSlot(s *heldSlot) error {
	if s.key == nil {
		return nil
	}
	return t.put(s.key, &s.count)
}

func (t *txn) savePack(p *heldPack) error {
	if p.key == nil {
		return nil
	}
	return t.Put(p.key, p.value)
}

// A typeCount is how many purchases and returns there are.
type typeCount struct{ purchases, returns uint64 }

func (n *typeCount) fields(c *coder) { c.uint(&n.purchases); c.uint(&n.returns) }

func (n *typeCount) count(purchase bool) {
	if purchase {
		n.purchases++
	} else {
		n.returns++
	}
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

func (t *txn) slotCount(k key) (n typeCount, err error) {
	kept, err := get[typeCount](t.Tx, k)
	if kept != nil {
		n = *kept
	}
	return n, err
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
	return appendLogMoment(binary.LittleEndian.AppendUint32(b, word), s.at)
}

func appendLogMoment(b []byte, at instant) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(at))
	return binary.LittleEndian.AppendUint16(b, uint16(at>>32))
}

func logMomentIn(b []byte) instant {
	return instant(binary.LittleEndian.Uint16(b[4:]))<<32 | instant(binary.LittleEndian.Uint32(b))
}

// A logPart is a row of sales in the log.
type logPart struct {
	after   uint64 // the sequence before the first
	words   []byte
	moments []byte // nil if not asked for
}

func (p logPart) sales() uint64 { return uint64(len(p.words) / logWord) }

// between returns the part's sales in (after, until].
func (p logPart) between(after, until uint64) logPart {
	from, to := max(after, p.after)-p.after, min(until, p.after+p.sales())-p.after
	p.after += from
	p.words = p.words[from*logWord : to*logWord]
	if p.moments != nil {
		p.moments = p.moments[from*logMoment : to*logMoment]
	}
	return p
}

// logPart reads a block of the log, with its moments or without.
func (t *txn) logPart(block uint64, dated bool) (p logPart, err error) {
	n, err := t.count()
	if err != nil {
		return p, err
	}
	p.after = block * t.log.block
	if n.Sales-p.after < t.log.block {
		return t.openPart(p.after, n.Sales-p.after)
	}
	if p.words, err = t.logValue(logWords, block, logWord*t.log.block); err != nil || !dated {
		return p, err
	}
	p.moments, err = t.logValue(logMoments, block, logMoment*t.log.block)
	return p, err
}

func (t *txn) logValue(part byte, number, length uint64) ([]byte, error) {
	k := t.logKey(part, number)
	value, _, err := t.Get(k)
	if err == nil && uint64(len(value)) != length {
		err = unreadable(k)
	}
	return value, err
}

// openPart joins the packs of the open block, which has so many sales.
func (t *txn) openPart(after, sales uint64) (logPart, error) {
	p := logPart{after, make([]byte, 0, sales*logWord), make([]byte, 0, sales*logMoment)}
	for pack := range (sales + logPack - 1) / logPack {
		value, err := t.logValue(logOpen, pack, min(logPack, sales-pack*logPack)*logEntry)
		if err != nil {
			return p, err
		}
		for ; len(value) > 0; value = value[logEntry:] {
			p.words = append(p.words, value[:logWord]...)
			p.moments = append(p.moments, value[logWord:logEntry]...)
		}
	}
	return p, nil
}

// closeBlock writes a full block from its packs, and its zone: its earliest and
// latest moment.
func (t *txn) closeBlock(block uint64) error {
	p, err := t.openPart(block*t.log.block, t.log.block)
	if err != nil {
		return err
	}
	if err := t.Put(t.logKey(logWords, block), p.words); err != nil {
		return err
	}
	if err := t.Put(t.logKey(logMoments, block), p.moments); err != nil {
		return err
	}
	k := t.logKey(logZones, block/zoneGroup)
	var zones []byte
	if block%zoneGroup > 0 {
		value, err := t.logValue(logZones, block/zoneGroup, block%zoneGroup*zoneLength)
		if err != nil {
			return err
		}
		zones = slices.Clone(value)
	}
	return t.Put(k, appendZone(zones, p.moments))
}

// appendZone appends the earliest and the latest of some moments.
func appendZone(b, moments []byte) []byte {
	first, last := logMomentIn(moments), logMomentIn(moments)
	for ; len(moments) > 0; moments = moments[logMoment:] {
		at := logMomentIn(moments)
		first, last = min(first, at), max(last, at)
	}
	return appendLogMoment(appendLogMoment(b, first), last)
}

// scanLog calls take with the parts of the log that hold the sales in (after,
// until], newest first, as long as take returns true.
func (t *txn) scanLog(after, until uint64, dated bool, take func(logPart) bool) error {
	for until > after {
		p, err := t.logPart((until-1)/t.log.block, dated)
		if err != nil {
			return err
		}
		if p = p.between(after, until); !take(p) {
			return nil
		}
		until = p.after
	}
	return nil
}

// scanSpan calls take with the sales from one moment to another, both included,
// latest first, as long as take returns true.
func (t *txn) scanSpan(from, to instant, take func(seq uint64, s loggedSale) bool) error {
	prefix := orgKey('h', t.org)
	for e, err := range t.Scan(append(key(nil), prefix...).instant(from), append(key(nil), prefix...).instant(to).after(), true) {
		if err != nil {
			return err
		}
		if len(e.Value) != 5 {
			return unreadable(e.Key)
		}
		k := e.Key[len(prefix):]
		if !take(uintIn(k[8:]), loggedSale{uint64(uint32In(e.Value[1:])), instant(uintIn(k) ^ 1<<63), e.Value[0] == kindPurchase}) {
			return nil
		}
	}
	return nil
}

// A chapter is a stretch of the log: from the end of the chapter before to its own.
type chapter struct {
	end     uint64 // how many sales the log has up to there
	highest uint64 // customer number up to there
}

// blocks is how many blocks of customers are counted at its end.
func (c chapter) blocks(l *logSizes) uint64 { return c.highest/l.customers + 1 }

// next is where the next chapter ends. By then all customers are counted at the end
// of this one.
func (c chapter) next(l *logSizes) uint64 { return c.end + max(l.chapter, l.perBlock*c.blocks(l)) }

// counted is the sale with which a block's totals at the chapter's end are written.
func (c chapter) counted(l *logSizes, block uint64) uint64 { return c.end + (block+1)*l.every }

// chaptersUntil returns the chapters that end no later than a sale, newest first,
// and last an empty one that stands for the beginning of the log. A positive most
// limits how many.
func (t *txn) chaptersUntil(sale uint64, most int) (list []chapter, err error) {
	for e, err := range t.Scan(t.chapterKey(0), t.chapterKey(sale+1), true) {
		if err != nil {
			return nil, err
		}
		if len(e.Value) != 8 {
			return nil, unreadable(e.Key)
		}
		if list = append(list, chapter{uintIn(e.Key[6:]), uintIn(e.Value)}); len(list) == most {
			return list, nil
		}
	}
	return append(list, chapter{}), nil
}

// bringTotals counts the next block of customers at the end of the last chapter,
// and ends the current chapter if it is due.
func (t *txn) bringTotals(sale uint64) error {
	list, err := t.chaptersUntil(sale-1, 2)
	if err != nil {
		return err
	}
	last := list[0]
	if len(list) == 2 { // else no chapter has ended yet
		block := (sale-last.end)/t.log.every - 1
		if block < last.blocks(&t.log) {
			if err := t.countBlock(list[1], last, block); err != nil {
				return err
			}
		}
	}
	if sale != last.next(&t.log) {
		return nil
	}
	highest := uint32(0)
	err = t.scanLog(last.end, sale, false, func(p logPart) bool {
		for words := p.words; len(words) >= logWord; words = words[logWord:] {
			highest = max(highest, binary.LittleEndian.Uint32(words)>>1)
		}
		return true
	})
	if err != nil {
		return err
	}
	return t.Put(t.chapterKey(sale), numberValue(max(last.highest, uint64(highest))))
}

// countBlock counts a block of customers at the end of a chapter: it adds the
// chapter's sales to the totals at the end of the chapter before.
func (t *txn) countBlock(before, c chapter, block uint64) error {
	kept, err := t.totals(before, block)
	if err != nil {
		return err
	}
	counts := make(totals, 2*t.log.customers)
	kept.addTo(counts)
	first := uint32(2 * block * t.log.customers)
	err = t.scanLog(before.end, c.end, false, func(p logPart) bool {
		for words := p.words; len(words) >= logWord; words = words[logWord:] {
			if at := binary.LittleEndian.Uint32(words) - first; at < uint32(len(counts)) {
				counts[at]++
			}
		}
		return true
	})
	value := counts.encode()
	if err != nil || len(value) == 0 {
		return err
	}
	return t.Put(t.totalsKey(c.end, block), value)
}

// totals reads the totals of a block of customers at the end of a chapter.
func (t *txn) totals(c chapter, block uint64) (storedTotals, error) {
	if c.end == 0 {
		return nil, nil
	}
	k := t.totalsKey(c.end, block)
	value, _, err := t.Get(k)
	if err == nil && !storedTotals(value).whole(t.log.customers) {
		err = unreadable(k)
	}
	return value, err
}

// A totals is how many purchases and returns each customer of a block had. The index
// is the sale's word in the log less the block's first: 2i for purchases of customer
// i of the block, 2i+1 for returns.
type totals []uint32

// A storedTotals is totals as stored: planes, each of which holds one byte of every
// count of one type. Planes that are all zero are left out.
//
//	plane: | type | place | 0 | first(2) n(2) | 64 n bytes of customers in a row, from 64 first on |
//	       | type | place | 1 |      0   n(2) | n times customer(2) and byte |
//
// type is 0 for purchases, 1 for returns; place 0 is the lowest byte of the counts.
type storedTotals []byte

const planeHead = 7

func (s totals) encode() (value []byte) {
	for kind := range 2 {
		for place := range 4 {
			value = s.appendPlane(value, kind, place)
		}
	}
	return value
}

func (s totals) appendPlane(value []byte, kind, place int) []byte {
	first, last, used := -1, 0, 0
	for i := kind; i < len(s); i += 2 {
		if byte(s[i]>>(8*place)) != 0 {
			if first < 0 {
				first = i / 128
			}
			last = i / 128
			used++
		}
	}
	if used == 0 {
		return value
	}
	value = append(value, byte(kind), byte(place))
	if n := last + 1 - first; 3*used >= 64*n {
		value = append(value, 0)
		value = binary.LittleEndian.AppendUint16(value, uint16(first))
		value = binary.LittleEndian.AppendUint16(value, uint16(n))
		for i := 128*first + kind; i < 128*(last+1); i += 2 {
			value = append(value, byte(s[i]>>(8*place)))
		}
		return value
	}
	value = append(value, 1, 0, 0)
	value = binary.LittleEndian.AppendUint16(value, uint16(used))
	for i := kind; i < len(s); i += 2 {
		if b := byte(s[i] >> (8 * place)); b != 0 {
			value = append(binary.LittleEndian.AppendUint16(value, uint16(i/2)), b)
		}
	}
	return value
}

// A plane is one plane of a storedTotals.
type plane struct {
	kind   int
	shift  int // of its bytes within the counts
	sparse bool
	first  int // customer of the block, unless sparse
	data   []byte
}

// cut takes the first plane off.
func (s storedTotals) cut() (p plane, rest storedTotals, ok bool) {
	if len(s) < planeHead {
		return p, nil, false
	}
	n := int(binary.LittleEndian.Uint16(s[5:]))
	p = plane{kind: int(s[0]), shift: 8 * int(s[1]), sparse: s[2] == 1, first: 64 * int(binary.LittleEndian.Uint16(s[3:]))}
	size := 64 * n
	if p.sparse {
		size = 3 * n
	}
	if len(s) < planeHead+size {
		return p, nil, false
	}
	p.data = s[planeHead:][:size]
	return p, s[planeHead+size:], true
}

// whole reports whether s has the form that encode gives to so many customers.
func (s storedTotals) whole(customers uint64) bool {
	for len(s) > 0 {
		p, rest, ok := s.cut()
		if !ok || p.kind > 1 || p.shift > 24 || !p.sparse && uint64(p.first+len(p.data)) > customers {
			return false
		}
		for d := p.data; p.sparse && len(d) > 0; d = d[3:] {
			if uint64(binary.LittleEndian.Uint16(d)) >= customers {
				return false
			}
		}
		s = rest
	}
	return true
}

func (s storedTotals) addTo(counts totals) {
	for len(s) > 0 {
		p, rest, _ := s.cut()
		for i := 0; !p.sparse && i < len(p.data); i++ {
			counts[2*(p.first+i)+p.kind] += uint32(p.data[i]) << p.shift
		}
		for d := p.data; p.sparse && len(d) > 0; d = d[3:] {
			counts[2*int(binary.LittleEndian.Uint16(d))+p.kind] += uint32(d[2]) << p.shift
		}
		s = rest
	}
}

// at returns the counts of customer i of the block.
func (s storedTotals) at(i int) typeCount {
	var n [2]uint64
	for len(s) > 0 {
		p, rest, _ := s.cut()
		n[p.kind] += uint64(p.at(i)) << p.shift
		s = rest
	}
	return typeCount{n[0], n[1]}
}

func (p *plane) at(i int) byte {
	if !p.sparse {
		if i -= p.first; i < 0 || i >= len(p.data) {
			return 0
		}
		return p.data[i]
	}
	place, found := sort.Find(len(p.data)/3, func(j int) int {
		return cmp.Compare(i, int(binary.LittleEndian.Uint16(p.data[3*j:])))
	})
	if !found {
		return 0
	}
	return p.data[3*place+2]
}

// sum adds up the counts of the customers in a set of the block.
func (s storedTotals) sum(set customerSet) typeCount {
	var n [2]uint64
	for len(s) > 0 {
		p, rest, _ := s.cut()
		var sum uint64
		if p.sparse {
			for d := p.data; len(d) > 0; d = d[3:] {
				if set.has(uint64(binary.LittleEndian.Uint16(d))) {
					sum += uint64(d[2])
				}
			}
		} else if p.first/64 < len(set) {
			sum = sumBytes(set[p.first/64:], p.data)
		}
		n[p.kind] += sum << p.shift
		s = rest
	}
	return typeCount{n[0], n[1]}
}

// sumBytes adds up the bytes of data whose bits are set.
func sumBytes(set customerSet, data []byte) (sum uint64) {
	const ones, bit = 0x0101010101010101, 0x8040201008040201 // 1 in each byte; bit i in byte i
	for _, word := range set {
		if len(data) < 64 {
			break
		}
		b := data[:64:64]
		data = data[64:]
		if bits.OnesCount64(word) <= 8 {
			for ; word != 0; word &= word - 1 {
				sum += uint64(b[bits.TrailingZeros64(word)])
			}
			continue
		}
		var lanes uint64 // four sums of 16 bits
		for ; word != 0; word >>= 8 {
			chosen := word & 0xff * ones & bit
			chosen = (chosen&^(ones<<7) + ones*0x7f | chosen) & (ones << 7) >> 7 * 0xff
			eight := binary.LittleEndian.Uint64(b) & chosen
			lanes += eight&0x00ff00ff00ff00ff + eight>>8&0x00ff00ff00ff00ff
			b = b[8:]
		}
		sum += lanes * 0x0001000100010001 >> 48
	}
	return sum
}
