package main

import (
	"cmp"
	"fmt"
	"html/template"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Sales: their list, one of them, returns, and the sales that one maker registered. Tickets.

func saleArea() panelArea {
	members := []formMember{
		{name: "customerId"}, {name: "type", kind: fixedMember, value: typeReturn}, {name: "totalAmount", kind: amountMember},
		{name: "originalTransactionId", kind: pathMember, value: "transactionId"}, {name: "comment"}, saleMembers[len(saleMembers)-1],
		{name: "restoreRedemptions", kind: madeMember, make: restoring},
	}
	return panelArea{[]panelPage{
		{"/panel/ventas", "transactions:read", "sales", salesPage},
		{"/panel/ventas/{transactionId}", "transactions:read", "sale", salePage},
		{"/panel/ventas/{transactionId}/devolucion", "transactions:return", "return", withForms(returnPage)},
	}, []panelForm{
		{path: "/panel/ventas/{transactionId}/devolucion", need: "transactions:return", from: "/panel/ventas/{transactionId}/devolucion", members: members, labels: "sale",
			handle: registerTransaction, guard: ownSale, prepare: sumReturn, action: "transaction.returned", shows: shownOfReturn, done: afterReturn},
	}}
}

// afterReturn is the page of a return that was registered: at the till for a member who may
// not see all sales.
func afterReturn(v *panelRequest, id string) string {
	if v.member.mayAll("transactions:read") != nil {
		return afterDone("/panel/caja/" + v.typedText("customerId") + "/venta/" + id)
	}
	return "/panel/ventas/" + id
}

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
		if err := v.member.mayAll("transactions:read"); err != nil {
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
		view.Pager, view.Total = pager(v, found.Meta), found.Meta.Total
		return view.fill(v, t, found.Data)
	}
}

func (w *salesView) fill(v *panelRequest, t *txn, list []saleShape) (err error) {
	w.Sales, err = saleRows(t, v.format(), list)
	w.Registered = !slices.IsSortedFunc(list, func(a, b saleShape) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return err
}

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
	view := &saleView{Restore: v.member.mayAll("redemptions:cancel") == nil}
	sale := v.ask(getTransaction)
	return view, func(t *txn) (err error) {
		if err := v.member.mayAll("transactions:read"); err != nil {
			return err
		}
		shape, err := resultOf[saleShape](t, sale)
		if err != nil {
			return err
		}
		view.Programs, view.Shares = programNames(t.cfg), sharesOf(t.cfg, &shape)
		view.Sale.saleShape = shape
		return view.linked(v, t)
	}
}

