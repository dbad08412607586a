package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Tests of the rooms and the order of files in doc.go, of what internal/ may know, of how long
// files and functions may be, of what a struct may embed, and of the files that give txn methods.
//
// testdata/house.txt lists the violations that are left, one arrow a line:
// `a.go -> b.go: names`. The list may only shrink. A violation that is not listed
// fails, and so does a line that no longer holds.

// TestHouseOrder fails where a file uses a name that a later file of doc.go's list
// defines. The files of one room of the domain may use each other's names.
func TestHouseOrder(t *testing.T) {
	skipRace(t)
	t.Parallel()
	place, room := map[string]int{}, map[string]*houseRoom{}
	var order []string
	for _, r := range houseRooms(t) {
		for _, unit := range r.files {
			if _, twice := place[unit]; twice {
				t.Errorf("doc.go lists %s twice", unit)
			}
			place[unit], room[unit] = len(order), r
			order = append(order, unit)
		}
	}
	arrows := houseArrows(t)
	for unit := range arrows {
		if _, ok := place[unit]; !ok {
			t.Errorf("doc.go does not list %s", unit)
		}
	}
	for _, unit := range order {
		if _, ok := arrows[unit]; !ok {
			t.Errorf("doc.go lists %s, which is not there", unit)
		}
	}
	var found []string
	for from, to := range arrows {
		for unit, names := range to {
			if place[unit] > place[from] && !(room[unit].domain && room[unit] == room[from]) {
				for name := range names {
					found = append(found, fmt.Sprintf("%s -> %s: %s", from, unit, name))
				}
			}
		}
	}
	compareHouse(t, found, func(line string) bool { return !strings.HasSuffix(line, bboltPath) })
}

// What the listing may hold at most, so that it can be read as a plan.
const (
	mostRoomFiles    = 20
	mostProductFiles = 170
	mostTestFiles    = 130
	mostExceptions   = 15
	leastFileLines   = 60
)

// shortFiles may be shorter: the variant of a file for a build tag, and the list of all pages.
var shortFiles = []string{"pages.go", "store_postgres_without.go"}

// TestHouseRooms fails where a file's name does not say its room, and where a room, the root or
// the list of exceptions is too large, or a file too short to be one.
func TestHouseRooms(t *testing.T) {
	t.Parallel()
	list := houseRooms(t)
	roomsOf := func(file string) (in []*houseRoom) {
		for _, r := range list {
			if slices.ContainsFunc(r.names, func(name string) bool { return namedAs(name, file) }) {
				in = append(in, r)
			}
		}
		return in
	}
	for _, r := range list {
		if len(r.files) > mostRoomFiles {
			t.Errorf("%s has %d files; at most %d", r.title, len(r.files), mostRoomFiles)
		}
		for _, name := range r.names {
			if !slices.ContainsFunc(r.files, func(file string) bool { return namedAs(name, file) }) {
				t.Errorf("%s: no file is named %s", r.title, name)
			}
		}
		for _, file := range r.files {
			if in := roomsOf(file); len(in) != 1 || in[0] != r {
				t.Errorf("%s stands in %q, and its name in %d rooms", file, r.title, len(in))
			}
		}
	}
	tests, product := 0, 0
	_, files := houseSource(t)
	for name := range files {
		tested, isTest := strings.CutSuffix(strings.TrimSuffix(name, ".go"), "_test")
		switch {
		case isTest:
			tests++
			tested = strings.TrimSuffix(tested, "_linux") + ".go"
			if !namedAs("whole_*.go", tested) && !namedAs("kit_*.go", tested) && len(roomsOf(tested)) == 0 {
				t.Errorf("%s is named after no room, nor whole_ (of many rooms) or kit_ (what tests use)", name)
			}
		default:
			product++
		}
	}
	if product > mostProductFiles || tests > mostTestFiles {
		t.Errorf("%d files of the product and %d of tests; at most %d and %d", product, tests, mostProductFiles, mostTestFiles)
	}
	raw, err := os.ReadFile("testdata/house.txt")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile("(?m)^[^#\n]").FindAll(raw, -1)); n > mostExceptions {
		t.Errorf("%d exceptions in testdata/house.txt; at most %d", n, mostExceptions)
	}
}

// namedAs reports whether a file has the name of a room's title: x.go is itself, and x_*.go are
// x.go and all that begin with x_.
func namedAs(name, file string) bool {
	prefix, many := strings.CutSuffix(name, "_*.go")
	return file == name || many && (file == prefix+".go" || strings.HasPrefix(file, prefix+"_"))
}

