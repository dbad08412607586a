package main

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sello/internal/contact"
	"sello/internal/fold"
	"sello/internal/membercode"
)

// The till's one field, and what the till shows next: who stands there, what to offer, paying with
// points, what the member did today.
//
// What is typed may be a voucher's code, a contact, the customer's number in another system or
// member code, a sale's ticket, or words. A code, a contact or a number that exists wins, then a
// ticket; else the words are searched. The text's form decides only what is said when nobody is
// found.

// A tillView is the till before a customer is known.
type tillView struct {
	Query          string
	Asked          bool
	One            id     // the customer that was found; zero: none, or several
	Join           string // the page of the pre-enrolment whose code was found; "": none
	Sale           string // the page of the sale whose ticket was found; "": none
	Ticket         string // the number of a ticket that was found and nobody has claimed; "": none
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
// many customers it shows at a time: nobody copies the customers there (auth.go).
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

// find looks for the customer that was typed: by e-mail, phone, externalId or member code, else by
// words. A whole contact is never taken for somebody else's that merely contains it.
func (view *tillView) find(v *panelRequest) fillFunc {
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
		if view.Join, err = joinOf(t, view.Query); err != nil || view.Join != "" {
			return err
		}
		if view.Sale, err = tillTicket(t, v.member, view.Query); err != nil || view.Sale != "" {
			return err
		}
		if view.Ticket, err = unclaimedTicket(t, view.Query); err != nil || view.Ticket != "" {
			return err
		}
		if err := view.searched(v, t, some); err != nil {
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

// joinPath is where who filled in a form on their phone is enrolled, by the code that it gave.
const joinPath = "/panel/caja/{joinCode}/alta"

// customerByExact finds the customer with a contact, an externalId or a member code; nil: there is
// none. Letters may spell a phone, but more likely stand in a number in another system or in a code.
func customerByExact(t *txn, text string, typed *typedContact) (*customer, error) {
	email := func() (*customer, error) { return t.customers.identify(kindEmail, typed.email) }
	phone := func() (*customer, error) { return t.customers.identify(kindPhone, typed.phone) }
	number := func() (*customer, error) { return t.customers.identifyExternal(text) }
	code := func() (*customer, error) { return t.customers.byMemberCode(text) }
	tries := []func() (*customer, error){email, phone, number, code}
	if typed.kind == "" {
		tries = []func() (*customer, error){email, number, code, phone}
	}
	for _, try := range tries {
		if c, err := try(); err != nil || c != nil {
			return c, err
		}
	}
	return nil, nil
}

// searched fills in a page of the customers that the search found, and where the others are.
func (view *tillView) searched(v *panelRequest, t *txn, search action) error {
	found, err := resultOf[appendedList[customerItem]](t, search)
	if err != nil {
		return err
	}
	view.All = found.Meta.Total
	if view.Hits, err = tillHits(t, v.member, found.Data); err != nil {
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

func tillHits(t *txn, m *member, found []customerItem) (hits []tillHit, err error) {
	for _, c := range found {
		d, err := t.customers.get(c.ID)
		if err != nil {
			return nil, err
		}
		hits = append(hits, tillHit{c.ID, c.Name, m.contact(d), c.TierName})
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

// joinOf is the page of the pre-enrolment that a text is the code of; "" if there is none.
func joinOf(t *txn, text string) (string, error) {
	p, _, err := t.cards.joining(text)
	if codeOf, is := errors.AsType[*apiError](err); is && codeOf.code == codeJoinCodeNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return strings.Replace(joinPath, "{joinCode}", p.Code, 1), nil
}

// tillTicket is the page of the newest purchase that a text is the externalId of, among those that
// the member sees; "" if there is none.
func tillTicket(t *txn, m *member, text string) (string, error) {
	for s, err := range t.sales.purchasesCalled(text) {
		if err != nil {
			return "", err
		}
		if !seesSale(t, m, s) {
			continue
		}
		owner, err := t.merges.ownerID(s.Customer)
		return "/panel/caja/" + owner.String() + "/venta/" + s.ID.String(), err
	}
	return "", nil
}

// unclaimedTicket is the number of the ticket that a text is, as it was scanned or typed, if it can be
// claimed: the till registers its sale under that number, which takes its place.
func unclaimedTicket(t *txn, text string) (string, error) {
	if t.cfg.tickets() == nil {
		return "", nil
	}
	x, err := t.tickets.find(text)
	if e, is := errors.AsType[*apiError](err); is && e.code.status < http.StatusInternalServerError {
		x, err = t.tickets.called(text)
	}
	if err != nil || x == nil || x.status(t.now) != ticketOpen {
		return "", err
	}
	return x.ExternalID, nil
}

// explainedDays is for how many days the till finds a sale by its ticket, and says why it earned
// what it did, for a member who may not see all sales.
const explainedDays = 30

// seesSale reports whether a sale is one that the till explains to the member.
func seesSale(t *txn, m *member, s *sale) bool {
	return m.mayAll("transactions:read") == nil || t.dayOf(s.CreatedAt) > t.dayOf(t.now)-explainedDays
}

// What the member did at the till today.

type doneItem struct {
	At       instant
	Text     string // the name of its text
	Path     string
	Customer string  // of a ticket, its number
	Amount   decimal // of a sale or a ticket; 0: it is none
	Reward   string
	State    string // the name of the text that says what became of it; "": it stands
}

// manyDone is how many things done the till shows, from the latest manyLooked changes that the member made.
const (
	manyDone   = 10
	manyLooked = "100"
)

// tillDone are the texts of the audit log's actions that are done at the till.
var tillDone = map[string]string{
	"transaction.created": "till.did.sold", "ticket.created": "till.did.ticket", "transaction.returned": "till.did.returned", "customer.created": "till.did.enrolled",
	"redemption.created": "till.did.redeemed", "redemption.used": "till.did.used", auditRedemptionCancelled: "till.did.cancelled",
}

// doneToday fills in the latest of what the member did today.
func (view *tillView) doneToday(v *panelRequest) fillFunc {
	mine := v.ask(listAudit, pair{"actor", v.member.user.ID.String()}, pair{"kind", auditKindChange}, pair{"limit", manyLooked}, pair{"from", dayOf(v.request.now, v.cfg.zone).String()})
	return func(t *txn) error {
		list, err := resultOf[listShape[auditShape]](t, mine)
		if err != nil {
			return err
		}
		here := slices.DeleteFunc(list.Data, func(e auditShape) bool { return e.Subject == nil || tillDone[e.Action] == "" })
		view.Mine, err = lines(v, here[:min(len(here), manyDone)], func(e auditShape) (doneItem, error) {
			item, err := newDoneItem(t, e.Action, *e.Subject)
			item.At, item.Text = e.At, tillDone[e.Action]
			return item, err
		})
		return err
	}
}

func pathOfTicket(ticket string) string { return "/panel/tickets/" + ticket }

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
		item.Amount, item.State = s.Total, s.back()
	case "ticket":
		x, err := t.tickets.get(u)
		if err != nil {
			return item, err
		}
		item.Amount, item.Customer, item.Path = x.Total, x.ExternalID, pathOfTicket(subject)
		if status := x.status(t.now); status != ticketOpen {
			item.State = "ticket.status." + status
		}
		return item, nil
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

// Who stands at the till, and what it offers next: the customer stays until another one is looked for.

// A TillHead is who stands at the till, as all of its screens show it.
type TillHead struct {
	Customer customerDetail
	Contact  string
	Program  currencyName // the currency of the customer's own program
	units    map[id]currencyName
	holds    []openHold // of all programs
	held     map[id]decimal
}

// Unit is the currency of a program.
func (h TillHead) Unit(program id) currencyName { return h.units[program] }

// Held is how many points of a program are set aside.
func (h TillHead) Held(program id) decimal { return h.held[program] }

func (h *TillHead) balance(program id) decimal {
	for _, p := range h.Customer.Programs {
		if p.LoyaltyProgramID == program {
			return p.Balance
		}
	}
	return 0
}

func (h *TillHead) head(v *panelRequest) fillFunc {
	detail := v.ask(getCustomer)
	return func(t *txn) (err error) {
		if h.Customer, err = resultOf[customerDetail](t, detail); err != nil {
			return err
		}
		c, err := t.customers.get(h.Customer.ID)
		if err != nil {
			return err
		}
		h.Contact = v.member.contact(c)
		h.units, h.held = map[id]currencyName{}, map[id]decimal{}
		for _, p := range t.cfg.Programs {
			h.units[p.ID] = p.Currency
		}
		for _, in := range h.Customer.Programs {
			a, err := t.points.account(c, t.cfg.program(in.LoyaltyProgramID))
			if err != nil {
				return err
			}
			h.holds = append(h.holds, a.Holds...)
			h.held[in.LoyaltyProgramID] = a.held()
		}
		h.Program = h.Unit(h.Customer.LoyaltyProgramID)
		return nil
	}
}

// scannedParam says that a voucher was looked for by its code: the next key uses it.
const scannedParam = "usar"

// proofParam is the parameter that carries a scanned card, and noCardParam why there is none, to the
// forms of the till's pages.
const (
	proofParam  = "proof"
	noCardParam = "noCard"
)

// A presentView asks for the customer's card, whose digits the forms of the page need.
type presentView struct {
	To           string   // the page that is opened with what was scanned
	Kept         []string // its marks: parameters that are 1
	Text, Why    string
	Scan, Reason control
	MayWaive     bool
}

// ScansAgain reports whether the card has to be scanned again: its field has the focus then, not the
// list of faults.
func (f *pageData) ScansAgain() bool {
	return slices.ContainsFunc(f.request.faults, func(e *apiError) bool { return e.field == proofParam })
}

// Present is nil where points are spent without a card.
func (h TillHead) Present(f *pageData) *presentView {
	v := f.request
	if v.cfg.cards().Proof != proofSpending {
		return nil
	}
	view := &presentView{To: "/panel/caja/" + h.Customer.ID.String(), MayWaive: v.member.mayWaive()}
	if v.posted == nil { // a page of the customer's, to which what was scanned comes back
		view.To = v.r.URL.Path
		for _, p := range v.params(doneParam, scannedParam) {
			view.Kept = append(view.Kept, p.name)
		}
	}
	of := func(name string) string { return trimBlanks(cmp.Or(v.param(name), v.typedText(name))) }
	view.Scan, view.Reason = f.Field(proofParam, "till.present", "text"), f.Field(noCardParam, "till.waive", "text")
	view.Text = of(proofParam)
	if code, _ := cutProof(view.Text); view.Text != "" && (h.Customer.MemberCode == nil || code != membercode.Plain(*h.Customer.MemberCode)) {
		view.Scan.Fault = faultText(f.Lang, f.format, newError(codeProofInvalid))
	}
	if view.Scan.Fault != "" {
		view.Text, view.Scan.Value, view.Scan.Focus = "", "", true
	}
	switch why := of(noCardParam); {
	case !view.MayWaive:
	case utf8.RuneCountInString(why) > maxWaived:
		view.Reason.Value, view.Reason.Fault = why, faultText(f.Lang, f.format, invalidField(noCardParam, "no puede superar los %d caracteres", maxWaived))
	case view.Reason.Fault == "":
		view.Why = why
	}
	return view
}

// tillOffers are what can be done next with the customer, who stays until another one is looked for.
type tillOffers struct {
	Rewards []rewardShape // that can be had now
	Later   []rewardShape
	Pay     payOffer
	PayMost bool   // in place of what was too much for the purchase
	Undone  string // the page of the undone sale whose ticket was sent again; "": it was not
}

func (h *TillHead) headOffers(v *panelRequest, o *tillOffers) fillFunc {
	head := h.head(v)
	rewards := v.ask(listRewards, pair{"customerId", v.r.PathValue("customerId")}, pair{"status", statusActive}, pair{"limit", manyRewards})
	return func(t *txn) error {
		if err := head(t); err != nil {
			return err
		}
		for _, e := range v.faults {
			if u, is := e.context["transactionId"].(id); is && e.code == codeExternalIDUndone {
				item, err := newDoneItem(t, "transaction.created", u.String())
				if err != nil {
					return err
				}
				o.Undone = item.Path
			}
		}
		o.Pay, o.PayMost = newPayOffer(v, t, &h.Customer), payTooMuch(v.faults)
		all, err := resultOf[listShape[rewardShape]](t, rewards)
		for _, r := range all.Data {
			if *r.Available {
				o.Rewards = append(o.Rewards, r)
			} else {
				o.Later = append(o.Later, r)
			}
		}
		return err
	}
}

const manyRewards = "100"

// sellWithVoucher registers a sale and uses in it the voucher that the path of its form names, both
// or none. A sale that is known already uses nothing more.
func sellWithVoucher(r *request) action {
	sell := registerTransaction(r)
	return func(t *txn) (any, error) {
		x, err := t.rewards.redemption(r.pathID("redemptionId"))
		if err != nil {
			return nil, err
		}
		done, err := sell(t)
		shape, is := done.(saleShape)
		if err != nil || !is {
			return done, err
		}
		if _, err = t.rewards.useCode(x.Code, shape.ID); err != nil {
			return nil, err
		}
		if err = t.audit.note("redemption.used", x.ID.String(), nil); err != nil {
			return nil, err
		}
		s, err := t.sales.get(*shape.ID)
		if err != nil {
			return nil, err
		}
		return newSaleShape(t, s)
	}
}

// A sellView is the form of a sale. With a voucher it is used in the sale, unless another button
// says otherwise.
type sellView struct {
	Page    *pageData
	To      string // of a sale without a voucher
	Voucher string // the form's address with one; "": there is none
	First   bool   // it is the first thing that is done on its page
}

func (h TillHead) Sell(f *pageData, of ...redemptionShape) sellView {
	at := "/panel/caja/" + h.Customer.ID.String()
	s := sellView{Page: f, To: at + "/venta", First: len(of) == 0}
	for _, x := range of {
		if x.Status == redemptionIssued {
			s.Voucher = at + "/canje/" + x.ID.String() + "/venta"
		}
	}
	return s
}

// Called is what the customer is called by the people at the till.
func (h TillHead) Called() string { return textOr(h.Customer.FirstName, h.Customer.Name) }

// Paying with points in the panel: the till's control, and in words what a payment was.

// payMember is `pay` of a sale: a box asks for as many points as the sale can take, which it
// settles itself, and a number that is typed for so many. A button overrules a number that was too
// large.
var payMember = formMember{name: "pay", kind: madeMember, make: paying}

const (
	payTyped   = "pay.points"
	payInstead = "pay.instead"
)

// paying makes `pay` of what was chosen. To pay with points is to redeem them.
func paying(v *panelRequest, name string) (literal string) {
	typed := trimBlanks(v.typedText(payTyped))
	switch {
	case v.typedText(payInstead) != "" || typed == "" && v.typedText(name) != "":
		literal = string(appendObject(nil, object{{"max", "true"}}))
	case typed != "":
		literal = string(appendObject(nil, object{{"points", v.amount(payTyped, typed)}}))
	default:
		return ""
	}
	if err := v.member.mayAll("rewards:write"); err != nil {
		v.faults = append(v.faults, publicError(err))
	}
	return literal
}

// A payOffer is points that can pay, and what they are worth; without points there are none.
type payOffer struct{ Points, Amount decimal }

// newPayOffer is what points of a customer's own program can pay of a purchase at most. Its amount and
// its items may leave less.
func newPayOffer(v *panelRequest, t *txn, c *customerDetail) payOffer {
	terms, ok := t.cfg.payTerms(t.cfg.program(c.LoyaltyProgramID))
	if !ok || c.Status != statusActive || v.member.mayAll("rewards:write") != nil {
		return payOffer{}
	}
	if v.typedText(payTyped) != "" { // the fault is beside what was typed
		for i, e := range v.faults {
			if e.field == payMember.name {
				v.faults[i] = e.on(payTyped)
			}
		}
	}
	n := terms.most(maxDecimal, max(c.Balance, 0))
	return payOffer{n, terms.worth(n)}
}

// payTooMuch reports whether some points can pay, though fewer than were typed.
func payTooMuch(faults []*apiError) bool {
	return slices.ContainsFunc(faults, func(e *apiError) bool {
		most, _ := e.context["maxPoints"].(decimal)
		return e.code == codePointsPaymentTooLarge && most > 0
	})
}

// What templates ask for.

// PayBox is the box that pays with as many points as can.
func (f *pageData) PayBox() boxView {
	return boxView{ID: controlID(payMember.name), Name: payMember.name, Value: "max", Label: f.T("payment.use"), Checked: f.checked(payMember.name, false)}
}

// UpTo says how many points there are to pay with, and what they are worth.
func (o payOffer) UpTo(f *pageData, unit currencyName) string {
	return f.T("payment.upto", f.Points(o.Points, unit), f.MoneyWithCode(o.Amount))
}

// PaidUnit is the currency of a payment's points.
func (f *pageData) PaidUnit(y *paymentShape) currencyName {
	return f.request.cfg.program(y.LoyaltyProgramID).Currency
}

// PaidPoints are the points that paid; of a return, the points that came back.
func (f *pageData) PaidPoints(y *paymentShape) string {
	points := f.Points(max(y.Points, -y.Points-y.PointsExpired), f.PaidUnit(y))
	if y.ofHold && y.Points > 0 {
		return f.T("payment.held", points)
	}
	return points
}

// PaidExpired are the points of a return's payment that did not come back; "" if all did.
func (f *pageData) PaidExpired(y *paymentShape) string {
	if y.PointsExpired == 0 {
		return ""
	}
	return f.Points(y.PointsExpired, f.PaidUnit(y))
}

// PaidBack says what a return of goods that points paid gives back, or, of one that was looked up,
// what it gave.
func (f *pageData) PaidBack(s saleShape, now bool) string {
	y, money, name, none := s.Payment, f.MoneyWithCode(s.AmountDue), "payment.back", "payment.back.none"
	if !now {
		name, none = "payment.gave", "payment.gave.none"
	}
	if back := -y.Points - y.PointsExpired; back > 0 {
		return f.Counted(name, f.Number(back), f.PaidUnit(y).Of(back), money)
	}
	return f.T(none, money)
}

// MovementName says what moved points. Neither a payment nor a capture is a redemption of a reward.
func (f prose) MovementName(m movementShape) string {
	name := "category." + m.Category
	if paid := name + ".paid"; m.TransactionID != nil && f.Lang.Has(paid) {
		name = paid
	} else if held := name + ".held"; m.HoldID != nil && f.Lang.Has(held) {
		name = held
	}
	return f.T(name)
}
