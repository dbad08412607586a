package main

import (
	"context"
	"errors"
)

// Latest is the latest moment that any committed write carries: by it a wrong clock is
// known after a restart (wallclock.go). Each organization keeps its own with its
// counters, so that a write needs no key for it that others write too.

// latestWritten is the latest of all organizations; 0 if there is none.
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

// stepOn keeps time from stepping back within an organization, for which others may
// have written since the caller asked for the moment: then the transaction has theirs.
func (t *txn) stepOn() error {
	n, err := t.count()
	if err != nil || n.Latest <= t.now {
		return err
	}
	t.steppedOn = n.Latest.sub(t.now)
	t.now, t.began = n.Latest, n.Latest
	return nil
}

// inTime is clock_unsafe where the clock differs from that of another server by too
// much to say which one is right.
func (t *txn) inTime() error {
	if t.steppedOn > clockSlack {
		return errClockUnsafe()
	}
	return nil
}

// noteLatest is what commit does, for who writes an organization without a txn.
func noteLatest(tx Tx, org uint32, now instant) error {
	return changeCounters(tx, org, func(n *counters) error {
		n.Latest = max(n.Latest, now)
		return nil
	})
}

func changeCounters(tx Tx, org uint32, change func(*counters) error) error {
	k := orgKey('n', org)
	n, err := get[counters](tx, k)
	if err != nil {
		return err
	}
	if n == nil {
		n = new(counters)
	}
	if err := change(n); err != nil {
		return err
	}
	return put(tx, k, n)
}

// setLatest sets the latest moment of every organization. Where that lowers it, time
// has stepped back, and days that have left a rolling tier window too early have to come
// back to it: so customers are counted anew.
func setLatest(tx Tx, now instant) error {
	organizations, _, err := getUint(tx, newKey('o').byte('n'))
	if err != nil {
		return err
	}
	for org := uint32(1); org <= uint32(organizations); org++ {
		err := changeCounters(tx, org, func(n *counters) (err error) {
			if n.Latest > now {
				err = recountAll(tx, org)
			}
			n.Latest = now
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// commandTime is the moment of what an operator's command writes, whatever is thought of
// the clock.
func (e *engine) commandTime() (instant, error) { return instantOf(e.now()), nil }

// unlessUnsafe leaves out that a task has to wait for the clock.
func unlessUnsafe(err error) error {
	if errors.Is(err, errClockUnsafe()) {
		return nil
	}
	return err
}

// acceptClock takes the wall clock for right, whatever was thought of it.
func (e *engine) acceptClock(ctx context.Context) error {
	r, _ := e.clock.read()
	at := max(instantOf(r.wall), 1) // 0 stands for none
	if err := e.store.Update(ctx, func(tx Tx) error { return setLatest(tx, at) }); err != nil {
		return err
	}
	e.clock.accept(at)
	return nil
}

// correctClock lowers latest where a kernel that is synchronized contradicts it.
func (e *engine) correctClock(ctx context.Context) error {
	if _, s := e.clock.read(); !s.contradicted {
		return nil
	}
	return e.acceptClock(ctx)
}
