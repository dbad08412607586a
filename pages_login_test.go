package main

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/totp"
)

// A browser keeps cookies as browsers do.
type browser struct {
	panelShop *panelShop
	cookies   map[string]string
	set       []*http.Cookie // by the last answer
}

func (s *panelShop) browser() *browser { return &browser{panelShop: s, cookies: map[string]string{}} }

func (b *browser) send(method, path string, fields url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, panelBase+path, strings.NewReader(fields.Encode()))
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", panelBase)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := answerTo(b.panelShop.api, r)
	b.set = w.Result().Cookies()
	for _, c := range b.set {
		if b.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return w
}

func (b *browser) want(status int, where string, w *httptest.ResponseRecorder, has ...string) string {
	b.panelShop.shop.Helper()
	body := w.Body.String()
	if w.Code != status || w.Header().Get("Location") != where {
		b.panelShop.shop.Fatalf("%d %s, want %d %s\n%s", w.Code, w.Header().Get("Location"), status, where, body)
	}
	for _, text := range has {
		if !strings.Contains(body, text) {
			b.panelShop.shop.Errorf("no %q in\n%s", text, body)
		}
	}
	return body
}

func newPeopleShop(t testing.TB) *panelShop {
	s := newPanelShop(t, panelSetup)
	s.takesPeople()
	return s
}

// takesPeople makes log-ins cheap, however many there are.
func (s *panelShop) takesPeople() {
	s.api.logins.iterations = 2
	s.api.logins.sources = newLoginLimits(1<<20, 1)
	s.panel.sessionLimits = s.shop.engine.sessionLimits
}

// TestPanelNobody: while there is no user, the page says the command that makes one, without
// a form.
// Panel check 1.
func TestPanelNobody(t *testing.T) {
	t.Parallel()
	s := &panelShop{shop: newShop(t, panelSetup)}
	s.api = s.shop.served().api
	s.panel = thePanel(s.api, panelAddress{}, s.shop.engine.sessionLimits)
	s.api.panel = s.panel
	b := s.browser()
	b.want(http.StatusSeeOther, "/panel/entrar", b.send("GET", "/panel", nil))
	if body := b.want(http.StatusOK, "", b.send("GET", "/panel/entrar", nil), "sello user invite"); strings.Contains(body, "<form") {
		t.Errorf("a form in\n%s", body)
	}
}

// TestPanelInvitation: looking at an invitation spends nothing; using it makes the user and a
// session; afterwards the page says that it is spent.
// Panel check 2.
func TestPanelInvitation(t *testing.T) {
	t.Parallel()
	s := newPeopleShop(t)
	b := s.browser()
	path := "/panel/invitacion/" + s.shop.invited("ana@ejemplo.mx", roleManager)
	before := s.shop.entries()
	for range 2 {
		b.want(http.StatusOK, "", b.send("GET", path, nil), "Te invitan a Café Luna como Encargado", "Si ya tienes una cuenta")
	}
	same(t, "the store after it was looked at", s.shop.entries(), before)
	b.want(http.StatusUnprocessableEntity, "", b.send("POST", path, url.Values{"name": {"Ana"}, "password": {"corta"}}), "al menos 15 caracteres", `value="Ana"`)
	b.want(http.StatusSeeOther, "/panel", b.send("POST", path, url.Values{"name": {"Ana"}, "password": {testPassword}}))
	for _, c := range b.set {
		if !c.HttpOnly || c.Secure || c.Path != "/" || c.SameSite != http.SameSiteLaxMode {
			t.Errorf("the cookie is %v", c)
		}
	}
	b.want(http.StatusOK, "", b.send("GET", "/panel", nil), "Abrir caja")
	b.want(http.StatusConflict, "", b.send("GET", path, nil), "Este enlace ya se usó")
	b.want(http.StatusNotFound, "", b.send("GET", "/panel/invitacion/nada", nil), "no existe o se retiró")
}

// TestPanelLogIn: all that fails looks the same; the sixth failure in a row waits; after the
// log-in a known page of the panel follows, and nothing else.
// Panel checks 3, 4 and 12.
func TestPanelLogIn(t *testing.T) {
	t.Parallel()
	s := newPeopleShop(t)
	s.shop.person("ana@ejemplo.mx", roleOwner)
	logIn := func(b *browser, email, password, to string) *httptest.ResponseRecorder {
		return b.send("POST", "/panel/entrar", url.Values{"email": {email}, "password": {password}, "ir": {to}})
	}
	stranger := s.browser()
	a := stranger.want(http.StatusUnprocessableEntity, "", logIn(stranger, "ana@ejemplo.mx", "mal", ""))
	b := stranger.want(http.StatusUnprocessableEntity, "", logIn(stranger, "eva@ejemplo.mx", "mal", ""))
	if strings.ReplaceAll(a, "ana@", "eva@") != b || strings.Contains(a, `value="mal"`) {
		t.Errorf("the pages differ, or tell the password:\n%s\n%s", a, b)
	}
	own := s.browser()
	for to, want := range map[string]string{
		"": "/panel", "/panel/ventas?type=Return&page=2": "/panel/ventas?page=2&type=Return", "//evil.test": "/panel", `/\evil.test`: "/panel", "/a/../evil.test": "/panel", `/a/../\evil.test`: "/panel", "%5c": "/panel",
		"https://evil.test/panel": "/panel", "https:": "/panel", "%5cevil.test": "/panel", "/panel/../../evil.test": "/panel", "/panel/nada": "/panel", "/panel/salir": "/panel",
		"/panel/entrar": "/panel", "/api/v1/customers": "/panel", "/panel//evil.test": "/panel", "javascript:alert(1)": "/panel",
	} {
		own.cookies = map[string]string{"sello-device": own.cookies["sello-device"]}
		own.want(http.StatusSeeOther, want, logIn(own, "ana@ejemplo.mx", testPassword, to))
	}
	for range 4 {
		logIn(stranger, "ana@ejemplo.mx", "mal", "")
	}
	logIn(stranger, "ana@ejemplo.mx", "mal", "")
	if w := logIn(stranger, "ana@ejemplo.mx", testPassword, ""); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	own.cookies = map[string]string{"sello-device": own.cookies["sello-device"]}
	own.want(http.StatusSeeOther, "/panel", logIn(own, "ana@ejemplo.mx", testPassword, ""))

	token := own.cookies["sello"]
	own.want(http.StatusSeeOther, "/panel", own.send("POST", "/panel/salir", url.Values{orgField: {"cafe-luna"}}))
	if own.cookies["sello"] != "" || s.shop.member(token) != nil {
		t.Error("logged out and in")
	}
	own.want(http.StatusSeeOther, "/panel/entrar?ir=%2Fpanel%2Fventas", own.send("GET", "/panel/ventas", nil))
}

