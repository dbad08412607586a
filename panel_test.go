package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
)

// A panelShop is a shop with the panel, and browsers that are logged in.
type panelShop struct {
	shop   *shop
	api    *api
	panel  *panel
	tokens map[role]string
	users  map[role]id
	made   int // tokens of forms
}

const panelBase = "http://127.0.0.1:8080"

// newPanelShop returns a shop with a user of each role, who is called as the role is.
func newPanelShop(t testing.TB, with setup) *panelShop {
	return newPanelShopOn(newShop(t, with))
}

func newPanelShopOn(of *shop) *panelShop {
	s := newPanelOn(of)
	for _, r := range roles {
		s.tokens[r] = s.member(r)
	}
	return s
}

// newPanelOn returns a shop with the panel, without users.
func newPanelOn(of *shop) *panelShop {
	s := &panelShop{shop: of, tokens: map[role]string{}, users: map[role]id{}}
	s.api = newAPI(s.shop.engine, nil, slog.New(slog.DiscardHandler))
	s.panel = thePanel(s.api, panelAddress{}, usualSessionLimits())
	s.api.panel = s.panel
	s.panel.random = func() string {
		s.made++
		return fmt.Sprintf("TOKEN%011d", s.made)
	}
	return s
}

// member makes a user with a role, and returns the token of a session.
func (s *panelShop) member(r role) string {
	return must(s.shop, func(t *txn) (string, error) {
		u := &user{Password: passwordHash{1, make([]byte, 16), make([]byte, 32), t.now}, Email: string(r) + "@example.com", Name: strings.ToUpper(string(r[:1])) + string(r[1:])}
		if err := t.people.addUser(u); err != nil {
			return "", err
		}
		s.users[r] = u.ID
		if err := t.people.addMember(u.ID, &membership{Role: r, Since: t.now, By: creator{Type: byCommand}}); err != nil {
			return "", err
		}
		return t.people.startSession(u.ID, sessionFull, &arrival{Source: netip.MustParseAddr("127.0.0.1")})
	})
}

// speaks sets the language of a member; "" is the organization's.
func (s *panelShop) speaks(as role, lang string) {
	must(s.shop, func(t *txn) (any, error) {
		u, err := userByID(t.Tx, s.users[as])
		if err != nil || u == nil {
			return nil, err
		}
		u.Language = lang
		return nil, t.people.saveUser(u)
	})
}

// get opens a page as a member; "" is nobody.
func (s *panelShop) get(as role, path string) *httptest.ResponseRecorder {
	return s.send(as, "GET", path, nil)
}

// post sends a form as a member's browser does.
func (s *panelShop) post(as role, path string, fields url.Values) *httptest.ResponseRecorder {
	if fields.Get(orgField) == "" {
		fields.Set(orgField, "cafe-luna")
	}
	if fields.Get(tokenField) == "" {
		fields.Set(tokenField, s.panel.random())
	}
	if fields.Get("factorCode") == offeredHere {
		fields.Set("factorCode", s.offeredCode(as, fields.Get(tokenField)))
	}
	return s.send(as, "POST", path, fields)
}

// file gets a file by the form that has it; fields are those of the address's query.
func (s *panelShop) file(as role, address string) *httptest.ResponseRecorder {
	path, query, _ := strings.Cut(address, "?")
	fields, _ := url.ParseQuery(query)
	return s.post(as, path, fields)
}

// send sends a request as a member's browser does; headers are names and values by turns.
func (s *panelShop) send(as role, method, path string, fields url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, panelBase+path, strings.NewReader(fields.Encode()))
	if token := s.tokens[as]; token != "" {
		r.AddCookie(&http.Cookie{Name: s.panel.address.cookieName(), Value: token})
	}
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", panelBase)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := answerTo(s.api, r)
	if wrong := misprint.FindString(w.Body.String()); wrong != "" {
		s.shop.Errorf("%s %s shows %q", method, path, wrong)
	}
	return w
}

// misprint is what a page shows of a text that was given a pointer, or another kind of value than it
// has a place for.
var misprint = regexp.MustCompile(`0xc[0-9a-f]{7,}|%![a-zA-Z]?\(`)

// open opens a page, and follows to it with a token.
func (s *panelShop) open(as role, path string) *httptest.ResponseRecorder {
	w := s.get(as, path)
	for w.Code == http.StatusSeeOther && strings.Contains(w.Header().Get("Location"), tokenParam+"=") {
		w = s.get(as, w.Header().Get("Location"))
	}
	return w
}

