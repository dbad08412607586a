//go:build postgres

package main

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"sync"
	"time"

	"sello/internal/disk"
	"sello/internal/ordered"
	"sello/postgres"
)

// A postgresStore is a Store in PostgreSQL: a postgres.DB behind a write queue. A group of the
// queue is one commit. Others may write to the same database: a group that did not see what they
// wrote loses its turn, and runs again. Values are kept as in a file, each with its checksum.
type postgresStore struct {
	db    *postgres.DB
	queue *writeQueue

	views sync.RWMutex // read-locked by each View, locked by Close
	gone  bool

	mu     sync.Mutex
	head   postgres.Head // the last commit known of, on which the next one builds
	known  bool          // false: the database is to be asked for it
	doubts [][16]byte    // ids of commits that may have been stored, or may be stored yet
	down   error         // why the database could not be asked, if it could not
	downAt time.Time     // when that was

	lease     *leaseKeeper          // nil: others may write too
	committed func(time.Duration)   // told how long each commit took; nil: nobody is
	setting   func(key string) bool // as in databaseOptions
	dense     string                // the same
}

// openPostgres opens the store in a database.
func openPostgres(ctx context.Context, address string, opts databaseOptions) (openedStore, error) {
	db, err := postgres.Open(ctx, address, postgres.Options{Conns: opts.conns, Create: !opts.mustExist && !opts.readOnly, Name: "sello"})
	if err != nil {
		return nil, openingError(err)
	}
	s := newPostgresStore(db)
	s.committed, s.setting, s.dense = opts.committed, opts.setting, opts.dense
	if opts.readOnly {
		return s, nil
	}
	if s.lease, err = s.keepLease(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// newPostgresStore returns a store that others may write to as well.
func newPostgresStore(db *postgres.DB) *postgresStore {
	s := &postgresStore{db: db}
	s.queue = newWriteQueue(s.begin, defaultWaiting)
	return s
}

func (s *postgresStore) View(ctx context.Context, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.views.RLock()
	defer s.views.RUnlock()
	if s.gone {
		return errClosed
	}
	state := s.db.Snapshot(ctx)
	defer state.Close()
	return fn(postgresTx{state})
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
	s.lease.end()
	return databaseError(s.db.Close())
}

// leave is Close: everything acknowledged is in the database already.
func (s *postgresStore) leave() error { return s.Close() }

// Failed returns a channel that gets one error when the store can write no more. The process
// reports the error and exits without calling Close.
func (s *postgresStore) Failed() <-chan error { return s.queue.failed }

// downTime is for how long a database that did not answer is taken to be down. Else each group of
// updates would wait for it anew.
const downTime = time.Second

// last returns the last commit, which the next one builds on.
func (s *postgresStore) last() (postgres.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil && time.Since(s.downAt) < downTime {
		return s.head, s.down
	}
	if s.known {
		return s.head, nil
	}
	head, err := s.db.Head(context.Background())
	if err == nil && len(s.doubts) > 0 { // the head may be one of them
		err = s.db.Barrier(context.Background())
	}
	if err != nil {
		s.down, s.downAt = databaseError(err), time.Now()
		return s.head, s.down
	}
	s.head, s.known, s.down = head, true, nil
	return head, nil
}

// stored notes the last commit.
func (s *postgresStore) stored(head postgres.Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head, s.known, s.down = head, true, nil
}

// forget has the database asked for the last commit. doubt is the id of one that may have been
// stored; zero: there is none.
func (s *postgresStore) forget(doubt [16]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known = false; doubt != [16]byte{} {
		s.doubts = append(s.doubts, doubt)
	}
}

// silent notes that the database could not be asked.
func (s *postgresStore) silent(err error) error {
	if err = databaseError(err); errors.Is(err, errUnavailable) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.down, s.downAt = err, time.Now()
	}
	return err
}

// begin is called on the goroutine of the queue's writer.
func (s *postgresStore) begin(after batch) (batch, error) {
	head, err := s.last()
	if err != nil {
		return nil, err
	}
	b := &postgresBatch{store: s, base: head, id: postgres.NewID()}
	if after, ok := after.(*postgresBatch); ok {
		b.after = after.id
	}
	b.state = postgresTx{s.db.CommitterSnapshot()}
	return b, nil
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
	s.forget([16]byte{})
	if errors.Is(err, postgres.ErrNotEmpty) {
		return errNotEmpty
	}
	return databaseError(err)
}

func (s *postgresStore) hold(ctx context.Context, fn func(Tx) error) error {
	return databaseError(s.db.Hold(ctx, func(state *postgres.Snapshot) error { return fn(postgresTx{state}) }))
}

func (s *postgresStore) writeFile(ctx context.Context, path string) (*disk.Copy, error) {
	return viewStore(ctx, s, func(tx Tx) (*disk.Copy, error) {
		return disk.Build(ctx, path, 0, func() iter.Seq2[Entry, error] { return tx.Scan(nil, nil, false) }, s.dense)
	})
}

// A postgresTx is a read-only Tx of one state of the database.
type postgresTx struct{ *postgres.Snapshot }

func (postgresTx) Put(key, value []byte) error { return errReadOnly }
func (postgresTx) Delete(key []byte) error     { return errReadOnly }

func (t postgresTx) Get(key []byte) ([]byte, bool, error) {
	if err := ordered.CheckKey(key); err != nil {
		return nil, false, err
	}
	stored, ok, err := t.Snapshot.Get(key)
	if err != nil || !ok {
		return nil, false, databaseError(err)
	}
	value, err := disk.Unseal(key, stored)
	return value, err == nil, databaseError(err)
}

func (t postgresTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	lo, hi = ordered.CloneRange(lo, hi)
	return func(yield func(Entry, error) bool) {
		for e, err := range t.Snapshot.Scan(lo, hi, reverse) {
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

// A postgresBatch reads a state of the database, and is stored as the commit after that.
type postgresBatch struct {
	store *postgresStore
	base  postgres.Head // the last commit when the batch began
	after [16]byte      // id of the batch that was being stored then; zero: there was none
	id    [16]byte      // of this one's commit
	state postgresTx    // as of base, or of that batch: what it writes is laid over either
	err   error         // why nothing that the batch has read counts; nil: it does
}

// sees fails if the state is not one that the batch can build on. What it would read is a mixture.
func (b *postgresBatch) sees() error {
	if b.err == nil {
		head, err := b.state.Head()
		switch {
		case err != nil:
			b.err = b.store.silent(err)
		case !b.buildsOn(head):
			b.err = errTurnLost
		}
	}
	return b.err
}

func (b *postgresBatch) buildsOn(head postgres.Head) bool {
	return head.Is(b.base) || b.after != [16]byte{} && head.ID == b.after
}

func (b *postgresBatch) Get(key []byte) ([]byte, bool, error) {
	value, ok, err := b.state.Get(key)
	if err == nil || errors.Is(err, errUnavailable) {
		err = b.sees()
	}
	if err != nil {
		return nil, false, err
	}
	return value, ok, nil
}

func (b *postgresBatch) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := b.sees(); err != nil {
			yield(Entry{}, err)
			return
		}
		b.state.Scan(lo, hi, reverse)(yield)
	}
}

func (*postgresBatch) Put(key, value []byte) error { return errReadOnly }
func (*postgresBatch) Delete(key []byte) error     { return errReadOnly }

// check fails unless everything that the batch has read is still true.
func (b *postgresBatch) check() error {
	if b.err != nil {
		return b.failed(b.err)
	}
	head, err := b.store.db.Head(context.Background())
	switch {
	case err != nil:
		return b.store.silent(err)
	case !b.buildsOn(head):
		return b.failed(errTurnLost)
	}
	return nil
}

// failed returns an error of the batch. After a lost turn the next batch asks for the last
// commit. While only one process may write, nobody but itself can have taken its turn.
func (b *postgresBatch) failed(err error) error {
	if err != errTurnLost {
		return err
	}
	doubts := b.store.doubtful()
	b.store.forget([16]byte{})
	if b.store.lease == nil {
		return errTurnLost
	}
	head, err := b.store.last()
	if err != nil {
		return err
	}
	if slices.Contains(doubts, head.ID) {
		return errTurnLost
	}
	return errDatabaseInUse
}

func (s *postgresStore) doubtful() [][16]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.doubts)
}

