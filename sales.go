package main

import (
	"container/heap"
	"crypto/sha256"
	"iter"
	"maps"
	"math/big"
	"slices"
)

// An item is one line of a sale.
type item struct {
	SKU      string  `json:"sku"`
	Price    decimal `json:"price"` // of one
	Quantity decimal `json:"quantity"`
}

// A sale is a purchase or a return (spec: Transaction).
type sale struct {
	Seq uint64 // from the key

	ID         id
	Customer   id
	Program    uint32
	Type       string // Purchase or Return
	Source     string // Api, Dashboard or Import
	Total      decimal
	Comment    string
	ExternalID string
	CreatedAt  instant
	Items      []item
	Link       link // the customer's chain
	Previous   id   // of a return: the purchase it belongs to; zero if unlinked

	Earned     decimal // by a purchase
	Pending    decimal // of Earned, at the moment of the sale
	Reversed   decimal // by a return; of a purchase: by all its returns so far
	Unearned   decimal // by how much lifetime points fell for a return; of a purchase: for all its returns
	Shortfall  decimal // of a return: what it should have taken back and was not there
	Balance    decimal // of the account, after it
	Rules      []ruleShare
	TierFrom   string // tiers before and after, where they differ
	TierTo     string
	PendingLot []pendingRef // of a purchase: where its pending points lie

	// Of a purchase: what its returns so far have given back, in all, by
	// returns that name no items, and by item; and what each item earned.
	Returned         decimal
	ReturnedByAmount decimal
	Lines            []line
}

// A line is what a purchase keeps of one of its items for returns.
type line struct {
	Points   decimal // earned by it
	Returned decimal // quantity
}

// A ruleShare is what one rule gave a sale, or, of a return, what of it was
// taken back.
type ruleShare struct {
	RuleID id      `json:"ruleId"`
	Name   string  `json:"name"`
	Points decimal `json:"points"`
}

// A pendingRef leads to a pending lot.
type pendingRef struct {
	Seq       uint64
	AvailFrom instant
}

const (
	typePurchase = "Purchase"
	typeReturn   = "Return"
	sourceAPI    = "Api"
	sourceImport = "Import"

	// Sales of one type in keys.
	kindPurchase = 'p'
	kindReturn   = 'r'
)

func (s *sale) encode(w *writer) {
	w.id(s.ID)
	w.id(s.Customer)
	w.uint(uint64(s.Program))
	w.text(s.Type)
	w.text(s.Source)
	w.decimal(s.Total)
	w.text(s.Comment)
	w.text(s.ExternalID)
	w.instant(s.CreatedAt)
	w.uint(uint64(len(s.Items)))
	for _, it := range s.Items {
		w.text(it.SKU)
		w.decimal(it.Price)
		w.decimal(it.Quantity)
	}
	s.Link.encode(w)
	w.id(s.Previous)
	w.decimal(s.Earned)
	w.decimal(s.Pending)
	w.decimal(s.Reversed)
	w.decimal(s.Unearned)
	w.decimal(s.Shortfall)
	w.decimal(s.Balance)
	w.uint(uint64(len(s.Rules)))
	for _, r := range s.Rules {
		w.id(r.RuleID)
		w.text(r.Name)
		w.decimal(r.Points)
	}
	w.text(s.TierFrom)
	w.text(s.TierTo)
	w.uint(uint64(len(s.PendingLot)))
	for _, p := range s.PendingLot {
		w.uint(p.Seq)
		w.instant(p.AvailFrom)
	}
	w.decimal(s.Returned)
	w.decimal(s.ReturnedByAmount)
	w.uint(uint64(len(s.Lines)))
	for _, l := range s.Lines {
		w.decimal(l.Points)
		w.decimal(l.Returned)
	}
}

