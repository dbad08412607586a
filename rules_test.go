package main

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// Rules of the tests, as members of a program's document.
const (
	tenth   = `{"key":"base","name":"base","per":{"amount":10,"points":1}}` // a point for each 10
	onePer1 = `{"key":"base","name":"base","per":{"amount":1,"points":1}}`
)

// ruleCases are sales and the points that each rule gives for them.
var ruleCases = []struct {
	reason  string
	rules   string
	tiers   string
	also    string
	program string   // more members of the program
	at      string   // when; empty: Monday 10:00 UTC
	before  []string // totals of sales already made
	total   string
	items   []item
	labels  string // name=value, separated by blanks
	want    string
}{
	// Effects.
	{reason: "per gives in proportion, rounded down", rules: tenth, total: "159.99", want: "base 15"},
	{reason: "per gives nothing below a point, and is not listed", rules: tenth, total: "9.9999", want: ""},
	{reason: "per of an amount that floats do not have: 0.3/0.1 is 2.9999999999999996 there",
		rules: `{"key":"a","name":"a","per":{"amount":0.1,"points":1}}`, total: "0.3", want: "a 3"},
	{reason: "per on the items that match, by what they cost, whatever the total",
		rules: `{"key":"a","name":"a","skus":["T-*"],"per":{"amount":10,"points":1}}`, total: "500",
		items: []item{{"T-1", dec("30"), dec("2")}, {"X", dec("440"), dec("1")}}, want: "a 6"},
	{reason: "per on items that cost more in all than was paid counts what was paid for them: 60 × 400/500",
		rules: `{"key":"a","name":"a","skus":["T-*"],"per":{"amount":1,"points":1}}`, total: "400",
		items: []item{{"T-1", dec("30"), dec("2")}, {"X", dec("440"), dec("1")}}, want: "a 48"},
	{reason: "the items that do not match count for what all cost",
		rules: `{"key":"a","name":"a","skus":["T-*"],"per":{"amount":1,"points":1}}`, total: "100",
		items: []item{{"T-1", dec("60"), dec("1")}, {"X", dec("60"), dec("1")}}, want: "a 50"},
	{reason: "per on items that cost less than was paid, as before a tip, counts what they cost",
		rules: `{"key":"a","name":"a","skus":["T-*"],"per":{"amount":1,"points":1}}`, total: "500.0001",
		items: []item{{"T-1", dec("60"), dec("1")}, {"X", dec("440"), dec("1")}}, want: "a 60"},
	{reason: "a share of what was paid is exact: 3 × 1/3 × 7 is 7, not 6.9999",
		rules: `{"key":"a","name":"a","skus":["T"],"per":{"amount":1,"points":7}}`, total: "1",
		items: []item{{"T", dec("1"), dec("1")}, {"T", dec("1"), dec("1")}, {"T", dec("1"), dec("1")}}, want: "a 7"},
	{reason: "shares of what was paid are rounded once, after they add up: 1.6 and 2.4",
		rules: `{"key":"a","name":"a","skus":["T"],"per":{"amount":1,"points":1}},{"key":"b","name":"b","skus":["X"],"per":{"amount":1,"points":1}}`, total: "4",
		items: []item{{"T", dec("2"), dec("1")}, {"X", dec("3"), dec("1")}}, want: "a 1, b 3"},
	{reason: "a multiplier multiplies what was given for what was paid",
		rules: `{"key":"a","name":"a","skus":["T"],"per":{"amount":1,"points":1}},{"key":"x","name":"x","multiplier":2,"skus":["T"]}`, total: "5",
		items: []item{{"T", dec("5"), dec("1")}, {"X", dec("5"), dec("1")}}, want: "a 2, x 3"},
	{reason: "perItem counts pieces, whatever was paid", rules: `{"key":"a","name":"a","skus":["T"],"perItem":5}`, total: "0.01",
		items: []item{{"T", dec("5"), dec("2")}}, want: "a 10"},
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
	{reason: "skus in another case, with blanks around", rules: `{"key":"a","name":"a","perItem":1,"skus":[" cafe-* "]}`, total: "1", items: []item{{"CAFE-1", dec("1"), dec("1")}}, want: "a 1"},
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

	// What is excluded neither counts nor is counted.
	{reason: "per counts the total less what is excluded", rules: `{"key":"a","name":"a","excludeSkus":["TAB*"],"per":{"amount":1,"points":1}}`, total: "100",
		items: []item{{"TABACO", dec("30"), dec("1")}, {"PAN", dec("70"), dec("1")}}, want: "a 70"},
	{reason: "less what was paid for it, where the lines add up to more: 120 − 30 × 120/150", rules: `{"key":"a","name":"a","excludeSkus":["TAB*"],"per":{"amount":1,"points":1}}`, total: "120",
		items: []item{{"TABACO", dec("30"), dec("1")}, {"PAN", dec("120"), dec("1")}}, want: "a 96"},
	{reason: "less what it costs, where they add up to less", rules: `{"key":"a","name":"a","excludeSkus":["TAB*"],"per":{"amount":1,"points":1}}`, total: "100",
		items: []item{{"TABACO", dec("30"), dec("1")}, {"PAN", dec("20"), dec("1")}}, want: "a 70"},
	{reason: "what is left belongs to no item, where the lines are all excluded", rules: `{"key":"a","name":"a","excludeSkus":["TAB*"],"per":{"amount":1,"points":1}}`, total: "100",
		items: []item{{"TABACO", dec("30"), dec("1")}}, want: "a 70"},
	{reason: "excluded by the program, for every rule", program: `"excludeSkus":["tab*"]`, rules: onePer1 + `,{"key":"i","name":"i","perItem":3}`, total: "100",
		items: []item{{"TABACO", dec("30"), dec("2")}, {"PAN", dec("40"), dec("1")}}, want: "base 40, i 3"},
	{reason: "by the program and by the rule", program: `"excludeSkus":["TABACO"]`, rules: `{"key":"a","name":"a","excludeSkus":["VINO"],"per":{"amount":1,"points":1}}`, total: "100",
		items: []item{{"TABACO", dec("30"), dec("1")}, {"VINO", dec("20"), dec("1")}, {"PAN", dec("50"), dec("1")}}, want: "a 50"},
	{reason: "an item that skus name and excludeSkus too is excluded", rules: `{"key":"a","name":"a","skus":["*"],"excludeSkus":["TABACO"],"per":{"amount":1,"points":1}}`, total: "100",
		items: []item{{"TABACO", dec("30"), dec("1")}, {"PAN", dec("70"), dec("1")}}, want: "a 70"},
	{reason: "skus that are all excluded match nothing", rules: `{"key":"a","name":"a","skus":["TABACO"],"excludeSkus":["TAB*"],"points":5}`, total: "100",
		items: []item{{"TABACO", dec("30"), dec("1")}, {"PAN", dec("70"), dec("1")}}, want: ""},
	{reason: "a purchase of nothing else gives no flat points", rules: `{"key":"a","name":"a","excludeSkus":["TAB*"],"points":5}`, total: "30", items: []item{{"TABACO", dec("30"), dec("1")}}, want: ""},
	{reason: "nor where it was paid with less than it costs", rules: `{"key":"a","name":"a","excludeSkus":["TAB*"],"points":5}`, total: "20", items: []item{{"TABACO", dec("30"), dec("1")}}, want: ""},
	{reason: "a purchase without items excludes nothing", rules: `{"key":"a","name":"a","excludeSkus":["*"],"points":5}`, total: "30", want: "a 5"},
	{reason: "minAmount is about what is left: missed", rules: `{"key":"a","name":"a","minAmount":70,"excludeSkus":["TABACO"],"points":5}`, total: "99.9999",
		items: []item{{"TABACO", dec("30"), dec("1")}, {"PAN", dec("70"), dec("1")}}, want: ""},
	{reason: "minAmount is about what is left: met", rules: `{"key":"a","name":"a","minAmount":70,"excludeSkus":["TABACO"],"points":5}`, total: "100",
		items: []item{{"TABACO", dec("30"), dec("1")}, {"PAN", dec("70"), dec("1")}}, want: "a 5"},
	{reason: "a multiplier does not multiply what it excludes", rules: onePer1 + `,{"key":"x","name":"x","excludeSkus":["VINO"],"multiplier":2}`, total: "100",
		items: []item{{"VINO", dec("30"), dec("1")}, {"PAN", dec("70"), dec("1")}}, want: "base 100, x 70"},

	// So many pieces.
	{reason: "minQuantity adds up the pieces that match", rules: `{"key":"a","name":"a","skus":["C*"],"minQuantity":3,"points":5}`, total: "10",
		items: []item{{"C1", dec("1"), dec("2")}, {"X", dec("1"), dec("9")}, {"C2", dec("1"), dec("1")}}, want: "a 5"},
	{reason: "minQuantity is missed by a part of a piece", rules: `{"key":"a","name":"a","skus":["C*"],"minQuantity":3,"points":5}`, total: "10",
		items: []item{{"C1", dec("1"), dec("2.9999")}, {"X", dec("1"), dec("9")}}, want: ""},
	{reason: "minQuantity does not count what is excluded", rules: `{"key":"a","name":"a","skus":["C*"],"excludeSkus":["C2"],"minQuantity":3,"points":5}`, total: "10",
		items: []item{{"C1", dec("1"), dec("2")}, {"C2", dec("1"), dec("1")}}, want: ""},

	// Labels.
	{reason: "labels: one of the values", rules: `{"key":"a","name":"a","labels":{"pago":["tarjeta","efectivo"]},"points":5}`, labels: "pago=efectivo canal=tienda", total: "1", want: "a 5"},
	{reason: "labels in another case", rules: `{"key":"a","name":"a","labels":{"Pago":["EFECTIVO"]},"points":5}`, labels: "pago=Efectivo", total: "1", want: "a 5"},
	{reason: "labels: another value", rules: `{"key":"a","name":"a","labels":{"pago":["efectivo"]},"points":5}`, labels: "pago=tarjeta", total: "1", want: ""},
	{reason: "labels: the value under another name", rules: `{"key":"a","name":"a","labels":{"pago":["efectivo"]},"points":5}`, labels: "canal=efectivo", total: "1", want: ""},
	{reason: "labels: of each name", rules: `{"key":"a","name":"a","labels":{"pago":["efectivo"],"canal":["web"]},"points":5}`, labels: "pago=efectivo canal=tienda", total: "1", want: ""},
	{reason: "labels: a sale without", rules: `{"key":"a","name":"a","labels":{"pago":["efectivo"]},"points":5}`, total: "1", want: ""},

	// How much.
	{reason: "maxPoints of a per rule", rules: `{"key":"a","name":"a","maxPoints":40,"per":{"amount":1,"points":1}}`, total: "100", want: "a 40"},
	{reason: "maxPoints that are not reached", rules: `{"key":"a","name":"a","maxPoints":40,"per":{"amount":1,"points":1}}`, total: "40", want: "a 40"},
	{reason: "maxPoints of each rule by itself", rules: onePer1 + `,{"key":"i","name":"i","maxPoints":7,"perItem":5}`, total: "10", items: []item{{"A", dec("10"), dec("3")}}, want: "base 10, i 7"},
	{reason: "a multiplier multiplies what maxPoints left", rules: `{"key":"a","name":"a","maxPoints":40,"per":{"amount":1,"points":1}},{"key":"x","name":"x","multiplier":2}`, total: "100", want: "a 40, x 40"},
	{reason: "maxPoints of a multiplier", rules: onePer1 + `,{"key":"x","name":"x","maxPoints":40,"multiplier":2}`, total: "100", want: "base 100, x 40"},
	{reason: "maxPoints after the tier's multiplier", rules: `{"key":"a","name":"a","maxPoints":40,"per":{"amount":1,"points":1}}`, tiers: `{"name":"T","threshold":0,"multiplier":3}`, total: "20", want: "a 40"},
	{reason: "rounding gives no more than maxPoints", program: `"rounding":"HalfEven"`, rules: `{"key":"h","name":"h","per":{"amount":2,"points":1}},{"key":"a","name":"a","maxPoints":1,"points":5}`, total: "1", want: "a 1"},
	{reason: "budget: the sale that reaches it gets what is left", rules: `{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}`, before: []string{"60"}, total: "60", want: "a 40"},
	{reason: "budget: then nothing", rules: `{"key":"a","name":"a","budget":100,"per":{"amount":1,"points":1}}`, before: []string{"60", "40"}, total: "60", want: ""},
	{reason: "budget and maxPoints: the lesser", rules: `{"key":"a","name":"a","budget":100,"maxPoints":30,"per":{"amount":1,"points":1}}`, before: []string{"60"}, total: "60", want: "a 30"},

	// How often.
	{reason: "maxPerCustomer: the last time", rules: `{"key":"a","name":"a","points":1,"maxPerCustomer":2}`, before: []string{"1"}, total: "1", want: "a 1"},
	{reason: "maxPerCustomer: once too often", rules: `{"key":"a","name":"a","points":1,"maxPerCustomer":2}`, before: []string{"1", "1"}, total: "1", want: ""},
	{reason: "maxPerCustomer: times that gave nothing are not counted", rules: `{"key":"a","name":"a","per":{"amount":10,"points":1},"maxPerCustomer":1}`, before: []string{"9"}, total: "10", want: "a 1"},
	{reason: "every third: the second", rules: `{"key":"a","name":"a","points":1,"every":3}`, before: []string{"1"}, total: "1", want: ""},
	{reason: "every third: the third", rules: `{"key":"a","name":"a","points":1,"every":3}`, before: []string{"1", "1"}, total: "1", want: "a 1"},
	{reason: "every third: the fourth", rules: `{"key":"a","name":"a","points":1,"every":3}`, before: []string{"1", "1", "1"}, total: "1", want: ""},
	{reason: "every third: the sixth", rules: `{"key":"a","name":"a","points":1,"every":3}`, before: []string{"1", "1", "1", "1", "1"}, total: "1", want: "a 1"},
	{reason: "every counts the purchases that meet the rest", rules: `{"key":"a","name":"a","points":1,"every":2,"minAmount":10}`, before: []string{"10", "9"}, total: "10", want: "a 1"},
	{reason: "every and maxPerCustomer", rules: `{"key":"a","name":"a","points":1,"every":2,"maxPerCustomer":1}`, before: []string{"1", "1", "1"}, total: "1", want: ""},
}

