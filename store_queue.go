package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sello/internal/metrics"
	"sello/internal/ordered"
)

// Group commit: updates wait in a queue, one writer runs them in turn, and all that came while one
// group was committed are the next group.

// Bounds of a writeQueue. A batch ends at maxBatchCalls or maxBatchBytes; its last
// function may write past maxBatchBytes.
const (
	defaultWaiting = 1024      // updates that may wait
	enoughCalls    = 16        // a group this large goes to an idle storer even while updates wait
	enoughBytes    = 256 << 10 // the same
	maxBatchCalls  = 1024
	maxBatchBytes  = 8 << 20
)

// A batch is what one group commit of a backend begins from. It ends with one
// call of commit, or of rollback to store nothing.
//
// When begin, check or commit returns an error that wraps errUnavailable, a later batch may
// succeed: the disk was full, for example. A commit may have been stored all the same if the
// backend can go on without knowing. errTurnLost says that others have written what the batch
// did not see: nothing was stored, and its functions are to run again. After any other error
// the backend is of no use any more.
type batch interface {
	Tx                                     // the last committed state, or a later one
	commit(changes []ordered.Change) error // nil: they are durable, and part of the state from now on
	check() error                          // nil: nobody has written anything that the batch did not see
	rollback()
}

// errTurnLost is for the queue alone.
var errTurnLost = errors.New("store: others have written")

// A writeQueue implements Update for a backend. One goroutine, the writer, takes
// every waiting update and runs the functions one after another into a group,
// each on an overlay of what the earlier ones wrote. Another, the storer,
// commits a whole group and answers its updates. Meanwhile the writer fills the
// next group, on top of the one being stored. No update waits for others to
// come: a group is what arrived while the one before it was committed.
//
// Where other processes write to the same store, a group may lose its turn to one of theirs.
// Then its functions run again, and so do the functions of the group filled meanwhile.
//
// A function that fails or panics does not affect the others. It is answered
// after the commit like them: it may have failed because of what they wrote.
// When a commit fails, the group filled meanwhile fails too. An update made by a
// caller that has seen the failure is never in that group.
//
// After a backend error that leaves the outcome unknown the queue is broken: it
// answers every update with errUnavailable and sends the error on failed.
type writeQueue struct {
	// begin is called by the writer only. The batch will be stored after the batch after, which is
	// being stored; nil: none is. errTurnLost says that others have written since after began: no
	// batch can begin before its outcome is known.
	begin func(after batch) (batch, error)

	mu      sync.RWMutex // read-locked to send on waiting, locked to close it
	closed  bool
	waiting chan *queuedCall
	waits   *metrics.Histogram // how long updates wait for the writer; nil: not counted
	done    chan struct{}      // closed when the writer has ended

	// The writer's own.
	open    *group        // being filled; nil: none
	storing *group        // with the storer; nil: none
	again   []*queuedCall // have lost their turn, and run before the calls that wait
	closing bool          // waiting is closed and empty

	groups   chan *group // to the storer
	outcomes chan error  // from it: one for each group

	broken atomic.Bool
	failed chan error    // one error, when the queue breaks
	reruns atomic.Uint64 // functions that ran again because their turn was lost
}

// An openedStore is a Store that a command has opened: a file, or a database.
type openedStore interface {
	Store
	writes() *writeQueue

	// Failed returns a channel that gets one error when the store no longer knows what is
	// stored. From then on every Update returns errUnavailable. The process reports the
	// error and exits without calling Close.
	Failed() <-chan error

	// leave is Close that does not finish what another process can finish.
	leave() error
}

// errFailed is what a broken queue answers.
var errFailed = fmt.Errorf("%w: the store has failed", errUnavailable)

// A group is a batch that is being filled or stored.
type group struct {
	batch  batch
	calls  []*queuedCall
	writes *overlay    // what the functions that succeeded wrote
	failed atomic.Bool // whether the commit failed; set before the first answer
}

// enough reports whether to store the group even while updates wait.
func (g *group) enough() bool {
	return len(g.calls) >= enoughCalls || g.writes.size >= enoughBytes
}

