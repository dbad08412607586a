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

var errRecord error = damagedError("a stored record cannot be read")

// A reader takes fields off a record in the order they were written. After
// a fault it reads zeros, and err says so; the caller asks once, at the
// end. Texts outlive the transaction: the first text copies the rest of the
// record, and each text is a part of that copy.
type reader struct {
	b      []byte
	texts  string // the record from its first text on
	failed bool
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

func (r *reader) fail() { r.b, r.failed = nil, true }

// err is errRecord after a fault.
func (r *reader) err() error {
	if r.failed {
		return errRecord
	}
	return nil
}

func (r *reader) byte() byte {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) bool() bool { return r.byte() == 1 }

func (r *reader) uint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 { // most are small
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v := r.uint()
	return int64(v>>1) ^ -int64(v&1)
}

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
	if len(r.b) > 0 {
		r.fail()
	}
	return r.err()
}

// A coder writes a record's fields or reads them: each record has a method fields that goes
// through all of them, in the order that the file depends on. It reads into a zero record,
// where word, listField and optional leave what is not there as it is.
type coder struct {
	reader  // if it writes, b is what was written
	reading bool
}

func (c *coder) putUint(v uint64) {
	if v < 0x80 {
		c.b = append(c.b, byte(v))
		return
	}
	c.b = binary.AppendUvarint(c.b, v)
}

func (c *coder) putInt(v int64) { c.putUint(uint64(v)<<1 ^ uint64(v>>63)) }

func (c *coder) putText(v string) { c.putUint(uint64(len(v))); c.b = append(c.b, v...) }

func (c *coder) bool(v *bool) {
	if c.reading {
		*v = c.reader.bool()
	} else if *v {
		c.b = append(c.b, 1)
	} else {
		c.b = append(c.b, 0)
	}
}

func (c *coder) uint(v *uint64) {
	if c.reading {
		*v = c.reader.uint()
	} else {
		c.putUint(*v)
	}
}

func (c *coder) decimal(v *decimal) {
	if c.reading {
		*v = decimal(c.reader.int())
	} else {
		c.putInt(int64(*v))
	}
}

func (c *coder) instant(v *instant) { c.instantAfter(0, v) }

// instantAfter keeps how much later a moment is than another one, which is often zero. The
// difference may overflow: reading overflows back.
func (c *coder) instantAfter(before instant, v *instant) {
	if c.reading {
		*v = before + instant(c.reader.int())
	} else {
		c.putInt(int64(*v - before))
	}
}

func (c *coder) id(v *id) { c.fixed(v[:]) }

// fixed is bytes whose number is known.
func (c *coder) fixed(v []byte) {
	if c.reading {
		copy(v, c.take(uint64(len(v))))
	} else {
		c.b = append(c.b, v...)
	}
}

// idOrNone is an id after a byte that says whether there is one.
func (c *coder) idOrNone(v *id) {
	there := *v != (id{})
	if c.bool(&there); there {
		c.id(v)
	}
}

func (c *coder) text(v *string) { textField(c, v) }

// word is one of the words of a list, or none, in a byte. The file depends on the list's
// order.
func (c *coder) word(list []string, v *string) {
	if !c.reading {
		n := slices.Index(list, *v)
		if n < 0 && *v != "" {
			panic("no word to store: " + *v)
		}
		c.b = append(c.b, byte(n+1))
		return
	}
	switch n := int(c.byte()); {
	case n > len(list):
		c.fail()
	case n > 0:
		*v = list[n-1]
	}
}

func (c *coder) bytes(v *[]byte) {
	if c.reading {
		*v = []byte(c.reader.text())
	} else {
		c.putUint(uint64(len(*v)))
		c.b = append(c.b, *v...)
	}
}

// uints reads into the memory of *v if that is large enough.
func (c *coder) uints(v *[]uint64) {
	if c.reading {
		*v = c.uintsInto(*v)
		return
	}
	c.putUint(uint64(len(*v)))
	for _, n := range *v {
		c.putUint(n)
	}
}

