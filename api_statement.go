package main

import "slices"

// The export of one person: one JSON object with everything that is kept about a customer
// (contract §12). A customer may have very many records, so the object comes in parts.
//
//	{"exportedAt": …, "customer": its detail,
//	 "notices": [who wrote to it by hand], "undoRequests": [who asked to undo what],
//	 "accounts": [its balance in a program, "movements": […]], "transactions": […],
//	 "redemptions": […], "auditEntries": […],
//	 "mergedCustomers": [objects like this one, of the customers that became part of it]}
//
// Lists are newest first. Records that are made meanwhile are not in them.

// exportPart is roughly how many bytes one part has.
const exportPart = 64 << 10

// A personExport is an export and how far it has come.
type personExport struct {
	family []*customer // the customer, then those that were merged into it
	person int         // in family
	stage  exportStage
	first  bool // the next element is the first of its list

	program     int          // in the configuration; of the next account or of the movements
	movements   uint64       // seq of the next one; 0: none
	written     uint64       // seq of the last movement that is in the store
	inAccount   bool         // movements are of an account whose object is open
	sales       uint64       // seq of the next one; 0: none
	redemptions uint64       // seq of the next one, or above it; 0: none
	audit       auditFilter  // of the next entries
	entries     []auditShape // read and not yet written
}

type exportStage int

const (
	exportHead exportStage = iota
	exportAccounts
	exportSales
	exportRedemptions
	exportAudit
	exportEnd
	exported
)

func exportCustomer(r *request) action {
	return func(t *txn) (any, error) {
		c, err := t.customers.get(r.pathID("customerId"))
		if err != nil {
			return nil, err
		}
		family, err := t.merges.family(c)
		return &personExport{family: family}, err
	}
}

// next is bodyParts.next.
func (x *personExport) next(t *txn, b []byte) (part []byte, rest bodyParts, err error) {
	n, err := t.count()
	if err != nil {
		return nil, nil, err
	}
	after := *x
	x = &after
	x.written = n.Movements
	for start := len(b); x.stage != exported && (len(b)-start < exportPart || x.isAhead()); {
		if b, err = x.step(t, b); err != nil {
			return nil, nil, err
		}
	}
	if x.stage == exported {
		return b, nil, nil
	}
	return b, x, nil
}

// isAhead reports whether only this transaction has the next movement: the export shows what is
// due before the sweep writes it down. The next part would lack the movement, or find another one
// in its place.
func (x *personExport) isAhead() bool { return x.inAccount && x.movements > x.written }

// step appends the next element, or what is between two lists.
func (x *personExport) step(t *txn, b []byte) ([]byte, error) {
	switch x.stage {
	case exportHead:
		return x.head(t, b)
	case exportAccounts:
		return x.account(t, b)
	case exportSales:
		return x.sale(t, b)
	case exportRedemptions:
		return x.redemption(t, b)
	case exportAudit:
		return x.auditEntry(t, b)
	}
	return x.end(b), nil
}

// begin begins a stage. text ends the list of the stage before.
func (x *personExport) begin(b []byte, s exportStage, text string) []byte {
	x.stage, x.first = s, true
	return append(b, text...)
}

// comma appends a comma before each element of a list except the first.
func (x *personExport) comma(b []byte) []byte {
	if x.first {
		x.first = false
		return b
	}
	return append(b, ',')
}

func (x *personExport) head(t *txn, b []byte) ([]byte, error) {
	c := x.family[x.person]
	d, err := newCustomerDetail(t, c)
	if err != nil {
		return nil, err
	}
	n, err := t.count()
	if err != nil {
		return nil, err
	}
	x.program, x.sales, x.redemptions = 0, c.Sales.last(), n.Redemptions
	x.audit = auditFilter{to: never, subject: c.ID.String(), before: n.Audit + 1}
	b = t.now.appendJSON(append(b, `{"exportedAt":`...))
	if b, err = appendEncoded(append(b, `,"customer":`...), d); err != nil {
		return nil, err
	}
	written, err := newWrittenShapes(t, c)
	if err != nil {
		return nil, err
	}
	if b, err = appendEncoded(append(b, `,"notices":`...), written); err != nil {
		return nil, err
	}
	asked, err := newAskedShapes(t, c)
	if err != nil {
		return nil, err
	}
	if b, err = appendEncoded(append(b, `,"undoRequests":`...), asked); err != nil {
		return nil, err
	}
	return x.begin(b, exportAccounts, `,"accounts":[`), nil
}