func (s *sale) decode(r *reader) {
	s.ID = r.id()
	s.Customer = r.id()
	s.Program = uint32(r.uint())
	s.Type = r.text()
	s.Source = r.text()
	s.Total = r.decimal()
	s.Comment = r.text()
	s.ExternalID = r.text()
	s.CreatedAt = r.instant()
	s.Items = make([]item, r.len())
	for i := range s.Items {
		s.Items[i] = item{r.text(), r.decimal(), r.decimal()}
	}
	s.Link.decode(r)
	s.Previous = r.id()
	s.Earned = r.decimal()
	s.Pending = r.decimal()
	s.Reversed = r.decimal()
	s.Unearned = r.decimal()
	s.Shortfall = r.decimal()
	s.Balance = r.decimal()
	s.Rules = make([]ruleShare, r.len())
	for i := range s.Rules {
		s.Rules[i] = ruleShare{r.id(), r.text(), r.decimal()}
	}
	s.TierFrom = r.text()
	s.TierTo = r.text()
	s.PendingLot = make([]pendingRef, r.len())
	for i := range s.PendingLot {
		s.PendingLot[i] = pendingRef{r.uint(), r.instant()}
	}
	s.Returned = r.decimal()
	s.ReturnedByAmount = r.decimal()
	s.Lines = make([]line, r.len())
	for i := range s.Lines {
		s.Lines[i] = line{r.decimal(), r.decimal()}
	}
}

func (t *txn) saleKey(seq uint64) key { return orgKey('t', t.org).u64(seq) }

func (t *txn) saleAt(seq uint64) (*sale, error) {
	s, err := get[sale](t.Tx, t.saleKey(seq))
	if err == nil && s == nil {
		err = errRecord
	}
	if err != nil {
		return nil, err
	}
	s.Seq = seq
	return s, nil
}

// sale finds a sale of this organization; any id that is not one is
// transaction_not_found.
func (t *txn) sale(saleID id) (*sale, error) {
	seq, ok, err := getUint(t.Tx, orgKey('T', t.org).id(saleID))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, newError("transaction_not_found")
	}
	return t.saleAt(seq)
}

func (t *txn) saveSale(s *sale) error { return put(t.Tx, t.saleKey(s.Seq), s) }

// externalKey begins the entries of the sales with an externalId. It holds a
// hash, which is short whatever the externalId, so a hit is compared whole.
func (t *txn) externalKey(externalID string) key {
	h := sha256.Sum256([]byte(externalID))
	return append(orgKey('x', t.org), h[:16]...)
}

// A newSale is what a caller tells of a sale.
type newSale struct {
	Customer   id
	Total      decimal
	Type       string
	Items      []item
	ExternalID string
	Comment    string
	Original   *id // the purchase that a return belongs to; nil if not named
	Source     string
}

// registerSale records a purchase and what it earns, or a return and what it
// takes back, in one transaction (contract §9).
func (t *txn) registerSale(in newSale) (*sale, *customer, error) {
	c, err := t.activeCustomer(in.Customer)
	if err != nil {
		return nil, nil, err
	}
	a, err := t.account(c, t.cfg.programNumber(c.Program))
	if err != nil {
		return nil, nil, err
	}
	s := &sale{
		ID: t.id(), Customer: c.ID, Program: c.Program, Type: in.Type, Source: in.Source, Total: in.Total,
		Comment: in.Comment, ExternalID: in.ExternalID, CreatedAt: t.now, Items: in.Items,
	}
	before, _ := a.tier()
	if in.Type == typeReturn {
		err = t.takeReturn(c, a, s, in.Original)
	} else {
		err = t.takePurchase(c, a, s)
	}
	if err != nil {
		return nil, nil, err
	}
	if after, _ := a.tier(); after.name() != before.name() {
		s.TierFrom, s.TierTo = before.name(), after.name()
	}
	s.Balance = a.Balance
	return s, c, t.appendSale(c, a, s)
}

// appendSale writes a sale that has happened, with its places in lists and
// indexes, and its customer and account.
func (t *txn) appendSale(c *customer, a *account, s *sale) error {
	n, err := t.count()
	if err != nil {
		return err
	}
	n.Sales++
	s.Seq = n.Sales
	s.Link = c.Sales.append(s.Seq)
	kind, number := byte(kindPurchase), &n.Purchases
	if s.Type == typePurchase {
		c.PurchasesTotal++
	} else {
		kind, number = kindReturn, &n.Returns
	}
	*number++
	if err := putUint(t.Tx, orgKey('l', t.org).byte(kind).u64(*number), s.Seq); err != nil {
		return err
	}
	if err := putUint(t.Tx, orgKey('T', t.org).id(s.ID), s.Seq); err != nil {
		return err
	}
	if s.ExternalID != "" {
		if err := t.Put(t.externalKey(s.ExternalID).u64(s.Seq), nil); err != nil {
			return err
		}
	}
	if err := t.Put(orgKey('h', t.org).instant(s.CreatedAt).u64(s.Seq), []byte{kind}); err != nil {
		return err
	}
	counted, err := t.tally(s.Program, s.CreatedAt)
	if err != nil {
		return err
	}
	counted.countSale(s)
	if s.Type == typePurchase {
		if err := t.countActive(c, s.CreatedAt); err != nil {
			return err
		}
	}
	if err := t.saveSale(s); err != nil {
		return err
	}
	if err := t.saveAccount(a); err != nil {
		return err
	}
	return t.saveCustomer(c)
}

