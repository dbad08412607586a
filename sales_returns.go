package main

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"sort"
)

// Returns: which purchase a return belongs to, which of its items come back, and what the return
// takes back in each program.

// A program's policies for returns, and for points that are to be taken back but
// already spent.
const (
	returnsReverse = "Reverse"
	returnsKeep    = "Keep"
	negativeClamp  = "Clamp"
	negativeDebt   = "Debt"
)

// takeReturn takes back what the returned goods earned. For a return that is
// linked to its purchase it computes what all returns of the purchase so far should
// take back, and subtracts what they took. So rounding never drifts, and no more is
// taken than was earned. An unlinked return takes back what the `per` rules would
// give today.
//
// Lifetime points and the tier's basis fall by what should be taken back, whether
// or not the points are still there.
//
// It takes back in every program where the purchase counted, and for an unlinked return
// in every program where the customer earns. It adds these accounts to the list.
func (sa *salesTxn) takeReturn(c *customer, s *sale, original *id, list []affectedAccount) ([]affectedAccount, error) {
	list, purchase, err := sa.returning(c, s, original, list)
	if err != nil {
		return nil, err
	}
	if purchase != nil && s.CreatedAt < purchase.CreatedAt && s.CreatedAt < sa.t.now {
		return nil, errBeforePurchase()
	}
	b := basis{Spent: -s.Total}
	at, undone := s.CreatedAt, false
	if purchase != nil {
		s.Previous, at = purchase.ID, purchase.CreatedAt
		before := purchase.whollyReturned()
		if err := purchase.countReturn(s); err != nil {
			return nil, err
		}
		if purchase.whollyReturned() {
			s.Vouchers = purchase.Vouchers
			undone = !before
		}
		if undone {
			c.Purchases--
			b.Purchases = -1
		}
	} else if err := sa.unlinkedTargets(s, list); err != nil {
		return nil, err
	}
	var ok bool
	if c.TotalSpent, ok = c.TotalSpent.sub(s.Total); !ok {
		return nil, newError(codeTooLarge).on("totalAmount")
	}
	if purchase != nil { // first, so that what comes back can be taken back
		if err := sa.returnPayment(c, s, purchase, list); err != nil {
			return nil, err
		}
	}
	for i := range list {
		if err := sa.takeShare(s, purchase, &list[i], at, b); err != nil {
			return nil, err
		}
	}
	if purchase == nil {
		return list, nil
	}
	if err := sa.save(purchase); err != nil || !undone {
		return list, err
	}
	return list, sa.undo(c, purchase, list)
}

// returning finds the purchase that a return belongs to and the other accounts that the
// return changes.
func (sa *salesTxn) returning(c *customer, s *sale, original *id, list []affectedAccount) ([]affectedAccount, *sale, error) {
	purchase, err := sa.purchaseOf(c, s, original)
	if err != nil {
		return nil, nil, err
	}
	if list, err = sa.otherAffected(list, c, s, purchase); err != nil || purchase == nil || len(list) == 1 {
		return list, purchase, err
	}
	purchase, err = sa.at(purchase.Seq) // reading the accounts may have noted expired points in it
	return list, purchase, err
}

// takeShare takes back in one program what a return should. b is what it counts toward
// tiers, at the moment at.
func (sa *salesTxn) takeShare(s, purchase *sale, p *affectedAccount, at instant, b basis) error {
	from := new(saleShare)
	if purchase != nil {
		if from = purchase.shareIn(p.program.Number); from == nil {
			return nil // the customer's own program, where the purchase does not count
		}
		p.target = purchase.owes(from, p.share, p.program)
	}
	if err := sa.takeBack(p, s, purchase, from); err != nil {
		return err
	}
	before := from.Reversed
	from.Reversed += p.share.Reversed
	uses := ruleUses{t: sa.t, a: p.account}
	if err := uses.giveBackBudgets(from, before); err != nil {
		return err
	}
	var ok bool
	if p.Lifetime, ok = p.Lifetime.sub(p.share.Unearned); !ok {
		return newError(codeTooLarge).on("totalAmount")
	}
	b.Points = -p.share.Unearned
	return sa.countSold(p.account, at, b)
}

