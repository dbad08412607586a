package disk

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// TestForgetTaken rewrites the entries of a file again and again, and counts the pages
// whose taker bbolt knows: many while a View reads the earlier state, so that pages can
// be taken again meanwhile; few while no View does.
func TestForgetTaken(t *testing.T) {
	t.Parallel()
	s := testStore(t, filepath.Join(t.TempDir(), "store"), Options{NoSync: true, MemSize: 200_000})
	rng := rand.New(rand.NewPCG(1, 1))
	// taken writes little in the last transaction, since bbolt always knows its pages.
	taken := func() (n int) {
		settle(s)
		mustPut(t, s, "0", "")
		settle(s)
		err := s.writeFile(func(tx *bolt.Tx) error {
			taken, ok := takenPages(s.db)
			if ok {
				n = taken.Len()
			} else {
				t.Error("this bbolt has no such map, or elsewhere")
			}
			return s.kept.put(tx)
		})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	overwrite(t, s, rng)

	began, end, read := make(chan bool), make(chan bool), make(chan error)
	go func() {
		err := s.View(t.Context(), func(tx Tx) error {
			first := contents(t, tx)
			began <- true
			<-end
			if !maps.Equal(contents(t, tx), first) {
				t.Error("a view finds something else than before")
			}
			return nil
		})
		close(began)
		read <- err
	}()
	if <-began {
		overwrite(t, s, rng)
		if n := taken(); n < 50 {
			t.Errorf("bbolt knows who took %d pages, which cannot be taken again before a view ends", n)
		}
		close(end)
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
	overwrite(t, s, rng)
	if n := taken(); n > 20 {
		t.Errorf("bbolt knows who took %d pages", n)
	}
}

// overwrite writes keys of a file anew, at random, in several checkpoints.
func overwrite(t *testing.T, s *store, rng *rand.Rand) {
	t.Helper()
	const updates, each, keys, size = 120, 50, 4000, 200
	for i := range updates {
		if i%10 == 9 {
			settle(s)
		}
		err := s.Update(t.Context(), func(tx Tx) error {
			for range each {
				value := strings.Repeat(strconv.Itoa(rng.IntN(10)), size)
				if err := tx.Put([]byte(strconv.Itoa(rng.IntN(keys))), []byte(value)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
			return
		}
	}
}
