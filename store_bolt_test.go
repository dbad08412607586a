package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

func TestBoltStore(t *testing.T) {
	for name, opts := range map[string]boltOptions{
		"OneMemtable":   {},
		"ManyMemtables": {memSize: 1, dense: "am5"},
	} {
		t.Run(name, func(t *testing.T) {
			testStore(t, func(t *testing.T) Store { return testBolt(t, filepath.Join(t.TempDir(), "store"), opts) })
		})
	}
}

// testMap is short, since a test may have hundreds of stores open.
var testMap = mapRule{first: 1 << 30, most: 1 << 30}

// testBolt opens the store at path. When the test is over it closes it, if the
// test has not, and has bbolt check the whole file.
func testBolt(t testing.TB, path string, opts boltOptions) *boltStore {
	t.Helper()
	if opts.mapRule == (mapRule{}) {
		opts.mapRule = testMap
	}
	s, err := openBolt(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && err != errClosed {
			t.Error(err)
		}
		checkBolt(t, path)
	})
	return s
}

func checkBolt(t testing.TB, path string) {
	t.Helper()
	db, err := bolt.Open(path, 0, &bolt.Options{ReadOnly: true, PreLoadFreelist: true, Timeout: time.Nanosecond})
	if err != nil {
		t.Error(err)
		return
	}
	defer db.Close()
	db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			t.Error(err)
		}
		if tree, err := openTree(db, tx, boltBucket, nil); err != nil {
			t.Error(err)
		} else if kept, err := openTree(db, tx, journalBucket, nil); err != nil {
			t.Error(err)
		} else if v, err := kept.inventory(); err != nil || v == nil {
			t.Errorf("inventory %v, %v", v, err)
		} else if _, err := tree.checkAll(context.Background(), v, 2); err != nil {
			t.Error(err)
		}
		return nil
	})
}

func TestBoltReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	if _, err := openBolt(path, boltOptions{mustExist: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that must exist and does not: %v", err)
	}
	if left := listDir(t, path); left != "" {
		t.Errorf("there is now %s", left)
	}

	want := map[string]string{}
	for i := range 5 {
		s := testBolt(t, path, boltOptions{mustExist: i > 0})
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

// listDir lists the directory of path.
func listDir(t *testing.T, path string) string {
	t.Helper()
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	return strings.Join(names, " ")
}

// TestBoltCreateTwice checks that of two processes that make the file at the
// same time neither replaces the other's.
func TestBoltCreateTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s := testBolt(t, path, boltOptions{})
	mustPut(t, s, "k", "v")
	if err := createBolt(path); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	checkContents(t, testBolt(t, path, boltOptions{}), map[string]string{"k": "v"})
	if left := listDir(t, path); left != "store" {
		t.Errorf("there is now %s", left)
	}
}

// TestBoltDamaged opens files that are not whole.
func TestBoltDamaged(t *testing.T) {
	seal := func(header []byte) { // after a change
		copy(header[72:], binary.NativeEndian.AppendUint64(nil, headerSum(header)))
	}
	morePages := func(file, header []byte) []byte {
		binary.NativeEndian.PutUint64(header[56:], uint64(len(file)/boltPageSize+1))
		seal(header)
		return file
	}
	for _, test := range []struct {
		name   string
		damage func(file []byte) []byte
		want   string // after the path; "": opens, with all there was
	}{
		{"nothing", func(f []byte) []byte { return f }, ""},
		{"empty", func(f []byte) []byte { return nil }, "el archivo está vacío"},
		{"short text", func(f []byte) []byte { return []byte("hello\n") }, "no es un archivo de sello"},
		{"long text", func(f []byte) []byte { return bytes.Repeat([]byte("hello\n"), 9999) }, "no es un archivo de sello"},
		{"zeros", func(f []byte) []byte { clear(f); return f }, "no es un archivo de sello"},
		{"one header only", func(f []byte) []byte { return f[:4096] }, "archivo truncado: 4096 bytes de al menos "},
		{"part of the second header", func(f []byte) []byte { return f[:4096+40] }, "archivo truncado: 4136 bytes de al menos "},
		{"both headers only", func(f []byte) []byte { return f[:2*4096] }, "archivo truncado: 8192 bytes de al menos "},
		{"last page cut", func(f []byte) []byte {
			return f[:binary.NativeEndian.Uint64(newerHeader(f)[56:])*boltPageSize-1]
		}, "archivo truncado: "},
		{"newer header says more", func(f []byte) []byte { return morePages(f, newerHeader(f)) }, "archivo truncado: "},
		{"older header says more", func(f []byte) []byte { return morePages(f, olderHeader(f)) }, ""},
		{"older header damaged", func(f []byte) []byte { olderHeader(f)[60] ^= 1; return f }, ""},
		{"newer header damaged", func(f []byte) []byte { newerHeader(f)[60] ^= 1; return f },
			"falta store-journal1, sin el que el archivo no está completo; una de sus dos cabeceras está dañada"},
		{"both headers damaged", func(f []byte) []byte { f[60] ^= 1; f[4096+60] ^= 1; return f },
			"archivo dañado: ninguna de sus dos cabeceras está completa"},
		{"other version", func(f []byte) []byte { f[20] = 3; seal(f); return f }, "no es un archivo de sello"},
		{"other page size", func(f []byte) []byte {
			binary.NativeEndian.PutUint32(f[24:], 8192)
			seal(f)
			return f
		}, "no es un archivo de sello"},
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
			path := filepath.Join(t.TempDir(), "store")
			s, err := openBolt(path, boltOptions{})
			if err != nil {
				t.Fatal(err)
			}
			mustPut(t, s, "k", "v")
			mustPut(t, s, "k", "w")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			writeFile(t, path, test.damage(readFile(t, path)))
			s, err = openBolt(path, boltOptions{})
			if err == nil {
				defer s.Close()
				checkContents(t, s, map[string]string{"k": "w"})
				if test.want != "" {
					t.Errorf("opened; want error %q", test.want)
				}
				return
			}
			if got, ok := strings.CutPrefix(err.Error(), path+": "); !ok || test.want == "" || !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") {
				t.Errorf("error %q, want %q", err, test.want)
			}
		})
	}
}

