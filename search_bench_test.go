package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sello/internal/disk"
	"sello/internal/fold"
)

// Benchmarks of lists, searches and imports. Each search and list reports its time as
// a multiple of the time to read one customer of the same store.

var (
	benchCustomers = flag.Int("bench.customers", 20_000, "so many customers in benchmarks of lists")
	benchSales     = flag.Int("bench.sales", 20_000, "and so many sales")
	benchStore     = flag.String("bench.store", "", "keep the benchmarks' store in this file")
)

// A crowd makes customers and sales like those of a shop, the same ones each time.
type crowd struct{ rnd *rand.Rand }

func newCrowd() crowd { return crowd{rand.New(rand.NewPCG(1, 1))} }

var (
	crowdFirst = []string{"María", "José", "Guadalupe", "Juan", "Luis", "Ana", "Carlos", "Sofía", "Miguel", "Lucía", "Jorge", "Elena",
		"Ricardo", "Fernanda", "Andrés", "Valeria", "Raúl", "Ximena", "Óscar", "Paola", "Iván", "Renata", "Hugo", "Diana", "Tomás", "Noemí"}
	crowdLast = []string{"Hernández", "García", "Martínez", "López", "González", "Pérez", "Rodríguez", "Sánchez", "Ramírez", "Cruz", "Flores",
		"Gómez", "Morales", "Vázquez", "Jiménez", "Reyes", "Díaz", "Torres", "Gutiérrez", "Ruiz", "Mendoza", "Aguilar", "Ortiz", "Castillo",
		"Núñez", "Ibarra", "Zepeda", "Quintero", "Yáñez", "Xicoténcatl"}
	crowdMail = []string{"gmail.com", "gmail.com", "gmail.com", "hotmail.com", "outlook.com", "yahoo.com.mx", "empresa.mx"}
)

// customer returns the i-th customer. One in a thousand is called Villalobos.
func (c crowd) customer(i int) importRow {
	first, last := crowdFirst[c.rnd.IntN(len(crowdFirst))], crowdLast[c.rnd.IntN(len(crowdLast))]
	if i%1000 == 500 {
		last = "Villalobos"
	}
	return importRow{
		FirstName: first, LastName: last + " " + crowdLast[c.rnd.IntN(len(crowdLast))],
		Email: fmt.Sprintf("%s.%s%d@%s", fold.Text(first), fold.Text(last), i, crowdMail[c.rnd.IntN(len(crowdMail))]),
		Phone: crowdPhone(i),
	}
}

func crowdPhone(i int) string { return fmt.Sprintf("+5255%08d", (i*7919+12345)%100_000_000) }

// importing runs an import of n rows in batches.
func (s *shop) importing(kind string, n int, row func(int) importRow) {
	for i := 0; i < n; {
		in := importRequest{Org: "cafe-luna", Kind: kind, Import: "bench"}
		for ; i < n && len(in.Rows) < importBatch; i++ {
			in.Rows = append(in.Rows, row(i))
		}
		outcomes, err := s.admin().importRows(s.Context(), in)
		s.ok(err)
		for _, o := range outcomes {
			if !o.Added {
				s.Fatal(o)
			}
		}
	}
	_, err := s.admin().importDone(s.Context(), importEnd{Org: "cafe-luna", Import: "bench"})
	s.ok(err)
}

// newEmptyCrowd opens a shop in the file at path. A new file has no customers.
func newEmptyCrowd(b *testing.B, path string) *shop {
	_, missing := os.Stat(path)
	store, err := openBolt(path, disk.Options{NoSync: true, Dense: denseTables})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	s := &shop{TB: b, org: 1}
	s.setClock("2027-01-02T18:00:00Z")
	s.engine = newEngine(store, func() time.Time { return s.clock.time() }, cryptoSeed)
	s.ok(s.engine.open(b.Context()))
	if missing != nil {
		s.apply(setup{}.document())
	}
	return s
}

