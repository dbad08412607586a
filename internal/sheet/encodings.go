package sheet

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Reading a file as UTF-8, whatever its encoding.

const ( // byte order marks
	markUTF16LE = "\xff\xfe"
	markUTF16BE = "\xfe\xff"
)

// MarkUTF8 is the byte order mark by which a spreadsheet recognizes UTF-8. CSV that is
// written for one begins with it.
const MarkUTF8 = "\xef\xbb\xbf"

// What is no text of a spreadsheet.
var (
	ErrOpenDocument = errors.New("the file is a workbook of LibreOffice")
	ErrWorkbook     = errors.New("the file is a workbook of Excel")
	ErrMarkup       = errors.New("the file is a web page or XML")
)

// A MarkError says that a file's byte order mark is not of the encoding that was named.
type MarkError struct{ Marked, Named Encoding }

func (e *MarkError) Error() string {
	return fmt.Sprintf("the file has the mark of %s and is said to be in %s", e.Marked, e.Named)
}

// A Text is the text of a file in UTF-8, without a byte order mark.
type Text struct {
	*bufio.Reader
	Encoding Encoding // of the file
	Plain    bool     // the file itself is UTF-8 without a mark
}

// Decode reads a file from its beginning. A byte order mark names the encoding.
// Without one it is e or, if that is unknown, found out by reading the file to its end.
func Decode(r io.ReadSeeker, e Encoding) (*Text, error) {
	start, err := startOf(r)
	if err != nil {
		return nil, err
	}
	mark, marked := "", Unknown
	switch {
	case bytes.HasPrefix(start, []byte(MarkUTF8)):
		mark, marked = MarkUTF8, UTF8
	case bytes.HasPrefix(start, []byte(markUTF16LE)):
		mark, marked = markUTF16LE, UTF16LE
	case bytes.HasPrefix(start, []byte(markUTF16BE)):
		mark, marked = markUTF16BE, UTF16BE
	}
	switch {
	case marked != Unknown && e != Unknown && e.String() != marked.String():
		return nil, &MarkError{marked, e}
	case marked != Unknown:
		e = marked
	case e == Unknown || e == UTF16LE:
		if e, err = encodingOf(r, e); err != nil {
			return nil, err
		}
	}
	if _, err := r.Seek(int64(len(mark)), io.SeekStart); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(r, chunkLength)
	if e != UTF8 {
		in = bufio.NewReader(&decoder{in: in, encoding: e})
	}
	return &Text{in, e, e == UTF8 && mark == ""}, nil
}

// startOf returns the first bytes of a file, which tell a workbook from a text.
func startOf(r io.ReadSeeker) ([]byte, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	start := make([]byte, 100)
	n, err := io.ReadFull(r, start)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	start = start[:n]
	switch {
	case bytes.HasPrefix(start, []byte("PK\x03\x04")) && bytes.Contains(start, []byte("opendocument")):
		return nil, ErrOpenDocument
	case bytes.HasPrefix(start, []byte("PK\x03\x04")), bytes.HasPrefix(start, []byte("\xd0\xcf\x11\xe0")):
		return nil, ErrWorkbook
	case bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(start, []byte(MarkUTF8)), " \t\r\n"), []byte("<")): // some programs call it .xls
		return nil, ErrMarkup
	}
	return start, nil
}

// encodingOf finds out the encoding of a file without a mark. For UTF-16, named by a
// user, it finds out the order of bytes.
func encodingOf(r io.ReadSeeker, named Encoding) (Encoding, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return Unknown, err
	}
	s, err := spellingOf(r)
	if err != nil {
		return Unknown, err
	}
	e := s.encoding()
	if named == UTF16LE {
		if e == UTF16BE {
			return e, nil
		}
		return named, nil
	}
	if e != Windows1252 {
		return e, nil
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return Unknown, err
	}
	return e, checkWindows1252(r)
}

// A decoder reads text in UTF-16 or in single bytes as UTF-8. What cannot be read becomes
// the replacement character.
type decoder struct {
	in       *bufio.Reader
	encoding Encoding
	room     []byte // backs out
	out      []byte // decoded and not yet read
	ahead    uint16 // a unit of UTF-16 to be read again, if it is not 0
}

func (d *decoder) Read(p []byte) (int, error) {
	if len(d.out) == 0 {
		d.out = d.room[:0]
		for len(d.out) < 4096 {
			r, err := d.next()
			if err != nil {
				if len(d.out) == 0 {
					return 0, err
				}
				break
			}
			d.out = utf8.AppendRune(d.out, r)
		}
		d.room = d.out
	}
	n := copy(p, d.out)
	d.out = d.out[n:]
	return n, nil
}

func (d *decoder) next() (rune, error) {
	if d.encoding >= Windows1252 {
		b, err := d.in.ReadByte()
		return d.encoding.rune(b), err
	}
	first, err := d.unit()
	if err != nil || !utf16.IsSurrogate(rune(first)) {
		return rune(first), err
	}
	second, err := d.unit()
	if err == io.EOF {
		return utf8.RuneError, nil
	}
	if err != nil {
		return 0, err
	}
	r := utf16.DecodeRune(rune(first), rune(second))
	if r == utf8.RuneError {
		d.ahead = second
	}
	return r, nil
}

// unit reads a unit of UTF-16. A last byte alone is a replacement character.
func (d *decoder) unit() (uint16, error) {
	if u := d.ahead; u != 0 {
		d.ahead = 0
		return u, nil
	}
	var pair [2]byte
	switch _, err := io.ReadFull(d.in, pair[:]); {
	case err == io.ErrUnexpectedEOF:
		return utf8.RuneError, nil
	case err != nil:
		return 0, err
	case d.encoding == UTF16BE:
		return binary.BigEndian.Uint16(pair[:]), nil
	}
	return binary.LittleEndian.Uint16(pair[:]), nil
}
