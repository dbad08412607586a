package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sello/internal/disk/disktest"
	"sello/internal/ordered"
	"sello/internal/ordered/orderedtest"
)

// A crash is a store as a process killed at a random moment leaves it, with what the
// store should hold.
type crash struct {
	dir     string
	states  []map[string]string // after each update; the last one is stored
	whole   int                 // index of the last state before the newest generation
	journal string              // name of the file with the newest generation
	records uint64              // in the newest generation
	end     int64               // where the last of them ends
}

func (c *crash) path() string { return filepath.Join(c.dir, "store") }

// newCrash runs updates on a new store and copies its files while it runs.
func newCrash(t *testing.T, rng *rand.Rand) *crash {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store")
	s := testStore(t, path, Options{NoSync: true, MemSize: 500 + rng.IntN(20_000), Dense: "0"})
	c := &crash{dir: t.TempDir(), states: []map[string]string{{}}}
	m := orderedtest.Model{Rng: rng, Entries: map[string]string{}, Key: func(rng *rand.Rand) string { return fmt.Sprintf("%03d", rng.IntN(300)) }}
	for range 1 + rng.IntN(400) {
		generation := uint64(0)
		if s.journal != nil {
			generation = s.journal.generation
		}
		entries := m.Clone().Entries
		err := s.Update(t.Context(), func(tx Tx) error {
			m.Entries = maps.Clone(entries)
			return m.Play(tx, 1+rng.IntN(10))
		})
		if err != nil {
			t.Fatal(err)
		}
		c.states = append(c.states, maps.Clone(m.Entries))
		if s.journal != nil && s.journal.generation != generation {
			c.whole = len(c.states) - 2
		}
	}
	files, j := imageOf(t, s)
	writeImage(t, c.path(), files)
	if j != nil {
		c.journal = JournalNames(c.path())[(j.generation+1)%2]
		if c.records = j.records; c.records > 0 {
			c.end = j.end
		}
	}
	return c
}

// storeFiles returns the names of a store's files.
func storeFiles(path string) []string {
	journal := JournalNames(path)
	return []string{path, journal[0], journal[1]}
}

