package main

import (
	"cmp"
	"slices"
)

// An account at another moment than now (contract §22). The past is what the movements dated up to
// the moment say, in the order of their dates: a sale that comes late changes it. The future is
// what will be left if nothing happens but what time brings: points become available, expire and
// lapse, holds end, full cards give their vouchers. Birthdays are not foreseen.

// An accountAt is what an account was at a moment. What cannot be known is nil.
type accountAt struct {
	pointSums
	Lifetime *decimal
	Expiring []expiring
}

// pointSums are an account's points at a moment: available, pending and set aside by holds.
type pointSums struct {
	Balance decimal `json:"balance"`
	Pending decimal `json:"pendingBalance"`
	Held    decimal `json:"heldBalance"`
}

// foresee returns an account as it will be at a moment that is not past. It rehearses: nothing is
// kept, and t.now is that moment afterwards.
func foresee(t *txn, c *customer, p *program, at instant) (*account, error) {
	if at <= t.now {
		return t.points.account(c, p)
	}
	t.rehearse()
	for {
		if _, err := t.points.account(c, p); err != nil {
			return nil, err
		}
		if _, err := t.giver.giveRisen(id{}); err != nil { // as the sweep does
			return nil, err
		}
		a, err := t.points.account(c, p)
		if err != nil || t.now >= at {
			return a, err
		}
		t.now = at
		if p.gives {
			if t.now, err = t.points.nextRise(a, at); err != nil {
				return nil, err
			}
		}
		t.began = t.now
	}
}

// nextRise is when pending or held points of an account become available next, so that vouchers may
// be given; at most latest.
func (pt *pointsTxn) nextRise(a *account, latest instant) (instant, error) {
	for l, err := range pt.lots(a, partPending) {
		if err != nil {
			return 0, err
		}
		latest = min(latest, l.AvailFrom)
		break
	}
	return min(latest, a.holdEnds()), nil
}

// recall returns an account, and what it was, by its movements, at a moment that is not in the future.
// ofDay says that the moment is the end of a day: then it is before what lapsed at that moment.
func recall(t *txn, c *customer, p *program, at instant, ofDay bool) (*account, *accountAt, error) {
	a, err := t.points.account(c, p)
	if err != nil {
		return nil, nil, err
	}
	list, err := datedChain(t, a.Movements.last(), at)
	if err != nil {
		return nil, nil, err
	}
	r := newLedgerReplay(t)
	for _, d := range list {
		if ofDay && d.at == at {
			m, err := t.points.movement(d.seq)
			if err != nil {
				return nil, nil, err
			}
			if m.Category == categoryExpiration && m.Uses[0].Expires >= at { // else they were dead already, in a hold
				continue
			}
		}
		if _, err := r.play(d.seq); err != nil {
			return nil, nil, err
		}
	}
	r.passTo(at)
	then := &accountAt{pointSums: r.pointSums, Expiring: r.expiring(a)}
	then.Lifetime, err = lifetimeAt(t, a, r.earned, at)
	return a, then, err
}

// A datedSeq is a movement and the moment that it is dated at.
type datedSeq struct {
	at  instant
	seq uint64
}

