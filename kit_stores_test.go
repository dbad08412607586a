package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Stores that wrap another one. They run functions twice, fail, count, or let writers
// overwrite each other.

// runTwice returns a store that runs the function of every Update twice, and commits what
// the second run wrote. It panics if the runs differ in their writes or their error.
func runTwice(s Store) Store { return twiceStore{s} }

type twiceStore struct{ Store }

func (s twiceStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.Store.Update(ctx, func(tx Tx) error {
		first, second := newOverlay(tx), newOverlay(tx)
		err1, err2 := fn(first), fn(second)
		if fmt.Sprint(err1) != fmt.Sprint(err2) {
			panic(fmt.Sprintf("an Update function returned %v, then %v", err1, err2))
		}
		same := func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
		if !maps.EqualFunc(first.writes, second.writes, same) {
			panic(fmt.Sprintf("an Update function wrote different things: (-first +second)\n%s", cmp.Diff(first.writes, second.writes)))
		}
		if err2 != nil {
			return err2
		}
		return second.flush(tx)
	})
}

// parted returns a store that panics at an Update which several servers could not make at once
// (model_ledger.go): one that reads a range of several parts, or changes an API key without a use of
// its organization's part.
func parted(s Store) Store { return partedStore{s} }

type partedStore struct{ Store }

func (s partedStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.Store.Update(ctx, func(tx Tx) error {
		t := &partedTx{Tx: tx, used: map[int32]bool{}}
		err := fn(t)
		t.check()
		return err
	})
}

type partedTx struct {
	Tx
	used   map[int32]bool
	keys   []uint32 // organizations whose keys it has changed
	schema bool     // it writes the schema's version, as each piece of a migration does
}

func (t *partedTx) check() {
	for _, org := range t.keys {
		if !t.used[int32(org)] {
			panic(fmt.Sprintf("an Update changes an API key of organization %d and uses nothing else of it", org))
		}
	}
}

// organizations are those that the Update uses, if it is none of a migration.
func (t *partedTx) organizations() (list []int32) {
	for part := range t.used {
		if part > 0 && !t.schema {
			list = append(list, part)
		}
	}
	return list
}

func (t *partedTx) use(key []byte) { t.used[partition{}.PartOf(key)] = true }

func (t *partedTx) Get(key []byte) ([]byte, bool, error) {
	t.use(key)
	return t.Tx.Get(key)
}

func (t *partedTx) Put(key, value []byte) error {
	t.use(key)
	t.schema = t.schema || tableVersion.has(key)
	if tableAPIKeys.has(key) {
		if k, err := parseAPIKey(value); err == nil {
			t.keys = append(t.keys, k.Org)
		}
	}
	return t.Tx.Put(key, value)
}

func (t *partedTx) Delete(key []byte) error {
	t.use(key)
	return t.Tx.Delete(key)
}

func (t *partedTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	part, one := partition{}.PartOfRange(lo, hi)
	if !one {
		panic(fmt.Sprintf("an Update reads from %q to %q, which is of several parts", lo, hi))
	}
	t.used[part] = true
	return t.Tx.Scan(lo, hi, reverse)
}

// movedOn is in the error with which package postgres ends a first run of a View, to run it again: it
// may come in one of two runs alone.
const movedOn = "the state has moved on"

// View runs fn twice, too.
func (s twiceStore) View(ctx context.Context, fn func(Tx) error) error {
	return s.Store.View(ctx, func(tx Tx) error {
		err1, err2 := fn(tx), fn(tx)
		for _, err := range []error{err1, err2} {
			if err != nil && strings.Contains(err.Error(), movedOn) {
				return err
			}
		}
		if fmt.Sprint(err1) != fmt.Sprint(err2) {
			panic(fmt.Sprintf("a View function returned %v, then %v", err1, err2))
		}
		return err2
	})
}

func (s twiceStore) ViewOnce(ctx context.Context, fn func(Tx) error) error {
	return onceView(s.Store)(ctx, fn)
}

