package main

import (
	"math/big"
	"slices"
)

// Points can pay for a part of a purchase (contract §20): where a program says what its points
// are worth, a till names how many are used. The debit and the purchase are one transaction.
// The points come from the balance before the purchase, and its rules look at the customer as
// it was then. A return gives points back in proportion, lot by lot.

// unit is the smallest number with so many decimals that is above zero.
func unit(decimals int) decimal { return decimal(roundingStep(decimals, roundFloor)) }

// payTerms are what the points of a program pay now: n points are worth n × amount ÷ points,
// rounded down to a multiple of cent.
type payTerms struct {
	points, amount decimal
	least          decimal // what the program asks for at least
	percent        decimal // of a purchase's total, at most
	step           decimal // points are used in multiples of it
	decimals       int     // of amounts
	cent           decimal // amounts are multiples of it

	excluded fraction // of a purchase: the amount of items that points do not pay for
}

// payTerms are the terms of a program; ok is false if its points pay nothing.
func (c *config) payTerms(p *program) (y payTerms, ok bool) {
	doc := p.Payment
	if doc == nil {
		return y, false
	}
	y = payTerms{
		points: doc.Points, amount: doc.Amount, least: doc.MinPoints, percent: decimalOf(100), step: doc.Step,
		decimals: c.amountDecimals(), cent: unit(c.amountDecimals()),
	}
	if doc.MaxPercent != nil {
		y.percent = *doc.MaxPercent
	}
	if y.step == 0 {
		y.step = unit(p.PointsDecimals)
	}
	return y, true
}

// multipleOf rounds a number that is not negative to a multiple of step, the largest one if that is
// out of range.
func multipleOf(step decimal, f fraction, up bool) decimal {
	r := f.quo(step.fraction()).rat()
	n, rest := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if up && rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	if most := big.NewInt(int64(maxDecimal / step)); n.Cmp(most) > 0 {
		n = most
	}
	return decimal(n.Int64()) * step
}

func (y *payTerms) worth(points decimal) decimal {
	return multipleOf(y.cent, points.fraction().mul(y.amount.fraction()).quo(y.points.fraction()), false)
}

// price is the fewest points that are worth an amount, or more where they come in steps.
func (y *payTerms) price(amount decimal) decimal {
	return multipleOf(y.step, amount.fraction().mul(y.points.fraction()).quo(y.amount.fraction()), true)
}

// fewest is the fewest points that can be used: what the program asks for, and what is worth
// anything.
func (y *payTerms) fewest() decimal {
	return max(multipleOf(y.step, y.least.fraction(), true), y.price(y.cent))
}

// ceiling is the highest amount that points can pay of a purchase.
func (y *payTerms) ceiling(total decimal) decimal {
	most := multipleOf(y.cent, total.fraction().mul(y.percent.fraction()).quo(decimalOf(100).fraction()), false)
	return min(most, multipleOf(y.cent, total.fraction().minus(y.excluded), false))
}

// share is how many per cent of a purchase points can pay, to the hundredth.
func (y *payTerms) share(total decimal) decimal {
	left := total.fraction().minus(y.excluded).mul(decimalOf(100).fraction()).quo(total.fraction())
	return min(y.percent, multipleOf(decimalOne/100, left, false))
}

// most is how many points, of up to limit, pay the highest amount that is possible for a purchase:
// the fewest that do; 0 if none can be used.
func (y *payTerms) most(total, limit decimal) decimal {
	n, ceiling := multipleOf(y.step, limit.fraction(), false), y.ceiling(total)
	if y.worth(n) > ceiling {
		n = y.price(ceiling+y.cent) - y.step // one step fewer than what is worth too much
	}
	if n < y.fewest() {
		return 0
	}
	return max(y.price(y.worth(n)), y.fewest())
}

// A newPayment is what a caller says about a payment with points: how many, which amount they
// are to pay, or as many as are possible. The points may come from a hold: then all of its points,
// unless the caller says how many or which amount.
type newPayment struct {
	Program *id // nil: the customer's own
	Points  decimal
	Amount  decimal
	Max     bool
	Hold    *id // nil: from the balance
	Proof   givenProof
}

