package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sello/internal/totp"
)

// A factored is a shop with an owner who has a second factor.
type factored struct {
	shop     *shop
	l        *logins
	ana      *member
	raw      []byte // the factor's secret
	recovery []string
}

const anaEmail = "ana@ejemplo.mx"

func newFactored(t *testing.T) *factored {
	f := &factored{shop: newShop(t, setup{})}
	f.shop.setClock("2026-03-02T10:00:00Z")
	f.shop.person(anaEmail, roleOwner)
	f.l = f.shop.logins()
	f.l.sources = newLoginLimits(1<<20, 1)
	f.ana, _ = f.shop.enters(anaEmail)
	secret := offeredSecret(f.ana, "a form")
	var err error
	f.raw, err = totp.Base32.DecodeString(secret)
	f.shop.ok(err)
	f.recovery, err = by(f.shop, f.ana, func(t *txn) ([]string, error) { return t.people.addFactor(f.ana, secret, f.code()) })
	f.shop.ok(err)
	f.shop.pass(totp.Step * time.Millisecond)
	return f
}

func (f *factored) code() string { return totp.Code(f.raw, int64(f.shop.clock)) }

// enter logs in by password and code.
func (f *factored) enter(code, device string) (*loggedIn, error) {
	from := arrival{Source: homeAddress, Device: device}
	half, err := f.l.logIn(f.shop.Context(), &logIn{arrival: from, Email: anaEmail, Password: testPassword}, f.shop.clock)
	if err != nil {
		return nil, err
	}
	return f.l.logInCode(f.shop.Context(), &codeGiven{arrival: from, Half: half.Token, Code: code}, f.shop.clock)
}

// TestCodeTries: wrong codes make only their own kind wait, on their own kind of device, and
// never without an end; a new password ends the wait.
func TestCodeTries(t *testing.T) {
	t.Parallel()
	f := newFactored(t)
	known, err := f.enter(f.code(), "")
	f.shop.ok(err)
	f.shop.pass(totp.Step * time.Millisecond)
	refused := 0
	for range lockTries + freeTries {
		_, err := f.enter("000000", "")
		wantPeople(t, err, errCodeWrong, "a wrong code")
		refused++
		f.shop.pass(longestTry)
	}
	_, err = f.enter("000000", "")
	wantPeople(t, err, errCodeWrong, "one more")
	_, err = f.enter(f.code(), "")
	wantWait(t, err, longestTry)
	_, err = f.enter(f.code(), known.Device)
	f.shop.ok(err) // from the known device
	_, err = f.enter(f.recovery[0], "")
	f.shop.ok(err) // by a recovery code
	f.shop.pass(longestTry)
	_, err = f.enter(f.code(), "")
	f.shop.ok(err) // in the end

	for range freeTries + 1 {
		_, err = f.enter("000000", "")
	}
	wantWait(t, err, time.Second)
	token := must(f.shop, func(t *txn) (string, error) {
		u, err := userByEmail(t.Tx, anaEmail)
		if err != nil {
			return "", err
		}
		_, token, err := t.people.resetUser(u, false)
		return token, err
	})
	_, err = f.l.accept(f.shop.Context(), &acceptance{Token: token, Password: testPassword}, f.shop.clock)
	f.shop.ok(err)
	_, err = f.enter("000000", "")
	wantPeople(t, err, errCodeWrong, "with another password")
}

// TestPasswordForgiven: a link for another password ends the lock of the old one.
func TestPasswordForgiven(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.person(anaEmail, roleOwner)
	l := s.logins()
	l.sources = newLoginLimits(1<<20, 1)
	for range lockTries {
		wantPeople(t, s.tries(l, anaEmail, "mal", ""), errLogInFailed, "a wrong password")
		s.pass(longestTry)
	}
	s.ok(l.flush(s.Context(), s.clock, true))
	wantPeople(t, s.tries(l, anaEmail, testPassword, ""), errLocked, "after 100")
	token := must(s, func(t *txn) (string, error) {
		_, token, err := t.people.resetUser(&user{ID: ana}, false)
		return token, err
	})
	_, err := l.accept(s.Context(), &acceptance{Token: token, Password: "otro tren azul 9"}, s.clock)
	s.ok(err)
	s.ok(s.tries(l, anaEmail, "otro tren azul 9", ""))
}

