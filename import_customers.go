package main

import "strings"

// Rows of files: what they say, and those of customers in imports and exports.

// An importRow is one customer or one sale, as text from the file.
type importRow struct {
	FirstName string `json:"firstName,omitempty"`
	LastName  string `json:"lastName,omitempty"`
	Email     string `json:"email,omitempty"`
	Phone     string `json:"phoneNumber,omitempty"`

	BirthDate string `json:"birthDate,omitempty"`
	Points    string `json:"points,omitempty"` // the opening balance
	Expires   string `json:"expiresAt,omitempty"`
	Historic  string `json:"historicPoints,omitempty"`

	ExternalID string       `json:"externalId,omitempty"`
	CreatedAt  string       `json:"createdAt,omitempty"`
	Type       string       `json:"type,omitempty"`
	Total      string       `json:"totalAmount,omitempty"`
	Comment    string       `json:"comment,omitempty"`
	Items      []importItem `json:"items,omitempty"`
}

type importItem struct {
	SKU      string `json:"sku"`
	Quantity string `json:"quantity"`
	Price    string `json:"price"`
}

// An importOutcome says whether one row was added, was there already, or was wrong
// for a reason.
type importOutcome struct {
	Added   bool    `json:"added,omitempty"`
	Opening decimal `json:"opening,omitempty"` // the opening balance that it was given
	Reason  string  `json:"reason,omitempty"`
}

// notDate is the fault of a date in a file.
const notDate = "debe ser una fecha como 2026-11-30 o 30/11/2026"

// programFor returns the program that points come into: the one with a key, or the
// default one.
func (t *txn) programFor(key string) (*program, error) {
	if key == "" {
		return t.cfg.defaultProgram(), nil
	}
	if p := t.cfg.programKey(key); p != nil {
		return p, nil
	}
	var keys []string
	for _, p := range t.cfg.Programs {
		keys = append(keys, p.Key)
	}
	return nil, adminErrorf("no hay ningún programa %q; hay: %s", key, strings.Join(keys, ", "))
}

// identityOf normalizes a row's e-mail and phone.
func (t *txn) identityOf(in input, row importRow) (address, number string) {
	text, present := in.clean("email", row.Email, anyLength, codeInvalidField)
	address = email(in, text, present, "email")
	text, present = in.clean("phoneNumber", row.Phone, anyLength, codeInvalidField)
	number = phone(in, t.cfg, text, present, "phoneNumber")
	if in.err == nil && address == "" && number == "" {
		in.fail(newError(codeEmailOrPhoneRequired))
	}
	return address, number
}

func (t *txn) importCustomer(into *program, row importRow) (o importOutcome, err error) {
	in := input{fault: new(fault)}
	var e enrolment
	e.Email, e.Phone = t.identityOf(in, row)
	e.FirstName, _ = in.clean("firstName", row.FirstName, maxName, codeInvalidField)
	e.LastName, _ = in.clean("lastName", row.LastName, maxName, codeInvalidField)
	e.ExternalID, _ = in.clean("externalId", row.ExternalID, maxExternalID, codeInvalidField)
	date, present := in.clean("birthDate", row.BirthDate, anyLength, codeInvalidField)
	e.BirthDate = parsedBirthDate(in, date, present, "birthDate", t.dayOf(t.now))
	if row.CreatedAt = trimBlanks(row.CreatedAt); row.CreatedAt != "" {
		e.Since = t.pastMoment(in, "alta", row.CreatedAt)
	}
	b := t.broughtIn(in, into, row)
	if in.err != nil {
		return o, in.err
	}
	c, added, err := t.enrol(e)
	if err == nil && added {
		err = t.notMerged(e)
	}
	if err != nil {
		return o, err
	}
	o.Added = added
	o.Opening, err = t.bring(c, b)
	return o, err
}

// notMerged refuses to make a customer of somebody who was merged: the survivor has the points
// of the first import.
func (t *txn) notMerged(e enrolment) error {
	stub, err := t.stubOf(e)
	if err != nil || stub == nil {
		return err
	}
	survivor, err := t.owner(stub.ID)
	if err != nil {
		return err
	}
	fault := newError(codeCustomerMerged)
	fault.message = "ese email, teléfono o externalId era de un cliente que se fusionó con " + survivor.name()
	return fault
}

// broughtIn reads what a row says that the customer brings along.
func (t *txn) broughtIn(in input, into *program, row importRow) brought {
	b := brought{program: into}
	amount := func(name, text string) *decimal {
		if trimBlanks(text) == "" {
			return nil
		}
		d := spelled(in, name, text)
		if in.err == nil && d < 0 {
			in.invalid(name, "no puede ser menor a 0")
		}
		return &d
	}
	b.points, b.historic = amount("puntos", row.Points), amount("puntos históricos", row.Historic)
	switch text := trimBlanks(row.Expires); fold(text) {
	case "":
	case "nunca", "never":
		b.expires = never
	default:
		var ok bool
		if b.expires, ok = parseMoment(text, t.cfg.zone, true); !ok || b.expires == 0 {
			in.invalid("vencen", notDate)
		}
	}
	return b
}

// pastMoment reads a moment of a file that cannot be in the future.
func (t *txn) pastMoment(in input, name, text string) instant {
	at, ok := parseMoment(trimBlanks(text), t.cfg.zone, false)
	switch {
	case !ok:
		in.invalid(name, notDate)
	case at <= 0:
		in.invalid(name, "no puede ser anterior a 1970")
	case at > t.now:
		in.invalid(name, "no puede ser una fecha futura")
	}
	return at
}

// customerRow returns the row of a customer in an export.
func (t *txn) customerRow(number uint64) ([][]string, error) {
	c, err := t.customerAt(number)
	if err != nil || c.hidden() {
		return nil, err
	}
	return [][]string{shortRow(c)}, nil
}

func shortRow(c *customer) []string {
	return []string{c.FirstName, c.LastName, c.Email, c.Phone, c.ExternalID, c.BirthDate.String()}
}

// fullRow returns the row of a customer in a full export: also its points, in its own
// program.
func (t *txn) fullRow(number uint64) ([][]string, error) {
	c, err := t.customerAt(number)
	if err != nil || c.hidden() {
		return nil, err
	}
	a, err := t.account(c, t.cfg.programNumber(c.Program))
	if err != nil {
		return nil, err
	}
	expiring, err := t.expiring(a)
	if err != nil {
		return nil, err
	}
	var sums []string
	for _, s := range expiring {
		sums = append(sums, s.ExpiresAt.time().In(t.cfg.zone).Format("2006-01-02")+": "+s.Amount.String())
	}
	current, _ := a.tier()
	return [][]string{append(shortRow(c),
		c.ID.String(), current.name(), a.Balance.String(), a.Pending.String(), strings.Join(sums, "; "), c.CreatedAt.String(), c.Status)}, nil
}
