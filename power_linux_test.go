package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sello/internal/disk/disktest"
	"sello/internal/processtest"
)

// recordedCalls are the system calls that change or flush files, or acknowledge sales.
// strace ignores a call with a question mark if the system does not have it.
const recordedCalls = "openat,close,write,pwrite64,ftruncate,fsync,fdatasync,linkat,unlinkat,?rename,renameat,?renameat2,?link,?unlink," +
	"?open,?creat,?truncate,writev,pwritev,pwritev2,fallocate,sync_file_range,msync,copy_file_range,sendfile"

// A recording is what processes did to the files in a directory, one process after
// another, and what they acknowledged.
type recording struct {
	disktest.Disk
	dir  string
	live map[string]*disktest.DiskFile // the files by name, at the end
	acks []powerAck
	told soldList // acknowledged before the recording

	lines int
	marks []int // lines of rare calls, after which cut often cuts
}

type powerAck struct {
	line int
	seq  int
	name string
}

// newRecording begins a recording. The files in the directory count as flushed.
func newRecording(dir string, told soldList) (*recording, error) {
	r := &recording{Disk: disktest.Disk{Base: map[string]*disktest.DiskFile{}}, dir: dir, told: told, lines: 1}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		s, err := disktest.LoadSparse(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		r.Base[f.Name()] = &disktest.DiskFile{Base: s}
	}
	r.live = maps.Clone(r.Base)
	return r, nil
}

// run records a process that runs a load.
func (r *recording) run(t *testing.T, l powerLoad) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-qq", "-xx", "--seccomp-bpf", "-s", "16777216", "-e", "trace="+recordedCalls, "-o", log, testBinary(t))
	cmd.Env = l.environ()
	var out bytes.Buffer
	cmd.Stderr = &out
	err := cmd.Run()
	if killed := strings.HasPrefix(fmt.Sprint(err), "signal: killed"); killed != (l.end == "kill") || err != nil && !killed {
		t.Fatalf("%s: %v\n%s", cmd, err, out.Bytes())
	}
	calls, next, _ := processtest.ReadTrace(t, log, r.lines)
	os.Remove(log)
	r.lines = next
	if err := r.take(calls, l.end == "kill"); err != nil {
		t.Fatal(err)
	}
}

// A handle is what a file descriptor refers to.
type handle struct {
	file *disktest.DiskFile // nil: the directory
	name string
}

// take adds the calls of a process.
func (r *recording) take(calls []*processtest.Syscall, killed bool) error {
	when := func(s *processtest.Syscall) int {
		if s.Call == "openat" && s.End != processtest.Unending {
			return s.End // before that, the descriptor refers to another file
		}
		return s.Start
	}
	slices.SortStableFunc(calls, func(a, b *processtest.Syscall) int { return when(a) - when(b) })
	handles := map[int64]handle{}
	for _, s := range calls {
		if s.Failed() {
			continue
		}
		if err := r.takeCall(s, handles); err != nil {
			return err
		}
	}
	return r.settle(killed)
}

func (r *recording) takeCall(s *processtest.Syscall, handles map[int64]handle) error {
	during := disktest.Span{Start: s.Start, End: s.End}
	if s.End == processtest.Unending {
		during.End = r.lines // the kill ended the call
	}
	fd, _ := s.Number(0)
	h, ours := handles[fd]
	switch s.Call {
	case "openat":
		if s.End == processtest.Unending {
			return nil
		}
		fd, err := s.Number(-1)
		if err != nil {
			return err
		}
		delete(handles, fd)
		return r.open(s, during, fd, handles)
	case "close":
		delete(handles, fd)
	case "write":
		if ours {
			return fmt.Errorf("write to %s", h.name)
		}
		return r.acknowledge(s)
	case "pwrite64", "ftruncate", "fsync", "fdatasync":
		if ours {
			return r.change(s, during, h)
		}
	case "linkat", "unlinkat":
		return r.rename(s, during)
	case "rename", "renameat", "renameat2", "link", "unlink", "open", "creat", "truncate":
		if strings.Contains(fmt.Sprint(s.Args), hexText(r.dir)) {
			return fmt.Errorf("what does %s%q do?", s.Call, s.Args)
		}
	default:
		for i := range s.Args {
			if n, err := s.Number(i); err == nil && handles[n].name != "" {
				return fmt.Errorf("what does %s%q do?", s.Call, s.Args)
			}
		}
	}
	return nil
}

