package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sello/internal/semaphore"
)

// naiveLimits is a simple limiter: it keeps every accepted request and counts them
// each time.
type naiveLimits struct {
	key      *apiKey
	sinceRun []instant // accepted since the last restart; these count for the minute
	kept     []instant // accepted and not lost in a crash; these count for day and month
	flushed  int       // how many of kept are in the store
}

// allows reports whether a request at now should be accepted.
func (n *naiveLimits) allows(now instant) bool { return n.allowsMany(1, now) }

// allowsMany reports whether so many requests at now should be accepted.
func (n *naiveLimits) allowsMany(requests int, now instant) bool {
	minute, day, month := requests-1, requests-1, requests-1
	for _, at := range n.sinceRun {
		if at > now-60_000 {
			minute++
		}
	}
	thisYear, thisMonth, today := now.time().Date()
	for _, at := range n.kept {
		y, m, d := at.time().Date()
		if y == thisYear && m == thisMonth {
			month++
			if d == today {
				day++
			}
		}
	}
	k := n.key
	return minute < k.RateLimit && (k.DailyLimit == 0 || day < k.DailyLimit) && (k.MonthlyLimit == 0 || month < k.MonthlyLimit)
}

// TestLimits sends requests at random moments, with restarts and crashes in
// between. Each is accepted if and only if naiveLimits allows it: no 60 seconds
// have more than the limit, and a client that stays below it is never refused.
// After Retry-After a request succeeds.
func TestLimits(t *testing.T) {
	t.Parallel()
	histories(t, 300, func(t *testing.T, rnd *rand.Rand) {
		ctx := t.Context()
		store := newMemStore()
		defer store.Close()
		l := newLimiter()
		k := &apiKey{ID: id{1}, RateLimit: 1 + rnd.IntN(8)}
		if rnd.IntN(2) == 0 {
			k.DailyLimit = 1 + rnd.IntN(20)
		}
		if rnd.IntN(2) == 0 {
			k.MonthlyLimit = 1 + rnd.IntN(40)
		}
		naive := &naiveLimits{key: k}
		start := time.Date(2026, time.Month(1+rnd.IntN(12)), 1+rnd.IntN(31), rnd.IntN(24), rnd.IntN(60), rnd.IntN(60), 0, time.UTC)
		now := instantOf(start)
		flush := func() {
			if err := l.flush(ctx, store); err != nil {
				t.Fatal(err)
			}
			naive.flushed = len(naive.kept)
		}
		for range 150 {
			longest := pick(rnd, 1, 1, 20, 5000, 30_000, 90_000, 6*3600_000, 9*millisPerDay)
			now += instant(rnd.IntN(longest))
			switch rnd.IntN(40) {
			case 0: // a stop writes what was counted
				flush()
				fallthrough
			case 1: // a crash forgets what was not written
				naive.kept, naive.sinceRun = naive.kept[:naive.flushed], nil
				l = newLimiter()
			case 2, 3, 4:
				flush()
			}
			reset, retry, refused := naive.take(t, l, store, now)
			if refused && rnd.IntN(2) == 0 {
				now = pick(rnd, reset-1, reset, retry)
			}
		}
	})
}

// take sends a request to a limiter, and fails the test unless the limiter accepts
// exactly what n allows. From a refusal it returns the two moments at which a request
// should succeed again: resetAt, and the one that Retry-After gives.
func (n *naiveLimits) take(t *testing.T, l *limiter, store Store, now instant) (reset, retry instant, refused bool) {
	t.Helper()
	want := n.allows(now)
	var after allowance
	err := l.take(t.Context(), store, n.key, now, &after)
	if (err == nil) != want {
		t.Fatalf("at %s: %v, want accepted %t", now, err, want)
	}
	if err == nil {
		n.sinceRun = append(n.sinceRun, now)
		n.kept = append(n.kept, now)
		more := true
		for _, q := range after.quotas {
			more = more && q.remaining() > 0
		}
		if more != n.allows(now) {
			t.Fatalf("at %s: one more is possible: %t by the quotas", now, more)
		}
		return 0, 0, false
	}
	var e *apiError
	errors.As(err, &e)
	reset = e.context["resetAt"].(instant)
	if !n.allows(reset) || n.allows(reset-1) {
		t.Fatalf("at %s: %s resets at %s, which is not when a request succeeds again", now, e.code.name, reset)
	}
	wait, _ := strconv.ParseInt(e.headers.Get("Retry-After"), 10, 64)
	retry = now + instant(wait*1000)
	if retry < reset || retry >= reset+1000 {
		t.Fatalf("at %s: Retry-After %d, resets at %s", now, wait, reset)
	}
	return reset, retry, true
}

