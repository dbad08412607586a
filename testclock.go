package main

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"sello/internal/wallclock"
)

// The clock of a sandbox (contract §24). It ticks as the machine's does, and can be set forward.
// Then everything that changes by itself meanwhile does so in the order of its moments, each as of
// its own: points expire, vouchers lapse, tiers fall and birthdays are given as if the server had
// run for so long.

// A movedMachine is a machine whose wall clock can be set. The zero one is not ready for use.
type movedMachine struct {
	began time.Time // by the machine's own clock
	last  atomic.Pointer[clockSet]
}

// A clockSet says what moment it was, and how long the machine had run then.
type clockSet struct {
	at    instant
	after time.Duration
}

func newMovedMachine(at instant) *movedMachine {
	m := &movedMachine{began: time.Now()}
	m.set(at)
	return m
}

// set makes it a moment.
func (m *movedMachine) set(at instant) { m.last.Store(&clockSet{at, time.Since(m.began)}) }

// reach makes it a moment, unless it is later already.
func (m *movedMachine) reach(at instant) {
	if instantOf(m.Read().Wall) < at {
		m.set(at)
	}
}

func (m *movedMachine) Read() wallclock.Reading {
	s, even := m.last.Load(), time.Since(m.began)
	return wallclock.Reading{Wall: s.at.time().Add(even - s.after), Even: even}
}

func (m *movedMachine) Awake() (time.Duration, bool) { return 0, false }

// synchronized makes the wall clock right, however far it jumps (internal/wallclock).
func (m *movedMachine) Synchronized() (yes, known bool) { return true, true }

// passBatch is how many things that are due one transaction does, or a few more.
const passBatch = 500

// passTime moves the clock forward to a moment.
func (e *engine) passTime(ctx context.Context, m *movedMachine, to instant) error {
	for done := false; !done; {
		now, s := instantOf(e.now()), e.seed()
		p, err := updateStore(ctx, e.store, func(tx Tx) (passed, error) { return e.pass(tx, now, to, s) })
		if err != nil {
			return err
		}
		m.reach(p.at)
		e.clock.Wrote(p.at)
		done = p.done
	}
	return e.sweep(ctx) // what is too old to be kept
}

// passed is how far time has passed in one transaction.
type passed struct {
	at   instant
	done bool // nothing else is due by then
}

// pass does the next things that become due up to a moment. What was due before now happens now.
func (e *engine) pass(tx Tx, now, to instant, s seed) (p passed, err error) {
	each, err := e.newOrgTxns(tx, now, s)
	if err != nil {
		return p, err
	}
	from := instant(0)
	for left := passBatch; left > 0; {
		next, err := e.nextDue(tx, from, each.now)
		if err != nil {
			return p, err
		}
		if next > to {
			return passed{to, true}, each.commit()
		}
		if err := each.goOn(max(next, each.now)); err != nil {
			return p, err
		}
		n, err := e.passMoment(each, from, left)
		if err != nil {
			return p, err
		}
		left, from = left-n-1, next
	}
	return passed{at: each.now}, each.commit()
}

// passMoment does what is due at the moment of the transactions, of every table most at the most.
// What was due before from is done.
func (e *engine) passMoment(each *orgTxns, from instant, most int) (n int, err error) {
	for _, d := range dueTables() {
		var list []key
		for entry, err := range each.tx.Scan(d.of.fixed().instant(from), d.of.fixed().instant(each.now+1), false) {
			if err != nil {
				return n, err
			}
			if list = append(list, slices.Clone(entry.Key)); len(list) == most {
				break
			}
		}
		n += len(list)
		for _, k := range list {
			if _, err := each.change(d, k); err != nil {
				return n, err
			}
		}
		if len(list) == most {
			return n, nil // the rest of the moment comes first
		}
	}
	at, err := e.birthdaysDue(each.tx, each.now)
	if err != nil || at.org == 0 {
		return n, err
	}
	t, err := each.of(at.org)
	if err == nil {
		_, err = t.rules.giveBirthdays(most)
	}
	return n + 8, err
}

// birthdaysDue returns the organization whose birthdays are due, if there is one, and when the next
// ones are.
func (e *engine) birthdaysDue(tx Tx, now instant) (birthdaysAt, error) {
	at := e.nextBirthdays(e.store.version(), tx, birthdaysAt{until: never}, now)
	return at, at.err
}

// nextDue is the first moment from which something changes by itself that was not done before;
// never if there is none. What is due already has the moment from or later.
func (e *engine) nextDue(tx Tx, from, now instant) (next instant, err error) {
	at, err := e.birthdaysDue(tx, now)
	if err != nil {
		return 0, err
	}
	if next = at.until; at.org != 0 {
		next = now
	}
	for _, d := range dueTables() {
		for entry, err := range tx.Scan(d.of.fixed().instant(from), d.of.fixed().instant(next), false) {
			if err != nil {
				return 0, err
			}
			next = instantIn(entry.Key[1:])
			break
		}
	}
	return next, nil
}

// goOn makes it a later moment in the transactions: what they have done is as if they had ended.
func (o *orgTxns) goOn(at instant) error {
	if at == o.now {
		return nil
	}
	o.now = at
	for _, t := range o.txns {
		if err := t.commit(); err != nil {
			return err
		}
		new(held).moveTo(t)
		setNow(t, max(at, t.now))
	}
	return nil
}
