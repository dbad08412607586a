package main

import (
	"fmt"
	"math/big"
	"slices"
)

// Sales: the list, one sale, and its return.

func salePages() []panelPage {
	return []panelPage{
		{"/panel/ventas", "transactions:read", "sales", salesPage},
		{"/panel/ventas/{transactionId}", "transactions:read", "sale", salePage},
		{"/panel/ventas/{transactionId}/devolucion", "transactions:return", "return", returnPage},
	}
}

func saleForms() []panelForm {
	members := []formMember{
		{name: "customerId"}, {name: "type", kind: fixedMember, value: typeReturn}, {name: "totalAmount", kind: amountMember},
		{name: "originalTransactionId", kind: pathMember, value: "transactionId"}, {name: "comment"}, saleMembers[len(saleMembers)-1],
	}
	return []panelForm{
		{path: "/panel/ventas/{transactionId}/devolucion", need: "transactions:return", from: "/panel/ventas/{transactionId}/devolucion", members: members,
			handle: registerTransaction, guard: ownSale, prepare: sumReturn, action: "transaction.returned", done: func(_ *visit, id string) string { return "/panel/ventas/" + id }},
	}
}

// A salesView is a page of the list.
type salesView struct {
	Search, Type, From, To, ExternalID string
	Sales                              []saleShape
	Pager                              pagerView
	Total                              uint64
}

func salesPage(v *visit) (any, fillFunc) {
	view := &salesView{Search: v.param("search"), Type: v.param("type"), From: v.param("from"), To: v.param("to"), ExternalID: v.param("externalId")}
	all := v.ask(listTransactions, v.params("search", "type", "from", "to", "externalId", "page")...)
	return view, func(t *txn) error {
		if err := v.mayAll("transactions:read"); err != nil {
			return err
		}
		found, err := resultOf[appendedList[saleShape]](t, all)
		view.Sales, view.Pager, view.Total = found.Data, v.pager(found.Meta), found.Meta.Total
		return err
	}
}

// A saleView is one sale.
type saleView struct {
	Sale     saleShape
	Programs map[id]string // names
	Currency string        // of the customer's own program
	Return   bool          // the member may register a return of it
}

func salePage(v *visit) (any, fillFunc) {
	view := &saleView{}
	sale := v.ask(getTransaction)
	return view, func(t *txn) (err error) {
		if err := v.mayAll("transactions:read"); err != nil {
			return err
		}
		if view.Sale, err = resultOf[saleShape](t, sale); err != nil {
			return err
		}
		view.Programs = programNames(t.cfg)
		p, err := t.program(view.Sale.Programs.Own.LoyaltyProgramID)
		if err != nil {
			return err
		}
		view.Currency = p.Currency
		view.Return = view.Sale.Type == typePurchase && v.may("transactions:return")
		return nil
	}
}

// A returnView is the form of a return.
type returnView struct {
	Sale saleShape
}

func returnPage(v *visit) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &returnView{}
	sale := v.ask(getTransaction)
	return view, func(t *txn) (err error) {
		if view.Sale, err = resultOf[saleShape](t, sale); err == nil {
			err = v.guarded(t, "transactions:return", ownSale)
		}
		return err
	}
}

// sumReturn sets the amount of a return by item: what its items cost. A quantity that is blank
// or 0 is not returned.
func sumReturn(v *visit) {
	sum := new(big.Rat)
	for i := range maxRows {
		from := fmt.Sprintf("items[%d].", i)
		quantity, price := v.typed(from+"quantity"), v.typed(from+"price")
		if quantity == 0 { // the row is not returned
			v.drop(from + "sku")
			v.drop(from + "price")
			v.drop(from + "quantity")
			continue
		}
		sum.Add(sum, new(big.Rat).Mul(quantity.rat(), price.rat()))
	}
	if exact := new(big.Rat).Mul(sum, big.NewRat(decimalOne, 1)); sum.Sign() > 0 && exact.IsInt() && exact.Num().IsInt64() {
		v.drop("totalAmount")
		v.posted = append(v.posted, pair{"totalAmount", v.format().Number(decimal(exact.Num().Int64()))})
	}
}

// typed is a number that was typed; 0 if it is none.
func (v *visit) typed(name string) decimal {
	text, _ := v.posted.get(name)
	literal, _, _ := v.format().readAmount(trimBlanks(text))
	d, err := parseDecimal(literal)
	if err != nil {
		return 0
	}
	return d
}

// drop forgets a field of the form.
func (v *visit) drop(name string) {
	v.posted = slices.DeleteFunc(v.posted, func(p pair) bool { return p.name == name })
}

// A saleTableView is a table of sales.
type saleTableView struct {
	*frame
	Sales    []saleShape
	Customer bool // with the customers' names
}

// SaleTable is for the template "sales".
func (f *frame) SaleTable(list []saleShape, customer bool) saleTableView {
	return saleTableView{f, list, customer}
}

// SaleTypes are the choices of a sale's type.
func (f *frame) SaleTypes() []choiceItem {
	return []choiceItem{{"", f.T("all")}, {typePurchase, f.T("sale." + typePurchase)}, {typeReturn, f.T("sale." + typeReturn)}}
}

var _ = addTexts(map[string]panelText{
	"title.sales":      {"Ventas", "Sales"},
	"title.sale":       {"Venta", "Sale"},
	"title.return":     {"Devolución", "Return"},
	"sales.total":      {"%s con este filtro", "%s with this filter"},
	"sales.none":       {"Ninguna venta coincide con este filtro.", "No sale matches this filter."},
	"sales.search":     {"Cliente", "Customer"},
	"sales.type":       {"Tipo", "Type"},
	"sales.from":       {"Desde", "From"},
	"sales.to":         {"Hasta", "To"},
	"sale.Purchase":    {"Compra", "Purchase"},
	"sale.Return":      {"Devolución", "Return"},
	"sale.source":      {"Origen", "Source"},
	"source.Api":       {"API", "API"},
	"source.Dashboard": {"Panel", "Panel"},
	"source.Import":    {"Importación", "Import"},
	"sale.registered":  {"Registrada", "Registered"},
	"sale.happened":    {"Ocurrió", "Happened"},
	"sale.comment":     {"Comentario", "Comment"},
	"sale.original":    {"De la compra", "Of the purchase"},
	"sale.items":       {"Artículos", "Items"},
	"sale.rules":       {"Por qué", "Why"},
	"sale.earned":      {"Puntos ganados", "Points earned"},
	"sale.reversed":    {"Puntos retirados", "Points taken back"},
	"sale.shortfall":   {"Puntos que ya no había", "Points that were spent already"},
	"return.open":      {"Registrar devolución", "Register a return"},
	"return.amount":    {"Importe devuelto, %s", "Amount returned, %s"},
	"return.quantity":  {"Cuántos vuelven", "How many come back"},
	"return.review":    {"Revisar", "Review"},
	"return.takes":     {"Se devuelven %s y se retiran %s puntos.", "%s is returned, and %s points are taken back."},
	"return.items":     {"Por artículo", "By item"},
})