// TestLimitWindows shows the boundaries of each window.
func TestLimitWindows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		key    apiKey
		steps  string // moments, with + if accepted, - if refused; R is a restart
	}{
		{"60 seconds later, to the millisecond", apiKey{RateLimit: 1},
			"2026-03-02T10:00:00Z+ 2026-03-02T10:00:59.999Z- 2026-03-02T10:01:00Z+ 2026-03-02T10:01:59.999Z- 2026-03-02T10:02:00Z+"},
		{"no fresh start on the minute", apiKey{RateLimit: 2},
			"2026-03-02T10:00:59Z+ 2026-03-02T10:00:59Z+ 2026-03-02T10:01:00Z- 2026-03-02T10:01:58.999Z- 2026-03-02T10:01:59Z+"},
		{"the day ends at midnight UTC", apiKey{RateLimit: 9, DailyLimit: 2},
			"2026-03-02T00:00:00Z+ 2026-03-02T12:00:00Z+ 2026-03-02T23:59:59.999Z- 2026-03-03T00:00:00Z+ 2026-03-03T00:00:00Z+ 2026-03-03T00:00:01Z-"},
		{"the day goes on after a restart", apiKey{RateLimit: 9, DailyLimit: 2},
			"2026-03-02T00:00:00Z+ R 2026-03-02T12:00:00Z+ R 2026-03-02T23:59:59.999Z- R 2026-03-03T00:00:00Z+"},
		{"the month ends at midnight UTC", apiKey{RateLimit: 9, MonthlyLimit: 2},
			"2026-01-01T00:00:00Z+ R 2026-01-20T12:00:00Z+ R 2026-01-31T23:59:59.999Z- 2026-02-01T00:00:00Z+ 2026-02-28T00:00:00Z+ R 2026-02-28T23:59:59Z- 2026-03-01T00:00:00Z+"},
		{"the same month of another year is another one", apiKey{RateLimit: 9, MonthlyLimit: 1},
			"2026-01-15T00:00:00Z+ R 2027-01-15T00:00:00Z+ 2027-01-15T00:00:00Z-"},
		{"the same day of another month is another one", apiKey{RateLimit: 9, DailyLimit: 1}, "2026-01-15T00:00:00Z+ R 2026-02-15T00:00:00Z+"},
		{"a refusal uses up nothing", apiKey{RateLimit: 1, DailyLimit: 2, MonthlyLimit: 3},
			"2026-03-02T10:00:00Z+ 2026-03-02T10:00:01Z- 2026-03-02T10:00:02Z- 2026-03-02T10:01:00Z+ 2026-03-02T10:05:00Z- 2026-03-02T10:06:00Z- 2026-03-03T10:00:00Z+ 2026-03-04T10:00:00Z-"},
		{"a clock set back over midnight and forward again gives no fresh day", apiKey{RateLimit: 9, DailyLimit: 2, MonthlyLimit: 9},
			"2026-03-01T00:00:10Z+ 2026-02-28T23:59:50Z+ 2026-02-28T23:59:51Z- 2026-03-01T00:00:20Z- R 2026-03-01T00:00:30Z-"},
		{"a clock that was a year ahead counts the day anew", apiKey{RateLimit: 9, DailyLimit: 1, MonthlyLimit: 2},
			"2027-03-02T10:00:00Z+ R 2026-03-02T10:00:00Z+ 2026-03-02T10:00:01Z- R 2026-03-03T10:00:00Z+ 2026-03-04T10:00:00Z-"},
		{"a clock that was more than a minute ahead locks nobody out", apiKey{RateLimit: 1},
			"2026-03-02T12:00:00Z+ 2026-03-02T11:59:00Z- 2026-03-02T10:00:00Z+ 2026-03-02T10:00:59.999Z- 2026-03-02T10:01:00Z+"},
		{"a clock that is set back accepts no more", apiKey{RateLimit: 2},
			"2026-03-02T10:00:30Z+ 2026-03-02T10:00:10Z+ 2026-03-02T10:00:20Z- 2026-03-02T10:01:29.999Z- 2026-03-02T10:01:30Z+"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newEmptyShop(t, "2026-01-01T00:00:00Z")
			l := newLimiter()
			for _, step := range strings.Fields(test.steps) {
				if step == "R" {
					s.ok(l.flush(t.Context(), s.engine.store))
					l = newLimiter()
					continue
				}
				last := len(step) - 1
				s.setClock(step[:last])
				if err := l.take(t.Context(), s.engine.store, &test.key, s.clock, new(allowance)); (err == nil) != (step[last] == '+') {
					t.Errorf("%s: %v", step, err)
				}
			}
		})
	}
}

