package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"sello/internal/disk/disktest"
)

func TestFileReopen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	if _, err := openStore(path, Options{MustExist: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that must exist and does not: %v", err)
	}
	if left := listDir(t, path); left != "" {
		t.Errorf("there is now %s", left)
	}

	want := map[string]string{}
	for i := range 5 {
		s := testStore(t, path, Options{MustExist: i > 0})
		checkContents(t, s, want)
		key := strconv.Itoa(i)
		mustPut(t, s, key, "v", "last", key)
		want[key], want["last"] = "v", key
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}

	if left := listDir(t, path); left != "store" {
		t.Errorf("there is now %s", left)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("file %v, %v", info.Mode(), err)
	}
}

// TestFileCreateTwice: if two processes make the file at the same time, neither
// replaces the other's.
func TestFileCreateTwice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s := testStore(t, path, Options{})
	mustPut(t, s, "k", "v")
	if err := createFile(path); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkContents(t, testStore(t, path, Options{}), map[string]string{"k": "v"})
	if left := listDir(t, path); left != "store" {
		t.Errorf("there is now %s", left)
	}
}

// TestFileDamaged opens files that are not whole.
func TestFileDamaged(t *testing.T) {
	t.Parallel()
	seal := func(header []byte) { // to be called after a change
		copy(header[72:], binary.NativeEndian.AppendUint64(nil, disktest.HeaderSum(header)))
	}
	morePages := func(file, header []byte) []byte {
		binary.NativeEndian.PutUint64(header[56:], uint64(len(file)/pageSize+1))
		seal(header)
		return file
	}
	for _, test := range []struct {
		name   string
		damage func(file []byte) []byte
		want   string // after the path; "": the file opens with all its entries
	}{
		{"nothing", func(f []byte) []byte { return f }, ""},
		{"empty", func(f []byte) []byte { return nil }, "the file is empty"},
		{"short text", func(f []byte) []byte { return []byte("hello\n") }, "not a file of this kind"},
		{"long text", func(f []byte) []byte { return bytes.Repeat([]byte("hello\n"), 9999) }, "not a file of this kind"},
		{"zeros", func(f []byte) []byte { clear(f); return f }, "not a file of this kind"},
		{"one header only", func(f []byte) []byte { return f[:4096] }, "file truncated: 4096 bytes of at least "},
		{"part of the second header", func(f []byte) []byte { return f[:4096+40] }, "file truncated: 4136 bytes of at least "},
		{"both headers only", func(f []byte) []byte { return f[:2*4096] }, "file truncated: 8192 bytes of at least "},
		{"last page cut", func(f []byte) []byte {
			return f[:binary.NativeEndian.Uint64(disktest.NewerHeader(f)[56:])*pageSize-1]
		}, "file truncated: "},
		{"newer header says more", func(f []byte) []byte { return morePages(f, disktest.NewerHeader(f)) }, "file truncated: "},
		{"older header says more", func(f []byte) []byte { return morePages(f, disktest.OlderHeader(f)) }, ""},
		{"older header damaged", func(f []byte) []byte { disktest.OlderHeader(f)[60] ^= 1; return f }, ""},
		{"newer header damaged", func(f []byte) []byte { disktest.NewerHeader(f)[60] ^= 1; return f },
			"store-journal1 is missing, and the file is not whole without it; one of its two headers is damaged"},
		{"both headers damaged", func(f []byte) []byte { f[60] ^= 1; f[4096+60] ^= 1; return f },
			"file damaged: neither of its two headers is whole"},
		{"other version", func(f []byte) []byte { f[20] = 3; seal(f); return f }, "not a file of this kind"},
		{"other page size", func(f []byte) []byte {
			binary.NativeEndian.PutUint32(f[24:], 8192)
			seal(f)
			return f
		}, "not a file of this kind"},
		{"list of free pages damaged", func(f []byte) []byte {
			for _, h := range [][]byte{f, f[4096:]} {
				clear(f[binary.NativeEndian.Uint64(h[48:])*4096:][:16])
			}
			return f
		}, "store: damaged value: "},
		{"root page damaged", func(f []byte) []byte {
			for _, h := range [][]byte{f, f[4096:]} {
				clear(f[binary.NativeEndian.Uint64(h[32:])*4096:][:16])
			}
			return f
		}, "store: damaged value: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			openDamaged(t, test.damage, test.want)
		})
	}
}

