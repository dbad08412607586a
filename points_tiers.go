package main

import (
	"cmp"
	"iter"
	"slices"
)

// Tiers: what counts toward them, in the window of a program, and when a customer rises to a tier or
// falls from it. The tier is computed whenever it is asked for.

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

// growing is the figure that the next purchase adds to; what is missing to the next tier is counted
// from it. Where calendar years count, it is this year's alone.
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

// With a tier window a tier falls by itself, when days leave the window. The event tier.expiring tells
// of the fall fallNotice before (contract §22).
//
// A fall is found by looking through the days that leave before it, which not every write does. So the
// account's record says when to look next (account.LookFall): at the notice of the fall that was found
// last, or at this fall itself if it was no further away than that. What is added while the tier stays
// the same can only put a fall off. Then looking at that moment is soon enough, unless the fall was
// so near that the next one may have a notice sooner: it is looked for at once. It is also looked for at
// once when something is taken back or the tier changes. A fall that comes nearer than its notice is
// not told.

// fallNotice is how long before a tier falls it is told, in milliseconds.
const fallNotice = 30 * 24 * 60 * 60 * 1000

// A tierFall is what happens to a tier if nothing more is added to its window.
type tierFall struct {
	At instant // the first moment at which it is lower; never
	To *tier   // the tier then
}

// fall finds when the tier that a window gives falls. days are the days in the window, in order, and
// leaves says when each of them leaves it.
func (p *program) fall(window basis, days iter.Seq2[dayBasis, error], leaves func(day) instant) (tierFall, error) {
	tb := p.TierBasis
	current, _ := p.tierAt(tb.measure(window))
	var years []dayBasis // where calendar years count: not more than a few
	if tb.Window == windowCalendarYear {
		for d, err := range days {
			if err != nil {
				return tierFall{}, err
			}
			years = append(years, d)
		}
	}
	falls := func(at instant) (tierFall, bool) {
		to, _ := p.tierAt(tb.measure(window))
		return tierFall{at, to}, p.isAbove(current.name(), to.name())
	}
	at := never
	for d, err := range days {
		if err != nil {
			return tierFall{}, err
		}
		next := leaves(d.Day)
		if next != at { // else both leave at once, as 30 and 31 January do in February
			if f, ok := falls(at); ok {
				return f, nil
			}
		}
		at = next
		if tb.Window != windowCalendarYear {
			window = window.minus(d.Basis)
			continue
		}
		window, years = basis{}, years[1:]
		for _, y := range years {
			window = tb.with(window, y.Basis)
		}
	}
	if f, ok := falls(at); ok {
		return f, nil
	}
	return tierFall{At: never}, nil
}

// fall finds when the account's tier falls if nothing happens.
func (pt *pointsTxn) fall(a *account) (tierFall, error) {
	if !a.canFall() {
		return tierFall{At: never}, nil
	}
	return a.program.fall(a.Window, pt.days(a), func(d day) instant { return pt.leaves(a, d) })
}

// canFall reports whether the account has a tier that time may take away.
func (a *account) canFall() bool {
	current, _ := a.tier()
	return a.program.TierBasis.keepsDays() && current != nil && current != &a.program.Tiers[0]
}

// looksForFall is when a fall is looked for; never if it is not.
func (a *account) looksForFall() instant {
	if a.LookFall == 0 {
		return never
	}
	return a.LookFall
}

// noteBasis has the account's next fall looked for if what was just added to its window, or taken
// from it, may bring the notice of one before a.LookFall.
func (pt *pointsTxn) noteBasis(a *account, added decimal) {
	near := func(now instant) bool { return now < a.LookFall && a.LookFall <= now+fallNotice }
	if added < 0 || added > 0 && (near(pt.t.now) || near(pt.t.began)) {
		a.seekFall = true
	}
}

// seekFallNow finds the next fall of the account's tier, tells it if its notice is due, and notes when to
// look again. Of a record from before LookFall was kept it tells what is nearer, too.
func (pt *pointsTxn) seekFallNow(a *account, counted string) error {
	a.seekFall = false
	look := instant(0)
	if counted != "" && a.canFall() {
		f, err := pt.fall(a)
		if err != nil {
			return err
		}
		old := a.LookFall == 0 && a.Tier == counted && !a.recounting
		if look = f.At - fallNotice; look <= pt.t.now {
			if (look > a.Told || old) && f.At > pt.t.began { // not long ago, as by an old sale that is imported
				if err := pt.t.feed.emitTier(eventTierExpiring, counted, f.To.name(), a.customer.Number, uint64(a.program.Number), uint64(f.At)); err != nil {
					return err
				}
			}
			look = f.At
		}
	}
	if a.LookFall != look {
		a.notDueAt(a.looksForFall())
		a.LookFall = look
		a.dueAt(a.looksForFall())
	}
	return nil
}

// tellFall looks for the account's fall if it is time to.
func (pt *pointsTxn) tellFall(a *account) error {
	if a.looksForFall() > pt.t.now {
		return nil
	}
	return pt.seekFallNow(a, a.counted())
}
