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
	eventBatch  = 500  // records of events dropped
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
	if err := e.expireVouchers(ctx, moment); err != nil {
		return err
	}
	err := e.sweepBirthdays(ctx, moment)
	if err != nil && !isDamaged(err) {
		return err
	}
	return errors.Join(err, e.dropReplays(ctx, moment), e.dropEvents(ctx, moment))
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

// dropEvents drops the events that are kept no longer, of all organizations once an hour.
func (e *engine) dropEvents(ctx context.Context, moment func() (instant, error)) error {
	now, err := moment()
	last := instant(e.eventsDropped.Load())
	if err != nil || now < last+eventsDropEvery && now >= last {
		return err
	}
	organizations, err := view(ctx, e.store, func(tx Tx) (uint64, error) {
		n, _, err := getUint(tx, newKey('o').byte('n'))
		return n, err
	})
	for org := uint32(1); err == nil && org <= uint32(organizations); {
		var old bool
		old, err = view(ctx, e.store, func(tx Tx) (bool, error) {
			list, _, err := oldEvents(tx, org, now, 1)
			return len(list) > 0, err
		})
		if err != nil || !old {
			org++
			continue
		}
		err = e.store.Update(ctx, func(tx Tx) error { return dropEvents(tx, org, now, eventBatch) })
	}
	if err == nil {
		e.eventsDropped.Store(int64(now))
	}
	return err
}

// eventsDropEvery is how often old events are looked for, in milliseconds.
const eventsDropEvery = 60 * 60 * 1000

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
	each, err := e.newOrgTxns(tx, now, s)
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		if err := tx.Delete(d.key); err != nil { // also if the account is due at another moment
			return nil, err
		}
		t, err := each.of(d.org)
		if err != nil {
			return nil, err
		}
		known := t != nil
		if known {
			if known, err = t.settleDue(d); err != nil {
				return nil, err
			}
		}
		if !known {
			strays = append(strays, hex.EncodeToString(d.key))
		}
	}
	if err := each.inTime(); err != nil {
		return nil, err
	}
	return strays, each.commit()
}

// orgTxns are the txns of several organizations on one Tx.
type orgTxns struct {
	engine        *engine
	tx            Tx
	now           instant
	seed          seed
	organizations uint64
	txns          map[uint32]*txn
}

func (e *engine) newOrgTxns(tx Tx, now instant, s seed) (*orgTxns, error) {
	organizations, _, err := getUint(tx, newKey('o').byte('n'))
	return &orgTxns{e, tx, now, s, organizations, map[uint32]*txn{}}, err
}

// of returns the txn of an organization; nil if there is none with that number.
func (o *orgTxns) of(org uint32) (*txn, error) {
	if org == 0 || uint64(org) > o.organizations {
		return nil, nil
	}
	if t := o.txns[org]; t != nil {
		return t, nil
	}
	t, err := o.engine.inTxn(o.tx, org, o.now, o.seed)
	if err != nil {
		return nil, err
	}
	o.txns[org] = t
	o.seed[0]++ // another organization, other ids
	return t, nil
}

// inTime returns clock_unsafe if one of them had to step on too far.
func (o *orgTxns) inTime() error {
	for _, t := range o.txns {
		if err := t.inTime(); err != nil {
			return err
		}
	}
	return nil
}

func (o *orgTxns) commit() error {
	for _, t := range o.txns {
		if err := t.commit(); err != nil {
			return err
		}
	}
	return nil
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
