package main

// Where a program has expiry.inactiveMonths, all that is available of a customer lapses when no
// activity stood for so many months: at the end of that day in the organization's time zone, as
// Expiration movements dated at that moment (contract §21, §31). Activity is the enrolment, a
// purchase that counts in the program and a debit of category Redemption; not points that are given
// by hand. Pending and held points do not lapse, nor does a debt.
//
// Points that become available once the end has passed begin a new period: nothing lapses at the
// moment it is given. Points that come back, from a hold or by a cancellation or a return, do not:
// if a period has ended since they were taken, they lapse as they come. What was undone moves the
// end back, but no nearer than soonestLapse.

// An idleness is when an account lapses. Without inactiveMonths it is empty.
type idleness struct {
	Months   int     // of the program, by which End was worked out
	End      instant // what is available then lapses
	Redeemed instant // the last debit of category Redemption that was not undone; 0: none
	Renewed  instant // when points last began a new period; 0: never
	Ended    instant // when the last period ended after which another one began; 0: none did, or before a merge
}

func (v *idleness) fields(c *coder) {
	uintField(c, &v.Months)
	c.instant(&v.End)
	c.instant(&v.Redeemed)
	c.instant(&v.Renewed)
}

// leastNotice is how many days what was undone, or another configuration, leaves until points lapse.
const leastNotice = 30

// inactiveMonths is after how many months without activity points lapse; 0: never.
func (p *program) inactiveMonths() int {
	if p.Expiry == nil {
		return 0
	}
	return p.Expiry.InactiveMonths
}

// lapses is when what is available lapses; never if nothing is.
func (a *account) lapses() instant {
	if a.Idle.Months == 0 || a.Balance <= 0 {
		return never
	}
	return a.Idle.End
}

// idleEnd is when an account lapses whose last activity was at a moment.
func (pt *pointsTxn) idleEnd(a *account, at instant) instant {
	last := addMonths(pt.t.dayOf(at).date(), a.Idle.Months)
	return dayOn(last.Date()).end(pt.t.cfg.zone)
}

// soonestLapse is the soonest end that a change now may give.
func (pt *pointsTxn) soonestLapse() instant {
	return (pt.t.dayOf(pt.t.now) + leastNotice).end(pt.t.cfg.zone)
}

// beginIdle sets when an account lapses whose last activity was at a moment.
func (pt *pointsTxn) beginIdle(a *account, at instant) {
	if a.Idle.Months = a.program.inactiveMonths(); a.Idle.Months > 0 {
		a.Idle.End = pt.idleEnd(a, at)
	}
}

// active notes an activity. One that comes late moves nothing back.
func (pt *pointsTxn) active(a *account, at instant) {
	if a.Idle.Months == 0 {
		return
	}
	if end := pt.idleEnd(a, at); end > a.Idle.End {
		if a.Idle.End <= pt.t.now {
			a.Idle.Ended = a.Idle.End
		}
		a.Idle.End = end
	}
}

// redeemed notes a debit of category Redemption.
func (pt *pointsTxn) redeemed(a *account, at instant) {
	if a.Idle.Months > 0 {
		a.Idle.Redeemed = max(a.Idle.Redeemed, at)
		pt.active(a, at)
	}
}

// hasEnded reports whether a period has ended between two moments, of which the second is now or
// when a hold ends: points that were taken at the first lapse when they come back at the second.
func (v *idleness) hasEnded(from, to instant) bool {
	return v.Months > 0 && (v.End <= to || v.Ended > from)
}

// renew begins a new period for points that become available at a moment, if the last one is over.
func (pt *pointsTxn) renew(a *account, at instant) {
	if a.Idle.Months > 0 && a.Idle.End <= at {
		a.Idle.Renewed = at
		pt.active(a, at)
	}
}

// isLast reports whether nothing later than an activity of a moment says when the account lapses.
func (pt *pointsTxn) isLast(a *account, at instant) bool {
	return a.Idle.Months > 0 && a.Idle.End <= pt.idleEnd(a, at)
}

// shorten moves the end back to what an activity of a moment gives.
func (pt *pointsTxn) shorten(a *account, last instant) {
	a.Idle.End = min(a.Idle.End, max(pt.idleEnd(a, last), pt.soonestLapse()))
}

// joinIdle makes the account lapse no sooner than one that becomes part of it.
func (a *account) joinIdle(from *account) {
	own, other := &a.Idle, &from.Idle
	own.End, own.Redeemed, own.Renewed = max(own.End, other.End), max(own.Redeemed, other.Redeemed), max(own.Renewed, other.Renewed)
	own.Ended = 0
}

// lapse expires all that is available, at the end of the period.
func (pt *pointsTxn) lapse(a *account) error {
	var all []*lot
	for l, err := range pt.lots(a, partLot) {
		if err != nil {
			return err
		}
		all = append(all, l)
	}
	if len(all) == 0 {
		return errLots
	}
	return pt.expireAll(a, a.Idle.End, all)
}
