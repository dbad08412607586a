package main

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sort"
	"sync/atomic"
	"time"

	"sello/internal/throttle"
	"sello/internal/wallclock"
)

// A transaction of the domain (txn): one organization at one moment, run by an engine on its store.
// At the end, who made a record (creator), and the configurations that were applied (configVersion).

// sizes says how many entries of an account lie together, and how many
// records a merge takes.
type sizes struct {
	inline inlineLimits
	merged uint64
}

// inlineLimits say how many lots, sums by expiry and days of the tier window an
// account's own record holds.
type inlineLimits struct{ lots, sums, days int }

func usualInline() inlineLimits { return inlineLimits{lots: 32, sums: 12, days: 12} }

// usualSizes returns the sizes of every file. Only tests use others.
func usualSizes() sizes { return sizes{usualInline(), mostMerged} }

// mostMerged is how many records a customer who is merged may have.
const mostMerged = 10_000

// An engine runs the domain on a store.
type engine struct {
	store   *watchedStore
	clock   *wallClock
	seed    func() seed
	configs cache[uint32, *config]
	callers cache[[32]byte, caller]                  // by the hash of their key
	filters atomic.Pointer[map[uint32]*replayFilter] // by organization
	slices  *knownSlices                             // the store's
	sizes   sizes

	migrations []migration // from older schemas: theMigrations; only tests have others

	noBirthdayUntil atomic.Pointer[noBirthdaySpan] // until when no birthday is due; nil: not known
	log             *slog.Logger

	imports imports // under way; the sweep waits for them

	proofs  throttle.Strikes[id, instant] // wrong digits of customers' cards (cards.go)
	cardsAt string                        // what the addresses of cards and tickets begin with; "": the server has none. It is set before the engine is used

	handouts chan struct{} // has one if giveHandouts is to begin soon

	eventsDropped   atomic.Int64 // moment when a sweep last dropped old events
	sessionsDropped atomic.Int64 // moment when a sweep last dropped ended sessions

	sessionLimits sessionLimits // when sessions of the panel end
	keepsEvents   bool          // a sandbox's: none is too old
}

// A wallClock judges the machine's clock (contract §11). While it is unsafe, only what an operator
// asks for is written.
type wallClock = wallclock.Clock[instant]

// A customer's card is locked after so many wrong digits within so many milliseconds (contract §25).
const (
	mostWrongProofs         = 10
	wrongProofsSpan instant = 10 * 60 * 1000
)

// programDate is the program's own date: the date of the oldest Go that builds it,
// 2026-02-10. No right clock is before it.
const programDate instant = 1_770_681_600_000

func newWallClock(m wallclock.Machine) *wallClock { return wallclock.New(m, programDate) }

// newEngineBy makes an engine that takes the time from c.
func newEngineBy(c *wallClock, s Store, newSeed func() seed) *engine {
	w := watch(s)
	if w.shared != nil && !c.Movable {
		c.StoreAhead = w.shared.clockAhead
	}
	return &engine{store: w, clock: c, seed: newSeed, slices: &w.slices, sizes: usualSizes(), migrations: theMigrations(), sessionLimits: usualSessionLimits(), handouts: make(chan struct{}, 1), log: slog.New(slog.DiscardHandler),
		proofs: throttle.Strikes[id, instant]{Most: mostWrongProofs, Span: wrongProofsSpan}}
}

// now returns the moment for reads and the operator's commands, also while the clock
// is unsafe. Background writes and clients' writes ask the clock itself.
func (e *engine) now() time.Time { return e.clock.Now() }

// errClockUnsafe refuses a write while the clock is unsafe.
func errClockUnsafe() *apiError { return newError(codeClockUnsafe).header("Retry-After", "60") }

// momentToWrite returns the moment that a write carries, or clock_unsafe.
func (e *engine) momentToWrite() (instant, error) {
	at, safe := e.clock.ForWriting()
	if !safe {
		return 0, errClockUnsafe()
	}
	return at, nil
}

