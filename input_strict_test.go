package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
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

// FuzzStrict sends a request to two equal servers, once with Prefer: handling=strict. Where
// openapi.json has all of its names, both answer the same, but for Preference-Applied and
// errors, and write the same. Where it has not, the strict one names what is unknown and
// writes nothing.
func FuzzStrict(f *testing.F) {
	skipRace(f)
	goldenSeeds(f, func(sender uint8, method, target, headers, body string) { f.Add(sender, method, target, headers, body) })
	f.Add(uint8(1), "POST", "/api/v1/transactions", "", `{"customerId":"$maria","totalAmount":5000,"externalId":"T-1","items":[{"sku":"A","price":2500,"quantity":2}]}`)
	f.Add(uint8(1), "POST", "/api/v1/transactions?x=1", "", `{"customerId":"$maria","totalAmount":1,"items":[{"sku":"A","Price":2500,"quantity":2},{},3]}`)
	f.Add(uint8(1), "POST", "/api/v1/transactions/batch", "", `{"transactions":[{"customerId":"$maria","total":5},{"customerId":"$maria","totalAmount":5}]}`)
	f.Add(uint8(1), "POST", "/api/v1/points/batch", "", `{"movements":[{"customerId":"$maria","type":"Credit","amount":5,"expireAt":"x"},{"customerId":"$maria","type":"Debit","amount":5}]}`)
	f.Add(uint8(1), "GET", "/api/v1/statistics?from=2026-01-01&from_=2", "", "")
	var im *image
	var doc *apiDoc
	f.Fuzz(func(t *testing.T, sender uint8, method, target, headers, body string) {
		if im == nil {
			im, doc = newImage(t), readAPIDoc(t)
		}
		plain, strict := im.dealBoth(t, sender, method, target, headers, body)
		if plain == nil {
			return
		}
		if faults := doc.strictFaults(plain, strict); len(faults) > 0 {
			t.Errorf("%q\nfaults %q\n%d %v %s\nstrictly %d %v %s", plain.raw, faults,
				plain.response.StatusCode, plain.response.Header, plain.body, strict.response.StatusCode, strict.response.Header, strict.body)
		}
	})
}

// dealBoth sends a request without the preference and with it. It returns nil if net/http
// cannot read it.
func (im *image) dealBoth(t *testing.T, sender uint8, method, target, headers, body string) (plain, strict *dealing) {
	kept := []string{"X-Request-Id: r"}
	for line := range strings.Lines(headers) {
		name, _, _ := strings.Cut(line, ":")
		if name = strings.ToLower(strings.TrimSpace(name)); name != "prefer" && name != "x-request-id" {
			kept = append(kept, strings.TrimRight(line, "\r\n"))
		}
	}
	store, a := im.open(t)
	if plain = im.deal(store, a, im.compose(sender, method, target, strings.Join(kept, "\n"), body)); plain == nil {
		return nil, nil
	}
	store, a = im.open(t)
	kept = append([]string{"Prefer: handling=strict"}, kept...)
	return plain, im.deal(store, a, im.compose(sender, method, target, strings.Join(kept, "\n"), body))
}

// strictFaults returns what a strict answer should not be, beside that without the
// preference.
func (d *apiDoc) strictFaults(plain, strict *dealing) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	applied := strict.response.Header.Get("Preference-Applied")
	strict.response.Header.Del("Preference-Applied")
	plainAnswer, strictAnswer := objectOf(plain.body), objectOf(strict.body)
	var unknown []string
	rows := map[int][]string{}
	if applied != "" {
		unknown, rows = d.unknownIn(strict)
	}
	replayed := strict.response.Header.Get("Idempotency-Replayed") != ""
	switch {
	case applied != "" && applied != "handling=strict", applied == "" && strict.response.StatusCode < 400:
		fault("Preference-Applied: %s", applied)
	case applied != "" && len(unknown) > 0 && !replayed:
		if strict.response.StatusCode != http.StatusBadRequest || !sameEntries(strict.before, strict.after) {
			fault("unknown are %q", unknown)
		}
		if told := unknownTold(strictAnswer); strict.request.Method != "HEAD" && !slices.Equal(told, unknown) {
			fault("unknown are %q, told %q", unknown, told)
		}
	case len(rows) > 0 && !replayed && strict.response.StatusCode == http.StatusOK:
		results, _ := strictAnswer["results"].([]any)
		for i, result := range results {
			result := result.(map[string]any)
			e, _ := result["error"].(map[string]any)
			if told := unknownTold(e); result["status"] != 200.0 && !slices.Equal(told, rows[i]) {
				fault("unknown of row %d are %q, told %q", i, rows[i], told)
			}
		}
	default:
		strict.response.Header.Set("Content-Length", plain.response.Header.Get("Content-Length"))
		if plain.response.Header.Get("Content-Length") == "" {
			strict.response.Header.Del("Content-Length")
		}
		withoutErrors(strictAnswer)
		if plain.response.StatusCode != strict.response.StatusCode || !reflect.DeepEqual(plain.response.Header, strict.response.Header) ||
			!reflect.DeepEqual(plainAnswer, strictAnswer) || plainAnswer == nil && !bytes.Equal(plain.body, strict.body) {
			fault("not the same")
		}
		if !sameEntries(plain.after, strict.after) && !strings.Contains(string(strict.body), `"errors":`) { // a batch is kept with its errors
			fault("not the same is written")
		}
	}
	return faults
}

