package main

import (
	"crypto/sha256"
	"slices"

	"sello/internal/membercode"
)

// A ticket is a purchase whose customer was not known at the till (contract §26). Whoever has it claims
// it once, for a customer; then it is a sale as of its own moment (sales_claims.go). Until then it gives
// no points: an open ticket is no liability.
//
//	G org 'k' id         → the ticket
//	G org 'e' hash(16)   → its id, by its externalId
//	G org 'o' time id    → its state (1) and when it expires: tickets by when they happened
//	Y 't' code           → its organization u32, and its id
//
// A till without a network makes a ticket by itself and signs it (sales_signed.go). Such a ticket has no
// code, and the store has nothing of it until it is claimed or cancelled.
type ticket struct {
	ID id // from the key; zero: it was signed, and the store has not seen it yet

	Code      string // "": it was signed
	By        creator
	CreatedAt instant // of a signed one, when it was first seen
	State     string

	ExternalID string
	Total      decimal
	Items      []item
	Labels     saleLabels
	Comment    string
	OccurredAt instant
	Expires    instant

	// Once the ticket is no longer open.
	ClosedAt instant
	ClosedBy creator
	Sale     id // that it became, or that was registered in its place; zero: it was cancelled
}

const (
	ticketOpen       = "Open"
	ticketClaimed    = "Claimed"
	ticketCancelled  = "Cancelled"
	ticketRegistered = "Registered" // a purchase with its externalId was registered for a customer
	ticketExpired    = "Expired"    // open, and past its day
)

// ticketStates has the words of a ticket's record. The file depends on their order.
var ticketStates = []string{ticketOpen, ticketClaimed, ticketCancelled, ticketRegistered}

// ticketStatuses are what a ticket may be now.
var ticketStatuses = append(slices.Clone(ticketStates), ticketExpired)

// Tags of a ticket's optional fields.
const (
	ticketLabelled = 1
	ticketClosed   = 2
)

func (x *ticket) fields(c *coder) {
	c.text(&x.Code)
	x.By.fields(c)
	c.instant(&x.CreatedAt)
	c.word(ticketStates, &x.State)
	c.text(&x.ExternalID)
	c.decimal(&x.Total)
	listField(c, &x.Items, (*item).fields)
	c.text(&x.Comment)
	c.instant(&x.OccurredAt)
	c.instant(&x.Expires)
	optionalList(c, ticketLabelled, (*[]label)(&x.Labels), (*label).fields)
	if c.optional(ticketClosed, x.State != ticketOpen) {
		c.instant(&x.ClosedAt)
		x.ClosedBy.fields(c)
		c.idOrNone(&x.Sale)
	}
}

// statusOfTicket is what a ticket is at a moment, given its state and when it expires.
func statusOfTicket(state string, expires, at instant) string {
	if state == ticketOpen && expires <= at {
		return ticketExpired
	}
	return state
}

func (x *ticket) status(at instant) string { return statusOfTicket(x.State, x.Expires, at) }

// ticketLetter begins a ticket's code; ticketSymbols come after it: 50 random bits.
const (
	ticketLetter  = 'T'
	ticketSymbols = 10
)

// ticketLife is for how long after its purchase a ticket is kept: longer than any can be claimed, and
// than events tell of it.
const ticketLife instant = 180 * 24 * 60 * 60 * 1000

func ticketCodeKey(code string) key { return newKey('Y').byte('t').text(code) }

// A ticketsTxn is tickets in a transaction.
type ticketsTxn struct{ t *txn }

func (ti *ticketsTxn) key(u id) key { return orgKey('G', ti.t.org).byte('k').id(u) }

func (ti *ticketsTxn) externalKey(externalID string) key {
	h := sha256.Sum256([]byte(externalID))
	return append(orgKey('G', ti.t.org).byte('e'), h[:16]...)
}

func (ti *ticketsTxn) timesKey() key { return orgKey('G', ti.t.org).byte('o') }

