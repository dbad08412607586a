package main

import (
	"slices"

	"sello/internal/blockset"
)

// Vouchers that nobody redeemed (contract §21): a rule gives one at no cost, and a reward with
// autoIssue redeems itself when the balance of its program reaches its cost, as a full card of
// stamps does. A purchase knows the vouchers that it gave. Once it is wholly returned, the ones
// that were not used are cancelled.
//
// An import records what was, and gives no voucher; nor does a tier that a change of the
// configuration leads to.

// A gift says where a voucher came from that nobody redeemed.
type gift struct {
	Auto bool   // the reward redeemed itself
	Sale id     // that it was given with; zero: with none
	Rule id     // that gave it; zero: none
	Tier string // that was reached; "" for other rules
}

func (g *gift) fields(c *coder) {
	c.bool(&g.Auto)
	c.idOrNone(&g.Sale)
	c.idOrNone(&g.Rule)
	c.text(&g.Tier)
}

// mostAutoIssued is how many vouchers one rise of a balance gives.
const mostAutoIssued = 10

// give is voucherGiver.give.
func (rw *rewardsTxn) give(a *account, r *rule, sale id) (givenVoucher, error) {
	return rw.giveBy(a, r, gift{Sale: sale, Rule: a.program.ruleID(r)})
}

// giveBy gives the reward of a rule, and notes where it came from.
func (rw *rewardsTxn) giveBy(a *account, r *rule, from gift) (given givenVoucher, err error) {
	given = givenVoucher{Program: a.program.Number, Rule: from.Rule}
	reward := rw.t.cfg.rewardKey(r.Reward)
	if reward == nil { // in a damaged file
		given.Reason = reasonInactive
		return given, nil
	}
	if reward.Program != a.program.Key {
		if a, err = rw.t.points.account(a.customer, rw.t.cfg.programKey(reward.Program)); err != nil {
			return given, err
		}
	}
	if given.Reason, err = rw.barrier(reward, a); err != nil || given.Reason != "" {
		return given, err
	}
	x, err := rw.issue(reward, a, redemption{By: creator{Type: bySystem}, Gift: from})
	if err != nil {
		return given, err
	}
	given.Redemption = x.Seq
	return given, nil
}

// barrier is the first reason why a voucher cannot be given, whatever its cost; "" if there is
// none.
func (rw *rewardsTxn) barrier(r *reward, a *account) (string, error) {
	switch {
	case a.customer.mustBeActive() != nil:
		return reasonCustomer, nil
	case r.Fulfilment != fulfilVoucher:
		return reasonInactive, nil
	}
	reasons, err := rw.unavailable(r, a.customer, a)
	if err != nil || len(reasons) == 0 || reasons[0] == reasonNoBalance {
		return "", err
	}
	return reasons[0], nil
}

// giveRisen is voucherGiver.giveRisen. What it gives makes no account rise.
func (rw *rewardsTxn) giveRisen(sale id) (list []givenVoucher, err error) {
	for len(rw.t.points.risen) > 0 {
		of := rw.t.points.risen[0]
		rw.t.points.risen = rw.t.points.risen[1:]
		c, err := rw.t.customers.get(of.customer)
		if err != nil {
			return nil, err
		}
		if c.mustBeActive() != nil {
			continue
		}
		a, err := rw.t.points.account(c, of.program)
		if err != nil {
			return nil, err
		}
		if current, _ := a.tier(); of.tier != "" && current.name() == of.tier {
			given, err := rw.giveForTier(a, of.tier, sale)
			if err != nil {
				return nil, err
			}
			list = append(list, given...)
		}
		if of.points {
			given, err := rw.autoIssue(a, sale)
			if err != nil {
				return nil, err
			}
			list = append(list, given...)
		}
	}
	return list, nil
}

// stands is voucherGiver.stands.
func (rw *rewardsTxn) stands(given givenVoucher) (bool, error) {
	if given.Redemption == 0 {
		return false, nil
	}
	x, err := rw.redemptionAt(given.Redemption)
	return err == nil && x.CancelledAt == 0, err
}

