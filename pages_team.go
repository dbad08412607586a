package main

import "slices"

// The people of the organization.

func teamArea() panelArea {
	const one = "/panel/equipo/{userId}"
	team := func(*panelRequest, string) string { return "/panel/equipo" }
	back := func(v *panelRequest, _ string) string { return "/panel/equipo/" + v.r.PathValue("userId") }
	all := []panelForm{
		{path: "/panel/equipo/nuevo", from: "/panel/equipo/nuevo", members: []formMember{{name: "email"}, {name: "role"}}, handle: invitePerson, done: team, shown: linkPage},
		{path: "/panel/equipo/invitaciones/{invitationId}/retirar", from: "/panel/equipo", handle: uninvitePerson, done: team},
		{path: one + "/rol", from: one, members: []formMember{{name: "role"}}, handle: changePersonRole, done: back},
		{path: one + "/limite", from: one, members: []formMember{{name: "maxPointsPerDay", kind: amountMember}}, handle: limitPersonPoints, done: back},
		{path: one + "/inhabilitar", from: one, handle: suspendPerson(true), done: back},
		{path: one + "/habilitar", from: one, handle: suspendPerson(false), done: back},
		{path: one + "/sesiones", from: one, handle: endPersonSessions, done: back},
		{path: one + "/enlace", from: one, handle: resetPerson, done: back, shown: linkPage},
		{path: one + "/quitar", from: one, handle: removePerson, done: team},
	}
	all = append(all, panelForm{
		path: "/panel/equipo/segundo-factor", from: "/panel/equipo", members: []formMember{boxesMember("secondFactor")}, handle: editing(editSecondFactor), done: team,
		guard: func(*panelRequest, *txn) error { return panelFault(errOwnersAlone) },
	})
	for i := range all {
		all[i].need, all[i].proof = usersManage, true
	}
	return panelArea{[]panelPage{
		{"/panel/equipo", usersManage, "team", teamPage},
		{"/panel/equipo/nuevo", usersManage, "team-new", teamNewPage},
		{"/panel/equipo/{userId}", usersManage, "teammate", teammatePage},
	}, all}
}

// linkPage shows an invitation's link once. It has no address.
var linkPage = &panelPage{need: usersManage, template: "link"}

// memberNow is the member as the transaction sees it: the role may have changed since the request
// began.
func memberNow(t *txn, m *member) (*member, error) {
	now, err := membershipIn(t.Tx, t.org, m.user.ID)
	if err == nil && (now == nil || now.Disabled != 0) {
		err = errMayNotManage
	}
	if err != nil {
		return nil, err
	}
	again := *m
	again.role = now.Role
	return &again, nil
}

// managing is an action on the person of the path.
func managing(r *request, fn func(t *txn, by *member, person id) error) action {
	return doing(func(t *txn) error {
		by, err := memberNow(t, r.user)
		if err != nil {
			return err
		}
		return fn(t, by, r.pathID("userId"))
	})
}

// A linkView is a link that is shown once.
type linkView struct {
	Link    string
	Email   string
	Expires instant
	Back    string
}

// MarshalJSON keeps the link out of the kept answer.
func (linkView) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

// linking is an action that shows a link. The page adds the panel's address.
func linking(r *request, fn func(t *txn, by *member) (email, token string, i *invitation, err error)) action {
	return func(t *txn) (any, error) {
		by, err := memberNow(t, r.user)
		if err != nil {
			return nil, panelFault(err)
		}
		email, token, i, err := fn(t, by)
		if err != nil {
			return nil, panelFault(err)
		}
		return linkView{Link: token, Email: email, Expires: i.Expires}, nil
	}
}

func invitePerson(r *request) action {
	email, _ := r.fields.rawText("email") // invite checks it
	to, _ := r.fields.text("role", 20)
	return linking(r, func(t *txn, by *member) (string, string, *invitation, error) {
		i, token, err := t.people.invite(by, email, role(to))
		if err != nil {
			return "", "", nil, err
		}
		return i.Email, token, i, nil
	})
}

