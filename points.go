package main

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strconv"
)

// An account is a customer's points in one program (contract §8).
//
// A credit is a lot: points that become available at one moment and expire
// at another. A debit takes from the lots that expire first, those that never
// expire last, the older first among equals.
//
// Invariants, proved by `sello verify`:
//
//	balance + pending = sum of the account's movements
//	balance           = what is left in available lots, or, below zero, a debt with no lot left
//	pending           = what is left in pending lots
//	due               = the first moment at which any of this changes by itself
//
// The record holds the state as it was last written. Lots that have expired
// or become available since are taken account of by settle, which every
// reading and every change begins with.
type account struct {
	customer *customer // both from the key
	program  *program

	// What Due becomes when the account is written: the first moment known
	// of, unless what was due then is gone and the next has to be looked for.
	nextDue instant
	lookDue bool

	days []dayBasis // of those apart, changed and not written yet
	path [4]uint64  // room for what most accounts have of Movements.Path

	accountHead

	// The tier that the customer is counted in, if this is its own program.
	Tier string

	Movements chain
	Hash      ledgerHash // of the last movement

	// The lots while they are few: those that are available by when they expire,
	// those that are pending by when they become available, the older first among
	// equals. Once they were more each has an entry of its own, and LotsApart is set
	// for good.
	Lots, Waiting []lot
	LotsApart     bool

	// What is left in available lots apart that expire, by when they do, soonest
	// first; empty if that is many moments: then each has an entry of its own,
	// and SumsApart is set for good.
	Sums      []expiring
	SumsApart bool

	// The days of the rolling tier window that count something, in order, while
	// they are few. Once they were more each has an entry of its own,
	// and DaysApart is set.
	Days      []dayBasis
	DaysApart bool
}

// fewSizes are how many lots, sums by expiry and days of the tier window an
// account's own record holds.
type fewSizes struct{ lots, sums, days int }

func usualFew() fewSizes { return fewSizes{lots: 32, sums: 12, days: 12} }

// An accountHead is what an account has come to. Its record begins with it, so that
// a list need not read the rest.
type accountHead struct {
	Balance  decimal
	Pending  decimal
	Lifetime decimal // earned less taken back by returns; never less for spending
	Window   basis   // what the days of the rolling tier window add up to
	Due      instant // never if nothing will change by itself
}

func (h *accountHead) encode(w *writer) {
	w.decimal(h.Balance)
	w.decimal(h.Pending)
	w.decimal(h.Lifetime)
	h.Window.encode(w)
	w.instant(h.Due)
}

func (h *accountHead) decode(r *reader) {
	h.Balance = r.decimal()
	h.Pending = r.decimal()
	h.Lifetime = r.decimal()
	h.Window.decode(r)
	h.Due = r.instant()
}

func (a *account) encode(w *writer) {
	a.accountHead.encode(w)
	w.text(a.Tier)
	a.Movements.encode(w)
	if a.Movements.N > 0 {
		w.hash(a.Hash)
	}
	w.bool(a.LotsApart)
	if a.LotsApart {
		w.bool(a.SumsApart)
		w.uint(uint64(len(a.Sums)))
		for _, s := range a.Sums {
			w.instant(s.ExpiresAt)
			w.decimal(s.Amount)
		}
	} else {
		encodeLots(w, a.Lots)
		encodeLots(w, a.Waiting)
	}
	w.bool(a.DaysApart)
	if !a.DaysApart {
		w.uint(uint64(len(a.Days)))
		for _, d := range a.Days {
			w.int(int64(d.Day))
			d.Basis.encode(w)
		}
	}
}

