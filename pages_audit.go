package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sello/internal/fold"
	"sello/internal/sheet"
)

// The audit log: who changed what, when and from where. A member who may read it in part sees
// what auditShare says. Also what a form kept over a log-in contains, for the page before it.

const auditPath = "/panel/auditoria"

func auditArea() panelArea {
	return panelArea{[]panelPage{
		{auditPath, "audit:read", "audit", auditPageOf},
	}, []panelForm{fileForm(auditPath+"/exportar", "audit:read", auditPath, auditExport)}}
}

// auditParams are what each kind of entries is filtered by: parameters of the API's.
var auditParams = []string{"actor", "action", "subject", "from", "to"}

// everyKind is the page's word for entries of every kind.
const everyKind = "All"

// auditKind is which entries the page shows: changes, unless its query means others.
func auditKind(v *panelRequest) string {
	return cmp.Or(v.param("kind"), auditKindOf(v.param("action")))
}

// auditQuery is the page's query as parameters of the API's.
func auditQuery(v *panelRequest) []pair {
	params := v.params(auditParams...)
	if kind := auditKind(v); kind != everyKind {
		params = append(params, pair{"kind", kind})
	}
	return params
}

// auditTabs lead to each kind of entries. An action stays chosen where there are such entries.
func auditTabs(v *panelRequest) (tabs []navItem) {
	for _, kind := range []string{auditKindChange, auditKindSession, everyKind} {
		params := slices.DeleteFunc(v.params(auditParams...), func(p pair) bool {
			return p.name == "action" && kind != everyKind && auditKindOf(p.value) != kind
		})
		tabs = append(tabs, navItem{withQuery(auditPath, append(params, pair{"kind", kind})), "audit.kind." + kind, kind == auditKind(v)})
	}
	return tabs
}

type auditView struct {
	Kind, Actor, Action, Subject, From, To string

	Tabs   []navItem
	Rows   []auditRow
	Actors []choiceItem // nil: the member sees its own entries
	Keys   bool         // and the entries of keys
	Pager  pagerView
	Total  uint64
	Export string // where its CSV is; "" if the member may not have that
}

// An auditRow is an entry, with the names that its ids have now.
type auditRow struct {
	auditShape
	Who     string
	By      string // what the list is filtered by to find all of who; "" if nothing is
	About   aboutItem
	Changes []changeRow
	More    int    // changes that are not shown
	Figures string // amount and points, of a sale or of points by hand
}

// An aboutItem is what an entry is about. Path is its page, if there is one that the member
// may open.
type aboutItem struct{ Name, ID, Path string }

// A changeRow is a field before and after, in words.
type changeRow struct {
	Field, Before, After string
	Unsaid               bool // the log says of the field only that it changed
}

// A page shows so many changes of an entry, and so many characters of a value.
const (
	changesShown = 12
	valueShown   = 160
)

func auditPageOf(v *panelRequest) (any, fillFunc) {
	view := &auditView{Kind: auditKind(v), Actor: v.param("actor"), Action: v.param("action"), Subject: v.param("subject"), From: v.param("from"), To: v.param("to"), Tabs: auditTabs(v)}
	entries := v.ask(listAudit, append(auditQuery(v), v.params("page")...)...)
	return view, func(t *txn) error {
		found, err := resultOf[listShape[auditShape]](t, entries)
		if err != nil {
			return err
		}
		if view.Rows, err = lines(v, found.Data, func(e auditShape) (auditRow, error) { return newAuditRow(v, t, e) }); err != nil {
			return err
		}
		view.Pager, view.Total = pager(v, found.Meta), found.Meta.Total
		view.Keys = v.may("keys:manage")
		if v.member.role.may("audit:read") == grantAll {
			if view.Actors, err = makerChoices(t); err != nil {
				return err
			}
			view.Actors = withChoice(view.Actors, view.Actor)
		}
		if v.member.mayAll("data:export") == nil {
			view.Export = withQuery(auditPath+"/exportar", append(v.params(auditParams...), pair{"kind", view.Kind}))
		}
		return nil
	}
}