// A txn is one transaction on behalf of one organization at one moment. The
// whole domain works on it and takes times and ids only from it.
type txn struct {
	Tx
	*mint     // now, and new ids: &ids
	ids       mint
	org       uint32
	cfg       *config
	by        creator       // of what it writes
	byKey     *apiKey       // that by names; nil if by is no key
	keyNames  map[id]string // of other keys and of users, looked up so far
	requestID string        // of the request that writes, as auditID marks it; "" without
	counters  *counters     // nil until asked for; written back by commit
	*sizes
	rooms
	dated      dated         // the last answer of dayOf
	buf        coder         // the last record written
	keyScratch [64]byte      // the last key of scratchOrgKey or scratchKey
	began      instant       // goes into counters.Latest; now is a sale's own date during import
	steppedOn  time.Duration // how far stepOn moved now past the caller's moment
	wrote      bool          // something was written
	readOnly   bool          // in a View; see makeWritable
	viewing    bool          // in a View, and not to see what a write would do
	rehearsing bool          // what is written is dropped: a dry run
	importing  bool          // enrol leaves the search index to indexImported
	noWelcome  bool          // enrolment runs no sign-up rules
}

// inTxn makes a txn of one organization on a Tx of an Update. The caller makes
// now and seed before the Update, so that a second run does the same.
func (e *engine) inTxn(tx Tx, org uint32, now instant, s seed) (*txn, error) {
	t := new(txn)
	if err := e.begin(t, e.store.version(), tx, org, now, s); err != nil {
		return nil, err
	}
	t.by = creator{Type: bySystem} // unless the caller names another
	if e.clock == nil || e.clock.Trusted {
		return t, nil
	}
	err := t.stepOn()
	if e.clock.Movable {
		t.steppedOn = 0
	}
	return t, err
}

// bareTxn makes a txn of an organization without its configuration, which may not be
// written yet. It takes its moment from m.
func bareTxn(tx Tx, org uint32, m *mint, by creator) *txn {
	t := &txn{Tx: tx, ids: *m, org: org, by: by, began: m.now}
	t.mint = &t.ids
	t.bindRooms(t)
	return t
}

// begin makes t a transaction. The caller took v before tx began.
func (e *engine) begin(t *txn, v version, tx Tx, org uint32, now instant, s seed) error {
	cfg, err := e.config(v, tx, org)
	if err != nil {
		return err
	}
	t.Tx, t.ids, t.org, t.cfg, t.began = tx, mint{now: now, seed: s}, org, cfg, now
	t.mint = &t.ids
	t.bindRooms(t)
	t.cards.wrong, t.cards.at = &e.proofs, e.cardsAt
	t.replays.filter, t.replays.slices, t.sizes = e.replayFilter(org), e.slices, &e.sizes
	return nil
}

// read runs fn in a View of one organization. Ids made there are never stored,
// so they need no seed.
func read[T any](ctx context.Context, e *engine, org uint32, now instant, fn func(*txn) (T, error)) (result T, err error) {
	return readBy(ctx, e, e.store.View, org, now, fn)
}

// readOnce is read for a function that must not run twice.
func readOnce[T any](ctx context.Context, e *engine, org uint32, now instant, fn func(*txn) (T, error)) (result T, err error) {
	return readBy(ctx, e, e.store.ViewOnce, org, now, fn)
}

func readBy[T any](ctx context.Context, e *engine, view func(context.Context, func(Tx) error) error, org uint32, now instant, fn func(*txn) (T, error)) (result T, err error) {
	// One allocation. txn is a field: embedded, it would give each T a copy of all its methods.
	both := new(struct {
		txn    txn
		result T
	})
	v := e.store.version()
	err = view(ctx, func(tx Tx) error {
		t := &both.txn
		*t = txn{} // it may run again
		if err := e.begin(t, v, tx, org, now, seed{}); err != nil {
			return err
		}
		t.readOnly, t.viewing = true, true
		var err error
		both.result, err = fn(t)
		return err
	})
	return both.result, err
}

// rehearse runs fn as write would and discards what it wrote.
func rehearse[T any](ctx context.Context, e *engine, org uint32, now instant, fn func(*txn) (T, error)) (T, error) {
	return read(ctx, e, org, now, func(t *txn) (T, error) {
		t.rehearse()
		return fn(t)
	})
}

// write runs fn in an Update of one organization.
func write[T any](ctx context.Context, e *engine, org uint32, now instant, fn func(*txn) (T, error)) (T, error) {
	s := e.seed()
	v, err := updateStore(ctx, e.store, func(tx Tx) (T, error) {
		return runTxn(e, tx, org, now, s, func(t *txn) (T, error) {
			v, err := fn(t)
			if err != nil {
				return v, err
			}
			return v, t.commit()
		})
	})
	if err == nil {
		e.clock.Wrote(now)
	}
	return v, err
}

