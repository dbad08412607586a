// Package wallclocktest has a machine whose clocks a test sets.
package wallclocktest

import (
	"math/rand/v2"
	"time"

	"sello/internal/wallclock"
)

// A Machine is a machine whose clocks the test sets.
type Machine struct {
	Wall      time.Time
	Up, Slept time.Duration // since the machine was started
	NotAwake  bool          // no clock counts sleep
	Synced    bool
	Unsure    bool // the kernel does not say whether the clock is synchronized
	Asked     int  // how often the kernel was asked for that
}

// Read reads the two clocks.
func (m *Machine) Read() wallclock.Reading { return wallclock.Reading{Wall: m.Wall, Even: m.Up} }

// Awake reads the clock that counts sleep.
func (m *Machine) Awake() (time.Duration, bool) { return m.Up + m.Slept, !m.NotAwake }

// Synchronized says what the kernel says.
func (m *Machine) Synchronized() (yes, known bool) {
	m.Asked++
	return m.Synced, !m.Unsure
}

// Pass lets time go on while the machine is awake.
func (m *Machine) Pass(d time.Duration) { m.Wall, m.Up = m.Wall.Add(d), m.Up+d }

// Sleep lets time go on while the machine is suspended.
func (m *Machine) Sleep(d time.Duration) { m.Wall, m.Slept = m.Wall.Add(d), m.Slept+d }

// RandomSpan returns a span of time of any order of magnitude.
func RandomSpan(rnd *rand.Rand) time.Duration {
	const day = 24 * time.Hour
	longest := [...]time.Duration{10 * time.Millisecond, time.Second, time.Hour, 3 * day, 100 * day, 20 * 365 * day}
	return time.Duration(rnd.Int64N(int64(longest[rnd.IntN(len(longest))])))
}

// Meddle changes the machine's clocks at random.
func (m *Machine) Meddle(rnd *rand.Rand) {
	switch rnd.IntN(6) {
	case 0:
		m.Sleep(RandomSpan(rnd))
	case 1:
		m.Wall = m.Wall.Add(RandomSpan(rnd))
	case 2:
		m.Wall = m.Wall.Add(-RandomSpan(rnd))
	case 3:
		m.Synced = rnd.IntN(4) == 0
	default:
		m.Pass(RandomSpan(rnd))
	}
	if y := m.Wall.Year(); y < 1970 || y > 2090 { // keep to years that a kernel accepts
		m.Wall = time.Date(1970+rnd.IntN(120), 1, 1, 0, 0, 0, 0, time.UTC)
	}
}
