package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// asked is what the till's field leads to: the path of a page without its token, or the names
// in the list of hits and what the page says.
func (s *panelShop) asked(as role, query string) string {
	w := s.get(as, "/panel/caja?q="+url.QueryEscape(query))
	if to := w.Header().Get("Location"); to != "" {
		at, err := url.Parse(to)
		s.shop.ok(err)
		q := at.Query()
		q.Del(tokenParam)
		at.RawQuery = q.Encode()
		return at.String()
	}
	return fmt.Sprint(w.Code, " ", mainOf(w.Body.String()))
}

// TestTillField: what people type into the till's one field, and what it leads to.
func TestTillField(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	people := map[string]string{}
	enrol := func(name string, e enrolment) id {
		return must(s.shop, func(t *txn) (id, error) {
			c, _, err := t.customers.enrol(e)
			if err == nil {
				people["/panel/caja/"+c.ID.String()] = name
			}
			return c.ID, err
		})
	}
	for i, name := range []string{"Eva Martinez", "Luz Gonzalez", "Fernando Ruiz", "Sol Sánchez", "Leo Álvarez", "Mar Jiménez", "Pia Luna"} {
		enrol(name, enrolment{FirstName: name, Phone: fmt.Sprintf("+52551000000%d", i)})
	}
	enrol("ana lopez", enrolment{FirstName: "Ana María", LastName: "López García", Email: "ana@x.mx", Phone: "+525577700201"})
	card := enrol("card", enrolment{FirstName: "Rosa", LastName: "Diez", ExternalID: "AB123456", Email: "rosa@diez.mx"})
	enrol("dialled", enrolment{FirstName: "Otilia", Phone: "+522225512345"})
	enrol("its card", enrolment{FirstName: "Nadia", ExternalID: "ABC5512345", Email: "nadia@x.mx"})
	enrol("whole", enrolment{FirstName: "Bo", Phone: "+525544332211"})
	enrol("diana", enrolment{FirstName: "Diana", Email: "mariana@y.mx"})
	_, err := s.shop.sell(newSale{Customer: card, Total: dec("5000")})
	s.shop.ok(err)
	x, err := s.shop.redeem(card, "vale")
	s.shop.ok(err)
	people["/panel/caja/"+card.String()+"/canje/"+x.ID.String()+"?"+scannedParam+"=1"] = "the voucher"
	enrolled := func(name, value string) string { return withQuery(enrolPath, []pair{{name, value}}) }
	for _, test := range []struct{ reason, query, want string }{
		{"8 letters, as a code has", "Martinez", "Eva Martinez"},
		{"the same", "Gonzalez", "Luz Gonzalez"},
		{"the same", "Fernando", "Fernando Ruiz"},
		{"8 bytes in 7 letters and 8 letters in 9 bytes", "Sánchez", "Sol Sánchez"},
		{"the same", "Álvarez", "Leo Álvarez"},
		{"the same", "Jiménez", "Mar Jiménez"},
		{"8 with a blank", "pia luna", "Pia Luna"},
		{"8 characters with an @", "ana@x.mx", "ana lopez"},
		{"an e-mail in other letters", "ANA@X.MX", "ana lopez"},
		{"an externalId of 8", "AB123456", "card"},
		{"a phone's part, dashed as a code", "7770-0201", "ana lopez"},
		{"a phone's part of 8 characters", "7770 020", "ana lopez"},
		{"words in any order", "lopez ana", "ana lopez"},
		{"words of the name", "ana garcia", "ana lopez"},
		{"a retired prefix", "044 55 4433 2211", "whole"},
		{"another one", "5215544332211", "whole"},
		{"letters that could spell a phone are a number first", "ABC5512345", "its card"},
		{"a code", x.Code, "the voucher"},
		{"a code in small letters without its dash", strings.ToLower(strings.ReplaceAll(x.Code, "-", "")), "the voucher"},
		{"a code with a blank", strings.ReplaceAll(x.Code, "-", " "), "the voucher"},
		{"an unknown phone", "55 8765 4321", enrolled("phone", "55 8765 4321")},
		{"an unknown e-mail", "eva@z.mx", enrolled("email", "eva@z.mx")},
		{"an e-mail within somebody else's is not theirs", "ana@y.mx", "200 mariana"},
		{"11 digits", "55 8765 43210", "200 No es un teléfono completo y válido (tiene 11 cifras)"},
		{"no e-mail", "eva@z", "200 No es un email válido"},
		{"3 letters in 4 bytes", "Iñé", "200 hacen falta 4 letras"},
		{"nobody", "Zacarías", "200 No hay nadie con Zacarías"},
	} {
		got := s.asked(roleCashier, test.query)
		if name, is := people[got]; is {
			got = name
		}
		if says, is := strings.CutPrefix(test.want, "200 "); is {
			if says == "mariana" {
				says = "Diana"
			}
			if !strings.HasPrefix(got, "200 ") || !strings.Contains(got, says) {
				t.Errorf("%s: %q leads to %s, want %q", test.reason, test.query, got, says)
			}
		} else if got != test.want {
			t.Errorf("%s: %q leads to %s, want %s", test.reason, test.query, got, test.want)
		}
	}
	if w := s.open(roleCashier, enrolled("phone", "55 8765 4321")); !strings.Contains(w.Body.String(), `name="firstName" value="" autocomplete="off" type="text" autofocus`) || !strings.Contains(w.Body.String(), `value="55 8765 4321"`) {
		t.Error(mainOf(w.Body.String()))
	}
}

// TestTillManyHits: a search that finds many says how many, and leads to the others.
func TestTillManyHits(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	for i := range 12 {
		must(s.shop, func(t *txn) (id, error) {
			c, _, err := t.customers.enrol(enrolment{FirstName: fmt.Sprint("Ana ", i), LastName: "García", Email: fmt.Sprintf("a%d@x.mx", i)})
			return c.ID, err
		})
	}
	if got := s.get(roleCashier, "/panel/caja?q=garcia&page=999").Header().Get("Location"); got != "/panel/caja?q=garcia" {
		t.Errorf("beyond the last page: %s", got)
	}
	for as, list := range map[role]bool{roleCashier: false, roleManager: true} {
		seen := map[string]bool{}
		path := "/panel/caja?q=garcia"
		for pages := 1; path != ""; pages++ {
			w := s.get(as, path)
			body := mainOf(w.Body.String())
			if w.Code != http.StatusOK || !strings.Contains(body, "Hay 12.") || strings.Contains(body, `href="/panel/clientes?search=garcia&amp;status=Active"`) != list || pages > 3 {
				t.Fatalf("%s, page %d: %d\n%s", as, pages, w.Code, body)
			}
			for _, part := range strings.Split(body, `<b>`)[1:] {
				name, _, _ := strings.Cut(part, "</b>")
				seen[name] = true
			}
			path = ""
			if i := strings.Index(body, `rel="next"`); i >= 0 {
				before := body[:i]
				path = strings.ReplaceAll(strings.TrimSuffix(before[strings.LastIndex(before, `href="`)+6:], `" `), "&amp;", "&")
			}
		}
		if len(seen) != 12 {
			t.Errorf("%s: %d customers on all pages", as, len(seen))
		}
	}
}

