package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/totp"
)

// tries logs in with a password and returns the error.
func (s *shop) tries(l *logins, email, password, device string) error {
	_, err := l.logIn(s.Context(), &logIn{arrival: arrival{Device: device, Source: homeAddress}, Email: email, Password: password}, s.clock)
	return err
}

// TestLogIn: a session begins with the right password alone, and the errors of all others are
// the same.
func TestLogIn(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.person("ana@ejemplo.mx", roleOwner)
	s.person("eva@ejemplo.mx", roleOwner)
	l := s.logins()
	for _, email := range []string{"ana@ejemplo.mx", "nadie@ejemplo.mx", "ana"} {
		wantPeople(t, s.tries(l, email, "tren verde 7 salto", ""), errLogInFailed, email)
	}
	in, err := l.logIn(s.Context(), &logIn{arrival: arrival{Source: homeAddress, Agent: "Mozilla/5.0\r\n" + strings.Repeat("x", 300)}, Email: " ANA@ejemplo.mx", Password: testPassword}, s.clock)
	s.ok(err)
	m := s.member(in.Token)
	if in.User != ana || in.Half || in.Org != 1 || m == nil || m.user.Email != "ana@ejemplo.mx" || m.role != roleOwner || m.org != 1 {
		t.Fatalf("%+v %+v", in, m)
	}
	if m.session.Source != "203.0.113.1" || len(m.session.Agent) != maxAgent || strings.ContainsAny(m.session.Agent, "\r\n") {
		t.Errorf("from %q with %q", m.session.Source, m.session.Agent)
	}
	if len(in.Token) != tokenDigits || len(in.Device) != tokenDigits || in.Token == in.Device {
		t.Errorf("tokens %q and %q", in.Token, in.Device)
	}
	if got := s.audited(auditFilter{action: auditSessionStarted}); got[len(got)-1] != "User  session.started []" {
		t.Error(got)
	}
	for _, token := range []string{"", "x", in.Token + "x", in.Device, strings.ToUpper(in.Token)} {
		if s.member(token) != nil {
			t.Errorf("%q is a session", token)
		}
	}
	must(s, func(t *txn) (any, error) { return nil, t.people.logOut(m) })
	if s.member(in.Token) != nil {
		t.Error("logged out and in")
	}
	// A user whom the operator has shut out, and one whose e-mail is known: one text.
	s.ok(tryBy(s, m, func(t *txn) error {
		u, err := userByID(t.Tx, ana)
		if err != nil {
			return err
		}
		return t.people.disableUser(u, true)
	}))
	wantPeople(t, s.tries(l, "ana@ejemplo.mx", testPassword, ""), errLogInFailed, "disabled")
}

// TestLogInRehashes: a password whose hash has fewer iterations than new ones gets a new hash.
func TestLogInRehashes(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.person("ana@ejemplo.mx", roleOwner)
	hash := func() passwordHash {
		return ask(s, func(t *txn) (*user, error) { return userByID(t.Tx, ana) }).Password
	}
	before := hash()
	l := s.logins()
	l.iterations = 9
	s.ok(s.tries(l, "ana@ejemplo.mx", testPassword, ""))
	after := hash()
	if before.Iterations != 2 || after.Iterations != 9 || before.equal(&after) || after.At != before.At {
		t.Errorf("%+v, then %+v", before, after)
	}
	s.ok(s.tries(s.logins(), "ana@ejemplo.mx", testPassword, "")) // no fewer again
	if again := hash(); !again.equal(&after) {
		t.Errorf("%+v, then %+v", after, again)
	}
}

