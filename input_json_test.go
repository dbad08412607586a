package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/quick"
	"time"
	"unicode/utf8"
)

// deepObject returns an object n levels deep. Each inner level begins with open and
// ends with end.
func deepObject(n int, open, end string) string {
	return `{"a":` + strings.Repeat(open, n-1) + "1" + strings.Repeat(end, n-1) + "}"
}

// manyMembers returns an object with n members and one more, whose name is last.
func manyMembers(n int, last string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":0,`, i)
	}
	return "{" + b.String() + `"` + last + `":0}`
}

// objectCases are bodies, and whether parseObject accepts them.
var objectCases = []struct {
	reason string
	body   string
	ok     bool
}{
	{"empty object", `{}`, true},
	{"white space everywhere", " \t\r\n{ \"a\" :\n1 ,\t\"b\" : [ 1 , 2 ] , \"c\" : { } }\r\n", true},
	{"all kinds of value", `{"a":null,"b":true,"c":false,"d":-1.5e3,"e":"x","f":[],"g":{}}`, true},
	{"names that differ in letter case", `{"amount":1,"Amount":2}`, true},
	{"an empty name", `{"":1}`, true},
	{"same name in different objects", `{"a":{"a":[{"a":1},{"a":2}]},"b":{"a":1}}`, true},
	{"all short escapes", `{"a":"\"\\\/\b\f\n\r\t"}`, true},
	{"a surrogate pair", `{"a":"\ud83D\uDE00"}`, true},
	{"an escaped U+FFFD", `{"a":"\ufffd"}`, true},
	{"an escaped null character is valid JSON", `{"a":"\u0000"}`, true},
	{"DEL may stand in JSON as it is", "{\"a\":\"\x7f\"}", true},
	{"UTF-8 of every length", `{"a":"é€😀"}`, true},
	{"arrays as deep as allowed", deepObject(maxDepth, "[", "]"), true},
	{"objects as deep as allowed", deepObject(maxDepth, `{"a":`, "}"), true},
	{"as many members as allowed", manyMembers(maxMembers-1, "last"), true},
	{"as many elements as allowed", `{"a":[1` + strings.Repeat(",1", maxMembers-2) + "]}", true},
	{"more members than are compared one by one", manyMembers(100, "last"), true},

	{"nothing", ``, false},
	{"only white space", " \n", false},
	{"null", `null`, false},
	{"an array", `[{"a":1}]`, false},
	{"a string", `"{}"`, false},
	{"a number", `1`, false},
	{"byte order mark", "\ufeff{}", false},
	{"UTF-16", "{\x00}\x00", false},
	{"trailing object", `{}{}`, false},
	{"trailing comma", `{},`, false},
	{"trailing null byte", "{}\x00", false},
	{"white space of Unicode", "{}\u00a0", false},
	{"vertical tab", "{\v}", false},
	{"comment", `{/* */}`, false},

	{"unclosed", `{`, false},
	{"name alone", `{"a"`, false},
	{"name and colon", `{"a":`, false},
	{"no colon", `{"a" 1}`, false},
	{"no value", `{"a":}`, false},
	{"unclosed after a value", `{"a":1`, false},
	{"unclosed after a comma", `{"a":1,`, false},
	{"comma before the end", `{"a":1,}`, false},
	{"comma alone", `{,}`, false},
	{"no comma", `{"a":1 "b":2}`, false},
	{"wrong end", `{"a":1]`, false},
	{"name without quotes", `{a:1}`, false},
	{"single quotes", `{'a':1}`, false},
	{"name that is a number", `{1:1}`, false},
	{"comma before the end of an array", `{"a":[1,]}`, false},
	{"wrong end of an array", `{"a":[1}}`, false},
	{"colon in an array", `{"a":["b":1]}`, false},
	{"unclosed array", `{"a":[1`, false},
	{"literal in capitals", `{"a":True}`, false},
	{"literal cut short", `{"a":tru}`, false},
	{"literal with more", `{"a":nullx}`, false},
	{"leading zero", `{"a":01}`, false},
	{"plus sign", `{"a":+1}`, false},
	{"NaN", `{"a":NaN}`, false},

	{"unclosed string", `{"a":"x}`, false},
	{"newline in a string", "{\"a\":\"x\ny\"}", false},
	{"null character in a string", "{\"a\":\"x\x00y\"}", false},
	{"unknown escape", `{"a":"\x41"}`, false},
	{"escape cut short", `{"a":"\u12"}`, false},
	{"escape with a sign", `{"a":"\u+123"}`, false},
	{"escape at the end", `{"a":"\`, false},
	{"high surrogate alone", `{"a":"\ud800"}`, false},
	{"high surrogate before another character", `{"a":"\ud800x"}`, false},
	{"high surrogate before another escape", `{"a":"\ud800\u0041"}`, false},
	{"two high surrogates", `{"a":"\ud800\ud800"}`, false},
	{"low surrogate alone", `{"a":"\udc00"}`, false},
	{"surrogates in the wrong order", `{"a":"\udc00\ud800"}`, false},
	{"surrogate in a name", `{"\ud800":1}`, false},
	{"surrogate in a member that nobody reads", `{"a":[{"b":"\ud800"}]}`, false},

	{"a byte that is not UTF-8", "{\"a\":\"\xff\"}", false},
	{"overlong UTF-8", "{\"a\":\"\xc0\xaf\"}", false},
	{"a surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", false},
	{"UTF-8 cut short", "{\"a\":\"\xe2\x82\"}", false},

	{"duplicate", `{"a":1,"a":1}`, false},
	{"duplicate, not neighbours", `{"a":1,"b":2,"a":null}`, false},
	{"duplicate once unescaped", `{"amount":1,"\u0061mount":2}`, false},
	{"duplicate of the empty name", `{"":1,"":2}`, false},
	{"duplicate in a nested object", `{"a":{"b":1,"b":2}}`, false},
	{"duplicate in an element", `{"a":[{},{"b":1,"b":2}]}`, false},
	{"duplicate after a nested object", `{"a":1,"b":{"a":2},"a":3}`, false},
	{"duplicate among many", manyMembers(100, "k7"), false},

	{"too many members", manyMembers(maxMembers, "last"), false},
	{"too many elements", `{"a":[1` + strings.Repeat(",1", maxMembers-1) + "]}", false},
	{"too many in several", `{"a":[1` + strings.Repeat(",1", maxMembers/2) + `],"b":[1` + strings.Repeat(",1", maxMembers/2) + "]}", false},
	{"arrays too deep", deepObject(maxDepth+1, "[", "]"), false},
	{"objects too deep", deepObject(maxDepth+1, `{"a":`, "}"), false},
	{"very deep", strings.Repeat(`{"a":`, 1<<17), false},
}

func TestParseObject(t *testing.T) {
	t.Parallel()
	for _, c := range objectCases {
		o, fault := parseObject([]byte(c.body))
		if ok := fault == nil; ok != c.ok {
			t.Errorf("%s: parseObject(%.200q) = %v, want %v", c.reason, c.body, ok, c.ok)
		}
		if fault != nil && o != nil {
			t.Errorf("%s: parseObject(%.200q) refused and returned members", c.reason, c.body)
		}
	}
}

// TestJSONFault checks the reason of a fault, and the line and column where it begins.
func TestJSONFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		body   string
		want   jsonFault
	}{
		{"nothing", "", jsonFault{reasonSyntax, 1, 1}},
		{"white space alone", " \n ", jsonFault{reasonSyntax, 2, 2}},
		{"a form", "amount=10", jsonFault{reasonSyntax, 1, 1}},
		{"cut off", "{\n  \"a\": 1", jsonFault{reasonSyntax, 2, 9}},
		{"cut off in a string", `{"a":"xyz`, jsonFault{reasonSyntax, 1, 10}},
		{"a comma too many", "{\n  \"a\": 1,\n}", jsonFault{reasonSyntax, 3, 1}},
		{"a comma missing", "{\n  \"a\": 1\n  \"b\": 2\n}", jsonFault{reasonSyntax, 3, 3}},
		{"a name without quotes", `{"a":1, b:2}`, jsonFault{reasonSyntax, 1, 9}},
		{"a value without quotes", `{"a": diez}`, jsonFault{reasonSyntax, 1, 7}},
		{"a number's form", `{"a": 01}`, jsonFault{reasonSyntax, 1, 7}},
		{"a comma for a decimal point", `{"a": 1,5}`, jsonFault{reasonSyntax, 1, 9}},
		{"an escape", `{"a": "ab\x41"}`, jsonFault{reasonSyntax, 1, 10}},
		{"a line end in a string", "{\"a\": \"ab\ncd\"}", jsonFault{reasonSyntax, 1, 10}},
		{"after characters of several bytes", `{"año": "ñandú 😀",}`, jsonFault{reasonSyntax, 1, 19}},
		{"after lines ended as on Windows", "{\r\n\"a\": ,\r\n}", jsonFault{reasonSyntax, 2, 6}},
		{"deep within", `{"a":[{"b":{"c":[1,2,}]}}]}`, jsonFault{reasonSyntax, 1, 22}},
		{"in an array that would be no object", `[1,,2]`, jsonFault{reasonSyntax, 1, 4}},
		{"too deep", `{"a":` + strings.Repeat("[", maxDepth), jsonFault{reasonSyntax, 1, 5 + maxDepth}},
		{"null", "null", jsonFault{reasonNotObject, 1, 1}},
		{"an array", "\n [1]", jsonFault{reasonNotObject, 2, 2}},
		{"a string", `"{}"`, jsonFault{reasonNotObject, 1, 1}},
		{"a name twice", `{"a":1, "b":2, "a":3}`, jsonFault{reasonDuplicate, 1, 16}},
		{"the third of many", `{"a":[1,{"x":"}"}] , "b" : "\"," , "c":{} , "b":4, "d":5}`, jsonFault{reasonDuplicate, 1, 45}},
		{"a name twice, once escaped", "{\"amount\":1,\n\"\\u0061mount\":2}", jsonFault{reasonDuplicate, 2, 1}},
		{"a name twice within", "{\"a\":[{},\n{\"b\":1,\"b\":2}]}", jsonFault{reasonDuplicate, 2, 8}},
		{"another object", "{}\n{}", jsonFault{reasonTrailing, 2, 1}},
		{"a comment", `{"a":1} // mine`, jsonFault{reasonTrailing, 1, 9}},
		{"Latin-1", "{\"ñ\": \"caf\xe9\"}", jsonFault{reasonNotUTF8, 1, 11}},
		{"bad UTF-8 before bad syntax", "{\"a\": \"\xff\", }", jsonFault{reasonNotUTF8, 1, 8}},
		{"bad UTF-8 after bad syntax", "{,\xff", jsonFault{reasonNotUTF8, 1, 3}},
		{"bad UTF-8 after a U+FFFD", "{\"\ufffd\": \"\xff\"}", jsonFault{reasonNotUTF8, 1, 8}},
	} {
		o, fault := parseObject([]byte(c.body))
		if fault == nil || *fault != c.want || o != nil {
			t.Errorf("%s: %q: %+v, want %+v", c.reason, c.body, fault, c.want)
		}
	}
}

func TestObjectMembers(t *testing.T) {
	t.Parallel()
	o, fault := parseObject([]byte(` { "\u0061" : [ 1, {"x": 2} ] , "b":{"a":"c"},"d" : -1e2 ,"e":"\n" } `))
	want := object{{"a", `[ 1, {"x": 2} ]`}, {"b", `{"a":"c"}`}, {"d", "-1e2"}, {"e", `"\n"`}}
	if fault != nil || !slices.Equal(o, want) {
		t.Errorf("got %q, %v; want %q", o, fault, want)
	}
	if v, ok := o.get("d"); v != "-1e2" || !ok {
		t.Errorf("get(d) = %q, %v", v, ok)
	}
	if v, ok := o.get("D"); v != "" || ok {
		t.Errorf("get(D) = %q, %v", v, ok)
	}
}

// TestParseObjectHostile checks that bodies of the largest size that are made to
// be slow are read within 2 seconds.
func TestParseObjectHostile(t *testing.T) {
	skipRace(t)
	const size = 1 << 20
	filled := func(start, end string, part func(i int) string) []byte {
		b := append(make([]byte, 0, size+64), start...)
		for i := 0; len(b) < size; i++ {
			b = append(b, part(i)...)
		}
		return append(b, end...)
	}
	longNames := func(n int) []byte {
		b := []byte("{")
		for i := range n {
			b = fmt.Appendf(b, `"%0*d":0,`, size/n-5, i)
		}
		return append(b, `"z":0}`...)
	}
	for _, c := range []struct {
		reason string
		body   []byte
		ok     bool
	}{
		{"many names", filled("{", `"z":0}`, func(i int) string { return `"` + strconv.Itoa(i) + `":0,` }), false},
		{"many escaped names", filled("{", `"z":0}`, func(i int) string { return `"\u0041` + strconv.Itoa(i) + `":0,` }), false},
		{"many elements", filled(`{"a":[`, `0]}`, func(int) string { return `0,` }), false},
		{"many empty objects", filled(`{"a":[`, `0]}`, func(int) string { return `{},` }), false},
		{"many small objects", filled(`{"a":[`, `0]}`, func(int) string { return `{"a":0,"b":0,"c":0,"d":0},` }), false},
		{"names as many and as long as they may be", longNames(maxMembers - 1), true},
		{"one long string", filled(`{"a":"`, `"}`, func(int) string { return "x" }), true},
		{"one long escaped string", filled(`{"a":"`, `"}`, func(int) string { return `\n` }), true},
		{"long names of one length", filled("{", `"z":0}`, func(i int) string { return fmt.Sprintf(`"%065536d":0,`, i) }), true},
		{"white space", filled("{", "}", func(int) string { return " " }), true},
		{"one long number", filled(`{"a":1`, "}", func(int) string { return "0" }), true},
		{"unclosed arrays", filled(`{"a":`, "", func(int) string { return "[" }), false},
		{"unclosed strings", filled(`{`, "", func(int) string { return `"` }), false},
		{"backslashes", filled(`{"a":"`, "", func(int) string { return `\\` }), false},
	} {
		start := time.Now()
		o, fault := parseObject(c.body)
		if ok := fault == nil; ok != c.ok {
			t.Errorf("%s: %v, want %v", c.reason, ok, c.ok)
		}
		in := newFields(o)
		in.list("a", 500)
		in.text("a", 500)
		in.number("a")
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s: took %v", c.reason, took)
		}
	}
}

// FuzzObject checks that parseObject accepts exactly what isStrictObject accepts,
// and reads the same values as encoding/json.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` {"a":1} `, `{"a":{"b":[1,2,{"c":null}]},"d":true,"e":false,"f":"\u00e9\n"}`, `{"a":1,"a":2}`,
		`{"a":1,"\u0061":2}`, `{"a":"\ud83d\ude00"}`, `{"a":"\ud800"}`, `{"a":"\\ud800"}`, `{"a":[}`, `{"a":1,}`,
		`{}x`, `null`, `[]`, "{\"a\":\"\xff\"}", "\ufeff{}", `{"a":-0.5e+10}`, `{"a":01}`, `{"items":[{"price":1}]}`,
		`{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`,
		`{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		o, fault := parseObject(body)
		if !bytes.Equal(body, before) {
			t.Fatal("parseObject changed its argument")
		}
		if ok, want := fault == nil, isStrictObject(body); ok != want {
			t.Fatalf("parseObject(%q) = %v, want %v", body, ok, want)
		}
		if fault != nil {
			lines := strings.Split(string(body), "\n")
			if fault.line < 1 || fault.line > len(lines) || fault.column < 1 || fault.column > 1+utf8.RuneCountInString(lines[fault.line-1]) {
				t.Fatalf("%q: the fault is at no place of it: %+v", body, fault)
			}
			if (fault.reason == reasonNotUTF8) == utf8.Valid(body) {
				t.Fatalf("%q: %+v", body, fault)
			}
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(body, &members); err != nil {
			t.Fatal(err)
		}
		if len(members) != len(o) {
			t.Fatalf("%q has %d members, want %d", body, len(o), len(members))
		}
		for name, value := range members {
			literal, ok := o.get(name)
			if !ok || literal != string(value) {
				t.Fatalf("%q: member %q is %q, want %q", body, name, literal, value)
			}
			readAll(t, newFields(o), name, value)
		}
	})
}

// readAll reads a member as each type, and compares its text with encoding/json's.
func readAll(t *testing.T, in fieldReader, name string, value json.RawMessage) {
	var want string
	isText := json.Unmarshal(value, &want) == nil && string(value) != "null"
	if got, ok := in.rawText(name); ok != isText || got != want {
		t.Fatalf("%q reads as text %q, %v; want %q, %v", value, got, ok, want, isText)
	}
	if text, ok := in.text(name, 5); ok != (text != "") || utf8.RuneCountInString(text) > 5 || strings.TrimSpace(text) != text {
		t.Fatalf("%q cleaned to %q, %v", value, text, ok)
	}
	if _, ok := in.number(name); ok && !strings.ContainsRune("-0123456789", rune(value[0])) {
		t.Fatalf("%q reads as a number", value)
	}
	for _, element := range in.list(name, 3) {
		element.text("a", 1)
	}
	in.id(name)
}

var jsonEscape = regexp.MustCompile(`(?i)\\u(d[89ab]..)\\u(d[c-f]..)|\\u(d[89a-f]..)|\\.`)

// isStrictObject reports whether parseObject should accept a body. It relies on
// encoding/json.
func isStrictObject(body []byte) bool {
	if !json.Valid(body) || !utf8.Valid(body) || bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
		return false
	}
	// Only strings contain backslashes. The third group matches half of a surrogate
	// pair that stands alone.
	for _, m := range jsonEscape.FindAllSubmatch(body, -1) {
		if m[3] != nil {
			return false
		}
	}
	// One for each open object or array: the object's names, or nil for an array.
	var open []map[string]bool
	isName := false
	members := 0
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // not every number fits a float64
	for {
		token, err := d.Token()
		if err == io.EOF {
			return members <= maxMembers
		}
		if err != nil {
			panic(err) // the text is valid
		}
		switch token {
		case json.Delim('{'):
			members += min(len(open), 1)
			open = append(open, map[string]bool{})
			isName = true
		case json.Delim('['):
			members += min(len(open), 1)
			open = append(open, nil)
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			isName = true
		default:
			names := open[len(open)-1]
			if name, ok := token.(string); ok && isName && names != nil {
				if names[name] {
					return false
				}
				names[name] = true
				isName = false
				continue
			}
			members++
			isName = true
		}
		if len(open) > maxDepth {
			return false
		}
	}
}

// BenchmarkObject reads a typical body as a handler does. It reports the time as a
// multiple of encoding/json's on the same body, which makes none of the checks.
func BenchmarkObject(b *testing.B) {
	body := []byte(`{"amount": 150.5, "category": "Bonus", "comment": "Compra en tienda física", "expiresAt": "2027-01-31", "extra": true}`)
	read := func() error {
		o, fault := parseObject(body)
		in := newFields(o)
		in.number("amount")
		in.text("category", 100)
		in.textOr("comment", 500, codeCommentTooLong)
		in.id("loyaltyProgramId")
		in.text("expiresAt", 100)
		if fault != nil {
			return errors.New("refused")
		}
		return in.err
	}
	bound := func() error {
		var in struct {
			Amount                                         json.Number
			Category, Comment, LoyaltyProgramID, ExpiresAt string
		}
		return json.Unmarshal(body, &in)
	}
	const rounds = 20_000
	start := time.Now()
	for range rounds {
		if err := bound(); err != nil {
			b.Fatal(err)
		}
	}
	boundTime := time.Since(start) / rounds

	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := read(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(boundTime), "of-encoding/json")
}

// BenchmarkItems reads a sale of 500 items.
func BenchmarkItems(b *testing.B) {
	body := []byte(`{"items":[` + strings.Repeat(`{"sku":"GRANO-250","price":189.90,"quantity":2},`, 499) + `{}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		o, _ := parseObject(body)
		in := newFields(o)
		for _, item := range in.list("items", 500) {
			item.text("sku", 100)
			item.number("price")
			item.number("quantity")
		}
		if in.err != nil {
			b.Fatal(in.err)
		}
	}
}

// parseObject is parseObjectOf with the bound of most requests.
func parseObject(body []byte) (object, *jsonFault) { return parseObjectOf(body, maxMembers) }

// byReflection returns a value as encoding/json encodes it.
func byReflection(t *testing.T, v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestAppendJSON compares the handwritten encoders with encoding/json on random values.
func TestAppendJSON(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewSource(1))
	for _, empty := range []jsonAppender{balance{}, movementShape{}, saleShape{}, saleProgram{}, expiring{}, usedLot{}, item{}, ruleShare{}, saleRedemption{}, customerItem{}, appendedList[customerItem]{}} {
		check := func(v any) {
			t.Helper()
			got, err := encode(v)
			if want := byReflection(t, v); err != nil || string(got) != want {
				t.Fatalf("got %s, %v\nwant %s", got, err, want)
			}
		}
		check(empty)
		for range repeats(500, 200, 100) {
			v, ok := quick.Value(reflect.TypeOf(empty), rnd)
			if !ok {
				t.Fatalf("no value of %T", empty)
			}
			check(v.Interface())
		}
	}
}

// TestAppendJSONString quotes every character up to U+FFFF, alone and between
// others, and bytes that are not UTF-8.
func TestAppendJSONString(t *testing.T) {
	skipRace(t)
	t.Parallel()
	check := func(s string) {
		if got, want := string(appendJSONString([]byte("x"), s))+"\n", "x"+byReflection(t, s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
	for r := range rune(0x10000) {
		check(string(utf8.AppendRune(nil, r)))
		check("ñ" + string(utf8.AppendRune(nil, r)) + "z")
	}
	for _, s := range []string{"", "\xff", "a\xc3", "\xed\xa0\x80", "</script>&", "😀\u2028", "a\nb\"c\\d", "\x7f\u0080"} {
		check(s)
	}
}

// TestTextForms compares the texts of times and ids with those of the standard library.
func TestTextForms(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewSource(1))
	for i := range 20_000 {
		at := instant(rnd.Int63n(1<<49) - 1<<47) // from before year -2490 to after 15000
		if i%2 == 0 {
			at = instant(rnd.Int63n(4_102_444_800_000)) // from 1970 to 2100
		}
		if got, want := at.String(), time.UnixMilli(int64(at)).UTC().Format(layoutMillis); got != want {
			t.Fatalf("%d is written %s, want %s", at, got, want)
		}
		var u id
		rnd.Read(u[:])
		if got, want := u.String(), fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}
