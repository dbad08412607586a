package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Rules that hold for everybody and for nobody.
const (
	ruleYes = `{"field":"balance","op":">=","value":-99999999999}`
	ruleNo  = `{"field":"balance","op":">","value":99999999999}`
)

// segmentCases are rules of segments, and for which of two customers each holds.
var segmentCases = []struct {
	rule     string
	ana      bool
	stranger bool // with a phone and nothing else
}{
	{`{"field":"totalSpent","op":"=","value":100}`, true, false},
	{`{"field":"totalSpent","op":"!=","value":100}`, false, true},
	{`{"field":"totalSpent","op":"<","value":100}`, false, true},
	{`{"field":"totalSpent","op":"<=","value":100}`, true, true},
	{`{"field":"totalSpent","op":">","value":100}`, false, false},
	{`{"field":"totalSpent","op":">","value":99.9999}`, true, false},
	{`{"field":"totalSpent","op":">=","value":100}`, true, false},
	{`{"field":"totalSpent","op":">=","value":100.0001}`, false, false},
	{`{"field":"transactionsCount","op":"=","value":1}`, true, false},
	{`{"field":"transactionsCount","op":"=","value":0}`, false, true},
	{`{"field":"balance","op":"=","value":60}`, true, false},
	{`{"field":"lifetimePoints","op":"=","value":100}`, true, false},
	{`{"field":"createdAt","op":"=","value":10}`, true, false},
	{`{"field":"createdAt","op":"<","value":10}`, false, true},
	{`{"field":"lastTransactionAt","op":"<=","value":5.5}`, true, false},
	{`{"field":"lastTransactionAt","op":"<","value":5.5}`, false, false},
	{`{"field":"lastTransactionAt","op":">","value":36500}`, false, true}, // never is longer ago than anything
	{`{"field":"tier","op":"=","value":"Plata"}`, true, false},
	{`{"field":"tier","op":"!=","value":"Plata"}`, false, true},
	{`{"field":"tier","op":"=","value":"plata"}`, false, false},
	{`{"field":"email","op":"=","value":true}`, true, false},
	{`{"field":"email","op":"!=","value":true}`, false, true},
	{`{"field":"email","op":"=","value":false}`, false, true},
	{`{"field":"phone","op":"=","value":true}`, false, true},
	{`{"field":"birthMonth","op":"=","value":3}`, true, false},
	{`{"field":"birthMonth","op":"!=","value":3}`, false, true},
	{`{"field":"birthMonth","op":">=","value":3}`, true, false},
	{`{"field":"birthMonth","op":"<","value":12}`, true, false}, // no month is in no part of the year
	{`{"not":{"field":"birthMonth","op":"<","value":4}}`, false, true},
	{`{"field":"expiringWithin","op":"=","value":10}`, true, false}, // of 30 days
	{`{"field":"expiringWithin","op":"<=","value":10}`, true, false},
	{`{"field":"expiringWithin","op":"<","value":10}`, false, false},
	{`{"field":"expiringWithin","op":">","value":9}`, true, false},
	{`{"field":"expiringWithin","op":"!=","value":9}`, true, true},
	{`{"field":"points:sellos","op":"=","value":7}`, true, false},
	{`{"field":"points:sellos","op":"<","value":7}`, false, true}, // none yet
	{`{"field":"points:club","op":"=","value":60}`, true, false},
	{`{"field":"attributes.talla","op":"=","value":"M"}`, true, false},
	{`{"field":"attributes.talla","op":"=","value":"\u004D"}`, true, false},
	{`{"field":"attributes.talla","op":"=","value":"m"}`, false, false},
	{`{"field":"attributes.talla","op":"!=","value":"M"}`, false, true},
	{`{"field":"attributes.talla","op":"=","value":7}`, false, false},
	{`{"field":"attributes.talla","op":"<","value":7}`, false, false},
	{`{"field":"attributes.talla","op":"!=","value":7}`, true, true},
	{`{"field":"attributes.vegana","op":"=","value":true}`, true, false},
	{`{"field":"attributes.vegana","op":"=","value":false}`, false, false},
	{`{"field":"attributes.vegana","op":"!=","value":false}`, true, true},
	{`{"field":"attributes.hijos","op":"=","value":2.0}`, true, false},
	{`{"field":"attributes.hijos","op":">","value":1.5}`, true, false},
	{`{"field":"attributes.hijos","op":"<=","value":1.5}`, false, false},
	{`{"field":"attributes.largo","op":">","value":99999999999.9999}`, true, false}, // larger than points can be
	{`{"field":"attributes.cuarto. a","op":"=","value":"x"}`, true, false},
	{`{"all":[` + ruleYes + `]}`, true, true},
	{`{"all":[` + ruleYes + `,` + ruleYes + `]}`, true, true},
	{`{"all":[` + ruleYes + `,` + ruleNo + `]}`, false, false},
	{`{"any":[` + ruleNo + `,` + ruleYes + `]}`, true, true},
	{`{"any":[` + ruleNo + `,` + ruleNo + `]}`, false, false},
	{`{"not":` + ruleNo + `}`, true, true},
	{`{"not":{"not":` + ruleNo + `}}`, false, false},
	{`{"all":[{"any":[` + ruleNo + `,{"field":"email","op":"=","value":true}]},{"not":` + ruleNo + `}]}`, true, false},
}

