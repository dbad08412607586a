package disk

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestCourtesy works beside writes of several rates. It rests for a bounded time if
// there are many, and not at all if there are few.
func TestCourtesy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		each   time.Duration // work between two looks at the clock
		perMs  uint64        // entries written
		want   int           // total time over work
		reason string
	}{
		{time.Millisecond, 0, 1, "nothing is written"},
		{time.Millisecond, 1, 1, "little is written"},
		{time.Millisecond, 2, 1 + restShare, "much is written"},
		{time.Second / 2, 50, 1, "no rest is longer than a quarter of a second"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var written atomic.Uint64
			const turns = 100
			c := newCourtesy(&written)
			began := time.Now()
			for range turns {
				for range turnCalls - 1 {
					c.rest()
				}
				time.Sleep(test.each)
				written.Store(test.perMs * uint64(time.Since(began)/time.Millisecond))
				c.rest()
			}
			took := time.Since(began)
			if took/(turns*test.each) != time.Duration(test.want) {
				t.Errorf("%v of work took %v, want %d times as long (%s)", turns*test.each, took, test.want, test.reason)
			}
		})
	}
}
