// Sheets writes the files of testdata/sheets: one list of customers, as Excel in Mexico
// and in Spain, LibreOffice and Google Sheets save it. Imports of all of them must give
// the same customers.
//
// Usage, from the root of the repository:
//
//	go run -C tools/sheets . ../../testdata/sheets
//
// LibreOffice makes its files itself, without a window; where its program soffice is
// missing they are left as they are. Excel and Google Sheets do not run here. Their
// files are written byte by byte as theirs are: separator, encoding, line ends, quotation
// marks, numbers and dates.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("sheets: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: sheets directory")
	}
	dir := os.Args[1]
	for name, text := range imitated() {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
	switch err := libreOffice(dir); {
	case errors.Is(err, exec.ErrNotFound):
		log.Print("soffice is not installed: the files of LibreOffice are left as they are")
	case err != nil:
		log.Fatal(err)
	}
}

// A day is a cell with a date.
type day struct{ time.Time }

func on(text string) day {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		log.Fatal(err)
	}
	return day{t}
}

// rows is the sheet: texts, numbers (float64), dates and empty cells (nil).
func rows() [][]any {
	return [][]any{
		{"Nombre", "Apellido", "Correo", "Teléfono", "No. de cliente", "Cumpleaños", "Alta", "Puntos", "Vencen", "Puntos históricos"},
		{"María José", "Núñez", "maria@example.com", "55 1234 5678", "00017", on("1990-02-28"), on("2019-03-05"), 1250.5, on("2027-12-31"), 1500.0},
		{"Íñigo", "García; hijo", "inigo@example.com", nil, "00018", nil, on("2020-12-31"), 80.0, nil, nil},
		{"Ana \"Anita\"", "López, viuda de Peña", nil, "+525512345679", nil, nil, nil, 0.25, on("2028-01-01"), 0.5},
		{"Günther", "O'Brien", "GUNTHER@example.com", nil, "A-1", on("1985-11-30"), on("2021-01-02"), nil, nil, 12345.0},
		{"Çelik", "€uro", "celik@example.com", nil, nil, nil, nil, 1000000.0, nil, nil},
		{"=1+1", "@nadie", "formula@example.com", nil, nil, nil, nil, 7.0, nil, nil},
		{"-5+5", "+más", "menos@example.com", nil, nil, nil, nil, nil, nil, nil},
	}
}

// A locale says how a spreadsheet writes numbers and dates.
type locale struct {
	decimal string
	date    string // layout of package time
}

var (
	mexico       = locale{".", "02/01/2006"}
	spain        = locale{",", "02/01/2006"}
	googleMexico = locale{".", "2/1/2006"}
	googleSpain  = locale{",", "2/1/2006"}
)

func (l locale) text(cell any) string {
	switch v := cell.(type) {
	case string:
		return v
	case float64:
		return strings.Replace(strconv.FormatFloat(v, 'f', -1, 64), ".", l.decimal, 1)
	case day:
		return v.Format(l.date)
	}
	return ""
}

// separated writes the sheet with quotation marks where a cell has one of special.
func separated(l locale, separator, special, lineEnd string) string {
	var b strings.Builder
	for _, row := range rows() {
		for i, cell := range row {
			text := l.text(cell)
			if strings.ContainsAny(text, special) {
				text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
			}
			if i > 0 {
				b.WriteString(separator)
			}
			b.WriteString(text)
		}
		b.WriteString(lineEnd)
	}
	return b.String()
}

// imitated returns the files of Excel and Google Sheets by their names.
func imitated() map[string][]byte {
	const mark = "\ufeff"
	comma, semicolon, tab := ",\"\r\n", ";\"\r\n", ",\t\"\r\n" // what makes Excel quote a cell
	return map[string][]byte{
		"excel-mexico.csv":         windows1252(separated(mexico, ",", comma, "\r\n")),
		"excel-mexico-utf8.csv":    []byte(mark + separated(mexico, ",", comma, "\r\n")),
		"excel-mexico-unicode.txt": utf16Text(mark + separated(mexico, "\t", tab, "\r\n")),
		"excel-spain.csv":          windows1252(separated(spain, ";", semicolon, "\r\n")),
		"excel-spain-utf8.csv":     []byte(mark + separated(spain, ";", semicolon, "\r\n")),
		"excel-spain-unicode.txt":  utf16Text(mark + separated(spain, "\t", tab, "\r\n")),
		"google-mexico.csv":        []byte(strings.TrimSuffix(separated(googleMexico, ",", comma, "\r\n"), "\r\n")),
		"google-spain.csv":         []byte(strings.TrimSuffix(separated(googleSpain, ",", comma, "\r\n"), "\r\n")),
		"google-spain.tsv":         []byte(strings.TrimSuffix(separated(googleSpain, "\t", "", "\r\n"), "\r\n")),
	}
}

