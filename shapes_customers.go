package main

import (
	"bytes"
	"cmp"
	"slices"
)

// Customers as clients get them: in lists, and in detail with programs, tiers and notices.

type customerItem struct {
	ID               id      `json:"id"`
	Name             string  `json:"name"`
	Status           string  `json:"status"`
	LoyaltyProgramID id      `json:"loyaltyProgramId"`
	TierName         *string `json:"tierName"`
}

func (v customerItem) appendJSON(b []byte) []byte {
	b = v.ID.appendJSON(append(b, `{"id":`...))
	b = appendJSONString(append(b, `,"name":`...), v.Name)
	b = appendJSONString(append(b, `,"status":`...), v.Status)
	b = v.LoyaltyProgramID.appendJSON(append(b, `,"loyaltyProgramId":`...))
	b = appendJSONText(append(b, `,"tierName":`...), v.TierName)
	return append(b, '}')
}

// newCustomerItems reads the customers and their accounts in key order, because
// neighbouring keys lie close together in the store. The items keep the order of ids.
func newCustomerItems(t *txn, ids []id) ([]customerItem, error) {
	warm(t.Tx, ids,
		func(u id) key { return t.scratchKey(u, partCustomer) },
		func(u id) key { return t.scratchKey(u, partAccount).u32(t.cfg.defaultProgram().Number) })
	inOrder := make([]int, len(ids))
	for i := range inOrder {
		inOrder[i] = i
	}
	slices.SortFunc(inOrder, func(i, j int) int { return bytes.Compare(ids[i][:], ids[j][:]) })
	items := make([]customerItem, len(ids))
	var (
		c    customer
		turn pacer
	)
	for _, i := range inOrder {
		err := t.customers.read(ids[i], &c)
		if err == nil {
			items[i], err = newCustomerItem(t, &c)
		}
		if err != nil {
			return nil, err
		}
		turn.pause()
	}
	return items, nil
}

func newCustomerItem(t *txn, c *customer) (customerItem, error) {
	t.seals.reveal(c.ID)
	current, err := t.points.ownTier(c)
	if err != nil {
		return customerItem{}, err
	}
	return customerItem{c.ID, c.name(), c.Status, t.cfg.programNumber(c.Program).ID, current.nameOrNull()}, nil
}

// A walkedCustomers is a page of a walk.
type walkedCustomers struct {
	Data []customerItem `json:"data"`
	Next *string        `json:"next"`
}

func newWalkedCustomers(t *txn, found []id, next uint64) (walkedCustomers, error) {
	items, err := newCustomerItems(t, found)
	return walkedCustomers{items, cursorOf(next)}, err
}

func (v walkedCustomers) appendJSON(b []byte) []byte {
	b = appendJSONList(append(slices.Grow(b, 256*len(v.Data)), `{"data":`...), v.Data)
	return append(appendJSONText(append(b, `,"next":`...), v.Next), '}')
}

type customerDetail struct {
	ID                id                `json:"id"`
	Name              string            `json:"name"`
	FirstName         *string           `json:"firstName"`
	LastName          *string           `json:"lastName"`
	Email             *string           `json:"email"`
	PhoneNumber       *string           `json:"phoneNumber"`
	ExternalID        *string           `json:"externalId"`
	MemberCode        *string           `json:"memberCode"`
	HasCard           bool              `json:"hasCard"`
	BirthDate         *string           `json:"birthDate"`
	Attributes        attributesShape   `json:"attributes"`
	Marketing         *bool             `json:"marketing"`
	MarketingAt       instant           `json:"marketingAt"`
	Status            string            `json:"status"`
	MergedInto        *id               `json:"mergedInto"`
	LoyaltyProgramID  id                `json:"loyaltyProgramId"`
	TierName          *string           `json:"tierName"`
	NextTierName      *string           `json:"nextTierName"`
	PointsToNextTier  *decimal          `json:"pointsToNextTier"`
	TierProgress      *tierProgress     `json:"tierProgress"`
	CurrencyID        id                `json:"currencyId"`
	Balance           decimal           `json:"balance"`
	PendingBalance    decimal           `json:"pendingBalance"`
	LifetimePoints    decimal           `json:"lifetimePoints"`
	ExpiringPoints    []expiring        `json:"expiringPoints"`
	Programs          []customerProgram `json:"programs"` // the customer's own first
	SegmentIDs        []id              `json:"segmentIds"`
	TotalSpent        decimal           `json:"totalSpent"`
	TransactionsCount uint64            `json:"transactionsCount"`
	LastTransactionAt instant           `json:"lastTransactionAt"`
	CreatedAt         instant           `json:"createdAt"`
	UpdatedAt         instant           `json:"updatedAt"`
}

