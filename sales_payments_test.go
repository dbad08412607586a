package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/disk"
)

// tenAre1 makes 10 points worth 1, up to half of a purchase.
const tenAre1 = `"payment":{"points":10,"amount":1,"maxPercent":50}`

// TestPayment: points pay a part of a purchase, its rule counts what is left or the total, and its
// returns give back a third and then the rest (the example of contract §20).
func TestPayment(t *testing.T) {
	t.Parallel()
	for earnOn, earned := range map[string]string{earnOnPaid: "33", earnOnTotal: "35"} {
		s := newShop(t, setup{program: strings.TrimSuffix(tenAre1, "}") + `,"earnOn":"` + earnOn + `"},"rules":[{"key":"base","name":"base","per":{"amount":10,"points":1}}]`})
		ana := s.customer("ana")
		s.add(ana, "300", never)
		sold, err := s.sell(newSale{Customer: ana, Total: dec("350"), Pay: &newPayment{Points: dec("200")}})
		s.ok(err)
		if sold.Payment.Amount != dec("20") || sold.due() != dec("330") || sold.Earned != dec(earned) {
			t.Errorf("%s: paid %+v, due %s, earned %s", earnOn, sold.Payment, sold.due(), sold.Earned)
		}
		for _, back := range []struct{ total, points, amount, due string }{{"116.67", "66", "6.6", "110.07"}, {"233.33", "134", "13.4", "219.93"}} {
			ret := s.bring(sold, back.total)
			if y := ret.Payment; y.Points != dec(back.points) || y.Amount != dec(back.amount) || ret.due() != dec(back.due) {
				t.Errorf("%s: a return of %s undoes %+v, and %s is given back", earnOn, back.total, y, ret.due())
			}
		}
		s.wantStanding(ana, "300 0 300", "all of it came back")
	}
}

// TestPaymentLots: a whole return restores every lot that paid, to the ten-thousandth, however it
// is divided.
func TestPaymentLots(t *testing.T) {
	t.Parallel()
	histories(t, 200, func(t *testing.T, rnd *rand.Rand) {
		s := newShop(t, setup{program: `"pointsDecimals":4,"returns":"Keep",` + `"payment":{"points":3,"amount":0.7}`})
		ana := s.customer("ana")
		for range 1 + rnd.IntN(40) { // also more than the account's own record holds
			s.add(ana, decimal(1+rnd.IntN(30_000)).String(), s.clock+instant(1+rnd.IntN(5))*millisPerDay)
		}
		lots := func() (list []lot) {
			ask(s, func(t *txn) (any, error) {
				_, a, err := accountOf(t, ana)
				if err != nil {
					return nil, err
				}
				for l, err := range t.points.lots(a, partLot) {
					if err != nil {
						return nil, err
					}
					list = append(list, *l)
				}
				return nil, nil
			})
			return list
		}
		before := lots()
		total := decimal(1 + rnd.IntN(200_000))
		sold, err := s.sell(newSale{Customer: ana, Total: total, Pay: &newPayment{Max: true}})
		s.ok(err)
		for left := total; left > 0; {
			part := min(left, decimal(1+rnd.Int64N(int64(total))))
			s.bring(sold, part.String())
			left -= part
		}
		same(t, "the lots", lots(), before)
	})
}

