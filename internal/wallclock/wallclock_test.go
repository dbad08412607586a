package wallclock_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"sello/internal/ordered/orderedtest"
	"sello/internal/wallclock"
	"sello/internal/wallclock/wallclocktest"
)

// A moment is in milliseconds since 1970.
type moment int64

func momentOf(t time.Time) moment { return moment(t.UnixMilli()) }

func (m moment) String() string {
	return time.UnixMilli(int64(m)).UTC().Format("2006-01-02 15:04:05.999")
}

type clock = wallclock.Clock[moment]

// The date of the program, and of the stories' begin.
var (
	born = momentOf(time.Date(2026, 2, 10, 0, 0, 0, 0, time.UTC))
	noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
)

// A clockEvent is something that happens to a machine, and the moment that a write then
// carries.
type clockEvent struct {
	what func(*wallclocktest.Machine, *clock)
	want string // the moment; if nothing may be written, - and the moment of a read
}

func passes(d time.Duration) func(*wallclocktest.Machine, *clock) {
	return func(m *wallclocktest.Machine, _ *clock) { m.Pass(d) }
}

func steps(d time.Duration) func(*wallclocktest.Machine, *clock) {
	return func(m *wallclocktest.Machine, _ *clock) { m.Wall = m.Wall.Add(d) }
}

func sleeps(d time.Duration) func(*wallclocktest.Machine, *clock) {
	return func(m *wallclocktest.Machine, _ *clock) { m.Sleep(d) }
}

func isSynced(yes bool) func(*wallclocktest.Machine, *clock) {
	return func(m *wallclocktest.Machine, _ *clock) { m.Synced = yes; m.Pass(time.Second) }
}

func isAccepted(m *wallclocktest.Machine, c *clock) { c.Accept(momentOf(m.Wall)) }

func countsNoSleep(m *wallclocktest.Machine, _ *clock) { m.NotAwake = true }

const oneYear = 8766 * time.Hour

// clockStories begin at noon on 2027-03-01, when the last write was an hour old.
var clockStories = []struct {
	name   string
	events []clockEvent
}{
	{"nothing is wrong", []clockEvent{{passes(0), "2027-03-01 12:00:00"}, {passes(time.Hour), "2027-03-01 13:00:00"}}},
	{"2036 and back", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(9 * oneYear), "-2027-03-01 12:00:00"}, {passes(time.Hour), "-2027-03-01 13:00:00"},
		{steps(-9 * oneYear), "2027-03-01 13:00:00"},
	}},
	{"1970 and back", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(-57 * oneYear), "-2027-03-01 12:00:00"}, {passes(time.Minute), "-2027-03-01 12:01:00"},
		{steps(57 * oneYear), "2027-03-01 12:01:00"},
	}},
	{"1970 from the start", []clockEvent{
		{steps(-57 * oneYear), "-2027-03-01 11:00:00"}, {passes(time.Minute), "-2027-03-01 11:01:00"}, {steps(57 * oneYear), "2027-03-01 12:01:00"},
		{steps(61 * time.Minute), "-2027-03-01 12:01:00"},
	}},
	{"half an hour on and back", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(30 * time.Minute), "2027-03-01 12:30:00"}, {steps(-30 * time.Minute), "2027-03-01 12:30:00"},
		{passes(10 * time.Minute), "2027-03-01 12:40:00"}, {steps(30 * time.Minute), "2027-03-01 12:40:00"}, {passes(time.Minute), "2027-03-01 12:41:00"},
	}},
	{"an hour back, and a second more", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(-time.Hour), "2027-03-01 12:00:00"}, {steps(-time.Second), "-2027-03-01 12:00:00"},
	}},
	{"jumps of less than a look would find", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(-50 * time.Millisecond), "2027-03-01 12:00:00"}, {passes(time.Second), "2027-03-01 12:00:00.95"},
	}},
	{"a night's suspend", []clockEvent{{passes(0), "2027-03-01 12:00:00"}, {sleeps(9 * time.Hour), "2027-03-01 21:00:00"}}},
	{"a jump in a suspend", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {sleeps(9 * time.Hour), "2027-03-01 21:00:00"}, {steps(2 * time.Hour), "-2027-03-01 21:00:00"},
		{sleeps(time.Hour), "-2027-03-01 22:00:00"},
	}},
	{"two hours on, in two steps", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(time.Hour), "2027-03-01 13:00:00"}, {steps(time.Hour), "-2027-03-01 13:00:00"},
	}},
	{"closed for six weeks", []clockEvent{{steps(42 * 24 * time.Hour), "2027-04-12 12:00:00"}}},
	{"closed for 46 days, and accepted", []clockEvent{
		{steps(46 * 24 * time.Hour), "-2027-03-01 11:00:00"}, {passes(time.Hour), "-2027-03-01 12:00:00"}, {isAccepted, "2027-04-16 13:00:00"},
		{steps(9 * oneYear), "-2027-04-16 13:00:00"},
	}},
	{"closed for 46 days, and synchronized", []clockEvent{
		{steps(46 * 24 * time.Hour), "-2027-03-01 11:00:00"}, {isSynced(true), "2027-04-16 12:00:01"}, {isSynced(false), "2027-04-16 12:00:02"},
	}},
	{"set back and accepted", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {steps(-24 * time.Hour), "-2027-03-01 12:00:00"}, {isAccepted, "2027-02-28 12:00:00"},
		{steps(24 * time.Hour), "-2027-02-28 12:00:00"},
	}},
	{"1970, accepted", []clockEvent{{steps(-57 * oneYear), "-2027-03-01 11:00:00"}, {isAccepted, "1970-03-01 06:00:00"}, {passes(time.Hour), "1970-03-01 07:00:00"}}},
	{"synchronized in 2036", []clockEvent{{passes(0), "2027-03-01 12:00:00"}, {isSynced(true), "2027-03-01 12:00:01"}, {steps(9 * oneYear), "2036-02-29 18:00:01"}}},
	{"synchronized, and behind: latest has to be lowered first", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"}, {isSynced(true), "2027-03-01 12:00:01"}, {steps(-24 * time.Hour), "-2027-03-01 12:00:01"}, {isAccepted, "2027-02-28 12:00:01"},
	}},
	{"set back by three hours to just before the last write", []clockEvent{
		{passes(0), "2027-03-01 12:00:00"},
		{func(m *wallclocktest.Machine, c *clock) {
			m.Pass(3 * time.Hour)
			c.Now()
			m.Wall = m.Wall.Add(-190 * time.Minute)
		}, "2027-03-01 12:00:00"},
		{passes(5 * time.Minute), "2027-03-01 12:05:00"},
	}},
	{"no clock counts sleep", []clockEvent{
		{countsNoSleep, "2027-03-01 12:00:00"}, {sleeps(44 * 24 * time.Hour), "2027-04-14 12:00:00"}, {steps(46 * 24 * time.Hour), "-2027-04-14 12:00:00"},
	}},
}

