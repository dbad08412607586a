package postgres

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Turn reads the state that a commit builds on. It ends with one call of Commit or Close.
type Turn struct {
	db     *DB
	id     [16]byte // of its commit
	began  uint64   // the last epoch of the chain when the turn began
	bases  *bases   // what it builds on, in the parts that it has used
	before *before  // the turn that was being committed when this one began; nil: there was none
	snap   *Snapshot
	all    heads // the heads of all parts, in a state that was read across them; nil: none was
	err    error // why nothing that was read counts; nil: it does
	place  *conn // has the place in a line; nil: there is none
}

// A base is the last commit of a part when a turn first used it.
type base struct {
	Head
	epoch uint64
}

// bases are those of a turn, by part. The turn after it looks at them while it is being committed.
type bases struct {
	mu sync.Mutex
	of map[int32]base
}

// in returns what the turn builds on in a part; used is false if it has not used it.
func (b *bases) in(n int32) (in base, used bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in, used = b.of[n]
	return in, used
}

func (b *bases) add(n int32, in base) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[int32]base{}
	}
	b.of[n] = in
}

// parts lists the parts that the turn has used.
func (b *bases) parts() []int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.of))
}

// before is what remains to be known of a turn that is being committed.
type before struct {
	id    [16]byte
	bases *bases
}

