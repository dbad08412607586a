package main

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What people at a counter do with the pages of customers and sales.

// TestPanelKnownContact: an enrolment by hand with a contact that a customer has stores nothing,
// says whose it is without showing the contact, and leads there.
// Panel check 27.
func TestPanelKnownContact(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	s, ana, luz := w.panelShop, w.names["customerId"], w.names["luz"]
	for _, test := range []struct {
		reason string
		as     role
		path   string
		fields url.Values
		has    []string
	}{
		{"a known phone, another name and e-mail", roleOwner, "/panel/clientes/nuevo", url.Values{"phoneNumber": {"55 8765 4321"}, "firstName": {"Eva"}, "email": {"eva@example.com"}},
			[]string{"Este teléfono ya es de Ana G… · ···· 4321 · a…@…", `href="/panel/clientes/` + ana + `"`, `value="eva@example.com"`}},
		{"the same at the till", roleCashier, "/panel/caja/alta", url.Values{"phoneNumber": {"+525587654321"}, "firstName": {"Eva"}, "email": {"eva@example.com"}},
			[]string{"Este teléfono ya es de Ana G… · ···· 4321 · a…@…", `href="/panel/caja/` + ana + `"`, `value="eva@example.com"`}},
		{"a known e-mail", roleOwner, "/panel/clientes/nuevo", url.Values{"email": {"ANA@example.com"}},
			[]string{"Este email ya es de Ana G…", `href="/panel/clientes/` + ana + `"`}},
		{"by who may not open the customer's page", roleCashier, "/panel/clientes/nuevo", url.Values{"email": {"ana@example.com"}},
			[]string{`href="/panel/caja/` + ana + `"`}},
		{"contacts of two", roleOwner, "/panel/clientes/nuevo", url.Values{"phoneNumber": {"55 8765 4321"}, "email": {"luz@example.com"}},
			[]string{"Este teléfono ya es de Ana G…", "Este email ya es de luz · l…@…", `href="/panel/clientes/` + ana + `"`, `href="/panel/clientes/` + luz + `"`}},
	} {
		before := s.shop.entries()
		answer := s.post(test.as, test.path, test.fields)
		page := mainOf(answer.Body.String())
		if answer.Code != http.StatusConflict {
			t.Errorf("%s: %d\n%s", test.reason, answer.Code, page)
		}
		for _, text := range test.has {
			if !strings.Contains(page, text) {
				t.Errorf("%s: no %q in\n%s", test.reason, text, page)
			}
		}
		if strings.Contains(page, "García") || strings.Contains(page, "luz@example.com</") {
			t.Errorf("%s: a name or a contact is shown\n%s", test.reason, page)
		}
		if !reflect.DeepEqual(before, s.shop.entries()) {
			t.Errorf("%s: something was stored", test.reason)
		}
	}
}

// TestPanelMerge: whoever is found is compared first; only the button of that page merges.
func TestPanelMerge(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	s, path := w.panelShop, "/panel/clientes/"+w.names["customerId"]+"/unir"
	for i := range 11 {
		s.shop.customer(fmt.Sprint("gemela", i))
	}
	if found := mainOf(s.open(roleOwner, path+"?search=gemela").Body.String()); strings.Count(found, `name="_review"`) != 10 || !strings.Contains(found, "Hay 11.") {
		t.Errorf("ten of eleven, without a word:\n%s", found)
	}
	before := s.shop.entries()
	found := mainOf(s.open(roleOwner, path+"?search=luz").Body.String())
	if n := strings.Count(found, `name="_review"`); n != 1 {
		t.Errorf("%d buttons that compare, want 1:\n%s", n, found)
	}
	page := mainOf(s.post(roleOwner, path, url.Values{"from": {w.names["luz"]}, reviewField: {"1"}}).Body.String())
	for _, text := range []string{
		"luz pasa a ser parte de Ana García",
		`<tr><th scope="row">Lunas</th><td data-name="Este cliente">400</td><td data-name="El otro">120</td><td data-name="Unidos">520</td></tr>`,
		">5,000.00\u00a0MXN</td>", ">1,200.00\u00a0MXN</td>", ">6,200.00\u00a0MXN</td>",
		"<li>Email: luz@example.com</li>",
		"Unir para siempre",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("no %q in\n%s", text, page)
		}
	}
	if strings.Count(page, "<form") != 1 || strings.Contains(page, `name="`+reviewField+`"`) {
		t.Errorf("more than the one button:\n%s", page)
	}
	if !reflect.DeepEqual(before, s.shop.entries()) {
		t.Error("the comparison has stored something")
	}
	if answer := s.post(roleOwner, path, asShown(page)); answer.Code != http.StatusSeeOther {
		t.Errorf("%d\n%s", answer.Code, mainOf(answer.Body.String()))
	}
	if luz := must(s.shop, func(t *txn) (*customer, error) { u, _ := parseID(w.names["luz"]); return t.customers.get(u) }); luz.Status != statusMerged {
		t.Error("not merged:", luz.Status)
	}
}

// TestPanelSecondInvitation: who is logged in joins a second organization by its invitation.
func TestPanelSecondInvitation(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	s := w.panelShop
	s.shop.secondShop()
	var token string
	s.shop.in(2, func() { token = s.shop.invited("owner@example.com", roleManager) })
	if page := s.get(roleOwner, "/panel/invitacion/"+token); page.Code != http.StatusOK {
		t.Fatal(page.Code, page.Body)
	}
	answer := s.send(roleOwner, "POST", "/panel/invitacion/"+token, url.Values{"password": {testPassword}})
	if answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != "/panel" {
		t.Fatalf("%d %s\n%s", answer.Code, answer.Header().Get("Location"), mainOf(answer.Body.String()))
	}
	if m := s.shop.member(s.tokens[roleOwner]); m.org != 2 || m.role != roleManager {
		t.Error("the session is in", m.org, "as", m.role)
	}
	orgs := must(s.shop, func(t *txn) ([]uint32, error) { return organizationsOf(t.Tx, s.users[roleOwner]) })
	if !reflect.DeepEqual(orgs, []uint32{1, 2}) {
		t.Error("the user is in", orgs)
	}
}