// stampSetup is a shop with a stamp card beside its points.
var stampSetup = setup{
	program: `"default":true,"currency":"Lunas","rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1}}],"tiers":[{"name":"Bronce","threshold":0}]},
		{"key":"card","name":"Tarjeta","join":"All","currency":"Sellos","rules":[{"key":"stamp","name":"Sello","per":{"amount":100,"points":1}}]`,
	settings: `"externalIds":"Unique"`,
	also: `"rewards":[{"key":"cafe","name":"Café gratis","program":"card","pointsCost":10},
		{"key":"vale","name":"Vale","program":"club","pointsCost":20,"fulfilment":"Voucher","effect":{"type":"Amount","amount":50}},
		{"key":"diez","name":"Diez","program":"club","pointsCost":20,"fulfilment":"Voucher","effect":{"type":"Percent","percent":10}},
		{"key":"pan","name":"Pan","program":"club","pointsCost":20,"fulfilment":"Voucher","effect":{"type":"Product","sku":"PAN"}}]`,
}

// wants checks that a page has texts and has others not. A text of the latter begins with "!".
func (s *panelShop) wants(reason, page string, texts ...string) {
	s.shop.Helper()
	main := strings.ReplaceAll(mainOf(page), "\u00a0", " ")
	for _, text := range texts {
		text, not := strings.CutPrefix(text, "!")
		if strings.Contains(main, text) == not {
			s.shop.Errorf("%s: %q, want %t\n%s", reason, text, !not, main)
		}
	}
}

// led sends a form and returns the page that it leads to.
func (s *panelShop) led(as role, path string, fields ...string) string {
	s.shop.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	w := s.post(as, path, form)
	if w.Code != http.StatusSeeOther {
		s.shop.Fatalf("%s: %d\n%s", path, w.Code, mainOf(w.Body.String()))
	}
	return w.Header().Get("Location")
}

// TestTillStamps: what a stamp card beside the points shows at the till.
func TestTillStamps(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, stampSetup)
	ana := s.shop.customer("ana")
	at := "/panel/caja/" + ana.String()
	page := func(path string) string { return s.open(roleCashier, path).Body.String() }
	sale := page(s.led(roleCashier, at+"/venta", "totalAmount", "550"))
	s.wants("a sale", sale, "✓ Venta de 550.00 MXN · &#43;55 Lunas · &#43;5 Sellos", "Saldo 55 Lunas · Saldo 5 Sellos", "Base: 55", "Sello: 5")
	s.wants("the head", sale, `<div class="big">55 <span class="unit">Lunas</span></div><p>5 Sellos</p>`)
	s.wants("more Lunas than the reward costs", page(at), "Café gratis · 10 Sellos</dt><dd>le faltan 5 Sellos", "Vale · 20<", "!faltan -", "!le faltan 5 Lunas")
	s.wants("too little for a stamp", page(s.led(roleCashier, at+"/venta", "totalAmount", "50")), "&#43;5 Lunas</b>", "!&#43;0 Sellos")
	s.led(roleCashier, at+"/venta", "totalAmount", "1000")
	var reward string
	for _, r := range s.shop.config().Rewards {
		if r.Key == "cafe" {
			reward = r.ID.String()
		}
	}
	s.wants("the reward", page(at), `name="expectedPoints" value="10"`, "Café gratis · 10 Sellos</button>")
	where := s.led(roleCashier, at+"/canje", "productId", reward, "expectedPoints", "10")
	redeemed := page(where)
	s.wants("redeemed", redeemed, "Café gratis · −10 Sellos", "Saldo 5 Sellos", "!Lunas</b>")
	path, _, _ := strings.Cut(where, "?")
	s.wants("cancelled", page(s.led(roleCashier, path+"/deshacer")), "Café gratis · de vuelta: 10 Sellos", "Saldo 15 Sellos", "!Deshacer")
	s.wants("the movements", page(at), "<summary>Últimos movimientos</summary>", "−10 Sellos", ">+10 Sellos", "Canje cancelado")
	s.wants("today", page("/panel/caja"), "Canje</a> <b>Café gratis</b><small>ana</small>", `<span class="tag">Cancelado</span>`, "Venta</a> <b>1,000.00 MXN</b>")
}

// TestTillPriceChanged: a reward that costs more than its button said is not redeemed.
func TestTillPriceChanged(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	ana := s.shop.customer("ana")
	_, err := s.shop.sell(newSale{Customer: ana, Total: dec("5000")})
	s.shop.ok(err)
	reward := s.shop.config().Rewards[0].ID.String()
	w := s.post(roleCashier, "/panel/caja/"+ana.String()+"/canje", url.Values{"productId": {reward}, "expectedPoints": {"70"}})
	if w.Code != http.StatusConflict || ask(s.shop, (*txn).count).Redemptions != 0 {
		t.Error(w.Code)
	}
	s.wants("the page", w.Body.String(), `<a href="#c-expectedPoints">El precio de la recompensa cambió: ahora cuesta 80</a>`, `name="expectedPoints" value="80"`)
}

