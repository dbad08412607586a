package main

import "slices"

// Paying with points in the panel: the till's control, and in words what a payment was.

// payMember is `pay` of a sale: a box asks for as many points as the sale can take, which it
// settles itself, and a number that is typed for so many. A button overrules a number that was too
// large.
var payMember = formMember{name: "pay", kind: madeMember, make: paying}

const (
	payTyped   = "pay.points"
	payInstead = "pay.instead"
)

// paying makes `pay` of what was chosen. To pay with points is to redeem them.
func paying(v *panelRequest, name string) (literal string) {
	typed := trimBlanks(v.typedText(payTyped))
	switch {
	case v.typedText(payInstead) != "" || typed == "" && v.typedText(name) != "":
		literal = string(appendObject(nil, object{{"max", "true"}}))
	case typed != "":
		literal = string(appendObject(nil, object{{"points", v.amount(payTyped, typed)}}))
	default:
		return ""
	}
	if err := v.mayAll("rewards:write"); err != nil {
		v.faults = append(v.faults, publicError(err))
	}
	return literal
}

// A payOffer is points that can pay, and what they are worth; without points there are none.
type payOffer struct{ Points, Amount decimal }

// payOffer is what points of a customer's own program can pay of a purchase at most. Its amount and
// its items may leave less.
func (v *panelRequest) payOffer(t *txn, c *customerDetail) payOffer {
	terms, ok := t.cfg.payTerms(t.cfg.program(c.LoyaltyProgramID))
	if !ok || c.Status != statusActive || v.mayAll("rewards:write") != nil {
		return payOffer{}
	}
	if v.typedText(payTyped) != "" { // the fault is beside what was typed
		for i, e := range v.faults {
			if e.field == payMember.name {
				v.faults[i] = e.on(payTyped)
			}
		}
	}
	n := terms.most(maxDecimal, max(c.Balance, 0))
	return payOffer{n, terms.worth(n)}
}

// payTooMuch reports whether fewer points than those that were typed can pay.
func (v *panelRequest) payTooMuch() bool {
	return slices.ContainsFunc(v.faults, func(e *apiError) bool {
		most, _ := e.context["maxPoints"].(decimal)
		return e.code == codePointsPaymentTooLarge && most > 0
	})
}

// What templates ask for.

// PayBox is the box that pays with as many points as can.
func (f *pageData) PayBox() boxView {
	return boxView{ID: controlID(payMember.name), Name: payMember.name, Value: "max", Label: f.T("payment.use"), Checked: f.checked(payMember.name, false)}
}

// UpTo says how many points there are to pay with, and what they are worth.
func (o payOffer) UpTo(f *pageData, unit currencyName) string {
	return f.T("payment.upto", f.Points(o.Points, unit), f.MoneyWithCode(o.Amount))
}

// PaidUnit is the currency of a payment's points.
func (f *pageData) PaidUnit(y *paymentShape) currencyName {
	return f.request.cfg.program(y.LoyaltyProgramID).Currency
}

// PaidPoints are the points that paid; of a return, those that came back.
func (f *pageData) PaidPoints(y *paymentShape) string {
	points := f.Points(max(y.Points, -y.Points-y.PointsExpired), f.PaidUnit(y))
	if y.ofHold && y.Points > 0 {
		return f.T("payment.held", points)
	}
	return points
}

// PaidExpired are the points of a return's payment that did not come back; "" if all did.
func (f *pageData) PaidExpired(y *paymentShape) string {
	if y.PointsExpired == 0 {
		return ""
	}
	return f.Points(y.PointsExpired, f.PaidUnit(y))
}

// PaidBack says what a return of goods that points paid gives back, or, of one that was looked up,
// what it gave.
func (f *pageData) PaidBack(s saleShape, now bool) string {
	y, money, name, none := s.Payment, f.MoneyWithCode(s.AmountDue), "payment.back", "payment.back.none"
	if !now {
		name, none = "payment.gave", "payment.gave.none"
	}
	if back := -y.Points - y.PointsExpired; back > 0 {
		return f.Counted(name, f.Number(back), f.PaidUnit(y).Of(back), money)
	}
	return f.T(none, money)
}

// MovementName says what moved points. Neither a payment nor a capture is a redemption of a reward.
func (f prose) MovementName(m movementShape) string {
	name := "category." + m.Category
	if paid := name + ".paid"; m.TransactionID != nil && f.Lang.Has(paid) {
		name = paid
	} else if held := name + ".held"; m.HoldID != nil && f.Lang.Has(held) {
		name = held
	}
	return f.T(name)
}
