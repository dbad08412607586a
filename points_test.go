package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The model of an account: what was done to it, in order. Whatever is asked
// is answered by playing all of that from the beginning on a slice of lots.
type model struct {
	program *program
	zone    *time.Location
	done    []deed
}

// A deed is one operation on the account.
type deed struct {
	kind     string // add, deduct, cancel, buy or return
	at       instant
	amount   decimal
	expires  instant // of an add
	from     instant // of an add: when it is available
	earning  bool    // an add that counts for lifetime points
	of       int     // which deed a cancel or return undoes
	lateFrom instant // of a buy: the second lot
	lateEnd  instant
}

// A played model is what the deeds have led to at one moment.
type played struct {
	*model
	now      instant
	lots     []*modelLot // in the order of their credits
	debt     decimal
	lifetime decimal
	taken    map[int][]taken // by deed
	bought   map[int]*modelPurchase
	days     map[date]*basis
	moved    tally  // what statistics tell
	err      string // of the last deed
}

type modelLot struct {
	deed          int
	from, expires instant
	left          decimal
	gone          decimal // redeemed, and given back when it had expired
	paid          bool    // a debt was paid from it once it was available
}

type taken struct {
	lot    *modelLot
	amount decimal
}

type modelPurchase struct {
	date                                        date
	total, earned, returned, reversed, unearned decimal
}

func (m *model) play(now instant) *played {
	p := &played{model: m, taken: map[int][]taken{}, bought: map[int]*modelPurchase{}, days: map[date]*basis{}}
	for i, d := range m.done {
		p.pass(d.at)
		p.err = ""
		p.act(i, d)
	}
	p.pass(now)
	return p
}

// pass lets time go on: lots that have become available pay what is owed, in
// the order in which they did.
func (p *played) pass(now instant) {
	p.now = now
	var ready []*modelLot
	for _, l := range p.lots {
		if !l.paid && l.from <= now {
			ready = append(ready, l)
		}
	}
	slices.SortStableFunc(ready, func(a, b *modelLot) int { return cmp.Compare(a.from, b.from) })
	for _, l := range ready {
		l.paid = true
		paid := min(p.debt, l.left)
		p.debt -= paid
		l.left -= paid
	}
}

func (p *played) act(i int, d deed) {
	switch d.kind {
	case "add":
		p.credit(i, d.amount, d.from, d.expires)
		if d.earning {
			p.earn(d.amount)
		}
	case "deduct":
		if d.amount > p.balance() {
			p.err = "insufficient_balance"
			return
		}
		p.taken[i] = p.take(d.amount)
		p.moved.PointsRedeemed += d.amount
	case "cancel":
		for _, t := range p.taken[d.of] {
			if t.lot.expires <= p.now {
				t.lot.gone += t.amount
				continue
			}
			paid := min(p.debt, t.amount)
			p.debt -= paid
			t.lot.left += t.amount - paid
			p.moved.PointsRedeemed -= t.amount
		}
	case "buy":
		p.buy(i, d)
	case "return":
		p.bring(d)
	}
}

func (p *played) credit(deed int, amount decimal, from, expires instant) {
	if amount == 0 {
		return
	}
	p.lots = append(p.lots, &modelLot{deed: deed, from: from, expires: expires, left: amount})
	p.moved.PointsIssued += amount
	p.pass(p.now)
}

func (p *played) earn(amount decimal) {
	p.lifetime += amount
	p.day(p.today()).Points += amount
}

func (p *played) buy(i int, d deed) {
	program := p.program
	rate, divisor := program.Rules[0].Per.Points, decimal(decimalOne)
	if current, _ := program.tierAt(p.figure()); current.Multiplier != nil {
		rate, divisor = rate*(*current.Multiplier), divisor*decimalOne
	}
	first := p.round(d.amount*rate, divisor)
	all := first
	if len(program.Rules) > 1 {
		all = p.round(d.amount*rate+*program.Rules[1].Points*divisor, divisor)
	}
	p.credit(i, first, 0, program.Expiry.endOfLife(d.at, p.zone))
	p.credit(i, all-first, d.lateFrom, d.lateEnd)
	p.earn(all)
	p.day(p.today()).Spent += d.amount
	p.day(p.today()).Purchases++
	p.bought[i] = &modelPurchase{date: p.today(), total: d.amount, earned: all}
}

