package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"
)

// TestReplays keeps answers at random moments and looks for them at others:
// each is found for 24 hours and no longer, whether or not the sweep has run,
// and only by its own organization.
func TestReplays(t *testing.T) {
	histories(t, 40, func(t *testing.T, rnd *rand.Rand) {
		s := newShop(t, setup{})
		s.apply(bytes.Replace(setup{}.document(), []byte("cafe-luna"), []byte("tienda"), 1))
		type kept struct {
			at      instant
			request [16]byte
			body    string
		}
		answers := map[[17]byte]kept{} // by organization and name
		var all []kept
		for n := range 60 {
			s.pass(time.Duration(rnd.Int64N(int64(pick(rnd, time.Minute, 7*time.Hour, 30*time.Hour)))))
			if len(all) > 0 && rnd.IntN(3) == 0 { // just before or after one runs out
				s.clock = max(s.clock, pick(rnd, all...).at+24*3600*1000+instant(rnd.IntN(3)-1))
			}
			if rnd.IntN(5) == 0 {
				s.swept()
			}
			s.org = 1 + uint32(rnd.IntN(2))
			k := retryKey{name: [16]byte{byte(rnd.IntN(4))}, request: [16]byte{9, byte(rnd.IntN(2))}}
			who := [17]byte(append([]byte{byte(s.org)}, k.name[:]...))
			got, err := do(s, func(t *txn) (*replay, error) {
				r, err := t.replay(k)
				if r != nil || err != nil {
					return r, err
				}
				return nil, t.keepReplay([]retryKey{k}, 201, fmt.Appendf(nil, "answer %d", n))
			})
			switch first := answers[who]; {
			case first.body == "" || s.clock >= first.at+24*3600*1000:
				if got != nil || err != nil {
					t.Fatalf("at %s: got %v (%v), want nothing", s.clock, got, err)
				}
				answers[who] = kept{s.clock, k.request, fmt.Sprint("answer ", n)}
				all = append(all, answers[who])
			case first.request != k.request:
				if codeOf(err) != "idempotency_key_reused" {
					t.Fatalf("at %s: got %v (%v), want idempotency_key_reused", s.clock, got, err)
				}
			case err != nil || got == nil || string(got.Body) != first.body || got.Status != 201:
				t.Fatalf("at %s: got %v (%v), want %q of %s", s.clock, got, err, first.body, first.at)
			}
		}
		s.org = 1
		s.pass(48 * time.Hour)
		s.swept()
		for _, e := range s.entries() {
			if table := tableName(e.Key); table == "i" || table == "I1" {
				t.Fatalf("a replay is left after the sweep: %x", e.Key)
			}
		}
	})
}

// TestReplaySlices numbers replays for a day and counts the slices: they fill
// up, and grow so that there are never many.
func TestReplaySlices(t *testing.T) {
	l := new(replaySlices)
	const step = 1 << 13
	for n := uint64(1); n < 1<<27; n += step {
		before := len(l.List)
		s, isNew := l.open(n, instant(n/step)*1000)
		if isNew != (len(l.List) > before) || s != l.List[len(l.List)-1] || s.First > n {
			t.Fatalf("%d goes to %v, new is %t", n, s, isNew)
		}
		if len(l.List) > 350 {
			t.Fatalf("%d slices of %d replays", len(l.List), n)
		}
		if size := n - s.First; size >= sliceNames && size > n/64 {
			t.Fatalf("a slice of %d of %d replays", size, n)
		}
	}
	if len(l.List) < 10 {
		t.Fatalf("%d slices", len(l.List))
	}
}

