package main

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
)

// What clients get: the envelope of lists, balances, rewards, redemptions, programs, statistics and
// the audit log. Absent values are null (contract §1). The shapes requested most are encoded
// without reflection, by the appendJSON beside each (input_json.go).

// A listShape is the envelope of a paged list (spec: Pagination envelope).
type listShape[T any] struct {
	Data []T      `json:"data"`
	Meta listMeta `json:"meta"`
}

type listMeta struct {
	CurrentPage     uint64 `json:"currentPage"`
	Total           uint64 `json:"total"`
	HasNextPage     bool   `json:"hasNextPage"`
	HasPreviousPage bool   `json:"hasPreviousPage"`
}

func newListMeta(total uint64, p page) listMeta {
	return listMeta{p.number, total, p.skip()+p.limit < total, p.number > 1 && total > 0}
}

func newList[R, T any](t *txn, records []R, total uint64, p page, shape func(*txn, R) (T, error)) (listShape[T], error) {
	l := listShape[T]{Data: make([]T, 0, len(records)), Meta: newListMeta(total, p)}
	var turn pacer
	for _, r := range records {
		v, err := shape(t, r)
		if err != nil {
			return l, err
		}
		l.Data = append(l.Data, v)
		turn.pause()
	}
	return l, nil
}

// An appendedList is a list encoded by appendJSON, without reflection.
type appendedList[T jsonAppender] listShape[T]

func newAppendedList[R any, T jsonAppender](t *txn, records []R, total uint64, p page, shape func(*txn, R) (T, error)) (appendedList[T], error) {
	l, err := newList(t, records, total, p, shape)
	return appendedList[T](l), err
}

func (l appendedList[T]) appendJSON(b []byte) []byte {
	b = appendJSONList(append(slices.Grow(b, 256*len(l.Data)), `{"data":`...), l.Data)
	b = strconv.AppendUint(append(b, `,"meta":{"currentPage":`...), l.Meta.CurrentPage, 10)
	b = strconv.AppendUint(append(b, `,"total":`...), l.Meta.Total, 10)
	b = strconv.AppendBool(append(b, `,"hasNextPage":`...), l.Meta.HasNextPage)
	b = strconv.AppendBool(append(b, `,"hasPreviousPage":`...), l.Meta.HasPreviousPage)
	return append(b, "}}"...)
}

// shaped takes what a function found, and shows it unless that failed.
func shaped[R, T any](t *txn, shape func(*txn, R) (T, error)) func(R, error) (any, error) {
	return func(found R, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return shape(t, found)
	}
}

// orNull and idOrNull allocate nothing for null, which most values are.

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return new(s)
}

func idOrNull(u id) *id {
	if u == (id{}) {
		return nil
	}
	return new(u)
}

func textOr(s *string, otherwise string) string {
	if s == nil {
		return otherwise
	}
	return *s
}

// wholeOrNull returns null for 0, which stands for no number.
func wholeOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

type balance struct {
	ID             id         `json:"id"`
	Balance        decimal    `json:"balance"`
	CustomerID     id         `json:"customerId"`
	CurrencyID     id         `json:"currencyId"`
	PendingBalance decimal    `json:"pendingBalance"`
	LifetimePoints *decimal   `json:"lifetimePoints"` // null: not known of the past
	ExpiringPoints []expiring `json:"expiringPoints"` // null: the same
	AsOf           instant    `json:"asOf"`
	HeldBalance    decimal    `json:"heldBalance"`
}

func (v balance) appendJSON(b []byte) []byte {
	b = v.ID.appendJSON(append(b, `{"id":`...))
	b = v.Balance.append(append(b, `,"balance":`...))
	b = v.CustomerID.appendJSON(append(b, `,"customerId":`...))
	b = v.CurrencyID.appendJSON(append(b, `,"currencyId":`...))
	b = v.PendingBalance.append(append(b, `,"pendingBalance":`...))
	if b = append(b, `,"lifetimePoints":`...); v.LifetimePoints == nil {
		b = append(b, "null"...)
	} else {
		b = v.LifetimePoints.append(b)
	}
	b = appendJSONList(append(b, `,"expiringPoints":`...), v.ExpiringPoints)
	b = v.AsOf.appendJSON(append(b, `,"asOf":`...))
	b = v.HeldBalance.append(append(b, `,"heldBalance":`...))
	return append(b, '}')
}