// TestTillUndone: a sale that came back is shown as such; its ticket is free, and is not
// registered again by accident.
func TestTillUndone(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, stampSetup)
	ana, luz := s.shop.customer("ana"), s.shop.customer("luz")
	at := "/panel/caja/" + ana.String()
	page := func(path string) string { return s.open(roleOwner, path).Body.String() }
	sold := func(amount string) string {
		path, _, _ := strings.Cut(s.led(roleOwner, at+"/venta", "totalAmount", amount, "externalId", "T-1"), "?")
		return path
	}
	first := sold("1500")
	s.wants("it stands", page(afterDone(first)), "✓ Venta", "Deshacer", `name="totalAmount" value="1,500"`)
	back := s.led(roleOwner, first+"/deshacer", "totalAmount", "500")
	s.wants("a return", page(back), "Devolución de 500.00 MXN · −50 Lunas · −5 Sellos", `<a href="`+first+`">De la venta de 1,500.00 MXN`, "!✓", "!Deshacer")
	backPath, _, _ := strings.Cut(back, "?")
	s.wants("in part", page(first), "Venta de 1,500.00 MXN · Devuelta en parte", "Ganó 150 Lunas, retirado: 50 Lunas", "Ganó 15 Sellos, retirado: 5 Sellos", `<a href="`+backPath+`">Devolución de 500.00 MXN`, "Devolver lo que queda: 1,000.00 MXN", `name="totalAmount" value="1,000"`, "!✓")
	s.wants("a sale in part today", page("/panel/caja"), "Devuelta en parte")
	s.led(roleOwner, first+"/deshacer", "totalAmount", "1,000")
	s.wants("whole", page(first), "Venta de 1,500.00 MXN · Devuelta<", "retirado: 150 Lunas", "!✓", "!Deshacer", "!Devolver lo que queda", "!/deshacer")
	s.wants("today", page("/panel/caja"), `<span class="tag">Devuelta</span>`, "!en parte")

	n := ask(s.shop, (*txn).count).Sales
	again := s.post(roleOwner, at+"/venta", url.Values{"totalAmount": {"1500"}, "externalId": {"T-1"}})
	if again.Code != http.StatusConflict || ask(s.shop, (*txn).count).Sales != n {
		t.Errorf("the same again: %d", again.Code)
	}
	s.wants("the same again", again.Body.String(), "La venta de este ticket se deshizo. No se registró nada.", `name="again" value="1"`, "Registrar otra vez", `<a href="`+first+`">`, "!✓")
	s.wants("a fresh page", page(at), `!name="again"`)
	second, _, _ := strings.Cut(s.led(roleOwner, at+"/venta", "totalAmount", "1500", "externalId", "T-1", "again", "1"), "?")
	if second == first {
		t.Error("it leads to the sale that was undone")
	}
	s.wants("registered again", page(afterDone(second)), "✓ Venta de 1,500.00 MXN")
	s.led(roleOwner, second+"/deshacer", "totalAmount", "1500")
	other, _, _ := strings.Cut(s.led(roleOwner, "/panel/caja/"+luz.String()+"/venta", "totalAmount", "1500", "externalId", "T-1"), "?")
	s.wants("another customer", page(afterDone(other)), "✓ Venta de 1,500.00 MXN")
	s.led(roleOwner, other+"/deshacer", "totalAmount", "1500")
	s.wants("another amount", page(afterDone(sold("150"))), "✓ Venta de 150.00 MXN · &#43;15 Lunas")
}

// TestTillTrips: from the typed phone to the result of a sale are four requests, and the pages
// bring the token of their form with them.
func TestTillTrips(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	must(s.shop, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{FirstName: "Ana", Phone: "+525512345678"})
		return c.ID, err
	})
	trips := 0
	get := func(path string) (string, string) {
		for {
			w := s.get(roleCashier, path)
			if trips++; w.Code != http.StatusSeeOther {
				return path, w.Body.String()
			}
			path = w.Header().Get("Location")
		}
	}
	begin := func() (at string, form url.Values) {
		trips = 0
		path, page := get("/panel/caja?q=" + url.QueryEscape("55 1234 5678"))
		at, _, _ = strings.Cut(path, "?")
		return at, asShown(page)
	}
	send := func(path string, form url.Values) (string, string) {
		t.Helper()
		w := s.post(roleCashier, path, form)
		if trips++; w.Code != http.StatusSeeOther {
			t.Fatalf("%s: %d\n%s", path, w.Code, mainOf(w.Body.String()))
		}
		return get(w.Header().Get("Location"))
	}
	at, form := begin()
	form.Set("totalAmount", "5000")
	_, result := send(at+"/venta", form)
	s.wants("the result", result, "✓ Venta de 5,000.00 MXN", "<summary>Canjear</summary>", `action="`+at+`/canje"`)
	if trips != 4 {
		t.Errorf("%d requests of a sale", trips)
	}

	at, form = begin()
	path, page := send(at+"/canje", form)
	path, _, _ = strings.Cut(path, "?")
	s.wants("the voucher", page, "Cobrar a Ana", `action="`+path+`/venta"`, `formaction="`+at+`/venta"`, "Usar el vale y registrar venta")
	form = asShown(page)
	form.Set("totalAmount", "150")
	_, page = send(path+"/venta", form)
	s.wants("the sale with the voucher", page, "✓ Venta de 150.00 MXN", "Vale usado: ")
	if trips != 6 {
		t.Errorf("%d requests of a redemption, its use and a sale", trips)
	}
	s.wants("the voucher", s.open(roleCashier, path).Body.String(), "Ya se usó el ", "Cobrar a Ana", `action="`+at+`/venta"`, "<summary>Canjear</summary>", "!formaction")
	// A voucher that is used cannot pay for another sale, which is not made then.
	n := ask(s.shop, (*txn).count).Sales
	form.Del(tokenField)
	if w := s.post(roleCashier, path+"/venta", form); w.Code != http.StatusConflict || ask(s.shop, (*txn).count).Sales != n {
		t.Errorf("used again: %d", w.Code)
	}
}

// TestTillScanned: a voucher's code and Enter leads to its page, where Enter uses it, and the
// next one leads to the next customer. A voucher that was just redeemed is not used by Enter.
func TestTillScanned(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, stampSetup)
	ana := s.shop.customer("ana")
	_, err := s.shop.sell(newSale{Customer: ana, Total: dec("5000")})
	s.shop.ok(err)
	const next, use = `href="/panel/caja" autofocus`, `data-busy="Guardando…" autofocus>Usar ahora`
	for reward, off := range map[string]string{"vale": "Quita 50.00 MXN de la cuenta", "diez": "Quita el 10 % de la cuenta", "pan": "Quita de la cuenta el artículo PAN"} {
		x, err := s.shop.redeem(ana, reward)
		s.shop.ok(err)
		path := "/panel/caja/" + ana.String() + "/canje/" + x.ID.String()
		s.wants("redeemed", s.open(roleCashier, path).Body.String(), off, next, "!"+use)
		w := s.get(roleCashier, "/panel/caja?q="+x.Code)
		scanned := s.get(roleCashier, w.Header().Get("Location"))
		s.wants("scanned", scanned.Body.String(), off, use, "!"+next)
		used := s.led(roleCashier, path+"/uso", "code", x.Code)
		s.wants("used", s.get(roleCashier, used).Body.String(), off, next, "Usado", "!Usar ahora", "!Deshacer")
		again := s.get(roleCashier, s.get(roleCashier, "/panel/caja?q="+x.Code).Header().Get("Location"))
		s.wants("scanned again", again.Body.String(), `<div class="note bad" role="status"><b>Ya se usó el `, " · Cashier", next, "!Usar ahora", "!"+off)
		s.speaks(roleCashier, "en")
		s.wants("English", s.open(roleCashier, path).Body.String(), `<div class="note bad" role="status"><b>Already used on `, "!off the bill")
		s.wants("its page", s.open(roleOwner, "/panel/canjes/"+x.ID.String()).Body.String(), `<div class="note bad" role="status"><b>Ya se usó el `, "!La caja descuenta")
		s.speaks(roleCashier, "es")
		s.shop.pass(freshTime*time.Millisecond + time.Millisecond)
		s.wants("its address, later", s.get(roleCashier, used).Body.String(), "note bad", "!"+off)
	}
}

