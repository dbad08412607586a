package main

import (
	"cmp"
	"errors"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"sello/internal/membercode"
)

// The till: find the customer, register the sale, hand over the reward. Three screens with
// the same places for the same things.

func tillArea() panelArea {
	const customer = "/panel/caja/{customerId}"
	at := func(v *panelRequest) string { return "/panel/caja/" + v.r.PathValue("customerId") }
	toCard := func(v *panelRequest, _ string) string { return at(v) + "/tarjeta" }
	toSale := func(v *panelRequest, id string) string { return afterDone(at(v) + "/venta/" + id) }
	toRedemption := func(v *panelRequest, id string) string { return afterDone(at(v) + "/canje/" + id) }
	return panelArea{[]panelPage{
		{"/panel/caja", "till", "till", tillPage},
		{enrolPath, "customers:write", "enrol", withForms(enrolPage)},
		{"/panel/caja/{customerId}", "till", "till-customer", withForms(tillCustomerPage)},
		{joinPath, "customers:write", "join", withForms(joinPage)},
		{customer + "/tarjeta", "customers:write", "card", withForms(cardPage)},
		{"/panel/caja/{customerId}/venta/{transactionId}", "till", "till-sale", withForms(tillSalePage)},
		{"/panel/caja/{customerId}/canje/{redemptionId}", "till", "till-redemption", withForms(tillRedemptionPage)},
	}, []panelForm{
		{path: enrolPath, need: "customers:write", from: enrolPath, members: enrolMembers, handle: enrolNew, action: "customer.created",
			forms: true, done: func(_ *panelRequest, id string) string { return "/panel/caja/" + id }},
		{path: joinPath, need: "customers:write", from: joinPath, members: []formMember{{name: "joinCode", kind: pathMember}, {name: "card", kind: checkMember}, {name: knownField}}, handle: joinByForm,
			forms: true, done: func(_ *panelRequest, id string) string { return "/panel/caja/" + id }},
		{path: customer + "/tarjeta", need: "customers:write", from: customer + "/tarjeta", handle: issueCardByForm, shown: &panelPage{customer + "/tarjeta", "customers:write", "card-made", nil}, done: toCard},
		{path: customer + "/tarjeta/anular", need: "customers:write", from: customer + "/tarjeta", handle: revokeCard, done: toCard},
		{path: customer + "/venta", need: "transactions:write", from: customer, members: saleMembers, labels: "sale", handle: registerTransaction, action: "transaction.created",
			forms: true, done: toSale},
		{path: customer + "/canje", need: "rewards:write", from: customer, members: []formMember{{name: "customerId", kind: pathMember}, {name: "productId"}, {name: "comment"}, {name: "expectedPoints", kind: amountMember}, {name: proofParam}, {name: noCardParam}},
			handle: redeemReward, action: "redemption.created", forms: true, done: toRedemption},
		{path: customer + "/canje/{redemptionId}/uso", need: "rewards:write", from: customer + "/canje/{redemptionId}", members: []formMember{{name: "code"}},
			handle: ofPath(useRedemption), action: "redemption.used", forms: true, done: toRedemption},
		{path: customer + "/canje/{redemptionId}/venta", need: "transactions:write", from: customer + "/canje/{redemptionId}", members: saleMembers, labels: "sale", handle: sellWithVoucher, action: "transaction.created",
			forms: true, done: toSale},
		{path: customer + "/canje/{redemptionId}/deshacer", need: "redemptions:cancel", from: customer + "/canje/{redemptionId}", guard: ownRedemption,
			handle: ofPath(cancelRedemption), forms: true, done: toRedemption},
		{path: customer + "/venta/{transactionId}/deshacer", need: "transactions:return", from: customer + "/venta/{transactionId}", guard: ownSale, members: undoMembers, labels: "sale",
			handle: registerTransaction, action: "transaction.returned", forms: true, done: toSale},
	}}
}