// newBalance shows an account that is settled.
func newBalance(t *txn, a *account) (balance, error) {
	expiring, err := t.points.expiring(a)
	return balance{a.id(), a.Balance, a.customer.ID, a.program.currencyID(), a.Pending, &a.Lifetime, expiring, t.now, a.held()}, err
}

// newBalanceAt shows an account of the past.
func newBalanceAt(a *account, then *accountAt, at instant) balance {
	return balance{a.id(), then.Balance, a.customer.ID, a.program.currencyID(), then.Pending, then.Lifetime, then.Expiring, at, then.Held}
}

type createdBy struct {
	Type  string  `json:"type"`
	ID    *id     `json:"id"`
	Name  *string `json:"name"` // that the API key or the user has now
	Actor *string `json:"actor"`
}

func (v *createdBy) appendJSON(b []byte) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	b = appendJSONString(append(b, `{"type":`...), v.Type)
	b = appendJSONID(append(b, `,"id":`...), v.ID)
	b = appendJSONText(append(b, `,"name":`...), v.Name)
	b = appendJSONText(append(b, `,"actor":`...), v.Actor)
	return append(b, '}')
}

// newCreatedBy is nil for a zero creator.
func newCreatedBy(t *txn, c creator) (*createdBy, error) {
	if c == (creator{}) {
		return nil, nil
	}
	v := &struct { // one allocation
		createdBy
		by   creator
		name string
	}{by: c}
	v.Type = c.Type
	if c.ID != (id{}) {
		v.ID = &v.by.ID
	}
	if c.Actor != "" {
		v.Actor = &v.by.Actor
	}
	var err error
	switch c.Type {
	case byKey:
		v.name, err = t.keys.nameOf(c.ID)
	case byUser:
		v.name, err = t.people.nameOf(c.ID)
	}
	if v.name != "" {
		v.Name = &v.name
	}
	return &v.createdBy, err
}

type rewardShape struct {
	ID               id       `json:"id"`
	Name             string   `json:"name"`
	Description      *string  `json:"description"`
	ImageURL         *string  `json:"imageUrl"`
	Status           string   `json:"status"`
	PointsCost       decimal  `json:"pointsCost"`
	LoyaltyProgramID id       `json:"loyaltyProgramId"`
	Stock            *int     `json:"stock"`
	LimitPerCustomer *int     `json:"limitPerCustomer"`
	TierNames        []string `json:"tierNames"`
	SegmentIDs       []id     `json:"segmentIds"`
	ValidFrom        instant  `json:"validFrom"`
	ValidTo          instant  `json:"validTo"`
	Fulfilment       string   `json:"fulfilment"`
	ValidDays        *int     `json:"validDays"`
	Effect           *effect  `json:"effect"`
	CreatedAt        instant  `json:"createdAt"`
	UpdatedAt        instant  `json:"updatedAt"`
	AutoIssue        bool     `json:"autoIssue"`

	// With customerId only.
	Available *bool     `json:"available,omitempty"`
	Reasons   *[]string `json:"unavailabilityReasons,omitempty"`
}

func newRewardShape(t *txn, r *reward) (rewardShape, error) {
	s := rewardShape{
		ID: r.ID, Name: r.Name, Description: r.Description, ImageURL: r.ImageURL, Status: r.Status, PointsCost: r.PointsCost,
		LoyaltyProgramID: t.cfg.programKey(r.Program).ID, LimitPerCustomer: r.LimitPerCustomer,
		TierNames: append([]string{}, r.Tiers...), SegmentIDs: segmentIDs(t, r.Segments),
		Fulfilment: r.Fulfilment, ValidDays: r.ValidDays, Effect: effectOrNull(r.Effect.effect()), CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		AutoIssue: r.AutoIssue,
	}
	s.ValidFrom, _ = parseMoment(r.ValidFrom, t.cfg.zone, false)
	s.ValidTo, _ = parseMoment(r.ValidTo, t.cfg.zone, true)
	var err error
	s.Stock, err = t.rewards.stock(r)
	return s, err
}