func (g *group) full() bool {
	return len(g.calls) >= maxBatchCalls || g.writes.size >= maxBatchBytes
}

func (g *group) answer(err error) {
	g.failed.Store(err != nil)
	for _, c := range g.calls {
		if err != nil {
			c.err = err
		}
		close(c.done)
	}
}

// newWriteQueue returns a queue in which at most limit updates wait. It must be
// closed.
func newWriteQueue(begin func(after batch) (batch, error), limit int) *writeQueue {
	q := &writeQueue{
		begin:    begin,
		waiting:  make(chan *queuedCall, limit),
		done:     make(chan struct{}),
		groups:   make(chan *group, 1),
		outcomes: make(chan error, 1),
		failed:   make(chan error, 1),
	}
	go q.serve()
	go q.store()
	return q
}

func (q *writeQueue) update(ctx context.Context, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &queuedCall{fn: fn, done: make(chan struct{})}
	if q.waits != nil {
		c.asked = time.Now()
	}
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

func (q *writeQueue) enqueue(c *queuedCall) error {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return errClosed
	}
	select {
	case q.waiting <- c:
		return nil
	default:
		return fmt.Errorf("%w: %d updates are waiting", errBusy, cap(q.waiting))
	}
}

// close refuses new updates and returns when all waiting ones are answered.
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

// fail breaks the queue because of err. Only the first call has an effect.
func (q *writeQueue) fail(err error) {
	if q.broken.CompareAndSwap(false, true) {
		q.failed <- err
	}
}

// serve is the writer.
func (q *writeQueue) serve() {
	ended := false
	defer func() {
		if !ended { // a function called runtime.Goexit
			go q.serve()
			return
		}
		close(q.groups)
		close(q.done)
	}()
	for !q.closing || q.open != nil || q.storing != nil || len(q.again) > 0 {
		switch {
		case q.open != nil && q.storing == nil && q.open.enough():
			q.handOver()
		case q.takeAgain():
		case q.takeWaiting():
		case q.open != nil && q.storing == nil:
			q.handOver()
		default:
			q.wait()
		}
	}
	ended = true
}

// takeWaiting runs one waiting update. It returns false if there is none or the
// group is full.
func (q *writeQueue) takeWaiting() bool {
	if q.closing || q.open != nil && q.open.full() {
		return false
	}
	select {
	case c, ok := <-q.waiting:
		q.take(c, ok)
		return true
	default:
		return false
	}
}

// wait waits for another update or for the outcome of the group being stored.
func (q *writeQueue) wait() {
	waiting := q.waiting
	if q.closing || q.open != nil && q.open.full() {
		waiting = nil
	}
	select {
	case c, ok := <-waiting:
		q.take(c, ok)
	case err := <-q.outcomes:
		q.settle(err)
	}
}

// settle ends the storing of a group. If that failed, the open group on top of it fails too. If
// it lost its turn, the calls of both run again.
func (q *writeQueue) settle(err error) {
	stored, open := q.storing, q.open
	q.storing = nil
	if err == nil {
		return
	}
	if q.open = nil; open != nil {
		open.batch.rollback()
	}
	switch {
	case err == errTurnLost && open != nil:
		q.again = slices.Concat(stored.calls, open.calls, q.again)
	case err == errTurnLost:
		q.again = slices.Concat(stored.calls, q.again)
	case open != nil:
		open.answer(err)
	}
}

// mostLost is how long a call may go on losing its turn.
const mostLost = 5 * time.Second

// takeAgain runs one update that has lost its turn. It returns false if there is none or the
// group is full.
func (q *writeQueue) takeAgain() bool {
	if len(q.again) == 0 || q.open != nil && q.open.full() {
		return false
	}
	c := q.again[0]
	q.again = q.again[1:]
	switch now := time.Now(); {
	case c.lost.IsZero():
		c.lost = now
	case now.Sub(c.lost) > mostLost:
		(&group{calls: []*queuedCall{c}}).answer(fmt.Errorf("%w: others have been writing all the time", errUnavailable))
		return true
	}
	c.panicked = nil
	q.reruns.Add(1)
	q.place(c)
	return true
}

