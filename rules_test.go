package main

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// Rules of the tests, as members of a program's document.
const (
	tenth   = `{"key":"base","name":"base","per":{"amount":10,"points":1}}` // a point for each 10
	onePer1 = `{"key":"base","name":"base","per":{"amount":1,"points":1}}`
)

// TestRules shows every condition and every effect of a rule. Each sale is
// made in a new shop at 2026-03-02 10:00 UTC, a Monday and 04:00 in Mexico
// City, and should give what is listed, rule by rule.
func TestRules(t *testing.T) {
	for _, test := range []struct {
		reason string
		rules  string
		tiers  string
		also   string
		at     string   // in place of Monday
		before []string // totals of sales already made
		total  string
		items  []item
		want   string
	}{
		// Effects.
		{reason: "per gives in proportion, rounded down", rules: tenth, total: "159.99", want: "base 15"},
		{reason: "per gives nothing below a point, and is not listed", rules: tenth, total: "9.9999", want: ""},
		{reason: "per of an amount that floats do not have: 0.3/0.1 is 2.9999999999999996 there",
			rules: `{"key":"a","name":"a","per":{"amount":0.1,"points":1}}`, total: "0.3", want: "a 3"},
		{reason: "per on the items that match, by what they cost, whatever the total",
			rules: `{"key":"a","name":"a","skus":["T-*"],"per":{"amount":10,"points":1}}`, total: "500",
			items: []item{{"T-1", dec("30"), dec("2")}, {"X", dec("440"), dec("1")}}, want: "a 6"},
		{reason: "perItem gives for each piece",
			rules: `{"key":"a","name":"a","perItem":5}`, total: "10", items: []item{{"A", dec("1"), dec("2")}, {"B", dec("1"), dec("3")}}, want: "a 25"},
		{reason: "perItem takes part of a piece, as of goods by weight",
			rules: `{"key":"a","name":"a","perItem":5}`, total: "10", items: []item{{"A", dec("1"), dec("1.5")}}, want: "a 7"},
		{reason: "perItem counts the items that match alone",
			rules: `{"key":"a","name":"a","skus":["A"],"perItem":5}`, total: "10", items: []item{{"A", dec("1"), dec("2")}, {"B", dec("1"), dec("3")}}, want: "a 10"},
		{reason: "perItem without items gives nothing", rules: `{"key":"a","name":"a","perItem":5}`, total: "10", want: ""},
		{reason: "points are given once", rules: `{"key":"a","name":"a","points":7}`, total: "1000", want: "a 7"},
		{reason: "a multiplier doubles what per gave", rules: tenth + `,{"key":"x","name":"x","multiplier":2}`, total: "100", want: "base 10, x 10"},
		{reason: "multipliers multiply one another, in order",
			rules: tenth + `,{"key":"x","name":"x","multiplier":2},{"key":"y","name":"y","multiplier":1.5}`, total: "100", want: "base 10, x 10, y 10"},
		{reason: "a multiplier stands before the per rule all the same",
			rules: `{"key":"x","name":"x","multiplier":2},` + tenth, total: "100", want: "x 10, base 10"},
		{reason: "a multiplier leaves flat points and perItem alone",
			rules: tenth + `,{"key":"x","name":"x","multiplier":3},{"key":"f","name":"f","points":7},{"key":"i","name":"i","perItem":1}`,
			total: "100", items: []item{{"A", dec("100"), dec("1")}}, want: "base 10, x 20, f 7, i 1"},
		{reason: "a multiplier of some items multiplies their part",
			rules: tenth + `,{"key":"x","name":"x","multiplier":2,"skus":["A"]}`, total: "100",
			items: []item{{"A", dec("30"), dec("1")}, {"B", dec("70"), dec("1")}}, want: "base 10, x 3"},
		{reason: "their part of a total that is not the sum of the items, as after a discount",
			rules: tenth + `,{"key":"x","name":"x","multiplier":2,"skus":["A"]}`, total: "50",
			items: []item{{"A", dec("30"), dec("1")}, {"B", dec("70"), dec("1")}}, want: "base 5, x 1"},
		{reason: "a multiplier alone multiplies nothing", rules: `{"key":"x","name":"x","multiplier":2}`, total: "100", want: ""},
		{reason: "two per rules add up before they are multiplied",
			rules: tenth + `,{"key":"b","name":"b","per":{"amount":20,"points":1}},{"key":"x","name":"x","multiplier":2}`, total: "100", want: "base 10, b 5, x 15"},

		// Rounding: once, and the parts add up.
		{reason: "halves of two rules make a whole", rules: `{"key":"a","name":"a","per":{"amount":2,"points":1}},{"key":"b","name":"b","per":{"amount":2,"points":1}}`,
			total: "1", want: "b 1"},
		{reason: "a third of three rules each make a whole",
			rules: `{"key":"a","name":"a","per":{"amount":3,"points":1}},{"key":"b","name":"b","per":{"amount":3,"points":1}},{"key":"c","name":"c","per":{"amount":3,"points":1}}`,
			total: "4", want: "a 1, b 1, c 2"},

		// Tiers.
		{reason: "the tier multiplies what per gives", rules: tenth, tiers: `{"name":"T","threshold":0,"multiplier":1.25}`, total: "100", want: "base 12"},
		{reason: "the tier multiplies neither flat points nor perItem",
			rules: `{"key":"f","name":"f","points":10},{"key":"i","name":"i","perItem":2}`, tiers: `{"name":"T","threshold":0,"multiplier":3}`,
			total: "100", items: []item{{"A", dec("1"), dec("5")}}, want: "f 10, i 10"},
		{reason: "the tier before the sale counts, not the one it leads to", rules: onePer1,
			tiers: `{"name":"L","threshold":0},{"name":"H","threshold":10,"multiplier":2}`, total: "10", want: "base 10"},
		{reason: "from the next sale on the new tier counts", rules: onePer1,
			tiers: `{"name":"L","threshold":0},{"name":"H","threshold":10,"multiplier":2}`, before: []string{"10"}, total: "10", want: "base 20"},
		{reason: "tier and multiplier rule multiply one another", rules: tenth + `,{"key":"x","name":"x","multiplier":2}`,
			tiers: `{"name":"T","threshold":0,"multiplier":1.5}`, total: "100", want: "base 15, x 15"},

		// Conditions.
		{reason: "minAmount is met exactly", rules: `{"key":"a","name":"a","points":1,"minAmount":100}`, total: "100", want: "a 1"},
		{reason: "minAmount is missed by a ten-thousandth", rules: `{"key":"a","name":"a","points":1,"minAmount":100}`, total: "99.9999", want: ""},
		{reason: "skus needs an item that matches", rules: `{"key":"a","name":"a","points":1,"skus":["A","B*"]}`, total: "1", items: []item{{"BC", dec("1"), dec("1")}}, want: "a 1"},
		{reason: "skus with no such item", rules: `{"key":"a","name":"a","points":1,"skus":["A","B*"]}`, total: "1", items: []item{{"AB", dec("1"), dec("1")}}, want: ""},
		{reason: "skus without items", rules: `{"key":"a","name":"a","points":1,"skus":["*"]}`, total: "1", want: ""},
		{reason: "tiers names the customer's", rules: `{"key":"a","name":"a","points":1,"tiers":["L"]}`, tiers: `{"name":"L","threshold":0},{"name":"H","threshold":10}`, total: "1", want: "a 1"},
		{reason: "tiers names another", rules: `{"key":"a","name":"a","points":1,"tiers":["H"]}`, tiers: `{"name":"L","threshold":0},{"name":"H","threshold":10}`, total: "1", want: ""},
		{reason: "segments before the sale: not yet in it", rules: `{"key":"a","name":"a","points":1,"segments":["vip"]}`,
			also: `"segments":[{"key":"vip","name":"VIP","isActive":true,"rule":{"field":"totalSpent","op":">=","value":100}}]`, total: "100", want: ""},
		{reason: "segments before the sale: in it since the last", rules: `{"key":"a","name":"a","points":1,"segments":["vip"]}`,
			also:   `"segments":[{"key":"vip","name":"VIP","isActive":true,"rule":{"field":"totalSpent","op":">=","value":100}}]`,
			before: []string{"100"}, total: "1", want: "a 1"},
		{reason: "a segment that is not active holds nobody", rules: `{"key":"a","name":"a","points":1,"segments":["vip"]}`,
			also:   `"segments":[{"key":"vip","name":"VIP","isActive":false,"rule":{"field":"totalSpent","op":">=","value":100}}]`,
			before: []string{"100"}, total: "1", want: ""},
		{reason: "days are those of the shop: Sunday night in Mexico City is Monday in UTC",
			rules: `{"key":"a","name":"a","points":1,"days":["Sunday"]}`, at: "2026-03-02T05:59:59Z", total: "1", want: "a 1"},
		{reason: "days are over at the shop's midnight", rules: `{"key":"a","name":"a","points":1,"days":["Sunday"]}`, at: "2026-03-02T06:00:00Z", total: "1", want: ""},
		{reason: "hours begin on the minute", rules: `{"key":"a","name":"a","points":1,"hours":{"from":"04:00","to":"05:00"}}`, total: "1", want: "a 1"},
		{reason: "hours end before their last minute", rules: `{"key":"a","name":"a","points":1,"hours":{"from":"03:00","to":"04:00"}}`, total: "1", want: ""},
		{reason: "hours over midnight: before it", rules: `{"key":"a","name":"a","points":1,"hours":{"from":"22:00","to":"02:00"}}`, at: "2026-03-02T05:30:00Z", total: "1", want: "a 1"},
		{reason: "hours over midnight: after it", rules: `{"key":"a","name":"a","points":1,"hours":{"from":"22:00","to":"02:00"}}`, at: "2026-03-02T07:59:59Z", total: "1", want: "a 1"},
		{reason: "hours over midnight: by day", rules: `{"key":"a","name":"a","points":1,"hours":{"from":"22:00","to":"02:00"}}`, total: "1", want: ""},
		{reason: "from begins with its day", rules: `{"key":"a","name":"a","points":1,"from":"2026-03-02"}`, at: "2026-03-02T06:00:00Z", total: "1", want: "a 1"},
		{reason: "from has not begun", rules: `{"key":"a","name":"a","points":1,"from":"2026-03-02"}`, at: "2026-03-02T05:59:59Z", total: "1", want: ""},
		{reason: "until counts whole", rules: `{"key":"a","name":"a","points":1,"until":"2026-03-01"}`, at: "2026-03-02T05:59:59.999Z", total: "1", want: "a 1"},
		{reason: "until is over", rules: `{"key":"a","name":"a","points":1,"until":"2026-03-01"}`, at: "2026-03-02T06:00:00Z", total: "1", want: ""},
		{reason: "firstPurchase holds for the first", rules: `{"key":"a","name":"a","points":1,"firstPurchase":true}`, total: "1", want: "a 1"},
		{reason: "firstPurchase does not hold again", rules: `{"key":"a","name":"a","points":1,"firstPurchase":true}`, before: []string{"1"}, total: "1", want: ""},
		{reason: "maxPerCustomerPerDay: the last time", rules: `{"key":"a","name":"a","points":1,"maxPerCustomerPerDay":2}`, before: []string{"1"}, total: "1", want: "a 1"},
		{reason: "maxPerCustomerPerDay: once too often", rules: `{"key":"a","name":"a","points":1,"maxPerCustomerPerDay":2}`, before: []string{"1", "1"}, total: "1", want: ""},
		{reason: "all conditions must hold", rules: `{"key":"a","name":"a","points":1,"minAmount":5,"days":["Tuesday"]}`, total: "10", want: ""},
		{reason: "a rule for signing up gives nothing for a sale", rules: `{"key":"a","name":"a","on":"Signup","points":1}`, total: "10", want: ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			program := `"rules":[` + test.rules + `],"tiers":[` + test.tiers + `]`
			s := newShop(t, setup{at: test.at, program: program, also: test.also})
			ana := s.customer("ana")
			for _, total := range test.before {
				s.buy(ana, total)
			}
			sold := s.buy(ana, test.total, test.items...)
			var parts []string
			sum := decimal(0)
			for _, r := range sold.Rules {
				parts = append(parts, fmt.Sprint(r.Name, " ", r.Points))
				sum += r.Points
			}
			if got := strings.Join(parts, ", "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if sum != sold.Earned {
				t.Errorf("the rules add up to %s, the sale earned %s", sum, sold.Earned)
			}
		})
	}
}

