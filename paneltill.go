package main

import "strings"

// The till: find the customer, register the sale, hand over the reward. Three screens with
// the same places for the same things.

func tillPages() []panelPage {
	return []panelPage{
		{"/panel/caja", "till", "till", tillPage},
		{enrolPath, "customers:write", "enrol", enrolPage},
		{"/panel/caja/{customerId}", "till", "till-customer", tillCustomerPage},
		{"/panel/caja/{customerId}/venta/{transactionId}", "till", "till-sale", tillSalePage},
		{"/panel/caja/{customerId}/canje/{redemptionId}", "till", "till-redemption", tillRedemptionPage},
	}
}

var saleMembers = []formMember{
	{name: "customerId", kind: pathMember}, {name: "totalAmount", kind: amountMember}, {name: "externalId"}, {name: "comment"},
	{name: "items", kind: listMember, of: []formMember{{name: "sku"}, {name: "price", kind: amountMember}, {name: "quantity", kind: amountMember}}},
}

var enrolMembers = []formMember{
	{name: "phoneNumber"}, {name: "email"}, {name: "firstName"}, {name: "lastName"}, {name: "externalId"}, {name: "birthDate"},
}

func tillForms() []panelForm {
	const customer = "/panel/caja/{customerId}"
	at := func(v *visit) string { return "/panel/caja/" + v.r.PathValue("customerId") }
	return []panelForm{
		{path: enrolPath, need: "customers:write", from: enrolPath, members: enrolMembers, handle: createCustomer, action: "customer.created",
			forms: true, done: func(_ *visit, id string) string { return "/panel/caja/" + id }},
		{path: customer + "/venta", need: "transactions:write", from: customer, members: saleMembers, handle: registerTransaction, action: "transaction.created",
			forms: true, done: func(v *visit, id string) string { return at(v) + "/venta/" + id }},
		{path: customer + "/canje", need: "rewards:write", from: customer, members: []formMember{{name: "customerId", kind: pathMember}, {name: "productId"}, {name: "comment"}},
			handle: redeemReward, action: "redemption.created", forms: true, done: func(v *visit, id string) string { return at(v) + "/canje/" + id }},
		{path: customer + "/canje/{redemptionId}/uso", need: "rewards:write", from: customer + "/canje/{redemptionId}", members: []formMember{{name: "code"}},
			handle: ofPath(useRedemption), action: "redemption.used", forms: true, done: func(v *visit, id string) string { return at(v) + "/canje/" + id }},
		{path: customer + "/canje/{redemptionId}/deshacer", need: "redemptions:cancel", from: customer + "/canje/{redemptionId}", guard: ownRedemption,
			handle: ofPath(cancelRedemption), forms: true, done: func(v *visit, id string) string { return at(v) + "/canje/" + id }},
		{path: customer + "/venta/{transactionId}/deshacer", need: "transactions:return", from: customer + "/venta/{transactionId}", guard: ownSale, members: undoMembers,
			handle: registerTransaction, action: "transaction.returned", forms: true, done: func(v *visit, id string) string { return at(v) + "/venta/" + id }},
	}
}

