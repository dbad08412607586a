package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// The configuration of an organization as a document: how it is decoded, with the defaults of what
// it leaves out, and how two configurations differ.

// A document is what `sello apply` takes and `sello export` gives: all of an
// organization's configuration, without ids (contract §9). A list that is
// left out stays as it is; a list that is there is the whole list.
type document struct {
	Organization organization `json:"organization"`
	Programs     []programDoc `json:"programs"`
	Rewards      []rewardDoc  `json:"rewards"`
	Segments     []segmentDoc `json:"segments"`
	Webhooks     []webhookDoc `json:"webhooks"`
}

func (c *config) document() *document {
	d := &document{Organization: c.Organization, Programs: []programDoc{}, Rewards: []rewardDoc{}, Segments: []segmentDoc{}, Webhooks: []webhookDoc{}}
	for _, p := range c.Programs {
		d.Programs = append(d.Programs, p.programDoc)
	}
	for _, r := range c.Rewards {
		d.Rewards = append(d.Rewards, r.rewardDoc)
	}
	for _, s := range c.Segments {
		d.Segments = append(d.Segments, s.segmentDoc)
	}
	for _, w := range c.Webhooks {
		d.Webhooks = append(d.Webhooks, *w)
	}
	return d
}

// documentSchema is the JSON Schema of a document, for editors. Tests compare it
// with the code.
//
//go:embed document.schema.json
var documentSchema []byte

// checkedDocument decodes a document, fills in what may be left out, and checks what can be
// checked without the old configuration. The checker has the problems, and can check more.
// The document is nil if it is not JSON.
func checkedDocument(raw []byte) (*document, *checker) {
	doc, ck := new(document), new(checker)
	if len(bytes.TrimSpace(raw)) == 0 {
		ck.problems = []problem{{"", sentenceOf("está vacío")}}
		return nil, ck
	}
	if _, fault := parseObjectOf(raw, math.MaxInt); fault != nil { // any size: it comes from the operator
		ck.problems = []problem{{"", fault.sentence()}}
		return nil, ck
	}
	ck.decode("", raw, reflect.ValueOf(doc).Elem())
	doc.fillIn()
	ck.document(doc)
	return doc, ck
}

func (f *jsonFault) sentence() sentence {
	return sentenceOf("línea %d, columna %d: %s", f.line, f.column, map[string]sentence{
		reasonSyntax:    sentenceOf("no es JSON válido"),
		reasonNotObject: sentenceOf("debe ser un objeto"),
		reasonDuplicate: sentenceOf("el nombre está repetido en su objeto"),
		reasonTrailing:  sentenceOf("sobra lo que sigue al objeto"),
		reasonNotUTF8:   sentenceOf("no es UTF-8 válido"),
	}[f.reason])
}

// decode is json.Unmarshal with exact field names. It reports unknown fields and values
// of another type, and goes on. raw is valid JSON without repeated keys.
func (ck *checker) decode(path string, raw json.RawMessage, v reflect.Value) {
	raw = bytes.TrimSpace(raw)
	switch {
	case string(raw) == "null":
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		ck.decode(path, raw, v.Elem())
	case v.Kind() == reflect.Struct && raw[0] == '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			ck.unreadable(path, sentenceOf("%s", err))
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			at := strings.TrimPrefix(path+"."+name, ".")
			if at == "$schema" { // for editors; only at the top
				continue
			}
			field := fieldNamed(v, name)
			if !field.IsValid() {
				ck.problems = append(ck.problems, problem{at, sentenceOf("campo desconocido")})
				continue
			}
			if ck.decode(at, members[name], field); slices.Contains(limitNames, name) && isZeroNumber(members[name]) {
				ck.problems = append(ck.problems, problem{at, sentenceOf("0 no es un límite: quita el campo o la regla")})
			}
		}
	case v.Kind() == reflect.Map && raw[0] == '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			ck.unreadable(path, sentenceOf("%s", err))
		}
		v.Set(reflect.MakeMap(v.Type()))
		for _, name := range slices.Sorted(maps.Keys(members)) {
			value := reflect.New(v.Type().Elem()).Elem()
			ck.decode(path+"."+name, members[name], value)
			v.SetMapIndex(reflect.ValueOf(name), value)
		}
	case v.Kind() == reflect.Slice && v.Type() != reflect.TypeFor[json.RawMessage]() && raw[0] == '[':
		var elements []json.RawMessage
		if err := json.Unmarshal(raw, &elements); err != nil {
			ck.unreadable(path, sentenceOf("%s", err))
		}
		v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
		for i, e := range elements {
			ck.decode(fmt.Sprintf("%s[%d]", path, i), e, v.Index(i))
		}
	default:
		if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
			ck.unreadable(path, mustBe(v, raw, err))
		}
	}
}

// limitNames are the fields that limit something to at least 1. To leave one out is to have no
// limit; 0 would be read as that, or as never (contract §31).
var limitNames = []string{"maxPerCustomer", "every", "limitPerCustomer", "budget", "maxPoints"}

func isZeroNumber(raw json.RawMessage) bool {
	d, err := parseDecimal(string(bytes.TrimSpace(raw)))
	return err == nil && d == 0
}

