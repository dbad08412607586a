package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sello/internal/ordered"
)

// TestMemtable compares every version of a table with a map.
func TestMemtable(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	m, versions := randomMemtable(rng)
	for version, want := range versions {
		got := map[string][]byte{}
		last := ""
		c := m.from(nil)
		for e := c.next(); e != 0; e = c.next() {
			key := string(m.key(e))
			if key <= last {
				t.Fatalf("%q comes after %q", key, last)
			}
			last = key
			if value, ok := m.value(e, uint32(version)); ok {
				got[key] = value
			}
		}
		if !maps.EqualFunc(got, want, sameBytes) {
			t.Fatalf("version %d: %d entries, want %d", version, len(got), len(want))
		}
		for key := range versions[len(versions)-1] {
			value, ok := m.get([]byte(key), uint32(version))
			if wanted, there := want[key]; ok != there || !sameBytes(value, wanted) {
				t.Fatalf("version %d: %q is %q, %v; want %q, %v", version, key, value, ok, wanted, there)
			}
		}
	}
	checkOrder(t, rng, m, slices.Sorted(maps.Keys(versions[len(versions)-1])))
}

// randomMemtable returns a table and what each of its versions has.
func randomMemtable(rng *rand.Rand) (m *memtable, versions []map[string][]byte) {
	m = newMemtable()
	versions = []map[string][]byte{{}} // nil: deleted
	for version := range uint32(smaller(60, 20)) {
		state := maps.Clone(versions[len(versions)-1])
		run, changes := rng.IntN(1000), []ordered.Change(nil)
		for i := range rng.IntN(200) {
			key := fmt.Sprint(rng.IntN(1000))
			if rng.IntN(3) == 0 {
				key = fmt.Sprintf("%c%06d", 'a'+rng.IntN(2), run+i) // in order
			}
			var value []byte
			switch rng.IntN(6) {
			case 0:
			case 1:
				value = []byte{}
			case 2:
				value = bytes.Repeat([]byte("long"), rng.IntN(20_000))
			default:
				value = fmt.Append(nil, rng.Uint64())
			}
			changes = append(changes, ordered.Change{Key: key, Value: value})
			state[key] = value
		}
		m.put(changes, version+1)
		versions = append(versions, state)
	}
	return m, versions
}

// checkOrder compares the order of a table's keys, from any place and in both directions, and the
// lengths of its runs.
func checkOrder(t *testing.T, rng *rand.Rand, m *memtable, keys []string) {
	t.Helper()
	if m.count != len(keys) {
		t.Errorf("count %d, want %d", m.count, len(keys))
	}
	runs := *m.runs.Load()
	for i := 1; i < len(runs); i++ {
		if len(runs[i-1]) < 2*len(runs[i]) {
			t.Errorf("a run of %d entries comes after one of %d", len(runs[i]), len(runs[i-1]))
		}
	}
	some := func(c *memCursor) (list []string) {
		for e := c.next(); e != 0 && len(list) < 20; e = c.next() {
			list = append(list, string(m.key(e)))
		}
		return list
	}
	for range 2000 {
		bound := fmt.Sprint(100 + rng.IntN(1100))[:rng.IntN(4)]
		i, _ := slices.BinarySearch(keys, bound)
		if got, want := some(m.from([]byte(bound))), keys[i:min(i+20, len(keys))]; !slices.Equal(got, want) {
			t.Fatalf("from %q on come %q, want %q", bound, got, want)
		}
		if bound == "" {
			i = len(keys)
		}
		want := slices.Clone(keys[max(i-20, 0):i])
		slices.Reverse(want)
		if got := some(m.before([]byte(bound))); !slices.Equal(got, want) {
			t.Fatalf("before %q come %q, want %q", bound, got, want)
		}
	}
	for i, k := range m.inOrder() {
		if got := string(m.key(k.entry)); got != keys[i] {
			t.Fatalf("entry %d in order is %q, want %q", i, got, keys[i])
		}
	}
}

// TestMemtableLikeKeys compares scans over keys that begin alike, with zeros and with 0xff.
func TestMemtableLikeKeys(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 9))
	pieces := []string{"", "\x00", "\xff", "a", "0123456789abcde", "0123456789abcdef", "0123456789abcdef\x00",
		strings.Repeat("\x00", 16), strings.Repeat("\xff", 16), strings.Repeat("q", 70)}
	key := func() string {
		return pieces[rng.IntN(len(pieces))] + pieces[rng.IntN(len(pieces))] + pieces[rng.IntN(len(pieces))]
	}
	const versions = 40
	m, state := newMemtable(), map[string]bool{} // which are there
	for version := range uint32(versions) {
		batch := map[string]bool{}
		for range rng.IntN(20) {
			batch["k"+key()] = rng.IntN(4) > 0
		}
		var changes []ordered.Change
		for key, there := range batch { // in any order
			c := ordered.Change{Key: key}
			if state[key] = there; there {
				c.Value = []byte("value")
			}
			changes = append(changes, c)
		}
		m.put(changes, version+1)
	}
	keys := slices.Sorted(maps.Keys(state))
	nothing := func(func(ordered.Entry, error) bool) {}
	for range smaller(2000, 300) {
		lo, hi, reverse := key(), "k"+key(), rng.IntN(2) == 0
		var want, got []string
		for _, k := range keys {
			if state[k] && ordered.InRange([]byte(k), []byte(lo), []byte(hi)) {
				want = append(want, k)
			}
		}
		if reverse {
			slices.Reverse(want)
		}
		for e := range (memLayer{m, versions}).scan(nothing, []byte(lo), []byte(hi), reverse) {
			got = append(got, string(e.Key))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("from %q to %q, reverse %t: %q, want %q", lo, hi, reverse, got, want)
		}
	}
}

