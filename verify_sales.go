package main

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"sort"

	"sello/internal/blockset"
)

// Checks of the lists and the log of sales, of redemptions and vouchers, and of payments with
// points.

// allSales checks the lists and indexes of sales, in the order of the sequence.
func (v *verifier) allSales() error {
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	logged := &logCheck{v: v, sales: n.Sales, customers: n.Customers, slots: map[string]*typeCount{}}
	var registered instant // of the sale before
	for e, err := range scan(v.txn.Tx, orgKey('t', v.txn.org), false) {
		if err != nil {
			return err
		}
		v.have[tableSales].entries++
		if len(e.Key) != 13 {
			v.stray(e.Key)
			continue
		}
		var s sale
		c := readingRecord(e.Value)
		if s.head(&c); c.err() != nil {
			return atKey(e.Key, c.err())
		}
		if s.Seq = uintIn(e.Key[5:]); s.Seq == 0 {
			v.stray(e.Key)
			continue
		}
		if s.RegisteredAt < max(registered, s.CreatedAt) {
			v.problem("venta %s: se registró antes que la anterior, o antes de ocurrir", s.ID)
		}
		if s.OccurredAt != 0 && (s.Type != typeReturn || s.OccurredAt <= s.CreatedAt || s.OccurredAt > s.CreatedAt+aheadSlack) {
			v.problem("venta %s: su caja no pudo dar esa fecha", s.ID)
		}
		registered = s.RegisteredAt
		if err := v.oneSale(logged, &s); err != nil {
			return err
		}
	}
	equal(v, subject{kind: "ventas"}, ": último registro", n.Registered, registered)
	return logged.end()
}

func (v *verifier) oneSale(logged *logCheck, s *sale) error {
	what := subject{kind: "venta", id: s.ID}
	var space [16]byte
	seq := key(space[:0]).u64(s.Seq)
	if err := v.has(tableSalesByID, v.txn.scratchOrgKey('T').id(s.ID), seq, what); err != nil {
		return err
	}
	number, err := logged.numberOf(s.Seq, s)
	if err != nil {
		return err
	}
	if err := logged.take(s.Seq, number, s); err != nil {
		return err
	}
	list, kind := tablePurchases, byte(kindPurchase)
	if s.Type == typeReturn {
		list, kind = tableReturns, kindReturn
	}
	var value [8]byte
	if err := v.has(tableSalesByTime, v.txn.scratchOrgKey('h').instant(s.CreatedAt).u64(s.Seq), key(value[:0]).byte(kind).u32(uint32(number)), what); err != nil {
		return err
	}
	if err := v.has(list, v.txn.scratchOrgKey('l').byte(kind).u64(v.want[list].entries+1), seq, what); err != nil {
		return err
	}
	if err := v.claim(s); err != nil || s.ExternalID == "" {
		return err
	}
	return v.has(tableExternalIDs, v.txn.sales.externalKey(s.ExternalID).u64(s.Seq), nil, what)
}

// claim checks that a claimed sale is what became of its ticket, while that is kept.
func (v *verifier) claim(s *sale) error {
	if s.Source != sourceClaim {
		return nil
	}
	if n, err := v.txn.count(); err != nil || s.CreatedAt < n.TicketsDropped {
		return err
	}
	x, err := v.txn.tickets.called(s.ExternalID)
	if err = ignoring(err, codeTicketNotFound); err == nil && (x == nil || x.State != ticketClaimed || x.Sale != s.ID) {
		v.problem("venta %s: no es la de su ticket", s.ID)
	}
	return err
}

// tickets checks the tickets of an organization: that they are found, and that of each purchase there is
// either an open ticket or the sale that took its place.
func (v *verifier) tickets() error {
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	v.want[tableTickets].entries = n.Tickets
	ti := &v.txn.tickets
	return eachRecord(v, tableTickets, tableTickets.in(v.txn.org), func(e Entry, x *ticket) error {
		x.ID = id(e.Key[len(e.Key)-16:])
		what := subject{kind: "ticket", id: x.ID}
		if err := v.has(tableTicketsByExternalID, ti.externalKey(x.ExternalID), x.ID[:], what); err != nil {
			return err
		}
		mark, value := ti.mark(x)
		if err := v.has(tableTicketTimes, mark, value, what); err != nil {
			return err
		}
		if x.Code != "" {
			if err := v.has(tableTicketCodes, ticketCodeKey(x.Code), key(nil).u32(v.txn.org).id(x.ID), what); err != nil {
				return err
			}
		}
		fits, err := v.ticketFits(x)
		if err == nil && !fits {
			v.problem("%v: %s, y sus ventas dicen otra cosa", what, x.State)
		}
		return err
	})
}

