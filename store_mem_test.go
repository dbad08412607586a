package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
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

// TestOverlayCleared: an overlay that is used again shows nothing of what it wrote before, and
// what its base took over stays.
func TestOverlayCleared(t *testing.T) {
	t.Parallel()
	base := newOverlay(memTx{})
	o := newOverlay(base)
	list := func(tx Tx) (all string) {
		for e, err := range tx.Scan([]byte("a"), nil, false) {
			if err != nil {
				t.Fatal(err)
			}
			all += string(e.Key) + string(e.Value) + " "
		}
		return all
	}
	for _, step := range []struct {
		key, value string
		keep       bool
		want       string
	}{{"b", "1", true, "b1 "}, {"c", "2", false, "b1 "}, {"b", "3", false, "b1 "}, {"a", "4", true, "a4 b1 "}, {"b", "5", true, "a4 b5 "}} {
		o.clear()
		before := list(base)
		if err := o.Put([]byte(step.key), []byte(step.value)); err != nil {
			t.Fatal(err)
		}
		if got := list(o); !strings.Contains(got, step.key+step.value) || len(got) > len(before)+3 {
			t.Errorf("%+v: %s on %s", step, got, before)
		}
		if step.keep {
			if err := o.flush(base); err != nil {
				t.Fatal(err)
			}
		}
		if got := list(base); got != step.want {
			t.Errorf("%+v: the base has %s", step, got)
		}
	}
}
