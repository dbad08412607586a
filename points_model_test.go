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
}

// A deed is one operation on the account.
type deed struct {
	kind     string // add, deduct, cancel, buy, return or merge
	who      int    // whose account
	other    int    // of a merge: whose account is merged into it
	at       instant
	amount   decimal
	expires  instant // of an add
	from     instant // of an add: when it is available
	earning  bool    // an add that counts for lifetime points
	of       int     // index of the deed that a cancel or return undoes
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
	debt      decimal
	lifetime  decimal
	purchases int             // that are not returned whole
	taken     map[int][]taken // by deed
	bought    map[int]*modelPurchase
	days      map[date]*basis
	moved     tally  // as the statistics should count it
	err       string // code of the last deed's error
}

type modelLot struct {
	deed          int
	from, expires instant
	left          decimal
	gone          decimal // redeemed, and given back after the lot had expired
	paid          bool    // it has become available, and has paid what was owed then
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
	begin := &played{model: m, all: map[int]*played{}, taken: map[int][]taken{}, bought: map[int]*modelPurchase{}}
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
		p.all[who] = &played{model: p.model, all: p.all, taken: p.taken, bought: p.bought, days: map[date]*basis{}}
	}
	p.all[who].pass(now)
	return p.all[who]
}

// takeOver gives the account all that another one has.
func (p *played) takeOver(from *played) {
	for _, l := range from.available() {
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
	slices.SortStableFunc(p.lots, func(a, b *modelLot) int { return cmp.Compare(a.deed, b.deed) })
	p.lifetime += from.lifetime
	p.purchases += from.purchases
	for d, b := range from.days {
		*p.day(d) = p.day(d).plus(*b)
	}
	from.lots, from.debt, from.lifetime, from.purchases, from.days = nil, 0, 0, 0, map[date]*basis{}
}

// pass moves the time on to now. Lots that have become available pay what is
// owed, in the order in which they became available.
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
	program := p.program
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
	first := p.round(d.amount*rate+welcome*divisor, divisor)
	all := p.round(d.amount*rate+(welcome+late)*divisor, divisor)
	p.credit(i, first, 0, program.Expiry.endOfLife(d.at, p.zone))
	p.credit(i, all-first, d.lateFrom, d.lateEnd)
	p.earn(all)
	p.day(p.today()).Spent += d.amount
	p.day(p.today()).Purchases++
	p.bought[i] = &modelPurchase{date: p.today(), total: d.amount, earned: all}
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

// expired returns what was left in lots when they expired.
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

// figure adds up the days that still count. In a rolling window a day counts up
// to and including its date Months later.
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

// standing returns what the account's customer should see.
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

// randomProgram returns a random program, as a document.
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
	if rnd.IntN(2) == 0 {
		p.Rules = append(p.Rules, rule{Key: "first", Name: "First", Points: ptr(randomPoints(rnd, p, 30)), FirstPurchase: true})
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
