package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCompact: the new file has the entries of the old one and nothing else, and is
// smaller.
func TestCompact(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		reopen bool // with a journal that a kill left
	}{{"open", false}, {"killed", true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "store")
			opts := Options{MemSize: 20_000, NoSync: true, Dense: "s"}
			s := testStore(t, path, opts)
			want := fillWithSecrets(t, s)
			if test.reopen {
				if err := s.Leave(); err != nil {
					t.Fatal(err)
				}
				s = testStore(t, path, opts)
			}
			if err := os.Chmod(path, 0o640); err != nil {
				t.Fatal(err)
			}
			done, err := s.Compact(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil || done.After != info.Size() || done.After >= done.Before || done.Entries != want || info.Mode().Perm() != 0o640 {
				t.Errorf("%+v of %d entries; the file: %v, %v", done, want, info, err)
			}
			if left := listDir(t, path); left != "store" {
				t.Errorf("the directory has %q", left)
			}
			b := readFile(t, path)
			if bytes.Contains(b, []byte("Zaqueo")) || !bytes.Contains(b, []byte("here")) {
				t.Error("the file holds what was deleted, or not what was kept")
			}
			checkOneHeader(t, path)
			if err := s.Close(); !errors.Is(err, ErrClosed) {
				t.Errorf("closed again: %v", err)
			}
			mustPut(t, testStore(t, path, opts), "z", "goes on")
		})
	}
}

// fillWithSecrets writes a lot, and deletes what has Zaqueo in it. It returns how many
// entries are left.
func fillWithSecrets(t *testing.T, s *store) int {
	t.Helper()
	for i := range 2000 {
		mustPut(t, s, fmt.Sprintf("a-Zaqueo-%d", i), "Zaqueo", fmt.Sprintf("stays-%d", i%500), strings.Repeat("here", i%200))
	}
	for i := range 2000 {
		if err := s.Update(t.Context(), func(tx Tx) error { return tx.Delete(fmt.Appendf(nil, "a-Zaqueo-%d", i)) }); err != nil {
			t.Fatal(err)
		}
	}
	return 500
}

// TestCompactKept: a file that is packed more densely than a new one would be stays, at its
// length, without what was deleted.
func TestCompactKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	opts := Options{NoSync: true, Dense: "ab"}
	s := testStore(t, path, opts)
	put := func(table string, n int, value string) {
		t.Helper()
		err := s.Update(t.Context(), func(tx Tx) error {
			for i := range n {
				if err := tx.Put(fmt.Appendf(nil, "%s-%06d", table, i), []byte(value)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("a", 30_000, strings.Repeat("here", 100))
	put("b", 500, strings.Repeat("Zaqueo", 60))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = testStore(t, path, opts)
	err := s.Update(t.Context(), func(tx Tx) error {
		for i := range 500 {
			if err := tx.Delete(fmt.Appendf(nil, "b-%06d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(readFile(t, path), []byte("Zaqueo")) {
		t.Fatal("the file holds nothing that was deleted, so that this test shows nothing")
	}
	opts.Dense = ""
	s = testStore(t, path, opts)
	done, err := s.Compact(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || !done.Kept || done.After != done.Before || done.After != info.Size() || done.Entries != 30_000 {
		t.Errorf("%+v; the file: %v, %v", done, info, err)
	}
	if left := listDir(t, path); left != "store" {
		t.Errorf("the directory has %q", left)
	}
	if bytes.Contains(readFile(t, path), []byte("Zaqueo")) {
		t.Error("the file holds what was deleted")
	}
	mustPut(t, testStore(t, path, opts), "z", "goes on")
}

// TestCompactFails: a Compact that fails leaves the file as it was, and nothing beside it
// after the next one.
func TestCompactFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s := testStore(t, path, Options{NoSync: true})
	mustPut(t, s, "a", "1", "b", "2")
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Compact(ended); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("ended: %v", err)
	}
	writeFile(t, path+compactName+"123", []byte("of a kill"))
	writeFile(t, path+compactName+"before", []byte("the operator's"))
	s = testStore(t, path, Options{NoSync: true})
	checkContents(t, s, map[string]string{"a": "1", "b": "2"})
	if done, err := s.Compact(t.Context()); err != nil || done.Entries != 2 {
		t.Errorf("%+v, %v", done, err)
	}
	if left := listDir(t, path); left != "store store.compact-before" {
		t.Errorf("the directory has %q", left)
	}
}

// TestCompactEmpty: a store without entries.
func TestCompactEmpty(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s := testStore(t, path, Options{NoSync: true})
	if done, err := s.Compact(t.Context()); err != nil || done.Entries != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	mustPut(t, testStore(t, path, Options{NoSync: true}), "a", "1")
}

// TestOpenReplaced: whoever waits for the lock while the file is replaced does not get
// the old one.
func TestOpenReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s := testStore(t, path, Options{NoSync: true})
	mustPut(t, s, "a", "1")
	waits := make(chan error)
	go func() {
		again, err := openStore(path, Options{MustExist: true, NoSync: true, lockWait: forever})
		if err == nil {
			err = errors.Join(again.Update(t.Context(), func(tx Tx) error { return tx.Put([]byte("b"), []byte("2")) }), again.Close())
		}
		waits <- err
	}()
	time.Sleep(100 * time.Millisecond) // it mostly waits by then
	if _, err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "1"}
	if err := <-waits; err == nil {
		want["b"] = "2"
	} else if !errors.Is(err, ErrReplaced) {
		t.Error(err)
	}
	checkContents(t, testStore(t, path, Options{NoSync: true}), want)
}
