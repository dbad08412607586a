package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestAccounts plays random histories on an account and on its model. After each
// step both must have the same standing, whether or not the sweep has run. The
// sweep may change nothing but the ledger.
func TestAccounts(t *testing.T) {
	t.Parallel()
	skipShort(t)
	histories(t, 1000, func(t *testing.T, rnd *rand.Rand) {
		h := newHistory(t, rnd)
		for range 1 + rnd.IntN(20) {
			h.wait()
			h.compare("after waiting")
			if rnd.IntN(6) == 0 {
				h.shop.swept()
				h.compare("after the sweep")
			}
			h.act()
			h.compare("after " + h.done[len(h.done)-1].kind)
		}
		h.shop.verified()
		h.shop.swept()
		h.checkLedger() // and the shop is verified again when the test ends
	})
}

// A history does the same deeds to a shop's customer and to a model.
type history struct {
	*model
	t    *testing.T
	rnd  *rand.Rand
	shop *shop
	cust id // the model's account is about this customer

	people []id        // to whose accounts deeds can be done; the model has them by index
	into   map[int]int // who was merged into whom

	sales       map[int]*sale
	redemptions map[int]id
	holds       map[int]id

	was was // asof_test.go
}

func newHistory(t *testing.T, rnd *rand.Rand) *history {
	doc := maybeIdle(rnd, randomProgram(rnd))
	begin := time.Date(2016+rnd.IntN(12), time.Month(1+rnd.IntN(12)), 1+rnd.IntN(31), rnd.IntN(24), rnd.IntN(60), 0, 0, time.UTC)
	s := newShop(t, setup{
		zone:    pick(rnd, "America/Mexico_City", "America/Sao_Paulo", "America/Santiago", "America/Havana", "Asia/Beirut", "UTC"),
		at:      begin.Format(time.RFC3339),
		program: programMembers(doc),
		also: `"rewards":[{"key":"small","program":"club","name":"Small","pointsCost":3},
			{"key":"large","program":"club","name":"Large","pointsCost":60}]`,
	})
	if rnd.IntN(2) == 0 { // with the usual sizes no account has enough lots to store them apart
		s.engine.sizes.inline = inlineLimits{rnd.IntN(4), rnd.IntN(4), rnd.IntN(4)}
	}
	h := &history{t: t, rnd: rnd, shop: s, cust: s.customer("ana"), into: map[int]int{}, sales: map[int]*sale{}, redemptions: map[int]id{}, holds: map[int]id{}}
	h.people = []id{h.cust}
	h.model = ask(s, func(t *txn) (*model, error) {
		return &model{program: t.cfg.Programs[0], zone: t.cfg.zone, enrolled: []instant{s.clock}}, nil
	})
	return h
}

// wait moves the clock on, often to 1 ms before, at or after a moment at which a
// lot becomes available or expires, or a year ends.
func (h *history) wait() {
	year := dayOf(h.shop.clock, h.model.zone).date().Year()
	moments := []instant{dayOn(year+1, 1, 1).start(h.model.zone)}
	now := h.play(h.shop.clock)
	for _, l := range now.lots {
		for _, at := range []instant{l.from, l.expires} {
			if at > h.shop.clock && at != never {
				moments = append(moments, at)
			}
		}
	}
	if now.end > h.shop.clock && now.end != never {
		moments = append(moments, now.end)
	}
	for _, o := range now.holds {
		moments = append(moments, o.expires)
	}
	if h.rnd.IntN(3) == 0 {
		h.shop.clock = max(h.shop.clock, pick(h.rnd, moments...)+instant(h.rnd.IntN(3)-1))
		return
	}
	longest := pick(h.rnd, 0, time.Second, 5*time.Hour, 3*oneDay, 20*oneDay, 100*oneDay)
	h.shop.pass(time.Duration(h.rnd.Int64N(int64(longest) + 1)))
}

// act does one deed to the account and the model.
func (h *history) act() {
	kinds := map[string]func(*deed) error{
		"add": h.add, "deduct": h.deduct, "redeem": h.redeem, "cancel": h.cancel, "buy": h.buy, "return": h.bring,
		"hold": h.hold, "capture": h.endHold, "release": h.endHold,
	}
	d := deed{at: h.shop.clock, kind: pick(h.rnd, "add", "add", "deduct", "redeem", "cancel", "buy", "buy", "return", "return", "hold", "capture", "release")}
	err := kinds[d.kind](&d)
	d.who = h.who
	h.done = append(h.done, d)
	if code := h.play(h.shop.clock).err; codeOf(err) != code {
		h.t.Fatalf("%s: got %q (%v), want %q", d.kind, codeOf(err), err, code)
	}
}