var hiddenInput = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

func hidden(page string) url.Values {
	fields := url.Values{}
	for _, m := range hiddenInput.FindAllStringSubmatch(page, -1) {
		fields.Set(m[1], html.UnescapeString(m[2]))
	}
	return fields
}

// TestPanelKeptForm: a form that is sent when its session has ended is kept over the log-in,
// and stored once.
// Panel check 8.
func TestPanelKeptForm(t *testing.T) {
	t.Parallel()
	s := newPeopleShop(t)
	s.shop.person("ana@ejemplo.mx", roleOwner)
	c := s.shop.customer("luz")
	_, token := s.shop.enters("ana@ejemplo.mx")
	b := s.browser()
	b.cookies["sello"] = token
	form := url.Values{orgField: {"cafe-luna"}, tokenField: {"TOKEN0123456789A"}, "totalAmount": {"100"}}
	path := "/panel/caja/" + c.String() + "/venta"
	s.shop.pass(3 * time.Hour)
	page := b.want(http.StatusUnauthorized, "", b.send("POST", path, form), "La sesión terminó")
	fields := hidden(page)
	fields.Set("email", "ana@ejemplo.mx")
	fields.Set("password", "mal")
	page = b.want(http.StatusUnprocessableEntity, "", b.send("POST", "/panel/entrar", fields))
	fields = hidden(page)
	fields.Set("email", "ana@ejemplo.mx")
	fields.Set("password", testPassword)
	where := ""
	for i := range 2 {
		w := b.send("POST", "/panel/entrar", fields)
		if i > 0 { // the same form comes once more
			w = b.send("POST", path, form)
		}
		if w.Code != http.StatusSeeOther || where != "" && w.Header().Get("Location") != where {
			t.Fatalf("%d %s, then %s", w.Code, where, w.Header().Get("Location"))
		}
		where = w.Header().Get("Location")
	}
	if n := ask(s.shop, (*txn).count).Sales; n != 1 {
		t.Errorf("%d sales", n)
	}
	fields.Set(keptPath, "/panel/../evil")
	b.cookies = map[string]string{}
	b.want(http.StatusSeeOther, "/panel", b.send("POST", "/panel/entrar", fields))
}

// TestPanelAccount: the account, the password, the second factor and the sessions of a member.
// Panel checks 6 and 10.
func TestPanelAccount(t *testing.T) {
	t.Parallel()
	s := newPeopleShop(t)
	ana := s.shop.person("ana@ejemplo.mx", roleCashier)
	_, token := s.shop.enters("ana@ejemplo.mx")
	_, other := s.shop.enters("ana@ejemplo.mx")
	b := s.browser()
	b.cookies["sello"] = token
	post := func(path string, fields url.Values) *httptest.ResponseRecorder {
		fields.Set(orgField, "cafe-luna")
		fields.Set(tokenField, s.panel.random())
		return b.send("POST", path, fields)
	}
	b.want(http.StatusSeeOther, "/panel/cuenta", post("/panel/cuenta", url.Values{"name": {"Ana G."}, "language": {"en"}, "theme": {"dark"}}))
	b.want(http.StatusOK, "", b.send("GET", "/panel/cuenta?f=TOKEN0123456789A", nil), `lang="en" data-theme="dark"`, `value="Ana G."`, "My account")
	b.want(http.StatusUnprocessableEntity, "", post("/panel/cuenta", url.Values{"name": {" "}}), "Write a name")
	b.want(http.StatusOK, "", b.send("GET", "/panel/cuenta/sesiones?f=TOKEN0123456789A", nil), "This session", "End all others")
	b.want(http.StatusSeeOther, "/panel/cuenta/sesiones", post("/panel/cuenta/sesiones/terminar", url.Values{}))
	if s.shop.member(other) != nil || s.shop.member(token) == nil {
		t.Error("not the other session ended")
	}
	page := b.want(http.StatusOK, "", b.send("GET", "/panel/cuenta/segundo-factor?f=TOKEN0123456789A", nil), `href="otpauth://totp/`, `<svg role="img" aria-label="QR code with the key" `, "Scan this code")
	b.want(http.StatusUnprocessableEntity, "", post("/panel/cuenta/segundo-factor", url.Values{"factorCode": {"000000"}}), "not correct")
	chosen := totp.Code([]byte("12345678901234567890"), int64(s.shop.clock))
	b.want(http.StatusUnprocessableEntity, "", post("/panel/cuenta/segundo-factor", url.Values{"secret": {factorSecret}, "factorCode": {chosen}}), "not correct") // whoever sends it chooses no secret
	enrol := url.Values{orgField: {"cafe-luna"}, tokenField: {"TOKEN0123456789A"}, "factorCode": {b.shownCode(page)}}
	page = b.want(http.StatusOK, "", b.send("POST", "/panel/cuenta/segundo-factor", enrol), "Recovery codes")
	if n := strings.Count(page, "<li><code>"); n != recoveryCodes {
		t.Errorf("%d codes in\n%s", n, page)
	}
	b.want(http.StatusSeeOther, "/panel/cuenta", b.send("POST", "/panel/cuenta/segundo-factor", enrol)) // a reload shows them no more
	code := regexp.MustCompile(`<code>([A-Z2-7-]+)`).FindStringSubmatch(page)[1]

	b.want(http.StatusUnprocessableEntity, "", post("/panel/cuenta/clave", url.Values{"old": {"mal"}, "password": {"otro tren azul 9"}}))
	b.want(http.StatusSeeOther, "/panel/cuenta", post("/panel/cuenta/clave", url.Values{"old": {testPassword}, "password": {"otro tren azul 9"}}))
	if b.cookies["sello"] == token || s.shop.member(token) != nil || s.shop.member(b.cookies["sello"]) == nil {
		t.Error("the session has the same token with another password")
	}
	again := s.browser()
	again.want(http.StatusSeeOther, "/panel/entrar/codigo?ir=%2Fpanel", again.send("POST", "/panel/entrar", url.Values{"email": {"ana@ejemplo.mx"}, "password": {"otro tren azul 9"}}))
	again.want(http.StatusSeeOther, "/panel/entrar?ir=%2Fpanel%2Fcuenta", again.send("GET", "/panel/cuenta", nil)) // half
	again.want(http.StatusUnprocessableEntity, "", again.send("POST", "/panel/entrar/codigo", url.Values{"factorCode": {"123456"}}))
	again.want(http.StatusSeeOther, "/panel", again.send("POST", "/panel/entrar/codigo", url.Values{"factorCode": {code}}))
	s.shop.pass(proofHolds)
	again.want(http.StatusSeeOther, "/panel/confirmar?ir=%2Fpanel%2Fcuenta%2Fsegundo-factor", again.send("GET", "/panel/cuenta/segundo-factor", nil))
	again.want(http.StatusSeeOther, "/panel/cuenta/segundo-factor", again.send("POST", "/panel/confirmar", url.Values{orgField: {"cafe-luna"}, "password": {"otro tren azul 9"}, "ir": {"/panel/cuenta/segundo-factor"}}))
	for _, line := range s.shop.audited(auditFilter{}) {
		if strings.Contains(line, "Ana") {
			t.Errorf("%s tells a name", line)
		}
	}
	_ = ana
}

