package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
)

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
	rnd := rand.New(rand.NewPCG(17, 19))
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
		"registeredFrom": {"2026-01-01"}, "totalAmount": {"1", "10"}, "amount": {"1", "10"}, "price": {"1"}, "quantity": {"2"},
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
	if statuses[200] == 0 || statuses[201] == 0 || statuses[400] == 0 || statuses[404] == 0 || statuses[201] < n/20 {
		t.Error("too few of some kind")
	}
}
