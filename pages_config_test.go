package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sello/internal/sheet"
)

var (
	stampForm  = regexp.MustCompile(`name="_etag" value="([^"]*)"`)
	digestForm = regexp.MustCompile(`name="_reviewed" value="([^"]*)"`)
	diffForm   = regexp.MustCompile(`<dt title="([^"]*)"`)
)

// stamp is that of the configuration in a page.
func (s *panelShop) stamp(as role, page string) string {
	s.shop.Helper()
	found := stampForm.FindStringSubmatch(s.open(as, page).Body.String())
	if found == nil {
		s.shop.Fatalf("%s has no stamp", page)
	}
	return html.UnescapeString(found[1])
}

// reviewed sends a form to be reviewed, and returns the page and the form that applies it.
func (s *panelShop) reviewed(page, path string, fields url.Values) (*httptest.ResponseRecorder, url.Values) {
	s.shop.Helper()
	if fields.Get(etagField) == "" {
		fields.Set(etagField, s.stamp(roleOwner, page))
	}
	fields.Set(reviewField, "1")
	w := s.post(roleOwner, path, fields)
	fields.Del(reviewField)
	if found := digestForm.FindStringSubmatch(w.Body.String()); w.Code == http.StatusOK && found != nil {
		fields.Set(reviewedField, found[1])
	}
	return w, fields
}

// changeConfig reviews a form, twice, and applies it. What the review lists is what
// `sello apply -dry-run` would, and the audit log has one entry.
func (s *panelShop) changeConfig(page, path string, fields url.Values) {
	s.shop.Helper()
	before, entries := s.shop.exportedDocument(), ask(s.shop, (*txn).count).Audit
	w, fields := s.reviewed(page, path, fields)
	if w.Code != http.StatusOK || fields.Get(reviewedField) == "" {
		s.shop.Fatalf("POST %s: %d\n%s", path, w.Code, mainOf(w.Body.String()))
	}
	same(s.shop, "the document after a review", string(s.shop.exportedDocument()), string(before))
	if n := ask(s.shop, (*txn).count).Audit; n != entries {
		s.shop.Errorf("POST %s: a review wrote to the audit log", path)
	}
	var listed []string
	for _, row := range diffForm.FindAllStringSubmatch(w.Body.String(), -1) {
		listed = append(listed, html.UnescapeString(row[1]))
	}
	fields.Set(reviewField, "1")
	if again := s.post(roleOwner, path, fields); again.Code != http.StatusOK {
		s.shop.Errorf("POST %s, to be reviewed again: %d", path, again.Code)
	}
	fields.Del(reviewField)
	if w := s.post(roleOwner, path, fields); w.Code != http.StatusSeeOther {
		s.shop.Fatalf("POST %s, reviewed: %d\n%s", path, w.Code, mainOf(w.Body.String()))
	}
	if n := ask(s.shop, (*txn).count).Audit; n != entries+1 {
		s.shop.Errorf("POST %s: %d entries in the audit log, want one", path, n-entries)
	}
	after := s.shop.exportedDocument()
	s.shop.apply(before)
	var told []string
	for _, c := range s.shop.apply(after).Changes {
		told = append(told, c.Path)
	}
	same(s.shop, "the review of "+path, listed, told)
}