// mark is the entry of a ticket among those by when they happened.
func (ti *ticketsTxn) mark(x *ticket) (k key, value []byte) {
	state := byte(slices.Index(ticketStates, x.State))
	return ti.timesKey().instant(x.OccurredAt).id(x.ID), key{state}.instant(x.Expires)
}

// save stores a ticket, and its mark.
func (ti *ticketsTxn) save(x *ticket) error {
	k, value := ti.mark(x)
	if err := ti.t.Put(k, value); err != nil {
		return err
	}
	return ti.t.put(ti.key(x.ID), x)
}

// get reads a ticket; ticket_not_found if there is none.
func (ti *ticketsTxn) get(u id) (*ticket, error) {
	x, err := get[ticket](ti.t.Tx, ti.key(u))
	if err == nil && x == nil {
		err = newError(codeTicketNotFound)
	}
	if err != nil {
		return nil, err
	}
	x.ID = u
	return x, nil
}

// called returns the ticket with an externalId; nil if there is none.
func (ti *ticketsTxn) called(externalID string) (*ticket, error) {
	k := ti.externalKey(externalID)
	value, ok, err := ti.t.Get(k)
	if err != nil || !ok {
		return nil, err
	}
	if len(value) != 16 {
		return nil, unreadable(k)
	}
	return ti.get(id(value))
}

// coded returns the organization's ticket with a code; ticket_not_found if there is none.
func (ti *ticketsTxn) coded(code string) (*ticket, error) {
	org, u, err := ticketByCode(ti.t.Tx, code)
	if err == nil && org != ti.t.org {
		err = newError(codeTicketNotFound)
	}
	if err != nil {
		return nil, err
	}
	return ti.get(u)
}

// ofClaims returns the tickets of claimed sales, by sale. One whose error skip takes is left out.
func (ti *ticketsTxn) ofClaims(claims []*sale, skip func(error) bool) (map[id]*ticket, error) {
	warm(ti.t.Tx, claims, func(s *sale) key { return ti.externalKey(s.ExternalID) })
	all := map[id]*ticket{}
	var turn pacer
	for _, s := range claims {
		x, err := ti.called(s.ExternalID)
		if err != nil && !skip(err) {
			return nil, err
		}
		if err == nil && x != nil && x.Sale == s.ID {
			all[s.ID] = x
		}
		turn.pause()
	}
	return all, nil
}

// isTicketCode reports whether a text is a code of a ticket, be it one that nobody has.
func isTicketCode(text string) bool {
	return membercode.IsRandom(membercode.Plain(text), ticketLetter, ticketSymbols)
}

// ticketByCode finds the ticket of a code, and whose it is: organization 0 if there is none.
func ticketByCode(tx Tx, code string) (org uint32, u id, err error) {
	if !isTicketCode(code) {
		return 0, u, nil
	}
	k := ticketCodeKey(membercode.Plain(code))
	value, ok, err := tx.Get(k)
	if err != nil || !ok {
		return 0, u, err
	}
	if len(value) != 4+16 {
		return 0, u, unreadable(k)
	}
	return uint32In(value), id(value[4:]), nil
}

// A newTicket is what a caller says about a ticket.
type newTicket struct {
	ExternalID string
	Total      decimal
	Items      []item
	Labels     saleLabels
	Comment    string
	OccurredAt instant // 0: now
}

// make keeps a ticket, or returns the known one that is sent again.
func (ti *ticketsTxn) make(in newTicket) (x *ticket, known bool, err error) {
	if err := ti.mustBeServed(); err != nil {
		return nil, false, err
	}
	if x, err = ti.called(in.ExternalID); err != nil || x != nil {
		if err == nil && !x.isSame(in) {
			err = newError(codeExternalIDConflict).on("externalId").with("ticketId", x.ID)
		}
		return x, true, err
	}
	if err := ti.t.sales.checkOccurred(in.OccurredAt); err != nil {
		return nil, false, err
	}
	x = &ticket{
		ID: ti.t.id(), By: ti.t.by, State: ticketOpen, ExternalID: in.ExternalID, Total: in.Total,
		Items: in.Items, Labels: in.Labels, Comment: in.Comment, OccurredAt: ti.t.now,
	}
	if in.OccurredAt != 0 {
		x.OccurredAt = min(in.OccurredAt, ti.t.now)
	}
	x.Expires = ti.expiryOf(x)
	if err := ti.mustBeClaimable(x); err != nil {
		return nil, false, err
	}
	if err := ti.begin(x); err != nil {
		return nil, false, err
	}
	if x.Code, err = ti.newCode(x.ID); err != nil {
		return nil, false, err
	}
	if err := ti.t.Put(ticketCodeKey(x.Code), key(nil).u32(ti.t.org).id(x.ID)); err != nil {
		return nil, false, err
	}
	if err := ti.save(x); err != nil {
		return nil, false, err
	}
	return x, false, ti.tell(x, eventTicketCreated)
}

