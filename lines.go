package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The records of a CSV file.

// A csvLine is one record, which may go over several lines.
type csvLine struct {
	number int // of its first line
	fields []string
	wrong  string // why it cannot be read; "": it can. If it is no CSV, fields holds the raw line
}

// A lineReader reads CSV so that one stray quotation mark does not swallow the
// rest of the file. A quoted field may go on over a few lines; if it does not end
// there, only its first line is wrong.
type lineReader struct {
	in     *bufio.Reader
	comma  rune     // between fields
	ahead  []string // lines read and not yet used
	number int      // of the last line used
}

// maxFieldLines bounds the lines of one record.
const maxFieldLines = 20

// separators are those that may stand between fields, the likeliest first.
var separators = []rune{',', ';', '\t'}

func newLineReader(in *bufio.Reader) *lineReader { return &lineReader{in: in, comma: ','} }

// header reads the first record that has a cell. Its separator is the one with which score
// is highest, or else the one with the most fields. Excel may name it in a line before: sep=;
func (l *lineReader) header(score func([]string) int) ([]string, error) {
	text, n, err := l.next()
	if err != nil {
		return nil, err
	}
	tried := separators
	if named, ok := strings.CutPrefix(strings.ToLower(strings.TrimRight(text, "\r\n")), "sep="); ok && utf8.RuneCountInString(named) == 1 {
		r, _ := utf8.DecodeRuneInString(named)
		tried = []rune{r}
		l.use(n)
		if text, n, err = l.next(); err != nil {
			return nil, err
		}
	}
	for {
		fields, _ := l.likeliest(text, tried, score)
		l.use(n)
		if n == 0 || fields == nil || !isBlank(fields) {
			return fields, nil
		}
		if text, n, err = l.next(); err != nil {
			return nil, err
		}
	}
}

// likeliest splits a record at the separator that gives the most points, and keeps that
// one for the records that follow.
func (l *lineReader) likeliest(text string, tried []rune, score func([]string) int) (fields []string, points int) {
	most := -1
	for _, comma := range tried {
		try := lineReader{comma: comma}
		list, err := try.split(text)
		if err != nil {
			continue
		}
		if n := score(list); 1000*n+len(list) > most {
			fields, points, most, l.comma = list, n, 1000*n+len(list), comma
		}
	}
	return fields, points
}

// isBlank reports whether a record has no cell.
func isBlank(fields []string) bool {
	return !slices.ContainsFunc(fields, func(cell string) bool { return trimBlanks(cell) != "" })
}

// record reads the next record and skips blank lines before it.
func (l *lineReader) record() (csvLine, error) {
	text, n, err := l.next()
	if err != nil {
		return csvLine{}, err
	}
	first := l.number + 1
	if n > 0 {
		if fields, err := l.split(text); err == nil {
			l.use(n)
			return csvLine{number: first, fields: fields}, nil
		}
	}
	text = strings.TrimRight(l.ahead[0], "\r\n")
	l.use(1)
	if fields := strings.Split(text, "\t"); l.comma == '\t' && !slices.ContainsFunc(fields, quotes) {
		return csvLine{number: first, fields: fields}, nil // Google Sheets quotes nothing there
	}
	return csvLine{number: first, fields: []string{text}, wrong: "no es CSV válido: hay comillas mal puestas"}, nil
}

// quotes reports whether a field begins as a quoted one does.
func quotes(field string) bool { return strings.HasPrefix(field, `"`) }

// next returns the text of the next record and the number of its lines, 0 if its
// quotation marks do not match. It skips blank lines and does not use the others.
func (l *lineReader) next() (text string, lines int, err error) {
	for {
		if text, err = l.peek(0); err != nil {
			return "", 0, err
		}
		if strings.TrimSpace(text) != "" {
			break
		}
		l.use(1)
	}
	record, quotes := "", 0
	for n := range maxFieldLines {
		text, err := l.peek(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", 0, err
		}
		record += text
		if quotes += strings.Count(text, `"`); quotes%2 == 0 {
			return record, n + 1, nil
		}
	}
	return record, 0, nil
}

// split returns the fields of a record.
func (l *lineReader) split(record string) ([]string, error) {
	if !strings.Contains(record, `"`) && slices.Contains(separators, l.comma) {
		return strings.Split(strings.TrimRight(record, "\r\n"), string(l.comma)), nil
	}
	fields, err := l.parse(record)
	if err != nil {
		if quoted := quoteTexts(record, l.comma); quoted != record {
			return l.parse(quoted)
		}
	}
	return fields, err
}

func (l *lineReader) parse(record string) ([]string, error) {
	in := csv.NewReader(strings.NewReader(record))
	in.Comma = l.comma
	return in.Read()
}

// quoteTexts quotes cells such as ="0012", which people write so that a spreadsheet keeps
// the zeros.
func quoteTexts(record string, comma rune) string {
	var out strings.Builder
	for rest := record; ; {
		cell := bareText.FindString(rest)
		if end := rest[len(cell):]; cell != "" && (strings.Trim(end, "\r\n") == "" || strings.HasPrefix(end, string(comma))) {
			out.WriteString(`"` + strings.ReplaceAll(cell, `"`, `""`) + `"`)
			rest = end
		}
		at := strings.IndexRune(rest, comma)
		if at < 0 {
			out.WriteString(rest)
			return out.String()
		}
		at += utf8.RuneLen(comma)
		out.WriteString(rest[:at])
		rest = rest[at:]
	}
}

// bareText matches a cell such as ="0012" at its beginning.
var bareText = regexp.MustCompile(`^="[^"]*"`)

// peek returns line n of those not yet used, counted from 0.
func (l *lineReader) peek(n int) (string, error) {
	for len(l.ahead) <= n {
		text, err := l.line()
		if err != nil {
			return "", err
		}
		l.ahead = append(l.ahead, text)
	}
	return l.ahead[n], nil
}

// line reads a line with its end: LF, CRLF, or CR as Macintosh once wrote it.
func (l *lineReader) line() (string, error) {
	var line []byte
	for {
		if _, err := l.in.Peek(1); err != nil {
			if err == io.EOF && len(line) > 0 {
				return string(line), nil
			}
			return "", err
		}
		chunk, _ := l.in.Peek(l.in.Buffered())
		n := bytes.IndexAny(chunk, "\r\n") + 1
		if n == 0 {
			line = append(line, chunk...)
			l.in.Discard(len(chunk))
			continue
		}
		line = append(line, chunk[:n]...)
		l.in.Discard(n)
		if line[len(line)-1] == '\r' {
			if next, _ := l.in.Peek(1); string(next) == "\n" {
				line = append(line, '\n')
				l.in.Discard(1)
			}
		}
		return string(line), nil
	}
}

func (l *lineReader) use(n int) {
	l.ahead = l.ahead[n:]
	l.number += n
}
