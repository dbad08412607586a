package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// given describes the vouchers that a sale shows, as they are now.
func (s *shop) given(sold *sale) (list []string) {
	s.Helper()
	shape := ask(s, func(t *txn) (saleShape, error) {
		x, err := t.sales.get(sold.ID)
		if err != nil {
			return saleShape{}, err
		}
		return newSaleShape(t, x)
	})
	for _, x := range shape.Redemptions {
		if x.ExpiresAt != nil {
			list = append(list, fmt.Sprint(x.RewardName, " ", x.Status))
		}
	}
	for _, r := range shape.AppliedRules {
		if r.Reason != nil {
			list = append(list, fmt.Sprint(r.Name, " ", *r.Reason))
		}
	}
	return list
}

// vouchers lists a customer's redemptions, oldest first, as they are now.
func (s *shop) vouchers(cust id) (list []*redemption) {
	s.Helper()
	list = ask(s, func(t *txn) (all []*redemption, err error) {
		for x, err := range t.rewards.until(cust, 1<<40) {
			if err != nil {
				return nil, err
			}
			all = append(all, x)
		}
		return all, nil
	})
	slices.Reverse(list)
	return list
}

func (s *shop) wantGiven(sold *sale, want ...string) {
	s.Helper()
	if got := s.given(sold); !slices.Equal(got, want) {
		s.Errorf("sale %d: %q, want %q", sold.Seq, got, want)
	}
}

func (s *shop) wantBalance(cust id, want, reason string) {
	s.Helper()
	if got := s.standing(cust).Balance.String(); got != want {
		s.Errorf("a balance of %s, want %s: %s", got, want, reason)
	}
}

const (
	sealCard = `"rules":[{"key":"sello","name":"Sello","points":1}]`
	coffee   = `"rewards":[{"key":"cafe","program":"club","name":"Café","pointsCost":10,"fulfilment":"Voucher","validDays":30,"autoIssue":true}]`
)

// TestStampCard: the tenth coffee. Its return cancels the voucher and leaves nine stamps; a used
// voucher stays, and the return says so.
func TestStampCard(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: sealCard, also: coffee})
	ana := s.customer("ana")
	for range 9 {
		s.wantGiven(s.buy(ana, "30"))
	}
	tenth := s.buy(ana, "30")
	s.wantGiven(tenth, "Café Issued")
	if tenth.Balance != 0 || tenth.Earned != decimalOf(1) {
		t.Errorf("the tenth sale earns %s and leaves %s", tenth.Earned, tenth.Balance)
	}
	x := s.vouchers(ana)[0]
	if x.By.Type != bySystem || x.Points != decimalOf(10) || x.Expires == 0 || x.Gift.Sale != tenth.ID {
		t.Errorf("the voucher is %+v", x)
	}
	s.wantBalance(ana, "0", "the card is empty")
	s.verified()

	brought := s.bring(tenth, "30")
	s.wantGiven(brought, "Café Cancelled")
	s.wantBalance(ana, "9", "nine stamps")
	s.verified()

	again := s.buy(ana, "30")
	s.wantGiven(again, "Café Issued")
	must(s, func(t *txn) (*redemption, error) { return t.rewards.useCode(s.code(t, again), nil) })
	s.wantGiven(s.bring(again, "30"), "Café Used")
	s.wantBalance(ana, "0", "the stamp of the last purchase had been spent")
	s.verified()
}

// code is that of the first voucher that a sale gave.
func (s *shop) code(t *txn, sold *sale) string {
	x, err := t.rewards.redemptionAt(sold.Given[0].Redemption)
	s.ok(err)
	return x.Code
}

