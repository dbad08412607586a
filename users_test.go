package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// testPassword is one that checkPassword takes.
const testPassword = "tren verde 7 salta"

var homeAddress = netip.MustParseAddr("203.0.113.1")

// logins returns the log-ins of the shop, with hashes that cost nothing.
func (s *shop) logins() *logins {
	l := newLogins(s.engine)
	l.iterations = 2
	return l
}

// invited makes an invitation as the operator and returns its token.
func (s *shop) invited(email string, r role) string {
	s.Helper()
	return must(s, func(t *txn) (string, error) {
		t.by = creator{Type: byCommand, Actor: "luis"}
		_, token, err := t.people.invite(nil, email, r)
		return token, err
	})
}

// person makes a user with a role.
func (s *shop) person(email string, r role) id {
	s.Helper()
	in, err := s.logins().accept(s.Context(), &acceptance{Token: s.invited(email, r), Name: "Ana García", Password: testPassword}, s.clock)
	s.ok(err)
	return in.User
}

// enters logs a user in and returns the member and the session's token.
func (s *shop) enters(email string) (*member, string) {
	s.Helper()
	in, err := s.logins().logIn(s.Context(), &logIn{Email: email, Password: testPassword}, s.clock)
	s.ok(err)
	m := s.member(in.Token)
	if m == nil {
		s.Fatalf("the session of %s is none", email)
	}
	return m, in.Token
}

// member returns whose session a token is of.
func (s *shop) member(token string) *member {
	s.Helper()
	m, err := viewStore(s.Context(), s.engine.store, func(tx Tx) (*member, error) { return memberByToken(tx, token, s.clock, s.engine.sessionLimits) })
	s.ok(err)
	return m
}

// by runs fn as a member does.
func by[T any](s *shop, m *member, fn func(*txn) (T, error)) (T, error) {
	return write(s.Context(), s.engine, m.org, s.clock, func(t *txn) (T, error) {
		t.by = creator{Type: byUser, ID: m.user.ID}
		return fn(t)
	})
}

// tryBy is by for an fn that returns an error alone.
func tryBy(s *shop, m *member, fn func(*txn) error) error {
	_, err := by(s, m, func(t *txn) (any, error) { return nil, fn(t) })
	return err
}

func wantPeople(t testing.TB, err, want error, reason string) {
	t.Helper()
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Errorf("%s: %v, want %v", reason, err, want)
	}
}

func wantWait(t testing.TB, err error, want time.Duration) {
	t.Helper()
	if e, ok := errors.AsType[*waitError](err); !ok || e.wait != want {
		t.Errorf("%v, want a wait of %v", err, want)
	}
}

// secondShop adds the organization tienda, whose number is 2.
func (s *shop) secondShop() {
	s.apply([]byte(strings.Replace(string(setup{}.document()), "cafe-luna", "tienda", 1)))
}

// in runs fn with the shop's other organization.
func (s *shop) in(org uint32, fn func()) {
	was := s.org
	s.org = org
	fn()
	s.org = was
}

// TestInvitation: a link is spent by its use and not by being looked at; afterwards it says so.
func TestInvitation(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	l := s.logins()
	token := s.invited(" Ana@Ejemplo.MX ", roleAdmin)
	for range 2 {
		a, err := l.lookAt(s.Context(), token, s.clock)
		s.ok(err)
		if a.Email != "ana@ejemplo.mx" || a.Role != roleAdmin || a.user != nil {
			t.Errorf("it leads %+v", a)
		}
	}
	use := func(token, name, password string) error {
		_, err := l.accept(s.Context(), &acceptance{Token: token, Name: name, Password: password}, s.clock)
		return err
	}
	wantPeople(t, use(token, " ", testPassword), errNameInvalid, "no name")
	wantPeople(t, use(token, "Ana", "corta"), errPasswordShort, "a short password")
	wantPeople(t, use(token, "Ana", "cafe-luna ana@ejemplo.mx"), errPasswordOwn, "the organization's and the user's")
	wantPeople(t, use(token+"x", "Ana", testPassword), errInvitationUnknown, "no such link")
	s.ok(use(token, "Ana", testPassword))
	wantPeople(t, use(token, "Ana", testPassword), errInvitationSpent, "used")
	_, err := l.lookAt(s.Context(), token, s.clock)
	wantPeople(t, err, errInvitationSpent, "looked at after its use")

	late := s.invited("eva@ejemplo.mx", roleCashier)
	later := s.invited("eva@ejemplo.mx", roleViewer)
	wantPeople(t, use(late, "Eva", testPassword), errInvitationUnknown, "another one came in its place")
	s.pass(invitationLife)
	wantPeople(t, use(later, "Eva", testPassword), errInvitationOld, "after 72 hours")
	s.pass(invitationKept)
	s.swept()
	if left := ask(s, func(t *txn) (n int, err error) {
		for _, err := range scan(t.Tx, newKey('V'), false) {
			if err != nil {
				return 0, err
			}
			n++
		}
		return n, nil
	}); left != 0 {
		t.Errorf("%d invitations are left", left)
	}
	_, err = do(s, func(t *txn) (any, error) {
		_, _, err := t.people.invite(nil, "ana@ejemplo.mx", roleViewer)
		return nil, err
	})
	wantPeople(t, err, errMemberAlready, "who is there")
	_, err = do(s, func(t *txn) (any, error) { _, _, err := t.people.invite(nil, "ana", roleViewer); return nil, err })
	wantPeople(t, err, errEmailInvalid, "no e-mail")
	_, err = do(s, func(t *txn) (any, error) { _, _, err := t.people.invite(nil, "io@ejemplo.mx", "boss"); return nil, err })
	wantPeople(t, err, errRoleUnknown, "no role")
}

