package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sello/internal/sheet"
)

var anyID = regexp.MustCompile(`,[0-9a-f]{8}-[0-9a-f-]{27},`)

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
		again := strings.Replace(flags, "-full", "-ignore id,tier,balance,pending,expiring,status", 1)
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
	want := sheet.MarkUTF8 + "firstName,lastName,email,phoneNumber,externalId,birthDate,marketing,marketingAt,id,tier,balance,pending,expiring,enrolled,status\n,,ana@example.com,,C-1,,,,ID,,12.5,0,2090-12-31: 12.5,2019-03-15T06:00:00.000Z,Active\n"
	if got := anyID.ReplaceAllString(exported, ",ID,"); got != want {
		t.Errorf("got %swant %s", got, want)
	}
	code, _, told := s.run("import customers " + s.file("full.csv", exported))
	if code != 1 || !strings.Contains(told, `columnas desconocidas: "id", "tier", "balance", "pending", "expiring", "status"; con -ignore id,tier,balance,pending,expiring,status se dejan fuera`) {
		t.Errorf("%d %s", code, told)
	}
	s.ok("import customers -ignore id,tier,balance,pending,expiring,status " + s.file("full.csv", exported))
	to := newOpenTill(t)
	to.ok("import customers -no-welcome -map balance=puntos -ignore id,tier,pending,expiring,status " + to.file("full.csv", exported))
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
