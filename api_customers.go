package main

import "net/http"

// Handlers of customers.

func listCustomers(r *request) action {
	p := r.page()
	search, searching := r.query.text("search", maxSearch)
	return func(t *txn) (any, error) {
		var (
			found []id
			total uint64
			err   error
		)
		if searching {
			found, total, err = t.searchCustomers(search, p)
		} else {
			found, total, err = t.listCustomers(p)
		}
		if err != nil {
			return nil, err
		}
		items, err := t.customerItems(found)
		return appendedList[customerItem]{items, newListMeta(total, p)}, err
	}
}

func lookupCustomer(r *request) action {
	text, present := r.query.text("email", anyLength)
	address := email(r.query.input, text, present, "email")
	text, present = r.query.phone("phone")
	number := phone(r.query.input, r.cfg, text, present, "phone")
	if address == "" && number == "" {
		r.query.fail(newError(codeEmailOrPhoneRequired))
	}
	return func(t *txn) (any, error) {
		kind, value := byte(kindEmail), address
		if address == "" {
			kind, value = kindPhone, number
		}
		c, err := t.identify(kind, value)
		if err != nil || c == nil {
			return nil, err
		}
		return t.customerDetail(c)
	}
}

func getCustomer(r *request) action {
	return func(t *txn) (any, error) {
		c, err := t.customer(r.pathID("customerId"))
		if err != nil {
			return nil, err
		}
		return t.customerDetail(c)
	}
}

func createCustomer(r *request) action {
	var e enrolment
	text, hasMail := r.fields.text("email", anyLength)
	e.Email = email(r.fields.input, text, hasMail, "email")
	text, hasNumber := r.fields.text("phoneNumber", anyLength)
	e.Phone = phone(r.fields.input, r.cfg, text, hasNumber, "phoneNumber")
	if !hasMail && !hasNumber {
		r.fields.fail(newError(codeEmailOrPhoneRequired))
	}
	e.FirstName, _ = r.fields.text("firstName", maxName)
	e.LastName, _ = r.fields.text("lastName", maxName)
	return func(t *txn) (any, error) {
		c, created, err := t.enrol(e)
		if err != nil {
			return nil, err
		}
		status := http.StatusOK
		if created {
			status = http.StatusCreated
		}
		d, err := t.customerDetail(c)
		return reply{status, d}, err
	}
}
