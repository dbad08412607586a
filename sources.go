package main

import (
	"net/netip"
	"sync"
)

// A bound on how often one source may be refused for its key. Connections are bounded
// in gate.go, the use of keys in limits.go.

// sourceOf is what counts as one source: an IPv4 address, or the /64 that one
// subscriber of IPv6 has.
func sourceOf(a netip.Addr) netip.Addr {
	a = plainAddr(a)
	if a.Is6() {
		return netip.PrefixFrom(a, 64).Masked().Addr()
	}
	return a
}

// A source may be refused maxRefusals times at once, and as many times again each
// minute. That is the default limit of a key's requests.
const (
	maxRefusals  = defaultRateLimit
	refusalEvery = minuteMillis / maxRefusals
)

// maxRecent is how many keys each of the two maps of a recentMap holds.
const maxRecent = 8192

// A recentMap is a map of bounded memory: a key is forgotten after many others have been put.
type recentMap[K comparable, V any] struct{ recent, before map[K]V }

// get returns a key's value; the zero one if the key was never put, or is forgotten.
func (m *recentMap[K, V]) get(k K) V {
	if v, ok := m.recent[k]; ok {
		return v
	}
	return m.before[k]
}

func (m *recentMap[K, V]) put(k K, v V) {
	if _, ok := m.recent[k]; !ok && len(m.recent) >= maxRecent || m.recent == nil {
		m.recent, m.before = map[K]V{}, m.recent
	}
	m.recent[k] = v
}

func (m *recentMap[K, V]) delete(k K) {
	delete(m.recent, k)
	delete(m.before, k)
}

// buckets is a token bucket for each key: burst tokens, and one more every so many
// milliseconds. A key that is forgotten starts with a full bucket. It is safe for concurrent
// use.
type buckets[K comparable] struct {
	burst, every instant
	mu           sync.Mutex
	full         recentMap[K, instant] // when the key's bucket will be full
}

// take spends one token of a key, or returns how long until the next.
func (l *buckets[K]) take(k K, now instant) (wait instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := l.burst * l.every // how long an empty bucket takes to fill
	full := l.full.get(k)
	// The bucket is full; or the clock was set back, which must not refuse for long.
	if full < now || full > now+whole {
		full = now
	}
	if wait := full + l.every - whole - now; wait > 0 {
		return wait
	}
	l.full.put(k, full+l.every)
	return 0
}

// sourceLimits is a bucket for each source. newSourceLimits makes one: the zero one refuses nobody.
type sourceLimits struct{ buckets buckets[netip.Addr] }

// take spends one token of a source, or returns how long until the next.
func (l *sourceLimits) take(source netip.Addr, now instant) (wait instant) {
	return l.buckets.take(sourceOf(source), now)
}

// newSourceLimits returns limits of burst tokens, and one more every so many milliseconds.
func newSourceLimits(burst, every instant) sourceLimits {
	return sourceLimits{buckets[netip.Addr]{burst: burst, every: every}}
}
