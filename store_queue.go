package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Bounds of a writeQueue. The last two end a batch, which may pass maxBatchBytes
// by what its last function writes.
const (
	defaultWaiting = 1024 // updates that wait, where the store's options say nothing
	maxBatchCalls  = 1024
	maxBatchBytes  = 8 << 20
)

// A batch is what one group commit of a backend begins from. It ends with one
// call of commit, or of rollback where there is nothing to store.
//
// When begin or commit returns an error that wraps errUnavailable, nothing was
// stored and a later batch may do better: the disk is full. After any other
// error the outcome is unknown.
type batch interface {
	Tx                              // the state that was committed last
	commit(changes []written) error // nil: they are durable, and the state from now on
	rollback()
}

// A writeQueue is the Update of a backend. One goroutine, the writer, takes
// every update that waits, runs the functions one after another, each on an
// overlay of what those before it wrote, commits once and answers all of them.
// Nothing waits for company: a batch is what arrived while the one before it was
// committed.
//
// A function that fails or panics leaves the others alone, and is answered
// after the commit like them: it may have failed because of what they wrote.
//
// After an error of the backend that leaves the outcome unknown the queue is
// broken: it answers errUnavailable for good and reports on failed.
type writeQueue struct {
	begin func() (batch, error) // called by the writer only
	calls []*call               // of the batch under way; the writer's
	all   *overlay              // the same

	mu      sync.RWMutex // held to send on waiting, locked to close it
	closed  bool
	waiting chan *call
	done    chan struct{} // closed when the writer has ended

	broken atomic.Bool
	failed chan error // one error, when the queue breaks
}

// newWriteQueue returns a queue in which at most limit updates wait. It must be
// closed.
func newWriteQueue(begin func() (batch, error), limit int) *writeQueue {
	q := &writeQueue{
		begin:   begin,
		waiting: make(chan *call, limit),
		done:    make(chan struct{}),
		failed:  make(chan error, 1),
	}
	go q.serve()
	return q
}

// update is Store.Update.
func (q *writeQueue) update(ctx context.Context, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &call{fn: fn, done: make(chan struct{})}
	if err := q.enqueue(c); err != nil {
		return err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if c.claim() {
			return ctx.Err()
		}
		<-c.done
	}
	if p := c.panicked; p != nil {
		if p.value == nil {
			runtime.Goexit()
		}
		panic(p)
	}
	return c.err
}

func (q *writeQueue) enqueue(c *call) error {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return errClosed
	}
	select {
	case q.waiting <- c:
		return nil
	default:
		return fmt.Errorf("%w: %d updates are waiting", errUnavailable, cap(q.waiting))
	}
}

// close refuses new updates and returns when those that wait are answered.
func (q *writeQueue) close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return errClosed
	}
	q.closed = true
	close(q.waiting)
	q.mu.Unlock()
	<-q.done
	return nil
}

// fail breaks the queue because of err. Only the first call does something.
func (q *writeQueue) fail(err error) {
	if q.broken.CompareAndSwap(false, true) {
		q.failed <- err
	}
}

// serve is the writer.
func (q *writeQueue) serve() {
	ended := false
	defer func() {
		if ended {
			close(q.done)
		} else { // a function called runtime.Goexit
			go q.serve()
		}
	}()
	for c := range q.waiting {
		if c.claim() {
			q.group(c)
		}
	}
	ended = true
}

// group makes a batch of first and what waits behind it, and answers them.
func (q *writeQueue) group(first *call) {
	q.calls = append(q.calls[:0], first)
	err := fmt.Errorf("%w: a function ended the writer", errUnavailable)
	defer func() {
		for _, c := range q.calls {
			if err != nil {
				c.err = err
			}
			close(c.done)
		}
		clear(q.calls)
	}()
	err = q.commit()
	if err != nil && !errors.Is(err, errUnavailable) {
		q.fail(err)
		err = fmt.Errorf("%w: %w", errUnavailable, err)
	}
}

// commit runs the one function in q.calls and those it adds to it, and stores
// what they wrote.
func (q *writeQueue) commit() error {
	if q.broken.Load() {
		return fmt.Errorf("%w: the store has failed", errUnavailable)
	}
	b, err := q.begin()
	if err != nil {
		return err
	}
	commit := false
	defer func() {
		if !commit {
			b.rollback()
		}
	}()
	all := q.overlay(b)
	for c := q.calls[0]; c != nil; c = q.next(all.size) {
		own := newOverlay(all)
		if c.run(own) {
			all.absorb(own)
		}
	}
	if len(all.writes) == 0 {
		return nil
	}
	commit = true
	return b.commit(all.changes())
}

// overlay returns the overlay for a batch: the same one each time, since its
// map has by then the size that batches need.
func (q *writeQueue) overlay(b batch) *overlay {
	const large = 1 << 14
	if q.all == nil || len(q.all.writes) > large {
		q.all = &overlay{writes: map[string][]byte{}}
	}
	clear(q.all.writes)
	*q.all = overlay{base: b, writes: q.all.writes}
	return q.all
}

// next adds to q.calls, and returns, the next update that waits. It returns
// nil if there is none or if the batch, in which size bytes were written, is
// full.
func (q *writeQueue) next(size int) *call {
	for len(q.calls) < maxBatchCalls && size < maxBatchBytes {
		select {
		case c, ok := <-q.waiting:
			if !ok {
				return nil
			}
			if c.claim() {
				q.calls = append(q.calls, c)
				return c
			}
		default:
			return nil
		}
	}
	return nil
}

// A call is one Update on its way through the queue. The fields without a
// comment are the writer's until done is closed.
type call struct {
	fn       func(Tx) error
	claimed  atomic.Bool // by the writer, or by a caller that gave up
	done     chan struct{}
	err      error
	panicked *fnPanic
}

// claim reports whether the call was still waiting. It is no more.
func (c *call) claim() bool { return c.claimed.CompareAndSwap(false, true) }

// run runs the function and reports whether it succeeded.
func (c *call) run(tx Tx) bool {
	returned := false
	defer func() {
		if !returned {
			c.panicked = &fnPanic{recover(), debug.Stack()}
		}
	}()
	c.err = c.fn(tx)
	returned = true
	return c.err == nil
}

// A fnPanic is what Update panics with when its function has panicked on the
// writer's goroutine.
type fnPanic struct {
	value any    // what the function panicked with; nil: it called runtime.Goexit
	stack []byte // of the writer's goroutine
}

func (p *fnPanic) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

func (p *fnPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
