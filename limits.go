package main

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"time"

	"sello/internal/semaphore"
	"sello/internal/throttle"
)

// How much may be asked: requests per API key (spec: Limits; contract §5), refused requests per
// source, and large requests at one time.
//
// The minute is a sliding window: a request is accepted if fewer than the limit were
// accepted in the 60 seconds before it, counted in milliseconds like all times here.
// Days and months are in UTC. Their counts are written to the store once a second
// and read back at a key's first request, so a crash forgets at most the last second.
//
// Where several servers share a store, each counts its own minute. Of days and months, each
// adds its share to what is stored, once a second, and goes on from the sum. So a limit by day
// or month is passed by what the others accept in a second, at most.

const minuteMillis = 60_000

// A limiter counts the accepted requests of every key.
type limiter struct {
	mu       sync.Mutex
	keys     map[id]*usage
	flushing sync.Mutex // one flush at a time: an older count must not be written last
}

func newLimiter() *limiter { return &limiter{keys: map[id]*usage{}} }

type usage struct {
	mu     sync.Mutex
	loaded bool // saved is not older than a second
	dirty  bool // saved has what is not stored
	saved  savedUsage
	base   savedUsage // what was stored when this server last read or wrote it
	tried  savedUsage // what saved was at the last flush, if
	unsure bool       // nobody knows whether that flush is stored
	minute slidingMinute
}

// savedUsage is the part of usage that the store keeps.
type savedUsage struct {
	LastUsed instant // to the minute
	Day      int64   // since 1970, UTC
	InDay    uint64
	Month    int64 // since year 0, UTC
	InMonth  uint64
}

func (u *savedUsage) fields(c *coder) {
	c.instant(&u.LastUsed)
	intField(c, &u.Day)
	c.uint(&u.InDay)
	intField(c, &u.Month)
	c.uint(&u.InMonth)
}

// utcDay and utcMonth number days and months as savedUsage does.
func utcDay(at instant) int64 { return at.time().Unix() / 86400 }

func utcMonth(at instant) int64 {
	t := at.time()
	return int64(t.Year())*12 + int64(t.Month()) - 1
}

func usageKey(keyID id) key { return newKey('u').id(keyID) }

// A quota is the state of one window after a request.
type quota struct {
	name      string // minute, day or month
	limit     uint64
	used      uint64
	seconds   int64   // length of the window
	freeAgain instant // when the count next falls, and far enough if it left no room
}

// quotaCodes has the error of each window when it is used up.
var quotaCodes = map[string]errorCode{"minute": codeRateLimitMinute, "day": codeRateLimitDay, "month": codeRateLimitMonth}

func (q *quota) remaining() uint64 { return q.limit - min(q.used, q.limit) }

// An allowance is the state of all windows of a key. It has room for them and for the
// headers that report them.
type allowance struct {
	quotas  []quota // the minute's first
	windows [3]quota
	headers [5]string
	counted savedUsage // the day and month that the request was counted in
	at      instant    // its tick in the minute
}

// take counts a request of the key and sets after to the state of the key's windows. If
// a window is used up it counts nothing and returns the error of that window; of
// several, the one that frees up last.
func (l *limiter) take(ctx context.Context, s Store, k *apiKey, now instant, after *allowance) error {
	l.mu.Lock()
	u := l.keys[k.ID]
	if u == nil {
		u = new(usage)
		l.keys[k.ID] = u
	}
	l.mu.Unlock()

	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.loaded && !u.dirty {
		saved, err := viewStore(ctx, s, func(tx Tx) (*savedUsage, error) { return get[savedUsage](tx, usageKey(k.ID)) })
		if err != nil {
			return err
		}
		if saved != nil {
			u.saved = *saved
		}
		u.base, u.loaded = u.saved, true
	}
	return u.take(k, 1, now, after)
}

// takeMore counts more requests after take has counted one. If they do not all fit, none is
// counted, and the first one no longer. more is below the key's leastLimit.
func (l *limiter) takeMore(k *apiKey, more int, now instant, after *allowance) error {
	l.mu.Lock()
	u := l.keys[k.ID]
	l.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.giveBack(k, after)
	return u.take(k, uint64(more)+1, now, after)
}

// leastLimit is the most requests that the key could ever make at once.
func (k *apiKey) leastLimit() int {
	least := k.RateLimit
	for _, limit := range []int{k.DailyLimit, k.MonthlyLimit} {
		if limit > 0 {
			least = min(least, limit)
		}
	}
	return least
}

