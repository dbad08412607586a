package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sello/internal/disk"
)

// customers returns how many customers verify counts.
func (s *till) customers(flags string) uint64 {
	s.Helper()
	var out verification
	if err := json.Unmarshal([]byte(s.ok("verify -json "+flags)), &out); err != nil {
		s.Fatal(err)
	}
	return out.Customers
}

// TestRestore restores a backup, and then what was there before.
func TestRestore(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	copied := filepath.Join(s.dir, "copia.db")
	s.ok("backup " + copied)
	s.ok("import customers " + s.file("c.csv", "email\nana@example.com\n"))
	if err := os.Chmod(copied, 0o400); err != nil {
		t.Fatal(err)
	}
	out := s.ok("restore " + copied)
	kept, _ := filepath.Glob(filepath.Join(s.dir, "sello.db.before-restore-*Z"))
	if want := "sello.db: restaurado de " + copied + ": 0 clientes, 0 movimientos, 0 ventas, todo cuadra\nlo de antes está en "; len(kept) != 1 ||
		!strings.HasSuffix(out, want+kept[0]+"\n") {
		t.Fatalf("%s\nkept: %v", out, kept)
	}
	if now, before := s.customers(""), s.customers("-db "+kept[0]); now != 0 || before != 1 {
		t.Errorf("%d customers now, %d in what was kept", now, before)
	}
	var done restored
	if err := json.Unmarshal([]byte(s.ok("restore -json "+kept[0])), &done); err != nil {
		t.Fatal(err)
	}
	if s.customers("") != 1 || done.Schema != schemaVersion || done.Verified.Customers != 1 || done.From != kept[0] || done.Kept == "" {
		t.Errorf("%+v", done)
	}
	other := filepath.Join(s.dir, "other.db")
	if out := s.ok("restore -db " + other + " " + copied); strings.Contains(out, "lo de antes") {
		t.Errorf("nothing was there: %s", out)
	}
}