// TestMemtableLongRuns fills a table beyond the longest run.
func TestMemtableLongRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("400,000 entries")
	}
	rng := rand.New(rand.NewPCG(4, 4))
	m := newMemtable()
	for m.count < 3*memRunMost {
		var changes []ordered.Change
		for range 1 + rng.IntN(2000) {
			changes = append(changes, ordered.Change{Key: string(binary.BigEndian.AppendUint64(nil, rng.Uint64()))})
		}
		m.put(changes, 1)
	}
	runs := *m.runs.Load()
	for _, r := range runs {
		if len(r) > memRunMost {
			t.Errorf("a run has %d entries", len(r))
		}
	}
	if len(runs) > 20 {
		t.Errorf("there are %d runs", len(runs))
	}
	all := m.inOrder()
	if len(all) != m.count || !slices.IsSortedFunc(all, m.compare) {
		t.Errorf("%d of %d entries in order, sorted: %t", len(all), m.count, slices.IsSortedFunc(all, m.compare))
	}
}

// TestMemtableReaders reads while another goroutine writes. A reader sees the whole of
// the version that it asks for and nothing else.
func TestMemtableReaders(t *testing.T) {
	t.Parallel()
	const versions, perVersion = 300, 20
	m := newMemtable()
	var complete atomic.Uint32
	var wg sync.WaitGroup
	for reader := range 2 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(reader)))
			for complete.Load() < versions {
				version := complete.Load()
				if version == 0 {
					continue
				}
				version = 1 + rng.Uint32N(version)
				n := 0
				visit := func(e uint32) {
					if value, ok := m.value(e, version); ok && len(value) == 4 && binary.BigEndian.Uint32(value) <= version {
						n++
					}
				}
				c := m.from(nil)
				if reader == 1 {
					c = m.before(nil)
				}
				for e := c.next(); e != 0; e = c.next() {
					visit(e)
				}
				if n != int(version)*perVersion+1 {
					t.Errorf("version %d has %d entries, want %d", version, n, version*perVersion+1)
					return
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(2, 0))
	for version := uint32(1); version <= versions; version++ {
		value := binary.BigEndian.AppendUint32(nil, version)
		var changes []ordered.Change
		for i := range perVersion {
			changes = append(changes, ordered.Change{Key: fmt.Sprintf("%c%d %d %d", 'a'+rng.IntN(3), rng.Uint32(), version, i), Value: value})
		}
		m.put(append(changes, ordered.Change{Key: "the same", Value: value}), version)
		complete.Store(version)
	}
	wg.Wait()
}

func BenchmarkMemtablePut(b *testing.B) {
	value := []byte(strings.Repeat("v", 100))
	for _, order := range []string{"random", "ascending", "batches"} {
		b.Run(order, func(b *testing.B) {
			changes := make([]ordered.Change, 0, 210_000)
			for n := range uint64(cap(changes)) {
				if order == "random" {
					n = rand.Uint64()
				}
				changes = append(changes, ordered.Change{Key: string(binary.BigEndian.AppendUint64([]byte("c1234"), n)), Value: value})
			}
			if order == "batches" {
				for i, key := range batchKeys(1000) {
					changes[i].Key = key
				}
			}
			var m *memtable
			b.ResetTimer()
			for i := 0; i < b.N; i += 210 {
				at := i % len(changes)
				if at == 0 {
					m = newMemtable()
				}
				m.put(changes[at:at+210], 1)
			}
		})
	}
}

func BenchmarkMemtableGet(b *testing.B) {
	keys := batchKeys(1000)
	m := newMemtable()
	for _, key := range keys {
		m.put([]ordered.Change{{Key: key, Value: []byte("value")}}, 1)
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	b.Run("get", func(b *testing.B) {
		for i := range b.N {
			m.get([]byte(keys[i%len(keys)]), 1)
		}
	})
	b.Run("first", func(b *testing.B) {
		for i := range b.N {
			m.from([]byte(keys[i%len(keys)])).next()
		}
	})
}

// batchKeys returns the keys of batches, each of them sorted. A batch is 30 small writes:
// each puts three keys at the ends of tables, three of one of 20,000 accounts, and one
// anywhere.
func batchKeys(batches int) (keys []string) {
	rng := rand.New(rand.NewPCG(3, 0))
	accounts := make([]uint64, 20_000)
	for i := range accounts {
		accounts[i] = rng.Uint64()
	}
	for batch := range batches {
		begin := len(keys)
		for i := range 30 {
			seq, account := batch*30+i, accounts[rng.IntN(len(accounts))]
			for _, table := range "Fim" {
				keys = append(keys, fmt.Sprintf("%c\x00\x00\x00\x01\x00\x00\x00\x00%s", table, binary.BigEndian.AppendUint32(nil, uint32(seq))))
			}
			for _, table := range "cdG" {
				keys = append(keys, fmt.Sprintf("%c\x00\x00\x00\x01the id%s\x01\x00\x00\x00\x01", table, binary.BigEndian.AppendUint64(nil, account)))
			}
			keys = append(keys, fmt.Sprintf("I\x00\x00\x00\x01%s", binary.BigEndian.AppendUint64(nil, rng.Uint64())))
		}
		slices.Sort(keys[begin:])
	}
	return keys
}