// objectOf returns a body that is a JSON object; nil if it is none.
func objectOf(body []byte) (answer map[string]any) {
	if json.Unmarshal(body, &answer) != nil {
		return nil
	}
	return answer
}

// unknownTold returns the fields of the unknown_field errors of an error, which come first.
func unknownTold(e map[string]any) (told []string) {
	all, _ := e["errors"].([]any)
	for i, one := range all {
		if one := one.(map[string]any); one["code"] == "unknown_field" && len(told) == i {
			told = append(told, one["field"].(string))
		}
	}
	if len(told) > 0 && (e["code"] != "unknown_field" || e["field"] != told[0]) {
		return []string{"other than the error"}
	}
	return told
}

// withoutErrors takes the errors out of an answer and out of the results of a batch. It
// leaves them where the error is not the first of them.
func withoutErrors(answer map[string]any) {
	if all, ok := answer["errors"].([]any); ok && len(all) > 0 {
		first := all[0].(map[string]any)
		field := first["field"]
		if first["code"] == answer["code"] && first["message"] == answer["message"] && field == answer["field"] {
			delete(answer, "errors")
		}
	}
	results, _ := answer["results"].([]any)
	for _, result := range results {
		if e, ok := result.(map[string]any)["error"].(map[string]any); ok {
			withoutErrors(e)
		}
	}
}

// unknownIn returns the names of a request that openapi.json does not have, in the order in
// which they are told, and those of each row of a batch.
func (d *apiDoc) unknownIn(deal *dealing) (unknown []string, rows map[int][]string) {
	rows = map[int][]string{}
	method, path := strings.ToLower(deal.request.Method), deal.request.URL.Path
	if method == "head" {
		method = "get"
	}
	op := d.Paths[d.pathOf(method, path)][method]
	in := d.inputNames(op)
	if method != "get" {
		_, text, _ := strings.Cut(deal.raw, "\r\n\r\n")
		unknown, rows = unknownOf(text, in.body)
	}
	for part := range strings.SplitSeq(deal.request.URL.RawQuery, "&") {
		name, _, _ := strings.Cut(part, "=")
		if name, _ = url.QueryUnescape(name); part != "" && !slices.Contains(in.query, name) {
			unknown = append(unknown, shownName(name))
		}
	}
	return unknown[:min(len(unknown), maxFaults)], rows
}

// pathOf returns the path of openapi.json for a request's.
func (d *apiDoc) pathOf(method, path string) string {
	best := ""
	for p, ops := range d.Paths {
		pattern := strings.Split(p, "/")
		for i, part := range strings.Split(path, "/") {
			if i < len(pattern) && strings.HasPrefix(pattern[i], "{") && part != "" {
				pattern[i] = part
			}
		}
		if ops[method] != nil && strings.Join(pattern, "/") == path && (best == "" || strings.Count(p, "{") < strings.Count(best, "{")) {
			best = p
		}
	}
	return best
}

// unknownOf returns the names of a body that known does not have.
func unknownOf(text string, known map[string][]string) (unknown []string, rows map[int][]string) {
	rows = map[int][]string{}
	members := orderedMembers(text)
	for _, m := range members {
		if !slices.Contains(known[""], m.name) {
			unknown = append(unknown, shownName(m.name))
		}
	}
	for _, m := range members {
		for i, element := range elementsOf(m) {
			if m.name == "items" && known["items"] != nil {
				for _, one := range orderedMembers(element) {
					if !slices.Contains(known["items"], one.name) {
						unknown = append(unknown, fmt.Sprintf("items[%d].%s", i, shownName(one.name)))
					}
				}
			}
			if (m.name == "transactions" || m.name == "movements") && known[m.name] != nil {
				row, _ := unknownOf(element, map[string][]string{"": known[m.name], "items": known[m.name+".items"], "pay": known[m.name+".pay"]})
				if len(row) > 0 {
					rows[i] = row[:min(len(row), maxRowFaults)]
				}
			}
		}
	}
	for _, m := range members {
		if m.name != "pay" || known["pay"] == nil {
			continue
		}
		for _, one := range orderedMembers(m.value) {
			if !slices.Contains(known["pay"], one.name) {
				unknown = append(unknown, "pay."+shownName(one.name))
			}
		}
	}
	return unknown, rows
}

