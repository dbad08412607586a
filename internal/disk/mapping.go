package disk

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	bolt "go.etcd.io/bbolt"
)

// bbolt reads the file through a memory map. If the file outgrows the map, bbolt
// maps it anew, and it can do so only while no transaction reads. There
// are two ways to live with that:
//
//   - Where a map may be longer than its file, a long map costs nothing but addresses.
//     So it is made once, as long as the system allows, and the file may not
//     grow past it: bbolt never maps anew.
//   - Elsewhere (Windows) the file is as long as its map, so the map grows with
//     the file. bbolt may not do that by itself (see fix). A step that needs
//     more map fails, and stopReads finds a moment for it.

// A mapRule says how bbolt maps a file, in bytes.
type mapRule struct {
	first int64 // mapped when the file is opened, if the file is not longer
	most  int64 // of the file; 0: as many as the disk has
	grows bool  // the map may grow past first
}

const (
	largestMap = 4 << 40 // bytes; hundreds of times what a large file has
	mapOf32    = 1 << 30
	shortMap   = 1 << 30
	grownMap   = 16 << 20 // to begin with, where the file is as long as the map
	mapsBeside = 256 << 20
)

// mapRuleHere returns the rule for this process. A backup maps its copy beside the
// file, and the heap needs addresses too.
func mapRuleHere() mapRule {
	return mapRuleFor(strconv.IntSize, func(size int64) bool { return canReserve(int(size), int(size), mapsBeside) })
}

// mapRuleFor returns the rule for ints of so many bits. reserve reports whether there
// are addresses for two maps of a size and for the rest of the process.
func mapRuleFor(bits int, reserve func(size int64) bool) mapRule {
	largest := int64(largestMap)
	if bits == 32 {
		largest = mapOf32
	}
	for size := largest; size >= grownMap; size /= 2 {
		if reserve(size) {
			// The rest is for the copy of a backup, which memtables are brought into.
			return mapRule{first: size, most: size / 16 * 15}
		}
	}
	rule := mapRule{first: grownMap, grows: true}
	if bits == 32 {
		rule.most = mapOf32 / 2 // of 2 GiB in all, and a map has to lie in one piece
	}
	return rule
}

// errMapFull is returned by a step that needs more map than there is.
var errMapFull = fmt.Errorf("%w: the file has outgrown its memory map", ErrUnavailable)

// A fileMap is bbolt's memory map of a file.
type fileMap struct {
	db   *bolt.DB
	rule mapRule
	size int // of a map that grows
}

// openMapped opens the file at path with a map by the rule.
func openMapped(path string, rule mapRule, options bolt.Options) (*fileMap, error) {
	if rule == (mapRule{}) {
		rule = mapRuleHere()
	}
	if limit := int64(options.MaxSize); limit > 0 && (rule.most == 0 || limit < rule.most) {
		rule.most = limit
	}
	options.MaxSize, options.InitialMmapSize = int(rule.most), int(rule.first)
	if rule.grows {
		options.MaxSize = 0 // fix sets it
	}
	db, err := bolt.Open(path, 0o600, &options)
	if err != nil || !rule.grows {
		return &fileMap{db: db, rule: rule}, err
	}
	if _, ok := mappedBytes(db); !ok {
		return nil, errors.Join(errors.New("bbolt: no field datasz"), db.Close())
	}
	m := &fileMap{db: db, rule: rule}
	db.AllocSize = math.MaxInt // so that what bbolt asks for is always a whole map, as on Windows
	m.fix()
	if err := lengthen(path, m.size); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return m, nil
}

// lengthen makes the file at path as long as a map.
func lengthen(path string, size int) error {
	info, err := os.Stat(path)
	if err == nil && info.Size() < int64(size) {
		err = os.Truncate(path, int64(size))
	}
	if err != nil {
		return commitError(fmt.Errorf("file resize error: %w", err))
	}
	return nil
}

