package postgres

import (
	"slices"
	"sync"
	"testing"

	"sello/postgres/pgtest"
)

// TestLine: three servers who commit in one part without a pause take turns, so they have done about
// as much when the first has done all. Without the line the last mostly has a fourth to two thirds. How many one
// has in a row is not asked: where the machine holds a server up, the others rightly go on.
func TestLine(t *testing.T) {
	t.Parallel()
	const servers, each, least = 3, 200, 150
	dsn := pgtest.DSN(t)
	var mu sync.Mutex
	var order []int // which server has committed
	var wg sync.WaitGroup
	begin := make(chan bool)
	for server := range servers {
		db := open(t, dsn)
		wg.Go(func() {
			<-begin
			for done := 0; done < each; {
				turn, err := db.Begin(nil)
				if err != nil {
					t.Error(err)
					return
				}
				if _, _, err := turn.Get([]byte("n")); err == ErrTurnLost {
					turn.Close()
					continue
				}
				switch err := turn.Commit(changes("n", "1"), Commit{}); err {
				case nil:
					done++
					mu.Lock()
					order = append(order, server)
					mu.Unlock()
				case ErrTurnLost:
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	close(begin)
	wg.Wait()
	var done [servers]int
	for _, server := range order {
		if done[server]++; done[server] == each { // the others may wait no more
			break
		}
	}
	if slices.Min(done[:]) < least {
		t.Errorf("when the first has committed %d times, they have %v; each should have %d", each, done, least)
	}
}

// TestLineLeft: one who is alone stands in line no more.
func TestLineLeft(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, other := open(t, dsn), open(t, dsn)
	add := func(db *DB, before func()) error {
		turn, err := db.Begin(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := turn.Get([]byte("n")); err != nil {
			t.Fatal(err)
		}
		before()
		return turn.Commit(changes("n", "1"), Commit{})
	}
	if err := add(db, func() { add(other, func() {}) }); err != ErrTurnLost {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false} { // others have committed, nobody has, nobody did before
		turn, err := db.Begin(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := turn.place != nil; got != want {
			t.Errorf("turn %d stands in line: %t", i, got)
		}
		if _, _, err := turn.Get([]byte("n")); err != nil {
			t.Error(err)
		}
		if err := turn.Commit(changes("n", "1"), Commit{}); err != nil {
			t.Error(err)
		}
	}
	if used := db.Stats().Conns; used != 0 {
		t.Errorf("%d connections are in use", used)
	}
}
