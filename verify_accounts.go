package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Each account's movements are replayed, and balance, lots, sums and the chain of hashes compared
// with what is stored.

// movements returns an account's chain of movements, oldest first, as stored.
func (v *verifier) movements(a *account, what subject, known *trail) ([]storedMovement, error) {
	list := v.replayer.stored[:0]
	for seq := a.Movements.last(); seq != 0 && uint64(len(list)) <= a.Movements.N; {
		record, err := v.recordAt(known, 'm', seq)
		var prev uint64
		if err == nil {
			prev, err = linkIn(record)
			err = atKey(v.txn.points.movementKey(seq), err)
		}
		if err != nil {
			return nil, fmt.Errorf("%v: movimiento %d: %w", what, seq, err)
		}
		list = append(list, storedMovement{seq, record})
		seq = prev
	}
	slices.Reverse(list)
	v.replayer.stored = list
	return list, nil
}

// linkIn returns the seq of the movement before a record's, in the same account's chain.
func linkIn(record []byte) (uint64, error) {
	c := readingRecord(record)
	var (
		cust id
		l    link
	)
	c.id(&cust)
	l.fields(&c)
	return l.Prev, c.err()
}

// account replays an account's movements and compares the result with what is stored.
// family is nil for a customer without stubs.
func (v *verifier) account(c *customer, p *program, h *saleHistory, known trail, family *familyReplay) error {
	stored, kept, err := v.txn.Get(v.txn.points.accountKey(c, p))
	if err != nil {
		return err
	}
	a := &account{accountHead: accountHead{Due: never}}
	if kept {
		v.want[tableRecords].entries++
		if a, err = decodeRecord[account](stored); err != nil {
			return atKey(v.txn.points.accountKey(c, p), err)
		}
	}
	a.customer, a.program, a.nextDue, a.kept = c, p, a.Due, kept
	r := &v.replayer
	r.begin(v, a)
	r.family = family
	if r.stored, err = v.movements(a, r.what, &known); err != nil {
		return err
	}
	v.countTier(a, r.what, kept)
	for _, stored := range r.stored {
		m, err := decodeRecord[movement](stored.record)
		if err != nil {
			return atKey(v.txn.points.movementKey(stored.seq), err)
		}
		m.Seq = stored.seq
		if err := r.take(m, stored.record, h); err != nil {
			return err
		}
	}
	r.countAll(h)
	if err := r.compareIdle(a, h); err != nil {
		return err
	}
	if err := r.compare(a); err != nil {
		return err
	}
	equalChains(v, r.what, ": cadena de movimientos", &a.Movements, &r.chain)
	if a.Hash != r.last {
		v.problem("%v: su último movimiento no es el que se anotó en ella", r.what)
	}
	equal(v, r.what, ": puntos ganados", a.Lifetime, r.earned)
	v.openHolds(a, r.what)
	r.compareOpening(a)
	if err := v.window(a, r.what, r.days); err != nil {
		return err
	}
	if err := v.fallOf(a, r.what); err != nil {
		return err
	}
	return v.dueOf(a, r.what)
}

// countAll counts what the account has earned and sold, and the days of its tier window. The stubs'
// are included; a stub itself has none.
func (r *replayer) countAll(h *saleHistory) {
	if f := r.family; f != nil {
		f.earned += r.earned
		for _, d := range r.days {
			f.days.add(d.Day, d.Basis)
		}
		if r.earned, r.days = 0, r.days[:0]; r.account.customer.MergedInto != (id{}) {
			h = new(saleHistory)
		} else {
			r.earned, r.days = f.earned, append(r.days, f.days...)
		}
	}
	r.addHistoric(r.account)
	r.countSales(h)
}

// addHistoric counts the account's historic points, which have no movement.
func (r *replayer) addHistoric(a *account) {
	for _, h := range a.Historic {
		if r.earned += h.Points; h.Points <= 0 {
			r.v.problem("%v: sus puntos históricos son %s", r.what, h.Points)
		}
	}
	if r.keepsDays {
		r.days.addHistoric(a)
	}
}

// countTier counts a customer in the tier that an account names.
func (v *verifier) countTier(a *account, what subject, kept bool) {
	if !kept {
		if a.isOwn() {
			v.problem("%v: falta", what)
		}
		return
	}
	v.tiers[programName{a.program.Number, a.Tier}]++
	if !v.recounting {
		equal(v, what, ": nivel", a.Tier, a.counted())
	}
}