// TestPanelTeam: an invitation's link is shown once; what is done to people leaves one entry.
func TestPanelTeam(t *testing.T) {
	t.Parallel()
	s := newPeopleShop(t)
	count := func() int { return len(s.shop.audited(auditFilter{})) }
	fields := func(more ...string) url.Values {
		f := url.Values{orgField: {"cafe-luna"}, tokenField: {s.panel.random()}}
		for i := 0; i < len(more); i += 2 {
			f.Set(more[i], more[i+1])
		}
		return f
	}
	entries := count()
	invite := fields("email", "sol@ejemplo.mx", "role", "cashier")
	first := s.post(roleAdmin, "/panel/equipo/nuevo", invite)
	link := regexp.MustCompile(`value="http://127.0.0.1:8080/panel/invitacion/(\w+)"`).FindStringSubmatch(first.Body.String())
	if first.Code != http.StatusOK || link == nil || count() != entries+1 {
		t.Fatalf("%d, %d entries\n%s", first.Code, count()-entries, first.Body)
	}
	if again := s.post(roleAdmin, "/panel/equipo/nuevo", invite); again.Code != http.StatusSeeOther || strings.Contains(again.Body.String(), link[1]) || count() != entries+1 {
		t.Errorf("again: %d, %d entries", again.Code, count()-entries)
	}
	for _, e := range s.shop.entries() {
		if strings.Contains(string(e.Value), link[1]) {
			t.Errorf("%x holds the link", e.Key)
		}
	}
	if w := s.open(roleAdmin, "/panel/equipo"); !strings.Contains(w.Body.String(), "sol@ejemplo.mx") || strings.Contains(w.Body.String(), link[1]) {
		t.Errorf("the list is\n%s", w.Body)
	}
	one := "/panel/equipo/" + s.users[roleCashier].String()
	for _, step := range []struct {
		as     role
		path   string
		fields url.Values
		status int
		wrote  int
	}{
		{roleOwner, one + "/rol", fields("role", "manager"), 303, 1},
		{roleOwner, one + "/rol", fields("role", "manager"), 303, 0},
		{roleOwner, one + "/rol", fields("role", "boss"), 422, 0},
		{roleAdmin, one + "/rol", fields("role", "owner"), 403, 0},
		{roleAdmin, one + "/inhabilitar", fields(), 303, 1},
		{roleAdmin, one + "/habilitar", fields(), 303, 1},
		{roleAdmin, one + "/enlace", fields(), 200, 1},
		{roleAdmin, "/panel/equipo/" + s.users[roleOwner].String() + "/quitar", fields(), 403, 0},
		{roleOwner, "/panel/equipo/" + s.users[roleOwner].String() + "/quitar", fields(), 409, 0},
		{roleOwner, "/panel/equipo/" + id{9}.String() + "/quitar", fields(), 404, 0},
		{roleManager, one + "/quitar", fields(), 403, 0},
		{roleOwner, one + "/quitar", fields(), 303, 1},
		{roleOwner, one + "/quitar", fields(), 404, 0},
	} {
		before := count()
		if w := s.post(step.as, step.path, step.fields); w.Code != step.status || count() != before+step.wrote {
			t.Errorf("%s as %s: %d and %d entries, want %d and %d\n%s", step.path, step.as, w.Code, count()-before, step.status, step.wrote, w.Body)
		}
	}
	s.shop.pass(proofHolds)
	if w := s.open(roleOwner, "/panel/equipo/nuevo"); w.Header().Get("Location") != "/panel/confirmar?ir=%2Fpanel%2Fequipo%2Fnuevo" {
		t.Errorf("%d %s", w.Code, w.Header().Get("Location"))
	}
	if w := s.post(roleOwner, "/panel/equipo/nuevo", fields("email", "mar@ejemplo.mx", "role", "cashier")); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `value="mar@ejemplo.mx"`) {
		t.Errorf("without the password of late: %d", w.Code)
	}
}

// TestPanelOrganizations: a member of two organizations puts the session into the other one. A
// form of the first is refused then.
// Panel check 34.
func TestPanelOrganizations(t *testing.T) {
	t.Parallel()
	s := newPeopleShop(t)
	s.shop.secondShop()
	s.shop.person("ana@ejemplo.mx", roleOwner)
	s.shop.in(2, func() {
		_, err := s.shop.logins().accept(s.shop.Context(), &acceptance{Token: s.shop.invited("ana@ejemplo.mx", roleCashier), Password: testPassword}, s.shop.clock)
		s.shop.ok(err)
	})
	_, token := s.shop.enters("ana@ejemplo.mx")
	b := s.browser()
	b.cookies["sello"] = token
	b.want(http.StatusOK, "", b.send("GET", "/panel/cuenta?f=TOKEN0123456789A", nil), `name="organization" value="tienda"`)
	b.want(http.StatusSeeOther, "/panel", b.send("POST", "/panel/organizacion", url.Values{orgField: {"cafe-luna"}, "organization": {"tienda"}}))
	if m := s.shop.member(token); m.org != 2 || m.role != roleCashier {
		t.Errorf("in %d as %s", m.org, m.role)
	}
	b.want(http.StatusOK, "", b.send("GET", "/panel/caja?f=TOKEN0123456789A", nil), "Otra organización", `name="organization" value="cafe-luna"`)
	b.want(http.StatusForbidden, "", b.send("GET", "/panel/equipo", nil), "Tu rol no incluye esto: administrar el equipo.")
	b.want(http.StatusConflict, "", b.send("POST", "/panel/organizacion", url.Values{orgField: {"cafe-luna"}, "organization": {"cafe-luna"}}))
	b.want(http.StatusNotFound, "", b.send("POST", "/panel/organizacion", url.Values{orgField: {"tienda"}, "organization": {"nada"}}))
}

