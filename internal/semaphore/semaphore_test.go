package semaphore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestSemaphore: who waits gets all units or, in time, the error, and then holds none.
func TestSemaphore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("full")
		s, begun := New(3, full), time.Now()
		take := func(ctx context.Context, units, want int, wantErr error, after time.Duration) {
			t.Helper()
			if n, err := s.Take(ctx, units, time.Second); n != want || err != wantErr || time.Since(begun) != after {
				t.Errorf("%d, %v after %v, want %d, %v after %v", n, err, time.Since(begun), want, wantErr, after)
			}
		}
		take(t.Context(), 2, 2, nil, 0)
		take(t.Context(), 2, 0, full, time.Second)
		go func() { time.Sleep(time.Second / 2); s.Give(2) }()
		take(t.Context(), 9, 3, nil, 3*time.Second/2) // more than there are: the whole semaphore
		ended, end := context.WithCancel(t.Context())
		end()
		take(ended, 1, 0, context.Canceled, 3*time.Second/2)
		if n := s.Taken(); n != 3 {
			t.Errorf("%d taken with all 3 in use", n)
		}
		if s.Give(3); s.Taken() != 0 {
			t.Errorf("%d taken with none in use", s.Taken())
		}
		s, begun = New(0, full), time.Now()
		take(t.Context(), 1, 0, full, time.Second)
	})
}
