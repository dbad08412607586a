package main

import (
	"strings"
	"testing"
	"time"
)

// TestWrittenBy: who refuses a later schema says which sello wrote the file, if the file
// tells it.
func TestWrittenBy(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.4.0":  ": lo escribió sello v1.4.0",
		noVersion: ": lo escribió un sello más nuevo",
		"":        ": lo escribió un sello más nuevo",
	} {
		mem := newMemStore()
		defer mem.Close()
		e := newEngine(mem, time.Now, cryptoSeed)
		if err := e.open(t.Context()); err != nil {
			t.Fatal(err)
		}
		writes := 0
		counted := newEngine(guardedStore{mem, func() error { writes++; return nil }}, time.Now, cryptoSeed)
		for range 2 {
			if err := counted.sign(t.Context(), version); err != nil {
				t.Fatal(err)
			}
		}
		if signed := version == "v1.4.0"; signed != (writes == 1) {
			t.Errorf("%q: %d writes", version, writes)
		}
		report, err := viewStore(t.Context(), mem, func(tx Tx) (*verification, error) { return verify(tx, 0, nil) })
		if err != nil || len(report.Problems) > 0 {
			t.Errorf("%+v, %v", report, err)
		}
		if err := mem.Update(t.Context(), func(tx Tx) error { return putUint(tx, newKey('v'), schemaVersion+1) }); err != nil {
			t.Fatal(err)
		}
		before := stored(t, mem)
		if err := newEngine(mem, time.Now, cryptoSeed).open(t.Context()); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", version, err)
		}
		same(t, "the store", stored(t, mem), before)
	}
	full := newEngine(guardedStore{newMemStore(), func() error { return errUnavailable }}, time.Now, cryptoSeed)
	if err := full.sign(t.Context(), "v1.4.0"); err != nil {
		t.Errorf("a full disk: %v", err)
	}
}
