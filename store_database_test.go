package main

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestDatabaseName: the name of a database tells nothing that is not for everybody, however the
// password is written.
func TestDatabaseName(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://db/sello": "postgres://db/sello",
		"postgresql://ana:SECRETO@db:5432/sello?sslmode=require":     "postgres://db:5432/sello",
		"postgres://ana:SECRETO@a:5432,b:5433/sello":                 "postgres://a:5432,b:5433/sello",
		"postgres://ana:SEC@1234/sello":                              "",
		"postgres://ana:SEC@RETO@db/sello":                           "",
		"postgres://ana:SEC%40RETO@[::1]:5432/sello":                 "postgres://[::1]:5432/sello",
		"postgres:///sello?host=/run/postgresql&password=SECRETO":    "postgres:///sello",
		"postgres://db?user=ana&password=SECRETO":                    "postgres://db",
		"postgres://ana:12/SECRETO@db/sello":                         "",
		"postgres://ana:12?SECRETO@db/sello":                         "",
		"postgres://ana:12#SECRETO@db/sello":                         "",
		"postgres://ana:SECRETO/@db/sello":                           "",
		"postgres://ana:SECRETO%@db/sello":                           "",
		"postgres://ana:SECRETO@db:x/sello":                          "",
		"postgres://db/sello password=SECRETO":                       "",
		"postgres://db/sello&PASSWORD%20=SECRETO":                    "",
		"postgres://db,password=SECRETO/sello":                       "",
		"postgres://postgres:5432/sello?host=/run/postgresql":        "postgres://postgres:5432/sello",
		"postgres://ana:SECRETO\n@db/sello":                          "",
		"postgres://ana:SECRETO@db/sello?options=-c%20x%3Dy#SECRETO": "postgres://db/sello",
	} {
		if name, ok := databaseName(address); name != want || ok != (want != "") {
			t.Errorf("%s: %q, %t, want %q", address, name, ok, want)
		}
	}
}

// TestDatabaseRefused: a binary without PostgreSQL refuses a database in every command that would
// open it, and any binary what a database has otherwise. Nothing is written, and the password is
// nowhere.
func TestDatabaseRefused(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.env["SELLO_DB"] = "postgres://ana:SECRETO@db:5432/sello"
	document, customers := s.file("luna.json", string(demoDocument)), s.file("c.csv", "email,phoneNumber\nana@example.com,\n")
	before := s.contents()
	const without = "postgres://…: este sello no trae PostgreSQL: go build -tags postgres . "
	for line, want := range map[string]string{
		"serve": without, "demo": without, "apply " + document: without, "apply -dry-run " + document: without, "export": without,
		"import customers " + customers: without, "import customers -dry-run " + customers: without, "export sales": without,
		"key list": without, "key create -name x": without, "audit": without, "webhook list": without,
		"user list": without, "user invite -email ana@example.com -role owner": without, "backup " + s.dir + "/copy.db": without,
		"verify": without, "doctor": without, "migrate": without, "clock": without, "serve -pg-conns 5": without,

		"compact": "autovacuum", "restore " + s.dir + "/copy.db": "pg_dump",
		"serve -backup-every 1h": "-backup-every es para un archivo", "serve -backup-dir x": "-backup-dir es para un archivo",
		"serve -backup-keep 3": "-backup-keep es para un archivo", "demo -backup-after x": "-backup-after es para un archivo",
		"serve -pg-conns 4":                             "-pg-conns debe ser al menos 5",
		"serve -db sello.db -pg-conns 4":                "-pg-conns va con una base de datos",
		"verify -db postgres://ana:12/SECRETO@db/sello": "-db debe tener la forma postgres://",
	} {
		for _, line := range []string{line, line + " -json"} {
			code, out, errs := s.run(line)
			if isJSON := strings.Contains(out, `"error"`); code != 2 || !strings.Contains(errs, want) && !strings.Contains(errs, "opción desconocida: -json") || isJSON != (out != "") {
				t.Errorf("sello %s: exit %d, %q, %q", line, code, out, errs)
			}
			if strings.Contains(out+errs, "SECRETO") || strings.Contains(out+errs, "ana:") {
				t.Errorf("sello %s tells the password: %q, %q", line, out, errs)
			}
		}
	}
	for _, line := range []string{"version", "apply -sample", "completion bash"} {
		s.ok(line)
	}
	if after := s.contents(); !maps.Equal(after, before) {
		t.Error("a file was written")
	}
}

