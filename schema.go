package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// The schema is how everything is kept: the keys of model.go, the records and the
// sizes of blocks. Its version is in the file:
//
//	v → schema version (8); during a migration also the version it began from (8)
//	    and the number of organizations done (4)
//
// A change of a key, a record or a size comes with a new version, a migration from
// the one before, a file of it in testdata/files, and a new testdata/layout.txt,
// which the tests compare with what is written.
//
//	1, 2  never released
//	3     had three layouts: ids of movements changed, then sizes of sets;
//	      only a file of the third one, from 8e579cf on, is migrated
//	4     counters know the latest moment of an organization's writes
//	5     comments of movements lie beside the ledger; records say who made them
//	6     records have more optional fields; sales know when they came
//	7     a feed of events; accounts are due when points are announced
//	8     users of the panel, their sessions and invitations
//	9     the search index holds texts folded further; the last purchase of a customer is
//	      one that stands; sales have more optional fields
//	10    sessions have optional fields: the PIN that they lock with
const schemaVersion = 10

// migratedFrom is the oldest version that is migrated.
const migratedFrom = 3

// A schemaError says that a file has another schema than this sello's.
type schemaError struct {
	version uint64
	cause   string // why it cannot be migrated; "" if it can
}

func (e *schemaError) Error() string {
	text := fmt.Sprintf("el archivo es del esquema %d y este sello usa el %d", e.version, schemaVersion)
	if e.cause != "" {
		return text + ": " + e.cause
	}
	return text + ": conviértelo con sello migrate, o inicia sello serve, que lo convierte"
}

// A schemaState is what a store records about its schema.
type schemaState struct {
	version uint64 // 0: the store is new
	from    uint64 // version that the current migration began from; 0: there is none
	done    uint32 // organizations already migrated
}

// readSchema looks up only v, which every store has unless it is new. A damaged page
// cannot show that a key is absent, and a server is to serve what can be read.
func readSchema(tx Tx) (s schemaState, err error) {
	value, ok, err := tx.Get(newKey('v'))
	if err != nil || !ok {
		return s, err
	}
	switch len(value) {
	case 20:
		s.from, s.done = uintIn(value[8:]), uint32In(value[16:])
	case 8:
	default:
		return s, unreadable(newKey('v'))
	}
	s.version = uintIn(value)
	return s, nil
}

// check returns a schemaError if a store is neither new nor of this sello's schema.
func (s schemaState) check() error {
	switch {
	case s.version == 0 || s.version == schemaVersion && s.from == 0:
		return nil
	case s.version > schemaVersion:
		return &schemaError{s.version, "lo escribió un sello más nuevo"}
	case s.version < migratedFrom:
		return &schemaError{s.version, "es anterior a la primera publicación"}
	}
	return &schemaError{version: cmp.Or(s.from, s.version)}
}

// open makes a new store ready for use. It refuses a store of another version with a
// schemaError and changes nothing in it. From then on the clock is judged by the
// store's latest moment.
func (e *engine) open(ctx context.Context) error {
	s, err := view(ctx, e.store, readSchema)
	if err == nil {
		err = e.writtenBy(ctx, s.check())
	}
	if err == nil && s.version == 0 {
		err = e.store.Update(ctx, func(tx Tx) error { return putUint(tx, newKey('v'), schemaVersion) })
		if errors.Is(err, errReadOnly) { // nothing is in it, which can be read as it is
			err = nil
		}
	}
	if err != nil {
		return err
	}
	latest, err := view(ctx, e.store, latestWritten)
	if err != nil && !errors.Is(err, errCorrupt) && !errors.Is(err, errRecord) { // what can be read of a damaged file is served
		return err
	}
	e.clock.start(latest)
	return nil
}

// A migrated describes a finished migration.
type migrated struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Copy string `json:"copy,omitempty"` // name of a copy of the file as it was; "" if there is none
}

// migrationStep is how many organizations are migrated, or of how many customers the last
// purchase is looked for, in one transaction.
const migrationStep = 256

// blocksStep is how many blocks of redemptions are filed in one transaction.
const blocksStep = 16

// vouchersStep and duesStep are how many moments of vouchers, and how many accounts, are
// looked at in one transaction.
const (
	vouchersStep = 256
	duesStep     = 1024
)

// salesStep is how many sales are dated in one transaction.
const salesStep = 2048

// statusesStep is how many customers are put into the sets of their statuses in one
// transaction.
const statusesStep = 4096

// migrate brings a store of an older schema to this one, or goes on where a kill
// interrupted it. It refuses a store whose layout is not that of its version, and
// changes nothing in it. keep, unless it is nil, copies the file before the first
// change and returns the copy's name.
func (e *engine) migrate(ctx context.Context, keep func(from uint64) (string, error)) (*migrated, error) {
	return e.migrateBy(ctx, migrationStep, keep)
}

