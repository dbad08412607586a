package main

import (
	"fmt"
)

// Movements, holds and events as clients get them. An event shows its subject as it is now.

type movementShape struct {
	ID               id         `json:"id"`
	CustomerID       id         `json:"customerId"`
	LoyaltyProgramID id         `json:"loyaltyProgramId"`
	CurrencyID       id         `json:"currencyId"`
	Type             string     `json:"type"`
	Category         string     `json:"category"`
	Amount           decimal    `json:"amount"`
	Comment          *string    `json:"comment"`
	AvailableFrom    instant    `json:"availableFrom"` // null: at once
	ExpiresAt        instant    `json:"expiresAt"`
	Balance          decimal    `json:"balance"`
	TransactionID    *id        `json:"transactionId"`
	RedemptionID     *id        `json:"redemptionId"`
	CreatedAt        instant    `json:"createdAt"`
	CreatedBy        *createdBy `json:"createdBy"`
	Lots             []usedLot  `json:"lots"` // lots that a debit, a Release or a cancellation changed; else null

	HoldID    *id     `json:"holdId,omitempty"`    // that it belongs to
	Reference *string `json:"reference,omitempty"` // that it was asked for with
}

func (v movementShape) appendJSON(b []byte) []byte {
	b = v.ID.appendJSON(append(b, `{"id":`...))
	b = v.CustomerID.appendJSON(append(b, `,"customerId":`...))
	b = v.LoyaltyProgramID.appendJSON(append(b, `,"loyaltyProgramId":`...))
	b = v.CurrencyID.appendJSON(append(b, `,"currencyId":`...))
	b = appendJSONString(append(b, `,"type":`...), v.Type)
	b = appendJSONString(append(b, `,"category":`...), v.Category)
	b = v.Amount.append(append(b, `,"amount":`...))
	b = appendJSONText(append(b, `,"comment":`...), v.Comment)
	b = v.AvailableFrom.appendJSON(append(b, `,"availableFrom":`...))
	b = v.ExpiresAt.appendJSON(append(b, `,"expiresAt":`...))
	b = v.Balance.append(append(b, `,"balance":`...))
	b = appendJSONID(append(b, `,"transactionId":`...), v.TransactionID)
	b = appendJSONID(append(b, `,"redemptionId":`...), v.RedemptionID)
	b = v.CreatedAt.appendJSON(append(b, `,"createdAt":`...))
	b = v.CreatedBy.appendJSON(append(b, `,"createdBy":`...))
	b = appendJSONList(append(b, `,"lots":`...), v.Lots)
	if v.HoldID != nil {
		b = v.HoldID.appendJSON(append(b, `,"holdId":`...))
	}
	if v.Reference != nil {
		b = appendJSONText(append(b, `,"reference":`...), v.Reference)
	}
	return append(b, '}')
}

type usedLot struct {
	MovementID id      `json:"movementId"`
	Amount     decimal `json:"amount"`
	ExpiresAt  instant `json:"expiresAt"`
}

func (v usedLot) appendJSON(b []byte) []byte {
	b = v.MovementID.appendJSON(append(b, `{"movementId":`...))
	b = v.Amount.append(append(b, `,"amount":`...))
	b = v.ExpiresAt.appendJSON(append(b, `,"expiresAt":`...))
	return append(b, '}')
}

