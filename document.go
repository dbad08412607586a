package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// A document is what `sello apply` takes and `sello export` gives: all of an
// organization's configuration, without ids (contract §9). A list that is
// left out stays as it is; a list that is there is the whole list.
type document struct {
	Organization organization `json:"organization"`
	Programs     []programDoc `json:"programs"`
	Rewards      []rewardDoc  `json:"rewards"`
	Segments     []segmentDoc `json:"segments"`
}

// document returns the configuration as a document.
func (c *config) document() *document {
	d := &document{Organization: c.Organization, Programs: []programDoc{}, Rewards: []rewardDoc{}, Segments: []segmentDoc{}}
	for _, p := range c.Programs {
		d.Programs = append(d.Programs, p.programDoc)
	}
	for _, r := range c.Rewards {
		d.Rewards = append(d.Rewards, r.rewardDoc)
	}
	for _, s := range c.Segments {
		d.Segments = append(d.Segments, s.segmentDoc)
	}
	return d
}

// documentSchema is the JSON Schema of a document, for editors. Tests compare it
// with the code.
//
//go:embed document.schema.json
var documentSchema []byte

// readDocument decodes a document, fills in what may be left out, and checks what
// can be checked without the old configuration. Each problem begins with its path.
func readDocument(raw []byte) (*document, []string) {
	doc := new(document)
	if _, fault := parseObjectOf(raw, math.MaxInt); fault != nil { // any size: it comes from the operator
		return nil, []string{fault.String()}
	}
	if problems := decodeStrict("", raw, reflect.ValueOf(doc).Elem()); len(problems) > 0 {
		return nil, problems
	}
	doc.fillIn()
	ck := new(checker)
	ck.document(doc)
	return doc, ck.problems
}

// String describes the fault in Spanish.
func (f *jsonFault) String() string {
	return fmt.Sprintf("línea %d, columna %d: %s", f.line, f.column, map[string]string{
		reasonSyntax:    "no es JSON válido",
		reasonNotObject: "debe ser un objeto",
		reasonDuplicate: "el nombre está repetido en su objeto",
		reasonTrailing:  "sobra lo que sigue al objeto",
		reasonNotUTF8:   "no es UTF-8 válido",
	}[f.reason])
}

// decodeStrict is json.Unmarshal with exact field names. It refuses unknown
// fields and says where each fault is. raw is valid JSON without repeated keys.
func decodeStrict(path string, raw json.RawMessage, v reflect.Value) []string {
	raw = bytes.TrimSpace(raw)
	switch {
	case string(raw) == "null":
		return nil
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decodeStrict(path, raw, v.Elem())
	case v.Kind() == reflect.Struct && raw[0] == '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return []string{path + ": " + err.Error()}
		}
		var problems []string
		for _, name := range slices.Sorted(maps.Keys(members)) {
			at := strings.TrimPrefix(path+"."+name, ".")
			if at == "$schema" { // for editors; only at the top
				continue
			}
			field := fieldNamed(v, name)
			if !field.IsValid() {
				problems = append(problems, at+": campo desconocido")
				continue
			}
			problems = append(problems, decodeStrict(at, members[name], field)...)
		}
		return problems
	case v.Kind() == reflect.Slice && v.Type() != reflect.TypeFor[json.RawMessage]() && raw[0] == '[':
		var elements []json.RawMessage
		if err := json.Unmarshal(raw, &elements); err != nil {
			return []string{path + ": " + err.Error()}
		}
		v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
		var problems []string
		for i, e := range elements {
			problems = append(problems, decodeStrict(fmt.Sprintf("%s[%d]", path, i), e, v.Index(i))...)
		}
		return problems
	}
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return []string{path + ": debe ser " + kindName(v)}
	}
	return nil
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

func kindName(v reflect.Value) string {
	if v.Type() == reflect.TypeFor[decimal]() {
		return "un número con 4 decimales como máximo"
	}
	switch v.Kind() {
	case reflect.String:
		return "un texto"
	case reflect.Bool:
		return "true o false"
	case reflect.Slice:
		return "una lista"
	case reflect.Struct:
		return "un objeto"
	}
	return "un número entero"
}

// fillIn sets the default values of what a document leaves out.
func (d *document) fillIn() {
	setDefault := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	setDefault(&d.Organization.Settings.Language, "es")
	if len(d.Programs) == 1 {
		d.Programs[0].Default = true
	}
	for i := range d.Programs {
		p := &d.Programs[i]
		setDefault(&p.Join, joinDefault)
		setDefault(&p.Currency, "Puntos")
		setDefault((*string)(&p.Rounding), string(roundFloor))
		setDefault(&p.Returns, returnsReverse)
		setDefault(&p.NegativeBalance, negativeClamp)
		setDefault(&p.TierBasis.Metric, metricPoints)
		setDefault(&p.TierBasis.Window, windowLifetime)
		for j := range p.Rules {
			setDefault(&p.Rules[j].On, onPurchase)
		}
	}
	for i := range d.Rewards {
		setDefault(&d.Rewards[i].Status, statusActive)
		setDefault(&d.Rewards[i].Fulfilment, fulfilImmediate)
	}
}