// newRewardShapeFor adds whether the customer can redeem the reward now, and why not.
func newRewardShapeFor(t *txn, r *reward, c *customer) (rewardShape, error) {
	s, err := newRewardShape(t, r)
	if err != nil {
		return s, err
	}
	a, err := t.points.account(c, t.cfg.programKey(r.Program))
	if err != nil {
		return s, err
	}
	reasons, err := t.rewards.unavailable(r, c, a)
	if err != nil {
		return s, err
	}
	if c.Status != statusActive {
		reasons = append([]string{reasonCustomer}, reasons...)
	}
	available := len(reasons) == 0
	s.Available, s.Reasons = &available, &reasons
	return s, nil
}

func effectOrNull(e effect) *effect {
	if e == (effect{}) {
		return nil
	}
	return &e
}

type redemptionShape struct {
	ID            id         `json:"id"`
	Code          string     `json:"code"`
	CustomerID    id         `json:"customerId"`
	ProductID     id         `json:"productId"`
	RewardName    string     `json:"rewardName"`
	PointsSpent   decimal    `json:"pointsSpent"`
	Balance       decimal    `json:"balance"`
	Status        string     `json:"status"`
	Effect        *effect    `json:"effect"`
	Comment       *string    `json:"comment"`
	MovementID    *id        `json:"movementId"` // null: it cost nothing
	CreatedAt     instant    `json:"createdAt"`
	CreatedBy     *createdBy `json:"createdBy"`
	ExpiresAt     instant    `json:"expiresAt"`
	UsedAt        instant    `json:"usedAt"`
	UsedBy        *createdBy `json:"usedBy"`
	TransactionID *id        `json:"transactionId"`
	CancelledAt   instant    `json:"cancelledAt"`

	GivenBy *giftShape `json:"givenBy,omitempty"`
}

// giftShape is where a voucher came from that nobody redeemed.
type giftShape struct {
	TransactionID *id     `json:"transactionId"`
	RuleID        *id     `json:"ruleId"`
	Tier          *string `json:"tier"`
}

// newRedemptionShape shows a redemption as it is now.
func newRedemptionShape(t *txn, x *redemption) (redemptionShape, error) {
	t.seals.reveal(x.Customer)
	by, err := newCreatedBy(t, x.By)
	if err != nil {
		return redemptionShape{}, err
	}
	usedBy, err := newCreatedBy(t, x.UsedBy)
	if err != nil {
		return redemptionShape{}, err
	}
	var debited *id
	if x.Movement != 0 {
		debited = new(movementID(x.Customer, x.Movement))
	}
	owner, err := t.merges.ownerID(x.Customer)
	return redemptionShape{
		ID: x.ID, Code: x.Code, CustomerID: owner, ProductID: x.Reward, RewardName: x.RewardName, PointsSpent: x.Points, Balance: x.Balance,
		Status: x.status(t.now), Effect: effectOrNull(x.Effect), Comment: orNull(x.Comment), MovementID: debited, GivenBy: newGiftShape(x.Gift),
		CreatedAt: x.CreatedAt, CreatedBy: by, ExpiresAt: x.Expires, UsedAt: x.UsedAt, UsedBy: usedBy, TransactionID: idOrNull(x.Sale),
		CancelledAt: x.CancelledAt,
	}, err
}

// newGiftShape is nil for a redemption that somebody made.
func newGiftShape(g gift) *giftShape {
	if g == (gift{}) {
		return nil
	}
	return &giftShape{idOrNull(g.Sale), idOrNull(g.Rule), orNull(g.Tier)}
}

