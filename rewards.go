package main

import (
	"cmp"
	"slices"
	"time"
)

// Rewards and their stock, and redemptions: a redemption takes a reward's points and gives the reward,
// or a voucher for it, in one transaction. Cancelling it gives the points back.

// A redemption is a reward given for points.
type redemption struct {
	Seq uint64 // from the key

	ID          id
	Code        string // unique in the organization, easy to read aloud
	Customer    id
	Reward      id
	RewardName  string
	Program     uint32
	Points      decimal
	Balance     decimal // of the account, after it or after its cancellation
	Comment     string
	Movement    uint64 // Seq of the debit
	CreatedAt   instant
	CancelledAt instant // 0 unless cancelled
	By          creator

	Expires instant // of a voucher, never if it does not; 0: it is none
	UsedAt  instant // of a voucher; 0 unless used
	UsedBy  creator
	Sale    id // in which it was used; zero: not known
	Effect  effect

	Gift gift // of one that nobody redeemed (rewards_gifts.go)
}

// An effect is what a till takes off; without a Type it is none.
type effect struct {
	Type    string  `json:"type"`
	Amount  decimal `json:"amount,omitempty"`
	Percent decimal `json:"percent,omitempty"`
	SKU     string  `json:"sku,omitempty"`
}

// Tags of a redemption's optional fields.
const (
	redemptionVoucher = 1
	redemptionUse     = 2
	redemptionEffect  = 3
	redemptionGift    = 4
)

func (x *redemption) fields(c *coder) {
	c.id(&x.Customer) // first: customerIn reads no further
	c.id(&x.ID)
	c.text(&x.Code)
	c.id(&x.Reward)
	c.text(&x.RewardName)
	uintField(c, &x.Program)
	c.decimal(&x.Points)
	c.decimal(&x.Balance)
	c.text(&x.Comment)
	c.uint(&x.Movement)
	c.instant(&x.CreatedAt)
	c.instant(&x.CancelledAt)
	x.By.fields(c)
	optionalField(c, redemptionVoucher, &x.Expires, (*coder).instant)
	if c.optional(redemptionUse, x.UsedAt != 0) {
		c.instant(&x.UsedAt)
		x.UsedBy.fields(c)
		c.idOrNone(&x.Sale)
	}
	if c.optional(redemptionEffect, x.Effect != (effect{})) {
		x.Effect.fields(c)
	}
	if c.optional(redemptionGift, x.Gift != (gift{})) {
		x.Gift.fields(c)
	}
}

func (e *effect) fields(c *coder) {
	c.text(&e.Type)
	c.decimal(&e.Amount)
	c.decimal(&e.Percent)
	c.text(&e.SKU)
}

const (
	redemptionIssued    = "Issued" // a voucher that can be used
	redemptionUsed      = "Used"
	redemptionCancelled = "Cancelled"
	redemptionExpired   = "Expired"
	redemptionCompleted = "Completed" // no voucher: the reward was given at once
)

// status is what the redemption is at a moment.
func (x *redemption) status(at instant) string {
	s := x.recorded()
	if s == redemptionIssued && x.Expires <= at {
		return redemptionExpired
	}
	return s
}

// recorded is the status as far as the record says: Issued for an expired voucher.
func (x *redemption) recorded() string {
	switch {
	case x.CancelledAt != 0:
		return redemptionCancelled
	case x.UsedAt != 0:
		return redemptionUsed
	case x.Expires != 0:
		return redemptionIssued
	}
	return redemptionCompleted
}

// lapses reports whether the redemption is a voucher that expires if nobody uses it.
func (x *redemption) lapses() bool { return x.recorded() == redemptionIssued && x.Expires != never }

// A rewardsTxn is rewards and redemptions in a transaction.
type rewardsTxn struct{ t *txn }

func (rw *rewardsTxn) redemptionKey(seq uint64) key { return orgKey('r', rw.t.org).u64(seq) }
func (rw *rewardsTxn) countKey(reward id) key       { return orgKey('s', rw.t.org).id(reward) }

func (rw *rewardsTxn) customerRewardKey(cust, reward id) key {
	return customerKey(rw.t.org, cust, partRewardUse).id(reward)
}

