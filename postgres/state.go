package postgres

import (
	"context"
	"iter"
	"maps"
	"slices"
)

// A State reads one state of the database: values that are known, and others from a snapshot. It
// is used by one goroutine, and only until the function it was given to returns.
type State struct {
	db    *DB
	parts map[int32]*statePart
	moved bool // others or this process have committed, and what is left to read is not of the state
	asked bool // heads were asked for without a snapshot
	snap  *Snapshot
}

// A statePart is what a State reads of a part.
type statePart struct {
	head  Head   // the commit after which it is
	epoch uint64 // of the chain
	seen  bool   // something was read
}

// View runs fn with a state of between its call and fn's first read. fn may run twice.
func (db *DB) View(ctx context.Context, fn func(*State) error) error {
	known, caught := ctx.Value(caughtUp{}).(heads)
	if !caught {
		var err error
		if known, err = db.heads(ctx); err != nil { // OnOthers tells before fn runs
			return err
		}
	}
	moved, err := db.look(ctx, known, fn)
	if moved { // what is not known comes from a snapshot: its state is the one to read, from the beginning
		return db.ViewOnce(ctx, fn)
	}
	return err
}

// look runs fn with a state that is known in some parts, and reports whether that could not be read
// to the end.
func (db *DB) look(ctx context.Context, known heads, fn func(*State) error) (moved bool, err error) {
	s := db.state(ctx)
	defer s.snap.Close()
	s.take(known)
	err = fn(s)
	return s.moved, err
}

// ViewOnce runs fn once, with a state of after its call, from a snapshot.
func (db *DB) ViewOnce(ctx context.Context, fn func(*State) error) error {
	s := db.state(ctx)
	defer s.snap.Close()
	if err := s.sees(s.snap.ask([]int32{Common}, func(*trip) {}, func([]row) {})); err != nil {
		return err
	}
	return fn(s)
}

func (db *DB) state(ctx context.Context) *State {
	return &State{db: db, parts: map[int32]*statePart{}, snap: db.snapshot(ctx)}
}

// errMoved ends the first run of a View.
const errMoved = failure("the state has moved on")

// take has the state be as of heads, which are all of one moment. It fails if something else was
// read.
func (s *State) take(now heads) error {
	for n, head := range now {
		p := s.parts[n]
		switch {
		case p != nil && p.head.Is(head):
		case p != nil && p.seen:
			s.moved = true
			return errMoved
		default:
			// Values are of use where nobody has committed since, or only this process.
			s.parts[n] = &statePart{head: head, epoch: s.db.chain.epochOf(n, head)}
		}
	}
	return nil
}

// sees has the state be that of the snapshot, of which something was read. err is that of the read.
func (s *State) sees(err error) error {
	if err != nil {
		return err
	}
	if len(s.snap.news) == 0 {
		return nil
	}
	news := make(map[int32]*sight, len(s.snap.news))
	for _, n := range s.snap.news {
		news[n] = s.snap.seen[n]
	}
	s.snap.news = s.snap.news[:0]
	if landed := s.db.chain.learn(news, false); landed != nil {
		if err := await(landed); err != nil { // who reads what is known must not read less then
			s.snap.err = err // nor go on with what Warm has read
			return err
		}
	}
	return s.take(headsOf(news))
}

// with returns some parts, and those that the state has if they were not compared with the snapshot.
func (s *State) with(parts ...int32) []int32 {
	if s.snap.conn != nil {
		return parts
	}
	return slices.AppendSeq(parts, maps.Keys(s.parts))
}

// ask asks for the heads of other parts, if values of keys are known there. It does so once: where
// there are many parts, a snapshot asks for each.
func (s *State) ask(keys ...[]byte) error {
	if s.snap.conn != nil || s.asked {
		return nil
	}
	var others []int32
	for _, key := range keys {
		if n := s.db.parts.PartOf(key); s.parts[n] == nil && s.db.chain.has(n, key) {
			others = append(others, n)
		}
	}
	if others == nil {
		return nil
	}
	s.asked = true
	now, err := s.db.heads(s.snap.ctx, s.with(others...)...)
	if err == nil {
		err = s.take(now)
	}
	return err
}

// Get returns the value of a key; ok is false where there is none. The caller does not change it.
func (s *State) Get(key []byte) (value []byte, ok bool, err error) {
	if s.moved {
		return nil, false, errMoved
	}
	n := s.db.parts.PartOf(key)
	if err := s.ask(key); err != nil {
		return nil, false, err
	}
	if p := s.parts[n]; p != nil {
		if value, known := s.db.chain.get(n, key, p.head.N, p.epoch); known {
			p.seen = true
			return value, value != nil, nil
		}
	}
	value, ok, err = s.snap.get(key, s.with(n)...)
	if err = s.sees(err); err != nil {
		return nil, false, err
	}
	p := s.parts[n]
	p.seen = true
	s.db.chain.keep(n, key, value, p.head)
	return value, ok, nil
}

// Warm reads keys that Get will be asked for.
func (s *State) Warm(keys [][]byte) {
	if s.moved {
		return
	}
	if s.ask(keys...) != nil {
		return // Get will say it
	}
	var missing [][]byte
	parts := s.with()
	for _, key := range keys {
		n := s.db.parts.PartOf(key)
		if p := s.parts[n]; p != nil {
			if _, known := s.db.chain.get(n, key, p.head.N, p.epoch); known {
				continue
			}
		}
		missing, parts = append(missing, key), append(parts, n)
	}
	if len(missing) > 1 {
		s.sees(s.snap.warm(missing, parts))
	}
}

// Scan is Snapshot.Scan.
func (s *State) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if s.moved {
			yield(Entry{}, errMoved)
			return
		}
		parts := s.db.partsOf(lo, hi)
		s.snap.scan(lo, hi, reverse, s.with(parts...), func(err error) error {
			if err = s.sees(err); err == nil {
				for _, n := range parts {
					s.parts[n].seen = true
				}
			}
			return err
		})(yield)
	}
}
