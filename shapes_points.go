package main

// Movements and holds.

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