// TestInvitedElsewhere: a user who is there gets the membership after proving the password.
func TestInvitedElsewhere(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.secondShop()
	ana := s.person("ana@ejemplo.mx", roleOwner)
	s.in(2, func() {
		token, l := s.invited("ana@ejemplo.mx", roleCashier), s.logins()
		_, err := l.accept(s.Context(), &acceptance{Token: token, Name: "Otra", Password: "otro tren azul 9"}, s.clock)
		wantPeople(t, err, errLogInFailed, "a wrong password")
		in, err := l.accept(s.Context(), &acceptance{Token: token, Name: "Otra", Password: testPassword}, s.clock)
		s.ok(err)
		if in.User != ana || in.Token != "" || in.Org != 2 {
			t.Errorf("%+v", in)
		}
	})
	u := ask(s, func(t *txn) (*user, error) { return userByID(t.Tx, ana) })
	orgs := ask(s, func(t *txn) ([]uint32, error) { return organizationsOf(t.Tx, ana) })
	if u.Name != "Ana García" || !slices.Equal(orgs, []uint32{1, 2}) {
		t.Errorf("%s in %v", u.Name, orgs)
	}
	m, token := s.enters("ana@ejemplo.mx")
	if m.org != 1 || m.role != roleOwner {
		t.Errorf("the session begins in %d as %s", m.org, m.role)
	}
	_, err := write(s.Context(), s.engine, 2, s.clock, func(t *txn) (any, error) { return nil, t.people.enter(m, s.engine.sessionLimits) })
	s.ok(err)
	if m = s.member(token); m.org != 2 || m.role != roleCashier {
		t.Errorf("after entering it is in %d as %s", m.org, m.role)
	}
	if again, _ := s.enters("ana@ejemplo.mx"); again.org != 2 {
		t.Errorf("the next session begins in %d", again.org)
	}
	// What an owner of one organization may not do to a user of two.
	_, err = do(s, func(t *txn) (any, error) {
		_, _, err := t.people.resetLink(&member{user: &user{ID: id{9}}, role: roleOwner, org: 1}, ana)
		return nil, err
	})
	wantPeople(t, err, errElsewhere, "a new password opens the other organization")
	s.ok(tryBy(s, &member{user: &user{}, org: 2}, func(t *txn) error { return t.people.removeMember(nil, ana) }))
	if s.member(token) != nil {
		t.Error("the session goes on in an organization that the user left")
	}
}