func runTxn[T any](e *engine, tx Tx, org uint32, now instant, s seed, fn func(*txn) (T, error)) (T, error) {
	t, err := e.inTxn(tx, org, now, s)
	if err != nil {
		var zero T
		return zero, err
	}
	return fn(t)
}

// config returns the organization's configuration as tx sees it. The caller
// took v before tx began, or inside it if tx is of an Update.
func (e *engine) config(v version, tx Tx, org uint32) (*config, error) {
	if v != e.store.version() { // settings changed since: tx may see the old ones or the new
		v = unsettled
	}
	return e.configs.get(org, v, func() (*config, error) {
		k := newKey('o').byte('c').u32(org)
		raw, ok, err := tx.Get(k)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("organization %d has no configuration", org)
		}
		cfg, err := parseConfig(raw)
		if err != nil {
			return nil, atKey(k, err)
		}
		if cfg.codeSecret, err = codeSecret(tx, org); err != nil {
			return nil, err
		}
		n, err := organizationCount(tx)
		cfg.alone = n == 1
		return cfg, err
	})
}

// Codes of an organization's customers (customers.go) are made with its secret:
//
//	o 'k' org → secret (32)
//
// It is made with the organization, or by the migration to schema 14, stays for ever and is never
// shown.

func codeSecretKey(org uint32) key { return newKey('o').byte('k').u32(org) }

// newCodeSecret makes the secret of an organization.
func newCodeSecret(org uint32, m *mint) []byte {
	secret := m.secret("codes", uint64(org))
	return secret[:]
}

// codeSecret returns the secret of an organization; nil if it was lost: then nobody has a code, and
// verify tells.
func codeSecret(tx Tx, org uint32) ([]byte, error) {
	secret, ok, err := tx.Get(codeSecretKey(org))
	if err != nil || !ok || len(secret) != sha256.Size {
		return nil, err
	}
	return bytes.Clone(secret), nil
}

// manyHeld is how many tallies eachRow holds back before it writes them.
const manyHeld = 64

// eachRow runs one for each of n rows in turn, each on an overlay of its own: what a row
// wrote is dropped unless one returns keep. A row sees the kept rows before it.
func (t *txn) eachRow(n int, one func(i int) (keep bool, err error)) error {
	batch, now, by, wrote := t.Tx, t.now, t.by, t.wrote
	var before held
	attempt := newOverlay(batch)
	for i := range n {
		if len(t.stats.tallies) > manyHeld {
			if err := t.commit(); err != nil {
				return err
			}
			new(held).moveTo(t)
		}
		before.copyFrom(t)
		attempt.clear()
		t.Tx, t.now, t.by, t.recount.done = attempt, now, by, nil
		keep, err := one(i)
		t.Tx, t.now, t.by = batch, now, by
		if err != nil {
			return err
		}
		if !keep {
			before.moveTo(t)
			t.wrote = wrote
			continue
		}
		if err := attempt.flush(batch); err != nil {
			return err
		}
		wrote = t.wrote
	}
	return nil
}

// counters hold the last number given in each sequence of an organization, which is
// also its total, and the latest moment that any of its writes carries (sweep.go).
type counters struct {
	Customers, Movements, Sales, Purchases, Returns, Redemptions, Replays uint64

	Latest     instant // 0: unknown; never negative
	Audit      uint64  // entries of the audit log
	Registered instant // when the last sale came; never falls (sales_late.go)
	Events     uint64  // told (events.go)
	Dropped    uint64  // the first of them, which are kept no longer
	Tickets    uint64  // that are kept (sales_tickets.go)

	TicketsDropped instant // those of purchases before it may have been dropped
}

// Tags of the optional fields of counters.
const (
	countersTickets = 1
	countersDropped = 2
)

func (n *counters) fields(c *coder) {
	for _, v := range []*uint64{&n.Customers, &n.Movements, &n.Sales, &n.Purchases, &n.Returns, &n.Redemptions, &n.Replays, &n.Audit, &n.Events, &n.Dropped} {
		c.uint(v)
	}
	c.instant(&n.Latest)
	c.instant(&n.Registered)
	optionalField(c, countersTickets, &n.Tickets, (*coder).uint)
	optionalField(c, countersDropped, &n.TicketsDropped, (*coder).instant)
}

