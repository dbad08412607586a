package main

import (
	"errors"
	"net/http"
	"slices"
	"unicode/utf8"

	"sello/internal/password"
)

// people checks the users of the panel: that their memberships, sessions and invitations are
// of users and organizations that exist, and what the indexes of them must hold.
func (v *verifier) people(organizations uint32) error {
	users, err := v.users()
	if err != nil {
		return err
	}
	members := map[uint32][]id{}
	for e, err := range scan(v.txn.Tx, newKey('M'), false) {
		if err != nil {
			return err
		}
		if !tableMemberships.has(e.Key) {
			v.stray(e.Key)
			continue
		}
		m, err := decodeEntry[membership](e)
		if err != nil {
			return err
		}
		org, of := uint32In(e.Key[1:]), id(e.Key[5:])
		what := subject{kind: "miembro", id: of}
		if !users[of] || !m.Role.known() {
			v.problem("%v: no hay tal usuario o rol", what)
		}
		members[org] = append(members[org], of) // in order
		if err := v.has(tableMembershipsOf, membershipOfKey(of, org), nil, what); err != nil {
			return err
		}
	}
	if err := v.sessions(members); err != nil {
		return err
	}
	return v.invitationsOf(users, organizations)
}

// users reads all that lies under users, and returns who there is.
func (v *verifier) users() (users map[id]bool, err error) {
	users = map[id]bool{}
	for e, err := range scan(v.txn.Tx, newKey('U'), false) {
		if err != nil {
			return nil, err
		}
		t, ok := tableOf(e.Key)
		if !ok {
			v.stray(e.Key)
			continue
		}
		of := id(e.Key[1:17])
		what := subject{kind: "usuario", id: of}
		if t != tableUsers && !users[of] { // the user's own record comes first
			v.problem("%v: falta, y hay %s", what, t.inWords())
		}
		switch t {
		case tableUsers:
			users[of] = true
			err = v.user(e, of, what)
		case tableSecondFactors:
			_, err = decodeEntry[secondFactor](e)
		case tableDevices:
			_, err = decodeEntry[device](e)
		default:
			v.have[t].add(v.hash(e.Key, e.Value))
		}
		if err != nil {
			return nil, err
		}
	}
	return users, nil
}

// user checks a user's own record.
func (v *verifier) user(e Entry, of id, what subject) error {
	u, err := decodeEntry[user](e)
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"", "es", "en"}, u.Language) || !slices.Contains([]string{"", "light", "dark"}, u.Theme) ||
		u.Password.Iterations <= 0 || len(u.Password.Salt) != password.SaltSize || len(u.Password.Sum) != password.HashSize {
		v.problem("%v: su idioma, su tema o su contraseña no son válidos", what)
	}
	return v.has(tableEmails, emailKey(u.Email), of[:], what)
}

// sessions checks that each session is of a member of the organization that it is in.
func (v *verifier) sessions(members map[uint32][]id) error {
	for e, err := range scan(v.txn.Tx, newKey('S'), false) {
		if err != nil {
			return err
		}
		if !tableSessions.has(e.Key) {
			v.stray(e.Key)
			continue
		}
		s, err := decodeEntry[session](e)
		if err != nil {
			return err
		}
		what := subject{kind: "sesión de", id: s.User}
		_, found := slices.BinarySearchFunc(members[s.Org], s.User, compareIDs)
		if !found || s.Kind != sessionFull && s.Kind != sessionHalf {
			v.problem("%v: no es de la organización %d", what, s.Org)
		}
		if err := v.has(tableUserSessions, sessionOfKey(s.User, [32]byte(e.Key[1:])), nil, what); err != nil {
			return err
		}
	}
	return nil
}

// invitationsOf checks invitations.
func (v *verifier) invitationsOf(users map[id]bool, organizations uint32) error {
	for e, err := range scan(v.txn.Tx, newKey('V'), false) {
		if err != nil {
			return err
		}
		if !tableInvitations.has(e.Key) {
			v.stray(e.Key)
			continue
		}
		i, err := decodeEntry[invitation](e)
		if err != nil {
			return err
		}
		what := subject{kind: "invitación", id: i.ID}
		joins, resets := i.Kind == invitationJoin && i.Role.known(), i.Kind == invitationReset && users[i.User]
		if i.Org == 0 || i.Org > organizations || !joins && !resets {
			v.problem("%v: no lleva a ninguna parte", what)
		}
		if err := v.has(tableInvitationList, invitationListKey(i.Org, i.ID), e.Key[1:], what); err != nil {
			return err
		}
	}
	return nil
}

// undoRequests checks the requests to undo sales and redemptions.
func (v *verifier) undoRequests() error {
	for e, err := range scan(v.txn.Tx, tableUndoRequests.in(v.txn.org), false) {
		if err != nil {
			return err
		}
		if !tableUndoRequests.has(e.Key) {
			v.stray(e.Key)
			continue
		}
		r, err := decodeEntry[undoRequest](e)
		if err != nil {
			return err
		}
		u := id(e.Key[len(e.Key)-16:])
		fits, err := v.undoRequestFits(r, u)
		if known, is := errors.AsType[*apiError](err); is && known.code.status == http.StatusNotFound {
			fits, err = false, nil
		}
		if err != nil {
			return err
		}
		if !fits {
			v.problem("petición de deshacer %s: no puede ser lo que dice", u)
		}
	}
	return nil
}

// undoRequestFits reports whether a request agrees with the purchase or redemption that it is about,
// which was not undone, and whose customer was not erased.
func (v *verifier) undoRequestFits(r *undoRequest, u id) (bool, error) {
	s, err := v.txn.rewards.undoSubject(u, r.Redemption)
	if err != nil {
		return false, err
	}
	c, err := v.txn.merges.owner(s.customer)
	if err != nil {
		return false, err
	}
	return !s.undone && r.Customer == s.customer && c.Status != statusErased && r.By.ID == s.by.ID && r.At >= s.at && utf8.RuneCountInString(r.Reason) <= maxUndoReason, nil
}
