package disk

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"sello/internal/ordered"
)

// A courtesy lets writes go before a long reader, which calls rest again and again.
// While much is written, the reader works a seventh of the time, since writes may wait
// for the processors or for the disk. Goroutines that share a courtesy rest together.
type courtesy struct {
	mu      sync.Mutex
	written *atomic.Uint64 // entries, since the File was opened
	before  uint64         // entries at the last look
	looked  time.Time
	began   time.Time // when this turn of work began
	calls   int
}

const (
	turnCalls   = 16                   // of rest between two looks at the clock
	turnWork    = 2 * time.Millisecond // at least, between two rests
	restShare   = 6                    // times as long as the work before
	longestRest = 250 * time.Millisecond
	busyEvery   = time.Millisecond // much is written if entries come more often than this
)

func newCourtesy(written *atomic.Uint64) *courtesy {
	now := time.Now()
	return &courtesy{written: written, before: written.Load(), looked: now, began: now}
}

// rest sleeps if a turn of work is over and much was written since the last one.
func (c *courtesy) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls++; c.calls%turnCalls != 0 {
		return
	}
	now := time.Now()
	worked := now.Sub(c.began)
	if worked < turnWork {
		return
	}
	n := c.written.Load()
	busy := n-c.before > uint64(now.Sub(c.looked)/busyEvery)
	c.before, c.looked, c.began = n, now, now
	if busy {
		time.Sleep(min(restShare*worked, longestRest))
		c.began = time.Now()
	}
}

// A courteousContext rests whenever its Err is called. Long work calls that again and
// again.
type courteousContext struct {
	context.Context
	*courtesy
}

func (c courteousContext) Err() error {
	c.rest()
	return c.Context.Err()
}

// another returns a courtesy to the same writes for another goroutine; nil if c is nil.
func (c *courtesy) another() *courtesy {
	if c == nil {
		return nil
	}
	return newCourtesy(c.written)
}

// scan rests after each entry.
func (c *courtesy) scan(found iter.Seq2[ordered.Entry, error]) iter.Seq2[ordered.Entry, error] {
	return func(yield func(ordered.Entry, error) bool) {
		for e, err := range found {
			if c.rest(); !yield(e, err) {
				return
			}
		}
	}
}
