package main

import (
	"bytes"
	"encoding/csv"
	"os"
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

// TestImportRetail imports real invoices and credit notes and compares every
// customer with a recomputation from the files that shares no code with the
// engine, on whole numbers of cents and points.
func TestImportRetail(t *testing.T) {
	skipRace(t)
	t.Parallel()
	s := newRetailShop(t)
	report, _ := s.importFile(t, importCustomers, "testdata/retail/customers.csv")
	if want := (importReport{Rows: 164, Added: 164}); !cmp.Equal(report, want) {
		t.Errorf("customers: %+v, want %+v", report, want)
	}
	report, _ = s.importFile(t, importSales, "testdata/retail/sales.csv")
	if want := (importReport{Rows: 3268, Added: 226}); !cmp.Equal(report, want) {
		t.Errorf("sales: %+v, want %+v", report, want)
	}

	want := recomputeRetail(t)
	s.wantRetailCustomers(want)
	s.wantRetailStatistics(want)

	// A second import does not change a single byte of the store.
	before := stored(t, s.engine.store)
	report, _ = s.importFile(t, importCustomers, "testdata/retail/customers.csv")
	if want := (importReport{Rows: 164, Known: 164}); !cmp.Equal(report, want) {
		t.Errorf("customers again: %+v, want %+v", report, want)
	}
	report, _ = s.importFile(t, importSales, "testdata/retail/sales.csv")
	if want := (importReport{Rows: 3268, Known: 226}); !cmp.Equal(report, want) {
		t.Errorf("sales again: %+v, want %+v", report, want)
	}
	if d := cmp.Diff(before, stored(t, s.engine.store)); d != "" {
		t.Errorf("a second import changed the store:\n%s", d)
	}
}

func (s *shop) wantRetailCustomers(want map[string]retailCustomer) {
	s.Helper()
	got := map[string]retailCustomer{}
	for _, c := range s.customerDetails() {
		if c.ExpiringPoints == nil {
			s.Errorf("%s: expiringPoints is null", c.Name)
		}
		got[*c.Email] = retailCustomer{
			balance: int(c.Balance / decimalOne), lifetime: int(c.LifetimePoints / decimalOne), cents: int(c.TotalSpent / 100),
			purchases: int(c.TransactionsCount), tier: *c.TierName,
		}
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(retailCustomer{})); d != "" {
		s.Errorf("customers differ (-recomputed +imported):\n%s", d)
	}
}

// wantRetailStatistics compares the statistics with the sums over all customers.
func (s *shop) wantRetailStatistics(customers map[string]retailCustomer) {
	s.Helper()
	balance, cents, tiers := 0, 0, map[string]int{}
	for _, c := range customers {
		balance += c.balance
		cents += c.cents
		tiers[c.tier]++
	}
	first := dayOf(instantOf(time.Date(2010, 11, 1, 12, 0, 0, 0, time.UTC)), time.UTC)
	stats := ask(s, func(t *txn) (*statistics, error) {
		return t.stats.answer(statsQuery{from: first, to: dayOf(t.now, t.cfg.zone), groupBy: groupMonth})
	})
	if got := int(stats.total.outstanding / decimalOne); got != balance {
		s.Errorf("outstanding = %d, balances add up to %d", got, balance)
	}
	if got := int((stats.total.tally.SalesAmount - stats.total.tally.ReturnsAmount) / 100); got != cents {
		s.Errorf("sales less returns = %d cents, customers spent %d", got, cents)
	}
	if n := stats.total.tally.Purchases + stats.total.tally.Returns; n != 226 || stats.total.customers != 164 {
		s.Errorf("%d sales, %d customers", n, stats.total.customers)
	}
	for _, tier := range stats.tiers {
		if int(tier.Customers) != tiers[tier.TierName] {
			s.Errorf("tier %s has %d customers, want %d", tier.TierName, tier.Customers, tiers[tier.TierName])
		}
	}
}

func (s *shop) customerDetails() []customerDetail {
	s.Helper()
	return ask(s, func(t *txn) ([]customerDetail, error) {
		found, _, err := t.customers.list(notHidden, page{1, 1000})
		if err != nil {
			return nil, err
		}
		var all []customerDetail
		for _, cust := range found {
			c, err := t.customers.get(cust)
			if err != nil {
				return nil, err
			}
			d, err := newCustomerDetail(t, c)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		return all, nil
	})
}

type retailCustomer struct {
	balance, lifetime, cents, purchases int
	tier                                string
}

// recomputeRetail applies the rules of the demo's program to the retail files: 50
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
