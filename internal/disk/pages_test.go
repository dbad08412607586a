package disk

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"sello/internal/disk/disktest"
	"sello/internal/ordered"
)

// A leafyFile is a file of many pages, small enough to be damaged often, and its
// content.
type leafyFile struct {
	data []byte
	want []ordered.Entry
}

// newLeafyFile makes a file with several levels, free pages, pages of their own for
// long values, and entries of one size side by side, which are the first to be mistaken
// for one another.
func newLeafyFile(t testing.TB, rng *rand.Rand) *leafyFile {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store")
	s, err := openStore(path, Options{NoSync: true, MemSize: 50_000, Dense: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 6 {
		err := s.Update(t.Context(), func(tx Tx) error {
			for i := range 400 {
				k := fmt.Appendf(nil, "m%031d", round*400+i)
				if err := tx.Put(k, bytes.Repeat([]byte{byte(round)}, 28)); err != nil {
					return err
				}
				k = fmt.Appendf(nil, "c%0300d", rng.IntN(900))
				switch n := rng.IntN(10); n {
				case 0:
					err = tx.Delete(k)
				case 1:
					err = tx.Put(k, make([]byte, rng.IntN(9000)))
				default:
					err = tx.Put(k, fmt.Append(nil, round, i))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	f := new(leafyFile)
	err = s.View(t.Context(), func(tx Tx) error {
		for e, err := range tx.Scan(nil, nil, false) {
			if err != nil {
				return err
			}
			f.want = append(f.want, ordered.Entry{Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value)})
		}
		return nil
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if f.data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	checkBolt(t, path)
	return f
}

// open opens the file as Open does.
func (f *leafyFile) open() (file *fileTx, err error) {
	defer catch(&err)
	tx := max(u64(f.data[64:]), u64(f.data[pageSize+64:]))
	if headerOf(f.data, tx) == nil {
		tx--
	}
	used := headerOf(f.data, tx)
	if used == nil {
		return nil, ErrDamaged
	}
	data := f.data[:u64(used[56:])*pageSize]
	kept, err := newTree(data, tx, journalBucket, nil)
	if err != nil {
		return nil, err
	}
	tree, err := newTree(data, tx, dataBucket, pageSet{}.with(uint64(len(data)/pageSize)))
	if err != nil {
		return nil, err
	}
	file = &fileTx{pageTree: tree}
	if file.inventory, err = kept.inventory(); err != nil {
		return nil, err
	}
	return file, file.inventory.holds(tree)
}

// reader reads from the file alone.
func (f *fileTx) reader() Tx { return readTx{&Snapshot{fileState: &fileState{file: f}}} }

// order returns an order in which to ask for n entries. It takes runs of neighbours in
// random order, each run forwards or backwards.
func order(rng *rand.Rand, n int) (list []int) {
	const together = 6
	for _, first := range rng.Perm((n + together - 1) / together) {
		run := make([]int, 0, together)
		for i := first * together; i < min((first+1)*together, n); i++ {
			run = append(run, i)
		}
		if rng.IntN(2) == 0 {
			slices.Reverse(run)
		}
		list = append(list, run...)
	}
	return list
}

// answers asks for every entry, in a random order, for keys between them and for
// ranges. It returns how many answers were errors, and the first that was wrong.
func (f *leafyFile) answers(rng *rand.Rand, tx Tx) (failed int, wrong error) {
	for _, i := range order(rng, len(f.want)) {
		want := f.want[i]
		got, ok, err := tx.Get(want.Key)
		switch {
		case err != nil:
			failed++
		case !ok || !bytes.Equal(got, want.Value):
			return failed, fmt.Errorf("Get(%q) = %q, %v, want %q", want.Key, got, ok, want.Value)
		}
		if rng.IntN(20) > 0 {
			continue
		}
		switch got, ok, err := tx.Get(append(bytes.Clone(want.Key), 0)); {
		case err != nil:
			failed++
		case ok:
			return failed, fmt.Errorf("Get(%q, 0) = %q", want.Key, got)
		}
		j := min(i+rng.IntN(60), len(f.want))
		var hi []byte
		if j < len(f.want) {
			hi = f.want[j].Key
		}
		list := slices.Clone(f.want[i:j])
		reverse := rng.IntN(2) == 0
		if reverse {
			slices.Reverse(list)
		}
		for e, err := range tx.Scan(want.Key, hi, reverse) {
			if err != nil {
				failed++
				list = nil
				break
			}
			if len(list) == 0 || !bytes.Equal(list[0].Key, e.Key) || !bytes.Equal(list[0].Value, e.Value) {
				return failed, fmt.Errorf("Scan(%q, %q, %v) yields %q", want.Key, hi, reverse, e.Key)
			}
			list = list[1:]
		}
		if len(list) > 0 {
			return failed, fmt.Errorf("Scan(%q, %q, %v) leaves out %q", want.Key, hi, reverse, list[0].Key)
		}
	}
	return failed, nil
}

// damage changes the file a little.
func (f *leafyFile) damage(rng *rand.Rand) string { return disktest.DamageFile(f.data, rng) }

// TestPagesDamaged damages a file in memory, thousands of times. Whatever is read from
// it is right or an error. If an answer is an error, a check of the whole file finds
// the damage.
func TestPagesDamaged(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short")
	}
	rng := rand.New(rand.NewPCG(*damageSeed, 0))
	f := newLeafyFile(t, rng)
	if file, err := f.open(); err != nil {
		t.Fatal(err)
	} else if failed, err := f.answers(rng, file.reader()); failed > 0 || err != nil {
		t.Fatalf("undamaged: %d errors, %v", failed, err)
	}
	n := cmp.Or(*damageN, smaller(60, 20))
	var refused, some, told, lost int
	for i := range n {
		rng := rand.New(rand.NewPCG(*damageSeed, uint64(i)+1))
		g := &leafyFile{bytes.Clone(f.data), f.want}
		said := g.damage(rng)
		file, err := g.open()
		if err != nil {
			refused++
			continue
		}
		failed, err := g.answers(rng, file.reader())
		if err != nil {
			t.Errorf("-damage.seed=%d, image %d: %s: %v", *damageSeed, i, said, err)
			lost++
		}
		_, complaint := file.checkAll(t.Context(), file.inventory, 2)
		file.file = bytes.NewReader(g.data)
		if _, alone := file.apart().checkAll(t.Context(), file.inventory, 1); fmt.Sprint(alone) != fmt.Sprint(complaint) {
			t.Errorf("-damage.seed=%d, image %d: %s: %v by two, and %v by one that reads pages apart", *damageSeed, i, said, complaint, alone)
		}
		switch {
		case complaint != nil:
			told++
		case failed > 0 || err != nil:
			t.Errorf("-damage.seed=%d, image %d: %s: %d errors, and a look at all of it finds nothing", *damageSeed, i, said, failed)
		}
		if failed > 0 {
			some++
		}
	}
	t.Logf("seed %d: of %d damaged files, %d did not open, %d gave errors, %d were told by a look at all, %d gave wrong answers",
		*damageSeed, n, refused, some, told, lost)
}

// TestPagesDamagedControl: with the same damage, bbolt's own reading loses entries.
func TestPagesDamagedControl(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short")
	}
	rng := rand.New(rand.NewPCG(*damageSeed, 0))
	f := newLeafyFile(t, rng)
	path := filepath.Join(t.TempDir(), "store")
	for i := range 300 {
		rng := rand.New(rand.NewPCG(*damageSeed, uint64(i)+1))
		g := &leafyFile{bytes.Clone(f.data), f.want}
		g.damage(rng)
		if err := os.WriteFile(path, g.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if g.trusting(t, rng, path) != nil {
			return // caught
		}
	}
	t.Error("no damage was seen")
}

// trusting asks bbolt alone for the answers.
func (f *leafyFile) trusting(t *testing.T, rng *rand.Rand, path string) (wrong error) {
	fault := func() (err error) {
		defer catch(&err)
		db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
		if err != nil {
			return err
		}
		defer db.Close()
		tx, err := db.Begin(false)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		b := tx.Bucket([]byte(dataBucket))
		if b == nil {
			return ErrForeign
		}
		_, wrong = f.answers(rng, trustingTx{b})
		return nil
	}()
	if fault != nil {
		return nil
	}
	return wrong
}

// A trustingTx reads as bbolt does, and checks only what it finds.
type trustingTx struct{ bucket *bolt.Bucket }

func (t trustingTx) Put(key, value []byte) error { return errReadOnly }
func (t trustingTx) Delete(key []byte) error     { return errReadOnly }

func (t trustingTx) Get(key []byte) (value []byte, ok bool, err error) {
	defer catch(&err)
	stored := t.bucket.Get(key)
	if stored == nil {
		return nil, false, nil
	}
	value, err = Unseal(key, stored)
	return value, err == nil, err
}

func (t trustingTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[ordered.Entry, error] {
	return func(yield func(ordered.Entry, error) bool) { yield(ordered.Entry{}, ErrDamaged) }
}

// TestPageSet: no page is forgotten when the set grows.
func TestPageSet(t *testing.T) {
	t.Parallel()
	s := pageSet{}.with(100)
	s.add(99)
	s.add(1 << 40) // beyond the set: ignored
	s = s.with(100_000)
	s.add(64)
	for id, want := range map[uint64]bool{99: true, 64: true, 0: false, 98: false, 1 << 40: false} {
		if s.has(id) != want {
			t.Errorf("%d: %v", id, s.has(id))
		}
	}
}

// TestInventoryTells: a check of the whole file reports an entry that is missing,
// though each page is as bbolt wrote it.
func TestInventoryTells(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	s := testStore(t, path, Options{})
	mustPut(t, s, "a", "1", "b", "2", "c", "3")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole := readFile(t, path)
	for _, change := range []func(*bolt.Bucket) error{
		func(b *bolt.Bucket) error { return b.Delete([]byte("b")) },
		func(b *bolt.Bucket) error { return b.Put([]byte("b"), Seal([]byte("b"), []byte("0"))) },
		func(b *bolt.Bucket) error { return b.Put([]byte("b2"), Seal([]byte("b2"), nil)) },
	} {
		db, err := bolt.Open(path, 0o600, nil)
		if err == nil {
			err = errors.Join(db.Update(func(tx *bolt.Tx) error {
				return errors.Join(change(tx.Bucket([]byte(dataBucket))), journalState{}.put(tx))
			}), db.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := openStore(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = s.View(t.Context(), func(tx Tx) error {
			_, err := tx.(readTx).Check(t.Context(), 2)
			return err
		})
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("got %v", err)
		}
		s.Close()
		writeFile(t, path, whole)
	}
}

// TestPagesChecked: the Snapshot that Check returns has the same entries, and finds
// each of them.
func TestPagesChecked(t *testing.T) {
	t.Parallel()
	s := testStore(t, filepath.Join(t.TempDir(), "store"), Options{MemSize: 1 << 14})
	for i := range 20 {
		if err := s.Update(t.Context(), func(tx Tx) error {
			for j := range 100 {
				if err := tx.Put(fmt.Appendf(nil, "%x", uint32(i*100+j)*2654435761), bytes.Repeat([]byte{byte(i)}, 50*i*(j%7))); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	err := s.View(t.Context(), func(tx Tx) error {
		checked, err := tx.(readTx).Check(t.Context(), 3)
		if err != nil {
			return err
		}
		n := 0
		for e, err := range tx.Scan(nil, nil, false) {
			if err != nil {
				return err
			}
			value, ok, err := checked.Get(e.Key)
			if !ok || err != nil || !bytes.Equal(value, e.Value) {
				t.Errorf("%s: %d bytes, %v, %v; want %d", e.Key, len(value), ok, err, len(e.Value))
			}
			n++
		}
		for _, err := range checked.Scan(nil, nil, true) {
			if n--; err != nil {
				return err
			}
		}
		if n != 0 {
			t.Errorf("%d entries less in a scan", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// BenchmarkPagesGet compares a look-up with bbolt's own.
func BenchmarkPagesGet(b *testing.B) {
	f := newLeafyFile(b, rand.New(rand.NewPCG(1, 0)))
	path := filepath.Join(b.TempDir(), "store")
	if err := os.WriteFile(path, f.data, 0o600); err != nil {
		b.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin(false)
	if err != nil {
		b.Fatal(err)
	}
	defer tx.Rollback()
	tree, err := openTree(db, tx, dataBucket, pageSet{}.with(uint64(tx.Size())/pageSize))
	if err != nil {
		b.Fatal(err)
	}
	own, cursor := (&fileTx{pageTree: tree}).reader(), tx.Bucket([]byte(dataBucket)).Cursor()
	var took, bound time.Duration
	for n := 0; n < b.N; n += len(f.want) {
		began := time.Now()
		for _, e := range f.want {
			if _, ok, err := own.Get(e.Key); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
		between := time.Now()
		for _, e := range f.want {
			key, stored := cursor.Seek(e.Key)
			if _, err := Unseal(key, stored); err != nil {
				b.Fatal(err)
			}
		}
		took += between.Sub(began)
		bound += time.Since(between)
	}
	b.ReportMetric(float64(took)/float64(bound), "×bbolt")
}

// TestPagesStayDamaged writes beside a damaged entry. Its page must not be written
// anew, since it would then pass for a good one.
func TestPagesStayDamaged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	key := func(i int) string { return fmt.Sprintf("c%031d", i) }
	s := testStore(t, path, Options{})
	for i := range 20 {
		var entries []string
		for j := range 100 {
			entries = append(entries, key(100*i+j), "as it was")
		}
		mustPut(t, s, entries...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	victim := []byte(key(1050))
	for at := bytes.Index(raw, victim); at >= 0; at = bytes.Index(raw, victim) {
		raw[at+len(victim)-1] ^= 0x40
	}
	damaged := filepath.Join(t.TempDir(), "store") // no test checks this one at its end
	if err := os.WriteFile(damaged, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = openStore(damaged, Options{MemSize: 1}); err != nil {
		t.Fatal(err)
	}
	for round := range 50 {
		s.Update(t.Context(), func(tx Tx) error { // may fail: the store stops if it must not write
			for _, i := range []int{1045, 1055, 1300, 100} {
				if err := tx.Put([]byte(key(i)), fmt.Append(nil, round)); err != nil {
					return err
				}
			}
			return nil
		})
		s.View(t.Context(), func(tx Tx) error {
			if _, ok, err := tx.Get(victim); err == nil {
				t.Fatalf("round %d: found %t, and no error", round, ok)
			}
			return nil
		})
	}
	select {
	case <-s.Failed():
	case <-time.After(10 * time.Second):
		t.Error("the store goes on")
	}
}

// TestFingerLeavesDamage: a transaction that has read from a damaged page still reads
// all entries on other pages.
func TestFingerLeavesDamage(t *testing.T) {
	t.Parallel()
	f := newLeafyFile(t, rand.New(rand.NewPCG(1, 2)))
	file, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	i := len(f.want) / 3
	var at pageFinger
	if _, ok, err := file.get(f.want[i].Key, &at); !ok || err != nil {
		t.Fatal(ok, err)
	}
	last := at.leaf.key(at.leaf.n - 1)
	healthy := slices.IndexFunc(f.want, func(e ordered.Entry) bool { return bytes.Equal(e.Key, last) }) + 1
	first := bytes.Clone(at.leaf.key(0))
	last[0] = 0xff // the page seems to cover all keys after it
	if file, err = f.open(); err != nil {
		t.Fatal(err)
	}
	tx := file.reader()
	if _, ok, err := tx.Get(first); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for _, e := range f.want[healthy+1:] { // all but the first entry after the damaged page
		if _, ok, err := tx.Get(e.Key); !ok || err != nil {
			t.Fatalf("%x: %t, %v", e.Key, ok, err)
		}
	}
}

// TestMostFurther: mostFurther says how long the pages of a tree are, by their first
// page.
func TestMostFurther(t *testing.T) {
	t.Parallel()
	s := testStore(t, filepath.Join(t.TempDir(), "store"), Options{NoSync: true})
	for i := range 40 {
		mustPut(t, s, fmt.Sprint("long key ", strings.Repeat("k", i*20), i), strings.Repeat("v", i*i*40))
	}
	settle(s)
	tree := s.state.Load().file.apart()
	if _, err := tree.checkAll(t.Context(), nil, 1); err != nil {
		t.Fatal(err)
	}
	long := 0
	for id := uint64(2); id < tree.pages(); id++ {
		first := bytes.Clone(tree.data[id*pageSize:][:pageSize])
		further := uint64(u32(first[12:]))
		if kind := u16(first[8:]); tree.isFree(id) || kind != leafKind && kind != branchKind || u64(first) != id {
			continue
		}
		if most := mostFurther(first); further != most {
			t.Errorf("page %d goes on over %d pages, and by its first %d", id, further, most)
		}
		if further > 0 {
			long++
			id += further
		}
	}
	if long == 0 {
		t.Error("there is no long page")
	}
}

// A countingReader records which pages of a file are read.
type countingReader struct {
	io.ReaderAt
	pages map[int64]bool
}

func (r countingReader) ReadAt(b []byte, at int64) (int, error) {
	for from := at; from < at+int64(len(b)); from += pageSize {
		r.pages[from/pageSize] = true
	}
	return r.ReaderAt.ReadAt(b, at)
}

// TestCheckApart: a check of the whole file reads no page through the map, where it
// would stay in memory. That holds for pages in use and for free ones.
func TestCheckApart(t *testing.T) {
	t.Parallel()
	s := testStore(t, filepath.Join(t.TempDir(), "store"), Options{NoSync: true, MemAge: time.Millisecond})
	for i := range 400 {
		mustPut(t, s, fmt.Sprint("key", i), strings.Repeat("v", 1000))
	}
	settle(s)
	for i := range 300 {
		if err := s.Update(t.Context(), func(tx Tx) error { return tx.Delete(fmt.Append(nil, "key", i)) }); err != nil {
			t.Fatal(err)
		}
	}
	settle(s)
	err := s.View(t.Context(), func(tx Tx) error {
		file := tx.(readTx).file
		read := countingReader{file.file, map[int64]bool{}}
		file.file = read
		if _, err := tx.(readTx).Check(t.Context(), 1); err != nil {
			return err
		}
		free := 0
		for id := uint64(2); id < file.pages(); id++ {
			if file.isFree(id) {
				free++
			}
			if !read.pages[int64(id)] && !slices.ContainsFunc(file.shell, func(s pageSpan) bool { return s.id <= id && id < s.id+s.n }) {
				t.Errorf("page %d of %d was not read apart; free: %t", id, file.pages(), file.isFree(id))
			}
		}
		if free < 20 {
			t.Errorf("%d free pages", free)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