func utf16Text(text string) []byte {
	var b bytes.Buffer
	for _, unit := range utf16.Encode([]rune(text)) {
		b.Write(binary.LittleEndian.AppendUint16(nil, unit))
	}
	return b.Bytes()
}

func windows1252(text string) []byte {
	var b []byte
	for _, r := range text {
		switch {
		case r == '€':
			r = 0x80
		case r > 0xff || 0x80 <= r && r < 0xa0:
			log.Fatalf("%c is not in Windows-1252", r)
		}
		b = append(b, byte(r))
	}
	return b
}

// conversions are the files of LibreOffice: a country, and the options of its filter for
// text: separator, quotation mark and character set.
var conversions = []struct{ name, country, options string }{
	{"libreoffice-mexico.csv", "MX", "44,34,76"},
	{"libreoffice-spain.csv", "ES", "59,34,76"},
	{"libreoffice-spain-1252.csv", "ES", "59,34,1"},
	{"libreoffice-spain-tab.csv", "ES", "9,34,76"},
	{"libreoffice-mexico-utf16.csv", "MX", "9,34,65535"},
}

// libreOffice lets LibreOffice make its files.
func libreOffice(dir string) error {
	soffice, err := exec.LookPath("soffice")
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "sheets-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, c := range conversions {
		profile := filepath.Join(work, "profile-"+c.country)
		if err := writeProfile(profile, c.country); err != nil {
			return err
		}
		sheet := filepath.Join(work, "sheet.fods")
		if err := os.WriteFile(sheet, flatSheet(c.country), 0o600); err != nil {
			return err
		}
		// The rest of the options: from line 1, no formats of columns, no language, quotes
		// only where needed, cells as shown.
		filter := "csv:Text - txt - csv (StarCalc):" + c.options + ",1,,0,false,true,false"
		run := exec.Command(soffice, "-env:UserInstallation=file://"+profile, "--headless", "--convert-to", filter, "--outdir", work, sheet)
		if told, err := run.CombinedOutput(); err != nil {
			return fmt.Errorf("soffice: %w\n%s", err, told)
		}
		text, err := os.ReadFile(filepath.Join(work, "sheet.csv"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, c.name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeProfile makes a user's profile with the numbers of a country.
func writeProfile(dir, country string) error {
	if err := os.MkdirAll(filepath.Join(dir, "user"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "user", "registrymodifications.xcu"), fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry"><item oor:path="/org.openoffice.Setup/L10N"><prop oor:name="ooSetupSystemLocale" oor:op="fuse"><value>es-%s</value></prop></item></oor:items>
`, country), 0o600)
}

// flatSheet is the sheet as a flat OpenDocument file of a country where Spanish is
// spoken.
func flatSheet(country string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" xmlns:number="urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.spreadsheet">
<office:styles><style:default-style style:family="table-cell"><style:text-properties fo:language="es" fo:country="%s"/></style:default-style></office:styles>
<office:automatic-styles>
<number:date-style style:name="N1" number:language="es" number:country="%[1]s"><number:day number:style="long"/><number:text>/</number:text><number:month number:style="long"/><number:text>/</number:text><number:year number:style="long"/></number:date-style>
<style:style style:name="date" style:family="table-cell" style:data-style-name="N1"/>
</office:automatic-styles>
<office:body><office:spreadsheet><table:table table:name="Clientes">
`, country)
	for _, row := range rows() {
		b.WriteString("<table:table-row>")
		for _, cell := range row {
			switch v := cell.(type) {
			case string:
				b.WriteString(`<table:table-cell office:value-type="string"><text:p>`)
				xml.EscapeText(&b, []byte(v))
				b.WriteString("</text:p></table:table-cell>")
			case float64:
				fmt.Fprintf(&b, `<table:table-cell office:value-type="float" office:value="%v"/>`, strconv.FormatFloat(v, 'f', -1, 64))
			case day:
				fmt.Fprintf(&b, `<table:table-cell table:style-name="date" office:value-type="date" office:date-value="%s"/>`, v.Format(time.DateOnly))
			default:
				b.WriteString("<table:table-cell/>")
			}
		}
		b.WriteString("</table:table-row>\n")
	}
	b.WriteString("</table:table></office:spreadsheet></office:body></office:document>\n")
	return b.Bytes()
}
