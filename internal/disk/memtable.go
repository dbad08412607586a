package disk

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"sello/internal/ordered"
)

// A memtable is an ordered map of what was written lately. One goroutine writes; any
// number read meanwhile, without locks. Each write carries the number of its version,
// which never decreases. A reader sees the table as of a version that is complete. A
// deletion is stored too, since it hides what lies below.
//
// A look-up finds an entry by a hash, a scan finds it in a sorted run: most transactions look up
// and never scan. Entries and versions lie in blocks without pointers, which the garbage collector
// need not scan. They refer to one another by 32-bit references, of which 0 is none. Nothing is
// freed before the table as a whole, except runs that were merged.
//
//	entry:   hash, next in the same bucket, newest version, position and length of the key
//	version: number, older version, position and length of the value
type memtable struct {
	seed    maphash.Seed
	buckets [memBuckets]uint32
	words   blocks[uint32]
	bytes   blocks[byte]
	runs    atomic.Pointer[[]memRun] // each entry of a complete batch is in exactly one

	// The writer's own.
	count  int      // entries
	fresh  []memKey // of this batch, in any order
	hashes []uint32 // of its keys
	waited uint32   // what was read ahead, kept so that the compiler does not leave the reads out

	// Guarded by File.mu.
	newest uint32    // version
	since  time.Time // of its first entry
	logged int64     // bytes that the journal has of it
}

// A memRun lists entries in the order of their keys. It does not change.
type memRun []memKey

// A memKey is the key of an entry. A run holds the first 16 bytes of each key, in which most keys
// differ: reading a whole key means waiting for memory.
type memKey struct {
	start [2]uint64
	entry uint32
}

// table returns the first byte of the key.
func (k memKey) table() byte { return byte(k.start[0] >> 56) }

const (
	memBuckets = 1 << 18
	memDeleted = 1<<32 - 1 // as the length of a value
	memRunMost = 1 << 17   // entries; merging longer runs would hold up a batch
)

// Words of an entry.
const (
	entryHash = iota
	entryChain
	entryNewest
	entryKey
	entryKeyLen
	entryWords
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
	m := &memtable{seed: maphash.MakeSeed()}
	m.words.take(1) // so that 0 is no entry
	m.runs.Store(new([]memRun))
	return m
}

// size is how much memory the entries take, in bytes.
func (m *memtable) size() int {
	return m.words.used*4 + m.bytes.used + m.count*int(unsafe.Sizeof(memKey{}))
}

// get returns the value of key as of the version; nil if it was deleted. ok is false if
// the table knows nothing of the key.
func (m *memtable) get(key []byte, version uint32) (value []byte, ok bool) {
	if e := m.find(uint32(maphash.Bytes(m.seed, key)), key); e != 0 {
		return m.value(e, version)
	}
	return nil, false
}

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

// put makes the changes of one batch, in the version. Scans find them when it is done.
func (m *memtable) put(changes []ordered.Change, version uint32) {
	// A look-up is mostly waiting for memory. Reading ahead, all of a batch wait together.
	m.hashes, m.waited = m.hashes[:0], 0
	for i := range changes {
		hash := uint32(maphash.String(m.seed, changes[i].Key)) // that of Bytes
		m.hashes = append(m.hashes, hash)
		m.waited ^= m.buckets[hash%memBuckets]
	}
	for _, hash := range m.hashes {
		m.waited ^= m.words.from(m.buckets[hash%memBuckets])[entryHash]
	}
	for i, c := range changes {
		m.putOne(m.hashes[i], c.Key, c.Value, version)
	}
	m.endBatch()
}

// putOne sets key to value, nil for a deletion.
func (m *memtable) putOne(hash uint32, key string, value []byte, version uint32) {
	var buf [64]byte
	k := append(buf[:0], key...)
	if e := m.find(hash, k); e != 0 {
		newest := &m.words.from(e)[entryNewest]
		atomic.StoreUint32(newest, m.newVersion(value, version, *newest))
		return
	}
	e := m.words.take(entryWords)
	w := m.words.from(e)
	bucket := &m.buckets[hash%memBuckets]
	w[entryHash], w[entryChain], w[entryNewest] = hash, *bucket, m.newVersion(value, version, 0)
	w[entryKey], w[entryKeyLen] = m.bytes.take(len(key)), uint32(len(key))
	copy(m.bytes.from(w[entryKey]), key)
	atomic.StoreUint32(bucket, e) // the entry is complete: from here on readers can find it
	m.fresh = append(m.fresh, memKey{startOf(k), e})
	m.count++
}

// startOf returns the first 16 bytes of a key, with zeros after a shorter one.
func startOf(key []byte) [2]uint64 {
	var b [16]byte
	copy(b[:], key)
	return [2]uint64{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])}
}