// migrateBy is migrate with step organizations or customers in each transaction.
func (e *engine) migrateBy(ctx context.Context, step uint32, keep func(from uint64) (string, error)) (*migrated, error) {
	s, err := view(ctx, e.store, readSchema)
	if err != nil {
		return nil, err
	}
	begun, ours := s.from != 0, s.version == schemaVersion // an earlier sello may have begun it
	s.from = cmp.Or(s.from, s.version)
	var latest []instant // of each organization: what a store of version 3 does not know
	if s.from == 3 {
		latest, err = view(ctx, e.store, func(tx Tx) ([]instant, error) { return e.latestMoments(&stoppableTx{Tx: tx, ctx: ctx}) })
	}
	if err == nil && !ours && s.from < 9 {
		err = e.store.View(ctx, func(tx Tx) error { return e.readable(&stoppableTx{Tx: tx, ctx: ctx}) })
	}
	if err != nil {
		return nil, err
	}
	result := &migrated{From: s.from, To: schemaVersion}
	if keep != nil && !begun {
		if result.Copy, err = keep(s.from); err != nil {
			return nil, err
		}
	}
	if !ours { // from here on an earlier sello refuses the store
		if err := e.store.Update(ctx, s.mark); err != nil {
			return nil, err
		}
	}
	if err := e.fileOld(ctx, s.from, step); err != nil {
		return nil, err
	}
	for ended := false; !ended; {
		next := min(s.done+step, uint32(len(latest)))
		ended = next == uint32(len(latest))
		if err := e.store.Update(ctx, func(tx Tx) error { return s.migrateTo(tx, next, latest) }); err != nil {
			return nil, err
		}
		s.done = next
	}
	return result, nil
}

// mark writes how far a migration has come.
func (s schemaState) mark(tx Tx) error {
	return tx.Put(newKey('v'), key(nil).u64(schemaVersion).u64(s.from).u32(s.done))
}

// fileOld fills the tables that a store of an older version lacks, dates its sales, and
// mends its search index and last purchases, of each organization in steps. It goes on
// where a kill interrupted it. A store of version 9 lacks nothing: its sessions have no PIN.
func (e *engine) fileOld(ctx context.Context, from uint64, step uint32) error {
	organizations, err := view(ctx, e.store, func(tx Tx) (uint64, error) {
		n, _, err := getUint(tx, newKey('o').byte('n'))
		return n, err
	})
	if err != nil {
		return err
	}
	for org := uint32(1); org <= uint32(organizations); org++ {
		if from < 5 {
			if err := e.fileOldRedemptions(ctx, org); err != nil {
				return err
			}
			if err := e.indexOldStatuses(ctx, org); err != nil {
				return err
			}
		}
		if from < 6 {
			if err := e.dateOldSales(ctx, org); err != nil {
				return err
			}
		}
		if from < 7 {
			if err := e.fileOldVouchers(ctx, org); err != nil {
				return err
			}
		}
		if from < 9 {
			if err := e.refoldIndex(ctx, org); err != nil {
				return err
			}
			if err := e.mendLastSales(ctx, org, int(step)); err != nil {
				return err
			}
		}
	}
	if from < 7 {
		return e.announceOld(ctx)
	}
	return nil
}

// mendLastSales sets when the last purchases of customers happened, of step customers in
// each transaction: up to schema 8 one that was wholly returned counted, too.
func (e *engine) mendLastSales(ctx context.Context, org uint32, step int) error {
	return e.inSteps(ctx, orgKey('l', org).byte('c'), func(tx Tx, from key) (key, error) {
		return runTxn(e, tx, org, 0, seed{}, func(t *txn) (key, error) { return t.mendLastSales(from, step) })
	})
}

// fileOldVouchers makes the entries of vouchers that have not expired, for some moments in
// each transaction.
func (e *engine) fileOldVouchers(ctx context.Context, org uint32) error {
	return e.inSteps(ctx, tableVoucherExpiries.in(org), func(tx Tx, from key) (key, error) {
		return runTxn(e, tx, org, 0, seed{}, func(t *txn) (key, error) { return t.fileVouchers(from, vouchersStep, never) })
	})
}

// announceOld makes accounts due when their points are announced, some in each transaction.
func (e *engine) announceOld(ctx context.Context) error {
	return e.inSteps(ctx, newKey('d'), func(tx Tx, from key) (key, error) { return e.announceSome(tx, from, duesStep) })
}