// giveBack takes back the request that was counted last in after.
func (u *usage) giveBack(k *apiKey, after *allowance) {
	u.minute.remove(after.at)
	u.dirty = true
	if k.DailyLimit > 0 && u.saved.Day == after.counted.Day && u.saved.InDay > 0 {
		u.saved.InDay--
	}
	if k.MonthlyLimit > 0 && u.saved.Month == after.counted.Month && u.saved.InMonth > 0 {
		u.saved.InMonth--
	}
}

// take counts n requests, or none.
func (u *usage) take(k *apiKey, n uint64, now instant, after *allowance) error {
	// Windows only move forward, so that a clock set back and forward again gives no
	// fresh day. Only a window more than one ahead of now moves back: the clock must
	// have been wrong.
	if k.DailyLimit > 0 {
		if day := utcDay(now); day > u.saved.Day || day < u.saved.Day-1 {
			u.saved.Day, u.saved.InDay = day, 0
		}
	}
	if k.MonthlyLimit > 0 {
		if month := utcMonth(now); month > u.saved.Month || month < u.saved.Month-1 {
			u.saved.Month, u.saved.InMonth = month, 0
		}
	}
	u.minute.forget(now)

	after.quotas = u.quotas(k, n, now, after.windows[:0])
	var refused *quota
	for i := range after.quotas {
		if q := &after.quotas[i]; q.remaining() < n && (refused == nil || q.freeAgain > refused.freeAgain) {
			refused = q
		}
	}
	if refused != nil {
		return rateLimited(quotaCodes[refused.name], refused.limit, refused.name, refused.freeAgain, now)
	}
	for i := range after.quotas {
		after.quotas[i].used += n // freeAgain stays the same
	}
	after.at = u.minute.add(now, int(n))
	if k.DailyLimit > 0 {
		u.saved.InDay += n
		u.dirty = true
	}
	if k.MonthlyLimit > 0 {
		u.saved.InMonth += n
		u.dirty = true
	}
	after.counted = u.saved
	if minute := now - now%minuteMillis; minute != u.saved.LastUsed {
		u.saved.LastUsed = minute
		u.dirty = true
	}
	return nil
}

func rateLimited(code errorCode, limit uint64, window string, freeAgain, now instant) *apiError {
	return newError(code).
		with("limit", limit).with("window", window).with("resetAt", freeAgain).
		retryAfter(freeAgain - now)
}

// quotas appends the windows that limit the key to list, for n requests at once.
func (u *usage) quotas(k *apiKey, n uint64, now instant, list []quota) []quota {
	list = append(list, quota{"minute", uint64(k.RateLimit), uint64(u.minute.count), 60, u.minute.freeAgain(uint64(k.RateLimit)-n+1, now)})
	if k.DailyLimit > 0 {
		next := time.Unix((u.saved.Day+1)*86400, 0)
		list = append(list, quota{"day", uint64(k.DailyLimit), u.saved.InDay, 86400, instantOf(next)})
	}
	if k.MonthlyLimit > 0 {
		this := time.Date(0, time.Month(u.saved.Month+1), 1, 0, 0, 0, 0, time.UTC)
		next := this.AddDate(0, 1, 0)
		list = append(list, quota{"month", uint64(k.MonthlyLimit), u.saved.InMonth, int64(next.Sub(this) / time.Second), instantOf(next)})
	}
	return list
}

// setHeaders sets the headers that report all limits and the tightest one: the window
// with the least left, and among equals the one that frees up last.
func (s *allowance) setHeaders(h http.Header, now instant) {
	tightest := &s.quotas[0]
	for i := range s.quotas {
		q := &s.quotas[i]
		if q.remaining() < tightest.remaining() || q.remaining() == tightest.remaining() && q.freeAgain > tightest.freeAgain {
			tightest = q
		}
	}
	// All values are parts of one string: the policy, the state of the tightest window
	// (which contains what remains and the reset) and its limit.
	var space [192]byte
	b := space[:0]
	for i := range s.quotas {
		q := &s.quotas[i]
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(append(b, '"'), q.name...), '"')
		b = strconv.AppendUint(append(b, ";q="...), q.limit, 10)
		b = strconv.AppendInt(append(b, ";w="...), q.seconds, 10)
	}
	policy := len(b)
	b = append(append(append(b, '"'), tightest.name...), '"')
	b = append(b, ";r="...)
	remaining := len(b)
	b = strconv.AppendUint(b, tightest.remaining(), 10)
	remainingEnd := len(b)
	b = append(b, ";t="...)
	reset := len(b)
	b = strconv.AppendInt(b, secondsOf(tightest.freeAgain-now), 10)
	end := len(b)
	b = strconv.AppendUint(b, tightest.limit, 10)

	text := string(b)
	s.headers = [...]string{text[:policy], text[policy:end], text[end:], text[remaining:remainingEnd], text[reset:end]}
	for i, name := range [...]string{"RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		h[name] = s.headers[i : i+1 : i+1]
	}
}

