//go:build postgres

package main

import (
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
