package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// script writes a program for the shell and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	path := filepath.Join(t.TempDir(), "after backup.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// afterBackupOf returns an afterBackup with a log that the test reads.
func afterBackupOf(t *testing.T, text string) (*afterBackup, *bytes.Buffer) {
	t.Helper()
	p, err := newAfterBackup(text)
	if err != nil {
		t.Fatal(err)
	}
	log := new(bytes.Buffer)
	p.now, p.log, p.state = time.Now, slog.New(slog.NewTextHandler(log, nil)), new(backupState)
	return p, log
}

// TestBackupAfter runs commands, and checks what they get and what the log says.
func TestBackupAfter(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/nowhere")
	out := filepath.Join(t.TempDir(), "out")
	program := script(t, `printf '%s|' "$@" "${NOTIFY_SOCKET:-none}" > `+out)
	link := filepath.Join(t.TempDir(), "after") // a path without a space
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		program:                      "/b/copia 1.db|none|",
		link + ` -v  "x  $HOME`:      `-v|"x|$HOME|/b/copia 1.db|none|`,
		link + " copy {} remote:x/*": "copy|/b/copia 1.db|remote:x/*|none|",
	} {
		p, log := afterBackupOf(t, text)
		p.pass(t.Context(), "/b/copia 1.db")
		if got := readText(t, out); got != want || !strings.Contains(log.String(), `msg="backup command" file="/b/copia 1.db"`) {
			t.Errorf("%s: %s, want %s\n%s", text, got, want, log)
		}
		if f := p.state.figures(); f.Sent.IsZero() || f.Unsent != 0 {
			t.Errorf("%+v", f)
		}
	}
}

// TestBackupAfterFails: a command that fails, writes a lot or goes on is told in one line.
func TestBackupAfterFails(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for text, want := range map[string][]string{
		"echo sent; echo no such host >&2; exit 3": {`cause="exit status 3"`, `output="sent\nno such host"`},
		"yes tell | head -c 9000000; exit 1":       {`cause="exit status 1"`, `output="… `},
		"sleep 100 &":                              {`cause="it ended, and something that it started goes on"`},
	} {
		p, log := afterBackupOf(t, script(t, text))
		p.pass(t.Context(), "x")
		for _, part := range want {
			if !strings.Contains(log.String(), part) || strings.Count(log.String(), "\n") != 1 || log.Len() > 2*afterTail {
				t.Errorf("%s: no %s in\n%s", text, part, log)
			}
		}
		if f := p.state.figures(); !f.Sent.IsZero() || f.Unsent != 1 {
			t.Errorf("%+v", f)
		}
	}
}

// TestBackupAfterStops: a command that hangs ends with the server, with what it started,
// and keeps no later backup from being made. Of those that wait it gets the newest.
func TestBackupAfterStops(t *testing.T) {
	t.Parallel()
	skipShort(t)
	begun := filepath.Join(t.TempDir(), "begun")
	p, log := afterBackupOf(t, script(t, `echo "$1" >> `+begun+`; trap '' TERM; sleep 100 & sleep 100; sleep 100`))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { p.run(ctx); close(ended) }()
	for _, file := range []string{"1", "2", "3"} { // none of these calls waits
		p.passOn(file)
		for file == "1" {
			if text, _ := os.ReadFile(begun); len(text) > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	if got := <-p.fresh; got != "3" || readText(t, begun) != "1\n" {
		t.Errorf("%s waits, begun: %s", got, readText(t, begun))
	}
	stop()
	<-ended
	if !strings.Contains(log.String(), `msg="backup command interrupted" file=1`) || p.state.figures().Unsent != 0 {
		t.Errorf("%+v\n%s", p.state.figures(), log)
	}
}

// TestBackupAfterFlag: what is wrong with the flag is said at the start.
func TestBackupAfterFlag(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	serve := "serve -addr 127.0.0.1:0 -backup-after "
	for line, want := range map[string]string{
		serve + "true": "-backup-after va con -backup-every y -backup-dir",
		serve + "no-such-program -backup-every 1h -backup-dir " + s.dir:        "-backup-after: no-such-program: no se encuentra ese programa",
		serve + s.file("text", "x") + " -backup-every 1h -backup-dir " + s.dir: "/text: sin permiso",
		serve + s.dir + "/missing -backup-every 1h -backup-dir " + s.dir:       "/missing: no existe",
	} {
		if code, _, errs := s.run(line); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s", line, code, errs)
		}
	}
	out := filepath.Join(s.dir, "sent")
	s.env["SELLO_BACKUP_AFTER"] = script(t, fmt.Sprintf(`cp "$1" %[1]s.part && mv %[1]s.part %[1]s`, out)) // never there in part
	s.env["SELLO_BACKUP_DIR"], s.env["SELLO_BACKUP_EVERY"] = s.dir, "1h"
	r, _ := s.start("serve")
	for {
		if _, err := os.Stat(out); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	r.stop()
	s.ok("verify -db " + out)
}
