package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	bolt "go.etcd.io/bbolt"

	"sello/internal/disk/disktest"
	"sello/internal/ordered"
)

// A bboltFile is a file that bbolt alone writes. What our reader finds in it is compared
// with what bbolt finds.
type bboltFile struct {
	t    *testing.T
	rng  *rand.Rand
	path string
	form bboltForm
	keys int       // kind of its keys
	id   journalID // what it says which file it is

	db      *bolt.DB
	file    *os.File // the same, for reading apart
	checked pageSet  // as a File keeps it
	held    []heldRead
	last    int            // number of the last ascending key
	seen    map[string]int // shapes of the file
}

// A heldRead is a transaction of bbolt that is being read, and our tree of it.
type heldRead struct {
	tx   *bolt.Tx
	tree *pageTree
}

// A bboltForm is what a file says of itself in the journal's bucket.
type bboltForm int

const (
	formToday bboltForm = iota
	formPaged           // as today, and much more, so that the bucket has a page of its own
	formCount
)

// Kinds of keys.
const (
	shortKeys = iota
	ascendingKeys
	mixedKeys // up to the longest
	longKeys
	keyKinds
)

func (f *bboltFile) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// open opens the file. The map has room for all that the tests write: bbolt waits with
// a larger one until nobody reads.
func (f *bboltFile) open(options bolt.Options) {
	f.t.Helper()
	options.NoSync, options.NoGrowSync, options.InitialMmapSize = true, true, 64<<20
	if options.PageSize == 0 {
		options.PageSize = pageSize
	}
	_, err := os.Stat(f.path)
	old := err == nil && !f.synced()
	f.db, err = bolt.Open(f.path, 0o600, &options)
	f.must(err)
	f.file, err = os.Open(f.path)
	f.must(err)
	f.checked = nil
	if old {
		f.update(func(*bolt.Bucket) {}) // since bbolt has written the list in a transaction of its own
	}
}

func (f *bboltFile) anyOptions() bolt.Options {
	return bolt.Options{
		FreelistType:   []bolt.FreelistType{bolt.FreelistArrayType, bolt.FreelistMapType}[f.rng.IntN(2)],
		NoFreelistSync: f.rng.IntN(6) == 0,
	}
}

func (f *bboltFile) close() {
	f.t.Helper()
	for _, h := range f.held {
		f.must(h.tx.Rollback())
	}
	f.held = nil
	f.must(errors.Join(f.file.Close(), f.db.Close()))
}

// update changes the bucket in a transaction.
func (f *bboltFile) update(change func(b *bolt.Bucket)) {
	f.t.Helper()
	f.must(f.db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(dataBucket))
		if err != nil {
			return err
		}
		b.FillPercent = float64(1+f.rng.IntN(10)) / 10
		change(b)
		return f.say(tx)
	}))
}

// say has the file say of itself what its form is, as each transaction must.
func (f *bboltFile) say(tx *bolt.Tx) error {
	if f.form == formPaged {
		if err := keep(tx, "x", make([]byte, 3000)); err != nil {
			return err
		}
	}
	return errors.Join(setInventory(tx, inventoryOf(tx.Bucket([]byte(dataBucket)))), journalState{journalID: f.id}.put(tx))
}

// inventoryOf is the inventory of a bucket, by bbolt's reading.
func inventoryOf(b *bolt.Bucket) *inventory {
	v := new(inventory)
	c := b.Cursor()
	for key, stored := c.First(); key != nil; key, stored = c.Next() {
		if stored != nil { // else it is a bucket
			v.add(stored)
		}
	}
	v.setEnds(ends(b))
	return v
}

// put stores a value of a length under key.
func (f *bboltFile) put(b *bolt.Bucket, key []byte, length int) {
	f.t.Helper()
	f.must(b.Put(key, Seal(key, bytes.Repeat([]byte{byte(f.rng.Uint32())}, length))))
}

