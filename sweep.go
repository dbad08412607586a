package main

import "context"

// sweepBatch bounds what one transaction of the sweep does.
const (
	sweepBatch  = 64   // accounts
	replayBatch = 1000 // replays dropped
)

// sweep writes down what has become due by itself: points that expired or
// became available, days that left a tier's window (contract §8). Balances
// are right without it; it lets the ledger follow. It also drops replays that
// are too old to be asked for. While an import is under way, or the clock is unsafe, it waits.
func (e *engine) sweep(ctx context.Context) error {
	return unlessUnsafe(e.sweepBy(ctx, e.clock.forWriting))
}

// sweepBy asks for the moment before each transaction, since the clock may have become
// wrong meanwhile.
func (e *engine) sweepBy(ctx context.Context, moment func() (instant, error)) error {
	if e.imports.underWay(instantOf(e.now())) {
		return nil
	}
	for {
		now, err := moment()
		if err != nil {
			return err
		}
		s := e.seed()
		due, err := view(ctx, e.store, func(tx Tx) (bool, error) {
			list, err := dueAccounts(tx, now, 1)
			return len(list) > 0, err
		})
		if err != nil {
			return err
		}
		if !due {
			break
		}
		err = e.store.Update(ctx, func(tx Tx) error {
			list, err := dueAccounts(tx, now, sweepBatch)
			if err != nil {
				return err
			}
			return e.settleAll(tx, list, now, s)
		})
		if err != nil {
			return err
		}
		e.clock.wrote(now)
	}
	for {
		now, err := moment()
		if err != nil {
			return err
		}
		stale, err := view(ctx, e.store, func(tx Tx) (*staleSlice, error) { return findStaleSlice(tx, e.slices, now) })
		if err != nil {
			return err
		}
		if stale == nil {
			return nil
		}
		err = e.store.Update(ctx, func(tx Tx) error {
			stale, err := findStaleSlice(tx, e.slices, now)
			if err != nil || stale == nil {
				return err
			}
			return stale.drop(tx, replayBatch)
		})
		if err != nil {
			return err
		}
	}
}

// A dueAccount is one entry of what is due.
type dueAccount struct {
	key      key
	org      uint32
	customer id
	program  uint32
}

// dueAccounts lists the first accounts, up to limit, that are due at now.
func dueAccounts(tx Tx, now instant, limit int) ([]dueAccount, error) {
	var list []dueAccount
	for e, err := range tx.Scan(newKey('d'), newKey('d').instant(now+1), false) {
		if err != nil {
			return nil, err
		}
		k := e.Key[1+8:]
		list = append(list, dueAccount{append(key(nil), e.Key...), uint32In(k), id(k[4:20]), uint32In(k[20:])})
		if len(list) == limit {
			break
		}
	}
	return list, nil
}

func (e *engine) settleAll(tx Tx, list []dueAccount, now instant, s seed) error {
	txns := map[uint32]*txn{}
	for _, d := range list {
		if err := tx.Delete(d.key); err != nil { // also one that no account has would be gone
			return err
		}
		t := txns[d.org]
		if t == nil {
			var err error
			if t, err = e.inTxn(tx, d.org, now, s); err != nil {
				return err
			}
			if err := t.inTime(); err != nil {
				return err
			}
			txns[d.org] = t
			s[0]++ // another organization, other ids
		}
		c, err := t.customer(d.customer)
		if err != nil {
			return err
		}
		if _, err := t.account(c, t.cfg.programNumber(d.program)); err != nil {
			return err
		}
	}
	for _, t := range txns {
		if err := t.commit(); err != nil {
			return err
		}
	}
	return nil
}
