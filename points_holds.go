package main

import (
	"bytes"
	"cmp"
	"slices"
)

// A hold sets points aside for a while, as a web shop needs from its order until it ships
// (contract §20). It ends when the points are captured, all or a part, when they are released, or
// by itself at its expiry, to the millisecond. Held points are not in the balance, and do not
// expire: if their date passes meanwhile, they expire when they are released.
//
//	O org hold        → the hold
//	c org cust 8 hold → nothing: the holds of the customer that they were made for
//
// The account knows its open holds. In the ledger a hold is a debit of category Hold, and its end
// a credit of category Release; a capture adds a Redemption. All of them name the hold. So the sum
// of the other movements is balance, pending and held. A Hold takes its Uses from the lots, and
// a Release gives its Uses back. The Redemption takes the points that the Release left out, from no lot;
// its Uses say which lots they had come from. When customers are merged, a hold moves by a Release, two
// Merges and a Hold without Uses: its points touch no lot and pay no debt.

// mostHolds is how many open holds a customer has at most.
const mostHolds = 20

// How long a hold lasts, in seconds.
const (
	leastHold = 60
	usualHold = 15 * 60
	mostHold  = 24 * 60 * 60
)

const (
	holdHeld     = "Held"
	holdCaptured = "Captured"
	holdReleased = "Released"
	holdExpired  = "Expired"
)

// holdStates has the words of a hold's record. The file depends on their order.
var holdStates = []string{holdHeld, holdCaptured, holdReleased, holdExpired}

// A hold is points that are or were set aside.
type hold struct {
	ID id // from the key

	Customer  id // for whom it was made
	Program   uint32
	Amount    decimal
	Uses      []use  // where the points came from
	Movement  uint64 // sequence of the one that set them aside
	CreatedAt instant
	Expires   instant
	By        creator
	State     string  // Held also if it has expired since the account was written
	Balance   decimal // of the account, after it or after its end

	// Once the hold has ended.
	ClosedAt instant
	Captured decimal
	Sale     id // that the captured points paid for; zero: none
}

// holdClosed is the tag of a hold's optional fields.
const holdClosed = 1

func (h *hold) fields(c *coder) {
	c.id(&h.Customer)
	uintField(c, &h.Program)
	c.decimal(&h.Amount)
	listField(c, &h.Uses, (*use).fields)
	c.uint(&h.Movement)
	c.instant(&h.CreatedAt)
	c.instant(&h.Expires)
	h.By.fields(c)
	c.word(holdStates, &h.State)
	c.decimal(&h.Balance)
	if c.optional(holdClosed, h.State != holdHeld) {
		c.instant(&h.ClosedAt)
		c.decimal(&h.Captured)
		c.idOrNone(&h.Sale)
	}
}

// status is what the hold is at a moment.
func (h *hold) status(at instant) string {
	if h.State == holdHeld && h.Expires <= at {
		return holdExpired
	}
	return h.State
}

// An openHold is a hold as its account knows it.
type openHold struct {
	ID      id
	Amount  decimal
	Expires instant
}

func (o *openHold) fields(c *coder) { c.id(&o.ID); c.decimal(&o.Amount); c.instant(&o.Expires) }

// held is how many of the account's points are set aside.
func (a *account) held() (sum decimal) {
	for i := range a.Holds {
		sum += a.Holds[i].Amount
	}
	return sum
}

// all is what the account has in all: it is never beyond the range of numbers.
func (a *account) all() decimal { return a.Balance + a.Pending + a.held() }

// addOpen adds an open hold, in the order in which they expire. dropOpen takes one away.
func (a *account) addOpen(o openHold) {
	i, _ := slices.BinarySearchFunc(a.Holds, o, func(x, y openHold) int {
		return cmp.Or(cmp.Compare(x.Expires, y.Expires), bytes.Compare(x.ID[:], y.ID[:]))
	})
	a.Holds = slices.Insert(a.Holds, i, o)
	a.dueAt(o.Expires)
}

func (a *account) dropOpen(h *hold) {
	a.Holds = slices.DeleteFunc(a.Holds, func(o openHold) bool { return o.ID == h.ID })
	a.notDueAt(h.Expires)
}

