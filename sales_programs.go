package main

import (
	"slices"
	"strconv"
)

// A sale counts in the customer's own program and in each one that has join: All
// (contract §13). In each it has a share: what it earned or took back there. The
// shares are independent, except that segments look at the customer's own account.
//
// The own share is a part of the sale's record. Shares in other programs come after it,
// so that an organization without such programs pays nothing for them.

// A saleShare is what a sale did in one program.
type saleShare struct {
	Program    uint32
	Earned     decimal // by a purchase
	Pending    decimal // the part of Earned that was pending when it was sold
	Reversed   decimal // points taken back: by a return, or by all returns of a purchase so far
	Unearned   decimal // lifetime points lost: by a return, or by all returns of a purchase so far
	Expired    decimal // the part of Earned that expired before it was spent for good or taken back
	Shortfall  decimal // of a return: what it should have taken back but was not there
	Balance    decimal // of the account, after the sale
	Rules      []ruleShare
	TierFrom   string // tiers before and after, where they differ
	TierTo     string
	PendingLot []pendingRef // of a purchase: the lots of its pending points

	ExpiredLate decimal // of a late purchase: the part of Earned that had expired when it came

	Limited []uint64    // of a purchase: which of Rules counted toward a daily limit, as indexes
	Counts  []ruleCount // of a purchase: what it counts for in lives and budgets of rules

	Reasons shareReasons // of a purchase: why it earned that (sales_rules.go)
}

// A ruleShare is what one rule gave a sale.
type ruleShare struct {
	RuleID id      `json:"ruleId"`
	Name   string  `json:"name"`
	Points decimal `json:"points"` // 0: it gives a reward

	// Of a rule that gives a reward; not stored.
	Issued *bool   `json:"issued,omitempty"`
	Reason *string `json:"reason,omitempty"` // why not
}

func (v ruleShare) appendJSON(b []byte) []byte {
	b = v.RuleID.appendJSON(append(b, `{"ruleId":`...))
	b = appendJSONString(append(b, `,"name":`...), v.Name)
	b = v.Points.append(append(b, `,"points":`...))
	if v.Issued != nil {
		b = strconv.AppendBool(append(b, `,"issued":`...), *v.Issued)
	}
	if v.Reason != nil {
		b = appendJSONString(append(b, `,"reason":`...), *v.Reason)
	}
	return append(b, '}')
}

// A pendingRef names a pending lot.
type pendingRef struct {
	Seq       uint64
	AvailFrom instant
}

// fields leaves out Program, ExpiredLate, Limited, Counts and Reasons.
func (v *saleShare) fields(c *coder) {
	c.decimal(&v.Earned)
	c.decimal(&v.Pending)
	c.decimal(&v.Reversed)
	c.decimal(&v.Unearned)
	c.decimal(&v.Expired)
	c.decimal(&v.Shortfall)
	c.decimal(&v.Balance)
	listField(c, &v.Rules, (*ruleShare).fields)
	c.text(&v.TierFrom)
	c.text(&v.TierTo)
	listField(c, &v.PendingLot, (*pendingRef).fields)
}

func (v *ruleShare) fields(c *coder)  { c.id(&v.RuleID); c.text(&v.Name); c.decimal(&v.Points) }
func (p *pendingRef) fields(c *coder) { c.uint(&p.Seq); c.instant(&p.AvailFrom) }

// An otherShare is a share in another program than the customer's own.
type otherShare struct {
	saleShare
	ByLine []decimal // of a purchase: what each item earned; for the own share its Lines say so
}

func (v *otherShare) fields(c *coder) {
	uintField(c, &v.Program)
	v.saleShare.fields(c)
	c.decimal(&v.ExpiredLate)
	c.decimals(&v.ByLine)
}

// shares yields the sale's shares, that in the customer's own program first.
func (s *sale) shares(yield func(*saleShare) bool) {
	if !yield(&s.saleShare) {
		return
	}
	for i := range s.Others {
		if !yield(&s.Others[i].saleShare) {
			return
		}
	}
}

// shareIn returns the sale's share in a program; nil if the sale did not count there.
func (s *sale) shareIn(program uint32) *saleShare {
	for v := range s.shares {
		if v.Program == program {
			return v
		}
	}
	return nil
}