// TestPanelPages plays the transcripts of testdata/panel on each store, and compares the pages.
// A step is
//
//	world              in a formWorld, with its names; before all steps
//	tickets            in an organization that has tickets; before all steps
//	as ROLE [LANGUAGE] from now on; nobody: without a session; browser: with that of the last log-in
//	GET PATH           or POST PATH, with a line NAME=VALUE for each field
//	=> STATUS [WHERE]  what came of it, and the page's main part up to the next blank line
//
// A {name} in a path or a value is an id of the last redirect: {last}, the last one of its path,
// {customer} of the till, {person}, {sale}.
func TestPanelPages(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "panel", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			with := panelSetup
			if strings.Contains(string(text), "\ntickets\n") {
				with.settings = ticketSettings
			}
			p := &panelTranscript{panelShop: newPanelShop(t, with), names: map[string]string{}}
			if strings.Contains(string(text), "\nworld\n") {
				w := newFormWorld(t)
				p = &panelTranscript{panelShop: w.panelShop, names: w.names}
			}
			got := p.play(string(text))
			if got == string(text) {
				return
			}
			if *updateGolden {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Error(diff.Diff(strings.Split(string(text), "\n"), strings.Split(got, "\n")))
		})
	}
}

var panelSetup = setup{
	program: `"currency":"Lunas","rules":[{"key":"base","name":"1 punto por cada $10","per":{"amount":10,"points":1}}],"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":1000}]`,
	also: `"rewards":[{"key":"espresso","name":"Espresso","program":"club","pointsCost":80},
		{"key":"vale","name":"Vale de $50","program":"club","pointsCost":100,"fulfilment":"Voucher","validDays":30,"effect":{"type":"Amount","amount":50}}]`,
}

type panelTranscript struct {
	panelShop *panelShop
	as        role
	names     map[string]string
}

var keptName = regexp.MustCompile(`\{(\w+)\}`)

// play runs the steps of a transcript and returns it with what came of them.
func (p *panelTranscript) play(text string) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		fmt.Fprintln(&out, line)
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "as":
			who, lang, _ := strings.Cut(rest, " ")
			p.as = role(strings.TrimPrefix(who, "nobody"))
			p.panelShop.speaks(p.as, lang)
		case "GET", "POST":
			fields := url.Values{}
			for ; i+1 < len(lines) && word == "POST" && strings.Contains(lines[i+1], "=") && !strings.HasPrefix(lines[i+1], "=>"); i++ {
				name, value, _ := strings.Cut(lines[i+1], "=")
				fields.Set(name, strings.ReplaceAll(p.filled(value), `\n`, "\r\n"))
				fmt.Fprintln(&out, lines[i+1])
			}
			for i+1 < len(lines) && lines[i+1] != "" { // what came of it before
				i++
			}
			p.step(&out, word, p.filled(rest), fields)
		}
	}
	return out.String()
}

func (p *panelTranscript) filled(text string) string {
	return keptName.ReplaceAllStringFunc(text, func(m string) string { return p.names[m[1:len(m)-1]] })
}

// step sends a request and writes what came of it.
func (p *panelTranscript) step(out *strings.Builder, method, path string, fields url.Values) {
	w := p.panelShop.open(p.as, path)
	if method == "POST" {
		w = p.panelShop.post(p.as, path, fields)
	}
	for _, c := range w.Result().Cookies() {
		if c.Name == p.panelShop.panel.address.cookieName() && p.as == "" {
			p.panelShop.tokens["browser"] = c.Value
		}
	}
	where := w.Header().Get("Location")
	fmt.Fprintln(out, strings.TrimSpace(fmt.Sprintln("=>", w.Code, where)))
	at, _ := url.Parse(where)
	if where == "" {
		at = new(url.URL)
	}
	parts := strings.Split(at.Path, "/")
	if where != "" {
		p.names["last"] = parts[len(parts)-1]
	}
	for of, name := range map[string]string{"caja": "customer", "clientes": "person", "venta": "sale"} {
		if i := slices.Index(parts, of); i >= 0 && i+1 < len(parts) {
			p.names[name] = parts[i+1]
		}
	}
	if body := w.Body.String(); body != "" {
		fmt.Fprintln(out, mainOf(body))
	}
}

