package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/disk/disktest"
	"sello/internal/ordered/orderedtest"
)

// What people do with the files of a store: copy some of them at different times, put
// them together again, and open them while another process closes them.

// A diary is a store with a record of its content after each update.
type diary struct {
	*store
	model  orderedtest.Model
	states []map[string]string
}

func newDiary(t *testing.T, rng *rand.Rand) *diary {
	path := filepath.Join(t.TempDir(), "store")
	s := testStore(t, path, Options{NoSync: true, MemSize: 500 + rng.IntN(20_000), MemAge: time.Hour, Dense: "0"})
	key := func(rng *rand.Rand) string { return fmt.Sprintf("%03d", rng.IntN(300)) }
	return &diary{s, orderedtest.Model{Rng: rng, Entries: map[string]string{}, Key: key}, []map[string]string{{}}}
}

// write makes n updates. Each sets one key to its number, so that no two states
// are equal.
func (d *diary) write(t *testing.T, n int) {
	t.Helper()
	for range n {
		entries := maps.Clone(d.model.Entries)
		entries["n"] = strconv.Itoa(len(d.states))
		err := d.Update(t.Context(), func(tx Tx) error {
			d.model.Entries = maps.Clone(entries)
			return errors.Join(tx.Put([]byte("n"), []byte(entries["n"])), d.model.Play(tx, 1+d.model.Rng.IntN(10)))
		})
		if err != nil {
			t.Fatal(err)
		}
		d.states = append(d.states, maps.Clone(d.model.Entries))
	}
}

func (d *diary) last() int { return len(d.states) - 1 }

// image is imageOf without the pages at the end that were never used.
func (d *diary) image(t *testing.T) [3][]byte {
	t.Helper()
	files, _ := imageOf(t, d.store)
	files[0] = disktest.UsedPages(files[0])
	return files
}

// open opens files, of which nil is a missing one, and returns which state they hold.
// An error says that they do not open, or that a check of them fails.
func (d *diary) open(t *testing.T, files [3][]byte) (state int, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store")
	writeImage(t, path, files)
	s, err := openStore(path, Options{NoSync: true, ShortMap: true})
	if err != nil {
		return 0, err
	}
	defer s.Leave()
	err = s.View(t.Context(), func(tx Tx) error {
		_, err := tx.(readTx).Check(context.Background(), 2)
		return err
	})
	if err != nil {
		return 0, err
	}
	var got map[string]string
	s.View(t.Context(), func(tx Tx) error {
		got = contents(t, tx)
		return nil
	})
	state, _ = strconv.Atoi(got["n"])
	if !maps.Equal(got, d.states[state]) {
		t.Fatalf("opened with what is no state that ever was, and like %d", state)
	}
	return state, nil
}

// TestMixedCopies puts together files of different moments and of two stores. They do
// not open, or they hold all that was stored when the newest of them was copied.
func TestMixedCopies(t *testing.T) {
	t.Parallel()
	counts := map[bool]int{} // by whether they open
	var mu sync.Mutex        // guards counts
	histories(t, 6, func(t *testing.T, rng *rand.Rand) {
		d, other := newDiary(t, rng), newDiary(t, rng)
		other.write(t, 20)
		foreign := other.image(t)
		var copies []copiedFiles
		for range 8 {
			d.write(t, 1+rng.IntN(60))
			copies = append(copies, copiedFiles{d.image(t), d.last()})
		}
		// since returns a state that was stored before a file became what it is in a
		// copy. The data file may have been written just after the copy before.
		since := func(file, at int) int {
			first := at
			for first > 0 && bytes.Equal(copies[first-1].files[file], copies[at].files[file]) {
				first--
			}
			if file == 0 && first > 0 {
				first--
			}
			return copies[first].state
		}
		for range 40 {
			m := mixFiles(rng, copies, foreign, since)
			if m.files[0] == nil || bytes.Equal(m.files[0], foreign[0]) {
				continue
			}
			state, err := d.open(t, m.files)
			if err == nil && (state < m.least || m.strange) {
				t.Errorf("file and journals of%s: opened with state %d, want %d at least", m.said, state, m.least)
			}
			mu.Lock()
			counts[err == nil]++
			mu.Unlock()
		}
	})
	t.Cleanup(func() { t.Logf("%d opened, %d did not", counts[true], counts[false]) })
}

