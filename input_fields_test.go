package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// describe returns an error as text for comparison: "code field", and for
// invalid_field also the message.
func describe(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var e *apiError
	if !errors.As(err, &e) {
		t.Fatalf("error %T is not an apiError: %v", err, err)
	}
	if e.code == codeInvalidField {
		return "invalid_field " + e.field + ": " + e.message
	}
	return e.code.name + " " + e.field
}

// How the cases read a field.

func textOf(name string, max int) func(in fieldReader) any {
	return func(in fieldReader) any { v, ok := in.text(name, max); return fmt.Sprintf("%q %v", v, ok) }
}

func numberOf(in fieldReader) any { v, ok := in.number("amount"); return fmt.Sprint(v, ok) }

func idOf(in fieldReader) any { v, ok := in.id("customerId"); return fmt.Sprintf("%v %v", v, ok) }

func commentOf(in fieldReader) any {
	v, ok := in.textOr("comment", 500, codeCommentTooLong)
	return fmt.Sprint(utf8.RuneCountInString(v), ok)
}

func itemsOf(in fieldReader) any {
	list := in.list("items", 3)
	sum := decimal(0)
	for _, item := range list {
		price, _ := item.number("price")
		sum, _ = sum.add(price)
	}
	return fmt.Sprint(len(list), list != nil, sum)
}

