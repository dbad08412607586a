package disk

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"sello/internal/ordered"
)

// A fileState is one committed state: the file as it was at some time, under the
// memtables as of versions that are not older. It never changes.
type fileState struct {
	file   *fileTx
	layers []memLayer // newest first
	stats  Stats      // of a state that was published, without the lengths of files
}

// acquire returns the last committed state, which must be released.
func (s *File) acquire() (*fileState, error) {
	for {
		state := s.state.Load()
		switch {
		case state == nil:
			return nil, ErrClosed
		case state.file == nil:
			if !s.awaitFile() {
				return nil, ErrFailed
			}
		case state.file.hold():
			return state, nil
		}
	}
}

// Check validates every page of the file, on up to workers goroutines. It returns a
// Snapshot of the same state that does not verify checksums of the file again, and that
// holds no more of the file in memory than is being read. That Snapshot is valid as
// long as t is.
func (t *Snapshot) Check(ctx context.Context, workers int) (*Snapshot, error) {
	if t.courtesy != nil {
		ctx = courteousContext{ctx, t.courtesy.another()}
	}
	apart := t.file.apart()
	checked, err := apart.checkAll(ctx, t.file.inventory, workers)
	if err == nil {
		err = apart.checkFree(ctx, t.file.newest)
	}
	if err != nil {
		return nil, inFile(t.file.path, err)
	}
	// It needs no holder: t has one.
	file := &fileTx{pageTree: checked, inventory: t.file.inventory, tx: t.file.tx}
	return &Snapshot{fileState: &fileState{file: file, layers: t.layers}, courtesy: t.courtesy}, nil
}

// acquireInFile is acquire for a state that is held long. The state is all in the file,
// so it holds no memtable in memory. For that, acquireInFile waits for checkpoints. If
// there can be none, because the disk is full or the File is ReadOnly, it is acquire.
func (s *File) acquireInFile(ctx context.Context) (*fileState, error) {
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})()
	s.writing.Lock() // no write is under way: what was committed is in the memtables
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := s.brought // how many checkpoints have ended once all of it is in the file
	if s.frozen != nil {
		wanted++
	}
	if s.active.count > 0 {
		wanted++
	}
	s.writing.Unlock()
	for {
		state := s.state.Load()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case state == nil:
			return nil, ErrClosed
		case state.file != nil && len(state.layers) == 0 && state.file.hold():
			return state, nil
		case state.file != nil && state.file.whole && s.brought >= wanted && state.file.hold():
			return &fileState{file: state.file}, nil
		case s.full != nil || s.opts.ReadOnly || s.broken.Load() != nil || s.closing.Load():
			s.mu.Unlock()
			state, err := s.acquire()
			s.mu.Lock()
			return state, err
		case s.frozen == nil && s.brought < wanted:
			s.mu.Unlock()
			s.freezeNow()
			s.mu.Lock()
		default:
			s.changed.Wait()
		}
	}
}

// freezeNow freezes the active memtable, unless it is empty or another one is frozen.
func (s *File) freezeNow() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen != nil || s.active.count == 0 || s.closing.Load() {
		return
	}
	if err := s.freeze(); err != nil {
		if !errors.Is(err, ErrUnavailable) {
			s.fail(err)
		}
		s.full = err // until a checkpoint goes on
	}
}

// Share returns another Snapshot of the same state, for another goroutine. It is valid
// as long as t is.
func (t *Snapshot) Share() *Snapshot {
	return &Snapshot{fileState: t.fileState, courtesy: t.courtesy.another()}
}

// Release releases a Snapshot that File.Snapshot has returned.
func (t *Snapshot) Release() {
	t.release()
	t.ended.Add(1)
}

func (s *fileState) release() { s.file.release() }

// awaitFile waits until Views can read from the file again. It reports false if they
// never can.
func (s *File) awaitFile() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for state := s.state.Load(); state != nil && state.file == nil; state = s.state.Load() {
		if s.lost {
			return false
		}
		s.changed.Wait()
	}
	return true
}

// publish makes file and the memtables as they are what Views see. The caller holds mu.
func (s *File) publish(file *fileTx) {
	state := &fileState{file: file}
	if s.active.newest > 0 {
		state.layers = append(state.layers, memLayer{s.active, s.active.newest})
	}
	if s.frozen != nil {
		state.layers = append(state.layers, memLayer{s.frozen, s.frozen.newest})
	}
	state.stats = s.statsNow()
	s.state.Store(state)
	s.changed.Broadcast()
}

// share publishes the file as it is now. The caller holds mu.
func (s *File) share() error {
	tx, err := s.begin(false)
	if err != nil {
		return err
	}
	tree, err := s.openTree(tx, dataBucket)
	if err != nil {
		tx.Rollback()
		return err
	}
	tree.file, tree.path = s.opened, s.path
	file := &fileTx{tx: tx, pageTree: tree, inventory: s.inventory, open: &s.files, newest: &s.tx}
	file.holders.Store(1)
	s.files.Add(1)
	s.unshare()
	s.publish(file)
	return nil
}

// unshare releases the shared fileTx. Views that hold it keep it.
func (s *File) unshare() {
	if state := s.state.Load(); state != nil && state.file != nil {
		state.file.release()
	}
}

// openTree returns a bucket as a transaction found it. It makes room in checked.
func (s *File) openTree(tx *bolt.Tx, name string) (*pageTree, error) {
	s.checked = s.checked.with(uint64(tx.Size()) / pageSize)
	return openTree(s.db, tx, name, s.checked)
}

