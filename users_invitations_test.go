package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A linkShop is a shop with an owner, an administrator who makes links, and a cashier whom
// they are for; and another shop, with an owner of its own.
type linkShop struct {
	shop           *shop
	owner, admin   *member
	ana, eva, luz  id // the owner, the administrator, the cashier
	solo           id // the owner of the other shop
	token, joining string
}

func newLinkShop(t *testing.T) *linkShop {
	s := &linkShop{shop: newShop(t, setup{})}
	s.shop.secondShop()
	s.ana, s.eva = s.shop.person("ana@ejemplo.mx", roleOwner), s.shop.person("eva@ejemplo.mx", roleAdmin)
	s.luz = s.shop.person("luz@ejemplo.mx", roleCashier)
	s.shop.in(2, func() { s.solo = s.shop.person("solo@ejemplo.mx", roleOwner) })
	s.owner, _ = s.shop.enters("ana@ejemplo.mx")
	s.admin, _ = s.shop.enters("eva@ejemplo.mx")
	s.token = s.link(s.admin, s.luz)
	var err error
	s.joining, err = by(s.shop, s.admin, func(t *txn) (string, error) {
		_, token, err := t.people.invite(s.admin, "sol@ejemplo.mx", roleManager)
		return token, err
	})
	s.shop.ok(err)
	return s
}

// link is a link that a member makes for a person's password.
func (s *linkShop) link(m *member, person id) string {
	s.shop.Helper()
	token, err := by(s.shop, m, func(t *txn) (string, error) {
		_, token, err := t.people.resetLink(m, person)
		return token, err
	})
	s.shop.ok(err)
	return token
}

// use uses a link.
func (s *linkShop) use(token string) error {
	_, err := s.shop.logins().accept(s.shop.Context(), &acceptance{Token: token, Name: "Sol", Password: "otro tren azul 9"}, s.shop.clock)
	return err
}

// joins makes a person a member of an organization.
func (s *linkShop) joins(org uint32, email, password string, r role) {
	s.shop.Helper()
	s.shop.in(org, func() {
		_, err := s.shop.logins().accept(s.shop.Context(), &acceptance{Token: s.shop.invited(email, r), Password: password}, s.shop.clock)
		s.shop.ok(err)
	})
}

// as runs fn as a member does.
func (s *linkShop) as(m *member, fn func(*txn) error) {
	s.shop.Helper()
	s.shop.ok(tryBy(s.shop, m, fn))
}

// operates runs fn as whoever runs the server.
func (s *linkShop) operates(of id, fn func(*txn, *user) error) {
	s.shop.Helper()
	must(s.shop, func(t *txn) (any, error) {
		u, err := userByID(t.Tx, of)
		if err != nil {
			return nil, err
		}
		return nil, fn(t, u)
	})
}

// open lists the open links of the first organization.
func (s *linkShop) open() []*listedInvitation {
	return ask(s.shop, func(t *txn) ([]*listedInvitation, error) { return t.people.invitations() })
}

// resetOf is the open link for a person's password.
func (s *linkShop) resetOf(person id) *listedInvitation {
	s.shop.Helper()
	open := s.open()
	at := slices.IndexFunc(open, func(i *listedInvitation) bool { return i.resets(person) })
	if at < 0 {
		s.shop.Fatalf("no open link for %s", person)
	}
	return open[at]
}