// turn makes the history and the model be about one of the people, or about the one that
// person was merged into.
func (h *history) turn(who int) {
	for into, merged := h.into[who]; merged; into, merged = h.into[who] {
		who = into
	}
	h.who, h.cust = who, h.people[who]
}

// Each method below does one kind of deed to the account, and sets in d what the
// model has to do.

func (h *history) add(d *deed) error {
	category := pick(h.rnd, addCategories...)
	m := &movement{Category: category, Amount: h.points(100)}
	d.expires = h.program.Expiry.endOfLife(d.at, h.zone)
	if h.rnd.IntN(5) == 0 {
		m.AvailFrom = d.at.add(time.Duration(h.rnd.IntN(30)) * oneDay)
	}
	if h.rnd.IntN(3) == 0 {
		m.Expires = max(m.AvailFrom, d.at).add(1 + time.Duration(h.rnd.IntN(50))*oneDay/2)
		d.expires = m.Expires
	}
	d.amount, d.from, d.earning = m.Amount, m.AvailFrom, category != "Refund" && category != "Adjustment"
	_, err := h.shop.move(h.cust, m)
	return err
}

func (h *history) deduct(d *deed) error {
	d.amount = h.points(60)
	if balance := h.play(d.at).balance(); balance > 0 && h.rnd.IntN(3) == 0 {
		d.amount = balance + decimal(h.rnd.IntN(2)) // all there is, or a ten-thousandth too much
	}
	category := pick(h.rnd, deductCategories...)
	d.reward = category == categoryRedemption
	_, err := h.shop.move(h.cust, &movement{Category: category, Amount: -d.amount})
	return err
}

func (h *history) redeem(d *deed) error {
	d.kind = "deduct"
	reward := h.rnd.IntN(2)
	x, err := do(h.shop, func(t *txn) (*redemption, error) {
		return t.rewards.redeem(h.cust, t.cfg.Rewards[reward].ID, "", nil, givenProof{})
	})
	if err != nil {
		d.amount = maxDecimal // more than any balance: the model must refuse it too
		return err
	}
	d.amount, d.reward = x.Points, true
	h.redemptions[len(h.done)] = x.ID
	return nil
}

func (h *history) cancel(d *deed) error {
	if len(h.redemptions) == 0 {
		d.kind = "nothing"
		return nil
	}
	d.of = pick(h.rnd, slices.Sorted(maps.Keys(h.redemptions))...)
	h.turn(h.done[d.of].who)
	_, err := do(h.shop, func(t *txn) (*redemption, error) { return t.rewards.cancel(h.redemptions[d.of]) })
	delete(h.redemptions, d.of)
	return err
}

func (h *history) buy(d *deed) error {
	d.amount = decimal(1 + h.rnd.IntN(int(decimalOf(100))))
	if len(h.program.Rules) > 1 {
		late := h.program.Rules[1]
		local := d.at.time().In(h.zone)
		d.lateFrom = instantOf(local.AddDate(0, 0, late.PendingDays))
		d.lateEnd = h.program.Expiry.endOfLife(d.at, h.zone)
		if late.ExpiresInDays > 0 {
			d.lateEnd = instantOf(local.AddDate(0, 0, late.ExpiresInDays))
		}
	}
	pay := h.payment(d)
	sold, err := h.shop.sell(newSale{Customer: h.cust, Total: d.amount, Pay: pay})
	if err != nil {
		return err
	}
	h.sales[len(h.done)] = sold
	if pay != nil && pay.Max {
		if d.pay = 0; sold.Payment != nil {
			d.pay = sold.Payment.Points
		}
	}
	return nil
}

