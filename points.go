package main

import (
	"cmp"
	"slices"
)

// The heart of the ledger: points are given (credit) and taken (debit), come back and expire.
// Whoever reads or changes an account settles it first: settle writes down what became due. Stamps
// are points of a program of their own.

// credit gives points: m says how many, why and until when, and since when if not now.
// They are pending if m.AvailFrom is after now; otherwise a debt is paid first, but not
// with points of a late sale that have expired: the caller expires these (expireLate). A
// result beyond the range of numbers is refused with too_large.
func (pt *pointsTxn) credit(a *account, m *movement) error {
	m.CreatedAt = cmp.Or(m.CreatedAt, pt.t.now)
	m.Expires = pt.expires(a, m)
	if m.AvailFrom <= pt.t.now {
		m.AvailFrom = 0
	}
	l := &lot{AvailFrom: m.AvailFrom, Expires: m.Expires}

	if _, ok := a.all().add(m.Amount); !ok {
		return newError(codeTooLarge).on("amount")
	}
	left := m.Amount
	if m.AvailFrom > 0 {
		a.Pending += m.Amount
	} else {
		if m.Expires > pt.t.now {
			left -= min(max(-a.Balance, 0), m.Amount) // a debt is paid first
		}
		a.Balance += m.Amount
		a.rose = true
		pt.renew(a, pt.t.now)
	}
	if isEarning(m.Category) {
		var ok bool
		if a.Lifetime, ok = a.Lifetime.add(m.Amount); !ok {
			return newError(codeTooLarge).on("amount")
		}
		if err := pt.addBasis(a, m.CreatedAt, basis{Points: m.Amount}); err != nil {
			return err
		}
	}
	if err := pt.record(a, m); err != nil {
		return err
	}
	l.Seq = m.Seq
	if m.AvailFrom > 0 {
		return pt.changePending(a, l, left)
	}
	return pt.changeLot(a, l, left)
}

// expires returns when points expire: as their credit says, or else as their program does.
func (pt *pointsTxn) expires(a *account, m *movement) instant {
	return cmp.Or(m.Expires, a.program.Expiry.endOfLife(m.CreatedAt, pt.t.cfg.zone))
}

// debit takes m.Amount points, a number above zero, from the lots in order. If
// there are too few it fails with insufficient_balance and takes nothing. Then available is
// the balance, which is negative in debt, and missing is required less available.
func (pt *pointsTxn) debit(a *account, m *movement) error {
	if m.Amount > a.Balance {
		return a.lacks(m.Amount)
	}
	uses, err := pt.consume(a, m.Amount)
	if err != nil {
		return err
	}
	m.Uses = uses
	a.Balance -= m.Amount
	m.Amount = -m.Amount
	m.CreatedAt = cmp.Or(m.CreatedAt, pt.t.now)
	return pt.record(a, m)
}

// lacks is the error for points that an account does not have. What it holds aside is told, since
// the customer sees it.
func (a *account) lacks(required decimal) error {
	e := newError(codeInsufficientBalance).with("required", required).with("available", a.Balance).with("missing", required-a.Balance)
	if held := a.held(); held != 0 {
		e = e.with("held", held)
	}
	return e
}

var errLots error = damagedError("an account's lots do not add up to its balance")

// consume takes amount from the available lots, which hold at least that much: from some first, if
// any are named, and then in order.
func (pt *pointsTxn) consume(a *account, amount decimal, first ...*lot) ([]use, error) {
	var (
		uses    []use
		emptied []*lot
	)
	take := func(l *lot) {
		taken := min(l.Left, amount)
		amount -= taken
		uses = append(uses, use{l.Seq, taken, l.Expires})
		emptied = append(emptied, l)
	}
	for _, l := range first {
		if amount > 0 {
			take(l)
		}
	}
	for l, err := range pt.lots(a, partLot) {
		if err != nil {
			return nil, err
		}
		if amount == 0 {
			break
		}
		if !slices.ContainsFunc(first, func(o *lot) bool { return o.Seq == l.Seq }) {
			take(l)
		}
	}
	if amount != 0 {
		return nil, errLots
	}
	for i, l := range emptied {
		if err := pt.changeLot(a, l, -uses[i].Amount); err != nil {
			return nil, err
		}
	}
	return uses, nil
}

