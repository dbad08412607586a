package main

import (
	"net/http"
	"slices"
)

// A sale knows the vouchers that come back with it (contract §19). A purchase has the vouchers that
// were used in it. A return that leaves nothing of its purchase has the vouchers that the purchase
// had then. Of the vouchers that the purchase gave, a return has the ones that it cancelled (contract
// §31), and if it leaves nothing, also the ones that were used or had expired.

// mostVouchers is how many vouchers can be used in one purchase.
const mostVouchers = 20

// purchaseFor finds the purchase that a voucher is used in: a purchase of the voucher's customer, or
// of a customer merged with it since. Any other id gives transaction_not_found.
func (rw *rewardsTxn) purchaseFor(x *redemption, saleID id) (*sale, error) {
	s, err := rw.t.sales.get(saleID)
	if err != nil {
		return nil, err
	}
	same, err := rw.t.merges.sameOwner(s.Customer, x.Customer)
	if err == nil && (!same || s.Type != typePurchase) {
		err = newError(codeTransactionNotFound)
	}
	return s, err
}

// useVoucher marks an Issued voucher as used, and notes it in the purchase; a nil purchase means
// that none was named.
func (rw *rewardsTxn) useVoucher(x *redemption, purchase *sale) error {
	var in id
	if purchase != nil {
		if len(purchase.Vouchers) >= mostVouchers {
			return newError(codeTooManyRedemptions)
		}
		purchase.Vouchers = append(purchase.Vouchers, x.Seq)
		if err := rw.t.sales.save(purchase); err != nil {
			return err
		}
		in = purchase.ID
	}
	return rw.changeRedemption(x, func() { x.UsedAt, x.UsedBy, x.Sale = rw.t.now, rw.t.by, in })
}

// cancellable reports whether a redemption can be cancelled now: before it is used, or
// once the purchase that it was used in is returned whole.
func (rw *rewardsTxn) cancellable(x *redemption) (bool, error) {
	switch x.status(rw.t.now) {
	case redemptionIssued, redemptionCompleted:
		return true, nil
	case redemptionUsed:
		if x.Sale == (id{}) {
			return false, nil
		}
		s, err := rw.t.sales.get(x.Sale)
		return err == nil && s.whollyReturned(), err
	}
	return false, nil
}

// takeVouchers cancels the vouchers that the purchase of a return gave and that were not used: all if
// the return leaves nothing of the purchase, else the ones that no longer stand. If it leaves
// nothing, with restore also the vouchers that were used in the purchase. It runs before the return,
// which then finds the vouchers' points to take back. It ignores faults of the return, which the
// return itself reports.
func (rw *rewardsTxn) takeVouchers(c *customer, s *sale, original *id, restore bool) error {
	purchase, err := rw.t.sales.purchaseOf(c, s, original)
	if err != nil || purchase == nil || len(purchase.Given)+len(purchase.Vouchers) == 0 {
		return err
	}
	before := purchase.whollyReturned()
	if purchase.countReturn(s) != nil {
		return nil
	}
	whole := purchase.whollyReturned()
	if whole && restore {
		for _, seq := range purchase.Vouchers {
			if err := rw.undoIf(c, seq, redemptionUsed); err != nil {
				return err
			}
		}
	}
	for _, given := range purchase.Given {
		if given.Redemption == 0 || before {
			continue
		}
		stood, err := rw.stands(given)
		if err != nil {
			return err
		}
		brought, err := rw.stillBrought(c, purchase, given)
		if err == nil && (whole || !brought) {
			err = rw.undoIf(c, given.Redemption, redemptionIssued)
		}
		if err != nil {
			return err
		}
		stands, err := rw.stands(given)
		if err != nil {
			return err
		}
		if stood && (whole || !stands) {
			s.Given = append(s.Given, given)
		}
	}
	return nil
}

func (rw *rewardsTxn) undoIf(c *customer, seq uint64, status string) error {
	x, err := rw.redemptionAt(seq)
	if err != nil || x.status(rw.t.now) != status {
		return err
	}
	return rw.undoRedemption(c, x)
}

// stillBrought reports whether what a return leaves of a purchase still has what brought a voucher:
// for a voucher of a rule the least amount, items and pieces that the rule asks for, and for a voucher
// that redeemed itself points enough to take back.
func (rw *rewardsTxn) stillBrought(c *customer, purchase *sale, given givenVoucher) (bool, error) {
	p, v := rw.t.cfg.programNumber(given.Program), purchase.shareIn(given.Program)
	if p == nil || v == nil {
		return true, nil
	}
	if given.Rule != (id{}) {
		i := slices.IndexFunc(p.Rules, func(r rule) bool { return p.ruleID(&r) == given.Rule })
		return i < 0 || p.Rules[i].asksFor(purchase, p), nil
	}
	due := max(min(purchase.shouldReturn(p, v), v.Earned-v.Expired)-v.Reversed, 0)
	if p.Returns == returnsKeep || due == 0 {
		return true, nil
	}
	a, err := rw.t.points.account(c, p)
	if err != nil {
		return false, err
	}
	pending, err := rw.t.sales.stillPending(v, c)
	return max(a.Balance, 0)+pending >= due, err
}

// asksFor reports whether what is left of a purchase has the amount, the items and the pieces that
// a rule asks for.
func (r *rule) asksFor(purchase *sale, p *program) bool {
	f := facts{total: purchase.Total - purchase.Returned, items: slices.Clone(purchase.Items), excluded: p.ExcludeSKUs}
	for i := range f.items {
		f.items[i].Quantity -= purchase.Lines[i].Returned
	}
	f.items = slices.DeleteFunc(f.items, func(it item) bool { return it.Quantity <= 0 })
	for _, c := range []condition{conditionAmount, conditionSKUs, conditionExcluded, conditionQuantity} {
		if r.has(c) && !r.meets(c, &f) {
			return false
		}
	}
	return true
}

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
