package main

import (
	"cmp"
	"iter"
	"slices"
)

// A basis is what tiers are measured by (contract §9).
type basis struct {
	Points    decimal // earned
	Spent     decimal
	Purchases int64
}

func (b *basis) fields(c *coder) {
	c.decimal(&b.Points)
	c.decimal(&b.Spent)
	intField(c, &b.Purchases)
}

func (b basis) plus(o basis) basis {
	return basis{b.Points + o.Points, b.Spent + o.Spent, b.Purchases + o.Purchases}
}

func (b basis) minus(o basis) basis {
	return basis{b.Points - o.Points, b.Spent - o.Spent, b.Purchases - o.Purchases}
}

// measure is the figure of b that the tiers' thresholds are compared with.
func (tb tierBasis) measure(b basis) decimal {
	switch tb.Metric {
	case metricSpent:
		return b.Spent
	case metricPurchases:
		return decimalOf(int(b.Purchases))
	}
	return b.Points
}

const (
	metricPoints       = "PointsEarned"
	metricSpent        = "AmountSpent"
	metricPurchases    = "Purchases"
	windowLifetime     = "Lifetime"
	windowRolling      = "Rolling"
	windowCalendarYear = "CalendarYear"
)

// keepsDays reports whether accounts keep what each day counts, since it does not count for ever.
func (tb tierBasis) keepsDays() bool { return tb.Window != windowLifetime }

// keptOn is the day under which an account keeps what counts on d: in a CalendarYear window the
// first of the year.
func (tb tierBasis) keptOn(d day) day {
	if tb.Window == windowCalendarYear {
		return dayOn(d.date().Year(), 1, 1)
	}
	return d
}

// with is what a window counts together with one more of its days. Of calendar years the best one
// counts: what was reached in a year holds to 31 December of the next (contract §21).
func (tb tierBasis) with(window, b basis) basis {
	switch {
	case tb.Window != windowCalendarYear:
		return window.plus(b)
	case tb.measure(b) > tb.measure(window):
		return b
	}
	return window
}

// tierAt returns the highest tier whose threshold is at most figure, and the tier
// after it; nil where there is none. Customers whom returns took below the lowest
// threshold stay in the lowest tier.
func (p *program) tierAt(figure decimal) (current, next *tier) {
	for i := range p.Tiers {
		if i > 0 && figure < p.Tiers[i].Threshold {
			return current, &p.Tiers[i]
		}
		current = &p.Tiers[i]
	}
	return current, nil
}

// isAbove reports whether a tier is higher than another one. Customers begin in the lowest: it is
// above nothing.
func (p *program) isAbove(name, other string) bool {
	if name == other {
		return false
	}
	place := func(name string) int {
		return max(slices.IndexFunc(p.Tiers, func(t tier) bool { return t.Name == name }), 0)
	}
	return place(name) > place(other)
}

// figure is the figure that decides the customer's tier in the program. The tier
// is always computed from it and the current program, not read from account.Tier.
func (a *account) figure() decimal {
	b := a.Window
	if !a.program.TierBasis.keepsDays() {
		spent, purchases := a.sold()
		b = basis{a.Lifetime, spent, int64(purchases)}
	}
	return a.program.TierBasis.measure(b)
}

// growing is the figure that the next purchase adds to, and so what is missing to the next tier is
// counted from: of calendar years that of this year alone.
func (pt *pointsTxn) growing(a *account) decimal {
	tb := a.program.TierBasis
	if tb.Window != windowCalendarYear {
		return a.figure()
	}
	year := tb.keptOn(pt.t.dayOf(pt.t.now))
	for _, d := range a.Days {
		if d.Day == year {
			return tb.measure(d.Basis)
		}
	}
	return 0
}

// tier returns the account's current tier and the next one, each nil if there is
// none.
func (a *account) tier() (current, next *tier) { return a.program.tierAt(a.figure()) }

func (t *tier) name() string {
	if t == nil {
		return ""
	}
	return t.Name
}

// nameOrNull is the tier's name, null without a tier.
func (t *tier) nameOrNull() *string {
	if t == nil {
		return nil
	}
	return &t.Name
}

// A dayBasis is what one day adds to an account's tier window, or one calendar year, under its
// first day.
type dayBasis struct {
	Day   day
	Basis basis
}

// addBasis adds what happened at a moment to the tier window, if the program
// has one and the moment's day is still in it. What is taken back is negative.
// saveAccount writes the change.
func (pt *pointsTxn) addBasis(a *account, at instant, b basis) error {
	if !a.program.TierBasis.keepsDays() {
		return nil
	}
	return pt.addBasisOn(a, pt.t.dayOf(at), b)
}

// addBasisOn is addBasis for a day, in a program that has a tier window.
func (pt *pointsTxn) addBasisOn(a *account, d day, b basis) error {
	d = a.program.TierBasis.keptOn(d)
	if d < pt.t.dayOf(pt.t.now) && pt.leaves(a, d) <= pt.t.now {
		return nil
	}
	a.Window = a.Window.plus(b)
	pt.noteBasis(a, a.program.TierBasis.measure(b))
	if a.DaysApart {
		return pt.addBasisApart(a, d, b)
	}
	i, found := slices.BinarySearchFunc(a.Days, d, func(other dayBasis, d day) int { return cmp.Compare(other.Day, d) })
	if !found {
		a.Days = slices.Insert(a.Days, i, dayBasis{Day: d})
		a.dueAt(pt.leaves(a, d))
	}
	a.Days[i].Basis = a.Days[i].Basis.plus(b)
	if a.Days[i].Basis == (basis{}) {
		a.Days = slices.Delete(a.Days, i, i+1)
		a.notDueAt(pt.leaves(a, d))
	}
	a.chooseYear()
	pt.setDaysApart(a)
	return nil
}

