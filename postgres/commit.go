package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// newID returns a random id for a commit.
func newID() (id [16]byte) {
	rand.Read(id[:])
	return id
}

// A Change is a change of one key. A nil Value deletes the key; an empty one that is not
// nil is a value.
type Change struct {
	Key   string
	Value []byte
}

// A work is a commit on its way.
type work struct {
	id       [16]byte
	bases    []partHead // what it builds on, by part
	settings bool
	changes  []Change
	parts    []int32 // of the changes
	place    *conn   // has the place in a line, for the first try; nil: there is none
	all      *Turn   // the turn, if the commit is one of all parts; bases are complete once it is done

	lost int32 // a part that the turn was lost in, if it was

	keys, values, deleted []byte // arrays of changes, once there was a try
}

// A partHead is the head of a part.
type partHead struct {
	part int32
	Head
}

// next is what comes after a head that the commit builds on.
func (w *work) next(base Head) Head {
	next := Head{base.N + 1, w.id, base.Settings}
	if w.settings {
		next.Settings++
	}
	return next
}

// inParts is an array of the parts that the commit builds on.
func (w *work) inParts() []byte {
	var parts [][]byte
	for _, b := range w.bases {
		parts = append(parts, int4(b.part))
	}
	return array(typeInt4, parts)
}

// add adds the commit's statements to a trip. The rows of the first one are for won.
func (w *work) add(t *trip) *trip {
	var numbers, ids, settings [][]byte
	for _, b := range w.bases {
		numbers = append(numbers, int8(b.N))
		settings = append(settings, int8(w.next(b.Head).Settings))
		if b.ID == [16]byte{} {
			ids = append(ids, nil)
		} else {
			ids = append(ids, b.ID[:])
		}
	}
	if w.keys == nil {
		var keys, values, deleted [][]byte
		for _, c := range w.changes {
			if c.Value == nil {
				deleted = append(deleted, []byte(c.Key))
			} else {
				keys, values = append(keys, []byte(c.Key)), append(values, c.Value)
			}
		}
		w.keys, w.values, w.deleted = bytesArray(keys), bytesArray(values), bytesArray(deleted)
	}
	in, on := w.inParts(), array(typeInt8, numbers)
	t.add(sqlTurn, in, on, bytesArray(ids), array(typeInt8, settings), w.id[:], w.deleted, w.keys, w.values)
	if len(w.bases) > 1 {
		t.add(sqlUndo, in, on, w.id[:])
	}
	return t
}

// won returns an error if sqlTurn has answered that the turn is lost.
func (w *work) won(rows []row) error {
	if len(rows) < len(w.bases) {
		at := slices.IndexFunc(w.bases, func(b partHead) bool {
			return !slices.ContainsFunc(rows, func(r row) bool { return string(r[0]) == string(int4(b.part)) })
		})
		w.lost = w.bases[max(at, 0)].part
		return ErrTurnLost
	}
	return nil
}