func newMovementShape(t *txn, m *movement) (movementShape, error) {
	p := t.cfg.programNumber(m.Program)
	t.seals.reveal(m.Customer)
	by, err := newCreatedBy(t, m.By)
	if err != nil {
		return movementShape{}, err
	}
	s := movementShape{
		ID: m.id(), CustomerID: m.Customer, LoyaltyProgramID: p.ID, CurrencyID: p.currencyID(),
		Type: m.movementType(), Category: m.Category, Amount: max(m.Amount, -m.Amount), Comment: orNull(m.Comment),
		AvailableFrom: m.AvailFrom, ExpiresAt: m.Expires, Balance: m.Balance,
		TransactionID: idOrNull(m.Transaction), RedemptionID: idOrNull(m.Redemption), CreatedAt: m.CreatedAt, CreatedBy: by,
		HoldID: idOrNull(m.Hold), Reference: orNull(m.Reference),
	}
	if s.Type == typeDebit || m.Category == categoryRelease {
		s.Lots = []usedLot{}
	}
	for _, u := range m.Uses {
		credit, err := t.points.creditID(m, u.Seq)
		if err != nil {
			return s, err
		}
		s.Lots = append(s.Lots, usedLot{credit, u.Amount, u.Expires})
	}
	return s, nil
}

type holdShape struct {
	ID               id         `json:"id"`
	CustomerID       id         `json:"customerId"`
	LoyaltyProgramID id         `json:"loyaltyProgramId"`
	Amount           decimal    `json:"amount"`
	Captured         decimal    `json:"captured"`
	Status           string     `json:"status"`
	ExpiresAt        instant    `json:"expiresAt"`
	Balance          decimal    `json:"balance"`
	Comment          *string    `json:"comment"`
	CreatedAt        instant    `json:"createdAt"`
	CreatedBy        *createdBy `json:"createdBy"`
	ClosedAt         instant    `json:"closedAt"`
	TransactionID    *id        `json:"transactionId"` // that the captured points paid for
}

func (v holdShape) appendJSON(b []byte) []byte {
	b = v.ID.appendJSON(append(b, `{"id":`...))
	b = v.CustomerID.appendJSON(append(b, `,"customerId":`...))
	b = v.LoyaltyProgramID.appendJSON(append(b, `,"loyaltyProgramId":`...))
	b = v.Amount.append(append(b, `,"amount":`...))
	b = v.Captured.append(append(b, `,"captured":`...))
	b = appendJSONString(append(b, `,"status":`...), v.Status)
	b = v.ExpiresAt.appendJSON(append(b, `,"expiresAt":`...))
	b = v.Balance.append(append(b, `,"balance":`...))
	b = appendJSONText(append(b, `,"comment":`...), v.Comment)
	b = v.CreatedAt.appendJSON(append(b, `,"createdAt":`...))
	b = v.CreatedBy.appendJSON(append(b, `,"createdBy":`...))
	b = v.ClosedAt.appendJSON(append(b, `,"closedAt":`...))
	b = appendJSONID(append(b, `,"transactionId":`...), v.TransactionID)
	return append(b, '}')
}

// newHoldShape shows a hold as it is now. One that has expired was closed at its expiry, whether or not
// that is written yet.
func newHoldShape(t *txn, h *hold) (holdShape, error) {
	t.seals.reveal(h.Customer)
	by, err := newCreatedBy(t, h.By)
	if err != nil {
		return holdShape{}, err
	}
	m, err := t.points.movement(h.Movement)
	if err != nil {
		return holdShape{}, err
	}
	owner, err := t.merges.ownerID(h.Customer)
	shape := holdShape{
		ID: h.ID, CustomerID: owner, LoyaltyProgramID: t.cfg.programNumber(h.Program).ID, Amount: h.Amount, Captured: h.Captured,
		Status: h.status(t.now), ExpiresAt: h.Expires, Balance: h.Balance, Comment: orNull(m.Comment), CreatedAt: h.CreatedAt, CreatedBy: by,
		ClosedAt: h.ClosedAt, TransactionID: idOrNull(h.Sale),
	}
	if shape.Status != h.State {
		shape.ClosedAt = h.Expires
	}
	return shape, err
}

type eventList struct {
	Data []eventShape `json:"data"`
	Next uint64       `json:"next"` // to go on after
}

type eventShape struct {
	Sequence  uint64  `json:"sequence"`
	Type      string  `json:"type"`
	CreatedAt instant `json:"createdAt"`
	Data      any     `json:"data"`
}

