package disk

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// smallMap makes bbolt map as on a system where a file is as long as its map.
var smallMap = mapRule{first: 1 << 20, grows: true}

func TestMapRule(t *testing.T) {
	t.Parallel()
	const kib, gib = 1 << 10, 1 << 30
	for _, test := range []struct {
		bits   int
		room   int64 // bytes that can be mapped at once
		want   mapRule
		reason string
	}{
		{64, 128 << 40, mapRule{first: 4 << 40, most: 3840 * gib}, "47 bits of addresses"},
		{64, 512 * gib, mapRule{first: 128 * gib, most: 120 * gib}, "39 bits: two of 256 GiB and the rest are too much"},
		{64, 4 * gib, mapRule{first: gib, most: 960 << 20}, "ulimit -v"},
		{64, 0, mapRule{first: 16 << 20, grows: true}, "no map longer than its file"},
		{32, 3 * gib, mapRule{first: gib, most: 960 << 20}, "the usual share of a process"},
		{32, 2 * gib, mapRule{first: gib / 2, most: 480 << 20}, "a small share of a process"},
		{32, 0, mapRule{first: 16 << 20, most: gib / 2, grows: true}, "Windows"},
	} {
		got := mapRuleFor(test.bits, func(size int64) bool { return 2*size+mapsBeside <= test.room })
		if got != test.want {
			t.Errorf("%d bits, %d KiB: %+v, want %+v (%s)", test.bits, test.room/kib, got, test.want, test.reason)
		}
	}
}

// TestMappedBytes: mappedBytes finds the size of bbolt's map, and the map grows as
// nextMap says.
func TestMappedBytes(t *testing.T) {
	t.Parallel()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "file"), 0o600, &bolt.Options{NoSync: true, NoGrowSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	size, ok := mappedBytes(db)
	if !ok || *size != 32<<10 {
		t.Fatalf("mapped: %v, %t", size, ok)
	}
	for i := 0; *size < 4<<20; i++ {
		before := *size
		err := db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("b"))
			return errors.Join(err, b.Put(fmt.Append(nil, i), make([]byte, 5000)))
		})
		if err != nil {
			t.Fatal(err)
		}
		if *size != before && *size != nextMap(before) {
			t.Fatalf("from %d to %d, want %d", before, *size, nextMap(before))
		}
	}
	for size, want := range map[int]int{1 << 28: 1 << 29, 1 << 29: 1 << 30, math.MaxInt: math.MaxInt} {
		if nextMap(size) != want {
			t.Errorf("after %d: %d, want %d", size, nextMap(size), want)
		}
	}
}

