package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sello/internal/fold"
)

// Forms that change the configuration. Each lays its fields over the document as it is and
// applies the whole (document_apply.go), so that its checks and faults are those of a document. Such
// a form is applied only as it was reviewed: its page shows first what would change.

// codeConfigChanged says that the form was made from another configuration than there is.
var codeConfigChanged = errorCode{"configuration_changed", http.StatusConflict, "La configuración cambió desde que se abrió el formulario"}

// reviewedForms are the forms of a place that change the configuration: each is reviewed before
// it does, and then needs the password. A form that says what it needs has no fields but those
// of that part of the configuration.
func reviewedForms(labels string, all []panelForm) []panelForm {
	for i := range all {
		all[i].need, all[i].labels, all[i].prepare, all[i].proof = cmp.Or(all[i].need, "config:write"), labels, reviewFirst, true
	}
	return all
}

// reviewFirst turns a form into a rehearsal, unless its fields are those that were reviewed.
func reviewFirst(v *panelRequest) {
	_, asked := v.posted.get(reviewField)
	if sent, _ := v.posted.get(reviewedField); !asked && sent != postedDigest(v.posted) {
		v.posted = append(v.posted, pair{reviewField, "1"})
	}
}

// stampOf is the ETag of a configuration: another one says that somebody has changed it.
func stampOf(cfg *config) (string, error) {
	raw, err := json.Marshal(cfg.document())
	sum := sha256.Sum256(raw)
	return `"` + hex.EncodeToString(sum[:12]) + `"`, err
}

// A docTree is a document, or a part of one, as values of JSON.
type docTree = map[string]any

func treeOf(raw []byte) (tree docTree, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return tree, dec.Decode(&tree)
}

// layOver lays fields over a tree: objects member by member, everything else whole.
func layOver(tree, fields docTree) {
	for name, value := range fields {
		under, both := tree[name].(docTree)
		if part, is := value.(docTree); is && both {
			layOver(under, part)
			continue
		}
		tree[name] = value
	}
}

// listIn are the elements of a list of a tree.
func listIn(tree docTree, list string) []any {
	elements, _ := tree[list].([]any)
	return elements
}

// keyed is the index of the element with a key; -1 if there is none.
func keyed(elements []any, key string) int {
	return slices.IndexFunc(elements, func(e any) bool { return e.(docTree)["key"] == key })
}

// keyFor makes a key of a name that no element has.
func keyFor(name string, elements []any) string {
	const longest = 40
	key := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, fold.Text(name)), "-")
	for strings.Contains(key, "--") {
		key = strings.ReplaceAll(key, "--", "-")
	}
	if key = strings.Trim(key[:min(len(key), longest)], "-"); key == "" {
		key = "n"
	}
	free := key
	for n := 2; keyed(elements, free) >= 0; n++ {
		free = key + "-" + strconv.Itoa(n)
	}
	return free
}

// A docPlace is the part of a document that a form changes.
type docPlace struct {
	path   string // "rewards[2]"; "" is the whole document
	labels string // the names of its controls' texts begin so
	id     string // what the form leads to

	controls *strings.Replacer // makes names of controls of paths below path; nil: they are the same
}

// A docEdit lays a form's fields over a document.
type docEdit func(t *txn, r *request, tree, fields docTree) (docPlace, error)

// A configChanged is what a form did to the configuration, or would do.
type configChanged struct {
	ID string `json:"id"`
	*applied
}

// editing returns the handler of forms that change the configuration.
func editing(edit docEdit) func(*request) action {
	return documentAction(func(t *txn, r *request, fields docTree) (raw []byte, at docPlace, err error) {
		if raw, err = json.Marshal(t.cfg.document()); err != nil {
			return nil, at, err
		}
		tree, err := treeOf(raw)
		if err == nil {
			at, err = edit(t, r, tree, fields)
		}
		if err == nil {
			raw, err = json.Marshal(tree)
		}
		return raw, at, err
	})
}

// documentAction returns a handler that applies the document that make makes of the fields.
func documentAction(make func(t *txn, r *request, fields docTree) ([]byte, docPlace, error)) func(*request) action {
	return func(r *request) action {
		holds := ifMatch(r.Header)
		return func(t *txn) (any, error) {
			fields, err := treeOf(r.body)
			if err != nil {
				return nil, err
			}
			raw, at, err := make(t, r, fields)
			if err != nil {
				return nil, err
			}
			stamp, err := stampOf(t.cfg)
			if err != nil {
				return nil, err
			}
			if holds == nil || !holds(stamp) {
				changed := newError(codeConfigChanged)
				if would, err := applyIn(t, raw, true); err == nil {
					changed = changed.with("would", would)
				}
				return nil, changed
			}
			done, err := applyIn(t, raw, false)
			if errors.Is(err, errPlanAlone) {
				err = newError(codePlanAlone)
			}
			if err != nil {
				return nil, at.faults(err, raw)
			}
			return configChanged{at.id, done}, nil
		}
	}
}