// TestLimitRefusals shows which window a refusal names: the one that frees up
// last.
func TestLimitRefusals(t *testing.T) {
	t.Parallel()
	now := instantOf(time.Date(2026, 3, 2, 23, 59, 30, 500e6, time.UTC))
	for _, test := range []struct {
		reason  string
		key     apiKey
		used    int
		code    string
		retry   string
		headers string // RateLimit-Policy, RateLimit, limit, remaining, reset
	}{
		{"below all", apiKey{RateLimit: 5, DailyLimit: 9}, 2, "", "",
			`"minute";q=5;w=60, "day";q=9;w=86400 | "minute";r=2;t=60 | 5 2 60`},
		{"the minute", apiKey{RateLimit: 2, DailyLimit: 9}, 2, "rate_limit_minute", "60",
			`"minute";q=2;w=60, "day";q=9;w=86400 | "minute";r=0;t=60 | 2 0 60`},
		{"the day, which ends before the minute", apiKey{RateLimit: 9, DailyLimit: 2}, 2, "rate_limit_day", "30",
			`"minute";q=9;w=60, "day";q=2;w=86400 | "day";r=0;t=30 | 2 0 30`},
		{"both: the minute frees up later", apiKey{RateLimit: 2, DailyLimit: 2}, 2, "rate_limit_minute", "60",
			`"minute";q=2;w=60, "day";q=2;w=86400 | "minute";r=0;t=60 | 2 0 60`},
		{"both: the month ends later", apiKey{RateLimit: 9, DailyLimit: 1, MonthlyLimit: 1}, 1, "rate_limit_month", "2505630",
			`"minute";q=9;w=60, "day";q=1;w=86400, "month";q=1;w=2678400 | "month";r=0;t=2505630 | 1 0 2505630`},
		{"as much is left of both", apiKey{RateLimit: 3, DailyLimit: 3}, 1, "", "",
			`"minute";q=3;w=60, "day";q=3;w=86400 | "minute";r=1;t=60 | 3 1 60`},
		{"the month", apiKey{RateLimit: 9, DailyLimit: 9, MonthlyLimit: 1}, 1, "rate_limit_month", "2505630",
			`"minute";q=9;w=60, "day";q=9;w=86400, "month";q=1;w=2678400 | "month";r=0;t=2505630 | 1 0 2505630`},
	} {
		t.Run(test.reason, func(t *testing.T) {
			store := newMemStore()
			defer store.Close()
			l := newLimiter()
			for range test.used {
				if err := l.take(t.Context(), store, &test.key, now, new(allowance)); err != nil {
					t.Fatal(err)
				}
			}
			var after allowance
			err := l.take(t.Context(), store, &test.key, now, &after)
			if codeOf(err) != test.code {
				t.Fatalf("got %v, want %q", err, test.code)
			}
			if err != nil {
				var e *apiError
				errors.As(err, &e)
				if got := e.headers.Get("Retry-After"); got != test.retry {
					t.Errorf("Retry-After is %s, want %s", got, test.retry)
				}
			}
			h := http.Header{}
			after.setHeaders(h, now)
			var values []any
			for _, name := range limitHeaders { // spelled as in the draft, which h.Get does not find
				values = append(values, h[name][0])
			}
			got := fmt.Sprintf("%s | %s | %s %s %s", values...)
			if got != test.headers {
				t.Errorf("headers are\n%s, want\n%s", got, test.headers)
			}
		})
	}
}

