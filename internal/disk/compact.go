package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	bolt "go.etcd.io/bbolt"

	"sello/internal/ordered"
)

// Compact makes the data file anew, out of its entries alone: without free pages, and
// without anything that was deleted or replaced. The new file is made beside the old one,
// compared with it entry by entry, made durable and renamed over it. Whatever ends the
// process leaves one of the two, whole. The journal is brought into the old file and
// removed first. The operating system's lock on the old file is held until the end.
//
// A file that is packed more densely than Compact packs, such as a backup, would become
// larger. Then it stays, and its unused pages are overwritten with zeros instead, as those
// of a backup are.

const (
	compactName  = ".compact-" // in the name of a file that Compact is making
	compactBatch = 16 << 20    // bytes of entries in one transaction of bbolt
)

// A Compacted describes what Compact did. Sizes are in bytes.
type Compacted struct {
	Before, After int64
	Entries       int
	Kept          bool // the old file stayed: a new one would have been larger
}

// Compact makes the file anew and closes it. No View and no Commit may be under way or
// follow. After an error the file is closed too, and as it was. Errors begin with the
// file's path.
func (s *File) Compact(ctx context.Context) (done *Compacted, err error) {
	debug.SetPanicOnFault(true)
	err = s.closeAfter(s.finish, func() (err error) {
		done, err = s.rebuild(ctx)
		return err
	})
	if err == nil && done == nil { // not all of the journal could be brought in
		err = cmp.Or(s.full, ErrUnavailable)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, inFile(s.path, openError(err)))
	}
	return done, nil
}

// rebuild replaces the file, which is whole alone, by a new one with the same entries.
func (s *File) rebuild(ctx context.Context) (done *Compacted, err error) {
	defer catch(&err)
	// What a journal holds that the file did not need is of no use, and would stay.
	if err := removeJournal(s.path, s.opts.remove); err != nil {
		return nil, err
	}
	path, err := filepath.EvalSymlinks(s.path)
	if err != nil {
		return nil, err
	}
	if err := removeLeft(path); err != nil {
		return nil, err
	}
	before, err := s.opened.Stat()
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+compactName+"*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	entries, err := s.rebuildIn(ctx, f)
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err == nil && after.Size() > before.Size() {
		return &Compacted{before.Size(), before.Size(), entries, true}, s.zeroUnused(ctx)
	}
	if err := errors.Join(err, keepOwner(f, before), f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if runtime.GOOS == "windows" { // an open file cannot be replaced
		if err := s.db.Close(); err != nil {
			return nil, err
		}
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return nil, err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSynced, openError(err))
	}
	return &Compacted{before.Size(), after.Size(), entries, false}, nil
}

// zeroUnused overwrites the pages of the file that neither of its headers leads to, and
// checks the others.
func (s *File) zeroUnused(ctx context.Context) error {
	unused, err := unusedPages(s.db)
	if err == nil {
		err = zeroPages(&flushingWriter{ctx: ctx, file: s.opened}, unused)
	}
	if err := errors.Join(err, s.opened.Sync()); err != nil {
		return err
	}
	return checkPages(PartOf(ctx, 1, 1), s.db, s.inventory)
}

// removeLeft removes what a killed Compact of the file at path has left. There is no
// other one: the lock is held.
func removeLeft(path string) error {
	files, err := os.ReadDir(filepath.Dir(path))
	for _, f := range files {
		// CreateTemp adds digits. Any other name is the operator's.
		digits, ours := strings.CutPrefix(f.Name(), filepath.Base(path)+compactName)
		if ours && digits != "" && strings.Trim(digits, "0123456789") == "" {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(path), f.Name())))
		}
	}
	return err
}

// rebuildIn makes the new file in f and returns how many entries it has.
func (s *File) rebuildIn(ctx context.Context, f *os.File) (entries int, err error) {
	tx, err := s.begin(false)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	from, err := s.openTree(tx, dataBucket)
	if err != nil {
		return 0, err
	}
	entries, found, err := makeFile(ctx, f, s.inventory.entries, func() iter.Seq2[ordered.Entry, error] {
		return from.scan([]byte{0}, nil, false)
	}, s.opts.Dense)
	if err == nil && *found != *s.inventory {
		err = fmt.Errorf("%w: %d entries, and there should be %d, or others", ErrDamaged, found.entries, s.inventory.entries)
	}
	return entries, err
}

