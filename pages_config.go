package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sello/internal/sheet"
)

// The organization's settings and its whole document, and the configurations that were applied
// (contract §22): how two of them differ, and the document of each, to begin a new one with.

const versionsPath = "/panel/configuracion/versiones"

func versionArea() panelArea {
	return panelArea{pages: []panelPage{
		{versionsPath, "config:write", "versions", versionsPage},
		{versionsPath + "/comparar", "config:write", "version", versionPage},
	}}
}

var codeNoVersion = errorCode{"version_not_found", http.StatusNotFound, ""}

type versionsView struct {
	Rows  []versionRow
	Pager pagerView
	Total uint64
}

type versionRow struct {
	Number  uint64
	At      instant    // 0: before versions were kept
	By      *createdBy // nil: likewise
	Changes int        // against the version before; -1: there is none
}

// Path is the page of the version.
func (r versionRow) Path() string { return versionPath(r.Number) }

func versionPath(number uint64) string {
	return withQuery(versionsPath+"/comparar", []pair{{"despues", strconv.FormatUint(number, 10)}})
}

// DocumentPath is the form of the document, which begins with the version's.
func (r versionRow) DocumentPath() string {
	return withQuery("/panel/configuracion/documento", []pair{{versionParam, strconv.FormatUint(r.Number, 10)}})
}

func versionsPage(v *panelRequest) (any, fillFunc) {
	view := new(versionsView)
	list := v.ask(listVersions, v.params("page")...)
	return view, func(t *txn) error {
		found, err := resultOf[listShape[versionRow]](t, list)
		view.Rows, view.Pager, view.Total = found.Data, pager(v, found.Meta), found.Meta.Total
		return err
	}
}

func listVersions(r *request) action {
	p := r.page()
	return func(t *txn) (any, error) {
		var numbers []uint64
		for skipped := p.skip(); skipped < t.cfg.Version && uint64(len(numbers)) < p.limit; skipped++ {
			numbers = append(numbers, t.cfg.Version-skipped)
		}
		var later *config // the one of the row above
		return newList(t, numbers, t.cfg.Version, p, func(t *txn, n uint64) (row versionRow, err error) {
			if row, err = newVersionRow(t, n); err != nil {
				return row, err
			}
			cfg := later
			if cfg == nil {
				if cfg, err = existingConfig(t, n); err != nil {
					return row, err
				}
			}
			if later = nil; n == 1 {
				row.Changes = -1
				return row, nil
			}
			if later, err = existingConfig(t, n-1); err != nil {
				return row, err
			}
			changes, err := differences(later, cfg)
			row.Changes = len(changes)
			return row, err
		})
	}
}

// newVersionRow is a version that there is, without its changes.
func newVersionRow(t *txn, number uint64) (versionRow, error) {
	x, err := existing[configVersion](t.Tx, versionKey(t.org, number))
	if err != nil {
		return versionRow{}, err
	}
	row := versionRow{Number: number, At: x.AppliedAt}
	if row.At != 0 {
		row.By, err = newCreatedBy(t, x.By)
	}
	return row, err
}

// existingConfig is configAt of a version that must be there.
func existingConfig(t *txn, number uint64) (*config, error) {
	cfg, err := configAt(t, number)
	if err == nil && cfg == nil {
		err = unreadable(versionKey(t.org, number))
	}
	return cfg, err
}

// A versionView is a version beside another one, and its document.
type versionView struct {
	versionRow
	Older  uint64 // the one that it is compared with; 0: none
	Groups []diffGroup
	Text   string
	Now    bool // it is the current one
}

func (w *versionView) title(f *pageData) string { return f.T("version.title", f.Count(w.Number)) }

func versionPage(v *panelRequest) (any, fillFunc) {
	view := new(versionView)
	return view, func(t *txn) error {
		number, cfg, err := v.version(t, "despues", t.cfg.Version)
		if err != nil {
			return err
		}
		if view.versionRow, err = newVersionRow(t, number); err != nil {
			return err
		}
		view.Now = number == t.cfg.Version
		if view.Text, err = documentText(cfg); err != nil {
			return err
		}
		older, before, err := v.version(t, "antes", number-1)
		if err != nil || before == nil {
			return err
		}
		changes, err := differences(before, cfg)
		view.Older, view.Groups = older, prose{v.format(), v.lang}.groupsOf(changes)
		return err
	}
}

// version is the version that a parameter of the page's query names, or the given one; none if
// that is 0. That there is no such one is a fault of the query.
func (v *panelRequest) version(t *txn, name string, otherwise uint64) (uint64, *config, error) {
	number := otherwise
	if text := v.param(name); text != "" {
		asked, err := strconv.ParseUint(text, 10, 64)
		if err != nil || asked == 0 || asked > t.cfg.Version {
			v.faults = append(v.faults, newError(codeNoVersion).on(name))
		} else {
			number = asked
		}
	}
	if number == 0 {
		return 0, nil, nil
	}
	cfg, err := existingConfig(t, number)
	return number, cfg, err
}

// documentText is a configuration's document as people read it.
func documentText(cfg *config) (string, error) {
	raw, err := json.MarshalIndent(cfg.document(), "", "  ")
	return string(raw), err
}

// VersionField is the control for a version of the two that are compared.
func (f *pageData) VersionField(name, label string, number uint64) control {
	text := f.request.param(name) // also one that there is not
	if text == "" && number > 0 {
		text = strconv.FormatUint(number, 10)
	}
	return f.Field(name, label, "numeric", text)
}

// versionParam says which version's document the form of the document begins with.
const versionParam = "version"

// The configuration: what the organization is called, how it sells, and the whole document.