// newCrowdedShop opens a shop in a file, with customers and a year of sales.
func newCrowdedShop(b *testing.B) *shop {
	path := *benchStore
	if path == "" {
		path = filepath.Join(b.TempDir(), "crowd.db")
	}
	s := newEmptyCrowd(b, path)
	n := ask(s, func(t *txn) (*counters, error) { return t.count() })
	of := newCrowd()
	if n.Customers == 0 {
		s.importing(importCustomers, *benchCustomers, of.customer)
		s.importing(importSales, *benchSales, of.sale)
	}
	return s
}

// sale returns the i-th sale of a year. One in fifty is a return.
func (c crowd) sale(i int) importRow {
	year := 365 * oneDay / time.Duration(*benchSales)
	row := importRow{
		ExternalID: fmt.Sprintf("T-%d", i), Type: typePurchase, Total: fmt.Sprint(10 + c.rnd.IntN(990)),
		CreatedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * year).Format(layoutMillis),
		Phone:     crowdPhone(c.rnd.IntN(*benchCustomers)),
		Items:     []importItem{{"BAG", "1", "10"}, {"CUP", "2", "5"}},
	}
	if i%50 == 7 {
		row.Type = typeReturn
	}
	return row
}

// measured runs fn and reports its time as a multiple of reading one customer.
func (s *shop) measured(b *testing.B, fn func(*txn) error) {
	read := func(fn func(*txn) error) {
		ask(s, func(t *txn) (any, error) { return nil, fn(t) })
	}
	cust := ask(s, func(t *txn) (*customer, error) { return t.customers.at(uint64(*benchCustomers / 2)) })
	one := timeOf(b, 2000, func() {
		read(func(t *txn) error {
			c, err := t.customers.get(cust.ID)
			if err != nil {
				return err
			}
			d, err := newCustomerDetail(t, c)
			if err == nil {
				_, err = json.Marshal(d)
			}
			return err
		})
	})
	b.ReportAllocs()
	for b.Loop() {
		read(fn)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(one), "×get")
}

func BenchmarkSearch(b *testing.B) {
	s := newCrowdedShop(b)
	for _, test := range []struct{ name, needle string }{
		{"one", fmt.Sprintf("%d@", *benchCustomers-7)},
		{"phone", crowdPhone(*benchCustomers / 3)[3:]},
		{"spelled phone", "(55) " + crowdPhone(*benchCustomers / 3)[5:9] + "-" + crowdPhone(*benchCustomers / 3)[9:]},
		{"thousandth", "villalobos"},
		{"none", "qwertz"},
		{"none of common grams", "garciaperez"},
		{"3 characters", "mar"},
		{"4 characters", "garc"},
		{"everybody", "@"},
		{"domain", "gmail"},
		{"2 characters", "an"},
		{"whole e-mail", "fernanda.hernandez1234@hotmail.com"},
		{"3 words", "maria garcia lopez"},
		{"3 words, one rare", "maria garcia villalobos"},
		{"3 words, nobody has one", "maria garcia qwertz"},
		{"phone with retired prefix", "044 " + crowdPhone(*benchCustomers / 3)[3:5] + " " + crowdPhone(*benchCustomers / 3)[5:9] + " " + crowdPhone(*benchCustomers / 3)[9:]},
	} {
		b.Run(test.name, func(b *testing.B) {
			var total uint64
			s.measured(b, func(t *txn) (err error) {
				_, total, err = t.customers.search(test.needle, notHidden, page{1, 20})
				return err
			})
			b.ReportMetric(float64(total), "found")
			spent := float64(b.Elapsed()) / float64(b.N)
			if words := strings.Fields(test.needle); strings.HasPrefix(test.name, "3 words") {
				one := timeOf(b, 300, func() {
					for _, word := range words {
						ask(s, func(t *txn) (id []id, err error) {
							id, _, err = t.customers.search(word, notHidden, page{1, 20})
							return id, err
						})
					}
				}) / time.Duration(len(words))
				b.ReportMetric(spent/float64(one), "×word")
			}
		})
	}
}