// TestPanelChangesConfig: each form of the configuration changes the document, after its page
// has shown what sello apply would show.
// Panel check 54.
func TestPanelChangesConfig(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	cfg := s.shop.config()
	program := "/panel/programa/" + cfg.Programs[0].ID.String()
	rulePath := program + "/reglas/" + cfg.Programs[0].ruleID(&cfg.Programs[0].Rules[0]).String()
	reward := "/panel/recompensas/" + cfg.Rewards[0].ID.String()

	s.changeConfig("/panel/configuracion", "/panel/configuracion", url.Values{"name": {"Café Sol"}, "settings.externalIds": {"Unique"}, "apiAccess": {"1"}, "cashierReturns": {"1"}})
	s.changeConfig("/panel/recompensas/nueva", "/panel/recompensas/nueva", url.Values{"name": {"Pan de Añil"}, "pointsCost": {"1,200.5"}, "stock": {"20"}, "tiers[1]": {"Plata"}, "status": {"Active"}, "fulfilment": {"Voucher"}, "validDays": {"0"}})
	s.changeConfig(reward, reward, url.Values{"status": {"Inactive"}})
	s.changeConfig(program, program+"/nueva", url.Values{"effect": {"multiplier"}, "name": {"Noche"}, "multiplier": {"1.5"}, "hours.from": {"20:00"}, "hours.to": {"23:00"}, "days[1]": {"Tuesday"}, "skus": {"A\r\nB-*"}})
	s.changeConfig(rulePath, rulePath, url.Values{"effect": {"per"}, "per.amount": {"20"}, "per.points": {"3"}, "name": {"Base"}})
	s.changeConfig(program, program, url.Values{"currency": {"Soles"}, "tiers[0].name": {"Cobre"}, "tiers[0].threshold": {"0"}, "tiers[1].name": {"Plata"}, "tiers[1].threshold": {"5,000"}, "expiry.days": {""}, "expiry.months": {"6"}, "expiry.endOf": {"Month"}})
	payment := url.Values{"payment.points": {"10"}, "payment.amount": {"1.5"}, "payment.minPoints": {"50"}, "payment.maxPercent": {"50"}, "payment.step": {"10"}, "payment.excludeSkus": {"VINO\r\nRON-*"}, "payment.earnOn": {"Total"},
		"tiers[0].name": {"Cobre"}, "tiers[0].threshold": {"0"}, "tiers[1].name": {"Plata"}, "tiers[1].threshold": {"5,000"}}
	s.changeConfig(program, program, maps.Clone(payment))
	same(t, "what points pay", s.shop.config().Programs[0].Payment, &paymentDoc{decimalOf(10), dec("1.5"), decimalOf(50), new(decimalOf(50)), decimalOf(10), earnOnTotal, []string{"VINO", "RON-*"}})
	s.wants("in words", s.open(roleOwner, "/panel/programa").Body.String(), "10 Soles valen 1.5 MXN: pagan desde 50 y hasta el 50 % de una venta; para las reglas cuenta el total.", "Para pagar se usan en múltiplos de 10.", "No se pagan con puntos: VINO o RON-*.")
	s.wants("the form", s.open(roleOwner, program).Body.String(), `name="payment.amount" value="1.5"`, `<option value="Total" selected>`)
	s.changeConfig("/panel/configuracion", "/panel/configuracion", url.Values{"apiAccess": {"1"}, "cashierReturns": {"1"}, "settings.amountDecimals": {"0"}})
	same(t, "decimals of what they pay", s.shop.config().amountDecimals(), 0)
	s.changeConfig("/panel/configuracion", "/panel/configuracion", url.Values{"apiAccess": {"1"}, "cashierReturns": {"1"}, "settings.externalIds": {"Unique"}, "settings.amountDecimals": {""}})
	for _, name := range []string{"points", "amount", "minPoints", "maxPercent", "step"} { // the choice stays
		payment.Set("payment."+name, "")
	}
	s.changeConfig(program, program, payment)
	if y := s.shop.config().Programs[0].Payment; y != nil {
		t.Errorf("cleared: %+v", y)
	}
	s.wants("no payment", s.open(roleOwner, "/panel/programa").Body.String(), "!valen")
	s.changeConfig("/panel/segmentos/nuevo", "/panel/segmentos/nuevo", url.Values{"name": {"Dormidos"}, "join": {"any"}, "rows[0].field": {"lastTransactionAt"}, "rows[0].op": {">"}, "rows[0].value": {"90"}, "rows[1].field": {"email"}, "rows[1].op": {"="}})
	segment := "/panel/segmentos/" + s.shop.config().Segments[0].ID.String()
	s.changeConfig(segment, segment, url.Values{"isActive": {"1"}, "priority": {"3"}})
	s.changeConfig(segment, segment+"/quitar", url.Values{})
	s.changeConfig(rulePath, rulePath+"/quitar", url.Values{})

	d := s.shop.config().document()
	o, p := d.Organization, d.Programs[0]
	if o.Name != "Café Sol" || o.Settings.ExternalIDs != externalIDsUnique || !o.Settings.CashierReturns || !o.Plan.APIAccess || o.Profile.Country != "MX" {
		t.Errorf("the organization: %+v", o)
	}
	same(t, "the tiers", p.Tiers, []tier{{Name: "Cobre"}, {Name: "Plata", Threshold: decimalOf(5000)}})
	same(t, "the rules", p.Rules, []rule{{Key: "noche", Name: "Noche", On: onPurchase, SKUs: []string{"A", "B-*"}, Days: []string{"Tuesday"}, Hours: &hourRange{"20:00", "23:00"}, Multiplier: new(decimalOf(3) / 2)}})
	if *p.Expiry != (expiry{Months: 6, EndOf: "Month"}) || p.Currency != (currencyName{"", "Soles"}) || len(d.Segments) != 0 {
		t.Errorf("the program: %+v, %d segments", p, len(d.Segments))
	}
	made := d.Rewards[len(d.Rewards)-1]
	if made.Key != "pan-de-anil" || made.PointsCost != 12_005_000 || *made.Stock != 20 || !slices.Equal(made.Tiers, []string{"Plata"}) || *made.ValidDays != 0 || d.Rewards[0].Status != statusInactive {
		t.Errorf("the rewards: %+v", d.Rewards)
	}
}

