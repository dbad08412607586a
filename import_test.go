package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// importFile imports a file and returns the report and the rejected rows.
func (s *shop) importFile(t *testing.T, kind, name string) (importReport, string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	im := s.importer(t, kind)
	if err := im.run(file); err != nil {
		t.Fatal(err)
	}
	rejected := ""
	if name := im.report.Errors; name != "" {
		rejected = string(readFile(t, name))
	}
	im.report.Errors = ""
	return im.report, rejected
}

// importer returns an importer for one file.
func (s *shop) importer(t testing.TB, kind string) *importer {
	t.Helper()
	known, err := newHeadings(kind, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &importer{
		ctx: context.Background(), call: s.admin().direct, request: importRequest{Org: "cafe-luna", Kind: kind}, importSheet: importSheet{headings: known},
		started: time.Now(), rejects: rejects{of: filepath.Join(t.TempDir(), "file")},
	}
}

// TestImportBroken imports a file in which most rows are wrong, each in its
// own way: the good ones go in, and each bad one is explained.
func TestImportBroken(t *testing.T) {
	t.Parallel()
	s := newRetailShop(t)
	s.importFile(t, importCustomers, "testdata/retail/customers.csv")
	added := map[string]int{importCustomers: 4, importSales: 3}
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
		if report.Added != added[kind] {
			t.Errorf("%s: %+v, want %d added", kind, report, added[kind])
		}
		again, rejectedAgain := s.importFile(t, kind, "testdata/import/"+kind+".csv")
		if again.Added != 0 || again.Known != report.Added+report.Known || rejectedAgain != rejected {
			t.Errorf("%s again: %+v", kind, again)
		}
	}
}

