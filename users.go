package main

import (
	"slices"
	"strings"
	"unicode/utf8"

	"sello/internal/contact"
)

// Users are the people who use the panel. A user is one in the whole file, and has a role in
// each organization that it is a member of.
//
//	U user 0      → user
//	U user 1      → its second factor (users_factors.go)
//	U user 2 hash → empty: its sessions
//	U user 3 org  → empty: its organizations
//	U user 4 hash → a device that it has logged in from (users_sessions.go)
//	N email       → user
//	M org user    → membership
//
// None of these tables holds settings (engine_cache.go): a log-in must not empty the caches of all
// API keys. Each request of the panel reads the records.
//
// The audit log names a user by its id. A change that concerns the user everywhere, such as
// a new password, is written to the log of each of its organizations, so that their owners
// see it. Nobody would read a log of no organization.

// A user is a person who uses the panel.
type user struct {
	ID id // from the key

	Email      string // as contact.Email returns it; no two have the same
	Name       string
	Language   string  // es or en; "" is the organization's
	Theme      string  // light or dark; "" is the device's
	Disabled   instant // since when the operator has shut the user out; 0: not
	Locked     instant // since when the password works on known devices alone; 0: it works (users_passwords.go)
	Operator   bool    // sees the pages of whoever runs the server
	Password   passwordHash
	CreatedAt  instant
	LoggedInAt instant // last; 0: never
	Org        uint32  // that the user was in last; 0: none
}

func (u *user) fields(c *coder) {
	c.text(&u.Email)
	c.text(&u.Name)
	c.text(&u.Language)
	c.text(&u.Theme)
	c.instant(&u.Disabled)
	c.instant(&u.Locked)
	c.bool(&u.Operator)
	u.Password.fields(c)
	c.instant(&u.CreatedAt)
	c.instant(&u.LoggedInAt)
	uintField(c, &u.Org)
}

// A membership is what a user is in one organization.
type membership struct {
	Role     role
	Since    instant
	By       creator // who invited the user
	Disabled instant // since when the organization has shut the user out; 0: not

	MaxPointsPerDay decimal // that the user may give by hand on a UTC day (keys.go); 0: any number
}

func (m *membership) fields(c *coder) {
	textField(c, &m.Role)
	c.instant(&m.Since)
	m.By.fields(c)
	c.instant(&m.Disabled)
	c.decimal(&m.MaxPointsPerDay)
}

// Parts of what is kept under a user.
const (
	partUser = iota
	partFactor
	partSession
	partOrganization
	partDevice
)

func userKey(user id, part byte) key          { return newKey('U').id(user).byte(part) }
func emailKey(email string) key               { return newKey('N').text(email) }
func membershipKey(org uint32, user id) key   { return orgKey('M', org).id(user) }
func membershipOfKey(user id, org uint32) key { return userKey(user, partOrganization).u32(org) }

const maxUserName = 100 // characters

var (
	errUserUnknown  = newPeopleError("user_unknown", "", "No hay ningún usuario con ese email")
	errNotMember    = newPeopleError("not_member", "", "No es del equipo")
	errEmailInvalid = newPeopleError("email_invalid", "email", codeEmailInvalid.message)
	errNameInvalid  = newPeopleError("name_invalid", "name", "El nombre debe tener de 1 a 100 caracteres, sin caracteres de control")
	errLanguage     = newPeopleError("language_unknown", "language", "El idioma debe ser es o en")
	errTheme        = newPeopleError("theme_unknown", "theme", "El tema debe ser light o dark")
	errElsewhere    = newPeopleError("operator_alone", "", "Solo quien opera el servidor puede hacer esto con esta persona")
)

// userByID returns a user; nil if there is none.
func userByID(tx Tx, of id) (*user, error) {
	u, err := get[user](tx, userKey(of, partUser))
	if u != nil {
		u.ID = of
	}
	return u, err
}

// userByEmail returns the user with an e-mail as contact.Email returns it; nil if there is
// none.
func userByEmail(tx Tx, email string) (*user, error) {
	value, ok, err := tx.Get(emailKey(email))
	if err != nil || !ok {
		return nil, err
	}
	if len(value) != len(id{}) {
		return nil, unreadable(emailKey(email))
	}
	u, err := userByID(tx, id(value))
	if err == nil && u == nil {
		err = unreadable(emailKey(email))
	}
	return u, err
}

func hasUsers(tx Tx) (bool, error) { return hasAny(tx, newKey('N')) }

