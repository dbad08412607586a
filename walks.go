package main

import (
	"encoding/base64"
	"encoding/binary"
)

// Walks are customers in the order of their enrolment, which is that of their numbers (contract
// §23). A page of a walk says where the next one begins, so that nobody comes twice, and nobody
// who is in the walk from its beginning to its end is missed, whatever changes between two pages.
// A page looks at a bounded number of customers, however few of them it takes.

// walkedAtOnce is how many customers a page looks at.
const walkedAtOnce = 2000

// A walk says where a page begins, and whom it takes: nobody who is hidden.
type walk struct {
	after  uint64 // number of the last customer that was looked at; 0: none
	limit  int
	status string                        // "": any
	since  instant                       // of the last change
	member func(*customer) (bool, error) // nil: takes all
	warm   []func(id) key                // of what member reads beside the customer
}

// page returns the customers of a page, and the after of the next one; 0 at the end of all
// customers.
func (cu *customersTxn) page(w walk) (found []id, next uint64, err error) {
	n, err := cu.t.count()
	if err != nil || w.after >= n.Customers {
		return nil, 0, err
	}
	var (
		c    customer
		turn pacer
		list = make([]id, 0, readAtOnce)
		keys = append([]func(id) key{func(u id) key { return cu.t.scratchKey(u, partCustomer) }}, w.warm...)
		last = min(w.after+walkedAtOnce, n.Customers)
	)
	for first := w.after + 1; first <= last; first += readAtOnce {
		list = list[:0]
		for cust, err := range cu.ids(first, min(first+readAtOnce-1, last), false) {
			if err != nil {
				return nil, 0, err
			}
			list = append(list, cust)
		}
		warm(cu.t.Tx, list, keys...)
		for _, cust := range list {
			if err := cu.read(cust, &c); err != nil {
				return nil, 0, err
			}
			taken, err := w.takes(&c)
			if err != nil {
				return nil, 0, err
			}
			if taken {
				found = append(found, cust)
			}
			if len(found) == w.limit {
				last = c.Number
				break
			}
			turn.pause()
		}
	}
	if last < n.Customers {
		next = last
	}
	return found, next, nil
}

// takes reports whether a customer is in the walk.
func (w *walk) takes(c *customer) (bool, error) {
	switch {
	case c.hidden(), w.status != "" && c.Status != w.status, c.UpdatedAt < w.since:
		return false, nil
	case w.member == nil:
		return true, nil
	}
	return w.member(c)
}

// A cursor is the after of a walk as clients get it: opaque, so that it may become another one.
// Its first byte is its version.

const cursorVersion = 1

// cursorOf is null for the end of a walk.
func cursorOf(after uint64) *string {
	if after == 0 {
		return nil
	}
	return new(base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64([]byte{cursorVersion}, after)))
}

// parseCursor reads a cursor; "" is where a walk begins.
func parseCursor(text string) (after uint64, ok bool) {
	if text == "" {
		return 0, true
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 1+8 || b[0] != cursorVersion || base64.RawURLEncoding.EncodeToString(b) != text {
		return 0, false
	}
	after = binary.BigEndian.Uint64(b[1:])
	return after, after > 0
}
