package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"

	"sello/internal/nearest"
)

// inputNames are the names that openapi.json has for the input of an operation. Those of
// the body are by the lists they stand in: "" is the body itself, "items" an element of
// items, "transactions.items" an element of the items of one of transactions.
type inputNames struct {
	query []string
	body  map[string][]string
}

func (d *apiDoc) inputNames(op *docOperation) inputNames {
	in := inputNames{body: map[string][]string{}}
	for _, p := range op.Parameters {
		if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
			p = d.Components.Parameters[name]
		}
		if p.In == "query" {
			in.query = append(in.query, p.Name)
		}
	}
	if op.RequestBody != nil {
		d.bodyNames(op.RequestBody.Content["application/json"].Schema, "", in.body)
	}
	return in
}

func (d *apiDoc) bodyNames(s *docSchema, at string, names map[string][]string) {
	_, _, s = d.plain(s)
	names[at] = slices.Sorted(maps.Keys(s.Properties))
	for name, property := range s.Properties {
		switch kind, _, property := d.plain(property); {
		case kind == "array":
			d.bodyNames(property.Items, strings.TrimPrefix(at+"."+name, "."), names)
		case len(property.Properties) > 0:
			d.bodyNames(property, strings.TrimPrefix(at+"."+name, "."), names)
		}
	}
}

// inputsByRoute yields each route with the names of its input, and its path with ids.
func inputsByRoute(t *testing.T, a *api) iter.Seq2[route, inputNames] {
	d := readAPIDoc(t)
	return func(yield func(route, inputNames) bool) {
		for _, r := range a.routes() {
			method, path, _ := strings.Cut(r.pattern, " ")
			if !yield(r, d.inputNames(d.Paths[path][strings.ToLower(method)])) {
				return
			}
		}
	}
}

// newStrictRequest returns a strict request for a route, with no id in its path.
func newStrictRequest(rt route, key, query, body string) *http.Request {
	method, path, _ := strings.Cut(rt.pattern, " ")
	r := newRequest(method, strings.NewReplacer("{", "", "}", "").Replace(path)+"?"+query, key, body)
	r.Header.Set("Prefer", "handling=strict")
	return r
}

// bodyWith returns a body with members at one place, as inputNames has it.
func bodyWith(at, members string) string {
	body := "{" + members + "}"
	for lists := strings.FieldsFunc(at, func(r rune) bool { return r == '.' }); len(lists) > 0; lists = lists[:len(lists)-1] {
		last := lists[len(lists)-1]
		if last != "pay" { // an object; the others are lists
			body = "[" + body + "]"
		}
		body = fmt.Sprintf(`{%q:%s}`, last, body)
	}
	return body
}

// strictFaults returns the faults that a response tells, or those of a batch's first sale.
func strictFaults(t *testing.T, w *httptest.ResponseRecorder) []faultShape {
	t.Helper()
	var all struct {
		errorBody
		Results []struct{ Error errorBody }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
		t.Fatal(err, w.Body)
	}
	if len(all.Results) > 0 {
		all.errorBody = all.Results[0].Error
	}
	if len(all.Errors) > 0 {
		first, field := all.Errors[0], ""
		if first.Field != nil {
			field = *first.Field
		}
		if first.Code != all.Code || first.Message != all.Message || field != all.Field || w.Header().Get("Preference-Applied") != "handling=strict" {
			t.Fatalf("not the first of its faults: %v %s", w.Header(), w.Body)
		}
	}
	return all.Errors
}

// strictShop returns a shop, and a key without a limit that matters.
func strictShop(t *testing.T) *servedShop {
	s := newShop(t, setup{})
	_, key := s.newKey(keyRequest{RateLimit: 1e9})
	return &servedShop{s, newAPIOf(s.engine), key}
}

