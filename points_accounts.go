package main

// A customer's account in one program, and idleness: points that lapse without activity.

// An account is a customer's points in one program (contract §8).
//
// A credit is a lot: points that become available at one moment and expire
// at another. A debit takes from lots in the order of expiry, among equals the older
// first; lots that never expire come last.
//
// Invariants, proved by `sello verify`:
//
//	balance + pending = sum of the account's movements
//	balance           = what is left in available lots; if below zero, a debt, with no such lot left
//	pending           = what is left in pending lots
//	held              = what its open holds have set aside, by the movements of category Hold and Release
//	due               = the first moment at which any of this changes by itself
//
// The record holds the state as it was last written. Lots may have expired or
// become available since: every read of a balance and every change begins with
// settle, which takes account of them.
type account struct {
	customer *customer // both from the key
	program  *program

	// nextDue is the first known moment at which the account changes by itself; it
	// becomes Due when the account is written. If lookDue is set, that change is gone
	// and saveAccount looks for the next one.
	nextDue instant
	lookDue bool

	kept       bool       // it has a record
	rose       bool       // points were earned or given that are available: more may be in reach now
	recounting bool       // its tier may change without anybody reaching one
	seekFall   bool       // its tier may fall sooner than was found
	days       []dayBasis // days apart that are changed and not written yet
	path       [4]uint64  // backs Movements.Path while it is short

	accountHead

	// The tier that counts the customer (stats.go), if isCounted.
	Tier string

	Movements chain
	Hash      ledgerHash // of the last movement

	// The lots while they are few: Lots holds the available ones by expiry, Waiting
	// the pending ones by when they become available, the older first among equals.
	// Once there are more, each lot has an entry of its own, and LotsApart is set for
	// good.
	Lots, Waiting []lot
	LotsApart     bool

	// If LotsApart is set: what is left in available lots that expire, added up by
	// expiry, soonest first. Once there are many sums, each has an entry of its own,
	// and SumsApart is set for good.
	Sums      []expiring
	SumsApart bool

	// The days of the tier window that count something, in order, while
	// they are few. Once there are more, each has an entry of its own, and DaysApart is
	// set until the next recount.
	Days      []dayBasis
	DaysApart bool

	// What came from another system, each given once (points_movements.go).
	Opening  decimal
	Historic []historicPoints
	// In another program than the customer's own: purchases that count in it, less their
	// returns, and how many are not wholly returned. For the own one the customer has them.
	Spent     decimal
	Purchases uint64
	// Until when points that expire were announced (points.go). The record has it only where
	// Due is not after it; otherwise it follows from Due.
	Told instant
	// The holds that have not ended, the first to expire first (points_holds.go).
	Holds []openHold
	// When what is available lapses for inactivity.
	Idle idleness
	// When to look whether the tier falls soon; 0: never, as in the lowest tier (points_tiers.go).
	LookFall instant
}

// Tags of an account's optional fields.
const (
	accountOpening   = 1
	accountHistoric  = 2
	accountSpent     = 3
	accountPurchases = 4
	accountTold      = 5
	accountHolds     = 6
	accountIdle      = 7
	accountLookFall  = 8
	accountIdleEnded = 9
)

// An accountHead holds an account's figures. The account's record begins with
// it, so that a list need not read the rest.
type accountHead struct {
	Balance  decimal
	Pending  decimal
	Lifetime decimal // earned here and, if historic, before, less what returns should take back; spending does not lower it
	Window   basis   // sum of the days in the tier window, or the best of its calendar years
	Due      instant // when the account next changes by itself, or never
}

func (h *accountHead) fields(c *coder) {
	c.decimal(&h.Balance)
	c.decimal(&h.Pending)
	c.decimal(&h.Lifetime)
	h.Window.fields(c)
	c.instant(&h.Due)
}