// Begin begins a turn. after, if not nil, is the turn before, which is being committed: what it
// changes is to be laid over what this one reads. Only one goroutine begins turns. Between two
// calls it may have run functions on what others have changed since, so OnOthers tells of that
// here once more. It fails with ErrTurnLost if others have committed in a part that the turn before
// uses: whether that is stored is not known yet, and the state may have it already. So it does where
// the next turn stands in line.
func (db *DB) Begin(after *Turn) (*Turn, error) {
	t := &Turn{db: db, id: newID(), bases: new(bases), snap: db.committerSnapshot()}
	n, last, line := db.chain.inLine()
	switch {
	case line && after != nil:
		return nil, ErrTurnLost
	case line:
		t.place = db.stand(n)
	case after != nil:
		t.before = &before{after.id, after.bases}
	}
	err := db.askForTurn()
	if err == nil {
		err = db.chain.begin(t)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	if line {
		db.chain.alone(n, last)
	}
	return t, nil
}

// askForTurn asks for the heads that turns do not build on before they are asked for.
func (db *DB) askForTurn() error {
	to, down, doubts := db.chain.toAsk()
	if down != nil || len(to) == 0 {
		return down
	}
	_, err := db.heads(context.Background(), to...) // learns them
	if err == nil && doubts {                       // one may not be safe yet
		err = db.barrier(context.Background())
	}
	return db.chain.silent(err)
}

// toAsk returns the parts to ask for before a turn begins, and why that cannot be done now.
func (c *chain) toAsk() (parts []int32, down error, doubts bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.down != nil && time.Since(c.downAt) < downTime {
		return nil, c.down, false
	}
	return slices.Collect(maps.Keys(c.to)), nil, c.doubts
}

// begin notes that a turn begins.
func (c *chain) begin(t *Turn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.began = c.epochs
	for n := range c.moved {
		c.others(n, false)
	}
	clear(c.moved)
	if t.before != nil {
		for _, n := range t.before.bases.parts() {
			if b, _ := t.before.bases.in(n); c.parts[n] == nil || c.parts[n].epoch != b.epoch {
				c.line = &n
				return ErrTurnLost
			}
		}
	}
	return nil
}

// base returns what a turn builds on in a part. It is not known before something was read there, or
// its head was asked for. It fails with ErrTurnLost if others have committed there since the turn
// began, or changed settings anywhere: functions may have used what the caller keeps.
func (c *chain) base(n int32, t *Turn) (b base, known bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settings > t.began {
		return b, false, ErrTurnLost
	}
	p := c.parts[n]
	if p == nil {
		return b, false, nil
	}
	p.turns = true
	if !p.asked {
		c.ask(n, p)
	}
	if t.before != nil {
		if earlier, used := t.before.bases.in(n); used && earlier.epoch != p.epoch {
			return b, false, ErrTurnLost
		}
	}
	if !p.asked || p.changed > t.began {
		c.line = &n
		return b, false, ErrTurnLost
	}
	return base{p.head, p.epoch}, true, nil
}

// Close ends a turn without a commit.
func (t *Turn) Close() {
	t.snap.Close()
	t.leaveLine()
}

// base notes that the turn uses a part, if that is known.
func (t *Turn) base(n int32) (b base, known bool) {
	if b, known = t.bases.in(n); known || t.err != nil {
		return b, known
	}
	if b, known, t.err = t.db.chain.base(n, t); known {
		t.bases.add(n, b)
	}
	return b, known
}

// asked returns a part with those to ask for when something is read there. Of a part that nothing is
// known of, a turn sees whether settings have changed by the common one.
func (t *Turn) asked(n int32) []int32 {
	if _, known := t.base(n); known {
		return []int32{n}
	}
	return []int32{n, Common}
}

// reads reports whether a state of a part is one that the turn can read: what it builds on, or that
// without the turn before.
func (t *Turn) reads(n int32, head Head) bool {
	if b, used := t.bases.in(n); used && head.Is(b.Head) {
		return true
	}
	earlier, used := t.earlier(n)
	return used && (head.Is(earlier.Head) || head.ID == t.before.id)
}

// earlier returns what the turn before builds on in a part.
func (t *Turn) earlier(n int32) (b base, used bool) {
	if t.before == nil {
		return b, false
	}
	return t.before.bases.in(n)
}

// sees fails unless the snapshot, of which something was read in some parts, is one that the turn
// can read. err is that of the read.
func (t *Turn) sees(err error, parts ...int32) error {
	switch {
	case t.err != nil:
		return t.err
	case errors.Is(err, ErrUnavailable) && t.snap.conn != nil: // its connection was lost, and another one may do
		t.err = ErrTurnLost
		return t.err
	case err != nil:
		t.err = err
		return t.db.chain.silent(err)
	}
	for _, n := range parts {
		if _, known := t.base(n); !known && t.err == nil {
			t.db.chain.learn(map[int32]*sight{n: t.snap.seen[n], Common: t.snap.seen[Common]}, false)
			t.base(n)
		}
		if t.err == nil && !t.reads(n, t.snap.seen[n].Head) {
			t.err = t.db.chain.lose(n)
		}
	}
	return t.err
}

// Get returns the value of a key; ok is false where there is none. The caller does not change it.
func (t *Turn) Get(key []byte) (value []byte, ok bool, err error) {
	n := t.db.parts.PartOf(key)
	b, known := t.base(n)
	if t.err != nil {
		return nil, false, t.err
	}
	if known {
		if kept, there := t.db.chain.get(n, key, last, b.epoch); there {
			return kept, kept != nil, nil
		}
	}
	value, ok, err = t.snap.get(key, t.asked(n)...)
	if err = t.sees(err, n); err != nil {
		return nil, false, err
	}
	t.db.chain.keep(n, key, value, t.snap.seen[n].Head)
	return value, ok, nil
}

// Warm reads keys that Get will be asked for.
func (t *Turn) Warm(keys [][]byte) {
	var missing [][]byte
	var parts []int32
	for _, key := range keys {
		n := t.db.parts.PartOf(key)
		if b, known := t.base(n); known {
			if _, known := t.db.chain.get(n, key, last, b.epoch); known {
				continue
			}
		}
		missing, parts = append(missing, key), append(parts, n)
	}
	if len(missing) > 1 && t.err == nil {
		t.sees(t.snap.warm(missing, append(parts[:len(parts):len(parts)], Common)), parts...)
	}
}

// Scan is Snapshot.Scan. A range of several parts takes the turn in all of them.
func (t *Turn) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		parts := t.db.partsOf(lo, hi)
		var ask []int32
		if parts != nil {
			ask = t.asked(parts[0])
		}
		if t.err == nil && parts == nil && t.all == nil {
			all, err := t.snap.allHeads()
			if t.sees(err, Common) == nil {
				t.all = all
			}
		}
		if t.err != nil {
			yield(Entry{}, t.err)
			return
		}
		// An overlay reads on while its base yields: what was read is to be checked before.
		t.snap.scan(lo, hi, reverse, ask, func(err error) error { return t.sees(err, parts...) })(yield)
	}
}