// TestPanelSessionEnds: a session at work ends twelve hours after its log-in, and one that
// rests after two, also if a page that it left open asks for itself meanwhile.
// Panel check 11.
func TestPanelSessionEnds(t *testing.T) {
	t.Parallel()
	s := newPeopleShop(t)
	s.shop.person("ana@ejemplo.mx", roleOwner)
	for _, test := range []struct {
		reason string
		every  time.Duration
		pages  int // that it opens before it ends
		header []string
	}{{"at work", time.Hour, 11, nil}, {"rests", 2 * time.Hour, 0, nil}, {"rests, with a page that polls", time.Hour, 1, []string{pollHeader, "1"}}} {
		b := s.browser()
		_, b.cookies["sello"] = s.shop.enters("ana@ejemplo.mx")
		for range test.pages {
			s.shop.pass(test.every)
			if w := b.send("GET", "/panel/ventas", nil, test.header...); w.Code != http.StatusOK {
				t.Fatalf("%s: %d", test.reason, w.Code)
			}
		}
		s.shop.pass(test.every)
		b.want(http.StatusSeeOther, "/panel/entrar?ir=%2Fpanel%2Fventas", b.send("GET", "/panel/ventas", nil))
	}
}

// TestPanelLogInToken: a log-in takes over no token that the browser came with, be it one that
// somebody else chose or that of a session, which it ends.
// Panel check 6.
func TestPanelLogInToken(t *testing.T) {
	t.Parallel()
	s := newPeopleShop(t)
	s.shop.person("ana@ejemplo.mx", roleOwner)
	b := s.browser()
	b.cookies["sello"] = strings.Repeat("A", tokenDigits)
	for range 2 {
		before := b.cookies["sello"]
		b.want(http.StatusSeeOther, "/panel", b.send("POST", "/panel/entrar", url.Values{"email": {"ana@ejemplo.mx"}, "password": {testPassword}}))
		if b.cookies["sello"] == before || s.shop.member(b.cookies["sello"]) == nil {
			t.Errorf("the token was %s and is %s", before, b.cookies["sello"])
		}
		if s.shop.member(before) != nil {
			t.Error("the session that the browser was in goes on")
		}
	}
	if s.shop.member(strings.Repeat("A", tokenDigits)) != nil {
		t.Error("a token that somebody chose opens a session")
	}
}

// TestPanelRoleTaken: what is taken from a member holds from the next request on, also for a
// form that was open.
// Panel check 52.
func TestPanelRoleTaken(t *testing.T) {
	t.Parallel()
	s := newPeopleShop(t)
	c := s.shop.customer("luz")
	one, page, form := "/panel/equipo/"+s.users[roleManager].String(), "/panel/clientes/"+c.String()+"/editar", "/panel/clientes/"+c.String()+"/puntos/dar"
	points := func() *httptest.ResponseRecorder {
		return s.post(roleManager, form, url.Values{"amount": {"5"}, "comment": {"Sí"}})
	}
	if w := s.open(roleManager, page); w.Code != http.StatusOK {
		t.Fatal(w.Code)
	}
	if w := points(); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	for _, step := range []struct {
		path, value string
		page, form  int
	}{
		{"/rol", "cashier", http.StatusForbidden, http.StatusForbidden},
		{"/rol", "manager", http.StatusOK, http.StatusSeeOther},
		{"/inhabilitar", "", http.StatusSeeOther, http.StatusUnauthorized},
		{"/habilitar", "", http.StatusOK, http.StatusSeeOther},
		{"/quitar", "", http.StatusSeeOther, http.StatusUnauthorized},
	} {
		if w := s.post(roleOwner, one+step.path, url.Values{"role": {step.value}}); w.Code != http.StatusSeeOther {
			t.Fatal(step.path, w.Code, w.Body)
		}
		if step.path == "/habilitar" { // whose sessions ended
			s.tokens[roleManager] = must(s.shop, func(t *txn) (string, error) {
				return t.people.startSession(s.users[roleManager], sessionFull, &arrival{})
			})
		}
		before := ask(s.shop, (*txn).count).Movements
		opened, sent := s.open(roleManager, page), points()
		if gave := ask(s.shop, (*txn).count).Movements != before; opened.Code != step.page || sent.Code != step.form || gave != (step.form == http.StatusSeeOther) {
			t.Errorf("%s %s: the page is %d, the form %d, and points were given: %v", step.path, step.value, opened.Code, sent.Code, gave)
		}
	}
}

// TestPanelOwnersTogether: of two owners who take each other's role at the same time one stays.
// Panel check 50.
func TestPanelOwnersTogether(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	const other role = "owner too"
	for _, path := range []string{"/rol", "/inhabilitar", "/quitar"} {
		for range 10 {
			s := newPeopleShop(t)
			s.users[other] = s.shop.person("ana@ejemplo.mx", roleOwner)
			_, s.tokens[other] = s.shop.enters("ana@ejemplo.mx")
			var wait sync.WaitGroup
			for actor, target := range map[role]role{roleOwner: other, other: roleOwner} {
				form := url.Values{tokenField: {s.panel.random()}, "role": {"cashier"}}
				wait.Go(func() { s.post(actor, "/panel/equipo/"+s.users[target].String()+path, form) })
			}
			wait.Wait()
			owners := 0
			for _, m := range ask(s.shop, func(t *txn) ([]*teammate, error) { return t.people.team() }) {
				if m.active() && m.Role == roleOwner {
					owners++
				}
			}
			if owners != 1 {
				t.Fatalf("%s: %d owners are left", path, owners)
			}
		}
	}
}