// TestPanelPlan: in the panel an operator changes the plan, by the form and by the document, and
// nobody else does. The form of an owner has no control of it, and leaves it as it is.
func TestPanelPlan(t *testing.T) {
	t.Parallel()
	const page, whole = "/panel/configuracion", "/panel/configuracion/documento"
	s := newPanelShop(t, panelSetup)
	text, err := json.MarshalIndent(s.shop.config().document(), "", "  ")
	s.shop.ok(err)
	other := strings.Replace(string(text), `"apiAccess": true`, `"apiAccess": false`, 1)
	tries := []struct {
		reason, path string
		fields       url.Values
	}{
		{"another name", page, url.Values{"plan.name": {"Enorme"}}},
		{"access by the box", page, url.Values{"apiAccess": {"1"}}},
		{"by the document", whole, url.Values{"document": {other}}},
		{"with another change", whole, url.Values{"document": {strings.Replace(other, `"name": "Espresso"`, `"name": "Doble"`, 1)}}},
	}
	if main := mainOf(s.open(roleOwner, page).Body.String()); strings.Contains(main, `name="plan.name"`) || strings.Contains(main, `name="apiAccess"`) || !strings.Contains(main, tr(speaking("es"), "plan.alone")) {
		t.Error("the owner's form has the plan")
	}
	for i, test := range tries {
		if i == 1 {
			s.shop.apply([]byte(other))
		}
		before := string(s.shop.exportedDocument())
		if i == 2 {
			s.shop.apply(text)
			before = string(s.shop.exportedDocument())
		}
		w, fields := s.reviewed(test.path, test.path, test.fields)
		if w.Code != http.StatusForbidden {
			t.Errorf("%s, reviewed: %d", test.reason, w.Code)
		}
		fields.Set(reviewedField, "x")
		if w := s.post(roleOwner, test.path, fields); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", test.reason, w.Code)
		}
		same(t, test.reason, string(s.shop.exportedDocument()), before)
	}
	for _, access := range []string{string(text), other} { // the box is not there: the plan stays
		s.shop.apply([]byte(access))
		plan := s.shop.config().Organization.Plan
		s.changeConfig(page, page, url.Values{"name": {"Café Sol"}})
		same(t, "the plan after another change", s.shop.config().Organization.Plan, plan)
	}

	s.operates(roleOwner)
	s.changeConfig(page, page, url.Values{"plan.name": {"Enorme"}, "apiAccess": {"1"}})
	if plan := s.shop.config().Organization.Plan; plan.Name != "Enorme" || !plan.APIAccess {
		t.Errorf("an operator's plan: %+v", plan)
	}
	s.changeConfig(page, page, url.Values{"plan.name": {"Enorme"}})
	if s.shop.config().Organization.Plan.APIAccess {
		t.Error("an operator's box that is not checked leaves the access")
	}
	s.changeConfig(whole, whole, url.Values{"document": {string(text)}})
	if plan := s.shop.config().Organization.Plan; plan.Name != "Pro" || !plan.APIAccess {
		t.Errorf("an operator's document: %+v", plan)
	}
}

