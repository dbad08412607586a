package postgres

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/postgres/pgtest"
)

func open(t testing.TB, dsn string) *DB {
	t.Helper()
	db, err := Open(context.Background(), dsn, Options{Create: true, Name: "sello"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func head(t testing.TB, db *DB) Head {
	t.Helper()
	h, err := headOf(db)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// headIn returns the head of the common part that a snapshot sees.
func headIn(s *Snapshot) (Head, error) {
	err := s.ask([]int32{Common}, func(t *trip) { t.add(sqlGet, []byte("-")) }, func([]row) {})
	if err != nil {
		return Head{}, err
	}
	return s.seen[Common].Head, nil
}

func catchUp(db *DB) error {
	_, err := db.CatchUp(context.Background())
	return err
}

func headOf(db *DB) (Head, error) {
	h, err := db.heads(context.Background())
	return h[Common], err
}

// commitTo commits to the common part, and returns the new head.
func commitTo(db *DB, at Head, id [16]byte, settings bool, list []Change) (Head, error) {
	w := &work{id: id, bases: []partHead{{Common, at}}, settings: settings, changes: list}
	err := db.commit(w)
	if err != nil {
		return Head{}, err
	}
	return w.next(at), nil
}

// exec runs SQL beside what the tests do.
func exec(t testing.TB, db *DB, sql string) {
	t.Helper()
	if err := db.over(context.Background(), &db.writers, func(c *conn) error { return c.exec(sql) }); err != nil {
		t.Fatal(err)
	}
}

// changes makes a list of keys and values by turns. A value "-" deletes.
func changes(words ...string) (list []Change) {
	for i := 0; i < len(words); i += 2 {
		c := Change{Key: words[i], Value: []byte(words[i+1])}
		if words[i+1] == "-" {
			c.Value = nil
		}
		list = append(list, c)
	}
	return list
}

// contents returns all entries of a snapshot, in a line.
func contents(t testing.TB, s *Snapshot) (all string) {
	t.Helper()
	for e, err := range s.Scan(nil, nil, false) {
		if err != nil {
			t.Fatal(err)
		}
		all += fmt.Sprintf("%s=%s ", e.Key, e.Value)
	}
	return all
}

func check(t testing.TB, db *DB, want string) {
	t.Helper()
	s := db.snapshot(t.Context())
	defer s.Close()
	if got := contents(t, s); got != want {
		t.Errorf("there is %q, want %q", got, want)
	}
}

func TestCommit(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.DSN(t))
	first := head(t, db)
	second, err := commitTo(db, first, newID(), false, changes("a", "1", "b", "", "c", "3"))
	if err != nil || second.N != first.N+1 || second.Settings != first.Settings || !head(t, db).Is(second) {
		t.Fatalf("%v after %v: %v", second, first, err)
	}
	before := db.snapshot(t.Context())
	defer before.Close()
	if value, ok, err := before.Get([]byte("b")); !ok || value == nil || len(value) > 0 || err != nil {
		t.Errorf("an empty value is %v, %v, %v", value, ok, err)
	}
	if seen, err := headIn(before); seen != second || err != nil {
		t.Errorf("a snapshot sees %v, %v", seen, err)
	}
	for range 2 { // the second time, too, it changes nothing
		if _, err := commitTo(db, first, newID(), true, changes("a", "9", "d", "9")); err != ErrTurnLost {
			t.Fatalf("a commit on an old head: %v", err)
		}
	}
	third, err := commitTo(db, second, newID(), true, changes("a", "2", "b", "-", "never", "-"))
	if err != nil || third.Settings != first.Settings+1 {
		t.Fatal(third, err)
	}
	check(t, db, "a=2 c=3 ")

	// The second one is sent again, as if its answer had been lost.
	err = db.over(t.Context(), &db.writers, func(c *conn) error {
		return c.commit(&work{id: second.ID, bases: []partHead{{Common, first}}, changes: changes("a", "1", "b", "", "c", "3")})
	})
	if err != ErrTurnLost {
		t.Errorf("a commit that is stored already: %v", err)
	}
	check(t, db, "a=2 c=3 ")
	if got := contents(t, before); got != "a=1 b= c=3 " {
		t.Errorf("the snapshot has changed: %q", got)
	}
	if _, err := commitTo(db, third, newID(), false, nil); err != nil { // a commit without changes is one
		t.Error(err)
	}
}

// TestHeadGone takes commits back, as the promotion of a standby that lacked them does. Nobody
// can build on them, also once their numbers are given again.
func TestHeadGone(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.DSN(t))
	first := head(t, db)
	lost, err := commitTo(db, first, newID(), false, changes("a", "lost"))
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db, fmt.Sprintf("DELETE FROM sello_log WHERE n = %d; DELETE FROM sello_kv", lost.N))
	for range 2 {
		if _, err := commitTo(db, lost, newID(), false, changes("b", "on it")); err != ErrTurnLost {
			t.Errorf("a commit on one that is gone: %v", err)
		}
		if _, err := commitTo(db, first, newID(), false, changes("a", "again")); err != nil && err != ErrTurnLost {
			t.Fatal(err)
		}
	}
	check(t, db, "a=again ")
}

// TestCommitsGone takes back what a server knows of. It tells so, and forgets all of it: the head in
// its place may have the same numbers.
func TestCommitsGone(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, other := open(t, dsn), open(t, dsn)
	first := head(t, db)
	var told []string
	db.OnOthers(func(_ int32, settings bool) { told = append(told, fmt.Sprint("others ", settings)) })
	db.OnGone(func(from, to int64) { told = append(told, fmt.Sprint(from-first.N, " to ", to-first.N)) })
	commit := func(d *DB, settings bool, key, value string) (err error) {
		turn, err := d.Begin(nil)
		if err == nil {
			err = turn.Commit(changes(key, value), Commit{Settings: settings})
		}
		return err
	}
	takeBack := func() { exec(t, db, fmt.Sprintf("DELETE FROM sello_log WHERE n > %d; DELETE FROM sello_kv", first.N)) }
	value := func(d *DB) (s string) {
		err := d.View(t.Context(), func(state *State) error {
			value, _, err := state.Get([]byte("a"))
			s = string(value)
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return s
	}
	for _, test := range []struct {
		name  string
		again bool // others commit as many in their place
		use   func() error
		want  string
	}{
		{"a read", false, func() error { value(db); return nil }, "others true, 1 to 0"},
		{"a read, the same number", true, func() error { value(db); return nil }, "others true, 1 to 1"},
		{"a commit", false, func() error { return commit(db, false, "b", "2") }, "others true, 1 to 0, others false"},
	} {
		t.Run(test.name, func(t *testing.T) {
			takeBack()
			value(db)
			if err := commit(db, true, "a", "lost"); err != nil || value(db) != "lost" {
				t.Fatalf("%q, %v", value(db), err)
			}
			takeBack()
			if test.again {
				if err := errors.Join(catchUp(other), commit(other, true, "a", "there")); err != nil {
					t.Fatal(err)
				}
			}
			told = nil
			err := test.use()
			if err == ErrTurnLost {
				err = test.use()
			}
			if got := strings.Join(told, ", "); got != test.want || err != nil {
				t.Errorf("told %q, want %q, %v", got, test.want, err)
			}
			if want := map[bool]string{true: "there"}[test.again]; value(db) != want {
				t.Errorf("it reads %q, want %q", value(db), want)
			}
		})
	}
	// The last round began with a head that was gone, too.
	if got := db.Stats(); got.Gone != 4 || got.Lost == 0 || got.Won < 4 || got.Trips < 20 || time.Since(got.Current) > time.Minute {
		t.Errorf("%+v", got)
	}
}

// TestAhead judges the database's clock by one answer.
func TestAhead(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Second)
	for _, test := range []struct {
		at   time.Time
		want time.Duration
	}{
		{began.Add(time.Second / 2), 0},
		{began.Add(-3 * time.Second), -3 * time.Second},
		{began.Add(4 * time.Second), 3 * time.Second},
	} {
		var c chain
		c.noteTime(test.at, began)
		if got := c.stats.Ahead; (got - test.want).Abs() > time.Second/2 {
			t.Errorf("at %v: %v", test.at, got)
		}
	}
}

// addTo adds one to a number until it is stored, and returns the number then, and how often the
// turn was lost.
func addTo(db *DB, key string) (n uint64, losses int, err error) {
	for ; ; losses++ {
		s := db.snapshot(context.Background())
		value, _, err := s.Get([]byte(key))
		at, headErr := headIn(s)
		s.Close()
		if err := errors.Join(err, headErr); err != nil {
			return 0, losses, err
		}
		n = 1
		if value != nil {
			n = binary.BigEndian.Uint64(value) + 1
		}
		_, err = commitTo(db, at, newID(), false, []Change{{key, binary.BigEndian.AppendUint64(nil, n)}})
		if err != ErrTurnLost {
			return n, losses, err
		}
	}
}

// TestRivals has three servers add to one number. None is lost, and every number is answered once.
func TestRivals(t *testing.T) {
	t.Parallel()
	const servers, each = 3, 60
	dsn := pgtest.DSN(t)
	open(t, dsn)
	var wg sync.WaitGroup
	var seen [servers*each + 1]atomic.Int32
	var losses atomic.Int64
	for range servers {
		db := open(t, dsn)
		wg.Go(func() {
			for range each {
				n, lost, err := addTo(db, "n")
				if err != nil || n > servers*each {
					t.Error(n, err)
					return
				}
				losses.Add(int64(lost))
				seen[n].Add(1)
			}
		})
	}
	wg.Wait()
	for n := 1; n < len(seen); n++ {
		if times := seen[n].Load(); times != 1 {
			t.Fatalf("%d was answered %d times", n, times)
		}
	}
	if losses.Load() == 0 {
		t.Error("no turn was lost: nothing was tested")
	}
}

// TestAnswerLost cuts connections around their COMMITs. Each commit is answered, and stored once.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	for _, at := range []pgtest.Point{pgtest.Before, pgtest.Inside, pgtest.Sent, pgtest.After} {
		for _, end := range []pgtest.End{pgtest.Reset, pgtest.Close} {
			t.Run(fmt.Sprint(at, end), func(t *testing.T) {
				t.Parallel()
				dsn := pgtest.DSN(t)
				direct := open(t, dsn)
				proxy := pgtest.NewProxy(t, dsn, func(commit int) pgtest.Fault {
					if commit%3 == 2 {
						return pgtest.Fault{At: at, End: end}
					}
					return pgtest.Fault{}
				})
				db := open(t, proxy.DSN())
				last := head(t, db)
				for i := range 12 {
					next, err := commitTo(db, last, newID(), false, changes(fmt.Sprintf("%02d", i), "x"))
					if err != nil {
						t.Fatalf("commit %d: %v", i, err)
					}
					if next.N != last.N+1 || !head(t, direct).Is(next) {
						t.Fatalf("commit %d: %v, and the head is %v", i, next, head(t, direct))
					}
					last = next
				}
				if proxy.Commits() < 16 {
					t.Errorf("%d COMMITs: no fault has happened", proxy.Commits())
				}
			})
		}
	}
}