// takePurchase gives what the program's rules say and adds to the customer's
// totals.
func (t *txn) takePurchase(c *customer, a *account, s *sale) error {
	current, _ := a.tier()
	uses := t.ruleUses(a)
	earned, ok := a.program.earn(facts{
		total: s.Total, items: s.Items, at: t.now.time().In(t.cfg.zone), tier: current,
		segments: keysOf(t.segmentsOf(a)), first: c.PurchasesTotal == 0,
		usedOn: uses.today,
	})
	if uses.err != nil {
		return uses.err
	}
	if !ok {
		return newError("too_large").on("totalAmount")
	}
	if c.TotalSpent, ok = c.TotalSpent.add(s.Total); !ok {
		return newError("too_large").on("totalAmount")
	}
	c.Purchases++
	c.LastSaleAt = max(c.LastSaleAt, t.now)
	if err := t.addBasis(a, t.now, basis{Spent: s.Total, Purchases: 1}); err != nil {
		return err
	}
	s.Earned = earned.total()
	for _, points := range earned.lines {
		s.Lines = append(s.Lines, line{Points: points})
	}
	for _, w := range earned.awards {
		s.Rules = append(s.Rules, ruleShare{a.program.ruleID(w.rule), w.rule.Name, w.points})
		if err := uses.add(w.rule); err != nil {
			return err
		}
	}
	for _, lot := range lotsOf(earned.awards) {
		m := &movement{
			Category: categoryPurchase, Amount: lot.points, Transaction: s.ID,
			AvailFrom: t.inDays(lot.rule.PendingDays), Expires: t.inDays(lot.rule.ExpiresInDays),
		}
		if err := t.credit(a, m); err != nil {
			return err
		}
		if m.AvailFrom > 0 {
			s.Pending += m.Amount
			s.PendingLot = append(s.PendingLot, pendingRef{m.Seq, m.AvailFrom})
		}
	}
	return nil
}

// lotsOf adds up the awards that become available and expire together: each
// sum becomes one lot.
func lotsOf(awards []award) []award {
	var lots []award
	for _, w := range awards {
		i := slices.IndexFunc(lots, func(l award) bool {
			return l.rule.PendingDays == w.rule.PendingDays && l.rule.ExpiresInDays == w.rule.ExpiresInDays
		})
		if i < 0 {
			lots = append(lots, w)
		} else {
			lots[i].points += w.points
		}
	}
	return lots
}

// ruleUses counts how often rules with a daily limit were used by the
// account's customer today.
type ruleUses struct {
	t   *txn
	a   *account
	err error
}

func (t *txn) ruleUses(a *account) *ruleUses { return &ruleUses{t: t, a: a} }

// A ruleUse is how often one rule was used on one day.
type ruleUse struct {
	Day   int64
	Times uint64
}

func (u *ruleUse) encode(w *writer) { w.int(u.Day); w.uint(u.Times) }
func (u *ruleUse) decode(r *reader) { u.Day, u.Times = r.int(), r.uint() }

func (u *ruleUses) key(rule string) key { return u.t.key(u.a, partRuleUse).text(rule) }

func (u *ruleUses) load(rule string) *ruleUse {
	today := int64(dayOf(u.t.now, u.t.cfg.zone))
	use, err := get[ruleUse](u.t.Tx, u.key(rule))
	if err != nil {
		u.err = err
	}
	if use == nil || use.Day != today {
		return &ruleUse{Day: today}
	}
	return use
}

func (u *ruleUses) today(rule string) int { return int(u.load(rule).Times) }

func (u *ruleUses) add(r *rule) error {
	if r.MaxPerCustomerPerDay == 0 {
		return nil
	}
	use := u.load(r.Key)
	use.Times++
	return put(u.t.Tx, u.key(r.Key), use)
}

