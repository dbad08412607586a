package main

import (
	"bytes"
	"math"
)

// Erasing a customer takes away all that is personal, in one transaction (contract §12):
// contact, names, date of birth, attributes and externalId, the comments of its movements,
// sales, claimed tickets and redemptions, the labels of its sales, and all entries in indexes. Amounts, points and
// the ledger stay, and so do the names of staff.
//
// What must not change is not changed: a movement loses its comment and keeps the comment's
// hash, which is all that the chain of the ledger covers (points_movements.go).
//
// Answers that show the customer are sealed with its secret, which is forgotten
// (customers_merged.go).

// erase erases a customer and its stubs. Erasing again changes nothing.
func (ms *mergesTxn) erase(cust id) (*customer, error) {
	c, err := ms.t.customers.get(cust)
	if err != nil || c.Status == statusErased {
		return c, err
	}
	if err := c.mustBeShown(); err != nil {
		return nil, err
	}
	if err := ms.t.points.releaseAll(c); err != nil {
		return nil, err
	}
	family, err := ms.family(c)
	if err != nil {
		return nil, err
	}
	if err := ms.t.sales.forgetUndoRequestsOf(family); err != nil {
		return nil, err
	}
	if err := ms.t.cards.forgetJoins(family); err != nil {
		return nil, err
	}
	var after *customer
	for i, member := range family {
		left, err := ms.eraseOne(member)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			after = left
		}
	}
	if err := ms.t.feed.emit(eventCustomerErased, c.Number); err != nil {
		return nil, err
	}
	return after, ms.t.audit.note(auditCustomerErased, c.ID.String(), c.auditChanges(after))
}

// eraseOne is erase for one customer, and returns it.
func (ms *mergesTxn) eraseOne(c *customer) (*customer, error) {
	after := c.erased()
	if err := ms.t.customers.moveProfile(c, after); err != nil {
		return nil, err
	}
	if _, err := ms.t.cards.end(c); err != nil {
		return nil, err
	}
	for s, err := range ms.t.sales.chainFrom(c.Sales.last()) {
		if err == nil && (s.Comment != "" || len(s.Labels) > 0) {
			s.Comment, s.Labels = "", nil
			err = ms.t.sales.save(s)
		}
		if err == nil {
			err = ms.t.tickets.forget(s)
		}
		if err != nil {
			return nil, err
		}
	}
	for x, err := range ms.t.rewards.until(c.ID, math.MaxUint64) {
		if err == nil && x.Comment != "" {
			x.Comment = ""
			err = ms.t.put(ms.t.rewards.redemptionKey(x.Seq), x)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, p := range ms.t.cfg.Programs {
		a, err := ms.t.points.storedAccount(after, p)
		if err == nil && a.kept {
			if err = ms.eraseComments(a); err == nil {
				err = ms.t.points.saveAccount(a) // no tier counts the customer any more
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return after, ms.t.customers.save(after)
}

// erased returns what is left of a customer. Nothing links it to the person's
// memberships of other organizations.
func (c *customer) erased() *customer {
	after := *c
	after.FirstName, after.LastName, after.Email, after.Phone, after.ExternalID = "", "", "", "", ""
	after.BirthDate, after.BirthdayFrom, after.BirthdayYear = 0, 0, 0
	after.Attributes, after.Marketing, after.Person, after.Secret = nil, consent{}, id{}, sealSecret{}
	after.Written = nil
	after.Status = statusErased
	return &after
}

// isErased reports whether nothing personal is left in the customer's record.
func (c *customer) isErased() bool {
	return bytes.Equal(appendRecord(nil, c), appendRecord(nil, c.erased()))
}

// eraseComments erases the comments of an account's movements.
func (ms *mergesTxn) eraseComments(a *account) error {
	for m, err := range ms.t.points.chainFrom(a.Movements.last()) {
		if err != nil {
			return err
		}
		if m.Comment != "" {
			m.eraseComment()
			err = ms.t.put(ms.t.points.movementKey(m.Seq), m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
