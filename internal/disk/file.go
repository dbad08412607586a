package disk

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

	"sello/internal/ordered"
)

// A File is an open data file with its journal.
//
// The data file has two buckets. dataBucket has every key as it is and every value
// behind a checksum:
//
//	| CRC-32C of key and value, 4 bytes, big-endian | value |
//
// journalBucket has entries of the same form: what the file says of itself and of its
// journal (journalState), and an inventory.
//
// bbolt leaves two things to us. It never notices a flipped bit; hence the checksum. It
// panics, or faults on its memory map, if pages contradict each other or the file is
// shorter than they say; hence checkHeader before bbolt sees a file, and catch around
// each call.
type File struct {
	path    string
	opts    Options
	db      *bolt.DB
	opened  *os.File                  // by db, which closes it
	fileMap *fileMap                  // of db
	state   atomic.Pointer[fileState] // what Views see; nil: closed
	written atomic.Uint64             // entries stored
	files   atomic.Int64              // fileTxs in use, that of state among them
	closing atomic.Bool               // Close or Leave was called
	begun   atomic.Int64              // Snapshots of the writer, which reads to fill a batch
	ended   atomic.Int64              // how many of these were released
	stop    chan struct{}             // closed to end the goroutines below
	running sync.WaitGroup            // watch and checkpoints
	checked pageSet                   // validated pages of the file; openTree may replace it
	tx      atomic.Uint64             // the file's last transaction
	records atomic.Uint64             // of the journal's newest generation
	wake    chan struct{}             // signals that there is something for checkpoints to do

	broken atomic.Pointer[error] // the cause of a failure; nil: the File has not failed
	failed chan error            // one error, when it breaks

	inventory *inventory // of the file; only the checkpoint changes it

	// Beginning a journal or a memtable takes both locks, writing first. Appending to
	// the journal and writing to the active memtable takes writing alone. Changing
	// these fields in other ways, or reading them, takes mu alone.
	writing  sync.Mutex
	journal  *journal  // nil before the first write
	active   *memtable // what the journal's newest generation holds
	mu       sync.Mutex
	kept     journalState // what the file says; during a checkpoint only that changes it
	brought  int          // memtables that this process has brought into the file completely
	fill     int          // size of active
	frozen   *memtable    // what the generation before holds, while it is brought into the file; else nil
	full     error        // why that cannot go on for now; nil if it can
	draining bool         // the checkpoint waits for Views that end soon
	lost     bool         // Views can no longer read the file: bbolt may hold its locks
	changed  *sync.Cond   // signals changes of these and of state
}

const (
	dataBucket    = "sello"
	journalBucket = "journal"
	pageSize      = 4096
	checksumSize  = 4
)

// Options are the ways to open a File. Zero values are the usual ones.
type Options struct {
	MustExist bool   // do not make a new file
	ReadOnly  bool   // write nothing, neither to the file nor beside it; it must exist, and others may read it too
	Dense     string // first bytes of keys that are added in ascending order: their pages are filled
	MemSize   int    // of a memtable in bytes, after which a new one is begun; 0: DefaultMemSize

	// Committed is called after each Commit, whatever its outcome, with how long it took;
	// nil: nothing is.
	Committed func(took time.Duration)

	// For tests.
	NoSync   bool          // lose commits in a power cut
	MemAge   time.Duration // of a memtable, after which a new one is begun; 0: defaultMemAge
	ShortMap bool          // map 1 GiB, which the file may not outgrow: hundreds of Files can be open

	maxSize    int                     // of the file in bytes; 0: as the disk allows
	lockWait   time.Duration           // for another process to close the file; 0: 2 seconds
	watchEvery time.Duration           // between looks at the file's name; 0: 1 second
	remove     func(name string) error // a journal's file; nil: os.Remove
	mapRule    mapRule                 // zero: mapRuleHere
}

// Open opens the data file at path and replays its journal. It makes the file if there
// is none, and refuses one that is not whole. An error is one line that begins with the
// path.
func Open(path string, opts Options) (*File, error) {
	f, err := openFile(path, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, inFile(path, openError(err)))
	}
	return f, nil
}