// TestAutoIssue: how often, when, and when not.
func TestAutoIssue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, program, also string
		run                   func(s *shop, ana id)
		vouchers              int
		balance               string
	}{
		{"as often as it fits", sealCard, coffee, func(s *shop, ana id) { s.add(ana, "35", 0) }, 3, "5"},
		{"ten times at most", sealCard, coffee, func(s *shop, ana id) { s.add(ana, "117", 0) }, 10, "17"},
		{"the rest with the next rise", sealCard, coffee, func(s *shop, ana id) { s.add(ana, "117", 0); s.buy(ana, "1") }, 11, "8"},
		{"below the cost", sealCard, coffee, func(s *shop, ana id) { s.add(ana, "9.9999", 0) }, 0, "9.9999"},
		{"a voucher that is cancelled by hand does not come again by itself", sealCard, coffee, func(s *shop, ana id) {
			s.add(ana, "10", 0)
			must(s, func(t *txn) (*redemption, error) { return t.rewards.cancel(s.vouchers(ana)[0].ID) })
		}, 1, "10"},
		{"but with the next stamp", sealCard, coffee, func(s *shop, ana id) {
			s.add(ana, "10", 0)
			must(s, func(t *txn) (*redemption, error) { return t.rewards.cancel(s.vouchers(ana)[0].ID) })
			s.buy(ana, "1")
		}, 2, "1"},
		{"points that become available", `"rules":[{"key":"a","name":"a","points":10,"pendingDays":3}]`, coffee, func(s *shop, ana id) {
			s.buy(ana, "1")
			if got := len(s.vouchers(ana)); got != 0 {
				s.Errorf("%d vouchers for pending points", got)
			}
			s.pass(3 * oneDay)
			s.swept()
		}, 1, "0"},
		{"points at a sign-up", `"rules":[{"key":"a","name":"a","on":"Signup","points":10}]`, coffee, func(s *shop, ana id) {}, 1, "0"},
		{"both cards of a merge", sealCard, coffee, func(s *shop, ana id) {
			eva := s.customer("eva")
			s.add(ana, "6", 0)
			s.add(eva, "6", 0)
			s.merged(ana, eva)
		}, 1, "2"},
		{"no more than the stock", sealCard, `"rewards":[{"key":"cafe","program":"club","name":"Café","pointsCost":10,"fulfilment":"Voucher","autoIssue":true,"stock":1}]`, func(s *shop, ana id) { s.add(ana, "35", 0) }, 1, "25"},
		{"no more than the limit", sealCard, `"rewards":[{"key":"cafe","program":"club","name":"Café","pointsCost":10,"fulfilment":"Voucher","autoIssue":true,"limitPerCustomer":2}]`, func(s *shop, ana id) { s.add(ana, "35", 0) }, 2, "15"},
		{"an inactive reward", sealCard, `"rewards":[{"key":"cafe","program":"club","name":"Café","pointsCost":10,"fulfilment":"Voucher","autoIssue":true,"status":"Inactive"}]`, func(s *shop, ana id) { s.add(ana, "35", 0) }, 0, "35"},
		{"one that is handed over at once", sealCard, `"rewards":[{"key":"cafe","program":"club","name":"Café","pointsCost":10,"autoIssue":true}]`, func(s *shop, ana id) { s.add(ana, "35", 0) }, 0, "35"},
		{"two of them, in the order of the document", sealCard, `"rewards":[{"key":"cena","program":"club","name":"Cena","pointsCost":25,"fulfilment":"Voucher","autoIssue":true},{"key":"cafe","program":"club","name":"Café","pointsCost":10,"fulfilment":"Voucher","autoIssue":true}]`,
			func(s *shop, ana id) { s.add(ana, "36", 0) }, 2, "1"},
		{"a late purchase whose points have expired", `"expiry":{"days":2},"rules":[{"key":"a","name":"a","points":10}]`, coffee, func(s *shop, ana id) {
			s.pass(5 * oneDay)
			_, err := s.sell(newSale{Customer: ana, Total: dec("1"), OccurredAt: s.clock.add(-3 * oneDay)})
			s.ok(err)
		}, 0, "0"},
		{"a late purchase whose points live", `"expiry":{"days":5},"rules":[{"key":"a","name":"a","points":10}]`, coffee, func(s *shop, ana id) {
			s.pass(5 * oneDay)
			sold, err := s.sell(newSale{Customer: ana, Total: dec("1"), OccurredAt: s.clock.add(-3 * oneDay)})
			s.ok(err)
			s.wantGiven(sold, "Café Issued")
		}, 1, "0"},
		{"a late purchase of which some points live", `"expiry":{"days":2},"rules":[{"key":"a","name":"a","points":10},{"key":"b","name":"b","points":10,"expiresInDays":30}]`, coffee, func(s *shop, ana id) {
			s.pass(5 * oneDay)
			sold, err := s.sell(newSale{Customer: ana, Total: dec("1"), OccurredAt: s.clock.add(-3 * oneDay)})
			s.ok(err)
			s.wantGiven(sold, "Café Issued")
		}, 1, "0"},
		{"a debt is paid first", `"negativeBalance":"Debt",` + sealCard, coffee, func(s *shop, ana id) {
			sold := s.buy(ana, "1")
			s.deduct(ana, "1")
			s.bring(sold, "1")
			s.add(ana, "10", 0)
		}, 0, "9"},
		{"an inactive customer", `"rules":[{"key":"a","name":"a","points":10,"pendingDays":3}]`, coffee, func(s *shop, ana id) {
			s.buy(ana, "1")
			must(s, func(t *txn) (any, error) {
				return t.customers.patch(ana, customerPatch{Status: new(statusInactive)}, nil)
			})
			s.pass(3 * oneDay)
			s.swept()
		}, 0, "10"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, setup{program: test.program, also: test.also})
			ana := s.customer("ana")
			test.run(s, ana)
			if got := len(s.vouchers(ana)); got != test.vouchers {
				t.Errorf("%d vouchers, want %d", got, test.vouchers)
			}
			s.wantBalance(ana, test.balance, "the balance")
			s.verified()
		})
	}
}

