package main

import (
	"bytes"
	"maps"
	"slices"
)

// readHolds reads the holds of a customer and its stubs. Most organizations have none.
func (v *verifier) readHolds(family []*customer) error {
	v.holds = nil
	if v.someHolds == nil {
		some, err := hasAny(v.txn.Tx, orgKey('O', v.txn.org))
		if err != nil {
			return err
		}
		v.someHolds = &some
	}
	if !*v.someHolds {
		return nil
	}
	for _, c := range family {
		ids, err := v.txn.points.holdIDs(c.ID)
		if err != nil {
			return err
		}
		for _, u := range ids {
			h, err := get[hold](v.txn.Tx, v.txn.points.holdKey(u))
			if err != nil {
				return err
			}
			if h == nil || h.Customer != c.ID {
				v.problem("retención %s: no existe, o no es del cliente %s", u, c.ID)
				continue
			}
			h.ID = u
			v.want[tableHolds].entries++
			if v.holds == nil {
				v.holds = map[id]*heldAgain{}
			}
			v.holds[u] = &heldAgain{hold: h}
		}
	}
	return nil
}

// countHold counts a movement of a hold.
func (v *verifier) countHold(m *movement) {
	h := v.holds[m.Hold]
	if h == nil || h.Program != m.Program {
		v.problem("movimiento %s: su retención %s no es del cliente", m.id(), m.Hold)
		return
	}
	if m.Seq > h.last {
		h.last, h.balance = m.Seq, m.Balance
	}
	switch m.Category {
	case categoryHold:
		if h.net -= m.Amount; m.Seq == h.Movement {
			h.begun = m
		}
	case categoryRelease:
		if h.net -= m.Amount; h.ended == nil || m.Seq > h.ended.Seq {
			h.ended = m
		}
	case categoryRedemption:
		h.taken = m
		if h.captured -= m.Amount; m.Transaction != h.Sale {
			v.problem("retención %s: su venta no es la de su movimiento", h.ID)
		}
	case categoryMerge: // another Release and Hold go with it
	default:
		v.problem("movimiento %s: no puede ser de una retención", m.id())
	}
}

// openHolds checks those that an account knows.
func (v *verifier) openHolds(a *account, what subject) {
	last := openHold{}
	for _, o := range a.Holds {
		h := v.holds[o.ID]
		if h == nil || h.inSight || h.Program != a.program.Number || h.State != holdHeld || o != (openHold{h.ID, h.Amount, h.Expires}) || o.Expires < last.Expires {
			v.problem("%v: su retención %s no es la que se anotó", what, o.ID)
			continue
		}
		h.inSight, last = true, o
	}
}

// holdsEnded checks the holds of a customer once all of its movements were counted.
func (v *verifier) holdsEnded() {
	for _, u := range slices.SortedFunc(maps.Keys(v.holds), func(a, b id) int { return bytes.Compare(a[:], b[:]) }) {
		h := v.holds[u]
		what := subject{kind: "retención", id: u}
		if m := h.begun; m == nil || m.Hold != u || -m.Amount != h.Amount || m.Customer != h.Customer || m.CreatedAt != h.CreatedAt || m.By != h.By || !slices.Equal(m.Uses, h.Uses) {
			v.problem("%v: difiere de su movimiento", what)
		}
		if s := v.history.find(h.Sale); h.Sale != (id{}) && (s == nil || s.Payment == nil || s.Payment.Hold != u) {
			v.problem("%v: su venta %s no es la que pagó", what, h.Sale)
		}
		open := h.State == holdHeld
		if open {
			equal(v, what, ": puntos retenidos", h.net, h.Amount)
		} else {
			equal(v, what, ": puntos retenidos", h.net, 0)
			v.holdEnded(h, what)
		}
		equal(v, what, ": puntos cobrados", h.Captured, h.captured)
		if open != h.inSight || h.Captured > h.Amount || (h.State == holdCaptured) != (h.Captured > 0) || h.Expires <= h.CreatedAt || h.Sale != (id{}) && h.Captured == 0 ||
			h.State == holdExpired && h.ClosedAt != h.Expires {
			v.problem("%v: su estado no puede ser %s", what, h.State)
		}
		if open && h.begun != nil {
			equal(v, what, ": saldo", h.Balance, h.begun.Balance)
		}
	}
}

// holdEnded checks a hold that has ended: when, and that what was captured and what was released are
// together what it had.
func (v *verifier) holdEnded(h *heldAgain, what subject) {
	if h.ended == nil {
		v.problem("%v: terminó sin movimiento", what)
		return
	}
	equal(v, what, ": cuándo terminó", h.ClosedAt, h.ended.CreatedAt)
	left := map[use]decimal{} // by lot
	add := func(uses []use, sign decimal) (sum decimal) {
		for _, u := range uses {
			left[use{Seq: u.Seq, Expires: u.Expires}] += sign * u.Amount
			sum += u.Amount
		}
		return sum
	}
	add(h.Uses, 1)
	add(h.ended.Uses, -1)
	if h.taken != nil {
		equal(v, what, ": puntos cobrados", add(h.taken.Uses, -1), h.Captured)
	}
	for _, rest := range left {
		if rest != 0 {
			v.problem("%v: no se cobró y se liberó lo que había", what)
			break
		}
	}
	equal(v, what, ": saldo", h.Balance, h.balance)
}
