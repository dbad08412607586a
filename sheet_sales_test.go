package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// salesThere lists the sales of a shop, each with the skus of its items.
func (s *shop) salesThere() string {
	return ask(s, func(t *txn) (string, error) {
		n, err := t.count()
		told := []string{}
		for seq := uint64(1); err == nil && seq <= n.Sales; seq++ {
			var x *sale
			if x, err = t.sales.at(seq); err != nil {
				break
			}
			text := fmt.Sprint(x.ExternalID, " ", x.Type, " ", x.Total)
			for _, i := range x.Items {
				text += " " + i.SKU
			}
			if x.Previous != (id{}) {
				text += " of its purchase"
			}
			told = append(told, text)
		}
		return strings.Join(told, "; "), err
	})
}

const gatheredHeader = "ticket,fecha,correo,teléfono,tipo,total,producto,cantidad,precio,label.pago\n"

// importGathered imports a file of sales, gathering so many bytes of it at once; 0: as usual. It
// returns the file of errors, "" if there is none.
func (s *shop) importGathered(t *testing.T, text string, memory int64) string {
	t.Helper()
	im := s.importer(t, importSales)
	im.memory = memory
	s.ok(im.run(strings.NewReader(text)))
	if im.report.Rows != strings.Count(text, "\n")-1 {
		t.Errorf("%d rows are told of\n%s", im.report.Rows, text)
	}
	if im.report.Errors == "" {
		return ""
	}
	return string(readFile(t, im.report.Errors))
}