var saleMembers = []formMember{
	{name: "customerId", kind: pathMember}, {name: "totalAmount", kind: amountMember}, {name: "externalId"}, {name: "comment"},
	{name: "again", kind: madeMember, make: func(v *panelRequest, name string) string { // absent, as before it existed, unless the button says so
		if v.typedText(name) != "" {
			return "true"
		}
		return ""
	}},
	payMember, {name: proofParam}, {name: noCardParam},
	{name: "items", kind: listMember, of: []formMember{{name: "sku"}, {name: "price", kind: amountMember}, {name: "quantity", kind: amountMember}}},
}

var enrolMembers = []formMember{
	{name: "phoneNumber"}, {name: "email"}, {name: "firstName"}, {name: "lastName"}, {name: "externalId"}, {name: "birthDate", kind: madeMember, make: blankOr(birthDateLiteral)}, {name: "marketing", kind: madeMember, make: blankOr(boolLiteral)},
}

// ofPath is a handler of the redemption that the path of its form names, of the customer that
// the path names, if it does. Another one is not found, whatever the fields say.
func ofPath(handle func(*request) action) func(*request) action {
	return func(r *request) action {
		act, of := handle(r), r.pathID("redemptionId")
		return func(t *txn) (any, error) {
			x, err := t.rewards.redemption(of)
			if err != nil {
				return nil, err
			}
			if r.PathValue("customerId") != "" {
				owner, err := t.merges.owner(x.Customer)
				if err != nil {
					return nil, err
				}
				if owner.ID != r.pathID("customerId") {
					return nil, newError(codeRedemptionNotFound)
				}
			}
			done, err := act(t)
			if shape, is := bodyIn(done).(redemptionShape); err == nil && (!is || shape.ID != of) {
				return nil, newError(codeRedemptionNotFound)
			}
			return done, err
		}
	}
}

// undoMembers are the members of a return of a whole purchase.
var undoMembers = []formMember{
	{name: "customerId", kind: pathMember}, {name: "type", kind: fixedMember, value: typeReturn}, {name: "totalAmount", kind: amountMember},
	{name: "originalTransactionId", kind: pathMember, value: "transactionId"},
}

func tillPage(v *panelRequest) (any, fillFunc) {
	view := &tillView{Query: trimBlanks(v.param("q"))}
	view.Asked = view.Query != ""
	mine, find := view.doneToday(v), view.find(v)
	return view, func(t *txn) error {
		voucher, err := tillCode(t, view.Query)
		if err != nil {
			return err
		}
		if voucher != "" {
			v.leadsTo, v.faults = withToken(withQuery(voucher, []pair{{scannedParam, "1"}}), v.panel.random()), nil
			return nil
		}
		if err := find(t); err != nil {
			return err
		}
		switch {
		case view.One != (id{}):
			v.leadsTo = withToken("/panel/caja/"+view.One.String(), v.panel.random())
			if _, digits := cutProof(view.Query); digits != "" { // of a card that was scanned
				v.leadsTo += "&" + url.Values{proofParam: {view.Query}}.Encode()
			}
			return nil
		case view.Join != "":
			v.leadsTo, v.faults = withToken(view.Join, v.panel.random()), nil
			return nil
		case view.Sale != "":
			v.leadsTo, v.faults = withToken(view.Sale, v.panel.random()), nil
			return nil
		case view.All > 0 && len(view.Hits) == 0: // beyond the last page
			v.leadsTo = withQuery("/panel/caja", []pair{{"q", view.Query}})
			return nil
		case view.Enrol != "" && view.All == 0 && v.may("customers:write"):
			v.leadsTo = withToken(view.Enrol, v.panel.random())
			return nil
		}
		return mine(t)
	}
}

// An enrolView is the form of a new customer, with what was typed at the till.
type enrolView struct {
	Phone, Email string
	Known        bool // one of them was typed
}

func enrolPage(v *panelRequest) (any, fillFunc) {
	view := &enrolView{}
	view.Phone, _ = v.request.query.get("phone")
	view.Email, _ = v.request.query.get("email")
	view.Known = view.Phone != "" || view.Email != ""
	return view, nil
}