// round is numerator/divisor ten-thousandths, rounded as the program does.
func (p *played) round(numerator, divisor decimal) decimal {
	step := divisor
	for range decimalPlaces - p.program.PointsDecimals {
		step *= 10
	}
	whole, rest := numerator/step, numerator%step
	up := map[rounding]bool{
		roundCeil:     rest > 0,
		roundHalfUp:   2*rest >= step,
		roundHalfEven: 2*rest > step || 2*rest == step && whole%2 == 1,
	}[p.program.Rounding]
	if up {
		whole++
	}
	return whole * step / divisor
}

func (p *played) bring(d deed) {
	b := p.bought[d.of]
	if b.returned+d.amount > b.total {
		p.err = "return_exceeds_purchase"
		return
	}
	b.returned += d.amount
	spent := p.day(b.date)
	spent.Spent -= d.amount
	if b.returned == b.total {
		spent.Purchases--
	}
	if p.program.Returns == returnsKeep {
		return
	}
	should := b.earned
	if b.returned < b.total {
		step := decimal(1)
		for range decimalPlaces - p.program.PointsDecimals {
			step *= 10
		}
		should = b.earned * b.returned / b.total / step * step
	}
	p.lifetime -= should - b.unearned
	spent.Points -= should - b.unearned
	b.unearned = should

	left := b.earned // what has not expired
	for _, l := range p.lots {
		if l.deed == d.of && l.expires <= p.now {
			left -= l.left + l.gone
		}
	}
	rest := max(min(should, left)-b.reversed, 0)
	for _, l := range p.lots {
		if l.deed == d.of && l.from > p.now {
			n := min(rest, l.left)
			l.left -= n
			rest -= n
			p.reverse(b, n)
		}
	}
	n := min(rest, max(p.balance(), 0))
	p.take(n)
	p.reverse(b, n)
	if p.program.NegativeBalance == negativeDebt {
		p.debt += rest - n
		p.reverse(b, rest-n)
	}
}

func (p *played) reverse(b *modelPurchase, amount decimal) {
	b.reversed += amount
	p.moved.PointsReversed += amount
}

// available are the lots that can be spent, those that expire first first.
func (p *played) available() []*modelLot {
	var list []*modelLot
	for _, l := range p.lots {
		if l.from <= p.now && p.now < l.expires && l.left > 0 {
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(a, b *modelLot) int { return cmp.Compare(a.expires, b.expires) })
	return list
}

func (p *played) take(amount decimal) (list []taken) {
	for _, l := range p.available() {
		if n := min(amount, l.left); n > 0 {
			l.left -= n
			amount -= n
			list = append(list, taken{l, n})
		}
	}
	return list
}

func (p *played) balance() decimal {
	sum := -p.debt
	for _, l := range p.available() {
		sum += l.left
	}
	return sum
}

// expired is what was left in lots when they expired.
func (p *played) expired() (sum decimal) {
	for _, l := range p.lots {
		if l.expires <= p.now {
			sum += l.left
		}
	}
	return sum
}

// A date is a day of the organization's calendar: year, month, day.
type date [3]int

func (p *played) today() date {
	t := p.now.time().In(p.zone)
	return date{t.Year(), int(t.Month()), t.Day()}
}

func (p *played) day(d date) *basis {
	if p.days[d] == nil {
		p.days[d] = new(basis)
	}
	return p.days[d]
}

// monthsLater is the same date so many months later, or the last one of that
// month.
func (d date) monthsLater(n int) date {
	months := d[0]*12 + d[1] - 1 + n
	year, month := months/12, months%12+1
	length := []int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		length = 29
	}
	return date{year, month, min(d[2], length)}
}

