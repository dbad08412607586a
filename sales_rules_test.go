package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// explainedRules are rules with every condition and effect.
var explainedRules = []string{
	`"per":{"amount":3,"points":1}`,
	`"per":{"amount":10,"points":1},"skus":["PAN*"]`,
	`"perItem":2,"skus":["TÉ"],"minQuantity":2`,
	`"points":7,"minAmount":60`,
	`"multiplier":1.5,"days":["Tuesday","Saturday"]`,
	`"multiplier":3,"hours":{"from":"07:00","to":"11:00"}`,
	`"points":3.3,"tiers":["Oro"]`,
	`"points":4,"segments":["vip"]`,
	`"points":9,"firstPurchase":true`,
	`"points":5,"maxPerCustomerPerDay":1`,
	`"points":2,"maxPerCustomer":2`,
	`"points":6,"budget":20`,
	`"points":8,"every":3`,
	`"points":1.25,"labels":{"pago":["efectivo"]}`,
	`"points":1,"from":"2026-03-10","until":"2026-03-20"`,
	`"points":2,"excludeSkus":["TÉ"]`,
	`"reward":"cafe","minAmount":50`,
	`"on":"Signup","points":1`,
	`"on":"Birthday","points":10`,
}

// explainedDocument has some of the rules.
func explainedDocument(rnd *rand.Rand) []byte {
	program := func(key, also string) string {
		var rules []string
		for _, at := range rnd.Perm(len(explainedRules))[:3+rnd.IntN(6)] {
			rules = append(rules, fmt.Sprintf(`{"key":"r%d","name":"Regla %d %d",%s}`, at, at, rnd.IntN(100), explainedRules[at]))
		}
		return fmt.Sprintf(`{"key":%q,"name":"Club %[1]s"%s,"pointsDecimals":%d,"rounding":%q,"rules":[%s],
			"tiers":[{"name":"Plata","threshold":0},{"name":"Oro","threshold":40,"multiplier":1.%d}]}`,
			key, also, rnd.IntN(3), pick(rnd, roundFloor, roundCeil, roundHalfUp, roundHalfEven), strings.Join(rules, ","), 1+rnd.IntN(9))
	}
	return fmt.Appendf(nil, `{"organization":{"slug":"cafe-luna","name":"Café Luna","plan":{"name":"Pro","apiAccess":true},
		"profile":{"country":"MX"},"settings":{"timezone":"America/Mexico_City","currency":"MXN","maxLateDays":5}},
		"programs":[%s,%s],
		"segments":[{"key":"vip","name":%q,"isActive":true,"rule":{"field":"totalSpent","op":">","value":150}}],
		"rewards":[{"key":"cafe","program":"club","name":"Café","pointsCost":1000,"fulfilment":"Voucher","stock":%d,"status":"Active"}]}`,
		program("club", `,"default":true`), program("sellos", `,"join":"All"`), pick(rnd, "VIP", "Los mejores"), rnd.IntN(20))
}

// TestExplanations: of random purchases, the points of rules and of steps are what was earned, every
// rule gave something or says why not, and a rehearsal says the same before. What conditions that
// can be told from the sale say is right. After more documents the explanations are the same bytes.
func TestExplanations(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(22, 1))
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	s.apply(explainedDocument(rnd))
	s.org = 1
	var customers []id
	for i := range 12 {
		customers = append(customers, s.customer(fmt.Sprint("c", i)))
	}
	kept := map[id][]byte{}
	codes := map[string]int{}
	for range 1000 {
		if rnd.IntN(40) == 0 {
			s.apply(explainedDocument(rnd))
		}
		s.pass(time.Duration(rnd.IntN(8)) * time.Hour)
		in := explainedPurchase(s, rnd, pick(rnd, customers...))
		foretold, err := rehearse(t.Context(), s.engine, s.org, s.clock, func(t *txn) ([]byte, error) {
			sold, _, err := t.sales.register(in)
			if err != nil {
				return nil, err
			}
			return explanationText(t, sold)
		})
		s.ok(err)
		sold, err := s.sell(in)
		s.ok(err)
		text := must(s, func(t *txn) ([]byte, error) { return explanationText(t, sold) })
		same(t, "foretold and given", string(foretold), string(text))
		checkExplanation(s, in, sold, codes)
		kept[sold.ID] = text
	}
	for n, code := range slices.Concat(conditionCodes[:], []string{reasonOccasion, reasonNoPoints, reasonNoStock}) {
		if codes[code] == 0 && condition(n) != conditionPaid { // TestPaidWhole
			t.Errorf("%d: nothing was refused for %q", n, code)
		}
	}
	for range 20 {
		s.apply(explainedDocument(rnd))
	}
	for sold, want := range kept {
		got := ask(s, func(t *txn) ([]byte, error) {
			x, err := t.sales.get(sold)
			if err != nil {
				return nil, err
			}
			return explanationText(t, x)
		})
		if !bytes.Equal(got, want) {
			t.Fatalf("after 20 documents:\n%s\nbefore:\n%s", got, want)
		}
	}
	s.verified()
}

