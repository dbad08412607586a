package main

import (
	"math"
	"net/http"
)

// Handlers of customers: lists, look-ups, enrolment, changes, merges and erasure.

func listCustomers(r *request) action {
	if _, walks := r.query.get("after"); walks {
		return walkCustomers(r)
	}
	if _, given := r.query.get("updatedSince"); given {
		r.query.invalid("updatedSince", "solo vale con after")
	}
	p := r.page()
	search, searching := r.query.text("search", maxSearch)
	text, present := r.query.text("status", 20)
	filter := statusFilterOf(choice(r.query.input, text, present, "status", codeInvalidField, []string{"", statusActive, statusInactive}))
	return func(t *txn) (any, error) {
		var (
			found []id
			total uint64
			err   error
		)
		if searching {
			found, total, err = t.customers.search(search, filter, p)
		} else {
			found, total, err = t.customers.list(filter, p)
		}
		if err != nil {
			return nil, err
		}
		items, err := newCustomerItems(t, found)
		return appendedList[customerItem]{items, newListMeta(total, p)}, err
	}
}

// walkCustomers is listCustomers in the order of enrolment.
func walkCustomers(r *request) action {
	w := r.walk()
	for _, name := range []string{"page", "search"} {
		if _, given := r.query.get(name); given {
			r.query.invalid(name, "no vale con after")
		}
	}
	text, present := r.query.text("status", 20)
	w.status = choice(r.query.input, text, present, "status", codeInvalidField, []string{"", statusActive, statusInactive})
	w.since = r.moment("updatedSince", math.MinInt64, false)
	return func(t *txn) (any, error) {
		found, next, err := t.customers.page(w)
		if err != nil {
			return nil, err
		}
		return newWalkedCustomers(t, found, next)
	}
}

func listMembers(r *request) action {
	w := r.walk()
	return func(t *txn) (any, error) {
		s := t.cfg.segment(r.pathID("segmentId"))
		if s == nil {
			return nil, newError(codeSegmentNotFound)
		}
		found, next, err := t.rules.members(s, w.after, w.limit)
		if err != nil {
			return nil, err
		}
		return newWalkedCustomers(t, found, next)
	}
}

// walk reads where a page of a walk begins, and how many customers it may have.
func (r *request) walk() (w walk) {
	r.large = true
	text, _ := r.query.text("after", 100)
	var ok bool
	if w.after, ok = parseCursor(text); !ok {
		r.query.invalid("after", "debe ser el next de una respuesta, o estar vacío")
	}
	w.limit = int(r.limit())
	return w
}

func lookupCustomer(r *request) action {
	text, _ := r.query.get("email")
	address := readEmail(r.query.input, text, "email")
	text, present := r.query.phone("phone")
	number := phone(r.query.input, r.cfg, text, present, "phone")
	externalID, _ := r.query.text("externalId", maxExternalID)
	code, present := r.query.text("code", anyLength)
	if present && !isMemberCode(code) {
		r.query.fail(newError(codeMemberCodeInvalid).on("code"))
	}
	if address == "" && number == "" && externalID == "" && code == "" && r.query.err == nil {
		r.query.fail(newError(codeEmailOrPhoneRequired))
	}
	return func(t *txn) (any, error) {
		var c *customer
		var err error
		switch {
		case address != "":
			c, err = t.customers.identify(kindEmail, address)
		case number != "":
			c, err = t.customers.identify(kindPhone, number)
		case externalID != "":
			c, err = t.customers.identifyExternal(externalID)
		default:
			c, err = t.customers.byMemberCode(code)
		}
		if err != nil || c == nil {
			return nil, err
		}
		return newCustomerDetail(t, c)
	}
}

func getCustomer(r *request) action {
	return func(t *txn) (any, error) {
		return shaped(t, taggedDetail)(t.customers.get(r.pathID("customerId")))
	}
}

func taggedDetail(t *txn, c *customer) (tagged, error) {
	d, err := newCustomerDetail(t, c)
	return tagged{d, c.etag()}, err
}

func createCustomer(r *request) action {
	if _, given := r.fields.text("joinCode", anyLength); given {
		in := r.joinRequest()
		return func(t *txn) (any, error) { return enrolledReply(t)(t.cards.join(in)) }
	}
	if r.fields.flag("card") {
		r.fields.invalid("card", "solo vale con joinCode")
	}
	e := r.enrolment()
	return func(t *txn) (any, error) { return enrolledReply(t)(t.customers.enrol(e)) }
}

// joinRequest reads an enrolment of who filled in the form of the page to join by: what that says
// is not said again.
func (r *request) joinRequest() (in joinRequest) {
	in.Code, _ = r.fields.text("joinCode", anyLength)
	in.Here = r.fields.flag("card")
	for _, name := range []string{"email", "phoneNumber", "firstName", "lastName", "birthDate", "marketing"} {
		if given := r.fields.literal(name); given != "" && given != `""` {
			r.fields.invalid(name, "no vale con joinCode")
		}
	}
	in.ExternalID, _ = r.fields.text("externalId", maxExternalID)
	in.Attributes = mergeAttributes(nil, r.attributes())
	r.fields.fail(checkAttributes(in.Attributes))
	return in
}