// TestTillWhollyByItems: a purchase whose items all came back is undone, though a part of its
// amount was not theirs.
func TestTillWhollyByItems(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, stampSetup)
	ana := s.shop.customer("ana")
	bread := item{"PAN", dec("90"), dec("1")}
	sold := s.shop.buy(ana, "100", bread)
	path := "/panel/caja/" + ana.String() + "/venta/" + sold.ID.String()
	s.wants("it stands", s.open(roleOwner, path).Body.String(), "/deshacer", `name="totalAmount" value="100"`)
	s.shop.bring(sold, "90", bread)
	s.wants("its bread came back", s.open(roleOwner, path).Body.String(), "Devuelta<", "!en parte", "!/deshacer", "!Deshacer", "!Devolver lo que queda")
}

// TestTillDoneRewards: of what the member handed over today nothing is left to say, and of a
// voucher whether it was used.
func TestTillDoneRewards(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, stampSetup)
	ana := s.shop.customer("ana")
	s.shop.buy(ana, "5000")
	rewards := map[string]id{}
	for _, r := range ask(s.shop, func(t *txn) ([]*reward, error) { return t.cfg.byCost(), nil }) {
		rewards[r.Key] = r.ID
	}
	given := func(reward string) string {
		return s.led(roleCashier, "/panel/caja/"+ana.String()+"/canje", "productId", rewards[reward].String())
	}
	handed := given("cafe")
	s.wants("its own page", s.open(roleCashier, handed).Body.String(), `<span class="tag">Entregado</span>`)
	s.wants("handed over", s.open(roleCashier, "/panel/caja").Body.String(), "<b>Café gratis</b>", "!Entregado", `!<span class="tag">`)
	given("vale")
	s.wants("a voucher", s.open(roleCashier, "/panel/caja").Body.String(), "<b>Vale</b>", `<span class="tag">Por usar</span>`, "!Entregado")
}

// TestTillTierReached: a sale that leads to another tier says which, and so does its simulation.
func TestTillTierReached(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	ana := s.shop.customer("ana")
	s.wants("simulated", s.open(roleViewer, "/panel/simulador?totalAmount=10000&cliente="+ana.String()).Body.String(), "Pasaría a Plata.")
	where := s.led(roleCashier, "/panel/caja/"+ana.String()+"/venta", "totalAmount", "10000")
	s.wants("sold", s.open(roleCashier, where).Body.String(), " · Ahora es Plata · ")
}

// TestTillContacts: the till's list masks contacts for cashiers alone.
func TestTillContacts(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	for i := range 2 {
		must(s.shop, func(t *txn) (bool, error) {
			_, _, err := t.customers.enrol(enrolment{FirstName: "Ana", LastName: "García", Phone: fmt.Sprintf("+52554433221%d", i)})
			return true, err
		})
	}
	for as, texts := range map[role][]string{
		roleCashier: {"···· 2210", "···· 2211", "!&#43;52", "!5544332210"},
		roleManager: {"&#43;525544332210", "&#43;525544332211", "!····"},
		roleOwner:   {"&#43;525544332210", "&#43;525544332211", "!····"},
	} {
		s.wants(string(as), s.get(as, "/panel/caja?q=garcia").Body.String(), texts...)
	}
}

// TestContactOnce: what stands for a name does not stand beside it once more.
func TestContactOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		c           customer
		whole, ends string // for who sees contacts, and for a cashier
	}{
		{customer{FirstName: "Ana", Phone: "+525544332210", Email: "ana@example.com"}, "+525544332210", "···· 2210"},
		{customer{FirstName: "Ana", Email: "ana@example.com"}, "ana@example.com", "a…@…"},
		{customer{Phone: "+525544332210", Email: "ana@example.com"}, "+525544332210", "···· 2210"},
		{customer{Email: "ana@example.com"}, "", ""},
		{customer{Phone: "+525544332210"}, "", ""},
	} {
		for as, want := range map[role]string{roleManager: test.whole, roleCashier: test.ends} {
			m := &member{role: as}
			if got := m.contact(&test.c); got != want {
				t.Errorf("%s of %q: %q, want %q", as, test.c.name(), got, want)
			}
		}
	}
}

// TestReturnsAmongMany: a purchase leads to its returns however many sales came after it, and
// says so where it does not.
func TestReturnsAmongMany(t *testing.T) {
	t.Parallel()
	skipShort(t)
	skipUnderRace(t)
	s := newPanelShop(t, panelSetup)
	ana := s.shop.customer("ana")
	other := s.shop.buy(ana, "5000")
	sold, err := s.shop.sell(newSale{Customer: ana, Total: dec("5000"), Source: sourceAPI})
	s.shop.ok(err)
	back := s.shop.bring(sold, "7").ID.String()
	pages := []string{"/panel/ventas/" + sold.ID.String(), "/panel/caja/" + ana.String() + "/venta/" + sold.ID.String()}
	const more = "Hay más devoluciones de esta compra"
	want := func(reason string, texts ...string) {
		t.Helper()
		for _, path := range pages {
			s.wants(reason+", "+path, s.open(roleOwner, path).Body.String(), texts...)
		}
	}
	for range 500 {
		s.shop.buy(ana, "1")
	}
	for range mostReturns - 1 {
		s.shop.bring(other, "1")
	}
	want("many sales later", "/"+back+`">`, "!"+more)
	s.shop.bring(other, "1")
	want("too many returns later", "!/"+back+`">`, more)
}

// TestTillGone: a sale that is undone says which of its points were spent already.
func TestTillGone(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, stampSetup)
	ana := s.shop.customer("ana")
	sold := s.shop.buy(ana, "250")
	_, err := s.shop.redeem(ana, "vale")
	s.shop.ok(err)
	path := "/panel/caja/" + ana.String() + "/venta/" + sold.ID.String()
	back := s.led(roleOwner, path+"/deshacer", "totalAmount", "250")
	s.wants("20 of 25 were spent", s.open(roleOwner, back).Body.String(), "−5 Lunas", "Ya gastado, no se puede retirar: 20 Lunas.")
}

