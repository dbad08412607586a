package main

import (
	"bytes"
	"maps"
	"slices"
)

// Checks of what changes by itself: when an account, a tier or a voucher is due for the sweep, when
// points lapse without activity, and when holds end.

// dueOf checks the moment at which an account changes by itself.
func (v *verifier) dueOf(a *account, what subject) error {
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	due, err := v.txn.points.firstDue(a, n.Latest)
	if err != nil {
		return err
	}
	if !v.recounting && a.Due != due {
		// A notice that was before the organization's latest write may be to come since the account's.
		notice, err := v.txn.points.expiringFrom(a, a.Due+noticeTime, 1)
		if err != nil {
			return err
		}
		if a.Due > due || len(notice) == 0 || notice[0].ExpiresAt != a.Due+noticeTime {
			equal(v, what, ": vencimiento", a.Due, due)
		}
	}
	if a.Due != never {
		return v.has(tableDue, v.txn.points.dueKey(a, a.Due), nil, what)
	}
	return nil
}

// fallOf checks the moment at which an account looks for a fall of its tier. A day of the window leaves
// then or fallNotice later. The moment is not after the tier's fall, nor after the notice of the fall
// if that is still to come. Older records have no such moment.
func (v *verifier) fallOf(a *account, what subject) error {
	if a.LookFall == 0 || v.recounting {
		return nil
	}
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	f, err := v.txn.points.fall(a)
	if err != nil {
		return err
	}
	last := f.At
	if f.At-fallNotice > n.Latest {
		last -= fallNotice
	}
	known := false
	for d, err := range v.txn.points.days(a) {
		if err != nil {
			return err
		}
		leaves := v.txn.points.leaves(a, d.Day)
		known = known || leaves == a.LookFall || leaves-fallNotice == a.LookFall
	}
	if !known || f.At == never || !a.isCounted() || a.LookFall > last {
		v.differs(what, ": cuándo puede bajar su nivel", a.LookFall, f.At)
	}
	return nil
}

// dueVoucher expects the entry by which the sweep tells that a voucher has expired. After its
// expiry it stays until the sweep has come by.
func (v *verifier) dueVoucher(x *redemption, what subject) error {
	if !x.lapses() {
		return nil
	}
	k := v.txn.rewards.dueVoucherKey(x)
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	if x.Expires <= n.Latest {
		if _, kept, err := v.txn.Get(k); err != nil || !kept {
			return err
		}
	}
	return v.has(tableDueVouchers, k, nil, what)
}

// When an account lapses cannot be worked out again exactly: its program may have had other months
// before, and what stood for a while leaves its mark. So the end is bounded: it is no sooner than
// the activities that stand give, and no later than all that ever happened would, or a change of the
// configuration. It is the end of a day, and so are the moments at which points lapsed; a month
// without activity that stands is before each, since no program has less.

// countIdle counts a movement of the account, or checks that points could lapse by it.
func (r *replayer) countIdle(m *movement, h *saleHistory) {
	r.idle.latest = max(r.idle.latest, m.CreatedAt)
	if m.AvailFrom <= r.v.txn.now {
		r.idle.latest = max(r.idle.latest, m.AvailFrom)
	}
	if m.Amount > 0 && r.account.program.inactiveMonths() > 0 {
		r.idle.credits = append(r.idle.credits, m.CreatedAt, m.AvailFrom)
	}
	if m.Category == categoryRedemption && m.Amount < 0 && m.Redemption == (id{}) {
		if s := h.find(m.Transaction); s == nil || s.stands() {
			r.idle.standing = append(r.idle.standing, m.CreatedAt)
		}
	}
	switch {
	case m.isGiveBack() || m.Category == categoryRelease:
		r.idle.back = m
	case m.Category == categoryExpiration && r.idle.cameBack(m):
		if held := r.v.holds[r.idle.back.Hold]; held != nil {
			held.balance = m.Balance
		}
	case m.Category == categoryExpiration:
		r.idle.back = nil
		r.lapsed(m, h)
	case m.Hold == (id{}): // else a capture, between what came back and what lapses of it
		r.idle.back = nil
	}
}

func (i *idleAgain) redeemed(x *redemption) {
	if x.CancelledAt != 0 {
		return
	}
	i.standing = append(i.standing, x.CreatedAt)
	if x.Gift == (gift{}) {
		i.always = max(i.always, x.CreatedAt)
	}
}

