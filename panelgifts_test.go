package main

import (
	"html"
	"net/url"
	"strings"
	"testing"
)

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