// figure adds up the days that still count: in a rolling window those whose
// date so many months later is not over.
func (p *played) figure() decimal {
	var sum basis
	tb, today := p.program.TierBasis, p.today()
	for d, b := range p.days {
		if later := d.monthsLater(tb.Months); tb.Window == windowRolling && slices.Compare(later[:], today[:]) < 0 {
			continue
		}
		sum = basis{sum.Points + b.Points, sum.Spent + b.Spent, sum.Purchases + b.Purchases}
	}
	switch tb.Metric {
	case metricSpent:
		return sum.Spent
	case metricPurchases:
		return decimal(sum.Purchases * decimalOne)
	}
	return sum.Points
}

// standing is what the account's customer should see.
func (p *played) standing() standing {
	s := standing{Balance: p.balance(), Lifetime: p.lifetime, Expiring: []expiring{}, Figure: p.figure()}
	for _, l := range p.lots {
		if l.from > p.now {
			s.Pending += l.left
		}
	}
	for _, l := range p.available() {
		switch last := len(s.Expiring) - 1; {
		case l.expires == never:
		case last >= 0 && s.Expiring[last].ExpiresAt == l.expires:
			s.Expiring[last].Amount += l.left
		default:
			s.Expiring = append(s.Expiring, expiring{l.left, l.expires})
		}
	}
	s.Tier = p.program.Tiers[0].Name
	for _, tier := range p.program.Tiers {
		if s.Figure >= tier.Threshold {
			s.Tier = tier.Name
		}
	}
	return s
}

// randomProgram is a program with points of so many decimals, as a document.
func randomProgram(rnd *rand.Rand) *programDoc {
	p := &programDoc{
		Key: "club", Name: "Club", Default: true, Currency: "Puntos",
		PointsDecimals:  rnd.IntN(decimalPlaces + 1),
		Rounding:        pick(rnd, roundFloor, roundCeil, roundHalfUp, roundHalfEven),
		Returns:         pick(rnd, returnsReverse, returnsReverse, returnsReverse, returnsKeep),
		NegativeBalance: pick(rnd, negativeClamp, negativeDebt),
		TierBasis:       tierBasis{Metric: pick(rnd, metricPoints, metricSpent, metricPurchases), Window: windowLifetime},
		Tiers: []tier{
			{Name: "Bronce"},
			{Name: "Plata", Threshold: decimalOf(2), Multiplier: ptr(dec("1.25"))},
			{Name: "Oro", Threshold: decimalOf(150), Multiplier: ptr(dec("1.5"))},
		},
		Rules: []rule{{Key: "base", Name: "Base", Per: &perRule{Amount: decimalOf(1), Points: pick(rnd, dec("0.1"), dec("1"), dec("0.3333"), dec("2.5"))}}},
	}
	if rnd.IntN(2) == 0 {
		p.TierBasis.Window, p.TierBasis.Months = windowRolling, 1+rnd.IntN(13)
	}
	switch rnd.IntN(4) {
	case 1:
		p.Expiry = &expiry{Days: 40 + rnd.IntN(30)}
	case 2:
		p.Expiry = &expiry{Months: 2 + rnd.IntN(11)}
	case 3:
		p.Expiry = &expiry{Months: 2 + rnd.IntN(11), EndOf: "Month"}
	}
	if rnd.IntN(2) == 0 {
		late := rule{Key: "late", Name: "Late", Points: ptr(randomPoints(rnd, p, 50)), PendingDays: 1 + rnd.IntN(30)}
		if rnd.IntN(2) == 0 {
			late.ExpiresInDays = late.PendingDays + 1 + rnd.IntN(40)
		}
		p.Rules = append(p.Rules, late)
	}
	return p
}

// programMembers is a program as a setup takes it.
func programMembers(p *programDoc) string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	members, ok := strings.CutPrefix(strings.TrimSuffix(string(text), "}"), `{"key":"club","name":"Club",`)
	if !ok {
		panic(string(text))
	}
	return members
}