func resetPerson(r *request) action {
	return linking(r, func(t *txn, by *member) (string, string, *invitation, error) {
		i, token, err := t.people.resetLink(by, r.pathID("userId"))
		if err != nil {
			return "", "", nil, err
		}
		m, err := t.people.teammate(r.pathID("userId"))
		if err != nil {
			return "", "", nil, err
		}
		return m.Email, token, i, nil
	})
}

func uninvitePerson(r *request) action {
	return managing(r, func(t *txn, by *member, _ id) error { return t.people.uninvite(by, r.pathID("invitationId")) })
}

func changePersonRole(r *request) action {
	to, _ := r.fields.text("role", 20)
	return managing(r, func(t *txn, by *member, person id) error { return t.people.changeRole(by, person, role(to)) })
}

func limitPersonPoints(r *request) action {
	perDay := r.pointsLimit("maxPointsPerDay")
	return managing(r, func(t *txn, by *member, person id) error { return t.keys.limitPoints(by, person, perDay) })
}

func suspendPerson(out bool) func(*request) action {
	return func(r *request) action {
		return managing(r, func(t *txn, by *member, person id) error { return t.people.suspend(by, person, out) })
	}
}

func endPersonSessions(r *request) action {
	return managing(r, func(t *txn, by *member, person id) error { _, err := t.people.endSessionsOf(by, person); return err })
}

func removePerson(r *request) action {
	return managing(r, func(t *txn, by *member, person id) error { return t.people.removeMember(by, person) })
}

// editSecondFactor lays the roles that need a second factor over a document.
func editSecondFactor(_ *txn, _ *request, tree, fields docTree) (docPlace, error) {
	settings := tree["organization"].(docTree)["settings"].(docTree)
	if roles := fields["secondFactor"]; roles != nil {
		settings["secondFactor"] = roles
	} else {
		delete(settings, "secondFactor")
	}
	return docPlace{path: "organization.settings"}, nil
}

// A teamView is the list of people.
type teamView struct {
	SecondFactor []role // that need one
	Owner        bool   // the member may change that
	Stamp        string // of the configuration, which says so

	People []teamRow
	Links  []linkRow
	Keys   []keyRow // active ones that somebody made who has left
}

// keysLeft are the active API keys that were made in the panel by who is no member any more.
func keysLeft(t *txn) (left []keyRow, err error) {
	all, err := t.keys.list()
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if !k.state(t.now).live() {
			continue
		}
		row, err := newKeyRow(t, k)
		if err != nil {
			return nil, err
		}
		if row.By == nil || row.By.Type != byUser || row.By.ID == nil {
			continue
		}
		m, err := membershipIn(t.Tx, t.org, *row.By.ID)
		if err != nil {
			return nil, err
		}
		if m == nil {
			left = append(left, row)
		}
	}
	return left, nil
}

// A linkRow is an open link: into the organization, or to another password.
type linkRow struct {
	*invitation
	Email string // of whoever is to use it
	Role  role   // that it leads to; of a password, the person's
	Reset bool   // to another password
	By    *createdBy
	Touch bool // the member may take it back
}

func (v *panelRequest) linkRow(t *txn, i *invitation) (row linkRow, err error) {
	row = linkRow{invitation: i, Email: i.Email, Role: i.Role, Reset: i.Kind == invitationReset}
	from := role("")
	if row.Reset {
		u, err := userByID(t.Tx, i.User)
		if err != nil || u == nil {
			return row, err
		}
		m, err := membershipIn(t.Tx, t.org, i.User)
		if err != nil || m == nil {
			return row, err
		}
		row.Email, row.Role, from = u.Email, m.Role, m.Role
	}
	row.Touch = v.member.mayManage(id{}, from, row.Role) == nil
	row.By, err = newCreatedBy(t, i.By)
	return row, err
}

// A teamRow is a person in the list.
type teamRow struct {
	ID          id
	Name, Email string
	Role        role
	Factor      bool
	Out         bool // may not come in
	LoggedInAt  instant
	Touch       bool // the member may change it
	Self        bool
	Sessions    int
}

