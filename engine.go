package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// sizes say how much of what is kept lies together.
type sizes struct {
	log logSizes
	few fewSizes
}

// usualSizes are those of every file: only tests take others.
func usualSizes() sizes { return sizes{usualLog(), usualFew()} }

// An engine runs the business on a store.
type engine struct {
	store   *watchedStore
	clock   *wallClock
	seed    func() seed
	configs cache[uint32, *config]
	callers cache[[32]byte, caller]                  // by the hash of their key
	filters atomic.Pointer[map[uint32]*replayFilter] // by organization
	slices  *knownSlices                             // the store's
	sizes   sizes
	log     *slog.Logger

	imports imports // under way: the sweep waits for them
}

// newEngine makes an engine whose caller keeps time itself.
func newEngine(s Store, now func() time.Time, newSeed func() seed) *engine {
	return newEngineBy(heldClock(now), s, newSeed)
}

// newEngineBy makes an engine that goes by a clock.
func newEngineBy(c *wallClock, s Store, newSeed func() seed) *engine {
	w := watch(s)
	return &engine{store: w, clock: c, seed: newSeed, slices: &w.slices, sizes: usualSizes(), log: slog.New(slog.DiscardHandler)}
}

// now is the moment that reads and the operator's commands are as of, also while the
// clock is unsafe. What writes by itself, or for a client, asks the clock.
func (e *engine) now() time.Time { return e.clock.now() }

// A txn is one transaction on behalf of one organization at one moment. All
// of the domain works on it and takes times and ids from nowhere else.
type txn struct {
	Tx
	*mint     // now, and new ids: &ids
	ids       mint
	org       uint32
	cfg       *config
	held                      // written back by commit
	recounted map[string]bool // accounts that were counted anew here, by key
	replays   *replaySlices   // nil until asked for
	filter    *replayFilter   // of replays; nil: none
	slices    *knownSlices
	*sizes
	dated     dated         // the moment whose day was asked for last
	buf       writer        // what was written last
	hot       [64]byte      // what hotOrgKey or hotKey returned last
	began     instant       // the moment that its writes carry; now is a sale's own where that is imported
	steppedOn time.Duration // by how much that is later than the caller's, for another's write
	wrote     bool          // anything
	readOnly  bool          // a View: what must write to answer does so on an overlay
	importing bool          // whoever made it calls indexUntil
}

// A held is what a transaction keeps back until its end, since others of its
// changes may add to the same.
type held struct {
	counters *counters                 // nil until asked for
	tallies  []dayTally                // asked for so far
	slots    [len(slotLevels)]heldSlot // asked for last (salelog.go)
	pack     heldPack                  // logged in last (salelog.go)
}

// copyFrom makes h a copy of o.
func (h *held) copyFrom(o *held) {
	tallies := append(h.tallies[:0], o.tallies...)
	*h = *o
	h.tallies = tallies
	if o.counters != nil {
		h.counters = new(*o.counters)
	}
}

// inTxn makes a transaction on behalf of an organization of one that writes.
// The caller makes now and seed before, so that a second run does the same.
func (e *engine) inTxn(tx Tx, org uint32, now instant, s seed) (*txn, error) {
	t := new(txn)
	if err := e.begin(t, e.store.version(), tx, org, now, s); err != nil {
		return nil, err
	}
	if e.clock == nil || e.clock.trusted {
		return t, nil
	}
	return t, t.stepOn()
}

// begin makes t a transaction; v was taken before tx began.
func (e *engine) begin(t *txn, v version, tx Tx, org uint32, now instant, s seed) error {
	cfg, err := e.config(v, tx, org)
	if err != nil {
		return err
	}
	t.Tx, t.ids, t.org, t.cfg, t.began = tx, mint{now: now, seed: s}, org, cfg, now
	t.mint = &t.ids
	t.filter, t.slices, t.sizes = e.replayFilter(org), e.slices, &e.sizes
	return nil
}

