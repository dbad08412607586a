package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Large requests are lists, statistics and POSTs with a large body. They share rooms:
// of memory, so that the bytes held for many connections do not add up, and of
// processors, so that small requests and /livez do not wait behind large ones. A
// request that gets no room in time is answered with 503.

const (
	// Bodies up to smallBody need no room. Splitting a body into small members takes
	// more memory than the body; maxMembers bounds that.
	smallBody   = 4 << 10
	largeBodies = 8 << 20 // bytes of larger bodies held at a time

	// The kernel buffers this much of an answer for a slow reader.
	smallAnswer  = 32 << 10
	largeAnswers = 32 << 20 // bytes of larger answers held at a time

	roomUnit = 16 << 10
	patience = 2 * time.Second // for each kind of room
	// Slow readers hold the room for answers. A request that waits for it holds up
	// others whose answers need none.
	answerPatience = 100 * time.Millisecond
)

// errNoRoom refuses a large request.
var errNoRoom = fmt.Errorf("%w: no room for a large request", errUnavailable)

// A room is a number of units to be shared.
type room struct {
	turn  chan struct{} // held while taking units, so that nobody waits with half of what it needs
	taken chan struct{} // one element for each unit in use
}

func newRoom(units int) *room {
	return &room{make(chan struct{}, 1), make(chan struct{}, units)}
}

// processors is the size of a room of processors: half of them. Reading and parsing
// have a room each, so that large reads take nothing from large writes.
func processors() int { return max(runtime.GOMAXPROCS(0)/2, 1) }

// unitsOf is how many units n bytes take.
func unitsOf(n int) int { return (n + roomUnit - 1) / roomUnit }

// take waits for units and returns how many it took: all or, with an error,
// none.
func (r *room) take(ctx context.Context, units int, patience time.Duration) (int, error) {
	units = min(units, max(cap(r.taken), 1)) // a larger request gets the whole room
	if r.takeNow(units) {
		return units, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNoRoom)
	defer cancel()
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	for n := range units {
		select {
		case r.taken <- struct{}{}:
		case <-ctx.Done():
			r.give(n)
			return 0, context.Cause(ctx)
		}
	}
	return units, nil
}

// takeNow takes the units if that needs no waiting, and reports whether it did. Waiting
// needs a timer, which wakes another thread.
func (r *room) takeNow(units int) bool {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	default:
		return false
	}
	for n := range units {
		select {
		case r.taken <- struct{}{}:
		default:
			r.give(n)
			return false
		}
	}
	return true
}

func (r *room) give(units int) {
	for range units {
		<-r.taken
	}
}
