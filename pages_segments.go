package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sello/internal/fold"
	"sello/internal/sheet"
)

// Segments: the list in words, the form of one, the customers in it, and points for all of them. The
// form edits segments that are one list of comparisons; others are changed in the document.

func segmentArea() panelArea {
	const one = "/panel/segmentos/{segmentId}"
	members := []formMember{
		wordMember("name"), wordMember("description"), figureMember("priority"), {name: "isActive", kind: checkMember}, wordMember("join"),
		{name: "rows", kind: madeMember, make: comparisonRows},
	}
	done := func(*panelRequest, string) string { return "/panel/segmentos?hecho=1" }
	return panelArea{[]panelPage{
		{"/panel/segmentos", "segments:read", "segments", segmentsPage},
		{"/panel/segmentos/nuevo", "config:write", "segment", withForms(segmentPage)},
		{"/panel/segmentos/{segmentId}", "config:write", "segment", withForms(segmentPage)},
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
	return f.newOr(v.New, "title.segment.new", v.Segment.Name)
}

func segmentPage(v *panelRequest) (any, fillFunc) {
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

// The customers in a segment: a list by cursor, and the same as a file.

func memberArea() panelArea {
	return panelArea{[]panelPage{
		{membersPath, "customers:read", "members", membersPage},
	}, []panelForm{fileForm(membersPath+"/csv", "data:export", membersPath, membersExport)}}
}

const membersPath = "/panel/segmentos/{segmentId}/clientes"

type membersView struct {
	Name, Sentence string
	Active         bool
	Begins         bool // the list begins with this page
	Rows           []customerRow
	Next           string // the address of the next page; "": there is none
	Few            bool   // the page is short, and is not the last
	Give           string // where everybody is given points; "" if the member may not
	Export         string // where the file is; "" if the member may not have it
}

func (v *membersView) title(*pageData) string { return v.Name }

func membersPage(v *panelRequest) (any, fillFunc) {
	view := &membersView{Begins: v.param("after") == ""}
	list := v.ask(listMembers, v.params("after")...)
	return view, func(t *txn) error {
		if err := v.member.mayAll("customers:read"); err != nil {
			return err
		}
		s := t.cfg.segment(pathIDOf(v.r, "segmentId"))
		if s == nil {
			return newError(codeSegmentNotFound)
		}
		view.Name, view.Sentence, view.Active = s.Name, wordingOf(v, t.cfg).segment(&s.Rule), s.IsActive
		if v.member.mayAll("points:write") == nil {
			view.Give = "/panel/segmentos/" + s.ID.String() + "/dar"
		}
		if v.member.mayAll("data:export") == nil {
			view.Export = v.r.URL.EscapedPath() + "/csv"
		}
		found, err := resultOf[walkedCustomers](t, list)
		if err != nil {
			return err
		}
		if next := textOr(found.Next, ""); next != "" {
			view.Next, view.Few = withQuery(v.r.URL.EscapedPath(), []pair{{"after", next}}), len(found.Data) < defaultLimit
		}
		view.Rows, err = newCustomerRows(v, t, found.Data, "")
		return err
	}
}

// mostMembersBytes bounds the file, which is made in memory. After that it names the command that
// writes all.
const mostMembersBytes = 64 << 20

// membersExport is the segment's customers as CSV, with the columns of a full export, guarded for
// spreadsheets. It is read as it is at several moments, so that no transaction takes long.
func membersExport(v *panelRequest) (*download, fillFunc) {
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	in := exportRequest{Kind: importCustomers, Full: true}
	file := &download{name: "segmento.csv", media: "text/csv; charset=utf-8"}
	b.WriteString(sheet.MarkUTF8)
	out.Write(columnsOf(in))
	part := func(t *txn) error {
		for _, p := range []permission{"customers:read", "data:export"} {
			if err := v.member.mayAll(p); err != nil {
				return err
			}
		}
		s := t.cfg.segment(pathIDOf(v.r, "segmentId"))
		if s == nil {
			return newError(codeSegmentNotFound)
		}
		in.Segment, file.name, file.data = s.Key, s.Key+".csv", segmentData(s.Key)
		page, err := exportRows(t, in)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			sheet.Guard(row)
			out.Write(row)
		}
		in.After = page.Next
		return nil
	}
	for err := v.fill(part); in.After > 0 || err != nil; err = v.fill(part) {
		if err != nil {
			return file, func(*txn) error { return err }
		}
		if b.Len() > mostMembersBytes {
			out.Write([]string{"… sello export customers -full -segment " + in.Segment})
			break
		}
	}
	out.Flush()
	file.body = b.Bytes()
	return file, func(*txn) error { return out.Error() }
}

// Points for all customers in a segment (contract §23). The page counts the customers first; its
// form is rehearsed, so that the review says how many customers get how many points, and done with
// the password. From then on the task of the server gives them (handouts.go), and the page shows
// how far that has come. Managers may do it, as they may give points one by one: what they give is
// within the same limit a day.

const handoutPath = "/panel/segmentos/{segmentId}/dar"

func handoutArea() panelArea {
	return panelArea{[]panelPage{{handoutPath, "points:write", "handout", withForms(handoutPage)}}, []panelForm{{
		path: handoutPath, need: "points:write", from: handoutPath, proof: true, handle: giveToSegment, prepare: countForForm,
		members: []formMember{{name: "amount", kind: amountMember}, {name: "category"}, {name: "comment", must: true}, {name: "expiresAt"}, {name: "loyaltyProgramId"}, {name: countedField}},
		shows: func(done any) any {
			h := done.(*handoutShape)
			return []any{h.Segment, h.Program, h.Points, h.Counted, h.Sum, h.Category, h.Expires}
		},
		done: func(v *panelRequest, _ string) string { return v.r.URL.EscapedPath() },
	}}}
}

// countedField is how many customers the server counts when the form comes.
const countedField = "customers"

// categoryCampaign is the category that the form offers first.
const categoryCampaign = "Campaign"

// giveToSegment reads the form as the API reads points that are given to one customer.
func giveToSegment(r *request) action {
	in := r.askedMovement(false)
	if _, present := r.fields.text("category", 100); !present {
		in.category = categoryCampaign
	}
	text, _ := r.fields.text(countedField, 20)
	counted, _ := strconv.ParseUint(text, 10, 64)
	return func(t *txn) (any, error) {
		s := t.cfg.segment(r.pathID("segmentId"))
		if s == nil {
			return nil, newError(codeSegmentNotFound)
		}
		p := t.cfg.Programs[0]
		if in.program != nil {
			var err error
			if p, err = t.program(*in.program); err != nil {
				return nil, err
			}
		}
		h, err := beginHandout(t, handout{Segment: s.ID, Program: p.Number, Points: in.amount, Category: in.category, Comment: in.comment, Expires: in.expires, Counted: counted})
		if err != nil {
			return nil, err
		}
		return newHandoutShape(t.cfg, h), nil
	}
}

type handoutShape struct {
	handout
	Name, Path string // of its segment; Path is "" if there is none any more
	Currency   currencyName
	Program    string // its key; "" if it is the only one
	Sum, Sent  decimal
}

func newHandoutShape(cfg *config, h *handout) *handoutShape {
	shape := &handoutShape{handout: *h}
	if s := cfg.segment(h.Segment); s != nil {
		shape.Name, shape.Path = s.Name, "/panel/segmentos/"+s.ID.String()+"/dar"
	}
	if p := cfg.programNumber(h.Program); p != nil {
		if shape.Currency = p.Currency; len(cfg.Programs) > 1 {
			shape.Program = p.Key
		}
	}
	shape.Sum, _ = h.times(h.Counted)
	shape.Sent, _ = h.times(h.Given)
	return shape
}

// countedAtOnce is how many pages of walkedAtOnce customers one request looks at.
const countedAtOnce = 20

// countSegment counts the customers in the segment of the path, or goes on with that. It reads
// them in several transactions, so that none takes long.
func (v *panelRequest) countSegment() (c segmentCount, err error) {
	s := v.cfg.segment(pathIDOf(v.r, "segmentId"))
	if s == nil {
		return c, newError(codeSegmentNotFound)
	}
	of := countOf{v.member.org, v.cfg.Version, s.ID}
	c = v.panel.counts.found(of, v.request.now)
	for n := 0; n < countedAtOnce && !c.Done && err == nil; n++ {
		err = v.fill(func(t *txn) error { return c.goOn(t, s) })
	}
	if err == nil {
		v.panel.counts.keep(of, c)
	}
	return c, err
}

// countForForm puts the number of customers into the form that was sent. It counts them anew:
// what is reviewed and confirmed is no count from before.
func countForForm(v *panelRequest) {
	c := segmentCount{}
	var err error
	if s := v.cfg.segment(pathIDOf(v.r, "segmentId")); s != nil {
		for !c.Done && err == nil {
			err = v.fill(func(t *txn) error { return c.goOn(t, s) })
		}
	} else {
		err = newError(codeSegmentNotFound)
	}
	if err != nil {
		v.faults = append(v.faults, publicError(err))
	}
	v.drop(countedField)
	v.posted = append(v.posted, pair{countedField, strconv.FormatUint(c.Active, 10)})
}

type handoutView struct {
	ID, Name, Sentence string
	Active             bool
	Count              segmentCount
	Categories         []choiceItem
	Programs           []choiceItem
	Limited            bool    // the member may give so many a day
	Left               decimal // of them today

	Last  *handoutShape // the organization's last one, if it is this segment's or under way; nil: none
	Under bool          // it is under way
	Own   bool          // it is this segment's
}

func (v *handoutView) title(f *pageData) string { return f.T("handout.give") }

// Polls reports whether the page is to be read again.
func (v *handoutView) Polls() bool { return v.Under || !v.Count.Done }

// Would is what the form that was reviewed would begin; nil: none was.
func (f *pageData) Would() *handoutShape {
	h, _ := f.request.reviewed.(*handoutShape)
	return h
}

func handoutPage(v *panelRequest) (any, fillFunc) {
	view := &handoutView{ID: v.r.PathValue("segmentId")}
	var err error
	if view.Count, err = v.countSegment(); err != nil {
		return nil, func(*txn) error { return err }
	}
	view.Categories = prose{v.format(), v.lang}.Choices("", "category.", earningCategories()...)
	return view, func(t *txn) error {
		s := t.cfg.segment(pathIDOf(v.r, "segmentId"))
		if s == nil {
			return newError(codeSegmentNotFound)
		}
		view.Name, view.Sentence, view.Active = s.Name, wordingOf(v, t.cfg).segment(&s.Rule), s.IsActive
		view.Programs = programChoices(t.cfg)
		h, err := handoutIn(t.Tx, t.org)
		if err != nil {
			return err
		}
		if h != nil {
			view.Under, view.Own = h.Ended == 0, h.Segment == s.ID
			if view.Under || view.Own {
				view.Last = newHandoutShape(t.cfg, h)
			}
			if view.Under {
				v.api.engine.askForHandouts()
			}
		}
		view.Left, view.Limited, err = t.keys.leftToday(v.member.user.ID)
		return err
	}
}