// TestLinkOutlivesNothing: a link opens only what its maker could open when it is used. What
// makes it worthless takes it back, and a link that is there all the same is refused.
func TestLinkOutlivesNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		reset  bool // the link for the cashier's password is worthless
		join   bool // so is the invitation
		do     func(*linkShop)
	}{
		{"the target joined another organization as owner", true, false, func(s *linkShop) {
			s.joins(2, "luz@ejemplo.mx", testPassword, roleOwner)
		}},
		{"the target left", true, false, func(s *linkShop) {
			s.as(s.owner, func(t *txn) error { return t.people.removeMember(s.owner, s.luz) })
		}},
		{"the target moved to another organization", true, false, func(s *linkShop) {
			s.joins(2, "luz@ejemplo.mx", testPassword, roleCashier)
			s.as(s.owner, func(t *txn) error { return t.people.removeMember(s.owner, s.luz) })
		}},
		{"the target was made owner", true, false, func(s *linkShop) {
			s.as(s.owner, func(t *txn) error { return t.people.changeRole(s.owner, s.luz, roleOwner) })
		}},
		{"the target was made operator", true, false, func(s *linkShop) {
			s.operates(s.luz, func(t *txn, u *user) error { return t.people.setOperator(u, true) })
		}},
		{"the target was disabled", true, false, func(s *linkShop) {
			s.operates(s.luz, func(t *txn, u *user) error { return t.people.disableUser(u, true) })
		}},
		{"the target was logged out by command", true, false, func(s *linkShop) {
			s.operates(s.luz, func(t *txn, u *user) error { _, err := logOutUser(t, u); return err })
		}},
		{"the target has another password", true, false, func(s *linkShop) {
			s.operates(s.luz, func(t *txn, u *user) error { return t.people.setPassword(u, u.Password, nil) })
		}},
		{"the maker was logged out by command", true, true, func(s *linkShop) {
			s.operates(s.eva, func(t *txn, u *user) error { _, err := logOutUser(t, u); return err })
		}},
		{"the maker was removed", true, true, func(s *linkShop) {
			s.as(s.owner, func(t *txn) error { return t.people.removeMember(s.owner, s.eva) })
		}},
		{"the maker was demoted", true, true, func(s *linkShop) {
			s.as(s.owner, func(t *txn) error { return t.people.changeRole(s.owner, s.eva, roleManager) })
		}},
		{"the maker was shut out", true, true, func(s *linkShop) {
			s.as(s.owner, func(t *txn) error { return t.people.suspend(s.owner, s.eva, true) })
		}},
		{"the maker was disabled", true, true, func(s *linkShop) {
			s.operates(s.eva, func(t *txn, u *user) error { return t.people.disableUser(u, true) })
		}},
		{"nothing happened", false, false, func(*linkShop) {}},
		{"others came and went", false, false, func(s *linkShop) {
			s.joins(2, "ana@ejemplo.mx", testPassword, roleViewer)
			s.shop.person("leo@ejemplo.mx", roleViewer)
			s.operates(s.solo, func(t *txn, u *user) error { return t.people.setOperator(u, true) })
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newLinkShop(t)
			before := s.open()
			if len(before) != 2 {
				t.Fatalf("%d open links", len(before))
			}
			test.do(s)
			left := s.open()
			for i, link := range before {
				gone := test.join
				if link.Kind == invitationReset {
					gone = test.reset
				}
				if listed := slices.ContainsFunc(left, func(l *listedInvitation) bool { return l.ID == link.ID }); listed == gone {
					t.Errorf("link %d: listed %v", i, listed)
				}
				must(s.shop, func(t *txn) (any, error) { // as if nothing had taken it back
					if err := t.Put(invitationListKey(link.Org, link.ID), link.hash[:]); err != nil {
						return nil, err
					}
					return nil, t.put(invitationKey(link.hash), link.invitation)
				})
			}
			// Whoever runs the server took these back; put back, they are as good as any.
			byCommand := strings.HasSuffix(test.reason, "by command") || test.reason == "the target was disabled" || test.reason == "the target has another password"
			for _, link := range []struct {
				token     string
				worthless bool
			}{{s.token, test.reset && !byCommand}, {s.joining, test.join && !byCommand}} {
				var want error
				if link.worthless {
					want = errInvitationUnknown
				}
				_, err := s.shop.logins().lookAt(s.shop.Context(), link.token, s.shop.clock)
				wantPeople(t, err, want, "looked at")
				wantPeople(t, s.use(link.token), want, "used")
			}
		})
	}
}

