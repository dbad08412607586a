package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"sello/internal/ordered"
)

// A power cut loses what was written and not flushed: any part of it, in any
// order, by sectors. A kill does not. So these tests keep a record of what a
// store does to its files, make of it the files as a power cut may have left
// them, and open these.

var (
	powerImages = flag.Int("power.n", 0, "number of images after power cuts to open; 0: a few")
	powerSeed   = flag.Uint64("power.seed", 0, "seed of the tests of power cuts; 0: a random one")
)

// powerRandom returns a source that the log tells how to have again.
func powerRandom(t *testing.T) *rand.Rand {
	s := cmp.Or(*powerSeed, rand.Uint64())
	t.Logf("-power.seed=%d", s)
	return rand.New(rand.NewPCG(s, 0))
}

// memoryDir is a directory in memory if there is such a thing, since what these
// tests write need not be on any disk, and they sync much.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "sello")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A span is the time that an operation took: lines of a log. It took effect
// somewhere in it.
type span struct{ start, end int }

// A fileChange is what a write or a truncation does to a file.
type fileChange struct {
	span
	at   int64  // offset, or the new size
	data []byte // nil: a truncation
}

// A diskFile is a file with its history.
type diskFile struct {
	base    sparse // before it, on the disk
	changes []fileChange
	syncs   []span
}

// A nameChange is what became of names, all or nothing.
type nameChange struct {
	span
	names map[string]*diskFile // nil: it leads nowhere
}

// A disk is the history of a directory.
type disk struct {
	base  map[string]*diskFile // on the disk
	names []nameChange
	syncs []span // of the directory
}

// flushed is the line before which everything was on the disk at a cut.
func flushed(syncs []span, cut int) (before int) {
	for _, s := range syncs {
		if s.end < cut {
			before = max(before, s.start)
		}
	}
	return before
}

// A tearing is how a power cut deals with what was not flushed.
type tearing struct {
	*rand.Rand
	unit    int64   // bytes that are written whole or not at all
	share   float64 // of them that is written
	inOrder bool    // names change in order
	garbage bool    // what the file has grown by holds anything where it was not written
}

func newTearing(rng *rand.Rand) tearing {
	return tearing{
		rng, []int64{512, 4096}[rng.IntN(2)], []float64{0, 0.1, 0.5, 0.9, 1}[rng.IntN(5)],
		rng.IntN(3) > 0, rng.IntN(5) == 0,
	}
}

// at is the file as a power cut at a line may have left it. torn tells that
// something was not flushed.
func (f *diskFile) at(cut int, how tearing) (s sparse, torn bool) {
	s = f.base.clone()
	before := flushed(f.syncs, cut)
	var pending []fileChange
	for _, c := range f.changes {
		switch {
		case c.start >= cut:
		case c.end < before:
			s.apply(c)
		default:
			pending = append(pending, c)
		}
	}
	old, size := s.size, s.size
	for _, c := range pending {
		end := c.at + int64(len(c.data))
		if (c.data == nil || end > size) && how.Float64() < max(how.share, 0.3) {
			size = end
		}
	}
	if how.garbage && size-old < 1<<20 {
		b := make([]byte, max(0, size-old))
		for i := range b {
			b[i] = byte(how.Uint32())
		}
		s.write(old, b)
	}
	for _, c := range pending {
		if c.data != nil {
			how.write(&s, c)
		}
	}
	s.truncate(size)
	return s, len(pending) > 0
}

// write writes parts of a change.
func (how tearing) write(s *sparse, c fileChange) {
	from, to := c.at, c.at+int64(len(c.data))
	kind := how.IntN(4)
	middle := from + how.Int64N(to-from+1)
	middle -= middle % how.unit
	for at := from; at < to; {
		end := min(to, (at/how.unit+1)*how.unit)
		var there bool
		switch kind {
		case 0: // the beginning
			there = how.share > 0 && (at < middle || how.share == 1)
		case 1: // the end
			there = how.share > 0 && (at >= middle || how.share == 1)
		default:
			there = how.Float64() < how.share
		}
		if there {
			s.write(at, c.data[at-from:end-from])
		}
		at = end
	}
}

