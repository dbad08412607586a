package main

import (
	"runtime"
	"time"
)

// A pacer yields the processor during long work, so that small requests do not wait
// behind a long list. Its time begins with the first look at the clock.
type pacer struct {
	n     int
	since time.Time
}

const (
	// longTurn is how long work may keep the processor. Yielding more often is not
	// worth its cost: each yield wakes another processor.
	longTurn  = 200 * time.Microsecond
	lookEvery = 16 // pauses between two looks at the clock
)

// pause yields if the turn is over. The caller calls it for each element.
func (p *pacer) pause() {
	if p.n++; p.n%lookEvery > 0 {
		return
	}
	switch now := time.Now(); {
	case p.since.IsZero():
		p.since = now
	case now.Sub(p.since) > longTurn:
		runtime.Gosched()
		p.since = time.Now()
	}
}