// account appends the customer's next account, or its next movement.
func (x *personExport) account(t *txn, b []byte) ([]byte, error) {
	if x.inAccount {
		return x.movement(t, b)
	}
	if x.program == len(t.cfg.Programs) {
		return x.begin(b, exportSales, `],"transactions":[`), nil
	}
	c, p := x.family[x.person], t.cfg.Programs[x.program]
	x.program++
	_, written, err := t.Get(t.points.accountKey(c, p))
	if err != nil || !written {
		return b, err
	}
	a, err := t.points.account(c, p)
	if err != nil {
		return nil, err
	}
	shown, err := newBalance(t, a)
	if err != nil {
		return nil, err
	}
	b = shown.appendJSON(x.comma(b))
	current, _ := a.tier()
	b = p.ID.appendJSON(append(b[:len(b)-1], `,"loyaltyProgramId":`...))
	b = appendJSONText(append(b, `,"tierName":`...), current.nameOrNull())
	if b, err = x.holds(t, append(b, `,"holds":[`...), a); err != nil {
		return nil, err
	}
	x.inAccount, x.first, x.movements = true, true, a.Movements.last()
	return append(b, `],"movements":[`...), nil
}

// holds appends the holds of an account, newest first.
func (x *personExport) holds(t *txn, b []byte, a *account) ([]byte, error) {
	ids, err := t.points.holdIDs(a.customer.ID)
	if err != nil {
		return nil, err
	}
	first := true
	for _, u := range slices.Backward(ids) {
		h, err := t.points.holdAt(u)
		if err != nil {
			return nil, err
		}
		if h.Program != a.program.Number {
			continue
		}
		shape, err := newHoldShape(t, h)
		if err != nil {
			return nil, err
		}
		if !first {
			b = append(b, ',')
		}
		b, first = shape.appendJSON(b), false
	}
	return b, nil
}

func (x *personExport) movement(t *txn, b []byte) ([]byte, error) {
	for m, err := range t.points.chainFrom(x.movements) {
		if err != nil {
			return nil, err
		}
		shape, err := newMovementShape(t, m)
		x.movements = m.Link.Prev
		return shape.appendJSON(x.comma(b)), err
	}
	x.inAccount, x.first = false, false
	return append(b, `]}`...), nil
}

func (x *personExport) sale(t *txn, b []byte) ([]byte, error) {
	for s, err := range t.sales.chainFrom(x.sales) {
		if err != nil {
			return nil, err
		}
		shape, err := newSaleShape(t, s)
		x.sales = s.Link.Prev
		return shape.appendJSON(x.comma(b)), err
	}
	return x.begin(b, exportRedemptions, `],"redemptions":[`), nil
}

func (x *personExport) redemption(t *txn, b []byte) ([]byte, error) {
	for r, err := range t.rewards.until(x.family[x.person].ID, x.redemptions) {
		if err != nil {
			return nil, err
		}
		shape, err := newRedemptionShape(t, r)
		if err != nil {
			return nil, err
		}
		x.redemptions = r.Seq - 1
		return appendEncoded(x.comma(b), shape)
	}
	return x.begin(b, exportAudit, `],"auditEntries":[`), nil
}

// auditEntry appends the next entry of the audit log whose subject is the customer.
func (x *personExport) auditEntry(t *txn, b []byte) ([]byte, error) {
	if len(x.entries) == 0 {
		list, _, err := t.audit.entries(x.audit, page{1, 100})
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			shape, err := newAuditShape(t, e)
			if err != nil {
				return nil, err
			}
			x.entries = append(x.entries, shape)
			x.audit.before = e.Seq
		}
		if len(list) == 0 {
			return x.begin(b, exportEnd, `],"mergedCustomers":[`), nil
		}
	}
	shape := x.entries[0]
	x.entries = x.entries[1:]
	return appendEncoded(x.comma(b), shape)
}

// end goes on to the next customer of the family. The first customer's list of merged customers
// is still open at this point.
func (x *personExport) end(b []byte) []byte {
	if x.person > 0 {
		b = append(b, "]}"...)
	}
	if x.person++; x.person == len(x.family) {
		x.stage = exported
		return append(b, "]}\n"...)
	}
	if x.stage = exportHead; x.person > 1 {
		b = append(b, ',')
	}
	return b
}

// appendEncoded appends a value as JSON, without the end of a line.
func appendEncoded(b []byte, v any) ([]byte, error) {
	text, err := encode(v)
	if err != nil {
		return nil, err
	}
	return append(b, text[:len(text)-1]...), nil
}