// ticketFits reports whether a ticket agrees with the purchases that have its externalId.
func (v *verifier) ticketFits(x *ticket) (bool, error) {
	if x.Expires <= x.OccurredAt || x.CreatedAt < x.OccurredAt || x.Total <= 0 || x.Code != "" && !isTicketCode(x.Code) {
		return false, nil
	}
	switch x.State {
	case ticketOpen:
		for s, err := range v.txn.sales.purchasesCalled(x.ExternalID) {
			if err != nil || !s.whollyReturned() {
				return false, err
			}
		}
		return true, nil
	case ticketCancelled:
		return x.Sale == id{}, nil
	}
	s, err := v.saleOf(x)
	if s == nil || err != nil {
		return false, err
	}
	if s.Type != typePurchase || s.ExternalID != x.ExternalID || s.By != x.ClosedBy || (s.Source == sourceClaim) != (x.State == ticketClaimed) {
		return false, nil
	}
	if other, err := v.soldBeside(s); other || err != nil {
		return false, err
	}
	return x.State == ticketRegistered ||
		s.Total == x.Total && s.CreatedAt == min(x.OccurredAt, x.ClosedAt) && s.Comment == x.Comment && slices.Equal(s.Items, x.Items) && slices.Equal(s.Labels, x.Labels), nil
}

// soldBeside reports whether another purchase stands beside one that does, although their externalId was
// to be unique then.
func (v *verifier) soldBeside(one *sale) (bool, error) {
	if one.whollyReturned() {
		return false, nil
	}
	for s, err := range v.txn.sales.purchasesCalled(one.ExternalID) {
		if err != nil {
			return false, err
		}
		if s.ID == one.ID || s.whollyReturned() {
			continue
		}
		cfg, err := v.txn.sales.configOf(s)
		if err != nil || cfg.uniqueExternalIDs() {
			return err == nil, err
		}
	}
	return false, nil
}

// saleOf finds the sale that took a ticket's place by either of its indexes: what one of them lacks is
// told elsewhere.
func (v *verifier) saleOf(x *ticket) (*sale, error) {
	for s, err := range v.txn.sales.purchasesCalled(x.ExternalID) {
		if err != nil || s.ID == x.Sale {
			return s, err
		}
	}
	s, err := v.txn.sales.get(x.Sale)
	return s, ignoring(err, codeTransactionNotFound)
}

// ignoring returns an error unless it has a code.
func ignoring(err error, code errorCode) error {
	if errors.Is(err, newError(code)) {
		return nil
	}
	return err
}

// A logCheck builds the tables of sales_log.go anew.
type logCheck struct {
	v         *verifier
	sales     uint64                // all there are
	customers uint64                // all there are
	slots     map[string]*typeCount // filled only if slots are looked up entry by entry
	block     []byte                // that is not full yet
	told      []byte                // the block as it is stored
	toldFor   uint64                // the number of told, from 1
}

// take counts a sale. Sales come in order.
func (l *logCheck) take(seq, number uint64, s *sale) error {
	if number == 0 || number > l.customers {
		if !l.v.run.careful[tableSellers] {
			l.v.doubt(tableSellers)
			return nil
		}
		l.v.problem("venta %s: no hay un cliente con el número %d", s.ID, number)
		return nil
	}
	purchase := s.Type == typePurchase
	l.expectSlots(s, purchase)
	l.block = appendLogged(l.block, loggedSale{number, s.CreatedAt, purchase})
	if seq%logBlock > 0 {
		return nil
	}
	return l.endBlock((seq - 1) / logBlock)
}

func (l *logCheck) endBlock(number uint64) error {
	err := l.v.has(tableSaleLog, l.v.txn.saleLog.logKey(number), l.block, subject{kind: "ventas"})
	l.block = l.block[:0]
	return err
}

// numberOf returns the number of a sale's customer, as the log has it: the log is in
// the order of the sales, while customers would have to be looked up. The check of
// customers finds out whether the number is right.
func (l *logCheck) numberOf(seq uint64, s *sale) (uint64, error) {
	if l.v.run.careful[tableSellers] {
		c, err := l.v.txn.customers.get(s.Customer)
		if err != nil {
			return 0, err
		}
		return c.Number, nil
	}
	block, place := (seq-1)/logBlock, (seq-1)%logBlock
	if l.toldFor != block+1 {
		var err error
		if block%blocksAtOnce == 0 {
			l.warmBlocks(block)
		}
		if l.told, _, err = l.v.txn.Get(l.v.txn.saleLog.logKey(block)); err != nil {
			return 0, err
		}
		l.told, l.toldFor = slices.Clone(l.told), block+1
	}
	if uint64(len(l.told)) < (place+1)*logEntry {
		return 0, nil // take then doubts it
	}
	number := readLogged(l.told[place*logEntry:]).number
	l.v.have[tableSellers].add(l.v.seller(seq, number))
	return number, nil
}