// explainedPurchase is a random purchase.
func explainedPurchase(s *shop, rnd *rand.Rand, cust id) newSale {
	in := newSale{Customer: cust, Type: typePurchase, Source: sourceAPI, Total: decimal(rnd.IntN(200_0000))/100*100 + 1_0000}
	for range rnd.IntN(4) {
		in.Items = append(in.Items, item{pick(rnd, "PAN", "PAN-2", "TÉ", "CAFÉ"), decimal(rnd.IntN(40)) * decimalOne / 2, decimalOf(1 + rnd.IntN(3))})
	}
	if rnd.IntN(3) == 0 {
		in.Labels = saleLabels{{"pago", pick(rnd, "efectivo", "vale")}}
	}
	if rnd.IntN(5) == 0 {
		in.OccurredAt = s.clock.add(-time.Duration(rnd.IntN(90)) * time.Hour)
	}
	return in
}

func explanationText(t *txn, s *sale) ([]byte, error) {
	e, err := newExplanation(t, s)
	if err != nil {
		return nil, err
	}
	return encode(e)
}

// checkExplanation checks the explanation of a purchase, and counts its reasons.
func checkExplanation(s *shop, in newSale, sold *sale, codes map[string]int) {
	s.Helper()
	list := ask(s, func(t *txn) (explanation, error) {
		e, err := newExplanation(t, sold)
		return *e, err
	})
	why := ask(s, func(t *txn) ([]programReasons, error) { list, _, err := t.sales.reasonsFor(sold); return list, err })
	at := 0
	for v := range sold.shares {
		var byRules, bySteps decimal
		for _, step := range list[at].Steps {
			bySteps += step.Points
		}
		for i, r := range list[at].Rules {
			byRules += r.Points
			if r.Applied != (len(r.Reasons) == 0) {
				s.Fatalf("rule %s applied %v, for %v", r.Name, r.Applied, r.Reasons)
			}
			for _, reason := range r.Reasons {
				codes[reason.Code]++
			}
			checkReasons(s, in, why[at].rules[i].rule, sold.CreatedAt.time().In(why[at].rules[i].sold.Location()), r.Reasons)
		}
		if byRules != v.Earned || bySteps != v.Earned {
			s.Fatalf("earned %v, by rules %v, by steps %v: %+v", v.Earned, byRules, bySteps, list[at])
		}
		at++
	}
}

// checkReasons checks, of what the sale itself shows, that it is said exactly where it is so.
func checkReasons(s *shop, in newSale, r *rule, at time.Time, reasons []explainedReason) {
	s.Helper()
	said := func(code string) bool {
		return slices.ContainsFunc(reasons, func(r explainedReason) bool { return r.Code == code })
	}
	if !r.isForPurchases() || r.Reward != "" {
		return
	}
	paid := len(in.Labels) > 0 && in.Labels[0].Value == "efectivo"
	for code, want := range map[string]bool{
		"DayNotMatched":    len(r.Days) > 0 && !slices.Contains(r.Days, at.Weekday().String()),
		"HourNotMatched":   r.Hours != nil && (at.Hour() < 7 || at.Hour() >= 11),
		"AmountTooLow":     r.MinAmount != nil && in.Total < *r.MinAmount,
		"LabelsNotMatched": len(r.Labels) > 0 && !paid,
		"ItemsNotMatched":  len(r.SKUs) > 0 && !slices.ContainsFunc(in.Items, func(it item) bool { return matchesAny(r.SKUs, it.SKU) }),
		"DateNotMatched":   r.From != "" && (at.Format(time.DateOnly) < r.From || at.Format(time.DateOnly) > r.Until),
	} {
		if said(code) != want {
			s.Fatalf("%s of rule %s at %v, %+v: said %v", code, r.Key, at, in, said(code))
		}
	}
}

