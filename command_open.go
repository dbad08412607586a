package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sello/internal/disk"
	"sello/internal/memory"
	"sello/internal/wallclock"
)

// How a command gets at the store: in the server that has the file open, over its socket, or else by
// opening file or database itself. A file of an older schema is migrated first.

// withAdmin runs fn with a caller of operations on the store: in the server that has
// the file open, or else in this process. With mayCreate it creates a missing store.
func (c *invocation) withAdmin(ctx context.Context, mayCreate bool, fn func(adminCaller) error) error {
	if call, ok := overSocket(c.db); ok {
		return fn(call)
	}
	log := slog.New(slog.NewJSONHandler(c.stderr, nil))
	store, err := c.open(ctx, mayCreate, log)
	if err != nil {
		return err
	}
	e := newEngineBy(newWallClock(wallclock.System()), store, cryptoSeed)
	e.log = log
	if err := c.ofFile(e.open(ctx)); err != nil {
		return errors.Join(err, store.leave())
	}
	a := &admin{engine: e, flush: func(context.Context) error { return nil }}
	a.makeBackup = backupOf(store)
	direct := func(ctx context.Context, name string, in, out any) error {
		return a.direct(withOperator(ctx, thisUser()), name, in, out)
	}
	return errors.Join(fn(direct), store.Close())
}

// onlyReads is for a command that writes nothing, except an entry of the audit log where it can: then
// a database may be a standby, or its user read-only. A file is opened as for other commands.
func (c *invocation) onlyReads() { c.readOnly = c.readOnly || isDatabase(c.db) }

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
	return c.withAdmin(ctx, false, func(call adminCaller) error {
		org, err := c.onlyOrg(ctx, call)
		if err != nil {
			return err
		}
		return fn(call, org)
	})
}

// callAndPrint calls an operation and prints its result, in words as show writes it.
func callAndPrint[T any](ctx context.Context, c *invocation, call adminCaller, operation string, in any, show func(io.Writer, *T)) error {
	var out T
	if err := call(ctx, operation, in, &out); err != nil {
		return err
	}
	return c.print(out, func(w io.Writer) { show(w, &out) })
}

// open opens the store. If it is missing, a dry run gets an empty one in memory.
func (c *invocation) open(ctx context.Context, mayCreate bool, log *slog.Logger) (openedStore, error) {
	opts := disk.Options{MustExist: !mayCreate || c.dryRun, ReadOnly: c.readOnly, Dense: denseTables, MemSize: memory.Memtable()}
	store, err := c.openStore(ctx, opts, log)
	if mayCreate && c.dryRun && errors.Is(err, fs.ErrNotExist) {
		return newMemStore(), nil
	}
	return store, err
}