// lapsed checks an Expiration of lots that had not expired: everything lapsed then.
func (r *replayer) lapsed(m *movement, h *saleHistory) {
	if !slices.ContainsFunc(m.Uses, func(u use) bool { return u.Expires > m.CreatedAt }) {
		return
	}
	if !r.isDayEnd(m.CreatedAt) {
		r.v.problem("%v: el movimiento %s vence puntos antes de su fecha", r.what, m.id())
		return
	}
	active := r.idle.always
	for i := range h.all { // a sale not known yet could keep nothing
		if s := &h.all[i]; s.Customer == r.account.customer.ID && s.RegisteredAt < m.CreatedAt && s.stands() && s.shareIn(r.account.program.Number) != nil {
			active = max(active, s.CreatedAt)
		}
	}
	least := account{program: r.account.program, Idle: idleness{Months: 1}}
	if active > 0 && m.CreatedAt < r.v.txn.points.idleEnd(&least, active) {
		r.v.problem("%v: el movimiento %s vence puntos por inactividad, y no la hubo", r.what, m.id())
	}
}

// cameBack reports whether all that an Expiration took had just come back, from a hold or by a
// refund, which may be dated earlier: then it lapsed at once.
func (i *idleAgain) cameBack(m *movement) bool {
	return i.back != nil && (i.back.CreatedAt == m.CreatedAt || i.back.isGiveBack()) && !slices.ContainsFunc(m.Uses, func(u use) bool {
		return !slices.ContainsFunc(i.back.Uses, func(o use) bool { return o.Seq == u.Seq })
	})
}

func (r *replayer) isDayEnd(at instant) bool {
	return r.v.txn.dayOf(at).end(r.v.txn.cfg.zone) == at
}

// compareIdle checks when an account lapses. family comes before its last member, who has what all
// of it did.
func (r *replayer) compareIdle(a *account, h *saleHistory) error {
	v := r.v
	idle := r.idle
	isStub := a.customer.MergedInto != (id{})
	if f := r.family; f != nil {
		if f.idle.join(idle); !isStub {
			idle = f.idle
		}
	}
	if v.recounting || !a.kept {
		return nil
	}
	equal(v, r.what, ": meses sin actividad", a.Idle.Months, a.program.inactiveMonths())
	if a.Idle.Months == 0 || isStub {
		return nil
	}
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	active, latest := max(a.customer.CreatedAt, slices.Max(append(idle.standing, 0))), max(idle.latest, a.customer.CreatedAt)
	for i := range h.all {
		s := &h.all[i]
		if s.shareIn(a.program.Number) == nil {
			continue
		}
		if latest = max(latest, s.CreatedAt, s.RegisteredAt); s.stands() {
			active = max(active, s.CreatedAt)
		}
	}
	pt := &v.txn.points
	most := max(pt.idleEnd(a, latest), (v.txn.dayOf(n.Latest) + leastNotice).end(v.txn.cfg.zone))
	if end := a.Idle.End; end < pt.idleEnd(a, active) || end > most || !r.isDayEnd(end) {
		v.problem("%v: vence por inactividad el %v, y debería ser entre %v y %v", r.what, end, pt.idleEnd(a, active), most)
	}
	if at := a.Idle.Ended; at != 0 && (at >= a.Idle.End || at > n.Latest || !r.isDayEnd(at)) {
		v.problem("%v: ningún plazo sin actividad pudo terminar el %v", r.what, at)
	}
	if at := a.Idle.Renewed; at != 0 && (!slices.Contains(idle.credits, at) || a.Idle.End < pt.idleEnd(a, at)) {
		v.problem("%v: sus puntos no pudieron empezar otro plazo el %v", r.what, at)
	}
	if at := a.Idle.Redeemed; at != 0 && !slices.Contains(idle.standing, at) || at == 0 && len(idle.standing) > 0 {
		v.differs(r.what, ": último canje", at, slices.Max(append(idle.standing, 0)))
	}
	return nil
}

// readHolds reads the holds of a customer and its stubs. Most organizations have none.
func (v *verifier) readHolds(family []*customer) error {
	v.holds = nil
	if v.someHolds == nil {
		some, err := hasAny(v.txn.Tx, orgKey('O', v.txn.org))
		if err != nil {
			return err
		}
		v.someHolds = &some
	}
	if !*v.someHolds {
		return nil
	}
	for _, c := range family {
		ids, err := v.txn.points.holdIDs(c.ID)
		if err != nil {
			return err
		}
		for _, u := range ids {
			h, err := get[hold](v.txn.Tx, v.txn.points.holdKey(u))
			if err != nil {
				return err
			}
			if h == nil || h.Customer != c.ID {
				v.problem("retención %s: no existe, o no es del cliente %s", u, c.ID)
				continue
			}
			h.ID = u
			v.want[tableHolds].entries++
			if v.holds == nil {
				v.holds = map[id]*heldAgain{}
			}
			v.holds[u] = &heldAgain{hold: h}
		}
	}
	return nil
}