// fieldCases are bodies, each with how a field is read, its value and its fault.
var fieldCases = []struct {
	reason string
	body   string
	read   func(fieldReader) any
	want   string
	fault  string
}{
	{"text", `{"name":"Ana"}`, textOf("name", 100), `"Ana" true`, ""},
	{"absent text", `{}`, textOf("name", 100), `"" false`, ""},
	{"null text", `{"name":null}`, textOf("name", 100), `"" false`, ""},
	{"names are case-sensitive", `{"Name":"Ana"}`, textOf("name", 100), `"" false`, ""},
	{"blank text", `{"name":" \t\u00a0\u3000"}`, textOf("name", 100), `"" false`, ""},
	{"trimmed", `{"name":"\t\n Ana María\u2003"}`, textOf("name", 100), `"Ana María" true`, ""},
	{"a control character at the end", `{"name":" Ana\u000b "}`, textOf("name", 100), `"" false`, "invalid_field name: name contiene caracteres no permitidos"},
	{"unescaped", `{"name":"\u0041\"\ud83d\ude00\/é"}`, textOf("name", 100), `"A\"😀/é" true`, ""},
	{"the text null", `{"name":"null"}`, textOf("name", 100), `"null" true`, ""},
	{"newline and tab inside", `{"name":"a\n\tb"}`, textOf("name", 100), `"a\n\tb" true`, ""},
	{"line separators are no controls", `{"name":"a\u2028\u2029b"}`, textOf("name", 100), `"a\u2028\u2029b" true`, ""},
	{"code points count, not bytes", `{"name":"ñññ"}`, textOf("name", 3), `"ñññ" true`, ""},
	{"white space at the ends does not count", `{"name":"  abc  "}`, textOf("name", 3), `"abc" true`, ""},
	{"one code point too many", `{"firstName":"ñññ "}`, textOf("firstName", 2), `"" false`,
		"invalid_field firstName: firstName no puede superar los 2 caracteres"},
	{"null character", `{"name":"a\u0000"}`, textOf("name", 100), `"" false`,
		"invalid_field name: name contiene caracteres no permitidos"},
	{"carriage return inside", `{"name":"a\r\nb"}`, textOf("name", 100), `"" false`,
		"invalid_field name: name contiene caracteres no permitidos"},
	{"DEL", "{\"name\":\"a\x7fb\"}", textOf("name", 100), `"" false`,
		"invalid_field name: name contiene caracteres no permitidos"},
	{"C1 control", `{"name":"a\u009bb"}`, textOf("name", 100), `"" false`,
		"invalid_field name: name contiene caracteres no permitidos"},
	{"noncharacter", `{"name":"a\uffffb"}`, textOf("name", 100), `"" false`,
		"invalid_field name: name contiene caracteres no permitidos"},
	{"number for text", `{"name":5}`, textOf("name", 100), `"" false`, "invalid_field name: name debe ser un texto"},
	{"false for text", `{"name":false}`, textOf("name", 100), `"" false`, "invalid_field name: name debe ser un texto"},
	{"list for text", `{"name":["a"]}`, textOf("name", 100), `"" false`, "invalid_field name: name debe ser un texto"},

	{"comment as long as allowed", `{"comment":"` + strings.Repeat("é", 500) + `"}`, commentOf, "500 true", ""},
	{"comment too long has its own code", `{"comment":"` + strings.Repeat("é", 501) + `"}`, commentOf, "0 false",
		"comment_too_long comment"},
	{"comment of a wrong type", `{"comment":{}}`, commentOf, "0 false", "invalid_field comment: comment debe ser un texto"},

	{"number", `{"amount":12.50}`, numberOf, "12.5 true", ""},
	{"exponent", `{"amount":1e2}`, numberOf, "100 true", ""},
	{"zero is present", `{"amount":0}`, numberOf, "0 true", ""},
	{"null number", `{"amount":null}`, numberOf, "0 false", ""},
	{"number in a string", `{"amount":"5"}`, numberOf, "0 false", "invalid_field amount: amount debe ser un número"},
	{"empty string for a number", `{"amount":""}`, numberOf, "0 false", "invalid_field amount: amount debe ser un número"},
	{"list for a number", `{"amount":[1]}`, numberOf, "0 false", "invalid_field amount: amount debe ser un número"},
	{"too precise", `{"amount":1.00001}`, numberOf, "0 false", "too_precise amount"},
	{"too large", `{"amount":-1e300}`, numberOf, "0 false", "too_large amount"},

	{"id", `{"customerId":" 01890a5d-ac96-774b-bcce-b302099a8057"}`, idOf, "01890a5d-ac96-774b-bcce-b302099a8057 true", ""},
	{"a malformed id is present and nothing has it", `{"customerId":"x\u0000"}`, idOf, id{}.String() + " true", ""},
	{"a long id too", `{"customerId":"` + strings.Repeat("x", 5000) + `"}`, idOf, id{}.String() + " true", ""},
	{"blank id", `{"customerId":" "}`, idOf, id{}.String() + " false", ""},
	{"number for an id", `{"customerId":1}`, idOf, id{}.String() + " false",
		"invalid_field customerId: customerId debe ser un texto"},

	{"list", `{"items":[{"price":1},{"price":2.5}]}`, itemsOf, "2 true 3.5", ""},
	{"empty list", `{"items":[]}`, itemsOf, "0 true 0", ""},
	{"absent list", `{}`, itemsOf, "0 false 0", ""},
	{"null list", `{"items":null}`, itemsOf, "0 false 0", ""},
	{"list as long as allowed", `{"items":[{},{},{}]}`, itemsOf, "3 true 0", ""},
	{"list too long", `{"items":[{},{},{},1]}`, itemsOf, "0 false 0",
		"invalid_field items: items no puede superar los 3 elementos"},
	{"object for a list", `{"items":{}}`, itemsOf, "0 false 0", "invalid_field items: items debe ser una lista"},
	{"string for a list", `{"items":"[]"}`, itemsOf, "0 false 0", "invalid_field items: items debe ser una lista"},
	{"number in a list of objects", `{"items":[{"price":1},7]}`, itemsOf, "0 false 0",
		"invalid_field items[1]: items[1] debe ser un objeto"},
	{"null in a list of objects", `{"items":[null]}`, itemsOf, "0 false 0",
		"invalid_field items[0]: items[0] debe ser un objeto"},
	{"fault in an element", `{"items":[{"price":1},{"price":"2"}]}`, itemsOf, "2 true 1",
		"invalid_field items[1].price: items[1].price debe ser un número"},
	{"coded fault in an element", `{"items":[{},{},{"price":0.12345}]}`, itemsOf, "3 true 0", "too_precise items[2].price"},
}

