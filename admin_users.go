package main

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// The operations on users of the panel behind the commands.

type inviteRequest struct {
	Org   string `json:"org"`
	Email string `json:"email"`
	Role  role   `json:"role"`
	Panel string `json:"panel,omitempty"` // address of the panel, where no server says it
}

// An invited is the only answer that contains an invitation's link.
type invited struct {
	Link    string  `json:"link"`
	Expires instant `json:"expiresAt"`
}

func (a *admin) inviteUser(ctx context.Context, in inviteRequest) (made invited, err error) {
	address, err := a.panelURL(in.Panel)
	if err != nil {
		return made, err
	}
	return operate(ctx, a, in.Org, func(t *txn) (invited, error) {
		i, token, err := t.people.invite(nil, in.Email, in.Role)
		if err != nil {
			return invited{}, err
		}
		return invited{invitationLink(address, token), i.Expires}, nil
	})
}

func (a *admin) withdrawInvitation(ctx context.Context, in inviteRequest) (listedInvite, error) {
	return operate(ctx, a, in.Org, func(t *txn) (listedInvite, error) {
		email, err := usersEmail(in.Email)
		if err != nil {
			return listedInvite{}, err
		}
		open, err := t.people.invitations()
		if err != nil {
			return listedInvite{}, err
		}
		for _, i := range open {
			if i.Kind == invitationJoin && i.Email == email {
				return newListedInvite(i, in.Org), t.people.uninvite(nil, i.ID)
			}
		}
		return listedInvite{}, adminErrorf("no hay ninguna invitación abierta de %s a %s: sello user list muestra las que hay", email, in.Org)
	})
}

// usualPanel is the address of the panel of a server without flags.
const usualPanel = "http://127.0.0.1:8080"

func invitationLink(address, token string) string { return address + "/panel/invitacion/" + token }

// panelURL returns the address of the panel: the server's, or else a given one, or usualPanel.
func (a *admin) panelURL(given string) (string, error) {
	if !a.inServer {
		return cmp.Or(given, usualPanel), nil
	}
	if a.settings.Panel == "" {
		return "", adminErrorf("el servidor no sirve el panel: inícialo con -panel y la dirección con la que se abre, como https://puntos.example.mx")
	}
	return a.settings.Panel, nil
}

// A listedUser is a user as commands show it, or somebody who is only invited.
type listedUser struct {
	ID           *id            `json:"id"` // nil of somebody who is only invited
	Email        string         `json:"email"`
	Name         string         `json:"name"`
	Members      []listedMember `json:"organizations"`
	Operator     bool           `json:"operator"`
	SecondFactor bool           `json:"secondFactor"`
	Sessions     int            `json:"sessions"`
	CreatedAt    instant        `json:"createdAt"`
	LoggedInAt   instant        `json:"lastLoginAt"`
	DisabledAt   instant        `json:"disabledAt"`
	LockedAt     instant        `json:"lockedAt"`
	Invitations  []listedInvite `json:"invitations"` // open ones
}

type listedMember struct {
	Org        string  `json:"organization"`
	Role       role    `json:"role"`
	DisabledAt instant `json:"disabledAt"`
}

// A listedInvite is an open invitation, without its link.
type listedInvite struct {
	Org       string  `json:"organization"`
	Role      role    `json:"role"`
	CreatedAt instant `json:"createdAt"`
	Expires   instant `json:"expiresAt"`
}

func newListedInvite(i *listedInvitation, org string) listedInvite {
	return listedInvite{org, i.Role, i.CreatedAt, i.Expires}
}

// listUsers lists users, and people who are only invited, by e-mail.
func (a *admin) listUsers(ctx context.Context, _ struct{}) ([]listedUser, error) {
	now := instantOf(a.engine.now())
	return viewStore(ctx, a.engine.store, func(tx Tx) ([]listedUser, error) {
		slugs, err := slugsByNumber(tx)
		if err != nil {
			return nil, err
		}
		list := []listedUser{}
		for e, err := range scan(tx, newKey('N'), false) {
			if err != nil {
				return nil, err
			}
			u, err := userByEmail(tx, string(e.Key[1:]))
			if err != nil {
				return nil, err
			}
			shown, err := newListedUser(tx, u, slugs, now, a.engine.sessionLimits)
			if err != nil {
				return nil, err
			}
			list = append(list, shown)
		}
		return withInvited(tx, list, slugs, now)
	})
}