// misspellings yields what a name becomes by one edit, or in other letter cases.
func misspellings(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		const letters = "abcdefghijklmnopqrstuvwxyzAQZ07_-. ñ"
		all := []string{
			strings.ToUpper(name), strings.ToLower(name), strings.ToUpper(name[:1]) + name[1:],
			strings.Map(func(r rune) rune { // as in snake_case
				if unicode.IsUpper(r) {
					return '_'
				}
				return r
			}, name),
		}
		for i := range len(name) + 1 {
			for _, letter := range letters {
				all = append(all, name[:i]+string(letter)+name[i:])
				if i < len(name) {
					all = append(all, name[:i]+string(letter)+name[i+1:])
				}
			}
			if i < len(name) {
				all = append(all, name[:i]+name[i+1:], name[:i]+strings.ToUpper(name[i:i+1])+name[i+1:], name[:i]+strings.ToLower(name[i:i+1])+name[i+1:])
			}
			if i+1 < len(name) {
				all = append(all, name[:i]+name[i+1:i+2]+name[i:i+1]+name[i+2:])
			}
		}
		slices.Sort(all)
		for _, one := range slices.Compact(all) {
			if !yield(one) {
				return
			}
		}
	}
}

// TestStrictMisspellings: each misspelling of each name that openapi.json has is told, and
// what was meant.
func TestStrictMisspellings(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s, told, both := strictShop(t), 0, []string{}
	// check sends misspelt names at once and compares what is told.
	check := func(rt route, query, body, place string, sent []string, name string, known []string) {
		w := answerTo(s.api, newStrictRequest(rt, s.key, query, body))
		faults := strictFaults(t, w)
		for i, wrong := range sent {
			want := func(name string) string {
				return fmt.Sprintf("%s%s no es un campo conocido (¿%s?)", place, wrong, name)
			}
			told++
			switch {
			case i >= len(faults) || faults[i].Code != "unknown_field" || *faults[i].Field != place+wrong:
				t.Fatalf("%s %s %s:\n%s\nwant %s", rt.pattern, query, body, w.Body, want(name))
			case faults[i].Message == want(name):
			case !slices.ContainsFunc(known, func(other string) bool {
				return other != name && nearest.Edits(wrong, other) == 1 && faults[i].Message == want(other)
			}):
				t.Errorf("%s: %s, not %s", rt.pattern, faults[i].Message, want(name))
			default:
				both = append(both, wrong)
			}
		}
	}
	wrongs := func(name string, known []string) []string {
		return slices.DeleteFunc(slices.Collect(misspellings(name)), func(wrong string) bool { return slices.Contains(known, wrong) })
	}
	for rt, names := range inputsByRoute(t, s.api) {
		for _, name := range names.query {
			for some := range slices.Chunk(wrongs(name, names.query), maxFaults) {
				var query []string
				for _, wrong := range some {
					query = append(query, url.QueryEscape(wrong)+"=1")
				}
				body := ""
				if len(names.body) > 0 {
					body = "{}"
				}
				check(rt, strings.Join(query, "&"), body, "", some, name, names.query)
			}
		}
		for at, known := range names.body {
			most, place := maxFaults, ""
			if strings.HasPrefix(at, "transactions") || strings.HasPrefix(at, "movements") {
				most = maxRowFaults
			}
			switch at {
			case "items", "transactions.items":
				place = "items[0]."
			case "pay", "transactions.pay":
				place = "pay."
			}
			for _, name := range known {
				for some := range slices.Chunk(wrongs(name, known), most) {
					members := map[string]int{}
					for _, wrong := range some { // sorted, as encoding/json writes them
						members[wrong] = 1
					}
					text, err := json.Marshal(members)
					s.shop.ok(err)
					check(rt, "", bodyWith(at, string(text[1:len(text)-1])), place, some, name, known)
				}
			}
		}
	}
	t.Logf("%d misspellings; as near to another name: %q", told, both)
	if told < 50_000 || len(both) > 10 {
		t.Error("too few, or too many that could be two names")
	}
}