// settle writes down what became due by t.now, in the order in which it happened:
// pending lots become available, expired holds are released, and lots that expired or lapsed
// become Expiration movements dated at that moment. Then it drops days that left the tier window.
func (pt *pointsTxn) settle(a *account) error {
	pt.t.makeWritable()
	if err := pt.pass(a); err != nil {
		return err
	}
	if err := pt.shrinkWindow(a, pt.t.now); err != nil {
		return err
	}
	if err := pt.tellFall(a); err != nil {
		return err
	}
	if err := pt.tellExpiring(a); err != nil {
		return err
	}
	return pt.saveAccount(a)
}

// pass is settle for the points alone. The caller saves the account.
func (pt *pointsTxn) pass(a *account) error {
	a.lookDue = true
	maturing, err := pt.dueLots(a, partPending)
	if err != nil {
		return err
	}
	expiring, err := pt.dueLots(a, partLot)
	if err != nil {
		return err
	}
	for len(maturing) > 0 || len(expiring) > 0 || min(a.holdEnds(), a.lapses()) <= pt.t.now {
		moment := min(a.holdEnds(), a.lapses())
		if len(maturing) > 0 {
			moment = min(moment, maturing[0].AvailFrom)
		}
		if len(expiring) > 0 {
			moment = min(moment, expiring[0].Expires)
		}
		if a.lapses() <= moment { // first: what comes at that moment begins a new period
			if err := pt.lapse(a); err != nil {
				return err
			}
			expiring = nil
			continue
		}
		for len(maturing) > 0 && maturing[0].AvailFrom <= moment {
			l := maturing[0]
			maturing = maturing[1:]
			if err := pt.mature(a, l); err != nil {
				return err
			}
			if l.Left > 0 && l.Expires <= pt.t.now {
				place, _ := slices.BinarySearchFunc(expiring, l, byExpiry)
				expiring = slices.Insert(expiring, place, l)
			}
		}
		if a.holdEnds() <= moment {
			if err := pt.expireHolds(a, moment); err != nil {
				return err
			}
			if expiring, err = pt.dueLots(a, partLot); err != nil { // with what came back
				return err
			}
		}
		var n int
		for n < len(expiring) && n < maxUses && expiring[n].Expires <= moment {
			n++
		}
		if err := pt.expire(a, moment, expiring[:n]); err != nil {
			return err
		}
		expiring = expiring[n:]
	}
	return nil
}

// dueLots reads the lots of a part that are due by t.now, in order: pending ones
// to become available, or available ones to expire.
func (pt *pointsTxn) dueLots(a *account, part byte) ([]*lot, error) {
	var lots []*lot
	for l, err := range pt.lots(a, part) {
		if err != nil {
			return nil, err
		}
		if l.moment(part) > pt.t.now {
			break
		}
		lots = append(lots, l)
	}
	return lots, nil
}

func byExpiry(a, b *lot) int {
	return cmp.Or(cmp.Compare(a.Expires, b.Expires), cmp.Compare(a.Seq, b.Seq))
}

// mature makes a pending lot available. A debt is paid first.
func (pt *pointsTxn) mature(a *account, l *lot) error {
	left := l.Left
	if err := pt.changePending(a, l, -left); err != nil {
		return err
	}
	debt := min(max(-a.Balance, 0), left)
	a.Pending -= left
	a.Balance += left
	a.rose = true
	pt.renew(a, l.AvailFrom)
	if err := pt.t.feed.emit(eventPointsAvailable, l.Seq, a.customer.Number, uint64(left)); err != nil {
		return err
	}
	return pt.changeLot(a, l, left-debt)
}