// TestPaymentOrder: points come back to the lots that were used last first.
func TestPaymentOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"payment":{"points":1,"amount":1}`})
	ana := s.customer("ana")
	soon, late := s.clock.add(10*oneDay), s.clock.add(20*oneDay)
	s.add(ana, "100", late)
	s.add(ana, "100", soon)
	sold, err := s.sell(newSale{Customer: ana, Total: dec("160"), Pay: &newPayment{Points: dec("160")}})
	s.ok(err)
	for _, back := range []struct {
		total string
		want  []expiring
	}{
		{"50", []expiring{{dec("90"), late}}},
		{"50", []expiring{{dec("40"), soon}, {dec("100"), late}}},
		{"60", []expiring{{dec("100"), soon}, {dec("100"), late}}},
	} {
		s.bring(sold, back.total)
		same(t, "what expires", s.standing(ana).Expiring, back.want)
	}
}

// TestPayTerms compares how many points pay with what trying all of them finds.
func TestPayTerms(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(20, 1))
	for range 3000 {
		cent := pick(rnd, decimal(decimalOne), 100, 1)
		y := payTerms{
			points: decimal(1 + rnd.IntN(20*decimalOne)), amount: decimal(1 + rnd.IntN(20*decimalOne)),
			least: decimal(rnd.IntN(5 * decimalOne)), percent: decimal(1 + rnd.IntN(100*decimalOne)), step: pick(rnd, decimalOf(1), decimalOf(3), dec("0.5")), cent: cent, decimals: 0,
		}
		total, limit := decimal(1+rnd.IntN(60*decimalOne)), decimal(rnd.IntN(80*decimalOne))
		worth := func(n decimal) decimal { return n * y.amount / y.points / cent * cent }
		usable := func(n decimal) bool {
			return n >= y.least && worth(n) > 0 && worth(n)*100*decimalOne <= total*y.percent
		}
		best := decimal(0)
		for n := y.step; n <= limit; n += y.step {
			if usable(n) && worth(n) > worth(best) {
				best = n
			}
		}
		if got := y.most(total, limit); got != best {
			t.Errorf("%+v: of %s points, %s pay for %s, not %s", y, limit, best, total, got)
		}
		amount := cent * decimal(1+rnd.IntN(60))
		if price := y.price(amount); worth(price) < amount || worth(price-y.step) >= amount {
			t.Errorf("%+v: %s costs %s", y, amount, price)
		}
		n := y.step * decimal(1+rnd.IntN(60))
		var of account
		of.Balance = limit
		chosen, err := y.choose(&newPayment{Points: n}, total, &of, nil)
		if (err == nil) != (usable(n) && n <= limit) || err == nil && chosen != n {
			t.Errorf("%+v: %s of %s points for %s: %s, %v", y, n, limit, total, chosen, err)
		}
	}
}

// TestPaymentKnownAgain: under Unique a purchase is known by what points paid, and not when they
// paid something else.
func TestPaymentKnownAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"payment":{"points":3,"amount":1}`, settings: `"externalIds":"Unique"`})
	ana := s.customer("ana")
	s.add(ana, "1000", never)
	hold := s.hold(ana, "200", usualHold, "")
	other := hold
	other[15]++
	again := func(ticket string, in *newPayment) string {
		known, err := do(s, func(t *txn) (*sale, error) {
			return t.sales.knownSale(newSale{Customer: ana, Type: typePurchase, Total: dec("500"), ExternalID: ticket, Pay: in})
		})
		if err == nil && known == nil {
			return "new"
		}
		return codeOf(err)
	}
	for i, sold := range []*newPayment{nil, {Points: dec("200")}, {Amount: dec("66.66")}, {Max: true}, {Hold: &hold}} {
		ticket := string(rune('A' + i))
		if _, err := s.sell(newSale{Customer: ana, Total: dec("500"), ExternalID: ticket, Pay: sold}); err != nil {
			t.Fatal(i, err)
		}
		for j, test := range []struct {
			in   *newPayment
			same [5]bool
		}{
			{nil, [5]bool{true}},
			{&newPayment{Points: dec("200")}, [5]bool{false, true, true}},
			{&newPayment{Points: dec("201")}, [5]bool{}},
			{&newPayment{Amount: dec("66.66")}, [5]bool{false, true, true}},
			{&newPayment{Amount: dec("66.67")}, [5]bool{}},
			{&newPayment{Amount: dec("66.33")}, [5]bool{}},
			{&newPayment{Max: true}, [5]bool{true, true, true, true}},
			{&newPayment{Hold: &hold}, [5]bool{4: true}},
			{&newPayment{Hold: &hold, Points: dec("200")}, [5]bool{4: true}},
			{&newPayment{Hold: &hold, Points: dec("100")}, [5]bool{}},
			{&newPayment{Hold: &other}, [5]bool{}},
		} {
			want := "external_id_conflict"
			if test.same[i] {
				want = ""
			}
			if got := again(ticket, test.in); got != want {
				t.Errorf("sale %d sent again as %d: %q, want %q", i, j, got, want)
			}
		}
	}
}

