package disk

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"sello/internal/disk/disktest"
	"sello/internal/ordered"
	"sello/internal/ordered/orderedtest"
)

// bboltRelease is the release of bbolt that this package was written for, where it
// reaches behind bbolt's back (see doc.go).
const bboltRelease = "v1.5.0"

const bboltReview = `This package was written for bbolt %s, and reaches into it. Linked is
	%s
Review what the package does behind bbolt's back (doc.go) against that code:

	pages.go     the form of pages, headers and the list of free pages; DB.Info
	mapping.go   the field DB.datasz; when bbolt maps anew, and how far its map grows
	freelist.go  the field DB.freelist.shared.allocs, and what is lost when it is emptied
	errors.go    commitError: the text of the error where the file cannot be lengthened

Then run this package's tests with -histories 50, and change bboltRelease in bbolt_test.go.`

// bboltFault says what is to be done where bbolt's db.go was compiled from a file that is
// not of the release that this package was written for.
func bboltFault(file string) string {
	if strings.HasSuffix(file, "go.etcd.io/bbolt@"+bboltRelease+"/db.go") {
		return ""
	}
	return fmt.Sprintf(bboltReview, bboltRelease, file)
}

// TestBboltRelease fails when another bbolt is linked than this package was written for. A
// test binary does not list its modules, but it says which files it was compiled from.
func TestBboltRelease(t *testing.T) {
	t.Parallel()
	open := reflect.ValueOf(bolt.Open).Pointer()
	file, _ := runtime.FuncForPC(open).FileLine(open)
	if fault := bboltFault(file); fault != "" {
		t.Error(fault)
	}
	for _, file := range []string{
		"/go/pkg/mod/go.etcd.io/bbolt@v1.5.1/db.go",
		"/go/pkg/mod/go.etcd.io/bbolt@v1.5.0-rc.1/db.go",
		"/go/pkg/mod/github.com/another/bbolt@" + bboltRelease + "/db.go",
		"/src/bbolt/db.go",
		"",
	} {
		if bboltFault(file) == "" {
			t.Errorf("%s is not noticed", file)
		}
	}
}

// A bboltShape is a file of one shape, which bbolt makes.
type bboltShape struct {
	name string // of the shape, as shapesOf says it
	make func(f *bboltFile)
}

// filled is a file whose bucket has n entries with keys and values of these lengths.
func filled(n, key, value int) func(f *bboltFile) {
	return func(f *bboltFile) {
		f.update(func(b *bolt.Bucket) {
			for i := range n {
				f.put(b, fmt.Appendf(bytes.Repeat([]byte("k"), key-4), "%04d", i), value)
			}
		})
	}
}

// Lengths of a key and a value with which so many entries, of a leaf with nothing else or
// of a branch, end where a page does.
const (
	halfKey   = 100
	fullValue = pageSize - pageHeader - pageEntry - halfKey - checksumSize
	fullPair  = (2*pageSize-pageHeader)/2 - pageEntry - halfKey - checksumSize
	fullKey   = (pageSize-pageHeader)/4 - pageEntry
	longKey   = ordered.MaxKey - 1 // so that one byte more is a key too
)

var bboltShapes = []bboltShape{
	{"no entry", func(f *bboltFile) { f.update(func(*bolt.Bucket) {}) }},
	{"one entry", filled(1, 10, 0)},
	{"in its parent's page", filled(10, 10, 10)},
	{"1 levels", filled(30, 10, 50)},
	{"2 levels", filled(300, 10, 50)},
	{"3 levels", filled(3000, 100, 20)},
	{"8 levels", filled(700, longKey, 0)},
	{"full leaf", filled(1, halfKey, fullValue)},
	{"full leaf of several pages", filled(2, halfKey, fullPair)},
	{"full branch", filled(10, fullKey, 3000)},
	{"leaf of several pages", filled(1, 10, 20_000)},
	{"branch of several pages", filled(10, longKey, 3000)},
	{"the longest value", filled(1, longKey, ordered.MaxValue)},
	{"list of free pages on several pages", func(f *bboltFile) {
		filled(1, 10, 3<<20)(f)
		f.update(func(b *bolt.Bucket) { f.deleteFrom(b, nil, 1) })
	}},
	{"list of free pages with a long count", (*bboltFile).manyFree},
	{"journal's bucket on a page", func(f *bboltFile) { f.form = formPaged; filled(10, 10, 10)(f) }},
}

// TestBboltShapes: our reader accepts each shape of a file that bbolt makes and accepts,
// and finds in it what bbolt finds.
func TestBboltShapes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short")
	}
	for _, shape := range bboltShapes {
		for _, freelist := range []bolt.FreelistType{bolt.FreelistArrayType, bolt.FreelistMapType}[:smaller(2, 1)] {
			f := newBboltFile(t, rand.New(rand.NewPCG(1, 0)))
			f.open(bolt.Options{FreelistType: freelist})
			shape.make(f)
			f.check()
			if f.seen[shape.name] == 0 {
				t.Errorf("the file has not the shape %q, but %v", shape.name, f.seen)
			}
			f.close()
			f.checkClosed()
		}
	}
}