// imageOf reads the files of a store between two steps of a checkpoint, and how far its
// journal has come. What does not exist is nil.
func imageOf(t *testing.T, s *store) (files [3][]byte, j *journal) {
	t.Helper()
	tx, err := s.db.Begin(true) // now no step is under way
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, name := range storeFiles(s.path) {
		if files[i], err = os.ReadFile(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if s.journal != nil {
		j = &journal{generation: s.journal.generation, records: s.journal.records, end: s.journal.end}
	}
	return files, j
}

func writeImage(t *testing.T, path string, files [3][]byte) {
	t.Helper()
	for i, name := range storeFiles(path) {
		if files[i] != nil {
			writeFile(t, name, files[i])
		}
	}
}

// unmark removes the marks.
func (c *crash) unmark(t *testing.T) {
	for _, name := range JournalNames(c.path()) {
		b := readFile(t, name)
		clear(b[min(journalMark, len(b)):min(journalStart, len(b))])
		writeFile(t, name, b)
	}
}

// open opens the store as it was left and returns the index of the state that it holds.
func (c *crash) open(t *testing.T) (state int, err error) {
	t.Helper()
	s, err := openStore(c.path(), Options{NoSync: true})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	var got map[string]string
	s.View(t.Context(), func(tx Tx) error {
		got = contents(t, tx)
		return nil
	})
	for i := len(c.states) - 1; i >= 0; i-- {
		if maps.Equal(got, c.states[i]) {
			return i, nil
		}
	}
	t.Fatalf("opened with %d entries, which is no state that ever was", len(got))
	return 0, nil
}

// TestJournalCrash kills stores. All that was stored is there, also when the store is
// opened again without its journal.
func TestJournalCrash(t *testing.T) {
	t.Parallel()
	histories(t, 10, func(t *testing.T, rng *rand.Rand) {
		c := newCrash(t, rng)
		for range 2 {
			if state, err := c.open(t); err != nil || state != len(c.states)-1 {
				t.Fatalf("state %d of %d, %v", state, len(c.states)-1, err)
			}
		}
		if left := listDir(t, c.path()); left != "store" {
			t.Errorf("there is now %s", left)
		}
	})
}

// TestJournalCut cuts off the newest journal at any place, and removes the mark, which
// a power cut may lose. The store holds what was stored before the cut.
func TestJournalCut(t *testing.T) {
	t.Parallel()
	histories(t, 25, func(t *testing.T, rng *rand.Rand) {
		c := newCrash(t, rng)
		if c.end == 0 {
			return
		}
		whole := readFile(t, c.journal)
		cut := journalStart + rng.Int64N(c.end-journalStart)
		c.unmark(t)
		writeFile(t, c.journal, append(whole[:cut:cut], make([]byte, rng.IntN(100))...))
		state, err := c.open(t)
		if errors.Is(err, ErrJournalCut) { // the data file counts more: no power cut does that
			return
		}
		if err != nil || state < c.whole || state == len(c.states)-1 && !maps.Equal(c.states[state], c.states[state-1]) && c.end-cut > 8 {
			t.Errorf("cut at %d of %d: state %d of %d to %d, %v", cut, c.end, state, c.whole, len(c.states)-1, err)
		}
	})
}

// TestJournalDamaged flips a bit of a journal. If it hits the last batch, that batch
// may look cut off and be missing. Otherwise all is there or the store does not open.
func TestJournalDamaged(t *testing.T) {
	t.Parallel()
	histories(t, 40, func(t *testing.T, rng *rand.Rand) {
		c := newCrash(t, rng)
		names := JournalNames(c.path())
		name := names[rng.IntN(2)]
		b, err := os.ReadFile(name)
		if err != nil || len(b) == 0 {
			return
		}
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		writeFile(t, name, b)
		switch state, err := c.open(t); {
		case err != nil:
			if !strings.HasPrefix(err.Error(), c.path()+": journal damaged: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		case maps.Equal(c.states[state], c.states[len(c.states)-1]):
		case name == c.journal && state >= c.whole && maps.Equal(c.states[state], c.states[len(c.states)-2]):
		case name == c.journal && c.records == 1 && maps.Equal(c.states[state], c.states[c.whole]): // its header
		default:
			t.Errorf("%s damaged: state %d of %d", filepath.Base(name), state, len(c.states)-1)
		}
	})
}

// TestJournalMissing opens a file without the journal that it needs, and a whole file
// with the journal of another store.
func TestJournalMissing(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	c, other := newCrash(t, rng), newCrash(t, rng)
	for i, name := range JournalNames(c.path()) {
		b := readFile(t, name)
		os.Remove(name)
		_, err := c.open(t)
		if want := fmt.Sprintf("%s: store-journal%d is missing, and the file is not whole without it", c.path(), i+1); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		writeFile(t, name, b)
	}
	if state, err := c.open(t); err != nil || state != len(c.states)-1 {
		t.Errorf("state %d of %d, %v", state, len(c.states)-1, err)
	}
	// The file is whole by now: a journal beside it does not matter.
	names := JournalNames(other.path())
	for i, name := range JournalNames(c.path()) {
		writeFile(t, name, readFile(t, names[i]))
	}
	if state, err := c.open(t); err != nil || state != len(c.states)-1 {
		t.Errorf("with another store's journal: state %d of %d, %v", state, len(c.states)-1, err)
	}
}

// TestJournalTornBeginning cuts off the first record of a generation while the one
// before it is not in the file. That one stays frozen, so that its journal is not
// overwritten.
func TestJournalTornBeginning(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s := testStore(t, path, Options{})
	mustPut(t, s, "a", "1")
	tx, err := s.db.Begin(true) // no checkpoint
	if err != nil {
		t.Fatal(err)
	}
	s.writing.Lock()
	s.mu.Lock()
	if err := s.freeze(); err != nil {
		t.Fatal(err)
	}
	s.mu.Unlock()
	s.writing.Unlock()
	mustPut(t, s, "b", "2")
	image := filepath.Join(t.TempDir(), "store")
	names, copies := JournalNames(path), JournalNames(image)
	writeFile(t, image, readFile(t, path))
	writeFile(t, copies[0], readFile(t, names[0]))
	writeFile(t, copies[1], readFile(t, names[1])[:journalStart+recordHeader])
	(&crash{dir: filepath.Dir(image)}).unmark(t)
	tx.Rollback()

	s = testStore(t, image, Options{})
	s.mu.Lock()
	if ahead := s.journal.generation > s.kept.first; ahead != (s.frozen != nil) {
		t.Errorf("generation %d, the file lacks %d, a frozen memtable: %v", s.journal.generation, s.kept.first, s.frozen != nil)
	}
	s.mu.Unlock()
	mustPut(t, s, "c", "3")
	checkContents(t, s, map[string]string{"a": "1", "c": "3"})
}

// TestJournalFull writes a whole record that is reported as not stored, since the disk
// was full after it. Then the next generation begins.
func TestJournalFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	id := journalID{life: [16]byte{1}}
	j, err := beginJournal(path, id, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	add := func(key string) error { return j.append([]ordered.Change{{Key: key, Value: []byte("v")}}, func() {}) }
	if err := add("a"); err != nil {
		t.Fatal(err)
	}
	j.files[0] = fullFile{j.files[0]}
	if err := add("b"); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := j.next(1); err != nil {
		t.Fatal(err)
	}
	if err := add("c"); err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if j, err = openJournal(path, id, os.O_RDWR); err != nil {
		t.Fatal(err)
	}
	defer j.close()
	var got []string
	err = j.replay(journalState{first: 1, tx: 1}, func(generation uint64, changes []ordered.Change) {
		got = append(got, fmt.Sprint(generation, changes[0].Key))
	})
	if want := []string{"1a", "2c"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("replayed %q, want %q; %v", got, want, err)
	}
}

// A fullFile writes, and reports that the disk is full.
type fullFile struct{ journalFile }

func (f fullFile) WriteAt(b []byte, at int64) (int, error) {
	f.journalFile.WriteAt(b, at)
	return 0, syscall.ENOSPC
}

// TestJournalBeginError: if the journal of a file cannot be begun, the store fails
// unless a later write may succeed.
func TestJournalBeginError(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err     error
		passing bool
		reason  string
	}{
		{&fs.PathError{Op: "open", Path: "store-journal1", Err: syscall.ENOSPC}, true, "disk full"},
		{&fs.PathError{Op: "open", Path: "store-journal1", Err: syscall.EMFILE}, true, "too many connections"},
		{&fs.PathError{Op: "open", Path: "store-journal1", Err: syscall.EACCES}, true, "somebody's directory"},
		{&fs.PathError{Op: "open", Path: "store-journal1", Err: syscall.EIO}, false, "the disk is broken"},
		{&fs.PathError{Op: "open", Path: "store-journal1", Err: syscall.EROFS}, false, "the disk has been made read-only"},
		{errors.Join(&fs.PathError{Op: "sync", Path: ".", Err: syscall.EIO}, nil), false, "names may be lost"},
		{&fs.PathError{Op: "sync", Path: ".", Err: syscall.ENOSPC}, false, "names may be lost"},
	} {
		got := beginError(test.err)
		if errors.Is(got, ErrUnavailable) != test.passing || !errors.Is(got, test.err) {
			t.Errorf("%v: %v (%s)", test.err, got, test.reason)
		}
	}
}

// TestJournalRecords writes and reads one of each kind of change.
func TestJournalRecords(t *testing.T) {
	t.Parallel()
	changes := []ordered.Change{
		{Key: "k", Value: []byte("v")}, {Key: "empty", Value: []byte{}}, {Key: "gone"},
		{Key: strings.Repeat("k", ordered.MaxKey), Value: bytes.Repeat([]byte("v"), ordered.MaxValue)},
	}
	body := appendChanges(nil, changes)
	got, err := readChanges(body)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range changes {
		if got[i].Key != c.Key || !sameBytes(got[i].Value, c.Value) {
			t.Errorf("change %d is read otherwise", i+1)
		}
	}
	for cut := range 20 {
		if cut != 0 && cut != len("kv")+2 && cut != len("kvempty")+4 && cut != len("kvemptygone")+5 {
			if _, err := readChanges(body[:cut]); err == nil {
				t.Errorf("cut at %d: no error", cut)
			}
		}
	}
}

// TestJournalMark damages the end of a journal. If the mark counts what is lost, an
// error says so. Without the mark the damage looks like a batch that was cut off.
func TestJournalMark(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		marked bool
		damage func(c *crash, b []byte) []byte
		want   error // nil: opens without the last batch
	}{
		{"flipped", true, func(c *crash, b []byte) []byte { b[c.end-8] ^= 1; return b }, ErrJournalCut},
		{"cut", true, func(c *crash, b []byte) []byte { return b[:c.end-8] }, ErrJournalCut},
		{"no records left", true, func(_ *crash, b []byte) []byte { return b[:journalStart] }, ErrJournalCut},
		{"nothing left", true, func(*crash, []byte) []byte { return nil }, ErrJournalHeader},
		{"zeros", true, func(_ *crash, b []byte) []byte { clear(b); return b }, ErrJournalHeader},
		{"flipped, without a mark", false, func(c *crash, b []byte) []byte { b[c.end-8] ^= 1; return b }, nil},
	} {
		path := filepath.Join(t.TempDir(), "store")
		s := testStore(t, path, Options{})
		mustPut(t, s, "a", "1")
		mustPut(t, s, "b", "2")
		s.writing.Lock()
		c := &crash{dir: t.TempDir(), end: s.journal.end}
		names, copies := JournalNames(path), JournalNames(c.path())
		writeFile(t, c.path(), readFile(t, path))
		writeFile(t, copies[0], test.damage(c, readFile(t, names[0])))
		other := readFile(t, names[1])
		if !test.marked {
			clear(other[journalMark:])
		}
		writeFile(t, copies[1], other)
		s.writing.Unlock()
		opened, err := openStore(c.path(), Options{})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: error %v, want %v", test.name, err, test.want)
		}
		if err == nil {
			checkContents(t, opened, map[string]string{"a": "1"})
			opened.Close()
		}
	}
}