func TestRunTwiceControl(t *testing.T) {
	t.Parallel()
	s := runTwice(newMemStore())
	defer s.Close()
	n := byte(0)
	err := <-startUpdate(t.Context(), s, func(tx Tx) error {
		n++
		return tx.Put([]byte("k"), []byte{n})
	})
	if !errors.Is(err, errPanicked) {
		t.Errorf("a function with a memory: %v, want %v", err, errPanicked)
	}
}

// A storeFault is what a flaky store does with one Update.
type storeFault int

const (
	noFault    storeFault = iota
	failBefore            // does not run the function
	failAfter             // commits, and reports that it did not
)

// newFlaky returns a store over s whose Updates fail as decide says, with
// errUnavailable. It calls decide for one Update at a time.
func newFlaky(s Store, decide func() storeFault) Store { return &flakyStore{Store: s, decide: decide} }

// randomFaults returns a decide function for newFlaky. Of 100 Updates about before have
// failBefore, and about after have failAfter. The same seed gives the same faults.
func randomFaults(seed uint64, before, after int) func() storeFault {
	rng := rand.New(rand.NewPCG(seed, 0))
	return func() storeFault {
		switch n := rng.IntN(100); {
		case n < before:
			return failBefore
		case n < before+after:
			return failAfter
		}
		return noFault
	}
}

type flakyStore struct {
	Store
	mu     sync.Mutex
	decide func() storeFault
}

func (s *flakyStore) Update(ctx context.Context, fn func(Tx) error) error {
	s.mu.Lock()
	f := s.decide()
	s.mu.Unlock()
	if f == failBefore {
		return fmt.Errorf("%w: injected, not applied", errUnavailable)
	}
	err := s.Store.Update(ctx, fn)
	if f == failAfter && err == nil {
		return fmt.Errorf("%w: injected, applied", errUnavailable)
	}
	return err
}

func TestFlaky(t *testing.T) {
	t.Parallel()
	faults := []storeFault{noFault, failBefore, failAfter}
	s := newFlaky(newMemStore(), func() storeFault {
		f := faults[0]
		faults = faults[1:]
		return f
	})
	defer s.Close()
	mustPut(t, s, "a", "")
	for _, key := range []string{"b", "c"} {
		err := s.Update(t.Context(), func(tx Tx) error { return tx.Put([]byte(key), nil) })
		if !errors.Is(err, errUnavailable) {
			t.Errorf("%s: %v", key, err)
		}
	}
	checkContents(t, s, map[string]string{"a": "", "c": ""})

	count := map[storeFault]int{}
	decide := randomFaults(1, 10, 20)
	for range 1000 {
		count[decide()]++
	}
	if count[failBefore] < 50 || count[failAfter] < 150 || count[noFault] < 600 {
		t.Errorf("faults are spread badly: %v", count)
	}
}

// A guardedStore calls before ahead of each Update. If that returns an error, so
// does the Update, and nothing is written.
type guardedStore struct {
	Store
	before func() error
}

func (s guardedStore) Update(ctx context.Context, fn func(Tx) error) error {
	if err := s.before(); err != nil {
		return err
	}
	return s.Store.Update(ctx, fn)
}

// A wrappedStore passes each transaction through view or update before a function gets
// it. A nil view or update changes nothing.
type wrappedStore struct {
	Store
	view, update func(Tx) Tx
}

func (s wrappedStore) View(ctx context.Context, fn func(Tx) error) error {
	return s.Store.View(ctx, wrapTx(s.view, fn))
}

func (s wrappedStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.Store.Update(ctx, wrapTx(s.update, fn))
}

func wrapTx(wrap func(Tx) Tx, fn func(Tx) error) func(Tx) error {
	if wrap == nil {
		return fn
	}
	return func(tx Tx) error { return fn(wrap(tx)) }
}

// A brokenTx fails a Get or Scan for which get or scan returns an error. A nil get or
// scan never fails.
type brokenTx struct {
	Tx
	get  func(key []byte) error
	scan func(lo []byte) error
}

func (t brokenTx) Get(key []byte) ([]byte, bool, error) {
	if t.get != nil {
		if err := t.get(key); err != nil {
			return nil, false, err
		}
	}
	return t.Tx.Get(key)
}

