package main

import (
	"net/http"
)

// Handlers that give, take and hold points, one request at a time or in a batch.

// movePoints changes a customer's points with move. The request must name the program
// if the organization has more than one.
func movePoints(t *txn, cust id, program *id, m *movement, move func(*account, *movement) error) (movementShape, error) {
	done := *m // m is read again if the transaction runs again
	if err := moveOn(t, cust, program, &done, move); err != nil {
		return movementShape{}, err
	}
	return newMovementShape(t, &done)
}

func moveOn(t *txn, cust id, program *id, m *movement, move func(*account, *movement) error) error {
	if program == nil && len(t.cfg.Programs) > 1 {
		return newError(codeProgramRequired).on("loyaltyProgramId")
	}
	c, p, err := t.points.customerIn(cust, program)
	if err == nil {
		err = c.mustBeActive()
	}
	if err != nil {
		return err
	}
	a, err := t.points.account(c, p)
	if err != nil {
		return err
	}
	if err := move(a, m); err != nil {
		return err
	}
	return t.points.saveAccount(a)
}

// moveAsked gives or takes points, or finds the movement that was asked for before under the
// same reference.
func moveAsked(t *txn, in *askedMovement) (m *movement, known bool, err error) {
	if in.reference != "" {
		if m, err = t.points.known(in); m != nil || err != nil {
			return m, m != nil, err
		}
	}
	if in.late != nil {
		return nil, false, in.late
	}
	move := t.keys.give
	if in.debit {
		move = t.points.debit
	}
	m = in.movement()
	return m, false, moveOn(t, in.customer, in.program, m, move)
}

func addPoints(r *request) action    { return r.movesPoints(false) }
func deductPoints(r *request) action { return r.movesPoints(true) }

func (r *request) movesPoints(debit bool) action {
	in := r.askedMovement(debit)
	return func(t *txn) (any, error) {
		in.customer = r.pathID("customerId")
		m, known, err := moveAsked(t, in)
		if err != nil {
			return nil, err
		}
		shape, err := newMovementShape(t, m)
		if known {
			return repeated{shape}, err
		}
		return shape, err
	}
}

// askedMovement reads what a body says of points to give or to take, except the customer.
func (r *request) askedMovement(debit bool) *askedMovement {
	in := &askedMovement{debit: debit, category: categoryBonus}
	categories := addCategories
	if debit {
		in.category, categories = categoryAdjustment, deductCategories
	}
	in.amount = r.above0("amount", codeAmountInvalid)
	if text, present := r.fields.text("category", 100); present {
		in.category = text
		r.fields.fail(checkCategory(text, categories))
	}
	in.comment = r.comment()
	in.program = givenID(r.fields.id("loyaltyProgramId"))
	in.reference, _ = r.fields.text("reference", maxReference)
	if in.program == nil && len(r.cfg.Programs) > 1 {
		r.failUnlessKnown(in, newError(codeProgramRequired).on("loyaltyProgramId"))
	}
	if !debit {
		in.expires = r.expiresAt(in)
	}
	return in
}

// expiresAt reads until when points are given; 0 if the body does not say.
func (r *request) expiresAt(in *askedMovement) instant {
	text, present := r.fields.text("expiresAt", 100)
	if !present {
		return 0
	}
	at, ok := parseMoment(text, r.cfg.zone, true)
	if !ok {
		r.fields.invalid("expiresAt", "debe ser una fecha ISO 8601")
	} else if at <= r.now {
		r.failUnlessKnown(in, newError(codeExpiresAtInvalid).on("expiresAt"))
	}
	return at
}

// failUnlessKnown notes a fault that a movement may not have had when it first came: if it has a
// reference, the transaction decides.
func (r *request) failUnlessKnown(in *askedMovement, fault *apiError) {
	switch {
	case in.reference == "":
		r.fields.fail(fault)
	case in.late == nil:
		in.late = fault
	}
}

type movementResult struct {
	Status   int            `json:"status"`
	Movement *movementShape `json:"movement,omitempty"`
	Error    *errorBody     `json:"error,omitempty"`
}

func (v movementResult) appendJSON(b []byte) []byte {
	if v.Movement == nil {
		return appendFailedRow(b, v.Status, v.Error)
	}
	return append(v.Movement.appendJSON(appendRow(b, v.Status, "movement")), '}')
}

type movementBatch struct {
	Results []movementResult `json:"results"`
}

func (v movementBatch) appendJSON(b []byte) []byte {
	return append(appendJSONList(append(b, `{"results":`...), v.Results), '}')
}

func movePointsBatch(r *request) action {
	rows := readBatch(r, "movements", func(one *request, _ string) *askedMovement {
		cust := one.requiredID("customerId", codeCustomerIDRequired)
		text, present := one.fields.text("type", 100)
		kind := choice(one.fields.input, text, present, "type", codeInvalidField, []string{typeCredit, typeDebit})
		if !present {
			one.fields.invalid("type", "es requerido")
		}
		in := one.askedMovement(kind == typeDebit)
		if _, present := one.fields.text("expiresAt", 100); present && in.debit {
			one.fields.invalid("expiresAt", "solo vale en un Credit")
		}
		in.customer = cust
		return in
	})
	return func(t *txn) (any, error) {
		results, err := eachOfBatch(t, rows, func(row *batchRow[*askedMovement]) (v movementResult, err error) {
			if row.fault != nil {
				return v, row.fault
			}
			m, known, err := moveAsked(t, row.in)
			if err != nil {
				return v, err
			}
			if v.Status = http.StatusCreated; known {
				v.Status = http.StatusOK
			}
			shape, err := newMovementShape(t, m)
			v.Movement = &shape
			return v, err
		}, func(status int, e *errorBody) movementResult { return movementResult{Status: status, Error: e} })
		return reply{http.StatusOK, movementBatch{results}}, err
	}
}

// Holds.

func holdPoints(r *request) action {
	in := newHold{Customer: r.pathID("customerId"), Amount: r.above0("amount", codeAmountInvalid), Seconds: r.wholeField("expiresInSeconds", usualHold, leastHold, mostHold)}
	in.Program = givenID(r.fields.id("loyaltyProgramId"))
	in.Comment, in.Proof = r.comment(), r.proof()
	return func(t *txn) (any, error) {
		return shaped(t, newHoldShape)(t.points.place(in))
	}
}

func listHolds(r *request) action {
	p := r.page()
	text, present := r.query.text("status", 20)
	status := choice(r.query.input, text, present, "status", codeInvalidField, append([]string{""}, holdStates...))
	return func(t *txn) (any, error) {
		c, err := t.customers.get(r.pathID("customerId"))
		if err != nil {
			return nil, err
		}
		found, total, err := t.points.listHolds(c, status, p)
		if err != nil {
			return nil, err
		}
		return newAppendedList(t, found, total, p, newHoldShape)
	}
}

func getHold(r *request) action {
	return func(t *txn) (any, error) {
		return shaped(t, newHoldShape)(t.points.holdNow(r.pathID("holdId")))
	}
}

func captureHold(r *request) action {
	amount, given := r.fields.number("amount")
	if given && amount <= 0 {
		r.fields.fail(newError(codeAmountInvalid).on("amount"))
	}
	return func(t *txn) (any, error) {
		return okReply(shaped(t, newHoldShape)(t.points.capture(r.pathID("holdId"), amount)))
	}
}

func releaseHold(r *request) action {
	return func(t *txn) (any, error) {
		return okReply(shaped(t, newHoldShape)(t.points.release(r.pathID("holdId"))))
	}
}