// openDamaged damages a new file, and compares the error with which it does not open.
func openDamaged(t *testing.T, damage func(file []byte) []byte, want string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store")
	s, err := openStore(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "k", "v")
	mustPut(t, s, "k", "w")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, damage(readFile(t, path)))
	s, err = openStore(path, Options{})
	if err == nil {
		defer s.Close()
		checkContents(t, s, map[string]string{"k": "w"})
		if want != "" {
			t.Errorf("opened; want error %q", want)
		}
		return
	}
	if got, ok := strings.CutPrefix(err.Error(), path+": "); !ok || want == "" || !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
		t.Errorf("error %q, want %q", err, want)
	}
}

// TestFileForeign opens files that Open has not made.
func TestFileForeign(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	for _, test := range []struct {
		name string
		make func() error
		want string
	}{
		{"directory", func() error { return os.Mkdir(path, 0o700) }, "is a directory"},
		{"no such directory", func() error { return os.Symlink("nowhere/store", path) }, "no such file or directory"},
		{"another program's", func() error {
			db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: pageSize})
			return errors.Join(err, db.Close())
		}, "not a file of this kind"},
		{"another program's, with other options", func() error {
			db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: pageSize, NoFreelistSync: true})
			if err != nil {
				return err
			}
			err = db.Update(func(tx *bolt.Tx) error {
				_, err := tx.CreateBucket([]byte("other"))
				return err
			})
			return errors.Join(err, db.Close())
		}, "not a file of this kind"},
	} {
		if err := test.make(); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(path)
		_, err := openStore(path, Options{MustExist: true})
		if err == nil || err.Error() != path+": "+test.want {
			t.Errorf("%s: error %v, want %s", test.name, err, test.want)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("%s: the file was changed", test.name)
		}
		os.Remove(path)
	}
	if err := openError(&fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}); err.Error() != "permission denied" || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("no permission: %v", err)
	}
}

func TestFileLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	testStore(t, path, Options{})
	_, err := openStore(path, Options{lockWait: time.Nanosecond})
	if err == nil || err.Error() != path+": another process has it open" {
		t.Errorf("opened twice: %v", err)
	}
}

// TestFileFlippedBits flips bits of one stored entry. No other entry of the damaged
// page is then reported absent, and none is listed. An entry that is looked up and
// found is right.
func TestFileFlippedBits(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short")
	}
	path := filepath.Join(t.TempDir(), "store")
	s := testStore(t, path, Options{})
	mustPut(t, s, "a", "before", "m:key", "value to find", "z", "after")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole := readFile(t, path)
	const sum, value = len("m:key"), len("m:key") + checksumSize // from the key on
	entry := regexp.MustCompile(`(?s)m:key....value to find`)
	copies := entry.FindAllIndex(whole, -1) // not all of them are in use
	if len(copies) == 0 {
		t.Fatal("the file is not as drawn")
	}
	for _, test := range []struct {
		name string
		at   int
	}{
		{"key", 3},
		{"checksum", sum},
		{"first byte of the value", value},
		{"last byte of the value", value + len("value to find") - 1},
	} {
		for bit := 0; bit < 8; bit += smaller(1, 4) {
			damaged := bytes.Clone(whole)
			for _, c := range copies {
				damaged[c[0]+test.at] ^= 1 << bit
			}
			writeFile(t, path, damaged)
			readFlipped(t, path, fmt.Sprintf("%s, bit %d", test.name, bit))
		}
	}
	writeFile(t, path, whole)
}

