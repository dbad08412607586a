package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// A boltStore is a Store in one bbolt file. The file has one bucket, boltBucket,
// with every key as it is and every value behind a checksum:
//
//	| CRC-32C of key and value, 4 bytes, big-endian | value |
//
// Two things are ours to do because bbolt does not: it never notices a flipped
// bit, hence the checksum; and where pages contradict each other or the file is
// shorter than they say it panics or faults on its memory map, hence checkHeader
// before it sees a file and catch around each call.
type boltStore struct {
	db    *bolt.DB
	queue *writeQueue

	stop     chan struct{} // closed to end watch
	watching sync.WaitGroup
}

const (
	boltBucket   = "sello"
	boltPageSize = 4096
	checksumSize = 4
)

// boltOptions are the ways to open a boltStore. Zero values are the ones to
// serve with.
type boltOptions struct {
	mustExist  bool // do not make a new file
	maxWaiting int  // updates that may wait for their turn; 0: defaultWaiting

	// For tests.
	maxSize    int           // of the file in bytes; 0: as the disk allows
	noSync     bool          // lose commits in a power cut
	lockWait   time.Duration // for another process to close the file; 0: 2 seconds
	watchEvery time.Duration // between looks at the file's name; 0: 1 second
}

// openBolt opens the store in the file at path. It makes the file if there is
// none. It refuses, with an error of one line, a file that is not whole.
func openBolt(path string, opts boltOptions) (*boltStore, error) {
	s, err := openBoltFile(path, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, openError(err))
	}
	return s, nil
}

func openBoltFile(path string, opts boltOptions) (s *boltStore, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !opts.mustExist {
		if err := createBolt(path); err != nil {
			return nil, err
		}
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("es un directorio")
	case !info.Mode().IsRegular():
		return nil, errors.New("no es un archivo regular")
	}
	// Also when the file is not new: who made it may have died before this.
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, err
	}

	defer catch(&err) // then bbolt keeps the file open and locked
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))

	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout:         cmp.Or(opts.lockWait, 2*time.Second),
		PageSize:        boltPageSize,
		FreelistType:    bolt.FreelistArrayType,
		InitialMmapSize: initialMap(),
		MaxSize:         opts.maxSize,
		NoSync:          opts.noSync,
		NoStatistics:    true,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag&^os.O_CREATE, mode)
			if err != nil {
				return nil, err
			}
			if info, err = checkHeader(f); err != nil {
				f.Close()
				return nil, err
			}
			return f, nil
		},
	})
	if err != nil {
		return nil, err
	}
	s = &boltStore{db: db, stop: make(chan struct{})}
	s.queue = newWriteQueue(s.beginBatch, cmp.Or(opts.maxWaiting, defaultWaiting))
	if err := s.View(context.Background(), func(Tx) error { return nil }); err != nil {
		s.Close()
		return nil, err
	}
	s.watching.Go(func() { s.watch(path, info, cmp.Or(opts.watchEvery, time.Second)) })
	return s, nil
}

func (s *boltStore) View(ctx context.Context, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	tx, bucket, err := s.begin(false)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(boltTx{bucket})
}

func (s *boltStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.queue.update(ctx, fn)
}

func (s *boltStore) Close() error {
	if err := s.queue.close(); err != nil {
		return err
	}
	close(s.stop)
	s.watching.Wait()
	return s.db.Close()
}

// Failed yields one error when the store can no longer say what is on disk:
// after a commit that failed for another reason than lack of space, or when
// the file's name no longer leads to the file. From then on every Update
// returns errUnavailable. The process reports the error and exits, without
// Close, which may then wait for ever.
func (s *boltStore) Failed() <-chan error { return s.queue.failed }

// begin opens a transaction of bbolt.
func (s *boltStore) begin(writable bool) (tx *bolt.Tx, bucket *bolt.Bucket, err error) {
	defer func() {
		if err != nil && tx != nil {
			tx.Rollback()
		} else if errors.Is(err, errCorrupt) {
			s.queue.fail(err) // Begin has panicked, with bbolt's locks held
		}
	}()
	defer catch(&err)
	tx, err = s.db.Begin(writable)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		err = errClosed
	}
	if err != nil {
		return nil, nil, err
	}
	if bucket = tx.Bucket([]byte(boltBucket)); bucket == nil {
		err = errNotSello
	}
	return tx, bucket, err
}

