package main

import (
	"fmt"
	"strings"
)

// The auditor reads the feed of events while it sends its load, as an integrator would, and
// goes on after each restart of the server. A check finds a fault where an event is missing,
// comes again or is another one than before, and where something that is there has not
// exactly one event.

// An event is one entry of the feed.
type event struct {
	Seq  int    `json:"seq"`
	Type string `json:"type"`
	ID   string `json:"id,omitempty"` // of what it is about
}

// A feed is what was read of the events, from the first one on.
type feed struct {
	read   []event
	count  map[string]int // how many there are of a type about something
	faults []string
}

func newFeed() *feed { return &feed{count: map[string]int{}} }

func (f *feed) last() int { return len(f.read) }

// add takes the next events.
func (f *feed) add(events []event) {
	for _, e := range events {
		if e.Seq != f.last()+1 {
			f.faults = append(f.faults, fmt.Sprintf("event %d (%s) follows event %d", e.Seq, e.Type, f.last()))
		}
		f.read = append(f.read, e)
		f.count[e.Type+" "+e.ID]++
	}
}

// events gets the events after a sequence. It waits for up to so many seconds.
func (c *client) events(after, wait int) (events []event, err error) {
	path := fmt.Sprintf("/events?after=%d&limit=100&wait=%d", after, wait)
	o, err := c.get(path)
	if err != nil {
		return nil, err
	}
	list, _ := o["data"].([]any)
	for _, item := range list {
		e, _ := item.(map[string]any)
		data, _ := e["data"].(map[string]any)
		events = append(events, event{object(e).int("sequence"), object(e).text("type"), object(data).text("id")})
	}
	return events, nil
}

// follow reads the feed until stop is closed, or the server is gone.
func (j *job) follow(stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		events, err := j.client.events(j.log.feed.last(), 1)
		if err != nil {
			return nil
		}
		if len(events) > 0 {
			if err := j.log.write(line{Events: events}); err != nil {
				return err
			}
		}
	}
}

// catchUp reads the rest of the feed.
func (c *check) catchUp() error {
	for {
		events, err := c.client.events(c.log.feed.last(), 0)
		if err != nil && strings.Contains(err.Error(), `"code":"events_gone"`) {
			c.fault("the feed ends before event %d, which was read", c.log.feed.last())
			return nil
		}
		if err != nil || len(events) == 0 {
			return err
		}
		if err := c.log.write(line{Events: events}); err != nil {
			return err
		}
	}
}

// feed checks what was read of the feed and, of a check of all customers, that whoever reads
// it now gets the same.
func (c *check) feed() error {
	if err := c.catchUp(); err != nil {
		return err
	}
	for _, f := range c.log.feed.faults {
		c.fault("%s", f)
	}
	if !c.all {
		return nil
	}
	again := newFeed()
	for {
		events, err := c.client.events(again.last(), 0)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
		again.add(events)
	}
	for _, f := range again.faults {
		c.fault("read again: %s", f)
	}
	for i, e := range c.log.feed.read {
		if i >= len(again.read) || again.read[i] != e {
			c.fault("event %d was %+v, and is another one now, or none", e.Seq, e)
			break
		}
	}
	return nil
}

// once expects exactly one event of a type about something.
func (c *check) once(kind, id string) {
	if n := c.log.feed.count[kind+" "+id]; n != 1 {
		c.fault("%s has %d events %s", id, n, kind)
	}
}

// entryEvent is the type of an entry's event.
func entryEvent(e object) string {
	switch {
	case e.text("category") == "Return":
		return "points.reversed"
	case e.text("category") == "Expiration":
		return "points.expired"
	case e.text("type") == "Debit":
		return "points.deducted"
	}
	return "points.added"
}

// told expects the events of what is in a customer's book.
func (c *check) told(b *book) {
	c.once("customer.created", b.customer)
	for _, e := range b.entries {
		c.once(entryEvent(e), e.text("id"))
	}
	for id := range b.sales {
		c.once("transaction.created", id)
	}
	for id, x := range c.redemptions {
		if x.text("customerId") != b.customer {
			continue
		}
		c.once("redemption.created", id)
		if x.text("status") == "Cancelled" {
			c.once("redemption.cancelled", id)
		}
	}
}
