package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func testWording(lang string) *ruleWording {
	zone, err := time.LoadLocation("America/Mexico_City")
	if err != nil {
		panic(err)
	}
	return &ruleWording{&format{country: "MX", language: lang, currency: "MXN", zone: zone, now: instantOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))}, speaking(lang), map[string]string{"vip": "VIP"}, map[string]string{"cafe": "Café"}, map[string]string{"sellos": "Sellos"}}
}

// TestRuleSentences: every effect beside every condition, in both languages.
func TestRuleSentences(t *testing.T) {
	t.Parallel()
	d := func(n int) *decimal { return new(decimalOf(n)) }
	effects := []struct {
		rule   rule
		es, en string // the effect alone
		items  [2]string
	}{
		{rule{Per: &perRule{decimalOf(10), decimalOf(1)}}, "1 punto por cada 10 MXN de compra", "1 point for each 10 MXN spent", [2]string{"1 punto por cada 10 MXN en CAFE-* o TÉ", "1 point for each 10 MXN spent on CAFE-* or TÉ"}},
		{rule{PerItem: d(5)}, "5 puntos por cada artículo", "5 points for each item", [2]string{"5 puntos por cada artículo CAFE-* o TÉ", "5 points for each item CAFE-* or TÉ"}},
		{rule{Points: d(1500)}, "1,500 puntos por compra", "1,500 points for a purchase", [2]string{"1,500 puntos por una compra con CAFE-* o TÉ", "1,500 points for a purchase with CAFE-* or TÉ"}},
		{rule{Reward: "cafe"}, "un vale de «Café» por compra", "a voucher for “Café” for a purchase", [2]string{"un vale de «Café» por una compra con CAFE-* o TÉ", "a voucher for “Café” for a purchase with CAFE-* or TÉ"}},
		{rule{Multiplier: d(2)}, "los puntos se duplican", "points are doubled", [2]string{"los puntos de CAFE-* o TÉ se duplican", "points of CAFE-* or TÉ are doubled"}},
		{rule{Multiplier: d(3)}, "los puntos se triplican", "points are tripled", [2]string{"los puntos de CAFE-* o TÉ se triplican", "points of CAFE-* or TÉ are tripled"}},
		{rule{Multiplier: new(decimalOf(3) / 2)}, "los puntos se multiplican por 1.5", "points are multiplied by 1.5", [2]string{"los puntos se multiplican por 1.5 en CAFE-* o TÉ", "points are multiplied by 1.5 on CAFE-* or TÉ"}},
	}
	conditions := []struct {
		set    func(*rule)
		es, en string // before the effect, or after it if it begins with a semicolon; "items": the effect's
	}{
		{func(*rule) {}, "", ""},
		{func(r *rule) { r.Days = []string{"Tuesday"} }, "los martes", "on Tuesdays"},
		{func(r *rule) { r.Days = []string{"Sunday", "Monday", "Friday"} }, "los lunes, viernes y domingos", "on Mondays, Fridays and Sundays"},
		{func(r *rule) { r.Hours = &hourRange{"08:00", "11:00"} }, "de 08:00 a 11:00", "from 08:00 to 11:00"},
		{func(r *rule) { r.From, r.Until = "2026-12-01", "2026-12-24" }, "del 1 dic 2026 al 24 dic 2026", "between 1 Dec 2026 and 24 Dec 2026"},
		{func(r *rule) { r.From = "2026-12-01T18:30" }, "desde el 1 dic 2026, 18:30", "since 1 Dec 2026, 18:30"},
		{func(r *rule) { r.Until = "2026-12-24" }, "hasta el 24 dic 2026", "until 24 Dec 2026"},
		{func(r *rule) { r.Tiers = []string{"Plata", "Oro"} }, "para clientes Plata u Oro", "for Plata or Oro customers"},
		{func(r *rule) { r.Segments = []string{"vip"} }, "para el segmento VIP", "for the segment VIP"},
		{func(r *rule) { r.FirstPurchase = true }, "en la primera compra", "on the first purchase"},
		{func(r *rule) { r.MinAmount = d(1000) }, "en compras desde 1,000 MXN", "on purchases from 1,000 MXN"},
		{func(r *rule) { r.SKUs = []string{"CAFE-*", "TÉ"} }, "items", "items"},
		{func(r *rule) { r.Every = 10 }, "una de cada 10 compras", "on one purchase in 10"},
		{func(r *rule) { r.Labels = map[string][]string{"pago": {"efectivo", "vale"}} }, "si la venta dice pago: efectivo o vale", "where the sale says pago: efectivo or vale"},
		{func(r *rule) { r.ExcludeSKUs = []string{"TABACO-*", "VINO"} }, "; sin contar TABACO-* o VINO", "; not counting TABACO-* or VINO"},
		{func(r *rule) { r.MaxPerCustomer = 1 }, "; una sola vez por cliente", "; only once for each customer"},
		{func(r *rule) { r.MaxPerCustomer = 3 }, "; como máximo 3 veces por cliente", "; at most 3 times for each customer"},
		{func(r *rule) { r.MaxPoints = d(100) }, "; como máximo 100 puntos por compra", "; at most 100 points for a purchase"},
		{func(r *rule) { r.Budget = d(10000) }, "; hasta 10,000 puntos en total", "; up to 10,000 points in all"},
		{func(r *rule) { r.Category = "Campaign" }, "; se anotan como «Campaña»", "; they are noted as “Campaign”"},
		{func(r *rule) { r.MaxPerCustomerPerDay = 1 }, "; una vez al día por cliente", "; once a day for each customer"},
		{func(r *rule) { r.MaxPerCustomerPerDay = 3 }, "; como máximo 3 veces al día por cliente", "; at most 3 times a day for each customer"},
		{func(r *rule) { r.PendingDays = 1 }, "; se pueden usar después de 1 día", "; they can be used after 1 day"},
		{func(r *rule) { r.ExpiresInDays = 90 }, "; vencen después de 90 días", "; they expire after 90 days"},
	}
	for _, e := range effects {
		for _, c := range conditions {
			for lang, text := range map[string]struct{ effect, items, condition string }{"es": {e.es, e.items[0], c.es}, "en": {e.en, e.items[1], c.en}} {
				r := e.rule
				c.set(&r)
				want := text.effect
				switch {
				case text.condition == "items":
					want = text.items
				case strings.HasPrefix(text.condition, ";"):
					want += text.condition
				case text.condition != "":
					want = text.condition + ", " + want
				}
				got := strings.ReplaceAll(testWording(lang).rule(&r), nbsp, " ")
				if want = capital(want) + "."; got != want {
					t.Errorf("%s: %q, want %q", lang, got, want)
				}
			}
		}
	}
	for want, r := range map[string]rule{
		"Un vale de «Café» al darse de alta.":                                           {On: onSignup, Reward: "cafe"},
		"Un vale de «Café» en su cumpleaños.":                                           {On: onBirthday, Reward: "cafe"},
		"Desde el 1 dic 2026, un vale de «Café» al llegar a Plata u Oro.":               {On: onTier, Reward: "cafe", Tiers: []string{"Plata", "Oro"}, From: "2026-12-01"},
		"Un vale de «Café» al subir de nivel.":                                          {On: onTier, Reward: "cafe"},
		"Si lleva al menos 3 de CAFE-* o TÉ, 20 puntos por una compra con CAFE-* o TÉ.": {Points: d(20), SKUs: []string{"CAFE-*", "TÉ"}, MinQuantity: d(3)},
		"50 puntos al darse de alta; vencen después de 90 días.":                        {On: onSignup, Points: d(50), ExpiresInDays: 90},
		"Desde el 1 dic 2026, 1 punto en su cumpleaños.":                                {On: onBirthday, Points: d(1), From: "2026-12-01"},
		"Los martes, de 22:00 a 02:00 del día siguiente, los puntos se duplican.":       {Days: []string{"Tuesday"}, Hours: &hourRange{"22:00", "02:00"}, Multiplier: d(2)},
		"Los martes, de 08:00 a 11:00, los puntos se duplican.":                         {Days: []string{"Tuesday"}, Hours: &hourRange{"08:00", "11:00"}, Multiplier: d(2)},
	} {
		if got := testWording("es").rule(&r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSegmentSentences: who is in a segment, in words.
func TestSegmentSentences(t *testing.T) {
	t.Parallel()
	compare := func(field, op, value string) segmentRule {
		return segmentRule{Field: field, Op: op, Value: []byte(value)}
	}
	spent, late := compare("totalSpent", ">=", "5000"), compare("lastTransactionAt", ">", "90")
	for _, test := range []struct {
		rule   segmentRule
		es, en string
	}{
		{spent, "Ha gastado al menos 5,000 MXN.", "Has spent at least 5,000 MXN."},
		{segmentRule{All: []segmentRule{spent, {Not: &late}}}, "Ha gastado al menos 5,000 MXN y no es cierto que compró por última vez hace más de 90 días.", "Has spent at least 5,000 MXN and is not one who bought last more than 90 days ago."},
		{segmentRule{Any: []segmentRule{{All: []segmentRule{spent, late}}, compare("tier", "!=", `"Oro"`)}}, "(ha gastado al menos 5,000 MXN y compró por última vez hace más de 90 días) o no es cliente Oro.", "(has spent at least 5,000 MXN and bought last more than 90 days ago) or is no Oro customer."},
		{compare("email", "=", "true"), "Tiene email.", "Has an e-mail."},
		{compare("email", "!=", "true"), "No tiene email.", "Has no e-mail."},
		{compare("phone", "=", "false"), "No tiene teléfono.", "Has no phone."},
		{compare("transactionsCount", "=", "1"), "Ha comprado exactamente 1 vez.", "Has bought exactly 1 time."},
		{compare("createdAt", "<=", "1"), "Se dio de alta hace como mucho 1 día.", "Enrolled at most 1 day ago."},
		{compare("lastTransactionAt", "!=", "1.5"), "Compró por última vez hace distinto de 1.5 días.", "Bought last other than 1.5 days ago."},
		{compare("balance", ">", "1"), "Tiene un saldo de más de 1.", "Has a balance of more than 1."},
		{compare("birthMonth", "=", "3"), "Nació en marzo.", "Was born in March."},
		{compare("birthMonth", ">=", "12"), "Nació entre diciembre y diciembre.", "Was born between December and December."},
		{compare("expiringWithin", "<=", "30"), "Tiene puntos, y los primeros vencen en como mucho 30 días.", "Has points, of which the first expire in at most 30 days."},
		{compare("points:sellos", ">=", "5"), "Tiene un saldo de al menos 5 en Sellos.", "Has a balance of at least 5 in Sellos."},
		{compare("attributes.talla", "=", `"M"`), "Su atributo «talla» es «M».", "Has the attribute “talla” at “M”."},
		{compare("attributes.talla", "!=", `"M"`), "Su atributo «talla» no es «M».", "Does not have the attribute “talla” at “M”."},
		{compare("attributes.hijos", ">", "2"), "Su atributo «hijos» es más de 2.", "Has the attribute “hijos” at more than 2."},
		{compare("attributes.vegana", "=", "false"), "Su atributo «vegana» es «no».", "Has the attribute “vegana” at “no”."},
		{compare("transactionsCount", "<", "3"), "Ha comprado menos de 3 veces.", "Has bought less than 3 times."},
	} {
		for lang, want := range map[string]string{"es": test.es, "en": test.en} {
			if got := strings.ReplaceAll(testWording(lang).segment(&test.rule), nbsp, " "); got != want {
				t.Errorf("%s: %q, want %q", lang, got, want)
			}
		}
	}
	for field := range segmentFields {
		for op := range segmentOps {
			value := "1"
			switch about := segmentFields[field]; {
			case about.number == nil && op != "=" && op != "!=":
				continue
			case about.text != nil:
				value = `"Oro"`
			case about.flag != nil:
				value = "true"
			}
			for _, lang := range []string{"es", "en"} {
				if got := testWording(lang).segment(new(compare(field, op, value))); strings.Contains(got, "%!") {
					t.Errorf("%s %s: %s", field, op, got)
				}
			}
		}
	}
}

// TestRefusals: why a rule gives nothing, for each condition that a sale does not meet.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const points = `"points":5`
	bread := []item{{"PAN", dec("10"), dec("1")}}
	for _, test := range []struct {
		rule   string // members beside key and name
		before int    // purchases
		es, en string
	}{
		{`"on":"Birthday",` + points, 0, "es de cumpleaños, no de compra", "it is for birthdays, not for a purchase"},
		{`"minAmount":11,` + points, 0, "la compra no llega a 11 MXN", "the purchase is below 11 MXN"},
		{`"skus":["TÉ"],` + points, 0, "ningún artículo es TÉ", "no item is TÉ"},
		{`"excludeSkus":["P*"],` + points, 0, "todos sus artículos están excluidos", "all of its items are left out"},
		{`"skus":["P*"],"minQuantity":2,` + points, 0, "no lleva 2 de P*", "it does not have 2 of P*"},
		{`"labels":{"pago":["vale","efectivo"]},` + points, 0, "la venta no dice pago: vale o efectivo", "the sale does not say pago: vale or efectivo"},
		{`"tiers":["Oro"],` + points, 0, "solo para clientes Oro; era Plata", "only for Oro customers; this was a Plata one"},
		{`"segments":["vip"],` + points, 0, "solo para el segmento VIP", "only for the segment VIP"},
		{`"days":["Tuesday"],` + points, 0, "solo los martes; la venta fue en lunes", "only on Tuesdays; the sale was on a Monday"},
		{`"days":["Monday"],"hours":{"from":"22:00","to":"05:00"},` + points, 0, "solo los lunes; la venta, pasada la medianoche, cuenta en domingo", "only on Mondays; the sale, after midnight, counts as on a Sunday"},
		{`"hours":{"from":"10:00","to":"11:00"},` + points, 0, "solo de 10:00 a 11:00; la venta fue a las 04:00", "only from 10:00 to 11:00; the sale was at 04:00"},
		{`"from":"2026-03-03",` + points, 0, "empieza el 3 mar 2026", "it begins on 3 Mar 2026"},
		{`"firstPurchase":true,` + points, 1, "no es la primera compra", "it is not the first purchase"},
		{`"maxPerCustomerPerDay":1,` + points, 1, "ya se usó las veces de ese día: 1", "it was used as often as it may on that day: 1"},
		{`"maxPerCustomer":1,` + points, 1, "el cliente ya la usó las veces que puede: 1", "the customer has used it as often as possible: 1"},
		{`"budget":10,` + points, 2, "su presupuesto ya se dio: 10 puntos", "its budget has been given: 10 points"},
		{`"every":3,` + points, 1, "sería la compra 2, y da en una de cada 3", "it would be purchase 2, and it gives on one in 3"},
	} {
		s := newShop(t, setup{program: `"tiers":[{"name":"Plata","threshold":0},{"name":"Oro","threshold":1000}],"rules":[{"key":"a","name":"a",` + test.rule + `}]`,
			also: `"segments":[{"key":"vip","name":"VIP","isActive":true,"rule":{"field":"totalSpent","op":">","value":100}}]`})
		ana := s.customer("ana")
		for range test.before {
			s.buy(ana, "10", bread...)
		}
		why, err := rehearse(t.Context(), s.engine, s.org, s.clock, func(t *txn) ([]programReasons, error) {
			sold, _, err := t.sales.register(newSale{Customer: ana, Type: typePurchase, Total: dec("10"), Items: bread})
			if err != nil {
				return nil, err
			}
			why, _, err := t.sales.reasonsFor(sold)
			return why, err
		})
		s.ok(err)
		for lang, want := range map[string]string{"es": test.es, "en": test.en} {
			var got []string
			for _, why := range testWording(lang).reasons(&why[0].rules[0]) {
				got = append(got, strings.ReplaceAll(why.text, nbsp, " "))
			}
			if !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %q, want %q", lang, got, want)
			}
		}
	}
}

// TestSimulatorAgrees: over the transcripts of the rules the simulator gives what the sale then
// gives, and a rule gives nothing exactly where a condition is not met.
func TestSimulatorAgrees(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newMemStore())
	w.play(filepath.Join("testdata", "world", "world.txt"), false)
	var simulated saleShape
	compared := 0
	w.watch = func(s step, o outcome, body []byte) {
		if s.method != "POST" || !strings.Contains(s.target, "/transactions") || o.status >= 300 {
			return
		}
		var sold struct {
			PointsEarned decimal
			AppliedRules []ruleShare
		}
		w.must(json.Unmarshal(body, &sold))
		same(t, s.text, fmt.Sprint(simulated.PointsEarned, simulated.AppliedRules), fmt.Sprint(sold.PointsEarned, sold.AppliedRules))
		compared++
	}
	for _, s := range slices.Concat(readSteps(t, filepath.Join("testdata", "golden", "rules.txt")), readSteps(t, filepath.Join("testdata", "golden", "campaigns.txt"))) {
		before := s
		before.method = ""
		w.step(before)
		if s.method == "POST" && strings.Contains(s.target, "/transactions") {
			simulated = w.simulate(s)
		}
		s.directives = nil
		w.step(s)
	}
	if compared < 10 {
		t.Errorf("only %d sales were compared", compared)
	}
}

