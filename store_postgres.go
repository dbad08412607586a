//go:build postgres

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"sello/internal/disk"
	"sello/internal/ordered"
	"sello/postgres"
)

// A postgresStore is a Store in PostgreSQL: a postgres.DB behind a write queue. A group of the
// queue is one turn. Others may write to the same database: a group that did not see what they
// wrote loses its turn, and runs again. Values are kept as in a file, each with its checksum.
type postgresStore struct {
	db    *postgres.DB
	queue *writeQueue

	views sync.RWMutex // read-locked by each View, locked by Close
	gone  bool

	committed func(time.Duration)   // told how long each commit took; nil: nobody is
	setting   func(key string) bool // as in databaseOptions
	schema    string                // the same, like dense
	dense     string
	told      postgres.Durability // by tell
}

var _ sharedStore = (*postgresStore)(nil)

func openPostgres(ctx context.Context, address string, opts databaseOptions) (openedStore, error) {
	options := postgres.Options{Conns: opts.conns, Create: !opts.mustExist && !opts.readOnly, Standby: opts.readOnly, Name: "sello", Parts: opts.parts}
	if opts.conns > commandConns { // a command does with what it finds
		options.Fewer = func(has, may int) {
			opts.log.Warn("fewer connections to the database", "has", has, "max", may, "cause", "the database, a limit of the role or a pooler gives no more",
				"help", "set -pg-conns to what there is for each server, or let the database give more: docs/postgresql.md")
		}
	}
	db, err := postgres.Open(ctx, address, options)
	if err != nil {
		return nil, openingError(err)
	}
	s := newPostgresStore(db)
	s.committed, s.setting, s.schema, s.dense = opts.committed, opts.setting, opts.schema, opts.dense
	db.OnGone(func(from, to int64) {
		opts.log.Error("commits are gone", "last", from, "now", to, "cause", "the database has not got commits that it had: a standby that lacked it was promoted, or a backup was restored",
			"help", "ask for a synchronous standby: docs/postgresql.md; sello verify checks what is there")
	})
	return s, nil
}

func newPostgresStore(db *postgres.DB) *postgresStore {
	s := &postgresStore{db: db}
	s.queue = newWriteQueue(s.begin, defaultWaiting)
	return s
}

func (s *postgresStore) View(ctx context.Context, fn func(Tx) error) error {
	return s.view(ctx, s.db.View, fn)
}

func (s *postgresStore) ViewOnce(ctx context.Context, fn func(Tx) error) error {
	return s.view(ctx, s.db.ViewOnce, fn)
}

func (s *postgresStore) view(ctx context.Context, view func(context.Context, func(*postgres.State) error) error, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.views.RLock()
	defer s.views.RUnlock()
	if s.gone {
		return errClosed
	}
	return databaseError(view(ctx, func(state *postgres.State) error { return fn(postgresTx{state}) }))
}

func (s *postgresStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.queue.update(ctx, fn)
}

func (s *postgresStore) writes() *writeQueue { return s.queue }

func (s *postgresStore) Close() error {
	if err := s.queue.close(); err != nil {
		return err
	}
	s.views.Lock()
	defer s.views.Unlock()
	s.gone = true
	return databaseError(s.db.Close())
}

func (s *postgresStore) onOthers(others func(part int32, settings bool)) { s.db.OnOthers(others) }

func (s *postgresStore) catchUp(ctx context.Context, parts ...int32) (context.Context, error) {
	ctx, err := s.db.CatchUp(ctx, parts...)
	return ctx, databaseError(err)
}

func (s *postgresStore) takeLease(ctx context.Context, name string) (bool, error) {
	mine, err := s.db.TakeLease(ctx, name)
	return mine, databaseError(err)
}

func (s *postgresStore) dropLease(ctx context.Context, name string) error {
	return databaseError(s.db.DropLease(ctx, name))
}

func (s *postgresStore) clockAhead() time.Duration { return s.db.Stats().Ahead }

func (s *postgresStore) leased(ctx context.Context, prefix string) (bool, error) {
	leased, err := s.db.Leased(ctx, prefix)
	return leased, databaseError(err)
}

func (s *postgresStore) figures() databaseFigures {
	f := s.db.Stats()
	return databaseFigures{f.Won, f.Lost, f.Trips, f.Gone, f.Current, f.Ahead, f.Conns, f.RoomConns, f.MaxConns}
}

