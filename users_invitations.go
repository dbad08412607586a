package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// An invitation is a link for one person and one use. Its maker hands it over. It leads into an
// organization, or to a new password. The link has a token of 256 random bits; the store has the
// token's SHA-256. The transaction that makes the membership or sets the password spends it.
// Opening it does not: chats and mail scanners open links.
//
// When a link is used, its maker must still have the right to make it (stands). Whatever takes
// away that right also takes back the links, so that lists show no link that opens nothing.
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
	invitationEntry // to a session; never stored
)

func (i *invitation) fields(c *coder) {
	c.id(&i.ID)
	byteField(c, &i.Kind)
	uintField(c, &i.Org)
	textField(c, &i.Role)
	c.text(&i.Email)
	c.idOrNone(&i.User)
	c.bool(&i.NoFactor)
	i.By.fields(c)
	c.instant(&i.CreatedAt)
	c.instant(&i.Expires)
	c.instant(&i.Spent)
}

const (
	invitationLife = 72 * time.Hour

	// invitationKept is how long after its end a link says that it is spent or too old.
	invitationKept = 7 * 24 * time.Hour

	maxInvitations = 200 // of an organization that can be used
)

// errOwnReset refuses a link for one's own password: with it, somebody who finds an open session
// could take over the account for good.
var errOwnReset = newPeopleError("own_reset", "", "La propia contraseña se cambia en Mi cuenta")

var (
	errInvitationUnknown = newPeopleError("invitation_unknown", "", "La invitación no existe")
	errInvitationSpent   = newPeopleError("invitation_spent", "", "La invitación ya se usó")
	errInvitationOld     = newPeopleError("invitation_expired", "", "La invitación venció: pide otra")
	errMemberAlready     = newPeopleError("member_already", "email", "Ya es del equipo")
	errInvitationsMany   = newPeopleError("invitations_many", "", "Hay demasiados enlaces abiertos: retira alguno")
)

func invitationKey(hash [32]byte) key { return append(newKey('V'), hash[:]...) }

func invitationListKey(org uint32, invitation id) key { return orgKey('L', org).id(invitation) }

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
func (p *peopleTxn) invite(by *member, email string, r role) (i *invitation, token string, err error) {
	if email, err = usersEmail(email); err != nil {
		return nil, "", err
	}
	if !r.known() {
		return nil, "", errRoleUnknown
	}
	if err := by.authority().mayManage("", r, false); err != nil {
		return nil, "", err
	}
	u, err := userByEmail(p.t.Tx, email)
	if err != nil {
		return nil, "", err
	}
	if u != nil {
		if m, err := membershipIn(p.t.Tx, p.t.org, u.ID); err != nil || m != nil {
			if err == nil {
				err = errMemberAlready
			}
			return nil, "", err
		}
	}
	var refused error
	_, err = p.dropLinks(func(old *invitation) bool {
		if old.Email != email {
			return false
		}
		refused = errors.Join(refused, by.authority().mayManage("", old.Role, false))
		return true
	})
	if err = errors.Join(err, refused); err != nil {
		return nil, "", err
	}
	i = &invitation{Kind: invitationJoin, Role: r, Email: email}
	if token, err = p.addInvitation(i); err != nil {
		return nil, "", err
	}
	return i, token, p.t.audit.note(auditUserInvited, i.ID.String(), []change{{"role", nil, r}})
}

func (p *peopleTxn) addInvitation(i *invitation) (token string, err error) {
	open, err := p.invitations()
	if err != nil {
		return "", err
	}
	if len(open) >= maxInvitations {
		return "", errInvitationsMany
	}
	token = p.newToken()
	i.ID, i.Org, i.By, i.CreatedAt, i.Expires = p.t.id(), p.t.org, p.t.by, p.t.now, p.t.now.add(invitationLife)
	hash := tokenHash(token)
	if err := p.t.Put(invitationListKey(i.Org, i.ID), hash[:]); err != nil {
		return "", err
	}
	return token, p.t.put(invitationKey(hash), i)
}

// A listedInvitation is one of the organization that can be used.
type listedInvitation struct {
	*invitation
	hash [32]byte
}

// invitations returns the organization's usable invitations, oldest first.
func (p *peopleTxn) invitations() ([]*listedInvitation, error) {
	return usableInvitations(p.t.Tx, orgKey('L', p.t.org), p.t.now)
}

