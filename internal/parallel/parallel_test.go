package parallel

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

func TestDo(t *testing.T) {
	for _, workers := range []int{0, 1, 2, 7} {
		var done [20]atomic.Int64
		if err := Do(workers, len(done), func(worker, task int) error {
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

// TestDoError: the first task's error is returned whichever goroutine is faster, and
// not all tasks are begun after it.
func TestDoError(t *testing.T) {
	second := make(chan struct{})
	var begun atomic.Int64
	err := Do(2, 1000, func(_, task int) error {
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

func TestDoPanic(t *testing.T) {
	for _, bad := range []int{0, 1} {
		other := make(chan struct{})
		panicked := func() (p any) {
			defer func() { p = recover() }()
			Do(2, 2, func(_, task int) error {
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