// mainOf is the main part of a page without blank lines and indents.
func mainOf(page string) string {
	_, main, ok := strings.Cut(page, `tabindex="-1">`)
	if !ok {
		return page
	}
	main, _, _ = strings.Cut(main, "</main>")
	var kept []string
	for line := range strings.SplitSeq(main, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// TestPanelMatrix opens every page and sends every form as every role, and as nobody. What
// the table of permissions grants decides: nobody is led to the log-in.
// Panel check 51.
func TestPanelMatrix(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	s := newPanelShop(t, panelSetup)
	params := regexp.MustCompile(`\{\w+\}`)
	nothing := id{0xff}.String()
	for _, p := range panelPages() {
		path := params.ReplaceAllString(p.path, nothing)
		for _, as := range append(slices.Clone(roles), "") {
			w := s.open(as, path)
			s.checkAllowed("GET "+p.path, as, p.need, w)
		}
	}
	for _, f := range panelForms() {
		path := params.ReplaceAllString(f.path, nothing)
		for _, as := range append(slices.Clone(roles), "") {
			before := s.shop.entries()
			w := s.post(as, path, url.Values{})
			s.checkAllowed("POST "+f.path, as, f.need, w)
			if w.Code >= 400 && f.run == nil && !reflect.DeepEqual(before, s.shop.entries()) {
				t.Errorf("POST %s as %q: %d, and the store has changed", f.path, as, w.Code)
			}
		}
	}
}

func (s *panelShop) checkAllowed(what string, as role, need permission, w *httptest.ResponseRecorder) {
	s.shop.Helper()
	granted := need == everyone || as != "" && (need == anyone || as.may(need) != grantNone)
	toLogIn := strings.HasPrefix(w.Header().Get("Location"), "/panel/entrar")
	refused := w.Code == http.StatusForbidden || w.Code == http.StatusUnauthorized || toLogIn
	switch {
	case !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") && w.Code != http.StatusSeeOther && w.Header().Get("Content-Disposition") == "":
		s.shop.Errorf("%s as %q: %d is no page", what, as, w.Code)
	case w.Code >= 500:
		s.shop.Errorf("%s as %q: %d", what, as, w.Code)
	case as == "" && need != everyone && !refused, as != "" && toLogIn:
		s.shop.Errorf("%s as %q: %d %s", what, as, w.Code, w.Header().Get("Location"))
	case as != "" && !granted && w.Code != http.StatusForbidden:
		s.shop.Errorf("%s as %q: %d, want 403", what, as, w.Code)
	case granted && as.may(need) == grantAll && w.Code == http.StatusForbidden:
		s.shop.Errorf("%s as %q: 403, though it is granted", what, as)
	}
}

// TestPanelOrigin: a form counts only if it comes from a page of this address, for the
// organization in use, with a token.
// Panel checks 15 and 34.
func TestPanelOrigin(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	c := s.shop.customer("ana")
	for name, change := range map[string]func(*http.Request, url.Values){
		"neither Origin nor Sec-Fetch-Site": func(r *http.Request, _ url.Values) { r.Header.Del("Origin"); r.Header.Del("Sec-Fetch-Site") },
		"cross-site":                        func(r *http.Request, _ url.Values) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"same-site":                         func(r *http.Request, _ url.Values) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"another origin": func(r *http.Request, _ url.Values) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "http://evil.test")
		},
		"origin null":          func(r *http.Request, _ url.Values) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "null") },
		"another organization": func(_ *http.Request, f url.Values) { f.Set(orgField, "otra") },
		"no token":             func(_ *http.Request, f url.Values) { f.Del(tokenField) },
		"a field twice":        func(_ *http.Request, f url.Values) { f.Add("totalAmount", "10") },
		"JSON":                 func(r *http.Request, _ url.Values) { r.Header.Set("Content-Type", "application/json") },
		"multipart":            func(r *http.Request, _ url.Values) { r.Header.Set("Content-Type", "multipart/form-data; boundary=a") },
		"another host":         func(r *http.Request, _ url.Values) { r.Host = "evil.test" },
	} {
		before := s.shop.entries()
		fields := url.Values{orgField: {"cafe-luna"}, tokenField: {"TOKEN0123456789A"}, "totalAmount": {"100"}}
		r := httptest.NewRequest("POST", panelBase+"/panel/caja/"+c.String()+"/venta", nil)
		r.AddCookie(&http.Cookie{Name: s.panel.address.cookieName(), Value: s.tokens[roleOwner]})
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", panelBase)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		change(r, fields)
		body := httptest.NewRequest("POST", panelBase, strings.NewReader(fields.Encode()))
		r.Body, r.ContentLength = body.Body, body.ContentLength
		if w := answerTo(s.api, r); w.Code < 400 || w.Code >= 500 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %s", name, w.Code, w.Header().Get("Content-Type"))
		}
		if !reflect.DeepEqual(before, s.shop.entries()) {
			t.Errorf("%s: the store has changed", name)
		}
	}
}

// TestPanelOwnOrigin: where the panel's address is known, forms come from it to the letter.
func TestPanelOwnOrigin(t *testing.T) {
	t.Parallel()
	v := &panelRequest{panel: &panel{address: panelAddress{&url.URL{Scheme: "https", Host: "puntos.tienda.mx"}}}}
	for _, test := range []struct {
		reason       string
		origin, site []string
		want         bool
	}{
		{"the panel's", []string{"https://puntos.tienda.mx"}, []string{"same-origin"}, true},
		{"a browser without Sec-Fetch-Site", []string{"https://puntos.tienda.mx"}, nil, true},
		{"without Origin", nil, []string{"same-origin"}, false},
		{"neither", nil, nil, false},
		{"another scheme", []string{"http://puntos.tienda.mx"}, []string{"same-origin"}, false},
		{"another port", []string{"https://puntos.tienda.mx:8443"}, []string{"same-origin"}, false},
		{"another letter case", []string{"https://Puntos.tienda.mx"}, nil, false},
		{"a neighbour", []string{"https://otra.tienda.mx"}, []string{"same-site"}, false},
		{"its own word for it", []string{"https://puntos.tienda.mx"}, []string{"cross-site"}, false},
		{"two", []string{"https://puntos.tienda.mx", "https://evil.test"}, nil, false},
		{"null", []string{"null"}, nil, false},
	} {
		v.r = httptest.NewRequest("POST", "https://puntos.tienda.mx/panel/salir", nil)
		v.r.Header["Origin"], v.r.Header["Sec-Fetch-Site"] = test.origin, test.site
		if got := v.fromPanel(); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
	}
}

