package main

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var saleDate = regexp.MustCompile(`<tr><td><a href="/panel/ventas/[^"]*"><time datetime="([^"]*)"`)

// comesBack starts a session of a member whose last one has ended.
func (s *panelShop) comesBack(as role) {
	s.tokens[as] = must(s.shop, func(t *txn) (string, error) { return t.people.startSession(s.users[as], sessionFull, &arrival{}) })
}

// TestPanelSalesByDate: the list of sales is in the order of the dates that it shows, also if
// some came late: with each filter, over all its pages, and of one maker.
func TestPanelSalesByDate(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{settings: `"maxLateDays":60`})
	ana, luz := s.shop.customer("ana"), s.shop.customer("luz")
	till := creator{Type: byUser, ID: s.users[roleCashier]}
	var all []string
	for n := range 45 {
		s.shop.pass(time.Hour)
		in := newSale{Customer: ana, Total: decimalOf(n + 1), Type: typePurchase, ExternalID: fmt.Sprint("T-", n%2)}
		if n%3 == 0 {
			in.Customer = luz
		}
		if n%4 == 3 { // it came late
			in.OccurredAt = s.shop.clock.add(-time.Duration(n) * 41 * time.Minute)
		}
		sold := must(s.shop, func(t *txn) (*sale, error) {
			t.by = till
			sold, _, err := t.sales.register(in)
			return sold, err
		})
		all = append(all, sold.CreatedAt.String())
	}
	s.comesBack(roleOwner)
	slices.Sort(all)
	slices.Reverse(all)
	dates := func(path string) (list []string) {
		for _, found := range saleDate.FindAllStringSubmatch(s.open(roleOwner, path).Body.String(), -1) {
			list = append(list, found[1])
		}
		return list
	}
	for path, want := range map[string]int{
		"/panel/ventas?": 45, "/panel/ventas?type=Purchase": 45, "/panel/ventas?search=ana": 30, "/panel/ventas?externalId=T-1": 22,
		"/panel/ventas?from=2000-01-01": 45, "/panel/ventas?search=luz&externalId=T-0": 8,
	} {
		var got []string
		for page := 1; page <= 3; page++ {
			got = append(got, dates(fmt.Sprint(path, "&page=", page))...)
		}
		if len(got) != want || !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("%s: %d sales, want %d: %v", path, len(got), want, got)
		}
		if strings.HasSuffix(path, "?") {
			same(t, "all sales", got, all)
		}
		if page := mainText(s.open(roleOwner, path).Body.String()); !strings.Contains(page, fmt.Sprint(want, " ")) || strings.Contains(page, tr(speaking("es"), "sales.registered")) {
			t.Errorf("%s: %s", path, page)
		}
	}
	by := "/panel/ventas?quien=" + till.ID.String()
	same(t, "the sales of a maker", slices.Concat(dates(by), dates(by+"&antes=25"), dates(by+"&antes=5")), all)
}

// TestPanelSalesRegistered: where a search finds so many sales that they stay in the order of
// registration, the page says so.
func TestPanelSalesRegistered(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{settings: `"maxLateDays":60`})
	ana := s.shop.customer("ana")
	for range fewSales + 1 {
		s.shop.pass(time.Minute)
		s.shop.buy(ana, "5")
	}
	s.comesBack(roleOwner)
	const page = "/panel/ventas?search=ana"
	notice := map[string]string{"es": tr(speaking("es"), "sales.registered"), "en": tr(speaking("en"), "sales.registered")}
	if strings.Contains(s.open(roleOwner, page).Body.String(), notice["es"]) {
		t.Error("the notice stands where the dates are in order")
	}
	_, err := s.shop.sell(newSale{Customer: ana, Total: dec("7"), OccurredAt: s.shop.clock.add(-time.Hour)})
	s.shop.ok(err)
	s.comesBack(roleOwner)
	for lang, want := range notice {
		s.speaks(roleOwner, lang)
		if !strings.Contains(s.open(roleOwner, page).Body.String(), want) {
			t.Errorf("%s: no notice", lang)
		}
	}
	if strings.Contains(s.open(roleOwner, "/panel/ventas").Body.String(), notice["en"]) {
		t.Error("the notice stands without a search")
	}
}

