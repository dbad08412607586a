package main

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// inParallel calls fn for each task from 0 to n-1, begun in that order, on up to
// so many goroutines, the caller's among them. Goroutines are numbered from 0.
//
// After an error no further task is begun. The error that is returned is that
// of the first task, by number, that had one: so it does not depend on who was
// faster. A panic reaches the caller.
func inParallel(workers, n int, fn func(worker, task int) error) error {
	var (
		next   atomic.Int64 // task
		failed atomic.Bool
		wait   sync.WaitGroup
		errs   = make([]error, n)
		panics = make([]any, max(workers, 1))
	)
	work := func(worker int) {
		defer func() {
			if panics[worker] = recover(); panics[worker] != nil {
				failed.Store(true)
			}
		}()
		for !failed.Load() {
			task := int(next.Add(1)) - 1
			if task >= n {
				return
			}
			if errs[task] = fn(worker, task); errs[task] != nil {
				failed.Store(true)
			}
		}
	}
	for worker := 1; worker < min(workers, n); worker++ {
		wait.Go(func() {
			debug.SetPanicOnFault(true) // as a View does on its caller's goroutine
			work(worker)
		})
	}
	work(0)
	wait.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// shares returns up to n Tx of one state, tx the first, each for a goroutine of
// its own: tx alone where there are no others.
func shares(tx Tx, n int) []Tx {
	list := []Tx{tx}
	for shared, ok := tx.(sharedTx); ok && len(list) < n; {
		another := shared.share()
		if another == nil {
			break
		}
		list = append(list, another)
	}
	return list
}
