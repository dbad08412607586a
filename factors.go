package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"

	"sello/internal/totp"
)

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

// renewRecovery gives a member other recovery codes.
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

// dropFactor takes away a member's second factor. The password has to be one that stands
// alone. Where it is replaced, the session gets another token, which it returns, and the
// others end; else the token is "".
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
