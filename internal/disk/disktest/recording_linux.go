package disktest

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

	"sello/internal/processtest"
)

// recordedCalls are the system calls that change or flush files, or acknowledge something.
// strace ignores a call with a question mark if the system does not have it.
const recordedCalls = "openat,close,write,pwrite64,ftruncate,fsync,fdatasync,linkat,unlinkat,?rename,renameat,?renameat2,?link,?unlink," +
	"?open,?creat,?truncate,writev,pwritev,pwritev2,fallocate,sync_file_range,msync,copy_file_range,sendfile"

// A Recording is what processes did to the files in a directory, one process after
// another, and what they acknowledged: a line "ack NAME NUMBER" on their output tells that
// what has the number, from 1 on, is stored, and is called so.
type Recording struct {
	Disk
	dir  string
	live map[string]*DiskFile // the files by name, at the end
	acks []ack
	told []string // acknowledged before the recording

	Lines int   // how long it is
	marks []int // lines of rare calls, after which Cut often cuts
}

type ack struct {
	line int
	seq  int
	name string
}

// NewRecording begins a recording. The files in the directory count as flushed.
func NewRecording(dir string, told []string) (*Recording, error) {
	r := &Recording{Disk: Disk{Base: map[string]*DiskFile{}}, dir: dir, told: told, Lines: 1}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		s, err := LoadSparse(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		r.Base[f.Name()] = &DiskFile{Base: s}
	}
	r.live = maps.Clone(r.Base)
	return r, nil
}

// Run records a process, which has to end with a kill or by itself.
func (r *Recording) Run(t *testing.T, program string, environ []string, kill bool) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-qq", "-xx", "--seccomp-bpf", "-s", "16777216", "-e", "trace="+recordedCalls, "-o", log, program)
	cmd.Env = environ
	var out bytes.Buffer
	cmd.Stderr = &out
	err := cmd.Run()
	if killed := strings.HasPrefix(fmt.Sprint(err), "signal: killed"); killed != kill || err != nil && !killed {
		t.Fatalf("%s: %v\n%s", cmd, err, out.Bytes())
	}
	calls, next, _ := processtest.ReadTrace(t, log, r.Lines)
	os.Remove(log)
	r.Lines = next
	if err := r.take(calls, kill); err != nil {
		t.Fatal(err)
	}
}

// A handle is what a file descriptor refers to.
type handle struct {
	file *DiskFile // nil: the directory
	name string
}

// take adds the calls of a process.
func (r *Recording) take(calls []*processtest.Syscall, killed bool) error {
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

func (r *Recording) takeCall(s *processtest.Syscall, handles map[int64]handle) error {
	during := Span{Start: s.Start, End: s.End}
	if s.End == processtest.Unending {
		during.End = r.Lines // the kill ended the call
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
func (r *Recording) change(s *processtest.Syscall, during Span, h handle) error {
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
		h.file.Changes = append(h.file.Changes, FileChange{Span: during, At: at, Data: []byte(text[:n])})
		if at == 0 || !strings.Contains(h.name, "-journal") {
			r.marks = append(r.marks, s.Start)
		}
	case "ftruncate":
		size, err := s.Number(1)
		if err != nil {
			return err
		}
		h.file.Changes = append(h.file.Changes, FileChange{Span: during, At: size, Data: nil})
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
func (r *Recording) inDir(s *processtest.Syscall, arg int) (string, error) {
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

func (r *Recording) open(s *processtest.Syscall, during Span, fd int64, handles map[int64]handle) error {
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
		r.name(during, map[string]*DiskFile{name: new(DiskFile)})
	}
	f := r.live[name]
	if strings.Contains(s.Args[2], "O_TRUNC") {
		f.Changes = append(f.Changes, FileChange{Span: during, At: 0, Data: nil})
	}
	handles[fd] = handle{f, name}
	return nil
}

func (r *Recording) rename(s *processtest.Syscall, during Span) error {
	name, err := r.inDir(s, 1)
	if err != nil || name == "" {
		return err
	}
	if s.Call == "unlinkat" {
		r.name(during, map[string]*DiskFile{name: nil})
		return nil
	}
	to, err := r.inDir(s, 3)
	if err != nil {
		return err
	}
	r.name(during, map[string]*DiskFile{to: r.live[name]})
	return nil
}

func (r *Recording) name(during Span, names map[string]*DiskFile) {
	r.Names = append(r.Names, NameChange{Span: during, Names: names})
	r.marks = append(r.marks, during.Start)
	for name, f := range names {
		r.live[name] = f
		if f == nil {
			delete(r.live, name)
		}
	}
}

// acknowledge adds what a write acknowledges, if anything.
func (r *Recording) acknowledge(s *processtest.Syscall) error {
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
		r.acks = append(r.acks, ack{s.Start, seq, name})
	}
	return nil
}

// settle reads from the files how far the calls got that a kill cut off, and compares the
// recording with the files. After a kill the log may lack a write that was under way:
// settle adds it. It fails if more than one file differs, or any after a stop.
func (r *Recording) settle(killed bool) error {
	missing := 0
	files, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	there := map[string]Sparse{}
	for _, f := range files {
		if there[f.Name()], err = LoadSparse(filepath.Join(r.dir, f.Name())); err != nil {
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
			case c.End != r.Lines:
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
		changes := difference(s, real, Span{Start: r.Lines - 1, End: r.Lines})
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
func difference(a, b Sparse, during Span) (list []FileChange) {
	for n := range (max(a.Size, b.Size) + 4095) / 4096 {
		if a.Pages[n] == nil && b.Pages[n] == nil {
			continue
		}
		was, is := a.Read(n*4096, 4096), b.Read(n*4096, 4096)
		if !bytes.Equal(was, is) {
			list = append(list, FileChange{Span: during, At: n * 4096, Data: is[:max(0, min(4096, b.Size-n*4096))]})
		}
	}
	if a.Size != b.Size {
		list = append(list, FileChange{Span: during, At: b.Size, Data: nil})
	}
	return list
}

// Told lists what was acknowledged before a line.
func (r *Recording) Told(line int) []string {
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

// Cut returns a line at which the power is cut. A quarter of the cuts come shortly after a
// change of names, a quarter shortly after any mark, and half anywhere.
func (r *Recording) Cut(rng *rand.Rand) int {
	soon := rng.IntN(8)
	switch n := rng.IntN(4); {
	case n == 0 && len(r.Names) > 0:
		return min(r.Lines, r.Names[rng.IntN(len(r.Names))].Start+soon)
	case n == 1 && len(r.marks) > 0:
		return min(r.Lines, r.marks[rng.IntN(len(r.marks))]+soon)
	}
	return 1 + rng.IntN(r.Lines)
}

// Image makes the files that a power cut may have left, in a new directory. It returns
// what was not flushed: "names", "journal", "file".
func (r *Recording) Image(dir string, cut int, how Tearing) (kinds []string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	names, torn := r.NamesAt(cut, how)
	if torn {
		kinds = append(kinds, "names")
	}
	saved := map[*DiskFile]string{}
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
