package postgres

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"sello/postgres/pgtest"
)

// fill puts entries 000000 to n-1 into a new database.
func fill(t *testing.T, n int) *DB {
	t.Helper()
	db := open(t, pgtest.DSN(t))
	if err := db.Fill(t.Context(), some(n), func(*Snapshot) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return db
}

// TestPageGets: a scan of many entries takes few messages, and gets near where it is take none,
// whether there is an entry or not, in both directions.
func TestPageGets(t *testing.T) {
	t.Parallel()
	const n = 10_000
	db := fill(t, n)
	for _, reverse := range []bool{false, true} {
		s := db.snapshot(t.Context())
		before, i := db.trips.Load(), 0
		for e, err := range s.Scan(nil, nil, reverse) {
			if err != nil {
				t.Fatal(err)
			}
			value, ok, err := s.Get(e.Key)
			if err != nil || !ok || string(value) != string(e.Value) {
				t.Fatalf("%s is %q, %v, %v beside the scan", e.Key, value, ok, err)
			}
			if between := append(slices.Clone(e.Key), 'x'); i%50 == 0 && s.page.has(between) {
				if _, ok, err := s.Get(between); ok || err != nil {
					t.Fatalf("%s is there: %v, %v", between, ok, err)
				}
			}
			i++
		}
		if trips := db.trips.Load() - before; i != n || trips > 16 {
			t.Errorf("reverse %v: %d entries in %d messages", reverse, i, trips)
		}
		s.Close()
	}
}

// TestReadAhead: while a scan reads ahead, its snapshot is asked for other things, ends other scans
// early and is closed.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	const n = 8000
	db := fill(t, n)
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
	s, i := db.snapshot(t.Context()), 0
	defer s.Close()
	for e, err := range s.Scan(nil, nil, false) {
		if err != nil || string(e.Key) != string(key(i)) {
			t.Fatalf("%s at %d, %v", e.Key, i, err)
		}
		switch far := (i + n/2) % n; {
		case i%500 == 100:
			if value, ok, err := s.Get(key(far)); err != nil || !ok || len(value) != far%300 {
				t.Fatalf("%d is of %d bytes, %v, %v", far, len(value), ok, err)
			}
		case i%500 == 200:
			s.Warm([][]byte{key(far), key(n + 1)})
		case i%500 == 300:
			at := n
			for e, err := range s.Scan(nil, key(n), true) {
				if at--; err != nil || string(e.Key) != string(key(at)) {
					t.Fatalf("%s at %d, %v", e.Key, at, err)
				}
				if at < n-700 { // another page is being read
					break
				}
			}
		}
		i++
	}
	if i != n {
		t.Errorf("%d entries", i)
	}
	for range 20 {
		s := db.snapshot(t.Context())
		i := 0
		for _, err := range s.Scan(nil, nil, false) {
			if err != nil {
				t.Fatal(err)
			}
			if i++; i > 500 {
				break
			}
		}
		s.Close()
		if _, err := db.heads(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAheadFails: a page that could not be read ahead fails what is read next, with its own error
// and not with that of a transaction that has failed.
func TestAheadFails(t *testing.T) {
	t.Parallel()
	db := fill(t, 1000)
	for name, read := range map[string]func(*Snapshot) error{
		"get":  func(s *Snapshot) error { _, _, err := s.Get([]byte("000900")); return err },
		"warm": func(s *Snapshot) error { return s.warm([][]byte{[]byte("000900")}, nil) },
		"scan": func(s *Snapshot) error {
			for _, err := range s.Scan(nil, nil, false) {
				return err
			}
			return nil
		},
	} {
		s := db.snapshot(t.Context())
		if _, _, err := s.Get([]byte("000001")); err != nil {
			t.Fatal(err)
		}
		canceled := s.conn.trip()
		canceled.batch.ExecParams(`SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(10)`, nil, nil, nil, nil)
		_, err := canceled.run()
		s.next = &page{done: make(chan error, 1)}
		s.next.done <- err
		if first, again := read(s), read(s); sqlState(first) != "57014" || !errors.Is(first, ErrUnavailable) || again != first {
			t.Errorf("%s: %v, then %v", name, first, again)
		}
		s.Close()
	}
}
