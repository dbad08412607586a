package main

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// What people at a counter do with the pages of customers and sales.

// TestPanelKnownContact: an enrolment by hand with a contact that a customer has stores nothing,
// says whose it is without showing the contact, and leads there.
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
	before := s.shop.entries()
	found := mainOf(s.open(roleOwner, path+"?search=luz").Body.String())
	if n := strings.Count(found, `name="_review"`); n != 1 {
		t.Errorf("%d buttons that compare, want 1:\n%s", n, found)
	}
	page := mainOf(s.post(roleOwner, path, url.Values{"from": {w.names["luz"]}, reviewField: {"1"}}).Body.String())
	for _, text := range []string{
		"luz pasa a ser parte de Ana García",
		"<tr><th scope=\"row\">Lunas</th><td>400</td><td>120</td><td>520</td></tr>",
		"<td>5,000.00\u00a0MXN</td><td>1,200.00\u00a0MXN</td><td>6,200.00\u00a0MXN</td>",
		"<li>Email: luz@example.com</li>",
		"Unir para siempre",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("no %q in\n%s", text, page)
		}
	}
	if strings.Count(page, "<form") != 1 || strings.Contains(page, reviewField) {
		t.Errorf("more than the one button:\n%s", page)
	}
	if !reflect.DeepEqual(before, s.shop.entries()) {
		t.Error("the comparison has stored something")
	}
	if answer := s.post(roleOwner, path, asShown(page)); answer.Code != http.StatusSeeOther {
		t.Errorf("%d\n%s", answer.Code, mainOf(answer.Body.String()))
	}
	if luz := must(s.shop, func(t *txn) (*customer, error) { u, _ := parseID(w.names["luz"]); return t.customer(u) }); luz.Status != statusMerged {
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
	c.names[name] = to[strings.LastIndex(to, "/")+1:]
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
	c.page(form, "Devolver todo: 2,500.00", `name="totalAmount" value="2,500"`, "quedan 1 × 2,500.00")
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
	ret := must(c.panelShop.shop, func(t *txn) (*sale, error) { return t.sale(back) })
	if got := fmt.Sprint(ret.Total, ret.Items); got != "20 [{B 20 1}]" {
		t.Errorf("%s came back\n%s", got, mainOf(w.Body.String()))
	}
}

// TestPanelReturnOfSpentPoints: the review says what is gone already.
func TestPanelReturnOfSpentPoints(t *testing.T) {
	t.Parallel()
	c := counter{newFormWorld(t), t}
	w := c.panelShop.post(roleOwner, c.filled("/panel/ventas/{transactionId}/devolucion"), url.Values{reviewField: {"1"}, "customerId": {c.names["customerId"]}, "totalAmount": {"5000"}})
	c.has("review", mainOf(w.Body.String()), "se retiran 400 Lunas", "100 Lunas ya se gastaron: no se pueden retirar", "Confirmar")
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
	c.names["transactionId"] = sold[strings.LastIndex(sold, "/")+1:]
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
}

// TestPanelStampCard: pages show every program that a customer has something in, each with its
// currency.
func TestPanelStampCard(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{program: `"currency":"Lunas",` + strings.Replace(stampCard, `"name":"Stamps"`, `"name":"Tarjeta","currency":"Sellos"`, 1), also: freeCoffee})
	ana := s.shop.customer("ana")
	w := s.post(roleOwner, "/panel/caja/"+ana.String()+"/venta", url.Values{"totalAmount": {"100"}, "items[0].sku": {"COFFEE"}, "items[0].price": {"50"}, "items[0].quantity": {"2"}})
	to := w.Header().Get("Location")
	c := counter{&formWorld{s, map[string]string{"customerId": ana.String(), "sale": to[strings.LastIndex(to, "/")+1:]}}, t}
	c.page("/panel/clientes/{customerId}", "<p>2 Sellos</p>", "+10 Lunas</td>", "<b>Lunas</b>", "<small>2 Sellos</small>")
	stamps := s.shop.config().Programs[1].ID.String()
	c.page("/panel/clientes/{customerId}", `<a href="/panel/clientes/{customerId}?loyaltyProgramId=`+stamps+`">Sellos</a>`)
	c.page("/panel/clientes/{customerId}?loyaltyProgramId="+stamps, "+2 Sellos</td>", "<b>Sellos</b>")
	c.page("/panel/ventas/{sale}", "<dd>10 Lunas</dd>", "<dd>2 Sellos</dd>")
	c.page("/panel", "Puntos por deber, Sellos</span><b>2</b>")
	back := s.post(roleOwner, c.filled("/panel/ventas/{sale}/devolucion"), url.Values{reviewField: {"1"}, "customerId": {ana.String()}, "totalAmount": {"100"}})
	c.has("review", mainOf(back.Body.String()), "se retiran 10 Lunas, 2 Sellos")
}