// TestPanelBirthDates: a date of birth is written as people do, with or without a year, and is typed and
// kept as it is.
func TestPanelBirthDates(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{})
	ana := s.shop.customer("ana")
	page, form := "/panel/clientes/"+ana.String(), "/panel/clientes/"+ana.String()+"/editar"
	for _, test := range []struct{ typed, spanish, english, shown, kept string }{
		{"05-14", "14 de mayo", "14 May", "05-14", "--05-14"},
		{" --02-29 ", "29 de febrero", "29 February", "02-29", "--02-29"},
		{"1990-05-14", "14 may 1990", "14 May 1990", "1990-05-14", "1990-05-14"},
		{"", "–", "–", "", ""},
		{"02-30", "", "", "02-30", ""},
		{"14/05", "14 de mayo", "14 May", "05-14", "--05-14"},
		{"1/5/1990", "1 may 1990", "1 May 1990", "1990-05-01", "1990-05-01"},
		{"05/14", "", "", "05/14", ""},
	} {
		fields := asShown(s.open(roleManager, form).Body.String())
		fields.Set("birthDate", test.typed)
		w := s.post(roleManager, form, fields)
		if refused := test.spanish == ""; refused {
			if body := w.Body.String(); w.Code == http.StatusSeeOther || !strings.Contains(body, "AAAA-MM-DD o DD/MM/AAAA y no futura, o MM-DD o DD/MM sin año") || !strings.Contains(body, `name="birthDate" value="`+test.shown+`"`) {
				t.Errorf("%q: %d %s", test.typed, w.Code, body)
			}
			continue
		}
		if w.Code != http.StatusSeeOther {
			t.Errorf("%q: %d %s", test.typed, w.Code, w.Body)
		}
		if got := ask(s.shop, func(t *txn) (*customer, error) { return t.customers.get(ana) }).BirthDate.String(); got != test.kept {
			t.Errorf("%q is kept as %q, want %q", test.typed, got, test.kept)
		}
		for lang, want := range map[string]string{"es": test.spanish, "en": test.english} {
			s.speaks(roleManager, lang)
			if body := s.open(roleManager, page).Body.String(); !strings.Contains(body, "<dd>"+want+"</dd>") {
				t.Errorf("%q in %s: no %s", test.typed, lang, want)
			}
		}
		s.speaks(roleManager, "es")
		if got := asShown(s.open(roleManager, form).Body.String()).Get("birthDate"); got != test.shown {
			t.Errorf("%q is shown as %q, want %q", test.typed, got, test.shown)
		}
	}
}

const testPIN = "739164"

// TestPINRules: a PIN has six digits, and is none of the first that somebody would try.
func TestPINRules(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pin    string
		want   error
		reason string
	}{
		{testPIN, nil, "six digits"},
		{"000124", nil, "a zero three times, and more"},
		{"123489", nil, "a run of four, and more"},
		{"", errPINDigits, "nothing"},
		{"73916", errPINDigits, "five digits"},
		{"7391640", errPINDigits, "seven"},
		{"73916a", errPINDigits, "a letter"},
		{"-73916", errPINDigits, "a sign"},
		{"٧٣٩١٦٤", errPINDigits, "digits of another script"},
		{"777777", errPINTrivial, "one digit"},
		{"000000", errPINTrivial, "zeros"},
		{"212121", errPINTrivial, "two digits by turns"},
		{"739739", errPINTrivial, "three digits twice"},
		{"111222", errPINTrivial, "two digits, three times each"},
		{"123456", errPINTrivial, "up"},
		{"654321", errPINTrivial, "down"},
		{"012345", errPINTrivial, "up from zero"},
		{"567890", errPINTrivial, "up to ten"},
		{"098765", errPINTrivial, "down from ten"},
		{"147258", errPINTrivial, "columns of the keypad"},
	} {
		if err := checkPIN(test.pin); err != test.want {
			t.Errorf("%s: %q is %v, want %v", test.reason, test.pin, err, test.want)
		}
	}
}

// A lockShop is a formWorld whose owner's session has testPIN.
type lockShop struct {
	*formWorld
	t *testing.T
}

func newLockShop(t *testing.T) *lockShop {
	s := &lockShop{newFormWorld(t), t}
	s.havePIN()
	return s
}

// havePIN gives the owner's session testPIN.
func (w *formWorld) havePIN() {
	w.panelShop.shop.Helper()
	h, err := newPIN(testPIN, w.panelShop.shop.engine.seed())
	w.panelShop.shop.ok(err)
	m := w.panelShop.shop.member(w.panelShop.tokens[roleOwner])
	w.panelShop.shop.ok(tryBy(w.panelShop.shop, m, func(t *txn) error { return t.people.choosePIN(m, w.panelShop.panel.sessionLimits, h, false) }))
}

// beLocked locks the owner's session.
func (w *formWorld) beLocked() {
	w.panelShop.shop.Helper()
	m := w.panelShop.shop.member(w.panelShop.tokens[roleOwner])
	w.panelShop.shop.ok(tryBy(w.panelShop.shop, m, func(t *txn) error { return t.people.lock(m, w.panelShop.panel.sessionLimits) }))
}

// want checks an answer's status and where it leads, and returns its page.
func (s *lockShop) want(what string, w *httptest.ResponseRecorder, status int, where string) string {
	s.t.Helper()
	if w.Code != status || w.Header().Get("Location") != where {
		s.t.Fatalf("%s: %d %q, want %d %q\n%s", what, w.Code, w.Header().Get("Location"), status, where, w.Body)
	}
	return w.Body.String()
}

func (s *lockShop) get(path string) *httptest.ResponseRecorder {
	return s.panelShop.get(roleOwner, s.filled(path))
}

// post sends a form with names and values by turns.
func (s *lockShop) post(path string, pairs ...string) *httptest.ResponseRecorder {
	return s.panelShop.post(roleOwner, s.filled(path), s.fields(&goodForm{post: pairs}))
}

// stored is the owner's session as it is kept; nil if it has ended.
func (s *lockShop) stored() *session {
	return ask(s.panelShop.shop, func(t *txn) (*session, error) {
		return get[session](t.Tx, sessionKey(tokenHash(s.panelShop.tokens[roleOwner])))
	})
}

// restart serves the shop's store anew.
func (s *lockShop) restart() {
	e := newEngine(s.panelShop.shop.engine.store.Store, func() time.Time { return s.panelShop.shop.clock.time() }, cryptoSeed)
	s.panelShop.api = newAPIOf(e)
	s.panelShop.panel = thePanel(s.panelShop.api, panelAddress{}, e.sessionLimits)
	s.panelShop.api.panel = s.panelShop.panel
}