// A copiedFiles is a copy of a store's files, and the state that they held.
type copiedFiles struct {
	files [3][]byte
	state int
}

// A mixedFiles is a store's files from copies of different moments.
type mixedFiles struct {
	files   [3][]byte
	least   int    // the state that they have at least
	strange bool   // one of them is not of the store
	said    string // where they are from
}

// mixFiles puts together files of copies, of another store, empty ones and none.
func mixFiles(rng *rand.Rand, copies []copiedFiles, foreign [3][]byte, since func(file, at int) int) (m mixedFiles) {
	together := rng.IntN(len(copies))
	for i := range m.files {
		at := together
		if rng.IntN(2) == 0 {
			at = rng.IntN(len(copies))
		}
		switch m.files[i] = copies[at].files[i]; rng.IntN(12) {
		case 0:
			m.files[i], m.strange = foreign[i], true
			m.said += " foreign"
		case 1:
			m.files[i], m.strange = nil, true
			m.said += " none"
		case 2:
			m.files[i], m.strange = []byte{}, true
			m.said += " empty"
		default:
			m.least = max(m.least, since(i, at))
			m.said += fmt.Sprint(" ", copies[at].state)
		}
	}
	return m
}

// TestCopyWhileRunning copies the files, as cp does, while they are written to. The
// copy is refused, or holds all that was stored when the copying began.
func TestCopyWhileRunning(t *testing.T) {
	t.Parallel()
	histories(t, 12, func(t *testing.T, rng *rand.Rand) {
		d := newDiary(t, rng)
		d.write(t, 1+rng.IntN(200))
		begun := d.last()
		var files [3][]byte
		order := []int{0, 1, 2}
		if rng.IntN(2) == 0 {
			order = rng.Perm(3)
		}
		for _, i := range order {
			files[i] = d.copyWhile(t, storeFiles(d.path)[i])
		}
		state, err := d.open(t, files)
		if err == nil && state < begun {
			t.Errorf("copied in the order %v: opened with state %d of %d", order, state, begun)
		}
	})
}

// copyWhile copies a file in pieces and writes to the store between them.
func (d *diary) copyWhile(t *testing.T, name string) (b []byte) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		piece := make([]byte, 16<<10)
		n, err := f.Read(piece)
		b = append(b, piece[:n]...)
		if err != nil {
			return b
		}
		if len(b) < 1<<20 {
			d.write(t, 1+d.model.Rng.IntN(5))
		}
	}
}

// TestCloseReleasesLast: while a store is being closed and removes its journal, nobody
// else can open the file. Otherwise the journal that they begin would be removed.
func TestCloseReleasesLast(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	removed := 0
	s := testStore(t, path, Options{remove: func(name string) error {
		removed++
		if other, err := openStore(path, Options{lockWait: time.Nanosecond}); err == nil {
			t.Errorf("the file is open before %s is gone", filepath.Base(name))
			other.Leave()
		} else if !strings.HasSuffix(err.Error(), "another process has it open") {
			t.Error(err)
		}
		return os.Remove(name)
	}})
	mustPut(t, s, "k", "v")
	waiting := make(chan error)
	go func() { // waits for the file and writes at once
		other, err := openStore(path, Options{lockWait: forever})
		if err == nil {
			err = other.Update(context.Background(), func(tx Tx) error { return tx.Put([]byte("l"), []byte("w")) })
			err = errors.Join(err, other.Leave()) // as after a kill
		}
		waiting <- err
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Fatal(err)
	}
	if removed != 2 {
		t.Errorf("%d files removed, want 2", removed)
	}
	checkContents(t, testStore(t, path, Options{}), map[string]string{"k": "v", "l": "w"})
}
