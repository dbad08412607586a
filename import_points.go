package main

import (
	"cmp"

	"sello/internal/fold"
)

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
	w := whose{id: [2]string{"id", r.row.ID}, external: [2]string{"externalId", r.row.ExternalID}}
	c, err := w.customer(t, r)
	if c != nil && err == nil && !samePerson {
		o.Faults, err = w.doubts(t, r, c)
	}
	if c == nil || err != nil || r.err != nil || len(o.Faults) > 0 {
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
	word := fold.Text(cell)
	for _, c := range allCategories {
		if word == fold.Text(c) {
			return c
		}
	}
	return cmp.Or(categoryWords[word], cell)
}

// A whose is how a row names its customer: by id, externalId, e-mail or phone. Of several, the
// first finds the customer; the others must be that customer's. id and external are a column
// and its cell.
type whose struct {
	id, external [2]string
	contact      enrolment
	byNumber     bool // id or external is given
}

// customer returns the customer. It returns nil if the row has a fault there.
func (w *whose) customer(t *txn, r *rowReader) (c *customer, err error) {
	text, byID := r.clean(w.id[0], w.id[1], anyLength, codeInvalidField)
	externalID, byExternal := r.clean(w.external[0], w.external[1], maxExternalID, codeInvalidField)
	w.byNumber = byID || byExternal
	if contact := trimBlanks(r.row.Email) != "" || trimBlanks(r.row.Phone) != ""; contact || !w.byNumber {
		var sound bool
		if w.contact, sound = identityOf(t, r); !sound {
			return nil, nil
		}
	}
	if r.isWrong(w.id[0], w.external[0]) {
		return nil, nil
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
		c, err = customerOfRow(t, w.contact)
	}
	if err != nil {
		return nil, err
	}
	if byID && byExternal && c.ExternalID != externalID {
		r.invalid(w.external[0], "no es el del cliente")
		return nil, nil
	}
	return c, nil
}

// doubts are the faults of a row whose contacts may be another's than the customer's.
func (w *whose) doubts(t *txn, r *rowReader, c *customer) ([]rowFault, error) {
	if w.contact.Email == "" && w.contact.Phone == "" {
		return nil, nil
	}
	if _, err := t.customers.enrolled(w.contact); err != nil {
		return nil, err
	}
	if w.byNumber {
		d, err := t.customers.doubt(c, w.contact)
		if d != noDoubt {
			r.fail(invalidField("", "el email o el teléfono no es del cliente"))
		}
		return nil, err
	}
	o, err := personDoubt(t, c, w.contact, true)
	return o.Faults, err
}