// TestSegmentRules shows every field and operator of a segment's rule, and how rules
// combine. Ana has an e-mail and no phone, and was enrolled ten days ago. Five and a half
// days ago she bought for 100. That earned 100 points, of which 40 are spent, and the others expire
// 16 days after it. In another program, sellos, she has 7. Each rule holds the same when the accounts
// are read as the rule asks for them, with what is cheap first, as lists do.
func TestSegmentRules(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{program: `"default":true,"expiry":{"days":16},"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":100}],"rules":[` + onePer1 + `]},{"key":"sellos","name":"Sellos"`})
	ana := s.customer("ana")
	s.pass(4*oneDay + 12*time.Hour)
	s.buy(ana, "100")
	_, err := s.deduct(ana, "40")
	s.ok(err)
	must(s, func(t *txn) (any, error) {
		c, err := t.customers.patch(ana, customerPatch{BirthDate: new(birthDate(331)), Attributes: []attribute{
			{"talla", `"M"`}, {"vegana", "true"}, {"hijos", "2"}, {"largo", "1e+30"}, {"cuarto. a", `"x"`},
		}}, nil)
		if err != nil {
			return nil, err
		}
		a, err := t.points.account(c, t.cfg.programKey("sellos"))
		if err == nil {
			err = t.points.credit(a, &movement{Amount: dec("7"), Category: categoryBonus})
		}
		if err != nil {
			return nil, err
		}
		return nil, t.points.saveAccount(a)
	})
	s.pass(5*oneDay + 12*time.Hour)
	stranger := must(s, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{Phone: "+525512345678"})
		if err != nil {
			return id{}, err
		}
		return c.ID, nil
	})
	for _, test := range segmentCases {
		var rule segmentRule
		if err := json.Unmarshal([]byte(test.rule), &rule); err != nil {
			t.Fatal(err)
		}
		ck := new(checker)
		if ck.segmentRule("rule", &rule, 0); len(ck.problems) > 0 {
			t.Errorf("%s is refused: %v", test.rule, ck.problems)
		}
		for cust, want := range map[id]bool{ana: test.ana, stranger: test.stranger} {
			lists := ask(s, func(t *txn) (bool, error) {
				c, err := t.customers.get(cust)
				if err != nil {
					return false, err
				}
				p := &profile{t: t, customer: c}
				sorted := rule.cheapFirst()
				return sorted.holds(p), p.err
			})
			if lists != want {
				t.Errorf("%s: lists say %t, want %t", test.rule, lists, want)
			}
			got := ask(s, func(t *txn) (bool, error) {
				_, a, err := accountOf(t, cust)
				return err == nil && rule.holds(&profile{t: t, customer: a.customer, own: a, whole: true}), err
			})
			if got != want {
				t.Errorf("%s holds for ana %t and the stranger %t: got %t for one of them", test.rule, test.ana, test.stranger, got)
			}
		}
	}
}

