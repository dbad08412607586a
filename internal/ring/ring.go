// Package ring keeps the last entries of each of many keys in bounded room.
package ring

import (
	"slices"
	"sync"
)

// A Log has the last entries of the keys that had one last.
type Log[K comparable, T any] struct {
	keys, entries int

	mu    sync.Mutex
	added uint64 // entries so far, of all keys
	rings map[K]*ring[T]
}

// A ring is a ring buffer: an entry takes the place of the one len(last) entries before.
type ring[T any] struct {
	count  int    // of entries so far
	latest uint64 // the number of the last one among those of all keys
	last   []T
}

// New returns a log of at most so many keys, with at most so many entries of each.
func New[K comparable, T any](keys, entries int) *Log[K, T] {
	return &Log[K, T]{keys: keys, entries: entries, rings: map[K]*ring[T]{}}
}

// Add logs an entry of a key.
func (l *Log[K, T]) Add(k K, one T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rings[k]
	if r == nil {
		r = l.newRing()
		l.rings[k] = r
	}
	r.last[r.count%len(r.last)] = one
	r.count++
	l.added++
	r.latest = l.added
}

// newRing returns an empty ring. When there is one for each key that may have one, it reuses
// that of the key that has been idle longest.
func (l *Log[K, T]) newRing() *ring[T] {
	if len(l.rings) < l.keys {
		return &ring[T]{last: make([]T, l.entries)}
	}
	var quiet K
	var idle *ring[T]
	for k, r := range l.rings {
		if idle == nil || r.latest < idle.latest {
			quiet, idle = k, r
		}
	}
	delete(l.rings, quiet)
	clear(idle.last)
	idle.count = 0
	return idle
}

// Of returns the entries of a key, newest first.
func (l *Log[K, T]) Of(k K) (list []T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rings[k]
	if r == nil {
		return nil
	}
	if r.count <= len(r.last) {
		list = slices.Clone(r.last[:r.count])
	} else {
		next := r.count % len(r.last)
		list = slices.Concat(r.last[next:], r.last[:next])
	}
	slices.Reverse(list)
	return list
}
