package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"sello/internal/ordered"
)

// A journal makes a write durable before it reaches the data file: one record per
// batch, one flush. It has two files that take turns, so that one can be written while
// the other is brought into the data file. What one file holds at a time is a
// generation. Generations count from 1, the odd ones in the first file. The next one
// begins only when the one before the last is completely in the data file. Files are
// written over, not made anew: a flush then writes only data, which takes half the
// time.
//
//	file:   header | header | mark | record | record | …, then what is left of older generations
//
//	header: | "sello-j2" | file, 16 | life, 16 | generation, 8 | records of the generation before, 8 | transaction, 8 | CRC, 4 |
//	mark:   | generation, 8 | records, 8 | transaction, 8 | CRC, 4 |
//	record: | length of the body, 4 | CRC, 4 | generation, 8 | number from 1 on, 8 | body | 0 up to a multiple of 8 |
//	body:   entries: | length of the key × 2, + 1 if it was deleted | key | length of the value | value |
//
// Each header and the mark have a block of 4,096 bytes of their own. Numbers are
// big-endian, lengths in a body varints. A CRC is the CRC-32C of the journal's life and
// of the header, mark or record without the CRC and without the zeros. The life is
// random and unknown outside, so no value that a client sends can pass for a record.
//
// A generation's header is on disk before the generation's first record, and before the
// data file says that it lacks the generation. It overwrites the older of its file's
// two headers: if a power cut tears it, the newer of the two is left. So while the data
// file needs its journal both files have a header, of two generations in a row, and
// both are of this data file and of this life of its journal. A file without a header,
// or with that of another journal, is refused.
//
// The transaction is the data file's (bbolt's) at which the header or the mark was
// written. A data file that has not come so far is an older one.
//
// The mark is in the file that is not being written to, and is not flushed. It says how
// many records there are, so that a missing end of the journal is noticed. A power cut
// may lose the mark, but not the records that it counts.
//
// A record is begun only when the one before it is on disk. So if the newest generation
// goes on with something that is no record, the last batch was cut off, and nobody was
// told that it was stored. But if a later record is found, if an older generation is
// not whole, or if the mark counts more, the journal was damaged.
type journal struct {
	journalID
	files [2]journalFile // opened describes them
	sync  bool

	opened [2]fs.FileInfo

	generation uint64
	records    uint64    // of the generation
	end        int64     // where the last of them ends
	before     uint64    // records of the generation before
	endBefore  int64     // where the last of those ends
	torn       bool      // the next header, with this one's number of records, may be there in part
	marked     [3]uint64 // what the mark says

	grown   [2]int64 // length of each file, as far as this process has written it
	buf     []byte
	markBuf [28]byte
}

// A journalID says what a journal belongs to.
type journalID struct {
	file [16]byte // of the data file; a backup has another one
	life [16]byte // random; new whenever a journal is begun
}

// A journalFile is what a journal needs of a file.
type journalFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	datasync() error // returns when what was written is on disk
}

type osFile struct{ *os.File }

func (f osFile) datasync() error { return fdatasync(f.File) }

const (
	journalMagic  = "sello-j2"
	journalBlock  = 4096             // the most that a disk may tear
	journalMark   = 2 * journalBlock // its offset
	journalStart  = 3 * journalBlock // offset of the first record
	journalHeader = 68
	recordHeader  = 24
	journalGrowth = 64 << 10
)

// JournalNames are the names of the two files of the journal of the data file at path.
func JournalNames(path string) [2]string {
	return [2]string{path + "-journal1", path + "-journal2"}
}

// fileOf returns the file that holds a generation.
func (j *journal) fileOf(generation uint64) journalFile { return j.files[(generation+1)%2] }

