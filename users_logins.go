package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sello/internal/contact"
	"sello/internal/password"
	"sello/internal/semaphore"
	"sello/internal/totp"
)

// How users log in. Passwords are hashed outside of transactions, one at a time: a flood of
// log-ins takes one processor. A log-in that waits longer than hashingWait gets 503. An unknown
// e-mail costs the same work, and all failures have one text.

// logins are the log-ins of a server.
type logins struct {
	engine     *engine
	hashing    *semaphore.Semaphore
	iterations int           // of new hashes
	sources    loginLimits   // tries of each source
	accounts   accountLimits // tries of passwords
	codes      accountLimits // tries of second factors

	entry atomic.Pointer[entryLink] // nil: none

	mu      sync.Mutex
	refused map[id]refusedLogins // of users, that the audit log was not told of
}

// refusedLogins are the failed log-ins of one user.
type refusedLogins struct {
	told   instant // when the audit log was told last; 0: never
	untold int
	locked bool // the user's record has to say that the password is locked
}

// hashingWait is how long a log-in waits for its turn.
const hashingWait = 2 * time.Second

// refusalsToldEvery is how often the audit log is told of the failed log-ins of a user.
const refusalsToldEvery = time.Hour

func newLogins(e *engine) *logins {
	return &logins{
		engine: e, hashing: semaphore.New(1, errNoRoom), iterations: password.Iterations,
		sources: newLoginLimits(loginBurst, loginEvery), codes: accountLimits{endless: true}, refused: map[id]refusedLogins{},
	}
}

var (
	errLogInFailed = newPeopleError("login_failed", "", "El email o la contraseña no son correctos")
	errNowhere     = newPeopleError("member_of_none", "", "Ya no perteneces a ninguna organización")
)

// A logIn is what a user gives to log in.
type logIn struct {
	arrival
	Email, Password string
	RequestID       string
}

// A loggedIn is the result of a log-in.
type loggedIn struct {
	User   id
	Org    uint32 // that the session is in
	Token  string // of the session; "" if the user has to log in
	Half   bool   // the session waits for the code of the second factor
	Device string // token that the browser is to keep for deviceLife; "" while Half
}

// hash returns the hash of a new password. It is not for a transaction.
func (l *logins) hash(ctx context.Context, text string) (passwordHash, error) {
	var h passwordHash
	salt := l.engine.seed() // as good as any randomness
	sum := sha256.Sum256(salt[:])
	h.Iterations, h.Salt = l.iterations, sum[:password.SaltSize]
	if _, err := l.hashing.Take(ctx, 1, hashingWait); err != nil {
		return h, err
	}
	defer l.hashing.Give(1)
	var err error
	h.Sum, err = h.derive(text)
	return h, err
}

// proves reports whether a password is a user's. It takes as long for no user. It is not for
// a transaction.
func (l *logins) proves(ctx context.Context, u *user, text string) (bool, error) {
	h := passwordHash{Iterations: l.iterations, Salt: make([]byte, password.SaltSize)}
	if u != nil && u.Password.Iterations > 0 {
		h = u.Password
	}
	if _, err := l.hashing.Take(ctx, 1, hashingWait); err != nil {
		return false, err
	}
	defer l.hashing.Give(1)
	return h.matches(text)
}

// A claim is a try to be somebody.
type claim struct {
	user    *user    // nil: nobody has the e-mail
	account [32]byte // that the try counts for
	known   bool     // from a device of the user
}

// claimOf finds out who has an e-mail, or what was typed as one.
func (l *logins) claimOf(ctx context.Context, typed, device string, now instant) (claim, error) {
	email, valid := contact.Email(typed)
	if !valid {
		email = strings.ToLower(strings.TrimSpace(typed))
	}
	c := claim{account: emailAccount(email)}
	return viewStore(ctx, l.engine.store, func(tx Tx) (claim, error) {
		var err error
		if c.user, err = userByEmail(tx, email); err != nil || c.user == nil {
			return c, err
		}
		if c.known, err = isDevice(tx, c.user.ID, device, now); c.known {
			c.account = sha256.Sum256([]byte("device " + device + string(c.user.Password.Salt))) // another password has tries of its own
		}
		return c, err
	})
}

// emailAccount is what the tries for an e-mail count for.
func emailAccount(email string) [32]byte { return sha256.Sum256([]byte("email " + email)) }

// prove checks the password of a claim, within the bounds of tries.
func (l *logins) prove(ctx context.Context, c *claim, password string, now instant) error {
	wait, locked := l.accounts.try(c.account, now)
	switch {
	case wait > 0:
		return &waitError{wait}
	case locked, c.user != nil && c.user.Locked != 0 && !c.known:
		return errLocked
	}
	right, err := l.proves(ctx, c.user, password)
	if err != nil {
		l.accounts.giveBack(c.account)
		return err
	}
	if !right || c.user == nil {
		l.noteRefused(c)
		return errLogInFailed
	}
	l.accounts.pass(c.account)
	return nil
}

