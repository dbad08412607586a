package main

import (
	"cmp"
	"slices"
	"time"
)

// A purse counts the points that adds give by hand. A member of the panel has a purse; an API key
// shares one with the keys that rotations made of it. The transaction of the add counts its points,
// so a limit is never passed. Sales and replays do not count (contract §16), nor do movements whose
// reference is known (§23).
//
// A key's purse begins to count when one of its keys first gets a daily limit. From then on it
// counts the points that any of its keys gives, even a key without a limit, and even after the limit
// is gone. Points given earlier on that first day are not known. The purse of keys that never had a
// daily limit is not written. A member's purse always counts.
//
// Each day (UTC) has a count of its own: a clock that was ahead, or is set back and forward
// again, gives no fresh day.
type purse struct{ Given decimal }

func (p *purse) fields(c *coder) { c.decimal(&p.Given) }

// keptPurseDays is longer than a clock may be ahead unnoticed (internal/wallclock).
const keptPurseDays = 60

// A budget is how many points somebody may give by hand.
type budget struct {
	purse        id      // counts what it gives
	perOperation decimal // most points that one add gives; 0: any number
	perDay       decimal // most points that its adds give on a UTC day; 0: any number
	counted      bool    // its purse counts even without a daily limit
}

// budget returns the budget of the key or member that writes in the transaction. Commands and
// imports have none.
func (ks *keysTxn) budget() (budget, error) {
	switch {
	case ks.t.byKey != nil:
		return ks.t.byKey.budget(), nil
	case ks.t.by.Type == byUser:
		m, err := membershipIn(ks.t.Tx, ks.t.org, ks.t.by.ID)
		if err == nil && m == nil {
			err = errNotMember
		}
		if err != nil {
			return budget{}, err
		}
		return budget{purse: ks.t.by.ID, perDay: m.MaxPointsPerDay, counted: true}, nil
	}
	return budget{}, nil
}

// budget returns the key's budget.
func (k *apiKey) budget() budget {
	return budget{k.purse(), k.MaxPointsPerOperation, k.MaxPointsPerDay, k.counts()}
}

// give credits points by hand, within the budget of the key or member that gives them.
func (ks *keysTxn) give(a *account, m *movement) error {
	b, err := ks.budget()
	if err == nil {
		err = ks.spend(b, m.Amount)
	}
	if err != nil {
		return err
	}
	return ks.t.points.credit(a, m)
}

// purse is the id of the key's purse.
func (k *apiKey) purse() id { return cmp.Or(k.Purse, k.ID) }

// counts reports whether the points that the key's adds give are counted. A key made before
// Counted was stored is counted while it has a daily limit.
func (k *apiKey) counts() bool { return k.Counted || k.MaxPointsPerDay != 0 }

// countWith sets Counted in all other keys of a key's purse.
func (ks *keysTxn) countWith(k *apiKey) error {
	for e, err := range scan(ks.t.Tx, orgKey('k', ks.t.org), false) {
		if err != nil {
			return err
		}
		hash := [32]byte(e.Value)
		other, err := keyByHash(ks.t.Tx, hash)
		if err != nil {
			return err
		}
		if other == nil || other.ID == k.ID || other.purse() != k.purse() || other.Counted {
			continue
		}
		other.Counted = true
		if err := ks.save(hash, other); err != nil {
			return err
		}
	}
	return nil
}

// spend counts points that an add is about to give. It refuses them with
// points_budget_exceeded if they pass a limit of the budget.
func (ks *keysTxn) spend(b budget, points decimal) error {
	if most := b.perOperation; most != 0 && points > most {
		return overBudget(most, 0, 0) // waiting does not help
	}
	if !b.counted {
		return nil
	}
	p, err := ks.purseToday(b.purse)
	if err == nil && p == nil {
		p = new(purse)
		days := pursesKey(ks.t.org, b.purse)
		err = deleteRange(ks.t, days, slices.Clone(days).day(ks.utcDay()-keptPurseDays), droppedAtOnce)
	}
	if err != nil {
		return err
	}
	if most := b.perDay; most != 0 && points > most-p.Given {
		return overBudget(most, p.Given, (ks.utcDay() + 1).start(time.UTC))
	}
	var ok bool
	if p.Given, ok = p.Given.add(points); !ok {
		p.Given = maxDecimal // above every limit
	}
	return ks.t.put(pursesKey(ks.t.org, b.purse).day(ks.utcDay()), p)
}

func pursesKey(org uint32, purse id) key { return orgKey('P', org).id(purse) }

func (ks *keysTxn) utcDay() day { return dayOf(ks.t.now, time.UTC) }

// purseToday is what a purse gave today; nil: nothing that was counted.
func (ks *keysTxn) purseToday(of id) (*purse, error) {
	return get[purse](ks.t.Tx, pursesKey(ks.t.org, of).day(ks.utcDay()))
}

// givenToday is how many points a member gave by hand today.
func (ks *keysTxn) givenToday(user id) (decimal, error) {
	p, err := ks.purseToday(user)
	if err != nil || p == nil {
		return 0, err
	}
	return p.Given, nil
}

// leftToday is how many points a member may still give by hand today; ok is false without a
// limit.
func (ks *keysTxn) leftToday(user id) (left decimal, ok bool, err error) {
	m, err := membershipIn(ks.t.Tx, ks.t.org, user)
	if err != nil || m == nil || m.MaxPointsPerDay == 0 {
		return 0, false, err
	}
	given, err := ks.givenToday(user)
	return max(m.MaxPointsPerDay-given, 0), true, err
}

// limitPoints sets how many points a member may give by hand on a UTC day; 0: any number. It
// holds from the member's next add on. What was given earlier on the day counts.
func (ks *keysTxn) limitPoints(by *member, user id, perDay decimal) error {
	m, err := ks.t.people.teammate(user)
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
	if err := ks.t.people.saveMembership(user, m.membership); err != nil {
		return err
	}
	return ks.t.audit.note(auditUserChanged, user.String(), []change{{"maxPointsPerDay", stated(before), stated(perDay)}})
}

var errOwnLimit = newPeopleError("own_limit", "maxPointsPerDay", "Nadie cambia su propio límite de puntos: lo hace otra persona que administre el equipo")

// dropPurse forgets what a member gave.
func (ks *keysTxn) dropPurse(of id) error {
	days := pursesKey(ks.t.org, of)
	return deleteRange(ks.t, days, days.after(), 2*keptPurseDays)
}

func overBudget(limit, used decimal, resetAt instant) error {
	return newError(codePointsBudgetExceeded).with("limit", limit).with("used", used).with("resetAt", resetAt)
}
