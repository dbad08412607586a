//go:build postgres

package main

import (
	"context"
	"errors"
	"io/fs"
	"iter"
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

	mu    sync.Mutex
	head  postgres.Head // the last commit known of, on which the next one builds
	known bool          // false: the database is to be asked for it
	down  error         // why it could not tell, at its last asking
	asked time.Time     // when that was

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

// downTime is for how long a database that did not answer is taken to be down. Each update that
// waits would ask it again.
const downTime = time.Second

// last returns the last commit, which the next one builds on.
func (s *postgresStore) last() (postgres.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known {
		return s.head, nil
	}
	if s.down != nil && time.Since(s.asked) < downTime {
		return s.head, s.down
	}
	head, err := s.db.Head(context.Background())
	if s.down, s.asked = databaseError(err), time.Now(); err == nil {
		s.head, s.known = head, true
	}
	return s.head, s.down
}

// setLast notes the last commit. Without an argument nobody knows which it is.
func (s *postgresStore) setLast(head ...postgres.Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known = len(head) > 0; s.known {
		s.head = head[0]
	}
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
	s.setLast()
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
	lost  bool          // the state is of another commit
}

// sees returns errTurnLost if the state is not one that the batch can build on. What it reads
// before that is known would be a mixture.
func (b *postgresBatch) sees() error {
	head, err := b.state.Head()
	if err != nil {
		return databaseError(err)
	}
	if b.lost = !b.buildsOn(head); b.lost {
		return errTurnLost
	}
	return nil
}

func (b *postgresBatch) buildsOn(head postgres.Head) bool {
	return head.Is(b.base) || b.after != [16]byte{} && head.ID == b.after
}

func (b *postgresBatch) Get(key []byte) ([]byte, bool, error) {
	value, ok, err := b.state.Get(key)
	if err == nil {
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

// check returns errTurnLost unless everything that the batch has read is still true.
func (b *postgresBatch) check() error {
	if b.lost {
		return b.turnLost()
	}
	head, err := b.store.db.Head(context.Background())
	if err != nil {
		return databaseError(err)
	}
	if !b.buildsOn(head) {
		return b.turnLost()
	}
	return nil
}

// turnLost returns errTurnLost. The next batch asks for the last commit.
func (b *postgresBatch) turnLost() error {
	b.store.setLast()
	if b.store.lease != nil {
		return errDatabaseInUse
	}
	return errTurnLost
}

func (b *postgresBatch) commit(changes []ordered.Change) error {
	b.state.Close()
	at, err := b.store.last()
	if err != nil {
		return err
	}
	if b.lost || !b.buildsOn(at) {
		return b.turnLost()
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
	if err == nil && b.store.committed != nil {
		b.store.committed(time.Since(began))
	}
	switch {
	case err == nil:
		b.store.setLast(next)
	case errors.Is(err, postgres.ErrTurnLost):
		return b.turnLost()
	case !errors.Is(err, postgres.ErrUnavailable):
		b.store.setLast()
	}
	return databaseError(err)
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
		every := time.NewTicker(renewEvery)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				s.db.DropLease(context.Background(), writerLease)
				return
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