// TestPaymentOfReturns: a return gives back no less than no money, and all of them what was paid, even
// if the points are coarse, or a fee is kept of all the items.
func TestPaymentOfReturns(t *testing.T) {
	t.Parallel()
	thing := item{"a", dec("100"), dec("1")}
	for _, test := range []struct {
		reason, payment, pay string
		items                []item
		returns              [][3]string // total, points and money that come back
	}{
		{"points that are worth more than a return", `"points":1,"amount":10`, "10", nil, [][3]string{{"9.99", "0", "0"}, {"0.01", "1", "0"}, {"90", "9", "0"}}},
		{"steps are for paying alone", `"points":10,"amount":1,"step":100`, "1000", nil, [][3]string{{"99", "990", "0"}, {"1", "10", "0"}}},
		{"a fee is kept of the item", `"points":10,"amount":1`, "500", []item{thing}, [][3]string{{"30", "150", "15"}}},
		{"money runs out before points", `"points":3,"amount":10`, "29", nil, [][3]string{{"99.99", "28", "3.34"}, {"0.01", "1", "0"}}},
	} {
		s := newShop(t, setup{program: `"payment":{` + test.payment + `}`})
		ana := s.customer("ana")
		s.add(ana, "1000", never)
		sold, err := s.sell(newSale{Customer: ana, Total: dec("100"), Items: test.items, Pay: &newPayment{Points: dec(test.pay)}})
		s.ok(err)
		for _, want := range test.returns {
			back := s.bring(sold, want[0], test.items...)
			points := decimal(0)
			if back.Payment != nil {
				points = back.Payment.Points
			}
			if got := [3]string{want[0], points.String(), back.due().String()}; got != want {
				t.Errorf("%s: total, points and money are %s, want %s", test.reason, got, want)
			}
		}
	}
}

