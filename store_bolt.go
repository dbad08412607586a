package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// A boltStore is a Store in one bbolt file with a journal in front of it.
//
// A batch is stored when it is in the journal. It is then put into a memtable
// in memory, where reads find it above what the file holds, and a checkpoint
// (checkpoint.go) brings the memtable into the file some time later, in the
// order of the keys. So a write costs one flush of a few kilobytes, and what
// many writes change in one page of the file is written once.
//
// The file has one bucket, boltBucket, with every key as it is and every value
// behind a checksum:
//
//	| CRC-32C of key and value, 4 bytes, big-endian | value |
//
// and a bucket journalBucket, with entries of the same form: what the file
// says of itself and of its journal (journalState), and an inventory.
//
// Two things are ours to do because bbolt does not: it never notices a flipped
// bit, hence the checksum; and where pages contradict each other or the file is
// shorter than they say it panics or faults on its memory map, hence checkHeader
// before it sees a file and catch around each call.
type boltStore struct {
	path    string
	opts    boltOptions
	db      *bolt.DB
	opened  *os.File // by db, which closes it
	fileMap *fileMap // of db
	queue   *writeQueue
	state   atomic.Pointer[boltState] // what Views see; nil: closed
	written atomic.Uint64             // entries that were stored
	files   atomic.Int64              // boltFiles that someone reads, that of state among them
	begun   atomic.Int64              // batches, which read while they are filled
	ended   atomic.Int64              // of them
	stop    chan struct{}             // closed to end the goroutines below
	running sync.WaitGroup            // watch and checkpoints
	checked pageSet                   // of the file; who opens a pageTree may change it
	tx      atomic.Uint64             // the file's last transaction
	records atomic.Uint64             // of the journal's newest generation
	wake    chan struct{}             // there is something for checkpoints to do

	inventory *inventory // of the file; nil if it has none; the checkpoint's own

	// Who changes what the journal, the memtables and the state are holds both
	// locks, writing first; to append to the journal and to write to the active
	// memtable takes the first alone, to change or to read the others the second.
	writing  sync.Mutex
	journal  *journal  // nil before the first write
	active   *memtable // what the journal's newest generation holds
	since    time.Time // of active's first entry
	mu       sync.Mutex
	kept     journalState // what the file says; the checkpoint's own, but while none is under way
	brought  int          // memtables that this process has brought into the file whole
	fill     int          // size of active
	frozen   *memtable    // what the generation before holds, while it is brought into the file; else nil
	full     error        // why that cannot go on for now
	draining bool         // it waits for Views to end, for a short time
	lost     bool         // what the file holds can be shared no more: bbolt may hold its locks
	changed  *sync.Cond   // signals changes of these and of state
}

const (
	boltBucket    = "sello"
	journalBucket = "journal"
	boltPageSize  = 4096
	checksumSize  = 4
)

// boltOptions are the ways to open a boltStore. Zero values are the ones to
// serve with.
type boltOptions struct {
	mustExist  bool   // do not make a new file
	maxWaiting int    // updates that may wait for their turn; 0: defaultWaiting
	dense      string // first bytes of keys that are added in ascending order: their pages are filled

	// For tests.
	maxSize    int                     // of the file in bytes; 0: as the disk allows
	noSync     bool                    // lose commits in a power cut
	lockWait   time.Duration           // for another process to close the file; 0: 2 seconds
	watchEvery time.Duration           // between looks at the file's name; 0: 1 second
	memSize    int                     // of a memtable in bytes, after which a new one is begun; 0: defaultMemSize
	memAge     time.Duration           // the same for its age; 0: defaultMemAge
	remove     func(name string) error // a journal's file; nil: os.Remove
	mapRule    mapRule                 // zero: mapRuleHere
}

// openBolt opens the store in the file at path. It makes the file if there is
// none. It refuses, with an error of one line, a file that is not whole.
func openBolt(path string, opts boltOptions) (*boltStore, error) {
	s, err := openBoltFile(path, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, openError(err))
	}
	return s, nil
}

