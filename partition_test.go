package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// madeKey returns a key of a table with random parts, and that of its organization.
func madeKey(t table, org uint32, r *rand.Rand) key {
	var k key
	for i, p := range keyParts[t] {
		switch {
		case p.name == "":
			k = k.byte(p.fixed)
		case p.name == "org":
			k = k.u32(org)
		case p.width > 0:
			for range p.width {
				k = k.byte(byte(r.Uint32()))
			}
		default:
			k = k.text(strings.Repeat(string(rune('a'+r.IntN(3))), 1+r.IntN(3)))
			if i+1 < len(keyParts[t]) {
				continue // a zero byte follows
			}
		}
	}
	return k
}

// TestPartition: keys of an organization are in its part, but for those that are looked for in all.
// Whatever range is said to be of one part has keys of that part alone.
func TestPartition(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var keys []key
	shared := map[table]bool{tableMembershipsOf: true, tableIdentities: true}
	for of := range manyTables {
		for range 40 {
			org := uint32(1 + r.IntN(300))
			k := madeKey(of, org, r)
			if !of.has(k) {
				t.Fatalf("%q is none of %s", k, tables[of].name)
			}
			want := int32(0)
			if of.org() != 0 && !shared[of] {
				want = int32(org)
			}
			if got := (partition{}).PartOf(k); got != want && of != tableIdentities || of == tableIdentities && got >= 0 {
				t.Errorf("a key of %s is in part %d, want %d", tables[of].name, got, want)
			}
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return bytes.Compare(a, b) })
	one := 0
	for range 20_000 {
		i := r.IntN(len(keys))
		lo, hi := keys[i][:r.IntN(len(keys[i])+1)], key(nil)
		switch r.IntN(3) {
		case 0:
			hi = lo.after()
		case 1:
			hi = keys[min(i+r.IntN(20), len(keys)-1)]
		case 2:
			hi = slices.Clone(keys[i]).byte(0)
		}
		part, ok := partition{}.PartOfRange(lo, hi)
		if !ok {
			continue
		}
		one++
		for _, k := range keys {
			if bytes.Compare(lo, k) <= 0 && bytes.Compare(k, hi) < 0 && (partition{}).PartOf(k) != part {
				t.Fatalf("%q is in part %d, and [%q, %q) in %d", k, (partition{}).PartOf(k), lo, hi, part)
			}
		}
	}
	if one < 2_000 {
		t.Errorf("%d ranges of one part", one)
	}
	for _, k := range []key{orgKey('m', 7), orgKey('c', 7), tableConfigurations.fixed().u32(7), tableSearch.in(7)} {
		if part, ok := (partition{}).PartOfRange(k, k.after()); part != 7 || !ok {
			t.Errorf("what begins with %q is in part %d, %t", k, part, ok)
		}
	}
	identity := newKey('p').byte('e').text("ana@example.com").byte(0)
	if part, ok := (partition{}).PartOfRange(identity, identity.after()); part >= 0 || !ok {
		t.Errorf("the identities of a contact are in part %d, %t", part, ok)
	}
}