// TestPanelInvitationsAlike: an invitation's page is the same for an address that has an account
// in another organization and for one that has none, byte for byte; so is what a password gets
// that nobody could choose.
func TestPanelInvitationsAlike(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	s := w.panelShop
	s.shop.secondShop()
	pages := func(email string) (list []string) {
		var token string
		s.shop.in(2, func() { token = s.shop.invited(email, roleManager) })
		hide := strings.NewReplacer(token, "TOKEN", email, "EMAIL")
		path := "/panel/invitacion/" + token
		b := s.browser()
		for _, answer := range []*httptest.ResponseRecorder{
			b.send("GET", path, nil), b.send("POST", path, url.Values{"name": {"Eva"}, "password": {"corta"}}),
			b.send("POST", path, url.Values{"password": {testPassword + " otra"}}),
		} {
			list = append(list, fmt.Sprint(answer.Code, "\n", hide.Replace(mainOf(answer.Body.String()))))
		}
		return list
	}
	same(t, "of somebody with an account", pages("owner@example.com"), pages("nadie@example.com"))
}

// A counter is a form world whose owner looks at one sale.
type counter struct {
	*formWorld
	t *testing.T
}

// page opens a page, and checks what it has, and what it has not (texts that begin with "!").
func (c counter) page(path string, texts ...string) string {
	c.t.Helper()
	w := c.panelShop.open(roleOwner, c.filled(path))
	page := mainOf(w.Body.String())
	if w.Code != http.StatusOK {
		c.t.Errorf("GET %s: %d", path, w.Code)
	}
	c.has(path, page, texts...)
	return page
}

func (c counter) has(what, page string, texts ...string) {
	c.t.Helper()
	for _, text := range texts {
		text, not := strings.CutPrefix(c.filled(text), "!")
		if strings.Contains(page, text) == not {
			c.t.Errorf("%s: %q is there: %v\n%s", what, text, !not, page)
		}
	}
}

// comesBack sends the form of a return, and names the return it makes.
func (c counter) comesBack(name string, fields url.Values) {
	c.t.Helper()
	fields.Set("customerId", c.names["customerId"])
	path := c.filled("/panel/ventas/{transactionId}/devolucion")
	w := c.panelShop.post(roleOwner, path, fields)
	to := w.Header().Get("Location")
	if w.Code != http.StatusSeeOther {
		c.t.Fatalf("POST %s: %d\n%s", path, w.Code, mainOf(w.Body.String()))
	}
	c.names[name] = madeAt(to)
}

// TestPanelReturned: a purchase says that it was returned, in part or whole, on its page and in
// lists; it and its returns lead to each other; what it earned stays what it earned.
func TestPanelReturned(t *testing.T) {
	t.Parallel()
	c := counter{newFormWorld(t), t}
	const sale, form = "/panel/ventas/{transactionId}", "/panel/ventas/{transactionId}/devolucion"
	c.page(sale, "!Devuelta", "Registrar devolución", "<dd>500 Lunas</dd>")
	c.page(form, "Devolver todo: 5,000.00", `name="totalAmount" value="5,000"`, "quedan 2 × 2,500.00")
	c.comesBack("first", url.Values{"items[0].sku": {"A"}, "items[0].price": {"2500"}, "items[0].quantity": {"1"}})
	c.page(sale, "Devuelta en parte", "Registrar devolución", `href="/panel/ventas/{first}">2,500.00`, "<dd>500 Lunas</dd>")
	c.page(form, "Devolver todo: 2,500.00", `name="totalAmount" value="2,500"`, "queda 1 × 2,500.00")
	c.page("/panel/ventas/{first}", `href="/panel/ventas/{transactionId}">5,000.00`, "!Devuelta", "<dd>250 Lunas</dd>")
	c.comesBack("second", url.Values{"totalAmount": {"2,500"}})
	whole := c.page(sale, "Devuelta</span>", "!Registrar devolución", "<dd>500 Lunas</dd>")
	if at, of := strings.Index(whole, c.names["second"]), strings.Index(whole, c.names["first"]); at < 0 || of < at {
		t.Errorf("the returns are not listed, the newest first:\n%s", whole)
	}
	c.page(form, "Ya se devolvió todo", "!<form")
	for _, list := range []string{"/panel/ventas", "/panel/clientes/{customerId}"} {
		page := c.page(list, "Devuelta</span>")
		row := regexp.MustCompile(`(?s)<tr><td><a href="/panel/ventas/` + c.names["transactionId"] + `.*?</tr>`).FindString(page)
		if !strings.Contains(row, `>500<`) || strings.Contains(row, "−") {
			t.Errorf("%s: earned points are not shown as such: %s", list, row)
		}
	}
}

// TestPanelReturnOfSecondItem: what is confirmed is what was reviewed, though the rows without
// a quantity are left out.
func TestPanelReturnOfSecondItem(t *testing.T) {
	t.Parallel()
	c := counter{newFormWorld(t), t}
	ana, _ := parseID(c.names["customerId"])
	sold, err := c.panelShop.shop.sell(newSale{Customer: ana, Total: dec("30"), Source: sourceAPI,
		Items: []item{{SKU: "A", Price: dec("10"), Quantity: dec("1")}, {SKU: "B", Price: dec("20"), Quantity: dec("1")}}})
	c.panelShop.shop.ok(err)
	c.names["transactionId"] = sold.ID.String()
	w := c.panelShop.post(roleOwner, c.filled("/panel/ventas/{transactionId}/devolucion"), url.Values{reviewField: {"1"}, "customerId": {ana.String()},
		"items[0].sku": {"A"}, "items[0].price": {"10"}, "items[1].sku": {"B"}, "items[1].price": {"20"}, "items[1].quantity": {"1"}})
	fields := asShown(w.Body.String())
	for _, m := range regexp.MustCompile(`name="(items\[\d\]\.\w+)" value="([^"]*)"`).FindAllStringSubmatch(w.Body.String(), -1) {
		fields.Set(m[1], m[2])
	}
	c.comesBack("back", fields)
	back, _ := parseID(c.names["back"])
	ret := must(c.panelShop.shop, func(t *txn) (*sale, error) { return t.sales.get(back) })
	if got := fmt.Sprint(ret.Total, ret.Items); got != "20 [{B 20 1}]" {
		t.Errorf("%s came back\n%s", got, mainOf(w.Body.String()))
	}
}

