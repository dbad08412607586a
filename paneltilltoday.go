package main

import (
	"slices"
	"strings"
)

// What the member did at the till today.

// A doneItem is what the member did at the till.
type doneItem struct {
	At       instant
	Text     string // the name of its text
	Path     string
	Customer string
	Amount   decimal // of a sale; 0: it is none
	Reward   string
	State    string // the name of the text that says what became of it; "": it stands
}

// manyDone is how many of them the till shows, of the latest manyLooked changes that the member made.
const (
	manyDone   = 10
	manyLooked = "100"
)

// tillDone are the texts of the audit log's actions that are done at the till.
var tillDone = map[string]string{
	"transaction.created": "till.did.sold", "transaction.returned": "till.did.returned", "customer.created": "till.did.enrolled",
	"redemption.created": "till.did.redeemed", "redemption.used": "till.did.used", auditRedemptionCancelled: "till.did.cancelled",
}

// doneToday are the latest of what the member did today.
func (v *panelRequest) doneToday(done *[]doneItem) fillFunc {
	mine := v.ask(listAudit, pair{"actor", v.member.user.ID.String()}, pair{"kind", auditKindChange}, pair{"limit", manyLooked}, pair{"from", dayOf(v.request.now, v.cfg.zone).String()})
	return func(t *txn) error {
		list, err := resultOf[listShape[auditShape]](t, mine)
		if err != nil {
			return err
		}
		here := slices.DeleteFunc(list.Data, func(e auditShape) bool { return e.Subject == nil || tillDone[e.Action] == "" })
		*done, err = lines(v, here[:min(len(here), manyDone)], func(e auditShape) (doneItem, error) {
			item, err := newDoneItem(t, e.Action, *e.Subject)
			item.At, item.Text = e.At, tillDone[e.Action]
			return item, err
		})
		return err
	}
}

// newDoneItem is what was done to a subject at the till, and what became of it since.
func newDoneItem(t *txn, action, subject string) (item doneItem, err error) {
	u, _ := parseID(subject)
	of, _, _ := strings.Cut(action, ".")
	cust, rest := u, ""
	switch of {
	case "transaction":
		s, err := t.sales.get(u)
		if err != nil {
			return item, err
		}
		cust, rest = s.Customer, "/venta/"+subject
		item.Amount, item.State = s.Total, s.tillState()
	case "redemption":
		x, err := t.rewards.redemption(u)
		if err != nil {
			return item, err
		}
		cust, rest = x.Customer, "/canje/"+subject
		if item.Reward = x.RewardName; x.status(t.now) != redemptionCompleted {
			item.State = "redemption." + x.status(t.now)
		}
	}
	c, err := t.merges.owner(cust)
	if err != nil {
		return item, err
	}
	item.Customer, item.Path = c.name(), "/panel/caja/"+c.ID.String()+rest
	return item, nil
}

// tillState is the name of the text that says how much of a purchase came back; "": nothing.
func (s *sale) tillState() string {
	switch {
	case s.Type != typePurchase || s.Returned == 0 && !s.whollyReturned():
		return ""
	case s.whollyReturned():
		return "till.returned.whole"
	}
	return "till.returned.part"
}
