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
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Tests of the order of files in doc.go, of what internal/ may know, of how long files and
// functions may be, of what a struct may embed, and of the files that give txn methods.
//
// testdata/house.txt lists the violations that are left, one arrow a line:
// `a.go -> b.go: names`. The list may only shrink. A violation that is not listed
// fails, and so does a line that no longer holds.

// TestHouseOrder fails where a file uses a name that a later file of doc.go's list
// defines. The files of one room of the domain may use each other's names.
func TestHouseOrder(t *testing.T) {
	skipRace(t)
	t.Parallel()
	order, rooms := houseFiles(t)
	place := map[string]int{}
	for i, unit := range order {
		if _, twice := place[unit]; twice {
			t.Errorf("doc.go lists %s twice", unit)
		}
		place[unit] = i
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
			if place[unit] > place[from] && (rooms[unit] == "" || rooms[unit] != rooms[from]) {
				for name := range names {
					found = append(found, fmt.Sprintf("%s -> %s: %s", from, unit, name))
				}
			}
		}
	}
	compareHouse(t, found, func(line string) bool { return !strings.HasSuffix(line, bboltPath) })
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
// in one, is too long to be read in one go. Tests may be longer.
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

// houseFiles returns the files that doc.go lists, from the bottom to the top, and the rooms
// of those of the domain: the lines that stand over them, like "Points:".
func houseFiles(t *testing.T) (order []string, rooms map[string]string) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	rooms = map[string]string{}
	heading, room := "", ""
	for line := range strings.Lines(file.Doc.Text()) {
		if text, ok := strings.CutPrefix(line, "# "); ok {
			heading, room = strings.TrimSpace(text), ""
		} else if heading == "The domain" && strings.HasSuffix(line, ":\n") {
			room = line
		}
		if m := houseLine.FindStringSubmatch(line); m != nil {
			unit := houseUnit(m[1])
			order = append(order, unit)
			if rooms[unit] = room; room == "" && heading == "The domain" {
				t.Errorf("doc.go: %s is in no room", unit)
			}
		}
	}
	if rooms["points.go"] == "" {
		t.Fatal("doc.go lists no rooms")
	}
	return order, rooms
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

var houseLine = regexp.MustCompile(`^\t(\w+\.go)\s`)

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