// TestLockEnds: a session with a PIN lasts 14 hours, one without 12. It locks after 10 minutes,
// or after the idle limit if that is shorter, and waits for its PIN until it ends.
func TestLockEnds(t *testing.T) {
	t.Parallel()
	began := instantOf(time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC))
	usual, short := usualSessionLimits(), usualSessionLimits()
	short.idle = 5 * time.Minute
	pin := passwordHash{Iterations: 1}
	for _, test := range []struct {
		reason       string
		ends         sessionLimits
		pin          passwordHash
		by           instant // hand, since when
		seen, now    time.Duration
		locked, over bool
	}{
		{"in use", usual, pin, 0, time.Hour, time.Hour + lockAfter - time.Millisecond, false, false},
		{"idle", usual, pin, 0, time.Hour, time.Hour + lockAfter, true, false},
		{"locked by hand, and seen", usual, pin, began, time.Hour, time.Hour, true, false},
		{"idle without a PIN", usual, passwordHash{}, 0, time.Hour, 3*time.Hour - time.Millisecond, false, false},
		{"idle too long without a PIN", usual, passwordHash{}, 0, time.Hour, 3 * time.Hour, false, true},
		{"locked for long", usual, pin, 0, time.Hour, 14*time.Hour - time.Millisecond, true, false},
		{"14 hours, in use", usual, pin, 0, 14 * time.Hour, 14 * time.Hour, false, true},
		{"14 hours, locked", usual, pin, began, time.Hour, 14 * time.Hour, true, true},
		{"12 hours without a PIN", usual, passwordHash{}, 0, 12 * time.Hour, 12 * time.Hour, false, true},
		{"a short idle limit, in use", short, pin, 0, time.Hour, time.Hour + 5*time.Minute - time.Millisecond, false, false},
		{"a short idle limit", short, pin, 0, time.Hour, time.Hour + 5*time.Minute, true, false},
	} {
		s := &session{CreatedAt: began, SeenAt: began.add(test.seen), Kind: sessionFull, PIN: test.pin, LockedAt: test.by}
		now := began.add(test.now)
		if got := [2]bool{test.ends.locked(s, [32]byte{}, now), test.ends.over(s, [32]byte{}, now)}; got != [2]bool{test.locked, test.over} {
			t.Errorf("%s: locked and over %v", test.reason, got)
		}
	}
}

// anyHidden is also what was typed into the form that was just sent.
var anyHidden = regexp.MustCompile(`<input type="hidden"[^>]*>|<dl class="facts">.*?</dl>`)

// checkLockPage checks that an answer is the page of a locked session, and shows nothing else but
// what came with its request.
func (s *lockShop) checkLockPage(what string, w *httptest.ResponseRecorder) {
	s.t.Helper()
	shown := anyHidden.ReplaceAllString(w.Body.String(), "")
	if w.Code != http.StatusUnauthorized || !strings.Contains(shown, "<h1>¿Quién eres?</h1>") || !strings.Contains(shown, "La sesión de Owner está bloqueada") {
		s.t.Errorf("%s: %d\n%s", what, w.Code, shown)
	}
	for _, theirs := range []string{"Ana", "García", "87654321", "8765 4321", "luz", "Luz", s.names["customerId"], "<nav", "Espresso"} {
		if strings.Contains(shown, theirs) {
			s.t.Errorf("%s shows %s\n%s", what, theirs, shown)
		}
	}
	if missing := missingHeaders(w.Header()); missing != "" {
		s.t.Errorf("%s: no %s", what, missing)
	}
}

// TestLockRoutes: whatever a locked session opens or sends, it gets the page that asks for the
// PIN, and changes nothing. It can be unlocked and logged out, and has the stylesheet.
func TestLockRoutes(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	if page := s.want("unlocked", s.get("/panel/clientes"), http.StatusOK, ""); !strings.Contains(page, "García") {
		t.Fatal("what must not be shown is not there")
	}
	s.beLocked()
	before := s.panelShop.shop.entries()
	open := map[string]bool{lockPath: true, unlockPath: true, outPath: true}
	for _, p := range panelPages() {
		if !open[p.path] {
			s.checkLockPage("GET "+p.path, s.get(p.path))
		}
	}
	for _, path := range []string{"/panel/nada", "/panel//caja", "/panel/caja?q=garcia"} {
		s.checkLockPage("GET "+path, s.get(path))
	}
	for _, f := range panelForms() {
		if g := goodForms[f.path]; !open[f.path] {
			s.checkLockPage("POST "+f.path, s.panelShop.post(roleOwner, s.filled(f.path), s.fields(&g)))
		}
	}
	same(t, "the store after all of them", s.panelShop.shop.entries(), before)
	if w := s.get(s.panelShop.panel.assets.path("panel.css")); w.Code != http.StatusOK {
		t.Errorf("the stylesheet: %d", w.Code)
	}
	page := s.want("the lock's page", s.get(unlockPath+"?ir=/panel/ventas"), http.StatusOK, "")
	if hidden(page).Get("ir") != "/panel/ventas" || !strings.Contains(page, `inputmode="numeric"`) || !strings.Contains(page, `autocomplete="off"`) {
		t.Errorf("the lock's page is\n%s", page)
	}
	s.want("log-out", s.post(outPath), http.StatusSeeOther, "/panel")
	if s.stored() != nil {
		t.Error("a locked session cannot be logged out")
	}
}

// TestLockIdle: after ten minutes without a request a session is locked. Its page, a wrong PIN
// and a page that reloads itself do not count. It stays locked over a restart, and the PIN leads back.
func TestLockIdle(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	pass := s.panelShop.shop.pass
	for range 3 {
		pass(lockAfter - time.Millisecond)
		s.want("in use", s.get("/panel/clientes"), http.StatusOK, "")
	}
	pass(lockAfter / 2)
	s.want("polling", s.panelShop.send(roleOwner, "GET", "/panel/clientes", nil, pollHeader, "1"), http.StatusOK, "")
	pass(lockAfter / 2)
	const was = "/panel/caja?q=garcia"
	page := s.want("idle", s.get(was), http.StatusUnauthorized, "")
	for range 3 {
		pass(time.Minute)
		s.checkLockPage("after a request", s.get(was))
	}
	s.restart()
	s.checkLockPage("after a restart", s.get(was))
	fields := hidden(page)
	if fields.Get("ir") != was {
		t.Errorf("it leads to %q", fields.Get("ir"))
	}
	pass(2 * time.Hour) // a session without a PIN would have ended
	fields.Set("pin", testPIN)
	s.want("the PIN", s.panelShop.post(roleOwner, unlockPath, fields), http.StatusSeeOther, was)
	pass(lockAfter - time.Millisecond)
	s.want("unlocked", s.get("/panel/clientes"), http.StatusOK, "")
	s.want("unlocked twice", s.panelShop.post(roleOwner, unlockPath, fields), http.StatusSeeOther, was)
}