// take runs an update in the open group. If ok is false, waiting is closed and no
// update will come.
func (q *writeQueue) take(c *queuedCall, ok bool) {
	if !ok {
		q.closing = true
		return
	}
	if !c.claim() {
		return
	}
	if q.storing != nil && q.storing.failed.Load() { // this caller may have seen that failure
		q.settle(<-q.outcomes)
	}
	if !c.asked.IsZero() {
		q.waits.Observe(time.Since(c.asked))
	}
	q.place(c)
}

// place runs an update in the open group, which it opens if there is none.
func (q *writeQueue) place(c *queuedCall) {
	if q.open == nil {
		err := q.openGroup()
		for err == errTurnLost && q.storing != nil { // nothing can be put on top of it any more
			q.settle(<-q.outcomes)
			err = q.openGroup()
		}
		if err != nil {
			(&group{calls: []*queuedCall{c}}).answer(err)
			return
		}
	}
	g := q.open
	g.calls = append(g.calls, c)
	own := newOverlay(g.writes)
	began := time.Now()
	if c.run(own) {
		g.writes.absorb(own)
	}
	if time.Since(began) > longTurn { // many of these in a row would delay small requests
		runtime.Gosched()
	}
}

// openGroup begins a group on top of the one being stored, if any.
func (q *writeQueue) openGroup() error {
	if q.broken.Load() {
		return errFailed
	}
	var after batch
	if q.storing != nil {
		after = q.storing.batch
	}
	b, err := q.begin(after)
	if err != nil {
		return q.judge(err)
	}
	g := &group{batch: b, writes: &overlay{base: b, writes: map[string][]byte{}}}
	if q.storing != nil {
		q.storing.writes.base = b
		g.writes.base = q.storing.writes
	}
	q.open = g
	return nil
}

// handOver has the open group stored. If it is a single update and no other
// waits, the writer stores it itself: waking the storer takes longer than is saved
// by running other updates meanwhile.
func (q *writeQueue) handOver() {
	g := q.open
	q.open = nil
	if len(g.calls) == 1 && len(q.waiting) == 0 && len(q.again) == 0 {
		err := q.commit(g)
		if err != errTurnLost {
			g.answer(err)
		}
		q.storing = g
		q.settle(err)
		return
	}
	q.storing = g
	q.groups <- g
}

// store is the storer.
func (q *writeQueue) store() {
	for g := range q.groups {
		err := q.commit(g)
		if err != errTurnLost {
			g.answer(err)
		}
		q.outcomes <- err
	}
}

func (q *writeQueue) commit(g *group) error {
	if len(g.writes.writes) == 0 { // what its functions refused, they refused for what they read
		defer g.batch.rollback()
		return q.judge(g.batch.check())
	}
	if q.broken.Load() {
		g.batch.rollback()
		return errFailed
	}
	return q.judge(g.batch.commit(g.writes.changes()))
}

// judge breaks the queue if a backend error leaves the outcome unknown.
func (q *writeQueue) judge(err error) error {
	if err != nil && err != errTurnLost && !errors.Is(err, errUnavailable) && !errors.Is(err, errReadOnly) {
		q.fail(err)
		err = fmt.Errorf("%w: %w", errUnavailable, err)
	}
	return err
}

// A queuedCall is one Update on its way through the queue. The fields without a
// comment belong to the writer until done is closed.
type queuedCall struct {
	fn       func(Tx) error
	asked    time.Time   // set by the caller if waits are counted
	lost     time.Time   // when it was first to run again; zero: never
	claimed  atomic.Bool // by the writer, or by a caller that gave up
	done     chan struct{}
	err      error
	panicked *fnPanic
}

// claim claims the call and reports whether nobody had claimed it before.
func (c *queuedCall) claim() bool { return c.claimed.CompareAndSwap(false, true) }

// run runs the function and reports whether it succeeded.
func (c *queuedCall) run(tx Tx) bool {
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