// Return policies of a program, and what becomes of points to take back that
// are spent already.
const (
	returnsReverse = "Reverse"
	returnsKeep    = "Keep"
	negativeClamp  = "Clamp"
	negativeDebt   = "Debt"
)

// takeReturn takes back what the returned goods earned. Linked to its
// purchase, what all its returns so far should have taken back is computed
// anew each time and what they took is subtracted, so that rounding never
// drifts and no more is taken than was earned. Unlinked, it is what the `per`
// rules would give today.
//
// Totals, lifetime points and the tier's basis fall by what should be taken
// back, whether or not the points are still there.
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
		return newError("too_large").on("totalAmount")
	}
	b.Points = -s.Unearned
	return t.addBasis(a, at, b)
}

// purchaseOf finds the purchase a return belongs to: the one that the caller
// names, or else the customer's newest with the same externalId that is not
// wholly returned; nil if there is none.
func (t *txn) purchaseOf(c *customer, s *sale, original *id) (*sale, error) {
	if original != nil {
		purchase, err := t.sale(*original)
		if err != nil {
			return nil, err
		}
		if purchase.Customer != c.ID || purchase.Type != typePurchase {
			return nil, newError("transaction_not_found")
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

// whollyReturned tells whether nothing of a purchase is left to return: all
// of its amount or all of its items have come back.
func (s *sale) whollyReturned() bool {
	for i, l := range s.Lines {
		if l.Returned < s.Items[i].Quantity {
			return s.Returned == s.Total
		}
	}
	return s.Returned == s.Total || len(s.Lines) > 0
}

// returnMore counts one more return into the purchase and says how many
// points it has to take back.
func (s *sale) returnMore(ret *sale, p *program) (target decimal, err error) {
	if !s.countReturn(ret) {
		return 0, newError("return_exceeds_purchase").with("purchased", s.Total).with("returned", s.Returned)
	}
	if p.Returns == returnsKeep {
		return 0, nil
	}
	should := max(s.shouldReturn(p), s.Unearned) // a rounding that has changed since gives nothing back
	ret.Unearned, s.Unearned = should-s.Unearned, should
	return should - s.Reversed, nil
}

// countReturn adds what a return gives back: by item if both have items, else
// by amount. It changes nothing and is false where that is more than is left.
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

// countItems takes returned items off the lines with the same sku, those with
// the same price first, then in order.
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
// the returned items earned, and of returns by amount their part of the whole;
// all of it in the end, and no fraction of a point before it is whole.
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
		segments: keysOf(t.segmentsOf(a)), usedOn: func(string) int { return 0 },
	})
	if !ok {
		return 0, newError("too_large").on("totalAmount")
	}
	return earned.total(), nil
}

