package main

import (
	"context"
	"encoding/hex"
	"slices"
)

// Vouchers expire by themselves: their status follows from the time. The sweep tells
// redemption.expired once for each, and drops its entry among the due ones:
//
//	W expiry org seq → nothing

// expireVouchers tells of the vouchers that have expired.
func (e *engine) expireVouchers(ctx context.Context, moment func() (instant, error)) error {
	for {
		now, err := moment()
		if err != nil {
			return err
		}
		due, err := view(ctx, e.store, func(tx Tx) (bool, error) {
			list, err := dueVouchers(tx, now, 1)
			return len(list) > 0, err
		})
		if err != nil || !due {
			return err
		}
		s := e.seed()
		strays, err := update(ctx, e.store, func(tx Tx) ([]string, error) {
			list, err := dueVouchers(tx, now, sweepBatch)
			if err != nil {
				return nil, err
			}
			return e.expireAll(tx, list, now, s)
		})
		if err != nil {
			return err
		}
		e.clock.wrote(now)
		if len(strays) > 0 {
			e.log.Warn("stray due vouchers removed", "keys", strays)
		}
	}
}

// dueVouchers lists the first entries of vouchers, up to limit, that have expired at now.
func dueVouchers(tx Tx, now instant, limit int) (list []key, err error) {
	for e, err := range tx.Scan(newKey('W'), newKey('W').instant(now+1), false) {
		if err != nil {
			return nil, err
		}
		if list = append(list, slices.Clone(e.Key)); len(list) == limit {
			break
		}
	}
	return list, nil
}

// expireAll tells of the vouchers with the given entries and drops these. It returns the
// keys of strays: entries of no voucher.
func (e *engine) expireAll(tx Tx, list []key, now instant, s seed) (strays []string, err error) {
	each, err := e.newOrgTxns(tx, now, s)
	if err != nil {
		return nil, err
	}
	for _, k := range list {
		if err := tx.Delete(k); err != nil {
			return nil, err
		}
		told := false
		if tableDueVouchers.has(k) {
			t, err := each.of(uint32In(k[1+8:]))
			if err == nil && t != nil {
				told, err = t.expireVoucher(uintIn(k[1+8+4:]))
			}
			if err != nil {
				return nil, err
			}
		}
		if !told {
			strays = append(strays, hex.EncodeToString(k))
		}
	}
	if err := each.inTime(); err != nil {
		return nil, err
	}
	return strays, each.commit()
}

// expireVoucher tells that a voucher has expired, and reports whether there is one.
func (t *txn) expireVoucher(seq uint64) (bool, error) {
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
