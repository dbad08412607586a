package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"

	"sello/internal/totp"
)

// The second factor of a user is a code that changes every 30 seconds (internal/totp), or one
// of ten recovery codes, each good once. A code is accepted one step early or late, and only
// above the last step that was accepted, so that nobody can use it again who has seen it.

const (
	recoveryCodes = 10
	recoveryBytes = 10 // of random: 16 letters and digits
	codeTries     = 5  // of a half session
)

// A secondFactor is what is kept of one.
type secondFactor struct {
	Secret   []byte // as it is: codes are computed from it
	Since    instant
	LastStep int64    // of the code that was accepted last
	Recovery [][]byte // SHA-256 of the codes that are left
}

func (f *secondFactor) fields(c *coder) {
	c.bytes(&f.Secret)
	c.instant(&f.Since)
	intField(c, &f.LastStep)
	listField(c, &f.Recovery, func(hash *[]byte, c *coder) { c.bytes(hash) })
}

var (
	errCodeWrong   = newPeopleError("code_wrong", "factorCode", "El código no es correcto")
	errFactorThere = newPeopleError("factor_there", "", "Ya hay un segundo factor: primero quita el que hay")
	errFactorNone  = newPeopleError("factor_none", "", "No hay segundo factor")
)

// factorOf returns the second factor of a user; nil if there is none.
func factorOf(tx Tx, user id) (*secondFactor, error) {
	return get[secondFactor](tx, userKey(user, partFactor))
}

// lacksFactor reports whether a member has to set up a second factor before anything else:
// whoever runs the server, and the roles that an owner has named.
func lacksFactor(tx Tx, m *member, cfg *config) (bool, error) {
	if !m.user.Operator && !slices.Contains(cfg.Organization.Settings.SecondFactor, m.role) {
		return false, nil
	}
	f, err := factorOf(tx, m.user.ID)
	return f == nil, err
}

