package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sello/internal/sheet"
)

// sheetTold imports a text and returns what importCSV does, or the error that stops it.
func (s *shop) sheetTold(t *testing.T, kind, text string, change func(*importer)) string {
	t.Helper()
	im := s.importer(t, kind)
	if change != nil {
		change(im)
	}
	if err := im.run(strings.NewReader(text)); err != nil {
		return err.Error()
	}
	told := fmt.Sprintf("%d rows, %d new", im.report.Rows, im.report.Added)
	if im.report.Errors != "" {
		told += "\n" + strings.TrimPrefix(string(readFile(t, im.report.Errors)), sheet.MarkUTF8)
	}
	return told
}

// TestSheetShapes imports what people make of a sheet.
func TestSheetShapes(t *testing.T) {
	t.Parallel()
	const (
		unnamed = "la columna 4 no tiene encabezado y la línea 3 tiene un valor en ella; con -ignore= se deja fuera"
		missing = `faltan columnas: email (correo) o phoneNumber (teléfono)`
	)
	for _, test := range []struct{ reason, text, want string }{
		{"rows without a cell", "Nombre,Correo,Teléfono\n,,\nAna,ana@example.com,\n , ,\u00a0\n,\n,,,,,,\n", "1 rows, 1 new"},
		{"rows without a cell above the heading", ",,\n , ,\nNombre,Correo,Teléfono\nAna,ana@example.com,\n", "1 rows, 1 new"},
		{"columns without a heading", "Nombre,Correo,Teléfono,,,\nAna,ana@example.com,,, ,\n", "1 rows, 1 new"},
		{"columns without a heading that have a cell", "Nombre,Correo,Teléfono,, \nAna,ana@example.com,,,\nEva,eva@example.com,,x,\n", unnamed},
		{"cells beyond the heading", "Nombre,Correo\nAna,ana@example.com,,\nEva,eva@example.com,,x\n",
			"2 rows, 1 new\nline,reason,Nombre,Correo\n3,tiene 4 columnas y debería tener 2,Eva,eva@example.com,,x\n"},
		{"lines end with CR", "Nombre,Correo\rAna,ana@example.com\rEva,eva@example.com", "2 rows, 2 new"},
		{"lines end with all three", "Nombre,Correo\r\nAna,ana@example.com\rEva,eva@example.com\nLía,lia@example.com\r\r\n", "3 rows, 3 new"},
		{"CR within quotation marks", "Nombre,Correo\r\"Ana\rMaría\",x\r", "1 rows, 0 new\nline,reason,Nombre,Correo\n2,\"Nombre: \"\"Ana\\u000dMaría\"\": contiene caracteres no permitidos; Correo: \"\"x\"\": no es un email válido\",\"Ana\rMaría\",x\n"},
		{"a title", "Reporte de clientes,,,\n\nNombre,Correo,Teléfono,Puntos\nAna,ana@example.com,,5\n",
			`la línea 3 parece el encabezado ("Nombre", "Correo", "Teléfono", "Puntos"); hay que quitar las líneas que están antes`},
		{"a title without separators", "Reporte de clientes\n;;\nEnero\nNombre;Correo\nAna;ana@example.com\n",
			`la línea 4 parece el encabezado ("Nombre", "Correo"); hay que quitar las líneas que están antes`},
		{"no heading at all", "Ana,5512345678\nEva,5512345679\n", missing},
		{"a heading that lacks a column is no title", "Nombre,Apellido\nAna,Peña\n", missing},
		{"an empty file", "", "el archivo está vacío"},
		{"blank lines", "\n \r\n\r,,\n", "el archivo está vacío"},
		{"a mark alone", sheet.MarkUTF8, "el archivo está vacío"},
		{"a workbook", "PK\x03\x04\x14\x00\x06\x00\x08\x00", "es un libro de Excel: guárdalo como CSV"},
		{"an old workbook", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "es un libro de Excel: guárdalo como CSV"},
		{"a workbook of LibreOffice", "PK\x03\x04\x14\x00mimetypeapplication/vnd.oasis.opendocument.spreadsheet", "es un libro de LibreOffice: guárdalo como CSV"},
		{"a page that is called a workbook", sheet.MarkUTF8 + "\r\n<html><table><tr><td>Nombre</td></tr></table></html>", "es una página web o XML: ábrelo en la hoja de cálculo y guárdalo como CSV"},
		{"a workbook as XML", `<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?>`, "es una página web o XML: ábrelo en la hoja de cálculo y guárdalo como CSV"},
		{"all faults of a row", "Nombre;Correo;Teléfono;Puntos\nAna;ana@example.com;5.5E+11;1.250\n",
			"1 rows, 0 new\nline;reason;Nombre;Correo;Teléfono;Puntos\n2;\"Teléfono: \"\"5.5E+11\"\": la hoja de cálculo perdió cifras; la columna debe tener formato de texto; Puntos: \"\"1.250\"\": se puede leer de dos maneras; con -decimal coma o -decimal punto se decide\";Ana;ana@example.com;5.5E+11;1.250\n"},
	} {
		s := newShop(t, setup{})
		if got := s.sheetTold(t, importCustomers, test.text, nil); got != test.want && !(test.want == missing && strings.HasPrefix(got, missing)) {
			t.Errorf("%s: (-want +got)\n%s", test.reason, cmp.Diff(test.want, got))
		}
	}
}

