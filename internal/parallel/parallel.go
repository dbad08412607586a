// Package parallel shares tasks out among goroutines, and repeats them at intervals.
package parallel

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Do calls fn for each task from 0 to n-1, on up to workers goroutines, the caller's
// among them. Tasks are begun in that order. Goroutines are numbered from 0.
//
// After an error no further task is begun. Do returns the error of the first task, by
// number, that failed, so it does not depend on which goroutine was faster. A panic
// reaches the caller.
func Do(workers, n int, fn func(worker, task int) error) error {
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

// Every calls do after each interval, until ctx ends.
func Every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}