// prove refuses to pay, unless so few points need no proof or the one given is good. What is held
// was proved when it was set aside. It comes before what would tell the balance, but where all that can
// pay is asked for.
func (in *newPayment) prove(t *txn, c *customer, points decimal) error {
	if in.Hold != nil {
		return nil
	}
	return t.cards.prove(c, points, in.Proof)
}

// choose returns how many points pay for a purchase: from a hold, if held is not nil, else from the
// balance of an account. It is 0 where Max finds none that can. Held points pay although the
// customer has a debt since: they were set aside before.
func (y *payTerms) choose(in *newPayment, total decimal, a *account, held *hold) (decimal, error) {
	points, field := in.Points, "pay.points"
	switch {
	case in.Max && a.Balance >= 0:
		return y.most(total, a.Balance), nil
	case in.Max: // a debt
		points = y.fewest()
	case in.Amount%y.cent != 0:
		return 0, invalidField("pay.amount", "debe tener a lo sumo %d decimales", y.decimals)
	case in.Amount > 0:
		points = y.price(in.Amount)
	case points == 0: // all that is held
		points, field = held.Amount, "pay.hold"
	}
	switch {
	case points%y.step != 0:
		return 0, newError(codePointsPaymentStep).number(y.step).on(field).with("step", y.step)
	case points < y.fewest():
		return 0, newError(codePointsPaymentTooSmall).number(y.fewest()).on("pay").with("minPoints", y.fewest())
	case y.worth(points) > y.ceiling(total):
		most := y.most(total, maxDecimal)
		return 0, newError(codePointsPaymentTooLarge).number(y.share(total)).on("pay").with("maxPoints", most).with("maxAmount", y.worth(most))
	case held != nil && points > held.Amount:
		return 0, exceedsHold(held).on("pay")
	case held == nil && points > a.Balance:
		return 0, a.lacks(points)
	}
	return points, nil
}

// A salePayment is what points paid of a purchase, or what a return undoes of that.
type salePayment struct {
	Program  uint32
	Points   decimal
	Amount   decimal
	Movement uint64 // sequence of the debit, or of what came back; 0: nothing did

	// Of a purchase.
	Unit       decimal // points come back in multiples of it: the smallest of the program's points
	BackPoints decimal // by its returns so far
	BackAmount decimal

	Expired decimal // of a return: the part of Points that had expired, and stays so

	Hold id // of a purchase: whose points they were; zero: none
}

func (y *salePayment) fields(c *coder) {
	uintField(c, &y.Program)
	c.decimal(&y.Points)
	c.decimal(&y.Amount)
	c.uint(&y.Movement)
	c.decimal(&y.Unit)
	c.decimal(&y.BackPoints)
	c.decimal(&y.BackAmount)
	c.decimal(&y.Expired)
	c.idOrNone(&y.Hold)
}

// paymentIsSound reports whether a sale has no payment or one that its type can have.
func (s *sale) paymentIsSound() bool {
	y := s.Payment
	if y == nil || s.Type == typeReturn {
		return y == nil || min(y.Points, y.Amount, y.Expired) >= 0
	}
	return y.Points > 0 && y.Amount >= 0 && y.Unit > 0 && y.Expired == 0
}

// due is what of a purchase's total is left to pay with money, or of a return's total to give back.
func (s *sale) due() decimal {
	if s.Payment == nil {
		return s.Total
	}
	return s.Total - s.Payment.Amount
}

// paid is what points paid of a purchase; of a return, below 0, what it undid of that.
func (s *sale) paid() (points, amount decimal) {
	switch {
	case s.Payment == nil:
		return 0, 0
	case s.Type == typeReturn:
		return -s.Payment.Points, -s.Payment.Amount
	}
	return s.Payment.Points, s.Payment.Amount
}

// payableFor is how long after a purchase happened it can still be paid with points, in
// milliseconds: later nobody knows what the customer had then.
const payableFor = 5 * 60 * 1000

// A payer is the account that pays for a purchase, and the hold whose points pay, if there is one.
type payer struct {
	*account
	held *hold
}

