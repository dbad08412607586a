package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A chain is what this process knows of the log: the last commit, and values as of it. It stays
// current by what the process commits itself. Others' commits are found out by asking for the
// head, by the heads of snapshots, and by turns that are lost. Each time a new epoch begins, with
// no values.
type chain struct {
	mu     sync.RWMutex
	head   Head          // the last commit known of
	epoch  uint64        // how often others were found to have committed; 1 at first
	asked  bool          // head is what the next commit can build on; else the database is asked first
	own    [64][16]byte  // ids of the last commits of this process, by number modulo 64
	sent   [16]byte      // id of the commit that is under way; zero: there is none
	landed chan struct{} // closed when its outcome is known here
	doubts bool          // what can be read may have commits that are not safe yet, or get some: see barrier
	down   error         // why the database could not be asked, if it could not
	downAt time.Time     // when that was
	stats  Stats

	values, older map[string]value // the newer half of what is kept, and the rest
	size, most    int              // bytes of values, and how many of both

	others func(settings bool)  // see DB.OnOthers
	gone   func(from, to int64) // see DB.OnGone
}

// A value is that of a key in all states from a commit on, up to the last one.
type value struct {
	bytes []byte // nil: there is no entry
	from  int64  // number of the commit
}

// valueCost is about how many bytes a value takes beside its key and itself.
const valueCost = 96

// downTime is for how long a database that did not answer is taken to be down. Else each group of
// updates would wait for it anew.
const downTime = time.Second

// now returns the last commit known of.
func (c *chain) now() (head Head, epoch uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.head, c.epoch
}

// epochOf returns the epoch that a commit belongs to; 0 if it is not the last one known.
func (c *chain) epochOf(h Head) uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.head.Is(h) && h.ID != c.own[h.N%int64(len(c.own))] {
		return 0
	}
	return c.epoch
}

// lastNumber is the number of the last commit known of.
func (c *chain) lastNumber() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.head.N
}

// get returns the value that a key has after commit n of an epoch; nil if there is no entry. known
// is false if that has to be read.
func (c *chain) get(key []byte, n int64, epoch uint64) (bytes []byte, known bool) {
	c.mu.RLock()
	v, there := c.values[string(key)]
	old := false
	if !there {
		v, old = c.older[string(key)]
	}
	known = (there || old) && epoch == c.epoch && v.from <= n && n <= c.head.N
	c.mu.RUnlock()
	if known && old {
		c.renew(string(key))
	}
	return v.bytes, known
}

// keep keeps the value of a key that was read in the state after a commit; nil if there is no
// entry.
func (c *chain) keep(key, bytes []byte, at Head) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head.Is(at) {
		c.put(string(key), value{bytes, at.N})
	}
}

// renew keeps a value longer: it is of use.
func (c *chain) renew(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, there := c.older[key]; there {
		delete(c.older, key)
		c.put(key, v)
	}
}

func (c *chain) put(key string, v value) {
	if c.values == nil || c.size > c.most/2 {
		c.values, c.older, c.size = map[string]value{}, c.values, 0
	}
	c.values[key] = v
	c.size += len(key) + len(v.bytes) + valueCost
}

// learn notes the head of a state that was just read. If the head is another's commit, a new epoch
// begins. landed, if not nil, is closed once the head is known here too: it is the commit of this
// process that is under way.
func (c *chain) learn(seen *sight) (landed <-chan struct{}) {
	h, gone := seen.Head, seen.gone()
	c.mu.Lock()
	if h.Is(c.head) || h.ID == c.sent || !gone && seen.before.N <= h.N && h.N < c.head.N { // the last was read earlier than what is known
		if h.ID == c.sent {
			landed = c.landed
		}
		c.mu.Unlock()
		return landed
	}
	// Where commits are gone, those in their place may have the same numbers.
	settings := h.Settings != c.head.Settings || gone || seen.ofBefore == nil
	c.head, c.asked = h, false
	c.epoch++
	c.values, c.older, c.size = nil, nil, 0
	c.own = [len(c.own)][16]byte{}
	c.others(settings) // before anybody can see the head
	if gone {
		c.stats.Gone++
	}
	c.mu.Unlock()
	if gone {
		c.gone(seen.before.N, h.N)
	}
	return nil
}

// sending notes the id of the commit that is about to be sent.
func (c *chain) sending(id [16]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent, c.landed = id, make(chan struct{})
}

// land notes that the outcome of the commit sent is known, if there is one. The caller holds mu.
func (c *chain) land() {
	if c.landed != nil {
		close(c.landed)
	}
	c.sent, c.landed = [16]byte{}, nil
}

// stored notes that the commit sent was stored, on top of what was known in an epoch.
func (c *chain) stored(head Head, epoch uint64, changes []Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.land()
	c.stats.Won++
	c.stats.Current = time.Now()
	c.down, c.doubts = nil, false // a commit is not safe before those that it builds on
	if epoch != c.epoch {         // others have committed since
		return
	}
	c.own[head.N%int64(len(c.own))] = head.ID
	c.head = head
	for _, change := range changes {
		for _, values := range []map[string]value{c.values, c.older} {
			if _, there := values[change.Key]; there {
				values[change.Key] = value{change.Value, head.N}
				break
			}
		}
	}
}

// notStored notes that the commit sent was not stored, or that nobody knows.
func (c *chain) notStored(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.land()
	if errors.Is(err, ErrTurnLost) {
		c.stats.Lost++
	}
	c.doubts = c.doubts || errors.Is(err, ErrUnknown)
	c.asked = c.asked && errors.Is(err, ErrUnavailable)
}