// TestPanelReturnOfSpentPoints: the review says what is gone already.
func TestPanelReturnOfSpentPoints(t *testing.T) {
	t.Parallel()
	c := counter{newFormWorld(t), t}
	w := c.panelShop.post(roleOwner, c.filled("/panel/ventas/{transactionId}/devolucion"), url.Values{reviewField: {"1"}, "customerId": {c.names["customerId"]}, "totalAmount": {"5000"}})
	c.has("review", mainOf(w.Body.String()), "Se retira: 400 Lunas", "Ya gastado, no se puede retirar: 100 Lunas.", "Confirmar")
}

// TestPanelReturnedVouchers: the vouchers of a purchase come back with it, if that is asked for
// by who may cancel them; the return's page says which did and which can.
func TestPanelReturnedVouchers(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{true, false} {
		c := counter{newFormWorld(t), t}
		used := answerTo(c.panelShop.api, newRequest("POST", "/api/v1/redemptions/use", c.names["key"], c.filled(`{"code":"{code}","transactionId":"{transactionId}"}`)))
		if used.Code != http.StatusOK {
			t.Fatal(used.Body)
		}
		c.page("/panel/ventas/{transactionId}/devolucion", "Devolver también sus vales", "Vale de $50")
		c.page("/panel/canjes/{redemptionId}", "!/cancelar")
		fields := url.Values{"totalAmount": {"5000"}}
		if together {
			fields.Set("restoreRedemptions", "1")
		}
		c.comesBack("back", fields)
		if together {
			c.page("/panel/ventas/{back}", `href="/panel/canjes/{redemptionId}"`, "volvió: se canceló")
			c.page("/panel/auditoria", "Registró una devolución <b>5,000.00\u00a0MXN", "Canceló un canje")
			continue
		}
		c.page("/panel/ventas/{back}", `href="/panel/canjes/{redemptionId}"`, "se puede cancelar")
		c.page("/panel/canjes/{redemptionId}", "/cancelar")
		if w := c.panelShop.post(roleOwner, c.filled("/panel/canjes/{redemptionId}/cancelar"), url.Values{}); w.Code != http.StatusSeeOther {
			t.Errorf("%d\n%s", w.Code, mainOf(w.Body.String()))
		}
		c.page("/panel/ventas/{back}", "volvió: se canceló")
	}
}

// TestPanelReturnedVouchersByCashier: a cashier, who may return but not cancel at will, has no
// box, and a form with one is refused.
func TestPanelReturnedVouchersByCashier(t *testing.T) {
	t.Parallel()
	c := counter{newFormWorld(t), t}
	s := c.panelShop
	s.shop.apply([]byte(strings.Replace(string(s.shop.exportedDocument()), `"settings":{`, `"settings":{"cashierReturns":true,`, 1)))
	sold := s.post(roleCashier, c.filled("/panel/caja/{customerId}/venta"), url.Values{"totalAmount": {"100"}}).Header().Get("Location")
	c.names["transactionId"] = madeAt(sold)
	used := answerTo(s.api, newRequest("POST", "/api/v1/redemptions/use", c.names["key"], c.filled(`{"code":"{code}","transactionId":"{transactionId}"}`)))
	path := c.filled("/panel/ventas/{transactionId}/devolucion")
	page := s.open(roleCashier, path)
	if used.Code != http.StatusOK || page.Code != http.StatusOK || strings.Contains(page.Body.String(), "restoreRedemptions") {
		t.Errorf("%s\n%d\n%s", used.Body, page.Code, mainOf(page.Body.String()))
	}
	fields := url.Values{"customerId": {c.names["customerId"]}, "totalAmount": {"100"}, "restoreRedemptions": {"1"}}
	if w := s.post(roleCashier, path, fields); w.Code != http.StatusForbidden {
		t.Errorf("%d\n%s", w.Code, mainOf(w.Body.String()))
	}
	fields.Del("restoreRedemptions")
	w := s.post(roleCashier, path, fields)
	if w.Code != http.StatusSeeOther {
		t.Fatalf("%d\n%s", w.Code, mainOf(w.Body.String()))
	}
	done := s.open(roleCashier, w.Header().Get("Location"))
	if done.Code != http.StatusOK || !strings.Contains(done.Body.String(), "Devolución de 100.00") {
		t.Errorf("%s: %d\n%s", w.Header().Get("Location"), done.Code, mainOf(done.Body.String()))
	}
}

// TestPanelStampCard: pages show every program that a customer has something in, each with its
// currency.
func TestPanelStampCard(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{program: `"currency":"Lunas",` + strings.Replace(stampCard, `"name":"Stamps"`, `"name":"Tarjeta","currency":"Sellos"`, 1), also: freeCoffee})
	ana := s.shop.customer("ana")
	w := s.post(roleOwner, "/panel/caja/"+ana.String()+"/venta", url.Values{"totalAmount": {"100"}, "items[0].sku": {"COFFEE"}, "items[0].price": {"50"}, "items[0].quantity": {"2"}})
	to := w.Header().Get("Location")
	c := counter{&formWorld{s, map[string]string{"customerId": ana.String(), "sale": madeAt(to)}}, t}
	c.page("/panel/clientes/{customerId}", "<p>2 Sellos</p>", "+10 Lunas</td>", "<b>Lunas</b>", "<small>2 Sellos</small>")
	stamps := s.shop.config().Programs[1].ID.String()
	c.page("/panel/clientes/{customerId}", `<a href="/panel/clientes/{customerId}?loyaltyProgramId=`+stamps+`">Sellos</a>`)
	c.page("/panel/clientes/{customerId}?loyaltyProgramId="+stamps, "+2 Sellos</td>", "<b>Sellos</b>")
	c.page("/panel/ventas/{sale}", "<dd>10 Lunas</dd>", "<dd>2 Sellos</dd>")
	c.page("/panel", "Puntos por deber, Sellos</span><b>2</b>")
	back := s.post(roleOwner, c.filled("/panel/ventas/{sale}/devolucion"), url.Values{reviewField: {"1"}, "customerId": {ana.String()}, "totalAmount": {"100"}})
	c.has("review", mainOf(back.Body.String()), "Se retira: 10 Lunas, 2 Sellos")
}