// earnedBy returns what item i of a purchase earned in a share.
func (s *sale) earnedBy(i int, v *saleShare) decimal {
	for j := range s.Others {
		if &s.Others[j].saleShare == v {
			return s.Others[j].ByLine[i]
		}
	}
	return s.Lines[i].Points
}

// basisIn returns what a sale counts toward tiers in a program, and ok if it counts
// there. A linked return counts in its purchase, which already contains it.
func (s *sale) basisIn(program uint32) (b basis, ok bool) {
	v := s.shareIn(program)
	switch {
	case v == nil:
		return b, false
	case s.Type == typePurchase:
		b = basis{Points: -v.Unearned, Spent: s.Total - s.Returned, Purchases: 1}
		if s.whollyReturned() {
			b.Purchases = 0
		}
		return b, true
	case s.Previous == (id{}):
		return basis{Points: -v.Unearned, Spent: -s.Total}, true
	}
	return b, false
}

// An affectedAccount is an account that a sale changes, with the sale's share in its program.
type affectedAccount struct {
	*account
	share  *saleShare
	before *tier
	earned earning  // by a purchase
	uses   ruleUses // by a purchase, of its rules
	target decimal  // of a return: what it should take back
}

func (sa *salesTxn) affectedAccount(c *customer, p *program, v *saleShare) (affectedAccount, error) {
	a, err := sa.t.points.account(c, p)
	if err != nil {
		return affectedAccount{}, err
	}
	before, _ := a.tier()
	v.Program = p.Number
	return affectedAccount{account: a, share: v, before: before}, nil
}

// otherAffected appends the accounts that a sale changes in programs other than the customer's
// own. For a linked return, purchase is the sale that it returns.
func (sa *salesTxn) otherAffected(list []affectedAccount, c *customer, s, purchase *sale) ([]affectedAccount, error) {
	var programs []*program
	if purchase != nil {
		for v := range purchase.shares {
			if v.Program != c.Program {
				programs = append(programs, sa.t.cfg.programNumber(v.Program))
			}
		}
	} else if len(sa.t.cfg.all) > 0 {
		programs = sa.t.cfg.earnsIn(c)[1:]
	}
	if len(programs) == 0 {
		return list, nil
	}
	s.Others = make([]otherShare, len(programs))
	for i, p := range programs {
		added, err := sa.affectedAccount(c, p, &s.Others[i].saleShare)
		if err != nil {
			return nil, err
		}
		list = append(list, added)
	}
	return list, nil
}

// countSold adds a sale to what tiers are measured by.
func (sa *salesTxn) countSold(a *account, at instant, b basis) error {
	if !a.isOwn() {
		var ok bool
		if a.Spent, ok = a.Spent.add(b.Spent); !ok {
			return newError(codeTooLarge).on("totalAmount")
		}
		a.Purchases += uint64(b.Purchases)
	}
	return sa.t.points.addBasis(a, at, b)
}

// earnings works out what a purchase earns in each program, if rules count a total. It changes
// nothing: the rules of every program look at the customer as it was before the sale.
func (sa *salesTxn) earnings(c *customer, s *sale, total decimal, in []affectedAccount) error {
	own := in[0].account
	for i := range in {
		p := &in[i]
		var ok bool
		p.earned, ok = p.program.earn(sa.factsOf(c, s, total, own, p))
		p.share.Reasons = p.reasons()
		if p.uses.err != nil {
			return p.uses.err
		}
		if !ok {
			return newError(codeTooLarge).on("totalAmount")
		}
	}
	return nil
}

// factsOf returns what the rules of an affected account's program look at, with the total that
// they count. own is the customer's account in its own program.
func (sa *salesTxn) factsOf(c *customer, s *sale, total decimal, own *account, p *affectedAccount) facts {
	p.uses = ruleUses{t: sa.t, a: p.account, at: s.CreatedAt}
	return facts{
		total: total, free: total == 0 && s.Payment != nil, items: s.Items, excluded: p.program.ExcludeSKUs, labels: s.Labels, at: s.CreatedAt.time().In(sa.t.cfg.zone), tier: p.before,
		segments: p.uses.segmentsOf(own), first: c.Purchases == 0, counts: &p.uses,
	}
}