// misspelt are addresses of databases that are none, which have the password SECRETO where they have
// one, and paths that begin as no path does.
var misspelt = []string{
	"Postgres://ana:SECRETO@db/x", "POSTGRES://ana:SECRETO@db/x", "PostgreSQL://ana:SECRETO@db/x", " postgres://ana:SECRETO@db/x",
	"\tpostgres://ana:SECRETO@db/x", "\npostgres://ana:SECRETO@db/x", "\u00a0postgres://ana:SECRETO@db/x", "\ufeffpostgres://ana:SECRETO@db/x",
	"\"postgres://ana:SECRETO@db/x\"", "'postgres://ana:SECRETO@db/x'", "“postgres://ana:SECRETO@db/x”", "«postgres://ana:SECRETO@db/x»",
	"`postgres://ana:SECRETO@db/x`", "pg://ana:SECRETO@db/x", "psql://ana:SECRETO@db/x", "mysql://ana:SECRETO@db/x", "jdbc:postgresql://db/x?user=ana&password=SECRETO",
	"SELLO_DB=postgres://ana:SECRETO@db/x", "host=db user=ana password=SECRETO", "HOST=db PASSWORD=SECRETO", "user=ana password=SECRETO",
	"host = db password = SECRETO", "hostaddr=10.0.0.1 user=ana", "user=ana dbname=SECRETO", "dbname = SECRETO", "'host=db password=SECRETO'", "sslpassword=SECRETO",
	"postgres:ana:SECRETO@db", "postgres:/ana:SECRETO@db/x", "Postgres:SECRETO", "postgresql:SECRETO", "postgres//ana:SECRETO@db/x", "//ana:SECRETO@db/x",
	"ana:SECRETO@db/x", "ana:SECRETO@db", " SECRETO.db", "\u3000SECRETO.db", "'SECRETO.db'", "”SECRETO.db",
}

// TestAddressRefused: what is not understood where a database or a data file is named is refused by
// every command, nowhere told, and no file is made.
func TestAddressRefused(t *testing.T) {
	s := newTill(t)
	document := s.file("luna.json", string(demoDocument))
	t.Chdir(s.dir)
	delete(s.env, "SELLO_DB")
	before := s.contents()
	refused := func(want string, env map[string]string, args ...string) {
		s.Helper()
		s.env = env
		var out, errs bytes.Buffer
		code := run(s.Context(), args, environment{s.getenv, s.names, strings.NewReader(""), &out, &errs})
		if told := errs.String(); code != 2 || want != "" && told != "sello: "+want+"\n" {
			t.Errorf("%q %q: exit %d, %q", env, args, code, told)
		}
		if all := out.String() + errs.String(); strings.Contains(all, "SECRETO") || strings.Contains(all, "ana:") {
			t.Errorf("%q %q tells it: %q", env, args, all)
		}
	}
	for _, cmd := range commands() {
		line := strings.Fields(cmd.name)
		for range strings.Fields(cmd.args) {
			line = append(line, document)
		}
		for _, address := range misspelt {
			refused(errAddress.message, nil, append(line, "-db", address)...)
			refused(errAddress.message, nil, append(line, "-db="+address)...)
			if cmd.name != "sandbox" { // SELLO_DB is the shop's
				refused(errAddress.message, map[string]string{"SELLO_DB": address}, line...)
			}
			if !mayBeDatabase(address) { // then it may be an argument
				continue
			}
			refused("", nil, append(line, address)...)
			refused("", nil, append(line, "-no"+address)...)
			refused("", nil, append(line, "-="+address)...)
			refused("", nil, address, cmd.name)
			refused("", nil, "-db="+address, cmd.name)
		}
	}
	for _, address := range misspelt {
		for _, line := range [][]string{{"copy", "-to", address}, {"copy", "-from", address, "-to", "postgres://db/x"}, {"backup", address}, {"restore", address}} {
			refused(errAddress.message, nil, line...)
		}
		refused(errAddress.message, map[string]string{"SELLO_TO": address}, "copy")
		refused(errAddress.message, map[string]string{"SELLO_FROM": address, "SELLO_TO": "b.db"}, "copy")
	}
	for _, line := range []string{"apply", "restore", "backup", "import sales", "serve -backup-dir", "verify -since", "verify -statement", "sandbox -document", "serve -tls-key"} {
		refused(errAddress.message, nil, append(strings.Fields(line), "postgres://ana:SECRETO@db/x")...)
	}
	if after := s.contents(); !maps.Equal(after, before) {
		t.Errorf("a file was made: %q", slices.Collect(maps.Keys(after)))
	}
	for _, path := range []string{"sello.db", "./ sello.db", `C:\sello\a@b.db`, "/srv/postgres:x/ana:1@b.db", "a'b.db", "", "año.db", "postgres.db", "user=x.db"} {
		if !isPath(path) {
			t.Errorf("%q is a path", path)
		}
	}
}

// TestDatabaseTold: errors name the database, and an older schema is not a file's.
func TestDatabaseTold(t *testing.T) {
	t.Parallel()
	c := &invocation{db: "postgres://ana:SECRETO@db/sello"}
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("x"), "postgres://db/sello: x"},
		{errors.New("postgres://db/sello: x"), "postgres://db/sello: x"},
		{&schemaError{version: 9}, "postgres://db/sello: la base de datos es del esquema 9 y este sello usa el 14: detén sus servidores y conviértela con sello migrate"},
	} {
		if got := c.ofFile(test.err).Error(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
