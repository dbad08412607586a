package main

import (
	"runtime"
	"time"
)

// A pacer lets others have the processor where what is done takes long, so that
// small requests do not wait behind a long list. It begins with the first pause.
type pacer struct {
	n     int
	since time.Time
}

const (
	// longTurn is how long one may have the processor before it is worth it to let
	// others have it: that wakes another one.
	longTurn  = 200 * time.Microsecond
	lookEvery = 16 // pauses
)

// pause is called for each element.
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