// TestPanelGifts: the till, the sale's page and a return say which vouchers a purchase gave, and
// the simulator and the forms know them.
func TestPanelGifts(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{program: `"currency":"Sellos","tiers":[{"name":"Plata","threshold":0},{"name":"Oro","threshold":100}],"rules":[{"key":"sello","name":"Sello","points":5},{"key":"dos","name":"Pan en la segunda","every":2,"reward":"pan"}]`,
		also: `"rewards":[{"key":"cafe","program":"club","name":"Café","pointsCost":10,"fulfilment":"Voucher","validDays":30,"autoIssue":true},
			{"key":"pan","program":"club","name":"Pan","pointsCost":10,"fulfilment":"Voucher","stock":0}]`})
	ana := s.shop.customer("ana")
	sell := func() *counter {
		w := s.post(roleOwner, "/panel/caja/"+ana.String()+"/venta", url.Values{"totalAmount": {"100"}})
		to := w.Header().Get("Location")
		return &counter{&formWorld{s, map[string]string{"customerId": ana.String(), "sale": madeAt(to), "transactionId": madeAt(to), "till": to}}, t}
	}
	sell()
	c := sell()
	labelled, err := s.shop.sell(newSale{Customer: s.shop.customer("eva"), Total: dec("1"), Source: sourceAPI, Labels: saleLabels{{"canal", "web"}, {"pago", "efectivo <b>"}}})
	s.shop.ok(err)
	c.page("/panel/ventas/"+labelled.ID.String(), "Etiquetas</dt><dd class=\"said\">canal: web<br>pago: efectivo &lt;b&gt;</dd>")
	c.page(c.names["till"], "Gana un vale de «Café»: ", ", hasta el 1 abr 2026", "«Pan en la segunda» no pudo dar su vale: se agotó", "Sello: 5")
	c.page("/panel/ventas/{sale}", "Vales que dio", "Café ", "Por usar", `<p class="soft small">Pan en la segunda</p></div><p class="why">se agotó</p>`)
	page := "/panel/ventas/{sale}/devolucion"
	back := s.post(roleOwner, c.filled(page), url.Values{reviewField: {"1"}, "customerId": {ana.String()}, "totalAmount": {"100"}})
	c.has("review", mainOf(back.Body.String()), "Su vale de «Café» (", ") se canceló", "Se retira: 5 Sellos")
	if strings.Contains(back.Body.String(), "restoreRedemptions") {
		t.Error("a voucher that nobody used can be given back")
	}
	c.comesBack("back", url.Values{"totalAmount": {"100"}})
	c.page("/panel/ventas/{back}", "Vales que dio", "Cancelado")

	s.shop.apply([]byte(strings.Replace(string(s.shop.exportedDocument()), `"stock":0`, `"stock":9`, 1)))
	simulated := html.UnescapeString(s.get(roleViewer, "/panel/simulador?cliente="+ana.String()+"&totalAmount=10").Body.String())
	c.has("simulator", simulated, `<p>Una de cada 2 compras, un vale de «Pan» por compra.</p><p class="soft small">Pan en la segunda</p></div><b class="n">un vale</b>`)

	p := s.shop.config().Programs[0]
	rule := "/panel/programa/" + p.ID.String() + "/reglas/" + p.ruleIDOf("dos").String()
	c.page(rule, `<option value="pan" selected>Pan</option>`, "!budget")
	c.page("/panel/programa/"+p.ID.String()+"/nueva?efecto=Tier", `<option value="cafe">Café</option>`, `name="tiers[1]"`, "!minAmount")
	for _, form := range []struct {
		path, asked string
		fields      url.Values
		said        string
	}{
		{rule, "", url.Values{"effect": {"reward"}, "name": {"Café en la tercera"}, "reward": {"cafe"}, "every": {"3"}}, `"every":3,"reward":"cafe"`},
		{"/panel/programa/" + p.ID.String() + "/nueva", "?efecto=Tier", url.Values{"effect": {"Tier"}, "on": {"Tier"}, "name": {"Llega a Oro"}, "reward": {"pan"}, "tiers[1]": {"Oro"}}, `"on":"Tier","tiers":["Oro"],"reward":"pan"`},
		{"/panel/recompensas/" + s.shop.config().Rewards[1].ID.String(), "", url.Values{"name": {"Pan"}, "autoIssue": {"true"}}, `"autoIssue":true`},
	} {
		s.changeConfig(form.path+form.asked, form.path, form.fields)
		if document := string(s.shop.exportedDocument()); !strings.Contains(document, form.said) {
			t.Errorf("%s: want %s in %s", form.path, form.said, document)
		}
	}
}