// TestSheetTexts: ="0012" is the text 0012.
func TestSheetTexts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ separator, cell, want string }{
		{",", `="0012"`, "0012"}, {";", `="0012"`, "0012"}, {"\t", `="0012"`, "0012"},
		{",", `"=""0012"""`, "0012"}, {",", `="00,12"`, "00,12"},
		{",", `'="0012"`, `="0012"`}, // as an export guards it
		{",", `"'=""0012"""`, `="0012"`},
		{",", `"=""00""12"""`, `="00"12"`}, {",", `=""`, ""}, {",", `"x,=""0012"""`, `x,="0012"`},
	} {
		s := newShop(t, setup{})
		text := strings.ReplaceAll("Tel|Código cliente|Nombre|Correo\n=\"5510000005\"|CELL|=\"Ana\"|ana@example.com\n", "|", test.separator)
		got := s.sheetTold(t, importCustomers, strings.Replace(text, "CELL", test.cell, 1), nil)
		if strings.HasPrefix(test.cell, `'="`) { // no CSV: the quotation marks are within a cell
			if !strings.Contains(got, "comillas mal puestas") {
				t.Errorf("%s: %s", test.cell, got)
			}
			continue
		}
		if c := s.byEmail("ana"); got != "1 rows, 1 new" || c.ExternalID != test.want || c.Phone != "+525510000005" || c.FirstName != "Ana" {
			t.Errorf("%s: %s %+v", test.cell, got, c)
		}
	}
	s := newShop(t, setup{})
	got := s.sheetTold(t, importCustomers, "Código cliente,Correo\n\"=\"\"0012\"\"\",ana@example.com\n", func(im *importer) { im.raw = true })
	if c := s.byEmail("ana"); got != "1 rows, 1 new" || c.ExternalID != `="0012"` {
		t.Errorf("raw: %s %+v", got, c)
	}
}