func (a *account) decode(r *reader) {
	a.accountHead.decode(r)
	a.Tier = r.text()
	a.Movements.Path = a.path[:0]
	a.Movements.decode(r)
	if a.Movements.N > 0 {
		a.Hash = r.hash()
	}
	if a.LotsApart = r.bool(); a.LotsApart {
		a.SumsApart = r.bool()
		if n := r.len(); n > 0 {
			a.Sums = make([]expiring, n)
			for i := range a.Sums {
				a.Sums[i].ExpiresAt = r.instant()
				a.Sums[i].Amount = r.decimal()
			}
		}
	} else {
		a.Lots = decodeLots(r)
		a.Waiting = decodeLots(r)
	}
	if a.DaysApart = r.bool(); !a.DaysApart {
		if n := r.len(); n > 0 {
			a.Days = make([]dayBasis, n)
			for i := range a.Days {
				a.Days[i].Day = day(r.int())
				a.Days[i].Basis.decode(r)
			}
		}
	}
}

// id is the identifier of the balance record. It is derived, so that the
// record has it from enrolment on and before anything is written for it.
func (a *account) id() id { return a.customer.ID.derive("balance", a.program.text) }

func (t *txn) key(a *account, part byte) key {
	return customerKey(t.org, a.customer.ID, part).u32(a.program.Number)
}

// accountKey is the key of an account's own record, as hotKey makes it.
func (t *txn) accountKey(c *customer, p *program) key {
	return t.hotKey(c.ID, partAccount).u32(p.Number)
}

// account returns a customer's account in a program as it is at t.now, with
// whatever became due since the last write written down. In a View that
// finds something due the writes go nowhere.
func (t *txn) account(c *customer, p *program) (*account, error) {
	a, err := t.storedAccount(c, p)
	if err == nil && t.cfg.Recount {
		err = t.recountNow(a)
	}
	if err != nil || a.Due > t.now {
		return a, err
	}
	return a, t.settle(a)
}

// storedAccount is the account as it was last written. One that was never
// written is empty.
func (t *txn) storedAccount(c *customer, p *program) (*account, error) {
	a, err := get[account](t.Tx, t.accountKey(c, p))
	if err != nil {
		return nil, err
	}
	if a == nil {
		a = &account{accountHead: accountHead{Due: never}}
	}
	a.customer, a.program, a.nextDue = c, p, a.Due
	return a, nil
}

// ownTier is the tier of a customer in its own program, nil if there is none. It
// reads no more of the account than that takes.
func (t *txn) ownTier(c *customer) (*tier, error) {
	p := t.cfg.programNumber(c.Program)
	k := t.accountKey(c, p)
	record, ok, err := t.Get(k)
	if err != nil {
		return nil, err
	}
	a := account{customer: c, program: p, accountHead: accountHead{Due: never}}
	if ok {
		r, err := recordReader(record)
		if err != nil {
			return nil, atKey(k, err)
		}
		if a.accountHead.decode(&r); r.err != nil {
			return nil, atKey(k, r.err)
		}
	}
	if t.cfg.Recount || a.Due <= t.now {
		whole, err := t.account(c, p)
		if err != nil {
			return nil, err
		}
		a.accountHead = whole.accountHead
	}
	current, _ := a.tier()
	return current, nil
}

// saveAccount writes the account, its entry among what is due if that moment
// changed, and the count of its tier if that did.
func (t *txn) saveAccount(a *account) error {
	if a.customer.Program == a.program.Number {
		current, _ := a.tier()
		if err := t.moveTier(a.program.Number, a.Tier, current.name()); err != nil {
			return err
		}
		a.Tier = current.name()
	}
	if err := t.saveDays(a); err != nil {
		return err
	}
	if a.lookDue {
		var err error
		if a.nextDue, err = t.firstDue(a); err != nil {
			return err
		}
		a.lookDue = false
	}
	if a.nextDue != a.Due {
		if a.Due != never {
			if err := t.Delete(t.dueKey(a, a.Due)); err != nil {
				return err
			}
		}
		if a.nextDue != never {
			if err := t.Put(t.dueKey(a, a.nextDue), nil); err != nil {
				return err
			}
		}
		a.Due = a.nextDue
	}
	return t.put(t.accountKey(a.customer, a.program), a)
}

// dueAt says that the account changes by itself at a moment; notDueAt, that
// something which was to change it then is gone.

func (a *account) dueAt(at instant) { a.nextDue = min(a.nextDue, at) }

