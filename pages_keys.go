package main

import (
	"errors"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// The developers' area: its first page, the reference of the API, the list of API keys and all
// about one of them. Keys are made and ended in pages_keyforms.go.

const (
	keyPath    = keysPath + "/{keyId}"
	keyIDParam = "keyId"
	scopeField = "scope." // begins the names of the boxes of scopes: each has one of its own
)

func keyArea() panelArea {
	return panelArea{pages: []panelPage{
		{keysPath, "keys:manage", "keys", onPlan(keysPage)},
		{keyPath, "keys:manage", "key", onPlan(keyPage)},
		{keyPath + "/renovar", "keys:manage", "key-rotate", onPlan(withProof(oneKeyPage))},
		{keyPath + "/revocar", "keys:manage", "key-revoke", onPlan(withProof(oneKeyPage))},
	}}
}

var codeKeyNotFound = errorCode{"key_not_found", http.StatusNotFound, ""}

// expiresSoon is how far ahead the panel tells of keys that expire, in milliseconds.
const expiresSoon = 14 * 24 * 60 * 60 * 1000

// A keyState is what can be said of a key in a word.
type keyState string

const (
	keyActive   keyState = "active"
	keyExpiring keyState = "expiring"
	keyExpired  keyState = "expired"
	keyRevoked  keyState = "revoked"
)

func (k *apiKey) state(now instant) keyState {
	switch {
	case k.RevokedAt != 0:
		return keyRevoked
	case k.ExpiresAt != 0 && k.ExpiresAt <= now:
		return keyExpired
	case k.ExpiresAt != 0 && k.ExpiresAt-now <= expiresSoon:
		return keyExpiring
	}
	return keyActive
}

// live reports whether such a key is taken.
func (s keyState) live() bool { return s == keyActive || s == keyExpiring }

// Path is the page of the key.
func (k listedKey) Path() string { return keysPath + "/" + k.ID.String() }

type keyRow struct {
	listedKey
	State keyState
	By    *createdBy // nil if that is not known
	Used  savedUsage
}

// Ended reports whether the key is refused for good.
func (k *keyRow) Ended() bool { return !k.State.live() }

func newKeyRow(t *txn, k *apiKey) (row keyRow, err error) {
	if row.listedKey, err = listKey(t, k); err != nil {
		return row, err
	}
	row.State = k.state(t.now)
	if row.Used, err = t.keys.used(k.ID); err != nil {
		return row, err
	}
	made, _, err := t.audit.entries(auditFilter{to: never, action: auditKeyCreated, subject: k.ID.String()}, page{1, 1})
	if err != nil || len(made) == 0 {
		return row, err
	}
	row.By, err = newCreatedBy(t, made[0].By)
	return row, err
}

// keyFilters are the lists of keys: all, and keys of some states.
var keyFilters = []struct {
	name   string // as the query and the text have it
	states []keyState
}{
	{"", nil},
	{"activas", []keyState{keyActive, keyExpiring}},
	{"por-vencer", []keyState{keyExpiring}},
	{"terminadas", []keyState{keyExpired, keyRevoked}},
}

type keysView struct {
	Filters []navItem
	Chosen  string
	Rows    []keyRow
	Any     bool // there are keys, though the filter may choose none
}

func keysPage(v *panelRequest) (any, fillFunc) {
	view := &keysView{Chosen: v.param("estado")}
	var states []keyState
	for _, f := range keyFilters {
		path := keysPath
		if f.name != "" {
			path += "?estado=" + f.name
		}
		view.Filters = append(view.Filters, navItem{path, "keys.filter." + f.name, f.name == view.Chosen})
		if f.name == view.Chosen {
			states = f.states
		}
	}
	return view, func(t *txn) error {
		keys, err := t.keys.list()
		view.Any = len(keys) > 0
		var ended []keyRow // behind the others
		for _, k := range slices.Backward(keys) {
			row, err := newKeyRow(t, k)
			if err != nil {
				return err
			}
			switch {
			case states != nil && !slices.Contains(states, row.State):
			case row.Ended():
				ended = append(ended, row)
			default:
				view.Rows = append(view.Rows, row)
			}
		}
		view.Rows = append(view.Rows, ended...)
		return err
	}
}

type keyView struct {
	keyRow
	Made    bool // the form that made it was sent again: the text was shown then
	History []keyEvent
}

// Row is the key as the list has it.
func (k *keyView) Row() keyRow { return k.keyRow }

type keyEvent struct {
	At   instant
	Text string // the name of its text
	By   *createdBy
}

// manyKeyEvents is how many events a key's page shows.
const manyKeyEvents = 20

// madeParam marks where a form leads that made a key.
const madeParam = "creada"

// keyWas are the texts of what the audit log tells of a key.
var keyWas = map[string]string{auditKeyCreated: "key.was.created", auditKeyChanged: "key.was.changed", auditKeyRotated: "key.was.rotated", auditKeyRevoked: "key.was.revoked"}

func keyPage(v *panelRequest) (any, fillFunc) {
	view := &keyView{Made: v.param(madeParam) != ""}
	return view, func(t *txn) error {
		if err := view.oneKey(t, v.r); err != nil {
			return err
		}
		entries, _, err := t.audit.entries(auditFilter{to: never, subject: view.ID.String()}, page{1, manyKeyEvents})
		if err != nil {
			return err
		}
		entries = slices.DeleteFunc(entries, func(e *auditEntry) bool { return keyWas[e.Action] == "" })
		view.History, err = lines(v, entries, func(e *auditEntry) (keyEvent, error) {
			by, err := newCreatedBy(t, e.By)
			return keyEvent{e.At, keyWas[e.Action], by}, err
		})
		return err
	}
}

// oneKeyPage is a page with a form about one key.
func oneKeyPage(v *panelRequest) (any, fillFunc) {
	view := &keyView{}
	return view, func(t *txn) error {
		if err := view.oneKey(t, v.r); err != nil {
			return err
		}
		if view.State == keyRevoked { // nothing is left to do
			v.leadsTo = strings.Replace(keyPath, "{"+keyIDParam+"}", view.ID.String(), 1)
		}
		return nil
	}
}

// oneKey finds the key that the path names.
func (view *keyView) oneKey(t *txn, r *http.Request) error {
	k, _, err := t.keys.own(pathIDOf(r, keyIDParam).String(), "")
	if err != nil {
		return notKey(err)
	}
	view.keyRow, err = newKeyRow(t, k)
	return err
}

// notKey is the error for a key that keysTxn.own did not find.
func notKey(err error) error {
	if e := inForm(err); e != err {
		return newError(codeKeyNotFound)
	}
	return err
}

// What templates ask for.

// curlOf is a command line that a key with some scopes can be tried with; "" if no read is
// open to it.
func curlOf(a *api, r *http.Request, granted []string) string {
	for _, route := range a.routes() {
		path, reads := strings.CutPrefix(route.pattern, "GET ")
		if reads && route.scope != "" && !strings.Contains(path, "{") && !strings.HasSuffix(path, "/lookup") && (len(granted) == 0 || slices.Contains(granted, route.scope)) {
			return "curl " + a.baseOf(r) + path + " \\\n  " + `-H "Authorization: Bearer $SELLO_KEY"`
		}
	}
	return ""
}

// resourceOf is the resource of a scope such as points:read.
func resourceOf(scope string) string {
	resource, verb, _ := strings.Cut(scope, ":")
	if verb == "erase" { // a row of its own: it cannot be undone
		return scope
	}
	return resource
}

// A scopeRow is a resource with what a key may do to it, one of read and write, or both.
type scopeRow struct {
	Resource    string
	Read, Write *scopeCell
}

// A scopeCell is a scope with the endpoints that it opens.
type scopeCell struct {
	Name, ID, Resource, Label string // of the box
	Checked                   bool
	Routes                    []string // in short: without the path that all have, and the names of ids
}

// scopeRows are the rows of the table of permissions. The granted ones are checked.
func scopeRows(f *pageData, granted []string) (list []scopeRow) {
	for _, scope := range scopes {
		resource := resourceOf(scope)
		i := slices.IndexFunc(list, func(r scopeRow) bool { return r.Resource == f.T("resource."+resource) })
		if i < 0 {
			i = len(list)
			list = append(list, scopeRow{Resource: f.T("resource." + resource)})
		}
		cell := &scopeCell{Resource: list[i].Resource, Name: scopeField + scope, ID: controlID("scope-" + strings.ReplaceAll(scope, ":", "-")), Checked: slices.Contains(granted, scope)}
		for _, r := range f.request.api.routes() {
			if slices.Contains(strings.Fields(r.scope), scope) {
				cell.Routes = append(cell.Routes, shortRoute(r.pattern))
			}
		}
		if strings.HasSuffix(scope, ":read") {
			cell.Label = f.T("scope.read")
			list[i].Read = cell
		} else {
			cell.Label = f.T("scope.write")
			list[i].Write = cell
		}
	}
	return list
}

// AccessText says in a few words what scopes open.
func (f prose) AccessText(granted []string) string {
	if len(granted) == 0 {
		return f.T("access.all")
	}
	if !slices.ContainsFunc(granted, func(s string) bool { return !strings.HasSuffix(s, ":read") }) {
		return f.T("access.read")
	}
	var names []string
	for _, scope := range scopes {
		name := f.T("resource." + resourceOf(scope))
		if len(names) > 0 {
			name = strings.ToLower(name)
		}
		if slices.Contains(granted, scope) && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			names = append(names, name)
		}
	}
	const most = 3
	if len(names) > most {
		return f.T("access.more", strings.Join(names[:most-1], ", "), f.format.Int(len(names)-most+1))
	}
	return strings.Join(names, ", ")
}

