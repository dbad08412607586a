package panel

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// Spending where the organization asks for the card: what the phone shows, and what the till makes
// of it.

const (
	redeemButton = "form[action$='/canje'] button"
	payBox       = "#c-pay"
	scanField    = "#c-proof"
	waiveField   = "#c-noCard"
)

// askForCards makes spending need the card, and gives María points and one. It returns her till and
// her card.
func (s *shop) askForCards() (till, card string) {
	s.t.Helper()
	s.configure(func(document map[string]any) {
		settings := document["organization"].(map[string]any)["settings"].(map[string]any)
		settings["cards"] = map[string]any{"proof": "Spending"}
	})
	till = s.givePoints(s.customer("María"))
	return till, s.cardOf(strings.TrimPrefix(till, "/panel/caja/"))
}

// givePoints gives a customer enough to spend, by a sale, and returns the customer's till.
func (s *shop) givePoints(customer string) (till string) {
	s.t.Helper()
	s.api("POST", "/transactions", `{"customerId":"`+customer+`","totalAmount":9000}`, nil)
	return "/panel/caja/" + customer
}

// balanceAt is how many points the customer of a till has.
func (s *shop) balanceAt(till string) float64 {
	s.t.Helper()
	var detail struct{ Balance float64 }
	s.api("GET", "/customers/"+strings.TrimPrefix(till, "/panel/caja/"), "", &detail)
	return detail.Balance
}

var scannedProof = regexp.MustCompile(`^M[0-9A-Z]{8}\.[0-9]{6}$`)

// proofShown opens a card and returns what a scanner reads from it: the code and the digits that
// stand below.
func (p *tab) proofShown(card string) string {
	p.t.Helper()
	p.visit(card).still() // until both are read
	p.fits()
	scanned := p.read(p.photo(".card .plate svg"))
	shown := strings.ReplaceAll(p.text(".card .code"), "-", "") + "." + strings.Join(strings.Fields(p.text(".card .digits b")), "")
	if !scannedProof.MatchString(scanned) || scanned != shown {
		p.t.Fatalf("scanned %q, the card shows %q", scanned, shown)
	}
	var below bool
	p.eval(`document.querySelector('.card .digits b').getBoundingClientRect().top >= document.querySelector('.card .plate svg').getBoundingClientRect().bottom`, &below)
	if !below || p.headers["refresh"] == "" {
		p.t.Errorf("the digits are below: %t; the card comes again after %q seconds", below, p.headers["refresh"])
	}
	return scanned
}

// wrongDigits is a card's text with other digits.
func wrongDigits(proof string) string {
	last := len(proof) - 1
	return proof[:last] + string('0'+(proof[last]-'0'+5)%10)
}

// present scans a card where the till's page asks for it.
func (p *tab) present(proof string) *tab {
	p.t.Helper()
	return p.fill(scanField, proof).load(func() { p.typed("\r") })
}

// wantRefused fails the test unless the page says why nothing was done, at the field that asks for the
// card, and the balance is what it was.
func (p *tab) wantRefused(s *shop, till, why string, balance float64) {
	p.t.Helper()
	if text := p.text("main"); !strings.Contains(text, why) || !p.has(scanField+"[aria-invalid=true]") {
		p.t.Errorf("no %q at the field in\n%s", why, text)
	}
	var typed string
	if p.eval(`document.querySelector('`+scanField+`').value`, &typed); typed != "" {
		p.t.Errorf("the field still has %q", typed)
	}
	if got := s.balanceAt(till); got != balance {
		p.t.Errorf("the balance was %v and is %v", balance, got)
	}
	p.fits()
}

// wantSpent fails the test unless the page tells of what was done, and the balance has fallen. It
// returns what it is.
func (p *tab) wantSpent(s *shop, till, path string, balance float64) float64 {
	p.t.Helper()
	got := s.balanceAt(till)
	if got >= balance || !strings.HasPrefix(p.address(), till+path) || p.has(".faults") {
		p.t.Errorf("the balance was %v and is %v; %s says\n%s", balance, got, p.address(), p.text("main"))
	}
	return got
}

const (
	cardNeeded = "Para gastar puntos hace falta la tarjeta del cliente."
	cardWrong  = "La tarjeta no es de este cliente, o su código ya cambió: escanéala otra vez."
)

// TestCardSpends: a cashier redeems a reward and takes points for a purchase only with the digits that
// the customer's card shows now. Nothing offers a cashier to go on without.
func TestCardSpends(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	till, card := s.askForCards()
	phone := open(t, s.Base, width(320, 568))
	for _, settings := range [][]setting{{width(320, 568)}, {width(1280, 800), noScripts}} {
		p, balance := s.as("cashier", settings...), s.balanceAt(till)
		p.visit(till)
		if p.has(waiveField) || strings.Contains(p.text("body"), "Sin tarjeta") || p.has("[role=status]") {
			t.Errorf("a cashier is shown\n%s", p.text("main"))
		}
		p.load(func() { p.click(redeemButton) })
		p.wantRefused(s, till, cardNeeded, balance)
		p.present(wrongDigits(phone.proofShown(card))).load(func() { p.click(redeemButton) })
		p.wantRefused(s, till, cardWrong, balance)
		p.present(phone.proofShown(card))
		if note := p.text(".note.good"); !strings.Contains(note, "Tarjeta leída") || p.has(scanField) {
			t.Errorf("after the card was read, %q\n%s", note, p.text("main"))
		}
		p.load(func() { p.click(redeemButton) })
		balance = p.wantSpent(s, till, "/canje/", balance)

		p.sell(strings.TrimPrefix(till, "/panel/caja/"), "100", func() { p.click(payBox).click(sellButton) })
		p.wantRefused(s, till, cardNeeded, balance)
		proof := phone.proofShown(card)
		p.visit("/panel/caja").load(func() { p.typed(wrongDigits(proof) + "\r") })
		p.fill(amountField, "100").click(payBox).load(func() { p.click(sellButton) })
		p.wantRefused(s, till, cardWrong, balance)
		p.visit("/panel/caja").load(func() { p.typed(proof + "\r") })
		p.fill(amountField, "100").click(payBox).load(func() { p.click(sellButton) })
		p.wantSpent(s, till, "/venta/", balance)
	}
	customer := strings.TrimPrefix(till, "/panel/caja/")
	var list listed[struct{}]
	s.api("GET", "/redemptions?customerId="+customer, "", &list)
	if sales := s.sales("limit=100&customerId=" + customer); len(list.Data) != 2 || len(sales) != 1+2 { // one gave the points
		t.Errorf("%d redemptions and %d sales", len(list.Data), len(sales))
	}
}