// TestRuleRewards: what a rule gives besides points.
func TestRuleRewards(t *testing.T) {
	t.Parallel()
	const rewards = `"rewards":[{"key":"cafe","program":"club","name":"Café","pointsCost":10,"fulfilment":"Voucher","stock":2,"validDays":1},
		{"key":"vip","program":"club","name":"Copa","pointsCost":10,"fulfilment":"Voucher","limitPerCustomer":1}]`
	s := newShop(t, setup{also: rewards, program: `"tiers":[{"name":"Plata","threshold":0},{"name":"Oro","threshold":100}],"rules":[
		{"key":"base","name":"Base","per":{"amount":1,"points":1}},
		{"key":"hola","name":"Hola","on":"Signup","reward":"cafe"},
		{"key":"dos","name":"Dos","every":2,"reward":"cafe"},
		{"key":"una","name":"Una","minAmount":50,"maxPerCustomer":1,"reward":"vip"},
		{"key":"oro","name":"Oro","on":"Tier","tiers":["Oro"],"reward":"vip"}]`})
	ana := s.customer("ana")
	if x := s.vouchers(ana); len(x) != 1 || x[0].RewardName != "Café" || x[0].Points != 0 || x[0].Movement != 0 {
		t.Fatalf("sign-up: %+v", x)
	}
	s.wantBalance(ana, "0", "a gift costs nothing")
	first := s.buy(ana, "10")
	s.wantGiven(first)
	second := s.buy(ana, "10")
	s.wantGiven(second, "Café Issued")
	if got := second.Rules[len(second.Rules)-1]; got.Name != "Dos" || got.Points != 0 {
		t.Errorf("the rule's row is %+v", got)
	}
	third := s.buy(ana, "60")
	s.wantGiven(third, "Copa Issued")
	s.wantGiven(s.bring(third, "60"), "Copa Cancelled")
	s.verified()
	fourth := s.buy(ana, "90") // the third that stands; the tier's voucher is beyond the limit
	s.wantGiven(fourth, "Copa Issued", "Oro LimitReached")
	fifth := s.buy(ana, "10")
	s.wantGiven(fifth, "Dos OutOfStock")
	s.verified()

	// Not given is not used: the next time that it could be given is the sixth purchase that stands.
	must(s, func(t *txn) (*redemption, error) { return t.rewards.cancel(s.vouchers(ana)[0].ID) })
	s.wantGiven(s.buy(ana, "1"))
	s.wantGiven(s.buy(ana, "1"), "Café Issued")
	s.verified()
}

