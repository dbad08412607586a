package main

import (
	"cmp"
	"slices"
	"time"
)

// A purse counts the points that adds of one key give, or of the keys that a rotation
// made of it, or of one member of the panel. It is counted in the transaction of the add, so
// that a limit is never passed. Sales, batches and replays do not count (contract §16).
//
// A key's purse counts from when one of its keys first gets a limit by day, what every one of
// them gives: also those without a limit, and after the limit is gone. What was given earlier
// on that day is not known. A purse whose keys never had such a limit is not written. A
// member's purse counts always.
//
// Each day (UTC) has a count of its own: a clock that was ahead, or is set back and forward
// again, gives no fresh day.
type purse struct{ Given decimal }

func (p *purse) fields(c *coder) { c.decimal(&p.Given) }

// keptPurseDays is longer than a clock may be ahead unnoticed (wallclock.go).
const keptPurseDays = 60

// A budget is how many points somebody may give by hand.
type budget struct {
	purse        id      // counts what it gives
	perOperation decimal // most points that one add gives; 0: any number
	perDay       decimal // most points that its adds give on a UTC day; 0: any number
	counted      bool    // its purse counts without a limit by day, too
}

// budget is that of who writes in the transaction. Commands and imports have none.
func (t *txn) budget() (budget, error) {
	switch {
	case t.byKey != nil:
		return t.byKey.budget(), nil
	case t.by.Type == byUser:
		m, err := membershipIn(t.Tx, t.org, t.by.ID)
		if err == nil && m == nil {
			err = errNotMember
		}
		if err != nil {
			return budget{}, err
		}
		return budget{purse: t.by.ID, perDay: m.MaxPointsPerDay, counted: true}, nil
	}
	return budget{}, nil
}

// budget is the key's.
func (k *apiKey) budget() budget {
	return budget{k.purse(), k.MaxPointsPerOperation, k.MaxPointsPerDay, k.counts()}
}

// give credits points by hand, within the budget of who gives them.
func (t *txn) give(a *account, m *movement) error {
	b, err := t.budget()
	if err == nil {
		err = t.spend(b, m.Amount)
	}
	if err != nil {
		return err
	}
	return t.credit(a, m)
}

// purse is the id of the key's purse.
func (k *apiKey) purse() id { return cmp.Or(k.Purse, k.ID) }

// counts reports whether the points that the key's adds give are counted. A key made before
// Counted was kept has only the limit.
func (k *apiKey) counts() bool { return k.Counted || k.MaxPointsPerDay != 0 }

// countWith lets all other keys of a key's purse count, too.
func (t *txn) countWith(k *apiKey) error {
	for e, err := range scan(t.Tx, orgKey('k', t.org), false) {
		if err != nil {
			return err
		}
		hash := [32]byte(e.Value)
		other, err := keyByHash(t.Tx, hash)
		if err != nil {
			return err
		}
		if other == nil || other.ID == k.ID || other.purse() != k.purse() || other.Counted {
			continue
		}
		other.Counted = true
		if err := t.saveKey(hash, other); err != nil {
			return err
		}
	}
	return nil
}

// spend counts points that an add is about to give. It refuses them with
// points_budget_exceeded if they pass a limit of the budget.
func (t *txn) spend(b budget, points decimal) error {
	if most := b.perOperation; most != 0 && points > most {
		return overBudget(most, 0, 0) // no time will help
	}
	if !b.counted {
		return nil
	}
	p, err := t.purseToday(b.purse)
	if err == nil && p == nil {
		p = new(purse)
		days := pursesKey(t.org, b.purse)
		err = deleteRange(t, days, slices.Clone(days).day(t.utcDay()-keptPurseDays), droppedAtOnce)
	}
	if err != nil {
		return err
	}
	if most := b.perDay; most != 0 && points > most-p.Given {
		return overBudget(most, p.Given, (t.utcDay() + 1).start(time.UTC))
	}
	var ok bool
	if p.Given, ok = p.Given.add(points); !ok {
		p.Given = maxDecimal // above every limit
	}
	return t.put(pursesKey(t.org, b.purse).day(t.utcDay()), p)
}

func pursesKey(org uint32, purse id) key { return orgKey('P', org).id(purse) }

func (t *txn) utcDay() day { return dayOf(t.now, time.UTC) }

// purseToday is what a purse gave today; nil: nothing that was counted.
func (t *txn) purseToday(of id) (*purse, error) {
	return get[purse](t.Tx, pursesKey(t.org, of).day(t.utcDay()))
}

// givenToday is how many points a member gave by hand today.
func (t *txn) givenToday(user id) (decimal, error) {
	p, err := t.purseToday(user)
	if err != nil || p == nil {
		return 0, err
	}
	return p.Given, nil
}

// leftToday is how many points a member may still give by hand today; ok is false without a
// limit.
func (t *txn) leftToday(user id) (left decimal, ok bool, err error) {
	m, err := membershipIn(t.Tx, t.org, user)
	if err != nil || m == nil || m.MaxPointsPerDay == 0 {
		return 0, false, err
	}
	given, err := t.givenToday(user)
	return max(m.MaxPointsPerDay-given, 0), true, err
}

// limitPoints sets how many points a member may give by hand on a UTC day; 0: any number. It
// holds from the member's next add on. What was given earlier on the day counts.
func (t *txn) limitPoints(by *member, user id, perDay decimal) error {
	m, err := t.people.teammate(user)
	if err != nil {
		return err
	}
	if err := by.mayManage(user, m.Role, m.Role); err != nil {
		return err
	}
	if by.is(user) {
		return errOwnLimit
	}
	before := m.MaxPointsPerDay
	if before == perDay {
		return nil
	}
	m.MaxPointsPerDay = perDay
	if err := t.people.saveMembership(user, m.membership); err != nil {
		return err
	}
	return t.audit.note(auditUserChanged, user.String(), []change{{"maxPointsPerDay", stated(before), stated(perDay)}})
}

var errOwnLimit = newPeopleError("own_limit", "maxPointsPerDay", "Nadie cambia su propio límite de puntos: lo hace otra persona que administre el equipo")

// dropPurse forgets what a member gave.
func (t *txn) dropPurse(of id) error {
	days := pursesKey(t.org, of)
	return deleteRange(t, days, days.after(), 2*keptPurseDays)
}

func overBudget(limit, used decimal, resetAt instant) error {
	return newError(codePointsBudgetExceeded).with("limit", limit).with("used", used).with("resetAt", resetAt)
}
