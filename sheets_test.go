package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var anyID = regexp.MustCompile(`,[0-9a-f]{8}-[0-9a-f-]{27},`)

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
		s.ok(writeCSV(t.Context(), s.admin().direct, exportRequest{Org: "cafe-luna", Kind: importCustomers, Full: true}, false, &out))
		got := anyID.ReplaceAllString(out.String(), ",ID,")
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

// TestEncodings imports one name in each encoding, with and without a byte order mark.
func TestEncodings(t *testing.T) {
	t.Parallel()
	const text = "correo;nombre\nana@example.com;Ñandú €\n"
	units := func(mark string, first, second int) string {
		out := []byte(mark)
		for _, r := range text {
			pair := [2]byte{}
			pair[first], pair[second] = byte(r), byte(r>>8)
			out = append(out, pair[:]...)
		}
		return string(out)
	}
	ansi := strings.NewReplacer("Ñ", "\xd1", "ú", "\xfa", "€", "\x80").Replace(text)
	for name, file := range map[string]string{
		"UTF-8": text, "UTF-8 with a mark": markUTF8 + text, "Windows-1252": ansi,
		"UTF-16LE": units(markUTF16LE, 0, 1), "UTF-16BE": units(markUTF16BE, 1, 0),
		"UTF-16LE without a mark": units("", 0, 1), "UTF-16BE without a mark": units("", 1, 0),
		"sep=": "sep=;\r\n" + text,
		// The encoding shows only far beyond what is looked at first.
		"Windows-1252, late": strings.Replace(ansi, "\n", "\n"+strings.Repeat("x@example.com;"+strings.Repeat("a", 90)+"\n", startLength/100), 1),
	} {
		s := newShop(t, setup{})
		im := s.importer(t, importCustomers)
		s.ok(im.run(strings.NewReader(file)))
		if c := s.byEmail("ana"); c.FirstName != "Ñandú €" {
			t.Errorf("%s: %q, %+v", name, c.FirstName, im.report)
		}
	}
	// One broken character in a file of UTF-8 spoils its row only.
	s := newShop(t, setup{})
	if got := s.importCSV(t, "correo,nombre\nana@example.com,Núñez\nbeto@example.com,N\xfa\xf1ez é é é\n"); got != "1 new, 0 known, 1 wrong; 3 no es UTF-8 válido" {
		t.Error(got)
	}
}

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
			{numberForm{',', 0}, test.comma}, {numberForm{';', 0}, test.semicolon}, {numberForm{'\t', 0}, test.tab},
			{numberForm{';', '.'}, test.point}, {numberForm{',', ','}, test.decimalComma},
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

// TestDateCells reads dates as spreadsheets write them.
func TestDateCells(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"2026-11-23": "2026-11-23", "23/11/2026": "2026-11-23", "3/1/2026": "2026-01-03", "23-11-2026": "2026-11-23", "23.11.2026": "2026-11-23",
		"2026/11/23": "2026-11-23", "23/11/2026 0:00": "2026-11-23", "2026-11-23 00:00:00": "2026-11-23",
		"23/11/2026 9:05": "2026-11-23T09:05:00", "23/11/2026, 18:30:15": "2026-11-23T18:30:15", "2026-11-23 18:30:15.250": "2026-11-23T18:30:15",
		"23/11/2026 06:30:00 p. m.": "2026-11-23T18:30:00", "23/11/2026 06:30\u00a0p.\u00a0m.": "2026-11-23T18:30:00", "23/11/2026 12:15 AM": "2026-11-23T00:15:00",
		"2026-11-23T10:00:00Z": "2026-11-23T10:00:00Z", "23/11/26": "23/11/26", "ayer": "ayer", "": "", "23/11/2026 13:00 PM": "23/11/2026 13:00 PM",
		"31/02/2026": "2026-02-31", // no day, and refused as such
	} {
		if got := plainDate(cell); got != want {
			t.Errorf("%q: %q, want %q", cell, got, want)
		}
	}
}

// TestLostDigits: a phone that a spreadsheet took for a number has lost digits.
func TestLostDigits(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	got := s.importCSV(t, "teléfono;nombre\n5,25512E+11;Ana\n5.25512E+11;Ana\n5512345678;Ana\n")
	const fault = ": en %s la hoja de cálculo perdió cifras"
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
	const reason = `;"cantidad: 1.250 se puede leer de dos maneras; con -decimal coma o -decimal punto se decide";`
	want += "2" + reason + "A;23/11/2025 10:00;ana@example.com;Compra;20,5;X;1,250;10\n3" + reason + "A;23/11/2025 10:01;ana@example.com;;20,5;Y;1.250;8\n"
	if d := cmp.Diff(want, string(readFile(t, im.report.Errors))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
