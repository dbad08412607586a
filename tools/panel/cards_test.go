package panel

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// The pages that customers open: a card, the statement of a month, and the one page of all
// addresses that open nothing.

// customerCards are the paths of two cards: one with something of everything, and one with
// nothing yet; of a code that may become one; and of two tickets, one of which María has claimed.
type customerCards struct{ customer, rich, fresh, code, ticket, claimed string }

// giveCards makes them. María has the first one.
func (s *shop) giveCards() (c customerCards) {
	s.t.Helper()
	c.customer = s.customer("María")
	for i := range 14 {
		s.api("POST", "/transactions", fmt.Sprintf(`{"customerId":"%s","totalAmount":%d,"items":[{"sku":"CAFE-LATTE","price":60,"quantity":1}]}`, c.customer, 60+i), nil)
	}
	s.api("POST", "/transactions", `{"customerId":"`+c.customer+`","totalAmount":600,"items":[{"sku":"GRANO-500","price":300,"quantity":2}]}`, nil)
	var detail struct{ LoyaltyProgramID string }
	s.api("GET", "/customers/"+c.customer, "", &detail)
	s.api("POST", "/points/customers/"+c.customer+"/add", `{"loyaltyProgramId":"`+detail.LoyaltyProgramID+`","amount":300,"expiresAt":"`+time.Now().AddDate(0, 0, 10).Format(time.DateOnly)+`"}`, nil)
	var rewards listed[struct{ ID, Name string }]
	s.api("GET", "/rewards", "", &rewards)
	for _, r := range rewards.Data {
		if r.Name == "Vale de $50" {
			s.api("POST", "/rewards/redeem", `{"customerId":"`+c.customer+`","productId":"`+r.ID+`"}`, nil)
		}
	}
	s.configure(func(document map[string]any) { // nothing is given for an enrolment
		club := document["programs"].([]any)[0].(map[string]any)
		club["rules"] = slices.DeleteFunc(club["rules"].([]any), func(r any) bool { return r.(map[string]any)["on"] == "Signup" })
	})
	s.offerJoining()
	c.code, _ = s.fillIn(asNew...)
	c.rich, c.fresh = s.cardOf(c.customer), s.cardOf(s.enrol("Bruno", "Nuevo", "+525512340000"))
	c.ticket, c.claimed = s.ticket("T-901", ""), s.ticket("T-902", c.customer)
	return c
}

// ticket makes a ticket and returns its path. If a customer is given, it is claimed for that one.
func (s *shop) ticket(externalID, customer string) string {
	s.t.Helper()
	var made struct{ Code, URL string }
	s.api("POST", "/tickets", `{"externalId":"`+externalID+`","totalAmount":1234.5}`, &made)
	if customer != "" {
		s.api("POST", "/tickets/claim", `{"ticket":"`+made.Code+`","customerId":"`+customer+`"}`, nil)
	}
	path, ok := strings.CutPrefix(made.URL, s.Base)
	if !ok {
		s.t.Fatalf("the ticket is at %s, not at %s", made.URL, s.Base)
	}
	return path
}

// cardOf gives a customer a card and returns its path.
func (s *shop) cardOf(customer string) string {
	s.t.Helper()
	var made struct{ URL string }
	s.api("POST", "/customers/"+customer+"/card", "", &made)
	path, ok := strings.CutPrefix(made.URL, s.Base)
	if !ok {
		s.t.Fatalf("the card is at %s, not at %s", made.URL, s.Base)
	}
	return path
}

// noCard is an address that opens nothing.
const noCard = "/t/AAAAAAAAAAAAAAAAAAAAAAAAAA"

func (c customerCards) views() []view {
	return append(joinViews(c.code), []view{
		{"ticket", func(p *tab) { p.visit(c.ticket) }},
		{"ticket with a wrong code", func(p *tab) {
			p.visit(c.ticket).fill("#c-code", "M-0000-0000")
			p.load(func() { p.click(joinButton) })
		}},
		{"customer's card", func(p *tab) { p.visit(c.rich) }},
		{"ticket for the card", func(p *tab) { p.visit(c.rich).visit(c.ticket) }},
		{"ticket that the card has", func(p *tab) { p.visit(c.rich).visit(c.claimed) }},
		{"ticket that another card has", func(p *tab) { p.visit(c.fresh).visit(c.claimed) }},
		{"opened card", func(p *tab) {
			p.visit(c.rich)
			p.click(".vouchers summary").click(".rest summary")
		}},
		{"new customer's card", func(p *tab) { p.visit(c.fresh) }},
		{"statement", func(p *tab) { p.visit(c.rich + "/estado") }},
		{"earlier statement", func(p *tab) {
			p.visit(c.rich + "/estado")
			p.load(func() { p.click(".months .prev") })
		}},
		{"empty statement", func(p *tab) { p.visit(c.fresh + "/estado") }},
		{"no card", func(p *tab) { p.visit(noCard) }},
	}...)
}