// TestTierRewards: a voucher for reaching a tier, once in twelve months.
func TestTierRewards(t *testing.T) {
	t.Parallel()
	const rewards = `"rewards":[{"key":"copa","program":"club","name":"Copa","pointsCost":10,"fulfilment":"Voucher"}]`
	s := newShop(t, setup{also: rewards, program: `"tierBasis":{"metric":"AmountSpent","window":"Rolling","months":3},"tiers":[{"name":"Plata","threshold":0},{"name":"Oro","threshold":100},{"name":"Platino","threshold":200}],
		"rules":[{"key":"sube","name":"Sube","on":"Tier","reward":"copa"}]`})
	ana := s.customer("ana")
	had := func(want int, reason string) {
		t.Helper()
		s.verified()
		if got := len(s.vouchers(ana)); got != want {
			t.Errorf("%d vouchers, want %d: %s", got, want, reason)
		}
	}
	had(0, "the lowest tier is not reached")
	sold := s.buy(ana, "100")
	s.wantGiven(sold, "Copa Issued")
	s.buy(ana, "50")
	had(1, "it stays in its tier")
	s.buy(ana, "50")
	had(2, "another tier")
	s.pass(120 * oneDay)
	s.wantTier(ana, "Plata", "the window is over")
	s.buy(ana, "100")
	had(2, "the same tier within a year")
	s.pass(250 * oneDay)
	s.buy(ana, "100")
	had(3, "a year later")
	back := s.buy(ana, "100") // Platino
	had(4, "and the next")
	s.wantGiven(back, "Copa Issued")
	s.wantGiven(s.bring(back, "100"), "Copa Cancelled")
	s.buy(ana, "100")
	had(5, "the one that was cancelled does not count")

	// By points that are given, and not by a change of the configuration.
	other := newShop(t, setup{also: rewards, program: `"tiers":[{"name":"Plata","threshold":0},{"name":"Oro","threshold":100}],"rules":[{"key":"sube","name":"Sube","on":"Tier","reward":"copa"}]`})
	eva, sol := other.customer("eva"), other.customer("sol")
	other.add(eva, "100", 0)
	other.add(sol, "50", 0)
	if got := len(other.vouchers(eva)); got != 1 {
		t.Errorf("%d vouchers for points that reach a tier", got)
	}
	other.apply(setup{also: rewards, program: `"tiers":[{"name":"Plata","threshold":0},{"name":"Oro","threshold":50}],"rules":[{"key":"sube","name":"Sube","on":"Tier","reward":"copa"}]`}.document())
	other.ok(other.engine.recount(t.Context()))
	other.wantTier(sol, "Oro", "the threshold is lower")
	if got := len(other.vouchers(sol)); got != 0 {
		t.Errorf("%d vouchers for a change of the threshold", got)
	}
}