// elementsOf returns the elements of a list that is not longer than it may be.
func elementsOf(m pair) []string {
	var list []json.RawMessage
	json.Unmarshal([]byte(m.value), &list)
	most := map[string]int{"items": maxItems, "transactions": maxBatch, "movements": maxBatch}[m.name]
	if len(list) > most {
		return nil
	}
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = string(list[i])
	}
	return texts
}

// orderedMembers reads an object with encoding/json; nil if it is none.
func orderedMembers(text string) (members []pair) {
	d := json.NewDecoder(strings.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return nil
		}
		members = append(members, pair{name.(string), string(value)})
	}
	return members
}

// TestStrictFuzzFindsFaults: FuzzStrict's checks find the faults that they look for.
func TestStrictFuzzFindsFaults(t *testing.T) {
	t.Parallel()
	im, doc := newImage(t), readAPIDoc(t)
	const sale = "/api/v1/transactions"
	for _, test := range []struct {
		reason, target, body string
		spoil                func(strict *dealing)
	}{
		{"", sale, `{"customerId":"$maria","totalAmount":1}`, func(*dealing) {}},
		{"", sale, `{"customerId":"$maria","totalAmount":0,"type":"x"}`, func(*dealing) {}},
		{"", sale, `{"customerId":"$maria","total":0}`, func(*dealing) {}},
		{"", sale + "/batch", `{"transactions":[{"total":1},{"customerId":"$maria","totalAmount":1}]}`, func(*dealing) {}},
		{"the preference is not told", sale, `{"customerId":"$maria","totalAmount":1}`, func(d *dealing) { d.response.Header.Del("Preference-Applied") }},
		{"another status", sale, `{"customerId":"$maria","totalAmount":1}`, func(d *dealing) { d.response.StatusCode = 200 }},
		{"another answer", sale, `{"customerId":"$maria","totalAmount":1}`, func(d *dealing) { d.body = bytes.Replace(d.body, []byte("Api"), []byte("api"), 1) }},
		{"less is written", sale, `{"customerId":"$maria","totalAmount":1}`, func(d *dealing) { d.after = d.before }},
		{"another first fault", sale, `{"customerId":"$maria","totalAmount":0,"type":"x"}`, func(d *dealing) {
			d.body = bytes.Replace(d.body, []byte("total_amount_invalid"), []byte("type_invalid"), 1)
		}},
		{"an unknown name is not told", sale, `{"customerId":"$maria","total":0}`, func(d *dealing) {
			d.body = bytes.ReplaceAll(d.body, []byte(`"total"`), []byte(`"totale"`))
		}},
		{"one of a batch is not told", sale + "/batch", `{"transactions":[{"total":1}]}`, func(d *dealing) {
			d.body = bytes.ReplaceAll(d.body, []byte("unknown_field"), []byte("invalid_field"))
		}},
	} {
		plain, strict := im.dealBoth(t, 1, "POST", test.target, "", test.body)
		test.spoil(strict)
		if faults := doc.strictFaults(plain, strict); (len(faults) == 0) != (test.reason == "") {
			t.Errorf("%q: faults %q\n%s\n%s", test.reason, faults, plain.body, strict.body)
		}
	}
}

