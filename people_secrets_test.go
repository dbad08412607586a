package main

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// TestPeopleSecrets: a password, and the tokens of sessions, devices and invitations, and
// recovery codes are nowhere in the store, nor is any of them, or a second factor's secret, in
// the log, in kept answers or in the audit log.
func TestPeopleSecrets(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	var log bytes.Buffer
	s.engine.log = slog.New(slog.NewJSONHandler(&log, nil))
	l := s.logins()
	invitation := s.invited("ana@ejemplo.mx", roleOwner)
	in, err := l.accept(s.Context(), &acceptance{Token: invitation, Name: "Ana García", Password: testPassword}, s.clock)
	s.ok(err)
	m := s.member(in.Token)
	secret := offeredSecret(m, "a form")
	raw, err := codeBase32.DecodeString(secret)
	s.ok(err)
	recovery, err := by(s, m, func(t *txn) ([]string, error) {
		return t.people.addFactor(m, secret, hotp(raw, uint64(s.clock/totpStep), totpDigits))
	})
	s.ok(err)
	half, err := l.logIn(s.Context(), &logIn{Email: "ana@ejemplo.mx", Password: testPassword}, s.clock)
	s.ok(err)
	whole, err := l.logInCode(s.Context(), &codeGiven{Half: half.Token, Code: recovery[0]}, s.clock)
	s.ok(err)
	wantPeople(t, s.tries(l, "ana@ejemplo.mx", "una contraseña mala", ""), errLogInFailed, "a wrong password")
	s.ok(l.flush(s.Context(), s.clock, true))
	reset := must(s, func(t *txn) (string, error) {
		_, token, err := t.people.resetUser(m.user, true)
		return token, err
	})
	_, err = l.accept(s.Context(), &acceptance{Token: reset, Password: "otro tren azul 9"}, s.clock)
	s.ok(err)

	hashed := []string{testPassword, "una contraseña mala", "otro tren azul 9", invitation, reset, in.Token, in.Device, half.Token, whole.Token, whole.Device}
	for _, code := range recovery {
		hashed = append(hashed, code, strings.ReplaceAll(code, "-", ""))
	}
	known := append(slices.Clone(hashed), secret, string(raw))
	seen := 0
	for _, e := range s.entries() {
		for i, text := range known {
			in := bytes.Contains(e.Key, []byte(text)) || bytes.Contains(e.Value, []byte(text))
			if in && i < len(hashed) {
				t.Errorf("%x holds %q", e.Key, text)
			}
			if in && strings.IndexByte("AiB", e.Key[0]) >= 0 {
				t.Errorf("%x tells %q", e.Key, text)
			}
		}
		if e.Key[0] == 'A' {
			seen++
		}
	}
	for _, text := range known {
		if strings.Contains(log.String(), text) {
			t.Errorf("the log tells %q", text)
		}
	}
	if seen < 7 {
		t.Errorf("%d entries of the audit log were looked at", seen)
	}
	// Control: a text that is stored is found.
	if !slices.ContainsFunc(s.entries(), func(e Entry) bool { return bytes.Contains(e.Value, []byte("ana@ejemplo.mx")) }) {
		t.Error("what is stored is not found")
	}
}

// TestUserNames: who is a member has a name where it is shown what it did, and who is none any
// more has its id alone.
func TestUserNames(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana, luz := s.person("ana@ejemplo.mx", roleOwner), s.person("luz@ejemplo.mx", roleManager)
	owner, _ := s.enters("ana@ejemplo.mx")
	shown := func(org uint32) (name *string) {
		s.in(org, func() {
			name = ask(s, func(t *txn) (*createdBy, error) { return newCreatedBy(t, creator{Type: byUser, ID: luz}) }).Name
		})
		return name
	}
	if name := shown(1); name == nil || *name != "Ana García" {
		t.Errorf("a member is called %v", name)
	}
	s.secondShop()
	if name := shown(2); name != nil {
		t.Errorf("another organization sees %s", *name)
	}
	s.ok(tryBy(s, owner, func(t *txn) error { return t.people.removeMember(owner, luz) }))
	if name := shown(1); name != nil {
		t.Errorf("who left is called %s", *name)
	}
	s.person("sol@ejemplo.mx", roleOwner)
	s.ok(tryBy(s, owner, func(t *txn) error { return t.people.removeMember(owner, ana) }))
}
