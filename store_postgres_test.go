//go:build postgres

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"sello/postgres"
	"sello/postgres/pgtest"
)

func openTestPostgres(t testing.TB, dsn string) *postgresStore {
	t.Helper()
	db, err := postgres.Open(t.Context(), dsn, postgres.Options{Create: true, Name: "sello"})
	if err != nil {
		t.Fatal(err)
	}
	return newPostgresStore(db)
}

func TestPostgresStore(t *testing.T) {
	testStore(t, func(t *testing.T) Store { return openTestPostgres(t, pgtest.DSN(t)) })
}

func TestPostgresRunTwice(t *testing.T) {
	testStore(t, func(t *testing.T) Store { return runTwice(openTestPostgres(t, pgtest.DSN(t))) })
}

// TestPostgresGolden plays every transcript on PostgreSQL, and compares the whole responses with
// those of the store in memory.
func TestPostgresGolden(t *testing.T) {
	playGolden(t, []goldenBackend{
		{"mem", func(*testing.T) Store { return newMemStore() }},
		{"postgres twice", func(t *testing.T) Store { return runTwice(openTestPostgres(t, pgtest.DSN(t))) }},
	})
}

// TestPostgresCopy moves a file to a database and back. Whatever is refused or interrupted leaves
// nothing behind.
func TestPostgresCopy(t *testing.T) {
	s := newTill(t)
	s.ok("apply " + s.file("luna.json", string(demoDocument)))
	customers := "externalId,email,phoneNumber,points\n"
	for i := range 300 {
		customers += fmt.Sprintf("c%d,c%d@example.com,,%d\n", i, i, i)
	}
	s.ok("import customers "+s.file("c.csv", customers), "")
	address, back := pgtest.DSN(t), filepath.Join(s.dir, "back.db")
	refused := func(line, want string) {
		t.Helper()
		if code, _, errs := s.run(line); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("sello %s: exit %d, %q; want %q", line, code, errs, want)
		}
	}
	copyIt := func(from, to string) (done copied) {
		t.Helper()
		if err := json.Unmarshal([]byte(s.ok("copy -json -from "+from+" -to "+to)), &done); err != nil {
			t.Fatal(err)
		}
		return done
	}
	refused("verify -db "+address, "la base de datos no tiene las tablas de sello")
	refused("copy -from "+address+" -to "+back, "la base de datos no tiene las tablas de sello")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	if code := run(ended, []string{"copy", "-to", address}, environment{s.getenv, s.names, strings.NewReader(""), &out, &errs}); code != 1 {
		t.Errorf("interrupted: exit %d, %s", code, &errs)
	}

	there := copyIt(s.env["SELLO_DB"], address)
	if there.Entries < 300 || there.Verified.Customers != 300 || there.To != mustName(t, address) {
		t.Errorf("%+v", there)
	}
	refused("copy -to "+address, "ya tiene datos de sello")
	again := copyIt(address, back)
	if again.Entries != there.Entries || again.Digest != there.Digest {
		t.Errorf("there %+v, and back %+v", there, again)
	}
	refused("copy -from "+address+" -to "+back, "ya existe y no se reemplaza")
	if text := s.ok("verify -db " + back); !strings.HasSuffix(text, "todo cuadra\n") {
		t.Error(text)
	}

	// What the commands do there, they do as in a file.
	key := strings.Fields(s.ok("key create -name x -db " + address))
	backup := filepath.Join(s.dir, "backup.db")
	if text := s.ok("backup -db " + address + " " + backup); !strings.Contains(text, "comprobada") {
		t.Error(text)
	}
	for _, db := range []string{address, backup} {
		if text := s.ok("key list -db " + db); !strings.Contains(text, key[0][len(key[0])-4:]) {
			t.Errorf("%s: %s", db, text)
		}
	}

	server, _ := s.start("serve -db " + address)
	refused("key create -name y -db "+address, "otro sello escribe en esta base de datos")
	refused("copy -from "+address+" -to "+filepath.Join(s.dir, "other.db"), "otro sello escribe en esta base de datos")
	s.ok("verify -db " + address)
	if code := server.stop(); code != 0 {
		t.Errorf("the server ended with %d: %s", code, server.log)
	}
	if strings.Contains(server.log.String(), "sello_test_") || !strings.Contains(server.log.String(), mustName(t, address)) {
		t.Errorf("the log has the address, or not its name: %s", server.log)
	}
}

func mustName(t *testing.T, address string) string {
	t.Helper()
	name, ok := databaseName(address)
	if !ok {
		t.Fatal(address)
	}
	return name
}

// servers returns the stores of n servers on one new database.
func servers(t *testing.T, n int) (list []Store) {
	dsn := pgtest.DSN(t)
	for range n {
		s := openTestPostgres(t, dsn)
		s.setting = isSetting[string]
		list = append(list, s)
	}
	return list
}

// TestPostgresServers has three servers answer concurrent clients by turns: whatever they do at
// once is answered as if it had been done one by one, by one server.
func TestPostgresServers(t *testing.T) {
	t.Run("rush", func(t *testing.T) {
		three := servers(t, 3)
		r := newRush(t, three[0], rushSize(), 1, three[1:]...)
		for _, rushed := range rushes {
			if rushed.flaw == twoCounters { // each server counts its own minute
				continue
			}
			if err := rushed.run(r); err != nil {
				t.Errorf("%s: %v", rushed.name, err)
			}
		}
		r.ok(r.verified())
	})
	t.Run("linear", func(t *testing.T) {
		linearSeeds(t, *linearMany, 6, func(t *testing.T) func(*rand.Rand) error {
			three := servers(t, 3)
			r := newRush(t, three[0], 0, 1, three[1:]...)
			return func(rnd *rand.Rand) error {
				return errors.Join(r.record(rnd, pick(rnd, "", "", "with a key")), r.verified())
			}
		})
	})
}