type segmentShape struct {
	ID          id      `json:"id"`
	Name        string  `json:"name"`
	Description *string `json:"description"`
	Priority    int     `json:"priority"`
	IsActive    bool    `json:"isActive"`
	CreatedAt   instant `json:"createdAt"`
}

func newSegmentShape(s *segment) segmentShape {
	return segmentShape{s.ID, s.Name, s.Description, s.Priority, s.IsActive, s.CreatedAt}
}

type programShape struct {
	ID              id                 `json:"id"`
	Name            string             `json:"name"`
	CurrencyID      id                 `json:"currencyId"`
	CurrencyName    string             `json:"currencyName"`
	IsDefault       bool               `json:"isDefault"`
	Join            string             `json:"join"`
	PointsDecimals  int                `json:"pointsDecimals"`
	TierBasis       tierBasisShape     `json:"tierBasis"`
	Tiers           []tierShape        `json:"tiers"`
	Rules           []ruleShape        `json:"rules"`
	Expiry          *expiryShape       `json:"expiry"`
	Rounding        rounding           `json:"rounding"`
	Returns         string             `json:"returns"`
	NegativeBalance string             `json:"negativeBalance"`
	Payment         *paymentTermsShape `json:"payment"`
	ExcludeSKUs     []string           `json:"excludeSkus"`
}

// paymentTermsShape is what the points of a program pay.
type paymentTermsShape struct {
	Points     decimal `json:"points"`
	Amount     decimal `json:"amount"`
	MinPoints  decimal `json:"minPoints"`
	MaxPercent decimal `json:"maxPercent"`
	Step       decimal `json:"step"`
	EarnOn     string  `json:"earnOn"`

	ExcludeSKUs []string `json:"excludeSkus"`
}

type tierBasisShape struct {
	Metric string `json:"metric"`
	Window string `json:"window"`
	Months *int   `json:"months"`
}

type tierShape struct {
	Name       string   `json:"name"`
	Threshold  decimal  `json:"threshold"`
	Multiplier *decimal `json:"multiplier"`
}

type expiryShape struct {
	Days           *int    `json:"days"`
	Months         *int    `json:"months"`
	EndOf          *string `json:"endOf"`
	InactiveMonths *int    `json:"inactiveMonths"`
}

type ruleShape struct {
	ID                   id         `json:"id"`
	Name                 string     `json:"name"`
	On                   string     `json:"on"`
	MinAmount            *decimal   `json:"minAmount"`
	SKUs                 []string   `json:"skus"`
	TierNames            []string   `json:"tierNames"`
	SegmentIDs           []id       `json:"segmentIds"`
	Days                 []string   `json:"days"`
	Hours                *hourRange `json:"hours"`
	From                 instant    `json:"from"`
	Until                instant    `json:"until"`
	FirstPurchase        bool       `json:"firstPurchase"`
	MaxPerCustomerPerDay *int       `json:"maxPerCustomerPerDay"`

	ExcludeSKUs    []string            `json:"excludeSkus"`
	MinQuantity    *decimal            `json:"minQuantity"`
	Labels         map[string][]string `json:"labels"`
	MaxPerCustomer *int                `json:"maxPerCustomer"`
	Every          *int                `json:"every"`
	MaxPoints      *decimal            `json:"maxPoints"`
	Budget         *decimal            `json:"budget"`
	BudgetUsed     *decimal            `json:"budgetUsed"` // null without a budget
	Category       string              `json:"category"`
	RewardID       *id                 `json:"rewardId"`

	Per           *perRule `json:"per"`
	PerItem       *decimal `json:"perItem"`
	Points        *decimal `json:"points"`
	Multiplier    *decimal `json:"multiplier"`
	PendingDays   *int     `json:"pendingDays"`
	ExpiresInDays *int     `json:"expiresInDays"`
}