func newAuditRow(v *panelRequest, t *txn, e auditShape) (row auditRow, err error) {
	f := prose{v.format(), v.lang}
	row = auditRow{auditShape: e}
	row.Who, row.By = actorOf(e.Actor)
	if e.Subject != nil {
		if row.About, err = v.about(t, e.Action, *e.Subject); err != nil {
			return row, err
		}
	}
	if row.Figures, err = entryFigures(t, f.format, &e); err != nil {
		return row, err
	}
	shown := e.Changes[:min(len(e.Changes), changesShown)]
	row.More = len(e.Changes) - len(shown)
	for _, c := range shown {
		if row.Figures != "" && (c.Field == "amount" || c.Field == "loyaltyProgramId") { // they stand in the line
			continue
		}
		is := changeRow{f.fieldName(e.Action, c.Field), f.auditValue(c.Field, c.Before), f.auditValue(c.Field, c.After), c.Before == "" && c.After == ""}
		if isReceiverPath(c.Field) && is.Before == is.After {
			is.After = f.T("webhook.url.rest", is.After)
		}
		row.Changes = append(row.Changes, is)
	}
	return row, nil
}

// entryFigures is the amount and the points of what an entry is about; "" if it has none.
func entryFigures(t *txn, f *format, e *auditShape) (string, error) {
	word := strings.TrimSuffix(strings.TrimSuffix(e.Action, ".created"), ".returned")
	if e.Subject == nil || word != "transaction" {
		return pointsMoved(t, f, e), nil
	}
	u, _ := parseID(*e.Subject)
	s, err := t.sales.get(u)
	if errors.Is(err, newError(codeTransactionNotFound)) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	shape, err := newSaleShape(t, s)
	if err != nil {
		return "", err
	}
	words := f.MoneyWithCode(s.Total)
	for i, share := range sharesOf(t.cfg, &shape) {
		if n := share.moved(s.Type); n != 0 || i == 0 {
			words += " · " + strings.Replace(f.Points(n, share.Currency), "-", "−", 1)
		}
	}
	return words, nil
}

// pointsMoved are the points of an entry of points by hand, with their currency; "" of others.
// Older entries do not name the program: it is known where there is only one.
func pointsMoved(t *txn, f *format, e *auditShape) (text string) {
	if !strings.HasPrefix(e.Action, "points.") {
		return ""
	}
	var of *program
	var n decimal
	if len(t.cfg.Programs) == 1 {
		of = t.cfg.Programs[0]
	}
	for _, c := range e.Changes {
		switch c.Field {
		case "amount":
			if d, err := parseDecimal(string(c.After)); err == nil {
				n, text = d, f.Number(d)
			}
		case "loyaltyProgramId":
			if u, ok := parseID(strings.Trim(string(c.After), `"`)); ok {
				of = t.cfg.program(u)
			}
		}
	}
	if text != "" && of != nil {
		text = f.Points(n, of.Currency)
	}
	return text
}

// fieldName is the name of a field that an action changed, in words.
func (f prose) fieldName(action, field string) string {
	word, _, _ := strings.Cut(action, ".")
	for _, name := range []string{"field." + word + "." + field, "field." + field} {
		if f.Lang.Has(name) {
			return f.T(name)
		}
	}
	part, name := cutPath(field)
	return strings.TrimPrefix(f.titleOf(part)+" › "+f.nameOf(name), " › ")
}

// auditValue is a value of a change as the panel's forms show it: yes or no, a number, money
// with its currency, a moment or a day, a role or another word by its name.
func (f prose) auditValue(field string, value jsonText) string {
	if value == "" {
		return ""
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(string(value)))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return string(value)
	}
	return shortened(f.auditLeaf(field, v))
}

func shortened(text string) string {
	if utf8.RuneCountInString(text) > valueShown {
		text = string([]rune(text)[:valueShown]) + "…"
	}
	return text
}

func (f prose) auditLeaf(field string, v any) string {
	switch v := v.(type) {
	case json.Number:
		if d, err := parseDecimal(v.String()); err == nil && isMoney(field) {
			return f.format.MoneyWithCode(d)
		}
	case string:
		return f.auditText(field, v)
	case []any:
		var texts []string
		for _, one := range v {
			texts = append(texts, f.auditLeaf(field, one))
		}
		return strings.Join(texts, ", ")
	}
	return f.leaf(v)
}

// freeFields are fields with texts of the shop's own, which stay as they are. One may be
// called as a word of the document is.
var freeFields = []string{"name", "description", "currency", "one", "key", "program", "tiers", "segments", "skus", "sku", "industry", "value", "order"}

// auditWords begin the names of the texts of a field's values, where these are called otherwise than
// the words of every document.
var auditWords = map[string][]string{
	"role": {"role."}, "secondFactor": {"role."}, "theme": {"account.theme."}, "field": {"segment.field."}, "op": {"segment.op."},
	"status": {"redemption.", "status."}, // of redemptions, customers and webhooks
}

