package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sello/internal/parallel"
)

// What the requests of one process share: settings that are kept decoded, waiters for events, and
// leases, by which one of several servers does what only one may do at a time.

// Settings are API keys and configurations. Every request needs some, and they
// change only now and then, so they are kept decoded until an update touches any:
// a request then reads nothing to know that they are current. One process has a
// file open at a time, and all its updates go through one watchedStore. A
// sharedStore tells of the updates of other processes before anything sees them,
// and a request begins by catching up with them. The known names of retries are
// exact for the same reasons (retries_filter.go).

// A watchedStore is a Store that counts the updates which write settings.
type watchedStore struct {
	Store
	shared       sharedStore    // the same, if other processes may write to it; nil: none does
	begun, ended atomic.Uint64  // how many such updates, whatever their outcome
	refusing     atomic.Bool    // whether the store took no write when it was last asked to
	away         atomic.Bool    // whether it did not answer the last keepUp
	apart        atomic.Bool    // whether its clock and the machine's were apart then, which was told
	checkSchema  func(Tx) error // returns an error if its schema is another one by now; nil: it cannot be
	checked      atomic.Uint64  // keys.others when a commit last proved that checkSchema had nothing to say
	keys         keyIndex
	slices       knownSlices  // of replays
	eventWaiters eventWaiters // of events
}

func watch(s Store) *watchedStore {
	if w, ok := s.(*watchedStore); ok {
		return w
	}
	w := &watchedStore{Store: s}
	if shared, ok := s.(sharedStore); ok {
		w.shared = shared
		shared.onOthers(w.othersWrote)
	}
	return w
}

// isShared reports whether other processes may write to a store.
func isShared(s Store) bool {
	if w, ok := s.(*watchedStore); ok {
		return w.shared != nil
	}
	_, ok := s.(sharedStore)
	return ok
}

// eventLetter begins the keys of events.
var eventLetter = tables[tableEvents].shape[0]

// othersWrites count how often other processes were found to have written in each part. Parts whose
// numbers are the same modulo 64 count together.
type othersWrites [64]atomic.Uint64

func (w *othersWrites) in(part int32) *atomic.Uint64 { return &w[uint32(part)%uint32(len(w))] }

// othersWrote forgets what another process may have changed in a part.
func (s *watchedStore) othersWrote(part int32, settings bool) {
	s.slices.others.in(part).Add(1)
	if settings {
		s.keys.others.Add(1)
		s.begun.Add(1)
		s.ended.Add(1)
	}
}

// catchUp returns once this process knows of every update that was acknowledged before, by
// whomever, of settings and in some parts. What follows takes the context that it returns.
func (s *watchedStore) catchUp(ctx context.Context, parts ...int32) (context.Context, error) {
	if s.shared == nil {
		return ctx, nil
	}
	return s.shared.catchUp(ctx, parts...)
}

// mostApart is how far the store's clock and the machine's may be apart before the log says so. Servers
// whose clocks are further apart disagree about what has just expired, and on which day something
// happened. Up to wallclock.Slack nothing is refused for it (contract §11), and no server is taken away:
// of servers that agree with each other and not with the database, none would be left.
const mostApart = time.Second

// keepUpTime is how long the store may take to answer keepUp. A busy one takes a second.
const keepUpTime = 3 * time.Second

// keepUp is catchUp for a process that may have nothing else to do, and compares the clocks. The
// error is nil if it fails as it did the time before.
func (s *watchedStore) keepUp(ctx context.Context) error {
	if s.shared == nil {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, keepUpTime)
	defer cancel()
	_, err := s.catchUp(within)
	if was := s.away.Swap(err != nil); err != nil {
		if was {
			return nil
		}
		return err
	}
	ahead := s.shared.clockAhead()
	if apart := ahead.Abs() > mostApart; !s.apart.Swap(apart) && apart {
		return fmt.Errorf("the database's clock is off this machine's by %v", ahead)
	}
	return nil
}

// mine reports whether this process is the one that does what a name stands for, and for the next
// seconds too. Another one may do the same all the same: what it does must be right then, too.
func (s *watchedStore) mine(ctx context.Context, name string) bool {
	if s.shared == nil {
		return true
	}
	mine, err := s.shared.takeLease(ctx, name)
	return mine && err == nil
}

// done gives back a name that mine took. If that fails, the name is free some seconds later.
func (s *watchedStore) done(ctx context.Context, name string) {
	if s.shared != nil {
		s.shared.dropLease(ctx, name)
	}
}

// A version names the state of all settings between two updates of them. No
// state ever gets an earlier one's name.
type version uint64

// unsettled stands for no version: an update of settings is under way.
const unsettled version = 0

// version returns the version of the current settings. A View that begins later
// sees this version, unless version returns another one by then.
func (s *watchedStore) version() version {
	if s == nil { // an engine of verify, which keeps nothing
		return unsettled
	}
	ended := s.ended.Load() // first: an update counted here is then counted in begun too
	if begun := s.begun.Load(); begun == ended {
		return version(begun + 1)
	}
	return unsettled
}