func (a *account) fields(c *coder) {
	a.accountHead.fields(c)
	c.text(&a.Tier)
	if c.reading {
		a.Movements.Path = a.path[:0]
	}
	a.Movements.fields(c)
	if a.Movements.N > 0 {
		c.hash(&a.Hash)
	}
	if c.bool(&a.LotsApart); a.LotsApart {
		c.bool(&a.SumsApart)
		listField(c, &a.Sums, (*expiring).fields)
	} else {
		lotsField(c, &a.Lots)
		lotsField(c, &a.Waiting)
	}
	if c.bool(&a.DaysApart); !a.DaysApart {
		listField(c, &a.Days, (*dayBasis).fields)
	}
	optionalField(c, accountOpening, &a.Opening, (*coder).decimal)
	optionalList(c, accountHistoric, &a.Historic, (*historicPoints).fields)
	optionalField(c, accountSpent, &a.Spent, (*coder).decimal)
	optionalField(c, accountPurchases, &a.Purchases, (*coder).uint)
	if c.optional(accountTold, a.Told >= a.Due) {
		c.instant(&a.Told)
	}
	optionalList(c, accountHolds, &a.Holds, (*openHold).fields)
	if c.optional(accountIdle, a.Idle.Months > 0) {
		a.Idle.fields(c)
	}
	optionalField(c, accountLookFall, &a.LookFall, (*coder).instant)
	optionalField(c, accountIdleEnded, &a.Idle.Ended, (*coder).instant)
}

func (s *expiring) fields(c *coder) { c.instant(&s.ExpiresAt); c.decimal(&s.Amount) }
func (d *dayBasis) fields(c *coder) { intField(c, &d.Day); d.Basis.fields(c) }

// id is the identifier of the balance record. It is derived, so the record has
// it from enrolment on, before anything is written for it.
func (a *account) id() id { return a.customer.ID.derive("balance", a.program.text) }

// A pointsTxn is points in a transaction: accounts, lots, movements and tiers.
type pointsTxn struct {
	t     *txn
	risen []risenAccount // since the last giveRisen
}

func (pt *pointsTxn) partKey(a *account, part byte) key {
	return customerKey(pt.t.org, a.customer.ID, part).u32(a.program.Number)
}

// accountKey is the key of an account's own record. It is a scratchKey: the next call of
// scratchKey or scratchOrgKey overwrites it.
func (pt *pointsTxn) accountKey(c *customer, p *program) key {
	return pt.t.scratchKey(c.ID, partAccount).u32(p.Number)
}

// account returns a customer's account in a program as it is at t.now. It writes
// down what became due since the last write; in a View such writes are thrown
// away.
func (pt *pointsTxn) account(c *customer, p *program) (*account, error) {
	a, err := pt.storedAccount(c, p)
	if err == nil && pt.t.cfg.Recount {
		err = pt.t.recount.early(a)
	}
	if err != nil || a.Due > pt.t.now {
		return a, err
	}
	return a, pt.settle(a)
}

// storedAccount returns the account as it was last written, empty if it never
// was.
func (pt *pointsTxn) storedAccount(c *customer, p *program) (*account, error) {
	a, err := get[account](pt.t.Tx, pt.accountKey(c, p))
	if err != nil {
		return nil, err
	}
	kept := a != nil
	if !kept {
		a = &account{accountHead: accountHead{Due: never}}
	}
	a.customer, a.program, a.nextDue, a.kept = c, p, a.Due, kept
	if a.Told == 0 {
		a.Told = min(a.Due-1, pt.t.began)
	}
	if !kept {
		pt.beginIdle(a, c.CreatedAt)
	}
	return a, nil
}

// ownTier is the tier of a customer in its own program, nil if there is none.
func (pt *pointsTxn) ownTier(c *customer) (*tier, error) {
	a, err := pt.head(c, pt.t.cfg.programNumber(c.Program))
	if err != nil {
		return nil, err
	}
	current, _ := a.tier()
	return current, nil
}

// head is account with the figures alone, and the rest empty: it reads only the
// head of the account's record, unless something is due or a recount is under way.
func (pt *pointsTxn) head(c *customer, p *program) (account, error) {
	a := account{customer: c, program: p, accountHead: accountHead{Due: never}}
	k := pt.accountKey(c, p)
	record, ok, err := pt.t.Get(k)
	if err != nil {
		return a, err
	}
	if ok {
		r := readingRecord(record)
		if a.accountHead.fields(&r); r.err() != nil {
			return a, atKey(k, r.err())
		}
	}
	if pt.t.cfg.Recount || a.Due <= pt.t.now {
		whole, err := pt.account(c, p)
		if err != nil {
			return a, err
		}
		a.accountHead = whole.accountHead
	}
	return a, nil
}

