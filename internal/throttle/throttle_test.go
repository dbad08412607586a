package throttle

import "testing"

const minute = 60_000

// TestBuckets shows when a key has to wait.
func TestBuckets(t *testing.T) {
	t.Parallel()
	const burst, every = 300, 200
	l := Buckets[string, int64]{Burst: burst, Every: every}
	now := int64(1_790_000_000_000)
	for _, test := range []struct {
		reason string
		key    string
		after  int64
		want   int
	}{
		{"a new one", "home", 0, burst},
		{"at once", "home", 0, 0},
		{"another", "away", 0, burst},
		{"a moment before the next", "home", every - 1, 0},
		{"the next", "home", 1, 1},
		{"five in a second", "home", 1000, 5},
		{"a minute", "home", minute, burst},
		{"no more than that is saved up", "home", 10 * minute, burst},
		{"the clock was set back by an hour", "home", -60 * minute, burst},
	} {
		now += test.after
		n, wait := 0, int64(0)
		for ; n < 10_000; n++ {
			if wait = l.Take(test.key, now); wait > 0 {
				break
			}
		}
		if n != test.want || wait < 1 || wait > every {
			t.Errorf("%s: %d, then wait %d ms; want %d", test.reason, n, wait, test.want)
		}
	}
	l.Fill()
	if wait := l.Take("home", now); wait != 0 {
		t.Errorf("filled, and yet %d ms to wait", wait)
	}
}

// TestRecent shows that memory is bounded, and that the last keys are remembered.
func TestRecent(t *testing.T) {
	t.Parallel()
	var m Recent[int, int]
	for i := range 5 * MostRecent {
		m.Put(i, i+1)
		if n := len(m.recent) + len(m.before); n > 2*MostRecent {
			t.Fatalf("%d keys are remembered", n)
		}
	}
	last := 5*MostRecent - 1
	if m.Get(last) != last+1 || m.Get(last-MostRecent+1) != last-MostRecent+2 || m.Get(0) != 0 {
		t.Errorf("the last %d, the one so many before %d, the first %d", m.Get(last), m.Get(last-MostRecent+1), m.Get(0))
	}
	if m.Delete(last); m.Get(last) != 0 {
		t.Error("a deleted key is there")
	}
}

// TestStrikes locks a key after ten failures within ten minutes, and until the first of them is
// older; the same failure told again counts once.
func TestStrikes(t *testing.T) {
	t.Parallel()
	s := Strikes[string, int64]{Most: 10, Span: 10 * minute}
	now := int64(1_790_000_000_000)
	for i := range uint64(10) {
		for range 3 {
			if wait := s.Wait("ana", now, i); wait != 0 {
				t.Fatalf("failure %d: locked for %d ms", i, wait)
			}
			s.Add("ana", now, i)
		}
		now += minute / 2
	}
	if wait := s.Wait("ana", now, 99); wait != 5*minute {
		t.Errorf("locked for %d ms", wait)
	}
	if wait := s.Wait("ana", now, 9); wait != 0 {
		t.Errorf("the tenth failure, run again: locked for %d ms", wait)
	}
	if wait := s.Wait("eva", now, 99); wait != 0 {
		t.Errorf("another key: locked for %d ms", wait)
	}
	now += 5 * minute
	if wait := s.Wait("ana", now, 99); wait != 0 {
		t.Errorf("ten minutes after the first: locked for %d ms", wait)
	}
	s.Add("ana", now, 100)
	if wait := s.Wait("ana", now, 99); wait != minute/2 {
		t.Errorf("and failed again: locked for %d ms", wait)
	}
	for i := range uint64(10) {
		s.Add("luz", now+int64(10-i), i)
	}
	if wait := s.Wait("luz", now, 99); wait != 10*minute {
		t.Errorf("failures that came in another order: locked for %d ms", wait)
	}
	if wait := s.Wait("ana", now-60*minute, 99); wait != 0 {
		t.Errorf("the clock was set back: locked for %d ms", wait)
	}
}
