package main

import "slices"

// What customers carry over from another system: an opening balance and historic
// points (contract §10). An account takes each once, ever, so that a file can be
// imported again.

// A carriedOver is what one customer carries over into one program.
type carriedOver struct {
	program  *program
	points   *decimal // the opening balance; nil if none is told
	expires  instant  // of the opening balance; 0: by the program's policy
	historic *decimal // points earned before; nil if none are told
}

// any reports whether there are points.
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

// hasHistoric reports whether the account was given these points: by one import, or by
// those of two customers who were merged.
func (a *account) hasHistoric(points decimal) bool {
	return points == a.historic() || slices.ContainsFunc(a.Historic, func(h historicPoints) bool { return h.Points == points })
}

// historic is the sum of the account's historic points.
func (a *account) historic() (sum decimal) {
	for _, h := range a.Historic {
		sum += h.Points
	}
	return sum
}

// isOpening reports whether a movement gave an opening balance.
func (m *movement) isOpening() bool {
	return m.Category == categoryAdjustment && m.By.Type == byImport && m.Reference == "" // that of a file of points has one
}

// carryOver gives an account the points that a customer carries over. It gives nothing that
// the account already has; figures that differ from what it has are an error. It returns the
// opening balance that it gave.
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
