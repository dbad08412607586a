package main

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
	"syscall"
)

// A journal is where a write is made durable before it reaches the file: one
// record per batch, one flush. It is two files that take turns, so that one
// can be written while what the other holds is brought into the file. A
// generation is what one of them holds at a time; they count from 1, the odd
// ones in the first file, and the next one begins only when the one before the
// last is in the file whole. Files are written over, not made anew: a flush
// is then of data alone, which takes half the time.
//
//	file:   header | record | record | …, then what is left of older generations
//
//	header: | "sello-j1" | store, 16 | generation, 8 | records of the generation before, 8 | 0, 4 | CRC, 4 | mark |
//	record: | length of the body, 4 | CRC, 4 | generation, 8 | number from 1 on, 8 | body | 0 up to a multiple of 8 |
//	body:   entries: | length of the key × 2, + 1 if it was deleted | key | length of the value | value |
//
// Numbers are most significant byte first, lengths in a body varints. A CRC is
// the CRC-32C of the store and of the header or record without the CRC and
// without the zeros; since nobody outside knows the store, which is random, no
// value that a client sends can be taken for a record. A header is written
// together with its generation's first record.
//
// The mark says, some time after they were stored, how many records there are:
//
//	mark:   | generation, 8 | records, 8 | CRC, 4 |
//
// It is at the same place of both files, and not flushed.
//
// A record is only begun when the one before it is on the disk. So where the
// newest generation goes on with what is no record, the last batch was cut
// off, and nobody was told that it was stored; but if a later record can be
// found, or if an older generation is not whole, or if the mark knows of more,
// the journal was damaged.
type journal struct {
	store [16]byte
	files [2]journalFile // what opened tells of
	sync  bool

	opened [2]fs.FileInfo

	generation uint64
	records    uint64    // of the generation
	end        int64     // of the last of them
	before     uint64    // records of the generation before
	marked     [2]uint64 // generation and records that the mark says

	grown [2]int64 // length of each file, as far as this process has written it
	buf   []byte
}

// A journalFile is what a journal needs of a file.
type journalFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	datasync() error // what was written is on the disk
}

type osFile struct{ *os.File }

func (f osFile) datasync() error { return fdatasync(f.File) }

const (
	journalMagic    = "sello-j1"
	journalMark     = 48 // where it is
	journalHeader   = 72
	journalMarkSize = 20
	recordHeader    = 24
	journalGrowth   = 64 << 10
)

// A written is what became of one key; a nil value means that it was deleted.
type written struct {
	key   string
	value []byte
}

func journalNames(path string) [2]string {
	return [2]string{path + "-journal1", path + "-journal2"}
}

func (j *journal) file() journalFile { return j.files[(j.generation+1)%2] }

