package main

import (
	"bytes"
	"fmt"
	"html"
	"net/url"
	"slices"
	"testing"
)

// TestVersionsInPanel: the panel lists the versions, shows how any two differ, and puts an old one
// back by the form of the document.
func TestVersionsInPanel(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, setup{})
	var documents [][]byte
	keep := func() { documents = append(documents, s.shop.exportedDocument()) }
	keep()
	for n := 2; n <= 24; n++ {
		s.shop.apply(bytes.Replace(documents[0], []byte(`"name":"Café Luna"`), fmt.Appendf(nil, `"name":"Café %d"`, n), 1))
		keep()
	}
	list := s.open(roleOwner, versionsPath).Body.String()
	s.wants("newest first", list, "Versión 24", "Versión 5", "!Versión 4<", "1 cambio", "Página 1 de 2")
	s.wants("the next page", s.open(roleOwner, versionsPath+"?page=2").Body.String(), "!Versión 5<", "Versión 4", "la primera")

	of := func(from, to int) string {
		return s.open(roleOwner, fmt.Sprintf("%s/comparar?antes=%d&despues=%d", versionsPath, from, to)).Body.String()
	}
	for _, two := range [][2]int{{1, 24}, {24, 1}, {7, 8}, {23, 3}, {9, 9}} {
		page := of(two[0], two[1])
		older := ask(s.shop, func(t *txn) (*config, error) { return configAt(t, uint64(two[0])) })
		newer := ask(s.shop, func(t *txn) (*config, error) { return configAt(t, uint64(two[1])) })
		changes, err := differences(older, newer)
		s.shop.ok(err)
		var want, listed []string
		for _, c := range changes {
			want = append(want, c.Path)
		}
		for _, row := range diffForm.FindAllStringSubmatch(page, -1) {
			listed = append(listed, html.UnescapeString(row[1]))
		}
		if !slices.Equal(listed, want) || (len(want) == 0) != (two[0] == two[1]) {
			t.Errorf("%v: %q, want %q", two, listed, want)
		}
	}
	s.wants("beside the one before", s.open(roleOwner, versionsPath+"/comparar?despues=12").Body.String(), "De la 11 a la 12", "Café 11", "Café 12")
	s.wants("the current one", s.open(roleOwner, versionsPath+"/comparar").Body.String(), "De la 23 a la 24", "actual", "!Volver a esta versión")
	s.wants("the first one", s.open(roleOwner, versionsPath+"/comparar?despues=1").Body.String(), "no hay con qué compararla")
	for _, wrong := range []string{"0", "25", "x", "-1", "99999999999999999999"} {
		w := s.open(roleOwner, versionsPath+"/comparar?despues="+wrong)
		if w.Code != 422 {
			t.Errorf("version %s: %d", wrong, w.Code)
		}
		s.wants("version "+wrong, w.Body.String(), "No hay esa versión.")
	}
	s.wants("the audit log", s.open(roleOwner, auditPath).Body.String(), `comparar?despues=24">Versión 24</a>`)

	form := s.open(roleOwner, "/panel/configuracion/documento?version=12").Body.String()
	s.wants("the form", form, "documento de la versión 12", "Café 12", "!Café 24")
	s.changeConfig("/panel/configuracion/documento?version=12", "/panel/configuracion/documento", url.Values{"document": {string(documents[11])}})
	same(t, "version 12 is back", string(s.shop.exportedDocument()), string(documents[11]))
	if n := s.shop.config().Version; n < 25 {
		t.Errorf("version %d", n)
	}
}

// TestVersionsRead: what asks for one version, or for a page of them, reads few of many.
func TestVersionsRead(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	const most = 300
	document := s.exportedDocument()
	for n := range most - 1 {
		s.apply(bytes.Replace(document, []byte(`"name":"Café Luna"`), fmt.Appendf(nil, `"name":"Café %d"`, n), 1))
	}
	read := func(reason string, bound int, fn func(*txn) error) {
		t.Helper()
		ask(s, func(t *txn) (any, error) {
			counted := &countedTx{Tx: t.Tx}
			t.Tx = counted
			err := fn(t)
			if n := counted.gets['f'] + counted.scanned; n > bound {
				s.Errorf("%s reads %d versions or entries", reason, n)
			}
			return nil, err
		})
	}
	for _, number := range []uint64{1, 2, 150, most - 1, most} {
		read("the version of an entry", 11, func(t *txn) error {
			x, err := existing[configVersion](t.Tx, versionKey(t.org, number))
			if err != nil {
				return err
			}
			got, err := versionOf(t, x.AuditSeq)
			same(s, "the version of its entry", got, number)
			return err
		})
		read("one version", 1, func(t *txn) error {
			cfg, err := configAt(t, number)
			same(s, "the configuration of a version", cfg.Version, number)
			return err
		})
	}
	read("a page", 2*defaultLimit+2, func(t *txn) error {
		var r request
		r.query = query{input{new(fault), sent{}}}
		_, err := listVersions(&r)(t)
		return err
	})
}
