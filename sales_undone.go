package main

import (
	"encoding/json"
	"slices"
)

// A purchase that is returned whole no longer counts (contract §19) for first purchases, daily
// maximums, lives of rules, the moment of the last purchase and inactivity, and another purchase
// may have its externalId. Totals and statistics keep it. At the end, the stored requests to undo
// a sale or a redemption.

// undo gives back the limits that a purchase used up, once it is wholly returned. The store has
// the purchase with its returns; list has the customer's accounts that it counted in.
func (sa *salesTxn) undo(c *customer, purchase *sale, list []affectedAccount) (err error) {
	counted := purchase.isCounted()
	for i := range list {
		if err := sa.giveBackUses(purchase, &list[i]); err != nil {
			return err
		}
		if a := list[i].account; purchase.shareIn(a.program.Number) != nil {
			if err := sa.moveBack(a, purchase.CreatedAt); err != nil {
				return err
			}
		}
	}
	if counted {
		if err := sa.save(purchase); err != nil {
			return err
		}
	}
	if err := sa.forgetUndoRequest(purchase.ID); err != nil {
		return err
	}
	if err := sa.unpay(c, purchase, list); err != nil {
		return err
	}
	if c.Purchases == 0 {
		c.LastSaleAt = 0
	} else if purchase.CreatedAt >= c.LastSaleAt {
		c.LastSaleAt, err = sa.lastStanding(c, nil)
	}
	return err
}

// unpay takes the points that paid for a purchase out of what their account's customer was active by.
func (sa *salesTxn) unpay(c *customer, purchase *sale, list []affectedAccount) error {
	y := purchase.Payment
	if y == nil {
		return nil
	}
	a, err := sa.accountOf(c, sa.t.cfg.programNumber(y.Program), list)
	if err != nil || a.Idle.Months == 0 {
		return err
	}
	debit, err := sa.t.points.movement(y.Movement)
	if err != nil {
		return err
	}
	if err := sa.t.giver.undoSpending(a, debit.CreatedAt); err != nil {
		return err
	}
	return sa.saveOther(a, list)
}

// moveBack moves the end of an account's period of activity back to what the last activity gives,
// after one of a moment was undone.
func (sa *salesTxn) moveBack(a *account, undone instant) error {
	pt := &sa.t.points
	if a.Idle.Months == 0 || a.Idle.End > pt.idleEnd(a, undone) { // something later says when it lapses
		return nil
	}
	last, err := sa.lastActivity(a)
	a.Idle.End = min(a.Idle.End, max(pt.idleEnd(a, last), pt.soonestLapse()))
	return err
}

// lastActivity is when the account's customer was last active in its program: the last purchase
// and the last redemption that stand, or else the enrolment; or when points began a new period.
func (sa *salesTxn) lastActivity(a *account) (instant, error) {
	last, err := sa.lastStanding(a.customer, a.program)
	return max(last, a.Idle.Redeemed, a.Idle.Renewed, a.customer.CreatedAt), err
}