// TestLogInThrottled: after five failures in a row the sixth waits, whether there is such a
// user or not; a device that the user has logged in from does not.
// Panel check 4.
func TestLogInThrottled(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.person("ana@ejemplo.mx", roleOwner)
	l := s.logins()
	l.sources = newLoginLimits(1<<20, 1)
	in, err := l.logIn(s.Context(), &logIn{Email: "ana@ejemplo.mx", Password: testPassword}, s.clock)
	s.ok(err)
	for _, email := range []string{"ana@ejemplo.mx", "nadie@ejemplo.mx"} {
		for range freeTries {
			wantPeople(t, s.tries(l, email, "mal", ""), errLogInFailed, email)
		}
		wantWait(t, s.tries(l, email, testPassword, ""), time.Second)
	}
	s.ok(s.tries(l, "ana@ejemplo.mx", testPassword, in.Device))
	s.pass(time.Second)
	s.ok(s.tries(l, "ana@ejemplo.mx", testPassword, ""))
	s.ok(s.tries(l, "ana@ejemplo.mx", testPassword, "")) // a success begins anew

	s.ok(l.flush(s.Context(), s.clock, false))
	refused := func() []string { return s.audited(auditFilter{action: auditSessionRefused, subject: ana.String()}) }
	if got := refused(); len(got) != 1 || got[0] != `System  session.refused [{"field":"tries","before":null,"after":5}]` {
		t.Errorf("the log says %s", got)
	}
	for n := freeTries - 5; n < lockTries; n++ {
		wantPeople(t, s.tries(l, "ana@ejemplo.mx", "mal", ""), errLogInFailed, "a failure")
		s.pass(15 * time.Minute)
		s.ok(l.flush(s.Context(), s.clock, false))
	}
	if n := len(refused()); n < 24 || n > 27 { // 100 quarters of an hour
		t.Errorf("%d entries of failures in 25 hours", n)
	}
	for _, again := range []*logins{l, s.logins()} { // also after a restart
		wantPeople(t, s.tries(again, "ana@ejemplo.mx", testPassword, ""), errLocked, "after 100 failures")
		s.ok(s.tries(again, "ana@ejemplo.mx", testPassword, in.Device))
	}
	token := must(s, func(t *txn) (string, error) {
		u, err := userByID(t.Tx, ana)
		if err != nil {
			return "", err
		}
		_, token, err := t.people.resetUser(u, false)
		return token, err
	})
	again := s.logins()
	_, err = again.accept(s.Context(), &acceptance{Token: token, Password: "otro tren azul 9"}, s.clock)
	s.ok(err)
	s.ok(s.tries(again, "ana@ejemplo.mx", "otro tren azul 9", ""))
}