// randomPoints is a number of points above zero that the program can give.
func randomPoints(rnd *rand.Rand, p *programDoc, most int) decimal {
	step := decimal(1)
	for range decimalPlaces - p.PointsDecimals {
		step *= 10
	}
	if rnd.IntN(6) == 0 {
		return step // the least there is
	}
	return step * decimal(1+rnd.IntN(int(decimalOf(most)/step)))
}

// TestAccounts plays random histories on an account and on its model. After
// each step all that can be asked must be the same, without the sweep having
// run; the sweep may change nothing but the ledger.
func TestAccounts(t *testing.T) {
	histories(t, 2000, func(t *testing.T, rnd *rand.Rand) {
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

// A history acts on a shop's customer and on its model alike.
type history struct {
	*model
	t    *testing.T
	rnd  *rand.Rand
	shop *shop
	cust id

	sales       map[int]*sale
	redemptions map[int]id
}

func newHistory(t *testing.T, rnd *rand.Rand) *history {
	doc := randomProgram(rnd)
	begin := time.Date(2016+rnd.IntN(12), time.Month(1+rnd.IntN(12)), 1+rnd.IntN(31), rnd.IntN(24), rnd.IntN(60), 0, 0, time.UTC)
	s := newShop(t, setup{
		zone:    pick(rnd, "America/Mexico_City", "America/Sao_Paulo", "America/Santiago", "America/Havana", "Asia/Beirut", "UTC"),
		at:      begin.Format(time.RFC3339),
		program: programMembers(doc),
		also: `"rewards":[{"key":"small","program":"club","name":"Small","pointsCost":3},
			{"key":"large","program":"club","name":"Large","pointsCost":60}]`,
	})
	if rnd.IntN(2) == 0 { // else no account has so many that they lie apart
		s.engine.sizes.few = fewSizes{rnd.IntN(4), rnd.IntN(4), rnd.IntN(4)}
	}
	h := &history{t: t, rnd: rnd, shop: s, cust: s.customer("ana"), sales: map[int]*sale{}, redemptions: map[int]id{}}
	h.model = ask(s, func(t *txn) (*model, error) {
		return &model{program: t.cfg.Programs[0], zone: t.cfg.zone}, nil
	})
	return h
}

// wait lets time go on, often to just before, at or after a moment at which
// something changes by itself.
func (h *history) wait() {
	var moments []instant
	for _, l := range h.play(h.shop.clock).lots {
		for _, at := range []instant{l.from, l.expires} {
			if at > h.shop.clock && at != never {
				moments = append(moments, at)
			}
		}
	}
	if len(moments) > 0 && h.rnd.IntN(3) == 0 {
		h.shop.clock = max(h.shop.clock, pick(h.rnd, moments...)+instant(h.rnd.IntN(3)-1))
		return
	}
	longest := pick(h.rnd, 0, time.Second, 5*time.Hour, 3*oneDay, 20*oneDay, 100*oneDay)
	h.shop.pass(time.Duration(h.rnd.Int64N(int64(longest) + 1)))
}

// act does one thing to the account and the model.
func (h *history) act() {
	s, rnd, now := h.shop, h.rnd, h.shop.clock
	d := deed{at: now, kind: pick(rnd, "add", "add", "deduct", "redeem", "cancel", "buy", "buy", "return", "return")}
	var err error
	switch d.kind {
	case "add":
		category := pick(rnd, addCategories...)
		m := &movement{Category: category, Amount: h.points(100)}
		d.expires = h.program.Expiry.endOfLife(now, h.zone)
		if rnd.IntN(5) == 0 {
			m.AvailFrom = now.add(time.Duration(rnd.IntN(30)) * oneDay)
		}
		if rnd.IntN(3) == 0 {
			m.Expires = max(m.AvailFrom, now).add(1 + time.Duration(rnd.IntN(50))*oneDay/2)
			d.expires = m.Expires
		}
		d.amount, d.from, d.earning = m.Amount, m.AvailFrom, category != "Refund" && category != "Adjustment"
		_, err = s.move(h.cust, m)
	case "deduct":
		d.amount = h.points(60)
		if balance := h.play(now).balance(); balance > 0 && rnd.IntN(3) == 0 {
			d.amount = balance + decimal(rnd.IntN(2)) // all there is, or a ten-thousandth too much
		}
		_, err = s.move(h.cust, &movement{Category: pick(rnd, deductCategories...), Amount: -d.amount})
	case "redeem":
		d.kind = "deduct"
		reward := rnd.IntN(2)
		var x *redemption
		x, err = do(s, func(t *txn) (*redemption, error) { return t.redeem(h.cust, t.cfg.Rewards[reward].ID, "") })
		if err != nil {
			d.amount = maxDecimal // whichever it was, it was more than is there
		} else {
			d.amount = x.Points
			h.redemptions[len(h.done)] = x.ID
		}
	case "cancel":
		if len(h.redemptions) == 0 {
			d.kind = "nothing"
			break
		}
		d.of = pick(rnd, slices.Sorted(maps.Keys(h.redemptions))...)
		_, err = do(s, func(t *txn) (*redemption, error) { return t.cancel(h.redemptions[d.of]) })
		delete(h.redemptions, d.of)
	case "buy":
		d.amount = decimal(1 + rnd.IntN(int(decimalOf(100))))
		if len(h.program.Rules) > 1 {
			late := h.program.Rules[1]
			local := now.time().In(h.zone)
			d.lateFrom = instantOf(local.AddDate(0, 0, late.PendingDays))
			d.lateEnd = h.program.Expiry.endOfLife(now, h.zone)
			if late.ExpiresInDays > 0 {
				d.lateEnd = instantOf(local.AddDate(0, 0, late.ExpiresInDays))
			}
		}
		var sold *sale
		if sold, err = s.sell(newSale{Customer: h.cust, Total: d.amount}); err == nil {
			h.sales[len(h.done)] = sold
		}
	case "return":
		if len(h.sales) == 0 {
			d.kind = "nothing"
			break
		}
		d.of = pick(rnd, slices.Sorted(maps.Keys(h.sales))...)
		b := h.play(now).bought[d.of]
		d.amount = pick(rnd, b.total-b.returned, 1+b.total/3, decimal(1+rnd.Int64N(int64(b.total)+1)))
		if d.amount == 0 {
			d.amount = 1
		}
		_, err = s.sell(newSale{Type: typeReturn, Customer: h.cust, Total: d.amount, Original: &h.sales[d.of].ID})
	}
	h.done = append(h.done, d)
	if code := h.play(now).err; codeOf(err) != code {
		h.t.Fatalf("%s: got %q (%v), want %q", d.kind, codeOf(err), err, code)
	}
}

func (h *history) points(most int) decimal { return randomPoints(h.rnd, &h.program.programDoc, most) }

func (h *history) compare(when string) {
	h.t.Helper()
	same(h.t, fmt.Sprintf("%s (step %d, %s)", when, len(h.done), h.shop.clock), h.shop.standing(h.cust), h.play(h.shop.clock).standing())
}

// checkLedger holds the ledger, with all written down that is due, against
// the model.
func (h *history) checkLedger() {
	var sum, expired decimal
	for _, m := range h.shop.ledger(h.cust) {
		sum += m.Amount
		if m.Amount == 0 {
			h.t.Errorf("the ledger has %s of nothing", m.Category)
		}
		if m.Category != categoryExpiration {
			continue
		}
		expired -= m.Amount
		for _, u := range m.Uses {
			if u.Expires != m.CreatedAt {
				h.t.Errorf("a lot that expired at %s was written down as expired at %s", u.Expires, m.CreatedAt)
			}
		}
	}
	p := h.play(h.shop.clock)
	if want := p.standing(); sum != want.Balance+want.Pending {
		h.t.Errorf("movements add up to %s, balance and pending to %s", sum, want.Balance+want.Pending)
	}
	p.moved.PointsExpired = p.expired()
	if expired != p.expired() {
		h.t.Errorf("expired in the ledger: %s, in the model: %s", expired, p.expired())
	}
	counted := ask(h.shop, func(t *txn) (tally, error) {
		s, err := t.statistics(statsQuery{from: dayOn(2000, 1, 1), to: dayOn(2050, 1, 1), groupBy: groupMonth})
		if err != nil {
			return tally{}, err
		}
		all := s.total.tally
		return tally{PointsIssued: all.PointsIssued, PointsRedeemed: all.PointsRedeemed, PointsExpired: all.PointsExpired, PointsReversed: all.PointsReversed}, nil
	})
	same(h.t, "points in the statistics", counted, p.moved)
}

// TestManyLots shows that an account with 10,000 lots costs no more than one
// with one: what is read and written of the store does not grow with them.
func TestManyLots(t *testing.T) {
	s := newShop(t, setup{program: `"expiry":{"days":30}`})
	few, many := s.customer("few"), s.customer("many")
	const lots = 10_000
	for _, c := range []struct {
		cust id
		lots int
	}{{few, 1}, {many, lots}} {
		must(s, func(t *txn) (any, error) {
			_, a, err := t.accountOf(c.cust)
			if err != nil {
				return nil, err
			}
			for i := range c.lots {
				expires := t.now.add(oneDay).add(time.Duration(i%500) * time.Hour)
				if err := t.credit(a, &movement{Category: categoryBonus, Amount: decimalOf(10), Expires: expires}); err != nil {
					return nil, err
				}
			}
			return nil, t.saveAccount(a)
		})
	}
	s.wantStanding(many, "100000 0 100000", "what was added")

	// Each of these touches so many keys at most. A page far back is found in
	// at most the square of log₂ 10,000 steps.
	operations := []struct {
		name string
		most int
		run  func(t *txn, cust id) error
	}{
		{"balance", 5, func(t *txn, cust id) error {
			_, _, err := t.accountOf(cust)
			return err
		}},
		{"expiring points", 5 + maxExpiring, func(t *txn, cust id) error {
			_, a, err := t.accountOf(cust)
			if err != nil {
				return err
			}
			_, err = t.expiring(a)
			return err
		}},
		{"deduct from one lot", 25, func(t *txn, cust id) error { return t.moveOnce(cust, t.debit, 3) }},
		{"add", 25, func(t *txn, cust id) error { return t.moveOnce(cust, t.credit, 3) }},
		{"page of movements", 5 + 20 + 14*14, func(t *txn, cust id) error {
			c, err := t.customer(cust)
			if err != nil {
				return err
			}
			_, _, err = t.listMovements(c, t.cfg.Programs[0], page{250, 20}, nil)
			return err
		}},
		{"purchase", 30, func(t *txn, cust id) error {
			_, _, err := t.registerSale(newSale{Customer: cust, Type: typePurchase, Total: decimalOf(10)})
			return err
		}},
	}
	for _, op := range operations {
		counts := map[id]int{}
		for _, cust := range []id{few, many} {
			n, err := view(t.Context(), s.store, func(tx Tx) (int, error) {
				counted := &countingTx{Tx: newOverlay(tx)}
				_, err := runTxn(s.engine, counted, s.org, s.clock, seed{}, func(t *txn) (any, error) {
					return nil, op.run(t, cust)
				})
				return counted.keys, err
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
func (t *txn) moveOnce(cust id, move func(*account, *movement) error, points int) error {
	_, err := t.movePoints(cust, nil, &movement{Category: categoryAdjustment, Amount: decimalOf(points)}, move)
	return err
}

// A countingTx counts the keys that are read, written or scanned over.
type countingTx struct {
	Tx
	keys int
}

func (c *countingTx) Get(key []byte) ([]byte, bool, error) {
	c.keys++
	return c.Tx.Get(key)
}

func (c *countingTx) Put(key, value []byte) error {
	c.keys++
	return c.Tx.Put(key, value)
}

func (c *countingTx) Delete(key []byte) error {
	c.keys++
	return c.Tx.Delete(key)
}

func (c *countingTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		c.keys++
		for e, err := range c.Tx.Scan(lo, hi, reverse) {
			c.keys++
			if !yield(e, err) {
				return
			}
		}
	}
}
