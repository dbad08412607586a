// Package ordered has what ordered maps of byte keys share: entries, changes,
// the sizes that are allowed, and the merging of scans. Keys are ordered bytewise.
package ordered

import (
	"bytes"
	"errors"
	"iter"
)

// An Entry is one key and its value.
type Entry struct{ Key, Value []byte }

// A Change is a change of one key. A nil Value deletes the key; an empty one that is not
// nil is a value.
type Change struct {
	Key   string
	Value []byte
}

// Largest sizes of keys and values, in bytes. A key has at least one byte.
const (
	MaxKey   = 1 << 10
	MaxValue = 16 << 20
)

// ErrSize says that a key or value has a size that is not allowed.
var ErrSize = errors.New("store: key or value has a size that is not allowed")

// CheckKey returns ErrSize unless key has the size of a key.
func CheckKey(key []byte) error {
	if len(key) == 0 || len(key) > MaxKey {
		return ErrSize
	}
	return nil
}

// InRange reports whether lo <= key < hi. An empty hi is no bound.
func InRange(key, lo, hi []byte) bool {
	return bytes.Compare(key, lo) >= 0 && (len(hi) == 0 || bytes.Compare(key, hi) < 0)
}

// CloneRange copies two bounds with one allocation.
func CloneRange(lo, hi []byte) ([]byte, []byte) {
	both := append(append(make([]byte, 0, len(lo)+len(hi)), lo...), hi...)
	return both[:len(lo):len(lo)], both[len(lo):]
}

// MergeScan yields the entries of base with those of upper laid over them. An
// entry of upper with a nil Value hides the entry of base with its key. upper
// returns false after its last entry. Both come in the order of the scan, which is
// descending if reverse. An error of base ends the scan.
func MergeScan(upper func() (Entry, bool), base iter.Seq2[Entry, error], reverse bool, yield func(Entry, error) bool) {
	own, more := upper()
	if !more {
		base(yield)
		return
	}
	// pass yields own and takes the next one.
	pass := func() bool {
		if own.Value != nil && !yield(own, nil) {
			return false
		}
		own, more = upper()
		return true
	}
	for e, err := range base {
		if err != nil {
			yield(Entry{}, err)
			return
		}
		order := -1
		for more {
			if order = bytes.Compare(own.Key, e.Key); reverse {
				order = -order
			}
			if order > 0 {
				break
			}
			if !pass() {
				return
			}
			if order == 0 {
				break
			}
		}
		if order != 0 && !yield(e, nil) {
			return
		}
	}
	for more {
		if !pass() {
			return
		}
	}
}

// MergeSorted merges two sorted slices without changing them. The result may be
// one of them.
func MergeSorted(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	merged := make([]string, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}