// maxUses bounds the lots that one Expiration movement names.
const maxUses = 500

// noteExpired adds expired points of a credit to the sale it belongs to, if any:
// a return cannot take them back.
func (pt *pointsTxn) noteExpired(seq uint64, amount decimal) error {
	credit, err := pt.movement(seq)
	if err != nil || !credit.isEarned() {
		return err
	}
	s, err := pt.t.sales.get(credit.Transaction)
	if err != nil {
		return err
	}
	v := s.shareIn(credit.Program)
	if v == nil {
		return unreadable(pt.t.sales.key(s.Seq))
	}
	v.Expired += amount
	return pt.t.sales.save(s)
}

// expire records that lots expired, in one movement dated at moment.
func (pt *pointsTxn) expire(a *account, moment instant, lots []*lot) error {
	if len(lots) == 0 {
		return nil
	}
	m := &movement{Category: categoryExpiration, CreatedAt: moment}
	for _, l := range lots {
		m.Uses = append(m.Uses, use{l.Seq, l.Left, l.Expires})
		m.Amount -= l.Left
		if err := pt.noteExpired(l.Seq, l.Left); err != nil {
			return err
		}
		if err := pt.changeLot(a, l, -l.Left); err != nil {
			return err
		}
	}
	a.Balance += m.Amount
	return pt.record(a, m)
}

// expireAll is expire for any number of lots.
func (pt *pointsTxn) expireAll(a *account, moment instant, lots []*lot) error {
	for some := range slices.Chunk(lots, maxUses) {
		if err := pt.expire(a, moment, some); err != nil {
			return err
		}
	}
	return nil
}

// comesBack reports whether points that were used come back if what took them is cancelled at a
// moment: expired points stay expired.
func (u use) comesBack(at instant) bool { return u.Expires > at }

// givenBack is how much of a debit came back when it was cancelled at a moment.
func (m *movement) givenBack(at instant) (sum decimal) {
	for _, u := range m.Uses {
		if u.comesBack(at) {
			sum += u.Amount
		}
	}
	return sum
}

// giveBack returns to their lots points that a debit took: uses are some or all of its Uses. Points
// that have expired meanwhile stay expired. It records the rest as a Refund, or nothing if all have
// expired. What has lapsed for inactivity meanwhile expires at once (contract §31).
func (pt *pointsTxn) giveBack(a *account, debit *movement, uses []use, m *movement) error {
	m.Category, m.CreatedAt, m.Expires = categoryRefund, cmp.Or(m.CreatedAt, pt.t.now), never
	var lapsed []*lot
	ended := a.Idle.hasEnded(debit.takenAt(), pt.t.now)
	for _, u := range uses {
		if !u.comesBack(pt.t.now) {
			if err := pt.noteExpired(u.Seq, u.Amount); err != nil {
				return err
			}
			continue
		}
		l, err := pt.lotOf(a, u)
		if err != nil {
			return err
		}
		debt := min(max(-a.Balance, 0), u.Amount) // is paid first from what comes back
		if _, ok := a.all().add(u.Amount); !ok {
			return newError(codeTooLarge).on("amount")
		}
		a.Balance += u.Amount
		if err := pt.changeLot(a, l, u.Amount-debt); err != nil {
			return err
		}
		if ended && u.Amount > debt {
			lapsed = append(lapsed, l)
		}
		m.Amount += u.Amount
		m.Uses = append(m.Uses, u)
	}
	if m.Amount == 0 {
		return nil
	}
	if err := pt.record(a, m); err != nil {
		return err
	}
	return pt.expireAll(a, pt.t.now, lapsed)
}

