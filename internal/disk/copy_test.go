package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
		"changed": func(b *bolt.Bucket) error { return b.Put([]byte("b"), Seal([]byte("b"), []byte("1"))) },
		"flipped": func(b *bolt.Bucket) error { return b.Put([]byte("b"), []byte("12345")) },
		"more":    func(b *bolt.Bucket) error { return b.Put([]byte("d"), Seal([]byte("d"), nil)) },
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
		if _, err := compare(t.Context(), (&Snapshot{fileState: state}).Scan([]byte{0}, nil, false), db); (err == nil) != (name == "") {
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

// TestBackupForgets: a copy holds no byte of what was deleted or replaced before, neither
// in a page that is no longer used nor behind the entries of one that is.
func TestBackupForgets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := testStore(t, filepath.Join(dir, "store"), Options{MemSize: 20_000, MemAge: time.Millisecond, NoSync: true})
	const secret = "Zaqueo"
	name := func(round, i int) string { return fmt.Sprintf("%c%s-%d-%d", 'a'+byte(i%26), secret, round, i) }
	for round := range 6 {
		for i := range 400 {
			mustPut(t, s, name(round, i), strings.Repeat(secret, i%300), fmt.Sprintf("stays-%d", i), strings.Repeat("here", (i+7*round)%200))
		}
		if round == 3 {
			bringAllIn(t, s) // some of it lies in the file, and some in memtables
		}
	}
	for round := range 6 {
		err := s.Update(t.Context(), func(tx Tx) (err error) {
			for i := range 400 {
				err = errors.Join(err, tx.Delete([]byte(name(round, i))))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, when := range []string{"in memtables", "in the file"} {
		made, err := s.Backup(t.Context(), filepath.Join(dir, "copy"))
		if err != nil {
			t.Fatal(err)
		}
		if b := readFile(t, made.File); bytes.Contains(b, []byte(secret)) || !bytes.Contains(b, []byte("here")) {
			t.Errorf("%s: the copy holds what was deleted, or not what was kept", when)
		}
		if !bytes.Contains(readFile(t, s.Path()), []byte(secret)) {
			t.Errorf("%s: the file itself holds nothing that was deleted: this test shows nothing", when)
		}
		checkOneHeader(t, made.File)
		bringAllIn(t, s)
	}
}

// bringAllIn waits until everything is in the store's file.
func bringAllIn(t *testing.T, s *store) {
	t.Helper()
	state, err := s.acquireInFile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state.release()
}

// checkOneHeader checks that a copy is whole by either of its headers alone.
func checkOneHeader(t *testing.T, path string) {
	t.Helper()
	whole := readFile(t, path)
	for page := range 2 {
		cut := bytes.Clone(whole)
		cut[page*pageSize+72] ^= 1 // its checksum
		name := path + fmt.Sprint("-without", page)
		writeFile(t, name, cut)
		s := testStore(t, name, Options{MustExist: true})
		err := s.File.View(t.Context(), func(state *Snapshot) error {
			_, err := state.Check(t.Context(), 1)
			return err
		})
		if err != nil {
			t.Errorf("without header %d: %v", page, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
