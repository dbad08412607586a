package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

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

// A keyOrder holds the keys of a list, in its order.
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