// fromSource counts a try of a source, or of a known device of the user, which its source
// does not hold up.
func (l *logins) fromSource(v *arrival, known bool, now instant) error {
	wait := instant(0)
	if known {
		wait = l.sources.devices.Take(tokenHash(v.Device), now)
	} else {
		wait = l.sources.take(v.Source, now)
	}
	if wait > 0 {
		return &waitError{time.Duration(wait) * time.Millisecond}
	}
	return nil
}

// logIn makes a session for whoever knows a user's password. Where the user has a second
// factor, the session is half, and logInCode makes it whole.
func (l *logins) logIn(ctx context.Context, in *logIn, now instant) (*loggedIn, error) {
	c, err := l.claimOf(ctx, in.Email, in.Device, now)
	if err == nil {
		err = l.fromSource(&in.arrival, c.known, now)
	}
	if err != nil {
		return nil, err
	}
	if err := l.prove(ctx, &c, in.Password, now); err != nil {
		return nil, err
	}
	if c.user.Disabled != 0 {
		return nil, errLogInFailed
	}
	var better *passwordHash // where an earlier sello made fewer iterations
	if c.user.Password.Iterations < l.iterations {
		h, err := l.hash(ctx, in.Password)
		if err != nil {
			return nil, err
		}
		better = &h
	}
	org, err := l.whereTo(ctx, c.user)
	if err != nil {
		return nil, err
	}
	return write(ctx, l.engine, org, now, func(t *txn) (*loggedIn, error) {
		t.by, t.requestID = creator{Type: byUser, ID: c.user.ID}, in.RequestID
		u, err := userByID(t.Tx, c.user.ID)
		if err != nil {
			return nil, err
		}
		if u == nil || u.Disabled != 0 || !u.Password.equal(&c.user.Password) { // changed meanwhile
			return nil, errLogInFailed
		}
		if better != nil {
			u.Password.Iterations, u.Password.Salt, u.Password.Sum = better.Iterations, better.Salt, better.Sum
		}
		done, err := t.people.admit(u, &in.arrival)
		if err == nil && better != nil {
			err = t.people.saveUser(u)
		}
		return done, err
	})
}

// admit makes a session of a user in the organization: a half one, if there is a second factor.
func (p *peopleTxn) admit(u *user, from *arrival) (*loggedIn, error) {
	f, err := factorOf(p.t.Tx, u.ID)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return p.welcome(u, from)
	}
	token, err := p.startSession(u.ID, sessionHalf, from)
	return &loggedIn{u.ID, p.t.org, token, true, ""}, err
}

// whereTo returns the organization that a user's session begins in: the one that it was in
// last, or else its first.
func (l *logins) whereTo(ctx context.Context, u *user) (uint32, error) {
	return viewStore(ctx, l.engine.store, func(tx Tx) (org uint32, err error) {
		orgs, err := organizationsOf(tx, u.ID)
		if err != nil {
			return 0, err
		}
		for _, candidate := range append([]uint32{u.Org}, orgs...) {
			m, err := membershipIn(tx, candidate, u.ID)
			if err != nil {
				return 0, err
			}
			if m != nil && m.Disabled == 0 {
				return candidate, nil
			}
		}
		return 0, errNowhere
	})
}

// welcome makes a full session of a user in the organization, with its entry in the audit log.
func (p *peopleTxn) welcome(u *user, from *arrival) (*loggedIn, error) {
	done, err := p.comeIn(u, from)
	if err != nil {
		return nil, err
	}
	return done, p.t.audit.note(auditSessionStarted, u.ID.String(), nil)
}

// comeIn makes a full session of a user in the organization.
func (p *peopleTxn) comeIn(u *user, from *arrival) (*loggedIn, error) {
	m, err := membershipIn(p.t.Tx, p.t.org, u.ID)
	if err == nil && (m == nil || m.Disabled != 0) {
		err = errNowhere
	}
	if err != nil {
		return nil, err
	}
	done := &loggedIn{User: u.ID, Org: p.t.org}
	if done.Token, err = p.startSession(u.ID, sessionFull, from); err != nil {
		return nil, err
	}
	if done.Device, err = p.addDevice(u.ID, from.Device); err != nil {
		return nil, err
	}
	u.LoggedInAt, u.Org = p.t.now, p.t.org
	return done, p.saveUser(u)
}

// A codeGiven is what a user gives to make a half session whole.
type codeGiven struct {
	arrival
	Half      string // token of the half session
	Code      string // of the second factor, or a recovery code
	RequestID string
}

