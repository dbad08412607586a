package main

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// TestPanelMembers: the customers in a segment by pages, of which one that is short says so, and
// as a file.
func TestPanelMembers(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{at: "2026-04-02T10:00:00Z", also: marchSegment})
	const n = walkedAtOnce + 100
	of := newCrowd()
	s.shop.importing(importCustomers, n, func(i int) importRow { return bornIn(of, i, n, n/100) })
	base := "/panel/segmentos/" + s.shop.config().Segments[0].ID.String() + "/clientes"
	next := regexp.MustCompile(`href="([^"]+)" rel="next"`)
	var rows []int
	for path := base; path != ""; {
		body := s.open(roleViewer, path).Body.String()
		rows = append(rows, strings.Count(body, `<tr><td><a href="/panel/clientes/`))
		short := strings.Contains(body, "Todavía quedan clientes por mirar")
		found := next.FindStringSubmatch(body)
		if path = ""; found != nil {
			path = found[1]
		}
		if want := found != nil && rows[len(rows)-1] < defaultLimit; short != want {
			t.Errorf("page %d says that there are more to look at: %t, want %t", len(rows), short, want)
		}
		if len(rows) > 5 {
			break
		}
	}
	if len(rows) != 2 || rows[0] != defaultLimit || rows[1] != 1 {
		t.Errorf("the pages have %v customers", rows)
	}
	if w := s.open(roleOwner, base+"?after=x"); !strings.Contains(w.Body.String(), "debe ser el next de una respuesta, o estar vacío") {
		t.Errorf("a wrong cursor: %d %s", w.Code, w.Body)
	}
	file := s.file(roleOwner, base+"/csv")
	if lines := strings.Count(file.Body.String(), "\n"); file.Code != http.StatusOK || lines != 1+n/100 || !strings.Contains(file.Header().Get("Content-Disposition"), "marzo.csv") {
		t.Errorf("the file: %d, %d lines, %v", file.Code, lines, file.Header())
	}
	for _, r := range []role{roleCashier, roleManager, roleViewer} {
		if w := s.file(r, base+"/csv"); w.Code != http.StatusForbidden {
			t.Errorf("the file for %s: %d", r, w.Code)
		}
	}
	if w := s.open(roleCashier, base); w.Code != http.StatusForbidden {
		t.Errorf("the list for a cashier: %d", w.Code)
	}
}

func typedIn(pairs []string) url.Values {
	fields := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		fields.Set(pairs[i], pairs[i+1])
	}
	return fields
}

// TestPanelSegmentFields: the form of a segment has every field that a comparison may name.
func TestPanelSegmentFields(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{program: `"default":true},{"key":"sellos","name":"Sellos"`})
	form := "/panel/segmentos/nuevo"
	fields := of("name", "Varios", "isActive", "1", "join", "all",
		"rows[0].field", "attributes", "rows[0].attribute", "talla", "rows[0].op", "=", "rows[0].value", "M",
		"rows[1].field", "attributes", "rows[1].attribute", "hijos", "rows[1].op", ">=", "rows[1].value", "1,000",
		"rows[2].field", "attributes", "rows[2].attribute", "vegana", "rows[2].op", "=", "rows[2].value", "Sí",
		"rows[3].field", "points:sellos", "rows[3].op", ">", "rows[3].value", "3",
		"rows[4].field", "birthMonth", "rows[4].op", "=", "rows[4].value", "3",
		"rows[5].field", "expiringWithin", "rows[5].op", "<=", "rows[5].value", "30")
	s.changeConfig(form, form, typedIn(fields))
	const want = `{"all":[{"field":"attributes.talla","op":"=","value":"M"},{"field":"attributes.hijos","op":">=","value":1000},{"field":"attributes.vegana","op":"=","value":true},` +
		`{"field":"points:sellos","op":">","value":3},{"field":"birthMonth","op":"=","value":3},{"field":"expiringWithin","op":"<=","value":30}]}`
	if doc := strings.NewReplacer(`\u003e`, ">", `\u003c`, "<").Replace(string(s.shop.exportedDocument())); !strings.Contains(doc, want) {
		t.Errorf("the document has no %s: %s", want, doc)
	}
	segment := "/panel/segmentos/" + s.shop.config().Segments[0].ID.String()
	s.changeConfig(segment, segment, typedIn(of("priority", "3", "isActive", "1")))
	body := s.open(roleOwner, segment).Body.String()
	for _, shown := range []string{`name="rows[0].attribute" value="talla"`, `name="rows[1].value" value="1,000"`, `name="rows[2].value" value="sí"`, `<option value="points:sellos" selected>Saldo en Sellos`} {
		if !strings.Contains(body, shown) {
			t.Errorf("the form does not show %s", shown)
		}
	}
}
