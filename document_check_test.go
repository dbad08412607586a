package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// document.schema.json is written by hand. These tests compare it with the code.

// A jsonSchema is a schema of the document, or a part of it.
type jsonSchema map[string]any

func readDocumentSchema(t *testing.T) jsonSchema {
	t.Helper()
	var s jsonSchema
	if err := json.Unmarshal(documentSchema, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// part returns the part of the schema at a path such as "$defs.rule.properties.on". It
// follows references on the way.
func (s jsonSchema) part(path string) jsonSchema {
	at := s
	for name := range strings.SplitSeq(path, ".") {
		at, _ = at[name].(map[string]any)
		at = s.follow(at)
	}
	return at
}

func (s jsonSchema) follow(at jsonSchema) jsonSchema {
	if ref, ok := at["$ref"].(string); ok {
		return s.part(strings.ReplaceAll(strings.TrimPrefix(ref, "#/"), "/", "."))
	}
	return at
}

// fault returns why v does not match the schema at, or "" if it matches. It knows only
// the keywords that the document's schema uses.
func (s jsonSchema) fault(at jsonSchema, path string, v any) string {
	for _, keyword := range slices.Sorted(maps.Keys(at)) {
		if fault := s.faultOf(at, keyword, path, v); fault != "" {
			return fault
		}
	}
	return ""
}

func (s jsonSchema) faultOf(at jsonSchema, keyword, path string, v any) string {
	wrong := func(ok bool) string {
		if ok {
			return ""
		}
		return fmt.Sprintf("%s: %v: %s %v", path, v, keyword, at[keyword])
	}
	list, _ := v.([]any)
	object, isObject := v.(map[string]any)
	want := at[keyword]
	switch keyword {
	case "$schema", "$defs", "title", "description", "default":
		return ""
	case "$ref":
		return s.fault(s.follow(at), path, v)
	case "type":
		return wrong(hasType(want, v))
	case "enum":
		return wrong(slices.Contains(want.([]any), v))
	case "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "pattern", "minItems", "maxItems":
		return wrong(withinLimit(keyword, want, v))
	case "items":
		for i, element := range list {
			if fault := s.fault(want.(map[string]any), fmt.Sprintf("%s[%d]", path, i), element); fault != "" {
				return fault
			}
		}
		return ""
	case "required":
		return wrong(!isObject || hasAll(object, want))
	case "dependentRequired":
		for name, others := range want.(map[string]any) {
			if _, ok := object[name]; ok && !hasAll(object, others) {
				return wrong(false)
			}
		}
		return ""
	case "properties":
		for name, property := range want.(map[string]any) {
			if member, ok := object[name]; ok {
				if fault := s.fault(property.(map[string]any), path+"."+name, member); fault != "" {
					return fault
				}
			}
		}
		return ""
	case "additionalProperties":
		described, _ := at["properties"].(map[string]any)
		of, isSchema := want.(map[string]any)
		for name, member := range object {
			if described[name] != nil {
				continue
			}
			if !isSchema {
				return fmt.Sprintf("%s.%s: there is no such field", path, name)
			}
			if fault := s.fault(of, path+"."+name, member); fault != "" {
				return fault
			}
		}
		return wrong(want == false || isSchema)
	case "propertyNames":
		for name := range object {
			if fault := s.fault(want.(map[string]any), path+"."+name, name); fault != "" {
				return fault
			}
		}
		return ""
	case "maxProperties":
		return wrong(!isObject || float64(len(object)) <= want.(float64))
	case "const":
		return wrong(v == want)
	case "not":
		return wrong(s.fault(want.(map[string]any), path, v) != "")
	case "oneOf":
		fits := 0
		for _, alternative := range want.([]any) {
			if s.fault(alternative.(map[string]any), path, v) == "" {
				fits++
			}
		}
		return wrong(fits == 1)
	}
	return "keyword " + keyword + " is not known to this test"
}

// hasType reports whether a value has the type, or one of the types, of the keyword "type".
func hasType(want, v any) bool {
	kinds, several := want.([]any)
	if !several {
		kinds = []any{want}
	}
	number, isNumber := v.(float64)
	return slices.ContainsFunc(kinds, func(kind any) bool {
		return kind == "integer" && number == float64(int(number)) && isNumber || kind == kindOf(v)
	})
}

// hasAll reports whether an object has members of all the names.
func hasAll(object map[string]any, names any) bool {
	return !slices.ContainsFunc(names.([]any), func(name any) bool { _, ok := object[name.(string)]; return !ok })
}

// withinLimit reports whether a value is within the limit of a keyword. A value of a type
// that the keyword does not limit always is.
func withinLimit(keyword string, want, v any) bool {
	number, isNumber := v.(float64)
	text, isText := v.(string)
	list, isList := v.([]any)
	switch keyword {
	case "minimum":
		return !isNumber || number >= want.(float64)
	case "maximum":
		return !isNumber || number <= want.(float64)
	case "exclusiveMinimum":
		return !isNumber || number > want.(float64)
	case "minLength":
		return !isText || float64(utf8.RuneCountInString(text)) >= want.(float64)
	case "maxLength":
		return !isText || float64(utf8.RuneCountInString(text)) <= want.(float64)
	case "pattern":
		return !isText || regexp.MustCompile(want.(string)).MatchString(text)
	case "minItems":
		return !isList || float64(len(list)) >= want.(float64)
	case "maxItems":
		return !isList || float64(len(list)) <= want.(float64)
	}
	panic(keyword)
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// describes returns an error if a document does not match the schema.
func (s jsonSchema) describes(raw []byte) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	if fault := s.fault(s, "", v); fault != "" {
		return fmt.Errorf("%s", fault)
	}
	return nil
}

// TestSchemaDocuments: the existing documents and their exports match the schema.
func TestSchemaDocuments(t *testing.T) {
	t.Parallel()
	schema := readDocumentSchema(t)
	documents := map[string][]byte{"everything": []byte(everything), "demo.json": demoDocument, "little": setup{}.document()}
	files, err := filepath.Glob("testdata/world/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range append(files, "bench/organization.json") {
		documents[name] = readFile(t, name)
	}
	for name, raw := range documents {
		if err := schema.describes(raw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		doc, problems := readDocument(raw)
		if problems != nil {
			t.Fatalf("%s: %q", name, problems)
		}
		exported, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.describes(exported); err != nil {
			t.Errorf("%s, exported: %v", name, err)
		}
	}
}

// TestSchemaFields: the schema has exactly the fields of a document, with the same types.
func TestSchemaFields(t *testing.T) {
	t.Parallel()
	schema := readDocumentSchema(t)
	seen := map[reflect.Type]bool{}
	var matches func(path string, at jsonSchema, typ reflect.Type)
	matches = func(path string, at jsonSchema, typ reflect.Type) {
		at = schema.follow(at)
		if alternatives, ok := at["oneOf"].([]any); ok && at["type"] == nil { // or null
			at = maps.Clone(schema.follow(alternatives[0].(map[string]any)))
			at["type"] = []any{at["type"], alternatives[1].(map[string]any)["type"]}
		}
		kinds, several := at["type"].([]any)
		if !several {
			kinds = []any{at["type"]}
		}
		if typ == reflect.TypeFor[json.RawMessage]() {
			return // the value of a segment rule: of several types
		}
		absent := typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		want := []any{jsonKind(typ)}
		if typ == reflect.TypeFor[currencyName]() {
			want = append(want, "string")
		}
		if absent {
			want = append(want, "null")
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("%s: the schema has %v, and the code %v", path, kinds, want)
			return
		}
		switch {
		case typ.Kind() == reflect.Slice:
			matches(path+"[]", at["items"].(map[string]any), typ.Elem())
		case typ.Kind() == reflect.Struct && !seen[typ]:
			seen[typ] = true
			if at["additionalProperties"] != false {
				t.Errorf("%s: other fields are let in", path)
			}
			described := maps.Clone(at["properties"].(map[string]any))
			delete(described, "$schema")
			for _, f := range reflect.VisibleFields(typ) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				property, ok := described[name].(map[string]any)
				if !ok {
					t.Errorf("%s.%s is not in the schema", path, name)
					continue
				}
				delete(described, name)
				matches(path+"."+name, property, f.Type)
			}
			for name := range described {
				t.Errorf("%s.%s is in the schema, and documents do not have it", path, name)
			}
		}
	}
	matches("", schema, reflect.TypeFor[document]())
}

// A documentAt is the document that uses everything, with other values at some places.
type documentAt struct{ root any }

func newDocumentAt(t *testing.T) documentAt {
	t.Helper()
	var d documentAt
	if err := json.Unmarshal([]byte(everything), &d.root); err != nil {
		t.Fatal(err)
	}
	return d
}

var pathStep = regexp.MustCompile(`[^.\[\]]+`)

// set puts a value at a path such as "programs[0].rounding".
func (d documentAt) set(path string, v any) {
	at := d.root
	steps := pathStep.FindAllString(path, -1)
	for i, step := range steps {
		last := i == len(steps)-1
		switch in := at.(type) {
		case map[string]any:
			if at = in[step]; last {
				in[step] = v
			}
		case []any:
			n, _ := strconv.Atoi(step)
			if at = in[n]; last {
				in[n] = v
			}
		}
	}
}

// with is the document with a value at a path.
func (d documentAt) with(t *testing.T, path string, v any) []byte {
	t.Helper()
	d.set(path, v)
	raw, err := json.Marshal(d.root)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestSchemaWords: where the code takes one of a few words, the schema has the same ones.
func TestSchemaWords(t *testing.T) {
	t.Parallel()
	schema := readDocumentSchema(t)
	of := map[string]string{
		"programs[0].join":                      "$defs.program.properties.join",
		"programs[0].rounding":                  "$defs.program.properties.rounding",
		"programs[0].returns":                   "$defs.program.properties.returns",
		"programs[0].negativeBalance":           "$defs.program.properties.negativeBalance",
		"programs[0].expiry.endOf":              "$defs.expiry.properties.endOf",
		"programs[0].tierBasis.metric":          "$defs.tierBasis.properties.metric",
		"programs[0].tierBasis.window":          "$defs.tierBasis.properties.window",
		"programs[0].rules[3].on":               "$defs.rule.properties.on",
		"programs[0].rules[0].category":         "$defs.rule.properties.category",
		"programs[0].rules[0].days[0]":          "$defs.rule.properties.days.items",
		"organization.settings.externalIds":     "$defs.organization.properties.settings.properties.externalIds",
		"organization.settings.cards.proof":     "$defs.organization.properties.settings.properties.cards.properties.proof",
		"organization.settings.secondFactor[0]": "$defs.organization.properties.settings.properties.secondFactor.items",
		"programs[0].payment.earnOn":            "$defs.payment.properties.earnOn",
		"rewards[0].status":                     "$defs.reward.properties.status",
		"webhooks[0].status":                    "$defs.webhook.properties.status",
		"rewards[0].fulfilment":                 "$defs.reward.properties.fulfilment",
		"rewards[0].effect.type":                "$defs.effect.properties.type",
		"segments[0].rule.all[0].any[0].field":  "$defs.segmentField", // and those that begin with a prefix
		"segments[0].rule.all[0].any[0].op":     "$defs.segmentRule.properties.op",
	}
	for path, part := range of {
		var words []string
		for _, word := range schema.part(part)["enum"].([]any) {
			words = append(words, word.(string))
		}
		if part == "$defs.segmentField" {
			words = append(words, "attributes.NOMBRE", "points:PROGRAMA")
		}
		raw := newDocumentAt(t).with(t, path, "x")
		if _, problems := readDocument(raw); !slices.Contains(problems, path+": debe ser "+alternatives(words)) {
			t.Errorf("%s: the schema has %q, and the code says %q", path, words, problems)
		}
		if schema.describes(raw) == nil {
			t.Errorf("%s may be any word", path)
		}
	}
	if enums := countKeyword(map[string]any(schema), "enum", false); enums != len(of) {
		t.Errorf("the schema has %d lists of words, and %d were looked at", enums, len(of))
	}
}

// countKeyword counts a keyword, except inside a oneOf, which only narrows another part
// of the schema.
func countKeyword(v any, keyword string, narrowing bool) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if name == keyword && !narrowing {
				n++
			}
			n += countKeyword(member, keyword, narrowing || name == "oneOf")
		}
	case []any:
		for _, element := range v {
			n += countKeyword(element, keyword, narrowing)
		}
	}
	return n
}