// TestRounding shows the four ways to round, at every number of decimals.
func TestRounding(t *testing.T) {
	const third = `"rules":[{"key":"a","name":"a","per":{"amount":3,"points":1}}]`
	const half = `"rules":[{"key":"a","name":"a","per":{"amount":2,"points":1}}]`
	for _, test := range []struct {
		reason         string
		program, total string
		decimals       int
		want           string // by Floor, Ceil, HalfUp and HalfEven
	}{
		{"a third of a point", third, "1", 0, "0 1 0 0"},
		{"two thirds", third, "2", 0, "0 1 1 1"},
		{"a whole point", third, "3", 0, "1 1 1 1"},
		{"a half below an odd number", half, "1", 0, "0 1 1 0"},
		{"a half below an even number", half, "3", 0, "1 2 2 2"},
		{"a ten-thousandth above a half", half, "1.0002", 0, "0 1 1 1"},
		{"one decimal", third, "2", 1, "0.6 0.7 0.7 0.7"},
		{"two decimals", third, "2", 2, "0.66 0.67 0.67 0.67"},
		{"four decimals", third, "2", 4, "0.6666 0.6667 0.6667 0.6667"},
		{"a half of the last decimal", half, "0.0001", 4, "0 0.0001 0.0001 0"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var got []string
			for _, rounding := range []rounding{roundFloor, roundCeil, roundHalfUp, roundHalfEven} {
				s := newShop(t, setup{program: fmt.Sprintf(`%s,"pointsDecimals":%d,"rounding":%q`, test.program, test.decimals, rounding)})
				got = append(got, s.buy(s.customer("ana"), test.total).Earned.String())
			}
			if got := strings.Join(got, " "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestEarnParts checks that whatever the rules, the parts of rules and of
// items add up to what was earned, which is the exact sum rounded once.
func TestEarnParts(t *testing.T) {
	histories(t, 2000, func(t *testing.T, rnd *rand.Rand) {
		p := &program{programDoc: programDoc{
			PointsDecimals: rnd.IntN(5), Rounding: pick(rnd, roundFloor, roundCeil, roundHalfUp, roundHalfEven),
		}}
		amount := func(most int) *decimal { return ptr(decimal(1 + rnd.IntN(most*decimalOne))) }
		var f facts
		for range rnd.IntN(4) {
			f.items = append(f.items, item{pick(rnd, "A", "B", "C"), *amount(20) * decimal(rnd.IntN(2)), *amount(3)})
		}
		f.total = *amount(100)
		perTotal, flat := new(big.Rat), new(big.Rat) // what the rules should give in all
		factor := big.NewRat(1, 1)
		for range rnd.IntN(5) {
			r := rule{Key: fmt.Sprint(len(p.Rules))}
			switch rnd.IntN(4) {
			case 0:
				r.Per = &perRule{*amount(10), *amount(3)}
				part := new(big.Rat).Quo(f.total.rat(), r.Per.Amount.rat())
				perTotal.Add(perTotal, part.Mul(part, r.Per.Points.rat()))
			case 1:
				r.PerItem = amount(5)
				for _, it := range f.items {
					flat.Add(flat, new(big.Rat).Mul(it.Quantity.rat(), r.PerItem.rat()))
				}
			case 2:
				r.Points = amount(20)
				flat.Add(flat, r.Points.rat())
			case 3:
				r.Multiplier = ptr(decimalOf(1) + *amount(2))
				factor.Mul(factor, r.Multiplier.rat())
			}
			p.Rules = append(p.Rules, r)
		}
		if rnd.IntN(2) == 0 {
			f.tier = &tier{Multiplier: ptr(decimalOf(1) + *amount(1))}
			factor.Mul(factor, f.tier.Multiplier.rat())
		}
		exact := perTotal.Mul(perTotal, factor)
		want, _ := roundRat(exact.Add(exact, flat), p.PointsDecimals, p.Rounding)

		e, ok := p.earn(f)
		if !ok || e.total() != want {
			t.Fatalf("earned %s, want %s", e.total(), want)
		}
		var byItem decimal
		for i, points := range e.lines {
			if byItem += points; points < 0 {
				t.Errorf("item %d earned %s", i, points)
			}
		}
		if len(f.items) > 0 && byItem != want {
			t.Errorf("items earned %s, want %s: %v", byItem, want, e.lines)
		}
		for _, w := range e.awards {
			if w.points < 0 {
				t.Errorf("rule %s gave %s", w.rule.Key, w.points)
			}
		}
	})
}

// TestDailyMaximum shows when a rule's uses are counted anew.
func TestDailyMaximum(t *testing.T) {
	s := newShop(t, setup{at: "2026-03-02T06:00:00Z", // midnight in Mexico City
		program: `"rules":[{"key":"a","name":"a","points":1,"maxPerCustomerPerDay":1},{"key":"b","name":"b","points":10,"maxPerCustomerPerDay":2}]`})
	ana, eva := s.customer("ana"), s.customer("eva")
	wantEarned := func(cust id, want, reason string) {
		t.Helper()
		if got := s.buy(cust, "1").Earned.String(); got != want {
			t.Errorf("earned %s, want %s: %s", got, want, reason)
		}
	}
	wantEarned(ana, "11", "the first sale of the day")
	wantEarned(ana, "10", "each rule has its own count")
	wantEarned(ana, "0", "both are used up")
	wantEarned(eva, "11", "each customer has its own count")
	s.pass(oneDay - 1*time.Millisecond)
	wantEarned(ana, "0", "the last millisecond of the day")
	s.pass(time.Millisecond)
	wantEarned(ana, "11", "the next day")
	s.pass(3 * oneDay)
	wantEarned(ana, "11", "days later")
}

// TestSignup shows what enrolling gives.
func TestSignup(t *testing.T) {
	s := newShop(t, setup{at: "2026-01-31T18:00:00Z", program: `"rules":[
		{"key":"hello","name":"Bienvenida","on":"Signup","points":50,"expiresInDays":90},
		{"key":"later","name":"Más tarde","on":"Signup","points":5,"pendingDays":2},
		{"key":"over","name":"Pasado","on":"Signup","points":500,"until":"2026-01-30"},
		{"key":"early","name":"Futuro","on":"Signup","points":500,"from":"2026-02-01"}]`})
	ana := s.customer("ana")
	s.wantStanding(ana, "50 5 55", "the rules that are in force")
	if again := s.customer("ana"); again != ana {
		t.Fatal("enrolled twice")
	}
	s.wantStanding(ana, "50 5 55", "enrolling again gives nothing")
	s.pass(2 * oneDay)
	s.wantStanding(ana, "55 0 55", "the pending points have come")
	s.pass(88 * oneDay)
	s.wantStanding(ana, "5 0 55", "what expires in 90 days has expired")
	if m := s.ledger(ana)[0]; m.Category != categoryBonus || m.Comment != "Bienvenida" {
		t.Errorf("got a movement of %s, %q", m.Category, m.Comment)
	}
}

// TestReturnLinks shows which purchase a return belongs to.
func TestReturnLinks(t *testing.T) {
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`})
	ana, eva := s.customer("ana"), s.customer("eva")
	sell := func(cust id, total, externalID string) *sale {
		t.Helper()
		sold, err := s.sell(newSale{Customer: cust, Total: dec(total), ExternalID: externalID})
		s.ok(err)
		return sold
	}
	bring := func(total, externalID string, original *id) (*sale, error) {
		return s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec(total), ExternalID: externalID, Original: original})
	}
	wantPrevious := func(want *sale, reason string) func(*sale, error) {
		return func(got *sale, err error) {
			t.Helper()
			switch {
			case err != nil:
				t.Errorf("%v, want a return: %s", err, reason)
			case want == nil && got.Previous != (id{}):
				t.Errorf("linked to %s, want no purchase: %s", got.Previous, reason)
			case want != nil && got.Previous != want.ID:
				t.Errorf("linked to %s, want %s: %s", got.Previous, want.ID, reason)
			}
		}
	}

	first, second := sell(ana, "100", "T-1"), sell(ana, "60", "T-1")
	evas := sell(eva, "100", "T-1")
	other := sell(ana, "100", "T-2")
	wantPrevious(second, "the newest with the externalId")(bring("40", "T-1", nil))
	wantPrevious(first, "the one that is named, whatever the externalId")(bring("40", "T-2", &first.ID))
	wantPrevious(second, "the newest has something left to return")(bring("20", "T-1", nil))
	wantPrevious(first, "the newest is wholly returned")(bring("60", "T-1", nil))
	_, err := bring("1", "T-1", nil)
	s.want(err, "return_exceeds_purchase") // all of them are wholly returned
	wantPrevious(nil, "no purchase has the externalId")(bring("1", "T-3", nil))
	wantPrevious(nil, "neither named nor with an externalId")(bring("1", "", nil))

	_, err = bring("1", "", &evas.ID)
	s.want(err, "transaction_not_found")
	_, err = bring("1", "", &id{1})
	s.want(err, "transaction_not_found")
	returned, err := bring("50", "", &other.ID)
	s.ok(err)
	_, err = bring("1", "", &returned.ID)
	s.want(err, "transaction_not_found") // a return is no purchase
	_, err = bring("50.0001", "", &other.ID)
	s.want(err, "return_exceeds_purchase")
	wantPrevious(other, "exactly what is left")(bring("50", "", &other.ID))
}

// TestReturnPolicies shows what a return takes, from where, and what becomes
// of points that are not there.
func TestReturnPolicies(t *testing.T) {
	const late = `{"key":"late","name":"late","points":30,"pendingDays":7}`
	// Each step is "what figures": figures are those of wantStanding after
	// it; after ! is what the step reversed and its shortfall.
	for _, test := range []struct {
		reason  string
		program string
		steps   []string
	}{
		{"what was earned is taken back", `"rules":[` + onePer1 + `]`,
			[]string{"buy 100 → 100 0 100", "bring 100 → 0 0 0 ! 100 0"}},
		{"a program may let customers keep it", `"returns":"Keep","rules":[` + onePer1 + `]`,
			[]string{"buy 100 → 100 0 100", "bring 100 → 100 0 100 ! 0 0"}},
		{"points given for other reasons stay", `"rules":[` + onePer1 + `]`,
			[]string{"add 20 → 20 0 20", "buy 100 → 120 0 120", "bring 100 → 20 0 20 ! 100 0"}},
		{"flat points come back by the amount", `"rules":[{"key":"a","name":"a","points":50}]`,
			[]string{"buy 100 → 50 0 50", "bring 10 → 45 0 45 ! 5 0", "bring 90 → 0 0 0 ! 45 0"}},
		{"no fraction of a point before it is whole", `"rules":[{"key":"a","name":"a","points":1}]`,
			[]string{"buy 3 → 1 0 1", "bring 1 → 1 0 1 ! 0 0", "bring 1 → 1 0 1 ! 0 0", "bring 1 → 0 0 0 ! 1 0"}},
		{"pending points of the purchase go first", `"rules":[` + onePer1 + `,` + late + `]`,
			[]string{"buy 100 → 100 30 130", "bring 20 → 100 4 104 ! 26 0", "bring 80 → 0 0 0 ! 104 0"}},
		{"pending points of another purchase stay", `"rules":[` + onePer1 + `,` + late + `]`,
			[]string{"buy 100 → 100 30 130", "wait 8 → 130 0 130", "buy 10 → 140 30 170", "bring first 100 → 10 30 40 ! 130 0"}},
		{"Clamp takes what is there and forgives the rest", `"rules":[` + onePer1 + `]`,
			[]string{"buy 100 → 100 0 100", "deduct 70 → 30 0 100", "bring 100 → 0 0 0 ! 30 70", "add 50 → 50 0 50"}},
		{"Clamp takes nothing where nothing is", `"rules":[` + onePer1 + `]`,
			[]string{"buy 100 → 100 0 100", "deduct 100 → 0 0 100", "bring 100 → 0 0 0 ! 0 100", "buy 10 → 10 0 10"}},
		{"Debt lets the balance fall below zero", `"negativeBalance":"Debt","rules":[` + onePer1 + `]`,
			[]string{"buy 100 → 100 0 100", "deduct 70 → 30 0 100", "bring 100 → -70 0 0 ! 100 0", "add 50 → -20 0 50", "add 50 → 30 0 100"}},
		{"a debt is paid by what is pending when it comes", `"negativeBalance":"Debt","rules":[` + onePer1 + `,` + late + `]`,
			[]string{"buy 100 → 100 30 130", "deduct 100 → 0 30 130", "buy 10 → 10 60 170", "bring first 100 → -90 30 40 ! 130 0",
				"wait 8 → -60 0 40", "buy 60 → 0 30 130"}},
		{"what has expired is not taken again", `"expiry":{"days":5},"rules":[` + onePer1 + `]`,
			[]string{"buy 100 → 100 0 100", "deduct 70 → 30 0 100", "wait 6 → 0 0 100", "add 90 → 90 0 190", "bring 50 → 40 0 140 ! 50 0", "bring 50 → 20 0 90 ! 20 0"}},
		{"who owes points cannot spend", `"negativeBalance":"Debt","rules":[` + onePer1 + `]`,
			[]string{"buy 100 → 100 0 100", "deduct 100 → 0 0 100", "bring 100 → -100 0 0 ! 100 0", "add 40 → -60 0 40", "refused 1 → -60 0 40"}},
		{"Debt can grow", `"negativeBalance":"Debt","rules":[` + onePer1 + `]`,
			[]string{"buy 100 → 100 0 100", "deduct 100 → 0 0 100", "bring 40 → -40 0 60 ! 40 0", "bring 60 → -100 0 0 ! 60 0"}},
		{"unlinked takes what the per rules would give", `"rules":[` + tenth + `,{"key":"f","name":"f","points":50}]`,
			[]string{"buy 1000 → 150 0 150", "unlinked 100 → 140 0 140 ! 10 0"}},
		{"unlinked takes nothing where returns are kept", `"returns":"Keep","rules":[` + tenth + `]`,
			[]string{"buy 1000 → 100 0 100", "unlinked 100 → 100 0 100 ! 0 0"}},
		{"unlinked with Clamp takes what is there", `"rules":[` + tenth + `]`,
			[]string{"buy 1000 → 100 0 100", "deduct 95 → 5 0 100", "unlinked 100 → 0 0 90 ! 5 5"}},
		{"unlinked with Debt", `"negativeBalance":"Debt","rules":[` + tenth + `]`,
			[]string{"buy 1000 → 100 0 100", "deduct 95 → 5 0 100", "unlinked 100 → -5 0 90 ! 10 0"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newShop(t, setup{program: test.program})
			ana := s.customer("ana")
			var bought []*sale
			for _, step := range test.steps {
				what, want, _ := strings.Cut(step, " → ")
				figures, took, _ := strings.Cut(want, " ! ")
				words := strings.Fields(what)
				amount := words[len(words)-1]
				var back *sale
				switch words[0] {
				case "buy":
					bought = append(bought, s.buy(ana, amount))
				case "bring":
					purchase := bought[len(bought)-1]
					if words[1] == "first" {
						purchase = bought[0]
					}
					back = s.bring(purchase, amount)
				case "unlinked":
					var err error
					back, err = s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec(amount)})
					s.ok(err)
				case "add":
					s.add(ana, amount, 0)
				case "deduct":
					_, err := s.deduct(ana, amount)
					s.ok(err)
				case "refused":
					_, err := s.deduct(ana, amount)
					s.want(err, "insufficient_balance")
				case "wait":
					s.pass(time.Duration(dec(amount)/decimalOne) * oneDay)
				}
				s.wantStanding(ana, figures, "after "+what)
				if back != nil && fmt.Sprint(back.Reversed, " ", back.Shortfall) != took {
					t.Errorf("reversed and shortfall are %s %s, want %s: after %s", back.Reversed, back.Shortfall, took, what)
				}
			}
		})
	}
}

// TestReturnsByItem shows what returned items take back.
func TestReturnsByItem(t *testing.T) {
	bean := func(quantity string) item { return item{"GRANO-1", dec("100"), dec(quantity)} }
	mug := func(quantity string) item { return item{"MUG", dec("50"), dec(quantity)} }
	type step struct {
		total string
		items []item
		want  string // reversed, or the code of an error
	}
	for _, test := range []struct {
		reason string
		rules  string
		steps  []step // after a purchase of 300: 2 of GRANO-1 at 100, 2 of MUG at 50
	}{
		{"an item takes back what it earned", tenth + `,{"key":"i","name":"i","skus":["GRANO-*"],"perItem":5}`, // 20+5+5 and 10
			[]step{{"50", []item{mug("1")}, "5"}, {"100", []item{bean("1")}, "15"}, {"150", []item{bean("1"), mug("1")}, "20"}}},
		{"whatever is paid out for it", tenth + `,{"key":"i","name":"i","skus":["GRANO-*"],"perItem":5}`,
			[]step{{"10", []item{bean("1")}, "15"}}},
		{"part of a piece takes part of it", tenth, []step{{"25", []item{mug("0.5")}, "2"}, {"25", []item{mug("0.5")}, "3"}}},
		{"flat points are shared out by amounts", `{"key":"f","name":"f","points":30}`,
			[]step{{"50", []item{mug("1")}, "5"}, {"100", []item{bean("1")}, "10"}}},
		{"a multiplier of an item is its own", tenth + `,{"key":"x","name":"x","multiplier":3,"skus":["MUG"]}`, // 20 and 30
			[]step{{"100", []item{bean("1")}, "10"}, {"50", []item{mug("1")}, "15"}}},
		{"all items back take back all, whatever the sum", tenth, []step{{"10", []item{bean("2"), mug("2")}, "30"}}},
		{"by amount after by item", tenth, []step{{"100", []item{bean("1")}, "10"}, {"200", nil, "20"}}},
		{"by item after by amount", tenth, []step{{"100", nil, "10"}, {"200", []item{bean("2")}, "20"}}},
		{"more pieces than were bought", tenth, []step{{"50", []item{mug("2.0001")}, "return_exceeds_purchase"}, {"50", []item{mug("2")}, "10"}}},
		{"more pieces than are left", tenth, []step{{"50", []item{mug("1")}, "5"}, {"50", []item{mug("2")}, "return_exceeds_purchase"}, {"50", []item{mug("1")}, "5"}}},
		{"an item that was not bought", tenth, []step{{"50", []item{{"TEA", dec("50"), dec("1")}}, "return_exceeds_purchase"}}},
		{"a refused return counts nothing", tenth, []step{{"50", []item{mug("2"), bean("3")}, "return_exceeds_purchase"}, {"300", []item{mug("2"), bean("2")}, "30"}}},
		{"more money than was paid", tenth, []step{{"300.0001", []item{mug("1")}, "return_exceeds_purchase"}}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newShop(t, setup{program: `"rules":[` + test.rules + `]`})
			purchase := s.buy(s.customer("ana"), "300", bean("2"), mug("2"))
			for _, step := range test.steps {
				back, err := s.tryBring(purchase, step.total, step.items...)
				got := codeOf(err)
				if err == nil {
					got = back.Reversed.String()
				}
				if got != step.want {
					t.Errorf("%s of %v: got %s, want %s", step.total, step.items, got, step.want)
				}
			}
		})
	}
}

// TestPartialReturns returns random purchases piece by piece, by amount, by
// item or both, in random order. What is taken back is right to the
// ten-thousandth at every step, does not depend on the order, and is in the
// end what was earned, no more and no less.
func TestPartialReturns(t *testing.T) {
	histories(t, 500, func(t *testing.T, rnd *rand.Rand) {
		doc := randomProgram(rnd)
		doc.Returns, doc.Rules = returnsReverse, doc.Rules[:1]
		doc.Rules = append(doc.Rules, rule{Key: "a", Name: "a", SKUs: []string{"A"}, PerItem: ptr(dec("0.7"))})
		s := newShop(t, setup{program: programMembers(doc)})
		total := decimal(1 + rnd.IntN(int(decimalOf(300))))
		var items []item
		if rnd.IntN(3) > 0 {
			for i := range 1 + rnd.IntN(4) {
				items = append(items, item{pick(rnd, "A", "B"), decimalOf(i), decimal(1 + rnd.IntN(5*decimalOne))})
			}
		}

		// The pieces in which it comes back, all of it.
		type piece struct {
			total decimal
			items []item
		}
		var pieces []piece
		for left := total; left > 0; {
			n := min(left, 1+decimal(rnd.Int64N(int64(total/2+1))))
			pieces = append(pieces, piece{total: n})
			left -= n
		}
		if byItem := rnd.IntN(2) == 0; byItem {
			for _, it := range items {
				for left := it.Quantity; left > 0; {
					n := min(left, 1+decimal(rnd.Int64N(int64(it.Quantity))))
					left -= n
					i := rnd.IntN(len(pieces))
					pieces[i].items = append(pieces[i].items, item{it.SKU, it.Price, n})
				}
			}
		}
		some := rnd.IntN(len(pieces))
		var afterSome [2]decimal
		for turn := range afterSome {
			cust := s.customer(fmt.Sprint("c", turn))
			purchase, err := s.sell(newSale{Customer: cust, Total: total, Items: items})
			s.ok(err)
			earned := s.standing(cust).Lifetime
			var back, taken decimal
			byAmount := true
			for i, p := range pieces {
				if i == some {
					afterSome[turn] = taken
				}
				r, err := s.sell(newSale{Type: typeReturn, Customer: cust, Total: p.total, Items: p.items, Original: &purchase.ID})
				s.ok(err)
				back += p.total
				taken += r.Reversed
				byAmount = byAmount && len(p.items) == 0
				switch want := floorShare(earned, back, total, doc.PointsDecimals); {
				case r.Reversed < 0 || taken > earned || r.Shortfall != 0:
					t.Fatalf("after %s of %s: took %s of %s, missed %s", back, total, taken, earned, r.Shortfall)
				case byAmount && taken != want:
					t.Fatalf("after %s of %s: took %s of %s, want %s", back, total, taken, earned, want)
				}
				if now := s.standing(cust); now.Lifetime != earned-taken || now.Balance != earned-taken {
					t.Fatalf("after %s of %s: balance %s, lifetime %s, want %s", back, total, now.Balance, now.Lifetime, earned-taken)
				}
			}
			if taken != earned {
				t.Fatalf("took back %s of %s in all", taken, earned)
			}
			rnd.Shuffle(some, func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
		}
		if afterSome[0] != afterSome[1] {
			t.Fatalf("the same pieces took %s in one order and %s in another", afterSome[0], afterSome[1])
		}
	})
}

// floorShare is points × part/whole, rounded down to so many decimals.
func floorShare(points, part, whole decimal, decimals int) decimal {
	n := new(big.Int).Mul(big.NewInt(int64(points)), big.NewInt(int64(part)))
	n.Div(n, big.NewInt(int64(whole)))
	step := int64(1)
	for range decimalPlaces - decimals {
		step *= 10
	}
	return decimal(n.Int64() / step * step)
}

// TestReturnTotals shows how a customer's totals fall.
func TestReturnTotals(t *testing.T) {
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	wantTotals := func(want, reason string) {
		t.Helper()
		c := ask(s, func(t *txn) (*customer, error) { return t.customer(ana) })
		if got := fmt.Sprint(c.TotalSpent, " ", c.Purchases, " ", c.PurchasesTotal, " ", c.Sales.N); got != want {
			t.Errorf("spent, purchases not wholly returned, purchases, sales are %s, want %s: %s", got, want, reason)
		}
	}
	first := s.buy(ana, "100")
	s.buy(ana, "0.0001")
	wantTotals("100.0001 2 2 2", "two purchases")
	s.bring(first, "99.9999")
	wantTotals("0.0002 2 2 3", "not wholly returned")
	s.bring(first, "0.0001")
	wantTotals("0.0001 1 2 4", "wholly returned")
	_, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("5")})
	s.ok(err)
	wantTotals("-4.9999 1 2 5", "unlinked")

	mugs := s.buy(ana, "30", item{"MUG", dec("10"), dec("3")})
	wantTotals("25.0001 2 3 6", "three mugs")
	s.bring(mugs, "5", item{"MUG", dec("10"), dec("2.5")})
	wantTotals("20.0001 2 3 7", "half a mug is left")
	s.bring(mugs, "5", item{"MUG", dec("10"), dec("0.5")})
	wantTotals("15.0001 1 3 8", "all mugs came back, though not all of the money")
	s.bring(mugs, "20")
	wantTotals("-4.9999 1 3 9", "the money too")
}

// TestFindSales compares pages of filtered sales with the same filter put to
// every sale in turn.
func TestFindSales(t *testing.T) {
	histories(t, 30, func(t *testing.T, rnd *rand.Rand) {
		s := newShop(t, setup{at: "2026-04-03T20:00:00Z", zone: "America/Santiago", program: `"rules":[` + onePer1 + `]`})
		customers := []id{s.customer("ana"), s.customer("anabel"), s.customer("noé")}
		var all []*sale
		for range rnd.IntN(60) {
			s.pass(time.Duration(rnd.Int64N(int64(pick(rnd, time.Second, 10*time.Hour, 3*oneDay)))))
			in := newSale{Customer: pick(rnd, customers...), Total: dec("5"), ExternalID: pick(rnd, "", "T-1", "T-2"), Type: pick(rnd, typePurchase, typeReturn)}
			if sold, err := s.sell(in); err == nil {
				all = append(all, sold)
			}
		}
		slices.Reverse(all)
		moment := func() instant {
			at := s.clock.add(-time.Duration(rnd.Int64N(int64(30 * oneDay))))
			if len(all) > 0 && rnd.IntN(2) == 0 {
				at = pick(rnd, all...).CreatedAt
			}
			zone, _ := time.LoadLocation("America/Santiago")
			return pick(rnd, at, at-1, at+1, dayOf(at, zone).start(zone), dayOf(at, zone).start(zone)-1)
		}
		for range 40 {
			f := saleFilter{
				search: pick(rnd, "", "", "", "ana", "NOE", "example", "nobody"), saleType: pick(rnd, "", typePurchase, typeReturn),
				externalID: pick(rnd, "", "", "", "T-1", "T-3"), to: never,
			}
			if rnd.IntN(4) == 0 {
				f.customer = ptr(pick(rnd, customers...))
			}
			if rnd.IntN(3) == 0 {
				f.from = moment()
			}
			if rnd.IntN(3) == 0 {
				f.to = moment()
			}
			p := page{1 + rnd.Uint64N(5), 1 + rnd.Uint64N(20)}
			want := []id{}
			total := uint64(0)
			for _, sold := range all {
				c := ask(s, func(t *txn) (*customer, error) { return t.customer(sold.Customer) })
				if !f.keeps(sold) || f.search != "" && !newNeedle(f.search).in(c.searchTexts()) {
					continue
				}
				if total >= p.skip() && uint64(len(want)) < p.limit {
					want = append(want, sold.ID)
				}
				total++
			}
			var gotTotal uint64
			got := ask(s, func(t *txn) ([]id, error) {
				list, n, err := t.findSales(f, p)
				gotTotal = n
				ids := []id{}
				for _, sold := range list {
					ids = append(ids, sold.ID)
				}
				return ids, err
			})
			same(t, fmt.Sprintf("filter %+v, page %+v", f, p), got, want)
			same(t, fmt.Sprintf("total of filter %+v", f), gotTotal, total)
		}
	})
}
