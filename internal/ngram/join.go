package ngram

import (
	"encoding/binary"
	"math/bits"
)

// A Found is a bitmap of the items of a block that were found.
type Found [Block / 64]uint64

// Add adds an offset.
func (f *Found) Add(offset uint16) { f[offset/64] |= 1 << (offset % 64) }

// Intersect keeps what the other one has too.
func (f *Found) Intersect(other *Found) {
	for i := range f {
		f[i] &= other[i]
	}
}

// Count returns how many there are.
func (f *Found) Count() (n uint64) {
	for _, word := range f {
		n += uint64(bits.OnesCount64(word))
	}
	return n
}

func (f *Found) join(s set) {
	if s.isBitmap() {
		for i := range f {
			f[i] |= binary.LittleEndian.Uint64(s[8*i:])
		}
		return
	}
	for i := range len(s) / 2 {
		f.Add(s.offset(i) % Block)
	}
}

// AddAll adds the items in one gram's postings, at places from first on.
func (f *Found) AddAll(value []byte, first int) error {
	for len(value) > 0 {
		s, rest, err := cut(value)
		if err != nil {
			return err
		}
		if value = rest; s.place >= first {
			f.join(s.set)
		}
	}
	return nil
}

// A Piece is a gram of a text that is looked for.
type Piece struct {
	Gram   string
	Offset int // from the beginning of the text
}

// Cover returns the grams that prove that a text holds this one: one for every three characters,
// and the last. It returns none for less than three characters.
func Cover(text string) (list []Piece) {
	runes := []rune(text)
	if len(runes) < 3 {
		return nil
	}
	for offset := 0; offset < len(runes); offset += 3 {
		offset = min(offset, len(runes)-3)
		list = append(list, Piece{string(runes[offset : offset+3]), offset})
	}
	return list
}

// A Joiner finds the items of a block that have several grams at their distances.
type Joiner struct {
	first         int
	begun         bool
	before, after []placed // where the text may begin, by the grams looked at so far
	room          []byte   // for the sets of after
}

// Begin begins to look for a text at places from first on.
func (j *Joiner) Begin(first int) { j.first, j.begun, j.room = first, false, j.room[:0] }

// Join keeps the items that have one more gram, at an offset from the beginning of the text. It
// reports whether any are left.
func (j *Joiner) Join(value []byte, offset int) (left bool, err error) {
	j.before, j.after = j.after, j.before[:0]
	at := 0 // in before
	for len(value) > 0 {
		s, rest, err := cut(value)
		if err != nil {
			return false, err
		}
		value = rest
		if s.place -= offset; s.place < j.first {
			continue
		}
		if j.begun {
			for at < len(j.before) && j.before[at].place < s.place {
				at++
			}
			if at == len(j.before) {
				break
			}
			if j.before[at].place != s.place {
				continue
			}
			s.set = j.both(j.before[at].set, s.set)
		}
		if len(s.set) > 0 {
			j.after = append(j.after, s)
		}
	}
	j.begun = true
	return len(j.after) > 0, nil
}

// AddTo adds the items that are left.
func (j *Joiner) AddTo(f *Found) {
	for _, s := range j.after {
		f.join(s.set)
	}
}

// both is the intersection of two sets. It may be a part of j.room, which is overwritten after
// Begin.
func (j *Joiner) both(a, b set) set {
	if a.isBitmap() && b.isBitmap() {
		common := make(set, bitmapBytes)
		for i := 0; i < bitmapBytes; i += 8 {
			binary.LittleEndian.PutUint64(common[i:], binary.LittleEndian.Uint64(a[i:])&binary.LittleEndian.Uint64(b[i:]))
		}
		return common
	}
	start := len(j.room)
	switch {
	case b.isBitmap():
		a, b = b, a
		fallthrough
	case a.isBitmap():
		for i := range len(b) / 2 {
			if offset := b.offset(i) % Block; a[offset/8]&(1<<(offset%8)) != 0 {
				j.room = binary.LittleEndian.AppendUint16(j.room, offset)
			}
		}
	default:
		for len(a) > 0 && len(b) > 0 {
			switch x, y := a.offset(0), b.offset(0); {
			case x < y:
				a = a[2:]
			case x > y:
				b = b[2:]
			default:
				j.room = binary.LittleEndian.AppendUint16(j.room, x)
				a, b = a[2:], b[2:]
			}
		}
	}
	return j.room[start:len(j.room):len(j.room)]
}
