package main

import (
	"sync"
	"sync/atomic"
	"time"

	"sello/internal/host"
)

// The clock that sello uses (contract §11). A wall clock that is wrong by months
// would expire points for good, or give points that expire too soon. So it is
// judged before anything is written:
//
//	behind  more than an hour before latest, or before the program's own date
//	ahead   since it was last found right it has run an hour more than the clock
//	        that also counts sleep; where that cannot be told (at the start, or
//	        without such a clock), more than 45 days after latest
//	either  more than an hour from the clock of a database that servers share
//	safe    neither; or the kernel says that it is synchronized, and it is not
//	        behind latest
//
// Latest is the latest moment that a committed write carries; it is kept in the
// store (latest.go). While the clock is unsafe, only what an operator asks for is
// written, and time goes on from the last moment that was right.

const (
	clockSlack   = time.Hour           // how large a difference is accepted
	longestClose = 45 * 24 * time.Hour // how long a server may have been off

	// A look at the clock is good for lookInterval, unless the clock jumps by
	// readingSlack or more. Two readings in a row may differ by less than that.
	lookInterval = time.Second
	readingSlack = 100 * time.Millisecond
)

// programDate is the program's own date: that of the oldest Go that builds it,
// 2026-02-10. No right clock is before it.
const programDate instant = 1_770_681_600_000

// A verdict is a judgement on the wall clock.
type verdict string

const (
	clockSafe   verdict = "Safe"
	clockBehind verdict = "Behind"
	clockAhead  verdict = "Ahead"
)

// clockFacts are what the wall clock is judged by.
type clockFacts struct {
	wall   instant
	latest instant // 0: none
	born   instant // the program's own date

	ahead time.Duration // of wall, at the least, is the store's clock; < 0: behind

	// Since the clock was last found right, if compared: how long it has run, and how
	// much time has passed by the clock that also counts sleep.
	compared    bool
	ran, passed time.Duration
}

func (f clockFacts) judge() verdict {
	switch {
	case f.wall < f.born, f.latest != 0 && f.wall < f.latest.add(-clockSlack), f.ahead > clockSlack:
		return clockBehind
	case f.ahead < -clockSlack, f.compared && f.ran > f.passed+clockSlack:
		return clockAhead
	case !f.compared && f.latest != 0 && f.wall > f.latest.add(longestClose):
		return clockAhead
	}
	return clockSafe
}

// A machine is what the clock is read from.
type machine interface {
	read() reading

	// awake reads a clock that runs evenly, also while the machine sleeps; ok is
	// false where there is none.
	awake() (since time.Duration, ok bool)

	// synchronized reports whether the kernel says that another clock keeps the wall
	// clock right; known is false where it does not say.
	synchronized() (yes, known bool)
}

// A reading is one look at the wall clock and at a clock that goes on evenly
// while the machine is awake.
type reading struct {
	wall time.Time
	even time.Duration
}

// A systemClock is the machine's own clock.
type systemClock struct{ start time.Time }

func newSystemClock() systemClock { return systemClock{time.Now()} }

func (m systemClock) read() reading {
	now := time.Now()
	return reading{now, now.Sub(m.start)}
}

func (systemClock) awake() (time.Duration, bool)    { return host.Awake() }
func (systemClock) synchronized() (yes, known bool) { return host.Synchronized() }

// A wallClock tells what moment it is. It is safe for concurrent use, and takes no
// lock unless a look at the clock is due.
type wallClock struct {
	machine machine
	trusted bool                 // whatever the machine says is right
	movable bool                 // a sandbox's: it jumps while requests are under way
	changed func(*clockState)    // called when the verdict changes, unless nil
	ahead   func() time.Duration // clockAhead of a sharedStore; nil: the store has no clock

	latest atomic.Int64 // instant
	state  atomic.Pointer[clockState]

	mu    sync.Mutex  // held while state is replaced
	born  instant     // the program's own date, or an earlier one that was accepted
	right *clockState // what the clock is compared with; nil until it is found right
}

// A clockState is the result of one look at the clock. It is never changed.
type clockState struct {
	reading
	since time.Duration // by the clock that counts sleep, or by the even one
	lead  time.Duration // how far the moment is ahead of the wall clock
	verdict

	// contradicted: the kernel says that the clock is right, and latest says that it
	// is behind. Then latest is wrong and has to be lowered in the store first.
	contradicted bool
}

func newWallClock(m machine) *wallClock { return &wallClock{machine: m, born: programDate} }

var trustedState = &clockState{verdict: clockSafe}

