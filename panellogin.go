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

// Logging in and out, and what an invitation leads to.

const invitationPath = "/panel/invitacion/{token}"

func logInPages() []panelPage {
	return []panelPage{
		{"/panel/entrar", everyone, "login", logInPage},
		{"/panel/entrar/codigo", everyone, "login-code", logInCodePage},
		{invitationPath, everyone, "invitation", invitationPage},
		{provePath, anyone, "prove", provePage},
	}
}

func logInForms() []panelForm {
	return []panelForm{
		{path: "/panel/entrar", need: everyone, from: "/panel/entrar", run: runLogIn},
		{path: "/panel/entrar/codigo", need: everyone, from: "/panel/entrar/codigo", run: runLogInCode},
		{path: invitationPath, need: everyone, from: invitationPath, run: runInvitation},
		{path: provePath, need: anyone, from: provePath, most: mostCarried, run: runProve},
		{path: "/panel/organizacion", need: anyone, from: "/panel/cuenta", run: runEnter},
		{path: outPath, need: anyone, from: "/panel/cuenta", run: runLogOut},
	}
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

// arrival is where the request comes from.
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
func (v *panelRequest) placeAfter(text string) string {
	u, err := url.ParseRequestURI(text)
	if err != nil || u.Scheme != "" || u.Host != "" || path.Clean(u.Path) != u.Path {
		return "/panel"
	}
	_, pattern := v.panel.mux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: u.Path, RawPath: u.RawPath}})
	page := v.panel.pages[strings.TrimPrefix(pattern, "GET ")]
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
		return v.redirect(withQuery("/panel/entrar/codigo", []pair{{"ir", v.placeAfter(v.typedText("ir"))}}))
	}
	return v.goOn()
}

// goOn leads to where the member was going before the log-in.
func (v *panelRequest) goOn() error {
	if kept := v.keptForm(); kept != nil {
		return v.sendKept(kept)
	}
	return v.redirect(v.placeAfter(v.typedText("ir")))
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
		shown.Inviter, err = t.userName(a.By.ID)
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
		return &proveView{To: v.placeAfter(v.typedText("ir")), Kept: v.keptForm()}, nil
	}
	view := &proveView{To: v.placeAfter(v.param("ir"))}
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