// planPayment works out what points pay of a purchase, and notes it in the sale. It changes no
// account: it returns the account that takePayment takes the points from, none if no points pay, and
// the amount that rules count.
func (sa *salesTxn) planPayment(c *customer, s *sale, in *newPayment, list []affectedAccount) (from payer, counted decimal, err error) {
	if in == nil {
		return from, s.Total, nil
	}
	p, err := sa.payingProgram(c, in)
	if err != nil {
		return from, 0, err
	}
	terms, ok := sa.t.cfg.payTerms(p)
	switch {
	case !ok:
		return from, 0, newError(codePointsPaymentUnavailable).on("pay")
	case s.CreatedAt < sa.t.now-payableFor:
		return from, 0, newError(codePointsPaymentLate).on("pay")
	}
	if from.account, err = sa.accountOf(c, p, list); err != nil {
		return from, 0, err
	}
	if in.Hold != nil {
		if from.held, err = sa.t.points.holdAt(*in.Hold); err == nil {
			err = from.held.mustBeOpen()
		}
		if err != nil {
			return from, 0, err
		}
	}
	left := (&rule{ExcludeSKUs: p.Payment.ExcludeSKUs}).amountLeft(&facts{total: s.Total, items: s.Items})
	terms.excluded = s.Total.fraction().minus(left)
	if !in.Max {
		if err := in.prove(sa.t, c, max(in.Points, terms.price(in.Amount))); err != nil {
			return from, 0, err
		}
	}
	points, err := terms.choose(in, s.Total, from.account, from.held)
	if err == nil && in.Max {
		err = in.prove(sa.t, c, points)
	}
	if err != nil || points == 0 {
		return payer{}, s.Total, err
	}
	s.Payment = &salePayment{Program: p.Number, Points: points, Amount: terms.worth(points), Unit: unit(p.PointsDecimals)}
	if in.Hold != nil {
		s.Payment.Hold = *in.Hold
	}
	if p.Payment.EarnOn == earnOnTotal {
		return from, s.Total, nil
	}
	return from, s.due(), nil
}

// payingProgram returns the program whose points pay. A hold of another customer is not found.
func (sa *salesTxn) payingProgram(c *customer, in *newPayment) (*program, error) {
	p, err := sa.t.programOf(c, in.Program)
	if err != nil || in.Hold == nil {
		return p, err
	}
	h, err := sa.t.points.hold(*in.Hold)
	if err != nil {
		return nil, err
	}
	own, err := sa.t.merges.owns(c, h.Customer)
	if err == nil && (!own || in.Program != nil && h.Program != p.Number) {
		err = newError(codeHoldNotFound)
	}
	return sa.t.cfg.programNumber(h.Program), err
}

// accountOf returns the customer's account in a program: the one that the sale changes anyway, if
// it is among these.
func (sa *salesTxn) accountOf(c *customer, p *program, list []affectedAccount) (*account, error) {
	for i := range list {
		if list[i].program == p {
			return list[i].account, nil
		}
	}
	return sa.t.points.account(c, p)
}

// saveOther writes an account, unless it is in list: the sale writes these anyway.
func (sa *salesTxn) saveOther(a *account, list []affectedAccount) error {
	if slices.ContainsFunc(list, func(p affectedAccount) bool { return p.account == a }) {
		return nil
	}
	return sa.t.points.saveAccount(a)
}

// takePayment takes the points that pay for a purchase, as planPayment found.
func (sa *salesTxn) takePayment(s *sale, from payer, list []affectedAccount) (err error) {
	if from.account == nil {
		return nil
	}
	m := &movement{Category: categoryRedemption, Amount: s.Payment.Points, Transaction: s.ID, CreatedAt: s.CreatedAt}
	if from.held != nil {
		m, err = sa.t.points.closeHold(from.account, from.held, holdEnd{holdCaptured, s.Payment.Points, sa.t.now, s.ID})
	} else {
		err = sa.t.points.debit(from.account, m)
	}
	if err != nil {
		return err
	}
	s.Payment.Movement = m.Seq
	return sa.saveOther(from.account, list)
}

