package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// connsForCommits are kept from readers, or half of the connections if there are fewer than twice as
// many: many readers do not hold up the commits. A commit needs two, since the turn after it reads
// meanwhile.
const connsForCommits = 4

// connsForOthers are left to other processes where the database gives fewer connections than there
// may be: a command beside servers under load finds one.
const connsForOthers = 2

const (
	poolWait = time.Second            // how long to wait for a connection that others use
	fewWait  = 5 * time.Second        // where the database gives fewer than there may be, or while it is opened
	leastOff = 20 * time.Millisecond  // a refused connection is tried again after that, and then after twice as long
	needOff  = 200 * time.Millisecond // up to that, while there are fewer than commits need
	mostOff  = 10 * time.Second       // and else
	idleTime = time.Minute            // a connection that nobody has used for so long is closed
)

// A Fewer is told that the database gives fewer connections than there may be: how many the process
// does with, and how many there may be. It is told again only after there were as many as there may be.
type Fewer func(has, may int)

// conns are the connections of a DB. There are up to size of them. Where the database refuses one,
// there are fewer until it gives one that is tried now and then.
type conns struct {
	db   *DB
	size int

	mu      sync.Mutex
	room    int     // how many there may be, as far as is known
	open    int     // how many there are, or are being opened
	opening int     // how many of those are being opened
	reading int     // how many readers have
	idle    []*conn // the last one was used last
	waiting [2][]chan *conn
	epoch   uint64        // how often a connection has failed; older ones are likely dead too
	off     time.Duration // the last time between two tries to have more than room
	next    time.Time     // the next such try
	timer   *time.Timer   // for it
	told    bool          // Fewer was
}

// A pool is the connections for one kind of use.
type pool struct {
	*conns
	reads bool // those for commits are kept from it
}

// commits and reads are the places in waiting. Commits come first.
const (
	commits = iota
	reads
)

func (p *pool) place() int {
	if p.reads {
		return reads
	}
	return commits
}

func (s *conns) init(db *DB, size int) {
	s.db, s.size, s.room = db, size, size
	s.timer = time.AfterFunc(time.Hour, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.grant()
	})
	s.timer.Stop()
}

// used is how many connections somebody uses, and room how many there may be, as far as is known.
func (s *conns) used() (used, room int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open - len(s.idle), s.room
}

// kept is how many connections are kept from readers. s is locked.
func (s *conns) kept() int { return min(connsForCommits, s.room/2) }

// forTwo reports whether one who commits may have two connections.
func (s *conns) forTwo() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept() >= 2
}

// pick takes a connection that nobody uses; nil if there is none. s is locked.
func (s *conns) pick(reads bool) (c *conn) {
	n := len(s.idle)
	if n == 0 || reads && s.open-s.opening-s.reading <= s.kept() {
		return nil
	}
	c, s.idle = s.idle[n-1], s.idle[:n-1]
	if c.reads = reads; reads {
		s.reading++
	}
	return c
}

// mayOpen counts one more connection, if there may be one: the caller is to open it. s is locked.
func (s *conns) mayOpen() bool {
	if s.open >= s.room && (s.open >= s.size || s.opening > 0 || time.Now().Before(s.next)) {
		return false
	}
	s.open++
	s.opening++
	return true
}

// grant gives those who wait what there is: a connection, or nil to open one. s is locked.
func (s *conns) grant() {
	for kind, queue := range s.waiting {
		for len(queue) > 0 {
			c := s.pick(kind == reads)
			if c == nil && !s.db.closed.Load() && !s.mayOpen() {
				break
			}
			queue[0] <- c
			queue = queue[1:]
		}
		s.waiting[kind] = queue
	}
}

// take returns a connection. It fails with ErrUnavailable if there is none for long, or with the error
// of dialing.
func (p *pool) take(ctx context.Context) (c *conn, err error) {
	s, began := p.conns, time.Now()
	var full error // the last refusal
	s.mu.Lock()
	for {
		if c = s.pick(p.reads); c == nil && !s.db.closed.Load() && !s.mayOpen() {
			queued := make(chan *conn, 1)
			s.waiting[p.place()] = append(s.waiting[p.place()], queued)
			wait := poolWait
			if s.open > 0 && s.room < s.size || s.db.patience == 0 { // one comes back, or others let it have one
				wait = fewWait
			}
			s.mu.Unlock()
			select {
			case c = <-queued:
			case <-time.After(time.Until(began.Add(wait))):
				err = fmt.Errorf("%w: %w", ErrUnavailable, errFull)
				if full != nil {
					err = fmt.Errorf("%w: %w", err, full)
				}
			case <-ctx.Done():
				err = ctx.Err()
			}
			s.mu.Lock()
			if err != nil && !s.leave(p.place(), queued) {
				c, err = <-queued, nil // it came meanwhile
			}
		}
		if c != nil || err != nil || s.db.closed.Load() {
			break
		}
		if full, err = s.dial(ctx); err != nil {
			break
		}
	}
	s.mu.Unlock()
	if err == nil && s.db.closed.Load() {
		if c != nil {
			s.give(c, nil)
		}
		return nil, ErrClosed
	}
	return c, err
}

