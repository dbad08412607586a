package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Large requests, which are lists, statistics and POSTs with a large body,
// share what room there is: for the bytes that they hold, so that those of many
// connections do not add up, and for the processors, so that small requests and
// /livez do not wait behind them. Who gets no room in time gets 503.

const (
	// A body may be so large without any of this. What one of small members takes,
	// when it has been taken apart, is bounded by their number: see maxMembers.
	smallBody   = 4 << 10
	largeBodies = 8 << 20 // bytes of all others that are held at a time

	// So much of an answer the kernel holds for a slow reader.
	smallAnswer  = 32 << 10
	largeAnswers = 32 << 20 // bytes of all others

	roomUnit = 16 << 10
	patience = 2 * time.Second // for one kind of room
	// Room for answers is what slow readers take. Who waits for it holds up others
	// whose answers need none.
	answerPatience = 100 * time.Millisecond
)

// A room is a number of units to be shared.
type room struct {
	turn  chan struct{} // held by who is taking units: nobody waits with half of what he needs
	taken chan struct{} // one for each unit
}

func newRoom(units int) *room {
	return &room{make(chan struct{}, 1), make(chan struct{}, units)}
}

// processors is as many units as half of them. Reading and parsing have room of
// their own: who waits to be read takes nothing from those who write.
func processors() int { return max(runtime.GOMAXPROCS(0)/2, 1) }

// unitsOf is how many units n bytes take.
func unitsOf(n int) int { return (n + roomUnit - 1) / roomUnit }

// take waits for units and returns how many it took: all or, with an error,
// none.
func (r *room) take(ctx context.Context, units int, patience time.Duration) (int, error) {
	units = min(units, max(cap(r.taken), 1)) // what is larger has it for itself
	if r.takeNow(units) {
		return units, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w: no room for a large request", errUnavailable))
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

// takeNow takes units, or none if that would mean to wait. To wait takes a
// timer, which wakes another thread.
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
