package main

import "sync"

// News wakes those who wait for events of an organization. It knows what this process wrote;
// whoever waits also looks now and then, since others may write to the same store.
type news struct {
	mu      sync.Mutex
	waiting map[uint32]chan struct{} // closed at the organization's next events
}

// of returns a channel that is closed when events are written that a View begun before may
// lack.
func (n *news) of(org uint32) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.waiting[org]
	if c == nil {
		if n.waiting == nil {
			n.waiting = map[uint32]chan struct{}{}
		}
		c = make(chan struct{})
		n.waiting[org] = c
	}
	return c
}

// tell wakes those who wait for events of the organizations.
func (n *news) tell(orgs []uint32) {
	if len(orgs) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, org := range orgs {
		if c := n.waiting[org]; c != nil {
			close(c)
			delete(n.waiting, org)
		}
	}
}
