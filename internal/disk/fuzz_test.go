package disk

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sello/internal/ordered"
)

// A memFile is a journal's file in memory.
type memFile struct{ b []byte }

func (f *memFile) ReadAt(b []byte, at int64) (int, error) { return bytes.NewReader(f.b).ReadAt(b, at) }

func (f *memFile) WriteAt(b []byte, at int64) (int, error) {
	if n := int(at) + len(b); n > len(f.b) {
		f.b = append(f.b, make([]byte, n-len(f.b))...)
	}
	return copy(f.b[at:], b), nil
}

func (f *memFile) Close() error    { return nil }
func (f *memFile) datasync() error { return nil }

func memJournal(files [2]journalFile) *journal {
	return &journal{journalID: journalID{life: [16]byte{1, 2, 3}}, files: files, generation: 1, end: journalStart, sync: true}
}

// journalFault writes a journal of some records, overwrites a part of it with a patch,
// cuts it off and reads it. It must read the first records: all that lie before the
// damage, and none or all if the damage is not at the end. The result says what is
// wrong.
func journalFault(replay func(*journal, func(uint64, []ordered.Change)) error, sizes []byte, at uint16, patch []byte, cut uint16) string {
	if len(sizes) > 50 {
		sizes = sizes[:50]
	}
	file := new(memFile)
	other := new(memFile)
	j := memJournal([2]journalFile{file, other})
	if err := errors.Join(j.putHeader(0, 1), j.putHeader(1, 1)); err != nil {
		return err.Error()
	}
	var ends []int
	for i, size := range sizes {
		if err := j.append([]ordered.Change{{Key: fmt.Sprint("key", i), Value: bytes.Repeat([]byte{byte(i)}, int(size))}, {Key: "gone"}}, func() {}); err != nil {
			return err.Error()
		}
		ends = append(ends, int(j.end))
	}
	if len(ends) == 0 {
		return ""
	}
	whole := bytes.Clone(file.b)
	last := ends[len(ends)-1]
	start := int(at) % last
	damage := min(start+len(patch), last)
	copy(file.b[start:last], patch)
	if cut != 0 {
		file.b = file.b[:len(file.b)-int(cut)%len(file.b)]
	}
	first := 0 // the first changed byte
	for first < last && first < len(file.b) && file.b[first] == whole[first] {
		first++
	}
	untouched, _ := slices.BinarySearch(ends, first+1) // records before it
	var got []string
	err := replay(memJournal([2]journalFile{file, other}), func(_ uint64, changes []ordered.Change) {
		for _, c := range changes {
			if c.Value != nil {
				got = append(got, fmt.Sprint(c.Key, " ", len(c.Value)))
			}
		}
	})
	if err != nil {
		if first >= last {
			return "nothing is damaged: " + err.Error()
		}
		return ""
	}
	var want []string
	for i, size := range sizes {
		want = append(want, fmt.Sprint("key", i, " ", size))
	}
	switch n := len(got); {
	case n > len(want) || !slices.Equal(got, want[:n]):
		return fmt.Sprintf("read %q, wrote %q", got, want)
	case n < untouched && first >= journalStart:
		return fmt.Sprintf("read %d records, %d are undamaged", n, untouched)
	case n < len(want) && len(file.b) >= last && len(want) > 1 && damage <= ends[len(ends)-2] && (n > 0 || len(want) > 1):
		return fmt.Sprintf("read %d of %d records, though the last is whole", n, len(want))
	}
	return ""
}

func replayJournal(j *journal, do func(uint64, []ordered.Change)) error {
	return j.replay(journalState{first: 1, tx: 1}, do)
}

// FuzzJournal damages journals, and reads any bytes as the body of a record.
func FuzzJournal(f *testing.F) {
	f.Add([]byte{0, 1, 200, 3}, uint16(0), []byte(nil), uint16(0))
	f.Add([]byte{0, 1, 200, 3}, uint16(60), []byte("x"), uint16(0))
	f.Add([]byte{0, 1, 200, 3}, uint16(60), []byte(nil), uint16(65600-65536))
	f.Add([]byte{9}, uint16(3), []byte("x"), uint16(0))
	f.Add([]byte{9, 9}, uint16(3), []byte("x"), uint16(0))
	f.Add([]byte{255, 255, 255}, uint16(500), []byte(strings.Repeat("y", 300)), uint16(1))
	f.Add(appendChanges(nil, []ordered.Change{{Key: "k", Value: []byte("v")}, {Key: "gone"}, {Key: "empty", Value: []byte{}}}), uint16(1000), []byte("\x00\x00"), uint16(9))
	f.Fuzz(func(t *testing.T, sizes []byte, at uint16, patch []byte, cut uint16) {
		if fault := journalFault(replayJournal, sizes, at, patch, cut); fault != "" {
			t.Errorf("sizes %d, at %d %q, cut %d: %s", sizes, at, patch, cut, fault)
		}
		for _, body := range [][]byte{sizes, patch} {
			read, err := readChanges(body)
			if err != nil {
				continue
			}
			again, err := readChanges(appendChanges(nil, read))
			if err != nil || !reflect.DeepEqual(read, again) {
				t.Errorf("%x reads as %q, which is written and reads as %q (%v)", body, read, again, err)
			}
		}
	})
}

// TestFuzzJournalControl: FuzzJournal finds faults in a reader that takes damage of a
// journal for its end.
func TestFuzzJournalControl(t *testing.T) {
	t.Parallel()
	journals := func(replay func(*journal, func(uint64, []ordered.Change)) error) (faults int) {
		for at := range uint16(400) {
			if journalFault(replay, []byte{9, 9, 9}, journalStart+at, []byte{0xaa}, 0) != "" {
				faults++
			}
		}
		return faults
	}
	unsuspecting := func(j *journal, do func(uint64, []ordered.Change)) error { // takes any end for a batch cut off
		if err := replayJournal(j, func(uint64, []ordered.Change) {}); err != nil {
			return nil
		}
		*j = *memJournal(j.files)
		return replayJournal(j, do)
	}
	if sound, broken := journals(replayJournal), journals(unsuspecting); sound > 0 || broken == 0 {
		t.Errorf("%d faults, %d where there are some", sound, broken)
	}
}
