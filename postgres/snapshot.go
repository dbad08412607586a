package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// An Entry is one key and its value.
type Entry struct{ Key, Value []byte }

// A Snapshot reads one state of the database. It is used by one goroutine at a time. It holds a
// connection from its first read on, until Close.
type Snapshot struct {
	db   *DB
	ctx  context.Context // ends the wait for a connection
	pool *pool
	conn *conn             // nil before the first read
	seen map[int32]*sight  // the heads of parts that were asked for with a read
	news []int32           // parts of seen since news was emptied
	kept map[string][]byte // values that will be asked for; nil: there is none
	size int               // bytes of kept
	page *page             // that a Scan has read last: Gets near it are often of the same entries
	next *page             // that a Scan will want next, if it is being read
	err  error             // of an earlier read; no other can be made
}

// snapshot returns a snapshot of the state at its first read.
func (db *DB) snapshot(ctx context.Context) *Snapshot {
	return &Snapshot{db: db, ctx: ctx, pool: &db.readers}
}

// committerSnapshot is snapshot for the one who commits. It does not wait for other readers'
// connections.
func (db *DB) committerSnapshot() *Snapshot {
	return &Snapshot{db: db, ctx: context.Background(), pool: &db.writers}
}

// Close ends the snapshot. The database hears of it with the next message over the connection, or
// soon.
func (s *Snapshot) Close() {
	s.land()
	if s.conn != nil {
		s.pool.giveOver(s.conn)
		s.conn = nil
	}
	s.err = ErrClosed
}

// ask adds one statement to a trip, and the question for the heads of parts that were not asked for
// yet. Its rows are for read.
func (s *Snapshot) ask(parts []int32, ask func(*trip), read func([]row)) error {
	s.land()
	if s.err != nil {
		return s.err
	}
	var unseen []int32
	for _, n := range parts {
		if s.seen[n] == nil && !slices.Contains(unseen, n) {
			unseen = append(unseen, n)
		}
	}
	if s.conn == nil {
		return s.begin(unseen, ask, read)
	}
	t := s.conn.trip()
	ask(t)
	before := s.db.chain.known(unseen)
	if len(unseen) > 0 {
		t.askHeads(unseen, before)
	}
	results, err := t.run()
	if err == nil && len(unseen) > 0 {
		err = s.note(s.conn, results[1], before, true)
	}
	if err == nil {
		read(results[0])
	}
	return s.failed(err)
}

// begin begins the transaction with the first read. It tries other connections: nobody has seen
// anything yet.
func (s *Snapshot) begin(parts []int32, ask func(*trip), read func([]row)) error {
	if len(parts) == 0 {
		parts = []int32{Common} // which shows whether the server is the right one
	}
	err := s.db.with(s.ctx, s.pool, func(c *conn) (keep bool, err error) {
		before := s.db.chain.known(parts)
		t := c.trip().add(sqlLook).askHeads(parts, before)
		ask(t)
		results, err := t.run()
		if err == nil {
			err = s.note(c, results[1], before, false)
		}
		if err != nil {
			c.rollback()
			return false, err
		}
		if len(results) > 2 {
			read(results[2])
		}
		s.conn = c
		return true, nil
	})
	return s.failed(err)
}

// note keeps the heads that were read. late says that the snapshot had begun before.
func (s *Snapshot) note(c *conn, rows []row, before heads, late bool) error {
	seen, err := c.sightsIn(rows, before)
	if s.seen == nil {
		s.seen = map[int32]*sight{}
	}
	for n, at := range seen {
		at.late = late
		s.seen[n] = at
		s.news = append(s.news, n)
	}
	return err
}

// allHeads returns the heads of all parts that have commits. The common one's is asked for like those
// of get.
func (s *Snapshot) allHeads() (all heads, err error) {
	var rows []row
	err = s.ask([]int32{Common}, func(t *trip) { t.add(sqlAllHeads) }, func(r []row) { rows = r })
	if err == nil {
		all, err = s.conn.headsIn(rows)
		err = s.failed(err)
	}
	return all, err
}