// change adds a call on a file of the directory, or on the directory itself.
func (r *recording) change(s *processtest.Syscall, during disktest.Span, h handle) error {
	switch s.Call {
	case "pwrite64":
		text, err := s.Text(1)
		at, err2 := s.Number(3)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		n := int64(len(text))
		if s.End != processtest.Unending {
			if n, err = s.Number(-1); err != nil {
				return err
			}
		}
		h.file.Changes = append(h.file.Changes, disktest.FileChange{Span: during, At: at, Data: []byte(text[:n])})
		if at == 0 || !strings.Contains(h.name, "-journal") {
			r.marks = append(r.marks, s.Start)
		}
	case "ftruncate":
		size, err := s.Number(1)
		if err != nil {
			return err
		}
		h.file.Changes = append(h.file.Changes, disktest.FileChange{Span: during, At: size, Data: nil})
		r.marks = append(r.marks, s.Start)
	case "fsync", "fdatasync":
		switch {
		case s.End == processtest.Unending:
		case h.file == nil:
			r.Syncs = append(r.Syncs, during)
			r.marks = append(r.marks, s.Start)
		default:
			h.file.Syncs = append(h.file.Syncs, during)
		}
	}
	return nil
}

func hexText(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, `\x%02x`, s[i])
	}
	return b.String()
}

// inDir returns the name of a path in the directory: "." is the directory itself, ""
// is a path outside it.
func (r *recording) inDir(s *processtest.Syscall, arg int) (string, error) {
	path, err := s.Text(arg)
	if err != nil {
		return "", err
	}
	name, err := filepath.Rel(r.dir, path)
	if err != nil || strings.HasPrefix(name, "..") {
		return "", nil
	}
	return name, nil
}

func (r *recording) open(s *processtest.Syscall, during disktest.Span, fd int64, handles map[int64]handle) error {
	name, err := r.inDir(s, 1)
	switch {
	case err != nil || name == "":
		return err
	case name == ".":
		handles[fd] = handle{nil, name}
		return nil
	case r.live[name] == nil:
		if !strings.Contains(s.Args[2], "O_CREAT") {
			return fmt.Errorf("%s: opened before it was made", name)
		}
		r.name(during, map[string]*disktest.DiskFile{name: new(disktest.DiskFile)})
	}
	f := r.live[name]
	if strings.Contains(s.Args[2], "O_TRUNC") {
		f.Changes = append(f.Changes, disktest.FileChange{Span: during, At: 0, Data: nil})
	}
	handles[fd] = handle{f, name}
	return nil
}

func (r *recording) rename(s *processtest.Syscall, during disktest.Span) error {
	name, err := r.inDir(s, 1)
	if err != nil || name == "" {
		return err
	}
	if s.Call == "unlinkat" {
		r.name(during, map[string]*disktest.DiskFile{name: nil})
		return nil
	}
	to, err := r.inDir(s, 3)
	if err != nil {
		return err
	}
	r.name(during, map[string]*disktest.DiskFile{to: r.live[name]})
	return nil
}

func (r *recording) name(during disktest.Span, names map[string]*disktest.DiskFile) {
	r.Names = append(r.Names, disktest.NameChange{Span: during, Names: names})
	r.marks = append(r.marks, during.Start)
	for name, f := range names {
		r.live[name] = f
		if f == nil {
			delete(r.live, name)
		}
	}
}