// holdEnds is when the first of the account's open holds expires; never if it has none.
func (a *account) holdEnds() instant {
	if len(a.Holds) == 0 {
		return never
	}
	return a.Holds[0].Expires
}

// expireHolds ends the holds that expire by a moment, which the caller has come to.
func (pt *pointsTxn) expireHolds(a *account, moment instant) error {
	for a.holdEnds() <= moment {
		h, err := pt.holdAt(a.Holds[0].ID)
		if err != nil {
			return err
		}
		if _, err := pt.closeHold(a, h, holdEnd{state: holdExpired, at: h.Expires}); err != nil {
			return err
		}
	}
	return nil
}

func (pt *pointsTxn) holdKey(u id) key         { return orgKey('O', pt.t.org).id(u) }
func (pt *pointsTxn) holdOfKey(cust, u id) key { return customerKey(pt.t.org, cust, partHold).id(u) }
func (pt *pointsTxn) saveHold(h *hold) error   { return pt.t.put(pt.holdKey(h.ID), h) }
func (pt *pointsTxn) holdAt(u id) (*hold, error) {
	h, err := existing[hold](pt.t.Tx, pt.holdKey(u))
	if err == nil {
		h.ID = u
	}
	return h, err
}

// hold finds a hold of this organization. Any other id gives hold_not_found.
func (pt *pointsTxn) hold(u id) (*hold, error) {
	h, err := get[hold](pt.t.Tx, pt.holdKey(u))
	if err == nil && h == nil {
		err = newError(codeHoldNotFound)
	}
	if err != nil {
		return nil, err
	}
	h.ID = u
	return h, nil
}

// A newHold is what a caller says about a hold.
type newHold struct {
	Customer id
	Program  *id // nil: the customer's own
	Amount   decimal
	Seconds  int
	Comment  string
	Proof    givenProof
}

func (pt *pointsTxn) place(in newHold) (*hold, error) {
	c, err := pt.t.customers.get(in.Customer)
	if err != nil {
		return nil, err
	}
	p, err := pt.t.programOf(c, in.Program)
	if err != nil {
		return nil, err
	}
	if err := c.mustBeActive(); err != nil {
		return nil, err
	}
	if err := pt.t.cards.prove(c, in.Amount, in.Proof); err != nil {
		return nil, err
	}
	open, err := pt.openHolds(c)
	if err != nil {
		return nil, err
	}
	if len(open) >= mostHolds {
		return nil, newError(codeTooManyHolds).with("limit", mostHolds)
	}
	a, err := pt.account(c, p)
	if err != nil {
		return nil, err
	}
	h := &hold{
		ID: pt.t.id(), Customer: c.ID, Program: p.Number, Amount: in.Amount,
		CreatedAt: pt.t.now, Expires: pt.t.now + instant(in.Seconds)*1000, By: pt.t.by, State: holdHeld,
	}
	m := &movement{Category: categoryHold, Amount: in.Amount, Comment: in.Comment, Hold: h.ID}
	if err := pt.debit(a, m); err != nil {
		return nil, err
	}
	h.Uses, h.Movement, h.Balance = m.Uses, m.Seq, a.Balance
	a.addOpen(openHold{h.ID, h.Amount, h.Expires})
	if err := pt.saveAccount(a); err != nil {
		return nil, err
	}
	if err := pt.t.Put(pt.holdOfKey(c.ID, h.ID), nil); err != nil {
		return nil, err
	}
	if err := pt.emitHold(eventPointsHeld, h); err != nil {
		return nil, err
	}
	return h, pt.saveHold(h)
}

// openHolds returns the open holds of a customer, in all programs. It ends the expired ones.
func (pt *pointsTxn) openHolds(c *customer) (list []openHold, err error) {
	for _, p := range pt.t.cfg.Programs {
		a, err := pt.account(c, p)
		if err != nil {
			return nil, err
		}
		list = append(list, a.Holds...)
	}
	return list, nil
}

// heldIn returns the account that has a hold, settled, and the hold as it is then.
func (pt *pointsTxn) heldIn(u id, owner func(cust id) (*customer, error)) (*account, *hold, error) {
	h, err := pt.hold(u)
	if err != nil {
		return nil, nil, err
	}
	c, err := owner(h.Customer)
	if err != nil {
		return nil, nil, err
	}
	a, err := pt.account(c, pt.t.cfg.programNumber(h.Program))
	if err != nil {
		return nil, nil, err
	}
	h, err = pt.holdAt(u)
	return a, h, err
}

