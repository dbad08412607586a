package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNumberCells reads numbers as they stand in files with each separator.
func TestNumberCells(t *testing.T) {
	t.Parallel()
	const twoWays = "?"
	for _, test := range []struct{ cell, comma, semicolon, tab, point, decimalComma string }{
		{"12", "12", "12", "12", "12", "12"},
		{"-12", "-12", "-12", "-12", "-12", "-12"},
		{" $ 12 ", "12", "12", "12", "12", "12"},
		{"12 €", "12", "12", "12", "12", "12"},
		{"-$12.50", "-12.50", "-12.50", "-12.50", "-12.50", "-12.50"},
		{"12.5", "12.5", "12.5", "12.5", "12.5", "12.5"},
		{"12,5", "12.5", "12.5", "12.5", "12.5", "12.5"},
		{"0,125", "0.125", "0.125", "0.125", "0.125", "0.125"},
		{"1.250", "1.250", twoWays, twoWays, "1.250", "1250"},
		{"1,250", twoWays, "1.250", twoWays, "1250", "1.250"},
		{"1,250.5", "1250.5", "1250.5", "1250.5", "1250.5", "1250.5"},
		{"1.250,5", "1250.5", "1250.5", "1250.5", "1250.5", "1250.5"},
		{"1,250,000", "1250000", "1250000", "1250000", "1250000", "1250000"},
		{"1.250.000,25", "1250000.25", "1250000.25", "1250000.25", "1250000.25", "1250000.25"},
		{"12.50.1", "12.50.1", "12.50.1", "12.50.1", "12.50.1", "12.50.1"},
		{"1,2,3", "1,2,3", "1,2,3", "1,2,3", "1,2,3", "1,2,3"},
		{"1e2", "1e2", "1e2", "1e2", "1e2", "1e2"},
		{"mil", "mil", "mil", "mil", "mil", "mil"},
		{"", "", "", "", "", ""},
	} {
		for _, as := range []struct {
			form numberForm
			want string
		}{
			{numberForm{',', 0, ""}, test.comma}, {numberForm{';', 0, ""}, test.semicolon}, {numberForm{'\t', 0, ""}, test.tab},
			{numberForm{';', '.', ""}, test.point}, {numberForm{',', ',', ""}, test.decimalComma},
		} {
			got, ok := as.form.plain(test.cell)
			if !ok {
				got = twoWays
			}
			if got != as.want {
				t.Errorf("%q in %+v: %q, want %q", test.cell, as.form, got, as.want)
			}
		}
	}
}

// TestCurrencyCells: the sign and the code of the organization's currency go off amounts, those of
// another one do not (contract §31).
func TestCurrencyCells(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ currency, cells, want string }{
		{"BRL", "R$ 1.234,50|R$12|-R$ 12|R$ -12|BRL 12|12 brl|R$\u00a012,5|12", "1234.50|12|-12|-12|12|12|12.5|12"},
		{"PEN", "S/ 12.50|S/. 12.50|S/12|12.50 PEN|R$ 12", "12.50|12.50|12|12.50|R$ 12"},
		{"MXN", "$12.50 MXN|MX$ 12.50|MXN 12.50|mxn12.50|$12.50|US$ 12", "12.50|12.50|12.50|12.50|12.50|US$ 12"},
		{"USD", "US$ 1,234.50|U$S 12|USD$12|12 USD", "1234.50|12|12|12"},
		{"UYU", "$U 12|₡12", "12|₡12"},
		{"CRC", "₡12.50|12 ₡", "12.50|12"},
		{"JPY", "JPY 12|", "12|"},
		{"", "MXN 12", "MXN 12"},
	} {
		want := strings.Split(test.want, "|")
		for i, cell := range strings.Split(test.cells, "|") {
			if got, ok := (numberForm{',', 0, test.currency}).plain(cell); !ok || got != want[i] {
				t.Errorf("%q in %s: %q, want %q", cell, test.currency, got, want[i])
			}
		}
	}
}