// deleteFrom deletes up to n entries from a key on.
func (f *bboltFile) deleteFrom(b *bolt.Bucket, from []byte, n int) {
	f.t.Helper()
	var keys [][]byte
	c := b.Cursor()
	for key, _ := c.Seek(from); key != nil && len(keys) < n; key, _ = c.Next() {
		keys = append(keys, bytes.Clone(key))
	}
	for _, key := range keys {
		f.must(b.Delete(key))
	}
}

// key chooses a key.
func (f *bboltFile) key() []byte {
	long := 0
	switch f.keys {
	case ascendingKeys:
		if f.last++; f.rng.IntN(4) > 0 {
			return fmt.Appendf(nil, "m%08d", f.last)
		}
		return fmt.Appendf(nil, "m%08d", f.rng.IntN(f.last))
	case mixedKeys:
		long = []int{0, 60, 500, longKey - 4}[f.rng.IntN(4)]
	case longKeys:
		long = longKey - 4
	}
	return fmt.Appendf(bytes.Repeat([]byte{byte('a' + f.rng.IntN(3))}, long), "%04x", f.rng.IntN(4000))
}

// length chooses the length of a value.
func (f *bboltFile) length() int {
	switch f.rng.IntN(40) {
	case 0:
		return 0
	case 1:
		return f.rng.IntN(20_000)
	case 2:
		return pageSize - pageHeader - f.rng.IntN(200)
	case 3: // about as long as what bbolt keeps in the parent's page
		return pageSize/4 - f.rng.IntN(100)
	}
	return f.rng.IntN(100)
}

var errNotThisTime = errors.New("not this time")

// change changes the file at random in one transaction, which may be taken back.
func (f *bboltFile) change() {
	f.t.Helper()
	if f.rng.IntN(10) == 0 {
		err := f.db.Update(func(tx *bolt.Tx) error {
			if b := tx.Bucket([]byte(dataBucket)); b != nil {
				f.deleteFrom(b, f.key(), 50)
				f.put(b, f.key(), f.length())
			}
			return errNotThisTime
		})
		if err != errNotThisTime {
			f.t.Fatal(err)
		}
	}
	if f.rng.IntN(30) == 0 {
		f.must(f.db.Update(func(tx *bolt.Tx) error {
			if tx.Bucket([]byte(dataBucket)) == nil {
				return nil
			}
			return tx.DeleteBucket([]byte(dataBucket)) // of this transaction nobody reads
		}))
	}
	f.update(func(b *bolt.Bucket) {
		if f.rng.IntN(12) == 0 {
			f.deleteFrom(b, nil, math.MaxInt)
		}
		if f.rng.IntN(5) == 0 {
			f.must(b.SetSequence(f.rng.Uint64()))
		}
		for range 1 << f.rng.IntN(10) {
			f.changeEntry(b)
		}
		if f.rng.IntN(20) == 0 {
			f.put(b, f.key(), 3<<20)
		}
	})
}

func (f *bboltFile) changeEntry(b *bolt.Bucket) {
	f.t.Helper()
	switch f.rng.IntN(20) {
	case 0:
		f.deleteFrom(b, f.key(), f.rng.IntN(60))
	case 1, 2, 3, 4, 5:
		f.deleteFrom(b, f.key(), 1)
	case 6:
		if key, _ := b.Cursor().Seek(f.key()); key != nil {
			f.put(b, bytes.Clone(key), f.length())
		}
	default:
		f.put(b, f.key(), f.length())
	}
}

// reopen closes the file, sometimes goes on with a copy of it, and opens it again.
func (f *bboltFile) reopen() {
	f.t.Helper()
	switch f.rng.IntN(4) {
	case 0:
		f.goOnWithCopy()
		for range 2 { // as Backup does
			f.update(func(*bolt.Bucket) {})
		}
		f.seen["copied"]++
	case 1:
		other := f.path + "2"
		to, err := bolt.Open(other, 0o600, &bolt.Options{PageSize: pageSize, NoSync: true})
		f.must(err)
		f.must(bolt.Compact(to, f.db, int64(f.rng.IntN(100_000))))
		f.id.file[0]++ // it is another file, with fewer transactions
		f.must(to.Update(func(tx *bolt.Tx) error { return f.say(tx) }))
		f.must(to.Close())
		f.close()
		f.must(os.Rename(other, f.path))
		f.open(bolt.Options{})
		f.seen["compacted"]++
	}
	f.close()
	f.checkClosed()
	f.open(f.anyOptions())
	f.seen["opened again"]++
}