// warmBlocks tells the transaction which blocks of the log are read next.
func (l *logCheck) warmBlocks(first uint64) {
	var blocks []uint64
	for block := first; block < min(first+blocksAtOnce, l.sales/logBlock+1); block++ {
		blocks = append(blocks, block)
	}
	warm(l.v.txn.Tx, blocks, l.v.txn.saleLog.logKey)
}

// expectSlots counts a sale in its slots of time.
func (l *logCheck) expectSlots(s *sale, purchase bool) {
	for level := range slotLevels {
		k := l.v.txn.scratchOrgKey('e').byte(byte(level)).instant(s.CreatedAt >> slotLevels[level])
		if !l.v.run.careful[tableSlots] {
			kind := uint64(kindReturn)
			if purchase {
				kind = kindPurchase
			}
			l.v.want[tableSlots].sum += l.v.hashNumber(k, kind)
			continue
		}
		if l.slots[string(k)] == nil {
			l.slots[string(k)] = new(typeCount)
		}
		l.slots[string(k)].count(purchase)
	}
}

func (l *logCheck) end() error {
	if len(l.block) > 0 {
		if err := l.endBlock((l.sales - 1) / logBlock); err != nil {
			return err
		}
	}
	for _, k := range slices.Sorted(maps.Keys(l.slots)) {
		if err := l.v.has(tableSlots, key(k), appendRecord(nil, l.slots[k]), subject{kind: "ventas"}); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) redemptions() error {
	var times span // of the block so far
	var last uint64
	err := eachRecord(v, tableRedemptions, orgKey('r', v.txn.org), func(e Entry, x *redemption) error {
		x.Seq = uintIn(e.Key[5:])
		if err := v.oneRedemption(x); err != nil {
			return err
		}
		if last > 0 && x.Seq/blockset.Block == last/blockset.Block {
			times = times.with(x.CreatedAt)
		} else {
			if err := v.redeemedWithin(last, times); err != nil {
				return err
			}
			times = span{x.CreatedAt, x.CreatedAt}
		}
		last = x.Seq
		return nil
	})
	if err != nil {
		return err
	}
	return v.redeemedWithin(last, times)
}

// redeemedWithin expects the times of the block of redemptions that ends with one; 0:
// there is none.
func (v *verifier) redeemedWithin(last uint64, times span) error {
	if last == 0 {
		return nil
	}
	return v.has(tableRedemptionTimes, v.txn.rewards.redemptionTimesKey(last/blockset.Block), times.value(), subject{kind: "canjes"})
}

func (v *verifier) oneRedemption(x *redemption) error {
	what := subject{kind: "canje", id: x.ID}
	v.want[tableRedemptions].entries++
	if err := v.has(tableRedemptionsByID, v.txn.scratchOrgKey('R').id(x.ID), numberValue(x.Seq), what); err != nil {
		return err
	}
	if err := v.has(tableCodes, v.txn.scratchOrgKey('w').text(x.Code), numberValue(x.Seq), what); err != nil {
		return err
	}
	for t, k := range v.txn.rewards.setsOf(x) {
		v.inBlock(t, k, x.Seq)
	}
	if x.UsedAt != 0 && (x.UsedAt >= x.Expires || x.CancelledAt != 0 && x.Sale == (id{})) {
		v.problem("%v: se usó vencido, cancelado o sin ser un vale", what)
	}
	if err := v.notedUse(x, what); err != nil {
		return err
	}
	if x.Expires != 0 && x.CancelledAt >= x.Expires && x.UsedAt == 0 {
		v.problem("%v: se canceló vencido", what)
	}
	if err := v.dueVoucher(x, what); err != nil {
		return err
	}
	if !x.Effect.valid() {
		v.problem("%v: su efecto no es ninguno que se pueda configurar", what)
	}
	if x.CancelledAt == 0 {
		v.given[x.Reward]++
		v.expectRewardUse(x)
	}
	if err := v.giftOf(x, what); err != nil || x.Movement == 0 {
		return err
	}
	if !v.run.careful[tableRedeemed] {
		v.have[tableRedeemed].add(v.hashNumber(nil, x.Seq))
		return nil
	}
	debit, err := v.txn.points.movement(x.Movement)
	if err != nil {
		return err
	}
	equal(v, what, ": puntos", -debit.Amount, x.Points)
	equal(v, what, ": movimiento", debit.Redemption, x.ID)
	if x.Customer != debit.Customer || x.Program != debit.Program || x.CreatedAt != debit.CreatedAt || x.By != debit.By {
		v.problem("%v: difiere de su movimiento", what)
	}
	if x.CancelledAt == 0 {
		equal(v, what, ": saldo", x.Balance, debit.Balance)
	}
	return nil
}

// notedUse checks that the sale in which a voucher was used says so.
// The check of customers finds out whether what sales say is right.
func (v *verifier) notedUse(x *redemption, what subject) error {
	if x.Sale == (id{}) {
		return nil
	}
	if !v.run.careful[tableNoted] {
		v.have[tableNoted].add(v.hashNumber(nil, x.Seq))
		return nil
	}
	s, err := v.saleIfAny(x.Sale)
	if err != nil {
		return err
	}
	if s == nil || x.UsedAt == 0 || !slices.Contains(s.Vouchers, x.Seq) {
		v.problem("%v: la venta en que se usó no lo dice", what)
	}
	return nil
}

// saleIfAny finds a sale by its id; nil if there is none.
func (v *verifier) saleIfAny(saleID id) (*sale, error) {
	s, err := v.txn.sales.get(saleID)
	if _, unknown := errors.AsType[*apiError](err); unknown {
		return nil, nil
	}
	return s, err
}

// giftOf checks where a voucher says that it came from, and that no voucher cost nothing unless a
// rule gave it.
func (v *verifier) giftOf(x *redemption, what subject) error {
	g := x.Gift
	if (x.Movement == 0) != (x.Points == 0) || (x.Movement == 0) != (g.Rule != (id{})) || g.Tier != "" && g.Rule == (id{}) || g != (gift{}) && (x.Expires == 0 || g.Auto == (g.Rule != (id{}))) {
		v.problem("%v: no dice bien de dónde salió", what)
	}
	if g.Sale == (id{}) {
		return nil
	}
	if !v.run.careful[tableNoted] {
		v.have[tableNoted].add(v.hashNumber(notedGift, x.Seq))
		return nil
	}
	s, err := v.saleIfAny(g.Sale)
	if err != nil {
		return err
	}
	if s == nil || !slices.ContainsFunc(s.Given, func(given givenVoucher) bool { return given.Redemption == x.Seq }) {
		v.problem("%v: la venta que lo dio no lo dice", what)
	}
	return nil
}

// notedGift tells sums of vouchers given by sales from sums of vouchers used in sales.
var notedGift = []byte("given")

// countRedeemed adds up a redemption that agrees with its debit. Any other is missing from
// the sum.
func (v *verifier) countRedeemed(x *redemption, debit *movement) {
	if debit.Seq == x.Movement && -debit.Amount == x.Points && x.Customer == debit.Customer && x.Program == debit.Program &&
		x.CreatedAt == debit.CreatedAt && x.By == debit.By && (x.CancelledAt != 0 || x.Balance == debit.Balance) {
		v.want[tableRedeemed].add(v.hashNumber(nil, x.Seq))
	}
}

// expectRewardUse counts, for its customer, a redemption that is not cancelled.
func (v *verifier) expectRewardUse(x *redemption) {
	if !v.run.careful[tableRewardUses] {
		v.want[tableRewardUses].sum += v.hash(v.txn.scratchKey(v.merges.owner(x.Customer), partRewardUse).id(x.Reward), nil)
		return
	}
	if v.givenTo[x.Reward] == nil {
		v.givenTo[x.Reward] = map[id]uint64{}
	}
	v.givenTo[x.Reward][v.merges.owner(x.Customer)]++
}

// redemptionBy finds the redemption of a debit, like the gather without an index: redemptions
// that have one are in the same order as their debits. It returns nil where they are not.
func (v *verifier) redemptionBy(debit *movement) *redemption {
	n, err := v.txn.count()
	if err != nil {
		return nil
	}
	i, found := sort.Find(int(min(n.Redemptions, math.MaxInt32)), func(i int) int {
		for ; i >= 0; i-- { // a redemption that cost nothing counts as the one before
			x, err := v.txn.rewards.redemptionAt(uint64(i) + 1)
			if err != nil {
				return 1
			}
			if x.Movement != 0 {
				return cmp.Compare(debit.Seq, x.Movement)
			}
		}
		return 1
	})
	if !found {
		return nil
	}
	x, err := v.txn.rewards.redemptionAt(uint64(i) + 1)
	if err != nil || x.ID != debit.Redemption {
		return nil
	}
	return x
}

func (m *movement) isPayment() bool {
	return m.Category == categoryRedemption && m.Transaction != (id{})
}

func (v *verifier) countPayment(s *soldSale, m *movement) {
	if s == nil || s.Payment == nil || s.Customer != m.Customer || s.paid {
		v.problem("movimiento %s: no es el pago de su venta %s", m.id(), m.Transaction)
		return
	}
	s.paid = true
	y, what := s.Payment, subject{kind: "venta", id: s.ID}
	moved := y.Points
	if s.Type == typePurchase {
		moved = -moved
	} else {
		moved -= y.Expired
	}
	equal(v, what, ": puntos de su pago", moved, m.Amount)
	equal(v, what, ": programa de su pago", y.Program, m.Program)
	equal(v, what, ": movimiento de su pago", y.Movement, m.Seq)
	if m.By != s.By {
		v.differs(what, ": quién la registró", s.By, m.By)
	}
}

// paymentOf checks that the payment of a sale has its movement, once all were counted.
func (v *verifier) paymentOf(s *soldSale) {
	y := s.Payment
	if y == nil {
		return
	}
	what := subject{kind: "venta", id: s.ID}
	if s.paid == (y.Movement == 0) {
		v.problem("%v: falta el movimiento de su pago", what)
	}
	if h := v.holds[y.Hold]; y.Hold != (id{}) && (h == nil || h.Sale != s.ID) {
		v.problem("%v: su pago no es de la retención %s", what, y.Hold)
	}
	if s.Type == typeReturn && (s.Previous == (id{}) || (y.Movement == 0) != (y.Expired == y.Points)) || s.Type == typePurchase && y.Amount > s.Total {
		v.problem("%v: su pago con puntos no puede ser", what)
	}
}

// countPaidBack counts again what a return undid of its purchase's payment. again is the purchase
// with its returns so far. The amount depends on a setting that may have changed: only all of it is
// known.
func (v *verifier) countPaidBack(again, s *sale) {
	what, y := subject{kind: "venta", id: s.ID}, s.Payment
	if again.Payment == nil || y == nil {
		if y != nil {
			v.problem("%v: su compra no se pagó con puntos", what)
		} else if again.Payment != nil {
			if points, _ := again.owedPayment(s.Total, 1); points != 0 {
				v.differs(what, ": puntos de su pago", 0, points)
			}
		}
		return
	}
	points, amount := again.owedPayment(s.Total, 1)
	equal(v, what, ": puntos de su pago", y.Points, points)
	if again.Returned == again.Total {
		equal(v, what, ": importe de su pago", y.Amount, amount)
	}
	if given := again.Returned - y.Amount - again.Payment.BackAmount; s.due() < 0 || given > again.Total-again.Payment.Amount {
		v.problem("%v: devuelve más dinero del que se pagó", what)
	}
	equal(v, what, ": programa de su pago", y.Program, again.Payment.Program)
	again.Payment.BackPoints += y.Points
	again.Payment.BackAmount += y.Amount
}

// expiredOfPayment returns what had expired of a payment when its returns undid it.
func (v *verifier) expiredOfPayment(debit *movement, h *saleHistory) (gone []use, err error) {
	purchase := h.find(debit.Transaction)
	if purchase == nil || purchase.Payment == nil || purchase.Payment.BackPoints == 0 {
		return nil, nil
	}
	var before decimal
	for i := range h.all {
		s := &h.all[i]
		if s.Previous != purchase.ID || s.Payment == nil {
			continue
		}
		due := debit.usedLast(before, s.Payment.Points)
		before += s.Payment.Points
		if s.Payment.Movement != 0 {
			back, err := v.txn.points.movement(s.Payment.Movement)
			if err != nil {
				return nil, err
			}
			if s.Payment.Expired == 0 && !slices.Equal(due, back.Uses) {
				v.problem("venta %s: sus puntos no vuelven a los lotes de los que salieron", s.ID)
			}
			due = slices.DeleteFunc(due, func(u use) bool { return slices.Contains(back.Uses, u) })
		}
		var lost decimal
		for _, u := range due {
			if lost += u.Amount; u.Expires > s.RegisteredAt {
				v.problem("venta %s: no volvieron puntos que no habían vencido", s.ID)
			}
		}
		equal(v, subject{kind: "venta", id: s.ID}, ": puntos vencidos de su pago", s.Payment.Expired, lost)
		gone = append(gone, due...)
	}
	return gone, nil
}
