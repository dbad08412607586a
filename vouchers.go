package main

import "sello/internal/blockset"

// Vouchers expire by themselves: their status follows from the time. The sweep tells
// redemption.expired once for each, and drops its entry among the due ones:
//
//	W expiry org seq → nothing

// expireVoucher tells that the voucher of a due entry has expired, and reports whether there is
// one.
func (rw *rewardsTxn) expireVoucher(k key) (bool, error) {
	seq := uintIn(k[dueOrg+4:])
	x, err := get[redemption](rw.t.Tx, rw.redemptionKey(seq))
	if err != nil || x == nil || !x.lapses() {
		return false, err
	}
	rw.t.wrote = true
	return true, rw.t.feed.emit(eventRedemptionExpired, seq)
}

// fileVouchers makes the entries of vouchers that lack one, because they expired before time
// stepped back: those that have not expired at their organization's latest write, but do until
// a moment.
func (rw *rewardsTxn) fileVouchers(until instant) error {
	n, err := rw.t.count()
	if err != nil {
		return err
	}
	var due []redemption
	for e, err := range scan(rw.t.Tx, tableVoucherExpiries.in(rw.t.org), false) {
		if err != nil {
			return err
		}
		expires := instantIn(e.Key[len(e.Key)-8:])
		if n.Latest < expires && expires <= until {
			for seq := range blockset.Decode(e.Value).Newest(tableVoucherExpiries.block(e.Key)) {
				due = append(due, redemption{Seq: seq, Expires: expires})
			}
		}
	}
	for i := range due {
		k := rw.dueVoucherKey(&due[i])
		_, filed, err := rw.t.Get(k)
		if err == nil && !filed {
			err = rw.t.Put(k, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
