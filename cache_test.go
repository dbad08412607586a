package main

import (
	"errors"
	"strings"
	"testing"
)

// TestConfigRolledBack reads a configuration in the transaction that makes it
// and then fails: nobody may see it afterwards, nor after the next change.
func TestConfigRolledBack(t *testing.T) {
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	named := func(name string) []byte {
		return []byte(strings.Replace(string(demoDocument), `"Café Luna"`, `"`+name+`"`, 1))
	}
	change := func(name string, outcome error) {
		t.Helper()
		now, ids := s.clock, s.engine.seed()
		err := s.engine.store.Update(t.Context(), func(tx Tx) error {
			if _, err := applyDocument(tx, named(name), newMint(now, ids), false); err != nil {
				return err
			}
			cfg, err := s.engine.config(tx, 1)
			if err == nil && cfg.Organization.Name != name {
				t.Errorf("within: got %q, want %q", cfg.Organization.Name, name)
			}
			return errors.Join(err, outcome)
		})
		if (err == nil) != (outcome == nil) {
			t.Fatal(err)
		}
	}
	want := func(name string) {
		t.Helper()
		cfg, err := view(t.Context(), s.engine.store, func(tx Tx) (*config, error) { return s.engine.config(tx, 1) })
		if err != nil || cfg.Organization.Name != name {
			t.Fatalf("got %v, %v; want %q", cfg, err, name)
		}
	}
	change("Uno", nil)
	want("Uno")
	change("Dos", errUnavailable)
	want("Uno")
	change("Tres", nil)
	want("Tres")
}
