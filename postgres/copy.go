package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"
)

// Fill puts entries, which come in order, into a database that has none. Then it calls same with
// what is there. All of it is one transaction: nothing is stored if same returns an error. It fails
// with ErrNotEmpty if there are entries.
func (db *DB) Fill(ctx context.Context, entries iter.Seq2[Entry, error], same func(there *Snapshot) error) (err error) {
	c, err := db.writers.take(ctx)
	if err != nil {
		return err
	}
	defer func() {
		c.rollback()
		db.writers.give(c, err)
	}()
	if err := c.lock(); err != nil {
		return err
	}
	if rows, err := c.trip().add(sqlUpAll, []byte{}, int8(1)).run(); err != nil {
		return err
	} else if len(rows[0]) > 0 {
		return ErrNotEmpty
	}
	filled := map[int32]bool{Common: true}
	divided := func(yield func(Entry, error) bool) {
		for e, err := range entries {
			if err == nil {
				filled[db.parts.PartOf(e.Key)] = true
			}
			if !yield(e, err) {
				return
			}
		}
	}
	if err := c.copyIn(ctx, divided); err != nil {
		return err
	}
	if err := c.commitIn(filled); err != nil {
		return err
	}
	there := &Snapshot{db: db, conn: c}
	err = same(there)
	there.land() // same may have ended before the end
	if err != nil {
		return err
	}
	if _, err = c.trip().add(sqlCommit).runFor(time.Minute); err == nil && c.warned {
		err = errCanceled
	}
	if err != nil {
		return fmt.Errorf("%w: %v", ErrUnknown, err)
	}
	c.exec(`ANALYZE sello_kv`) // or the first statements are planned for a table without rows
	return nil
}

// lock begins a transaction, in which nobody else can commit. Its reads are all as of the last
// commits.
func (c *conn) lock() error {
	_, err := c.trip().add(sqlHold).add(sqlHolding).add(sqlPatience).add(sqlLock).run()
	return err
}

// commitIn has the transaction be a commit in some parts. It has locked the log.
func (c *conn) commitIn(parts map[int32]bool) error {
	now, err := c.allHeads()
	if err != nil {
		return err
	}
	w := &work{id: newID(), settings: true}
	for n := range parts {
		w.bases = append(w.bases, partHead{n, now[n]})
	}
	rows, err := w.add(c.trip()).run()
	if err != nil {
		return err
	}
	return w.won(rows[0])
}

// copyIn sends entries to the table.
func (c *conn) copyIn(ctx context.Context, entries iter.Seq2[Entry, error]) error {
	r := new(copyReader)
	r.next, r.stop = iter.Pull2(entries)
	defer r.end()
	c.pg.Conn().SetDeadline(time.Time{}) // keepalives find a connection that is dead
	_, err := c.pg.CopyFrom(ctx, r, `COPY sello_kv (k, v) FROM STDIN (FORMAT binary)`)
	return err
}

// A copyReader is entries in the binary format of COPY. Where the connection is cut off, pgconn
// may still read when it has returned.
type copyReader struct {
	mu    sync.Mutex
	next  func() (Entry, error, bool)
	stop  func()
	begun bool
	ended bool
	buf   bytes.Buffer // what is not read yet
}

// copyPiece is how many bytes are put together at a time.
const copyPiece = 1 << 20

// end ends the reading of entries.
func (r *copyReader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
	r.ended = true
	r.buf.Reset()
}

func (r *copyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
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

// Hold calls fn with a snapshot of the newest state, and lets nobody commit until it returns. Of a DB that
// only reads, where nothing can be locked or the user may not, it lets others commit.
func (db *DB) Hold(ctx context.Context, fn func(*Snapshot) error) error {
	s := &Snapshot{db: db, ctx: ctx, pool: &db.writers}
	err := db.with(ctx, s.pool, func(c *conn) (keep bool, err error) {
		err = c.lock()
		if db.onlyReads(err) || db.options.Standby && sqlState(err) == "42501" {
			c.rollback()
			_, err = c.trip().add(sqlLook).run()
		}
		if err != nil {
			c.rollback()
			return false, err
		}
		s.conn = c
		return true, nil
	})
	if err != nil {
		return err
	}
	defer s.Close()
	return fn(s)
}