func openBoltFile(path string, opts boltOptions) (s *boltStore, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !opts.mustExist {
		if err := createBolt(path); err != nil {
			return nil, err
		}
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("es un directorio")
	case !info.Mode().IsRegular():
		return nil, errors.New("no es un archivo regular")
	}
	// Also when the file is not new: who made it may have died before this.
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, err
	}

	defer catch(&err) // then bbolt keeps the file open and locked
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))

	var opened fs.FileInfo
	var file *os.File
	mapped, err := openMapped(path, opts.mapRule, bolt.Options{
		Timeout:      cmp.Or(opts.lockWait, 2*time.Second),
		PageSize:     boltPageSize,
		FreelistType: bolt.FreelistArrayType,
		MaxSize:      opts.maxSize,
		NoSync:       opts.noSync,
		NoStatistics: true,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag&^os.O_CREATE, mode)
			if errors.Is(err, fs.ErrPermission) { // who can read it is surprised
				return nil, errors.New("sin permiso: hace falta el de lectura y el de escritura")
			}
			if err != nil {
				return nil, err
			}
			found, err := checkHeader(f)
			if err == nil && opened != nil && !os.SameFile(opened, found) { // a backup's reading
				err = errFileReplaced // the caller names the path
			}
			if err != nil {
				f.Close()
				return nil, err
			}
			if opened == nil {
				opened, file = found, f
			}
			return f, nil
		},
	})
	if err != nil {
		return nil, err
	}
	db := mapped.db
	opts.memSize = cmp.Or(opts.memSize, defaultMemSize)
	opts.memAge = cmp.Or(opts.memAge, defaultMemAge)
	if opts.remove == nil {
		opts.remove = os.Remove
	}
	s = &boltStore{
		path: path, opts: opts, db: db, opened: file, fileMap: mapped,
		stop: make(chan struct{}), wake: make(chan struct{}, 1), active: newMemtable(),
	}
	s.changed = sync.NewCond(&s.mu)
	if err := s.takeUpJournal(); err != nil {
		s.unshare()
		db.Close()
		return nil, err
	}
	s.queue = newWriteQueue(s.beginBatch, cmp.Or(opts.maxWaiting, defaultWaiting))
	s.running.Go(func() { s.watch(opened, cmp.Or(opts.watchEvery, time.Second)) })
	s.running.Go(s.checkpoints)
	return s, nil
}

// takeUpJournal takes up the journal if the file is not whole without it.
func (s *boltStore) takeUpJournal() error {
	if err := s.share(); err != nil {
		return err
	}
	if !s.opts.noSync {
		// The last commit may have been cut off before the flush.
		if err := s.db.Sync(); err != nil {
			return err
		}
	}
	file := s.state.Load().file
	s.tx.Store(uint64(file.tx.ID()))
	kept, err := s.openTree(file.tx, journalBucket)
	if err != nil {
		return err
	}
	if s.inventory, err = kept.inventory(); err != nil {
		return err
	}
	if err := s.inventory.holds(file.pageTree); err != nil {
		return err
	}
	file.inventory = s.inventory
	s.kept = file.state
	if s.kept.first == 0 {
		return s.checkBeside(file)
	}
	if err := s.replay(); err != nil {
		if !file.headersWhole() { // the other one may have asked for no journal
			err = fmt.Errorf("%w; una de sus dos cabeceras está dañada", err)
		}
		return err
	}
	s.since, s.fill = time.Now(), s.active.size()
	s.publish(s.state.Load().file)
	return nil
}

// checkBeside looks at what lies beside a file that says that it is whole.
func (s *boltStore) checkBeside(file *boltFile) error {
	if !s.kept.old {
		return checkLeft(s.path, s.kept)
	}
	if !file.headersWhole() && anyJournal(s.path) {
		// The header that says whether the journal belongs to the file may be
		// the damaged one.
		return errors.New("archivo dañado: una de sus cabeceras no está completa, y hay un journal")
	}
	return nil
}

// replay takes up the journal that the file needs: its older generation becomes the
// frozen memtable if there is a newer one, even one without records.
func (s *boltStore) replay() (err error) {
	first := s.kept.first
	do := func(generation uint64, key string, value []byte) {
		if generation > first && s.frozen == nil {
			s.frozen, s.active = s.active, newMemtable()
		}
		s.active.newest = 1
		s.active.put(key, value, 1)
	}
	var j *journal
	if s.kept.old {
		if j, err = openOldJournal(s.path, s.kept.life); err == nil {
			err = errors.Join(j.replayOld(first, do), j.close())
		}
		return err
	}
	if j, err = openJournal(s.path, s.kept.journalID); err != nil {
		return err
	}
	j.sync = !s.opts.noSync
	if err := j.replay(s.kept, do); err != nil {
		j.close()
		return err
	}
	if j.generation > first && s.frozen == nil {
		s.frozen, s.active = s.active, newMemtable()
	}
	s.journal = j
	s.records.Store(j.records)
	return nil
}

