package main

import (
	"strconv"
	"strings"
	"unicode"

	"sello/internal/contact"
	"sello/internal/fold"
)

// The till's one field. What is typed may be a voucher's code, a contact, the customer's
// number in another system, a sale's ticket, or words. A code, a contact or a number that exists
// wins, then a ticket; else the words are looked for. The form of the text decides only what is said of it when nobody
// is found.

// A tillView is the till before a customer is known.
type tillView struct {
	Query          string
	Asked          bool
	One            id     // the customer that was found; zero: none, or several
	Sale           string // the page of the sale whose ticket was found; "": none
	Hits           []tillHit
	All            uint64 // how many the search found; Hits is a page of them
	Previous, Next string // the pages beside this one
	List           string // the same search in the customers' list; "": the member may not see it
	TooShort       bool   // the text, for a search
	Enrol          string // where the one who was not found is enrolled; "" if that makes no sense
	Wrong          string // the text that says why enrolment will not take what was typed
	Digits         int    // of a phone that is not valid
	Mine           []doneItem
}

// A tillHit is a customer that a search found. A cashier sees contacts masked.
type tillHit struct {
	ID      id
	Name    string
	Contact string
	Tier    *string
}

// leastSearch is how many letters and digits a search takes at the till, and manyHits how
// many customers it shows at a time: nobody copies the customers there (roles.go).
const (
	leastSearch = 4
	manyHits    = "5"
)

// A typedContact is what a text is as a contact.
type typedContact struct {
	email, phone string // as they are stored; "": it is none
	kind         string // what it was meant to be: "email", "phone" or ""
	digits       int
}

func readContact(text, country string) (c typedContact) {
	for _, r := range text {
		if unicode.IsDigit(r) {
			c.digits++
		}
	}
	c.email, _ = contact.Email(text)
	if strings.Contains(text, "@") {
		c.kind = "email"
		return c
	}
	if phone, ok := contact.Phone(text, country); ok {
		c.phone = phone
	}
	if !strings.ContainsFunc(text, unicode.IsLetter) && c.digits >= phoneLength {
		c.kind = "phone"
	}
	return c
}

// isWhole reports whether the text is a contact that enrolment takes.
func (c *typedContact) isWhole() bool {
	return c.kind == "email" && c.email != "" || c.kind == "phone" && c.phone != ""
}

// find looks for the customer that was typed: by e-mail, phone or externalId, else by words. A
// whole contact is never taken for somebody else's that merely contains it.
func (v *panelRequest) find(view *tillView) fillFunc {
	if !view.Asked {
		return func(*txn) error { return nil }
	}
	typed := readContact(view.Query, v.cfg.Organization.Profile.Country)
	some := func(*txn) (any, error) { return nil, nil }
	if view.TooShort = lettersIn(view.Query) < leastSearch; !view.TooShort {
		some = v.ask(listCustomers, append(v.params("page"), pair{"search", view.Query}, pair{"status", statusActive}, pair{"limit", manyHits})...)
	}
	return func(t *txn) error {
		one, err := customerByExact(t, view.Query, &typed)
		if err != nil {
			return err
		}
		if one != nil {
			view.One = one.ID
			return nil
		}
		if view.Sale, err = v.tillTicket(t, view.Query); err != nil || view.Sale != "" {
			return err
		}
		if err := v.searched(t, view, some); err != nil {
			return err
		}
		if view.All == 1 && len(view.Hits) == 1 && !typed.isWhole() {
			view.One = view.Hits[0].ID
		}
		switch {
		case typed.isWhole():
			view.Enrol = withQuery(enrolPath, []pair{{typed.kind, view.Query}})
		case typed.kind != "":
			view.Wrong, view.Digits = "till.wrong."+typed.kind, typed.digits
		}
		return nil
	}
}

const enrolPath = "/panel/caja/alta"

// customerByExact finds the customer with a contact or an externalId; nil: there is none. Letters may
// spell a phone, but more likely a number in another system.
func customerByExact(t *txn, text string, typed *typedContact) (*customer, error) {
	tries := []func() (*customer, error){
		func() (*customer, error) { return t.customers.identify(kindEmail, typed.email) },
		func() (*customer, error) { return t.customers.identify(kindPhone, typed.phone) },
		func() (*customer, error) { return t.customers.identifyExternal(text) },
	}
	if typed.kind == "" {
		tries[1], tries[2] = tries[2], tries[1]
	}
	for _, try := range tries {
		if c, err := try(); err != nil || c != nil {
			return c, err
		}
	}
	return nil, nil
}

// searched fills in a page of the customers that the search found, and where the others are.
func (v *panelRequest) searched(t *txn, view *tillView, search action) error {
	found, err := resultOf[appendedList[customerItem]](t, search)
	if err != nil {
		return err
	}
	view.All = found.Meta.Total
	if view.Hits, err = v.tillHits(t, found.Data); err != nil {
		return err
	}
	at := func(n uint64) string {
		return withQuery("/panel/caja", []pair{{"q", view.Query}, {"page", strconv.FormatUint(n, 10)}})
	}
	if found.Meta.HasPreviousPage {
		view.Previous = at(found.Meta.CurrentPage - 1)
	}
	if found.Meta.HasNextPage {
		view.Next = at(found.Meta.CurrentPage + 1)
	}
	if v.sees("customers:read", false) {
		view.List = withQuery("/panel/clientes", []pair{{"search", view.Query}, {"status", statusActive}})
	}
	return err
}

// lettersIn counts the letters and digits of a text, not how they are stored.
func lettersIn(text string) (n int) {
	for _, r := range fold.Text(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// tillHits are customers that a search found.
func (v *panelRequest) tillHits(t *txn, found []customerItem) (hits []tillHit, err error) {
	for _, c := range found {
		d, err := t.customers.get(c.ID)
		if err != nil {
			return nil, err
		}
		hits = append(hits, tillHit{c.ID, c.Name, v.contact(d), c.TierName})
	}
	return hits, nil
}

// tillCode is the page of the redemption that a text is the code of; "" if there is none.
func tillCode(t *txn, text string) (string, error) {
	x, err := t.rewards.redemptionCalled(text)
	if err != nil || x == nil {
		return "", err
	}
	owner, err := t.merges.ownerID(x.Customer)
	return "/panel/caja/" + owner.String() + "/canje/" + x.ID.String(), err
}

// tillTicket is the page of the newest purchase that a text is the externalId of, among those that
// the member sees; "" if there is none.
func (v *panelRequest) tillTicket(t *txn, text string) (string, error) {
	for s, err := range t.sales.purchasesCalled(text) {
		if err != nil {
			return "", err
		}
		if !v.seesSale(t, s) {
			continue
		}
		owner, err := t.merges.ownerID(s.Customer)
		return "/panel/caja/" + owner.String() + "/venta/" + s.ID.String(), err
	}
	return "", nil
}

// explainedDays is for how many days the till finds a sale by its ticket, and says why it earned
// what it did, for a member who may not see all sales.
const explainedDays = 30

// seesSale reports whether a sale is one that the till explains to the member.
func (v *panelRequest) seesSale(t *txn, s *sale) bool {
	return v.mayAll("transactions:read") == nil || t.dayOf(s.CreatedAt) > t.dayOf(t.now)-explainedDays
}
