package main

import (
	"strings"
	"testing"
)

// TestPresets imports an export of each system with its real headings (contract §31).
func TestPresets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ kind, system, out, ignored, there string }{
		{importCustomers, "shopify", "2 filas: 2 nuevos", "Default Address Company, ", "Ana,Paz,ana@example.com,+525512345671,7001,,true,"},
		{importCustomers, "square", "2 filas: 2 nuevos", "Reference ID, Nickname, ", "Ana,Paz,ana@example.com,+525512345671,SQ1,1990-05-14,true,"},
		{importCustomers, "woocommerce", "1 fila: 1 nuevo", "Username, Last Active, Orders, ", "Ana Paz,,ana@example.com,+525512345671,,,,"},
		{importSales, "shopify", "2 filas: 1 nueva", "Financial Status, Paid at, ", "#1001,2025-11-01T07:50:26.000Z,ana@example.com,,Purchase,30,BOLSA,2,5,"},
		{importSales, "square", "1 fila: 1 nueva", "Time Zone, Gross Sales, ", "TX1,2025-11-01T15:50:26.000Z,ana@example.com,,Purchase,10,"},
	} {
		s := newOpenTill(t)
		s.ok("import customers " + s.file("who.csv", "correo,externalId\nana@example.com,\nsq@example.com,\n"))
		if test.system == "square" && test.kind == importSales {
			s.ok("import customers " + s.file("sq.csv", "correo,externalId\nana@example.com,SQ1\n"))
		}
		if test.kind == importCustomers {
			s = newOpenTill(t)
		}
		name := s.file("export.csv", string(readFile(t, "testdata/presets/"+test.system+"-"+test.kind+".csv")))
		_, out, told := s.run("import " + test.kind + " -from " + test.system + " " + name)
		if !strings.HasPrefix(out, test.out) || !strings.Contains(out, "no se usaron de la exportación: "+test.ignored) {
			t.Errorf("%s of %s: %s%s", test.kind, test.system, out, told)
		}
		if got := s.ok("export " + test.kind + " -raw"); !strings.Contains(got, test.there) {
			t.Errorf("%s of %s: no %s in %s", test.kind, test.system, test.there, got)
		}
	}
	s := newOpenTill(t)
	if code, _, _ := s.run("import sales -from woocommerce x.csv"); code != 2 {
		t.Errorf("a system without sales: exit %d", code)
	}
}
