package main

import (
	"encoding/binary"
	"iter"
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
	if r.texts == "" {
		r.texts = string(r.b)
	}
	start := len(r.texts) - len(r.b)
	if r.take(n) == nil {
		return ""
	}
	return r.texts[start : start+int(n)]
}

// rest is a text that takes up the rest of the record.
func (r *reader) rest() string {
	n := len(r.b)
	if n > 0 && r.texts == "" {
		r.texts = string(r.b)
	}
	r.b = nil
	return r.texts[len(r.texts)-n:]
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

// optional yields the tags of the fields that a record may lack, up to the record's end or
// a zero byte. Such fields follow the others, each after its tag, in the order of their
// tags. One that is absent is zero: so a field can be added and records that lack it stay
// as they are.
func (r *reader) optional() iter.Seq[byte] {
	return func(yield func(byte) bool) {
		for last := byte(0); len(r.b) > 0; {
			tag := r.byte()
			if tag == 0 {
				return
			}
			if tag <= last {
				r.fail()
				return
			}
			last = tag
			if !yield(tag) {
				return
			}
		}
	}
}

// done checks that the record was read whole.
func (r *reader) done() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail()
	}
	return r.err
}

// A record is a value kept in compact form.
type record[T any] interface {
	*T
	encode(*writer)
	decode(*reader)
}

// recordReader checks a record's version and returns a reader of the rest.
func recordReader(value []byte) (reader, error) {
	r := reader{b: value}
	if r.byte() != recordVersion {
		return r, errRecord
	}
	return r, nil
}

func decodeRecord[T any, P record[T]](value []byte) (*T, error) {
	both := new(struct { // one allocation
		v T
		r reader
	})
	var err error
	if both.r, err = recordReader(value); err != nil {
		return nil, err
	}
	P(&both.v).decode(&both.r)
	return &both.v, both.r.done()
}

const recordVersion = 1

// uintIn and uint32In read a number at the start of (the rest of) a key.

func uintIn(k []byte) uint64   { return binary.BigEndian.Uint64(k) }
func uint32In(k []byte) uint32 { return binary.BigEndian.Uint32(k) }

// numberValue is the value of a number or reference that is kept alone.
func numberValue(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
