package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// versionedDocument is the n-th of several documents, each of which differs from all others.
func versionedDocument(n int) string {
	document := strings.Replace(string(demoDocument), `"threshold": 1000`, fmt.Sprintf(`"threshold": %d`, 1000+n), 1)
	if n%3 == 0 {
		document = strings.Replace(document, `"name": "Café Luna"`, fmt.Sprintf(`"name": "Café %d"`, n), 1)
	}
	return document
}

// TestVersionsExported: the export of each version is byte for byte what export gave after that
// document was applied, also through a server.
func TestVersionsExported(t *testing.T) {
	s := newTill(t)
	const most = 20
	var exports []string
	for n := range most {
		out := s.ok("apply -", versionedDocument(n))
		if want := fmt.Sprintf("cafe-luna: versión %d\n", n+1); !strings.HasSuffix(out, want) {
			t.Errorf("apply: %s, want %q at its end", out, want)
		}
		exports = append(exports, s.ok("export"))
	}
	if out := s.ok("apply -json -", versionedDocument(most-1)); !strings.Contains(out, fmt.Sprintf(`"version": %d`, most)) {
		t.Errorf("applied again: %s", out)
	}
	if out := s.ok("apply -dry-run -json -", versionedDocument(most)); !strings.Contains(out, fmt.Sprintf(`"version": %d`, most)) {
		t.Errorf("rehearsed: %s", out)
	}
	all := func(where string) {
		t.Helper()
		for i, want := range exports {
			same(t, fmt.Sprintf("version %d %s", i+1, where), s.ok(fmt.Sprintf("export -org cafe-luna -version %d", i+1)), want)
		}
		code, _, errs := s.run("export -version 21")
		if want := "sello: no hay versión 21 de la configuración de \"cafe-luna\": hay de la 1 a la 20\n"; code != 1 || errs != want {
			t.Errorf("%s: no such version: exit %d, %s", where, code, errs)
		}
	}
	all("of a file")
	server, _ := s.start("serve")
	all("through a server")
	server.stop()
	for line, want := range map[string]string{"export -version 0": "-version debe ser mayor a 0", "export -version -1": "valor no válido para -version", "export -version x": "valor no válido para -version"} {
		if code, _, errs := s.run(line); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s", line, code, errs)
		}
	}
	if out := s.ok("verify"); !strings.Contains(out, "todo cuadra") {
		t.Error(out)
	}
	if out := s.ok("audit -action configuration.applied -limit 1"); !strings.Contains(out, "versión 20, ") {
		t.Errorf("the audit log: %s", out)
	}
	one := newTill(t)
	one.ok("apply -", versionedDocument(0))
	if code, _, errs := one.run("export -version 2"); code != 1 || !strings.HasSuffix(errs, `de "cafe-luna": solo hay la 1`+"\n") {
		t.Errorf("of one: exit %d, %s", code, errs)
	}
}

// TestVersionsKeep: what is kept of a version is its configuration, without secrets.
func TestVersionsKeep(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: `"webhooks":[{"key":"crm","url":"https://crm.example.com/x","events":["points.*"]}]`})
	secret := must(s, func(t *txn) ([]byte, error) { return t.webhooks.newSecret("crm") })
	s.apply(bytes.Replace(s.exportedDocument(), []byte("crm.example.com/x"), []byte("crm.example.com/y"), 1))
	for n := range s.config().Version {
		x := ask(s, func(t *txn) (*configVersion, error) { return versionAt(t.Tx, t.org, n+1) })
		cfg, err := x.config()
		s.ok(err)
		raw, err := cfg.stored()
		s.ok(err)
		for _, form := range []string{string(secret), base64.StdEncoding.EncodeToString(secret), "whsec_", "ecret"} {
			if strings.Contains(string(raw), form) {
				t.Errorf("version %d has a secret: %s", n+1, raw)
			}
		}
	}
}

