package disk

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// TestLongView begins long Views while a store is written to. Each sees all that was
// committed before it and holds no memtable, though little of that was in the file.
func TestLongView(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]Options{
		"few checkpoints":  {NoSync: true},
		"many checkpoints": {NoSync: true, MemSize: 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			s := testStore(t, filepath.Join(t.TempDir(), "store"), opts)
			var writers, readers sync.WaitGroup
			stop := make(chan struct{})
			for w := range 4 {
				readers.Go(func() {
					for n := range smaller(3, 1) {
						key := strconv.Itoa(w)
						mustPut(t, s, key, strconv.Itoa(n))
						lookInFile(t, s, key, strconv.Itoa(n))
					}
				})
				writers.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						default:
							i := strconv.Itoa(n)
							mustPut(t, s, "a"+strconv.Itoa(w), i, "w"+strconv.Itoa(w)+strconv.Itoa(n%300), "some value", "z"+strconv.Itoa(w), i)
						}
					}
				})
			}
			readers.Wait()
			close(stop)
			writers.Wait()
		})
	}
}

// lookInFile looks at the state that a View that lasts sees. It has a value under key, and
// both parts of each batch: a checkpoint brings one into the file first and the other last.
func lookInFile(t *testing.T, s *store, key, want string) {
	t.Helper()
	state, err := s.acquireInFile(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	defer state.release()
	tx := &Snapshot{fileState: state}
	value, _, err := tx.Get([]byte(key))
	if err != nil || string(value) != want || len(state.layers) > 0 {
		t.Errorf("key %s is %q, want %s, with %d memtables: %v", key, value, want, len(state.layers), err)
	}
	for w := range 4 {
		first, _, err := tx.Get([]byte("a" + strconv.Itoa(w)))
		last, _, lastErr := tx.Get([]byte("z" + strconv.Itoa(w)))
		if err := errors.Join(err, lastErr); err != nil || string(first) != string(last) {
			t.Errorf("of one batch the first key is %q, the last %q: %v", first, last, err)
		}
	}
}

// TestLongViewAnyway: a long View begins even if the file cannot be written to, as on a
// full disk.
func TestLongViewAnyway(t *testing.T) {
	t.Parallel()
	s := testStore(t, filepath.Join(t.TempDir(), "store"), Options{NoSync: true, MemSize: 64 << 10, mapRule: mapRule{first: 1 << 20, most: 1 << 20}})
	if err := fillStore(t, s, "a", 4<<20); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	err := s.ViewLong(t.Context(), func(tx Tx) error {
		_, ok, err := tx.Get([]byte("a 0 0"))
		if !ok {
			err = errors.Join(err, errors.New("nothing is there"))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.ViewLong(ctx, func(Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context has ended: %v", err)
	}
}