// TestTillUsedVoucher: a used voucher can be taken back at the till once the purchase that it
// was used in was returned whole, by whoever may cancel it.
func TestTillUsedVoucher(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, stampSetup)
	ana := s.shop.customer("ana")
	sold := s.shop.buy(ana, "1000")
	var vale id
	for _, r := range ask(s.shop, func(t *txn) ([]*reward, error) { return t.cfg.byCost(), nil }) {
		if r.Key == "vale" {
			vale = r.ID
		}
	}
	path, _, _ := strings.Cut(s.led(roleCashier, "/panel/caja/"+ana.String()+"/canje", "productId", vale.String()), "?")
	made, _ := parseID(madeAt(path))
	x := ask(s.shop, func(t *txn) (*redemption, error) { return t.rewards.redemption(made) })
	s.shop.ok(s.shop.useIn(x, sold))
	want := func(reason string, as role, may bool) {
		t.Helper()
		offer := "/deshacer"
		if !may {
			offer = "!" + offer
		}
		s.wants(reason, s.open(as, path).Body.String(), "Usado", offer)
	}
	want("its sale stands", roleOwner, false)
	s.wants("it never expires", s.open(roleOwner, path).Body.String(), "!Vence el")
	s.shop.bring(sold, "500")
	want("in part", roleOwner, false)
	s.shop.bring(sold, "500")
	want("whole", roleOwner, true)
	want("the cashier's own, of just now", roleCashier, true)
	s.shop.pass(11 * time.Minute)
	want("the cashier's own, of before", roleCashier, false)
	s.wants("taken back", s.open(roleOwner, s.led(roleOwner, path+"/deshacer")).Body.String(), "Cancelado", "de vuelta: 20 Lunas", "!/deshacer")
	s.shop.verified()
}

// TestTillGivenBack: of a redemption that is cancelled the till says what came back.
func TestTillGivenBack(t *testing.T) {
	t.Parallel()
	for days, text := range map[int]string{4: "de vuelta: 20 Lunas", 6: "de vuelta: 0 Lunas"} {
		of := newShop(t, setup{program: `"currency":"Lunas","expiry":{"days":5},"rules":[` + onePer1 + `]`, also: `"rewards":[{"key":"vale","name":"Vale","program":"club","pointsCost":20,"fulfilment":"Voucher"}]`})
		ana := of.customer("ana")
		of.buy(ana, "100")
		x, err := of.redeem(ana, "vale")
		of.ok(err)
		of.pass(time.Duration(days) * oneDay)
		_, err = of.cancel(x)
		of.ok(err)
		s := newPanelShopOn(of) // the sessions of before would have ended
		page := s.open(roleOwner, "/panel/caja/"+ana.String()+"/canje/"+x.ID.String())
		s.wants(fmt.Sprint(days, " days"), page.Body.String(), `<div class="note bad" role="status"><b>Se canceló el `, "Cancelado", text)
	}
}

// TestTillOver: a voucher that expired, and what was handed over, are refused where they are
// looked up.
func TestTillOver(t *testing.T) {
	t.Parallel()
	lasting := stampSetup
	lasting.also = strings.Replace(lasting.also, `"fulfilment":"Voucher"`, `"fulfilment":"Voucher","validDays":30`, 1)
	of := newShop(t, lasting)
	ana := of.customer("ana")
	of.buy(ana, "5000")
	voucher, err := of.redeem(ana, "vale")
	of.ok(err)
	of.pass(400 * oneDay)
	of.buy(ana, "5000")
	handed, err := of.redeem(ana, "cafe")
	of.ok(err)
	used, err := of.redeem(ana, "vale")
	of.ok(err)
	of.ok(of.useIn(used, of.buy(ana, "10")))
	s := newPanelShopOn(of) // the sessions of before would have ended
	for x, text := range map[*redemption]string{voucher: "Venció el ", handed: "Ya se entregó el ", used: "Ya se usó el "} {
		page := s.open(roleOwner, "/panel/caja/"+ana.String()+"/canje/"+x.ID.String()).Body.String()
		s.wants(x.RewardName, page, `<div class="note bad" role="status"><b>`+text, "!Quita ", "!Vence el", formatOf(s.shop.config(), "es").Moment(x.CreatedAt)+"</span>")
	}
	made := s.led(roleOwner, "/panel/caja/"+ana.String()+"/canje", "productId", handed.Reward.String(), "expectedPoints", handed.Points.String())
	s.wants("just redeemed", s.open(roleOwner, made).Body.String(), `<div class="note" role="status"><b>`, "!Ya se entregó")
}

// TestTillKnownSale: a ticket that is sent again with the same values registers nothing, and the
// till says so in place of a ✓.
func TestTillKnownSale(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"Unique", "Free"} {
		with := stampSetup
		with.settings = `"externalIds":"` + setting + `"`
		s := newPanelShop(t, with)
		at := "/panel/caja/" + s.shop.customer("ana").String()
		sold := func(more ...string) string {
			return s.led(roleCashier, at+"/venta", append([]string{"totalAmount", "1500", "externalId", "T-1"}, more...)...)
		}
		token := s.panel.random()
		first := sold(tokenField, token)
		s.wants(setting+": the first", s.open(roleCashier, first).Body.String(), "✓ Venta de 1,500.00 MXN", "!ya estaba registrada")
		if again := sold(tokenField, token); again != first {
			t.Errorf("%s: the same form leads to %s", setting, again)
		}
		n := ask(s.shop, (*txn).count).Sales
		again := sold()
		if ask(s.shop, (*txn).count).Sales != n {
			t.Fatal("registered")
		}
		s.wants(setting+": another form", s.open(roleCashier, again).Body.String(), "Venta de 1,500.00 MXN", "Esta venta ya estaba registrada. No se registró otra.", "!✓")
	}
}