// A joinPageView is what somebody said of themselves, and the customer who has the contact already.
type joinPageView struct {
	Written string // the code
	Who     preEnrolment
	Known   *joinKnown  // nil: there is none
	Name    string      // what the known one is called, if that may be somebody else
	Both    []joinKnown // the customers of the phone and of the e-mail, where they are two
}

// A joinKnown is a customer as somebody may be told who sees no contacts.
type joinKnown struct {
	ID     id
	Masked string
}

// knownField is the customer whom the page has shown: the form's doing is that customer's, or nothing.
const knownField = "known"

func joinPage(v *panelRequest) (any, fillFunc) {
	view := &joinPageView{}
	return view, func(t *txn) error {
		p, _, err := t.cards.joining(v.r.PathValue("joinCode"))
		if err != nil {
			return err
		}
		view.Who, view.Written = *p, membercode.Written(p.Code)
		known, err := t.customers.enrolled(p.enrolment())
		if errors.Is(err, newError(codeIdentityConflict)) {
			return view.two(t)
		}
		if err != nil || known == nil {
			return err
		}
		view.Known = &joinKnown{known.ID, known.masked()}
		doubt, err := t.customers.doubt(known, p.enrolment())
		if doubt != noDoubt {
			view.Name = known.shortName()
		}
		return err
	}
}

// two fills in the customers of the phone and of the e-mail.
func (view *joinPageView) two(t *txn) error {
	for kind, value := range map[byte]string{kindPhone: view.Who.Phone, kindEmail: view.Who.Email} {
		c, err := t.customers.identify(kind, value)
		if err != nil {
			return err
		}
		view.Both = append(view.Both, joinKnown{c.ID, c.masked()})
	}
	slices.SortFunc(view.Both, func(a, b joinKnown) int { return compareIDs(a.ID, b.ID) })
	return nil
}

// joinByForm enrols who filled in a form on their phone.
func joinByForm(r *request) action {
	in := r.joinRequest()
	shown, _ := r.fields.text(knownField, anyLength)
	in.Shown = &shown
	return func(t *txn) (any, error) {
		c, created, err := t.cards.join(in)
		if err == nil && created {
			err = t.audit.note("customer.created", c.ID.String(), nil)
		}
		return enrolledReply(t)(c, created, err)
	}
}

type tillCustomerView struct {
	TillHead
	tillOffers
	Movements []movementShape
	Cards     bool // the server serves cards
}

// manyMovements is how many movements answer who has no points.
const manyMovements = 3

// moved fills in the latest movements of all programs.
func (view *tillCustomerView) moved(t *txn) error {
	c, err := t.customers.get(view.Customer.ID)
	if err != nil {
		return err
	}
	var all []*movement
	for _, in := range view.Customer.Programs {
		p, err := t.program(in.LoyaltyProgramID)
		if err != nil {
			return err
		}
		some, _, err := t.points.listMovements(c, p, page{1, manyMovements}, nil)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b *movement) int { return cmp.Compare(b.Seq, a.Seq) })
	for _, m := range all[:min(len(all), manyMovements)] {
		shape, err := newMovementShape(t, m)
		if err != nil {
			return err
		}
		view.Movements = append(view.Movements, shape)
	}
	return nil
}

// A cardPageView is where a customer is given a card.
type cardPageView struct {
	TillHead
	Served bool // the server serves cards
}

func cardPage(v *panelRequest) (any, fillFunc) {
	view := &cardPageView{Served: v.api.engine.cardsAt != ""}
	return view, view.head(v)
}

// A cardMadeView is the address of a new card, for the customer to scan. It is shown once.
type cardMadeView struct {
	Customer, URL string
	QR            template.HTML
	Back          string
}