// TestRestoreRefusals: each leaves the file as it was, and says why in one line.
func TestRestoreRefusals(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	s.ok("import customers " + s.file("c.csv", "email,phoneNumber\nana@example.com,\n"))
	names := map[string]string{}
	for _, name := range []string{"wrong", "newer", "damaged"} {
		names[name] = filepath.Join(s.dir, name+".db")
		s.ok("backup " + names[name])
	}
	giveUnearned(t, names["wrong"])
	store, err := openBolt(names["newer"], disk.Options{Dense: denseTables})
	if err == nil {
		err = errors.Join(store.Update(t.Context(), func(tx Tx) error { return putUint(tx, newKey('v'), schemaVersion+1) }), store.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	b := readFile(t, names["damaged"])
	b[strings.LastIndex(string(b), "ana@example.com")] ^= 1
	names["damaged"] = s.file("damaged.db", string(b))
	before := readFile(t, s.env["SELLO_DB"])
	for name, want := range map[string]string{
		names["wrong"]:            ": 1 diferencia: no se restaura; sello verify -db " + names["wrong"] + " las muestra",
		names["newer"]:            ": el archivo es del esquema ",
		names["damaged"]:          ": archivo dañado",
		s.file("c.txt", "a text"): ": no es un archivo de sello",
		s.dir:                     ": es un directorio",
		s.dir + "/none":           ": no existe",
		s.env["SELLO_DB"]:         ": es el propio archivo de datos",
	} {
		code, _, errs := s.run("restore " + name)
		if code != 1 || !strings.Contains(errs, name+want) || strings.Count(errs, "\n") != 1 || strings.Contains(errs, ".restore-") {
			t.Errorf("%s: exit %d, %s", name, code, errs)
		}
	}
	if string(readFile(t, s.env["SELLO_DB"])) != string(before) {
		t.Error("the file has changed")
	}
	if left, _ := filepath.Glob(s.env["SELLO_DB"] + ".*"); left != nil {
		t.Errorf("left behind: %q", left)
	}
	r, _ := s.start("serve")
	for _, line := range []string{"restore " + names["wrong"], "restore -db " + names["wrong"] + " " + s.env["SELLO_DB"]} {
		if code, _, errs := s.run(line); code != 1 || !strings.Contains(errs, "un servidor lo tiene abierto") {
			t.Errorf("%s: exit %d, %s", line, code, errs)
		}
	}
	r.stop()
}

// TestRestoreKilled kills restores at any moment. Each time the file is what it was, or
// what was restored; and nothing that was kept is lost.
func TestRestoreKilled(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	copied := filepath.Join(s.dir, "copia.db")
	s.ok("backup " + copied)
	s.ok("import customers " + s.file("c.csv", "email\nana@example.com\n"))
	full := filepath.Join(s.dir, "full.db")
	s.ok("backup " + full)
	began := time.Now()
	if out, err := selloCommand(t, "restore", "-db", s.env["SELLO_DB"], copied).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took, ended := time.Since(began), map[uint64]int{}
	kills, killed := sized(20, 8), 0
	for i := range kills {
		s.ok("restore " + full)
		cmd := selloCommand(t, "restore", "-db", s.env["SELLO_DB"], copied)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(took * time.Duration(5*i) / time.Duration(4*(kills-1))) // on past the end
		cmd.Process.Kill()
		if cmd.Wait() != nil {
			killed++
		}
		n := s.customers("")
		ended[n]++
		kept, _ := filepath.Glob(filepath.Join(s.dir, "sello.db.before-restore-*"))
		for _, name := range kept {
			if strings.Contains(name, "-journal") {
				continue
			}
			s.customers("-db " + name) // it is whole
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		if n > 1 {
			t.Fatalf("kill %d: %d customers", i, n)
		}
	}
	t.Logf("customers after the kills: %v", ended)
	if killed < kills/3 {
		t.Errorf("only %d of %d were killed before they were done", killed, kills)
	}
	s.ok("restore " + copied)
	if left, _ := filepath.Glob(s.env["SELLO_DB"] + ".restore-*"); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// TestVerifyWritesNothing: verify reads a file, with the journals that a crash has left, as
// a user who may not write it, and leaves everything as it is.
func TestVerifyWritesNothing(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newTill(t)
	path := unpackFile(t, thisSchema)
	dir := filepath.Dir(path)
	before := map[string]string{}
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		before[f.Name()] = string(readFile(t, filepath.Join(dir, f.Name())))
		os.Chmod(filepath.Join(dir, f.Name()), 0o400)
	}
	os.Chmod(dir, 0o500)
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	if out := s.ok("verify -db " + path); !strings.Contains(out, "todo cuadra") {
		t.Error(out)
	}
	if len(before) < 3 {
		t.Errorf("no journals: %d files", len(before))
	}
	after, _ := os.ReadDir(dir)
	for _, f := range after {
		if before[f.Name()] != string(readFile(t, filepath.Join(dir, f.Name()))) {
			t.Errorf("%s has changed", f.Name())
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
}

// TestCompactRestored: a file that was restored from a backup becomes no larger by compact,
// which says so, and is whole.
func TestCompactRestored(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	var rows strings.Builder
	rows.WriteString("email,firstName,points\n")
	for i := range 400 {
		fmt.Fprintf(&rows, "c%03d@example.com,Ana,%d\n", i, i)
	}
	s.ok("import customers " + s.file("customers.csv", rows.String()))
	s.ok("backup " + s.dir + "/copy.db")
	s.ok("restore " + s.dir + "/copy.db")
	before, err := os.Stat(s.env["SELLO_DB"])
	if err != nil {
		t.Fatal(err)
	}
	var done compacted
	if err := json.Unmarshal([]byte(s.ok("compact -json")), &done); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(s.env["SELLO_DB"])
	if err != nil || !done.Kept || done.Before != before.Size() || done.After != after.Size() || after.Size() > before.Size() {
		t.Errorf("%+v; %d bytes before, %d after", done, before.Size(), after.Size())
	}
	if out := s.ok("compact"); !strings.Contains(out, "sello.db: queda como está, de ") || !strings.Contains(out, " bytes: el nuevo sería mayor; sin restos de lo borrado, ") {
		t.Error(out)
	}
	if out := s.ok("verify"); !strings.Contains(out, "todo cuadra") {
		t.Error(out)
	}
}

// TestCopyRefused: what sello copy cannot do is told before anything is opened.
func TestCopyRefused(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	for line, want := range map[string]string{
		"copy":                        "falta -to",
		"copy -to " + s.dir + "/b.db": "de archivo a archivo copia sello backup",
		"copy -from postgres://a/x -to postgres://b/x": "de base de datos a base de datos, pg_dump",
		"copy -to postgres://ana:12/SECRETO@db/sello":  "-to debe tener la forma postgres://",
	} {
		code, out, errs := s.run(line)
		if code != 2 || out != "" || !strings.Contains(errs, want) || strings.Contains(errs, "SECRETO") {
			t.Errorf("sello %s: exit %d, %q, %q", line, code, out, errs)
		}
	}
	if code, _, errs := s.run("copy -to postgres://ana:SECRETO@db/sello"); code != 1 || !strings.Contains(errs, s.dir+"/sello.db: no existe") {
		t.Errorf("without a file: exit %d, %q", code, errs)
	}
}
