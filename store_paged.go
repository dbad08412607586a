package main

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sort"
	"sync/atomic"

	"sello/internal/ordered"
)

// A pagedStore is a Store in memory, for millions of keys: what a sandbox without a file has. It
// keeps nothing after Close. Its entries lie in pages that never change: a commit makes anew those
// that it changes, and the list of pages.
type pagedStore struct {
	*memStore // the queue and the end of it; its own state stays empty
	pages     atomic.Pointer[memPages]
}

func newPagedStore() openedStore {
	s := &pagedStore{memStore: new(memStore)}
	s.pages.Store(new(memPages))
	s.queue = newWriteQueue(func(batch) (batch, error) { return pagedBatch{*s.pages.Load(), s}, nil }, defaultWaiting)
	return s
}

func (s *pagedStore) View(ctx context.Context, fn func(Tx) error) error {
	return s.viewing(ctx, func() error { return fn(*s.pages.Load()) })
}

// memPages are one committed state: its entries in order, in pages of which none is empty.
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

// A pagedBatch is a committed state from which a commit makes the next one.
type pagedBatch struct {
	memPages
	store *pagedStore
}

func (b pagedBatch) commit(changes []ordered.Change) error {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b ordered.Change) int { return cmp.Compare(a.Key, b.Key) })
	state := *b.store.pages.Load()
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
	b.store.pages.Store(&next)
	return nil
}

func (pagedBatch) check() error { return nil }
func (pagedBatch) rollback()    {}
