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
func (f *pageData) Gifts(s saleShape) (list []string) {
	for _, x := range s.GivenIn() {
		switch {
		case s.Type == typeReturn:
			list = append(list, f.T("gift."+x.Status, x.RewardName, textOr(x.Code, "")))
		case x.Code == nil: // in a rehearsal
			list = append(list, f.T("gift.would", x.RewardName))
		case *x.ExpiresAt == never:
			list = append(list, f.T("gift.new", x.RewardName, textOr(x.Code, "")))
		default:
			list = append(list, f.T("gift.new.until", x.RewardName, textOr(x.Code, ""), f.Date(*x.ExpiresAt)))
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
func (f *pageData) RuleGave(r ruleShare) string {
	switch {
	case r.Reason != nil:
		return notGiven(f.Lang, *r.Reason)
	case r.Issued != nil:
		return f.T("gift.voucher")
	}
	return f.Number(r.Points)
}

var giftTexts = panelTexts{
	"gift.new":       {"Gana un vale de «%s»: %s", "Earns a voucher for “%s”: %s"},
	"gift.new.until": {"Gana un vale de «%s»: %s, hasta el %s", "Earns a voucher for “%s”: %s, until %s"},
	"gift.would":     {"Ganaría un vale de «%s»", "It would earn a voucher for “%s”"},
	"gift.missed":    {"«%s» no pudo dar su vale: %s", "“%s” could not give its voucher: %s"},
	"gift.Issued":    {"Su vale de «%s» (%s) sigue vigente", "Its voucher for “%s” (%s) stands"},
	"gift.Cancelled": {"Su vale de «%s» (%s) se canceló: el código ya no vale", "Its voucher for “%s” (%s) was cancelled: the code is void"},
	"gift.Used":      {"Su vale de «%s» (%s) ya se había usado", "Its voucher for “%s” (%s) had been used"},
	"gift.Expired":   {"Su vale de «%s» (%s) ya había vencido", "Its voucher for “%s” (%s) had expired"},
	"gift.voucher":   {"un vale", "a voucher"},
	"gift.of":        {"Vales que dio", "Vouchers that it gave"},
}