// chooseYear makes the best of the calendar years count, where they do.
func (a *account) chooseYear() {
	if a.program.TierBasis.Window != windowCalendarYear {
		return
	}
	a.Window = basis{}
	for _, d := range a.Days {
		a.Window = a.program.TierBasis.with(a.Window, d.Basis)
	}
}

// setDaysApart gives each day an entry of its own if there are many. saveDays
// writes the entries. Calendar years stay in the record: no more than two count.
func (pt *pointsTxn) setDaysApart(a *account) {
	if a.program.TierBasis.Window != windowCalendarYear && len(a.Days) > pt.t.inline.days {
		a.Days, a.days, a.DaysApart = nil, a.Days, true
	}
}

func (pt *pointsTxn) addBasisApart(a *account, d day, b basis) error {
	for i := range a.days {
		if a.days[i].Day == d {
			a.days[i].Basis = a.days[i].Basis.plus(b)
			return nil
		}
	}
	sum, err := get[basis](pt.t.Tx, pt.partKey(a, partBasis).day(d))
	if err != nil {
		return err
	}
	if sum == nil {
		sum = new(basis)
		a.dueAt(pt.leaves(a, d))
	}
	a.days = append(a.days, dayBasis{d, sum.plus(b)})
	return nil
}

// days yields the days that count something in the account's window, in order.
func (pt *pointsTxn) days(a *account) iter.Seq2[dayBasis, error] {
	return func(yield func(dayBasis, error) bool) {
		if !a.DaysApart {
			for _, d := range a.Days {
				if !yield(d, nil) {
					return
				}
			}
			return
		}
		prefix := pt.partKey(a, partBasis)
		for e, err := range scan(pt.t.Tx, prefix, false) {
			var d dayBasis
			if err == nil {
				var b *basis
				if b, err = decodeEntry[basis](e); err == nil {
					d = dayBasis{dayIn(e.Key[len(prefix):]), *b}
				}
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// saveDays writes the days apart that have changed.
func (pt *pointsTxn) saveDays(a *account) error {
	for _, changed := range a.days {
		k := pt.partKey(a, partBasis).day(changed.Day)
		var err error
		if changed.Basis == (basis{}) {
			a.notDueAt(pt.leaves(a, changed.Day))
			err = pt.t.Delete(k)
		} else {
			err = pt.t.put(k, &changed.Basis)
		}
		if err != nil {
			return err
		}
	}
	a.days = nil
	return nil
}

// leaves is the moment at which a day leaves the tier window: the end of the
// same date TierBasis.Months later, or of the calendar year after its own.
func (pt *pointsTxn) leaves(a *account, d day) instant {
	if a.program.TierBasis.Window == windowCalendarYear {
		return dayOn(d.date().Year()+2, 1, 1).start(pt.t.cfg.zone)
	}
	later := addMonths(d.date(), a.program.TierBasis.Months)
	return (dayOn(later.Date()) + 1).start(pt.t.cfg.zone)
}

// windowLeaves is when the oldest day leaves the window; never if it is empty.
func (pt *pointsTxn) windowLeaves(a *account) (instant, error) {
	if !a.program.TierBasis.keepsDays() {
		return never, nil
	}
	for d, err := range pt.days(a) {
		if err != nil {
			return 0, err
		}
		return pt.leaves(a, d.Day), nil
	}
	return never, nil
}

// shrinkWindow drops the days that have left the window at a moment.
func (pt *pointsTxn) shrinkWindow(a *account, at instant) error {
	if !a.program.TierBasis.keepsDays() {
		return nil
	}
	var gone []day
	for d, err := range pt.days(a) {
		if err != nil {
			return err
		}
		if pt.leaves(a, d.Day) > at {
			break
		}
		a.Window = a.Window.minus(d.Basis)
		gone = append(gone, d.Day)
	}
	if err := pt.dropDays(a, gone); err != nil {
		return err
	}
	a.chooseYear()
	return nil
}

// clearWindow drops all days.
func (pt *pointsTxn) clearWindow(a *account) error {
	var all []day
	for d, err := range pt.days(a) {
		if err != nil {
			return err
		}
		all = append(all, d.Day)
	}
	if err := pt.dropDays(a, all); err != nil {
		return err
	}
	a.Window, a.DaysApart, a.lookDue, a.seekFall = basis{}, false, true, true
	return nil
}

// dropDays removes the window's first days.
func (pt *pointsTxn) dropDays(a *account, gone []day) error {
	if !a.DaysApart {
		a.Days = a.Days[len(gone):]
		return nil
	}
	for _, d := range gone {
		if err := pt.t.Delete(pt.partKey(a, partBasis).day(d)); err != nil {
			return err
		}
	}
	return nil
}

// emitTierChange adds tier.changed if the account has another tier than before, "" for none. A
// new customer begins in the lowest tier, which is no change.
func (pt *pointsTxn) emitTierChange(a *account, from, to string) error {
	if from == "" && len(a.program.Tiers) > 0 {
		from = a.program.Tiers[0].name()
	}
	if from == to || from == "" || to == "" {
		return nil
	}
	return pt.t.feed.emitTier(eventTierChanged, from, to, a.customer.Number, uint64(a.program.Number))
}
