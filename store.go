package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"time"

	"sello/internal/ordered"
)

// The seam between the domain and what stores its data: the contract of every backend, what only
// some backends can do, and how long work yields to short work (pacer).

// A Store is an ordered map from byte keys to byte values with transactions.
// It knows no business rule; everything sello keeps is drawn as keys in model.go.
//
// What every backend promises, and testStore checks:
//
//   - Transactions are serializable. View sees one committed state for its
//     whole life, one of between its call and its first read; Update and View see every
//     update that returned before they began.
//   - Update returning nil means that the writes are durable on disk.
//   - Update returning an error means that nothing was written, with one
//     exception: errUnavailable says that the outcome is unknown or that the
//     store cannot write now. The caller may try again with the same
//     idempotency key; it must not report "not applied".
//   - If fn returns an error or panics, none of its writes are stored. The
//     panic reaches the caller of Update or View.
//   - An Update function may run more than once, and on another goroutine
//     than its caller's. It touches nothing but its Tx and returns its result
//     through the helper updateStore, never by assigning to captured variables.
//     Times and ids are made beforehand and passed in. A View function may run
//     more than once, too; a function that must not is for onceView.
//   - ctx ends the wait for a turn, not a transaction that has begun.
//   - View and Update must not be called from inside one another.
type Store interface {
	View(ctx context.Context, fn func(Tx) error) error
	Update(ctx context.Context, fn func(Tx) error) error

	// Close waits for what is under way, makes it durable and releases the
	// file. Calls after Close return errClosed.
	Close() error
}

// A Tx is one transaction. It is used by one goroutine, and only until the
// function it was given to returns.
//
// Keys are 1 to maxKey bytes, values 0 to maxValue bytes; the callee neither
// keeps nor changes them after a call returns. Slices that Get and Scan hand
// out live until the transaction ends and must not be changed.
// A transaction sees its own writes.
type Tx interface {
	// Get returns the value of key; ok is false where there is none.
	// An error never looks like an absent key.
	Get(key []byte) (value []byte, ok bool, err error)

	// Put and Delete fail in a View. Deleting an absent key is no error.
	Put(key, value []byte) error
	Delete(key []byte) error

	// Scan yields the entries with lo <= key < hi in bytewise order, or in
	// reverse. An empty hi means no upper end. It yields a non-nil error at
	// most once, as the last thing. The loop body must not write inside the
	// range. Inside Update the caller bounds the scan.
	Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error]
}

// A warmer is a Tx that reads many keys at once faster than one by one.
type warmer interface {
	// warm reads keys that Get will be asked for. What goes wrong Get will say.
	warm(keys [][]byte)
}

// A layer is a Tx on top of another one.
type layer interface{ below() Tx }

// warm tells a transaction which keys will be read: keysOf of each item, but for nil.
func warm[T any, K ~[]byte](tx Tx, list []T, keysOf ...func(T) K) {
	for l, ok := tx.(layer); ok; l, ok = tx.(layer) {
		tx = l.below()
	}
	w, ok := tx.(warmer)
	if !ok || len(list) < 2 {
		return
	}
	keys := make([][]byte, 0, len(keysOf)*len(list))
	for _, item := range list {
		for _, keyOf := range keysOf {
			if k := keyOf(item); k != nil {
				keys = append(keys, slices.Clone(k))
			}
		}
	}
	w.warm(keys)
}

// A sharedTx is the Tx of a View that several goroutines can read at once.
// A backend need not support it: then one goroutine reads (see shares).
type sharedTx interface {
	// share returns another Tx of the same state, for another goroutine, or
	// nil if there is none. It is valid as long as the first one.
	share() Tx
}

// shares returns up to n Tx of one state, each for its own goroutine. The first
// is tx itself; the others are there only if the backend can share.
func shares(tx Tx, n int) []Tx {
	list := []Tx{tx}
	for shared, ok := tx.(sharedTx); ok && len(list) < n; {
		another := shared.share()
		if another == nil {
			break
		}
		list = append(list, another)
	}
	return list
}

// A checkedTx is the Tx of a View on a backend that can check its file for damage.
type checkedTx interface {
	// checkFile checks every page of the file, on up to workers goroutines. It
	// returns a Tx of the same state for reading everything once more. That Tx
	// does not verify checksums again, and holds no more of the file in memory
	// than is being read.
	checkFile(ctx context.Context, workers int) (Tx, error)
}

type Entry = ordered.Entry

// Sizes that every backend accepts, in bytes.
const (
	maxKey   = ordered.MaxKey
	maxValue = ordered.MaxValue
)

// Errors of a Store, grouped by when they occur.
var (
	// From any call.
	errClosed = errors.New("store: closed")

	// From Update: the store is too busy, has no space, or could not tell
	// whether the commit was stored. Answered with 503 and Retry-After.
	errUnavailable = errors.New("store: unavailable")

	// The errUnavailable of a full write queue: the store itself takes writes.
	errBusy = fmt.Errorf("%w", errUnavailable)

	// From Tx calls.
	errReadOnly = errors.New("store: write in a read-only transaction")
	errSize     = ordered.ErrSize

	// From View and Update, when fn returns an error of Get or Scan: a stored value
	// does not match its checksum, or a page on the way to it is damaged.
	errCorrupt error = damagedError("store: damaged value")
)

