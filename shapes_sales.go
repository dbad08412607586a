package main

import (
	"bytes"
	"slices"
	"strings"

	"sello/internal/membercode"
)

// Sales as clients get them, with what each gave in every program, and the explanation of what a
// purchase earned.

type saleShape struct {
	ID                    *id          `json:"id"` // null in a dry run
	TotalAmount           decimal      `json:"totalAmount"`
	Type                  string       `json:"type"`
	Source                string       `json:"source"`
	Comment               *string      `json:"comment"`
	ExternalID            *string      `json:"externalId"`
	CreatedAt             instant      `json:"createdAt"`
	RegisteredAt          instant      `json:"registeredAt"`
	CustomerID            id           `json:"customerId"`
	CustomerName          string       `json:"customerName"`
	CustomerEmail         *string      `json:"customerEmail"`
	CustomerPhone         *string      `json:"customerPhone"`
	Items                 []item       `json:"items"`
	PointsEarned          decimal      `json:"pointsEarned"`
	PointsReversed        decimal      `json:"pointsReversed"`
	PointsPending         decimal      `json:"pointsPending"`
	PointsShortfall       decimal      `json:"pointsShortfall"`
	Balance               decimal      `json:"balance"`
	AppliedRules          []ruleShare  `json:"appliedRules"`
	TierChange            *tierChange  `json:"tierChange"`
	OriginalTransactionID *id          `json:"originalTransactionId"`
	Programs              salePrograms `json:"programs"`
	CreatedBy             *createdBy   `json:"createdBy"`

	Redemptions []saleRedemption `json:"redemptions"`

	Payment   *paymentShape `json:"payment"`
	AmountDue decimal       `json:"amountDue"`

	Labels saleLabels `json:"labels,omitempty"`

	Explanation *explanation `json:"explanation,omitempty"` // where it is asked for
}

// A ticketShape is a ticket as it is now.
type ticketShape struct {
	ID            id         `json:"id"`
	Code          *string    `json:"code"` // null: it was signed, is only read, or cannot be claimed
	URL           *string    `json:"url"`  // null also where the server has no cards
	Status        string     `json:"status"`
	ExternalID    string     `json:"externalId"`
	TotalAmount   decimal    `json:"totalAmount"`
	OccurredAt    instant    `json:"occurredAt"`
	ExpiresAt     instant    `json:"expiresAt"`
	TransactionID *id        `json:"transactionId"`
	CreatedAt     instant    `json:"createdAt"`
	CreatedBy     *createdBy `json:"createdBy"`
}

// newTicketShape shows a ticket without its code.
func newTicketShape(t *txn, x *ticket) (ticketShape, error) {
	by, err := newCreatedBy(t, x.By)
	shape := ticketShape{
		ID: x.ID, Status: x.status(t.now), ExternalID: x.ExternalID, TotalAmount: x.Total, OccurredAt: x.OccurredAt, ExpiresAt: x.Expires,
		TransactionID: idOrNull(x.Sale), CreatedAt: x.CreatedAt, CreatedBy: by,
	}
	return shape, err
}

// newCodedTicket shows a ticket with its code, as long as that can be claimed.
func newCodedTicket(t *txn, x *ticket) (ticketShape, error) {
	shape, err := newTicketShape(t, x)
	if x.Code != "" && shape.Status == ticketOpen {
		shape.Code = new(membercode.Written(x.Code))
		if t.cards.at != "" {
			shape.URL = new(t.cards.at + claimPath + *shape.Code)
		}
	}
	return shape, err
}

// A paymentShape is what points paid of a purchase; of a return its figures are below 0.
type paymentShape struct {
	LoyaltyProgramID id      `json:"loyaltyProgramId"`
	Points           decimal `json:"points"`
	Amount           decimal `json:"amount"`
	MovementID       *id     `json:"movementId"`    // null: no points came back
	PointsExpired    decimal `json:"pointsExpired"` // that did not come back

	ofHold bool // for the panel
}

func (v *paymentShape) appendJSON(b []byte) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	b = v.LoyaltyProgramID.appendJSON(append(b, `{"loyaltyProgramId":`...))
	b = v.Points.append(append(b, `,"points":`...))
	b = v.Amount.append(append(b, `,"amount":`...))
	b = appendJSONID(append(b, `,"movementId":`...), v.MovementID)
	b = v.PointsExpired.append(append(b, `,"pointsExpired":`...))
	return append(b, '}')
}

