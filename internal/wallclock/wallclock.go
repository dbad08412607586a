// Package wallclock judges whether the machine's clock can be trusted, and tells what moment it
// is also where it cannot.
//
// A wall clock that is wrong by months would end for good what has an end, or make what ends too
// soon. So it is judged before anything is written:
//
//	behind  more than an hour before latest, or before the program's own date
//	ahead   since it was last found right it has run an hour more than the clock
//	        that also counts sleep; where that cannot be told (at the start, or
//	        without such a clock), more than 45 days after latest
//	either  more than an hour from the clock of a store that servers share
//	safe    neither; or the kernel says that it is synchronized, and it is not
//	        behind latest
//
// Latest is the latest moment that a committed write carries; the caller keeps it. While the
// clock is unsafe, time goes on from the last moment that was right. Moments are milliseconds
// since 1970.
package wallclock

import (
	"sync"
	"sync/atomic"
	"time"
)

// Slack is how large a difference is accepted.
const Slack = time.Hour

const (
	longestClose = 45 * 24 * time.Hour // how long a server may have been off

	// A look at the clock is good for lookInterval, unless the clock jumps by
	// readingSlack or more. Two readings in a row may differ by less than that.
	lookInterval = time.Second
	readingSlack = 100 * time.Millisecond
)

// A Verdict is a judgement on the wall clock.
type Verdict string

// The verdicts. Only while the clock is Safe may a write take its moment from it.
const (
	Safe   Verdict = "Safe"
	Behind Verdict = "Behind"
	Ahead  Verdict = "Ahead"
)

// facts are what the wall clock is judged by.
type facts struct {
	wall   int64
	latest int64 // 0: none
	born   int64 // the program's own date

	ahead time.Duration // of wall, at the least, is the store's clock; < 0: behind

	// Since the clock was last found right, if compared: how long it has run, and how
	// much time has passed by the clock that also counts sleep.
	compared    bool
	ran, passed time.Duration
}

func (f facts) judge() Verdict {
	switch {
	case f.wall < f.born, f.latest != 0 && f.wall < f.latest-Slack.Milliseconds(), f.ahead > Slack:
		return Behind
	case f.ahead < -Slack, f.compared && f.ran > f.passed+Slack:
		return Ahead
	case !f.compared && f.latest != 0 && f.wall > f.latest+longestClose.Milliseconds():
		return Ahead
	}
	return Safe
}

// A Machine is what the clock is read from.
type Machine interface {
	Read() Reading

	// Awake reads a clock that runs evenly, also while the machine sleeps; ok is
	// false where there is none.
	Awake() (since time.Duration, ok bool)

	// Synchronized reports whether the kernel says that another clock keeps the wall
	// clock right; known is false where it does not say.
	Synchronized() (yes, known bool)
}

// A Reading is one look at the wall clock and at a clock that goes on evenly
// while the machine is awake.
type Reading struct {
	Wall time.Time
	Even time.Duration
}

// A Clock tells what moment it is. It is safe for concurrent use, and takes no
// lock unless a look at the clock is due. T counts milliseconds since 1970.
type Clock[T ~int64] struct {
	Machine Machine
	Trusted bool         // whatever the machine says is right
	Movable bool         // somebody moves the machine's clock on purpose: it jumps at any moment
	Changed func(*State) // called when the verdict changes, unless nil

	// StoreAhead says by how much, at the least, the clock of a store that servers share is
	// ahead of the wall clock. nil: there is none.
	StoreAhead func() time.Duration

	latest atomic.Int64 // moment
	state  atomic.Pointer[State]

	mu    sync.Mutex // held while state is replaced
	born  int64      // the program's own date, or an earlier one that was accepted
	right *State     // what the clock is compared with; nil until it is found right
}

// A State is the result of one look at the clock. It is never changed.
type State struct {
	Reading
	since time.Duration // by the clock that counts sleep, or by the even one
	lead  time.Duration // how far the moment is ahead of the wall clock
	Verdict

	// Contradicted: the kernel says that the clock is right, and latest says that it
	// is behind. Then latest is wrong and has to be lowered in the store first.
	Contradicted bool
}

// New returns the clock of a machine. No right clock is before born.
func New[T ~int64](m Machine, born T) *Clock[T] { return &Clock[T]{Machine: m, born: int64(born)} }

var trustedState = &State{Verdict: Safe}

// Read reads the clock and returns its current state.
func (c *Clock[T]) Read() (Reading, *State) {
	r := c.Machine.Read()
	if c.Trusted {
		return r, trustedState
	}
	if s := c.state.Load(); s != nil && s.holds(r) {
		return r, s
	}
	return c.look()
}

