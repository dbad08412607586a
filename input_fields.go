package main

import (
	"fmt"
	"math"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Handlers read the fields of a body and the parameters of a query by the readers of
// this file.

// Maximum lengths of texts, in characters, and of lists (contract §1).
const (
	maxName       = 100
	maxComment    = 500
	maxSearch     = 100
	maxSKU        = 100
	maxExternalID = 255
	maxItems      = 500 // of one sale
)

// anyLength is the max of a text whose length is checked elsewhere.
const anyLength = math.MaxInt

// An input is what fields and query have in common: named values, and the first
// fault found in them. Handlers read the fields in the order of the
// specification and look at err once, at the end, so that the first fault in
// that order is the one reported (contract §3).
//
// A value that is absent or at fault reads as zero and not present.
type input struct {
	*fault
	sent
}

// A fault holds err, the first error given to fail, or nil.
type fault struct {
	err    error
	strict *strictness // collects all of them; nil: the request is not strict
}

// fail records err, unless it is nil or not the first. Handlers call it for faults that
// only they can find.
func (f *fault) fail(err error) {
	if f.err == nil {
		f.err = err
	}
	if f.strict != nil && err != nil {
		f.strict.fail(err)
	}
}

// beStrict makes the readers collect all faults and known names.
func (in input) beStrict() {
	if in.fault != nil { // a GET has no body
		in.strict = &strictness{read: []sent{in.sent}, asked: map[string][]string{}}
	}
}

// collected returns what the readers have collected; nil if the request is not strict.
func (in input) collected() *strictness {
	if in.fault == nil {
		return nil
	}
	return in.strict
}

// get returns the value of a member. Its name is known from now on.
func (in input) get(name string) (value string, ok bool) {
	if in.strict != nil {
		in.strict.ask(in.list, name)
	}
	return in.object.get(name)
}

// invalid records that name is an invalid field and why, in Spanish.
func (in input) invalid(name, format string, args ...any) {
	in.fail(invalidField(in.field(name), format, args...))
}

// clean returns a client's text as it is stored (contract §1): without blanks, tabs and
// newlines at its ends, at most max code points long and without other control
// characters, which are refused at the ends too. A blank text is absent. A text that is
// too long is the error with code tooLong.
func (in input) clean(name, text string, max int, tooLong errorCode) (cleaned string, present bool) {
	text = trimBlanks(text)
	switch {
	case len(text) > max && utf8.RuneCountInString(text) > max:
		if tooLong != codeInvalidField {
			in.fail(newError(tooLong).on(in.field(name)))
		} else {
			in.invalid(name, "no puede superar los %d caracteres", max)
		}
	case strings.ContainsFunc(text, forbidden):
		in.invalid(name, "contiene caracteres no permitidos")
	default:
		return text, text != ""
	}
	return "", false
}

// forbidden reports whether r may not stand in a text: control characters, and
// the code points that Unicode promises never to make characters.
func forbidden(r rune) bool {
	if r < 0x7f {
		return r < ' ' && r != '\n' && r != '\t'
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Noncharacter_Code_Point, r)
}

// trimBlanks drops white space from both ends of a text. Control characters other than
// newline and tab stay, so that they are refused.
func trimBlanks(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) && !forbidden(r) })
}

// toID reads an identifier. A malformed one becomes the zero id, which nothing has: for
// clients it is "not found", never invalid (contract §1).
func toID(text string) (u id, present bool) {
	text = trimBlanks(text)
	u, _ = parseID(text)
	return u, text != ""
}

// A fieldReader reads the members of a JSON object. Names must match exactly, null is absent,
// and a value of the wrong JSON type is an invalid field. The elements of a list share
// the fault of the whole body.
type fieldReader struct{ input }

func newFields(o object) fieldReader { return fieldReader{input{new(fault), sent{object: o}}} }

// literal returns the JSON text of a member, "" if it is absent or null.
func (in fieldReader) literal(name string) string {
	literal, _ := in.get(name)
	if literal == "null" {
		return ""
	}
	return literal
}

// text reads a string of at most max code points, as clean keeps it.
func (in fieldReader) text(name string, max int) (text string, present bool) {
	return in.textOr(name, max, codeInvalidField)
}

// textOr is text with an error code of its own for a text that is too long.
func (in fieldReader) textOr(name string, max int, tooLong errorCode) (text string, present bool) {
	text, present = in.rawText(name)
	if !present {
		return "", false
	}
	return in.clean(name, text, max, tooLong)
}

// flag reads a member that is true or false. An absent one is false.
func (in fieldReader) flag(name string) bool {
	literal := in.literal(name)
	if literal != "" && literal != "true" && literal != "false" {
		in.invalid(name, "debe ser %s", anyOf{"true", "false"})
	}
	return literal == "true"
}

// given reports whether a member is there, be it null.
func (in fieldReader) given(name string) bool {
	_, ok := in.get(name)
	return ok
}

// patched reads a text of a PATCH: nil where it is absent, "" where it is null or blank,
// which clears the field (contract §11).
func (in fieldReader) patched(name string, max int) *string {
	if !in.given(name) {
		return nil
	}
	text, _ := in.text(name, max)
	return &text
}

// members reads an object: nil if it is absent. ok is false if the value is no object.
func (in fieldReader) members(name string) (o object, ok bool) {
	literal := in.literal(name)
	if literal == "" {
		return nil, true
	}
	if literal[0] != '{' {
		return nil, false
	}
	p := splitter{stack: object{}, left: len(literal)}
	p.cutMembers(literal, 1) // parseObjectOf has found the object valid
	return p.stack, true
}

