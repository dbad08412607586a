package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestLedgerBroken edits each movement of a shop in turn, in ways that leave all
// sums right. It checks that verify names the first movement that was changed.
func TestLedgerBroken(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newRichShop(t)
	all := s.entries()
	honest, err := verifyWith(s.engine.sizes, all, s.clock, nil)
	if err != nil || len(honest.Problems) > 0 {
		t.Fatal(err, honest.Problems)
	}
	edited := 0
	for i, e := range all {
		if e.Key[0] != 'm' {
			continue
		}
		edited++
		m, err := decodeRecord[movement](e.Value)
		if err != nil {
			t.Fatal(err)
		}
		m.Seq = uintIn(e.Key[5:])
		m.By.Actor += "!" // a second problem if a sale, redemption or hold keeps the actor too
		told := 1
		if m.Transaction != (id{}) || m.Redemption != (id{}) && m.Amount < 0 || m.Category == categoryHold && len(m.Uses) > 0 {
			told = 2
		}
		named := m.id().String()
		with := slices.Clone(all)
		with[i].Value = appendRecord(nil, m)
		if got := problems(t, s, with, nil); len(got) != told || !anyContains(got, named) {
			t.Errorf("movement %s was edited: %q", named, got)
		}

		// With its own hash recomputed, the next movement or the account gives it away.
		a, previous := chainAt(t, with, i, m)
		record := appendRecord(nil, m)
		m.Hash = hashMovement(previous, uint32In(e.Key[1:]), uintIn(e.Key[5:]), m.hashed(record))
		with[i].Value = appendRecord(nil, m)
		if got := problems(t, s, with, nil); len(got) != told || !anyContains(got, a) {
			t.Errorf("movement %s was edited and hashed: %q, want something of %s", named, got, a)
		}
		// So does the state from an earlier verification, even if all hashes are recomputed.
		if got := problems(t, s, with, honest.Ledgers); len(got) != told+1 || !strings.Contains(got[told], "no es la continuación") {
			t.Errorf("movement %s was edited and hashed, since the ledger was known: %q", named, got)
		}
	}
	if edited < 10 {
		t.Errorf("only %d movements", edited)
	}
}

func anyContains(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, part) })
}

// chainAt returns what verify names if the movement at all[i] was edited and its own
// hash recomputed: the next movement's id or, after the last one, the account. It
// also returns the hash of the movement before it.
func chainAt(t *testing.T, all memTx, i int, m *movement) (after string, before ledgerHash) {
	t.Helper()
	after = "cuenta " + m.Customer.String()
	for _, e := range all {
		if e.Key[0] != 'm' || !bytes.Equal(e.Key[:5], all[i].Key[:5]) {
			continue
		}
		other, err := decodeRecord[movement](e.Value)
		if err != nil {
			t.Fatal(err)
		}
		if other.Customer != m.Customer || other.Program != m.Program {
			continue
		}
		switch other.Link.N {
		case m.Link.N - 1:
			before = other.Hash
		case m.Link.N + 1:
			after = movementID(m.Customer, uintIn(e.Key[5:])).String()
		}
	}
	return after, before
}

func problems(t *testing.T, s *shop, all memTx, earlier []ledgerState) []string {
	t.Helper()
	report, err := verifyWith(s.engine.sizes, all, s.clock, earlier)
	if err != nil {
		t.Fatal(err)
	}
	return report.Problems
}

// TestLedgerSince checks that verify accepts a ledger that has grown since an earlier
// verification, and rejects a consistent one that was put back to an earlier state.
func TestLedgerSince(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.customer("ana")
	state := func() (memTx, []ledgerState) {
		all := s.entries()
		report, err := verifyWith(s.engine.sizes, all, s.clock, nil)
		s.ok(err)
		return all, report.Ledgers
	}
	empty, none := state()
	s.add(ana, "10", never)
	one, first := state()
	s.add(ana, "20", never)
	two, second := state()
	for _, c := range []struct {
		name  string
		now   memTx
		since []ledgerState
		want  string
	}{
		{"empty", empty, none, ""},
		{"one since none", one, none, ""},
		{"two since one", two, first, ""},
		{"two since both", two, slices.Concat(none, first, second), ""},
		{"one since two", one, second, "el libro tenía 2 movimientos y ahora tiene 1"},
		{"none since one", empty, first, "el libro tenía 1 movimientos y ahora tiene 0"},
		{"another", two, []ledgerState{{Organization: first[0].Organization, Movements: 1, Digest: second[0].Digest}}, "no es la continuación"},
		{"not of this organization", one, []ledgerState{{Organization: "other", Movements: 9, Digest: first[0].Digest}}, "other: la organización no está"},
	} {
		got := problems(t, s, c.now, c.since)
		if (len(got) == 0) != (c.want == "") || len(got) > 0 && !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

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
	shared := map[table]bool{tableMembershipsOf: true, tableIdentities: true, tableJoinCodes: true, tableJoinTurns: true, tableTicketCodes: true, tableTicketSigners: true}
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