func (a *account) notDueAt(at instant) {
	if at <= a.nextDue {
		a.lookDue = true
	}
}

func (t *txn) dueKey(a *account, due instant) key {
	return newKey('d').instant(due).u32(t.org).id(a.customer.ID).u32(a.program.Number)
}

// firstDue looks for the first moment at which a lot expires, a pending one
// becomes available or a day leaves the tier window.
func (t *txn) firstDue(a *account) (instant, error) {
	due := never
	for _, part := range []byte{partLot, partPending} {
		for l, err := range t.lots(a, part) {
			if err != nil {
				return 0, err
			}
			due = min(due, l.moment(part))
			break
		}
	}
	leaves, err := t.windowLeaves(a)
	return min(due, leaves), err
}

func instantIn(k []byte) instant { return instant(uintIn(k) ^ 1<<63) }

// A lot is what is left of one credit. A lot with nothing left is not kept.
type lot struct {
	Seq       uint64  // sequence of the credit's movement
	AvailFrom instant // 0 if it was available at once
	Expires   instant
	Left      decimal
}

func (l *lot) encode(w *writer) { l.encodeAfter(&lot{}, w) }
func (l *lot) decode(r *reader) { l.decodeAfter(&lot{}, r) }

// encodeAfter writes the moments as what they differ from those of the lot
// before, which is often nothing.
func (l *lot) encodeAfter(before *lot, w *writer) {
	w.uint(l.Seq)
	w.instant(l.AvailFrom - before.AvailFrom)
	w.instant(l.Expires - before.Expires) // may wrap around, and so back
	w.decimal(l.Left)
}

func (l *lot) decodeAfter(before *lot, r *reader) {
	l.Seq = r.uint()
	l.AvailFrom = before.AvailFrom + r.instant()
	l.Expires = before.Expires + r.instant()
	l.Left = r.decimal()
}

func encodeLots(w *writer, list []lot) {
	w.uint(uint64(len(list)))
	before := &lot{}
	for i := range list {
		list[i].encodeAfter(before, w)
		before = &list[i]
	}
}

func decodeLots(r *reader) []lot {
	n := r.len()
	if n == 0 {
		return nil
	}
	list := make([]lot, n)
	before := &lot{}
	for i := range list {
		list[i].decodeAfter(before, r)
		before = &list[i]
	}
	return list
}

// moment is what lots of a part are ordered by: when available ones expire
// (partLot), when pending ones become available (partPending).
func (l *lot) moment(part byte) instant {
	if part == partPending {
		return l.AvailFrom
	}
	return l.Expires
}

// lotsOf are the lots of a part in the account's own record.
func (a *account) lotsOf(part byte) *[]lot {
	if part == partPending {
		return &a.Waiting
	}
	return &a.Lots
}

// findLot returns the place of a lot in the account's own record.
func (a *account) findLot(part byte, l *lot) (i int, found bool) {
	return slices.BinarySearchFunc(*a.lotsOf(part), l, func(other lot, l *lot) int {
		return cmp.Or(cmp.Compare(other.moment(part), l.moment(part)), cmp.Compare(other.Seq, l.Seq))
	})
}

func (t *txn) lotKey(a *account, part byte, l *lot) key {
	return t.key(a, part).instant(l.moment(part)).u64(l.Seq)
}