// TestPanelOneStamp: pages say one for exactly one.
func TestPanelOneStamp(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{program: `"currency":{"one":"Luna","many":"Lunas"},"tiers":[{"name":"Plata","threshold":0},{"name":"Oro","threshold":2}],` + strings.Replace(stampCard, `"name":"Stamps"`, `"name":"Tarjeta","currency":{"one":"Sello","many":"Sellos"}`, 1), also: freeCoffee})
	ana := s.shop.customer("ana")
	w := s.post(roleOwner, "/panel/caja/"+ana.String()+"/venta", url.Values{"totalAmount": {"10"}, "items[0].sku": {"COFFEE"}, "items[0].price": {"10"}, "items[0].quantity": {"1"}})
	c := counter{&formWorld{s, map[string]string{"customerId": ana.String(), "sale": madeAt(w.Header().Get("Location"))}}, t}
	c.page("/panel/clientes/{customerId}", `1 <span class="unit">Luna</span>`, "<p>1 Sello</p>", "+1 Luna</td>", "<b>Lunas</b>", "<small>1 Sello</small>")
	c.page("/panel/clientes/{customerId}/estado", "<dd>0 Lunas</dd>", "<dd>1 Luna</dd>")
	c.page("/panel/caja/{customerId}", "1 Sello", "falta 1 Luna para Oro")
	c.page("/panel/ventas/{sale}", "<dd>1 Luna</dd>", "<dd>1 Sello</dd>")
	c.page("/panel", "Puntos por deber, Sellos</span><b>1</b>")
	back := s.post(roleOwner, c.filled("/panel/ventas/{sale}/devolucion"), url.Values{reviewField: {"1"}, "customerId": {ana.String()}, "totalAmount": {"10"}})
	c.has("review", mainOf(back.Body.String()), "Se retira: 1 Luna, 1 Sello")
}

// TestStatementHandedOver: a printed statement says whose it is, of whom, and when it was made.
func TestStatementHandedOver(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{})
	ana := must(s.shop, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{FirstName: "Ana", Phone: "+525512345678"})
		return c.ID, err
	})
	c := counter{&formWorld{s, map[string]string{"customerId": ana.String()}}, t}
	c.page("/panel/clientes/{customerId}/estado", `aria-hidden="true">C</i><b class="grow">`, "Hecho el ", "525512345678 · ", "Huella del libro: <span")
}

// TestRowsNamed: on a phone, where lists have no headings, each value of a row says of what it is.
func TestRowsNamed(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{})
	s.shop.newKey(keyRequest{Name: "Caja"})
	c := counter{&formWorld{s, nil}, t}
	c.page("/panel/equipo", `<td data-name="Segundo factor">No</td>`, `data-name="Estado">Activ`)
	c.page("/panel/desarrollo/claves", `data-name="Vence"`)
}

// TestErrorWords: pages have words in both languages for every error of the API, and a label
// for every field that a form sends.
func TestErrorWords(t *testing.T) {
	t.Parallel()
	for code := range errorTable {
		if !hasText("error." + code) {
			t.Errorf("no text of %s", code)
		}
	}
	var walk func(path string, list []formMember)
	walk = func(path string, list []formMember) {
		for _, m := range list {
			if !hasText("field."+m.name) && !strings.HasPrefix(m.name, "scope.") { // nothing is wrong with a box
				t.Errorf("%s: no label of %s", path, m.name)
			}
			walk(path, m.of)
		}
	}
	for _, f := range panelForms() {
		if f.handle != nil && f.members != nil && !isReviewed(&f) {
			walk(f.path, f.members)
		}
	}
}

// TestPanelFieldWords: what is wrong with a field is said in the page's language by the format of
// the API's text, which stays as it is.
func TestPanelFieldWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		e           *apiError
		api, es, en string
	}{
		{invalidField("items[3].quantity", "debe ser mayor a 0"), "items[3].quantity debe ser mayor a 0", "Cantidad: debe ser mayor que 0", "Quantity: it must be above 0"},
		{invalidField("comment", "no puede superar los %d caracteres", 500), "comment no puede superar los 500 caracteres", "Comentario: no puede pasar de 500 caracteres", "Comment: it cannot be longer than 500 characters"},
		{invalidField("items", "no puede superar los %d elementos", 500), "items no puede superar los 500 elementos", "Artículos: no puede superar los 500 elementos", "Items: it cannot have more than 500 elements"},
		{invalidField("status", "debe ser %s", anyOf{"A", "B", "C"}), "status debe ser A, B o C", "Estado: elige una opción de la lista", "Status: choose one of the list"},
		{invalidField("restoreRedemptions", "debe ser %s", anyOf{"true", "false"}), "restoreRedemptions debe ser true o false", "Devolver también sus vales: elige una opción de la lista", "Give its vouchers back, too: choose one of the list"},
		{invalidField("expiresAt", "debe ser una fecha ISO 8601"), "expiresAt debe ser una fecha ISO 8601", "Vence: debe ser una fecha, como 2027-12-31", "Expires: it must be a date, such as 2027-12-31"},
		{invalidField("confirm", "debe ser ERASE"), "confirm debe ser ERASE", "Escribe ERASE, en mayúsculas", "Type ERASE, in capitals"},
		{invalidField("", "La consulta no es válida"), "La consulta no es válida", "La consulta no es válida", "The query is not valid"},
	} {
		same(t, "of the API", tt.e.message, tt.api)
		for lang, want := range map[string]string{"es": tt.es, "en": tt.en} {
			same(t, tt.api, faultText(speaking(lang), newFormat(t, "MX", lang, "MXN"), tt.e), want)
		}
	}
}

// TestOneSecond: one second is not "1 segundos".
func TestOneSecond(t *testing.T) {
	t.Parallel()
	for _, code := range []errorCode{codeTooManyTries, codeAskedTooMuch} {
		for lang, want := range map[string][2]string{"es": {" en 1 segundo.", " en 1,200 segundos."}, "en": {" in 1 second.", " in 1,200 seconds."}} {
			f := newFormat(t, "MX", lang, "MXN")
			for i, n := range []int{1, 1200} {
				if got := faultText(speaking(lang), f, newError(code).with("seconds", decimalOf(n))); !strings.HasSuffix(got, want[i]) {
					t.Errorf("%s, %d: %s", code.name, n, got)
				}
			}
		}
	}
}

