package main

import (
	"bytes"
	"iter"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// A boltState is one committed state: what the file held at some time, under
// the memtables as of versions that are not older. It never changes.
type boltState struct {
	Tx
	file *boltFile
}

// acquire returns the state that was committed last. It must be released.
func (s *boltStore) acquire() (*boltState, error) {
	for {
		state := s.state.Load()
		switch {
		case state == nil:
			return nil, errClosed
		case state.file == nil:
			s.awaitFile()
		case state.file.hold():
			return state, nil
		}
	}
}

func (s *boltState) release() { s.file.release() }

// awaitFile waits until Views can read from the file again.
func (s *boltStore) awaitFile() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for state := s.state.Load(); state != nil && state.file == nil; state = s.state.Load() {
		s.changed.Wait()
	}
}

// publish makes file, under the memtables as they are, what Views see. The
// caller holds mu.
func (s *boltStore) publish(file *boltFile) {
	state := &boltState{file: file}
	if file != nil {
		state.Tx = file
		if s.frozen != nil {
			state.Tx = memLayer{s.frozen, s.frozen.newest, state.Tx}
		}
		if s.active.count > 0 {
			state.Tx = memLayer{s.active, s.active.newest, state.Tx}
		}
	}
	s.state.Store(state)
	s.changed.Broadcast()
}

// share publishes what the file holds now. The caller holds mu.
func (s *boltStore) share() error {
	tx, err := s.begin(false)
	if err != nil {
		return err
	}
	file := &boltFile{tx: tx, bucket: tx.Bucket([]byte(boltBucket))}
	file.holders.Store(1)
	s.unshare()
	s.publish(file)
	return nil
}

// unshare lets go of what was shared; Views that have it keep it.
func (s *boltStore) unshare() {
	if state := s.state.Load(); state != nil && state.file != nil {
		state.file.release()
	}
}

// A boltFile is a Tx that reads what the file held at some time: a read
// transaction of bbolt. Many Views share it, since to open one costs more than
// most of them do; cursors are kept since a new one costs five allocations.
// The transaction is closed when nobody holds it any more.
type boltFile struct {
	tx      *bolt.Tx
	bucket  *bolt.Bucket
	cursors sync.Pool
	holders atomic.Int64
}

// hold reports false if the transaction was closed already.
func (f *boltFile) hold() bool {
	for {
		n := f.holders.Load()
		if n == 0 {
			return false
		}
		if f.holders.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (f *boltFile) release() {
	if f.holders.Add(-1) == 0 {
		defer catch(new(error))
		f.tx.Rollback()
	}
}

// cursor returns a cursor, which goes back with f.cursors.Put.
func (f *boltFile) cursor() *bolt.Cursor {
	if c, ok := f.cursors.Get().(*bolt.Cursor); ok {
		return c
	}
	return f.bucket.Cursor()
}

func (f *boltFile) Get(key []byte) (value []byte, ok bool, err error) {
	if err := checkKey(key); err != nil {
		return nil, false, err
	}
	defer catch(&err)
	c := f.cursor()
	found, stored := c.Seek(key)
	f.cursors.Put(c)
	if !bytes.Equal(found, key) {
		return nil, false, nil
	}
	value, err = unseal(key, stored)
	return value, err == nil, err
}

func (*boltFile) Put(key, value []byte) error { return errReadOnly }
func (*boltFile) Delete(key []byte) error     { return errReadOnly }

func (f *boltFile) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	lo, hi = bytes.Clone(lo), bytes.Clone(hi)
	return func(yield func(Entry, error) bool) {
		cursor := f.cursor()
		defer f.cursors.Put(cursor)
		c := boltCursor{cursor, lo, hi}
		first, next := c.first, c.Next
		if reverse {
			first, next = c.last, c.Prev
		}
		e, ok, err := c.entry(first)
		for ok && yield(e, nil) {
			e, ok, err = c.entry(next)
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// A boltCursor walks over the keys in [lo, hi).
type boltCursor struct {
	*bolt.Cursor
	lo, hi []byte
}

// entry makes the given step and returns where that leads; ok is false at the
// end of the range and after an error.
func (c boltCursor) entry(step func() (key, stored []byte)) (e Entry, ok bool, err error) {
	defer catch(&err)
	key, stored := step()
	if key == nil || bytes.Compare(key, c.lo) < 0 || len(c.hi) > 0 && bytes.Compare(key, c.hi) >= 0 {
		return Entry{}, false, nil
	}
	value, err := unseal(key, stored)
	return Entry{key, value}, err == nil, err
}

func (c boltCursor) first() (key, stored []byte) { return c.Seek(c.lo) }

func (c boltCursor) last() (key, stored []byte) {
	if len(c.hi) > 0 {
		if key, _ := c.Seek(c.hi); key != nil {
			return c.Prev()
		}
	}
	return c.Last()
}

// A memLayer is a Tx that reads what a memtable had as of a version, laid over
// another Tx.
type memLayer struct {
	table   *memtable
	version uint32
	base    Tx
}

func (l memLayer) Get(key []byte) ([]byte, bool, error) {
	if err := checkKey(key); err != nil {
		return nil, false, err
	}
	if value, ok := l.table.get(key, l.version); ok {
		return value, value != nil, nil
	}
	return l.base.Get(key)
}

func (memLayer) Put(key, value []byte) error { return errReadOnly }
func (memLayer) Delete(key []byte) error     { return errReadOnly }

func (l memLayer) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	lo, hi = bytes.Clone(lo), bytes.Clone(hi)
	return func(yield func(Entry, error) bool) {
		m := l.table
		var at uint32
		if reverse {
			at = m.lastBefore(hi)
		} else {
			at = m.first(lo)
		}
		next := func() (e Entry, ok bool) {
			for at != 0 {
				key := m.key(at)
				if reverse && bytes.Compare(key, lo) < 0 || !reverse && len(hi) > 0 && bytes.Compare(key, hi) >= 0 {
					return Entry{}, false
				}
				value, ok := m.value(at, l.version)
				if reverse {
					at = m.prev(at)
				} else {
					at = m.next(at, 0)
				}
				if ok {
					return Entry{key, value}, true
				}
			}
			return Entry{}, false
		}
		mergeScan(next, l.base.Scan(lo, hi, reverse), reverse, yield)
	}
}
