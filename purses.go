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
// It counts from when one of its keys first gets a limit by day, what every one of them
// gives: also those without a limit, and after the limit is gone. What was given earlier on
// that day is not known. A purse whose keys never had such a limit is not written.
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

// hasPurse reports whether the points that the key's adds give have a limit or are counted.
func (k *apiKey) hasPurse() bool { return k.MaxPointsPerOperation != 0 || k.counts() }

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

// spend counts points that an add of a key is about to give. It refuses them with
// points_budget_exceeded if they pass a limit of the key.
func (t *txn) spend(k *apiKey, points decimal) error {
	if most := k.MaxPointsPerOperation; most != 0 && points > most {
		return overBudget(most, 0, 0) // no time will help
	}
	if !k.counts() {
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
	if most := k.MaxPointsPerDay; most != 0 && points > most-p.Given {
		return overBudget(most, p.Given, (today + 1).start(time.UTC))
	}
	var ok bool
	if p.Given, ok = p.Given.add(points); !ok {
		p.Given = maxDecimal // above every limit
	}
	return t.put(at, p)
}

func overBudget(limit, used decimal, resetAt instant) error {
	return newError(codePointsBudgetExceeded).with("limit", limit).with("used", used).with("resetAt", resetAt)
}