// headerSum is the checksum of a header of bbolt, written here once more.
func headerSum(header []byte) uint64 {
	sum := uint64(14695981039346656037)
	for _, b := range header[16:72] {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	return sum
}

func newerHeader(file []byte) []byte { newer, _ := headers(file); return newer }
func olderHeader(file []byte) []byte { _, older := headers(file); return older }

func headers(file []byte) (newer, older []byte) {
	first, second := file, file[boltPageSize:]
	if binary.NativeEndian.Uint64(first[64:]) > binary.NativeEndian.Uint64(second[64:]) {
		return first, second
	}
	return second, first
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestBoltForeign opens what is not a file that openBolt has made.
func TestBoltForeign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	for _, test := range []struct {
		name string
		make func() error
		want string
	}{
		{"directory", func() error { return os.Mkdir(path, 0o700) }, "es un directorio"},
		{"no such directory", func() error { return os.Symlink("nowhere/store", path) }, "no such file or directory"},
		{"another program's", func() error {
			db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: boltPageSize})
			return errors.Join(err, db.Close())
		}, "no es un archivo de sello"},
		{"another program's, with other options", func() error {
			db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: boltPageSize, NoFreelistSync: true})
			if err != nil {
				return err
			}
			err = db.Update(func(tx *bolt.Tx) error {
				_, err := tx.CreateBucket([]byte("other"))
				return err
			})
			return errors.Join(err, db.Close())
		}, "no es un archivo de sello"},
	} {
		if err := test.make(); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(path)
		_, err := openBolt(path, boltOptions{mustExist: true})
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

func TestBoltLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	testBolt(t, path, boltOptions{})
	_, err := openBolt(path, boltOptions{lockWait: time.Nanosecond})
	if err == nil || err.Error() != path+": otro proceso lo tiene abierto" {
		t.Errorf("opened twice: %v", err)
	}
}

