package disk

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"sello/internal/disk/disktest"
	"sello/internal/ordered"
	"sello/internal/ordered/orderedtest"
)

var (
	damageN     = flag.Int("damage.n", 0, "damaged files to try; 0: a few")
	damageSeed  = flag.Uint64("damage.seed", 1, "what damage is chosen by")
	powerImages = flag.Int("power.n", 0, "number of images after power cuts to open; 0: a few")
	powerSeed   = flag.Uint64("power.seed", 0, "seed of the tests of power cuts; 0: a random one")
)

// forever is longer than anything here takes.
const forever = 30 * time.Second

type Tx = orderedtest.Tx

// What these tests share with others, under short names.
var (
	histories     = orderedtest.Histories
	replayHistory = orderedtest.ReplayHistory
	mustPut       = orderedtest.MustPut[Tx]
	contents      = orderedtest.Contents
	checkContents = orderedtest.CheckContents[Tx]
	readFile      = disktest.ReadFile
	writeFile     = disktest.WriteFile
	listDir       = disktest.ListDir
)

// A store is a File with transactions.
type store struct {
	*File
	turn sync.Mutex // of a writer
}

func openStore(path string, opts Options) (*store, error) {
	f, err := Open(path, opts)
	if err != nil {
		return nil, err
	}
	return &store{File: f}, nil
}

// View runs fn on a readTx.
func (s *store) View(ctx context.Context, fn func(Tx) error) error {
	return s.File.View(ctx, func(t *Snapshot) error { return fn(readTx{t}) })
}

func (s *store) ViewLong(ctx context.Context, fn func(Tx) error) error {
	return s.File.ViewLong(ctx, func(t *Snapshot) error { return fn(readTx{t}) })
}

// Update commits what fn writes, unless fn returns an error.
func (s *store) Update(_ context.Context, fn func(Tx) error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	t, err := s.Snapshot()
	if err != nil {
		return err
	}
	tx := &writeTx{Snapshot: t, writes: map[string][]byte{}}
	err = func() error {
		defer t.Release() // before Commit, which may have to wait for readers
		return fn(tx)
	}()
	if err != nil {
		return err
	}
	if len(tx.writes) == 0 && s.broken.Load() == nil {
		return nil
	}
	var changes []ordered.Change
	for _, key := range slices.Sorted(maps.Keys(tx.writes)) {
		changes = append(changes, ordered.Change{Key: key, Value: tx.writes[key]})
	}
	return s.Commit(changes)
}

var errReadOnly = errors.New("read-only")

type readTx struct{ *Snapshot }

func (readTx) Put(key, value []byte) error { return errReadOnly }
func (readTx) Delete(key []byte) error     { return errReadOnly }

// A writeTx lays its writes over a Snapshot.
type writeTx struct {
	*Snapshot
	writes map[string][]byte // nil: deleted
}

func (t *writeTx) Get(key []byte) ([]byte, bool, error) {
	if value, ok := t.writes[string(key)]; ok {
		return value, value != nil, nil
	}
	return t.Snapshot.Get(key)
}

func (t *writeTx) Put(key, value []byte) error {
	t.writes[string(key)] = append([]byte{}, value...)
	return nil
}

func (t *writeTx) Delete(key []byte) error {
	t.writes[string(key)] = nil
	return nil
}

func (t *writeTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[ordered.Entry, error] {
	var own []string
	for key := range t.writes {
		if ordered.InRange([]byte(key), lo, hi) {
			own = append(own, key)
		}
	}
	if slices.Sort(own); reverse {
		slices.Reverse(own)
	}
	return func(yield func(ordered.Entry, error) bool) {
		left := own
		next := func() (e ordered.Entry, ok bool) {
			if len(left) == 0 {
				return e, false
			}
			e = ordered.Entry{Key: []byte(left[0]), Value: t.writes[left[0]]}
			left = left[1:]
			return e, true
		}
		ordered.MergeScan(next, t.Snapshot.Scan(lo, hi, reverse), reverse, yield)
	}
}

// testStore opens the store at path. After the test it closes the store, if the test
// has not, and checks the whole file with bbolt and with checkAll.
func testStore(t testing.TB, path string, opts Options) *store {
	t.Helper()
	opts.ShortMap = opts.mapRule == (mapRule{}) // since a test may have hundreds of stores open
	s, err := openStore(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && err != ErrClosed {
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
		if tree, err := openTree(db, tx, dataBucket, nil); err != nil {
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

// await returns when cond holds. The test's own deadline ends it otherwise.
func await(cond func() bool) {
	for !cond() {
		time.Sleep(100 * time.Microsecond)
	}
}

// settle returns when all writes are in the file.
func settle(s *store) {
	await(func() bool {
		s.freezeNow() // else this would wait until the memtable is old
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.frozen == nil && s.fill == 0
	})
}

// smaller returns n in the long form, else few.
var smaller = orderedtest.Sized

// sameBytes reports whether a and b are equal. It tells nil from empty.
func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }
