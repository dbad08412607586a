package main

import (
	"bytes"
	"net/http"
	"strconv"
)

// Handlers of sales: lists, registering one or a batch, and what a sale would do (dry run).

func listTransactions(r *request) action { return r.listSales(false) }

// listSales lists sales in the order of registration, or by date.
func (r *request) listSales(byDate bool) action {
	p, f := r.page(), r.saleFilter()
	f.byDate = byDate
	return func(t *txn) (any, error) {
		found, total, err := t.saleLists.find(f, p)
		if err != nil {
			return nil, err
		}
		warm(t.Tx, found, func(s *sale) key { return t.scratchKey(s.Customer, partCustomer) })
		return newAppendedList(t, found, total, p, newSaleShape)
	}
}

func (r *request) saleFilter() (f saleFilter) {
	f.search, _ = r.query.text("search", maxSearch)
	text, present := r.query.text("type", 20)
	f.saleType = choice(r.query.input, text, present, "type", codeTypeInvalid, []string{"", typePurchase, typeReturn})
	f.customer = givenID(r.query.id("customerId"))
	f.externalID, _ = r.query.text("externalId", maxExternalID)
	f.from, f.to = r.span()
	f.registeredFrom = r.moment("registeredFrom", 0, false)
	return f
}

func getTransaction(r *request) action {
	explain := r.flag("explain")
	return func(t *txn) (any, error) {
		s, err := t.sales.get(r.pathID("transactionId"))
		if err != nil {
			return nil, err
		}
		return newExplainedSale(t, s, explain)
	}
}

// newExplainedSale shows a sale, with why it earned what it did if that is asked for.
func newExplainedSale(t *txn, s *sale, explain bool) (saleShape, error) {
	shape, err := newSaleShape(t, s)
	if err == nil && explain {
		shape.Explanation, err = newExplanation(t, s)
	}
	return shape, err
}

func registerTransaction(r *request) action {
	in := r.saleFields()
	r.mayRehearse()
	explain := r.flag("explain")
	if k, ok := r.saleRetry(in, r.body); ok {
		r.retries = append(r.retries, k)
	}
	return func(t *txn) (any, error) {
		shape, known, err := registerOrRepeat(t, in, r.dryRun, explain)
		if known {
			return repeated{shape}, err
		}
		return shape, err
	}
}

func (r *request) saleFields() newSale {
	in := newSale{Source: r.source()}
	in.Customer = r.requiredID("customerId", codeCustomerIDRequired)
	in.Total = r.above0("totalAmount", codeTotalAmountInvalid)
	text, present := r.fields.text("type", 100)
	in.Type = choice(r.fields.input, text, present, "type", codeTypeInvalid, []string{typePurchase, typeReturn})
	in.Items = r.items()
	in.ExternalID, _ = r.fields.text("externalId", maxExternalID)
	in.Comment = r.comment()
	in.Original = givenID(r.fields.id("originalTransactionId"))
	in.OccurredAt = r.occurredAt()
	in.Again = r.fields.flag("again")
	if in.Restore = r.fields.flag("restoreRedemptions"); in.Restore && r.key != nil { // a form looks at its member itself
		if err := r.key.mayUse("rewards:write"); err != nil {
			r.fields.fail(err)
		}
	}
	proof := r.proof()
	if in.Pay = r.payment(in.Type); in.Pay != nil {
		in.Pay.Proof = proof
	}
	in.Labels = r.labels(in.Type)
	return in
}

// items reads what was sold.
func (r *request) items() (list []item) {
	for _, f := range r.fields.list("items", maxItems) {
		var it item
		var present bool
		it.SKU, present = f.text("sku", maxSKU)
		if !present {
			f.invalid("sku", "es requerido")
		}
		if it.Price, present = f.number("price"); !present || it.Price < 0 {
			f.invalid("price", "debe ser mayor o igual a 0")
		}
		if it.Quantity, present = f.number("quantity"); !present || it.Quantity <= 0 {
			f.invalid("quantity", "debe ser mayor a 0")
		}
		list = append(list, it)
	}
	return list
}

// payment reads what a purchase says of points that pay for it; nil if none do.
func (r *request) payment(saleType string) *newPayment {
	pay, given := r.fields.inner("pay")
	if !given {
		return nil
	}
	in := new(newPayment)
	forms := 0
	for _, form := range []struct {
		name string
		to   *decimal
	}{{"points", &in.Points}, {"amount", &in.Amount}} {
		d, given := pay.number(form.name)
		if given {
			forms++
		}
		if given && d <= 0 {
			pay.invalid(form.name, "debe ser mayor a 0")
		}
		*form.to = d
	}
	if in.Max = pay.flag("max"); in.Max {
		forms++
	}
	if in.Hold = givenID(pay.id("hold")); in.Hold != nil {
		forms = max(forms, 1) // alone it is a form; beside points or an amount it says whose they are
	}
	in.Program = givenID(pay.id("loyaltyProgramId"))
	switch {
	case saleType == typeReturn:
		r.fields.invalid("pay", "solo vale en una compra")
	case forms != 1 || in.Max && in.Hold != nil:
		r.fields.invalid("pay", "debe tener exactamente uno de points, amount, max o hold")
	case r.key != nil: // a form looks at its member itself
		r.fields.fail(r.key.mayUse("points:write"))
	}
	return in
}

// occurredAt reads when a sale happened; 0 if absent. Whether that is too long ago is for
// the transaction to say, since a sale that is known may be sent again at any time.
func (r *request) occurredAt() instant {
	text, present := r.fields.text("occurredAt", 100)
	if !present {
		return 0
	}
	if at, ok := parseTime(text, r.cfg.zone); ok {
		return max(at, 1) // 0 stands for now
	}
	if _, isDate := parseMoment(text, r.cfg.zone, false); isDate { // which says no hour
		r.fields.fail(errOccurredAt(r.cfg))
	} else {
		r.fields.invalid("occurredAt", "debe ser una fecha ISO 8601")
	}
	return 0
}

// saleRetry is the key under which a purchase is recognized for 24 hours, if it has an
// externalId. Unique ones are recognized by themselves.
func (r *request) saleRetry(in newSale, body []byte) (retryKey, bool) {
	if in.Type != typePurchase || in.ExternalID == "" || r.cfg.uniqueExternalIDs() {
		return retryKey{}, false
	}
	if in.Pay != nil && in.Pay.Proof.Text != "" { // other digits are no other purchase
		body = bytes.ReplaceAll(body, []byte(strconv.Quote(in.Pay.Proof.Text)), []byte(`""`))
	}
	k := externalRetryKey(in.ExternalID, body)
	k.again = in.Again
	return k, true
}

// registerOrRepeat registers a sale, or returns the known one that is sent again, explained if explain
// is set.
func registerOrRepeat(t *txn, in newSale, dryRun, explain bool) (shape saleShape, known bool, err error) {
	s, err := t.sales.knownSale(in)
	if err != nil {
		return shape, false, err
	}
	if s != nil {
		shape, err = newExplainedSale(t, s, explain)
		return shape, true, err
	}
	s, c, err := t.sales.register(in)
	if err != nil {
		return shape, false, err
	}
	shape, err = newSold(t, s, c, dryRun, explain)
	return shape, false, err
}

// newSold shows a sale that was just registered, or, after a dry run, would have been.
func newSold(t *txn, s *sale, c *customer, dryRun, explain bool) (saleShape, error) {
	shape, err := newSaleShapeFor(t, s, c)
	if err == nil && explain {
		shape.Explanation, err = newExplanation(t, s)
	}
	if dryRun {
		shape.ID = nil
		if shape.Payment != nil {
			shape.Payment.MovementID = nil
		}
		for i := range shape.Redemptions {
			if x := &shape.Redemptions[i]; x.given() && s.Type == typePurchase {
				x.ID, x.Code = nil, nil
			}
		}
	}
	return shape, err
}

// Tickets.

func listTickets(r *request) action {
	p := r.page()
	var f ticketFilter
	text, present := r.query.text("status", 20)
	f.status = choice(r.query.input, text, present, "status", codeInvalidField, append([]string{""}, ticketStatuses...))
	f.externalID, _ = r.query.text("externalId", maxExternalID)
	f.from, f.to = r.span()
	return func(t *txn) (any, error) {
		found, total, err := t.tickets.list(f, p)
		if err != nil {
			return nil, err
		}
		return newList(t, found, total, p, r.ticketShape())
	}
}

func getTicket(r *request) action {
	return func(t *txn) (any, error) {
		return shaped(t, r.ticketShape())(t.tickets.get(r.pathID("ticketId")))
	}
}

// ticketShape shows tickets without their codes, which are worth points: they are in the answers of who
// makes them. A page looks at its member itself.
func (r *request) ticketShape() func(*txn, *ticket) (ticketShape, error) {
	if r.key != nil {
		return newTicketShape
	}
	return newCodedTicket
}

func makeTicket(r *request) action {
	var in newTicket
	if in.ExternalID, _ = r.fields.text("externalId", maxExternalID); in.ExternalID == "" && r.fields.err == nil {
		r.fields.fail(newError(codeExternalIDRequired).on("externalId"))
	}
	in.Total = r.above0("totalAmount", codeTotalAmountInvalid)
	in.Items = r.items()
	in.Comment = r.comment()
	in.OccurredAt = r.occurredAt()
	in.Labels = r.labels(typePurchase)
	return func(t *txn) (any, error) {
		x, known, err := t.tickets.make(in)
		if err != nil {
			return nil, err
		}
		shape, err := newCodedTicket(t, x)
		if known {
			return repeated{shape}, err
		}
		return shape, err
	}
}

