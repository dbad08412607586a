package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// hostile is a text that would end an element, an attribute, a template's action or the
// direction of writing; longWord one that no line can be broken in.
const hostile = `<hostil a="b" c='d'>{{.}}%s&amp;😀` + "\u202eאב\u2028"

var longWord = strings.Repeat("W", 100)

// newHostileShop returns a world whose names are all hostile.
func newHostileShop(t *testing.T) *formWorld {
	w := newFormWorldOn(newOperatedShop(t).panelShop)
	w.haveTickets()
	w.names["ticketId"] = w.panelShop.shop.ticket(hostile + "ticket").ID.String()
	document, asJSON := string(w.panelShop.shop.exportedDocument()), func(s string) string {
		raw, err := json.Marshal(s)
		w.panelShop.shop.ok(err)
		return string(raw)
	}
	for i, name := range []string{"Café Luna", "Pro", "Club Luna", "Lunas", "Base", "Bronce", "Plata", "Espresso", "Vale de $50", "Todos"} {
		if !strings.Contains(document, `"`+name+`"`) {
			t.Fatalf("no %s in %s", name, document)
		}
		document = strings.ReplaceAll(document, `"`+name+`"`, asJSON(hostile+strconv.Itoa(i)))
	}
	w.panelShop.shop.apply([]byte(document))
	for _, r := range roles {
		must(w.panelShop.shop, func(t *txn) (any, error) {
			u, err := userByID(t.Tx, w.panelShop.users[r])
			if err == nil {
				u.Name = hostile + string(r)
				err = t.people.saveUser(u)
			}
			return nil, err
		})
	}
	key := func(method, path, body string) {
		t.Helper()
		if a := answerTo(w.panelShop.api, newRequest(method, "/api/v1"+w.filled(path), w.names["key"], body)); a.Code >= 300 {
			t.Fatalf("%s: %d %s", path, a.Code, a.Body)
		}
	}
	key("PATCH", "/customers/{customerId}", `{"firstName":`+asJSON(hostile)+`,"lastName":"`+longWord+`","externalId":`+asJSON(hostile)+`}`)
	key("POST", "/points/customers/{customerId}/add", `{"amount":1,"comment":`+asJSON(hostile)+`}`)
	key("POST", "/transactions", w.filled(`{"customerId":"{customerId}","totalAmount":10,"externalId":`+asJSON(hostile)+`,"comment":`+asJSON(hostile)+`,"items":[{"sku":`+asJSON(hostile)+`,"price":10,"quantity":1}]}`))
	_, err := w.panelShop.shop.admin().createKey(w.panelShop.shop.Context(), keyRequest{Org: "cafe-luna", Name: hostile})
	w.panelShop.shop.ok(err)
	return w
}

// hostileQuery gives each parameter of a page's query a hostile value.
var hostileQuery = func() string {
	q := url.Values{}
	for _, name := range []string{
		"search", "q", "type", "status", "from", "to", "externalId", "code", "actor", "action", "subject", "cliente", "totalAmount", "at", "modelo", "efecto", "estado", "ir",
		"page", "groupBy", "program", "after", "phone", "email", "key", "id", "creada", "hecho", "customerId", "de", tokenParam,
	} {
		q.Set(name, hostile)
	}
	return "?" + q.Encode()
}()

var fmtFault = regexp.MustCompile(`%!\w?\(|%!\(|<no value>|<nil>|0x[0-9a-f]{8,}`)

// pageFault returns what is wrong with a page, whatever is in it; "" if nothing is.
func pageFault(page string) string {
	for _, text := range []string{"<hostil", `hostil a="`, `c='d'`, "ZgotmplZ", "&amp;amp;amp;", "\r"} {
		if strings.Contains(page, text) {
			return text
		}
	}
	return fmtFault.FindString(page)
}