// newPaymentShape is nil for a sale without a payment.
func newPaymentShape(t *txn, s *sale) *paymentShape {
	y := s.Payment
	if y == nil {
		return nil
	}
	points, amount := s.paid()
	shape := &paymentShape{LoyaltyProgramID: t.cfg.programNumber(y.Program).ID, Points: points, Amount: amount, PointsExpired: y.Expired, ofHold: y.Hold != (id{})}
	if y.Movement != 0 {
		shape.MovementID = new(movementID(s.Customer, y.Movement))
	}
	return shape
}

// A saleRedemption is a redemption as its sale shows it.
type saleRedemption struct {
	ID         *id     `json:"id"`   // null in a dry run
	Code       *string `json:"code"` // the same
	RewardName string  `json:"rewardName"`
	Status     string  `json:"status"`

	ExpiresAt *instant `json:"expiresAt,omitempty"` // of one that the sale gave
}

// given reports whether the sale gave the voucher, which otherwise was used in it.
func (v saleRedemption) given() bool { return v.ExpiresAt != nil }

func (v saleRedemption) appendJSON(b []byte) []byte {
	b = appendJSONID(append(b, `{"id":`...), v.ID)
	b = appendJSONText(append(b, `,"code":`...), v.Code)
	b = appendJSONString(append(b, `,"rewardName":`...), v.RewardName)
	b = appendJSONString(append(b, `,"status":`...), v.Status)
	if v.ExpiresAt != nil {
		b = v.ExpiresAt.appendJSON(append(b, `,"expiresAt":`...))
	}
	return append(b, '}')
}

// salePrograms is a list: the customer's own program, and the others.
type salePrograms struct {
	Own    saleProgram
	Others []saleProgram
}

type saleProgram struct {
	LoyaltyProgramID id          `json:"loyaltyProgramId"`
	PointsEarned     decimal     `json:"pointsEarned"`
	PointsReversed   decimal     `json:"pointsReversed"`
	PointsPending    decimal     `json:"pointsPending"`
	PointsShortfall  decimal     `json:"pointsShortfall"`
	Balance          decimal     `json:"balance"`
	AppliedRules     []ruleShare `json:"appliedRules"`
	TierChange       *tierChange `json:"tierChange"`
}

type tierChange struct {
	From *string `json:"from"`
	To   *string `json:"to"`
}

func (v *tierChange) appendJSON(b []byte) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	b = appendJSONText(append(b, `{"from":`...), v.From)
	b = appendJSONText(append(b, `,"to":`...), v.To)
	return append(b, '}')
}

func (v salePrograms) appendJSON(b []byte) []byte {
	b = v.Own.appendJSON(append(b, '['))
	for i := range v.Others {
		b = v.Others[i].appendJSON(append(b, ','))
	}
	return append(b, ']')
}

func (v salePrograms) MarshalJSON() ([]byte, error) {
	return v.appendJSON(nil), nil
}

func (v saleProgram) appendJSON(b []byte) []byte {
	b = v.LoyaltyProgramID.appendJSON(append(b, `{"loyaltyProgramId":`...))
	b = v.PointsEarned.append(append(b, `,"pointsEarned":`...))
	b = v.PointsReversed.append(append(b, `,"pointsReversed":`...))
	b = v.PointsPending.append(append(b, `,"pointsPending":`...))
	b = v.PointsShortfall.append(append(b, `,"pointsShortfall":`...))
	b = v.Balance.append(append(b, `,"balance":`...))
	b = appendJSONList(append(b, `,"appliedRules":`...), v.AppliedRules)
	b = v.TierChange.appendJSON(append(b, `,"tierChange":`...))
	return append(b, '}')
}

func (v saleShape) appendJSON(b []byte) []byte {
	b = appendJSONID(append(b, `{"id":`...), v.ID)
	b = v.TotalAmount.append(append(b, `,"totalAmount":`...))
	b = appendJSONString(append(b, `,"type":`...), v.Type)
	b = appendJSONString(append(b, `,"source":`...), v.Source)
	b = appendJSONText(append(b, `,"comment":`...), v.Comment)
	b = appendJSONText(append(b, `,"externalId":`...), v.ExternalID)
	b = v.CreatedAt.appendJSON(append(b, `,"createdAt":`...))
	b = v.RegisteredAt.appendJSON(append(b, `,"registeredAt":`...))
	b = v.CustomerID.appendJSON(append(b, `,"customerId":`...))
	b = appendJSONString(append(b, `,"customerName":`...), v.CustomerName)
	b = appendJSONText(append(b, `,"customerEmail":`...), v.CustomerEmail)
	b = appendJSONText(append(b, `,"customerPhone":`...), v.CustomerPhone)
	b = appendJSONList(append(b, `,"items":`...), v.Items)
	b = v.PointsEarned.append(append(b, `,"pointsEarned":`...))
	b = v.PointsReversed.append(append(b, `,"pointsReversed":`...))
	b = v.PointsPending.append(append(b, `,"pointsPending":`...))
	b = v.PointsShortfall.append(append(b, `,"pointsShortfall":`...))
	b = v.Balance.append(append(b, `,"balance":`...))
	b = appendJSONList(append(b, `,"appliedRules":`...), v.AppliedRules)
	b = v.TierChange.appendJSON(append(b, `,"tierChange":`...))
	b = appendJSONID(append(b, `,"originalTransactionId":`...), v.OriginalTransactionID)
	b = v.Programs.appendJSON(append(b, `,"programs":`...))
	b = v.CreatedBy.appendJSON(append(b, `,"createdBy":`...))
	b = appendJSONList(append(b, `,"redemptions":`...), v.Redemptions)
	b = v.Payment.appendJSON(append(b, `,"payment":`...))
	b = v.AmountDue.append(append(b, `,"amountDue":`...))
	if len(v.Labels) > 0 {
		b = v.Labels.appendJSON(append(b, `,"labels":`...))
	}
	if v.Explanation != nil {
		text, _ := encode(v.Explanation) // texts and figures, which cannot fail
		b = append(append(b, `,"explanation":`...), bytes.TrimSpace(text)...)
	}
	return append(b, '}')
}

