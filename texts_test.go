package main

import (
	"html/template"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template/parse"
)

// Names of texts that are put together, by what they begin with.
var madeNames = []string{
	"about.", "action.", "clock.", "from.", "operator.hooks.", "operator.sweep.", "tab.",
	"by.", "category.", "field.", "done.", "error.", "reason.", "redemption.", "role.", "sale.", "source.", "status.", "title.",
	"day.", "doc.", "list.", "op.", "organization.", "program.", "refusal.", "review.kind.", "reward.", "rule.", "segment.", "span.", "who.", "word.",
	"address.", "class.", "key.access.", "key.expires.", "key.overlap.", "keys.filter.", "mend.", "preset.", "requests.found.", "requests.times.", "resource.", "scope.",
	"hook.why.", "audit.kind.", "figure.by.", "figure.none.", "figure.period.",
}

var verbs = regexp.MustCompile(`%[a-z]`)

// TestTexts: no text is empty, both languages take the same arguments, and each is used.
func TestTexts(t *testing.T) {
	t.Parallel()
	said := usedTexts(t)
	for name, row := range panelTexts {
		if row.es == "" || row.en == "" {
			t.Errorf("%s: %q, %q", name, row.es, row.en)
		}
		if es, en := strings.Join(verbs.FindAllString(row.es, -1), ""), strings.Join(verbs.FindAllString(row.en, -1), ""); es != en {
			t.Errorf("%s: arguments %s and %s", name, es, en)
		}
		made := false
		for _, prefix := range madeNames {
			made = made || strings.HasPrefix(name, prefix)
		}
		if base, isHint := strings.CutSuffix(name, ".hint"); !made && !said[name] && !(isHint && said[base]) {
			t.Errorf("nobody says %s", name)
		}
	}
	for name := range said {
		if !hasText(name) {
			t.Errorf("there is no text %s", name)
		}
	}
}

// usedTexts are the names of texts in the templates and in the calls of T, Field and so on.
func usedTexts(t *testing.T) map[string]bool {
	said := map[string]bool{}
	for _, page := range parseTemplates() {
		for _, each := range page.Templates() {
			walkTemplate(each, func(word string) {
				if hasText(word) {
					said[word] = true
				}
			})
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\b(?:T|tr|Field|AmountField|Select)\((?:[^()"]*, )?"([a-z][A-Za-z.]*)"[,)]`)
	quoted := regexp.MustCompile(`"([a-z][A-Za-z]*\.[A-Za-z.]+|[a-z]+)"`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), `"`) && strings.Contains(line, "{") { // the row itself
				continue
			}
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				if hasText(m[1]) {
					said[m[1]] = true
				}
			}
			if m := call.FindStringSubmatch(line); m != nil && strings.Contains(line, ".T(") {
				said[m[1]] = true
			}
		}
	}
	return said
}

// walkTemplate tells the words that a template quotes.
func walkTemplate(t *template.Template, tell func(string)) {
	if t.Tree == nil {
		return
	}
	var walk func(n parse.Node)
	list := func(l *parse.ListNode) {
		if l != nil {
			for _, n := range l.Nodes {
				walk(n)
			}
		}
	}
	pipe := func(p *parse.PipeNode) {
		if p != nil {
			for _, c := range p.Cmds {
				for _, a := range c.Args {
					walk(a)
				}
			}
		}
	}
	branch := func(b *parse.BranchNode) { pipe(b.Pipe); list(b.List); list(b.ElseList) }
	walk = func(n parse.Node) {
		switch n := n.(type) {
		case *parse.ListNode:
			list(n)
		case *parse.ActionNode:
			pipe(n.Pipe)
		case *parse.PipeNode:
			pipe(n)
		case *parse.TemplateNode:
			pipe(n.Pipe)
		case *parse.IfNode:
			branch(&n.BranchNode)
		case *parse.WithNode:
			branch(&n.BranchNode)
		case *parse.RangeNode:
			branch(&n.BranchNode)
		case *parse.StringNode:
			tell(n.Text)
		}
	}
	walk(t.Tree.Root)
}

// TestAcceptedLanguage: the first language of the browser that the panel has.
func TestAcceptedLanguage(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "es", "en": "en", "en-US,es;q=0.5": "en", "fr-FR,en;q=0.8": "en", "es-MX": "es", "fr": "es", "EN-gb;q=0.1": "en", "*": "es", ",,": "es",
	} {
		r := httptest.NewRequest("GET", "/panel", nil)
		r.Header.Set("Accept-Language", header)
		if got := acceptedLanguage(r); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