// TestPanelLanguage: an organization speaks English in every region.
func TestPanelLanguage(t *testing.T) {
	t.Parallel()
	for language, want := range map[string]string{"en": "Settings", "en-GB": "Settings", "es-419": "Configuración", "es": "Configuración"} {
		s := newPanelShop(t, setup{})
		s.shop.apply(bytes.Replace(setup{}.document(), []byte(`"settings":{`), []byte(`"settings":{"language":"`+language+`",`), 1))
		if main := mainOf(s.open(roleOwner, "/panel/configuracion").Body.String()); !strings.Contains(main, want) {
			t.Errorf("%s: no %s", language, want)
		}
	}
}

// TestPanelDocument: the whole document can be edited as text. Its faults are told by line,
// and the text is kept.
// Panel checks 54 and 55.
func TestPanelDocument(t *testing.T) {
	t.Parallel()
	const page = "/panel/configuracion/documento"
	s := newPanelShop(t, panelSetup)
	before := string(s.shop.exportedDocument())
	text, err := json.MarshalIndent(s.shop.config().document(), "", "  ")
	s.shop.ok(err)
	s.changeConfig(page, page, url.Values{"document": {strings.Replace(string(text), `"name": "Espresso"`, `"name": "Espresso doble"`, 1)}})
	same(t, "the document", string(s.shop.exportedDocument()), strings.Replace(before, `"name":"Espresso"`, `"name":"Espresso doble"`, 1))

	for _, test := range []struct{ old, new, want string }{
		{`"points": 1`, `"points": -1`, "programs[0].rules[0].per.points"},
		{`"threshold": 1000`, `"threshold": "x"`, "programs[0].tiers[1].threshold"},
		{`"pointsCost": 80`, `"cost": 80`, "rewards[0].cost"},
		{`"currency": "Lunas",`, `"currency": "Lunas"`, ""},
		{`"slug": "cafe-luna"`, `"slug": "otra"`, "organization.slug"},
	} {
		if !strings.Contains(string(text), test.old) {
			t.Fatal(test.old, string(text))
		}
		wrong := strings.Replace(string(text), test.old, test.new, 1)
		w, _ := s.reviewed(page, page, url.Values{"document": {wrong}})
		body := html.UnescapeString(w.Body.String())
		line := strings.Count(wrong[:strings.Index(wrong, test.new)], "\n") + 1
		if test.want == "" { // where JSON is at fault is after the comma that is missing
			line++
		}
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(body, tr(speaking("es"), "document.line", (&format{country: "MX"}).Count(uint64(line)))) || !strings.Contains(body, test.want) {
			t.Errorf("%s: %d, want line %d and %q\n%s", test.new, w.Code, line, test.want, mainOf(body))
		}
		if !strings.Contains(body, wrong) {
			t.Errorf("%s: the text is lost", test.new)
		}
	}
	marked := url.Values{"document": {sheet.MarkUTF8 + string(text)}}
	if w, _ := s.reviewed(page, page, marked); w.Code != http.StatusOK {
		t.Errorf("a document with a byte order mark: %d\n%s", w.Code, mainOf(w.Body.String()))
	}
	large := url.Values{"document": {strings.Repeat(" ", 100<<10) + string(text)}}
	if w, _ := s.reviewed(page, page, large); w.Code != http.StatusOK {
		t.Errorf("a document of more than 64 KiB: %d", w.Code)
	}
	if w := s.post(roleOwner, page, url.Values{"document": {strings.Repeat(" ", 1<<20)}}); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a document of more than 1 MiB: %d", w.Code)
	}
}

