package main

import (
	"cmp"
	"context"
	"reflect"
	"slices"
)

// When a program's tiers, its join or its months of inactivity change, every customer is
// recounted: the days of its tier window, its tier and when its points lapse. This is done in
// bounded transactions after the document was applied, and earlier for a customer whose account
// is needed before its turn. The number of the next customer is stored, so that a stop in
// between loses nothing:
//
//	q org → number of the next customer to count

// recountBatch is how many customers one transaction recounts.
const recountBatch = 64

// needsRecount reports whether a new configuration can change customers' tiers, or when their
// points lapse.
func needsRecount(old, next *config) bool {
	for _, p := range old.Programs {
		if now := next.programNumber(p.Number); !reflect.DeepEqual(p.Tiers, now.Tiers) || p.TierBasis != now.TierBasis || p.Join != now.Join ||
			p.inactiveMonths() != now.inactiveMonths() {
			return true
		}
	}
	return false
}

func startRecount(tx Tx, org uint32) error { return putUint(tx, orgKey('q', org), 1) }

// recountAll is startRecount without a new document. It marks the configuration itself.
func recountAll(tx Tx, org uint32) error {
	raw, _, err := tx.Get(newKey('o').byte('c').u32(org))
	if err != nil {
		return err
	}
	cfg, err := parseConfig(raw)
	if err != nil {
		return err
	}
	cfg.Recount = true
	if err := saveConfig(tx, cfg); err != nil {
		return err
	}
	return startRecount(tx, org)
}

// recount recounts all customers of any organization that are due. While the clock is
// unsafe it does nothing.
func (e *engine) recount(ctx context.Context) error {
	return unlessUnsafe(e.recountBy(ctx, e.momentToWrite))
}

func (e *engine) recountBy(ctx context.Context, moment func() (instant, error)) error {
	if e.importUnderWay(ctx) {
		return nil // like the sweep it would bring accounts up to today
	}
	defer e.freeImports(ctx)
	for {
		now, err := moment()
		if err != nil {
			return err
		}
		s := e.seed()
		org, err := viewStore(ctx, e.store, func(tx Tx) (uint32, error) {
			for entry, err := range scan(tx, newKey('q'), false) {
				if err != nil {
					return 0, err
				}
				return uint32In(entry.Key[1:]), nil
			}
			return 0, nil
		})
		if err != nil || org == 0 {
			return err
		}
		err = e.store.Update(ctx, func(tx Tx) error {
			t, err := e.inTxn(tx, org, now, s)
			if err != nil {
				return err
			}
			if err := t.recount.next(); err != nil {
				return err
			}
			return t.commit()
		})
		if err != nil {
			return err
		}
		e.clock.Wrote(now)
	}
}

// A recountTxn recounts customers in a transaction.
type recountTxn struct {
	t    *txn
	done map[string]bool // accounts recounted in it, by key
}

// next recounts the next customers, and ends the recount after the last one.
func (r *recountTxn) next() error {
	place := orgKey('q', r.t.org)
	number, ok, err := getUint(r.t.Tx, place)
	if err != nil || !ok {
		return err
	}
	n, err := r.t.count()
	if err != nil {
		return err
	}
	for end := number + recountBatch; number < end && number <= n.Customers; number++ {
		c, err := r.t.customers.at(number)
		if err != nil {
			return err
		}
		for _, p := range r.t.cfg.Programs {
			a, err := r.t.points.storedAccount(c, p)
			if err != nil {
				return err
			}
			if err := r.rebuild(a); err != nil {
				return err
			}
		}
	}
	if number <= n.Customers {
		return r.t.putUint(place, number)
	}
	done := *r.t.cfg
	done.Recount = false
	if err := saveConfig(r.t.Tx, &done); err != nil {
		return err
	}
	return r.t.Delete(place)
}

// early recounts an account whose customer's turn is still to come.
func (r *recountTxn) early(a *account) error {
	name := string(r.t.points.accountKey(a.customer, a.program))
	if r.done[name] {
		return nil
	}
	place, _, err := getUint(r.t.Tx, orgKey('q', r.t.org))
	if err != nil || a.customer.Number < place {
		return err
	}
	if r.done == nil {
		r.done = map[string]bool{}
	}
	r.done[name] = true
	r.t.makeWritable()
	return r.rebuild(a)
}

// rebuild builds an account's tier window again and puts it in its tier, and makes it lapse as its
// program says now.
func (r *recountTxn) rebuild(a *account) error {
	p := a.program
	if !a.kept {
		return nil
	}
	if err := r.rebuildIdle(a); err != nil {
		return err
	}
	if err := r.t.points.clearWindow(a); err != nil {
		return err
	}
	if p.TierBasis.keepsDays() {
		days, err := r.basisDays(a)
		if err != nil {
			return err
		}
		for _, d := range days.kept(p.TierBasis) {
			if d.Basis == (basis{}) || r.t.points.leaves(a, d.Day) <= r.t.now {
				continue
			}
			a.Days = append(a.Days, d)
			a.Window = p.TierBasis.with(a.Window, d.Basis)
		}
		r.t.points.setDaysApart(a)
	}
	a.lookDue = true // time may have stepped back to before a notice
	a.recounting = true
	err := r.t.points.saveAccount(a)
	a.recounting = false
	return err
}

