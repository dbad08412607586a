package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

func TestInParallel(t *testing.T) {
	for _, workers := range []int{0, 1, 2, 7} {
		var done [20]atomic.Int64
		if err := inParallel(workers, len(done), func(worker, task int) error {
			if worker < 0 || worker >= max(workers, 1) {
				t.Errorf("goroutine %d of %d", worker, workers)
			}
			done[task].Add(1)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for task := range done {
			if n := done[task].Load(); n != 1 {
				t.Errorf("%d goroutines: task %d was done %d times", workers, task, n)
			}
		}
	}
}

// TestInParallelError: whoever is faster, the first task's error is returned, and
// not all are begun after it.
func TestInParallelError(t *testing.T) {
	second := make(chan struct{})
	var begun atomic.Int64
	err := inParallel(2, 1000, func(_, task int) error {
		begun.Add(1)
		switch task {
		case 0:
			<-second // task 1 fails first
			return errors.New("first")
		case 1:
			close(second)
			return errors.New("second")
		}
		return nil
	})
	if err == nil || err.Error() != "first" {
		t.Errorf("got %v, want the first task's error", err)
	}
	if begun.Load() == 1000 {
		t.Error("all tasks were begun after an error")
	}
}

func TestInParallelPanic(t *testing.T) {
	for _, bad := range []int{0, 1} {
		other := make(chan struct{})
		panicked := func() (p any) {
			defer func() { p = recover() }()
			inParallel(2, 2, func(_, task int) error {
				if task != bad {
					<-other // both goroutines have one
					return nil
				}
				close(other)
				panic(fmt.Sprint("task ", task))
			})
			return nil
		}()
		if want := fmt.Sprint("task ", bad); panicked != want {
			t.Errorf("got %v, want %v", panicked, want)
		}
	}
}

// testShared reads one state on several goroutines, while it is written over.
func testShared(t *testing.T, s Store) {
	const keys = 500
	for round := range 3 {
		if err := writeAll(t.Context(), s, keys, fmt.Sprint(round)); err != nil {
			t.Fatal(err)
		}
	}
	written := make(chan error, 1)
	err := s.View(t.Context(), func(tx Tx) error {
		txs := shares(tx, 4)
		if len(txs) > 4 {
			return fmt.Errorf("%d shares", len(txs))
		}
		go func() { written <- writeAll(context.Background(), s, keys, "9") }()
		return inParallel(len(txs), 10*len(txs), func(worker, _ int) error {
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

// writeAll sets so many keys to a value, in one transaction.
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