// TestJournalHeader damages the data file's header that says that there is a journal.
// The other header says that the file is whole.
func TestJournalHeader(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s := testStore(t, path, Options{})
	mustPut(t, s, "a", "1")
	image := filepath.Join(t.TempDir(), "store")
	names, copies := JournalNames(path), JournalNames(image)
	b := readFile(t, path)
	disktest.NewerHeader(b)[60] ^= 1
	writeFile(t, image, b)
	for i, name := range names {
		writeFile(t, copies[i], readFile(t, name))
	}
	if _, err := openStore(image, Options{}); !errors.Is(err, ErrFileOlder) {
		t.Errorf("error %v", err)
	}
	// A power cut before the header was written leaves a journal without records.
	for _, name := range copies {
		writeFile(t, name, readFile(t, name)[:journalStart/3])
	}
	checkContents(t, testStore(t, image, Options{}), map[string]string{})
}

// A shortFile has room for only a part of what is written.
type shortFile struct{ journalFile }

func (f shortFile) WriteAt(b []byte, at int64) (int, error) {
	n, _ := f.journalFile.WriteAt(b[:min(len(b), 1024)], at)
	return n, &os.PathError{Op: "write", Path: "store-journal2", Err: syscall.ENOSPC}
}

// TestJournalHeaderFull: the disk has room only for the part of the next generation's
// header that is read, and the checkpoint gives up. Later writes are not lost because
// of it.
func TestJournalHeaderFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s := testStore(t, path, Options{NoSync: true})
	mustPut(t, s, "a", "1")
	s.writing.Lock()
	before := s.journal.files[1]
	s.journal.files[1] = shortFile{before}
	s.writing.Unlock()
	s.freezeNow()
	put := func(tx Tx) error { return tx.Put([]byte("b"), []byte("2")) }
	if err := s.Update(t.Context(), put); !errors.Is(err, ErrUnavailable) {
		t.Errorf("on a full disk: %v", err)
	}
	s.writing.Lock()
	s.journal.files[1] = before
	s.writing.Unlock()
	if err := s.Update(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	files, _ := imageOf(t, s)
	image := filepath.Join(t.TempDir(), "store")
	writeImage(t, image, files)
	checkContents(t, testStore(t, image, Options{}), map[string]string{"a": "1", "b": "2"})
}