// returnPayment gives back what points paid of the goods that a return brings back: to the lots
// that the points came from, the lots used last first. Points that have expired stay expired. The
// purchase already contains the return.
func (sa *salesTxn) returnPayment(c *customer, s, purchase *sale, list []affectedAccount) error {
	if purchase.Payment == nil {
		return nil
	}
	y := purchase.Payment
	points, amount := purchase.owedPayment(s.Total, unit(sa.t.cfg.amountDecimals()))
	if points == 0 && amount == 0 {
		return nil
	}
	debit, err := sa.t.points.movement(y.Movement)
	if err != nil {
		return err
	}
	a, err := sa.accountOf(c, sa.t.cfg.programNumber(y.Program), list)
	if err != nil {
		return err
	}
	m := &movement{Transaction: s.ID, CreatedAt: s.CreatedAt}
	if err := sa.t.points.giveBack(a, debit, debit.usedLast(y.BackPoints, points), m); err != nil {
		return err
	}
	s.Payment = &salePayment{Program: y.Program, Points: points, Amount: amount, Movement: m.Seq, Expired: points - m.Amount}
	y.BackPoints += points
	y.BackAmount += amount
	return sa.saveOther(a, list)
}

// owedPayment is what of a purchase's payment a return of a total has to undo, which the purchase
// already contains: the part of the points that belongs to all returns so far, rounded down, less
// what earlier ones undid. What brings back the last of the total undoes the rest. The amount is what
// these points were worth, but such that the rest of the return's total is never below 0, and all
// returns together give back no more money than was paid.
func (s *sale) owedPayment(total, cent decimal) (points, amount decimal) {
	y := s.Payment
	should, paid := y.Points, y.Amount
	if s.Returned < s.Total {
		part := multipleOf(y.Unit, y.Points.fraction().mul(s.Returned.fraction()).quo(s.Total.fraction()), false)
		should = max(part, y.BackPoints)
		paid = multipleOf(cent, y.Amount.fraction().mul(should.fraction()).quo(y.Points.fraction()), false)
	}
	given := s.Returned - total - y.BackAmount // money, by earlier returns
	money := min(max(total-(paid-y.BackAmount), 0), s.Total-y.Amount-given)
	return should - y.BackPoints, total - money
}

// usedLast returns where the last of a debit's points came from, beginning with the very last: it
// leaves out as many as passed says, and stops after points.
func (m *movement) usedLast(passed, points decimal) (list []use) {
	for _, u := range slices.Backward(m.Uses) {
		before := min(u.Amount, passed)
		u.Amount = min(u.Amount-before, points)
		passed -= before
		points -= u.Amount
		if u.Amount > 0 {
			list = append(list, u)
		}
	}
	return list
}

// isPaidAs reports whether a purchase was paid as in says, so that in may be the same purchase, sent
// again. An amount agrees if the points that paid are the fewest that are worth it. Max agrees with
// any payment, and with none.
func (sa *salesTxn) isPaidAs(s *sale, in *newPayment) (bool, error) {
	y := s.Payment
	if in == nil || y == nil {
		return in == nil && y == nil || in != nil && in.Max, nil
	}
	program := s.Program
	if in.Program != nil {
		p := sa.t.cfg.program(*in.Program)
		if p == nil {
			return false, nil
		}
		program = p.Number
	}
	hold := id{}
	if in.Hold != nil {
		hold, program = *in.Hold, y.Program
	}
	switch {
	case program != y.Program || hold != y.Hold:
		return false, nil
	case in.Amount > 0:
		terms, ok := sa.t.cfg.payTerms(sa.t.cfg.programNumber(program))
		if ok && terms.worth(y.Points) == y.Amount {
			return terms.price(in.Amount) == y.Points, nil
		}
		fewer := y.Amount.fraction().mul((y.Points - y.Unit).fraction()).quo(y.Points.fraction()) // the points are worth something else by now
		return in.Amount <= y.Amount && fewer.minus(in.Amount.fraction()).sign() < 0, nil
	case in.Hold != nil && in.Points == 0: // all that is held
		h, err := sa.t.points.holdAt(hold)
		return err == nil && h.Amount == y.Points, err
	}
	return in.Max || in.Points == y.Points, nil
}

// countPayment adds what points paid of a purchase to the tally, or takes away what a return gives
// back of that.
func (s *tally) countPayment(x *sale) {
	points, amount := x.paid()
	s.PointsPaid += points
	s.AmountPaid += amount
}