// TestLockByHand: the button of the till asks for a PIN first, and locks. Afterwards it locks
// at once, also after a restart.
func TestLockByHand(t *testing.T) {
	t.Parallel()
	s := &lockShop{newFormWorld(t), t}
	at := s.filled("/panel/caja/{customerId}")
	page := s.panelShop.open(roleOwner, at).Body.String()
	if !strings.Contains(page, `action="/panel/bloquear"`) {
		t.Errorf("there is no button\n%s", page)
	}
	const till = "/panel/caja"
	to := withQuery(pinPath, []pair{{lockField, "1"}})
	s.want("without a PIN", s.post(lockPath), http.StatusSeeOther, to)
	fields := hidden(s.want("a PIN", s.get(to), http.StatusOK, ""))
	for _, test := range []struct{ pin, again, want string }{
		{"123456", "123456", "de los primeros que alguien probaría"},
		{"73916", "73916", "tiene 6 dígitos"},
		{testPIN, "739165", "No es el mismo PIN"},
	} {
		fields.Set("pin", test.pin)
		fields.Set("pinAgain", test.again)
		page := s.want(test.pin, s.panelShop.post(roleOwner, pinPath, fields), http.StatusUnprocessableEntity, "")
		if !strings.Contains(page, test.want) || strings.Contains(page, test.pin) || hidden(page).Get(lockField) != "1" {
			t.Errorf("%s: the page is\n%s", test.pin, page)
		}
	}
	fields.Set("pin", testPIN)
	fields.Set("pinAgain", testPIN)
	s.want("chosen", s.panelShop.post(roleOwner, pinPath, fields), http.StatusSeeOther, till)
	s.checkLockPage("chosen", s.get(at))
	s.want("unlocked", s.post(unlockPath, "pin", testPIN, "ir", at), http.StatusSeeOther, at)
	s.want("locked", s.post(lockPath), http.StatusSeeOther, till)
	s.want("locked twice", s.post(lockPath), http.StatusSeeOther, till)
	s.restart()
	s.checkLockPage("locked, after a restart", s.get(at))
	s.panelShop.speaks(roleOwner, "en")
	if page := s.get(at).Body.String(); !strings.Contains(page, "Who are you?") || !strings.Contains(page, "Log in with another account") {
		t.Errorf("in English:\n%s", page)
	}
}

// TestLockKeepsForm: a sale that is sent to a locked till is kept over a wrong PIN and the
// right one, and is stored once.
func TestLockKeepsForm(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	s.panelShop.shop.pass(lockAfter)
	sales := func() uint64 { return ask(s.panelShop.shop, (*txn).count).Sales }
	had := sales()
	sale := s.filled("/panel/caja/{customerId}/venta")
	w := s.post(sale, "totalAmount", "1,234.50")
	s.checkLockPage("a sale", w)
	fields := hidden(w.Body.String())
	fields.Set("pin", "480215")
	fields = hidden(s.want("a wrong PIN", s.panelShop.post(roleOwner, unlockPath, fields), http.StatusUnprocessableEntity, ""))
	if fields.Get(keptField+"totalAmount") != "1,234.50" || fields.Get("pin") != "" {
		t.Errorf("kept after a wrong PIN: %v", fields)
	}
	fields.Set("pin", testPIN)
	if w := s.panelShop.post(roleOwner, unlockPath, fields); w.Code != http.StatusSeeOther || sales() != had+1 {
		t.Errorf("the PIN: %d, %d sales", w.Code, sales())
	}
	again := url.Values{"totalAmount": {"1,234.50"}, orgField: {fields.Get(keptField + orgField)}, tokenField: {fields.Get(keptField + tokenField)}}
	if w := s.panelShop.post(roleOwner, sale, again); w.Code != http.StatusSeeOther {
		t.Errorf("sent again: %d\n%s", w.Code, w.Body)
	}
	if sales() != had+1 {
		t.Errorf("%d sales, want %d", sales(), had+1)
	}
}

// TestLockKeepsMore: a voucher that was to be used and a long document are kept, also by the page
// of another organization. Of what cannot be kept the page says so, and an invitation is found
// again.
func TestLockKeepsMore(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	s.beLocked()
	fields := hidden(s.post("/panel/caja/{customerId}/canje/{redemptionId}/uso", "code", "{code}").Body.String())
	if got, want := fields.Get(keptField+"code"), s.filled("{code}"); got != want {
		t.Errorf("of a voucher %q is kept, want %q", got, want)
	}
	long := strings.Repeat(`{"a":1} `, maxForm/8)
	w := s.post("/panel/configuracion/documento", "document", long)
	if fields = hidden(w.Body.String()); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "Lo que enviaste no se guardó") {
		t.Fatalf("a long document: %d, %.2000s", w.Code, w.Body)
	}
	fields.Set(orgField, "otra")
	fields.Set("pin", testPIN)
	if w := s.panelShop.post(roleOwner, unlockPath, fields); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "<nav") { // it says no version
		t.Errorf("unlocked: %d %.2000s", w.Code, w.Body)
	}
	s.beLocked()
	if w := s.post("/panel/cuenta/contrasena", "old", testPassword, "password", testPassword); !strings.Contains(w.Body.String(), "Lo que enviaste no se guardó.") {
		t.Errorf("a password: %s", w.Body)
	}
	fields = hidden(s.post(provePath, "password", testPassword, keptPath, s.filled("/panel/caja/{customerId}/venta"), keptField+"totalAmount", "70", keptField+"password", testPassword).Body.String())
	if fields.Get(keptField+"totalAmount") != "70" || strings.Contains(fmt.Sprint(fields), testPassword) {
		t.Errorf("of a form with a password, what it carries is not kept alone: %v", fields)
	}
	page := s.want("the proof of a page", s.post(provePath, "password", testPassword, "ir", "/panel/claves/nueva"), http.StatusUnauthorized, "")
	if hidden(page).Get("ir") != "/panel/claves/nueva" || strings.Contains(page, "no se guardó") {
		t.Errorf("locked where the password was to be given, the page is\n%s", page)
	}
	fields = hidden(s.get("/panel/invitacion/abc").Body.String())
	fields.Set("pin", testPIN)
	s.want("an invitation", s.panelShop.post(roleOwner, unlockPath, fields), http.StatusSeeOther, "/panel/invitacion/abc")

	// The session ends over a long document: somebody who is not logged in may not send as much.
	s.beLocked()
	fields = hidden(s.post("/panel/configuracion/documento", "document", long).Body.String())
	for i := range pinTries {
		fields.Set("pin", fmt.Sprint("48021", i))
		page = s.panelShop.post(roleOwner, unlockPath, fields).Body.String()
	}
	if !strings.Contains(page, "<h1>Entrar</h1>") || hidden(page).Has(keptPath) || !strings.Contains(page, "Lo que enviaste no se guardó.") {
		t.Errorf("the page after the last PIN is\n%.2000s", page)
	}
}