// watch breaks the queue when path no longer leads to the file that opened
// describes, or the file becomes shorter, which bbolt never makes it.
func (s *boltStore) watch(path string, opened fs.FileInfo, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for size := opened.Size(); ; {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		now, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s.queue.fail(fmt.Errorf("%s: the file was removed", path))
		case err != nil:
			// This says nothing about the file.
		case !os.SameFile(opened, now):
			s.queue.fail(fmt.Errorf("%s: the file was replaced", path))
		case now.Size() < size:
			s.queue.fail(fmt.Errorf("%s: the file was cut short", path))
		default:
			size = now.Size()
		}
	}
}

// A boltTx is a Tx that reads from bbolt and does not write.
type boltTx struct{ bucket *bolt.Bucket }

func (t boltTx) Get(key []byte) (value []byte, ok bool, err error) {
	if err := checkKey(key); err != nil {
		return nil, false, err
	}
	defer catch(&err)
	stored := t.bucket.Get(key)
	if stored == nil {
		return nil, false, nil
	}
	value, err = unseal(key, stored)
	return value, err == nil, err
}

func (boltTx) Put(key, value []byte) error { return errReadOnly }
func (boltTx) Delete(key []byte) error     { return errReadOnly }

func (t boltTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	lo, hi = bytes.Clone(lo), bytes.Clone(hi)
	return func(yield func(Entry, error) bool) {
		c := boltCursor{t.bucket.Cursor(), lo, hi}
		first, next := c.first, c.next
		if reverse {
			first, next = c.last, c.prev
		}
		e, ok, err := c.entry(first, nil)
		for ok && yield(e, nil) {
			e, ok, err = c.entry(next, e.Key)
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// A boltCursor walks over the keys in [lo, hi).
type boltCursor struct {
	*bolt.Cursor
	lo, hi []byte
}

// entry makes the given step from the entry with key from, and returns where
// that leads; ok is false at the end of the range and after an error.
func (c boltCursor) entry(step func(from []byte) (key, stored []byte), from []byte) (e Entry, ok bool, err error) {
	defer catch(&err)
	key, stored := step(from)
	if key == nil || bytes.Compare(key, c.lo) < 0 || len(c.hi) > 0 && bytes.Compare(key, c.hi) >= 0 {
		return Entry{}, false, nil
	}
	value, err := unseal(key, stored)
	return Entry{key, value}, err == nil, err
}

func (c boltCursor) first([]byte) (key, stored []byte) { return c.Seek(c.lo) }

func (c boltCursor) next([]byte) (key, stored []byte) { return c.Next() }

func (c boltCursor) last([]byte) (key, stored []byte) {
	end := c.hi
	if len(end) == 0 {
		end = bytes.Repeat([]byte{0xff}, maxKey+1)
	}
	c.Seek(end)
	return c.prev(end)
}

// prev steps back to the last key before from, which the cursor stands at. It
// gets past the pages that the transaction has emptied: there bbolt's Prev
// returns nil as at the beginning, and its Last may never return.
func (c boltCursor) prev(from []byte) (key, stored []byte) {
	if key, stored = c.Prev(); key != nil {
		return key, stored
	}
	if first, _ := c.First(); first == nil || bytes.Compare(first, from) >= 0 {
		return nil, nil
	}
	c.Seek(from)
	for key == nil {
		key, stored = c.Prev()
	}
	return key, stored
}

// A boltBatch is the one write transaction that is open.
type boltBatch struct {
	boltTx
	tx *bolt.Tx
}

// beginBatch is called on the goroutine of the queue's writer.
func (s *boltStore) beginBatch() (batch, error) {
	debug.SetPanicOnFault(true)
	tx, bucket, err := s.begin(true)
	if err != nil {
		return nil, err
	}
	return boltBatch{boltTx{bucket}, tx}, nil
}

func (b boltBatch) Put(key, value []byte) (err error) {
	defer catch(&err)
	return b.bucket.Put(key, seal(key, value))
}

func (b boltBatch) Delete(key []byte) (err error) {
	defer catch(&err)
	return b.bucket.Delete(key)
}

func (b boltBatch) commit() (err error) {
	defer b.rollback() // does something only if Commit panics
	defer catch(&err)
	return commitError(b.tx.Commit())
}

func (b boltBatch) rollback() {
	defer catch(new(error))
	b.tx.Rollback()
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
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(key, table), table, value)
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
		return err
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

// initialMap returns how much memory map bbolt gets. It can grow the map only
// while no View is open, and lets none open while it waits for that. So the
// map is large where it costs nothing but addresses.
func initialMap() int {
	if strconv.IntSize == 32 || runtime.GOOS == "windows" { // where the file is as long as the map
		return 16 << 20
	}
	return 1 << 30
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
		sum := fnv.New64a()
		sum.Write(b[16:72])
		if order.Uint64(b[72:]) != sum.Sum64() {
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
