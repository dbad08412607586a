package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// meanwhile is what somebody else does between the review of a form and its confirmation, so that
// the form would do something else than its page showed. What changes the configuration has nothing
// here: another document is applied.
var meanwhile = map[string]func(w *formWorld){
	"/panel/clientes/{customerId}/puntos/dar":    func(w *formWorld) { w.panelShop.shop.add(w.id("customerId"), "1", 0) },
	"/panel/clientes/{customerId}/puntos/quitar": func(w *formWorld) { w.panelShop.shop.add(w.id("customerId"), "1", 0) },
	"/panel/clientes/{customerId}/unir":          func(w *formWorld) { w.panelShop.shop.buy(w.id("luz"), "10") },
	"/panel/ventas/{transactionId}/devolucion":   func(w *formWorld) { w.panelShop.shop.deduct(w.id("customerId"), "399") },
	handoutPath: func(w *formWorld) { w.panelShop.shop.customer("eva") },
}

func (w *formWorld) id(name string) id {
	u, ok := parseID(w.names[name])
	if !ok {
		w.panelShop.shop.Fatal(name)
	}
	return u
}

// TestConfirmed: every form that is reviewed does what its page showed, or nothing (contract §31):
// if a field was changed since, or the store, its page shows what it would do now.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	n := 0
	for _, f := range panelForms() {
		if f.shows == nil && !isReviewed(&f) {
			continue
		}
		n++
		t.Run(f.path, func(t *testing.T) {
			t.Parallel()
			w, g := newFormWorld(t), goodForms[f.path]
			s, path := w.panelShop, w.filled(f.path)
			review := func(fields url.Values) (*httptest.ResponseRecorder, url.Values) {
				fields.Del(reviewedField)
				return s.reviewed("/panel/configuracion", path, fields)
			}
			refused := func(what string, fields url.Values) *httptest.ResponseRecorder {
				t.Helper()
				before := s.shop.entries()
				answer := s.post(roleOwner, path, fields)
				if answer.Code == http.StatusSeeOther || !reflect.DeepEqual(before, s.shop.entries()) {
					t.Fatalf("%s: %d, and the store has changed: %v", what, answer.Code, !reflect.DeepEqual(before, s.shop.entries()))
				}
				return answer
			}
			done := func(what string, fields url.Values) {
				t.Helper()
				if answer := s.post(roleOwner, path, fields); answer.Code != http.StatusSeeOther {
					t.Fatalf("%s: %d %s", what, answer.Code, mainOf(answer.Body.String()))
				}
			}
			// A field is changed.
			_, fields := review(w.fields(&g))
			if fields.Get(reviewedField) == "" {
				t.Fatal("the page of the review has no", reviewedField)
			}
			reviewed := fields.Get(reviewedField)
			for i := 0; i < len(g.post); i += 2 {
				name, value := g.post[i], fields.Get(g.post[i])
				fields.Set(name, strings.Replace(value, "1", "2", 1)+"0")
				refused("changed "+name, fields)
				fields.Del(name)
				refused("without "+name, fields)
				fields.Set(name, value)
			}
			fields.Set("comment", fields.Get("comment")+" y más")
			if answer := refused("another reason", fields); f.shows != nil && (answer.Code != http.StatusConflict || !strings.Contains(answer.Body.String(), "ya cambió")) {
				t.Errorf("another reason: %d %s", answer.Code, mainOf(answer.Body.String()))
			}
			// The store is changed.
			fields = w.fields(&g)
			_, fields = review(fields)
			if fields.Get(reviewedField) != reviewed {
				t.Error("two reviews of the same differ")
			}
			change := meanwhile[f.path]
			if change == nil {
				s.shop.apply([]byte(strings.Replace(string(s.shop.exportedDocument()), `"name":"Vale de $50"`, `"name":"Vale"`, 1)))
			} else {
				change(w)
			}
			answer := refused("another store", fields)
			if f.shows == nil {
				return
			}
			found := digestForm.FindStringSubmatch(answer.Body.String())
			if found == nil || answer.Code != http.StatusConflict {
				t.Fatalf("another store: %d %s", answer.Code, mainOf(answer.Body.String()))
			}
			fields.Set(reviewedField, found[1])
			fields.Set(tokenField, s.panel.random())
			done("as it was shown then", fields)
			s.shop.verified()
		})
	}
	if n != len(meanwhile)+14 {
		t.Errorf("%d forms are reviewed", n)
	}
}
