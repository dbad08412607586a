package main

import "sync"

// eventWaiters wakes the goroutines that wait for events of an organization. It knows only
// what this process wrote. A waiter also polls, since other processes may write to the same
// store.
type eventWaiters struct {
	mu      sync.Mutex
	waiting map[uint32]chan struct{} // closed at the organization's next events
}

// wait returns a channel that is closed when new events are written. Take it before beginning
// the View.
func (w *eventWaiters) wait(org uint32) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.waiting[org]
	if c == nil {
		if w.waiting == nil {
			w.waiting = map[uint32]chan struct{}{}
		}
		c = make(chan struct{})
		w.waiting[org] = c
	}
	return c
}

// wake wakes the goroutines that wait for events of the organizations.
func (w *eventWaiters) wake(orgs []uint32) {
	if len(orgs) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, org := range orgs {
		if c := w.waiting[org]; c != nil {
			close(c)
			delete(w.waiting, org)
		}
	}
}
