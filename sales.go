package main

import (
	"crypto/sha256"
	"iter"
	"slices"
)

// A sale, which is a purchase or a return, and how it is registered: in one transaction with the
// points that it moves, the customer's totals and its entries in lists and statistics.

// A sale is a purchase or a return (spec: Transaction).
type sale struct {
	Seq uint64 // from the key

	ID         id
	Customer   id
	Type       string // Purchase or Return
	Source     string // Api, Dashboard, Import or Claim
	Total      decimal
	Comment    string
	ExternalID string
	CreatedAt  instant // when it happened
	Items      []item
	Link       link // the customer's chain
	Previous   id   // of a return: the purchase it belongs to; zero if unlinked

	saleShare              // in the customer's own program
	Others    []otherShare // shares in other programs

	// Of a purchase: the amount that its returns so far gave back, the part of it
	// that was not counted by item, and what each item earned and gave back.
	Returned         decimal
	ReturnedByAmount decimal
	Lines            []line

	By creator

	RegisteredAt instant // when it came; never earlier than that of the sale before
	OccurredAt   instant // of a return: when it happened by its till's clock, if that was ahead; else 0

	Vouchers []uint64 // redemptions that come back with it (rewards_sales.go)

	Payment *salePayment // with points, or what a return undoes of one; nil: none

	Labels saleLabels // of a purchase: what its till says of it (rules_segments.go)

	Version uint64 // of the configuration that a purchase was sold under; 0: before reasons were kept (sales_rules.go)

	Given []givenVoucher // vouchers that a purchase gave, or what became of them by a return (rewards_sales.go)
}

// Tags of a sale's optional fields.
const (
	saleOthers   = 1
	saleExpired  = 2
	saleLimited  = 3 // of each share
	saleVouchers = 4
	salePaid     = 5
	saleLabelled = 6
	saleCounts   = 7 // of each share
	saleGiven    = 8
	saleReasons  = 9 // the version, and of each share
)

// A line is what a purchase keeps about one of its items, for returns.
type line struct {
	Points   decimal // earned by it
	Returned decimal // quantity
}

const (
	typePurchase = "Purchase"
	typeReturn   = "Return"
	sourceAPI    = "Api"
	sourcePanel  = "Dashboard"
	sourceImport = "Import"
	sourceClaim  = "Claim" // of a ticket

	// Sales of one type in keys.
	kindPurchase = 'p'
	kindReturn   = 'r'
)

// What a sale's record says in a byte. The file depends on the order.
var (
	saleTypes   = []string{typePurchase, typeReturn}
	saleSources = []string{sourceAPI, sourcePanel, sourceImport, sourceClaim}
)

func (s *sale) fields(c *coder) {
	s.head(c)
	listField(c, &s.Items, (*item).fields)
	s.Link.fields(c)
	c.idOrNone(&s.Previous)
	s.saleShare.fields(c)
	c.decimal(&s.Returned)
	c.decimal(&s.ReturnedByAmount)
	listField(c, &s.Lines, (*line).fields)
	optionalList(c, saleOthers, &s.Others, (*otherShare).fields)
	optionalField(c, saleExpired, &s.ExpiredLate, (*coder).decimal)
	if c.optional(saleLimited, s.isLimited()) {
		for v := range s.shares {
			c.uints(&v.Limited)
		}
	}
	if c.optional(saleVouchers, len(s.Vouchers) > 0) {
		c.uints(&s.Vouchers)
	}
	if c.optional(salePaid, s.Payment != nil) {
		if c.reading {
			s.Payment = new(salePayment)
		}
		s.Payment.fields(c)
	}
	optionalList(c, saleLabelled, (*[]label)(&s.Labels), (*label).fields)
	if c.optional(saleCounts, s.isCounted()) {
		for v := range s.shares {
			listField(c, &v.Counts, (*ruleCount).fields)
		}
	}
	optionalList(c, saleGiven, &s.Given, (*givenVoucher).fields)
	if c.optional(saleReasons, s.Version > 0) {
		c.uint(&s.Version)
		for v := range s.shares {
			v.Reasons.fields(c)
		}
	}
	if c.reading && (!s.linesMatch() || !s.paymentIsSound()) {
		c.fail()
	}
}

