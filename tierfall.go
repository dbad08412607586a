package main

import "iter"

// With a tier window a tier falls by itself, when days leave the window. The event tier.expiring tells
// of it fallNotice before (contract §22).
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

// fall finds when the tier that a window gives falls. days are those in the window, in order, and
// leaves says when each of them leaves it.
func (p *program) fall(window basis, days iter.Seq2[dayBasis, error], leaves func(day) instant) (tierFall, error) {
	tb := p.TierBasis
	current, _ := p.tierAt(tb.measure(window))
	var years []dayBasis // where those count: not more than a few
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