// A fileTx is the file as it was at some time: a read transaction of bbolt. Many Views
// share it, since opening one costs more than most Views do. The last holder to release
// it closes the transaction.
type fileTx struct {
	*pageTree
	inventory *inventory
	tx        *bolt.Tx
	whole     bool // the file alone is a state, not something between two steps; guarded by File.mu
	holders   atomic.Int64
	open      *atomic.Int64  // fileTxs that the File has open
	newest    *atomic.Uint64 // last transaction that was committed
}

// hold reports false if the transaction was closed already.
func (f *fileTx) hold() bool {
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

func (f *fileTx) release() {
	if f.holders.Add(-1) == 0 {
		defer catch(new(error))
		f.tx.Rollback()
		f.open.Add(-1)
	}
}

// A Snapshot reads one committed state. One goroutine uses it at a time. Slices that
// it hands out live as long as it does, and must not be changed.
type Snapshot struct {
	*fileState
	at       pageFinger    // in the file
	courtesy *courtesy     // of a ViewLong; else nil
	ended    *atomic.Int64 // counter of the File that returned it from Snapshot; else nil
}

// Get returns the value of key; ok is false where there is none. An error is
// ordered.ErrSize, or one of damage, and never looks like an absent key.
func (t *Snapshot) Get(key []byte) (value []byte, ok bool, err error) {
	if err := ordered.CheckKey(key); err != nil {
		return nil, false, err
	}
	if t.courtesy != nil {
		t.courtesy.rest()
	}
	for _, l := range t.layers {
		if value, ok := l.table.get(key, l.version); ok {
			return value, value != nil, nil
		}
	}
	if value, ok, err = t.find(key); err != nil { // perhaps of the finger's page, not of key's
		value, ok, err = t.find(key)
	}
	if err != nil {
		err = inFile(t.file.path, err)
	}
	return value, ok, err
}

// find looks key up in the file. After an error the next look-up begins at the
// root.
func (t *Snapshot) find(key []byte) (value []byte, ok bool, err error) {
	defer func() {
		if err != nil {
			t.at = pageFinger{}
		}
	}()
	defer catch(&err)
	stored, ok, err := t.file.get(key, &t.at)
	if err != nil || !ok {
		return nil, false, err
	}
	value, err = t.file.unseal(&t.at.leaf, key, stored)
	return value, err == nil, err
}

// Scan yields the entries with lo <= key < hi in bytewise order, or in the opposite
// one. An empty hi is no bound. It yields an error at most once, as the last thing.
func (t *Snapshot) Scan(lo, hi []byte, reverse bool) iter.Seq2[ordered.Entry, error] {
	lo, hi = ordered.CloneRange(lo, hi)
	found := t.file.scan(lo, hi, reverse)
	for _, l := range slices.Backward(t.layers) {
		found = l.scan(found, lo, hi, reverse)
	}
	if t.courtesy != nil {
		found = t.courtesy.scan(found)
	}
	return found
}

func (t *pageTree) scan(lo, hi []byte, reverse bool) iter.Seq2[ordered.Entry, error] {
	return func(yield func(ordered.Entry, error) bool) {
		c := &pageCursor{pageTree: t}
		e, ok, err := c.enter(lo, hi, reverse)
		for ok && yield(e, nil) {
			e, ok, err = c.step(lo, hi, reverse)
		}
		if err != nil {
			yield(ordered.Entry{}, inFile(t.path, err))
		}
	}
}

// enter returns the first entry of a scan; ok is false where there is none and
// after an error.
func (c *pageCursor) enter(lo, hi []byte, reverse bool) (e ordered.Entry, ok bool, err error) {
	defer catch(&err)
	switch {
	case !reverse:
		if err = c.seek(lo); err == nil && c.behind() {
			err = c.next()
		}
	case len(hi) == 0:
		err = c.last()
	default:
		if err = c.seek(hi); err == nil {
			err = c.prev()
		}
	}
	return c.entryIn(lo, hi, err)
}

// step returns the next entry of a scan.
func (c *pageCursor) step(lo, hi []byte, reverse bool) (e ordered.Entry, ok bool, err error) {
	defer catch(&err)
	if reverse {
		err = c.prev()
	} else {
		err = c.next()
	}
	return c.entryIn(lo, hi, err)
}

// entryIn returns the entry at the cursor if its key is in [lo, hi).
func (c *pageCursor) entryIn(lo, hi []byte, fault error) (e ordered.Entry, ok bool, err error) {
	if fault != nil {
		return ordered.Entry{}, false, fault
	}
	if err := c.believe(&c.leaf().page); err != nil {
		return ordered.Entry{}, false, err
	}
	key, stored := c.entry()
	if key == nil || !ordered.InRange(key, lo, hi) {
		return ordered.Entry{}, false, nil
	}
	value, err := c.unseal(&c.leaf().page, key, stored)
	return ordered.Entry{Key: key, Value: value}, err == nil, err
}

// A memLayer is a memtable as of a version.
type memLayer struct {
	table   *memtable
	version uint32
}

// scan lays the entries of the layer over those of base.
func (l memLayer) scan(base iter.Seq2[ordered.Entry, error], lo, hi []byte, reverse bool) iter.Seq2[ordered.Entry, error] {
	return func(yield func(ordered.Entry, error) bool) {
		var c *memCursor
		if reverse {
			c = l.table.before(hi)
		} else {
			c = l.table.from(lo)
		}
		next := func() (e ordered.Entry, ok bool) {
			for at := c.next(); at != 0; at = c.next() {
				key := l.table.key(at)
				if !ordered.InRange(key, lo, hi) {
					break
				}
				if value, ok := l.table.value(at, l.version); ok {
					return ordered.Entry{Key: key, Value: value}, true
				}
			}
			return ordered.Entry{}, false
		}
		ordered.MergeScan(next, base, reverse, yield)
	}
}
