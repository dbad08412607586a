package disk

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"sort"
	"unsafe"

	bolt "go.etcd.io/bbolt"

	"sello/internal/ordered"
)

// A pageTree reads a bucket of a bbolt file as one transaction sees it. It takes
// bbolt's place in reading, because bbolt trusts its pages: after a bit flip it does
// not find entries that are there, and reports nothing.
//
// What a pageTree says is absent is absent. This rests on five things:
//
//   - Entries of a page lie behind their table without a gap, up to the page's end, in the
//     order of their keys: none can be cut off or passed over.
//   - No page in use is on the list of free pages: none has outdated entries.
//   - A leaf's entries carry their checksums: none has another key. A leaf with a wrong
//     checksum is not clean, and never shows that a key is absent.
//   - A page begins with the key that its parent has for it: no key and no reference of a
//     parent has changed. This is checked each time, for the page that is read and, if a
//     key lies behind its end, for the page after it.
//   - The first and the last key are those of the inventory: the root is the root. This is
//     checked when the file is opened.
//
// The first three are checked once per page and process: for a branch when it is first
// read, for a leaf when it first lacks a key. All numbers are in the byte order of the
// machine:
//
//	page:   | id, 8 | kind, 2 | entries, 2 | further pages, 4 | table | keys and values |
//	branch: | place of the key, 4 | its length, 4 | page, 8 |
//	leaf:   | 1 if it is a bucket, 4 | place of the key, 4 | its length, 4 | of the value behind it, 4 |
//	free:   | page, 8 |
//
// Places count from the beginning of the entry in the table.
type pageTree struct {
	data    []byte      // the file, as far as it is in use
	file    io.ReaderAt // the same, for apart; nil if there is none
	path    string      // of the file, for errors
	own     bool        // pages are read into memory of their own
	free    []byte      // the list of free pages, ascending
	root    rawPage     // of the bucket
	shell   []pageSpan  // pages in use outside the bucket: free list, root, other buckets
	checked pageSet
	state   journalState // what journalBucket says of the journal
	proven  bool         // values on checked pages match their checksums
}

const (
	branchKind   = 0x01
	leafKind     = 0x02
	freeKind     = 0x10
	pageHeader   = 16
	pageEntry    = 16 // bytes of the table
	bucketHeader = 16 // in front of a bucket that lies in its parent's page
	maxLevels    = 32 // of a tree: a branch page has at least two entries, and there are fewer than 2³² pages
	manyFree     = 1<<16 - 1
)

// A pageSpan is some pages in a row.
type pageSpan struct{ id, n uint64 }

func u16(b []byte) uint16 { return binary.NativeEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

// openTree returns the bucket with a name as a transaction found it.
func openTree(db *bolt.DB, tx *bolt.Tx, name string, checked pageSet) (t *pageTree, err error) {
	defer catch(&err)
	id := uint64(tx.ID())
	if tx.Writable() {
		id--
	}
	start := db.Info().Data
	return newTree(unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&start))), tx.Size()), id, name, checked)
}

// newTree is openTree for the content of a file and the transaction that wrote it last.
func newTree(data []byte, tx uint64, name string, checked pageSet) (*pageTree, error) {
	header := headerOf(data, tx)
	if header == nil {
		return nil, damagedPage(0, "is not the header that it was")
	}
	t := &pageTree{data: data, checked: checked, root: rawPage{clean: true}} // until it is found
	if err := t.openFree(u64(header[48:])); err != nil {
		return nil, err
	}
	if err := t.openRoot(u64(header[32:]), name); err != nil {
		return nil, err
	}
	return t, t.checkHeaders(tx)
}

// checkHeaders returns an error if a header is older than it can be. bbolt writes the
// two in turn, so whole ones are of neighbouring transactions. The pages that the
// newest leads to also say which transaction they are of.
func (t *pageTree) checkHeaders(tx uint64) error {
	if t.state.tx != tx {
		return damagedPage(0, "leads to what another transaction wrote")
	}
	for page := range uint64(2) {
		header := t.data[page*pageSize:][:pageSize]
		if other := u64(header[64:]); wholeHeader(header) && other+1 != tx && other != tx && other != tx+1 {
			return damagedPage(page, "is an older header than it can be")
		}
	}
	return nil
}

// headerOf returns the whole header (see checkHeader) that a transaction wrote, or nil.
func headerOf(data []byte, tx uint64) []byte {
	for page := range 2 {
		if header := data[page*pageSize:][:pageSize]; u64(header[64:]) == tx && wholeHeader(header) {
			return header
		}
	}
	return nil
}

func wholeHeader(header []byte) bool {
	sum := fnv.New64a()
	sum.Write(header[16:72])
	return u64(header[72:]) == sum.Sum64()
}

// headersWhole reports whether both headers are whole. If one is not, the transaction
// of the other may not be the last.
func (t *pageTree) headersWhole() bool {
	return wholeHeader(t.data) && wholeHeader(t.data[pageSize:])
}

