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