// takeBack takes target points for a return: pending points of its purchase
// first, then available ones in the order of every debit. What is not there
// is forgiven and reported (Clamp) or owed (Debt).
func (t *txn) takeBack(a *account, s, purchase *sale, target decimal) error {
	m := &movement{Category: categoryReturn, Transaction: s.ID, CreatedAt: t.now}
	rest := target
	if purchase != nil {
		for _, ref := range purchase.PendingLot {
			k := t.pendingKey(a, &lot{Seq: ref.Seq, AvailFrom: ref.AvailFrom})
			l, err := get[lot](t.Tx, k)
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
			l.Left -= taken
			a.Pending -= taken
			m.Uses = append(m.Uses, use{l.Seq, l.Movement, taken, l.Expires})
			if err := t.keepLot(k, l); err != nil {
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
			return newError("too_large").on("totalAmount")
		}
		rest = 0
	}
	s.Shortfall = rest
	s.Reversed = target - rest
	if s.Reversed == 0 {
		return nil
	}
	m.ID, m.Amount = t.id(), -s.Reversed
	return t.record(a, m)
}

// A saleFilter chooses sales; what is zero does not choose.
type saleFilter struct {
	search     string
	saleType   string
	customer   *id
	externalID string
	from, to   instant // both within; 0 and never are open
}

func (f *saleFilter) dated() bool { return f.from != 0 || f.to != never }

func (f *saleFilter) keeps(s *sale) bool {
	return (f.saleType == "" || f.saleType == s.Type) &&
		(f.customer == nil || *f.customer == s.Customer) &&
		(f.externalID == "" || f.externalID == s.ExternalID) &&
		f.from <= s.CreatedAt && s.CreatedAt <= f.to
}

// findSales returns a page of the sales that a filter chooses, newest first,
// and how many there are. It reads what the narrowest part of the filter
// leads to: one customer's sales, those of one externalId, those of the
// customers a search finds, those of a span of time, or the whole list, in
// which any page is one seek.
func (t *txn) findSales(f saleFilter, p page) ([]*sale, uint64, error) {
	switch {
	case f.customer != nil:
		return t.salesOf(f, p)
	case f.externalID != "":
		return t.salesCalled(f, p)
	case f.search != "":
		return t.searchSales(f, p)
	case f.dated():
		return t.salesBetween(f, p)
	}
	n, err := t.count()
	if err != nil {
		return nil, 0, err
	}
	switch f.saleType {
	case typePurchase:
		return t.saleSpan(p, n.Purchases, t.saleList(kindPurchase))
	case typeReturn:
		return t.saleSpan(p, n.Returns, t.saleList(kindReturn))
	}
	return t.saleSpan(p, n.Sales, func(number uint64) (uint64, error) { return number, nil })
}

// saleList finds the sale with a number in the list of one type.
func (t *txn) saleList(kind byte) func(uint64) (uint64, error) {
	return func(number uint64) (uint64, error) {
		seq, ok, err := getUint(t.Tx, orgKey('l', t.org).byte(kind).u64(number))
		if err == nil && !ok {
			err = errRecord
		}
		return seq, err
	}
}

func (t *txn) saleSpan(p page, total uint64, seqOf func(uint64) (uint64, error)) ([]*sale, uint64, error) {
	first, last, ok := p.span(total)
	if !ok {
		return nil, total, nil
	}
	var list []*sale
	for n := first; n >= last; n-- {
		seq, err := seqOf(n)
		if err != nil {
			return nil, 0, err
		}
		s, err := t.saleAt(seq)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, s)
	}
	return list, total, nil
}

// A saleCutter cuts a page out of sales that come one after the other.
type saleCutter struct {
	page
	list  []*sale
	total uint64
}

func (c *saleCutter) take(s *sale) {
	if c.total >= c.skip() && uint64(len(c.list)) < c.limit {
		c.list = append(c.list, s)
	}
	c.total++
}

// salesOf follows one customer's chain.
func (t *txn) salesOf(f saleFilter, p page) ([]*sale, uint64, error) {
	c, err := t.customer(*f.customer)
	if err != nil {
		return nil, 0, err
	}
	cut := saleCutter{page: p}
	for seq := c.Sales.last(); seq != 0; {
		s, err := t.saleAt(seq)
		if err != nil {
			return nil, 0, err
		}
		if f.search != "" && !newNeedle(f.search).in(c.searchTexts()) {
			break
		}
		if f.keeps(s) {
			cut.take(s)
		}
		seq = s.Link.Prev
	}
	return cut.list, cut.total, nil
}

// salesCalled reads the sales with one externalId.
func (t *txn) salesCalled(f saleFilter, p page) ([]*sale, uint64, error) {
	cut := saleCutter{page: p}
	prefix := t.externalKey(f.externalID)
	for e, err := range scan(t.Tx, prefix, true) {
		if err != nil {
			return nil, 0, err
		}
		s, err := t.saleAt(uintIn(e.Key[len(prefix):]))
		if err != nil {
			return nil, 0, err
		}
		if !f.keeps(s) {
			continue
		}
		if f.search != "" {
			c, err := t.customer(s.Customer)
			if err != nil {
				return nil, 0, err
			}
			if !newNeedle(f.search).in(c.searchTexts()) {
				continue
			}
		}
		cut.take(s)
	}
	return cut.list, cut.total, nil
}