// countSales counts the customer's sales in the account's program.
func (r *replayer) countSales(h *saleHistory) {
	a := r.account
	var sold basis
	for i := range h.all {
		s := h.all[i].sale
		if v := s.shareIn(a.program.Number); v != nil && s.Type == typeReturn {
			r.earned -= v.Unearned
		}
		if b, ok := s.basisIn(a.program.Number); ok && !a.isOwn() {
			sold = sold.plus(b)
		}
		if r.keepsDays {
			r.days.addSale(r.v.txn, s, a.program.Number)
		}
	}
	equal(r.v, r.what, ": total gastado", a.Spent, sold.Spent)
	equal(r.v, r.what, ": compras", a.Purchases, uint64(sold.Purchases))
}

// expiredWith returns what expired with a movement: with an Expiration, or with the debit of a
// redemption or a payment that was undone after some of its lots had expired.
func (v *verifier) expiredWith(m *movement, h *saleHistory) ([]use, error) {
	switch {
	case m.Category == categoryExpiration:
		return m.Uses, nil
	case m.isPayment():
		return v.expiredOfPayment(m, h)
	case m.Redemption == (id{}) || m.Amount > 0:
		return nil, nil
	}
	x, err := v.redemptionOf(m)
	if err != nil {
		return nil, err
	}
	v.countRedeemed(x, m)
	v.replayer.idle.redeemed(x)
	if h.erased && x.Comment != "" {
		v.problem("canje %s: tiene comentario, y su cliente está eliminado", x.ID)
	}
	if x.Sale != (id{}) {
		switch s := h.find(x.Sale); {
		case s == nil:
			v.problem("canje %s: su venta %s no es del cliente", x.ID, x.Sale)
		case x.CancelledAt != 0 && s.stands():
			v.problem("canje %s: se canceló, y su venta %s no se devolvió completa", x.ID, x.Sale)
		}
	}
	if x.CancelledAt == 0 {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(m.Uses), func(u use) bool { return u.comesBack(x.CancelledAt) }), nil
}

func (h *saleHistory) countMovement(v *verifier, m *movement) {
	s := h.find(m.Transaction)
	if m.isPayment() || m.isGiveBack() {
		v.countPayment(s, m)
		return
	}
	var moved *saleMovements
	if s != nil {
		moved = s.movedIn(m.Program)
	}
	if moved == nil || s.Customer != m.Customer {
		v.problem("movimiento %s: su venta %s no es del cliente", m.id(), m.Transaction)
		return
	}
	if m.By != s.By {
		v.differs(subject{kind: "venta", id: s.ID}, ": quién la registró", s.By, m.By)
	}
	moved.any, moved.balance = true, m.Balance
	moved.points += m.Amount
	if m.AvailFrom > 0 {
		moved.pending += m.Amount
		moved.lots = append(moved.lots, pendingRef{m.Seq, m.AvailFrom})
	}
}

// window compares the days of the tier window with what they should count.
func (v *verifier) window(a *account, what subject, days dayBases) error {
	tb := a.program.TierBasis
	days = days.kept(tb)
	var sum basis
	last := day(math.MinInt32)
	told := 0 // how many of days were compared
	for kept, err := range v.txn.points.days(a) {
		if err != nil {
			return err
		}
		if a.DaysApart {
			v.want[tableRecords].entries++
		}
		if v.recounting {
			continue
		}
		d := kept.Day
		if d <= last {
			v.problem("%v: los días del nivel no están en orden", what)
		}
		last = d
		for ; told < len(days) && days[told].Day < d; told++ {
			v.missingDay(a, what, days[told])
		}
		var should basis
		if told < len(days) && days[told].Day == d {
			should = days[told].Basis
			told++
		}
		if kept.Basis != should && v.txn.points.leaves(a, d) > v.txn.now { // a day that has left may still wait for the sweep
			v.differs(what, fmt.Sprintf(": base del día %d", d), kept.Basis, should)
		}
		sum = tb.with(sum, kept.Basis)
	}
	if v.recounting {
		return nil
	}
	if tb.Window != windowCalendarYear { // whose years are few
		v.atMost(what, "días del nivel", len(a.Days), v.txn.inline.days)
	}
	equal(v, what, ": base del nivel", a.Window, sum)
	for _, d := range days[told:] {
		v.missingDay(a, what, d)
	}
	return nil
}

// missingDay reports a day that should be kept and is not.
func (v *verifier) missingDay(a *account, what subject, d dayBasis) {
	if d.Basis != (basis{}) && v.txn.points.leaves(a, d.Day) > v.txn.now {
		v.problem("%v: falta la base del día %d", what, d.Day)
	}
}

// atMost checks that an account's own record holds no more than it should.
func (v *verifier) atMost(account subject, what string, n, most int) {
	if n > most {
		v.problem("%v: %d %s en su registro, más de %d", account, n, what, most)
	}
}

