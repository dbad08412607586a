package main

import (
	"slices"
	"time"
)

// The export of one person is one JSON object with everything that is kept about a customer
// (contract §12). A customer may have very many records, so the object comes in parts. The
// statement of a month, in parts too, is further below.
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
	family []*customer // the customer, then its stubs
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

// A statement is the movements of one month of an account, in the order of their dates, with the
// account's state before and after (contract §22). It speaks of what is written: the ledger up to
// the last movement dated up to the statement's end. That movement's hash is the digest. So a sale
// that comes later does not make it false, and `sello verify -statement` can tell whether it is the
// ledger's (admin_statement.go).
//
// The statement of a month that is not over ends with its last movement. Names of keys and people
// are not in it, since the ledger has none.
type statement struct {
	customer         *customer
	program          *program
	month            string
	from, to         instant
	opening, closing pointSums
	movements        []uint64 // by date
	digest           ledgerHash
}

// A statementHead is what a statement says besides its movements.
type statementHead struct {
	CustomerID       id        `json:"customerId"`
	LoyaltyProgramID id        `json:"loyaltyProgramId"`
	Month            string    `json:"month"`
	From             instant   `json:"from"`
	To               instant   `json:"to"`
	Opening          pointSums `json:"opening"`
	Closing          pointSums `json:"closing"`
}

func (s *statement) head() statementHead {
	return statementHead{s.customer.ID, s.program.ID, s.month, s.from, s.to, s.opening, s.closing}
}

const monthForm = "2006-01"

// monthOf reads a month as a query has it: its first and last moment in a zone.
func monthOf(text string, zone *time.Location) (from, to instant, ok bool) {
	first, err := time.Parse(monthForm, text)
	if err != nil || first.Year() < 1 {
		return 0, 0, false
	}
	from = dayOn(first.Date()).start(zone)
	to = dayOn(first.AddDate(0, 1, 0).Date()).start(zone) - 1
	return max(from, firstMoment), min(to, lastMoment), true
}

// month reads the month of a statement. A month that is yet to come has no statement.
func (r *request) month() string {
	text, present := r.query.text("month", 20)
	from, _, ok := monthOf(text, r.cfg.zone)
	switch {
	case !present:
		r.query.invalid("month", "es requerido")
	case !ok:
		r.query.invalid("month", "debe ser un mes como 2026-11")
	case from > r.now:
		r.query.invalid("month", "no puede ser un mes futuro")
	}
	return text
}

func getStatement(r *request) action {
	month := r.month()
	program := givenID(r.query.id("loyaltyProgramId"))
	return func(t *txn) (any, error) {
		c, p, err := r.accountAsked(t, program)
		if err != nil {
			return nil, err
		}
		return &statementParts{statement: &statement{customer: c, program: p, month: month}}, nil
	}
}

// newStatement makes the statement of a month that has begun.
func newStatement(t *txn, c *customer, p *program, month string) (*statement, error) {
	a, err := t.points.storedAccount(c, p)
	if err != nil {
		return nil, err
	}
	return statementUpTo(t, a, month, a.Movements.last(), true)
}

// statementUpTo makes the statement that says no more than the chain up to the movement at last:
// of the whole month if that is asked for and the month is over, else up to its last movement.
func statementUpTo(t *txn, a *account, month string, last uint64, whole bool) (*statement, error) {
	s := &statement{customer: a.customer, program: a.program, month: month}
	s.from, s.to, _ = monthOf(month, t.cfg.zone)
	list, err := datedChain(t, last, s.to)
	if err != nil {
		return nil, err
	}
	if !whole || s.to >= t.now {
		if s.to = s.from; len(list) > 0 {
			s.to = max(s.to, list[len(list)-1].at)
		}
	}
	r, end := newLedgerReplay(t), uint64(0)
	for i, d := range list {
		if first := i == 0 || list[i-1].at < s.from; first && d.at >= s.from {
			s.opening = r.sumsAt(s.from - 1)
		}
		m, err := r.play(d.seq)
		if err != nil {
			return nil, err
		}
		if d.at >= s.from {
			s.movements = append(s.movements, d.seq)
		}
		if d.seq > end {
			end, s.digest = d.seq, m.Hash
		}
	}
	if len(s.movements) == 0 {
		s.opening = r.sumsAt(s.from - 1)
	}
	s.closing = r.sumsAt(s.to)
	return s, nil
}

func (r *ledgerReplay) sumsAt(at instant) pointSums {
	r.passTo(at)
	return r.pointSums
}

// statedMovement is the shape of a movement in a statement.
func statedMovement(t *txn, seq uint64) (movementShape, error) {
	m, err := t.points.movement(seq)
	if err != nil {
		return movementShape{}, err
	}
	shape, err := newMovementShape(t, m)
	if err == nil && shape.CreatedBy != nil {
		shape.CreatedBy.Name = nil
	}
	return shape, err
}

// statementParts are a statement as a body: a month may have very many movements. The first part
// makes the statement.
type statementParts struct {
	*statement
	made bool
	done int // movements that are written
}

func (s *statementParts) next(t *txn, b []byte) (part []byte, rest bodyParts, err error) {
	after, start := *s, len(b)
	if s = &after; !s.made {
		if s.statement, err = newStatement(t, s.customer, s.program, s.month); err != nil {
			return nil, nil, err
		}
		s.made = true
	}
	if s.done == 0 {
		head, err := encode(s.head())
		if err != nil {
			return nil, nil, err
		}
		b = append(append(b, head[:len(head)-2]...), `,"movements":[`...)
	}
	for ; s.done < len(s.movements); s.done++ {
		if len(b)-start >= exportPart {
			return b, s, nil
		}
		shape, err := statedMovement(t, s.movements[s.done])
		if err != nil {
			return nil, nil, err
		}
		if s.done > 0 {
			b = append(b, ',')
		}
		b = shape.appendJSON(b)
	}
	digest, err := s.digest.MarshalText()
	return append(append(append(b, `],"digest":"`...), digest...), "\"}\n"...), nil, err
}

// lateOf counts the movements of an account that are dated up to the end of a month and were
// written after the movement at last.
func lateOf(t *txn, a *account, month string, last uint64) (n uint64, err error) {
	_, to, _ := monthOf(month, t.cfg.zone)
	list, err := datedChain(t, a.Movements.last(), to)
	return uint64(len(slices.DeleteFunc(list, func(d datedSeq) bool { return d.seq <= last }))), err
}