// usableInvitations returns the invitations that can be used, of one organization or, with a
// shorter prefix, of all.
func usableInvitations(tx Tx, prefix key, now instant) (list []*listedInvitation, err error) {
	for e, err := range scan(tx, prefix, false) {
		if err != nil {
			return nil, err
		}
		if len(e.Value) != 32 {
			return nil, unreadable(e.Key)
		}
		i, err := get[invitation](tx, invitationKey([32]byte(e.Value)))
		if err == nil && i == nil {
			err = unreadable(e.Key)
		}
		if err != nil {
			return nil, err
		}
		if i.usable(now) == nil {
			list = append(list, &listedInvitation{i, [32]byte(e.Value)})
		}
	}
	return list, nil
}

func dropInvitation(tx Tx, i *invitation, hash [32]byte) error {
	if err := tx.Delete(invitationListKey(i.Org, i.ID)); err != nil {
		return err
	}
	return tx.Delete(invitationKey(hash))
}

// dropLinks takes back the organization's open links for which match returns true, and
// returns how many there were.
func (p *peopleTxn) dropLinks(match func(*invitation) bool) (n int, err error) {
	open, err := p.invitations()
	if err != nil {
		return 0, err
	}
	for _, i := range open {
		if !match(i.invitation) {
			continue
		}
		if err := dropInvitation(p.t, i.invitation, i.hash); err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// dropLinksOf takes back the organization's open links that a user made, and the links to the
// user's new password. It returns how many there were.
func (p *peopleTxn) dropLinksOf(user id) (n int, err error) {
	return p.dropLinks(func(i *invitation) bool { return i.madeBy(user) || i.resets(user) })
}

// dropResets takes back the open links for a user's password, in all organizations, and
// returns how many there were.
func (p *peopleTxn) dropResets(user id) (n int, err error) {
	homes, err := homesOf(p.t.Tx, user)
	if err != nil {
		return 0, err
	}
	err = p.eachIn(homes, func(in *txn) error {
		dropped, err := in.people.dropLinks(func(i *invitation) bool { return i.resets(user) })
		n += dropped
		return err
	})
	return n, err
}

func (i *invitation) madeBy(user id) bool { return i.By.Type == byUser && i.By.ID == user }

func (i *invitation) resets(user id) bool { return i.Kind == invitationReset && i.User == user }

// uninvite takes back an open link of the organization.
func (p *peopleTxn) uninvite(by *member, invitation id) error {
	open, err := p.invitations()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(open, func(i *listedInvitation) bool { return i.ID == invitation })
	if at < 0 {
		return errInvitationUnknown
	}
	i := open[at]
	from, subject, what := role(""), i.ID, change{"role", i.Role, nil}
	if i.Kind == invitationReset {
		m, err := p.teammate(i.User) // a user without an organization is the operator's alone
		if err != nil {
			return err
		}
		from = m.Role
		subject, what = i.User, change{"invitation", i.ID, nil}
	}
	if err := by.authority().mayManage(from, cmp.Or(i.Role, from), false); err != nil {
		return err
	}
	if err := dropInvitation(p.t, i.invitation, i.hash); err != nil {
		return err
	}
	return p.t.audit.note(auditUserUninvited, subject.String(), []change{what})
}

// mayReset returns an error unless by may make a link for the password of a member of an
// organization. The link opens everything of the target, so the target has to be a member of that
// organization alone, and must not be an operator. A nil by is the operator, who always may.
func mayReset(tx Tx, org uint32, by *member, target id) error {
	if by == nil {
		return nil
	}
	m, err := teammateIn(tx, org, target)
	if err != nil {
		return err
	}
	if by.is(target) {
		return errOwnReset
	}
	if err := by.mayManage(target, m.Role, m.Role); err != nil {
		return err
	}
	orgs, err := organizationsOf(tx, target)
	if err == nil && (len(orgs) > 1 || m.Operator) {
		err = errElsewhere
	}
	return err
}

// stands returns invitation_unknown if the maker of the invitation could not make it now. The
// operator always could. A link for a password stands only where dropResets finds it.
func (i *invitation) stands(tx Tx) error {
	if i.Kind == invitationReset {
		homes, err := homesOf(tx, i.User)
		if err != nil {
			return err
		}
		if !slices.Contains(homes, i.Org) {
			return errInvitationUnknown
		}
	}
	if i.By.Type != byUser {
		return nil
	}
	maker, err := teammateIn(tx, i.Org, i.By.ID)
	if err == nil && !maker.active() {
		err = errNotMember
	}
	if err == nil {
		by := &member{user: maker.user, role: maker.Role, org: i.Org}
		if i.Kind == invitationReset {
			err = mayReset(tx, i.Org, by, i.User)
		} else {
			err = by.mayManage(id{}, "", i.Role)
		}
	}
	if _, may := errors.AsType[*peopleError](err); may {
		return errInvitationUnknown
	}
	return err
}

// resetLink makes a link with which a member sets another password.
func (p *peopleTxn) resetLink(by *member, user id) (i *invitation, token string, err error) {
	m, err := p.teammate(user)
	if err == nil {
		err = mayReset(p.t.Tx, p.t.org, by, user)
	}
	if err != nil {
		return nil, "", err
	}
	return p.resetUser(m.user, false)
}

// resetUser makes a link with which a user sets another password, in the place of an earlier
// one. With noFactor it also takes away the second factor.
func (p *peopleTxn) resetUser(u *user, noFactor bool) (i *invitation, token string, err error) {
	if _, err := p.dropResets(u.ID); err != nil {
		return nil, "", err
	}
	i = &invitation{Kind: invitationReset, User: u.ID, NoFactor: noFactor}
	if token, err = p.addInvitation(i); err != nil {
		return nil, "", err
	}
	var changes []change
	if noFactor {
		changes = []change{{"secondFactor", true, nil}}
	}
	return i, token, p.noteEverywhere(u.ID, auditUserReset, changes)
}

func (p *peopleTxn) spendInvitation(hash [32]byte, i *invitation) error {
	i.Spent = p.t.now
	return p.t.put(invitationKey(hash), i)
}

func (p *peopleTxn) joinBy(hash [32]byte, i *invitation, u *user) error {
	if m, err := membershipIn(p.t.Tx, p.t.org, u.ID); err != nil || m != nil {
		if err == nil {
			err = errMemberAlready
		}
		return err
	}
	if _, err := p.dropResets(u.ID); err != nil { // the password opens more from now on
		return err
	}
	if err := p.addMember(u.ID, &membership{Role: i.Role, Since: p.t.now, By: i.By}); err != nil {
		return err
	}
	if err := p.spendInvitation(hash, i); err != nil {
		return err
	}
	return p.t.audit.note(auditUserJoined, u.ID.String(), []change{{"role", nil, i.Role}, {"invitation", nil, i.ID}})
}

// What links lead to: into an organization, to another password, or to a session.

// An entryLink logs a user in, as often as it is used, while the process runs that made it. The
// demo alone has one: no store knows it.
type entryLink struct {
	hash [32]byte // of its token
	user id
	org  uint32
}

// An acceptance is what the holder of an invitation gives.
type acceptance struct {
	arrival
	Token     string
	Name      string // of a new user
	Password  string // the new one, or that of the user who is invited
	RequestID string
}

// An accepted is whom and where an invitation leads.
type accepted struct {
	hash [32]byte
	*invitation
	user *user // whose password it is, or who has the e-mail already; nil: somebody new
}

// lookAt returns an invitation that can be used, and spends nothing.
func (l *logins) lookAt(ctx context.Context, token string, now instant) (*accepted, error) {
	return viewStore(ctx, l.engine.store, func(tx Tx) (a *accepted, err error) {
		a = &accepted{hash: tokenHash(token)}
		if e := l.entry.Load(); e != nil && e.hash == a.hash {
			a.invitation = &invitation{Kind: invitationEntry, Org: e.org, User: e.user}
			if a.user, err = userByID(tx, e.user); err == nil && a.user == nil {
				err = errInvitationUnknown
			}
			return a, err
		}
		return a, a.read(tx, now)
	})
}

// read fills a in, by its hash.
func (a *accepted) read(tx Tx, now instant) (err error) {
	if a.invitation, err = get[invitation](tx, invitationKey(a.hash)); err == nil {
		err = a.usable(now)
	}
	if err == nil {
		err = a.stands(tx)
	}
	if err != nil {
		return err
	}
	if a.Kind == invitationJoin {
		a.user, err = userByEmail(tx, a.Email)
		return err
	}
	a.user, err = userByID(tx, a.User)
	switch {
	case err != nil:
		return err
	case a.user == nil:
		return errInvitationUnknown
	case a.user.Password.At > a.CreatedAt: // another link was used
		return errInvitationSpent
	}
	return nil
}

// accept uses an invitation: it logs the user of an entry in; makes a new user and logs it in;
// makes a user who is there, and who proves the password, a member; or sets another password.
// After the last two the user has to log in.
func (l *logins) accept(ctx context.Context, in *acceptance, now instant) (*loggedIn, error) {
	if err := l.fromSource(&in.arrival, false, now); err != nil {
		return nil, err
	}
	a, err := l.lookAt(ctx, in.Token, now)
	if err != nil {
		return nil, err
	}
	if a.Kind == invitationEntry {
		return l.enter(ctx, a, in, now)
	}
	var h passwordHash
	if a.Kind == invitationJoin && a.user != nil {
		var c claim
		if c, err = l.claimOf(ctx, a.Email, in.Device, now); err == nil {
			err = l.prove(ctx, &c, in.Password, now)
		}
		if err == nil && !c.user.Password.equal(&a.user.Password) {
			err = errLogInFailed
		}
		if err == errLogInFailed { // what nobody new could choose is told as to somebody new
			stranger := *a
			stranger.user = nil
			if fault := l.checkPassword(ctx, &stranger, in); fault != nil {
				err = fault
			}
		}
	} else if err = l.checkPassword(ctx, a, in); err == nil {
		h, err = l.hash(ctx, in.Password)
	}
	if err != nil {
		return nil, err
	}
	done, err := write(ctx, l.engine, a.Org, now, func(t *txn) (*loggedIn, error) {
		t.requestID = in.RequestID
		again := &accepted{hash: a.hash}
		if err := again.read(t.Tx, t.now); err != nil {
			return nil, err
		}
		if (again.user == nil) != (a.user == nil) || a.user != nil && !again.user.Password.equal(&a.user.Password) { // changed meanwhile
			return nil, errInvitationSpent
		}
		return t.people.accept(again, in, h)
	})
	if err == nil && a.Kind == invitationReset {
		l.forgive(a.user)
	}
	return done, err
}

// enter logs the user of an entry in.
func (l *logins) enter(ctx context.Context, a *accepted, in *acceptance, now instant) (*loggedIn, error) {
	return write(ctx, l.engine, a.Org, now, func(t *txn) (*loggedIn, error) {
		t.by, t.requestID = creator{Type: byUser, ID: a.User}, in.RequestID
		u, err := userByID(t.Tx, a.User)
		if err == nil && (u == nil || u.Disabled != 0) {
			err = errInvitationUnknown
		}
		if err != nil {
			return nil, err
		}
		return t.people.admit(u, &in.arrival)
	})
}

// checkPassword checks the name and the password of somebody new, or the other password of a
// user.
func (l *logins) checkPassword(ctx context.Context, a *accepted, in *acceptance) (err error) {
	email, name, of := a.Email, "", id{}
	if a.user != nil {
		email, name, of = a.user.Email, a.user.Name, a.user.ID
	} else if name, err = usersName(in.Name); err != nil {
		return err
	}
	if a.NoFactor {
		of = id{} // the one that there will be after it
	}
	return l.checkNew(ctx, a.Org, of, in.Password, email, name)
}

// accept does what an invitation leads to. h is the hash of a new password.
func (p *peopleTxn) accept(a *accepted, in *acceptance, h passwordHash) (*loggedIn, error) {
	if a.Kind == invitationReset {
		p.t.by = creator{Type: byUser, ID: a.user.ID}
		var more []change
		if a.NoFactor {
			var err error
			if more, err = p.forgetFactor(a.user.ID); err != nil {
				return nil, err
			}
		}
		if err := p.checkNew(a.user.ID, in.Password, a.user.Email, a.user.Name); err != nil { // the second factor may have gone meanwhile
			return nil, err
		}
		if err := p.spendInvitation(a.hash, a.invitation); err != nil {
			return nil, err
		}
		return &loggedIn{User: a.user.ID, Org: p.t.org}, p.setPassword(a.user, h, nil, more...)
	}
	u, isNew := a.user, a.user == nil
	if isNew {
		name, err := usersName(in.Name)
		if err != nil {
			return nil, err
		}
		h.At = p.t.now
		u = &user{Email: a.Email, Name: name, Password: h}
		if err := p.addUser(u); err != nil {
			return nil, err
		}
	}
	p.t.by = creator{Type: byUser, ID: u.ID}
	if err := p.joinBy(a.hash, a.invitation, u); err != nil {
		return nil, err
	}
	if !isNew {
		return &loggedIn{User: u.ID, Org: p.t.org}, nil
	}
	return p.comeIn(u, &in.arrival) // that somebody joined says it
}