func fieldNamed(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

func mustBe(v reflect.Value, raw json.RawMessage, err error) sentence {
	switch {
	case errors.Is(err, errTooPrecise):
		return sentenceOf("debe tener 4 decimales como máximo")
	case errors.Is(err, errTooLarge):
		return sentenceOf("no puede pasar de %s", maxDecimal)
	case v.Type() == reflect.TypeFor[currencyName]():
		return sentenceOf("debe ser un texto, o un objeto con one y many")
	case v.Type() == reflect.TypeFor[decimal]():
		return sentenceOf("debe ser un número")
	}
	switch v.Kind() {
	case reflect.String:
		return sentenceOf("debe ser un texto")
	case reflect.Bool:
		return sentenceOf("debe ser %s", anyOf{"true", "false"})
	case reflect.Slice:
		return sentenceOf("debe ser una lista")
	case reflect.Struct, reflect.Map:
		return sentenceOf("debe ser un objeto")
	}
	if strings.Trim(string(raw), "-0123456789") == "" {
		return sentenceOf("es un número demasiado grande")
	}
	return sentenceOf("debe ser un número entero")
}

// fillIn sets the default values of what a document leaves out.
func (d *document) fillIn() {
	d.Organization.fillIn()
	if len(d.Programs) == 1 {
		d.Programs[0].Default = true
	}
	for i := range d.Programs {
		p := &d.Programs[i]
		p.Join = cmp.Or(p.Join, joinDefault)
		if p.Currency == (currencyName{}) {
			p.Currency.Many = "Puntos"
		}
		p.Rounding = cmp.Or(p.Rounding, roundFloor)
		p.Returns = cmp.Or(p.Returns, returnsReverse)
		p.NegativeBalance = cmp.Or(p.NegativeBalance, negativeClamp)
		p.TierBasis.Metric = cmp.Or(p.TierBasis.Metric, metricPoints)
		p.TierBasis.Window = cmp.Or(p.TierBasis.Window, windowLifetime)
		if p.Payment != nil {
			p.Payment.EarnOn = cmp.Or(p.Payment.EarnOn, earnOnPaid)
		}
		for j := range p.Rules {
			p.Rules[j].On = cmp.Or(p.Rules[j].On, onPurchase)
		}
	}
	for i := range d.Rewards {
		d.Rewards[i].Status = cmp.Or(d.Rewards[i].Status, statusActive)
		d.Rewards[i].Fulfilment = cmp.Or(d.Rewards[i].Fulfilment, fulfilImmediate)
	}
	for i := range d.Webhooks {
		d.Webhooks[i].Status = cmp.Or(d.Webhooks[i].Status, statusActive)
	}
}

// sameDocument reports whether two configurations give the same document, byte
// for byte. It is false for a new organization.
func sameDocument(old, next *config) (bool, error) {
	if old.Number == 0 {
		return false, nil
	}
	before, err := json.Marshal(old.document())
	if err != nil {
		return false, err
	}
	after, err := json.Marshal(next.document())
	return bytes.Equal(before, after), err
}

// differences lists how the documents of two configurations differ, by path.
// Another order of what both have counts as a difference. Of a webhook's URL a difference shows
// scheme and host, which may be the same on both sides: it stays in the audit log, and is read by
// more people than may edit it.
func differences(old, next *config) ([]change, error) {
	from, to := map[string]any{}, map[string]any{}
	if old.Number != 0 {
		if err := flatten(old.document(), from); err != nil {
			return nil, err
		}
	}
	if err := flatten(next.document(), to); err != nil {
		return nil, err
	}
	changes := []change{}
	for _, path := range slices.Sorted(maps.Keys(to)) {
		before, ok := from[path]
		if keys, listed := to[path].(keyOrder); listed {
			if earlier, _ := before.(keyOrder); !keys.reorders(earlier) {
				continue
			}
		}
		if !ok || !reflect.DeepEqual(before, to[path]) {
			changes = append(changes, change{path, shownLeaf(path, before), shownLeaf(path, to[path])})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(from)) {
		if _, ok := to[path]; !ok && reflect.TypeOf(from[path]) != reflect.TypeFor[keyOrder]() {
			changes = append(changes, change{path, shownLeaf(path, from[path]), nil})
		}
	}
	return changes, nil
}

// shownLeaf is a value of a document as a difference shows it. A number is in plain digits, also
// one that was written as 1e6 (contract §31).
func shownLeaf(path string, v any) any {
	switch v := v.(type) {
	case string:
		if isReceiverPath(path) {
			return receiverShown(v)
		}
	case json.Number:
		if d, err := parseDecimal(v.String()); err == nil {
			return json.Number(d.String())
		}
	}
	return v
}

type keyOrder []string

// reorders reports whether the keys in both lists stand in another order.
func (o keyOrder) reorders(earlier keyOrder) bool {
	common := func(list, other keyOrder) keyOrder {
		return slices.DeleteFunc(slices.Clone(list), func(k string) bool { return !slices.Contains(other, k) })
	}
	return !slices.Equal(common(o, earlier), common(earlier, o))
}

func (o keyOrder) MarshalJSON() ([]byte, error) { return json.Marshal(o.String()) }
func (o keyOrder) String() string               { return strings.Join(o, ", ") }

// flatten puts every value of a document into leaves, under its path. In a path,
// an element that has a key is named by it, any other by its index.
func flatten(d *document, leaves map[string]any) error {
	raw, err := json.Marshal(d)
	if err != nil {
		return err
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return err
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if many, ok := v["many"].(string); ok && strings.HasSuffix(path, ".currency") { // its word, as where a word is both
				leaves[path], leaves[path+".one"] = many, v["one"]
				return
			}
			for name, member := range v {
				walk(strings.TrimPrefix(path+"."+name, "."), member)
			}
		case []any:
			var order keyOrder
			for i, element := range v {
				name := fmt.Sprint(i)
				if m, ok := element.(map[string]any); ok && m["key"] != nil {
					name = fmt.Sprint(m["key"])
					order = append(order, name)
				}
				walk(path+"["+name+"]", element)
			}
			if order != nil {
				leaves[path+".order"] = order
			}
		case nil:
		default:
			leaves[path] = v
		}
	}
	walk("", tree)
	return nil
}
