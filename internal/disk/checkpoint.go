package disk

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sort"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// A checkpoint brings a memtable into the file. Meanwhile the memtable is frozen: a new
// one takes the writes, and the journal's next generation with it. The work is cut into
// steps. Each step is a transaction of bbolt over the next keys in order, so that no
// page is written twice and no flush is long enough to hold up those of the journal.
// Between steps the file alone is not a consistent state; together with the frozen
// memtable or the journal it is.

const (
	DefaultMemSize = 64 << 20         // bytes
	defaultMemAge  = 30 * time.Second // longer would save few writes, and make the journal long
	checkpointStep = 512              // entries of a step, at least
	checkpointCut  = 128              // steps of a large checkpoint, about
	stepPause      = 20 * time.Millisecond
	retryPause     = time.Second // when the disk is full
	lookPause      = 250 * time.Millisecond
)

// How full bbolt makes the pages that it splits. Keys that come in ascending order get
// no others in between; the pages of other keys need room.
const (
	fillDense  = 0.95
	fillSparse = 0.7
)

// freeze ends the active memtable, unless the File has failed. No other memtable may be frozen. The
// caller holds both locks.
func (s *File) freeze() error {
	if s.broken.Load() != nil {
		return ErrFailed
	}
	if err := s.journal.next(s.tx.Load()); err != nil {
		return commitError(err)
	}
	s.records.Store(0)
	s.frozen, s.active, s.fill = s.active, newMemtable(), 0
	s.publish(s.state.Load().file)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// checkpoints makes a checkpoint when there is a frozen memtable, or when the active
// one is old.
func (s *File) checkpoints() {
	debug.SetPanicOnFault(true)
	look := time.NewTicker(lookPause)
	defer look.Stop()
	for {
		frozen, err := s.nextFrozen()
		if frozen != nil {
			err = s.checkpoint(frozen, s.pace, s.awaitSpace)
		}
		if err != nil {
			s.fail(err)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.full = fmt.Errorf("%w: %w", ErrUnavailable, err)
			s.changed.Broadcast()
			return
		}
		select {
		case <-s.stop:
			return
		case <-s.wake:
		case <-look.C:
			s.tryMarkJournal()
		}
	}
}

// tryMarkJournal is markJournal unless something is being written.
func (s *File) tryMarkJournal() {
	if s.writing.TryLock() { // else later
		defer s.writing.Unlock()
		s.markJournal()
	}
}

// markJournal marks how many records the journal has and how far the file has come. A
// full disk does not matter. After any other error the File has failed, though what was
// committed is stored. The caller holds writing.
func (s *File) markJournal() {
	if s.journal == nil {
		return
	}
	if err := commitError(s.journal.mark(s.tx.Load())); err != nil && !errors.Is(err, ErrUnavailable) {
		s.fail(err)
	}
}

// nextFrozen returns the frozen memtable, nil if there is nothing to do. It freezes the
// active memtable if that is old.
func (s *File) nextFrozen() (*memtable, error) {
	s.mu.Lock()
	frozen := s.frozen
	s.mu.Unlock()
	// The holder of the lock is writing, and may wait for this checkpoint.
	if frozen != nil || !s.writing.TryLock() {
		return frozen, nil
	}
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen == nil && s.active.count > 0 && time.Since(s.active.since) >= s.opts.MemAge {
		if err := s.freeze(); err != nil && !errors.Is(err, ErrUnavailable) { // else later
			return nil, err
		}
	}
	return s.frozen, nil
}

// pace waits before a step, for stepPause at most, while the checkpoint is too fast: it
// should go on evenly until the next memtable is nearly full. done entries of all are in
// the file. It reports false when the store is closed: Close then makes the checkpoint
// again, in haste.
func (s *File) pace(done, all int) bool {
	for range 10 {
		s.mu.Lock()
		behind := int64(done)*int64(s.opts.MemSize) < int64(all)*int64(s.fill)/4*5
		s.mu.Unlock()
		if behind {
			break
		}
		time.Sleep(stepPause / 10)
	}
	select {
	case <-s.stop:
		return false
	default:
		return true
	}
}

// inHaste is a pace that never waits.
func inHaste(done, all int) bool { return true }

// checkpoint brings the frozen memtable into the file. It calls pace before each step,
// and full if there is no space for one; both report whether to go on. A nil error
// means that the checkpoint is done or was stopped.
func (s *File) checkpoint(frozen *memtable, pace func(done, all int) bool, full func(error) bool) error {
	at := newCheckpointPlace(memLayer{frozen, frozen.newest}, s.opts.Dense)
	frozen.runs.Store(&[]memRun{at.order}) // nobody writes to it any more
	for done := 0; ; {
		if !pace(done, frozen.count) {
			return nil
		}
		limit := max(checkpointStep, frozen.count/checkpointCut)
		n, next, err := s.step(at, limit)
		if errors.Is(err, errMapFull) {
			var stopped bool
			if stopped, err = s.stopReads(); stopped {
				n, next, err = s.step(at, limit)
			} else if err == nil {
				return nil
			}
		}
		if errors.Is(err, ErrUnavailable) {
			if !full(err) {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		if next.end() {
			return nil
		}
		done, at = done+n, next
	}
}

// awaitSpace tells writers why the checkpoint does not go on, and waits a while. It
// reports whether to try again, which is false if the store is closed.
func (s *File) awaitSpace(cause error) bool {
	s.mu.Lock()
	s.full = cause
	s.changed.Broadcast()
	s.mu.Unlock()
	select {
	case <-s.stop:
		return false
	case <-time.After(retryPause):
		return true
	}
}

// step brings up to limit entries into the file. It returns how many they were and
// where the next step begins. After the last step the memtable is gone.
func (s *File) step(at checkpointPlace, limit int) (n int, next checkpointPlace, err error) {
	alone := s.files.Load() <= 1 // only the shared fileTx is in use
	found, kept := s.inventory.clone(), s.kept
	kept.records, kept.least = s.journal.before, s.records.Load()
	err = s.writeFile(func(tx *bolt.Tx) error {
		if alone {
			forgetTaken(s.db)
		}
		before, err := s.openTree(tx, dataBucket)
		if err != nil {
			return err
		}
		if n, err = at.bring(tx, limit, before, found); err != nil {
			return err
		}
		if at.end() {
			kept.first, kept.records = kept.first+1, 0
		}
		return kept.put(tx)
	})
	if err != nil && !errors.Is(err, ErrUnavailable) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lost = true
		s.changed.Broadcast()
		return 0, at, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.full, s.inventory, s.kept = nil, found, kept
		if at.end() {
			s.frozen = nil
			s.brought++
		}
	}
	shared := s.share()
	if shared == nil {
		s.state.Load().file.whole = err == nil && at.end()
	}
	if shared != nil && err == nil && at.end() { // the shared fileTx still lacks the memtable
		s.frozen = at.table
	}
	return n, at, errors.Join(err, shared)
}

// bringIn sets key to value in the bucket, nil for a deletion, and updates the bucket's
// inventory. before is the bucket as it was. bbolt trusts the pages that
// lead it to key, so they are validated first.
func bringIn(bucket *bolt.Bucket, before *pageTree, at *pageFinger, v *inventory, key, value []byte) error {
	old, ok, err := before.get(key, at)
	if err == nil {
		err = before.believe(&at.leaf) // a damaged page, written anew, would pass for good
	}
	if err != nil {
		return err
	}
	if ok && len(old) < checksumSize {
		return ErrDamaged
	}
	if ok {
		v.remove(old)
	}
	if value == nil {
		if !ok {
			return nil
		}
		if err := before.checkAround(key); err != nil {
			return err
		}
		return bucket.Delete(key)
	}
	stored := Seal(key, value)
	v.add(stored)
	return bucket.Put(key, stored)
}

// ends returns the first and the last key.
func ends(bucket *bolt.Bucket) (first, last []byte) {
	c := bucket.Cursor()
	if first, _ = c.First(); first == nil {
		return nil, nil // bbolt's Last never returns once a transaction has emptied several pages
	}
	last, _ = c.Last()
	return first, last
}

// A checkpointPlace is how far a checkpoint has come. A checkpoint goes through the
// table once for the dense keys and once for the others, since their pages are filled
// differently.
type checkpointPlace struct {
	memLayer        // the table; versions after the layer's are passed over
	order    memRun // all of the table
	dense    string
	pass     int
	next     int // in order
}

func newCheckpointPlace(l memLayer, dense string) checkpointPlace {
	p := checkpointPlace{memLayer: l, order: l.table.inOrder(), dense: dense}
	p.settle()
	return p
}

const (
	passDense = iota
	passSparse
	passEnd
)

func (p *checkpointPlace) end() bool { return p.pass == passEnd }

// bring puts up to limit entries of one pass into the file, updates its inventory, and
// returns how many entries they were. before is the bucket as it was.
func (p *checkpointPlace) bring(tx *bolt.Tx, limit int, before *pageTree, v *inventory) (n int, err error) {
	bucket := tx.Bucket([]byte(dataBucket))
	bucket.FillPercent = fillSparse
	pass := p.pass
	if pass == passDense {
		bucket.FillPercent = fillDense
	}
	var at pageFinger
	for ; err == nil && n < limit && p.pass == pass && !p.end(); n++ {
		e := p.order[p.next].entry
		if value, known := p.table.value(e, p.version); known {
			err = bringIn(bucket, before, &at, v, p.table.key(e), value)
		}
		p.next++
		p.settle()
	}
	if err != nil {
		return n, err
	}
	v.setEnds(ends(bucket))
	return n, setInventory(tx, v)
}

// settle moves on to the next entry that belongs to the pass, or to a later pass.
func (p *checkpointPlace) settle() {
	for !p.end() {
		if p.next == len(p.order) {
			p.pass, p.next = p.pass+1, 0
			continue
		}
		table := p.order[p.next].table()
		if (strings.IndexByte(p.dense, table) >= 0) == (p.pass == passDense) {
			return
		}
		rest := p.order[p.next:]
		p.next += sort.Search(len(rest), func(i int) bool { return rest[i].table() > table })
	}
}

// writeWaiting is writeFile for a caller that no reader waits for. If the map is full,
// it waits for the Views under way.
func (s *File) writeWaiting(fn func(*bolt.Tx) error) error {
	err := s.writeFile(fn)
	if !errors.Is(err, errMapFull) {
		return err
	}
	stopped, err := s.stopReads()
	if err != nil {
		return err
	}
	if !stopped {
		return ErrClosed
	}
	err = s.writeFile(fn)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = nil
	return errors.Join(err, s.share())
}

// finish brings everything into the file and reports whether the file is whole
// without the journal. It is not if the disk is full. A File that has failed gets the cause,
// which nobody may have seen: it can fail while the process stops.
func (s *File) finish() (whole bool, err error) {
	debug.SetPanicOnFault(true)
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.broken.Load() == nil {
		if s.journal == nil {
			return true, nil
		}
		if s.frozen == nil {
			if s.active.count == 0 {
				s.unshare()
				s.publish(nil)
				whole := journalState{journalID: journalID{file: s.kept.file}}
				put := func(tx *bolt.Tx) error { return whole.put(tx) }
				err := s.writeFile(put)
				if errors.Is(err, errMapFull) {
					if err = s.fileMap.makeSpace(s.path); err == nil {
						s.fileMap.letGrow() // Views under way end before the file can be closed
						err = s.writeFile(put)
					}
				}
				return err == nil, err
			}
			if err := s.freeze(); err != nil {
				return false, err
			}
		}
		frozen := s.frozen
		s.mu.Unlock()
		err := s.checkpoint(frozen, inHaste, s.awaitSpace)
		s.mu.Lock()
		if err != nil || s.frozen != nil {
			return false, err
		}
	}
	return false, *s.broken.Load()
}