func (f prose) auditText(field, text string) string {
	last, _, _ := strings.Cut(field[strings.LastIndex(field, ".")+1:], "[")
	kinds := auditWords[last]
	switch {
	case slices.Contains(freeFields, last) && text != "":
		return text
	case last == "scopes":
		return f.scopeText(text)
	case last == "category" && f.Lang.Has("category."+text):
		return f.T("category." + text)
	case strings.HasPrefix(field, "rewards["):
		kinds = nil
	}
	for _, kind := range kinds {
		if f.Lang.Has(kind + text) {
			return f.T(kind + text)
		}
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return f.format.Moment(instantOf(at))
	}
	if at, err := time.Parse(time.DateOnly, text); err == nil {
		return f.format.DayAndYear(dayOf(instantOf(at), time.UTC))
	}
	return f.wordOf(text)
}

// scopeText is a scope in the words of the form of a key: "Puntos: leer".
func (f prose) scopeText(scope string) string {
	resource := "resource." + resourceOf(scope)
	if !f.Lang.Has(resource) {
		return scope
	}
	_, verb, _ := strings.Cut(scope, ":")
	if !f.Lang.Has("scope." + verb) {
		return f.T(resource)
	}
	return f.T(resource) + ": " + strings.ToLower(f.T("scope."+verb))
}

// isMoney reports whether a number of the configuration is an amount of money.
func isMoney(field string) bool {
	_, name := cutPath(field)
	return slices.Contains([]string{"minAmount", "per.amount", "effect.amount"}, name)
}

// subjectPages are the pages of what entries are about, by the first word of their action.
// The id stands in the place of {}.
var subjectPages = map[string]string{
	"customer": "/panel/clientes/{}", "points": "/panel/clientes/{}", "proof": "/panel/clientes/{}", "transaction": "/panel/ventas/{}", "redemption": "/panel/canjes/{}", "ticket": "/panel/tickets/{}",
	"key": "/panel/desarrollo/claves/{}", "user": "/panel/equipo/{}", "session": "/panel/equipo/{}",
	"segment": "/panel/segmentos/{}/clientes", "webhook": "/panel/desarrollo/webhooks", "configuration": "/panel/configuracion",
}

// about is what an entry is about. A customer has its name for those who may read customers.
func (v *panelRequest) about(t *txn, action, subject string) (a aboutItem, err error) {
	word, _, _ := strings.Cut(action, ".")
	a = aboutItem{Name: tr(v.lang, "about"), ID: subject}
	if v.lang.Has("about." + word) {
		a.Name = tr(v.lang, "about."+word)
	}
	if need, ok := v.panel.needs(subjectPages[word]); ok && v.member.role.may(need) == grantAll && v.hasPlace(subjectPages[word]) {
		a.Path = strings.Replace(subjectPages[word], "{}", subject, 1)
	}
	u, ok := parseID(subject)
	name := ""
	switch {
	case !ok:
		a.Path, name = "", subject
	case subjectPages[word] == subjectPages["customer"] && v.member.mayAll("customers:read") == nil:
		c, err := t.customers.byID(u)
		if err != nil || c == nil {
			a.Path = ""
			return a, err
		}
		name = c.name()
	case word == "key":
		name, err = t.keys.nameOf(u)
	case word == "user" || word == "session":
		if name, err = t.people.nameOf(u); name == "" { // an invitation, or who has left
			a.Path = ""
		}
	case word == "segment":
		if s := t.cfg.segment(u); s != nil {
			name = s.Name
		} else {
			a.Path = ""
		}
	case word == "configuration":
		name = t.cfg.Organization.Name
	}
	if name != "" {
		a.Name = name
	}
	return a, err
}

// needs is what a page needs, whose path has {} in the place of its id. ok is false if there
// is none.
func (p *panel) needs(path string) (need permission, ok bool) {
	for _, page := range p.pages {
		if path != "" && idInPath.ReplaceAllString(page.path, "{}") == path {
			return page.need, true
		}
	}
	return "", false
}

// actorOf names who did something, and says what finds all of theirs in the log.
func actorOf(by *createdBy) (name, filter string) {
	if by == nil {
		return "", ""
	}
	if by.Actor != nil {
		name, filter = *by.Actor, *by.Actor
	}
	if by.ID == nil {
		return name, filter
	}
	own := textOr(by.Name, "")
	if name != "" && own != "" {
		own += " · " + name
	}
	return cmp.Or(own, name), by.ID.String()
}