func BenchmarkTransactionsSearch(b *testing.B) {
	s := newCrowdedShop(b)
	cust := ask(s, func(t *txn) (id, error) {
		c, err := t.customers.at(uint64(*benchCustomers / 3))
		return c.ID, err
	})
	day := func(month time.Month, d int) instant {
		return instantOf(time.Date(2026, month, d, 7, 31, 17, 0, time.UTC))
	}
	for _, test := range []struct {
		name   string
		filter saleFilter
	}{
		{"all", saleFilter{}},
		{"returns", saleFilter{saleType: typeReturn}},
		{"all, by date", saleFilter{byDate: true}},
		{"returns, by date", saleFilter{byDate: true, saleType: typeReturn}},
		{"search for one, by date", saleFilter{byDate: true, search: crowdPhone(*benchCustomers / 3)[3:]}},
		{"customer", saleFilter{customer: &cust}},
		{"customer's returns", saleFilter{customer: &cust, saleType: typeReturn}},
		{"externalId", saleFilter{externalID: "T-77"}},
		{"no such externalId", saleFilter{externalID: "nothing"}},
		{"search for one", saleFilter{search: crowdPhone(*benchCustomers / 3)[3:]}},
		{"search for one in thousand", saleFilter{search: "villalobos"}},
		{"search for one in thousand, returns", saleFilter{search: "villalobos", saleType: typeReturn}},
		{"search for tenth", saleFilter{search: "mar"}},
		{"search for everybody", saleFilter{search: "@"}},
		{"search for nobody", saleFilter{search: "qwertz"}},
		{"day", saleFilter{from: day(2, 3), to: day(2, 4)}},
		{"most of year", saleFilter{from: day(1, 3), to: day(12, 4)}},
		{"most of year, returns", saleFilter{from: day(1, 3), to: day(12, 4), saleType: typeReturn}},
		{"empty span", saleFilter{from: day(2, 3), to: day(2, 3)}},
		{"day, search for one in thousand", saleFilter{from: day(2, 3), to: day(2, 4), search: "villalobos"}},
		{"day, search for tenth", saleFilter{from: day(2, 3), to: day(2, 4), search: "mar"}},
		{"most of year, search for one in thousand", saleFilter{from: day(1, 3), to: day(12, 4), search: "villalobos"}},
		{"most of year, search for tenth", saleFilter{from: day(1, 3), to: day(12, 4), search: "mar"}},
		{"most of year, search for everybody", saleFilter{from: day(1, 3), to: day(12, 4), search: "@"}},
		{"most of year, search for one in thousand, returns", saleFilter{from: day(1, 3), to: day(12, 4), search: "villalobos", saleType: typeReturn}},
	} {
		if !test.filter.dated() || test.filter.to == 0 {
			test.filter.to = never
		}
		b.Run(test.name, func(b *testing.B) {
			var total uint64
			s.measured(b, func(t *txn) error {
				list, n, err := t.saleLists.find(test.filter, page{1, 20})
				if err != nil {
					return err
				}
				total = n
				for _, sold := range list {
					if _, err := newSaleShape(t, sold); err != nil {
						return err
					}
				}
				return nil
			})
			b.ReportMetric(float64(total), "found")
		})
	}
}

func BenchmarkCustomersPage(b *testing.B) {
	s := newCrowdedShop(b)
	pages := uint64(*benchCustomers / 20)
	for _, number := range []uint64{1, pages / 2, pages} {
		b.Run(fmt.Sprint(number), func(b *testing.B) {
			var items []customerItem
			s.measured(b, func(t *txn) error {
				list, _, err := t.customers.list(notHidden, page{number, 20})
				if err == nil {
					items, err = newCustomerItems(t, list)
				}
				return err
			})
			spent := float64(b.Elapsed()) / float64(b.N)
			encoding := timeOf(b, 1000, func() {
				if _, err := json.Marshal(items); err != nil {
					b.Fatal(err)
				}
			})
			b.ReportMetric(spent/float64(encoding), "×encoding")
		})
	}
}