func (b *postgresBatch) commit(changes []ordered.Change) error {
	b.state.Close()
	if b.err != nil {
		return b.failed(b.err)
	}
	at, err := b.store.last()
	if err != nil {
		return err
	}
	if !b.buildsOn(at) {
		return b.failed(errTurnLost)
	}
	list, settings := make([]postgres.Change, len(changes)), false
	for i, c := range changes {
		list[i].Key = c.Key
		if c.Value != nil {
			list[i].Value = disk.Seal([]byte(c.Key), c.Value)
		}
		settings = settings || b.store.setting != nil && b.store.setting(c.Key)
	}
	began := time.Now()
	next, err := b.store.db.Commit(at, b.id, settings, list)
	switch {
	case err == nil:
		b.store.stored(next)
		if b.store.committed != nil {
			b.store.committed(time.Since(began))
		}
		return nil
	case errors.Is(err, postgres.ErrTurnLost):
		return b.failed(errTurnLost)
	case errors.Is(err, postgres.ErrUnknown):
		b.store.forget(b.id)
		return databaseError(err)
	}
	return b.store.silent(err)
}

func (b *postgresBatch) rollback() { b.state.Close() }

// databaseFaults are the failures of postgres.Open as those of the seam.
var databaseFaults = []struct{ from, to error }{
	{postgres.ErrDSN, errDatabaseAddress},
	{postgres.ErrUnreached, errDatabaseSilent},
	{postgres.ErrPassword, errDatabasePassword},
	{postgres.ErrNoDatabase, errDatabaseMissing},
	{postgres.ErrForbidden, errDatabaseForbidden},
	{postgres.ErrOld, errDatabaseOld},
	{postgres.ErrReadOnly, errDatabaseReadOnly},
	{postgres.ErrForeign, errDatabaseForeign},
	{postgres.ErrNoTables, &backendError{fs.ErrNotExist, errDatabaseEmpty}},
}