func (c *coder) decimals(v *[]decimal) {
	listField(c, v, func(d *decimal, c *coder) { c.decimal(d) })
}

// Fields of other types, which are encoded alike.

func byteField[T ~uint8](c *coder, v *T) {
	if c.reading {
		*v = T(c.byte())
	} else {
		c.b = append(c.b, byte(*v))
	}
}

func uintField[T ~uint32 | ~int](c *coder, v *T) {
	if c.reading {
		*v = T(c.reader.uint())
	} else {
		c.putUint(uint64(*v))
	}
}

func intField[T ~int32 | ~int64](c *coder, v *T) {
	if c.reading {
		*v = T(c.reader.int())
	} else {
		c.putInt(int64(*v))
	}
}

func textField[T ~string](c *coder, v *T) {
	if c.reading {
		*v = T(c.reader.text())
	} else {
		c.putText(string(*v))
	}
}

// listField is a list, whose elements have the fields that each goes through.
func listField[T any](c *coder, list *[]T, each func(*T, *coder)) {
	if !c.reading {
		c.putUint(uint64(len(*list)))
	} else if n := c.len(); n > 0 {
		*list = make([]T, n)
	}
	for i := range *list {
		each(&(*list)[i], c)
	}
}

// optional reports whether the record has a field that it may lack. Such fields follow the
// others, each after its tag, in the order of their tags; a field that is absent is zero. So
// a field can be added, and records without it stay as they are.
func (c *coder) optional(tag byte, present bool) bool {
	if !c.reading {
		if present {
			c.b = append(c.b, tag)
		}
		return present
	}
	if len(c.b) == 0 || c.b[0] != tag {
		return false
	}
	c.b = c.b[1:]
	return true
}

// optionalField is an optional field that a record lacks where it is zero.
func optionalField[T comparable](c *coder, tag byte, v *T, field func(*coder, *T)) {
	var none T
	if c.optional(tag, *v != none) {
		field(c, v)
	}
}

// optionalList is an optional list that a record lacks where it is empty.
func optionalList[T any](c *coder, tag byte, list *[]T, each func(*T, *coder)) {
	if c.optional(tag, len(*list) > 0) {
		listField(c, list, each)
	}
}

// end is where optional fields end that something follows.
func (c *coder) end() {
	if !c.reading {
		c.b = append(c.b, 0)
	} else if c.byte() != 0 {
		c.fail()
	}
}

// A recordPointer points to a value that is kept in compact form.
type recordPointer[T any] interface {
	*T
	fielded
}

type fielded interface{ fields(*coder) }

// appendRecord appends a record to b, which is empty.
func appendRecord(b []byte, v fielded) []byte {
	c := coder{reader: reader{b: append(b, recordVersion)}}
	v.fields(&c)
	return c.b
}

// readingRecord returns a coder that reads a record behind its version. Its err tells also of
// a wrong version.
func readingRecord(value []byte) coder {
	c := coder{reader{b: value}, true}
	if c.byte() != recordVersion {
		c.fail()
	}
	return c
}

// decodeRecord reads a record.
func decodeRecord[T any, P recordPointer[T]](value []byte) (*T, error) {
	both := new(struct { // one allocation
		v T
		c coder
	})
	both.c = readingRecord(value)
	P(&both.v).fields(&both.c)
	return &both.v, both.c.done()
}

// decodeInto reads a record into v, which is zero.
func decodeInto(value []byte, v fielded) error {
	c := readingRecord(value)
	v.fields(&c)
	return c.done()
}

const recordVersion = 1

// uintIn and uint32In read a number at the start of (the rest of) a key.

func uintIn(k []byte) uint64   { return binary.BigEndian.Uint64(k) }
func uint32In(k []byte) uint32 { return binary.BigEndian.Uint32(k) }

func dayIn(k []byte) day { return day(binary.BigEndian.Uint32(k) ^ 1<<31) }

// numberValue is the value of a number or reference that is kept alone.
func numberValue(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
