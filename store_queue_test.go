package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sello/internal/ordered"
)

var errNoSpace = fmt.Errorf("%w: disk full", errUnavailable)

// queueErrorCases are failures of a backend, and whether each breaks the queue.
var queueErrorCases = []struct {
	name    string
	backend brokenBatch
	breaks  bool
}{
	{"no space to begin", brokenBatch{begin: errNoSpace}, false},
	{"no space to commit", brokenBatch{end: errNoSpace}, false},
	{"cannot begin", brokenBatch{begin: errTest}, true},
	{"unknown outcome", brokenBatch{end: errTest}, true},
}

// TestQueueErrors checks what a writeQueue does when its backend fails.
func TestQueueErrors(t *testing.T) {
	t.Parallel()
	for _, test := range queueErrorCases {
		t.Run(test.name, func(t *testing.T) {
			backend := test.backend
			rolledBack := 0
			backend.rolledBack = &rolledBack
			s := newMemStore().(*memStore)
			defer s.Close()
			// No data race: the writer reads begin only after it has taken an update.
			var once sync.Once
			good, begun, gate := s.queue.begin, make(chan bool), make(chan bool)
			s.queue.begin = func(after batch) (batch, error) {
				once.Do(func() { close(begun) })
				<-gate
				return backend, backend.begin
			}
			write := func(tx Tx) error { return tx.Put([]byte("k"), []byte("v")) }
			calls := []<-chan error{startUpdate(t.Context(), s, func(Tx) error { return errTest })}
			<-begun
			calls = append(calls,
				submitUpdate(t, s, func(Tx) error { return nil }),
				submitUpdate(t, s, write),
				submitUpdate(t, s, write),
			)
			close(gate)
			for i, c := range calls {
				if err := <-c; !errors.Is(err, errUnavailable) {
					t.Errorf("update %d: %v, want %v", i+1, err, errUnavailable)
				}
			}
			if rolledBack > 0 {
				t.Errorf("rolled back %d times", rolledBack)
			}
			s.queue.begin = good
			err := s.Update(t.Context(), write)
			select {
			case cause := <-s.queue.failed:
				if !test.breaks || !errors.Is(cause, errTest) || !errors.Is(err, errUnavailable) {
					t.Errorf("the queue broke because of %v, and Update returned %v", cause, err)
				}
			default:
				if test.breaks || err != nil {
					t.Errorf("the queue did not break, and Update returned %v", err)
				}
			}
			if err := s.View(t.Context(), func(Tx) error { return nil }); err != nil {
				t.Errorf("View: %v", err)
			}
		})
	}
}

// A brokenBatch fails to begin or to commit.
type brokenBatch struct {
	memTx
	begin, end error
	rolledBack *int
}

func (b brokenBatch) commit([]ordered.Change) error { return b.end }

func (b brokenBatch) check() error { return nil }

func (b brokenBatch) rollback() { *b.rolledBack++ }

// storingTwo returns a store that is committing a group of two updates, each of which
// adds one. The commit waits for its outcome: an error, or nil to go on.
func storingTwo(t *testing.T) (s *memStore, calls []<-chan error, outcome chan<- error) {
	t.Helper()
	s = newMemStore().(*memStore)
	committing, told := make(chan bool), make(chan error)
	good := s.queue.begin
	first := 0
	s.queue.begin = func(after batch) (batch, error) {
		b, err := good(after)
		if first++; first == 1 {
			b = slowBatch{b.(memBatch), committing, told}
		}
		return b, err
	}
	started, end := make(chan bool), make(chan bool)
	calls = append(calls, startUpdate(t.Context(), s, func(tx Tx) error {
		close(started)
		<-end
		return addOne(tx)
	}))
	<-started
	calls = append(calls, submitUpdate(t, s, addOne))
	close(end)
	<-committing
	return s, calls, told
}