// stock is how many of the reward are left to give; nil if there is no limit.
func (rw *rewardsTxn) stock(r *reward) (*int, error) {
	if r.Stock == nil {
		return nil, nil
	}
	given, _, err := getUint(rw.t.Tx, rw.countKey(r.ID))
	left := max(*r.Stock-int(given), 0)
	return &left, err
}

// Reasons why a reward is not available to a customer, in the order in which
// redeeming checks them.
const (
	reasonCustomer  = "CustomerInactive"
	reasonInactive  = "Inactive"
	reasonNotYet    = "NotYetValid"
	reasonOver      = "NoLongerValid"
	reasonTier      = "TierRequired"
	reasonSegment   = "SegmentRequired"
	reasonNoStock   = "OutOfStock"
	reasonLimit     = "LimitReached"
	reasonNoBalance = "InsufficientBalance"
)

// unavailable lists why the customer cannot redeem the reward now; it is empty if
// nothing prevents it. a is the customer's account in the reward's program.
func (rw *rewardsTxn) unavailable(r *reward, c *customer, a *account) ([]string, error) {
	reasons := []string{}
	if r.Status != statusActive {
		reasons = append(reasons, reasonInactive)
	}
	switch {
	case !within(rw.t.now, r.ValidFrom, "", rw.t.cfg.zone):
		reasons = append(reasons, reasonNotYet)
	case !within(rw.t.now, "", r.ValidTo, rw.t.cfg.zone):
		reasons = append(reasons, reasonOver)
	}
	current, _ := a.tier()
	if len(r.Tiers) > 0 && !slices.Contains(r.Tiers, current.name()) {
		reasons = append(reasons, reasonTier)
	}
	if len(r.Segments) > 0 {
		own, err := rw.t.points.account(c, rw.t.cfg.programNumber(c.Program))
		if err != nil {
			return nil, err
		}
		in, err := rw.t.rules.segmentsOf(own)
		if err != nil {
			return nil, err
		}
		if !overlap(r.Segments, keysOf(in)) {
			reasons = append(reasons, reasonSegment)
		}
	}
	stock, err := rw.stock(r)
	if err != nil {
		return nil, err
	}
	if stock != nil && *stock == 0 {
		reasons = append(reasons, reasonNoStock)
	}
	if r.LimitPerCustomer != nil {
		had, _, err := getUint(rw.t.Tx, rw.customerRewardKey(c.ID, r.ID))
		if err != nil {
			return nil, err
		}
		if int(had) >= *r.LimitPerCustomer {
			reasons = append(reasons, reasonLimit)
		}
	}
	if a.Balance < r.PointsCost {
		reasons = append(reasons, reasonNoBalance)
	}
	return reasons, nil
}

// redeem takes the reward's points from the customer and records the redemption in
// one transaction, if nothing prevents it (spec: POST /rewards/redeem). A cost other than
// expected fails with price_changed; a nil expected is any cost (contract §19).
func (rw *rewardsTxn) redeem(customerID, productID id, comment string, expected *decimal, proof givenProof) (*redemption, error) {
	c, err := rw.t.customers.get(customerID)
	if err != nil {
		return nil, err
	}
	r, err := rw.get(productID)
	if err != nil {
		return nil, err
	}
	if err := c.mustBeActive(); err != nil {
		return nil, err
	}
	if expected != nil && *expected != r.PointsCost {
		return nil, newError(codePriceChanged).on("expectedPoints").with("pointsCost", r.PointsCost)
	}
	if err := rw.t.cards.prove(c, r.PointsCost, proof); err != nil {
		return nil, err
	}
	a, err := rw.t.points.account(c, rw.t.cfg.programKey(r.Program))
	if err != nil {
		return nil, err
	}
	reasons, err := rw.unavailable(r, c, a)
	if err != nil {
		return nil, err
	}
	if len(reasons) > 0 && reasons[0] != reasonNoBalance { // debit refuses that, with figures
		return nil, refusedRedemption(reasons)
	}
	x, err := rw.issue(r, a, redemption{Points: r.PointsCost, Comment: comment, By: rw.t.by})
	if err != nil {
		return nil, err
	}
	rw.t.points.redeemed(a, rw.t.now) // also if it cost nothing
	return x, rw.t.points.saveAccount(a)
}