func issueCardByForm(r *request) action {
	issue := issueCard(r)
	return func(t *txn) (any, error) {
		made, err := resultOf[cardShape](t, issue)
		if err != nil {
			return nil, err
		}
		c, err := t.customers.get(made.CustomerID)
		url := textOr(made.URL, "")
		return &cardMadeView{c.name(), url, qrPicture(url, "QR", panelQR), "/panel/caja/" + made.CustomerID.String()}, err
	}
}

func tillCustomerPage(v *panelRequest) (any, fillFunc) {
	view := &tillCustomerView{Cards: v.api.engine.cardsAt != ""}
	head := view.headOffers(v, &view.tillOffers)
	return view, func(t *txn) error {
		if err := head(t); err != nil {
			return err
		}
		return view.moved(t)
	}
}

type tillSaleView struct {
	TillHead
	tillOffers
	Sale    saleShape
	State   string // the name of the text that says how much of a purchase came back; "": nothing
	Left    decimal
	Returns []saleLink
	More    bool      // there are other returns
	Of      *saleLink // the purchase of a return; nil: it has none
	Undo    bool      // the member may return what is left
	Ask     undoView  // where the member may not
	Shares  []saleShareView
	Known   bool     // the form that led here registered nothing: it was there before
	Fresh   bool     // it has just registered this sale
	Why     *whyView // nil: it is not kept, or the member may not see it
	Due     bool     // the money of this purchase is to be collected now, and points can have paid a part
}

type saleLink struct {
	Path   string
	Amount decimal
	At     instant
}

func newSaleLink(v *panelRequest, s *sale) saleLink {
	return saleLink{"/panel/caja/" + v.r.PathValue("customerId") + "/venta/" + s.ID.String(), s.Total, s.CreatedAt}
}

// cameBack fills in what came back of a purchase, or the purchase of a return.
func (view *tillSaleView) cameBack(v *panelRequest, t *txn) error {
	s, err := t.sales.get(*view.Sale.ID)
	if err != nil {
		return err
	}
	if s.Previous != (id{}) {
		purchase, err := t.sales.get(s.Previous)
		if err != nil {
			return err
		}
		view.Of = new(newSaleLink(v, purchase))
	}
	view.State, view.Left = s.back(), s.Total-s.Returned
	if view.State == "" {
		return nil
	}
	found, more, err := t.sales.returnsOf(s)
	view.More = more
	for _, r := range found {
		view.Returns = append(view.Returns, newSaleLink(v, r))
	}
	return err
}

func (view *tillSaleView) explain(v *panelRequest, t *txn) error {
	s, err := t.sales.get(*view.Sale.ID)
	if err == nil && seesSale(t, v.member, s) {
		view.Why, err = whyEarned(v, t, s)
	}
	return err
}

func tillSalePage(v *panelRequest) (any, fillFunc) {
	view := &tillSaleView{Known: v.param(knownParam) != ""}
	head, sale := view.headOffers(v, &view.tillOffers), v.ask(getTransaction)
	return view, func(t *txn) (err error) {
		if err = head(t); err != nil {
			return err
		}
		if view.Sale, err = resultOf[saleShape](t, sale); err != nil {
			return err
		}
		if view.Sale.CustomerID != view.Customer.ID {
			return newError(codeTransactionNotFound)
		}
		view.Fresh, view.Shares = v.justDone(view.Sale.RegisteredAt), sharesOf(t.cfg, &view.Sale)
		if err := view.cameBack(v, t); err != nil {
			return err
		}
		if err := view.explain(v, t); err != nil {
			return err
		}
		_, pays := t.cfg.payTerms(t.cfg.program(view.Customer.LoyaltyProgramID))
		view.Due = view.Fresh && view.State == "" && view.Sale.Type == typePurchase && (pays || view.Sale.Payment != nil)
		if view.Sale.Type == typePurchase && view.Left > 0 && view.State != backWhole {
			view.Undo, err = view.Ask.undoing(v, t, *view.Sale.ID, false)
		}
		return err
	}
}

