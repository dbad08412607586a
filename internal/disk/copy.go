package disk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	bolt "go.etcd.io/bbolt"

	"sello/internal/ordered"
)

// A backup is a data file as it was at one moment, whole without a journal. It is made
// under a temporary name, compared with its original entry by entry, made durable and
// then put in place. If that is interrupted, what was there before stays. To restore a
// backup, copy it back.
//
// What is not yet in the file is brought into the copy. So the store itself is only
// read, and writes go on.
//
// Pages that are not in use hold what the store held earlier. In a copy they are zeros,
// so that it holds nothing that was deleted or replaced. bbolt writes zeros behind the
// entries of a page that is in use.

const (
	backupFlush = 16 << 20 // bytes copied between flushes, so that none holds up the journal's for long
	backupStep  = 8192     // entries brought into the copy at a time
	compareStep = 32       // entries compared between looks at the context
)

// A Copy describes a backup that was made.
type Copy struct {
	File    string
	Bytes   int64
	Entries int
}

// Backup puts a copy of the last committed state at path, or where the symbolic link
// there leads. It replaces only another data file that is not in use. Errors begin with
// the data file's path if that is damaged, else with path.
func (s *File) Backup(ctx context.Context, path string) (done *Copy, err error) {
	defer func() {
		if errors.Is(err, ErrDamaged) {
			err = fmt.Errorf("%s: %w", s.path, inFile(s.path, err))
		} else if err != nil { // without the temporary name
			err = fmt.Errorf("%s: %w", path, openError(err))
		}
	}()
	return putFile(ctx, path, s.path, s.copyTo)
}

// Build makes a data file at path out of entries, which come in order and of which there are
// about so many. It asks for them a second time, to compare them with the file. It replaces only
// another data file that is not in use. Errors begin with path.
func Build(ctx context.Context, path string, about uint64, entries func() iter.Seq2[ordered.Entry, error], dense string) (done *Copy, err error) {
	done, err = putFile(ctx, path, "", func(ctx context.Context, f *os.File) (int, error) {
		n, _, err := makeFile(ctx, f, about, entries, dense)
		return n, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, openError(err))
	}
	return done, nil
}

// putFile has a data file written by write, and puts it at path, or where the symbolic link
// there leads, once it is whole. It never replaces the file at own.
func putFile(ctx context.Context, path, own string, write func(context.Context, *os.File) (entries int, err error)) (*Copy, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrDanglingLink
		}
		if err != nil {
			return nil, err
		}
		path = target
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoDirectory
	}
	if err := mayReplace(own, path); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	entries, err := write(ctx, f)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err := mayReplace(own, path); err != nil { // copying may have taken long
		return nil, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		if e, ok := errors.AsType[*os.LinkError](err); ok {
			err = e.Err
		}
		return nil, err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSynced, openError(err))
	}
	return &Copy{path, info.Size(), entries}, nil
}