// TestCloseFailed: a File that fails when nobody looks at Failed any more does not close as if
// all were well, and keeps what was committed.
func TestCloseFailed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s, err := openStore(path, Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "a", "1")
	s.fail(syscall.EIO)
	if err := s.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("Close: %v, want %v", err, syscall.EIO)
	}
	checkContents(t, testStore(t, path, Options{}), map[string]string{"a": "1"})

	if s, err = openStore(filepath.Join(t.TempDir(), "unwritten"), Options{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	s.fail(syscall.EIO)
	if err := s.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("Close without a journal: %v, want %v", err, syscall.EIO)
	}
}

// An ailingFile cannot be written to.
type ailingFile struct {
	journalFile
	cause error
}

func (f ailingFile) WriteAt(b []byte, at int64) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "store-journal2", Err: f.cause}
}

// TestMarkFails: a lack of space for the mark has no consequence. After any other error
// the file has failed, though what was committed is stored.
func TestMarkFails(t *testing.T) {
	t.Parallel()
	for cause, fails := range map[error]bool{syscall.ENOSPC: false, syscall.EIO: true, syscall.EROFS: true} {
		s, err := openStore(filepath.Join(t.TempDir(), "store"), Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		mustPut(t, s, "a", "1")
		s.writing.Lock()
		whole := s.journal.files[1]
		s.journal.files[1] = ailingFile{whole, cause}
		s.writing.Unlock()
		mustPut(t, s, "a", "2")
		select {
		case err := <-s.Failed():
			if !fails || !errors.Is(err, cause) {
				t.Errorf("%v: failed: %v", cause, err)
			}
		default:
			if fails {
				t.Errorf("%v: has not failed", cause)
			}
		}
		s.writing.Lock()
		s.journal.files[1] = whole
		s.writing.Unlock()
		if err := s.Close(); errors.Is(err, cause) != fails {
			t.Errorf("%v: Close: %v", cause, err)
		}
	}
}

// A failingFile cannot be flushed.
type failingFile struct{ journalFile }

func (f failingFile) datasync() error { return syscall.EIO }

// TestFlushFails: after a failed flush of a memtable's first batch nothing is frozen, and a view has
// nothing of the batch. The file and its journal can be opened. So they can with a frozen memtable
// without entries.
func TestFlushFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s, err := openStore(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "a", "1")
	settle(s)
	s.writing.Lock()
	generation, whole := s.journal.generation, s.journal.files
	for i, f := range whole {
		s.journal.files[i] = failingFile{f}
	}
	s.writing.Unlock()
	if err := s.Commit([]ordered.Change{{Key: "a", Value: []byte("2")}}); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	s.freezeNow()
	if frozen, err := s.nextFrozen(); frozen != nil || err != nil || s.journal.generation != generation {
		t.Errorf("frozen %v, %v, generation %d of %d", frozen, err, s.journal.generation, generation)
	}
	if err := s.View(t.Context(), func(tx Tx) error {
		value, _, err := tx.Get([]byte("a"))
		if string(value) != "1" {
			t.Errorf("a view has %q", value)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	s.writing.Lock()
	s.journal.files = whole
	s.writing.Unlock()
	if err := s.journal.next(s.tx.Load()); err != nil { // a header after a generation without records
		t.Fatal(err)
	}
	s.Leave()
	again, err := openStore(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	await(func() bool {
		again.mu.Lock()
		defer again.mu.Unlock()
		return again.frozen == nil || again.broken.Load() != nil
	})
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestEmptyCommit: a batch without changes is stored, and leaves nothing to wait for.
func TestEmptyCommit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	for range 2 {
		s, err := openStore(path, Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(nil); err != nil {
			t.Error(err)
		}
		if err := s.ViewLong(t.Context(), func(Tx) error { return nil }); err != nil {
			t.Error(err)
		}
		if err := s.Leave(); err != nil {
			t.Error(err)
		}
	}
}
