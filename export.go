package main

import (
	"context"
	"slices"
	"strings"
)

// The columns and rows that sello export writes: customers, sales, movements and redemptions. Exports
// go in pages of rows, so that no answer holds a whole organization.

type exportRequest struct {
	Org   string `json:"org"`
	Kind  string `json:"kind"`  // a kind of exportColumns
	After uint64 `json:"after"` // number of the last record received
	Full  bool   `json:"full"`  // with fullColumns

	Segment string `json:"segment"` // key of the customers' segment; "": all
}

// what says what is exported, for the audit log.
func (in exportRequest) what() string {
	if in.Segment != "" {
		return segmentData(in.Segment)
	}
	return in.Kind
}

// segmentData says, for the audit log, that the customers of a segment were exported.
func segmentData(key string) string { return "segment:" + key }

// An exportPage holds some rows. Next is After of the next request, 0 at the end.
type exportPage struct {
	Rows [][]string `json:"rows"`
	Next uint64     `json:"next"`
}

// exportBatch is how many records one page holds.
const exportBatch = 500

// exportColumns lists the columns of each kind of file. Imports of customers and
// sales take them too.
var exportColumns = map[string][]string{
	importCustomers: {"firstName", "lastName", "email", "phoneNumber", "externalId", "birthDate", "marketing", "marketingAt"},
	importSales:     {"externalId", "createdAt", "email", "phoneNumber", "type", "totalAmount", "sku", "quantity", "price", "comment"},
	exportMovements: {"id", "createdAt", "email", "phoneNumber", "program", "type", "category", "amount", "balance", "expiresAt", "transactionId", "redemptionId", "comment"},
	redemptionsFile: {
		"id", "code", "customerId", "firstName", "lastName", "email", "phoneNumber", "rewardName", "pointsSpent", "status",
		"createdAt", "usedAt", "cancelledAt", "expiresAt", "transactionId",
	},
}

// fullColumns are the columns that a full export adds. Of these only enrolled, customerId and labels
// are imported.
var fullColumns = map[string][]string{
	importCustomers: {"id", "memberCode", "tier", "balance", "pending", "expiring", "enrolled", "status"},
	importSales:     {"id", "customerId", "points", "source", "registeredAt", "createdBy", "pointsPaid", "amountPaid", "amountDue", "labels"},
	exportMovements: {"rule", "createdBy", "reference"},
}

func columnsOf(in exportRequest) []string {
	if in.Full {
		return slices.Concat(exportColumns[in.Kind], fullColumns[in.Kind])
	}
	return exportColumns[in.Kind]
}

func (a *admin) exportRows(ctx context.Context, in exportRequest) (*exportPage, error) {
	page, err := look(ctx, a, in.Org, func(t *txn) (*exportPage, error) { return exportRows(t, in) })
	if err == nil && in.After == 0 { // the first of the file
		a.noteTaken(ctx, in.Org, auditDataExported, in.what())
	}
	return page, err
}

func exportRows(t *txn, in exportRequest) (*exportPage, error) {
	if in.Kind == importCustomers && in.Segment != "" {
		return exportMembers(t, in)
	}
	n, err := t.count()
	if err != nil {
		return nil, err
	}
	var total uint64
	var rows func(t *txn, number uint64, full bool) ([][]string, error)
	switch in.Kind {
	case importCustomers:
		total, rows = n.Customers, exportCustomerRow
	case importSales:
		total, rows = n.Sales, exportSaleRows
	case exportMovements:
		total, rows = n.Movements, exportMovementRow
	case redemptionsFile:
		total, rows = n.Redemptions, exportRedemptionRow
	default:
		return nil, adminErrorf("no hay exportación de %q", in.Kind)
	}
	page := new(exportPage)
	last := min(in.After+exportBatch, total)
	for number := in.After + 1; number <= last; number++ {
		more, err := rows(t, number, in.Full)
		if err != nil {
			return nil, err
		}
		page.Rows = append(page.Rows, more...)
	}
	if last < total {
		page.Next = last
	}
	return page, nil
}