// head is the first fields of a sale's record: who, what and when.
func (s *sale) head(c *coder) {
	c.id(&s.Customer) // first: customerIn reads no further
	c.id(&s.ID)
	uintField(c, &s.Program)
	c.word(saleTypes, &s.Type)
	c.word(saleSources, &s.Source)
	c.decimal(&s.Total)
	c.text(&s.Comment)
	c.text(&s.ExternalID)
	c.instant(&s.CreatedAt)
	c.instantAfter(s.CreatedAt, &s.RegisteredAt)
	c.instant(&s.OccurredAt)
	s.By.fields(c)
}

// linesMatch reports whether a purchase has a line of each item in each share.
func (s *sale) linesMatch() bool {
	if s.Type != typePurchase {
		return true
	}
	match := len(s.Lines) == len(s.Items)
	for i := range s.Others {
		match = match && len(s.Others[i].ByLine) == len(s.Lines)
	}
	return match
}

func (v *item) fields(c *coder) { c.text(&v.SKU); c.decimal(&v.Price); c.decimal(&v.Quantity) }
func (l *line) fields(c *coder) { c.decimal(&l.Points); c.decimal(&l.Returned) }

// isLimited reports whether a purchase used up a part of a daily limit.
func (s *sale) isLimited() bool {
	return s.hasShare(func(v *saleShare) bool { return len(v.Limited) > 0 })
}

// isCounted reports whether a purchase counts in a life or a budget of some rule.
func (s *sale) isCounted() bool {
	return s.hasShare(func(v *saleShare) bool { return len(v.Counts) > 0 })
}

func (s *sale) hasShare(is func(*saleShare) bool) bool {
	for v := range s.shares {
		if is(v) {
			return true
		}
	}
	return false
}

// A salesTxn is purchases and returns in a transaction.
type salesTxn struct {
	t        *txn
	versions map[uint64]*config // of the configuration, that were read
}

func (sa *salesTxn) key(seq uint64) key { return orgKey('t', sa.t.org).u64(seq) }

func (sa *salesTxn) at(seq uint64) (*sale, error) {
	s, err := existing[sale](sa.t.Tx, sa.key(seq))
	if err != nil {
		return nil, err
	}
	s.Seq = seq
	return s, nil
}

// get finds a sale of this organization. Any other id gives
// transaction_not_found.
func (sa *salesTxn) get(saleID id) (*sale, error) {
	seq, ok, err := getUint(sa.t.Tx, orgKey('T', sa.t.org).id(saleID))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, newError(codeTransactionNotFound)
	}
	return sa.at(seq)
}

func (sa *salesTxn) save(s *sale) error { return sa.t.put(sa.key(s.Seq), s) }

// externalKey is the prefix of the entries of sales with an externalId. It holds a
// hash, to stay short; the caller compares the externalId of each sale it finds.
func (sa *salesTxn) externalKey(externalID string) key {
	h := sha256.Sum256([]byte(externalID))
	return append(orgKey('x', sa.t.org), h[:16]...)
}

// A newSale is what a caller says about a sale.
type newSale struct {
	Customer   id
	Total      decimal
	Type       string
	Items      []item
	ExternalID string
	Comment    string
	Original   *id // the purchase that a return belongs to; nil if not named
	Source     string
	OccurredAt instant     // when it happened, as its till says; 0: now
	Again      bool        // a purchase with these values was wholly returned, and this is another one
	Restore    bool        // a return that leaves nothing of its purchase cancels the vouchers used in it
	Pay        *newPayment // of a purchase: with points; nil: not with points
	Labels     saleLabels  // of a purchase
}

// register records a purchase and what it earns, or a return and what it
// takes back, in one transaction (contract §9).
func (sa *salesTxn) register(in newSale) (*sale, *customer, error) {
	if err := sa.checkOccurred(in.OccurredAt); err != nil {
		return nil, nil, err
	}
	c, err := sa.t.customers.get(in.Customer)
	if err != nil {
		return nil, nil, err
	}
	return sa.registerOf(c, in)
}