// purchaseOf finds the purchase that a return belongs to: the purchase original, or else the
// customer's newest purchase with the same externalId. It prefers purchases that are not wholly
// returned and were not sold after a late return. It returns nil if there is no purchase.
func (sa *salesTxn) purchaseOf(c *customer, s *sale, original *id) (*sale, error) {
	if original != nil {
		purchase, err := sa.get(*original)
		if err != nil {
			return nil, err
		}
		own, err := sa.t.merges.owns(c, purchase.Customer)
		if err != nil {
			return nil, err
		}
		if !own || purchase.Type != typePurchase {
			return nil, newError(codeTransactionNotFound)
		}
		return purchase, nil
	}
	if s.ExternalID == "" {
		return nil, nil
	}
	var newest *sale
	prefix := sa.externalKey(s.ExternalID)
	for e, err := range scan(sa.t.Tx, prefix, true) {
		if err != nil {
			return nil, err
		}
		p, err := sa.at(uintIn(e.Key[len(prefix):]))
		if err != nil {
			return nil, err
		}
		if p.Type != typePurchase || p.ExternalID != s.ExternalID {
			continue
		}
		own, err := sa.t.merges.owns(c, p.Customer)
		if err != nil {
			return nil, err
		}
		if !own {
			continue
		}
		if !p.whollyReturned() && (p.CreatedAt <= s.CreatedAt || s.CreatedAt == sa.t.now) {
			return p, nil
		}
		if newest == nil {
			newest = p
		}
	}
	return newest, nil
}

// mostReturns bounds how many returns of a customer returnsOf looks at.
const mostReturns = 1000

// returnsOf lists the returns of a purchase, newest first. It looks only at the customer's last
// mostReturns returns since the purchase; more reports whether there are others.
func (sa *salesTxn) returnsOf(purchase *sale) (list []*sale, more bool, err error) {
	if purchase.Returned == 0 {
		return nil, false, nil
	}
	owner, err := sa.t.merges.ownerID(purchase.Customer)
	if err != nil {
		return nil, false, err
	}
	since := saleFilter{customer: &owner, saleType: typeReturn, from: purchase.CreatedAt, to: never}
	found, _, err := sa.t.saleLists.find(since, page{1, mostReturns})
	left := purchase.Returned
	for _, s := range found {
		if s.Previous == purchase.ID {
			list = append(list, s)
			left -= s.Total
		}
	}
	return list, left != 0, err
}

// whollyReturned reports whether nothing of a purchase is left to return: all
// of its amount or all of its items have come back.
func (s *sale) whollyReturned() bool {
	for i, l := range s.Lines {
		if l.Returned < s.Items[i].Quantity {
			return s.Returned == s.Total
		}
	}
	return s.Returned == s.Total || len(s.Lines) > 0
}

// owes returns how many points a return of a purchase has to take back in a program:
// what all returns so far should take back, at most the earned points that have not
// expired, less what they already took. from and to are the shares of the purchase,
// which already contains the return, and of the return.
func (s *sale) owes(from, to *saleShare, p *program) (target decimal) {
	if p.Returns == returnsKeep {
		return 0
	}
	should := max(s.shouldReturn(p, from), from.Unearned) // never falls, even if the rounding changed
	to.Unearned, from.Unearned = should-from.Unearned, should
	return max(min(should, from.Earned-from.Expired)-from.Reversed, 0)
}

// countReturn adds what a return gives back: by item if both have items, else by
// amount. If an item is not in the purchase, or more comes back than is left, it changes
// nothing and fails with item_not_purchased or return_exceeds_purchase.
func (s *sale) countReturn(ret *sale) error {
	byItem := len(ret.Items) > 0 && len(s.Items) > 0
	lines := s.Lines
	if byItem {
		var err error
		if lines, err = s.countItems(ret.Items); err != nil {
			return err
		}
	}
	returned, ok := s.Returned.add(ret.Total)
	if !ok || returned > s.Total {
		return exceeds("totalAmount", s.Total, s.Returned)
	}
	if !byItem {
		s.ReturnedByAmount += ret.Total
	}
	s.Returned, s.Lines = returned, lines
	return nil
}