func (s *postgresStore) giveUp(err error) { s.queue.fail(err) }

// leave is Close: everything acknowledged is in the database already.
func (s *postgresStore) leave() error { return s.Close() }

// Failed returns a channel that gets one error when the store can write no more. The process
// reports the error and exits without calling Close.
func (s *postgresStore) Failed() <-chan error { return s.queue.failed }

// begin is called on the goroutine of the queue's writer.
func (s *postgresStore) begin(after batch) (batch, error) {
	var before *postgres.Turn
	if after, ok := after.(postgresBatch); ok {
		before = after.turn
	}
	turn, err := s.db.Begin(before)
	if err != nil {
		return nil, turnError(err)
	}
	return postgresBatch{postgresTx{turn}, turn, s}, nil
}

func (s *postgresStore) fill(ctx context.Context, entries iter.Seq2[Entry, error], same func(iter.Seq2[Entry, error]) error) error {
	sealed := func(yield func(postgres.Entry, error) bool) {
		for e, err := range entries {
			if err != nil {
				yield(postgres.Entry{}, err)
				return
			}
			if !yield(postgres.Entry{Key: e.Key, Value: disk.Seal(e.Key, e.Value)}, nil) {
				return
			}
		}
	}
	err := s.db.Fill(ctx, sealed, func(there *postgres.Snapshot) error { return same(postgresTx{there}.Scan(nil, nil, false)) })
	if errors.Is(err, postgres.ErrNotEmpty) {
		return errNotEmpty
	}
	return databaseError(err)
}

func (s *postgresStore) hold(ctx context.Context, fn func(Tx) error) error {
	return databaseError(s.db.Hold(ctx, func(state *postgres.Snapshot) error { return fn(postgresTx{state}) }))
}

func (s *postgresStore) writeFile(ctx context.Context, path string) (*disk.Copy, error) {
	return viewLong(ctx, s, func(tx Tx) (*disk.Copy, error) {
		return disk.Build(ctx, path, 0, func() iter.Seq2[Entry, error] { return tx.Scan(nil, nil, false) }, s.dense)
	})
}

func (s *postgresStore) tell(ctx context.Context, log *slog.Logger) {
	d, err := s.db.Durability(ctx)
	switch {
	case err != nil && s.told == postgres.Durability{}:
		log.Warn("database", "cause", err.Error())
		return
	case err != nil || d == s.told:
		return
	}
	s.told = d
	log.Info("database", "postgres", d.Version, "synchronousCommit", d.Synchronous, "standbys", d.Standbys, "fsync", d.Fsync, "tls", d.TLS)
	if d.Standbys != "" && d.Synchronous == "local" {
		log.Warn("no commit waits for a standby", "cause", "synchronous_commit is local", "help", "set synchronous_commit = on")
	}
	if d.Synchronous == "off" || d.Fsync == "off" {
		log.Warn("acknowledged writes can be lost", "cause", "a crash of the database takes back its last commits",
			"help", "set synchronous_commit = on and fsync = on")
	}
}

// A postgresTx is a read-only Tx of one state of the database.
type postgresTx struct {
	state interface {
		Get(key []byte) (value []byte, ok bool, err error)
		Scan(lo, hi []byte, reverse bool) iter.Seq2[postgres.Entry, error]
		Warm(keys [][]byte)
	}
}

func (t postgresTx) warm(keys [][]byte) { t.state.Warm(keys) }

func (postgresTx) Put(key, value []byte) error { return errReadOnly }
func (postgresTx) Delete(key []byte) error     { return errReadOnly }

func (t postgresTx) Get(key []byte) ([]byte, bool, error) {
	if err := ordered.CheckKey(key); err != nil {
		return nil, false, err
	}
	stored, ok, err := t.state.Get(key)
	if err != nil || !ok {
		return nil, false, databaseError(err)
	}
	value, err := disk.Unseal(key, stored)
	return value, err == nil, databaseError(err)
}

func (t postgresTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	lo, hi = ordered.CloneRange(lo, hi)
	return func(yield func(Entry, error) bool) {
		for e, err := range t.state.Scan(lo, hi, reverse) {
			var value []byte
			if err == nil {
				value, err = disk.Unseal(e.Key, e.Value)
			}
			if !yield(Entry{Key: e.Key, Value: value}, databaseError(err)) || err != nil {
				return
			}
		}
	}
}

