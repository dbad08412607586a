// Package pack compresses texts in JSON that have many names, ids and moments in common, to
// about a third of their size. Unpacking gives the same bytes again, for any text.
package pack

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
)

// The text is cut at its quotation marks. Each piece becomes one byte that
// says what kind it is, and what that kind needs:
//
//	anyPiece    → any other piece: its length as a varint, then its bytes
//	idPiece     → an id: 16 bytes
//	momentPiece → a moment: its 17 digits as a number, 8 bytes
//	wordPiece+n → the word n
const (
	anyPiece = iota
	idPiece
	momentPiece
	wordPiece
)

// ErrDamaged refuses to unpack what was not packed.
var ErrDamaged = errors.New("pack: not a packed text")

// Words are the pieces that texts often contain.
type Words struct {
	list   []string
	places map[string]byte
	short  [256]byte // the places of the words of one byte, which are half of all pieces
}

// NewWords returns the words of a list. A piece is stored as its index there: add words only
// at the end, and never move or change one. It panics if two are alike, or there are too many.
func NewWords(list []string) *Words {
	w := &Words{list: list, places: make(map[string]byte, len(list))}
	for n, word := range list {
		w.places[word] = byte(wordPiece + n)
		if len(word) == 1 {
			w.short[word[0]] = byte(wordPiece + n)
		}
	}
	if len(w.places) != len(list) || wordPiece+len(list) > 256 {
		panic("pack: two words are alike, or there are too many")
	}
	return w
}

// Pack appends the packed text to b.
func (w *Words) Pack(b, text []byte) []byte {
	for {
		end := bytes.IndexByte(text, '"')
		if end < 0 {
			return w.piece(b, text)
		}
		b, text = w.piece(b, text[:end]), text[end+1:]
	}
}

func (w *Words) piece(b, piece []byte) []byte {
	switch len(piece) {
	case 1:
		if place := w.short[piece[0]]; place != 0 {
			return append(b, place)
		}
	case len(idForm):
		if u, ok := parseID(piece); ok {
			return append(append(b, idPiece), u[:]...)
		}
	case len(momentForm):
		if digits, ok := momentDigits(piece); ok {
			return binary.BigEndian.AppendUint64(append(b, momentPiece), digits)
		}
	}
	if place, ok := w.places[string(piece)]; ok {
		return append(b, place)
	}
	b = binary.AppendUvarint(append(b, anyPiece), uint64(len(piece)))
	return append(b, piece...)
}

// Unpack returns the text that was packed.
func (w *Words) Unpack(packed []byte) ([]byte, error) {
	text := make([]byte, 0, 4*len(packed))
	for {
		if len(packed) == 0 {
			return nil, ErrDamaged
		}
		kind := packed[0]
		packed = packed[1:]
		switch {
		case kind == anyPiece:
			size, n := binary.Uvarint(packed)
			if n <= 0 || size > uint64(len(packed)-n) {
				return nil, ErrDamaged
			}
			packed = packed[n:]
			text, packed = append(text, packed[:size]...), packed[size:]
		case kind == idPiece && len(packed) >= 16:
			text, packed = appendID(text, packed[:16]), packed[16:]
		case kind == momentPiece && len(packed) >= 8:
			text, packed = appendMoment(text, binary.BigEndian.Uint64(packed)), packed[8:]
		case kind >= wordPiece && int(kind-wordPiece) < len(w.list):
			text = append(text, w.list[kind-wordPiece]...)
		default:
			return nil, ErrDamaged
		}
		if len(packed) == 0 {
			return text, nil
		}
		text = append(text, '"')
	}
}

const (
	idForm     = "00000000-0000-0000-0000-000000000000"
	momentForm = "0000-00-00T00:00:00.000Z"
)

// parseID reads a piece as long as idForm. The zero id is none, and neither is one in capitals.
func parseID(piece []byte) (u [16]byte, ok bool) {
	if piece[8] != '-' || piece[13] != '-' || piece[18] != '-' || piece[23] != '-' {
		return u, false
	}
	var bad byte
	for i, at := range [16]byte{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34} {
		hi, lo := hexDigits[piece[at]], hexDigits[piece[at+1]]
		bad |= hi | lo
		u[i] = hi<<4 | lo
	}
	return u, bad < 16 && u != [16]byte{}
}

// hexDigits are the values of the hexadecimal digits in lower case; 255: no digit.
var hexDigits = func() (values [256]byte) {
	for c := range values {
		values[c] = byte(strings.IndexByte("0123456789abcdef", byte(c)))
	}
	return values
}()

// appendID appends the id whose bytes parseID read.
func appendID(b, u []byte) []byte {
	from := 0
	for _, to := range [...]int{4, 6, 8, 10, 16} {
		if from > 0 {
			b = append(b, '-')
		}
		b, from = hex.AppendEncode(b, u[from:to]), to
	}
	return b
}

// momentDigits reads the digits of a piece as long as momentForm.
func momentDigits(piece []byte) (digits uint64, ok bool) {
	for i, c := range piece {
		switch {
		case momentForm[i] != '0' && c != momentForm[i], momentForm[i] == '0' && (c < '0' || c > '9'):
			return 0, false
		case momentForm[i] == '0':
			digits = 10*digits + uint64(c-'0')
		}
	}
	return digits, true
}

// appendMoment appends the moment whose digits momentDigits read.
func appendMoment(b []byte, digits uint64) []byte {
	b = append(b, momentForm...)
	s := b[len(b)-len(momentForm):]
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '0' {
			s[i] += byte(digits % 10)
			digits /= 10
		}
	}
	return b
}