var ticketSetup = setup{settings: ticketSettings, program: panelSetup.program}

// givesTicket has a member give a ticket at the till, and returns its page.
func (s *panelShop) givesTicket(as role, externalID string) string {
	s.shop.Helper()
	path, _, _ := strings.Cut(s.led(as, newTicketPath, "totalAmount", "100", "externalId", externalID), "?")
	return path
}

// TestPanelWithoutTickets: an organization without tickets has none of their pages, and no link to one.
func TestPanelWithoutTickets(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	for _, path := range []string{newTicketPath, ticketsPath, pathOfTicket(id{9}.String())} {
		if w := s.open(roleOwner, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	before := s.shop.entries()
	for path, fields := range map[string]url.Values{newTicketPath: {"totalAmount": {"10"}, "externalId": {"R-1"}}, pathOfTicket(id{9}.String()) + "/cancelar": {}} {
		if w := s.post(roleOwner, path, fields); w.Code != http.StatusNotFound {
			t.Errorf("POST %s: %d", path, w.Code)
		}
	}
	same(t, "the store", s.shop.entries(), before)
	for _, path := range []string{"/panel/caja", "/panel/ventas", activityPath, "/panel/auditoria", "/panel/configuracion"} {
		s.wants(path, s.open(roleOwner, path).Body.String(), "!ticket\"", "!/panel/ventas/tickets", "!tickets de un día", "!ticket.created", "!settings.tickets")
	}
}

// TestTillTicketUnclaimed: what is on a ticket that nobody has claimed, scanned or typed, leads to nobody, and
// the till says how its sale is registered.
func TestTillTicketUnclaimed(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, ticketSetup)
	path := s.givesTicket(roleCashier, "R-1")
	code := regexp.MustCompile(`T-[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{2}`).FindString(s.open(roleManager, path).Body.String())
	find := func(text string) string {
		return s.open(roleCashier, withQuery("/panel/caja", []pair{{"q", text}})).Body.String()
	}
	for _, text := range []string{code, "https://club.test/c/" + code, "R-1"} {
		s.wants("found by "+text, find(text), "El ticket R-1 está por reclamar", "!No hay nadie")
	}
	s.wants("no such ticket", find("R-2"), "No hay nadie")
	_, err := s.shop.sell(newSale{Customer: s.shop.customer("ana"), Total: dec("5"), ExternalID: "R-1"})
	s.shop.ok(err)
	s.wants("registered since", find(code), "No hay nadie")
}

// TestTicketsOfMembers: who sees, gives and cancels which tickets.
func TestTicketsOfMembers(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, ticketSetup)
	cashiers := s.givesTicket(roleCashier, "R-1")
	managers := s.givesTicket(roleManager, "R-2")
	status := func(as role, path string) int { return s.open(as, path).Code }
	for _, test := range []struct {
		as   role
		path string
		want int
	}{
		{roleCashier, cashiers, 200}, {roleCashier, managers, 403}, {roleCashier, ticketsPath, 403}, {roleCashier, newTicketPath, 200},
		{roleManager, cashiers, 200}, {roleManager, ticketsPath, 200}, {roleOwner, cashiers, 200},
		{roleViewer, cashiers, 200}, {roleViewer, ticketsPath, 200}, {roleViewer, newTicketPath, 403},
		{roleDeveloper, cashiers, 403}, {roleDeveloper, ticketsPath, 403}, {roleDeveloper, newTicketPath, 403},
		{roleCashier, pathOfTicket(id{9}.String()), 404}, {roleOwner, pathOfTicket("nada"), 404},
	} {
		if got := status(test.as, test.path); got != test.want {
			t.Errorf("%s opens %s: %d, want %d", test.as, test.path, got, test.want)
		}
	}
	s.wants("a viewer could claim it", s.open(roleViewer, cashiers).Body.String(), "!T-", "!<svg", "!cancelar", "R-1")
	s.wants("a manager", s.open(roleManager, cashiers).Body.String(), "T-", "<svg", "cancelar")
	for as, path := range map[role]string{roleCashier: managers, roleViewer: cashiers} {
		if w := s.post(as, path+"/cancelar", url.Values{"externalId": {"R-1"}}); w.Code != http.StatusForbidden {
			t.Errorf("%s cancels %s: %d", as, path, w.Code)
		}
	}
	s.shop.wantTickets("2 Open 0 Claimed 0 Cancelled 0 Registered 0 Expired")
	s.wants("cancelled", s.open(roleCashier, s.led(roleCashier, cashiers+"/cancelar", "externalId", "R-2")).Body.String(), "Cancelado", "!T-", "!<svg", "!cancelar")
	s.wants("what was done", s.open(roleCashier, "/panel/caja").Body.String(), cashiers, `<span class="tag">Cancelado</span>`)
	s.shop.wantTickets("1 Open 0 Claimed 1 Cancelled 0 Registered 0 Expired")

	late := s.givesTicket(roleCashier, "R-3")
	s.shop.pass(oneDay)
	s.comesBack(roleCashier)
	if got := status(roleCashier, late); got != 403 {
		t.Errorf("a cashier opens a ticket of yesterday: %d", got)
	}
	if w := s.post(roleCashier, late+"/cancelar", url.Values{}); w.Code != http.StatusForbidden {
		t.Errorf("a cashier cancels a ticket of yesterday: %d", w.Code)
	}
}

