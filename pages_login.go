package main

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Logging in and out, what an invitation leads to, the password once more, and the till's lock.

const invitationPath = "/panel/invitacion/{token}"

func logInArea() panelArea {
	return panelArea{[]panelPage{
		{"/panel/entrar", everyone, "login", logInPage},
		{"/panel/entrar/codigo", everyone, "login-code", logInCodePage},
		{invitationPath, everyone, "invitation", invitationPage},
		{provePath, anyone, "prove", provePage},
	}, []panelForm{
		{path: "/panel/entrar", need: everyone, from: "/panel/entrar", run: runLogIn},
		{path: "/panel/entrar/codigo", need: everyone, from: "/panel/entrar/codigo", run: runLogInCode},
		{path: invitationPath, need: everyone, from: invitationPath, run: runInvitation},
		{path: provePath, need: anyone, from: provePath, most: mostCarried, run: runProve},
		{path: "/panel/organizacion", need: anyone, from: "/panel/cuenta", run: runEnter},
		{path: outPath, need: anyone, from: "/panel/cuenta", run: runLogOut},
	}}
}

// panelFault returns an error of people as pages tell it.
func panelFault(err error) error {
	if wait, ok := errors.AsType[*waitError](err); ok {
		seconds := int64((wait.wait + time.Second - 1) / time.Second)
		return (&apiError{code: codeTooManyTries}).with("seconds", decimalOf(int(seconds))).header("Retry-After", strconv.FormatInt(seconds, 10))
	}
	if e, ok := errors.AsType[*peopleError](err); ok {
		status := http.StatusBadRequest
		switch e {
		case errMayNotManage, errOwnersAlone, errOwnRole, errOwnLimit, errOwnReset, errElsewhere:
			status = http.StatusForbidden
		case errNotMember, errInvitationUnknown:
			status = http.StatusNotFound
		case errLastOwner, errFactorThere, errFactorNone, errPINThere, errInvitationSpent, errInvitationOld:
			status = http.StatusConflict
		case errLocked:
			status = http.StatusTooManyRequests
		case errLoggedOut:
			return newError(codeLogInRequired)
		}
		return &apiError{code: errorCode{"people." + e.name, status, e.message}, message: e.message, field: e.field}
	}
	return err
}

// told shows the page of a form again, with an error of people.
func (v *panelRequest) told(err error) error {
	v.faults = append(v.faults, publicError(panelFault(err)))
	return v.refused()
}

// toldOwn is told for a form with the member's own password in a field.
func (v *panelRequest) toldOwn(err error, field string) error {
	if errors.Is(err, errLogInFailed) {
		err = newError(codePasswordWrong).on(field)
	}
	return v.told(err)
}

func (v *panelRequest) arrival() arrival {
	from := arrival{Source: sourceAddress(v.r, v.api.trusted), Agent: v.r.UserAgent(), Session: v.panel.address.sentToken(v.r)}
	if c, err := v.r.Cookie(v.panel.address.deviceName()); err == nil {
		from.Device = c.Value
	}
	return from
}

// letIn gives the browser the tokens of a session and of the device.
func (v *panelRequest) letIn(in *loggedIn) {
	v.setCookie(v.panel.address.cookie(in.Token))
	if in.Device != "" {
		v.setCookie(v.panel.address.deviceCookie(in.Device))
	}
	v.r = v.r.Clone(v.r.Context()) // what goes on is sent in the new session
	v.r.Header.Del("Cookie")
	v.r.AddCookie(v.panel.address.cookie(in.Token))
}

func (v *panelRequest) setCookie(c *http.Cookie) {
	v.Header()["Set-Cookie"] = append(v.Header()["Set-Cookie"], c.String())
}

// deviceName is the name of the cookie by which a device is known.
func (a panelAddress) deviceName() string { return a.cookieName() + "-device" }

func (a panelAddress) deviceCookie(token string) *http.Cookie {
	c := a.cookie(token)
	c.Name, c.MaxAge = a.deviceName(), int(deviceLife/time.Second)
	return c
}