// TestLinksOfTeam: links for passwords are in the list, count to the bound, can be taken back,
// and there is one a person. Nobody makes one for the own password.
func TestLinksOfTeam(t *testing.T) {
	t.Parallel()
	s := newLinkShop(t)
	again := s.link(s.owner, s.luz)
	if n, l := len(s.open()), s.resetOf(s.luz); n != 2 || l.By.ID != s.ana {
		t.Errorf("%d open links, the one for the password by %s", n, l.By.ID)
	}
	wantPeople(t, s.use(s.token), errInvitationUnknown, "another one came in its place")
	wantPeople(t, tryBy(s.shop, s.owner, func(t *txn) error { _, _, err := t.people.resetLink(s.owner, s.ana); return err }), errOwnReset, "the own password")

	s.operates(s.ana, func(t *txn, u *user) error { _, _, err := t.people.resetUser(u, false); return err })
	mine := s.resetOf(s.ana)
	wantPeople(t, tryBy(s.shop, s.admin, func(t *txn) error { return t.people.uninvite(s.admin, mine.ID) }), errOwnersAlone, "an administrator takes back an owner's")
	s.as(s.owner, func(t *txn) error { return t.people.uninvite(s.owner, mine.ID) })
	s.as(s.admin, func(t *txn) error { return t.people.uninvite(s.admin, s.resetOf(s.luz).ID) })
	wantPeople(t, s.use(again), errInvitationUnknown, "taken back")
	if got := s.shop.audited(auditFilter{action: auditUserUninvited}); len(got) != 2 {
		t.Errorf("entries: %s", got)
	}

	s.as(s.owner, func(t *txn) error { _, _, err := t.people.invite(s.owner, "mar@ejemplo.mx", roleOwner); return err })
	wantPeople(t, tryBy(s.shop, s.admin, func(t *txn) error { _, _, err := t.people.invite(s.admin, "mar@ejemplo.mx", roleViewer); return err }), errOwnersAlone, "in the place of an owner's link")

	for n := len(s.open()); n < maxInvitations; n++ {
		s.as(s.owner, func(t *txn) error {
			_, _, err := t.people.invite(s.owner, fmt.Sprintf("p%d@ejemplo.mx", n), roleViewer)
			return err
		})
	}
	wantPeople(t, tryBy(s.shop, s.owner, func(t *txn) error { _, _, err := t.people.resetLink(s.owner, s.luz); return err }), errInvitationsMany, "one too many")
}

// TestLogOutAll: the command takes back every link of every organization.
func TestLogOutAll(t *testing.T) {
	t.Parallel()
	s := newLinkShop(t)
	s.shop.in(2, func() { s.shop.invited("rio@ejemplo.mx", roleViewer) })
	a := &admin{engine: s.shop.engine, flush: func(context.Context) error { return nil }}
	done, err := a.logOutUser(t.Context(), userRequest{})
	s.shop.ok(err)
	if done != (loggedOut{Sessions: 6, Links: 3}) {
		t.Errorf("%+v", done)
	}
	wantPeople(t, s.use(s.token), errInvitationUnknown, "a link of before")
	if again, err := a.logOutUser(t.Context(), userRequest{}); err != nil || again != (loggedOut{}) {
		t.Errorf("once more: %+v, %v", again, err)
	}
}

// TestEndAccess: of a copy that is restored no link and no session is good.
func TestEndAccess(t *testing.T) {
	t.Parallel()
	s := newLinkShop(t)
	done, err := endAccess(t.Context(), s.shop.engine.store)
	s.shop.ok(err)
	if done.Links != 2+4 || done.Sessions != 6 { // four invitations are spent
		t.Errorf("%+v", done)
	}
	wantPeople(t, s.use(s.token), errInvitationUnknown, "a link of before")
	for _, of := range []table{tableInvitations, tableInvitationList, tableSessions, tableUserSessions} {
		for _, e := range s.shop.entries() {
			if of.has(e.Key) && e.Key[0] == of.fixed()[0] {
				t.Errorf("%x is left", e.Key)
			}
		}
	}
	s.shop.enters("ana@ejemplo.mx")
	if v, err := s.shop.verify(); err != nil || len(v.Problems) > 0 {
		t.Errorf("verify: %v %v", v, err)
	}
}
