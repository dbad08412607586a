package postgres

import (
	"errors"
	"sync"
	"time"
)

// A chain is what this process knows of the log: the last commit of each part, and values as of it.
// It stays current by what the process commits itself. Others' commits are found out by asking for
// heads, by those of snapshots, and by turns that are lost. Each time a new epoch of the part
// begins, without values.
type chain struct {
	mu       sync.RWMutex
	parts    map[int32]*part
	epochs   uint64         // the number of the last epoch
	settings uint64         // that of the last one when others were found to have changed settings
	to       map[int32]bool // parts to ask for before the next turn begins
	moved    map[int32]bool // parts that others have changed since the last turn began
	line     *int32         // the part that the next turn stands in line for; nil: none

	sent   [16]byte      // id of the commit that is under way; zero: there is none
	landed chan struct{} // closed when its outcome is known here
	doubts bool          // what can be read may have commits that are not safe yet, or get some: see barrier
	down   error         // why the database could not be asked, if it could not
	downAt time.Time     // when that was
	stats  Stats

	values, older map[string]value // the newer half of what is kept, and the rest
	size, most    int              // bytes of values, and how many of both

	others func(part int32, settings bool) // see DB.OnOthers
	gone   func(from, to int64)            // see DB.OnGone
}

// A part is what is known of one part of the log.
type part struct {
	head    Head         // the last commit known of
	epoch   uint64       // no other part has the same
	changed uint64       // the epoch that others' commits began; 0: they have made none since the part is known
	asked   bool         // head is what a commit can build on; else the database is asked first
	turns   bool         // turns of this process have used it
	own     [16][16]byte // ids of the last commits of this process, by number modulo 16
}

// mostParts is how many parts are known at most: then all of them are forgotten.
const mostParts = 1 << 17

// A value is that of a key in all states of its part from a commit on, up to the last one of an
// epoch.
type value struct {
	bytes []byte // nil: there is no entry
	from  int64  // number of the commit
	epoch uint64
}

// valueCost is about how many bytes a value takes beside its key and itself.
const valueCost = 96

// downTime is for how long a database that did not answer is taken to be down. Else each group of
// updates would wait for it anew.
const downTime = time.Second

func (c *chain) init(most int) {
	c.most = most
	c.parts, c.to, c.moved = map[int32]*part{}, map[int32]bool{}, map[int32]bool{}
	c.others, c.gone = func(int32, bool) {}, func(int64, int64) {}
}

// known returns the last commits known of, of those parts of which one is.
func (c *chain) known(parts []int32) heads {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := make(heads, len(parts))
	for _, n := range parts {
		if p := c.parts[n]; p != nil {
			list[n] = p.head
		}
	}
	return list
}

// epochOf returns the epoch that a commit belongs to; 0 if it is not the last one known.
func (c *chain) epochOf(n int32, h Head) uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	p := c.parts[n]
	if p == nil || !p.head.Is(h) && (h.ID == [16]byte{} || h.ID != p.own[h.N%int64(len(p.own))]) {
		return 0
	}
	return p.epoch
}

// last stands for the last commit known, in get.
const last = -1

// get returns the value that a key has after commit number at of a part, in an epoch; nil if there
// is no entry. known is false if that has to be read.
func (c *chain) get(n int32, key []byte, at int64, epoch uint64) (bytes []byte, known bool) {
	c.mu.RLock()
	v, there := c.values[string(key)]
	old := false
	if !there {
		v, old = c.older[string(key)]
	}
	if p := c.parts[n]; p != nil && (there || old) {
		if at == last {
			at = p.head.N
		}
		known = v.epoch == epoch && epoch == p.epoch && v.from <= at && at <= p.head.N
	}
	c.mu.RUnlock()
	if known && old {
		c.renew(string(key))
	}
	return v.bytes, known
}

// has reports whether the value of a key is known if the part has not moved.
func (c *chain) has(n int32, key []byte) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, there := c.values[string(key)]
	if !there {
		v, there = c.older[string(key)]
	}
	p := c.parts[n]
	return there && p != nil && v.epoch == p.epoch
}

// keep keeps the value of a key that was read in the state of a part after a commit; nil if there
// is no entry.
func (c *chain) keep(n int32, key, bytes []byte, at Head) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.parts[n]; p != nil && p.head.Is(at) {
		c.put(string(key), value{bytes, at.N, p.epoch})
	}
}

// renew keeps a value longer: it is of use.
func (c *chain) renew(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, there := c.older[key]; there {
		c.put(key, v)
	}
}

func (c *chain) put(key string, v value) {
	if c.values == nil || c.size > c.most/2 {
		c.values, c.older, c.size = map[string]value{}, c.values, 0
	}
	c.values[key] = v
	delete(c.older, key) // or renew would bring back a value that stored has not seen there
	c.size += len(key) + len(v.bytes) + valueCost
}