func openFile(path string, opts Options) (s *File, err error) {
	if err := findFile(path, opts.MustExist, opts.ReadOnly); err != nil {
		return nil, err
	}
	defer catch(&err) // after a panic bbolt keeps the file open and locked
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))

	if opts.ShortMap {
		opts.mapRule = mapRule{first: shortMap, most: shortMap}
	}
	if opts.ReadOnly {
		opts.mapRule = mapRule{first: pageSize} // nobody lengthens the file
	}
	mapped, file, opened, err := openData(path, opts)
	if err != nil {
		return nil, err
	}
	db := mapped.db
	if _, err := look(path, opened); err != nil { // while it waited for the lock
		db.Close()
		return nil, errors.Unwrap(err)
	}
	opts.MemSize = cmp.Or(opts.MemSize, DefaultMemSize)
	opts.MemAge = cmp.Or(opts.MemAge, defaultMemAge)
	if opts.remove == nil {
		opts.remove = os.Remove
	}
	s = &File{
		path: path, opts: opts, db: db, opened: file, fileMap: mapped,
		stop: make(chan struct{}), wake: make(chan struct{}, 1), active: newMemtable(),
		failed: make(chan error, 1),
	}
	s.changed = sync.NewCond(&s.mu)
	if err := s.takeUpJournal(); err != nil {
		s.unshare()
		db.Close()
		return nil, err
	}
	s.running.Go(func() { s.watch(opened, cmp.Or(opts.watchEvery, time.Second)) })
	if !opts.ReadOnly {
		s.running.Go(s.checkpoints)
	}
	return s, nil
}

// findFile makes the file at path if there is none, unless it must exist. It refuses a
// path that leads to no regular file.
func findFile(path string, mustExist, readOnly bool) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !mustExist && !readOnly {
		if err := createFile(path); err != nil {
			return err
		}
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return ErrDirectory
	case !info.Mode().IsRegular():
		return ErrNotRegular
	case readOnly:
		return nil
	}
	// Also if the file is not new: its maker may have died before the sync.
	return syncDir(filepath.Dir(path))
}