// A customerProgram is what a customer has in one program.
type customerProgram struct {
	LoyaltyProgramID id            `json:"loyaltyProgramId"`
	TierName         *string       `json:"tierName"`
	TierProgress     *tierProgress `json:"tierProgress"`
	Balance          decimal       `json:"balance"`
	PendingBalance   decimal       `json:"pendingBalance"`
	LifetimePoints   decimal       `json:"lifetimePoints"`
}

func newCustomerProgram(t *txn, a *account) (customerProgram, error) {
	current, _ := a.tier()
	progress, err := newTierProgress(t, a)
	return customerProgram{a.program.ID, current.nameOrNull(), progress, a.Balance, a.Pending, a.Lifetime}, err
}

// A tierProgress is how far a customer is from the tiers above and below its own (contract §22).
type tierProgress struct {
	Metric       string   `json:"metric"`
	Value        decimal  `json:"value"` // what decides the tier
	NextTierName *string  `json:"nextTierName"`
	Missing      *decimal `json:"missing"`
	FallsAt      instant  `json:"fallsAt"`
	FallsTo      *string  `json:"fallsTo"`
}

// newTierProgress returns nil in a program without tiers.
func newTierProgress(t *txn, a *account) (*tierProgress, error) {
	current, next := a.tier()
	if current == nil {
		return nil, nil
	}
	f, err := t.points.fall(a)
	if err != nil {
		return nil, err
	}
	v := &tierProgress{Metric: a.program.TierBasis.Metric, Value: a.figure(), NextTierName: next.nameOrNull(), FallsAt: f.At, FallsTo: f.To.nameOrNull()}
	if next != nil {
		v.Missing = new(next.Threshold - t.points.growing(a))
	}
	return v, nil
}

// An attributesShape is attributes as an object.
type attributesShape struct{ list []attribute }

func (v attributesShape) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, a := range v.list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(appendJSONString(b, a.Name), ':'), a.Value...)
	}
	return append(b, '}'), nil
}