// redemptionsIn shows, as they are now, the vouchers that were used in a sale, then the ones it gave.
func redemptionsIn(t *txn, s *sale) ([]saleRedemption, error) {
	list := make([]saleRedemption, 0, len(s.Vouchers)+len(s.Given))
	add := func(seq uint64, given bool) error {
		x, err := t.rewards.redemptionAt(seq)
		if err != nil {
			return err
		}
		shown := saleRedemption{ID: &x.ID, Code: &x.Code, RewardName: x.RewardName, Status: x.status(t.now)}
		if given {
			shown.ExpiresAt = &x.Expires
		}
		list = append(list, shown)
		return nil
	}
	for _, seq := range s.Vouchers {
		if err := add(seq, false); err != nil {
			return nil, err
		}
	}
	for _, given := range s.Given {
		if given.Redemption == 0 {
			continue
		}
		if err := add(given.Redemption, true); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// appliedRules are the rules of a purchase in a share, with what became of the rewards that they
// give.
func (s *sale) appliedRules(v *saleShare) []ruleShare {
	if len(s.Given) == 0 || s.Type != typePurchase {
		return v.Rules
	}
	rules := slices.Clone(v.Rules)
	for i := range rules {
		at := slices.IndexFunc(s.Given, func(g givenVoucher) bool { return g.Program == v.Program && g.Rule == rules[i].RuleID })
		if at >= 0 {
			g := &s.Given[at]
			rules[i].Issued, rules[i].Reason = new(g.Redemption != 0), orNull(g.Reason)
		}
	}
	for _, g := range s.Given {
		if g.Name != "" && g.Program == v.Program {
			rules = append(rules, ruleShare{RuleID: g.Rule, Name: g.Name, Issued: new(g.Redemption != 0), Reason: orNull(g.Reason)})
		}
	}
	return rules
}

// newSaleShapeFor shows a sale of a customer as it was registered.
func newSaleShapeFor(t *txn, s *sale, c *customer) (saleShape, error) {
	t.seals.reveal(c.ID)
	by, err := newCreatedBy(t, s.By)
	if err != nil {
		return saleShape{}, err
	}
	redemptions, err := redemptionsIn(t, s)
	if err != nil {
		return saleShape{}, err
	}
	own := newSaleProgram(t, s, &s.saleShare)
	shape := saleShape{
		ID: idOrNull(s.ID), TotalAmount: s.Total, Type: s.Type, Source: s.Source, Comment: orNull(s.Comment), ExternalID: orNull(s.ExternalID),
		CreatedAt: s.CreatedAt, RegisteredAt: s.RegisteredAt, CustomerID: c.ID, CustomerName: c.name(), CustomerEmail: orNull(c.Email), CustomerPhone: orNull(c.Phone),
		Items: s.Items, PointsEarned: own.PointsEarned, PointsReversed: own.PointsReversed, PointsPending: own.PointsPending,
		PointsShortfall: own.PointsShortfall, Balance: own.Balance, AppliedRules: own.AppliedRules, TierChange: own.TierChange,
		OriginalTransactionID: idOrNull(s.Previous), Programs: salePrograms{Own: own}, CreatedBy: by, Redemptions: redemptions,
		Payment: newPaymentShape(t, s), AmountDue: s.due(), Labels: s.Labels,
	}
	if shape.Items == nil {
		shape.Items = []item{}
	}
	for i := range s.Others {
		shape.Programs.Others = append(shape.Programs.Others, newSaleProgram(t, s, &s.Others[i].saleShare))
	}
	return shape, nil
}

// newSaleProgram shows a sale's share as it was registered.
func newSaleProgram(t *txn, s *sale, v *saleShare) saleProgram {
	shape := saleProgram{
		LoyaltyProgramID: t.cfg.programNumber(v.Program).ID, PointsEarned: v.Earned, PointsReversed: v.Reversed, PointsPending: v.Pending,
		PointsShortfall: v.Shortfall, Balance: v.Balance, AppliedRules: s.appliedRules(v),
	}
	if shape.AppliedRules == nil {
		shape.AppliedRules = []ruleShare{}
	}
	if v.TierFrom != v.TierTo {
		shape.TierChange = &tierChange{orNull(v.TierFrom), orNull(v.TierTo)}
	}
	return shape
}

// newSaleShape is newSaleShapeFor for a stored sale. It reads the customer, and how many of
// the points are still pending.
func newSaleShape(t *txn, s *sale) (saleShape, error) {
	c, err := t.merges.owner(s.Customer)
	if err != nil {
		return saleShape{}, err
	}
	shape, err := newSaleShapeFor(t, s, c)
	if err != nil {
		return saleShape{}, err
	}
	if shape.PointsPending, err = t.sales.stillPending(&s.saleShare, c); err != nil {
		return saleShape{}, err
	}
	shape.Programs.Own.PointsPending = shape.PointsPending
	for i := range s.Others {
		if shape.Programs.Others[i].PointsPending, err = t.sales.stillPending(&s.Others[i].saleShare, c); err != nil {
			return saleShape{}, err
		}
	}
	return shape, nil
}

// An explanation says why a purchase earned what it did, in each program (contract §22). It is null
// for a return, and for a sale from before reasons were kept.
type explanation []explainedProgram

type explainedProgram struct {
	LoyaltyProgramID id              `json:"loyaltyProgramId"`
	Rules            []explainedRule `json:"rules"` // all, in the order of the configuration
	Steps            []explainedStep `json:"steps"` // they add up to what the purchase earned
}

type explainedRule struct {
	RuleID  id                `json:"ruleId"`
	Name    string            `json:"name"`
	Applied bool              `json:"applied"`
	Points  decimal           `json:"points"`
	Reasons []explainedReason `json:"reasons"` // why it gave nothing; empty if it applied
}

type explainedReason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// An explainedStep is one of Rules, Tier and Rounding.
type explainedStep struct {
	Step       string   `json:"step"`
	Name       string   `json:"name,omitempty"`       // of the tier
	Multiplier *decimal `json:"multiplier,omitempty"` // of the tier
	Mode       rounding `json:"mode,omitempty"`
	Points     decimal  `json:"points"`
}

// apiLanguage is what the API says sentences in.
var apiLanguage = allTexts().In("es")

// newExplanation explains a purchase. The explanation of a sale is the same for ever: its sentences
// follow from the configuration that it was sold under.
func newExplanation(t *txn, s *sale) (*explanation, error) {
	list, cfg, err := t.sales.reasonsFor(s)
	if err != nil || list == nil {
		return new(explanation), err
	}
	e, w := make(explanation, 0, len(list)), wordingIn(cfg, formatOf(cfg, apiLanguage.Code), apiLanguage)
	for i := range list {
		e = append(e, newExplainedProgram(w, &list[i]))
	}
	return &e, nil
}

func newExplainedProgram(w *ruleWording, p *programReasons) explainedProgram {
	shape := explainedProgram{LoyaltyProgramID: p.program.ID, Rules: []explainedRule{}}
	for i := range p.rules {
		r := &p.rules[i]
		row := explainedRule{RuleID: r.id, Name: r.rule.Name, Applied: r.applied(), Points: r.points, Reasons: []explainedReason{}}
		for _, why := range w.reasons(r) {
			row.Reasons = append(row.Reasons, explainedReason{why.code, strings.ReplaceAll(capital(why.text), nbsp, " ")})
		}
		shape.Rules = append(shape.Rules, row)
	}
	shape.Steps = append(shape.Steps, explainedStep{Step: "Rules", Points: p.earned - p.steps.Tier - p.steps.Rounding})
	if p.tier != nil {
		multiplier := decimalOf(1)
		if p.tier.Multiplier != nil {
			multiplier = *p.tier.Multiplier
		}
		shape.Steps = append(shape.Steps, explainedStep{Step: "Tier", Name: p.tier.Name, Multiplier: &multiplier, Points: p.steps.Tier})
	}
	shape.Steps = append(shape.Steps, explainedStep{Step: "Rounding", Mode: p.program.Rounding, Points: p.steps.Rounding})
	return shape
}
