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
		for e := m.first(nil); e != 0; e = m.next(e, 0) {
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
		run := rng.IntN(1000)
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
			m.put(key, value, version+1)
			state[key] = value
		}
		versions = append(versions, state)
	}
	return m, versions
}

// checkOrder compares the order of a table's keys, from any place, in both directions and
// on every level.
func checkOrder(t *testing.T, rng *rand.Rand, m *memtable, keys []string) {
	t.Helper()
	if m.count != len(keys) {
		t.Errorf("count %d, want %d", m.count, len(keys))
	}
	for level := range memLevels {
		last := ""
		for e := m.next(m.head, level); e != 0; e = m.next(e, level) {
			if key := string(m.key(e)); key <= last {
				t.Fatalf("level %d: %q comes after %q", level, key, last)
			} else {
				last = key
			}
		}
	}
	at := func(i int) string {
		if i < 0 || i >= len(keys) {
			return ""
		}
		return keys[i]
	}
	name := func(e uint32) string {
		if e == 0 {
			return ""
		}
		return string(m.key(e))
	}
	for range 2000 {
		bound := fmt.Sprint(100 + rng.IntN(1100))[:rng.IntN(4)]
		i, _ := slices.BinarySearch(keys, bound)
		if got := name(m.first([]byte(bound))); got != at(i) {
			t.Fatalf("the first from %q on is %q, want %q", bound, got, at(i))
		}
		if bound == "" {
			i = len(keys)
		}
		e := m.lastBefore([]byte(bound))
		if got := name(e); got != at(i-1) {
			t.Fatalf("the last before %q is %q, want %q", bound, got, at(i-1))
		}
		if e != 0 {
			if got := name(m.prev(e)); got != at(i-2) {
				t.Fatalf("before it comes %q, want %q", got, at(i-2))
			}
		}
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
				if reader == 0 {
					for e := m.first(nil); e != 0; e = m.next(e, 0) {
						visit(e)
					}
				} else {
					for e := m.lastBefore(nil); e != 0; e = m.prev(e) {
						visit(e)
					}
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
		for i := range perVersion {
			m.put(fmt.Sprintf("%c%d %d %d", 'a'+rng.IntN(3), rng.Uint32(), version, i), value, version)
		}
		m.put("the same", value, version)
		complete.Store(version)
	}
	wg.Wait()
}

func BenchmarkMemtablePut(b *testing.B) {
	value := []byte(strings.Repeat("v", 100))
	for _, order := range []string{"random", "ascending", "batches"} {
		b.Run(order, func(b *testing.B) {
			keys := make([]string, 0, 200_000)
			for n := range uint64(cap(keys)) {
				if order == "random" {
					n = rand.Uint64()
				}
				keys = append(keys, string(binary.BigEndian.AppendUint64([]byte("c1234"), n)))
			}
			if order == "batches" {
				keys = batchKeys(1000)
			}
			var m *memtable
			b.ResetTimer()
			for i := range b.N {
				if i%len(keys) == 0 {
					m = newMemtable()
				}
				m.put(keys[i%len(keys)], value, 1)
			}
		})
	}
}

func BenchmarkMemtableGet(b *testing.B) {
	keys := batchKeys(1000)
	m := newMemtable()
	for _, key := range keys {
		m.put(key, []byte("value"), 1)
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	b.Run("get", func(b *testing.B) {
		for i := range b.N {
			m.get([]byte(keys[i%len(keys)]), 1)
		}
	})
	b.Run("first", func(b *testing.B) {
		for i := range b.N {
			m.first([]byte(keys[i%len(keys)]))
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