// TestSegmentOrder shows that a customer's segments come highest priority first, without
// inactive ones.
func TestSegmentOrder(t *testing.T) {
	t.Parallel()
	const all = `"rule":{"field":"email","op":"=","value":true}}`
	s := newShop(t, setup{also: `"segments":[
		{"key":"low","name":"Low","priority":-1,"isActive":true,` + all + `,
		{"key":"b","name":"B","priority":5,"isActive":true,` + all + `,
		{"key":"off","name":"Off","priority":99,"isActive":false,` + all + `,
		{"key":"a","name":"A","priority":5,"isActive":true,` + all + `,
		{"key":"high","name":"High","priority":10,"isActive":true,` + all + `,
		{"key":"other","name":"Other","priority":20,"isActive":true,"rule":{"field":"email","op":"=","value":false}}]`})
	ana := s.customer("ana")
	keys := ask(s, func(t *txn) ([]string, error) {
		_, a, err := accountOf(t, ana)
		if err != nil {
			return nil, err
		}
		in, err := t.rules.segmentsOf(a)
		return keysOf(in), err
	})
	if !slices.Equal(keys, []string{"high", "a", "b", "low"}) {
		t.Errorf("got %s, want high a b low", strings.Join(keys, " "))
	}
}

// TestSegmentFaults: fields, operators and values that a rule may not have.
func TestSegmentFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, want string }{
		{`{"field":"age","op":"=","value":3}`, "rule.field: debe ser balance, birthMonth, createdAt, email, expiringWithin, lastTransactionAt, lifetimePoints, marketing, phone, tier, totalSpent, transactionsCount, attributes.NOMBRE o points:PROGRAMA"},
		{`{"field":"attributes.","op":"=","value":3}`, "rule.field: después de attributes. va un nombre de 1 a 40 caracteres, sin espacios al principio ni al final"},
		{`{"field":"attributes. a","op":"=","value":3}`, "rule.field: después de attributes. va un nombre de 1 a 40 caracteres, sin espacios al principio ni al final"},
		{`{"field":"attributes.a","op":"<","value":"b"}`, "rule.op: debe ser = o !="},
		{`{"field":"attributes.a","op":">","value":true}`, "rule.op: debe ser = o !="},
		{`{"field":"attributes.a","op":"=","value":null}`, "rule.value: debe ser un texto, un número, true o false"},
		{`{"field":"attributes.a","op":"=","value":["b"]}`, "rule.value: debe ser un texto, un número, true o false"},
		{`{"field":"attributes.a","op":"=","value":1.00001}`, "rule.value: debe tener 4 decimales como máximo"},
		{`{"field":"birthMonth","op":"=","value":13}`, "rule.value: debe ser un mes: un entero de 1 a 12"},
		{`{"field":"birthMonth","op":"=","value":0}`, "rule.value: debe ser un mes: un entero de 1 a 12"},
		{`{"field":"birthMonth","op":"=","value":1.5}`, "rule.value: debe ser un mes: un entero de 1 a 12"},
		{`{"field":"birthMonth","op":"=","value":"marzo"}`, "rule.value: debe ser un número"},
		{`{"field":"expiringWithin","op":"=","value":true}`, "rule.value: debe ser un número"},
		{`{"field":"points:club","op":"~","value":1}`, "rule.op: debe ser =, !=, <, <=, > o >="},
	} {
		var rule segmentRule
		if err := json.Unmarshal([]byte(test.rule), &rule); err != nil {
			t.Fatal(err)
		}
		ck := new(checker)
		ck.segmentRule("rule", &rule, 0)
		if got := strings.Join(toldProblems(ck.problems), "; "); got != test.want {
			t.Errorf("%s: %q, want %q", test.rule, got, test.want)
		}
	}
}

// TestSegmentOfOtherProgram: a rule of a sale may be for those who have points in another program,
// as they were before the sale; a program that there is not is a fault.
func TestSegmentOfOtherProgram(t *testing.T) {
	t.Parallel()
	with := setup{
		program: `"default":true,"rules":[{"key":"extra","name":"Extra","segments":["fieles"],"points":5}]},{"key":"sellos","name":"Sellos","join":"All","rules":[{"key":"uno","name":"Uno","points":1}]`,
		also:    `"segments":[{"key":"fieles","name":"Fieles","isActive":true,"rule":{"field":"points:sellos","op":">=","value":1}}]`,
	}
	s := newShop(t, with)
	ana := s.customer("ana")
	s.buy(ana, "10")
	s.wantStanding(ana, "0 0 0", "she had no points in the other program")
	s.buy(ana, "10")
	s.wantStanding(ana, "5 0 5", "she had one")
	wrong := strings.Replace(string(s.exportedDocument()), "points:sellos", "points:nada", 1)
	_, err := s.admin().apply(t.Context(), applyRequest{Document: []byte(wrong)})
	if err == nil || !strings.Contains(err.Error(), `segments[0].rule.field: no hay ningún programa "nada"`) {
		t.Error(err)
	}
}

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
