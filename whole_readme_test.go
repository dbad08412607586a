package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"sello/internal/disk"
)

func readText(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestReadme checks the length of README.md, the demo command, the test command,
// which .ci/run takes from it, and that it names doc.go, the manual. The TestHouse
// tests check the files that the manual lists.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme := readText(t, "README.md")
	if len(readme) > 8192 {
		t.Errorf("README.md has %d bytes, and 8,192 are enough", len(readme))
	}
	for _, want := range []string{"\n```sh\ngo run . demo\n```\n", "\n```sh\ngo test ./...\n```\n", "`doc.go`"} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md has no %q", want)
		}
	}
}

// section returns the text of a document under a heading.
func section(text, title string) string {
	_, text, _ = strings.Cut(text, "\n## "+title+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// TestOperations checks that docs/operations.md and the guide name every command, and
// that docs/operations.md names every flag under "Flags".
func TestOperations(t *testing.T) {
	t.Parallel()
	operations, guide := readText(t, "docs/operations.md"), readText(t, "docs/es/guia.md")
	flags := section(operations, "Flags")
	for _, cmd := range commands() {
		for name, text := range map[string]string{"docs/operations.md": operations, "docs/es/guia.md": guide} {
			if !strings.Contains(text, "sello "+cmd.name) {
				t.Errorf("%s says nothing about sello %s", name, cmd.name)
			}
		}
		if cmd.flags == nil {
			continue
		}
		c := &invocation{set: flag.NewFlagSet(cmd.name, flag.ContinueOnError)}
		c.set.StringVar(&c.db, "db", "", "")
		cmd.flags(c)
		c.set.VisitAll(func(f *flag.Flag) {
			if !strings.Contains(flags, "`-"+f.Name+"`") && !strings.Contains(flags, "`-"+f.Name+" ") {
				t.Errorf("docs/operations.md says nothing about -%s of sello %s under Flags", f.Name, cmd.name)
			}
		})
	}
}

// TestConfiguration checks that docs/configuration.md names every field of a document,
// in the section on the part of the document that has the field.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	text := readText(t, "docs/configuration.md")
	for _, part := range []struct {
		title string
		of    any
	}{
		{"organization", organization{}}, {"programs", programDoc{}}, {"Rules", rule{}}, {"rewards", rewardDoc{}}, {"segments", segmentDoc{}},
		{"segments", segmentRule{}},
	} {
		said := section(text, part.title)
		for i := range reflect.TypeOf(part.of).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(part.of).Field(i).Tag.Get("json"), ",")
			if !regexp.MustCompile("[`.\"]" + name + "[`.\"]").MatchString(said) {
				t.Errorf("docs/configuration.md has no field %q under %q", name, part.title)
			}
		}
	}
}

var keyLetter = regexp.MustCompile(`[kK]ey\('(\w)'`)

// TestFileFormat checks that docs/file-format.md has one row for each table, in order.
// The source must make keys with the letters of these tables and with no others.
func TestFileFormat(t *testing.T) {
	t.Parallel()
	text := readText(t, "docs/file-format.md")
	if !strings.Contains(text, fmt.Sprintf("Schema version %d.", schemaVersion)) {
		t.Errorf("docs/file-format.md is not of schema %d", schemaVersion)
	}
	rows := strings.Split(section(text, "Tables"), "\n")
	rows = slices.DeleteFunc(rows, func(line string) bool { return !strings.HasPrefix(line, "| `") })
	declared := map[string]bool{}
	for i, table := range tables {
		declared[table.shape[:1]] = true
		key := "`" + table.shape[:1] + "`" + strings.ReplaceAll(table.shape[1:], "'", "`")
		if i >= len(rows) {
			t.Fatalf("docs/file-format.md has no row for %s", key)
		}
		cells := strings.Split(rows[i], " | ")
		if len(cells) != 4 || cells[0] != "| "+key || !strings.HasPrefix(cells[1], table.name) ||
			(cells[2] == "primary") != (table.traits&primary != 0) {
			t.Errorf("docs/file-format.md has row\n%s\nfor table %s, %s, primary %t", rows[i], key, table.name, table.traits&primary != 0)
		}
	}
	if len(rows) > len(tables) {
		t.Errorf("docs/file-format.md has another row: %s", rows[len(tables)])
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range keyLetter.FindAllStringSubmatch(readText(t, name), -1) {
			made[m[1]] = true
		}
	}
	if !maps.Equal(made, declared) {
		t.Errorf("the source makes keys of letters %v, and model.go declares %v", made, declared)
	}
}

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks checks that the files and headings that the documents link to exist.
func TestLinks(t *testing.T) {
	t.Parallel()
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	for _, name := range documents {
		for _, m := range markdownLink.FindAllStringSubmatch(readText(t, name), -1) {
			path, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), filepath.FromSlash(path))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
				continue
			}
			if heading != "" && !slices.Contains(headings(readText(t, target)), heading) {
				t.Errorf("%s links to %s, and there is no such heading", name, m[1])
			}
		}
	}
}

// headings returns the names by which links refer to the headings of a document.
func headings(text string) (list []string) {
	for line := range strings.Lines(text) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			list = append(list, strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
					return unicode.ToLower(r)
				}
				return -1
			}, strings.TrimSpace(title)))
		}
	}
	return list
}

// shownSchema is where a document shows what `sello version` prints, or a migration to it.
var shownSchema = regexp.MustCompile(`commit [^\n]*, esquema (\d+)|convertido del esquema \d+ al (\d+)|este sello usa el (\d+): conviértelo`)

// TestSchemaShown: the schema that documents show as today's is that of the code.
func TestSchemaShown(t *testing.T) {
	t.Parallel()
	shown := map[string]int{}
	for _, name := range []string{"README.md", "docs/first-half-hour.md", "docs/es/guia.md", "docs/operations.md", "docs/file-format.md"} {
		for _, found := range shownSchema.FindAllStringSubmatch(readText(t, name), -1) {
			shown[name]++
			if number := strings.Join(found[1:], ""); number != fmt.Sprint(schemaVersion) {
				t.Errorf("%s: schema %s instead of %d: %s", name, number, schemaVersion, found[0])
			}
		}
	}
	for name, least := range map[string]int{"docs/first-half-hour.md": 1, "docs/es/guia.md": 1, "docs/operations.md": 1} {
		if shown[name] < least {
			t.Errorf("%s shows the schema %d times", name, shown[name])
		}
	}
}

// TestIgnored checks that .gitignore names the files that sello makes and its binary.
func TestIgnored(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	journals := disk.JournalNames("sello.db")
	made := append(journals[:], "sello.db", "sello.db.sock", "sello.db.new-123", "sello.db.schema11", "customers.csv.errors.csv", "customers.csv.errors-2.csv", "sello.db.dry-run-123", "sello.db.before-restore-20261122T081500Z", "sello.db.restore-123", "sello")
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
