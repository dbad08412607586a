package main

// dueOf checks the moment at which an account changes by itself.
func (v *verifier) dueOf(a *account, what subject) error {
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	due, err := v.txn.points.firstDue(a, n.Latest)
	if err != nil {
		return err
	}
	if !v.recounting && a.Due != due {
		// A notice that was before the organization's latest write may be to come since the account's.
		notice, err := v.txn.points.expiringFrom(a, a.Due+noticeTime, 1)
		if err != nil {
			return err
		}
		if a.Due > due || len(notice) == 0 || notice[0].ExpiresAt != a.Due+noticeTime {
			equal(v, what, ": vencimiento", a.Due, due)
		}
	}
	if a.Due != never {
		return v.has(tableDue, v.txn.points.dueKey(a, a.Due), nil, what)
	}
	return nil
}

// fallOf checks the moment at which an account looks for a fall of its tier: a day of the window leaves
// then or fallNotice later, not after the tier falls nor after the notice of it that is to come. Records
// from before there were such moments have none.
func (v *verifier) fallOf(a *account, what subject) error {
	if a.LookFall == 0 || v.recounting {
		return nil
	}
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	f, err := v.txn.points.fall(a)
	if err != nil {
		return err
	}
	last := f.At
	if f.At-fallNotice > n.Latest {
		last -= fallNotice
	}
	known := false
	for d, err := range v.txn.points.days(a) {
		if err != nil {
			return err
		}
		leaves := v.txn.points.leaves(a, d.Day)
		known = known || leaves == a.LookFall || leaves-fallNotice == a.LookFall
	}
	if !known || f.At == never || !a.isCounted() || a.LookFall > last {
		v.differs(what, ": cuándo puede bajar su nivel", a.LookFall, f.At)
	}
	return nil
}

// dueVoucher expects the entry by which the sweep tells that a voucher has expired. After its
// expiry it stays until the sweep has come by.
func (v *verifier) dueVoucher(x *redemption, what subject) error {
	if !x.lapses() {
		return nil
	}
	k := v.txn.rewards.dueVoucherKey(x)
	n, err := v.txn.count()
	if err != nil {
		return err
	}
	if x.Expires <= n.Latest {
		if _, kept, err := v.txn.Get(k); err != nil || !kept {
			return err
		}
	}
	return v.has(tableDueVouchers, k, nil, what)
}