// inner reads an object whose members have readers of their own; given is false if it is absent
// or at fault.
func (in fieldReader) inner(name string) (inside fieldReader, given bool) {
	members, ok := in.members(name)
	if !ok {
		in.invalid(name, "debe ser un objeto")
	}
	if members == nil {
		return inside, false
	}
	one := sent{members, in.field(name), memberIndex}
	if in.strict != nil {
		in.strict.read = append(in.strict.read, one)
	}
	return fieldReader{input{in.fault, one}}, true
}

// id reads an identifier, as toID does.
func (in fieldReader) id(name string) (u id, present bool) {
	text, _ := in.rawText(name)
	return toID(text)
}

// givenID is what a reader of ids returns: nil if none was given.
func givenID(u id, given bool) *id {
	if !given {
		return nil
	}
	return new(u) // u itself would always be allocated
}

// rawText reads a string without cleaning it.
func (in fieldReader) rawText(name string) (text string, present bool) {
	literal := in.literal(name)
	if literal == "" {
		return "", false
	}
	text, _, ok := cutString(literal)
	if !ok {
		in.invalid(name, "debe ser un texto")
	}
	return text, ok
}

// number reads a decimal. One that it cannot hold is too_precise or too_large.
func (in fieldReader) number(name string) (d decimal, present bool) {
	literal := in.literal(name)
	if literal == "" {
		return 0, false
	}
	d, err := parseDecimal(literal)
	switch err {
	case nil:
		return d, true
	case errTooPrecise:
		in.fail(newError(codeTooPrecise).on(in.field(name)))
	case errTooLarge:
		in.fail(newError(codeTooLarge).on(in.field(name)))
	default:
		in.invalid(name, "debe ser un número")
	}
	return 0, false
}

// list reads an array of at most max objects. It returns nil if the array is absent or
// at fault, and an empty slice if it is empty. In a strict request it skips elements that
// are no objects, so that faults of the others are told too.
func (in fieldReader) list(name string, max int) []fieldReader {
	literal := in.literal(name)
	if literal == "" {
		return nil
	}
	if literal[0] != '[' {
		in.invalid(name, "debe ser una lista")
		return nil
	}
	p := splitter{left: len(literal)}
	p.cutMembers(literal, 1) // parseObjectOf has found the array valid
	if len(p.stack) > max {
		in.invalid(name, "no puede superar los %d elementos", max)
		return nil
	}
	elements := make([]fieldReader, 0, len(p.stack))
	members := splitter{stack: make(object, 0, 4*len(p.stack)), left: len(literal)} // of all elements
	list := in.field(name)
	for i, element := range p.stack {
		if element.value[0] != '{' {
			in.invalid(fmt.Sprintf("%s[%d]", name, i), "debe ser un objeto")
			if in.strict == nil {
				return nil
			}
			continue
		}
		first := len(members.stack)
		members.cutMembers(element.value, 1)
		one := sent{members.stack[first:], list, i}
		elements = append(elements, fieldReader{input{in.fault, one}})
		if in.strict != nil {
			in.strict.read = append(in.strict.read, one)
		}
	}
	return elements
}

// query reads the parameters of a URL. An empty parameter is absent.
type query struct{ input }

// parseQuery reads the part of a URL after the question mark. A semicolon, a bad
// escape, text that is not UTF-8 and a parameter that comes twice are errors, because
// other programs would read them differently from what the client means.
func parseQuery(raw string) (query, error) {
	bad := func() (query, error) { return query{}, invalidField("", "La consulta no es válida") }
	if strings.Contains(raw, ";") {
		return bad()
	}
	params, ok := parseURLEncoded(raw)
	if !ok {
		return bad()
	}
	if i, found := params.duplicate(); found {
		name := params[i].name
		return query{}, invalidField(name, "no puede repetirse")
	}
	return query{input{new(fault), sent{object: params}}}, nil
}

// parseURLEncoded splits application/x-www-form-urlencoded into its pairs. Two pairs may
// have one name. ok is false for a bad escape and for text that is not UTF-8.
func parseURLEncoded(raw string) (pairs object, ok bool) {
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(name)
		if err != nil || !utf8.ValidString(name) {
			return nil, false
		}
		value, err = url.QueryUnescape(value)
		if err != nil || !utf8.ValidString(value) {
			return nil, false
		}
		pairs = append(pairs, pair{name, value})
	}
	return pairs, true
}

// text reads a parameter of at most max code points, as clean keeps it.
func (q query) text(name string, max int) (text string, present bool) {
	text, _ = q.get(name)
	return q.clean(name, text, max, codeInvalidField)
}

// id reads an identifier, as toID does.
func (q query) id(name string) (u id, present bool) {
	text, _ := q.get(name)
	return toID(text)
}

// phone reads a phone number of any length. The + of an international number
// means a space in a query, and many clients forget to escape it: a number that
// starts with a space is read as starting with + (contract §7).
func (q query) phone(name string) (text string, present bool) {
	text, _ = q.get(name)
	number := trimBlanks(text)
	if strings.HasPrefix(text, " ") && number != "" && number[0] != '+' {
		text = "+" + number
	}
	return q.clean(name, text, anyLength, codeInvalidField)
}
