package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// TestBackupCompares: any difference in a copy is noticed.
func TestBackupCompares(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := testStore(t, filepath.Join(dir, "store"), Options{})
	mustPut(t, s, "a", "1", "b", "2", "c", "3")
	for name, damage := range map[string]func(*bolt.Bucket) error{
		"":        func(b *bolt.Bucket) error { return nil },
		"missing": func(b *bolt.Bucket) error { return b.Delete([]byte("b")) },
		"last":    func(b *bolt.Bucket) error { return b.Delete([]byte("c")) },
		"changed": func(b *bolt.Bucket) error { return b.Put([]byte("b"), seal([]byte("b"), []byte("1"))) },
		"flipped": func(b *bolt.Bucket) error { return b.Put([]byte("b"), []byte("12345")) },
		"more":    func(b *bolt.Bucket) error { return b.Put([]byte("d"), seal([]byte("d"), nil)) },
	} {
		made, err := s.Backup(t.Context(), filepath.Join(dir, "copy"+name))
		if err != nil {
			t.Fatal(err)
		}
		db, err := bolt.Open(made.File, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(func(tx *bolt.Tx) error {
			return errors.Join(damage(tx.Bucket([]byte(dataBucket))), journalState{}.put(tx))
		}); err != nil {
			t.Fatal(err)
		}
		state, err := s.acquire()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := compare(t.Context(), state, db); (err == nil) != (name == "") {
			t.Errorf("%s: %v", name, err)
		}
		state.release()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBackupReplaces: a backup replaces only what it may, and only when it is done.
func TestBackupReplaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	s := testStore(t, in("store"), Options{})
	mustPut(t, s, "a", "1")
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(in(name), []byte("something else"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("other")
	if _, err := s.Backup(t.Context(), in("used")); err != nil {
		t.Fatal(err)
	}
	write("used-journal1")
	if err := os.Symlink("store", in("link")); err != nil {
		t.Log(err) // not every system lets us
		write("link")
	}
	for _, name := range []string{"store", "link", ".", "other", "used", filepath.Join("no", "such")} {
		if _, err := s.Backup(t.Context(), in(name)); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}

	if _, err := s.Backup(t.Context(), in("copy")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("copy", in("latest")); err == nil {
		made, err := s.Backup(t.Context(), in("latest"))
		if link, linkErr := os.Readlink(in("latest")); err != nil || linkErr != nil || link != "copy" || filepath.Base(made.File) != "copy" {
			t.Errorf("a link: %v, %v, and it leads to %q (%v)", made, err, link, linkErr)
		}
		if err := os.Symlink("nothing", in("dangling")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Backup(t.Context(), in("dangling")); err == nil || !errors.Is(err, ErrDanglingLink) {
			t.Errorf("a link to nothing: %v", err)
		}
	}
	before, err := os.ReadFile(in("copy"))
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "b", "2")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Backup(stopped, in("copy")); !errors.Is(err, context.Canceled) {
		t.Errorf("one that is stopped: %v", err)
	}
	if after, err := os.ReadFile(in("copy")); err != nil || !slices.Equal(before, after) {
		t.Errorf("one that was stopped has changed what was there: %v", err)
	}
	if left, _ := filepath.Glob(in("*.new-*")); left != nil {
		t.Errorf("left behind: %q", left)
	}
}