// holdNow is hold, as the hold is now.
func (pt *pointsTxn) holdNow(u id) (*hold, error) {
	_, h, err := pt.heldIn(u, pt.t.merges.owner)
	return h, err
}

// heldOpen is heldIn for a hold that must be open.
func (pt *pointsTxn) heldOpen(u id, owner func(cust id) (*customer, error)) (*account, *hold, error) {
	a, h, err := pt.heldIn(u, owner)
	if err == nil {
		err = h.mustBeOpen()
	}
	return a, h, err
}

// mustBeOpen returns hold_closed for a hold that has ended.
func (h *hold) mustBeOpen() error {
	if h.State == holdHeld {
		return nil
	}
	return newError(codeHoldClosed).with("status", h.State)
}

// capture takes held points for good, and releases the rest of the hold; amount 0 is all of it.
func (pt *pointsTxn) capture(u id, amount decimal) (*hold, error) {
	a, h, err := pt.heldOpen(u, pt.t.customers.activeOwner)
	if err != nil {
		return nil, err
	}
	if amount = cmp.Or(amount, h.Amount); amount > h.Amount {
		return nil, exceedsHold(h).on("amount")
	}
	if _, err := pt.closeHold(a, h, holdEnd{holdCaptured, amount, pt.t.now, id{}}); err != nil {
		return nil, err
	}
	return h, pt.saveAccount(a)
}

func exceedsHold(h *hold) *apiError {
	return newError(codeHoldExceeded).number(h.Amount).with("amount", h.Amount)
}

// release gives the points of a hold back, also to a customer who is not active.
func (pt *pointsTxn) release(u id) (*hold, error) {
	a, h, err := pt.heldOpen(u, pt.t.merges.owner)
	if err != nil {
		return nil, err
	}
	if _, err := pt.closeHold(a, h, holdEnd{state: holdReleased, at: pt.t.now}); err != nil {
		return nil, err
	}
	return h, pt.saveAccount(a)
}

// releaseAll gives back the points of all holds of a customer.
func (pt *pointsTxn) releaseAll(c *customer) error {
	open, err := pt.openHolds(c)
	if err != nil {
		return err
	}
	for _, o := range open {
		if _, err := pt.release(o.ID); err != nil {
			return err
		}
	}
	return nil
}

// A holdEnd is how a hold ends.
type holdEnd struct {
	state    string
	captured decimal
	at       instant
	sale     id // that the captured points pay for; zero: none
}

// closeHold ends an open hold of an account, which the caller saves. It returns the Redemption of
// what is captured; nil if nothing is.
func (pt *pointsTxn) closeHold(a *account, h *hold, end holdEnd) (taken *movement, err error) {
	a.dropOpen(h)
	captured, rest := splitUses(h.Uses, end.captured)
	back := &movement{Category: categoryRelease, Amount: h.Amount, Expires: never, Hold: h.ID, CreatedAt: end.at}
	if end.state == holdExpired {
		back.By = creator{Type: bySystem}
	}
	lapsed, err := pt.putBack(a, h, rest, back)
	if err != nil {
		return nil, err
	}
	a.Balance += end.captured // the Release is of all; the Redemption takes this part again
	if err := pt.record(a, back); err != nil {
		return nil, err
	}
	if end.captured > 0 {
		taken = &movement{Category: categoryRedemption, Amount: -end.captured, Uses: captured, Hold: h.ID, Transaction: end.sale, CreatedAt: end.at}
		a.Balance -= end.captured
		if err := pt.record(a, taken); err != nil {
			return nil, err
		}
	}
	if err := pt.expireAll(a, end.at, lapsed); err != nil {
		return nil, err
	}
	h.State, h.Captured, h.ClosedAt, h.Sale, h.Balance = end.state, end.captured, end.at, end.sale, a.Balance
	if err := pt.emitHold(eventPointsReleased, h); err != nil {
		return nil, err
	}
	return taken, pt.saveHold(h)
}