// TestLimitWrites counts the writes to the store in ten minutes: one a minute for
// a key's last use, and one a second if the key has a limit by day or month.
func TestLimitWrites(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		key  apiKey
		want int64
	}{
		{apiKey{RateLimit: 1000}, 10},
		{apiKey{RateLimit: 1000, DailyLimit: 100_000}, 600},
		{apiKey{RateLimit: 1000, MonthlyLimit: 100_000}, 600},
	} {
		store := &countedStore{Store: newMemStore()}
		defer store.Close()
		l := newLimiter()
		now := instantOf(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC))
		for range 600 { // seconds
			for range 5 {
				if err := l.take(t.Context(), store, &test.key, now, new(allowance)); err != nil {
					t.Fatal(err)
				}
				now += 200
			}
			if err := l.flush(t.Context(), store); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 { // nothing new to write
			if err := l.flush(t.Context(), store); err != nil {
				t.Fatal(err)
			}
		}
		if n := store.updates.Load(); n != test.want {
			t.Errorf("%+v: %d writes in ten minutes, want %d", test.key, n, test.want)
		}
		used, err := viewStore(t.Context(), store, func(tx Tx) (instant, error) { return lastUsed(tx, test.key.ID) })
		if err != nil || used != now-minuteMillis {
			t.Errorf("last used at %s (%v), want %s", used, err, now-minuteMillis)
		}
	}
}