func (s *boltStore) View(ctx context.Context, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	state, err := s.acquire()
	if err != nil {
		return err
	}
	defer state.release()
	return s.named(fn(&boltTx{boltState: state}))
}

// ViewLong is View of a state that holds no memtable in memory, by a function
// that lets writes go first.
func (s *boltStore) ViewLong(ctx context.Context, fn func(Tx) error) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	state, err := s.acquireInFile(ctx)
	if err != nil {
		return err
	}
	defer state.release()
	return s.named(fn(longTx{&boltTx{boltState: state}, newCourtesy(&s.written)}))
}

func (s *boltStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.named(s.queue.update(ctx, fn))
}

// named puts the file's name before an error that says that it is damaged.
func (s *boltStore) named(err error) error {
	if err != nil && isDamage(err) {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	return err
}

// Close brings the journal into the file, which is then whole alone.
func (s *boltStore) Close() error { return s.close(s.finish) }

// leave closes the file as it is: what was not written to it is not.
func (s *boltStore) leave() error {
	return s.close(func() (whole bool, err error) { return false, nil })
}

// close closes the file after finish, which reports whether it is whole without the
// journal. The lock on the file goes last, with bbolt: who takes it next may begin
// a journal of the same names.
func (s *boltStore) close(finish func() (whole bool, err error)) error {
	if err := s.queue.close(); err != nil {
		return err
	}
	close(s.stop)
	s.running.Wait()
	whole, err := finish()
	s.mu.Lock()
	s.unshare()
	s.state.Store(nil)
	s.changed.Broadcast()
	s.mu.Unlock()
	if s.journal != nil {
		err = errors.Join(err, s.journal.close())
		if whole && err == nil {
			err = removeJournal(s.path, s.opts.remove)
		}
	}
	return errors.Join(err, s.db.Close())
}

// Failed yields one error when the store can no longer say what is on disk:
// after a commit that failed for another reason than lack of space, or when
// the file's name no longer leads to the file. From then on every Update
// returns errUnavailable. The process reports the error and exits, without
// Close, which may then wait for ever.
func (s *boltStore) Failed() <-chan error { return s.queue.failed }

// A boltBatch begins from the state that was committed last.
type boltBatch struct {
	*boltTx
	store *boltStore
}

// beginBatch is called on the goroutine of the queue's writer.
func (s *boltStore) beginBatch() (batch, error) {
	debug.SetPanicOnFault(true)
	if s.fileMap.rule.grows {
		// To write to the file may take a moment in which nobody reads; the batch will.
		s.writing.Lock()
		err := s.startJournal()
		s.writing.Unlock()
		if err != nil {
			return nil, err
		}
	}
	state, err := s.acquire()
	if err != nil {
		return nil, err
	}
	s.begun.Add(1)
	return boltBatch{&boltTx{boltState: state}, s}, nil
}

// commit reads nothing more, so that the checkpoint for which it may wait does not
// wait for it.
func (b boltBatch) commit(changes []written) (err error) {
	b.rollback()
	defer catch(&err)
	debug.SetPanicOnFault(true)
	return b.store.store(changes)
}

func (b boltBatch) rollback() {
	b.release()
	b.store.ended.Add(1)
}

// store makes the changes durable and visible. It waits while the memtable is
// full and the one before it is not yet in the file.
func (s *boltStore) store(changes []written) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.startJournal(); err != nil {
		return err
	}
	if err := s.makeRoom(); err != nil {
		return err
	}
	if err := s.journal.append(changes); err != nil {
		return commitError(err)
	}
	s.written.Add(uint64(len(changes)))
	m := s.active
	if m.count == 0 {
		s.since = time.Now()
	}
	for _, c := range changes {
		m.put(c.key, c.value, m.newest+1)
	}
	s.records.Store(s.journal.records)
	s.journal.mark(s.tx.Load())
	s.mu.Lock()
	defer s.mu.Unlock()
	m.newest++
	s.fill = m.size()
	s.publish(s.state.Load().file)
	return nil
}

// makeRoom begins a new memtable if the one that is written to is full, or if a header
// that was cut short may say how many records its generation has. The caller holds
// writing.
func (s *boltStore) makeRoom() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.active.count > 0 && (s.fill >= s.opts.memSize || s.journal.torn) {
		switch {
		case s.frozen == nil:
			if err := s.freeze(); err != nil {
				return err
			}
		case s.state.Load().file == nil || s.draining: // the checkpoint waits for what this holds
			return nil
		case s.full != nil:
			return s.full
		default:
			s.changed.Wait()
		}
	}
	return nil
}