// A file with the log has so many entries at most, and about so many bytes.
const (
	mostExported      = 10_000
	mostExportedBytes = 16 << 20
)

// auditColumns are the headings of the log as CSV, which has a line for each change.
var auditColumns = []string{"seq", "at", "actorType", "actorId", "actorName", "actor", "source", "action", "subject", "field", "before", "after", "requestId"}

// auditExport is the log as CSV, newest first, guarded for spreadsheets.
func auditExport(v *panelRequest) (*download, fillFunc) {
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	file := &download{name: "auditoria.csv", media: "text/csv; charset=utf-8", data: "audit"}
	return file, func(t *txn) error {
		if err := v.member.mayAll("data:export"); err != nil {
			return err
		}
		b.WriteString(sheet.MarkUTF8)
		out.Write(auditColumns)
		turn := new(pacer)
		for n := 1; n <= mostExported/maxLimit && b.Len() < mostExportedBytes; n++ {
			entries := v.ask(listAudit, append(auditQuery(v), pair{"page", strconv.Itoa(n)}, pair{"limit", strconv.Itoa(maxLimit)})...)
			if len(v.faults) > 0 {
				return v.faults[0]
			}
			found, err := resultOf[listShape[auditShape]](t, entries)
			if err != nil {
				return err
			}
			for _, e := range found.Data {
				if err := writeAudit(out, &e); err != nil {
					return err
				}
				turn.pause()
			}
			if !found.Meta.HasNextPage {
				break
			}
		}
		out.Flush()
		file.body = b.Bytes()
		return out.Error()
	}
}