// TestPanelWarnings: the review of a change has the document's warnings, with the names of what
// they are about, in the page's language. A rule that never fires says so.
func TestPanelWarnings(t *testing.T) {
	t.Parallel()
	const page = "/panel/configuracion/documento"
	s := newPanelShop(t, panelSetup)
	text := string(s.shop.exportedDocument())
	changed := strings.Replace(text, `"rules":[`, `"rules":[{"key":"over","name":"Over","points":1,"until":"2020-01-01"},{"key":"not","name":"Not","perItem":1,"skus":["A","!RON"]},`, 1)
	for lang, want := range map[string][]string{
		"es": {"<li>Programa club › Regla over: nunca dará puntos: until ya pasó</li>", `<li>Programa club › Regla not: "!RON" no excluye artículos: solo vale para los que empiezan así, con !; para excluir está excludeSkus</li>`},
		"en": {"<li>Program club › Rule over: it will never give points: its until is over</li>", `<li>Program club › Rule not: "!RON" leaves no items out: it only matches those that begin so, with !; to leave items out there is excludeSkus</li>`},
	} {
		s.speaks(roleOwner, lang)
		s.shop.apply([]byte(text))
		w, _ := s.reviewed(page, page, url.Values{"document": {changed}})
		for _, one := range want {
			if main := mainOf(html.UnescapeString(w.Body.String())); w.Code != http.StatusOK || !strings.Contains(main, one) {
				t.Errorf("%s: %d, want %s\n%s", lang, w.Code, one, main)
			}
		}
		s.shop.apply([]byte(changed))
		never := map[string]string{"es": "Nunca dará puntos: until ya pasó", "en": "It will never give points: its until is over"}[lang]
		if main := mainOf(s.open(roleOwner, "/panel/programa").Body.String()); !strings.Contains(main, never) {
			t.Errorf("no %s\n%s", never, main)
		}
	}
}

// TestPanelTwoEditors: who comes second is told, sees both versions, and loses nothing.
// Panel check 53.
func TestPanelTwoEditors(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	page := "/panel/recompensas/" + s.shop.config().Rewards[0].ID.String()
	_, first := s.reviewed(page, page, url.Values{"name": {"Espresso"}, "pointsCost": {"90"}})
	_, second := s.reviewed(page, page, url.Values{"name": {"Espresso grande"}, "pointsCost": {"80"}})
	if w := s.post(roleOwner, page, first); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	stored := string(s.shop.exportedDocument())
	w := s.post(roleAdmin, page, second)
	body := w.Body.String()
	for _, want := range []string{">90</del>", ">80</ins>", ">Espresso</del>", ">Espresso grande</ins>", `value="Espresso grande"`} {
		if w.Code != http.StatusConflict || !strings.Contains(strings.NewReplacer("antes </span>", "", "después </span>", "", `<span class="unseen">`, "").Replace(body), want) {
			t.Errorf("%d, and the page lacks %s\n%s", w.Code, want, mainOf(body))
		}
	}
	same(t, "the document", string(s.shop.exportedDocument()), stored)
	second.Set(etagField, html.UnescapeString(stampForm.FindStringSubmatch(body)[1]))
	second.Del(tokenField)
	s.changeConfig(page, page, second)
	if r := s.shop.config().Rewards[0]; r.Name != "Espresso grande" || r.PointsCost != decimalOf(80) {
		t.Errorf("%+v", r.rewardDoc)
	}
}