// mustBeServed refuses where the organization has no tickets.
func (ti *ticketsTxn) mustBeServed() error {
	if ti.t.cfg.tickets() == nil {
		return newError(codeTicketsDisabled)
	}
	return nil
}

// isSame reports whether a ticket has the values of in.
func (x *ticket) isSame(in newTicket) bool {
	return x.Total == in.Total && slices.Equal(x.Items, in.Items) && slices.Equal(x.Labels, in.Labels) &&
		(in.OccurredAt == 0 || x.OccurredAt == min(in.OccurredAt, x.CreatedAt))
}

// expiryOf is the end of the last day on which a ticket can be claimed.
func (ti *ticketsTxn) expiryOf(x *ticket) instant {
	return endOfDays(x.OccurredAt, ti.t.cfg.tickets().Days, ti.t.cfg.zone)
}

// begin counts a ticket that is new to the store. The caller saves it.
func (ti *ticketsTxn) begin(x *ticket) error {
	x.CreatedAt = ti.t.now
	n, err := ti.t.count()
	if err != nil {
		return err
	}
	n.Tickets++
	return ti.t.Put(ti.externalKey(x.ExternalID), x.ID[:])
}

// newCode makes a code that no ticket has.
func (ti *ticketsTxn) newCode(u id) (string, error) {
	for try := uint64(0); ; try++ {
		secret := ti.t.secret("ticket "+u.String(), try)
		code := membercode.Random(ticketLetter, secret[:ticketSymbols])
		if _, taken, err := ti.t.Get(ticketCodeKey(code)); err != nil || !taken {
			return code, err
		}
	}
}

// takenBy closes the open ticket of a sale's externalId, if there is one: a purchase is registered in its
// place, and what is brought back is not claimed.
func (ti *ticketsTxn) takenBy(s *sale) error {
	n, err := ti.t.count()
	if err != nil || n.Tickets == 0 || s.Source == sourceClaim || s.Previous != (id{}) {
		return err
	}
	x, err := ti.called(s.ExternalID)
	if err != nil || x == nil || x.State != ticketOpen {
		return err
	}
	if s.Type == typeReturn {
		return ti.end(x, ticketCancelled, eventTicketCancelled)
	}
	x.close(ticketRegistered, ti.t)
	x.Sale = s.ID
	return ti.save(x)
}

func (x *ticket) close(state string, t *txn) { x.State, x.ClosedAt, x.ClosedBy = state, t.now, t.by }

// tell tells of a ticket.
func (ti *ticketsTxn) tell(x *ticket, kind eventKind) error { return ti.t.feed.emitOf(kind, x.ID) }

// Lists of tickets.

// A ticketFilter chooses tickets.
type ticketFilter struct {
	status     string // "": any
	externalID string // "": any
	from, to   instant
}

