package main

import (
	"slices"
	"strconv"
	"strings"

	"sello/internal/sheet"
)

// The configuration: what the organization is called, how it sells, and the whole document.

func configArea() panelArea {
	organization := []formMember{
		wordMember("name"),
		partMember("plan", wordMember("name")),
		{name: "apiAccess", kind: madeMember, make: checkedPlan},
		partMember("profile", wordMember("country"), wordMember("industry"), wordMember("logoUrl"), wordMember("primaryColor")),
		partMember("settings", wordMember("timezone"), wordMember("currency"), wordMember("language"), figureMember("maxLateDays"), wordMember("externalIds"), figureMember("amountDecimals"),
			partMember("notices", wordMember("expiring"), wordMember("birthday"), wordMember("almost"))),
		{name: "cashierReturns", kind: checkMember},
	}
	return panelArea{[]panelPage{
		{"/panel/configuracion", "config:write", "config", configPage},
		{"/panel/configuracion/documento", "config:write", "document", documentPage},
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

// editOrganization lays the form of the organization over a document.
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

// A configView is the form of the organization.
type configView struct {
	Organization organization
	Stamp        string
	Locked       bool // there are customers: the time zone stays
	Operates     bool // the member may change the plan
	Late         string
	Notices      *noticesDoc
	Pays         bool // points of a program pay, or there is a setting of what they do
	Done         bool
}

func configPage(v *panelRequest) (any, fillFunc) {
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
	view := &configView{Notices: new(noticesDoc), Done: v.param("hecho") != "", Operates: v.may(operates)}
	return view, func(t *txn) (err error) {
		view.Organization, view.Late = t.cfg.Organization, strconv.Itoa(t.cfg.maxLateDays())
		if n := t.cfg.Organization.Settings.Notices; n != nil {
			view.Notices = n
		}
		view.Pays = view.Organization.Settings.AmountDecimals != nil || slices.ContainsFunc(t.cfg.Programs, func(p *program) bool { return p.Payment != nil })
		if view.Locked, err = hasCustomers(t, t.org); err == nil {
			view.Stamp, err = stampOf(t.cfg)
		}
		return err
	}
}

// A documentView is the whole document as text.
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
	if to, ok := v.needToken(); !ok {
		return to, nil
	}
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
