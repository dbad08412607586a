package main

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// What a change of the configuration would do, as a page shows it: the changes that
// `sello apply -dry-run` lists, by what they are about.

// A diffView is what a form would change.
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

// A diffList is groups of changes in a page, for the template "diff".
type diffList struct {
	Page   *pageData
	Groups []diffGroup
}

// Diff is the template's "diff".
func (f *pageData) Diff(groups []diffGroup) diffList { return diffList{f, groups} }

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
	var items []choiceItem
	for _, w := range words {
		items = append(items, choiceItem{w, d.T("word." + w)})
	}
	return d.Select(name, labelOf(d.Lang, d.labels, name), value, items)
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