// TestRules shows every condition and every effect of a rule. Each sale is made in a new
// shop. Unless the case says otherwise it is 2026-03-02 10:00 UTC, a Monday, 04:00 in
// Mexico City. want lists the points rule by rule.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, test := range ruleCases {
		t.Run(test.reason, func(t *testing.T) {
			program := `"rules":[` + test.rules + `],"tiers":[` + test.tiers + `]`
			if test.program != "" {
				program += "," + test.program
			}
			s := newShop(t, setup{at: test.at, program: program, also: test.also})
			ana := s.customer("ana")
			for _, total := range test.before {
				s.buy(ana, total)
			}
			sold, err := s.sell(newSale{Customer: ana, Total: dec(test.total), Items: test.items, Labels: labelsOf(test.labels)})
			s.ok(err)
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

// labelsOf are labels that are separated by blanks: pago=efectivo.
func labelsOf(text string) saleLabels {
	var list []label
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		list = append(list, label{name, value})
	}
	labels, err := newSaleLabels(list...)
	if err != nil {
		panic(err)
	}
	return labels
}

// noCounts counts for a customer who used no rule yet.
type noCounts struct{}

func (noCounts) onDay(*rule) int          { return 0 }
func (noCounts) inLife(string) ruleLife   { return ruleLife{} }
func (noCounts) budgetLeft(*rule) decimal { return maxDecimal }

// TestMatchSKU shows which skus a pattern matches. Case does not matter, as strings.EqualFold
// compares, nor do blanks around a pattern.
func TestMatchSKU(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, sku string
		want         bool
	}{
		{"A", "A", true}, {"A", "AB", false}, {"AB", "A", false},
		{"café-1", "CAFÉ-1", true}, {"CAFÉ-1", "CAFE-1", false}, // an accent is another letter
		{" grano-* ", "GRANO-500", true}, {"\tA\n", "a", true}, {"A B", "a b", true}, {"A B", "AB", false},
		{"ΣΑΣ", "σας", true},         // three forms of sigma
		{"\u212a-1", "k-1", true},    // the sign of kelvin
		{"straße", "STRASSE", false}, // EqualFold maps letter by letter
		{"*", "A", true}, {"**", "A", true}, {"A*", "A", true}, {"A*A", "A", false}, {"A*A", "aa", true},
		{"*-XL", "polo-rojo-xl", true}, {"*-XL", "polo-xl-rojo", false}, {"a*b*c", "AxxBxBxC", true}, {"a*b*c", "AxxCxB", false},
		{"*ab*ab", "ab", false}, {"*ab*ab", "abab", true}, {"*aab", "aaab", true}, {"*É*", "café", true},
		{"!TABACO-*", "TABACO-1", false}, {"!TABACO-*", "ron", false}, {"!TABACO-*", "!tabaco-1", true},
		{" ", "A", false},
	} {
		if got := matchSKU(test.pattern, test.sku); got != test.want {
			t.Errorf("%q matches %q: %t, want %t", test.pattern, test.sku, got, test.want)
		}
		if !strings.Contains(test.pattern, "*") && sameSKU(test.pattern, test.sku) != test.want {
			t.Errorf("%q and %q are the same: %t, want %t", test.pattern, test.sku, !test.want, test.want)
		}
	}
}

