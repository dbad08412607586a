package ordered

import (
	"errors"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestCheckKey(t *testing.T) {
	for size, want := range map[int]error{0: ErrSize, 1: nil, MaxKey: nil, MaxKey + 1: ErrSize} {
		if err := CheckKey(make([]byte, size)); err != want {
			t.Errorf("%d bytes: %v, want %v", size, err, want)
		}
	}
}

func TestInRange(t *testing.T) {
	for _, test := range []struct {
		key, lo, hi string
		want        bool
	}{
		{"b", "", "", true},
		{"b", "b", "c", true},
		{"b", "a", "b", false},
		{"b", "b\x00", "", false},
		{"\xff", "a", "", true},
		{"b", "c", "a", false},
	} {
		if got := InRange([]byte(test.key), []byte(test.lo), []byte(test.hi)); got != test.want {
			t.Errorf("%q in [%q, %q): %v", test.key, test.lo, test.hi, got)
		}
	}
}

func TestCloneRange(t *testing.T) {
	a, b := []byte("lo"), []byte("hi")
	lo, hi := CloneRange(a, b)
	a[0], b[0] = 'x', 'x'
	if _ = append(lo, 'x'); string(lo) != "lo" || string(hi) != "hi" {
		t.Errorf("copies %q and %q", lo, hi)
	}
	if lo, hi := CloneRange(nil, nil); len(lo)+len(hi) != 0 {
		t.Errorf("copies of nothing: %q and %q", lo, hi)
	}
}

// scanOf yields the entries of a map in key order or in reverse, and then err unless it
// is nil.
func scanOf(entries map[string]string, reverse bool, err error) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		keys := slices.Sorted(maps.Keys(entries))
		if reverse {
			slices.Reverse(keys)
		}
		for _, key := range keys {
			if !yield(Entry{[]byte(key), []byte(entries[key])}, nil) {
				return
			}
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// TestMergeScan lays random changes over random entries, and compares with a map.
func TestMergeScan(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		base, upper, want := map[string]string{}, map[string]*string{}, map[string]string{}
		for range rng.IntN(20) {
			base[string(rune('a'+rng.IntN(20)))] = "base"
		}
		maps.Copy(want, base)
		for range rng.IntN(20) {
			key := string(rune('a' + rng.IntN(20)))
			if upper[key] = nil; rng.IntN(2) == 0 {
				value := strings.Repeat("own", rng.IntN(2)) // also an empty one
				upper[key] = &value
			}
		}
		for key, value := range upper {
			if delete(want, key); value != nil {
				want[key] = *value
			}
		}
		reverse := rng.IntN(2) == 0
		keys, left := slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(upper))
		if reverse {
			slices.Reverse(keys)
			slices.Reverse(left)
		}
		next := func() (Entry, bool) {
			if len(left) == 0 {
				return Entry{}, false
			}
			e := Entry{Key: []byte(left[0])}
			if value := upper[left[0]]; value != nil {
				e.Value = []byte(*value)
			}
			left = left[1:]
			return e, true
		}
		var got []string
		limit := rng.IntN(25)
		MergeScan(next, scanOf(base, reverse, nil), reverse, func(e Entry, err error) bool {
			if err != nil || string(e.Value) != want[string(e.Key)] {
				t.Errorf("seed %d: %q is %q, %v; want %q", seed, e.Key, e.Value, err, want[string(e.Key)])
			}
			got = append(got, string(e.Key))
			return len(got) < limit
		})
		if keys = keys[:min(max(limit, 1), len(keys))]; !slices.Equal(got, keys) {
			t.Errorf("seed %d, reverse %v: %q, want %q", seed, reverse, got, keys)
		}
	}
}

// TestMergeScanError: an error of the base ends the scan, whatever lies above it.
func TestMergeScanError(t *testing.T) {
	broken := errors.New("broken")
	left := []string{"a", "z"}
	next := func() (Entry, bool) {
		if len(left) == 0 {
			return Entry{}, false
		}
		e := Entry{[]byte(left[0]), []byte("own")}
		left = left[1:]
		return e, true
	}
	var got []string
	MergeScan(next, scanOf(map[string]string{"b": "base"}, false, broken), false, func(e Entry, err error) bool {
		got = append(got, string(e.Key))
		if err != nil {
			got = append(got, err.Error())
		}
		return true
	})
	if want := []string{"a", "b", "", "broken"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMergeSorted(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var lists [2][]string
		for i := range lists {
			for range rng.IntN(10) {
				lists[i] = append(lists[i], string(rune('a'+rng.IntN(26))))
			}
			slices.Sort(lists[i])
		}
		a, b := slices.Clone(lists[0]), slices.Clone(lists[1])
		got, want := MergeSorted(a, b), slices.Sorted(slices.Values(slices.Concat(a, b)))
		if !slices.Equal(got, want) || !slices.Equal(a, lists[0]) || !slices.Equal(b, lists[1]) {
			t.Errorf("%q and %q: %q", lists[0], lists[1], got)
		}
	}
}