func (v *panelRequest) teamRow(t *txn, m *teammate) (teamRow, error) {
	row := teamRow{ID: m.ID, Name: m.Name, Email: m.Email, Role: m.Role, Out: !m.active(), LoggedInAt: m.LoggedInAt, Self: v.member.is(m.ID)}
	row.Touch = v.member.mayManage(m.ID, m.Role, m.Role) == nil
	f, err := factorOf(t.Tx, m.ID)
	if err != nil {
		return row, err
	}
	row.Factor = f != nil
	open, err := sessionsOf(t.Tx, m.ID, t.now, v.panel.sessionLimits)
	for _, s := range open {
		if s.Org == t.org {
			row.Sessions++
		}
	}
	return row, err
}

func teamPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &teamView{Owner: v.member.role == roleOwner}
	return view, func(t *txn) (err error) {
		view.SecondFactor = t.cfg.Organization.Settings.SecondFactor
		if view.Stamp, err = stampOf(t.cfg); err != nil {
			return err
		}
		team, err := t.people.team()
		if err != nil {
			return err
		}
		for _, m := range team {
			row, err := v.teamRow(t, m)
			if err != nil {
				return err
			}
			view.People = append(view.People, row)
		}
		open, err := t.people.invitations()
		if err != nil {
			return err
		}
		for _, i := range open {
			row, err := v.linkRow(t, i.invitation)
			if err != nil {
				return err
			}
			if row.Role != "" { // else of who is in no organization
				view.Links = append(view.Links, row)
			}
		}
		if v.may("keys:manage") {
			view.Keys, err = keysLeft(t)
		}
		return err
	}
}

// A teamNewView is the form of an invitation.
type teamNewView struct{ Roles []role }

func teamNewPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needProof(); !ok {
		return to, nil
	}
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	return &teamNewView{v.rolesToGive("")}, nil
}

// rolesToGive are the roles that the member may give to somebody with a role.
func (v *panelRequest) rolesToGive(from role) []role {
	return slices.DeleteFunc(slices.Clone(roles), func(r role) bool { return v.member.role.mayManage(from, r, false) != nil })
}

// A teammateView is one person.
type teammateView struct {
	teamRow
	Since           instant
	By              *createdBy
	Roles           []role
	Gives           bool     // its role may give points by hand
	MaxPointsPerDay *decimal // nil: any number
	GivenToday      decimal
}

func teammatePage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needProof(); !ok {
		return to, nil
	}
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	person, _ := parseID(v.r.PathValue("userId"))
	view := &teammateView{}
	return view, func(t *txn) error {
		m, err := t.people.teammate(person)
		if err != nil {
			return panelFault(err)
		}
		if view.teamRow, err = v.teamRow(t, m); err != nil {
			return err
		}
		view.Since, view.Roles = m.Since, v.rolesToGive(m.Role)
		if view.Gives = m.Role.may("points:write") != grantNone; m.MaxPointsPerDay != 0 {
			view.MaxPointsPerDay = &m.MaxPointsPerDay
		}
		if view.GivenToday, err = t.keys.givenToday(person); err != nil {
			return err
		}
		view.By, err = newCreatedBy(t, m.By)
		return err
	}
}

func (v *teammateView) title(*pageData) string { return v.Name }

// RoleChoices are the roles to choose from.
func (f prose) RoleChoices(list []role) (items []choiceItem) {
	for _, r := range list {
		items = append(items, choiceItem{string(r), f.T("role." + string(r))})
	}
	return items
}

// RoleBoxes are boxes of all roles, those of a list checked.
func (f *pageData) RoleBoxes(name string, list []role) []boxView {
	var values []string
	for _, r := range list {
		values = append(values, string(r))
	}
	return f.Boxes(name, f.RoleChoices(roles), values)
}

// FullLink is the link of an invitation, with the panel's address.
func (f *pageData) FullLink(token string) string {
	address := f.request.panel.address.origin()
	if address == "" { // this machine's, as the browser has it
		address = "http://" + f.request.r.Host
	}
	return invitationLink(address, token)
}
