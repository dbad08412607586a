package main

import (
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	keptFactForm = regexp.MustCompile(`<dt>(.*?)</dt><dd>(.*?)</dd>`)
	tagForm      = regexp.MustCompile(`<[^>]*>`)
	shownID      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}`)
)

// TestKeptForms: whichever form is kept, the pages that come before it show no field's name and no
// id; who is logged in sees whom and what it is about by their names.
func TestKeptForms(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{"es", "en"} {
		for _, f := range panelForms() {
			g := goodForms[f.path]
			if slices.Contains(carriers, f.path) || slices.Contains(openLocked, f.path) || slices.Contains(secretsOf(g.post), true) || g.as != "" {
				continue
			}
			w := newFormWorld(t)
			w.panelShop.speaks(roleOwner, lang)
			if g.prepare != nil {
				g.prepare(w)
			}
			path, fields := w.filled(f.path), w.fields(&g)
			fields.Set("loyaltyProgramId", w.names["programId"])
			fields.Set("unknown", "secretly")
			prove := url.Values{keptPath: {path}, "password": {"mal"}}
			for name := range fields {
				prove.Set(keptField+name, fields.Get(name))
			}
			pages := map[string]string{"log-in": w.panelShop.post("", path, maps.Clone(fields)).Body.String(), "password": w.panelShop.post(roleOwner, provePath, prove).Body.String()}
			w.havePIN()
			w.beLocked()
			pages["lock"] = w.panelShop.post(roleOwner, path, maps.Clone(fields)).Body.String()
			for which, page := range pages {
				main := mainOf(page)
				if !strings.Contains(main, keptPath) || !strings.Contains(main, `<h2>`) {
					t.Errorf("%s: %s: the form is not kept and told of\n%s", f.path, which, main)
				}
				text := tagForm.ReplaceAllString(main, " ")
				if shownID.MatchString(text) || strings.Contains(text, "secretly") {
					t.Errorf("%s: %s shows an id, or a field that nobody saw\n%s", f.path, which, text)
				}
				for _, m := range keptFactForm.FindAllStringSubmatch(main, -1) {
					if name := html.UnescapeString(m[1]); fields.Has(name) || slices.Contains([]string{"some", "all", "never", "date", "1h", "totalSpent", "cashier"}, m[2]) || strings.ContainsAny(name, "[]_.") {
						t.Errorf("%s: %s shows %s", f.path, which, m[0])
					}
				}
				if which == "password" && (!strings.Contains(main, "<dd>Club Luna</dd>") || strings.Contains(f.path, "{customerId}") && !strings.Contains(main, "<dd>Ana García</dd>")) {
					t.Errorf("%s: %s names nobody\n%s", f.path, which, main)
				}
			}
		}
	}
}

// TestKeptOnes: what was typed is shown as it was typed, though it is what boxes are sent with.
func TestKeptOnes(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	w.havePIN()
	w.beLocked()
	page := func(path string, fields url.Values) string {
		return mainOf(w.panelShop.post(roleOwner, w.filled(path), fields).Body.String())
	}
	w.panelShop.wants("a sale", page("/panel/caja/{customerId}/venta", url.Values{"totalAmount": {"1"}, "externalId": {"1"}, "comment": {"1"}, "again": {"1"}, "pay": {"max"}}),
		"<dt>Importe</dt><dd>1</dd>", "<dt>Ticket</dt><dd>1</dd>", "<dt>Comentario</dt><dd>1</dd>", "<dt>Registrar otra vez</dt><dd>sí</dd>", "<dt>Pagar con puntos</dt><dd>sí</dd>")
	reward := page("/panel/recompensas/nueva", url.Values{"name": {"1"}, "validDays": {"1"}, "autoIssue": {"1"}})
	if ones, boxes := strings.Count(reward, "<dd>1</dd>"), strings.Count(reward, "<dd>sí</dd>"); ones != 2 || boxes != 1 {
		t.Errorf("a reward: %d are 1, %d are checked\n%s", ones, boxes, reward)
	}
}

// secretsOf says of each name whether it is a secret's.
func secretsOf(post []string) (list []bool) {
	for i := 0; i < len(post); i += 2 {
		list = append(list, slices.Contains(secretFields, post[i]))
	}
	return list
}

// TestKeptTooLong: of a form that is too long to be kept over a log-in, the page says so.
func TestKeptTooLong(t *testing.T) {
	t.Parallel()
	w := newFormWorld(t)
	for _, fields := range []url.Values{{"document": {strings.Repeat("a", maxForm)}}, {"password": {"secreta"}}} {
		answer := w.panelShop.post("", "/panel/configuracion/documento", fields)
		if page := answer.Body.String(); answer.Code != http.StatusUnauthorized || !strings.Contains(page, "Lo que enviaste no se guardó.") || !strings.Contains(page, `name="email"`) {
			t.Errorf("%d %.2000s", answer.Code, page)
		}
	}
}