func (s *watchedStore) Update(ctx context.Context, fn func(Tx) error) error {
	u := &watchedUpdate{store: s, fn: s.guarded(fn)}
	defer u.end()
	err := s.Store.Update(ctx, u.run)
	if err == nil && s.shared != nil {
		s.checked.Store(u.others) // what it read was the last state, as a View's need not be
	}
	switch {
	case err == nil && u.wrote:
		s.refusing.Store(false)
		s.eventWaiters.wake(u.told)
	case errors.Is(err, errUnavailable) && !errors.Is(err, errBusy):
		s.refusing.Store(true)
	}
	return err
}

func (s *watchedStore) View(ctx context.Context, fn func(Tx) error) error {
	return s.Store.View(ctx, s.guarded(fn))
}

// ViewLong calls the store's ViewLong, or its View if it has none.
func (s *watchedStore) ViewLong(ctx context.Context, fn func(Tx) error) error {
	return longView(s.Store)(ctx, s.guarded(fn))
}

// ViewOnce calls the store's ViewOnce, or its View if that runs a function once.
func (s *watchedStore) ViewOnce(ctx context.Context, fn func(Tx) error) error {
	return onceView(s.Store)(ctx, s.guarded(fn))
}

// guarded returns a function of a transaction that is not run any more once another process has
// changed the schema.
func (s *watchedStore) guarded(fn func(Tx) error) func(Tx) error {
	if s.shared == nil || s.checkSchema == nil {
		return fn
	}
	return func(tx Tx) error {
		if s.keys.others.Load() != s.checked.Load() {
			if err := s.checkSchema(tx); err != nil {
				return err
			}
		}
		return fn(tx)
	}
}

// tryWrite finds out whether a store that refuses writes, for lack of space or the
// like, still does: it writes again what is there, or takes away what is not. While a
// server is not ready, there may be no other writes.
func (s *watchedStore) tryWrite(ctx context.Context) {
	if !s.refusing.Load() {
		return
	}
	s.Update(ctx, func(tx Tx) error { // sets refusing
		if s.shared != nil { // settings would be told to all servers
			return tx.Delete(newKey('u').id(id{}))
		}
		version, _, err := getUint(tx, newKey('v'))
		if err != nil {
			return err
		}
		return putUint(tx, newKey('v'), version)
	})
}

// A watchedUpdate is one call of Update.
type watchedUpdate struct {
	store   *watchedStore
	fn      func(Tx) error
	touched atomic.Bool // whether a run of fn wrote settings
	others  uint64      // keys.others of the store when its last run began
	wrote   bool        // whether one wrote anything
	told    []uint32    // organizations whose events a run wrote
	room    [1]uint32   // backs told while it is short
}

func (u *watchedUpdate) run(tx Tx) error {
	u.others = u.store.keys.others.Load()
	return u.fn(watchedTx{tx, u})
}

// end is called once Views can see the outcome.
func (u *watchedUpdate) end() {
	if u.touched.Load() {
		u.store.ended.Add(1)
	}
}

// noteEvent notes that events are written, if the key is one of them.
func (u *watchedUpdate) noteEvent(key []byte) {
	if key[0] == eventLetter {
		if u.told == nil {
			u.told = u.room[:0]
		}
		if org := uint32In(key[1:]); !slices.Contains(u.told, org) {
			u.told = append(u.told, org)
		}
	}
}

type watchedTx struct {
	Tx
	update *watchedUpdate
}

func (t watchedTx) Put(key, value []byte) error {
	t.update.wrote = true
	t.look(key)
	t.update.noteEvent(key)
	if hash, ok := hashOfKey(key); ok {
		t.update.store.keys.add(hash)
	}
	return t.Tx.Put(key, value)
}

func (t watchedTx) below() Tx { return t.Tx }

func (t watchedTx) absorb(p *overlay) bool {
	below, ok := t.Tx.(absorber)
	if !ok {
		return false
	}
	for key := range p.writes {
		if isSetting(key) { // Put and Delete look at each key
			return false
		}
	}
	for key := range p.writes {
		if key[0] == eventLetter {
			t.update.noteEvent([]byte(key))
		}
	}
	t.update.wrote = true
	return below.absorb(p)
}

func (t watchedTx) Delete(key []byte) error {
	t.update.wrote = true
	t.look(key)
	return t.Tx.Delete(key)
}

var settingLetters = lettersOf(setting)

// isSetting reports whether a key belongs to settings.
func isSetting[S string | []byte](key S) bool {
	return len(key) > 0 && strings.IndexByte(settingLetters, key[0]) >= 0
}

// look counts the update before its first write of settings.
func (t watchedTx) look(key []byte) {
	if isSetting(key) && !t.update.touched.Swap(true) {
		t.update.store.begun.Add(1)
	}
}

