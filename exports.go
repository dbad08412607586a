package main

import (
	"context"
	"strings"
)

// Exports go in pages of rows, so that no answer holds a whole organization.

type exportRequest struct {
	Org   string `json:"org"`
	Kind  string `json:"kind"`  // customers, sales or movements
	After uint64 `json:"after"` // number of the last record received
	Full  bool   `json:"full"`  // customers with fullColumns
}

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
	importCustomers: {"firstName", "lastName", "email", "phoneNumber", "externalId", "birthDate"},
	importSales:     {"externalId", "createdAt", "email", "phoneNumber", "type", "totalAmount", "sku", "quantity", "price", "comment"},
	exportMovements: {"id", "createdAt", "email", "phoneNumber", "program", "type", "category", "amount", "balance", "expiresAt", "transactionId", "redemptionId", "comment"},
}

// fullColumns are the columns that a full export of customers adds. Only enrolled is
// imported.
var fullColumns = []string{"id", "tier", "balance", "pending", "expiring", "enrolled", "status"}

func (a *admin) exportRows(ctx context.Context, in exportRequest) (*exportPage, error) {
	org, err := a.organization(ctx, in.Org)
	if err != nil {
		return nil, err
	}
	return read(ctx, a.engine, org, instantOf(a.engine.now()), func(t *txn) (*exportPage, error) { return t.exportRows(in) })
}

func (t *txn) exportRows(in exportRequest) (*exportPage, error) {
	n, err := t.count()
	if err != nil {
		return nil, err
	}
	var total uint64
	var rows func(uint64) ([][]string, error)
	switch in.Kind {
	case importCustomers:
		if total, rows = n.Customers, t.customerRow; in.Full {
			rows = t.fullRow
		}
	case importSales:
		total, rows = n.Sales, t.saleRows
	case exportMovements:
		total, rows = n.Movements, t.movementRow
	default:
		return nil, adminErrorf("no hay exportación de %q", in.Kind)
	}
	page := new(exportPage)
	last := min(in.After+exportBatch, total)
	for number := in.After + 1; number <= last; number++ {
		more, err := rows(number)
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

// customerRow returns the row of a customer in an export.
func (t *txn) customerRow(number uint64) ([][]string, error) {
	c, err := t.customerAt(number)
	if err != nil || c.hidden() {
		return nil, err
	}
	return [][]string{shortRow(c)}, nil
}

func shortRow(c *customer) []string {
	return []string{c.FirstName, c.LastName, c.Email, c.Phone, c.ExternalID, c.BirthDate.String()}
}

// fullRow returns the row of a customer in a full export: also its points, in its own
// program.
func (t *txn) fullRow(number uint64) ([][]string, error) {
	c, err := t.customerAt(number)
	if err != nil || c.hidden() {
		return nil, err
	}
	a, err := t.account(c, t.cfg.programNumber(c.Program))
	if err != nil {
		return nil, err
	}
	expiring, err := t.expiring(a)
	if err != nil {
		return nil, err
	}
	var sums []string
	for _, s := range expiring {
		sums = append(sums, s.ExpiresAt.time().In(t.cfg.zone).Format("2006-01-02")+": "+s.Amount.String())
	}
	current, _ := a.tier()
	return [][]string{append(shortRow(c),
		c.ID.String(), current.name(), a.Balance.String(), a.Pending.String(), strings.Join(sums, "; "), c.CreatedAt.String(), c.Status)}, nil
}

// saleRows returns a row for each item of a sale, or one row if it has no items.
func (t *txn) saleRows(number uint64) ([][]string, error) {
	s, err := t.saleAt(number)
	if err != nil {
		return nil, err
	}
	c, err := t.owner(s.Customer)
	if err != nil {
		return nil, err
	}
	name, err := t.exportName(s)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	row := func(sku, quantity, price string) {
		rows = append(rows, []string{
			name, s.CreatedAt.String(), c.Email, c.Phone, s.Type, s.Total.String(), sku, quantity, price, s.Comment,
		})
	}
	for _, it := range s.Items {
		row(it.SKU, it.Quantity.String(), it.Price.String())
	}
	if len(s.Items) == 0 {
		row("", "", "")
	}
	return rows, nil
}

// exportName returns the externalId of a sale. It returns the id where there is no
// externalId or another sale of the type has the same, since rows that share one are
// one sale. A return has the name of its purchase, so that an import links it again.
func (t *txn) exportName(s *sale) (string, error) {
	if s.Previous != (id{}) {
		purchase, err := t.sale(s.Previous)
		if err != nil {
			return "", err
		}
		return t.exportName(purchase)
	}
	if s.ExternalID == "" {
		return s.ID.String(), nil
	}
	prefix := t.externalKey(s.ExternalID)
	for e, err := range scan(t.Tx, prefix, false) {
		if err != nil {
			return "", err
		}
		other, err := t.saleAt(uintIn(e.Key[len(prefix):]))
		if err != nil {
			return "", err
		}
		if other.Seq != s.Seq && other.ExternalID == s.ExternalID && other.Type == s.Type {
			return s.ID.String(), nil
		}
	}
	return s.ExternalID, nil
}

func (t *txn) movementRow(number uint64) ([][]string, error) {
	m, err := t.movement(number)
	if err == nil {
		err = t.readComment(m)
	}
	if err != nil {
		return nil, err
	}
	c, err := t.owner(m.Customer)
	if err != nil {
		return nil, err
	}
	expires := ""
	if m.Expires != never && m.Expires != 0 {
		expires = m.Expires.String()
	}
	orEmpty := func(u id) string {
		if u == (id{}) {
			return ""
		}
		return u.String()
	}
	return [][]string{{
		m.id().String(), m.CreatedAt.String(), c.Email, c.Phone, t.cfg.programNumber(m.Program).Key, m.movementType(), m.Category,
		m.Amount.String(), m.Balance.String(), expires, orEmpty(m.Transaction), orEmpty(m.Redemption), m.Comment,
	}}, nil
}
