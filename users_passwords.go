package main

import (
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"sello/internal/password"
)

// A PIN locks a session at the till. It is of one session: each person has one of their own,
// and it is gone with the session. A session with a PIN locks by hand, and after lockAfter
// without a request. While it is locked it does nothing but take the PIN. After pinTries wrong
// ones in a row it ends, and the password is needed: six digits are enough for so few tries.
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

// usualPINs are the most used of those that neither repeat nor run.
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