// A damagedError reports that stored bytes are not the bytes that were written. It comes
// from the store or from decoding a record. The store puts its file's name before it.
type damagedError string

func (e damagedError) Error() string { return string(e) }

func saysDamaged(err error) bool {
	_, ok := errors.AsType[damagedError](err)
	return ok
}

func viewStore[T any](ctx context.Context, s Store, fn func(Tx) (T, error)) (T, error) {
	return carry(ctx, s.View, fn)
}

// updateStore runs fn in an Update and returns the result of the run that was
// committed.
func updateStore[T any](ctx context.Context, s Store, fn func(Tx) (T, error)) (T, error) {
	return carry(ctx, s.Update, fn)
}

// A longViewer is a Store with a View for functions that take long. ViewLong may
// begin later than View would, and keeps less in memory while it runs.
type longViewer interface {
	ViewLong(ctx context.Context, fn func(Tx) error) error
}

// longView returns the ViewLong of a store, or what runs a function once if it has none.
func longView(s Store) func(context.Context, func(Tx) error) error {
	if l, ok := s.(longViewer); ok {
		return l.ViewLong
	}
	return onceView(s)
}

// A sharedStore is a Store that other processes may write to as well. What a process keeps of it
// in memory is forgotten or checked when they have.
type sharedStore interface {
	Store

	// onOthers has others called when another process has committed in a part (model_ledger.go):
	// before a View or Update here sees the commit. settings says whether it wrote keys that
	// databaseOptions.setting names: that is told of part 0, too. Of a part that nothing was read from
	// yet, nothing else is told. onOthers is called before the first View or Update.
	onOthers(others func(part int32, settings bool))

	// catchUp returns once others was called for every commit that was acknowledged before, to
	// whomever, in part 0 and some others. The context that it returns is for what follows it: Views
	// need no other one.
	catchUp(ctx context.Context, parts ...int32) (context.Context, error)

	// takeLease takes a name for this process, for 10 seconds, or makes it last longer. It
	// returns false if another process has it. A lease only spares work: whoever loses one, or
	// sleeps through its end, must do nothing wrong.
	takeLease(ctx context.Context, name string) (mine bool, err error)

	// dropLease gives a name back.
	dropLease(ctx context.Context, name string) error

	// clockAhead returns by how much, at the least, the store's clock was ahead of this machine's
	// at the last catchUp; < 0: behind.
	clockAhead() time.Duration

	// giveUp has Failed tell of an error: this process must write no more.
	giveUp(err error)
}

// A onceViewer is a Store whose View may run a function twice. ViewOnce runs it once.
type onceViewer interface {
	ViewOnce(ctx context.Context, fn func(Tx) error) error
}

// onceView returns the ViewOnce of a store, or its View if that runs a function once.
func onceView(s Store) func(context.Context, func(Tx) error) error {
	if o, ok := s.(onceViewer); ok {
		return o.ViewOnce
	}
	return s.View
}

// viewLong is view for a function that takes long.
func viewLong[T any](ctx context.Context, s Store, fn func(Tx) (T, error)) (T, error) {
	return carry(ctx, longView(s), fn)
}

func carry[T any](ctx context.Context, run func(context.Context, func(Tx) error) error, fn func(Tx) (T, error)) (T, error) {
	var result T
	err := run(ctx, func(tx Tx) (err error) {
		result, err = fn(tx)
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return result, nil
}

// A stoppableTx fails its reads once a context ends, since a View does not watch its
// context.
type stoppableTx struct {
	Tx
	ctx   context.Context
	calls uint // of Get, and entries of Scan
}

// callsUnlooked is how many calls pass between two looks at the context.
const callsUnlooked = 64

func (t *stoppableTx) stopped() error {
	if t.calls++; t.calls%callsUnlooked != 1 {
		return nil
	}
	return t.ctx.Err()
}

func (t *stoppableTx) Get(key []byte) ([]byte, bool, error) {
	if err := t.stopped(); err != nil {
		return nil, false, err
	}
	return t.Tx.Get(key)
}

func (t *stoppableTx) below() Tx { return t.Tx }

func (t *stoppableTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e, err := range t.Tx.Scan(lo, hi, reverse) {
			if err == nil {
				err = t.stopped()
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (t *stoppableTx) share() Tx {
	if shared := shares(t.Tx, 2); len(shared) == 2 {
		return &stoppableTx{Tx: shared[1], ctx: t.ctx}
	}
	return nil
}

// A pacer yields the processor during long work, so that small requests do not wait
// behind a long list. Its time begins with the first look at the clock.
type pacer struct {
	n     int
	since time.Time
}

const (
	// longTurn is how long work may keep the processor. Yielding more often is not
	// worth its cost: each yield wakes another processor.
	longTurn  = 200 * time.Microsecond
	lookEvery = 16 // pauses between two looks at the clock
)

// pause yields if the turn is over. The caller calls it for each element.
func (p *pacer) pause() {
	if p.n++; p.n%lookEvery > 0 {
		return
	}
	switch now := time.Now(); {
	case p.since.IsZero():
		p.since = now
	case now.Sub(p.since) > longTurn:
		runtime.Gosched()
		p.since = time.Now()
	}
}
