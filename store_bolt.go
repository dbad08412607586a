package main

import (
	"context"
	"errors"
	"fmt"

	"sello/internal/disk"
	"sello/internal/ordered"
)

// A boltStore is a Store in one bbolt file with a journal: a disk.File behind a
// write queue. It returns the file's errors as errors of Store.
type boltStore struct {
	file   *disk.File
	queue  *writeQueue
	closed chan struct{}
}

// openBolt opens the store in the file at path and creates the file if there is
// none. It returns the errors of disk.Open through seamError.
func openBolt(path string, opts disk.Options) (*boltStore, error) {
	file, err := disk.Open(path, opts)
	if err != nil {
		return nil, seamError(err)
	}
	s := &boltStore{file: file, closed: make(chan struct{})}
	s.queue = newWriteQueue(s.begin, defaultWaiting)
	go s.watch()
	return s, nil
}

// watch breaks the queue when the file fails while nothing is written.
func (s *boltStore) watch() {
	select {
	case err := <-s.file.Failed():
		s.queue.fail(seamError(err))
	case <-s.closed:
	}
}

func (s *boltStore) View(ctx context.Context, fn func(Tx) error) error {
	return s.named(s.file.View(ctx, func(state *disk.Snapshot) error { return fn(boltTx{state}) }))
}

func (s *boltStore) ViewLong(ctx context.Context, fn func(Tx) error) error {
	return s.named(s.file.ViewLong(ctx, func(state *disk.Snapshot) error { return fn(boltTx{state}) }))
}

func (s *boltStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.named(s.queue.update(ctx, fn))
}

func (s *boltStore) writes() *writeQueue { return s.queue }

// named returns an error of a transaction as one of Store. It names the file if
// the error says that the file is damaged.
func (s *boltStore) named(err error) error {
	if err = seamError(err); saysDamaged(err) {
		return fmt.Errorf("%s: %w", s.file.Path(), err)
	}
	return err
}

// Close writes the journal's changes into the file, which is then complete without it.
func (s *boltStore) Close() error { return s.close(s.file.Close) }

// leave closes the file as it is: changes that are only in the journal stay there.
func (s *boltStore) leave() error { return s.close(s.file.Leave) }

func (s *boltStore) close(file func() error) error {
	if err := s.queue.close(); err != nil {
		return err
	}
	close(s.closed)
	return seamError(file())
}

// Failed gets the error when the store no longer knows what is on disk (see disk.File.Failed).
func (s *boltStore) Failed() <-chan error { return s.queue.failed }

// begin is called on the goroutine of the queue's writer.
func (s *boltStore) begin(batch) (batch, error) {
	state, err := s.file.Snapshot()
	if err != nil {
		return nil, seamError(err)
	}
	return boltBatch{boltTx{state}, s.file}, nil
}

// A boltTx is a read-only Tx of one snapshot.
type boltTx struct{ *disk.Snapshot }

func (boltTx) Put(key, value []byte) error { return errReadOnly }
func (boltTx) Delete(key []byte) error     { return errReadOnly }

func (t boltTx) share() Tx { return boltTx{t.Share()} }

func (t boltTx) checkFile(ctx context.Context, workers int) (Tx, error) {
	checked, err := t.Check(ctx, workers)
	return boltTx{checked}, err
}

// A boltBatch begins from the last committed state.
type boltBatch struct {
	boltTx
	file *disk.File
}

func (b boltBatch) commit(changes []ordered.Change) error {
	b.Release()
	return seamError(b.file.Commit(changes))
}

func (b boltBatch) check() error { return nil } // one process has the file open
func (b boltBatch) rollback()    { b.Release() }

// A backendError is an error of Store with its cause. Its text is the cause's alone.
type backendError struct{ is, cause error }

func (e *backendError) Error() string   { return e.cause.Error() }
func (e *backendError) Unwrap() []error { return []error{e.is, e.cause} }

// seamError returns an error of a disk.File as one of Store. It leaves errors of Store
// as they are: the function of a transaction may return either.
func seamError(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []struct{ file, store error }{
		{disk.ErrClosed, errClosed},
		{disk.ErrReadOnly, errReadOnly},
		{disk.ErrUnavailable, errUnavailable},
		{disk.ErrDamaged, errCorrupt},
	} {
		switch {
		case err == known.file:
			return known.store
		case errors.Is(err, known.file) && !errors.Is(err, known.store):
			return &backendError{known.store, err}
		}
	}
	return err
}