type meterView struct {
	Text        string
	Used, Limit int
}

// Meters are the limits of a key that are counted, as of now.
func (k keyRow) Meters(f *pageData) (list []meterView) {
	for _, m := range []struct {
		limit *int
		used  uint64
		text  string
	}{{k.DailyLimit, k.Used.InDay, "key.today"}, {k.MonthlyLimit, k.Used.InMonth, "key.month"}} {
		if m.limit != nil {
			used := int(min(m.used, uint64(*m.limit)))
			list = append(list, meterView{f.T(m.text, f.Int(used), f.Int(*m.limit)), used, *m.limit})
		}
	}
	return list
}

// GrantedRows are the rows of the table of permissions with what is granted, and nothing else.
func (k *keyView) GrantedRows(f *pageData) []scopeRow {
	rows := scopeRows(f, k.Scopes)
	for i := range rows {
		for _, cell := range []**scopeCell{&rows[i].Read, &rows[i].Write} {
			if *cell != nil && !(*cell).Checked {
				*cell = nil
			}
		}
	}
	return slices.DeleteFunc(rows, func(r scopeRow) bool { return r.Read == nil && r.Write == nil })
}

// Confirm is the field that a key's name is typed into to revoke it.
func (f *pageData) Confirm(name string) control {
	c := f.Field("name", "key.revoke.confirm", "text")
	c.Hint = name
	return c
}