// TestLockTries: after five wrong PINs in a row the session ends, also with a restart in
// between, and the log tells of it. What was kept goes on to the log-in.
func TestLockTries(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	s.beLocked()
	sale := s.filled("/panel/caja/{customerId}/venta")
	fields := hidden(s.post(sale, "totalAmount", "70").Body.String())
	try := func(pin string) *httptest.ResponseRecorder {
		fields.Set("pin", pin)
		return s.panelShop.post(roleOwner, unlockPath, fields)
	}
	for i := range pinTries - 1 {
		s.want("wrong", try(fmt.Sprint("48021", i)), http.StatusUnprocessableEntity, "")
	}
	if w := try(testPIN); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), sale+"/") {
		t.Errorf("right: %d %s", w.Code, w.Header().Get("Location"))
	}
	s.beLocked()
	for i := range pinTries - 1 { // counted anew
		if page := s.want("wrong", try(fmt.Sprint("48021", i)), http.StatusUnprocessableEntity, ""); !strings.Contains(page, "El PIN no es correcto") {
			t.Errorf("the page is\n%s", page)
		}
		s.restart()
	}
	w := try("480219")
	page := s.want("the last", w, http.StatusUnauthorized, "")
	if kept := hidden(page); !strings.Contains(page, "<h1>Entrar</h1>") || kept.Get(keptPath) != sale || kept.Get(keptField+"totalAmount") != "70" {
		t.Errorf("the page after the last is\n%s", page)
	}
	if c := w.Result().Cookies(); len(c) != 1 || c[0].MaxAge >= 0 || s.stored() != nil {
		t.Errorf("the session is not over: %v", c)
	}
	after := s.want("the right one afterwards", try(testPIN), http.StatusUnauthorized, "")
	if kept := hidden(after); kept.Get(keptPath) != sale || kept.Get(keptField+"totalAmount") != "70" || strings.Contains(after, testPIN) {
		t.Errorf("where the session ended elsewhere the form is lost, or the PIN is shown\n%s", after)
	}
	s.want("a page", s.get("/panel/clientes"), http.StatusSeeOther, withQuery("/panel/entrar", []pair{{"ir", "/panel/clientes"}}))
	s.panelShop.shop.ok(s.panelShop.api.logins.flush(t.Context(), s.panelShop.shop.clock, true))
	for action, want := range map[string]string{auditSessionEnded: "User  session.ended []", auditSessionRefused: "tries"} {
		if got := s.panelShop.shop.audited(auditFilter{action: action}); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("the log has %v, want %s", got, want)
		}
	}
}

// TestLockTriesTogether: tries that come at once are counted one by one.
func TestLockTriesTogether(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	s.beLocked()
	var together sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for i := range 4 * pinTries {
		together.Go(func() {
			fields := url.Values{orgField: {"cafe-luna"}, "pin": {fmt.Sprint(480210 + i)}}
			w := s.panelShop.send(roleOwner, "POST", unlockPath, fields)
			mu.Lock()
			defer mu.Unlock()
			answers[w.Code]++
		})
	}
	together.Wait()
	same(t, "answers", answers, map[int]int{http.StatusUnprocessableEntity: pinTries - 1, http.StatusUnauthorized: 3*pinTries + 1})
	if s.stored() != nil {
		t.Error("the session goes on")
	}
}

// TestLockPINChanged: whoever finds the till open can neither change nor remove a PIN without
// it: five wrong ones end the session there, too.
func TestLockPINChanged(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	is := func(pin string) bool {
		right, err := s.stored().PIN.matches(pin)
		return err == nil && right
	}
	const next = "805317"
	s.want("without the old one", s.post(pinPath, "pin", next, "pinAgain", next), http.StatusUnprocessableEntity, "")
	s.want("with a wrong one", s.post(pinPath, "oldPin", "480215", "pin", next, "pinAgain", next), http.StatusUnprocessableEntity, "")
	s.want("removed with a wrong one", s.post(pinPath+"/quitar", "dropPin", "480215"), http.StatusUnprocessableEntity, "")
	if !is(testPIN) || s.stored().Tries != 3 {
		t.Errorf("another PIN, or %d tries", s.stored().Tries)
	}
	s.want("changed", s.post(pinPath, "oldPin", testPIN, "pin", next, "pinAgain", next), http.StatusSeeOther, "/panel/cuenta")
	if !is(next) || s.stored().Tries != 0 {
		t.Errorf("not the new PIN, or %d tries", s.stored().Tries)
	}
	if page := s.panelShop.open(roleOwner, "/panel/cuenta").Body.String(); !strings.Contains(page, "Esta sesión tiene PIN") {
		t.Errorf("the account is\n%s", page)
	}
	s.want("removed", s.post(pinPath+"/quitar", "dropPin", next), http.StatusSeeOther, "/panel/cuenta")
	if s.stored().hasPIN() {
		t.Error("there is a PIN")
	}
	s.havePIN()
	for range pinTries - 1 {
		s.want("wrong", s.post(pinPath+"/quitar", "dropPin", "480215"), http.StatusUnprocessableEntity, "")
	}
	s.want("the last", s.post(pinPath, "oldPin", "480215", "pin", next, "pinAgain", next), http.StatusUnauthorized, "")
	if s.stored() != nil {
		t.Error("the session goes on")
	}
}