func (t brokenTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	if t.scan != nil {
		if err := t.scan(lo); err != nil {
			return func(yield func(Entry, error) bool) { yield(Entry{}, err) }
		}
	}
	return t.Tx.Scan(lo, hi, reverse)
}

// A countedStore counts its Views and Updates.
type countedStore struct {
	Store
	views, updates atomic.Int64
}

func (s *countedStore) View(ctx context.Context, fn func(Tx) error) error {
	s.views.Add(1)
	return s.Store.View(ctx, fn)
}

func (s *countedStore) Update(ctx context.Context, fn func(Tx) error) error {
	s.updates.Add(1)
	return s.Store.Update(ctx, fn)
}

// A countedTx counts Gets by the first byte of the key, writes, and Scans together with
// the entries that they yield.
type countedTx struct {
	Tx
	gets          [256]int
	puts, scanned int
}

// keys returns how many keys were read, written or scanned over.
func (c *countedTx) keys() (n int) {
	for _, gets := range c.gets {
		n += gets
	}
	return n + c.puts + c.scanned
}

func (c *countedTx) Get(key []byte) ([]byte, bool, error) {
	c.gets[key[0]]++
	return c.Tx.Get(key)
}

func (c *countedTx) Put(key, value []byte) error {
	c.puts++
	return c.Tx.Put(key, value)
}

func (c *countedTx) Delete(key []byte) error {
	c.puts++
	return c.Tx.Delete(key)
}

func (c *countedTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		c.scanned++
		for e, err := range c.Tx.Scan(lo, hi, reverse) {
			c.scanned++
			if !yield(e, err) {
				return
			}
		}
	}
}

// A racyStore runs two Updates on the same state and commits both. This is the
// fault that checkIncrements and every rush must notice.
type racyStore struct {
	Store
	both *sync.WaitGroup
}

func (s racyStore) Update(ctx context.Context, fn func(Tx) error) error {
	writes := make(map[string][]byte)
	err := s.View(ctx, func(tx Tx) error {
		o := newOverlay(tx)
		err := fn(o)
		maps.Copy(writes, o.writes)
		return err
	})
	s.both.Done()
	s.both.Wait()
	if err != nil {
		return err
	}
	return s.Store.Update(ctx, func(tx Tx) error { return (&overlay{writes: writes}).flush(tx) })
}

// A pairedStore that is armed runs its Updates two by two, each pair as racyStore does.
type pairedStore struct {
	Store
	armed    atomic.Bool
	patience time.Duration // how long an Update waits for another

	mu   sync.Mutex
	half *sync.WaitGroup // of an Update that waits for another; nil: none
}

func (s *pairedStore) arm(on bool) { s.armed.Store(on) }

func (s *pairedStore) Update(ctx context.Context, fn func(Tx) error) error {
	if !s.armed.Load() {
		return s.Store.Update(ctx, fn)
	}
	return racyStore{s.Store, s.pair()}.Update(ctx, fn)
}

func (s *pairedStore) pair() *sync.WaitGroup {
	s.mu.Lock()
	defer s.mu.Unlock()
	if both := s.half; both != nil {
		s.half = nil
		return both
	}
	both := new(sync.WaitGroup)
	both.Add(2)
	s.half = both
	time.AfterFunc(s.patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.half == both {
			s.half = nil
			both.Done()
		}
	})
	return both
}

// A pastStore is a store in memory that a test can set back to an earlier state.
// It takes one transaction at a time.
type pastStore struct{ state atomic.Pointer[memTx] }

func (s *pastStore) View(_ context.Context, fn func(Tx) error) error { return fn(*s.state.Load()) }

func (s *pastStore) Update(_ context.Context, fn func(Tx) error) error {
	after := newOverlay(*s.state.Load())
	if err := fn(after); err != nil {
		return err
	}
	next := make(memTx, 0, len(*s.state.Load())+len(after.writes))
	for e, err := range after.Scan(nil, nil, false) {
		if err != nil {
			return err
		}
		next = append(next, e)
	}
	s.state.Store(&next)
	return nil
}

func (s *pastStore) Close() error { return nil }
