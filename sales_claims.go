package main

import (
	"fmt"
	"strings"
)

// A claim makes a ticket a sale of a customer, once. The sale is as of the ticket's moment, as one that
// comes late (sales_late.go), but may be as old as tickets may, not as sales that come late.

// claimPath is what the path of a ticket's page begins with.
const claimPath = "/c/"

// find returns the ticket that a text is: one that is kept, by its code, or a signed one, which the store
// may not have seen; then it has no id.
func (ti *ticketsTxn) find(text string) (*ticket, error) {
	if err := ti.mustBeServed(); err != nil {
		return nil, err
	}
	if i := strings.LastIndex(text, claimPath); i >= 0 { // a scanner reads the whole address
		text = text[i+len(claimPath):]
	}
	if signed, ok := readSigned(trimBlanks(text)); ok {
		return ti.signed(signed)
	}
	if isTicketCode(text) {
		return ti.coded(text)
	}
	return nil, newError(codeTicketInvalid).on("ticket")
}

// A ticketClaim is who is to get the points of a ticket.
type ticketClaim struct {
	Ticket   string // its code, or the signed text
	Customer id
}

// claim registers the purchase of a ticket for a customer, or returns the sale that the same customer
// claimed before.
func (ti *ticketsTxn) claim(in ticketClaim) (s *sale, c *customer, known bool, err error) {
	if err := ti.mustBeServed(); err != nil {
		return nil, nil, false, err
	}
	if c, err = ti.t.customers.get(in.Customer); err != nil {
		return nil, nil, false, err
	}
	x, err := ti.find(in.Ticket)
	if err != nil {
		return nil, nil, false, err
	}
	if s, err = ti.claimedBy(x, c); err != nil || s != nil {
		return s, c, true, err
	}
	if err := ti.mustBeClaimable(x); err != nil {
		return nil, nil, false, err
	}
	if err := ti.mustHaveRoom(c, x); err != nil {
		return nil, nil, false, err
	}
	s, c, err = ti.t.sales.registerOf(c, newSale{
		Customer: c.ID, Type: typePurchase, Source: sourceClaim, Total: x.Total, Items: x.Items, Labels: x.Labels,
		ExternalID: x.ExternalID, Comment: x.Comment, OccurredAt: x.OccurredAt,
	})
	if err != nil {
		return nil, nil, false, err
	}
	x.Sale = s.ID
	return s, c, false, ti.end(x, ticketClaimed, eventTicketClaimed)
}

// claimedBy returns the sale of a ticket that a customer has claimed, if it stands; nil if there is none.
func (ti *ticketsTxn) claimedBy(x *ticket, c *customer) (*sale, error) {
	if x.State != ticketClaimed {
		return nil, nil
	}
	s, err := ti.t.sales.get(x.Sale)
	if err != nil || s.whollyReturned() {
		return nil, err
	}
	if same, err := ti.t.merges.sameOwner(s.Customer, c.ID); err != nil || !same {
		return nil, err
	}
	return s, nil
}

// mustBeClaimable refuses a ticket that is not open, or whose purchase was registered for somebody.
func (ti *ticketsTxn) mustBeClaimable(x *ticket) error {
	switch x.State {
	case ticketClaimed:
		return newError(codeTicketClaimed).with("transactionId", x.Sale)
	case ticketCancelled:
		return newError(codeTicketCancelled)
	case ticketRegistered:
		return newError(codeTicketRegistered).with("transactionId", x.Sale)
	}
	if x.ID == (id{}) {
		if err := ti.mustBeUnsold(x); err != nil {
			return err
		}
	}
	for s, err := range ti.t.sales.purchasesCalled(x.ExternalID) {
		if err != nil {
			return err
		}
		if !s.whollyReturned() || s.RegisteredAt >= x.OccurredAt { // or what was returned would be claimed
			return newError(codeTicketRegistered).with("transactionId", s.ID)
		}
	}
	if x.status(ti.t.now) == ticketExpired {
		return newError(codeTicketExpired)
	}
	return nil
}

// mustHaveRoom refuses one ticket more than a customer may claim of the purchases of a day. Those of
// purchases that were undone do not count.
func (ti *ticketsTxn) mustHaveRoom(c *customer, x *ticket) error {
	family, err := ti.t.merges.family(c)
	if err != nil {
		return err
	}
	zone, limit := ti.t.cfg.zone, ti.t.cfg.tickets().MaxPerCustomerPerDay
	bought, claimed := dayOf(min(x.OccurredAt, ti.t.now), zone), 0 // as of then it becomes a sale
	began := bought.start(zone)
	for _, member := range family {
		for s, err := range ti.t.sales.chainFrom(member.Sales.last()) {
			if err != nil {
				return err
			}
			if s.RegisteredAt < began { // so were those before it
				break
			}
			if s.Source == sourceClaim && s.Type == typePurchase && !s.whollyReturned() && dayOf(s.CreatedAt, zone) == bought {
				claimed++
			}
		}
	}
	if claimed >= limit {
		return errTicketLimit(limit)
	}
	return nil
}

func errTicketLimit(limit int) *apiError {
	e := newError(codeTicketLimitReached).with("limit", limit)
	switch limit {
	case 1:
		e.message = "El cliente ya reclamó un ticket de ese día"
	default:
		e.message = fmt.Sprintf("El cliente ya reclamó %d tickets de ese día", limit)
	}
	return e
}

// A ticketCancel names a ticket by its externalId or by what is claimed with.
type ticketCancel struct{ ExternalID, Ticket string }

// cancel ends a ticket, so that nobody claims it. Cancelling again changes nothing.
func (ti *ticketsTxn) cancel(in ticketCancel) (x *ticket, err error) {
	if in.Ticket != "" {
		x, err = ti.find(in.Ticket)
	} else if err = ti.mustBeServed(); err == nil {
		if x, err = ti.called(in.ExternalID); err == nil && x == nil {
			err = newError(codeTicketNotFound)
		}
	}
	if err != nil || x.State == ticketCancelled {
		return x, err
	}
	if err := ti.mustBeClaimable(x); err != nil {
		return nil, err
	}
	return x, ti.end(x, ticketCancelled, eventTicketCancelled)
}

// end closes a ticket, which the store may not have seen, and tells of it.
func (ti *ticketsTxn) end(x *ticket, state string, kind eventKind) error {
	if x.ID == (id{}) {
		x.ID = ti.t.id()
		if err := ti.begin(x); err != nil {
			return err
		}
	}
	x.close(state, ti.t)
	if err := ti.save(x); err != nil {
		return err
	}
	return ti.tell(x, kind)
}