// TestPanelHostile opens every page and sends every form with hostile values, as each role
// and in both languages: nothing of them is taken for HTML, and every template is made
// without an error.
// Panel check 40.
func TestPanelHostile(t *testing.T) {
	t.Parallel()
	skipShort(t)
	w := newHostileShop(t)
	shown := 0
	w.panelShop.api.log = slog.New(slog.NewTextHandler(t.Output(), nil))
	check := func(what string, answer *httptest.ResponseRecorder) {
		status, body := answer.Code, answer.Body.String()
		if answer.Header().Get("Content-Disposition") != "" {
			return // a file
		}
		if fault := pageFault(body); fault != "" || status >= 500 {
			t.Errorf("%s: %d, %q\n%s", what, status, fault, body)
		}
		if strings.Contains(body, "&lt;hostil a=&#34;b&#34; c=&#39;d&#39;&gt;{{.}}%s&amp;amp;😀") {
			shown++
		}
	}
	for _, lang := range []string{"es", "en"} {
		for _, as := range roles {
			w.panelShop.speaks(as, lang)
			for _, p := range panelPages() {
				answer := w.panelShop.open(as, w.filled(p.path))
				check(fmt.Sprintf("GET %s as %s in %s", p.path, as, lang), answer)
				if as == roleOwner {
					answer = w.panelShop.open(as, w.filled(p.path)+hostileQuery)
					check(fmt.Sprintf("GET %s%s in %s", p.path, hostileQuery, lang), answer)
				}
			}
		}
		stamp := w.panelShop.stamp(roleOwner, "/panel/configuracion")
		for _, f := range panelForms() {
			g := goodForms[f.path]
			if f.path == "/panel/cuenta/segundo-factor/quitar" { // the owner is an operator, who must have one
				continue
			}
			fields := url.Values{etagField: {stamp}, keptField + "x": {hostile}}
			for name := range w.fields(&g) {
				fields.Set(name, hostile)
			}
			answer := w.panelShop.post(roleOwner, w.filled(f.path), fields)
			if check(fmt.Sprintf("POST %s in %s", f.path, lang), answer); f.path == "/panel/salir" {
				w.panelShop.tokens[roleOwner] = must(w.panelShop.shop, func(t *txn) (string, error) {
					return t.people.startSession(w.panelShop.users[roleOwner], sessionFull, &arrival{})
				})
			}
		}
	}
	if shown < 200 {
		t.Errorf("a hostile text was shown on %d pages alone", shown)
	}
}

// TestPanelTemplates: each template is that of a page, of a form's answer, or one of those that
// stand for others; those that are shown once are made here, in both languages.
func TestPanelTemplates(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	names := map[string]bool{"error": true}
	for _, p := range panelPages() {
		names[p.template] = true
	}
	for _, f := range panelForms() {
		if f.shown == nil {
			continue
		}
		names[f.shown.template] = true
		for _, lang := range []string{"es", "en"} {
			w := newFormWorld(t)
			w.panelShop.speaks(roleOwner, lang)
			g := goodForms[f.path]
			answer, _ := w.sent(&f, &g)
			if fault := pageFault(answer.Body.String()); fault != "" || !strings.Contains(answer.Body.String(), `<html lang="`+lang+`"`) {
				t.Errorf("POST %s in %s: %q\n%s", f.path, lang, fault, answer.Body)
			}
		}
	}
	kept := url.Values{"email": {"owner@example.com"}, "password": {"mal"}, keptPath: {w.filled("/panel/caja/{customerId}/venta")}, keptField + "comment": {hostile}}
	if page := w.panelShop.post("", "/panel/entrar", kept).Body.String(); pageFault(page) != "" || !strings.Contains(page, "&lt;hostil") {
		t.Errorf("a form that was kept: %q\n%s", pageFault(page), page)
	}
	for name := range theTemplates() {
		if !names[name] {
			t.Errorf("no page has the template %s", name)
		}
	}
}

