package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sello/internal/ordered/orderedtest"
	"sello/internal/parallel"
)

func TestRunTwice(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	testStore(t, func(*testing.T) Store { return runTwice(newMemStore()) })
}

// testStore checks that a store keeps every promise of Store and Tx. open returns a new,
// empty store for each test.
func testStore(t *testing.T, open func(t *testing.T) Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s Store)
	}{
		{"Absent", testAbsent},
		{"Bounds", testBounds},
		{"Sizes", testSizes},
		{"ReadOnly", testReadOnly},
		{"Copies", testCopies},
		{"Model", testModel},
		{"Results", testResults},
		{"Increments", testIncrements},
		{"Isolation", testIsolation},
		{"Shared", testShared},
		{"DryRun", testDryRun},
		{"SharedBatch", testSharedBatch},
		{"Panic", testPanic},
		{"Goexit", testGoexit},
		{"Context", testContext},
		{"QueueFull", testQueueFull},
		{"Close", testClose},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() { s.Close() })
			test.run(t, s)
		})
	}
}

func testAbsent(t *testing.T, s Store) {
	mustPut(t, s, "empty", "", "full", "x")
	for _, run := range []func(context.Context, func(Tx) error) error{s.View, s.Update} {
		err := run(t.Context(), func(tx Tx) error {
			for _, test := range []struct {
				key, value string
				ok         bool
			}{{"empty", "", true}, {"full", "x", true}, {"emptx", "", false}, {"empty\x00", "", false}} {
				value, ok, err := tx.Get([]byte(test.key))
				if string(value) != test.value || ok != test.ok || err != nil {
					t.Errorf("Get(%q) = %q, %v, %v; want %q, %v", test.key, value, ok, err, test.value, test.ok)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	err := s.Update(t.Context(), func(tx Tx) error {
		return errors.Join(
			tx.Delete([]byte("never was")),
			tx.Delete([]byte("empty")),
			tx.Delete([]byte("empty")),
			tx.Put([]byte("full"), nil),
		)
	})
	if err != nil {
		t.Error(err)
	}
	checkContents(t, s, map[string]string{"full": ""})
}

func testBounds(t *testing.T, s Store) {
	keys := []string{"\x00", "a", "a\x00", "aa", "b", "b\xff", "c", "\xff", "\xff\xff"}
	bounds := append([]string{"", "\x00\x00", "a\xff", "bb", "\xff\xff\xff"}, keys...)
	check := func(tx Tx) error { return checkBounds(t, tx, keys, bounds) }
	fill := func(tx Tx, remainder int) error {
		for i, key := range keys {
			if i%2 == remainder {
				if err := tx.Put([]byte(key), []byte("value of "+key)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	// Half of the entries are committed, half are the transaction's own writes.
	if err := s.Update(t.Context(), func(tx Tx) error { return fill(tx, 0) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), func(tx Tx) error { return errors.Join(fill(tx, 1), check(tx)) }); err != nil {
		t.Fatal(err)
	}
	if err := s.View(t.Context(), check); err != nil {
		t.Fatal(err)
	}
	// A loop may end before its scan does.
	err := s.View(t.Context(), func(tx Tx) error {
		for range tx.Scan(nil, nil, true) {
			break
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// checkBounds scans between each two bounds, forward and in reverse. keys are all keys in
// tx, in order.
func checkBounds(t *testing.T, tx Tx, keys, bounds []string) error {
	for _, lo := range bounds {
		for _, hi := range bounds {
			var want []string
			for _, key := range keys {
				if key >= lo && (hi == "" || key < hi) {
					want = append(want, key)
				}
			}
			for _, reverse := range []bool{false, true} {
				var got []string
				for e, err := range tx.Scan([]byte(lo), []byte(hi), reverse) {
					if err != nil {
						return err
					}
					if string(e.Value) != "value of "+string(e.Key) {
						t.Errorf("Scan yields %q with %q", e.Key, e.Value)
					}
					got = append(got, string(e.Key))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("Scan(%q, %q, %v): (-want +got)\n%s", lo, hi, reverse, diff)
				}
				slices.Reverse(want)
			}
		}
	}
	return nil
}

func testSizes(t *testing.T, s Store) {
	longKey, longValue := bytes.Repeat([]byte("k"), maxKey), make([]byte, maxValue)
	longValue[maxValue-1] = 'v'
	err := s.Update(t.Context(), func(tx Tx) error {
		for _, key := range [][]byte{nil, {}, append(longKey, 'k')} {
			_, ok, err := tx.Get(key)
			if ok || !errors.Is(err, errSize) {
				t.Errorf("Get of a key of %d bytes: %v, %v", len(key), ok, err)
			}
			if err := tx.Put(key, nil); !errors.Is(err, errSize) {
				t.Errorf("Put of a key of %d bytes: %v", len(key), err)
			}
			if err := tx.Delete(key); !errors.Is(err, errSize) {
				t.Errorf("Delete of a key of %d bytes: %v", len(key), err)
			}
		}
		if err := tx.Put([]byte("k"), append(longValue, 'v')); !errors.Is(err, errSize) {
			t.Errorf("Put of a value of %d bytes: %v", maxValue+1, err)
		}
		return tx.Put(longKey, longValue)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.View(t.Context(), func(tx Tx) error {
		if _, ok, err := tx.Get(nil); ok || !errors.Is(err, errSize) {
			t.Errorf("Get of an empty key: %v, %v", ok, err)
		}
		value, _, err := tx.Get(longKey)
		if !bytes.Equal(value, longValue) {
			t.Errorf("a value of %d bytes is read as %d", maxValue, len(value))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func testReadOnly(t *testing.T, s Store) {
	mustPut(t, s, "k", "v")
	err := s.View(t.Context(), func(tx Tx) error {
		if err := tx.Put([]byte("k"), nil); !errors.Is(err, errReadOnly) {
			t.Errorf("Put: %v", err)
		}
		if err := tx.Delete([]byte("k")); !errors.Is(err, errReadOnly) {
			t.Errorf("Delete: %v", err)
		}
		return errTest
	})
	if err != errTest {
		t.Errorf("View returns %v instead of the function's error", err)
	}
	checkContents(t, s, map[string]string{"k": "v"})
}

// testCopies checks that a caller may change its arguments once a call has returned.
func testCopies(t *testing.T, s Store) {
	err := s.Update(t.Context(), func(tx Tx) error {
		buf := make([]byte, 1, 8)
		for c := byte('a'); c <= 'e'; c++ {
			buf[0] = c
			if err := tx.Put(buf, buf); err != nil {
				return err
			}
		}
		buf[0] = 'c'
		return tx.Delete(buf)
	})
	if err != nil {
		t.Fatal(err)
	}
	checkContents(t, s, map[string]string{"a": "a", "b": "b", "d": "d", "e": "e"})

	for _, run := range []func(context.Context, func(Tx) error) error{s.View, s.Update} {
		err := run(t.Context(), func(tx Tx) error {
			lo, hi := []byte("b"), []byte("e")
			got := ""
			scan := tx.Scan(lo, hi, false)
			lo[0], hi[0] = 'x', 'a'
			for e, err := range scan {
				if err != nil {
					return err
				}
				got += string(e.Key)
			}
			if got != "bd" {
				t.Errorf("a scan with bounds changed after the call yields %q", got)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// testModel compares random transactions, some of which fail, with a map.
func testModel(t *testing.T, s Store) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	committed := map[string]string{}
	for round := range uint64(60) {
		after, err := updateStore(t.Context(), s, func(tx Tx) (map[string]string, error) {
			rng := rand.New(rand.NewPCG(seed, round)) // in here, since the function may run again
			m := orderedtest.Model{Rng: rng, Entries: maps.Clone(committed), Key: smallKey}
			if err := m.Play(tx, 40); err != nil {
				t.Error(err)
			}
			// An overlay on top, which is flushed or dropped.
			o, drop := newOverlay(tx), m.Clone()
			if err := drop.Play(o, 20); err != nil {
				t.Errorf("in an overlay: %v", err)
			}
			if rng.IntN(2) == 0 {
				if err := o.flush(tx); err != nil {
					return nil, err
				}
				m = drop
			}
			if err := m.Play(tx, 5); err != nil {
				t.Error(err)
			}
			if rng.IntN(4) == 0 {
				return nil, errTest
			}
			return m.Entries, nil
		})
		switch err {
		case nil:
			committed = after
		case errTest:
		default:
			t.Fatal(err)
		}
		checkContents(t, s, committed)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

// smallKey returns one of a few keys. Their bytes test the order: the lowest, the highest
// and letters.
func smallKey(rng *rand.Rand) string {
	key := make([]byte, 1+rng.IntN(3))
	for i := range key {
		key[i] = "\x00ab\xff"[rng.IntN(4)]
	}
	return string(key)
}

// testResults checks the helpers view and update.
func testResults(t *testing.T, s Store) {
	n, err := updateStore(t.Context(), s, func(tx Tx) (int, error) { return 7, tx.Put([]byte("k"), []byte("v")) })
	if n != 7 || err != nil {
		t.Errorf("update = %d, %v", n, err)
	}
	n, err = updateStore(t.Context(), s, func(tx Tx) (int, error) { return 7, errTest })
	if n != 0 || err != errTest {
		t.Errorf("update = %d, %v", n, err)
	}
	v, err := viewStore(t.Context(), s, func(tx Tx) (string, error) {
		v, _, err := tx.Get([]byte("k"))
		return string(v), err
	})
	if v != "v" || err != nil {
		t.Errorf("view = %q, %v", v, err)
	}
}

func testIncrements(t *testing.T, s Store) {
	if err := checkIncrements(t.Context(), s, 16, 25); err != nil {
		t.Error(err)
	}
}

// checkIncrements increments one number in several goroutines, times times in each. It
// returns an error if an increment was lost, or if a transaction missed one that had
// returned before it began.
func checkIncrements(ctx context.Context, s Store, goroutines, times int) error {
	var wg sync.WaitGroup
	errs := make(chan error, goroutines)
	var returned atomic.Uint64 // the highest number that an Update has returned
	for range goroutines {
		wg.Go(func() {
			for range times {
				before := returned.Load()
				n, err := updateStore(ctx, s, func(tx Tx) (uint64, error) {
					n, err := getNumber(tx)
					if err != nil {
						return 0, err
					}
					return n + 1, tx.Put([]byte("n"), binary.BigEndian.AppendUint64(nil, n+1))
				})
				if err == nil && n <= before {
					err = fmt.Errorf("an update read less than the %d of an earlier one", before)
				}
				if err != nil {
					errs <- err
					return
				}
				for seen := returned.Load(); seen < n && !returned.CompareAndSwap(seen, n); seen = returned.Load() {
				}
				if seen, err := viewStore(ctx, s, getNumber); err != nil || seen < n {
					errs <- fmt.Errorf("a view reads %d, %v after an update returned %d", seen, err, n)
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return err
	}
	n, err := viewStore(ctx, s, getNumber)
	if want := uint64(goroutines * times); err == nil && n != want {
		err = fmt.Errorf("%d increments made %d", want, n)
	}
	return err
}

func getNumber(tx Tx) (uint64, error) {
	v, ok, err := tx.Get([]byte("n"))
	if err != nil || !ok {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}

func addOne(tx Tx) error {
	n, err := getNumber(tx)
	return errors.Join(err, tx.Put([]byte("n"), binary.BigEndian.AppendUint64(nil, n+1)))
}

func checkNumber(t *testing.T, s Store, want uint64) {
	t.Helper()
	if n, err := viewStore(t.Context(), s, getNumber); n != want || err != nil {
		t.Errorf("there is %d, want %d; %v", n, want, err)
	}
}

func TestIncrementsControl(t *testing.T) {
	t.Parallel()
	s := racyStore{newMemStore(), new(sync.WaitGroup)}
	defer s.Close()
	s.both.Add(2)
	if err := checkIncrements(t.Context(), s, 2, 1); err == nil {
		t.Error("two increments of the same number were not noticed")
	}
}

func testIsolation(t *testing.T, s Store) {
	mustPut(t, s, "a", "1", "b", "1", "c", "1")
	err := s.View(t.Context(), func(tx Tx) error {
		old, _, err := tx.Get([]byte("a"))
		if err != nil {
			return err
		}
		done := make(chan error)
		go func() {
			done <- s.Update(t.Context(), func(tx Tx) error {
				return errors.Join(tx.Put([]byte("a"), []byte("2")), tx.Delete([]byte("b")), tx.Put([]byte("d"), nil))
			})
		}()
		if err := <-done; err != nil {
			return err
		}
		want := map[string]string{"a": "1", "b": "1", "c": "1"}
		if diff := cmp.Diff(want, contents(t, tx)); diff != "" || string(old) != "1" {
			t.Errorf("a view has changed: (-want +got)\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkContents(t, s, map[string]string{"a": "2", "c": "1", "d": ""})
}

// testShared reads one state in several goroutines while another transaction overwrites
// it.
func testShared(t *testing.T, s Store) {
	const keys = 500
	for round := range 3 {
		if err := writeAll(t.Context(), s, keys, fmt.Sprint(round)); err != nil {
			t.Fatal(err)
		}
	}
	written := make(chan error, 1)
	err := s.View(t.Context(), func(tx Tx) error {
		if _, _, err := tx.Get([]byte("k")); err != nil { // from here on it is one state, at the latest
			return err
		}
		txs := shares(tx, 4)
		if len(txs) > 4 {
			return fmt.Errorf("%d shares", len(txs))
		}
		go func() { written <- writeAll(context.Background(), s, keys, "9") }()
		return parallel.Do(len(txs), 10*len(txs), func(worker, _ int) error {
			n := 0
			for e, err := range txs[worker].Scan([]byte("k"), []byte("l"), false) {
				if err != nil {
					return err
				}
				value, ok, err := txs[worker].Get(e.Key)
				if err != nil || !ok || string(value) != "2" || string(e.Value) != "2" {
					return fmt.Errorf("share %d: %s is %q and %q, %v, %v", worker, e.Key, e.Value, value, ok, err)
				}
				n++
			}
			if n != keys {
				return fmt.Errorf("share %d: %d keys", worker, n)
			}
			return nil
		})
	})
	if err := errors.Join(err, <-written); err != nil {
		t.Error(err)
	}
}

// writeAll sets a number of keys to a value, in one transaction.
func writeAll(ctx context.Context, s Store, keys int, value string) error {
	return s.Update(ctx, func(tx Tx) error {
		for i := range keys {
			if err := tx.Put(fmt.Appendf(nil, "k%03d", i), []byte(value)); err != nil {
				return err
			}
		}
		return nil
	})
}

// testDryRun checks that writes to an overlay inside a View are read back from it, and
// not stored.
func testDryRun(t *testing.T, s Store) {
	mustPut(t, s, "a", "1", "b", "1")
	err := s.View(t.Context(), func(tx Tx) error {
		o := newOverlay(tx)
		err := errors.Join(o.Put([]byte("a"), []byte("2")), o.Delete([]byte("b")), o.Put([]byte("c"), []byte("2")))
		if diff := cmp.Diff(map[string]string{"a": "2", "c": "2"}, contents(t, o)); diff != "" {
			t.Errorf("overlay: (-want +got)\n%s", diff)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	checkContents(t, s, map[string]string{"a": "1", "b": "1"})
}

// testSharedBatch checks that functions committed together each see the writes of the
// earlier ones, except for those that failed.
func testSharedBatch(t *testing.T, s Store) {
	mustPut(t, s, "log", "", "gone", "")
	add := func(word string, result error) func(Tx) error {
		return func(tx Tx) error {
			log, _, err := tx.Get([]byte("log"))
			return errors.Join(err, tx.Put([]byte("log"), append(bytes.Clone(log), word...)), tx.Put([]byte(word), nil), result)
		}
	}
	release := occupy(t, s)
	first := submitUpdate(t, s, add("a", nil))
	second := submitUpdate(t, s, add("b", errTest))
	third := submitUpdate(t, s, func(tx Tx) error { panic("third") })
	fourth := submitUpdate(t, s, add("c", nil))
	fifth := submitUpdate(t, s, func(tx Tx) error { return errors.Join(tx.Delete([]byte("gone")), tx.Delete([]byte("a"))) })
	release()
	for i, want := range []error{nil, errTest, errPanicked, nil, nil} {
		got := []<-chan error{first, second, third, fourth, fifth}[i]
		if err := <-got; !errors.Is(err, want) {
			t.Errorf("update %d of the batch: %v, want %v", i+1, err, want)
		}
	}
	checkContents(t, s, map[string]string{"log": "ac", "c": ""})
}

func testPanic(t *testing.T, s Store) {
	mustPut(t, s, "k", "v")
	for name, run := range map[string]func(context.Context, func(Tx) error) error{"View": s.View, "Update": s.Update} {
		func() {
			defer func() {
				p := recover()
				if !strings.Contains(fmt.Sprint(p), errTest.Error()) {
					t.Errorf("%s panics with %v", name, p)
				}
				if err, ok := p.(error); !ok || !errors.Is(err, errTest) {
					t.Errorf("the panic of %s has lost its value: %v", name, p)
				}
				if name == "Update" && !strings.Contains(fmt.Sprint(p), "panicForTest") {
					t.Errorf("the panic of %s does not say where it began: %v", name, p)
				}
			}()
			run(t.Context(), func(tx Tx) error {
				tx.Put([]byte("k"), []byte("trace"))
				panicForTest()
				return nil
			})
			t.Errorf("%s returned", name)
		}()
	}
	checkContents(t, s, map[string]string{"k": "v"})
	mustPut(t, s, "k", "still works")
}

func panicForTest() { panic(errTest) }

// testGoexit checks that a function may end its goroutine, as t.Fatal does. That ends the
// caller's goroutine.
func testGoexit(t *testing.T, s Store) {
	ended := make(chan bool)
	go func() {
		returned := false
		defer func() { ended <- returned }()
		s.Update(t.Context(), func(tx Tx) error {
			tx.Put([]byte("k"), []byte("trace"))
			runtime.Goexit()
			return nil
		})
		returned = true
	}()
	if <-ended {
		t.Error("Update returned")
	}
	checkContents(t, s, nil)
	mustPut(t, s, "k", "still works")
}

func testContext(t *testing.T, s Store) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, run := range []func(context.Context, func(Tx) error) error{s.View, s.Update} {
		err := run(over, func(Tx) error { t.Error("a function ran though its context was over"); return nil })
		if err != context.Canceled {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
	}

	// A caller gives up while it waits for its turn.
	ctx, cancel := context.WithCancel(t.Context())
	release := occupy(t, s)
	waiting := submitUpdateContext(ctx, t, s, func(Tx) error { t.Error("a function ran after its caller had given up"); return nil })
	after := submitUpdate(t, s, func(tx Tx) error { return tx.Put([]byte("after"), nil) })
	cancel()
	if err := <-waiting; err != context.Canceled {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	release()
	if err := <-after; err != nil {
		t.Error(err)
	}

	// Update waits for a function that has begun, even if its context ends.
	ctx, cancel = context.WithCancel(t.Context())
	err := s.Update(ctx, func(tx Tx) error {
		cancel()
		return tx.Put([]byte("begun"), nil)
	})
	if err != nil {
		t.Error(err)
	}
	checkContents(t, s, map[string]string{"after": "", "begun": ""})
}

func testQueueFull(t *testing.T, s Store) {
	release := occupy(t, s)
	var waiting []<-chan error
	for range cap(queueOf(t, s).waiting) {
		waiting = append(waiting, submitUpdate(t, s, addOne))
	}
	err := s.Update(t.Context(), func(Tx) error { t.Error("a function ran though the queue was full"); return nil })
	if !errors.Is(err, errUnavailable) {
		t.Errorf("error %v, want %v", err, errUnavailable)
	}
	if _, err := viewStore(t.Context(), s, getNumber); err != nil {
		t.Errorf("View when the queue is full: %v", err)
	}
	release()
	for _, c := range waiting {
		if err := <-c; err != nil {
			t.Error(err)
		}
	}
	checkNumber(t, s, uint64(len(waiting)))
	mustPut(t, s, "k", "room again")
}

func testClose(t *testing.T, s Store) {
	release := occupy(t, s)
	waiting := submitUpdate(t, s, func(tx Tx) error { return tx.Put([]byte("k"), nil) })
	inView, endView := make(chan bool), make(chan bool)
	viewed := make(chan error)
	var once sync.Once
	go func() {
		viewed <- s.View(t.Context(), func(tx Tx) error {
			once.Do(func() { close(inView) })
			<-endView
			_, _, err := tx.Get([]byte("k"))
			return err
		})
	}()
	<-inView
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	q := queueOf(t, s)
	await(func() bool {
		q.mu.RLock()
		defer q.mu.RUnlock()
		return q.closed
	})
	release()
	if err := <-waiting; err != nil {
		t.Errorf("an update that waited when Close was called: %v", err)
	}
	close(endView)
	if err := <-viewed; err != nil {
		t.Errorf("a view that was open when Close was called: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := s.View(t.Context(), func(Tx) error { return nil }); err != errClosed {
		t.Errorf("View after Close: %v", err)
	}
	if err := s.Update(t.Context(), func(Tx) error { return nil }); err != errClosed {
		t.Errorf("Update after Close: %v", err)
	}
	if err := s.Close(); err != errClosed {
		t.Errorf("Close after Close: %v", err)
	}
}

var (
	errTest     = errors.New("error of a test's function")
	errPanicked = errors.New("panicked")
)