// learn notes heads that were just read, of one moment. Where one is another's commit, a new epoch
// of the part begins. asked says that turns can build on them. landed, if not nil, is closed once
// the heads are known here too: one is the commit of this process that is under way.
func (c *chain) learn(seen map[int32]*sight, asked bool) (landed <-chan struct{}) {
	var gone *sight
	c.mu.Lock()
	for n, s := range seen {
		if s.gone() && gone == nil && c.parts[n] != nil && !s.Is(c.parts[n].head) {
			gone = s
			c.stats.Gone++
			c.forget()
		}
		p := c.parts[n]
		mine := s.ID == c.sent && s.ID != [16]byte{}
		if mine {
			landed = c.landed
		}
		switch {
		case p == nil:
			c.meet(n, s.Head)
			continue
		case mine || s.Is(p.head):
		case !s.gone() && (s.late || s.before.N <= s.N) && s.N < p.head.N: // read earlier than what is known
		default:
			settings := s.Settings != p.head.Settings || !s.sure()
			c.epochs++
			*p = part{head: s.Head, epoch: c.epochs, changed: c.epochs, turns: p.turns}
			c.moved[n] = true
			c.ask(n, p)
			if settings {
				c.settings = c.epochs
			}
			c.others(n, settings) // before anybody can see the head
		}
		if asked {
			p.asked = true
			delete(c.to, n)
		}
	}
	c.mu.Unlock()
	if gone != nil {
		c.gone(gone.before.N, gone.N)
	}
	return landed
}

// meet notes the head of a part that nothing was known of. What is kept of it elsewhere is no older
// than what is known of the common part: settings are told there. The caller holds mu.
func (c *chain) meet(n int32, head Head) {
	if len(c.parts) >= mostParts {
		c.forget()
	}
	c.epochs++
	c.parts[n] = &part{head: head, epoch: c.epochs, asked: true}
}

// forget forgets all parts. The caller holds mu.
func (c *chain) forget() {
	c.epochs++
	c.settings = c.epochs
	parts := c.parts
	c.parts, c.to = map[int32]*part{}, map[int32]bool{}
	c.values, c.older, c.size = nil, nil, 0
	for n := range parts {
		c.moved[n] = true
		c.others(n, true)
	}
}

// ask notes that turns do not build on what is known of a part until the database was asked. The
// caller holds mu.
func (c *chain) ask(n int32, p *part) {
	p.asked = false
	if p.turns {
		c.to[n] = true
	}
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

// stored notes that the commit sent was stored, on top of what was known.
func (c *chain) stored(w *work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.land()
	c.stats.Won++
	c.stats.Current = time.Now()
	c.down, c.doubts = nil, false // a commit is not safe before those that it builds on
	for _, b := range w.bases {
		p := c.parts[b.part]
		if p == nil || !p.head.Is(b.Head) { // others have committed since
			continue
		}
		p.head = w.next(b.Head)
		p.own[p.head.N%int64(len(p.own))] = w.id
	}
	for i, change := range w.changes {
		p := c.parts[w.parts[i]]
		if p == nil || p.head.ID != w.id {
			continue
		}
		for _, values := range []map[string]value{c.values, c.older} {
			if v, there := values[change.Key]; there {
				if v.epoch == p.epoch {
					values[change.Key] = value{change.Value, p.head.N, p.epoch}
				}
				break
			}
		}
	}
}

// notStored notes that the commit of a turn was not stored, or that nobody knows.
func (c *chain) notStored(parts []int32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.land()
	if errors.Is(err, ErrTurnLost) {
		c.stats.Lost++
	}
	c.doubts = c.doubts || errors.Is(err, ErrUnknown)
	if errors.Is(err, ErrUnavailable) {
		return
	}
	for _, n := range parts {
		if p := c.parts[n]; p != nil {
			c.ask(n, p)
		}
	}
}

// doubt notes that commits may be there that are not safe yet: a connection was lost, maybe since
// the database has crashed, or a session was ended that waited for a standby.
func (c *chain) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubts = true
	for n, p := range c.parts {
		c.ask(n, p)
	}
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

// OnOthers has others called when others have committed in a part: before a function sees that, as
// far as this process knows. settings says whether Head.Settings has changed. others must not use
// the DB. OnOthers is called before the first use of the DB.
//
// Of a part that nothing was read from, others is told only where Settings are: in the common part.
func (db *DB) OnOthers(others func(part int32, settings bool)) { db.chain.others = others }

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
	RoomConns int           // how many there may be, as far as the database has said
	MaxConns  int           // how many there may be at most: Options.Conns
}

// Stats returns the figures as of now.
func (db *DB) Stats() Stats {
	db.chain.mu.RLock()
	s := db.chain.stats
	db.chain.mu.RUnlock()
	s.Trips = db.trips.Load()
	s.Conns, s.RoomConns = db.conns.used()
	s.MaxConns = db.conns.size
	return s
}

// noteTime notes that the database's clock showed at, when it was asked at began.
func (c *chain) noteTime(at, began time.Time) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Current = began
	switch { // between both moments the database's clock was read
	case at.After(now):
		c.stats.Ahead = at.Sub(now)
	case at.Before(began):
		c.stats.Ahead = at.Sub(began)
	default:
		c.stats.Ahead = 0
	}
}
