package wallclock

import (
	"time"

	"sello/internal/host"
)

// A system is the machine's own clock.
type system struct{ start time.Time }

func newSystem() system { return system{time.Now()} }

func (m system) Read() Reading {
	now := time.Now()
	return Reading{now, now.Sub(m.start)}
}

func (system) Awake() (time.Duration, bool)    { return host.Awake() }
func (system) Synchronized() (yes, known bool) { return host.Synchronized() }
