package postgres

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"iter"
	"time"
)

// A Sum is the number of entries and a digest of all of them, in order.
type Sum struct {
	Entries int
	Digest  [sha256.Size]byte
}

// A Summer makes a Sum.
type Summer struct {
	n    int
	hash hash.Hash
	buf  []byte
}

func NewSummer() *Summer { return &Summer{hash: sha256.New()} }

// Add adds an entry: the lengths of key and value, in four bytes each, and then both.
func (s *Summer) Add(e Entry) {
	s.n++
	s.buf = binary.BigEndian.AppendUint32(s.buf[:0], uint32(len(e.Key)))
	s.buf = binary.BigEndian.AppendUint32(s.buf, uint32(len(e.Value)))
	s.hash.Write(append(append(s.buf, e.Key...), e.Value...))
}

func (s *Summer) Sum() Sum { return Sum{s.n, [sha256.Size]byte(s.hash.Sum(nil))} }

// Fill puts entries, which come in order, into a database that has none, and compares them with
// what is there then. It is one transaction: all of it is stored or nothing. It fails with
// ErrNotEmpty if there are entries.
func (db *DB) Fill(ctx context.Context, entries iter.Seq2[Entry, error]) (sum Sum, err error) {
	c, err := db.writers.take(ctx)
	if err != nil {
		return sum, err
	}
	defer db.writers.give(c)
	defer c.rollback()
	if _, err := c.holdTurn(); err != nil {
		return sum, err
	}
	if rows, err := c.trip().add(sqlUpAll, []byte{}, int8(1)).run(); err != nil {
		return sum, err
	} else if len(rows[0]) > 0 {
		return sum, ErrNotEmpty
	}
	sent := NewSummer()
	if err := c.copyIn(ctx, entries, sent); err != nil {
		return sum, err
	}
	there := NewSummer()
	for e, err := range (&Snapshot{db: db, conn: c}).Scan(nil, nil, false) {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return sum, err
		}
		there.Add(e)
	}
	if sum = there.Sum(); sum != sent.Sum() {
		return sum, fmt.Errorf("postgres: %d entries were sent, and these or others are there: %d", sent.n, there.n)
	}
	if _, err := c.trip().add(sqlCommit).runFor(time.Minute); err != nil {
		return sum, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return sum, c.exec(`ANALYZE sello_kv`) // or the first statements are planned for a table without rows
}

// holdTurn begins a transaction, in which nobody else can commit, and returns the head. Its
// reads are as of that head, all of them.
func (c *conn) holdTurn() (Head, error) {
	rows, err := c.trip().add(sqlHold).add(sqlHead, int4(part)).run()
	if err != nil {
		return Head{}, err
	}
	at, err := headIn(rows[1])
	if err != nil {
		return Head{}, err
	}
	next := Head{at.N + 1, NewID(), at.Settings + 1}
	_, err = c.trip().add(sqlTurn, newCommit(at, next, nil).turn...).run()
	if outcomeOf(err) == lost {
		err = ErrTurnLost
	}
	return at, err
}

// copyIn sends entries to the table.
func (c *conn) copyIn(ctx context.Context, entries iter.Seq2[Entry, error], sum *Summer) error {
	next, stop := iter.Pull2(entries)
	defer stop()
	c.pg.Conn().SetDeadline(time.Time{}) // keepalives find a connection that is dead
	_, err := c.pg.CopyFrom(ctx, &copyReader{next: next, sum: sum}, `COPY sello_kv (k, v) FROM STDIN (FORMAT binary)`)
	return err
}

// A copyReader is entries in the binary format of COPY.
type copyReader struct {
	next  func() (Entry, error, bool)
	sum   *Summer
	begun bool
	ended bool
	buf   bytes.Buffer // what is not read yet
}

// copyPiece is how many bytes are put together at a time.
const copyPiece = 1 << 20

func (r *copyReader) Read(p []byte) (int, error) {
	if !r.begun {
		r.begun = true
		r.buf.WriteString("PGCOPY\n\xff\r\n\x00")
		r.buf.Write(make([]byte, 8)) // no flags, no extension
	}
	for r.buf.Len() < copyPiece && !r.ended {
		e, err, ok := r.next()
		if err != nil {
			return 0, err
		}
		if !ok {
			r.ended = true
			r.buf.Write([]byte{0xff, 0xff})
			break
		}
		r.sum.Add(e)
		var length [4]byte
		r.buf.Write([]byte{0, 2}) // columns
		for _, column := range [][]byte{e.Key, e.Value} {
			binary.BigEndian.PutUint32(length[:], uint32(len(column)))
			r.buf.Write(length[:])
			r.buf.Write(column)
		}
	}
	if r.buf.Len() == 0 {
		return 0, io.EOF
	}
	return r.buf.Read(p)
}

// Hold calls fn with a snapshot of the newest state, and lets nobody commit until it returns.
func (db *DB) Hold(ctx context.Context, fn func(*Snapshot) error) error {
	for n := 0; ; n++ {
		s := &Snapshot{db: db, ctx: ctx, pool: &db.writers}
		err := db.with(ctx, s.pool, func(c *conn) (keep bool, err error) {
			if s.head, err = c.holdTurn(); err != nil {
				c.rollback()
				return false, err
			}
			s.conn = c
			return true, nil
		})
		if err == nil {
			defer s.Close()
			return fn(s)
		}
		if err != error(ErrTurnLost) || n == 100 { // somebody is committing all the time
			return err
		}
		pause(n)
	}
}