// organizationsOf returns the organizations that a user is a member of, in order.
func organizationsOf(tx Tx, user id) (list []uint32, err error) {
	return keyEnds(tx, tableMembershipsOf, userKey(user, partOrganization), uint32In)
}

// membershipIn returns what a user is in an organization; nil if it is no member.
func membershipIn(tx Tx, org uint32, user id) (*membership, error) {
	return get[membership](tx, membershipKey(org, user))
}

// A teammate is a member of an organization.
type teammate struct {
	*user
	*membership
}

func (m *teammate) active() bool { return m.user.Disabled == 0 && m.membership.Disabled == 0 }

// A peopleTxn is the panel's users and their sessions in a transaction.
type peopleTxn struct{ t *txn }

// nameOf is the name of a member of the organization; "" of who is none any more: the log
// and the ledger keep the id alone. It is looked up once in a transaction.
func (p *peopleTxn) nameOf(of id) (string, error) {
	t := p.t
	if name, known := t.keyNames[of]; known {
		return name, nil
	}
	m, err := membershipIn(t.Tx, t.org, of)
	if err != nil || m == nil {
		return "", err
	}
	u, err := userByID(t.Tx, of)
	if err != nil || u == nil {
		return "", err
	}
	if t.keyNames == nil {
		t.keyNames = map[id]string{}
	}
	t.keyNames[of] = u.Name
	return u.Name, nil
}

// team returns the members of the organization, in the order of their ids: who came first
// stands first.
func (p *peopleTxn) team() (list []*teammate, err error) {
	prefix := orgKey('M', p.t.org)
	for e, err := range scan(p.t.Tx, prefix, false) {
		if err != nil {
			return nil, err
		}
		m, err := decodeEntry[membership](e)
		if err != nil {
			return nil, err
		}
		u, err := userByID(p.t.Tx, id(e.Key[len(prefix):]))
		if err == nil && u == nil {
			err = unreadable(e.Key)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, &teammate{u, m})
	}
	return list, nil
}

// teammate returns a member of the organization, or not_member.
func (p *peopleTxn) teammate(user id) (*teammate, error) { return teammateIn(p.t.Tx, p.t.org, user) }

func teammateIn(tx Tx, org uint32, user id) (*teammate, error) {
	m, err := membershipIn(tx, org, user)
	if err == nil && m == nil {
		err = errNotMember
	}
	if err != nil {
		return nil, err
	}
	u, err := userByID(tx, user)
	if err == nil && u == nil {
		err = unreadable(membershipKey(org, user))
	}
	return &teammate{u, m}, err
}

func (p *peopleTxn) saveUser(u *user) error { return p.t.put(userKey(u.ID, partUser), u) }

func (p *peopleTxn) saveMembership(user id, m *membership) error {
	return p.t.put(membershipKey(p.t.org, user), m)
}

func (p *peopleTxn) addUser(u *user) error {
	u.ID, u.CreatedAt = p.t.id(), p.t.now
	if err := p.t.Put(emailKey(u.Email), u.ID[:]); err != nil {
		return err
	}
	return p.saveUser(u)
}

func (p *peopleTxn) addMember(user id, m *membership) error {
	if err := p.t.Put(membershipOfKey(user, p.t.org), nil); err != nil {
		return err
	}
	return p.saveMembership(user, m)
}

func usersEmail(text string) (string, error) {
	email, ok := contact.Email(text)
	if !ok {
		return "", errEmailInvalid
	}
	return email, nil
}

func usersName(text string) (string, error) {
	name := trimBlanks(text)
	if name == "" || utf8.RuneCountInString(name) > maxUserName || strings.ContainsFunc(name, forbidden) || strings.ContainsAny(name, "\n\t") {
		return "", errNameInvalid
	}
	return name, nil
}

// authority is the role of a member in the organization. A nil member is the operator, who
// has an owner's authority.
func (m *member) authority() role {
	if m == nil {
		return roleOwner
	}
	return m.role
}

func (m *member) is(user id) bool { return m != nil && m.user.ID == user }

// mayManage returns an error unless m may change a user's role from one to another; "" is no
// role. A nil m is the operator.
func (m *member) mayManage(user id, from, to role) error {
	return m.authority().mayManage(from, to, m.is(user))
}

// losesOwner returns last_owner if m is the organization's last active owner.
func (p *peopleTxn) losesOwner(m *teammate) error {
	if m.Role != roleOwner || !m.active() {
		return nil
	}
	team, err := p.team()
	if err == nil && !slices.ContainsFunc(team, func(o *teammate) bool { return o.ID != m.ID && o.Role == roleOwner && o.active() }) {
		err = errLastOwner
	}
	return err
}