// TestGiftsAndRecords: vouchers are given once everything else is written, whatever else is due then.
func TestGiftsAndRecords(t *testing.T) {
	t.Parallel()
	const vip = `"segments":[{"key":"vip","name":"VIP","isActive":true,"rule":{"field":"lifetimePoints","op":">=","value":10}}]`
	const forVIP = `"rewards":[{"key":"cafe","program":"club","name":"Café","pointsCost":10,"fulfilment":"Voucher","autoIssue":true,"limitPerCustomer":1,"segments":["vip"]}],` + vip
	t.Run("a segment that the same points lead into", func(t *testing.T) {
		s := newShop(t, setup{program: `"rules":[{"key":"a","name":"a","points":10,"pendingDays":3}]`, also: forVIP})
		ana := s.customer("ana")
		s.buy(ana, "1")
		s.pass(3 * oneDay)
		s.swept()
		s.wantBalance(ana, "0", "the voucher is there")
		other := newShop(t, setup{program: sealCard, also: forVIP})
		eva := other.customer("eva")
		for range 9 {
			other.buy(eva, "1")
		}
		other.wantGiven(other.buy(eva, "1"), "Café Issued")
	})
	t.Run("a late purchase, a tier in another program, and nothing to give", func(t *testing.T) {
		s := newShop(t, setup{program: `"default":true,"expiry":{"days":2},"rules":[{"key":"a","name":"a","points":10}]},{"key":"seals","name":"Seals","join":"All","tiers":[{"name":"A","threshold":0},{"name":"B","threshold":1}],
			"rules":[{"key":"s","name":"S","points":1},{"key":"up","name":"Up","on":"Tier","reward":"agua"}]`,
			also: `"rewards":[{"key":"agua","program":"club","name":"Agua","pointsCost":3,"fulfilment":"Voucher","stock":0}]`})
		ana := s.customer("ana")
		s.pass(5 * oneDay)
		_, err := s.sell(newSale{Customer: ana, Total: dec("1"), OccurredAt: s.clock.add(-3 * oneDay)})
		s.ok(err)
		s.wantBalance(ana, "0", "they expired once")
	})
	t.Run("a merge gives no tier's voucher again", func(t *testing.T) {
		s := newShop(t, setup{program: `"tiers":[{"name":"Plata","threshold":0},{"name":"Oro","threshold":100}],"rules":[{"key":"up","name":"Up","on":"Tier","reward":"copa"}]`,
			also: `"rewards":[{"key":"copa","program":"club","name":"Copa","pointsCost":10,"fulfilment":"Voucher"}]`})
		eva, ana, sol := s.customer("eva"), s.customer("ana"), s.customer("sol")
		s.add(eva, "100", 0)
		s.merged(ana, eva)
		s.merged(sol, ana)
		if n := ask(s, (*txn).count).Redemptions; n != 1 {
			t.Errorf("%d vouchers", n)
		}
	})
	t.Run("a merge knows what both had", func(t *testing.T) {
		s := newShop(t, setup{program: sealCard, also: strings.Replace(coffee, `"autoIssue"`, `"limitPerCustomer":1,"autoIssue"`, 1)})
		eva, ana := s.customer("eva"), s.customer("ana")
		s.add(eva, "16", 0)
		s.add(ana, "6", 0)
		s.merged(ana, eva)
		s.wantBalance(ana, "12", "one voucher is the limit")
	})
	t.Run("an import gives none", func(t *testing.T) {
		s := newShop(t, setup{program: `"rules":[{"key":"h","name":"h","on":"Signup","reward":"cafe"}]`, also: `"rewards":[{"key":"cafe","program":"club","name":"Café","pointsCost":10,"fulfilment":"Voucher","autoIssue":true}]`})
		s.importCSV(t, "email,nombre,puntos\nana@x.example,Ana,30\n")
		if n := ask(s, (*txn).count).Redemptions; n != 0 {
			t.Errorf("%d vouchers", n)
		}
	})
}

