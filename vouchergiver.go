package main

// A voucherGiver gives vouchers that nobody redeems, where points and purchases bring a customer to
// them: the rewards do (rewards_gifts.go).
type voucherGiver interface {
	// give gives the reward of a rule of an account's program to its customer, if stock and limits
	// of the reward allow it. sale is the one that is being registered; zero: none.
	give(a *account, r *rule, sale id) (givenVoucher, error)

	// giveRisen gives what customers have come to reach by the accounts that were written: a
	// reward with autoIssue, or a tier.
	giveRisen(sale id) ([]givenVoucher, error)

	// stands reports whether a voucher that was given is not cancelled.
	stands(given givenVoucher) (bool, error)

	// undoSpending takes a debit of a moment, which was undone, out of what keeps an account's points
	// from lapsing (idle.go).
	undoSpending(a *account, at instant) error
}

// A givenVoucher is a voucher that a sale gave, or one that a rule could not give.
type givenVoucher struct {
	Redemption uint64 // 0: not given
	Program    uint32 // of the rule
	Rule       id     // zero: the reward redeemed itself
	Name       string // of a rule that is not about purchases
	Reason     string // why it was not given, as GET /rewards says it; "" if it was
}

func (v *givenVoucher) fields(c *coder) {
	c.uint(&v.Redemption)
	uintField(c, &v.Program)
	c.idOrNone(&v.Rule)
	c.text(&v.Name)
	c.text(&v.Reason)
}

// A risenAccount is one that was written with more points that are available, or in a higher tier.
// What follows is given once the rest is written, and its account is read again.
type risenAccount struct {
	customer id
	program  *program
	points   bool
	tier     string // that was reached; "": none
}

// noteRisen notes an account that rose, if its program gives vouchers for that.
func (pt *pointsTxn) noteRisen(a *account, tier string) {
	if !a.program.isAbove(tier, a.Tier) || a.recounting {
		tier = ""
	}
	rose := a.rose
	a.rose = false
	if (rose || tier != "") && !pt.t.viewing && !pt.t.importing && a.program.gives {
		pt.risen = append(pt.risen, risenAccount{a.customer.ID, a.program, rose, tier})
	}
}
