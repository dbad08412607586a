package main

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Sales: the list, one sale, and its return.

func saleArea() panelArea {
	members := []formMember{
		{name: "customerId"}, {name: "type", kind: fixedMember, value: typeReturn}, {name: "totalAmount", kind: amountMember},
		{name: "originalTransactionId", kind: pathMember, value: "transactionId"}, {name: "comment"}, saleMembers[len(saleMembers)-1],
		{name: "restoreRedemptions", kind: madeMember, make: restoring},
	}
	return panelArea{[]panelPage{
		{"/panel/ventas", "transactions:read", "sales", salesPage},
		{"/panel/ventas/{transactionId}", "transactions:read", "sale", salePage},
		{"/panel/ventas/{transactionId}/devolucion", "transactions:return", "return", returnPage},
	}, []panelForm{
		{path: "/panel/ventas/{transactionId}/devolucion", need: "transactions:return", from: "/panel/ventas/{transactionId}/devolucion", members: members, labels: "sale",
			handle: registerTransaction, guard: ownSale, prepare: sumReturn, action: "transaction.returned", shows: shownOfReturn, done: afterReturn},
	}}
}

// afterReturn is the page of a return that was registered: at the till for a member who may
// not see all sales.
func afterReturn(v *panelRequest, id string) string {
	if v.mayAll("transactions:read") != nil {
		return afterDone("/panel/caja/" + v.typedText("customerId") + "/venta/" + id)
	}
	return "/panel/ventas/" + id
}

// A salesView is a page of the list.
type salesView struct {
	Search, Type, From, To, ExternalID string
	Sales                              []saleRow
	Pager                              pagerView
	Total                              uint64
	Registered                         bool // they are in another order than that of their dates

	By   string       // who made them: the id of a user or an API key, or importMaker; "": anybody
	Who  []choiceItem // to choose from
	Scan *saleScan    // of a page by who made them
}

// saleParams are what the list is filtered by: parameters of the API's.
var saleParams = []string{"search", "type", "from", "to", "externalId"}

// listSalesByDate is listTransactions in the order of the dates that the page shows.
func listSalesByDate(r *request) action { return r.listSales(true) }

func salesPage(v *panelRequest) (any, fillFunc) {
	view := &salesView{Search: v.param("search"), Type: v.param("type"), From: v.param("from"), To: v.param("to"), ExternalID: v.param("externalId"), By: v.param(byParam)}
	var all action
	if view.By == "" {
		all = v.ask(listSalesByDate, v.params(append(saleParams, "page")...)...)
	} else {
		all = v.ask(listSalesBy, v.params(append(saleParams, byParam, olderParam)...)...)
	}
	return view, func(t *txn) (err error) {
		if err := v.mayAll("transactions:read"); err != nil {
			return err
		}
		if view.Who, err = makerChoices(t); err != nil {
			return err
		}
		view.Who = withChoice(append(view.Who, choiceItem{importMaker, tr(v.lang, "by.Import")}), view.By)
		if view.By != "" {
			if view.Scan, err = resultOf[*saleScan](t, all); err != nil || view.Scan == nil {
				return err
			}
			return view.fill(v, t, view.Scan.rows)
		}
		found, err := resultOf[appendedList[saleShape]](t, all)
		if err != nil {
			return err
		}
		view.Pager, view.Total = v.pager(found.Meta), found.Meta.Total
		return view.fill(v, t, found.Data)
	}
}

