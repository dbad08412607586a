package main

import "slices"

// Vouchers that nobody redeemed, in the panel: what a purchase gave, and what became of it.

// UsedIn are the vouchers that were used in a sale, and GivenIn those that it gave.
func (s saleShape) UsedIn() []saleRedemption {
	return slices.DeleteFunc(slices.Clone(s.Redemptions), saleRedemption.given)
}

func (s saleShape) GivenIn() []saleRedemption {
	return slices.DeleteFunc(slices.Clone(s.Redemptions), func(x saleRedemption) bool { return !x.given() })
}

// Gifts says which vouchers a purchase gave, or what became of those of a return's purchase, and
// which could not be given.
func (f prose) Gifts(s saleShape) (list []string) {
	for _, x := range s.GivenIn() {
		switch {
		case s.Type == typeReturn:
			list = append(list, f.T("gift."+x.Status, x.RewardName, textOr(x.Code, "")))
		case x.Code == nil: // in a rehearsal
			list = append(list, f.T("gift.would", x.RewardName))
		case *x.ExpiresAt == never:
			list = append(list, f.T("gift.new", x.RewardName, textOr(x.Code, "")))
		default:
			list = append(list, f.T("gift.new.until", x.RewardName, textOr(x.Code, ""), f.format.Date(*x.ExpiresAt)))
		}
	}
	for _, p := range append([]saleProgram{s.Programs.Own}, s.Programs.Others...) {
		for _, r := range p.AppliedRules {
			if r.Reason != nil {
				list = append(list, f.T("gift.missed", r.Name, notGiven(f.Lang, *r.Reason)))
			}
		}
	}
	return list
}

// RuleGave is what a rule gave a sale: points, or a voucher.
func (f prose) RuleGave(r ruleShare) string {
	switch {
	case r.Reason != nil:
		return notGiven(f.Lang, *r.Reason)
	case r.Issued != nil:
		return f.T("gift.voucher")
	}
	return f.format.Number(r.Points)
}
