package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"
)

// Errors of a File that is open.
var (
	// From any call after Close or Leave.
	ErrClosed = errors.New("store: closed")

	// From Commit and Snapshot: nothing was stored, and a later Commit may succeed. The
	// disk is full, or another resource is used up.
	ErrUnavailable = errors.New("store: unavailable")

	// The ErrUnavailable of a File that has failed (see Failed).
	ErrFailed = fmt.Errorf("%w: the store has failed", ErrUnavailable)

	// The cause of an ErrUnavailable: the file may not become longer on this system.
	ErrFull = berrors.ErrMaxSizeReached

	// The ErrUnavailable of a File that was opened with ReadOnly.
	ErrReadOnly = fmt.Errorf("%w: opened for reading alone", ErrUnavailable)

	// Wrapped by every error that says that the data file is damaged; see DamageError.
	ErrDamaged = errors.New("store: damaged value")
)

// Errors of Failed about the file at its path.
var (
	ErrRemoved  = errors.New("the file was removed")
	ErrReplaced = errors.New("the file was replaced") // also from Open
	ErrCutShort = errors.New("the file was cut short")
)

// Errors of Open. They leave the data file as it was.
var (
	ErrDirectory  = errors.New("is a directory")
	ErrNotRegular = errors.New("not a regular file")
	ErrPermission = errors.New("may not be read and written by this user")
	ErrLocked     = errors.New("another process has it open")
	ErrEmpty      = errors.New("the file is empty")
	ErrForeign    = errors.New("not a file of this kind")
	ErrNoHeader   = errors.New("file damaged: neither of its two headers is whole")

	// Added to an error of the journal: the damaged header may have asked for none.
	ErrOneHeader = errors.New("one of its two headers is damaged")
)

// What is wrong with a journal, from Open.
var (
	ErrJournalRecord  = errors.New("journal damaged: a record cannot be read")
	ErrJournalHeader  = errors.New("journal damaged: the header is missing")
	ErrJournalPart    = errors.New("journal damaged: a part is missing")
	ErrJournalGap     = errors.New("journal damaged: a record is missing")
	ErrJournalCut     = errors.New("journal damaged: the end is missing")
	ErrJournalForeign = errors.New("the journal belongs to another file, or to another time of this one")
	ErrFileOlder      = errors.New("the file is older than its journal")
)

// Errors of Backup. All but ErrNotSynced leave what was at the path as it was.
var (
	ErrDanglingLink = errors.New("is a symbolic link to nothing")
	ErrNoDirectory  = errors.New("there is no such directory")
	ErrOwnFile      = errors.New("is the data file itself")
	ErrInUse        = errors.New("is in use, or was and was not closed: it is not replaced")
	ErrExists       = errors.New("exists and is not replaced") // and why
	ErrCopyDiffers  = errors.New("the copy differs from what was copied")
	ErrNotSynced    = errors.New("the copy is there, but its name may not be on the disk") // and why
)

// A DamageError says that the data file is damaged: what a page or a value holds is
// not what was written. Error does not name the file.
type DamageError struct {
	File  string // its path
	Page  int64  // -1: unknown
	Table int    // first byte of the key whose value is damaged; -1: unknown
	Err   error  // wraps ErrDamaged
}

func (e *DamageError) Error() string { return e.Err.Error() }
func (e *DamageError) Unwrap() error { return e.Err }

func damagedPage(id uint64, what string) error {
	return &DamageError{Page: int64(id), Table: -1, Err: fmt.Errorf("%w: page %d %s", ErrDamaged, id, what)}
}

func damagedValue(key []byte) error {
	return &DamageError{Page: -1, Table: int(key[0]), Err: fmt.Errorf("%w in table 0x%02x", ErrDamaged, key[0])}
}

// inFile turns an error that wraps ErrDamaged into a DamageError that names the file.
func inFile(path string, err error) error {
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	named := &DamageError{path, -1, -1, err}
	if e, ok := errors.AsType[*DamageError](err); ok {
		named.Page, named.Table = e.Page, e.Table
	}
	return named
}

// A TruncatedError says that a data file is shorter than its header requires.
type TruncatedError struct{ Size, Least int64 } // bytes

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("file truncated: %d bytes of at least %d", e.Size, e.Least)
}

// A MissingJournalError says that a file of the journal is missing and that the data
// file is not whole without it.
type MissingJournalError struct{ Name string } // without its directory

func (e *MissingJournalError) Error() string {
	return e.Name + " is missing, and the file is not whole without it"
}

// A LeftJournalError says that a data file needs no journal, but that one beside it goes
// on from a later state of the file.
type LeftJournalError struct {
	Name string // without its directory
	Err  error
}

func (e *LeftJournalError) Error() string { return e.Err.Error() + e.Advice() }
func (e *LeftJournalError) Unwrap() error { return e.Err }

// Advice returns what Error adds to the text of Err.
func (e *LeftJournalError) Advice() string {
	return fmt.Sprintf(" (%s); if the file is a copy put there on purpose, remove that journal", e.Name)
}

// openError says why a file could not be opened. The caller names the path.
func openError(err error) error {
	if errors.Is(err, berrors.ErrTimeout) {
		return ErrLocked
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// commitError wraps an error of bbolt's Commit. The result is ErrUnavailable if there
// is no space. For an error of a sync it never is, whatever the errno: afterwards it is
// unknown what is on disk.
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
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("store: commit: %w", err)
}

// beginError wraps an error of beginning a journal. The result is ErrUnavailable if a
// file could not be opened for a reason that may pass: then nothing was stored. After a
// failed sync it is unknown which names are on disk, and another sync would not tell.
func beginError(err error) error {
	e, ok := errors.AsType[*fs.PathError](err)
	if ok && e.Op == "open" && !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return commitError(fmt.Errorf("journal: %w", err))
}