// failed keeps the first error that leaves the snapshot of no use.
func (s *Snapshot) failed(err error) error {
	switch outcomeOf(err) {
	case stored:
		return nil
	case wrong:
	default:
		if !errors.Is(err, ErrUnavailable) {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	s.err = err
	return err
}

// Get returns the value of a key; ok is false where there is none. The caller does not change it.
func (s *Snapshot) Get(key []byte) (value []byte, ok bool, err error) { return s.get(key) }

// get is Get, with the heads of parts.
func (s *Snapshot) get(key []byte, parts ...int32) (value []byte, ok bool, err error) {
	if value, kept := s.kept[string(key)]; kept && s.err == nil {
		return value, value != nil, nil
	}
	if s.page.has(key) && s.err == nil && !slices.ContainsFunc(parts, func(n int32) bool { return s.seen[n] == nil }) {
		value, ok = s.page.get(key)
		return value, ok, nil
	}
	err = s.ask(parts, func(t *trip) { t.add(sqlGet, key) }, func(rows []row) {
		if len(rows) > 0 {
			value, ok = rows[0][0], true
		}
	})
	return value, ok, err
}

// Warm reads keys that Get will be asked for.
func (s *Snapshot) Warm(keys [][]byte) { s.warm(keys, nil) }

const (
	mostWarm = 256     // keys that are read at once
	mostKept = 8 << 20 // bytes of keys and values: so much is forgotten before others are read
)

// warm reads keys that get will be asked for, with the heads of parts.
func (s *Snapshot) warm(keys [][]byte, parts []int32) error {
	if s.kept == nil || s.size > mostKept {
		s.kept, s.size = map[string][]byte{}, 0
	}
	for some := range slices.Chunk(keys, mostWarm) {
		err := s.ask(parts, func(t *trip) { t.add(sqlGetMany, bytesArray(some)) }, func(rows []row) {
			for _, key := range some {
				s.kept[string(key)] = nil
				s.size += len(key)
			}
			for _, r := range rows {
				s.kept[string(r[0])] = r[1]
				s.size += len(r[1])
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Scan yields the entries with lo <= key < hi in bytewise order, or in reverse. An empty hi means
// no upper end. It yields an error at most once, as the last thing. The caller does not change them.
func (s *Snapshot) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	return s.scan(lo, hi, reverse, nil, func(err error) error { return err })
}

// scan is Scan, with the heads of parts. look is called after each read, with its error, and fails
// if what was read is not to be used.
func (s *Snapshot) scan(lo, hi []byte, reverse bool, parts []int32, look func(error) error) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		p := &page{lo: append([]byte{}, lo...), hi: bytes.Clone(hi), reverse: reverse, limit: firstPage} // a nil lo would be sent as null
		for p != nil {
			if err := look(s.read(p, parts)); err != nil {
				yield(Entry{}, err)
				return
			}
			after := p.after()
			if after != nil && p.limit >= aheadPage {
				s.readAhead(after)
			}
			for _, e := range p.entries {
				if !yield(e, nil) {
					return
				}
			}
			p = after
		}
	}
}

// read reads a page, with the heads of parts, unless that was done ahead.
func (s *Snapshot) read(p *page, parts []int32) error {
	if p == s.next {
		s.land()
	}
	if p.ended && s.err == nil {
		s.page = p
		return nil
	}
	err := s.ask(parts, p.ask, p.take)
	if err == nil {
		s.page = p
	}
	return err
}

// readAhead reads a page while what was read before is made use of. Its heads were asked for.
func (s *Snapshot) readAhead(p *page) {
	s.land()
	if s.err != nil {
		return
	}
	s.next = p
	p.done = make(chan error, 1)
	t := s.conn.trip()
	p.ask(t)
	go func() {
		results, err := t.run()
		if err == nil {
			p.take(results[0])
		}
		p.done <- err
	}()
}

// land waits for the page that is being read ahead: nothing else can be asked for before it is there.
func (s *Snapshot) land() {
	if p := s.next; p != nil {
		s.next = nil
		s.failed(<-p.done)
	}
}