// TestStrictNames: a handler asks for the names that openapi.json has, for each of them and
// no other, whatever was sent.
func TestStrictNames(t *testing.T) {
	t.Parallel()
	s := strictShop(t)
	caller, err := s.shop.engine.authenticate(s.shop.Context(), s.key, nil, s.shop.clock)
	s.shop.ok(err)
	const unknown = "zzzzzzzz"
	values := []string{"null", "1", "0", `"x"`, `""`, "true", "[]", "{}", "[{}]", "[7]", `"ERASE"`, `"2026-01-01"`}
	for rt, names := range inputsByRoute(t, s.api) {
		sorted := slices.Sorted(slices.Values(names.query))
		for _, value := range append(values, "") {
			for _, sent := range append([][]string{names.query, nil}, chunksOfOne(names.query)...) {
				query := unknown + "=1"
				for _, name := range sent {
					query += "&" + name + "=" + url.QueryEscape(strings.Trim(value, `"`))
				}
				for at, body := range bodiesWith(names.body, value, unknown) {
					req := request{caller: caller, now: s.shop.clock, strict: true, Request: newStrictRequest(rt, s.key, query, body)}
					req.query, err = parseQuery(query)
					s.shop.ok(err)
					req.query.beStrict()
					if body != "" {
						members, bad := parseObject([]byte(body))
						if bad != nil {
							t.Fatal(body, *bad)
						}
						req.fields = newFields(members)
						req.fields.beStrict()
					}
					rt.handle(&req)
					if asked := slices.Sorted(slices.Values(req.query.strict.asked[""])); !slices.Equal(asked, sorted) {
						t.Fatalf("%s?%s %s: asks for the parameters %q; described are %q", rt.pattern, query, body, asked, sorted)
					}
					if body == "" {
						continue
					}
					if asked := slices.Sorted(slices.Values(req.fields.strict.asked[""])); !slices.Equal(asked, names.body[""]) {
						t.Fatalf("%s?%s %s: asks for the fields %q; described are %q", rt.pattern, query, body, asked, names.body[""])
					}
					if asked := slices.Sorted(slices.Values(req.fields.strict.asked["items"])); at == "items" && !slices.Equal(asked, names.body[at]) {
						t.Fatalf("%s?%s %s: asks for the fields %q of items; described are %q", rt.pattern, query, body, asked, names.body[at])
					}
				}
			}
		}
	}
}

func chunksOfOne(names []string) [][]string { return slices.Collect(slices.Chunk(names, 1)) }

// bodiesWith yields bodies by the place where names have the value: all of them, one of
// them and none, each time beside one that is not known. Without names it yields no body.
func bodiesWith(names map[string][]string, value, unknown string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if len(names) == 0 {
			yield("", "")
			return
		}
		for at, known := range names {
			for _, sent := range append([][]string{known, nil}, chunksOfOne(known)...) {
				members := fmt.Sprintf("%q:1", unknown)
				for _, name := range sent {
					members += fmt.Sprintf(",%q:%s", name, cmp.Or(value, "null"))
				}
				if !yield(at, bodyWith(at, members)) {
					return
				}
			}
		}
	}
}

// TestStrictBatchNames: a row of a batch has the names that openapi.json has. No other name
// of any body is known there.
func TestStrictBatchNames(t *testing.T) {
	t.Parallel()
	s := strictShop(t)
	everywhere := map[string]bool{}
	batches := map[string]inputNames{}
	for rt, names := range inputsByRoute(t, s.api) {
		for _, known := range names.body {
			for _, name := range known {
				everywhere[name] = true
			}
		}
		if strings.HasSuffix(rt.pattern, "/batch") {
			batches[rt.pattern] = names
		}
	}
	for pattern, described := range batches {
		for at, known := range described.body {
			for name := range everywhere {
				for _, value := range []string{"null", "1", `"x"`, "[]", "{}"} {
					faults := strictFaults(t, answerTo(s.api, newStrictRequest(route{pattern: pattern}, s.key, "", bodyWith(at, fmt.Sprintf("%q:%s", name, value)))))
					isUnknown := len(faults) > 0 && faults[0].Code == "unknown_field"
					if isUnknown == slices.Contains(known, name) {
						t.Errorf("%s: %s at %q is %s: unknown %v", pattern, name, at, value, isUnknown)
					}
				}
			}
		}
	}
}