// Maker is who made a key, in as few words as there are.
func (f prose) Maker(by *createdBy) string {
	switch {
	case by.Name != nil:
		return *by.Name
	case by.Actor != nil:
		return *by.Actor
	}
	return f.Who(by)
}

// StateTag is a state as a word, and the class of its tag; an active key needs none.
func (k keyRow) StateTag(f *pageData) (tag struct{ Class, Text string }) {
	switch k.State {
	case keyExpiring:
		tag.Class, tag.Text = "warn", f.T("key.state.expiring", f.Ago(k.ExpiresAt))
	case keyExpired:
		tag.Class, tag.Text = "bad", f.T("key.state.expired")
	case keyRevoked:
		tag.Class, tag.Text = "bad", f.T("key.state.revoked")
	}
	return tag
}

// The area of who develops against the API: keys, the last requests, the reference, webhooks.
// Where the plan has no API access, operators alone find the area: the reason, and no form.

const (
	keysPath      = developmentPath + "/claves"
	requestsPath  = developmentPath + "/solicitudes"
	webhooksPath  = developmentPath + "/webhooks"
	referencePath = developmentPath + "/referencia"
)

func developmentArea() panelArea {
	return panelArea{pages: []panelPage{
		{developmentPath, "keys:manage", "development", developmentPage},
		{referencePath, "keys:manage", "reference", onPlan(referencePage)},
	}}
}