// TestLimitFlushFails shows that the next flush writes the counts of one that
// failed.
func TestLimitFlushFails(t *testing.T) {
	t.Parallel()
	fault := failBefore
	store := newFlaky(newMemStore(), func() storeFault { return fault })
	defer store.Close()
	k := &apiKey{RateLimit: 9, DailyLimit: 2}
	now := instantOf(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC))
	l := newLimiter()
	for range 2 {
		if err := l.take(t.Context(), store, k, now, new(allowance)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.flush(t.Context(), store); err == nil {
		t.Fatal("the flush succeeded")
	}
	fault = noFault
	if err := l.flush(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	if err := newLimiter().take(t.Context(), store, k, now, new(allowance)); codeOf(err) != "rate_limit_day" {
		t.Errorf("got %v, want rate_limit_day", err)
	}
}

// TestLimitsOfMany sends requests that turn out to be many in one. They count as all of
// them, or as none where a limit does not allow that.
func TestLimitsOfMany(t *testing.T) {
	t.Parallel()
	histories(t, 200, func(t *testing.T, rnd *rand.Rand) {
		store, l := newMemStore(), newLimiter()
		defer store.Close()
		k := &apiKey{ID: id{1}, RateLimit: 1 + rnd.IntN(12)}
		if rnd.IntN(2) == 0 {
			k.DailyLimit = 1 + rnd.IntN(30)
		}
		if rnd.IntN(2) == 0 {
			k.MonthlyLimit = 1 + rnd.IntN(60)
		}
		naive := &naiveLimits{key: k}
		now := instantOf(time.Date(2026, time.Month(1+rnd.IntN(12)), 1+rnd.IntN(31), rnd.IntN(24), 59, 0, 0, time.UTC))
		for range 100 {
			now += instant(rnd.IntN(pick(rnd, 1, 20, 5000, 30_000, 90_000, 6*3600_000, 9*millisPerDay)))
			many := 1 + rnd.IntN(k.leastLimit())
			var after allowance
			if err := l.take(t.Context(), store, k, now, &after); err != nil || many == 1 {
				if (err == nil) != naive.allows(now) {
					t.Fatalf("at %s: %v", now, err)
				}
				if err == nil {
					naive.count(1, now)
				}
				continue
			}
			now += instant(rnd.IntN(pick(rnd, 1, 1000, 70_000)))
			naive.check(t, l, many, now, &after)
		}
	})
}

func (n *naiveLimits) count(requests int, now instant) {
	for range requests {
		n.sinceRun, n.kept = append(n.sinceRun, now), append(n.kept, now)
	}
}

// check counts a request that l has taken as many, a little later.
func (n *naiveLimits) check(t *testing.T, l *limiter, many int, now instant, after *allowance) {
	t.Helper()
	err := l.takeMore(n.key, many-1, now, after)
	if (err == nil) != n.allowsMany(many, now) {
		t.Fatalf("at %s: %d requests: %v", now, many, err)
	}
	for _, q := range after.quotas {
		if q.used > q.limit {
			t.Fatalf("at %s: %d of %d used", now, q.used, q.limit)
		}
	}
	if err == nil {
		n.count(many, now)
		return
	}
	var e *apiError
	errors.As(err, &e)
	reset := e.context["resetAt"].(instant)
	if !n.allowsMany(many, reset) || n.allowsMany(many, reset-1) {
		t.Fatalf("at %s: %s for %d resets at %s", now, e.code.name, many, reset)
	}
}

// TestLimitsOfServers sends a key's requests to several servers, of which each flushes once a
// second. A limit is passed by what the others accept in two seconds, at most. None refuses what
// the key has not used, even if flushes fail.
func TestLimitsOfServers(t *testing.T) {
	t.Parallel()
	histories(t, 200, func(t *testing.T, rnd *rand.Rand) {
		k := &apiKey{ID: id{1}, RateLimit: 1000}
		limit := 1 + rnd.IntN(100)
		*pick(rnd, &k.DailyLimit, &k.MonthlyLimit) = limit
		faults := pick(rnd, 0, 0, 30)
		stores := newSharedMem(2 + rnd.IntN(2))
		servers := make([]*limiter, len(stores))
		for i := range stores {
			defer stores[i].Close()
			shared := stores[i].(sharedStore)
			stores[i] = flakyShared{shared, newFlaky(shared, randomFaults(rnd.Uint64(), faults/2, faults/2))}
			servers[i] = newLimiter()
		}
		now := instantOf(time.Date(2026, 3, 31, 23, 59, 50, 0, time.UTC))
		day, used, before := utcDay(now), 0, 0
		inSecond, inLast := make([]int, len(servers)), make([]int, len(servers))
		for range 20 { // seconds
			if utcDay(now) != day {
				day, used, before, inLast = utcDay(now), 0, 0, make([]int, len(servers))
			}
			for range rnd.IntN(40) {
				i := rnd.IntN(len(servers))
				var after allowance
				err := servers[i].take(t.Context(), stores[i], k, now, &after)
				if err != nil && used < limit {
					t.Fatalf("at %s: server %d refuses, after %d of %d: %v", now, i, used, limit, err)
				}
				unknown := 0
				for other := range servers {
					if other != i {
						unknown += inSecond[other] + inLast[other]
					}
				}
				if err == nil && used-unknown >= limit && faults == 0 {
					t.Fatalf("at %s: server %d accepts, after %d of %d, %d of which may be unknown", now, i, used, limit, unknown)
				}
				if err == nil && faults == 0 && rnd.IntN(4) == 0 { // it turns out to be more than fits
					if servers[i].takeMore(k, 1000, now, &after) == nil {
						t.Fatal("1000 requests fit")
					}
					continue
				}
				if err == nil {
					used++
					inSecond[i]++
				}
			}
			for _, i := range rnd.Perm(len(servers)) {
				if err := servers[i].flush(t.Context(), stores[i]); err != nil && faults == 0 {
					t.Fatal(err)
				}
			}
			stored, err := viewStore(t.Context(), stores[0], func(tx Tx) (*savedUsage, error) { return get[savedUsage](tx, usageKey(k.ID)) })
			if err != nil {
				t.Fatal(err)
			}
			if stored == nil {
				stored = new(savedUsage)
			}
			if got := int(stored.InDay + stored.InMonth); got > used && got > before || got != used && used > 0 && faults == 0 {
				t.Fatalf("at %s: %d are stored, of %d", now, got, used)
			}
			before = max(used, before)
			inSecond, inLast = make([]int, len(servers)), inSecond
			now += 1000
		}
	})
}

// A flakyShared is a sharedStore whose Updates are those of a flaky store over it.
type flakyShared struct {
	sharedStore
	flaky Store
}

func (s flakyShared) Update(ctx context.Context, fn func(Tx) error) error {
	return s.flaky.Update(ctx, fn)
}

// TestLimitOfTwoServers shows what two servers make of one key's day.
func TestLimitOfTwoServers(t *testing.T) {
	t.Parallel()
	start := instantOf(time.Date(2026, 3, 2, 23, 59, 0, 0, time.UTC))
	for _, test := range []struct {
		reason string
		steps  string // a3 sends 3 requests to server a, A flushes a, A! and A? fail before and after their commit; > is midnight
		stored int
		left   string // how many more each server accepts
	}{
		{"both at once", "a60 b60 A B A", 120, "0 0"},
		{"both again", "a10 b10 A B a10 b10 B A B", 40, "60 60"},
		{"one of them idles", "a10 A b5 B a1 A B A b30 B A", 46, "54 54"},
		{"others have used it up", "a1 A b99 B A", 100, "0 0"},
		{"a flush that is not stored", "a10 A! a1 A B", 11, "89 89"},
		{"one that is, all the same", "a10 A? a1 A B", 11, "89 89"},
		{"twice", "a10 A? a1 A? a1 A B", 12, "88 88"},
		{"it is, and another server wrote", "a10 A? b5 B a1 A B B", 16, "84 84"},
		{"it is not, and another server wrote: what it tried is lost", "a10 A! b5 B a1 A B B", 6, "94 94"},
		{"midnight, for one of them later", "a10 b10 A B a1 > b3 B A", 3, "97 97"},
		{"midnight for both", "a10 b10 A B > a1 b2 A B A", 3, "97 97"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			fault := noFault
			var servers [2]*limiter
			stores := newSharedMem(2)
			for i, s := range stores {
				defer s.Close()
				stores[i] = flakyShared{s.(sharedStore), newFlaky(s, func() storeFault { return fault })}
				servers[i] = newLimiter()
			}
			k, now := &apiKey{RateLimit: 1000, DailyLimit: 100}, start
			take := func(i int) error { return servers[i].take(t.Context(), stores[i], k, now, new(allowance)) }
			for _, step := range strings.Fields(test.steps) {
				if step == ">" {
					now += minuteMillis
					continue
				}
				i := int(step[0]|0x20) - 'a'
				if n, err := strconv.Atoi(step[1:]); err == nil {
					for range n {
						if err := take(i); err != nil {
							t.Fatalf("%s: %v", step, err)
						}
					}
					continue
				}
				fault = map[string]storeFault{"": noFault, "!": failBefore, "?": failAfter}[step[1:]]
				if err := servers[i].flush(t.Context(), stores[i]); (err == nil) != (fault == noFault) {
					t.Fatalf("%s: %v", step, err)
				}
			}
			stored, err := viewStore(t.Context(), stores[0], func(tx Tx) (*savedUsage, error) { return get[savedUsage](tx, usageKey(k.ID)) })
			if err != nil || int(stored.InDay) != test.stored || stored.LastUsed != now-now%minuteMillis {
				t.Errorf("stored %+v, %v, want %d", stored, err, test.stored)
			}
			left := [2]int{}
			for i := range servers {
				for take(i) == nil {
					left[i]++
				}
			}
			if got := fmt.Sprint(left[0], left[1]); got != test.left {
				t.Errorf("%s are left, want %s", got, test.left)
			}
		})
	}
}

// TestSemaphore posts bodies that get stuck half-way. As many are held as there are units for;
// the others are refused in time. A small body needs no units, and neither does a large one of
// which fewer than smallBody bytes have come.
func TestSemaphore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason    string
		units     int
		wantHeld  int64
		wantBusy  int
		sendsOnly int // bytes before it gets stuck
	}{
		{"room for two", 4, 2, 4, smallBody + 1000},
		{"a client that sends too little takes no room", 4, 0, 0, smallBody - 1},
		{"control: room for all", 1000, 6, 0, smallBody + 1000},
	} {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSemaphoreShop(t)
				s.servedShop.api.bodies = newSemaphore(test.units)
				s.servedShop.api.parsing = newSemaphore(100)
				release := make(chan struct{})
				var held atomic.Int64
				codes := make(chan int, 6)
				for range cap(codes) {
					body := &stuckBody{
						body:      strings.NewReader(fmt.Sprintf(`{"amount":1,"x":%q}`, strings.Repeat("x", 2*semaphoreUnit-100))),
						sendsOnly: test.sendsOnly, held: &held, release: release,
					}
					go func() { codes <- s.addPoints(body.body.Len(), body).Code }()
				}
				time.Sleep(semaphoreWait / 2)
				if w := s.addPoints(12, strings.NewReader(`{"amount":1}`)); w.Code != http.StatusCreated {
					t.Errorf("a small body meanwhile: %d", w.Code)
				}
				time.Sleep(semaphoreWait)
				synctest.Wait()
				if busy := len(codes); busy != test.wantBusy || held.Load() != test.wantHeld {
					t.Errorf("%d are held and %d refused, want %d and %d", held.Load(), busy, test.wantHeld, test.wantBusy)
				}
				for range len(codes) {
					if code := <-codes; code != http.StatusServiceUnavailable {
						t.Errorf("%d", code)
					}
				}
				close(release)
				for range cap(codes) - test.wantBusy {
					if code := <-codes; code != http.StatusCreated {
						t.Errorf("after it went on: %d", code)
					}
				}
				s.empty()
			})
		})
	}
}