// A voucherGiver gives vouchers that nobody redeems, where points and purchases bring a customer to
// them: the rewards do (rewards_gifts.go).
type voucherGiver interface {
	// give gives the reward of a rule of an account's program to its customer, if stock and limits
	// of the reward allow it. sale is the one that is being registered; zero: none.
	give(a *account, r *rule, sale id) (givenVoucher, error)

	// giveRisen gives what customers have come to reach by the accounts that were written: a
	// reward with autoIssue, or a tier.
	giveRisen(sale id) ([]givenVoucher, error)

	// stands reports whether a voucher that was given is not cancelled.
	stands(given givenVoucher) (bool, error)

	// undoSpending takes a debit of a moment, which was undone, out of what keeps an account's points
	// from lapsing (points_accounts.go).
	undoSpending(a *account, at instant) error
}

// A givenVoucher is a voucher that a sale gave, or one that a rule could not give.
type givenVoucher struct {
	Redemption uint64 // 0: not given
	Program    uint32 // of the rule
	Rule       id     // zero: the reward redeemed itself
	Name       string // of a rule that is not about purchases
	Reason     string // why it was not given, as GET /rewards says it; "" if it was
}

func (v *givenVoucher) fields(c *coder) {
	c.uint(&v.Redemption)
	uintField(c, &v.Program)
	c.idOrNone(&v.Rule)
	c.text(&v.Name)
	c.text(&v.Reason)
}

// A risenAccount is an account that was written with more available points, or in a higher tier. The
// vouchers that this brings are given once the rest is written, and the account is read again.
type risenAccount struct {
	customer id
	program  *program
	points   bool
	tier     string // that was reached; "": none
}

// noteRisen notes an account that rose, if its program gives vouchers for that.
func (pt *pointsTxn) noteRisen(a *account, tier string) {
	if !a.program.isAbove(tier, a.Tier) || a.recounting {
		tier = ""
	}
	rose := a.rose
	a.rose = false
	if (rose || tier != "") && !pt.t.viewing && !pt.t.importing && a.program.gives {
		pt.risen = append(pt.risen, risenAccount{a.customer.ID, a.program, rose, tier})
	}
}

// The event points.expiring announces points noticeTime before they expire: one event for all
// lots of an account that expire at one moment (contract §17). A notice is one of the moments at
// which an account changes by itself; the account's record has the first of these moments (Due).
// All notices from that moment until now are sent now. Lots that come or become available less
// than noticeTime before they expire are not announced.
//
// An old sale can make an account due, by points that have already expired, at a moment up to
// which notices were sent. Only then does the record keep how far they were sent (account.Told).

// noticeTime is how long before their expiry points are announced, in milliseconds.
const noticeTime = 7 * 24 * 60 * 60 * 1000

// noticeOf returns the next moment at which a lot that expires changes its account: the lot's
// notice, or its expiry if the notice is not after told.
func noticeOf(expires, told instant) instant {
	if expires-noticeTime > told {
		return expires - noticeTime
	}
	return expires
}

// firstNotice returns the first moment after a given one at which points are announced.
func (pt *pointsTxn) firstNotice(a *account, after instant) (instant, error) {
	list, err := pt.expiringFrom(a, after+noticeTime+1, 1)
	if err != nil || len(list) == 0 {
		return never, err
	}
	return list[0].ExpiresAt - noticeTime, nil
}

// tellExpiring announces the points with a notice after a.Told and up to now, except points that
// have expired since.
func (pt *pointsTxn) tellExpiring(a *account) error {
	for from := a.Told + noticeTime + 1; ; {
		list, err := pt.expiringFrom(a, from, 1)
		if err != nil {
			return err
		}
		if len(list) == 0 || list[0].ExpiresAt > pt.t.now+noticeTime {
			a.Told = max(a.Told, pt.t.now)
			return nil
		}
		e := list[0]
		if e.ExpiresAt > pt.t.began { // not long ago, as of an old sale that is imported
			if err := pt.tellOf(a, e); err != nil {
				return err
			}
		}
		from = e.ExpiresAt + 1
	}
}

func (pt *pointsTxn) tellOf(a *account, e expiring) error {
	return pt.t.feed.emit(eventPointsExpiring, a.customer.Number, uint64(a.program.Number), uint64(e.ExpiresAt), uint64(e.Amount))
}
