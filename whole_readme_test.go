package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
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

// TestShownCommands parses every sello command that the documents show: its name, its flags
// and the number of its arguments.
func TestShownCommands(t *testing.T) {
	t.Parallel()
	shown := 0
	for _, name := range []string{"README.md", "docs/first-half-hour.md", "docs/operations.md", "docs/es/guia.md", "docs/es/tarjeta.md", "docs/configuration.md", "SECURITY.md"} {
		inside := false
		for line := range strings.Lines(readText(t, name)) {
			text := strings.TrimPrefix(strings.TrimSpace(line), "$ ")
			if strings.HasPrefix(text, "```") {
				inside = !inside
			}
			words := shellWords(strings.TrimPrefix(text, "sudo -u sello "))
			if !inside || len(words) < 2 || strings.TrimPrefix(words[0], "./") != "sello" {
				continue
			}
			cmd, n := commandOf(words[1:])
			c := &invocation{environment: environment{getenv: func(string) string { return "" }, stdout: io.Discard}, set: flag.NewFlagSet("", flag.ContinueOnError)}
			c.set.SetOutput(io.Discard)
			c.dbFlag()
			if n == 0 {
				if strings.HasSuffix(words[1], ":") || strings.HasPrefix(words[1], "v") || strings.HasPrefix(words[1], "(") {
					continue // what a command prints
				}
				t.Errorf("%s: no command: %s", name, text)
				continue
			}
			cmd.flags(c)
			if err := c.parse(cmd, words[1+n:]); err != nil {
				t.Errorf("%s: %s: %v", name, text, err)
			}
			shown++
		}
	}
	if shown < 40 {
		t.Errorf("%d commands found", shown)
	}
}

// shellWords splits a line as a shell does, up to a comment, a pipe or a redirection.
func shellWords(line string) (words []string) {
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case strings.ContainsRune(" \t", r):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		case strings.ContainsRune("|>&;", r) || r == '#' && !begun:
			return words
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// shellBlocks are the blocks of a document that are there to be pasted into a shell. A script
// that goes into a file is marked as shell, and not as sh.
func shellBlocks(text string) (blocks []string) {
	for _, part := range strings.Split(text, "\n```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// TestPasteable: the shell of a Mac knows no comments where lines are typed. Of `mkdir x # in
// production` it makes four directories, and an apostrophe in a comment opens a quotation.
func TestPasteable(t *testing.T) {
	t.Parallel()
	for name, least := range map[string]int{
		"README.md": 6, "docs/first-half-hour.md": 12, "docs/operations.md": 15, "docs/es/guia.md": 4, "docs/es/panel.md": 1, "docs/es/tarjeta.md": 1, "docs/integrar.md": 5,
		"docs/configuration.md": 3, "docs/postgresql.md": 8, "docs/performance.md": 0, "docs/reliability.md": 0, "SECURITY.md": 0, "CONTRIBUTING.md": 2,
	} {
		if n := len(shellBlocks(readText(t, name))); n < least {
			t.Errorf("%s: %d blocks to paste", name, n)
		}
		for _, block := range shellBlocks(readText(t, name)) {
			for line := range strings.Lines(block) {
				if text := strings.TrimSpace(line); strings.HasPrefix(text, "#") || strings.Contains(text, " #") {
					t.Errorf("%s: a comment: %s", name, text)
				}
			}
		}
	}
}

// TestReadmePasted pastes the blocks of README's tour and first day into the shells that there
// are.
func TestReadmePasted(t *testing.T) {
	binary := selloCommand(t).Path
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	text := readText(t, "README.md")
	for _, shell := range []string{"bash --norc -i", "zsh -f -i"}[:sized(2, 1)] {
		words := strings.Fields(shell)
		if _, err := exec.LookPath(words[0]); err != nil {
			t.Logf("there is no %s: left out", words[0])
			continue
		}
		t.Run(words[0], func(t *testing.T) {
			s := newTill(t)
			s.file("sello", "#!/bin/sh\n"+runsSello+"=1 exec "+binary+" \"$@\"\n")
			if err := os.Chmod(s.dir+"/sello", 0o755); err != nil {
				t.Fatal(err)
			}
			paste := func(blocks []string, port, first, last string) string {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, words[0], words[1:]...)
				cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "SELLO_ADDR=127.0.0.1:"+port, "HISTFILE=", "PS1=", "PS2=")
				cmd.Stdin = strings.NewReader(first + strings.ReplaceAll(strings.Join(blocks, ""), "127.0.0.1:8080", "127.0.0.1:"+port) + last)
				out, err := cmd.CombinedOutput()
				if ctx.Err() != nil {
					t.Errorf("it does not end: %v", err)
				}
				return string(out)
			}
			server, started := s.demo(" -db " + s.dir + "/demo.db")
			_, port, _ := strings.Cut(strings.TrimSuffix(server.base, "/api/v1"), "127.0.0.1:")
			tour := paste(shellBlocks(section(text, "Tour")), port, "export SELLO_KEY="+started.Key+"\n", "")
			for _, want := range []string{`"name":"José Núñez"`, `"name":"Lucía"`, `"balance":50`, `"pointsPending":25`, `"pointsReversed":`, `"status":"Issued"`, `"status":"Used"`, "redemption_already_used"} {
				if !strings.Contains(tour, want) {
					t.Errorf("the tour does not say %s:\n%s", want, tour)
				}
			}
			server.stop()
			day := paste(shellBlocks(section(text, "The first day")), port, "", "kill %1\nwait\n")
			for _, want := range []string{"cafe-luna: 128 cambios aplicados", `"slug":"cafe-luna"`, "/panel/invitacion/", "todo cuadra", "3 filas: 3 nuevos"} {
				if !strings.Contains(day, want) {
					t.Errorf("the first day does not say %s:\n%s", want, day)
				}
			}
		})
	}
}