func (w *salesView) fill(v *panelRequest, t *txn, list []saleShape) (err error) {
	w.Sales, err = v.saleRows(t, list)
	w.Registered = !slices.IsSortedFunc(list, func(a, b saleShape) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return err
}

// A saleView is one sale.
type saleView struct {
	Sale     saleRow
	Programs map[id]string // names
	Shares   []saleShareView
	Purchase *saleShape // of a return
	Returns  []saleShape
	More     bool // there are other returns
	Return   bool // the member may register a return of it
	Restore  bool // the member may cancel redemptions
	Why      *whyView
}

func salePage(v *panelRequest) (any, fillFunc) {
	view := &saleView{Restore: v.mayAll("redemptions:cancel") == nil}
	sale := v.ask(getTransaction)
	return view, func(t *txn) (err error) {
		if err := v.mayAll("transactions:read"); err != nil {
			return err
		}
		shape, err := resultOf[saleShape](t, sale)
		if err != nil {
			return err
		}
		view.Programs, view.Shares = programNames(t.cfg), sharesOf(t.cfg, &shape)
		view.Sale.saleShape = shape
		return v.linked(t, view)
	}
}

// linked fills in what belongs to a sale: the purchase of a return, the returns of a purchase.
func (v *panelRequest) linked(t *txn, view *saleView) error {
	s, err := t.sales.get(*view.Sale.ID)
	if err != nil {
		return err
	}
	if view.Why, err = v.why(t, s); err != nil {
		return err
	}
	view.Sale.Back = s.back()
	view.Return = s.Type == typePurchase && !s.whollyReturned() && v.may("transactions:return")
	if s.Previous != (id{}) {
		purchase, err := t.sales.get(s.Previous)
		if err != nil {
			return err
		}
		shape, err := newSaleShape(t, purchase)
		view.Purchase = &shape
		return err
	}
	returns, more, err := t.sales.returnsOf(s)
	view.More = more
	for _, each := range returns {
		shape, err := newSaleShape(t, each)
		if err != nil {
			return err
		}
		view.Returns = append(view.Returns, shape)
	}
	return err
}

// A returnView is the form of a return.
type returnView struct {
	Sale     saleShape
	Left     decimal // of its amount
	Lines    []item  // what is left of it, in the order of the form's rows
	Shares   []saleShareView
	Vouchers []saleRedemption // used in it, which the member may give back with it
	Request  *undoRow         // to undo it; nil: there is none
}

func returnPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &returnView{}
	sale := v.ask(getTransaction)
	return view, func(t *txn) (err error) {
		if view.Sale, err = resultOf[saleShape](t, sale); err != nil {
			return err
		}
		if err := v.guarded(t, "transactions:return", ownSale); err != nil {
			return err
		}
		s, err := t.sales.get(*view.Sale.ID)
		if err != nil {
			return err
		}
		view.Left = s.Total - s.Returned
		if view.Request, err = v.undoRequest(t, s.ID); err != nil {
			return err
		}
		for i, it := range s.Items {
			if it.Quantity -= s.Lines[i].Returned; it.Quantity > 0 {
				view.Lines = append(view.Lines, it)
			}
		}
		v.sentFirst(view.Lines)
		if v.mayAll("redemptions:cancel") == nil {
			view.Vouchers = slices.DeleteFunc(view.Sale.UsedIn(), func(x saleRedemption) bool { return x.Status != redemptionUsed })
		}
		if ret, is := v.reviewed.(saleShape); is {
			view.Shares = sharesOf(t.cfg, &ret)
		}
		return nil
	}
}

// sentFirst puts the items that were sent before the others, as the form's rows are numbered.
func (v *panelRequest) sentFirst(lines []item) {
	for n := range lines {
		sku, price := v.typedText(fmt.Sprintf("items[%d].sku", n)), v.typedText(fmt.Sprintf("items[%d].price", n))
		i := slices.IndexFunc(lines[n:], func(it item) bool { return it.SKU == sku && v.format().Number(it.Price) == price })
		if i < 0 {
			return
		}
		sent := lines[n+i]
		copy(lines[n+1:], lines[n:n+i])
		lines[n] = sent
	}
}

// restoring is restoreRedemptions of a return: true if the box is checked.
func restoring(v *panelRequest, name string) string {
	if v.typedText(name) == "" {
		return ""
	}
	if err := v.mayAll("redemptions:cancel"); err != nil {
		v.faults = append(v.faults, publicError(err))
	}
	return "true"
}