// openJournal opens the files of the journal of the store at path, and makes
// those that are not there, empty, if create is set. The journal begins with the given
// generation.
func openJournal(path string, store [16]byte, generation uint64, create bool) (*journal, error) {
	j := &journal{store: store, sync: true, generation: generation, end: journalHeader}
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE | os.O_TRUNC
	}
	for i, name := range journalNames(path) {
		f, err := os.OpenFile(name, flags, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("falta %s, sin el que el archivo no está completo", filepath.Base(name))
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
	if create {
		if err := syncDir(filepath.Dir(path)); err != nil {
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

// beginError wraps an error of the opening of a new journal, in errUnavailable
// if a file could not be opened for a reason that may pass: then nothing was
// stored. After a sync that failed nobody knows which names are on the disk, and
// to sync once more would not tell.
func beginError(err error) error {
	e, ok := errors.AsType[*fs.PathError](err)
	if ok && e.Op == "open" && !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: %w", errUnavailable, err)
	}
	return fmt.Errorf("journal: %w", err)
}

// append makes the changes of one batch durable. After an error of the write
// nothing was stored, and the next batch takes its place; after any other the
// outcome is unknown.
func (j *journal) append(changes []written) error {
	b := append(j.buf[:0], make([]byte, journalHeader)...)
	at := j.end
	if j.records == 0 {
		at = 0
		copy(b, journalMagic)
		copy(b[8:], j.store[:])
		binary.BigEndian.PutUint64(b[24:], j.generation)
		binary.BigEndian.PutUint64(b[32:], j.before)
		binary.BigEndian.PutUint32(b[44:], j.sum(b[:40]))
	} else {
		b = b[:0]
	}
	start := len(b)
	b = append(b, make([]byte, recordHeader)...)
	binary.BigEndian.PutUint64(b[start+8:], j.generation)
	binary.BigEndian.PutUint64(b[start+16:], j.records+1)
	b = appendChanges(b, changes)
	r := b[start:]
	binary.BigEndian.PutUint32(r, uint32(len(r)-recordHeader))
	binary.BigEndian.PutUint32(r[4:], j.sum(r[:4], r[8:]))
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	end := at + int64(len(b))
	grown := &j.grown[(j.generation+1)%2]
	if end > *grown && len(b) < journalGrowth/8 {
		// The file grows by more than it has to: to write where it has been
		// written before takes half the time.
		b = append(b, make([]byte, journalGrowth)...)
	}
	j.buf = b
	f := j.file()
	if _, err := f.WriteAt(b, at); err != nil {
		return err
	}
	*grown = max(*grown, at+int64(len(b)))
	if j.sync {
		if err := f.datasync(); err != nil {
			return fmt.Errorf("journal: sync: %w", err)
		}
	}
	j.records++
	j.end = end
	return nil
}

// mark writes the mark. That it cannot is no failure: nothing depends on it.
func (j *journal) mark() {
	now := [2]uint64{j.generation, j.records}
	if !j.sync || j.records == 0 || j.marked == now {
		return
	}
	b := binary.BigEndian.AppendUint64(nil, j.generation)
	b = binary.BigEndian.AppendUint64(b, j.records)
	b = binary.BigEndian.AppendUint32(b, j.sum(b))
	for _, f := range j.files {
		f.WriteAt(b, journalMark)
	}
	j.marked = now
}

// checkMarks tells whether the marks know of more than was found.
func (j *journal) checkMarks() error {
	for _, f := range j.files {
		b := make([]byte, journalMarkSize)
		if _, err := f.ReadAt(b, journalMark); err == io.EOF {
			continue
		} else if err != nil {
			return err
		}
		generation, records := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
		if binary.BigEndian.Uint32(b[16:]) != j.sum(b[:16]) {
			continue
		}
		if generation > j.generation || generation == j.generation && records > j.records {
			return errors.New("journal dañado: falta lo último")
		}
	}
	return nil
}

// next begins the next generation, and with it the other file.
func (j *journal) next() {
	j.generation, j.before, j.records, j.end = j.generation+1, j.records, 0, journalHeader
}

func (j *journal) sum(parts ...[]byte) uint32 {
	sum := crc32.Checksum(j.store[:], castagnoli)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendChanges(b []byte, changes []written) []byte {
	for _, c := range changes {
		if c.value == nil {
			b = binary.AppendUvarint(b, uint64(len(c.key))<<1|1)
			b = append(b, c.key...)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(c.key))<<1)
		b = append(b, c.key...)
		b = binary.AppendUvarint(b, uint64(len(c.value)))
		b = append(b, c.value...)
	}
	return b
}

// readChanges calls do with each change of a record's body. The values are
// parts of the body.
func readChanges(body []byte, do func(key string, value []byte)) error {
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
			return errJournal
		}
		if k&1 == 1 {
			do(string(key), nil)
			continue
		}
		v, ok := number()
		value := take(v)
		if !ok || uint64(len(value)) != v {
			return errJournal
		}
		do(string(key), value[:v:v])
	}
	return nil
}

var errJournal = errors.New("journal dañado: un registro no se puede leer")

// replay finds what the journal holds from its generation on, oldest first:
// at most two generations. It calls do with each change, and goes on with the
// last generation where it ends.
func (j *journal) replay(do func(generation uint64, key string, value []byte)) error {
	older, _, err := j.read(j.generation)
	if err != nil {
		return err
	}
	newer, before, err := j.read(j.generation + 1)
	if err != nil {
		return err
	}
	if newer == nil {
		before = math.MaxUint64
	} else if older == nil {
		return errors.New("journal dañado: falta una parte")
	}
	if err := j.replayOne(older, before, do); err != nil {
		return err
	}
	if newer != nil {
		if j.records != before {
			return errors.New("journal dañado: falta una parte")
		}
		j.next()
		if err := j.replayOne(newer, math.MaxUint64, do); err != nil {
			return err
		}
	}
	if err := j.checkMarks(); err != nil {
		return err
	}
	if !j.sync {
		return nil
	}
	// What was read may never have reached the disk: its writer may have been
	// killed before the flush.
	return errors.Join(j.files[0].datasync(), j.files[1].datasync())
}

// read returns a file if it holds the generation, else nil, and how many
// records its header says that the generation before has.
func (j *journal) read(generation uint64) (b []byte, before uint64, err error) {
	f := j.files[(generation+1)%2]
	header := make([]byte, journalHeader)
	if _, err := f.ReadAt(header, 0); err == io.EOF {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	switch isWhole := string(header[:8]) == journalMagic && [16]byte(header[8:]) == j.store &&
		binary.BigEndian.Uint32(header[44:]) == j.sum(header[:40]); {
	case isWhole && binary.BigEndian.Uint64(header[24:]) > j.generation+1:
		return nil, 0, errors.New("journal dañado: falta una parte")
	case !isWhole || binary.BigEndian.Uint64(header[24:]) != generation:
		header = nil
	}
	b, err = io.ReadAll(io.NewSectionReader(f, 0, 1<<62))
	switch {
	case err != nil:
		return nil, 0, err
	case header != nil:
		return b, binary.BigEndian.Uint64(header[32:]), nil
	case j.holds(b, generation, 2): // the first may be left of a batch that was cut off
		return nil, 0, errors.New("journal dañado: falta la cabecera")
	}
	return nil, 0, nil
}

// replayOne reads the records of the current generation, up to a number, from
// its file. What follows that one was written when the disk was full, and was
// not stored.
func (j *journal) replayOne(file []byte, last uint64, do func(generation uint64, key string, value []byte)) error {
	if file == nil {
		return nil
	}
	for j.records < last {
		body, size := j.recordAt(file[j.end:])
		if body == nil {
			if j.holds(file[j.end:], j.generation, j.records+2) {
				return errors.New("journal dañado: falta un registro")
			}
			break
		}
		err := readChanges(body, func(key string, value []byte) { do(j.generation, key, value) })
		if err != nil {
			return err
		}
		j.records++
		j.end += size
	}
	return nil
}

// anyJournal tells whether there is a journal with something in it, of whichever
// store.
func anyJournal(path string) bool {
	for _, name := range journalNames(path) {
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

// holds tells whether there is a record of the generation in b whose number is
// least or more.
func (j *journal) holds(b []byte, generation, least uint64) bool {
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

func (j *journal) isRecord(b []byte) bool {
	length := uint64(binary.BigEndian.Uint32(b))
	return length <= uint64(len(b)-recordHeader) &&
		binary.BigEndian.Uint32(b[4:]) == j.sum(b[:4], b[8:recordHeader+length])
}

// removeJournal removes the files of a journal that holds nothing any more.
func removeJournal(path string) error {
	for _, name := range journalNames(path) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return syncDir(filepath.Dir(path))
}
