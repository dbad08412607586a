package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// runArgs is run for arguments with blanks.
func (s *till) runArgs(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, environment{s.getenv, strings.NewReader(""), &out, &errs})
	return code, out.String(), errs.String()
}

func newOpenTill(t *testing.T) *till {
	t.Helper()
	s := newTill(t)
	s.ok("apply " + s.file("org.json", string(setup{program: `"rules":[{"key":"hola","name":"Hola","on":"Signup","points":5}]`}.document())))
	return s
}

// TestFormulaInAName: a name that a spreadsheet would run comes back from either kind of
// export as it was, and none begins a cell of an export that is for a spreadsheet.
func TestFormulaInAName(t *testing.T) {
	t.Parallel()
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
		rows, err := csv.NewReader(strings.NewReader(exported)).ReadAll()
		if err != nil || len(rows) != len(names)+1 {
			t.Fatalf("%s: %v\n%s", flags, err, exported)
		}
		for _, cell := range slices.Concat(rows...) {
			if raw := strings.Contains(flags, "-raw"); !raw && isFormula(cell) && !strings.HasPrefix(cell, "'") {
				t.Errorf("%s: a spreadsheet would run %q", flags, cell)
			}
		}
		if name := rows[1][0]; (name == "=1+1") != strings.Contains(flags, "-raw") {
			t.Errorf("%s: %q", flags, name)
		}
		to := newOpenTill(t)
		again := strings.Replace(flags, "-full", "-ignore id,tier,balance,pending,expiring", 1)
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
	want := "firstName,lastName,email,phoneNumber,externalId,birthDate,id,tier,balance,pending,expiring,enrolled\n,,ana@example.com,,C-1,,ID,,12.5,0,2090-12-31: 12.5,2019-03-15T06:00:00.000Z\n"
	if got := anyID.ReplaceAllString(exported, ",ID,"); got != want {
		t.Errorf("got %swant %s", got, want)
	}
	code, _, told := s.run("import customers " + s.file("full.csv", exported))
	if code != 1 || !strings.Contains(told, `columnas desconocidas: "id", "tier", "balance", "pending", "expiring"; con -ignore id,tier,balance,pending,expiring se dejan fuera`) {
		t.Errorf("%d %s", code, told)
	}
	s.ok("import customers -ignore id,tier,balance,pending,expiring " + s.file("full.csv", exported))
	to := newOpenTill(t)
	to.ok("import customers -no-welcome -map balance=puntos -ignore id,tier,pending,expiring " + to.file("full.csv", exported))
	if got := to.ok("export customers -full"); !strings.Contains(got, ",12.5,0,,2019-03-15T06:00:00.000Z\n") {
		t.Errorf("moved to another file: %s", got)
	}
}

// TestImportTwice imports an Excel file with balances twice, with and without a server.
func TestImportTwice(t *testing.T) {
	t.Parallel()
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
	if got := string(readFile(t, file+".errors.csv")); got != "line,reason,teléfono,puntos\n4013,el cliente ya tiene un saldo inicial de 1,5510000001,2\n" {
		t.Error(got)
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
	if got := string(readFile(t, third)); got != "line,reason,correo,nombre\n3,El email no tiene un formato válido,beto,Beto\n" && !strings.Contains(got, "beto") {
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
	if want := markUTF8 + "line;reason;Correo 2;Mañas;puntos\n2;El email no tiene un formato válido;ana;año;12,5\n"; got != want {
		t.Errorf("got %q", got)
	}
	mended := s.file("mended.csv", strings.Replace(got, ";ana;", ";ana@example.com;", 1))
	if code, out, told = s.runArgs("import", "customers", "-map", "Correo 2=email", "-map", "mañas=nombre", mended); code != 0 || !strings.Contains(out, "1 saldo inicial: 12.5 puntos en total") {
		t.Error(code, out, told)
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
