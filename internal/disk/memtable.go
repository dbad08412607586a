package disk

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"sync/atomic"
	"time"
)

// A memtable is an ordered map of what was written lately. One goroutine writes; any
// number read meanwhile, without locks. Each write carries the number of its version,
// which never decreases. A reader sees the table as of a version that is complete. A
// deletion is stored too, since it hides what lies below.
//
// The entries are found by a hash and, in order, by a skip list. All of them lie in
// blocks without pointers, which the garbage collector need not scan. They refer to one
// another by 32-bit references, of which 0 is none. Nothing is freed before the table
// as a whole.
//
//	entry:   hash, next in the same bucket, newest version,
//	         position and length of the key, its first 16 bytes,
//	         entry before, then for each of its levels the entry after
//	version: number, older version, position and length of the value
type memtable struct {
	seed    maphash.Seed
	buckets [memBuckets]uint32
	words   blocks[uint32]
	bytes   blocks[byte]
	head    uint32 // an entry without a key, before all others

	// The writer's own.
	newest uint32 // version
	count  int    // entries
	random uint64 // state of the generator of heights

	// The writer's own: the path to the entry that was made last. On each level it is that
	// entry, or the last one before it.
	path [memLevels]uint32

	// Guarded by File.mu.
	since  time.Time // of its first entry
	logged int64     // bytes that the journal has of it
}

const (
	memBuckets = 1 << 18
	memLevels  = 10        // enough for 4^10 entries
	memDeleted = 1<<32 - 1 // as the length of a value
)

// Words of an entry.
const (
	entryHash = iota
	entryChain
	entryNewest
	entryKey
	entryKeyLen
	entryStart
	entryPrev = entryStart + 4
	entryNext = entryPrev + 1
)

// Words of a version.
const (
	versionNumber = iota
	versionOlder
	versionValue
	versionValueLen
	versionWords
)

func newMemtable() *memtable {
	m := &memtable{seed: maphash.MakeSeed(), random: 0x9E3779B97F4A7C15}
	m.words.take(1) // so that 0 is no entry
	m.head = m.words.take(entryNext + memLevels)
	return m
}

// size is how much memory the entries take, in bytes.
func (m *memtable) size() int { return m.words.used*4 + m.bytes.used }

// get returns the value of key as of the version; nil if it was deleted. ok is false if
// the table knows nothing of the key.
func (m *memtable) get(key []byte, version uint32) (value []byte, ok bool) {
	if e := m.find(m.hash(key), key); e != 0 {
		return m.value(e, version)
	}
	return nil, false
}

func (m *memtable) hash(key []byte) uint32 { return uint32(maphash.Bytes(m.seed, key)) }

// find returns the entry of key; 0 if there is none.
func (m *memtable) find(hash uint32, key []byte) uint32 {
	for e := atomic.LoadUint32(&m.buckets[hash%memBuckets]); e != 0; {
		w := m.words.from(e)
		if w[entryHash] == hash && bytes.Equal(m.bytes.slice(w[entryKey], w[entryKeyLen]), key) {
			return e
		}
		e = w[entryChain]
	}
	return 0
}

// value returns what entry e had as of the version.
func (m *memtable) value(e, version uint32) (value []byte, ok bool) {
	for v := atomic.LoadUint32(&m.words.from(e)[entryNewest]); v != 0; {
		w := m.words.from(v)
		if w[versionNumber] <= version {
			if w[versionValueLen] == memDeleted {
				return nil, true
			}
			return m.bytes.slice(w[versionValue], w[versionValueLen]), true
		}
		v = w[versionOlder]
	}
	return nil, false
}

func (m *memtable) key(e uint32) []byte {
	w := m.words.from(e)
	return m.bytes.slice(w[entryKey], w[entryKeyLen])
}

func (m *memtable) firstByte(e uint32) byte { return byte(m.words.from(e)[entryStart] >> 24) }

// next returns the entry after e on a level; 0 after the last.
func (m *memtable) next(e uint32, level int) uint32 {
	return atomic.LoadUint32(&m.words.from(e)[entryNext+level])
}

// A memKey is a key to compare entries with. Most keys differ in the first 16 bytes,
// which lie in the entry: reading a whole key means waiting for memory.
type memKey struct {
	start [2]uint64
	key   []byte
}

func newMemKey(key []byte) memKey {
	var b [16]byte
	copy(b[:], key)
	return memKey{[2]uint64{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])}, key}
}

// before reports whether entry e, which may be none, lies before the key.
func (m *memtable) before(e uint32, k *memKey) bool {
	return e != 0 && m.compare(m.words.from(e), k) < 0
}

// compare compares the key of the entry that has the words w with k.
func (m *memtable) compare(w []uint32, k *memKey) int {
	w = w[:entryNext]
	own, start := uint64(w[entryStart])<<32|uint64(w[entryStart+1]), k.start[0]
	if own == start {
		own, start = uint64(w[entryStart+2])<<32|uint64(w[entryStart+3]), k.start[1]
	}
	switch {
	case own < start:
		return -1
	case own > start:
		return 1
	}
	return bytes.Compare(m.bytes.slice(w[entryKey], w[entryKeyLen]), k.key)
}

// lastBefore returns the last entry before key, or before the end if key is
// empty; 0 if there is none.
func (m *memtable) lastBefore(key []byte) uint32 {
	k := newMemKey(key)
	e := m.head
	for level := memLevels - 1; level >= 0; level-- {
		if len(key) > 0 {
			e = m.advance(e, level, &k)
			continue
		}
		for n := m.next(e, level); n != 0; n = m.next(e, level) {
			e = n
		}
	}
	if e == m.head {
		return 0
	}
	return e
}