// TestTicketShown: the page has the code until the ticket is claimed, and its address where the server
// has cards.
func TestTicketShown(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, ticketSetup)
	path := s.givesTicket(roleCashier, "R-1")
	without := s.open(roleCashier, path).Body.String()
	s.api.engine.cardsAt = cardsBase
	with := s.open(roleCashier, path).Body.String()
	code := ask(s.shop, func(t *txn) (string, error) {
		x, err := t.tickets.called("R-1")
		if err != nil {
			return "", err
		}
		shape, err := newCodedTicket(t, x)
		return *shape.Code, err
	})
	s.wants("without cards", without, "<strong>"+code+"</strong>", string(qrPicture(code, code, panelQR)), "hasta el 1 abr 2026, 23:59")
	s.wants("with cards", with, "<strong>"+code+"</strong>", string(qrPicture(cardsBase+"/c/"+code, code, panelQR)))

	sold := s.shop.claimed(code, s.shop.customer("ana"))
	s.wants("claimed", s.open(roleOwner, path).Body.String(), "Reclamado", "/panel/ventas/"+sold.ID.String(), "!"+code, "!cancelar")
	s.wants("claimed, to a cashier", s.open(roleCashier, path).Body.String(), "Reclamado", "!"+sold.ID.String())
	s.wants("the sale", s.open(roleOwner, "/panel/ventas/"+sold.ID.String()).Body.String(), "Ticket reclamado")
	if w := s.post(roleCashier, path+"/cancelar", url.Values{}); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "El ticket ya se reclamó") {
		t.Errorf("a claimed ticket is cancelled: %d\n%s", w.Code, mainOf(w.Body.String()))
	}
}

// TestTicketList: filters and pages of the list.
func TestTicketList(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, ticketSetup)
	ana := s.shop.customer("ana")
	for n := range 45 {
		if x := s.shop.ticket(fmt.Sprint("R-", n)); n == 7 {
			s.shop.claimed(x.Code, ana)
		}
		s.shop.pass(time.Hour)
	}
	s.comesBack(roleOwner)
	for query, want := range map[string]int{"": 20, "?page=3": 5, "?page=4": 0, "?status=Claimed": 1, "?status=Open&page=3": 4, "?externalId=R-7": 1, "?externalId=R-7&status=Open": 0, "?from=2026-03-04": 1, "?to=2026-03-02": 20} {
		page := s.open(roleOwner, ticketsPath+query).Body.String()
		if got := strings.Count(mainOf(page), "<tr><td>"); got != want {
			t.Errorf("%s: %d rows, want %d\n%s", query, got, want, mainOf(page))
		}
	}
	s.wants("a claimed one", s.open(roleOwner, ticketsPath+"?status=Claimed").Body.String(), "/panel/ventas/", "1 con este filtro")
}
