package main

import "strings"

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

// manyDone is how many of them the till shows.
const manyDone = "10"

// doneToday are the latest of what the member did today.
func (v *panelRequest) doneToday(done *[]doneItem) fillFunc {
	mine := v.ask(listAudit, pair{"actor", v.member.user.ID.String()}, pair{"kind", auditKindChange}, pair{"limit", manyDone}, pair{"from", dayOf(v.request.now, v.cfg.zone).String()})
	return func(t *txn) error {
		list, err := resultOf[listShape[auditShape]](t, mine)
		if err != nil {
			return err
		}
		for _, e := range list.Data {
			if e.Subject == nil || !v.lang.has("done."+e.Action) {
				continue
			}
			item, err := newDoneItem(t, e.Action, *e.Subject)
			if err != nil {
				return err
			}
			item.At, item.Text = e.At, "done."+e.Action
			*done = append(*done, item)
		}
		return nil
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

var tillTodayTexts = panelTexts{
	"till.mine":                 {"Lo que hiciste hoy", "What you did today"},
	"till.mine.none":            {"Todavía nada.", "Nothing yet."},
	"till.returned.whole":       {"Devuelta", "Returned"},
	"till.returned.part":        {"Devuelta en parte", "Returned in part"},
	"done.transaction.created":  {"Venta", "Sale"},
	"done.transaction.returned": {"Devolución", "Return"},
	"done.redemption.created":   {"Canje", "Redemption"},
	"done.redemption.used":      {"Vale usado", "Voucher used"},
	"done.redemption.cancelled": {"Canje cancelado", "Redemption cancelled"},
	"done.customer.created":     {"Cliente nuevo", "New customer"},
}
