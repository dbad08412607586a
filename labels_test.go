package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestLabels checks the bounds of a sale's labels.
func TestLabels(t *testing.T) {
	t.Parallel()
	many := func(n int) (list []label) {
		for i := range n {
			list = append(list, label{fmt.Sprint("n", i), "v"})
		}
		return list
	}
	one := func(name, value string) []label { return []label{{name, value}} }
	for _, test := range []struct {
		reason string
		list   []label
		want   string // "": refused
	}{
		{"none", nil, "{}"},
		{"one", one("pago", "efectivo"), `{"pago":"efectivo"}`},
		{"the order is that of the names", []label{{"pago", "efectivo"}, {"canal", "web"}}, `{"canal":"web","pago":"efectivo"}`},
		{"trimmed", one(" pago\t", "\u00a0efectivo "), `{"pago":"efectivo"}`},
		{"names differ by case", []label{{"pago", "b"}, {"Pago", "a"}}, `{"Pago":"a","pago":"b"}`},
		{"ten", many(10), `{"n0":"v","n1":"v","n2":"v","n3":"v","n4":"v","n5":"v","n6":"v","n7":"v","n8":"v","n9":"v"}`},
		{"eleven", many(11), ""},
		{"a name of 40", one(strings.Repeat("ñ", 40), "v"), `{"` + strings.Repeat("ñ", 40) + `":"v"}`},
		{"a name of 41", one(strings.Repeat("ñ", 41), "v"), ""},
		{"a value of 100", one("n", strings.Repeat("ñ", 100)), `{"n":"` + strings.Repeat("ñ", 100) + `"}`},
		{"a value of 101", one("n", strings.Repeat("ñ", 101)), ""},
		{"100 once it is trimmed", one("n", " "+strings.Repeat("x", 100)+" "), `{"n":"` + strings.Repeat("x", 100) + `"}`},
		{"a blank name", one(" ", "v"), ""},
		{"a blank value", one("n", "\u2003"), ""},
		{"a control character in a name", one("a\x01b", "v"), ""},
		{"a line end in a value", one("n", "a\nb"), ""},
		{"a tab in a value", one("n", "a\tb"), ""},
		{"a control character at an end", one("n", "a\x7f"), ""},
		{"what is no character", one("n", "a\ufffe"), ""},
		{"twice once they are trimmed", []label{{"pago", "a"}, {"x", "y"}, {" pago", "a"}}, ""},
	} {
		list, err := newSaleLabels(test.list...)
		got := ""
		if err == nil {
			got = string(list.appendJSON(nil))
		} else if e := publicError(err); e.code != codeLabelsInvalid || e.field != "labels" {
			t.Errorf("%s: %v of %q", test.reason, e, e.field)
		}
		if got != test.want {
			t.Errorf("%s: %s, not %s", test.reason, got, test.want)
		}
	}
}

// TestLabelsImported: columns of labels are imported, and what a full export writes of them is
// imported again.
func TestLabelsImported(t *testing.T) {
	t.Parallel()
	const people = "nombre,correo\nAna,ana@example.com\n"
	const tricky = `a=b; "c", {d}`
	from := newOpenTill(t)
	from.ok("import customers " + from.file("c.csv", people))
	from.ok("import sales -map forma=label.pago " + from.file("s.csv", `ticket,fecha,correo,total,producto,cantidad,precio,forma,Label.Canal
T-1,2026-01-05,ana@example.com,30,CAFE,1,10,efectivo,
T-1,2026-01-05,ana@example.com,30,TE,1,20, efectivo ,web
T-2,2026-01-06,ana@example.com,10,,,,"`+strings.ReplaceAll(tricky, `"`, `""`)+`",
T-3,2026-01-07,ana@example.com,10,,,,,
`))
	full := from.ok("export sales -full")
	for _, want := range []string{`,"{""Canal"":""web"",""pago"":""efectivo""}"` + "\n", `,"{""pago"":""a=b; \""c\"", {d}""}"` + "\n", ",10,\n"} {
		if !strings.Contains(full, want) {
			t.Errorf("%s\nlacks %s", full, want)
		}
	}
	to := newOpenTill(t)
	to.ok("import customers " + to.file("c.csv", people))
	to.ok("import sales -ignore id,customerId,points,source,registeredAt,createdBy,pointsPaid,amountPaid,amountDue " + to.file("s.csv", full))
	last := func(text string) (cells []string) {
		for line := range strings.Lines(text) {
			_, after, _ := strings.Cut(line, ",\"{")
			cells = append(cells, after)
		}
		return cells
	}
	same(t, "labels", last(to.ok("export sales -full")), last(full))
}

// TestLabelsImportedWrong: each fault of a label stands with its column and cell, and a heading
// that can be no label is unknown.
func TestLabelsImportedWrong(t *testing.T) {
	t.Parallel()
	till := newOpenTill(t)
	till.ok("import customers " + till.file("c.csv", "nombre,correo\nAna,ana@example.com\n"))
	long := strings.Repeat("x", 101)
	file := till.file("s.csv", `ticket,fecha,correo,tipo,total,sku,cantidad,precio,label.pago,etiquetas
W-1,2026-01-05,ana@example.com,,10,,,,`+long+`,
W-2,2026-01-05,ana@example.com,,10,,,,efectivo,"{""pago"":""tarjeta""}"
W-3,2026-01-05,ana@example.com,,10,,,,,pago=efectivo
W-4,2026-01-05,ana@example.com,,10,CAFE,1,5,efectivo,
W-4,2026-01-05,ana@example.com,,10,TE,1,5,tarjeta,
W-5,2026-01-05,ana@example.com,,10,,,,tarjeta,
W-5,2026-01-06,ana@example.com,devolución,10,,,,tarjeta,
`)
	if code, _, _ := till.run("import sales " + file); code != 1 {
		t.Errorf("exit code %d", code)
	}
	told := readText(t, file+".errors.csv")
	for _, want := range []string{
		`label.pago: ""` + long[:60] + `…"": una venta lleva`,
		`etiquetas: ""{""pago"":""tarjeta""}"": una venta lleva`,
		`etiquetas: ""pago=efectivo"": debe ser un objeto JSON`,
		`label.pago: ""efectivo"": no es igual en todas las filas de la venta`,
		`label.pago: ""tarjeta"": solo vale en una compra`,
	} {
		if !strings.Contains(told, want) {
			t.Errorf("%s\nlacks %s", told, want)
		}
	}
	for _, heading := range []string{"label.", "label. ", "label." + strings.Repeat("x", 41)} {
		code, _, told := till.run("import sales " + till.file("u.csv", "ticket,fecha,correo,total,"+heading+"\nU-1,2026-01-05,ana@example.com,10,\n"))
		if code != 1 || !strings.Contains(told, "columnas desconocidas") {
			t.Errorf("%q: %d %s", heading, code, told)
		}
	}
}