// count returns the organization's counters, for reading and changing.
func (t *txn) count() (*counters, error) {
	if t.counters == nil {
		c, err := get[counters](t.Tx, t.scratchOrgKey('n'))
		if err != nil {
			return nil, err
		}
		if c == nil {
			c = new(counters)
		}
		t.counters = c
	}
	return t.counters, nil
}

// dayOf returns the day of a moment in the organization's time zone. It keeps the
// last answer, since a transaction mostly asks for one moment.
func (t *txn) dayOf(at instant) day {
	if t.dated.day == 0 || t.dated.at != at {
		t.dated = dated{at, dayOf(at, t.cfg.zone)}
	}
	return t.dated.day
}

type dated struct {
	at  instant
	day day
}

// makeWritable lets a transaction of a View write, on an overlay that is discarded:
// settle and a recount write, also where their result is only read.
func (t *txn) makeWritable() {
	if t.readOnly {
		t.Tx, t.readOnly = newOverlay(t.Tx), false
	}
}

// rehearse lets a transaction of a View do what a write would, on an overlay that is discarded.
func (t *txn) rehearse() {
	t.makeWritable()
	t.viewing, t.rehearsing = false, true
}

// commit writes what the transaction has held back (see held).
func (t *txn) commit() error {
	if err := t.saveRooms(); err != nil {
		return err
	}
	if !t.wrote {
		return nil
	}
	n, err := t.count()
	if err != nil {
		return err
	}
	n.Latest = max(n.Latest, t.began)
	return t.put(t.scratchOrgKey('n'), n)
}

// scratchOrgKey is orgKey without an allocation, for keys that every request uses. The next
// call of scratchOrgKey or scratchKey overwrites the key.
func (t *txn) scratchOrgKey(table byte) key { return append(key(t.keyScratch[:0]), table).u32(t.org) }

// scratchKey is customerKey without an allocation. The next call of scratchKey or
// scratchOrgKey overwrites the key.
func (t *txn) scratchKey(cust id, part byte) key { return t.scratchOrgKey('c').id(cust).byte(part) }

// Put and Delete set wrote, so that commit also updates counters.Latest.

func (t *txn) Put(key, value []byte) error { t.wrote = true; return t.Tx.Put(key, value) }
func (t *txn) Delete(key []byte) error     { t.wrote = true; return t.Tx.Delete(key) }

// put stores a record as the function put does, with one buffer for all records of
// the transaction.
func (t *txn) put(key []byte, v fielded) error {
	c := t.scratch()
	v.fields(c)
	return t.Put(key, c.b)
}

// scratch returns the transaction's coder, with the record version written. The next call of
// scratch, put, putUint or putCount overwrites its bytes.
func (t *txn) scratch() *coder {
	if t.buf.b == nil {
		t.buf.b = make([]byte, 0, 512)
	}
	t.buf.b = append(t.buf.b[:0], recordVersion)
	return &t.buf
}

// putUint stores a number as the function putUint does, with the same buffer.
func (t *txn) putUint(key []byte, v uint64) error {
	t.buf.b = binary.BigEndian.AppendUint64(t.buf.b[:0], v)
	return t.Put(key, t.buf.b)
}

// countAt adds change to the count at a key. A count of 0 has no entry.
func (t *txn) countAt(key []byte, change int) error {
	n, _, err := getUint(t.Tx, key)
	if err != nil {
		return err
	}
	return t.putCount(key, uint64(max(int64(n)+int64(change), 0)))
}

func (t *txn) putCount(key []byte, n uint64) error {
	if n == 0 {
		return t.Delete(key)
	}
	return t.putUint(key, n)
}

// changeCounters changes an organization's counters outside a txn.
func changeCounters(tx Tx, org uint32, change func(*counters) error) error {
	k := orgKey('n', org)
	n, err := get[counters](tx, k)
	if err != nil {
		return err
	}
	if n == nil {
		n = new(counters)
	}
	if err := change(n); err != nil {
		return err
	}
	return put(tx, k, n)
}

// stepOn keeps time from stepping back within an organization. Others may have written
// since the caller asked for the moment; if theirs is later, the transaction takes it.
func (t *txn) stepOn() error {
	n, err := t.count()
	if err != nil || n.Latest <= t.now {
		return err
	}
	t.steppedOn = n.Latest.sub(t.now)
	t.now, t.began = n.Latest, n.Latest
	return nil
}

