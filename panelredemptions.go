package main

import "strings"

// Redemptions: the list, and one of them.

func redemptionArea() panelArea {
	const one = "/panel/canjes/{redemptionId}"
	back := func(v *panelRequest, _ string) string {
		return afterDone("/panel/canjes/" + v.r.PathValue("redemptionId"))
	}
	return panelArea{[]panelPage{
		{"/panel/canjes", "rewards:read", "redemptions", redemptionsPage},
		{"/panel/canjes/{redemptionId}", "rewards:read", "redemption", redemptionPage},
	}, []panelForm{
		{path: one + "/uso", need: "rewards:write", from: one, members: []formMember{{name: "code"}}, handle: ofPath(useRedemption), action: "redemption.used", done: back},
		{path: one + "/cancelar", need: "redemptions:cancel", from: one, guard: ownRedemption, handle: ofPath(cancelRedemption), done: back},
	}}
}

// A redemptionsView is a page of the list.
type redemptionsView struct {
	Code, Status, From, To string
	Rows                   []redemptionRow
	Pager                  pagerView
	Total                  uint64
	Search                 bool // only by code
}

// A redemptionRow is a redemption in the list.
type redemptionRow struct {
	redemptionShape
	Customer string
}

// redemptionsPage lists the redemptions. Who may not see all customers finds one by its code.
func redemptionsPage(v *panelRequest) (any, fillFunc) {
	view := &redemptionsView{Code: strings.ToUpper(trimBlanks(v.param("code"))), Status: v.param("status"), From: v.param("from"), To: v.param("to"), Search: v.mayAll("customers:read") != nil}
	all := v.ask(listRedemptions, append([]pair{{"code", view.Code}}, v.params("status", "from", "to", "page")...)...)
	return view, func(t *txn) error {
		if view.Search && view.Code == "" {
			return nil
		}
		found, err := resultOf[listShape[redemptionShape]](t, all)
		if err != nil {
			return err
		}
		for _, x := range found.Data {
			row := redemptionRow{redemptionShape: x}
			if row.Customer, err = customerName(t, x.CustomerID); err != nil {
				return err
			}
			view.Rows = append(view.Rows, row)
		}
		view.Pager, view.Total = v.pager(found.Meta), found.Meta.Total
		return nil
	}
}

// customerName is the name of a customer, or of the one that it became part of.
func customerName(t *txn, cust id) (string, error) {
	c, err := t.merges.owner(cust)
	if err != nil {
		return "", err
	}
	return c.name(), nil
}

// A redemptionView is one redemption.
type redemptionView struct {
	Redemption redemptionShape
	Customer   string
	Currency   currencyName
	Fresh      bool     // the form that led here has just done it
	Use        bool     // the member may use it now
	Cancel     bool     // or cancel it
	Request    *undoRow // to do so; nil: there is none
}

func redemptionPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &redemptionView{}
	one := v.ask(getRedemption)
	return view, func(t *txn) (err error) {
		if view.Redemption, err = resultOf[redemptionShape](t, one); err != nil {
			return err
		}
		x, err := t.rewards.redemption(view.Redemption.ID)
		if err != nil {
			return err
		}
		view.Currency = t.cfg.programNumber(x.Program).Currency
		if view.Customer, err = customerName(t, x.Customer); err != nil {
			return err
		}
		view.Fresh = v.justDone(view.Redemption.lastAt())
		view.Use = view.Redemption.Status == redemptionIssued && v.may("rewards:write")
		if view.Request, err = v.undoRequest(t, x.ID); err != nil {
			return err
		}
		cancellable, err := t.rewards.cancellable(x)
		if err != nil {
			return err
		}
		view.Cancel = cancellable && v.may("redemptions:cancel") && v.guarded(t, "redemptions:cancel", ownRedemption) == nil
		return nil
	}
}

// EffectWords say what a till takes off.
func (w *redemptionView) EffectWords(f *pageData) string {
	e := w.Redemption.Effect
	switch {
	case e == nil:
		return f.T("none")
	case e.Type == effectAmount:
		return f.MoneyWithCode(e.Amount)
	case e.Type == effectPercent:
		return f.Number(e.Percent) + "%"
	}
	return e.SKU
}

// Tag is the class of the redemption's status.
func (x redemptionShape) Tag() string {
	switch x.Status {
	case redemptionIssued:
		return "tag good"
	case redemptionCancelled, redemptionExpired:
		return "tag warn"
	}
	return "tag"
}
