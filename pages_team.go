package main

import (
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"sello/internal/totp"
)

// The people of the organization, and what each sees and changes of their own account: password,
// second factor, sessions.

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
		{"/panel/equipo", usersManage, "team", withForms(teamPage)},
		{"/panel/equipo/nuevo", usersManage, "team-new", withProof(teamNewPage)},
		{"/panel/equipo/{userId}", usersManage, "teammate", withProof(teammatePage)},
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

func editSecondFactor(_ *txn, _ *request, tree, fields docTree) (docPlace, error) {
	settings := tree["organization"].(docTree)["settings"].(docTree)
	if roles := fields["secondFactor"]; roles != nil {
		settings["secondFactor"] = roles
	} else {
		delete(settings, "secondFactor")
	}
	return docPlace{path: "organization.settings"}, nil
}

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

func newLinkRow(t *txn, by *member, i *invitation) (row linkRow, err error) {
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
	row.Touch = by.mayManage(id{}, from, row.Role) == nil
	row.By, err = newCreatedBy(t, i.By)
	return row, err
}

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

func newTeamRow(v *panelRequest, t *txn, m *teammate) (teamRow, error) {
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
			row, err := newTeamRow(v, t, m)
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
			row, err := newLinkRow(t, v.member, i.invitation)
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

type teamNewView struct{ Roles []role }

func teamNewPage(v *panelRequest) (any, fillFunc) {
	return &teamNewView{rolesToGive(v.member.role, "")}, nil
}

// rolesToGive are the roles that a member with one of its own may give to somebody with a role.
func rolesToGive(own, from role) []role {
	return slices.DeleteFunc(slices.Clone(roles), func(r role) bool { return own.mayManage(from, r, false) != nil })
}

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
	person, _ := parseID(v.r.PathValue("userId"))
	view := &teammateView{}
	return view, func(t *txn) error {
		m, err := t.people.teammate(person)
		if err != nil {
			return panelFault(err)
		}
		if view.teamRow, err = newTeamRow(v, t, m); err != nil {
			return err
		}
		view.Since, view.Roles = m.Since, rolesToGive(v.member.role, m.Role)
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

// RoleBoxes are boxes of all roles. The roles of a list are checked.
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

// What a member sees and changes of itself: account, password, second factor and sessions.

func accountArea() panelArea {
	account := func(*panelRequest, string) string { return "/panel/cuenta" }
	sessions := func(*panelRequest, string) string { return "/panel/cuenta/sesiones" }
	return panelArea{[]panelPage{
		{"/panel/cuenta", anyone, "account", withForms(accountPage)},
		{factorPath, anyone, "factor", withProof(factorPage)},
		{"/panel/cuenta/sesiones", anyone, "sessions", withForms(sessionsPage)},
	}, []panelForm{
		{path: "/panel/cuenta", need: anyone, from: "/panel/cuenta", members: []formMember{{name: "name"}, {name: "language"}, {name: "theme"}},
			handle: changeAccount, done: account},
		{path: "/panel/cuenta/clave", need: anyone, from: "/panel/cuenta", run: runPassword},
		{path: factorPath, need: anyone, from: factorPath, members: []formMember{{name: "secret", kind: madeMember, make: secretMember}, {name: "factorCode"}},
			proof: true, handle: addFactor, done: account, shown: recoveryPage},
		{path: factorPath + "/codigos", need: anyone, from: factorPath, proof: true, run: runRenewRecovery},
		{path: factorPath + "/quitar", need: anyone, from: factorPath, proof: true, run: runDropFactor},
		{path: "/panel/cuenta/sesiones/terminar", need: anyone, from: "/panel/cuenta/sesiones", members: []formMember{{name: "session"}}, handle: endSessions, done: sessions},
	}}
}

// recoveryPage shows recovery codes once. It has no address.
var recoveryPage = &panelPage{need: anyone, template: "recovery"}

type noAnswer struct{}

// doing is an action of people that has no answer.
func doing(fn func(*txn) error) action {
	return func(t *txn) (any, error) { return reply{http.StatusOK, noAnswer{}}, panelFault(fn(t)) }
}

func changeAccount(r *request) action {
	name, _ := r.fields.text("name", maxUserName+1)
	language, _ := r.fields.text("language", 10)
	theme, _ := r.fields.text("theme", 10)
	return doing(func(t *txn) error { return t.people.changeAccount(r.user, accountChange{&name, &language, &theme}) })
}

type accountView struct {
	Email                 string
	Name, Language, Theme string
	Factor                bool
	Recovery              int // codes that are left
	Sessions              int
	PIN                   bool
}

func accountPage(v *panelRequest) (any, fillFunc) {
	u := v.member.user
	view := &accountView{Email: u.Email, Name: u.Name, Language: u.Language, Theme: u.Theme, PIN: v.member.session.hasPIN()}
	return view, func(t *txn) error {
		f, err := factorOf(t.Tx, u.ID)
		if err != nil {
			return err
		}
		if f != nil {
			view.Factor, view.Recovery = true, len(f.Recovery)
		}
		open, err := sessionsOf(t.Tx, u.ID, t.now, v.panel.sessionLimits)
		if err != nil {
			return err
		}
		view.Sessions = len(open)
		return nil
	}
}

func runPassword(v *panelRequest) error {
	from := v.arrival()
	token, err := v.api.logins.changePassword(v.context(), v.member, v.typedText("old"), v.typedText("password"), v.auditID(), &from, v.request.now)
	if err != nil {
		return v.toldOwn(err, "old")
	}
	v.setCookie(v.panel.address.cookie(token))
	return v.redirect("/panel/cuenta")
}

type factorView struct {
	There    bool
	Required bool // nothing else can be opened without
	Recovery int
	InFours  string // the secret of a new one
	Link     string // that an app opens
}

func factorPage(v *panelRequest) (any, fillFunc) {
	view := &factorView{Required: v.member.lacksFactor}
	return view, func(t *txn) error {
		f, err := factorOf(t.Tx, v.member.user.ID)
		switch {
		case err != nil:
			return err
		case f != nil:
			view.There, view.Recovery = true, len(f.Recovery)
		default:
			secret := offeredSecret(v.member, v.token)
			view.InFours, view.Link = totp.InFours(secret), totp.Link("sello", v.member.user.Email, secret)
		}
		return nil
	}
}

type recoveryView struct{ Codes []string }

// MarshalJSON keeps the codes out of the kept answer.
func (recoveryView) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

// secretMember is the secret that the form's page offered.
func secretMember(v *panelRequest, _ string) string {
	return string(appendJSONString(nil, offeredSecret(v.member, v.token)))
}

func addFactor(r *request) action {
	secret, _ := r.fields.text("secret", 100)
	code, _ := r.fields.text("factorCode", 100)
	return func(t *txn) (any, error) {
		codes, err := t.people.addFactor(r.user, secret, code)
		return recoveryView{codes}, panelFault(err)
	}
}

func runRenewRecovery(v *panelRequest) error {
	from := v.arrival()
	codes, err := v.api.logins.renewRecovery(v.context(), v.member, v.typedText("factorCode"), v.auditID(), &from, v.request.now)
	if err != nil {
		return v.told(err)
	}
	v.page = recoveryPage
	return v.render(recoveryPage.template, recoveryView{codes})
}

func runDropFactor(v *panelRequest) error {
	in := &factorDropped{arrival: v.arrival(), Code: v.typedText("dropCode"), Old: v.typedText("old"), Password: v.typedText("password"), RequestID: v.auditID()}
	token, err := v.api.logins.dropFactor(v.context(), v.member, in, v.request.now)
	if errors.Is(err, errCodeWrong) { // the page has two forms with a code
		v.faults = append(v.faults, publicError(panelFault(err)).on("dropCode"))
		return v.refused()
	}
	if err != nil {
		return v.toldOwn(err, "old")
	}
	if token != "" {
		v.setCookie(v.panel.address.cookie(token))
	}
	return v.redirect("/panel/cuenta")
}

type sessionsView struct{ Sessions []sessionRow }

type sessionRow struct {
	*openSession
	Here bool // the one that looks
}

func sessionsPage(v *panelRequest) (any, fillFunc) {
	view := &sessionsView{}
	return view, func(t *txn) error {
		open, err := sessionsOf(t.Tx, v.member.user.ID, t.now, v.panel.sessionLimits)
		for _, s := range open {
			view.Sessions = append(view.Sessions, sessionRow{s, s.hash == v.member.hash})
		}
		return err
	}
}

func endSessions(r *request) action {
	handle, _ := r.fields.text("session", handleLength)
	return doing(func(t *txn) error { _, err := t.people.endOthers(r.user, handle); return err })
}

// Autofilled is the control of what browsers fill in for people, by what it is to them.
func (f *pageData) Autofilled(name, label, kind, as string, focus bool, value ...string) control {
	c := f.Field(name, label, kind, value...)
	if c.Auto, c.Required = as, true; focus {
		c = f.Focused(c)
	}
	if as == "one-time-code" { // another one has to be typed
		c.Value = ""
	}
	return c
}

// Optional is a control that may stay empty.
func (f *pageData) Optional(c control) control {
	c.Required = false
	return c
}

// QR is a link that opens an app for codes, as a QR code; "" if it is too long, as with an e-mail of 140 bytes.
func (f *pageData) QR(link string) template.HTML { return qrPicture(link, f.T("factor.qr"), panelQR) }

// browsers are what a User-Agent says, the more particular first.
var browsers = [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}}
var systems = [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}

// Browser is a User-Agent in words.
func (f *pageData) Browser(agent string) string {
	var parts []string
	for _, list := range [][][2]string{browsers, systems} {
		if i := slices.IndexFunc(list, func(p [2]string) bool { return strings.Contains(agent, p[0]) }); i >= 0 {
			parts = append(parts, list[i][1])
		}
	}
	if len(parts) == 0 {
		return f.T("sessions.unknown")
	}
	return strings.Join(parts, ", ")
}

func (f *pageData) Languages() []choiceItem {
	return []choiceItem{{"", f.T("account.language.shop")}, {"es", "Español"}, {"en", "English"}}
}