// TestImportIndexes imports more customers than may wait for the search index.
func TestImportIndexes(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newRetailShop(t)
	indexed := func() uint64 {
		return ask(s, func(t *txn) (uint64, error) { return t.search.indexed() })
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
			_, total, err := t.search.find("ana", notHidden, page{1, 1})
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

// importText imports sales from the lines of a file. It returns how many are
// new, known and wrong, and the line and reason of each rejected one.
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

// TestImportRows shows which rows make up one sale.
func TestImportRows(t *testing.T) {
	t.Parallel()
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
		short = "tiene 3 columnas y debería tener 10"
		spoil = "una de las filas de la venta no es válida: la fila 3 " + short
		total = "totalAmount: \"10\": no es igual en todas las filas de la venta: la fila 3 tiene "
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
		{"items and none", []string{a1, aMore}, "0 new, 0 known, 1 wrong; 2 " + total + `"12"; 3 ` + total + `"12"`},
		{"totals differ", []string{a1, a11}, "0 new, 0 known, 1 wrong; 2 " + total + `"11"; 3 ` + total + `"11"`},
		{"returns of two moments", []string{a1, a2, r1, r2}, "3 new, 0 known, 0 wrong"},
		{"apart", []string{a1, b1, a2}, "2 new, 0 known, 0 wrong"},
		{"known at once", []string{a1, r1, a1}, "2 new, 0 known, 0 wrong"},
		{"a broken line within", []string{a1, bad, a2, b1}, "1 new, 0 known, 1 wrong; 2 " + spoil + "; 3 " + spoil + "; 4 " + spoil},
		{"a broken line apart", []string{a1, b1, a2, bad}, "1 new, 0 known, 1 wrong; 2 " + strings.Replace(spoil, "3", "5", 1) + "; 4 " + strings.Replace(spoil, "3", "5", 1) + "; 5 " + strings.Replace(spoil, "3", "5", 1)},
		{"a broken line after", []string{a1, bad, b1}, "1 new, 0 known, 1 wrong; 2 " + spoil + "; 3 " + spoil},
		{"a broken line before", []string{b1, bad, a1, a2}, "1 new, 0 known, 1 wrong; 3 " + spoil + "; 4 " + spoil + "; 5 " + spoil},
		{"a broken line of no sale", []string{b1, bad, b1}, "0 new, 0 known, 2 wrong; 2 " + spoil + "; 4 " + spoil + "; 3 " + short},
		{"a broken line whose sale nobody knows", []string{b1, `"`, aBare}, "2 new, 0 known, 1 wrong; 3 no es CSV válido: hay comillas mal puestas"},
		{"a row without its sale's cells", []string{a1, b1, ",,,,,,Y,1,5,"}, "1 new, 0 known, 1 wrong; 3 una de las filas de la venta no es válida: la fila 4 no lleva externalId; 4 una de las filas de la venta no es válida: la fila 4 no lleva externalId"},
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

// TestImportConflict shows that an import does not overwrite an existing sale.
func TestImportConflict(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.customer("ana")
	s.importText(t, "A,2026-01-05T10:00:00Z,ana@example.com,,Purchase,10,X,1,5,")
	const want = "0 new, 0 known, 1 wrong; 2 externalId: \"A\": ya se registró con otros datos"
	if got := s.importText(t, "A,2026-01-05T10:00:00Z,ana@example.com,,Purchase,9,X,1,5,"); got != want {
		t.Errorf("got %s", got)
	}
}

// TestImportOfToldSale shows that a sale the till already sent to the API
// counts once.
func TestImportOfToldSale(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-03-03T04:00:00Z", program: `"rules":[` + onePer1 + `]`}) // still 2 March there
	ana := s.customer("ana")
	_, err := s.sell(newSale{Customer: ana, Total: dec("10"), ExternalID: "A", Source: sourceAPI})
	s.ok(err)
	s.pass(2 * oneDay)
	for _, test := range []struct{ line, want string }{
		{"A,2026-03-02T06:00:00Z,ana@example.com,,Purchase,10,X,1,10,", "0 new, 1 known, 0 wrong"},
		{"A,2026-03-02T06:00:00Z,ana@example.com,,Purchase,11,X,1,11,", "1 new, 0 known, 0 wrong"},
		{"A,2026-03-03T06:00:00Z,ana@example.com,,Purchase,10,X,1,10,", "1 new, 0 known, 0 wrong"},
		{"A,2026-03-03T07:00:00Z,ana@example.com,,Purchase,10,X,1,10,", "1 new, 0 known, 0 wrong"}, // not the sale that the line above imported
	} {
		if got := s.importText(t, test.line); got != test.want {
			t.Errorf("%s: %s, want %s", test.line, got, test.want)
		}
	}
}

// TestImportSettles shows that old sales count with the tier of their time, and
// that the account is up to date once the import is done.
func TestImportSettles(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-03-02T10:00:00Z", program: `"expiry":{"days":30},
		"tierBasis":{"metric":"AmountSpent","window":"Rolling","months":1},
		"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100,"multiplier":2}],"rules":[` + onePer1 + `]`})
	ana := s.customer("ana")
	s.importText(t, "A,2025-01-05T10:00:00Z,ana@example.com,,Purchase,100,X,1,100,", "B,2025-01-06T10:00:00Z,ana@example.com,,Purchase,100,X,1,100,")
	a := ask(s, func(t *txn) (*account, error) {
		c, err := t.customers.get(ana)
		if err != nil {
			return nil, err
		}
		return t.points.storedAccount(c, t.cfg.Programs[0])
	})
	if a.Tier != "Bronce" || a.Balance != 0 || a.Due != never || a.Lifetime != dec("300") {
		t.Errorf("the account is left as %+v", a)
	}
	s.verified()
}

// TestImportOfTwoServers sweeps on one server while another one imports sales of long ago, of
// which the second finds the tier that the first one gave. The sweep waits for the next batch, for
// as long as a lease lasts, and for each of two imports.
func TestImportOfTwoServers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason   string
		between  func(shops [2]*shop)
		lifetime string // 300 if the sweep waited
	}{
		{"a sweep", func([2]*shop) {}, "300"},
		{"late", func(shops [2]*shop) { shops[0].lease().pass(9 * time.Second) }, "300"},
		{"too late", func(shops [2]*shop) { shops[0].lease().pass(10 * time.Second) }, "200"},
		{"while the other server imports too", func(shops [2]*shop) {
			shops[1].importRows("other")
			shops[1].importEnds("other")
		}, "300"},
		{"after a batch more", func(shops [2]*shop) {
			for range 3 {
				shops[0].lease().pass(9 * time.Second)
				shops[0].importRows("one")
			}
		}, "300"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			shops := newServers(t, setup{at: "2026-03-02T10:00:00Z", program: `"tierBasis":{"metric":"AmountSpent","window":"Rolling","months":1},
				"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100,"multiplier":2}],"rules":[` + onePer1 + `]`})
			ana := shops[0].customer("ana")
			for _, s := range shops {
				s.ok(s.engine.sweep(t.Context())) // gives its leases back
			}
			account := func() *account {
				return ask(shops[1], func(t *txn) (*account, error) {
					c, err := t.customers.get(ana)
					if err != nil {
						return nil, err
					}
					return t.points.storedAccount(c, t.cfg.Programs[0])
				})
			}
			shops[0].importRows("one", "2025-01-05T10:00:00Z")
			test.between(shops)
			s := shops[1]
			s.ok(s.engine.sweep(t.Context()))
			s.ok(s.engine.recount(t.Context()))
			shops[0].importRows("one", "2025-01-06T10:00:00Z")
			if a := account(); a.Tier != "Plata" && test.lifetime == "300" || a.Lifetime != dec(test.lifetime) {
				t.Errorf("the account is %+v, want %s points", a, test.lifetime)
			}
			shops[0].importEnds("one")
			if a := account(); a.Tier != "Bronce" {
				t.Errorf("the account is left as %+v", a)
			}
		})
	}
}

func (s *shop) lease() *memServer { return s.engine.store.Store.(*memServer) }

// importRows imports a batch with purchases of 100 by ana, at some moments.
func (s *shop) importRows(name string, at ...string) {
	s.Helper()
	in := importRequest{Org: "cafe-luna", Kind: importSales, Import: name}
	for _, at := range at {
		in.Rows = append(in.Rows, importRow{Email: "ana@example.com", ExternalID: at, CreatedAt: at, Type: "Purchase", Total: "100"})
	}
	outcomes, err := s.admin().importRows(s.Context(), in)
	s.ok(err)
	for _, o := range outcomes {
		if !o.Added {
			s.Fatalf("the row is not added: %+v", o)
		}
	}
}