// payment chooses points that pay for a purchase, or none. As many as are possible are those that
// the account finds; TestPayTerms checks how many these are.
func (h *history) payment(d *deed) *newPayment {
	balance := h.play(d.at).balance()
	switch h.rnd.IntN(6) {
	case 0:
		if h.program.Payment == nil || balance < 0 {
			return nil
		}
		return &newPayment{Max: true}
	case 1, 2:
		d.pay = h.points(60)
		if balance > 0 && h.rnd.IntN(2) == 0 {
			d.pay = balance
		}
		return &newPayment{Points: d.pay}
	case 3:
		if len(h.holds) == 0 {
			return nil
		}
		d.held = 1 + pick(h.rnd, slices.Sorted(maps.Keys(h.holds))...)
		h.turn(h.done[d.held-1].who)
		hold := h.holds[d.held-1]
		if d.pay = h.done[d.held-1].amount; h.rnd.IntN(2) == 0 {
			return &newPayment{Hold: &hold}
		}
		d.pay = h.points(40)
		return &newPayment{Hold: &hold, Points: d.pay}
	}
	return nil
}

func (h *history) hold(d *deed) error {
	d.amount = h.points(40)
	seconds := leastHold + h.rnd.IntN(mostHold-leastHold+1)
	d.expires = d.at + instant(seconds)*1000
	o, err := do(h.shop, func(t *txn) (*hold, error) {
		return t.points.place(newHold{Customer: h.cust, Amount: d.amount, Seconds: seconds})
	})
	if err == nil {
		h.holds[len(h.done)] = o.ID
	}
	return err
}

func (h *history) endHold(d *deed) error {
	if len(h.holds) == 0 {
		d.kind = "nothing"
		return nil
	}
	d.of = pick(h.rnd, slices.Sorted(maps.Keys(h.holds))...)
	h.turn(h.done[d.of].who)
	if d.amount = h.done[d.of].amount; h.rnd.IntN(2) == 0 {
		d.amount = max(1, decimal(h.rnd.Int64N(int64(d.amount+d.amount/8)+1)))
	}
	_, err := do(h.shop, func(t *txn) (*hold, error) {
		if d.kind == "release" {
			return t.points.release(h.holds[d.of])
		}
		return t.points.capture(h.holds[d.of], d.amount)
	})
	if err == nil && h.rnd.IntN(3) > 0 { // the others are tried again
		delete(h.holds, d.of)
	}
	return err
}

func (h *history) bring(d *deed) error {
	if len(h.sales) == 0 {
		d.kind = "nothing"
		return nil
	}
	d.of = pick(h.rnd, slices.Sorted(maps.Keys(h.sales))...)
	h.turn(h.done[d.of].who)
	b := h.play(d.at).bought[d.of]
	d.amount = pick(h.rnd, b.total-b.returned, 1+b.total/3, decimal(1+h.rnd.Int64N(int64(b.total)+1)))
	if d.amount == 0 {
		d.amount = 1
	}
	_, err := h.shop.sell(newSale{Type: typeReturn, Customer: h.cust, Total: d.amount, Original: &h.sales[d.of].ID})
	return err
}

func (h *history) points(most int) decimal { return randomPoints(h.rnd, &h.program.programDoc, most) }

func (h *history) compare(when string) {
	h.t.Helper()
	same(h.t, fmt.Sprintf("%s (step %d, %s)", when, len(h.done), h.shop.clock), h.shop.standing(h.cust), h.play(h.shop.clock).standing())
}

// checkLedger compares the ledger with the model. The sweep has written down all
// that is due.
func (h *history) checkLedger() {
	var sum, expired decimal
	released := map[instant]bool{}
	p := h.play(h.shop.clock)
	for _, m := range h.shop.ledger(h.cust) {
		released[m.CreatedAt] = released[m.CreatedAt] || m.Category == categoryRelease || m.isGiveBack()
		if m.Category != categoryHold && m.Category != categoryRelease {
			sum += m.Amount
		}
		if m.Amount == 0 {
			h.t.Errorf("the ledger has %s of nothing", m.Category)
		}
		if m.Category != categoryExpiration {
			continue
		}
		expired -= m.Amount
		for _, u := range m.Uses {
			if u.Expires != m.CreatedAt && !released[m.CreatedAt] && (u.Expires < m.CreatedAt || !slices.Contains(p.ended, m.CreatedAt)) {
				h.t.Errorf("a lot that expired at %s was written down as expired at %s", u.Expires, m.CreatedAt)
			}
		}
	}
	if want := p.standing(); sum != want.Balance+want.Pending+want.Held {
		h.t.Errorf("movements add up to %s, balance, pending and held to %s", sum, want.Balance+want.Pending+want.Held)
	}
	p.moved.PointsExpired = p.expired()
	if expired != p.expired() {
		h.t.Errorf("expired in the ledger: %s, in the model: %s", expired, p.expired())
	}
	counted := ask(h.shop, func(t *txn) (tally, error) {
		s, err := t.stats.answer(statsQuery{from: dayOn(2015, 1, 1), to: dayOn(2036, 1, 1), groupBy: groupMonth})
		if err != nil {
			return tally{}, err
		}
		all := s.total.tally
		return tally{PointsIssued: all.PointsIssued, PointsRedeemed: all.PointsRedeemed, PointsExpired: all.PointsExpired, PointsReversed: all.PointsReversed}, nil
	})
	same(h.t, "points in the statistics", counted, p.moved)
}