// goOnWithCopy puts a copy that bbolt makes in the file's place.
func (f *bboltFile) goOnWithCopy() {
	f.t.Helper()
	f.must(f.db.View(func(tx *bolt.Tx) error { return tx.CopyFile(f.path+"2", 0o600) }))
	f.close()
	f.must(os.Rename(f.path+"2", f.path))
	f.open(bolt.Options{})
}

// headers are both headers of the file.
func (f *bboltFile) headers() []byte {
	f.t.Helper()
	file, err := os.Open(f.path)
	f.must(err)
	defer file.Close()
	b := make([]byte, 2*pageSize)
	_, err = file.ReadAt(b, 0)
	f.must(err)
	return b
}

// synced reports whether the list of free pages is in the file.
func (f *bboltFile) synced() bool {
	f.t.Helper()
	return u64(disktest.NewerHeader(f.headers())[48:]) != math.MaxUint64
}

// headersNeighbours reports whether the file's headers are of two transactions in a row, as
// they are until bbolt writes to a copy that it has made.
func (f *bboltFile) headersNeighbours() bool {
	f.t.Helper()
	b := f.headers()
	return u64(disktest.NewerHeader(b)[64:]) == u64(disktest.OlderHeader(b)[64:])+1
}

// manyFree gives the file more free pages than the header of their list can count. bbolt
// finds them when it opens a file without such a list that is said to be long.
func (f *bboltFile) manyFree() {
	f.t.Helper()
	const pages = manyFree + 5000
	f.close()
	f.open(bolt.Options{NoFreelistSync: true})
	filled(300, 10, 50)(f)
	filled(300, 10, 51)(f) // so that both headers are without it
	f.close()
	file, err := os.OpenFile(f.path, os.O_RDWR, 0)
	f.must(err)
	for page := range int64(2) {
		var header [80]byte
		_, err := file.ReadAt(header[:], page*pageSize)
		f.must(err)
		binary.NativeEndian.PutUint64(header[56:], pages)
		binary.NativeEndian.PutUint64(header[72:], disktest.HeaderSum(header[:]))
		_, err = file.WriteAt(header[:], page*pageSize)
		f.must(err)
	}
	f.must(errors.Join(file.Truncate(pages*pageSize), file.Close()))
	f.open(bolt.Options{})
	filled(300, 10, 52)(f)
}

// read opens our tree of what the file holds. Where the list of free pages is not in the file
// there is none.
func (f *bboltFile) read(fn func(tx *bolt.Tx, tree *pageTree)) {
	f.t.Helper()
	tx, err := f.db.Begin(false)
	f.must(err)
	defer tx.Rollback()
	for err := range tx.Check() {
		f.t.Fatalf("bbolt does not accept the file: %v", err)
	}
	f.checked = f.checked.with(uint64(tx.Size()) / pageSize)
	tree, err := openTree(f.db, tx, dataBucket, f.checked)
	if !f.synced() {
		if !errors.Is(err, ErrDamaged) {
			f.t.Fatalf("without a list of free pages: %v", err)
		}
		return
	}
	f.must(err)
	tree.file = f.file
	fn(tx, tree)
}