// inTime returns clock_unsafe if stepOn moved the transaction by more than wallclock.Slack:
// this clock and another writer's then differ too much to say which one is right.
func (t *txn) inTime() error {
	if t.steppedOn > wallclock.Slack {
		return errClockUnsafe()
	}
	return nil
}

// A creator is who made a record (contract §16).
type creator struct {
	Type  string // one of the below
	ID    id     // of the API key or the user; else zero
	Actor string // what X-Actor said, which nobody vouches for; of a command the system's user; "" if unknown
}

const (
	byKey     = "Key"
	byUser    = "User" // of the panel
	byImport  = "Import"
	byCommand = "Command"
	bySystem  = "System"
	byClient  = "Customer" // on a page of the site
)

// creatorTypes are in the order that the file depends on.
var creatorTypes = []string{byKey, byUser, byImport, byCommand, bySystem, byClient}

// maxActor is in characters.
const maxActor = 100

func (c *creator) fields(to *coder) {
	to.word(creatorTypes, &c.Type)
	to.idOrNone(&c.ID)
	to.text(&c.Actor)
}

// Each configuration that was applied is kept, so that what happened under it can be explained
// later (contract §22):
//
//	f org version → when it was applied and by whom, and the stored form of the config, compressed
//
// Versions count from 1 without holes; config.Version is the current one. An organization from
// before schema 12 begins with the configuration that it had then.

type configVersion struct {
	Number uint64 // from the key

	AppliedAt instant // 0: before versions were kept
	By        creator
	AuditSeq  uint64 // of its first entry in the audit log; 0: before versions were kept
	Packed    []byte // the stored form, as flate writes it
}

func (v *configVersion) fields(c *coder) {
	c.instant(&v.AppliedAt)
	v.By.fields(c)
	c.uint(&v.AuditSeq)
	c.bytes(&v.Packed)
}

func versionKey(org uint32, version uint64) key { return orgKey('f', org).u64(version) }

func deflated(text []byte) []byte {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err == nil {
		w.Write(text)
		err = w.Close()
	}
	if err != nil { // of the level, or of b
		panic(err)
	}
	return b.Bytes()
}

func (v *configVersion) config() (*config, error) {
	packed := bytes.NewReader(v.Packed)
	raw, err := io.ReadAll(flate.NewReader(packed))
	if err == nil && packed.Len() > 0 {
		err = errors.New("more than a compressed configuration")
	}
	if err != nil {
		return nil, err
	}
	return parseConfig(raw)
}

// versionAt reads a version of an organization's configuration; nil if there is none.
func versionAt(tx Tx, org uint32, version uint64) (*configVersion, error) {
	v, err := get[configVersion](tx, versionKey(org, version))
	if v != nil {
		v.Number = version
	}
	return v, err
}

// configAt is the configuration that a version is; nil if there is none.
func configAt(t *txn, version uint64) (*config, error) {
	if version == t.cfg.Version {
		return t.cfg, nil
	}
	v, err := versionAt(t.Tx, t.org, version)
	if v == nil || err != nil {
		return nil, err
	}
	cfg, err := v.config()
	if err != nil {
		return nil, atKey(versionKey(t.org, version), err)
	}
	return cfg, nil
}

// keepVersion keeps a configuration that is applied, under cfg.Version. Its first entry in the
// audit log has auditSeq.
func keepVersion(t *txn, cfg *config, auditSeq uint64) error {
	raw, err := cfg.stored()
	if err != nil {
		return err
	}
	return t.put(versionKey(cfg.Number, cfg.Version), &configVersion{AppliedAt: t.now, By: t.by, AuditSeq: auditSeq, Packed: deflated(raw)})
}

// versionOf is the version that an entry of the audit log tells of, which may be one of several
// that do; 0 if it is from before versions were kept.
func versionOf(t *txn, auditSeq uint64) (uint64, error) {
	var found *configVersion // the last one whose first entry is not later
	var failed error
	sort.Search(int(t.cfg.Version), func(i int) bool {
		v, err := versionAt(t.Tx, t.org, uint64(i)+1)
		if err != nil || v == nil {
			failed = err
			return true
		}
		if v.AuditSeq <= auditSeq {
			found = v
		}
		return v.AuditSeq > auditSeq
	})
	if found == nil || found.AuditSeq == 0 || failed != nil {
		return 0, failed
	}
	return found.Number, nil
}
