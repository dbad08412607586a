package main

import (
	"encoding/binary"
	"errors"
)

// Records that are written often are kept in a compact form: fields in a
// fixed order, without names. Whole numbers are varints (zig-zag where they
// may be negative), texts are a length and UTF-8, ids are 16 bytes, a list
// is its length and its elements. A record begins with a byte that tells its
// version, so that a later sello can read what an earlier one wrote.

// A writer appends fields to a record.
type writer struct{ b []byte }

func (w *writer) byte(v byte)       { w.b = append(w.b, v) }
func (w *writer) uint(v uint64)     { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) int(v int64)       { w.b = binary.AppendVarint(w.b, v) }
func (w *writer) decimal(v decimal) { w.int(int64(v)) }
func (w *writer) instant(v instant) { w.int(int64(v)) }
func (w *writer) id(v id)           { w.b = append(w.b, v[:]...) }
func (w *writer) text(v string)     { w.uint(uint64(len(v))); w.b = append(w.b, v...) }
func (w *writer) uints(v []uint64) {
	w.uint(uint64(len(v)))
	for _, x := range v {
		w.uint(x)
	}
}

var errRecord = errors.New("a stored record cannot be read")

// A reader takes fields off a record in the order they were written. After
// a fault every field is zero and err is set; the caller looks once, at the
// end. Texts are copied, so that they outlive the transaction.
type reader struct {
	b   []byte
	err error
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
func (r *reader) text() string     { return string(r.take(r.uint())) }

func (r *reader) id() (v id) {
	copy(v[:], r.take(16))
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

func (r *reader) uints() []uint64 {
	n := r.len()
	if n == 0 {
		return nil
	}
	v := make([]uint64, n)
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

// A record is something kept in compact form.
type record[T any] interface {
	*T
	encode(*writer)
	decode(*reader)
}

// get reads the record at key; nil without an error where there is none.
func get[T any, P record[T]](tx Tx, key []byte) (*T, error) {
	value, ok, err := tx.Get(key)
	if err != nil || !ok {
		return nil, err
	}
	return decodeRecord[T, P](value)
}

func decodeRecord[T any, P record[T]](value []byte) (*T, error) {
	v := new(T)
	r := reader{b: value}
	if r.byte() != recordVersion {
		return nil, errRecord
	}
	P(v).decode(&r)
	return v, r.done()
}

func put[T any, P record[T]](tx Tx, key []byte, v P) error {
	w := writer{b: make([]byte, 0, 256)}
	w.byte(recordVersion)
	v.encode(&w)
	return tx.Put(key, w.b)
}

const recordVersion = 1

// Numbers and references kept alone are 8 bytes, most significant first.

func getUint(tx Tx, key []byte) (uint64, bool, error) {
	value, ok, err := tx.Get(key)
	if err != nil || !ok {
		return 0, false, err
	}
	if len(value) != 8 {
		return 0, false, errRecord
	}
	return binary.BigEndian.Uint64(value), true, nil
}

func putUint(tx Tx, key []byte, v uint64) error {
	return tx.Put(key, binary.BigEndian.AppendUint64(nil, v))
}

// uintIn and uint32In read a number at the start of (the rest of) a key.

func uintIn(k []byte) uint64   { return binary.BigEndian.Uint64(k) }
func uint32In(k []byte) uint32 { return binary.BigEndian.Uint32(k) }
