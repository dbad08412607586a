package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sello/internal/fold"
)

// Segments: who is in each, in words, and the form of one. The form has the segments that are
// one list of comparisons; others are changed in the document.

func segmentArea() panelArea {
	const one = "/panel/segmentos/{segmentId}"
	members := []formMember{
		wordMember("name"), wordMember("description"), figureMember("priority"), {name: "isActive", kind: checkMember}, wordMember("join"),
		{name: "rows", kind: madeMember, make: comparisonRows},
	}
	done := func(*panelRequest, string) string { return "/panel/segmentos?hecho=1" }
	return panelArea{[]panelPage{
		{"/panel/segmentos", "segments:read", "segments", segmentsPage},
		{"/panel/segmentos/nuevo", "config:write", "segment", segmentPage},
		{"/panel/segmentos/{segmentId}", "config:write", "segment", segmentPage},
	}, reviewedForms("segment", []panelForm{
		{path: "/panel/segmentos/nuevo", from: "/panel/segmentos/nuevo", members: members, handle: editing(editSegment), done: done},
		{path: one, from: one, members: members, handle: editing(editSegment), done: done},
		{path: one + "/quitar", from: one, handle: editing(removeSegment), done: done},
	})}
}

// comparisonRows are the rows of comparisons. A value is a number, true, false or a text, as
// its field wants it.
func comparisonRows(v *panelRequest, name string) string {
	v.list(formMember{name: name}) // renumbers them
	b, n := []byte{'['}, 0
	for i := range maxRows {
		at := name + "[" + strconv.Itoa(i) + "]."
		field, _ := v.posted.get(at + "field")
		op, _ := v.posted.get(at + "op")
		text, _ := v.posted.get(at + "value")
		if field == "" {
			continue
		}
		if field == attributeChoice {
			name, _ := v.posted.get(at + "attribute")
			field = attributeField + trimBlanks(name)
		}
		value := string(appendJSONString(nil, text))
		switch about, _ := segmentFieldOf(field); {
		case about.number != nil:
			value = v.amount(at+"value", text)
		case about.value != nil:
			value = v.attributeValue(at+"value", text)
		case about.flag != nil:
			value = "true"
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		b = appendObject(b, givenParams([]pair{{"field", string(appendJSONString(nil, field))}, {"op", string(appendJSONString(nil, op))}, {"value", value}}))
	}
	return string(append(b, ']'))
}

// attributeChoice stands for the fields of attributes in the choice of the form.
const attributeChoice = "attributes"

// attributeValue is what was typed of an attribute, as JSON: a number, yes or no, or else a text.
func (v *panelRequest) attributeValue(name, text string) string {
	text = trimBlanks(text)
	switch fold.Text(text) {
	case "true", fold.Text(tr(v.lang, "who.attribute.yes")):
		return "true"
	case "false", fold.Text(tr(v.lang, "who.attribute.no")):
		return "false"
	}
	if _, both, ok := v.format().readAmount(text); ok || len(both) > 0 {
		return v.amount(name, text)
	}
	return string(appendJSONString(nil, text))
}

// editSegment lays the form of a segment over a document: one that is there, or a new one.
func editSegment(t *txn, r *request, tree, fields docTree) (docPlace, error) {
	list := listIn(tree, "segments")
	i := len(list)
	if r.PathValue("segmentId") == "" {
		name, _ := fields["name"].(string)
		list = append(list, docTree{"key": keyFor(name, list)})
	} else {
		s := t.cfg.segment(r.pathID("segmentId"))
		if s == nil {
			return docPlace{}, newError(codeSegmentNotFound)
		}
		i = keyed(list, s.Key)
	}
	if join, asked := fields["join"].(string); asked {
		if join != "any" {
			join = "all"
		}
		list[i].(docTree)["rule"] = docTree{join: fields["rows"]}
	}
	delete(fields, "join")
	delete(fields, "rows")
	layOver(list[i].(docTree), fields)
	tree["segments"] = list
	return docPlace{path: "segments[" + strconv.Itoa(i) + "]", labels: "segment", controls: segmentControls}, nil
}

// segmentControls are the names of the form's controls, by the paths of the document.
var segmentControls = strings.NewReplacer("rule.all[", "rows[", "rule.any[", "rows[", "rule.all", "rows[0].field", "rule.any", "rows[0].field")

func removeSegment(t *txn, r *request, tree, _ docTree) (docPlace, error) {
	s := t.cfg.segment(r.pathID("segmentId"))
	if s == nil {
		return docPlace{}, newError(codeSegmentNotFound)
	}
	list := listIn(tree, "segments")
	i := keyed(list, s.Key)
	tree["segments"] = slices.Delete(list, i, i+1)
	return docPlace{}, nil
}

// A segmentsView is the list of segments in words.
type segmentsView struct {
	Rows []segmentRow
	Done bool
}

type segmentRow struct {
	ID             id
	Name, Sentence string
	About          *string
	Active         bool
	Used           []string // names of the rules and rewards that are for it
}

func segmentsPage(v *panelRequest) (any, fillFunc) {
	view := &segmentsView{Done: v.param("hecho") != ""}
	return view, func(t *txn) error {
		w := wordingOf(v, t.cfg)
		for _, s := range t.cfg.bySegmentPriority() {
			row := segmentRow{ID: s.ID, Name: s.Name, Sentence: w.segment(&s.Rule), About: s.Description, Active: s.IsActive}
			for _, p := range t.cfg.Programs {
				for _, r := range p.Rules {
					if slices.Contains(r.Segments, s.Key) {
						row.Used = append(row.Used, r.Name)
					}
				}
			}
			for _, r := range t.cfg.Rewards {
				if slices.Contains(r.Segments, s.Key) {
					row.Used = append(row.Used, r.Name)
				}
			}
			view.Rows = append(view.Rows, row)
		}
		return nil
	}
}

// A segmentView is the form of a segment.
type segmentView struct {
	Segment       segmentDoc
	ID, Sentence  string
	New, Removing bool
	Join          string
	Comparisons   []segmentRule
	Deep          bool       // the form cannot show its rule
	Programs      []*program // whose balances a comparison may look at
	Stamp         string
}

func (v *segmentView) title(f *pageData) string {
	if v.New {
		return f.T("title.segment.new")
	}
	return v.Segment.Name
}

func segmentPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &segmentView{ID: v.r.PathValue("segmentId"), Join: "all"}
	view.New = view.ID == ""
	view.Removing = v.posted != nil && v.route != v.page.path && !view.New
	return view, func(t *txn) (err error) {
		view.Programs = t.cfg.Programs
		if view.Segment.IsActive = true; !view.New {
			s := t.cfg.segment(pathIDOf(v.r, "segmentId"))
			if s == nil {
				return newError(codeSegmentNotFound)
			}
			view.Segment, view.Sentence = s.segmentDoc, wordingOf(v, t.cfg).segment(&s.Rule)
			switch rule := s.Rule; {
			case len(rule.All) > 0:
				view.Comparisons = rule.All
			case len(rule.Any) > 0:
				view.Join, view.Comparisons = "any", rule.Any
			default:
				view.Comparisons = []segmentRule{rule}
			}
			view.Deep = slices.ContainsFunc(view.Comparisons, func(r segmentRule) bool { return r.Field == "" })
		}
		view.Stamp, err = stampOf(t.cfg)
		return err
	}
}

