package main

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"
)

// The sweep is the task of the server that writes down what has become due, in bounded
// transactions. While an import is under way it waits, so that old sales find the tiers of their
// time. The file also has the latest moment of all writes, by which a wrong clock is noticed
// after a restart, and how somebody accepts the clock.

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
	return unlessUnsafe(e.sweepBy(ctx, e.momentToWrite))
}

// sweepBy is sweep with the given source of moments. It asks for one before each
// transaction, since the clock may have become wrong meanwhile.
func (e *engine) sweepBy(ctx context.Context, moment func() (instant, error)) error {
	if e.importUnderWay(ctx) {
		return nil
	}
	defer e.freeImports(ctx)
	for _, d := range dueTables() {
		if err := e.sweepDue(ctx, moment, d); err != nil {
			return err
		}
	}
	err := e.sweepBirthdays(ctx, moment)
	if err != nil && !isDamaged(err) {
		return err
	}
	return errors.Join(err, e.dropReplays(ctx, moment), e.dropEvents(ctx, moment), e.dropEnded(ctx, moment))
}

// A dueTable is a table of what becomes due. Its keys begin with a moment and an organization.
type dueTable struct {
	of   table
	what string // the entries in the log

	// change makes the change of one key, and reports whether there is what the key names.
	change func(t *txn, k key) (known bool, err error)
}

// dueTables are all such tables, in the order in which they are swept.
func dueTables() []dueTable {
	return []dueTable{{tableDue, "entries", settleDue}, {tableDueVouchers, "vouchers", func(t *txn, k key) (bool, error) { return t.rewards.expireVoucher(k) }}}
}

// sweepDue changes what is due by a table, and drops its entries.
func (e *engine) sweepDue(ctx context.Context, moment func() (instant, error), d dueTable) error {
	for {
		now, err := moment()
		if err != nil {
			return err
		}
		due, err := viewStore(ctx, e.store, func(tx Tx) ([]key, error) { return dueKeys(tx, d.of, now, sweepBatch) })
		if err != nil || len(due) == 0 {
			return err
		}
		for _, list := range e.together(due) {
			s := e.seed()
			strays, err := updateStore(ctx, e.store, func(tx Tx) ([]string, error) { return e.changeDue(tx, d, list, now, s) })
			if err != nil {
				return err
			}
			e.clock.Wrote(now)
			if len(strays) > 0 {
				e.log.Warn("stray due "+d.what+" removed", "keys", strays)
			}
		}
	}
}

// together divides the keys of what is due into lists, one for each transaction: a single list, or
// one for each organization where other servers write at the same time.
func (e *engine) together(due []key) (lists [][]key) {
	if !isShared(e.store) {
		return [][]key{due}
	}
	at := map[int32]int{}
	for _, k := range due {
		part := partition{}.PartOf(k)
		i, has := at[part]
		if !has {
			i = len(lists)
			at[part], lists = i, append(lists, nil)
		}
		lists[i] = append(lists[i], k)
	}
	return lists
}

// dueKeys lists the first keys, up to limit, of what is due at now.
func dueKeys(tx Tx, of table, now instant, limit int) (list []key, err error) {
	for e, err := range tx.Scan(of.fixed(), of.fixed().instant(now+1), false) {
		if err != nil {
			return nil, err
		}
		if list = append(list, slices.Clone(e.Key)); len(list) == limit {
			break
		}
	}
	return list, nil
}

// changeDue makes the changes of some keys and drops the keys. It returns the keys of strays:
// entries of what does not exist. Strays are removed like the others, since they hold nothing
// that is not kept elsewhere; if they stayed, each sweep would meet them again first.
func (e *engine) changeDue(tx Tx, d dueTable, list []key, now instant, s seed) (strays []string, err error) {
	each, err := e.newOrgTxns(tx, now, s)
	if err != nil {
		return nil, err
	}
	for _, k := range list {
		stray, err := each.change(d, k)
		if err != nil {
			return nil, err
		}
		if stray {
			strays = append(strays, hex.EncodeToString(k))
		}
	}
	if err := each.inTime(); err != nil {
		return nil, err
	}
	return strays, each.commit()
}

