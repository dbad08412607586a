// Package rotation keeps the newest of the copies of something in a directory. The name of each
// tells when it was made.
package rotation

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Stamp is the form of the moment in a name, UTC.
const Stamp = "20060102T150405Z"

const form = Stamp + ".db"

// Copies are those in a directory whose names begin with Name.
type Copies struct{ Dir, Name string }

// A Copy is one of them.
type Copy struct {
	Name string
	At   time.Time
}

// Path returns the path of a copy made at a moment.
func (c Copies) Path(at time.Time) string {
	return filepath.Join(c.Dir, c.Name+at.UTC().Format(form))
}

// ErrNoDirectory says that the directory is something else.
var ErrNoDirectory = errors.New("not a directory")

// A WriteError says that nothing can be written into the directory.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return "cannot write: " + e.Err.Error() }

func (e *WriteError) Unwrap() error { return e.Err }

// Check returns an error if copies cannot be made.
func (c Copies) Check() error {
	info, err := os.Stat(c.Dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return ErrNoDirectory
	}
	f, err := os.CreateTemp(c.Dir, c.Name+form+".new-*") // a name that ClearAway removes
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok { // its path is the temporary file's
			err = e.Err
		}
		return &WriteError{err}
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// ClearAway removes the temporary files of copies whose making was killed: those with .new- after
// the name.
func (c Copies) ClearAway() {
	files, _ := os.ReadDir(c.Dir)
	for _, f := range files {
		if _, rest, ok := c.moment(f.Name()); ok && strings.HasPrefix(rest, ".new-") {
			os.Remove(filepath.Join(c.Dir, f.Name()))
		}
	}
}

// moment parses the name of one of the copies. It returns the moment in the
// name and what follows the extension; ok is false for any other name.
func (c Copies) moment(name string) (at time.Time, rest string, ok bool) {
	stamp, ok := strings.CutPrefix(name, c.Name)
	if !ok || len(stamp) < len(form) {
		return at, "", false
	}
	at, err := time.Parse(form, stamp[:len(form)])
	return at, stamp[len(form):], err == nil
}

// UntilNext returns how long it is until the next copy is due.
func (c Copies) UntilNext(every time.Duration, now time.Time) time.Duration {
	made, err := c.Made(now)
	if err != nil || len(made) == 0 {
		return 0
	}
	return max(made[len(made)-1].At.Add(every).Sub(now), 0)
}

// Made lists the copies, oldest first. It leaves out those dated in the
// future, since the clock was wrong then or is wrong now: they neither count nor are
// removed. It also leaves out what is not a regular file.
func (c Copies) Made(now time.Time) ([]Copy, error) {
	files, err := os.ReadDir(c.Dir) // sorted by name
	var made []Copy
	for _, f := range files {
		if at, rest, ok := c.moment(f.Name()); ok && rest == "" && f.Type().IsRegular() && !at.After(now) {
			made = append(made, Copy{f.Name(), at})
		}
	}
	return made, err
}

// Prune removes all copies except the newest keep.
func (c Copies) Prune(keep int, now time.Time) error {
	made, err := c.Made(now)
	for _, old := range made[:max(len(made)-keep, 0)] {
		err = errors.Join(err, os.Remove(filepath.Join(c.Dir, old.Name)))
	}
	return err
}
