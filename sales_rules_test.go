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

// TestRuleLives: what a customer used in a life comes back with purchases that are returned whole,
// and adds up in a merge.
func TestRuleLives(t *testing.T) {
	t.Parallel()
	const rules = `"rules":[{"key":"once","name":"once","points":100,"maxPerCustomer":1},{"key":"third","name":"third","points":10,"every":3}]`
	s := newShop(t, setup{program: rules})
	ana := s.customer("ana")
	buys := func(cust id, want string) *sale {
		t.Helper()
		sold := s.buy(cust, "10")
		if got := sold.Earned.String(); got != want {
			t.Errorf("purchase %d: %s points, want %s", sold.Seq, got, want)
		}
		return sold
	}
	first := buys(ana, "100")
	buys(ana, "0")
	third := buys(ana, "10")
	s.bring(first, "5")
	buys(ana, "0") // a purchase that is returned in part stands
	s.bring(first, "5")
	buys(ana, "100") // the only use came back, and four purchases stand
	buys(ana, "0")   // the fifth
	buys(ana, "10")  // the sixth
	s.bring(third, "10")
	buys(ana, "10") // the sixth again: one of the two that were given came back
	last := buys(ana, "0")
	s.bring(last, "10")
	s.verified()

	// A purchase that was not given for comes back: the next one is the third again, and that
	// was given for.
	eva := s.customer("eva")
	buys(eva, "100")
	gone := buys(eva, "0")
	buys(eva, "10")
	s.bring(gone, "10")
	buys(eva, "0")
	buys(eva, "0")
	buys(eva, "0")
	buys(eva, "10") // the sixth

	luz, sol := s.customer("luz"), s.customer("sol")
	buys(luz, "100")
	buys(sol, "100")
	s.merged(luz, sol)
	s.verified()
	buys(luz, "10") // the third of both
	buys(luz, "0")
}

// TestNights: with days and hours that pass midnight, what is after midnight is of the day before,
// for the days and for the daily limit, also where the clocks change.
func TestNights(t *testing.T) {
	t.Parallel()
	const fridays = `"days":["Friday"],"hours":{"from":"22:00","to":"02:00"},"maxPerCustomerPerDay":1`
	for _, test := range []struct {
		reason, zone, rule string
		want               []string // a local moment and what it earns
	}{
		{"round midnight", "Europe/Madrid", fridays, []string{"2026-03-06T01:00 0", "2026-03-06T21:59 0", "2026-03-06T22:00 1", "2026-03-06T23:59 0",
			"2026-03-07T00:00 0", "2026-03-07T22:00 0", "2026-03-13T23:59 1", "2026-03-14T00:00 0", "2026-03-21T00:00 1", "2026-03-21T01:59 0", "2026-03-28T02:00 0"}},
		{"two nights running", "Europe/Madrid", `"days":["Friday","Saturday"],"hours":{"from":"22:00","to":"02:00"},"maxPerCustomerPerDay":1`,
			[]string{"2026-03-06T23:00 1", "2026-03-07T01:00 0", "2026-03-07T22:00 1", "2026-03-08T01:00 0"}},
		{"hours that end at midnight", "Europe/Madrid", `"days":["Friday"],"hours":{"from":"22:00","to":"00:00"}`, []string{"2026-03-06T23:59 1", "2026-03-07T00:00 0"}},
		{"without days a day ends at midnight", "Europe/Madrid", `"hours":{"from":"22:00","to":"02:00"},"maxPerCustomerPerDay":1`,
			[]string{"2026-03-06T23:59 1", "2026-03-07T00:00 1", "2026-03-07T01:00 0"}},
		{"an hour is left out: 02:00 is 03:00", "Europe/Madrid", `"days":["Saturday"],"hours":{"from":"22:00","to":"03:00"}`,
			[]string{"2026-03-28T23:00 1", "2026-03-29T01:59 1", "2026-03-29T03:00 0"}},
		{"an hour comes twice, at 03:00", "Europe/Madrid", `"days":["Saturday"],"hours":{"from":"22:00","to":"03:00"},"maxPerCustomerPerDay":2`,
			[]string{"2026-10-24T23:00 1", "2026-10-25T02:30:00+02:00 1", "2026-10-25T02:30:00+01:00 0", "2026-10-25T03:00 0"}},
		{"midnight comes twice", "America/Havana", fridays, []string{"2026-10-30T23:30 1", "2026-10-31T00:30 0"}},
		{"midnight comes twice, on Sunday", "America/Havana", `"days":["Saturday"],"hours":{"from":"22:00","to":"02:00"},"maxPerCustomerPerDay":2`,
			[]string{"2026-10-31T23:30 1", "2026-11-01T00:30:00-04:00 1", "2026-11-01T00:30:00-05:00 0", "2026-11-01T02:00 0"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newShop(t, setup{zone: test.zone, program: `"rules":[{"key":"a","name":"a","points":1,` + test.rule + `}]`})
			zone, ana := must(s, func(t *txn) (*time.Location, error) { return t.cfg.zone, nil }), s.customer("ana")
			var given []*sale
			for _, w := range test.want {
				at, want, _ := strings.Cut(w, " ")
				s.clock, _ = parseTime(at, zone)
				sold := s.buy(ana, "1")
				if got := sold.Earned.String(); got != want {
					t.Errorf("%s: %s points, want %s", at, got, want)
				}
				given = append(given, sold)
			}
			s.verified()
			s.apply(setup{zone: test.zone, program: `"rules":[{"key":"a","name":"a","points":1}]`}.document())
			for _, sold := range given { // by the rule that it was sold under
				s.bring(sold, "1")
			}
		})
	}
}