// TestHoldsKilled: a process is killed 200 times while holds are open. Each is released at its
// moment, and once.
func TestHoldsKilled(t *testing.T) {
	t.Parallel()
	skipShort(t)
	kills := sized(200, 20)
	path, rnd := filepath.Join(t.TempDir(), "sello.db"), rand.New(rand.NewPCG(20, 2))
	clock := "2026-03-02T10:00:00Z"
	var ana id
	placed, ended := map[id]instant{}, 0
	for kill := range kills {
		store, err := openBolt(path, disk.Options{Dense: denseTables, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		s := newShopOn(t, store, clock)
		s.ids.Store(uint64(kill) << 20)
		if kill == 0 {
			s.apply(setup{}.document())
			ana = s.customer("ana")
			s.add(ana, "1000", never)
		}
		for range rnd.IntN(4) {
			seconds := leastHold + rnd.IntN(300)
			h := must(s, func(t *txn) (*hold, error) {
				return t.points.place(newHold{Customer: ana, Amount: decimalOf(1 + rnd.IntN(10)), Seconds: seconds})
			})
			placed[h.ID] = h.Expires
		}
		s.clock += instant(rnd.IntN(200_000))
		switch rnd.IntN(3) {
		case 0:
			s.swept()
		case 1:
			s.add(ana, "1", never)
		}
		if kill == kills-1 {
			s.pass(time.Hour)
			s.swept()
			for _, m := range s.ledger(ana) {
				if m.Category == categoryRelease {
					if ended++; m.CreatedAt != placed[m.Hold] {
						t.Errorf("hold %s ended at %s, not at %s", m.Hold, m.CreatedAt, placed[m.Hold])
					}
					delete(placed, m.Hold)
				}
			}
			s.verified()
			if held := s.standing(ana).Held; held != 0 || len(placed) > 0 || ended < kills {
				t.Errorf("%d ended, %s is held, and of %d nothing was released", ended, held, len(placed))
			}
		}
		clock = s.clock.String()
		s.ok(store.leave())
	}
}

// TestHoldLapses: what is held does not expire, and does so at once when it is released, also
// when others merge or owe points.
func TestHoldLapses(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"negativeBalance":"Debt","rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	bought := s.buy(ana, "50")
	s.add(ana, "30", s.clock+10*60*1000)
	first, second := s.hold(ana, "20", 3600, ""), s.hold(ana, "60", 3600, "") // the second has 10 that expire and 50 that do not
	s.bring(bought, "50")
	s.wantStanding(ana, "-50 0 30", "all is held, so the return left a debt")
	s.pass(11 * time.Minute)
	s.wantStanding(ana, "-50 0 30", "nothing expired")
	must(s, func(t *txn) (any, error) { return t.points.capture(first, 0) })
	s.wantStanding(ana, "-50 0 30", "what was captured touched no debt")
	must(s, func(t *txn) (any, error) { return t.points.release(second) })
	s.wantStanding(ana, "0 0 30", "50 paid the debt, and 10 expired")
	kinds := []string{}
	for _, m := range s.ledger(ana) {
		kinds = append(kinds, m.Category+" "+m.Amount.String())
	}
	last := strings.Join(kinds[len(kinds)-4:], ", ")
	if want := "Release 20, Redemption -20, Release 60, Expiration -10"; last != want {
		t.Errorf("the ledger ends with %s, want %s", last, want)
	}
}

// TestHoldMerged: what a hold had of a merged customer may expire after it paid for a purchase that is
// returned, at once or in parts. A clock that was set back since confuses nobody.
func TestHoldMerged(t *testing.T) {
	t.Parallel()
	for _, parts := range [][]string{{"50"}, {"25", "25"}} {
		s := newShop(t, setup{program: `"returns":"Keep","payment":{"points":10,"amount":1},"rules":[{"key":"base","name":"base","per":{"amount":1,"points":1},"expiresInDays":1}]`})
		ana, eva := s.customer("ana"), s.customer("eva")
		s.buy(eva, "100")
		paying, other := s.hold(eva, "90", mostHold, ""), s.hold(eva, "10", mostHold, "")
		s.pass(time.Hour)
		s.merged(ana, eva)
		s.pass(-30 * time.Minute)
		must(s, func(t *txn) (any, error) { return t.points.release(other) })
		sold, err := s.sell(newSale{Customer: ana, Total: dec("50"), Pay: &newPayment{Hold: &paying}})
		s.ok(err)
		for i, part := range parts {
			if i == len(parts)-1 {
				s.pass(2 * oneDay)
			}
			s.bring(sold, part)
		}
		s.verified()
	}
}

// TestHoldNotice: points whose notice comes while they are held are announced when they are back, and
// those announced before are not announced again.
func TestHoldNotice(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.customer("ana")
	s.add(ana, "100", s.clock+noticeTime+60*60*1000)
	s.add(ana, "50", s.clock+noticeTime+10*60*1000)
	s.pass(20 * time.Minute)
	s.swept()
	s.hold(ana, "150", 2*60*60, "")
	s.pass(time.Hour)
	s.swept()
	s.pass(2 * time.Hour)
	s.swept()
	var told []decimal
	for _, e := range s.feed(0, eventKinds[eventPointsExpiring].name) {
		told = append(told, e.Data.(expiringEvent).Amount)
	}
	same(t, "points announced", told, []decimal{dec("50"), dec("100")})
}

// TestHoldNoticeOfDebt: what comes back and a debt takes is not announced.
func TestHoldNoticeOfDebt(t *testing.T) {
	t.Parallel()
	for held, want := range map[string][]decimal{"50": nil, "100": {dec("40")}} {
		s := newShop(t, setup{program: `"negativeBalance":"Debt","rules":[` + onePer1 + `]`})
		ana := s.customer("ana")
		s.add(ana, held, s.clock+noticeTime+60*60*1000)
		s.hold(ana, held, 2*60*60, "")
		sold := s.buy(ana, "60")
		_, err := s.deduct(ana, "60")
		s.ok(err)
		s.bring(sold, "60")
		s.pass(3 * time.Hour)
		s.swept()
		var told []decimal
		for _, e := range s.feed(0, eventKinds[eventPointsExpiring].name) {
			told = append(told, e.Data.(expiringEvent).Amount)
		}
		same(t, "points announced of "+held, told, want)
	}
}

// TestHoldOfManyLots: an Expiration names no more lots than others do.
func TestHoldOfManyLots(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana := s.customer("ana")
	must(s, func(t *txn) (any, error) {
		_, a, err := accountOf(t, ana)
		if err != nil {
			return nil, err
		}
		for i := range 2*maxUses + 1 {
			if err := t.points.credit(a, &movement{Amount: dec("1"), Category: categoryBonus, Expires: t.now + 60*60*1000 + instant(i)}); err != nil {
				return nil, err
			}
		}
		return nil, t.points.saveAccount(a)
	})
	s.hold(ana, decimalOf(2*maxUses+1).String(), 2*60*60, "")
	s.pass(3 * time.Hour)
	s.swept()
	var lots []int
	for _, m := range s.ledger(ana) {
		if m.Category == categoryExpiration {
			lots = append(lots, len(m.Uses))
		}
	}
	same(t, "lots of each Expiration", lots, []int{maxUses, maxUses, 1})
}

// TestPaidWhole: what points pay whole earns nothing by any rule in any program, and is no purchase
// that `every` counts; what they pay in part earns points and perItem in full, and amounts as paid.
func TestPaidWhole(t *testing.T) {
	t.Parallel()
	const rules = `"rules":[{"key":"per","name":"per","per":{"amount":10,"points":1}},{"key":"item","name":"item","perItem":3},
		{"key":"flat","name":"flat","points":5},{"key":"gift","name":"gift","reward":"pan"},{"key":"turn","name":"turn","points":100,"every":2}]`
	for _, test := range []struct {
		earnOn, pay string
		want        string // earned here, in stamps, vouchers; and by the next purchase
	}{
		{earnOnPaid, "1000", "0 0 0, 18 1 1"}, {earnOnPaid, "500", "13 1 1, 118 1 1"}, {earnOnTotal, "1000", "18 1 1, 118 1 1"},
	} {
		s := newShop(t, setup{
			program: `"default":true,"payment":{"points":10,"amount":1,"earnOn":"` + test.earnOn + `"},` + rules + `},
				{"key":"sellos","name":"Sellos","join":"All","rules":[{"key":"uno","name":"Uno","points":1}]`,
			also: `"rewards":[{"key":"pan","program":"club","name":"Pan","pointsCost":1,"fulfilment":"Voucher"}]`,
		})
		ana := s.customer("ana")
		s.add(ana, "2000", never)
		bread := []item{{"PAN", dec("100"), dec("1")}}
		sold, err := s.sell(newSale{Customer: ana, Total: dec("100"), Items: bread, Pay: &newPayment{Points: dec(test.pay)}})
		s.ok(err)
		next := s.buy(ana, "100", bread...)
		told := func(x *sale) string { return fmt.Sprint(x.Earned, " ", x.Others[0].Earned, " ", len(x.Given)) }
		if got := told(sold) + ", " + told(next); got != test.want {
			t.Errorf("%s, %s points: %s, want %s", test.earnOn, test.pay, got, test.want)
		}
		why := ask(s, func(t *txn) ([]programReasons, error) { why, _, err := t.sales.reasonsFor(sold); return why, err })
		whole := test.want[0] == '0'
		for _, of := range why {
			for _, r := range of.rules {
				if said := strings.Contains(fmt.Sprint(testWording("es").reasons(&r)), "PaidWithPoints"); said != whole {
					t.Errorf("%s, %s points: rule %s says so: %v", test.earnOn, test.pay, r.rule.Key, said)
				}
			}
		}
		s.bring(sold, "100", bread...)
	}
}

// TestPaymentExcluded: points do not pay for what is excluded: at most what is left of the total.
func TestPaymentExcluded(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"payment":{"points":10,"amount":1,"maxPercent":80,"excludeSkus":["tabaco-*"]}`})
	ana := s.customer("ana")
	s.add(ana, "10000", never)
	for _, test := range []struct {
		total string
		items []item
		max   string // how many points can pay
		says  string // to one point more
	}{
		{"100", nil, "800", "80"},
		{"100", []item{{"PAN", dec("60"), dec("1")}, {"TABACO-1", dec("20"), dec("2")}}, "600", "60"},
		{"100", []item{{"PAN", dec("90"), dec("1")}, {"TABACO-1", dec("10"), dec("1")}}, "800", "80"},
		{"50", []item{{"PAN", dec("60"), dec("1")}, {"TABACO-1", dec("40"), dec("1")}}, "300", "60"}, // both at half the price
		{"30", []item{{"PAN", dec("10"), dec("1")}, {"TABACO-1", dec("20"), dec("1")}}, "100", "33.33"},
		{"40", []item{{"TABACO-1", dec("40"), dec("1")}}, "0", "0"},
	} {
		in := newSale{Customer: ana, Total: dec(test.total), Items: test.items, Pay: &newPayment{Points: dec(test.max) + decimalOf(10)}}
		_, err := s.sell(in)
		want := "Los puntos pueden pagar hasta " + test.says + " % de la venta"
		if e, ok := err.(*apiError); !ok || e.code != codePointsPaymentTooLarge || e.message != want || fmt.Sprint(e.context["maxPoints"]) != test.max {
			t.Errorf("%s with %v: %+v, want %s and %s", test.total, test.items, err, want, test.max)
		}
		in.Pay = &newPayment{Max: true}
		sold, err := s.sell(in)
		s.ok(err)
		if points, _ := sold.paid(); points != dec(test.max) {
			t.Errorf("%s with %v: %s points pay, want %s", test.total, test.items, points, test.max)
		}
	}
}

// A payingHistory is random deeds of three customers in three programs: their own, one for all, and
// one beside. Points of any of them pay.
type payingHistory struct {
	shop     *shop
	rnd      *rand.Rand
	people   []id
	programs []id
	into     map[id]id // who was merged into whom

	// These are of what is stored: a deed that fails leaves nothing in them.
	purchases, holds []id
}

// TestPaymentHistories: whatever is paid with points, held, captured, returned, merged and erased,
// also in batches and by sales that come late, verify finds nothing, no return gives back less than no
// money, and all returns of a purchase together no more than was paid for it.
func TestPaymentHistories(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	histories(t, 400, func(t *testing.T, rnd *rand.Rand) {
		h := newPayingHistory(t, rnd)
		for range 40 + rnd.IntN(60) {
			h.shop.pass(pick(rnd, 0, time.Duration(1+rnd.IntN(120))*time.Second, time.Duration(rnd.IntN(90))*time.Minute, time.Duration(rnd.IntN(36))*time.Hour))
			if rnd.IntN(8) == 0 {
				h.shop.swept()
			}
			switch k := rnd.IntN(20); {
			case k == 0:
				h.mergeSome()
			case k == 1 && rnd.IntN(6) == 0:
				do(h.shop, func(t *txn) (any, error) { return t.merges.erase(h.people[2]) }) // who may be merged
			case k < 6:
				h.batch()
			default:
				h.one()
			}
			if rnd.IntN(6) == 0 {
				h.shop.verified()
			}
		}
		h.shop.verified()
		h.money()
		h.shop.pass(10 * oneDay)
		h.shop.swept() // and the shop is verified again when the test ends
	})
}

func newPayingHistory(t *testing.T, rnd *rand.Rand) *payingHistory {
	payment := pick(rnd, `"payment":{"points":10,"amount":1}`, `"payment":{"points":3,"amount":0.7,"maxPercent":60,"earnOn":"Total"}`, `"payment":{"points":1,"amount":10,"step":5}`)
	terms := payment + pick(rnd, ``, `,"expiry":{"days":3}`, `,"expiry":{"months":1,"endOf":"Month"}`) + pick(rnd, `,"negativeBalance":"Debt"`, `,"negativeBalance":"Clamp"`)
	rules := `,"rules":[{"key":"base","name":"base","per":{"amount":1,"points":2}},{"key":"late","name":"late","per":{"amount":10,"points":3},"pendingDays":2,"expiresInDays":4},
		{"key":"day","name":"day","points":5,"expiresInDays":1}]`
	tiers := pick(rnd, ``, `,"tierBasis":{"metric":"PointsEarned","window":"Rolling","months":1},"tiers":[{"name":"A","threshold":0},{"name":"B","threshold":200}]`)
	s := newShop(t, setup{
		at: "2026-03-30T10:00:00Z", settings: fmt.Sprintf(`"amountDecimals":%d`, rnd.IntN(3)),
		program: `"default":true,` + terms + rules + tiers + `},{"key":"all","name":"All","join":"All",` + terms + rules + `},{"key":"side","name":"Side",` + terms,
	})
	h := &payingHistory{shop: s, rnd: rnd, into: map[id]id{}}
	for _, name := range []string{"ana", "eva", "iris"} {
		h.people = append(h.people, s.customer(name))
	}
	for _, p := range s.config().Programs {
		h.programs = append(h.programs, p.ID)
	}
	return h
}

// who is a customer, or the one that it was merged into.
func (h *payingHistory) who() id {
	who := pick(h.rnd, h.people...)
	for into, merged := h.into[who]; merged; into, merged = h.into[who] {
		who = into
	}
	return who
}

func (h *payingHistory) mergeSome() {
	into, from := h.who(), h.who()
	if _, err := h.shop.tryMerge(into, from); err == nil {
		h.into[from] = into
	}
}

// repeatably runs deeds in a transaction, which may run again and then does the same.
func (h *payingHistory) repeatably(deeds func(t *txn) error) error {
	seed, purchases, holds := h.rnd.Uint64(), len(h.purchases), len(h.holds)
	_, err := do(h.shop, func(t *txn) (any, error) {
		h.rnd, h.purchases, h.holds = rand.New(rand.NewPCG(seed, 0)), h.purchases[:purchases], h.holds[:holds]
		return nil, deeds(t)
	})
	if err != nil {
		h.purchases, h.holds = h.purchases[:purchases], h.holds[:holds]
	}
	return err
}

func (h *payingHistory) one() {
	if err := h.repeatably(h.act); err != nil && publicError(err).code.status >= http.StatusInternalServerError {
		h.shop.Fatal(err)
	}
}

// batch runs deeds of which each is kept or leaves nothing.
func (h *payingHistory) batch() {
	h.shop.ok(h.repeatably(func(t *txn) error {
		return t.eachRow(2+h.rnd.IntN(6), func(int) (bool, error) {
			purchases, holds := len(h.purchases), len(h.holds)
			err := h.act(t)
			if err == nil {
				return true, nil
			}
			h.purchases, h.holds = h.purchases[:purchases], h.holds[:holds]
			if publicError(err).code.status >= http.StatusInternalServerError {
				return false, err
			}
			return false, nil
		})
	}))
}

func (h *payingHistory) act(t *txn) error {
	switch h.rnd.IntN(12) {
	case 0, 1:
		expires := pick(h.rnd, never, t.now+instant(1+h.rnd.IntN(4*millisPerDay)), t.now+60*60*1000)
		_, err := movePoints(t, h.who(), new(pick(h.rnd, h.programs...)), &movement{Amount: decimalOf(1 + h.rnd.IntN(500)), Category: categoryBonus, Expires: expires}, t.points.credit)
		return err
	case 2:
		_, err := movePoints(t, h.who(), new(pick(h.rnd, h.programs...)), &movement{Amount: decimalOf(1 + h.rnd.IntN(100)), Category: categoryAdjustment}, t.points.debit)
		return err
	case 3:
		o, err := t.points.place(newHold{Customer: h.who(), Program: new(pick(h.rnd, h.programs...)), Amount: decimalOf(5 * (1 + h.rnd.IntN(12))), Seconds: pick(h.rnd, leastHold, 3600, mostHold)})
		if err == nil {
			h.holds = append(h.holds, o.ID)
		}
		return err
	case 4, 5:
		held := h.someHold()
		if held == nil {
			return nil
		}
		if h.rnd.IntN(2) == 0 {
			_, err := t.points.release(*held)
			return err
		}
		_, err := t.points.capture(*held, decimalOf(h.rnd.IntN(20)))
		return err
	case 6, 7, 8:
		return h.buyNow(t)
	}
	return h.bringBack(t)
}

// someHold is one of the last holds; nil if there is none.
func (h *payingHistory) someHold() *id {
	if len(h.holds) == 0 {
		return nil
	}
	return new(pick(h.rnd, h.holds[max(len(h.holds)-4, 0):]...))
}

func (h *payingHistory) buyNow(t *txn) error {
	in := newSale{Customer: h.who(), Type: typePurchase, Total: decimal(1 + h.rnd.IntN(200*decimalOne))}
	if h.rnd.IntN(3) == 0 {
		in.Items = []item{{"a", decimal(h.rnd.IntN(100 * decimalOne)), decimalOf(1 + h.rnd.IntN(3))}, {"b", decimal(h.rnd.IntN(100 * decimalOne)), decimalOf(1)}}
	}
	in.OccurredAt = pick(h.rnd, 0, 0, 0, t.now-instant(h.rnd.IntN(payableFor)), t.now-instant(h.rnd.IntN(6*millisPerDay)))
	pay := &newPayment{Program: new(pick(h.rnd, h.programs...))}
	switch h.rnd.IntN(5) {
	case 0:
		pay = nil
	case 1:
		pay.Points = decimalOf(5 * (1 + h.rnd.IntN(10)))
	case 2:
		pay.Amount = decimalOf(1 + h.rnd.IntN(20))
	case 3:
		pay.Max = true
	case 4:
		if pay.Program, pay.Hold = nil, h.someHold(); pay.Hold == nil {
			return nil
		}
		held, err := t.points.hold(*pay.Hold)
		if err != nil {
			return err
		}
		if in.Customer, err = t.merges.ownerID(held.Customer); err != nil {
			return err
		}
		if h.rnd.IntN(2) == 0 {
			pay.Points = decimalOf(5 * (1 + h.rnd.IntN(5)))
		}
	}
	in.Pay = pay
	s, _, err := t.sales.register(in)
	if err == nil {
		h.purchases = append(h.purchases, s.ID)
	}
	return err
}

func (h *payingHistory) bringBack(t *txn) error {
	if len(h.purchases) == 0 {
		return nil
	}
	purchase, err := t.sales.get(pick(h.rnd, h.purchases...))
	if err != nil || purchase.Returned == purchase.Total {
		return err
	}
	owner, err := t.merges.ownerID(purchase.Customer)
	if err != nil {
		return err
	}
	in := newSale{Customer: owner, Type: typeReturn, Original: &purchase.ID, Total: purchase.Total - purchase.Returned}
	if h.rnd.IntN(2) == 0 {
		in.Total = 1 + decimal(h.rnd.Int64N(int64(in.Total)))
	}
	if h.rnd.IntN(3) == 0 {
		in.Items = purchase.Items
	}
	if h.rnd.IntN(3) == 0 {
		in.OccurredAt = max(purchase.CreatedAt, t.now-instant(h.rnd.IntN(6*millisPerDay)))
	}
	back, _, err := t.sales.register(in)
	if err == nil && back.due() < 0 {
		h.shop.Errorf("a return gives back %s", back.due())
	}
	return err
}

// money compares what was paid for each purchase with what its returns gave back.
func (h *payingHistory) money() {
	ask(h.shop, func(t *txn) (any, error) {
		for _, u := range slices.Compact(h.purchases) {
			purchase, err := t.sales.get(u)
			if err != nil {
				return nil, err
			}
			list, more, err := t.sales.returnsOf(purchase)
			if err != nil || more {
				return nil, err
			}
			var given decimal
			for _, back := range list {
				given += back.due()
			}
			if whole := purchase.Returned == purchase.Total; given > purchase.due() || whole && given != purchase.due() {
				h.shop.Errorf("of %s paid, %s was given back; returned whole: %t", purchase.due(), given, whole)
			}
		}
		return nil, nil
	})
}
