package main

import (
	"iter"
	"slices"
	"strings"

	"sello/internal/ordered"
)

// An overlay is a Tx on top of another one, its base. Its writes stay in memory.
// Dropping an overlay changes nothing, so a rule can run for its result alone,
// even inside a View.
//
// The base must not change under a key or range that the overlay reads.
type overlay struct {
	base   Tx
	writes map[string][]byte // what each key was last set to; nil: deleted
	size   int               // bytes of keys and values written, repeats included
	names  strings.Builder   // holds the next keys, so that each need not be allocated
	values []byte            // holds the next values, likewise

	runs  [][]string // keys of writes in sorted runs, except fresh
	fresh []string   // keys first written since the last scan, in any order
}

func newOverlay(base Tx) *overlay { return &overlay{base: base} }

// clear takes the overlay's writes away. Keys and values that others have of it stay as they are.
func (o *overlay) clear() {
	clear(o.writes)
	o.runs, o.fresh, o.size = nil, o.fresh[:0], 0
}

func (o *overlay) Get(key []byte) ([]byte, bool, error) {
	if value, ok := o.writes[string(key)]; ok {
		return value, value != nil, nil
	}
	return o.base.Get(key)
}

func (o *overlay) below() Tx { return o.base }

func (o *overlay) Put(key, value []byte) error {
	if len(value) > maxValue {
		return errSize
	}
	return o.write(key, o.keepValue(value))
}

// Keys and values are kept together in chunks of these sizes, in bytes: the keys and values of an
// add fit into one or two chunks.
const (
	nameChunk  = 512
	valueChunk = 1024
)

// keepName returns a copy of a key.
func (o *overlay) keepName(key []byte) string {
	if o.names.Cap()-o.names.Len() < len(key) {
		o.names = strings.Builder{}
		o.names.Grow(max(nameChunk, len(key)))
	}
	from := o.names.Len()
	o.names.Write(key)
	return o.names.String()[from:]
}

// keepValue returns a copy of a value, which is never nil.
func (o *overlay) keepValue(value []byte) []byte {
	if len(value) > valueChunk/4 {
		return slices.Clone(value)
	}
	if cap(o.values)-len(o.values) < len(value) || o.values == nil {
		o.values = make([]byte, 0, valueChunk)
	}
	from := len(o.values)
	o.values = append(o.values, value...)
	return slices.Clip(o.values[from:])
}

func (o *overlay) Delete(key []byte) error { return o.write(key, nil) }

// write sets key to value, which it keeps; nil deletes the key.
func (o *overlay) write(key, value []byte) error {
	if err := ordered.CheckKey(key); err != nil {
		return err
	}
	if o.writes == nil {
		o.writes, o.fresh = make(map[string][]byte), make([]string, 0, 8)
	}
	kept := o.keepName(key)
	if _, again := o.writes[kept]; !again {
		o.fresh = append(o.fresh, kept)
	}
	o.writes[kept] = value
	o.size += len(key) + len(value)
	return nil
}

// Scan merges the overlay's own entries into its base's.
func (o *overlay) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	lo, hi = ordered.CloneRange(lo, hi)
	return func(yield func(Entry, error) bool) {
		own := o.keys(lo, hi)
		if reverse {
			own = slices.Clone(own)
			slices.Reverse(own)
		}
		next := func() (e Entry, ok bool) {
			if len(own) == 0 {
				return Entry{}, false
			}
			e = Entry{Key: []byte(own[0]), Value: o.writes[own[0]]}
			own = own[1:]
			return e, true
		}
		ordered.MergeScan(next, o.base.Scan(lo, hi, reverse), reverse, yield)
	}
}

// keys returns the written keys in [lo, hi), sorted. Later writes do not change
// the slice, and the caller must not.
//
// Each call sorts the keys that are new since the last one into a run. A run more
// than half as long as the one before it is merged into that one. So runs are few,
// and a key is moved only a few times.
func (o *overlay) keys(lo, hi []byte) []string {
	if len(o.fresh) > 0 {
		slices.Sort(o.fresh)
		o.runs, o.fresh = append(o.runs, o.fresh), nil
		for n := len(o.runs); n > 1 && len(o.runs[n-2]) < 2*len(o.runs[n-1]); n-- {
			o.runs = append(o.runs[:n-2], ordered.MergeSorted(o.runs[n-2], o.runs[n-1]))
		}
	}
	var found []string
	for _, run := range o.runs {
		first, _ := slices.BinarySearch(run, string(lo))
		last := len(run)
		if len(hi) > 0 {
			last, _ = slices.BinarySearch(run, string(hi))
		}
		if first < last {
			found = ordered.MergeSorted(found, run[first:last])
		}
	}
	return found
}

// An absorber is a Tx that can take over all writes of an overlay on top of it at
// once. The overlay is not used afterwards, unless it is cleared. absorb reports whether it took
// them.
type absorber interface{ absorb(p *overlay) bool }

func (o *overlay) absorb(p *overlay) bool {
	if len(o.writes) == 0 && (o.writes == nil || len(p.writes) > 1000) {
		o.writes, o.runs, o.fresh, o.size = p.writes, p.runs, p.fresh, p.size
		p.writes, p.runs, p.fresh = nil, nil, nil
		return true
	}
	for key, value := range p.writes {
		if _, again := o.writes[key]; !again {
			o.fresh = append(o.fresh, key)
		}
		o.writes[key] = value
	}
	o.size += p.size
	return true
}

// flush writes o's writes to tx, in key order.
func (o *overlay) flush(tx Tx) error {
	if base, ok := tx.(absorber); ok && o.base == tx && base.absorb(o) {
		return nil
	}
	for _, key := range o.keys(nil, nil) {
		var err error
		if value := o.writes[key]; value == nil {
			err = tx.Delete([]byte(key))
		} else {
			err = tx.Put([]byte(key), value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changes lists o's writes, in key order.
func (o *overlay) changes() []ordered.Change {
	list := make([]ordered.Change, 0, len(o.writes))
	for key, value := range o.writes {
		list = append(list, ordered.Change{Key: key, Value: value})
	}
	slices.SortFunc(list, func(a, b ordered.Change) int { return strings.Compare(a.Key, b.Key) })
	return list
}
