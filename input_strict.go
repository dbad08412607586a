package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sello/internal/nearest"
)

// Prefer: handling=strict (RFC 7240, contract §17). A strict request is told all faults of
// its body and query at once, and a name that nobody knows is one of them. A name is
// known if the handler asks its readers for it, so no list of names can go stale. A
// handler asks for all of its names, whatever it finds. Tests compare them with openapi.json.
//
// Names come first, since a misspelt one is often the cause of what follows, such as a
// required field that is not there. The rest is in the order of contract §3.

const (
	maxFaults    = 100 // that a strict request is told
	maxRowFaults = 10  // that one sale of a strict batch is told
)

// prefersStrict reports whether Prefer asks for handling=strict. Only the first preference
// called handling counts. What is malformed is ignored up to the next comma.
func prefersStrict(lines []string) bool {
	for _, line := range lines {
		for line != "" {
			var element string
			element, line = cutUnquoted(line, ',')
			preference, _ := cutUnquoted(element, ';') // its parameters follow
			name, word, _ := strings.Cut(preference, "=")
			if value, ok := readWord(word); ok && strings.EqualFold(strings.Trim(name, " \t"), "handling") {
				return len(value) == len("strict") && strings.EqualFold(value, "strict") // the length keeps ſ out
			}
		}
	}
	return false
}

// cutUnquoted cuts s around the first sep outside quoted strings (RFC 9110, 5.6.4).
func cutUnquoted(s string, sep byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == sep && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// readWord reads a token or a quoted string, with blanks around it. An empty one is no
// value, which is allowed.
func readWord(s string) (value string, ok bool) {
	s = strings.Trim(s, " \t")
	if !strings.HasPrefix(s, `"`) {
		return s, !strings.ContainsAny(s, "\" \t")
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), i == len(s)-1
		case '\\':
			if i++; i == len(s) {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", false
}

// A sent is one object of a body, or the parameters of a query, and its place.
type sent struct {
	object object
	list   string // set if the object is the element list[index] or the member list, else ""
	index  int    // memberIndex of a member
}

const memberIndex = -1

// field returns the name that errors have for a member: "price", or "items[3].price".
func (s sent) field(name string) string {
	switch {
	case s.list == "":
		return name
	case s.index == memberIndex:
		return s.list + "." + name
	}
	return s.list + "[" + strconv.Itoa(s.index) + "]." + name
}

// A strictness collects what is wrong with a strict body or query.
type strictness struct {
	read   []sent
	asked  map[string][]string // the names that a handler asked for, by list
	faults []*apiError         // at most maxFaults
}

func (s *strictness) ask(list, name string) {
	if known := s.asked[list]; !slices.Contains(known, name) {
		s.asked[list] = append(known, name)
	}
}

// fail records a fault. It leaves out further faults of a field: often the first is their cause.
func (s *strictness) fail(err error) {
	e := publicError(err)
	same := func(earlier *apiError) bool { return e.field != "" && earlier.field == e.field }
	if len(s.faults) < maxFaults && !slices.ContainsFunc(s.faults, same) {
		s.faults = append(s.faults, e)
	}
}

// unknown returns a fault for each name that nobody asked for, up to most faults.
func (s *strictness) unknown(most int) (faults []*apiError) {
	for _, o := range s.read {
		known := s.asked[o.list]
		for i := range o.object {
			if len(faults) == most {
				return faults
			}
			if name := o.object[i].name; !slices.Contains(known, name) {
				e := newError(codeUnknownField).on(o.field(shownName(name)))
				if near := nearest.Of(name, known); near != "" {
					e.message += " (¿" + near + "?)"
				}
				faults = append(faults, e)
			}
		}
	}
	return faults
}

// strictFault returns the first fault of a body and a query; its field all has up to most of
// their faults. It returns nil if there is none. body and query may be nil.
func strictFault(most int, body, query *strictness) error {
	var all []*apiError
	for _, s := range []*strictness{body, query} {
		if s != nil {
			all = append(all, s.unknown(most)...)
		}
	}
	for _, s := range []*strictness{body, query} {
		if s != nil {
			all = append(all, s.faults...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	first := *all[0]
	first.all = all[:min(len(all), most)]
	return &first
}

// maxShownName is how many characters of an unknown name a message shows.
const maxShownName = 60

// shownName returns a client's name for a message: cut, and with escapes for what cannot be
// seen or would disturb the text around it.
func shownName(name string) string {
	if name == "" {
		return `""`
	}
	var b strings.Builder
	left := maxShownName
	for _, r := range name {
		if left--; left < 0 {
			b.WriteString("…")
			break
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
