package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// A data file and its journals belong together. To put another file in its place, the
// other one is copied beside it (Stage), checked by the caller, and given an identity of
// its own, so that it takes no journal for its own. What was there is given a second name,
// its journals are copied under the names that go with that, and then the copy is renamed
// over it. A kill leaves the old file with its journals until the renaming, and from then
// on the new file, for which the journals still beside it are a stranger's. The journals
// are copied, not linked, because the next journal is written over the files of the last.

const (
	stagedName = ".restore-"        // in the name of a copy that is being checked
	keptName   = ".before-restore-" // in the name of what was there before
)

// A Staged is a copy of a data file beside the place that it is to take.
type Staged struct {
	place string      // of the data file, without symbolic links
	name  string      // by which it is opened, and after which its journals are named
	copy  string      // path of the copy
	held  *fileMap    // holds the lock on what is at place; nil if that cannot be opened
	old   fs.FileInfo // of what is at place; nil if nothing is

	lockWait time.Duration     // as in Options
	at       func(step string) // for tests; nil: nothing
}

// Stage copies the data file from, with its journals if it has any, to a new name beside
// path. It refuses a path that another process has open, and keeps others from opening it.
// The caller opens, checks and closes the copy, and then calls Place. Remove must be called
// in the end. Errors begin with the path that they are about.
func Stage(ctx context.Context, from, path string) (*Staged, error) {
	s := &Staged{name: path, place: path}
	if err := s.stage(ctx, from); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

func (s *Staged) stage(ctx context.Context, from string) error {
	if err := s.findPlace(); err != nil {
		return fmt.Errorf("%s: %w", s.name, openError(err))
	}
	err := s.copyFrom(ctx, from)
	if e, ok := errors.AsType[*writeError](err); ok {
		return fmt.Errorf("%s: %w", s.name, openError(e.Err))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", from, openError(err))
	}
	return nil
}

// A writeError is an error of writing a copy, not of reading what is copied.
type writeError struct{ Err error }

func (e *writeError) Error() string { return e.Err.Error() }
func (e *writeError) Unwrap() error { return e.Err }

// Path is the path of the copy.
func (s *Staged) Path() string { return s.copy }

// findPlace locks what is at the place, and removes what a killed restore has left.
func (s *Staged) findPlace() (err error) {
	if _, err := os.Lstat(s.name); err == nil {
		if s.place, err = filepath.EvalSymlinks(s.name); errors.Is(err, fs.ErrNotExist) {
			return ErrDanglingLink
		} else if err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Dir(s.place)); errors.Is(err, fs.ErrNotExist) {
		return ErrNoDirectory
	}
	s.old, err = os.Stat(s.place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.old = nil
	case err != nil:
		return err
	case !s.old.Mode().IsRegular():
		return ErrNotRegular
	default:
		if s.held, err = holdFile(s.place, s.lockWait); err != nil {
			return err
		}
	}
	return s.removeLeft()
}

// holdFile takes a shared lock on a data file, so that no process can open it to write. A
// file that is too damaged to be opened needs none; then held is nil.
func holdFile(path string, wait time.Duration) (held *fileMap, err error) {
	defer func() {
		if err = openError(err); !errors.Is(err, ErrLocked) && !errors.Is(err, fs.ErrPermission) {
			err = nil
		}
	}()
	defer catch(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	held, _, _, err = openData(path, Options{ReadOnly: true, lockWait: wait, mapRule: mapRule{first: pageSize}})
	if err != nil {
		return nil, err
	}
	return held, nil
}

func (s *Staged) release() error {
	if s.held == nil {
		return nil
	}
	held := s.held
	s.held = nil
	return held.db.Close()
}

// removeLeft removes what a killed restore of the file has left: copies, and second names
// of a file that was not replaced after all.
func (s *Staged) removeLeft() error {
	files, err := os.ReadDir(filepath.Dir(s.place))
	for _, f := range files {
		rest, ours := strings.CutPrefix(f.Name(), filepath.Base(s.place))
		path := filepath.Join(filepath.Dir(s.place), f.Name())
		if digits, ok := strings.CutPrefix(rest, stagedName); ours && ok {
			digits, _, _ = strings.Cut(digits, "-journal")
			if digits != "" && strings.Trim(digits, "0123456789") == "" {
				err = errors.Join(err, os.Remove(path))
			}
		}
		if ours && strings.HasPrefix(rest, keptName) && s.old != nil {
			if info, statErr := os.Stat(path); statErr == nil && os.SameFile(info, s.old) {
				err = errors.Join(err, removeAll(path))
			}
		}
	}
	return err
}

// removeAll removes a data file and its journals.
func removeAll(path string) (err error) {
	names := JournalNames(path)
	for _, name := range append(names[:], path) {
		if e := os.Remove(name); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// copyFrom makes the copy.
func (s *Staged) copyFrom(ctx context.Context, from string) error {
	info, err := os.Stat(from)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return ErrDirectory
	case !info.Mode().IsRegular():
		return ErrNotRegular
	case s.old != nil && os.SameFile(s.old, info):
		return ErrOwnFile
	}
	held, err := holdFile(from, s.lockWait)
	if err != nil {
		return err
	}
	if held != nil {
		defer held.db.Close()
	}
	f, err := os.CreateTemp(filepath.Dir(s.place), filepath.Base(s.place)+stagedName+"*")
	if err != nil {
		return &writeError{err}
	}
	s.copy = f.Name()
	if err := errors.Join(copyInto(ctx, f, from), f.Close()); err != nil {
		return err
	}
	return copyJournals(ctx, from, s.copy, nil)
}

// copyInto copies what the file at from holds to the end of f, and makes it durable.
func copyInto(ctx context.Context, f *os.File, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	w := &flushingWriter{ctx: ctx, file: f, size: info.Size(), part: partIn(ctx)}
	if _, err := io.Copy(w, source); err != nil && w.err == nil {
		return err
	}
	if err := cmp.Or(w.err, f.Sync()); err != nil {
		return &writeError{err}
	}
	return nil
}

// copyJournals copies the journals that a data file has, if any, to those of another. They
// get the owner and the permissions of like, unless it is nil.
func copyJournals(ctx context.Context, from, to string, like fs.FileInfo) error {
	names := JournalNames(to)
	for i, name := range JournalNames(from) {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := copyFile(ctx, name, names[i], like); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file to a name that must be free.
func copyFile(ctx context.Context, from, to string, like fs.FileInfo) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = copyInto(ctx, f, from); err == nil && like != nil {
		err = keepOwner(f, like)
	}
	return errors.Join(err, f.Close())
}

// Place puts the copy, which the caller has closed, in its place. What was there is kept,
// with its journals, under the name of the data file with stamp behind it, and perhaps a
// number. Place returns that name; it is "" if nothing was there. After an error nothing has changed, unless that
// is ErrNotSynced: then the copy is in its place. Errors begin with the data file's path.
func (s *Staged) Place(ctx context.Context, stamp string) (kept string, err error) {
	if kept, err = s.putInPlace(ctx, s.place+keptName+stamp); err != nil {
		err = fmt.Errorf("%s: %w", s.name, openError(err))
	}
	return kept, err
}

func (s *Staged) putInPlace(ctx context.Context, keep string) (kept string, err error) {
	if err := s.finish(); err != nil {
		return "", err
	}
	s.reach("checked")
	kept, err = s.keepOld(ctx, keep)
	if err == nil {
		s.reach("kept")
		err = s.replace()
	}
	if err != nil {
		if kept != "" {
			removeAll(kept)
		}
		return "", err
	}
	s.reach("placed")
	// The journals belong to what was there before. They go once the renaming is on disk.
	if err = syncDir(filepath.Dir(s.place)); err == nil {
		err = errors.Join(removeJournal(s.name, os.Remove), s.release())
	}
	if err != nil {
		return kept, fmt.Errorf("%w: %w", ErrNotSynced, openError(err))
	}
	s.reach("done")
	return kept, nil
}

func (s *Staged) reach(step string) {
	if s.at != nil {
		s.at(step)
	}
}

// finish makes the copy a file of its own, with the owner of what it replaces, and durable.
func (s *Staged) finish() (err error) {
	defer catch(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	db, err := bolt.Open(s.copy, 0o600, &bolt.Options{
		PageSize: pageSize, FreelistType: bolt.FreelistArrayType, NoSync: true, NoStatistics: true,
	})
	if err != nil {
		return err
	}
	state, err := stateOf(db)
	if err == nil && state.first != 0 {
		err = ErrInUse
	}
	if err == nil {
		err = putWhole(db)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	f, err := os.OpenFile(s.copy, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if s.old != nil {
		err = keepOwner(f, s.old)
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// stateOf returns what a data file says of itself.
func stateOf(db *bolt.DB) (state journalState, err error) {
	tx, err := db.Begin(false)
	if err != nil {
		return state, err
	}
	defer tx.Rollback()
	tree, err := openTree(db, tx, dataBucket, pageSet(nil).with(uint64(tx.Size())/pageSize))
	if err != nil {
		return state, err
	}
	return tree.state, nil
}

// keepOld gives what is at the place a second name, and its journals copies beside it. It
// returns "" if nothing is there.
func (s *Staged) keepOld(ctx context.Context, keep string) (kept string, err error) {
	if s.old == nil && !anyJournal(s.name) {
		return "", nil
	}
	for first, n := keep, 2; isTaken(keep); n++ {
		keep = fmt.Sprintf("%s-%d", first, n)
	}
	if err := copyJournals(ctx, s.name, keep, s.old); err != nil {
		return keep, err
	}
	if s.old != nil && os.Link(s.place, keep) != nil { // the file system has no links
		if err := copyFile(ctx, s.place, keep, s.old); err != nil {
			return keep, err
		}
	}
	return keep, syncDir(filepath.Dir(s.place))
}

// isTaken reports whether there is a data file or a journal of a name.
func isTaken(path string) bool {
	names := JournalNames(path)
	return slices.ContainsFunc(append(names[:], path), func(name string) bool {
		_, err := os.Lstat(name)
		return err == nil
	})
}

// replace renames the copy to the place.
func (s *Staged) replace() error {
	if s.old == nil {
		// Unlike a renaming, a link never replaces a file that has appeared meanwhile.
		err := os.Link(s.copy, s.place)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	} else if _, err := look(s.place, s.old); err != nil {
		return errors.Unwrap(err)
	}
	if runtime.GOOS == "windows" { // an open file cannot be replaced
		if err := s.release(); err != nil {
			return err
		}
	}
	return os.Rename(s.copy, s.place)
}

// Remove removes the copy, unless Place has put it in place, and releases the lock.
func (s *Staged) Remove() error {
	var err error
	if s.copy != "" {
		err = removeAll(s.copy)
	}
	return errors.Join(err, s.release())
}