func (v *verifier) countHold(m *movement) {
	h := v.holds[m.Hold]
	if h == nil || h.Program != m.Program {
		v.problem("movimiento %s: su retención %s no es del cliente", m.id(), m.Hold)
		return
	}
	if m.Seq > h.last {
		h.last, h.balance = m.Seq, m.Balance
	}
	switch m.Category {
	case categoryHold:
		if h.net -= m.Amount; m.Seq == h.Movement {
			h.begun = m
		}
	case categoryRelease:
		if h.net -= m.Amount; h.ended == nil || m.Seq > h.ended.Seq {
			h.ended = m
		}
	case categoryRedemption:
		h.taken = m
		if h.captured -= m.Amount; m.Transaction != h.Sale {
			v.problem("retención %s: su venta no es la de su movimiento", h.ID)
		}
	case categoryMerge: // another Release and Hold go with it
	default:
		v.problem("movimiento %s: no puede ser de una retención", m.id())
	}
}

// openHolds checks the open holds that an account knows.
func (v *verifier) openHolds(a *account, what subject) {
	last := openHold{}
	for _, o := range a.Holds {
		h := v.holds[o.ID]
		if h == nil || h.inSight || h.Program != a.program.Number || h.State != holdHeld || o != (openHold{h.ID, h.Amount, h.Expires}) || o.Expires < last.Expires {
			v.problem("%v: su retención %s no es la que se anotó", what, o.ID)
			continue
		}
		h.inSight, last = true, o
	}
}

// holdsEnded checks the holds of a customer once all of its movements were counted.
func (v *verifier) holdsEnded() {
	for _, u := range slices.SortedFunc(maps.Keys(v.holds), func(a, b id) int { return bytes.Compare(a[:], b[:]) }) {
		h := v.holds[u]
		what := subject{kind: "retención", id: u}
		if m := h.begun; m == nil || m.Hold != u || -m.Amount != h.Amount || m.Customer != h.Customer || m.CreatedAt != h.CreatedAt || m.By != h.By || !slices.Equal(m.Uses, h.Uses) {
			v.problem("%v: difiere de su movimiento", what)
		}
		if s := v.history.find(h.Sale); h.Sale != (id{}) && (s == nil || s.Payment == nil || s.Payment.Hold != u) {
			v.problem("%v: su venta %s no es la que pagó", what, h.Sale)
		}
		open := h.State == holdHeld
		if open {
			equal(v, what, ": puntos retenidos", h.net, h.Amount)
		} else {
			equal(v, what, ": puntos retenidos", h.net, 0)
			v.holdEnded(h, what)
		}
		equal(v, what, ": puntos cobrados", h.Captured, h.captured)
		if open != h.inSight || h.Captured > h.Amount || (h.State == holdCaptured) != (h.Captured > 0) || h.Expires <= h.CreatedAt || h.Sale != (id{}) && h.Captured == 0 ||
			h.State == holdExpired && h.ClosedAt != h.Expires {
			v.problem("%v: su estado no puede ser %s", what, h.State)
		}
		if open && h.begun != nil {
			equal(v, what, ": saldo", h.Balance, h.begun.Balance)
		}
	}
}

// holdEnded checks a hold that has ended: when, and that captured and released points together are
// what it had.
func (v *verifier) holdEnded(h *heldAgain, what subject) {
	if h.ended == nil {
		v.problem("%v: terminó sin movimiento", what)
		return
	}
	equal(v, what, ": cuándo terminó", h.ClosedAt, h.ended.CreatedAt)
	left := map[use]decimal{} // by lot
	add := func(uses []use, sign decimal) (sum decimal) {
		for _, u := range uses {
			left[use{Seq: u.Seq, Expires: u.Expires}] += sign * u.Amount
			sum += u.Amount
		}
		return sum
	}
	add(h.Uses, 1)
	add(h.ended.Uses, -1)
	if h.taken != nil {
		equal(v, what, ": puntos cobrados", add(h.taken.Uses, -1), h.Captured)
	}
	for _, rest := range left {
		if rest != 0 {
			v.problem("%v: no se cobró y se liberó lo que había", what)
			break
		}
	}
	equal(v, what, ": saldo", h.Balance, h.balance)
}