// shows are the languages of cards, each with a colour: on one of them text is white, on the
// other black.
var shows = map[string]string{"es": "#5B3A29", "en": "#FFD23F"}

// show sets the language and the colour of the organization, which are those of its cards.
func (s *shop) show(lang string) {
	s.t.Helper()
	s.configure(func(document map[string]any) {
		organization := document["organization"].(map[string]any)
		organization["settings"].(map[string]any)["language"] = lang
		organization["profile"].(map[string]any)["primaryColor"] = shows[lang]
	})
}

// TestCards opens the pages of customers in both languages and all looks. axe finds nothing, what
// is pressed is large enough, nothing is cut off or lies beyond the screen, the console stays
// empty, and nothing but the page and its stylesheet is asked for. On a card and on the form to
// join Tab stops once at each control.
func TestCards(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	c := s.giveCards()
	for _, lang := range []string{"es", "en"} {
		s.show(lang)
		t.Run(lang, func(t *testing.T) {
			for _, one := range looks {
				t.Run(one.String(), func(t *testing.T) {
					t.Parallel()
					p := open(t, s.Base, width(one.width, one.height), media("prefers-color-scheme", one.theme), withAxe)
					for _, v := range c.views() {
						t.Run(v.name, func(t *testing.T) {
							p.during(t, func() {
								v.open(p)
								p.cardPage(v, lang, one)
							})
						})
					}
					p.onlyStyle()
				})
			}
		})
	}
}

// rings is a script that gives the whole card one of the two colours of its rings. Else axe cannot
// tell what is behind a text.
func rings(colour string) string {
	return `{
		const sheet = new CSSStyleSheet()
		sheet.replaceSync('*::before, *::after { content: none !important } .card { background: var(` + colour + `) !important }')
		document.adoptedStyleSheets = [sheet]
	}; 0`
}

// cardPage fails the test for what is wrong with an open page of customers.
func (p *tab) cardPage(v view, lang string, one look) {
	p.t.Helper()
	var spoken string
	if p.eval(`document.documentElement.lang`, &spoken); spoken != lang && v.name != "no card" {
		p.t.Errorf("the page is in %q", spoken)
	}
	if slices.Contains([]string{"form to join", "form with faults", "customer's card"}, v.name) {
		p.walk()
	}
	p.readable(v)
	p.resize(one.width, one.height)
	for i, colour := range []string{"--brand", "--brand-hover"} {
		if i > 0 {
			p.eval(`document.querySelectorAll('details').forEach(d => { d.open = true })`, nil)
		}
		p.fits()
		p.targets()
		p.eval(rings(colour), nil)
		for _, wrong := range p.axe() {
			p.t.Errorf("%s: %s", colour, wrong)
		}
		p.eval(`document.adoptedStyleSheets = []; 0`, nil)
	}
}

// onlyStyle fails the test if the tab asked for something else than documents and stylesheets.
func (p *tab) onlyStyle() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		sent := r.Method == http.MethodPost && (strings.HasSuffix(r.URL, joinForm) || strings.Contains(r.URL, "/c/"))
		if r.Type != "Document" && r.Type != "Stylesheet" || r.Method != http.MethodGet && !sent {
			p.t.Errorf("%s %s: %s", r.Method, r.URL, r.Type)
		}
	}
}

// TestCardCodes: a scanner reads the member code from a card, and from each voucher its code, as
// the smallest screen shows them.
func TestCardCodes(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	c := s.giveCards()
	var detail struct{ MemberCode string }
	s.api("GET", "/customers/"+c.customer, "", &detail)
	var vouchers listed[struct{ Code string }]
	s.api("GET", "/redemptions?status=Issued&customerId="+c.customer, "", &vouchers)
	var want []string
	for _, v := range vouchers.Data {
		want = append(want, v.Code)
	}
	for _, theme := range []string{"light", "dark"} {
		p := open(t, s.Base, width(320, 568), media("prefers-color-scheme", theme))
		p.visit(c.rich)
		if got, want := p.read(p.photo(".card .plate svg")), strings.ReplaceAll(detail.MemberCode, "-", ""); got != want || len(got) != 9 || got[0] != 'M' {
			t.Errorf("%s: scanned %q, want %q", theme, got, want)
		}
		if got := p.text(".card .code"); got != detail.MemberCode {
			t.Errorf("%s: the card shows %q, not %q", theme, got, detail.MemberCode)
		}
		var got []string
		for i := range want {
			p.click(fmt.Sprintf(".vouchers > li:nth-child(%d) summary", i+1))
			code := p.read(p.photo(".vouchers [open] svg"))
			if shown := p.text(".vouchers [open] .code"); shown != code {
				t.Errorf("%s: scanned %q, the voucher shows %q", theme, code, shown)
			}
			got = append(got, code)
		}
		if len(want) < 2 || !slices.Equal(sorted(got), sorted(want)) {
			t.Errorf("%s: scanned %q, want %q", theme, got, want)
		}
	}
}