// openData checks the headers of the data file and opens it with bbolt. bbolt opens it
// again for each backup, and must find the same file.
func openData(path string, opts Options) (mapped *fileMap, file *os.File, opened fs.FileInfo, err error) {
	mapped, err = openMapped(path, opts.mapRule, bolt.Options{
		Timeout:      cmp.Or(opts.lockWait, 2*time.Second),
		PageSize:     pageSize,
		FreelistType: bolt.FreelistArrayType,
		MaxSize:      opts.maxSize,
		NoSync:       opts.NoSync,
		ReadOnly:     opts.ReadOnly,
		NoStatistics: true,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag&^os.O_CREATE, mode)
			if errors.Is(err, fs.ErrPermission) && !opts.ReadOnly { // the user may be able to read it
				return nil, ErrPermission
			}
			if err != nil {
				return nil, err
			}
			found, err := checkHeader(f)
			if err == nil && opened != nil && !os.SameFile(opened, found) { // for a backup
				err = ErrReplaced // the caller names the path
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
	return mapped, file, opened, err
}

// takeUpJournal replays the journal if the file is not whole without it.
func (s *File) takeUpJournal() error {
	if err := s.share(); err != nil {
		return err
	}
	if !s.opts.NoSync && !s.opts.ReadOnly {
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
		return checkLeft(s.path, s.kept)
	}
	if err := s.replay(); err != nil {
		if !file.headersWhole() { // the damaged one may have asked for no journal
			err = fmt.Errorf("%w; %w", err, ErrOneHeader)
		}
		return err
	}
	s.fill = s.active.size()
	for _, m := range []*memtable{s.active, s.frozen} {
		if m != nil {
			m.since = time.Now()
		}
	}
	s.publish(s.state.Load().file)
	return nil
}

// replay reads the journal that the file needs into memtables. Its older generation
// becomes the frozen memtable if there is a newer one, even one without records.
func (s *File) replay() (err error) {
	first := s.kept.first
	do := func(generation uint64, changes []ordered.Change) {
		if generation > first && s.frozen == nil {
			s.frozen, s.active = s.active, newMemtable()
		}
		if len(changes) > 0 {
			s.active.newest = 1
			s.active.put(changes, 1)
		}
	}
	var j *journal
	flags := os.O_RDWR
	if s.opts.ReadOnly {
		flags = os.O_RDONLY
	}
	if j, err = openJournal(s.path, s.kept.journalID, flags); err != nil {
		return err
	}
	j.sync = !s.opts.NoSync && !s.opts.ReadOnly
	if err := j.replay(s.kept, do); err != nil {
		j.close()
		return err
	}
	if j.generation > first && s.frozen == nil {
		s.frozen, s.active = s.active, newMemtable()
	}
	s.journal = j
	s.records.Store(j.records)
	s.active.logged = j.end - journalStart
	if s.frozen != nil {
		s.frozen.logged = j.endBefore - journalStart
	}
	return nil
}

// View runs fn on the last committed state.
func (s *File) View(ctx context.Context, fn func(*Snapshot) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	state, err := s.acquire()
	if err != nil {
		return err
	}
	defer state.release()
	return fn(&Snapshot{fileState: state})
}

// ViewLong is View for a long fn. Its state keeps no memtable in memory, its reads let
// writes go first, and it may begin later.
func (s *File) ViewLong(ctx context.Context, fn func(*Snapshot) error) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	state, err := s.acquireInFile(ctx)
	if err != nil {
		return err
	}
	defer state.release()
	return fn(&Snapshot{fileState: state, courtesy: newCourtesy(&s.written)})
}

// Snapshot returns the last committed state for the writer, which works out the next
// batch from it. It must be released before Commit, on any goroutine, since Commit may
// wait for a checkpoint that waits for it. If the file is damaged, reading may fault on
// the memory map. From now on such a fault is a panic on this goroutine, and the
// methods of Snapshot catch it.
func (s *File) Snapshot() (t *Snapshot, err error) {
	if s.opts.ReadOnly {
		return nil, ErrReadOnly
	}
	defer s.judge(&err)
	debug.SetPanicOnFault(true)
	if s.fileMap.rule.grows {
		// Writing to the file may need a moment without readers. The snapshot is one.
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
	return &Snapshot{fileState: state, ended: &s.ended}, nil
}

// Commit makes changes of different keys durable and visible. Only one call may run at
// a time. After ErrUnavailable nothing was stored. After any other error but ErrClosed
// the outcome is unknown, and the File has failed.
func (s *File) Commit(changes []ordered.Change) (err error) {
	defer s.judge(&err)
	defer catch(&err)
	debug.SetPanicOnFault(true)
	if s.opts.Committed != nil {
		began := time.Now()
		defer func() { s.opts.Committed(time.Since(began)) }()
	}
	switch {
	case s.state.Load() == nil:
		return ErrClosed
	case s.broken.Load() != nil:
		return ErrFailed
	case s.opts.ReadOnly:
		return ErrReadOnly
	case len(changes) == 0:
		return nil
	}
	return s.store(changes)
}

// judge fails the File if an error leaves the outcome unknown.
func (s *File) judge(err *error) {
	if *err != nil && !errors.Is(*err, ErrUnavailable) && !errors.Is(*err, ErrClosed) {
		s.fail(*err)
	}
}

// fail fails the File because of err. Only the first call has an effect.
func (s *File) fail(err error) {
	if s.broken.CompareAndSwap(nil, &err) {
		s.failed <- err
	}
}

// Failed yields one error when it is no longer known what is on disk: after a commit
// that failed for another reason than lack of space, or when the file's name no longer
// leads to the file. From then on Commit returns ErrFailed. The process reports the
// error and exits without Close, which might wait for ever.
func (s *File) Failed() <-chan error { return s.failed }

// Path is the path of the data file, as it was given to Open.
func (s *File) Path() string { return s.path }

// Close brings the journal into the file, which is then whole alone. No commit may
// follow or be under way. Close waits for Views under way. With ReadOnly it is Leave. After a
// failure it returns the error of Failed, and leaves the journal.
func (s *File) Close() error {
	if s.opts.ReadOnly {
		return s.Leave()
	}
	return s.close(s.finish)
}

// Leave closes the file as it is, beside its journal.
func (s *File) Leave() error {
	return s.close(func() (whole bool, err error) { return false, nil })
}

func (s *File) close(finish func() (whole bool, err error)) error {
	return s.closeAfter(finish, func() error { return nil })
}

// closeAfter closes the file after finish, which reports whether the file is whole
// without the journal. If it is, alone runs when the journal is gone. bbolt releases the
// lock on the file last: the next holder may begin a journal with the same names.
func (s *File) closeAfter(finish func() (whole bool, err error), alone func() error) error {
	if !s.closing.CompareAndSwap(false, true) {
		return ErrClosed
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
	if whole && err == nil {
		err = alone()
	}
	return errors.Join(err, s.db.Close())
}

// store makes the changes durable and visible. It waits while the memtable is
// full and the one before it is not yet in the file.
func (s *File) store(changes []ordered.Change) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.startJournal(); err != nil {
		return err
	}
	if err := s.makeRoom(); err != nil {
		return err
	}
	m := s.active
	// The version is published below. After a failed flush it never is: the File has failed before
	// anybody else can write or freeze, and what put left is passed over.
	err := s.journal.append(changes, func() { m.put(changes, m.newest+1) })
	if err != nil {
		err = commitError(err)
		s.judge(&err)
		return err
	}
	s.written.Add(uint64(len(changes)))
	s.records.Store(s.journal.records)
	s.markJournal()
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.newest == 0 {
		m.since = time.Now()
	}
	m.newest++
	m.logged = s.journal.end - journalStart
	s.fill = m.size()
	s.publish(s.state.Load().file)
	return nil
}

// makeRoom begins a new memtable if the active one is full. It also begins one if a
// torn header of the next generation may already say how many records this one has. The
// caller holds writing.
func (s *File) makeRoom() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.active.count > 0 && (s.fill >= s.opts.MemSize || s.journal.torn) {
		switch {
		case s.frozen == nil:
			if err := s.freeze(); err != nil {
				return err
			}
		// The checkpoint waits for a Snapshot that waits for this write.
		case s.state.Load().file == nil || s.draining:
			return nil
		case s.full != nil:
			return s.full
		default:
			s.changed.Wait()
		}
	}
	return nil
}

// startJournal begins a journal if there is none yet, and marks the file as not whole
// without it. The caller holds writing.
func (s *File) startJournal() error {
	if s.journal != nil {
		return nil
	}
	next := journalState{journalID: journalID{file: s.kept.file}, first: 1}
	rand.Read(next.life[:])
	j, err := beginJournal(s.path, next.journalID, s.tx.Load()+1, !s.opts.NoSync)
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

// writeFile runs fn in a transaction of bbolt. It returns errMapFull if the map has to
// grow first.
func (s *File) writeFile(fn func(*bolt.Tx) error) error {
	err := s.writeMapped(fn)
	if s.fileMap.isFull(err) {
		err = fmt.Errorf("%w: %w", errMapFull, err)
	}
	s.fileMap.fix()
	return err
}

func (s *File) writeMapped(fn func(*bolt.Tx) error) (err error) {
	defer catch(&err)
	tx, err := s.begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback() // has an effect only if Commit is not reached, or panics
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
func (s *File) begin(writable bool) (tx *bolt.Tx, err error) {
	defer catch(&err)
	tx, err = s.db.Begin(writable)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		err = ErrClosed
	}
	return tx, err
}

// watch fails the File when its name, or one of the journal's, no longer leads to the
// file that was opened, or when the file becomes shorter. bbolt never shortens it.
func (s *File) watch(opened fs.FileInfo, every time.Duration) {
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
			s.fail(err)
		case now != nil && now.Size() < size:
			s.fail(fmt.Errorf("%s: %w", s.path, ErrCutShort))
		case now != nil:
			size = now.Size()
		}
		s.mu.Lock()
		j := s.journal
		s.mu.Unlock()
		if j == nil {
			continue
		}
		for i, name := range JournalNames(s.path) {
			if _, err := look(name, j.opened[i]); err != nil {
				s.fail(err)
			}
		}
	}
}

// look returns what is at path now, nil if that cannot be known, and an error if it is
// not what was opened.
func look(path string, opened fs.FileInfo) (fs.FileInfo, error) {
	now, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", path, ErrRemoved)
	case err != nil:
		return nil, nil
	case !os.SameFile(opened, now):
		return nil, fmt.Errorf("%s: %w", path, ErrReplaced)
	}
	return now, nil
}