func newProgramShape(t *txn, p *program) (programShape, error) {
	s := programShape{
		ID: p.ID, Name: p.Name, CurrencyID: p.currencyID(), CurrencyName: p.Currency.Many, IsDefault: p.Default, Join: p.Join,
		PointsDecimals: p.PointsDecimals,
		TierBasis:      tierBasisShape{p.TierBasis.Metric, p.TierBasis.Window, wholeOrNull(p.TierBasis.Months)},
		Tiers:          []tierShape{}, Rules: []ruleShape{},
		Rounding: p.Rounding, Returns: p.Returns, NegativeBalance: p.NegativeBalance,
		ExcludeSKUs: append([]string{}, p.ExcludeSKUs...),
	}
	for _, tier := range p.Tiers {
		s.Tiers = append(s.Tiers, tierShape(tier))
	}
	if e := p.Expiry; e != nil {
		s.Expiry = &expiryShape{wholeOrNull(e.Days), wholeOrNull(e.Months), orNull(e.EndOf), wholeOrNull(e.InactiveMonths)}
	}
	if y, pays := t.cfg.payTerms(p); pays {
		s.Payment = &paymentTermsShape{y.points, y.amount, y.fewest(), y.percent, y.step, p.Payment.EarnOn, append([]string{}, p.Payment.ExcludeSKUs...)}
	}
	for i := range p.Rules {
		r, err := newRuleShape(t, p, &p.Rules[i])
		if err != nil {
			return s, err
		}
		s.Rules = append(s.Rules, r)
	}
	return s, nil
}

func newRuleShape(t *txn, p *program, r *rule) (s ruleShape, err error) {
	s = ruleShape{
		ID: p.ruleID(r), Name: r.Name, On: r.On, MinAmount: r.MinAmount, SKUs: append([]string{}, r.SKUs...),
		TierNames: append([]string{}, r.Tiers...), SegmentIDs: segmentIDs(t, r.Segments), Days: append([]string{}, r.Days...),
		Hours: r.Hours, FirstPurchase: r.FirstPurchase, MaxPerCustomerPerDay: wholeOrNull(r.MaxPerCustomerPerDay),
		Per: r.Per, PerItem: r.PerItem, Points: r.Points, Multiplier: r.Multiplier,
		PendingDays: wholeOrNull(r.PendingDays), ExpiresInDays: wholeOrNull(r.ExpiresInDays),
		ExcludeSKUs: append([]string{}, r.ExcludeSKUs...), MinQuantity: r.MinQuantity, Labels: map[string][]string{},
		MaxPerCustomer: wholeOrNull(r.MaxPerCustomer), Every: wholeOrNull(r.Every), MaxPoints: r.MaxPoints, Budget: r.Budget,
		Category: r.category(),
	}
	maps.Copy(s.Labels, r.Labels)
	if given := t.cfg.rewardKey(r.Reward); given != nil {
		s.RewardID = &given.ID
	}
	if r.Budget != nil {
		used, err := t.sales.budgetUsed(p, r)
		if err != nil {
			return s, err
		}
		s.BudgetUsed = &used
	}
	s.From, _ = parseMoment(r.From, t.cfg.zone, false)
	s.Until, _ = parseMoment(r.Until, t.cfg.zone, true)
	return s, nil
}

func segmentIDs(t *txn, keys []string) []id {
	ids := []id{}
	for _, k := range keys {
		ids = append(ids, t.cfg.segmentKey(k).ID)
	}
	return ids
}

type organizationShape struct {
	ID       id            `json:"id"`
	Name     string        `json:"name"`
	Slug     string        `json:"slug"`
	Profile  any           `json:"profile"`
	Settings settingsShape `json:"settings"`
}

type settingsShape struct {
	Timezone string `json:"timezone"`
	Currency string `json:"currency"`
	Language string `json:"language"`
}

type auditShape struct {
	Seq       uint64        `json:"seq"`
	At        instant       `json:"at"`
	Actor     *createdBy    `json:"actor"`
	Source    string        `json:"source"`
	Action    string        `json:"action"`
	Subject   *string       `json:"subject"`
	Changes   []auditChange `json:"changes"`
	RequestID *string       `json:"requestId"`
	Version   uint64        `json:"version,omitempty"` // of the configuration that was applied
}