// TestTeam: each change of people leaves one entry in the audit log, without their names.
func TestTeam(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana, eva := s.person("ana@ejemplo.mx", roleOwner), s.person("eva@ejemplo.mx", roleAdmin)
	luz := s.person("luz@ejemplo.mx", roleCashier)
	owner, _ := s.enters("ana@ejemplo.mx")
	admin, _ := s.enters("eva@ejemplo.mx")
	_, luzToken := s.enters("luz@ejemplo.mx")
	entries := len(s.audited(auditFilter{}))
	step := func(what string, m *member, want string, fn func(*txn) error) {
		t.Helper()
		s.ok(tryBy(s, m, fn))
		all := s.audited(auditFilter{})
		if entries++; len(all) != entries || all[len(all)-1] != want {
			t.Errorf("%s: %d entries, want %d; the last is %s, want %s", what, len(all), entries, all[len(all)-1], want)
		}
	}
	step("a role", owner, `User  user.changed [{"field":"role","before":"cashier","after":"manager"}]`, func(t *txn) error { return t.people.changeRole(owner, luz, roleManager) })
	if m := s.member(luzToken); m.role != roleManager {
		t.Errorf("the role of the next request is %s", m.role)
	}
	step("shut out", admin, `User  user.changed [{"field":"disabledAt","before":null,"after":"2026-03-02T10:00:00.000Z"}]`, func(t *txn) error { return t.people.suspend(admin, luz, true) })
	if s.member(luzToken) != nil {
		t.Error("who is shut out is still in")
	}
	_, err := s.logins().logIn(s.Context(), &logIn{Email: "luz@ejemplo.mx", Password: testPassword}, s.clock)
	wantPeople(t, err, errNowhere, "who is shut out logs in")
	step("let in", admin, `User  user.changed [{"field":"disabledAt","before":"2026-03-02T10:00:00.000Z","after":null}]`, func(t *txn) error { return t.people.suspend(admin, luz, false) })
	step("an account", owner, `User  user.changed [{"field":"name","before":null,"after":null},{"field":"language","before":null,"after":"en"},{"field":"theme","before":null,"after":"dark"}]`,
		func(t *txn) error {
			return t.people.changeAccount(owner, accountChange{new("Ana G."), new("en"), new("dark")})
		})
	step("a link", owner, `User  user.reset []`, func(t *txn) error { _, _, err := t.people.resetLink(owner, luz); return err })
	step("an invitation", admin, `User  user.invited [{"field":"role","before":null,"after":"viewer"}]`, func(t *txn) error {
		_, _, err := t.people.invite(admin, "sol@ejemplo.mx", roleViewer)
		return err
	})
	open := ask(s, func(t *txn) ([]*listedInvitation, error) { return t.people.invitations() })
	step("taken back", owner, `User  user.uninvited [{"field":"role","before":"viewer","after":null}]`, func(t *txn) error { return t.people.uninvite(owner, open[0].ID) })
	step("removed", admin, `User  user.removed [{"field":"role","before":"manager","after":null}]`, func(t *txn) error { return t.people.removeMember(admin, luz) })
	if left := ask(s, func(t *txn) (*user, error) { return userByID(t.Tx, luz) }); left == nil {
		t.Error("who was removed is gone")
	}
	if got := s.audited(auditFilter{subject: luz.String()}); len(got) < 4 {
		t.Errorf("what was done to who was removed: %s", got)
	}
	for _, refused := range []struct {
		what string
		m    *member
		want error
		fn   func(*txn) error
	}{
		{"an administrator changes an owner", admin, errOwnersAlone, func(t *txn) error { return t.people.changeRole(admin, ana, roleAdmin) }},
		{"an administrator makes an owner", admin, errOwnersAlone, func(t *txn) error { return t.people.changeRole(admin, eva, roleOwner) }},
		{"an administrator invites an owner", admin, errOwnersAlone, func(t *txn) error { _, _, err := t.people.invite(admin, "x@ejemplo.mx", roleOwner); return err }},
		{"an administrator removes an owner", admin, errOwnersAlone, func(t *txn) error { return t.people.removeMember(admin, ana) }},
		{"an administrator shuts out an owner", admin, errOwnersAlone, func(t *txn) error { return t.people.suspend(admin, ana, true) }},
		{"an administrator renews an owner", admin, errOwnersAlone, func(t *txn) error { _, _, err := t.people.resetLink(admin, ana); return err }},
		{"an administrator ends an owner's sessions", admin, errOwnersAlone, func(t *txn) error { _, err := t.people.endSessionsOf(admin, ana); return err }},
		{"the last owner steps down", owner, errLastOwner, func(t *txn) error { return t.people.changeRole(owner, ana, roleAdmin) }},
		{"the last owner leaves", owner, errLastOwner, func(t *txn) error { return t.people.removeMember(owner, ana) }},
		{"the last owner shuts itself out", owner, errLastOwner, func(t *txn) error { return t.people.suspend(owner, ana, true) }},
		{"the operator disables the last owner", owner, errLastOwner, func(t *txn) error { return t.people.disableUser(owner.user, true) }},
		{"somebody else's", owner, errNotMember, func(t *txn) error { return t.people.changeRole(owner, luz, roleAdmin) }},
		{"no role", owner, errRoleUnknown, func(t *txn) error { return t.people.changeRole(owner, eva, "boss") }},
		{"no language", owner, errLanguage, func(t *txn) error { return t.people.changeAccount(owner, accountChange{Language: new("fr")}) }},
		{"no theme", owner, errTheme, func(t *txn) error { return t.people.changeAccount(owner, accountChange{Theme: new("red")}) }},
		{"no name", owner, errNameInvalid, func(t *txn) error { return t.people.changeAccount(owner, accountChange{Name: new("a\nb")}) }},
	} {
		wantPeople(t, tryBy(s, refused.m, refused.fn), refused.want, refused.what)
	}
	if got := len(s.audited(auditFilter{})); got != entries {
		t.Errorf("refusals left %d entries", got-entries)
	}
	for _, e := range s.entries() {
		if letter := e.Key[0]; (letter == 'A' || letter == 'B' || letter == 'i') && (strings.Contains(string(e.Value), "ejemplo.mx") || strings.Contains(string(e.Value), "García")) {
			t.Errorf("%x holds a name or an e-mail", e.Key)
		}
	}
}

