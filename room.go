package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
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

// A share is what one request has of each room.
type share struct {
	work         *room // one unit of it; nil: none
	body, answer int   // units
}

// beginWork waits for a processor; endWork, which may be called again, lets it
// go.
func (x *exchange) beginWork(r *room) error {
	_, err := r.take(x.context(), 1, patience)
	if err == nil {
		x.share.work = r
	}
	return err
}

func (x *exchange) endWork() {
	if x.share.work != nil {
		x.share.work.give(1)
		x.share.work = nil
	}
}

func (x *exchange) giveBack() {
	x.endWork()
	x.api.bodies.give(x.share.body)
	x.api.answers.give(x.share.answer)
}

// takeBody reads a body whole. Of a large one it first reads as much as a small
// one has, so that a client that sends nothing takes no room from others.
func (x *exchange) takeBody(req *request) ([]byte, error) {
	from := http.MaxBytesReader(x.ResponseWriter, req.Body, maxBody)
	if req.ContentLength >= 0 && req.ContentLength <= smallBody {
		return io.ReadAll(from)
	}
	body, err := io.ReadAll(io.LimitReader(from, smallBody))
	if err != nil || len(body) < smallBody {
		return body, err
	}
	length := maxBody
	if req.ContentLength > 0 {
		length = int(req.ContentLength)
	}
	if x.share.body, err = x.api.bodies.take(x.context(), unitsOf(length), patience); err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(body)
	if req.ContentLength > 0 {
		b.Grow(length - len(body) + bytes.MinRead)
	}
	if _, err = b.ReadFrom(from); err != nil {
		return nil, err
	}
	return b.Bytes(), x.beginWork(x.api.parsing)
}

// readLarge runs the action of a large GET.
func (x *exchange) readLarge(req *request, act action) (status int, body []byte, err error) {
	if err := x.beginWork(x.api.reading); err != nil {
		return 0, nil, err
	}
	defer x.endWork()
	status, body, err = x.readSmall(req, act)
	if len(body) > smallAnswer {
		x.share.answer, err = x.api.answers.take(x.context(), unitsOf(len(body)), answerPatience)
	}
	return status, body, err
}
