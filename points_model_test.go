package main

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A model of an account is the list of what was done to it, in order. Every
// question is answered by playing the whole list on a slice of lots. The list may be of
// several accounts in one program; questions are about one of them.
type model struct {
	program *program
	zone    *time.Location
	done    []deed
	who     int // whose account questions are about

	enrolled []instant // the people
}

// A deed is one operation on the account.
type deed struct {
	kind     string // add, deduct, cancel, buy, return, hold, capture, release or merge
	who      int    // whose account
	other    int    // of a merge: whose account is merged into it
	at       instant
	amount   decimal
	expires  instant // of an add or a hold
	from     instant // of an add: when it is available
	reward   bool    // a deduct that is a redemption, by a reward or by hand
	earning  bool    // an add that counts for lifetime points
	of       int     // index of the deed that a cancel, return, capture or release ends
	pay      decimal // of a buy: the points that pay
	held     int     // of a buy: 1 + the index of the hold whose points pay; 0: none
	lateFrom instant // of a buy: when the second lot is available
	lateEnd  instant // of a buy: when the second lot expires
}

// A played is the state that the deeds of a model have led to at one moment, for one
// account.
type played struct {
	*model
	all       map[int]*played // by whose account it is
	now       instant
	lots      []*modelLot // in the order of their credits
	holds     []*modelHold
	debt      decimal
	lifetime  decimal
	purchases int             // that are not returned whole
	taken     map[int][]taken // by deed
	bought    map[int]*modelPurchase
	days      map[date]*basis
	end       instant    // when all lapses; never: nothing does
	ended     []instant  // when it did
	active    []*instant // activities that stand
	did       map[int]*instant
	moved     tally  // as the statistics should count it
	err       string // code of the last deed's error
}

type modelLot struct {
	deed          int
	from, expires instant
	left          decimal
	gone          decimal // redeemed, and given back after the lot had expired
	lapsed        decimal // left when all lapsed
	paid          bool    // it has become available, and has paid what was owed then
}

type taken struct {
	lot    *modelLot
	amount decimal
	back   decimal // came back, or would have
	over   bool    // a period ended since
}

// A modelHold is an open hold.
type modelHold struct {
	deed    int
	expires instant
	list    []taken
	over    bool // the period ended while it was open
}

type modelPurchase struct {
	date                                        date
	total, earned, returned, reversed, unearned decimal

	paid, back decimal // points
}

func (m *model) play(now instant) *played {
	begin := &played{model: m, all: map[int]*played{}, taken: map[int][]taken{}, bought: map[int]*modelPurchase{}, did: map[int]*instant{}}
	for i, d := range m.done {
		p := begin.account(d.who, d.at)
		p.err = ""
		p.act(i, d)
	}
	return begin.account(m.who, now)
}

// account returns an account at a moment. What was taken and bought is in one list for all.
func (p *played) account(who int, now instant) *played {
	if p.all[who] == nil {
		enrolled := p.enrolled[who]
		p.all[who] = &played{model: p.model, all: p.all, taken: p.taken, bought: p.bought, days: map[date]*basis{}, did: p.did, end: p.endAfter(enrolled), active: []*instant{&enrolled}}
	}
	p.all[who].pass(now)
	return p.all[who]
}

// takeOver gives the account all that another one has.
func (p *played) takeOver(from *played) {
	p.mark(false)
	from.mark(false)
	p.end = max(p.end, from.end)
	p.active = append(p.active, from.active[1:]...) // but the enrolment
	for _, l := range from.available() {
		p.renew(p.now)
		paid := min(p.debt, l.left)
		p.debt -= paid
		l.left -= paid
	}
	owed := from.debt
	for _, t := range p.take(min(owed, max(p.balance(), 0))) {
		owed -= t.amount
	}
	p.debt += owed
	p.lots = append(p.lots, from.lots...)
	p.holds, from.holds = append(p.holds, from.holds...), nil
	slices.SortStableFunc(p.lots, func(a, b *modelLot) int { return cmp.Compare(a.deed, b.deed) })
	p.lifetime += from.lifetime
	p.purchases += from.purchases
	for d, b := range from.days {
		*p.day(d) = p.day(d).plus(*b)
	}
	from.lots, from.debt, from.lifetime, from.purchases, from.days = nil, 0, 0, 0, map[date]*basis{}
}