func newEventList(t *txn, events []event, next uint64) (eventList, error) {
	warm(t.Tx, events, func(e event) key { return firstKey(t, &e) })
	warm(t.Tx, events,
		func(e event) key { return detailKey(t, &e, partCustomer) },
		func(e event) key { return detailKey(t, &e, partAccount) },
		func(e event) key { return detailKey(t, &e, partCard) })
	l := eventList{make([]eventShape, 0, len(events)), next}
	var turn pacer
	for i := range events {
		e := &events[i]
		data, err := newEventData(t, e)
		if err != nil {
			return l, err
		}
		l.Data = append(l.Data, eventShape{e.Seq, eventKinds[e.Kind].name, e.At, data})
		turn.pause()
	}
	return l, nil
}

// firstKey is the key of the first record that newEventData reads, for most events the only one; nil
// if it reads none.
func firstKey(t *txn, e *event) key {
	switch e.Kind {
	case eventPointsAdded, eventPointsDeducted, eventPointsExpired, eventPointsReversed, eventPointsAvailable:
		return t.points.movementKey(e.Refs[0])
	case eventTransactionCreated:
		return t.sales.key(e.Refs[0])
	case eventRedemptionCreated, eventRedemptionUsed, eventRedemptionCancelled, eventRedemptionExpired:
		return t.rewards.redemptionKey(e.Refs[0])
	case eventPointsHeld, eventPointsReleased:
		return t.points.holdKey(e.of())
	case eventTicketCreated, eventTicketClaimed, eventTicketCancelled:
		return t.tickets.key(e.of())
	case eventConfigurationApplied:
		return nil
	}
	return t.customers.listKey(e.Refs[0])
}

// detailKey is the key of a part of the customer whose detail newEventData shows; nil if it shows none.
func detailKey(t *txn, e *event, part byte) key {
	if e.Kind != eventCustomerCreated && e.Kind != eventCustomerUpdated {
		return nil
	}
	cust, err := t.customers.idAt(e.Refs[0])
	if err != nil { // told when it is read
		return nil
	}
	k := customerKey(t.org, cust, part)
	if part == partAccount {
		k = k.u32(t.cfg.defaultProgram().Number)
	}
	return k
}

// newEventData shows what an event refers to: a customer, a movement, a sale or a redemption as
// the routes of each do, or less where that says all.
func newEventData(t *txn, e *event) (any, error) {
	switch e.Kind {
	case eventCustomerCreated, eventCustomerUpdated:
		return shaped(t, newCustomerDetail)(t.customers.at(e.Refs[0]))
	case eventCustomerMerged:
		return newMergeEvent(t, e)
	case eventCustomerErased:
		cust, err := t.customers.idAt(e.Refs[0])
		return erasedEvent{cust}, err
	case eventPointsAdded, eventPointsDeducted, eventPointsExpired, eventPointsReversed:
		return shaped(t, newMovementShape)(t.points.movement(e.Refs[0]))
	case eventPointsHeld, eventPointsReleased:
		return shaped(t, newHoldShape)(t.points.holdAt(e.of()))
	case eventTicketCreated, eventTicketClaimed, eventTicketCancelled:
		return shaped(t, newTicketShape)(t.tickets.get(e.of()))
	case eventPointsAvailable:
		return newAvailableEvent(t, e)
	case eventPointsExpiring:
		cust, err := t.customers.idAt(e.Refs[0])
		return expiringEvent{cust, t.cfg.programNumber(uint32(e.Refs[1])).ID, decimal(e.Refs[3]), instant(e.Refs[2])}, err
	case eventTransactionCreated:
		return shaped(t, newSaleShape)(t.sales.at(e.Refs[0]))
	case eventRedemptionCreated, eventRedemptionUsed, eventRedemptionCancelled, eventRedemptionExpired:
		return shaped(t, newRedemptionShape)(t.rewards.redemptionAt(e.Refs[0]))
	case eventTierChanged:
		cust, err := t.customers.idAt(e.Refs[0])
		return tierEvent{cust, t.cfg.programNumber(uint32(e.Refs[1])).ID, e.From, e.To}, err
	case eventTierExpiring:
		cust, err := t.customers.idAt(e.Refs[0])
		return tierExpiringEvent{cust, t.cfg.programNumber(uint32(e.Refs[1])).ID, e.From, e.To, instant(e.Refs[2])}, err
	case eventConfigurationApplied:
		return newAppliedEvent(t, e.Refs[0])
	case eventCardIssued, eventCardRevoked:
		return newCardEvent(t, e)
	}
	return nil, fmt.Errorf("event %d: kind %d", e.Seq, e.Kind)
}