func (m *memtable) newVersion(value []byte, version, older uint32) uint32 {
	v := m.words.take(versionWords)
	w := m.words.from(v)
	w[versionNumber], w[versionOlder] = version, older
	if value == nil {
		w[versionValueLen] = memDeleted
	} else {
		w[versionValue], w[versionValueLen] = m.bytes.take(len(value)), uint32(len(value))
		copy(m.bytes.from(w[versionValue]), value)
	}
	return v
}

// endBatch makes a run of the new entries. A run more than half as long as the one before it is
// merged with that one, up to memRunMost. So a full table has some twenty runs.
func (m *memtable) endBatch() {
	if len(m.fresh) == 0 {
		return
	}
	if !slices.IsSortedFunc(m.fresh, m.compare) { // mostly they came in order
		slices.SortFunc(m.fresh, m.compare)
	}
	last := slices.Clone(m.fresh)
	m.fresh = m.fresh[:0]
	runs := *m.runs.Load()
	for n := len(runs) - 1; n >= 0 && len(runs[n]) < 2*len(last) && len(runs[n])+len(last) <= memRunMost; n-- {
		last, runs = m.merge(runs[n], last), runs[:n]
	}
	runs = append(slices.Clip(runs), last)
	m.runs.Store(&runs)
}

// inOrder returns all entries in one run.
func (m *memtable) inOrder() memRun {
	runs := slices.Clone(*m.runs.Load())
	for len(runs) > 1 { // merge two neighbours each
		half := runs[:0]
		for two := range slices.Chunk(runs, 2) {
			if len(two) == 2 {
				two[0] = m.merge(two[0], two[1])
			}
			half = append(half, two[0])
		}
		runs = half
	}
	if len(runs) == 0 {
		return nil
	}
	return runs[0]
}

func (m *memtable) merge(a, b memRun) memRun {
	merged := make(memRun, 0, len(a)+len(b))
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if m.less(&a[i], &b[j]) {
			merged = append(merged, a[i])
			i++
		} else {
			merged = append(merged, b[j])
			j++
		}
	}
	return append(append(merged, a[i:]...), b[j:]...)
}

func (m *memtable) less(a, b *memKey) bool {
	if a.start[0] != b.start[0] {
		return a.start[0] < b.start[0]
	}
	return m.compare(*a, *b) < 0
}

func (m *memtable) compare(a, b memKey) int {
	if a.start != b.start {
		return slices.Compare(a.start[:], b.start[:])
	}
	return bytes.Compare(m.key(a.entry), m.key(b.entry))
}

// place returns how many entries of a run lie before key.
func (m *memtable) place(r memRun, key []byte) int {
	start := startOf(key)
	at, _ := slices.BinarySearchFunc(r, key, func(k memKey, key []byte) int {
		if k.start != start {
			return slices.Compare(k.start[:], start[:])
		}
		return bytes.Compare(m.key(k.entry), key)
	})
	return at
}

// A memCursor goes through a table's entries in order, or backward.
type memCursor struct {
	table   *memtable
	rest    []memRun // what is left of each run; none is empty
	reverse bool
}

// from returns a cursor to the entries from key on.
func (m *memtable) from(key []byte) *memCursor {
	c := &memCursor{table: m}
	for _, r := range *m.runs.Load() {
		c.add(r[m.place(r, key):])
	}
	return c
}

// before returns a cursor that goes backward from the last entry before key, or from the end if key
// is empty.
func (m *memtable) before(key []byte) *memCursor {
	c := &memCursor{table: m, reverse: true}
	for _, r := range *m.runs.Load() {
		end := len(r)
		if len(key) > 0 {
			end = m.place(r, key)
		}
		c.add(r[:end])
	}
	return c
}

func (c *memCursor) add(r memRun) {
	if len(r) > 0 {
		c.rest = append(c.rest, r)
	}
}

// next returns the next entry; 0 after the last.
func (c *memCursor) next() (e uint32) {
	if len(c.rest) == 0 {
		return 0
	}
	best := 0
	for i := 1; i < len(c.rest); i++ {
		if (c.table.compare(c.head(i), c.head(best)) < 0) != c.reverse {
			best = i
		}
	}
	e = c.head(best).entry
	r := c.rest[best]
	if c.reverse {
		r = r[:len(r)-1]
	} else {
		r = r[1:]
	}
	if c.rest[best] = r; len(r) == 0 {
		c.rest = slices.Delete(c.rest, best, best+1)
	}
	return e
}

// head returns what is next in run i.
func (c *memCursor) head(i int) memKey {
	if r := c.rest[i]; c.reverse {
		return r[len(r)-1]
	} else {
		return r[0]
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