func configArea() panelArea {
	organization := []formMember{
		wordMember("name"),
		partMember("plan", wordMember("name")),
		{name: "apiAccess", kind: madeMember, make: checkedPlan},
		partMember("profile", wordMember("country"), wordMember("industry"), wordMember("logoUrl"), wordMember("primaryColor")),
		partMember("settings", wordMember("timezone"), wordMember("currency"), wordMember("language"), figureMember("maxLateDays"), wordMember("externalIds"), figureMember("amountDecimals"),
			partMember("notices", wordMember("expiring"), wordMember("birthday"), wordMember("almost")),
			partMember("cards", formMember{name: "join", kind: madeMember, make: blankOr(boolLiteral)}, wordMember("proof"), figureMember("proofFrom"), wordMember("privacyUrl")),
			partMember("tickets", figureMember("days"), figureMember("maxPerCustomerPerDay"))),
		{name: "cashierReturns", kind: checkMember},
	}
	return panelArea{[]panelPage{
		{"/panel/configuracion", "config:write", "config", withForms(configPage)},
		{"/panel/configuracion/documento", "config:write", "document", withForms(documentPage)},
	}, reviewedForms("organization", []panelForm{
		{path: "/panel/configuracion", from: "/panel/configuracion", members: organization, handle: editing(editOrganization),
			done: func(*panelRequest, string) string { return "/panel/configuracion?hecho=1" }},
		{path: "/panel/configuracion/documento", from: "/panel/configuracion/documento", most: mostDocument, members: []formMember{wordMember("document")},
			handle: documentAction(postedDocument), done: func(*panelRequest, string) string { return "/panel/configuracion/documento?hecho=1" }},
	})}
}

// checkedPlan is whether the plan's box is checked. Only an operator's form has it: in others it
// is left out, so that the plan stays.
func checkedPlan(v *panelRequest, name string) string {
	if value, _ := v.posted.get(name); value != "" || v.may(operates) {
		return strconv.FormatBool(value != "")
	}
	return ""
}

func editOrganization(_ *txn, _ *request, tree, fields docTree) (docPlace, error) {
	for part, flags := range map[string][]string{"plan": {"apiAccess"}, "settings": {"cashierReturns"}} {
		under, _ := fields[part].(docTree)
		if under == nil {
			under = docTree{}
		}
		for _, name := range flags {
			if value, sent := fields[name]; sent {
				under[name] = value
				delete(fields, name)
			}
		}
		fields[part] = under
	}
	layOver(tree["organization"].(docTree), fields)
	return docPlace{path: "organization", labels: "organization"}, nil
}

// postedDocument is the document that was posted as it is.
func postedDocument(_ *txn, _ *request, fields docTree) ([]byte, docPlace, error) {
	text, _ := fields["document"].(string)
	return []byte(strings.TrimPrefix(text, sheet.MarkUTF8)), docPlace{}, nil // editors put one before a file's text
}

type configView struct {
	Organization organization
	Stamp        string
	Locked       bool // there are customers: the time zone stays
	Operates     bool // the member may change the plan
	Late         string
	Notices      *noticesDoc
	Cards        cardsDoc
	Served       bool // the server serves cards, or the document says something of them
	Pays         bool // points of a program pay, or there is a setting of what they do
	Done         bool
}

func configPage(v *panelRequest) (any, fillFunc) {
	view := &configView{Notices: new(noticesDoc), Done: v.param("hecho") != "", Operates: v.may(operates)}
	return view, func(t *txn) (err error) {
		view.Organization, view.Late = t.cfg.Organization, strconv.Itoa(t.cfg.maxLateDays())
		if n := t.cfg.Organization.Settings.Notices; n != nil {
			view.Notices = n
		}
		view.Cards, view.Served = t.cfg.cards(), v.api.engine.cardsAt != "" || t.cfg.Organization.Settings.Cards != nil
		view.Pays = view.Organization.Settings.AmountDecimals != nil || slices.ContainsFunc(t.cfg.Programs, func(p *program) bool { return p.Payment != nil })
		if view.Locked, err = hasCustomers(t, t.org); err == nil {
			view.Stamp, err = stampOf(t.cfg)
		}
		return err
	}
}

type documentView struct {
	Text    string
	Version uint64 // that the text is of; 0: the current one, or what was typed
	Stamp   string
	Faults  []documentLine
	Done    bool
}

// A documentLine is a fault of the document, with the line that has it.
type documentLine struct {
	Number     uint64
	Text, Line string
}

func documentPage(v *panelRequest) (any, fillFunc) {
	view := &documentView{Done: v.param("hecho") != ""}
	return view, func(t *txn) error {
		cfg := t.cfg
		number, _ := strconv.ParseUint(v.param(versionParam), 10, 64)
		kept, err := configAt(t, number)
		if err != nil {
			return err
		}
		if kept != nil && kept != cfg {
			cfg, view.Version = kept, number
		}
		if view.Text, err = documentText(cfg); err != nil {
			return err
		}
		if text, sent := v.posted.get("document"); sent {
			view.Text = text
		}
		lines := strings.Split(view.Text, "\n")
		for _, e := range v.faults {
			if n, is := e.context["line"].(int); is {
				view.Faults = append(view.Faults, documentLine{uint64(n), documentFaultText(v.lang, e), strings.TrimSpace(lines[min(n, len(lines))-1])})
			}
		}
		view.Stamp, err = stampOf(t.cfg)
		return err
	}
}

// LanguageChoice is the control of the organization's language.
func (w *configView) LanguageChoice(f *pageData) control {
	value, items := w.Organization.Settings.Language, f.Choices("", "word.", "es", "en")
	if value != "es" && value != "en" { // a language of the API's, as es-MX
		items = append(items, choiceItem{value, value})
	}
	return f.Select("settings.language", "organization.settings.language", value, items)
}
