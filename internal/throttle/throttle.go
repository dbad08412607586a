// Package throttle bounds how often something is done for each of many keys, in bounded memory.
package throttle

import "sync"

// MostRecent is how many keys each of the two maps of a Recent holds.
const MostRecent = 8192

// A Recent is a map of bounded memory: a key is forgotten after many others have been put.
type Recent[K comparable, V any] struct{ recent, before map[K]V }

// Get returns a key's value; the zero one if the key was never put, or is forgotten.
func (m *Recent[K, V]) Get(k K) V {
	if v, ok := m.recent[k]; ok {
		return v
	}
	return m.before[k]
}

// Put sets a key's value.
func (m *Recent[K, V]) Put(k K, v V) {
	if _, ok := m.recent[k]; !ok && len(m.recent) >= MostRecent || m.recent == nil {
		m.recent, m.before = map[K]V{}, m.recent
	}
	m.recent[k] = v
}

// Delete forgets a key.
func (m *Recent[K, V]) Delete(k K) {
	delete(m.recent, k)
	delete(m.before, k)
}

// Buckets are a token bucket for each key: Burst tokens, and one more Every so many
// milliseconds. A key that is forgotten starts with a full bucket. They are safe for concurrent
// use. T counts milliseconds.
type Buckets[K comparable, T ~int64] struct {
	Burst, Every T

	mu   sync.Mutex
	full Recent[K, T] // when the key's bucket will be full
}

// Take spends one token of a key, or returns how long until the next.
func (l *Buckets[K, T]) Take(k K, now T) (wait T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := l.Burst * l.Every // how long an empty bucket takes to fill
	full := l.full.Get(k)
	// The bucket is full; or the clock was set back, which must not refuse for long.
	if full < now || full > now+whole {
		full = now
	}
	if wait := full + l.Every - whole - now; wait > 0 {
		return wait
	}
	l.full.Put(k, full+l.Every)
	return 0
}

// Fill fills the buckets of all keys.
func (l *Buckets[K, T]) Fill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.full = Recent[K, T]{}
}

// Strikes locks a key once it has failed Most times within a Span of milliseconds. They are safe for
// concurrent use. T counts milliseconds.
type Strikes[K comparable, T ~int64] struct {
	Most int
	Span T

	mu   sync.Mutex
	last Recent[K, []strike[T]]
}

// A strike is one failure. Its mark tells it from others: work that runs again fails once.
type strike[T ~int64] struct {
	at   T
	mark uint64
}

// Wait returns for how long a key is locked, whatever a failure with the mark adds to that; 0: it is
// not. Failures may have come in another order than their moments have; one more than a Span ahead is
// from before a clock was set back.
func (s *Strikes[K, T]) Wait(k K, now T, mark uint64) (wait T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, first := 0, now
	for _, one := range s.last.Get(k) {
		if one.mark != mark && one.at > now-s.Span && one.at < now+s.Span {
			n++
			first = min(first, one.at)
		}
	}
	if n < s.Most {
		return 0
	}
	return first + s.Span - now
}

// Add notes a failure, unless one with its mark is noted already.
func (s *Strikes[K, T]) Add(k K, now T, mark uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.last.Get(k)
	for _, one := range list {
		if one.mark == mark {
			return
		}
	}
	list = append(list[max(len(list)-s.Most+1, 0):len(list):len(list)], strike[T]{now, mark})
	s.last.Put(k, list)
}