// TestAnswerOfOthers cuts a connection before its COMMIT, and lets another server commit before
// the second try. The turn is lost: the other's commit is not taken for its own.
func TestAnswerOfOthers(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	direct := open(t, dsn)
	first := head(t, direct)
	proxy := pgtest.NewProxy(t, dsn, func(commit int) pgtest.Fault {
		if commit > 1 {
			return pgtest.Fault{}
		}
		return pgtest.Fault{At: pgtest.Before, Delay: 300 * time.Millisecond}
	})
	db := open(t, proxy.DSN())
	done := make(chan error)
	go func() {
		_, err := commitTo(db, first, newID(), false, changes("a", "mine"))
		done <- err
	}()
	for proxy.Commits() == 0 {
		time.Sleep(time.Millisecond)
	}
	// It waits for the first one's transaction, which ends with its connection.
	if _, err := commitTo(direct, first, newID(), false, changes("a", "other")); err != nil {
		t.Error(err)
	}
	if err := <-done; err != ErrTurnLost {
		t.Errorf("got %v", err)
	}
	check(t, direct, "a=other ")
}

// TestSilence cuts a server off without a word while it commits. It says in time that it does not
// know; the database says what happened once it can be reached again.
func TestSilence(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	direct := open(t, dsn)
	var proxy *pgtest.Proxy
	hole := make(chan bool, 1)
	proxy = pgtest.NewProxy(t, dsn, func(int) pgtest.Fault {
		hole <- true
		return pgtest.Fault{At: pgtest.After, End: pgtest.Hole}
	})
	db, err := Open(t.Context(), proxy.DSN(), Options{Create: true, Name: "sello", Trip: 300 * time.Millisecond, Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first := head(t, db)
	go func() {
		<-hole
		proxy.Freeze()
	}()
	began := time.Now()
	_, err = commitTo(db, first, newID(), false, changes("a", "1"))
	if !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	proxy.Thaw()
	check(t, direct, "a=1 ")
}

// TestSilenceBefore cuts a server off before it has committed anything over its connection. What was
// not sent was not stored, and it says so.
func TestSilenceBefore(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	direct := open(t, dsn)
	proxy := pgtest.NewProxy(t, dsn, func(int) pgtest.Fault { return pgtest.Fault{} })
	db, err := Open(t.Context(), proxy.DSN(), Options{Create: true, Name: "sello", Trip: 300 * time.Millisecond, Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first := head(t, db)
	proxy.Freeze()
	if _, err := commitTo(db, first, newID(), false, changes("a", "1")); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
	proxy.Thaw()
	check(t, direct, "")
}

// TestRestart stops the database under load, in both ways. What was answered is there, and the
// servers go on by themselves.
func TestRestart(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	db := open(t, cluster.DSN())
	stop := make(chan bool)
	counted := make(chan uint64)
	go func() {
		answered := uint64(0)
		for {
			select {
			case <-stop:
				counted <- answered
				return
			default:
			}
			n, _, err := addTo(db, "n")
			switch {
			case err == nil && n != answered+1 && n != answered+2: // one may have been stored without an answer
				t.Errorf("%d follows %d", n, answered)
				fallthrough
			case err == nil:
				answered = n
			case !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUnknown):
				t.Error(err)
			}
		}
	}()
	for _, mode := range []pgtest.Mode{pgtest.Fast, pgtest.Immediate} {
		time.Sleep(200 * time.Millisecond)
		cluster.Restart(mode)
	}
	time.Sleep(200 * time.Millisecond)
	cluster.Terminate("application_name = 'sello'")
	time.Sleep(200 * time.Millisecond)
	close(stop)
	answered := <-counted
	s := db.snapshot(t.Context())
	defer s.Close()
	value, _, err := s.Get([]byte("n"))
	if err != nil {
		t.Fatal(err)
	}
	if n := binary.BigEndian.Uint64(value); n != answered && n != answered+1 || answered < 10 {
		t.Errorf("%d were answered, the last is %d", answered, n)
	}
}

// TestPooler commits and reads through PgBouncer, which gives each transaction another connection
// and knows nothing of prepared statements.
func TestPooler(t *testing.T) {
	t.Parallel()
	dsn := pgtest.PgBouncer(t, pgtest.Start(t))
	var wg sync.WaitGroup
	for range 3 {
		db := open(t, dsn)
		wg.Go(func() {
			for range 20 {
				if _, _, err := addTo(db, "n"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	db := open(t, dsn)
	if n, _, err := addTo(db, "n"); n != 61 || err != nil {
		t.Error(n, err)
	}
	if !db.pooled.Load() {
		t.Error("the pooler was not noticed")
	}
}

// TestScan compares scans with a model, over several pages and in both directions.
func TestScan(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.DSN(t))
	rng := rand.New(rand.NewPCG(1, 2))
	entries := map[string][]byte{}
	for range 3000 {
		key := make([]byte, 1+rng.IntN(4))
		for i := range key {
			key[i] = "\x00\x01ab\xfe\xff"[rng.IntN(6)]
		}
		entries[string(key)] = bytes.Repeat([]byte{byte(rng.IntN(256))}, rng.IntN(40))
	}
	entries["large"], entries["larger"] = make([]byte, 3<<20), make([]byte, 5<<20)
	var list []Change
	for key, value := range entries {
		list = append(list, Change{key, value})
	}
	if _, err := commitTo(db, head(t, db), newID(), false, list); err != nil {
		t.Fatal(err)
	}
	keys := slices.Sorted(maps.Keys(entries))
	s := db.snapshot(t.Context())
	defer s.Close()
	for round := range 60 {
		lo, hi := keys[rng.IntN(len(keys))], keys[rng.IntN(len(keys))]
		if round%5 == 0 {
			lo, hi = "", ""
		}
		var want []string
		for _, key := range keys {
			if key >= lo && (hi == "" || key < hi) {
				want = append(want, key)
			}
		}
		reverse := round%2 == 1
		if reverse {
			slices.Reverse(want)
		}
		var got []string
		for e, err := range s.Scan([]byte(lo), []byte(hi), reverse) {
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(e.Value, entries[string(e.Key)]) {
				t.Fatalf("%q has a wrong value", e.Key)
			}
			got = append(got, string(e.Key))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("from %q to %q, reverse %v: %d keys, want %d", lo, hi, reverse, len(got), len(want))
		}
	}
}

func some(n int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for i := range n {
			if !yield(Entry{fmt.Appendf(nil, "%06d", i), bytes.Repeat([]byte{byte(i)}, i%300)}, nil) {
				return
			}
		}
	}
}

// TestFill fills databases and reads them back. What is interrupted, or not as it should be,
// leaves nothing.
func TestFill(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.DSN(t))
	broken := errors.New("broken")
	ended, cancel := context.WithCancel(t.Context())
	for name, test := range map[string]struct {
		ctx  context.Context
		at   func() error // at entry 5,000
		same error
	}{
		"an error of the entries": {t.Context(), func() error { return broken }, nil},
		"the end of the context":  {ended, func() error { cancel(); return nil }, nil},
		"an error of the check":   {t.Context(), func() error { return nil }, broken},
	} {
		err := db.Fill(test.ctx, func(yield func(Entry, error) bool) {
			for e := range some(10_000) {
				var err error
				if string(e.Key) == "005000" {
					err = test.at()
				}
				if !yield(e, err) || err != nil {
					return
				}
			}
		}, func(*Snapshot) error { return test.same })
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		check(t, db, "")
	}

	checkSome := func(n int) func(*Snapshot) error {
		return func(there *Snapshot) error {
			next, stop := iter.Pull2(some(n))
			defer stop()
			for e, err := range there.Scan(nil, nil, false) {
				want, _, ok := next()
				if err != nil || !ok || !bytes.Equal(e.Key, want.Key) || !bytes.Equal(e.Value, want.Value) {
					return fmt.Errorf("%q, %v", e.Key, err)
				}
			}
			if _, _, more := next(); more {
				return errors.New("there are too few")
			}
			return nil
		}
	}
	if err := db.Fill(t.Context(), some(10_000), checkSome(10_000)); err != nil {
		t.Fatal(err)
	}
	if err := db.Fill(t.Context(), some(1), checkSome(1)); err != ErrNotEmpty {
		t.Errorf("a second time: %v", err)
	}
	s := db.snapshot(t.Context())
	defer s.Close()
	if err := checkSome(10_000)(s); err != nil {
		t.Error(err)
	}
	if _, err := commitTo(db, head(t, db), newID(), false, changes("more", "1")); err != nil {
		t.Error(err)
	}
	if err := open(t, pgtest.DSN(t)).Fill(t.Context(), some(0), checkSome(0)); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

// TestHold checks that nobody commits while the newest state is held.
func TestHold(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, other := open(t, dsn), open(t, dsn)
	first := head(t, db)
	done := make(chan error, 1)
	err := db.Hold(t.Context(), func(s *Snapshot) error {
		go func() {
			_, err := commitTo(other, first, newID(), false, changes("a", "1"))
			done <- err
		}()
		time.Sleep(100 * time.Millisecond)
		select {
		case err := <-done:
			t.Errorf("somebody has committed meanwhile: %v", err)
		default:
		}
		if at, err := headIn(s); at != first || err != nil {
			t.Errorf("the state held is %v, %v", at, err)
		}
		return nil
	})
	if err := errors.Join(err, <-done); err != nil {
		t.Error(err)
	}
	check(t, db, "a=1 ")
}

func TestLease(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	a, b := open(t, dsn), open(t, dsn)
	take := func(db *DB, want bool) {
		t.Helper()
		if mine, err := db.TakeLease(t.Context(), "x"); mine != want || err != nil {
			t.Errorf("got %v, %v; want %v", mine, err, want)
		}
		if leased, err := b.Leased(t.Context(), "x"); !leased || err != nil {
			t.Errorf("leased: %t, %v", leased, err)
		}
	}
	take(a, true)
	take(b, false)
	take(a, true)
	if err := b.DropLease(t.Context(), "x"); err != nil { // not its own
		t.Error(err)
	}
	take(b, false)
	if err := a.DropLease(t.Context(), "x"); err != nil {
		t.Error(err)
	}
	take(b, true)
	take(a, false)
	exec(t, b, "UPDATE sello_lease SET until = now() - interval '1s'")
	take(a, true)
	take(b, false)
}

// TestTrim has a commit trim the log. Only old rows go, some at a time, and nobody can build on a
// head that has gone.
func TestTrim(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.DSN(t))
	old := head(t, db)
	exec(t, db, `INSERT INTO sello_log (part, n, id, prev, settings, at)
		SELECT 0, i, decode(lpad(to_hex(i), 32, '0'), 'hex'), 'x', 0, now() - interval '1h' * (4500 - i) / 100
		FROM generate_series(1, 104999) i; UPDATE sello_log SET at = now() - interval '1d' WHERE n = 0`)
	least := func() (n string) {
		err := db.over(t.Context(), &db.writers, func(c *conn) error {
			rows, err := c.query("SELECT min(n) FROM sello_log")
			if err == nil {
				n = string(rows[0][0])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	head(t, db)
	turn, err := db.Begin(nil)
	if err == nil {
		err = turn.Commit(nil, Commit{Settings: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 { // it trims beside what comes next
		if least() != "0" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := least(); n != "601" {
		t.Errorf("the log begins with %s", n)
	}
	for range 30 {
		if err := db.trimPart(Common, head(t, db).N); err != nil {
			t.Fatal(err)
		}
	}
	if least() != "4401" { // younger ones are of the last hour
		t.Errorf("the log begins with %s", least())
	}
	if _, err := commitTo(db, old, newID(), false, nil); err != ErrTurnLost {
		t.Errorf("a commit on a head that was trimmed: %v", err)
	}
}

// TestOpenErrors opens what cannot be opened.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	foreign := pgtest.DSN(t)
	opened := open(t, foreign)
	exec(t, opened, "ALTER TABLE sello_kv ADD COLUMN more int")
	open(t, cluster.DSN())
	cluster.Exec("CREATE ROLE reader LOGIN PASSWORD 'secret'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
	for _, test := range []struct {
		dsn  string
		want error
	}{
		{"postgres://user:secret@host:port/x", ErrDSN},
		{"postgres://user:secret@127.0.0.1:1/x", ErrUnreached},
		{with(t, cluster.DSN(), func(u *url.URL) { u.User = url.UserPassword("nobody", "secret") }), ErrPassword},
		{with(t, cluster.DSN(), func(u *url.URL) { u.Path = "/nothing" }), ErrNoDatabase},
		{foreign, ErrForeign},
		{with(t, cluster.DSN(), func(u *url.URL) { u.RawQuery = "sslmode=require" }), ErrNoTLS},
		{with(t, cluster.DSN(), func(u *url.URL) { u.RawQuery = "sslmode=verify-full" }), ErrNoTLS},
		{cluster.DSN() + "&target_session_attrs=read-only", ErrTarget},
		{cluster.DSN() + "&target_session_attrs=standby", ErrTarget},
		{cluster.DSN() + "&default_transaction_read_only=on&target_session_attrs=read-write", ErrReadOnly},
		{cluster.DSN() + "&default_transaction_read_only=on", ErrReadOnly},
		{cluster.DSN() + "&pasword=secret", ErrParameter},
		{cluster.DSN() + "&statement_timeout=secret", ErrParameter},
		{cluster.DSN() + "&search_path=nothing", ErrNoSchema},
		{cluster.DSN() + "&options=-csearch_path%3Dnothing", ErrNoSchema},
		{cluster.DSN() + "&sslmode=secret", ErrDSN},
		{"postgres://user:secret@nothing.invalid/x", ErrNoHost},
		{"postgres://user:secret@127.0.0.1:1/x?sslmode=verify-full&sslrootcert=/nothing.pem", fs.ErrNotExist},
		{with(t, cluster.DSN(), func(u *url.URL) { u.User = url.UserPassword("reader", "secret") }), ErrForbidden},
	} {
		began := time.Now()
		db, err := Open(t.Context(), test.dsn, Options{Create: true})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.dsn, err, test.want)
		}
		if name := Parameter(err); test.want == ErrParameter && !strings.Contains(test.dsn, "&"+name+"=") {
			t.Errorf("%s: the parameter is %q", test.dsn, name)
		}
		if err != nil && test.want != ErrParameter && bytes.Contains([]byte(err.Error()), []byte("secret")) {
			t.Errorf("the error tells the password: %v", err)
		}
		if err == nil {
			db.Close()
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: it took %v", test.dsn, took)
		}
	}
	reader, err := Open(t.Context(), with(t, cluster.DSN(), func(u *url.URL) { u.User = url.UserPassword("reader", "secret") }), Options{Standby: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := commitTo(reader, head(t, reader), newID(), false, nil); !errors.Is(err, ErrForbidden) {
		t.Errorf("a commit of a user who may only read: %v", err)
	}
	if err := openError(&tls.CertificateVerificationError{Err: errors.New("expired")}); !errors.Is(err, ErrUntrusted) {
		t.Error(err)
	}
	if leased, err := reader.Leased(t.Context(), "x"); leased || err != nil {
		t.Errorf("a lease that nobody took: %t, %v", leased, err)
	}
	if _, err := Open(t.Context(), cluster.DSN()+"&search_path=nothing", Options{}); !errors.Is(err, ErrNoSchema) {
		t.Errorf("a schema that is not there, read: %v", err)
	}
	hba := cluster.Query("SHOW hba_file")
	cluster.Exec("COPY (SELECT 'local all all trust' UNION ALL SELECT 'host all postgres samehost scram-sha-256') TO '" + hba + "'; SELECT pg_reload_conf()")
	for i := range 200 { // until it has reloaded
		if db, e := Open(t.Context(), with(t, cluster.DSN(), func(u *url.URL) { u.User = url.UserPassword("reader", "secret") }), Options{Standby: true}); e == nil {
			db.Close()
		} else if errors.Is(e, ErrNotLetIn) {
			break
		}
		if time.Sleep(10 * time.Millisecond); i == 199 {
			t.Error("pg_hba.conf is not told")
		}
	}
	if _, err := Open(t.Context(), pgtest.DSN(t), Options{}); err != ErrNoTables {
		t.Errorf("a database without tables: %v", err)
	}
}

// with returns a changed DSN.
func with(t *testing.T, dsn string, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
}

// TestOvertaken begins a turn on top of one that is under way. Once others are known to have
// committed, that cannot be: the state may have what the first one writes, or lack it.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, other := open(t, dsn), open(t, dsn)
	first, err := db.Begin(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, _, err := first.Get([]byte("a")); err != nil {
		t.Fatal(err)
	}
	second, err := db.Begin(first)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	if _, err := commitTo(other, head(t, other), newID(), false, changes("a", "1")); err != nil {
		t.Fatal(err)
	}
	if err := catchUp(db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Begin(first); err != ErrTurnLost {
		t.Errorf("a turn begins on top of one that was overtaken: %v", err)
	}
	if err := first.Commit(changes("a", "2"), Commit{}); err != ErrTurnLost {
		t.Errorf("the one that was overtaken is stored: %v", err)
	}
	third, err := db.Begin(nil)
	if err != nil {
		t.Fatal(err)
	}
	if value, _, err := third.Get([]byte("a")); string(value) != "1" || err != nil {
		t.Errorf("the next one reads %q, %v", value, err)
	}
	if err := third.Commit(changes("a", "3"), Commit{}); err != nil {
		t.Error(err)
	}
	check(t, db, "a=3 ")
}

// TestTurnReads: what others commit while a turn runs, it never reads, also where it has read nothing
// before.
func TestTurnReads(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, other := open(t, dsn), open(t, dsn)
	for name, read := range map[string]func(*Turn) error{
		"Get": func(turn *Turn) error {
			_, _, err := turn.Get([]byte("a"))
			return err
		},
		"Scan": func(turn *Turn) error {
			for _, err := range turn.Scan(nil, nil, false) {
				return err
			}
			return nil
		},
	} {
		head(t, db)
		turn, err := db.Begin(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := commitTo(other, head(t, other), newID(), false, changes("a", name)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := read(turn); err != ErrTurnLost {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := turn.Check(); err != ErrTurnLost {
			t.Errorf("%s: the turn is not lost: %v", name, err)
		}
		turn.Close()
	}
}

// TestViewPanics: a View whose function panics gives its connection back.
func TestViewPanics(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.DSN(t))
	for range 3 * db.conns.size {
		func() {
			defer func() { recover() }()
			db.View(t.Context(), func(s *State) error {
				if _, _, err := s.Get([]byte(fmt.Sprint(rand.Uint64()))); err != nil {
					t.Error(err)
				}
				panic("a fault of fn")
			})
		}()
	}
	err := db.View(t.Context(), func(s *State) error {
		_, _, err := s.Get([]byte("another"))
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