// issue takes a redemption's points from an account, which the caller saves, and records it. is
// says how many points, why and by whom.
func (rw *rewardsTxn) issue(r *reward, a *account, is redemption) (*redemption, error) {
	x := &is
	x.ID, x.Customer, x.Reward, x.RewardName, x.Program = rw.t.id(), a.customer.ID, r.ID, r.Name, a.program.Number
	x.CreatedAt, x.Expires, x.Effect = rw.t.now, r.voucherExpiry(rw.t.now, rw.t.cfg.zone), r.Effect.effect()
	if x.Points > 0 {
		m := &movement{Category: categoryRedemption, Amount: x.Points, Comment: x.Comment, Redemption: x.ID, By: x.By}
		if err := rw.t.points.debit(a, m); err != nil {
			return nil, err
		}
		x.Movement = m.Seq
	}
	x.Balance = a.Balance
	var err error
	if x.Code, err = rw.newCode(); err != nil {
		return nil, err
	}
	if err := rw.numberRedemption(x); err != nil {
		return nil, err
	}
	return x, rw.t.put(rw.redemptionKey(x.Seq), x)
}

func refusedRedemption(reasons []string) error {
	switch reasons[0] {
	case reasonNoStock:
		return newError(codeRewardOutOfStock)
	case reasonLimit:
		return newError(codeRedemptionLimitReached)
	}
	return newError(codeRewardUnavailable).with("reasons", reasons)
}

// voucherExpiry is when a voucher expires that is issued at a moment; never if it does
// not; 0 if redeeming gives no voucher.
func (r *reward) voucherExpiry(at instant, zone *time.Location) instant {
	switch {
	case r.Fulfilment != fulfilVoucher:
		return 0
	case r.ValidDays == nil:
		return never
	}
	return endOfDays(at, *r.ValidDays, zone)
}

func (e *effectDoc) effect() (v effect) {
	if e == nil {
		return v
	}
	v.Type = e.Type
	switch e.Type {
	case effectAmount:
		v.Amount = *e.Amount
	case effectPercent:
		v.Percent = *e.Percent
	case effectProduct:
		v.SKU = *e.SKU
	}
	return v
}

// valid reports whether an effect is none, or one that a document can describe.
func (e effect) valid() bool {
	switch e.Type {
	case effectAmount:
		return e.Amount > 0 && e == effect{Type: e.Type, Amount: e.Amount}
	case effectPercent:
		return e.Percent > 0 && e.Percent <= decimalOf(100) && e == effect{Type: e.Type, Percent: e.Percent}
	case effectProduct:
		return e.SKU != "" && e == effect{Type: e.Type, SKU: e.SKU}
	}
	return e == effect{}
}

// numberRedemption gives a new redemption its number, writes its entries by id, by
// code and in the sets of rewards_redemptions.go, and counts it.
func (rw *rewardsTxn) numberRedemption(x *redemption) error {
	n, err := rw.t.count()
	if err != nil {
		return err
	}
	n.Redemptions++
	x.Seq = n.Redemptions
	if err := rw.t.putUint(orgKey('R', rw.t.org).id(x.ID), x.Seq); err != nil {
		return err
	}
	if err := rw.t.putUint(orgKey('w', rw.t.org).text(x.Code), x.Seq); err != nil {
		return err
	}
	if err := rw.fileRedemption(x); err != nil {
		return err
	}
	if x.lapses() {
		if err := rw.t.Put(rw.dueVoucherKey(x), nil); err != nil {
			return err
		}
	}
	if err := rw.t.feed.emit(eventRedemptionCreated, x.Seq); err != nil {
		return err
	}
	return rw.countRedemption(x.Customer, x.Reward, +1)
}

// get finds a reward of this organization. Any other id gives
// reward_not_found.
func (rw *rewardsTxn) get(rid id) (*reward, error) {
	if r := rw.t.cfg.reward(rid); r != nil {
		return r, nil
	}
	return nil, newError(codeRewardNotFound)
}

