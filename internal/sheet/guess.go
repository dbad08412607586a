package sheet

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Finding out the encoding of a file without a mark. UTF-8 and UTF-16 show in their bytes.
// Encodings of single bytes differ only in what their words look like. That is a guess, so a
// file that may be in another one than Windows-1252 is refused until somebody says which.

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

// encoding is the most likely one, Windows-1252 for all encodings of single bytes. A file
// of UTF-8 may have a few broken characters; in one of single bytes few letters with an
// accent look like UTF-8.
func (s *spelling) encoding() Encoding {
	switch most := s.bytes / 5; {
	case s.zeros[1] > most:
		return UTF16LE
	case s.zeros[0] > most:
		return UTF16BE
	case s.invalid > s.longer:
		return Windows1252
	}
	return UTF8
}

// spellingOf reads a file to its end.
func spellingOf(r io.Reader) (*spelling, error) {
	s := new(spelling)
	for chunk := make([]byte, chunkLength); ; {
		n, err := io.ReadFull(r, chunk)
		s.add(chunk[:n])
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// chunkLength is how much of a file is read at once.
const chunkLength = 1 << 20

// A GuessError says that a file without a mark may be in an encoding other than Windows-1252.
type GuessError struct {
	Encoding    Encoding
	Word        string // of the file, in Encoding
	Windows1252 string // the same word in Windows-1252
}

func (e *GuessError) Error() string {
	return fmt.Sprintf("the file may be in %s, where it says %q, or in windows-1252, where it says %q", e.Encoding, e.Word, e.Windows1252)
}

// checkWindows1252 reads a file to its end. It returns an error if the words of the file
// look better in another encoding of single bytes than in Windows-1252.
func checkWindows1252(r io.Reader) error {
	others := []Encoding{IBM850, IBM437, Macintosh}
	points := make([]int, len(others)) // more than in Windows-1252
	sums := make([]int, len(others))
	samples := make([]string, len(others)) // the first word that looks better
	err := eachHighWord(bufio.NewReaderSize(r, chunkLength), func(word []byte) {
		plain := likeness(Windows1252.text(word), word)
		for i, e := range others {
			p := likeness(e.text(word), word)
			points[i] += p - plain
			sums[i] += p
			if p > plain && samples[i] == "" {
				samples[i] = string(word)
			}
		}
	})
	if err != nil {
		return err
	}
	best := 0
	for i := range others {
		if points[i] > points[best] {
			best = i
		}
	}
	if points[best] <= 0 || sums[best] <= 0 {
		return nil
	}
	e, word := others[best], []byte(samples[best])
	return &GuessError{e, string(e.text(word)), string(Windows1252.text(word))}
}

// eachHighWord calls fn with each run of letters and bytes from 0x80 on that has one of the latter.
func eachHighWord(in *bufio.Reader, fn func([]byte)) error {
	var word []byte
	high := false
	for {
		b, err := in.ReadByte()
		switch {
		case err == nil && b >= 0x80:
			high = true
			word = append(word, b)
			continue
		case err == nil && ('a' <= b|0x20 && b|0x20 <= 'z'):
			word = append(word, b)
			continue
		}
		if high {
			fn(word)
		}
		if word, high = word[:0], false; err != nil {
			if err == io.EOF {
				err = nil
			}
			return err
		}
	}
}

const (
	spanishLetters  = "áéíóúüñÁÉÍÓÚÜÑ"
	europeanLetters = "àâäãåæçèêëìîïðòôöõøùûýþßÿœšžÀÂÄÃÅÆÇÈÊËÌÎÏÐÒÔÖÕØÙÛÝÞŸŒŠŽ"
)

// likeness says how much a word that was read from bytes looks like one of Spanish, or
// else of another language of Europe: each character from bytes from 0x80 on counts.
func likeness(text []rune, word []byte) (points int) {
	for i, r := range text {
		if word[i] >= 0x80 {
			points += likenessAt(text, i, r)
		}
	}
	return points
}

func likenessAt(text []rune, i int, r rune) int {
	before, after := text[:i], text[i+1:]
	has := func(list string) bool { return strings.ContainsRune(list, r) }
	isFirst, isLast := !hasLetter(before), !hasLetter(after)
	switch {
	case r == utf8.RuneError:
		return -4
	case has(spanishLetters), has(europeanLetters):
		switch {
		case len(text) == 1 && r != 'ó': // one letter is no word
			return 0
		case !caseFits(text, i):
			return -2
		case has(spanishLetters) && !(i == 0 && unicode.IsLower(r)): // names begin in upper case
			return 2
		}
		return 1
	case has("¿¡") && isFirst && len(after) > 0, has("ºª") && isLast:
		return 2
	case has("«“‘„") && isFirst, has("»”’…®™") && isLast, has("–—€°\u00a0") && len(text) == 1, has("·") && !isFirst && !isLast:
		return 1
	case has("’\u00a0"), has("¼½¾£§•") && len(text) == 1:
		return 0
	}
	return -2
}

func isLetter(r rune) bool { return unicode.IsLetter(r) && r != 'º' && r != 'ª' }

func hasLetter(text []rune) bool { return strings.ContainsFunc(string(text), isLetter) }

// caseFits reports whether the letters around place i are in such case as words are: maría,
// María or MARÍA, but not MaRía or MARía.
func caseFits(text []rune, i int) bool {
	from, to := i, i+1
	for from > 0 && isLetter(text[from-1]) {
		from--
	}
	for to < len(text) && isLetter(text[to]) {
		to++
	}
	if word, rest := string(text[from:to]), string(text[from+1:to]); rest != strings.ToLower(rest) {
		return word == strings.ToUpper(word)
	}
	return true
}