// first returns the first entry that is not before key; 0 if there is none.
func (m *memtable) first(key []byte) uint32 {
	if len(key) == 0 {
		return m.next(m.head, 0)
	}
	e := m.lastBefore(key)
	if e == 0 {
		e = m.head
	}
	return m.next(e, 0)
}

// prev returns the entry before e; 0 before the first.
func (m *memtable) prev(e uint32) uint32 {
	p := atomic.LoadUint32(&m.words.from(e)[entryPrev])
	if p == m.head {
		return 0
	}
	return p
}

// put sets key to value, nil for a deletion, in the version.
func (m *memtable) put(key string, value []byte, version uint32) {
	var buf [64]byte
	k := newMemKey(append(buf[:0], key...))
	hash, e := m.hash(k.key), uint32(0)
	if !m.isNext(&k) {
		e = m.find(hash, k.key)
	}
	if e == 0 {
		m.insert(hash, &k, m.newVersion(value, version, 0))
		return
	}
	newest := &m.words.from(e)[entryNewest]
	atomic.StoreUint32(newest, m.newVersion(value, version, *newest))
}

// isNext reports whether key lies between the entry that was made last and the one after
// it, as it does at the end of a table. Then it has no entry.
func (m *memtable) isNext(key *memKey) bool {
	if !m.before(m.path[0], key) {
		return false
	}
	next := m.next(m.path[0], 0)
	return next == 0 || m.compare(m.words.from(next), key) > 0
}

func (m *memtable) newVersion(value []byte, version, older uint32) uint32 {
	v := m.words.take(versionWords)
	w := m.words.from(v)
	w[versionNumber], w[versionOlder] = version, older
	if value == nil {
		w[versionValueLen] = memDeleted
	} else {
		w[versionValue], w[versionValueLen] = m.copy(value), uint32(len(value))
	}
	return v
}

func (m *memtable) copy(b []byte) (pos uint32) {
	pos = m.bytes.take(len(b))
	copy(m.bytes.from(pos), b)
	return pos
}

// insert makes the entry of a key that has none.
func (m *memtable) insert(hash uint32, key *memKey, version uint32) {
	height := m.newHeight()
	m.seek(key)
	e := m.words.take(entryNext + height)
	w := m.words.from(e)
	bucket := &m.buckets[hash%memBuckets]
	w[entryHash], w[entryChain], w[entryNewest] = hash, *bucket, version
	w[entryKey], w[entryKeyLen] = m.copy(key.key), uint32(len(key.key))
	for i, start := range key.start {
		w[entryStart+2*i], w[entryStart+2*i+1] = uint32(start>>32), uint32(start)
	}
	w[entryPrev] = m.path[0]
	for level := range height {
		w[entryNext+level] = m.next(m.path[level], level)
	}
	// The entry is complete. From here on readers can find it.
	atomic.StoreUint32(bucket, e)
	if next := w[entryNext]; next != 0 {
		atomic.StoreUint32(&m.words.from(next)[entryPrev], e)
	}
	for level := range height {
		atomic.StoreUint32(&m.words.from(m.path[level])[entryNext+level], e)
		m.path[level] = e
	}
	m.count++
}

// newHeight is 1 with probability 3/4, 2 with 3/16, and so on.
func (m *memtable) newHeight() int {
	m.random ^= m.random << 13
	m.random ^= m.random >> 7
	m.random ^= m.random << 17
	height := 1
	for r := m.random; r&3 == 0 && height < memLevels; r >>= 2 {
		height++
	}
	return height
}

// seek moves the path to key: on each level, to the last entry before it. Batches come in
// order, and many of their keys lie next to one another. So it goes on from where it is,
// unless that is beyond key, and climbs to the first level that has no entry on the way.
// Then no level above has one.
func (m *memtable) seek(key *memKey) {
	level := 0
	if !m.before(m.path[0], key) {
		level = memLevels
		m.path[level-1] = m.head
	}
	for level < memLevels && m.before(m.next(m.path[level], level), key) {
		level++
	}
	if level == 0 {
		return
	}
	e := m.path[level-1]
	for level--; level >= 0; level-- {
		e = m.advance(e, level, key)
		m.path[level] = e
	}
}

// advance returns the last entry on a level that lies before key, from e on.
func (m *memtable) advance(e uint32, level int, key *memKey) uint32 {
	for w := m.words.from(e); ; {
		n := atomic.LoadUint32(&w[entryNext+level])
		if n == 0 {
			return e
		}
		if w = m.words.from(n); m.compare(w, key) >= 0 {
			return e
		}
		e = n
	}
}

// blocks is a growing array whose elements never move. A position is the number of a
// block and the place in it.
type blocks[T any] struct {
	list atomic.Pointer[[][]T]
	free int // in the last block
	used int
}

const blockLen = 1 << 16

// take returns the position of n new elements side by side, all zero.
func (b *blocks[T]) take(n int) uint32 {
	if b.free < max(n, 1) {
		b.grow(max(n, blockLen))
	}
	list := *b.list.Load()
	last := len(list) - 1
	at := len(list[last]) - b.free
	b.free -= n
	b.used += n
	return uint32(last*blockLen + at)
}

// grow adds a block. Readers keep the list that they have.
func (b *blocks[T]) grow(size int) {
	var list [][]T
	if p := b.list.Load(); p != nil {
		list = *p
	}
	b.used += b.free // what is left of the last block is lost
	list = append(list[:len(list):len(list)], make([]T, size))
	b.list.Store(&list)
	b.free = size
}

// from returns what lies from a position to the end of its block.
func (b *blocks[T]) from(pos uint32) []T {
	return (*b.list.Load())[pos/blockLen][pos%blockLen:]
}

func (b *blocks[T]) slice(pos, n uint32) []T { return b.from(pos)[:n:n] }