// fillStore writes so many bytes in entries of some kilobytes, until an update is
// refused.
func fillStore(t *testing.T, s *store, prefix string, bytes int) error {
	t.Helper()
	value := strings.Repeat("v", 8<<10)
	for i := 0; i < bytes; i += 16 * len(value) {
		err := s.Update(t.Context(), func(tx Tx) error {
			for n := range 16 {
				if err := tx.Put(fmt.Appendf(nil, "%s %d %d", prefix, i, n), []byte(value)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TestMapGrowsBeside has a View that lasts while the file outgrows its map. Other Views
// go on, and so do writes as long as there is room in memory. After the View both go
// on.
func TestMapGrowsBeside(t *testing.T) {
	t.Parallel()
	s := testStore(t, filepath.Join(t.TempDir(), "store"), Options{NoSync: true, MemSize: 256 << 10, MemAge: time.Millisecond, mapRule: smallMap})
	mustPut(t, s, "a", "1")
	began, end := make(chan bool), make(chan bool)
	read := make(chan error)
	go func() {
		read <- s.View(t.Context(), func(tx Tx) error {
			began <- true
			<-end
			_, ok, err := tx.Get([]byte("b 0 0"))
			if ok {
				err = errors.Join(err, errors.New("a View sees what was written after it had begun"))
			}
			return err
		})
	}()
	<-began
	hung := time.AfterFunc(time.Minute, func() { // if the View did not end, nothing would go on
		t.Error("Views or writes wait for the one that lasts")
		close(end)
	})
	if err := fillStore(t, s, "b", 1<<30); !errors.Is(err, ErrUnavailable) || !errors.Is(err, errMapFull) {
		t.Errorf("writing on: %v", err)
	}
	for range 1000 {
		if err := s.View(t.Context(), func(tx Tx) error { _, _, err := tx.Get([]byte("b 0 0")); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if hung.Stop() {
		close(end)
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
	for fillStore(t, s, "c", 4<<20) != nil { // until the store notices that the View has ended
		time.Sleep(time.Millisecond)
	}
	settle(s)
	if size := s.fileMap.size; size < 4<<20 {
		t.Errorf("the map has %d bytes", size)
	}
	checkMapped(t, s)
}

// checkMapped compares what the store knows of the map with what bbolt has.
func checkMapped(t *testing.T, s *store) {
	t.Helper()
	size, _ := mappedBytes(s.db)
	info, err := os.Stat(s.path)
	if err != nil || info.Size() != int64(s.fileMap.size) || *size != s.fileMap.size+pageSize {
		t.Errorf("the file has %d bytes, its map %d, bbolt says %d: %v", info.Size(), s.fileMap.size, *size, err)
	}
}

// TestMapFull: if the file may not outgrow its map, writes are refused and reads go on.
// The same holds after a restart, and for a file from a larger machine.
func TestMapFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	opts := Options{NoSync: true, MemSize: 256 << 10, mapRule: mapRule{first: 4 << 20, most: 4 << 20}}
	for range 2 {
		s := testStore(t, path, opts)
		err := fillStore(t, s, fmt.Sprint(time.Now().UnixNano()), 16<<20)
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, errMapFull) {
			t.Errorf("writing on: %v", err)
		}
		n := 0
		err = s.View(t.Context(), func(tx Tx) error {
			n = len(contents(t, tx))
			return nil
		})
		if err != nil || n < 100 {
			t.Errorf("%d entries: %v", n, err)
		}
		select {
		case err := <-s.Failed():
			t.Errorf("failed: %v", err)
		default:
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s := testStore(t, path, Options{NoSync: true, MemSize: 256 << 10, mapRule: mapRule{first: 1 << 20, most: 1 << 20}})
	if err := s.View(t.Context(), func(tx Tx) error { contents(t, tx); return nil }); err != nil {
		t.Error(err)
	}
}

// TestMapGrowsForSlowUpdates: slow updates without other readers are not refused for
// lack of map.
func TestMapGrowsForSlowUpdates(t *testing.T) {
	t.Parallel()
	s := testStore(t, filepath.Join(t.TempDir(), "store"), Options{NoSync: true, MemSize: 1 << 20, mapRule: smallMap})
	for i := range smaller(6, 2) {
		err := s.Update(t.Context(), func(tx Tx) error {
			time.Sleep(drainTime + drainTime/2)
			for n := range 10_000 {
				if err := tx.Put(fmt.Appendf(nil, "%d %d", i, n), make([]byte, 200)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("update %d: %v", i, err)
		}
	}
}

// TestWriteWaiting: writeWaiting leaves no trace of having waited.
func TestWriteWaiting(t *testing.T) {
	t.Parallel()
	s := testStore(t, filepath.Join(t.TempDir(), "store"), Options{NoSync: true, mapRule: smallMap})
	mustPut(t, s, "a", "1")
	tries := 0
	s.writing.Lock()
	err := s.writeWaiting(func(tx *bolt.Tx) error {
		if tries++; tries == 1 {
			return ErrFull
		}
		return s.kept.put(tx)
	})
	s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || tries != 2 || s.full != nil {
		t.Errorf("%v after %d tries; then full: %v", err, tries, s.full)
	}
}
