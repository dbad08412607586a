package main

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A recipe is one of CONTRIBUTING.md: how to make one more of some rows.
type recipe struct {
	title string
	rows  [][]string // in the order of the source; each in all its spellings
	whole bool       // every file with the model is named; else only those with most rows
}

// TestRecipes looks for the rows in all files. Each new row needs the files that have the
// last one and more than three fifths of all: the recipe names them; globs count for
// testdata only. Each file that it names has the model, the row that follows "As".
func TestRecipes(t *testing.T) {
	skipRace(t)
	t.Parallel()
	texts := recipeTexts(t)
	source := ""
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			source += texts[name]
		}
	}
	columns := `{"` + strings.Join(exportColumns[importCustomers], `" "`) + `"}`
	written := section(readText(t, "CONTRIBUTING.md"), "Recipes")
	for _, r := range []struct {
		title, source, row string
		spelled            func(name string) []string // how else; nil: not
		whole              bool
	}{
		{"A field of a customer", columns, `"(\w+)"`, func(s string) []string { return []string{title(s)} }, true},
		{"A route", texts["api.go"], `(?m)^\t\t\{"\w+ /api/v1(/[^"]+)", "[^"]+", (\w+)\}`, nil, false},
		{"A page of the panel", texts["pages.go"], `(\w+Area)\(\),`, func(s string) []string {
			s = strings.ToLower(strings.TrimSuffix(s, "Area"))
			return []string{"pages_" + s, "panel/" + s}
		}, true},
		{"A table of the store", texts["model.go"], `(?m)^\t(table\w+): +\{"[^"]*", "([^"]*)"`, nil, false},
		{"A flag", source, `c\.set\.\w+\((?:&[\w.]+, )?("[\w-]+")`, func(s string) []string {
			s = strings.Trim(s, `"`)
			if first, rest, two := strings.Cut(s, "-"); two {
				return []string{"-" + s, first + title(rest)} // the field of invocation
			}
			return []string{"-" + s}
		}, false},
		{"An event", texts["events.go"], `(?m)^\t(event\w+): +\{"([\w.]+)"`, nil, false},
		{"An audit action", texts["audit.go"], `(?m)^\t(audit\w+) += "(\w+\.\w+)"`, nil, false},
		{"An error code", texts["errors.go"], `(?m)^\t(code\w+) += newCode\("(\w+)"`, nil, false},
	} {
		var rows [][]string
		for _, m := range regexp.MustCompile(r.row).FindAllStringSubmatch(r.source, -1) {
			if rows = append(rows, m[1:]); r.spelled != nil {
				rows[len(rows)-1] = append(m[1:], r.spelled(m[1])...)
			}
		}
		_, text, _ := strings.Cut(written, "\n### "+r.title+"\n")
		text, _, _ = strings.Cut(text, "\n### ")
		(&recipe{r.title, rows, r.whole}).check(t, text, texts)
	}
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// check compares a recipe's text with the files.
func (r *recipe) check(t *testing.T, text string, texts map[string]string) {
	t.Helper()
	var named []string // paths and globs
	modelled := ""
	for _, m := range inBackticks.FindAllStringSubmatch(text, -1) {
		switch word := m[1]; {
		case modelled == "":
			modelled = word
		case strings.HasPrefix(word, "Test"):
			r.checkTest(t, word, texts)
		case strings.ContainsAny(word, "/*") || slices.Contains([]string{".go", ".md", ".json"}, path.Ext(word)):
			named = append(named, word)
		}
	}
	has := func(row []string, name string) bool {
		return slices.ContainsFunc(row, func(s string) bool { return strings.Contains(name, s) || strings.Contains(texts[name], s) })
	}
	at := slices.IndexFunc(r.rows, func(row []string) bool { return slices.Contains(row, modelled) })
	if at < 0 || len(r.rows) < 5 {
		t.Fatalf("%s: no model %q among %d rows", r.title, modelled, len(r.rows))
	}
	model, last := r.rows[at], r.rows[len(r.rows)-1]
	used := map[string]bool{}
	for name := range texts {
		isNamed := false
		for _, pattern := range named {
			if match, err := path.Match(pattern, name); match || err != nil {
				isNamed = isNamed || pattern == name || strings.HasPrefix(name, "testdata/")
				used[pattern] = used[pattern] || has(model, name)
			}
		}
		if isNamed || !has(model, name) && !has(last, name) {
			continue
		}
		most := 0
		for _, row := range r.rows {
			if has(row, name) {
				most++
			}
		}
		if r.whole && has(model, name) || has(last, name) && most*5 > len(r.rows)*3 {
			t.Errorf("%s: %s has to be named: it has %d of %d, and %v or %v", r.title, name, most, len(r.rows), model, last)
		}
	}
	for _, pattern := range named {
		if !used[pattern] {
			t.Errorf("%s: %s is named and has no %v", r.title, pattern, model)
		}
	}
}

// checkTest checks that there is a test of a name, or with a beginning such as TestOpenAPI*.
func (r *recipe) checkTest(t *testing.T, name string, texts map[string]string) {
	t.Helper()
	start := "\nfunc " + strings.TrimSuffix(name, "*")
	if !strings.HasSuffix(name, "*") {
		start += "("
	}
	for file, text := range texts {
		if strings.HasSuffix(file, "_test.go") && strings.Contains(text, start) {
			return
		}
	}
	t.Errorf("%s: no test is called %s", r.title, name)
}

var inBackticks = regexp.MustCompile("`([^`\\s]+)`")

// recipeTexts are the files in which rows are looked for.
func recipeTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{
		"*.go", "*.json", "README.md", "SECURITY.md", "docs/*.md", "docs/*/*", "panel/*", "testdata/*.txt",
		"testdata/golden/*", "testdata/hostile/*", "testdata/import/*", "testdata/panel/*", "testdata/world/*",
	} {
		names, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.ToSlash(name)] = string(raw)
		}
	}
	return texts
}
