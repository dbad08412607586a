package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"sello/internal/password"
	"sello/internal/throttle"
)

// The passwords of users, the PINs that lock sessions at the till, and how often both may be tried.

// A PIN locks one session at the till: each person has one of their own, which ends with the
// session. A session with a PIN locks by hand, and after lockAfter without a request. While it is
// locked it does nothing but take the PIN. After pinTries wrong PINs in a row the session ends, and
// the password is needed: six digits are enough for so few tries.
//
// The tries and the lock are in the session's record, so that neither a restart nor a second
// tab gives more of them.

const (
	pinDigits     = 6
	pinTries      = 5
	pinIterations = 10_000 // some 2 ms: whoever has the file finds six digits in any case
	lockAfter     = 10 * time.Minute
	pinLonger     = 2 * time.Hour // a session with a PIN lasts so much longer
)

var (
	errPINDigits  = newPeopleError("pin_digits", "pin", "El PIN tiene 6 dígitos")
	errPINTrivial = newPeopleError("pin_trivial", "pin", "Ese PIN es de los primeros que alguien probaría")
	errPINDiffers = newPeopleError("pin_differs", "pinAgain", "No es el mismo PIN")
	errPINWrong   = newPeopleError("pin_wrong", "pin", "El PIN no es correcto")
	errPINThere   = newPeopleError("pin_there", "", "Esta sesión ya tiene un PIN")
)

// usualPINs are the most used PINs that neither repeat nor run.
var usualPINs = []string{"112233", "123321", "147258", "159753", "258369", "789456"}

// checkPIN returns why a new PIN is refused.
func checkPIN(pin string) error {
	if len(pin) != pinDigits || strings.Trim(pin, "0123456789") != "" {
		return errPINDigits
	}
	digits := []rune(pin)
	different := slices.Compact(slices.Sorted(slices.Values(digits)))
	if len(different) < 3 || len(password.WithoutRepeats(digits)) <= pinDigits/2 || len(password.WithoutRuns(digits)) == 0 || slices.Contains(usualPINs, pin) {
		return errPINTrivial
	}
	return nil
}

// newPIN is what is kept of a PIN.
func newPIN(pin string, random seed) (h passwordHash, err error) {
	sum := sha256.Sum256(random[:])
	h.Iterations, h.Salt = pinIterations, sum[:password.SaltSize]
	h.Sum, err = h.derive(pin)
	return h, err
}

func (s *session) hasPIN() bool { return s.PIN.Iterations != 0 }

// locked reports whether a session waits for its PIN.
func (l sessionLimits) locked(s *session, hash [32]byte, now instant) bool {
	return s.hasPIN() && (s.LockedAt != 0 || now >= l.seen.last(hash, s.SeenAt).add(min(lockAfter, l.idle)))
}

// lock locks a member's session, which has a PIN.
func (p *peopleTxn) lock(m *member, limits sessionLimits) error {
	again, err := p.stillIn(m, limits)
	if err != nil {
		return err
	}
	again.session.LockedAt = p.t.now
	return p.t.put(sessionKey(m.hash), again.session)
}

// unlock lets a session go on.
func (p *peopleTxn) unlock(s *session) error {
	s.LockedAt, s.SeenAt = 0, p.t.now
	return nil
}

// choosePIN gives a member's session its first PIN.
func (p *peopleTxn) choosePIN(m *member, limits sessionLimits, h passwordHash, lock bool) error {
	again, err := p.stillIn(m, limits)
	if err == nil && again.session.hasPIN() {
		err = errPINThere
	}
	if err == nil {
		err = p.setPIN(again.session, h, lock)
	}
	if err != nil {
		return err
	}
	return p.t.put(sessionKey(m.hash), again.session)
}

// setPIN puts a PIN into a session; the zero one takes it away.
func (p *peopleTxn) setPIN(s *session, h passwordHash, lock bool) error {
	if s.PIN, s.Tries = h, 0; h.Iterations != 0 {
		s.PIN.At = p.t.now
	}
	if s.LockedAt = 0; lock {
		s.LockedAt = p.t.now
	}
	return p.noteEverywhere(s.User, auditUserChanged, unsaid("pin"))
}