func (t *pageTree) pages() uint64 { return uint64(len(t.data)) / pageSize }

// openFree reads the list of free pages.
func (t *pageTree) openFree(id uint64) error {
	p, err := t.raw(id)
	if err != nil {
		return err
	}
	n, list := uint64(p.n), p.b[pageHeader:]
	if n == manyFree {
		n, list = u64(list), list[8:]
	}
	if u64(p.b) != id || u16(p.b[8:]) != freeKind || n > uint64(len(list)/8) {
		return damagedPage(id, "is no list of free pages")
	}
	t.free = list[:8*n]
	t.shell = append(t.shell, p.span())
	last := uint64(1)
	for i := range int(n) {
		free := u64(t.free[8*i:])
		if free <= last || free >= t.pages() {
			return damagedPage(id, "is no list of free pages")
		}
		last = free
	}
	return nil
}

func (t *pageTree) isFree(id uint64) bool {
	_, found := sort.Find(len(t.free)/8, func(i int) int { return cmp.Compare(id, u64(t.free[8*i:])) })
	return found
}

// openRoot finds the bucket in the page of the buckets. There are no buckets but ours.
func (t *pageTree) openRoot(id uint64, name string) error {
	p, err := t.raw(id)
	if err != nil {
		return err
	}
	if u64(p.b) != id || t.isFree(id) || p.branch || p.layout(1, pageSize) != nil {
		return damagedPage(id, "is not that of the buckets")
	}
	t.shell = append(t.shell, p.span())
	names := []string{}
	for i := range p.n {
		names = append(names, string(p.key(i)))
	}
	if !slices.Equal(names, []string{journalBucket, dataBucket}) {
		if slices.Contains(names, dataBucket) {
			return damagedPage(id, "has other buckets")
		}
		return ErrForeign
	}
	for i, each := range names {
		value := p.value(i)
		if len(value) < bucketHeader {
			return damagedPage(id, "is not that of the buckets")
		}
		root, inline := u64(value), value[bucketHeader:]
		var page rawPage
		switch {
		case root != 0 && len(inline) == 0:
			page, err = t.page(root)
		case root == 0 && len(inline) >= pageHeader:
			page = newRawPage(inline)
			if err = page.layout(0, 1); err == nil && page.branch {
				err = ErrDamaged
			}
			page.clean = err == nil && page.sealed()
		default:
			err = damagedPage(id, "is not that of the buckets")
		}
		if err != nil {
			return err
		}
		if each == journalBucket {
			if t.state, err = stateOn(&page); err != nil {
				return err
			}
		}
		if each == name {
			t.root = page
		} else if root != 0 {
			t.shell = append(t.shell, page.span())
		}
	}
	return nil
}

// stateOn reads the journalState from page, which holds journalBucket.
func stateOn(page *rawPage) (s journalState, err error) {
	key := []byte("s")
	i, found := page.search(key)
	if !found {
		return s, damagedPage(page.id, "does not say of which journal the file is")
	}
	value, err := Unseal(key, page.value(i))
	if err != nil {
		return s, err
	}
	return decodeJournalState(value)
}

// raw returns a page without validating it.
func (t *pageTree) raw(id uint64) (rawPage, error) {
	if id < 2 || id >= t.pages() {
		return rawPage{}, damagedPage(id, "is referred to and cannot be")
	}
	b, err := t.bytes(id, 1)
	if err != nil {
		return rawPage{}, err
	}
	if further := uint64(u32(b[12:])); further > 0 {
		list := u16(b[8:]) == freeKind
		switch {
		case further >= t.pages()-id:
			return rawPage{}, damagedPage(id, "is longer than the file")
		case !list && further > mostFurther(b): // reading it would take that much memory
			return rawPage{}, damagedPage(id, "is longer than what it holds")
		case list && t.own: // damage: the list of free pages is only read through the map
		default:
			if b, err = t.bytes(id, further+1); err != nil {
				return rawPage{}, err
			}
		}
	}
	p := newRawPage(b)
	p.id = id
	return p, nil
}

// mostFurther returns how many further pages a page of a bucket can have, by its first:
// they hold the last entry. If the table does not have that entry on the first page,
// the entry is at most as long as any value.
func mostFurther(first []byte) uint64 {
	last := pageHeader + (int(u16(first[10:]))-1)*pageEntry
	if last < pageHeader || last+pageEntry > pageSize {
		return (ordered.MaxValue + pageSize) / pageSize
	}
	entry := first[last:]
	if u16(first[8:]) == branchKind {
		return (uint64(last) + uint64(u32(entry)) + uint64(u32(entry[4:]))) / pageSize
	}
	return (uint64(last) + uint64(u32(entry[4:])) + uint64(u32(entry[8:])) + uint64(u32(entry[12:]))) / pageSize
}