// registerOf is register for a customer that is already read. Returns of an inactive one are taken,
// since money goes back (contract §31).
func (sa *salesTxn) registerOf(c *customer, in newSale) (*sale, *customer, error) {
	if err := sa.begin(c, in.Type); err != nil {
		return nil, nil, err
	}
	s := &sale{
		ID: sa.t.id(), Customer: c.ID, Type: in.Type, Source: in.Source, Total: in.Total,
		Comment: in.Comment, ExternalID: in.ExternalID, CreatedAt: sa.t.now, Items: in.Items, By: sa.t.by,
		Labels: in.Labels,
	}
	if in.OccurredAt != 0 {
		s.CreatedAt = min(in.OccurredAt, sa.t.now)
		if in.OccurredAt > sa.t.now && s.Type == typeReturn {
			s.OccurredAt = in.OccurredAt
		}
	}
	if s.Type == typeReturn {
		if err := sa.t.rewards.takeVouchers(c, s, in.Original, in.Restore); err != nil {
			return nil, nil, err
		}
	}
	own, err := sa.affectedAccount(c, sa.t.cfg.programNumber(c.Program), &s.saleShare)
	if err != nil {
		return nil, nil, err
	}
	var few [1]affectedAccount
	list := append(few[:0], own)
	if in.Type == typeReturn {
		list, err = sa.takeReturn(c, s, in.Original, list)
	} else {
		list, err = sa.takePurchase(c, s, in.Pay, list)
	}
	if err != nil {
		return nil, nil, err
	}
	for i := range list {
		p := &list[i]
		if after, _ := p.tier(); after.name() != p.before.name() {
			p.share.TierFrom, p.share.TierTo = p.before.name(), after.name()
		}
		p.share.Balance = p.Balance
	}
	if err := sa.append(c, list, s); err != nil {
		return nil, nil, err
	}
	if slices.ContainsFunc(list, func(p affectedAccount) bool { return p.Due <= sa.t.now }) {
		if s, err = sa.expireLate(list, s); err != nil {
			return nil, nil, err
		}
	}
	if s.Type == typePurchase && len(sa.t.points.risen) > 0 {
		s, err = sa.giveReached(c, s)
	}
	return s, c, err
}

// begin checks that a customer may have a sale of a type, and gives what the transaction has brought
// anybody to before, as by another item of a batch.
func (sa *salesTxn) begin(c *customer, saleType string) error {
	may := c.mustBeActive
	if saleType == typeReturn {
		may = c.mustBeShown
	}
	if err := may(); err != nil || len(sa.t.points.risen) == 0 {
		return err
	}
	_, err := sa.t.giver.giveRisen(id{})
	return err
}

// giveReached gives the vouchers that a purchase has brought its customer to, once all of it is
// written.
func (sa *salesTxn) giveReached(c *customer, s *sale) (*sale, error) {
	given, err := sa.t.giver.giveRisen(s.ID)
	if err != nil || len(given) == 0 {
		return s, err
	}
	if s, err = sa.at(s.Seq); err != nil { // it may have expired in part
		return nil, err
	}
	s.Given = append(s.Given, given...)
	for v := range s.shares {
		a, err := sa.t.points.account(c, sa.t.cfg.programNumber(v.Program))
		if err != nil {
			return nil, err
		}
		v.Balance = a.Balance
	}
	return s, sa.save(s)
}

