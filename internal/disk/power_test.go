package disk

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"sello/internal/disk/disktest"
	"sello/internal/ordered"
)

// powerRandom returns a source of randomness and logs its seed.
func powerRandom(t *testing.T) *rand.Rand {
	s := cmp.Or(*powerSeed, rand.Uint64())
	t.Logf("-power.seed=%d", s)
	return rand.New(rand.NewPCG(s, 0))
}

// A recordedFile is a file of a journal that records its history.
type recordedFile struct {
	journalFile
	clock *int
	file  *disktest.DiskFile
	lazy  bool // it reports a sync without doing it
}

func (f *recordedFile) WriteAt(b []byte, at int64) (int, error) {
	*f.clock += 2
	f.file.Changes = append(f.file.Changes, disktest.FileChange{Span: disktest.Span{Start: *f.clock - 2, End: *f.clock - 1}, At: at, Data: bytes.Clone(b)})
	return f.journalFile.WriteAt(b, at)
}

func (f *recordedFile) datasync() error {
	*f.clock += 2
	if !f.lazy {
		f.file.Syncs = append(f.file.Syncs, disktest.Span{Start: *f.clock - 2, End: *f.clock - 1})
	}
	return nil
}

// TestPowerJournal cuts the power of a journal. Every batch that was reported as stored
// is there, in order, and at most one more. As a control it runs with files that do not
// sync.
func TestPowerJournal(t *testing.T) {
	rng, dir := powerRandom(t), disktest.MemoryDir(t)
	images := max(400, *powerImages)
	for i := range images {
		if err := powerJournal(t, dir, rng, false); err != nil {
			t.Fatalf("image %d: %v", i+1, err)
		}
	}
	for range 400 {
		if err := powerJournal(t, dir, rng, true); err != nil {
			t.Logf("without sync: %v", err)
			return
		}
	}
	t.Error("without sync nothing is lost")
}

func powerJournal(t *testing.T, dir string, rng *rand.Rand, lazy bool) error {
	path := filepath.Join(dir, "store")
	for _, name := range JournalNames(path) {
		os.Remove(name)
	}
	j, err := openFiles(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		t.Fatal(err)
	}
	id := journalID{life: [16]byte{1}}
	j.journalID, j.sync, j.generation, j.end = id, true, 1, journalStart
	var clock int
	var files [2]*disktest.DiskFile
	for i, f := range j.files {
		files[i] = new(disktest.DiskFile)
		j.files[i] = &recordedFile{f, &clock, files[i], lazy}
	}
	if err := errors.Join(j.putHeader(0, 1), j.putHeader(1, 1)); err != nil {
		t.Fatal(err)
	}
	started := clock             // from here on the data file says that it needs the journal
	acknowledged := []int{clock} // lines
	first := []int{0, 1}         // first batch of each generation
	begun := []int{0, clock}     // when each generation was begun
	for n := 1; n < 5+rng.IntN(20); n++ {
		if rng.IntN(5) == 0 && j.records > 0 {
			begun = append(begun, clock)
			if err := j.next(1); err != nil {
				t.Fatal(err)
			}
			first = append(first, n)
		}
		if err := j.append([]ordered.Change{{Key: strconv.Itoa(n), Value: make([]byte, rng.IntN(10)*rng.IntN(1000))}}); err != nil {
			t.Fatal(err)
		}
		acknowledged = append(acknowledged, clock)
	}
	generation := j.generation
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	cut := clock - rng.IntN(min(clock-started+1, 12))
	how := disktest.NewTearing(rng)
	for i, name := range JournalNames(path) {
		os.Remove(name)
		s, _ := files[i].At(cut, how)
		if err := s.Save(name); err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	for told+1 < len(acknowledged) && acknowledged[told+1] <= cut {
		told++
	}
	// The data file holds everything before the generation that precedes the last one
	// begun.
	oldest := uint64(1)
	for g := generation; g > 1; g-- {
		if begun[g] < cut {
			oldest = g - 1
			break
		}
	}
	if j, err = openJournal(path, id); err != nil {
		return err
	}
	defer j.close()
	want := first[oldest]
	stray := ""
	err = j.replay(journalState{first: oldest, tx: 1}, func(_ uint64, key string, _ []byte) {
		if key != strconv.Itoa(want) {
			stray = key
		}
		want++
	})
	if err == nil && stray != "" {
		err = fmt.Errorf("batch %s is out of turn", stray)
	}
	if err != nil {
		return err
	}
	if got := want - 1; got < told || got > told+1 {
		return fmt.Errorf("batches up to %d of %d", got, told)
	}
	return nil
}