// namesAt is where the names may lead after a power cut at a line.
func (d *disk) namesAt(cut int, how tearing) (names map[string]*diskFile, torn bool) {
	names = maps.Clone(d.base)
	before := flushed(d.syncs, cut)
	lost := false
	for _, c := range d.names {
		if c.start >= cut {
			continue
		}
		if c.end >= before {
			torn = true
			missing := how.Float64() >= how.share
			if lost = lost && how.inOrder || missing; lost {
				continue
			}
		}
		for name, f := range c.names {
			names[name] = f
			if f == nil {
				delete(names, name)
			}
		}
	}
	return names, torn
}

// A sparse is what a file holds, by pages. Those that are missing hold zeros.
type sparse struct {
	pages map[int64]*[4096]byte
	own   map[int64]bool // pages that no clone shares
	size  int64
}

func (s *sparse) clone() sparse {
	s.own = nil
	return sparse{maps.Clone(s.pages), nil, s.size}
}

func (s *sparse) page(n int64) *[4096]byte {
	p := s.pages[n]
	if s.own[n] {
		return p
	}
	if s.own == nil {
		s.own = map[int64]bool{}
	}
	if s.pages == nil {
		s.pages = map[int64]*[4096]byte{}
	}
	s.own[n], s.pages[n] = true, new([4096]byte)
	if p != nil {
		*s.pages[n] = *p
	}
	return s.pages[n]
}

func (s *sparse) apply(c fileChange) {
	if c.data == nil {
		s.truncate(c.at)
		return
	}
	s.write(c.at, c.data)
}

func (s *sparse) write(at int64, b []byte) {
	s.size = max(s.size, at+int64(len(b)))
	for len(b) > 0 {
		if at%4096 == 0 && len(b) >= 4096 && bytes.Equal(b[:4096], zeroPage[:]) && s.pages[at/4096] == nil {
			at, b = at+4096, b[4096:]
			continue
		}
		n := copy(s.page(at / 4096)[at%4096:], b)
		at, b = at+int64(n), b[n:]
	}
}

var zeroPage [4096]byte

func (s *sparse) truncate(size int64) {
	if size < s.size {
		for n := range s.pages {
			switch {
			case n*4096 >= size:
				delete(s.pages, n)
			case (n+1)*4096 > size:
				clear(s.page(n)[size-n*4096:])
			}
		}
	}
	s.size = size
}

func (s *sparse) read(at int64, n int) []byte {
	b := make([]byte, 0, n)
	for len(b) < n {
		page, from := &zeroPage, at%4096
		if p := s.pages[at/4096]; p != nil {
			page = p
		}
		part := page[from:min(4096, from+int64(n-len(b)))]
		b, at = append(b, part...), at+int64(len(part))
	}
	return b
}