func TestFields(t *testing.T) {
	t.Parallel()
	for _, c := range fieldCases {
		o, bad := parseObject([]byte(c.body))
		if bad != nil {
			t.Fatalf("%s: bad row %q", c.reason, c.body)
		}
		in := newFields(o)
		got := c.read(in)
		if fault := describe(t, in.err); got != c.want || fault != c.fault {
			t.Errorf("%s: got %v, fault %q; want %v, fault %q", c.reason, got, fault, c.want, c.fault)
		}
	}
}

// TestFieldsFirstFault checks that the fault reported is the first in the order of
// reading, not of the body. Faults that a handler finds count in that order too.
func TestFieldsFirstFault(t *testing.T) {
	t.Parallel()
	o, bad := parseObject([]byte(`{"items":[{"list":[{"deep":true}]}],"name":5,"amount":0,"comment":7}`))
	if bad != nil {
		t.Fatal("bad body")
	}
	in := newFields(o)
	in.fail(nil)
	if amount, _ := in.number("amount"); amount <= 0 {
		in.fail(newError(codeAmountInvalid).on("amount"))
	}
	in.text("comment", 9)
	if got := describe(t, in.err); got != "amount_invalid amount" {
		t.Errorf("the handler's fault came first, got %q", got)
	}

	in = newFields(o)
	in.list("items", 9)[0].list("list", 9)[0].text("deep", 9)
	in.text("name", 9)
	if got, want := describe(t, in.err), "invalid_field items[0].list[0].deep: items[0].list[0].deep debe ser un texto"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// How the cases read a parameter.

func searchIn(q query) any { v, ok := q.text("search", 5); return fmt.Sprintf("%q %v", v, ok) }
func phoneIn(q query) any  { v, ok := q.phone("phone"); return fmt.Sprintf("%q %v", v, ok) }
func idIn(q query) any     { v, ok := q.id("customerId"); return fmt.Sprintf("%v %v", v, ok) }

const invalidQuery = "invalid_field : La consulta no es válida"

// queryCases are queries, each with how a parameter is read, its value and its fault.
var queryCases = []struct {
	reason string
	raw    string
	read   func(query) any
	want   string
	fault  string
}{
	{"empty query", "", searchIn, `"" false`, ""},
	{"text", "page=1&search=ana", searchIn, `"ana" true`, ""},
	{"empty parts are nothing", "&&search=ana&", searchIn, `"ana" true`, ""},
	{"only the first = divides", "search=a=b", searchIn, `"a=b" true`, ""},
	{"escapes and plus", "s%65arch=+%C3%B1+%26+", searchIn, `"ñ &" true`, ""},
	{"no value", "search", searchIn, `"" false`, ""},
	{"empty value", "search=", searchIn, `"" false`, ""},
	{"blank value", "search=+%20", searchIn, `"" false`, ""},
	{"names are case-sensitive", "Search=ana", searchIn, `"" false`, ""},
	{"as long as allowed", "search=%C3%B1%C3%B1%C3%B1%C3%B1%C3%B1", searchIn, `"ñññññ" true`, ""},
	{"too long", "search=abcdef", searchIn, `"" false`,
		"invalid_field search: search no puede superar los 5 caracteres"},
	{"control character", "search=a%00", searchIn, `"" false`,
		"invalid_field search: search contiene caracteres no permitidos"},
	{"escaped semicolon", "search=a%3Bb", searchIn, `"a;b" true`, ""},

	{"semicolon", "search=a;page=2", searchIn, "", invalidQuery},
	{"bad escape in a value", "search=%zz", searchIn, "", invalidQuery},
	{"escape cut short", "search=%4", searchIn, "", invalidQuery},
	{"bad escape in a name", "%=a", searchIn, "", invalidQuery},
	{"bad escape in a parameter that nobody reads", "search=a&x=%", searchIn, "", invalidQuery},
	{"not UTF-8", "search=%ff", searchIn, "", invalidQuery},
	{"not UTF-8, without an escape", "search=\xff", searchIn, "", invalidQuery},
	{"not UTF-8 in a name", "%ff=a", searchIn, "", invalidQuery},
	{"duplicate", "search=a&search=a", searchIn, "", "invalid_field search: search no puede repetirse"},
	{"duplicate once unescaped", "search=a&s%65arch=b", searchIn, "", "invalid_field search: search no puede repetirse"},
	{"duplicate without a value", "search&search", searchIn, "", "invalid_field search: search no puede repetirse"},

	{"phone with an escaped plus", "phone=%2B525512345678", phoneIn, `"+525512345678" true`, ""},
	{"phone with an unescaped plus", "phone=+525512345678", phoneIn, `"+525512345678" true`, ""},
	{"phone with several spaces", "phone=++%2052+55", phoneIn, `"+52 55" true`, ""},
	{"phone with a space and a plus", "phone=%20%2B52", phoneIn, `"+52" true`, ""},
	{"phone without plus", "phone=5512345678+", phoneIn, `"5512345678" true`, ""},
	{"blank phone", "phone=+", phoneIn, `"" false`, ""},
	{"absent phone", "", phoneIn, `"" false`, ""},
	{"control character in a phone", "phone=55%0712", phoneIn, `"" false`,
		"invalid_field phone: phone contiene caracteres no permitidos"},

	{"id", "customerId=01890a5d-ac96-774b-bcce-b302099a8057", idIn, "01890a5d-ac96-774b-bcce-b302099a8057 true", ""},
	{"a malformed id is present and nothing has it", "customerId=7%00", idIn, id{}.String() + " true", ""},
	{"absent id", "customerId=", idIn, id{}.String() + " false", ""},
}

func TestQuery(t *testing.T) {
	t.Parallel()
	for _, c := range queryCases {
		q, err := parseQuery(c.raw)
		var got any = ""
		if err == nil {
			got = c.read(q)
			err = q.err
		}
		if fault := describe(t, err); got != c.want || fault != c.fault {
			t.Errorf("%s: %q: got %v, fault %q; want %v, fault %q", c.reason, c.raw, got, fault, c.want, c.fault)
		}
	}

	q, err := parseQuery("a=%01&b=%02")
	if err != nil {
		t.Fatal(err)
	}
	q.text("b", 9)
	q.text("a", 9)
	if got := describe(t, q.err); !strings.HasPrefix(got, "invalid_field b:") {
		t.Errorf("the first fault read is b, got %q", got)
	}
}

// FuzzQuery checks that parseQuery reads what net/url reads, but refuses names
// given twice and bytes that are not UTF-8. It must accept what net/url writes.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"", "a=1&b=2", "a=1&a=2", "a;b", "a=%zz", "a=%ff", "phone=+52", "a=%00", "&&", "=", "a=b=c", "%61=1&a=2", "a+b=c+d",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		values, err := url.ParseQuery(raw)
		strict := err == nil
		for name, all := range values {
			strict = strict && len(all) == 1 && utf8.ValidString(name) && utf8.ValidString(all[0])
		}
		q, err := parseQuery(raw)
		if (err == nil) != strict {
			t.Fatalf("parseQuery(%q): %v, want accepted %v", raw, err, strict)
		}
		if err != nil {
			describe(t, err)
			return
		}
		if len(q.object) != len(values) {
			t.Fatalf("parseQuery(%q) has %d parameters, want %d", raw, len(q.object), len(values))
		}
		for name := range values {
			if got, ok := q.object.get(name); !ok || got != values.Get(name) {
				t.Fatalf("parseQuery(%q): %q is %q, want %q", raw, name, got, values.Get(name))
			}
			if text, ok := q.text(name, 3); ok != (text != "") || strings.TrimSpace(text) != text {
				t.Fatalf("parseQuery(%q): %q cleaned to %q", raw, name, text)
			}
			q.phone(name)
			q.id(name)
		}
		if again, err := parseQuery(values.Encode()); err != nil || len(again.object) != len(q.object) {
			t.Fatalf("parseQuery(%q): %v", values.Encode(), err)
		}
	})
}
