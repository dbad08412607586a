package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// journalState reads what journalBucket, which t is, says of the journal; zeros
// if nothing.
func (t *pageTree) journalState() (store [16]byte, first uint64, err error) {
	value, err := t.kept("j", 24)
	if err != nil || value == nil {
		return store, 0, err
	}
	return [16]byte(value), binary.BigEndian.Uint64(value[16:]), nil
}

// inventory reads the inventory; nil if there is none.
func (t *pageTree) inventory() (*inventory, error) {
	value, err := t.kept("n", 24)
	if err != nil || value == nil {
		return nil, err
	}
	return &inventory{
		binary.BigEndian.Uint64(value), binary.BigEndian.Uint64(value[8:]),
		[2]uint32{binary.BigEndian.Uint32(value[16:]), binary.BigEndian.Uint32(value[20:])},
	}, nil
}

// kept returns a value of journalBucket, which has a known length; nil if there
// is none.
func (t *pageTree) kept(key string, length int) (value []byte, err error) {
	defer catch(&err)
	stored, ok, err := t.get([]byte(key), new(pageFinger))
	if err != nil || !ok {
		return nil, err
	}
	if value, err = unseal([]byte(key), stored); err == nil && len(value) != length {
		err = errCorrupt
	}
	return value, err
}

// setJournalState writes what journalBucket says of the journal, or removes it
// if first is 0.
func setJournalState(tx *bolt.Tx, store [16]byte, first uint64) error {
	if first == 0 {
		return keep(tx, "j", nil)
	}
	return keep(tx, "j", binary.BigEndian.AppendUint64(store[:], first))
}

// setInventory writes the inventory, unless it is nil.
func setInventory(tx *bolt.Tx, v *inventory) error {
	if v == nil {
		return nil
	}
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
	return bucket.Put([]byte(key), seal([]byte(key), value))
}

// catch makes errCorrupt of a panic in bbolt, or of a fault on its memory map
// on a goroutine that has called debug.SetPanicOnFault. It must be deferred.
func catch(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", errCorrupt, p)
	}
}

// seal returns the stored form of value under key.
func seal(key, value []byte) []byte {
	stored := make([]byte, 0, checksumSize+len(value))
	stored = binary.BigEndian.AppendUint32(stored, checksum(key, value))
	return append(stored, value...)
}

// unseal returns the value under key of which stored is the stored form.
func unseal(key, stored []byte) ([]byte, error) {
	if len(stored) >= checksumSize {
		value := stored[checksumSize:len(stored):len(stored)]
		if binary.BigEndian.Uint32(stored) == checksum(key, value) {
			return value, nil
		}
	}
	return nil, fmt.Errorf("%w in table 0x%02x", errCorrupt, key[0])
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// createBolt makes an empty store at path, unless something has appeared there
// meanwhile. A power cut leaves the whole store or none; the caller syncs the
// directory.
func createBolt(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = errors.Join(initBolt(f.Name()), f.Sync(), f.Close())
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

// initBolt makes the empty file at path an empty store.
func initBolt(path string) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: boltPageSize})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte(boltBucket))
		return errors.Join(err, setInventory(tx, new(inventory)))
	})
	return errors.Join(err, db.Close())
}

// syncDir makes the names in the directory durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // which cannot, and does not need to
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// errNotSello is returned for a file that something else has written.
var errNotSello = errors.New("no es un archivo de sello")

// checkHeader returns what is known of f if bbolt can open it without harm.
//
// bbolt writes its header in turn to the first and the second page, so that one
// whole header remains when the writing of the other is cut off. All numbers are
// in the byte order of the machine:
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
		return nil, errors.New("el archivo está vacío")
	}
	var ours, whole bool // whether a header has our magic; whether one is whole
	var newest, pages uint64
	for page := range int64(2) {
		var b [size]byte
		if _, err := f.ReadAt(b[:], page*boltPageSize); err == io.EOF {
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
		if order.Uint32(b[20:]) != version || order.Uint32(b[24:]) != boltPageSize || order.Uint64(b[48:]) == none {
			return nil, errNotSello
		}
		if tx := order.Uint64(b[64:]); !whole || tx > newest {
			newest, pages = tx, order.Uint64(b[56:])
		}
		whole = true
	}
	need := max(pages, 4) * boltPageSize
	switch {
	case !ours:
		return nil, errNotSello
	case uint64(info.Size()) < need:
		return nil, fmt.Errorf("archivo truncado: %d bytes de al menos %d", info.Size(), need)
	case !whole:
		return nil, errors.New("archivo dañado: ninguna de sus dos cabeceras está completa")
	}
	return info, nil
}

// openError says in words for the operator why a file could not be opened.
func openError(err error) error {
	if errors.Is(err, berrors.ErrTimeout) {
		return errors.New("otro proceso lo tiene abierto")
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err // the caller names the path
	}
	return err
}

// commitError wraps an error of bbolt's Commit, in errUnavailable if it says that
// there is no space. Errors of a sync do not, whatever their number: after one
// nobody knows what is on disk.
func commitError(err error) error {
	if err == nil {
		return nil
	}
	full := []syscall.Errno{syscall.ENOSPC, syscall.EFBIG, syscall.EDQUOT}
	if runtime.GOOS == "windows" {
		full = append(full, 39, 112) // ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL
	}
	noSpace := errors.Is(err, berrors.ErrMaxSizeReached)
	e, ok := errors.AsType[*fs.PathError](err)
	writing := ok && e.Op == "write"
	// bbolt keeps only the text of what stopped it from lengthening the file.
	resizing := strings.HasPrefix(err.Error(), "file resize error: ")
	for _, errno := range full {
		noSpace = noSpace || writing && errors.Is(err, errno) ||
			resizing && strings.HasSuffix(err.Error(), ": "+errno.Error())
	}
	if noSpace {
		return fmt.Errorf("%w: %w", errUnavailable, err)
	}
	return fmt.Errorf("store: commit: %w", err)
}
