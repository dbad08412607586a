// Package disktest has what tests do to the files of a disk.File. It damages them, cuts
// them, and makes from their history what a power cut may leave. It shares no code with
// the package that it tests, so the form of the files is written here once more.
package disktest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
)

// PageSize is the size of the data file's pages, in bytes.
const PageSize = 4096

// branchPage is the kind of the pages that refer to other pages.
const branchPage = 0x01

// NewerHeader returns the header of a data file that was written last.
func NewerHeader(file []byte) []byte { newer, _ := headers(file); return newer }

// OlderHeader returns the other header.
func OlderHeader(file []byte) []byte { _, older := headers(file); return older }

func headers(file []byte) (newer, older []byte) {
	first, second := file, file[PageSize:]
	if binary.NativeEndian.Uint64(first[64:]) > binary.NativeEndian.Uint64(second[64:]) {
		return first, second
	}
	return second, first
}

// HeaderSum returns the checksum of a header.
func HeaderSum(header []byte) uint64 {
	sum := uint64(14695981039346656037)
	for _, b := range header[16:72] {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	return sum
}

// UsedPages returns a data file without the pages at its end that were never used.
func UsedPages(file []byte) []byte {
	return file[:binary.NativeEndian.Uint64(NewerHeader(file)[56:])*PageSize]
}

// BoltFaults has bbolt check a whole data file.
func BoltFaults(path string) error {
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

// DamageFile changes a data file, mostly in headers and tables of pages. The length
// stays. It returns what it did.
func DamageFile(data []byte, rng *rand.Rand) string {
	pages := len(data) / PageSize
	page := func() []byte { return data[rng.IntN(pages)*PageSize:][:PageSize] }
	switch n := rng.IntN(20); n {
	case 0:
		clear(page())
		return "a page of zeros"
	case 1:
		copy(page(), page())
		return "a page by another one"
	}
	said := "flipped"
	for range 1 + rng.IntN(8) {
		at := rng.IntN(len(data))
		switch rng.IntN(4) {
		case 0: // in the header of a page or its table
			at = at/PageSize*PageSize + rng.IntN(64)
		case 1: // in a branch, of which there are few
			for range 200 {
				p := page()
				if rng.IntN(8) == 0 { // or in one of the first pages
					p = data[rng.IntN(min(pages, 8))*PageSize:]
				} else if binary.NativeEndian.Uint16(p[8:]) != branchPage {
					continue
				}
				at = cap(data) - cap(p) + rng.IntN(16+16*int(1+binary.NativeEndian.Uint16(p[10:])%200))
				break
			}
		}
		at = min(at, len(data)-1)
		bit := rng.IntN(8)
		data[at] ^= 1 << bit
		said += fmt.Sprintf(" %d.%d", at, bit)
	}
	return said
}

// Offsets in a file of a journal, in bytes.
const (
	journalBlock  = 4096
	journalMark   = 2 * journalBlock
	journalStart  = 3 * journalBlock
	journalRecord = 24 // header of a record
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Generation is the newest generation of a journal.
type Generation struct {
	Name   string // of its file
	Number uint64 // 0: there is no journal
	life   []byte
	file   []byte
}

// NewestGeneration finds the newest generation in the two files of a journal.
func NewestGeneration(names [2]string) (newest Generation, err error) {
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			return newest, err
		}
		for block := range 2 {
			if len(file) < (block+1)*journalBlock {
				break
			}
			h := file[block*journalBlock:]
			g := Generation{name, binary.BigEndian.Uint64(h[40:]), h[24:40], file}
			if string(h[:8]) == "sello-j2" && binary.BigEndian.Uint32(h[64:]) == g.sum(h[:64]) && g.Number > newest.Number {
				newest = g
			}
		}
	}
	return newest, nil
}

func (g *Generation) sum(parts ...[]byte) uint32 {
	sum := crc32.Checksum(g.life, castagnoli)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

// CutRecords removes the last records from a journal, and the marks, which may count
// them, as if those records had never been written.
func CutRecords(names [2]string, records int) error {
	g, err := NewestGeneration(names)
	if err != nil {
		return err
	}
	if g.Number == 0 {
		return errors.New("there is no journal")
	}
	var starts []int
	for at := journalStart; at+journalRecord <= len(g.file); {
		b := g.file[at:]
		length := int(binary.BigEndian.Uint32(b))
		if length > len(b)-journalRecord || binary.BigEndian.Uint64(b[8:]) != g.Number ||
			binary.BigEndian.Uint64(b[16:]) != uint64(len(starts)+1) ||
			binary.BigEndian.Uint32(b[4:]) != g.sum(b[:4], b[8:journalRecord+length]) {
			break
		}
		starts = append(starts, at)
		at += (journalRecord + length + 7) &^ 7
	}
	if len(starts) <= records {
		return fmt.Errorf("the journal has %d records", len(starts))
	}
	clear(g.file[starts[len(starts)-records]:])
	if err := os.WriteFile(g.Name, g.file, 0o600); err != nil {
		return err
	}
	return Unmark(names)
}

// Unmark removes the marks of a journal.
func Unmark(names [2]string) error {
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		clear(b[min(journalMark, len(b)):min(journalStart, len(b))])
		if err := os.WriteFile(name, b, 0o600); err != nil {
			return err
		}
	}
	return nil
}