// giveBackUses lowers the counts of the customer's life and of daily limits by the purchase's uses
// in one program. An old count of a day may have been dropped.
func (sa *salesTxn) giveBackUses(purchase *sale, p *affectedAccount) error {
	v := purchase.shareIn(p.program.Number)
	if v == nil {
		return nil
	}
	uses := ruleUses{t: sa.t, a: p.account}
	stays := func(rule string) (bool, error) {
		for _, given := range purchase.Given {
			if given.Program == p.program.Number && given.Rule == p.program.ruleIDOf(rule) {
				return sa.t.giver.stands(given)
			}
		}
		return false, nil
	}
	if err := uses.giveBackLives(v, stays); err != nil || len(v.Limited) == 0 {
		return err
	}
	cfg, err := sa.configOf(purchase)
	if err != nil {
		return err
	}
	at := purchase.CreatedAt.time().In(sa.t.cfg.zone)
	var used []key
	for _, on := range []day{dayOn(at.Date()) - 1, dayOn(at.Date())} { // of nights, and of all other rules
		prefix := sa.t.points.partKey(p.account, partRuleUse).day(on)
		for e, err := range scan(sa.t.Tx, prefix, false) {
			if err != nil {
				return err
			}
			if rule := p.program.ruleIDOf(string(e.Key[len(prefix):])); v.usedUp(rule) && dayOfUse(cfg, v.Program, rule, at) == on {
				used = append(used, slices.Clone(e.Key))
			}
		}
	}
	for _, k := range used {
		use, err := get[ruleUse](sa.t.Tx, k)
		switch {
		case err != nil:
			return err
		case use == nil || use.Times <= 1:
			err = sa.t.Delete(k)
		default:
			use.Times--
			err = sa.t.put(k, use)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// usedUp reports whether the rule gave points for the purchase and counted toward a daily limit.
func (v *saleShare) usedUp(ruleID id) bool {
	return slices.ContainsFunc(v.Limited, func(i uint64) bool {
		return i < uint64(len(v.Rules)) && v.Rules[i].RuleID == ruleID
	})
}

// lastStanding returns when the last purchase happened that is not wholly returned, of a customer
// and its stubs; 0 if there is none. If in is not nil, only purchases that count in that program are
// looked at. It reads each chain of sales from the newest back, and stops at sales that were
// registered before the purchase that it found had happened.
func (sa *salesTxn) lastStanding(c *customer, in *program) (last instant, err error) {
	family, err := sa.t.merges.family(c)
	if err != nil {
		return 0, err
	}
	for _, member := range family {
		for s, err := range sa.chainFrom(member.Sales.last()) {
			if err != nil {
				return 0, err
			}
			if s.RegisteredAt <= last {
				break
			}
			if s.Type == typePurchase && !s.whollyReturned() && (in == nil || s.shareIn(in.Number) != nil) {
				last = max(last, s.CreatedAt)
			}
		}
	}
	return last, nil
}

// errUndone refuses a purchase that is sent again after it was wholly returned.
func errUndone(purchase id) *apiError {
	return newError(codeExternalIDUndone).on("externalId").with("transactionId", purchase)
}

// mayReplay reports whether a kept answer to a purchase with an externalId may be given again. It
// may not if the purchase was wholly returned since: then the request fails with
// external_id_undone, or makes a new purchase if it says again.
func (sa *salesTxn) mayReplay(r *replay, again bool) (bool, error) {
	n, err := sa.t.count()
	if err != nil || n.Returns == 0 {
		return err == nil, err
	}
	var shown struct{ ID string }
	if err := json.Unmarshal(r.Body, &shown); err != nil {
		return false, err
	}
	made, ok := parseID(shown.ID)
	if !ok {
		return true, nil
	}
	s, err := sa.get(made)
	if err != nil || !s.whollyReturned() {
		return err == nil, err
	}
	if again {
		return false, nil
	}
	return false, errUndone(s.ID)
}

// A member of the team who may not undo a sale or a redemption asks somebody in charge to
// (rewards_sales.go). A request is kept until its subject is undone, or somebody declines it. After
// undoRequestTime nobody sees it any more, and the next request in the organization removes it:
//
//	G org 'u' subject → undoRequest
//
// A request goes in the transaction that returns its purchase whole or cancels its redemption.

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

// undoRequests are all requests that are stored, by subject, even if nobody sees them any more.
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
	return keyEnds(sa.t.Tx, tableUndoRequests, tableUndoRequests.in(sa.t.org), func(end []byte) id { return id(end) })
}

func (sa *salesTxn) forgetUndoRequest(subject id) error {
	k := sa.undoRequestKey(subject)
	_, found, err := sa.t.Get(k)
	if err != nil || !found {
		return err
	}
	return sa.t.Delete(k)
}

// forgetUndoRequestsOf drops the requests about purchases and redemptions of some customers.
func (sa *salesTxn) forgetUndoRequestsOf(family []*customer) error {
	list, err := sa.undoRequests()
	for _, r := range list {
		if err == nil && slices.ContainsFunc(family, func(c *customer) bool { return c.ID == r.Customer }) {
			err = sa.t.Delete(sa.undoRequestKey(r.Subject))
		}
	}
	return err
}