// sumReturn sets the amount of a return by item: what its items cost. A quantity that is blank
// or 0 is not returned; one that is no number, or has two readings, is asked back.
func sumReturn(v *panelRequest) {
	sum := new(big.Rat)
	for i := range maxRows {
		from := fmt.Sprintf("items[%d].", i)
		quantity, ok := v.typed(from + "quantity")
		if ok && quantity == 0 { // the row is not returned
			v.drop(from + "sku")
			v.drop(from + "price")
			v.drop(from + "quantity")
			continue
		}
		price, _ := v.typed(from + "price")
		sum.Add(sum, new(big.Rat).Mul(quantity.rat(), price.rat()))
	}
	if exact := new(big.Rat).Mul(sum, big.NewRat(decimalOne, 1)); sum.Sign() > 0 && exact.IsInt() && exact.Num().IsInt64() {
		v.drop("totalAmount")
		v.posted = append(v.posted, pair{"totalAmount", v.format().Number(decimal(exact.Num().Int64()))})
	}
}

// A saleTableView is a table of sales.
type saleTableView struct {
	*pageData
	Sales    []saleRow
	Customer bool // with the customers' names
}

// SaleTable is for the template "sales".
func (f *pageData) SaleTable(list []saleRow, customer bool) saleTableView {
	return saleTableView{f, list, customer}
}

// ShareWords is an amount of each program's points, with its currency.
func (f prose) ShareWords(list []saleShareView, of func(*saleShareView) decimal) string {
	var words []string
	for i := range list {
		if n := of(&list[i]); n != 0 || i == 0 {
			words = append(words, f.format.Points(n, list[i].Currency))
		}
	}
	return strings.Join(words, ", ")
}

// Reversed and Gone are what a return takes back, and what is not there any more; Gone is ""
// if all is.
func (f prose) Reversed(list []saleShareView) string {
	return f.ShareWords(list, func(s *saleShareView) decimal { return s.PointsReversed })
}

func (f prose) Gone(list []saleShareView) string {
	if !slices.ContainsFunc(list, func(s saleShareView) bool { return s.PointsShortfall != 0 }) {
		return ""
	}
	list = slices.DeleteFunc(slices.Clone(list), func(s saleShareView) bool { return s.PointsShortfall == 0 })
	return f.ShareWords(list, func(s *saleShareView) decimal { return s.PointsShortfall })
}

// RestoreBox is the box that gives a purchase's vouchers back with its return.
func (f *pageData) RestoreBox(list []saleRedemption) boxView {
	var names []string
	for _, x := range list {
		names = append(names, x.RewardName)
	}
	const name = "restoreRedemptions"
	return boxView{ID: controlID(name), Name: name, Value: "1", Label: f.T("return.vouchers"), Checked: f.checked(name, false), Hint: f.T("return.vouchers.hint", strings.Join(names, ", "))}
}

// Count says how many sales there are with the page's filter. Of sales by who made them that
// is known only where one page has them all.
func (v *salesView) Count(f *pageData) string {
	switch {
	case v.Scan != nil && !v.Scan.whole():
		return f.T("sales.by.some")
	case v.Scan != nil:
		return f.T("list.found", f.Int(len(v.Sales)))
	case v.Search+v.Type+v.From+v.To+v.ExternalID+v.By != "":
		return f.T("list.found", f.Count(v.Total))
	}
	return f.T("list.all", f.Count(v.Total))
}

// PagerText leads to the pages beside this one.
func (v *salesView) PagerText(f *pageData) pagerText {
	if v.Scan == nil {
		return f.Pager(v.Pager)
	}
	p := pagerText{pagerView{Pages: 2}, f.T("pages"), f.T("sales.by.newest"), f.T("sales.by.older"), ""}
	if v.Scan.whole() {
		p.Pages = 1
	}
	if v.Scan.begun {
		p.Previous = f.request.withOlder(0)
	}
	if v.Scan.older > 0 {
		p.Next = f.request.withOlder(v.Scan.older)
	}
	if v.Scan.cut {
		p.Text = f.T("sales.by.cut", f.Count(v.Scan.looked), f.DayAndYear(dayOf(v.Scan.last, f.zone)))
	}
	return p
}

// None says why the page has no sale.
func (v *salesView) None(f *pageData) string {
	switch {
	case v.Scan != nil && v.Scan.cut:
		return f.T("sales.by.none")
	case v.Scan != nil && v.Scan.begun:
		return f.T("sales.by.end")
	case v.Total > 0:
		return f.T("page.none")
	}
	if v.Search+v.Type+v.From+v.To+v.ExternalID+v.By == "" {
		return f.T("sales.empty")
	}
	return f.T("sales.none")
}