// makeFile makes a new file in f with entries, which come in order and of which there are about
// so many. It asks for them a second time, to compare them with the file.
func makeFile(ctx context.Context, f *os.File, about uint64, from func() iter.Seq2[ordered.Entry, error], dense string) (entries int, found *inventory, err error) {
	if err := initFile(f.Name()); err != nil {
		return 0, nil, err
	}
	db, err := bolt.Open(f.Name(), 0o600, &bolt.Options{
		PageSize: pageSize, FreelistType: bolt.FreelistArrayType, NoSync: true, NoStatistics: true,
	})
	if err != nil {
		return 0, nil, err
	}
	expected := &inventory{entries: about}
	made, err := fill(ctx, db, f, telling(PartOf(ctx, 0, 0.6), from(), expected), dense)
	if err == nil {
		entries, err = compare(ctx, telling(PartOf(ctx, 0.6, 0.9), from(), expected), db)
	}
	var unused []uint64
	if err == nil {
		unused, err = unusedPages(db)
	}
	if err == nil {
		err = checkPages(PartOf(ctx, 0.9, 1), db, &made)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return 0, nil, err
	}
	return entries, &made, zeroPages(&flushingWriter{ctx: ctx, file: f}, unused)
}

// fill puts entries, which come in order, into the empty db, and makes it a file that is
// whole alone. It returns the inventory of what it put there.
func fill(ctx context.Context, db *bolt.DB, f *os.File, entries iter.Seq2[ordered.Entry, error], dense string) (found inventory, err error) {
	var (
		tx          *bolt.Tx
		bucket      *bolt.Bucket
		size        int // of what tx has put
		first, last []byte
		filling     float64
	)
	defer func() {
		if tx != nil {
			tx.Rollback() // has no effect after Commit
		}
	}()
	for e, err := range entries {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return found, err
		}
		wanted := fillSparse
		if strings.IndexByte(dense, e.Key[0]) >= 0 {
			wanted = fillDense
		}
		if tx != nil && (size >= compactBatch || wanted != filling) {
			if err := tx.Commit(); err != nil {
				return found, err
			}
			if err := fdatasync(f); err != nil { // so that the last flush is not long
				return found, err
			}
			tx, size = nil, 0
		}
		if tx == nil {
			if tx, err = db.Begin(true); err != nil {
				return found, err
			}
			bucket, filling = tx.Bucket([]byte(dataBucket)), wanted
			bucket.FillPercent = wanted
		}
		stored := Seal(e.Key, e.Value)
		if err := bucket.Put(e.Key, stored); err != nil {
			return found, err
		}
		if found.add(stored); first == nil {
			first = append([]byte{}, e.Key...)
		}
		last = append(last[:0], e.Key...)
		size += len(e.Key) + len(stored)
	}
	if tx != nil {
		if err := tx.Commit(); err != nil {
			return found, err
		}
	}
	found.setEnds(first, last)
	if err := db.Update(func(tx *bolt.Tx) error { return setInventory(tx, &found) }); err != nil {
		return found, err
	}
	return found, putWhole(db)
}

// checkPages checks every page of db, and its inventory.
func checkPages(ctx context.Context, db *bolt.DB, want *inventory) error {
	tx, err := db.Begin(false)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	tree, err := openTree(db, tx, dataBucket, pageSet(nil).with(uint64(tx.Size())/pageSize))
	if err == nil {
		_, err = tree.checkAll(ctx, want, 1)
	}
	return err
}

// keepOwner gives f the permissions and, where the system lets it, the owner of the file
// that it takes the place of. Only the administrator may give a file away.
func keepOwner(f *os.File, from fs.FileInfo) error {
	if err := f.Chmod(from.Mode().Perm()); err != nil && runtime.GOOS != "windows" {
		return err
	}
	return chown(f, from)
}
