package main

import "slices"

// Vouchers expire by themselves: their status follows from the time. The sweep tells
// redemption.expired once for each, and drops its entry among the due ones:
//
//	W expiry org seq → nothing

// expireVoucher tells that the voucher of a due entry has expired, and reports whether there is
// one.
func (t *txn) expireVoucher(k key) (bool, error) {
	seq := uintIn(k[dueOrg+4:])
	x, err := get[redemption](t.Tx, t.redemptionKey(seq))
	if err != nil || x == nil || !x.lapses() {
		return false, err
	}
	t.wrote = true
	return true, t.tell(eventRedemptionExpired, seq)
}

// fileVouchers makes the entries of vouchers that lack one and have not expired at their
// organization's latest write, but do until a moment: those of an older store, and those that
// expired before time stepped back. It looks at the sets from a key on, most of them at most, and
// returns the last key; nil if there are none.
func (t *txn) fileVouchers(from key, most int, until instant) (last key, err error) {
	n, err := t.count()
	if err != nil {
		return nil, err
	}
	var due []redemption
	sets := 0
	for e, err := range t.Scan(from, tableVoucherExpiries.in(t.org).after(), false) {
		if err != nil {
			return nil, err
		}
		last = slices.Clone(e.Key)
		expires := instantIn(e.Key[len(e.Key)-8:])
		if n.Latest < expires && expires <= until {
			for seq := range newestIn(tableVoucherExpiries.block(e.Key), toBitmap(e.Value)) {
				due = append(due, redemption{Seq: seq, Expires: expires})
			}
		}
		if sets++; sets == most {
			break
		}
	}
	for i := range due {
		k := t.dueVoucherKey(&due[i])
		_, filed, err := t.Get(k)
		if err == nil && !filed {
			err = t.Put(k, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	return last, nil
}