func (c *invocation) openStore(ctx context.Context, opts disk.Options, log *slog.Logger) (openedStore, error) {
	if c.inMemory {
		return newMemStore(), nil
	}
	if !isDatabase(c.db) {
		file, err := c.openFile(opts)
		if err != nil {
			return nil, err // not file: a nil *boltStore in an openedStore is not nil
		}
		return file, nil
	}
	store, err := openPostgres(ctx, c.db, databaseOptions{
		mustExist: opts.MustExist, readOnly: opts.ReadOnly, dense: opts.Dense, log: log, conns: c.pgConns, committed: opts.Committed, setting: isSetting[string], schema: string(tableVersion.fixed()), parts: partition{},
	})
	c.hostUnknown = errors.Is(err, errNoPostgres) || errors.Is(err, errDatabaseNoHost)
	if errors.Is(err, errNoPostgres) {
		err = usageErrorf("%s: este sello no trae PostgreSQL: go build -tags postgres . en el directorio del código hace uno que sí", c.dbName())
	}
	return store, c.ofFile(err)
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
// Whether a database has tables is found when it is opened.
func (c *invocation) mustExist() error {
	if isDatabase(c.db) {
		return nil
	}
	if _, err := os.Lstat(c.db); !errors.Is(err, fs.ErrNotExist) {
		return nil // whatever else is wrong is found when it is opened
	}
	return fmt.Errorf("%s: %w; con -db se dice cuál es el archivo de datos", c.fullPath(), fs.ErrNotExist)
}

// fullPath is dbName, with the path of a file from the root, if the directory that it is in is known.
func (c *invocation) fullPath() string {
	if path, err := filepath.Abs(c.db); err == nil && !isDatabase(c.db) {
		return path
	}
	return c.dbName()
}

func cryptoSeed() (s seed) {
	rand.Read(s[:])
	return s
}

// openMigrated opens the store and an engine on it. It migrates a store of an older
// schema first and describes that in done. It sets opts.Dense.
func (c *invocation) openMigrated(ctx context.Context, opts disk.Options, log *slog.Logger) (store openedStore, e *engine, done *migrated, err error) {
	opts.Dense = denseTables
	if store, err = c.openStore(ctx, opts, log); err != nil {
		return nil, nil, nil, err
	}
	clock := newWallClock(c.machine)
	if clock.Movable = c.machine != nil; !clock.Movable {
		clock.Machine = wallclock.System()
	}
	e = newEngineBy(clock, store, cryptoSeed)
	e.log, e.clock.Changed = log, logClock(log)
	if c.made != "" {
		log.Info("file made", "file", c.made)
	}
	if database, ok := store.(wholeStore); ok {
		database.tell(ctx, log)
	}
	if c.machine != nil {
		err = c.refuseShop(ctx, e)
	}
	if err == nil {
		done, err = c.takeUp(ctx, e, store)
	}
	if err == nil {
		err = e.sign(ctx, thisBuild().Version)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(c.ofFile(err), store.leave())
	}
	return store, e, done, nil
}

// ofFile adds the name of the file or database to an error that does not say it.
func (c *invocation) ofFile(err error) error {
	if err == nil || strings.Contains(err.Error(), c.dbName()) {
		return err
	}
	if refused, ok := errors.AsType[*schemaError](err); ok {
		refused.database = isDatabase(c.db)
	}
	return fmt.Errorf("%s: %w", c.dbName(), err)
}

// takeUp opens an engine on a store. If the store is of an older schema, takeUp migrates it, a
// file with a copy; otherwise it returns nil. Other servers may be using a database of the older
// schema: only sello migrate migrates it.
func (c *invocation) takeUp(ctx context.Context, e *engine, store openedStore) (*migrated, error) {
	err := e.open(ctx)
	if old, ok := errors.AsType[*schemaError](err); !ok || old.cause != "" {
		return nil, err
	}
	// Then the store is of an older schema.
	file, isFile := store.(*boltStore)
	if database, ok := store.(wholeStore); ok {
		if !c.migrates {
			return nil, err
		}
		if err := unserved(ctx, database); err != nil {
			return nil, err
		}
	}
	keep := func(from uint64) (string, error) {
		name := fmt.Sprintf("%s.schema%d", c.db, from)
		if _, err := os.Lstat(name); err == nil { // keep the copy of an earlier migration
			name += "-" + time.Now().UTC().Format(backupStamp)
		}
		made, err := file.backup(ctx, name)
		if err != nil {
			return "", fmt.Errorf("copia de antes de convertir: %w", err)
		}
		return made.File, nil
	}
	if c.noCopy || !isFile {
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
func logClock(log *slog.Logger) func(*wallclock.State) {
	return func(s *wallclock.State) {
		if s.Verdict == wallclock.Safe {
			log.Info("clock safe", "wall", instantOf(s.Wall))
			return
		}
		log.Warn("clock unsafe: nothing is written", "wall", instantOf(s.Wall), "now", instantOf(s.Moment(s.Reading)), "verdict", s.Verdict)
	}
}

// refuseShop refuses a store for a sandbox that no sandbox made, before anything is changed in it.
func (c *invocation) refuseShop(ctx context.Context, e *engine) error {
	s, err := viewStore(ctx, e.store, readSchema)
	if err != nil || s.version == 0 {
		return err
	}
	if m, err := viewStore(ctx, e.store, readMark); m != nil || err != nil {
		return err
	}
	return c.errNotSandbox()
}

// refuseMarked refuses the store of a sandbox, whose clock was moved: it is no shop's (contract §31).
func refuseMarked(ctx context.Context, s Store, name string) error {
	m, err := viewStore(ctx, s, readMark)
	if err == nil && m != nil {
		err = adminErrorf("%s: es de sello sandbox, para pruebas: sello sandbox -db lo abre", name)
	}
	return err
}

func (c *invocation) errNotSandbox() error {
	return adminErrorf("%s: no es un archivo de sello sandbox: elige otro con -db, o ninguno", c.dbName())
}