// list returns a page of the tickets that a filter keeps, by when they happened, newest first, and how
// many there are.
func (ti *ticketsTxn) list(f ticketFilter, p page) (list []*ticket, total uint64, err error) {
	if f.externalID != "" {
		x, err := ti.called(f.externalID)
		if err != nil || x == nil || x.OccurredAt < f.from || x.OccurredAt > f.to || f.status != "" && x.status(ti.t.now) != f.status {
			return nil, 0, err
		}
		if p.skip() == 0 {
			list = append(list, x)
		}
		return list, 1, nil
	}
	n, err := ti.t.count()
	if err != nil {
		return nil, 0, err
	}
	var shown []id
	all := f == ticketFilter{to: never}
	err = ti.each(f.from, f.to, func(_ instant, u id, status string) bool {
		if f.status != "" && status != f.status {
			return true
		}
		if total++; total > p.skip() && uint64(len(shown)) < p.limit {
			shown = append(shown, u)
		}
		return !all || uint64(len(shown)) < p.limit
	})
	if all {
		total = n.Tickets
	}
	warm(ti.t.Tx, shown, ti.key)
	for _, u := range shown {
		var x *ticket
		if x, err = ti.get(u); err != nil {
			break
		}
		list = append(list, x)
	}
	return list, total, err
}

// each calls fn for each ticket of a span, newest first, as long as it returns true.
func (ti *ticketsTxn) each(from, to instant, fn func(at instant, u id, status string) bool) error {
	prefix := ti.timesKey()
	for e, err := range ti.t.Scan(slices.Clone(prefix).instant(from), slices.Clone(prefix).instant(to).after(), true) {
		if err != nil {
			return err
		}
		if !tableTicketTimes.has(e.Key) || len(e.Value) != 1+8 || int(e.Value[0]) >= len(ticketStates) {
			return unreadable(e.Key)
		}
		at, u := instantIn(e.Key[len(prefix):]), id(e.Key[len(prefix)+8:])
		if !fn(at, u, statusOfTicket(ticketStates[e.Value[0]], instantIn(e.Value[1:]), ti.t.now)) {
			break
		}
	}
	return nil
}

// countOpen counts the tickets of the days of statistics that are open now.
func (ti *ticketsTxn) countOpen(s *statistics) error {
	first := max(s.total.from, ti.t.dayOf(ti.t.now)-mostTicketDays-1) // those before are past their day
	place := len(s.periods) - 1
	return ti.each(first.start(ti.t.cfg.zone), s.total.to.end(ti.t.cfg.zone), func(at instant, _ id, status string) bool {
		if status != ticketOpen {
			return true
		}
		for d := dayOf(at, ti.t.cfg.zone); place > 0 && d < s.periods[place].from; {
			place--
		}
		s.periods[place].tickets++
		s.total.tickets++
		return true
	})
}

// dropOld deletes the tickets that are kept no longer, of so many at most. It reports whether there may
// be more.
func (ti *ticketsTxn) dropOld(limit int) (more bool, err error) {
	var old []id
	prefix := ti.timesKey()
	for e, err := range ti.t.Scan(prefix, slices.Clone(prefix).instant(ti.t.now-ticketLife), false) {
		if err != nil {
			return false, err
		}
		if old = append(old, id(e.Key[len(prefix)+8:])); len(old) == limit {
			break
		}
	}
	for _, u := range old {
		x, err := ti.get(u)
		if err == nil {
			err = ti.drop(x)
		}
		if err != nil {
			return false, err
		}
	}
	return len(old) == limit, nil
}

func (ti *ticketsTxn) drop(x *ticket) error {
	n, err := ti.t.count()
	if err != nil {
		return err
	}
	n.Tickets--
	n.TicketsDropped = max(n.TicketsDropped, x.OccurredAt+1)
	mark, _ := ti.mark(x)
	keys := []key{ti.key(x.ID), ti.externalKey(x.ExternalID), mark}
	if x.Code != "" {
		keys = append(keys, ticketCodeKey(x.Code))
	}
	for _, k := range keys {
		if err := ti.t.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// forget takes out of a ticket what the sale that took its place loses at an erasure.
func (ti *ticketsTxn) forget(s *sale) error {
	n, err := ti.t.count()
	if err != nil || n.Tickets == 0 || s.ExternalID == "" {
		return err
	}
	x, err := ti.called(s.ExternalID)
	if err != nil || x == nil || x.Sale != s.ID || x.Comment == "" && len(x.Labels) == 0 {
		return err
	}
	x.Comment, x.Labels = "", nil
	return ti.save(x)
}