// read runs fn in a View of one organization. Ids made there stand for
// nothing, so they need no seed.
func read[T any](ctx context.Context, e *engine, org uint32, now instant, fn func(*txn) (T, error)) (result T, err error) {
	both := new(struct { // one allocation
		txn
		result T
	})
	v := e.store.version()
	err = e.store.View(ctx, func(tx Tx) error {
		t := &both.txn
		if err := e.begin(t, v, tx, org, now, seed{}); err != nil {
			return err
		}
		t.readOnly = true
		var err error
		both.result, err = fn(t)
		return err
	})
	return both.result, err
}

// rehearse runs fn as write would and throws away what it wrote.
func rehearse[T any](ctx context.Context, e *engine, org uint32, now instant, fn func(*txn) (T, error)) (T, error) {
	return read(ctx, e, org, now, func(t *txn) (T, error) {
		t.makeWritable()
		return fn(t)
	})
}

// write runs fn in an Update of one organization.
func write[T any](ctx context.Context, e *engine, org uint32, now instant, fn func(*txn) (T, error)) (T, error) {
	s := e.seed()
	v, err := update(ctx, e.store, func(tx Tx) (T, error) {
		return runTxn(e, tx, org, now, s, func(t *txn) (T, error) {
			v, err := fn(t)
			if err != nil {
				return v, err
			}
			return v, t.commit()
		})
	})
	if err == nil {
		e.clock.wrote(now)
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

// config returns the organization's configuration as this transaction sees
// it. The caller took v before the transaction began, or within one that writes.
func (e *engine) config(v version, tx Tx, org uint32) (*config, error) {
	if v != e.store.version() { // changed meanwhile, before the transaction began or after
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
		return cfg, atKey(k, err)
	})
}

// count gives the counters for reading and changing.
func (t *txn) count() (*counters, error) {
	if t.counters == nil {
		c, err := get[counters](t.Tx, t.hotOrgKey('n'))
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

// dayOf is the day of a moment by the organization's calendar. Most of what a
// transaction asks for is one moment's, which is worked out once.
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

// makeWritable lets a transaction that only reads write what it must to answer:
// on an overlay that is thrown away.
func (t *txn) makeWritable() {
	if t.readOnly {
		t.Tx, t.readOnly = newOverlay(t.Tx), false
	}
}

// commit writes what the transaction holds back until its end.
func (t *txn) commit() error {
	for i := range t.tallies {
		d := &t.tallies[i]
		if err := t.put(t.tallyKey(d.programDay), &d.tally); err != nil {
			return err
		}
	}
	if err := t.saveLogged(); err != nil {
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
	return t.put(t.hotOrgKey('n'), n)
}

// hotOrgKey is orgKey for what every request reads or writes: it allocates
// nothing, and the key is good until the next call of it or hotKey.
func (t *txn) hotOrgKey(table byte) key { return append(key(t.hot[:0]), table).u32(t.org) }

// hotKey is customerKey in the same way.
func (t *txn) hotKey(cust id, part byte) key { return t.hotOrgKey('c').id(cust).byte(part) }

// Put and Delete take note that the transaction writes.

func (t *txn) Put(key, value []byte) error { t.wrote = true; return t.Tx.Put(key, value) }
func (t *txn) Delete(key []byte) error     { t.wrote = true; return t.Tx.Delete(key) }

// put is put for most: it uses one buffer for all that a transaction writes.
func (t *txn) put(key []byte, v interface{ encode(*writer) }) error {
	if t.buf.b == nil {
		t.buf.b = make([]byte, 0, 512)
	}
	t.buf.b = append(t.buf.b[:0], recordVersion)
	v.encode(&t.buf)
	return t.Put(key, t.buf.b)
}

// putUint is putUint for most, as put is.
func (t *txn) putUint(key []byte, v uint64) error {
	t.buf.b = binary.BigEndian.AppendUint64(t.buf.b[:0], v)
	return t.Put(key, t.buf.b)
}