// begin starts on another account. It reuses the memory of the last one.
func (r *replayer) begin(v *verifier, a *account) {
	*r = replayer{
		v: v, account: a, what: subject{"cuenta", a.customer.ID, a.program.Key}, lots: r.lots[:0], days: r.days[:0], stored: r.stored[:0],
		keepsDays: a.program.TierBasis.keepsDays(),
	}
}

// take checks the next movement of the account, with its record, and plays it.
func (r *replayer) take(m *movement, record []byte, h *saleHistory) error {
	v := r.v
	v.want[tableMovements].entries++
	v.dayAt(m.Program, m.CreatedAt).countMovement(m)
	if a := r.account; m.Customer != a.customer.ID || m.Program != a.program.Number {
		v.problem("%v: el movimiento %s no es suyo", r.what, m.id())
	}
	if l := r.chain.append(m.Seq); m.Link != l {
		v.differs(r.what, ": enlace de "+m.id().String(), m.Link, l)
	}
	if !r.broken && m.Hash != hashMovement(r.last, v.txn.org, m.Seq, m.hashed(record)) {
		v.problem("%v: el movimiento %s (%d) no es el que se escribió, o no lo es el anterior", r.what, m.id(), m.Seq)
		r.broken = true
	}
	r.last = m.Hash
	v.checkComment(m, r.account.customer.Status == statusErased)
	r.play(m, h)
	if m.Category == categoryMerge {
		if r.family == nil {
			v.problem("%v: el movimiento %s es de una fusión que no hubo", r.what, m.id())
		} else {
			r.family.moved += m.Amount
		}
	}
	if m.Transaction != (id{}) {
		h.countMovement(v, m)
	}
	if m.Hold != (id{}) {
		v.countHold(m)
	}
	if m.Reference != "" {
		if err := v.has(tableReferences, v.txn.points.referenceKey(m.Reference).u64(m.Seq), nil, subject{"movimiento", m.id(), ""}); err != nil {
			return err
		}
	}
	r.countIdle(m, h)
	gone, err := v.expiredWith(m, h)
	if err != nil {
		return err
	}
	for _, u := range gone {
		if s := h.find(r.soldIn(u.Seq)); s != nil && s.movedIn(m.Program) != nil {
			s.movedIn(m.Program).expired += u.Amount
		}
	}
	if m.Amount > 0 && isEarning(m.Category) {
		r.earned += m.Amount
	}
	if m.isOpening() {
		r.opening += m.Amount
	}
	if r.keepsDays {
		r.days.addMovement(v.txn, m)
	}
	return nil
}

// soldIn is the sale that earned the points of a credit; zero if none did. The account may not have
// the credit's lot: held points move to a survivor without it.
func (r *replayer) soldIn(seq uint64) id {
	if l := r.lot(seq); l != nil {
		return l.sale
	}
	if r.family != nil {
		return r.family.lots[seq].sale
	}
	return id{}
}

// checkComment checks the comment of a movement, or that its erasure left none.
func (v *verifier) checkComment(m *movement, erased bool) {
	switch {
	case erased:
		if m.Comment != "" {
			v.problem("movimiento %s: tiene comentario, y su cliente está eliminado", m.id())
		}
	case m.Comment == "" && m.CommentHash == (ledgerHash{}): // it never had one
	case m.Comment == "" || m.CommentHash != m.commentHash():
		v.problem("movimiento %s: su comentario falta o no es el que se escribió", m.id())
	}
}

// mature makes the next pending lot that may accepts available; false if there is none.
func (r *replayer) mature(may func(*lot) bool) bool {
	var next *lot
	for i := range r.lots {
		l := &r.lots[i].lot
		if l.AvailFrom == 0 || !may(l) {
			continue
		}
		if next == nil || cmp.Or(cmp.Compare(l.AvailFrom, next.AvailFrom), cmp.Compare(l.Seq, next.Seq)) < 0 {
			next = l
		}
	}
	if next == nil {
		return false
	}
	debt := min(max(-r.balance, 0), next.Left)
	r.pending -= next.Left
	r.balance += next.Left
	next.Left -= debt
	next.AvailFrom = 0
	return true
}

// pendingBefore returns what was pending before a movement, according to the movement
// itself. Only a return or a merge takes from pending points.
func (r *replayer) pendingBefore(m *movement) decimal {
	before := m.Pending
	if m.AvailFrom > 0 {
		before -= m.Amount
	}
	if m.Amount > 0 || m.Category != categoryReturn && m.Category != categoryMerge {
		return before
	}
	for _, u := range m.Uses {
		if l := r.lot(u.Seq); l != nil && l.AvailFrom != 0 {
			before += u.Amount
		}
	}
	return before
}