// pass moves the time on to now. Lots that have become available pay what is
// owed, in the order in which they became available, and holds that have expired give back
// their points.
func (p *played) pass(now instant) {
	p.now = now
	for {
		if p.end <= now {
			p.mark(true)
		}
		var ready *modelLot
		for _, l := range p.lots {
			if !l.paid && l.from <= now && (ready == nil || l.from < ready.from) {
				ready = l
			}
		}
		var ends *modelHold
		for _, h := range p.holds {
			if h.expires <= now && (ends == nil || h.expires < ends.expires) {
				ends = h
			}
		}
		switch {
		case p.lapses() <= now && (ready == nil || p.end <= ready.from) && (ends == nil || p.end <= ends.expires):
			p.ended = append(p.ended, p.end)
			for _, l := range p.lots {
				if l.paid && l.expires > p.end {
					l.lapsed, l.left = l.lapsed+l.left, 0
				}
			}
		case ready != nil && (ends == nil || ready.from <= ends.expires):
			ready.paid = true
			p.renew(cmp.Or(ready.from, now))
			paid := min(p.debt, ready.left)
			p.debt -= paid
			ready.left -= paid
		case ends != nil:
			p.release(ends, ends.list, ends.expires)
		default:
			return
		}
	}
}

// mark notes of what is held or spent whether the period has ended since.
func (p *played) mark(over bool) {
	for _, h := range p.holds {
		h.over = over && (h.over || h.expires >= p.end)
	}
	for _, list := range p.taken {
		for i := range list {
			if slices.Contains(p.lots, list[i].lot) {
				list[i].over = over
			}
		}
	}
}

// comesBack gives points back to a lot: they pay what is owed, and what is left lapses if over is set.
func (p *played) comesBack(l *modelLot, left decimal, over bool) {
	paid := min(p.debt, left)
	p.debt -= paid
	if left -= paid; over {
		l.lapsed += left
	} else {
		l.left += left
	}
}

// release ends a hold, of whose points the list goes back to its lots.
func (p *played) release(h *modelHold, list []taken, at instant) {
	p.holds = slices.DeleteFunc(p.holds, func(o *modelHold) bool { return o == h })
	for _, t := range list {
		if t.lot.expires > at {
			p.comesBack(t.lot, t.amount, h.over)
		} else {
			t.lot.left += t.amount
		}
	}
}

// capture takes the first points of a hold for good, and releases the rest.
func (p *played) capture(h *modelHold, points decimal) (first []taken) {
	var rest []taken
	for _, t := range h.list {
		n := min(points, t.amount)
		points -= n
		if n > 0 {
			first = append(first, taken{lot: t.lot, amount: n, over: h.over})
		}
		if n < t.amount {
			rest = append(rest, taken{lot: t.lot, amount: t.amount - n})
		}
	}
	p.release(h, rest, p.now)
	return first
}

// open returns an open hold; nil if it has ended.
func (p *played) open(deed int) *modelHold {
	i := slices.IndexFunc(p.holds, func(h *modelHold) bool { return h.deed == deed })
	if i < 0 {
		return nil
	}
	return p.holds[i]
}

func (h *modelHold) amount() (sum decimal) {
	for _, t := range h.list {
		sum += t.amount
	}
	return sum
}

