package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A sharedMem is a memStore that several servers share, as they would share a database.
type sharedMem struct {
	store   Store
	mu      sync.RWMutex // locked while an Update runs, read-locked while a View takes its state
	commits []sharedCommits
	parts   map[int32]bool // that anybody has written to; changed while an Update runs
	open    int            // servers that are not closed

	leasing sync.Mutex
	leases  map[string]memLease
	clock   time.Duration // of the leases
}

// sharedCommits counts what one server has committed.
type sharedCommits struct{ all, ofSettings int }

type memLease struct {
	server int
	until  time.Duration
}

// A memServer is one server's Store of a sharedMem.
type memServer struct {
	*sharedMem
	server  int
	others  func(part int32, settings bool)
	failure chan error   // of giveUp
	ahead   atomic.Int64 // of clockAhead
	looking sync.Mutex
	seen    sharedCommits // of all other servers
	closed  bool          // guarded by sharedMem.mu
}

// newSharedMem returns the stores of n servers that share one database. Each is a sharedStore,
// and a *memServer.
func newSharedMem(n int) []Store {
	db := &sharedMem{store: newMemStore(), commits: make([]sharedCommits, n), parts: map[int32]bool{}, open: n, leases: map[string]memLease{}}
	var list []Store
	for i := range n {
		list = append(list, &memServer{sharedMem: db, server: i, others: func(int32, bool) {}, failure: make(chan error, 9)})
	}
	return list
}

func (s *memServer) onOthers(others func(part int32, settings bool)) { s.others = others }

func (s *memServer) clockAhead() time.Duration { return time.Duration(s.ahead.Load()) }

func (s *memServer) giveUp(err error) { s.failure <- err }

var _, _, _ sharedStore = (*memServer)(nil), (*mortal)(nil), (*frozenServer)(nil)

// look tells of what others have committed. The caller has locked mu, at least for reading: it
// sees just what this tells of.
func (s *memServer) look() error {
	if s.closed {
		return errClosed
	}
	s.looking.Lock()
	defer s.looking.Unlock()
	var now sharedCommits
	for i, c := range s.commits {
		if i != s.server {
			now.all += c.all
			now.ofSettings += c.ofSettings
		}
	}
	if before := s.seen; now != before {
		s.seen = now
		for part := range s.parts {
			s.others(part, now.ofSettings != before.ofSettings)
		}
	}
	return nil
}

func (s *memServer) catchUp(ctx context.Context, _ ...int32) (context.Context, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return ctx, s.look()
}

func (s *memServer) View(ctx context.Context, fn func(Tx) error) error {
	s.mu.RLock()
	unlock := sync.OnceFunc(s.mu.RUnlock) // a View holds up no Update
	defer unlock()
	if err := s.look(); err != nil {
		return err
	}
	return s.store.View(ctx, func(tx Tx) error {
		unlock()
		return fn(tx)
	})
}

func (s *memServer) Update(ctx context.Context, fn func(Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.look(); err != nil {
		return err
	}
	wrote, err := updateStore(ctx, s.store, func(tx Tx) (sharedCommits, error) {
		used := &partedTx{Tx: tx, used: map[int32]bool{}}
		noted := &notedTx{Tx: used, parts: s.parts}
		err := fn(noted)
		if used.check(); len(used.organizations()) > 1 {
			panic(fmt.Sprintf("an Update of one of several servers uses the organizations %v", used.organizations()))
		}
		return noted.wrote, err
	})
	s.commits[s.server].all += min(wrote.all, 1)
	s.commits[s.server].ofSettings += min(wrote.ofSettings, 1)
	return err
}

// Close closes this server's store, and the database after the last one's.
func (s *memServer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.open--; s.open > 0 {
		return nil
	}
	return s.store.Close()
}

func (s *memServer) takeLease(_ context.Context, name string) (bool, error) {
	s.leasing.Lock()
	defer s.leasing.Unlock()
	if l, ok := s.leases[name]; ok && l.server != s.server && l.until > s.clock {
		return false, nil
	}
	s.leases[name] = memLease{s.server, s.clock + 10*time.Second}
	return true, nil
}

// holder is the server that has taken a lease; -1 if it was given back, or never taken.
func (s *sharedMem) holder(name string) int {
	s.leasing.Lock()
	defer s.leasing.Unlock()
	if l, is := s.leases[name]; is {
		return l.server
	}
	return -1
}

func (s *memServer) dropLease(_ context.Context, name string) error {
	s.leasing.Lock()
	defer s.leasing.Unlock()
	if s.leases[name].server == s.server {
		delete(s.leases, name)
	}
	return nil
}

// pass moves the clock of the leases of all servers.
func (s *memServer) pass(d time.Duration) {
	s.leasing.Lock()
	defer s.leasing.Unlock()
	s.clock += d
}

// A notedTx counts what is written.
type notedTx struct {
	Tx
	wrote sharedCommits
	parts map[int32]bool
}

func (t *notedTx) note(key []byte) {
	t.parts[partition{}.PartOf(key)] = true
	t.wrote.all++
	if isSetting(key) {
		t.wrote.ofSettings++
	}
}

func (t *notedTx) Put(key, value []byte) error {
	t.note(key)
	return t.Tx.Put(key, value)
}

func (t *notedTx) Delete(key []byte) error {
	t.note(key)
	return t.Tx.Delete(key)
}

// TestSharedMem: a server hears of what another one wrote before it sees it, and of its own
// writes never. Leases are one server's, and end.
func TestSharedMem(t *testing.T) {
	t.Parallel()
	ctx, stores := t.Context(), newSharedMem(2)
	a, b := stores[0].(*memServer), stores[1].(*memServer)
	var heard []bool
	a.onOthers(func(_ int32, settings bool) { heard = append(heard, settings) })
	expect := func(reason string, want ...bool) {
		t.Helper()
		if len(heard) != len(want) || len(want) > 0 && heard[0] != want[0] {
			t.Errorf("%s: heard %v, want %v", reason, heard, want)
		}
		heard = nil
	}
	put := func(s Store, key string) {
		t.Helper()
		if err := s.Update(ctx, func(tx Tx) error { return tx.Put([]byte(key), nil) }); err != nil {
			t.Fatal(err)
		}
	}
	setting := settingLetters[:1]
	put(a, setting)
	put(b, "\x00")
	put(b, setting)
	put(b, "\x00")
	expect("before a looks")
	for range 2 { // the second time there is nothing new
		if err := a.View(ctx, func(tx Tx) error {
			_, ok, err := tx.Get([]byte("\x00"))
			if !ok {
				t.Error("what b wrote is not there")
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	expect("a View", true)
	put(b, "\x00")
	if _, err := a.catchUp(ctx); err != nil {
		t.Fatal(err)
	}
	expect("catchUp", false)
	put(b, setting)
	put(a, "\x00")
	expect("an Update", true)

	take := func(s *memServer, want bool) {
		t.Helper()
		if mine, err := s.takeLease(ctx, "x"); mine != want || err != nil {
			t.Errorf("server %d takes a lease: %t, %v", s.server, mine, err)
		}
	}
	take(a, true)
	take(b, false)
	b.dropLease(ctx, "x")
	a.pass(9 * time.Second)
	take(a, true)
	a.pass(9 * time.Second)
	take(b, false)
	a.pass(time.Second)
	take(b, true)
	b.dropLease(ctx, "x")
	take(a, true)
	if a.Close(); a.View(ctx, nil) != errClosed {
		t.Error("a closed store reads")
	}
	put(b, "\x00")
	b.Close()
}