// TestWallClock plays the stories. After each event it checks whether anything may be
// written, and which moment the write carries.
func TestWallClock(t *testing.T) {
	t.Parallel()
	for _, story := range clockStories {
		t.Run(story.name, func(t *testing.T) {
			m := &wallclocktest.Machine{Wall: noon}
			c := wallclock.New(m, born)
			c.Start(momentOf(noon.Add(-time.Hour)))
			for i, e := range story.events {
				e.what(m, c)
				at, safe := c.ForWriting()
				got := at.String()
				if !safe {
					got = "-" + momentOf(c.Now()).String()
				} else {
					c.Wrote(at)
				}
				if got != e.want {
					t.Fatalf("event %d: a write carries %s, want %s", i+1, got, e.want)
				}
			}
		})
	}
}

// TestWallClockRandom checks that the moments of writes never step back unless latest was
// lowered, and that a safe clock is never behind the wall clock, nor ahead by more than
// wallclock.Slack.
func TestWallClockRandom(t *testing.T) {
	t.Parallel()
	orderedtest.Histories(t, 1000, func(t *testing.T, rnd *rand.Rand) {
		m := &wallclocktest.Machine{Wall: noon, NotAwake: rnd.IntN(4) == 0}
		c := wallclock.New(m, born)
		var latest moment
		if rnd.IntN(3) > 0 {
			latest = momentOf(m.Wall.Add(-wallclocktest.RandomSpan(rnd)))
		}
		c.Start(latest)
		for range 50 {
			m.Meddle(rnd)
			if rnd.IntN(20) == 0 {
				latest = momentOf(m.Wall)
				c.Accept(latest)
				if !c.IsSafe() {
					t.Fatalf("unsafe at %s, though it was accepted", m.Wall)
				}
			}
			at, safe := c.ForWriting()
			if !safe {
				continue
			}
			if at < latest {
				t.Fatalf("a write at %s comes after one at %s", at, latest)
			}
			if wall := momentOf(m.Wall); at < wall || at > momentOf(m.Wall.Add(wallclock.Slack)) {
				t.Fatalf("a write at %s, though the clock says %s and is safe", at, wall)
			}
			if rnd.IntN(3) > 0 {
				latest = at
				c.Wrote(at)
			}
		}
	})
}

// TestWallClockCheap checks that the clock is looked at once a second, not for each
// request, and that the kernel is not asked whether a safe clock is synchronized.
func TestWallClockCheap(t *testing.T) {
	t.Parallel()
	m := &wallclocktest.Machine{Wall: noon}
	c := wallclock.New(m, born)
	state := func() *wallclock.State {
		_, s := c.Read()
		return s
	}
	first := state()
	for range 9 {
		m.Pass(100 * time.Millisecond)
		c.Now()
		if _, safe := c.ForWriting(); !safe {
			t.Fatal("a safe clock is unsafe")
		}
	}
	if state() != first {
		t.Error("it was looked at within a second")
	}
	m.Pass(100 * time.Millisecond)
	if state() == first {
		t.Error("it was not looked at for a second")
	}
	if m.Asked > 0 {
		t.Error("the kernel was asked")
	}
}
