package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// The encodings that spreadsheets write: UTF-8, UTF-16 and Windows-1252.

// An encoding says how the bytes of a file spell its text.
type encoding int

const (
	encodingUTF8 encoding = iota
	encodingUTF16LE
	encodingUTF16BE
	encodingWindows1252
)

const ( // byte order marks
	markUTF16LE = "\xff\xfe"
	markUTF16BE = "\xfe\xff"
)

// startLength is how much of a file that cannot be read twice decides its encoding.
const startLength = 1 << 20

// A decodedFile is the text of a file in UTF-8, without a byte order mark.
type decodedFile struct {
	*bufio.Reader
	plain bool // the file itself is UTF-8 without a mark
}

// newDecodedFile finds out the encoding of a file. A byte order mark names it. Without
// one, zeros at every other byte mean UTF-16, and text that is not UTF-8 is
// Windows-1252. For the latter a file that can be read twice is read to its end.
func newDecodedFile(r io.Reader) (*decodedFile, error) {
	in := bufio.NewReaderSize(r, startLength)
	start, err := in.Peek(startLength)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(start, []byte(markUTF8)):
		in.Discard(len(markUTF8))
		return &decodedFile{Reader: in}, nil
	case bytes.HasPrefix(start, []byte(markUTF16LE)):
		in.Discard(len(markUTF16LE))
		return decodedFrom(in, encodingUTF16LE), nil
	case bytes.HasPrefix(start, []byte(markUTF16BE)):
		in.Discard(len(markUTF16BE))
		return decodedFrom(in, encodingUTF16BE), nil
	}
	var guess spelling
	guess.add(start)
	if seeker, ok := r.(io.Seeker); ok && len(start) == startLength && guess.encoding() == encodingUTF8 {
		if in, err = guessRest(&guess, in, r, seeker); err != nil {
			return nil, err
		}
	}
	if e := guess.encoding(); e != encodingUTF8 {
		return decodedFrom(in, e), nil
	}
	return &decodedFile{in, true}, nil
}

// guessRest reads a file to its end and returns a reader of all of it. If the file
// cannot be read twice, nothing has been read.
func guessRest(guess *spelling, in *bufio.Reader, r io.Reader, seeker io.Seeker) (*bufio.Reader, error) {
	at, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return in, nil
	}
	begin := at - int64(in.Buffered())
	for chunk := make([]byte, startLength); ; {
		n, err := io.ReadFull(r, chunk)
		guess.add(chunk[:n])
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	_, err = seeker.Seek(begin, io.SeekStart)
	return bufio.NewReaderSize(r, startLength), err
}

// A spelling counts what tells encodings apart.
type spelling struct {
	zeros   [2]int // at even and at odd places
	bytes   int
	longer  int // characters of several bytes in UTF-8
	invalid int // bytes that are no UTF-8
	rest    []byte
}

func (s *spelling) add(b []byte) {
	b = append(s.rest, b...)
	for utf8.FullRune(b) {
		if b[0] == 0 {
			s.zeros[s.bytes%2]++
		}
		r, n := utf8.DecodeRune(b)
		switch {
		case n > 1:
			s.longer++
		case r == utf8.RuneError:
			s.invalid++
		}
		b = b[n:]
		s.bytes += n
	}
	s.rest = bytes.Clone(b)
}

// encoding is the most likely one. A file of UTF-8 may have a few broken characters; in
// one of Windows-1252 few letters with an accent look like UTF-8.
func (s *spelling) encoding() encoding {
	switch most := s.bytes / 5; {
	case s.zeros[1] > most:
		return encodingUTF16LE
	case s.zeros[0] > most:
		return encodingUTF16BE
	case s.invalid > s.longer:
		return encodingWindows1252
	}
	return encodingUTF8
}

func decodedFrom(in *bufio.Reader, e encoding) *decodedFile {
	return &decodedFile{Reader: bufio.NewReader(&decoder{in: in, encoding: e})}
}

// A decoder reads text in UTF-16 or Windows-1252 as UTF-8. What cannot be read becomes
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
	if d.encoding == encodingWindows1252 {
		b, err := d.in.ReadByte()
		if 0x80 <= b && b < 0xa0 {
			return windows1252[b-0x80], err
		}
		return rune(b), err
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

// windows1252 are the characters of the bytes from 0x80 to 0x9f. Five of them are
// control characters, which no text may have.
var windows1252 = [32]rune{
	'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8d, 'Ž', 0x8f,
	0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9d, 'ž', 'Ÿ',
}
