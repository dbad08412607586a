package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sello/internal/disk"
	"sello/internal/disk/disktest"
)

func TestBoltStore(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]disk.Options{
		"OneMemtable":   {NoSync: testing.Short()},
		"ManyMemtables": {MemSize: 1, Dense: "am5", NoSync: true},
	} {
		t.Run(name, func(t *testing.T) {
			testStore(t, func(t *testing.T) Store { return testBolt(t, filepath.Join(t.TempDir(), "store"), opts) })
		})
	}
}

// testBolt opens the store at path. At the end of the test it closes the store, if the
// test has not, and checks the whole file.
func testBolt(t testing.TB, path string, opts disk.Options) *boltStore {
	t.Helper()
	opts.ShortMap = true // a test may have hundreds of stores open
	s, err := openBolt(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && err != errClosed {
			t.Error(err)
		}
		if err := errors.Join(disktest.BoltFaults(path), diskFaults(path)); err != nil {
			t.Error(err)
		}
	})
	return s
}

// diskFaults checks the whole file against its inventory.
func diskFaults(path string) error {
	f, err := disk.Open(path, disk.Options{MustExist: true, NoSync: true})
	if err != nil {
		return err
	}
	err = f.View(context.Background(), func(s *disk.Snapshot) error {
		_, err := s.Check(context.Background(), 2)
		return err
	})
	return errors.Join(err, f.Leave())
}