func (sa *salesTxn) giveEarned(s *sale, p *affectedAccount) error {
	if err := sa.countSold(p.account, s.CreatedAt, basis{Spent: s.Total, Purchases: 1}); err != nil {
		return err
	}
	v := p.share
	v.Earned = p.earned.total()
	lots := lotsOf(p.earned.awards)
	if err := sa.giveLots(s, p, lots, false); err != nil {
		return err
	}
	if s.CreatedAt != sa.t.now {
		if err := sa.giveLots(s, p, lots, true); err != nil { // last: while they are in the balance, they hide a debt
			return err
		}
	}
	if err := sa.giveRewards(s, p); err != nil {
		return err
	}
	v.Rules = make([]ruleShare, 0, len(p.earned.awards))
	for i, w := range p.earned.awards {
		v.Rules = append(v.Rules, ruleShare{RuleID: p.program.ruleID(w.rule), Name: w.rule.Name, Points: w.points})
		if w.missed {
			continue
		}
		if w.rule.MaxPerCustomerPerDay > 0 {
			v.Limited = append(v.Limited, uint64(i))
		}
		if err := p.uses.add(w.rule); err != nil {
			return err
		}
	}
	return p.uses.count(v, &p.earned)
}

// giveRewards gives the rewards that rules give for a purchase. A rule that could not give its own
// is not used.
func (sa *salesTxn) giveRewards(s *sale, p *affectedAccount) error {
	kept := p.earned.awards[:0]
	for _, w := range p.earned.awards {
		if w.rule.Reward == "" {
			kept = append(kept, w)
			continue
		}
		if sa.t.importing {
			continue
		}
		given, err := sa.t.giver.give(p.account, w.rule, s.ID)
		if err != nil {
			return err
		}
		s.Given = append(s.Given, given)
		w.missed = given.Redemption == 0
		kept = append(kept, w)
	}
	p.earned.awards = kept
	return nil
}

// giveLots gives the lots of a purchase that have expired by now, or the others.
func (sa *salesTxn) giveLots(s *sale, p *affectedAccount, lots []award, expired bool) error {
	v := p.share
	for _, lot := range lots {
		m := &movement{
			Category: lot.rule.category(), Amount: lot.points, Transaction: s.ID, CreatedAt: s.CreatedAt,
			AvailFrom: sa.t.rules.inDays(s.CreatedAt, lot.rule.PendingDays), Expires: sa.t.rules.inDays(s.CreatedAt, lot.rule.ExpiresInDays),
		}
		if (sa.t.points.expires(p.account, m) <= sa.t.now) != expired {
			continue
		}
		if err := sa.t.points.credit(p.account, m); err != nil {
			return err
		}
		if m.AvailFrom > 0 {
			v.Pending += m.Amount
			v.PendingLot = append(v.PendingLot, pendingRef{m.Seq, m.AvailFrom})
		}
	}
	return nil
}

// lotsOf adds up the awards that become available and expire together, and have one category:
// each sum becomes one lot.
func lotsOf(awards []award) []award {
	var lots []award
	for _, w := range awards {
		if w.rule.Reward != "" {
			continue
		}
		i := slices.IndexFunc(lots, func(l award) bool {
			return l.rule.PendingDays == w.rule.PendingDays && l.rule.ExpiresInDays == w.rule.ExpiresInDays && l.rule.category() == w.rule.category()
		})
		if i < 0 {
			lots = append(lots, w)
		} else {
			lots[i].points += w.points
		}
	}
	return lots
}

// stillPending is how many of the points of a purchase's share are neither available
// yet nor taken back. owner is the customer whose sale it is.
func (sa *salesTxn) stillPending(v *saleShare, owner *customer) (sum decimal, err error) {
	var a *account
	for _, ref := range v.PendingLot {
		if ref.AvailFrom <= sa.t.now {
			continue
		}
		if a == nil {
			if a, err = sa.t.points.storedAccount(owner, sa.t.cfg.programNumber(v.Program)); err != nil {
				return 0, err
			}
		}
		l, err := sa.t.points.lot(a, partPending, &lot{Seq: ref.Seq, AvailFrom: ref.AvailFrom})
		if err != nil {
			return 0, err
		}
		if l != nil {
			sum += l.Left
		}
	}
	return sum, nil
}
