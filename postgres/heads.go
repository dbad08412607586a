package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Head names the state of a part after a commit: its number and its random id. Settings is a
// number that the commits of a caller's choice have raised. The zero Head is that of a part without
// commits.
type Head struct {
	N        int64
	ID       [16]byte
	Settings int64
}

// Is reports whether both name the same state.
func (h Head) Is(other Head) bool { return h.N == other.N && h.ID == other.ID }

// heads are states of parts, all as of one moment.
type heads map[int32]Head

// A sight is the head of a part that was read, and what was known before.
type sight struct {
	Head
	before   Head
	unasked  bool      // nothing was known before, or it was not asked about
	late     bool      // before may be a later commit than those that could be read
	ofBefore []byte    // the id of before's number in the log that was read; nil: it is not there
	at       time.Time // the database's clock
}

// sure reports whether the commit before is there for certain.
func (s *sight) sure() bool {
	return !s.unasked && (s.before.ID == [16]byte{} || string(s.ofBefore) == string(s.before.ID[:]))
}

// gone reports whether before was a commit that is not in the log any more. It was not trimmed.
func (s *sight) gone() bool {
	if s.late || s.before.ID == ([16]byte{}) {
		return false
	}
	if s.ofBefore == nil {
		return s.N < s.before.N
	}
	return string(s.ofBefore) != string(s.before.ID[:])
}

// askHeads adds the question for the heads of parts to a trip. Its rows are for sightsIn.
func (t *trip) askHeads(parts []int32, before heads) *trip {
	numbers, known := make([][]byte, len(parts)), make([][]byte, len(parts))
	for i, n := range parts {
		numbers[i], known[i] = int4(n), int8(before[n].N)
	}
	return t.add(sqlHeads, array(typeInt4, numbers), array(typeInt8, known))
}

func (c *conn) sightsIn(rows []row, before heads) (map[int32]*sight, error) {
	number := func(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }
	seen := make(map[int32]*sight, len(rows))
	for _, r := range rows {
		if len(r) != 7 || len(r[0]) != 4 || len(r[5]) != 8 || r[1] != nil && (len(r[1]) != 8 || len(r[2]) != 16 || len(r[3]) != 8) {
			return nil, fmt.Errorf("%w: the log is not one", ErrForeign)
		}
		if isStandby := r[6]; string(isStandby) == "\x01" && !c.db.options.Standby {
			return nil, errStandby
		}
		n := int32(binary.BigEndian.Uint32(r[0]))
		known, asked := before[n]
		s := &sight{before: known, unasked: !asked, ofBefore: r[4],
			at: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(number(r[5])) * time.Microsecond)}
		if r[1] != nil {
			s.Head = Head{number(r[1]), [16]byte(r[2]), number(r[3])}
		} else if n == Common { // which has had one from the beginning
			return nil, fmt.Errorf("%w: the log has no head", ErrForeign)
		}
		seen[n] = s
	}
	return seen, nil
}

// headsIn returns the heads in rows of sqlHeads or sqlAllHeads.
func (c *conn) headsIn(rows []row) (heads, error) {
	seen, err := c.sightsIn(rows, nil)
	return headsOf(seen), err
}

// allHeads asks for the heads of all parts that have commits.
func (c *conn) allHeads() (heads, error) {
	rows, err := c.trip().add(sqlAllHeads).run()
	if err != nil {
		return nil, err
	}
	return c.headsIn(rows[0])
}

// headChecks is who waits for heads.
type headChecks struct {
	mu      sync.Mutex
	next    *headCheck // for those who have come since the last one began; nil: nobody
	running bool
}

// A headCheck asks for heads, for all who had begun to wait for it before.
type headCheck struct {
	parts map[int32]struct{}
	done  chan struct{}
	heads heads
	err   error
}

// heads returns the heads of some parts, and of the common one, at one moment after the call. There
// may be others with them. Who calls at the same time asks the database together.
func (db *DB) heads(ctx context.Context, parts ...int32) (heads, error) {
	db.checks.mu.Lock()
	check := db.checks.next
	if check == nil {
		check = &headCheck{done: make(chan struct{}), parts: map[int32]struct{}{Common: {}}}
		db.checks.next = check
		if !db.checks.running {
			db.checks.running = true
			go db.check()
		}
	}
	for _, n := range parts {
		check.parts[n] = struct{}{}
	}
	db.checks.mu.Unlock()
	select {
	case <-check.done:
		return check.heads, check.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// check asks for heads as long as somebody waits for them.
func (db *DB) check() {
	for {
		db.checks.mu.Lock()
		check := db.checks.next
		db.checks.next, db.checks.running = nil, check != nil
		db.checks.mu.Unlock()
		if check == nil {
			return
		}
		check.heads, check.err = db.readHeads(slices.Collect(maps.Keys(check.parts)))
		close(check.done)
	}
}

// landTime is how long to wait for the answer to a commit that others can read already.
const landTime = time.Second

func (db *DB) readHeads(parts []int32) (heads, error) {
	var seen map[int32]*sight
	err := db.over(context.Background(), &db.writers, func(c *conn) error {
		before := db.chain.known(parts)
		began := time.Now()
		rows, err := c.trip().askHeads(parts, before).run()
		if err == nil {
			if seen, err = c.sightsIn(rows[0], before); err == nil {
				db.chain.noteTime(seen[Common].at, began)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if landed := db.chain.learn(seen, true); landed != nil {
		// Somebody may have read what it has changed. Who asks later must not read less.
		if err := await(landed); err != nil {
			return nil, err
		}
	}
	return headsOf(seen), nil
}

// await waits for the outcome of a commit that others can read already.
func await(landed <-chan struct{}) error {
	select {
	case <-landed:
		return nil
	case <-time.After(landTime):
		return fmt.Errorf("%w: a commit does not end", ErrUnavailable)
	}
}

func headsOf(seen map[int32]*sight) heads {
	all := make(heads, len(seen))
	for n, s := range seen {
		all[n] = s.Head
	}
	return all
}

type caughtUp struct{}

// CatchUp returns once everything is known that was committed before the call, by whomever, in
// some parts and in the common one, and OnOthers has told of it. Views with the context that it
// returns read those parts as of then, or later, and ask no more.
func (db *DB) CatchUp(ctx context.Context, parts ...int32) (context.Context, error) {
	known, err := db.heads(ctx, parts...)
	if err != nil {
		return ctx, err
	}
	return context.WithValue(ctx, caughtUp{}, known), nil
}