// inSteps runs steps, each from a key on, which return the last key that they looked at, nil
// at the end. Where a step would write nothing, because an interrupted migration has been
// there, it has no Update.
func (e *engine) inSteps(ctx context.Context, from key, step func(tx Tx, from key) (last key, err error)) error {
	type done struct {
		last  key
		wrote bool
	}
	for from != nil {
		next, err := view(ctx, e.store, func(tx Tx) (done, error) {
			dry := newOverlay(tx)
			last, err := step(dry, from)
			return done{last, len(dry.writes) > 0}, err
		})
		if err == nil && next.wrote {
			next.last, err = update(ctx, e.store, func(tx Tx) (key, error) { return step(tx, from) })
		}
		if err != nil {
			return err
		}
		if from = next.last; from != nil {
			from = append(slices.Clone(from), 0)
		}
	}
	return nil
}

// announceSome does so for the accounts of the first entries from a key on, most of them at
// most. It returns the last of these; nil if there are none.
func (e *engine) announceSome(tx Tx, from key, most int) (last key, err error) {
	var list []dueAccount
	for entry, err := range tx.Scan(from, newKey('d').after(), false) {
		if err != nil {
			return nil, err
		}
		if list = append(list, newDueAccount(entry.Key)); len(list) == most {
			break
		}
	}
	each, err := e.newOrgTxns(tx, 0, seed{})
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		last = d.key
		t, err := each.of(d.org)
		if err == nil && t != nil {
			err = t.announceOld(d)
		}
		if err != nil {
			return nil, err
		}
	}
	return last, each.commit()
}

// dateOldSales sets when sales came, some of them in each transaction. It writes where
// that is not known alone.
func (e *engine) dateOldSales(ctx context.Context, org uint32) error {
	type step struct {
		sales  uint64 // all there are
		before instant
		wrote  bool
	}
	var done step
	for first := uint64(1); ; first += salesStep {
		date := func(t *txn) (step, error) {
			n, err := t.count()
			if err != nil || n.Sales < first {
				return step{}, err
			}
			before, err := t.dateOld(first, min(n.Sales, first+salesStep-1), done.before)
			return step{n.Sales, before, t.wrote}, err
		}
		next, err := rehearse(ctx, e, org, 0, date)
		if err == nil && next.wrote {
			_, err = update(ctx, e.store, func(tx Tx) (step, error) { return runTxn(e, tx, org, 0, seed{}, date) })
		}
		if done = next; err != nil || done.sales < first+salesStep {
			return err
		}
	}
}

// fileOldRedemptions fills the tables of redemptions.go, some blocks in each transaction.
// It goes on after the last block that is filed.
func (e *engine) fileOldRedemptions(ctx context.Context, org uint32) error {
	for {
		more, err := read(ctx, e, org, 0, func(t *txn) (bool, error) {
			_, more, err := t.unfiledRedemptions()
			return more, err
		})
		if err != nil || !more {
			return err
		}
		_, err = update(ctx, e.store, func(tx Tx) (any, error) {
			return runTxn(e, tx, org, 0, seed{}, func(t *txn) (any, error) { return nil, t.fileNextRedemptions(blocksStep) })
		})
		if err != nil {
			return err
		}
	}
}

// indexOldStatuses makes the sets of customers by status, for some customers in each
// transaction. It writes where one is missing from its set alone.
func (e *engine) indexOldStatuses(ctx context.Context, org uint32) error {
	n, err := read(ctx, e, org, 0, func(t *txn) (uint64, error) {
		n, err := t.count()
		if err != nil {
			return 0, err
		}
		return n.Customers, nil
	})
	for first := uint64(1); err == nil && first <= n; first += statusesStep {
		last := min(n, first+statusesStep-1)
		var missing bool
		missing, err = read(ctx, e, org, 0, func(t *txn) (bool, error) { return t.statusesMissing(first, last) })
		if err == nil && missing {
			_, err = update(ctx, e.store, func(tx Tx) (any, error) {
				return runTxn(e, tx, org, 0, seed{}, func(t *txn) (any, error) { return nil, t.indexStatuses(first, last) })
			})
		}
	}
	return err
}

// migrateTo migrates the organizations up to number next.
func (s schemaState) migrateTo(tx Tx, next uint32, latest []instant) error {
	for org := s.done + 1; org <= next; org++ {
		if err := noteLatest(tx, org, latest[org-1]); err != nil {
			return err
		}
	}
	if next == uint32(len(latest)) {
		return putUint(tx, newKey('v'), schemaVersion)
	}
	s.done = next
	return s.mark(tx)
}

// readable reads what a migration goes by: it must not begin what it cannot end.
func (e *engine) readable(tx Tx) error {
	return e.checkEach(tx, func(check *layoutCheck) error {
		if err := check.records(); err != nil {
			return err
		}
		return check.indexes()
	})
}