// TestPanelConfigFaults: what is wrong with a form is what is wrong with a document, told at
// the control.
func TestPanelConfigFaults(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	s.shop.customer("ana")
	program := "/panel/programa/" + s.shop.config().Programs[0].ID.String()
	before := string(s.shop.exportedDocument())
	for _, test := range []struct {
		page   string
		fields url.Values
		want   string // the control at fault, or a text
	}{
		{"/panel/configuracion", url.Values{"profile.country": {"Mexico"}}, "c-profile-country-fault"},
		{"/panel/configuracion", url.Values{"settings.timezone": {"UTC"}}, "ya hay clientes"},
		{"/panel/recompensas/nueva", url.Values{"name": {"A"}, "pointsCost": {"gratis"}}, "c-pointsCost-fault"},
		{"/panel/recompensas/nueva", url.Values{"name": {"A"}, "pointsCost": {"1.500"}}, "1.50 / 1,500.00"},
		{"/panel/recompensas/nueva", url.Values{"name": {"A"}, "pointsCost": {"1"}, "effect.type": {"Percent"}}, "c-effect-percent-fault"},
		{program + "/nueva", url.Values{"effect": {"per"}, "name": {"A"}, "per.amount": {"0"}, "per.points": {"1"}}, "c-per-amount-fault"},
		{program + "/nueva", url.Values{"effect": {"points"}, "name": {"A"}}, "exactamente un efecto"},
		{program, url.Values{"tiers[0].name": {"Bronce"}, "tiers[0].threshold": {"0"}, "tiers[4].name": {"Plata"}, "tiers[4].threshold": {"0"}}, "c-tiers-1--threshold-fault"},
		{"/panel/segmentos/nuevo", url.Values{"name": {"A"}, "join": {"all"}, "rows[1].field": {"balance"}, "rows[1].op": {">"}, "rows[1].value": {"x"}}, "c-rows-0--value-fault"},
	} {
		w, _ := s.reviewed("/panel/configuracion", test.page, test.fields)
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(html.UnescapeString(w.Body.String()), test.want) {
			t.Errorf("POST %s %v: %d, want %s\n%s", test.page, test.fields, w.Code, test.want, mainOf(w.Body.String()))
		}
	}
	if w := s.post(roleOwner, "/panel/configuracion", url.Values{"name": {"Otro"}}); w.Code != http.StatusConflict {
		t.Errorf("without a stamp: %d", w.Code)
	}
	same(t, "the document", string(s.shop.exportedDocument()), before)
}

// TestDocumentLines: each value of a document has the line on which it begins; what is
// missing, that of what should have it.
func TestDocumentLines(t *testing.T) {
	t.Parallel()
	lines := linesOf([]byte("{\"a\": [1,\n {\"b\":\n  2}],\n\"c\": {}}"))
	for path, want := range map[string]int{"": 1, "a": 1, "a[0]": 1, "a[1]": 2, "a[1].b": 3, "a[1].x": 2, "c": 4, "c.d.e[3]": 4, "z": 1} {
		if got := lines.of(path); got != want {
			t.Errorf("%q is on line %d, want %d", path, got, want)
		}
	}
	if got := linesOf([]byte("{\n\n x}")).of("programs[0].name"); got != 3 {
		t.Errorf("a fault of JSON is on line %d, want 3", got)
	}
}

// TestPanelSimulator: the page tells what a sale would earn, also on a day to come, and why
// a rule gives nothing. It keeps nothing.
func TestPanelSimulator(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{program: `"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1}},{"key":"martes","name":"Doble","multiplier":2,"days":["Tuesday"]}]`})
	c := s.shop.customer("ana")
	before := s.shop.entries()
	for query, want := range map[string]string{
		"":                                     "Simulador",
		"&totalAmount=250&at=2027-06-01T12:00": "Las que no, y por qué</h2><p class=\"soft\">Ninguna", // a Tuesday
		"&totalAmount=250&at=2027-06-02T12:00": "solo los martes",
		"&totalAmount=0":                       "El importe debe ser un número mayor que 0",
		"&totalAmount=250&at=ayer":             "La fecha no es válida",
	} {
		w := s.get(roleViewer, "/panel/simulador?cliente="+c.String()+query)
		if w.Code != http.StatusOK && w.Code != http.StatusUnprocessableEntity || !strings.Contains(html.UnescapeString(w.Body.String()), want) {
			t.Errorf("%s: %d, want %s\n%s", query, w.Code, want, mainOf(w.Body.String()))
		}
	}
	if w := s.get(roleViewer, "/panel/simulador?cliente=nadie"); !strings.Contains(w.Body.String(), "No hay nadie con nadie.") {
		t.Error(mainOf(w.Body.String()))
	}
	same(t, "the store", s.shop.entries(), before)
}