func (s *sparse) save(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for n, p := range s.pages {
		if _, err := f.WriteAt(p[:], n*4096); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(f.Truncate(s.size), f.Close())
}

// loadSparse reads a file.
func loadSparse(path string) (s sparse, err error) {
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	buf := make([]byte, 1<<16)
	for at := int64(0); ; {
		n, err := f.ReadAt(buf, at)
		s.write(at, buf[:n])
		if at += int64(n); err == io.EOF {
			return s, nil
		} else if err != nil {
			return s, err
		}
	}
}

// A recordedFile is a file of a journal, and keeps its history.
type recordedFile struct {
	journalFile
	clock *int
	file  *diskFile
	lazy  bool // it says that it has synced, and has not
}

func (f *recordedFile) WriteAt(b []byte, at int64) (int, error) {
	*f.clock += 2
	f.file.changes = append(f.file.changes, fileChange{span{*f.clock - 2, *f.clock - 1}, at, bytes.Clone(b)})
	return f.journalFile.WriteAt(b, at)
}

func (f *recordedFile) datasync() error {
	*f.clock += 2
	if !f.lazy {
		f.file.syncs = append(f.file.syncs, span{*f.clock - 2, *f.clock - 1})
	}
	return nil
}

// TestPowerJournal cuts the power of a journal: every batch that was told to be
// stored is there, in order, and at most one more. The control's files do not
// sync.
func TestPowerJournal(t *testing.T) {
	rng, dir := powerRandom(t), memoryDir(t)
	images := max(400, *powerImages)
	for i := range images {
		if err := powerJournal(t, dir, rng, false); err != nil {
			t.Fatalf("image %d: %v", i+1, err)
		}
	}
	for range 400 {
		if err := powerJournal(t, dir, rng, true); err != nil {
			t.Logf("without sync: %v", err)
			return
		}
	}
	t.Error("without sync nothing is lost")
}

func powerJournal(t *testing.T, dir string, rng *rand.Rand, lazy bool) error {
	path := filepath.Join(dir, "store")
	for _, name := range journalNames(path) {
		os.Remove(name)
	}
	j, err := openFiles(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		t.Fatal(err)
	}
	id := journalID{life: [16]byte{1}}
	j.journalID, j.sync, j.generation, j.end = id, true, 1, journalStart
	var clock int
	var files [2]*diskFile
	for i, f := range j.files {
		files[i] = new(diskFile)
		j.files[i] = &recordedFile{f, &clock, files[i], lazy}
	}
	if err := errors.Join(j.putHeader(0, 1), j.putHeader(1, 1)); err != nil {
		t.Fatal(err)
	}
	started := clock             // the data file says that it needs the journal
	acknowledged := []int{clock} // lines
	first := []int{0, 1}         // batch of each generation
	begun := []int{0, clock}     // when each was
	for n := 1; n < 5+rng.IntN(20); n++ {
		if rng.IntN(5) == 0 && j.records > 0 {
			begun = append(begun, clock)
			if err := j.next(1); err != nil {
				t.Fatal(err)
			}
			first = append(first, n)
		}
		if err := j.append([]ordered.Change{{Key: strconv.Itoa(n), Value: make([]byte, rng.IntN(10)*rng.IntN(1000))}}); err != nil {
			t.Fatal(err)
		}
		acknowledged = append(acknowledged, clock)
	}
	generation := j.generation
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	cut := clock - rng.IntN(min(clock-started+1, 12))
	how := newTearing(rng)
	for i, name := range journalNames(path) {
		os.Remove(name)
		s, _ := files[i].at(cut, how)
		if err := s.save(name); err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	for told+1 < len(acknowledged) && acknowledged[told+1] <= cut {
		told++
	}
	// The file holds what came before the generation that the last one to be
	// begun had before it.
	oldest := uint64(1)
	for g := generation; g > 1; g-- {
		if begun[g] < cut {
			oldest = g - 1
			break
		}
	}
	if j, err = openJournal(path, id); err != nil {
		return err
	}
	defer j.close()
	want := first[oldest]
	stray := ""
	err = j.replay(journalState{first: oldest, tx: 1}, func(_ uint64, key string, _ []byte) {
		if key != strconv.Itoa(want) {
			stray = key
		}
		want++
	})
	if err == nil && stray != "" {
		err = fmt.Errorf("batch %s is out of turn", stray)
	}
	if err != nil {
		return err
	}
	if got := want - 1; got < told || got > told+1 {
		return fmt.Errorf("batches up to %d of %d", got, told)
	}
	return nil
}

// What is stored until the power is cut: sales of a few customers, each of
// whose tills goes on after the last one.

// A powerLoad is a process's part of that.
type powerLoad struct {
	path  string
	seed  uint64
	sales int    // in all
	end   string // kill, stop
	lazy  bool   // nothing is synced
}

const powerTills = 4

func (l powerLoad) options() boltOptions {
	return boltOptions{
		noSync: l.lazy, dense: denseTables, memAge: time.Hour,
		memSize: 24<<10 + int(l.seed%8)*(16<<10),
	}
}

// environ passes the load to a process; powerLoadIn is its other end.
func (l powerLoad) environ() []string {
	return append(os.Environ(), fmt.Sprintf("SELLO_POWER=%d %d %s %t %s", l.seed, l.sales, l.end, l.lazy, l.path))
}

func powerLoadIn(environ string) (l powerLoad, err error) {
	_, err = fmt.Sscanf(environ, "%d %d %s %t %s", &l.seed, &l.sales, &l.end, &l.lazy, &l.path)
	return l, err
}

// ranPowerLoad runs a load if this process is there for nothing else.
func ranPowerLoad() bool {
	environ := os.Getenv("SELLO_POWER")
	if environ == "" {
		return false
	}
	l, err := powerLoadIn(environ)
	if err == nil {
		err = l.run(context.Background(), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// ranSmallServer runs `sello serve -db FILE -addr ADDRESS` with small memtables
// if this process is there for nothing else.
func ranSmallServer() bool {
	size, err := strconv.Atoi(os.Getenv("SELLO_MEMTABLE"))
	if err != nil {
		return false
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c := &invocation{
		maxConns: defaultMaxConns, maxConnsPerSource: defaultMaxConnsPerSource,
		environment: environment{os.Getenv, os.Stdin, os.Stdout, os.Stderr},
		db:          os.Args[3], addr: os.Args[5], memSize: size,
	}
	if err := runServe(ctx, c); err != nil {
		fmt.Fprintf(os.Stderr, "sello: %s\n", inWords(err))
		os.Exit(1)
	}
	return true
}

func powerEngine(s Store) *engine { return newEngine(s, time.Now, cryptoSeed) }

// run makes sales and writes a line "ack TILL-NUMBER SEQ" for each, when it is
// stored.
func (l powerLoad) run(ctx context.Context, acks io.Writer) error {
	s, err := openBolt(l.path, l.options())
	if err != nil {
		return err
	}
	e := powerEngine(s)
	if err := e.open(ctx); err != nil {
		return err
	}
	a := &admin{engine: e, flush: func(context.Context) error { return nil }}
	document := setup{program: `"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1}}],"expiry":{"months":12}`}.document()
	if _, err := a.apply(ctx, applyRequest{Document: document}); err != nil {
		return err
	}
	known, err := soldIn(ctx, e)
	if err != nil {
		return err
	}
	var tills sync.WaitGroup
	errs := make([]error, powerTills)
	left := make(chan struct{}, l.sales)
	for range l.sales {
		left <- struct{}{}
	}
	close(left)
	for till := range powerTills {
		tills.Go(func() {
			for n := known.last(till) + 1; ; n++ {
				if _, more := <-left; !more {
					return
				}
				if errs[till] = powerSale(ctx, e, acks, till, n); errs[till] != nil {
					return
				}
				if len(left) == 0 && l.end == "kill" {
					p, _ := os.FindProcess(os.Getpid())
					p.Kill()
				}
			}
		})
	}
	tills.Wait()
	return errors.Join(errors.Join(errs...), s.Close())
}

// powerSale makes one sale, a debit with every third, and many customers with
// every twentieth.
func powerSale(ctx context.Context, e *engine, acks io.Writer, till, n int) error {
	name := fmt.Sprintf("%d-%d", till, n)
	seq, err := write(ctx, e, 1, instantOf(e.now()), func(t *txn) (uint64, error) {
		c, _, err := t.enrol(enrolment{FirstName: "Till", Email: fmt.Sprintf("till%d@example.com", till)})
		if err != nil {
			return 0, err
		}
		s, _, err := t.registerSale(newSale{
			Customer: c.ID, Total: decimalOf(10 + n), Type: typePurchase, Source: sourceAPI,
			ExternalID: name, Comment: strings.Repeat("c", n*37%500),
		})
		if err != nil {
			return 0, err
		}
		if n%3 == 0 {
			m := &movement{Amount: decimalOf(1), Category: categoryAdjustment}
			if _, err := t.movePoints(c.ID, nil, m, t.debit); err != nil {
				return 0, err
			}
		}
		for i := range 15 {
			if n%20 == 0 {
				if _, _, err := t.enrol(enrolment{FirstName: "More", Email: fmt.Sprintf("more%d-%s@example.com", i, name)}); err != nil {
					return 0, err
				}
			}
		}
		return s.Seq, nil
	})
	if err == nil {
		_, err = fmt.Fprintf(acks, "ack %s %d\n", name, seq)
	}
	return err
}

// A soldList names the sales that a store holds, in order.
type soldList []string

// last is the number of a till's last sale.
func (l soldList) last(till int) (n int) {
	for _, name := range l {
		var of, number int
		if fmt.Sscanf(name, "%d-%d", &of, &number); of == till {
			n = number
		}
	}
	return n
}

func soldIn(ctx context.Context, e *engine) (soldList, error) {
	orgs, err := view(ctx, e.store, func(tx Tx) (uint64, error) {
		n, _, err := getUint(tx, newKey('o').byte('n'))
		return n, err
	})
	if err != nil || orgs == 0 {
		return nil, err
	}
	return read(ctx, e, 1, instantOf(e.now()), func(t *txn) (list soldList, err error) {
		n, err := t.count()
		if err != nil {
			return nil, err
		}
		for seq := range n.Sales {
			s, err := t.saleAt(seq + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, s.ExternalID)
		}
		return list, nil
	})
}

// powerCheck opens a store that a power cut has left, audits it, and holds it to
// what was acknowledged. thorough also closes it, has bbolt check its file and
// goes on with it.
func powerCheck(ctx context.Context, path string, told soldList, thorough bool) (sold soldList, err error) {
	for again := range 2 {
		s, err := openBolt(path, boltOptions{noSync: true, dense: denseTables, memSize: 64 << 10, mustExist: len(told) > 0})
		if err != nil {
			return nil, err
		}
		sold, err = powerAudit(ctx, s, told)
		if err == nil && thorough && again == 0 && len(sold) > 0 {
			err = powerSale(ctx, powerEngine(s), io.Discard, 0, sold.last(0)+1)
			told = sold
		}
		if err = errors.Join(err, s.Close()); err != nil || !thorough {
			return sold, err
		}
	}
	return sold, boltFaults(path)
}

// boltFaults has bbolt check the whole file.
func boltFaults(path string) error {
	db, err := bolt.Open(path, 0, &bolt.Options{ReadOnly: true, PreLoadFreelist: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(func(tx *bolt.Tx) (err error) {
		for fault := range tx.Check() {
			err = errors.Join(err, fault)
		}
		return err
	})
}

func powerAudit(ctx context.Context, s *boltStore, told soldList) (soldList, error) {
	e := powerEngine(s)
	report, err := view(ctx, s, func(tx Tx) (*verification, error) { return verify(tx, instantOf(e.now()), nil) })
	if err != nil {
		return nil, err
	}
	if len(report.Problems) > 0 {
		return nil, fmt.Errorf("audit: %s", strings.Join(report.Problems[:min(5, len(report.Problems))], "; "))
	}
	sold, err := soldIn(ctx, e)
	if err != nil {
		return nil, err
	}
	for i, name := range told {
		if name != "" && (i >= len(sold) || sold[i] != name) {
			return sold, fmt.Errorf("lost: sale %d, %s; %d sales are there", i+1, name, len(sold))
		}
	}
	numbers := make([]int, powerTills)
	for _, name := range sold {
		var till, number int
		fmt.Sscanf(name, "%d-%d", &till, &number)
		if number != numbers[till]+1 {
			return sold, fmt.Errorf("till %d: sale %d after %d", till, number, numbers[till])
		}
		numbers[till] = number
	}
	return sold, nil
}