// TestDropReplays drops a slice some entries at a time, and nothing else.
func TestDropReplays(t *testing.T) {
	s := newShop(t, setup{})
	keep := func(n byte) {
		must(s, func(t *txn) (any, error) {
			return nil, t.keepReplay([]retryKey{{name: [16]byte{n}, request: [16]byte{1}}, {name: [16]byte{n, 1}}}, 201, []byte("{}"))
		})
	}
	for n := range byte(25) {
		keep(n)
	}
	s.pass((sliceTime + replayTime) * time.Millisecond)
	keep(99)
	for rounds := 0; ; rounds++ {
		now := s.clock
		left := must(s, func(t *txn) (bool, error) {
			stale, err := findStaleSlice(t.Tx, t.slices, now)
			if err != nil || stale == nil {
				return false, err
			}
			return true, stale.drop(t.Tx, 7)
		})
		if !left {
			if rounds != 11 { // 50 names and 25 replays
				t.Errorf("%d rounds", rounds)
			}
			break
		}
	}
	have := map[string]int{}
	for _, e := range s.entries() {
		have[tableName(e.Key)]++
	}
	if have["i"] != 1 || have["I1"] != 2 {
		t.Errorf("%d replays and %d names are left, want 1 and 2", have["i"], have["I1"])
	}
	for _, name := range [][16]byte{{99}, {99, 1}} {
		if ask(s, func(t *txn) (*replay, error) { return t.replay(retryKey{name: name, request: [16]byte{1}}) }) == nil {
			t.Errorf("%x is gone", name)
		}
	}
}

// TestRetryKeys shows which requests are the same to a retry.
func TestRetryKeys(t *testing.T) {
	of := func(header, method, target, body string) retryKey {
		return idempotencyKey(header, httptest.NewRequest(method, target, nil), []byte(body))
	}
	first := of("k", "POST", "/a", `{"x":1}`)
	for _, test := range []struct {
		reason                string
		other                 retryKey
		sameName, sameRequest bool
	}{
		{"the same", of("k", "POST", "/a", `{"x":1}`), true, true},
		{"another key", of("l", "POST", "/a", `{"x":1}`), false, true},
		{"another method", of("k", "PUT", "/a", `{"x":1}`), true, false},
		{"another path", of("k", "POST", "/b", `{"x":1}`), true, false},
		{"another query", of("k", "POST", "/a?dryRun=true", `{"x":1}`), true, false},
		{"another body", of("k", "POST", "/a", `{"x":2}`), true, false},
		{"another space in the body", of("k", "POST", "/a", `{"x": 1}`), true, false},
		{"the end of the path at the beginning of the body", of("k", "POST", "/", `a{"x":1}`), true, false},
		{"an externalId of the same text", externalRetryKey("k", []byte(`{"x":1}`)), false, false},
	} {
		if test.other.name == first.name != test.sameName || test.other.request == first.request != test.sameRequest {
			t.Errorf("%s: same name is %t, same request is %t", test.reason, test.other.name == first.name, test.other.request == first.request)
		}
	}
	if externalRetryKey("a", []byte("b")).name == externalRetryKey("ab", nil).name {
		t.Error("an externalId and a body are one text")
	}
}

// TestSweepBatches settles more accounts than one transaction of the sweep
// takes, of two organizations, and leaves nothing due.
func TestSweepBatches(t *testing.T) {
	s := newShop(t, setup{program: `"expiry":{"days":1}`})
	s.apply(bytes.Replace(setup{program: `"expiry":{"days":1}`}.document(), []byte("cafe-luna"), []byte("tienda"), 1))
	var customers []id
	for i := range 3 * sweepBatch {
		s.org = 1 + uint32(i%2)
		cust := s.customer(fmt.Sprint("c", i))
		s.add(cust, "10", 0)
		customers = append(customers, cust)
	}
	s.pass(oneDay)
	s.swept()
	for i, cust := range customers {
		s.org = 1 + uint32(i%2)
		if ledger := s.ledger(cust); len(ledger) != 2 || ledger[1].Category != categoryExpiration || ledger[1].CreatedAt != s.clock {
			t.Fatalf("customer %d has %d movements", i, len(ledger))
		}
	}
	for _, e := range s.entries() {
		if e.Key[0] == 'd' {
			t.Fatalf("still due: %x", e.Key)
		}
	}
	before := s.entries()
	s.swept()
	same(t, "what is in the store after another sweep", s.entries(), before)
}

