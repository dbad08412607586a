package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Reading a file as UTF-8, whatever its encoding.

const ( // byte order marks
	markUTF16LE = "\xff\xfe"
	markUTF16BE = "\xfe\xff"
)

// A decodedFile is the text of a file in UTF-8, without a byte order mark.
type decodedFile struct {
	*bufio.Reader
	encoding encoding // of the file
	plain    bool     // the file itself is UTF-8 without a mark
}

// newDecodedFile reads a file from its beginning. A byte order mark names the encoding.
// Without one it is e or, if that is unknown, found out by reading the file to its end.
func newDecodedFile(r io.ReadSeeker, e encoding) (*decodedFile, error) {
	start, err := startOf(r)
	if err != nil {
		return nil, err
	}
	mark, marked := "", encodingUnknown
	switch {
	case bytes.HasPrefix(start, []byte(markUTF8)):
		mark, marked = markUTF8, encodingUTF8
	case bytes.HasPrefix(start, []byte(markUTF16LE)):
		mark, marked = markUTF16LE, encodingUTF16LE
	case bytes.HasPrefix(start, []byte(markUTF16BE)):
		mark, marked = markUTF16BE, encodingUTF16BE
	}
	switch {
	case marked != encodingUnknown && e != encodingUnknown && e.String() != marked.String():
		return nil, adminErrorf("el archivo tiene la marca de %s, y -encoding dice %s", marked, e)
	case marked != encodingUnknown:
		e = marked
	case e == encodingUnknown || e == encodingUTF16LE:
		if e, err = encodingOf(r, e); err != nil {
			return nil, err
		}
	}
	if _, err := r.Seek(int64(len(mark)), io.SeekStart); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(r, chunkLength)
	if e != encodingUTF8 {
		in = bufio.NewReader(&decoder{in: in, encoding: e})
	}
	return &decodedFile{in, e, e == encodingUTF8 && mark == ""}, nil
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
		return nil, adminErrorf("es un libro de LibreOffice: guárdalo como CSV")
	case bytes.HasPrefix(start, []byte("PK\x03\x04")), bytes.HasPrefix(start, []byte("\xd0\xcf\x11\xe0")):
		return nil, adminErrorf("es un libro de Excel: guárdalo como CSV")
	case bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(start, []byte(markUTF8)), " \t\r\n"), []byte("<")): // some programs call it .xls
		return nil, adminErrorf("es una página web o XML: ábrelo en la hoja de cálculo y guárdalo como CSV")
	}
	return start, nil
}

// encodingOf finds out the encoding of a file without a mark. For UTF-16, named by the
// command line, it finds out the order of bytes.
func encodingOf(r io.ReadSeeker, named encoding) (encoding, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return encodingUnknown, err
	}
	s, err := spellingOf(r)
	if err != nil {
		return encodingUnknown, err
	}
	e := s.encoding()
	if named == encodingUTF16LE {
		if e == encodingUTF16BE {
			return e, nil
		}
		return named, nil
	}
	if e != encodingWindows1252 {
		return e, nil
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return encodingUnknown, err
	}
	return e, checkWindows1252(r)
}

// A decoder reads text in UTF-16 or in single bytes as UTF-8. What cannot be read becomes
// the replacement character.
type decoder struct {
	in       *bufio.Reader
	encoding encoding
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
	if d.encoding >= encodingWindows1252 {
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
	case d.encoding == encodingUTF16BE:
		return binary.BigEndian.Uint16(pair[:]), nil
	}
	return binary.LittleEndian.Uint16(pair[:]), nil
}