// TestBboltHistories does the same with files that bbolt has changed many times, at random:
// also while older transactions are being read, and through closing, copying and compacting.
func TestBboltHistories(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	var mu sync.Mutex // guards seen
	t.Cleanup(func() {
		t.Log(seen)
		for _, shape := range []string{"no entry", "in its parent's page", "4 levels", "leaf of several pages", "branch of several pages",
			"list of free pages on several pages", "an older transaction", "copied", "compacted", "opened again"} {
			if seen[shape] == 0 && orderedtest.Long() && *replayHistory == 0 {
				t.Errorf("no file had the shape %q", shape)
			}
		}
	})
	histories(t, 20, func(t *testing.T, rng *rand.Rand) {
		f := newBboltFile(t, rng)
		f.form = bboltForm(rng.IntN(int(formCount)))
		f.keys = rng.IntN(keyKinds)
		f.open(f.anyOptions())
		for range 20 {
			f.change()
			if rng.IntN(2) == 0 {
				f.check()
			}
			if rng.IntN(5) == 0 {
				f.reopen()
			}
		}
		f.close()
		f.checkClosed()
		mu.Lock()
		defer mu.Unlock()
		for shape, n := range f.seen {
			seen[shape] += n
		}
	})
}

// TestBboltControl: the comparison notices what our reader must not accept, a flipped bit, and
// what it must not miss, a change of one entry.
func TestBboltControl(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(*damageSeed, 0))
	f := newBboltFile(t, rng)
	f.open(bolt.Options{})
	filled(400, 100, 60)(f)
	f.update(func(b *bolt.Bucket) { f.deleteFrom(b, nil, 100) })
	f.read(func(tx *bolt.Tx, tree *pageTree) {
		bucket := tx.Bucket([]byte(dataBucket))
		if err := f.differs(tree, bucket); err != nil {
			t.Fatal(err)
		}
		var pages []rawPage
		f.must(tree.eachPage(tree.root, 1, func(p rawPage, _ int) { pages = append(pages, p) }))
		for range 60 {
			p := pages[rng.IntN(len(pages))]
			at, bit := rng.IntN(p.end()), rng.IntN(8) // behind the last entry nothing is read
			data := bytes.Clone(tree.data)
			data[int(p.id)*pageSize+at] ^= 1 << bit
			damaged, err := newTree(data, uint64(tx.ID()), dataBucket, nil)
			if err == nil {
				err = f.differs(damaged, bucket)
			}
			if err == nil {
				t.Errorf("-damage.seed=%d: bit %d of byte %d of page %d is flipped, and nothing is noticed", *damageSeed, bit, at, p.id)
			}
		}
	})

	for _, test := range []struct {
		name   string
		change func(b *bolt.Bucket)
	}{
		{"an entry more", func(b *bolt.Bucket) { f.put(b, []byte("a"), 1) }},
		{"an entry less", func(b *bolt.Bucket) { f.deleteFrom(b, []byte("k"), 1) }},
		{"another value", func(b *bolt.Bucket) { key, _ := b.Cursor().Last(); f.put(b, bytes.Clone(key), 61) }},
		{"a longer value", func(b *bolt.Bucket) { key, _ := b.Cursor().First(); f.put(b, bytes.Clone(key), 9000) }},
	} {
		f.read(func(_ *bolt.Tx, before *pageTree) {
			f.update(test.change)
			f.read(func(after *bolt.Tx, _ *pageTree) {
				if f.differsInReading(before, after.Bucket([]byte(dataBucket))) == nil {
					t.Errorf("%s is not noticed", test.name)
				}
			})
		})
	}
	f.close()
}

// TestBboltForeign: files that bbolt makes and accepts, but that are not of our kind, are
// refused.
func TestBboltForeign(t *testing.T) {
	t.Parallel()
	update := func(f *bboltFile, change func(tx *bolt.Tx) error) {
		f.must(f.db.Update(func(tx *bolt.Tx) error { return errors.Join(change(tx), f.say(tx)) }))
	}
	for _, test := range []struct {
		name    string
		options bolt.Options
		change  func(f *bboltFile)
		want    error
	}{
		{"pages of 1024 bytes", bolt.Options{PageSize: 1024}, nil, ErrForeign},
		{"pages of 2048 bytes", bolt.Options{PageSize: 2048}, nil, ErrForeign},
		{"pages of 8192 bytes", bolt.Options{PageSize: 8192}, nil, ErrForeign},
		{"pages of 16384 bytes", bolt.Options{PageSize: 16384}, nil, ErrForeign},
		{"pages of 65536 bytes", bolt.Options{PageSize: 65536}, nil, ErrForeign},
		{"no list of free pages", bolt.Options{NoFreelistSync: true}, nil, ErrForeign},
		{"another bucket", bolt.Options{}, func(f *bboltFile) {
			update(f, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("other")); return err })
		}, ErrDamaged},
		{"a bucket in the bucket", bolt.Options{}, func(f *bboltFile) {
			update(f, func(tx *bolt.Tx) error {
				_, err := tx.Bucket([]byte(dataBucket)).CreateBucket([]byte("nested"))
				return err
			})
		}, ErrDamaged},
		{"another transaction than the file says", bolt.Options{}, func(f *bboltFile) {
			f.must(f.db.Update(func(*bolt.Tx) error { return nil }))
		}, ErrDamaged},
		{"a header older than the one before", bolt.Options{}, func(f *bboltFile) {
			for range 2 { // after one of these transactions a copy's next header does not replace its older one
				f.goOnWithCopy()
				f.update(func(*bolt.Bucket) {})
				if !f.headersNeighbours() {
					break
				}
			}
		}, ErrDamaged},
	} {
		f := newBboltFile(t, rand.New(rand.NewPCG(1, 0)))
		f.open(test.options)
		filled(200, 10, 50)(f)
		if test.change != nil {
			test.change(f)
		}
		f.close()
		if err := f.checkOpens(); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

// newBboltFile returns a file that is not there yet.
func newBboltFile(t *testing.T, rng *rand.Rand) *bboltFile {
	return &bboltFile{t: t, rng: rng, path: filepath.Join(disktest.MemoryDir(t), "store"), seen: map[string]int{}}
}
