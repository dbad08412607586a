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

// TestBackupAfter runs commands, and checks what the log says and what is counted.
func TestBackupAfter(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "9")
	for _, test := range []struct {
		text, log string
		stopped   bool
		unsent    int
	}{
		{"exit ${NOTIFY_SOCKET:-0}", `level=INFO msg="backup command" file="/b/copia 1.db" ms=`, false, 0},
		{"echo sent; echo no such host >&2; exit 3", `level=ERROR msg="backup command failed" file="/b/copia 1.db" cause="exit status 3" output="sent\nno such host" ms=`, false, 1},
		{"sleep 100", `level=WARN msg="backup command interrupted" file="/b/copia 1.db" ms=`, true, 0},
	} {
		log := new(bytes.Buffer)
		p := &backupPlan{now: time.Now, log: slog.New(slog.NewTextHandler(log, nil)), state: new(backupState)}
		var err error
		if p.afterBackup, err = newAfterBackup(script(t, test.text)); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		if test.stopped {
			stop()
		}
		p.pass(ctx, "/b/copia 1.db")
		stop()
		if !strings.Contains(log.String(), test.log) || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%s: no %s in\n%s", test.text, test.log, log)
		}
		if f := p.state.figures(); f.Unsent != test.unsent || f.Sent.IsZero() != (test.unsent > 0 || test.stopped) {
			t.Errorf("%s: %+v", test.text, f)
		}
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