// simulate asks the simulator about the sale of a step.
func (w *world) simulate(s step) saleShape {
	raw := []byte(w.expand(s.body))
	members, wrong := parseObjectOf(raw, maxMembers)
	if wrong != nil {
		w.Fatal(wrong)
	}
	org, err := viewStore(w.Context(), w.engine.store, func(tx Tx) (uint32, error) { return organizationNumber(tx, w.as) })
	w.must(err)
	now := instantOf(w.engine.now())
	done, err := rehearse(w.Context(), w.engine, org, now, func(t *txn) (simulation, error) {
		req := &request{caller: caller{key: &apiKey{}, cfg: t.cfg}, Request: new(http.Request), now: now, body: raw, fields: newFields(members), query: query{input{new(fault), sent{}}}}
		got, err := simulateSale(req)(t)
		if err != nil {
			return simulation{}, err
		}
		return got.(simulation), nil
	})
	w.must(err)
	for _, p := range done.why {
		for _, r := range p.rules {
			if r.points != 0 && r.Conditions != 0 {
				w.Errorf("%s: rule %s gives %v, and conditions %b are not met", s.text, r.rule.Key, r.points, r.Conditions)
			}
			for _, why := range testWording("es").reasons(&r) {
				if strings.Contains(why.text, "%!") {
					w.Error(why.text)
				}
			}
		}
	}
	return done.sale
}

// TestIdleSentences: how points lapse without activity, alone and beside a life.
func TestIdleSentences(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		expiry expiry
		lang   string
		want   string
	}{
		{expiry{InactiveMonths: 12}, "es", "Los puntos vencen después de 12 meses sin comprar ni canjear."},
		{expiry{InactiveMonths: 1}, "en", "Points expire after 1 month without a purchase or a redemption."},
		{expiry{Days: 30, InactiveMonths: 2}, "es", "Los puntos vencen después de 30 días. Los puntos vencen después de 2 meses sin comprar ni canjear."},
	} {
		list := testWording(test.lang).program(&program{programDoc: programDoc{Expiry: &test.expiry, Rounding: roundFloor, Returns: returnsKeep}})
		if got := strings.ReplaceAll(strings.Join(list, " "), nbsp, " "); !strings.HasPrefix(got, test.want) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
