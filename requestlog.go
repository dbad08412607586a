package main

import (
	"slices"
	"sync"
)

// The request log has the last requests of each organization's API keys, for the developers of
// clients. One process keeps it in memory, from its start, and only if it serves the panel. Of what
// a client sends it holds only the request's id: no address, query or body, and no text of a key.

// A loggedRequest is a request in the log. It takes 64 bytes, and the text of its id, which
// has 128 at most.
type loggedRequest struct {
	At        instant
	Key       id
	RequestID string
	Code      string // of the error; "" without
	micros    uint32 // that it took
	route     int16  // its number in api.routes
	Status    uint16
}

// At most loggedOrganizations have a log, of at most loggedRequests: 12.3 MB in all, if every
// client sends the longest ids. These are the organizations that sent a request last.
const (
	loggedRequests      = 1000
	loggedOrganizations = 64
)

// A requestLog has the last requests by the number of the organization.
type requestLog struct {
	mu    sync.Mutex
	rings map[uint32]*requestRing
}

// A requestRing is a ring buffer: a request takes the place of the one loggedRequests before.
type requestRing struct {
	count int // of requests so far
	last  [loggedRequests]loggedRequest
}

func newRequestLog() *requestLog { return &requestLog{rings: map[uint32]*requestRing{}} }

// add logs a request of an organization.
func (l *requestLog) add(org uint32, one loggedRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ring := l.rings[org]
	if ring == nil {
		ring = l.newRing()
		l.rings[org] = ring
	}
	ring.last[ring.count%loggedRequests] = one
	ring.count++
}

// newRing returns an empty ring. When loggedOrganizations rings exist, it reuses the ring of the
// organization that has been idle longest.
func (l *requestLog) newRing() *requestRing {
	if len(l.rings) < loggedOrganizations {
		return new(requestRing)
	}
	var quiet uint32
	oldest := never
	for org, ring := range l.rings {
		if at := ring.last[(ring.count-1)%loggedRequests].At; at < oldest {
			quiet, oldest = org, at
		}
	}
	ring := l.rings[quiet]
	delete(l.rings, quiet)
	*ring = requestRing{}
	return ring
}

// of returns the requests of an organization, newest first.
func (l *requestLog) of(org uint32) (list []loggedRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ring := l.rings[org]
	if ring == nil {
		return nil
	}
	if ring.count <= loggedRequests {
		list = slices.Clone(ring.last[:ring.count])
	} else {
		next := ring.count % loggedRequests
		list = slices.Concat(ring.last[next:], ring.last[:next])
	}
	slices.Reverse(list)
	return list
}
