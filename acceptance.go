package main

import "context"

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
	} else {
		h, err = l.newPassword(ctx, a, in)
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

// newPassword checks what checkPassword does, and hashes the password.
func (l *logins) newPassword(ctx context.Context, a *accepted, in *acceptance) (h passwordHash, err error) {
	if err := l.checkPassword(ctx, a, in); err != nil {
		return h, err
	}
	return l.hash(ctx, in.Password)
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