// checkEach looks at each organization in turn.
func (e *engine) checkEach(tx Tx, look func(*layoutCheck) error) error {
	n, _, err := getUint(tx, newKey('o').byte('n'))
	if err != nil {
		return err
	}
	for org := range uint32(n) {
		t, err := e.inTxn(tx, org+1, 0, seed{})
		if err != nil {
			return err
		}
		if err := look(&layoutCheck{txn: t}); err != nil {
			return err
		}
	}
	return nil
}

// latestMoments reads a store of version 3. It returns the latest moment that a
// record of each organization carries. If a record or a set has one of the layouts
// that this version had before 8e579cf, it returns a schemaError.
func (e *engine) latestMoments(tx Tx) (list []instant, err error) {
	err = e.checkEach(tx, func(check *layoutCheck) error {
		for _, part := range []func() error{check.movements, check.records, check.sets} {
			if err := part(); errors.Is(err, errRecord) {
				return &schemaError{migratedFrom, "lo escribió un sello anterior a la primera publicación, con otra disposición de los datos"}
			} else if err != nil {
				return err
			}
		}
		list = append(list, check.latest)
		return nil
	})
	return list, err
}

// A layoutCheck reads what an organization has. Its methods return errRecord
// where something has another layout.
type layoutCheck struct {
	txn    *txn
	latest instant
}

func (c *layoutCheck) saw(at ...instant) {
	for _, moment := range at {
		c.latest = max(c.latest, moment)
	}
}

// movements reads all movements. The hash of an account's first one depends on that
// movement alone, and no other layout gives the same hash.
func (c *layoutCheck) movements() error {
	for e, err := range scan(c.txn.Tx, orgKey('m', c.txn.org), false) {
		if err != nil {
			return err
		}
		m, err := decodeEntry[movement](e)
		if err != nil {
			return err
		}
		record := e.Value[:len(e.Value)-len(m.Hash)]
		if m.Link.Prev == 0 && m.Hash != hashMovement(ledgerHash{}, c.txn.org, uintIn(e.Key[5:]), record) {
			return unreadable(e.Key)
		}
		c.saw(m.CreatedAt)
	}
	return nil
}

// records reads sales, redemptions and customers.
func (c *layoutCheck) records() error {
	for _, table := range []byte{'t', 'r', 'c'} {
		for e, err := range scan(c.txn.Tx, orgKey(table, c.txn.org), false) {
			if err != nil {
				return err
			}
			if err := c.record(table, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *layoutCheck) record(table byte, e Entry) error {
	switch {
	case table == 't':
		s, err := decodeEntry[sale](e)
		if err == nil {
			c.saw(s.CreatedAt)
		}
		return err
	case table == 'r':
		x, err := decodeEntry[redemption](e)
		if err == nil {
			c.saw(x.CreatedAt, x.CancelledAt)
		}
		return err
	case e.Key[21] == partCustomer:
		k, err := decodeEntry[customer](e)
		if err == nil {
			c.saw(k.CreatedAt, k.UpdatedAt)
		}
		return err
	}
	return nil
}

// indexes reads the list of customers, the table of merges and the search index.
func (c *layoutCheck) indexes() error {
	n, err := c.txn.count()
	if err != nil {
		return err
	}
	for _, err := range c.txn.customersBetween(1, n.Customers) {
		if err != nil {
			return err
		}
	}
	for _, err := range stubEntries(c.txn.Tx, orgKey('J', c.txn.org)) {
		if err != nil {
			return err
		}
	}
	for _, err := range scan(c.txn.Tx, orgKey('g', c.txn.org), false) {
		if err != nil {
			return err
		}
	}
	return nil
}

// sets reads all sets of customers who bought. Blocks used to be larger: some of those
// hold what no block of today can hold, or name customers who have bought nothing.
func (c *layoutCheck) sets() error {
	looked := 0
	for e, err := range scan(c.txn.Tx, orgKey('z', c.txn.org), false) {
		if err != nil {
			return err
		}
		if !isBlock(e.Value) {
			return unreadable(e.Key)
		}
		set := blockSet{}
		block := uint32In(e.Key[len(e.Key)-4:])
		set.join(block, e.Value)
		for number := range set.numbers() {
			if looked++; looked > 1000 { // enough: in an old layout some would have bought nothing
				break
			}
			if err := c.bought(number); err != nil {
				return err
			}
		}
	}
	return nil
}

// bought returns errRecord unless the customer with a number exists and has a purchase.
func (c *layoutCheck) bought(number uint64) error {
	n, err := c.txn.count()
	if err != nil {
		return err
	}
	if number == 0 || number > n.Customers {
		return errRecord
	}
	k, err := c.txn.customerAt(number)
	if err == nil && k.PurchasesTotal == 0 {
		err = errRecord
	}
	return err
}
