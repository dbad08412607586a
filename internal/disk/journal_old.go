package disk

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
)

// An old journal is one that an earlier release left with a file that was not closed.
// It is only read. Its content is brought into the file before a journal of today's
// form is begun.
//
//	file:   header | record | record | …
//
//	header: | "sello-j1" | life, 16 | generation, 8 | records of the generation before, 8 | 0, 4 | CRC, 4 | mark |
//	mark:   | generation, 8 | records, 8 | CRC, 4 |
//
// Records are as they are today. The header is written together with its generation's
// first record. So if nothing has been written since the last checkpoint, the files
// hold the two generations before the one that the data file lacks.
const (
	oldMagic  = "sello-j1"
	oldMark   = 48
	oldHeader = 72
)

// openOldJournal opens the files of an old journal.
func openOldJournal(path string, life [16]byte) (*journal, error) {
	j, err := openFiles(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	j.life, j.end = life, oldHeader
	return j, nil
}

// replayOld is replay for an old journal.
func (j *journal) replayOld(first uint64, do func(generation uint64, key string, value []byte)) error {
	j.generation = first
	older, _, err := j.oldHeader(first)
	if err != nil {
		return err
	}
	newer, before, err := j.oldHeader(first + 1)
	switch {
	case err != nil:
		return err
	case older == first && newer == first+1:
	case older == first && (newer == first-1 || first == 1 && newer == 0):
		before = math.MaxUint64
	case older == first-2 && newer == first-1: // 0: the file never had a generation
		return j.checkOldMarks()
	default:
		return ErrJournalForeign
	}
	if err := j.replayOne(before, do); err != nil {
		return err
	}
	if before != math.MaxUint64 {
		if j.records != before {
			return ErrJournalPart
		}
		j.goOn()
		j.end = oldHeader
		if err := j.replayOne(math.MaxUint64, do); err != nil {
			return err
		}
	}
	return j.checkOldMarks()
}

// oldHeader reads the header of the file that a generation belongs in. It returns the
// generation that the file holds, 0 if it is empty, and how many records the one before
// has.
func (j *journal) oldHeader(generation uint64) (holds, before uint64, err error) {
	var b [oldHeader]byte
	switch _, err := j.fileOf(generation).ReadAt(b[:], 0); {
	case errors.Is(err, io.EOF):
		return 0, 0, nil
	case err != nil:
		return 0, 0, err
	}
	if string(b[:8]) != oldMagic || [16]byte(b[8:]) != j.life || binary.BigEndian.Uint32(b[44:]) != j.sum(b[:40]) {
		return 0, 0, ErrJournalHeader
	}
	return binary.BigEndian.Uint64(b[24:]), binary.BigEndian.Uint64(b[32:]), nil
}

func (j *journal) checkOldMarks() error {
	for _, f := range j.files {
		var b [20]byte
		if _, err := f.ReadAt(b[:], oldMark); err != nil {
			continue // an empty file
		}
		generation, records := binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])
		if binary.BigEndian.Uint32(b[16:]) == j.sum(b[:16]) &&
			(generation > j.generation || generation == j.generation && records > j.records) {
			return ErrJournalCut
		}
	}
	return nil
}

// anyJournal reports whether a journal, of any store and not empty, lies beside the file
// at path.
func anyJournal(path string) bool {
	for _, name := range JournalNames(path) {
		b := make([]byte, len(oldMagic))
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		n, _ := f.Read(b)
		f.Close()
		if string(b[:n]) == oldMagic || string(b[:n]) == journalMagic {
			return true
		}
	}
	return false
}