// linked fills in what belongs to a sale: the purchase of a return, the returns of a purchase.
func (view *saleView) linked(v *panelRequest, t *txn) error {
	s, err := t.sales.get(*view.Sale.ID)
	if err != nil {
		return err
	}
	if view.Why, err = whyEarned(v, t, s); err != nil {
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

type returnView struct {
	Sale     saleShape
	Left     decimal // of its amount
	Lines    []item  // what is left of it, in the order of the form's rows
	Shares   []saleShareView
	Vouchers []saleRedemption // used in it, which the member may give back with it
	Request  *undoRow         // to undo it; nil: there is none
}

func returnPage(v *panelRequest) (any, fillFunc) {
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
		if view.Request, err = undoRowOf(t, v.member, s.ID); err != nil {
			return err
		}
		for i, it := range s.Items {
			if it.Quantity -= s.Lines[i].Returned; it.Quantity > 0 {
				view.Lines = append(view.Lines, it)
			}
		}
		view.sentFirst(v)
		if v.member.mayAll("redemptions:cancel") == nil {
			view.Vouchers = slices.DeleteFunc(view.Sale.UsedIn(), func(x saleRedemption) bool { return x.Status != redemptionUsed })
		}
		if ret, is := v.reviewed.(saleShape); is {
			view.Shares = sharesOf(t.cfg, &ret)
		}
		return nil
	}
}

// sentFirst puts the items that were sent before the others, as the form's rows are numbered.
func (view *returnView) sentFirst(v *panelRequest) {
	for n := range view.Lines {
		sku, price := v.typedText(fmt.Sprintf("items[%d].sku", n)), v.typedText(fmt.Sprintf("items[%d].price", n))
		i := slices.IndexFunc(view.Lines[n:], func(it item) bool { return it.SKU == sku && v.format().Number(it.Price) == price })
		if i < 0 {
			return
		}
		sent := view.Lines[n+i]
		copy(view.Lines[n+1:], view.Lines[n:n+i])
		view.Lines[n] = sent
	}
}

// restoring is restoreRedemptions of a return: true if the box is checked.
func restoring(v *panelRequest, name string) string {
	if v.typedText(name) == "" {
		return ""
	}
	if err := v.member.mayAll("redemptions:cancel"); err != nil {
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
		p.Previous = withOlder(f.request, 0)
	}
	if v.Scan.older > 0 {
		p.Next = withOlder(f.request, v.Scan.older)
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

// Sales by maker. The file has no index by maker: a request looks through the sales that the other
// filters choose, latest first, and at most mostScanned of them. So such a list has no total, and
// its pages lead only to older sales.

const (
	byParam     = "quien" // who made the sales
	olderParam  = "antes" // how many of the sales that the other filters choose are left to look at
	importMaker = "import"

	mostScanned = 5000
	scanPart    = 500 // sales that are read at once
)

// A saleScan is a page of one maker's sales, and how far the scan for it went.
type saleScan struct {
	sales  []*sale
	rows   []saleShape
	begun  bool    // the scan did not begin with the newest sale
	looked uint64  // sales that were looked at
	last   instant // when the last sale that was looked at happened
	older  uint64  // sales that the other filters choose and that were not looked at yet
	cut    bool    // the scan looked at most sales before the page was full
}

// whole reports whether the page has all sales of the maker.
func (s *saleScan) whole() bool { return !s.begun && s.older == 0 }

// scanSales looks for a maker's sales among those that a filter chooses, latest first. It begins
// where older sales are left to look at, and ends when it has found limit or has looked at most.
func scanSales(t *txn, f saleFilter, made func(creator) bool, older, limit, most uint64) (*saleScan, error) {
	_, total, err := t.saleLists.find(f, page{1, 1})
	if err != nil {
		return nil, err
	}
	s := &saleScan{begun: older < total, older: min(older, total)}
	for s.older > 0 && s.looked < most && uint64(len(s.sales)) < limit {
		skip := total - s.older
		part, _, err := t.saleLists.find(f, page{skip/scanPart + 1, scanPart})
		if err != nil {
			return nil, err
		}
		for _, each := range part[min(skip%scanPart, uint64(len(part))):] {
			s.older--
			s.looked++
			s.last = each.CreatedAt
			if made(each.By) {
				s.sales = append(s.sales, each)
			}
			if s.looked == most || uint64(len(s.sales)) == limit {
				break
			}
		}
		if s.older == total-skip { // nothing was read: there are no more
			s.older = 0
		}
	}
	s.cut = s.looked == most && s.older > 0 && uint64(len(s.sales)) < limit
	return s, nil
}

// listSalesBy is listTransactions for sales of one maker.
func listSalesBy(r *request) action {
	r.large = true
	f := r.saleFilter()
	f.byDate = true
	older, ok := r.whole(olderParam, 1, maxPage)
	if !ok {
		r.query.fail(newError(codePageInvalid).on(olderParam))
	}
	made := func(c creator) bool { return c.Type == byImport }
	if text, _ := r.query.text(byParam, 100); text != importMaker {
		who, _ := r.query.id(byParam)
		made = func(c creator) bool { return c.ID == who && who != (id{}) }
	}
	return func(t *txn) (any, error) {
		s, err := scanSales(t, f, made, older, defaultLimit, mostScanned)
		if err != nil {
			return nil, err
		}
		for _, each := range s.sales {
			shape, err := newSaleShape(t, each)
			if err != nil {
				return nil, err
			}
			s.rows = append(s.rows, shape)
		}
		return s, nil
	}
}

// withOlder is the address of the page that begins where older sales are left to look at; 0: of
// the page that begins with the newest.
func withOlder(v *panelRequest, older uint64) string {
	params := slices.DeleteFunc(slices.Clone(v.request.query.object), func(p pair) bool { return p.name == olderParam })
	if older > 0 {
		params = append(params, pair{olderParam, strconv.FormatUint(older, 10)})
	}
	return withQuery(v.r.URL.EscapedPath(), params)
}

// Vouchers that nobody redeemed, in the panel: what a purchase gave, and what became of it.

// UsedIn are the vouchers that were used in a sale, and GivenIn the vouchers that it gave.
func (s saleShape) UsedIn() []saleRedemption {
	return slices.DeleteFunc(slices.Clone(s.Redemptions), saleRedemption.given)
}

func (s saleShape) GivenIn() []saleRedemption {
	return slices.DeleteFunc(slices.Clone(s.Redemptions), func(x saleRedemption) bool { return !x.given() })
}

// Gifts says which vouchers a purchase gave and which could not be given; of a return, what became of
// the vouchers that its purchase gave.
func (f prose) Gifts(s saleShape) (list []string) {
	for _, x := range s.GivenIn() {
		switch {
		case s.Type == typeReturn:
			list = append(list, f.T("gift."+x.Status, x.RewardName, textOr(x.Code, "")))
		case x.Code == nil: // in a rehearsal
			list = append(list, f.T("gift.would", x.RewardName))
		case *x.ExpiresAt == never:
			list = append(list, f.T("gift.new", x.RewardName, textOr(x.Code, "")))
		default:
			list = append(list, f.T("gift.new.until", x.RewardName, textOr(x.Code, ""), f.format.Date(*x.ExpiresAt)))
		}
	}
	for _, p := range append([]saleProgram{s.Programs.Own}, s.Programs.Others...) {
		for _, r := range p.AppliedRules {
			if r.Reason != nil {
				list = append(list, f.T("gift.missed", r.Name, notGiven(f.Lang, *r.Reason)))
			}
		}
	}
	return list
}

// RuleGave is what a rule gave a sale: points, or a voucher.
func (f prose) RuleGave(r ruleShare) string {
	switch {
	case r.Reason != nil:
		return notGiven(f.Lang, *r.Reason)
	case r.Issued != nil:
		return f.T("gift.voucher")
	}
	return f.format.Number(r.Points)
}

// Tickets (contract §26): a purchase at the till without a customer gets one, which is shown or printed;
// whoever has it claims the purchase. Their list, and one of them, where it is cancelled.

func ticketArea() panelArea {
	done := func(_ *panelRequest, id string) string { return afterDone(pathOfTicket(id)) }
	return panelArea{[]panelPage{
		{newTicketPath, "transactions:write", "ticket-new", withForms(newTicketPage)},
		{ticketsPath, "transactions:read", "tickets", ticketsPage},
		{ticketPath, "transactions:read", "ticket", withForms(ticketPage)},
	}, []panelForm{
		{path: newTicketPath, need: "transactions:write", from: newTicketPath, members: []formMember{{name: "totalAmount", kind: amountMember}, {name: "externalId"}}, labels: "ticket",
			handle: makeTicket, action: "ticket.created", forms: true, done: done},
		{path: ticketPath + "/cancelar", need: "transactions:return", from: ticketPath, guard: ownTicket("transactions:return"),
			handle: cancelOneTicket, action: "ticket.cancelled", forms: true, done: done},
	}}
}

// HasTickets reports whether the organization has tickets.
func (f *pageData) HasTickets() bool { return f.request.cfg.tickets() != nil }

func newTicketPage(*panelRequest) (any, fillFunc) { return struct{}{}, nil }

// ownTicket is what a role that has a permission in part may see and cancel: the member's own tickets of
// today.
func ownTicket(need permission) func(*panelRequest, *txn) error {
	return func(v *panelRequest, t *txn) error {
		x, err := t.tickets.get(pathIDOf(v.r, "ticketId"))
		if err != nil {
			return err
		}
		if x.By.Type == byUser && x.By.ID == v.member.user.ID && t.dayOf(x.CreatedAt) == t.dayOf(t.now) {
			return nil
		}
		return newError(codePermissionRequired).with("permission", string(need))
	}
}

type ticketView struct {
	Ticket ticketShape
	Code   string        // for who has the ticket to claim it; "": it cannot be claimed, or the member does not give tickets
	QR     template.HTML // of the address where it is claimed, or of the code
	Sale   string        // the page of the sale that it became; "": there is none that the member may open
	Known  bool          // the form that led here did nothing: it was there before, or cancelled
	Fresh  bool          // the form that led here has just made it
	Cancel bool          // the member may cancel it
}

func ticketPage(v *panelRequest) (any, fillFunc) {
	view, one := &ticketView{Known: v.param(knownParam) != ""}, v.ask(getTicket)
	return view, func(t *txn) (err error) {
		if view.Ticket, err = resultOf[ticketShape](t, one); err != nil {
			return err
		}
		if err := v.guarded(t, "transactions:read", ownTicket("transactions:read")); err != nil {
			return err
		}
		open := view.Ticket.Status == ticketOpen
		view.Fresh = open && v.justDone(view.Ticket.CreatedAt)
		view.Cancel = open && v.may("transactions:return") && v.guarded(t, "transactions:return", ownTicket("transactions:return")) == nil
		if open && v.may("transactions:write") {
			view.Code = textOr(view.Ticket.Code, "")
		}
		if view.Code != "" {
			view.QR = qrPicture(textOr(view.Ticket.URL, view.Code), view.Code, panelQR)
		}
		if sale := view.Ticket.TransactionID; sale != nil && v.member.mayAll("transactions:read") == nil {
			view.Sale = "/panel/ventas/" + sale.String()
		}
		return nil
	}
}

// cancelOneTicket is cancelTicket of the ticket that the path names. One that was cancelled before stays
// as it is.
func cancelOneTicket(r *request) action {
	return func(t *txn) (any, error) {
		x, err := t.tickets.get(r.pathID("ticketId"))
		if err != nil {
			return nil, err
		}
		before := x.State
		shape, err := shaped(t, newTicketShape)(t.tickets.cancel(ticketCancel{ExternalID: x.ExternalID}))
		if err == nil && before == ticketCancelled {
			return repeated{shape}, nil
		}
		return okReply(shape, err)
	}
}

type ticketsView struct {
	ExternalID, Status, From, To string
	Rows                         []ticketShape
	Pager                        pagerView
	Total                        uint64
}

func ticketsPage(v *panelRequest) (any, fillFunc) {
	view := &ticketsView{ExternalID: v.param("externalId"), Status: v.param("status"), From: v.param("from"), To: v.param("to")}
	all := v.ask(listTickets, v.params("externalId", "status", "from", "to", "page")...)
	return view, func(t *txn) error {
		if err := v.member.mayAll("transactions:read"); err != nil {
			return err
		}
		found, err := resultOf[listShape[ticketShape]](t, all)
		view.Rows, view.Pager, view.Total = found.Data, pager(v, found.Meta), found.Meta.Total
		return err
	}
}

// Filtered reports whether a filter is set.
func (w *ticketsView) Filtered() bool { return w.ExternalID+w.Status+w.From+w.To != "" }

// Tag is the class of the ticket's status.
func (x ticketShape) Tag() string {
	switch x.Status {
	case ticketOpen:
		return "tag good"
	case ticketCancelled, ticketExpired:
		return "tag warn"
	}
	return "tag"
}

// Path is the ticket's page.
func (x ticketShape) Path() string { return pathOfTicket(x.ID.String()) }