// saveAccount writes the account. It also moves the account's due entry and the
// customer's place in the counts of tiers, where these changed.
func (pt *pointsTxn) saveAccount(a *account) error {
	counted := a.counted()
	if err := pt.t.stats.moveTier(a.program.Number, a.Tier, counted); err != nil {
		return err
	}
	if err := pt.emitTierChange(a, a.Tier, counted); err != nil {
		return err
	}
	pt.noteRisen(a, counted)
	if err := pt.saveDays(a); err != nil {
		return err
	}
	if a.seekFall || a.Tier != counted || a.LookFall == 0 && a.canFall() {
		if err := pt.seekFallNow(a, counted); err != nil {
			return err
		}
	}
	a.Tier = counted
	if a.lookDue || a.Idle.Months > 0 {
		var err error
		if a.nextDue, err = pt.firstDue(a, a.Told); err != nil {
			return err
		}
		a.lookDue = false
	}
	if a.nextDue != a.Due {
		if a.Due != never {
			if err := pt.t.Delete(pt.dueKey(a, a.Due)); err != nil {
				return err
			}
		}
		if a.nextDue != never {
			if err := pt.t.Put(pt.dueKey(a, a.nextDue), nil); err != nil {
				return err
			}
		}
		a.Due = a.nextDue
	}
	return pt.t.put(pt.accountKey(a.customer, a.program), a)
}

// isCounted reports whether the account's tier is counted: in the customer's own program,
// and in one that has join: All, unless the customer is hidden. In a program for all the
// customers without a record are in the lowest tier, and not counted.
func (a *account) isCounted() bool {
	return !a.customer.hidden() && (a.isOwn() || a.program.Join == joinAll)
}

// counted is the tier that counts the account's customer; "" if none does.
func (a *account) counted() string {
	if !a.isCounted() {
		return ""
	}
	current, _ := a.tier()
	return current.name()
}

// dueAt notes that the account changes by itself at a moment. notDueAt notes that
// one thing which was due at a moment is gone.

func (a *account) dueAt(at instant) { a.nextDue = min(a.nextDue, at) }

func (a *account) notDueAt(at instant) {
	if at <= a.nextDue {
		a.lookDue = true
	}
}

func (pt *pointsTxn) dueKey(a *account, due instant) key {
	return newKey('d').instant(due).u32(pt.t.org).id(a.customer.ID).u32(a.program.Number)
}

// dueOrg is where the organization stands in a key of what is due: after letter and moment.
const dueOrg = 1 + 8

// firstDue finds the first moment at which a lot or a hold expires, a pending lot becomes
// available, what is available lapses, a day leaves the tier window or a fall of the tier is looked
// for, or a notice after a given one (points.go).
func (pt *pointsTxn) firstDue(a *account, after instant) (instant, error) {
	due, err := pt.firstNotice(a, after)
	if err != nil {
		return 0, err
	}
	for _, part := range []byte{partLot, partPending} {
		for l, err := range pt.lots(a, part) {
			if err != nil {
				return 0, err
			}
			due = min(due, l.moment(part))
			break
		}
	}
	leaves, err := pt.windowLeaves(a)
	return min(due, leaves, a.holdEnds(), a.lapses(), a.looksForFall()), err
}

func instantIn(k []byte) instant { return instant(uintIn(k) ^ 1<<63) }

func (a *account) isOwn() bool { return a.customer.Program == a.program.Number }

// sold is what the sales that count in the account's program add up to. For the
// customer's own program the customer has it.
func (a *account) sold() (spent decimal, purchases uint64) {
	if a.isOwn() {
		return a.customer.TotalSpent, a.customer.Purchases
	}
	return a.Spent, a.Purchases
}

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

// hasEnded reports whether a period has ended between two moments: then points that were taken at
// the first lapse when they come back at the second, which is now or when a hold ends.
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
