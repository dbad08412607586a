package orderedtest

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A Store runs functions on transactions.
type Store[T Tx] interface {
	View(ctx context.Context, fn func(T) error) error
	Update(ctx context.Context, fn func(T) error) error
}

// MustPut commits keys and values, given in turn.
func MustPut[T Tx](t testing.TB, s Store[T], keysAndValues ...string) {
	t.Helper()
	err := s.Update(t.Context(), func(tx T) error {
		for kv := range slices.Chunk(keysAndValues, 2) {
			if err := tx.Put([]byte(kv[0]), []byte(kv[1])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Contents returns all that tx sees.
func Contents(t testing.TB, tx Tx) map[string]string {
	t.Helper()
	all := map[string]string{}
	for e, err := range tx.Scan(nil, nil, false) {
		if err != nil {
			t.Error(err)
			break
		}
		all[string(e.Key)] = string(e.Value)
	}
	return all
}

// Stored returns all that s holds.
func Stored[T Tx](t testing.TB, s Store[T]) (all map[string]string) {
	t.Helper()
	err := s.View(t.Context(), func(tx T) error {
		all = Contents(t, tx)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// CheckContents compares all that s holds.
func CheckContents[T Tx](t testing.TB, s Store[T], want map[string]string) {
	t.Helper()
	if got := Stored(t, s); !maps.Equal(got, want) {
		t.Errorf("the store's contents: (-want +got)\n%s", cmp.Diff(want, got))
	}
}
