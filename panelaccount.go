package main

import (
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"sello/internal/qr"
	"sello/internal/totp"
)

// What a member sees and changes of itself: account, password, second factor and sessions.

func accountArea() panelArea {
	account := func(*panelRequest, string) string { return "/panel/cuenta" }
	sessions := func(*panelRequest, string) string { return "/panel/cuenta/sesiones" }
	return panelArea{[]panelPage{
		{"/panel/cuenta", anyone, "account", accountPage},
		{factorPath, anyone, "factor", factorPage},
		{"/panel/cuenta/sesiones", anyone, "sessions", sessionsPage},
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

// noAnswer is the answer of an action that has none.
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

// An accountView is the member's account.
type accountView struct {
	Email                 string
	Name, Language, Theme string
	Factor                bool
	Recovery              int // codes that are left
	Sessions              int
	PIN                   bool
}

func accountPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
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

// A factorView is the page of the second factor.
type factorView struct {
	There    bool
	Required bool // nothing else can be opened without
	Recovery int
	InFours  string // the secret of a new one
	Link     string // that an app opens
}

func factorPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needProof(); !ok {
		return to, nil
	}
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
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

// A recoveryView is recovery codes, which are shown once.
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

// A sessionsView lists the member's sessions.
type sessionsView struct{ Sessions []sessionRow }

type sessionRow struct {
	*openSession
	Here bool // the one that looks
}

func sessionsPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
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
func (f *pageData) QR(link string) template.HTML { return qrPicture(link, f.T("factor.qr")) }

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

// Languages are the choices of the account.
func (f *pageData) Languages() []choiceItem {
	return []choiceItem{{"", f.T("account.language.shop")}, {"es", "Español"}, {"en", "English"}}
}

// qrPicture returns a QR code; "" if the text is too long for one. It fits into a card on a
// screen 320 pixels wide.
func qrPicture(text, label string) template.HTML {
	code, ok := qr.Encode([]byte(text))
	if !ok {
		return ""
	}
	return template.HTML(code.SVG(label, 250))
}
