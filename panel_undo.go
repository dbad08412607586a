package main

import (
	"cmp"
	"slices"
)

// Who may undo a sale or a redemption made at the till. A member who may not, asks: whoever may
// undo it answers on the home page.

func undoArea() panelArea {
	const till = "/panel/caja/{customerId}"
	asking := []formMember{{name: "reason"}}
	asked := func(place, name string) func(*panelRequest, string) string {
		return func(v *panelRequest, _ string) string {
			return "/panel/caja/" + v.r.PathValue("customerId") + place + v.r.PathValue(name)
		}
	}
	home := func(*panelRequest, string) string { return "/panel" }
	return panelArea{forms: []panelForm{
		{path: till + "/venta/{transactionId}/pedir", need: "till", from: till + "/venta/{transactionId}", members: asking, labels: "undo", handle: askToUndo(false), forms: true, done: asked("/venta/", "transactionId")},
		{path: till + "/canje/{redemptionId}/pedir", need: "till", from: till + "/canje/{redemptionId}", members: asking, labels: "undo", handle: askToUndo(true), forms: true, done: asked("/canje/", "redemptionId")},
		{path: "/panel/ventas/{transactionId}/no-deshacer", need: "transactions:return", from: "/panel", guard: noUndoer("transactions:return"), handle: declineUndo(false), done: home},
		{path: "/panel/canjes/{redemptionId}/no-deshacer", need: "redemptions:cancel", from: "/panel", guard: noUndoer("redemptions:cancel"), handle: declineUndo(true), done: home},
	}}
}

// noUndoer is the guard of declining a request: only who may undo what others did may decline.
func noUndoer(need permission) func(*panelRequest, *txn) error {
	return func(v *panelRequest, _ *txn) error { return v.member.mayAll(need) }
}

// An undoRequestShape says what a request is about.
type undoRequestShape struct {
	ID id `json:"id"`
}

// undoName is the name in a form's path of what is to be undone.
func undoName(redemption bool) string {
	if redemption {
		return "redemptionId"
	}
	return "transactionId"
}

// undoNeeds is the permission to undo.
func undoNeeds(redemption bool) permission {
	if redemption {
		return "redemptions:cancel"
	}
	return "transactions:return"
}

func askToUndo(redemption bool) func(*request) action {
	return func(r *request) action {
		u, cust := r.pathID(undoName(redemption)), r.pathID("customerId")
		reason, _ := r.fields.text("reason", maxUndoReason)
		return func(t *txn) (any, error) {
			may, err := t.rewards.mayAskToUndo(t.by.ID, u, redemption)
			if err != nil {
				return nil, err
			}
			if !may {
				return nil, newError(codePermissionRequired).with("permission", string(undoNeeds(redemption)))
			}
			return undoRequestShape{u}, t.rewards.askToUndo(u, redemption, cust, reason)
		}
	}
}

func declineUndo(redemption bool) func(*request) action {
	return func(r *request) action {
		u := r.pathID(undoName(redemption))
		return func(t *txn) (any, error) { return undoRequestShape{u}, t.rewards.declineUndo(u, redemption) }
	}
}

// undoer reports whether the member may undo what a page shows; else it names who may.
func (v *panelRequest) undoer(t *txn, need permission, guard func(*panelRequest, *txn) error) (may bool, names []string, err error) {
	if v.member.role.may(need) != grantNone && v.guarded(t, need, guard) == nil {
		return true, nil, nil
	}
	team, err := t.people.team()
	slices.SortStableFunc(team, func(a, b *teammate) int { // the nearest first
		return cmp.Compare(slices.Index(roles, b.membership.Role), slices.Index(roles, a.membership.Role))
	})
	for _, m := range team {
		if m.active() && m.membership.Role.may(need) == grantAll && len(names) < manyAskable {
			names = append(names, m.user.Name)
		}
	}
	return false, names, err
}

// manyAskable is how many people the till names who may undo something.
const manyAskable = 5

// undoTime is for how long a cashier may cancel a redemption, in milliseconds.
const undoTime = 10 * 60 * 1000

// ownSale is what a role with transactions:return in part may undo: the member's own sales of
// today, if the organization allows that.
func ownSale(v *panelRequest, t *txn) error {
	s, err := t.sales.get(pathIDOf(v.r, "transactionId"))
	if err != nil {
		return err
	}
	if t.cfg.Organization.Settings.CashierReturns && s.By.Type == byUser && s.By.ID == v.member.user.ID && t.dayOf(s.RegisteredAt) == t.dayOf(t.now) {
		return nil
	}
	return newError(codePermissionRequired).with("permission", "transactions:return")
}

