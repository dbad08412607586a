package main

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"sello/internal/ordered"
)

// A memStore is a Store in memory, for tests. It keeps nothing after Close.
// A commit copies the whole map, so it is for thousands of keys, not millions.
type memStore struct {
	queue *writeQueue
	state atomic.Pointer[memTx] // the last committed state
	views sync.RWMutex          // read-locked by each View, locked by Close
	gone  bool
}

func newMemStore() openedStore {
	s := new(memStore)
	s.state.Store(new(memTx))
	s.queue = newWriteQueue(s.begin, defaultWaiting)
	return s
}

func (s *memStore) View(ctx context.Context, fn func(Tx) error) error {
	return s.viewing(ctx, func() error { return fn(*s.state.Load()) })
}

// viewing runs a View, unless the store is closed.
func (s *memStore) viewing(ctx context.Context, view func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.views.RLock()
	defer s.views.RUnlock()
	if s.gone {
		return errClosed
	}
	return view()
}

func (s *memStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.queue.update(ctx, fn)
}

func (s *memStore) Close() error {
	if err := s.queue.close(); err != nil {
		return err
	}
	s.views.Lock()
	defer s.views.Unlock()
	s.gone = true
	return nil
}

func (s *memStore) writes() *writeQueue  { return s.queue }
func (s *memStore) Failed() <-chan error { return s.queue.failed }
func (s *memStore) leave() error         { return s.Close() }

func (s *memStore) begin(batch) (batch, error) {
	return memBatch{*s.state.Load(), s}, nil
}

// A memTx is one committed state: its entries in order, which never change.
type memTx []Entry

func (t memTx) Get(key []byte) ([]byte, bool, error) {
	if err := ordered.CheckKey(key); err != nil {
		return nil, false, err
	}
	i, ok := t.find(key)
	if !ok {
		return nil, false, nil
	}
	return t[i].Value, true, nil
}

func (t memTx) share() Tx { return t }

func (memTx) Put(key, value []byte) error { return errReadOnly }
func (memTx) Delete(key []byte) error     { return errReadOnly }

func (t memTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	i, _ := t.find(lo)
	j := len(t)
	if len(hi) > 0 {
		j, _ = t.find(hi)
	}
	found := t[i:max(i, j)]
	return func(yield func(Entry, error) bool) {
		for i := range found {
			if reverse {
				i = len(found) - 1 - i
			}
			if !yield(found[i], nil) {
				return
			}
		}
	}
}

// find returns where key is, or would be, and whether it is there.
func (t memTx) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(t, key, func(e Entry, key []byte) int {
		return bytes.Compare(e.Key, key)
	})
}

// with returns the state after changes, which are sorted by key.
func (t memTx) with(changes []ordered.Change) memTx {
	next := make(memTx, 0, len(t)+len(changes))
	for i, c := range changes {
		if i+1 < len(changes) && changes[i+1].Key == c.Key {
			continue // the last one counts
		}
		at, there := t.find([]byte(c.Key))
		next = append(next, t[:at]...)
		if c.Value != nil {
			next = append(next, Entry{Key: []byte(c.Key), Value: c.Value})
		}
		if there {
			at++
		}
		t = t[at:]
	}
	return append(next, t...)
}

// A memBatch is a committed state from which a commit makes the next one.
type memBatch struct {
	memTx
	store *memStore
}

func (b memBatch) commit(changes []ordered.Change) error {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b ordered.Change) int { return cmp.Compare(a.Key, b.Key) })
	next := b.store.state.Load().with(changes)
	b.store.state.Store(&next)
	return nil
}

func (memBatch) check() error { return nil }
func (memBatch) rollback()    {}