// Check fails with ErrTurnLost unless everything that the turn has read is still true.
func (t *Turn) Check() error {
	if t.err == nil && (len(t.bases.parts()) > 0 || t.all != nil) {
		now, err := t.headsNow()
		if err == nil && t.db.chain.inDoubt() {
			err = t.db.barrier(context.Background())
		}
		if err != nil {
			return t.db.chain.silent(err)
		}
		if !t.stands(now) {
			t.err = ErrTurnLost
		}
	}
	if t.err == ErrTurnLost {
		t.db.chain.notStored(t.bases.parts(), t.err)
	}
	return t.err
}

// headsNow returns the heads of the parts that the turn has used.
func (t *Turn) headsNow() (now heads, err error) {
	if t.all == nil {
		return t.db.heads(context.Background(), t.bases.parts()...)
	}
	err = t.db.over(context.Background(), &t.db.writers, func(c *conn) (err error) {
		now, err = c.allHeads()
		return err
	})
	return now, err
}

// stands reports whether nobody else has committed in the parts that the turn has used.
func (t *Turn) stands(now heads) bool {
	for _, n := range t.bases.parts() {
		if !t.reads(n, now[n]) {
			return false
		}
	}
	if t.all == nil {
		return true
	}
	for n, head := range now {
		was := t.all[n]
		if earlier, used := t.earlier(n); !head.Is(was) && !(used && head.ID == t.before.id && was.Is(earlier.Head)) {
			return false
		}
	}
	return true
}

// A Commit says what is special about a commit. Its parts are those that the turn has read or
// changed.
type Commit struct {
	Settings bool // readers are to see another Head.Settings, in the common part too
	All      bool // the commit is one of all parts
}

// Commit stores changes on top of what was read.
//
// It fails with ErrTurnLost if others have committed in one of the parts since the turn began, and
// with ErrUnavailable if nothing was stored for another reason that may pass. After ErrUnknown or
// any other error nobody knows whether the changes were stored.
func (t *Turn) Commit(changes []Change, special Commit) error {
	t.snap.Close()
	defer t.leaveLine()
	w := &work{id: t.id, settings: special.Settings, changes: changes}
	if special.All || t.all != nil {
		w.all = t
		t.leaveLine()
	}
	if err := t.use(w); err != nil {
		t.db.chain.notStored(t.bases.parts(), err)
		return t.db.chain.silent(err)
	}
	w.place, t.place = t.place, nil
	t.db.chain.sending(t.id)
	if err := t.db.commit(w); err != nil {
		t.db.chain.notStored(t.bases.parts(), err)
		return t.db.chain.silent(err)
	}
	t.db.chain.stored(w)
	t.db.trim(w) // or the next time
	return nil
}

// use notes which parts are changed, and sets what the commit builds on: the last commits that are
// known.
func (t *Turn) use(w *work) error {
	var unknown []int32
	note := func(n int32) {
		if _, known := t.base(n); !known {
			unknown = append(unknown, n)
		}
	}
	var key []byte
	for _, c := range w.changes {
		key = append(key[:0], c.Key...)
		w.parts = append(w.parts, t.db.parts.PartOf(key))
		note(w.parts[len(w.parts)-1])
	}
	if w.settings || w.all != nil {
		note(Common)
	}
	if t.err == nil && len(unknown) > 0 { // written without a look
		if _, err := t.db.heads(context.Background(), unknown...); err != nil {
			return err
		}
		for _, n := range unknown {
			if _, known := t.base(n); !known && t.err == nil {
				t.err = ErrTurnLost // it was forgotten meanwhile
			}
		}
	}
	if t.err != nil {
		return t.err
	}
	parts := t.bases.parts()
	known := t.db.chain.known(parts)
	for _, n := range parts {
		b, _ := t.bases.in(n)
		if t.db.chain.epochOf(n, known[n]) != b.epoch || !t.reads(n, known[n]) {
			return t.db.chain.lose(n)
		}
		w.bases = append(w.bases, partHead{n, known[n]})
	}
	slices.SortFunc(w.bases, func(a, b partHead) int { return cmp.Compare(a.part, b.part) })
	return nil
}