// placeAfter is the page of the panel that a text names, for after a log-in. What is no page
// is the first one. The text is never used as it is.
func (p *panel) placeAfter(text string) string {
	u, err := url.ParseRequestURI(text)
	if err != nil || u.Scheme != "" || u.Host != "" || path.Clean(u.Path) != u.Path {
		return "/panel"
	}
	_, pattern := p.mux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: u.Path, RawPath: u.RawPath}})
	page := p.pages[strings.TrimPrefix(pattern, "GET ")]
	if page == nil || page.need == everyone && page.path != invitationPath || page.path == provePath {
		return "/panel"
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.Query().Encode()}).RequestURI()
}

func logInPage(v *panelRequest) (any, fillFunc) {
	if v.member != nil {
		return redirection{"/panel"}, nil
	}
	page := &logInView{To: v.r.URL.Query().Get("ir"), Ended: v.panel.address.sentToken(v.r) != ""}
	if v.posted != nil {
		page.To, page.Kept = v.typedText("ir"), v.keptForm()
	}
	somebody, err := viewStore(v.context(), v.api.engine.store, hasUsers)
	if page.Nobody = !somebody; page.Nobody && err == nil {
		page.Commands, err = v.firstCommands()
	}
	if err != nil {
		v.faults = append(v.faults, publicError(err))
	}
	return page, nil
}

// mostCommands bounds the commands that the page of nobody shows.
const mostCommands = 5

// firstCommands are the commands that let the first person in, as they can be pasted: of the
// only organization, or of each of several. Without an organization there is none yet.
func (v *panelRequest) firstCommands() (list []string, err error) {
	slugs, err := viewStore(v.context(), v.api.engine.store, organizationSlugs)
	for _, slug := range slugs[:min(len(slugs), mostCommands)] {
		of := ""
		if len(slugs) > 1 {
			of = " -org " + slug
		}
		list = append(list, "sello user invite"+of+" -email ana@ejemplo.mx -role owner")
	}
	return list, err
}

func runLogIn(v *panelRequest) error {
	in := &logIn{arrival: v.arrival(), Email: v.typedText("email"), Password: v.typedText("password"), RequestID: v.auditID()}
	done, err := v.api.logins.logIn(v.context(), in, v.request.now)
	if err != nil {
		return v.told(err)
	}
	v.letIn(done)
	if kept := v.keptForm(); done.Half && kept != nil {
		return v.render("login-code", &logInView{Kept: kept})
	}
	if done.Half {
		return v.redirect(withQuery("/panel/entrar/codigo", []pair{{"ir", v.panel.placeAfter(v.typedText("ir"))}}))
	}
	return v.goOn()
}

// goOn leads to where the member was going before the log-in.
func (v *panelRequest) goOn() error {
	if kept := v.keptForm(); kept != nil {
		return v.sendKept(kept)
	}
	return v.redirect(v.panel.placeAfter(v.typedText("ir")))
}

func logInCodePage(v *panelRequest) (any, fillFunc) {
	if v.member != nil {
		return redirection{"/panel"}, nil
	}
	if v.panel.address.sentToken(v.r) == "" {
		return redirection{"/panel/entrar"}, nil
	}
	view := &logInView{To: v.r.URL.Query().Get("ir")}
	if v.posted != nil {
		view.To, view.Kept = v.typedText("ir"), v.keptForm()
	}
	return view, nil
}

func runLogInCode(v *panelRequest) error {
	if v.member != nil {
		return v.redirect("/panel")
	}
	in := &codeGiven{arrival: v.arrival(), Half: v.panel.address.sentToken(v.r), Code: v.typedText("factorCode"), RequestID: v.auditID()}
	done, err := v.api.logins.logInCode(v.context(), in, v.request.now)
	switch {
	case errors.Is(err, errLoggedOut):
		return v.redirect("/panel/entrar")
	case err != nil:
		return v.told(err)
	}
	v.letIn(done)
	return v.goOn()
}

func runLogOut(v *panelRequest) error {
	err := v.change(func(t *txn) error { return t.people.logOut(v.member) })
	if err != nil {
		return err
	}
	v.setCookie(v.panel.address.cookie(""))
	return v.redirect("/panel")
}

// runEnter puts the session into another of the member's organizations.
func runEnter(v *panelRequest) error {
	e := v.api.engine
	org, err := viewStore(v.context(), e.store, func(tx Tx) (uint32, error) {
		org, err := organizationNumber(tx, v.typedText("organization"))
		if err != nil {
			return 0, err
		}
		orgs, err := organizationsOf(tx, v.member.user.ID)
		if err == nil && !slices.Contains(orgs, org) {
			err = errNotMember
		}
		return org, err
	})
	if err == nil {
		err = v.enter(org)
	}
	if err != nil {
		return v.told(err)
	}
	return v.redirect("/panel")
}

