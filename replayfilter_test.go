package main

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// TestReplayFilter keeps names in slice after slice and makes the filter after each.
// It must have every name of the slices before the last, and look-ups must use it.
func TestReplayFilter(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	rnd := rand.New(rand.NewPCG(1, 2))
	find := s.hasName
	var names [][16]byte
	for slice := range 4 {
		s.pass((sliceTime + 1) * time.Millisecond)
		for range 500 {
			names = append(names, randomName(rnd))
		}
		s.ok(s.keepNames(nil, names[500*slice:]...))
		if err := s.engine.filterReplays(t.Context()); err != nil {
			t.Fatal(err)
		}
		f := s.engine.replayFilter(s.org)
		if slice == 0 {
			if f != nil {
				t.Error("a filter of a slice that gets more")
			}
			continue
		}
		if f == nil || f.names != 500*slice {
			t.Fatalf("after %d slices: %+v", slice, f)
		}
		for i, name := range names {
			if i < 500*slice && f.words.lacks(name) {
				t.Fatalf("the filter lacks name %d", i)
			}
		}
	}
	if !find(names[0]) || !find(names[1999]) || find(randomName(rnd)) {
		t.Error("kept names are not found, or others are")
	}
	s.engine.filters.Store(&map[uint32]*replayFilter{s.org: {until: lastSlice(s), words: make(nameSet, leastFilter)}})
	if find(names[0]) || !find(names[1999]) {
		t.Error("an empty filter changes nothing: it is not asked, or for names that it does not know of")
	}
}

// TestNameSetFull fills a set with as many names as it should take. Its false-positive
// rate must be at most 1 in 100.
func TestNameSetFull(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	words := make(nameSet, 1000)
	for range namesPerWord * len(words) {
		name := randomName(rnd)
		words.add(name[:])
	}
	wrong := 0
	for range 100_000 {
		if !words.lacks(randomName(rnd)) {
			wrong++
		}
	}
	if wrong > 1000 {
		t.Errorf("a full filter has %d of 100000 names that were not put in", wrong)
	}
}

// TestReplayFilterFull leaves no room for a filter as large as it should be. The
// filter gets too full but stays in use, and is made anew when most of its names
// are dropped.
func TestReplayFilterFull(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	rnd := rand.New(rand.NewPCG(3, 4))
	var had *replayFilter
	var list []replaySlice
	const each = 7_500 // names of a slice
	var names [][16]byte
	for slice := range 5 {
		if slice == 4 {
			list = list[3:]
		}
		list = append(list, replaySlice{uint64(1 + slice*each), s.clock})
		for range each {
			names = append(names, randomName(rnd))
		}
		must(s, func(t *txn) (any, error) {
			for _, name := range names[slice*each:] {
				if err := t.Put(t.replays.nameKey(list[len(list)-1], name), []byte{0}); err != nil {
					return nil, err
				}
			}
			return nil, t.put(orgKey('I', t.org), &replaySlices{list})
		})
		f := ask(s, func(t *txn) (*replayFilter, error) { return filterOf(t.Tx, t.replays.slices, t.org, had, leastFilter) })
		if slice == 0 {
			continue
		}
		from, wrong := 0, 0
		if slice == 4 {
			from = 3 * each
		}
		for _, name := range names[from : slice*each] {
			if f.words.lacks(name) {
				t.Fatalf("after %d slices the filter lacks a name", slice)
			}
		}
		for _, name := range names[slice*each:] {
			if !f.words.lacks(name) {
				wrong++
			}
		}
		want := []int{0, each, 2 * each, 3 * each, each}[slice]
		if f.names != want || len(f.words) != leastFilter || wrong > each/8 {
			t.Errorf("after %d slices: %d names in %d words, %d of %d others", slice, f.names, len(f.words), wrong, each)
		}
		had = f
	}
	if f := ask(s, func(t *txn) (*replayFilter, error) {
		return filterOf(t.Tx, t.replays.slices, t.org, nil, leastFilter-1)
	}); f != nil {
		t.Error("a filter where there is no room for the least")
	}
}

// TestFillingSlice checks that the filter of a slice that is being filled has all of
// its names, even if the transaction that began the slice, or another, failed.
func TestFillingSlice(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	s := newShop(t, setup{})
	rnd := rand.New(rand.NewPCG(5, 6))
	failed := errors.New("failed")
	keep := func(result error, names ...[16]byte) {
		t.Helper()
		if err := s.keepNames(result, names...); err != result {
			t.Fatal(err)
		}
	}
	some := func(n int) (names [][16]byte) {
		for range n {
			names = append(names, randomName(rnd))
		}
		return names
	}
	known := func() nameSet { return s.engine.slices.fillingNames(s.org, lastSlice(s)) }
	names := some(sliceNames)
	keep(nil, names...)
	if known() != nil {
		t.Error("the first slice of all has names that are known")
	}
	lost := some(3)
	keep(failed, lost...) // the first of them begins a slice, which is rolled back
	more := some(30)
	for _, name := range more {
		keep(nil, name)
	}
	keep(failed, some(1)...)
	set := known()
	if set == nil {
		t.Fatal("a slice that follows a full one has no names that are known")
	}
	for _, name := range append(names[:100:100], more...) {
		if !s.hasName(name) {
			t.Fatal("a name is not found")
		}
	}
	for _, name := range append(some(100), lost...) {
		if s.hasName(name) {
			t.Fatal("a name that was not kept is found")
		}
	}
	if set.lacks(more[0]) || !set.lacks(some(1)[0]) {
		t.Error("the set does not tell names that it has from others")
	}
	// Look-ups use the set: once emptied it hides its names, and no others.
	clear(set)
	if s.hasName(more[0]) || !s.hasName(names[0]) {
		t.Error("the set is not asked, or for names of another slice")
	}
	// Another server may have written more names. They are looked up again.
	s.engine.store.othersWrote(1, false)
	if known() != nil || !s.hasName(more[0]) {
		t.Error("names are known although others have written")
	}
	// The slice of another organization may take its place.
	s.engine.slices.beginFilling(s.org+fillingSlices, lastSlice(s), sliceNames)
	last := some(1)
	keep(nil, last...)
	if known() != nil || !s.hasName(more[0]) || !s.hasName(last[0]) {
		t.Error("names of one organization are known of another")
	}
}

// keepNames keeps an answer under each name, in a transaction that returns result.
func (s *shop) keepNames(result error, names ...[16]byte) error {
	_, err := do(s, func(t *txn) (any, error) {
		for _, name := range names {
			if err := t.replays.keep([]retryKey{{name: name, request: name}}, 201, []byte("{}")); err != nil {
				return nil, err
			}
		}
		return nil, result
	})
	return err
}

// hasName reports whether a retry with that name gets an answer.
func (s *shop) hasName(name [16]byte) bool {
	s.Helper()
	return ask(s, func(t *txn) (*replay, error) { return t.replays.find(retryKey{name: name, request: name}) }) != nil
}

func randomName(rnd *rand.Rand) (name [16]byte) {
	binary.LittleEndian.PutUint64(name[:], rnd.Uint64())
	binary.LittleEndian.PutUint64(name[8:], rnd.Uint64())
	return name
}

// lastSlice returns the first number of the last slice.
func lastSlice(s *shop) uint64 {
	l := ask(s, func(t *txn) (*replaySlices, error) { return t.replays.list() })
	return l.List[len(l.List)-1].First
}
