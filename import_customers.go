package main

import "strings"

// Rows of files that are imported: what they say, and those of customers.

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
	Warning string  `json:"warning,omitempty"` // the row was taken, but somebody should look at it

	// Of the customer that was added, or that Reason or Warning names at the end.
	Number     uint64 `json:"number,omitempty"`
	ExternalID string `json:"externalId,omitempty"`
}

// Kinds of files. All are exported; the first two are imported, too.
const (
	importCustomers = "customers"
	importSales     = "sales"
	exportMovements = "movements"
	redemptionsFile = "redemptions"
)

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
	address = email(in, row.Email, "email")
	text, present := in.clean("phoneNumber", row.Phone, anyLength, codeInvalidField)
	number = phone(in, t.cfg, text, present, "phoneNumber")
	if in.err == nil && address == "" && number == "" {
		in.fail(newError(codeEmailOrPhoneRequired))
	}
	return address, number
}

// importCustomer imports a row. Unless samePerson is true, a row that may be of somebody
// else than the customer that has its contact is wrong, or gets a warning.
func (t *txn) importCustomer(into *program, row importRow, samePerson bool) (o importOutcome, err error) {
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
	known, err := t.enrolled(e)
	if err != nil {
		return o, err
	}
	if known != nil && !samePerson {
		if o, err = t.doubted(known, e, b.any()); err != nil || o.Reason != "" {
			return o, err
		}
	}
	c, err := t.enrolAs(known, e)
	if err == nil && known == nil {
		err = t.notMerged(e)
	}
	if err != nil {
		return o, err
	}
	if known == nil {
		o.Added, o.Number = true, c.Number
	}
	o.Opening, err = t.bring(c, b)
	return o, err
}

// doubted returns a Reason or a Warning if a row is not certainly of the customer that its
// e-mail or phone leads to (contract §19). points says that the row brings some: they would
// be gone, or be another's.
func (t *txn) doubted(c *customer, e enrolment, points bool) (o importOutcome, err error) {
	d, err := t.doubt(c, e)
	if err != nil {
		return o, err
	}
	what := "el email"
	if e.Phone != "" && e.Phone == c.Phone {
		what = "el teléfono"
	}
	named := ""
	if name := c.shortName(); name != "" {
		named = ": " + name
	}
	switch {
	case d == otherContact, d == otherName && points:
		o.Reason = what + " ya es de otra persona" + named
	case d == otherName && (e.Email == "" || e.Phone == ""):
		o.Warning = "aviso: " + what + " es de un cliente con otro nombre, y se tomó por la misma persona" + named
	default:
		return o, nil
	}
	o.Number, o.ExternalID = c.Number, c.ExternalID
	return o, nil
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