// letters are n characters of two bytes each.
func letters(n int) string { return strings.Repeat("é", n) }

func slugOfLength(n int) string { return strings.Repeat("a", n) }

// limitCases have, for each limit of the schema, the last value within it and the first
// one beyond it.
var limitCases = []struct {
	path    string
	in, out any
	why     string
}{
	{"organization.slug", slugOfLength(50), slugOfLength(51), "maxLength"},
	{"organization.slug", "a-1", "a--1", "pattern"},
	{"organization.name", letters(100), letters(101), "maxLength"},
	{"organization.name", "é", "", "minLength"},
	{"organization.plan.name", letters(100), letters(101), "maxLength"},
	{"organization.profile.country", "ES", "es", "pattern"},
	{"organization.profile.logoUrl", "https://" + slugOfLength(1992), "https://" + slugOfLength(1993), "maxLength"},
	{"organization.profile.primaryColor", "#0aF123", "#0aF12", "pattern"},
	{"organization.settings.timezone", "UTC", "", "minLength"},
	{"organization.settings.currency", "EUR", "Eur", "pattern"},
	{"organization.settings.language", "es-ES", "es-es", "pattern"},
	{"organization.settings.language", "es-419", "fr", "pattern"},
	{"organization.settings.language", "en-GB", "pt-BR", "pattern"},
	{"organization.settings.language", "en", "english", "pattern"},
	{"programs[1].key", slugOfLength(50), slugOfLength(51), "pattern"},
	{"programs[0].name", letters(100), letters(101), "maxLength"},
	{"programs[0].currency", letters(100), letters(101), "maxLength"},
	{"programs[0].currency", docTree{"one": letters(100), "many": "Lunas"}, docTree{"one": letters(101), "many": "Lunas"}, "maxLength"},
	{"programs[0].currency", docTree{"one": "Luna", "many": letters(100)}, docTree{"one": "Luna", "many": letters(101)}, "maxLength"},
	{"programs[0].currency", docTree{"one": "Luna", "many": "Lunas"}, docTree{"one": "Luna"}, "required"},
	{"programs[0].pointsDecimals", 4, 5, "maximum"},
	{"programs[0].pointsDecimals", 0, -1, "minimum"},
	{"programs[1].expiry.days", 36_525, 36_526, "maximum"},
	{"programs[1].expiry.days", 1, 0, "minimum"},
	{"programs[0].expiry.months", 1200, 1201, "maximum"},
	{"programs[0].expiry.months", 1, 0, "minimum"},
	{"programs[0].tierBasis.months", 1200, 1201, "maximum"},
	{"programs[0].tierBasis.months", 1, 0, "minimum"},
	{"programs[0].tiers[0].name", letters(100), letters(101), "maxLength"},
	{"programs[0].tiers[0].threshold", 0, -1, "minimum"},
	{"programs[0].tiers[1].threshold", 99999999999.9999, 1e11, "maximum"},
	{"programs[0].tiers[1].multiplier", 1, 0.9999, "minimum"},
	{"programs[0].rules[1].key", slugOfLength(50), slugOfLength(51), "pattern"},
	{"programs[0].rules[1].name", letters(100), letters(101), "maxLength"},
	{"programs[0].rules[1].multiplier", 1, 0.9999, "minimum"},
	{"programs[0].rules[1].multiplier", 99999999999.9999, 1e11, "maximum"},
	{"programs[0].rules[0].minAmount", 0.0001, 0, "exclusiveMinimum"},
	{"programs[0].rules[0].skus[0]", letters(100), letters(101), "maxLength"},
	{"programs[0].rules[0].skus[0]", "*", "", "minLength"},
	{"programs[0].rules[0].hours.from", "23:59", "24:00", "pattern"},
	{"programs[0].rules[0].hours.to", "00:00", "0:00", "pattern"},
	{"programs[0].rules[0].maxPerCustomerPerDay", 0, -1, "minimum"},
	{"programs[0].rules[0].maxPerCustomer", 1, 0, "minimum"},
	{"programs[0].rules[0].every", 1, 0, "minimum"},
	{"programs[0].rules[0].maxPoints", 0.1, 0, "exclusiveMinimum"},
	{"programs[0].rules[0].budget", 99999999999.9, 1e11, "maximum"},
	{"programs[0].rules[0].minQuantity", 0.0001, 0, "exclusiveMinimum"},
	{"programs[0].rules[0].excludeSkus[0]", letters(100), letters(101), "maxLength"},
	{"programs[0].payment.excludeSkus[0]", "*", "", "minLength"},
	{"programs[0].excludeSkus[0]", "*", "", "minLength"},
	{"programs[0].rules[0].labels.pago[0]", letters(100), letters(101), "maxLength"},
	{"programs[0].rules[0].labels.pago[0]", "x", "", "minLength"},
	{"programs[0].rules[0].labels.pago", []any{"x"}, []any{}, "minItems"},
	{"programs[0].rules[0].per.amount", 0.0001, 0, "exclusiveMinimum"},
	{"programs[0].rules[0].per.points", 99999999999.9999, 1e11, "maximum"},
	{"programs[0].rules[2].perItem", 0.0001, 0, "exclusiveMinimum"},
	{"programs[0].rules[3].points", 0.1, 0, "exclusiveMinimum"},
	{"programs[0].rules[2].pendingDays", 0, -1, "minimum"},
	{"programs[0].rules[2].expiresInDays", 36_525, 36_526, "maximum"},
	{"rewards[0].key", slugOfLength(50), slugOfLength(51), "pattern"},
	{"rewards[0].name", letters(100), letters(101), "maxLength"},
	{"rewards[0].imageUrl", "https://" + slugOfLength(1992), "https://" + slugOfLength(1993), "maxLength"},
	{"rewards[0].pointsCost", 0.0001, 0, "exclusiveMinimum"},
	{"rewards[0].stock", 0, -1, "minimum"},
	{"rewards[0].limitPerCustomer", 1, 0, "minimum"},
	{"rewards[0].validDays", 0, -1, "minimum"},
	{"rewards[0].validDays", 36_525, 36_526, "maximum"},
	{"rewards[0].effect.percent", 0.0001, 0, "exclusiveMinimum"},
	{"rewards[0].effect.percent", 100, 100.0001, "maximum"},
	{"rewards[0].effect", map[string]any{"type": "Amount", "amount": 99999999999.9999}, map[string]any{"type": "Amount", "amount": 1e11}, "maximum"},
	{"rewards[0].effect", map[string]any{"type": "Product", "sku": letters(100)}, map[string]any{"type": "Product", "sku": letters(101)}, "maxLength"},
	{"rewards[0].effect", map[string]any{"type": "Product", "sku": "é"}, map[string]any{"type": "Product", "sku": ""}, "minLength"},
	{"segments[0].key", "vip", "Vip", "pattern"},
	{"segments[0].name", letters(100), letters(101), "maxLength"},
	{"segments[0].rule.all", []any{map[string]any{"field": "phone", "op": "=", "value": true}}, []any{}, "minItems"},
	{"webhooks[0].key", "crm", "Crm", "pattern"},
	{"webhooks[0].url", "https://" + slugOfLength(1992), "https://" + slugOfLength(1993), "maxLength"},
	{"webhooks[0].events", []any{"*"}, []any{}, "minItems"},
	{"webhooks[0].events", slices.Repeat([]any{"*"}, 25), slices.Repeat([]any{"*"}, 26), "maxItems"},
	{"webhooks", webhooksOf(10), webhooksOf(11), "maxItems"},
	{"webhooks[0].events[0]", "points.*", "points.*.*", "pattern"},
}

