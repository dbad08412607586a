package main

import (
	"cmp"
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

// maxSources is how many sources each of the two maps of sourceLimits holds.
const maxSources = 8192

// sourceLimits is a token bucket for each source: burst tokens, and one more every so many
// milliseconds. The zero one has maxRefusals and refusalEvery. Its memory is bounded: a
// source is forgotten after many others have come, and then starts with a full bucket.
type sourceLimits struct {
	burst, every   instant
	mu             sync.Mutex
	recent, before map[netip.Addr]instant // when the source's bucket will be full
}

// take spends one token of a source, or returns how long until the next.
func (l *sourceLimits) take(source netip.Addr, now instant) (wait instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	source = sourceOf(source)
	burst, every := cmp.Or(l.burst, maxRefusals), cmp.Or(l.every, refusalEvery)
	whole := burst * every // how long an empty bucket takes to fill
	unused, ok := l.recent[source]
	if !ok {
		unused = l.before[source]
	}
	// The bucket is full; or the clock was set back, which must not refuse for long.
	if unused < now || unused > now+whole {
		unused = now
	}
	if wait := unused + every - whole - now; wait > 0 {
		return wait
	}
	if !ok && len(l.recent) >= maxSources || l.recent == nil {
		l.recent, l.before = map[netip.Addr]instant{}, l.recent
	}
	l.recent[source] = unused + every
	return 0
}
