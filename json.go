package main

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// This file parses what clients send, strictly: request bodies and queries. Handlers
// read the result field by field.

// An object is the members of one JSON object, or the parameters of a query, in the
// order they came and without duplicates. Names are unescaped. A value of a JSON object
// is kept as its text, which is valid JSON.
type object []pair

type pair struct{ name, value string }

// get returns the value of the member called name, spelled exactly so.
func (o object) get(name string) (value string, ok bool) {
	for i := range o {
		if o[i].name == name {
			return o[i].value, true
		}
	}
	return "", false
}

// duplicate returns the index of the first member that has the name of an earlier one,
// if there is one.
func (o object) duplicate() (i int, found bool) {
	const few = 16 // up to here, comparing all is cheaper than a set
	if len(o) <= few {
		for i := range o {
			if _, found := o[:i].get(o[i].name); found {
				return i, true
			}
		}
		return 0, false
	}
	seen := make(map[string]struct{}, len(o))
	for i := range o {
		if seen[o[i].name] = struct{}{}; len(seen) <= i {
			return i, true
		}
	}
	return 0, false
}

// maxDepth is how many objects and arrays may lie within one another, the
// outermost included.
const maxDepth = 64

// maxMembers is how many members and elements a body may have in all: more than any
// request needs. Without it a body of 1 MiB could have a hundred thousand and take a
// hundred times as long as any other.
// A batch of sales may have more: 100 long sales fit into 1 MiB.
const (
	maxMembers      = 10_000
	maxBatchMembers = 100_000
)

// A jsonFault is the first fault of a JSON text.
type jsonFault struct {
	reason       string // one of the reasons below, as clients get them
	line, column int    // where the fault begins, counted from 1; the column in characters
}

const (
	reasonSyntax    = "syntax" // also where a text is deeper or longer than maxDepth and maxMembers allow
	reasonNotObject = "not_an_object"
	reasonDuplicate = "duplicate_key"
	reasonTrailing  = "trailing_data"
	reasonNotUTF8   = "not_utf8"
)

// parseObject reads a request body (contract §1). The fault is nil only if body is
// valid UTF-8 and one JSON object (RFC 8259), with only white space around it. It is at
// most maxDepth deep and has at most maxMembers members; no object in it has two
// members of the same name, and no \u escape is half of a surrogate pair. encoding/json
// takes every body that parseObject accepts; alone, it is loose on all of these.
//
// The time is proportional to the length of body.
func parseObject(body []byte) (object, *jsonFault) { return parseObjectOf(body, maxMembers) }

// parseObjectOf is parseObject with another bound on members. No text has more of them
// than bytes.
func parseObjectOf(body []byte, most int) (object, *jsonFault) {
	text := string(body)
	p := splitter{stack: make(object, 0, 16), left: most}
	if !p.cutObject(text) {
		return nil, p.faultIn(text)
	}
	return p.stack, nil
}

// A splitter checks JSON text in one pass. A cut function reads what its argument
// begins with and returns the rest.
//
// The stack holds the members read so far of every object that is still open, the
// outermost first.
type splitter struct {
	stack  object
	left   int    // how many members and elements more there may be
	reason string // of the first fault; "" while there is none
	behind int    // bytes from that fault to the end of the text
}

// fail records a fault at the start of rest, unless there is one already. It returns
// the results of a cut function that fails.
func (p *splitter) fail(reason, rest string) (string, bool) {
	if p.reason == "" {
		p.reason, p.behind = reason, len(rest)
	}
	return "", false
}

// faultIn locates the fault in the whole text.
func (p *splitter) faultIn(text string) *jsonFault {
	before := text[:len(text)-p.behind]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return &jsonFault{p.reason, 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(line)}
}

// cutObject reads a text that is one object, with white space around it.
func (p *splitter) cutObject(text string) (ok bool) {
	s := skipSpace(text)
	if !utf8.ValidString(s) {
		_, ok = p.fail(reasonNotUTF8, s[validLength(s):])
		return ok
	}
	if !strings.HasPrefix(s, "{") {
		if _, ok = p.cutValue(s, 0); ok {
			_, ok = p.fail(reasonNotObject, s)
		}
		return ok
	}
	rest, ok := p.cutMembers(s, 1)
	if rest = skipSpace(rest); rest != "" {
		_, ok = p.fail(reasonTrailing, rest)
	}
	return ok
}

// validLength is how many bytes of s come before the first that is not UTF-8.
func validLength(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return len(s)
}