// change makes the change of one key, unless somebody else was first, and drops it. It reports
// whether the key is a stray.
func (o *orgTxns) change(d dueTable, k key) (stray bool, err error) {
	_, still, err := o.tx.Get(k)
	if err != nil || !still {
		return false, err
	}
	if err := o.tx.Delete(k); err != nil { // also if it is due at another moment
		return false, err
	}
	known := false
	if d.of.has(k) {
		t, err := o.of(uint32In(k[dueOrg:]))
		if err == nil && t != nil {
			known, err = d.change(t, k)
		}
		if err != nil {
			return false, err
		}
	}
	return !known, nil
}

// dropReplays drops the replays that are too old to be asked for.
func (e *engine) dropReplays(ctx context.Context, moment func() (instant, error)) error {
	for {
		now, err := moment()
		if err != nil {
			return err
		}
		stale, err := viewStore(ctx, e.store, func(tx Tx) (*staleSlice, error) { return findStaleSlice(tx, e.slices, now) })
		if err != nil {
			return err
		}
		if stale == nil {
			return nil
		}
		err = e.store.Update(ctx, func(tx Tx) error {
			stale, err := e.slices.stale(tx, stale.org, now)
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

// dropEvents drops the events, and the tickets, that are kept no longer, of all organizations once an hour.
func (e *engine) dropEvents(ctx context.Context, moment func() (instant, error)) error {
	now, err := moment()
	last := instant(e.eventsDropped.Load())
	if err != nil || e.keepsEvents || now < last+eventsDropEvery && now >= last {
		return err
	}
	organizations, err := viewStore(ctx, e.store, organizationCount)
	for org := uint32(1); err == nil && org <= uint32(organizations); {
		var old bool
		old, err = viewStore(ctx, e.store, func(tx Tx) (bool, error) {
			list, _, err := oldEvents(tx, org, now, 1)
			return len(list) > 0, err
		})
		if err == nil && old {
			err = e.store.Update(ctx, func(tx Tx) error { return dropEvents(tx, org, now, eventBatch) })
			continue
		}
		if err == nil {
			err = e.dropTickets(ctx, org, now)
		}
		org++
	}
	if err == nil {
		e.eventsDropped.Store(int64(now))
	}
	return err
}

// dropTickets drops an organization's tickets that are kept no longer.
func (e *engine) dropTickets(ctx context.Context, org uint32, now instant) error {
	more, err := viewStore(ctx, e.store, func(tx Tx) (bool, error) {
		times := tableTicketTimes.in(org)
		for _, err := range tx.Scan(times, slices.Clone(times).instant(now-ticketLife), false) {
			return err == nil, err
		}
		return false, nil
	})
	for err == nil && more {
		more, err = write(ctx, e, org, now, func(t *txn) (bool, error) { return t.tickets.dropOld(eventBatch) })
	}
	return err
}

// eventsDropEvery is how often old events and tickets are looked for, in milliseconds.
const eventsDropEvery = 60 * 60 * 1000

// dropEnded drops the sessions that have ended, and invitations and pre-enrolments that are of no use
// any more, once in endedEvery.
func (e *engine) dropEnded(ctx context.Context, moment func() (instant, error)) error {
	now, err := moment()
	last := instant(e.sessionsDropped.Load())
	if err != nil || now < last.add(endedEvery) && now >= last {
		return err
	}
	for _, all := range []key{newKey('S'), newKey('V'), tableJoins.fixed()} {
		for from := all; from != nil && err == nil; {
			from, err = e.dropEndedFrom(ctx, from, all.after(), now)
		}
	}
	if err == nil {
		e.sessionsDropped.Store(int64(now))
	}
	return err
}

// dropEndedFrom drops the ended ones of endedBatch sessions, invitations or pre-enrolments from a key
// on. It returns where to go on; nil at the end.
func (e *engine) dropEndedFrom(ctx context.Context, from, to key, now instant) (next key, err error) {
	type found struct {
		ended []key
		next  key
	}
	list, err := viewStore(ctx, e.store, func(tx Tx) (f found, err error) {
		looked := 0
		for entry, err := range tx.Scan(from, to, false) {
			if err != nil {
				return f, err
			}
			if looked++; looked > endedBatch {
				f.next = slices.Clone(entry.Key)
				break
			}
			if ended, err := e.hasEnded(entry, now); err != nil {
				return f, err
			} else if ended {
				f.ended = append(f.ended, slices.Clone(entry.Key))
			}
		}
		return f, nil
	})
	if err != nil || len(list.ended) == 0 {
		return list.next, err
	}
	return list.next, e.store.Update(ctx, func(tx Tx) error {
		for _, k := range list.ended {
			if err := e.dropIfEnded(tx, k, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// hasEnded reports whether a session, an invitation or a pre-enrolment is of no use any more.
func (e *engine) hasEnded(entry Entry, now instant) (bool, error) {
	switch entry.Key[0] {
	case 'Y':
		p, err := decodeEntry[preEnrolment](entry)
		return err == nil && p.isOld(now), err
	case 'V':
		i, err := decodeEntry[invitation](entry)
		return err == nil && now >= i.Expires.add(invitationKept), err
	}
	s, err := decodeEntry[session](entry)
	return err == nil && e.sessionLimits.over(s, [32]byte(entry.Key[1:]), now), err
}

func (e *engine) dropIfEnded(tx Tx, k key, now instant) error {
	value, ok, err := tx.Get(k)
	if err != nil || !ok {
		return err
	}
	entry := Entry{Key: k, Value: value}
	if ended, err := e.hasEnded(entry, now); err != nil || !ended {
		return err
	}
	if k[0] == 'Y' {
		return dropJoin(tx, k[2:])
	}
	hash := [32]byte(k[1:])
	if k[0] == 'V' {
		i, err := decodeEntry[invitation](entry)
		if err != nil {
			return err
		}
		return dropInvitation(tx, i, hash)
	}
	s, err := decodeEntry[session](entry)
	if err != nil {
		return err
	}
	return dropSession(tx, s.User, hash)
}

// dueSince returns the moment since which some account has waited longest for the sweep. ok is
// false if no account is due.
func (e *engine) dueSince(ctx context.Context, now instant) (since instant, ok bool, err error) {
	list, err := viewStore(ctx, e.store, func(tx Tx) ([]key, error) { return dueKeys(tx, tableDue, now, 1) })
	if err != nil || len(list) == 0 {
		return 0, false, err
	}
	return instantIn(list[0][1:]), true, nil
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
	organizations, err := organizationCount(tx)
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

// inTime returns clock_unsafe if one of the txns had to step on too far.
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

// settleDue brings the account of a due entry up to now, and reports whether its customer and
// its program exist. k is a key of tableDue.
func settleDue(t *txn, k key) (known bool, err error) {
	k = k[dueOrg+4:]
	p := t.cfg.programNumber(uint32In(k[16:]))
	c, err := t.customers.byID(id(k[:16]))
	if err != nil || c == nil || p == nil {
		return false, err
	}
	_, err = t.points.account(c, p)
	return true, err
}

// importPause is how long the sweep waits after a batch for the next one. Once the
// sweep has brought the accounts up to today, sales of long ago no longer find the
// tier windows of their time.
const importPause = 30 * time.Second

// importLeases are leases that keep the sweeps of other servers waiting too: a process that imports
// holds one of them, a sweep all. They do not bind: while a third process imports,
// after a pause of more than 10 seconds between batches, or if the import begins during a sweep,
// the sweep brings accounts up to today all the same. Then the rest of the import gives old sales
// the tiers of today, as it does after a restart of the only server. Nothing else depends on it.
var importLeases = [...]string{"import/1", "import/2"}

// holdSweep keeps the sweep from beginning until the next batch of an import, or for a while.
func (e *engine) holdSweep(ctx context.Context, name string) {
	e.imports.wait(name, instantOf(e.now()).add(importPause))
	for _, lease := range importLeases {
		if e.store.mine(ctx, lease) {
			return
		}
	}
}

// endImport lets the sweep begin, unless there is another import.
func (e *engine) endImport(ctx context.Context, name string) {
	e.imports.end(name)
	if !e.imports.underWay(instantOf(e.now())) {
		e.freeImports(ctx)
	}
}

// importUnderWay reports whether the next batch of any import is awaited, here or by another
// server. If not, no import of another server takes a lease before freeImports.
func (e *engine) importUnderWay(ctx context.Context) bool {
	if e.imports.underWay(instantOf(e.now())) {
		return true
	}
	for i, lease := range importLeases {
		if !e.store.mine(ctx, lease) {
			for _, taken := range importLeases[:i] {
				e.store.done(ctx, taken)
			}
			return true
		}
	}
	return false
}

// freeImports gives back the leases that this server took.
func (e *engine) freeImports(ctx context.Context) {
	for _, lease := range importLeases {
		e.store.done(ctx, lease)
	}
}

// setNow goes on with a later moment, which what is written from then on carries.
func setNow(t *txn, at instant) { t.now, t.began = at, at }

// Latest is the latest moment that any committed write carries. By it a wrong clock is
// noticed after a restart (internal/wallclock). Each organization keeps its own in its
// counters, so that writes of different organizations share no key.

// latestWritten returns the latest moment of all organizations; 0 if there is none.
func latestWritten(tx Tx) (latest instant, err error) {
	for e, err := range scan(tx, newKey('n'), false) {
		if err != nil {
			return 0, err
		}
		n, err := decodeEntry[counters](e)
		if err != nil {
			return 0, err
		}
		latest = max(latest, n.Latest)
	}
	return latest, nil
}

// setLatest sets the latest moment of every organization. Where that lowers it, time
// has stepped back, and customers are counted anew: days may have left a rolling tier
// window too early, and what is told of points and vouchers that expire is to come again.
// by is who accepted the clock.
func setLatest(tx Tx, now instant, by creator) error {
	organizations, err := organizationCount(tx)
	if err != nil {
		return err
	}
	for org := uint32(1); org <= uint32(organizations); org++ {
		t := bareTxn(tx, org, &mint{now: now}, by)
		n, err := t.count()
		if err == nil && n.Latest > now {
			err = recountAll(tx, org)
		}
		if err != nil {
			return err
		}
		before := n.Latest
		n.Latest = now
		if err := t.rewards.fileVouchers(before); err != nil {
			return err
		}
		if err := t.audit.note(auditClockAccepted, "", []change{{"latest", before, now}}); err != nil {
			return err
		}
		if err := t.commit(); err != nil {
			return err
		}
	}
	return nil
}

// commandTime is the moment of an operator's writes, even if the clock is unsafe.
func (e *engine) commandTime() (instant, error) { return instantOf(e.now()), nil }

// unlessUnsafe turns clock_unsafe into nil: a task that waits for the clock did not fail.
func unlessUnsafe(err error) error {
	if errors.Is(err, errClockUnsafe()) {
		return nil
	}
	return err
}

// acceptClock accepts the wall clock, on the word of by, even if it was found unsafe.
func (e *engine) acceptClock(ctx context.Context, by creator) error {
	r, _ := e.clock.Read()
	at := max(instantOf(r.Wall), 1) // 0 means that there is none
	if err := e.store.Update(ctx, func(tx Tx) error { return setLatest(tx, at, by) }); err != nil {
		return err
	}
	e.clock.Accept(at)
	return nil
}

// correctClock accepts the clock if a synchronized kernel says that latest is wrong.
func (e *engine) correctClock(ctx context.Context) error {
	if _, s := e.clock.Read(); !s.Contradicted {
		return nil
	}
	return e.acceptClock(ctx, creator{Type: bySystem})
}