// TestSheetDates: where a date can only have the month first, those that may be read in two
// ways are errors until somebody says which.
func TestSheetDates(t *testing.T) {
	t.Parallel()
	const twoWays = "!"
	cells := []string{"05/06/1987", "06/25/1987", "25/06/1987", "06/06/1987", "1987-06-05"}
	for _, test := range []struct {
		order sheet.DateOrder
		cells []string
		want  string
	}{
		{"", cells, "! 1987-06-25 1987-06-25 1987-06-06 1987-06-05"},
		{"mdy", cells, "1987-05-06 1987-06-25 - 1987-06-06 1987-06-05"},
		{"dmy", cells, "1987-06-05 - 1987-06-25 1987-06-06 1987-06-05"},
		{"", []string{"05/06/1987", "25/06/1987", "06/32/1987"}, "1987-06-05 1987-06-25 -"},
		{"", []string{"05/06/1987", `"=""06/25/1987"""`}, "! 1987-06-25"},
		{"", []string{"5-6-1987", "6.25.1987"}, "! 1987-06-25"},
	} {
		s := newShop(t, setup{at: "2026-03-02T10:00:00Z"})
		text := "Cumpleaños,Correo\n"
		for i, cell := range test.cells {
			text += fmt.Sprintf("%s,c%d@example.com\n", cell, i)
		}
		told := s.sheetTold(t, importCustomers, text, func(im *importer) { im.dates.Order = test.order })
		var got []string
		for i, cell := range test.cells {
			switch c := s.found(fmt.Sprintf("c%d@example.com", i)); {
			case c != nil:
				got = append(got, c.BirthDate.String())
			case strings.Contains(told, fmt.Sprintf("%d,\"Cumpleaños: \"\"%s\"\": se puede leer de dos maneras, porque otras fechas del archivo llevan primero el mes; con -dates dmy o -dates mdy se decide\"", i+2, cell)):
				got = append(got, twoWays)
			default:
				got = append(got, "-")
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s of %v: %s, want %s\n%s", test.order, test.cells, strings.Join(got, " "), test.want, told)
		}
	}
}

// TestSheetDateColumns: a month first in any column with dates concerns all of them, far
// below too.
func TestSheetDateColumns(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, column := range []string{"Cumpleaños", "Alta", "Vencen"} {
		var text strings.Builder
		text.WriteString("Correo,Puntos,Cumpleaños,Alta,Vencen\nana@example.com,5,,,05/06/2027\n")
		for i := range 5000 {
			fmt.Fprintf(&text, "c%d@example.com,5,,,\n", i)
		}
		cell := map[string]string{"Cumpleaños": "06/25/1987,,", "Alta": ",06/25/2020,", "Vencen": ",,06/25/2027"}[column]
		text.WriteString("eva@example.com,5," + cell + "\n")
		s := newShop(t, setup{at: "2026-03-02T10:00:00Z"})
		if got := s.sheetTold(t, importCustomers, text.String(), nil); !strings.HasPrefix(got, "5002 rows, 5001 new\nline,reason,Correo,Puntos,Cumpleaños,Alta,Vencen\n2,\"Vencen: \"\"05/06/2027\"\": se puede") {
			t.Errorf("%s: %.300s", column, got)
		}
	}
	s := newShop(t, setup{at: "2026-03-02T10:00:00Z"})
	s.customer("ana")
	const sales = "Folio,Fecha,Correo,Total\nA,01/02/2026 10:00,ana@example.com,5\nB,01/13/2026 10:00 AM,ana@example.com,5\n"
	if got := s.sheetTold(t, importSales, sales, nil); !strings.HasPrefix(got, "2 rows, 1 new\nline,reason,Folio,Fecha,Correo,Total\n2,\"Fecha: \"\"01/02/2026 10:00\"\": se puede") {
		t.Error(got)
	}
	if got := s.sheetTold(t, importSales, sales, func(im *importer) { im.dates.Order = sheet.MonthDay }); got != "2 rows, 1 new" {
		t.Error(got)
	}
}

// TestSheetFlags: the flags of an import settle what the file does not tell. A pipe is read
// like a file.
func TestSheetFlags(t *testing.T) {
	t.Parallel()
	s := newOpenTill(t)
	file := s.file("c.csv", "Nombre,Correo,Nacimiento\nMar\x92a,ana@example.com,06/05/1987\n")
	if code, _, told := s.run("import customers " + file); code != 1 || !strings.Contains(told, `puede estar en macintosh, donde dice "María", o en windows-1252, donde dice "Mar’a"; con -encoding macintosh o -encoding windows-1252 se decide`) {
		t.Error(code, told)
	}
	for flags, want := range map[string]string{
		"-encoding mac":    "valor no válido para -encoding",
		"-dates ymd":       "valor no válido para -dates",
		"-encoding utf-16": "faltan columnas",
	} {
		if code, _, told := s.run("import customers " + flags + " " + file); code == 0 || !strings.Contains(told, want) {
			t.Error(flags, code, told)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		defer w.Close()
		w.Write(readFile(t, file))
	}()
	known, err := newHeadings(importCustomers, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = withSeeker(r, func(file io.ReadSeeker) error {
		in := importSheet{headings: known, encoding: sheet.Macintosh}
		rows, err := in.rows(file)
		if err != nil {
			return err
		}
		line, err := in.record(rows)
		if err == nil && line.fields[0] != "María" {
			t.Errorf("%q", line.fields)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	s.ok("import customers -encoding macintosh -dates mdy " + file)
	if out := s.ok("export customers"); !strings.Contains(out, "María,,ana@example.com,,,1987-06-05") {
		t.Error(out)
	}
}

// found returns the customer with an e-mail, or nil.
func (s *shop) found(address string) *customer {
	s.Helper()
	return ask(s, func(t *txn) (*customer, error) { return t.customers.identify(kindEmail, address) })
}

// BenchmarkSheet reads a file with dates, without importing it: with the encoding, the
// survey and the rows.
func BenchmarkSheet(b *testing.B) {
	var text strings.Builder
	text.WriteString("Nombre;Correo;Cumpleaños;Alta;Puntos;Vencen;\r\n")
	const rows = 100_000
	for i := range rows {
		fmt.Fprintf(&text, "María Núñez;c%d@example.com;%02d/%02d/%d;05/03/2019;%d,5;31/12/2090;\r\n", i, i%28+1, i%12+1, 1950+i%50, i%5000)
	}
	known, err := newHeadings(importCustomers, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s := importSheet{headings: known}
		in, err := s.rows(strings.NewReader(text.String()))
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for ; ; n++ {
			if _, err := s.record(in); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		if n != rows {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
}

// TestRowFaults: all faults of a row are told at once, in the order of its cells, by the
// headings of the sheet.
func TestRowFaults(t *testing.T) {
	t.Parallel()
	const (
		customers = "Núm. cliente,Nombre completo,Correo electrónico,Celular,Cumpleaños,Miembro desde,Saldo,Caduca,Puntos por vida"
		sales     = "Folio,Fecha,Correo,Tipo,Importe,Producto,Piezas,Precio unitario"
		notDate   = "debe ser una fecha con el año de cuatro cifras, como 2026-11-30 o 30/11/2026 (con -dates mdy, 11/30/2026)"
		notBirth  = "debe ser una fecha con el año de cuatro cifras, como 1990-05-14 o 14/05/1990, o sin año, como 05-14 o 14/05 (con -dates mdy, 05/14/1990 o 05/14)"
		anas      = "el teléfono ya es de otra persona: Ana P…, externalId A-1"
	)
	long := strings.Repeat("x", 101)
	var many []string
	for row := range maxToldFaults {
		many = append(many, fmt.Sprintf(`fila %d, Piezas: "0": debe ser mayor a 0`, row+2))
	}
	for _, test := range []struct {
		reason, kind, heading, rows string
		want                        []string // of the first wrong row; nil: none is wrong
	}{
		{"none", importCustomers, customers, "B-1,Eva Ruiz,eva@example.com,,,,5,,", nil},
		{"one date", importCustomers, customers, ",,eva@example.com,,3/4/85,,,,", []string{`Cumpleaños: "3/4/85": ` + notBirth}},
		{"a future date", importCustomers, customers, ",,eva@example.com,,2030-01-01,,,,", []string{`Cumpleaños: "2030-01-01": no puede ser una fecha futura`}},
		{"two, one seen in the file alone", importCustomers, customers, ",,eva,,,,\"1,250\",,", []string{`Correo electrónico: "eva": no es un email válido`, `Saldo: "1,250": se puede leer de dos maneras; con -decimal coma o -decimal punto se decide`}},
		{"three", importCustomers, customers, ",,eva,123,3/4/85,,,,", []string{`Correo electrónico: "eva": no es un email válido`, `Celular: "123": no es un teléfono válido`, `Cumpleaños: "3/4/85": ` + notBirth}},
		{"four", importCustomers, customers, "," + long + ",,,3/4/85,ayer,cien,,", []string{
			`Nombre completo: "` + long[:60] + `…": no puede superar los 100 caracteres`, `Cumpleaños: "3/4/85": ` + notBirth,
			`Miembro desde: "ayer": ` + notDate, `Saldo: "cien": debe ser un número`, "Se requiere email o número de teléfono"}},
		{"two that the store alone tells", importCustomers, customers, "A-1,Eva Ruiz,eva@example.com,,,,5,2020-01-01,", []string{
			`Núm. cliente: "A-1": pertenece a otro cliente`, `Caduca: "2020-01-01": debe ser una fecha futura`}},
		{"a phone of somebody else, beside others", importCustomers, customers, ",Eva Ruiz,eva@example.com,55 1234 5678,3/4/85,,cien,,", []string{`Cumpleaños: "3/4/85": ` + notBirth, `Saldo: "cien": debe ser un número`, anas}},
		{"a phone of somebody else, and a number of two readings", importCustomers, "Celular;Correo;Nombre;Saldo", "5512345678;eva@example.com;Eva;1.250", []string{`Saldo: "1.250": se puede leer de dos maneras; con -decimal coma o -decimal punto se decide`, anas}},
		{"both figures are others than before", importCustomers, customers, ",Ana Peña,ana@example.com,,3/4/85,,11,,21", []string{
			`Cumpleaños: "3/4/85": ` + notBirth, `Saldo: "11": el cliente ya tiene un saldo inicial de 10`, `Puntos por vida: "21": el cliente ya tiene puntos históricos: 20`}},
		{"e-mail and phone of two customers, and a date", importCustomers, customers, ",,ana@example.com,5587654321,3/4/85,,,,", []string{
			`Cumpleaños: "3/4/85": ` + notBirth, "El email y el teléfono pertenecen a clientes distintos"}},

		{"a sale without faults", importSales, sales, "T-1,2026-01-05,ana@example.com,,10,,,", nil},
		{"an unknown customer, and a total", importSales, sales, "T-2,2026-01-05,nadie@example.com,,0,,,", []string{`Importe: "0": debe ser mayor a 0`, "Cliente no encontrado"}},
		{"four of a sale", importSales, sales, ",5/1/26,ana,Regalo,10,,,", []string{
			"Folio: es requerido", `Fecha: "5/1/26": ` + notDate, `Correo: "ana": no es un email válido`, `Tipo: "Regalo": debe ser compra o devolución`}},
		{"items, by their rows", importSales, sales, "T-3,2026-01-05,ana@example.com,,10,A,0,x\nT-3,2026-01-05,ana@example.com,,10,,1,-1", []string{
			`fila 2, Piezas: "0": debe ser mayor a 0`, `fila 2, Precio unitario: "x": debe ser un número`,
			"fila 3, Producto: es requerido", `fila 3, Precio unitario: "-1": debe ser mayor o igual a 0`}},
		{"rows of two totals, and an item", importSales, sales, "T-4,2026-01-05,ana@example.com,,10,A,1,1\nT-4,2026-01-05,ana@example.com,,11,B,0,1", []string{
			`Importe: "10": no es igual en todas las filas de la venta: la fila 3 tiene "11"`, `fila 3, Piezas: "0": debe ser mayor a 0`}},
		{"an item without a column", importSales, "Folio,Fecha,Correo,Importe,Producto,Precio", "T-5,2026-01-05,ana@example.com,10,A,1", []string{"quantity (cantidad): debe ser un número"}},
		{"a broken row among its rows", importSales, sales, "T-6,2026-01-05,ana@example.com,,10,A,1,1\nT-6,x\nT-6,2026-01-05,ana@example.com,,10,B,0,1", []string{
			`fila 4, Piezas: "0": debe ser mayor a 0`, "una de las filas de la venta no es válida: la fila 3 tiene 2 columnas y debería tener 8"}},
		{"a known ticket with other data", importSales, sales, "T-0,2026-01-04,ana@example.com,,11,,,", []string{`Folio: "T-0": ya se registró con otros datos`}},
		{"more than anybody reads", importSales, sales, strings.Repeat("T-7,2026-01-05,ana@example.com,,10,A,0,1\n", 20), append(many, "y 10 más")},
	} {
		s := newShop(t, setup{at: "2026-03-02T10:00:00Z"})
		s.sheetTold(t, importCustomers, "externalId,nombre,correo,teléfono,puntos,puntos históricos\nA-1,Ana Peña,ana@example.com,5512345678,10,20\nB-2,Leo,,5587654321,,\n", nil)
		s.sheetTold(t, importSales, sales+"\nT-0,2026-01-04,ana@example.com,,10,,,\n", nil)
		told := s.sheetTold(t, test.kind, test.heading+"\n"+test.rows+"\n", nil)
		_, rejected, _ := strings.Cut(told, "\n")
		in := csv.NewReader(strings.NewReader(rejected))
		if strings.Contains(test.heading, ";") {
			in.Comma = ';'
		}
		in.FieldsPerRecord = -1
		lines, err := in.ReadAll()
		s.ok(err)
		got := ""
		if len(lines) > 0 {
			got = lines[1][1]
		}
		if d := cmp.Diff(strings.Join(test.want, "; "), got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", test.reason, d)
		}
		s.verified()
	}
}

// TestSheetEncodings reads a list of customers as spreadsheets of MS-DOS and of the Macintosh
// save it. Without -encoding it is refused, since Windows-1252 has these bytes too.
func TestSheetEncodings(t *testing.T) {
	skipRace(t)
	t.Parallel()
	const whole = "María José,Núñez,maria@example.com,+525512345678,00017,1990-02-28,,\nÍñigo,García; hijo,inigo@example.com,,00018,,,\n" +
		"\"Ana \"\"Anita\"\"\",\"López, viuda de Peña\",,+525512345679,,,,\nGünther,O'Brien,gunther@example.com,,A-1,1985-11-30,,\nÇelik,Büro,celik@example.com,,,,,\n"
	for _, test := range []struct{ file, flags, refused string }{
		{"excel-dos.csv", "-encoding ibm850 ", ""},
		{"excel-dos.csv", "", `puede estar en ibm850, donde dice "Teléfono", o en windows-1252, donde dice "Tel‚fono"; con -encoding ibm850 o -encoding windows-1252 se decide`},
		{"excel-dos.csv", "-encoding utf-8 ", `columnas desconocidas: "Tel\x82fono"`},
		{"excel-mac.csv", "-encoding macintosh ", ""},
		{"excel-mac.csv", "", `puede estar en macintosh, donde dice "Teléfono", o en windows-1252, donde dice "TelŽfono"; con -encoding macintosh o -encoding windows-1252 se decide`},
		{"excel-mac.csv", "-encoding utf-8 ", `columnas desconocidas: "Tel\x8efono"`},
	} {
		s := newOpenTill(t)
		code, _, told := s.run("import customers " + test.flags + s.file(test.file, string(readFile(t, "testdata/encodings/"+test.file))))
		if (code != 0) != (test.refused != "") || !strings.Contains(told, test.refused) {
			t.Errorf("%s%s: exit %d, %q", test.flags, test.file, code, told)
		}
		_, out, _ := strings.Cut(s.ok("export customers -raw"), "\n")
		if want := map[bool]string{true: whole}[test.refused == ""]; out != want {
			t.Errorf("%s%s: %s", test.flags, test.file, out)
		}
	}
}

// TestSheetMarks: an apostrophe before digits only marks text, unless cells are raw; before other
// characters it is part of the text (contract §31).
func TestSheetMarks(t *testing.T) {
	t.Parallel()
	const text = "nombre,teléfono,externalId,cumpleaños\n'80 y más,'+52 55 1234-5678,'000123,'1990-05-14\n"
	s := newOpenTill(t)
	s.ok("import customers " + s.file("c.csv", text))
	if _, got, _ := strings.Cut(s.ok("export customers -raw"), "\n"); got != "'80 y más,,,+525512345678,000123,1990-05-14,,\n" {
		t.Errorf("%q", got)
	}
	s = newOpenTill(t)
	s.ok("import customers -raw " + s.file("c.csv", "correo,externalId\na@example.com,'000123\n"))
	exported := s.ok("export customers")
	to := newOpenTill(t)
	to.ok("import customers " + to.file("c.csv", exported))
	if got := to.ok("export customers -raw"); !strings.Contains(got, ",'000123,") {
		t.Errorf("%s comes back as %s", exported, got)
	}
}

// TestSheetTwoPhones: of two columns of phones the first that is filled is taken, and the other one
// is told if it differs (contract §31).
func TestSheetTwoPhones(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	got := s.importCSV(t, "nombre,teléfono,celular\nAna,5512345671,\nEva,,5512345672\nLuz,5512345673,+52 55 1234 5673\nZoe,5512345674,5512345675\nMia,5512345676,n/a\n")
	const want = "5 new, 0 known, 0 wrong; 5 aviso: el otro teléfono, 5512345675, es distinto y no se tomó; 6 aviso: el otro teléfono, n/a, es distinto y no se tomó"
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := s.importCSV(t, "nombre,celular 2,tel\nEva,,5512345672\n"); got != "0 new, 1 known, 0 wrong" {
		t.Error(got)
	}
	im := s.importer(t, importCustomers)
	if err := im.run(strings.NewReader("tel,cel,móvil\n")); err == nil || !strings.Contains(err.Error(), "está dos veces") {
		t.Errorf("three columns of phones: %v", err)
	}
}

// TestSheetTimes: a time may stand in a column of its own, after or before its date, and with the
// zone of a moment.
func TestSheetTimes(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.customer("ana")
	for rows, want := range map[string]string{
		"hora,ticket,fecha,correo,total\n9:30 p. m.,A,23/11/2025,ana@example.com,MXN 10\n":  "2025-11-24T03:30:00.000Z",
		"ticket,fecha,hora,correo,total\nB,2025-11-23 0:00,08:15,ana@example.com,$10 MXN\n": "2025-11-23T14:15:00.000Z",
		"ticket,fecha,hora,correo,total\nC,2025-11-23 10:00,,ana@example.com,10\n":          "2025-11-23T16:00:00.000Z",
		"ticket,fecha,correo,total\nD,2025-11-23 09:50:26 +0200,ana@example.com,10\n":       "2025-11-23T07:50:26.000Z",
		"ticket,fecha,correo,total\nE,2025-11-23 09:50:26 UTC,ana@example.com,10\n":         "2025-11-23T09:50:26.000Z",
	} {
		if told := s.sheetTold(t, importSales, rows, nil); told != "1 rows, 1 new" {
			t.Errorf("%s: %s", rows, told)
		}
		if there := string(s.exportedCSV(t, importSales)); !strings.Contains(there, want) {
			t.Errorf("%s: no %s in %s", rows, want, there)
		}
	}
	if told := s.sheetTold(t, importSales, "ticket,fecha,hora,correo,total\nF,2025-11-23,25h,ana@example.com,10\n", nil); !strings.Contains(told, `hora: ""25h"": debe ser una hora, como 9:30`) {
		t.Error(told)
	}
}

// TestEncodings imports one name in each encoding, with and without a byte order mark.
func TestEncodings(t *testing.T) {
	skipRace(t)
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
		"UTF-8": text, "UTF-8 with a mark": sheet.MarkUTF8 + text, "Windows-1252": ansi,
		"UTF-16LE": units("\xff\xfe", 0, 1), "UTF-16BE": units("\xfe\xff", 1, 0),
		"UTF-16LE without a mark": units("", 0, 1), "UTF-16BE without a mark": units("", 1, 0),
		"sep=": "sep=;\r\n" + text,
		// The encoding shows only far beyond what is looked at first.
		"Windows-1252, late": strings.Replace(ansi, "\n", "\n"+strings.Repeat("x@example.com;"+strings.Repeat("a", 90)+"\n", 1<<20/100), 1),
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
	if got := s.sheetTold(t, importCustomers, sheet.MarkUTF8+text, func(im *importer) { im.encoding = sheet.Windows1252 }); got != "el archivo tiene la marca de utf-8, y -encoding dice windows-1252" {
		t.Error(got)
	}
	// A byte that Windows-1252 has not is told.
	for _, b := range []string{"\x81", "\x8d", "\x8f", "\x90", "\x9d"} {
		got := s.sheetTold(t, importCustomers, "correo,nombre\nana@example.com,Ana "+b+"\n", func(im *importer) { im.encoding = sheet.Windows1252 })
		if !strings.HasPrefix(got, "1 rows, 0 new\nline,reason,correo,nombre\n2,tiene un carácter que no se puede leer,") {
			t.Errorf("%q: %s", b, got)
		}
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
	same(t, "of two readings", got, `1 new, 0 known, 1 wrong; 3 cumpleaños: "04/05": `+sheetText(sheet.ErrDate))
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

// TestPresets imports an export of each system with its real headings (contract §31).
func TestPresets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ kind, system, out, ignored, there string }{
		{importCustomers, "shopify", "2 filas: 2 nuevos", "Default Address Company, ", "Ana,Paz,ana@example.com,+525512345671,7001,,true,"},
		{importCustomers, "square", "2 filas: 2 nuevos", "Reference ID, Nickname, ", "Ana,Paz,ana@example.com,+525512345671,SQ1,1990-05-14,true,"},
		{importCustomers, "woocommerce", "1 fila: 1 nuevo", "Username, Last Active, Orders, ", "Ana Paz,,ana@example.com,+525512345671,,,,"},
		{importSales, "shopify", "2 filas: 1 nueva", "Financial Status, Paid at, ", "#1001,2025-11-01T07:50:26.000Z,ana@example.com,,Purchase,30,BOLSA,2,5,"},
		{importSales, "square", "1 fila: 1 nueva", "Time Zone, Gross Sales, ", "TX1,2025-11-01T15:50:26.000Z,ana@example.com,,Purchase,10,"},
	} {
		s := newOpenTill(t)
		s.ok("import customers " + s.file("who.csv", "correo,externalId\nana@example.com,\nsq@example.com,\n"))
		if test.system == "square" && test.kind == importSales {
			s.ok("import customers " + s.file("sq.csv", "correo,externalId\nana@example.com,SQ1\n"))
		}
		if test.kind == importCustomers {
			s = newOpenTill(t)
		}
		name := s.file("export.csv", string(readFile(t, "testdata/presets/"+test.system+"-"+test.kind+".csv")))
		_, out, told := s.run("import " + test.kind + " -from " + test.system + " " + name)
		if !strings.HasPrefix(out, test.out) || !strings.Contains(out, "no se usaron de la exportación: "+test.ignored) {
			t.Errorf("%s of %s: %s%s", test.kind, test.system, out, told)
		}
		if got := s.ok("export " + test.kind + " -raw"); !strings.Contains(got, test.there) {
			t.Errorf("%s of %s: no %s in %s", test.kind, test.system, test.there, got)
		}
	}
	s := newOpenTill(t)
	if code, _, _ := s.run("import sales -from woocommerce x.csv"); code != 2 {
		t.Errorf("a system without sales: exit %d", code)
	}
}

// TestRejectsKept: an import writes over no earlier file of errors, which may have been
// mended, and not over the one that it reads.
func TestRejectsKept(t *testing.T) {
	t.Parallel()
	s := newOpenTill(t)
	file := s.file("c.csv", "correo,nombre\nana,Ana\nbeto,Beto\n")
	first, second, third := file+".errors.csv", file+".errors-2.csv", file+".errors-3.csv"
	run := func(name, want string) {
		t.Helper()
		if _, out, _ := s.run("import customers " + name); !strings.HasSuffix(out, "los errores están en "+want+"\n") {
			t.Fatalf("%s: %s", name, out)
		}
	}
	run(file, first)
	run(file, first) // the same again
	mended := strings.Replace(string(readFile(t, first)), "ana,", "ana@example.com,", 1)
	writeFile(t, first, []byte(mended))
	run(file, second)
	if got := string(readFile(t, first)); got != mended {
		t.Errorf("the mended file is %s", got)
	}
	run(first, third)
	if got := string(readFile(t, first)); got != mended {
		t.Errorf("the mended file is %s", got)
	}
	if got := string(readFile(t, third)); got != "line,reason,correo,nombre\n3,\"correo: \"\"beto\"\": no es un email válido\",beto,Beto\n" {
		t.Error(got)
	}
	if info, err := os.Stat(third); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// TestRejectsAsTheFile: a file of errors has the separator of the file, and a byte order
// mark if a spreadsheet needs it. Mended, it is imported with the same flags.
func TestRejectsAsTheFile(t *testing.T) {
	t.Parallel()
	s := newOpenTill(t)
	file := s.file("c.csv", "Correo 2;Ma\xf1as;puntos\nana;a\xf1o;12,5\n")
	code, out, told := s.runArgs("import", "customers", "-map", "Correo 2=email", "-map", "mañas=nombre", file)
	if code != 1 {
		t.Fatal(out, told)
	}
	got := string(readFile(t, file+".errors.csv"))
	if want := sheet.MarkUTF8 + "line;reason;Correo 2;Mañas;puntos\n2;\"Correo 2: \"\"ana\"\": no es un email válido\";ana;año;12,5\n"; got != want {
		t.Errorf("got %q", got)
	}
	mended := s.file("mended.csv", strings.Replace(got, ";ana;", ";ana@example.com;", 1))
	if code, out, told = s.runArgs("import", "customers", "-map", "Correo 2=email", "-map", "mañas=nombre", mended); code != 0 || !strings.Contains(out, "1 saldo inicial: 12.5 puntos en total") {
		t.Error(code, out, told)
	}
}
