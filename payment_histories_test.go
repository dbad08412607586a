package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"
)

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