// TestCurrencyChanges: the panel says what one point is called; that is a change of its own, which
// exports keep. Blank, one word is both. The API tells the word for many.
func TestCurrencyChanges(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{program: `"currency":"Sellos"`})
	program := "/panel/programa/" + s.shop.config().Programs[0].ID.String()
	for _, step := range []struct {
		one, exported string
		want          change
	}{
		{"Sello", `{"one":"Sello","many":"Sellos"}`, change{"programs[club].currency.one", nil, "Sello"}},
		{"", `"Sellos"`, change{"programs[club].currency.one", "Sello", nil}},
	} {
		old := s.shop.config()
		s.changeConfig(program, program, url.Values{"currency": {"Sellos"}, "currency.one": {step.one}})
		if changes, err := differences(old, s.shop.config()); err != nil || !reflect.DeepEqual(changes, []change{step.want}) {
			t.Errorf("%q: %v, %v", step.one, changes, err)
		}
		if raw, err := json.Marshal(s.shop.config().document()); err != nil || !strings.Contains(string(raw), `"currency":`+step.exported) {
			t.Errorf("%q: %s, %v", step.one, raw, err)
		}
		if shape := ask(s.shop, func(t *txn) (programShape, error) { return newProgramShape(t, t.cfg.Programs[0]) }); shape.CurrencyName != "Sellos" {
			t.Error(shape.CurrencyName)
		}
	}
	w, _ := s.reviewed(program, program, url.Values{"currency": {""}, "currency.one": {"Sello"}})
	if !strings.Contains(w.Body.String(), `href="#c-currency"`) {
		t.Error(mainOf(w.Body.String()))
	}
}

// TestVersionsInPanel: the panel lists the versions, shows how any two differ, and puts an old one
// back by the form of the document.
func TestVersionsInPanel(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{})
	var documents [][]byte
	keep := func() { documents = append(documents, s.shop.exportedDocument()) }
	keep()
	for n := 2; n <= 24; n++ {
		s.shop.apply(bytes.Replace(documents[0], []byte(`"name":"Café Luna"`), fmt.Appendf(nil, `"name":"Café %d"`, n), 1))
		keep()
	}
	list := s.open(roleOwner, versionsPath).Body.String()
	s.wants("newest first", list, "Versión 24", "Versión 5", "!Versión 4<", "1 cambio", "Página 1 de 2")
	s.wants("the next page", s.open(roleOwner, versionsPath+"?page=2").Body.String(), "!Versión 5<", "Versión 4", "la primera")

	of := func(from, to int) string {
		return s.open(roleOwner, fmt.Sprintf("%s/comparar?antes=%d&despues=%d", versionsPath, from, to)).Body.String()
	}
	for _, two := range [][2]int{{1, 24}, {24, 1}, {7, 8}, {23, 3}, {9, 9}} {
		page := of(two[0], two[1])
		older := ask(s.shop, func(t *txn) (*config, error) { return configAt(t, uint64(two[0])) })
		newer := ask(s.shop, func(t *txn) (*config, error) { return configAt(t, uint64(two[1])) })
		changes, err := differences(older, newer)
		s.shop.ok(err)
		var want, listed []string
		for _, c := range changes {
			want = append(want, c.Path)
		}
		for _, row := range diffForm.FindAllStringSubmatch(page, -1) {
			listed = append(listed, html.UnescapeString(row[1]))
		}
		if !slices.Equal(listed, want) || (len(want) == 0) != (two[0] == two[1]) {
			t.Errorf("%v: %q, want %q", two, listed, want)
		}
	}
	s.wants("beside the one before", s.open(roleOwner, versionsPath+"/comparar?despues=12").Body.String(), "De la 11 a la 12", "Café 11", "Café 12")
	s.wants("the current one", s.open(roleOwner, versionsPath+"/comparar").Body.String(), "De la 23 a la 24", "actual", "!Volver a esta versión")
	s.wants("the first one", s.open(roleOwner, versionsPath+"/comparar?despues=1").Body.String(), "no hay con qué compararla")
	for _, wrong := range []string{"0", "25", "x", "-1", "99999999999999999999"} {
		w := s.open(roleOwner, versionsPath+"/comparar?despues="+wrong)
		if w.Code != 422 {
			t.Errorf("version %s: %d", wrong, w.Code)
		}
		s.wants("version "+wrong, w.Body.String(), "No hay esa versión.")
	}
	s.wants("the audit log", s.open(roleOwner, auditPath).Body.String(), `comparar?despues=24">Versión 24</a>`)

	form := s.open(roleOwner, "/panel/configuracion/documento?version=12").Body.String()
	s.wants("the form", form, "documento de la versión 12", "Café 12", "!Café 24")
	s.changeConfig("/panel/configuracion/documento?version=12", "/panel/configuracion/documento", url.Values{"document": {string(documents[11])}})
	same(t, "version 12 is back", string(s.shop.exportedDocument()), string(documents[11]))
	if n := s.shop.config().Version; n < 25 {
		t.Errorf("version %d", n)
	}
}

