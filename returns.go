package main

import (
	"math/big"
	"slices"
)

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
func (t *txn) takeReturn(c *customer, a *account, s *sale, original *id) error {
	purchase, err := t.purchaseOf(c, s, original)
	if err != nil {
		return err
	}
	b := basis{Spent: -s.Total}
	at := t.now
	var target decimal
	if purchase == nil {
		if a.program.Returns != returnsKeep {
			target, err = t.unlinkedTarget(c, a, s)
		}
		s.Unearned = target
	} else {
		s.Previous, at = purchase.ID, purchase.CreatedAt
		before := purchase.whollyReturned()
		target, err = purchase.returnMore(s, a.program)
		if !before && purchase.whollyReturned() {
			c.Purchases--
			b.Purchases = -1
		}
	}
	if err != nil {
		return err
	}
	if err := t.takeBack(a, s, purchase, target); err != nil {
		return err
	}
	if purchase != nil {
		purchase.Reversed += s.Reversed
		if err := t.saveSale(purchase); err != nil {
			return err
		}
	}
	var ok1, ok2 bool
	c.TotalSpent, ok1 = c.TotalSpent.sub(s.Total)
	a.Lifetime, ok2 = a.Lifetime.sub(s.Unearned)
	if !ok1 || !ok2 {
		return newError(codeTooLarge).on("totalAmount")
	}
	b.Points = -s.Unearned
	return t.addBasis(a, at, b)
}

// purchaseOf finds the purchase a return belongs to: the one that the caller
// names, or else the customer's newest with the same externalId, wholly returned
// ones only if there are no others; nil if there is none.
func (t *txn) purchaseOf(c *customer, s *sale, original *id) (*sale, error) {
	if original != nil {
		purchase, err := t.sale(*original)
		if err != nil {
			return nil, err
		}
		if purchase.Customer != c.ID || purchase.Type != typePurchase {
			return nil, newError(codeTransactionNotFound)
		}
		return purchase, nil
	}
	if s.ExternalID == "" {
		return nil, nil
	}
	var newest *sale
	prefix := t.externalKey(s.ExternalID)
	for e, err := range scan(t.Tx, prefix, true) {
		if err != nil {
			return nil, err
		}
		p, err := t.saleAt(uintIn(e.Key[len(prefix):]))
		if err != nil {
			return nil, err
		}
		if p.Customer != c.ID || p.Type != typePurchase || p.ExternalID != s.ExternalID {
			continue
		}
		if !p.whollyReturned() {
			return p, nil
		}
		if newest == nil {
			newest = p
		}
	}
	return newest, nil
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

// returnMore adds a return to its purchase and returns how many points it has to
// take back: what all returns so far should take back, at most the earned points
// that have not expired, less what they already took.
func (s *sale) returnMore(ret *sale, p *program) (target decimal, err error) {
	if !s.countReturn(ret) {
		return 0, newError(codeReturnExceedsPurchase).with("purchased", s.Total).with("returned", s.Returned)
	}
	if p.Returns == returnsKeep {
		return 0, nil
	}
	should := max(s.shouldReturn(p), s.Unearned) // never falls, even if the rounding changed
	ret.Unearned, s.Unearned = should-s.Unearned, should
	return max(min(should, s.Earned-s.Expired)-s.Reversed, 0), nil
}

// countReturn adds what a return gives back: by item if both have items, else by
// amount. If that is more than is left it changes nothing and returns false.
func (s *sale) countReturn(ret *sale) bool {
	returned, ok := s.Returned.add(ret.Total)
	if !ok || returned > s.Total {
		return false
	}
	if len(ret.Items) == 0 || len(s.Items) == 0 {
		s.ReturnedByAmount += ret.Total
	} else if !s.countItems(ret.Items) {
		return false
	}
	s.Returned = returned
	return true
}

// countItems counts returned items on the lines with the same sku, lines with the
// same price first. If too few are left it changes nothing and returns false.
func (s *sale) countItems(items []item) bool {
	lines := slices.Clone(s.Lines)
	for _, it := range items {
		rest := it.Quantity
		for _, samePrice := range []bool{true, false} {
			for i, bought := range s.Items {
				if bought.SKU != it.SKU || (bought.Price == it.Price) != samePrice {
					continue
				}
				taken := min(rest, bought.Quantity-lines[i].Returned)
				lines[i].Returned += taken
				rest -= taken
			}
		}
		if rest > 0 {
			return false
		}
	}
	s.Lines = lines
	return true
}

// shouldReturn is what all returns of a purchase so far should take back: what
// the returned items earned and, for returns by amount, their share of Earned. It
// is rounded down until the purchase is wholly returned; then it is all of Earned.
func (s *sale) shouldReturn(p *program) decimal {
	if s.whollyReturned() {
		return s.Earned
	}
	share := new(big.Rat).Mul(s.Earned.rat(), s.ReturnedByAmount.rat())
	share.Quo(share, s.Total.rat())
	for i, l := range s.Lines {
		part := new(big.Rat).Mul(l.Points.rat(), l.Returned.rat())
		share.Add(share, part.Quo(part, s.Items[i].Quantity.rat()))
	}
	points, _ := roundRat(share, p.PointsDecimals, roundFloor)
	return min(points, s.Earned)
}

// unlinkedTarget is what the `per` rules would give today for what is
// returned.
func (t *txn) unlinkedTarget(c *customer, a *account, s *sale) (decimal, error) {
	p := *a.program
	p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r rule) bool { return r.Per == nil })
	current, _ := a.tier()
	earned, ok := p.earn(facts{
		total: s.Total, items: s.Items, at: t.now.time().In(t.cfg.zone), tier: current,
		segments: func() []string { return keysOf(t.segmentsOf(a)) }, usedOn: func(string) int { return 0 },
	})
	if !ok {
		return 0, newError(codeTooLarge).on("totalAmount")
	}
	return earned.total(), nil
}

// takeBack takes target points for a return: pending points of its purchase
// first, then available ones in the order of every debit. Points that are not
// there are the Shortfall, which the purchase's next return asks for again (Clamp),
// or become a debt (Debt).
func (t *txn) takeBack(a *account, s, purchase *sale, target decimal) error {
	m := &movement{Category: categoryReturn, Transaction: s.ID, CreatedAt: t.now}
	rest := target
	if purchase != nil {
		for _, ref := range purchase.PendingLot {
			l, err := t.lot(a, partPending, &lot{Seq: ref.Seq, AvailFrom: ref.AvailFrom})
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
			if err := t.changePending(a, l, -taken); err != nil {
				return err
			}
		}
	}
	fromLots := min(rest, max(a.Balance, 0))
	uses, err := t.consume(a, fromLots)
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
	s.Shortfall = rest
	s.Reversed = target - rest
	if s.Reversed == 0 {
		return nil
	}
	m.Amount = -s.Reversed
	return t.record(a, m)
}
