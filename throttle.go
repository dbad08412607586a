package main

import (
	"sync"
	"time"
)

// How often a password may be tried. A source's tries are bounded by sourceLimits, the tries
// for one account here. An account is what was typed as its e-mail, whether there is such a
// user or not; a device that the user has logged in from counts as an account of its own, so
// that strangers cannot shut the user out.

// A source may try loginBurst passwords at once, and one more each loginEvery.
const (
	loginBurst = 20
	loginEvery = 10_000 // milliseconds
)

// Tries in a row that fail.
const (
	freeTries  = 5   // before the first wait
	lockTries  = 100 // after which no password is taken any more
	longestTry = 900 * time.Second
)

// maxAccounts is how many accounts each of the two maps of accountLimits holds.
const maxAccounts = 8192

// accountLimits count the tries of each account that failed in a row. Their memory is
// bounded: an account is forgotten after many others have come.
type accountLimits struct {
	mu             sync.Mutex
	recent, before map[[32]byte]tries
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
	was, known := l.recent[account]
	if !known {
		was = l.before[account]
	}
	if was.count >= lockTries {
		return 0, true
	}
	if was.last > now { // the clock was set back, which must not refuse for long
		was.last = now
	} else if next := was.last.add(waitAfter(was.count)); next > now {
		return next.sub(now), false
	}
	if !known && len(l.recent) >= maxAccounts || l.recent == nil {
		l.recent, l.before = map[[32]byte]tries{}, l.recent
	}
	l.recent[account] = tries{was.count + 1, now}
	return 0, false
}

// count returns how many tries in a row have failed.
func (l *accountLimits) count(account [32]byte) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t, known := l.recent[account]; known {
		return t.count
	}
	return l.before[account].count
}

// giveBack takes back a try that was not decided.
func (l *accountLimits) giveBack(account [32]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t, known := l.recent[account]; known && t.count > 0 {
		t.count--
		l.recent[account] = t
	}
}

// pass forgets the tries of an account: one succeeded.
func (l *accountLimits) pass(account [32]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.recent, account)
	delete(l.before, account)
}

// A waitError refuses a try that comes too early, in the panel's log-in.
type waitError struct{ wait time.Duration }

func (e *waitError) Error() string { return "too many tries" }

var errLocked = newPeopleError("login_locked", "", "Hubo demasiados intentos: pide un enlace para poner otra contraseña, o entra desde un dispositivo que ya usaste")
