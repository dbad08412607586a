package main

import (
	"bytes"
	"iter"
	"math"
	"slices"
)

// Erasing a customer takes away all that is personal, in one transaction (contract §12):
// contact, names, date of birth, attributes and externalId, the comments of its movements,
// sales and redemptions, and all entries in indexes. Amounts, points and the ledger stay,
// and so do the names of staff.
//
// What must not change is not changed: a movement loses its comment and keeps the comment's
// hash, which is all that the chain of the ledger covers (comments.go).
//
// Answers that show the customer are sealed with its secret, which is forgotten
// (sealing.go).

// erase erases a customer and its stubs. Erasing again changes nothing.
func (ms *mergesTxn) erase(cust id) (*customer, error) {
	c, err := ms.t.customers.get(cust)
	if err != nil || c.Status == statusErased {
		return c, err
	}
	if err := c.mustBeShown(); err != nil {
		return nil, err
	}
	family, err := ms.family(c)
	if err != nil {
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
	for s, err := range ms.salesFrom(c.Sales.last()) {
		if err == nil && s.Comment != "" {
			s.Comment = ""
			err = ms.t.sales.save(s)
		}
		if err != nil {
			return nil, err
		}
	}
	for x, err := range ms.redemptionsUntil(c.ID, math.MaxUint64) {
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
	after.Attributes, after.Person, after.Secret = nil, id{}, sealSecret{}
	after.Status = statusErased
	return &after
}

// isErased reports whether nothing personal is left in the customer's record.
func (c *customer) isErased() bool {
	return bytes.Equal(appendRecord(nil, c), appendRecord(nil, c.erased()))
}

// eraseComments erases the comments of an account's movements.
func (ms *mergesTxn) eraseComments(a *account) error {
	for m, err := range ms.movementsFrom(a.Movements.last()) {
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

// What belongs to one customer, newest first. A loop may change what it is given.

// salesFrom yields the sale at seq and those before it in its chain. No sale is at 0.
func (ms *mergesTxn) salesFrom(seq uint64) iter.Seq2[*sale, error] {
	return func(yield func(*sale, error) bool) {
		for seq != 0 {
			s, err := ms.t.sales.at(seq)
			if err == nil {
				seq = s.Link.Prev
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// movementsFrom yields the movement at seq and those before it in its chain. No movement
// is at 0.
func (ms *mergesTxn) movementsFrom(seq uint64) iter.Seq2[*movement, error] {
	return func(yield func(*movement, error) bool) {
		for seq != 0 {
			m, err := ms.t.points.movement(seq)
			if err == nil {
				seq = m.Link.Prev
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// redemptionsUntil yields the customer's redemptions up to seq last.
func (ms *mergesTxn) redemptionsUntil(cust id, last uint64) iter.Seq2[*redemption, error] {
	return func(yield func(*redemption, error) bool) {
		sets := ms.t.rewards.redemptionsOfKey(cust)
		end := slices.Clone(sets).u32(uint32(min(last/setBlock, math.MaxUint32))).after()
		for e, err := range ms.t.Scan(sets, end, true) {
			if err == nil && !isBlock(e.Value) {
				err = unreadable(e.Key)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for seq := range newestIn(tableRedemptionsOf.block(e.Key), toBitmap(e.Value)) {
				if seq > last {
					continue
				}
				x, err := ms.t.rewards.redemptionAt(seq)
				if !yield(x, err) || err != nil {
					return
				}
			}
		}
	}
}