// TestPanelLanguagesApart: pages that are made at the same time are each in the language of
// whoever asked.
// Panel check 66.
func TestPanelLanguagesApart(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	w.panelShop.speaks(roleOwner, "en")
	paths := []string{"/panel/clientes", "/panel/ventas", "/panel/programa", "/panel/clientes/{customerId}", "/panel/canjes"}
	want := map[string][]byte{}
	for _, as := range []role{roleOwner, roleAdmin} {
		for _, path := range paths {
			want[string(as)+path] = w.panelShop.get(as, w.filled(path)).Body.Bytes()
		}
	}
	if bytes.Equal(want["owner"+paths[0]], want["admin"+paths[0]]) {
		t.Fatal("the languages do not differ")
	}
	var wait sync.WaitGroup
	var mixed sync.Map
	for i := range 50 {
		wait.Go(func() {
			as, path := []role{roleOwner, roleAdmin}[i%2], paths[i/2%len(paths)]
			if answer := w.panelShop.get(as, w.filled(path)); answer.Code != http.StatusOK || !bytes.Equal(answer.Body.Bytes(), want[string(as)+path]) {
				mixed.Store(path, answer.Body.String())
			}
		})
	}
	wait.Wait()
	mixed.Range(func(path, page any) bool {
		t.Errorf("%s is another page among others:\n%s", path, page)
		return false
	})
	for lang, as := range map[string]role{"en": roleOwner, "es": roleAdmin} {
		if !slices.ContainsFunc(paths, func(p string) bool { return strings.Contains(string(want[string(as)+p]), `<html lang="`+lang+`"`) }) {
			t.Errorf("no page is in %s", lang)
		}
	}
}

// sayings are the texts of a language that the other one does not have too: those without
// arguments, and forms of the others.
func sayings(lang string) (exact map[string]bool, forms []*regexp.Regexp) {
	exact = map[string]bool{}
	other := map[string]bool{}
	for name := range allTexts() {
		other[tr(speaking(map[string]string{"es": "en", "en": "es"}[lang]), name)] = true
	}
	for name := range allTexts() {
		text := tr(speaking(lang), name)
		if letters := len(notLetter.ReplaceAllString(verbs.ReplaceAllString(text, ""), "")); other[text] || letters < 3 {
			continue
		}
		if !verbs.MatchString(text) {
			exact[text] = true
			continue
		}
		forms = append(forms, regexp.MustCompile("(?s)^"+verbs.ReplaceAllString(strings.ReplaceAll(regexp.QuoteMeta(text), "%%", "%"), ".+")+"$"))
	}
	return exact, forms
}

var (
	notLetter = regexp.MustCompile(`\PL`)
	textNode  = regexp.MustCompile(`>([^<]+)<| (?:aria-label|placeholder|title|data-busy|data-done)="([^"]*)"`)
)

// TestPanelOneLanguage: no page, and no answer to a form with nothing in it, has a text of the
// other language. What people wrote may be in any.
// Panel check 66.
func TestPanelOneLanguage(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for lang, other := range map[string]string{"es": "en", "en": "es"} {
		w := newFormWorldOn(newOperatedShop(t).panelShop)
		w.haveTickets()
		w.panelShop.panel.asked.Burst = 1000 // more pages than a person opens
		w.panelShop.speaks(roleOwner, lang)
		exact, forms := sayings(other)
		if len(exact) < 300 || len(forms) < 50 {
			t.Fatalf("%d and %d texts are looked for", len(exact), len(forms))
		}
		_, own := sayings(lang)
		matches := func(all []*regexp.Regexp, text string) bool {
			return slices.ContainsFunc(all, func(r *regexp.Regexp) bool { return r.MatchString(text) })
		}
		seen := map[string]bool{}
		data := string(w.panelShop.shop.exportedDocument())
		for _, name := range []string{"Owner", "Admin", "Manager", "Cashier", "Viewer", "Developer", "English", "Español"} { // members, and languages by their own names
			seen[name] = true
		}
		check := func(what string, answer *httptest.ResponseRecorder) {
			if !strings.HasPrefix(answer.Header().Get("Content-Type"), "text/html") {
				return
			}
			for _, m := range textNode.FindAllStringSubmatch(answer.Body.String(), -1) {
				text := strings.TrimSpace(html.UnescapeString(m[1] + m[2]))
				if seen[text] || strings.Contains(data, `"`+text+`"`) {
					continue
				}
				if seen[text] = true; exact[text] || matches(forms, text) && !matches(own, text) {
					t.Errorf("%s in %s: %q", what, lang, text)
				}
			}
		}
		for _, p := range panelPages() {
			if p.template == "reference" { // the API's own words
				continue
			}
			check("GET "+p.path, w.panelShop.open(roleOwner, w.filled(p.path)))
			check("GET "+p.path+", of what is not there", w.panelShop.open(roleOwner, patternName.ReplaceAllString(p.path, id{9}.String())))
		}
		stamp := w.panelShop.stamp(roleOwner, "/panel/configuracion")
		for _, f := range panelForms() {
			if !slices.Contains([]string{"/panel/salir", "/panel/cuenta/segundo-factor/quitar"}, f.path) {
				check("POST "+f.path, w.panelShop.post(roleOwner, w.filled(f.path), url.Values{etagField: {stamp}}))
			}
		}
		if len(seen) < 500 {
			t.Errorf("%s: only %d texts were seen", lang, len(seen))
		}
	}
}

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