func (r *replayer) play(m *movement, h *saleHistory) {
	// No movement says that a lot became available; the pending points show it.
	for r.pending != r.pendingBefore(m) && r.mature(func(*lot) bool { return true }) {
	}
	switch {
	case m.Hold != (id{}) && (m.Category == categoryRedemption || m.Category == categoryMerge): // of no lot
		r.balance += m.Amount
	case m.Category == categoryRelease:
		r.release(m)
	case m.Amount > 0 && m.isGiveBack():
		r.giveBack(m)
	case m.Amount > 0 && m.Category == categoryMerge && len(m.Uses) > 0:
		r.takeOver(m)
	case m.Amount > 0:
		l := lot{Seq: m.Seq, AvailFrom: m.AvailFrom, Expires: m.Expires, Left: m.Amount}
		if m.AvailFrom > 0 {
			r.pending += m.Amount
		} else {
			if !h.cameExpired(m) {
				l.Left -= min(max(-r.balance, 0), m.Amount)
			}
			r.balance += m.Amount
		}
		r.keep(creditLot{l, m.Transaction})
	default:
		r.takeFrom(m)
	}
	if m.Balance != r.balance {
		r.v.differs(r.what, ": saldo tras "+m.id().String(), m.Balance, r.balance)
	}
	if m.Pending != r.pending {
		r.v.differs(r.what, ": saldo pendiente tras "+m.id().String(), m.Pending, r.pending)
	}
}

// giveBack plays a refund to the lots that the refund names.
func (r *replayer) giveBack(m *movement) {
	for _, u := range m.Uses {
		left := u.Amount - min(max(-r.balance, 0), u.Amount)
		r.balance += u.Amount
		r.fill(u, left, m)
	}
}

// release plays the end of a hold: what goes back to lots, and the rest, which the next movement
// takes.
func (r *replayer) release(m *movement) {
	rest := m.Amount
	for _, u := range m.Uses {
		left := u.Amount
		if u.comesBack(m.CreatedAt) {
			left -= min(max(-r.balance, 0), u.Amount)
		}
		rest -= u.Amount
		r.balance += u.Amount
		r.fill(u, left, m)
	}
	if r.balance += rest; rest < 0 {
		r.v.problem("%v: %s devuelve más de lo que había", r.what, m.id())
	}
}

// fill adds what is left of points that a movement gives back to the lot that they came from.
func (r *replayer) fill(u use, left decimal, m *movement) {
	l := r.lot(u.Seq)
	if l == nil {
		l = r.inherited(u)
	}
	if l == nil || l.Expires != u.Expires {
		r.v.problem("%v: %s devuelve a un lote que no existe", r.what, m.id())
		return
	}
	l.Left += left
}

// takeFrom plays a debit from the lots that the debit names.
func (r *replayer) takeFrom(m *movement) {
	rest := -m.Amount
	for _, u := range m.Uses {
		l := r.lot(u.Seq)
		if l == nil || l.Left < u.Amount || l.Expires != u.Expires {
			r.v.problem("%v: %s toma de un lote que no lo tiene", r.what, m.id())
			continue
		}
		l.Left -= u.Amount
		if rest -= u.Amount; l.AvailFrom != 0 {
			r.pending -= u.Amount
		} else {
			r.balance -= u.Amount
		}
	}
	moved := m.Category == categoryReturn || m.Category == categoryMerge || m.Category == categoryHold && len(m.Uses) == 0 && r.family != nil
	if r.balance -= rest; rest < 0 || rest > 0 && !moved {
		r.v.problem("%v: los lotes de %s no suman su importe", r.what, m.id())
	}
}

func (r *replayer) compare(a *account) error {
	v := r.v
	// A lot that became available since the last movement is no longer stored as
	// pending. When it did is not checked: the clock may have been wrong.
	var pending map[uint64]bool
	for l, err := range v.txn.points.lots(a, partPending) {
		if err != nil {
			return err
		}
		if pending == nil {
			pending = map[uint64]bool{}
		}
		pending[l.Seq] = true
	}
	for r.mature(func(l *lot) bool { return !pending[l.Seq] }) {
	}
	equal(v, r.what, ": saldo", a.Balance, r.balance)
	equal(v, r.what, ": saldo pendiente", a.Pending, r.pending)
	if err := r.compareLots(a); err != nil {
		return err
	}
	if !a.LotsApart {
		return nil
	}
	return r.compareSums(a)
}

