package main

import (
	"cmp"
	"time"
)

// A purse counts the points that adds of one key give, or of the keys that a rotation
// made of it. It is counted in the transaction of the add, so that a limit is never
// passed. Sales, batches and replays do not count (contract §16).
type purse struct {
	Day   day     // UTC
	Given decimal // on that day
}

func (p *purse) encode(w *writer) {
	w.int(int64(p.Day))
	w.decimal(p.Given)
}

func (p *purse) decode(r *reader) {
	p.Day = day(r.int())
	p.Given = r.decimal()
}

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
	at := orgKey('P', t.org).id(k.purse())
	p, err := get[purse](t.Tx, at)
	if err != nil {
		return err
	}
	if today := dayOf(t.now, time.UTC); p == nil || p.Day != today {
		p = &purse{Day: today}
	}
	if points > k.MaxPointsPerDay-p.Given {
		return overBudget(k.MaxPointsPerDay, p.Given, (p.Day + 1).start(time.UTC))
	}
	p.Given += points
	return t.put(at, p)
}

func overBudget(limit, used decimal, resetAt instant) error {
	return newError(codePointsBudgetExceeded).with("limit", limit).with("used", used).with("resetAt", resetAt)
}