// autoIssue redeems the rewards with autoIssue that an account's balance reaches, in the order of
// the document.
func (rw *rewardsTxn) autoIssue(a *account, sale id) (list []givenVoucher, err error) {
	for _, r := range rw.t.cfg.Rewards {
		if !r.AutoIssue || r.Program != a.program.Key {
			continue
		}
		for a.Balance >= r.PointsCost && len(list) < mostAutoIssued {
			if reason, err := rw.barrier(r, a); err != nil {
				return nil, err
			} else if reason != "" {
				break
			}
			x, err := rw.issue(r, a, redemption{Points: r.PointsCost, By: creator{Type: bySystem}, Gift: gift{Auto: true, Sale: sale}})
			if err != nil {
				return nil, err
			}
			if err := rw.t.points.saveAccount(a); err != nil {
				return nil, err
			}
			list = append(list, givenVoucher{Redemption: x.Seq, Program: a.program.Number})
		}
	}
	return list, nil
}

// giveForTier gives what rules give to customers who reach a tier: once in twelve months for each
// rule and tier.
func (rw *rewardsTxn) giveForTier(a *account, reached string, sale id) (list []givenVoucher, err error) {
	for i := range a.program.Rules {
		r := &a.program.Rules[i]
		if r.On != onTier || len(r.Tiers) > 0 && !slices.Contains(r.Tiers, reached) || !r.inForce(rw.t.now.time().In(rw.t.cfg.zone)) {
			continue
		}
		from := gift{Sale: sale, Rule: a.program.ruleID(r), Tier: reached}
		if had, err := rw.hadForTier(a.customer, from); err != nil || had {
			if err != nil {
				return nil, err
			}
			continue
		}
		given, err := rw.giveBy(a, r, from)
		if err != nil {
			return nil, err
		}
		given.Name = r.Name
		list = append(list, given)
	}
	return list, nil
}

// hadForTier reports whether a rule gave a customer a voucher for a tier in the last twelve months
// that is not cancelled.
func (rw *rewardsTxn) hadForTier(c *customer, of gift) (bool, error) {
	family, err := rw.t.merges.family(c)
	if err != nil {
		return false, err
	}
	since := instantOf(addMonths(rw.t.now.time().In(rw.t.cfg.zone), -12))
	n, err := rw.t.count()
	if err != nil {
		return false, err
	}
	for _, one := range family {
		for x, err := range rw.until(one.ID, n.Redemptions) {
			if err != nil {
				return false, err
			}
			if x.CreatedAt <= since {
				break
			}
			if x.CancelledAt == 0 && x.Gift.Rule == of.Rule && x.Gift.Tier == of.Tier {
				return true, nil
			}
		}
	}
	return false, nil
}

// Vouchers expire by themselves: their status follows from the time. The sweep tells
// redemption.expired once for each voucher, and drops its entry among the due ones:
//
//	W expiry org seq → nothing

// expireVoucher tells that the voucher of a due entry has expired, and reports whether there is
// one.
func (rw *rewardsTxn) expireVoucher(k key) (bool, error) {
	seq := uintIn(k[dueOrg+4:])
	x, err := get[redemption](rw.t.Tx, rw.redemptionKey(seq))
	if err != nil || x == nil || !x.lapses() {
		return false, err
	}
	rw.t.wrote = true
	return true, rw.t.feed.emit(eventRedemptionExpired, seq)
}

// fileVouchers makes the entries of vouchers that lack one, because they expired before time
// stepped back: vouchers that have not expired at their organization's latest write, but do until
// a moment.
func (rw *rewardsTxn) fileVouchers(until instant) error {
	n, err := rw.t.count()
	if err != nil {
		return err
	}
	var due []redemption
	for e, err := range scan(rw.t.Tx, tableVoucherExpiries.in(rw.t.org), false) {
		if err != nil {
			return err
		}
		expires := instantIn(e.Key[len(e.Key)-8:])
		if n.Latest < expires && expires <= until {
			for seq := range blockset.Decode(e.Value).Newest(tableVoucherExpiries.block(e.Key)) {
				due = append(due, redemption{Seq: seq, Expires: expires})
			}
		}
	}
	for i := range due {
		k := rw.dueVoucherKey(&due[i])
		_, filed, err := rw.t.Get(k)
		if err == nil && !filed {
			err = rw.t.Put(k, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