// TestFactorEndsSessions: who came in without the second factor is out once it is there.
func TestFactorEndsSessions(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.person(anaEmail, roleOwner)
	m, mine := s.enters(anaEmail)
	_, other := s.enters(anaEmail)
	secret := offeredSecret(m, "a form")
	raw, err := totp.Base32.DecodeString(secret)
	s.ok(err)
	s.ok(tryBy(s, m, func(t *txn) error {
		_, err := t.people.addFactor(m, secret, totp.Code(raw, int64(s.clock)))
		return err
	}))
	if s.member(other) != nil || s.member(mine) == nil {
		t.Error("not the other session alone ended")
	}
	if offeredSecret(m, "another form") == secret || offeredSecret(&member{user: m.user, hash: [32]byte{1}}, "a form") == secret {
		t.Error("one secret is offered twice")
	}
}

// TestDropFactor: it takes the password and a code, and leaves no password that is too short
// to stand alone.
func TestDropFactor(t *testing.T) {
	t.Parallel()
	f := newFactored(t)
	drop := func(code, old, password string) (string, error) {
		return f.l.dropFactor(f.shop.Context(), f.ana, &factorDropped{arrival: arrival{Source: homeAddress}, Code: code, Old: old, Password: password}, f.shop.clock)
	}
	const short = "tren verde 7"
	token, err := f.l.changePassword(f.shop.Context(), f.ana, testPassword, short, "", &arrival{Source: homeAddress}, f.shop.clock)
	f.shop.ok(err) // ten characters are enough with a factor
	f.ana = f.shop.member(token)
	for _, test := range []struct {
		reason, code, old, password string
		want                        error
	}{
		{"a wrong password", f.code(), "mal", "otro tren azul 9", errLogInFailed},
		{"the short one stays", f.code(), short, "", errPasswordAlone},
		{"another short one", f.code(), short, "azul tren 9", errPasswordShort},
		{"no code", "", short, "otro tren azul 9", errCodeWrong},
		{"a wrong code", "000000", short, "otro tren azul 9", errCodeWrong},
	} {
		_, err := drop(test.code, test.old, test.password)
		wantPeople(t, err, test.want, test.reason)
	}
	if kept := ask(f.shop, func(t *txn) (*secondFactor, error) { return factorOf(t.Tx, f.ana.user.ID) }); kept == nil {
		t.Fatal("refused and gone")
	}
	codes, err := f.l.renewRecovery(f.shop.Context(), f.ana, f.recovery[0], "", &arrival{Source: homeAddress}, f.shop.clock)
	f.shop.ok(err)
	_, err = f.l.renewRecovery(f.shop.Context(), f.ana, f.recovery[1], "", &arrival{Source: homeAddress}, f.shop.clock)
	wantPeople(t, err, errCodeWrong, "a recovery code of before")
	entries := len(f.shop.audited(auditFilter{}))
	token, err = drop(codes[0], short, "otro tren azul 9")
	f.shop.ok(err)
	if got := f.shop.audited(auditFilter{}); len(got) != entries+1 || got[entries] != `User  user.changed [{"field":"password","before":null,"after":null},{"field":"secondFactor","before":true,"after":null}]` {
		t.Errorf("entries: %s", got[entries:])
	}
	if f.ana = f.shop.member(token); f.ana == nil {
		t.Fatal("the session is none")
	}
	f.shop.ok(f.shop.tries(f.l, anaEmail, "otro tren azul 9", ""))
	_, err = drop(f.code(), "otro tren azul 9", "")
	wantPeople(t, err, errFactorNone, "once more")
}

// TestDropFactorKeepsPassword: a password that stands alone may stay, and so does the session.
func TestDropFactorKeepsPassword(t *testing.T) {
	t.Parallel()
	f := newFactored(t)
	token, err := f.l.dropFactor(f.shop.Context(), f.ana, &factorDropped{Code: f.code(), Old: testPassword}, f.shop.clock)
	f.shop.ok(err)
	if token != "" {
		t.Error("another session")
	}
	f.shop.ok(f.shop.tries(f.l, anaEmail, testPassword, ""))
}

