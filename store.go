package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// A Store is an ordered map from byte keys to byte values with transactions.
// It knows no business rule; everything sello keeps is drawn as keys in model.go.
//
// What every backend promises, and testStore checks:
//
//   - Transactions are serializable. View sees one committed state for its
//     whole life; Update sees every update that returned before it began.
//   - Update returning nil means that the writes are durable on disk.
//   - Update returning an error means that nothing was written, with one
//     exception: errUnavailable says that the outcome is unknown or that the
//     store cannot write now. The caller may try again with the same
//     idempotency key; it must not report "not applied".
//   - An error or a panic in fn leaves no trace of it. The panic reaches the
//     caller of Update or View.
//   - An Update function may run more than once, and on another goroutine
//     than its caller's. It touches nothing but its Tx and returns its result
//     through the helper update, never by assigning to captured variables.
//     Times and ids are made before and passed in.
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
// Keys are 1 to maxKey bytes, values 0 to maxValue bytes; neither is kept or
// changed by the callee after a call returns. Slices that Get and Scan hand
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
	// the opposite one. An empty hi means no upper end. It yields a non-nil
	// error at most once, as the last thing. The loop body writes nothing
	// inside the range. Inside Update the caller bounds the scan.
	Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error]
}

// A sharedTx is the Tx of a View that can be read by several goroutines at
// once. A backend need not have it: then one goroutine reads (see inParallel).
type sharedTx interface {
	// share returns another Tx of the same state, for another goroutine; nil
	// if there is none. It is good for as long as the first one is.
	share() Tx
}

// A checkedTx is the Tx of a View of something that can be damaged.
type checkedTx interface {
	// checkFile looks at all that is stored, on up to so many goroutines. It
	// returns a Tx of the same state for who reads all of it once more: it need
	// not look at that again, and holds no more of the file in memory than is
	// being read.
	checkFile(ctx context.Context, workers int) (Tx, error)
}

// An Entry is one key and its value.
type Entry struct{ Key, Value []byte }

// Sizes that every backend accepts, in bytes.
const (
	maxKey   = 1 << 10
	maxValue = 16 << 20
)

// Errors of a Store, by the moment they occur.
var (
	// From any call.
	errClosed = errors.New("store: closed")

	// From Update: the store is too busy, has no space, or could not tell
	// whether the commit was stored. Answered with 503 and Retry-After.
	errUnavailable = errors.New("store: unavailable")

	// The errUnavailable of a store that is too busy: it does take writes.
	errBusy = fmt.Errorf("%w", errUnavailable)

	// From Tx calls.
	errReadOnly = errors.New("store: write in a read-only transaction")
	errSize     = errors.New("store: key or value has a size that is not allowed")

	// From Get and Scan: a stored value does not carry its checksum, or the
	// way to it is damaged.
	errCorrupt = errors.New("store: damaged value")
)

// view runs fn in a View and returns its result.
func view[T any](ctx context.Context, s Store, fn func(Tx) (T, error)) (T, error) {
	return carry(ctx, s.View, fn)
}

// update runs fn in an Update and returns the result of the run that was
// committed.
func update[T any](ctx context.Context, s Store, fn func(Tx) (T, error)) (T, error) {
	return carry(ctx, s.Update, fn)
}

// A longViewer is a Store that is told of a View that takes long. It may begin
// later, and keeps less in memory meanwhile than a View does.
type longViewer interface {
	ViewLong(ctx context.Context, fn func(Tx) error) error
}

// viewLong is view for a function that takes long.
func viewLong[T any](ctx context.Context, s Store, fn func(Tx) (T, error)) (T, error) {
	if l, ok := s.(longViewer); ok {
		return carry(ctx, l.ViewLong, fn)
	}
	return view(ctx, s, fn)
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

// checkKey returns errSize unless key has the size of a key.
func checkKey(key []byte) error {
	if len(key) == 0 || len(key) > maxKey {
		return errSize
	}
	return nil
}

// An overlay is a Tx over another one, its base, whose writes stay in memory.
// An overlay that is dropped has changed nothing: so a rule can run for its
// result alone, even inside a View.
//
// The base must not change under a key or range that the overlay reads.
type overlay struct {
	base   Tx
	writes map[string][]byte // what each key was last set to; nil: deleted
	size   int               // bytes of keys and values written, repeats included

	runs  [][]string // keys of writes, each run in order, but for those written since the last scan
	fresh []string   // these, in any order

	remembers bool     // since remember was called
	before    []before // what was there before each write since then
}

// A before is what an overlay had of a key before it was written.
type before struct {
	written
	own bool // of the overlay's own; else the base has what was there
}

func newOverlay(base Tx) *overlay { return &overlay{base: base} }

func (o *overlay) Get(key []byte) ([]byte, bool, error) {
	if value, ok := o.writes[string(key)]; ok {
		return value, value != nil, nil
	}
	return o.base.Get(key)
}

func (o *overlay) Put(key, value []byte) error {
	if len(value) > maxValue {
		return errSize
	}
	return o.write(key, append(make([]byte, 0, len(value)), value...))
}

func (o *overlay) Delete(key []byte) error { return o.write(key, nil) }

// write keeps value, which is nil for a deletion.
func (o *overlay) write(key, value []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if o.writes == nil {
		o.writes, o.fresh = make(map[string][]byte), make([]string, 0, 8)
	}
	kept := string(key)
	old, again := o.writes[kept]
	if !again {
		o.fresh = append(o.fresh, kept)
	}
	if o.remembers {
		o.before = append(o.before, before{written{kept, old}, again})
	}
	o.writes[kept] = value
	o.size += len(key) + len(value)
	return nil
}

// remember begins to remember what is there before each write, for takeBack.
func (o *overlay) remember() { o.remembers, o.before = true, o.before[:0] }

// takeBack makes everything what it was when remember was called last.
func (o *overlay) takeBack() error {
	for _, b := range slices.Backward(o.before) {
		if !b.own { // the key stays among the written ones
			value, ok, err := o.base.Get([]byte(b.key))
			if err != nil {
				return err
			}
			if ok {
				b.value = append(make([]byte, 0, len(value)), value...)
			}
		}
		o.writes[b.key] = b.value
	}
	o.before = o.before[:0]
	return nil
}

// Scan merges the overlay's own entries into those of its base.
func (o *overlay) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	lo, hi = cloneRange(lo, hi)
	return func(yield func(Entry, error) bool) {
		own := o.keys(lo, hi)
		if reverse {
			own = slices.Clone(own)
			slices.Reverse(own)
		}
		next := func() (e Entry, ok bool) {
			if len(own) == 0 {
				return Entry{}, false
			}
			e = Entry{[]byte(own[0]), o.writes[own[0]]}
			own = own[1:]
			return e, true
		}
		mergeScan(next, o.base.Scan(lo, hi, reverse), reverse, yield)
	}
}

