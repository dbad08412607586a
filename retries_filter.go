package main

import (
	"context"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync/atomic"
)

// Most names looked up among the replays are new. A Bloom filter of an organization's
// names shows that in one step, without a look into every slice. It is only a cache:
// once a second it is made from the store, out of slices that are no longer the last
// and so get no more names. If the last slice began because the one before was full,
// its names are filtered too: the writer adds them as it writes. Otherwise the last
// slice is looked into.

// A replayFilter holds the names of all slices that begin below until. A filter with
// more names replaces it and may use the same words: extra names do no harm to readers
// of the old filter.
type replayFilter struct {
	until uint64
	names int // names in it, with the ones dropped since
	words nameSet
}

// A fillingSlice holds the names of a slice that began when the one before was full. It
// is made before the first name is written, and each name is added before it is
// written. Names of failed transactions stay, and do no harm. Another organization's
// slice may take its place.
type fillingSlice struct {
	org    uint32
	first  uint64 // the slice's
	others uint64 // knownSlices.others when it was made: since then only this process has written names
	words  nameSet
}

// A nameSet is a Bloom filter. Its false-positive rate is at most 1 in 200 while it has
// at most namesPerWord names per word. The first half of a name chooses a word, the
// second half four bits of it.
type nameSet []atomic.Uint64

const (
	namesPerWord  = 4       // at most, if there is room; at 8 the false-positive rate is 1 in 40
	leastFilter   = 1 << 12 // words
	maxFilters    = 1 << 22 // words, of all organizations: 32 MB
	fillingSlices = 64      // at most, of 128 KB each; more beyond two million replays
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

// lacks reports whether the name was certainly never added.
func (s nameSet) lacks(name [16]byte) bool {
	word, mask := s.place(name[:])
	return word.Load()&mask != mask
}

// fillingNames returns the names of the slice that begins with first; nil if they are
// not known.
func (s *knownSlices) fillingNames(org uint32, first uint64) nameSet {
	if f := s.filling[org%fillingSlices].Load(); f != nil && f.org == org && f.first == first && f.others == s.others.in(int32(org)).Load() {
		return f.words
	}
	return nil
}

// beginFilling makes the filter of a slice for so many replays, of one or two names
// each, before any name is written. If the slice has a filter already, a failed
// transaction or an earlier run of this one made it, and it stays.
func (s *knownSlices) beginFilling(org uint32, first, replays uint64) {
	if s.fillingNames(org, first) == nil {
		words := min(1+2*replays/namesPerWord, maxFilling)
		s.filling[org%fillingSlices].Store(&fillingSlice{org, first, s.others.in(int32(org)).Load(), make(nameSet, words)})
	}
}

// filterReplays adds to the filters the slices that are no longer the last.
func (e *engine) filterReplays(ctx context.Context) error {
	return e.store.View(ctx, func(tx Tx) error {
		tx = &stoppableTx{Tx: tx, ctx: ctx}
		filters, room := map[uint32]*replayFilter{}, maxFilters
		n, err := organizationCount(tx)
		if err != nil {
			return err
		}
		for org := range withSlices(tx, n) {
			f, err := filterOf(tx, e.slices, org, e.replayFilter(org), room)
			if err != nil {
				return err
			}
			if f != nil {
				filters[org] = f
				room -= len(f.words)
			}
		}
		e.filters.Store(&filters)
		return nil
	})
}

// filterOf returns an organization's filter. It extends the filter that there was,
// or makes a new filter if the old one would be too full or most of its names have been dropped.
// It returns nil if there is nothing to filter, or no room.
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
