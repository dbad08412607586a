package disk

import (
	"path/filepath"
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
