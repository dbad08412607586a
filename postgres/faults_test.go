package postgres

import (
	"errors"
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
				_, err := stopped.commit(first, newID(), false, changes("a", "stopped"))
				done <- err
			}()
			for proxy.Commits() == 0 {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(100 * time.Millisecond) // until the row is there
			began, refused := time.Now(), 0
			for {
				_, err := db.commit(first, newID(), false, changes("a", "1"))
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

// TestHoldLong: who holds the turn may be silent for long. Others are told to come back.
func TestHoldLong(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, other := open(t, dsn), open(t, dsn)
	first := head(t, db)
	err := db.Hold(t.Context(), func(s *Snapshot) error {
		if _, err := other.commit(first, newID(), false, nil); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a commit while the turn is held: %v", err)
		}
		_, _, err := s.Get([]byte("a"))
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
