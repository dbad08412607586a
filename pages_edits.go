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
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sello/internal/fold"
)

// Forms that change the configuration. Each puts its fields into the current document and applies
// the whole (document_apply.go), so that the checks and faults are the document's. A form is
// applied only as it was reviewed: its page first shows what would change.

// codeConfigChanged says that the form was made from another configuration than there is.
var codeConfigChanged = errorCode{"configuration_changed", http.StatusConflict, "La configuración cambió desde que se abrió el formulario"}

// reviewedForms are the forms of a place that change the configuration: each is reviewed before
// it does, and then needs the password. A form that says what it needs has only fields
// of the part of the configuration that this permission is for.
func reviewedForms(labels string, all []panelForm) []panelForm {
	for i := range all {
		all[i].need, all[i].labels, all[i].prepare, all[i].proof = cmp.Or(all[i].need, "config:write"), labels, reviewFirst, true
	}
	return all
}

// reviewFirst turns a form into a rehearsal, unless its fields were reviewed as they are.
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

// faults makes faults of the form's fields of the faults of a document.
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

// linesOf reads the lines of a document; of a text that is no document, the line of its fault, under "".
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

// of is the line of a path; if nothing is there, the line of the nearest object or list around it.
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

// boxesMember is a list of the values of the checked boxes among name[0], name[1] …
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

// What a change of the configuration would do, as a page shows it: the changes that
// `sello apply -dry-run` lists, by what they are about.

type diffView struct {
	Groups   []diffGroup
	Warnings []string
	Digest   string // of the form's fields
	Conflict bool   // the changes lead from what somebody else stored to what was sent
}

// A diffGroup holds the changes of one thing, such as a rule.
type diffGroup struct {
	Title string
	Kind  string // added, changed or removed
	Rows  []diffRow
}

// A diffRow is one change. Without From it is added, without To removed.
type diffRow struct{ Path, Label, From, To string }

// Review describes what the submitted form would change; nil if no form was submitted, or if
// nothing is known about its effect.
func (f *pageData) Review() *diffView {
	view := &diffView{Digest: postedDigest(f.request.posted)}
	var would *applied
	if done, is := f.request.reviewed.(configChanged); is {
		would = done.applied
	}
	for _, e := range f.request.faults {
		if e.code == codeConfigChanged {
			would, _ = e.context["would"].(*applied)
			view.Conflict = true
		}
	}
	if would == nil {
		return nil
	}
	for _, w := range would.warned {
		if !f.May("config:write") { // they are about what such a form has not, nor may be seen
			break
		}
		text := sentenceText(f.Lang, w.sentence)
		if w.path != "" {
			text = f.titleOf(w.path) + ": " + text
		}
		view.Warnings = append(view.Warnings, text)
	}
	view.Groups = f.groupsOf(would.Changes)
	return view
}

// groupsOf are changes by what they are about.
func (f prose) groupsOf(changes []change) (groups []diffGroup) {
	for _, c := range changes {
		part, name := cutPath(c.Path)
		row := diffRow{c.Path, f.nameOf(name), f.changed(c.Path, c.From), f.changed(c.Path, c.To)}
		if isReceiverPath(c.Path) && row.From == row.To {
			row.To = f.T("webhook.url.rest", row.To)
		}
		title := f.titleOf(part)
		if n := len(groups); n == 0 || groups[n-1].Title != title {
			groups = append(groups, diffGroup{Title: title})
		}
		g := &groups[len(groups)-1]
		g.Rows = append(g.Rows, row)
	}
	for i := range groups {
		groups[i].Kind = changeKind(groups[i].Rows)
	}
	return groups
}

// changeKind is added or removed if all rows are; else changed.
func changeKind(rows []diffRow) string {
	added, removed := true, true
	for _, r := range rows {
		added, removed = added && r.From == "", removed && r.To == ""
	}
	switch {
	case added:
		return "added"
	case removed:
		return "removed"
	}
	return "changed"
}

// cutPath cuts a path behind the last thing that has a key: what remains is the name of a
// member of it.
func cutPath(path string) (part, name string) {
	if i := strings.LastIndex(path, "]."); i >= 0 {
		return path[:i+1], path[i+2:]
	}
	if part, name, ok := strings.Cut(path, "."); ok {
		return part, name
	}
	return "", path
}