type mergeEvent struct {
	CustomerID id `json:"customerId"`
	MergedInto id `json:"mergedInto"`
}

func newMergeEvent(t *txn, e *event) (v mergeEvent, err error) {
	if v.CustomerID, err = t.customers.idAt(e.Refs[0]); err == nil {
		v.MergedInto, err = t.customers.idAt(e.Refs[1])
	}
	return v, err
}

type erasedEvent struct {
	CustomerID id `json:"customerId"`
}

// A cardEvent says whose card it is and who gave or ended it: never the card's address.
type cardEvent struct {
	CustomerID id         `json:"customerId"`
	CreatedBy  *createdBy `json:"createdBy"`
}

func newCardEvent(t *txn, e *event) (v cardEvent, err error) {
	if v.CustomerID, err = t.customers.idAt(e.Refs[0]); err != nil {
		return v, err
	}
	entry, err := t.audit.entry(e.Refs[1])
	if err == nil {
		v.CreatedBy, err = newCreatedBy(t, entry.By)
	}
	return v, err
}

type availableEvent struct {
	MovementID       id      `json:"movementId"` // of the credit
	CustomerID       id      `json:"customerId"`
	LoyaltyProgramID id      `json:"loyaltyProgramId"`
	Amount           decimal `json:"amount"`
}

func newAvailableEvent(t *txn, e *event) (v availableEvent, err error) {
	m, err := t.points.movement(e.Refs[0])
	if err == nil {
		v = availableEvent{MovementID: m.id(), LoyaltyProgramID: t.cfg.programNumber(m.Program).ID, Amount: decimal(e.Refs[2])}
		v.CustomerID, err = t.customers.idAt(e.Refs[1])
	}
	return v, err
}

type expiringEvent struct {
	CustomerID       id      `json:"customerId"`
	LoyaltyProgramID id      `json:"loyaltyProgramId"`
	Amount           decimal `json:"amount"`
	ExpiresAt        instant `json:"expiresAt"`
}

type tierEvent struct {
	CustomerID       id     `json:"customerId"`
	LoyaltyProgramID id     `json:"loyaltyProgramId"`
	From             string `json:"from"`
	To               string `json:"to"`
}

type tierExpiringEvent struct {
	CustomerID       id      `json:"customerId"`
	LoyaltyProgramID id      `json:"loyaltyProgramId"`
	TierName         string  `json:"tierName"` // that the customer has until then
	FallsTo          string  `json:"fallsTo"`
	FallsAt          instant `json:"fallsAt"`
}

type appliedEvent struct {
	AuditSeq uint64  `json:"auditSeq"` // seq of the entry in GET /audit; the first, if it takes several
	Version  *uint64 `json:"version"`  // null: before versions were kept
}

func newAppliedEvent(t *txn, auditSeq uint64) (appliedEvent, error) {
	version, err := versionOf(t, auditSeq)
	if version == 0 {
		return appliedEvent{AuditSeq: auditSeq}, err
	}
	return appliedEvent{auditSeq, &version}, err
}