// TestStrictRandom does what FuzzStrict does, with requests that are made up of known names,
// some misspelt, and of values that often fit.
func TestStrictRandom(t *testing.T) {
	t.Parallel()
	skipShort(t)
	im, doc := newImage(t), readAPIDoc(t)
	_, a := im.open(t)
	var routes []route
	var inputs []inputNames
	for rt, names := range inputsByRoute(t, a) {
		routes, inputs = append(routes, rt), append(inputs, names)
	}
	rnd := rand.New(rand.NewPCG(17, 23))
	maybeWrong := func(name string) string {
		if wrong := slices.Collect(misspellings(name)); rnd.IntN(40) == 0 {
			return wrong[rnd.IntN(len(wrong))]
		}
		return name
	}
	fitting := map[string][]string{
		"customerId": {"$maria", "$jose"}, "productId": {"$espresso"}, "loyaltyProgramId": {"$club"}, "from": {"2026-01-01", "$jose"}, "to": {"2026-11-30"},
		"type": {"Purchase", "Return", "Credit"}, "category": {"Bonus", "Fee"}, "status": {"Active", "Completed"}, "groupBy": {"day"}, "dryRun": {"true"}, "explain": {"true"},
		"page": {"1"}, "limit": {"3"}, "occurredAt": {"2026-11-20T09:00:00Z"}, "expiresAt": {"2027-01-01"}, "birthDate": {"1990-05-01"}, "confirm": {"ERASE"},
		"email": {"ana@example.com"}, "phoneNumber": {"5512345670"}, "phone": {"5512345670"}, "originalTransactionId": {"$sale"}, "transactionId": {"$sale"},
		"registeredFrom": {"2026-01-01"}, "code": {"M-RSDP-4135"}, "totalAmount": {"1", "10"}, "amount": {"1", "10"}, "price": {"1"}, "quantity": {"2"},
	}
	text := func(name string) string {
		if rnd.IntN(30) == 0 {
			return pick(rnd, "", "x", "$otraMaria", "0", "true")
		}
		return pick(rnd, append(fitting[name], "T-1")[:max(1, len(fitting[name]))]...)
	}
	var object func(names map[string][]string, at string) string
	object = func(names map[string][]string, at string) string {
		members := map[string]string{}
		for _, name := range names[at] {
			value := pick(rnd, "null", "1", "-1", "0.00001", "[]", "{}", "true")
			below := strings.TrimPrefix(at+"."+name, ".")
			switch {
			case rnd.IntN(40) == 0:
			case names[below] != nil:
				value = "[" + object(names, below) + pick(rnd, "", "", "", ",7", ","+object(names, below)) + "]"
			case name == "attributes":
				value = pick(rnd, `{"a":"b"}`, `{"a":null}`)
			case name == "marketing":
				value = pick(rnd, "true", "false")
			case name == "expiresInDays":
				value = "30"
			case (name == "joinCode" || name == "card") && rnd.IntN(20) > 0: // which forbid the others
				value = ""
			case name == "labels":
				value = pick(rnd, `{"a":"b"}`, "{}")
			case slices.Contains([]string{"totalAmount", "amount", "price", "quantity"}, name):
				value = text(name)
			default:
				value = fmt.Sprintf("%q", text(name))
			}
			if value != "" && rnd.IntN(10) > 0 {
				members[maybeWrong(name)] = value
			}
		}
		var all []string
		for name, value := range members {
			all = append(all, fmt.Sprintf("%q:%s", name, value))
		}
		slices.Sort(all)
		return "{" + strings.Join(all, ",") + "}"
	}
	n := repeats(800, 300, 0)
	statuses := map[int]int{}
	for range n {
		i := rnd.IntN(len(routes))
		for range 2 { // more that write
			if len(inputs[i].body) == 0 {
				i = rnd.IntN(len(routes))
			}
		}
		method, path, _ := strings.Cut(routes[i].pattern, " ")
		path = strings.NewReplacer("{customerId}", pick(rnd, "$maria", "$jose", "x"), "{transactionId}", "$sale", "{redemptionId}", "$canje",
			"{rewardId}", "$espresso", "{programId}", "$club", "{segmentId}", "$vip").Replace(path)
		query := url.Values{}
		for _, name := range inputs[i].query {
			if rnd.IntN(3) == 0 {
				query.Set(maybeWrong(name), im.expand.Replace(text(name)))
			}
		}
		body := ""
		if inputs[i].body[""] != nil || method == "POST" {
			body = object(inputs[i].body, "")
		}
		headers := pick(rnd, "", "Idempotency-Key: k")
		plain, strict := im.dealBoth(t, 1, method, path+"?"+query.Encode(), headers, body)
		if faults := doc.strictFaults(plain, strict); len(faults) > 0 {
			t.Fatalf("%q\nfaults %q\n%d %v %s\nstrictly %d %v %s", plain.raw, faults,
				plain.response.StatusCode, plain.response.Header, plain.body, strict.response.StatusCode, strict.response.Header, strict.body)
		}
		statuses[strict.response.StatusCode]++
	}
	t.Log(statuses)
	if statuses[200] == 0 || statuses[201] == 0 || statuses[400] == 0 || statuses[404] == 0 || statuses[201] < n/30 {
		t.Error("too few of some kind")
	}
}
