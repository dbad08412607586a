package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReadme holds README.md against what there is: it names every command and
// every flag.
func TestReadme(t *testing.T) {
	raw, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(raw)
	for _, cmd := range commands() {
		if cmd.name != "version" && !strings.Contains(readme, "sello "+cmd.name) {
			t.Errorf("there is nothing about sello %s", cmd.name)
		}
		if cmd.flags == nil {
			continue
		}
		c := &invocation{set: flag.NewFlagSet(cmd.name, flag.ContinueOnError)}
		c.set.StringVar(&c.db, "db", "", "")
		cmd.flags(c)
		c.set.VisitAll(func(f *flag.Flag) {
			if c.earlier[f.Name] == "" && !strings.Contains(readme, "`-"+f.Name) {
				t.Errorf("there is nothing about -%s of sello %s", f.Name, cmd.name)
			}
		})
	}
}

// TestIgnored: what sello makes beside its source is left out of the repository.
func TestIgnored(t *testing.T) {
	raw, err := os.ReadFile(".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	journals := journalNames("sello.db")
	made := append(journals[:], "sello.db", "sello.db.sock", "sello.db.new-123", "sello.db.schema3", "customers.csv.errors.csv", "sello")
	for _, name := range made {
		ignored := slices.ContainsFunc(strings.Fields(string(raw)), func(pattern string) bool {
			ok, err := filepath.Match(strings.TrimPrefix(pattern, "/"), name)
			return ok && err == nil
		})
		if !ignored {
			t.Errorf(".gitignore does not name %s", name)
		}
	}
}
