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

// documentFaults are the formats of all faults and warnings of a document, from their sources: what is given
// to require, form and sentenceOf.
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
	for _, name := range []string{"document.go", "document_check.go", "warnings.go", "apply.go", "webhooks.go"} {
		file, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				called := ""
				switch f := n.Fun.(type) {
				case *ast.SelectorExpr:
					called = f.Sel.Name
				case *ast.Ident:
					called = f.Name
				}
				if slices.Contains([]string{"require", "form", "sentenceOf"}, called) {
					for _, arg := range n.Args {
						literals(arg)
					}
				}
			}
			return true
		})
	}
	return texts
}

// TestDocumentTexts: every fault and warning of a document has its text in English, with what is its own.
func TestDocumentTexts(t *testing.T) {
	t.Parallel()
	verbs := regexp.MustCompile(`%[sdq]`)
	texts := documentFaults(t)
	if len(texts) < 60 {
		t.Fatalf("%d texts: the sources are read wrongly", len(texts))
	}
	for _, format := range texts {
		var args []any
		for _, verb := range verbs.FindAllString(format, -1) {
			args = append(args, map[string]any{"%s": "Active", "%d": 77, "%q": "el o la"}[verb])
		}
		why := sentence{format, args}
		fault, got := why.String(), documentText("en", why)
		if got == fault || regexp.MustCompile(`\b(debe|puede|hay|falta|solo|una?|de|el|los|más)\b`).MatchString(strings.ReplaceAll(got, `"el o la"`, "")) {
			t.Errorf("%q: %q", fault, got)
		}
		for _, own := range []string{"Active", "77", `"el o la"`} {
			if strings.Count(fault, own) != strings.Count(got, own) {
				t.Errorf("%q: %q lacks %s", fault, got, own)
			}
		}
	}
	for format := range documentTexts {
		if !slices.Contains(texts, format) {
			t.Errorf("no check says %q", format)
		}
	}
	for _, tt := range []struct {
		why    sentence
		es, en string
	}{
		{(&jsonFault{reasonSyntax, 1, 7}).sentence(), "línea 1, columna 7: no es JSON válido", "line 1, column 7: it is not valid JSON"},
		{sentenceOf("debe ser %s", anyOf{"Active", "Inactive"}), "debe ser Active o Inactive", "it must be Active or Inactive"},
		{sentenceOf("debe estar entre 0 y %d, o null", 3650), "debe estar entre 0 y 3650, o null", "it must be between 0 and 3650, or null"},
		{sentenceOf("nunca dará puntos: %s", sentenceOf("until ya pasó")), "nunca dará puntos: until ya pasó", "it will never give points: its until is over"},
		{sentenceOf("no hay ningún nivel %q", "Oro o plata"), `no hay ningún nivel "Oro o plata"`, `there is no tier "Oro o plata"`},
		{sentenceOf("falta %q; un programa no se puede quitar", "club"), `falta "club"; un programa no se puede quitar`, `"club" is missing, and a program cannot be removed`},
	} {
		if got := documentText("en", tt.why); got != tt.en {
			t.Errorf("%q: %q, want %q", tt.es, got, tt.en)
		}
		if got := documentText("es", tt.why); got != tt.es {
			t.Errorf("in Spanish: %q", got)
		}
	}
}
