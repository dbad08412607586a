package disk

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// A checkpoint brings what a memtable holds into the file. While that goes on
// the table is frozen: a new one takes the writes, and the journal's next
// generation with it. The work is cut into steps, each a transaction of bbolt
// over the next keys in order, so that no page is written twice and no flush
// is long enough to hold up those of the journal. What the file holds between
// two steps is no state that ever was; only with the frozen table over it, or
// with the journal, is it one.

const (
	DefaultMemSize = 64 << 20         // bytes
	defaultMemAge  = 30 * time.Second // more would save few writes, and make the journal long
	checkpointStep = 512              // entries, at least
	checkpointCut  = 128              // steps, at most, but for those that the minimum makes
	stepPause      = 20 * time.Millisecond
	retryPause     = time.Second // when the disk is full
	lookPause      = 250 * time.Millisecond
)

// How full bbolt makes the pages that it splits. Where keys come in ascending
// order nothing will come between them; elsewhere there must be room.
const (
	fillDense  = 0.95
	fillSparse = 0.7
)

// freeze ends the memtable that is written to. There must be no other one that
// waits to be brought into the file. The caller holds both locks.
func (s *File) freeze() error {
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

// checkpoints makes a checkpoint when there is a frozen memtable or the one
// that is written to is old.
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
	if s.writing.TryLock() { // else there will be another time
		defer s.writing.Unlock()
		s.markJournal()
	}
}

// markJournal marks what the journal holds, and how far the file has come. A full disk
// does not matter; after another error the file has failed, though what was committed
// is stored. The caller holds writing.
func (s *File) markJournal() {
	if s.journal == nil {
		return
	}
	if err := commitError(s.journal.mark(s.tx.Load())); err != nil && !errors.Is(err, ErrUnavailable) {
		s.fail(err)
	}
}

// nextFrozen returns the frozen memtable, which it makes of the one that is
// written to if that is old; nil if there is nothing to do.
func (s *File) nextFrozen() (*memtable, error) {
	s.mu.Lock()
	frozen, old := s.frozen, s.kept.old
	s.mu.Unlock()
	if old {
		return nil, nil // until adopt
	}
	// Who has the lock writes, and may be waiting for this checkpoint.
	if frozen != nil || !s.writing.TryLock() {
		return frozen, nil
	}
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen == nil && s.active.count > 0 && time.Since(s.since) >= s.opts.MemAge {
		if err := s.freeze(); err != nil && !errors.Is(err, ErrUnavailable) { // else there will be another time
			return nil, err
		}
	}
	return s.frozen, nil
}

// pace waits before a step that begins when so many of a checkpoint's entries
// are in the file: the checkpoint is to go on evenly until the next memtable
// is nearly full. It reports false when the store is closed: Close will make the
// checkpoint again, in haste.
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

// inHaste is the pace of who can do nothing else meanwhile.
func inHaste(done, all int) bool { return true }

// checkpoint brings the frozen memtable into the file. It calls pace before
// each step, and full where there is no space for one; they report whether to go
// on. No error means that it is done or was stopped.
func (s *File) checkpoint(frozen *memtable, pace func(done, all int) bool, full func(error) bool) error {
	at := checkpointPlace{table: frozen, version: frozen.newest, dense: s.opts.Dense}
	at.start()
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

// awaitSpace lets writers know why the checkpoint does not go on, and waits a
// while. It reports whether to try again: not when the store is closed.
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

// step brings up to limit entries into the file and returns how many they were
// and where the next step begins. After the last one the memtable is gone.
func (s *File) step(at checkpointPlace, limit int) (n int, next checkpointPlace, err error) {
	alone := s.files.Load() <= 1 // nobody reads but from what is shared
	found, kept := s.inventory.clone(), s.kept
	if !kept.old {
		kept.records, kept.least = s.journal.before, s.records.Load()
	}
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
	if shared != nil && err == nil && at.end() { // what is shared still lacks it
		s.frozen = at.table
	}
	return n, at, errors.Join(err, shared)
}

// bringIn sets key to value, nil for a deletion, in the bucket, of which before
// is what was there, and in its inventory, if it has one. bbolt writes where its
// pages lead it to; so they are looked at first.
func bringIn(bucket *bolt.Bucket, before *pageTree, at *pageFinger, v *inventory, key, value []byte) error {
	old, ok, err := before.get(key, at)
	if err == nil {
		err = before.believe(&at.leaf) // a damaged page, written anew, would be believed
	}
	if err != nil {
		return err
	}
	if ok && len(old) < checksumSize {
		return ErrDamaged
	}
	if v == nil {
		v = new(inventory)
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
	stored := seal(key, value)
	v.add(stored)
	return bucket.Put(key, stored)
}

// ends returns the first and the last key.
func ends(bucket *bolt.Bucket) (first, last []byte) {
	c := bucket.Cursor()
	first, _ = c.First()
	last, _ = c.Last()
	return first, last
}

// A checkpointPlace is how far a checkpoint has come: it passes over the table
// once for the dense keys and once for the others, since pages are filled in
// two ways.
type checkpointPlace struct {
	table   *memtable
	version uint32 // what was written later is passed over
	dense   string
	pass    int
	entry   uint32
}

const (
	passDense = iota
	passSparse
	passEnd
)

func (p *checkpointPlace) end() bool { return p.pass == passEnd }

// bring puts up to limit entries, of one pass, into the file, of which before is
// what was there, and into its inventory, if it has one, and returns how many they
// were.
func (p *checkpointPlace) bring(tx *bolt.Tx, limit int, before *pageTree, v *inventory) (n int, err error) {
	bucket := tx.Bucket([]byte(dataBucket))
	bucket.FillPercent = fillSparse
	pass := p.pass
	if pass == passDense {
		bucket.FillPercent = fillDense
	}
	var at pageFinger
	for ; err == nil && n < limit && p.pass == pass; n++ {
		key := p.table.key(p.entry)
		value, known := p.table.value(p.entry, p.version)
		if known {
			err = bringIn(bucket, before, &at, v, key, value)
		}
		p.advance()
	}
	if err != nil || v == nil {
		return n, err
	}
	v.setEnds(ends(bucket))
	return n, setInventory(tx, v)
}

func (p *checkpointPlace) start() {
	p.pass = passDense
	p.entry = p.table.first(nil)
	p.settle()
}

func (p *checkpointPlace) advance() {
	p.entry = p.table.next(p.entry, 0)
	p.settle()
}

// settle moves on to the next entry that belongs to the pass.
func (p *checkpointPlace) settle() {
	for !p.end() {
		if p.entry == 0 {
			if p.pass++; p.pass == passSparse {
				p.entry = p.table.first(nil)
			}
			continue
		}
		table := p.table.firstByte(p.entry)
		if (strings.IndexByte(p.dense, table) >= 0) == (p.pass == passDense) {
			return
		}
		if table == 0xff {
			p.entry = 0
		} else {
			p.entry = p.table.first([]byte{table + 1})
		}
	}
}

// writeWaiting is writeFile for a caller on which nobody waits who reads: where the
// map is full it waits for the Views that are under way.
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
// without the journal. It is not if the disk is full or the store has failed.
func (s *File) finish() (whole bool, err error) {
	debug.SetPanicOnFault(true)
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil {
		return true, nil
	}
	for !s.broken.Load() {
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
	return false, nil
}