// exportMembers returns the rows of customers of a segment.
func exportMembers(t *txn, in exportRequest) (*exportPage, error) {
	s := t.cfg.segmentKey(in.Segment)
	if s == nil {
		return nil, adminErrorf("no hay ningún segmento %q%s", in.Segment, thereAre(keysOf(t.cfg.Segments)))
	}
	found, next, err := t.rules.members(s, in.After, exportBatch)
	page := &exportPage{Next: next}
	for _, cust := range found {
		c, err := t.customers.listed(cust)
		if err != nil {
			return nil, err
		}
		rows, err := customerRows(t, c, in.Full)
		if err != nil {
			return nil, err
		}
		page.Rows = append(page.Rows, rows...)
	}
	return page, err
}

func exportCustomerRow(t *txn, number uint64, full bool) ([][]string, error) {
	c, err := t.customers.at(number)
	if err != nil {
		return nil, err
	}
	return customerRows(t, c, full)
}

// customerRows returns the row of a customer, none of a hidden one. In a full export it has the
// points in the customer's own program.
func customerRows(t *txn, c *customer, full bool) ([][]string, error) {
	if c.hidden() {
		return nil, nil
	}
	row := []string{c.FirstName, c.LastName, c.Email, c.Phone, c.ExternalID, c.BirthDate.String(), c.Marketing.Answer.text(), momentCell(c.Marketing.At)}
	if !full {
		return [][]string{row}, nil
	}
	a, err := t.points.account(c, t.cfg.programNumber(c.Program))
	if err != nil {
		return nil, err
	}
	expiring, err := t.points.expiring(a)
	if err != nil {
		return nil, err
	}
	var sums []string
	for _, s := range expiring {
		sums = append(sums, s.ExpiresAt.time().In(t.cfg.zone).Format("2006-01-02")+": "+s.Amount.String())
	}
	current, _ := a.tier()
	return [][]string{append(row,
		c.ID.String(), textOr(t.customers.memberCode(c), ""), current.name(), a.Balance.String(), a.Pending.String(), strings.Join(sums, "; "), c.CreatedAt.String(), c.Status)}, nil
}

// exportSaleRows returns a row for each item of a sale, or one row if it has no items.
func exportSaleRows(t *txn, number uint64, full bool) ([][]string, error) {
	s, err := t.sales.at(number)
	if err != nil {
		return nil, err
	}
	c, err := t.merges.owner(s.Customer)
	if err != nil {
		return nil, err
	}
	name, err := exportName(t, s)
	if err != nil {
		return nil, err
	}
	var more []string
	if full {
		by, err := exportCreator(t, s.By)
		if err != nil {
			return nil, err
		}
		more = []string{s.ID.String(), c.ID.String(), s.points().String(), s.Source, s.RegisteredAt.String(), by}
		more = append(append(more, paymentCells(s)...), s.due().String(), labelsCell(s.Labels))
	}
	var rows [][]string
	row := func(sku, quantity, price string) {
		rows = append(rows, append([]string{
			name, s.CreatedAt.String(), c.Email, c.Phone, s.Type, s.Total.String(), sku, quantity, price, s.Comment,
		}, more...))
	}
	for _, it := range s.Items {
		row(it.SKU, it.Quantity.String(), it.Price.String())
	}
	if len(s.Items) == 0 {
		row("", "", "")
	}
	return rows, nil
}

// paymentCells are the points that paid a part of a sale and their amount, empty where none did.
func paymentCells(s *sale) []string {
	if s.Payment == nil {
		return []string{"", ""}
	}
	points, amount := s.paid()
	return []string{points.String(), amount.String()}
}

// labelsCell is labels as JSON, which an import reads again; empty where there are none.
func labelsCell(list saleLabels) string {
	if len(list) == 0 {
		return ""
	}
	return string(list.appendJSON(nil))
}