// cutMembers reads the object or array that s begins with and leaves its members on the
// stack. Elements of an array are members without a name. Those of inner arrays are not
// kept.
func (p *splitter) cutMembers(s string, depth int) (rest string, ok bool) {
	if depth > maxDepth {
		return p.fail(reasonSyntax, s)
	}
	named, end := s[0] == '{', "]"
	if named {
		end = "}"
	}
	first, whole := len(p.stack), s
	s = skipSpace(s[1:])
	for more := !strings.HasPrefix(s, end); more; {
		var m pair
		if named {
			if m.name, s, ok = cutString(s); !ok {
				return p.fail(reasonSyntax, s)
			}
			if s, ok = strings.CutPrefix(skipSpace(s), ":"); !ok {
				return p.fail(reasonSyntax, s)
			}
			s = skipSpace(s)
		}
		rest, ok := p.cutValue(s, depth)
		if p.left--; !ok || p.left < 0 {
			return p.fail(reasonSyntax, s)
		}
		m.value = s[:len(s)-len(rest)]
		if named || depth == 1 {
			p.stack = append(p.stack, m)
		}
		if s, more = strings.CutPrefix(skipSpace(rest), ","); more {
			s = skipSpace(s)
		}
	}
	if named {
		if i, found := p.stack[first:].duplicate(); found {
			return p.fail(reasonDuplicate, fromMember(whole, i, depth))
		}
	}
	if rest, ok = strings.CutPrefix(s, end); !ok {
		return p.fail(reasonSyntax, s)
	}
	return rest, true
}

// fromMember returns the text of an object from one of its members on. The members
// before that one are valid.
func fromMember(object string, member, depth int) string {
	p := splitter{left: len(object)}
	s := skipSpace(object[1:])
	for range member {
		_, s, _ = cutString(s)
		s, _ = p.cutValue(skipSpace(skipSpace(s)[1:]), depth)
		s = skipSpace(skipSpace(s)[1:])
	}
	return s
}

// cutValue reads a value inside an object or array that is depth deep.
func (p *splitter) cutValue(s string, depth int) (rest string, ok bool) {
	if s == "" {
		return p.fail(reasonSyntax, s)
	}
	switch s[0] {
	case '{', '[':
		open := len(p.stack)
		rest, ok = p.cutMembers(s, depth+1)
		p.stack = p.stack[:open]
	case '"':
		if _, rest, ok = cutString(s); !ok {
			return p.fail(reasonSyntax, rest)
		}
	case 't':
		rest, ok = strings.CutPrefix(s, "true")
	case 'f':
		rest, ok = strings.CutPrefix(s, "false")
	case 'n':
		rest, ok = strings.CutPrefix(s, "null")
	default:
		_, rest, ok = cutNumber(s)
	}
	if !ok {
		return p.fail(reasonSyntax, s)
	}
	return rest, true
}

// cutString reads the string literal that s begins with and returns the text that it
// stands for. If there is none, rest begins with the fault. s is valid UTF-8.
func cutString(s string) (text, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, `"`)
	if !ok {
		return "", s, false
	}
	var unescaped []byte // the text up to the last escape; nil if there was none
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			if text = s[:i]; unescaped != nil {
				text = string(append(unescaped, text...))
			}
			return text, s[i+1:], true
		case c < ' ':
			return "", s[i:], false
		case c == '\\':
			r, n := readEscape(s[i:])
			if n == 0 {
				return "", s[i:], false
			}
			unescaped = utf8.AppendRune(append(unescaped, s[:i]...), r)
			s, i = s[i+n:], -1
		}
	}
	return "", "", false
}

// readEscape returns the character that the backslash escape at the start of s
// stands for and the escape's length, which is 0 if it is none. The two
// halves of a surrogate pair are one escape; a half alone is none.
func readEscape(s string) (r rune, length int) {
	if len(s) < 2 {
		return 0, 0
	}
	if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2
	}
	r, ok := readCodeUnit(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	low, _ := readCodeUnit(s[6:])
	if r = utf16.DecodeRune(r, low); r == unicode.ReplacementChar {
		return 0, 0
	}
	return r, 12
}

// readCodeUnit returns the UTF-16 code unit of the \u escape that s begins with.
func readCodeUnit(s string) (unit rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// skipSpace drops the white space of JSON from the start of s.
func skipSpace(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\n' || s[0] == '\r' || s[0] == '\t') {
		s = s[1:]
	}
	return s
}

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
	object object
	list   string // set if the object is the element list[index], else ""
	index  int
}

// A fault holds err, the first error given to fail, or nil.
type fault struct{ err error }

// fail records err, unless it is nil or not the first. Handlers call it for faults that
// only they can find.
func (f *fault) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// field returns the name that errors have for a member: "price", or "items[3].price".
func (in input) field(name string) string {
	if in.list == "" {
		return name
	}
	return fmt.Sprintf("%s[%d].%s", in.list, in.index, name)
}

