package main

import "net/http"

// Holds.

func holdPoints(r *request) action {
	in := newHold{Customer: r.pathID("customerId"), Amount: r.above0("amount", codeAmountInvalid), Seconds: usualHold}
	in.Program = givenID(r.fields.id("loyaltyProgramId"))
	if d, given := r.fields.number("expiresInSeconds"); given {
		in.Seconds = int(d / decimalOne)
		if d%decimalOne != 0 || in.Seconds < leastHold || in.Seconds > mostHold {
			r.fields.invalid("expiresInSeconds", "debe ser un entero entre %d y %d", leastHold, mostHold)
		}
	}
	in.Comment = r.comment()
	return func(t *txn) (any, error) {
		h, err := t.points.place(in)
		if err != nil {
			return nil, err
		}
		return newHoldShape(t, h)
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
		h, err := t.points.holdNow(r.pathID("holdId"))
		if err != nil {
			return nil, err
		}
		return newHoldShape(t, h)
	}
}

func captureHold(r *request) action {
	amount, given := r.fields.number("amount")
	if given && amount <= 0 {
		r.fields.fail(newError(codeAmountInvalid).on("amount"))
	}
	return func(t *txn) (any, error) {
		h, err := t.points.capture(r.pathID("holdId"), amount)
		if err != nil {
			return nil, err
		}
		shape, err := newHoldShape(t, h)
		return reply{http.StatusOK, shape}, err
	}
}

func releaseHold(r *request) action {
	return func(t *txn) (any, error) {
		h, err := t.points.release(r.pathID("holdId"))
		if err != nil {
			return nil, err
		}
		shape, err := newHoldShape(t, h)
		return reply{http.StatusOK, shape}, err
	}
}