// mayReplace returns an error if a data file must not be put at path. own is the one that it is
// made from; "" if there is none.
func mayReplace(own, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if from, err := os.Stat(own); err == nil && os.SameFile(from, info) {
		return ErrOwnFile
	}
	if !info.Mode().IsRegular() {
		return ErrNotRegular
	}
	for _, name := range JournalNames(path) {
		if _, err := os.Stat(name); err == nil {
			return ErrInUse
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := checkHeader(f); err != nil {
		return fmt.Errorf("%w: %w", ErrExists, err)
	}
	return nil
}

// copyTo writes the last committed state to f and returns how many entries it has.
func (s *File) copyTo(ctx context.Context, f *os.File) (entries int, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer catch(&err)
	state, err := s.acquireInFile(ctx)
	if err != nil {
		return 0, err
	}
	ctx = courteousContext{ctx, newCourtesy(&s.written)}
	defer state.release()
	w := &flushingWriter{ctx: ctx, file: f, size: state.file.tx.Size(), part: partIn(PartOf(ctx, 0, 0.5))}
	if _, err := state.file.tx.WriteTo(w); err != nil {
		return 0, cmp.Or(w.err, err) // bbolt keeps only the text of some errors
	}
	w.part = progressPart{} // what follows is compare's
	db, err := bolt.Open(f.Name(), 0o600, &bolt.Options{
		PageSize: pageSize, FreelistType: bolt.FreelistArrayType, NoSync: true, NoStatistics: true,
	})
	if err != nil {
		return 0, err
	}
	var unused []uint64
	if err = s.bringAll(ctx, state, db); err == nil {
		entries, err = compare(ctx, telling(PartOf(ctx, 0.5, 1), (&Snapshot{fileState: state}).Scan([]byte{0}, nil, false), state.file.inventory), db)
	}
	if err == nil {
		unused, err = unusedPages(db)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return 0, err
	}
	return entries, zeroPages(w, unused)
}

// bringAll brings the memtables of the state into db, and makes db a whole file of its
// own.
func (s *File) bringAll(ctx context.Context, state *fileState, db *bolt.DB) error {
	var (
		checked pageSet
		found   = state.file.inventory.clone()
	)
	// bbolt wrote the two headers in any order. Write both anew, as neighbours.
	for range 2 {
		if err := db.Update(func(tx *bolt.Tx) error { return state.file.state.put(tx) }); err != nil {
			return err
		}
	}
	for _, layer := range slices.Backward(state.layers) {
		for at := newCheckpointPlace(layer, s.opts.Dense); !at.end(); {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := db.Update(func(tx *bolt.Tx) error {
				checked = checked.with(uint64(tx.Size()) / pageSize)
				before, err := openTree(db, tx, dataBucket, checked)
				if err != nil {
					return err
				}
				if _, err = at.bring(tx, backupStep, before, found); err != nil {
					return err
				}
				return before.state.put(tx)
			})
			if err != nil {
				return err
			}
		}
	}
	return putWhole(db)
}

// putWhole makes db a file that is whole alone. Both of its headers say so, and lead to
// the same entries.
func putWhole(db *bolt.DB) error {
	whole := journalState{journalID: journalID{file: newFileID()}}
	for range 2 {
		if err := db.Update(func(tx *bolt.Tx) error { return whole.put(tx) }); err != nil {
			return err
		}
	}
	return nil
}

// unusedPages returns the pages that neither of db's two headers leads to, ascending.
func unusedPages(db *bolt.DB) (list []uint64, err error) {
	tx, err := db.Begin(false)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	checked := pageSet(nil).with(uint64(tx.Size()) / pageSize)
	now, err := openTree(db, tx, dataBucket, checked)
	if err != nil {
		return nil, err
	}
	last := uint64(tx.ID()) - 1
	header := headerOf(now.data, last)
	if header == nil {
		return nil, damagedPage(0, "is not the header that it was")
	}
	before, err := newTree(now.data[:pageSize*u64(header[56:])], last, dataBucket, checked)
	if err != nil {
		return nil, err
	}
	for i := range len(now.free) / 8 {
		if id := u64(now.free[8*i:]); id >= before.pages() || before.isFree(id) {
			list = append(list, id)
		}
	}
	return list, nil
}

// zeroPages overwrites pages of w's file with zeros.
func zeroPages(w *flushingWriter, ids []uint64) error {
	var zeros [64 * pageSize]byte
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && n*pageSize < len(zeros) && ids[n] == ids[0]+uint64(n) {
			n++
		}
		if _, err := w.file.Seek(int64(ids[0])*pageSize, io.SeekStart); err != nil {
			return err
		}
		if _, err := w.Write(zeros[:n*pageSize]); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// compare checks that db holds the given entries and no others, and returns how many
// they are.
func compare(ctx context.Context, entriesOf iter.Seq2[ordered.Entry, error], db *bolt.DB) (entries int, err error) {
	tx, err := db.Begin(false)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	tree, err := openTree(db, tx, dataBucket, pageSet(nil).with(uint64(tx.Size())/pageSize))
	if err != nil {
		return 0, err
	}
	least := []byte{0}
	c := &pageCursor{pageTree: tree}
	there, ok, err := c.enter(least, nil, false)
	for e, scanErr := range entriesOf {
		if err := errors.Join(scanErr, err); err != nil {
			return 0, err
		}
		if !ok || !bytes.Equal(e.Key, there.Key) || !bytes.Equal(e.Value, there.Value) {
			return 0, ErrCopyDiffers
		}
		if entries++; entries%compareStep == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		there, ok, err = c.step(least, nil, false)
	}
	if err == nil && ok {
		err = ErrCopyDiffers
	}
	return entries, err
}

// A flushingWriter flushes its file as it writes. A large amount left to flush at the
// end would hold up other flushes.
type flushingWriter struct {
	ctx     context.Context
	file    *os.File
	pending int
	err     error // the error that ended it

	written, size int64 // bytes so far, and in all where part tells how far that is
	part          progressPart
}

func (w *flushingWriter) Write(b []byte) (n int, err error) {
	defer func() { w.err = err }()
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err = w.file.Write(b)
	w.written += int64(n)
	w.part.tell(float64(w.written), float64(w.size))
	if w.pending += n; err == nil && w.pending >= backupFlush {
		w.pending = 0
		err = fdatasync(w.file)
	}
	return n, err
}
