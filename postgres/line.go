package postgres

import "context"

// A server that has lost a turn has to read again what the other one has changed. Meanwhile that one,
// which knows its own state, commits again: without an order it could go on so for long. So each commit
// waits for its place in the line of its parts, advisory locks, which PostgreSQL gives in the order that
// they were asked for. Whoever has lost a turn asks for the place before it reads, and keeps it
// until its commit. That costs a message where turns were lost, and nothing else does. Only the
// order rests on it: a place that is lost, or is of another part, has a turn be lost once more.

// lose notes the part that a turn was lost in, and returns ErrTurnLost.
func (c *chain) lose(n int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line = &n
	return ErrTurnLost
}

// inLine returns the part to stand in line for before the next turn, and the last commit known of
// there; turns have to ask whether that still is the last one. ok is false if there is none.
func (c *chain) inLine() (n int32, last Head, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line == nil || c.parts[*c.line] == nil || c.down != nil {
		return 0, last, false
	}
	p := c.parts[*c.line]
	c.ask(*c.line, p)
	return *c.line, p.head, true
}

// alone has the next turn not stand in line if nobody has committed in the part since.
func (c *chain) alone(n int32, last Head) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.parts[n]; p != nil && p.head.Is(last) {
		c.line = nil
	}
}

// stand waits for the place in the line of a part. It returns the connection that has it, in a
// transaction; nil if there is none, or no other one to read over meanwhile.
func (db *DB) stand(n int32) *conn {
	if !db.conns.forTwo() {
		return nil
	}
	c, err := db.writers.take(context.Background())
	if err != nil {
		return nil
	}
	if _, err = c.trip().add(sqlBegin).add(sqlPatience).add(sqlHurry).add(sqlLine, array(typeInt4, [][]byte{int4(n)})).run(); err != nil {
		c.rollback()
		db.writers.give(c, err)
		db.free(err)
		return nil
	}
	return c
}

// leaveLine gives the place up, if the turn has one.
func (t *Turn) leaveLine() {
	if t.place != nil {
		t.place.rollback()
		t.db.writers.give(t.place, nil)
		t.place = nil
	}
}