func claimTicket(r *request) action {
	in := ticketClaim{Ticket: r.requiredText("ticket")}
	in.Customer = r.requiredID("customerId", codeCustomerIDRequired)
	if r.payment(typePurchase) != nil { // it was paid when it was sold
		r.fields.fail(newError(codePointsPaymentLate).on("pay"))
	}
	r.mayRehearse()
	explain := r.flag("explain")
	return func(t *txn) (any, error) {
		s, c, known, err := t.tickets.claim(in)
		if err != nil {
			return nil, err
		}
		if known {
			shape, err := newExplainedSale(t, s, explain)
			return repeated{shape}, err
		}
		return newSold(t, s, c, r.dryRun, explain)
	}
}

func cancelTicket(r *request) action {
	var in ticketCancel
	in.ExternalID, _ = r.fields.text("externalId", maxExternalID)
	in.Ticket, _ = r.fields.text("ticket", anyLength)
	if (in.ExternalID == "") == (in.Ticket == "") {
		r.fields.invalid("ticket", "debe venir, o externalId, y no los dos")
	}
	return func(t *txn) (any, error) {
		return okReply(shaped(t, newCodedTicket)(t.tickets.cancel(in)))
	}
}

// Batches.

type batchSale struct {
	newSale
	retry   []retryKey // under which it is recognized for 24 hours, if it is
	explain bool
}

type batchResult struct {
	Status      int        `json:"status"`
	Transaction *saleShape `json:"transaction,omitempty"`
	Error       *errorBody `json:"error,omitempty"`

	first []byte // the answer to the sale when it first came, in place of Transaction
}

func (v batchResult) appendJSON(b []byte) []byte {
	switch {
	case v.first != nil:
		b = append(appendRow(b, v.Status, "transaction"), bytes.TrimSpace(v.first)...)
	case v.Transaction != nil:
		b = v.Transaction.appendJSON(appendRow(b, v.Status, "transaction"))
	default:
		return appendFailedRow(b, v.Status, v.Error)
	}
	return append(b, '}')
}

type batchShape struct {
	Results []batchResult `json:"results"`
}

func (v batchShape) appendJSON(b []byte) []byte {
	return append(appendJSONList(append(b, `{"results":`...), v.Results), '}')
}

func registerBatch(r *request) action {
	rows := readBatch(r, "transactions", func(one *request, literal string) (row batchSale) {
		row.newSale = one.saleFields()
		if k, ok := r.saleRetry(row.newSale, []byte(literal)); ok {
			row.retry = []retryKey{k}
		}
		return row
	})
	r.mayRehearse()
	if r.flag("explain") {
		for i := range rows {
			rows[i].in.explain = true
		}
	}
	return func(t *txn) (any, error) {
		rehearsed := map[[16]byte]rehearsedSale{}
		results, err := eachOfBatch(t, rows, func(row *batchRow[batchSale]) (batchResult, error) {
			if r.dryRun {
				return rehearseRow(t, row, rehearsed)
			}
			return sellRow(t, row, false)
		}, func(status int, e *errorBody) batchResult { return batchResult{Status: status, Error: e} })
		return reply{http.StatusOK, batchShape{results}}, err
	}
}

type rehearsedSale struct {
	shape *saleShape
	seq   uint64
}

// rehearseRow is sellRow in a dry run, which keeps no answers: sold has the sales of earlier
// rows, by the names under which they would be recognized.
func rehearseRow(t *txn, row *batchRow[batchSale], sold map[[16]byte]rehearsedSale) (batchResult, error) {
	if row.in.retry == nil {
		return sellRow(t, row, true)
	}
	name := row.in.retry[0].name
	if first := sold[name]; first.shape != nil {
		s, err := t.sales.at(first.seq)
		if err != nil {
			return batchResult{}, err
		}
		if !s.whollyReturned() {
			return batchResult{Status: http.StatusOK, Transaction: first.shape}, nil
		}
		if !row.in.Again {
			return batchResult{}, errUndone(s.ID)
		}
	}
	result, err := sellRow(t, row, true)
	if err != nil {
		return result, err
	}
	n, err := t.count()
	if err != nil {
		return result, err
	}
	sold[name] = rehearsedSale{result.Transaction, n.Sales}
	return result, nil
}

// sellRow registers one sale of a batch as registerTransaction does.
func sellRow(t *txn, row *batchRow[batchSale], dryRun bool) (batchResult, error) {
	_, first, err := t.replays.first(row.in.retry)
	if err != nil {
		return batchResult{}, err
	}
	if first != nil {
		return batchResult{Status: http.StatusOK, first: first.Body}, nil
	}
	if row.fault != nil {
		return batchResult{}, row.fault
	}
	shape, known, err := registerOrRepeat(t, row.in.newSale, dryRun, row.in.explain)
	if err != nil {
		return batchResult{}, err
	}
	if known || dryRun {
		return batchResult{Status: http.StatusOK, Transaction: &shape}, nil
	}
	result := batchResult{Status: http.StatusCreated, Transaction: &shape}
	if row.in.retry == nil {
		return result, nil
	}
	body, err := encode(shape)
	if err != nil {
		return result, err
	}
	return result, t.replays.keep(row.in.retry, http.StatusCreated, body)
}