// TestEndedMeanwhile: what ends a session, or shuts its user out, while a password is hashed
// is not undone by the change of the password.
func TestEndedMeanwhile(t *testing.T) {
	t.Parallel()
	for reason, end := range map[string]func(s *shop, ana, owner *member) error{
		"logged out": func(s *shop, ana, _ *member) error {
			return tryBy(s, ana, func(t *txn) error { return t.people.logOut(ana) })
		},
		"suspended": func(s *shop, ana, owner *member) error {
			return tryBy(s, owner, func(t *txn) error { return t.people.suspend(owner, ana.user.ID, true) })
		},
		"removed": func(s *shop, ana, owner *member) error {
			return tryBy(s, owner, func(t *txn) error { return t.people.removeMember(owner, ana.user.ID) })
		},
		"sessions ended": func(s *shop, ana, owner *member) error {
			return tryBy(s, owner, func(t *txn) error { _, err := t.people.endSessionsOf(owner, ana.user.ID); return err })
		},
		"disabled": func(s *shop, ana, owner *member) error {
			return tryBy(s, owner, func(t *txn) error {
				u, err := t.people.sameUser(ana)
				if err == nil {
					err = t.people.disableUser(u, true)
				}
				return err
			})
		},
		"ended from abroad": func(s *shop, ana, _ *member) error {
			other, _ := s.enters(anaEmail)
			return tryBy(s, other, func(t *txn) error { _, err := t.people.endOthers(other, ""); return err })
		},
	} {
		t.Run(reason, func(t *testing.T) {
			s := newShop(t, setup{})
			s.person("sol@ejemplo.mx", roleOwner)
			s.person(anaEmail, roleManager)
			owner, _ := s.enters("sol@ejemplo.mx")
			ana, token := s.enters(anaEmail)
			l, made := s.logins(), s.engine.seed
			ended := false
			s.engine.seed = func() seed { // the salt of the new password
				if !ended {
					ended = true
					s.ok(end(s, ana, owner))
				}
				return made()
			}
			_, err := l.changePassword(s.Context(), ana, testPassword, "otro tren azul 9", "", &arrival{Source: homeAddress}, s.clock)
			if wantPeople(t, err, errLoggedOut, "the change"); !ended {
				t.Fatal("nothing happened meanwhile")
			}
			if s.member(token) != nil {
				t.Error("the session goes on")
			}
			now := ask(s, func(t *txn) (*user, error) { return userByID(t.Tx, ana.user.ID) })
			if !now.Password.equal(&ana.user.Password) {
				t.Error("the password is another one")
			}
			wantPeople(t, l.reprove(s.Context(), ana, testPassword, "", &arrival{Source: homeAddress}, s.clock), errLoggedOut, "proved")
		})
	}
}

// TestMaxSessions: the oldest session of a user ends where there are too many; half ones, for
// which the password is enough, end none that is whole.
func TestMaxSessions(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.person(anaEmail, roleOwner)
	var tokens []string
	for range maxSessions + 2 {
		s.pass(time.Second)
		_, token := s.enters(anaEmail)
		tokens = append(tokens, token)
	}
	for i, token := range tokens {
		if alive := s.member(token) != nil; alive != (i >= 2) {
			t.Errorf("session %d: %v", i, alive)
		}
	}
	ana := s.member(tokens[maxSessions]).user.ID
	for range maxSessions + 2 {
		must(s, func(t *txn) (string, error) { return t.people.startSession(ana, sessionHalf, &arrival{}) })
	}
	if all := ask(s, func(t *txn) ([][32]byte, error) { return sessionHashes(t.Tx, ana) }); len(all) != 2*maxSessions {
		t.Errorf("%d sessions", len(all))
	}
	if s.member(tokens[2]) == nil {
		t.Error("a half session ended a whole one")
	}
}

// TestLoginNetworks: the sources of one IPv6 network have a bound together; a known device is
// held up by neither.
func TestLoginNetworks(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.person(anaEmail, roleOwner)
	l := s.logins()
	known, err := l.logIn(s.Context(), &logIn{arrival: arrival{Source: homeAddress}, Email: anaEmail, Password: testPassword}, s.clock)
	s.ok(err)
	source := func(net, host uint16) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, byte(net >> 8), byte(net), byte(host >> 8), byte(host), 15: 1})
	}
	tries := func(from arrival, email string) error {
		_, err := l.logIn(s.Context(), &logIn{arrival: from, Email: email, Password: testPassword}, s.clock)
		return err
	}
	for i := range uint16(loginBurst * netSources) {
		wantPeople(t, tries(arrival{Source: source(7, i)}, "nadie@ejemplo.mx"), errLogInFailed, "within the bound")
		l.accounts = accountLimits{}
	}
	wantWait(t, tries(arrival{Source: source(7, 999)}, anaEmail), loginEvery/netSources*time.Millisecond)
	s.ok(tries(arrival{Source: source(8, 0)}, anaEmail))
	s.ok(tries(arrival{Source: source(7, 999), Device: known.Device}, anaEmail))
}