var diffStep = regexp.MustCompile(`([A-Za-z]+)(?:\[([^\]]*)\])?`)

// titleOf is the name of a thing in a document: "Programa club › Regla martes".
func (f prose) titleOf(part string) string {
	var steps []string
	for _, step := range diffStep.FindAllStringSubmatch(part, -1) {
		steps = append(steps, strings.TrimSpace(f.nameOf(step[1])+" "+step[2]))
	}
	return strings.Join(steps, " › ")
}

// nameOf is what people call a member of a document; its own name, where they do not.
func (f prose) nameOf(name string) string {
	if f.Lang.Has("doc." + name) {
		return f.T("doc." + name)
	}
	if list, index, is := strings.Cut(strings.TrimSuffix(name, "]"), "["); is && f.Lang.Has("doc."+list) {
		if _, err := strconv.Atoi(index); err == nil { // the value says enough
			return f.T("doc." + list)
		}
		return f.T("doc."+list) + " " + index
	}
	if f.Lang.Has("field." + name) {
		return f.T("field." + name)
	}
	if first, rest, is := strings.Cut(name, "."); is {
		return f.nameOf(first) + " › " + f.nameOf(rest)
	}
	return name
}

// leaf is a value of a document in words; "" if there is none.
func (f prose) leaf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return f.T("yes")
		}
		return f.T("no")
	case json.Number:
		if d, err := parseDecimal(v.String()); err == nil {
			return f.format.Number(d)
		}
		return v.String()
	case string:
		return f.wordOf(v)
	case keyOrder:
		return v.String()
	}
	text, _ := jsonTextOf(v)
	return string(text)
}

// changed is a value that changes in words. A reward that is not active is archived, a webhook
// is not, and its events may be all.
func (f prose) changed(path string, v any) string {
	if text, is := v.(string); is && strings.HasPrefix(path, "webhooks[") {
		switch {
		case strings.HasSuffix(path, "].status"):
			return f.T("status." + text)
		case text == "*":
			return f.T("webhook.events.all")
		}
	}
	return f.leaf(v)
}

// wordOf is a word of the document in people's words, or the text itself.
func (f prose) wordOf(text string) string {
	if name := "word." + text; f.Lang.Has(name) {
		return f.T(name)
	}
	if text == "" {
		return "«»"
	}
	return text
}

// A docControls makes the controls of a part of a document.
type docControls struct {
	*pageData
	labels string
}

// Doc are the controls of a form whose texts' names begin so.
func (f *pageData) Doc(labels string) docControls { return docControls{f, labels} }

// Text, Figure, Area are controls with a value of a document.
func (d docControls) Text(name, value string) control {
	return d.Field(name, labelOf(d.Lang, d.labels, name), "text", value)
}

func (d docControls) Area(name, value string) control {
	return d.Field(name, labelOf(d.Lang, d.labels, name), "area", value)
}

func (d docControls) Figure(name, value string) control {
	return d.Field(name, labelOf(d.Lang, d.labels, name), "decimal", value)
}

// Box is a box that stands for yes.
func (d docControls) Box(name string, checked bool) boxView {
	b := boxView{ID: controlID(name), Name: name, Value: "1", Label: d.T(labelOf(d.Lang, d.labels, name)), Checked: d.checked(name, checked)}
	if hint := labelOf(d.Lang, d.labels, name) + ".hint"; d.Lang.Has(hint) {
		b.Hint = d.T(hint)
	}
	return b
}

// Choice is a control with some words of the document.
func (d docControls) Choice(name, value string, words ...string) control {
	return d.Select(name, labelOf(d.Lang, d.labels, name), value, d.Choices("", "word.", words...))
}

// Stamp is that of the configuration that the form is about: that of the page, and after
// somebody else's change the new one.
func (f *pageData) Stamp(now string) string {
	for _, e := range f.request.faults {
		if e.code == codeConfigChanged {
			return now
		}
	}
	return f.Kept(etagField, now)
}

func (f *pageData) PathID(name string) string { return f.request.r.PathValue(name) }
