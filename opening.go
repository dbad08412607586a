package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sello/internal/disk"
)

// withAdmin runs fn with a caller of operations on the file: in the server that has
// it open, or else in this process. With mayCreate it creates a missing file.
func (c *invocation) withAdmin(mayCreate bool, fn func(adminCaller) error) error {
	if call, ok := overSocket(c.db); ok {
		return fn(call)
	}
	store, err := c.open(mayCreate)
	if err != nil {
		return err
	}
	e := newEngineBy(newWallClock(theMachine()), store, cryptoSeed)
	e.log = slog.New(slog.NewJSONHandler(c.stderr, nil))
	file, _ := store.(*boltStore)
	if err := c.ofFile(e.open(context.Background())); err != nil {
		if file != nil {
			return errors.Join(err, file.leave())
		}
		return errors.Join(err, store.Close())
	}
	a := &admin{engine: e, flush: func(context.Context) error { return nil }}
	if file != nil {
		a.makeBackup = file.backup
	}
	direct := func(ctx context.Context, name string, in, out any) error {
		return a.direct(withOperator(ctx, thisUser()), name, in, out)
	}
	return errors.Join(fn(direct), store.Close())
}

// onlyOrg returns the organization of -org, or the only one in the file.
func (c *invocation) onlyOrg(ctx context.Context, call adminCaller) (string, error) {
	if c.org != "" {
		return c.org, nil
	}
	var slugs []string
	if err := call(ctx, "organizations", struct{}{}, &slugs); err != nil {
		return "", err
	}
	switch len(slugs) {
	case 0:
		return "", adminErrorf("no hay ninguna organización: sello apply hace la primera")
	case 1:
		return slugs[0], nil
	}
	return "", &usageError{"falta -org" + thereAre(slugs)}
}

// withOrg is withAdmin for operations on one organization.
func (c *invocation) withOrg(ctx context.Context, fn func(call adminCaller, org string) error) error {
	return c.withAdmin(false, func(call adminCaller) error {
		org, err := c.onlyOrg(ctx, call)
		if err != nil {
			return err
		}
		return fn(call, org)
	})
}

// open opens the file. If it is missing, a dry run gets an empty store in memory.
func (c *invocation) open(mayCreate bool) (Store, error) {
	if _, err := os.Stat(c.db); mayCreate && c.dryRun && errors.Is(err, fs.ErrNotExist) {
		return newMemStore(), nil
	}
	s, err := c.openFile(disk.Options{MustExist: !mayCreate, ReadOnly: c.readOnly, Dense: denseTables, MemSize: memSizeFor(memoryFor(hereMemory()))})
	if err != nil {
		return nil, err // not s: a nil *boltStore in a Store is not nil
	}
	return s, nil
}

// openFile opens the data file. If it was not there, c.made is its path.
func (c *invocation) openFile(opts disk.Options) (*boltStore, error) {
	missing := c.mustExist()
	if missing != nil && opts.MustExist {
		return nil, missing
	}
	store, err := openBolt(c.db, opts)
	if missing != nil && err == nil {
		c.made = c.fullPath()
	}
	return store, err
}

// mustExist returns an error if the data file is missing, which says where it was looked for.
func (c *invocation) mustExist() error {
	if _, err := os.Lstat(c.db); !errors.Is(err, fs.ErrNotExist) {
		return nil // whatever else is wrong is found when it is opened
	}
	return fmt.Errorf("%s: %w; con -db se dice cuál es el archivo de datos", c.fullPath(), fs.ErrNotExist)
}

// fullPath is the path of the data file from the root, if the directory that it is in is known.
func (c *invocation) fullPath() string {
	if path, err := filepath.Abs(c.db); err == nil {
		return path
	}
	return c.db
}

// cryptoSeed returns the random seed of one operation.
func cryptoSeed() (s seed) {
	rand.Read(s[:])
	return s
}

// openMigrated opens the file and an engine on it. It migrates a file of an older
// schema first and describes that in done. It sets opts.Dense.
func (c *invocation) openMigrated(ctx context.Context, opts disk.Options, log *slog.Logger) (store *boltStore, e *engine, done *migrated, err error) {
	opts.Dense = denseTables
	if store, err = c.openFile(opts); err != nil {
		return nil, nil, nil, err
	}
	e = newEngineBy(newWallClock(theMachine()), store, cryptoSeed)
	e.log, e.clock.changed = log, logClock(log)
	if c.made != "" {
		log.Info("file made", "file", c.made)
	}
	if done, err = c.takeUp(ctx, e, store); err == nil {
		err = e.sign(ctx, thisBuild().Version)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(c.ofFile(err), store.leave())
	}
	return store, e, done, nil
}

// ofFile adds the file's name to an error that does not say it.
func (c *invocation) ofFile(err error) error {
	if err == nil || strings.Contains(err.Error(), c.db) {
		return err
	}
	return fmt.Errorf("%s: %w", c.db, err)
}

// takeUp opens an engine on a file. If the file is of an older schema, takeUp migrates
// it; otherwise it returns nil.
func (c *invocation) takeUp(ctx context.Context, e *engine, store *boltStore) (*migrated, error) {
	err := e.open(ctx)
	if old, ok := errors.AsType[*schemaError](err); !ok || old.cause != "" {
		return nil, err
	}
	// Then the file is of an older schema.
	keep := func(from uint64) (string, error) {
		name := fmt.Sprintf("%s.schema%d", c.db, from)
		if _, err := os.Lstat(name); err == nil { // keep the copy of an earlier migration
			name += "-" + time.Now().UTC().Format(backupStamp)
		}
		made, err := store.backup(ctx, name)
		if err != nil {
			return "", fmt.Errorf("copia de antes de convertir: %w", err)
		}
		return made.File, nil
	}
	if c.noCopy {
		keep = nil
	}
	done, err := e.migrate(ctx, keep)
	if err != nil {
		return nil, err
	}
	e.log.Info("migrated", "from", done.From, "to", done.To, "copy", done.Copy)
	return done, e.open(ctx)
}

// logClock returns a function that logs changes of the clock's verdict.
func logClock(log *slog.Logger) func(*clockState) {
	return func(s *clockState) {
		if s.verdict == clockSafe {
			log.Info("clock safe", "wall", instantOf(s.wall))
			return
		}
		log.Warn("clock unsafe: nothing is written", "wall", instantOf(s.wall), "now", instantOf(s.moment(s.reading)), "verdict", s.verdict)
	}
}