// acknowledge adds what a write acknowledges, if anything.
func (r *recording) acknowledge(s *processtest.Syscall) error {
	text, err := s.Text(1)
	if err != nil {
		return err
	}
	if rest, ok := strings.CutPrefix(text, "ack "); ok {
		name, number, _ := strings.Cut(strings.TrimSpace(rest), " ")
		seq, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		r.acks = append(r.acks, powerAck{s.Start, seq, name})
	}
	return nil
}

// settle reads from the files how far the calls got that a kill cut off, and compares the
// recording with the files. After a kill the log may lack a write that was under way:
// settle adds it. It fails if more than one file differs, or any after a stop.
func (r *recording) settle(killed bool) error {
	missing := 0
	files, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	there := map[string]disktest.Sparse{}
	for _, f := range files {
		if there[f.Name()], err = disktest.LoadSparse(filepath.Join(r.dir, f.Name())); err != nil {
			return err
		}
	}
	for name, f := range r.live {
		real, ok := there[name]
		delete(there, name)
		if !ok {
			return fmt.Errorf("%s is not there", name)
		}
		for i := range f.Changes {
			switch c := &f.Changes[i]; {
			case c.End != r.lines:
			case c.Data == nil:
				c.At = real.Size
			default:
				c.Data = real.Read(c.At, int(min(int64(len(c.Data)), max(0, real.Size-c.At))))
			}
		}
		s := f.Base.Clone()
		for _, c := range f.Changes {
			s.Apply(c)
		}
		changes := difference(s, real, disktest.Span{Start: r.lines - 1, End: r.lines})
		if len(changes) == 0 {
			continue
		}
		if missing++; !killed || missing > 1 {
			return fmt.Errorf("%s is not as it was recorded: %d pages, killed: %v", name, len(changes), killed)
		}
		f.Changes = append(f.Changes, changes...)
	}
	if len(there) > 0 {
		return fmt.Errorf("not recorded: %v", slices.Collect(maps.Keys(there)))
	}
	return nil
}

// difference returns the changes that turn a into b.
func difference(a, b disktest.Sparse, during disktest.Span) (list []disktest.FileChange) {
	for n := range (max(a.Size, b.Size) + 4095) / 4096 {
		if a.Pages[n] == nil && b.Pages[n] == nil {
			continue
		}
		was, is := a.Read(n*4096, 4096), b.Read(n*4096, 4096)
		if !bytes.Equal(was, is) {
			list = append(list, disktest.FileChange{Span: during, At: n * 4096, Data: is[:max(0, min(4096, b.Size-n*4096))]})
		}
	}
	if a.Size != b.Size {
		list = append(list, disktest.FileChange{Span: during, At: b.Size, Data: nil})
	}
	return list
}

// toldAt lists the sales that were acknowledged before a line.
func (r *recording) toldAt(line int) soldList {
	list := slices.Clone(r.told)
	for _, a := range r.acks {
		if a.line < line {
			for len(list) < a.seq {
				list = append(list, "")
			}
			list[a.seq-1] = a.name
		}
	}
	return list
}

// cut returns a line at which the power is cut. A quarter of the cuts come shortly after a
// change of names, a quarter shortly after any mark, and half anywhere.
func (r *recording) cut(rng *rand.Rand) int {
	soon := rng.IntN(8)
	switch n := rng.IntN(4); {
	case n == 0 && len(r.Names) > 0:
		return min(r.lines, r.Names[rng.IntN(len(r.Names))].Start+soon)
	case n == 1 && len(r.marks) > 0:
		return min(r.lines, r.marks[rng.IntN(len(r.marks))]+soon)
	}
	return 1 + rng.IntN(r.lines)
}