// TestBoltErrors checks that errors of the file become the errors that Store promises,
// and that damage names the file.
func TestBoltErrors(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s, err := openBolt(path, disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "m:key", "value to find")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.backup(t.Context(), path+"2"); !errors.Is(err, errClosed) {
		t.Errorf("a backup of what is closed: %v", err)
	}
	damaged := readFile(t, path)
	writeFile(t, path, bytes.ReplaceAll(damaged, []byte("value to find"), []byte("value to fine")))
	if s, err = openBolt(path, disk.Options{}); err != nil {
		t.Fatal(err)
	}
	read := func(tx Tx) error {
		_, _, err := tx.Get([]byte("m:key"))
		return err
	}
	record := func(Tx) error { return errRecord }
	for _, test := range []struct {
		name string
		run  func(context.Context, func(Tx) error) error
		fn   func(Tx) error
		is   error
		want string // the text after the path
	}{
		{"a damaged value", s.View, read, errCorrupt, ": store: damaged value in table 0x6d"},
		{"the same to the writer", s.Update, read, errCorrupt, ": store: damaged value in table 0x6d"},
		{"the same for long", s.ViewLong, read, errCorrupt, ": store: damaged value in table 0x6d"},
		{"a damaged record", s.View, record, errRecord, ": a stored record cannot be read"},
		{"the same to the writer", s.Update, record, errRecord, ": a stored record cannot be read"},
	} {
		if err := test.run(t.Context(), test.fn); !errors.Is(err, test.is) || err.Error() != path+test.want {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	err = s.View(t.Context(), read)
	if e, ok := errors.AsType[*disk.DamageError](err); !ok || e.File != path || e.Table != 'm' || e.Page != -1 {
		t.Errorf("damage: %+v", e)
	}

	// The store notices that its file is gone, though nothing is written.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := <-s.Failed(); !errors.Is(err, disk.ErrRemoved) {
		t.Errorf("failed: %v", err)
	}
	if err := s.Update(t.Context(), func(Tx) error { return nil }); !errors.Is(err, errUnavailable) || errors.Is(err, errBusy) {
		t.Errorf("after it has failed: %v", err)
	}
	if err := s.leave(); err != nil {
		t.Error(err)
	}
}

// A toldStore counts the calls of ViewLong.
type toldStore struct {
	*boltStore
	long int
}

func (s *toldStore) ViewLong(ctx context.Context, fn func(Tx) error) error {
	s.long++
	return s.boltStore.ViewLong(ctx, fn)
}

// TestLongViewOfEngine checks that viewLong reaches ViewLong of the backend through an
// engine's store.
func TestLongViewOfEngine(t *testing.T) {
	t.Parallel()
	s := &toldStore{boltStore: testBolt(t, filepath.Join(t.TempDir(), "store"), disk.Options{NoSync: true})}
	mustPut(t, s, "a", "1")
	value, err := viewLong(t.Context(), watch(s), func(tx Tx) (string, error) {
		value, _, err := tx.Get([]byte("a"))
		return string(value), err
	})
	if value != "1" || err != nil || s.long != 1 {
		t.Errorf("%q, %v, told %d times", value, err, s.long)
	}
}

// BenchmarkUpdate adds points to accounts from 1 goroutine and from many.
func BenchmarkUpdate(b *testing.B) {
	for _, goroutines := range []int{1, 64, 1024} {
		b.Run(strconv.Itoa(goroutines), func(b *testing.B) {
			s, err := openBolt(filepath.Join(b.TempDir(), "store"), disk.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			begin, commits := s.queue.begin, 0
			s.queue.begin = func(after batch) (batch, error) {
				commits++
				return begin(after)
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

// addMovement increments a counter in the small record of an account and adds a movement.
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

// TestNotAFile checks that commands refuse what is no file of sello's, or cannot be
// opened. They say so in one line and do not touch it.
func TestNotAFile(t *testing.T) {
	skipShort(t)
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	ours := readFile(t, s.env["SELLO_DB"])
	random := make([]byte, 50_000)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	padded := func(start string) []byte { return append([]byte(start), make([]byte, 40_000)...) }
	document, customers := s.file("luna.json", string(demoDocument)), s.file("c.csv", "email,phoneNumber\nana@example.com,\n")
	for _, test := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"empty", holdingBytes(nil), "el archivo está vacío"},
		{"one byte", holdingBytes([]byte("S")), "no es un archivo de sello"},
		{"SQLite", holdingBytes(padded("SQLite format 3\x00\x10\x00\x01\x01\x00")), "no es un archivo de sello"},
		{"ZIP", holdingBytes(padded("PK\x03\x04\x14\x00")), "no es un archivo de sello"},
		{"text", holdingBytes(bytes.Repeat([]byte("fecha,importe\r\n2026-01-01,10\r\n"), 1000)), "no es un archivo de sello"},
		{"JSON", holdingBytes(demoDocument), "no es un archivo de sello"},
		{"random", holdingBytes(random), "no es un archivo de sello"},
		{"zeros", holdingBytes(make([]byte, 50_000)), "no es un archivo de sello"},
		{"shorter than its pages", holdingBytes(disktest.UsedPages(ours)[:len(disktest.UsedPages(ours))-1]), "archivo truncado"},
		{"its first page", holdingBytes(ours[:disktest.PageSize]), "archivo truncado"},
		{"half of its first page", holdingBytes(ours[:disktest.PageSize/2]), "archivo truncado"},
		{"its headers swapped", holdingBytes(slices.Concat(ours[100:], ours[:100])), "no es un archivo de sello"},
		{"directory", func(path string) error { return os.Mkdir(path, 0o700) }, "es un directorio"},
		{"loop of links", func(path string) error { return os.Symlink(filepath.Base(path), path) }, "demasiados enlaces simbólicos"},
		{"device", func(path string) error { return os.Symlink(os.DevNull, path) }, "no es un archivo regular"},
		{"no permission", func(path string) error { return os.WriteFile(path, ours, 0) }, "sin permiso"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.name == "no permission" && os.Geteuid() <= 0 {
				t.Skip("root, or Windows, may read it all the same")
			}
			s := newTill(t)
			path := s.env["SELLO_DB"]
			if err := test.make(path); err != nil {
				t.Skip(err) // Windows may refuse to make links
			}
			s.refusesFile(document, customers, test.want)
		})
	}
}

// refusesFile runs commands on the till's file. Each must fail with an error that contains
// want, and leave the file as it is.
func (s *till) refusesFile(document, customers, want string) {
	s.Helper()
	path := s.env["SELLO_DB"]
	before, _ := os.ReadFile(path)
	for _, line := range []string{
		"serve -addr 127.0.0.1:0", "demo -addr 127.0.0.1:0 -db " + path, "verify", "verify -json", "export -org cafe-luna", "export customers",
		"apply " + document, "apply -dry-run " + document, "key list -org cafe-luna", "key create -org cafe-luna -name x",
		"key revoke -org cafe-luna 01a1f94d-3553-7001-b786-2a39172ca160", "import customers " + customers,
	} {
		code, out, errs := s.run(line)
		if strings.HasSuffix(line, "-json") {
			var told failure
			if err := json.Unmarshal([]byte(out), &told); err != nil || errs != "sello: "+told.Error+"\n" {
				s.Errorf("sello %s: %q, %q, %v", line, out, errs, err)
			}
			out = ""
		}
		if code != 1 || out != "" || !strings.Contains(errs, want) || faultIn(code, errs) != "" {
			s.Errorf("sello %s: %s: exit %d, %q, %q", line, faultIn(code, errs), code, out, errs)
		}
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		s.Error("it was changed")
	}
	if left, _ := filepath.Glob(path + "?*"); left != nil {
		s.Errorf("there is now %s", left)
	}
}

// holdingBytes returns a function that makes a file of some bytes.
func holdingBytes(b []byte) func(string) error {
	return func(path string) error { return os.WriteFile(path, b, 0o600) }
}
