package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"sello/postgres/pgtest"
)

// letters has a part for each first letter of a key: "a" is Common.
type letters struct{}

func (letters) PartOf(key []byte) int32 { return int32(key[0]) - 'a' }

func (letters) PartOfRange(lo, hi []byte) (int32, bool) {
	if len(lo) == 0 || len(hi) == 0 || bytes.Compare(hi, []byte{lo[0] + 1}) > 0 {
		return 0, false
	}
	return letters{}.PartOf(lo), true
}

func openParts(t testing.TB, dsn string) *DB {
	t.Helper()
	db, err := Open(context.Background(), dsn, Options{Create: true, Name: "sello", Parts: letters{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// act begins a turn, reads what is named by keys, and commits changes.
func act(db *DB, read string, special Commit, words ...string) error {
	turn, err := db.Begin(nil)
	if err != nil {
		return err
	}
	for _, key := range read {
		if _, _, err := turn.Get([]byte(string(key))); err != nil {
			turn.Close()
			return turn.Check()
		}
	}
	return turn.Commit(changes(words...), special)
}

// actAgain commits changes, in a second turn if the first one is lost to what others have committed
// before.
func actAgain(db *DB, special Commit, words ...string) error {
	err := act(db, "", special, words...)
	if err == ErrTurnLost {
		err = act(db, "", special, words...)
	}
	return err
}

// settingsTold counts how often others are told to have changed settings.
func settingsTold(db *DB) *int {
	told := 0
	db.OnOthers(func(_ int32, settings bool) {
		if settings {
			told++
		}
	})
	return &told
}

// TestParts: a turn is lost by what others commit in its parts, those that it has only read too, and
// by nothing else.
func TestParts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		read, write string // by keys
		all         bool
		others      string // what others write meanwhile
		othersAll   bool
		lost        bool
	}{
		{name: "the same part", read: "b", write: "b", others: "b", lost: true},
		{name: "another part", read: "b", write: "b", others: "c"},
		{name: "the common part", read: "b", write: "b", others: "a"},
		{name: "a part that was read", read: "bc", write: "b", others: "c", lost: true},
		{name: "a part that was written without a look", write: "c", others: "c", lost: true},
		{name: "one of several", read: "bcd", write: "bcd", others: "d", lost: true},
		{name: "the first of several", read: "bcd", write: "bcd", others: "b", lost: true},
		{name: "two of several", read: "bcd", write: "bcd", others: "ce", lost: true},
		{name: "a new part", read: "x", write: "x", others: "x", lost: true},
		{name: "a new part that others do not use", read: "x", write: "x", others: "y"},
		{name: "all parts", read: "b", write: "b", all: true, others: "c"}, // it has not read it
		{name: "others' commit of all parts", read: "b", write: "b", others: "c", othersAll: true, lost: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			db, other := openParts(t, dsn), openParts(t, dsn)
			for _, d := range []*DB{db, other} {
				if err := actAgain(d, Commit{}, "b", "1", "c", "1", "d", "1", "e", "1"); err != nil {
					t.Fatal(err)
				}
			}
			for _, d := range []*DB{db, other} {
				if _, err := d.heads(t.Context(), 1, 2, 3, 4, 'x'-'a', 'y'-'a'); err != nil {
					t.Fatal(err)
				}
			}
			words := func(keys, value string) (list []string) {
				for _, key := range keys {
					list = append(list, string(key), value)
				}
				return list
			}
			turn, err := db.Begin(nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range test.read {
				if _, _, err := turn.Get([]byte(string(key))); err != nil {
					t.Fatal(err)
				}
			}
			if err := act(other, test.others, Commit{All: test.othersAll}, words(test.others, "others")...); err != nil {
				t.Fatal(err)
			}
			err = turn.Commit(changes(words(test.write, "mine")...), Commit{All: test.all})
			if (err == ErrTurnLost) != test.lost || err != nil && !test.lost {
				t.Errorf("got %v", err)
			}
			value := func(key rune) (s string) {
				err := other.ViewOnce(t.Context(), func(state *State) error {
					v, _, err := state.Get([]byte(string(key)))
					s = string(v)
					return err
				})
				if err != nil {
					t.Error(err)
				}
				return s
			}
			for _, key := range test.write {
				if got := value(key); (got == "mine") == test.lost {
					t.Errorf("%c is %q", key, got)
				}
			}
			for _, key := range test.others {
				if got := value(key); got != "others" {
					t.Errorf("%c is %q", key, got)
				}
			}
			// Nothing is left in the log of a turn that was lost, and one of all parts is in all.
			rows, err := db.count(fmt.Sprintf(`SELECT count(*) FROM sello_log WHERE id = decode('%x', 'hex')`, turn.id))
			if want := map[bool]string{true: "0", false: fmt.Sprint(len(test.write))}[test.lost]; rows != want && !test.all || test.all && rows < "5" || err != nil {
				t.Errorf("%s rows in the log, %v", rows, err)
			}
		})
	}
}

// count returns the first column of the first row.
func (db *DB) count(sql string) (n string, err error) {
	err = db.over(context.Background(), &db.writers, func(c *conn) error {
		rows, err := c.query(sql)
		if err == nil {
			n = string(rows[0][0])
		}
		return err
	})
	return n, err
}

// TestAcross: who has read a range of several parts loses his turn by what others commit in any,
// also one that had no commits, and sees one state of all of them.
func TestAcross(t *testing.T) {
	t.Parallel()
	for _, others := range []string{"", "b", "c", "x"} {
		for _, write := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %t", others, write), func(t *testing.T) {
				t.Parallel()
				dsn := pgtest.DSN(t)
				db, other := openParts(t, dsn), openParts(t, dsn)
				if err := act(db, "", Commit{}, "b", "1", "c", "1"); err != nil {
					t.Fatal(err)
				}
				first, err := db.Begin(nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := first.Get([]byte("b")); err != nil {
					t.Fatal(err)
				}
				turn, err := db.Begin(first)
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, err := range turn.Scan(nil, nil, false) {
					if n++; err != nil {
						t.Fatal(err)
					}
				}
				if n != 2 {
					t.Errorf("%d entries", n)
				}
				if err := first.Commit(changes("b", "2"), Commit{}); err != nil { // the turn before is no other
					t.Fatal(err)
				}
				if others != "" {
					if err := act(other, others, Commit{}, others, "others"); err != nil {
						t.Fatal(err)
					}
				}
				if write {
					err = turn.Commit(changes("d", "1"), Commit{})
				} else {
					err = turn.Check()
					turn.Close()
				}
				if (err == ErrTurnLost) != (others != "") || err != nil && others == "" {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// TestTransfers has servers move amounts between parts, some between all of them. Every state that
// anybody reads has the same sum, and nobody's move is lost.
func TestTransfers(t *testing.T) {
	t.Parallel()
	const servers, parts = 3, 6
	span := 4 * time.Second
	if testing.Short() {
		span = time.Second
	}
	dsn := pgtest.DSN(t)
	seed := rand.Uint64()
	t.Log("seed", seed)
	until := time.Now().Add(span)
	var wg sync.WaitGroup
	var moved [parts]atomic.Int64
	var won, lost, views atomic.Int64
	keyOf := func(i int) string { return string(rune('b'+i)) + "n" }
	amount := func(get func([]byte) ([]byte, bool, error), i int) (int64, error) {
		value, ok, err := get([]byte(keyOf(i)))
		if err != nil || !ok {
			return 0, err
		}
		return strconv.ParseInt(string(value), 10, 64)
	}
	for server := range servers {
		db := openParts(t, dsn)
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(server)))
			for time.Now().Before(until) {
				turn, err := db.Begin(nil)
				if err != nil {
					t.Error(err)
					return
				}
				from, to, by := r.IntN(parts), r.IntN(parts), 1+r.Int64N(9)
				var list []Change
				if r.IntN(8) == 0 { // a look across all
					var sum int64
					for e, err := range turn.Scan([]byte("b"), nil, false) {
						if err != nil {
							break
						}
						n, _ := strconv.ParseInt(string(e.Value), 10, 64)
						sum += n
					}
					if turn.err == nil && sum != 0 {
						t.Errorf("a turn sees a sum of %d", sum)
					}
				}
				for _, move := range []struct {
					at int
					by int64
				}{{from, -by}, {to, by}} {
					n, err := amount(turn.Get, move.at)
					if err != nil {
						break
					}
					list = append(list, Change{keyOf(move.at), []byte(strconv.FormatInt(n+move.by, 10))})
				}
				if from == to || len(list) < 2 {
					list = nil
				}
				if list == nil {
					err = turn.Check()
					turn.Close()
				} else if err = turn.Commit(list, Commit{All: r.IntN(20) == 0}); err == nil {
					moved[from].Add(-by)
					moved[to].Add(by)
					won.Add(1)
				}
				if err == ErrTurnLost {
					lost.Add(1)
				} else if err != nil {
					t.Error(err)
					return
				}
			}
		})
		for range 2 {
			wg.Go(func() {
				for time.Now().Before(until) {
					var sum int64
					err := db.View(t.Context(), func(s *State) (err error) {
						sum = 0
						for i := range parts {
							n, failed := amount(s.Get, i)
							sum, err = sum+n, errors.Join(err, failed)
						}
						return err
					})
					if err != nil || sum != 0 {
						t.Errorf("a view sees a sum of %d, %v", sum, err)
						return
					}
					views.Add(1)
				}
			})
		}
	}
	wg.Wait()
	db := openParts(t, dsn)
	if err := db.ViewOnce(t.Context(), func(s *State) error {
		for i := range parts {
			if n, err := amount(s.Get, i); n != moved[i].Load() || err != nil {
				t.Errorf("part %d has %d, want %d, %v", i, n, moved[i].Load(), err)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	t.Logf("%d moves, %d turns lost, %d views", won.Load(), lost.Load(), views.Load())
	if won.Load() == 0 || lost.Load() == 0 || views.Load() == 0 {
		t.Error("there were no moves, no rivals, or nobody looked")
	}
}

// TestFillTold: who knew that a database was empty knows it no more, in any part.
func TestFillTold(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, other := openParts(t, dsn), openParts(t, dsn)
	turn, err := db.Begin(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := turn.Get([]byte("b")); ok || err != nil {
		t.Fatal(ok, err)
	}
	entries := func(yield func(Entry, error) bool) { yield(Entry{[]byte("b"), []byte("1")}, nil) }
	if err := other.Fill(t.Context(), entries, func(*Snapshot) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := turn.Commit(changes("b", "mine"), Commit{}); err != ErrTurnLost {
		t.Errorf("got %v", err)
	}
	check(t, db, "b=1 ")
}

// TestWarm reads many keys at once, there or not. What comes after finds them without a message.
func TestWarm(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, other := openParts(t, dsn), openParts(t, dsn)
	var words []string
	var keys [][]byte
	for i := range 2 * mostWarm {
		key := fmt.Sprintf("%c%d", 'b'+i%2, i)
		keys = append(keys, []byte(key))
		if i%3 > 0 {
			words = append(words, key, "old")
		}
	}
	if err := act(db, "", Commit{}, words...); err != nil {
		t.Fatal(err)
	}
	type reader interface {
		Get(key []byte) (value []byte, ok bool, err error)
		Warm(keys [][]byte)
	}
	read := func(r reader, want string) (err error) {
		r.Warm(keys)
		before := db.trips.Load()
		for i, key := range keys {
			value, ok, failed := r.Get(key)
			if err = failed; err != nil {
				break
			}
			if ok != (i%3 > 0) || ok && string(value) != want {
				t.Errorf("%q is %q, %t", key, value, ok)
			}
		}
		if n := db.trips.Load() - before; n > 0 {
			t.Errorf("%d messages for what was read at once", n)
		}
		return err
	}
	view := func(want string) error {
		return db.View(t.Context(), func(s *State) error { return read(s, want) })
	}
	turn := func(want string) error {
		turn, err := db.Begin(nil)
		if err != nil {
			return err
		}
		defer turn.Close()
		if err := read(turn, want); err != nil && turn.Check() != ErrTurnLost {
			return err
		}
		return turn.Check()
	}
	if err := errors.Join(turn("old"), view("old")); err != nil {
		t.Fatal(err)
	}
	for i := range words {
		if words[i] == "old" {
			words[i] = "new"
		}
	}
	err := db.ViewOnce(t.Context(), func(s *State) error {
		s.Warm(keys)
		if err := act(other, "", Commit{}, words...); err != nil {
			return err
		}
		return read(s, "old") // one state
	})
	if err == nil {
		err = view("new")
	}
	if lost := turn("new"); lost == ErrTurnLost {
		err = errors.Join(err, turn("new"))
	} else {
		err = errors.Join(err, lost)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestTurnTold: a turn whose functions may have used what others have changed since is lost, also if
// it comes to that part later.
func TestTurnTold(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, other := openParts(t, dsn), openParts(t, dsn)
	for name, between := range map[string]func() error{
		"others' commit": func() error { return actAgain(other, Commit{}, "c", "1") },
		"all is forgotten": func() error {
			db.chain.mu.Lock()
			defer db.chain.mu.Unlock()
			db.chain.forget()
			return nil
		},
	} {
		for _, use := range []func(*Turn) error{
			func(turn *Turn) error {
				_, _, err := turn.Get([]byte("c"))
				return err
			},
			func(turn *Turn) error {
				turn.Warm([][]byte{[]byte("c"), []byte("c1")})
				return turn.err
			},
			func(turn *Turn) error { return turn.Commit(changes("c", "2"), Commit{}) },
		} {
			if _, err := db.heads(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			turn, err := db.Begin(nil)
			if err == nil {
				err = between()
			}
			if err == nil {
				_, err = db.heads(t.Context(), 2)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := use(turn); err != ErrTurnLost {
				t.Errorf("after %s: %v", name, err)
			}
			turn.Close()
			if err := act(db, "c", Commit{}, "c", "3"); err != nil { // it was asked for already
				t.Errorf("the turn after %s: %v", name, err)
			}
		}
	}
}

// TestTold: others hear in which part somebody has committed. Of settings all hear, since they are
// told in the common part too.
func TestTold(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, other := openParts(t, dsn), openParts(t, dsn)
	var told []string
	db.OnOthers(func(part int32, settings bool) { told = append(told, fmt.Sprint(part, " ", settings)) })
	if _, err := db.heads(t.Context(), 1, 2); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		keys  string
		as    Commit
		parts []int32
		want  string
	}{
		{"b", Commit{}, []int32{1, 2}, "1 false"},
		{"b", Commit{}, []int32{2}, ""}, // nobody has asked
		{"b", Commit{Settings: true}, nil, "0 true"},
		{"c", Commit{}, []int32{1}, "1 true"},
		{"c", Commit{All: true}, []int32{1, 2}, "0 false, 1 false, 2 false"},
		{"x", Commit{}, []int32{'x' - 'a'}, ""}, // nothing was known of it
		{"x", Commit{}, []int32{'x' - 'a'}, "23 false"},
	} {
		err := actAgain(other, test.as, test.keys, "1")
		if err == nil {
			_, err = db.CatchUp(t.Context(), test.parts...)
		}
		slices.Sort(told)
		if got := strings.Join(told, ", "); got != test.want || err != nil {
			t.Errorf("a commit to %s %+v: told %q, want %q, %v", test.keys, test.as, got, test.want, err)
		}
		told = nil
	}
}

// TestMeeting: a turn that comes to a part of which nothing is known is lost if settings have changed
// since what is known of the common part: its functions may have used what the caller keeps.
func TestMeeting(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		as   Commit
		keys string
		lost bool
	}{
		{Commit{}, "b", false},
		{Commit{Settings: true}, "b", true},
		{Commit{All: true, Settings: true}, "ab", true},
		{Commit{Settings: true}, "c", true},
	} {
		for name, use := range map[string]func(*Turn) error{
			"Get": func(turn *Turn) error {
				_, _, err := turn.Get([]byte("b"))
				return err
			},
			"Scan": func(turn *Turn) error {
				for _, err := range turn.Scan([]byte("b"), []byte("c"), false) {
					return err
				}
				return nil
			},
			"Warm": func(turn *Turn) error {
				turn.Warm([][]byte{[]byte("b"), []byte("b1")})
				return turn.err
			},
			"Scan across": func(turn *Turn) error {
				for _, err := range turn.Scan([]byte("b"), nil, false) {
					return err
				}
				return nil
			},
			"Commit": func(*Turn) error { return nil },
		} {
			t.Run(fmt.Sprint(test.keys, test.as, name), func(t *testing.T) {
				t.Parallel()
				dsn := pgtest.DSN(t)
				other, db := openParts(t, dsn), openParts(t, dsn)
				told := settingsTold(db)
				if err := errors.Join(act(other, "", Commit{}, "b", "old"), catchUp(db)); err != nil {
					t.Fatal(err)
				}
				if err := act(other, test.keys, test.as, test.keys[len(test.keys)-1:], "new"); err != nil {
					t.Fatal(err)
				}
				turn, err := db.Begin(nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := use(turn); err != nil && err != ErrTurnLost {
					t.Fatal(err)
				}
				if err := turn.Commit(changes("b", "mine"), Commit{}); (err == ErrTurnLost) != test.lost || err != nil && !test.lost {
					t.Errorf("got %v", err)
				}
				if err := act(db, "b", Commit{}, "b", "mine"); err != nil {
					t.Errorf("the next turn: %v", err)
				}
				if (*told > 0) != test.lost {
					t.Errorf("told of settings %d times", *told)
				}
			})
		}
	}
}

// TestOlderSnapshot: who reads settings from a snapshot of before others have changed them hears of it
// before somebody else can go on with a turn: what he keeps is known to be old.
func TestOlderSnapshot(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	other, db := openParts(t, dsn), openParts(t, dsn)
	if err := act(other, "", Commit{Settings: true}, "b", "old"); err != nil {
		t.Fatal(err)
	}
	told := settingsTold(db)
	err := db.ViewOnce(t.Context(), func(s *State) error {
		if _, _, err := s.Get([]byte("a")); err != nil {
			return err
		}
		if err := act(other, "b", Commit{Settings: true}, "b", "new"); err != nil {
			return err
		}
		if err := act(db, "b", Commit{}, "bx", "1"); err != ErrTurnLost {
			t.Errorf("a turn meets the part: %v", err)
		}
		if value, _, err := s.Get([]byte("b")); string(value) != "old" || err != nil {
			t.Errorf("the snapshot reads %q, %v", value, err)
		}
		return nil
	})
	if *told == 0 || err != nil {
		t.Errorf("nobody was told, %v", err)
	}
}

// TestBlindWrites begins turns on top of one that is being committed, which comes to more parts only
// then. It is for the race detector, too.
func TestBlindWrites(t *testing.T) {
	t.Parallel()
	db := openParts(t, pgtest.DSN(t))
	var words []string
	for c := 'b'; c < 'y'; c++ {
		words = append(words, string(c), "1")
	}
	for range 20 {
		first, err := db.Begin(nil)
		if err != nil {
			t.Fatal(err)
		}
		first.Get([]byte("b"))
		done := make(chan error)
		go func() { done <- first.Commit(changes(words...), Commit{Settings: true}) }()
		for range 5 {
			second, err := db.Begin(first)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range "bcx" {
				if _, _, err := second.Get([]byte(string(key))); err != nil {
					t.Error(err)
				}
			}
			second.Close()
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestRenew: a value that was in the older half is not put back once a commit has changed it.
func TestRenew(t *testing.T) {
	t.Parallel()
	var c chain
	c.init(1 << 20)
	at := Head{6, newID(), 0}
	c.learn(map[int32]*sight{1: {Head: at}}, true)
	c.keep(1, []byte("k"), []byte("six"), at)
	c.older, c.values = c.values, map[string]value{} // as put does
	c.keep(1, []byte("k"), []byte("six"), at)
	w := &work{id: newID(), bases: []partHead{{1, at}}, changes: changes("k", "seven"), parts: []int32{1}}
	c.sending(w.id)
	c.stored(w)
	c.renew("k")
	if value, known := c.get(1, []byte("k"), last, c.parts[1].epoch); string(value) != "seven" || !known {
		t.Errorf("%q, %t", value, known)
	}
}

// TestReadersBesideHold: who has locked the log does not keep others from reading, over new
// connections too.
func TestReadersBesideHold(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	holder, db := openParts(t, dsn), openParts(t, dsn)
	err := holder.Hold(t.Context(), func(*Snapshot) error {
		began := time.Now()
		err := errors.Join(catchUp(db), db.ViewOnce(t.Context(), func(s *State) error {
			_, _, err := s.Get([]byte("b"))
			return err
		}))
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAllCut: a server that stops while it locks the log, before all of its message has arrived, is
// ended like one that stops in its turn.
func TestAllCut(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes 6 seconds")
	}
	dsn := pgtest.DSN(t)
	db, other := openParts(t, dsn), openParts(t, dsn)
	if err := act(db, "", Commit{}, "b", "1"); err != nil {
		t.Fatal(err)
	}
	c, err := other.writers.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	c.pg.Conn().SetDeadline(time.Time{})
	f := c.pg.Frontend()
	for _, s := range []*statement{sqlBegin, sqlPatience, sqlHurry, sqlLock} {
		f.SendParse(&pgproto3.Parse{Query: s.text})
		f.SendBind(&pgproto3.Bind{})
		f.SendExecute(&pgproto3.Execute{})
	}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	began := time.Now()
	for err = ErrUnavailable; errors.Is(err, ErrUnavailable) && time.Since(began) < 20*time.Second; {
		err = act(db, "b", Commit{}, "b", "2")
	}
	if err != nil {
		t.Errorf("nobody can commit: %v", err)
	}
}

// TestManyParts: who reads a little of each of many parts asks for each once, also if values are known.
func TestManyParts(t *testing.T) {
	t.Parallel()
	db := openParts(t, pgtest.DSN(t))
	var words []string
	for c := 'b'; c <= 'z'; c++ {
		words = append(words, string(c), "1")
	}
	if err := act(db, "", Commit{}, words...); err != nil {
		t.Fatal(err)
	}
	read := func(s *State) error {
		for c := 'b'; c <= 'z'; c++ {
			if _, _, err := s.Get([]byte(string(c))); err != nil {
				return err
			}
		}
		return nil
	}
	for range 2 {
		before := db.trips.Load()
		if err := db.View(t.Context(), read); err != nil {
			t.Fatal(err)
		}
		if n := db.trips.Load() - before; n > 30 {
			t.Errorf("%d messages", n)
		}
	}
}

// TestUndecided reads what a commit of this process has changed before its outcome is known here, for
// too long: a View that has read other values ends, and does not go on with these.
func TestUndecided(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} { // the View has read something
		dsn := pgtest.DSN(t)
		other, db := openParts(t, dsn), openParts(t, dsn)
		if err := act(db, "b", Commit{}, "b", "old", "b1", "old", "b2", "old"); err != nil {
			t.Fatal(err)
		}
		read := func(s *State, key string) (string, error) {
			value, _, err := s.Get([]byte(key))
			return string(value), err
		}
		err := db.View(t.Context(), func(s *State) error {
			if before {
				if _, err := read(s, "b"); err != nil {
					return err
				}
			}
			id := newID()
			db.chain.sending(id)
			w := &work{id: id, bases: []partHead{{1, db.chain.known([]int32{1})[1]}}, changes: changes("b", "new", "b1", "new", "b2", "new"), parts: []int32{1, 1, 1}}
			if err := other.commit(w); err != nil {
				t.Fatal(err)
			}
			s.Warm([][]byte{[]byte("b1"), []byte("b2")})
			value, err := read(s, "b1")
			if err == nil {
				t.Errorf("it goes on with %q", value)
			}
			return err
		})
		if !errors.Is(err, ErrUnavailable) && !before || err == nil {
			t.Errorf("read before %t: %v", before, err)
		}
	}
}

// TestNotTold: a snapshot that comes to a part later tells of no settings where others have changed
// none: all caches would be forgotten, and turns lost.
func TestNotTold(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	other, db := openParts(t, dsn), openParts(t, dsn)
	told := settingsTold(db)
	if err := errors.Join(act(db, "b", Commit{}, "b", "1"), act(db, "c", Commit{}, "c", "1")); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		turn, err := db.Begin(nil)
		if err == nil {
			err = errors.Join(act(other, "a", Commit{}, "a", "2"), act(other, "b", Commit{}, "b", "2"))
		}
		if err != nil {
			t.Fatal(err)
		}
		view := db.View
		if i%2 == 0 {
			view = db.ViewOnce
		}
		if err := view(t.Context(), func(s *State) error {
			_, _, err := s.Get([]byte("a"))
			s.Warm([][]byte{[]byte("b"), []byte("b1")})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := turn.Commit(changes("c", "2"), Commit{}); err != nil {
			t.Errorf("a turn of another part: %v", err)
		}
	}
	if *told > 0 {
		t.Errorf("told of settings %d times", *told)
	}
}

// TestCommitBesideHold: who wants to commit while another has locked the log is told that nothing was
// stored, also over a connection that has committed nothing before.
func TestCommitBesideHold(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	dsn := pgtest.DSN(t)
	other := openParts(t, dsn)
	db, err := Open(t.Context(), dsn, Options{Parts: letters{}, Patience: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = other.Hold(t.Context(), func(*Snapshot) error {
		if err := act(db, "b", Commit{}, "b", "1"); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknown) {
			t.Errorf("got %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNewParts: a part without commits is one only as long as it has none. Others may have begun it, and
// trimmed its first commits, or be about to.
func TestNewParts(t *testing.T) {
	t.Parallel()
	insert := fmt.Sprintf(`INSERT INTO sello_log (part, n, id, prev, settings) VALUES (%d, 5000, decode(md5('x'), 'hex'), '', 0)`, 'x'-'a')
	t.Run("trimmed", func(t *testing.T) {
		t.Parallel()
		db := openParts(t, pgtest.DSN(t))
		if _, err := db.heads(t.Context(), 'x'-'a'); err != nil {
			t.Fatal(err)
		}
		exec(t, db, insert)
		if err := act(db, "", Commit{}, "x", "1"); err != ErrTurnLost {
			t.Errorf("got %v", err)
		}
	})
	t.Run("about to", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.DSN(t)
		db, other := openParts(t, dsn), openParts(t, dsn)
		turn, err := db.Begin(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range turn.Scan(nil, nil, false) {
			t.Fatal(err) // there is nothing
		}
		c, err := other.writers.take(t.Context())
		if err == nil {
			err = c.exec("BEGIN; " + insert)
		}
		if err != nil {
			t.Fatal(err)
		}
		committed := make(chan error)
		go func() {
			time.Sleep(300 * time.Millisecond)
			committed <- c.exec("COMMIT")
		}()
		if err := turn.Commit(changes("b", "1"), Commit{}); err != ErrTurnLost {
			t.Errorf("got %v", err)
		}
		if err := <-committed; err != nil {
			t.Error(err)
		}
		other.writers.give(c, nil)
	})
}
