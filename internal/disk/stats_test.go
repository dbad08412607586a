package disk

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestStats follows the figures from the first write over a checkpoint and a crash to the
// close.
func TestStats(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	var took []time.Duration
	s := testStore(t, path, Options{NoSync: true, MemAge: time.Hour, Committed: func(d time.Duration) { took = append(took, d) }})
	write := func(n int) {
		t.Helper()
		for i := range n {
			if err := s.Update(context.Background(), func(tx Tx) error { return tx.Put([]byte("k"+strconv.Itoa(i)), make([]byte, 100)) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := s.Stats(); got.FileBytes == 0 || got.JournalFileBytes != 0 || got.JournalBytes != 0 || got.MemtableBytes != 0 || !got.Oldest.IsZero() || got.Checkpoints != 0 {
		t.Errorf("new: %+v", got)
	}
	began := time.Now()
	write(10)
	first := s.Stats()
	if first.JournalBytes < 1000 || first.JournalFileBytes < first.JournalBytes || first.MemtableBytes < 1000 || first.Oldest.Before(began) {
		t.Errorf("after ten writes: %+v", first)
	}
	if len(took) != 10 || took[0] <= 0 {
		t.Errorf("commits took %v", took)
	}
	write(10)
	if got := s.Stats(); got.JournalBytes <= first.JournalBytes || got.MemtableBytes <= first.MemtableBytes || got.Oldest != first.Oldest {
		t.Errorf("after ten more: %+v, before %+v", got, first)
	}
	if err := s.ViewLong(context.Background(), func(Tx) error { return nil }); err != nil { // waits for a checkpoint
		t.Fatal(err)
	}
	if got := s.Stats(); got.JournalBytes != 0 || got.MemtableBytes != 0 || !got.Oldest.IsZero() || got.Checkpoints != 1 {
		t.Errorf("after a checkpoint: %+v", got)
	}
	write(5)
	kept := s.Stats()
	if err := s.Leave(); err != nil {
		t.Fatal(err)
	}
	if got := s.Stats(); got != (Stats{}) {
		t.Errorf("closed: %+v", got)
	}
	s = testStore(t, path, Options{NoSync: true, MemAge: time.Hour})
	if got := s.Stats(); got.JournalBytes != kept.JournalBytes || got.MemtableBytes == 0 || got.Oldest.IsZero() {
		t.Errorf("replayed: %+v, left as %+v", got, kept)
	}
}

// TestStatsLocked reads the figures while a commit hangs with all its locks.
func TestStatsLocked(t *testing.T) {
	t.Parallel()
	s := &File{path: filepath.Join(t.TempDir(), "none")}
	s.state.Store(&fileState{stats: Stats{Checkpoints: 3}})
	s.writing.Lock()
	s.mu.Lock()
	if got := s.Stats(); got.Checkpoints != 3 {
		t.Errorf("%+v", got)
	}
}