// A comparisonControls is a row of the form of a segment.
type comparisonControls struct {
	Field, Attribute, Op, Value control
}

// segmentFieldNames are the fields in the order of the form's choice.
var segmentFieldNames = []string{"totalSpent", "transactionsCount", "lastTransactionAt", "createdAt", "balance", "lifetimePoints", "expiringWithin", "tier", "birthMonth", "email", "phone", "marketing", attributeChoice}

// ComparisonRows are the comparisons and two rows for more. The balances in programs can be
// compared where there are several.
func (v *segmentView) ComparisonRows(f *pageData) (rows []comparisonControls) {
	const more = 2
	fields, ops := []choiceItem{{"", f.T("segment.field.none")}}, []choiceItem{}
	for _, name := range segmentFieldNames {
		fields = append(fields, choiceItem{name, f.T("segment.field." + name)})
	}
	for _, p := range v.Programs {
		if len(v.Programs) > 1 {
			fields = append(fields, choiceItem{pointsField + p.Key, f.T("segment.field.points", p.Name)})
		}
	}
	for _, op := range []string{">=", "<=", ">", "<", "=", "!="} {
		ops = append(ops, choiceItem{op, f.T("segment.op." + op)})
	}
	for i := range len(v.Comparisons) + more {
		var r segmentRule
		if i < len(v.Comparisons) {
			r = v.Comparisons[i]
		}
		op, value, field := r.Op, r.valueText(f), r.Field
		attribute, is := strings.CutPrefix(r.Field, attributeField)
		if is {
			field = attributeChoice
		} else {
			attribute = ""
		}
		if segmentFields[r.Field].flag != nil { // true, or else the contrary
			if string(r.Value) == "false" {
				op = map[string]string{"=": "!=", "!=": "="}[op]
			}
			value = ""
		}
		at := "rows[" + strconv.Itoa(i) + "]."
		rows = append(rows, comparisonControls{f.Select(at+"field", "segment.rows.field", field, fields), f.Field(at+"attribute", "segment.rows.attribute", "text", attribute), f.Select(at+"op", "segment.rows.op", op, ops), f.Field(at+"value", "segment.rows.value", "text", value)})
	}
	return rows
}

// valueText is the value of a comparison for its control.
func (r *segmentRule) valueText(f *pageData) string {
	var d decimal
	var text string
	switch about, _ := segmentFieldOf(r.Field); {
	case about.value != nil && len(r.Value) > 0 && kindOfJSON(string(r.Value)) == 't':
		return f.T(map[string]string{"true": "who.attribute.yes", "false": "who.attribute.no"}[string(r.Value)])
	case (about.number != nil || about.value != nil) && json.Unmarshal(r.Value, &d) == nil:
		return f.Number(d)
	case (about.text != nil || about.value != nil) && json.Unmarshal(r.Value, &text) == nil:
		return text
	}
	return ""
}
