package postgres

import (
	"context"
	"iter"
)

// A Turn reads the state that a commit builds on. It ends with one call of Commit or Close.
type Turn struct {
	db    *DB
	base  Head     // the last commit when the turn began
	epoch uint64   // of the chain
	after [16]byte // id of the commit that was under way then; zero: there was none
	id    [16]byte // of this one's commit
	snap  *Snapshot
	err   error // why nothing that was read counts; nil: it does
}

// Begin begins a turn. after, if not nil, is the turn before, which is being committed: what it
// changes is to be laid over what this one reads. Only one goroutine begins turns. Between two
// calls it may have run functions on what others have changed since, so OnOthers tells of that
// here once more. It fails with ErrTurnLost if others have committed since the turn before began:
// whether that is stored is not known yet, and the state may have it already.
func (db *DB) Begin(after *Turn) (*Turn, error) {
	head, epoch, err := db.last()
	if err != nil {
		return nil, err
	}
	if after != nil && after.epoch != epoch {
		return nil, ErrTurnLost
	}
	if epoch != db.turnEpoch {
		db.turnEpoch = epoch
		db.chain.others(false)
	}
	t := &Turn{db: db, base: head, epoch: epoch, id: newID(), snap: db.committerSnapshot()}
	if after != nil {
		t.after = after.id
	}
	return t, nil
}

// Close ends a turn without a commit.
func (t *Turn) Close() { t.snap.Close() }

// buildsOn reports whether a state is one that the turn can read.
func (t *Turn) buildsOn(head Head) bool {
	return head.Is(t.base) || t.after != [16]byte{} && head.ID == t.after
}

// sees fails unless the snapshot, of which something was read, is one that the turn can read.
func (t *Turn) sees() error {
	if t.err == nil {
		head, err := t.snap.Head()
		switch {
		case err != nil:
			if t.err = err; t.snap.conn == nil { // else its connection was lost, and another one may do
				t.db.chain.silent(err)
			}
		case !t.buildsOn(head):
			t.err = ErrTurnLost
		}
	}
	return t.err
}

// Get returns the value of a key; ok is false where there is none. The caller does not change it.
func (t *Turn) Get(key []byte) (value []byte, ok bool, err error) {
	if t.err != nil {
		return nil, false, t.err
	}
	if value, known := t.db.chain.get(key, t.db.chain.lastNumber(), t.epoch); known {
		return value, value != nil, nil
	}
	value, ok, err = t.snap.Get(key)
	if failed := t.sees(); failed != nil {
		err = failed
	}
	if err != nil {
		return nil, false, err
	}
	head, _ := t.snap.Head()
	t.db.chain.keep(key, value, head)
	return value, ok, nil
}

// Scan is Snapshot.Scan.
func (t *Turn) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := t.sees(); err != nil { // an overlay reads on while its base yields: it is to be checked before
			yield(Entry{}, err)
			return
		}
		t.snap.Scan(lo, hi, reverse)(yield)
	}
}

// Check fails with ErrTurnLost unless everything that the turn has read is still true.
func (t *Turn) Check() error {
	if t.err == nil {
		head, err := t.db.Head(context.Background())
		if err == nil && t.db.chain.inDoubt() {
			err = t.db.barrier(context.Background())
		}
		switch {
		case err != nil:
			return t.db.chain.silent(err)
		case !t.buildsOn(head):
			t.err = ErrTurnLost
		}
	}
	if t.err == ErrTurnLost {
		t.db.chain.notStored(t.err)
	}
	return t.err
}

// Commit stores changes on top of what was read. Settings says that readers are to see another
// Head.Settings.
//
// It fails with ErrTurnLost if others have committed since the turn began, and with
// ErrUnavailable if nothing was stored for another reason that may pass. After ErrUnknown or any
// other error nobody knows whether the changes were stored.
func (t *Turn) Commit(settings bool, changes []Change) error {
	t.snap.Close()
	if t.err != nil {
		t.db.chain.notStored(t.err)
		return t.err
	}
	at, epoch := t.db.chain.now()
	if epoch != t.epoch || !t.buildsOn(at) {
		t.db.chain.notStored(ErrTurnLost)
		return ErrTurnLost
	}
	t.db.chain.sending(t.id)
	next, err := t.db.commit(at, t.id, settings, changes)
	if err != nil {
		t.db.chain.notStored(err)
		return t.db.chain.silent(err)
	}
	t.db.chain.stored(next, epoch, changes)
	if next.N%trimEvery == 0 {
		go t.db.trim(next) // or the next time
	}
	return nil
}