// readFlipped reads from a file of which the entry m:key is damaged, and a and z are not.
func readFlipped(t *testing.T, path, said string) {
	t.Helper()
	s, err := openStore(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.View(t.Context(), func(tx Tx) error {
		value, ok, err := tx.Get([]byte("m:key"))
		if value != nil || ok || !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: Get = %q, %v, %v", said, value, ok, err)
		}
		var got []string
		for e, err := range tx.Scan(nil, nil, false) {
			if err != nil {
				got = append(got, err.Error())
				continue
			}
			got = append(got, string(e.Value))
		}
		if want := []string{"store: damaged value in table 0x61"}; !slices.Equal(got, want) {
			t.Errorf("%s: Scan yields %q, want %q", said, got, want)
		}
		if value, _, err := tx.Get([]byte("z")); string(value) != "after" || err != nil {
			t.Errorf("%s: another entry is read as %q, %v", said, value, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFileGone checks that the store notices what happens to its files.
func TestFileGone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(path string) error
		want   string
	}{
		{"removed", os.Remove, "the file was removed"},
		{"replaced", func(path string) error {
			return errors.Join(os.WriteFile(path+"2", nil, 0o600), os.Rename(path+"2", path))
		}, "the file was replaced"},
		{"cut short", func(path string) error { return os.Truncate(path, 0) }, "the file was cut short"},
		{"journal removed", func(path string) error { return os.Remove(path + "-journal2") }, "-journal2: the file was removed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store")
			s, err := openStore(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			mustPut(t, s, "k", strings.Repeat("v", 10_000)) // too much for the first page
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = openStore(path, Options{watchEvery: time.Millisecond}); err != nil {
				t.Fatal(err)
			}
			mustPut(t, s, "l", "v")
			select {
			case err := <-s.Failed():
				t.Fatalf("failed before: %v", err)
			default:
			}
			if err := test.change(path); err != nil {
				t.Fatal(err)
			}
			if err := <-s.Failed(); err == nil || !strings.HasPrefix(err.Error(), path) || !strings.HasSuffix(err.Error(), test.want) {
				t.Errorf("failed: %v, want %s", err, test.want)
			}
			if err := s.Update(t.Context(), func(Tx) error { return nil }); !errors.Is(err, ErrUnavailable) {
				t.Errorf("Update: %v, want %v", err, ErrUnavailable)
			}
			if test.name != "cut short" { // where reads fault
				if err := s.Close(); err == nil || !strings.HasSuffix(err.Error(), test.want) {
					t.Errorf("Close: %v, want %s", err, test.want)
				}
				return
			}
			err = s.View(t.Context(), func(tx Tx) error {
				_, _, err := tx.Get([]byte("k"))
				return err
			})
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("View: %v, want %v", err, ErrDamaged)
			}
		})
	}
}

// TestFileFull fills a file up to its bound. What was stored before stays stored.
func TestFileFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s := testStore(t, path, Options{maxSize: 256 << 10, MemSize: 64 << 10})
	want := map[string]string{}
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		key, value := strconv.Itoa(i), strings.Repeat("v", 2000)
		err = s.Update(t.Context(), func(tx Tx) error { return tx.Put([]byte(key), []byte(value)) })
		if err == nil {
			want[key] = value
		}
	}
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, berrors.ErrMaxSizeReached) {
		t.Fatalf("after %d updates: %v", len(want), err)
	}
	checkContents(t, s, want)
	select {
	case err := <-s.Failed():
		t.Errorf("failed: %v", err)
	default:
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left := listDir(t, path); left != "store store-journal1 store-journal2" {
		t.Errorf("there is now %s", left)
	}

	s = testStore(t, path, Options{MemSize: 64 << 10})
	checkContents(t, s, want)
	for i := range 200 {
		key, value := strconv.Itoa(i), strings.Repeat("w", 2000)
		want[key] = value
		mustPut(t, s, key, value)
	}
	checkContents(t, s, want)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left := listDir(t, path); left != "store" {
		t.Errorf("there is now %s", left)
	}
}

