package main

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestReturnLinks shows which purchase a return belongs to.
func TestReturnLinks(t *testing.T) {
	t.Parallel()
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

// late is a rule whose points become available a week later.
const late = `{"key":"late","name":"late","points":30,"pendingDays":7}`

// returnCases are purchases and returns. Each step is "action → figures", with the
// figures of wantStanding after it. A return adds " ! reversed shortfall".
var returnCases = []struct {
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
}

// TestReturnPolicies shows how many points a return takes, from where, and what happens
// if there are too few.
func TestReturnPolicies(t *testing.T) {
	t.Parallel()
	for _, test := range returnCases {
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
	t.Parallel()
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
		{"an item that was not bought", tenth, []step{{"50", []item{{"TEA", dec("50"), dec("1")}}, "item_not_purchased"}, {"300.0001", []item{mug("1"), {"TEA", dec("50"), dec("1")}}, "item_not_purchased"}}},
		{"letter case of a sku does not matter", tenth, []step{{"50", []item{{"mug", dec("50"), dec("1")}}, "5"}, {"100", []item{{"Grano-1", dec("100"), dec("1")}}, "10"}}},
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

// TestReturnErrors shows what the errors of a return say: which field is at fault, and how much
// of it is left.
func TestReturnErrors(t *testing.T) {
	t.Parallel()
	bean := func(quantity string) item { return item{"GRANO-1", dec("100"), dec(quantity)} }
	mug := func(quantity string) item { return item{"MUG", dec("50"), dec(quantity)} }
	for _, test := range []struct {
		reason string
		total  string
		items  []item
		want   string
	}{
		{"an item that was not bought", "50", []item{mug("1"), {"TEA", dec("50"), dec("1")}}, "item_not_purchased items[1].sku map[]"},
		{"more of an item than is left of its two lines", "50", []item{bean("1"), {"mug", dec("50"), dec("2.5")}},
			"return_exceeds_purchase items[1].quantity map[left:2 purchased:3 returned:1]"},
		{"more of an item in two rows: what came back before counts", "50", []item{mug("1"), mug("1.5")},
			"return_exceeds_purchase items[1].quantity map[left:2 purchased:3 returned:1]"},
		{"more money than is left", "250.0001", nil, "return_exceeds_purchase totalAmount map[left:250 purchased:300 returned:50]"},
		{"the item says more than the amount", "1000", []item{bean("3")}, "return_exceeds_purchase items[0].quantity map[left:2 purchased:2 returned:0]"},
		{"an amount far beyond", "99999999999.9999", nil, "return_exceeds_purchase totalAmount map[left:250 purchased:300 returned:50]"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newShop(t, setup{program: `"rules":[` + tenth + `]`})
			purchase := s.buy(s.customer("ana"), "300", bean("2"), mug("2"), item{"Mug", dec("40"), dec("1")})
			s.bring(purchase, "50", mug("1"))
			_, err := s.tryBring(purchase, test.total, test.items...)
			wrong, is := errors.AsType[*apiError](err)
			if !is {
				t.Fatalf("got %v", err)
			}
			if got := fmt.Sprint(wrong.code.name, " ", wrong.field, " ", wrong.context); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestReturnSpelling shows on which line a returned item counts, of those that have its sku in
// some spelling.
func TestReturnSpelling(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		it     item
		want   string // what each line has back
	}{
		{"the spelling before the price", item{"cafe", dec("10"), dec("1")}, "0 0 1"},
		{"the price, of two with the spelling", item{"CAFE", dec("20"), dec("1")}, "0 1 0"},
		{"then other prices, then other spellings", item{"CAFE", dec("20"), dec("2.5")}, "1 1 0.5"},
		{"the price, where none has the spelling", item{"Cafe", dec("20"), dec("1")}, "0 1 0"},
	} {
		purchase := &sale{Total: dec("60"), Lines: make([]line, 3), Items: []item{{"CAFE", dec("10"), dec("1")}, {"CAFE", dec("20"), dec("1")}, {"cafe", dec("30"), dec("1")}}}
		lines, err := purchase.countItems([]item{test.it})
		if err != nil {
			t.Errorf("%v: %s", err, test.reason)
			continue
		}
		if got := fmt.Sprint(lines[0].Returned, " ", lines[1].Returned, " ", lines[2].Returned); got != test.want {
			t.Errorf("%s, want %s: %s", got, test.want, test.reason)
		}
	}
}

// A piece is the part of a purchase that one return brings back.
type piece struct {
	total decimal
	items []item
}

// cutUp cuts a purchase's total into random pieces, and half of the time its items as
// well.
func cutUp(rnd *rand.Rand, total decimal, items []item) (pieces []piece) {
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
	return pieces
}

// bringPieces returns a customer's only purchase in pieces, and compares the points that
// each takes with its share of those earned. afterSome is how many the first some pieces
// took.
func (s *shop) bringPieces(purchase *sale, pieces []piece, some, decimals int) (afterSome decimal) {
	s.Helper()
	earned := s.standing(purchase.Customer).Lifetime
	var back, taken decimal
	byAmount := true
	for i, p := range pieces {
		if i == some {
			afterSome = taken
		}
		r, err := s.tryBring(purchase, p.total.String(), p.items...)
		s.ok(err)
		back += p.total
		taken += r.Reversed
		byAmount = byAmount && len(p.items) == 0
		switch want := floorShare(earned, back, purchase.Total, decimals); {
		case r.Reversed < 0 || taken > earned || r.Shortfall != 0:
			s.Fatalf("after %s of %s: took %s of %s, missed %s", back, purchase.Total, taken, earned, r.Shortfall)
		case byAmount && taken != want:
			s.Fatalf("after %s of %s: took %s of %s, want %s", back, purchase.Total, taken, earned, want)
		}
		if now := s.standing(purchase.Customer); now.Lifetime != earned-taken || now.Balance != earned-taken {
			s.Fatalf("after %s of %s: balance %s, lifetime %s, want %s", back, purchase.Total, now.Balance, now.Lifetime, earned-taken)
		}
	}
	if taken != earned {
		s.Fatalf("took back %s of %s in all", taken, earned)
	}
	return afterSome
}

// TestPartialReturns returns random purchases piece by piece, by amount, by item or both,
// in random order. The points taken back are right to the ten-thousandth at every step,
// do not depend on the order, and are in the end exactly those earned.
func TestPartialReturns(t *testing.T) {
	t.Parallel()
	histories(t, 200, func(t *testing.T, rnd *rand.Rand) {
		doc := randomProgram(rnd)
		doc.Returns, doc.Rules = returnsReverse, doc.Rules[:1]
		if rnd.IntN(2) == 0 {
			doc.Rules[0].SKUs = []string{"A"} // counts lines, of what was paid for them
		}
		doc.Rules = append(doc.Rules, rule{Key: "a", Name: "a", SKUs: []string{"A"}, PerItem: ptr(dec("0.7"))})
		s := newShop(t, setup{program: programMembers(doc)})
		total := decimal(1 + rnd.IntN(int(decimalOf(300))))
		var items []item
		if rnd.IntN(3) > 0 {
			for i := range 1 + rnd.IntN(4) {
				items = append(items, item{pick(rnd, "A", "B"), decimalOf(i), decimal(1 + rnd.IntN(5*decimalOne))})
			}
		}
		pieces := cutUp(rnd, total, items)
		some := rnd.IntN(len(pieces))
		var afterSome [2]decimal
		for turn := range afterSome {
			purchase, err := s.sell(newSale{Customer: s.customer(fmt.Sprint("c", turn)), Total: total, Items: items})
			s.ok(err)
			afterSome[turn] = s.bringPieces(purchase, pieces, some, doc.PointsDecimals)
			rnd.Shuffle(some, func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
		}
		if afterSome[0] != afterSome[1] {
			t.Fatalf("the same pieces took %s in one order and %s in another", afterSome[0], afterSome[1])
		}
	})
}

// floorShare returns points × part/whole, rounded down to a number of decimals.
func floorShare(points, part, whole decimal, decimals int) decimal {
	n := new(big.Int).Mul(big.NewInt(int64(points)), big.NewInt(int64(part)))
	n.Div(n, big.NewInt(int64(whole)))
	step := int64(1)
	for range decimalPlaces - decimals {
		step *= 10
	}
	return decimal(n.Int64() / step * step)
}

// TestReturnOfWhatWasPaid returns items of a sale that was paid with less than they cost: each
// takes back what it gave.
func TestReturnOfWhatWasPaid(t *testing.T) {
	t.Parallel()
	coffee, mug := item{"CAFE", dec("100"), dec("1")}, item{"TAZA", dec("50"), dec("2")}
	s := newShop(t, setup{program: `"rules":[{"key":"a","name":"a","skus":["CAFE"],"per":{"amount":1,"points":1}},{"key":"b","name":"b","skus":["TAZA"],"per":{"amount":1,"points":2}}]`})
	ana := s.customer("ana")
	purchase := s.buy(ana, "150", coffee, mug) // three quarters of 200: 75 and 2 × 75
	s.wantStanding(ana, "225 0 225", "what was paid counts")
	mug.Quantity = dec("1")
	for _, step := range []struct {
		it   item
		want string
	}{{mug, "75"}, {coffee, "75"}, {mug, "75"}} {
		if back := s.bring(purchase, "50", step.it); back.Reversed.String() != step.want {
			t.Errorf("%v took back %s, want %s", step.it, back.Reversed, step.want)
		}
	}
	s.wantStanding(ana, "0 0 0", "all came back")

	coffee.Quantity = dec("2")
	s.buy(ana, "150", coffee, mug)
	loose, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec("50"), Items: []item{{"CAFE", dec("100"), dec("1")}}})
	s.ok(err)
	if loose.Unearned.String() != "50" {
		t.Errorf("an unlinked return of half its price should take %s, want 50", loose.Unearned)
	}
}

// TestReturnTotals shows how returns lower a customer's totals.
func TestReturnTotals(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	wantTotals := func(want, reason string) {
		t.Helper()
		c := ask(s, func(t *txn) (*customer, error) { return t.customers.get(ana) })
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

// TestReturnLots: what is bought and returned is as if it had not been (contract §31). Lots are in
// the account's record or apart, and where the clock was set back no search finds the purchase's
// credits.
func TestReturnLots(t *testing.T) {
	t.Parallel()
	for _, inline := range []int{0, 1, 32} {
		for _, back := range []time.Duration{0, time.Hour} {
			s := newShop(t, setup{program: `"expiry":{"months":12},"rules":[` + tenth + `,{"key":"b","name":"b","points":3,"expiresInDays":3}]`})
			s.engine.sizes.inline.lots = inline
			ana, gone := s.customer("ana"), s.customer("gone")
			s.add(ana, "1000", s.clock.add(2*oneDay))
			s.add(ana, "7", s.clock.add(4*oneDay))
			s.buy(ana, "100")
			s.pass(time.Minute - back)
			of := pick(rand.New(rand.NewPCG(uint64(inline), uint64(back))), ana, gone)
			sold := s.buy(of, "10000")
			s.pass(time.Minute)
			s.buy(ana, "50")
			s.merged(ana, gone)
			with := s.standing(ana).Expiring
			for _, total := range []string{"1234.56", "8765.44"} {
				_, err := s.sell(newSale{Type: typeReturn, Customer: ana, Total: dec(total), Original: &sold.ID})
				s.ok(err)
			}
			var want []expiring // without what the purchase gave
			for _, sum := range with {
				if at := sold.CreatedAt; sum.ExpiresAt == at.add(3*oneDay) || sum.Amount == dec("1000") && sum.ExpiresAt > at.add(3*oneDay) {
					continue
				}
				want = append(want, sum)
			}
			same(t, fmt.Sprintf("%d lots in the record, clock back by %v", inline, back), s.standing(ana).Expiring, want)
			same(t, "what was left", len(want), 6)
			s.verified()
		}
	}
}

// TestReturnSpent: what was spent of a purchase's points comes from the other lots, soonest first.
func TestReturnSpent(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"expiry":{"months":12},"rules":[` + tenth + `]`})
	ana := s.customer("ana")
	sold := s.buy(ana, "1000")
	_, err := s.deduct(ana, "60")
	s.ok(err)
	s.add(ana, "30", s.clock.add(2*oneDay))
	s.add(ana, "50", s.clock.add(3*oneDay))
	s.bring(sold, "1000") // 100: 40 of its own, 30 and 30 of the others
	same(t, "left", s.standing(ana).Expiring, []expiring{{dec("20"), s.clock.add(3 * oneDay)}})
	s.verified()
}

// TestReturnOfInactive: what an inactive customer bought can be brought back, and the points follow
// the program's policy; of an erased one it cannot, and no purchase is taken of either.
func TestReturnOfInactive(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{`"negativeBalance":"Debt"`: "-20 0 0", `"negativeBalance":"Clamp"`: "0 0 0", `"returns":"Keep"`: "0 0 30"} {
		s := newShop(t, setup{program: policy + `,"rules":[{"key":"base","name":"base","per":{"amount":1,"points":1}}]`})
		ana := s.customer("ana")
		sold := s.buy(ana, "30")
		_, err := s.deduct(ana, "20")
		s.ok(err)
		if policy != `"negativeBalance":"Debt"` {
			_, err = s.deduct(ana, "10")
			s.ok(err)
		}
		must(s, func(t *txn) (*customer, error) {
			return t.customers.patch(ana, customerPatch{Status: new(statusInactive)}, nil)
		})
		s.bring(sold, "20")
		s.bring(sold, "10")
		s.wantStanding(ana, want, policy)
		if _, err := s.sell(newSale{Customer: ana, Total: dec("1")}); !errors.Is(err, newError(codeCustomerInactive)) {
			t.Errorf("a purchase: %v", err)
		}
		s.verified()
		must(s, func(t *txn) (*customer, error) { return t.merges.erase(ana) })
		if _, err := s.tryBring(sold, "1"); !errors.Is(err, newError(codeCustomerErased)) {
			t.Errorf("of an erased one: %v", err)
		}
	}
}
