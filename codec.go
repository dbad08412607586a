package main

import (
	"encoding/binary"
	"slices"
)

// Records that are written often are kept in a compact form: fields in a
// fixed order, without names. Whole numbers are varints (zig-zag where they
// may be negative). Texts are a length and UTF-8. Ids are 16 bytes; an optional
// id follows a byte that says whether it is there. A list is its length and its
// elements. A record begins with a byte for its version, so that a later sello
// can read what an earlier one wrote.

// A writer appends fields to a record.
type writer struct{ b []byte }

func (w *writer) byte(v byte) { w.b = append(w.b, v) }
func (w *writer) bool(v bool) {
	if v {
		w.byte(1)
	} else {
		w.byte(0)
	}
}
func (w *writer) uint(v uint64)     { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) int(v int64)       { w.b = binary.AppendVarint(w.b, v) }
func (w *writer) decimal(v decimal) { w.int(int64(v)) }
func (w *writer) instant(v instant) { w.int(int64(v)) }
func (w *writer) id(v id)           { w.b = append(w.b, v[:]...) }
func (w *writer) idOrNone(v id) {
	if v == (id{}) {
		w.byte(0)
		return
	}
	w.byte(1)
	w.id(v)
}
func (w *writer) text(v string) { w.uint(uint64(len(v))); w.b = append(w.b, v...) }

// word writes one of the words of a list, or none, as a byte. The file depends on the
// list's order.
func (w *writer) word(list []string, v string) {
	n := slices.Index(list, v)
	if n < 0 && v != "" {
		panic("no word to store: " + v)
	}
	w.byte(byte(n + 1))
}

func (w *writer) uints(v []uint64) {
	w.uint(uint64(len(v)))
	for _, x := range v {
		w.uint(x)
	}
}

var errRecord error = damagedError("a stored record cannot be read")

// A reader takes fields off a record in the order they were written. After
// a fault every field is zero and err is set; the caller checks it once, at the
// end. Texts outlive the transaction: the first text copies the rest of the
// record, and each text is a part of that copy.
type reader struct {
	b     []byte
	err   error
	texts string // the record from its first text on
}

func (r *reader) take(n uint64) []byte {
	if uint64(len(r.b)) < n {
		r.fail()
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) fail() { r.b, r.err = nil, errRecord }

func (r *reader) byte() byte {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) bool() bool { return r.byte() == 1 }

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) decimal() decimal { return decimal(r.int()) }
func (r *reader) instant() instant { return instant(r.int()) }

func (r *reader) text() string {
	n := r.uint()
	if n == 0 {
		return ""
	}
	return r.textOf(n)
}

// textOf is a text of so many bytes.
func (r *reader) textOf(n uint64) string {
	if r.texts == "" {
		r.texts = string(r.b)
	}
	start := len(r.texts) - len(r.b)
	if r.take(n) == nil {
		return ""
	}
	return r.texts[start : start+int(n)]
}

func (r *reader) word(list []string) string {
	switch n := int(r.byte()); {
	case n == 0:
		return ""
	case n <= len(list):
		return list[n-1]
	}
	r.fail()
	return ""
}

func (r *reader) id() (v id) {
	copy(v[:], r.take(16))
	return v
}

func (r *reader) idOrNone() (v id) {
	if r.byte() != 0 {
		v = r.id()
	}
	return v
}

// len reads the length of a list. No element is shorter than one byte, so a
// length beyond the rest of the record is a fault and allocates nothing.
func (r *reader) len() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

// uintsInto reads whole numbers. It uses room if that is large enough.
func (r *reader) uintsInto(room []uint64) []uint64 {
	n := r.len()
	if n == 0 {
		return nil
	}
	v := slices.Grow(room[:0], n)[:n]
	for i := range v {
		v[i] = r.uint()
	}
	return v
}

// done checks that the record was read whole.
func (r *reader) done() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail()
	}
	return r.err
}

// A coder writes a record's fields or reads them: each record has a method fields that goes
// through all of them, in the order that the file depends on. A field that is read is zero
// before.
type coder struct {
	reading bool
	w       writer
	r       reader
}

func (c *coder) bool(v *bool) {
	if c.reading {
		*v = c.r.bool()
	} else {
		c.w.bool(*v)
	}
}

func (c *coder) uint(v *uint64) {
	if c.reading {
		*v = c.r.uint()
	} else {
		c.w.uint(*v)
	}
}

func (c *coder) decimal(v *decimal) {
	if c.reading {
		*v = c.r.decimal()
	} else {
		c.w.decimal(*v)
	}
}

func (c *coder) instant(v *instant) {
	if c.reading {
		*v = c.r.instant()
	} else {
		c.w.instant(*v)
	}
}

