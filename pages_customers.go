package main

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Customers: the list, all about one of them, its forms, its balance on a day, and the statement of
// a month.

func customerArea() panelArea {
	const one = "/panel/clientes/{customerId}"
	toOne := func(v *panelRequest, id string) string { return pathOfCustomer("/panel/clientes/", v.member.role, id) }
	back := func(v *panelRequest, _ string) string {
		return "/panel/clientes/" + v.r.PathValue("customerId") + newWayBack(v).Query()
	}
	byHand := []formMember{{name: "amount", kind: amountMember}, {name: "comment", must: true}, {name: "loyaltyProgramId"}, {name: "expiresAt"}}
	patch := []formMember{{name: "status"}}
	for _, m := range enrolMembers {
		if m.kind != madeMember {
			m.kind = patchMember
		}
		patch = append(patch, m)
	}
	return panelArea{[]panelPage{
		{"/panel/clientes", "customers:read", "customers", customersPage},
		{"/panel/clientes/nuevo", "customers:write", "customer-new", withForms(customerNewPage)},
		{one, "customers:read", "customer", customerPage},
		{one + "/editar", "customers:edit", "customer-edit", withForms(customerEditPage)},
		{one + "/puntos", "points:write", "points", withForms(pointsPage)},
		{one + "/unir", "customers:erase", "merge", withForms(mergePage)},
		{one + "/borrar", "customers:erase", "erase", withForms(erasePage)},
	}, []panelForm{
		{path: "/panel/clientes/nuevo", need: "customers:write", from: "/panel/clientes/nuevo", members: enrolMembers, handle: enrolNew, action: "customer.created", done: toOne},
		{path: one + "/editar", need: "customers:edit", from: one + "/editar", members: patch, handle: patchCustomer, done: back},
		{path: one + "/puntos/dar", need: "points:write", from: one + "/puntos", members: byHand, handle: addPoints, action: "points.added", about: "customerId", shows: shownOfPoints, done: back},
		{path: one + "/puntos/quitar", need: "points:write", from: one + "/puntos", members: byHand[:3], handle: deductPoints, action: "points.deducted", about: "customerId", shows: shownOfPoints, done: back},
		{path: one + "/retenciones/{holdId}/liberar", need: "points:write", from: one, handle: releaseShown, action: "points.released", about: "customerId", done: back},
		{path: one + "/unir", need: "customers:erase", from: one + "/unir", members: []formMember{{name: "from"}}, handle: mergeCustomers, shows: shownOfMerge, done: back},
		{path: one + "/borrar", need: "customers:erase", from: one + "/borrar", members: []formMember{{name: "confirm"}}, handle: eraseCustomer, done: back},
	}}
}

// releaseShown releases the hold that the path of its form names, of the customer that the path names.
func releaseShown(r *request) action {
	release := releaseHold(r)
	return func(t *txn) (any, error) {
		h, err := t.points.hold(r.pathID("holdId"))
		if err != nil {
			return nil, err
		}
		owner, err := t.merges.ownerID(h.Customer)
		if err != nil {
			return nil, err
		}
		if owner != r.pathID("customerId") {
			return nil, newError(codeHoldNotFound)
		}
		return release(t)
	}
}

// A wayBack is the query of the page of the list that led to a customer; "" if none did.
type wayBack string

// wayParam is the parameter, and the field of forms, that has it.
const wayParam = "de"

// newWayBack is what the page, or the form that was sent, says of where it was reached from. It
// keeps parameters of the list alone.
func newWayBack(v *panelRequest) wayBack {
	q, _ := url.ParseQuery(cmp.Or(v.param(wayParam), v.typedText("_"+wayParam)))
	var kept []pair
	for _, name := range []string{"search", "status", "page"} {
		kept = append(kept, pair{name, q.Get(name)})
	}
	return wayBackTo(givenParams(kept))
}

// wayBackTo is the way to the list with some parameters.
func wayBackTo(params []pair) wayBack {
	return wayBack(strings.TrimPrefix(withQuery("", params), "?"))
}