// A postgresBatch is a turn.
type postgresBatch struct {
	postgresTx
	turn  *postgres.Turn
	store *postgresStore
}

func (b postgresBatch) check() error { return turnError(b.turn.Check()) }

func (b postgresBatch) commit(changes []ordered.Change) error {
	list := make([]postgres.Change, len(changes))
	var special postgres.Commit
	for i, c := range changes {
		list[i].Key = c.Key
		if c.Value != nil {
			list[i].Value = disk.Seal([]byte(c.Key), c.Value)
		}
		special.Settings = special.Settings || b.store.setting != nil && b.store.setting(c.Key)
		special.All = special.All || c.Key == b.store.schema
	}
	began := time.Now()
	err := b.turn.Commit(list, special)
	if err == nil && b.store.committed != nil {
		b.store.committed(time.Since(began))
	}
	return turnError(err)
}

func (b postgresBatch) rollback() { b.turn.Close() }

// turnError returns an error of a turn as one of a batch.
func turnError(err error) error {
	if errors.Is(err, postgres.ErrTurnLost) {
		return errTurnLost
	}
	return databaseError(err)
}

// databaseFaults translate the failures of postgres.Open to errors of the seam.
var databaseFaults = []struct{ from, to error }{
	{postgres.ErrDSN, errDatabaseAddress},
	{postgres.ErrNoTLS, errDatabaseNoTLS},
	{postgres.ErrTarget, errDatabaseTarget},
	{postgres.ErrNoSchema, errDatabaseNoSchema},
	{postgres.ErrNotLetIn, errDatabaseNotLetIn},
	{postgres.ErrNoHost, errDatabaseNoHost},
	{postgres.ErrParameter, errDatabaseParameter},
	{postgres.ErrUnreached, errDatabaseSilent},
	{postgres.ErrPassword, errDatabasePassword},
	{postgres.ErrNoDatabase, errDatabaseMissing},
	{postgres.ErrForbidden, errDatabaseForbidden},
	{postgres.ErrUntrusted, errDatabaseUntrusted},
	{postgres.ErrUnavailable, errDatabaseUnready},
	{postgres.ErrOld, errDatabaseOld},
	{postgres.ErrReadOnly, errDatabaseReadOnly},
	{postgres.ErrForeign, errDatabaseForeign},
	{postgres.ErrNoTables, &backendError{fs.ErrNotExist, errDatabaseEmpty}},
}

// openingError returns an error of postgres.Open as one of Store. Where something can be done
// about it, the cause would only hide what.
func openingError(err error) error {
	if file, is := errors.AsType[*fs.PathError](err); is {
		return fmt.Errorf("%w: %s", errDatabaseFile, file.Path)
	}
	if _, is := errors.AsType[*net.DNSError](err); is { // also if that may pass: nobody has found the host
		return errDatabaseNoHost
	}
	if name := postgres.Parameter(err); name != "" && errors.Is(err, postgres.ErrParameter) {
		return fmt.Errorf("%w: %s", errDatabaseParameter, name)
	}
	for _, known := range databaseFaults {
		if errors.Is(err, known.from) {
			return known.to
		}
	}
	return databaseError(err)
}

// because returns an errUnavailable that says what is known of the cause of err.
func because(known, err error) error {
	cause := err.Error()
	for _, said := range []error{postgres.ErrUnknown, postgres.ErrUnavailable} {
		cause = strings.ReplaceAll(cause, said.Error()+": ", "")
	}
	return &backendError{errUnavailable, fmt.Errorf("%w: %s", known, cause)}
}

// databaseError returns an error of the database as one of Store.
func databaseError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, postgres.ErrClosed):
		return errClosed
	case errors.Is(err, postgres.ErrReadOnly):
		return &backendError{errReadOnly, errDatabaseReadOnly}
	case errors.Is(err, postgres.ErrForbidden):
		return errDatabaseForbidden
	case errors.Is(err, postgres.ErrUnknown):
		return because(errDatabaseUnknown, err)
	case errors.Is(err, postgres.ErrUnavailable):
		return because(errDatabaseAway, err)
	}
	return seamError(err)
}