// TestQueueFailedCommit fails a commit while the next group is filled on top of it. That
// group fails too, and the update after it sees the writes of neither.
func TestQueueFailedCommit(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{true, false} {
		s, calls, outcome := storingTwo(t)
		saw := make(chan uint64, 1)
		calls = append(calls, startUpdate(t.Context(), s, func(tx Tx) error {
			n, err := getNumber(tx)
			saw <- n
			return errors.Join(err, addOne(tx))
		}))
		if n := <-saw; n != 2 {
			t.Errorf("the third update saw %d", n)
		}
		want, n := error(nil), uint64(3)
		if fails {
			want, n = errUnavailable, 0
		}
		outcome <- want
		for i, c := range calls {
			if err := <-c; !errors.Is(err, want) {
				t.Errorf("update %d: %v, want %v", i+1, err, want)
			}
		}
		checkNumber(t, s, n)
		if err := s.Update(t.Context(), addOne); err != nil {
			t.Error(err)
		}
		checkNumber(t, s, n+1)
		s.Close()
	}
}

// TestQueueAfterFailedCommit makes an update after a failed commit was answered, but
// before the writer knows of it. The group being filled fails, and the new update
// succeeds.
func TestQueueAfterFailedCommit(t *testing.T) {
	t.Parallel()
	s, calls, outcome := storingTwo(t)
	defer s.Close()
	started, end := make(chan bool), make(chan bool)
	next := startUpdate(t.Context(), s, func(tx Tx) error {
		close(started)
		<-end
		return addOne(tx)
	})
	<-started
	outcome <- errUnavailable
	for i, c := range calls {
		if err := <-c; !errors.Is(err, errUnavailable) {
			t.Errorf("update %d: %v", i+1, err)
		}
	}
	after := submitUpdate(t, s, addOne)
	close(end)
	if err := <-next; !errors.Is(err, errUnavailable) {
		t.Errorf("the update on top of them: %v", err)
	}
	if err := <-after; err != nil {
		t.Errorf("the one after they were answered: %v", err)
	}
	checkNumber(t, s, 1)
}

// A slowBatch closes committing when its commit begins, and then waits for the outcome.
type slowBatch struct {
	memBatch
	committing chan bool
	outcome    chan error
}

func (b slowBatch) commit(changes []ordered.Change) error {
	close(b.committing)
	if err := <-b.outcome; err != nil {
		return err
	}
	return b.memBatch.commit(changes)
}

// TestQueueReadsOnly checks that a batch without writes is not committed.
func TestQueueReadsOnly(t *testing.T) {
	t.Parallel()
	s := newMemStore().(*memStore)
	defer s.Close()
	rolledBack := 0
	s.queue.begin = func(after batch) (batch, error) { return brokenBatch{end: errTest, rolledBack: &rolledBack}, nil }
	if err := s.Update(t.Context(), func(Tx) error { return nil }); err != nil || rolledBack != 1 {
		t.Errorf("error %v, rolled back %d times", err, rolledBack)
	}
}

// A losingBatch loses its turn as often as losses says, and then commits. Whenever it loses,
// somebody else has added one.
type losingBatch struct {
	memBatch
	others *memStore // the same state
	losses *int
}

func (b losingBatch) lose() error {
	if *b.losses == 0 {
		return nil
	}
	*b.losses--
	if err := b.others.Update(context.Background(), addOne); err != nil {
		return err
	}
	return errTurnLost
}

func (b losingBatch) check() error { return b.lose() }

func (b losingBatch) commit(changes []ordered.Change) error {
	if err := b.lose(); err != nil {
		return err
	}
	return b.memBatch.commit(changes)
}

// losing returns a store that loses its turns to another one of the same state.
func losing(losses *int) (s, others *memStore) {
	others = newMemStore().(*memStore)
	s = newMemStore().(*memStore)
	s.queue.begin = func(batch) (batch, error) {
		return losingBatch{memBatch{*others.state.Load(), others}, others, losses}, nil
	}
	return s, others
}