// endHold captures a part of a hold, or nothing of it.
func (p *played) endHold(i int, d deed) {
	switch h := p.open(d.of); {
	case h == nil:
		p.err = "hold_closed"
	case d.kind == "release":
		p.release(h, h.list, p.now)
	case d.amount > h.amount():
		p.err = "hold_exceeded"
	default:
		p.taken[i] = p.capture(h, d.amount)
		p.does(i, p.now)
		p.moved.PointsRedeemed += d.amount
	}
}

// worth is what points pay, in cents.
func (p *played) worth(points decimal) decimal {
	y := p.program.Payment
	return points * y.Amount / y.Points / 100 * 100
}

// step is what points for paying are multiples of.
func (p *played) step() decimal {
	step := p.program.Payment.Step
	if step == 0 {
		step = decimalOne
		for range p.program.PointsDecimals {
			step /= 10
		}
	}
	return step
}

// wrongPayment says why points cannot pay for a purchase.
func (p *played) wrongPayment(d deed) string {
	y, available := p.program.Payment, p.balance()
	if y == nil {
		return "points_payment_unavailable"
	}
	over := "insufficient_balance"
	if d.held > 0 {
		h := p.open(d.held - 1)
		if h == nil {
			return "hold_closed"
		}
		available, over = h.amount(), "hold_exceeded"
	}
	most := d.amount
	if y.MaxPercent != nil {
		most = d.amount * *y.MaxPercent / (100 * decimalOne)
	}
	switch {
	case d.pay%p.step() != 0:
		return "points_payment_step"
	case d.pay < y.MinPoints || p.worth(d.pay) == 0:
		return "points_payment_too_small"
	case p.worth(d.pay) > most:
		return "points_payment_too_large"
	case d.pay > available:
		return over
	}
	return ""
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
		if d.reward {
			p.does(i, d.at)
		}
	case "cancel":
		for _, t := range p.taken[d.of] {
			if t.lot.expires <= p.now {
				t.lot.gone += t.amount
				continue
			}
			p.comesBack(t.lot, t.amount, t.over)
			p.moved.PointsRedeemed -= t.amount
		}
		p.undo(d.of)
	case "buy":
		p.buy(i, d)
	case "return":
		b := p.bought[d.of]
		before := b.returned
		if p.bring(d); b.returned == b.total && before < b.total {
			p.undo(d.of)
		}
	case "hold":
		if d.amount > p.balance() {
			p.err = "insufficient_balance"
			return
		}
		p.holds = append(p.holds, &modelHold{deed: i, expires: d.expires, list: p.take(d.amount)})
	case "capture", "release":
		p.endHold(i, d)
	case "merge":
		p.takeOver(p.account(d.other, d.at))
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
	program, counted := p.program, d.amount
	if d.pay > 0 {
		if p.err = p.wrongPayment(d); p.err != "" {
			return
		}
		if program.Payment.EarnOn == earnOnPaid {
			counted -= p.worth(d.pay)
		}
	}
	rate, divisor := program.Rules[0].Per.Points, decimal(decimalOne)
	if current, _ := program.tierAt(p.figure()); current.Multiplier != nil {
		rate, divisor = rate*(*current.Multiplier), divisor*decimalOne
	}
	var welcome, late decimal
	for _, r := range program.Rules[1:] {
		switch {
		case r.Key == "late":
			late = *r.Points
		case r.Key == "first" && p.purchases == 0:
			welcome = *r.Points
		}
	}
	p.purchases++
	p.does(i, d.at)
	if d.held > 0 {
		p.taken[i] = p.capture(p.open(d.held-1), d.pay)
	} else {
		p.taken[i] = p.take(d.pay)
	}
	p.moved.PointsRedeemed += d.pay
	// The rules' parts are rounded one after the other: base, late, first.
	later := p.round(counted*rate+late*divisor, divisor) - p.round(counted*rate, divisor)
	all := p.round(counted*rate+(welcome+late)*divisor, divisor)
	if d.pay > 0 && counted == 0 { // paid wholly with points
		later, all = 0, 0
	}
	p.credit(i, all-later, 0, program.Expiry.endOfLife(d.at, p.zone))
	p.credit(i, later, d.lateFrom, d.lateEnd)
	p.earn(all)
	p.day(p.today()).Spent += d.amount
	p.day(p.today()).Purchases++
	p.bought[i] = &modelPurchase{date: p.today(), total: d.amount, earned: all, paid: d.pay}
}

