package disk

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCheckpointByAge: a memtable that is old is brought into the file, though it is nearly empty.
func TestCheckpointByAge(t *testing.T) {
	t.Parallel()
	s := testStore(t, filepath.Join(t.TempDir(), "store"), Options{NoSync: true, MemAge: time.Millisecond})
	mustPut(t, s, "a", "1")
	await(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.brought > 0
	})
}

// TestCheckpointEmpties: one step of a checkpoint deletes all that is on several pages.
func TestCheckpointEmpties(t *testing.T) {
	t.Parallel()
	s := testStore(t, filepath.Join(t.TempDir(), "store"), Options{NoSync: true})
	const entries = 100
	for i := range entries {
		mustPut(t, s, fmt.Sprint(i), strings.Repeat("v", 1000))
	}
	settle(s)
	err := s.Update(t.Context(), func(tx Tx) error {
		for i := range entries {
			if err := tx.Delete([]byte(fmt.Sprint(i))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	settle(s)
	checkContents(t, s, map[string]string{})
	mustPut(t, s, "k", "v")
	settle(s)
	checkContents(t, s, map[string]string{"k": "v"})
}
