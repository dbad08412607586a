package main

import (
	"slices"
	"time"
)

// An invitation is a link for one person and one use, which whoever makes it hands over. It
// leads into an organization, or to a new password. The link has a token of 256 random bits;
// the store has its SHA-256. It is spent in the transaction that makes the membership or sets
// the password, and never by being looked at: chats and mail scanners open links.
//
//	V hash(32)          → invitation
//	L org invitation    → its hash
type invitation struct {
	ID        id
	Kind      invitationKind
	Org       uint32 // that it leads into, or was made in
	Role      role   // there; "" of a new password
	Email     string // of who is invited; "" of a new password
	User      id     // whose password it is; none of others
	NoFactor  bool   // it also takes away the second factor
	By        creator
	CreatedAt instant
	Expires   instant
	Spent     instant // 0: not
}

type invitationKind uint8

const (
	invitationJoin invitationKind = 1 + iota
	invitationReset
)

func (i *invitation) encode(w *writer) {
	w.id(i.ID)
	w.byte(byte(i.Kind))
	w.uint(uint64(i.Org))
	w.text(string(i.Role))
	w.text(i.Email)
	w.idOrNone(i.User)
	w.bool(i.NoFactor)
	i.By.encode(w)
	w.instant(i.CreatedAt)
	w.instant(i.Expires)
	w.instant(i.Spent)
}

func (i *invitation) decode(r *reader) {
	i.ID = r.id()
	i.Kind = invitationKind(r.byte())
	i.Org = uint32(r.uint())
	i.Role = role(r.text())
	i.Email = r.text()
	i.User = r.idOrNone()
	i.NoFactor = r.bool()
	i.By.decode(r)
	i.CreatedAt = r.instant()
	i.Expires = r.instant()
	i.Spent = r.instant()
}

const (
	invitationLife = 72 * time.Hour

	// invitationKept is how long after its end a link says that it is spent or too old.
	invitationKept = 7 * 24 * time.Hour

	maxInvitations = 200 // of an organization that are not spent
)

var (
	errInvitationUnknown = newPeopleError("invitation_unknown", "", "La invitación no existe")
	errInvitationSpent   = newPeopleError("invitation_spent", "", "La invitación ya se usó")
	errInvitationOld     = newPeopleError("invitation_expired", "", "La invitación venció: pide otra")
	errMemberAlready     = newPeopleError("member_already", "email", "Ya es del equipo")
	errInvitationsMany   = newPeopleError("invitations_many", "", "Hay demasiadas invitaciones abiertas: retira alguna")
)

func invitationKey(hash [32]byte) key { return append(newKey('V'), hash[:]...) }

func invitationListKey(org uint32, invitation id) key { return orgKey('L', org).id(invitation) }

// usable returns an error if the invitation is spent or too old.
func (i *invitation) usable(now instant) error {
	switch {
	case i == nil:
		return errInvitationUnknown
	case i.Spent != 0:
		return errInvitationSpent
	case now >= i.Expires:
		return errInvitationOld
	}
	return nil
}

// invite makes a link that leads an e-mail's owner into the organization, in the place of
// earlier ones for the same e-mail. by is nil for the operator. The token is not stored and
// cannot be shown again.
func (t *txn) invite(by *member, email string, r role) (i *invitation, token string, err error) {
	if email, err = usersEmail(email); err != nil {
		return nil, "", err
	}
	if !r.known() {
		return nil, "", errRoleUnknown
	}
	if err := by.authority().mayManage("", r, false); err != nil {
		return nil, "", err
	}
	u, err := userByEmail(t.Tx, email)
	if err != nil {
		return nil, "", err
	}
	if u != nil {
		if m, err := membershipIn(t.Tx, t.org, u.ID); err != nil || m != nil {
			if err == nil {
				err = errMemberAlready
			}
			return nil, "", err
		}
	}
	open, err := t.invitations()
	if err != nil {
		return nil, "", err
	}
	if len(open) >= maxInvitations {
		return nil, "", errInvitationsMany
	}
	for _, old := range open {
		if old.Email == email {
			if err := t.dropInvitation(old); err != nil {
				return nil, "", err
			}
		}
	}
	i = &invitation{Kind: invitationJoin, Role: r, Email: email}
	if token, err = t.addInvitation(i); err != nil {
		return nil, "", err
	}
	return i, token, t.audited(auditUserInvited, i.ID.String(), []change{{"role", nil, r}})
}