// TestHouseLibraries fails where a file under internal/ has a word of the product,
// and where a file that is no test imports bbolt outside internal/disk.
func TestHouseLibraries(t *testing.T) {
	skipRace(t)
	t.Parallel()
	var importers []string
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		if strings.HasPrefix(path, "internal/") && filepath.Ext(path) != ".zip" {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if word := productWords.Find(text); word != nil {
				t.Errorf("%s: %q is a word of the product", path, word)
			}
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "internal/disk/") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool {
			imported, _ := strconv.Unquote(s.Path.Value)
			return imported == bboltPath || strings.HasPrefix(imported, bboltPath+"/")
		}) {
			importers = append(importers, path+" -> "+bboltPath)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	compareHouse(t, importers, func(line string) bool { return strings.HasSuffix(line, bboltPath) })
}

// How long a file and a function may be, in lines.
const (
	mostFileLines = 700
	mostFuncLines = 60
)

// TestHouseSizes fails where a file of the product or of a library, or a function
// in one, is too long to be read in one go, or a file of the product too short to be one.
// Tests may be longer.
func TestHouseSizes(t *testing.T) {
	skipRace(t)
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir("internal", func(path string, _ fs.DirEntry, err error) error {
		files = append(files, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fset, functions := token.NewFileSet(), 0
	for _, path := range files {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if lines := fset.File(file.FileStart).LineCount(); lines > mostFileLines {
			t.Errorf("%s has %d lines; at most %d", path, lines, mostFileLines)
		} else if lines < leastFileLines && filepath.Dir(path) == "." && !slices.Contains(shortFiles, path) {
			t.Errorf("%s has %d lines: let it join its neighbour; at least %d", path, lines, leastFileLines)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			functions++
			first := fset.Position(f.Type.Func)
			if lines := fset.Position(f.End()).Line - first.Line + 1; lines > mostFuncLines {
				t.Errorf("%s: %s has %d lines; at most %d", first, f.Name.Name, lines, mostFuncLines)
			}
		}
	}
	if functions < 1000 {
		t.Errorf("%d functions looked at: the product has more", functions)
	}
}

// mostPromoted is how many methods a struct may promote from one embedded type. The
// compiler writes each of them again for every struct that embeds the type, called or not:
// txn and shop, embedded, once were a third of the time to compile the package.
const mostPromoted = 50

// promoting are the structs that may: their templates call the methods.
var promoting = []string{"docControls", "saleTableView"}

// TestHouseEmbedding fails where a struct of the product or of its tests embeds a type with
// more methods than that.
func TestHouseEmbedding(t *testing.T) {
	skipRace(t)
	t.Parallel()
	fset, parsed := houseSource(t)
	var files []*ast.File
	for name, file := range parsed {
		if match, err := houseBuilds[0].MatchFile(".", name); err != nil || !match {
			continue
		}
		files = append(files, withoutBodies(file))
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImporter{}, Error: func(error) {}}
	config.Check("main", fset, files, info)
	var found []string
	for id, o := range info.Defs {
		defined, ok := o.(*types.TypeName)
		if !ok {
			continue
		}
		fields, ok := defined.Type().Underlying().(*types.Struct)
		if !ok {
			continue
		}
		for f := range fields.Fields() {
			if n := promotedFrom(f); n > mostPromoted {
				found = append(found, id.Name)
				if !slices.Contains(promoting, id.Name) {
					t.Errorf("%s: %s embeds %s, which has %d methods; at most %d: give the field a name", fset.Position(f.Pos()), id.Name, f.Name(), n, mostPromoted)
				}
			}
		}
	}
	for _, name := range promoting {
		if !slices.Contains(found, name) {
			t.Errorf("%s embeds no such type any more: take it out of promoting", name)
		}
	}
}

// promotedFrom returns how many methods a struct has from a field of it.
func promotedFrom(f *types.Var) int {
	if !f.Embedded() {
		return 0
	}
	t := f.Type()
	if _, pointer := t.Underlying().(*types.Pointer); !pointer && !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	return types.NewMethodSet(t).Len()
}

// txnFiles hold the methods of txn: what the rules of every room need.
var txnFiles = []string{"engine_config.go", "engine.go"}

// TestHouseTxn fails where another file gives txn a method: it belongs to a room (rooms.go),
// or is a function that takes a txn.
func TestHouseTxn(t *testing.T) {
	skipRace(t)
	t.Parallel()
	fset, files := houseSource(t)
	found := map[string]bool{}
	for path, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			switch types.ExprString(f.Recv.List[0].Type) {
			case "*txn":
				if found[path] = true; !slices.Contains(txnFiles, path) {
					t.Errorf("%s: %s is a method of txn: give it to a room", fset.Position(f.Pos()), f.Name.Name)
				}
			case "*rooms": // which txn embeds
				if path != "rooms.go" {
					t.Errorf("%s: %s is a method of all rooms: give it to one", fset.Position(f.Pos()), f.Name.Name)
				}
			}
		}
	}
	if len(found) != len(txnFiles) {
		t.Errorf("methods of txn in %v, want all of %v", slices.Sorted(maps.Keys(found)), txnFiles)
	}
}

const bboltPath = "go.etcd.io/bbolt"

var productWords = regexp.MustCompile(`(?i)loyalty|customer|reward|redemption`)

// compareHouse compares the violations found with the lines of the list for which
// kind returns true.
func compareHouse(t *testing.T, found []string, kind func(line string) bool) {
	t.Helper()
	raw, err := os.ReadFile("testdata/house.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || !kind(line) {
			continue
		}
		arrow, names, named := strings.Cut(line, ": ")
		if !named {
			listed[line] = true
			continue
		}
		for name := range strings.SplitSeq(names, ", ") {
			listed[arrow+": "+name] = true
		}
	}
	slices.Sort(found)
	for _, line := range found {
		if !listed[line] {
			t.Errorf("against the order: %s", line)
		}
		delete(listed, line)
	}
	for _, line := range slices.Sorted(maps.Keys(listed)) {
		t.Errorf("no longer so, take it out of testdata/house.txt: %s", line)
	}
}