// tryCode counts a try of a code of a user's second factor as failed, until codes.pass or
// codes.giveBack of the account that it returns. A known device and recovery codes count
// apart: neither a stranger with the password nor many wrong codes shut the user out. There is
// always another try, after 15 minutes at most.
func (l *logins) tryCode(ctx context.Context, user id, code string, from *arrival, now instant) (account [32]byte, err error) {
	kind, known := "code ", false
	if len(totp.Plain(code)) != totp.Digits {
		kind = "recovery "
	}
	err = l.engine.store.View(ctx, func(tx Tx) error {
		u, err := userByID(tx, user)
		if err != nil || u == nil {
			return err
		}
		salt := string(u.Password.Salt) // another password has tries of its own
		account = sha256.Sum256([]byte(kind + string(user[:]) + salt))
		if known, err = isDevice(tx, user, from.Device, now); known {
			account = sha256.Sum256([]byte(kind + from.Device + salt))
		}
		return err
	})
	if err == nil {
		err = l.fromSource(from, known, now)
	}
	if err != nil {
		return account, err
	}
	if wait, _ := l.codes.try(account, now); wait > 0 {
		return account, &waitError{wait}
	}
	return account, nil
}

// forgive forgets what failed for a user, who has another password now.
func (l *logins) forgive(u *user) {
	l.accounts.pass(emailAccount(u.Email))
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, some := l.refused[u.ID]; some {
		r.locked = false
		l.refused[u.ID] = r
	}
}

// logInCode makes a full session of a half one.
func (l *logins) logInCode(ctx context.Context, in *codeGiven, now instant) (*loggedIn, error) {
	hash := tokenHash(in.Half)
	half, err := viewStore(ctx, l.engine.store, func(tx Tx) (*session, error) { return liveSession(tx, hash, now, l.engine.sessionLimits) })
	if err == nil && (half == nil || half.Kind != sessionHalf) {
		err = errLoggedOut
	}
	if err != nil {
		return nil, err
	}
	account, err := l.tryCode(ctx, half.User, in.Code, &in.arrival, now)
	if err != nil {
		return nil, err
	}
	done, err := write(ctx, l.engine, half.Org, now, func(t *txn) (*loggedIn, error) {
		t.by, t.requestID = creator{Type: byUser, ID: half.User}, in.RequestID
		return t.people.completeSession(hash, in)
	})
	switch {
	case err != nil:
		l.codes.giveBack(account)
		return nil, err
	case done == nil:
		l.noteRefused(&claim{user: &user{ID: half.User}})
		return nil, errCodeWrong
	}
	l.codes.pass(account)
	return done, nil
}

// completeSession makes a full session of a half one. The result is nil if the code is wrong,
// which is written too.
func (p *peopleTxn) completeSession(hash [32]byte, in *codeGiven) (*loggedIn, error) {
	s, err := get[session](p.t.Tx, sessionKey(hash))
	if err != nil {
		return nil, err
	}
	if s == nil || s.Tries >= codeTries {
		return nil, errLoggedOut
	}
	u, err := userByID(p.t.Tx, s.User)
	if err != nil {
		return nil, err
	}
	f, err := factorOf(p.t.Tx, s.User)
	if err != nil {
		return nil, err
	}
	if u == nil || u.Disabled != 0 || f == nil {
		return nil, errLoggedOut
	}
	if !f.accept(in.Code, p.t.now) {
		if s.Tries++; s.Tries >= codeTries {
			return nil, dropSession(p.t, s.User, hash)
		}
		return nil, p.t.put(sessionKey(hash), s)
	}
	if err := p.saveFactor(u.ID, f); err != nil {
		return nil, err
	}
	if err := dropSession(p.t, s.User, hash); err != nil {
		return nil, err
	}
	return p.welcome(u, &in.arrival)
}

// reprove notes that a member gave the password again. It is asked for before what only the
// user itself may do.
func (l *logins) reprove(ctx context.Context, m *member, password, requestID string, from *arrival, now instant) error {
	if err := l.claimsItself(ctx, m, password, from, now); err != nil {
		return err
	}
	_, err := write(ctx, l.engine, m.org, now, func(t *txn) (any, error) {
		t.by, t.requestID = creator{Type: byUser, ID: m.user.ID}, requestID
		again, err := t.people.stillIn(m, l.engine.sessionLimits)
		if err != nil {
			return nil, err
		}
		again.session.ProvedAt = t.now
		if err := t.put(sessionKey(m.hash), again.session); err != nil {
			return nil, err
		}
		return nil, t.audit.note(auditSessionProved, m.user.ID.String(), nil)
	})
	return err
}

