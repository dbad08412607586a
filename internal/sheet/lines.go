package sheet

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

// A Record is one record, which may go over several lines.
type Record struct {
	Number int // of its first line
	Fields []string
	Broken bool // its quotation marks do not match: Fields holds the raw line
}

// A Reader reads CSV so that one stray quotation mark does not swallow the
// rest of the file. A quoted field may go on over a few lines; if it does not end
// there, only its first line is wrong.
type Reader struct {
	Comma  rune // between fields
	in     *bufio.Reader
	ahead  []string // lines read and not yet used
	number int      // of the last line used
}

// MaxLines bounds the lines of one record.
const MaxLines = 20

// separators are those that may stand between fields, the likeliest first.
var separators = []rune{',', ';', '\t'}

// NewReader returns a Reader whose fields are separated by commas until Header finds another separator.
func NewReader(in *bufio.Reader) *Reader { return &Reader{in: in, Comma: ','} }

// Header reads the first record that has a cell. Its separator is the one with which score
// is highest, or else the one with the most fields. Excel may name it in a line before: sep=;
func (l *Reader) Header(score func([]string) int) ([]string, error) {
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
		if n == 0 || fields == nil || !IsBlank(fields) {
			return fields, nil
		}
		if text, n, err = l.next(); err != nil {
			return nil, err
		}
	}
}

// maxTitleLines bounds how far below the first line the header is looked for.
const maxTitleLines = 20

// HeaderBelow returns the first of the next lines whose score is above least, and its number;
// 0 if there is none.
func (l *Reader) HeaderBelow(least int, score func([]string) int) (number int, fields []string) {
	for range maxTitleLines {
		text, n, err := l.next()
		if err != nil || n == 0 {
			break
		}
		if fields, points := l.likeliest(text, separators, score); points > least {
			return l.number + 1, fields
		}
		l.use(n)
	}
	return 0, nil
}

// Buffered is how many bytes of the text have been read and are not in a record yet, but for lines
// that a record may go on in.
func (l *Reader) Buffered() int { return l.in.Buffered() }

// likeliest splits a record at the separator that gives the most points, and keeps that
// one for the records that follow.
func (l *Reader) likeliest(text string, tried []rune, score func([]string) int) (fields []string, points int) {
	most := -1
	for _, comma := range tried {
		try := Reader{Comma: comma}
		list, err := try.split(text)
		if err != nil {
			continue
		}
		if n := score(list); 1000*n+len(list) > most {
			fields, points, most, l.Comma = list, n, 1000*n+len(list), comma
		}
	}
	return fields, points
}

// IsBlank reports whether a record has no cell.
func IsBlank(fields []string) bool {
	return !slices.ContainsFunc(fields, func(cell string) bool { return trim(cell) != "" })
}

// Record reads the next record and skips blank lines before it.
func (l *Reader) Record() (Record, error) {
	text, n, err := l.next()
	if err != nil {
		return Record{}, err
	}
	first := l.number + 1
	if n > 0 {
		if fields, err := l.split(text); err == nil {
			l.use(n)
			return Record{Number: first, Fields: fields}, nil
		}
	}
	text = strings.TrimRight(l.ahead[0], "\r\n")
	l.use(1)
	if fields := strings.Split(text, "\t"); l.Comma == '\t' && !slices.ContainsFunc(fields, quotes) {
		return Record{Number: first, Fields: fields}, nil // Google Sheets quotes nothing there
	}
	return Record{Number: first, Fields: []string{text}, Broken: true}, nil
}

// quotes reports whether a field begins as a quoted one does.
func quotes(field string) bool { return strings.HasPrefix(field, `"`) }

// next returns the text of the next record and the number of its lines, 0 if its
// quotation marks do not match. It skips blank lines and does not use the others.
func (l *Reader) next() (text string, lines int, err error) {
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
	for n := range MaxLines {
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
func (l *Reader) split(record string) ([]string, error) {
	if !strings.Contains(record, `"`) && slices.Contains(separators, l.Comma) {
		return strings.Split(strings.TrimRight(record, "\r\n"), string(l.Comma)), nil
	}
	fields, err := l.parse(record)
	if err != nil {
		if quoted := quoteTexts(record, l.Comma); quoted != record {
			return l.parse(quoted)
		}
	}
	return fields, err
}

func (l *Reader) parse(record string) ([]string, error) {
	in := csv.NewReader(strings.NewReader(record))
	in.Comma = l.Comma
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
func (l *Reader) peek(n int) (string, error) {
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
func (l *Reader) line() (string, error) {
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

func (l *Reader) use(n int) {
	l.ahead = l.ahead[n:]
	l.number += n
}
