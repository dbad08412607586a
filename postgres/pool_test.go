package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/postgres/pgtest"
)

// openFew opens a database, with 32 connections, as a role that may have fewer. told counts what
// Fewer was told.
func openFew(t *testing.T, cluster *pgtest.Cluster, limit int) (db *DB, dsn string, told *atomic.Int32) {
	t.Helper()
	cluster.Exec(fmt.Sprintf("CREATE ROLE few LOGIN PASSWORD 'few' CONNECTION LIMIT %d; CREATE SCHEMA few AUTHORIZATION few", limit))
	dsn = fmt.Sprintf("postgres://few:few@127.0.0.1:%d/postgres?sslmode=disable", cluster.Port())
	told = new(atomic.Int32)
	db, err := Open(t.Context(), dsn, Options{Conns: 32, Create: true, Name: "sello", Fewer: func(has, may int) {
		if told.Add(1); has < 1 || has > limit || may != 32 {
			t.Errorf("it has %d, and may have %d", has, may)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, dsn, told
}

// readNew reads a key that is not known yet, over a connection of its own.
func readNew(ctx context.Context, db *DB, key string) error {
	return db.View(ctx, func(s *State) error {
		_, _, err := s.Get([]byte(key))
		return err
	})
}

// holdReaders has so many readers hold a connection, or wait for one, until release.
func holdReaders(t *testing.T, db *DB, n int) (release func()) {
	t.Helper()
	stop := make(chan bool)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // of the wait for a connection
	var readers, begun sync.WaitGroup
	begun.Add(n)
	for range n {
		readers.Go(func() {
			began := sync.OnceFunc(begun.Done)
			defer began()
			db.ViewOnce(ctx, func(*State) error { // the others wait in vain
				began()
				<-stop
				return nil
			})
		})
	}
	begun.Wait()
	release = sync.OnceFunc(func() {
		close(stop)
		readers.Wait()
		cancel()
	})
	t.Cleanup(release)
	return release
}

// TestFewConnections: the database gives fewer connections than there may be. Nobody fails, with
// many who read and one who commits, also after the connections for commits were lost while
// readers have all others. A command finds a connection.
func TestFewConnections(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{6, 12, 20} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			cluster := pgtest.Start(t)
			db, dsn, told := openFew(t, cluster, limit)
			var all sync.WaitGroup
			for r := range 16 {
				all.Go(func() {
					for i := range 20 {
						if err := readNew(t.Context(), db, fmt.Sprint("r", r, ".", i)); err != nil {
							t.Errorf("a read: %v", err)
							return
						}
					}
				})
			}
			for i := range 50 {
				if err := act(db, "a", Commit{}, "a", fmt.Sprint(i)); err != nil {
					t.Errorf("a commit beside reads: %v", err)
				}
			}
			all.Wait()

			release := holdReaders(t, db, 40)
			for i := range 10 {
				if n := cluster.Terminate("usename = 'few' AND state = 'idle'"); n == 0 {
					t.Error("no connection was kept for commits")
				}
				if err := act(db, "a", Commit{}, "a", fmt.Sprint("killed ", i)); err != nil {
					t.Errorf("a commit after its connections were ended: %v", err)
				}
			}
			command, err := Open(t.Context(), dsn, Options{Conns: 5, Name: "command"})
			if err != nil {
				t.Fatalf("a command: %v", err)
			}
			defer command.Close()
			if err := readNew(t.Context(), command, "a"); err != nil {
				t.Errorf("a command reads: %v", err)
			}
			if err := actAgain(command, Commit{}, "a", "command"); err != nil {
				t.Errorf("a command commits: %v", err)
			}
			release()
			if n := told.Load(); n != 1 {
				t.Errorf("told %d times", n)
			}
		})
	}
}

// TestFewerTold: there are as many connections as there may be once the database gives them, and
// what is said of a want is said again for the next one.
func TestFewerTold(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes 15 seconds")
	}
	cluster := pgtest.Start(t)
	db, _, told := openFew(t, cluster, 12)
	for want := range int32(2) {
		for told.Load() == want {
			holdReaders(t, db, 32)()
		}
		cluster.Exec("ALTER ROLE few CONNECTION LIMIT -1")
		for full := false; !full; {
			holdReaders(t, db, 40)()
			db.conns.mu.Lock()
			full = db.conns.room == db.conns.size
			db.conns.mu.Unlock()
		}
		if n := told.Load(); n != want+1 {
			t.Fatalf("told %d times, want %d", n, want+1)
		}
		cluster.Exec("ALTER ROLE few CONNECTION LIMIT 12")
		cluster.Terminate("usename = 'few'")
	}
}

// TestNoConnections: where there is no connection at all, it is said so after a while.
func TestNoConnections(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	db, dsn, _ := openFew(t, cluster, 4)
	cluster.Exec("ALTER ROLE few CONNECTION LIMIT 0")
	cluster.Terminate("usename = 'few'")
	if err := readNew(t.Context(), db, "a"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a read: %v", err)
	}
	opened := make(chan error, 1)
	go func() {
		late, err := Open(context.Background(), dsn, Options{Conns: 5, Name: "late"})
		if err == nil {
			err = errors.Join(readNew(context.Background(), late, "a"), late.Close())
		}
		opened <- err
	}()
	time.Sleep(200 * time.Millisecond) // it waits by then
	cluster.Exec("ALTER ROLE few CONNECTION LIMIT 4")
	if err := <-opened; err != nil {
		t.Errorf("who has waited for room: %v", err)
	}
	if err := act(db, "a", Commit{}, "a", "1"); err != nil {
		t.Errorf("a commit once there is room: %v", err)
	}
}

// TestFull: what a database and poolers say when there are too many connections.
func TestFull(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"FATAL: sorry, too many clients already (SQLSTATE 53300)":                                                        true,
		"FATAL: no more connections allowed (max_client_conn) (SQLSTATE 08P01)":                                          true,
		`FATAL: server login has been failing, try again later: too many connections for role "sello" (SQLSTATE 08P01)`:  true,
		"FATAL: MaxClientsInSessionMode: max clients reached - in Session mode max clients are limited (SQLSTATE XX000)": true,
		"dial tcp 127.0.0.1:5432: connect: connection refused":                                                           false,
		`FATAL: password authentication failed for user "sello" (SQLSTATE 28P01)`:                                        false,
	} {
		if got := isFull(errors.New(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
