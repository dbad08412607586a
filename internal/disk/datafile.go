package disk

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	bolt "go.etcd.io/bbolt"
)

// A journalState is what the file says of itself and of its journal:
//
//	's' → | file, 16 | life, 16 | generation, 8 | records, 8 | least, 8 | transaction, 8 |
//	'j' → | 0 |, while it is not whole without its journal
//
// Every transaction writes 's'.
type journalState struct {
	journalID        // life is zero before the first journal
	first     uint64 // oldest generation that the file lacks; 0: it is whole alone
	records   uint64 // of that generation, once the file has a part of it; else 0
	least     uint64 // records the newest generation had (first, or the next if records is not 0)
	tx        uint64 // transaction that wrote this
}

const journalStateSize = 64

func decodeJournalState(value []byte) (s journalState, err error) {
	if len(value) != journalStateSize {
		return s, ErrDamaged
	}
	return journalState{
		journalID: journalID{[16]byte(value), [16]byte(value[16:])},
		first:     binary.BigEndian.Uint64(value[32:]), records: binary.BigEndian.Uint64(value[40:]), least: binary.BigEndian.Uint64(value[48:]), tx: binary.BigEndian.Uint64(value[56:]),
	}, nil
}

// put writes the state in a transaction.
func (s journalState) put(tx *bolt.Tx) error {
	b := append(s.file[:], s.life[:]...)
	for _, n := range []uint64{s.first, s.records, s.least, uint64(tx.ID())} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	var needs []byte
	if s.first != 0 {
		needs = []byte{0}
	}
	return errors.Join(keep(tx, "s", b), keep(tx, "j", needs))
}

// newFileID returns a random identity for a file that is being made.
func newFileID() (file [16]byte) {
	rand.Read(file[:])
	return file
}

// inventory reads the inventory.
func (t *pageTree) inventory() (*inventory, error) {
	value, err := t.kept("n")
	if err != nil {
		return nil, err
	}
	if len(value) != 24 {
		return nil, ErrDamaged
	}
	return &inventory{
		binary.BigEndian.Uint64(value), binary.BigEndian.Uint64(value[8:]),
		[2]uint32{binary.BigEndian.Uint32(value[16:]), binary.BigEndian.Uint32(value[20:])},
	}, nil
}

// kept returns a value of journalBucket; nil if there is none.
func (t *pageTree) kept(key string) (value []byte, err error) {
	defer catch(&err)
	stored, ok, err := t.get([]byte(key), new(pageFinger))
	if err != nil || !ok {
		return nil, err
	}
	return Unseal([]byte(key), stored)
}

// setInventory writes the inventory.
func setInventory(tx *bolt.Tx, v *inventory) error {
	b := binary.BigEndian.AppendUint64(nil, v.entries)
	b = binary.BigEndian.AppendUint64(b, v.sum)
	b = binary.BigEndian.AppendUint32(b, v.ends[0])
	return keep(tx, "n", binary.BigEndian.AppendUint32(b, v.ends[1]))
}

// keep writes a value of journalBucket, or removes it if it is nil.
func keep(tx *bolt.Tx, key string, value []byte) error {
	bucket, err := tx.CreateBucketIfNotExists([]byte(journalBucket))
	if err != nil {
		return err
	}
	if value == nil {
		return bucket.Delete([]byte(key))
	}
	return bucket.Put([]byte(key), Seal([]byte(key), value))
}

// catch turns a panic in bbolt into ErrDamaged. It does the same with a fault on
// bbolt's memory map if the goroutine has called debug.SetPanicOnFault. It must be
// deferred.
func catch(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, p)
	}
}

// Seal returns the stored form of value under key: its checksum and the value.
func Seal(key, value []byte) []byte {
	stored := make([]byte, 0, checksumSize+len(value))
	stored = binary.BigEndian.AppendUint32(stored, checksum(key, value))
	return append(stored, value...)
}

// Unseal returns the value under key from its stored form. The error is ErrDamaged if the checksum
// is not theirs.
func Unseal(key, stored []byte) ([]byte, error) {
	if len(stored) >= checksumSize {
		value := stored[checksumSize:len(stored):len(stored)]
		if binary.BigEndian.Uint32(stored) == checksum(key, value) {
			return value, nil
		}
	}
	return nil, damagedValue(key)
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// createFile makes an empty store at path, unless something has appeared there
// meanwhile. A power cut leaves the whole store or none; the caller syncs the
// directory.
func createFile(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = errors.Join(initFile(f.Name()), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	// Unlike a renaming, a link never replaces a file: a second process may be
	// here at the same time. Some file systems have no links.
	err = os.Link(f.Name(), path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = os.Rename(f.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// initFile makes the empty file at path an empty store.
func initFile(path string) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: pageSize})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte(dataBucket))
		state := journalState{journalID: journalID{file: newFileID()}}
		return errors.Join(err, setInventory(tx, new(inventory)), state.put(tx))
	})
	return errors.Join(err, db.Close())
}

// syncDir makes the names in the directory durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // Windows cannot, and does not need to
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// checkHeader returns f's FileInfo if bbolt can open the file without harm.
//
// bbolt writes its header to the first and the second page in turn, so that one whole
// header remains if the writing of the other is cut off. All numbers are in the byte
// order of the machine:
//
//	offset  size
//	     0    16  page header
//	    16     4  magic
//	    20     4  version
//	    24     4  page size
//	    28    20  flags, root bucket
//	    48     8  page of the list of free pages
//	    56     8  number of pages in use
//	    64     8  transaction
//	    72     8  FNV-1a of the bytes 16 to 71
func checkHeader(f *os.File) (fs.FileInfo, error) {
	const (
		size    = 80
		magic   = 0xED0CDAED
		version = 2
		none    = 1<<64 - 1 // instead of the page of the list of free pages
	)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, ErrEmpty
	}
	var ours, whole bool // whether a header has our magic; whether one is whole
	var newest, pages uint64
	for page := range int64(2) {
		var b [size]byte
		if _, err := f.ReadAt(b[:], page*pageSize); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		order := binary.NativeEndian
		if order.Uint32(b[16:]) != magic {
			continue
		}
		ours = true
		if !wholeHeader(b[:]) {
			continue
		}
		if order.Uint32(b[20:]) != version || order.Uint32(b[24:]) != pageSize || order.Uint64(b[48:]) == none {
			return nil, ErrForeign
		}
		if tx := order.Uint64(b[64:]); !whole || tx > newest {
			newest, pages = tx, order.Uint64(b[56:])
		}
		whole = true
	}
	need := max(pages, 4) * pageSize
	switch {
	case !ours:
		return nil, ErrForeign
	case uint64(info.Size()) < need:
		return nil, &TruncatedError{info.Size(), int64(need)}
	case !whole:
		return nil, ErrNoHeader
	}
	return info, nil
}