// startJournal makes a journal, if there is none yet, and the file one that is not
// whole without it. The caller holds writing.
func (s *boltStore) startJournal() error {
	if s.journal != nil {
		return nil
	}
	if s.kept.old {
		if err := s.adopt(); err != nil {
			return err
		}
	}
	next := journalState{journalID: journalID{file: s.kept.file}, first: 1}
	rand.Read(next.life[:])
	j, err := beginJournal(s.path, next.journalID, s.tx.Load()+1, !s.opts.noSync)
	if err != nil {
		return beginError(err)
	}
	if err := s.writeWaiting(func(tx *bolt.Tx) error { return next.put(tx) }); err != nil {
		j.close()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal, s.kept = j, next
	s.records.Store(0)
	return nil
}

// adopt makes of a file that an earlier sello wrote one of today's: what its
// journal holds is brought into it first. A kill at any time leaves one or the
// other. The caller holds writing.
func (s *boltStore) adopt() error {
	full := errClosed
	for last := (*memtable)(nil); ; {
		s.mu.Lock()
		if s.frozen == nil && s.active.count > 0 {
			s.frozen, s.active, s.fill = s.active, newMemtable(), 0
			s.publish(s.state.Load().file)
		}
		frozen := s.frozen
		s.mu.Unlock()
		if frozen == nil {
			break
		}
		if frozen == last {
			return full
		}
		// What is in the file by then need not be brought there by the next write.
		err := s.checkpoint(frozen, inHaste, func(cause error) bool { full = cause; return false })
		if err != nil {
			return err
		}
		last = frozen
	}
	hadJournal := s.kept.first != 0
	next := journalState{journalID: journalID{file: newFileID()}}
	// Two transactions: the headers of a file of today are neighbours.
	for _, state := range []journalState{s.kept, next} {
		if err := s.writeWaiting(func(tx *bolt.Tx) error { return state.put(tx) }); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.kept = next
	s.mu.Unlock()
	if hadJournal {
		return removeJournal(s.path, s.opts.remove)
	}
	return nil
}

// writeFile runs fn in a transaction of bbolt. It returns errMapFull if the map has to
// grow first.
func (s *boltStore) writeFile(fn func(*bolt.Tx) error) error {
	err := s.writeMapped(fn)
	if s.fileMap.isFull(err) {
		err = fmt.Errorf("%w: %w", errMapFull, err)
	}
	s.fileMap.fix()
	return err
}

func (s *boltStore) writeMapped(fn func(*bolt.Tx) error) (err error) {
	defer catch(&err)
	tx, err := s.begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does something only if Commit is not reached, or panics
	if err := fn(tx); err != nil {
		return commitError(err)
	}
	id := uint64(tx.ID())
	if err := tx.Commit(); err != nil {
		return commitError(err)
	}
	s.tx.Store(id)
	return nil
}

// begin opens a transaction of bbolt.
func (s *boltStore) begin(writable bool) (tx *bolt.Tx, err error) {
	defer catch(&err)
	tx, err = s.db.Begin(writable)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		err = errClosed
	}
	return tx, err
}

// What watch finds, and who opens a file that is being replaced.
var (
	errFileRemoved  = errors.New("the file was removed")
	errFileReplaced = errors.New("the file was replaced")
	errFileCut      = errors.New("the file was cut short")
)

// watch breaks the queue when the file's name, or one of the journal's, no
// longer leads to the file that was opened, or when the file becomes shorter,
// which bbolt never makes it.
func (s *boltStore) watch(opened fs.FileInfo, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for size := opened.Size(); ; {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		now, err := look(s.path, opened)
		switch {
		case err != nil:
			s.queue.fail(err)
		case now != nil && now.Size() < size:
			s.queue.fail(fmt.Errorf("%s: %w", s.path, errFileCut))
		case now != nil:
			size = now.Size()
		}
		s.mu.Lock()
		j := s.journal
		s.mu.Unlock()
		if j == nil {
			continue
		}
		for i, name := range journalNames(s.path) {
			if _, err := look(name, j.opened[i]); err != nil {
				s.queue.fail(err)
			}
		}
	}
}

// look returns what there is now at path; nil if that cannot be told, and an
// error if it is not what was opened.
func look(path string, opened fs.FileInfo) (fs.FileInfo, error) {
	now, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", path, errFileRemoved)
	case err != nil:
		return nil, nil
	case !os.SameFile(opened, now):
		return nil, fmt.Errorf("%s: %w", path, errFileReplaced)
	}
	return now, nil
}
