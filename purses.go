package main

import (
	"cmp"
	"slices"
	"time"
)

// A purse counts the points that adds of one key give, or of the keys that a rotation
// made of it. It is counted in the transaction of the add, so that a limit is never
// passed. Sales, batches and replays do not count (contract §16).
//
// Each day (UTC) has a count of its own: a clock that was ahead, or is set back and forward
// again, gives no fresh day.
type purse struct{ Given decimal }

func (p *purse) encode(w *writer) { w.decimal(p.Given) }
func (p *purse) decode(r *reader) { p.Given = r.decimal() }

// keptPurseDays is longer than a clock may be ahead unnoticed (wallclock.go).
const keptPurseDays = 60

// purse is the id of the key's purse.
func (k *apiKey) purse() id { return cmp.Or(k.Purse, k.ID) }

// isBounded reports whether the points that the key's adds give have a limit.
func (k *apiKey) isBounded() bool { return k.MaxPointsPerOperation != 0 || k.MaxPointsPerDay != 0 }

// spend counts points that an add of a key is about to give. It refuses them with
// points_budget_exceeded if they pass a limit of the key.
func (t *txn) spend(k *apiKey, points decimal) error {
	if most := k.MaxPointsPerOperation; most != 0 && points > most {
		return overBudget(most, 0, 0) // no time will help
	}
	if k.MaxPointsPerDay == 0 {
		return nil
	}
	days, today := orgKey('P', t.org).id(k.purse()), dayOf(t.now, time.UTC)
	at := slices.Clone(days).day(today)
	p, err := get[purse](t.Tx, at)
	if err == nil && p == nil {
		p = new(purse)
		err = deleteRange(t, days, slices.Clone(days).day(today-keptPurseDays), droppedAtOnce)
	}
	if err != nil {
		return err
	}
	if points > k.MaxPointsPerDay-p.Given {
		return overBudget(k.MaxPointsPerDay, p.Given, (today + 1).start(time.UTC))
	}
	p.Given += points
	return t.put(at, p)
}

func overBudget(limit, used decimal, resetAt instant) error {
	return newError(codePointsBudgetExceeded).with("limit", limit).with("used", used).with("resetAt", resetAt)
}
