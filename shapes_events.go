package main

import "fmt"

// Events as clients get them. What an event is about is shown as it is now.

// An eventList is a page of the feed.
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

// firstKey is that of the first record that newEventData reads, which is of most events the only one;
// nil if it reads none.
func firstKey(t *txn, e *event) key {
	switch e.Kind {
	case eventPointsAdded, eventPointsDeducted, eventPointsExpired, eventPointsReversed, eventPointsAvailable:
		return t.points.movementKey(e.Refs[0])
	case eventTransactionCreated:
		return t.sales.key(e.Refs[0])
	case eventRedemptionCreated, eventRedemptionUsed, eventRedemptionCancelled, eventRedemptionExpired:
		return t.rewards.redemptionKey(e.Refs[0])
	case eventPointsHeld, eventPointsReleased:
		return t.points.holdKey(e.hold())
	case eventConfigurationApplied:
		return nil
	}
	return t.customers.listKey(e.Refs[0])
}

// newEventData shows what an event refers to: a customer, a movement, a sale or a redemption as
// the routes of each do, or less where that says all.
func newEventData(t *txn, e *event) (any, error) {
	switch e.Kind {
	case eventCustomerCreated, eventCustomerUpdated:
		c, err := t.customers.at(e.Refs[0])
		if err != nil {
			return nil, err
		}
		return newCustomerDetail(t, c)
	case eventCustomerMerged:
		return newMergeEvent(t, e)
	case eventCustomerErased:
		cust, err := t.customers.idAt(e.Refs[0])
		return erasedEvent{cust}, err
	case eventPointsAdded, eventPointsDeducted, eventPointsExpired, eventPointsReversed:
		m, err := t.points.movement(e.Refs[0])
		if err != nil {
			return nil, err
		}
		return newMovementShape(t, m)
	case eventPointsHeld, eventPointsReleased:
		h, err := t.points.holdAt(e.hold())
		if err != nil {
			return nil, err
		}
		return newHoldShape(t, h)
	case eventPointsAvailable:
		return newAvailableEvent(t, e)
	case eventPointsExpiring:
		cust, err := t.customers.idAt(e.Refs[0])
		return expiringEvent{cust, t.cfg.programNumber(uint32(e.Refs[1])).ID, decimal(e.Refs[3]), instant(e.Refs[2])}, err
	case eventTransactionCreated:
		s, err := t.sales.at(e.Refs[0])
		if err != nil {
			return nil, err
		}
		return newSaleShape(t, s)
	case eventRedemptionCreated, eventRedemptionUsed, eventRedemptionCancelled, eventRedemptionExpired:
		x, err := t.rewards.redemptionAt(e.Refs[0])
		if err != nil {
			return nil, err
		}
		return newRedemptionShape(t, x)
	case eventTierChanged:
		cust, err := t.customers.idAt(e.Refs[0])
		return tierEvent{cust, t.cfg.programNumber(uint32(e.Refs[1])).ID, e.From, e.To}, err
	case eventTierExpiring:
		cust, err := t.customers.idAt(e.Refs[0])
		return tierExpiringEvent{cust, t.cfg.programNumber(uint32(e.Refs[1])).ID, e.From, e.To, instant(e.Refs[2])}, err
	case eventConfigurationApplied:
		return newAppliedEvent(t, e.Refs[0])
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
