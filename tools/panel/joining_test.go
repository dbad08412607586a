package panel

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// Joining: a form on a person's phone, the code that it gives, and what the till makes of it.

const (
	joinForm    = "/u/cafe-luna"
	joinButton  = ".join button"
	enrolButton = ".till button.primary"
	denyButton  = ".till button:not(.primary)"
)

// offerJoining turns joining on.
func (s *shop) offerJoining() {
	s.t.Helper()
	s.configure(func(document map[string]any) {
		settings := document["organization"].(map[string]any)["settings"].(map[string]any)
		settings["cards"] = map[string]any{"join": true, "privacyUrl": "https://cafe.example.com/aviso"}
	})
}

var writtenJoinCode = regexp.MustCompile(`J-[0-9A-Z]{4}-[0-9A-Z]{2}`)

// fillIn sends the form without a browser. It returns the path of the page of the code, and that
// of the till's.
func (s *shop) fillIn(pairs ...string) (phone, till string) {
	s.t.Helper()
	a := s.post("", form{path: joinForm, fields: url.Values{}}.with(pairs...))
	if phone = a.Header.Get("Location"); a.Status != http.StatusSeeOther {
		s.t.Fatalf("%d\n%s", a.Status, a.Body)
	}
	code := writtenJoinCode.FindString(s.send("", "GET", phone, nil).Body)
	return phone, "/panel/caja/" + strings.ReplaceAll(code, "-", "") + "/alta"
}

// asNew and asMaria are what two people fill in: nobody has the contact of the one, and María that
// of the other.
var (
	asNew = []string{"firstName", "María Fernanda", "lastName", "Hernández de la Garza", "phoneNumber", "55 5123 9999",
		"email", "fernanda.hernandez.de.la.garza@example.com", "birthDate", "1990-05-14", "marketing", "true"}
	asMaria = []string{"firstName", "Mariana", "phoneNumber", "55 1234 5678"}
)

// joinViews are the pages that lead to a card; code is the path of the page of a code.
func joinViews(code string) []view {
	return []view{
		{"form to join", func(p *tab) { p.visit(joinForm) }},
		{"form with faults", func(p *tab) {
			p.visit(joinForm).fill("#c-firstName", "Nora").fill("#c-phoneNumber", "123").fill("#c-email", "nora@casa")
			p.eval(`document.querySelector('#c-birthDate').value = '2999-01-01'`, nil)
			p.load(func() { p.click(joinButton) })
		}},
		{"code to join", func(p *tab) { p.visit(code).still() }},
	}
}

// still keeps a page that asks for itself again as it is, to be looked at. axe is against such
// pages because what one does there is lost: on this one there is nothing to do.
func (p *tab) still() {
	p.t.Helper()
	p.eval(`window.stop()`, nil)
}

// filledForm returns the fields of the form, as the page shows them.
func (p *tab) filledForm() (fields map[string]string) {
	p.t.Helper()
	p.eval(`Object.fromEntries(new FormData(document.querySelector('.join')))`, &fields)
	return fields
}

// codeShown returns the code of the page, which a scanner reads too.
func (p *tab) codeShown() string {
	p.t.Helper()
	shown, scanned, refresh := p.text(".card .code"), p.read(p.photo(".card .plate svg")), p.headers["refresh"]
	if !writtenJoinCode.MatchString(shown) || scanned != strings.ReplaceAll(shown, "-", "") || refresh != "15" {
		p.t.Errorf("the page shows %q, scanned %q, and it comes again after %q seconds", shown, scanned, refresh)
	}
	p.fits()
	return scanned
}

// facts returns what the till's page says of who filled in the form.
func (p *tab) facts() (facts []string) {
	p.t.Helper()
	p.eval(`Array.from(document.querySelectorAll('.facts dd')).map(e => e.innerText)`, &facts)
	return facts
}

// wantFaults fails the test unless each of the fields, and no other, has its fault beside it, tied
// to it. The first has the focus.
func (p *tab) wantFaults(faults map[string]string, first string) {
	p.t.Helper()
	var got map[string]string
	p.eval(`Object.fromEntries(Array.from(document.querySelectorAll('[aria-invalid=true]'), e => {
		const fault = document.getElementById(e.getAttribute('aria-describedby')), box = e.getBoundingClientRect(), below = fault.getBoundingClientRect().top - box.bottom
		return [e.name, e.tabIndex === 0 && e.labels.length === 1 && below >= 0 && below < 20 ? fault.innerText : 'not beside it']
	}))`, &got)
	if len(got) != len(faults) || p.status != http.StatusUnprocessableEntity {
		p.t.Errorf("%d, the faults are %q", p.status, got)
	}
	for name, want := range faults {
		if !strings.Contains(got[name], want) {
			p.t.Errorf("%s has the fault %q, want %q", name, got[name], want)
		}
	}
	if p.focus() != "input#c-"+first {
		p.t.Errorf("the focus is on %s", p.focus())
	}
}

// TestJoinWithoutTLS sends the form from a name that is no loopback address, by http: there a browser
// sends no Sec-Fetch-Site.
func TestJoinWithoutTLS(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.offerJoining()
	phone := open(t, strings.Replace(s.Base, "127.0.0.1", "club.test", 1), width(320, 568))
	phone.visit(joinForm).fill("#c-phoneNumber", "55 5123 9999").load(func() { phone.click(joinButton) })
	if code := phone.codeShown(); code == "" {
		t.Errorf("no code on\n%s", phone.text("main"))
	}
}