// TestPanelHosts: which hosts the panel of this machine answers.
func TestPanelHosts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "localhost:8080": true, "127.0.0.1:8080": true, "127.0.0.2": true, "[::1]": true, "[::1]:8080": true,
		"": false, "evil.test": false, "[::2]": false, "192.168.1.10:8080": false, "localhost.evil.test": false, "[evil.test]": false,
	} {
		if got := (panelAddress{}).allows(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

// TestPanelAskedTooMuch: a session gets at most 600 answers in any minute. Another one is not
// held up.
func TestPanelAskedTooMuch(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	s := newPanelShop(t, panelSetup)
	const path = "/panel/cuenta?f=TOKEN0123456789A"
	asks := func() (n int) {
		for ; n <= 2*askedBurst; n++ {
			w := s.get(roleOwner, path)
			if w.Code == http.StatusTooManyRequests {
				if body := w.Body.String(); w.Header().Get("Retry-After") != "1" || !strings.Contains(body, "Vuelve a intentarlo en 1 segundo.") || strings.Contains(body, "Owner") {
					t.Errorf("Retry-After %q\n%s", w.Header().Get("Retry-After"), body)
				}
				break
			}
			if w.Code != http.StatusOK {
				t.Fatal(w.Code, w.Body)
			}
		}
		return n
	}
	minute := asks()
	for range 60 {
		s.shop.pass(time.Second)
		minute += asks()
	}
	if minute != askedBurst+60_000/askedEvery || minute > 600 {
		t.Errorf("%d answers in a minute", minute)
	}
	if w := s.get(roleManager, path); w.Code != http.StatusOK {
		t.Errorf("another session: %d", w.Code)
	}
}

// TestPanelEscapedPath: where the panel leads back to the page that was asked for, the path is
// as it was asked for.
func TestPanelEscapedPath(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	for path, want := range map[string]string{
		"/panel/caja/a%2Fb": "/panel/caja/a%2Fb?f=", "/panel/caja/%3Fx%3D1": "/panel/caja/%3Fx%3D1?f=", "/panel/caja/%C3%B1": "/panel/caja/%C3%B1?f=",
	} {
		if w := s.get(roleOwner, path); !strings.HasPrefix(w.Header().Get("Location"), want) {
			t.Errorf("%s: %d to %s", path, w.Code, w.Header().Get("Location"))
		}
		v := &panelRequest{panel: s.panel}
		if got := v.panel.placeAfter(path); got != path {
			t.Errorf("after a log-in %s becomes %s", path, got)
		}
	}
}

// TestPanelRedemptionOfPath: a form on a redemption under a customer's path, or with the code of
// another one, finds nothing.
func TestPanelRedemptionOfPath(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	ana, _ := parseID(w.names["customerId"])
	other, err := w.panelShop.shop.redeem(ana, "vale")
	w.panelShop.shop.ok(err)
	before := w.panelShop.shop.entries()
	for _, path := range []string{
		"/panel/caja/{luz}/canje/{redemptionId}/uso", "/panel/caja/{luz}/canje/{redemptionId}/deshacer",
		"/panel/caja/{customerId}/canje/" + other.ID.String() + "/uso", "/panel/canjes/" + other.ID.String() + "/uso",
	} {
		if answer := w.panelShop.post(roleOwner, w.filled(path), url.Values{"code": {w.names["code"]}}); answer.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, answer.Code)
		}
	}
	same(t, "the store", w.panelShop.shop.entries(), before)
}

// TestPanelOnce: the same form again does nothing more and leads to the same page; with other
// fields it is refused, and the page says where the first one led.
func TestPanelOnce(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	c := s.shop.customer("ana")
	path := "/panel/caja/" + c.String() + "/venta"
	form := func(amount string) url.Values {
		return url.Values{tokenField: {"TOKEN0123456789A"}, "totalAmount": {amount}}
	}
	first := s.post(roleCashier, path, form("100"))
	again := s.post(roleCashier, path, form("100"))
	other := s.post(roleCashier, path, form("200"))
	where := first.Header().Get("Location")
	if first.Code != http.StatusSeeOther || again.Code != http.StatusSeeOther || where != again.Header().Get("Location") {
		t.Errorf("%d %s, then %d %s", first.Code, where, again.Code, again.Header().Get("Location"))
	}
	if other.Code != http.StatusConflict || !strings.Contains(html.UnescapeString(other.Body.String()), where) || strings.Contains(other.Body.String(), "TOKEN0123456789A") {
		t.Errorf("with other fields: %d\n%s", other.Code, other.Body)
	}
	if n := ask(s.shop, (*txn).count).Sales; n != 1 {
		t.Errorf("%d sales", n)
	}
	// Another member, or another form, has another name.
	if w := s.post(roleOwner, path, form("100")); w.Header().Get("Location") == where {
		t.Error("another member's form was taken for this one")
	}
}

