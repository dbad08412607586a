package main

import (
	"slices"
	"time"
)

// A statement is the movements of one month of an account, in the order of their dates, between
// what the account was before and after (contract §22). It speaks of what is written: the ledger up
// to the last movement dated up to the statement's end, whose hash is the digest. So a sale that
// comes later does not make it false, and `sello verify -statement` can tell whether it is the
// ledger's (admin_statement.go).
//
// The statement of a month that is not over ends with its last movement. Names of keys and people
// are not in it, since the ledger has none.
type statement struct {
	customer         *customer
	program          *program
	month            string
	from, to         instant
	opening, closing pointSums
	movements        []uint64 // by date
	digest           ledgerHash
}

// A statementHead is what a statement says besides its movements.
type statementHead struct {
	CustomerID       id        `json:"customerId"`
	LoyaltyProgramID id        `json:"loyaltyProgramId"`
	Month            string    `json:"month"`
	From             instant   `json:"from"`
	To               instant   `json:"to"`
	Opening          pointSums `json:"opening"`
	Closing          pointSums `json:"closing"`
}

func (s *statement) head() statementHead {
	return statementHead{s.customer.ID, s.program.ID, s.month, s.from, s.to, s.opening, s.closing}
}

const monthForm = "2006-01"

// monthOf reads a month as a query has it: its first and last moment in a zone.
func monthOf(text string, zone *time.Location) (from, to instant, ok bool) {
	first, err := time.Parse(monthForm, text)
	if err != nil || first.Year() < 1 {
		return 0, 0, false
	}
	from = dayOn(first.Date()).start(zone)
	to = dayOn(first.AddDate(0, 1, 0).Date()).start(zone) - 1
	return max(from, firstMoment), min(to, lastMoment), true
}

// month reads the month of a statement. One that is yet to come has none.
func (r *request) month() string {
	text, present := r.query.text("month", 20)
	from, _, ok := monthOf(text, r.cfg.zone)
	switch {
	case !present:
		r.query.invalid("month", "es requerido")
	case !ok:
		r.query.invalid("month", "debe ser un mes como 2026-11")
	case from > r.now:
		r.query.invalid("month", "no puede ser un mes futuro")
	}
	return text
}

func getStatement(r *request) action {
	month := r.month()
	program := givenID(r.query.id("loyaltyProgramId"))
	return func(t *txn) (any, error) {
		c, p, err := r.accountAsked(t, program)
		if err != nil {
			return nil, err
		}
		return &statementParts{statement: &statement{customer: c, program: p, month: month}}, nil
	}
}

// newStatement makes the statement of a month that has begun.
func newStatement(t *txn, c *customer, p *program, month string) (*statement, error) {
	a, err := t.points.storedAccount(c, p)
	if err != nil {
		return nil, err
	}
	return statementUpTo(t, a, month, a.Movements.last(), true)
}

// statementUpTo makes the statement that says no more than the chain up to the movement at last:
// of the whole month if that is asked for and the month is over, else up to its last movement.
func statementUpTo(t *txn, a *account, month string, last uint64, whole bool) (*statement, error) {
	s := &statement{customer: a.customer, program: a.program, month: month}
	s.from, s.to, _ = monthOf(month, t.cfg.zone)
	list, err := datedChain(t, last, s.to)
	if err != nil {
		return nil, err
	}
	if !whole || s.to >= t.now {
		if s.to = s.from; len(list) > 0 {
			s.to = max(s.to, list[len(list)-1].at)
		}
	}
	r, end := newLedgerReplay(t), uint64(0)
	for i, d := range list {
		if first := i == 0 || list[i-1].at < s.from; first && d.at >= s.from {
			s.opening = r.sumsAt(s.from - 1)
		}
		m, err := r.play(d.seq)
		if err != nil {
			return nil, err
		}
		if d.at >= s.from {
			s.movements = append(s.movements, d.seq)
		}
		if d.seq > end {
			end, s.digest = d.seq, m.Hash
		}
	}
	if len(s.movements) == 0 {
		s.opening = r.sumsAt(s.from - 1)
	}
	s.closing = r.sumsAt(s.to)
	return s, nil
}

func (r *ledgerReplay) sumsAt(at instant) pointSums {
	r.passTo(at)
	return r.pointSums
}

// statedMovement is the shape of a movement in a statement.
func statedMovement(t *txn, seq uint64) (movementShape, error) {
	m, err := t.points.movement(seq)
	if err != nil {
		return movementShape{}, err
	}
	shape, err := newMovementShape(t, m)
	if err == nil && shape.CreatedBy != nil {
		shape.CreatedBy.Name = nil
	}
	return shape, err
}

// statementParts are a statement as a body: a month may have very many movements. The first part
// makes the statement.
type statementParts struct {
	*statement
	made bool
	done int // movements that are written
}

// next is bodyParts.next.
func (s *statementParts) next(t *txn, b []byte) (part []byte, rest bodyParts, err error) {
	after, start := *s, len(b)
	if s = &after; !s.made {
		if s.statement, err = newStatement(t, s.customer, s.program, s.month); err != nil {
			return nil, nil, err
		}
		s.made = true
	}
	if s.done == 0 {
		head, err := encode(s.head())
		if err != nil {
			return nil, nil, err
		}
		b = append(append(b, head[:len(head)-2]...), `,"movements":[`...)
	}
	for ; s.done < len(s.movements); s.done++ {
		if len(b)-start >= exportPart {
			return b, s, nil
		}
		shape, err := statedMovement(t, s.movements[s.done])
		if err != nil {
			return nil, nil, err
		}
		if s.done > 0 {
			b = append(b, ',')
		}
		b = shape.appendJSON(b)
	}
	digest, err := s.digest.MarshalText()
	return append(append(append(b, `],"digest":"`...), digest...), "\"}\n"...), nil, err
}

// lateOf counts the movements of an account that are dated up to the end of a month and were
// written after the one at last.
func lateOf(t *txn, a *account, month string, last uint64) (n uint64, err error) {
	_, to, _ := monthOf(month, t.cfg.zone)
	list, err := datedChain(t, a.Movements.last(), to)
	return uint64(len(slices.DeleteFunc(list, func(d datedSeq) bool { return d.seq <= last }))), err
}
