package main

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"sync"
)

// Bounds of one transaction of the sweep.
const (
	sweepBatch  = 64   // accounts
	replayBatch = 1000 // replays dropped
)

// sweep writes down what has become due by itself: points that expired or became
// available, days that left a tier's window (contract §8). Balances are right
// without it; it brings the ledger up to date. It also drops replays that are too
// old to be asked for, and gives the points of birthdays. While an import is under way or
// the clock is unsafe, it waits.
func (e *engine) sweep(ctx context.Context) error {
	return unlessUnsafe(e.sweepBy(ctx, e.clock.forWriting))
}

// sweepBy is sweep with the given source of moments. It asks for one before each
// transaction, since the clock may have become wrong meanwhile.
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
		strays, err := update(ctx, e.store, func(tx Tx) ([]string, error) {
			list, err := dueAccounts(tx, now, sweepBatch)
			if err != nil {
				return nil, err
			}
			return e.settleAll(tx, list, now, s)
		})
		if err != nil {
			return err
		}
		e.clock.wrote(now)
		if len(strays) > 0 {
			e.log.Warn("stray due entries removed", "keys", strays)
		}
	}
	err := e.sweepBirthdays(ctx, moment)
	if err != nil && !isDamaged(err) {
		return err
	}
	return errors.Join(err, e.dropReplays(ctx, moment))
}

// dropReplays drops the replays that are too old to be asked for.
func (e *engine) dropReplays(ctx context.Context, moment func() (instant, error)) error {
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

// A dueAccount is one entry of the table of due accounts.
type dueAccount struct {
	key      key
	org      uint32 // 0 if the key is malformed
	customer id
	program  uint32
}

func newDueAccount(k key) dueAccount {
	const place = 1 + 8 // of the organization; see dueKey
	d := dueAccount{key: slices.Clone(k)}
	if len(k) == place+4+16+4 {
		d.org, d.customer, d.program = uint32In(k[place:]), id(k[place+4:][:16]), uint32In(k[place+20:])
	}
	return d
}

// dueAccounts lists the first accounts, up to limit, that are due at now.
func dueAccounts(tx Tx, now instant, limit int) ([]dueAccount, error) {
	var list []dueAccount
	for e, err := range tx.Scan(newKey('d'), newKey('d').instant(now+1), false) {
		if err != nil {
			return nil, err
		}
		if list = append(list, newDueAccount(e.Key)); len(list) == limit {
			break
		}
	}
	return list, nil
}

// dueSince returns since when the account is due that has waited longest for the sweep.
// ok is false if none is due.
func (e *engine) dueSince(ctx context.Context, now instant) (since instant, ok bool, err error) {
	list, err := view(ctx, e.store, func(tx Tx) ([]dueAccount, error) { return dueAccounts(tx, now, 1) })
	if err != nil || len(list) == 0 {
		return 0, false, err
	}
	return instantIn(list[0].key[1:]), true, nil
}

// settleAll brings accounts up to now. It returns the keys of strays: entries of an
// organization, customer or program that does not exist. Strays are removed like the
// others, since they hold nothing that is not kept elsewhere; if they stayed, each
// sweep would meet them again first.
func (e *engine) settleAll(tx Tx, list []dueAccount, now instant, s seed) (strays []string, err error) {
	organizations, _, err := getUint(tx, newKey('o').byte('n'))
	if err != nil {
		return nil, err
	}
	txns := map[uint32]*txn{}
	for _, d := range list {
		if err := tx.Delete(d.key); err != nil { // also if the account is due at another moment
			return nil, err
		}
		known := d.org > 0 && uint64(d.org) <= organizations
		t := txns[d.org]
		if known && t == nil {
			if t, err = e.inTxn(tx, d.org, now, s); err != nil {
				return nil, err
			}
			if err := t.inTime(); err != nil {
				return nil, err
			}
			txns[d.org] = t
			s[0]++ // another organization, other ids
		}
		if known {
			if known, err = t.settleDue(d); err != nil {
				return nil, err
			}
		}
		if !known {
			strays = append(strays, hex.EncodeToString(d.key))
		}
	}
	for _, t := range txns {
		if err := t.commit(); err != nil {
			return nil, err
		}
	}
	return strays, nil
}

// settleDue brings an account up to now, and reports whether its customer and its
// program exist.
func (t *txn) settleDue(d dueAccount) (known bool, err error) {
	p := t.cfg.programNumber(d.program)
	c, err := t.customerByID(d.customer)
	if err != nil || c == nil || p == nil {
		return false, err
	}
	_, err = t.account(c, p)
	return true, err
}

// imports are the imports under way, and until when the sweep waits for the next
// batch of each.
type imports struct {
	mu    sync.Mutex
	until map[string]instant
}

func (i *imports) wait(name string, until instant) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.until == nil {
		i.until = map[string]instant{}
	}
	i.until[name] = until
}

func (i *imports) end(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.until, name)
}

// underWay reports whether the next batch of any import is awaited.
func (i *imports) underWay(now instant) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.DeleteFunc(i.until, func(_ string, until instant) bool { return until <= now })
	return len(i.until) > 0
}