// exportName returns the externalId of a sale. It returns the id where there is no
// externalId or another sale of the type has the same, since rows that share one are
// one sale. A return has the name of its purchase, so that an import links it again.
func exportName(t *txn, s *sale) (string, error) {
	if s.Previous != (id{}) {
		purchase, err := t.sales.get(s.Previous)
		if err != nil {
			return "", err
		}
		return exportName(t, purchase)
	}
	if s.ExternalID == "" {
		return s.ID.String(), nil
	}
	prefix := t.sales.externalKey(s.ExternalID)
	for e, err := range scan(t.Tx, prefix, false) {
		if err != nil {
			return "", err
		}
		other, err := t.sales.at(uintIn(e.Key[len(prefix):]))
		if err != nil {
			return "", err
		}
		if other.Seq != s.Seq && other.ExternalID == s.ExternalID && other.Type == s.Type {
			return s.ID.String(), nil
		}
	}
	return s.ExternalID, nil
}

func exportMovementRow(t *txn, number uint64, full bool) ([][]string, error) {
	m, err := t.points.movement(number)
	if err != nil {
		return nil, err
	}
	c, err := t.merges.owner(m.Customer)
	if err != nil {
		return nil, err
	}
	row := []string{
		m.id().String(), m.CreatedAt.String(), c.Email, c.Phone, t.cfg.programNumber(m.Program).Key, m.movementType(), m.Category,
		m.Amount.String(), m.Balance.String(), momentCell(m.Expires), idCell(m.Transaction), idCell(m.Redemption), m.Comment,
	}
	if !full {
		return [][]string{row}, nil
	}
	rules, err := exportRules(t, m)
	if err != nil {
		return nil, err
	}
	by, err := exportCreator(t, m.By)
	return [][]string{append(row, rules, by, m.Reference)}, err
}

// exportRedemptionRow returns the row of a redemption, as it is now.
func exportRedemptionRow(t *txn, number uint64, _ bool) ([][]string, error) {
	x, err := t.rewards.redemptionAt(number)
	if err != nil {
		return nil, err
	}
	c, err := t.merges.owner(x.Customer)
	if err != nil {
		return nil, err
	}
	return [][]string{{
		x.ID.String(), x.Code, c.ID.String(), c.FirstName, c.LastName, c.Email, c.Phone, x.RewardName, x.Points.String(), x.status(t.now),
		x.CreatedAt.String(), momentCell(x.UsedAt), momentCell(x.CancelledAt), momentCell(x.Expires), idCell(x.Sale),
	}}, nil
}

// points is what a sale gave the customer in the own program; below 0 what it took back.
func (s *sale) points() decimal {
	if s.Type == typeReturn {
		return -s.Reversed
	}
	return s.Earned
}

// exportRules lists the rules that gave the points of a purchase, by name; "" for other
// movements. Points of sign-up and birthday rules have the rule's name as their comment.
func exportRules(t *txn, m *movement) (string, error) {
	if !m.isEarned() {
		return "", nil
	}
	s, err := t.sales.get(m.Transaction)
	if err != nil {
		return "", err
	}
	share := s.shareIn(m.Program)
	if share == nil {
		return "", nil
	}
	var names []string
	for _, r := range share.Rules {
		if r.Points != 0 {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, "; "), nil
}

// exportCreator is who made a record: the type and, as far as they are known, the name or
// else the id, and the actor: "Key: Caja 1 (Luis)".
func exportCreator(t *txn, c creator) (string, error) {
	by, err := newCreatedBy(t, c)
	if err != nil || by == nil {
		return "", err
	}
	text := by.Type
	if name := textOr(by.Name, idCell(c.ID)); name != "" {
		text += ": " + name
	}
	if by.Actor != nil {
		text += " (" + *by.Actor + ")"
	}
	return text, nil
}

// momentCell leaves out a moment that did not or will not come.
func momentCell(at instant) string {
	if at == 0 || at == never {
		return ""
	}
	return at.String()
}

func idCell(u id) string {
	if u == (id{}) {
		return ""
	}
	return u.String()
}