// addInvitation stores a new invitation and returns its token.
func (t *txn) addInvitation(i *invitation) (token string, err error) {
	token = t.newToken()
	i.ID, i.Org, i.By, i.CreatedAt, i.Expires = t.id(), t.org, t.by, t.now, t.now.add(invitationLife)
	hash := tokenHash(token)
	if err := t.Put(invitationListKey(i.Org, i.ID), hash[:]); err != nil {
		return "", err
	}
	return token, t.put(invitationKey(hash), i)
}

// A listedInvitation is one that leads into the organization and is not spent.
type listedInvitation struct {
	*invitation
	hash [32]byte
}

// invitations returns those into the organization that can be used, oldest first.
func (t *txn) invitations() (list []*listedInvitation, err error) {
	for e, err := range scan(t.Tx, orgKey('L', t.org), false) {
		if err != nil {
			return nil, err
		}
		if len(e.Value) != 32 {
			return nil, unreadable(e.Key)
		}
		i, err := get[invitation](t.Tx, invitationKey([32]byte(e.Value)))
		if err == nil && i == nil {
			err = unreadable(e.Key)
		}
		if err != nil {
			return nil, err
		}
		if i.Kind == invitationJoin && i.usable(t.now) == nil {
			list = append(list, &listedInvitation{i, [32]byte(e.Value)})
		}
	}
	return list, nil
}

func (t *txn) dropInvitation(i *listedInvitation) error {
	return dropInvitation(t, i.invitation, i.hash)
}

func dropInvitation(tx Tx, i *invitation, hash [32]byte) error {
	if err := tx.Delete(invitationListKey(i.Org, i.ID)); err != nil {
		return err
	}
	return tx.Delete(invitationKey(hash))
}

// dropInvitationsBy takes back what a user has made, who may make them no longer.
func (t *txn) dropInvitationsBy(user id) error {
	open, err := t.invitations()
	if err != nil {
		return err
	}
	for _, i := range open {
		if i.By.Type == byUser && i.By.ID == user {
			if err := t.dropInvitation(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// uninvite takes back an invitation into the organization.
func (t *txn) uninvite(by *member, invitation id) error {
	open, err := t.invitations()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(open, func(i *listedInvitation) bool { return i.ID == invitation })
	if at < 0 {
		return errInvitationUnknown
	}
	if err := by.authority().mayManage("", open[at].Role, false); err != nil {
		return err
	}
	if err := t.dropInvitation(open[at]); err != nil {
		return err
	}
	return t.audited(auditUserUninvited, invitation.String(), []change{{"role", open[at].Role, nil}})
}

// resetLink makes a link with which a member sets another password. An administrator makes
// one only for who is of this organization alone, since it opens all of the user's.
func (t *txn) resetLink(by *member, user id) (i *invitation, token string, err error) {
	m, err := t.teammate(user)
	if err == nil {
		err = by.mayManage(user, m.Role, m.Role)
	}
	if err == nil {
		err = t.ownsWhole(by, m)
	}
	if err != nil {
		return nil, "", err
	}
	return t.resetUser(m.user, false)
}

// resetUser makes a link with which a user sets another password. With noFactor it also takes
// away the second factor.
func (t *txn) resetUser(u *user, noFactor bool) (i *invitation, token string, err error) {
	i = &invitation{Kind: invitationReset, User: u.ID, NoFactor: noFactor}
	if token, err = t.addInvitation(i); err != nil {
		return nil, "", err
	}
	var changes []change
	if noFactor {
		changes = []change{{"secondFactor", true, nil}}
	}
	return i, token, t.auditedOf(u.ID, auditUserReset, changes)
}

// spendInvitation marks an invitation as used.
func (t *txn) spendInvitation(hash [32]byte, i *invitation) error {
	i.Spent = t.now
	return t.put(invitationKey(hash), i)
}

// joinBy makes a user a member by an invitation.
func (t *txn) joinBy(hash [32]byte, i *invitation, u *user) error {
	if m, err := membershipIn(t.Tx, t.org, u.ID); err != nil || m != nil {
		if err == nil {
			err = errMemberAlready
		}
		return err
	}
	if err := t.addMember(u.ID, &membership{Role: i.Role, Since: t.now, By: i.By}); err != nil {
		return err
	}
	if err := t.spendInvitation(hash, i); err != nil {
		return err
	}
	return t.audited(auditUserJoined, u.ID.String(), []change{{"role", nil, i.Role}, {"invitation", nil, i.ID}})
}