// flush writes the usage of the keys that changed since the last flush. What others have
// counted by then is taken over, for keys without a change at their next request.
func (l *limiter) flush(ctx context.Context, s Store) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	keys := maps.Clone(l.keys)
	l.mu.Unlock()
	shared := isShared(s)
	changed := map[id]*usage{} // as they are now
	for keyID, u := range keys {
		u.mu.Lock()
		if u.dirty {
			changed[keyID] = &usage{saved: u.saved, base: u.base, tried: u.tried, unsure: u.unsure}
			u.dirty = false
		} else if u.saved.Day != 0 || u.saved.Month != 0 {
			u.loaded = u.loaded && !shared
		}
		u.mu.Unlock()
	}
	if len(changed) == 0 {
		return nil
	}
	stored, err := updateStore(ctx, s, func(tx Tx) (map[id]savedUsage, error) {
		sums := map[id]savedUsage{}
		for keyID, u := range changed {
			sum := u.saved
			if shared {
				old, err := get[savedUsage](tx, usageKey(keyID))
				if err != nil {
					return nil, err
				}
				if old != nil {
					sum = u.addTo(*old)
				}
			}
			sums[keyID] = sum
			if err := put(tx, usageKey(keyID), &sum); err != nil {
				return nil, err
			}
		}
		return sums, nil
	})
	for keyID, then := range changed {
		u := keys[keyID]
		u.mu.Lock()
		switch {
		case err == nil:
			u.base, u.saved = stored[keyID], stored[keyID].plus(then.saved, u.saved)
			u.loaded, u.unsure = true, false
		case errors.Is(err, errUnavailable) && !errors.Is(err, errBusy):
			u.tried, u.unsure = then.saved, true
			fallthrough
		default:
			u.dirty = true
		}
		u.mu.Unlock()
	}
	return err
}

// addTo adds this server's share to what is stored. If nobody knows whether the last flush is
// stored, and anybody has written since, that share is not added again. So a key may get a few
// requests more, as after a crash, but is never refused a request that its limit allows.
func (u *usage) addTo(stored savedUsage) savedUsage {
	if u.unsure && stored != u.base {
		return stored.plus(u.tried, u.saved)
	}
	return stored.plus(u.base, u.saved)
}

// plus adds what was counted from one state to a later one.
func (stored savedUsage) plus(from, to savedUsage) savedUsage {
	if stored == from {
		return to
	}
	stored.LastUsed = max(stored.LastUsed, to.LastUsed)
	day := windowCount{stored.Day, stored.InDay}.plus(windowCount{from.Day, from.InDay}, windowCount{to.Day, to.InDay})
	stored.Day, stored.InDay = day.window, day.requests
	month := windowCount{stored.Month, stored.InMonth}.plus(windowCount{from.Month, from.InMonth}, windowCount{to.Month, to.InMonth})
	stored.Month, stored.InMonth = month.window, month.requests
	return stored
}

type windowCount struct {
	window   int64
	requests uint64
}

// plus is savedUsage.plus for one window. Windows move as in take. What was counted in a window
// that the others have left is of no use any more.
func (stored windowCount) plus(from, to windowCount) windowCount {
	switch {
	case to == from:
		return stored
	case to.window == stored.window:
		if from.window != to.window {
			from.requests = 0
		}
		// Less than none is possible if a request that is given back was never stored.
		return windowCount{to.window, uint64(max(0, int64(stored.requests+to.requests-from.requests)))}
	case to.window > stored.window, to.window != from.window && to.window < stored.window-1:
		return to
	}
	return stored
}

// lastUsed returns when the key was last used, to the minute, as of the last flush.
func lastUsed(tx Tx, keyID id) (instant, error) {
	saved, err := get[savedUsage](tx, usageKey(keyID))
	if err != nil || saved == nil {
		return 0, err
	}
	return saved.LastUsed, nil
}

// A slidingMinute counts the requests accepted in the last 60 seconds. It is a queue of
// the milliseconds that had any, oldest first.
type slidingMinute struct {
	ticks []tick // in use from head on
	head  int
	count int
}

type tick struct {
	at       instant
	requests int
}