// accept uses up a code, and reports whether it is one of the factor's.
func (f *secondFactor) accept(code string, now instant) bool {
	code = totp.Plain(code)
	if len(code) == totp.Digits {
		step := totp.Find(f.Secret, code, int64(now), f.LastStep)
		if step > 0 {
			f.LastStep = step
		}
		return step > 0
	}
	hash := sha256.Sum256([]byte(code))
	at := -1
	for i, kept := range f.Recovery {
		if subtle.ConstantTimeCompare(hash[:], kept) == 1 {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	f.Recovery = slices.Delete(slices.Clone(f.Recovery), at, at+1)
	return true
}

// addFactor gives a member a second factor whose secret it was shown, if the code is the
// secret's. The code counts as used. All other sessions of the user end, since they came in
// without. It returns the recovery codes, which cannot be shown again.
func (p *peopleTxn) addFactor(m *member, secret, code string) (recovery []string, err error) {
	raw, err := totp.Base32.DecodeString(secret)
	if err != nil {
		return nil, err
	}
	if old, err := factorOf(p.t.Tx, m.user.ID); err != nil || old != nil {
		if err == nil {
			err = errFactorThere
		}
		return nil, err
	}
	f := &secondFactor{Secret: raw, Since: p.t.now}
	if len(totp.Plain(code)) != totp.Digits || !f.accept(code, p.t.now) {
		return nil, errCodeWrong
	}
	if recovery, err = p.newRecovery(m.user.ID, f); err != nil {
		return nil, err
	}
	if _, err := p.endSessions(m.user.ID, 0, &m.hash); err != nil {
		return nil, err
	}
	return recovery, p.noteEverywhere(m.user.ID, auditUserChanged, []change{{"secondFactor", nil, true}})
}

func (p *peopleTxn) newRecovery(user id, f *secondFactor) (codes []string, err error) {
	f.Recovery = nil
	for range recoveryCodes {
		var random [recoveryBytes]byte
		p.t.bytes(random[:])
		code := totp.Base32.EncodeToString(random[:])
		hash := sha256.Sum256([]byte(code))
		codes, f.Recovery = append(codes, totp.InFours(code)), append(f.Recovery, hash[:])
	}
	return codes, p.saveFactor(user, f)
}

func (p *peopleTxn) saveFactor(user id, f *secondFactor) error {
	return p.t.put(userKey(user, partFactor), f)
}

// forgetFactor takes away a user's second factor, if there is one, and returns what changed
// for the audit log.
func (p *peopleTxn) forgetFactor(user id) ([]change, error) {
	f, err := factorOf(p.t.Tx, user)
	if err != nil || f == nil {
		return nil, err
	}
	return []change{{"secondFactor", true, nil}}, p.t.Delete(userKey(user, partFactor))
}

// How members change their own second factor.

// withCode runs what takes a code of a member's second factor. fn gets the factor with the
// code used up, and stores or drops it.
func withCode[T any](ctx context.Context, l *logins, m *member, code, requestID string, from *arrival, now instant, fn func(*txn, *member, *secondFactor) (T, error)) (result T, err error) {
	account, err := l.tryCode(ctx, m.user.ID, code, from, now)
	if err != nil {
		return result, err
	}
	result, err = write(ctx, l.engine, m.org, now, func(t *txn) (result T, err error) {
		t.by, t.requestID = creator{Type: byUser, ID: m.user.ID}, requestID
		again, err := t.people.stillIn(m, l.engine.sessionLimits)
		if err != nil {
			return result, err
		}
		f, err := factorOf(t.Tx, m.user.ID)
		switch {
		case err != nil:
			return result, err
		case f == nil:
			return result, errFactorNone
		case !f.accept(code, t.now):
			return result, errCodeWrong
		}
		return fn(t, again, f)
	})
	switch {
	case err == nil:
		l.codes.pass(account)
	case errors.Is(err, errCodeWrong):
		l.noteRefused(&claim{user: m.user})
	default:
		l.codes.giveBack(account)
	}
	return result, err
}

func (l *logins) renewRecovery(ctx context.Context, m *member, code, requestID string, from *arrival, now instant) (codes []string, err error) {
	return withCode(ctx, l, m, code, requestID, from, now, func(t *txn, again *member, f *secondFactor) ([]string, error) {
		codes, err := t.people.newRecovery(again.user.ID, f)
		if err != nil {
			return nil, err
		}
		return codes, t.people.noteEverywhere(again.user.ID, auditUserChanged, unsaid("recoveryCodes"))
	})
}

// A factorDropped is what a member gives to have no second factor any more.
type factorDropped struct {
	arrival
	Code      string
	Old       string // the password
	Password  string // another one, in its place; "" leaves it
	RequestID string
}

// errPasswordAlone refuses to drop a second factor of whoever has a password that is too weak
// to stand alone.
var errPasswordAlone = newPeopleError("password_alone", "password", "Sin segundo factor la contraseña necesita al menos 15 caracteres: pon otra")

// dropFactor takes away a member's second factor. The password has to be strong enough without a
// factor. Where the password is replaced, dropFactor returns the session's new token, and the
// other sessions end; else the token is "".
func (l *logins) dropFactor(ctx context.Context, m *member, in *factorDropped, now instant) (token string, err error) {
	if err := l.claimsItself(ctx, m, in.Old, &in.arrival, now); err != nil {
		return "", err
	}
	next := in.Password
	if next == "" {
		next = in.Old
	}
	var h passwordHash
	err = l.checkNew(ctx, m.org, id{}, next, m.user.Email, m.user.Name) // as of who has no factor
	switch {
	case errors.Is(err, errPasswordShort) && in.Password == "":
		return "", errPasswordAlone
	case err == nil && in.Password != "":
		h, err = l.hash(ctx, in.Password)
	}
	if err != nil {
		return "", err
	}
	token, err = withCode(ctx, l, m, in.Code, in.RequestID, &in.arrival, now, func(t *txn, again *member, _ *secondFactor) (string, error) {
		u := again.user
		if !u.Password.equal(&m.user.Password) { // changed meanwhile
			return "", errLogInFailed
		}
		changes, err := t.people.forgetFactor(u.ID)
		if err != nil {
			return "", err
		}
		if in.Password == "" {
			return "", t.people.noteEverywhere(u.ID, auditUserChanged, changes)
		}
		if err := t.people.setPassword(u, h, &m.hash, changes...); err != nil {
			return "", err
		}
		return t.people.renewSession(again)
	})
	if err == nil {
		l.forgive(m.user)
	}
	return token, err
}

// offeredSecret is the secret of a new second factor that a page offers to a member. It is the
// server's: only the store has what it is made from, and it differs with the session and with
// each opening of the page, which token stands for. So no form carries the secret, and nobody
// can choose it.
func offeredSecret(m *member, token string) string {
	mac := hmac.New(sha256.New, m.user.Password.Sum)
	mac.Write([]byte("second factor"))
	mac.Write(m.hash[:])
	mac.Write([]byte(token))
	return totp.Base32.EncodeToString(mac.Sum(nil)[:totp.Secret])
}
