package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A backedUp tells of a backup that was made.
type backedUp struct {
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	Entries int    `json:"entries"`
}

// backup puts a copy of the state that was committed last at path (see
// disk.File.Backup).
func (s *boltStore) backup(ctx context.Context, path string) (*backedUp, error) {
	made, err := s.file.Backup(ctx, path)
	return (*backedUp)(made), seamError(err)
}

// A backupPlan makes backups from time to time and keeps the newest.
type backupPlan struct {
	every time.Duration
	keep  int
	dir   string
	name  string // what their names begin with
	make  func(ctx context.Context, path string) (*backedUp, error)
	now   func() time.Time
	log   *slog.Logger
}

const (
	backupStamp    = "20060102T150405Z" // in the name, UTC
	backupRetry    = 5 * time.Minute    // after one that failed, if the next is not sooner
	leastBackupGap = time.Minute        // between two
)

// check finds fault with what the command line says of the plan.
func (p *backupPlan) check() error {
	if (p.every == 0) != (p.dir == "") {
		return &usageError{"-backup-every y -backup-dir van juntas"}
	}
	if p.every == 0 {
		return nil
	}
	if p.every < leastBackupGap {
		return &usageError{"-backup-every debe ser de al menos 1m, como 90m o 24h"}
	}
	if p.keep < 1 {
		return &usageError{"-backup-keep debe ser mayor a 0"}
	}
	info, err := os.Stat(p.dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: no es un directorio", p.dir)
	}
	f, err := os.CreateTemp(p.dir, p.name+backupStamp+".db.new-*") // which clearAway knows
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok { // which names a temporary file
			err = e.Err
		}
		return fmt.Errorf("%s: no se puede escribir en el directorio: %w", p.dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// backupName is what the names of a file's backups begin with.
func backupName(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base)) + "-"
}

// run makes backups until ctx ends. The rhythm is that of the files that are
// there, so that a restart neither skips one nor makes one too many.
func (p *backupPlan) run(ctx context.Context) {
	p.clearAway()
	wait := p.untilNext()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		started := p.now()
		done, err := p.make(ctx, filepath.Join(p.dir, p.name+started.UTC().Format(backupStamp)+".db"))
		if err == nil {
			p.log.Info("backup", "file", done.File, "bytes", done.Bytes, "entries", done.Entries, "ms", p.now().Sub(started).Milliseconds())
			err = p.prune()
		}
		if err != nil && ctx.Err() == nil {
			p.log.Error("background", "task", "backup", "cause", err.Error())
		}
		if wait = max(p.untilNext(), leastBackupGap); err != nil {
			wait = min(p.every, backupRetry)
		}
	}
}

// clearAway removes what is left of a backup that a kill has cut off.
func (p *backupPlan) clearAway() {
	files, _ := os.ReadDir(p.dir)
	for _, f := range files {
		if _, rest, ok := p.moment(f.Name()); ok && strings.HasPrefix(rest, ".new-") {
			os.Remove(filepath.Join(p.dir, f.Name()))
		}
	}
}

// moment reads the moment in the name of one of the plan's backups, and what
// follows that name.
func (p *backupPlan) moment(name string) (at time.Time, rest string, ok bool) {
	const form = backupStamp + ".db"
	stamp, ok := strings.CutPrefix(name, p.name)
	if !ok || len(stamp) < len(form) {
		return at, "", false
	}
	at, err := time.Parse(form, stamp[:len(form)])
	return at, stamp[len(form):], err == nil
}

// untilNext is how long until the next backup is due.
func (p *backupPlan) untilNext() time.Duration {
	made, err := p.made()
	if err != nil || len(made) == 0 {
		return 0
	}
	return max(made[len(made)-1].at.Add(p.every).Sub(p.now()), 0)
}

type madeBackup struct {
	name string
	at   time.Time
}

// made lists the plan's backups, oldest first, but for those from the future: the
// clock was wrong, then or now, and they are nobody's to count or to remove. Nor
// is what is no file.
func (p *backupPlan) made() ([]madeBackup, error) {
	files, err := os.ReadDir(p.dir) // sorted by name
	var made []madeBackup
	for _, f := range files {
		if at, rest, ok := p.moment(f.Name()); ok && rest == "" && f.Type().IsRegular() && !at.After(p.now()) {
			made = append(made, madeBackup{f.Name(), at})
		}
	}
	return made, err
}

// prune removes the oldest backups but for those to keep.
func (p *backupPlan) prune() error {
	made, err := p.made()
	for _, old := range made[:max(len(made)-p.keep, 0)] {
		err = errors.Join(err, os.Remove(filepath.Join(p.dir, old.name)))
	}
	return err
}
