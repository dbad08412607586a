package main

import (
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