// newAuditShape is an entry. Older sellos wrote the whole URLs of webhooks into it: they stay in the
// chain of hashes, and are shown as they are written now.
func newAuditShape(t *txn, e *auditEntry) (auditShape, error) {
	by, err := newCreatedBy(t, e.By)
	shape := auditShape{
		Seq: e.Seq, At: e.At, Actor: by, Source: auditSources[e.By.Type], Action: e.Action, Subject: orNull(e.Subject),
		Changes: append([]auditChange{}, e.Changes...), RequestID: orNull(e.RequestID),
	}
	if err != nil || e.Action != auditConfigurationApplied {
		return shape, err
	}
	for i, c := range shape.Changes {
		if isReceiverPath(c.Field) {
			shape.Changes[i] = auditChange{c.Field, c.Before.receiver(), c.After.receiver()}
		}
	}
	shape.Version, err = versionOf(t, e.Seq)
	return shape, err
}

// receiver is the URL of a webhook as it may be shown.
func (v jsonText) receiver() jsonText {
	var address string
	if v == "" || json.Unmarshal([]byte(v), &address) != nil {
		return v
	}
	shown, _ := jsonTextOf(receiverShown(address)) // a string can be encoded
	return shown
}

type statisticsShape struct {
	From             string        `json:"from"`
	To               string        `json:"to"`
	GroupBy          string        `json:"groupBy"`
	Timezone         string        `json:"timezone"`
	LoyaltyProgramID *id           `json:"loyaltyProgramId"`
	Total            periodShape   `json:"total"`
	Periods          []periodShape `json:"periods"`
}

type periodShape struct {
	From              string      `json:"from"`
	To                string      `json:"to"`
	Customers         uint64      `json:"customers"`
	NewCustomers      uint64      `json:"newCustomers"`
	ActiveCustomers   uint64      `json:"activeCustomers"`
	Purchases         uint64      `json:"purchases"`
	Returns           uint64      `json:"returns"`
	SalesAmount       decimal     `json:"salesAmount"`
	ReturnsAmount     decimal     `json:"returnsAmount"`
	PointsIssued      decimal     `json:"pointsIssued"`
	PointsRedeemed    decimal     `json:"pointsRedeemed"`
	PointsExpired     decimal     `json:"pointsExpired"`
	PointsReversed    decimal     `json:"pointsReversed"`
	PointsOutstanding decimal     `json:"pointsOutstanding"`
	PointsPaid        decimal     `json:"pointsPaid"`
	AmountPaid        decimal     `json:"amountPaid"`
	RedemptionRate    *decimal    `json:"redemptionRate"`
	CustomersByTier   []tierCount `json:"customersByTier"` // as of now; null in periods

	// Tickets by the day of their purchase, where the organization has any.
	TicketsOpen    *uint64 `json:"ticketsOpen,omitempty"` // now, of the whole organization
	TicketsClaimed *uint64 `json:"ticketsClaimed,omitempty"`
}

func newPeriodShape(t *txn, p *period) periodShape {
	s := periodShape{
		p.from.String(), p.to.String(), p.customers, p.tally.NewCustomers, p.active, p.tally.Purchases, p.tally.Returns,
		p.tally.SalesAmount, p.tally.ReturnsAmount, p.tally.PointsIssued, p.tally.PointsRedeemed, p.tally.PointsExpired,
		p.tally.PointsReversed, p.outstanding, p.tally.PointsPaid, p.tally.AmountPaid, nil, nil, nil, nil,
	}
	if t.cfg.tickets() != nil {
		s.TicketsOpen, s.TicketsClaimed = &p.tickets, &p.tally.Claimed
	}
	if issued := p.tally.PointsIssued; issued > 0 {
		rate, ok := roundRat(new(big.Rat).Quo(p.tally.PointsRedeemed.rat(), issued.rat()), decimalPlaces, roundHalfUp)
		if ok {
			s.RedemptionRate = &rate
		}
	}
	return s
}

type health struct {
	Status string `json:"status"`
}
