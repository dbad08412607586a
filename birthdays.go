package main

import (
	"context"
	"time"

	"sello/internal/tz"
)

// Birthday rules give points once a calendar year, on the customer's birthday in the
// organization's time zone (contract §12). The sweep gives them. An index holds the
// customers by month and day of birth, and a turn says how far the sweep has come, so
// that each transaction takes a bounded number of customers, however many have the same
// birthday. Only an organization with Birthday rules has a turn.
//
//	D org                 → birthdayTurn
//	D org month date cust → nothing
//
// A customer's record says from which year on its birthday counts, since the date was
// set, and in which year it last got points: nobody gets them twice in a year, whatever
// becomes of the date.

// birthdayDays is how many days late points of a birthday may come.
const birthdayDays = 7

// birthdayBatch is how many customers one transaction takes.
const birthdayBatch = 64

// A birthdayTurn says which birthdays are next. All before are done.
type birthdayTurn struct {
	Day day

	// If Date, which is month × 100 + day, is not 0: customers born on it are done up to
	// After.
	Date  uint32
	After id
}

func (b *birthdayTurn) encode(w *writer) { w.int(int64(b.Day)); w.uint(uint64(b.Date)); w.id(b.After) }

func (b *birthdayTurn) decode(r *reader) {
	b.Day, b.Date, b.After = day(r.int()), uint32(r.uint()), r.id()
}

// due reports whether birthdays are to be given today. A turn beyond tomorrow was left by
// a clock that was ahead.
func (b *birthdayTurn) due(today day) bool { return b.Day <= today || b.Day > today+1 }

func (t *txn) birthdaysOn(date uint32) key {
	return orgKey('D', t.org).byte(byte(date / 100)).byte(byte(date % 100))
}

// birthdayKey is nil for a customer who has no birthday.
func (t *txn) birthdayKey(c *customer) key {
	if c.BirthDate == 0 || c.hidden() {
		return nil
	}
	return t.birthdaysOn(uint32(c.BirthDate % 10000)).id(c.ID)
}

// hasBirthdays reports whether any program has a Birthday rule.
func (c *config) hasBirthdays() bool {
	for _, p := range c.Programs {
		for i := range p.Rules {
			if p.Rules[i].On == onBirthday {
				return true
			}
		}
	}
	return false
}

// followBirthdays makes the turn of an organization that now has Birthday rules, beginning
// with today's birthdays, or deletes that of one that no longer has any.
func followBirthdays(tx Tx, cfg *config, now instant) error {
	k := orgKey('D', cfg.Number)
	_, begun, err := tx.Get(k)
	if err != nil || begun == cfg.hasBirthdays() {
		return err
	}
	if begun {
		return tx.Delete(k)
	}
	zone, err := tz.Load(cfg.Organization.Settings.Timezone)
	if err != nil {
		return err
	}
	return put(tx, k, &birthdayTurn{Day: dayOf(now, zone)})
}

// sweepBirthdays gives the points of all birthdays up to today.
func (e *engine) sweepBirthdays(ctx context.Context, moment func() (instant, error)) error {
	for org := uint32(0); ; {
		now, err := moment()
		if err != nil {
			return err
		}
		s, v := e.seed(), e.store.version()
		org, err = view(ctx, e.store, func(tx Tx) (uint32, error) { return e.nextBirthdays(v, tx, org, now) })
		if err != nil || org == 0 {
			return err
		}
		more, err := update(ctx, e.store, func(tx Tx) (bool, error) {
			t, err := e.inTxn(tx, org, now, s)
			if err == nil {
				err = t.inTime()
			}
			if err != nil {
				return false, err
			}
			more, err := t.giveBirthdays(birthdayBatch)
			if err != nil {
				return false, err
			}
			return more, t.commit()
		})
		if err != nil {
			return err
		}
		e.clock.wrote(now)
		if !more { // also if the transaction's own moment is another day than now
			org++
		}
	}
}

// nextBirthdays returns the number of the first organization, from one on, whose turn is
// due; 0 if there is none. It reads one entry of each organization with birthdays.
func (e *engine) nextBirthdays(v version, tx Tx, from uint32, now instant) (uint32, error) {
	for {
		var first Entry
		for entry, err := range tx.Scan(newKey('D').u32(from), newKey('D').after(), false) {
			if err != nil {
				return 0, err
			}
			first = entry
			break
		}
		if len(first.Key) < 5 {
			return 0, nil
		}
		org := uint32In(first.Key[1:])
		from = org + 1
		if len(first.Key) > 5 {
			continue // no Birthday rules
		}
		turn, err := decodeEntry[birthdayTurn](first)
		if err != nil {
			return 0, err
		}
		cfg, err := e.config(v, tx, org)
		if err != nil {
			return 0, err
		}
		if turn.due(dayOf(now, cfg.zone)) {
			return org, nil
		}
	}
}

