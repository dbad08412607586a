package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTables: tables of one letter are alike where they are told by it alone.
func TestTables(t *testing.T) {
	for at, declared := range tables {
		for _, other := range tables[at+1:] {
			if declared.name == other.name {
				t.Errorf("two tables have the name %q", declared.name)
			}
			if differ := declared.traits ^ other.traits; declared.shape[0] == other.shape[0] && differ&(dense|setting) != 0 {
				t.Errorf("%q and %q: one is dense or of settings", declared.shape, other.shape)
			}
		}
		if words := tableWords[at]; words == "" || slices.Contains(tableWords[at+1:], words) {
			t.Errorf("%q has words %q, which are none or another's", declared.shape, words)
		}
	}
}

// TestUnreadable: an error names the table and the key of a record that cannot be
// read, without text that clients sent.
func TestUnreadable(t *testing.T) {
	for _, test := range []struct {
		key         key
		want, words string // after what they all say
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
		want := "a.db: archivo dañado: un registro no se puede leer" + test.words + ": restaura una copia de seguridad"
		if got := inWords(err); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestUnreadableRecords: verify names the record.
func TestUnreadableRecords(t *testing.T) {
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