type tillRedemptionView struct {
	TillHead
	tillOffers
	Redemption redemptionShape
	Unit       currencyName // the currency of the reward's program
	Balance    decimal      // in that program, now
	Given      decimal      // what came back of a cancelled one: points that had not expired
	Scanned    bool         // the next key uses it
	Fresh      bool         // the form that led here has just done it
	Undo       bool
	Ask        undoView // where the member may not
}

func tillRedemptionPage(v *panelRequest) (any, fillFunc) {
	view := &tillRedemptionView{Scanned: v.param(scannedParam) != ""}
	head, redemption := view.headOffers(v, &view.tillOffers), v.ask(getRedemption)
	return view, func(t *txn) (err error) {
		if err = head(t); err != nil {
			return err
		}
		if view.Redemption, err = resultOf[redemptionShape](t, redemption); err != nil {
			return err
		}
		if view.Redemption.CustomerID != view.Customer.ID {
			return newError(codeRedemptionNotFound)
		}
		x, err := t.rewards.redemption(view.Redemption.ID)
		if err != nil {
			return err
		}
		program := t.cfg.programNumber(x.Program)
		view.Unit, view.Balance = program.Currency, view.balance(program.ID)
		view.Scanned = view.Scanned && view.Redemption.Status == redemptionIssued
		view.Fresh = v.justDone(view.Redemption.lastAt())
		if x.CancelledAt != 0 && x.Movement != 0 {
			debit, err := t.points.movement(x.Movement)
			if err != nil {
				return err
			}
			view.Given = debit.givenBack(x.CancelledAt)
		}
		cancellable, err := t.rewards.cancellable(x)
		if err != nil {
			return err
		}
		if cancellable {
			view.Undo, err = view.Ask.undoing(v, t, view.Redemption.ID, true)
		}
		return err
	}
}

// What the till's templates ask for.

// A headView is the head of a customer at the till, in words.
type headView struct {
	Name, Contact, Tier, Next, Balance, Currency, Soon, Inactive, Other string

	Others []string // what the customer has in other programs, each with its currency
}

// soon is how far ahead the till tells of points that expire, in milliseconds.
const soon = 30 * 24 * 60 * 60 * 1000

func (h TillHead) Head(f *pageData) headView {
	c := &h.Customer
	v := headView{Name: c.Name, Contact: h.Contact, Balance: f.Number(c.Balance), Currency: h.Program.Of(c.Balance), Other: f.T("till.other")}
	if c.TierName != nil {
		v.Tier = *c.TierName
	}
	if c.NextTierName != nil && c.PointsToNextTier != nil {
		v.Next = f.Counted("till.tier.next", f.Number(*c.PointsToNextTier), h.Program.Of(*c.PointsToNextTier), *c.NextTierName)
	}
	for _, p := range c.Programs {
		if aside := f.Aside(p.PendingBalance, h.Held(p.LoyaltyProgramID)); p.LoyaltyProgramID != c.LoyaltyProgramID && (p.Balance != 0 || aside != "") {
			v.Others = append(v.Others, joined(f.Points(p.Balance, h.Unit(p.LoyaltyProgramID)), aside))
		}
	}
	about := []string{f.Aside(c.PendingBalance, h.Held(c.LoyaltyProgramID))}
	for _, e := range c.ExpiringPoints {
		if e.ExpiresAt <= f.request.request.now+soon {
			about = append(about, f.Counted("till.expiring", f.Number(e.Amount), f.Date(e.ExpiresAt)))
		}
	}
	v.Soon = joined(about...)
	if c.Status != statusActive {
		v.Inactive = f.T("till.inactive")
	}
	return v
}

// Aside says how many points are not in a balance: pending points, and points that are set aside.
func (f prose) Aside(pending, held decimal) string {
	var list [2]string
	if pending != 0 {
		list[0] = f.Counted("till.pending", f.format.Number(pending))
	}
	if held != 0 {
		list[1] = f.T("till.held", f.format.Number(held))
	}
	return joined(list[:]...)
}

