package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sello/internal/handover"
	"sello/internal/rotation"
)

// Backups: copies of the open file, made at intervals or when asked for; the newest ones are
// kept. Each new copy is passed to a command, if one is set.

// A backedUp describes a finished backup.
type backedUp struct {
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
	Entries int    `json:"entries"`
}

// backup writes a copy of the last committed state to path (see disk.File.Backup).
func (s *boltStore) backup(ctx context.Context, path string) (*backedUp, error) {
	made, err := s.file.Backup(ctx, path)
	return (*backedUp)(made), seamError(err)
}

// backupOf returns what copies a store into a file; nil if nothing does.
func backupOf(s openedStore) func(ctx context.Context, path string) (*backedUp, error) {
	switch s := s.(type) {
	case *boltStore:
		return s.backup
	case wholeStore:
		return func(ctx context.Context, path string) (*backedUp, error) {
			made, err := s.writeFile(ctx, path)
			return (*backedUp)(made), seamError(err)
		}
	}
	return nil
}

// A backupPlan makes backups at an interval and keeps the newest.
type backupPlan struct {
	every time.Duration // 0: only when somebody asks for one, and all are kept
	keep  int
	dir   string
	name  string // the beginning of their names
	after string // the command that gets each backup; "" for none
	make  func(ctx context.Context, path string) (*backedUp, error)
	now   func() time.Time
	log   *slog.Logger

	state       *backupState
	afterBackup *handover.Command // of after; nil without
}

const (
	backupStamp    = rotation.Stamp
	backupRetry    = 5 * time.Minute // wait after a failure, if every is not shorter
	leastBackupGap = time.Minute     // the shortest interval
)

// copies are the backups in the directory.
func (p *backupPlan) copies() rotation.Copies { return rotation.Copies{Dir: p.dir, Name: p.name} }

// check returns an error if the command line's settings of the plan are wrong.
func (p *backupPlan) check() error {
	if (p.every == 0) != (p.dir == "") {
		return &usageError{"-backup-every y -backup-dir van juntas"}
	}
	if p.every == 0 && p.after != "" {
		return &usageError{"-backup-after va con -backup-every y -backup-dir"}
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
	err := p.copies().Check()
	if errors.Is(err, rotation.ErrNoDirectory) {
		return fmt.Errorf("%s: no es un directorio", p.dir)
	}
	if e, ok := errors.AsType[*rotation.WriteError](err); ok {
		return fmt.Errorf("%s: no se puede escribir en el directorio: %w", p.dir, e.Err)
	}
	if err != nil || p.after == "" {
		return err
	}
	p.afterBackup, err = newAfterBackup(p.after)
	return err
}

// backupName returns the beginning of the names of a file's backups.
func backupName(file string) string {
	base := filepath.Base(file)
	return strings.TrimSuffix(base, filepath.Ext(base)) + "-"
}

// run makes backups until ctx ends. The age of the newest one in the directory says
// when the next is due, so that a restart neither skips one nor makes an extra one.
func (p *backupPlan) run(ctx context.Context) {
	p.copies().ClearAway()
	if made, _ := p.copies().Made(p.now()); len(made) > 0 {
		p.state.made(made[len(made)-1].At, nil)
	}
	wait := p.copies().UntilNext(p.every, p.now())
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		_, err := p.makeOne(ctx)
		if wait = max(p.copies().UntilNext(p.every, p.now()), leastBackupGap); err != nil {
			wait = min(p.every, backupRetry)
		}
	}
}

// makeOne makes a backup now, and removes the oldest beyond p.keep, if the plan has an interval.
// Only one backup is made at a time.
func (p *backupPlan) makeOne(ctx context.Context) (*backedUp, error) {
	p.state.making.Lock()
	defer p.state.making.Unlock()
	started := p.now()
	done, err := p.make(ctx, p.copies().Path(started))
	if ctx.Err() == nil {
		p.state.made(started, err)
	}
	if err == nil {
		p.afterBackup.Hand(done.File)
		p.log.Info("backup", "file", done.File, "bytes", done.Bytes, "entries", done.Entries, "ms", p.now().Sub(started).Milliseconds())
		if p.every > 0 {
			err = p.copies().Prune(p.keep, p.now())
		}
	}
	if err != nil && ctx.Err() == nil {
		p.log.Error("background", "task", "backup", "cause", err.Error())
	}
	return done, err
}

// A backupState is what is known of the backups of a server. Moments are zero where there
// was none.
type backupState struct {
	making sync.Mutex // while one is made

	mu       sync.Mutex
	last     time.Time // of the newest good backup, also one that an earlier process made
	failures int       // backups that failed since the start
	sent     time.Time // when -backup-after last succeeded
	unsent   int       // how often it failed since the start
}

// A backupFigures is a backupState at one moment.
type backupFigures struct {
	Last, Sent       time.Time
	Failures, Unsent int
}

func (s *backupState) figures() backupFigures {
	s.mu.Lock()
	defer s.mu.Unlock()
	return backupFigures{s.last, s.sent, s.failures, s.unsent}
}

func (s *backupState) made(at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failures++
	} else if at.After(s.last) {
		s.last = at
	}
}

func (s *backupState) passedOn(at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.unsent++
	} else {
		s.sent = at
	}
}

// supervisorVariables are meant by systemd for this process alone, not for its children.
var supervisorVariables = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}

// newAfterBackup parses -backup-after: a command that gets each good backup, to take it to another
// machine. It runs beside the server and the next backups, without the supervisorVariables.
func newAfterBackup(text string) (*handover.Command, error) {
	c, err := handover.Parse(text, supervisorVariables...)
	if errors.Is(err, handover.ErrEmpty) {
		return nil, &usageError{"-backup-after está vacía"}
	}
	if e, ok := errors.AsType[*exec.Error](err); ok {
		if errors.Is(e.Err, exec.ErrNotFound) {
			e.Err = errNoProgram
		}
		return nil, fmt.Errorf("-backup-after: %s: %w", e.Name, e.Err)
	}
	return c, err
}

// passOn runs the command for each backup until ctx ends.
func (p *backupPlan) passOn(ctx context.Context) {
	for file := range p.afterBackup.Handed(ctx) {
		p.pass(ctx, file)
	}
}

// pass runs the command for a backup, and logs and counts the outcome.
func (p *backupPlan) pass(ctx context.Context, file string) {
	started := p.now()
	output, err := p.afterBackup.Run(ctx, file)
	took := p.now().Sub(started).Milliseconds()
	if err != nil && ctx.Err() != nil {
		p.log.Warn("backup command interrupted", "file", file, "ms", took)
		return
	}
	p.state.passedOn(p.now(), err)
	if err != nil {
		p.log.Error("backup command failed", "file", file, "cause", err.Error(), "output", output, "ms", took)
		return
	}
	p.log.Info("backup command", "file", file, "ms", took)
}