// mappedBytes returns where bbolt keeps the size of its map. ok is false if this bbolt
// keeps it elsewhere.
func mappedBytes(db *bolt.DB) (size *int, ok bool) {
	v := reflect.ValueOf(db).Elem().FieldByName("datasz")
	if v.Kind() != reflect.Int {
		return nil, false
	}
	return (*int)(unsafe.Pointer(v.UnsafeAddr())), true
}

// fix keeps bbolt from mapping the file anew. bbolt refuses to go past MaxSize, but it
// maps anew one page before that, for a page that the map has. So fix tells bbolt that
// its map is one page longer. No transaction may be writing.
func (m *fileMap) fix() {
	size, ok := mappedBytes(m.db)
	if !m.rule.grows || !ok {
		return
	}
	if *size != m.size+pageSize {
		m.size = *size
		*size += pageSize
	}
	m.db.MaxSize = m.bounded(m.size)
}

func (m *fileMap) bounded(size int) int {
	if m.rule.most > 0 {
		return min(size, int(m.rule.most))
	}
	return size
}

// isFull reports whether err says that the map is full and may grow.
func (m *fileMap) isFull(err error) bool {
	return m.rule.grows && errors.Is(err, ErrFull) && m.bounded(math.MaxInt) > m.size
}

// makeSpace makes the file as long as its next map. bbolt would notice a lack of space
// only after dropping the old map.
func (m *fileMap) makeSpace(path string) error { return lengthen(path, nextMap(m.size)) }

// letGrow lets bbolt map the file anew in the next transaction, if that needs it.
// Nobody may read until then, or bbolt would wait with its locks held.
func (m *fileMap) letGrow() { m.db.MaxSize = m.bounded(nextMap(m.size)) }

// nextMap returns the size of the map that bbolt makes when one of size is too small.
func nextMap(size int) int {
	const step = 1 << 30
	if size < step {
		return 2 * size
	}
	return min(size, math.MaxInt-step) + step
}

// Bounds of stopReads.
const (
	leastPatience = 5 * time.Millisecond
	mostPatience  = 250 * time.Millisecond
	drainTime     = 100 * time.Millisecond // a View that takes longer lasts
	drainLook     = time.Millisecond / 4
)

// stopReads finds a moment without Views under way, in which the map may grow. New
// Views wait for it, and then until the next share. They wait for older ones no longer
// than patience. If an older View lasts, they go on beside it, and so do writes as long
// as there is room in memory. A batch that is being filled reads too, but it always
// ends, so it is waited for. stopReads reports false if the store is closed meanwhile.
func (s *File) stopReads() (stopped bool, err error) {
	if err := s.fileMap.makeSpace(s.path); err != nil {
		return false, err
	}
	defer s.setDraining(false)
	began := time.Now()
	for patience := leastPatience; ; patience = min(2*patience, mostPatience) {
		s.setDraining(true)
		s.mu.Lock()
		err := s.share() // so that older Views are counted apart from new ones
		s.mu.Unlock()
		batches := s.begun.Load()
		if err != nil {
			return false, err
		}
		for s.files.Load() > 1 {
			if time.Since(began) > drainTime && s.ended.Load() >= batches {
				s.setDraining(false)
			}
			select {
			case <-s.stop:
				return false, nil
			case <-time.After(drainLook):
			}
		}
		s.mu.Lock()
		s.unshare()
		s.publish(nil)
		s.mu.Unlock()
		batches = s.begun.Load()
		for end := time.Now().Add(patience); time.Now().Before(end) || s.ended.Load() < batches; time.Sleep(drainLook) {
			if s.files.Load() == 0 {
				s.fileMap.letGrow()
				return true, nil
			}
		}
	}
}

// setDraining records whether the checkpoint waits for Views that end soon. Then the
// writer must not wait for the checkpoint. If a View lasts, a write without room fails
// with errMapFull instead of waiting.
func (s *File) setDraining(draining bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full = nil; !draining {
		s.full = errMapFull
	}
	s.draining = draining
	s.changed.Broadcast()
}