// enrolledReply shows a customer who was enrolled, or was there before.
func enrolledReply(t *txn) func(*customer, bool, error) (any, error) {
	return func(c *customer, created bool, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		status := http.StatusOK
		if created {
			status = http.StatusCreated
		}
		d, err := newCustomerDetail(t, c)
		return reply{status, d}, err
	}
}

func (r *request) enrolment() (e enrolment) {
	text, _ := r.fields.rawText("email")
	e.Email = readEmail(r.fields.input, text, "email")
	text, hasNumber := r.fields.text("phoneNumber", anyLength)
	e.Phone = phone(r.fields.input, r.cfg, text, hasNumber, "phoneNumber")
	if e.Email == "" && !hasNumber && r.fields.err == nil {
		r.fields.fail(newError(codeEmailOrPhoneRequired))
	}
	e.FirstName, _ = r.fields.text("firstName", maxName)
	e.LastName, _ = r.fields.text("lastName", maxName)
	e.ExternalID, _ = r.fields.text("externalId", maxExternalID)
	text, present := r.fields.text("birthDate", anyLength)
	e.BirthDate = parsedBirthDate(r.fields.input, text, present, "birthDate", dayOf(r.now, r.cfg.zone))
	e.Marketing = r.marketing()
	e.Attributes = mergeAttributes(nil, r.attributes())
	r.fields.fail(checkAttributes(e.Attributes))
	return e
}

func patchCustomer(r *request) action {
	var p customerPatch
	if r.fields.given("email") {
		text, _ := r.fields.rawText("email")
		p.Email = new(readEmail(r.fields.input, text, "email"))
	}
	if p.Phone = r.fields.patched("phoneNumber", anyLength); p.Phone != nil {
		*p.Phone = phone(r.fields.input, r.cfg, *p.Phone, *p.Phone != "", "phoneNumber")
	}
	if p.Email != nil && p.Phone != nil && *p.Email == "" && *p.Phone == "" && r.fields.err == nil {
		r.fields.fail(newError(codeEmailOrPhoneRequired))
	}
	p.FirstName = r.fields.patched("firstName", maxName)
	p.LastName = r.fields.patched("lastName", maxName)
	if p.Status = r.fields.patched("status", 20); p.Status != nil { // which cannot be cleared
		choice(r.fields.input, *p.Status, true, "status", codeInvalidField, []string{statusActive, statusInactive})
	}
	p.ExternalID = r.fields.patched("externalId", maxExternalID)
	if text := r.fields.patched("birthDate", anyLength); text != nil {
		p.BirthDate = new(parsedBirthDate(r.fields.input, *text, *text != "", "birthDate", dayOf(r.now, r.cfg.zone)))
	}
	if r.fields.given("marketing") {
		p.Marketing = new(r.marketing())
	}
	p.ClearAttributes = r.fields.given("attributes") && r.fields.literal("attributes") == ""
	p.Attributes = r.attributes()
	r.fields.fail(checkAttributes(mergeAttributes(nil, p.Attributes)))
	holds := ifMatch(r.Header)
	return func(t *txn) (any, error) {
		return shaped(t, taggedDetail)(t.customers.patch(r.pathID("customerId"), p, holds))
	}
}

func mergeCustomers(r *request) action {
	from, present := r.fields.id("from")
	into := r.pathID("customerId")
	switch {
	case !present:
		r.fields.invalid("from", "es requerido")
	case from == into && from != (id{}): // told before what exists, as for every field
		r.fields.invalid("from", "debe ser otro cliente")
	}
	r.mayRehearse()
	return func(t *txn) (any, error) {
		c, left, err := t.merges.merge(into, from)
		if err != nil {
			return nil, err
		}
		d, err := newCustomerDetail(t, c)
		return reply{http.StatusOK, mergedShape{d, droppedShape{orNull(left.Email), orNull(left.Phone), orNull(left.ExternalID)}}}, err
	}
}

func eraseCustomer(r *request) action {
	if text, _ := r.fields.text("confirm", 20); text != "ERASE" {
		r.fields.invalid("confirm", "debe ser ERASE")
	}
	return func(t *txn) (any, error) {
		c, err := t.merges.erase(r.pathID("customerId"))
		if err != nil {
			return nil, err
		}
		d, err := newCustomerDetail(t, c)
		return reply{http.StatusOK, d}, err
	}
}

// issueCard gives a customer a card. Only its answer has the card's address.
func issueCard(r *request) action {
	days := r.wholeField("expiresInDays", 0, 1, maxCardDays)
	return func(t *txn) (any, error) {
		if t.cards.at == "" {
			return nil, newError(codeCardsDisabled)
		}
		c, d, token, err := t.cards.issue(r.pathID("customerId"), days)
		if err != nil {
			return nil, err
		}
		shape := newCardShape(t, c)
		shape.URL, shape.CreatedAt, shape.ExpiresAt = new(t.cards.at+"/t/"+token), d.CreatedAt, d.Expires
		return shape, nil
	}
}

// revokeCard ends a customer's card, also where the server serves none.
func revokeCard(r *request) action {
	return func(t *txn) (any, error) {
		c, err := t.cards.revoke(r.pathID("customerId"))
		if err != nil {
			return nil, err
		}
		return reply{http.StatusOK, newCardShape(t, c)}, nil
	}
}