// image makes the files that a power cut may have left, in a new directory. It returns
// what was not flushed: "names", "journal", "file".
func (r *recording) image(dir string, cut int, how disktest.Tearing) (kinds []string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	names, torn := r.NamesAt(cut, how)
	if torn {
		kinds = append(kinds, "names")
	}
	saved := map[*disktest.DiskFile]string{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := names[name]
		path := filepath.Join(dir, name)
		if first := saved[f]; first != "" {
			if err := os.Link(first, path); err != nil {
				return nil, err
			}
			continue
		}
		s, torn := f.At(cut, how)
		if err := s.Save(path); err != nil {
			return nil, err
		}
		saved[f] = path
		switch {
		case !torn:
		case strings.Contains(name, "-journal"):
			kinds = append(kinds, "journal")
		default:
			kinds = append(kinds, "file")
		}
	}
	return kinds, nil
}

// A powerRun makes recordings and opens images of them. A recording begins with what a
// power cut left of the one before, or with nothing.
type powerRun struct {
	*testing.T
	rng     *rand.Rand
	dir     string
	lazy    bool
	forget  func(*recording) // removes syncs, for controls
	images  int
	kinds   map[string]int
	failure error // of the first bad image
	lost    int   // images that are not as they should be
}

func newPowerRun(t *testing.T, rng *rand.Rand) *powerRun {
	return &powerRun{T: t, rng: rng, dir: disktest.MemoryDir(t), kinds: map[string]int{}}
}

// record makes a recording that begins with what is in dir, or with nothing.
func (p *powerRun) record(told soldList, processes int) *recording {
	p.Helper()
	dir := filepath.Join(p.dir, "live")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.Fatal(err)
	}
	r, err := newRecording(dir, told)
	if err != nil {
		p.Fatal(err)
	}
	for range processes {
		l := powerLoad{
			path: filepath.Join(dir, "store"), seed: p.rng.Uint64(), sales: 20 + p.rng.IntN(80),
			end: []string{"kill", "stop"}[p.rng.IntN(2)], lazy: p.lazy,
		}
		r.run(p.T, l)
	}
	p.kinds["processes"] += processes
	if p.forget != nil {
		p.forget(r)
	}
	return r
}

// open opens images of a recording. A control ends with the first bad image.
func (p *powerRun) open(r *recording, images int) {
	p.Helper()
	for i := range images {
		p.images++
		dir := filepath.Join(p.dir, "image")
		cut, chance := r.cut(p.rng), p.rng.Uint64()
		for i == 0 && len(r.toldAt(1)) == 0 && len(r.toldAt(cut)) > 0 {
			cut = 1 + p.rng.IntN(cut) // one image at least is of the first start
		}
		tear := func(dir string) []string {
			kinds, err := r.image(dir, cut, disktest.NewTearing(rand.New(rand.NewPCG(chance, 0))))
			if err != nil {
				p.Fatal(err)
			}
			return kinds
		}
		kinds, told := tear(dir), r.toldAt(cut)
		if len(told) == 0 {
			kinds = append(kinds, "first start")
		}
		for _, k := range kinds {
			p.kinds[k]++
		}
		_, err := powerCheck(p.Context(), filepath.Join(dir, "store"), told, i%8 == 0)
		os.RemoveAll(dir)
		if err == nil {
			continue
		}
		p.lost++
		if p.failure == nil {
			p.failure = fmt.Errorf("image %d, cut at line %d of %d: %w", p.images, cut, r.lines, err)
		}
		if p.lazy || p.forget != nil {
			return
		}
		tear(filepath.Join(p.ArtifactDir(), fmt.Sprint("image", p.images))) // kept with -artifacts
	}
}

