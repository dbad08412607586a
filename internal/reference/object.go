// Package reference makes one HTML page of an OpenAPI document: its routes by tag with
// their fields, answers, error codes and curl lines, and its schemas. The page has no
// script and takes nothing from elsewhere.
//
// It knows the part of OpenAPI 3.1 that its tests name, and leaves out what else a document
// has.
package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// An object is a JSON object whose members keep their order, which encoding/json's maps
// lose. The values are objects, []any, string, json.Number, bool or nil.
type object []member

type member struct {
	Name  string
	Value any
}

// parse reads a JSON text.
func parse(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return next(d)
}

func next(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		o := object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := next(d)
			if err != nil {
				return nil, err
			}
			o = append(o, member{name.(string), value})
		}
		_, err := d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := next(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := d.Token()
		return list, err
	}
	return token, nil
}

// get returns a member's value; nil if there is none.
func (o object) get(name string) any {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

func (o object) object(name string) object { v, _ := o.get(name).(object); return v }
func (o object) list(name string) []any    { v, _ := o.get(name).([]any); return v }
func (o object) text(name string) string   { v, _ := o.get(name).(string); return v }

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, v := range []any{m.Name, m.Value} {
			if j > 0 {
				b.WriteByte(':')
			}
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			if err := e.Encode(v); err != nil {
				return nil, err
			}
			b.Truncate(b.Len() - 1) // the end of line
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// indented is a value as JSON for people.
func indented(v any) string {
	var b, out bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil || json.Indent(&out, b.Bytes(), "", "  ") != nil {
		return ""
	}
	return strings.TrimSpace(out.String())
}

// A document is an OpenAPI document.
type document struct{ object }

// resolved follows a $ref and returns what it names, with the members beside the $ref laid
// over it, and the last part of its name.
func (d document) resolved(v any) (o object, name string) {
	o, _ = v.(object)
	ref := o.text("$ref")
	if ref == "" {
		return o, ""
	}
	var at any = d.object
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		parent, _ := at.(object)
		at, name = parent.get(part), part
	}
	base, ok := at.(object)
	if !ok {
		return nil, name
	}
	over := append(object{}, base...)
	for _, m := range o {
		if m.Name != "$ref" {
			over = append(object{m}, over...)
		}
	}
	return over, name
}

// check returns an error for a $ref that leads nowhere.
func (d document) check(v any) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := d.check(item); err != nil {
				return err
			}
		}
	case object:
		if ref := v.text("$ref"); ref != "" {
			if o, _ := d.resolved(object{{"$ref", ref}}); o == nil {
				return fmt.Errorf("reference: %s names nothing", ref)
			}
		}
		for _, m := range v {
			if err := d.check(m.Value); err != nil {
				return err
			}
		}
	}
	return nil
}
