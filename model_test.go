package main

import (
	"slices"
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