// TestStrictBounds: however many faults there are, however long names are, few are told.
func TestStrictBounds(t *testing.T) {
	t.Parallel()
	s := strictShop(t)
	many := func(n int, form string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, form, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	long := strings.Repeat("\\u0007", 50_000)
	for _, test := range []struct {
		reason, pattern, query, body string
		want                         int
	}{
		{"names of a body", "POST /api/v1/transactions", "", "{" + many(9_990, `"n%d":1,`) + "}", maxFaults},
		{"names of a query", "GET /api/v1/transactions", many(5_000, `n%d=1&`), "", maxFaults},
		{"of both", "POST /api/v1/transactions", many(99, `n%d=1&`), "{" + many(99, `"n%d":1,`) + "}", maxFaults},
		{"of elements", "POST /api/v1/transactions", "", `{"items":[` + many(500, `{"n%d":1,"sku":"A","price":1,"quantity":1},`) + "]}", maxFaults},
		{"faults of elements", "POST /api/v1/transactions", "", `{"items":[` + many(500, `{"sku":%d},`) + "]}", maxFaults},
		{"a long name", "POST /api/v1/transactions", "", `{"customerId":"x","totalAmount":1,"` + long + `":1}`, 1},
		{"a sale of a batch", "POST /api/v1/transactions/batch", "", `{"transactions":[{` + many(9_000, `"n%d":1,`) + "}]}", maxRowFaults},
	} {
		body := answerTo(s.api, newStrictRequest(route{pattern: test.pattern}, s.key, test.query, test.body))
		if told := len(strictFaults(t, body)); told != test.want || body.Body.Len() > 30_000 {
			t.Errorf("%s: %d faults are told, want %d, in %d bytes", test.reason, told, test.want, body.Body.Len())
		}
	}
	rows := `{"transactions":[` + strings.Repeat(`{`+many(700, `"nnnnnn%d":1,`)+"},", 99) + "{}]}"
	w := answerTo(s.api, newStrictRequest(route{pattern: "POST /api/v1/transactions/batch"}, s.key, "", rows))
	if w.Code != http.StatusOK || w.Body.Len() > 200_000 {
		t.Errorf("a batch: %d, %d bytes", w.Code, w.Body.Len())
	}
}

// TestPrefersStrict makes up headers. The first well-formed preference called handling
// counts.
func TestPrefersStrict(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(17, 7240))
	blank := func() string { return pick(rnd, "", "", " ", "\t ") }
	spelled := func(word string) string { // in any letter case, as a token or quoted
		word = strings.Map(func(r rune) rune { return pick(rnd, unicode.ToLower(r), unicode.ToUpper(r)) }, word)
		if i := rnd.IntN(len(word)); rnd.IntN(3) == 0 {
			return `"` + word[:i] + pick(rnd, "", `\`) + word[i:] + `"`
		}
		return word
	}
	for range 20_000 {
		var lines []string
		decided, want := false, false
		for range rnd.IntN(3) {
			var elements []string
			for range rnd.IntN(4) {
				element := pick(rnd, "", "return=minimal", "respond-async", `x="handling=strict"`, `x=";,handling=strict\"\\"`, "wait=1;handling=strict",
					"handlings=strict", "handling=strict strict", `handling="strict"x`, `handling=str"ict"`)
				if value := pick(rnd, "strict", "lenient", "stric", "", "strictly"); rnd.IntN(2) == 0 {
					element = spelled("handling")
					if element[0] == '"' { // a name is a token
						element = "handling"
					}
					if value != "" || rnd.IntN(2) == 0 {
						element += blank() + "=" + blank()
						if value != "" {
							element += spelled(value)
						}
					}
					element += pick(rnd, "", "", ";", `; a="handling=lenient,"`, ";handling=lenient")
					if !decided {
						decided, want = true, value == "strict"
					}
				}
				elements = append(elements, blank()+element+blank())
			}
			lines = append(lines, strings.Join(elements, ","))
		}
		if got := prefersStrict(lines); got != want {
			t.Fatalf("%q: %v", lines, got)
		}
	}
}

// TestOpenAPIStrict: every operation takes Prefer and can answer unknown_field.
func TestOpenAPIStrict(t *testing.T) {
	t.Parallel()
	for name, op := range readAPIDoc(t).operations {
		prefer := docParameter{Ref: "#/components/parameters/Prefer"}
		if codes := op.Responses["400"].Content["application/json"].Schema.Properties["code"].Enum; !slices.Contains(op.Parameters, prefer) || !slices.Contains(codes, any("unknown_field")) {
			t.Errorf("%s: the preference is not described", name)
		}
	}
}
