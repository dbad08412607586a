package main

import (
	"crypto/sha256"
	"slices"
)

// Points that are given once, however often they are asked for: what customers carry over from
// another system, and movements with a reference.
//
// Customers carry over an opening balance and historic points (contract §10). An account takes each
// once, ever, so that a file can be imported again.

// A carriedOver is what one customer carries over into one program.
type carriedOver struct {
	program  *program
	points   *decimal // the opening balance; nil if none is told
	expires  instant  // of the opening balance; 0: by the program's policy
	historic *decimal // points earned before; nil if none are told
}

func (b *carriedOver) any() bool {
	return b.points != nil && *b.points != 0 || b.historic != nil && *b.historic != 0
}

// commentOpening is the comment of the movement that gives an opening balance.
const commentOpening = "Saldo inicial"

// A historicPoints is points that were earned in another system. They are in an
// account's Lifetime without a movement. In a tier window they count on Day, the
// day that they came, since nobody knows when they were earned.
type historicPoints struct {
	Day    day
	Points decimal
}

func (h *historicPoints) fields(c *coder) { intField(c, &h.Day); c.decimal(&h.Points) }

// hasHistoric reports whether the account was given these points: by one import, or in all by
// the imports of two customers who were merged.
func (a *account) hasHistoric(points decimal) bool {
	return points == a.historic() || slices.ContainsFunc(a.Historic, func(h historicPoints) bool { return h.Points == points })
}

func (a *account) historic() (sum decimal) {
	for _, h := range a.Historic {
		sum += h.Points
	}
	return sum
}

// isOpening reports whether a movement gave an opening balance.
func (m *movement) isOpening() bool {
	return m.Category == categoryAdjustment && m.By.Type == byImport && m.Reference == "" // points of an imported file have one
}

// carryOver gives an account the points that a customer carries over. It gives nothing that
// the account was given before; different figures are an error. It returns the opening balance
// that it gave.
func (pt *pointsTxn) carryOver(c *customer, b carriedOver) (given decimal, err error) {
	if b.points == nil && b.historic == nil {
		return 0, nil
	}
	a, err := pt.account(c, b.program)
	if err != nil {
		return 0, err
	}
	var points, historic decimal // still to be given
	if b.points != nil && *b.points != a.Opening {
		points = *b.points
		if a.Opening != 0 {
			return 0, invalidField("points", "el cliente ya tiene un saldo inicial de %s", a.Opening)
		}
	}
	if b.historic != nil && !a.hasHistoric(*b.historic) {
		historic = *b.historic
		if len(a.Historic) > 0 {
			return 0, invalidField("historicPoints", "el cliente ya tiene puntos históricos: %s", a.historic())
		}
	}
	if points == 0 && historic == 0 {
		return 0, nil
	}
	if err := c.mustBeActive(); err != nil {
		return 0, err
	}
	if err := pt.open(a, points, b.expires); err != nil {
		return 0, err
	}
	if err := pt.addHistoric(a, historic); err != nil {
		return 0, err
	}
	return points, pt.saveAccount(a)
}

// open credits an opening balance, if it is not 0.
func (pt *pointsTxn) open(a *account, points decimal, expires instant) error {
	if points == 0 {
		return nil
	}
	if expires != 0 && expires <= pt.t.now {
		return invalidField("expiresAt", "debe ser una fecha futura")
	}
	a.Opening = points
	return pt.credit(a, &movement{Category: categoryAdjustment, Amount: points, Comment: commentOpening, Expires: expires})
}

// addHistoric counts historic points for the lifetime and the tier.
func (pt *pointsTxn) addHistoric(a *account, points decimal) error {
	if points == 0 {
		return nil
	}
	var ok bool
	if a.Lifetime, ok = a.Lifetime.add(points); !ok {
		return newError(codeTooLarge).on("historicPoints")
	}
	a.Historic = append(a.Historic, historicPoints{pt.t.dayOf(pt.t.now), points})
	return pt.addBasis(a, pt.t.now, basis{Points: points})
}

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
// have been any; and a caller who names no program may mean any, since the organization may have had
// one program then.
func (pt *pointsTxn) known(in *askedMovement) (*movement, error) {
	m, err := pt.referenced(in.reference)
	if m == nil || err != nil {
		return nil, err
	}
	_, p, err := pt.customerIn(in.customer, in.program)
	if err != nil {
		return nil, err
	}
	same, err := pt.t.merges.sameOwner(m.Customer, in.customer)
	if err != nil {
		return nil, err
	}
	amount := in.amount
	if in.debit {
		amount = -amount
	}
	erased := m.Comment == "" && m.CommentHash != (ledgerHash{})
	switch {
	case !same, m.Amount != amount, m.Category != in.category,
		m.Comment != in.comment && !erased,
		in.program != nil && m.Program != p.Number,
		m.ExpiryAsked != (in.expires != 0), m.ExpiryAsked && m.Expires != in.expires:
		return nil, newError(codeReferenceConflict).on("reference").with("movementId", m.id())
	}
	return m, nil
}