// TestMatchSKUAllocates nothing: every rule looks at every line of a sale.
func TestMatchSKUAllocates(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { matchSKU("grano-*-kg", "GRANO-500-KG") }); n != 0 {
		t.Errorf("a match allocates %v times", n)
	}
}

// TestCaseless: two letters have the same fold exactly if strings.EqualFold takes them as equal.
func TestCaseless(t *testing.T) {
	t.Parallel()
	for r := range rune(0x20000) {
		if !utf8.ValidRune(r) {
			continue
		}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if caseless(f) != caseless(r) {
				t.Errorf("%q and %q are %q and %q", r, f, caseless(r), caseless(f))
			}
		}
		if !strings.EqualFold(string(r), string(caseless(r))) {
			t.Errorf("%q folds to %q", r, caseless(r))
		}
	}
}

// TestRounding shows the four ways to round, at every number of decimals.
func TestRounding(t *testing.T) {
	t.Parallel()
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

// TestEarnParts checks random rules. The parts by rule and those by item each add up to
// the points earned, which are the exact sum rounded once.
func TestEarnParts(t *testing.T) {
	t.Parallel()
	histories(t, 2000, func(t *testing.T, rnd *rand.Rand) {
		p := new(program)
		p.PointsDecimals, p.Rounding = rnd.IntN(5), pick(rnd, roundFloor, roundCeil, roundHalfUp, roundHalfEven)
		amount := func(most int) *decimal { return ptr(decimal(1 + rnd.IntN(most*decimalOne))) }
		var f facts
		for range rnd.IntN(4) {
			f.items = append(f.items, item{pick(rnd, "A", "B", "C"), *amount(20) * decimal(rnd.IntN(2)), *amount(3)})
		}
		f.total = *amount(100)
		left := f.total.rat() // without what is excluded
		none := false         // is left
		if rnd.IntN(2) == 0 {
			f.excluded = []string{"C"}
			left.Sub(left, paidFor("C", f.total, f.items))
			none = len(f.items) > 0 && left.Sign() == 0 && !slices.ContainsFunc(f.items, func(it item) bool { return it.SKU != "C" })
		}
		perTotal, flat := new(big.Rat), new(big.Rat) // what the rules should give in all
		factor := big.NewRat(1, 1)
		for range rnd.IntN(5) {
			r := rule{Key: fmt.Sprint(len(p.Rules))}
			switch rnd.IntN(4) {
			case 0:
				r.Per = &perRule{*amount(10), *amount(3)}
				counted := new(big.Rat).Set(left)
				if rnd.IntN(2) == 0 {
					r.SKUs = []string{"A"}
					counted = paidFor("A", f.total, f.items)
				}
				part := new(big.Rat).Quo(counted, r.Per.Amount.rat())
				perTotal.Add(perTotal, part.Mul(part, r.Per.Points.rat()))
			case 1:
				r.PerItem = amount(5)
				for _, it := range f.items {
					if !slices.Contains(f.excluded, it.SKU) {
						flat.Add(flat, new(big.Rat).Mul(it.Quantity.rat(), r.PerItem.rat()))
					}
				}
			case 2:
				if r.Points = amount(20); !none {
					flat.Add(flat, r.Points.rat())
				}
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
		want, _ := roundRat(flat.Add(flat, perTotal.Mul(perTotal, factor)), p.PointsDecimals, p.Rounding)

		e, ok := p.earn(f)
		if !ok || e.total() != want {
			t.Fatalf("earned %s, want %s", e.total(), want)
		}
		var byItem decimal
		for i, points := range e.lines {
			if byItem += points; points < 0 {
				t.Errorf("item %d earned %s", i, points)
			}
			if it := f.items[i]; points > 0 && slices.Contains(f.excluded, it.SKU) && slices.ContainsFunc(f.items, func(o item) bool {
				return !slices.Contains(f.excluded, o.SKU) && o.amount().sign() > 0
			}) {
				t.Errorf("item %d is excluded, and earned %s", i, points)
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

// paidFor is what was paid for the items with a sku: what they cost, less their part of
// what the total is below the items' sum.
func paidFor(sku string, total decimal, items []item) *big.Rat {
	of, all := new(big.Rat), new(big.Rat)
	for _, it := range items {
		amount := new(big.Rat).Mul(it.Price.rat(), it.Quantity.rat())
		if all.Add(all, amount); it.SKU == sku {
			of.Add(of, amount)
		}
	}
	if all.Cmp(total.rat()) > 0 {
		of.Mul(of, total.rat())
		of.Quo(of, all)
	}
	return of
}

// TestDailyMaximum shows when the count of a rule's uses begins again.
func TestDailyMaximum(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
