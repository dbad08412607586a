package ngram

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestJoin looks for parts of texts, and compares what is found with a scan. Some grams are in so
// many texts that their sets are bitmaps.
func TestJoin(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	texts, list := make([]string, 3000), []At(nil)
	for i := range texts {
		for range 1 + rnd.IntN(3) {
			texts[i] += []string{"ana", "ñandú", "na", "x", "banana"}[rnd.IntN(5)]
		}
		list = Append(list, uint64(Block+i), texts[i], 7, 5)
	}
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, Compare)
	sorted = slices.Compact(sorted)
	values, m := map[string][]byte{}, Merger{}
	for g, added := range ByGram(list) {
		var want []Occurrence
		for ; len(sorted) > 0 && sorted[0].Gram == g; sorted = sorted[1:] {
			want = append(want, sorted[0].At)
		}
		value, err := m.Merge(nil, added)
		if err != nil {
			t.Fatal(err)
		}
		half := slices.Clone(value)
		for i, at := range want { // half of them are taken out, and put back
			if i%2 == 0 && len(want) < 200 {
				value, err = m.Remove(half, at)
				half = slices.Clone(value)
			}
		}
		again, mergeErr := m.Merge(half, want)
		if got, decodeErr := Decode(nil, again); errors.Join(err, mergeErr, decodeErr) != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %d occurrences, want %d (%v)", g, len(got), len(want), errors.Join(err, mergeErr, decodeErr))
		}
		values[g.String()] = slices.Clone(again)
	}
	if len(sorted) > 0 {
		t.Errorf("%d grams are not yielded", len(sorted))
	}
	for _, text := range []string{"ana", "anana", "bananabanana", "naxna", "dúx", "ñandú", "xxx", "nothing", "andúñan", "\x01an"} {
		for _, first := range []int{0, 7, 9} {
			found := find(t, values, text, first)
			for i, of := range texts {
				runes := []rune(of)
				want := strings.Contains(string(runes[min(len(runes), max(0, first-7)):]), text)
				if got := found[i/64]&(1<<(i%64)) != 0; got != want {
					t.Errorf("%q in %q from %d: %v", text, of, first, got)
				}
			}
		}
	}
	var single Found
	if err := single.AddAll(values["x"], 5); err != nil || single.Count() == 0 {
		t.Error(err)
	}
	ana := find(t, values, "ana", 0)
	if ana.Intersect(&single); ana.Count() == 0 || ana.Count() >= single.Count() {
		t.Errorf("%d have both, %d have x", ana.Count(), single.Count())
	}
	if err := single.AddAll(values["ana"], 1000); err != nil || single.Count() > 3000 {
		t.Error(err)
	}
}

func find(t *testing.T, values map[string][]byte, text string, first int) (found Found) {
	t.Helper()
	var j Joiner
	for range 2 { // it may be used again
		j.Begin(first)
		for _, p := range Cover(text) {
			if left, err := j.Join(values[p.Gram], p.Offset); err != nil {
				t.Fatal(err)
			} else if !left {
				return found
			}
		}
	}
	j.AddTo(&found)
	return found
}

// TestDamaged cuts postings short.
func TestDamaged(t *testing.T) {
	whole := Encode(nil, []Occurrence{1, 2, 1 << 16})
	for n := range len(whole) {
		if n == 0 || n == 8 {
			continue // whole sets
		}
		var m Merger
		var j Joiner
		_, merge := m.Merge(whole[:n], nil)
		_, remove := m.Remove(whole[:n], 1)
		_, join := j.Join(whole[:n], 0)
		for _, err := range []error{merge, remove, join, new(Found).AddAll(whole[:n], 0)} {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
	}
}

// TestParse reads grams as String writes them, and nothing else.
func TestParse(t *testing.T) {
	for _, at := range Append(nil, 1, "Ñ日a", 0, 0) {
		if g, ok := Parse([]byte(at.Gram.String())); !ok || g != at.Gram || g.IsSingle() != (len([]rune(g.String())) == 1) {
			t.Errorf("%q: %q", at.Gram, g)
		}
	}
	for _, text := range []string{"", "abcd", "a\x00", "\xff"} {
		if g, ok := Parse([]byte(text)); ok {
			t.Errorf("%q is read as %q", text, g)
		}
	}
	if got := fmt.Sprint(Cover("ab"), Cover("abcde")); got != "[] [{abc 0} {cde 2}]" {
		t.Error(got)
	}
}