// TestDateCells reads dates as spreadsheets write them.
func TestDateCells(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"2026-11-23": "2026-11-23", "23/11/2026": "2026-11-23", "3/1/2026": "2026-01-03", "23-11-2026": "2026-11-23", "23.11.2026": "2026-11-23",
		"2026/11/23": "2026-11-23", "23/11/2026 0:00": "2026-11-23", "2026-11-23 00:00:00": "2026-11-23",
		"23/11/2026 9:05": "2026-11-23T09:05:00", "23/11/2026, 18:30:15": "2026-11-23T18:30:15", "2026-11-23 18:30:15.250": "2026-11-23T18:30:15",
		"23/11/2026 06:30:00 p. m.": "2026-11-23T18:30:00", "23/11/2026 06:30\u00a0p.\u00a0m.": "2026-11-23T18:30:00", "23/11/2026 12:15 AM": "2026-11-23T00:15:00",
		"2026-11-23T10:00:00Z": "2026-11-23T10:00:00Z", "23/11/26": "23/11/26", "ayer": "ayer", "": "", "23/11/2026 13:00 PM": "23/11/2026 13:00 PM",
		"2026-11-01 09:50:26 +0200": "2026-11-01T09:50:26+0200", "2026-11-01 09:50:26 UTC": "2026-11-01T09:50:26Z", "2026-11-01 00:00:00 -03:00": "2026-11-01T00:00:00-03:00",
		"1/11/2026 9:50 p. m. GMT": "2026-11-01T21:50:00Z", "2026-11-01 09:50:26 CEST": "2026-11-01 09:50:26 CEST",
		"31/02/2026": "2026-02-31", // no day, and refused as such
	} {
		if got, ok := (dateForm{}).plain(cell); got != want || !ok {
			t.Errorf("%q: %q, want %q", cell, got, want)
		}
	}
}

// TestYearlessCells: birthdays without a year in the forms of contract §31, each as the file that it
// stands in has its dates.
func TestYearlessCells(t *testing.T) {
	t.Parallel()
	const twoWays = "?"
	for _, test := range []struct{ others, cell, unknown, dmy, mdy string }{
		{"", "--05-14", "--05-14", "--05-14", "--05-14"},
		{"", "05-14", "--05-14", "--14-05", "--05-14"},
		{"", "5-4", "--05-04", "--04-05", "--05-04"},
		{"", "14-05", "--05-14", "--05-14", "--14-05"},
		{"", "14/05", "--05-14", "--05-14", "--14-05"},
		{"", " 4/5 ", "--05-04", "--05-04", "--04-05"},
		{"", "13/13", "--13-13", "--13-13", "--13-13"},
		{"", "5.10", "5.10", "5.10", "5.10"},
		{"", "14/05/1990", "1990-05-14", "1990-05-14", "1990-14-05"},
		{"05/14", "05/14", "--05-14", "--14-05", "--05-14"},
		{"05/14", "14/05", "--05-14", "--05-14", "--14-05"},
		{"05/14", "04/05", twoWays, "--05-04", "--04-05"},
		{"05/14", "04/05/1990", twoWays, "1990-05-04", "1990-04-05"},
		{"05/14", "04-05", "--04-05", "--05-04", "--04-05"},
		{"05/14/1990", "04/05", twoWays, "--05-04", "--04-05"},
		{"14-05", "04-05", twoWays, "--05-04", "--04-05"},
		{"14-05", "05-14", "--05-14", "--14-05", "--05-14"},
		{"14-05", "05-05", "--05-05", "--05-05", "--05-05"},
		{"14-05", "04/05", "--05-04", "--05-04", "--04-05"},
	} {
		for order, want := range map[dateOrder]string{orderUnknown: test.unknown, orderDayMonth: test.dmy, orderMonthDay: test.mdy} {
			f := dateForm{order: order}
			f.learn("birthDate", test.others)
			got, fault := f.birthDate(test.cell)
			if fault != "" {
				got = twoWays
			}
			if strings.TrimSpace(got) != want {
				t.Errorf("%q beside %q, order %q: %q, want %q", test.cell, test.others, order, got, want)
			}
		}
	}
	f := dateForm{}
	if f.learn("createdAt", "05/14"); f.mixed {
		t.Error("another column's cell tells the order of dates")
	}
}