// forget drops requests that are 60 seconds old. It drops all if the last lies more
// than 60 seconds ahead: a clock that was wrong must not refuse a key for long.
func (m *slidingMinute) forget(now instant) {
	if last := len(m.ticks) - 1; last >= m.head && m.ticks[last].at > now+minuteMillis {
		*m = slidingMinute{}
	}
	for m.head < len(m.ticks) && m.ticks[m.head].at <= now-minuteMillis {
		m.count -= m.ticks[m.head].requests
		m.head++
	}
	if m.head > len(m.ticks)/2 {
		m.ticks = append(m.ticks[:0], m.ticks[m.head:]...)
		m.head = 0
	}
}

// add counts n requests and returns the millisecond that they are counted in.
func (m *slidingMinute) add(now instant, n int) instant {
	m.count += n
	// A clock set back must not break the order.
	if last := len(m.ticks) - 1; last >= m.head && m.ticks[last].at >= now {
		m.ticks[last].requests += n
		return m.ticks[last].at
	}
	m.ticks = append(m.ticks, tick{now, n})
	return now
}

// remove takes back a request that was counted in a millisecond, unless it is forgotten.
func (m *slidingMinute) remove(at instant) {
	for i := len(m.ticks) - 1; i >= m.head && m.ticks[i].at >= at; i-- {
		if m.ticks[i].at == at {
			m.ticks[i].requests--
			m.count--
			return
		}
	}
}

// freeAgain returns when the count will have fallen below the limit. If it is below
// already, it returns when the count falls next.
func (m *slidingMinute) freeAgain(limit uint64, now instant) instant {
	count := m.count
	for _, t := range m.ticks[m.head:] {
		count -= t.requests
		if uint64(count) < limit {
			return t.at + minuteMillis
		}
	}
	return now + minuteMillis
}

// used returns what a key has used, as of the last flush: in the day and month of now. Only
// what has a limit is counted.
func (ks *keysTxn) used(keyID id) (u savedUsage, err error) {
	saved, err := get[savedUsage](ks.t.Tx, usageKey(keyID))
	if err != nil || saved == nil {
		return u, err
	}
	u = *saved
	if u.Day != utcDay(ks.t.now) {
		u.InDay = 0
	}
	if u.Month != utcMonth(ks.t.now) {
		u.InMonth = 0
	}
	return u, nil
}

// A source may be refused maxRefusals times at once, and as many times again each
// minute. That is the default limit of a key's requests.
const (
	maxRefusals  = defaultRateLimit
	refusalEvery = minuteMillis / maxRefusals
)

// sourceLimits bound how often a source may be refused, by a bucket for each source. The zero value
// refuses nobody.
type sourceLimits struct {
	buckets throttle.Buckets[netip.Addr, instant]
}

// take spends one token of a source, or returns how long until the next.
func (l *sourceLimits) take(source netip.Addr, now instant) (wait instant) {
	return l.buckets.Take(sourceOf(source), now)
}

// newSourceLimits returns limits of burst tokens, and one more every so many milliseconds.
func newSourceLimits(burst, every instant) sourceLimits {
	return sourceLimits{throttle.Buckets[netip.Addr, instant]{Burst: burst, Every: every}}
}

// Large requests are lists, statistics and POSTs with a large body. Semaphores bound what they
// hold: semaphores of memory, so that the bytes held for many connections do not add up, and
// semaphores of processors, so that small requests and /livez do not wait behind large ones. A
// request that gets no units in time is answered with 503.

const (
	// Bodies up to smallBody need no units. Splitting a body into small members takes
	// more memory than the body; maxMembers bounds that.
	smallBody   = 4 << 10
	largeBodies = 8 << 20 // bytes of larger bodies held at a time

	// The kernel buffers this much of an answer for a slow reader.
	smallAnswer  = 32 << 10
	largeAnswers = 32 << 20 // bytes of larger answers held at a time

	semaphoreUnit = 16 << 10        // bytes
	semaphoreWait = 2 * time.Second // for the units of one semaphore
	// Slow readers hold the units of answers. While a request waits for them it holds
	// up others whose answers need none.
	answerWait = 100 * time.Millisecond
)

func newSemaphore(units int) *semaphore.Semaphore { return semaphore.New(units, errNoRoom) }

// processors is the size of a semaphore of processors: half of them. Reading and parsing
// have a semaphore each, so that large reads take nothing from large writes.
func processors() int { return max(runtime.GOMAXPROCS(0)/2, 1) }

// unitsOf is how many units n bytes take.
func unitsOf(n int) int { return (n + semaphoreUnit - 1) / semaphoreUnit }