// assetOf asks for a path of the panel's files.
func assetOf(path string, headers ...string) (int, http.Header, []byte, bool) {
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	h := http.Header{}
	status, body, ok := thePanelAssets().respond(h, r)
	return status, h, body, ok
}

// TestPanelAssets checks what is served under the panel's paths of files: how it is kept and
// packed, and that nothing else is there.
func TestPanelAssets(t *testing.T) {
	t.Parallel()
	assets, brown := thePanelAssets(), "#5B3A29"
	paths := map[string]string{
		assets.path("panel.css"): "text/css; charset=utf-8",
		assets.path("panel.js"):  "text/javascript; charset=utf-8",
		brandPath(&brown):        "text/css; charset=utf-8",
	}
	for path, contentType := range paths {
		status, h, plain, ok := assetOf(path)
		if !ok || status != http.StatusOK || len(plain) == 0 || h.Get("Content-Type") != contentType || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Cache-Control") != "public, max-age=31536000, immutable" || h.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %v %d, %d bytes, %v", path, ok, status, len(plain), h)
		}
		if status, _, body, _ := assetOf(path, "If-None-Match", h.Get("ETag")); status != http.StatusNotModified || len(body) != 0 {
			t.Errorf("%s again: %d, %d bytes", path, status, len(body))
		}
		_, h, packed, _ := assetOf(path, "Accept-Encoding", "gzip, br")
		if strings.HasPrefix(path, panelBrandPrefix) {
			if h.Get("Content-Encoding") != "" || !bytes.Equal(packed, plain) {
				t.Errorf("%s is packed", path)
			}
			continue
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil || h.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %v %v", path, err, h)
		}
		if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, plain) {
			t.Errorf("%s unpacked: %v, %d bytes", path, err, len(text))
		}
	}
	for _, path := range []string{
		"/panel/s/000000000000/panel.css", strings.Replace(assets.path("panel.css"), "panel.css", "panel.js", 1), assets.path("panel.css") + "/", "/panel/s/", "/panel/s/panel.css",
		"/panel/marca/5B3A29.css", "/panel/marca/5b3a2.css", "/panel/marca/5b3a291.css", "/panel/marca/5b3a29", "/panel/marca/.css", "/panel/marca/red.css", "/panel/marca/+b3a29.css",
		"/panel/marca/5b3a29.css.css", "/panel/marca/0x3a29.css", "/panel/marca/5b3_29.css",
	} {
		if status, h, _, ok := assetOf(path); ok || len(h) != 0 {
			t.Errorf("%s: %d %v", path, status, h)
		}
	}
	if got := brandPath(nil); got != "" {
		t.Errorf("the colour of who chose none is at %s", got)
	}
}

// TestPanelWeight holds the files of the panel to what a first visit may weigh, and to what a
// connection can carry: request_connections.go would take a line that ends in CR LF for a refusal.
func TestPanelWeight(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int{"panel.css": 25 << 10, "panel.js": 6_000} {
		text := panelFile(name)
		if len(text) > most {
			t.Errorf("%s has %d bytes; at most %d", name, len(text), most)
		}
		if bytes.ContainsRune(text, '\r') {
			t.Errorf("%s has a CR", name)
		}
	}
	for _, word := range []string{"eval", "innerHTML", "Function(", "document.write", "onclick", ".style", "http:", "https:"} {
		if bytes.Contains(panelFile("panel.js"), []byte(word)) {
			t.Errorf("panel.js says %q, which the Content-Security-Policy forbids or should", word)
		}
	}
	if !bytes.Contains(panelFile("panel.js"), []byte("'"+pollHeader+"'")) {
		t.Error("panel.js does not say that it polls")
	}
	for _, word := range []string{"url(", "@import", "@font-face"} {
		if bytes.Contains(panelFile("panel.css"), []byte(word)) {
			t.Errorf("panel.css says %q: one more request", word)
		}
	}
}