// TestCardSpendsWithout: a manager goes on without the card, once there is a reason, which the audit
// log keeps.
func TestCardSpendsWithout(t *testing.T) {
	t.Parallel()
	const reason = "dejó el teléfono en casa"
	s := newShop(t)
	till, _ := s.askForCards()
	p, balance := s.as("manager", width(320, 568)), s.balanceAt(till)
	p.visit(till).fill(waiveField, "").load(func() { p.typed("\r") })
	if !p.has(scanField) || p.has(".note.warn") {
		t.Errorf("without a reason\n%s", p.text("main"))
	}
	p.load(func() { p.click(redeemButton) })
	p.wantRefused(s, till, cardNeeded, balance)
	p.fill(waiveField, reason).load(func() { p.typed("\r") })
	if note := p.text(".note.warn"); note != "Sin tarjeta: "+reason || p.has(scanField) {
		t.Errorf("it says %q\n%s", note, p.text("main"))
	}
	p.fits()
	p.load(func() { p.click(redeemButton) })
	p.wantSpent(s, till, "/canje/", balance)
	p = s.as("owner", width(320, 568))
	p.visit("/panel/auditoria?action=proof.waived").fits()
	p.eval(`document.querySelectorAll('main details').forEach(d => { d.open = true })`, nil)
	p.inOrder(p.text(".rows"), "Ana manager", "Gastó puntos sin la tarjeta", "Motivo", reason)
}

// cardWrongIn is what the till says of a card that is not good.
var cardWrongIn = map[string]string{"es": cardWrong, "en": "The card is not this customer's, or its code has changed: scan it again."}

// spendViews are the pages of the panel that have to do with it: at another customer's till the card is
// refused as it is read.
func spendViews(till, other, proof, lang string) []view {
	with := func(till, name, value string) string { return till + "?" + url.Values{name: {value}}.Encode() }
	refused := func(p *tab) {
		p.visit(with(other, "proof", proof))
		if text := p.text("main"); !strings.Contains(text, cardWrongIn[lang]) {
			p.t.Errorf("another customer's card leads to\n%s", text)
		}
	}
	return []view{
		{"card asked for", func(p *tab) { p.visit(till) }},
		{"card missing", func(p *tab) { p.visit(till).load(func() { p.click(redeemButton) }) }},
		{"card refused", refused},
		{"card read", func(p *tab) { p.visit(with(till, "proof", proof)) }},
		{"card waived", func(p *tab) { p.visit(with(till, "noCard", "dejó el teléfono en casa")) }},
		{"card settings", func(p *tab) { p.visit("/panel/configuracion") }},
		{"card waived in the audit log", func(p *tab) { p.visit("/panel/auditoria?action=proof.waived") }},
	}
}

// TestCardSpendsPages opens the card with digits, and the pages of the panel, in both languages and all
// looks, and looks for what TestCards and TestPages look for. -shots has their pictures made too.
func TestCardSpendsPages(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	till, card := s.askForCards()
	proof := open(t, s.Base, width(320, 568)).proofShown(card)
	f := s.formOf("owner", till, till+"/canje").with("noCard", "dejó el teléfono en casa")
	if a := s.post("owner", f); a.Status >= 400 {
		t.Fatalf("%d\n%s", a.Status, a.Body)
	}
	for n, lang := range []string{"es", "en"} {
		s.speak("owner", lang)
		s.show(lang)
		t.Run(lang, func(t *testing.T) {
			for i, one := range looks {
				other := s.of(t).givePoints(s.of(t).enrol("Bruno", "Nuevo", fmt.Sprintf("+5255123400%d%d", n, i)))
				t.Run(one.String(), func(t *testing.T) {
					t.Parallel()
					settings := []setting{width(one.width, one.height), media("prefers-color-scheme", one.theme), withAxe}
					look := func(p *tab, v view, see func()) {
						t.Run(v.name, func(t *testing.T) {
							p.during(t, func() {
								see()
								if *shots != "" {
									v.open(p)
									p.save(fmt.Sprintf("%s-%s-%s", lang, one, v.name))
								}
							})
						})
					}
					phone := open(t, s.Base, settings...)
					digits := view{"card with digits", func(p *tab) { p.visit(card).still() }}
					look(phone, digits, func() {
						digits.open(phone)
						phone.cardPage(digits, lang, one)
					})
					p := s.of(t).as("owner", settings...)
					for _, v := range spendViews(till, other, proof, lang) {
						look(p, v, func() { p.panelPage(v, one) })
					}
				})
			}
		})
	}
}