// withInvited adds the open invitations to a list of all users.
func withInvited(tx Tx, list []listedUser, slugs map[uint32]string, now instant) ([]listedUser, error) {
	at := map[string]int{}
	for i := range list {
		at[list[i].Email] = i
	}
	open, err := usableInvitations(tx, tableInvitationList.fixed(), now)
	if err != nil {
		return nil, err
	}
	for _, i := range open {
		if i.Kind != invitationJoin {
			continue
		}
		n, ok := at[i.Email]
		if !ok {
			n = len(list)
			list, at[i.Email] = append(list, listedUser{Email: i.Email, Members: []listedMember{}, Invitations: []listedInvite{}}), n
		}
		list[n].Invitations = append(list[n].Invitations, newListedInvite(i, slugs[i.Org]))
	}
	slices.SortStableFunc(list, func(a, b listedUser) int { return cmp.Compare(a.Email, b.Email) })
	return list, nil
}

func newListedUser(tx Tx, u *user, slugs map[uint32]string, now instant, limits sessionLimits) (shown listedUser, err error) {
	shown = listedUser{
		ID: &u.ID, Email: u.Email, Name: u.Name, Members: []listedMember{}, Invitations: []listedInvite{}, Operator: u.Operator,
		CreatedAt: u.CreatedAt, LoggedInAt: u.LoggedInAt, DisabledAt: u.Disabled, LockedAt: u.Locked,
	}
	orgs, err := organizationsOf(tx, u.ID)
	if err != nil {
		return shown, err
	}
	for _, org := range orgs {
		m, err := membershipIn(tx, org, u.ID)
		if err == nil && m == nil {
			err = unreadable(membershipOfKey(u.ID, org))
		}
		if err != nil {
			return shown, err
		}
		shown.Members = append(shown.Members, listedMember{slugs[org], m.Role, m.Disabled})
	}
	f, err := factorOf(tx, u.ID)
	if err != nil {
		return shown, err
	}
	open, err := sessionsOf(tx, u.ID, now, limits)
	shown.SecondFactor, shown.Sessions = f != nil, len(open)
	return shown, err
}

// A userRequest names a user, and says what becomes of it.
type userRequest struct {
	Email    string `json:"email"`
	On       bool   `json:"on,omitempty"`       // of operator
	NoFactor bool   `json:"noFactor,omitempty"` // of reset
	Panel    string `json:"panel,omitempty"`    // of reset: as in inviteRequest
}

// knownUser returns the user with an e-mail. If the person is only invited, the error says so.
func knownUser(tx Tx, email string, now instant) (*user, error) {
	u, err := userByEmail(tx, email)
	if err != nil || u != nil {
		return u, err
	}
	open, err := usableInvitations(tx, tableInvitationList.fixed(), now)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(open, func(i *listedInvitation) bool { return i.Email == email }) {
		return nil, adminErrorf("%s todavía no aceptó la invitación: sello user invite hace otro enlace y sello user withdraw lo retira", email)
	}
	return nil, errUserUnknown
}

// operateOn runs what a command changes of a user. It is a transaction of the user's first
// organization, or of the file's if the user is in none.
func operateOn[T any](ctx context.Context, a *admin, email string, fn func(*txn, *user) (T, error)) (result T, err error) {
	if email, err = usersEmail(email); err != nil {
		return result, err
	}
	now := instantOf(a.engine.now())
	org, err := viewStore(ctx, a.engine.store, func(tx Tx) (uint32, error) {
		u, err := knownUser(tx, email, now)
		if err != nil {
			return 0, err
		}
		homes, err := homesOf(tx, u.ID)
		return homes[0], err
	})
	if err != nil {
		return result, err
	}
	return write(ctx, a.engine, org, now, func(t *txn) (T, error) {
		t.by = byOperator(ctx)
		u, err := knownUser(t.Tx, email, now)
		if err != nil {
			var none T
			return none, err
		}
		return fn(t, u)
	})
}