// TestQueueLostTurns loses turns to another process: of a single update, of a group with another
// filled on top, and of one that writes nothing. Each function runs again on what the other
// process has written.
func TestQueueLostTurns(t *testing.T) {
	t.Parallel()
	losses := 3
	s, others := losing(&losses)
	defer s.Close()
	defer others.Close()
	if err := s.Update(t.Context(), addOne); err != nil {
		t.Error(err)
	}
	checkNumber(t, others, 4) // three by the others

	losses = 2
	seen, err := updateStore(t.Context(), s, func(tx Tx) (uint64, error) {
		n, err := getNumber(tx)
		return n, errors.Join(err, errTest)
	})
	if err == nil || seen != 0 || losses != 0 {
		t.Errorf("a refusal: %d, %v; %d turns left to lose", seen, err, losses)
	}
	losses = 1
	got := uint64(0)
	err = s.Update(t.Context(), func(tx Tx) (err error) { got, err = getNumber(tx); return err })
	if err != nil || got != 7 {
		t.Errorf("an update that only reads was told %d, %v; the others have made it 7", got, err)
	}

	losses = 40
	release := occupy(t, s)
	var calls []<-chan error
	exited := make(chan bool)
	for i := range 3 * enoughCalls {
		if i == 5 { // it ends the goroutine, and those after it must not be lost
			go func() {
				defer close(exited)
				s.Update(context.Background(), func(Tx) error { runtime.Goexit(); return nil })
			}()
		}
		calls = append(calls, submitUpdate(t, s, addOne))
	}
	release()
	for _, c := range calls {
		if err := <-c; err != nil {
			t.Error(err)
		}
	}
	<-exited
	checkNumber(t, others, 7+40+3*enoughCalls)
}

// TestQueueLostForLong loses every turn: the update is told so after mostLost.
func TestQueueLostForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		losses := 1 << 30
		s, others := losing(&losses)
		s.queue.begin = func(batch) (batch, error) {
			time.Sleep(time.Second)
			return losingBatch{memBatch{*others.state.Load(), others}, others, &losses}, nil
		}
		began := time.Now()
		if err := s.Update(t.Context(), addOne); !errors.Is(err, errUnavailable) || errors.Is(err, errBusy) {
			t.Error(err)
		}
		if took := time.Since(began); took < mostLost || took > 2*mostLost {
			t.Errorf("it took %v", took)
		}
		losses = 0
		if err := s.Update(t.Context(), addOne); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		s.Close()
		others.Close()
	})
}

// occupy keeps the writer of s busy until release is called.
func occupy(t testing.TB, s Store) (release func()) {
	t.Helper()
	started, end := make(chan bool), make(chan bool)
	var once sync.Once
	done := make(chan error)
	go func() {
		done <- s.Update(context.Background(), func(Tx) error {
			once.Do(func() { close(started) })
			<-end
			return nil
		})
	}()
	<-started
	return func() {
		t.Helper()
		close(end)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// startUpdate calls Update in a goroutine. A panic becomes errPanicked.
func startUpdate(ctx context.Context, s Store, fn func(Tx) error) <-chan error {
	result := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				result <- fmt.Errorf("%w: %v", errPanicked, p)
			}
		}()
		result <- s.Update(ctx, fn)
	}()
	return result
}

// submitUpdate is startUpdate for a store whose writer is busy. It returns when the
// update waits in the queue.
func submitUpdate(t testing.TB, s Store, fn func(Tx) error) <-chan error {
	t.Helper()
	return submitUpdateContext(t.Context(), t, s, fn)
}

func submitUpdateContext(ctx context.Context, t testing.TB, s Store, fn func(Tx) error) <-chan error {
	t.Helper()
	q := queueOf(t, s)
	before := len(q.waiting)
	result := startUpdate(ctx, s, fn)
	await(func() bool { return len(q.waiting) > before })
	return result
}

// queueOf returns the queue of the backend below s.
func queueOf(t testing.TB, s Store) *writeQueue {
	t.Helper()
	switch s := s.(type) {
	case openedStore:
		return s.writes()
	case twiceStore:
		return queueOf(t, s.Store)
	case *flakyStore:
		return queueOf(t, s.Store)
	}
	t.Fatalf("unknown store %T", s)
	return nil
}

// await returns when cond holds. If it never does, the test runs into its deadline.
func await(cond func() bool) {
	for !cond() {
		runtime.Gosched()
	}
}
