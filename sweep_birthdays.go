package main

import (
	"context"
	"errors"
	"fmt"
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
// set, and in which year it last got points: no customer gets them twice in a year, whatever
// becomes of the date.

// birthdayDays is how many days late points of a birthday may come.
const birthdayDays = 7

// birthdayBatch is how many customers one transaction takes.
const birthdayBatch = 64

// A birthdayTurn says which birthdays are next. All before are done.
type birthdayTurn struct {
	Day day // 0: the day of the first sweep

	// If Date, which is month × 100 + day, is not 0: customers born on it are done up to
	// After.
	Date  uint32
	After id
}

func (b *birthdayTurn) fields(c *coder) { intField(c, &b.Day); uintField(c, &b.Date); c.id(&b.After) }

// due reports whether birthdays are to be given today. A turn beyond tomorrow was left by
// a clock that was ahead.
func (b *birthdayTurn) due(today day) bool { return b.Day <= today || b.Day > today+1 }

// begin moves the turn to the first day whose birthdays may still be given.
func (b *birthdayTurn) begin(today day) {
	oldest := today - birthdayDays
	switch {
	case b.Day == 0:
		*b = birthdayTurn{Day: today}
	case b.Day < oldest, b.Day > today: // later than today by a clock that was ahead: what it left out is made up for
		*b = birthdayTurn{Day: oldest}
	}
}

func (ru *rulesTxn) birthdaysOn(date uint32) key {
	return orgKey('D', ru.t.org).byte(byte(date / 100)).byte(byte(date % 100))
}

// birthdayKey is nil for a customer who has no birthday.
func (ru *rulesTxn) birthdayKey(c *customer) key {
	if c.BirthDate == 0 || c.hidden() {
		return nil
	}
	return ru.birthdaysOn(uint32(c.BirthDate % 10000)).id(c.ID)
}

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
// with today's birthdays, or deletes the turn if it has none any more. While the clock is unsafe
// today is not known: the turn then begins with the first sweep, which waits for the clock.
func followBirthdays(tx Tx, cfg *config, m *mint) error {
	k := orgKey('D', cfg.Number)
	_, begun, err := tx.Get(k)
	if err != nil || begun == cfg.hasBirthdays() {
		return err
	}
	if begun {
		return tx.Delete(k)
	}
	turn := new(birthdayTurn)
	if !m.unsure {
		zone, err := tz.Load(cfg.Organization.Settings.Timezone)
		if err != nil {
			return err
		}
		turn.Day = dayOf(m.now, zone)
	}
	return put(tx, k, turn)
}

// A noBirthdaySpan says that no birthday is due from one moment until another, as long as the
// settings keep a version.
type noBirthdaySpan struct {
	version     version
	from, until instant
}

func (s *noBirthdaySpan) has(v version, at instant) bool {
	return s != nil && v != unsettled && v == s.version && s.from <= at && at < s.until
}

// sweepBirthdays gives the points of all birthdays up to today. A damaged organization does
// not hold up the others. Once all are given, it looks again when a day begins, or settings
// have changed.
func (e *engine) sweepBirthdays(ctx context.Context, moment func() (instant, error)) error {
	now, err := moment()
	if err != nil {
		return err
	}
	none := noBirthdaySpan{e.store.version(), now, never}
	if e.noBirthdayUntil.Load().has(none.version, now) {
		return nil
	}
	var damaged error
	for next := (birthdaysAt{until: never}); ; {
		if now, err = moment(); err != nil {
			return errors.Join(damaged, err)
		}
		v := e.store.version()
		next, err = viewStore(ctx, e.store, func(tx Tx) (birthdaysAt, error) { return e.nextBirthdays(v, tx, next, now), nil })
		if err == nil && next.err == nil && next.org == 0 {
			if none.until = next.until; damaged == nil {
				e.noBirthdayUntil.Store(&none)
			}
			return damaged
		}
		more := false
		if err = errors.Join(err, next.err); err == nil {
			more, err = e.giveNextBirthdays(ctx, next.org, now)
		}
		switch {
		case err == nil && more:
			continue
		case isDamaged(err) && next.org > 0:
			damaged = errors.Join(damaged, fmt.Errorf("birthdays of organization %d: %w", next.org, err))
		case err != nil:
			return errors.Join(damaged, err)
		}
		if err == nil { // done for today, or the transaction's own moment was another day than now
			none.version = unsettled // look again
		}
		next.org++
	}
}

// giveNextBirthdays gives points to the next customers of an organization. It reports
// whether there may be more.
func (e *engine) giveNextBirthdays(ctx context.Context, org uint32, now instant) (more bool, err error) {
	s := e.seed()
	more, err = updateStore(ctx, e.store, func(tx Tx) (bool, error) {
		t, err := e.inTxn(tx, org, now, s)
		if err == nil {
			err = t.inTime()
		}
		if err != nil {
			return false, err
		}
		more, err := t.rules.giveBirthdays(birthdayBatch)
		if err != nil {
			return false, err
		}
		return more, t.commit()
	})
	if err == nil {
		e.clock.Wrote(now)
	}
	return more, err
}

// A birthdaysAt is an organization whose turn is due. If it cannot be read, err says why.
type birthdaysAt struct {
	org   uint32 // 0: none
	err   error
	until instant // the first moment when the turn of one before it is due; never if that is not known
}

// nextBirthdays returns the first organization, from one on, whose turn is due. It reads
// one entry of each organization with birthdays.
func (e *engine) nextBirthdays(v version, tx Tx, from birthdaysAt, now instant) birthdaysAt {
	at := birthdaysAt{until: from.until}
	for lo := from.org; ; lo = at.org + 1 {
		var first Entry
		for first, at.err = range tx.Scan(newKey('D').u32(lo), newKey('D').after(), false) {
			break
		}
		if at.org = 0; at.err != nil || len(first.Key) < 5 {
			return at
		}
		at.org = uint32In(first.Key[1:])
		if len(first.Key) > 5 {
			continue // no Birthday rules
		}
		turn, err := decodeEntry[birthdayTurn](first)
		if err != nil {
			at.err = err
			return at
		}
		cfg, err := e.config(v, tx, at.org)
		if err != nil {
			at.err = err
			return at
		}
		if turn.due(dayOf(now, cfg.zone)) {
			return at
		}
		at.until = min(at.until, turn.Day.start(cfg.zone))
	}
}

// giveBirthdays gives the points of the next birthdays, up to today's, to so many
// customers at most. It reports whether there may be more.
func (ru *rulesTxn) giveBirthdays(most int) (more bool, err error) {
	k := orgKey('D', ru.t.org)
	turn, err := get[birthdayTurn](ru.t.Tx, k)
	if err != nil || turn == nil {
		return false, err
	}
	today := ru.t.dayOf(ru.t.now)
	if !turn.due(today) {
		return false, nil
	}
	turn.begin(today)
	for most > 0 && turn.Day <= today {
		list, last, err := ru.bornOn(turn, most)
		if err != nil {
			return false, err
		}
		for _, cust := range list {
			if err := ru.giveBirthday(cust, turn.Day); err != nil {
				return false, err
			}
		}
		if most -= len(list); most > 0 {
			*turn = birthdayTurn{Day: turn.Day + 1}
		} else {
			turn.Date, turn.After = last, list[len(list)-1]
		}
	}
	return turn.Day <= today, ru.t.put(k, turn)
}

// birthdaysOfDay returns the bounds of the index entries of a day. In a year without a 29 February,
// the 28th has the entries of the 29th too.
func (ru *rulesTxn) birthdaysOfDay(on day) (lo, hi key) {
	date := on.date()
	first := uint32(date.Month())*100 + uint32(date.Day())
	if first == 228 && dayOn(date.Year(), time.February, 29) == dayOn(date.Year(), time.March, 1) {
		return ru.birthdaysOn(first), ru.birthdaysOn(230)
	}
	return ru.birthdaysOn(first), ru.birthdaysOn(first + 1)
}

// bornOn lists the next customers of a turn, and the date of birth of the last one.
func (ru *rulesTxn) bornOn(turn *birthdayTurn, most int) (list []id, last uint32, err error) {
	lo, hi := ru.birthdaysOfDay(turn.Day)
	if turn.Date != 0 {
		lo = ru.birthdaysOn(turn.Date).id(turn.After).byte(0)
	}
	for e, err := range ru.t.Scan(lo, hi, false) {
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
func (ru *rulesTxn) giveBirthday(cust id, on day) error {
	c, err := ru.t.customers.byID(cust)
	if err != nil || c == nil || c.Status != statusActive {
		return err
	}
	year, now := uint32(on.date().Year()), uint32(ru.t.dayOf(ru.t.now).date().Year())
	if c.BirthdayFrom > now+1 { // a clock that was ahead set it, as below
		c.BirthdayFrom = 0
	}
	if c.BirthdayYear > now {
		c.BirthdayYear = 0
	}
	if year < c.BirthdayFrom || year <= c.BirthdayYear {
		return nil
	}
	for _, p := range ru.t.cfg.earnsIn(c) {
		given, err := ru.giveBirthdayIn(c, p, on)
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
	return ru.t.customers.save(c)
}

// giveBirthdayIn is giveBirthday in one program. It reports whether it gave anything.
func (ru *rulesTxn) giveBirthdayIn(c *customer, p *program, on day) (given bool, err error) {
	if p == nil { // in a damaged file
		return false, nil
	}
	var a *account
	var gifts []*rule
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.On != onBirthday || !r.inForceOn(on, ru.t.cfg.zone) {
			continue
		}
		if a == nil {
			if a, err = ru.t.points.account(c, p); err != nil {
				return false, err
			}
		}
		if r.Reward != "" {
			gifts = append(gifts, r)
			continue
		}
		if !a.takes(*r.Points) {
			continue
		}
		given = true
		if err := ru.credit(a, r); err != nil {
			return false, err
		}
	}
	if given {
		if err := ru.t.points.saveAccount(a); err != nil {
			return false, err
		}
	}
	for _, r := range gifts {
		issued, err := ru.t.giver.give(a, r, id{})
		if err != nil {
			return false, err
		}
		given = given || issued.Redemption != 0
	}
	return given, nil
}

func (a *account) takes(points decimal) bool {
	_, held := a.all().add(points)
	_, earned := a.Lifetime.add(points)
	return held && earned
}

// inForceOn reports whether any of a day lies between From and Until.
func (r *rule) inForceOn(on day, zone *time.Location) bool {
	from, begins := parseMoment(r.From, zone, false)
	until, ends := parseMoment(r.Until, zone, true)
	return !(begins && from > on.end(zone)) && !(ends && until < on.start(zone))
}