// A houseRoom is a section of doc.go's list: its title, the names of its files that the title
// ends in, and the files that it lists.
type houseRoom struct {
	title  string
	names  []string
	files  []string
	domain bool
}

// The domain's first and last room.
const (
	domainFirst = "Transactions"
	domainLast  = "Operations across rooms"
)

// houseRooms returns the rooms that doc.go lists, from the bottom to the top.
func houseRooms(t *testing.T) (list []*houseRoom) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	domain := false
	for line := range strings.Lines(file.Doc.Text()) {
		if m := houseTitle.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			domain = domain || m[1] == domainFirst
			list = append(list, &houseRoom{title: m[1], names: strings.Split(m[2], ", "), domain: domain})
			domain = domain && m[1] != domainLast
		}
		if m := houseLine.FindStringSubmatch(line); m != nil && len(list) > 0 {
			last := list[len(list)-1]
			last.files = append(last.files, m[1])
		}
	}
	if len(list) < 10 || domain {
		t.Fatalf("doc.go lists %d rooms, and the domain ends: %t", len(list), !domain)
	}
	return list
}

// houseSource returns the files of the package, parsed once for all tests of the house, which
// only read them.
func houseSource(t *testing.T) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	source, err := parsedHouse()
	if err != nil {
		t.Fatal(err)
	}
	return source.fset, source.files
}

type houseCode struct {
	fset  *token.FileSet
	files map[string]*ast.File
}

var parsedHouse = sync.OnceValues(func() (*houseCode, error) {
	names, err := filepath.Glob("*.go")
	code := &houseCode{token.NewFileSet(), map[string]*ast.File{}}
	for _, name := range names {
		if code.files[name], err = parser.ParseFile(code.fset, name, nil, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
	}
	return code, err
})

var (
	houseTitle = regexp.MustCompile(`^# (.+): (\w+(?:_\*)?\.go(?:, \w+(?:_\*)?\.go)*)$`)
	houseLine  = regexp.MustCompile(`^\t(\w+\.go)\s`)
)

// houseUnit returns the name under which a file counts. The variants of a file for build tags
// count as one file.
func houseUnit(file string) string {
	if name, ok := strings.CutSuffix(file, "_without.go"); ok {
		return name + ".go"
	}
	return file
}

// houseBuilds are the builds that together have every file. They are for a system that sello
// does not run on, so that files for one system are in neither.
var houseBuilds = []build.Context{
	{GOOS: "plan9", GOARCH: "amd64", Compiler: "gc"},
	{GOOS: "plan9", GOARCH: "amd64", Compiler: "gc", BuildTags: []string{"postgres"}},
}

// houseArrows returns, for each file of the package, the other files whose names it
// uses, and those names. Other packages are not loaded: a name that depends on a type
// of theirs is not resolved, and does not count.
func houseArrows(t *testing.T) map[string]map[string]map[string]bool {
	fset, files := houseSource(t)
	parsed := map[string]*ast.File{}
	arrows := map[string]map[string]map[string]bool{}
	for name, file := range files {
		if strings.HasSuffix(name, "_test.go") || name == "doc.go" {
			continue
		}
		parsed[name] = file
		arrows[houseUnit(name)] = map[string]map[string]bool{}
	}
	unit := func(pos token.Pos) string { return houseUnit(fset.Position(pos).Filename) }
	checked := map[string]bool{}
	for i, system := range houseBuilds {
		var built []*ast.File
		for _, name := range slices.Sorted(maps.Keys(parsed)) {
			match, err := system.MatchFile(".", name)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case match && checked[name] && i > 0: // no need to look into its functions again
				built = append(built, withoutBodies(parsed[name]))
			case match:
				built, checked[name] = append(built, parsed[name]), true
			}
		}
		info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
		config := types.Config{Importer: noImporter{}, Error: func(error) {}}
		pkg, _ := config.Check("main", fset, built, info)
		for _, file := range built {
			from := arrows[unit(file.Package)]
			ast.Inspect(file, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				used := houseObject(pkg, info, id)
				if used == nil {
					return true
				}
				to := unit(used.Pos())
				if from[to] == nil {
					from[to] = map[string]bool{}
				}
				from[to][houseName(used)] = true
				return true
			})
		}
	}
	for unit, to := range arrows {
		delete(to, unit)
	}
	for name := range parsed {
		if !checked[name] {
			t.Errorf("%s is for some systems alone: that is for a library under internal/", name)
		}
	}
	return arrows
}

