package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
		left, err := plan.made()
		if err != nil || len(left) != 3 || left[2].name != made[49] || left[0].name != made[47] {
			t.Errorf("kept: %v, %v", left, err)
		}
	})
	for _, name := range foreign {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("what is not of the plan: %v", err)
		}
	}
}