// TestPanelUnknown checks that the panel has an HTML page for what is not there, also where a
// path is not as ServeMux would have it.
// Panel check 22.
func TestPanelUnknown(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	for _, path := range []string{"/panel/nada", "/panel/clientes/", "/panel//clientes", "/panel/./caja", "/panel/caja/../clientes"} {
		for _, as := range []role{"", roleOwner} {
			w := s.get(as, path)
			if w.Code != http.StatusNotFound || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || w.Header().Get("Content-Security-Policy") == "" {
				t.Errorf("%s as %q: %d %v", path, as, w.Code, w.Header())
			}
		}
	}
	if w := s.get(roleOwner, "/nada/"); w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("beside the panel: %v", w.Header())
	}
}

// TestPanelAtRoot: who types the server's address into a browser comes to the panel. A client of
// the API, and a server without a panel, have nothing at /.
func TestPanelAtRoot(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, tt := range []struct {
		method, accept string
		panel          bool
		status         int
	}{
		{"GET", browser, true, http.StatusSeeOther}, {"HEAD", browser, true, http.StatusSeeOther},
		{"POST", browser, true, http.StatusNotFound}, {"GET", "*/*", true, http.StatusNotFound},
		{"GET", "application/json", true, http.StatusNotFound}, {"GET", "", true, http.StatusNotFound},
		{"GET", browser, false, http.StatusNotFound},
	} {
		if s.api.panel = nil; tt.panel {
			s.api.panel = s.panel
		}
		r := httptest.NewRequest(tt.method, "/", nil)
		r.Host = "localhost"
		r.Header.Set("Accept", tt.accept)
		w := httptest.NewRecorder()
		s.api.ServeHTTP(w, r)
		to := w.Header().Get("Location")
		if w.Code != tt.status || (to == "/panel") != (tt.status == http.StatusSeeOther) {
			t.Errorf("%+v: %d, to %q", tt, w.Code, to)
		}
	}
}

// TestPanelHSTS: pages tell browsers to stay with TLS where the server is told to say so.
func TestPanelHSTS(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	for _, on := range []bool{false, true} {
		s.panel.hsts = on
		if got := s.get(roleOwner, "/panel").Header().Get("Strict-Transport-Security"); (got == "max-age=31536000") != on {
			t.Errorf("%v: %q", on, got)
		}
	}
}

// TestPanelPlainHeaders checks that the policy of openers goes only where browsers follow it.
func TestPanelPlainHeaders(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"": "same-origin", "https://tienda.test": "same-origin", "http://127.0.0.1:8080": "same-origin", "http://tienda.test": ""} {
		var at panelAddress
		if address != "" {
			at.url, _ = url.Parse(address)
		}
		h := http.Header{}
		setPanelHeaders(h, at.isPlain())
		if got := h.Get("Cross-Origin-Opener-Policy"); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}

// A failingStore fails to read while there is an error.
type failingStore struct {
	Store
	err error
}

func (s *failingStore) View(ctx context.Context, fn func(Tx) error) error {
	if s.err != nil {
		return s.err
	}
	return s.Store.View(ctx, fn)
}

// TestPanelFailing: where the server fails, has no time, or has been asked too much, the answer
// is a page with the headers of all others, and says nothing of the cause.
// Panel check 19.
func TestPanelFailing(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	want := http.Header{"Cache-Control": {"no-store"}, "Content-Type": {"text/html; charset=utf-8"}}
	setPanelHeaders(want, false)
	store := &failingStore{Store: s.shop.engine.store.Store}
	s.shop.engine.store.Store = store
	defer func() { s.shop.engine.store.Store = store.Store }()
	for _, test := range []struct {
		err    error
		status int
	}{
		{nil, http.StatusOK}, {errors.New("the disk says /var/lib"), http.StatusInternalServerError}, {errUnavailable, http.StatusServiceUnavailable}, {nil, http.StatusTooManyRequests},
	} {
		store.err = test.err
		answers := map[string]*httptest.ResponseRecorder{"page": s.get(roleOwner, "/panel/cuenta/sesiones?f=TOKEN0123456789A")}
		for n := 0; test.status == http.StatusTooManyRequests && answers["page"].Code == http.StatusOK && n <= askedBurst; n++ {
			answers["page"] = s.get(roleOwner, "/panel/cuenta/sesiones?f=TOKEN0123456789A")
		}
		if test.status != http.StatusOK {
			answers["form"] = s.post(roleOwner, "/panel/cuenta", url.Values{"name": {"Ana"}})
		}
		for what, w := range answers {
			if w.Code != test.status || strings.Contains(w.Body.String(), "/var/lib") || !strings.Contains(w.Body.String(), "<html lang=") {
				t.Errorf("%s: %d, want %d\n%s", what, w.Code, test.status, w.Body)
			}
			for name := range want {
				if got := w.Header().Get(name); got != want.Get(name) {
					t.Errorf("%s, %d: %s is %q, want %q", what, w.Code, name, got, want.Get(name))
				}
			}
			if w.Header().Get("X-Request-Id") == "" {
				t.Errorf("%s, %d: no X-Request-Id", what, w.Code)
			}
		}
	}
}

