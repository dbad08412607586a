package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"

	"sello/internal/sheet"
)

// The file of errors of an import: what was not taken, with line and reason. Mended, it
// is imported as it is. A file that is there already is kept, since it may have been
// mended.

// rejectColumns are the first columns of a file of errors. An import ignores them.
var rejectColumns = []string{"line", "reason"}

// A csvLine is one record, which may go over several lines.
type csvLine struct {
	number int // of its first line
	fields []string
	wrong  string // why it cannot be read; "": it can. If it is no CSV, fields holds the raw line
}

// A rejects writes a file of errors.
type rejects struct {
	of   string // the file that is imported
	name string // "" until there is one

	file   *os.File
	out    *csv.Writer
	again  bool   // of is a file of errors itself, whose first columns are not written again
	before string // the newest of earlier ones; "" if there is none
}

// rejectsName matches the end of the name of a file of errors.
var rejectsName = regexp.MustCompile(`\.errors(-[0-9]+)?\.csv$`)

// mostRejects bounds how many files of errors of one file there may be.
const mostRejects = 1000

// begin makes the file and writes its header. The rest is as in the file that is
// imported: so is the separator of cells, on which the spelling of numbers depends.
func (r *rejects) begin(comma rune, plain bool, columns []string) error {
	base := rejectsName.ReplaceAllString(r.of, "")
	for n := 1; ; n++ {
		name := base + ".errors.csv"
		if n > 1 {
			name = fmt.Sprintf("%s.errors-%d.csv", base, n)
		}
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && n < mostRejects {
			r.before = name
			continue
		}
		if err != nil {
			return err
		}
		r.name, r.file, r.out = name, file, csv.NewWriter(file)
		break
	}
	r.out.Comma = comma
	if !plain { // a spreadsheet made it and needs the mark
		if _, err := r.file.WriteString(sheet.MarkUTF8); err != nil {
			return err
		}
	}
	r.again = startsRejects(columns)
	return r.out.Write(slices.Concat(rejectColumns, r.own(columns)))
}

func (r *rejects) write(line csvLine, reason string) error {
	return r.out.Write(slices.Concat([]string{strconv.Itoa(line.number), reason}, r.own(line.fields)))
}

// startsRejects reports whether columns are those of a file of errors.
func startsRejects(columns []string) bool {
	return len(columns) > len(rejectColumns) && slices.Equal(columns[:len(rejectColumns)], rejectColumns)
}

// own is a row without the line and the reason of the file of errors that it came from. A line that
// is no CSV has one field.
func (r *rejects) own(row []string) []string {
	if r.again && len(row) > len(rejectColumns) {
		return row[len(rejectColumns):]
	}
	return row
}

// close ends the file. If it is the same as the one before, that one stands for both.
func (r *rejects) close() error {
	if r.file == nil {
		return nil
	}
	r.out.Flush()
	if err := errors.Join(r.out.Error(), r.file.Close()); err != nil || r.before == "" || r.before == r.of {
		return err
	}
	same, err := sameFiles(r.name, r.before)
	if err != nil || !same {
		return err
	}
	defer func() { r.name = r.before }()
	return os.Remove(r.name)
}

func sameFiles(a, b string) (bool, error) {
	texts := [2][]byte{}
	for i, name := range []string{a, b} {
		info, err := os.Stat(name)
		if err != nil {
			return false, err
		}
		if info.Size() > maxCompared {
			return false, nil
		}
		if texts[i], err = os.ReadFile(name); err != nil {
			return false, err
		}
	}
	return bytes.Equal(texts[0], texts[1]), nil
}

// maxCompared bounds the files of errors that are compared.
const maxCompared = 64 << 20

// newcomers says which line of a file each customer came from that its import added. Numbers
// of customers ascend with the lines. Mostly both go up by one, so runs are kept.
type newcomers []struct {
	number uint64 // of the first customer
	line   int    // that it came from
	n      int    // how many there are
}

// add notes that a customer came from a line; 0 is none.
func (c *newcomers) add(number uint64, line int) {
	if number == 0 {
		return
	}
	if at := len(*c) - 1; at >= 0 {
		r := &(*c)[at]
		if number == r.number+uint64(r.n) && line == r.line+r.n {
			r.n++
			return
		}
	}
	*c = append(*c, newcomers{{number, line, 1}}...)
}

// line returns the line that a customer came from; 0 if it is not of this import.
func (c newcomers) line(number uint64) int {
	at := sort.Search(len(c), func(i int) bool { return c[i].number > number }) - 1
	if at < 0 || number-c[at].number >= uint64(c[at].n) {
		return 0
	}
	return c[at].line + int(number-c[at].number)
}