// changeRole gives a member another role. It holds from the member's next request on.
func (p *peopleTxn) changeRole(by *member, user id, to role) error {
	m, err := p.teammate(user)
	if err != nil {
		return err
	}
	if !to.known() {
		return errRoleUnknown
	}
	if err := by.mayManage(user, m.Role, to); err != nil || m.Role == to {
		return err
	}
	if err := p.losesOwner(m); err != nil {
		return err
	}
	from := m.Role
	m.Role = to
	if _, err := p.dropLinksOf(user); err != nil {
		return err
	}
	if err := p.saveMembership(user, m.membership); err != nil {
		return err
	}
	return p.t.audit.note(auditUserChanged, user.String(), []change{{"role", from, to}})
}

// suspend shuts a member out of the organization, or lets it in again.
func (p *peopleTxn) suspend(by *member, user id, out bool) error {
	m, err := p.teammate(user)
	if err != nil {
		return err
	}
	if err := by.mayManage(user, m.Role, m.Role); err != nil || out == (m.membership.Disabled != 0) {
		return err
	}
	before := m.membership.Disabled
	if out {
		if err := p.losesOwner(m); err != nil {
			return err
		}
		m.membership.Disabled = p.t.now
		if _, err := p.dropLinksOf(user); err != nil {
			return err
		}
		if _, err := p.endSessions(user, p.t.org, nil); err != nil {
			return err
		}
	} else {
		m.membership.Disabled = 0
	}
	if err := p.saveMembership(user, m.membership); err != nil {
		return err
	}
	return p.t.audit.note(auditUserChanged, user.String(), []change{{"disabledAt", before, m.membership.Disabled}})
}

// removeMember ends a membership. The user stays, and what it did keeps its id.
func (p *peopleTxn) removeMember(by *member, user id) error {
	m, err := p.teammate(user)
	if err != nil {
		return err
	}
	if err := by.mayManage(user, m.Role, ""); err != nil {
		return err
	}
	if err := p.losesOwner(m); err != nil {
		return err
	}
	if _, err := p.endSessions(user, p.t.org, nil); err != nil {
		return err
	}
	if _, err := p.dropLinksOf(user); err != nil {
		return err
	}
	if err := p.t.keys.dropPurse(user); err != nil {
		return err
	}
	for _, k := range []key{membershipKey(p.t.org, user), membershipOfKey(user, p.t.org)} {
		if err := p.t.Delete(k); err != nil {
			return err
		}
	}
	return p.t.audit.note(auditUserRemoved, user.String(), []change{{"role", m.Role, nil}})
}

// disableUser shuts a user out of all organizations, or lets it in again. It is the
// operator's.
func (p *peopleTxn) disableUser(u *user, out bool) error {
	if out == (u.Disabled != 0) {
		return nil
	}
	before := u.Disabled
	if u.Disabled = 0; out {
		if err := p.each(u.ID, func(in *txn) error {
			m, err := in.people.teammate(u.ID)
			if err != nil {
				return err
			}
			if err := in.people.losesOwner(m); err != nil {
				return err
			}
			_, err = in.people.dropLinksOf(u.ID)
			return err
		}); err != nil {
			return err
		}
		if _, err := p.dropResets(u.ID); err != nil { // also if the user is in no organization
			return err
		}
		u.Disabled = p.t.now
		if _, err := p.endSessions(u.ID, 0, nil); err != nil {
			return err
		}
	}
	if err := p.saveUser(u); err != nil {
		return err
	}
	return p.noteEverywhere(u.ID, auditUserChanged, []change{{"disabledAt", before, u.Disabled}})
}

// setOperator makes a user an operator, or no longer. It is the operator's.
func (p *peopleTxn) setOperator(u *user, operator bool) error {
	if u.Operator == operator {
		return nil
	}
	if u.Operator = operator; operator {
		if _, err := p.dropResets(u.ID); err != nil { // the password opens more from now on
			return err
		}
	}
	if err := p.saveUser(u); err != nil {
		return err
	}
	return p.noteEverywhere(u.ID, auditUserChanged, []change{{"operator", !operator, operator}})
}

// sameUser reads a member's user again, which may have changed since the request began.
func (p *peopleTxn) sameUser(m *member) (*user, error) {
	u, err := userByID(p.t.Tx, m.user.ID)
	if err == nil && u == nil {
		err = errUserUnknown
	}
	return u, err
}