// enter puts the session into an organization, which the member is one of.
func (v *panelRequest) enter(org uint32) error {
	_, err := write(v.context(), v.api.engine, org, v.request.now, func(t *txn) (any, error) {
		t.by, t.requestID = creator{Type: byUser, ID: v.member.user.ID}, v.auditID()
		return nil, t.people.enter(v.member, v.panel.sessionLimits)
	})
	return err
}

// An invitationView is what an invitation leads to. It does not tell whether the address has an
// account: whoever made the invitation has the link too.
type invitationView struct {
	Token   string
	Reset   bool // to a new password
	Entry   bool // to a session
	Email   string
	Role    role
	Inviter string // "" if a command made it
	Shop    string // the organization's name
}

func invitationPage(v *panelRequest) (any, fillFunc) {
	token := v.r.PathValue("token")
	a, err := v.api.logins.lookAt(v.context(), token, v.request.now)
	if err != nil {
		if len(v.faults) == 0 {
			v.faults = append(v.faults, publicError(panelFault(err)))
			v.status = v.faults[0].code.status
		}
		return &invitationView{}, nil
	}
	shown := &invitationView{Token: token, Reset: a.Kind == invitationReset, Entry: a.Kind == invitationEntry, Email: a.Email, Role: a.Role}
	if a.Kind != invitationJoin {
		shown.Email = a.user.Email
	}
	_, err = read(v.context(), v.api.engine, a.Org, v.request.now, func(t *txn) (any, error) {
		shown.Shop = t.cfg.Organization.Name
		if a.By.Type != byUser {
			return nil, nil
		}
		var err error
		shown.Inviter, err = t.people.nameOf(a.By.ID)
		return nil, err
	})
	if err != nil {
		v.faults = append(v.faults, publicError(err))
	}
	return shown, nil
}

func runInvitation(v *panelRequest) error {
	in := &acceptance{
		arrival: v.arrival(), Token: v.r.PathValue("token"), Name: v.typedText("name"), Password: v.typedText("password"), RequestID: v.auditID(),
	}
	done, err := v.api.logins.accept(v.context(), in, v.request.now)
	if err != nil {
		return v.told(err)
	}
	if done.Token == "" && v.member != nil && v.member.user.ID == done.User {
		err := v.enter(done.Org)
		if err == nil {
			return v.redirect("/panel")
		}
		if !errors.Is(err, errLoggedOut) { // as a new password does
			return err
		}
	}
	if done.Token == "" {
		return v.redirect("/panel/entrar")
	}
	v.letIn(done)
	if done.Half {
		return v.redirect("/panel/entrar/codigo")
	}
	return v.redirect("/panel")
}

func provePage(v *panelRequest) (any, fillFunc) {
	if v.posted != nil {
		return &proveView{To: v.panel.placeAfter(v.typedText("ir")), Kept: v.keptForm()}, nil
	}
	view := &proveView{To: v.panel.placeAfter(v.param("ir"))}
	if v.member.hasProved(v.request.now) {
		return redirection{view.To}, nil
	}
	return view, nil
}

func runProve(v *panelRequest) error {
	from := v.arrival()
	if err := v.api.logins.reprove(v.context(), v.member, v.typedText("password"), v.auditID(), &from, v.request.now); err != nil {
		return v.toldOwn(err, "password")
	}
	return v.goOn()
}

var codePasswordWrong = errorCode{"password_wrong", http.StatusBadRequest, ""}

// The lock of the till. A locked session gets one page, whatever it asks for: who it is of, and
// a field for the PIN. That page keeps where the member was going, or the form that was sent.

func lockArea() panelArea {
	return panelArea{[]panelPage{
		{pinPath, "till", "pin", pinPage},
		{unlockPath, anyone, "lock", lockPage},
	}, []panelForm{
		{path: pinPath, need: "till", from: pinPath, run: runPIN},
		{path: pinPath + "/quitar", need: "till", from: pinPath, run: runDropPIN},
		{path: lockPath, need: "till", from: pinPath, run: runLock},
		{path: unlockPath, need: anyone, from: unlockPath, most: mostCarried, run: runUnlock},
	}}
}