// TestReasonsAreSmall: with four rules, a tier's multiplier and rounding the reasons take at most 12
// bytes of a sale's record on average.
func TestReasonsAreSmall(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(22, 2))
	s := newShop(t, setup{program: `"default":true,"rounding":"Floor","tiers":[{"name":"Plata","threshold":0},{"name":"Oro","threshold":50,"multiplier":1.2}],
		"rules":[{"key":"base","name":"Base","per":{"amount":10,"points":1}},
		{"key":"martes","name":"Martes doble","days":["Tuesday"],"multiplier":2},
		{"key":"primera","name":"Bienvenida","firstPurchase":true,"points":20},
		{"key":"vez","name":"Una al día","maxPerCustomerPerDay":1,"minAmount":100,"points":5}]`})
	ana := s.customer("ana")
	sum, most := 0, 0
	const sales = 500
	for range sales {
		s.pass(time.Duration(1+rnd.IntN(20)) * time.Hour)
		in := explainedPurchase(s, rnd, ana)
		in.OccurredAt, in.Labels = 0, nil
		sold, err := s.sell(in)
		s.ok(err)
		plain := *sold
		plain.Version = 0
		grown := len(appendRecord(nil, sold)) - len(appendRecord(nil, &plain))
		sum, most = sum+grown, max(most, grown)
	}
	t.Logf("%.1f bytes on average, %d at most", float64(sum)/sales, most)
	if sum > 12*sales {
		t.Errorf("a sale's reasons take %.1f bytes", float64(sum)/sales)
	}
}

// TestReasonsOfTurns: once the third purchase was given for, another third one is told so; which turn a
// purchase would be is not said of one that does not count.
func TestReasonsOfTurns(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"tres","name":"Tres","every":3,"minAmount":5,"points":9}]`})
	ana := s.customer("ana")
	why := func(sold *sale) string {
		return ask(s, func(t *txn) (string, error) { text, err := explanationText(t, sold); return string(text), err })
	}
	first := s.buy(ana, "10")
	s.buy(ana, "10")
	s.buy(ana, "10")
	s.bring(first, "10")
	if text := why(s.buy(ana, "10")); !strings.Contains(text, "Ya dio por la compra 3") {
		t.Error(text)
	}
	if text := why(s.buy(ana, "1")); strings.Contains(text, "NotItsTurn") || !strings.Contains(text, "AmountTooLow") {
		t.Error(text)
	}
}

// TestReasonsRecord: the reasons of many rules are read as they were written.
func TestReasonsRecord(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(22, 3))
	for range 2000 {
		w := shareReasons{Tier: uint64(rnd.IntN(5)), Steps: earningSteps{decimal(rnd.IntN(2) * 25000), decimal(-rnd.IntN(2) * 7200)}}
		for n := rnd.IntN(200); n > 0; n-- {
			r := unmetRule{Conditions: conditionSet(rnd.IntN(3) * rnd.IntN(1<<conditions))}
			if r.Conditions &= 1<<conditions - 1; r.Conditions.has(conditionEvery) {
				r.Turn = uint64(rnd.IntN(500))
			}
			w.Rules = append(w.Rules, r)
		}
		for len(w.Rules) > 0 && w.Rules[len(w.Rules)-1].Conditions == 0 {
			w.Rules = w.Rules[:len(w.Rules)-1]
		}
		if len(w.Rules) == 0 {
			w.Rules = nil
		}
		read, err := decodeRecord[shareReasons](appendRecord(nil, &w))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the reasons", *read, w)
	}
}