// faults makes the faults of a document those of the form's fields.
func (at docPlace) faults(err error, raw []byte) error {
	wrong, is := errors.AsType[*documentError](err)
	if !is {
		return err
	}
	lines := linesOf(raw)
	var all []*apiError
	for _, p := range wrong.problems {
		field := ""
		if rest, below := strings.CutPrefix(p.path, at.path+"."); below && at.path != "" {
			if field = rest; strings.HasSuffix(rest, "]") { // an element has no control of its own
				field, _, _ = strings.Cut(rest, "[")
			}
		}
		if at.controls != nil {
			field = at.controls.Replace(field)
		}
		e := newError(codeDocumentFault).on(field).with("path", p.path).with("line", lines.of(p.path)).with("labels", at.labels)
		e.message, e.why = p.String(), p.sentence
		all = append(all, e)
	}
	first := *all[0]
	first.all = all
	return &first
}

// docLines are the lines on which the values of a document begin, by their paths.
type docLines map[string]int

// linesOf reads them. Of what is no document it has the line of the fault, under "".
func linesOf(raw []byte) docLines {
	if _, fault := parseObjectOf(raw, maxBatchMembers); fault != nil {
		return docLines{"": fault.line}
	}
	lines, dec, line, upTo := docLines{}, json.NewDecoder(bytes.NewReader(raw)), 1, 0
	next := func() json.Token {
		token, _ := dec.Token() // it was parsed before
		end := int(dec.InputOffset())
		line, upTo = line+bytes.Count(raw[upTo:end], []byte{'\n'}), end
		return token
	}
	var value func(path string)
	value = func(path string) {
		token := next()
		lines[path] = line
		switch token {
		case json.Delim('{'):
			for dec.More() {
				value(strings.TrimPrefix(fmt.Sprint(path, ".", next()), "."))
			}
			next()
		case json.Delim('['):
			for i := 0; dec.More(); i++ {
				value(fmt.Sprintf("%s[%d]", path, i))
			}
			next()
		}
	}
	value("")
	return lines
}

// of is the line of a path, or of what has it, if nothing is there.
func (l docLines) of(path string) int {
	for {
		if line, there := l[path]; there || path == "" {
			return max(line, 1)
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// words, figures and such are members of a body.
func wordMember(name string) formMember {
	return formMember{name: name, kind: madeMember, make: blankOr(func(_ *panelRequest, _, text string) string { return string(appendJSONString(nil, text)) })}
}

func figureMember(name string) formMember {
	return formMember{name: name, kind: madeMember, make: blankOr(func(v *panelRequest, name, text string) string { return v.amount(name, text) })}
}

// rowsMember is a list of texts, each on a line of its own.
func rowsMember(name string) formMember {
	return formMember{name: name, kind: madeMember, make: blankOr(func(_ *panelRequest, _, text string) string {
		var rows []string
		for row := range strings.SplitSeq(text, "\n") {
			if row = trimBlanks(row); row != "" {
				rows = append(rows, row)
			}
		}
		literal, _ := json.Marshal(rows) // texts can be written
		return string(literal)
	})}
}

// boxesMember is a list of the values of those boxes, name[0], name[1] …, that are checked.
func boxesMember(name string) formMember {
	return formMember{name: name, kind: madeMember, make: func(v *panelRequest, name string) string {
		var chosen []string
		for i := range maxRows {
			if value, is := v.posted.get(fmt.Sprintf("%s[%d]", name, i)); is && value != "" {
				chosen = append(chosen, value)
			}
		}
		literal, _ := json.Marshal(chosen)
		return string(literal) // null, if none is
	}}
}

// partMember is an object, whose members' controls are called name.member; taken out if all
// of them are blank.
func partMember(name string, of ...formMember) formMember {
	return formMember{name: name, kind: madeMember, make: func(v *panelRequest, name string) string {
		body := v.body(of, name+".")
		if len(body) > 0 && !slices.ContainsFunc(body, func(p pair) bool { return p.value != "null" }) {
			return "null"
		}
		if len(body) == 0 {
			return ""
		}
		return string(appendObject(nil, body))
	}}
}