// TestKnownDeviceBound: a known device has a bound of its own, also with the right password, and
// another password gives it other tries.
func TestKnownDeviceBound(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.person(anaEmail, roleOwner)
	l := s.logins()
	known, err := l.logIn(s.Context(), &logIn{arrival: arrival{Source: homeAddress}, Email: anaEmail, Password: testPassword}, s.clock)
	s.ok(err)
	n := 0
	for ; n < 2*loginBurst && err == nil; n++ {
		err = s.tries(l, anaEmail, testPassword, known.Device)
	}
	if n != loginBurst+1 {
		t.Errorf("%d log-ins at once", n)
	}
	wantWait(t, err, loginEvery*time.Millisecond)

	l.sources = newLoginLimits(1<<20, 1)
	for range lockTries {
		wantPeople(t, s.tries(l, anaEmail, "mal", known.Device), errLogInFailed, "a wrong password")
		s.pass(longestTry)
	}
	wantPeople(t, s.tries(l, anaEmail, testPassword, known.Device), errLocked, "after 100")
	token := must(s, func(t *txn) (string, error) {
		_, token, err := t.people.resetUser(&user{ID: ana}, false)
		return token, err
	})
	_, err = l.accept(s.Context(), &acceptance{Token: token, Password: "otro tren azul 9"}, s.clock)
	s.ok(err)
	s.ok(s.tries(l, anaEmail, "otro tren azul 9", known.Device))
}

// TestNoLockAfterReset: the lock of an old password, of which the audit log is still to be told,
// does not lock the new one.
func TestNoLockAfterReset(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.person(anaEmail, roleOwner)
	l := s.logins()
	l.sources = newLoginLimits(1<<20, 1)
	for range lockTries {
		s.tries(l, anaEmail, "mal", "")
		s.pass(longestTry)
	}
	token := must(s, func(t *txn) (string, error) {
		_, token, err := t.people.resetUser(&user{ID: ana}, false)
		return token, err
	})
	_, err := l.accept(s.Context(), &acceptance{Token: token, Password: "otro tren azul 9"}, s.clock)
	s.ok(err)
	s.ok(l.flush(s.Context(), s.clock, true))
	s.ok(s.tries(l, anaEmail, "otro tren azul 9", ""))
}

// TestShortPasswordStays: a password that is long enough with a second factor alone is refused
// where the factor goes while the password is hashed.
func TestShortPasswordStays(t *testing.T) {
	t.Parallel()
	f := newFactored(t)
	token := must(f.shop, func(t *txn) (string, error) {
		_, token, err := t.people.resetUser(f.ana.user, false)
		return token, err
	})
	made, gone := f.shop.engine.seed, false
	f.shop.engine.seed = func() seed { // the salt of the new password
		if !gone {
			gone = true
			f.shop.ok(tryBy(f.shop, f.ana, func(t *txn) error { _, err := t.people.forgetFactor(f.ana.user.ID); return err }))
		}
		return made()
	}
	_, err := f.l.accept(f.shop.Context(), &acceptance{Token: token, Password: "tren verde 7"}, f.shop.clock)
	wantPeople(t, err, errPasswordShort, "the reset")
}

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	own := []string{"ana.garcia", "ejemplo.mx", "Ana García", "cafe-luna", "Café Luna"}
	for _, test := range []struct {
		password string
		factor   bool
		want     error
		reason   string
	}{
		{"tren verde 7 salta", false, nil, "some words that do not belong together"},
		{"tren verde sal", false, errPasswordShort, "14 characters"},
		{"tren verde", true, nil, "10 are enough with a second factor"},
		{"tren verd", true, errPasswordShort, "9 are not"},
		{strings.Repeat("ñu x", 32), false, errPasswordRepeats, "128 characters are not too long"},
		{strings.Repeat("ñu x", 32) + "y", false, errPasswordLong, "129 are"},
		{"tren\x00verde 7 salta", false, errPasswordText, "nobody types this"},
		{"tren\xffverde 7 salta", false, errPasswordText, "no text"},
		{"qwertyuiopasdfghjkl", false, errPasswordKeyboard, "two rows"},
		{"AnaGarcia2CafeLuna", false, errPasswordOwn, "own words"},
		{"contraseña segura", false, errPasswordUsual, "usual"},
		{"lealtad loyalty sello!", false, errPasswordUsual, "usual for sello"},
	} {
		if err := checkPassword(test.password, test.factor, own...); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%q: %v, want %v: %s", test.password, err, test.want, test.reason)
		}
	}
}