// openingError returns an error of postgres.Open as one of Store. Where something can be done
// about it, the cause would only hide what.
func openingError(err error) error {
	for _, known := range databaseFaults {
		if errors.Is(err, known.from) {
			return known.to
		}
	}
	return databaseError(err)
}

// databaseError returns an error of the database as one of Store.
func databaseError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, postgres.ErrClosed):
		return errClosed
	case errors.Is(err, postgres.ErrUnavailable), errors.Is(err, postgres.ErrUnknown):
		return &backendError{errUnavailable, err}
	}
	return seamError(err)
}

// A leaseKeeper holds the lease of the one process that writes.
type leaseKeeper struct {
	stop context.CancelFunc
	done chan struct{}
}

const (
	writerLease = "writer"
	renewEvery  = 3 * time.Second // leases last 10
	trimEvery   = time.Minute
)

// keepLease takes the lease of the writer, and renews it until end.
func (s *postgresStore) keepLease(ctx context.Context) (*leaseKeeper, error) {
	mine, err := s.db.TakeLease(ctx, writerLease)
	if err != nil {
		return nil, databaseError(err)
	}
	if !mine {
		return nil, &backendError{disk.ErrLocked, errDatabaseInUse}
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &leaseKeeper{stop, make(chan struct{})}
	go func() {
		defer close(l.done)
		every, trim := time.NewTicker(renewEvery), time.NewTicker(trimEvery)
		defer every.Stop()
		defer trim.Stop()
		for {
			select {
			case <-ctx.Done():
				s.db.DropLease(context.Background(), writerLease)
				return
			case <-trim.C:
				s.db.Trim(ctx) // or later
			case <-every.C:
				// While the database does not answer, it commits nothing either.
				if mine, err := s.db.TakeLease(ctx, writerLease); err == nil && !mine {
					s.queue.fail(errDatabaseInUse)
				}
			}
		}
	}()
	return l, nil
}

// end gives the lease back.
func (l *leaseKeeper) end() {
	if l != nil {
		l.stop()
		<-l.done
	}
}