func lockPage(v *panelRequest) (any, fillFunc) {
	switch {
	case !v.member.locked:
		return redirection{v.panel.placeAfter(v.param("ir"))}, nil
	case v.posted != nil:
		return &lockView{To: v.typedText("ir"), Kept: v.keptForm()}, nil
	}
	return &lockView{To: v.param("ir")}, nil
}

// runLock locks the session, which goes on at the till. Without a PIN it asks for one first.
func runLock(v *panelRequest) error {
	if !v.member.session.hasPIN() {
		return v.redirect(withQuery(pinPath, []pair{{lockField, "1"}}))
	}
	if err := v.change(func(t *txn) error { return t.people.lock(v.member, v.panel.sessionLimits) }); err != nil {
		return err
	}
	return v.redirect("/panel/caja")
}

func runUnlock(v *panelRequest) error {
	if !v.member.locked { // another tab did
		return v.goOn()
	}
	got, err := v.tryPIN("pin", func(t *txn, s *session) error { return t.people.unlock(s) })
	if err != nil || got != pinRight {
		return err
	}
	v.member.locked = false
	return v.goOn()
}

// tryPIN tries the PIN in a field, and answers unless it is right. then changes the session.
func (v *panelRequest) tryPIN(field string, then func(*txn, *session) error) (got pinTry, err error) {
	m := v.member
	right, err := m.session.PIN.matches(strings.TrimSpace(v.typedText(field)))
	if err != nil {
		return got, err
	}
	err = v.change(func(t *txn) (err error) {
		got, err = t.people.tryPIN(m, v.panel.sessionLimits, right, func(s *session) error { return then(t, s) })
		return err
	})
	if err != nil || got == pinRight {
		return got, err
	}
	v.api.logins.noteRefused(&claim{user: m.user})
	if got == pinEnded {
		return got, v.endHere()
	}
	v.faults = append(v.faults, publicError(panelFault(errPINWrong)).on(field))
	return got, v.refused()
}

// endHere shows the page for logging in, as the session has ended. What the lock's page kept
// goes on with it, unless it is more than somebody who is not logged in may send.
func (v *panelRequest) endHere() error {
	view := &logInView{Ended: true, To: v.panel.placeAfter(v.typedText("ir")), Kept: v.keptForm()}
	if v.r.ContentLength > maxForm {
		view.Kept, view.Lost = nil, true
	}
	v.member, v.cfg, v.shops = nil, nil, nil
	v.setCookie(v.panel.address.cookie(""))
	if !v.showFirst(codeLogInRequired, "login", view) {
		return newError(codeLogInRequired)
	}
	return nil
}

type pinView struct {
	There bool
	Lock  bool // the session locks at once
}

// lockField says that the session locks as soon as it has a PIN.
const lockField = "bloquear"

func pinPage(v *panelRequest) (any, fillFunc) {
	view := &pinView{v.member.session.hasPIN(), v.param(lockField) != ""}
	if v.posted != nil {
		view.Lock = v.typedText(lockField) != ""
	}
	return view, nil
}

func runPIN(v *panelRequest) error {
	pin, lock := strings.TrimSpace(v.typedText("pin")), v.typedText(lockField) != ""
	err := checkPIN(pin)
	if err == nil && strings.TrimSpace(v.typedText("pinAgain")) != pin {
		err = errPINDiffers
	}
	if err != nil {
		return v.told(err)
	}
	h, err := newPIN(pin, v.api.engine.seed())
	if err != nil {
		return err
	}
	if v.member.session.hasPIN() {
		got, err := v.tryPIN("oldPin", func(t *txn, s *session) error { return t.people.setPIN(s, h, lock) })
		if err != nil || got != pinRight {
			return err
		}
	} else if err := v.change(func(t *txn) error { return t.people.choosePIN(v.member, v.panel.sessionLimits, h, lock) }); err != nil {
		return v.told(err)
	}
	if lock {
		return v.redirect("/panel/caja")
	}
	return v.redirect("/panel/cuenta")
}

func runDropPIN(v *panelRequest) error {
	if !v.member.session.hasPIN() {
		return v.redirect("/panel/cuenta")
	}
	got, err := v.tryPIN("dropPin", func(t *txn, s *session) error { return t.people.setPIN(s, passwordHash{}, false) })
	if err != nil || got != pinRight {
		return err
	}
	return v.redirect("/panel/cuenta")
}