// TestPanelErrorWords: what is wrong with a form is said with the form's labels, in the page's
// language.
func TestPanelErrorWords(t *testing.T) {
	t.Parallel()
	c := counter{newFormWorld(t), t}
	till := c.filled("/panel/caja/{customerId}/venta")
	c.panelShop.shop.apply([]byte(strings.Replace(string(c.panelShop.shop.exportedDocument()), `"externalIds":"Free"`, `"externalIds":"Unique"`, 1)))
	if w := c.panelShop.post(roleOwner, till, url.Values{"totalAmount": {"10"}, "externalId": {"T-1"}}); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	for _, test := range []struct {
		reason, path string
		fields       url.Values
		es, en       string
	}{
		{"no number", till, url.Values{"totalAmount": {"diez"}}, "Importe: debe ser un número", "Amount: it must be a number"},
		{"a quantity of 0", till, url.Values{"totalAmount": {"10"}, "items[0].sku": {"A"}, "items[0].price": {"1"}, "items[0].quantity": {"0"}},
			"Cantidad: debe ser mayor que 0", "Quantity: it must be above 0"},
		{"a known ticket", till, url.Values{"totalAmount": {"150"}, "externalId": {"T-1"}}, "Ese ticket ya se registró con otros datos", "That receipt was already registered with other data"},
		{"a long ticket", till, url.Values{"totalAmount": {"150"}, "externalId": {strings.Repeat("T", 300)}}, "Ticket: no puede pasar de 255 caracteres", "Receipt: it cannot be longer than 255 characters"},
		{"a long number of a customer", "/panel/clientes/nuevo", url.Values{"email": {"e@example.com"}, "externalId": {strings.Repeat("T", 300)}},
			"Número en otro sistema: no puede pasar de 255 caracteres", "Number in another system: it cannot be longer than 255 characters"},
		{"no quantity of an item that comes back", c.filled("/panel/ventas/{transactionId}/devolucion"), url.Values{"customerId": {c.names["customerId"]}, "totalAmount": {"10"}, "items[0].sku": {"A"}, "items[0].price": {"2500"}, "items[0].quantity": {"dos"}},
			"Cantidad: debe ser un número", "Quantity: it must be a number"},
		{"too precise", till, url.Values{"totalAmount": {"1.23456"}}, "Importe: admite como máximo 4 decimales", "Amount: it takes 4 decimals at most"},
	} {
		for lang, want := range map[string]string{"es": test.es, "en": test.en} {
			c.panelShop.speaks(roleOwner, lang)
			test.fields.Del(tokenField)
			w := c.panelShop.post(roleOwner, test.path, test.fields)
			page := mainOf(w.Body.String())
			c.has(test.reason, page, want, "!totalAmount debe", "!externalId ya")
			if w.Code < 400 {
				t.Errorf("%s: %d", test.reason, w.Code)
			}
		}
	}
}

// TestPanelReadings: an amount that can be read in two ways has a button for each, written as
// the country does; a button of a form that is reviewed reviews.
func TestPanelReadings(t *testing.T) {
	t.Parallel()
	c := counter{newFormWorld(t), t}
	till := c.filled("/panel/caja/{customerId}/venta")
	w := c.panelShop.post(roleOwner, till, url.Values{"totalAmount": {"1.500"}})
	c.has("the till", mainOf(w.Body.String()), `name="_reading" value="totalAmount=1.5000">1.50<`, `name="_reading" value="totalAmount=1500">1,500.00<`, "1.50 / 1,500.00")
	w = c.panelShop.post(roleOwner, till, url.Values{"totalAmount": {"1.500"}, readingField: {"totalAmount=1500"}})
	to := w.Header().Get("Location")
	sold, _ := parseID(madeAt(to))
	if s := must(c.panelShop.shop, func(t *txn) (*sale, error) { return t.sales.get(sold) }); s.Total != dec("1500") {
		t.Errorf("sold %s", s.Total)
	}
	for _, chosen := range []string{"totalAmount=7", "externalId=1500", "totalAmount"} { // none of the two
		if w := c.panelShop.post(roleOwner, till, url.Values{"totalAmount": {"1.500"}, readingField: {chosen}}); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", chosen, w.Code)
		}
	}
	if w := c.panelShop.post(roleOwner, till, url.Values{"totalAmount": {"20"}, readingField: {"totalAmount=1500"}}); w.Code != http.StatusSeeOther || !strings.Contains(c.panelShop.open(roleOwner, w.Header().Get("Location")).Body.String(), "20.00") {
		t.Error("a button counts for what is typed without a doubt")
	}
	form := c.filled("/panel/ventas/{transactionId}/devolucion")
	w = c.panelShop.post(roleOwner, form, url.Values{"customerId": {c.names["customerId"]}, "totalAmount": {"1.500"}, reviewField: {"1"}})
	c.has("a return", mainOf(w.Body.String()), `name="_review" value="totalAmount=1500"`)
	w = c.panelShop.post(roleOwner, form, url.Values{"customerId": {c.names["customerId"]}, "totalAmount": {"1.500"}, reviewField: {"totalAmount=1500"}})
	c.has("its review", mainOf(w.Body.String()), "Se devuelve: 1,500.00", `name="totalAmount" value="1500"`, "Confirmar")

	reward := url.Values{etagField: {c.panelShop.stamp(roleOwner, "/panel/configuracion")}, "name": {"Pan"}, "pointsCost": {"1.500"}, "stock": {"2.500"}, reviewField: {"1"}}
	w = c.panelShop.post(roleOwner, "/panel/recompensas/nueva", reward)
	c.has("two amounts", mainOf(w.Body.String()), "Costo en puntos: Se puede leer", "Existencias en total: Se puede leer", `value="pointsCost=1500">1,500.00<`, `value="stock=2500">2,500.00<`)
	reward.Set(reviewField, "pointsCost=1500")
	w = c.panelShop.post(roleOwner, "/panel/recompensas/nueva", reward)
	c.has("one of them chosen", mainOf(w.Body.String()), `name="pointsCost" value="1500"`, "!Costo en puntos: Se puede leer", `value="stock=2500">2,500.00<`)
}