// TestFileRemap makes a file outgrow its memory map while updates wait for the
// checkpoint that remaps it, and Views read.
func TestFileRemap(t *testing.T) {
	t.Parallel()
	s := testStore(t, filepath.Join(t.TempDir(), "store"), Options{NoSync: true, MemSize: 1 << 20, mapRule: smallMap})
	const updates, entries = 6, 10_000
	for i := range updates {
		err := s.Update(t.Context(), func(tx Tx) error {
			for n := range entries {
				if err := tx.Put(fmt.Appendf(nil, "%d %d", i, n), make([]byte, 200)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	s.View(t.Context(), func(tx Tx) error {
		n = len(contents(t, tx))
		return nil
	})
	if n != updates*entries {
		t.Errorf("%d entries, want %d", n, updates*entries)
	}
}

func TestFileCommitError(t *testing.T) {
	t.Parallel()
	write := func(err error) error { return &fs.PathError{Op: "write", Path: "store", Err: err} }
	for _, test := range []struct {
		err     error
		noSpace bool
		reason  string
	}{
		{nil, false, "no error"},
		{write(syscall.ENOSPC), true, "disk full"},
		{write(syscall.EFBIG), true, "limit of the process or file system"},
		{write(syscall.EDQUOT), true, "quota"},
		{berrors.ErrMaxSizeReached, true, "limit of the test"},
		{fmt.Errorf("file resize error: %s", &fs.PathError{Op: "truncate", Path: "store", Err: syscall.EFBIG}), true, "bbolt drops the cause"},
		{fmt.Errorf("file resize error: %s", &fs.PathError{Op: "truncate", Path: "store", Err: syscall.EIO}), false, "the disk is broken"},
		{write(syscall.EIO), false, "the disk is broken"},
		{write(syscall.EROFS), false, "the disk has been made read-only"},
		{syscall.ENOSPC, false, "bare: from a sync, after which pages may be lost"},
		{&fs.PathError{Op: "sync", Path: "store", Err: syscall.ENOSPC}, false, "from a sync elsewhere"},
		{fmt.Errorf("file sync error: %s", syscall.ENOSPC), false, "from a sync of the file's size"},
	} {
		got := commitError(test.err)
		if errors.Is(got, ErrUnavailable) != test.noSpace || !errors.Is(got, test.err) {
			t.Errorf("%v: %v (%s)", test.err, got, test.reason)
		}
	}
}

// TestFileOthers refuses files of bbolt that are not this package's, and those that do not
// say what they are.
func TestFileOthers(t *testing.T) {
	t.Parallel()
	bucket := func(names ...string) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) (err error) {
			for _, name := range names {
				b, createErr := tx.CreateBucket([]byte(name))
				err = errors.Join(err, createErr, b.Put([]byte("a"), Seal([]byte("a"), []byte("1"))))
			}
			return err
		}
	}
	for _, test := range []struct {
		reason string
		fill   func(*bolt.Tx) error
		want   error
	}{
		{"another program's", bucket("users"), ErrForeign},
		{"no journal's bucket", bucket(dataBucket), ErrDamaged},
		{"no bucket of entries", bucket(journalBucket), ErrForeign},
		{"nothing of itself", bucket(journalBucket, dataBucket), ErrDamaged},
		{"no inventory", func(tx *bolt.Tx) error {
			return errors.Join(bucket(dataBucket)(tx), journalState{journalID: journalID{file: newFileID()}}.put(tx))
		}, ErrDamaged},
	} {
		path := filepath.Join(t.TempDir(), "store")
		db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: pageSize})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(test.fill), db.Close()); err != nil {
			t.Fatal(err)
		}
		before := readFile(t, path)
		if s, err := openStore(path, Options{NoSync: true}); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.reason, err)
			if err == nil {
				s.Close()
			}
		}
		if !bytes.Equal(readFile(t, path), before) {
			t.Errorf("%s: the file has changed", test.reason)
		}
	}
}
