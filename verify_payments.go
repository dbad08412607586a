package main

import "slices"

// isPayment reports whether a movement paid for a purchase.
func (m *movement) isPayment() bool {
	return m.Category == categoryRedemption && m.Transaction != (id{})
}

// countPayment checks the movement of a sale's payment.
func (v *verifier) countPayment(s *soldSale, m *movement) {
	if s == nil || s.Payment == nil || s.Customer != m.Customer || s.paid {
		v.problem("movimiento %s: no es el pago de su venta %s", m.id(), m.Transaction)
		return
	}
	s.paid = true
	y, what := s.Payment, subject{kind: "venta", id: s.ID}
	moved := y.Points
	if s.Type == typePurchase {
		moved = -moved
	} else {
		moved -= y.Expired
	}
	equal(v, what, ": puntos de su pago", moved, m.Amount)
	equal(v, what, ": programa de su pago", y.Program, m.Program)
	equal(v, what, ": movimiento de su pago", y.Movement, m.Seq)
	if m.By != s.By {
		v.differs(what, ": quién la registró", s.By, m.By)
	}
}

// paymentOf checks that the payment of a sale has its movement, once all were counted.
func (v *verifier) paymentOf(s *soldSale) {
	y := s.Payment
	if y == nil {
		return
	}
	what := subject{kind: "venta", id: s.ID}
	if s.paid == (y.Movement == 0) {
		v.problem("%v: falta el movimiento de su pago", what)
	}
	if h := v.holds[y.Hold]; y.Hold != (id{}) && (h == nil || h.Sale != s.ID) {
		v.problem("%v: su pago no es de la retención %s", what, y.Hold)
	}
	if s.Type == typeReturn && (s.Previous == (id{}) || (y.Movement == 0) != (y.Expired == y.Points)) || s.Type == typePurchase && y.Amount > s.Total {
		v.problem("%v: su pago con puntos no puede ser", what)
	}
}

// countPaidBack counts again what a return undid of its purchase's payment. again is the purchase
// with its returns so far. The amount depends on a setting that may have changed: only all of it is
// known.
func (v *verifier) countPaidBack(again, s *sale) {
	what, y := subject{kind: "venta", id: s.ID}, s.Payment
	if again.Payment == nil || y == nil {
		if y != nil {
			v.problem("%v: su compra no se pagó con puntos", what)
		} else if again.Payment != nil {
			if points, _ := again.owedPayment(s.Total, 1); points != 0 {
				v.differs(what, ": puntos de su pago", 0, points)
			}
		}
		return
	}
	points, amount := again.owedPayment(s.Total, 1)
	equal(v, what, ": puntos de su pago", y.Points, points)
	if again.Returned == again.Total {
		equal(v, what, ": importe de su pago", y.Amount, amount)
	}
	if given := again.Returned - y.Amount - again.Payment.BackAmount; s.due() < 0 || given > again.Total-again.Payment.Amount {
		v.problem("%v: devuelve más dinero del que se pagó", what)
	}
	equal(v, what, ": programa de su pago", y.Program, again.Payment.Program)
	again.Payment.BackPoints += y.Points
	again.Payment.BackAmount += y.Amount
}

// expiredOfPayment returns what had expired of a payment when its returns undid it.
func (v *verifier) expiredOfPayment(debit *movement, h *saleHistory) (gone []use, err error) {
	purchase := h.find(debit.Transaction)
	if purchase == nil || purchase.Payment == nil || purchase.Payment.BackPoints == 0 {
		return nil, nil
	}
	var before decimal
	for i := range h.all {
		s := &h.all[i]
		if s.Previous != purchase.ID || s.Payment == nil {
			continue
		}
		due := debit.usedLast(before, s.Payment.Points)
		before += s.Payment.Points
		if s.Payment.Movement != 0 {
			back, err := v.txn.points.movement(s.Payment.Movement)
			if err != nil {
				return nil, err
			}
			if s.Payment.Expired == 0 && !slices.Equal(due, back.Uses) {
				v.problem("venta %s: sus puntos no vuelven a los lotes de los que salieron", s.ID)
			}
			due = slices.DeleteFunc(due, func(u use) bool { return slices.Contains(back.Uses, u) })
		}
		var lost decimal
		for _, u := range due {
			if lost += u.Amount; u.Expires > s.RegisteredAt {
				v.problem("venta %s: no volvieron puntos que no habían vencido", s.ID)
			}
		}
		equal(v, subject{kind: "venta", id: s.ID}, ": puntos vencidos de su pago", s.Payment.Expired, lost)
		gone = append(gone, due...)
	}
	return gone, nil
}