// TestVersionsOfEntries: a document with many changes has several entries in the audit log, which
// all say its version; other entries say none.
func TestVersionsOfEntries(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	var rules []string
	for n := range 60 {
		rules = append(rules, fmt.Sprintf(`{"key":"r%d","name":"R%d","multiplier":2}`, n, n))
	}
	s.apply(setup{program: `"rules":[` + onePer1 + "," + strings.Join(rules, ",") + `]`}.document())
	s.apply(s.exportedDocument())
	found := map[uint64]int{}
	ask(s, func(t *txn) (any, error) {
		n, err := t.count()
		if err != nil {
			return nil, err
		}
		for seq := range n.Audit {
			e, err := t.audit.entry(seq + 1)
			if err != nil {
				return nil, err
			}
			shape, err := newAuditShape(t, e)
			if err != nil {
				return nil, err
			}
			if (shape.Version > 0) != (shape.Action == auditConfigurationApplied) {
				s.Errorf("entry %d, %s: version %d", e.Seq, e.Action, shape.Version)
			}
			found[shape.Version]++
		}
		return nil, nil
	})
	if len(found) < 2 || found[2] < 2 {
		t.Errorf("entries of each version: %v", found)
	}
}

// TestVerifyVersions checks what verify says of versions that are damaged, and of none that is right.
func TestVerifyVersions(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	document := s.exportedDocument()
	for n := range 3 {
		s.apply(bytes.Replace(document, []byte(`"name":"Café Luna"`), fmt.Appendf(nil, `"name":"Café %d"`, n), 1))
	}
	number := func(n uint64) func(*configVersion) bool { return func(x *configVersion) bool { return x.Number == n } }
	first := ask(s, func(t *txn) (*configVersion, error) { return versionAt(t.Tx, t.org, 1) })
	for _, test := range []struct {
		reason string
		of     func(*configVersion) bool
		change func(*configVersion) // nil: the version is taken away
		want   string
	}{
		{"a hole", number(2), nil, "versiones de la configuración: tras la 1 está la 3"},
		{"no last one", number(4), nil, "versiones de la configuración: "},
		{"what cannot be read", number(2), func(x *configVersion) { x.Packed = x.Packed[1:] }, "versión 2 de la configuración: no se puede leer, o es otra"},
		{"something behind it", number(2), func(x *configVersion) { x.Packed = append(x.Packed, 0) }, "versión 2 de la configuración: no se puede leer, o es otra"},
		{"another version", number(4), func(x *configVersion) { x.Packed = first.Packed }, "versión 4 de la configuración: no se puede leer, o es otra"},
		{"another configuration", number(4), func(x *configVersion) {
			cfg, err := x.config()
			s.ok(err)
			cfg.Organization.Name = "Otra"
			raw, err := cfg.stored()
			s.ok(err)
			x.Packed = deflated(raw)
		}, "versión 4 de la configuración: no es la configuración actual"},
		{"by another one", number(3), func(x *configVersion) { x.By.Actor = "otro" }, "versión 3 de la configuración: la entrada 3 de la auditoría no es la suya"},
		{"at another moment", number(3), func(x *configVersion) { x.AppliedAt++ }, "versión 3 de la configuración: la entrada 3 de la auditoría no es la suya"},
		{"the entry of another", number(3), func(x *configVersion) { x.AuditSeq-- }, "versión 3 de la configuración: la entrada 2 de la auditoría no es la suya"},
		{"without an entry", number(1), func(x *configVersion) { x.AuditSeq = 0 }, "versión 1 de la configuración: de antes de las versiones, y con fecha o autor"},
		{"nothing", func(*configVersion) bool { return false }, nil, ""},
	} {
		var changed memTx
		for _, e := range s.entries() {
			if tableConfigVersions.has(e.Key) {
				x, err := decodeEntry[configVersion](e)
				s.ok(err)
				if x.Number = uintIn(e.Key[5:]); test.of(x) {
					if test.change == nil {
						continue
					}
					test.change(x)
					e.Value = appendRecord(nil, x)
				}
			}
			changed = append(changed, e)
		}
		report, err := verify(changed, s.clock, nil)
		s.ok(err)
		if found := strings.Join(report.Problems, "\n"); !strings.Contains(found, test.want) || (found == "") != (test.want == "") {
			t.Errorf("%s: %q, want %q", test.reason, found, test.want)
		}
	}
}