// append writes a sale, its entries in lists, indexes and statistics, its
// customer and its accounts.
func (sa *salesTxn) append(c *customer, in []affectedAccount, s *sale) error {
	n, err := sa.t.count()
	if err != nil {
		return err
	}
	n.Sales++
	n.Registered = max(n.Registered, sa.t.began)
	s.Seq, s.RegisteredAt = n.Sales, n.Registered
	s.Link = c.Sales.append(s.Seq)
	kind, number := byte(kindPurchase), &n.Purchases
	if s.Type == typePurchase {
		c.PurchasesTotal++
	} else {
		kind, number = kindReturn, &n.Returns
	}
	*number++
	if err := sa.t.putUint(orgKey('l', sa.t.org).byte(kind).u64(*number), s.Seq); err != nil {
		return err
	}
	if err := sa.t.putUint(orgKey('T', sa.t.org).id(s.ID), s.Seq); err != nil {
		return err
	}
	if s.ExternalID != "" {
		if err := sa.t.Put(sa.externalKey(s.ExternalID).u64(s.Seq), nil); err != nil {
			return err
		}
		if err := sa.t.tickets.takenBy(s); err != nil {
			return err
		}
	}
	if err := sa.t.Put(orgKey('h', sa.t.org).instant(s.CreatedAt).u64(s.Seq), key{kind}.u32(uint32(c.Number))); err != nil {
		return err
	}
	if err := sa.t.saleLog.add(c, s); err != nil {
		return err
	}
	if err := sa.countIn(c, s); err != nil {
		return err
	}
	if err := sa.save(s); err != nil {
		return err
	}
	for i := range in {
		if err := sa.t.points.saveAccount(in[i].account); err != nil {
			return err
		}
	}
	if err := sa.t.feed.emit(eventTransactionCreated, s.Seq); err != nil {
		return err
	}
	return sa.t.customers.save(c)
}

// countIn counts a sale in the statistics.
func (sa *salesTxn) countIn(c *customer, s *sale) error {
	counted, err := sa.t.stats.tally(s.Program, s.CreatedAt)
	if err != nil {
		return err
	}
	counted.countSale(s)
	if s.Payment != nil {
		if counted, err = sa.t.stats.tally(s.Payment.Program, s.CreatedAt); err != nil {
			return err
		}
		counted.countPayment(s)
	}
	if s.Type != typePurchase {
		return nil
	}
	return sa.t.stats.countActive(c, s.CreatedAt)
}

// takePurchase takes the points that pay, gives what the rules of each program say and adds to
// the customer's totals. It adds the accounts in other programs to the list.
func (sa *salesTxn) takePurchase(c *customer, s *sale, pay *newPayment, list []affectedAccount) ([]affectedAccount, error) {
	s.Version = sa.t.cfg.Version
	list, err := sa.otherAffected(list, c, s, nil)
	if err != nil {
		return nil, err
	}
	from, counted, err := sa.planPayment(c, s, pay, list)
	if err != nil {
		return nil, err
	}
	if err := sa.earnings(c, s, counted, list); err != nil {
		return nil, err
	}
	if err := sa.takePayment(s, from, list); err != nil {
		return nil, err
	}
	var ok bool
	if c.TotalSpent, ok = c.TotalSpent.add(s.Total); !ok {
		return nil, newError(codeTooLarge).on("totalAmount")
	}
	c.Purchases++
	c.LastSaleAt = max(c.LastSaleAt, s.CreatedAt)
	for i := range list {
		sa.t.points.active(list[i].account, s.CreatedAt)
		if err := sa.giveEarned(s, &list[i]); err != nil {
			return nil, err
		}
	}
	s.Lines = make([]line, len(s.Items))
	for i, points := range list[0].earned.lines {
		s.Lines[i].Points = points
	}
	for i := range s.Others {
		s.Others[i].ByLine = list[i+1].earned.lines
	}
	return list, nil
}

// chainFrom yields the sale at seq and its predecessors in the chain, newest first.
func (sa *salesTxn) chainFrom(seq uint64) iter.Seq2[*sale, error] {
	return chainFrom(seq, sa.at, func(s *sale) uint64 { return s.Link.Prev })
}

// countSale adds a sale to the tally.
func (s *tally) countSale(x *sale) {
	if x.Type == typePurchase {
		s.Purchases++
		s.SalesAmount += x.Total
		if x.Source == sourceClaim {
			s.Claimed++
		}
	} else {
		s.Returns++
		s.ReturnsAmount += x.Total
	}
}