// webhooksOf returns n webhooks of a document.
func webhooksOf(n int) (list []any) {
	for i := range n {
		list = append(list, map[string]any{"key": fmt.Sprint("w", i), "url": "https://example.com/", "events": []any{"*"}})
	}
	return list
}

// TestSchemaLimits: the schema and the code both accept a value at a limit, and both
// refuse the next one.
func TestSchemaLimits(t *testing.T) {
	skipRace(t)
	t.Parallel()
	schema := readDocumentSchema(t)
	for _, test := range limitCases {
		raw := newDocumentAt(t).with(t, test.path, test.in)
		_, problems := readDocument(raw)
		if err := schema.describes(raw); err != nil || problems != nil {
			t.Errorf("%s = %.60v: the schema says %v, the code %q", test.path, test.in, err, problems)
		}
		raw = newDocumentAt(t).with(t, test.path, test.out)
		_, problems = readDocument(raw)
		if err := schema.describes(raw); err == nil || problems == nil {
			t.Errorf("%s = %.60v is beyond %s: the schema says %v, the code %q", test.path, test.out, test.why, err, problems)
		}
	}
}

// TestSchemaDefaults: fields that are left out get the defaults that the schema states.
func TestSchemaDefaults(t *testing.T) {
	t.Parallel()
	schema := readDocumentSchema(t)
	raw := setup{
		program: `"payment":{"points":10,"amount":1},"tiers":[{"name":"Uno"}],"rules":[{"key":"a","name":"A","points":1}]`,
		also: `"rewards":[{"key":"a","program":"club","name":"A","pointsCost":1}],"segments":[{"key":"a","name":"A","rule":{"field":"phone","op":"=","value":true}}],
			"webhooks":[{"key":"a","url":"https://example.com/","events":["*"]}]`,
	}.document()
	doc, problems := readDocument([]byte(strings.Replace(string(raw), `,"apiAccess":true`, "", 1)))
	if problems != nil {
		t.Fatal(problems)
	}
	told := 0
	var compare func(path string, at jsonSchema, v reflect.Value)
	compare = func(path string, at jsonSchema, v reflect.Value) {
		described := at
		at = schema.follow(at)
		for _, s := range []jsonSchema{described, at} {
			if want, ok := s["default"]; ok {
				told++
				if v.Kind() == reflect.Pointer {
					v = v.Elem()
				}
				if got := fmt.Sprint(v.Interface()); got != fmt.Sprint(want) {
					t.Errorf("%s: the schema says %v by default, and the code fills in %s", path, want, got)
				}
				break
			}
		}
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			v = v.Elem()
		}
		switch {
		case v.Kind() == reflect.Slice && v.Type() != reflect.TypeFor[json.RawMessage]() && v.Len() > 0:
			compare(path+"[0]", at["items"].(map[string]any), v.Index(0))
		case v.Kind() == reflect.Struct:
			for _, f := range reflect.VisibleFields(v.Type()) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				compare(path+"."+name, at["properties"].(map[string]any)[name].(map[string]any), v.FieldByIndex(f.Index))
			}
		}
	}
	compare("", schema, reflect.ValueOf(*doc))
	if want := countKeyword(map[string]any(schema), "default", false) - 1; told != want { // one is the name of a field
		t.Errorf("%d defaults were looked at, of %d", told, want)
	}
}