// TestLogInsTogether: of a hundred tries at once no more are looked at than of a hundred in a
// row.
func TestLogInsTogether(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.person("ana@ejemplo.mx", roleOwner)
	l := s.logins()
	l.sources = newLoginLimits(1<<20, 1)
	var wait sync.WaitGroup
	var mu sync.Mutex
	failed := 0
	for range 100 {
		wait.Go(func() {
			err := s.tries(l, "ana@ejemplo.mx", "mal", "")
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, errLogInFailed) {
				failed++
			} else if _, ok := errors.AsType[*waitError](err); !ok {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if failed != freeTries {
		t.Errorf("%d passwords were looked at, want %d", failed, freeTries)
	}
}

// TestLogInCode: with a second factor the password alone opens nothing; a code opens one
// session; five wrong ones end the try.
// Panel checks 6 and 9.
func TestLogInCode(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.setClock("2026-03-02T10:00:00Z")
	ana := s.person("ana@ejemplo.mx", roleOwner)
	m, _ := s.enters("ana@ejemplo.mx")
	secret := offeredSecret(m, "a form")
	raw, err := totp.Base32.DecodeString(secret)
	s.ok(err)
	code := func() string { return totp.Code(raw, int64(s.clock)) }
	wantPeople(t, tryBy(s, m, func(t *txn) error { _, err := t.people.addFactor(m, secret, "000000"); return err }), errCodeWrong, "enrolled with a wrong code")
	recovery, err := by(s, m, func(t *txn) ([]string, error) { return t.people.addFactor(m, secret, code()) })
	s.ok(err)
	wantPeople(t, tryBy(s, m, func(t *txn) error { _, err := t.people.addFactor(m, secret, code()); return err }), errFactorThere, "twice")

	l := s.logins()
	l.sources = newLoginLimits(1<<20, 1)
	half := func() string {
		in, err := l.logIn(s.Context(), &logIn{Email: "ana@ejemplo.mx", Password: testPassword}, s.clock)
		s.ok(err)
		if !in.Half || in.Device != "" || s.member(in.Token) != nil {
			t.Fatalf("%+v is more than half", in)
		}
		return in.Token
	}
	enter := func(half, code string) error {
		in, err := l.logInCode(s.Context(), &codeGiven{Half: half, Code: code}, s.clock)
		if err == nil && (in.Token == half || s.member(in.Token) == nil || in.Device == "") {
			t.Errorf("%+v is not whole", in)
		}
		return err
	}
	first := half()
	wantPeople(t, enter(first, code()), errCodeWrong, "the code of the enrolment")
	s.pass(totp.Step * time.Millisecond)
	s.ok(enter(first, code()))
	wantPeople(t, enter(first, code()), errLoggedOut, "a half session that is whole")
	second := half()
	wantPeople(t, enter(second, code()), errCodeWrong, "a code again")
	s.ok(enter(second, recovery[0]))
	third := half()
	wantPeople(t, enter(third, recovery[0]), errCodeWrong, "a recovery code again")
	s.pass(halfSession)
	wantPeople(t, enter(third, recovery[1]), errLoggedOut, "ten minutes later")
	l.codes = accountLimits{endless: true}
	fourth := half()
	for range codeTries {
		wantPeople(t, enter(fourth, "000000"), errCodeWrong, "a wrong code")
	}
	s.pass(time.Minute)
	wantPeople(t, enter(fourth, recovery[1]), errLoggedOut, "after five wrong codes")
	fifth := half()
	for range 3 { // the waits of the account go on in another half session
		err = enter(fifth, "000000")
	}
	if _, ok := errors.AsType[*waitError](err); !ok {
		t.Errorf("%v, want a wait", err)
	}

	// Two browsers with one code: one gets in.
	l.codes = accountLimits{endless: true}
	s.pass(time.Hour)
	a, b := half(), half()
	var mu sync.Mutex
	var wait sync.WaitGroup
	in, now := 0, code()
	for _, token := range []string{a, b} {
		wait.Go(func() {
			if _, err := l.logInCode(s.Context(), &codeGiven{Half: token, Code: now}, s.clock); err == nil {
				mu.Lock()
				in++
				mu.Unlock()
			}
		})
	}
	if wait.Wait(); in != 1 {
		t.Errorf("%d browsers got in with one code", in)
	}
	s.ok(tryBy(s, m, func(t *txn) error { _, err := t.people.forgetFactor(ana); return err }))
	s.ok(s.tries(l, "ana@ejemplo.mx", testPassword, ""))
}

// TestChangePassword: another password ends all sessions but the member's, which gets another
// token.
func TestChangePassword(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.person("ana@ejemplo.mx", roleOwner)
	m, mine := s.enters("ana@ejemplo.mx")
	_, other := s.enters("ana@ejemplo.mx")
	l, from := s.logins(), &arrival{Source: homeAddress}
	_, err := l.changePassword(s.Context(), m, "mal", "otro tren azul 9", "", from, s.clock)
	wantPeople(t, err, errLogInFailed, "without the old one")
	_, err = l.changePassword(s.Context(), m, testPassword, "corta", "", from, s.clock)
	wantPeople(t, err, errPasswordShort, "a short one")
	token, err := l.changePassword(s.Context(), m, testPassword, "otro tren azul 9", "", from, s.clock)
	s.ok(err)
	if s.member(token) == nil || s.member(mine) != nil || s.member(other) != nil {
		t.Error("not the session with the new token alone goes on")
	}
	wantPeople(t, s.tries(l, "ana@ejemplo.mx", testPassword, ""), errLogInFailed, "the old password")
	s.ok(s.tries(l, "ana@ejemplo.mx", "otro tren azul 9", ""))

	m = s.member(token)
	s.pass(proofHolds)
	if m.hasProved(s.clock) {
		t.Error("the password of ten minutes ago is enough")
	}
	wantPeople(t, l.reprove(s.Context(), m, "mal", "", from, s.clock), errLogInFailed, "proved with a wrong one")
	s.ok(l.reprove(s.Context(), m, "otro tren azul 9", "", from, s.clock))
	if !s.member(token).hasProved(s.clock) {
		t.Error("the password of now is not enough")
	}
}

// TestSessionEnds: a session ends two hours after it was last seen, and twelve after it began.
// When it was seen is written at most every four minutes.
// Panel check 11.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.person("ana@ejemplo.mx", roleOwner)
	m, token := s.enters("ana@ejemplo.mx")
	seen := s.engine.sessionLimits.seen
	stored := func() instant {
		return ask(s, func(t *txn) (*session, error) { return get[session](t.Tx, sessionKey(m.hash)) }).SeenAt
	}
	began := s.clock
	for range 11*60 + 59 {
		s.pass(time.Minute)
		if s.member(token) == nil {
			t.Fatalf("ended after %v", s.clock.sub(began))
		}
		seen.see(m, s.clock)
		s.ok(seen.flush(s.Context(), s.engine.store, s.clock, false))
		if late := s.clock.sub(stored()); late >= seenEvery || late%seenEvery == 0 && late > 0 {
			t.Fatalf("what is stored is %v late", late)
		}
	}
	s.pass(time.Minute)
	if s.member(token) != nil {
		t.Error("alive after 12 hours")
	}

	m, token = s.enters("ana@ejemplo.mx")
	s.pass(4 * time.Minute)
	seen.see(m, s.clock)
	s.pass(2*time.Hour - time.Millisecond)
	if s.member(token) == nil {
		t.Error("ended a moment before 2 hours")
	}
	s.pass(time.Millisecond)
	if s.member(token) != nil {
		t.Error("alive 2 hours after it was seen")
	}
	// What was not written is written at last, and what is known of it forgotten.
	s.ok(seen.flush(s.Context(), s.engine.store, s.clock, true))
	s.ok(seen.flush(s.Context(), s.engine.store, s.clock, true))
	if len(seen.at) != 0 || s.clock.sub(stored()) != 2*time.Hour {
		t.Errorf("%d sessions are remembered; stored %v ago", len(seen.at), s.clock.sub(stored()))
	}
	s.swept()
	s.pass(endedEvery)
	s.swept()
	if left := ask(s, func(t *txn) ([][32]byte, error) { return sessionHashes(t.Tx, m.user.ID) }); len(left) != 0 {
		t.Errorf("%d sessions are left", len(left))
	}
}

// TestSessionsOf lists and ends sessions.
// Panel check 10.
func TestSessionsOf(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.person("ana@ejemplo.mx", roleOwner)
	s.person("eva@ejemplo.mx", roleCashier)
	_, evas := s.enters("eva@ejemplo.mx")
	var tokens []string
	var members []*member
	for range 4 {
		s.pass(time.Minute)
		m, token := s.enters("ana@ejemplo.mx")
		tokens, members = append(tokens, token), append(members, m)
	}
	list := func() (handles []string) {
		for _, o := range ask(s, func(t *txn) ([]*openSession, error) {
			return sessionsOf(t.Tx, members[0].user.ID, s.clock, s.engine.sessionLimits)
		}) {
			handles = append(handles, o.Handle)
		}
		return handles
	}
	all := list()
	if want := []string{handleOf(members[3].hash), handleOf(members[2].hash), handleOf(members[1].hash), handleOf(members[0].hash)}; !slices.Equal(all[:4], want) {
		t.Errorf("%v, want %v first", all, want)
	}
	me := members[3]
	ended := func(handle string) (n int) {
		n, err := by(s, me, func(t *txn) (int, error) { return t.people.endOthers(me, handle) })
		s.ok(err)
		return n
	}
	if n := ended(handleOf(members[1].hash)); n != 1 || s.member(tokens[1]) != nil || s.member(tokens[0]) == nil {
		t.Errorf("%d ended by its handle", n)
	}
	if n := ended(handleOf(me.hash)) + ended("nada"); n != 0 || s.member(tokens[3]) == nil {
		t.Errorf("%d ended that are not another one of the user's", n)
	}
	if n := ended(""); n < 2 || s.member(tokens[3]) == nil || s.member(tokens[0]) != nil || s.member(evas) == nil {
		t.Errorf("%d others ended", n)
	}
	if got := list(); !slices.Equal(got, []string{handleOf(me.hash)}) {
		t.Errorf("left: %v", got)
	}
}

// TestDevices: a user has ten devices at most, and one that is not used for 90 days is none.
func TestDevices(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.person("ana@ejemplo.mx", roleOwner)
	l := s.logins()
	enter := func(device string) string {
		l.sources = newLoginLimits(1<<20, 1)
		in, err := l.logIn(s.Context(), &logIn{arrival: arrival{Device: device}, Email: "ana@ejemplo.mx", Password: testPassword}, s.clock)
		s.ok(err)
		return in.Device
	}
	known := func(device string) bool {
		return ask(s, func(t *txn) (bool, error) { return isDevice(t.Tx, ana, device, t.now) })
	}
	first := enter("")
	if again := enter(first); again != first || !known(first) || known("") || known(first+"x") {
		t.Error("a device gets another token, or what is none is known")
	}
	var devices []string
	for range maxDevices {
		s.pass(time.Minute)
		devices = append(devices, enter(fmt.Sprint("no token ", len(devices))))
	}
	if known(first) || slices.ContainsFunc(devices, func(d string) bool { return !known(d) }) {
		t.Error("not the last ten are known")
	}
	s.pass(deviceLife)
	if known(devices[9]) {
		t.Error("known after 90 days")
	}
}
