package wallclock

import (
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	const at, hour, day = int64(1_800_000_000_000), int64(3_600_000), int64(86_400_000)
	since := func(ran, passed time.Duration) facts {
		return facts{wall: at, latest: at, compared: true, ran: ran, passed: passed}
	}
	for _, c := range []struct {
		reason string
		facts  facts
		want   Verdict
	}{
		{"a new file", facts{wall: at}, Safe},
		{"a new file in 1970", facts{wall: 1000, born: at}, Behind},
		{"just before the program's own date", facts{wall: at - 1, born: at}, Behind},
		{"at the program's own date", facts{wall: at, born: at}, Safe},
		{"the last write was now", facts{wall: at, latest: at}, Safe},
		{"an hour behind", facts{wall: at, latest: at + hour}, Safe},
		{"more than an hour behind", facts{wall: at, latest: at + hour + 1}, Behind},
		{"closed for 45 days", facts{wall: at, latest: at - 45*day}, Safe},
		{"closed for longer", facts{wall: at, latest: at - 45*day - 1}, Ahead},
		{"ten years ahead at the start", facts{wall: at, latest: at - 3650*day}, Ahead},
		{"an hour more than has passed", since(3*time.Hour, 2*time.Hour), Safe},
		{"more than that", since(3*time.Hour+1, 2*time.Hour), Ahead},
		{"a year that has passed", facts{wall: at, latest: at - 365*day, compared: true, ran: 8760 * time.Hour, passed: 8760 * time.Hour}, Safe},
		{"set back, but not behind the last write", facts{wall: at, latest: at - 5*hour, compared: true, ran: 0, passed: 3 * time.Hour}, Safe},
		{"behind, though it agrees with what has passed", facts{wall: at, latest: at + 2*hour, compared: true}, Behind},
		{"an hour behind a database", facts{wall: at, latest: at, ahead: time.Hour}, Safe},
		{"more than an hour behind it", facts{wall: at, latest: at, ahead: time.Hour + 1}, Behind},
		{"an hour ahead of it", facts{wall: at, latest: at, ahead: -time.Hour}, Safe},
		{"more than an hour ahead of it", facts{wall: at, latest: at, ahead: -time.Hour - 1}, Ahead},
	} {
		if got := c.facts.judge(); got != c.want {
			t.Errorf("%s: it is %s, want %s", c.reason, got, c.want)
		}
	}
}
