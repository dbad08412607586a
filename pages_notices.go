package main

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Notices: whom a shop may write to today, each with a link that opens WhatsApp or an e-mail with
// the shop's text. Sello sends nothing. Other pages use the box for a customer's consent from here.

func noticeArea() panelArea {
	back := func(v *panelRequest, _ string) string { return noticeList(v) }
	members := []formMember{{name: "que"}, {name: "after"}}
	return panelArea{[]panelPage{{noticesPath, "customers:edit", "notices", withForms(noticesPage)}}, []panelForm{
		{path: noticesPath + "/{customerId}/escrito", need: "customers:edit", from: noticesPath, members: members, handle: markNotice(true), done: back, forms: true},
		{path: noticesPath + "/{customerId}/quitar", need: "customers:edit", from: noticesPath, members: members, handle: markNotice(false), done: back, forms: true},
	}}
}

// markNotice notes that the member wrote to the customer of the path about what the list is of, or
// that nobody did.
func markNotice(wrote bool) func(*request) action {
	return func(r *request) action {
		list, _ := r.fields.text("que", 20)
		r.fields.text("after", 200) // the page's, to which the form leads back
		var known anyOf
		for _, tab := range noticeTabs {
			known = append(known, tab.name)
		}
		if !slices.Contains(known, list) {
			r.fields.invalid("que", "debe ser %s", known)
		}
		return func(t *txn) (any, error) {
			err := t.customers.markWritten(r.pathID("customerId"), noticeTabs[noticeTabNamed(list)].query.kind, r.user.user.ID, wrote)
			return reply{http.StatusOK, struct{}{}}, err
		}
	}
}

const noticesPath = "/panel/avisos"

// A noticeTab is a list: what its address calls it, and what it is of.
type noticeTab struct {
	name  string
	query reminderQuery
}

// noticeTabs are the lists of the page, by the parameter that chooses them.
var noticeTabs = []noticeTab{
	{"semana", reminderQuery{noticeExpiring, 7}},
	{"mes", reminderQuery{noticeExpiring, 30}},
	{"cumpleanos", reminderQuery{noticeBirthday, 7}},
	{"casi", reminderQuery{noticeAlmost, 0}},
}

// noticeTabNamed is the place in noticeTabs of a list; the first one's for any other name.
func noticeTabNamed(name string) int {
	return max(0, slices.IndexFunc(noticeTabs, func(tab noticeTab) bool { return tab.name == name }))
}

// noticeParam is a parameter of the page, or of the form that was sent from it.
func noticeParam(v *panelRequest, name string) string {
	return cmp.Or(v.param(name), v.typedText(name))
}

// noticeList is the address of the page that a form was sent from.
func noticeList(v *panelRequest) string {
	return withQuery(noticesPath, givenParams([]pair{{"que", noticeParam(v, "que")}, {"after", noticeParam(v, "after")}}))
}

type noticesView struct {
	List   string // its name
	After  string // where the page begins
	Tabs   []navItem
	Rows   []noticeRow
	Begins bool
	First  string // the address of the list's beginning
	Next   string // the address of the next page; "": there is none
	Few    bool   // the page is short, and is not the last
}

type noticeRow struct {
	Path, Name, Why, Text string
	WhatsApp, Mail        string // links; "" without a phone or an e-mail
	Form                  string // the path of the forms that mark it, without their end
	Written               string // who wrote, and when; "": nobody did
}

func noticesPage(v *panelRequest) (any, fillFunc) {
	at := noticeTabNamed(noticeParam(v, "que"))
	view := &noticesView{List: noticeTabs[at].name, After: noticeParam(v, "after")}
	view.Begins = view.After == ""
	for i, tab := range noticeTabs {
		view.Tabs = append(view.Tabs, navItem{withQuery(noticesPath, []pair{{"que", tab.name}}), tr(v.lang, "notices.tab."+tab.name), i == at})
	}
	view.First = view.Tabs[at].Path
	after, ok := parseReminderPlace(view.After, noticeTabs[at].query.kind)
	if !ok {
		v.faults = append(v.faults, invalidField("after", "debe ser el next de una respuesta, o estar vacío"))
	}
	return view, func(t *txn) error {
		if err := v.member.mayAll("customers:edit"); err != nil || !ok {
			return err
		}
		list, next, err := remindersAfter(t, noticeTabs[at].query, after, defaultLimit)
		if err != nil {
			return err
		}
		for _, r := range list {
			row, err := prose{v.format(), v.lang}.noticeRow(t, noticeTabs[at].query.kind, r)
			if err != nil {
				return err
			}
			view.Rows = append(view.Rows, row)
		}
		if cursor := next.cursor(); cursor != "" {
			view.Next, view.Few = withQuery(noticesPath, []pair{{"que", noticeTabs[at].name}, {"after", cursor}}), len(list) < defaultLimit
		}
		return nil
	}
}