// ofPath is a handler of the redemption that the path of its form names, of the customer that
// the path names, if it does. Another one is not found, whatever the fields say.
func ofPath(handle func(*request) action) func(*request) action {
	return func(r *request) action {
		act, of := handle(r), r.pathID("redemptionId")
		return func(t *txn) (any, error) {
			x, err := t.redemption(of)
			if err != nil {
				return nil, err
			}
			if r.PathValue("customerId") != "" {
				owner, err := t.owner(x.Customer)
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

func tillPage(v *visit) (any, fillFunc) {
	view := &tillView{Query: trimBlanks(v.param("q"))}
	view.Asked = view.Query != ""
	mine, find := v.doneToday(&view.Mine), v.find(view)
	return view, func(t *txn) error {
		voucher, err := t.tillCode(view.Query)
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
			return nil
		case view.Enrol != "" && view.All == 0 && v.may("customers:write"):
			v.leadsTo = withToken(view.Enrol, v.panel.random())
			return nil
		}
		return mine(t)
	}
}

// scannedParam says that a voucher was looked for by its code: the next key uses it.
const scannedParam = "usar"

// An enrolView is the form of a new customer, with what was typed at the till.
type enrolView struct {
	Phone, Email string
	Known        bool // one of them was typed
}

func enrolPage(v *visit) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &enrolView{}
	view.Phone, _ = v.request.query.get("phone")
	view.Email, _ = v.request.query.get("email")
	view.Known = view.Phone != "" || view.Email != ""
	return view, nil
}

// A TillHead is who stands at the till, as all of its screens show it.
type TillHead struct {
	Customer customerDetail
	Contact  string
	Program  string // the currency of the customer's own program
}

func (v *visit) head(h *TillHead) fillFunc {
	detail := v.ask(getCustomer)
	return func(t *txn) (err error) {
		if h.Customer, err = resultOf[customerDetail](t, detail); err != nil {
			return err
		}
		c, err := t.customer(h.Customer.ID)
		if err != nil {
			return err
		}
		h.Contact = maskedContact(c)
		p := t.cfg.programNumber(c.Program)
		h.Program = p.Currency
		return nil
	}
}

// A tillCustomerView is a customer at the till.
type tillCustomerView struct {
	TillHead
	Rewards []rewardShape // that can be had now
	Later   []rewardShape
}

// manyRewards is how many rewards the till shows.
const manyRewards = "100"

func tillCustomerPage(v *visit) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &tillCustomerView{}
	head := v.head(&view.TillHead)
	rewards := v.ask(listRewards, pair{"customerId", v.r.PathValue("customerId")}, pair{"status", statusActive}, pair{"limit", manyRewards})
	return view, func(t *txn) error {
		if err := head(t); err != nil {
			return err
		}
		all, err := resultOf[list[rewardShape]](t, rewards)
		for _, r := range all.Data {
			if *r.Available {
				view.Rewards = append(view.Rewards, r)
			} else {
				view.Later = append(view.Later, r)
			}
		}
		return err
	}
}

// A tillSaleView is the result of a sale.
type tillSaleView struct {
	TillHead
	Sale saleShape
	Undo bool // the member may undo it
}

func tillSalePage(v *visit) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &tillSaleView{}
	head, sale := v.head(&view.TillHead), v.ask(getTransaction)
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
		view.Undo = view.Sale.Type == typePurchase && v.member.role.may("transactions:return") != grantNone && v.guarded(t, "transactions:return", ownSale) == nil
		return nil
	}
}

// A tillRedemptionView is the result of a redemption.
type tillRedemptionView struct {
	TillHead
	Redemption redemptionShape
	Undo       bool
}

func tillRedemptionPage(v *visit) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &tillRedemptionView{}
	head, redemption := v.head(&view.TillHead), v.ask(getRedemption)
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
		view.Undo = v.member.role.may("redemptions:cancel") != grantNone && v.guarded(t, "redemptions:cancel", ownRedemption) == nil
		return nil
	}
}

// undoTime is for how long a cashier may cancel a redemption, in milliseconds.
const undoTime = 10 * 60 * 1000