// TestAccountLimits shows how long an account has to wait.
func TestAccountLimits(t *testing.T) {
	t.Parallel()
	now := instant(1_800_000_000_000)
	var l accountLimits
	ana, eva := [32]byte{1}, [32]byte{2}
	for n := range lockTries {
		want := time.Duration(0)
		if n >= freeTries {
			want = min(time.Duration(1<<min(n-freeTries, 20))*time.Second, 900*time.Second)
		}
		if want > 0 {
			if wait, locked := l.try(ana, now); wait != want || locked {
				t.Fatalf("after %d: wait %v, locked %t, want %v", n, wait, locked, want)
			}
			now = now.add(want - time.Millisecond)
			if wait, _ := l.try(ana, now); wait != time.Millisecond {
				t.Fatalf("a moment before the end after %d: wait %v", n, wait)
			}
			now++
		}
		if wait, locked := l.try(ana, now); wait != 0 || locked || l.count(ana) != n+1 {
			t.Fatalf("try %d: wait %v, locked %t, count %d", n+1, wait, locked, l.count(ana))
		}
	}
	if _, locked := l.try(ana, now.add(time.Hour)); !locked {
		t.Error("no lock")
	}
	if wait, locked := l.try(eva, now); wait != 0 || locked {
		t.Error("another account has to wait")
	}
	l.pass(ana)
	if _, locked := l.try(ana, now); locked || l.count(ana) != 1 {
		t.Error("locked after a success")
	}
	l.giveBack(ana)
	if l.count(ana) != 0 {
		t.Error("what was given back counts")
	}
	for range freeTries + 3 {
		l.try(eva, now)
		now = now.add(time.Hour)
	}
	if wait, _ := l.try(eva, now.add(-24*time.Hour)); wait != 0 {
		t.Errorf("the clock was set back: wait %v", wait)
	}
}

// TestLoginSources: a source may try 20 passwords at once, and one more each 10 seconds.
func TestLoginSources(t *testing.T) {
	t.Parallel()
	l := newLogins(newShop(t, setup{}).engine)
	now := instant(1_800_000_000_000)
	from := arrival{Source: homeAddress}
	for n := range loginBurst {
		if err := l.fromSource(&from, false, now); err != nil {
			t.Fatalf("try %d: %v", n, err)
		}
	}
	wantWait(t, l.fromSource(&from, false, now), 10*time.Second)
	wantWait(t, l.fromSource(&from, false, now.add(9*time.Second)), time.Second)
	if err := l.fromSource(&from, false, now.add(10*time.Second)); err != nil {
		t.Error(err)
	}
	wantWait(t, l.fromSource(&from, false, now.add(10*time.Second)), 10*time.Second)
}

// TestSecondFactor: a code is good one step early or late, once, and no earlier one after it;
// a recovery code once.
// Panel check 9.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	const now, step = instant(1_800_000_000_000), int64(1_800_000_000_000 / totp.Step)
	secret := []byte("12345678901234567890")
	code := func(at int64) string { return totp.Code(secret, at*totp.Step) }
	f := &secondFactor{Secret: secret}
	for _, test := range []struct {
		at   int64
		want bool
		why  string
	}{
		{-2, false, "too late"}, {-1, true, "one step late"}, {-1, false, "used"}, {0, true, "now"}, {-1, false, "before the last"}, {0, false, "used"},
		{2, false, "too early"}, {1, true, "one step early"}, {1, false, "used"}, {0, false, "before the last"},
	} {
		if got := f.accept(code(step+test.at), now); got != test.want {
			t.Errorf("step %d: %t: %s", test.at, got, test.why)
		}
	}
	if got := (&secondFactor{Secret: secret}).accept(" "+code(step)[:3]+" "+code(step)[3:], now); !got {
		t.Error("a code with blanks is refused")
	}
	s := newShop(t, setup{})
	u := s.person("ana@ejemplo.mx", roleOwner)
	codes := must(s, func(t *txn) ([]string, error) {
		return t.people.newRecovery(u, &secondFactor{Secret: secret, LastStep: 1})
	})
	if len(codes) != recoveryCodes || len(codes[0]) != len("ABCD-EFGH-IJKL-MNOP") {
		t.Fatal(codes)
	}
	f = ask(s, func(t *txn) (*secondFactor, error) { return factorOf(t.Tx, u) })
	for i, c := range codes {
		if !f.accept(strings.ToLower(strings.ReplaceAll(c, "-", " ")), now) || f.accept(c, now) || len(f.Recovery) != recoveryCodes-1-i {
			t.Errorf("recovery code %d is not good once; %d left", i, len(f.Recovery))
		}
	}
	if f.accept("", now) || f.accept(fmt.Sprint(step), now) {
		t.Error("no code is accepted")
	}
}