// TestPanelLists: a list says of all that they are all, of a filter that it is one, and of a
// page past the end that there is none; contacts are in full for who may see them.
func TestPanelLists(t *testing.T) {
	t.Parallel()
	c := counter{newFormWorld(t), t}
	for path, texts := range map[string][]string{
		"/panel/clientes":                 {"2 en total", "&#43;525587654321", "luz@example.com", "!····"},
		"/panel/clientes?search=ana":      {"1 con este filtro"},
		"/panel/clientes?page=999":        {"No hay más páginas", "!Todavía no hay"},
		"/panel/ventas":                   {"2 en total", "!con este filtro"},
		"/panel/ventas?type=Return":       {"0 con este filtro", "Ninguna venta"},
		"/panel/ventas?page=999":          {"No hay más páginas", "!Ninguna venta"},
		"/panel/canjes":                   {"1 en total"},
		"/panel/canjes?page=999":          {"No hay más páginas", "!Todavía no hay"},
		"/panel/auditoria?page=999":       {"No hay más páginas", "!Todavía no hay"},
		"/panel/clientes/{luz}?page=999":  {"No hay más páginas"},
		"/panel/clientes/{customerId}":    {`<dd>&#43;525587654321`, `!<p class="sub">&#43;525587654321`},
		"/panel/clientes?search=g&page=3": {"con este filtro"},
	} {
		c.page(path, texts...)
	}
	if page := mainOf(c.panelShop.open(roleCashier, c.filled("/panel/caja/{customerId}")).Body.String()); !strings.Contains(page, "···· 4321") || strings.Contains(page, "87654321") {
		t.Errorf("a cashier sees\n%s", page)
	}
}

// TestPanelNoSales: a list of sales that has none says so, and speaks of a filter where there is one.
func TestPanelNoSales(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	s.wants("no filter", s.open(roleOwner, "/panel/ventas").Body.String(), "Todavía no hay ventas.", "!este filtro")
	s.wants("a filter", s.open(roleOwner, "/panel/ventas?type=Return").Body.String(), "Ninguna venta coincide con este filtro")
}

// TestPanelWayBack: an edit that was reached from a page of a search leads back there.
// Panel check 36.
func TestPanelWayBack(t *testing.T) {
	t.Parallel()
	c := counter{newFormWorld(t), t}
	for n := range defaultLimit { // the list has the newest first: Ana is on its second page
		c.panelShop.shop.customer(fmt.Sprint("ana", n))
	}
	for n, listed := range []string{"!", ""} {
		query := fmt.Sprintf("page=%d&search=ana", n+1)
		way := "?de=" + url.QueryEscape(query)
		c.page("/panel/clientes?"+query, listed+`href="/panel/clientes/{customerId}`+way+`"`)
		c.page("/panel/clientes/{customerId}"+way, `href="/panel/clientes?`+html.EscapeString(query)+`">Volver a la lista`, `/editar`+way+`"`)
		page := c.panelShop.open(roleOwner, c.filled("/panel/clientes/{customerId}/editar"+way)).Body.String()
		w := c.panelShop.post(roleOwner, c.filled("/panel/clientes/{customerId}/editar"), asShown(page))
		if to := w.Header().Get("Location"); to != c.filled("/panel/clientes/{customerId}"+way) {
			t.Errorf("leads to %q\n%s", to, mainOf(page))
		}
	}
	c.page("/panel/clientes/{customerId}?de=https%3A%2F%2Fevil.test%2F%3Fa%3Db", "!evil", "!Volver a la lista")
}

// TestPanelAuditFigures: the line of a sale has its amount and points, that of points by hand
// how many.
func TestPanelAuditFigures(t *testing.T) {
	t.Parallel()
	c := counter{newFormWorld(t), t}
	c.panelShop.post(roleOwner, c.filled("/panel/caja/{customerId}/venta"), url.Values{"totalAmount": {"150"}})
	c.panelShop.post(roleOwner, c.filled("/panel/clientes/{customerId}/puntos/dar"), url.Values{"amount": {"12.5"}, "comment": {"Por la espera"}})
	c.comesBack("back", url.Values{"totalAmount": {"1000"}})
	c.page("/panel/auditoria", "Registró una venta <b>150.00\u00a0MXN · 15 Lunas</b>", "Dio puntos a mano <b>12.5 Lunas</b>", "Registró una devolución <b>1,000.00\u00a0MXN · −100 Lunas</b>")
}

// TestPanelFirstCommands: the command that lets the first person in works as it stands.
// Panel check 1.
func TestPanelFirstCommands(t *testing.T) {
	t.Parallel()
	s := &panelShop{shop: newShop(t, panelSetup)}
	s.api = s.shop.served().api
	s.panel = thePanel(s.api, panelAddress{}, s.shop.engine.sessionLimits)
	s.api.panel = s.panel
	b := s.browser()
	b.want(http.StatusOK, "", b.send("GET", "/panel/entrar", nil), "<pre tabindex=\"0\">sello user invite -email ana@ejemplo.mx -role owner</pre>")
	s.shop.secondShop()
	b.want(http.StatusOK, "", b.send("GET", "/panel/entrar", nil), "sello user invite -org cafe-luna -email", "sello user invite -org tienda -email")
}

// TestPartOfUnit: an amount with a part of a unit has two places, also where a currency has none.
func TestPartOfUnit(t *testing.T) {
	t.Parallel()
	f := newFormat(t, "CO", "es", "COP")
	for amount, want := range map[string]string{"1500.5": "1.500,50", "1500": "1.500", "0.05": "0,05", "1.2345": "1,2345"} {
		if got := f.Money(dec(amount)); got != want {
			t.Errorf("%s: %s, want %s", amount, got, want)
		}
	}
}

// madeAt is the id in the address that a form leads to.
func madeAt(location string) string {
	path, _, _ := strings.Cut(location, "?")
	return path[strings.LastIndex(path, "/")+1:]
}