// TestSchemaRefuses: the schema refuses what the code refuses for its form.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	schema := readDocumentSchema(t)
	for _, test := range []struct {
		path  string
		value any
		why   string
	}{
		{"organization.x", 1, "no such field"},
		{"programs[0].rules[0].x", 1, "no such field"},
		{"rewards[0].id", "x", "documents have no ids"},
		{"organization", nil, "there has to be one"},
		{"programs[0].name", 5, "a number for a text"},
		{"programs[0].default", "true", "a text for a flag"},
		{"rewards[0].stock", 1.5, "a fraction for a whole number"},
		{"programs[0].rules[0].skus", map[string]any{}, "an object for a list"},
		{"programs[0].rules[1].points", 5, "two effects"},
		{"programs[0].rules[1].multiplier", nil, "no effect"},
		{"programs[0].expiry.days", 5, "days and months"},
		{"programs[1].expiry", map[string]any{}, "neither"},
		{"programs[0].tierBasis.window", "Lifetime", "a lifetime of months"},
		{"programs[0].tierBasis.window", "CalendarYear", "a calendar year of months"},
		{"programs[0].payment.amount", nil, "points that are worth nothing"},
		{"programs[0].payment.maxPercent", 0, "points that may pay nothing"},
		{"programs[1].tierBasis", map[string]any{"window": "Rolling"}, "a rolling window of no months"},
		{"rewards[0].fulfilment", "Immediate", "valid days of what is given at once"},
		{"rewards[0].effect.amount", 5, "a percentage and an amount"},
		{"rewards[0].effect.percent", nil, "a percentage of nothing"},
		{"rewards[0].effect.type", "Product", "a product without a sku"},
		{"webhooks[0].events[0]", "sales.*", "events that there are not"},
		{"webhooks[0].url", "", "no address"},
		{"segments[0].rule", map[string]any{}, "no rule"},
		{"segments[0].rule.op", "=", "an operator without a field"},
		{"segments[0].rule.field", "phone", "two rules in one"},
		{"segments[0].rule.all[0].any[0].value", "5000", "a text for a number"},
		{"segments[0].rule.all[0].any[1].not.value", 1, "a number for a text"},
		{"segments[0].rule.all[0].any[1].not.op", ">", "an operator that texts do not have"},
		{"segments[0].rule.all[1].value", 1, "a number for a flag"},
		{"segments[0].rule.all[1]", map[string]any{"field": "birthMonth", "op": "=", "value": 13}, "no month"},
		{"segments[0].rule.all[1]", map[string]any{"field": "points:club", "op": "=", "value": "a"}, "a text for points"},
		{"segments[0].rule.all[1]", map[string]any{"field": "attributes.", "op": "=", "value": "a"}, "no attribute"},
		{"segments[0].rule.all[1]", map[string]any{"field": "attributes.a", "op": "<", "value": "a"}, "an operator that texts do not have"},
		{"segments[0].rule.all[1]", map[string]any{"field": "attributes.a", "op": "=", "value": []any{}}, "a list for an attribute"},
		{"segments[0].rule.all[1].op", ">=", "an operator that flags do not have"},
	} {
		raw := newDocumentAt(t).with(t, test.path, test.value)
		_, problems := readDocument(raw)
		if err := schema.describes(raw); err == nil || problems == nil {
			t.Errorf("%s: %s = %v: the schema says %v, the code %q", test.why, test.path, test.value, err, problems)
		}
	}
}

// TestSchemaOfDocument: a document may name its schema, which changes nothing.
func TestSchemaOfDocument(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	if out := s.ok("apply -schema"); out != string(documentSchema) {
		t.Errorf("apply -schema prints\n%s", out)
	}
	if code, _, errs := s.run("apply -schema luna.json"); code != 2 || !strings.Contains(errs, "no lleva argumentos") {
		t.Errorf("with a document: exit %d, %s", code, errs)
	}
	named := strings.Replace(string(demoDocument), "{", `{"$schema": "./document.schema.json",`, 1)
	s.ok("apply -", named)
	if out := s.ok("apply -", string(demoDocument)); !strings.Contains(out, "sin cambios") {
		t.Error(out)
	}
	if out := s.ok("export"); strings.Contains(out, "$schema") {
		t.Error(out)
	}
	linked := strings.Replace(string(demoDocument), `"slug"`, `"$schema": "x", "slug"`, 1)
	if code, _, errs := s.run("apply -", linked); code != 1 || !strings.Contains(errs, "organization.$schema: campo desconocido") {
		t.Errorf("elsewhere it is no field: exit %d, %s", code, errs)
	}
}
