package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// The strict parser of request bodies; handlers read its result field by field (input_fields.go).
// At the end, how answers become JSON, the most frequent ones without reflection.

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
// A batch may have more: 100 long sales fit into 1 MiB.
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

// parseObjectOf reads a request body (contract §1). The fault is nil only if body is
// valid UTF-8 and one JSON object (RFC 8259), with only white space around it. It is at
// most maxDepth deep and has at most as many members as most says; no object in it has two
// members of the same name, and no \u escape is half of a surrogate pair. encoding/json
// takes every body that parseObjectOf accepts; alone, it is loose on all of these.
//
// The time is proportional to the length of body.
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
// stack. Elements of an array are members without a name. Elements of inner arrays
// are not kept.
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

// encode returns a response's body: JSON without HTML escapes, with a newline at its end.
func encode(v any) ([]byte, error) {
	if a, ok := v.(jsonAppender); ok {
		return append(a.appendJSON(make([]byte, 0, 640)), '\n'), nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// A jsonAppender appends its own JSON to b, byte for byte what encode would write
// for it by reflection. The most frequent answers implement it.
type jsonAppender interface {
	appendJSON(b []byte) []byte
}

// appendJSONList appends a list; nil is null.
func appendJSONList[T jsonAppender](b []byte, list []T) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = v.appendJSON(b)
	}
	return append(b, ']')
}

func appendJSONID(b []byte, v *id) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	return v.appendJSON(b)
}

func appendJSONText(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return appendJSONString(b, *s)
}

// appendJSONString quotes a text as encoding/json does. A text with anything to
// escape is left to encoding/json itself.
func appendJSONString(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == '"' || c == '\\' {
				return appendEscaped(b, s)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return appendEscaped(b, s)
		}
		i += size
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendEscaped(b []byte, s string) []byte {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.Encode(s) // a string and a buffer in memory cannot fail
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