var developmentTabs = []struct {
	path string
	need permission
	text string // its name
}{
	{keysPath, "keys:manage", "tab.keys"},
	{requestsPath, "requests:read", "tab.requests"},
	{webhooksPath, "webhooks:manage", "tab.webhooks"},
	{referencePath, "keys:manage", "tab.reference"},
}

// Tabs are the pages of the area that the member may open.
func (f *pageData) Tabs() (list []navItem) {
	for _, tab := range developmentTabs {
		if f.request.may(tab.need) {
			list = append(list, navItem{tab.path, f.T(tab.text), strings.HasPrefix(f.request.route, tab.path)})
		}
	}
	return list
}

// A planView says why the area is empty.
type planView struct{ Plan string }

func developmentPage(v *panelRequest) (any, fillFunc) {
	if v.planHasAPI() {
		return redirection{keysPath}, nil
	}
	return &planView{v.cfg.Organization.Plan.Name}, nil
}

// A referenceView is the reference of the API at this address.
type referenceView struct {
	Base string
	Part template.HTML
}

func (*referenceView) public() {}

func referencePage(v *panelRequest) (any, fillFunc) {
	base := v.api.baseOf(v.r)
	return &referenceView{base, theReference().page.PartFor(base)}, nil
}

// codeRefused is what the domain refuses to an operator.
var codeRefused = errorCode{"refused", http.StatusBadRequest, ""}

// inForm turns what the domain says to an operator into a fault of a form's field.
func inForm(err error) error {
	if e, ok := errors.AsType[*operatorError](err); ok {
		return &apiError{code: codeRefused, message: e.message, field: e.field}
	}
	return err
}

// A choiceView is a question with some answers, one of them to be chosen.
type choiceView struct {
	ID, Name, Legend, Hint, Fault string
	Items                         []answerItem
	Across                        bool // the answers stand beside each other, being short
}

type answerItem struct {
	ID, Value, Text, Hint string
	Chosen                bool
}

// Choice is a question of a form with what was chosen, or the given answer. The texts of the
// answers are named after the question's.
func (f *pageData) Choice(name, label, usual string, values ...string) choiceView {
	c := f.Field(name, label, "radio", usual)
	v := choiceView{ID: c.ID, Name: name, Legend: c.Label, Hint: c.Hint, Fault: c.Fault, Across: true}
	for i, value := range values {
		item := answerItem{ID: c.ID, Value: value, Text: f.T(label + "." + value), Chosen: value == c.Value}
		if i > 0 {
			item.ID += "-" + value
		}
		if hint := label + "." + value + ".hint"; f.Lang.Has(hint) {
			item.Hint, v.Across = f.T(hint), false
		}
		v.Items = append(v.Items, item)
	}
	return v
}

type whenView struct{ UTC, Moment, Ago string }

// When shows a moment; nothing for none.
func (f *format) When(at instant) whenView { return whenView{f.UTC(at), f.Moment(at), f.Ago(at)} }

// AddressNow is where the request comes from; "" if it is not known.
func (f *pageData) AddressNow() string {
	if a := f.request.source(); a.IsValid() {
		return a.String()
	}
	return ""
}

// shortRoute is the pattern of an endpoint without the path that all have, and without the
// names of its ids.
func shortRoute(pattern string) string {
	return idInPath.ReplaceAllString(strings.Replace(pattern, "/api/v1", "", 1), "{id}")
}

var idInPath = regexp.MustCompile(`\{\w+\}`)