// TestTillReasons: of each reward that a customer cannot have the till says in words why, in
// both languages.
// Panel check 28.
func TestTillReasons(t *testing.T) {
	t.Parallel()
	reward := func(key, more string) string {
		return `{"key":"` + key + `","name":"` + key + `","program":"club","pointsCost":10` + more + `}`
	}
	s := newPanelShop(t, setup{
		program: `"currency":"Lunas","rules":[` + onePer1 + `],"tiers":[{"name":"Bronce","threshold":0},{"name":"Oro","threshold":9000}]`,
		also: `"rewards":[` + strings.Join([]string{
			reward("libre", ""), reward("futura", `,"validFrom":"2090-01-01"`), reward("pasada", `,"validTo":"2020-01-01"`), reward("oro", `,"tiers":["Oro"]`),
			reward("grupo", `,"segments":["ricos"]`), reward("agotada", `,"stock":1`), reward("una", `,"limitPerCustomer":1`), strings.Replace(reward("cara", ""), "10}", "1000}", 1), strings.Replace(reward("casi", ""), "10}", "81}", 1),
		}, ",") + `],"segments":[{"key":"ricos","name":"Ricos","isActive":true,"rule":{"field":"totalSpent","op":">=","value":100000}}]`,
	})
	ana, luz := s.shop.customer("ana"), s.shop.customer("luz")
	s.shop.buy(ana, "90")
	s.shop.buy(luz, "90")
	for who, key := range map[id]string{luz: "agotada", ana: "una"} {
		_, err := s.shop.redeem(who, key)
		s.shop.ok(err)
	}
	for lang, want := range map[string]map[string]string{
		"es": {"futura": "todavía no vale", "pasada": "ya no vale", "oro": "solo para Oro", "grupo": "solo para otro grupo de clientes", "agotada": "se agotó",
			"una": "ya la canjeó las veces que puede", "cara": "le faltan 920 Lunas", "casi": "le falta 1 Lunas"},
		"en": {"futura": "it is not valid yet", "pasada": "it is no longer valid", "oro": "only for Oro", "grupo": "only for another group of customers", "agotada": "out of stock",
			"una": "redeemed as often as allowed", "cara": "920 Lunas missing", "casi": "1 Lunas missing"},
	} {
		s.speaks(roleCashier, lang)
		page := s.open(roleCashier, "/panel/caja/"+ana.String()).Body.String()
		for key, why := range want {
			if cost := map[string]string{"cara": "1,000", "casi": "81"}[key]; cost != "" {
				s.wants(lang, page, "<dt>"+key+" · "+cost+"</dt><dd>"+why+"</dd>")
			} else {
				s.wants(lang, page, "<dt>"+key+" · 10</dt><dd>"+why+"</dd>")
			}
		}
		s.wants(lang, page, ">libre · 10</button>", "!>agotada · 10</button>", "!>una · 10</button>")
	}

	// One that ends while it is on the page, and one for which the customer has lost the tier.
	free, gold := s.shop.config().Rewards[0].ID.String(), s.shop.config().Rewards[3].ID.String()
	s.shop.apply(bytes.Replace(s.shop.exportedDocument(), []byte(`"status":"Active"`), []byte(`"status":"Inactive"`), 1))
	for lang, why := range map[string]string{"es": "no está activa", "en": "it is not active"} {
		s.speaks(roleCashier, lang)
		for reward, why := range map[string]string{free: why, gold: tr(speaking(lang), "reason.TierRequired.any")} {
			w := s.post(roleCashier, "/panel/caja/"+ana.String()+"/canje", url.Values{"productId": {reward}, "expectedPoints": {"10"}})
			if s.wants(lang, w.Body.String(), ": "+why); w.Code != http.StatusUnprocessableEntity {
				t.Errorf("%s: %d", lang, w.Code)
			}
		}
	}
}

// TestTillUndo: undoing a sale takes back exactly the points it gave. A cashier may not, has no
// button, and is refused by address; one who may, by the organization's setting, has it for the
// own sales.
// Panel check 30.
func TestTillUndo(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, stampSetup)
	ana := s.shop.customer("ana")
	at := "/panel/caja/" + ana.String()
	sold := func(as role, amount string) string {
		path, _, _ := strings.Cut(s.led(as, at+"/venta", "totalAmount", amount), "?")
		return path
	}
	sold(roleOwner, "333.3")
	before := s.open(roleOwner, at).Body.String()
	const balance = `<div class="big">33 <span class="unit">Lunas</span></div><p>3 Sellos</p>`
	s.wants("before", before, balance)
	path := sold(roleCashier, "1234.5")
	s.wants("sold", s.open(roleOwner, at).Body.String(), `<div class="big">156 <span class="unit">Lunas</span></div><p>15 Sellos</p>`)
	s.wants("a cashier's own", s.open(roleCashier, afterDone(path)).Body.String(), "✓ Venta", "!/deshacer", "!Deshacer", "¿Te equivocaste? Pídele a un encargado: Manager, Admin, Owner.")
	s.wants("an owner has the button", s.open(roleOwner, path).Body.String(), "Deshacer", "!¿Te equivocaste?")
	stored := s.shop.entries()
	if w := s.post(roleCashier, path+"/deshacer", url.Values{"totalAmount": {"1234.5"}}); w.Code != http.StatusForbidden {
		t.Errorf("a cashier by address: %d", w.Code)
	}
	same(t, "the store", s.shop.entries(), stored)
	s.led(roleOwner, path+"/deshacer", "totalAmount", "1234.5")
	s.wants("undone", s.open(roleOwner, at).Body.String(), balance)

	s.shop.apply(bytes.Replace(s.shop.exportedDocument(), []byte(`"settings":{`), []byte(`"settings":{"cashierReturns":true,`), 1))
	own, others := sold(roleCashier, "100"), sold(roleManager, "100")
	s.wants("a cashier's own, where they may", s.open(roleCashier, own).Body.String(), "/deshacer")
	s.wants("another's", s.open(roleCashier, others).Body.String(), "!/deshacer")
	if w := s.post(roleCashier, others+"/deshacer", url.Values{"totalAmount": {"100"}}); w.Code != http.StatusForbidden {
		t.Errorf("another's by address: %d", w.Code)
	}
	s.led(roleCashier, own+"/deshacer", "totalAmount", "100")
}

// paySetup is a shop whose points pay for up to half of a purchase.
var paySetup = setup{program: `"currency":"Lunas","payment":{"points":10,"amount":1,"minPoints":50,"maxPercent":50},"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1}}]`}