// bytes returns n pages of the file.
func (t *pageTree) bytes(id, n uint64) ([]byte, error) {
	from, to := id*pageSize, (id+n)*pageSize
	if !t.own {
		return t.data[from:to:to], nil
	}
	b := make([]byte, to-from)
	if _, err := t.file.ReadAt(b, int64(from)); err != nil {
		return nil, &DamageError{Page: int64(id), Table: -1, Err: fmt.Errorf("%w: page %d: %w", ErrDamaged, id, err)}
	}
	return b, nil
}

// apart returns a tree of the same pages that reads them into memory of their own each
// time, not through the map of the file. So a large file that is read once does not
// stay in memory. Copying a page costs less than mapping it anew.
func (t *pageTree) apart() *pageTree {
	c := *t
	c.own = t.file != nil
	return &c
}

// page returns a page of the bucket. It validates a branch, but only the place of a leaf.
func (t *pageTree) page(id uint64) (rawPage, error) {
	p, err := t.raw(id)
	if err != nil {
		return p, err
	}
	if t.checked.has(id) {
		p.clean = true
		return p, nil
	}
	if err := t.checkPlace(&p); err != nil {
		return rawPage{}, err
	}
	if p.branch {
		err = t.believe(&p)
	}
	return p, err
}

// believe validates a page unless that was done before. It returns an error if the page
// is not clean: then nothing can be concluded from what it has or lacks. A branch is
// validated when it is read, a leaf only when it lacks a key, since an entry that is
// found has its own checksum.
func (t *pageTree) believe(p *rawPage) error {
	if p.clean || t.checked.has(p.id) {
		p.clean = true
		return nil
	}
	if p.id != 0 { // else it lies in its parent's page, and was validated there
		if err := t.check(p); err != nil {
			return err
		}
	}
	if !p.clean {
		return damagedValue(p.key(0))
	}
	t.checked.add(p.id)
	return nil
}

// unseal returns the value of an entry of a page.
func (t *pageTree) unseal(p *rawPage, key, stored []byte) ([]byte, error) {
	if t.proven && p.clean {
		return stored[checksumSize:len(stored):len(stored)], nil
	}
	return Unseal(key, stored)
}

// checkPlace returns an error if a page is not the one that is referred to, or is free.
func (t *pageTree) checkPlace(p *rawPage) error {
	if u64(p.b) != p.id {
		return damagedPage(p.id, "is another one")
	}
	if t.isFree(p.id) {
		return damagedPage(p.id, "is in use and free")
	}
	return nil
}

// check validates a page that may not have been validated before.
func (t *pageTree) check(p *rawPage) error {
	id := p.id
	if err := t.checkPlace(p); err != nil {
		return err
	}
	if p.layout(0, pageSize) != nil {
		return damagedPage(id, "contradicts itself")
	}
	p.clean = p.sealed()
	if p.branch && !p.clean {
		return damagedPage(id, "is not in order")
	}
	return nil
}

// child returns the page that an entry of a branch leads to, after checking its first
// key.
func (t *pageTree) child(p *rawPage, i int) (rawPage, error) {
	id := u64(p.b[pageHeader+pageEntry*i+8:])
	c, err := t.page(id)
	if err == nil && (c.n == 0 || !bytes.Equal(c.key(0), p.key(i))) {
		err = damagedPage(id, "does not begin as it should")
	}
	return c, err
}

// A pageFinger is where a key was looked up last. Keys looked up one after the other
// tend to lie together, or even to follow one another. The zero pageFinger is nowhere.
type pageFinger struct {
	branch, leaf rawPage
	next         int // entry of leaf
}

// get returns what is stored under key. It descends from the root unless the finger
// shows where key belongs.
func (t *pageTree) get(key []byte, at *pageFinger) (stored []byte, ok bool, err error) {
	if i := at.next; i < at.leaf.n && bytes.Equal(at.leaf.key(i), key) {
		at.next++
		return at.leaf.value(i), true, nil
	}
	var above rawPage // the lowest branch with an entry after key's
	var after int     // that entry
	if !at.leaf.covers(key) {
		p := t.root
		if at.branch.covers(key) {
			p = at.branch
		}
		for depth := 0; p.branch; depth++ {
			at.branch = p
			i := p.way(key)
			if i+1 < p.n {
				above, after = p, i+1
			}
			if p, err = t.child(&p, i); err != nil {
				return nil, false, err
			}
			if depth > maxLevels {
				return nil, false, ErrDamaged
			}
		}
		at.leaf = p
	}
	i, found := at.leaf.search(key)
	if at.next = i; found {
		at.next++
		return at.leaf.value(i), true, nil
	}
	if err = t.believe(&at.leaf); err == nil && i == at.leaf.n && above.n > 0 {
		_, err = t.child(&above, after)
	}
	return nil, false, err
}