func (r *replayer) compareLots(a *account) error {
	v := r.v
	var there [partPending + 1]int // lots with something left, by part
	for i := range r.lots {
		l := &r.lots[i].lot
		if l.Left == 0 {
			continue
		}
		part := byte(partLot)
		if l.AvailFrom != 0 {
			part = partPending
		}
		there[part]++
		if a.LotsApart {
			v.want[tableRecords].entries++
		}
		stored, err := v.txn.points.lot(a, part, l)
		if err != nil {
			return err
		}
		if stored == nil {
			v.problem("%v: falta el lote %d", r.what, l.Seq)
			continue
		}
		if l.AvailFrom == 0 {
			stored.AvailFrom = 0 // when it became available no longer matters
		}
		if *stored != *l {
			v.differs(r.what, fmt.Sprintf(": lote %d", l.Seq), *stored, *l)
		}
	}
	if !a.LotsApart {
		equal(v, r.what, ": lotes en su registro", len(a.Lots), there[partLot])
		equal(v, r.what, ": lotes pendientes en su registro", len(a.Waiting), there[partPending])
		v.atMost(r.what, "lotes", len(a.Lots)+len(a.Waiting), v.txn.inline.lots)
	}
	return nil
}

// compareSums compares what expires at each moment with the sum that is stored.
func (r *replayer) compareSums(a *account) error {
	v, sums := r.v, map[instant]decimal{}
	for i := range r.lots {
		if l := &r.lots[i].lot; l.Left != 0 && l.AvailFrom == 0 && l.Expires != never {
			sums[l.Expires] += l.Left
		}
	}
	if !a.SumsApart {
		v.atMost(r.what, "vencimientos", len(a.Sums), v.txn.inline.sums)
		equal(v, r.what, ": vencimientos", len(a.Sums), len(sums))
		last := instant(math.MinInt64)
		for _, s := range a.Sums {
			equal(v, r.what, ": suma que vence "+s.ExpiresAt.String(), s.Amount, sums[s.ExpiresAt])
			if s.ExpiresAt <= last {
				v.problem("%v: los vencimientos no están en orden", r.what)
			}
			last = s.ExpiresAt
		}
		return nil
	}
	equal(v, r.what, ": vencimientos en su registro", len(a.Sums), 0)
	for _, expires := range slices.Sorted(maps.Keys(sums)) {
		if err := v.has(tableRecords, v.txn.points.partKey(a, partExpiring).instant(expires), numberValue(uint64(sums[expires])), r.what); err != nil {
			return err
		}
	}
	return nil
}

// ledgerOf reads the organization's movements in the order of seq, and compares the
// ledger with the earlier ones.
func (v *verifier) ledgerOf() error {
	now := ledgerState{Organization: v.txn.cfg.Organization.Slug}
	before := v.earlierStates()
	meet := func() {
		for _, s := range before {
			if s.Movements == now.Movements && s.Digest != now.Digest {
				v.problem("el libro no es la continuación del que tenía %d movimientos", s.Movements)
			}
		}
	}
	meet()
	for e, err := range scan(v.txn.Tx, orgKey('m', v.txn.org), false) {
		if err != nil {
			return err
		}
		if len(e.Value) < len(ledgerHash{}) {
			return unreadable(e.Key)
		}
		now.Digest = now.Digest.with(ledgerHash(e.Value[len(e.Value)-len(ledgerHash{}):]))
		now.Movements++
		meet()
	}
	for _, s := range before {
		if s.Movements > now.Movements {
			v.problem("el libro tenía %d movimientos y ahora tiene %d", s.Movements, now.Movements)
		}
	}
	v.ledger = now
	v.have[tableMovements].entries = now.Movements
	return nil
}

func (v *verifier) earlierStates() (list []ledgerState) {
	for _, s := range v.run.earlier {
		if s.Organization == v.txn.cfg.Organization.Slug {
			list = append(list, s)
		}
	}
	return list
}

func (v *verifier) redemptionOf(debit *movement) (*redemption, error) {
	own := &v.redeemed
	if own.unread {
		own.unread = false
		for r := own.known.record(); r != nil; r = own.known.record() {
			x, err := decodeRecord[redemption](own.known.take(r))
			if err != nil {
				return nil, atKey(v.txn.rewards.redemptionKey(r.seq), err)
			}
			if own.all == nil {
				own.all = map[id]*redemption{}
			}
			x.Seq = r.seq
			own.all[x.ID] = x
		}
	}
	if x := own.all[debit.Redemption]; x != nil {
		return x, nil
	}
	if x := v.redemptionBy(debit); x != nil {
		return x, nil
	}
	return v.txn.rewards.redemption(debit.Redemption)
}
