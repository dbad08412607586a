package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// left makes a data file at path with one entry that only its journal has.
func left(t *testing.T, path, value string) {
	t.Helper()
	s, err := openStore(path, Options{NoSync: true, ShortMap: true})
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "a", value)
	if err := s.Leave(); err != nil {
		t.Fatal(err)
	}
}

// hasValue checks that the file at path, with its journals, opens and has the entry.
func hasValue(t *testing.T, path, value string) {
	t.Helper()
	s := testStore(t, path, Options{MustExist: true, NoSync: true})
	checkContents(t, s, map[string]string{"a": value})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// stage stages a file and brings its journals into the copy, as a caller does.
func stage(t *testing.T, from, path string) *Staged {
	t.Helper()
	staged, err := Stage(t.Context(), from, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { staged.Remove() })
	copied, err := openStore(staged.Path(), Options{MustExist: true, NoSync: true, ShortMap: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := copied.Close(); err != nil {
		t.Fatal(err)
	}
	return staged
}

// copyLinked copies a directory as it is at one moment. What was one file under two names
// is so in the copy.
func copyLinked(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	var infos []fs.FileInfo
	for i, e := range entries {
		info, err := os.Stat(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, info)
		done := false
		for j := range i {
			if os.SameFile(infos[j], info) {
				err, done = os.Link(filepath.Join(to, entries[j].Name()), filepath.Join(to, e.Name())), true
			}
		}
		if !done {
			writeFile(t, filepath.Join(to, e.Name()), readFile(t, filepath.Join(from, e.Name())))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestoreStopped: whatever step a kill ends a restore at, the name leads to the old file
// with what its journals hold, or to the new one. Both can then be written to, and what
// was kept is what was there before.
func TestRestoreStopped(t *testing.T) {
	t.Parallel()
	for _, sameFile := range []bool{false, true} { // whether the copy was once the file itself
		home := t.TempDir()
		path, from := filepath.Join(home, "store"), filepath.Join(t.TempDir(), "copy")
		left(t, path, "earlier")
		if sameFile {
			s := testStore(t, path, Options{NoSync: true})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			writeFile(t, from, readFile(t, path))
		} else {
			left(t, from, "earlier")
		}
		left(t, path, "old")
		staged := stage(t, from, path)
		moments := map[string]string{}
		staged.at = func(step string) {
			moments[step] = t.TempDir()
			copyLinked(t, home, moments[step])
		}
		kept, err := staged.Place(t.Context(), "now")
		if err != nil || filepath.Base(kept) != "store.before-restore-now" {
			t.Fatalf("kept as %s, %v", kept, err)
		}
		staged.Remove()
		if names := listDir(t, path); names != "store store.before-restore-now store.before-restore-now-journal1 store.before-restore-now-journal2" {
			t.Errorf("left: %s", names)
		}
		for step, want := range map[string]string{"checked": "old", "kept": "old", "placed": "earlier", "done": "earlier"} {
			dir := moments[step]
			hasValue(t, filepath.Join(dir, "store"), want)
			left(t, filepath.Join(dir, "store"), "goes on")
			if want == "earlier" {
				hasValue(t, filepath.Join(dir, "store.before-restore-now"), "old")
			}
			hasValue(t, filepath.Join(dir, "store"), "goes on")
			again := stage(t, from, filepath.Join(dir, "store"))
			if _, err := again.Place(t.Context(), "then"); err != nil {
				t.Errorf("again after %s: %v", step, err)
			}
			again.Remove()
			hasValue(t, filepath.Join(dir, "store"), "earlier")
			hasValue(t, filepath.Join(dir, "store.before-restore-then"), "goes on")
			if names := listDir(t, filepath.Join(dir, "store")); strings.Contains(names, stagedName) || want == "old" && strings.Contains(names, "-now") {
				t.Errorf("after %s and another restore: %s", step, names)
			}
		}
		hasValue(t, path, "earlier")
		hasValue(t, kept, "old")
	}
}

// TestRestoreRefused: what cannot be restored changes nothing.
func TestRestoreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, from := filepath.Join(dir, "store"), filepath.Join(dir, "copy")
	left(t, path, "old")
	left(t, from, "new")
	writeFile(t, filepath.Join(dir, "text"), []byte("text"))
	open := testStore(t, filepath.Join(dir, "open"), Options{NoSync: true})
	mustPut(t, open, "a", "1")
	before := listDir(t, path)
	for _, test := range []struct {
		from, to string
		want     error
	}{
		{"copy", "open", ErrLocked},
		{"open", "store", ErrLocked},
		{"store", "store", ErrOwnFile},
		{"none", "store", fs.ErrNotExist},
		{".", "store", ErrDirectory},
		{"copy", "none/store", ErrNoDirectory},
		{"copy", ".", ErrNotRegular},
	} {
		staged := &Staged{name: filepath.Join(dir, test.to), place: filepath.Join(dir, test.to), lockWait: time.Millisecond}
		if err := staged.stage(t.Context(), filepath.Join(dir, test.from)); !errors.Is(err, test.want) {
			t.Errorf("%s to %s: %v", test.from, test.to, err)
		}
		staged.Remove()
	}
	staged := stage(t, from, path)
	staged.Remove()
	if after := listDir(t, path); after != before {
		t.Errorf("%s became %s", before, after)
	}
	hasValue(t, path, "old")
}

// TestRestoreOther: places without a file, and with one that cannot be opened.
func TestRestoreOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "copy")
	left(t, from, "new")
	none := filepath.Join(dir, "none")
	if kept, err := stage(t, from, none).Place(t.Context(), "now"); kept != "" || err != nil {
		t.Errorf("kept %q, %v", kept, err)
	}
	hasValue(t, none, "new")

	damaged := filepath.Join(dir, "damaged")
	writeFile(t, damaged, []byte("this is no data file"))
	os.Chmod(damaged, 0o640)
	writeFile(t, damaged+"-journal1", []byte("nor is this a journal"))
	kept, err := stage(t, from, damaged).Place(t.Context(), "now")
	if err != nil || string(readFile(t, kept)) != "this is no data file" || string(readFile(t, kept+"-journal1")) != "nor is this a journal" {
		t.Errorf("kept %q, %v", kept, err)
	}
	if info, err := os.Stat(damaged); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	hasValue(t, damaged, "new")

	writeFile(t, none+keptName+"now-journal1", nil)
	if kept, err = stage(t, from, none).Place(t.Context(), "now"); err != nil || kept != none+keptName+"now-2" {
		t.Errorf("kept %q, %v", kept, err)
	}
	os.Remove(none + keptName + "now-journal1")

	link := filepath.Join(dir, "link")
	if err := os.Symlink(none, link); err != nil {
		t.Skip(err)
	}
	left(t, link, "old")
	if kept, err = stage(t, from, link).Place(t.Context(), "now"); err != nil || filepath.Base(kept) != "none"+keptName+"now" {
		t.Errorf("kept %q, %v", kept, err)
	}
	hasValue(t, link, "new")
	hasValue(t, kept, "old")
}

// TestReadOnly: a file that a kill has left is read with its journals, and nothing is written.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	left(t, path, "1")
	before := map[string]string{}
	names := JournalNames(path)
	for _, name := range append(names[:], path) {
		before[name] = string(readFile(t, name))
		os.Chmod(name, 0o400)
	}
	os.Chmod(filepath.Dir(path), 0o500)
	t.Cleanup(func() { os.Chmod(filepath.Dir(path), 0o700); os.Chmod(path, 0o600) })
	for _, opts := range []Options{{ReadOnly: true}, {ReadOnly: true, ShortMap: true}} {
		s, err := openStore(path, opts)
		if err != nil {
			t.Fatal(err)
		}
		other, err := openStore(path, opts)
		if err != nil {
			t.Fatal(err)
		}
		checkContents(t, s, map[string]string{"a": "1"})
		err = s.ViewLong(t.Context(), func(tx Tx) error {
			checked, err := tx.(readTx).Check(t.Context(), 2)
			if err == nil {
				_, _, err = checked.Get([]byte("a"))
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if err := s.Update(t.Context(), func(tx Tx) error { return tx.Put([]byte("a"), nil) }); !errors.Is(err, ErrReadOnly) || !errors.Is(err, ErrUnavailable) {
			t.Errorf("a write: %v", err)
		}
		if err := s.Commit(nil); !errors.Is(err, ErrReadOnly) {
			t.Errorf("a commit: %v", err)
		}
		if err := errors.Join(s.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	}
	for name, want := range before {
		if string(readFile(t, name)) != want {
			t.Errorf("%s has changed", name)
		}
	}
	if _, err := openStore(path+"none", Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