// A stuckBody sends sendsOnly bytes, then waits for release before it sends the rest.
type stuckBody struct {
	body            *strings.Reader
	sendsOnly, sent int
	stuck           bool
	held            *atomic.Int64 // how many bodies have got units and are stuck
	release         <-chan struct{}
}

func (b *stuckBody) Read(p []byte) (int, error) {
	if b.sent >= b.sendsOnly && !b.stuck {
		b.stuck = true
		if b.sent > smallBody {
			b.held.Add(1)
		}
		<-b.release
	}
	if !b.stuck {
		p = p[:min(len(p), b.sendsOnly-b.sent)]
	}
	n, err := b.body.Read(p)
	b.sent += n
	return n, err
}

// TestSemaphoreForReads leaves no units for large answers, then none for lists. Those are
// refused in time. Small requests are answered.
func TestSemaphoreForReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSemaphoreShop(t)
		for range 100 {
			s.servedShop.shop.add(s.ana, "1", 0)
		}
		ledger := "/api/v1/points/customers/" + s.ana.String() + "/movements?limit="
		balance := "/api/v1/points/customers/" + s.ana.String() + "/balance"
		want := func(path string, status int, why string) {
			t.Helper()
			w := s.servedShop.get(path)
			if w.Code != status || status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") != "1" {
				t.Errorf("%s: %d %v, want %d: %s", path, w.Code, w.Header(), status, why)
			}
			s.empty()
		}
		if w := s.servedShop.get(ledger + "100"); w.Code != http.StatusOK || w.Body.Len() <= smallAnswer {
			t.Fatalf("%d, %d bytes", w.Code, w.Body.Len())
		}
		s.servedShop.api.answers = newSemaphore(0)
		want(ledger+"100", http.StatusServiceUnavailable, "no room for the answer")
		want(ledger+"10", http.StatusOK, "a short answer")
		s.servedShop.api.reading = newSemaphore(0)
		for _, large := range []string{ledger + "1", "/api/v1/customers", "/api/v1/statistics"} {
			want(large, http.StatusServiceUnavailable, "no processor for lists")
		}
		want(balance, http.StatusOK, "a small request")
		want("/livez", http.StatusOK, "health")
		want("/readyz", http.StatusOK, "health")
	})
}

