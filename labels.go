package main

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Labels of sales: what a till says of one, as how it was paid (contract §21).

// A label is a text under a name of the till's own: pago, efectivo.
type label struct{ Name, Value string }

// Bounds of a sale's labels; lengths are in characters.
const (
	maxLabels     = 10
	maxLabelName  = 40
	maxLabelValue = 100
)

// labelMark stands between name and value where the panel shows labels.
const labelMark = ": "

func (l *label) fields(c *coder) { c.text(&l.Name); c.text(&l.Value) }

// isSound reports whether name and value are there, within their bounds and without control
// characters, trimmed.
func (l label) isSound() bool {
	return isLabelText(l.Name, maxLabelName) && isLabelText(l.Value, maxLabelValue)
}

func isLabelText(text string, most int) bool {
	return text != "" && utf8.RuneCountInString(text) <= most && trimBlanks(text) == text &&
		!strings.ContainsFunc(text, func(r rune) bool { return forbidden(r) || unicode.IsControl(r) })
}

// saleLabels are the labels of a sale, in the order of their names. In JSON they are an object.
type saleLabels []label

// newSaleLabels returns labels as a sale keeps them. A label that is not sound, one too many, and a
// name that is there twice once it is trimmed are labels_invalid.
func newSaleLabels(list ...label) (saleLabels, error) {
	kept := make(saleLabels, len(list))
	for i, l := range list {
		kept[i] = label{trimBlanks(l.Name), trimBlanks(l.Value)}
	}
	slices.SortFunc(kept, func(a, b label) int { return cmp.Compare(a.Name, b.Name) })
	distinct := slices.CompactFunc(slices.Clone(kept), func(a, b label) bool { return a.Name == b.Name })
	if len(kept) > maxLabels || len(distinct) < len(kept) || slices.ContainsFunc(kept, func(l label) bool { return !l.isSound() }) {
		return nil, newError(codeLabelsInvalid).on("labels")
	}
	return kept, nil
}

// labelsIn returns the labels that a JSON object tells. A value that is no text is labels_invalid.
func labelsIn(members object) (saleLabels, error) {
	list := make([]label, len(members))
	for i, m := range members {
		text, _, _ := cutString(m.value) // "", which is not sound, if it is no text
		list[i] = label{m.name, text}
	}
	return newSaleLabels(list...)
}

// areSound reports whether newSaleLabels could have made these labels.
func (v saleLabels) areSound() bool {
	kept, err := newSaleLabels(v...)
	return err == nil && slices.Equal(kept, v)
}

func (v saleLabels) appendJSON(b []byte) []byte {
	b = append(b, '{')
	for i, l := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSONString(append(appendJSONString(b, l.Name), ':'), l.Value)
	}
	return append(b, '}')
}

func (v saleLabels) MarshalJSON() ([]byte, error) { return v.appendJSON(nil), nil }

// meet reports whether the labels have one of the values asked for under each of the names. Letter
// case does not matter.
func (v saleLabels) meet(asked map[string][]string) bool {
	for name, values := range asked {
		if !slices.ContainsFunc(v, func(l label) bool {
			return strings.EqualFold(l.Name, name) && slices.ContainsFunc(values, func(value string) bool { return strings.EqualFold(l.Value, value) })
		}) {
			return false
		}
	}
	return true
}

// An item is one line of a sale.
type item struct {
	SKU      string  `json:"sku"`
	Price    decimal `json:"price"` // of one
	Quantity decimal `json:"quantity"`
}

func (v item) appendJSON(b []byte) []byte {
	b = appendJSONString(append(b, `{"sku":`...), v.SKU)
	b = v.Price.append(append(b, `,"price":`...))
	b = v.Quantity.append(append(b, `,"quantity":`...))
	return append(b, '}')
}