func (s *shop) importEnds(name string) {
	_, err := s.admin().importDone(s.Context(), importEnd{Org: "cafe-luna", Import: name})
	s.ok(err)
}

// TestImportDailyMaximum shows that a rule's limit holds for the day of the
// sale, even if the rows alternate between two days.
func TestImportDailyMaximum(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-03-02T18:00:00Z", program: `"rules":[{"key":"a","name":"a","points":1,"maxPerCustomerPerDay":1}]`})
	ana := s.customer("ana")
	s.buy(ana, "1")
	s.importText(t, "A,2026-02-05T18:00:00Z,ana@example.com,,Purchase,1,,,,", "B,2026-02-05T18:00:01Z,ana@example.com,,Purchase,1,,,,")
	s.wantStanding(ana, "2 0 2", "one today, one that day")
	s.buy(ana, "1")
	s.wantStanding(ana, "2 0 2", "today's is still used up")
	s.pass(40 * oneDay) // longer than a sale may be late
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

// TestImportPartFails: if some rows cannot be stored, no later row is stored either,
// even one begun before the failure was known. Otherwise a return could be stored
// without its purchase, and stay so.
func TestImportPartFails(t *testing.T) {
	t.Parallel()
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
			rows = append(rows, sale("B", "bea", typePurchase), sale("A", "ana", typeReturn)) // the return is in a part of its own
			in := importRequest{Org: "cafe-luna", Kind: importSales, Import: "1", Rows: rows}

			if broken != nil {
				whole := s.engine.store
				ofBea := func(key []byte) error {
					if key[0] == 'c' && bytes.Contains(key, bea[:]) {
						return broken(key)
					}
					return nil
				}
				s.engine.store = watch(wrappedStore{Store: whole.Store, update: func(tx Tx) Tx { return brokenTx{Tx: tx, get: ofBea} }})
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
	t.Parallel()
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
		{"customers", "", "email,phoneNumber,rfc", `columnas desconocidas: "rfc"; con -ignore rfc se dejan fuera; con -map "rfc"=campo se toma una por otra: firstName (nombre), lastName (apellido), email (correo)`},
		{"customers", "", "email,phoneNumber,Colonia,CP", `columnas desconocidas: "Colonia", "CP"; con -ignore Colonia,CP se dejan fuera`},
		{"customers", "", "email,Correo 2", `columnas desconocidas: "Correo 2"; con -ignore "Correo 2" se dejan fuera`},
		{"customers", "", "email,phoneNumber,", ""},
		{"customers", "", "email,phoneNumber,line,reason", `columnas desconocidas: "line", "reason"`},
		{"customers", "-ignore puntos", "email,phoneNumber,puntos", ""},
		{"customers", "-ignore puntos", "email,phoneNumber,puntos,rfc", `columnas desconocidas: "rfc"`},
		{"customers", "-ignore puntos,rfc", "email,phoneNumber,puntos,rfc", ""},
		{"customers", "-ignore puntos -ignore rfc", "email,phoneNumber,Puntos,rfc,puntos", ""},
		{"customers", "-ignore=", "email,phoneNumber,,", ""},
		{"customers", "-ignore a,b", `email,phoneNumber,"a,b",a,b`, ""},
		{"customers", "-ignore email", "email,phoneNumber", ""},
		{"customers", "", "Nombre,CURP", `faltan columnas: email (correo) o phoneNumber (teléfono); el archivo tiene: "Nombre", "CURP"; columnas desconocidas: "CURP"; con -ignore CURP se dejan fuera; con -map "CURP"=campo se toma`},
		{"customers", "", "Nombre", `faltan columnas: email (correo) o phoneNumber (teléfono); el archivo tiene: "Nombre"; con -map "COLUMNA"=campo`},
		{"customers", "", "email,phoneNumber,Correo", `la columna email está dos veces: "email" y "Correo"`},
		{"customers", "-map correo_2=email -map buzón=teléfono", "CORREO_2,buzón", ""},
		{"customers", "-map correo_2=e-mail -ignore correo", "Correo_2,Correo", ""},
		{"customers", "-map otra=email", "correo,x", `-map "otra": el archivo no tiene esa columna; tiene: "correo", "x"`},
		{"customers", "-map correo=rfc", "correo", `-map "correo"=rfc: no hay columna rfc; hay: firstName (nombre), `},
		{"sales", "", customers, "faltan columnas: createdAt (fecha), totalAmount (total)"},
		{"sales", "", "Fecha;Folio;Correo electrónico;Importe;Código de producto;Piezas;Precio unitario;Notas", ""},
		{"customers", "", "Nombre(s);Apellido paterno;Apellido materno;Teléfono celular;E-MAIL;Fecha de nacimiento;Puntos;Fecha de vencimiento;Cliente desde;Puntos históricos;No. de cliente", ""},
		{"customers", "", "First Name\tlast_name\tMobile\tEmail Address\tDate of Birth\tPoints\tExpires\tJoined\tLifetime Points\tCustomer ID", ""},
	} {
		separators := strings.Map(func(r rune) rune {
			if strings.ContainsRune(",;\t", r) {
				return r
			}
			return -1
		}, strings.ReplaceAll(test.header, `"a,b"`, ""))
		row := "x" + separators
		file := s.file("file.csv", test.header+"\n"+row+"\n")
		code, out, told := s.run("import " + test.kind + " " + test.flags + " " + file)
		added := map[string]string{"customers": "nuevos", "sales": "nuevas"}[test.kind]
		ended := strings.Contains(out, "1 fila: 0 "+added+", 0 que ya estaban, 1 con errores") // the only row is empty
		if code != 1 && code != 2 || ended != (test.fault == "") || !strings.Contains(told, test.fault) {
			t.Errorf("%s %s of %s: %d\n%s%s", test.kind, test.flags, test.header, code, out, told)
		}
	}
}

// TestImportMended imports the corrected error file of an earlier import.
func TestImportMended(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply " + s.file("org.json", string(setup{}.document())))
	file := s.file("file.csv", "email,phoneNumber,notas,firstName\nana@example.com,,5,Ana\neva,,7,Eva\n")
	s.run("import customers -ignore notas " + file)
	rejected := string(readFile(t, file+".errors.csv"))
	if want := "line,reason,email,phoneNumber,notas,firstName\n3,\"email: \"\"eva\"\": no es un email válido\",eva,,7,Eva\n"; rejected != want {
		t.Fatalf("rejected: %s", rejected)
	}
	s.ok("import customers -ignore notas " + s.file("mended.csv", strings.Replace(rejected, ",eva,", ",eva@example.com,", 1)))
	if out := s.ok("export customers -raw"); out != "firstName,lastName,email,phoneNumber,externalId,birthDate,marketing,marketingAt\nAna,,ana@example.com,,,,,\nEva,,eva@example.com,,,,,\n" {
		t.Error(out)
	}
}

// BenchmarkImportCustomers imports into a new file and includes the search index.
func BenchmarkImportCustomers(b *testing.B) {
	for b.Loop() {
		s := newEmptyCrowd(b, filepath.Join(b.TempDir(), "import.db"))
		of := newCrowd()
		s.importing(importCustomers, *benchCustomers, of.customer)
	}
	b.ReportMetric(float64(b.N)*float64(*benchCustomers)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkImportBalances imports a file with balances as Excel in Spain writes it.
func BenchmarkImportBalances(b *testing.B) {
	var text bytes.Buffer
	text.WriteString("Nombre;Apellido;Correo;Teléfono;No. de cliente;Cumpleaños;Alta;Puntos;Vencen;Puntos históricos\r\n")
	of := newCrowd()
	for i := range *benchCustomers {
		row := of.customer(i)
		fmt.Fprintf(&text, "%s;%s;%s;%s;%07d;%02d/%02d/%d;05/03/2019;%d,5;31/12/2090;%d\r\n", row.FirstName, row.LastName, row.Email, row.Phone, i, i%28+1, i%12+1, 1950+i%50, i%5000, i%20000)
	}
	for b.Loop() {
		s := newEmptyCrowd(b, filepath.Join(b.TempDir(), "import.db"))
		im := s.importer(b, importCustomers)
		s.ok(im.run(bytes.NewReader(text.Bytes())))
		if im.report.Added != *benchCustomers || im.report.Wrong != 0 {
			b.Fatalf("%+v", im.report)
		}
	}
	b.ReportMetric(float64(b.N)*float64(*benchCustomers)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkImportSales(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := newEmptyCrowd(b, filepath.Join(b.TempDir(), "import.db"))
		of := newCrowd()
		s.importing(importCustomers, *benchCustomers, of.customer)
		b.StartTimer()
		s.importing(importSales, *benchSales, of.sale)
	}
	b.ReportMetric(float64(b.N)*float64(*benchSales)/b.Elapsed().Seconds(), "rows/s")
}

// TestImportAfterPhoneMoved: sales once imported for a phone are not recorded again for
// the customer who has that phone now.
func TestImportAfterPhoneMoved(t *testing.T) {
	t.Parallel()
	s := newRetailShop(t)
	file := filepath.Join(t.TempDir(), "sales.csv")
	text := "email,phoneNumber,createdAt,type,totalAmount,externalId\n,+525512345678,2009-12-10T10:00:00Z,Purchase,100,POS-1\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	enrol := func(e enrolment) *customer {
		return must(s, func(t *txn) (*customer, error) {
			c, _, err := t.customers.enrol(e)
			return c, err
		})
	}
	ana := enrol(enrolment{Phone: "+525512345678"})
	if report, rejected := s.importFile(t, importSales, file); report.Added != 1 {
		t.Fatalf("%+v %s", report, rejected)
	}
	must(s, func(t *txn) (*customer, error) {
		c, err := t.customers.get(ana.ID)
		if err != nil {
			return nil, err
		}
		after := *c
		after.Phone = "+525587654321"
		return &after, t.customers.change(c, &after)
	})
	enrol(enrolment{Phone: "+525512345678"})
	if report, rejected := s.importFile(t, importSales, file); report.Added != 0 || !strings.Contains(rejected, `externalId: ""POS-1"": ya se registró con otros datos`) {
		t.Errorf("%+v %s", report, rejected)
	}
}

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

// runArgs is run for arguments with blanks.
func (s *till) runArgs(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, environment{s.getenv, s.names, strings.NewReader(""), &out, &errs})
	return code, out.String(), errs.String()
}

func newOpenTill(t *testing.T) *till {
	t.Helper()
	s := newTill(t)
	s.ok("apply " + s.file("org.json", string(setup{program: `"rules":[{"key":"hola","name":"Hola","on":"Signup","points":5}]`}.document())))
	return s
}

// TestImportTwice imports an Excel file with balances twice, with and without a server.
func TestImportTwice(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	for _, served := range []bool{false, true} {
		s := newOpenTill(t)
		if served {
			r, _ := s.start("serve")
			defer r.stop()
		}
		file := s.file("clientes.csv", string(readFile(t, "testdata/sheets/excel-spain.csv")))
		const opened = "7 filas: 7 nuevos, 0 que ya estaban, 0 con errores\n5 saldos iniciales: 1001337.75 puntos en total\n"
		for _, step := range []struct{ flags, want string }{
			{"-dry-run ", opened + "es un ensayo: no se guardó nada\n"},
			{"-dry-run ", opened + "es un ensayo: no se guardó nada\n"},
			{"", opened},
			{"", "7 filas: 0 nuevos, 7 que ya estaban, 0 con errores\n"},
			{"-dry-run ", "7 filas: 0 nuevos, 7 que ya estaban, 0 con errores\nes un ensayo: no se guardó nada\n"},
		} {
			if got := s.ok("import customers " + step.flags + file); got != step.want {
				t.Errorf("served %t, %q: %s", served, step.flags, got)
			}
		}
		if out := s.ok("verify"); !strings.Contains(out, "todo cuadra") || !strings.Contains(out, "12 movimientos") {
			t.Errorf("verify: %s", out)
		}
		left, err := filepath.Glob(filepath.Join(s.dir, "*dry-run*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left: %v (%v)", left, err)
		}
	}
}

// TestDryRun: a dry run says what a file would do that depends on its own rows, far apart,
// writes the file of errors, and stores nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	s := newOpenTill(t)
	var text strings.Builder
	text.WriteString("teléfono,puntos\n")
	const rows = importBatch + 10
	for i := range rows {
		fmt.Fprintf(&text, "55%08d,1\n", 10_000_000+i)
	}
	text.WriteString("5510000000,1\n5510000001,2\n")
	file := s.file("c.csv", text.String())
	before := s.ok("verify")
	code, out, told := s.run("import customers -dry-run -json " + file)
	for _, want := range []string{`"added": 4010`, `"known": 1`, `"wrong": 1`, `"openingPoints": 4010`, `"dryRun": true`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
	if code != 1 || told != "sello: no se importaría todo: 1 registro con errores\n" {
		t.Errorf("%d %s", code, told)
	}
	if after := s.ok("verify"); after != before {
		t.Errorf("before %s, after %s", before, after)
	}
	if got := string(readFile(t, file+".errors.csv")); got != "line,reason,teléfono,puntos\n4013,\"puntos: \"\"2\"\": el cliente ya tiene un saldo inicial de 1\",5510000001,2\n" {
		t.Error(got)
	}
}

// TestImportProgram: an unknown program is an error before anything is stored.
func TestImportProgram(t *testing.T) {
	t.Parallel()
	s := newOpenTill(t)
	code, _, told := s.run("import customers -program sellos " + s.file("c.csv", "correo,puntos\nana@example.com,5\n"))
	if code != 1 || told != "sello: no hay ningún programa \"sellos\"; hay: club\n" {
		t.Errorf("%d %s", code, told)
	}
	if out := s.ok("export customers"); strings.Count(out, "\n") != 1 {
		t.Error(out)
	}
}

// TestSheets imports one list of customers as Excel, LibreOffice and Google Sheets save it
// (tools/sheets). All files give the same customers and points; another of them imported
// afterwards adds nothing.
func TestSheets(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("testdata/sheets")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 14 {
		t.Errorf("%d files", len(files))
	}
	want := ""
	for i, f := range files {
		s := newShop(t, setup{at: "2026-11-23T10:00:00Z", program: twoTiers})
		name := filepath.Join("testdata/sheets", f.Name())
		report, rejected := s.importFile(t, importCustomers, name)
		if report.Added != 7 || report.Wrong != 0 || report.OpeningBalances != 5 || report.OpeningPoints != dec("1001337.75") {
			t.Fatalf("%s: %+v\n%s", f.Name(), report, rejected)
		}
		var out bytes.Buffer
		s.ok((csvForm{}).write(t.Context(), s.admin().direct, exportRequest{Org: "cafe-luna", Kind: importCustomers, Full: true}, &out))
		got := maskedIDs(out.String())
		if want == "" {
			want = got
			if golden := "testdata/import/sheets.golden.csv"; *updateGolden {
				writeFile(t, golden, []byte(got))
			} else if d := cmp.Diff(string(readFile(t, golden)), want); d != "" {
				t.Errorf("%s (-want +got):\n%s", f.Name(), d)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s is not like %s (-want +got):\n%s", f.Name(), files[0].Name(), d)
		}
		again := files[(i+1)%len(files)].Name()
		if report, _ := s.importFile(t, importCustomers, filepath.Join("testdata/sheets", again)); report.Known != 7 || report.Added+report.Wrong+report.OpeningBalances != 0 {
			t.Errorf("%s after %s: %+v", again, f.Name(), report)
		}
	}
}

// TestImportSomebodyElse: a row that has one contact of a customer is not taken as that
// customer's if it may be of somebody else (contract §19).
func TestImportSomebodyElse(t *testing.T) {
	t.Parallel()
	const head = "nombre,apellido,correo,teléfono,externalId,puntos\n"
	for _, test := range []struct {
		reason, rows string
		want         string // the outcome, and what the file of errors says
		samePerson   string // the outcome with -same-person
	}{
		{"three people share a phone",
			"Ana,Rodríguez,ana@example.com,5512345678,,100\nLuis,Paz,luis@example.com,5512345678,,100\nEva,Sol,eva@example.com,5512345678,,100\n",
			"1 new, 0 known, 2 wrong, 0 warned; 3 el teléfono ya es de otra persona: Ana R…, fila 2; 4 el teléfono ya es de otra persona: Ana R…, fila 2",
			"1 new, 2 known, 0 wrong, 0 warned"},
		{"two share an e-mail, as couples do", "Ana,Rodríguez,ana@example.com,5512345678,,\nLuis,Paz,ana@example.com,5587654321,,\n",
			"1 new, 0 known, 1 wrong, 0 warned; 3 el email ya es de otra persona: Ana R…, fila 2", "1 new, 1 known, 0 wrong, 0 warned"},
		{"a customer of before", "Luis,Paz,luis@example.com,5500000001,,\n",
			"0 new, 0 known, 1 wrong, 0 warned; 2 el teléfono ya es de otra persona: Rosa M…, externalId R-1", "0 new, 1 known, 0 wrong, 0 warned"},
		{"a customer of before, without externalId", "Luis,Paz,luis@example.com,5500000002,,\n",
			"0 new, 0 known, 1 wrong, 0 warned; 2 el teléfono ya es de otra persona: Juan C…", "0 new, 1 known, 0 wrong, 0 warned"},
		{"a customer of before, without a name", "Luis,Paz,luis@example.com,5500000003,,\n",
			"0 new, 0 known, 1 wrong, 0 warned; 2 el teléfono ya es de otra persona", "0 new, 1 known, 0 wrong, 0 warned"},
		{"the same row again", "Ana,Rodríguez,ana@example.com,5512345678,,100\nAna,Rodríguez,ana@example.com,5512345678,,100\n",
			"1 new, 1 known, 0 wrong, 0 warned", "1 new, 1 known, 0 wrong, 0 warned"},
		{"another name with the same contacts: she married", "Ana,Rodríguez,ana@example.com,5512345678,,1\nAna,Paz,ana@example.com,5512345678,,1\n",
			"1 new, 1 known, 0 wrong, 0 warned", "1 new, 1 known, 0 wrong, 0 warned"},
		{"another name, one contact", "Ana,Rodríguez,,5512345678,,100\nLuis,Paz,,5512345678,,\n",
			"1 new, 1 known, 0 wrong, 1 warned; 3 aviso: el teléfono es de un cliente con otro nombre, y se tomó por la misma persona: Ana R…, fila 2", "1 new, 1 known, 0 wrong, 0 warned"},
		{"another name, one contact, points", "Ana,Rodríguez,,5512345678,,100\nLuis,Paz,,5512345678,,100\n",
			"1 new, 0 known, 1 wrong, 0 warned; 3 el teléfono ya es de otra persona: Ana R…, fila 2", "1 new, 1 known, 0 wrong, 0 warned"},
		{"no points are none", "Ana,Rodríguez,,5512345678,,\nLuis,Paz,,5512345678,,0\n",
			"1 new, 1 known, 0 wrong, 1 warned; 3 aviso: el teléfono es de un cliente con otro nombre, y se tomó por la misma persona: Ana R…, fila 2", "1 new, 1 known, 0 wrong, 0 warned"},
		{"the same name, as people write it", "Ana  María,Rodríguez,,5512345678,,100\n ANA MARIA rodriguez,,,5512345678,,100\n",
			"1 new, 1 known, 0 wrong, 0 warned", "1 new, 1 known, 0 wrong, 0 warned"},
		{"no name is not another", "Ana,Rodríguez,,5512345678,,100\n,,,5512345678,,100\n", "1 new, 1 known, 0 wrong, 0 warned", "1 new, 1 known, 0 wrong, 0 warned"},
		{"no name yet", "Luis,Paz,,5500000003,,100\n", "0 new, 1 known, 0 wrong, 0 warned", "0 new, 1 known, 0 wrong, 0 warned"},
		{"an empty contact is filled in", "Ana,Rodríguez,,5512345678,,100\nAna,Rodríguez,ana@example.com,5512345678,,100\nEva,Sol,eva@example.com,5512345678,,\n",
			"1 new, 1 known, 1 wrong, 0 warned; 4 el teléfono ya es de otra persona: Ana R…, fila 2", "1 new, 2 known, 0 wrong, 0 warned"},
		{"an empty contact, another name and points", "Ana,Rodríguez,,5512345678,,100\nEva,Sol,eva@example.com,5512345678,,100\n",
			"1 new, 0 known, 1 wrong, 0 warned; 3 el teléfono ya es de otra persona: Ana R…, fila 2", "1 new, 1 known, 0 wrong, 0 warned"},
		{"lines with an error before", "Zoe,,,,,\nLía,,mala,,,\nAna Rodríguez Paz,,,5512345678,,\nLuis,,l@example.com,5512345679,,\nEva,,,5512345678,,9\nLeo,,,5512345679,,9\n",
			"2 new, 0 known, 4 wrong, 0 warned; 2 Se requiere email o número de teléfono; 3 correo: \"mala\": no es un email válido; 6 el teléfono ya es de otra persona: Ana R…, fila 4; 7 el teléfono ya es de otra persona: Luis, fila 5", ""},
	} {
		for _, samePerson := range []bool{false, true} {
			want := test.want
			if samePerson {
				want = test.samePerson
			}
			if want == "" {
				continue
			}
			s := newShop(t, setup{})
			for i, e := range []enrolment{{FirstName: "Rosa", LastName: "Mora", ExternalID: "R-1"}, {FirstName: "Juan", LastName: "Cruz"}, {}} {
				e.Email, e.Phone = fmt.Sprintf("old%d@example.com", i), fmt.Sprintf("+52550000000%d", i+1)
				must(s, func(t *txn) (*customer, error) {
					c, _, err := t.customers.enrol(e)
					return c, err
				})
			}
			im := s.importer(t, importCustomers)
			im.request.SamePerson = samePerson
			s.ok(im.run(strings.NewReader(head + test.rows)))
			r := im.report
			if got := fmt.Sprintf("%d new, %d known, %d wrong, %d warned", r.Added, r.Known, r.Wrong, r.Warned) + toldIn(t, r.Errors, ','); got != want {
				t.Errorf("%s, -same-person %t:\n%s\nwant %s", test.reason, samePerson, got, want)
			}
			s.verified()
		}
	}
}

// TestImportSomebodyElseBatch: the row that a customer came from is told, however many batches
// and parts lie between.
func TestImportSomebodyElseBatch(t *testing.T) {
	t.Parallel()
	skipShort(t)
	var text strings.Builder
	text.WriteString("correo,teléfono\n")
	for i := range importBatch + importPartRows {
		fmt.Fprintf(&text, "c%d@example.com,55%08d\n", i, 10_000_000+i)
		if i%1000 == 0 {
			fmt.Fprint(&text, "mala,\n")
		}
	}
	text.WriteString("x@example.com,5510001001\n")
	s := newShop(t, setup{})
	im := s.importer(t, importCustomers)
	s.ok(im.run(strings.NewReader(text.String())))
	if got, want := toldIn(t, im.report.Errors, ','), "el teléfono ya es de otra persona, fila 1005"; !strings.HasSuffix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	if len(im.added) > 10 {
		t.Errorf("%d runs of new customers are kept", len(im.added))
	}
}

// TestImportSomebodyElseMerged: a row of somebody who became part of another customer is that
// customer's.
func TestImportSomebodyElseMerged(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.importCSV(t, "nombre,correo,teléfono\nAna,ana@example.com,\nAnita,anita@example.com,5512345678\n")
	ana, twin := s.byEmail("ana").ID, s.byEmail("anita").ID
	s.merged(ana, twin)
	for _, test := range []struct{ row, want string }{
		{"Anita,anita@example.com,5512345678", "0 new, 1 known, 0 wrong"},
		{"Anita,,5512345678", "0 new, 1 known, 0 wrong"},
		{"Luis,luis@example.com,5512345678", "0 new, 0 known, 1 wrong; 2 el teléfono ya es de otra persona: Ana"},
	} {
		if got := s.importCSV(t, "nombre,correo,teléfono\n"+test.row+"\n"); got != test.want {
			t.Errorf("%s: %s, want %s", test.row, got, test.want)
		}
	}
}

// TestImportSaleOfSomebodyElse: a sale with the contacts of two people is nobody's.
func TestImportSaleOfSomebodyElse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ reason, contacts, want, samePerson string }{
		{"the phone of another", "ana@example.com,5500000002", "0 new, 0 known, 1 wrong; 2 El email y el teléfono pertenecen a clientes distintos", "1 new, 0 known, 0 wrong"},
		{"an unknown phone", "ana@example.com,5500000009", "0 new, 0 known, 1 wrong; 2 el email ya es de otra persona: Ana R…", "1 new, 0 known, 0 wrong"},
		{"an unknown e-mail", "luis@example.com,5500000001", "0 new, 0 known, 1 wrong; 2 el teléfono ya es de otra persona: Ana R…", "1 new, 0 known, 0 wrong"},
		{"both are hers", "ana@example.com,5500000001", "1 new, 0 known, 0 wrong", "1 new, 0 known, 0 wrong"},
		{"one is hers", ",5500000001", "1 new, 0 known, 0 wrong", "1 new, 0 known, 0 wrong"},
		{"she has no phone yet", "eva@example.com,5500000009", "1 new, 0 known, 0 wrong", "1 new, 0 known, 0 wrong"},
		{"imported before, by her old phone", "old@example.com,5500000003", "0 new, 1 known, 0 wrong", "0 new, 1 known, 0 wrong"},
	} {
		for _, samePerson := range []bool{false, true} {
			s := newShop(t, setup{at: "2026-03-02T10:00:00Z"})
			s.importCSV(t, "nombre,apellido,correo,teléfono\nAna,Rodríguez,ana@example.com,5500000001\nLuz,Mar,luz@example.com,5500000002\nEva,Sol,eva@example.com,\nLía,Paz,old@example.com,5500000003\n")
			file := func(contacts string) string { return "A,2026-01-05T10:00:00Z," + contacts + ",Purchase,10,,,," }
			if strings.HasPrefix(test.contacts, "old@") {
				s.importText(t, file(test.contacts))
				lia := s.byEmail("old").ID
				must(s, func(t *txn) (*customer, error) {
					return t.customers.patch(lia, customerPatch{Email: new("lia@example.com")}, nil)
				})
			}
			im := s.importer(t, importSales)
			im.request.SamePerson = samePerson
			s.ok(im.run(strings.NewReader(strings.Join(exportColumns[importSales], ",") + "\n" + file(test.contacts))))
			want := test.want
			if samePerson {
				want = test.samePerson
			}
			if got := fmt.Sprintf("%d new, %d known, %d wrong", im.report.Added, im.report.Known, im.report.Wrong) + toldIn(t, im.report.Errors, ','); got != want {
				t.Errorf("%s, -same-person %t: %s, want %s", test.reason, samePerson, got, want)
			}
		}
	}
}

// TestImportOtherData: what a row says of a known customer and is not taken is a warning, not
// silence (contract §31).
func TestImportOtherData(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	const head = "nombre,correo,teléfono,externalId,cumpleaños\n"
	s.importCSV(t, head+"Ana,ana@example.com,5512345678,A-1,1990-05-14\nEva,,5512345679,E-1,1991-05-14\nLuz,luz@example.com,,,\nNoé,noe@example.com,,,02-29\n")
	s.merged(s.byEmail("ana").ID, s.byEmail("luz").ID)
	for _, test := range []struct{ row, want string }{
		{"Ana,ana@example.com,5512345678,A-1,14/05/1990", ""},
		{"Ana,ana@example.com,5512345678,,", ""},
		{"Ana,ana@example.com,5512345678,A-1,15/05/1990", "aviso: el cliente tiene otra fecha de nacimiento, 1990-05-14, y la conserva"},
		{"Ana,ana@example.com,,A-2,1990-05-15", "aviso: el cliente tiene otra fecha de nacimiento, 1990-05-14, y la conserva; el cliente tiene otro externalId, A-1, y lo conserva"},
		{"Ana,ana@example.com,,,05-14", ""},
		{"Ana,ana@example.com,,,--05-14", ""},
		{"Ana,ana@example.com,,,14/05", ""},
		{"Ana,ana@example.com,,,15/05", "aviso: el cliente tiene otra fecha de nacimiento, 1990-05-14, y la conserva"},
		{"Noé,noe@example.com,,,28/02", "aviso: el cliente tiene otra fecha de nacimiento, --02-29, y la conserva"},
		{"Noé,noe@example.com,,,28/02/1992", "aviso: el cliente tiene otra fecha de nacimiento, --02-29, y la conserva"},
		{"Noé,noe@example.com,,,29/02/1992", ""},
		{"Noé,noe@example.com,,,29/02/1996", "aviso: el cliente tiene otra fecha de nacimiento, 1992-02-29, y la conserva"},
		{"Noé,noe@example.com,,,02-29", ""},
		{"Eve,,5512345679,E-2,", "aviso: el cliente tiene otro externalId, E-1, y lo conserva; el teléfono es de un cliente con otro nombre, y se tomó por la misma persona: Eva, externalId E-1"},
	} {
		want := "0 new, 1 known, 0 wrong"
		if test.want != "" {
			want += "; 2 " + test.want
		}
		if got := s.importCSV(t, head+test.row+"\n"); got != want {
			t.Errorf("%s:\n%s\nwant %s", test.row, got, want)
		}
	}
	for email, want := range map[string]birthDate{"ana": 19900514, "noe": 19920229} {
		if got := s.byEmail(email).BirthDate; got != want {
			t.Errorf("%s was born %s, want %s", email, got, want)
		}
	}
	s.verified()
}
