package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// documentFaults are the texts of all checks of a document, from their sources: what is given to
// require, form and problem, and what mustBe and String return.
func documentFaults(t *testing.T) (texts []string) {
	files := token.NewFileSet()
	literals := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING {
				if text, _ := strconv.Unquote(lit.Value); text == "falta" || strings.Contains(text, " ") {
					texts = append(texts, text)
				}
			}
			return true
		})
	}
	for _, name := range []string{"document.go", "document_check.go", "apply.go", "webhooks.go"} {
		file, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "mustBe" || name == "document.go" && n.Name.Name == "String" {
					literals(n.Body)
				}
			case *ast.CallExpr:
				called := ""
				switch f := n.Fun.(type) {
				case *ast.SelectorExpr:
					called = f.Sel.Name
				case *ast.Ident:
					called = f.Name
				}
				if slices.Contains([]string{"require", "form", "unknown", "unreadable"}, called) {
					for _, arg := range n.Args[1:] {
						literals(arg)
					}
				}
			case *ast.CompositeLit:
				if typ, is := n.Type.(*ast.Ident); is && typ.Name == "problem" {
					literals(n)
				}
			}
			return true
		})
	}
	return texts
}

// TestDocumentTexts: every fault of a document has its text in English, with what is its own.
func TestDocumentTexts(t *testing.T) {
	t.Parallel()
	verbs := regexp.MustCompile(`%[sdq]`)
	texts := documentFaults(t)
	if len(texts) < 60 {
		t.Fatalf("%d texts: the sources are read wrongly", len(texts))
	}
	for _, text := range texts {
		if strings.HasSuffix(text, " ") { // joined with a number
			text += "%d"
		}
		fault := verbs.ReplaceAllStringFunc(text, func(verb string) string {
			return map[string]string{"%s": "Active", "%d": "77", "%q": `"el o la"`}[verb]
		})
		got := documentText("en", fault)
		if got == fault && !strings.HasPrefix(fault, "ningún ") || regexp.MustCompile(`\b(debe|puede|hay|falta|solo|una?|de|el|los|más)\b`).MatchString(strings.ReplaceAll(got, `"el o la"`, "")) {
			t.Errorf("%q: %q", fault, got)
		}
		for _, own := range []string{"Active", "77", `"el o la"`} {
			if strings.Count(fault, own) != strings.Count(got, own) {
				t.Errorf("%q: %q lacks %s", fault, got, own)
			}
		}
	}
	for _, tt := range [][2]string{
		{"línea 1, columna 7: no es JSON válido", "line 1, column 7: it is not valid JSON"},
		{"debe ser Active o Inactive", "it must be Active or Inactive"},
		{"debe estar entre 0 y 3650, o null", "it must be between 0 and 3650, or null"},
		{`no hay ningún nivel "Oro o plata"`, `there is no tier "Oro o plata"`},
		{`falta "club"; un programa no se puede quitar`, `"club" is missing, and a program cannot be removed`},
	} {
		if got := documentText("en", tt[0]); got != tt[1] {
			t.Errorf("%q: %q, want %q", tt[0], got, tt[1])
		}
		if got := documentText("es", tt[0]); got != tt[0] {
			t.Errorf("in Spanish: %q", got)
		}
	}
}