// TestCardBare: without its stylesheet a card is a text that reads from above to below.
func TestCardBare(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	c := s.giveCards()
	var detail struct {
		MemberCode string
		Balance    float64
	}
	s.api("GET", "/customers/"+c.customer, "", &detail)
	p := open(t, s.Base, width(320, 568))
	var month string
	p.eval(`new Date().toLocaleDateString('es-MX', {month: 'long', year: 'numeric', timeZone: 'America/Mexico_City'})`, &month)
	for path, want := range map[string][]string{
		c.rich:             {"H1 Hola, María", "H2 Club Luna", "H2 Tarjeta de sellos", "H2 Tus vales", "H2 Premios", "H2 Lo último"},
		c.fresh:            {"H1 Hola, Bruno", "H2 Club Luna", "H2 Tarjeta de sellos", "H2 Premios", "H2 Lo último"},
		c.rich + "/estado": {"H1 Tu " + month, "H2 Club Luna", "H2 Tarjeta de sellos"},
		joinForm:           {"H1 Únete a Café Luna"},
		c.code:             {"H1 Tu tarjeta está casi lista"},
		noCard:             {"H1 Esta tarjeta ya no vale", "H2 This card is no longer valid"},
	} {
		p.visit(path)
		var headings []string
		p.eval(`document.querySelector('link[rel=stylesheet]').remove(); Array.from(document.querySelectorAll('h1, h2')).map(e => e.tagName + ' ' + e.innerText)`, &headings)
		if !slices.Equal(headings, want) {
			t.Errorf("%s has the headings %q, want %q", path, headings, want)
		}
		p.fits()
		text := p.text("body")
		if path == c.rich {
			p.inOrder(text, "Café Luna", "Hola, María", "Bronce", fmt.Sprintf("Club Luna: %.0f Lunas", detail.Balance), detail.MemberCode,
				"Tarjeta de sellos", "Tus vales", "Vale de $50 Vale hasta el ", " Mostrar Cerrar",
				"Premios", "Espresso 80 Lunas", "Lo último", "Compra 1 punto por cada $10", "Estado de cuenta", "Al ")
		}
	}
}

// inOrder fails the test unless a text has parts one after the other.
func (p *tab) inOrder(text string, parts ...string) {
	p.t.Helper()
	rest := text
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			p.t.Errorf("%s: no %q where it should be in\n%s", p.address(), part, text)
			continue
		}
		rest = after
	}
}

// giveCard leads a member to where a card is given at the till, and gives one.
func (p *tab) giveCard(customer string) *tab {
	p.t.Helper()
	p.visit("/panel/caja/" + customer)
	p.load(func() { p.click("a[href$='/tarjeta']") })
	return p.load(func() { p.click("form[action$='/tarjeta'] button") })
}

// TestCardGiven: a cashier gives a card, whose address the customer scans from the screen. It is
// shown once, and opens the card until that is ended.
func TestCardGiven(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	customer := s.customer("María")
	var detail struct{ Balance float64 }
	s.api("GET", "/customers/"+customer, "", &detail)
	for _, settings := range [][]setting{{width(320, 568)}, {noScripts}} {
		p := s.as("cashier", settings...)
		p.giveCard(customer)
		var address string
		p.eval(`document.querySelector('#c-card').value`, &address)
		if got := p.scanned(p.photo(qrCode)).String(); got != address || !strings.HasPrefix(got, s.Base+"/t/") {
			t.Fatalf("scanned %q, the page shows %q", got, address)
		}
		phone := open(t, s.Base, width(320, 568))
		phone.visit(address)
		if name, balance := phone.text("h1"), phone.text(".balance"); name != "Hola, María" || balance != fmt.Sprintf("%.0f", detail.Balance) {
			t.Errorf("the card says %q, %q", name, balance)
		}
		p.reload()
		if p.has("#c-card") || p.has(qrCode) || strings.Contains(p.text("body"), "/t/") {
			t.Errorf("sent again, the form shows an address:\n%s", p.text("main"))
		}
		if phone.reload(); phone.status != http.StatusOK {
			t.Errorf("after that the card is %d", phone.status)
		}
		p.visit("/panel/caja/" + customer + "/tarjeta")
		p.load(func() { p.click("form[action$='/tarjeta/anular'] button") })
		if phone.reload(); phone.status != http.StatusNotFound || phone.text("h1") != "Esta tarjeta ya no vale" {
			t.Errorf("the ended card is %d:\n%s", phone.status, phone.text("main"))
		}
	}
}