// exceeds is the error for a field that returns more than is left of what was purchased. returned
// is what came back before.
func exceeds(field string, purchased, returned decimal) error {
	return newError(codeReturnExceedsPurchase).on(field).
		with("purchased", purchased).with("returned", returned).with("left", purchased-returned)
}

// countItems returns the lines of a purchase with returned items counted on the lines with the
// same sku: first on lines that spell it alike, and among these first on lines with the same
// price. It changes nothing.
func (s *sale) countItems(items []item) ([]line, error) {
	lines := slices.Clone(s.Lines)
	for n, it := range items {
		rest := it.Quantity
		for _, order := range []struct{ spelling, price bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
			for i, bought := range s.Items {
				if (bought.SKU == it.SKU) != order.spelling || (bought.Price == it.Price) != order.price || !sameSKU(bought.SKU, it.SKU) {
					continue
				}
				taken := min(rest, bought.Quantity-lines[i].Returned)
				lines[i].Returned += taken
				rest -= taken
			}
		}
		if rest > 0 {
			return nil, s.notLeft(n, it.SKU)
		}
	}
	return lines, nil
}

// notLeft is the error for item n of a return, of whose sku too few are left in the purchase.
func (s *sale) notLeft(n int, sku string) error {
	var purchased, returned decimal // at most 500 quantities: far from the range of int64
	for i, bought := range s.Items {
		if sameSKU(bought.SKU, sku) {
			purchased += bought.Quantity
			returned += s.Lines[i].Returned
		}
	}
	if purchased == 0 {
		return newError(codeItemNotPurchased).on(fmt.Sprintf("items[%d].sku", n))
	}
	return exceeds(fmt.Sprintf("items[%d].quantity", n), purchased, returned)
}

// shouldReturn is what all returns of a purchase so far should take back in a program:
// what the returned items earned and, for returns by amount, their part of Earned. It
// is rounded down until the purchase is wholly returned; then it is all of Earned.
func (s *sale) shouldReturn(p *program, v *saleShare) decimal {
	if s.whollyReturned() {
		return v.Earned
	}
	sum := new(big.Rat).Mul(v.Earned.rat(), s.ReturnedByAmount.rat())
	sum.Quo(sum, s.Total.rat())
	for i, l := range s.Lines {
		part := new(big.Rat).Mul(s.earnedBy(i, v).rat(), l.Returned.rat())
		sum.Add(sum, part.Quo(part, s.Items[i].Quantity.rat()))
	}
	points, _ := roundRat(sum, p.PointsDecimals, roundFloor)
	return min(points, v.Earned)
}

// unlinkedTargets sets what an unlinked return should take back in each program: what
// the `per` rules without `every` would give for what is returned.
func (sa *salesTxn) unlinkedTargets(s *sale, list []affectedAccount) error {
	own := list[0].account
	for i := range list {
		if list[i].program.Returns == returnsKeep {
			continue
		}
		p := *list[i].program
		p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r rule) bool { return r.Per == nil || r.Every > 0 })
		uses := ruleUses{t: sa.t, a: list[i].account, at: s.CreatedAt}
		earned, ok := p.earn(facts{
			total: s.Total, items: s.Items, excluded: p.ExcludeSKUs, at: s.CreatedAt.time().In(sa.t.cfg.zone), tier: list[i].before,
			segments: uses.segmentsOf(own), counts: unusedRules{&uses},
		})
		if uses.err != nil {
			return uses.err
		}
		if !ok {
			return newError(codeTooLarge).on("totalAmount")
		}
		list[i].target = earned.total()
		list[i].share.Unearned = earned.total()
	}
	return nil
}

// unusedRules counts as for a customer who used no rule yet. Budgets are what they are.
type unusedRules struct{ *ruleUses }

func (unusedRules) onDay(*rule) int        { return 0 }
func (unusedRules) inLife(string) ruleLife { return ruleLife{} }

