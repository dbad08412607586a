package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMemStore: the store in memory keeps the promises of a Store, with pages that fill, split and
// become empty.
func TestMemStore(t *testing.T) {
	t.Parallel()
	testStore(t, func(*testing.T) Store { return newMemStore() })
	s, want := newMemStore(), map[string]string{}
	defer s.Close()
	random := rand.New(rand.NewPCG(24, 1))
	for round := range 40 {
		var writes []Entry
		for range 1 + random.IntN(400) {
			writes = append(writes, Entry{Key: key("k").u32(uint32(random.IntN(3000)))})
			if random.IntN(3) != 0 && round <= 35 {
				writes[len(writes)-1].Value = fmt.Appendf(nil, "%d", round)
			}
		}
		err := s.Update(t.Context(), func(tx Tx) (err error) {
			for _, w := range writes {
				if w.Value == nil {
					delete(want, string(w.Key))
					err = errors.Join(err, tx.Delete(w.Key))
				} else {
					want[string(w.Key)] = string(w.Value)
					err = errors.Join(err, tx.Put(w.Key, w.Value))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := key("k").u32(uint32(random.IntN(1500))), key("k").u32(uint32(1500+random.IntN(1500)))
		var all []string
		for _, k := range slices.Sorted(maps.Keys(want)) {
			if string(lo) <= k && k < string(hi) {
				all = append(all, k+"="+want[k])
			}
		}
		for _, reverse := range []bool{false, true} {
			var got []string
			err := s.View(t.Context(), func(tx Tx) error {
				for e, err := range tx.Scan(lo, hi, reverse) {
					if err != nil {
						return err
					}
					got = append(got, string(e.Key)+"="+string(e.Value))
				}
				v, ok, err := tx.Get(lo)
				if one, there := want[string(lo)]; ok != there || string(v) != one {
					t.Errorf("round %d: %x is %q, %t", round, lo, v, ok)
				}
				return err
			})
			if reverse {
				slices.Reverse(got)
			}
			if err != nil || !slices.Equal(got, all) {
				t.Fatalf("round %d: %v, %q\nwant %q", round, err, got, all)
			}
		}
	}
}

// entries are those of the last committed state.
func (s *memStore) entries() memTx { return slices.Concat(*s.state.Load()...) }