// commit stores changes on top of the bases. Its errors are those of Turn.Commit.
func (db *DB) commit(w *work) error {
	began := time.Now()
	unknown := false // whether an earlier try may have been stored
	for n := 0; ; n++ {
		c, err := w.place, error(nil)
		if w.place = nil; c == nil {
			c, err = db.writers.take(context.Background())
		}
		sent := err == nil
		if sent {
			err = c.commit(w)
			if err == nil && c.warned {
				err = errCanceled
			}
			db.writers.give(c, err)
		} else if errors.Is(err, ErrClosed) {
			return err
		}
		switch outcomeOf(err) {
		case stored:
			return nil
		case lost:
			if unknown {
				return db.settled(w)
			}
			return db.chain.lose(w.lost)
		case unprepared:
			db.unprepared.Store(true)
		case redial:
			if _, before := errors.AsType[unsent](err); sent && !before && !unknown {
				unknown, began = true, time.Now()
			}
		case again, elsewhere:
			if db.onlyReads(err) {
				return fmt.Errorf("%w: %w", ErrReadOnly, err)
			}
			db.free(err)
		case refused:
			if !unknown {
				return fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
		default:
			if unknown {
				return fmt.Errorf("%w: %v", ErrUnknown, err)
			}
			return usedError(err)
		}
		if time.Since(began) > db.patience {
			if unknown {
				return fmt.Errorf("%w: %v", ErrUnknown, err) // err may be an ErrUnavailable
			}
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		pause(n)
	}
}

// settled tells what became of a commit that was sent, once it cannot be under way any more.
func (db *DB) settled(w *work) error {
	var id []byte
	var head Head
	first := w.bases[0] // in all parts or in none
	err := db.over(context.Background(), &db.writers, func(c *conn) error {
		rows, err := c.trip().add(sqlCommitOf, int4(first.part), int8(first.N+1)).askHeads([]int32{first.part}, nil).run()
		if err != nil {
			return err
		}
		id = nil
		if len(rows[0]) == 1 {
			id = rows[0][0][0]
		}
		now, err := c.headsIn(rows[1])
		head = now[first.part]
		return err
	})
	if err == nil && string(id) == string(w.id[:]) {
		if err = db.barrier(context.Background()); err == nil {
			return nil
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %v", ErrUnknown, err)
	case id == nil && head.N > first.N+1: // the log was trimmed meanwhile
		return ErrUnknown
	}
	return ErrTurnLost
}

// barrier returns once everything that can be read is as safe as an acknowledged commit. After a
// crash, or where a connection was ended while its commit waited for a standby, there may be
// commits that only this server has. A commit of its own waits for all before it.
func (db *DB) barrier(ctx context.Context) error {
	_, err := db.write(ctx, func(t *trip) { t.add(sqlBarrier, []byte("barrier"), db.me[:]) })
	return err
}

// commit sends a commit in one message. Half of a message seldom arrives alone; free ends a session
// that has got no more.
func (c *conn) commit(w *work) error {
	if w.all != nil {
		return c.commitAll(w)
	}
	t, before := c.trip(), 0
	if c.over || c.pg.TxStatus() == 'I' { // else it has its place
		t.add(sqlBegin).add(sqlPatience).add(sqlLine, w.inParts())
		before = 3
	}
	results, err := w.add(t).add(sqlCommit).run()
	if err != nil {
		c.rollback()
		return err
	}
	return w.won(results[before])
}

// commitAll sends a commit of all parts. It locks the log, to see which there are.
func (c *conn) commitAll(w *work) error {
	rows, err := c.trip().add(sqlBegin).add(sqlPatience).add(sqlHurry).add(sqlLock).add(sqlAllHeads).run()
	if err != nil {
		c.rollback()
		return err
	}
	now, err := c.headsIn(rows[4])
	if err != nil {
		c.rollback()
		return err
	}
	for _, n := range w.all.bases.parts() {
		if _, there := now[n]; !there {
			now[n] = Head{} // without commits
		}
	}
	if !w.all.stands(now) {
		c.rollback()
		return ErrTurnLost
	}
	w.bases = w.bases[:0]
	for _, n := range slices.Sorted(maps.Keys(now)) {
		w.bases = append(w.bases, partHead{n, now[n]})
	}
	results, err := w.add(c.trip()).add(sqlCommit).run()
	if err != nil {
		c.rollback()
		return err
	}
	return w.won(results[0])
}

// Whoever stores a commit whose number in a part is a multiple of trimEvery trims that part of the
// log: of the rows that are older than an hour, but for the newest keptCommits, up to trimMost go.
const (
	trimEvery   = 200
	trimMost    = 3 * trimEvery
	keptCommits = 1000
)

// trim trims what a commit has made long enough. It does not wait for that.
func (db *DB) trim(w *work) {
	var long []partHead
	for _, b := range w.bases {
		if (b.N+1)%trimEvery == 0 {
			long = append(long, b)
		}
	}
	if len(long) > 0 {
		go func() {
			for _, b := range long {
				db.trimPart(b.part, b.N+1)
			}
		}()
	}
}

func (db *DB) trimPart(part int32, head int64) error {
	_, err := db.write(context.Background(), func(t *trip) {
		t.add(sqlTrim, int4(part), int8(head-keptCommits), int8(trimMost))
	})
	return err
}