// lots yields the account's lots of a part in order. Changes that are made
// meanwhile do not matter to it.
func (t *txn) lots(a *account, part byte) iter.Seq2[*lot, error] {
	return func(yield func(*lot, error) bool) {
		if !a.LotsApart {
			for _, l := range slices.Clone(*a.lotsOf(part)) {
				if !yield(&l, nil) {
					return
				}
			}
			return
		}
		for e, err := range scan(t.Tx, t.key(a, part), false) {
			var l *lot
			if err == nil {
				l, err = decodeEntry[lot](e)
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// lot returns what is left of a lot of which the place in its part is known; nil
// if nothing is.
func (t *txn) lot(a *account, part byte, place *lot) (*lot, error) {
	if a.LotsApart {
		return get[lot](t.Tx, t.lotKey(a, part, place))
	}
	i, found := a.findLot(part, place)
	if !found {
		return nil, nil
	}
	l := (*a.lotsOf(part))[i]
	return &l, nil
}

// keepLot writes what is left of a lot.
func (t *txn) keepLot(a *account, part byte, l *lot) error {
	if a.LotsApart {
		k := t.lotKey(a, part, l)
		if l.Left == 0 {
			return t.Delete(k)
		}
		return t.put(k, l)
	}
	list := a.lotsOf(part)
	i, found := a.findLot(part, l)
	switch {
	case l.Left == 0 && found:
		*list = slices.Delete(*list, i, i+1)
	case l.Left == 0:
	case found:
		(*list)[i] = *l
	default:
		*list = slices.Insert(*list, i, *l)
	}
	if len(a.Lots)+len(a.Waiting) <= t.few.lots {
		return nil
	}
	return t.setLotsApart(a)
}

// setLotsApart gives each lot an entry of its own.
func (t *txn) setLotsApart(a *account) error {
	for _, part := range []byte{partLot, partPending} {
		for _, l := range *a.lotsOf(part) {
			if err := t.put(t.lotKey(a, part, &l), &l); err != nil {
				return err
			}
		}
	}
	a.Sums = sumsOf(a.Lots)
	a.Lots, a.Waiting, a.LotsApart = nil, nil, true
	return t.setSumsApart(a)
}

// sumsOf adds up, by when they expire, what is left in lots that do.
func sumsOf(lots []lot) []expiring {
	list := make([]expiring, 0, len(lots))
	for _, l := range lots {
		if l.Expires == never {
			break // none that comes after it does
		}
		if n := len(list); n > 0 && list[n-1].ExpiresAt == l.Expires {
			list[n-1].Amount += l.Left
		} else {
			list = append(list, expiring{l.Left, l.Expires})
		}
	}
	return list
}

// changeLot adds to what is left in an available lot and in the sum of its
// expiry; amount is negative to take.
func (t *txn) changeLot(a *account, l *lot, amount decimal) error {
	left := amount // and what else expires at the same moment
	switch {
	case l.Expires == never:
	case a.LotsApart:
		var err error
		if left, err = t.changeSum(a, l.Expires, amount); err != nil {
			return err
		}
	default:
		for _, other := range a.Lots {
			if other.Expires == l.Expires {
				left += other.Left
			}
		}
	}
	l.Left += amount
	if err := t.keepLot(a, partLot, l); err != nil || l.Expires == never {
		return err
	}
	if left == 0 {
		a.notDueAt(l.Expires)
	} else {
		a.dueAt(l.Expires)
	}
	return nil
}

// changeSum adds to what is left in the lots apart that expire at a moment, and
// returns how much that is.
func (t *txn) changeSum(a *account, expires instant, amount decimal) (left decimal, err error) {
	if a.SumsApart {
		k := t.key(a, partExpiring).instant(expires)
		sum, _, err := getUint(t.Tx, k)
		if err != nil {
			return 0, err
		}
		left = decimal(sum) + amount
		return left, t.putSum(k, left)
	}
	i, found := slices.BinarySearchFunc(a.Sums, expires, func(s expiring, at instant) int { return cmp.Compare(s.ExpiresAt, at) })
	if !found {
		a.Sums = slices.Insert(a.Sums, i, expiring{ExpiresAt: expires})
	}
	a.Sums[i].Amount += amount
	left = a.Sums[i].Amount
	if left == 0 {
		a.Sums = slices.Delete(a.Sums, i, i+1)
	}
	return left, t.setSumsApart(a)
}

// setSumsApart gives each sum an entry of its own if they are many.
func (t *txn) setSumsApart(a *account) error {
	if len(a.Sums) <= t.few.sums {
		return nil
	}
	for _, s := range a.Sums {
		if err := t.putSum(t.key(a, partExpiring).instant(s.ExpiresAt), s.Amount); err != nil {
			return err
		}
	}
	a.Sums, a.SumsApart = nil, true
	return nil
}

func (t *txn) putSum(k key, left decimal) error {
	if left == 0 {
		return t.Delete(k)
	}
	return t.putUint(k, uint64(left))
}

// changePending is changeLot for a pending lot.
func (t *txn) changePending(a *account, l *lot, amount decimal) error {
	if l.Left += amount; l.Left == 0 {
		a.notDueAt(l.AvailFrom)
	} else {
		a.dueAt(l.AvailFrom)
	}
	return t.keepLot(a, partPending, l)
}

// A use is what one movement took from, or gave back to, one lot.
type use struct {
	Seq     uint64 // sequence of the lot's credit
	Amount  decimal
	Expires instant
}

// A movement is one line of the ledger.
type movement struct {
	Seq uint64 // from the key

	Customer    id
	Program     uint32
	Category    string
	Amount      decimal // above zero: a credit; below: a debit
	Balance     decimal // after it
	Pending     decimal // after it
	Comment     string
	AvailFrom   instant // of a credit that was pending; else 0
	Expires     instant // of a credit; never if it does not expire
	Transaction id      // zero if not of a sale
	Redemption  id      // zero if not of a redemption
	CreatedAt   instant
	Link        link       // the account's chain
	Uses        []use      // lots: taken from by a debit, given back to by a refund
	Hash        ledgerHash // of all the above (ledger.go)
}

func (m *movement) encode(w *writer) {
	m.encodeUnhashed(w)
	w.hash(m.Hash)
}

func (m *movement) encodeUnhashed(w *writer) {
	w.id(m.Customer)
	w.uint(uint64(m.Program))
	w.text(m.Category)
	w.decimal(m.Amount)
	w.decimal(m.Balance)
	w.decimal(m.Pending)
	w.text(m.Comment)
	w.instant(m.AvailFrom)
	w.instant(m.Expires)
	w.idOrNone(m.Transaction)
	w.idOrNone(m.Redemption)
	w.instant(m.CreatedAt)
	m.Link.encode(w)
	w.uint(uint64(len(m.Uses)))
	for _, u := range m.Uses {
		w.uint(u.Seq)
		w.decimal(u.Amount)
		w.instant(u.Expires)
	}
}

func (m *movement) decode(r *reader) {
	m.Customer = r.id()
	m.Program = uint32(r.uint())
	m.Category = r.text()
	m.Amount = r.decimal()
	m.Balance = r.decimal()
	m.Pending = r.decimal()
	m.Comment = r.text()
	m.AvailFrom = r.instant()
	m.Expires = r.instant()
	m.Transaction = r.idOrNone()
	m.Redemption = r.idOrNone()
	m.CreatedAt = r.instant()
	m.Link.decode(r)
	if n := r.len(); n > 0 {
		m.Uses = make([]use, n)
	}
	for i := range m.Uses {
		m.Uses[i] = use{r.uint(), r.decimal(), r.instant()}
	}
	m.Hash = r.hash()
}

// id is the movement's identifier. It is derived, so that whatever knows where a
// movement is, such as a lot of its credit, knows its id too.
func (m *movement) id() id { return movementID(m.Customer, m.Seq) }

func movementID(cust id, seq uint64) id {
	return cust.derive("movement", strconv.FormatUint(seq, 10))
}

const (
	typeCredit = "Credit"
	typeDebit  = "Debit"
)

func (m *movement) movementType() string {
	if m.Amount < 0 {
		return typeDebit
	}
	return typeCredit
}

// Categories of movements (spec: Points movement categories). Expiration and
// Return are the system's own.
const (
	categoryExpiration = "Expiration"
	categoryReturn     = "Return"
	categoryRefund     = "Refund"
	categoryBonus      = "Bonus"
	categoryPurchase   = "Purchase"
	categoryRedemption = "Redemption"
	categoryAdjustment = "Adjustment"
)

var (
	addCategories    = []string{"Purchase", "Bonus", "Referral", "Campaign", "Loyalty", "Refund", "Interest", "AdminBonus", "Adjustment"}
	deductCategories = []string{"Redemption", "Fee", "Penalty", "AdminDeduction", "Exchange", "Adjustment"}
	allCategories    = slices.Concat(addCategories, deductCategories[:len(deductCategories)-1], []string{categoryExpiration, categoryReturn}) // Adjustment once
)

// isEarning tells whether a credit counts for lifetime points and tiers: all
// do but giving back what was spent and correcting a mistake.
func isEarning(category string) bool {
	return category != categoryRefund && category != categoryAdjustment
}

// record appends a movement to the ledger and to its account's chain. The
// caller has changed the account's balance already.
func (t *txn) record(a *account, m *movement) error {
	n, err := t.count()
	if err != nil {
		return err
	}
	n.Movements++
	m.Seq = n.Movements
	m.Customer, m.Program, m.Balance, m.Pending = a.customer.ID, a.program.Number, a.Balance, a.Pending
	m.Link = a.Movements.append(m.Seq)
	s, err := t.tally(m.Program, m.CreatedAt)
	if err != nil {
		return err
	}
	s.countMovement(m)
	w := &t.buf
	w.b = append(w.b[:0], recordVersion)
	m.encodeUnhashed(w)
	m.Hash = hashMovement(a.Hash, t.org, m.Seq, w.b)
	a.Hash = m.Hash
	w.hash(m.Hash)
	return t.Put(t.movementKey(m.Seq), w.b)
}

// isGiveBack tells a refund that returned points to their lots from one that
// made a new lot.
func (m *movement) isGiveBack() bool { return m.Category == categoryRefund && len(m.Uses) > 0 }

func (t *txn) movementKey(seq uint64) key { return t.hotOrgKey('m').u64(seq) }

func (t *txn) movement(seq uint64) (*movement, error) {
	k := t.movementKey(seq)
	m, err := get[movement](t.Tx, k)
	if err == nil && m == nil {
		err = unreadable(k)
	}
	if err != nil {
		return nil, err
	}
	m.Seq = seq
	return m, nil
}

// credit gives points: m says how many, why and until when; AvailFrom after
// now makes them pending. A debt is paid first. It refuses a result beyond
// the range of numbers.
func (t *txn) credit(a *account, m *movement) error {
	if m.Expires == 0 {
		m.Expires = a.program.Expiry.endOfLife(t.now, t.cfg.zone)
	}
	if m.AvailFrom <= t.now {
		m.AvailFrom = 0
	}
	m.CreatedAt = t.now
	l := &lot{AvailFrom: m.AvailFrom, Expires: m.Expires}

	if _, ok := (a.Balance + a.Pending).add(m.Amount); !ok {
		return newError(codeTooLarge).on("amount")
	}
	left := m.Amount
	if m.AvailFrom > 0 {
		a.Pending += m.Amount
	} else {
		left -= min(max(-a.Balance, 0), m.Amount) // a debt is paid first
		a.Balance += m.Amount
	}
	if isEarning(m.Category) {
		var ok bool
		if a.Lifetime, ok = a.Lifetime.add(m.Amount); !ok {
			return newError(codeTooLarge).on("amount")
		}
		if err := t.addBasis(a, t.now, basis{Points: m.Amount}); err != nil {
			return err
		}
	}
	if err := t.record(a, m); err != nil {
		return err
	}
	l.Seq = m.Seq
	if m.AvailFrom > 0 {
		return t.changePending(a, l, left)
	}
	return t.changeLot(a, l, left)
}

// debit takes m.Amount points, given as a number above zero, from the lots
// in order, or fails with insufficient_balance and takes nothing.
func (t *txn) debit(a *account, m *movement) error {
	if m.Amount > a.Balance {
		return newError(codeInsufficientBalance).with("required", m.Amount).with("available", max(a.Balance, 0))
	}
	uses, err := t.consume(a, m.Amount)
	if err != nil {
		return err
	}
	m.Uses = uses
	a.Balance -= m.Amount
	m.Amount = -m.Amount
	m.CreatedAt = t.now
	return t.record(a, m)
}

var errLots error = damagedError("an account's lots do not add up to its balance")

// consume takes amount, which is there, from the available lots.
func (t *txn) consume(a *account, amount decimal) ([]use, error) {
	var (
		uses    []use
		emptied []*lot
	)
	for l, err := range t.lots(a, partLot) {
		if err != nil {
			return nil, err
		}
		if amount == 0 {
			break
		}
		taken := min(l.Left, amount)
		amount -= taken
		uses = append(uses, use{l.Seq, taken, l.Expires})
		emptied = append(emptied, l)
	}
	if amount != 0 {
		return nil, errLots
	}
	for i, l := range emptied {
		if err := t.changeLot(a, l, -uses[i].Amount); err != nil {
			return nil, err
		}
	}
	return uses, nil
}

// settle writes down what became due by t.now: pending lots that became
// available, and, as Expiration movements dated at the expiry itself, lots
// that expired, in the order in which it happened.
func (t *txn) settle(a *account) error {
	t.makeWritable()
	a.lookDue = true
	maturing, err := t.dueLots(a, partPending)
	if err != nil {
		return err
	}
	expiring, err := t.dueLots(a, partLot)
	if err != nil {
		return err
	}
	for len(maturing) > 0 || len(expiring) > 0 {
		moment := never
		if len(maturing) > 0 {
			moment = maturing[0].AvailFrom
		}
		if len(expiring) > 0 {
			moment = min(moment, expiring[0].Expires)
		}
		for len(maturing) > 0 && maturing[0].AvailFrom <= moment {
			l := maturing[0]
			maturing = maturing[1:]
			if err := t.mature(a, l); err != nil {
				return err
			}
			if l.Left > 0 && l.Expires <= t.now {
				place, _ := slices.BinarySearchFunc(expiring, l, byExpiry)
				expiring = slices.Insert(expiring, place, l)
			}
		}
		var n int
		for n < len(expiring) && n < maxUses && expiring[n].Expires <= moment {
			n++
		}
		if err := t.expire(a, moment, expiring[:n]); err != nil {
			return err
		}
		expiring = expiring[n:]
	}
	if err := t.shrinkWindow(a, t.now); err != nil {
		return err
	}
	return t.saveAccount(a)
}

// dueLots reads the pending lots that are available by t.now, or the
// available ones that have expired, in order.
func (t *txn) dueLots(a *account, part byte) ([]*lot, error) {
	var lots []*lot
	for l, err := range t.lots(a, part) {
		if err != nil {
			return nil, err
		}
		if l.moment(part) > t.now {
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
func (t *txn) mature(a *account, l *lot) error {
	left := l.Left
	if err := t.changePending(a, l, -left); err != nil {
		return err
	}
	debt := min(max(-a.Balance, 0), left)
	a.Pending -= left
	a.Balance += left
	return t.changeLot(a, l, left-debt)
}

// maxUses bounds the lots that one Expiration movement names.
const maxUses = 500

// noteExpired tells the sale that a credit belongs to, if there is one, what of
// its points is gone: a return cannot take that back.
func (t *txn) noteExpired(seq uint64, amount decimal) error {
	credit, err := t.movement(seq)
	if err != nil || credit.Category != categoryPurchase || credit.Transaction == (id{}) {
		return err
	}
	s, err := t.sale(credit.Transaction)
	if err != nil {
		return err
	}
	s.Expired += amount
	return t.saveSale(s)
}

// expire ends lots at one moment.
func (t *txn) expire(a *account, moment instant, lots []*lot) error {
	if len(lots) == 0 {
		return nil
	}
	m := &movement{Category: categoryExpiration, CreatedAt: moment}
	for _, l := range lots {
		m.Uses = append(m.Uses, use{l.Seq, l.Left, l.Expires})
		m.Amount -= l.Left
		if err := t.noteExpired(l.Seq, l.Left); err != nil {
			return err
		}
		if err := t.changeLot(a, l, -l.Left); err != nil {
			return err
		}
	}
	a.Balance += m.Amount
	return t.record(a, m)
}

// An expiring is how many points expire at one moment.
type expiring struct {
	Amount    decimal `json:"amount"`
	ExpiresAt instant `json:"expiresAt"`
}

func (v expiring) appendJSON(b []byte) []byte {
	b = v.Amount.append(append(b, `{"amount":`...))
	b = v.ExpiresAt.appendJSON(append(b, `,"expiresAt":`...))
	return append(b, '}')
}

// maxExpiring bounds the list of expiring points (contract §7).
const maxExpiring = 100

// expiring lists the points that will expire, soonest first, equal moments
// added up.
func (t *txn) expiring(a *account) ([]expiring, error) {
	switch {
	case !a.LotsApart:
		return sumsOf(a.Lots), nil
	case a.SumsApart:
		return t.sumsApart(a)
	case len(a.Sums) > 0:
		return a.Sums, nil
	}
	return []expiring{}, nil
}

func (t *txn) sumsApart(a *account) ([]expiring, error) {
	list := []expiring{}
	prefix := t.key(a, partExpiring)
	for e, err := range scan(t.Tx, prefix, false) {
		if err != nil {
			return nil, err
		}
		if len(e.Value) != 8 {
			return nil, unreadable(e.Key)
		}
		list = append(list, expiring{decimal(binary.BigEndian.Uint64(e.Value)), instantIn(e.Key[len(prefix):])})
		if len(list) == maxExpiring {
			break
		}
	}
	return list, nil
}

// giveBack returns to their lots what a debit took, save what has expired
// meanwhile, which stays expired. It records a Refund of what came back, or
// nothing if all has expired.
func (t *txn) giveBack(a *account, debit *movement, m *movement) error {
	m.Category, m.CreatedAt, m.Expires = categoryRefund, t.now, never
	for _, u := range debit.Uses {
		if u.Expires <= t.now {
			if err := t.noteExpired(u.Seq, u.Amount); err != nil {
				return err
			}
			continue
		}
		l, err := t.lot(a, partLot, &lot{Seq: u.Seq, Expires: u.Expires})
		if err != nil {
			return err
		}
		if l == nil {
			l = &lot{Seq: u.Seq, Expires: u.Expires}
		}
		debt := min(max(-a.Balance, 0), u.Amount) // what comes back pays it first
		if _, ok := (a.Balance + a.Pending).add(u.Amount); !ok {
			return newError(codeTooLarge).on("amount")
		}
		a.Balance += u.Amount
		if err := t.changeLot(a, l, u.Amount-debt); err != nil {
			return err
		}
		m.Amount += u.Amount
		m.Uses = append(m.Uses, u)
	}
	if m.Amount == 0 {
		return nil
	}
	return t.record(a, m)
}

// listMovements returns a page of an account's ledger, newest first; keep
// chooses among them, nil takes all. It shows what is written: an expiry that
// is due appears with the sweep.
func (t *txn) listMovements(c *customer, prog *program, p page, keep func(*movement) bool) ([]*movement, uint64, error) {
	a, err := t.storedAccount(c, prog)
	if err != nil {
		return nil, 0, err
	}
	linkAt := func(seq uint64) (link, error) {
		m, err := t.movement(seq)
		if err != nil {
			return link{}, err
		}
		return m.Link, nil
	}
	if keep == nil {
		first, last, ok := p.span(a.Movements.N)
		if !ok {
			return nil, a.Movements.N, nil
		}
		seq, err := a.Movements.seek(first, linkAt)
		if err != nil {
			return nil, 0, err
		}
		var list []*movement
		for n := first; n >= last; n-- {
			m, err := t.movement(seq)
			if err != nil {
				return nil, 0, err
			}
			list = append(list, m)
			seq = m.Link.Prev
		}
		return list, a.Movements.N, nil
	}
	var (
		list  []*movement
		total uint64
	)
	for seq := a.Movements.last(); seq != 0; {
		m, err := t.movement(seq)
		if err != nil {
			return nil, 0, err
		}
		if keep(m) {
			if total >= p.skip() && uint64(len(list)) < p.limit {
				list = append(list, m)
			}
			total++
		}
		seq = m.Link.Prev
	}
	return list, total, nil
}