// datedChain lists the movements of a chain, from the one at seq back, that are dated up to a moment:
// by their dates, and movements of the same moment as they were written. It keeps 16 bytes for each.
func datedChain(t *txn, seq uint64, until instant) (list []datedSeq, err error) {
	for m, err := range t.points.chainFrom(seq) {
		if err != nil {
			return nil, err
		}
		if m.CreatedAt <= until {
			list = append(list, datedSeq{m.CreatedAt, m.Seq})
		}
	}
	slices.SortFunc(list, func(a, b datedSeq) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	return list, nil
}

// A ledgerReplay plays movements in the order of their dates. It keeps the lots that are not empty.
type ledgerReplay struct {
	t *txn
	pointSums
	earned  decimal
	lots    map[uint64]*lot // by the sequence of the credit
	waiting []*lot          // the pending lots, the first to become available first
}

func newLedgerReplay(t *txn) *ledgerReplay { return &ledgerReplay{t: t, lots: map[uint64]*lot{}} }

// play plays the movement at seq.
func (r *ledgerReplay) play(seq uint64) (*movement, error) {
	m, err := r.t.points.movement(seq)
	if err != nil {
		return nil, err
	}
	r.passTo(m.CreatedAt)
	if m.Category == categoryHold || m.Category == categoryRelease {
		r.Held -= m.Amount
	}
	switch {
	case m.Hold != (id{}) && (m.Category == categoryRedemption || m.Category == categoryMerge): // of no lot
		r.Balance += m.Amount
	case m.Category == categoryRelease, m.isGiveBack():
		r.giveBack(m)
	case m.Amount > 0:
		r.credit(m)
	default:
		r.debit(m)
	}
	return m, nil
}

// passTo makes pending points available whose moment has come.
func (r *ledgerReplay) passTo(at instant) {
	for len(r.waiting) > 0 && r.waiting[0].AvailFrom <= at {
		l := r.waiting[0]
		r.waiting = r.waiting[1:]
		l.AvailFrom = 0
		left := l.Left
		r.Pending -= left
		l.Left -= r.owed(left)
		r.Balance += left
		r.keep(l)
	}
}

// owed is how much of points that become available a debt takes.
func (r *ledgerReplay) owed(points decimal) decimal { return max(min(-r.Balance, points), 0) }

// lot returns the lot of a use. One that is not known yet has nothing left.
func (r *ledgerReplay) lot(u use) *lot {
	if l := r.lots[u.Seq]; l != nil {
		return l
	}
	return &lot{Seq: u.Seq, Expires: u.Expires}
}

// keep keeps a lot that is not empty, or that owes what was taken before its credit.
func (r *ledgerReplay) keep(l *lot) {
	if l.Left == 0 && l.AvailFrom == 0 {
		delete(r.lots, l.Seq)
	} else {
		r.lots[l.Seq] = l
	}
}

func (r *ledgerReplay) credit(m *movement) {
	if isEarning(m.Category) {
		r.earned += m.Amount
	}
	of := use{Seq: m.Seq, Expires: m.Expires}
	if len(m.Uses) > 0 { // a Merge: the lot keeps its origin
		of = m.Uses[0]
	}
	l := r.lot(of)
	if l.AvailFrom = m.AvailFrom; l.AvailFrom > 0 {
		early := min(max(-l.Left, 0), m.Amount) // taken from the balance by what is dated before
		r.Balance += early
		r.Pending += m.Amount - early
		l.Left += m.Amount
		i, _ := slices.BinarySearchFunc(r.waiting, l, func(o, l *lot) int {
			return cmp.Or(cmp.Compare(o.AvailFrom, l.AvailFrom), cmp.Compare(o.Seq, l.Seq))
		})
		r.waiting = slices.Insert(r.waiting, i, l)
	} else {
		l.Left += m.Amount - r.owed(m.Amount)
		r.Balance += m.Amount
	}
	r.keep(l)
}

// giveBack plays what returns points to their lots. What a Release leaves out is in its balance too.
func (r *ledgerReplay) giveBack(m *movement) {
	rest := m.Amount
	for _, u := range m.Uses {
		left := u.Amount
		if m.isGiveBack() || u.comesBack(m.CreatedAt) {
			left -= r.owed(u.Amount)
		}
		rest -= u.Amount
		r.Balance += u.Amount
		l := r.lot(u)
		l.Left += left
		r.keep(l)
	}
	r.Balance += rest
}

func (r *ledgerReplay) debit(m *movement) {
	rest := -m.Amount
	for _, u := range m.Uses {
		l := r.lot(u)
		l.Left -= u.Amount
		rest -= u.Amount
		if l.AvailFrom > 0 {
			r.Pending -= u.Amount
		} else {
			r.Balance -= u.Amount
		}
		r.keep(l)
	}
	r.Balance -= rest
}

// expiring lists what expires of an account as pointsTxn.expiring does; nil if that is not known:
// the dates of a late sale may not say which lots were left, and when points were to lapse for
// inactivity is not kept.
func (r *ledgerReplay) expiring(a *account) []expiring {
	list, left := []lot{}, decimal(0)
	for _, l := range r.lots {
		if l.Left < 0 {
			return nil
		}
		if l.AvailFrom == 0 {
			left += l.Left
			list = append(list, *l)
		}
	}
	if left != max(r.Balance, 0) || left > 0 && a.program.inactiveMonths() > 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b lot) int { return byExpiry(&a, &b) })
	sums := sumsOf(list)
	return sums[:min(len(sums), maxExpiring)]
}

// lifetimeAt is what an account had earned at a moment, given what its movements up to then earned;
// nil if that is not known: a merge moves what was earned without a movement, and of historic
// points only the day is kept.
func lifetimeAt(t *txn, a *account, earned decimal, at instant) (*decimal, error) {
	family, err := t.merges.family(a.customer)
	if err != nil || len(family) > 1 || a.customer.MergedInto != (id{}) {
		return nil, err
	}
	for _, h := range a.Historic {
		switch {
		case h.Day.end(t.cfg.zone) <= at:
			earned += h.Points
		case h.Day.start(t.cfg.zone) <= at:
			return nil, nil
		}
	}
	for s, err := range t.sales.chainFrom(a.customer.Sales.last()) {
		if err != nil {
			return nil, err
		}
		if s.Type != typeReturn || s.CreatedAt > at {
			continue
		}
		if v := s.shareIn(a.program.Number); v != nil {
			earned -= v.Unearned
		}
	}
	return &earned, nil
}