// TestTillPays: a sale at the till is paid with the points that its control showed, and with no
// others.
func TestTillPays(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, paySetup)
	ana, luz := s.shop.customer("ana"), s.shop.customer("luz")
	s.shop.buy(ana, "1700")
	s.shop.buy(luz, "490")
	at := "/panel/caja/" + ana.String()
	page := func(path string) string { return s.open(roleCashier, path).Body.String() }
	sold := func(fields ...string) string { return s.led(roleCashier, at+"/venta", fields...) }
	const offer = `name="pay" value="max"><span>Usar puntos: lo más que se pueda<`
	const due = `<p class="due">Por cobrar <strong>`
	s.wants("before", page(at), offer, `name="pay.points" value=""`)
	s.wants("fewer points than can be used", page("/panel/caja/"+luz.String()), `!name="pay`)
	s.wants("without a payment", page(sold("totalAmount", "1")), "!Pagó", "No se usaron puntos", due+"1.00 <small>MXN</small><")

	first := sold("totalAmount", "350", "pay", "max")
	s.wants("as many as possible", page(first), "✓ Venta de 350.00 MXN", "Pagó 17.00 MXN con 170 Lunas.", due+"333.00 <small>MXN</small><", "Saldo 33 Lunas")
	s.wants("nothing is left to use", page(at), `!name="pay`, "Pago de una compra", "−170 Lunas")
	path, _, _ := strings.Cut(first, "?")
	back := s.led(roleOwner, path+"/deshacer", "totalAmount", "350")
	s.wants("undone", page(back), "Vuelven 170 Lunas a su saldo; entrega 333.00 MXN", "Saldo 170 Lunas", "!Vencieron")
	backPath, _, _ := strings.Cut(back, "?")
	s.wants("its return, looked up", page(backPath), `<div class="note plain" role="status"><b>Ya registrada el `, "Volvieron 170 Lunas a su saldo; se entregó 333.00 MXN", "!entrega ")
	s.wants("the sale that was undone", page(path), "Pagó 17.00 MXN con 170 Lunas.", "!Por cobrar")
	s.wants("after it", page(at), offer, "Pago devuelto")
	s.wants("fewer", page(sold("totalAmount", "350", "pay.points", "60")), "Pagó 6.00 MXN con 60 Lunas.", due+"344.00 <small>MXN</small><", "Saldo 144 Lunas")

	n := ask(s.shop, (*txn).count).Sales
	for _, test := range []struct {
		reason string
		fields url.Values
		texts  []string
	}{
		{"a small purchase", url.Values{"totalAmount": {"24"}, "pay.points": {"144"}},
			[]string{`<a href="#c-pay-points">Los puntos pueden pagar de esta venta hasta 120 (12.00)`, `name="totalAmount" value="24"`, `name="pay.instead" value="max" data-busy="Guardando…">Usar lo más que se pueda<`}},
		{"more than the customer has, too", url.Values{"totalAmount": {"1,000"}, "pay": {"max"}, "pay.points": {"9999"}},
			[]string{`<a href="#c-pay-points">Los puntos pueden pagar`, `name="pay" value="max" checked`, `name="pay.points" value="9999"`, `name="pay.instead"`}},
		{"more than the customer has", url.Values{"totalAmount": {"1,000"}, "pay.points": {"145"}}, []string{"Puntos que hacen falta: 145. Hay: 144.", "!pay.instead"}},
		{"a tiny purchase", url.Values{"totalAmount": {"6"}, "pay.points": {"144"}}, []string{"Esta venta es muy pequeña para pagarla con puntos", "!pay.instead"}},
		{"too few", url.Values{"totalAmount": {"60"}, "pay.points": {"49"}}, []string{`<a href="#c-pay-points">Para pagar con puntos hacen falta al menos 50`, "!pay.instead"}},
		{"no number", url.Values{"totalAmount": {"60"}, "pay.points": {"todas"}}, []string{"Otra cantidad: debe ser un número"}},
		{"none", url.Values{"totalAmount": {"60"}, "pay.points": {"0"}}, []string{"Otra cantidad: debe ser mayor que 0"}},
		{"two readings", url.Values{"totalAmount": {"6000"}, "pay.points": {"1.440"}}, []string{`name="_reading" value="pay.points=1440"`}},
	} {
		w := s.post(roleCashier, at+"/venta", test.fields)
		if w.Code < 400 || ask(s.shop, (*txn).count).Sales != n {
			t.Errorf("%s: %d", test.reason, w.Code)
		}
		s.wants(test.reason, w.Body.String(), test.texts...)
	}
	press := []string{"totalAmount", "24", "pay.points", "144", "pay.instead", "max", tokenField, s.panel.random()}
	paid := sold(press...)
	same(t, "the button, pressed twice", sold(press...), paid)
	if got := ask(s.shop, (*txn).count).Sales; got != n+1 {
		t.Errorf("%d sales by the button", got-n)
	}
	twice := []string{"totalAmount", "24", tokenField, s.panel.random()}
	same(t, "sent again by a page that now offers to pay", sold(append(twice, "pay.points", "")...), sold(twice...))
	s.wants("the button", page(paid), "Pagó 12.00 MXN con 120 Lunas.", due+"12.00 <small>MXN</small><")
	s.wants("as many as possible of a tiny one: none", page(sold("totalAmount", "6", "pay", "max")), "No se usaron puntos", due+"6.00 <small>MXN</small><")
	s.shop.buy(luz, "100")
	held := s.shop.hold(luz, "50", usualHold, "")
	ofHold, err := s.shop.sell(newSale{Customer: luz, Total: dec("100"), Pay: &newPayment{Hold: &held}})
	s.shop.ok(err)
	s.wants("paid from a hold", page("/panel/caja/"+luz.String()+"/venta/"+ofHold.ID.String()), "Pagó 5.00 MXN con 50 Lunas de una retención. En dinero: 95.00 MXN", "!Por cobrar")
	s.wants("a customer whose hold was captured", page("/panel/caja/"+luz.String()), "Pago de una compra", "Liberación de una retención")
	s.shop.verified()

	v := &panelRequest{member: &member{role: roleViewer}, posted: object{{"pay", "max"}}}
	if paying(v, "pay"); len(v.faults) != 1 || v.faults[0].code != codePermissionRequired {
		t.Errorf("a role that may not redeem: %v", v.faults)
	}
}

// TestTillPaymentExpired: of a payment that is undone the till says which points did not come back.
func TestTillPaymentExpired(t *testing.T) {
	t.Parallel()
	for later, texts := range map[int][]string{
		3: {"Vuelven 100 Lunas a su saldo; entrega 40.00 MXN", "Vencieron y no vuelven: 50 Lunas."},
		9: {"Entrega 40.00 MXN", "Vencieron y no vuelven: 150 Lunas.", "!Vuelven"},
	} {
		of := newShop(t, setup{program: `"currency":"Lunas","payment":{"points":10,"amount":1},"expiry":{"days":5},"rules":[` + onePer1 + `]`})
		ana := of.customer("ana")
		of.buy(ana, "50")
		of.pass(3 * oneDay)
		of.buy(ana, "100")
		sold, err := of.sell(newSale{Customer: ana, Total: dec("55"), Pay: &newPayment{Points: dec("150")}})
		of.ok(err)
		of.pass(time.Duration(later) * oneDay)
		s := newPanelShopOn(of) // the sessions of before would have ended
		back := s.led(roleOwner, "/panel/caja/"+ana.String()+"/venta/"+sold.ID.String()+"/deshacer", "totalAmount", "55")
		s.wants(fmt.Sprint(later, " days"), s.open(roleOwner, back).Body.String(), texts...)
		made, _, _ := strings.Cut(back, "?")
		s.wants("its page", s.open(roleOwner, "/panel/ventas/"+madeAt(made)).Body.String(), "Puntos que volvieron", "Devuelto en dinero</dt><dd>40.00 MXN", strings.TrimSuffix(texts[1], "."))
	}
}