// ownRedemption is what a role with redemptions:cancel in part may cancel: the member's own
// of the last undoTime.
func ownRedemption(v *panelRequest, t *txn) error {
	x, err := t.rewards.redemption(pathIDOf(v.r, "redemptionId"))
	if err != nil {
		return err
	}
	if x.By.Type == byUser && x.By.ID == v.member.user.ID && t.now-x.CreatedAt <= undoTime {
		return nil
	}
	return newError(codePermissionRequired).with("permission", "redemptions:cancel")
}

// An undoView is what the till says to a member who may not undo what the page shows.
type undoView struct {
	Askable []string // who may
	Path    string   // where the member asks them to; "": nowhere
	Asked   instant  // when that was done; 0: it was not
}

// undoing fills in whether the member may undo the subject of a page, or else whom to ask.
func (view *undoView) undoing(v *panelRequest, t *txn, subject id, redemption bool) (may bool, err error) {
	guard, place := ownSale, "/venta/"
	if redemption {
		guard, place = ownRedemption, "/canje/"
	}
	if may, view.Askable, err = v.undoer(t, undoNeeds(redemption), guard); err != nil || may {
		return may, err
	}
	r, err := t.rewards.openUndoRequest(subject)
	if err != nil {
		return false, err
	}
	if r != nil {
		view.Asked = r.At
		return false, nil
	}
	ask, err := t.rewards.mayAskToUndo(v.member.user.ID, subject, redemption)
	if ask {
		view.Path = "/panel/caja/" + v.r.PathValue("customerId") + place + subject.String() + "/pedir"
	}
	return false, err
}

// An undoRow is a request on the home page.
type undoRow struct {
	At       instant
	By       *createdBy
	Customer string
	Amount   decimal // what is left of the purchase
	Reward   string  // of a redemption; "": it is a purchase
	Points   decimal // that the redemption took
	Unit     currencyName
	Reason   string
	See      string // the path of the form that undoes it
	Decline  string // and of the one that declines
}

// undoRows are the requests that the member can answer, the oldest first.
func undoRows(v *panelRequest, t *txn) (rows []undoRow, err error) {
	list, err := t.sales.undoSubjects()
	if err != nil {
		return nil, err
	}
	rows, err = lines(v, list, func(u id) (row undoRow, err error) {
		r, err := t.sales.undoRequest(u)
		if err != nil || v.member.mayAll(undoNeeds(r.Redemption)) != nil {
			return row, err
		}
		return newUndoRow(t, r)
	})
	rows = slices.DeleteFunc(rows, func(row undoRow) bool { return row.See == "" })
	slices.SortStableFunc(rows, func(a, b undoRow) int { return cmp.Compare(a.At, b.At) })
	return rows, err
}

// undoRowOf is the request about what a page shows; nil if there is none, or the member cannot answer it.
func undoRowOf(t *txn, m *member, subject id) (*undoRow, error) {
	r, err := t.rewards.openUndoRequest(subject)
	if err != nil || r == nil || m.mayAll(undoNeeds(r.Redemption)) != nil {
		return nil, err
	}
	row, err := newUndoRow(t, r)
	return &row, err
}

// newUndoRow is the row of a request; without See if it no longer stands.
func newUndoRow(t *txn, r *undoRequest) (row undoRow, err error) {
	s, err := t.rewards.undoSubject(r.Subject, r.Redemption)
	if err != nil || !r.stands(s.open, t.now) {
		return row, err
	}
	row = undoRow{At: r.At, Reason: r.Reason}
	if row.By, err = newCreatedBy(t, r.By); err != nil {
		return row, err
	}
	c, err := t.merges.owner(r.Customer)
	if err != nil {
		return row, err
	}
	row.Customer = c.name()
	at := "/panel/ventas/" + r.Subject.String()
	if !r.Redemption {
		purchase, err := t.sales.get(r.Subject)
		if err != nil {
			return row, err
		}
		row.Amount, row.See, row.Decline = purchase.Total-purchase.Returned, at+"/devolucion", at+"/no-deshacer"
		return row, nil
	}
	x, err := t.rewards.redemption(r.Subject)
	if err != nil {
		return row, err
	}
	at = "/panel/canjes/" + r.Subject.String()
	row.Reward, row.Points, row.Unit = x.RewardName, x.Points, t.cfg.programNumber(x.Program).Currency
	row.See, row.Decline = at, at+"/no-deshacer"
	return row, nil
}