// TestImportGathers shows that the rows of one ticket are one sale wherever they stand, in one
// pass and in several, and that a sale with a wrong row goes in by its mended file of errors.
func TestImportGathers(t *testing.T) {
	t.Parallel()
	const (
		cafe    = "Z1,2026-01-05,ana@example.com,,compra,150,CAFE,1,50,\n"
		pan     = "Z1,2026-01-05,ana@example.com,,compra,150,PAN,2,50,\n"
		other   = "Z2,2026-01-06,ana@example.com,,compra,10,TE,1,10,\n"
		back    = "Z1,2026-01-07 10:00,ana@example.com,,devolución,100,CAFE,1,50,\n"
		backToo = "Z1,2026-01-07 10:00,ana@example.com,,devolución,100,PAN,1,50,\n"
		whole   = "Z1 Purchase 150 CAFE PAN"
		unequal = "no es igual en todas las filas de la venta: la fila "
	)
	swap := strings.NewReplacer
	for _, test := range []struct {
		reason, rows, want string
		faults             []string // of Z1
		mend               *strings.Replacer
		mended             string // what is there once the file of errors was mended and imported
	}{
		{"together", cafe + pan + other, whole + "; Z2 Purchase 10 TE", nil, nil, ""},
		{"apart", cafe + other + pan, whole + "; Z2 Purchase 10 TE", nil, nil, ""},
		{"a return apart", cafe + pan + back + other + backToo, whole + "; Z1 Return 100 CAFE PAN of its purchase; Z2 Purchase 10 TE", nil, nil, ""},
		{"a return among its purchase", cafe + back + pan, whole + "; Z1 Return 100 CAFE of its purchase", nil, nil, ""},
		{"two returns", cafe + pan + back + swap("100", "50", "10:00", "11:00").Replace(backToo), whole + "; Z1 Return 100 CAFE of its purchase; Z1 Return 50 PAN of its purchase", nil, nil, ""},
		{"three interleaved", cafe + other + swap("Z2", "Z3").Replace(other) + pan + other + swap("Z2", "Z3").Replace(other), whole + "; Z2 Purchase 10 TE TE; Z3 Purchase 10 TE TE", nil, nil, ""},
		{"equal as values", cafe + other + swap("150", "150.00", "2026-01-05", "05/01/2026 09:30", "ana@example.com", "ANA@example.com ", "compra", "Venta").Replace(pan), whole + "; Z2 Purchase 10 TE", nil, nil, ""},
		{"phones equal as values", swap("com,,", "com,55 1234 5678,").Replace(cafe) + swap("com,,", "com,+52 (55) 1234-5678,").Replace(pan), whole, nil, nil, ""},
		{"the same day in another zone", swap("2026-01-05", "2026-01-05T23:00:00-06:00").Replace(cafe) + swap("2026-01-05", "2026-01-06T05:30:00Z").Replace(pan), whole, nil, nil, ""},
		{"empty cells", cafe + other + "Z1,,,,,,PAN,2,50,\n", whole + "; Z2 Purchase 10 TE", nil, nil, ""},
		{"empty cells of a return", cafe + pan + back + other + "Z1,,,,,,PAN,1,50,\n", whole + "; Z1 Return 100 CAFE PAN of its purchase; Z2 Purchase 10 TE", nil, nil, ""},
		{"empty cells first", "Z1,,,,,,CAFE,1,50,\n" + other + pan, whole + "; Z2 Purchase 10 TE", nil, nil, ""},
		{"the customer's two contacts", cafe + swap("ana@example.com,", ",55 1234 5678").Replace(pan), whole, nil, nil, ""},
		{"another total", cafe + other + swap("150", "151").Replace(pan), "Z2 Purchase 10 TE", []string{`total: ""150"": ` + unequal + `4 tiene ""151""`}, swap("151", "150"), "Z2 Purchase 10 TE; " + whole},
		{"another customer", cafe + other + swap("ana@", "bea@").Replace(pan), "Z2 Purchase 10 TE", []string{`correo: ""ana@example.com"": ` + unequal + `4 tiene ""bea@example.com""`}, swap("bea@example.com,", "ana@example.com,"), "Z2 Purchase 10 TE; " + whole},
		{"a phone of somebody else", cafe + other + swap("ana@example.com,", ",55 8765 4321").Replace(pan), "Z2 Purchase 10 TE", []string{"El email y el teléfono pertenecen a clientes distintos"}, swap("55 8765 4321", "55 1234 5678"), "Z2 Purchase 10 TE; " + whole},
		{"no date", cafe + other + swap("2026-01-05", "ayer").Replace(pan), "Z2 Purchase 10 TE", []string{`fecha: ""2026-01-05"": ` + unequal + `4 tiene ""ayer""`}, swap("ayer", "2026-01-05"), "Z2 Purchase 10 TE; " + whole},
		{"no type", cafe + other + swap("compra", "regalo").Replace(pan), "Z2 Purchase 10 TE", []string{`tipo: ""compra"": ` + unequal + `4 tiene ""regalo""`}, swap("regalo", ""), "Z2 Purchase 10 TE; " + whole},
		{"another label", swap("50,\n", "50,oro\n").Replace(cafe) + other + swap("50,\n", "50,plata\n").Replace(pan), "Z2 Purchase 10 TE", []string{`label.pago: ""oro"": ` + unequal}, swap("plata", "oro"), "Z2 Purchase 10 TE; " + whole},
		{"an item", cafe + other + swap("PAN,2", "PAN,0").Replace(pan), "Z2 Purchase 10 TE", []string{`fila 4, cantidad: ""0"": debe ser mayor a 0`}, swap("PAN,0", "PAN,2"), "Z2 Purchase 10 TE; " + whole},
		{"an item of a return", cafe + pan + back + other + swap("PAN,1", "PAN,0").Replace(backToo), whole + "; Z2 Purchase 10 TE", []string{`fila 6, cantidad: ""0"": debe ser mayor a 0`}, swap("PAN,0", "PAN,1"), whole + "; Z2 Purchase 10 TE; Z1 Return 100 CAFE PAN of its purchase"},
		{"a purchase with a return", cafe + back + swap("150", "151").Replace(pan), "", []string{"no es igual en todas", "la compra que se devuelve tiene errores"}, swap("151", "150"), whole + "; Z1 Return 100 CAFE of its purchase"},
		{"another day", cafe + swap("2026-01-05", "2026-01-08").Replace(pan), "Z1 Purchase 150 CAFE; Z1 Purchase 150 PAN", nil, nil, ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			for _, memory := range []int64{0, 40} { // 40 bytes: some passes
				s := newShop(t, setup{})
				s.importCSV(t, "correo,teléfono\nana@example.com,55 1234 5678\nbea@example.com,55 8765 4321\n")
				rejected := s.importGathered(t, gatheredHeader+test.rows, memory)
				if got := s.salesThere(); got != test.want {
					t.Errorf("memory %d: got  %s\nwant %s\n%s", memory, got, test.want, rejected)
				}
				if (rejected != "") != (test.faults != nil) {
					t.Errorf("rejected: %s", rejected)
				}
				lines := strings.Split(strings.TrimSpace(rejected), "\n")[1:]
				for _, line := range lines {
					if !strings.Contains(line, "Z1") || !slices.ContainsFunc(test.faults, func(fault string) bool { return strings.Contains(line, fault) }) {
						t.Errorf("rejected: %s", line)
					}
				}
				if test.faults != nil {
					if n := strings.Count(test.rows, "Z1"); len(lines) != n && !strings.Contains(test.want, "Z1") {
						t.Errorf("%d lines of %d are rejected: %s", len(lines), n, rejected)
					}
					if again := s.importGathered(t, test.mend.Replace(rejected), memory); again != "" || s.salesThere() != test.mended {
						t.Errorf("mended: %s\n%s", s.salesThere(), again)
					}
				}
				before := s.salesThere()
				if s.importGathered(t, gatheredHeader+test.rows, memory); s.salesThere() != before {
					t.Errorf("again: %s", s.salesThere())
				}
				s.verified()
			}
		})
	}
}