// writeAudit writes an entry: a line for each change, or one without.
func writeAudit(out *csv.Writer, e *auditShape) error {
	row := []string{fmt.Sprint(e.Seq), e.At.String(), "", "", "", "", e.Source, e.Action, textOr(e.Subject, ""), "", "", "", textOr(e.RequestID, "")}
	if by := e.Actor; by != nil {
		row[2], row[4], row[5] = by.Type, textOr(by.Name, ""), textOr(by.Actor, "")
		if by.ID != nil {
			row[3] = by.ID.String()
		}
	}
	changes := e.Changes
	if len(changes) == 0 {
		changes = []auditChange{{}}
	}
	for _, c := range changes {
		row[9], row[10], row[11] = c.Field, string(c.Before), string(c.After)
		line := slices.Clone(row)
		sheet.Guard(line)
		if err := out.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// What the template asks for.

// Actions are the choices of what was done: all of a kind that the log can tell of, in words.
func (f prose) Actions(kind string) []choiceItem {
	var items []choiceItem
	for name := range allTexts() {
		if action, is := strings.CutPrefix(name, "action."); is && (kind == everyKind || auditKindOf(action) == kind) {
			items = append(items, choiceItem{action, f.T(name)})
		}
	}
	slices.SortFunc(items, func(a, b choiceItem) int { return cmp.Compare(fold.Text(a.Text), fold.Text(b.Text)) })
	return append([]choiceItem{{"", f.T("audit.any")}}, items...)
}

// actions are the actions to choose from: those of tickets only where there are tickets.
func (w *auditView) actions(f *pageData) []choiceItem {
	return slices.DeleteFunc(f.Actions(w.Kind), func(c choiceItem) bool {
		return strings.HasPrefix(c.Value, "ticket.") && c.Value != w.Action && !f.HasTickets()
	})
}

// Filters are what narrows the audit log. A subject is only there once a link has given one.
func (w *auditView) Filters(f *pageData) filterView {
	fields := []control{
		f.Select("action", "audit.action", w.Action, w.actions(f)), f.Field("from", "sales.from", "date", w.From), f.Field("to", "sales.to", "date", w.To),
	}
	if w.Actors != nil {
		fields = slices.Insert(fields, 0, f.Select("actor", "audit.actor", w.Actor, f.People(w.Actors)))
	}
	if w.Subject != "" {
		fields = append(fields, f.Field("subject", "audit.subject", "search", w.Subject))
	}
	return f.Filters(fields...)
}

// Action is what was done, in words: the action itself if this sello has no words for it.
func (f prose) Action(name string) string {
	if f.Lang.Has("action." + name) {
		return f.T("action." + name)
	}
	return name
}

// WhoText is who did it, in words.
func (r auditRow) WhoText(f *pageData) string {
	switch {
	case r.Who != "":
		return r.Who
	case r.Actor == nil:
		return f.T("none")
	case r.Actor.Type == byUser:
		return f.T("audit.gone")
	}
	return f.T("by." + r.Actor.Type)
}

// ByPath is the list of what the same one did, of a kind.
func (r auditRow) ByPath(kind string) string {
	return withQuery(auditPath, []pair{{"actor", r.By}, {"kind", kind}})
}

func (r auditRow) VersionPath() string { return versionPath(r.Version) }

// CutExport is how many of the found entries the CSV has; "" if it has all, or the
// member may not have it.
func (w *auditView) CutExport(f *pageData) string {
	if w.Export == "" || w.Total <= mostExported {
		return ""
	}
	return f.Count(mostExported)
}

// What a form that is kept says, for the page that comes before it.

// keptSubjects are the fields, and the names in paths, whose values are ids, with the word of what
// they are of.
var keptSubjects = map[string]string{
	"customerId": "customer", "from": "customer", "userId": "user", "keyId": "key", "segmentId": "segment",
	"productId": "reward", "rewardId": "reward", "programId": "program", "loyaltyProgramId": "program",
}

// keptChoices begin the names of the texts of what can be chosen, where auditText does not know them.
var keptChoices = map[string]string{accessField: "key.access.", expiresField: "key.expires.", "overlap": "key.overlap.", "join": "segment."}

// madeBoxes are the madeMembers that are boxes or buttons. Others may be "1" because somebody typed it.
var madeBoxes = []string{"again", "apiAccess", payMember.name, "restoreRedemptions"}

// hasBox reports whether a field is a box of the form.
func (f *panelForm) hasBox(name string) bool {
	return slices.ContainsFunc(f.members, func(m formMember) bool {
		return m.name == name && (m.kind == checkMember || m.kind == madeMember && slices.Contains(madeBoxes, name))
	})
}

// Facts are the fields of a form that was kept, by their labels and in words: ids by the names of
// what they are of, for whoever is logged in and not locked out. What people did not see is left out.
func (k *keptForm) Facts(f *pageData) (facts []control, err error) {
	if k.form == nil {
		return nil, nil
	}
	var subjects []control
	at := strings.Split(k.Path, "/")
	for i, part := range strings.Split(k.form.path, "/") {
		if name, is := strings.CutPrefix(part, "{"); is && i < len(at) {
			subjects = append(subjects, control{Name: strings.TrimSuffix(name, "}"), Value: at[i]})
		}
	}
	for _, c := range k.Fields {
		if _, is := parseID(c.Value); is {
			subjects = append(subjects, c)
		} else if fact := f.keptFact(k.form, c); fact.Name != "" && fact.Value != "" {
			facts = append(facts, fact)
		}
	}
	if !f.Member() || f.request.cfg == nil {
		return facts, nil
	}
	var named []control
	err = f.request.fill(func(t *txn) error {
		named, err = lines(f.request, subjects, func(c control) (control, error) { return f.keptSubject(t, c) })
		return err
	})
	named = slices.DeleteFunc(named, func(c control) bool { return c.Value == "" })
	return append(named, facts...), err
}

// keptFact is a field that people have typed or chosen; without a name if it has no label.
func (f prose) keptFact(form *panelForm, c control) control {
	if strings.HasPrefix(c.Name, "_") || trimBlanks(c.Value) == "" {
		return control{}
	}
	text := f.auditText(c.Name, c.Value)
	if name := keptChoices[c.Name]; name != "" && f.Lang.Has(name+c.Value) {
		text = f.T(name + c.Value)
	}
	if form.hasBox(c.Name) {
		text = f.T("yes") // one that is not checked is not sent
	}
	return control{Name: fieldLabel(f.Lang, newError(codeInvalidField).on(c.Name).with(labelsContext, form.labels)), Value: shortened(text)}
}

// keptSubject is what an id is of, by its name; without a value if it has none.
func (f *pageData) keptSubject(t *txn, c control) (fact control, err error) {
	word := keptSubjects[c.Name]
	u, is := parseID(c.Value)
	if word == "" || !is {
		return fact, nil
	}
	fact.Name = f.T("about." + word)
	switch word {
	case "reward":
		if r := t.cfg.reward(u); r != nil {
			fact.Value = r.Name
		}
	case "program":
		if p := t.cfg.program(u); p != nil {
			fact.Value = p.Name
		}
	default:
		about, err := f.request.about(t, word+".", c.Value)
		if about.Name != fact.Name {
			fact.Value = about.Name
		}
		return fact, err
	}
	return fact, nil
}