// round returns numerator/divisor ten-thousandths, rounded as the program does.
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
		p.purchases--
	}
	p.payBack(b, p.taken[d.of])
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
		if l.deed == d.of {
			left -= l.lapsed
		}
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
	own := n // at most: of the purchase's own lots
	for _, l := range p.available() {
		if l.deed == d.of {
			taken := min(own, l.left)
			l.left -= taken
			own -= taken
		}
	}
	p.take(own)
	p.reverse(b, n)
	if p.program.NegativeBalance == negativeDebt {
		p.debt += rest - n
		p.reverse(b, rest-n)
	}
}

// payBack gives back what paid for the goods that came back, those used last first.
func (p *played) payBack(b *modelPurchase, list []taken) {
	should := b.paid
	if b.returned < b.total && b.paid > 0 {
		unit := decimal(decimalOne)
		for range p.program.PointsDecimals {
			unit /= 10
		}
		should = b.paid * b.returned / b.total / unit * unit
	}
	rest := should - b.back
	b.back = should
	for i := range slices.Backward(list) {
		t := &list[i]
		n := min(rest, t.amount-t.back)
		rest -= n
		t.back += n
		if t.lot.expires <= p.now {
			t.lot.gone += n
			continue
		}
		p.comesBack(t.lot, n, t.over)
		p.moved.PointsRedeemed -= n
	}
}

func (p *played) reverse(b *modelPurchase, amount decimal) {
	b.reversed += amount
	p.moved.PointsReversed += amount
}

// available returns the lots that can be spent, sorted by expiry.
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
			list = append(list, taken{lot: l, amount: n})
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

// expired returns what was left in lots when they expired.
func (p *played) expired() (sum decimal) {
	for _, l := range p.lots {
		if sum += l.lapsed; l.expires <= p.now {
			sum += l.left
		}
	}
	return sum
}

// endAfter is when all lapses after an activity: the end of the same date so many months later.
func (m *model) endAfter(at instant) instant {
	if m.program.Expiry == nil || m.program.Expiry.InactiveMonths == 0 {
		return never
	}
	t := at.time().In(m.zone)
	d := date{t.Year(), int(t.Month()), t.Day()}.monthsLater(m.program.Expiry.InactiveMonths)
	return dayOn(d[0], time.Month(d[1]), d[2]+1).start(m.zone) - 1
}

// lapses is when all lapses; never if there is nothing by then.
func (p *played) lapses() instant {
	sum := -p.debt
	for _, l := range p.lots {
		if l.paid && l.expires > p.end {
			sum += l.left
		}
	}
	if sum <= 0 {
		return never
	}
	return p.end
}

// does notes what a deed is an activity of.
func (p *played) does(i int, at instant) {
	p.end = max(p.end, p.endAfter(at))
	p.did[i] = &at
	p.active = append(p.active, &at)
}

// renew begins a new period, if the last one is over.
func (p *played) renew(at instant) {
	if p.end <= at {
		p.end = p.endAfter(at)
		p.active = append(p.active, &at) // for good
	}
}

// undo takes an activity away.
func (p *played) undo(i int) {
	gone := p.did[i]
	p.active = slices.DeleteFunc(p.active, func(at *instant) bool { return at == gone })
	if p.end > p.endAfter(*gone) {
		return
	}
	end := dayOf(p.now, p.zone) + 31
	last := end.start(p.zone) - 1
	for _, at := range p.active {
		last = max(last, p.endAfter(*at))
	}
	p.end = min(p.end, last)
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

// monthsLater returns the same day n months later, or the last day of that month
// if it has no such day.
func (d date) monthsLater(n int) date {
	months := d[0]*12 + d[1] - 1 + n
	year, month := months/12, months%12+1
	length := []int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		length = 29
	}
	return date{year, month, min(d[2], length)}
}

