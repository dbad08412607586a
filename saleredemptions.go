package main

// A sale knows the vouchers that come back with it (contract §19). A purchase has the vouchers that
// were used in it. A return that leaves nothing of its purchase has the vouchers that the purchase
// had then.

// mostVouchers is how many vouchers can be used in one purchase.
const mostVouchers = 20

// purchaseFor finds the purchase that a voucher is used in: a purchase of the voucher's customer, or
// of a customer merged with it since. Any other id gives transaction_not_found.
func (rw *rewardsTxn) purchaseFor(x *redemption, saleID id) (*sale, error) {
	s, err := rw.t.sales.get(saleID)
	if err != nil {
		return nil, err
	}
	if s.Type != typePurchase {
		return nil, newError(codeTransactionNotFound)
	}
	if s.Customer == x.Customer {
		return s, nil
	}
	buyer, err := rw.t.merges.ownerID(s.Customer)
	if err != nil {
		return nil, err
	}
	owner, err := rw.t.merges.ownerID(x.Customer)
	if err != nil {
		return nil, err
	}
	if buyer != owner {
		return nil, newError(codeTransactionNotFound)
	}
	return s, nil
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

// restoreVouchers cancels the vouchers that were used in the purchase of a return, if the return
// leaves nothing of the purchase. It runs before the return, which then finds the vouchers' points
// to take back. It ignores faults of the return, which the return itself reports.
func (rw *rewardsTxn) restoreVouchers(c *customer, s *sale, original *id) error {
	purchase, err := rw.t.sales.purchaseOf(c, s, original)
	if err != nil || purchase == nil || purchase.countReturn(s) != nil || !purchase.whollyReturned() {
		return err
	}
	for _, seq := range purchase.Vouchers {
		x, err := rw.redemptionAt(seq)
		if err != nil {
			return err
		}
		if x.status(rw.t.now) != redemptionUsed {
			continue
		}
		if err := rw.undoRedemption(c, x); err != nil {
			return err
		}
	}
	return nil
}
