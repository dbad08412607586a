package main

import "slices"

// A member of the team who may not undo a sale or a redemption asks somebody in charge to
// (rewards_undo.go). A request is kept until its subject is undone, or somebody declines it. After
// undoRequestTime nobody sees it any more, and the next request in the organization removes it:
//
//	G org 'u' subject → undoRequest
//
// It goes in the transaction that returns its purchase whole or cancels its redemption.

const (
	undoRequestTime  = 7 * 24 * 60 * 60 * 1000 // milliseconds for which a request stands
	mostUndoRequests = 100                     // that stand in an organization at once
	maxUndoReason    = 200                     // characters
)

// An undoRequest asks to undo what the key names.
type undoRequest struct {
	Subject    id   // the purchase or redemption; in the key
	Redemption bool // it is a redemption
	Customer   id   // the subject's, which may be part of another one now
	By         creator
	At         instant
	Reason     string // goes when its customer is erased, as the request does
}

func (r *undoRequest) fields(c *coder) {
	c.bool(&r.Redemption)
	c.id(&r.Customer)
	r.By.fields(c)
	c.instant(&r.At)
	c.text(&r.Reason)
}

func (sa *salesTxn) undoRequestKey(subject id) key {
	return tableUndoRequests.in(sa.t.org).id(subject)
}

// undoRequest is the request about a subject; nil if there is none.
func (sa *salesTxn) undoRequest(subject id) (*undoRequest, error) {
	r, err := get[undoRequest](sa.t.Tx, sa.undoRequestKey(subject))
	if r != nil {
		r.Subject = subject
	}
	return r, err
}

// undoRequests are all that are kept, also those that nobody sees any more, by subject.
func (sa *salesTxn) undoRequests() (list []*undoRequest, err error) {
	subjects, err := sa.undoSubjects()
	for _, u := range subjects {
		r, err := sa.undoRequest(u)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, err
}

// undoSubjects are the subjects of all that are kept.
func (sa *salesTxn) undoSubjects() (list []id, err error) {
	for e, err := range scan(sa.t.Tx, tableUndoRequests.in(sa.t.org), false) {
		if err != nil {
			return nil, err
		}
		if !tableUndoRequests.has(e.Key) {
			return nil, unreadable(e.Key)
		}
		list = append(list, id(e.Key[len(e.Key)-16:]))
	}
	return list, nil
}

// forgetUndoRequest drops the request about a subject, if there is one.
func (sa *salesTxn) forgetUndoRequest(subject id) error {
	k := sa.undoRequestKey(subject)
	_, found, err := sa.t.Get(k)
	if err != nil || !found {
		return err
	}
	return sa.t.Delete(k)
}

// forgetUndoRequestsOf drops those about purchases and redemptions of some customers.
func (sa *salesTxn) forgetUndoRequestsOf(family []*customer) error {
	list, err := sa.undoRequests()
	for _, r := range list {
		if err == nil && slices.ContainsFunc(family, func(c *customer) bool { return c.ID == r.Customer }) {
			err = sa.t.Delete(sa.undoRequestKey(r.Subject))
		}
	}
	return err
}
