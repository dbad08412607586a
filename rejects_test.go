package main

import (
	"os"
	"strings"
	"testing"

	"sello/internal/sheet"
)

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
