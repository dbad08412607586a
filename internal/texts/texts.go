// Package texts is the texts of an interface in Spanish and English, from tables: each line is a
// name that says where the text stands, the Spanish and the English text, with tabs between them,
// in the order of the names. A text is as in a Go string; a % begins a place for an argument, %% is
// the sign.
package texts

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// A Text is one text in each language.
type Text struct{ ES, EN string }

// A Table is texts by name.
type Table map[string]Text

// Read reads the tables whose paths match. An error says the file, the line and the column.
func Read(files fs.FS, pattern string) (Table, error) {
	all := Table{}
	paths, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		table, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		if column, line, why := all.add(string(table)); why != "" {
			return nil, fmt.Errorf("%s:%d:%d: %s", path, line, column, why)
		}
	}
	return all, nil
}

// add adds the rows of a table. why says what is wrong at a column of a line, both from 1 on.
func (t Table) add(table string) (column, line int, why string) {
	before := ""
	for row := range strings.Lines(table) {
		line++
		cells := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		name := cells[0]
		if len(cells) != 3 || !strings.HasSuffix(row, "\n") {
			return 1, line, "a row is a name and two texts, with tabs between them"
		}
		if _, twice := t[name]; twice || name <= before {
			return 1, line, name + " is not in order, or is there twice"
		}
		column = len(name) + 2
		for i, text := range cells[1:] {
			read, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
			if err != nil || text == "" {
				return column, line, "not a text"
			}
			cells[1+i], column = read, column+len(text)+1
		}
		t[name], before = Text{cells[1], cells[2]}, name
	}
	return 0, 0, ""
}

// In returns the language that has a code.
func (t Table) In(code string) Language { return Language{code, t} }

// A Language is what a page is written in.
type Language struct {
	Code  string // "es" or "en"
	table Table
}

func (l Language) String() string { return l.Code }

// Has reports whether there is a text of a name.
func (l Language) Has(name string) bool { _, ok := l.table[name]; return ok }

// Text is the text of a name, with its arguments. A name that nothing has panics.
func (l Language) Text(name string, args ...any) string {
	row, ok := l.table[name]
	if !ok {
		panic("no text " + name)
	}
	text := row.ES
	if l.Code == "en" {
		text = row.EN
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// Accepted is the first language of a header Accept-Language that tables have; "es" without.
func Accepted(header string) string {
	for one := range strings.SplitSeq(header, ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(one), ";")
		switch base, _, _ := strings.Cut(strings.ToLower(tag), "-"); base {
		case "es", "en":
			return base
		}
	}
	return "es"
}
