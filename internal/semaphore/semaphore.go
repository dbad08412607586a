// Package semaphore bounds what is held at one time, in units of any size.
package semaphore

import (
	"context"
	"time"
)

// A Semaphore is a number of units that are taken and given back.
type Semaphore struct {
	turn  chan struct{} // held while taking units, so that nobody waits with half of what it needs
	taken chan struct{} // one element for each unit in use
	full  error
}

// New returns a semaphore with so many units. Who gets none in time gets the error full.
func New(units int, full error) *Semaphore {
	return &Semaphore{make(chan struct{}, 1), make(chan struct{}, units), full}
}

// Take waits for units, at most the given time, and returns how many it took: all or, with an
// error, none.
func (s *Semaphore) Take(ctx context.Context, units int, wait time.Duration) (int, error) {
	units = min(units, max(cap(s.taken), 1)) // who needs more gets the whole semaphore
	if s.takeNow(units) {
		return units, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, s.full)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	for n := range units {
		select {
		case s.taken <- struct{}{}:
		case <-ctx.Done():
			s.Give(n)
			return 0, context.Cause(ctx)
		}
	}
	return units, nil
}

// takeNow takes the units if that needs no waiting, and reports whether it did. Waiting
// needs a timer, which wakes another thread.
func (s *Semaphore) takeNow(units int) bool {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		return false
	}
	for n := range units {
		select {
		case s.taken <- struct{}{}:
		default:
			s.Give(n)
			return false
		}
	}
	return true
}

// Give gives units back.
func (s *Semaphore) Give(units int) {
	for range units {
		<-s.taken
	}
}

// Taken returns how many units are in use, counting a turn that somebody waits in as one.
func (s *Semaphore) Taken() int { return len(s.taken) + len(s.turn) }