// TestReplayFilter keeps names in slice after slice: the filter, made after
// each, lacks none that is kept and nearly all others, and the
// look-up goes by it.
func TestReplayFilter(t *testing.T) {
	s := newShop(t, setup{})
	rnd := rand.New(rand.NewPCG(1, 2))
	find := func(name [16]byte) bool {
		return ask(s, func(t *txn) (*replay, error) { return t.replay(retryKey{name: name, request: name}) }) != nil
	}
	var names [][16]byte
	for slice := range 4 {
		s.pass((sliceTime + 1) * time.Millisecond)
		for range 500 {
			names = append(names, randomName(rnd))
		}
		must(s, func(t *txn) (any, error) {
			for _, name := range names[500*slice:] {
				k := retryKey{name: name, request: name}
				if err := t.keepReplay([]retryKey{k}, 201, []byte("{}")); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
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

	// As full as it becomes before it is made anew.
	f := &replayFilter{words: make(nameSet, 1000)}
	for range namesPerWord * len(f.words) {
		name := randomName(rnd)
		f.words.add(name[:])
	}
	wrong := 0
	for range 100_000 {
		if !f.words.lacks(randomName(rnd)) {
			wrong++
		}
	}
	if wrong > 1000 {
		t.Errorf("a full filter has %d of 100000 names that were not put in", wrong)
	}
}

// TestReplayFilterFull: where there is no room for a filter as large as it should
// be, one that is too full does its best, until most of its names are dropped.
func TestReplayFilterFull(t *testing.T) {
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
				if err := t.Put(t.nameKey(list[len(list)-1], name), []byte{0}); err != nil {
					return nil, err
				}
			}
			return nil, t.put(orgKey('I', t.org), &replaySlices{list})
		})
		f := ask(s, func(t *txn) (*replayFilter, error) { return filterOf(t.Tx, t.slices, t.org, had, leastFilter) })
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
	if f := ask(s, func(t *txn) (*replayFilter, error) { return filterOf(t.Tx, t.slices, t.org, nil, leastFilter-1) }); f != nil {
		t.Error("a filter where there is no room for the least")
	}
}

// TestFillingSlice: what is known of the names of a slice that is being filled is
// all of them, whatever became of the transaction that began it and of others.
func TestFillingSlice(t *testing.T) {
	s := newShop(t, setup{})
	rnd := rand.New(rand.NewPCG(5, 6))
	failed := errors.New("failed")
	keep := func(result error, names ...[16]byte) {
		t.Helper()
		_, err := write(t.Context(), s.engine, s.org, s.clock, func(t *txn) (any, error) {
			for _, name := range names {
				if err := t.keepReplay([]retryKey{{name: name, request: name}}, 201, []byte("{}")); err != nil {
					return nil, err
				}
			}
			return nil, result
		})
		if err != result {
			t.Fatal(err)
		}
	}
	has := func(name [16]byte) bool {
		return ask(s, func(t *txn) (*replay, error) { return t.replay(retryKey{name: name, request: name}) }) != nil
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
	keep(failed, lost...) // the first of them begins a slice, which is then none
	more := some(100)
	for _, name := range more {
		keep(nil, name)
	}
	keep(failed, some(1)...)
	set := known()
	if set == nil {
		t.Fatal("a slice that follows a full one has no names that are known")
	}
	for _, name := range append(names[:100:100], more...) {
		if !has(name) {
			t.Fatal("a name is not found")
		}
	}
	for _, name := range append(some(100), lost...) {
		if has(name) {
			t.Fatal("a name that was not kept is found")
		}
	}
	if set.lacks(more[0]) || !set.lacks(some(1)[0]) {
		t.Error("the set does not tell names that it has from others")
	}
	// It is what the look-up goes by.
	clear(set)
	if has(more[0]) || !has(names[0]) {
		t.Error("the set is not asked, or for names of another slice")
	}
	// Another organization may take its place.
	s.engine.slices.beginFilling(s.org+fillingSlices, lastSlice(s), sliceNames)
	last := some(1)
	keep(nil, last...)
	if known() != nil || !has(more[0]) || !has(last[0]) {
		t.Error("names of one organization are known of another")
	}
}

func randomName(rnd *rand.Rand) (name [16]byte) {
	binary.LittleEndian.PutUint64(name[:], rnd.Uint64())
	binary.LittleEndian.PutUint64(name[8:], rnd.Uint64())
	return name
}

// lastSlice is the first number of the last slice.
func lastSlice(s *shop) uint64 {
	l := ask(s, func(t *txn) (*replaySlices, error) { return t.replaySlices() })
	return l.List[len(l.List)-1].First
}