// TestGiftsOfReturns: a return in part cancels a voucher that what is left would not have brought, and
// names it. No other return does (contract §31).
func TestGiftsOfReturns(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `,{"key":"big","name":"Big","minAmount":50,"reward":"pan"},{"key":"three","name":"Three","skus":["T"],"minQuantity":3,"reward":"pan"}]`,
		also: `"rewards":[{"key":"cafe","program":"club","name":"Café","pointsCost":10,"fulfilment":"Voucher","autoIssue":true,"limitPerCustomer":9},
			{"key":"pan","program":"club","name":"Pan","pointsCost":1000,"fulfilment":"Voucher"}]`})
	ana := s.customer("ana")
	for range 3 {
		sold := s.buy(ana, "10")
		s.wantGiven(sold, "Café Issued")
		s.wantGiven(s.bring(sold, "9.99"), "Café Cancelled")
		s.wantGiven(sold, "Café Cancelled")
		s.wantBalance(ana, "1", "nine of ten went back")
		s.wantGiven(s.bring(sold, "0.01"))
		s.wantBalance(ana, "0", "and the tenth")
	}
	sold := s.buy(ana, "15")
	s.bring(sold, "5")
	s.wantGiven(sold, "Café Issued")
	s.wantBalance(ana, "0", "five were left")

	eva := s.customer("eva")
	sold = s.buy(eva, "59")
	s.wantGiven(sold, "Pan Issued", "Café Issued", "Café Issued", "Café Issued", "Café Issued", "Café Issued")
	s.wantGiven(s.bring(sold, "9"))
	s.wantGiven(sold, "Pan Issued", "Café Issued", "Café Issued", "Café Issued", "Café Issued", "Café Issued")
	s.wantGiven(s.bring(sold, "1"), "Pan Cancelled", "Café Cancelled")
	s.wantGiven(sold, "Pan Cancelled", "Café Cancelled", "Café Issued", "Café Issued", "Café Issued", "Café Issued")
	s.verified()
	s.wantGiven(s.bring(sold, "49"), "Café Cancelled", "Café Cancelled", "Café Cancelled", "Café Cancelled")
	s.verified()

	luz := s.customer("luz")
	sold = s.buy(luz, "3", item{"T", dec("1"), dec("3")})
	s.wantGiven(sold, "Pan Issued")
	s.bring(sold, "1", item{"T", dec("1"), dec("1")})
	s.wantGiven(sold, "Pan Cancelled")
}

// TestUsedGiftIsUsed: whoever used a rule's voucher and returns the purchase has used the rule.
func TestUsedGiftIsUsed(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"rules":[{"key":"one","name":"One","maxPerCustomer":1,"reward":"pan"},{"key":"two","name":"Two","every":2,"reward":"pan"}]`,
		also: `"rewards":[{"key":"pan","program":"club","name":"Pan","pointsCost":1000,"fulfilment":"Voucher"}]`})
	ana := s.customer("ana")
	first := s.buy(ana, "1")
	s.wantGiven(first, "Pan Issued")
	s.bring(first, "1")
	first = s.buy(ana, "1") // it was not used
	s.wantGiven(first, "Pan Issued")
	must(s, func(t *txn) (*redemption, error) { return t.rewards.useCode(s.code(t, first), nil) })
	s.bring(first, "1")
	s.verified()
	s.wantGiven(s.buy(ana, "1"))
	second := s.buy(ana, "1")
	s.wantGiven(second, "Pan Issued")
	must(s, func(t *txn) (*redemption, error) { return t.rewards.useCode(s.code(t, second), nil) })
	s.bring(second, "1")
	s.verified()
	s.wantGiven(s.buy(ana, "1")) // the second again, which was given for
}

// TestGiftsOfOthers: a purchase gives nobody else's voucher, whoever else was brought to one by the
// same transaction, as the items of a batch may be.
func TestGiftsOfOthers(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: sealCard, also: coffee})
	ana, eva := s.customer("ana"), s.customer("eva")
	sold := must(s, func(t *txn) (*sale, error) {
		if _, err := movePoints(t, eva, nil, &movement{Category: categoryBonus, Amount: dec("10")}, t.points.credit); err != nil {
			return nil, err
		}
		sold, _, err := t.sales.register(newSale{Customer: ana, Type: typePurchase, Total: dec("30")})
		return sold, err
	})
	s.wantGiven(sold)
	if list := s.vouchers(eva); len(list) != 1 || list[0].Gift.Sale != (id{}) {
		t.Errorf("eva has %+v", list)
	}
	s.verified()
}