// TestYearlessImport: birthdays of sheets come in, those that are no day are told, and what is
// exported comes in again as it was.
func TestYearlessImport(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	got := s.importCSV(t, "nombre,correo,cumpleaños\nAna,ana@example.com,14/05\nEva,eva@example.com,02-29\nIvo,ivo@example.com,--12-31\n"+
		"Uma,uma@example.com,02-30\nLeo,leo@example.com,--13-01\nTeo,teo@example.com,31/04\n")
	const fault = `: debe ser una fecha con el año de cuatro cifras, como 1990-05-14 o 14/05/1990, o sin año, como 05-14 o 14/05 (con -dates mdy, 05/14/1990 o 05/14)`
	same(t, "the import", got, `3 new, 0 known, 3 wrong; 5 cumpleaños: "02-30"`+fault+`; 6 cumpleaños: "--13-01"`+fault+`; 7 cumpleaños: "31/04"`+fault)
	got = s.importCSV(t, "nombre,correo,cumpleaños\nZoe,zoe@example.com,12/31\nPía,pia@example.com,04/05\n")
	same(t, "of two readings", got, `1 new, 0 known, 1 wrong; 3 cumpleaños: "04/05": `+dateInTwoWays)
	for name, want := range map[string]birthDate{"ana": 514, "eva": 229, "ivo": 1231, "zoe": 1231} {
		if got := s.byEmail(name).BirthDate; got != want {
			t.Errorf("%s was born %s, want %s", name, got, want)
		}
	}
	s.verified()
	from := newOpenTill(t)
	from.ok("import customers " + from.file("c.csv", "correo,cumpleaños\nana@example.com,14/05\neva@example.com,29/02/1992\n"))
	for _, flags := range []string{"", " -raw"} {
		text, to := from.ok("export customers"+flags), newOpenTill(t)
		to.ok("import customers" + flags + " " + to.file("c.csv", text))
		if again := to.ok("export customers" + flags); again != text || !strings.Contains(text, "--05-14") {
			t.Errorf("%s: %s\nwant %s", flags, again, text)
		}
	}
}

// TestLostDigits: a phone that a spreadsheet took for a number has lost digits.
func TestLostDigits(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	got := s.importCSV(t, "teléfono;nombre\n5,25512E+11;Ana\n5.25512E+11;Ana\n5512345678;Ana\n")
	const fault = `: "%s": la hoja de cálculo perdió cifras`
	for _, cell := range []string{"5,25512E+11", "5.25512E+11"} {
		if !strings.Contains(got, "teléfono"+fmt.Sprintf(fault, cell)) {
			t.Errorf("%s in %s", cell, got)
		}
	}
	if !strings.HasPrefix(got, "1 new, 0 known, 2 wrong") {
		t.Error(got)
	}
}

// TestImportTwoWays: a number that may be read in two ways spoils its row, and the whole
// sale if the row is one of its items.
func TestImportTwoWays(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.customer("ana")
	const sales = "folio;fecha;correo;tipo;total;producto;cantidad;precio\n" +
		"A;23/11/2025 10:00;ana@example.com;Compra;20,5;X;1,250;10\nA;23/11/2025 10:01;ana@example.com;;20,5;Y;1.250;8\nB;23/11/2025 11:00;ana@example.com;Venta;1.250,00;X;1;1250\n" +
		"B;24/11/2025 11:00;ana@example.com;Devolución;250;X;1;250\n"
	im := s.importer(t, importSales)
	s.ok(im.run(strings.NewReader(sales)))
	if r := im.report; r.Added != 2 || r.Wrong != 1 {
		t.Errorf("%+v", r)
	}
	want := "line;reason;folio;fecha;correo;tipo;total;producto;cantidad;precio\n"
	const reason = `;"fila 3, cantidad: ""1.250"": se puede leer de dos maneras; con -decimal coma o -decimal punto se decide";`
	want += "2" + reason + "A;23/11/2025 10:00;ana@example.com;Compra;20,5;X;1,250;10\n3" + reason + "A;23/11/2025 10:01;ana@example.com;;20,5;Y;1.250;8\n"
	if d := cmp.Diff(want, string(readFile(t, im.report.Errors))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