// A pinTry is what came of a try of a PIN.
type pinTry int

const (
	pinWrong pinTry = iota
	pinEnded        // and the session with it
	pinRight
)

// tryPIN counts a try of the PIN that m has. right says whether it was the right one: it is compared
// before the transaction, as that takes time. If so, then is called to change the session.
func (p *peopleTxn) tryPIN(m *member, limits sessionLimits, right bool, then func(*session) error) (pinTry, error) {
	again, err := p.stillIn(m, limits)
	if err != nil {
		return pinWrong, err
	}
	s := again.session
	if !s.PIN.equal(&m.session.PIN) { // changed meanwhile
		return pinWrong, nil
	}
	if right {
		s.Tries = 0
		if err := then(s); err != nil {
			return pinWrong, err
		}
		return pinRight, p.t.put(sessionKey(m.hash), s)
	}
	if s.Tries++; s.Tries < pinTries {
		return pinWrong, p.t.put(sessionKey(m.hash), s)
	}
	return pinEnded, p.logOut(m)
}

// Lengths of passwords in characters (NIST SP 800-63B-4 §3.1.1).
const (
	minPassword           = 15
	minPasswordWithFactor = 10 // with a second factor
	maxPassword           = 128
)

// A passwordHash is what is kept of a password (internal/password). The zero one is of no password.
type passwordHash struct {
	Iterations int
	Salt, Sum  []byte
	At         instant // when the password was set
}

func (h *passwordHash) fields(c *coder) {
	uintField(c, &h.Iterations)
	c.bytes(&h.Salt)
	c.bytes(&h.Sum)
	c.instant(&h.At)
}

// derive returns the sum of a password by the hash's salt and iterations.
func (h *passwordHash) derive(text string) ([]byte, error) {
	return password.Hash(text, h.Salt, h.Iterations)
}

func (h *passwordHash) matches(text string) (bool, error) {
	return password.Matches(text, h.Salt, h.Iterations, h.Sum)
}

// equal reports whether two hashes are of the same setting of a password.
func (h *passwordHash) equal(o *passwordHash) bool {
	return subtle.ConstantTimeCompare(h.Salt, o.Salt)&subtle.ConstantTimeCompare(h.Sum, o.Sum) == 1
}

var (
	errPasswordShort    = newPeopleError("password_short", "password", "La contraseña debe tener al menos 15 caracteres (10 con segundo factor)")
	errPasswordLong     = newPeopleError("password_long", "password", "La contraseña no puede superar los 128 caracteres")
	errPasswordText     = newPeopleError("password_text", "password", "La contraseña tiene caracteres de control")
	errPasswordRepeats  = newPeopleError("password_repeats", "password", "La contraseña repite lo mismo una y otra vez")
	errPasswordKeyboard = newPeopleError("password_keyboard", "password", "La contraseña sigue el orden del teclado o del abecedario")
	errPasswordOwn      = newPeopleError("password_own", "password", "La contraseña es tu nombre, tu email o el de la organización")
	errPasswordUsual    = newPeopleError("password_usual", "password", "La contraseña es de las más usadas")
)

var errPasswordWeak = [...]error{
	password.None: nil, password.Repeats: errPasswordRepeats, password.Keyboard: errPasswordKeyboard, password.Own: errPasswordOwn, password.Usual: errPasswordUsual,
}

// checkPassword returns why a new password is refused. own are texts with words that
// whoever knows the user would try.
func checkPassword(text string, withFactor bool, own ...string) error {
	least := minPassword
	if withFactor {
		least = minPasswordWithFactor
	}
	switch n := utf8.RuneCountInString(text); {
	case n < least:
		return errPasswordShort
	case n > maxPassword:
		return errPasswordLong
	case !utf8.ValidString(text) || strings.ContainsFunc(text, forbidden):
		return errPasswordText
	}
	return errPasswordWeak[password.WeaknessOf(text, own, "lealtad", "loyalty", "sello")]
}

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

// loginLimits bound the tries of sources and of their networks. A try from a known device counts
// for the device instead.
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

// tries are the tries of one account in a row, with the try under way.
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
