package main

import "net/http"

// Who may not undo a sale or a redemption can ask somebody in charge to. This file says who may ask,
// and which requests stand; sales_undone.go stores the requests.

// codeUndoRequestsFull is an error that only the panel has.
var codeUndoRequestsFull = errorCode{"undo_requests_full", http.StatusConflict, ""}

// An undoSubject is what somebody may ask to undo.
type undoSubject struct {
	customer id // as its record says
	by       creator
	at       instant // when it was registered
	open     bool    // it can be undone now
	undone   bool    // it was
}

func (rw *rewardsTxn) undoSubject(u id, redemption bool) (*undoSubject, error) {
	if redemption {
		x, err := rw.redemption(u)
		if err != nil {
			return nil, err
		}
		owner, err := rw.t.merges.owner(x.Customer)
		if err != nil {
			return nil, err
		}
		open, err := rw.cancellable(x)
		open = open && owner.mustBeActive() == nil // as cancelling it asks
		return &undoSubject{x.Customer, x.By, x.CreatedAt, open, x.CancelledAt != 0}, err
	}
	s, err := rw.t.sales.get(u)
	if err != nil {
		return nil, err
	}
	undone := s.whollyReturned()
	return &undoSubject{s.Customer, s.By, s.RegisteredAt, s.Type == typePurchase && !undone, undone}, nil
}

// mayAskToUndo reports whether a user may ask for a subject to be undone now: for an own redemption, or
// an own purchase of today.
func (rw *rewardsTxn) mayAskToUndo(user, subject id, redemption bool) (bool, error) {
	s, err := rw.undoSubject(subject, redemption)
	if err != nil {
		return false, err
	}
	today := rw.t.dayOf(s.at) == rw.t.dayOf(rw.t.now)
	return s.open && s.by.Type == byUser && s.by.ID == user && (redemption || today), nil
}

// stands reports whether a request is to be shown, given whether its subject can be undone.
func (r *undoRequest) stands(open bool, now instant) bool {
	return open && now-r.At < undoRequestTime
}

// openUndoRequest is the request about a subject that is to be shown; nil if there is none.
func (rw *rewardsTxn) openUndoRequest(subject id) (*undoRequest, error) {
	r, err := rw.t.sales.undoRequest(subject)
	if err != nil || r == nil {
		return nil, err
	}
	s, err := rw.undoSubject(subject, r.Redemption)
	if err != nil || !r.stands(s.open, rw.t.now) {
		return nil, err
	}
	return r, nil
}

// askToUndo keeps a request of the transaction's creator about a subject of a customer that they
// may ask about. Asking again changes nothing. Requests that no longer stand make room for others.
func (rw *rewardsTxn) askToUndo(subject id, redemption bool, cust id, reason string) error {
	missing := codeTransactionNotFound
	if redemption {
		missing = codeRedemptionNotFound
	}
	s, err := rw.undoSubject(subject, redemption)
	if err != nil {
		return err
	}
	owner, err := rw.t.merges.owner(s.customer)
	if err != nil {
		return err
	}
	if owner.ID != cust {
		return newError(missing)
	}
	if err := owner.mustBeShown(); err != nil { // a purchase of an inactive one can be returned (contract §31)
		return err
	}
	if before, err := rw.openUndoRequest(subject); err != nil || before != nil {
		return err
	}
	if err := rw.dropUndoRequests(); err != nil {
		return err
	}
	r := &undoRequest{Redemption: redemption, Customer: s.customer, By: rw.t.by, At: rw.t.now, Reason: reason}
	if err := rw.t.put(rw.t.sales.undoRequestKey(subject), r); err != nil {
		return err
	}
	action := auditTransactionAsked
	if redemption {
		action = auditRedemptionAsked
	}
	return rw.t.audit.note(action, subject.String(), nil)
}

// dropUndoRequests drops the requests that no longer stand, and fails if there is no room for another.
func (rw *rewardsTxn) dropUndoRequests() error {
	list, err := rw.t.sales.undoRequests()
	if err != nil {
		return err
	}
	standing := 0
	for _, r := range list {
		s, err := rw.undoSubject(r.Subject, r.Redemption)
		if err != nil {
			return err
		}
		if r.stands(s.open, rw.t.now) {
			standing++
			continue
		}
		if err := rw.t.sales.forgetUndoRequest(r.Subject); err != nil {
			return err
		}
	}
	if standing >= mostUndoRequests {
		return newError(codeUndoRequestsFull)
	}
	return nil
}

// declineUndo drops the request about a subject. Without one it changes nothing: somebody else
// declined it, or did what it asked for.
func (rw *rewardsTxn) declineUndo(subject id, redemption bool) error {
	if _, err := rw.undoSubject(subject, redemption); err != nil {
		return err
	}
	r, err := rw.t.sales.undoRequest(subject)
	if err != nil || r == nil {
		return err
	}
	if err := rw.t.sales.forgetUndoRequest(subject); err != nil {
		return err
	}
	action := auditTransactionDeclined
	if redemption {
		action = auditRedemptionDeclined
	}
	return rw.t.audit.note(action, subject.String(), nil)
}