// An accountChange is what users change of themselves; nil leaves a field as it is.
type accountChange struct{ Name, Language, Theme *string }

func (p *peopleTxn) changeAccount(m *member, in accountChange) error {
	u, err := p.sameUser(m)
	if err != nil {
		return err
	}
	before := *u
	if in.Name != nil {
		name, err := usersName(*in.Name)
		if err != nil {
			return err
		}
		u.Name = name
	}
	if in.Language != nil {
		if u.Language = *in.Language; !slices.Contains([]string{"", "es", "en"}, u.Language) {
			return errLanguage
		}
	}
	if in.Theme != nil {
		if u.Theme = *in.Theme; !slices.Contains([]string{"", "light", "dark"}, u.Theme) {
			return errTheme
		}
	}
	var changes []change
	if before.Name != u.Name {
		changes = unsaid("name")
	}
	if before.Language != u.Language {
		changes = append(changes, change{"language", stated(before.Language), stated(u.Language)})
	}
	if before.Theme != u.Theme {
		changes = append(changes, change{"theme", stated(before.Theme), stated(u.Theme)})
	}
	if len(changes) == 0 {
		return nil
	}
	if err := p.saveUser(u); err != nil {
		return err
	}
	return p.noteEverywhere(u.ID, auditUserChanged, changes)
}

// setPassword gives a user another password, and ends all its sessions except the one with the
// hash keep; a nil keep ends all. more are other changes of the user, for the audit log.
func (p *peopleTxn) setPassword(u *user, h passwordHash, keep *[32]byte, more ...change) error {
	h.At = p.t.now
	u.Password, u.Locked = h, 0
	if _, err := p.dropResets(u.ID); err != nil {
		return err
	}
	if _, err := p.endSessions(u.ID, 0, keep); err != nil {
		return err
	}
	if err := p.saveUser(u); err != nil {
		return err
	}
	return p.noteEverywhere(u.ID, auditUserChanged, append(unsaid("password"), more...))
}

// homesOf returns the organizations that list the links for a user's password: the user's
// organizations, or the first one of the file for a user without any.
func homesOf(tx Tx, user id) ([]uint32, error) {
	orgs, err := organizationsOf(tx, user)
	if len(orgs) == 0 {
		orgs = []uint32{1}
	}
	return orgs, err
}

func (p *peopleTxn) each(user id, fn func(*txn) error) error {
	orgs, err := organizationsOf(p.t.Tx, user)
	if err != nil {
		return err
	}
	return p.eachIn(orgs, fn)
}

func (p *peopleTxn) eachIn(orgs []uint32, fn func(*txn) error) error {
	for _, org := range orgs {
		in := p.t
		if org != p.t.org {
			in = bareTxn(p.t.Tx, org, p.t.mint, p.t.by)
			in.requestID = p.t.requestID
		}
		if err := fn(in); err != nil {
			return err
		}
		if in != p.t {
			if err := in.commit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteEverywhere writes to the audit log of each organization of a user that something was done
// to the user.
func (p *peopleTxn) noteEverywhere(user id, action string, changes []change) error {
	return p.each(user, func(in *txn) error { return in.audit.note(action, user.String(), changes) })
}

// usersAfter returns up to most users with an e-mail after the given one, in the order of their
// e-mails.
func usersAfter(tx Tx, email string, most int) (list []*user, err error) {
	from := emailKey(email)
	if email == "" {
		from = newKey('N')
	}
	for e, err := range tx.Scan(from, newKey('N').after(), false) {
		if err != nil {
			return nil, err
		}
		if len(list) == most || len(e.Value) != len(id{}) {
			break
		}
		u, err := userByID(tx, id(e.Value))
		if err == nil && u == nil {
			err = unreadable(e.Key)
		}
		if err != nil {
			return nil, err
		}
		if u.Email != email {
			list = append(list, u)
		}
	}
	return list, nil
}

// auditShare is what a member may see of the audit log: its own entries, and the entries
// of keys if it manages keys. nil is all of it, as for an API key with the scope.
func (m *member) auditShare() []auditValue {
	if m == nil || m.role.may("audit:read") == grantAll {
		return nil
	}
	share := []auditValue{{auditActor, m.user.ID.String()}}
	for _, action := range auditActions {
		if strings.HasPrefix(action, "key.") && m.role.may("keys:manage") != grantNone {
			share = append(share, auditValue{auditAction, action})
		}
	}
	return share
}