// Moment returns the moment of a reading: that of the wall clock, unless it is unsafe
// or was set back.
func (s *State) Moment(r Reading) time.Time { return r.Wall.Add(s.lead) }

// holds reports whether the state is still good for a reading, without another look.
func (s *State) holds(r Reading) bool {
	ran := r.Even - s.Even
	jump := time.Duration(r.Wall.UnixNano()-s.Wall.UnixNano()) - ran
	return 0 <= ran && ran < lookInterval && -readingSlack < jump && jump < readingSlack
}

// Now returns the moment as of which requests are answered.
func (c *Clock[T]) Now() time.Time {
	r, s := c.Read()
	return s.Moment(r)
}

// ForWriting returns the moment that a write carries; safe is false if nothing may be written.
func (c *Clock[T]) ForWriting() (at T, safe bool) {
	r, s := c.Read()
	if s.Verdict != Safe {
		return 0, false
	}
	return T(max(s.Moment(r).UnixMilli(), c.latest.Load())), true
}

// IsSafe reports whether anything may be written.
func (c *Clock[T]) IsSafe() bool {
	_, s := c.Read()
	return s.Verdict == Safe
}

// Wrote notes the moment of a committed write.
func (c *Clock[T]) Wrote(at T) {
	for !c.Trusted {
		latest := c.latest.Load()
		if int64(at) <= latest || c.latest.CompareAndSwap(latest, int64(at)) {
			return
		}
	}
}

// Start begins with the store's latest moment, 0 if it has none. There is no earlier
// look to compare the clock with.
func (c *Clock[T]) Start(latest T) {
	if c.Trusted {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest.Store(int64(latest))
	c.right = nil
	c.state.Store(nil)
}

// Accept takes the wall clock as right. at is the moment that latest was set to.
func (c *Clock[T]) Accept(at T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest.Store(int64(at))
	c.born = min(c.born, int64(at))
	c.right = nil
	c.replace(c.Machine.Read())
}

// look takes another look at the clock, unless another goroutine has just done so.
func (c *Clock[T]) look() (Reading, *State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.Machine.Read()
	if s := c.state.Load(); s != nil && s.holds(r) {
		return r, s
	}
	return r, c.replace(r)
}

// replace judges a reading and stores the new state. The caller holds mu.
func (c *Clock[T]) replace(r Reading) *State {
	before, after := c.state.Load(), c.judge(r)
	c.state.Store(after)
	was := Safe
	if before != nil {
		was = before.Verdict
	}
	if c.Changed != nil && was != after.Verdict {
		c.Changed(after)
	}
	return after
}

// judge returns the state that a reading leads to. The caller holds mu.
func (c *Clock[T]) judge(r Reading) *State {
	s := &State{Reading: r, since: r.Even}
	since, evenAsleep := c.Machine.Awake()
	if evenAsleep {
		s.since = since
	}
	wall, latest := r.Wall.UnixMilli(), c.latest.Load()
	f := facts{wall: wall, latest: latest, born: c.born}
	if c.StoreAhead != nil {
		f.ahead = c.StoreAhead()
	}
	if c.right != nil && evenAsleep {
		f.compared, f.ran, f.passed = true, millis(wall-c.right.Wall.UnixMilli()), s.since-c.right.since
	}
	if s.Verdict = f.judge(); s.Verdict != Safe {
		if yes, _ := c.Machine.Synchronized(); yes {
			if s.Contradicted = latest != 0 && wall < latest-Slack.Milliseconds(); !s.Contradicted {
				s.Verdict, c.right = Safe, nil
			}
		}
	}
	if s.Verdict == Safe && c.right == nil {
		c.right = s
	}
	s.lead = millis(c.goesOn(s) - wall)
	switch {
	case s.Verdict != Safe:
	case wall > latest-readingSlack.Milliseconds(): // ForWriting never goes below latest
		s.lead = 0
	case s.lead > Slack: // set back by more than an hour, and latest is older than the last look
		s.lead = millis(latest - wall)
	}
	return s
}

// goesOn returns the moment that it would be if the clock had run evenly since the
// last look. Without a last look, it is latest or born, whichever is later.
func (c *Clock[T]) goesOn(s *State) int64 {
	latest := c.latest.Load()
	before := c.state.Load()
	if before == nil {
		return max(latest, c.born)
	}
	return max(latest, before.Moment(before.Reading).UnixMilli()+(s.since-before.since).Milliseconds())
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
