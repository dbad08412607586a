package postgres

import (
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
	if s.conn != nil {
		s.pool.giveOver(s.conn)
		s.conn = nil
	}
	s.err = ErrClosed
}

// ask adds one statement to a trip, and the question for the heads of parts that were not asked for
// yet. Its rows are for read.
func (s *Snapshot) ask(parts []int32, ask func(*trip), read func([]row)) error {
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

// Get returns the value of a key; ok is false where there is none. The value is the caller's.
func (s *Snapshot) Get(key []byte) (value []byte, ok bool, err error) { return s.get(key) }

// get is Get, with the heads of parts.
func (s *Snapshot) get(key []byte, parts ...int32) (value []byte, ok bool, err error) {
	if value, kept := s.kept[string(key)]; kept && s.err == nil {
		return value, value != nil, nil
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

// mostWarm is how many keys are read at once.
const mostWarm = 256

// warm reads keys that get will be asked for, with the heads of parts.
func (s *Snapshot) warm(keys [][]byte, parts []int32) error {
	for some := range slices.Chunk(keys, mostWarm) {
		err := s.ask(parts, func(t *trip) { t.add(sqlGetMany, bytesArray(some)) }, func(rows []row) {
			if s.kept == nil {
				s.kept = map[string][]byte{}
			}
			for _, key := range some {
				s.kept[string(key)] = nil
			}
			for _, r := range rows {
				s.kept[string(r[0])] = r[1]
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Entries that are read at once by a Scan: few at first, since many scans want few, then more
// as long as a page is not large.
const (
	firstPage = 16
	mostPage  = 512
	pageBytes = 1 << 20
)

// nextPage returns how many entries to read after a page of so many, with so many bytes.
func nextPage(entries int64, bytes int) int64 {
	if bytes > pageBytes {
		return max(1, entries/8)
	}
	return min(4*entries, mostPage)
}

// Scan yields the entries with lo <= key < hi in bytewise order, or in reverse. An empty hi means
// no upper end. It yields an error at most once, as the last thing.
func (s *Snapshot) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	return s.scan(lo, hi, reverse, nil, func(err error) error { return err })
}

// scan is Scan, with the heads of parts. look is called after each read, with its error, and fails
// if what was read is not to be used.
func (s *Snapshot) scan(lo, hi []byte, reverse bool, parts []int32, look func(error) error) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lo, hi := append([]byte{}, lo...), append([]byte{}, hi...)
		open := len(hi) == 0
		for limit := int64(firstPage); ; {
			var page []Entry
			size := 0
			err := s.ask(parts, func(t *trip) {
				switch {
				case open && reverse:
					t.add(sqlDownAll, lo, int8(limit))
				case open:
					t.add(sqlUpAll, lo, int8(limit))
				case reverse:
					t.add(sqlDown, lo, hi, int8(limit))
				default:
					t.add(sqlUp, lo, hi, int8(limit))
				}
			}, func(rows []row) {
				for _, r := range rows {
					page = append(page, Entry{r[0], r[1]})
					size += len(r[0]) + len(r[1])
				}
			})
			if err = look(err); err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if int64(len(page)) < limit {
				return
			}
			last := page[len(page)-1].Key
			if reverse {
				hi, open = last, false
			} else {
				lo = append(append([]byte{}, last...), 0)
			}
			limit = nextPage(limit, size)
		}
	}
}