// rebuildIdle works out when an account lapses if its program's months have changed since. Nobody's
// points lapse soon after a change that is not in their favour.
func (r *recountTxn) rebuildIdle(a *account) (err error) {
	before := a.Idle
	if before.Months == a.program.inactiveMonths() {
		return r.countSpending(a)
	}
	if a.lapses() <= r.t.now { // before the change
		if err := r.t.points.pass(a); err != nil {
			return err
		}
	}
	a.Idle = idleness{Renewed: before.Renewed, Ended: before.Ended}
	if before.Months > 0 && before.End <= r.t.now {
		a.Idle.Ended = before.End
	}
	if a.program.inactiveMonths() == 0 {
		a.Idle = idleness{}
		return nil
	}
	if a.Idle.Redeemed, err = r.t.rewards.lastRedeemed(a); err != nil {
		return err
	}
	last, err := r.t.sales.lastActivity(a)
	r.t.points.beginIdle(a, last)
	if before.Months > 0 && before.Months < a.Idle.Months {
		a.Idle.End = max(a.Idle.End, before.End)
	} else {
		a.Idle.End = max(a.Idle.End, r.t.points.soonestLapse())
	}
	return err
}

// countSpending notes the last redemption again, which accounts of schema 12 did not all do.
func (r *recountTxn) countSpending(a *account) (err error) {
	if a.Idle.Months == 0 {
		return nil
	}
	if a.Idle.Redeemed, err = r.t.rewards.lastRedeemed(a); err == nil && a.Idle.Redeemed > 0 {
		r.t.points.active(a, a.Idle.Redeemed)
	}
	return err
}

// A dayBases is what days count toward an account's tier, in order.
type dayBases []dayBasis

func (list *dayBases) add(d day, b basis) {
	i, found := slices.BinarySearchFunc(*list, d, func(other dayBasis, d day) int { return cmp.Compare(other.Day, d) })
	if !found {
		*list = slices.Insert(*list, i, dayBasis{Day: d})
	}
	(*list)[i].Basis = (*list)[i].Basis.plus(b)
}

// kept is the list as accounts of a program keep it: where calendar years count, the days of each
// year are added up in one.
func (list dayBases) kept(tb tierBasis) dayBases {
	if tb.Window != windowCalendarYear {
		return list
	}
	var years dayBases
	for _, d := range list {
		years.add(tb.keptOn(d.Day), d.Basis)
	}
	return years
}

func (list *dayBases) addMovement(t *txn, m *movement) {
	if m.Amount > 0 && isEarning(m.Category) {
		list.add(t.dayOf(m.CreatedAt), basis{Points: m.Amount})
	}
}

func (list *dayBases) addHistoric(a *account) {
	for _, h := range a.Historic {
		list.add(h.Day, basis{Points: h.Points})
	}
}

func (list *dayBases) addSale(t *txn, s *sale, program uint32) {
	if b, ok := s.basisIn(program); ok {
		list.add(t.dayOf(s.CreatedAt), b)
	}
}

// basisDays returns what each day counts toward the account's tier: movements, historic
// points and sales of its customer and of the stubs.
func (r *recountTxn) basisDays(a *account) (dayBases, error) {
	if a.customer.MergedInto != (id{}) {
		return nil, nil
	}
	family, err := r.t.merges.family(a.customer)
	if err != nil {
		return nil, err
	}
	days, err := r.daysOf(family, a.program)
	days.addHistoric(a)
	return days, err
}

// daysOf returns what each day counts toward a tier in a program by the movements and the
// sales of customers.
func (r *recountTxn) daysOf(family []*customer, p *program) (days dayBases, err error) {
	for _, c := range family {
		a, err := r.t.points.storedAccount(c, p)
		if err != nil {
			return nil, err
		}
		for seq, left := a.Movements.last(), a.Movements.N; seq != 0 && left > 0; left-- {
			m, err := r.t.points.movement(seq)
			if err != nil {
				return nil, err
			}
			days.addMovement(r.t, m)
			seq = m.Link.Prev
		}
		for seq, left := c.Sales.last(), c.Sales.N; seq != 0 && left > 0; left-- {
			s, err := r.t.sales.at(seq)
			if err != nil {
				return nil, err
			}
			days.addSale(r.t, s, p.Number)
			seq = s.Link.Prev
		}
	}
	return days, nil
}