// cloneRange copies two bounds at once.
func cloneRange(lo, hi []byte) ([]byte, []byte) {
	both := append(append(make([]byte, 0, len(lo)+len(hi)), lo...), hi...)
	return both[:len(lo):len(lo)], both[len(lo):]
}

// mergeScan yields the entries of base with those of upper laid over them. An
// entry of upper without a value, nil, stands for a deletion. Both come in the
// order of the scan.
func mergeScan(upper func() (Entry, bool), base iter.Seq2[Entry, error], reverse bool, yield func(Entry, error) bool) {
	own, more := upper()
	if !more {
		base(yield)
		return
	}
	// pass yields own and takes the next one.
	pass := func() bool {
		if own.Value != nil && !yield(own, nil) {
			return false
		}
		own, more = upper()
		return true
	}
	for e, err := range base {
		if err != nil {
			yield(Entry{}, err)
			return
		}
		order := -1
		for more {
			if order = bytes.Compare(own.Key, e.Key); reverse {
				order = -order
			}
			if order > 0 {
				break
			}
			if !pass() {
				return
			}
			if order == 0 {
				break
			}
		}
		if order != 0 && !yield(e, nil) {
			return
		}
	}
	for more {
		if !pass() {
			return
		}
	}
}

// keys returns the keys in [lo, hi) that were written, in order. The slice is
// not changed by later writes, nor by the caller.
//
// Each scan makes a run of the keys that were written since the one before;
// a run that is not half as long as the one before it is merged into that, so
// that there are few of them, and a key is moved a few times only.
func (o *overlay) keys(lo, hi []byte) []string {
	if len(o.fresh) > 0 {
		slices.Sort(o.fresh)
		o.runs, o.fresh = append(o.runs, o.fresh), nil
		for n := len(o.runs); n > 1 && len(o.runs[n-2]) < 2*len(o.runs[n-1]); n-- {
			o.runs = append(o.runs[:n-2], mergeSorted(o.runs[n-2], o.runs[n-1]))
		}
	}
	var found []string
	for _, run := range o.runs {
		first, _ := slices.BinarySearch(run, string(lo))
		last := len(run)
		if len(hi) > 0 {
			last, _ = slices.BinarySearch(run, string(hi))
		}
		if first < last {
			found = mergeSorted(found, run[first:last])
		}
	}
	return found
}

// mergeSorted merges two slices in order without changing them.
func mergeSorted(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	merged := make([]string, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}

// An absorber is a Tx that takes over at once what was written to an overlay,
// whose base it is; the overlay is not used any more. It reports false if it
// cannot.
type absorber interface{ absorb(p *overlay) bool }

func (o *overlay) absorb(p *overlay) bool {
	if len(o.writes) == 0 && (o.writes == nil || len(p.writes) > 1000) {
		o.writes, o.runs, o.fresh, o.size = p.writes, p.runs, p.fresh, p.size
		return true
	}
	for key, value := range p.writes {
		if _, again := o.writes[key]; !again {
			o.fresh = append(o.fresh, key)
		}
		o.writes[key] = value
	}
	o.size += p.size
	return true
}

// flush writes to tx what was written to o, in the order of the keys.
func (o *overlay) flush(tx Tx) error {
	if base, ok := tx.(absorber); ok && o.base == tx && base.absorb(o) {
		return nil
	}
	for _, key := range o.keys(nil, nil) {
		var err error
		if value := o.writes[key]; value == nil {
			err = tx.Delete([]byte(key))
		} else {
			err = tx.Put([]byte(key), value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changes lists what was written, in the order of the keys.
func (o *overlay) changes() []written {
	list := make([]written, 0, len(o.writes))
	for key, value := range o.writes {
		list = append(list, written{key, value})
	}
	slices.SortFunc(list, func(a, b written) int { return strings.Compare(a.key, b.key) })
	return list
}