// leave ends the wait of somebody; false if there is something for him. s is locked.
func (s *conns) leave(kind int, queued chan *conn) bool {
	at := slices.Index(s.waiting[kind], queued)
	if at >= 0 {
		s.waiting[kind] = slices.Delete(s.waiting[kind], at, at+1)
	}
	return at >= 0
}

// dial opens a connection that mayOpen has counted, for whoever comes first. full is why the database
// gives no more connections. s is locked, but not meanwhile.
func (s *conns) dial(ctx context.Context) (full, err error) {
	epoch := s.epoch
	s.mu.Unlock()
	c, err := s.db.dial(ctx)
	s.mu.Lock()
	s.opening--
	switch {
	case err == nil:
		c.epoch, c.since = epoch, time.Now()
		s.idle = append(s.idle, c)
		if s.open > s.room && s.opening == 0 {
			s.room = s.open
			s.tryAfter(leastOff)
		}
		if s.room == s.size {
			s.off, s.told = 0, false
		}
	case isFull(err):
		s.open--
		s.refused()
		full, err = err, nil
	default:
		s.open--
		if s.db.checked.Load() { // it was right when the database was opened, and may be so again
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	if s.opening == 0 && s.open > 0 && s.room < s.size && !s.told && s.db.options.Fewer != nil {
		s.told = true
		go s.db.options.Fewer(s.room, s.size)
	}
	if len(s.waiting[commits]) > 0 || err != nil || full != nil {
		s.grant()
	}
	return full, err
}

// refused notes that the database gives no more connections than there are. s is locked.
func (s *conns) refused() {
	s.room = max(s.open-connsForOthers, min(s.open, connsForCommits))
	if time.Now().Before(s.next) { // of those that were tried together
		return
	}
	most := mostOff
	if s.open <= connsForCommits {
		most = needOff
	}
	s.off = min(max(2*s.off, leastOff), mostOff)
	s.tryAfter(min(s.off, most))
}

// tryAfter sets when to try to have more connections than there is room for. s is locked.
func (s *conns) tryAfter(wait time.Duration) {
	s.next = time.Now().Add(wait)
	s.timer.Reset(wait)
}

// keepForCommits opens the connections that are kept for commits, if the database gives them.
func (s *conns) keepForCommits(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.open < s.kept() && s.mayOpen() {
		if _, err := s.dial(ctx); err != nil {
			return err
		}
	}
	return nil
}

// give puts a connection back, or closes it if nobody else can use it. err is that of its last use.
func (s *conns) give(c *conn, err error) {
	if outcomeOf(err) == elsewhere {
		c.close() // and the others with it: who only reads would not notice
	}
	s.mu.Lock()
	if c.reads {
		c.reads = false
		s.reading--
	}
	broken := c.pg.IsClosed() && c.epoch == s.epoch
	if broken {
		s.epoch++
	}
	now := time.Now()
	var dead []*conn
	if c.idle() && c.epoch == s.epoch && !s.db.closed.Load() && s.open <= s.room {
		c.since = now
		s.idle = append(s.idle, c)
		if old := s.idle[0]; s.open > s.kept() && now.Sub(old.since) > idleTime {
			dead, s.idle = append(dead, old), s.idle[1:]
		}
	} else {
		dead = append(dead, c)
		s.idle = slices.DeleteFunc(s.idle, func(c *conn) bool {
			old := c.epoch != s.epoch
			if old {
				dead = append(dead, c)
			}
			return old
		})
	}
	s.drop(dead)
	s.grant()
	s.mu.Unlock()
	if broken {
		s.db.chain.doubt()
	}
}

// drop closes connections, which are not idle ones any more. s is locked.
func (s *conns) drop(dead []*conn) {
	for _, c := range dead {
		c.close()
	}
	s.open -= len(dead)
}

// overTime is for how long a transaction that is over may stay open. While it does, the database keeps
// what it might read.
const overTime = 5 * time.Millisecond

// giveOver puts a connection back whose transaction, which only read, is of no use any more. Who
// takes it next ends that with what it has to say.
func (s *conns) giveOver(c *conn) {
	if c.pg.IsClosed() || c.pg.TxStatus() != 'T' {
		go func() {
			c.rollback()
			s.give(c, nil)
		}()
		return
	}
	c.over = true
	time.AfterFunc(overTime, func() { s.end(c) })
	s.give(c, nil)
}

// end ends what is over on a connection that nobody has taken.
func (s *conns) end(c *conn) {
	s.mu.Lock()
	at := slices.Index(s.idle, c)
	if at >= 0 {
		s.idle = slices.Delete(s.idle, at, at+1)
	}
	s.mu.Unlock()
	if at < 0 {
		return
	}
	var err error
	if c.over {
		_, err = c.trip().run()
	}
	s.give(c, err)
}

func (s *conns) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	s.drop(s.idle)
	s.idle = nil
	s.grant() // who waits need not
}
