package main

import "slices"

// A customer is checked together with its stubs (merges.go): a sale of one of them may
// have returns by another, and a lot that one earned may be spent by another.

// readMerges finds the stubs by the table of merges.
func (v *verifier) readMerges() (*merges, error) {
	m := &merges{stubs: map[id][]id{}, into: map[id]id{}}
	for s, err := range stubEntries(v.txn.Tx, orgKey('J', v.txn.org)) {
		if err != nil {
			return nil, err
		}
		stub, err := v.txn.customers.byID(s.id)
		if err != nil {
			return nil, err
		}
		if stub == nil || stub.MergedInto == (id{}) {
			v.problem("fusiones: %s no es un cliente que se fusionó", s.id)
			continue
		}
		if _, twice := m.into[s.id]; !twice {
			m.into[s.id] = stub.MergedInto
			m.stubs[stub.MergedInto] = append(m.stubs[stub.MergedInto], s.id)
		}
	}
	return m, nil
}

// stub checks what a merged customer still has of its own. The rest is checked with its
// survivor.
func (v *verifier) stub(c *customer) error {
	what := subject{kind: "cliente", id: c.ID}
	survivor, err := v.txn.customers.byID(c.MergedInto)
	if err != nil {
		return err
	}
	if survivor == nil || survivor.MergedInto != (id{}) {
		v.problem("%v: se fusionó con %s, que no existe o también se fusionó", what, c.MergedInto)
		return nil
	}
	if v.merges.into[c.ID] != survivor.ID {
		v.problem("%v: falta en %s", what, tableMerges.inWords())
	}
	if !c.hidden() {
		v.problem("%v: se fusionó y su estado es %s", what, c.Status)
	}
	equal(v, what, ": total gastado", c.TotalSpent, 0)
	equal(v, what, ": compras", c.Purchases, 0)
	equal(v, what, ": última compra", c.LastSaleAt, 0)
	return v.has(tableMerges, v.txn.merges.stubKey(survivor.Number, c.Number), c.ID[:], what)
}

// family returns a customer and then its stubs.
func (v *verifier) family(c *customer) ([]*customer, error) {
	list := []*customer{c}
	for _, cust := range v.merges.stubs[c.ID] {
		stub, err := v.txn.customers.byID(cust)
		if err != nil {
			return nil, err
		}
		if stub == nil {
			continue // told by readMerges
		}
		list = append(list, stub)
	}
	return list, nil
}

// takeOver plays the credit of a merge that moves a lot.
func (r *replayer) takeOver(m *movement) {
	u := m.Uses[0]
	origin, ok := r.origin(u)
	if !ok || len(m.Uses) > 1 || u.Amount != m.Amount || m.Expires != u.Expires || m.AvailFrom != 0 && m.AvailFrom != origin.AvailFrom {
		r.v.problem("%v: %s mueve un lote que no existe", r.what, m.id())
	}
	left := m.Amount
	if m.AvailFrom > 0 {
		r.pending += m.Amount
	} else {
		left -= min(max(-r.balance, 0), m.Amount)
		r.balance += m.Amount
	}
	r.keep(creditLot{lot{Seq: u.Seq, AvailFrom: m.AvailFrom, Expires: u.Expires, Left: left}, origin.sale})
}

// origin returns the lot that a movement names, as its credit made it, if a stub or the
// customer itself has that credit.
func (r *replayer) origin(u use) (creditLot, bool) {
	if r.family == nil {
		return creditLot{}, false
	}
	l, ok := r.family.lots[u.Seq]
	return l, ok && l.Expires == u.Expires
}

// inherited returns the lot of a stub that a cancellation gives back to, empty if the
// account does not have it: it was spent when the stub was merged. nil: there is none.
func (r *replayer) inherited(u use) *creditLot {
	l, ok := r.origin(u)
	if !ok {
		return nil
	}
	l.AvailFrom, l.Left = 0, 0
	r.keep(l)
	return r.lot(u.Seq)
}

// compareOpening compares the opening balance with the movement that gave it. A customer
// without one has that of a stub.
func (r *replayer) compareOpening(a *account) {
	opening := r.opening
	if f := r.family; f != nil {
		stub := a.customer.MergedInto != (id{})
		if stub && opening != 0 {
			f.openings = append(f.openings, opening)
		}
		switch {
		case stub:
			opening = 0
		case opening == 0 && slices.Contains(f.openings, a.Opening):
			opening = a.Opening
		case opening == 0 && len(f.openings) > 0:
			opening = f.openings[0]
		}
	}
	equal(r.v, r.what, ": saldo inicial", a.Opening, opening)
}