// splitUses divides uses into the uses of the first points and of the rest.
func splitUses(uses []use, points decimal) (first, rest []use) {
	for _, u := range uses {
		part := u
		part.Amount = min(u.Amount, points)
		u.Amount -= part.Amount
		points -= part.Amount
		if part.Amount > 0 {
			first = append(first, part)
		}
		if u.Amount > 0 {
			rest = append(rest, u)
		}
	}
	return first, rest
}

// putBack gives held points back to their lots, and notes in m what went where. Points that still
// live come first, and pay a debt. Then come points whose date has passed. putBack returns the lots
// of these, or all lots if points have lapsed for inactivity meanwhile: the caller expires them at
// once. It announces points whose notice came while they were held.
func (pt *pointsTxn) putBack(a *account, h *hold, uses []use, m *movement) (lapsed []*lot, err error) {
	ended := a.Idle.hasEnded(h.CreatedAt, m.CreatedAt)
	for _, living := range []bool{true, false} {
		for _, u := range uses {
			if u.comesBack(m.CreatedAt) != living {
				continue
			}
			l, err := pt.lotOf(a, u)
			if err != nil {
				return nil, err
			}
			var debt decimal
			if living {
				debt = min(max(-a.Balance, 0), u.Amount)
			}
			if !living || ended && u.Amount > debt {
				lapsed = append(lapsed, l)
			}
			a.Balance += u.Amount
			if err := pt.changeLot(a, l, u.Amount-debt); err != nil {
				return nil, err
			}
			ends := min(u.Expires, a.lapses())
			if notice := ends - noticeTime; living && !ended && h.CreatedAt < notice && notice <= m.CreatedAt && u.Amount > debt {
				if err := pt.tellOf(a, expiring{u.Amount - debt, ends}); err != nil {
					return nil, err
				}
			}
			m.Uses = append(m.Uses, u)
		}
	}
	return lapsed, nil
}

// moveHolds moves the open holds of an account to another customer's account (merges.go).
func (pt *pointsTxn) moveHolds(from, to *account) error {
	for _, o := range from.Holds {
		if _, ok := to.all().add(o.Amount); !ok {
			return newError(codeTooLarge).on("balance")
		}
		for _, step := range []struct {
			a        *account
			category string
			amount   decimal
		}{{from, categoryRelease, o.Amount}, {from, categoryMerge, -o.Amount}, {to, categoryMerge, o.Amount}, {to, categoryHold, -o.Amount}} {
			step.a.Balance += step.amount
			m := &movement{Category: step.category, Amount: step.amount, Expires: never, Hold: o.ID, CreatedAt: pt.t.now}
			if step.amount < 0 {
				m.Expires = 0
			}
			if err := pt.record(step.a, m); err != nil {
				return err
			}
		}
		to.addOpen(o)
	}
	from.Holds, from.lookDue = nil, true
	return nil
}

func (pt *pointsTxn) emitHold(kind eventKind, h *hold) error { return pt.t.feed.emitOf(kind, h.ID) }

// holdIDs lists the holds that were made for a customer, oldest first.
func (pt *pointsTxn) holdIDs(cust id) (list []id, err error) {
	return keyEnds(pt.t.Tx, tableHoldsOf, customerKey(pt.t.org, cust, partHold), func(end []byte) id { return id(end) })
}

// listHolds returns a page of the holds of a customer and its stubs that have a status, "" for
// any, newest first, and how many there are.
func (pt *pointsTxn) listHolds(c *customer, status string, p page) (list []*hold, total uint64, err error) {
	family, err := pt.t.merges.family(c)
	if err != nil {
		return nil, 0, err
	}
	var all []id
	for _, member := range family {
		own, err := pt.holdIDs(member.ID)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, own...)
	}
	owner, err := pt.t.merges.owner(c.ID)
	if err == nil {
		_, err = pt.openHolds(owner) // so that a balance is that after the end
	}
	if err != nil {
		return nil, 0, err
	}
	slices.SortFunc(all, func(a, b id) int { return bytes.Compare(b[:], a[:]) }) // ids begin with their time
	for _, u := range all {
		h := &hold{ID: u}
		if shown := total >= p.skip() && uint64(len(list)) < p.limit; status != "" || shown {
			if h, err = pt.holdAt(u); err != nil {
				return nil, 0, err
			}
			if status != "" && h.status(pt.t.now) != status {
				continue
			}
			if shown {
				list = append(list, h)
			}
		}
		total++
	}
	return list, total, nil
}