// A cache keeps what was decoded from settings of one version. The zero cache
// is ready for use.
type cache[K comparable, V any] struct {
	mu      sync.RWMutex
	version version
	values  map[K]V
}

// seen returns a value that k had at some version.
func (c *cache[K, V]) seen(k K) (value V, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	value, ok = c.values[k]
	return value, ok
}

// cacheSize bounds a cache: when it is full it is emptied.
const cacheSize = 4096

// get returns the value of k at version v, and keeps what read returns. The value is as of v or
// later; once it is later, nobody asks for v again.
func (c *cache[K, V]) get(k K, v version, read func() (V, error)) (V, error) {
	c.mu.RLock()
	value, ok := c.values[k]
	ok = ok && c.version == v
	c.mu.RUnlock()
	if ok && v != unsettled {
		return value, nil
	}
	value, err := read()
	if err != nil || v == unsettled {
		return value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v > c.version || len(c.values) >= cacheSize {
		c.version, c.values = v, map[K]V{}
	}
	if v == c.version {
		c.values[k] = value
	}
	return value, nil
}

// eventWaiters wakes the goroutines that wait for events of an organization. It knows only
// what this process wrote. A waiter also polls, since other processes may write to the same
// store.
type eventWaiters struct {
	mu      sync.Mutex
	waiting map[uint32]chan struct{} // closed at the organization's next events
}

// wait returns a channel that is closed when new events are written. Take it before beginning
// the View.
func (w *eventWaiters) wait(org uint32) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.waiting[org]
	if c == nil {
		if w.waiting == nil {
			w.waiting = map[uint32]chan struct{}{}
		}
		c = make(chan struct{})
		w.waiting[org] = c
	}
	return c
}

func (w *eventWaiters) wake(orgs []uint32) {
	if len(orgs) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, org := range orgs {
		if c := w.waiting[org]; c != nil {
			close(c)
			delete(w.waiting, org)
		}
	}
}

// Of several servers on one database, one does what all could do: the sweep, and the deliveries of
// each webhook. That server has the lease of the task's name. Two servers may think that they have
// it, as when one of them slept longer than a lease lasts. So a task under a lease looks in its
// transaction at what it acts upon, and is right whoever does it.

// A server has a lease of its own from its start to its last write.
const serverLeases = "server/" // and its machine and address

// unserved returns errDatabaseServed if a server uses the database. One that was killed counts for
// some seconds.
func unserved(ctx context.Context, database wholeStore) error {
	served, err := database.leased(ctx, serverLeases)
	if served {
		err = errDatabaseServed
	}
	return err
}

// leaseRenewal is how often who works under a lease makes it last longer.
const leaseRenewal = 3 * time.Second

// A lease is what this process knows of the lease of a name.
type lease struct {
	store *watchedStore
	name  string

	mu    sync.Mutex
	taken time.Time // when it was asked for and got; zero: it is not this process's
}

// held reports whether this process has the lease. It takes a lease that nobody has, and makes a
// lease that was taken leaseRenewal ago last longer. If the store does not answer, the process does
// not have the lease: what it did could not be stored either.
func (l *lease) held(ctx context.Context) bool {
	if l.store.shared == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := time.Now()
	if asked.Sub(l.taken) < leaseRenewal {
		return true
	}
	within, cancel := context.WithTimeout(ctx, leaseRenewal)
	defer cancel()
	if l.taken = (time.Time{}); l.store.mine(within, l.name) {
		l.taken = asked
	}
	return !l.taken.IsZero()
}

// show takes the lease, and makes it last longer until hide, which gives it back.
func (l *lease) show() (hide func(context.Context)) {
	if l.store.shared == nil {
		return func(context.Context) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		take := func() { l.held(context.Background()) } // one that was cut short could not be given back
		take()
		parallel.Every(ctx, leaseRenewal, take)
	})
	return func(last context.Context) {
		stop()
		ended.Wait()
		l.drop(last)
	}
}

// during runs work with a context that ends once the lease is lost. The caller holds it.
func (l *lease) during(ctx context.Context, work func(context.Context)) {
	if l.store.shared == nil {
		work(ctx)
		return
	}
	ctx, lose := context.WithCancel(ctx)
	var renewal sync.WaitGroup
	renewal.Go(func() {
		parallel.Every(ctx, leaseRenewal, func() {
			if !l.held(ctx) {
				lose()
			}
		})
	})
	defer renewal.Wait()
	defer lose()
	work(ctx)
}

// drop gives the lease back, so that another process need not wait for its end.
func (l *lease) drop(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.taken.IsZero() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseRenewal)
		defer cancel()
		l.store.shared.dropLease(last, l.name) // else it ends by itself
		l.taken = time.Time{}
	}
}

// imports are the imports under way in this process, and until when the sweep waits for the next
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
