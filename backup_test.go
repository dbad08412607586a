package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sello/internal/disk"
)

// TestBackup copies a store, its file and its memtables, while it is written to.
// Each copy must be one committed state and need no journal.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := testBolt(t, filepath.Join(dir, "store"), disk.Options{MemSize: 20_000, Dense: "n", NoSync: true})
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	begun := make(chan struct{})
	writers.Go(func() {
		// Write n sets the count and puts entry n. Each tenth also deletes the entry before.
		for n := uint64(1); ctx.Err() == nil; n++ {
			err := s.Update(context.Background(), func(tx Tx) error {
				if n%10 == 0 {
					if err := tx.Delete(binary.BigEndian.AppendUint64([]byte("n"), n-1)); err != nil {
						return err
					}
				}
				return errors.Join(putUint(tx, []byte("count"), n), putUint(tx, binary.BigEndian.AppendUint64([]byte("n"), n), n))
			})
			if err != nil {
				t.Error(err)
				return
			}
			if n == 300 {
				close(begun)
			}
		}
	})
	defer writers.Wait()
	defer cancel()
	<-begun
	path := filepath.Join(dir, "copy.db")
	for last := uint64(0); last < 1500 && !t.Failed(); {
		made, err := s.backup(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		last = checkCopy(t, made, last)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new-*")); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// checkCopy checks a copy of TestBackup's store and returns its count, which must
// be at least the given one.
func checkCopy(t *testing.T, made *backedUp, least uint64) (count uint64) {
	t.Helper()
	if info, err := os.Stat(made.File); err != nil || info.Size() != made.Bytes {
		t.Errorf("the copy is said to have %d bytes: %v, %v", made.Bytes, info, err)
	}
	c := testBolt(t, made.File, disk.Options{MustExist: true})
	defer c.Close()
	err := c.View(t.Context(), func(tx Tx) (err error) {
		if count, _, err = getUint(tx, []byte("count")); err != nil {
			return err
		}
		n := uint64(0)
		for e, err := range tx.Scan([]byte("n"), []byte("o"), false) {
			if err != nil {
				return err
			}
			if n++; n%10 == 9 && n < count {
				n++
			}
			if uintIn(e.Key[1:]) != n || uintIn(e.Value) != n {
				return fmt.Errorf("entry %d is %x, %x", n, e.Key, e.Value)
			}
		}
		if n != count || made.Entries != int(n-n/10)+1 {
			return fmt.Errorf("%d entries are told, the count is %d, the last is %d", made.Entries, count, n)
		}
		return nil
	})
	if err != nil || count < least {
		t.Errorf("after %d: %v", least, err)
	}
	return count
}

// TestBackupPlan runs a plan for two days, with a failure and a restart.
func TestBackupPlan(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "[copias]")
	if err := os.MkdirAll(filepath.Join(dir, "sello-20200101T000000Z.db"), 0o700); err != nil { // a directory
		t.Fatal(err)
	}
	foreign := []string{
		"sello-demo-20260101T000000Z.db.new-1", "sello-notes.db.new-1",
		"sello-20990101T000000Z.db", "sello-notes.txt", "sello-20260101T000000Z.db.old", "other-20200101T000000Z.db", "sello-.db",
	}
	for _, name := range foreign {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards the next two
		var made []string
		failing := false
		plan := &backupPlan{
			every: time.Hour, keep: 3, dir: dir, name: backupName("/x/sello.db"), now: time.Now, log: slog.New(slog.DiscardHandler), state: new(backupState),
			make: func(_ context.Context, path string) (*backedUp, error) {
				mu.Lock()
				defer mu.Unlock()
				if failing {
					return nil, errTest
				}
				made = append(made, filepath.Base(path))
				return &backedUp{File: path}, os.WriteFile(path, nil, 0o600)
			},
		}
		want := func(n int, why string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(made) != n {
				t.Errorf("%s: %d backups, want %d", why, len(made), n)
			}
		}
		cut := filepath.Join(dir, "sello-20260101T000000Z.db.new-1") // left by a kill
		if err := os.WriteFile(cut, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var run sync.WaitGroup
		run.Go(func() { plan.run(ctx) })
		want(1, "there is none: at once")
		if _, err := os.Stat(cut); err == nil {
			t.Error("what a kill has left is still there")
		}
		time.Sleep(47*time.Hour + time.Second)
		want(48, "one an hour")
		fail := func(yes bool) {
			mu.Lock()
			defer mu.Unlock()
			failing = yes
		}
		fail(true)
		time.Sleep(time.Hour)
		want(48, "they fail")
		fail(false)
		time.Sleep(backupRetry)
		want(49, "soon after they failed")
		cancel()
		run.Wait()

		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		time.Sleep(50 * time.Minute)
		run.Go(func() { plan.run(ctx) })
		want(49, "a restart: the next is not due yet")
		time.Sleep(15 * time.Minute)
		want(50, "the restart has not put it off")
		cancel()
		run.Wait()

		if f := plan.state.figures(); f.Failures != 1 || time.Since(f.Last).Abs() > time.Hour {
			t.Errorf("%+v", f)
		}
		left, err := plan.copies().Made(plan.now())
		if err != nil || len(left) != 3 || left[2].Name != made[49] || left[0].Name != made[47] {
			t.Errorf("kept: %v, %v", left, err)
		}
	})
	for _, name := range foreign {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("what is not of the plan: %v", err)
		}
	}
}

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