var logInTexts = panelTexts{
	"title.login":              {"Entrar", "Log in"},
	"title.login-code":         {"Código de verificación", "Verification code"},
	"title.invitation":         {"Invitación", "Invitation"},
	"login.email":              {"Email", "Email"},
	"login.password":           {"Contraseña", "Password"},
	"login.enter":              {"Entrar", "Log in"},
	"login.forgot":             {"¿Olvidaste la contraseña? Un administrador de tu organización te da un enlace para poner otra.", "Forgot the password? An administrator of your organization can give you a link to set another one."},
	"login.none":               {"Todavía no hay ninguna organización. En el servidor, este comando hace la primera de su documento:", "There is no organization yet. On the server, this command makes the first one of its document:"},
	"login.nobody":             {"Todavía no puede entrar nadie. En el servidor, este comando muestra un enlace para la primera persona:", "Nobody can log in yet. On the server, this command prints a link for the first person:"},
	"login.ended":              {"La sesión terminó. Entra otra vez para seguir.", "The session has ended. Log in again to go on."},
	"login.code":               {"Código", "Code"},
	"login.code.hint":          {"De la aplicación, o un código de recuperación", "From the app, or a recovery code"},
	"kept.title":               {"Todavía no se guardó", "Not stored yet"},
	"kept.about":               {"Se hará en cuanto confirmes quién eres. Si ya se guardó, no se duplica.", "It is done as soon as you prove who you are. If it was stored already, it is not doubled."},
	"login.other":              {"Entrar como otra persona", "Log in as somebody else"},
	"invitation.to":            {"%s te invita a %s como %s.", "%s invites you to %s as %s."},
	"invitation.command":       {"Te invitan a %s como %s.", "You are invited to %s as %s."},
	"invitation.known":         {"Si ya tienes una cuenta con este correo, escribe su contraseña y deja el nombre en blanco. Si no, escribe tu nombre y elige una contraseña de 15 caracteres o más.", "If you already have an account with this e-mail, type its password and leave the name blank. If not, type your name and choose a password of 15 characters or more."},
	"invitation.reset":         {"Pon otra contraseña para %s.", "Set another password for %s."},
	"invitation.entry":         {"Entra en %s con la cuenta de ejemplo %s.", "Log in to %s with the sample account %s."},
	"invitation.name":          {"Tu nombre", "Your name"},
	"invitation.password":      {"Contraseña nueva", "New password"},
	"invitation.password.hint": {"15 caracteres o más. Varias palabras que no vayan juntas son fáciles de recordar.", "15 characters or more. Some words that do not belong together are easy to remember."},
	"invitation.accept":        {"Aceptar", "Accept"},
	"invitation.set":           {"Guardar la contraseña", "Save the password"},
	"error.too_many_tries.one": {"Demasiados intentos seguidos. Vuelve a intentarlo en 1 segundo.", "Too many attempts in a row. Try again in 1 second."},
	"error.too_many_tries":     {"Demasiados intentos seguidos. Vuelve a intentarlo en %s segundos.", "Too many attempts in a row. Try again in %s seconds."},

	"error.people.users_manage_required": {"Solo quien administra el equipo puede hacer esto.", "Only whoever manages the team can do this."},
	"error.people.owners_alone":          {"Solo un propietario puede invitar, cambiar o quitar a un propietario.", "Only an owner can invite, change or remove an owner."},
	"error.people.own_role":              {"Nadie puede ampliar su propio rol.", "Nobody can extend their own role."},
	"error.people.last_owner":            {"Es el último propietario activo. Antes tiene que haber otro.", "This is the last active owner. There has to be another one first."},
	"error.people.role_unknown":          {"Elige un rol.", "Choose a role."},
	"error.people.user_unknown":          {"No hay ningún usuario con ese email.", "There is no user with that email."},
	"error.people.not_member":            {"Esta persona no es del equipo.", "This person is not of the team."},
	"error.people.email_invalid":         {"El email no tiene un formato válido.", "The email is not valid."},
	"error.people.name_invalid":          {"Escribe un nombre de hasta 100 caracteres.", "Write a name of up to 100 characters."},
	"error.people.language_unknown":      {"Elige un idioma.", "Choose a language."},
	"error.people.theme_unknown":         {"Elige un tema.", "Choose a theme."},
	"error.people.operator_alone":        {"Solo quien opera el servidor puede hacer esto con esta persona: sello user reset.", "Only whoever runs the server can do this to this person: sello user reset."},
	"error.people.invitation_unknown":    {"Esta invitación no existe o se retiró.", "This invitation does not exist or was taken back."},
	"error.people.invitation_spent":      {"Este enlace ya se usó.", "This link has been used."},
	"error.people.invitation_expired":    {"Este enlace venció. Pide otro.", "This link has expired. Ask for another one."},
	"error.people.member_already":        {"Ya es del equipo.", "Already of the team."},
	"error.people.own_reset":             {"La propia contraseña se cambia en Mi cuenta.", "Change your own password in My account."},
	"error.people.invitations_many":      {"Hay demasiados enlaces abiertos: retira alguno.", "There are too many open links: take some back."},
	"error.people.password_short":        {"La contraseña necesita al menos 15 caracteres (10 con segundo factor).", "The password needs at least 15 characters (10 with a second factor)."},
	"error.people.password_long":         {"La contraseña no puede pasar de 128 caracteres.", "The password cannot be longer than 128 characters."},
	"error.people.password_text":         {"La contraseña tiene caracteres que no se pueden escribir.", "The password has characters that cannot be typed."},
	"error.people.password_repeats":      {"La contraseña repite lo mismo una y otra vez. Prueba con varias palabras.", "The password repeats the same over and over. Try some words."},
	"error.people.password_keyboard":     {"La contraseña sigue el orden del teclado o del abecedario. Prueba con varias palabras.", "The password follows the keyboard or the alphabet. Try some words."},
	"error.people.password_own":          {"La contraseña es casi solo tu nombre, tu email o el de la organización.", "The password is hardly more than your name, your email or the organization's name."},
	"error.people.password_usual":        {"La contraseña es de las más usadas. Prueba con palabras que no vayan juntas.", "The password is among the most used. Try words that do not belong together."},
	"error.password_wrong":               {"La contraseña no es correcta.", "The password is not correct."},
	"error.people.login_failed":          {"El email o la contraseña no son correctos.", "The email or the password is not correct."},
	"error.people.login_locked":          {"Hubo demasiados intentos. Pide un enlace para poner otra contraseña, o entra desde un dispositivo que ya usaste.", "There were too many attempts. Ask for a link to set another password, or log in from a device that you have used."},
	"error.people.member_of_none":        {"Ya no perteneces a ninguna organización.", "You are no longer a member of any organization."},
	"error.people.code_wrong":            {"El código no es correcto o ya se usó.", "The code is not correct, or was used."},
	"error.people.factor_there":          {"Ya hay un segundo factor.", "There is a second factor already."},
	"error.people.factor_none":           {"No hay segundo factor.", "There is no second factor."},
	"error.people.password_alone":        {"Tu contraseña es corta para valer sin segundo factor. Pon otra de al menos 15 caracteres.", "Your password is too short to stand without a second factor. Set another one of at least 15 characters."},
}
