package main

import (
	"context"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync/atomic"
)

// Most names that are looked for among the replays are new. A filter of an
// organization's names tells that in one step, without a look into every slice. It
// is never the truth: it is made from the store every second, of slices that are no
// longer the last one and so get no more names. Where one slice
// follows the other because they are full, the names of the newest are known too, from
// the writer, which puts them in; else it is looked into.

// A replayFilter knows the names of all slices that begin below until. One
// with more names takes its place, in the same words as long as they do: a name too
// many does no harm to who has the former one.
type replayFilter struct {
	until uint64
	names int // in it, those that have been dropped since too
	words nameSet
}

// A fillingSlice knows the names of a slice that began when the one before was
// full. It is made before the first of them is written, and each is put in before it is
// written; those of transactions that fail stay, and do no harm. Another organization
// may take its place.
type fillingSlice struct {
	org   uint32
	first uint64 // the slice's
	words nameSet
}

// A nameSet is a set of names, and of some that were not put into it: one of 200
// or fewer while it has no more than namesPerWord for each word. The first half of a
// name chooses a word, the second four bits of it.
type nameSet []atomic.Uint64

const (
	namesPerWord  = 4       // at most, where there is room; at 8 it has one of 40 that were not put in
	leastFilter   = 1 << 12 // words
	maxFilters    = 1 << 22 // words, of all organizations: 32 MB
	fillingSlices = 64      // at most, of 128 KB, and more for who has more than two million replays
	maxFilling    = 1 << 16 // words
)

func (s nameSet) place(name []byte) (word *atomic.Uint64, mask uint64) {
	at, _ := bits.Mul64(binary.LittleEndian.Uint64(name), uint64(len(s)))
	b := binary.LittleEndian.Uint64(name[8:])
	return &s[at], 1<<(b&63) | 1<<(b>>6&63) | 1<<(b>>12&63) | 1<<(b>>18&63)
}

func (s nameSet) add(name []byte) {
	word, mask := s.place(name)
	word.Or(mask)
}

// lacks reports that the name was not put in.
func (s nameSet) lacks(name [16]byte) bool {
	word, mask := s.place(name[:])
	return word.Load()&mask != mask
}

// fillingNames returns the names of a slice that begins with the number; nil if they are
// not known.
func (s *knownSlices) fillingNames(org uint32, first uint64) nameSet {
	if f := s.filling[org%fillingSlices].Load(); f != nil && f.org == org && f.first == first {
		return f.words
	}
	return nil
}

// beginFilling begins with the names of a slice that takes so many replays, of one
// or two names each, before any is written. What is known of a slice with that number is
// of a transaction that failed, or of an earlier run of this one, and stays.
func (s *knownSlices) beginFilling(org uint32, first, replays uint64) {
	if s.fillingNames(org, first) == nil {
		words := min(1+2*replays/namesPerWord, maxFilling)
		s.filling[org%fillingSlices].Store(&fillingSlice{org, first, make(nameSet, words)})
	}
}

// filterReplays makes the filters anew where there are slices to be added.
func (e *engine) filterReplays(ctx context.Context) error {
	return e.store.View(ctx, func(tx Tx) error {
		tx = &stoppableTx{Tx: tx, ctx: ctx}
		filters, room := map[uint32]*replayFilter{}, maxFilters
		n, _, err := getUint(tx, newKey('o').byte('n'))
		for org := uint32(1); org <= uint32(n) && err == nil; org++ {
			var f *replayFilter
			if f, err = filterOf(tx, e.slices, org, e.replayFilter(org), room); f != nil {
				filters[org] = f
				room -= len(f.words)
			}
		}
		if err == nil {
			e.filters.Store(&filters)
		}
		return err
	})
}

// replayFilter returns the organization's filter; nil if there is none.
func (e *engine) replayFilter(org uint32) *replayFilter {
	if all := e.filters.Load(); all != nil {
		return (*all)[org]
	}
	return nil
}

// filterOf returns an organization's filter: the one it has, with what came since,
// or one made from the beginning where that would be too full, or most of what is in
// it has been dropped. It is nil where there is nothing to filter, or no room for it.
func filterOf(tx Tx, known *knownSlices, org uint32, had *replayFilter, room int) (*replayFilter, error) {
	l, err := known.of(tx, org)
	if err != nil || len(l.List) < 2 {
		return nil, err
	}
	last := l.List[len(l.List)-1].First
	if had != nil && had.until == last {
		return had, nil
	}
	if room < leastFilter {
		return nil, nil
	}
	f := &replayFilter{until: last}
	first := l.List[0].First
	live := int(last - first)
	words := min(max(leastFilter, 2*live/namesPerWord), room)
	goesOn := had != nil && len(had.words) <= room
	if goesOn {
		names := had.names + int(last-had.until)
		goesOn = names <= namesPerWord*len(had.words) || names <= 2*live && words <= len(had.words)
	}
	if goesOn {
		f.names, f.words, first = had.names, had.words, had.until
	} else {
		f.words = make(nameSet, words)
	}
	prefix := orgKey('I', org)
	for e, err := range tx.Scan(slices.Clone(prefix).u64(first), slices.Clone(prefix).u64(last), false) {
		if err != nil {
			return nil, err
		}
		f.words.add(e.Key[len(prefix)+8:])
		f.names++
	}
	return f, nil
}
