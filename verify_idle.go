package main

import "slices"

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

// redeemed counts a redemption that took points.
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
	for i := range h.all { // those that were not known yet could keep nothing
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