func (a *admin) disableUser(ctx context.Context, in userRequest) (struct{}, error) {
	return operateOn(ctx, a, in.Email, func(t *txn, u *user) (struct{}, error) { return struct{}{}, t.people.disableUser(u, true) })
}

func (a *admin) enableUser(ctx context.Context, in userRequest) (struct{}, error) {
	return operateOn(ctx, a, in.Email, func(t *txn, u *user) (struct{}, error) { return struct{}{}, t.people.disableUser(u, false) })
}

func (a *admin) makeOperator(ctx context.Context, in userRequest) (struct{}, error) {
	return operateOn(ctx, a, in.Email, func(t *txn, u *user) (struct{}, error) { return struct{}{}, t.people.setOperator(u, in.On) })
}

func (a *admin) resetUser(ctx context.Context, in userRequest) (made invited, err error) {
	address, err := a.panelURL(in.Panel)
	if err != nil {
		return made, err
	}
	return operateOn(ctx, a, in.Email, func(t *txn, u *user) (invited, error) {
		i, token, err := t.people.resetUser(u, in.NoFactor)
		if err != nil {
			return invited{}, err
		}
		return invited{invitationLink(address, token), i.Expires}, nil
	})
}

// loggedOut says how many sessions were ended, and how many open links were taken back.
type loggedOut struct {
	Sessions int `json:"sessions"`
	Links    int `json:"links"`
}

// logOutUser ends the sessions of one user, and takes back the links that the user made and
// the links to a new password. Without an e-mail, it does so for all users.
func (a *admin) logOutUser(ctx context.Context, in userRequest) (done loggedOut, err error) {
	if in.Email != "" {
		return operateOn(ctx, a, in.Email, logOutUser)
	}
	all, err := a.listUsers(ctx, struct{}{})
	if err != nil {
		return done, err
	}
	for _, u := range all {
		if u.ID == nil {
			continue
		}
		one, err := operateOn(ctx, a, u.Email, logOutUser)
		if err != nil {
			return done, err
		}
		done.Sessions, done.Links = done.Sessions+one.Sessions, done.Links+one.Links
	}
	left, err := a.dropAllLinks(ctx) // when nobody is in who could make one
	done.Links += left
	return done, err
}

// logOutUser ends all sessions of a user, for the operator.
func logOutUser(t *txn, u *user) (done loggedOut, err error) {
	if done.Sessions, err = t.people.endSessions(u.ID, 0, nil); err != nil {
		return done, err
	}
	homes, err := homesOf(t.Tx, u.ID)
	if err != nil {
		return done, err
	}
	err = t.people.eachIn(homes, func(in *txn) error {
		n, err := in.people.dropLinksOf(u.ID)
		done.Links += n
		return err
	})
	if err != nil || done == (loggedOut{}) {
		return done, err
	}
	changes := []change{{"sessions", nil, done.Sessions}}
	if done.Links > 0 {
		changes = append(changes, change{"links", nil, done.Links})
	}
	return done, t.people.noteEverywhere(u.ID, auditSessionEnded, changes)
}

// dropAllLinks takes back the open links of all organizations, each in a transaction of its
// own, and returns how many there were.
func (a *admin) dropAllLinks(ctx context.Context) (n int, err error) {
	orgs, err := viewStore(ctx, a.engine.store, func(tx Tx) (list []uint32, err error) {
		for e, err := range scan(tx, tableInvitationList.fixed(), false) {
			if err != nil {
				return nil, err
			}
			list = append(list, uint32In(e.Key[1:]))
		}
		return slices.Compact(list), nil
	})
	if err != nil {
		return 0, err
	}
	for _, org := range orgs {
		dropped, err := write(ctx, a.engine, org, instantOf(a.engine.now()), func(t *txn) (int, error) {
			t.by = byOperator(ctx)
			dropped, err := t.people.dropLinks(func(*invitation) bool { return true })
			if err != nil || dropped == 0 {
				return 0, err
			}
			return dropped, t.audit.note(auditUserUninvited, "", []change{{"links", dropped, nil}})
		})
		if err != nil {
			return n, err
		}
		n += dropped
	}
	return n, nil
}

// invitationHours is how long an invitation is good, for texts.
const invitationHours = int(invitationLife / time.Hour)