// A semaphoreShop is a shop with an API and a customer.
type semaphoreShop struct {
	servedShop *servedShop
	ana        id
}

func newSemaphoreShop(t *testing.T) *semaphoreShop {
	s := &semaphoreShop{servedShop: newShop(t, setup{}).served()}
	s.ana = s.servedShop.shop.customer("ana")
	return s
}

// addPoints posts a body of size bytes that adds points.
func (s *semaphoreShop) addPoints(size int, body io.Reader) *httptest.ResponseRecorder {
	r := newRequest("POST", "/api/v1/points/customers/"+s.ana.String()+"/add", s.servedShop.key, "{}")
	r.Body, r.ContentLength = io.NopCloser(body), int64(size)
	return answerTo(s.servedShop.api, r)
}

// empty checks that all units were given back.
func (s *semaphoreShop) empty() {
	s.servedShop.shop.Helper()
	for _, r := range []*semaphore.Semaphore{s.servedShop.api.reading, s.servedShop.api.parsing, s.servedShop.api.bodies, s.servedShop.api.answers} {
		if n := r.Taken(); n != 0 {
			s.servedShop.shop.Errorf("%d units or turns are still taken", n)
		}
	}
}

// A floodedShop is a shop that counts the accesses to its store.
type floodedShop struct {
	servedShop *servedShop
	reached    *countedStore
	made       byte // how many keys nobodys has returned
}

func newFloodedShop(t *testing.T) *floodedShop {
	store := &countedStore{Store: newMemStore()}
	t.Cleanup(func() { store.Close() })
	s := newShopOn(t, store, "2026-11-20T10:00:00Z")
	s.apply(demoDocument)
	return &floodedShop{servedShop: s.served(), reached: store}
}

func (s *floodedShop) accesses() int64 { return s.reached.views.Load() + s.reached.updates.Load() }

func (s *floodedShop) ask(peer, path, key string) *httptest.ResponseRecorder {
	r := newRequest("GET", path, key, "")
	r.RemoteAddr = peer + ":1"
	return answerTo(s.servedShop.api, r)
}

