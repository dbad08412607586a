package main

import (
	"context"
	"errors"
)

// Latest is the latest moment that any committed write carries. By it a wrong clock is
// noticed after a restart (internal/wallclock). Each organization keeps its own in its
// counters, so that writes of different organizations share no key.

// latestWritten returns the latest moment of all organizations; 0 if there is none.
func latestWritten(tx Tx) (latest instant, err error) {
	for e, err := range scan(tx, newKey('n'), false) {
		if err != nil {
			return 0, err
		}
		n, err := decodeEntry[counters](e)
		if err != nil {
			return 0, err
		}
		latest = max(latest, n.Latest)
	}
	return latest, nil
}

// setLatest sets the latest moment of every organization. Where that lowers it, time
// has stepped back, and customers are counted anew: days may have left a rolling tier
// window too early, and what is told of points and vouchers that expire is to come again.
// by is who accepted the clock.
func setLatest(tx Tx, now instant, by creator) error {
	organizations, err := organizationCount(tx)
	if err != nil {
		return err
	}
	for org := uint32(1); org <= uint32(organizations); org++ {
		t := bareTxn(tx, org, &mint{now: now}, by)
		n, err := t.count()
		if err == nil && n.Latest > now {
			err = recountAll(tx, org)
		}
		if err != nil {
			return err
		}
		before := n.Latest
		n.Latest = now
		if err := t.rewards.fileVouchers(before); err != nil {
			return err
		}
		if err := t.audit.note(auditClockAccepted, "", []change{{"latest", before, now}}); err != nil {
			return err
		}
		if err := t.commit(); err != nil {
			return err
		}
	}
	return nil
}

// commandTime is the moment of what an operator's command writes, even if the clock is
// unsafe.
func (e *engine) commandTime() (instant, error) { return instantOf(e.now()), nil }

// unlessUnsafe turns clock_unsafe into nil: a task that waits for the clock did not
// fail.
func unlessUnsafe(err error) error {
	if errors.Is(err, errClockUnsafe()) {
		return nil
	}
	return err
}

// acceptClock accepts the wall clock as right, even if it was found unsafe. by is who
// says so.
func (e *engine) acceptClock(ctx context.Context, by creator) error {
	r, _ := e.clock.Read()
	at := max(instantOf(r.Wall), 1) // 0 means that there is none
	if err := e.store.Update(ctx, func(tx Tx) error { return setLatest(tx, at, by) }); err != nil {
		return err
	}
	e.clock.Accept(at)
	return nil
}

// correctClock accepts the clock if a synchronized kernel says that latest is wrong.
func (e *engine) correctClock(ctx context.Context) error {
	if _, s := e.clock.Read(); !s.Contradicted {
		return nil
	}
	return e.acceptClock(ctx, creator{Type: bySystem})
}