// ownSale is what a role with transactions:return in part may undo: the member's own sales of
// today, if the organization allows that.
func ownSale(v *visit, t *txn) error {
	s, err := t.sale(pathIDOf(v.r, "transactionId"))
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
func ownRedemption(v *visit, t *txn) error {
	x, err := t.redemption(pathIDOf(v.r, "redemptionId"))
	if err != nil {
		return err
	}
	if x.By.Type == byUser && x.By.ID == v.member.user.ID && t.now-x.CreatedAt <= undoTime {
		return nil
	}
	return newError(codePermissionRequired).with("permission", "redemptions:cancel")
}

var _ = addTexts(map[string]panelText{
	"title.till":                 {"Caja", "Till"},
	"title.enrol":                {"Cliente nuevo", "New customer"},
	"title.till-customer":        {"Cliente", "Customer"},
	"title.till-sale":            {"Venta", "Sale"},
	"title.till-redemption":      {"Canje", "Redemption"},
	"till.other":                 {"Otro cliente", "Another customer"},
	"till.next":                  {"Siguiente cliente", "Next customer"},
	"till.pending":               {"%s pendientes", "%s pending"},
	"till.expiring":              {"%s vencen el %s", "%s expire on %s"},
	"till.tier.next":             {"faltan %s %s para %s", "%s %s to %s"},
	"till.amount":                {"Importe, %s", "Amount, %s"},
	"till.ticket":                {"Ticket", "Receipt"},
	"till.items":                 {"Artículos", "Items"},
	"till.sku":                   {"Código", "SKU"},
	"till.price":                 {"Precio", "Price"},
	"till.quantity":              {"Cantidad", "Quantity"},
	"till.sell":                  {"Registrar venta", "Register sale"},
	"till.rewards":               {"Puede canjear", "Can redeem"},
	"till.rewards.none":          {"Nada por ahora.", "Nothing for now."},
	"till.later":                 {"Todavía no (%d)", "Not yet (%d)"},
	"till.inactive":              {"Este cliente no está activo: no gana ni canjea puntos.", "This customer is not active: no points are earned or redeemed."},
	"till.sold":                  {"Venta de %s", "Sale of %s"},
	"till.returned":              {"Devolución de %s", "Return of %s"},
	"till.balance":               {"Saldo %s", "Balance %s"},
	"till.rule":                  {"%s: %s", "%s: %s"},
	"till.norule":                {"Ninguna regla dio puntos.", "No rule gave points."},
	"till.points.pending":        {"%s quedan pendientes", "%s are pending"},
	"till.tier.changed":          {"Ahora es %s", "Now %s"},
	"till.undo":                  {"Deshacer", "Undo"},
	"till.code":                  {"Código", "Code"},
	"till.code.expires":          {"Vence el %s", "Expires on %s"},
	"till.use":                   {"Usar ahora", "Use now"},
	"redemption.Issued":          {"Por usar", "To be used"},
	"redemption.Used":            {"Usado", "Used"},
	"redemption.Completed":       {"Entregado", "Handed over"},
	"redemption.Cancelled":       {"Cancelado", "Cancelled"},
	"redemption.Expired":         {"Vencido", "Expired"},
	"reason.CustomerInactive":    {"el cliente no está activo", "the customer is not active"},
	"reason.Inactive":            {"no está activa", "it is not active"},
	"reason.NotYetValid":         {"todavía no vale", "it is not valid yet"},
	"reason.NoLongerValid":       {"ya no vale", "it is no longer valid"},
	"reason.TierRequired":        {"solo para %s", "only for %s"},
	"reason.SegmentRequired":     {"solo para otro grupo de clientes", "only for another group of customers"},
	"reason.OutOfStock":          {"se agotó", "out of stock"},
	"reason.LimitReached":        {"ya la canjeó las veces que puede", "redeemed as often as allowed"},
	"reason.InsufficientBalance": {"le faltan %s %s", "%s %s missing"},
	"field.phoneNumber":          {"Teléfono", "Phone"},
	"field.email":                {"Email", "E-mail"},
	"field.firstName":            {"Nombre", "First name"},
	"field.lastName":             {"Apellidos", "Last name"},
	"field.birthDate":            {"Fecha de nacimiento", "Date of birth"},
	"field.birthDate.hint":       {"AAAA-MM-DD", "YYYY-MM-DD"},
	"field.externalId":           {"Número en otro sistema", "Number in another system"},
	"enrol.do":                   {"Dar de alta", "Enrol"},
})

// What the till's templates ask for.

// A headView is the head of a customer at the till, in words.
type headView struct{ Name, Contact, Tier, Next, Balance, Currency, Soon, Inactive, Other string }

// soon is how far ahead the till tells of points that expire, in milliseconds.
const soon = 30 * 24 * 60 * 60 * 1000

func (f *frame) Head(h TillHead) headView {
	c := &h.Customer
	v := headView{Name: c.Name, Contact: h.Contact, Balance: f.Number(c.Balance), Currency: h.Program, Other: f.T("till.other")}
	if c.TierName != nil {
		v.Tier = *c.TierName
	}
	if c.NextTierName != nil && c.PointsToNextTier != nil {
		v.Next = f.T("till.tier.next", f.Number(*c.PointsToNextTier), h.Program, *c.NextTierName)
	}
	var about []string
	if c.PendingBalance != 0 {
		about = append(about, f.T("till.pending", f.Number(c.PendingBalance)))
	}
	for _, e := range c.ExpiringPoints {
		if e.ExpiresAt <= f.visit.request.now+soon {
			about = append(about, f.T("till.expiring", f.Number(e.Amount), f.Date(e.ExpiresAt)))
		}
	}
	v.Soon = strings.Join(about, " · ")
	if c.Status != statusActive {
		v.Inactive = f.T("till.inactive")
	}
	return v
}

// Reasons says why a customer cannot have a reward now.
func (f *frame) Reasons(r rewardShape, c customerDetail, currency string) string {
	var list []string
	for _, reason := range *r.Reasons {
		name := "reason." + reason
		switch reason {
		case reasonNoBalance:
			list = append(list, f.T(name, f.Number(r.PointsCost-c.Balance), currency))
		case reasonTier:
			list = append(list, f.T(name, strings.Join(r.TierNames, ", ")))
		default:
			list = append(list, f.T(name))
		}
	}
	return strings.Join(list, " · ")
}