// flood sends a thousand requests from one source, each with an API key that the function
// key returns. It counts the answers by status, and the accesses to the store.
func (s *floodedShop) flood(peer, path string, key func() string) (statuses map[int]int, accesses int64) {
	statuses = map[int]int{}
	before := s.accesses()
	for range 1000 {
		w := s.ask(peer, path, key())
		statuses[w.Code]++
		if w.Code == http.StatusTooManyRequests && (w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"rate_limit_source"`)) {
			s.servedShop.shop.Fatalf("%v %s", w.Header(), w.Body)
		}
	}
	return statuses, s.accesses() - before
}

// nobodys returns another well-formed key that was never created.
func (s *floodedShop) nobodys() string {
	s.made++
	return newAPIKey([32]byte{2, s.made})
}

// TestFloods sends a thousand requests without a good key from one source. None reaches
// the store. Those to a route get 429 after the first few. A good key from the same
// source is not affected, nor is another source.
func TestFloods(t *testing.T) {
	t.Parallel()
	const home, away, path = "203.0.113.1", "203.0.113.2", "/api/v1/segments"
	s := newFloodedShop(t)
	s.ask(away, path, newAPIKey([32]byte{1})) // loads the index of keys
	for _, test := range []struct {
		reason string
		path   string
		key    func() string
		want   map[int]int
	}{
		{"no key", path, func() string { return "" }, map[int]int{401: maxRefusals, 429: 1000 - maxRefusals}},
		{"no form", path, func() string { return "sello_x" }, map[int]int{401: maxRefusals, 429: 1000 - maxRefusals}},
		{"nobody's", path, s.nobodys, map[int]int{401: maxRefusals, 429: 1000 - maxRefusals}},
		{"no route", "/api/v1/none", s.nobodys, map[int]int{404: 1000}},
	} {
		s.servedShop.api.refused = newSourceLimits(maxRefusals, refusalEvery)
		statuses, accesses := s.flood(home, test.path, test.key)
		if fmt.Sprint(statuses) != fmt.Sprint(test.want) || accesses != 0 {
			t.Errorf("%s: %v and %d accesses to the store, want %v and none", test.reason, statuses, accesses, test.want)
		}
	}
	s.flood(home, path, s.nobodys)
	for range 400 {
		if w := s.ask(home, path, s.servedShop.key); w.Code != http.StatusOK {
			t.Fatalf("a good key from the source of the flood: %d", w.Code)
		}
	}
	_, later := s.servedShop.shop.newKey(keyRequest{})
	if w := s.ask(home, path, later); w.Code != http.StatusOK {
		t.Errorf("a key that was made meanwhile: %d", w.Code)
	}
	if w := s.ask(away, path, ""); w.Code != http.StatusUnauthorized {
		t.Errorf("another source: %d", w.Code)
	}
	if statuses, accesses := s.flood(home, "/readyz", func() string { return "" }); statuses[200] != 1000 || accesses != maxRefusals {
		t.Errorf("/readyz: %v and %d accesses, want %d", statuses, accesses, maxRefusals)
	}

	// Control: without the index and the limits every request reaches the store.
	forgetful := func() string {
		keys := &s.servedShop.shop.engine.store.keys
		keys.mu.Lock()
		keys.whole = false
		keys.mu.Unlock()
		s.servedShop.api.refused = newSourceLimits(maxRefusals, refusalEvery)
		return s.nobodys()
	}
	if statuses, accesses := s.flood(home, path, forgetful); statuses[401] != 1000 || accesses != 1000 {
		t.Errorf("control: %v and %d accesses", statuses, accesses)
	}
}

// TestKeyIndexDamaged uses a store that cannot list its keys. A key that exists is found
// all the same, and one that does not is refused.
func TestKeyIndexDamaged(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	_, text := s.newKey(keyRequest{})
	noLists := func(tx Tx) Tx { return brokenTx{Tx: tx, scan: func([]byte) error { return errOnFire }} }
	damaged := newEngine(wrappedStore{Store: s.engine.store.Store, view: noLists}, s.engine.now, s.engine.seed)
	_, err := damaged.authenticate(t.Context(), text, nil, s.clock)
	s.want(err, "")
	_, err = damaged.authenticate(t.Context(), newAPIKey([32]byte{1}), nil, s.clock)
	s.want(err, "api_key_invalid")
}
