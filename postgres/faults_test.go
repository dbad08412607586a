package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sello/postgres/pgtest"
)

// TestStoppedInTurn: half of a server's commit arrives, the insert of its row among it, and nothing
// more; its connection stays. So it is when the server stops, or when something on the way keeps the
// connection. It cannot hold up the others for long.
func TestStoppedInTurn(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]pgtest.Point{"between messages": pgtest.Before, "inside a message": pgtest.Inside} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			db := open(t, dsn)
			first := head(t, db)
			proxy := pgtest.NewProxy(t, dsn, func(commit int) pgtest.Fault {
				if commit > 1 {
					return pgtest.Fault{}
				}
				return pgtest.Fault{At: at, End: pgtest.Hole}
			})
			stopped := open(t, proxy.DSN())
			done := make(chan error, 1)
			go func() {
				_, err := commitTo(stopped, first, newID(), false, changes("a", "stopped"))
				done <- err
			}()
			for proxy.Commits() == 0 {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(100 * time.Millisecond) // until the row is there
			began, refused := time.Now(), 0
			for {
				_, err := commitTo(db, first, newID(), false, changes("a", "1"))
				took := time.Since(began)
				if err == nil {
					t.Logf("stored after %v and %d refusals", took, refused)
					break
				}
				if refused++; !errors.Is(err, ErrUnavailable) {
					t.Fatal(err)
				}
				if took > 10*time.Second {
					t.Errorf("the others have waited for %v, and go on waiting: %v", took, err)
					proxy.Cut()
					break
				}
			}
			if err := <-done; err != ErrTurnLost {
				t.Errorf("the one that stopped: %v", err)
			}
			check(t, db, "a=1 ")
		})
	}
}

// TestTurnCut ends the session that a turn reads over. The turn is to be taken again.
func TestTurnCut(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	db := open(t, cluster.DSN())
	turn, err := db.Begin(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := turn.Get([]byte("a")); err != nil {
		t.Error(err)
	}
	cluster.Terminate("application_name = 'sello'")
	if _, _, err := turn.Get([]byte("b")); err != ErrTurnLost {
		t.Errorf("a turn reads over a session that was ended: %v", err)
	}
	turn.Close()
	if turn, err = db.Begin(nil); err != nil {
		t.Fatal(err)
	}
	if err := turn.Commit(changes("a", "1"), Commit{}); err != nil {
		t.Error(err)
	}
}

// TestHoldLong: who holds the turn may be silent for long. Others are told to come back.
func TestHoldLong(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, other := open(t, dsn), open(t, dsn)
	first := head(t, db)
	err := db.Hold(t.Context(), func(s *Snapshot) error {
		if _, err := commitTo(other, first, newID(), false, nil); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a commit while the turn is held: %v", err)
		}
		_, _, err := s.Get([]byte("a"))
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestStandbyWaitEnded ends the wait of a commit for a synchronous standby that is away. The commit
// is not acknowledged before the standby has it; then it is, once.
func TestStandbyWaitEnded(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cluster := pgtest.Start(t, "wal_retrieve_retry_interval=100ms")
			standby := cluster.Standby(t, true)
			direct := open(t, cluster.DSN())
			waiter := func(o Options) *DB {
				o.Name = "waiter"
				db, err := Open(t.Context(), cluster.DSN(), o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { db.Close() })
				return db
			}
			hasty, patient := waiter(Options{Patience: time.Second, Trip: time.Second}), waiter(Options{})
			follow := standby.Query("SHOW primary_conninfo")
			standby.Detach()
			type outcome struct {
				head Head
				err  error
			}
			last := head(t, direct)
			for _, back := range []bool{false, true} {
				db := hasty
				if back {
					db = patient
				}
				done := make(chan outcome, 1)
				key := fmt.Sprint("back ", back)
				id := newID()
				go func() {
					h, err := commitTo(db, last, id, false, changes(key, "1"))
					done <- outcome{h, err}
				}()
				waiting := "FROM pg_stat_activity WHERE application_name = 'waiter' AND wait_event = 'SyncRep' AND query = 'COMMIT'"
				for deadline := time.Now().Add(10 * time.Second); cluster.Query("SELECT count(*) "+waiting) == "0"; {
					if time.Now().After(deadline) {
						t.Fatal("no commit waits for the standby")
					}
				}
				cluster.Exec("SELECT " + how + "(pid) " + waiting)
				if back {
					standby.Set("primary_conninfo = '" + strings.ReplaceAll(follow, "'", "''") + "'")
				}
				got := <-done
				next := Head{last.N + 1, id, last.Settings}
				switch {
				case !back && !errors.Is(got.err, ErrUnknown):
					t.Errorf("while the standby is away: %v, %v", got.head, got.err)
				case back && (got.err != nil || !got.head.Is(next)):
					t.Errorf("with the standby: %v, %v", got.head, got.err)
				}
				if now := head(t, direct); !now.Is(next) {
					t.Fatalf("the head is %v, want %v", now, next)
				}
				last = next
			}
			if there := standby.Query("SELECT count(*) FROM sello_kv"); there != "2" {
				t.Errorf("the standby has %s entries", there)
			}
		})
	}
}

// TestStandbyAsked asks a standby, which may lack what is acknowledged. Only who says so reads it.
func TestStandbyAsked(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t)
	db := open(t, primary.DSN())
	if _, err := commitTo(db, head(t, db), newID(), false, changes("a", "1")); err != nil {
		t.Fatal(err)
	}
	standby := primary.Standby(t, false)
	if _, err := Open(t.Context(), standby.DSN(), Options{Create: true}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a server on a standby: %v", err)
	}
	if _, err := Open(t.Context(), standby.DSN(), Options{}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a command that writes, on a standby: %v", err)
	}
	read := func(command bool) (value string, err error) {
		db, err := Open(t.Context(), standby.DSN(), Options{Standby: true, Patience: 50 * time.Millisecond})
		if err != nil {
			return "", err
		}
		defer db.Close()
		db.options.Standby = command
		if _, err := db.TakeLease(t.Context(), "x"); command != errors.Is(err, ErrReadOnly) || err == nil {
			t.Errorf("a lease there: %v", err)
		}
		if turn, e := db.Begin(nil); command && e == nil {
			if err := turn.Commit(changes("a", "2"), Commit{}); !errors.Is(err, ErrReadOnly) {
				t.Errorf("a commit there: %v", err)
			}
			turn.Close()
		} else if command {
			t.Error(e)
		}
		err = db.View(t.Context(), func(s *State) error {
			b, _, err := s.Get([]byte("a"))
			value = string(b)
			return err
		})
		return value, err
	}
	if value, err := read(false); !errors.Is(err, ErrUnavailable) || value != "" {
		t.Errorf("a server whose database is a standby now reads %q, %v", value, err)
	}
	if value, err := read(true); value != "1" || err != nil {
		t.Errorf("a command reads %q, %v", value, err)
	}
}
