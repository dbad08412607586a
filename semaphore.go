package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Large requests are lists, statistics and POSTs with a large body. Semaphores bound what they
// hold: semaphores of memory, so that the bytes held for many connections do not add up, and
// semaphores of processors, so that small requests and /livez do not wait behind large ones. A
// request that gets no units in time is answered with 503.

const (
	// Bodies up to smallBody need no units. Splitting a body into small members takes
	// more memory than the body; maxMembers bounds that.
	smallBody   = 4 << 10
	largeBodies = 8 << 20 // bytes of larger bodies held at a time

	// The kernel buffers this much of an answer for a slow reader.
	smallAnswer  = 32 << 10
	largeAnswers = 32 << 20 // bytes of larger answers held at a time

	semaphoreUnit = 16 << 10        // bytes
	semaphoreWait = 2 * time.Second // for the units of one semaphore
	// Slow readers hold the units of answers. While a request waits for them it holds
	// up others whose answers need none.
	answerWait = 100 * time.Millisecond
)

// errNoRoom refuses a large request.
var errNoRoom = fmt.Errorf("%w: no room for a large request", errUnavailable)

// A semaphore is a number of units that requests take and give back.
type semaphore struct {
	turn  chan struct{} // held while taking units, so that nobody waits with half of what it needs
	taken chan struct{} // one element for each unit in use
}

func newSemaphore(units int) *semaphore {
	return &semaphore{make(chan struct{}, 1), make(chan struct{}, units)}
}

// processors is the size of a semaphore of processors: half of them. Reading and parsing
// have a semaphore each, so that large reads take nothing from large writes.
func processors() int { return max(runtime.GOMAXPROCS(0)/2, 1) }

// unitsOf is how many units n bytes take.
func unitsOf(n int) int { return (n + semaphoreUnit - 1) / semaphoreUnit }

// take waits for units, at most the given time, and returns how many it took: all or, with an
// error, none.
func (s *semaphore) take(ctx context.Context, units int, wait time.Duration) (int, error) {
	units = min(units, max(cap(s.taken), 1)) // a larger request gets the whole semaphore
	if s.takeNow(units) {
		return units, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errNoRoom)
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
			s.give(n)
			return 0, context.Cause(ctx)
		}
	}
	return units, nil
}

// takeNow takes the units if that needs no waiting, and reports whether it did. Waiting
// needs a timer, which wakes another thread.
func (s *semaphore) takeNow(units int) bool {
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
			s.give(n)
			return false
		}
	}
	return true
}

func (s *semaphore) give(units int) {
	for range units {
		<-s.taken
	}
}