// TestBoltFlippedBits flips bits of one stored entry. Of a page where one is
// damaged no other is said to be absent, and none are listed; what is found
// there is there.
func TestBoltFlippedBits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s := testBolt(t, path, boltOptions{})
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
		for bit := range 8 {
			damaged := bytes.Clone(whole)
			for _, c := range copies {
				damaged[c[0]+test.at] ^= 1 << bit
			}
			writeFile(t, path, damaged)
			s, err := openBolt(path, boltOptions{})
			if err != nil {
				t.Fatal(err)
			}
			err = s.View(t.Context(), func(tx Tx) error {
				value, ok, err := tx.Get([]byte("m:key"))
				if value != nil || ok || !errors.Is(err, errCorrupt) {
					t.Errorf("%s, bit %d: Get = %q, %v, %v", test.name, bit, value, ok, err)
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
					t.Errorf("%s, bit %d: Scan yields %q, want %q", test.name, bit, got, want)
				}
				if value, _, err := tx.Get([]byte("z")); string(value) != "after" || err != nil {
					t.Errorf("%s, bit %d: another entry is read as %q, %v", test.name, bit, value, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			s.Close()
		}
	}
	writeFile(t, path, whole)
}

// TestBoltGone checks that the store notices what happens to its file.
func TestBoltGone(t *testing.T) {
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
			s, err := openBolt(path, boltOptions{})
			if err != nil {
				t.Fatal(err)
			}
			mustPut(t, s, "k", strings.Repeat("v", 10_000)) // too much for the first page
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = openBolt(path, boltOptions{watchEvery: time.Millisecond}); err != nil {
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
			if err := s.Update(t.Context(), func(Tx) error { return nil }); !errors.Is(err, errUnavailable) {
				t.Errorf("Update: %v, want %v", err, errUnavailable)
			}
			if test.name != "cut short" { // whose reads storeFault
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				return
			}
			err = s.View(t.Context(), func(tx Tx) error {
				_, _, err := tx.Get([]byte("k"))
				return err
			})
			if !errors.Is(err, errCorrupt) {
				t.Errorf("View: %v, want %v", err, errCorrupt)
			}
		})
	}
}

// TestBoltFull fills a file up to its bound: what was stored before there was
// no more room stays stored.
func TestBoltFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s := testBolt(t, path, boltOptions{maxSize: 256 << 10, memSize: 64 << 10})
	want := map[string]string{}
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		key, value := strconv.Itoa(i), strings.Repeat("v", 2000)
		err = s.Update(t.Context(), func(tx Tx) error { return tx.Put([]byte(key), []byte(value)) })
		if err == nil {
			want[key] = value
		}
	}
	if !errors.Is(err, errUnavailable) || !errors.Is(err, berrors.ErrMaxSizeReached) {
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

	s = testBolt(t, path, boltOptions{memSize: 64 << 10})
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

// TestBoltRemap makes a file outgrow its memory map while updates wait for the
// checkpoint that does so, and Views read.
func TestBoltRemap(t *testing.T) {
	s := testBolt(t, filepath.Join(t.TempDir(), "store"), boltOptions{noSync: true, memSize: 1 << 20, mapRule: smallMap})
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

func TestBoltCommitError(t *testing.T) {
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
		if errors.Is(got, errUnavailable) != test.noSpace || !errors.Is(got, test.err) {
			t.Errorf("%v: %v (%s)", test.err, got, test.reason)
		}
	}
}

// BenchmarkUpdate adds points to accounts from 1 and from many goroutines.
func BenchmarkUpdate(b *testing.B) {
	for _, goroutines := range []int{1, 64, 1024} {
		b.Run(strconv.Itoa(goroutines), func(b *testing.B) {
			s, err := openBolt(filepath.Join(b.TempDir(), "store"), boltOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			begin, commits := s.queue.begin, 0
			s.queue.begin = func() (batch, error) {
				commits++
				return begin()
			}
			updates := make(chan int)
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() {
					for i := range updates {
						if err := addMovement(s, uint32(rand.IntN(100_000)), uint64(i)); err != nil {
							b.Error(err)
						}
					}
				})
			}
			b.ResetTimer()
			for i := range b.N {
				updates <- i
			}
			close(updates)
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/float64(commits), "ops/commit")
		})
	}
}

// addMovement reads and writes a small record of account and adds a movement.
func addMovement(s Store, account uint32, movement uint64) error {
	return s.Update(context.Background(), func(tx Tx) error {
		key := binary.BigEndian.AppendUint32([]byte("a"), account)
		old, _, err := tx.Get(key)
		if err != nil {
			return err
		}
		record := append(make([]byte, 0, 64), old...)[:64]
		binary.BigEndian.PutUint64(record, binary.BigEndian.Uint64(record)+1)
		return errors.Join(
			tx.Put(key, record),
			tx.Put(binary.BigEndian.AppendUint64([]byte("m"), movement), record),
		)
	})
}