// countRedemption adds change to how often the reward was redeemed, in all and by
// the customer.
func (rw *rewardsTxn) countRedemption(cust, reward id, change int) error {
	for _, k := range []key{rw.countKey(reward), rw.customerRewardKey(cust, reward)} {
		if err := rw.t.countAt(k, change); err != nil {
			return err
		}
	}
	return nil
}

// codeLetters leaves out characters that are mistaken for one another when written
// or said in Spanish: 0 O, 1 I L, 2 Z, 5 S, 8 B V.
const codeLetters = "ACDEFGHJKMNPQRTUWXY34679"

// newCode makes a code like KM7A-4XQP that no redemption has.
func (rw *rewardsTxn) newCode() (string, error) {
	for {
		code := make([]byte, 0, 9)
		var random [1]byte
		for len(code) < 9 {
			if len(code) == 4 {
				code = append(code, '-')
				continue
			}
			rw.t.bytes(random[:])
			if int(random[0]) < 256-256%len(codeLetters) {
				code = append(code, codeLetters[int(random[0])%len(codeLetters)])
			}
		}
		_, taken, err := rw.t.Get(orgKey('w', rw.t.org).text(string(code)))
		if err != nil {
			return "", err
		}
		if !taken {
			return string(code), nil
		}
	}
}

func (rw *rewardsTxn) redemptionAt(seq uint64) (*redemption, error) {
	x, err := existing[redemption](rw.t.Tx, rw.redemptionKey(seq))
	if err != nil {
		return nil, err
	}
	x.Seq = seq
	return x, nil
}

// redemption finds a redemption of this organization. Any other id gives
// redemption_not_found.
func (rw *rewardsTxn) redemption(xid id) (*redemption, error) {
	seq, ok, err := getUint(rw.t.Tx, orgKey('R', rw.t.org).id(xid))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, newError(codeRedemptionNotFound)
	}
	return rw.redemptionAt(seq)
}

// cancel undoes a redemption, if it is one that can be cancelled.
func (rw *rewardsTxn) cancel(xid id) (*redemption, error) {
	x, err := rw.redemption(xid)
	if err != nil {
		return nil, err
	}
	if ok, err := rw.cancellable(x); err != nil {
		return nil, err
	} else if !ok {
		return nil, newError(codeRedemptionNotCancellable)
	}
	c, err := rw.t.customers.activeOwner(x.Customer)
	if err != nil {
		return nil, err
	}
	return x, rw.undoRedemption(c, x)
}

// undoRedemption cancels a redemption of a customer: the points go back to the lots they
// came from, and the redemption no longer counts against stock and limit (contract §7).
func (rw *rewardsTxn) undoRedemption(c *customer, x *redemption) error {
	a, err := rw.t.points.account(c, rw.t.cfg.programNumber(x.Program))
	if err != nil {
		return err
	}
	if x.Movement != 0 {
		debit, err := rw.t.points.movement(x.Movement)
		if err != nil {
			return err
		}
		if err := rw.t.points.giveBack(a, debit, debit.Uses, &movement{Redemption: x.ID, Comment: x.Comment}); err != nil {
			return err
		}
	}
	if err := rw.countRedemption(c.ID, x.Reward, -1); err != nil {
		return err
	}
	before := x.status(rw.t.now)
	if err := rw.changeRedemption(x, func() { x.CancelledAt, x.Balance = rw.t.now, a.Balance }); err != nil {
		return err
	}
	if x.isActivity() {
		if err := rw.undoSpending(a, x.CreatedAt); err != nil {
			return err
		}
	}
	if err := rw.t.points.saveAccount(a); err != nil {
		return err
	}
	if err := rw.t.sales.forgetUndoRequest(x.ID); err != nil {
		return err
	}
	if err := rw.t.feed.emit(eventRedemptionCancelled, x.Seq); err != nil {
		return err
	}
	return rw.t.audit.note(auditRedemptionCancelled, x.ID.String(), []change{{"status", before, x.status(rw.t.now)}})
}

// byCost lists the rewards, cheapest first, then by name.
func (c *config) byCost() []*reward {
	return slices.SortedFunc(slices.Values(c.Rewards), func(a, b *reward) int {
		return cmp.Or(cmp.Compare(a.PointsCost, b.PointsCost), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
}
