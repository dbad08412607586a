package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
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
