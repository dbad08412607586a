package main

import "crypto/sha256"

// A movement that a client asks for may have a reference, which no other movement of the
// organization ever has: points that are asked for again under it are not moved again
// (contract §23). The reference is a part of the movement that its hash covers: it stays
// when a customer is erased, so nothing personal belongs in it.

// maxReference is how many characters a reference has at most.
const maxReference = 100

// referenceKey is the prefix of the entry of the movement with a reference. It holds a hash,
// to stay short; the caller compares the reference of each movement it finds.
func (pt *pointsTxn) referenceKey(reference string) key {
	h := sha256.Sum256([]byte(reference))
	return append(orgKey('X', pt.t.org), h[:16]...)
}

// referenced returns the movement with a reference; nil if there is none.
func (pt *pointsTxn) referenced(reference string) (*movement, error) {
	prefix := pt.referenceKey(reference)
	for e, err := range scan(pt.t.Tx, prefix, false) {
		if err != nil {
			return nil, err
		}
		m, err := pt.movement(uintIn(e.Key[len(prefix):]))
		if err != nil || m.Reference == reference {
			return m, err
		}
	}
	return nil, nil
}

// An askedMovement is what a caller says of points to give or to take.
type askedMovement struct {
	customer id
	program  *id // nil: the only one
	debit    bool
	amount   decimal // above zero
	category string
	comment  string
	expires  instant // of a credit; 0: as its program says

	reference string // "" without
	late      error  // a fault that it did not have, perhaps, when it first came
}

// movement returns a movement that has not been made.
func (in *askedMovement) movement() *movement {
	return &movement{
		Amount: in.amount, Category: in.category, Comment: in.comment, Expires: in.expires,
		Reference: in.reference, ExpiryAsked: in.reference != "" && in.expires != 0,
	}
}

// customerIn returns a customer and a program; nil: the organization's first one.
func (pt *pointsTxn) customerIn(cust id, of *id) (*customer, *program, error) {
	c, err := pt.t.customers.get(cust)
	if err != nil || of == nil {
		return c, pt.t.cfg.Programs[0], err
	}
	p, err := pt.t.program(*of)
	return c, p, err
}

// known returns the movement that has the reference; nil if none has. It fails unless that
// movement was asked for with the same customer, direction, amount, category, comment, program
// and expiry. Movements of a customer who was merged are the survivor's; an erased comment may
// have been any; and without a program it may be any, since the organization may have had one
// program then.
func (pt *pointsTxn) known(in *askedMovement) (*movement, error) {
	m, err := pt.referenced(in.reference)
	if m == nil || err != nil {
		return nil, err
	}
	_, p, err := pt.customerIn(in.customer, in.program)
	if err != nil {
		return nil, err
	}
	had, err := pt.t.merges.ownerID(m.Customer)
	if err != nil {
		return nil, err
	}
	has, err := pt.t.merges.ownerID(in.customer)
	if err != nil {
		return nil, err
	}
	amount := in.amount
	if in.debit {
		amount = -amount
	}
	erased := m.Comment == "" && m.CommentHash != (ledgerHash{})
	switch {
	case had != has, m.Amount != amount, m.Category != in.category,
		m.Comment != in.comment && !erased,
		in.program != nil && m.Program != p.Number,
		m.ExpiryAsked != (in.expires != 0), m.ExpiryAsked && m.Expires != in.expires:
		return nil, newError(codeReferenceConflict).on("reference").with("movementId", m.id())
	}
	return m, nil
}