// check compares what the file holds, and what it held for the older transactions that are
// still being read. Then it may leave one more of these.
func (f *bboltFile) check() {
	f.t.Helper()
	for i := len(f.held) - 1; i >= 0; i-- {
		f.must(f.differs(f.held[i].tree, f.held[i].tx.Bucket([]byte(dataBucket))))
		f.seen["an older transaction"]++
		if f.rng.IntN(3) == 0 {
			f.must(f.held[i].tx.Rollback())
			f.held = slices.Delete(f.held, i, i+1)
		}
	}
	f.read(func(tx *bolt.Tx, tree *pageTree) {
		f.must(f.differs(tree, tx.Bucket([]byte(dataBucket))))
		newest := new(atomic.Uint64)
		newest.Store(uint64(tx.ID()))
		f.must(tree.apart().checkFree(f.t.Context(), newest))
		f.shapesOf(tree)
	})
	if f.synced() && len(f.held) < 3 && f.rng.IntN(2) == 0 {
		tx, err := f.db.Begin(false)
		f.must(err)
		f.checked = f.checked.with(uint64(tx.Size()) / pageSize)
		tree, err := openTree(f.db, tx, dataBucket, f.checked)
		f.must(err)
		tree.file = f.file
		f.held = append(f.held, heldRead{tx, tree})
	}
}

// checkClosed opens the file as a File, and compares what that holds.
func (f *bboltFile) checkClosed() {
	f.t.Helper()
	switch err := f.checkOpens(); {
	case !f.synced() && !errors.Is(err, ErrForeign):
		f.t.Fatalf("without a list of free pages: %v", err)
	case f.synced() && err != nil:
		f.t.Fatal(err)
	}
}

// checkOpens returns an error if the file does not open, or not with what bbolt has just
// found in it.
func (f *bboltFile) checkOpens() error {
	f.t.Helper()
	db, err := bolt.Open(f.path, 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: true})
	f.must(err)
	var want []ordered.Entry
	f.must(db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			f.t.Fatalf("bbolt does not accept the file: %v", err)
		}
		for _, e := range entriesOf(tx.Bucket([]byte(dataBucket))) {
			want = append(want, ordered.Entry{Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value)})
		}
		return nil
	}))
	f.must(db.Close())
	s, err := openStore(f.path, Options{MustExist: true, NoSync: true, ShortMap: true})
	if err != nil {
		return err
	}
	defer s.Leave()
	return s.View(f.t.Context(), func(tx Tx) error {
		if _, err := tx.(readTx).Check(f.t.Context(), 2); err != nil {
			return err
		}
		return reads(f.rng, tx, want)
	})
}

// entriesOf are the entries of a bucket by bbolt's reading, without their checksums.
func entriesOf(b *bolt.Bucket) (list []ordered.Entry) {
	c := b.Cursor()
	for key, stored := c.First(); key != nil; key, stored = c.Next() {
		if len(stored) >= checksumSize {
			list = append(list, ordered.Entry{Key: key, Value: stored[checksumSize:]})
		}
	}
	return list
}

// differs returns an error if a tree is not accepted, or something else is found in it than
// bbolt finds in the same bucket.
func (f *bboltFile) differs(tree *pageTree, b *bolt.Bucket) error {
	want := inventoryOf(b)
	if err := want.holds(tree); err != nil {
		return err
	}
	checked, err := tree.checkAll(f.t.Context(), want, 2)
	if err != nil {
		return fmt.Errorf("bbolt accepts it: %w", err)
	}
	apart, err := tree.apart().checkAll(f.t.Context(), want, 1)
	if err != nil {
		return fmt.Errorf("bbolt accepts it, apart: %w", err)
	}
	return errors.Join(f.differsInReading(tree, b), f.differsInReading(checked, b), f.differsInReading(apart, b))
}

