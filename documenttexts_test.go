package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// called is the name of the function that a call calls.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// callsIn gives all calls in a source, and each with the function around it.
func callsIn(t *testing.T, name string, give func(around string, call *ast.CallExpr)) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		around := ""
		if f, is := d.(*ast.FuncDecl); is {
			around = f.Name.Name
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is {
				give(around, call)
			}
			return true
		})
	}
}

// documentFaults are the formats of all faults and warnings of a document, from their sources:
// what is given to require, form and sentenceOf.
func documentFaults(t *testing.T) (texts []string) {
	for _, name := range []string{"document.go", "document_check.go", "document_warnings.go", "document_apply.go", "events_receivers.go"} {
		callsIn(t, name, func(_ string, call *ast.CallExpr) {
			if !slices.Contains([]string{"require", "form", "sentenceOf"}, called(call)) {
				return
			}
			for _, arg := range call.Args {
				ast.Inspect(arg, func(n ast.Node) bool {
					if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING {
						if text, _ := strconv.Unquote(lit.Value); text == "falta" || strings.Contains(text, " ") {
							texts = append(texts, text)
						}
					}
					return true
				})
			}
		})
	}
	return texts
}

// fieldFaults are the formats of all faults of fields, from all sources: what is given to
// invalid and invalidField.
func fieldFaults(t *testing.T) (texts []string) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{"notDate": notDate, "notBirthDate": notBirthDate, "notPast": notPast}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		callsIn(t, name, func(around string, call *ast.CallExpr) {
			if by := called(call); by != "invalidField" && by != "invalid" || around == "invalid" {
				return
			}
			text := ""
			switch format := call.Args[1].(type) {
			case *ast.BasicLit:
				text, _ = strconv.Unquote(format.Value)
			case *ast.Ident:
				text = constants[format.Name]
			}
			if text != "" {
				texts = append(texts, text)
			} else if around != "newRowReader" { // whose faults nobody is told of
				t.Errorf("%s, %s: the format is no text that this test can read", name, around)
			}
		})
	}
	return texts
}

// TestDocumentTexts: every fault and warning of a document, and every fault of a field, has its
// text in English, with what is its own.
func TestDocumentTexts(t *testing.T) {
	skipRace(t)
	t.Parallel()
	verbs := regexp.MustCompile(`%[sdq]`)
	texts, ofFields := documentFaults(t), fieldFaults(t)
	if len(texts) < 70 || len(ofFields) < 35 {
		t.Fatalf("%d and %d texts: the sources are read wrongly", len(texts), len(ofFields))
	}
	for format := range fieldTexts {
		if !slices.Contains(ofFields, format) {
			t.Errorf("no reader says %q", format)
		}
	}
	texts = append(texts, ofFields...)
	for _, format := range texts {
		var args []any
		for _, verb := range verbs.FindAllString(format, -1) {
			args = append(args, map[string]any{"%s": "Active", "%d": 77, "%q": "el o la"}[verb])
		}
		why := sentence{format, args}
		fault, got := why.String(), sentenceText(speaking("en"), why)
		if got == fault || regexp.MustCompile(`\b(debe|puede|hay|falta|solo|una?|de|el|los|más)\b`).MatchString(strings.ReplaceAll(got, `"el o la"`, "")) {
			t.Errorf("%q: %q", fault, got)
		}
		for _, own := range []string{"Active", "77", `"el o la"`} {
			if strings.Count(fault, own) != strings.Count(got, own) {
				t.Errorf("%q: %q lacks %s", fault, got, own)
			}
		}
	}
	for format := range sentenceTexts {
		if !slices.Contains(texts, format) {
			t.Errorf("nothing says %q", format)
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
		if got := sentenceText(speaking("en"), tt.why); got != tt.en {
			t.Errorf("%q: %q, want %q", tt.es, got, tt.en)
		}
		if got := sentenceText(speaking("es"), tt.why); got != tt.es {
			t.Errorf("in Spanish: %q", got)
		}
	}
}
