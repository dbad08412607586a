package main

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestTables checks that no two tables have the same name or Spanish words, and that
// tables of one letter agree on the traits that are looked up by letter alone.
func TestTables(t *testing.T) {
	t.Parallel()
	for at, declared := range tables {
		for _, other := range tables[at+1:] {
			if declared.name == other.name || declared.words == other.words {
				t.Errorf("%q and %q have one name", declared.shape, other.shape)
			}
			if differ := declared.traits ^ other.traits; declared.shape[0] == other.shape[0] && differ&(dense|setting) != 0 {
				t.Errorf("%q and %q: one is dense or of settings", declared.shape, other.shape)
			}
		}
		if compared := declared.traits & (byContent | byEntry | byCount); declared.words == "" || bits.OnesCount16(uint16(compared)) > 1 {
			t.Errorf("%q has no words, or is compared in two ways", declared.shape)
		}
	}
}

// TestUnreadable checks that the error for a record that cannot be read names its
// table and key, without text that clients sent.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		key         key
		want, words string // what follows the text common to all
	}{
		{orgKey('m', 1).u64(7), ": movement 6d000000010000000000000007", `, tabla "movimientos", clave 6d000000010000000000000007`},
		{identityKey(kindEmail, "ana@example.com").u32(1), ": identity 7065…", `, tabla "identidades", clave 7065…`},
		{orgKey('g', 2).u32(1).text("ana"), ": search index 670000000200000001…", `, tabla "índice de búsqueda", clave 670000000200000001…`},
		{orgKey('m', 1).u32(7), "", ""},
	} {
		err := fmt.Errorf("a.db: %w", unreadable(test.key))
		if want := "a.db: a stored record cannot be read" + test.want; err.Error() != want || !errors.Is(err, errRecord) {
			t.Errorf("%v, want %s", err, want)
		}
		want := "a.db: datos dañados: un registro no se puede leer" + test.words + ": restaura una copia de seguridad"
		if got := inWords(err); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestUnreadableRecords checks that verify names a record that cannot be read.
func TestUnreadableRecords(t *testing.T) {
	t.Parallel()
	s := newRichShop(t)
	all := s.entries()
	for i, e := range all {
		of, _ := tableOf(e.Key)
		if !slices.Contains([]table{tableProfiles, tableAccounts, tableMovements, tableSales, tableRedemptions, tableCounters}, of) {
			continue
		}
		damaged := slices.Clone(all)
		damaged[i].Value = []byte{recordVersion + 1}
		_, err := verifyWith(s.engine.sizes, damaged, s.clock, nil)
		if want := fmt.Sprintf("%s %x", tables[of].name, e.Key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is damaged: %v", want, err)
		}
	}
}

// TestChain appends to a chain and to a slice, and compares where they have each
// record. In a chain of n, finding one takes at most the square of log₂ n steps.
func TestChain(t *testing.T) {
	t.Parallel()
	var (
		c     chain
		seqs  []uint64 // record n is at seqs[n-1]
		links = map[uint64]link{}
		rnd   = rand.New(rand.NewPCG(1, 0))
		seq   uint64
	)
	if c.last() != 0 {
		t.Errorf("an empty chain ends at %d", c.last())
	}
	steps := 0
	linkAt := func(seq uint64) (link, error) {
		steps++
		l, ok := links[seq]
		if !ok {
			t.Fatalf("a link leads to %d, where there is no record", seq)
		}
		return l, nil
	}
	for n := uint64(1); n <= 5000; n++ {
		seq += 1 + rnd.Uint64N(9) // others' records lie between
		l := c.append(seq)
		seqs, links[seq] = append(seqs, seq), l
		switch {
		case c.N != n || l.N != n:
			t.Fatalf("record %d of %d has number %d", n, c.N, l.N)
		case c.last() != seq:
			t.Fatalf("the chain ends at %d, want %d", c.last(), seq)
		case n > 1 && l.Prev != seqs[n-2], n == 1 && l.Prev != 0:
			t.Fatalf("before record %d is %d", n, l.Prev)
		case n&(n-1) != 0 && l.Jump != seqs[n&(n-1)-1], n&(n-1) == 0 && l.Jump != 0:
			t.Fatalf("record %d jumps to %d", n, l.Jump)
		case len(c.Path) != bits.OnesCount64(n):
			t.Fatalf("a chain of %d remembers %d places", n, len(c.Path))
		}
		log := bits.Len64(n)
		targets := []uint64{1, n, n/2 + 1, 1 + rnd.Uint64N(n), 1 + rnd.Uint64N(n)}
		if n%1000 < 2 {
			for target := range n {
				targets = append(targets, target+1)
			}
		}
		for _, target := range targets {
			steps = 0
			got, err := c.seek(target, linkAt)
			if err != nil || got != seqs[target-1] {
				t.Fatalf("record %d of %d: found at %d (%v), want %d", target, n, got, err, seqs[target-1])
			}
			if steps > log*log {
				t.Fatalf("record %d of %d: %d steps, want at most %d", target, n, steps, log*log)
			}
		}
	}
	wantReadAgain(t, c, seq)
}

// wantReadAgain encodes a chain that ends at seq, decodes it, and appends to both.
func wantReadAgain(t *testing.T, c chain, seq uint64) {
	t.Helper()
	var again chain
	if err := decodeInto(appendRecord(nil, &c), &again); err != nil {
		t.Fatal(err)
	}
	same(t, "read again", again, c)
	if l := again.append(seq + 1); l != c.append(seq+1) {
		t.Error("a chain that was read again goes on differently")
	}
}

// TestPages shows which records a page of a list holds, counted from the
// oldest.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		page        page
		total       uint64
		first, last uint64
		ok          bool
	}{
		{page{1, 20}, 0, 0, 0, false},
		{page{1, 20}, 1, 1, 1, true},
		{page{1, 20}, 20, 20, 1, true},
		{page{1, 20}, 45, 45, 26, true},
		{page{2, 20}, 45, 25, 6, true},
		{page{3, 20}, 45, 5, 1, true},
		{page{4, 20}, 45, 0, 0, false},
		{page{45, 1}, 45, 1, 1, true},
		{page{46, 1}, 45, 0, 0, false},
		{page{1 << 40, 100}, 45, 0, 0, false},
		{page{1 << 62, 100}, 45, 0, 0, false}, // the product overflows
		{page{1<<63 - 1, 100}, 1 << 40, 0, 0, false},
	} {
		first, last, ok := test.page.span(test.total)
		if first != test.first || last != test.last || ok != test.ok {
			t.Errorf("page %+v of %d: %d to %d (%t), want %d to %d (%t)", test.page, test.total, first, last, ok, test.first, test.last, test.ok)
		}
	}
}