// TestImportGathersUnique: where a purchase's externalId is unique, another day is a fault.
func TestImportGathersUnique(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{settings: `"externalIds":"Unique"`})
	s.customer("ana")
	rejected := s.importGathered(t, gatheredHeader+"Z1,2026-01-05,ana@example.com,,,150,CAFE,1,50,\nZ1,2026-01-06,ana@example.com,,,150,PAN,1,50,\n", 0)
	if got := s.salesThere(); got != "" || strings.Count(rejected, `fecha: ""2026-01-05"": no es igual`) != 2 {
		t.Errorf("%s\n%s", got, rejected)
	}
}

// TestImportPassesAsOne imports a file of sales whose rows are far apart in one pass and in many:
// the sales, their order, the number of entries and the files of errors are equal.
func TestImportPassesAsOne(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString(gatheredHeader)
	for row := range 3 {
		for n := range 200 {
			total := 100
			if n%50 == 7 && row == 2 {
				total = 101
			}
			fmt.Fprintf(&text, "T-%d,2026-01-%02d 10:%02d,ana@example.com,,,%d,SKU-%d,1,10,\n", n, 1+n%20, n%60, total, row)
			if n%60 == 11 {
				text.WriteString("T-11,corta\n\"sin fin,x\n,2026-01-05,ana@example.com,,,10,,,,\n")
			}
		}
	}
	var first map[string]string
	rejected := ""
	for _, memory := range []int64{0, 4000, 700} {
		s := newShop(t, setup{program: `"rules":[` + onePer1 + `],"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":1000,"multiplier":2}]`})
		s.customer("ana")
		told := s.importGathered(t, text.String(), memory)
		got := map[string]string{"sales": s.salesThere(), "standing": fmt.Sprint(len(s.entries()))}
		if first == nil {
			first, rejected = got, told
			if n := strings.Count(got["sales"], "SKU-0 SKU-1 SKU-2"); n != 195 || !strings.HasPrefix(got["sales"], "T-0 Purchase 100 SKU-0 SKU-1 SKU-2; T-1 ") {
				t.Fatalf("%d sales are whole: %s\n%s", n, got["sales"], told)
			}
		}
		if d := cmp.Diff(first, got) + cmp.Diff(rejected, told); d != "" {
			t.Errorf("%d bytes at once: %s", memory, d)
		}
		s.verified()
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "sello-import-*")); err != nil || len(left) > 0 {
		t.Logf("temporary files: %v %v", left, err) // perhaps of another test
	}
}

// TestImportSalesByNumber: a row of sales names its customer by externalId or id, and a contact
// beside it must be the same customer's.
func TestImportSalesByNumber(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ header, cells, fault string }{
		{"Número de cliente", "0012", ""},
		{"Número de cliente", `"=""0012"""`, ""},
		{"customerExternalId", "0013", "Cliente no encontrado"},
		{"customerId", "ID", ""},
		{"id sello", "ID", ""},
		{"Customer ID", "0012", ""}, // another system's
		{"customerId", "ffffffff-ffff-7fff-8fff-ffffffffffff", "Cliente no encontrado"},
		{"customerId,customerExternalId", "ID,0012", ""},
		{"customerId,customerExternalId", "ID,0013", `customerExternalId: ""0013"": no es el del cliente`},
		{"customerId,correo", "ID,ana@example.com", ""},
		{"customerId,correo", "ID,bea@example.com", "el email o el teléfono no es del cliente"},
		{"número de cliente,correo", ",", "Se requiere email o número de teléfono"},
	} {
		s := newShop(t, setup{})
		s.importCSV(t, "correo,externalId\nana@example.com,0012\nbea@example.com,\n")
		cells := strings.Replace(test.cells, "ID", s.byEmail("ana").ID.String(), 1)
		rejected := s.importGathered(t, "ticket,fecha,total,producto,cantidad,precio,"+test.header+"\nA,2026-01-05,10,X,1,5,"+cells+"\nA,,,Y,1,5"+strings.Repeat(",", 1+strings.Count(test.header, ","))+"\n", 0)
		want := "A Purchase 10 X Y"
		if test.fault != "" {
			want = ""
		}
		if got := s.salesThere(); got != want || !strings.Contains(rejected, test.fault) || (rejected == "") != (test.fault == "") {
			t.Errorf("%s %s: %s\n%s", test.header, test.cells, got, rejected)
		}
	}
}