// doubt notes that commits may be there that are not safe yet: a connection was lost, maybe since
// the database has crashed, or a session was ended that waited for a standby.
func (c *chain) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubts, c.asked = true, false
}

func (c *chain) inDoubt() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.doubts
}

// silent notes that the database could not be asked, if err says so.
func (c *chain) silent(err error) error {
	if errors.Is(err, ErrUnavailable) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.down, c.downAt = err, time.Now()
	}
	return err
}

// last returns the commit that the next one builds on, and its epoch.
func (db *DB) last() (Head, uint64, error) {
	c := &db.chain
	c.mu.RLock()
	head, epoch, asked, doubts, down := c.head, c.epoch, c.asked, c.doubts, c.down
	if down != nil && time.Since(c.downAt) >= downTime {
		down = nil
	}
	c.mu.RUnlock()
	if down != nil || asked {
		return head, epoch, down
	}
	_, err := db.Head(context.Background()) // learns it
	if err == nil && doubts {               // the head may be one of them, and not be safe yet
		err = db.barrier(context.Background())
	}
	if err != nil {
		return head, epoch, c.silent(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked, c.down = true, nil
	return c.head, c.epoch, nil
}

// OnOthers has others called when others have committed: before a function sees that, as far as
// this process knows. settings says whether Head.Settings has changed. others must not use the DB.
// OnOthers is called before the first use of the DB.
func (db *DB) OnOthers(others func(settings bool)) { db.chain.others = others }

// OnGone has gone called when commits that were known are not in the log any more, with the
// number of the last one and that of the head now: a standby that lacked them was promoted, say.
// It is called before the first use of the DB.
func (db *DB) OnGone(gone func(from, to int64)) { db.chain.gone = gone }

// Stats are figures of a DB since Open.
type Stats struct {
	Won, Lost uint64        // turns
	Trips     uint64        // messages that were sent to the database
	Gone      uint64        // how often commits were gone
	Current   time.Time     // when what is known of the log was last found to be all; zero: never
	Ahead     time.Duration // by how much, at the least, the database's clock is ahead of this machine's; < 0: behind
	Conns     int           // connections that are in use
	MaxConns  int
}

// Stats returns the figures as of now.
func (db *DB) Stats() Stats {
	db.chain.mu.RLock()
	s := db.chain.stats
	db.chain.mu.RUnlock()
	s.Trips = db.trips.Load()
	s.Conns, s.MaxConns = len(db.readers.tokens)+len(db.writers.tokens), cap(db.readers.tokens)+cap(db.writers.tokens)
	return s
}

// noteTime notes what an answer to the question for the head says of clocks. It was asked at began.
func (c *chain) noteTime(seen *sight, began time.Time) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Current = began
	switch { // between both moments the database's clock was read
	case seen.at.After(now):
		c.stats.Ahead = seen.at.Sub(now)
	case seen.at.Before(began):
		c.stats.Ahead = seen.at.Sub(began)
	default:
		c.stats.Ahead = 0
	}
}

// headChecks is who waits for the head.
type headChecks struct {
	mu      sync.Mutex
	next    *headCheck // for those who have come since the last one began; nil: nobody
	running bool
}

// A headCheck asks for the head, for all who had begun to wait for it before.
type headCheck struct {
	done chan struct{}
	head Head
	err  error
}

// Head returns the head at a moment after the call. Who calls at the same time asks the database
// together.
func (db *DB) Head(ctx context.Context) (Head, error) {
	db.checks.mu.Lock()
	check := db.checks.next
	if check == nil {
		check = &headCheck{done: make(chan struct{})}
		db.checks.next = check
		if !db.checks.running {
			db.checks.running = true
			go db.check()
		}
	}
	db.checks.mu.Unlock()
	select {
	case <-check.done:
		return check.head, check.err
	case <-ctx.Done():
		return Head{}, ctx.Err()
	}
}

// check asks for the head as long as somebody waits for it.
func (db *DB) check() {
	for {
		db.checks.mu.Lock()
		check := db.checks.next
		db.checks.next, db.checks.running = nil, check != nil
		db.checks.mu.Unlock()
		if check == nil {
			return
		}
		check.head, check.err = db.askHead()
		close(check.done)
	}
}

// landTime is how long to wait for the answer to a commit that others can read already.
const landTime = time.Second

func (db *DB) askHead() (h Head, err error) {
	var seen *sight
	err = db.over(context.Background(), &db.writers, func(c *conn) error {
		before, _ := db.chain.now()
		began := time.Now()
		rows, err := c.trip().askHead(before).run()
		if err == nil {
			if seen, err = c.sightIn(rows[0], before); err == nil {
				db.chain.noteTime(seen, began)
			}
		}
		return err
	})
	if err != nil {
		return h, err
	}
	h = seen.Head
	if landed := db.chain.learn(seen); landed != nil {
		// Somebody may have read what it has changed. Who asks later must not read less.
		select {
		case <-landed:
		case <-time.After(landTime):
			return h, fmt.Errorf("%w: a commit does not end", ErrUnavailable)
		}
	}
	return h, nil
}

// CatchUp returns once everything is known that was committed before the call, by whomever, and
// OnOthers has told of it.
func (db *DB) CatchUp(ctx context.Context) error {
	_, err := db.Head(ctx)
	return err
}

type caughtUp struct{}

// CaughtUp returns a context for Views of what comes after a CatchUp. They need no other one.
func CaughtUp(ctx context.Context) context.Context { return context.WithValue(ctx, caughtUp{}, true) }