// TestRuleLivesChanged: a rule that is gone, or has other limits by then.
func TestRuleLivesChanged(t *testing.T) {
	t.Parallel()
	const limited = `"rules":[{"key":"a","name":"a","points":10,"maxPerCustomer":1,"budget":25}]`
	s := newShop(t, setup{program: limited})
	ana, eva := s.customer("ana"), s.customer("eva")
	first := s.buy(ana, "1")
	s.apply(setup{program: `"rules":[{"key":"a","name":"a","points":10}]`}.document())
	second := s.buy(ana, "1")
	s.apply(setup{program: `"rules":[{"key":"b","name":"b","points":1}]`}.document())
	s.bring(first, "1")
	s.verified()
	s.apply(setup{program: limited}.document())
	s.bring(second, "1") // which counted for nothing
	third := s.buy(ana, "1")
	if third.Earned != decimalOf(10) {
		t.Errorf("%s points after the use came back", third.Earned)
	}
	if got := s.buy(ana, "1").Earned; got != 0 {
		t.Errorf("%s points for a second use", got)
	}
	if got := s.buy(eva, "1").Earned + s.buy(s.customer("sol"), "1").Earned; got != decimalOf(15) {
		t.Errorf("%s points of a budget of 25 after 10, want 15", got)
	}
	s.verified()
}

// TestBudgetOfOtherDecimals: what is left of a budget is given as points that the program has.
func TestBudgetOfOtherDecimals(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"pointsDecimals":1,"rounding":"Ceil","rules":[{"key":"a","name":"a","budget":1.5,"per":{"amount":1,"points":1}}]`})
	ana := s.customer("ana")
	s.buy(ana, "0.3")
	s.apply(setup{program: `"pointsDecimals":0,"rounding":"Ceil","rules":[{"key":"a","name":"a","budget":2,"per":{"amount":1,"points":1}}]`}.document())
	if got := s.buy(ana, "5").Earned; got != decimalOf(1) {
		t.Errorf("%s of the 1.7 that are left, want 1", got)
	}
}

// TestEveryChanges: another number of purchases begins with what was given for.
func TestEveryChanges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		before, buys, after int
		gave                string // the points of the next purchases
	}{
		{5, 25, 10, "00001000000000100000"},
		{10, 29, 5, "10000100001000010000"},
		{10, 29, 7, "00000100000010000001"},
	} {
		s := newShop(t, setup{program: fmt.Sprintf(`"rules":[{"key":"a","name":"a","points":1,"every":%d}]`, test.before)})
		ana := s.customer("ana")
		for range test.buys {
			s.buy(ana, "1")
		}
		s.apply(setup{program: fmt.Sprintf(`"rules":[{"key":"a","name":"a","points":1,"every":%d}]`, test.after)}.document())
		got := ""
		for range test.gave {
			got += s.buy(ana, "1").Earned.String()
		}
		if got != test.gave {
			t.Errorf("%d after %d of every %d: %s, want %s", test.after, test.buys, test.before, got, test.gave)
		}
	}
}

// TestFlatPointsComeBack: flat points are those of the items that a rule is about.
func TestFlatPointsComeBack(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"a","name":"a","skus":["CAFE"],"minQuantity":3,"points":100}]`})
	ana := s.customer("ana")
	items := []item{{"CAFE", dec("10"), dec("3")}, {"TV", dec("10000"), dec("1")}}
	sold := s.buy(ana, "10030", items...)
	if got := s.bring(sold, "10000", items[1]).Reversed; got != 0 {
		t.Errorf("the television takes back %s", got)
	}
	if got := s.bring(sold, "10", item{"CAFE", dec("10"), dec("1")}).Reversed; got != decimalOf(33) {
		t.Errorf("a coffee of three takes back %s", got)
	}
}