// TestVersionsRead: what asks for one version, or for a page of them, reads few of many.
func TestVersionsRead(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	const most = 300
	document := s.exportedDocument()
	for n := range most - 1 {
		s.apply(bytes.Replace(document, []byte(`"name":"Café Luna"`), fmt.Appendf(nil, `"name":"Café %d"`, n), 1))
	}
	read := func(reason string, bound int, fn func(*txn) error) {
		t.Helper()
		ask(s, func(t *txn) (any, error) {
			counted := &countedTx{Tx: t.Tx}
			t.Tx = counted
			err := fn(t)
			if n := counted.gets['f'] + counted.scanned; n > bound {
				s.Errorf("%s reads %d versions or entries", reason, n)
			}
			return nil, err
		})
	}
	for _, number := range []uint64{1, 2, 150, most - 1, most} {
		read("the version of an entry", 11, func(t *txn) error {
			x, err := existing[configVersion](t.Tx, versionKey(t.org, number))
			if err != nil {
				return err
			}
			got, err := versionOf(t, x.AuditSeq)
			same(s, "the version of its entry", got, number)
			return err
		})
		read("one version", 1, func(t *txn) error {
			cfg, err := configAt(t, number)
			same(s, "the configuration of a version", cfg.Version, number)
			return err
		})
	}
	read("a page", 2*defaultLimit+2, func(t *txn) error {
		var r request
		r.query = query{input{new(fault), sent{}}}
		_, err := listVersions(&r)(t)
		return err
	})
}

// TestConfigTickets: the form of the organization changes both figures, where there are tickets.
func TestConfigTickets(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	w.haveTickets()
	w.panelShop.wants("the form", w.panelShop.open(roleOwner, "/panel/configuracion").Body.String(), `name="settings.tickets.days" value="30"`, `name="settings.tickets.maxPerCustomerPerDay" value="3"`)
	fields := url.Values{"name": {"Café Luna"}, "settings.tickets.days": {"10"}, "settings.tickets.maxPerCustomerPerDay": {"5"}}
	page, fields := w.panelShop.reviewed("/panel/configuracion", "/panel/configuracion", fields)
	w.panelShop.wants("the review", page.Body.String(), "Días para reclamar un ticket", "Tickets de un día por cliente")
	if answer := w.panelShop.post(roleOwner, "/panel/configuracion", fields); answer.Code != http.StatusSeeOther {
		t.Fatal(answer.Code, mainOf(answer.Body.String()))
	}
	if got := w.panelShop.shop.config().tickets(); got == nil || *got != (ticketsDoc{Days: 10, MaxPerCustomerPerDay: 5}) {
		t.Errorf("the settings are %+v", got)
	}
}