// withoutBodies returns a copy of a file whose functions have no bodies.
func withoutBodies(file *ast.File) *ast.File {
	bare := *file
	bare.Decls = slices.Clone(file.Decls)
	for i, d := range bare.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			head := *f
			head.Body = nil
			bare.Decls[i] = &head
		}
	}
	return &bare
}

// houseObject returns the method or package-level object of pkg that an identifier
// uses, or nil.
func houseObject(pkg *types.Package, info *types.Info, id *ast.Ident) types.Object {
	used := info.Uses[id]
	if f, ok := used.(*types.Func); ok {
		used = f.Origin()
		if f.Signature().Recv() != nil && f.Pkg() == pkg {
			return used
		}
	}
	if used == nil || used.Parent() != pkg.Scope() {
		return nil
	}
	return used
}

// houseName returns the name of an object, after its type's if it is a method.
func houseName(o types.Object) string {
	if f, ok := o.(*types.Func); ok {
		if recv := f.Signature().Recv(); recv != nil {
			receiver := strings.TrimPrefix(types.TypeString(recv.Type(), func(*types.Package) string { return "" }), "*")
			receiver, _, _ = strings.Cut(receiver, "[")
			return receiver + "." + f.Name()
		}
	}
	return cmp.Or(o.Name(), "_")
}

type noImporter struct{}

func (noImporter) Import(string) (*types.Package, error) { return nil, errors.New("not loaded") }

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

// TestRooms holds rooms.go to its rooms. Each must know its transaction, and for what each
// keeps it must be decided here whether it is written at the end: then held has a copy of it,
// since a row of an import that is dropped must take its part back.
func TestRooms(t *testing.T) {
	t.Parallel()
	written := map[string]bool{
		"points.risen": true, "stats.tallies": true, "saleLog.logged": true, "feed.pending": true,
		"replays.filter": false, "replays.slices": false, "replays.known": false,
		"seals.shown": false, "seals.backing": false, "seals.last": false,
		"sales.versions": false,
		"merges.found":   false, "merges.answer": false, "merges.byContact": false,
		"recount.done": false, // eachRow clears it
		"cards.wrong":  false, // the engine's
		"cards.at":     false,
	}
	copied := map[reflect.Type]bool{}
	for f := range reflect.TypeFor[held]().Fields() {
		copied[f.Type] = true
	}
	own := bareTestTxn(nil, 1)
	for room, v := range reflect.ValueOf(own.rooms).Fields() {
		if room.Name == "giver" { // another room, by what it does
			if v.Elem().Pointer() != reflect.ValueOf(&own.rewards).Pointer() {
				t.Error("bindRooms forgets giver")
			}
			continue
		}
		for f, value := range v.Fields() {
			name := room.Name + "." + f.Name
			held, known := written[name]
			switch {
			case f.Name == "t":
				if value.Pointer() != reflect.ValueOf(own).Pointer() {
					t.Errorf("%s: bindRooms forgets it", room.Name)
				}
			case !known:
				t.Errorf("%s: is it written at the end? Then saveRooms writes it, and held has a copy", name)
			case held && !copied[f.Type]:
				t.Errorf("%s: held has no copy", name)
			}
			delete(written, name)
		}
	}
	for name := range written {
		t.Errorf("%s is no more", name)
	}
}