// figure is the customer's: with calendar years the better one of this and the last.
func (p *played) figure() decimal {
	if p.program.TierBasis.Window == windowCalendarYear {
		year := p.today()[0]
		return max(p.figureOf(year), p.figureOf(year-1), 0)
	}
	return p.figureOf(0)
}

// figureOf adds up the days that still count, of a calendar year or, for 0, of all. In a rolling
// window a day counts up to and including its date Months later.
func (p *played) figureOf(year int) decimal {
	var sum basis
	tb, today := p.program.TierBasis, p.today()
	for d, b := range p.days {
		if year != 0 && d[0] != year {
			continue
		}
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

// standing returns what the account's customer should see.
func (p *played) standing() standing {
	s := standing{Balance: p.balance(), Lifetime: p.lifetime, Expiring: []expiring{}, Figure: p.figure()}
	for _, l := range p.lots {
		if l.from > p.now {
			s.Pending += l.left
		}
	}
	for _, h := range p.holds {
		s.Held += h.amount()
	}
	for _, l := range p.available() {
		switch last, ends := len(s.Expiring)-1, min(l.expires, p.end); {
		case ends == never:
		case last >= 0 && s.Expiring[last].ExpiresAt == ends:
			s.Expiring[last].Amount += l.left
		default:
			s.Expiring = append(s.Expiring, expiring{l.left, ends})
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

// randomProgram returns a random program, as a document.
func randomProgram(rnd *rand.Rand) *programDoc {
	p := &programDoc{
		Key: "club", Name: "Club", Default: true, Currency: currencyName{Many: "Puntos"},
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
	switch rnd.IntN(4) {
	case 0:
		p.TierBasis.Window = windowCalendarYear
	case 1:
		p.TierBasis.Window, p.TierBasis.Months = windowRolling, 1+rnd.IntN(13)
	}
	if rnd.IntN(4) > 0 {
		p.Payment = &paymentDoc{Points: pick(rnd, decimalOf(1), decimalOf(10), decimalOf(3)), Amount: pick(rnd, decimalOf(1), dec("0.5"), dec("2.25")), EarnOn: pick(rnd, earnOnPaid, earnOnTotal)}
		if rnd.IntN(2) == 0 {
			p.Payment.MinPoints = decimalOf(rnd.IntN(5))
		}
		if rnd.IntN(2) == 0 {
			p.Payment.MaxPercent = ptr(decimalOf(1 + rnd.IntN(100)))
		}
		if rnd.IntN(3) == 0 {
			p.Payment.Step = decimalOf(1 + rnd.IntN(4))
		}
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
	if rnd.IntN(2) == 0 {
		p.Rules = append(p.Rules, rule{Key: "first", Name: "First", Points: ptr(randomPoints(rnd, p, 30)), FirstPurchase: true})
	}
	return p
}

// maybeIdle makes the points of some programs lapse.
func maybeIdle(rnd *rand.Rand, p *programDoc) *programDoc {
	if rnd.IntN(2) == 0 {
		if p.Expiry == nil {
			p.Expiry = new(expiry)
		}
		p.Expiry.InactiveMonths = 1 + rnd.IntN(3)
	}
	return p
}

// programMembers returns a program as a setup takes it.
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

// randomPoints returns a number of points, above zero and up to most, that the
// program can give.
func randomPoints(rnd *rand.Rand, p *programDoc, most int) decimal {
	step := decimal(1)
	for range decimalPlaces - p.PointsDecimals {
		step *= 10
	}
	if rnd.IntN(6) == 0 {
		return step // the smallest amount
	}
	return step * decimal(1+rnd.IntN(int(decimalOf(most)/step)))
}