// proceed puts into the live directory what a power cut leaves of a recording, and
// returns the sales that it holds.
func (p *powerRun) proceed(r *recording) soldList {
	p.Helper()
	live := filepath.Join(p.dir, "live")
	os.RemoveAll(live)
	cut, chance := r.cut(p.rng), p.rng.Uint64()
	tear := func(dir string) {
		if _, err := r.image(dir, cut, disktest.NewTearing(rand.New(rand.NewPCG(chance, 0)))); err != nil {
			p.Fatal(err)
		}
	}
	tear(live)
	copied := filepath.Join(p.dir, "copied")
	tear(copied)
	defer os.RemoveAll(copied)
	sold, err := powerCheck(p.Context(), filepath.Join(copied, "store"), r.toldAt(cut), false)
	if err != nil {
		p.Fatalf("cut at line %d of %d: %v", cut, r.lines, err)
	}
	return sold
}

// TestPower cuts the power of the store at first starts, while its files grow, at
// checkpoints and stops, and at starts after a kill or another cut. Every image of
// its files must open, pass the audit, and have every sale that was acknowledged.
func TestPower(t *testing.T) {
	if testing.Short() {
		t.Skip("records processes")
	}
	t.Parallel()
	processtest.NeedStrace(t)
	rng := powerRandom(t)
	images, each, shards := sized(100, 50), sized(50, 25), 1
	if *powerImages > 0 {
		images, each, shards = *powerImages, 400, 4
	}
	var all []*powerRun
	t.Run("images", func(t *testing.T) {
		for i := range shards {
			chance, share := rng.Uint64(), images*(i+1)/shards-images*i/shards
			t.Run(fmt.Sprint(i+1), func(t *testing.T) {
				p := newPowerRun(t, rand.New(rand.NewPCG(chance, 0)))
				all = append(all, p)
				t.Parallel()
				p.recordAndOpen(share, each)
			})
		}
	})
	total, lost, kinds := 0, 0, map[string]int{}
	for _, p := range all {
		total, lost = total+p.images, lost+p.lost
		for kind, n := range p.kinds {
			kinds[kind] += n
		}
	}
	t.Logf("%d images, %d not as they should be: %v", total, lost, kinds)
	for _, kind := range []string{"first start", "journal", "file", "names"} {
		if kinds[kind] == 0 && !t.Failed() {
			t.Errorf("of no image it can be said: %s", kind)
		}
	}
}

// recordAndOpen opens images, at most each of one recording. Every fourth recording
// begins with nothing.
func (p *powerRun) recordAndOpen(images, each int) {
	var told soldList
	for n := 0; p.images < images; n++ {
		if n%4 == 0 {
			told = nil
			os.RemoveAll(filepath.Join(p.dir, "live"))
		}
		r := p.record(told, 1+p.rng.IntN(3))
		p.open(r, min(each, images-p.images))
		if p.failure != nil {
			p.Fatalf("%d of %d images are not as they should be; first: %v", p.lost, p.images, p.failure)
		}
		told = p.proceed(r)
	}
}

// TestPowerControl cuts the power where syncs are left out. It must find a bad image.
func TestPowerControl(t *testing.T) {
	if testing.Short() {
		t.Skip("records processes")
	}
	t.Parallel()
	processtest.NeedStrace(t)
	rng := powerRandom(t)
	forget := func(part string) func(*recording) {
		return func(r *recording) {
			for _, c := range r.Names {
				for name, f := range c.Names {
					if f != nil && strings.HasSuffix(name, part) {
						f.Syncs = nil
					}
				}
			}
		}
	}
	for _, test := range []struct {
		name   string
		lazy   bool
		forget func(*recording)
	}{
		{"NoSync", true, nil},
		{"JournalNotSynced", false, func(r *recording) { forget("-journal1")(r); forget("-journal2")(r) }},
		{"FileNotSynced", false, forget("store")},
		{"DirectoryNotSynced", false, func(r *recording) { r.Syncs = nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPowerRun(t, rng)
			p.lazy, p.forget = test.lazy, test.forget
			r := p.record(nil, 1)
			p.open(r, 400)
			if p.failure == nil {
				t.Fatalf("%d images are all as they should be", p.images)
			}
			t.Log(p.failure)
		})
	}
}