// takeBack takes an affected account's target for a return: pending points of its purchase
// first, then what is left of its available ones, then others in the order of every debit
// (contract §31). Points that are not there are the Shortfall, which the purchase's next
// return asks for again (Clamp), or become a debt (Debt). from is the purchase's share.
func (sa *salesTxn) takeBack(p *affectedAccount, s, purchase *sale, from *saleShare) error {
	a := p.account
	m := &movement{Category: categoryReturn, Transaction: s.ID, CreatedAt: s.CreatedAt}
	rest := p.target
	for _, ref := range from.PendingLot {
		l, err := sa.t.points.lot(a, partPending, &lot{Seq: ref.Seq, AvailFrom: ref.AvailFrom})
		if err != nil {
			return err
		}
		if l == nil {
			continue
		}
		taken := min(l.Left, rest)
		if taken == 0 {
			break
		}
		rest -= taken
		a.Pending -= taken
		m.Uses = append(m.Uses, use{l.Seq, taken, l.Expires})
		if err := sa.t.points.changePending(a, l, -taken); err != nil {
			return err
		}
	}
	fromLots := min(rest, max(a.Balance, 0))
	var own []*lot
	if purchase != nil && 0 < fromLots && fromLots < a.Balance {
		var err error
		if own, err = sa.earnedLots(a, purchase, from); err != nil {
			return err
		}
	}
	uses, err := sa.t.points.consume(a, fromLots, own...)
	if err != nil {
		return err
	}
	m.Uses = append(m.Uses, uses...)
	rest -= fromLots
	a.Balance -= fromLots
	if a.program.NegativeBalance == negativeDebt {
		var ok bool
		if a.Balance, ok = a.Balance.sub(rest); !ok {
			return newError(codeTooLarge).on("totalAmount")
		}
		rest = 0
	}
	p.share.Shortfall = rest
	p.share.Reversed = p.target - rest
	if p.share.Reversed == 0 {
		return nil
	}
	m.Amount = -p.share.Reversed
	return sa.t.points.record(a, m)
}

// earnedLots returns the available lots of an account that a purchase made, in the order of every
// debit. v is the purchase's share in the account's program.
func (sa *salesTxn) earnedLots(a *account, purchase *sale, v *saleShare) (list []*lot, err error) {
	pt := &sa.t.points
	if a.LotsApart { // there may be many: find the credits first
		credits, ok, err := sa.creditsOf(purchase, v)
		if err != nil {
			return nil, err
		}
		for _, m := range credits {
			l, err := pt.lot(a, partLot, &lot{Seq: m.Seq, Expires: m.Expires})
			if err != nil {
				return nil, err
			}
			if l != nil {
				list = append(list, l)
			}
		}
		if ok {
			slices.SortFunc(list, byExpiry)
			return list, nil
		}
		list = nil
	}
	var seqs []uint64
	for l, err := range pt.lots(a, partLot) {
		if err != nil {
			return nil, err
		}
		list, seqs = append(list, l), append(seqs, l.Seq)
	}
	warm(sa.t.Tx, seqs, pt.movementKey)
	var failed error
	list = slices.DeleteFunc(list, func(l *lot) bool {
		credit, err := pt.movement(l.Seq)
		failed = cmp.Or(failed, err)
		return err != nil || credit.Transaction != purchase.ID
	})
	return list, failed
}

// creditsOf returns the credits of what a purchase earned in a program. They were written when the
// purchase came, so a binary search finds them, by the moments at which movements were written. ok
// is false if the search does not, as where the clock was set back.
func (sa *salesTxn) creditsOf(purchase *sale, v *saleShare) (list []*movement, ok bool, err error) {
	n, err := sa.t.count()
	if err != nil {
		return nil, false, err
	}
	var failed error
	first := sort.Search(int(n.Movements), func(i int) bool {
		m, err := sa.t.points.movement(uint64(i) + 1)
		failed = cmp.Or(failed, err)
		return err != nil || m.writtenAt() >= purchase.ID.madeAt()
	})
	var sum decimal
	for seq := uint64(first) + 1; failed == nil && seq <= n.Movements && sum < v.Earned; seq++ {
		m, err := sa.t.points.movement(seq)
		if err != nil {
			return nil, false, err
		}
		if m.Transaction == purchase.ID && m.Program == v.Program && m.isEarned() {
			list = append(list, m)
			sum += m.Amount
		} else if m.writtenAt() > purchase.ID.madeAt() {
			break
		}
	}
	return list, sum == v.Earned, failed
}
