package disktest

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"testing"
)

// A power cut loses what was written and not flushed: any part of it, in any order, by
// sectors. A kill does not. So tests record what is done to files, make from the record
// the files that a power cut may have left, and open these.

// MemoryDir returns a directory in memory if the system has one. These tests write and
// sync much, and need no disk for it.
func MemoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "disk")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A Span is the time that an operation took, in lines of a log. The operation took
// effect at some line in it.
type Span struct{ Start, End int }

// A FileChange is what a write or a truncation does to a file.
type FileChange struct {
	Span
	At   int64  // offset, or the new size
	Data []byte // nil: a truncation
}

// A DiskFile is a file with its history.
type DiskFile struct {
	Base    Sparse // before the history, on disk
	Changes []FileChange
	Syncs   []Span
}

// A NameChange is a change of names, all or nothing.
type NameChange struct {
	Span
	Names map[string]*DiskFile // nil: the name is gone
}

// A Disk is the history of a directory.
type Disk struct {
	Base  map[string]*DiskFile // before the history, on disk
	Names []NameChange
	Syncs []Span // of the directory
}

// flushed returns the line before which everything was on disk at a cut.
func flushed(syncs []Span, cut int) (before int) {
	for _, s := range syncs {
		if s.End < cut {
			before = max(before, s.Start)
		}
	}
	return before
}

// A Tearing is how a power cut treats what was not flushed.
type Tearing struct {
	*rand.Rand
	unit    int64   // bytes that are written whole or not at all
	share   float64 // of such units that is written
	inOrder bool    // names change in order
	garbage bool    // where the file has grown and was not written, it holds random bytes
}

// NewTearing chooses a Tearing at random.
func NewTearing(rng *rand.Rand) Tearing {
	return Tearing{
		rng, []int64{512, 4096}[rng.IntN(2)], []float64{0, 0.1, 0.5, 0.9, 1}[rng.IntN(5)],
		rng.IntN(3) > 0, rng.IntN(5) == 0,
	}
}

// At returns the file as a power cut at a line may have left it, and whether something
// was not flushed.
func (f *DiskFile) At(cut int, how Tearing) (s Sparse, torn bool) {
	s = f.Base.Clone()
	before := flushed(f.Syncs, cut)
	var pending []FileChange
	for _, c := range f.Changes {
		switch {
		case c.Start >= cut:
		case c.End < before:
			s.Apply(c)
		default:
			pending = append(pending, c)
		}
	}
	old, size := s.Size, s.Size
	for _, c := range pending {
		end := c.At + int64(len(c.Data))
		if (c.Data == nil || end > size) && how.Float64() < max(how.share, 0.3) {
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
		if c.Data != nil {
			how.write(&s, c)
		}
	}
	s.truncate(size)
	return s, len(pending) > 0
}

// write writes parts of a change.
func (how Tearing) write(s *Sparse, c FileChange) {
	from, to := c.At, c.At+int64(len(c.Data))
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
			s.write(at, c.Data[at-from:end-from])
		}
		at = end
	}
}

// NamesAt returns where the names may lead after a power cut at a line, and whether a
// change was not flushed.
func (d *Disk) NamesAt(cut int, how Tearing) (names map[string]*DiskFile, torn bool) {
	names = maps.Clone(d.Base)
	before := flushed(d.Syncs, cut)
	lost := false
	for _, c := range d.Names {
		if c.Start >= cut {
			continue
		}
		if c.End >= before {
			torn = true
			missing := how.Float64() >= how.share
			if lost = lost && how.inOrder || missing; lost {
				continue
			}
		}
		for name, f := range c.Names {
			names[name] = f
			if f == nil {
				delete(names, name)
			}
		}
	}
	return names, torn
}

// A Sparse is the content of a file by pages. Missing pages hold zeros.
type Sparse struct {
	Pages map[int64]*[4096]byte
	own   map[int64]bool // pages that no clone shares
	Size  int64
}

// Clone returns a copy. The two share pages until one of them writes to them.
func (s *Sparse) Clone() Sparse {
	s.own = nil
	return Sparse{maps.Clone(s.Pages), nil, s.Size}
}

func (s *Sparse) page(n int64) *[4096]byte {
	p := s.Pages[n]
	if s.own[n] {
		return p
	}
	if s.own == nil {
		s.own = map[int64]bool{}
	}
	if s.Pages == nil {
		s.Pages = map[int64]*[4096]byte{}
	}
	s.own[n], s.Pages[n] = true, new([4096]byte)
	if p != nil {
		*s.Pages[n] = *p
	}
	return s.Pages[n]
}

// Apply makes a change.
func (s *Sparse) Apply(c FileChange) {
	if c.Data == nil {
		s.truncate(c.At)
		return
	}
	s.write(c.At, c.Data)
}

func (s *Sparse) write(at int64, b []byte) {
	s.Size = max(s.Size, at+int64(len(b)))
	for len(b) > 0 {
		if at%4096 == 0 && len(b) >= 4096 && bytes.Equal(b[:4096], zeroPage[:]) && s.Pages[at/4096] == nil {
			at, b = at+4096, b[4096:]
			continue
		}
		n := copy(s.page(at / 4096)[at%4096:], b)
		at, b = at+int64(n), b[n:]
	}
}

var zeroPage [4096]byte

func (s *Sparse) truncate(size int64) {
	if size < s.Size {
		for n := range s.Pages {
			switch {
			case n*4096 >= size:
				delete(s.Pages, n)
			case (n+1)*4096 > size:
				clear(s.page(n)[size-n*4096:])
			}
		}
	}
	s.Size = size
}

// Read returns n bytes from offset at on, zeros past the end.
func (s *Sparse) Read(at int64, n int) []byte {
	b := make([]byte, 0, n)
	for len(b) < n {
		page, from := &zeroPage, at%4096
		if p := s.Pages[at/4096]; p != nil {
			page = p
		}
		part := page[from:min(4096, from+int64(n-len(b)))]
		b, at = append(b, part...), at+int64(len(part))
	}
	return b
}

// Save writes the content to a new file.
func (s *Sparse) Save(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for n, p := range s.Pages {
		if _, err := f.WriteAt(p[:], n*4096); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(f.Truncate(s.Size), f.Close())
}

// LoadSparse reads a file.
func LoadSparse(path string) (s Sparse, err error) {
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