// differsInReading is differs without a check of the whole tree.
func (f *bboltFile) differsInReading(tree *pageTree, b *bolt.Bucket) error {
	tx := (&fileTx{pageTree: tree}).reader()
	if err := reads(f.rng, tx, entriesOf(b)); err != nil {
		return err
	}
	c := b.Cursor()
	for range 20 {
		key := f.key()
		value, ok, err := tx.Get(key)
		if stored := b.Get(key); err != nil || ok != (stored != nil) || ok && !bytes.Equal(value, stored[checksumSize:]) {
			return fmt.Errorf("Get(%q) = %q, %t, %v; bbolt has %q", key, value, ok, err, stored)
		}
		next, _ := c.Seek(key)
		var before []byte
		if next == nil {
			before, _ = c.Last()
		} else {
			before, _ = c.Prev()
		}
		for reverse, want := range map[bool][]byte{false: next, true: before} {
			lo, hi := key, []byte(nil)
			if reverse {
				lo, hi = nil, key
			}
			var got []byte
			for e, err := range tx.Scan(lo, hi, reverse) {
				if err != nil {
					return err
				}
				got = e.Key
				break
			}
			if !bytes.Equal(got, want) {
				return fmt.Errorf("Scan(%q, %q, %t) begins with %q, bbolt has %q", lo, hi, reverse, got, want)
			}
		}
	}
	return nil
}

// reads returns an error unless what tx holds are these entries: read forwards, backwards, in
// parts and one by one.
func reads(rng *rand.Rand, tx Tx, want []ordered.Entry) error {
	for _, reverse := range []bool{false, true} {
		left := slices.Clone(want)
		if reverse {
			slices.Reverse(left)
		}
		for e, err := range tx.Scan(nil, nil, reverse) {
			if err != nil {
				return err
			}
			if len(left) == 0 || !bytes.Equal(e.Key, left[0].Key) || !bytes.Equal(e.Value, left[0].Value) {
				return fmt.Errorf("a scan (reverse: %t) finds %q, with %d entries to come", reverse, e.Key, len(left))
			}
			left = left[1:]
		}
		if len(left) > 0 {
			return fmt.Errorf("a scan (reverse: %t) leaves out %q", reverse, left[0].Key)
		}
	}
	failed, err := (&leafyFile{want: want}).answers(rng, tx)
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d answers are errors", failed))
	}
	return err
}

// end is where the last entry of a page ends.
func (p *rawPage) end() int {
	if p.n == 0 {
		return pageHeader
	}
	at := pageHeader + pageEntry*(p.n-1)
	e := p.b[at:]
	if p.branch {
		return at + int(u32(e)) + int(u32(e[4:]))
	}
	return at + int(u32(e[4:])) + int(u32(e[8:])) + int(u32(e[12:]))
}

// shapesOf notes which shapes there are in a tree.
func (f *bboltFile) shapesOf(t *pageTree) {
	f.t.Helper()
	note := func(name string, is bool) {
		if is {
			f.seen[name]++
		}
	}
	inline := t.root.id == 0
	note("no entry", t.root.n == 0)
	note("one entry", t.root.n == 1 && !t.root.branch)
	note("in its parent's page", inline && t.root.n > 1)
	note("journal's bucket on a page", f.form == formPaged && len(t.shell) == 3)
	note("list of free pages on several pages", t.shell[0].n > 1)
	note("list of free pages with a long count", len(t.free)/8 >= manyFree)
	deepest := 0
	f.must(t.eachPage(t.root, 1, func(p rawPage, level int) {
		deepest = max(deepest, level)
		kind := "leaf"
		if p.branch {
			kind = "branch"
		}
		full := p.id != 0 && p.end() == len(p.b)
		note("full "+kind, full)
		note("full "+kind+" of several pages", full && len(p.b) > pageSize)
		note(kind+" of several pages", len(p.b) > pageSize)
		for i := range p.n {
			note("the longest value", !p.branch && len(p.value(i)) == checksumSize+ordered.MaxValue)
		}
	}))
	note(fmt.Sprint(deepest, " levels"), !inline)
}

// eachPage calls do with a page of the tree and all those below it.
func (t *pageTree) eachPage(p rawPage, level int, do func(p rawPage, level int)) error {
	do(p, level)
	for i := 0; p.branch && i < p.n; i++ {
		c, err := t.child(&p, i)
		if err == nil {
			err = t.eachPage(c, level+1, do)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
