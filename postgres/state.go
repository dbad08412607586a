package postgres

import (
	"context"
	"iter"
)

// A State reads one state of the database: values that are known, and others from a snapshot. It
// is used by one goroutine, and only until the function it was given to returns.
type State struct {
	db    *DB
	head  Head   // the commit after which the state is; zero: that of the snapshot, once it is read
	epoch uint64 // of the chain
	seen  bool   // something was read as of head
	moved bool   // others or this process have committed, and the snapshot is not of head
	snap  *Snapshot
}

// View runs fn with a state of between its call and fn's first read. fn may run twice.
func (db *DB) View(ctx context.Context, fn func(*State) error) error {
	if ctx.Value(caughtUp{}) == nil {
		if err := db.CatchUp(ctx); err != nil {
			return err
		}
	}
	moved, err := db.look(ctx, fn)
	if moved { // what is not known comes from a snapshot: its state is the one to read, from the beginning
		return db.ViewOnce(ctx, fn)
	}
	return err
}

// look runs fn with the last state that is known, and reports whether that could not be read to
// the end.
func (db *DB) look(ctx context.Context, fn func(*State) error) (moved bool, err error) {
	s := &State{db: db, snap: db.snapshot(ctx)}
	defer s.snap.Close()
	s.head, s.epoch = db.chain.now()
	err = fn(s)
	return s.moved, err
}

// ViewOnce runs fn once, with a state of after its call, from a snapshot.
func (db *DB) ViewOnce(ctx context.Context, fn func(*State) error) error {
	s := &State{db: db, snap: db.snapshot(ctx)}
	defer s.snap.Close()
	if err := s.sees(); err != nil {
		return err
	}
	return fn(s)
}

// errMoved ends the first run of a View.
const errMoved = failure("the state has moved on")

// sees compares the snapshot, of which something was read, with the state.
func (s *State) sees() error {
	h, err := s.snap.Head()
	if err != nil || h.Is(s.head) {
		return err
	}
	if s.seen {
		s.moved = true
		return errMoved
	}
	s.db.chain.learn(s.snap.seen)
	// Values are of use where nobody has committed since, or only this process.
	s.head, s.epoch = h, s.db.chain.epochOf(h)
	return nil
}

// Get returns the value of a key; ok is false where there is none. The caller does not change it.
func (s *State) Get(key []byte) (value []byte, ok bool, err error) {
	if s.moved {
		return nil, false, errMoved
	}
	if value, known := s.db.chain.get(key, s.head.N, s.epoch); known {
		s.seen = true
		return value, value != nil, nil
	}
	if value, ok, err = s.snap.Get(key); err == nil {
		err = s.sees()
	}
	if err != nil {
		return nil, false, err
	}
	s.seen = true
	s.db.chain.keep(key, value, s.head)
	return value, ok, nil
}

// Scan is Snapshot.Scan.
func (s *State) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if s.moved {
			yield(Entry{}, errMoved)
			return
		}
		checked := false
		for e, err := range s.snap.Scan(lo, hi, reverse) {
			if err == nil && !checked {
				err, checked = s.sees(), true
			}
			if !yield(e, err) || err != nil {
				return
			}
			s.seen = true
		}
		if !checked {
			if err := s.sees(); err != nil {
				yield(Entry{}, err)
			}
		}
		s.seen = true
	}
}
