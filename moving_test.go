package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