// beginJournal makes the files of a new journal for the store at path. When it returns
// they are on disk, with the headers of generation 0, which is empty, and of generation
// 1. The data file will say in transaction tx that it needs them.
func beginJournal(path string, id journalID, tx uint64, sync bool) (*journal, error) {
	j, err := openFiles(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	j.journalID, j.sync, j.generation, j.end = id, sync, 1, journalStart
	err = errors.Join(j.putHeader(0, tx), j.putHeader(1, tx))
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

// openJournal opens the files of the journal of the store at path.
func openJournal(path string, id journalID, flags int) (*journal, error) {
	j, err := openFiles(path, flags)
	if err != nil {
		return nil, err
	}
	j.journalID, j.sync, j.end = id, true, journalStart
	return j, nil
}

func openFiles(path string, flags int) (*journal, error) {
	j := new(journal)
	for i, name := range JournalNames(path) {
		f, err := os.OpenFile(name, flags, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			err = &MissingJournalError{filepath.Base(name)}
		}
		if err != nil {
			j.close()
			return nil, err
		}
		j.files[i] = osFile{f}
		if j.opened[i], err = f.Stat(); err != nil {
			j.close()
			return nil, err
		}
	}
	return j, nil
}

func (j *journal) close() error {
	var errs []error
	for _, f := range j.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// append makes the changes of one batch durable. When they are written it calls meanwhile, and
// flushes them at the same time. After an error of the write nothing was stored, meanwhile was not
// called, and the next batch takes its place. After any other error the outcome is unknown.
func (j *journal) append(changes []ordered.Change, meanwhile func()) error {
	b := append(j.buf[:0], make([]byte, recordHeader)...)
	binary.BigEndian.PutUint64(b[8:], j.generation)
	binary.BigEndian.PutUint64(b[16:], j.records+1)
	b = appendChanges(b, changes)
	binary.BigEndian.PutUint32(b, uint32(len(b)-recordHeader))
	binary.BigEndian.PutUint32(b[4:], j.sum(b[:4], b[8:]))
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	end := j.end + int64(len(b))
	grown := &j.grown[(j.generation+1)%2]
	if end > *grown && len(b) < journalGrowth/8 {
		// The file grows by more than it has to: writing where it was written before
		// takes half the time.
		b = append(b, make([]byte, journalGrowth)...)
	}
	j.buf = b
	f := j.fileOf(j.generation)
	if _, err := f.WriteAt(b, j.end); err != nil {
		return err
	}
	*grown = max(*grown, j.end+int64(len(b)))
	flushed := make(chan error, 1)
	go func() { flushed <- j.flush(f) }()
	meanwhile()
	if err := <-flushed; err != nil {
		return err
	}
	j.records++
	j.end = end
	return nil
}

func (j *journal) flush(f journalFile) error {
	if !j.sync {
		return nil
	}
	if err := f.datasync(); err != nil {
		return fmt.Errorf("journal: sync: %w", err)
	}
	return nil
}

// next begins the next generation, in the other file, at transaction tx of the data
// file. Its errors are those of append. After an error, nothing may be appended until
// next has succeeded.
func (j *journal) next(tx uint64) error {
	before := j.before
	j.before, j.torn = j.records, true
	if err := j.putHeader(j.generation+1, tx); err != nil {
		j.before = before
		return err
	}
	j.torn = false
	j.goOn()
	return nil
}

func (j *journal) goOn() {
	j.generation, j.before, j.endBefore = j.generation+1, j.records, j.end
	j.records, j.end = 0, journalStart
}

// putHeader makes the header of a generation durable. It writes the whole block, so
// that the disk has room for the block from the first time on.
func (j *journal) putHeader(generation, tx uint64) error {
	b := append(make([]byte, 0, journalBlock), journalMagic...)
	b = append(append(b, j.file[:]...), j.life[:]...)
	b = binary.BigEndian.AppendUint64(b, generation)
	b = binary.BigEndian.AppendUint64(b, j.before)
	b = binary.BigEndian.AppendUint64(b, tx)
	b = binary.BigEndian.AppendUint32(b, j.sum(b))
	f := j.fileOf(generation)
	if _, err := f.WriteAt(b[:journalBlock], int64(generation/2%2)*journalBlock); err != nil {
		return err
	}
	return j.flush(f)
}

// mark writes the mark, at transaction tx of the data file. Nothing depends on the
// mark. But an error means that the next generation's file cannot be written to.
func (j *journal) mark(tx uint64) error {
	now := [3]uint64{j.generation, j.records, tx}
	if j.marked == now {
		return nil
	}
	b := j.markBuf[:]
	for i, n := range now {
		binary.BigEndian.PutUint64(b[8*i:], n)
	}
	binary.BigEndian.PutUint32(b[24:], j.sum(b[:24]))
	if _, err := j.fileOf(j.generation+1).WriteAt(b, journalMark); err != nil {
		return err
	}
	j.marked = now
	return nil
}

// checkMarks returns an error if a mark counts more than was found, or is of a later
// transaction than tx, the data file's.
func (j *journal) checkMarks(tx uint64) error {
	for _, f := range j.files {
		var b [28]byte
		if _, err := f.ReadAt(b[:], journalMark); err == io.EOF {
			continue
		} else if err != nil {
			return err
		}
		if binary.BigEndian.Uint32(b[24:]) != j.sum(b[:24]) {
			continue
		}
		generation, records := binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])
		if generation > j.generation || generation == j.generation && records > j.records {
			return ErrJournalCut
		}
		if binary.BigEndian.Uint64(b[16:]) > tx {
			return ErrFileOlder
		}
	}
	return nil
}

func (j *journalID) sum(parts ...[]byte) uint32 {
	sum := crc32.Checksum(j.life[:], castagnoli)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendChanges(b []byte, changes []ordered.Change) []byte {
	for _, c := range changes {
		if c.Value == nil {
			b = binary.AppendUvarint(b, uint64(len(c.Key))<<1|1)
			b = append(b, c.Key...)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(c.Key))<<1)
		b = append(b, c.Key...)
		b = binary.AppendUvarint(b, uint64(len(c.Value)))
		b = append(b, c.Value...)
	}
	return b
}

// readChanges returns the changes of a record's body. The values are parts of the body.
func readChanges(body []byte) (changes []ordered.Change, err error) {
	take := func(n uint64) []byte {
		if n > uint64(len(body)) {
			body = nil
			return nil
		}
		b := body[:n:n]
		body = body[n:]
		return b
	}
	number := func() (uint64, bool) {
		v, n := binary.Uvarint(body)
		if n <= 0 {
			return 0, false
		}
		body = body[n:]
		return v, true
	}
	for len(body) > 0 {
		k, ok := number()
		key := take(k >> 1)
		if !ok || len(key) == 0 {
			return nil, ErrJournalRecord
		}
		if k&1 == 1 {
			changes = append(changes, ordered.Change{Key: string(key)})
			continue
		}
		v, ok := number()
		value := take(v)
		if !ok || uint64(len(value)) != v {
			return nil, ErrJournalRecord
		}
		changes = append(changes, ordered.Change{Key: string(key), Value: value[:v:v]})
	}
	return changes, nil
}

// replay reads what the data file lacks from the journal, oldest first: at most two
// generations. It calls do with the changes of each batch. The journal then goes on where its last
// generation ends.
func (j *journal) replay(file journalState, do func(generation uint64, changes []ordered.Change)) error {
	j.generation = file.first
	older, err := j.header(file.first, file.tx)
	if err != nil {
		return err
	}
	newer, err := j.header(file.first+1, file.tx)
	switch {
	case err != nil:
		return err
	case older.generation != file.first || newer.generation != file.first+1 && newer.generation != file.first-1:
		return ErrJournalForeign
	}
	last, goesOn := uint64(math.MaxUint64), newer.generation > file.first
	if goesOn {
		last = newer.before
	}
	if file.records > 0 && file.records != last {
		return ErrJournalPart
	}
	if err := j.replayOne(last, do); err != nil {
		return err
	}
	if file.records == 0 && j.records < file.least {
		return ErrJournalCut
	}
	if goesOn {
		if j.records != last {
			return ErrJournalPart
		}
		j.goOn()
		if err := j.replayOne(math.MaxUint64, do); err != nil {
			return err
		}
	} else if b, err := contentOf(j.fileOf(j.generation + 1)); err != nil {
		return err
	} else if j.holds(b, j.generation+1, 1) {
		return ErrJournalHeader
	}
	if file.records > 0 && j.records < file.least {
		return ErrJournalCut
	}
	if err := j.checkMarks(file.tx); err != nil {
		return err
	}
	return j.flushAll()
}

// flushAll makes durable what was read: its writer may have been killed before the
// flush.
func (j *journal) flushAll() error { return errors.Join(j.flush(j.files[0]), j.flush(j.files[1])) }

// A generationHeader is what the header of a generation says.
type generationHeader struct {
	journalID
	generation, before, tx uint64
}

// header reads the newest header of the file that holds a generation. It must be
// this journal's, and not of a later transaction of the data file than tx.
func (j *journal) header(generation, tx uint64) (newest generationHeader, err error) {
	found, err := readHeaders(j.fileOf(generation))
	if err != nil {
		return newest, err
	}
	if len(found) == 0 {
		return newest, ErrJournalHeader
	}
	for _, h := range found {
		switch {
		case h.journalID != j.journalID:
			return newest, ErrJournalForeign
		case h.tx > tx:
			return newest, ErrFileOlder
		case newest.journalID != j.journalID || h.generation > newest.generation:
			newest = h
		}
	}
	return newest, nil
}

// readHeaders reads the headers of a journal's file that are whole.
func readHeaders(f io.ReaderAt) (list []generationHeader, err error) {
	for block := range int64(2) {
		var b [journalHeader]byte
		if _, err := f.ReadAt(b[:], block*journalBlock); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		h := generationHeader{
			journalID{[16]byte(b[8:]), [16]byte(b[24:])},
			binary.BigEndian.Uint64(b[40:]), binary.BigEndian.Uint64(b[48:]), binary.BigEndian.Uint64(b[56:]),
		}
		if string(b[:8]) == journalMagic && binary.BigEndian.Uint32(b[64:]) == h.sum(b[:64]) {
			list = append(list, h)
		}
	}
	return list, nil
}

func contentOf(f journalFile) ([]byte, error) { return io.ReadAll(io.NewSectionReader(f, 0, 1<<62)) }

// replayOne reads the records of the current generation from its file, up to number
// last. A record after that one was written when the disk was full, and was not stored.
func (j *journal) replayOne(last uint64, do func(generation uint64, changes []ordered.Change)) error {
	file, err := contentOf(j.fileOf(j.generation))
	if err != nil {
		return err
	}
	for j.records < last {
		rest := file[min(j.end, int64(len(file))):]
		body, size := j.recordAt(rest)
		if body == nil {
			if j.holds(rest, j.generation, j.records+2) {
				return ErrJournalGap
			}
			break
		}
		changes, err := readChanges(body)
		if err != nil {
			return err
		}
		do(j.generation, changes)
		j.records++
		j.end += size
	}
	return nil
}

// checkLeft returns an error if the data file says that it is whole and a journal
// beside it goes on from a later state of it. Then the data file is an older one, or
// one of its two headers is damaged. A journal left by an interrupted stop is older
// than the file, and one left by an interrupted start holds nothing.
func checkLeft(path string, file journalState) error {
	for _, name := range JournalNames(path) {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = checkLeftFile(osFile{f}, file)
		f.Close()
		if err != nil {
			return &LeftJournalError{filepath.Base(name), err}
		}
	}
	return nil
}

func checkLeftFile(f journalFile, file journalState) error {
	headers, err := readHeaders(f)
	if err != nil {
		return err
	}
	for _, h := range headers {
		if h.file != file.file || h.tx <= file.tx {
			continue
		}
		b, err := contentOf(f)
		if err != nil {
			return err
		}
		if h.holds(b, h.generation, 1) {
			return ErrFileOlder
		}
	}
	return nil
}

// holds reports whether b has a record of the generation whose number is least or more.
func (j *journalID) holds(b []byte, generation, least uint64) bool {
	for ; len(b) >= recordHeader; b = b[8:] {
		if binary.BigEndian.Uint64(b[8:]) == generation && binary.BigEndian.Uint64(b[16:]) >= least && j.isRecord(b) {
			return true
		}
	}
	return false
}

// recordAt returns the body of the generation's next record if b begins with
// it, and the size of the record.
func (j *journal) recordAt(b []byte) (body []byte, size int64) {
	if len(b) < recordHeader || binary.BigEndian.Uint64(b[8:]) != j.generation ||
		binary.BigEndian.Uint64(b[16:]) != j.records+1 || !j.isRecord(b) {
		return nil, 0
	}
	size = recordHeader + int64(binary.BigEndian.Uint32(b))
	return b[recordHeader:size:size], (size + 7) &^ 7
}

func (j *journalID) isRecord(b []byte) bool {
	length := uint64(binary.BigEndian.Uint32(b))
	return length <= uint64(len(b)-recordHeader) &&
		binary.BigEndian.Uint32(b[4:]) == j.sum(b[:4], b[8:recordHeader+length])
}

// removeJournal removes, with remove, the files of a journal that is no longer needed.
func removeJournal(path string, remove func(name string) error) error {
	for _, name := range JournalNames(path) {
		if err := remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return syncDir(filepath.Dir(path))
}

// anyJournal reports whether a journal, of any store and not empty, lies beside the file
// at path.
func anyJournal(path string) bool {
	for _, name := range JournalNames(path) {
		b := make([]byte, len(journalMagic))
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		n, _ := f.Read(b)
		f.Close()
		if string(b[:n]) == journalMagic {
			return true
		}
	}
	return false
}