// TestPanelLots: the page of a customer says what expires when, and what is pending until when,
// of the program whose movements it shows.
func TestPanelLots(t *testing.T) {
	t.Parallel()
	of := newShop(t, setup{program: `"currency":"Lunas","expiry":{"days":30},"rules":[` + onePer1 + `,{"key":"grano","name":"Grano","points":7,"pendingDays":5}]`})
	ana := of.customer("ana")
	of.buy(ana, "10")
	of.pass(24 * time.Hour)
	of.buy(ana, "4")
	s := newPanelShopOn(of) // whose sessions would have ended by then
	page := "/panel/clientes/" + ana.String()
	lots := func(path string) (rows []string) {
		t.Helper()
		body := s.open(roleOwner, path).Body.String()
		_, shown, _ := strings.Cut(body, "<summary>Qué vence y cuándo</summary>")
		shown, _, _ = strings.Cut(shown, "</details>")
		for _, m := range regexp.MustCompile(`(?s)<td class="n">([^<]*)</td><td><time datetime="([^"T]*)T[^"]*">[^<]*</time>(.*?)</td>`).FindAllStringSubmatch(shown, -1) {
			rows = append(rows, strings.TrimSpace(m[1]+" "+m[2]+" "+regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[3], "")))
		}
		return rows
	}
	day := func(days int) string { return of.clock.time().AddDate(0, 0, days).Format(time.DateOnly) }
	want := []string{"10 " + day(29), "4 " + day(30), "7 " + day(4) + "  pendientes hasta esa fecha", "7 " + day(5) + "  pendientes hasta esa fecha"}
	if d := cmp.Diff(want, lots(page)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestPanelHolds: the page of a customer and the till say which points are set aside. Who may move
// points releases each by the button beside it, and no other one.
func TestPanelHolds(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	s, names := w.panelShop, w.names
	parsed := func(name string) id { u, _ := parseID(names[name]); return u }
	ana, luz := parsed("customerId"), parsed("luz")
	page, till := w.filled("/panel/clientes/{customerId}"), w.filled("/panel/caja/{customerId}")
	show := func(as role, path string) string { return s.open(as, path).Body.String() }
	path := func(of string, hold id) string {
		return "/panel/clientes/" + of + "/retenciones/" + hold.String() + "/liberar"
	}
	if got := s.get(roleOwner, page); got.Code != http.StatusOK {
		t.Errorf("without holds the page leads to %s", got.Header().Get("Location"))
	}
	s.wants("before", show(roleOwner, page), "!etenci", "400 <")
	s.wants("before, at the till", show(roleCashier, till), "!etenci")

	short := s.shop.hold(ana, "10", leastHold, "")
	s.shop.pass(time.Second)
	long := s.shop.hold(ana, "40", mostHold, "Pedido <7>")
	other := s.shop.hold(luz, "1", mostHold, "")
	shown := []string{"350 <", "50 en retención", "Pedido &lt;7&gt;", `"n fig">40<`, `"n fig">10<`, "Retención"}
	s.wants("two holds", show(roleOwner, page), append(shown, path(names["customerId"], short), path(names["customerId"], long), "!"+other.String())...)
	s.wants("who may only look", show(roleViewer, page), append(shown, "!Liberar", "!/liberar")...)
	s.wants("at the till", show(roleCashier, till), "350 <", "50 en retención", "!etenciones", "!Liberar", "Retención ·")
	s.wants("at another's", show(roleCashier, w.filled("/panel/caja/{luz}")), "1 en retención")
	s.speaks(roleManager, "en")
	s.wants("in English", show(roleManager, page), "50 on hold", "<h2>Holds</h2>", ">Release</button>", "Hold")

	for _, test := range []struct {
		reason string
		as     role
		path   string
		code   int
		texts  []string
	}{
		{"a cashier", roleCashier, path(names["customerId"], long), http.StatusForbidden, nil},
		{"a viewer", roleViewer, path(names["customerId"], long), http.StatusForbidden, nil},
		{"another customer's", roleOwner, path(names["luz"], long), http.StatusNotFound, []string{"Retención no encontrada"}},
		{"none", roleOwner, path(names["customerId"], ana), http.StatusNotFound, nil},
	} {
		before := s.shop.entries()
		answer := s.post(test.as, test.path, url.Values{})
		if answer.Code != test.code || !sameEntries(before, s.shop.entries()) {
			t.Errorf("%s: %d, want %d", test.reason, answer.Code, test.code)
		}
		s.wants(test.reason, answer.Body.String(), test.texts...)
	}

	before, press := s.shop.entries(), []string{tokenField, s.panel.random(), "_de", "search=ana"}
	if to := s.led(roleOwner, path(names["customerId"], long), press...); to != page+"?de=search%3Dana" {
		t.Errorf("it leads to %s", to)
	}
	s.led(roleOwner, path(names["customerId"], long), press...)
	made := auditedSince(t, before, s.shop.entries())
	if len(made) != 1 || made[0].Action != "points.released" || made[0].Subject != names["customerId"] || len(made[0].Changes) != 2 {
		t.Errorf("the audit log got %+v", made)
	}
	s.wants("one was released", show(roleOwner, page), "390 <", "10 en retención", "Liberación de una retención", "!"+long.String(), short.String())
	answer := s.post(roleOwner, path(names["customerId"], long), url.Values{})
	if answer.Code != http.StatusConflict {
		t.Errorf("once more: %d", answer.Code)
	}
	s.wants("once more", answer.Body.String(), `role="alert"`, "La retención ya terminó", path(names["customerId"], short))
	s.shop.pass(leastHold * time.Second)
	answer = s.post(roleOwner, path(names["customerId"], short), url.Values{})
	if answer.Code != http.StatusConflict {
		t.Errorf("one that has expired: %d", answer.Code)
	}
	s.wants("one that has expired", answer.Body.String(), "La retención ya terminó", "400 <", "!/liberar", "!en retención")

	part := s.shop.hold(ana, "5", usualHold, "")
	must(s.shop, func(t *txn) (any, error) { return t.points.capture(part, dec("2")) })
	s.wants("one that was captured", show(roleOwner, page), "398 <", "Cobro de una retención", "!en retención")
	must(s.shop, func(t *txn) (any, error) { return t.points.release(other) })
	mine := s.shop.hold(luz, "3", usualHold, "")
	s.shop.merged(ana, luz)
	s.wants("one that a merge moved", show(roleOwner, page), "3 en retención", path(names["customerId"], mine))
	s.led(roleOwner, path(names["customerId"], mine))
	s.shop.verified()
}

// TestPanelCategories: every movement has a name in the panel.
func TestPanelCategories(t *testing.T) {
	t.Parallel()
	for _, category := range allCategories {
		if !hasText("category." + category) {
			t.Errorf("%s has none", category)
		}
	}
}

// TestPanelReturnSays: the review of a return by item says how many points it takes and which
// balance it leaves, and it takes those.
// Panel check 39.
func TestPanelReturnSays(t *testing.T) {
	t.Parallel()
	says := regexp.MustCompile(`Se retira: ([^ ]+) Lunas\.</b><span>Saldo ([^<]+)</span>`)
	for _, rules := range []string{
		`{"key":"base","name":"Base","per":{"amount":10,"points":1}}`,
		`{"key":"base","name":"Base","per":{"amount":7,"points":1.5}},{"key":"a","name":"A","perItem":3,"skus":["A"]},{"key":"doble","name":"Doble","multiplier":2}`,
		`{"key":"grande","name":"Grande","points":50,"minAmount":100},{"key":"b","name":"B","per":{"amount":10,"points":2},"skus":["B"]}`,
	} {
		s := newPanelShop(t, setup{program: `"currency":"Lunas","rules":[` + rules + `]`})
		f := newFormat(t, "MX", "es", "MXN")
		ana := s.shop.customer("ana")
		s.shop.buy(ana, "1000")
		sold := s.shop.buy(ana, "351", item{"A", dec("90"), dec("3")}, item{"B", dec("40.5"), dec("2")})
		path := "/panel/ventas/" + sold.ID.String() + "/devolucion"
		for _, back := range []map[string]string{{"items[0].quantity": "1"}, {"items[1].quantity": "0.5"}, {"items[0].quantity": "2", "items[1].quantity": "1"}, {"items[0].quantity": "0.5"}} { // the last one is of what is left
			fields := url.Values{reviewField: {"1"}, "customerId": {ana.String()}}
			for _, m := range regexp.MustCompile(`name="(items\[\d\]\.\w+)" value="([^"]*)"`).FindAllStringSubmatch(s.open(roleOwner, path).Body.String(), -1) {
				fields.Set(m[1], m[2])
			}
			for name, quantity := range back {
				fields.Set(name, quantity)
			}
			before := s.shop.standing(ana).Balance
			said := says.FindStringSubmatch(mainOf(s.post(roleOwner, path, fields).Body.String()))
			if said == nil || s.shop.standing(ana).Balance != before {
				t.Fatalf("%s: %v: no review, or one that takes\n%s", rules, back, mainOf(s.post(roleOwner, path, fields).Body.String()))
			}
			fields.Del(reviewField)
			fields.Del(tokenField)
			if w := s.post(roleOwner, path, fields); w.Code != http.StatusSeeOther {
				t.Fatalf("%s: %v: %d\n%s", rules, back, w.Code, mainOf(w.Body.String()))
			}
			after := s.shop.standing(ana).Balance
			if took, left := f.Number(before-after), f.Number(after); said[1] != took || said[2] != left || after >= before {
				t.Errorf("%s: %v took %s and left %s; it said %s and %s", rules, back, took, left, said[1], said[2])
			}
		}
	}
}

// TestPanelReturnOfPayment: the review of a return says what of its payment it gives back, and gives
// back that. The pages of the sale and its return have the payment.
func TestPanelReturnOfPayment(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, paySetup)
	ana := s.shop.customer("ana")
	s.shop.buy(ana, "2000")
	sold, err := s.shop.sell(newSale{Customer: ana, Total: dec("350"), Pay: &newPayment{Points: dec("200")}, Source: sourceAPI})
	s.shop.ok(err)
	path := "/panel/ventas/" + sold.ID.String()
	s.wants("the sale", s.open(roleOwner, path).Body.String(), "<dt>Pagado con puntos</dt><dd>200 Lunas (20.00 MXN)</dd>", "<dt>Pagado en dinero</dt><dd>330.00 MXN</dd>")
	fields := url.Values{reviewField: {"1"}, "customerId": {ana.String()}, "totalAmount": {"116.67"}}
	review := s.post(roleOwner, path+"/devolucion", fields).Body.String()
	s.wants("the review", review, "Vuelven 66 Lunas a su saldo; entrega 110.07 MXN", "!Vencieron")
	back := s.led(roleOwner, path+"/devolucion", "customerId", ana.String(), "totalAmount", "116.67")
	s.wants("the return", s.open(roleOwner, back).Body.String(), "<dt>Puntos que volvieron</dt><dd>66 Lunas</dd>", "<dt>Devuelto en dinero</dt><dd>110.07 MXN</dd>")
	s.wants("the customer", s.open(roleOwner, "/panel/clientes/"+ana.String()).Body.String(), ">Pago de una compra</a>", ">Pago devuelto</a>", "!Canje<")
	without, err := s.shop.sell(newSale{Customer: ana, Total: dec("5"), Source: sourceAPI})
	s.shop.ok(err)
	s.wants("a sale without", s.open(roleOwner, "/panel/ventas/"+without.ID.String()).Body.String(), "<h1>Compra", "!Pagado")
}

