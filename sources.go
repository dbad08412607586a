package main

import (
	"net/netip"
	"sync"
)

// How often one source may be refused for its key, whoever it is. Connections
// are in gate.go, limits of keys in limits.go.

// sourceOf is what counts as one source: an IPv4 address, or the /64 that one
// subscriber of IPv6 has.
func sourceOf(a netip.Addr) netip.Addr {
	a = plainAddr(a)
	if a.Is6() {
		return netip.PrefixFrom(a, 64).Masked().Addr()
	}
	return a
}

// A source may be refused so often at once, and then as often again in every
// minute, as a key may be used by default.
const (
	maxRefusals  = defaultRateLimit
	refusalEvery = minuteMillis / maxRefusals
)

// maxSources is how many sources a generation of sourceLimits holds.
const maxSources = 8192

// sourceLimits bounds how often each source does something: maxRefusals at
// once, and one more every refusalEvery. Its memory is bounded: a source that
// many others came after is forgotten, and begins anew.
type sourceLimits struct {
	mu             sync.Mutex
	recent, before map[netip.Addr]instant // when the source will have used up nothing
}

// take counts one of a source, or says how long there will be none.
func (l *sourceLimits) take(source netip.Addr, now instant) (wait instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	source = sourceOf(source)
	unused, ok := l.recent[source]
	if !ok {
		unused = l.before[source]
	}
	if unused < now || unused > now+minuteMillis { // the clock was set back: that is no reason to refuse for long
		unused = now
	}
	if wait := unused + refusalEvery - minuteMillis - now; wait > 0 {
		return wait
	}
	if !ok && len(l.recent) >= maxSources || l.recent == nil {
		l.recent, l.before = map[netip.Addr]instant{}, l.recent
	}
	l.recent[source] = unused + refusalEvery
	return 0
}