// searchSales follows the chains of all customers that a search finds at
// once, newest sale first. Without dates, the customers' own counts are the
// total, and it reads no further than the page.
func (t *txn) searchSales(f saleFilter, p page) ([]*sale, uint64, error) {
	numbers, err := t.search(f.search)
	if err != nil {
		return nil, 0, err
	}
	var (
		total uint64
		heads newestFirst
	)
	for _, number := range numbers {
		c, err := t.customerAt(uint64(number))
		if err != nil {
			return nil, 0, err
		}
		switch f.saleType {
		case typePurchase:
			total += c.PurchasesTotal
		case typeReturn:
			total += c.Sales.N - c.PurchasesTotal
		default:
			total += c.Sales.N
		}
		if seq := c.Sales.last(); seq != 0 {
			heads = append(heads, seq)
		}
	}
	heap.Init(&heads)
	cut := saleCutter{page: p}
	for len(heads) > 0 && (f.dated() || p.skip() < total && uint64(len(cut.list)) < p.limit) {
		s, err := t.saleAt(heads[0])
		if err != nil {
			return nil, 0, err
		}
		if heads[0] = s.Link.Prev; heads[0] == 0 {
			heap.Pop(&heads)
		} else {
			heap.Fix(&heads, 0)
		}
		if f.keeps(s) {
			cut.take(s)
		}
	}
	if f.dated() {
		total = cut.total
	}
	return cut.list, total, nil
}

// salesBetween reads a span of time, latest first. The tallies of whole days
// say how many sales to pass over; only the days that the page lies in and
// those that the span cuts are read.
func (t *txn) salesBetween(f saleFilter, p page) ([]*sale, uint64, error) {
	days, err := t.daysOfSales(f)
	if err != nil {
		return nil, 0, err
	}
	var (
		list  []*sale
		total uint64
	)
	for _, d := range slices.Backward(slices.Sorted(maps.Keys(days))) {
		count := days[d]
		from, to := max(f.from, d.start(t.cfg.zone)), min(f.to, (d+1).start(t.cfg.zone)-1)
		if from != d.start(t.cfg.zone) || to != (d+1).start(t.cfg.zone)-1 {
			count = 0
			for _, err := range t.salesAt(from, to, f.saleType) {
				if err != nil {
					return nil, 0, err
				}
				count++
			}
		}
		before := total
		total += count
		if total <= p.skip() || uint64(len(list)) == p.limit {
			continue
		}
		for seq, err := range t.salesAt(from, to, f.saleType) {
			if err != nil {
				return nil, 0, err
			}
			if before++; before <= p.skip() {
				continue
			}
			if uint64(len(list)) == p.limit {
				break
			}
			s, err := t.saleAt(seq)
			if err != nil {
				return nil, 0, err
			}
			list = append(list, s)
		}
	}
	return list, total, nil
}

// daysOfSales is how many sales there were on each day that a span touches.
func (t *txn) daysOfSales(f saleFilter) (map[day]uint64, error) {
	days := map[day]uint64{}
	for _, p := range t.cfg.Programs {
		prefix := orgKey('y', t.org).u32(p.Number)
		lo, hi := slices.Clone(prefix).day(dayOf(f.from, t.cfg.zone)), prefix.after()
		if f.to != never {
			hi = slices.Clone(prefix).day(dayOf(f.to, t.cfg.zone) + 1)
		}
		for e, err := range t.Scan(lo, hi, false) {
			if err != nil {
				return nil, err
			}
			s, err := decodeRecord[tally](e.Value)
			if err != nil {
				return nil, err
			}
			d := dayIn(e.Key[len(prefix):])
			if f.saleType != typeReturn {
				days[d] += s.Purchases
			}
			if f.saleType != typePurchase {
				days[d] += s.Returns
			}
		}
	}
	return days, nil
}

// salesAt yields where the sales of a span are, latest first.
func (t *txn) salesAt(from, to instant, saleType string) iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		prefix := orgKey('h', t.org)
		for e, err := range t.Scan(slices.Clone(prefix).instant(from), slices.Clone(prefix).instant(to+1), true) {
			if err != nil {
				yield(0, err)
				return
			}
			isPurchase := e.Value[0] == kindPurchase
			if saleType == typePurchase && !isPurchase || saleType == typeReturn && isPurchase {
				continue
			}
			if !yield(uintIn(e.Key[len(prefix)+8:]), nil) {
				return
			}
		}
	}
}

// newestFirst is a heap of sales by sequence, the highest on top.
type newestFirst []uint64

func (h newestFirst) Len() int           { return len(h) }
func (h newestFirst) Less(i, j int) bool { return h[i] > h[j] }
func (h newestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *newestFirst) Push(x any)        { *h = append(*h, x.(uint64)) }
func (h *newestFirst) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
