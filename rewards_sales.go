package main

import "slices"

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