var (
	keptFactForm = regexp.MustCompile(`<dt>(.*?)</dt><dd>(.*?)</dd>`)
	tagForm      = regexp.MustCompile(`<[^>]*>`)
	shownID      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}`)
)

// TestKeptForms: whichever form is kept, the pages that come before it show no field's name and no
// id; who is logged in sees whom and what it is about by their names.
func TestKeptForms(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{"es", "en"} {
		for _, f := range panelForms() {
			g := goodForms[f.path]
			if slices.Contains(carriers, f.path) || slices.Contains(openLocked, f.path) || slices.Contains(secretsOf(g.post), true) || g.as != "" {
				continue
			}
			w := newFormWorld(t)
			w.panelShop.speaks(roleOwner, lang)
			if g.prepare != nil {
				g.prepare(w)
			}
			path, fields := w.filled(f.path), w.fields(&g)
			fields.Set("loyaltyProgramId", w.names["programId"])
			fields.Set("unknown", "secretly")
			prove := url.Values{keptPath: {path}, "password": {"mal"}}
			for name := range fields {
				prove.Set(keptField+name, fields.Get(name))
			}
			pages := map[string]string{"log-in": w.panelShop.post("", path, maps.Clone(fields)).Body.String(), "password": w.panelShop.post(roleOwner, provePath, prove).Body.String()}
			w.havePIN()
			w.beLocked()
			pages["lock"] = w.panelShop.post(roleOwner, path, maps.Clone(fields)).Body.String()
			for which, page := range pages {
				main := mainOf(page)
				if !strings.Contains(main, keptPath) || !strings.Contains(main, `<h2>`) {
					t.Errorf("%s: %s: the form is not kept and told of\n%s", f.path, which, main)
				}
				text := tagForm.ReplaceAllString(main, " ")
				if shownID.MatchString(text) || strings.Contains(text, "secretly") {
					t.Errorf("%s: %s shows an id, or a field that nobody saw\n%s", f.path, which, text)
				}
				for _, m := range keptFactForm.FindAllStringSubmatch(main, -1) {
					if name := html.UnescapeString(m[1]); fields.Has(name) || slices.Contains([]string{"some", "all", "never", "date", "1h", "totalSpent", "cashier"}, m[2]) || strings.ContainsAny(name, "[]_.") {
						t.Errorf("%s: %s shows %s", f.path, which, m[0])
					}
				}
				if which == "password" && (!strings.Contains(main, "<dd>Club Luna</dd>") || strings.Contains(f.path, "{customerId}") && !strings.Contains(main, "<dd>Ana García</dd>")) {
					t.Errorf("%s: %s names nobody\n%s", f.path, which, main)
				}
			}
		}
	}
}

// TestKeptOnes: what was typed is shown as it was typed, though it is what boxes are sent with.
func TestKeptOnes(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	w.havePIN()
	w.beLocked()
	page := func(path string, fields url.Values) string {
		return mainOf(w.panelShop.post(roleOwner, w.filled(path), fields).Body.String())
	}
	w.panelShop.wants("a sale", page("/panel/caja/{customerId}/venta", url.Values{"totalAmount": {"1"}, "externalId": {"1"}, "comment": {"1"}, "again": {"1"}, "pay": {"max"}}),
		"<dt>Importe</dt><dd>1</dd>", "<dt>Ticket</dt><dd>1</dd>", "<dt>Comentario</dt><dd>1</dd>", "<dt>Registrar otra vez</dt><dd>sí</dd>", "<dt>Pagar con puntos</dt><dd>sí</dd>")
	reward := page("/panel/recompensas/nueva", url.Values{"name": {"1"}, "validDays": {"1"}, "autoIssue": {"1"}})
	if ones, boxes := strings.Count(reward, "<dd>1</dd>"), strings.Count(reward, "<dd>sí</dd>"); ones != 2 || boxes != 1 {
		t.Errorf("a reward: %d are 1, %d are checked\n%s", ones, boxes, reward)
	}
}

// secretsOf says of each name whether it is a secret's.
func secretsOf(post []string) (list []bool) {
	for i := 0; i < len(post); i += 2 {
		list = append(list, slices.Contains(secretFields, post[i]))
	}
	return list
}

// TestKeptTooLong: of a form that is too long to be kept over a log-in, the page says so.
func TestKeptTooLong(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	for _, fields := range []url.Values{{"document": {strings.Repeat("a", maxForm)}}, {"password": {"secreta"}}} {
		answer := w.panelShop.post("", "/panel/configuracion/documento", fields)
		if page := answer.Body.String(); answer.Code != http.StatusUnauthorized || !strings.Contains(page, "Lo que enviaste no se guardó.") || !strings.Contains(page, `name="email"`) {
			t.Errorf("%d %.2000s", answer.Code, page)
		}
	}
}

// provenForms are the forms that need the password to have been given lately.
var provenForms = []string{
	"/panel/auditoria/exportar", "/panel/configuracion", "/panel/configuracion/documento",
	"/panel/cuenta/segundo-factor", "/panel/cuenta/segundo-factor/codigos", "/panel/cuenta/segundo-factor/quitar",
	"/panel/desarrollo/claves/nueva", "/panel/desarrollo/claves/{keyId}/cambiar", "/panel/desarrollo/claves/{keyId}/renovar", "/panel/desarrollo/claves/{keyId}/revocar",
	"/panel/desarrollo/webhooks/nuevo", "/panel/desarrollo/webhooks/{hook}/cambiar", "/panel/desarrollo/webhooks/{hook}/quitar", "/panel/desarrollo/webhooks/{hook}/repetir", "/panel/desarrollo/webhooks/{hook}/secreto",
	"/panel/equipo/invitaciones/{invitationId}/retirar", "/panel/equipo/nuevo", "/panel/equipo/segundo-factor", "/panel/equipo/{userId}/enlace", "/panel/equipo/{userId}/habilitar",
	"/panel/equipo/{userId}/inhabilitar", "/panel/equipo/{userId}/limite", "/panel/equipo/{userId}/quitar", "/panel/equipo/{userId}/rol", "/panel/equipo/{userId}/sesiones",
	"/panel/estadisticas/csv/{figure}", "/panel/operador/copias", "/panel/operador/verificacion",
	"/panel/programa/{programId}", "/panel/programa/{programId}/nueva", "/panel/programa/{programId}/reglas/{ruleId}", "/panel/programa/{programId}/reglas/{ruleId}/quitar",
	"/panel/recompensas/nueva", "/panel/recompensas/{rewardId}",
	"/panel/segmentos/nuevo", "/panel/segmentos/{segmentId}", "/panel/segmentos/{segmentId}/clientes/csv", "/panel/segmentos/{segmentId}/dar", "/panel/segmentos/{segmentId}/quitar",
}

// TestPanelProvenForms: those forms say so, and no others.
func TestPanelProvenForms(t *testing.T) {
	t.Parallel()
	var found []string
	for _, f := range panelForms() {
		if f.proof {
			found = append(found, f.path)
		}
	}
	slices.Sort(found)
	same(t, "the forms that need a proof", found, provenForms)
}

// A provingShop has an owner, ana, whose browser gave the password more than ten minutes ago.
type provingShop struct {
	*browser
}

func newProvingShop(t *testing.T) *provingShop {
	s := newPeopleShop(t)
	s.shop.person("ana@ejemplo.mx", roleOwner)
	p := &provingShop{browser: s.browser()}
	_, p.cookies["sello"] = s.shop.enters("ana@ejemplo.mx")
	s.shop.pass(proofHolds)
	return p
}

func (p *provingShop) post(path string, fields url.Values) *httptest.ResponseRecorder {
	fields.Set(orgField, "cafe-luna")
	if fields.Get(tokenField) == "" {
		fields.Set(tokenField, p.panelShop.panel.random())
	}
	return p.send("POST", path, fields)
}

// prove gives the password to the page that asks for it, once wrongly.
func (p *provingShop) prove(page string) *httptest.ResponseRecorder {
	p.panelShop.shop.Helper()
	fields := hidden(page)
	fields.Set("password", "mal")
	page = p.want(http.StatusUnprocessableEntity, "", p.send("POST", provePath, fields), "no es correcta")
	fields = hidden(page)
	fields.Set("password", testPassword)
	return p.send("POST", provePath, fields)
}

// TestPanelProvesForms: a form that needs the password and comes without changes nothing. What
// was typed is kept, and is stored once when the password is given.
func TestPanelProvesForms(t *testing.T) {
	t.Parallel()
	p := newProvingShop(t)
	key := url.Values{"name": {"Caja 2"}, accessField: {accessAll}, expiresField: {expiresNever}}
	before := p.panelShop.shop.entries()
	page := p.want(http.StatusForbidden, "", p.post(keysPath+"/nueva", key), "contraseña otra vez", `autocomplete="username" value="ana@ejemplo.mx"`)
	same(t, "the store before the password", p.panelShop.shop.entries(), before)
	key.Set(tokenField, hidden(page).Get(keptField+tokenField))
	p.want(http.StatusOK, "", p.prove(page), "Caja 2")
	same(t, "the log", p.panelShop.shop.audited(auditFilter{action: auditSessionProved}), []string{"User  session.proved []"})

	p.panelShop.shop.pass(proofHolds)
	w := p.send("POST", keysPath+"/nueva", key) // it was stored: where it led can be seen
	if w.Code != http.StatusSeeOther {
		t.Errorf("sent again: %d", w.Code)
	}
	if n := len(ask(p.panelShop.shop, func(t *txn) ([]*apiKey, error) { return t.keys.list() })); n != 1 {
		t.Errorf("%d keys", n)
	}

	// A fault is told before the password is asked for, and what was typed stays.
	delete(key, "name")
	key.Del(tokenField)
	key.Set("rateLimit", "77")
	p.want(http.StatusUnprocessableEntity, "", p.post(keysPath+"/nueva", key), `value="77"`)
}

// TestPanelProvesRepeats: what sends events of the past once more, or shows a secret, needs the
// password.
func TestPanelProvesRepeats(t *testing.T) {
	t.Parallel()
	for _, f := range webhookArea().forms {
		if _, what, _ := strings.Cut(f.path, "{hook}"); (what == "/repetir" || what == "/secreto") != f.proof {
			t.Errorf("%s: the password is asked for: %v", f.path, f.proof)
		}
	}
}

// TestPanelProvesConfig: a change of the configuration is reviewed without the password, and
// applied with it.
func TestPanelProvesConfig(t *testing.T) {
	t.Parallel()
	p := newProvingShop(t)
	path := "/panel/recompensas/" + p.panelShop.shop.config().Rewards[0].ID.String()
	page := p.want(http.StatusOK, "", p.send("GET", path+"?f=TOKEN0123456789A", nil))
	change := url.Values{etagField: {hidden(page).Get(etagField)}, "pointsCost": {"90"}}
	page = p.want(http.StatusOK, "", p.post(path, change), "Esto va a cambiar")
	change.Set(reviewedField, digestForm.FindStringSubmatch(page)[1])
	before := string(p.panelShop.shop.exportedDocument())
	page = p.want(http.StatusForbidden, "", p.post(path, change))
	same(t, "the document before the password", string(p.panelShop.shop.exportedDocument()), before)
	if w := p.prove(page); w.Code != http.StatusSeeOther || p.panelShop.shop.config().Rewards[0].PointsCost != decimalOf(90) {
		t.Errorf("%d, it costs %v", w.Code, p.panelShop.shop.config().Rewards[0].PointsCost)
	}
}

// TestPanelProvesPages: pages with forms to fill in, and files, ask for the password before
// they are shown.
func TestPanelProvesPages(t *testing.T) {
	t.Parallel()
	p := newProvingShop(t)
	confirm := func(path string) string { return withQuery(provePath, []pair{{"ir", path}}) }
	key := must(p.panelShop.shop, func(t *txn) (string, error) {
		k, _, err := t.keys.create(keyRequest{Name: "Caja"})
		return k.ID.String(), err
	})
	for _, path := range []string{
		keysPath + "/nueva", keysPath + "/" + key + "/cambiar", keysPath + "/" + key + "/renovar", keysPath + "/" + key + "/revocar",
		"/panel/equipo/nuevo", "/panel/equipo/" + p.panelShop.users[roleCashier].String(), "/panel/cuenta/segundo-factor",
	} {
		p.want(http.StatusSeeOther, confirm(path), p.send("GET", path, nil))
	}
	for file, want := range map[string]string{auditPath + "/exportar?action=key.created": "key.created,", "/panel/estadisticas/csv/ventas?groupBy=week": "semana,"} {
		path, query, _ := strings.Cut(file, "?")
		fields, _ := url.ParseQuery(query)
		page := p.want(http.StatusForbidden, "", p.post(path, fields), "contraseña otra vez")
		page = p.want(http.StatusOK, "", p.prove(page), `<form method="post" action="`+path+`" data-again>`, "Descargar")
		if w := p.send("POST", path, hidden(page)); w.Code != http.StatusOK || w.Header().Get("Content-Disposition") == "" || !strings.Contains(strings.ToLower(w.Body.String()), want) {
			t.Errorf("%s: %d %s", file, w.Code, w.Body)
		}
		p.want(http.StatusSeeOther, "/panel/equipo/nuevo", p.send("GET", confirm("/panel/equipo/nuevo"), nil)) // it is proved
		p.panelShop.shop.pass(proofHolds)
	}
}
