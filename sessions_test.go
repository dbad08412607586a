package main

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

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