func newCustomerDetail(t *txn, c *customer) (customerDetail, error) {
	t.seals.reveal(c.ID)
	p := t.cfg.programNumber(c.Program)
	a, err := t.points.account(c, p)
	if err != nil {
		return customerDetail{}, err
	}
	expiring, err := t.points.expiring(a)
	if err != nil {
		return customerDetail{}, err
	}
	own, err := newCustomerProgram(t, a)
	if err != nil {
		return customerDetail{}, err
	}
	hasCard, err := t.cards.has(c)
	if err != nil {
		return customerDetail{}, err
	}
	_, next := a.tier()
	d := customerDetail{
		ID: c.ID, Name: c.name(), FirstName: orNull(c.FirstName), LastName: orNull(c.LastName),
		Email: orNull(c.Email), PhoneNumber: orNull(c.Phone), ExternalID: orNull(c.ExternalID), MemberCode: t.customers.memberCode(c), HasCard: hasCard, BirthDate: orNull(c.BirthDate.String()),
		Attributes: attributesShape{c.Attributes}, Marketing: c.Marketing.Answer.orNull(), MarketingAt: c.Marketing.At, Status: c.Status, MergedInto: idOrNull(c.MergedInto),
		LoyaltyProgramID: p.ID, TierName: own.TierName, NextTierName: next.nameOrNull(), TierProgress: own.TierProgress, CurrencyID: p.currencyID(),
		Balance: a.Balance, PendingBalance: a.Pending, LifetimePoints: a.Lifetime, ExpiringPoints: expiring,
		Programs: []customerProgram{own}, SegmentIDs: []id{}, TotalSpent: c.TotalSpent, TransactionsCount: c.Purchases, LastTransactionAt: c.LastSaleAt,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
	if next != nil && p.TierBasis.Metric == metricPoints {
		d.PointsToNextTier = own.TierProgress.Missing
	}
	in, err := t.rules.segmentsOf(a)
	if err != nil {
		return d, err
	}
	for _, s := range in {
		d.SegmentIDs = append(d.SegmentIDs, s.ID)
	}
	others, err := newOtherPrograms(t, c)
	d.Programs = append(d.Programs, others...)
	return d, err
}

// newOtherPrograms are those that a customer is in, except its own.
func newOtherPrograms(t *txn, c *customer) (list []customerProgram, err error) {
	for _, p := range t.cfg.Programs {
		if p.Number == c.Program {
			continue
		}
		_, written, err := t.Get(t.points.accountKey(c, p))
		if err != nil {
			return nil, err
		}
		if !written && p.Join != joinAll {
			continue
		}
		a, err := t.points.account(c, p)
		if err != nil {
			return nil, err
		}
		v, err := newCustomerProgram(t, a)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// A cardShape is a customer's card. Its address is shown once, to who gave the card.
type cardShape struct {
	CustomerID id      `json:"customerId"`
	MemberCode *string `json:"memberCode"`
	URL        *string `json:"url"`
	CreatedAt  instant `json:"createdAt"`
	ExpiresAt  instant `json:"expiresAt"`
}

func newCardShape(t *txn, c *customer) cardShape {
	t.seals.reveal(c.ID)
	return cardShape{CustomerID: c.ID, MemberCode: t.customers.memberCode(c)}
}

type mergedShape struct {
	customerDetail
	Dropped droppedShape `json:"dropped"`
}

// A droppedShape is what contact of the merged customer the survivor did not get.
type droppedShape struct {
	Email       *string `json:"email"`
	PhoneNumber *string `json:"phoneNumber"`
	ExternalID  *string `json:"externalId"`
}

// A writtenShape is a writtenNotice in the export of a person.
type writtenShape struct {
	Kind noticeKind `json:"kind"`
	At   instant    `json:"at"`
	By   *createdBy `json:"by"`
}

// An askedShape is an undoRequest in the export of a person.
type askedShape struct {
	TransactionID *id        `json:"transactionId,omitempty"`
	RedemptionID  *id        `json:"redemptionId,omitempty"`
	Reason        string     `json:"reason,omitempty"`
	At            instant    `json:"at"`
	By            *createdBy `json:"by"`
}

// newAskedShapes has the requests to undo what is kept under a customer.
func newAskedShapes(t *txn, c *customer) ([]askedShape, error) {
	all, err := t.sales.undoRequests()
	list := []askedShape{}
	for _, r := range all {
		if r.Customer != c.ID {
			continue
		}
		asked := askedShape{TransactionID: &r.Subject, Reason: r.Reason, At: r.At}
		if r.Redemption {
			asked.TransactionID, asked.RedemptionID = nil, &r.Subject
		}
		if asked.By, err = newCreatedBy(t, r.By); err != nil {
			return nil, err
		}
		list = append(list, asked)
	}
	return list, err
}

// newWrittenShapes has what is known, newest first.
func newWrittenShapes(t *txn, c *customer) ([]writtenShape, error) {
	list := []writtenShape{}
	for _, w := range c.Written {
		if w.isOld(t.now) {
			continue
		}
		by, err := newCreatedBy(t, creator{Type: byUser, ID: w.User})
		if err != nil {
			return nil, err
		}
		list = append(list, writtenShape{w.Kind, w.At, by})
	}
	slices.SortStableFunc(list, func(a, b writtenShape) int { return cmp.Compare(b.At, a.At) })
	return list, nil
}
