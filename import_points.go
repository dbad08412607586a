package main

import "cmp"

// Rows of files that give or take points (contract §23).

// importMovement gives or takes the points of a row, unless that was done before under its
// reference. Unless samePerson is true, a row whose other contact is another than the
// customer's is wrong.
func importMovement(t *txn, r *rowReader, into *program, samePerson bool) (o importOutcome, err error) {
	in := askedMovement{program: &into.ID}
	if in.reference, _ = r.clean("reference", r.row.Reference, maxReference, codeInvalidField); in.reference == "" {
		r.invalid("reference", "es requerido")
	}
	if in.amount = spelled(r.input, "points", r.row.Points); in.amount == 0 && !r.isWrong("points") {
		r.invalid("points", "no puede ser 0")
	}
	in.category = categoryBonus
	categories := addCategories
	if in.amount < 0 {
		in.debit, in.amount, in.category, categories = true, -in.amount, categoryAdjustment, deductCategories
	}
	if text := trimBlanks(r.row.Category); text != "" {
		in.category = categoryNamed(text)
		r.fail(checkCategory(in.category, categories))
	}
	in.comment, _ = r.clean("comment", r.row.Comment, maxComment, codeCommentTooLong)
	in.expires = expiryOf(t, r)
	if in.debit && in.expires != 0 {
		r.invalid("expiresAt", "solo vale con puntos que se dan")
	} else if in.expires != 0 && in.expires <= t.now {
		in.late = newError(codeExpiresAtInvalid).on("expiresAt")
	}
	c, doubts, err := customerOfMovement(t, r, samePerson)
	if o.Faults = doubts; c == nil || err != nil || r.err != nil || len(doubts) > 0 {
		return o, err
	}
	in.customer = c.ID
	_, known, err := moveAsked(t, &in)
	o.Added = err == nil && !known
	return o, err
}

// categoryWords are categories as people write them in Spanish, folded.
var categoryWords = map[string]string{
	"compra": "Purchase", "regalo": "Bonus", "bono": "Bonus", "recomendacion": "Referral", "campana": "Campaign", "lealtad": "Loyalty",
	"reembolso": "Refund", "intereses": "Interest", "ajuste": "Adjustment", "canje": "Redemption", "cuota": "Fee",
	"penalizacion": "Penalty", "intercambio": "Exchange",
}

// categoryNamed returns the category that a cell names, in English or Spanish, or the cell.
func categoryNamed(cell string) string {
	word := fold(cell)
	for _, c := range allCategories {
		if word == fold(c) {
			return c
		}
	}
	return cmp.Or(categoryWords[word], cell)
}

// customerOfMovement returns the customer that a row of points names, by id, externalId, e-mail
// or phone. It returns nil if the row has a fault there. Of several that are named, the first
// finds the customer; the others must be that customer's.
func customerOfMovement(t *txn, r *rowReader, samePerson bool) (c *customer, doubts []rowFault, err error) {
	text, byID := r.clean("id", r.row.ID, anyLength, codeInvalidField)
	externalID, byExternal := r.clean("externalId", r.row.ExternalID, maxExternalID, codeInvalidField)
	var e enrolment
	if contact := trimBlanks(r.row.Email) != "" || trimBlanks(r.row.Phone) != ""; contact || !byID && !byExternal {
		var sound bool
		if e, sound = identityOf(t, r); !sound {
			return nil, nil, nil
		}
	}
	if r.isWrong("id", "externalId") {
		return nil, nil, nil
	}
	if byID {
		cust, _ := parseID(text)
		c, err = t.customers.get(cust)
	} else if byExternal {
		c, err = t.customers.identifyExternal(externalID)
		if err == nil && c == nil {
			err = newError(codeCustomerNotFound)
		}
	} else {
		c, err = customerOfRow(t, e)
	}
	if err != nil {
		return nil, nil, err
	}
	if byID && byExternal && c.ExternalID != externalID {
		r.invalid("externalId", "no es el del cliente")
		return nil, nil, nil
	}
	if samePerson || (e.Email == "" && e.Phone == "") {
		return c, nil, nil
	}
	if _, err := t.customers.enrolled(e); err != nil {
		return nil, nil, err
	}
	if byID || byExternal {
		d, err := t.customers.doubt(c, e)
		if d != noDoubt {
			r.fail(invalidField("", "el email o el teléfono no es del cliente"))
		}
		return c, nil, err
	}
	o, err := personDoubt(t, c, e, true)
	return c, o.Faults, err
}