// giveBirthdays gives the points of the next birthdays, up to today's, to so many
// customers at most. It reports whether there may be more.
func (t *txn) giveBirthdays(most int) (more bool, err error) {
	k := orgKey('D', t.org)
	turn, err := get[birthdayTurn](t.Tx, k)
	if err != nil || turn == nil {
		return false, err
	}
	today := t.dayOf(t.now)
	if !turn.due(today) {
		return false, nil
	}
	if oldest := today - birthdayDays; turn.Day < oldest {
		*turn = birthdayTurn{Day: oldest}
	} else if turn.Day > today { // by a clock that was ahead: what it left out is made up for
		*turn = birthdayTurn{Day: oldest}
	}
	for most > 0 && turn.Day <= today {
		list, last, err := t.bornOn(turn, most)
		if err != nil {
			return false, err
		}
		for _, cust := range list {
			if err := t.giveBirthday(cust, turn.Day); err != nil {
				return false, err
			}
		}
		if most -= len(list); most > 0 {
			*turn = birthdayTurn{Day: turn.Day + 1}
		} else {
			turn.Date, turn.After = last, list[len(list)-1]
		}
	}
	return turn.Day <= today, t.put(k, turn)
}

// bornOn lists the next customers of a turn, and the date of birth of the last one.
func (t *txn) bornOn(turn *birthdayTurn, most int) (list []id, last uint32, err error) {
	date := turn.Day.date()
	first := uint32(date.Month())*100 + uint32(date.Day())
	lo, hi := t.birthdaysOn(first), t.birthdaysOn(first+1)
	if first == 228 && dayOn(date.Year(), time.February, 29) == dayOn(date.Year(), time.March, 1) {
		hi = t.birthdaysOn(230)
	}
	if turn.Date != 0 {
		lo = t.birthdaysOn(turn.Date).id(turn.After).byte(0)
	}
	for e, err := range t.Scan(lo, hi, false) {
		if err != nil {
			return nil, 0, err
		}
		if len(e.Key) != 5+2+16 {
			return nil, 0, unreadable(e.Key)
		}
		last = uint32(e.Key[5])*100 + uint32(e.Key[6])
		if list = append(list, id(e.Key[7:])); len(list) == most {
			break
		}
	}
	return list, last, nil
}

// giveBirthday gives a customer the points of the Birthday rules that are in force on the
// day, in every program in which the customer earns. A rule that would take the account
// beyond the range of points gives nothing.
func (t *txn) giveBirthday(cust id, on day) error {
	c, err := t.customerByID(cust)
	if err != nil || c == nil || c.Status != statusActive {
		return err
	}
	year, now := uint32(on.date().Year()), uint32(t.dayOf(t.now).date().Year())
	if c.BirthdayFrom > now+1 { // a clock that was ahead set it, as below
		c.BirthdayFrom = 0
	}
	if c.BirthdayYear > now {
		c.BirthdayYear = 0
	}
	if year < c.BirthdayFrom || year <= c.BirthdayYear {
		return nil
	}
	for _, p := range t.earnsIn(c) {
		given, err := t.giveBirthdayIn(c, p, on)
		if err != nil {
			return err
		}
		if given {
			c.BirthdayYear = year
		}
	}
	if c.BirthdayYear < year {
		return nil
	}
	return t.saveCustomer(c)
}

// giveBirthdayIn is giveBirthday in one program. It reports whether it gave anything.
func (t *txn) giveBirthdayIn(c *customer, p *program, on day) (given bool, err error) {
	if p == nil { // in a damaged file
		return false, nil
	}
	var a *account
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.On != onBirthday || r.Points == nil || !r.inForceOn(on, t.cfg.zone) {
			continue
		}
		if a == nil {
			if a, err = t.account(c, p); err != nil {
				return false, err
			}
		}
		if !a.takes(*r.Points) {
			continue
		}
		given = true
		err := t.credit(a, &movement{
			Category: categoryBonus, Amount: *r.Points, Comment: r.Name,
			AvailFrom: t.inDays(r.PendingDays), Expires: t.inDays(r.ExpiresInDays),
		})
		if err != nil {
			return false, err
		}
	}
	if !given {
		return false, nil
	}
	return true, t.saveAccount(a)
}

// takes reports whether so many points more are within the range of points.
func (a *account) takes(points decimal) bool {
	_, held := (a.Balance + a.Pending).add(points)
	_, earned := a.Lifetime.add(points)
	return held && earned
}

// inForceOn reports whether any of a day lies between From and Until.
func (r *rule) inForceOn(on day, zone *time.Location) bool {
	from, begins := parseMoment(r.From, zone, false)
	until, ends := parseMoment(r.Until, zone, true)
	return !(begins && from > on.end(zone)) && !(ends && until < on.start(zone))
}

// earnsIn lists the programs that give points to the customer: its own first.
func (t *txn) earnsIn(c *customer) []*program {
	return []*program{t.cfg.programNumber(c.Program)}
}