// TestBudgets: what is left of a budget after purchases and returns, to the point.
func TestBudgets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, program string
		run             func(s *shop, ana id)
		used            string
	}{
		{"a return in part refills its part", `"rules":[{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			s.bring(s.buy(ana, "60"), "20")
		}, "40"},
		{"the other items of a purchase come back: what the rule gave stands", `"rules":[{"key":"a","name":"a","skus":["A"],"budget":100,"per":{"amount":1,"points":1}},{"key":"b","name":"b","skus":["B"],"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			for range 5 {
				items := []item{{"A", dec("100"), dec("1")}, {"B", dec("10000"), dec("1")}}
				s.bring(s.buy(ana, "10100", items...), "10000", items[1])
			}
			if got := s.standing(ana).Balance; got != decimalOf(100) {
				s.Errorf("a balance of %s by a budget of 100", got)
			}
		}, "100"},
		{"a whole return refills all", `"rules":[{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			s.buy(ana, "30")
			s.bring(s.buy(ana, "60"), "60")
		}, "30"},
		{"parts add up to all of it", `"rules":[{"key":"a","name":"a","budget":100,"per":{"amount":3,"points":1}},{"key":"b","name":"b","per":{"amount":7,"points":1}}]`, func(s *shop, ana id) {
			sold := s.buy(ana, "100")
			for range 10 {
				s.bring(sold, "10")
			}
		}, "0"},
		{"what a return takes back may be of another rule", `"rules":[{"key":"a","name":"a","skus":["A"],"budget":100,"per":{"amount":1,"points":1}},{"key":"b","name":"b","skus":["B"],"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			items := []item{{"A", dec("30"), dec("1")}, {"B", dec("30"), dec("1")}}
			s.bring(s.buy(ana, "60", items...), "30", items[1])
		}, "30"},
		{"what a return does not take back stays", `"returns":"Keep","rules":[{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			s.bring(s.buy(ana, "60"), "60")
		}, "60"},
		{"points that were spent do not come back to the budget", `"negativeBalance":"Clamp","rules":[{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			sold := s.buy(ana, "60")
			_, err := s.deduct(ana, "60")
			s.ok(err)
			s.bring(sold, "60")
		}, "60"},
		{"a return that belongs to no purchase refills nothing", `"rules":[{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}]`, func(s *shop, ana id) {
			s.buy(ana, "60")
			_, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("10")})
			s.ok(err)
		}, "60"},
		{"ten-thousandths", `"pointsDecimals":4,"rules":[{"key":"a","name":"a","budget":0.0002,"per":{"amount":1,"points":0.0003}}]`, func(s *shop, ana id) {
			s.buy(ana, "1")
			s.buy(ana, "1")
		}, "0.0002"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, setup{program: test.program})
			ana := s.customer("ana")
			test.run(s, ana)
			used := ask(s, func(t *txn) (decimal, error) {
				return t.sales.budgetUsed(t.cfg.Programs[0], &t.cfg.Programs[0].Rules[0])
			})
			if used.String() != test.used {
				t.Errorf("used %s, want %s", used, test.used)
			}
			s.verified()
		})
	}
}