// joined puts together what is not "".
func joined(list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), " · ")
}

// Cost is what a reward costs, with the currency where it is not the customer's own.
func (f prose) Cost(r rewardShape, h TillHead) string {
	if r.LoyaltyProgramID == h.Customer.LoyaltyProgramID {
		return f.format.Number(r.PointsCost)
	}
	return f.format.Points(r.PointsCost, h.Unit(r.LoyaltyProgramID))
}

// Reasons says why a customer cannot have a reward now.
func (f prose) Reasons(r rewardShape, h TillHead) string {
	var list []string
	for _, reason := range *r.Reasons {
		name := "reason." + reason
		switch reason {
		case reasonNoBalance:
			short := max(r.PointsCost-h.balance(r.LoyaltyProgramID), 0)
			list = append(list, f.Counted(name, f.format.Number(short), h.Unit(r.LoyaltyProgramID).Of(short)))
		case reasonTier:
			list = append(list, f.T(name, strings.Join(r.TierNames, ", ")))
		default:
			list = append(list, f.T(name))
		}
	}
	return strings.Join(list, " · ")
}

// A programChange is what a sale did in one program, in words.
type programChange struct {
	Change, Balance, Earned, Back, Pending string

	Rules []ruleShare
}

// Changes are what a sale did: in the customer's own program, and in the others where it did
// anything.
func (f prose) Changes(s saleShape, h TillHead) (list []programChange) {
	for i, p := range append([]saleProgram{s.Programs.Own}, s.Programs.Others...) {
		if i > 0 && p.PointsEarned == 0 && p.PointsReversed == 0 {
			continue
		}
		unit := h.Unit(p.LoyaltyProgramID)
		c := programChange{Earned: f.format.Points(p.PointsEarned, unit), Back: f.format.Points(p.PointsReversed, unit), Balance: f.T("till.balance", f.format.Points(p.Balance, unit)), Rules: slices.DeleteFunc(slices.Clone(p.AppliedRules), func(r ruleShare) bool { return r.Points == 0 })}
		if c.Change = "+" + c.Earned; s.Type == typeReturn {
			c.Change = "−" + c.Back
		}
		if p.PointsPending != 0 {
			c.Pending = f.T("till.points.pending", f.format.Points(p.PointsPending, unit))
		}
		list = append(list, c)
	}
	return list
}

// Looked says of a sale that was looked up when it was registered, and by whom.
func (f prose) Looked(s saleShape) string {
	return joined(f.T("till.looked", f.format.Moment(s.RegisteredAt)), f.Who(s.CreatedBy))
}

// lastAt is when a redemption came to its status.
func (x *redemptionShape) lastAt() instant {
	switch x.Status {
	case redemptionUsed:
		return x.UsedAt
	case redemptionCancelled:
		return x.CancelledAt
	case redemptionExpired:
		return x.ExpiresAt
	}
	return x.CreatedAt
}

// Over says of a redemption that takes nothing off any more since when, and by whom; "" if it is
// still to be used (contract §31).
func (f prose) Over(x redemptionShape) string {
	by := ""
	switch x.Status {
	case redemptionIssued:
		return ""
	case redemptionUsed:
		by = f.Who(x.UsedBy)
	case redemptionCompleted:
		by = f.Who(x.CreatedBy)
	}
	return joined(f.T("redemption.over."+x.Status, f.format.Moment(x.lastAt())), by)
}

// TakeOff says what to take off for a voucher that stands; "" if there is nothing to.
func (f prose) TakeOff(x redemptionShape) string {
	e := x.Effect
	switch {
	case e == nil || x.Status == redemptionCancelled || x.Status == redemptionExpired:
		return ""
	case e.Type == effectAmount:
		return f.T("till.off.amount", f.format.MoneyWithCode(e.Amount))
	case e.Type == effectPercent:
		return f.T("till.off.percent", f.format.Number(e.Percent))
	}
	return f.T("till.off.product", e.SKU)
}