// lotOperations are operations on an account. Each touches at most `most` keys.
// A page far back is found in at most the square of log₂ 10,000 steps.
var lotOperations = []struct {
	name string
	most int
	run  func(t *txn, cust id) error
}{
	{"balance", 5, func(t *txn, cust id) error {
		_, _, err := accountOf(t, cust)
		return err
	}},
	{"expiring points", 5 + maxExpiring, func(t *txn, cust id) error {
		_, a, err := accountOf(t, cust)
		if err != nil {
			return err
		}
		_, err = t.points.expiring(a)
		return err
	}},
	{"deduct from one lot", 25, func(t *txn, cust id) error { return moveOnce(t, cust, t.points.debit, 3) }},
	{"add", 25, func(t *txn, cust id) error { return moveOnce(t, cust, t.points.credit, 3) }},
	{"page of movements", 5 + 20 + 14*14, func(t *txn, cust id) error {
		c, err := t.customers.get(cust)
		if err != nil {
			return err
		}
		_, _, err = t.points.listMovements(c, t.cfg.Programs[0], page{250, 20}, nil)
		return err
	}},
	{"purchase", 30, func(t *txn, cust id) error {
		_, _, err := t.sales.register(newSale{Customer: cust, Type: typePurchase, Total: decimalOf(10)})
		return err
	}},
	{"return", 60, func(t *txn, cust id) error { // it finds its purchase's lot in log₂ 10,000 steps
		_, _, err := t.sales.register(newSale{Customer: cust, Type: typeReturn, Total: decimalOf(10), ExternalID: "T"})
		return err
	}},
}

// TestManyLots shows that the number of keys that an operation reads and writes
// does not grow with the account's lots. It compares 10,000 lots with one.
func TestManyLots(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"expiry":{"days":30},"rules":[` + onePer1 + `]`})
	few, many := s.customer("few"), s.customer("many")
	const lots = 10_000
	for _, cust := range []id{few, many} {
		_, err := s.sell(newSale{Customer: cust, Total: dec("10"), ExternalID: "T"})
		s.ok(err)
		s.pass(time.Second)
	}
	for _, c := range []struct {
		cust id
		lots int
	}{{few, 1}, {many, lots}} {
		must(s, func(t *txn) (any, error) {
			_, a, err := accountOf(t, c.cust)
			if err != nil {
				return nil, err
			}
			for i := range c.lots {
				expires := t.now.add(oneDay).add(time.Duration(i%500) * time.Hour)
				if err := t.points.credit(a, &movement{Category: categoryBonus, Amount: decimalOf(10), Expires: expires}); err != nil {
					return nil, err
				}
			}
			return nil, t.points.saveAccount(a)
		})
	}
	s.wantStanding(many, "100010 0 100010", "what was earned and added")

	for _, op := range lotOperations {
		counts := map[id]int{}
		for _, cust := range []id{few, many} {
			n, err := viewStore(t.Context(), s.engine.store, func(tx Tx) (int, error) {
				counted := &countedTx{Tx: newOverlay(tx)}
				_, err := runTxn(s.engine, counted, s.org, s.clock, seed{}, func(t *txn) (any, error) {
					return nil, op.run(t, cust)
				})
				return counted.keys(), err
			})
			s.ok(err)
			counts[cust] = n
		}
		if counts[many] > op.most {
			t.Errorf("%s touched %d keys with %d lots, %d with one; want at most %d", op.name, counts[many], lots, counts[few], op.most)
		}
	}
}

// moveOnce moves a few points.
func moveOnce(t *txn, cust id, move func(*account, *movement) error, points int) error {
	_, err := movePoints(t, cust, nil, &movement{Category: categoryAdjustment, Amount: decimalOf(points)}, move)
	return err
}
