package main

import (
	"net/netip"
	"sync"
	"time"

	"sello/internal/throttle"
)

// How often a password may be tried. A source's tries are bounded by loginLimits, the tries
// for one account by accountLimits. An account is what was typed as its e-mail, whether there
// is such a user or not. A device that the user has logged in from counts as an account of
// its own and is not held up by its source, so that strangers cannot shut the user out.

// A source may try loginBurst passwords at once, and one more each loginEvery. A provider's
// customer can have a /48 of IPv6, which is 65,536 sources: together they may try as much as
// netSources of them.
const (
	loginBurst = 20
	loginEvery = 10_000 // milliseconds
	netSources = 5
)

// loginLimits bound the tries of sources and of their networks, and those of known devices in
// their place.
type loginLimits struct {
	sources, nets throttle.Buckets[netip.Addr, instant]
	devices       throttle.Buckets[[32]byte, instant]
}

func newLoginLimits(burst, every instant) loginLimits {
	return loginLimits{
		throttle.Buckets[netip.Addr, instant]{Burst: burst, Every: every},
		throttle.Buckets[netip.Addr, instant]{Burst: burst * netSources, Every: max(every/netSources, 1)},
		throttle.Buckets[[32]byte, instant]{Burst: burst, Every: every},
	}
}

// take counts a try of a source, or returns how long until the next.
func (l *loginLimits) take(source netip.Addr, now instant) (wait instant) {
	source = sourceOf(source)
	wait = l.sources.Take(source, now)
	if wait == 0 && source.Is6() {
		wait = l.nets.Take(netip.PrefixFrom(source, 48).Masked().Addr(), now)
	}
	return wait
}

// Tries in a row that fail.
const (
	freeTries  = 5   // before the first wait
	lockTries  = 100 // after which no password is taken any more
	longestTry = 900 * time.Second
)

// accountLimits count the tries of each account that failed in a row. It is safe for
// concurrent use.
type accountLimits struct {
	endless bool // there is another try after each wait, however many have failed
	mu      sync.Mutex
	failed  throttle.Recent[[32]byte, tries]
}

// tries are those of one account, the one under way included.
type tries struct {
	count int
	last  instant
}

// waitAfter returns how long after n tries in a row the next has to wait.
func waitAfter(n int) time.Duration {
	if n < freeTries {
		return 0
	}
	return min(time.Second<<min(n-freeTries, 10), longestTry)
}

// try counts a try of an account as failed, until pass or giveBack; or returns how long until
// the next. locked says that there is none.
func (l *accountLimits) try(account [32]byte, now instant) (wait time.Duration, locked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.failed.Get(account)
	if was.count >= lockTries && !l.endless {
		return 0, true
	}
	if was.last > now { // the clock was set back, which must not refuse for long
		was.last = now
	} else if next := was.last.add(waitAfter(was.count)); next > now {
		return next.sub(now), false
	}
	l.failed.Put(account, tries{was.count + 1, now})
	return 0, false
}

// count returns how many tries in a row have failed.
func (l *accountLimits) count(account [32]byte) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed.Get(account).count
}

// giveBack takes back a try that was not decided.
func (l *accountLimits) giveBack(account [32]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.failed.Get(account); t.count > 0 {
		t.count--
		l.failed.Put(account, t)
	}
}

// pass forgets the tries of an account: one succeeded.
func (l *accountLimits) pass(account [32]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed.Delete(account)
}

// A waitError refuses a try that comes too early, in the panel's log-in.
type waitError struct{ wait time.Duration }

func (e *waitError) Error() string { return "too many tries" }

var errLocked = newPeopleError("login_locked", "", "Hubo demasiados intentos: pide un enlace para poner otra contraseña, o entra desde un dispositivo que ya usaste")
