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
	t.Parallel()
	rng, dir := powerRandom(t), disktest.MemoryDir(t)
	images := max(smaller(400, 100), *powerImages)
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
	r := recordJournal(t, path, rng, lazy)
	cut := r.clock - rng.IntN(min(r.clock-r.started+1, 12))
	how := disktest.NewTearing(rng)
	for i, name := range JournalNames(path) {
		os.Remove(name)
		s, _ := r.files[i].At(cut, how)
		if err := s.Save(name); err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	for told+1 < len(r.acknowledged) && r.acknowledged[told+1] <= cut {
		told++
	}
	// The data file holds everything before the generation that precedes the last one
	// begun.
	oldest := uint64(1)
	for g := r.generation; g > 1; g-- {
		if r.begun[g] < cut {
			oldest = g - 1
			break
		}
	}
	return r.compare(path, oldest, told)
}

// A journalRecord is the history of a journal, in which batch n has the key n. Times are
// lines of the log.
type journalRecord struct {
	id           journalID
	files        [2]*disktest.DiskFile
	clock        int
	started      int   // from here on the data file says that it needs the journal
	acknowledged []int // when each batch was stored
	first        []int // first batch of each generation
	begun        []int // when each generation was begun
	generation   uint64
}

// recordJournal writes some batches to a new journal.
func recordJournal(t *testing.T, path string, rng *rand.Rand, lazy bool) *journalRecord {
	for _, name := range JournalNames(path) {
		os.Remove(name)
	}
	j, err := openFiles(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		t.Fatal(err)
	}
	r := &journalRecord{id: journalID{life: [16]byte{1}}}
	j.journalID, j.sync, j.generation, j.end = r.id, true, 1, journalStart
	for i, f := range j.files {
		r.files[i] = new(disktest.DiskFile)
		j.files[i] = &recordedFile{f, &r.clock, r.files[i], lazy}
	}
	if err := errors.Join(j.putHeader(0, 1), j.putHeader(1, 1)); err != nil {
		t.Fatal(err)
	}
	r.started, r.acknowledged = r.clock, []int{r.clock}
	r.first, r.begun = []int{0, 1}, []int{0, r.clock}
	for n := 1; n < 5+rng.IntN(20); n++ {
		if rng.IntN(5) == 0 && j.records > 0 {
			r.begun = append(r.begun, r.clock)
			if err := j.next(1); err != nil {
				t.Fatal(err)
			}
			r.first = append(r.first, n)
		}
		if err := j.append([]ordered.Change{{Key: strconv.Itoa(n), Value: make([]byte, rng.IntN(10)*rng.IntN(1000))}}, func() {}); err != nil {
			t.Fatal(err)
		}
		r.acknowledged = append(r.acknowledged, r.clock)
	}
	r.generation = j.generation
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	return r
}

// compare reads the journal at path from a generation on. There must be the batches up to
// told, and at most one more.
func (r *journalRecord) compare(path string, oldest uint64, told int) error {
	j, err := openJournal(path, r.id, os.O_RDWR)
	if err != nil {
		return err
	}
	defer j.close()
	want := r.first[oldest]
	stray := ""
	err = j.replay(journalState{first: oldest, tx: 1}, func(_ uint64, changes []ordered.Change) {
		if key := changes[0].Key; key != strconv.Itoa(want) {
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