// instantAfter keeps how much later a moment is than another one, which is often zero. The
// difference may overflow: reading overflows back.
func (c *coder) instantAfter(before instant, v *instant) {
	if c.reading {
		*v = before + c.r.instant()
	} else {
		c.w.instant(*v - before)
	}
}

func (c *coder) id(v *id) {
	if c.reading {
		*v = c.r.id()
	} else {
		c.w.id(*v)
	}
}

func (c *coder) idOrNone(v *id) {
	if c.reading {
		*v = c.r.idOrNone()
	} else {
		c.w.idOrNone(*v)
	}
}

func (c *coder) text(v *string) {
	if c.reading {
		*v = c.r.text()
	} else {
		c.w.text(*v)
	}
}

// word is one of the words of a list, or none, in a byte. The file depends on the list's
// order.
func (c *coder) word(list []string, v *string) {
	if c.reading {
		*v = c.r.word(list)
	} else {
		c.w.word(list, *v)
	}
}

func (c *coder) bytes(v *[]byte) {
	if c.reading {
		*v = []byte(c.r.text())
	} else {
		c.w.text(string(*v))
	}
}

// uints reads into the list's memory if that is large enough.
func (c *coder) uints(v *[]uint64) {
	if c.reading {
		*v = c.r.uintsInto(*v)
	} else {
		c.w.uints(*v)
	}
}

func (c *coder) decimals(v *[]decimal) {
	listField(c, v, func(d *decimal, c *coder) { c.decimal(d) })
}

// Fields of other types, which are encoded alike.

func byteField[T ~uint8](c *coder, v *T) {
	if c.reading {
		*v = T(c.r.byte())
	} else {
		c.w.byte(byte(*v))
	}
}

func uintField[T ~uint32 | ~int](c *coder, v *T) {
	if c.reading {
		*v = T(c.r.uint())
	} else {
		c.w.uint(uint64(*v))
	}
}

func intField[T ~int32 | ~int64](c *coder, v *T) {
	if c.reading {
		*v = T(c.r.int())
	} else {
		c.w.int(int64(*v))
	}
}

func textField[T ~string](c *coder, v *T) {
	if c.reading {
		*v = T(c.r.text())
	} else {
		c.w.text(string(*v))
	}
}

// listField is a list, whose elements have the fields that each goes through.
func listField[T any](c *coder, list *[]T, each func(*T, *coder)) {
	if !c.reading {
		c.w.uint(uint64(len(*list)))
	} else if n := c.r.len(); n > 0 {
		*list = make([]T, n)
	}
	for i := range *list {
		each(&(*list)[i], c)
	}
}

// optional reports whether the record has a field that it may lack. Such fields follow the
// others, each after its tag, in the order of their tags; a field that is absent is zero. So
// one can be added, and records that lack it stay as they are.
func (c *coder) optional(tag byte, present bool) bool {
	if !c.reading {
		if present {
			c.w.byte(tag)
		}
		return present
	}
	if len(c.r.b) == 0 || c.r.b[0] != tag {
		return false
	}
	c.r.b = c.r.b[1:]
	return true
}

// end is where optional fields end that something follows.
func (c *coder) end() {
	if !c.reading {
		c.w.byte(0)
	} else if c.r.byte() != 0 {
		c.r.fail()
	}
}

// A record is a value kept in compact form.
type record[T any] interface {
	*T
	fielded
}

type fielded interface{ fields(*coder) }

// appendRecord appends a record to b, which is empty.
func appendRecord(b []byte, v fielded) []byte {
	c := coder{w: writer{append(b, recordVersion)}}
	v.fields(&c)
	return c.w.b
}

// readingRecord checks a record's version and returns a coder that reads the rest. Its
// reader says what is wrong.
func readingRecord(value []byte) coder {
	c := coder{reading: true, r: reader{b: value}}
	if c.r.byte() != recordVersion {
		c.r.fail()
	}
	return c
}

// decodeRecord reads a record.
func decodeRecord[T any, P record[T]](value []byte) (*T, error) {
	both := new(struct { // one allocation
		v T
		c coder
	})
	both.c = readingRecord(value)
	P(&both.v).fields(&both.c)
	return &both.v, both.c.r.done()
}

// decodeInto reads a record into v, which is zero.
func decodeInto(value []byte, v fielded) error {
	c := readingRecord(value)
	v.fields(&c)
	return c.r.done()
}

const recordVersion = 1

// uintIn and uint32In read a number at the start of (the rest of) a key.

func uintIn(k []byte) uint64   { return binary.BigEndian.Uint64(k) }
func uint32In(k []byte) uint32 { return binary.BigEndian.Uint32(k) }

// numberValue is the value of a number or reference that is kept alone.
func numberValue(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