// TestPanelComment: a comment is stored with LF between its lines, and as long as the API
// would take it, by its characters.
// Panel check 41.
func TestPanelComment(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	for _, test := range []struct {
		reason, comment string
		stored          bool
	}{
		{"two lines", "Dos líneas\nde comentario", true},
		{"500 of two bytes", strings.Repeat("é", 500), true},
		{"501 of them", strings.Repeat("é", 501), false},
		{"500 of four bytes", strings.Repeat("😀", 500), true},
		{"501 of them", strings.Repeat("😀", 501), false},
		{"500 with the end of a line, which a browser sends as two", strings.Repeat("a", 250) + "\n" + strings.Repeat("b", 249), true},
	} {
		path := w.filled("/panel/clientes/{customerId}/puntos/dar")
		byForm := w.panelShop.post(roleOwner, path, url.Values{"amount": {"1"}, "comment": {strings.ReplaceAll(test.comment, "\n", "\r\n")}})
		byAPI := answerTo(w.panelShop.api, newRequest("POST", w.filled("/api/v1/points/customers/{customerId}/add"), w.names["key"], fmt.Sprintf(`{"amount":1,"comment":%q}`, test.comment)))
		if (byForm.Code == http.StatusSeeOther) != test.stored || (byAPI.Code < 300) != test.stored {
			t.Errorf("%s: %d by the form, %d by the API\n%s", test.reason, byForm.Code, byAPI.Code, mainOf(byForm.Body.String()))
		}
		if !test.stored {
			continue
		}
		var list struct{ Data []struct{ Comment string } }
		w.panelShop.shop.ok(json.Unmarshal(answerTo(w.panelShop.api, newRequest("GET", w.filled("/api/v1/points/customers/{customerId}/movements?limit=2"), w.names["key"], "")).Body.Bytes(), &list))
		for _, m := range list.Data {
			if m.Comment != test.comment {
				t.Errorf("%s: %q is stored", test.reason, m.Comment)
			}
		}
		if len(list.Data) != 2 {
			t.Errorf("%s: %d movements", test.reason, len(list.Data))
		}
	}
}
