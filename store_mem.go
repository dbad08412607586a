package main

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"sello/internal/ordered"
)

// A memStore is a Store in memory, for millions of keys: sandboxes without a file use it, and
// tests. It keeps nothing after Close. Its entries lie in pages that never change: a commit makes
// new pages for what it changes, and a new list of pages.
type memStore struct {
	queue *writeQueue
	state atomic.Pointer[memPages] // the last committed one
	views sync.RWMutex             // read-locked by each View, locked by Close
	gone  bool
}

func newMemStore() openedStore {
	s := new(memStore)
	s.state.Store(new(memPages))
	s.queue = newWriteQueue(s.begin, defaultWaiting)
	return s
}

func (s *memStore) View(ctx context.Context, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.views.RLock()
	defer s.views.RUnlock()
	if s.gone {
		return errClosed
	}
	return fn(*s.state.Load())
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

// memPages are one committed state: its entries in order, in pages that are not empty.
type memPages []memTx

// pageSize is how many entries a page has at most once it is written; half of that in a new one.
const pageSize = 256

// at returns the first page that may have keys from lo on: the one that lo would be in.
func (p memPages) at(lo []byte) int {
	return max(sort.Search(len(p), func(i int) bool { return string(p[i][0].Key) > string(lo) })-1, 0)
}

func (p memPages) Get(key []byte) ([]byte, bool, error) {
	if len(p) == 0 {
		return memTx{}.Get(key)
	}
	return p[p.at(key)].Get(key)
}

func (p memPages) share() Tx { return p }

func (memPages) Put(key, value []byte) error { return errReadOnly }
func (memPages) Delete(key []byte) error     { return errReadOnly }

func (p memPages) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	lo, hi = ordered.CloneRange(lo, hi)
	return func(yield func(Entry, error) bool) {
		if len(p) == 0 {
			return
		}
		first, last := p.at(lo), len(p)-1
		if len(hi) > 0 {
			last = p.at(hi)
		}
		for i := range max(last-first+1, 0) {
			page := first + i
			if reverse {
				page = last - i
			}
			for e := range p[page].Scan(lo, hi, reverse) {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// A memTx is entries in order, which never change: a page, or a small state whole.
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
	memPages
	store *memStore
}

func (b memBatch) commit(changes []ordered.Change) error {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b ordered.Change) int { return cmp.Compare(a.Key, b.Key) })
	state := *b.store.state.Load()
	next := make(memPages, 0, len(state)+len(changes)/pageSize+1)
	for len(changes) > 0 {
		page, many := memTx(nil), len(changes)
		if len(state) > 0 {
			at := state.at([]byte(changes[0].Key))
			next = append(next, state[:at]...)
			if page, state = state[at], state[at+1:]; len(state) > 0 {
				end := string(state[0][0].Key)
				many = sort.Search(len(changes), func(i int) bool { return changes[i].Key >= end })
			}
		}
		changed := page.with(changes[:many])
		changes = changes[many:]
		if len(changed) <= pageSize {
			if len(changed) > 0 {
				next = append(next, changed)
			}
			continue
		}
		for part := range slices.Chunk(changed, pageSize/2) {
			next = append(next, part)
		}
	}
	next = append(next, state...)
	b.store.state.Store(&next)
	return nil
}

func (memBatch) check() error { return nil }
func (memBatch) rollback()    {}