// Query is the query of an address that keeps the way; "" without one.
func (w wayBack) Query() string { return withQuery("", givenParams([]pair{{wayParam, string(w)}})) }

// List is the page of the list.
func (w wayBack) List() string { return "/panel/clientes?" + string(w) }

type customersView struct {
	Search, Status string
	Rows           []customerRow
	Way            wayBack // to this page
	Pager          pagerView
	Total          uint64
}

type customerRow struct {
	Path, Name, Contact, Tier string
	Status                    string // "": active
	Balance                   string
	LastAt, Last              string // of the last purchase; "": none yet
}

func customersPage(v *panelRequest) (any, fillFunc) {
	view := &customersView{Search: v.param("search"), Status: v.param("status")}
	view.Way = wayBackTo(v.params("search", "status", "page"))
	all := v.ask(listCustomers, v.params("search", "status", "page", "limit")...)
	return view, func(t *txn) error {
		if err := v.member.mayAll("customers:read"); err != nil {
			return err
		}
		if c, err := t.customers.byMemberCode(view.Search); err != nil {
			return err
		} else if c != nil {
			v.leadsTo = "/panel/clientes/" + c.ID.String() + wayBackTo(v.params("status")).Query()
			return nil
		}
		found, err := resultOf[appendedList[customerItem]](t, all)
		if err != nil {
			return err
		}
		view.Pager, view.Total = pager(v, found.Meta), found.Meta.Total
		view.Rows, err = newCustomerRows(v, t, found.Data, view.Way)
		return err
	}
}

