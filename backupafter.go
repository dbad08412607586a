package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sello/internal/host"
)

// -backup-after is a command that gets each good backup, to take it to another machine. It
// runs without a shell, beside the server and the next backups: one at a time, for the
// newest backup that it has not got yet.

const (
	afterLimit = time.Hour       // how long the command may take
	afterGrace = 3 * time.Second // between the signals that end it
	afterTail  = 1 << 10         // bytes of its output that are logged: the last ones
)

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

// An afterBackup runs a command for each backup. A nil afterBackup does nothing.
type afterBackup struct {
	args  []string    // of the command, the program first
	fresh chan string // the newest backup that the command has not got yet
	now   func() time.Time
	log   *slog.Logger
	state *backupState
}

const passedFile = "{}" // stands for the backup's path among the words of a command

// newAfterBackup parses a command: the path of a program, or words that spaces separate. Where
// no word is {}, the backup's path is the last argument.
func newAfterBackup(text string) (*afterBackup, error) {
	words := strings.Fields(text)
	if _, err := exec.LookPath(text); err == nil {
		words = []string{text}
	}
	if len(words) == 0 {
		return nil, &usageError{"-backup-after está vacía"}
	}
	path, err := exec.LookPath(words[0])
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	if errors.Is(err, exec.ErrNotFound) {
		err = errNoProgram
	}
	if err == nil {
		words[0], err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("-backup-after: %s: %w", words[0], err)
	}
	if !slices.Contains(words, passedFile) {
		words = append(words, passedFile)
	}
	return &afterBackup{args: words, fresh: make(chan string, 1)}, nil
}

// passOn leaves a backup to run, in place of one that waits. Only one goroutine may call it.
func (a *afterBackup) passOn(file string) {
	if a == nil {
		return
	}
	select {
	case <-a.fresh:
	default:
	}
	a.fresh <- file
}

// run runs the command for each backup until ctx ends.
func (a *afterBackup) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case file := <-a.fresh:
			a.pass(ctx, file)
		}
	}
}

// pass runs the command for a backup, and logs and counts the outcome.
func (a *afterBackup) pass(ctx context.Context, file string) {
	args := slices.Clone(a.args)
	for i, word := range args {
		if word == passedFile {
			args[i] = file
		}
	}
	started, output := a.now(), new(tail)
	err := runCommand(ctx, output, args)
	took := a.now().Sub(started).Milliseconds()
	if err != nil && ctx.Err() != nil {
		a.log.Warn("backup command interrupted", "file", file, "ms", took)
		return
	}
	a.state.passedOn(a.now(), err)
	if err != nil {
		a.log.Error("backup command failed", "file", file, "cause", err.Error(), "output", output.String(), "ms", took)
		return
	}
	a.log.Info("backup command", "file", file, "ms", took)
}

// runCommand runs a command with the environment of this process, without what a
// supervisor says to this process alone. It ends the command when ctx ends or afterLimit is
// over.
func runCommand(ctx context.Context, output *tail, args []string) error {
	limited, cancel := context.WithTimeout(ctx, afterLimit)
	defer cancel()
	cmd := exec.CommandContext(limited, args[0], args[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(supervisorVariables, name)
	})
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = afterGrace
	killAll := host.EndGently(cmd)
	err := cmd.Run()
	switch {
	case limited.Err() != nil:
		killAll()
		if ctx.Err() == nil {
			return fmt.Errorf("it took longer than %v", afterLimit)
		}
	case errors.Is(err, exec.ErrWaitDelay):
		return errors.New("it ended, and something that it started goes on")
	}
	return err
}

// A tail keeps the end of what is written to it. One goroutine may write at a time.
type tail struct {
	text []byte
	cut  bool
}

func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	if n > afterTail {
		b, t.cut = b[n-afterTail:], true
	}
	if over := len(t.text) + len(b) - afterTail; over > 0 {
		t.text, t.cut = append(t.text[:0], t.text[over:]...), true
	}
	t.text = append(t.text, b...)
	return n, nil
}

func (t *tail) String() string {
	text := strings.ToValidUTF8(strings.TrimSpace(string(t.text)), "")
	if t.cut {
		text = "… " + text
	}
	return text
}