// TestLastOwner lets people do random things to each other. There is always an active owner,
// and nobody ever gets more than an owner gave.
// Panel check 50.
func TestLastOwner(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(20, 1))
	s := newShop(t, setup{})
	var people []id
	for i, r := range []role{roleOwner, roleOwner, roleAdmin, roleAdmin, roleManager, roleCashier} {
		people = append(people, s.person(fmt.Sprintf("p%d@ejemplo.mx", i), r))
	}
	done := 0
	for range 400 {
		actor, target := people[rng.IntN(len(people))], people[rng.IntN(len(people))]
		mine := ask(s, func(t *txn) (*membership, error) { return membershipIn(t.Tx, 1, actor) })
		if mine == nil || mine.Disabled != 0 {
			continue
		}
		m := &member{user: &user{ID: actor}, role: mine.Role, org: 1}
		before := ask(s, func(t *txn) (*membership, error) { return membershipIn(t.Tx, 1, target) })
		what, out, to := rng.IntN(6), rng.IntN(2) == 0, roles[rng.IntN(len(roles))]
		err := tryBy(s, m, func(t *txn) error {
			switch what {
			case 0:
				return t.people.removeMember(m, target)
			case 1, 2:
				return t.people.suspend(m, target, out)
			}
			return t.people.changeRole(m, target, to)
		})
		if err == nil {
			done++
		}
		after := ask(s, func(t *txn) (*membership, error) { return membershipIn(t.Tx, 1, target) })
		if before != nil && after != nil && actor == target && !after.Role.within(before.Role) {
			t.Fatalf("%s raised itself from %s to %s", actor, before.Role, after.Role)
		}
		if mine.Role != roleOwner && before != nil && before.Role == roleOwner && (after == nil || *after != *before) {
			t.Fatalf("%s changed an owner", mine.Role)
		}
		owners := ask(s, func(t *txn) (n int, err error) {
			team, err := t.people.team()
			for _, m := range team {
				if m.active() && m.Role == roleOwner {
					n++
				}
			}
			return n, err
		})
		if owners == 0 {
			t.Fatal("no active owner is left")
		}
		if rng.IntN(4) == 0 { // who left comes back
			for i, who := range people {
				if back := ask(s, func(t *txn) (*membership, error) { return membershipIn(t.Tx, 1, who) }); back == nil {
					token := s.invited(fmt.Sprintf("p%d@ejemplo.mx", i), roles[rng.IntN(len(roles))])
					_, err := s.logins().accept(s.Context(), &acceptance{Token: token, Password: testPassword}, s.clock)
					s.ok(err)
				}
			}
		}
	}
	if done < 50 {
		t.Errorf("only %d changes were made", done)
	}
}

// TestInviterGone: what somebody invites who may no longer invite leads nowhere.
func TestInviterGone(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.person("ana@ejemplo.mx", roleOwner)
	eva := s.person("eva@ejemplo.mx", roleAdmin)
	owner, _ := s.enters("ana@ejemplo.mx")
	admin, _ := s.enters("eva@ejemplo.mx")
	token, err := by(s, admin, func(t *txn) (string, error) {
		_, token, err := t.people.invite(admin, "sol@ejemplo.mx", roleAdmin)
		return token, err
	})
	s.ok(err)
	s.ok(tryBy(s, owner, func(t *txn) error { return t.people.changeRole(owner, eva, roleCashier) }))
	_, err = s.logins().accept(s.Context(), &acceptance{Token: token, Name: "Sol", Password: testPassword}, s.clock)
	wantPeople(t, err, errInvitationUnknown, "the inviter was demoted")
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