// TestCardJoined: somebody fills in the form on a phone, first with faults, and shows the code. The
// cashier scans it and enrols them, and the page of the code becomes their card by itself.
func TestCardJoined(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.offerJoining()
	before := s.customers()
	phone := open(t, s.Base, width(320, 568))
	phone.visit(joinForm).fits()
	phone.load(func() { phone.click(joinButton) })
	phone.wantFaults(map[string]string{"phoneNumber": "Hace falta un teléfono o un email"}, "phoneNumber")
	phone.fill("#c-firstName", "Nora").fill("#c-phoneNumber", "123").fill("#c-email", "nora@casa").click(".tick")
	phone.eval(`document.querySelector('#c-birthDate').value = '1990-05-14'`, nil)
	phone.load(func() { phone.click(joinButton) }).fits()
	phone.wantFaults(map[string]string{"phoneNumber": "no es válido", "email": "no es válido"}, "phoneNumber")
	want := map[string]string{"firstName": "Nora", "lastName": "", "phoneNumber": "123", "email": "nora@casa", "birthDate": "1990-05-14", "marketing": "true"}
	for name, typed := range phone.filledForm() {
		if typed != want[name] {
			t.Errorf("%s has become %q", name, typed)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("the form lost %q", want)
	}
	phone.fill("#c-email", "").fill("#c-phoneNumber", "55 5123 9999").load(func() { phone.typed("\r") })
	code := phone.codeShown()
	if got := s.customers(); got != before {
		t.Errorf("the form alone made %d customers", got-before)
	}
	p := s.as("cashier")
	p.visit("/panel/caja").load(func() { p.typed(code + "\r") })
	if facts := strings.Join(p.facts(), "|"); facts != "Nora|–|+525551239999|–|14 may 1990|Sí" || p.has(".note.warn") || p.has(denyButton) {
		t.Errorf("the till says %q\n%s", facts, p.text("main"))
	}
	phone.load(func() {
		p.load(func() { p.click(enrolButton) })
	})
	for phone.headers["refresh"] != "" {
		phone.load(func() {})
	}
	if got := phone.text("h1"); got != "Hola, Nora" || s.customers() != before+1 {
		t.Errorf("the phone says %q, and there are %d customers more", got, s.customers()-before)
	}
	if want := "/panel/caja/" + s.customer("Nora"); !strings.HasPrefix(p.address(), want) {
		t.Errorf("the enrolment leads to %s", p.address())
	}
	if p.visit("/panel/caja").load(func() { p.typed(code + "\r") }); !strings.Contains(p.text("main"), "No hay nadie con "+code) {
		t.Errorf("the code is used, and leads to\n%s", p.text("main"))
	}
}

// TestCardOfKnown: the cashier is shown, masked, who has the contact of a form already, and says
// whether that is who is there. If not, the code is of no use to anybody, and nothing of the
// customer is changed.
func TestCardOfKnown(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.offerJoining()
	maria, before := s.customer("María"), s.customers()
	detail := func() string {
		return s.send("", "GET", "/api/v1/customers/"+maria, nil, "Authorization", "Bearer "+s.Key).Body
	}
	untouched := detail()
	for _, one := range []struct {
		button string
		status int64
		says   string
	}{{denyButton, http.StatusNotFound, "Esta tarjeta ya no vale"}, {enrolButton, http.StatusOK, "Hola, María"}} {
		page, till := s.fillIn(asMaria...)
		phone := open(t, s.Base, width(320, 568)).visit(page)
		code := phone.codeShown()
		p := s.as("cashier", width(320, 568))
		p.visit("/panel/caja").load(func() { p.typed(code + "\r") })
		known := p.text(".note.warn")
		if at, _, _ := strings.Cut(p.address(), "?"); at != till || !strings.Contains(known, "5678") || !strings.Contains(known, "María G") || strings.Contains(known, "1234") {
			t.Errorf("%s says %q", at, known)
		}
		p.fits()
		p.load(func() { p.click(one.button) })
		if !strings.HasPrefix(p.address(), "/panel/caja/"+maria) {
			t.Errorf("the cashier is led to %s", p.address())
		}
		if phone.reload(); phone.status != one.status || phone.text("h1") != one.says {
			t.Errorf("after %s the phone's page is %d:\n%s", one.button, phone.status, phone.text("main"))
		}
		if now := detail(); one.button == denyButton && now != untouched {
			t.Errorf("María was\n%s\nand is\n%s", untouched, now)
		}
		if p.visit(till); p.status != http.StatusNotFound {
			t.Errorf("the used code is %d", p.status)
		}
	}
	if got := s.customers(); got != before {
		t.Errorf("%d customers more", got-before)
	}
}

// TestCardAtTill opens the till's page of a code, of somebody new and of a customer, in both
// languages and all looks, and looks for what TestPages looks for.
func TestCardAtTill(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.offerJoining()
	_, fresh := s.fillIn(asNew...)
	_, known := s.fillIn(asMaria...)
	for _, lang := range []string{"es", "en"} {
		s.speak("cashier", lang)
		t.Run(lang, func(t *testing.T) {
			for _, one := range looks {
				t.Run(one.String(), func(t *testing.T) {
					t.Parallel()
					p := s.of(t).as("cashier", width(one.width, one.height), media("prefers-color-scheme", one.theme), withAxe)
					for _, v := range tillJoinViews(fresh, known) {
						t.Run(v.name, func(t *testing.T) {
							p.during(t, func() { p.panelPage(v, one) })
						})
					}
				})
			}
		})
	}
}

// tillJoinViews are the till's pages of two codes.
func tillJoinViews(fresh, known string) []view {
	return []view{
		{"code at the till", func(p *tab) { p.visit(fresh) }},
		{"customer's code at the till", func(p *tab) { p.visit(known) }},
	}
}
