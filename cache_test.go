package main

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestConfigRolledBack reads a configuration in the transaction that writes it
// and rolls back: nobody may see it afterwards, nor after the next change.
func TestConfigRolledBack(t *testing.T) {
	t.Parallel()
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	named := func(name string) []byte {
		return []byte(strings.Replace(string(demoDocument), `"Café Luna"`, `"`+name+`"`, 1))
	}
	change := func(name string, outcome error) {
		t.Helper()
		now, ids := s.clock, s.engine.seed()
		err := s.engine.store.Update(t.Context(), func(tx Tx) error {
			if _, err := applyDocument(tx, named(name), newMint(now, ids), creator{}, false); err != nil {
				return err
			}
			cfg, err := s.engine.config(s.engine.store.version(), tx, 1)
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
		cfg, err := read(t.Context(), s.engine, 1, s.clock, func(t *txn) (*config, error) { return t.cfg, nil })
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

// TestVersions shows which writes make a new version of the settings, and when.
func TestVersions(t *testing.T) {
	t.Parallel()
	s := watch(newMemStore())
	defer s.Close()
	last := s.version()
	update := func(reason string, changes bool, fn func(Tx) error) {
		t.Helper()
		s.Update(t.Context(), fn)
		v := s.version()
		if v == unsettled || (v > last) != changes {
			t.Errorf("%s: version %d after %d", reason, v, last)
		}
		last = v
	}
	put := func(k key) func(Tx) error { return func(tx Tx) error { return tx.Put(k, []byte("x")) } }
	update("a movement", false, put(newKey('m')))
	update("a key", true, put(newKey('a')))
	update("a key is taken away", true, func(tx Tx) error { return tx.Delete(newKey('a')) })
	update("a configuration", true, put(newKey('o').byte('x')))
	update("one that is taken away", true, func(tx Tx) error { return tx.Delete(newKey('o').byte('x')) })
	update("one that is taken back", true, func(tx Tx) error { return errors.Join(put(newKey('a'))(tx), errUnavailable) })
	update("a movement", false, func(tx Tx) error { return tx.Delete(newKey('m')) })
	update("under way", true, func(tx Tx) error {
		before := s.version()
		err := put(newKey('a'))(tx)
		if v := s.version(); before == unsettled || v != unsettled {
			t.Errorf("version %d, then %d", before, v)
		}
		return errors.Join(err, tx.Delete(newKey('a')))
	})
}

// TestConfigOfView changes the configuration while a View is under way. The View
// still sees the old one.
func TestConfigOfView(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	name := func() string { return ask(s, func(t *txn) (string, error) { return t.cfg.Organization.Name, nil }) }
	name() // fills the cache
	before := s.engine.store.version()
	err := s.engine.store.View(t.Context(), func(tx Tx) error {
		s.apply([]byte(strings.Replace(string(setup{}.document()), "Café Luna", "Café Sol", 1)))
		if got := name(); got != "Café Sol" { // fills the cache for the new version
			t.Errorf("a later View sees %s", got)
		}
		for _, v := range []version{before, unsettled} {
			cfg, err := s.engine.config(v, tx, s.org)
			if err != nil || cfg.Organization.Name != "Café Luna" {
				t.Errorf("the View sees %v, %v", cfg, err)
			}
		}
		return nil
	})
	s.ok(err)
	if got := name(); got != "Café Sol" {
		t.Errorf("now it is %s", got)
	}
}

// TestKeysAmongChanges reads a key all the time while it changes: no read sees a
// state older than the last one acknowledged before it.
func TestKeysAmongChanges(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	k, text := s.newKey(keyRequest{RateLimit: 1})
	var acknowledged atomic.Int64
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := acknowledged.Load()
				c, err := s.engine.authenticate(t.Context(), text, nil, s.clock)
				if err != nil || int64(c.key.RateLimit) < least {
					t.Errorf("got %v, %v after %d", c.key, err, least)
					return
				}
			}
		})
	}
	for i := range 500 {
		must(s, func(t *txn) (any, error) {
			changed := *k
			changed.RateLimit = 2 + i
			return nil, t.keys.save(keyHash(text), &changed)
		})
		acknowledged.Store(int64(2 + i))
	}
	close(stop)
	readers.Wait()
}