// invalid records that name is an invalid field and why, in Spanish.
func (in input) invalid(name, why string) {
	field := in.field(name)
	in.fail(invalidField(field, field+" "+why))
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
			in.invalid(name, fmt.Sprintf("no puede superar los %d caracteres", max))
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

// fields reads the members of a JSON object. Names must match exactly, null is absent,
// and a value of the wrong JSON type is an invalid field. The elements of a list share
// the fault of the whole body.
type fields struct{ input }

func newFields(o object) fields { return fields{input{fault: new(fault), object: o}} }

// literal returns the JSON text of a member, "" if it is absent or null.
func (in fields) literal(name string) string {
	literal, _ := in.object.get(name)
	if literal == "null" {
		return ""
	}
	return literal
}

// text reads a string of at most max code points, as clean keeps it.
func (in fields) text(name string, max int) (text string, present bool) {
	return in.textOr(name, max, codeInvalidField)
}

// textOr is text with an error code of its own for a text that is too long.
func (in fields) textOr(name string, max int, tooLong errorCode) (text string, present bool) {
	text, present = in.rawText(name)
	if !present {
		return "", false
	}
	return in.clean(name, text, max, tooLong)
}

// given reports whether a member is there, be it null.
func (in fields) given(name string) bool {
	_, ok := in.object.get(name)
	return ok
}

// patched reads a text of a PATCH: nil where it is absent, "" where it is null or blank,
// which clears the field (contract §11).
func (in fields) patched(name string, max int) *string {
	if !in.given(name) {
		return nil
	}
	text, _ := in.text(name, max)
	return &text
}

// members reads an object: nil if it is absent. ok is false if the value is no object.
func (in fields) members(name string) (o object, ok bool) {
	literal := in.literal(name)
	if literal == "" {
		return nil, true
	}
	if literal[0] != '{' {
		return nil, false
	}
	p := splitter{stack: object{}, left: len(literal)}
	p.cutMembers(literal, 1) // parseObject has found the object valid
	return p.stack, true
}

// id reads an identifier, as toID does.
func (in fields) id(name string) (u id, present bool) {
	text, _ := in.rawText(name)
	return toID(text)
}

// rawText reads a string without cleaning it.
func (in fields) rawText(name string) (text string, present bool) {
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
func (in fields) number(name string) (d decimal, present bool) {
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
// at fault, and an empty slice if it is empty.
func (in fields) list(name string, max int) []fields {
	literal := in.literal(name)
	if literal == "" {
		return nil
	}
	if literal[0] != '[' {
		in.invalid(name, "debe ser una lista")
		return nil
	}
	p := splitter{left: len(literal)}
	p.cutMembers(literal, 1) // parseObject has found the array valid
	if len(p.stack) > max {
		in.invalid(name, fmt.Sprintf("no puede superar los %d elementos", max))
		return nil
	}
	elements := make([]fields, len(p.stack))
	members := splitter{stack: make(object, 0, 4*len(elements)), left: len(literal)} // of all elements
	list := in.field(name)
	for i, element := range p.stack {
		if element.value[0] != '{' {
			in.invalid(fmt.Sprintf("%s[%d]", name, i), "debe ser un objeto")
			return nil
		}
		first := len(members.stack)
		members.cutMembers(element.value, 1)
		elements[i] = fields{input{in.fault, members.stack[first:], list, i}}
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
	var params object
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(name)
		if err != nil || !utf8.ValidString(name) {
			return bad()
		}
		value, err = url.QueryUnescape(value)
		if err != nil || !utf8.ValidString(value) {
			return bad()
		}
		params = append(params, pair{name, value})
	}
	if i, found := params.duplicate(); found {
		name := params[i].name
		return query{}, invalidField(name, name+" no puede repetirse")
	}
	return query{input{fault: new(fault), object: params}}, nil
}

// text reads a parameter of at most max code points, as clean keeps it.
func (q query) text(name string, max int) (text string, present bool) {
	text, _ = q.object.get(name)
	return q.clean(name, text, max, codeInvalidField)
}

// id reads an identifier, as toID does.
func (q query) id(name string) (u id, present bool) {
	text, _ := q.object.get(name)
	return toID(text)
}

// phone reads a phone number of any length. The + of an international number
// means a space in a query, and many clients forget to escape it: a number that
// starts with a space is read as starting with + (contract §7).
func (q query) phone(name string) (text string, present bool) {
	text, _ = q.object.get(name)
	number := trimBlanks(text)
	if strings.HasPrefix(text, " ") && number != "" && number[0] != '+' {
		text = "+" + number
	}
	return q.clean(name, text, anyLength, codeInvalidField)
}