// newCustomerRows are customers in words; way leads back to the page that lists them.
func newCustomerRows(v *panelRequest, t *txn, items []customerItem, way wayBack) (rows []customerRow, err error) {
	f := v.format()
	for _, item := range items {
		c, err := t.customers.get(item.ID)
		if err != nil {
			return nil, err
		}
		a, err := t.points.head(c, t.cfg.programNumber(c.Program))
		if err != nil {
			return nil, err
		}
		row := customerRow{
			Path: "/panel/clientes/" + item.ID.String() + way.Query(), Name: item.Name, Contact: v.member.contact(c), Tier: textOr(item.TierName, ""),
			Balance: f.Number(a.Balance), LastAt: f.UTC(c.LastSaleAt), Last: f.Ago(c.LastSaleAt),
		}
		if item.Status != statusActive {
			row.Status = tr(v.lang, "status."+item.Status)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func customerNewPage(v *panelRequest) (any, fillFunc) {
	return &enrolView{}, nil
}

// A customerView is all about a customer. Movements come in pages.
type customerView struct {
	TillHead
	Programs    map[id]string       // names
	Currencies  map[id]currencyName // of the programs, if there are several
	Others      []otherBalance
	Lists       []navItem   // of movements, by program, if there are several
	Holds       []holdShape // the open ones
	Lots        []lotRow    // of the program whose movements are listed
	Movements   []movementShape
	Pager       pagerView
	Sales       []saleRow
	Redemptions []redemptionShape
	Segments    []string
	Cards       bool // the server serves cards
	Way         wayBack
	Day, Listed string // what the query says of a day, and of a program
	OnDay       *dayBalance
}

// A lotRow is how many points expire at a moment, or are pending until then.
type lotRow struct {
	Amount  decimal
	At      instant
	Pending bool
}

// lotsShown is how many rows of each kind a page shows.
const lotsShown = 12

// lotRows lists the points of a customer in a program that expire, soonest first, and those
// that are pending.
func lotRows(t *txn, customer id, p *program) (list []lotRow, err error) {
	c, err := t.customers.get(customer)
	if err != nil {
		return nil, err
	}
	a, err := t.points.account(c, p)
	if err != nil {
		return nil, err
	}
	expiring, err := t.points.expiringFrom(a, t.now, lotsShown)
	if err != nil {
		return nil, err
	}
	for _, e := range expiring {
		list = append(list, lotRow{e.Amount, e.ExpiresAt, false})
	}
	most := len(list) + lotsShown
	for l, err := range t.points.lots(a, partPending) {
		if err != nil {
			return nil, err
		}
		if last := len(list) - 1; last >= 0 && list[last].Pending && list[last].At == l.AvailFrom {
			list[last].Amount += l.Left
			continue
		}
		if len(list) == most {
			break
		}
		list = append(list, lotRow{l.Left, l.AvailFrom, true})
	}
	return list, nil
}

// An otherBalance is what a customer has in another program than its own.
type otherBalance struct {
	customerProgram
	Held     decimal
	Currency currencyName
}

// showPrograms fills in the other programs that the customer has, or had, something in.
// shown is the one whose movements are listed.
func (view *customerView) showPrograms(cfg *config, shown id) {
	view.Currencies = map[id]currencyName{}
	for i, p := range view.Customer.Programs {
		currency := cfg.program(p.LoyaltyProgramID).Currency
		if len(view.Customer.Programs) > 1 {
			view.Currencies[p.LoyaltyProgramID] = currency
		}
		held := view.Held(p.LoyaltyProgramID)
		if i > 0 && (p.Balance != 0 || p.PendingBalance != 0 || p.LifetimePoints != 0 || held != 0) {
			view.Others = append(view.Others, otherBalance{p, held, currency})
		}
	}
	if len(view.Others) == 0 {
		return
	}
	list := func(program id, currency currencyName) {
		path := withQuery("/panel/clientes/"+view.Customer.ID.String(), []pair{{"loyaltyProgramId", program.String()}})
		view.Lists = append(view.Lists, navItem{path, currency.Many, program == shown})
	}
	list(view.Customer.LoyaltyProgramID, view.Program)
	for _, other := range view.Others {
		list(other.LoyaltyProgramID, other.Currency)
	}
}

// showHolds fills in the open holds, in the order in which they expire.
func (view *customerView) showHolds(t *txn) error {
	for _, o := range view.holds {
		h, err := t.points.holdAt(o.ID)
		if err != nil {
			return err
		}
		shape, err := newHoldShape(t, h)
		if err != nil {
			return err
		}
		view.Holds = append(view.Holds, shape)
	}
	slices.SortStableFunc(view.Holds, func(a, b holdShape) int { return cmp.Compare(a.ExpiresAt, b.ExpiresAt) })
	return nil
}

func customerPage(v *panelRequest) (any, fillFunc) {
	view := &customerView{Cards: v.api.engine.cardsAt != "", Way: newWayBack(v), Day: v.param("asOf"), Listed: v.param("loyaltyProgramId")}
	head, own := view.head(v), pair{"customerId", v.r.PathValue("customerId")}
	movements := v.ask(listMovements, v.params("page", "loyaltyProgramId")...)
	sales := v.ask(listTransactions, own, pair{"limit", "5"})
	redemptions := v.ask(listRedemptions, own, pair{"limit", "5"})
	return view, func(t *txn) error {
		if err := v.member.mayAll("customers:read"); err != nil {
			return err
		}
		if err := head(t); err != nil {
			return err
		}
		if view.Customer.Status == statusMerged { // nothing is left here
			v.leadsTo = "/panel/clientes/" + view.Customer.MergedInto.String()
			return nil
		}
		if err := view.showHolds(t); err != nil {
			return err
		}
		if len(view.Holds) > 0 && v.may("points:write") { // each is a form
			if to, ok := v.needToken(); !ok {
				v.leadsTo = to.to
				return nil
			}
		}
		moved, err := resultOf[appendedList[movementShape]](t, movements)
		if err != nil {
			return err
		}
		sold, err := resultOf[appendedList[saleShape]](t, sales)
		if err != nil {
			return err
		}
		redeemed, err := resultOf[listShape[redemptionShape]](t, redemptions)
		if err != nil {
			return err
		}
		view.Movements, view.Pager, view.Redemptions = moved.Data, pager(v, moved.Meta), redeemed.Data
		if view.Sales, err = saleRows(t, v.format(), sold.Data); err != nil {
			return err
		}
		view.Programs = programNames(t.cfg)
		shown, ok := parseID(v.param("loyaltyProgramId"))
		if !ok {
			shown = view.Customer.LoyaltyProgramID
		}
		view.showPrograms(t.cfg, shown)
		if p := t.cfg.program(shown); p != nil && view.Customer.Status != statusErased {
			if view.Lots, err = lotRows(t, view.Customer.ID, p); err != nil {
				return err
			}
		}
		for _, u := range view.Customer.SegmentIDs {
			view.Segments = append(view.Segments, t.cfg.segment(u).Name)
		}
		view.OnDay, err = v.onDay(t, t.cfg.program(shown)) // last: it goes on to that day
		return err
	}
}

// programNames are the names of the programs of an organization with more than one.
func programNames(cfg *config) map[id]string {
	names := map[id]string{}
	for _, p := range cfg.Programs {
		if len(cfg.Programs) > 1 {
			names[p.ID] = p.Name
		}
	}
	return names
}

// A customerEditView is the form of what is known of a customer. ETag says of when.
type customerEditView struct {
	TillHead
	ETag string
	Way  wayBack
}

func customerEditPage(v *panelRequest) (any, fillFunc) {
	view := &customerEditView{Way: newWayBack(v)}
	head, detail := view.head(v), v.ask(getCustomer)
	return view, func(t *txn) error {
		if err := head(t); err != nil {
			return err
		}
		d, err := detail(t)
		view.ETag = tagOf(d)
		return err
	}
}

type pointsView struct {
	TillHead
	Programs []choiceItem
	Limited  bool    // the member may give so many a day
	Left     decimal // of them today
}

func pointsPage(v *panelRequest) (any, fillFunc) {
	view := &pointsView{}
	head := view.head(v)
	return view, func(t *txn) (err error) {
		if view.Left, view.Limited, err = t.keys.leftToday(v.member.user.ID); err != nil {
			return err
		}
		view.Programs = programChoices(t.cfg)
		return head(t)
	}
}

// A mergeView is the form that makes another customer part of this one: it finds the other
// one, and once that was chosen says what comes of it.
type mergeView struct {
	TillHead
	Query string
	Hits  []tillHit // the first ones
	All   uint64    // how many the search found; 0: no more than Hits

	Other   string // who was chosen; "": nobody yet
	Rows    []mergeRow
	Dropped []mergeRow // what the other one has and this one does not get
}

// A mergeRow is a figure of both customers, and of the one that they become.
type mergeRow struct{ Name, Ours, Theirs, Both string }

func mergePage(v *panelRequest) (any, fillFunc) {
	view := &mergeView{Query: v.param("search")}
	head, found := view.head(v), func(*txn) (any, error) { return nil, nil }
	if view.Query != "" {
		found = v.ask(listCustomers, pair{"search", view.Query}, pair{"limit", "10"})
	}
	return view, func(t *txn) error {
		if err := head(t); err != nil {
			return err
		}
		if after, is := v.reviewed.(mergedShape); is {
			return view.compare(v, t, &after)
		}
		matches, err := resultOf[appendedList[customerItem]](t, found)
		if err != nil {
			return err
		}
		if matches.Meta.HasNextPage {
			view.All = matches.Meta.Total
		}
		hits, err := tillHits(t, v.member, matches.Data)
		view.Hits = slices.DeleteFunc(hits, func(h tillHit) bool { return h.ID == view.Customer.ID })
		return err
	}
}

// compare fills in what a merge comes to, as its rehearsal found it.
func (view *mergeView) compare(v *panelRequest, t *txn, after *mergedShape) error {
	other, _ := parseID(v.typedText("from"))
	c, err := t.customers.get(other)
	if err != nil {
		return err
	}
	theirs, err := newCustomerDetail(t, c)
	if err != nil {
		return err
	}
	view.Other = theirs.Name
	f, ours, both := v.format(), &view.Customer, &after.customerDetail
	row := func(name string, value func(*customerDetail) string) {
		view.Rows = append(view.Rows, mergeRow{tr(v.lang, name), value(ours), value(&theirs), value(both)})
	}
	row("column.customer", func(d *customerDetail) string { return d.Name })
	row("field.phoneNumber", func(d *customerDetail) string { return textOr(d.PhoneNumber, "–") })
	row("field.email", func(d *customerDetail) string { return textOr(d.Email, "–") })
	row("field.externalId", func(d *customerDetail) string { return textOr(d.ExternalID, "–") })
	for _, p := range both.Programs {
		view.Rows = append(view.Rows, mergeRow{t.cfg.program(p.LoyaltyProgramID).Currency.Many, f.Number(ours.balanceIn(p)), f.Number(theirs.balanceIn(p)), f.Number(p.Balance)})
	}
	row("merge.sales", func(d *customerDetail) string { return f.Count(d.TransactionsCount) })
	row("customer.spent", func(d *customerDetail) string { return f.MoneyWithCode(d.TotalSpent) })
	for _, d := range []struct {
		name  string
		value *string
	}{{"field.phoneNumber", after.Dropped.PhoneNumber}, {"field.email", after.Dropped.Email}, {"field.externalId", after.Dropped.ExternalID}} {
		if d.value != nil {
			view.Dropped = append(view.Dropped, mergeRow{Name: tr(v.lang, d.name), Theirs: *d.value})
		}
	}
	return nil
}

// balanceIn is a customer's balance in the same program as that of another one.
func (d *customerDetail) balanceIn(p customerProgram) decimal {
	for _, own := range d.Programs {
		if own.LoyaltyProgramID == p.LoyaltyProgramID {
			return own.Balance
		}
	}
	return 0
}

func erasePage(v *panelRequest) (any, fillFunc) {
	view := &customerEditView{}
	return view, view.head(v)
}

// Lists.

// A pagerView leads to the pages beside this one. The addresses keep the filter.
type pagerView struct {
	Page, Pages    uint64
	Previous, Next string
}

func pager(v *panelRequest, m listMeta) pagerView {
	limit := uint64(defaultLimit)
	p := pagerView{Page: m.CurrentPage, Pages: (m.Total + limit - 1) / limit}
	if m.HasPreviousPage {
		p.Previous = withPage(v, m.CurrentPage-1)
	}
	if m.HasNextPage {
		p.Next = withPage(v, m.CurrentPage+1)
	}
	return p
}

func withPage(v *panelRequest, n uint64) string {
	return withQuery(v.r.URL.EscapedPath(), append(slices.Clip(v.request.query.object), pair{"page", strconv.FormatUint(n, 10)}))
}

type pagerText struct {
	pagerView
	Label, PreviousText, NextText, Text string
}

// Pager is the template's "pager".
func (f prose) Pager(p pagerView) pagerText {
	return pagerText{p, f.T("pages"), f.T("page.previous"), f.T("page.next"), f.T("page", f.format.Count(p.Page), f.format.Count(p.Pages))}
}

// Person are the controls of what is known of a person, in rows: nil, a new one.
func (f *pageData) Person(c *customerDetail) [][]control {
	if c == nil {
		c = new(customerDetail)
	}
	return [][]control{
		{f.Field("firstName", "field.firstName", "text", textOr(c.FirstName, "")), f.Field("lastName", "field.lastName", "text", textOr(c.LastName, ""))},
		{f.Field("phoneNumber", "field.phoneNumber", "tel", textOr(c.PhoneNumber, "")), f.Field("email", "field.email", "text", textOr(c.Email, ""))},
		{f.Field("birthDate", "field.birthDate", "text", strings.TrimPrefix(textOr(c.BirthDate, ""), noYear)), f.Field("externalId", "field.externalId", "text", textOr(c.ExternalID, ""))},
	}
}

// Falls says when a tier falls by itself; "" if it does not.
func (f prose) Falls(v *tierProgress) string {
	if v == nil || v.FallsTo == nil {
		return ""
	}
	return f.T("customer.falls", *v.FallsTo, f.format.LongDay(dayOf(v.FallsAt, f.format.zone)))
}

// Known is a text, or a dash.
func (f prose) Known(s *string) string { return textOr(s, f.T("none")) }

// BornOn is a date of birth in words, or a dash.
func (f prose) BornOn(s *string) string {
	b, ok := parseBirthDate(textOr(s, ""))
	if !ok {
		return f.T("none")
	}
	return f.format.BirthDate(b)
}

// Kept is the value that a form was sent with, or the page's: after a change by somebody else
// the form says that it has seen that one.
func (f *pageData) Kept(name, value string) string {
	if sent, ok := f.request.posted.get(name); ok && !f.Stale() {
		return sent
	}
	return value
}

// What a customer had on a day, or will have, and the statement of a month, to print.

func statementArea() panelArea {
	return panelArea{pages: []panelPage{{"/panel/clientes/{customerId}/estado", "customers:read", "statement", statementPage}}}
}

// A dayBalance is what a customer has on the day that the customer's page was asked about.
type dayBalance struct {
	Balance  balance
	Currency currencyName
	Future   bool
}

// onDay returns the balance of the day in the query; nil without one. It comes last in its
// transaction, which goes on to that day.
func (v *panelRequest) onDay(t *txn, p *program) (*dayBalance, error) {
	day, now := v.param("asOf"), t.now
	if day == "" || p == nil {
		return nil, nil
	}
	asked := v.ask(getBalance, pair{"asOf", day}, pair{"loyaltyProgramId", p.ID.String()})
	found, err := resultOf[balance](t, asked)
	if err != nil || len(v.faults) > 0 {
		return nil, err
	}
	return &dayBalance{found, p.Currency, found.AsOf > now}, nil
}

// A statementView is the statement of a month. It shows the first movements.
type statementView struct {
	TillHead
	Month            string
	Found            bool
	From, To, Made   instant // Made is now: the day of a print
	Opening, Closing pointSums
	Movements        []movementShape
	More             int // movements that are not shown
	Digest           string
	Currency         currencyName
	Programs         []choiceItem // if there are several
	ProgramID        string
}

// mostStated is how many movements the page shows. The API has all.
const mostStated = 1000

func statementPage(v *panelRequest) (any, fillFunc) {
	view := &statementView{Month: v.param("month"), ProgramID: v.param("loyaltyProgramId")}
	if view.Month == "" {
		view.Month = dayOf(v.request.now, v.cfg.zone).date().Format(monthForm)
	}
	head := view.head(v)
	asked := v.ask(getStatement, append(v.params("loyaltyProgramId"), pair{"month", view.Month})...)
	return view, func(t *txn) error {
		if err := v.member.mayAll("customers:read"); err != nil {
			return err
		}
		if err := head(t); err != nil {
			return err
		}
		view.Programs = programChoices(t.cfg)
		if view.ProgramID == "" {
			view.ProgramID = view.Customer.LoyaltyProgramID.String()
		}
		if len(v.faults) > 0 {
			return nil
		}
		of, err := resultOf[*statementParts](t, asked)
		if err != nil {
			return err
		}
		s, err := newStatement(t, of.customer, of.program, of.month)
		if err != nil {
			return err
		}
		return view.show(t, s)
	}
}

func (view *statementView) show(t *txn, s *statement) error {
	view.Found, view.From, view.To, view.Made, view.Opening, view.Closing = true, s.from, s.to, t.now, s.opening, s.closing
	view.Currency = s.program.Currency
	shown := s.movements[:min(len(s.movements), mostStated)]
	view.More = len(s.movements) - len(shown)
	for _, seq := range shown {
		m, err := t.points.movement(seq)
		if err != nil {
			return err
		}
		shape, err := newMovementShape(t, m)
		if err != nil {
			return err
		}
		view.Movements = append(view.Movements, shape)
	}
	digest, err := s.digest.MarshalText()
	view.Digest = string(digest)
	return err
}