// claimsItself checks that a password is a member's.
func (l *logins) claimsItself(ctx context.Context, m *member, password string, from *arrival, now instant) error {
	c, err := l.claimOf(ctx, m.user.Email, from.Device, now)
	if err == nil {
		err = l.fromSource(from, c.known, now)
	}
	if err != nil {
		return err
	}
	return l.prove(ctx, &c, password, now)
}

// ownTexts are texts with words that a password of a user must not be made of.
func ownTexts(cfg *config, email, name string) []string {
	local, domain, _ := strings.Cut(email, "@")
	own := []string{local, domain, name}
	if cfg != nil {
		own = append(own, cfg.Organization.Slug, cfg.Organization.Name)
	}
	return own
}

// changePassword gives a member another password. All its other sessions end, and its own gets
// another token, which it returns.
func (l *logins) changePassword(ctx context.Context, m *member, old, next, requestID string, from *arrival, now instant) (token string, err error) {
	if err := l.claimsItself(ctx, m, old, from, now); err != nil {
		return "", err
	}
	err = l.checkNew(ctx, m.org, m.user.ID, next, m.user.Email, m.user.Name)
	if err != nil {
		return "", err
	}
	h, err := l.hash(ctx, next)
	if err != nil {
		return "", err
	}
	token, err = write(ctx, l.engine, m.org, now, func(t *txn) (string, error) {
		t.by, t.requestID = creator{Type: byUser, ID: m.user.ID}, requestID
		again, err := t.people.stillIn(m, l.engine.sessionLimits)
		if err != nil {
			return "", err
		}
		if !again.user.Password.equal(&m.user.Password) { // changed meanwhile
			return "", errLogInFailed
		}
		if err := t.people.checkNew(m.user.ID, next, m.user.Email, m.user.Name); err != nil { // so may have the second factor
			return "", err
		}
		if err := t.people.setPassword(again.user, h, &m.hash); err != nil {
			return "", err
		}
		return t.people.renewSession(again)
	})
	if err == nil {
		l.forgive(m.user)
	}
	return token, err
}

// checkNew returns why a new password of a user is refused. The user is none yet if its id is
// zero.
func (l *logins) checkNew(ctx context.Context, org uint32, of id, password, email, name string) error {
	_, err := read(ctx, l.engine, org, 0, func(t *txn) (any, error) { return nil, t.people.checkNew(of, password, email, name) })
	return err
}

func (p *peopleTxn) checkNew(of id, password, email, name string) error {
	f, err := factorOf(p.t.Tx, of)
	if err != nil {
		return err
	}
	return checkPassword(password, f != nil, ownTexts(p.t.cfg, email, name)...)
}

// noteRefused counts a failed log-in of a user, for the audit log.
func (l *logins) noteRefused(c *claim) {
	if c.user == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.refused[c.user.ID]
	r.untold++
	if !c.known && c.account != ([32]byte{}) && l.accounts.count(c.account) >= lockTries {
		r.locked = true
	}
	l.refused[c.user.ID] = r
}

// flush writes what is kept in memory for a while: when sessions were seen, and failed log-ins
// of users. The audit log is told of these at once and then once an hour. all says that the
// server stops.
func (l *logins) flush(ctx context.Context, now instant, all bool) error {
	err := l.engine.sessionLimits.seen.flush(ctx, l.engine.store, now, all)
	l.mu.Lock()
	due := map[id]refusedLogins{}
	for user, r := range l.refused {
		switch old := r.told == 0 || now >= r.told.add(refusalsToldEvery) || now < r.told; {
		case r.untold > 0 && (old || all) || r.locked:
			due[user] = r
		case old && r.untold == 0:
			delete(l.refused, user)
		}
	}
	l.mu.Unlock()
	for user, r := range due {
		if tellErr := l.tellRefused(ctx, user, r, now); tellErr != nil {
			err = errors.Join(err, tellErr)
			continue
		}
		l.mu.Lock()
		left := l.refused[user]
		left.told, left.untold = now, left.untold-r.untold
		left.locked = left.locked && !r.locked
		l.refused[user] = left
		l.mu.Unlock()
	}
	return err
}

// tellRefused writes failed log-ins of a user to the audit log, and locks the password after
// too many.
func (l *logins) tellRefused(ctx context.Context, of id, r refusedLogins, now instant) error {
	_, err := write(ctx, l.engine, 1, now, func(t *txn) (any, error) {
		changes := []change{{"tries", nil, r.untold}}
		if r.locked {
			u, err := userByID(t.Tx, of)
			if err != nil || u == nil {
				return nil, err
			}
			if u.Locked == 0 {
				u.Locked = t.now
				changes = append(changes, change{"lockedAt", nil, u.Locked})
				if err := t.people.saveUser(u); err != nil {
					return nil, err
				}
			}
		}
		return nil, t.people.noteEverywhere(of, auditSessionRefused, changes)
	})
	return err
}