// noticeRow puts a reminder into words: why for the shop, the text for the customer.
func (p prose) noticeRow(t *txn, kind noticeKind, r reminder) (row noticeRow, err error) {
	f, c := p.format, r.customer
	row = noticeRow{Path: "/panel/clientes/" + c.ID.String(), Name: c.name(), Form: noticesPath + "/" + c.ID.String()}
	if w, ok := writtenOf(c.Written, kind, t.now); ok {
		who, err := t.people.nameOf(w.User)
		if err != nil {
			return row, err
		}
		row.Written = p.T("notices.written", cmp.Or(who, p.T("notices.written.gone")), f.Moment(w.At))
	}
	written := formatOf(t.cfg, "es") // as the customer reads it
	if strings.HasPrefix(t.cfg.Organization.Settings.Language, "en") {
		written = formatOf(t.cfg, "en")
	}
	known := map[string]string{
		"nombre": strings.TrimSpace(c.FirstName), "negocio": t.cfg.Organization.Name,
		"saldo": written.Number(r.own.Balance), "moneda": r.own.program.Currency.Of(r.own.Balance), "meta": r.goal,
	}
	if known["nombre"] == "" {
		known["nombre"] = c.name()
	}
	switch kind {
	case noticeExpiring:
		known["puntos"], known["moneda"], known["fecha"] = written.Number(r.points), r.program.Currency.Of(r.points), written.Date(r.at)
		row.Why = p.T("notices.why.expiring", f.Number(r.points), r.program.Currency.Of(r.points), f.Date(r.at))
	case noticeBirthday:
		row.Why = p.T("notices.why.birthday", f.LongDay(r.birthday))
	case noticeAlmost:
		row.Why = p.T("notices.why.almost", r.goal)
	}
	row.Text = filledNotice(t.cfg.Organization.notice(kind), known)
	escape := func(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
	if c.Phone != "" {
		row.WhatsApp = "https://wa.me/" + strings.TrimPrefix(c.Phone, "+") + "?text=" + escape(row.Text)
	}
	if c.Email != "" {
		to := strings.ReplaceAll(url.PathEscape(c.Email), "&", "%26") // mail programs cut there
		text := escape(strings.ReplaceAll(row.Text, "\n", "\r\n"))    // RFC 6068
		row.Mail = "mailto:" + to + "?subject=" + escape(t.cfg.Organization.Name) + "&body=" + text
	}
	return row, nil
}

// MarketingBox is the box that a new customer checks who wants notices. Unchecked it is no answer.
func (f *pageData) MarketingBox() boxView {
	return boxView{ID: controlID("marketing"), Name: "marketing", Value: "true", Label: f.T("field.marketing"), Checked: f.checked("marketing", false)}
}

// MarketingChoice is whether a customer wants notices.
func (f *pageData) MarketingChoice(now *bool) control {
	value := ""
	if now != nil {
		value = strconv.FormatBool(*now)
	}
	items := []choiceItem{{"", f.T("notices.unknown")}, {"true", f.T("yes")}, {"false", f.T("no")}}
	return f.Select("marketing", "field.marketing", value, items)
}

// MarketingWords says whether a customer wants notices, and since when.
func (f prose) MarketingWords(c *customerDetail) string {
	switch {
	case c.Marketing == nil:
		return f.T("notices.unknown")
	case *c.Marketing:
		return f.T("notices.yes", f.format.Date(c.MarketingAt))
	}
	return f.T("notices.no", f.format.Date(c.MarketingAt))
}