// read reads the clock and returns its current state.
func (c *wallClock) read() (reading, *clockState) {
	r := c.machine.read()
	if c.trusted {
		return r, trustedState
	}
	if s := c.state.Load(); s != nil && s.holds(r) {
		return r, s
	}
	return c.look()
}

// moment returns the moment of a reading: that of the wall clock, unless it is unsafe
// or was set back.
func (s *clockState) moment(r reading) time.Time { return r.wall.Add(s.lead) }

// holds reports whether the state is still good for a reading, without another look.
func (s *clockState) holds(r reading) bool {
	ran := r.even - s.even
	jump := time.Duration(r.wall.UnixNano()-s.wall.UnixNano()) - ran
	return 0 <= ran && ran < lookInterval && -readingSlack < jump && jump < readingSlack
}

// now returns the moment as of which requests are answered.
func (c *wallClock) now() time.Time {
	r, s := c.read()
	return s.moment(r)
}

// errClockUnsafe refuses a write while the clock is unsafe.
func errClockUnsafe() *apiError { return newError(codeClockUnsafe).header("Retry-After", "60") }

// forWriting returns the moment that a write carries, or clock_unsafe.
func (c *wallClock) forWriting() (instant, error) {
	r, s := c.read()
	if s.verdict != clockSafe {
		return 0, errClockUnsafe()
	}
	return max(instantOf(s.moment(r)), instant(c.latest.Load())), nil
}

// isSafe reports whether anything may be written.
func (c *wallClock) isSafe() bool {
	_, s := c.read()
	return s.verdict == clockSafe
}

// wrote notes the moment of a committed write.
func (c *wallClock) wrote(at instant) {
	for !c.trusted {
		latest := c.latest.Load()
		if int64(at) <= latest || c.latest.CompareAndSwap(latest, int64(at)) {
			return
		}
	}
}

// start begins with the store's latest moment, 0 if it has none. There is no earlier
// look to compare the clock with.
func (c *wallClock) start(latest instant) {
	if c.trusted {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest.Store(int64(latest))
	c.right = nil
	c.state.Store(nil)
}

// accept takes the wall clock as right. at is the moment that latest was set to.
func (c *wallClock) accept(at instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest.Store(int64(at))
	c.born = min(c.born, at)
	c.right = nil
	c.replace(c.machine.read())
}

// look takes another look at the clock, unless another goroutine has just done so.
func (c *wallClock) look() (reading, *clockState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.machine.read()
	if s := c.state.Load(); s != nil && s.holds(r) {
		return r, s
	}
	return r, c.replace(r)
}

// replace judges a reading and stores the new state. The caller holds mu.
func (c *wallClock) replace(r reading) *clockState {
	before, after := c.state.Load(), c.judge(r)
	c.state.Store(after)
	was := clockSafe
	if before != nil {
		was = before.verdict
	}
	if c.changed != nil && was != after.verdict {
		c.changed(after)
	}
	return after
}

// judge returns the state that a reading leads to. The caller holds mu.
func (c *wallClock) judge(r reading) *clockState {
	s := &clockState{reading: r, since: r.even}
	since, evenAsleep := c.machine.awake()
	if evenAsleep {
		s.since = since
	}
	wall, latest := instantOf(r.wall), instant(c.latest.Load())
	f := clockFacts{wall: wall, latest: latest, born: c.born}
	if c.ahead != nil {
		f.ahead = c.ahead()
	}
	if c.right != nil && evenAsleep {
		f.compared, f.ran, f.passed = true, wall.sub(instantOf(c.right.wall)), s.since-c.right.since
	}
	if s.verdict = f.judge(); s.verdict != clockSafe {
		if yes, _ := c.machine.synchronized(); yes {
			if s.contradicted = latest != 0 && wall < latest.add(-clockSlack); !s.contradicted {
				s.verdict, c.right = clockSafe, nil
			}
		}
	}
	if s.verdict == clockSafe && c.right == nil {
		c.right = s
	}
	s.lead = c.goesOn(s).sub(wall)
	switch {
	case s.verdict != clockSafe:
	case wall > latest.add(-readingSlack): // forWriting never goes below latest
		s.lead = 0
	case s.lead > clockSlack: // set back by more than an hour, and latest is older than the last look
		s.lead = latest.sub(wall)
	}
	return s
}

// goesOn returns the moment that it would be if the clock had run evenly since the
// last look. Without a last look, it is latest or born, whichever is later.
func (c *wallClock) goesOn(s *clockState) instant {
	latest := instant(c.latest.Load())
	before := c.state.Load()
	if before == nil {
		return max(latest, c.born)
	}
	return max(latest, instantOf(before.moment(before.reading)).add(s.since-before.since))
}