// TestTillPaysRest: where a program excludes items, a sale pays with points what they leave.
func TestTillPaysRest(t *testing.T) {
	t.Parallel()
	with := paySetup
	with.program = strings.Replace(with.program, `"maxPercent":50`, `"excludeSkus":["RON"]`, 1)
	s := newPanelShop(t, with)
	ana := s.shop.customer("ana")
	s.shop.buy(ana, "5000")
	sold := s.led(roleCashier, "/panel/caja/"+ana.String()+"/venta", "totalAmount", "30", "pay", "max", "items[0].sku", "RON", "items[0].price", "20", "items[0].quantity", "1")
	s.wants("its page", s.open(roleCashier, sold).Body.String(), "Pagó 10.00 MXN con 100 Lunas.", "Por cobrar <strong>20.00 <small>MXN</small><")
}

// TestTillTicket: a ticket leads to its sale, and to why it earned what it did: a cashier to those of
// the last 30 days, and by that to no other page of sales. A customer's number wins over a ticket.
func TestTillTicket(t *testing.T) {
	t.Parallel()
	of := newShop(t, setup{program: `"currency":"Lunas","rules":[` + onePer1 + `,{"key":"grande","name":"Compra grande","minAmount":500,"points":50}]`})
	ana := of.customer("ana")
	sold := map[string]string{}
	sell := func(ticket string) {
		x, err := of.sell(newSale{Customer: ana, Total: dec("90"), ExternalID: ticket})
		of.ok(err)
		sold[ticket] = "/panel/caja/" + ana.String() + "/venta/" + x.ID.String()
	}
	sell("T-30")
	of.pass(oneDay)
	sell("T-29")
	sell("12")
	sell("55 1234 5678 90")
	sell("AB123456")
	must(of, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{FirstName: "Rosa", ExternalID: "AB123456", Email: "rosa@diez.mx"})
		sold["AB123456"] = "/panel/caja/" + c.ID.String()
		return c.ID, err
	})
	of.pass(29 * oneDay)
	s := newPanelShopOn(of) // the sessions of before would have ended
	for ticket, path := range sold {
		same(t, "the owner's "+ticket, s.asked(roleOwner, ticket), path)
		if ticket == "T-30" {
			path = "200 "
		}
		if got := s.asked(roleCashier, ticket); !strings.HasPrefix(got, path) {
			t.Errorf("the cashier's %s leads to %s, want %s", ticket, got, path)
		}
	}
	for lang, why := range map[string][]string{
		"es": {"<summary>¿Por qué?</summary>", "Dieron", "No dieron, y por qué", "la compra no llega a 500 MXN"},
		"en": {"<summary>Why?</summary>", "They gave", "They gave nothing, and why", "the purchase is below 500 MXN"},
	} {
		s.speaks(roleCashier, lang)
		s.wants(lang, s.open(roleCashier, sold["T-29"]).Body.String(), append(why, "<details open>", "Compra grande")...)
		s.wants(lang+", of before", s.open(roleCashier, sold["T-30"]).Body.String(), "!"+why[0])
	}
	s.wants("the owner's of before", s.open(roleOwner, sold["T-30"]).Body.String(), "¿Por qué?")
	for _, path := range []string{"/panel/ventas", "/panel/ventas/" + sold["T-29"][len(sold["T-29"])-36:]} {
		if w := s.open(roleCashier, path); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := s.open(roleViewer, "/panel/caja?q=T-29"); w.Code != http.StatusForbidden {
		t.Errorf("a viewer at the till: %d", w.Code)
	}
}

// TestTillOpensAfterAll: whatever a member did today, and whatever it was about, the till opens and
// lists what was done there. A line whose record is damaged is left out and logged.
func TestTillOpensAfterAll(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	ana, log := s.shop.customer("ana"), new(strings.Builder)
	s.api.log = slog.New(slog.NewTextHandler(log, nil))
	at := "/panel/caja/" + ana.String()
	s.led(roleOwner, at+"/venta", "totalAmount", "70")
	broken, _, _ := strings.Cut(s.led(roleOwner, at+"/venta", "totalAmount", "90"), "?")
	actions := slices.Clone(auditActions)
	for _, f := range panelForms() {
		if f.action != "" && tillDone[f.action] == "" {
			actions = append(actions, f.action)
		}
	}
	for i, action := range actions {
		must(s.shop, func(t *txn) (any, error) {
			t.by = creator{Type: byUser, ID: s.users[roleOwner]}
			subjects := []string{ana.String(), id{9}.String(), ""}
			for _, subject := range subjects[:2+i%2] { // fewer than manyLooked in all
				if err := t.audit.note(action, subject, nil); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
	}
	opens := func(reason string, left int, texts ...string) {
		t.Helper()
		log.Reset()
		for _, page := range []string{"/panel/caja", "/panel", activityPath, "/panel/auditoria", "/panel/equipo/" + s.users[roleOwner].String() + "/actividad"} {
			w := s.open(roleOwner, page)
			if w.Code != http.StatusOK {
				t.Errorf("%s: %s: %d\n%s", reason, page, w.Code, mainOf(w.Body.String()))
			}
			if page == "/panel/caja" {
				s.wants(reason, w.Body.String(), texts...)
				if n := strings.Count(log.String(), "line left out"); n != left {
					t.Errorf("%s: %d lines left out\n%s", reason, n, log)
				}
			}
		}
	}
	opens("all actions", 2, "<b>70.00 MXN</b>", "<b>90.00 MXN</b>") // cancelled redemptions that are not there
	_, of, _ := strings.Cut(broken, "/venta/")
	sold, _ := parseID(of)
	store := func(value []byte) []byte {
		return must(s.shop, func(t *txn) ([]byte, error) {
			seq, _, err := getUint(t.Tx, orgKey('T', t.org).id(sold))
			was, _, missing := t.Get(t.sales.key(seq))
			return bytes.Clone(was), errors.Join(err, missing, t.Put(t.sales.key(seq), value))
		})
	}
	whole := store([]byte{0xff})
	opens("a damaged sale", 3, "<b>70.00 MXN</b>", "!90.00")
	store(whole)
}
