package main

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"sello/internal/qr"
	"sello/internal/static"
	"sello/internal/texts"
)

// How pages are made. A page is rendered whole before anything of it is sent. Pages are not
// compressed: where a page has secrets beside text that somebody else chose, its compressed length
// gives the secrets away (BREACH). A publicView has neither, and is compressed.

//go:embed panel/*.html
var panelTemplates embed.FS

// theTemplates are the pages that are shown. Executing one for the first time changes its tree.
var theTemplates = sync.OnceValue(parseTemplates)

// parseTemplates parses all pages. It panics on a fault in one; tests parse them.
func parseTemplates() templates {
	layout := template.Must(template.New("").Funcs(templateFuncs).ParseFS(panelTemplates, "panel/layout.html", "panel/parts*.html"))
	files, err := panelTemplates.ReadDir("panel")
	if err != nil {
		panic(err)
	}
	all := templates{}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".html")
		if name != "layout" && !strings.HasPrefix(name, "parts") {
			each := template.Must(layout.Clone())
			all[name] = template.Must(each.ParseFS(panelTemplates, path.Join("panel", f.Name())))
		}
	}
	return all
}

// templateFuncs are what templates say of a value alone, whatever the page.
var templateFuncs = template.FuncMap{
	"appLink": func(link string) template.URL { return template.URL(link) }, // templates refuse its scheme otherwise
	"base":    filepath.Base,
	"join":    func(names []string) string { return strings.Join(names, ", ") },
	"lines":   func(texts []string) string { return strings.Join(texts, "\n") },
	"orNone":  func(n int) string { return intText(wholeOrNull(n)) },
	"text":    func(s *string) string { return textOr(s, "") },
	"whole":   intText,
}

// intText is a number of a document for a control; "" if it is missing.
func intText(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// A prose says things as a page does: texts in its language, figures and moments as format has
// them. Templates call its methods.
type prose struct {
	format *format
	Lang   texts.Language
}

// pageData is what the layout shows around a view, with the methods that templates call.
type pageData struct {
	*format
	prose
	request  *panelRequest
	Org      orgView
	User     *user      // who is logged in; nil: nobody
	Shops    []shopItem // the member's organizations, if they are several
	name     string     // of the template
	View     any
	Token    string // of the page's forms
	Reviewed any    // what the form would do that was sent to be rehearsed; nil: none was
	Confirms string // the value of reviewedField
	nav      navigation
}

// An orgView is the organization in use, or sello itself.
type orgView struct {
	Name, Slug string
	Brand      string // the path of its colours; "": it has none
}

func newOrgView(cfg *config) orgView {
	if cfg == nil {
		return orgView{Name: "sello"}
	}
	o := &cfg.Organization
	return orgView{o.Name, o.Slug, brandPath(o.Profile.PrimaryColor)}
}

// Mark is the initial that stands for the organization's logo, which would come from elsewhere.
func (o orgView) Mark() string {
	r, _ := utf8.DecodeRuneInString(o.Name)
	return strings.ToUpper(string(r))
}

// A publicView is a long page without secrets and without text that a request chose.
type publicView interface{ public() }

func (v *panelRequest) render(name string, view any) error {
	var b bytes.Buffer
	b.Grow(16 << 10) // most pages have less
	said := prose{v.format(), v.lang}
	f := &pageData{
		format: said.format, prose: said, request: v, Org: newOrgView(v.cfg), Shops: v.shops, name: name, View: view,
		Token: v.token, Reviewed: v.reviewed, Confirms: v.confirms, nav: v.navigation(),
	}
	if v.member != nil {
		f.User = v.member.user
	}
	if err := theTemplates()[name].ExecuteTemplate(&b, "layout", f); err != nil {
		return fmt.Errorf("template %s: %w", name, err)
	}
	h, body := v.Header(), b.Bytes()
	h["Content-Type"] = htmlType
	if _, is := view.(publicView); is {
		h["Vary"] = []string{"Accept-Encoding"}
		if static.AcceptsGzip(v.r.Header) {
			h["Content-Encoding"] = []string{"gzip"}
			body = static.Gzip(body, gzip.DefaultCompression)
		}
	}
	v.send(body)
	return nil
}

var htmlType = []string{"text/html; charset=utf-8"}

// send writes the response with its length: net/http would cut it into chunks, whose ends
// could be taken for a refusal of its own (request_connections.go).
func (v *panelRequest) send(body []byte) {
	v.exchange.status = v.status
	v.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	v.ResponseWriter.WriteHeader(v.status)
	v.ResponseWriter.Write(body)
}

func (v *panelRequest) sendFile(d *download) error {
	v.Header()["Content-Type"] = []string{d.media}
	v.Header()["Content-Disposition"] = []string{`attachment; filename="` + d.name + `"`}
	v.send(d.body)
	return nil
}

func (v *panelRequest) redirect(to string) error {
	v.Header()["Location"] = []string{to}
	v.status = http.StatusSeeOther
	v.send(nil)
	return nil
}

// fail shows an error. A fault of the server is logged, and the page has the request's id.
func (v *panelRequest) fail(err error) {
	e := v.note(err)
	if e.code == codeLogInRequired && v.r.Method == http.MethodGet {
		v.redirect(logInPath(v.r.URL))
		return
	}
	if v.status = e.code.status; v.status == http.StatusBadRequest {
		v.status = http.StatusUnprocessableEntity
	}
	if err := v.render("error", errorView{Error: e, Again: v.kept && v.status == http.StatusServiceUnavailable}); err != nil {
		v.api.log.Error("failed", "requestId", v.requestID[0], "cause", err.Error())
		v.send([]byte("sello: " + e.code.name))
	}
}

type errorView struct {
	Error *apiError
	Again bool // the form that was sent can be sent again
}

// refused shows the page of a form again, with its faults and what was typed.
func (v *panelRequest) refused() error {
	first := v.faults[0]
	switch first.code.status {
	case http.StatusBadRequest:
		v.status = http.StatusUnprocessableEntity
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		v.status = first.code.status
	case http.StatusPreconditionFailed:
		v.status = http.StatusConflict
	default:
		if first.code != codePointsBudgetExceeded { // which less would not exceed
			return first
		}
		v.status = first.code.status
	}
	if v.page == nil {
		return first
	}
	if first.code == codeFormUsed { // the next try is another one
		v.token = v.panel.random()
	}
	for i, e := range v.faults {
		if e.code != codeDocumentFault {
			v.faults[i] = e.with(labelsContext, v.labels)
		}
	}
	v.code = first.code.name
	for name, values := range first.headers {
		v.Header()[name] = values
	}
	if err := v.showAgain(); err != nil {
		return errors.Join(first, err)
	}
	return nil
}

// showAgain shows the page of the form that was sent.
func (v *panelRequest) showAgain() error {
	v.request.Request = v.r
	view, fill := v.page.show(v)
	if err := v.fill(fill); err != nil {
		return err
	}
	if to, is := view.(redirection); is {
		return v.redirect(to.to)
	}
	return v.render(v.page.template, view)
}

// title and Text say what is wrong.
func (v errorView) title(f *pageData) string {
	if name := fmt.Sprint("error.status.", f.request.status); f.Lang.Has(name) {
		return f.T(name)
	}
	return f.T("error.summary")
}

func (v errorView) Text(f *pageData) string { return faultText(f.Lang, f.format, v.Error) }

// RequestID is what the log has of a request that failed; "" where that says nothing.
func (v errorView) RequestID(f *pageData) string {
	if v.Error.code.status < http.StatusInternalServerError {
		return ""
	}
	return f.request.requestID[0]
}

// Methods that templates call.

// A pagePart is what a template of its own shows, and the page that it is on.
type pagePart struct {
	Page *pageData
	Of   any
}

func (f *pageData) With(of any) pagePart { return pagePart{f, of} }

// T is a text of the panel in the page's language.
func (f prose) T(name string, args ...any) string { return tr(f.Lang, name, args...) }

// Counted is a text with a number of things.
func (f prose) Counted(name, n string, others ...any) string {
	return counted(f.Lang, name, n, others...)
}

// Title is the page's: of its view, if that has one of its own.
func (f *pageData) Title() string {
	if own, ok := f.View.(interface{ title(*pageData) string }); ok {
		return own.title(f)
	}
	return f.T("title." + f.name)
}

// newOr is the title of a form: a text for something new, or the name of what it changes.
func (f prose) newOr(isNew bool, text, name string) string {
	if isNew {
		return f.T(text)
	}
	return name
}

// May reports whether the member has a permission, be it in part.
func (f *pageData) May(p string) bool { return f.request.may(permission(p)) }

func (f *pageData) Member() bool { return f.request.member != nil && !f.request.member.locked }

// RoleName is what the member is here.
func (f *pageData) RoleName() string { return f.T("role." + string(f.request.member.role)) }

// Asset is the path of panel.css or another file of the panel.
func (f *pageData) Asset(name string) string { return f.request.panel.assets.path(name) }

// Plain reports whether the panel is served without TLS beyond this machine.
func (f *pageData) Plain() bool { return f.request.panel.address.isPlain() }

// Testing says that this is a sandbox, and what time it is there; "" on other servers.
func (f *pageData) Testing() string {
	if f.request.api.mode == nil {
		return ""
	}
	now := f.Moment(f.now)
	if f.request.cfg == nil { // before a log-in nobody knows whose time it is
		now += " (" + f.zone.String() + ")"
	}
	return f.T("testing", now)
}

// Failed reports whether the page shows faults; Faults lists them, the first of each field.
func (f *pageData) Failed() bool { return len(f.request.faults) > 0 }

func (f *pageData) Faults() (list []faultView) {
	for _, e := range f.request.faults {
		to, _ := e.context["to"].(string)
		word := "error.stored"
		if e.code == codeContactKnown {
			word = "error.contact_known.open"
		}
		list = append(list, faultView{controlID(e.field), faultText(f.Lang, f.format, e), to, f.T(word)})
	}
	return list
}

// Stale reports whether somebody else has changed what the form changes.
func (f *pageData) Stale() bool {
	return slices.ContainsFunc(f.request.faults, func(e *apiError) bool { return e.code == codePreconditionFailed })
}

// A faultView is a line of the summary of faults. ID is that of the control at fault. To is a
// page that helps, and Link says what for; "": there is none.
type faultView struct{ ID, Text, To, Link string }

// controlID is the id of the control of a field; "" without a field.
func controlID(field string) string {
	if field == "" {
		return ""
	}
	return "c-" + strings.Map(func(r rune) rune {
		if strings.ContainsRune("[].", r) {
			return '-'
		}
		return r
	}, field)
}

// A control is a field of a form, for the template "field".
type control struct {
	ID, Name, Label, Hint, Value, Fault string
	Kind                                string // text, tel, decimal, email, password, search …
	Required, Focus                     bool
	Auto                                string // autocomplete
	Readings                            []readingView
	Options                             []optionView // of a choice
}

// Field is the control of a field with the value that was typed, or the given one.
func (f *pageData) Field(name, label, kind string, value ...string) control {
	c := control{ID: controlID(name), Name: name, Label: f.T(label), Kind: kind, Auto: "off"}
	if hint := label + ".hint"; f.Lang.Has(hint) {
		c.Hint = f.T(hint)
	}
	if len(value) > 0 {
		c.Value = value[0]
	}
	if typed, ok := f.request.posted.get(name); ok && kind != "password" && kind != "pin" {
		c.Value = typed
	}
	i := slices.IndexFunc(f.request.faults, func(e *apiError) bool { return e.field == name })
	if i >= 0 {
		e := f.request.faults[i]
		c.Fault = strings.TrimPrefix(faultText(f.Lang, f.format, e), c.Label+": ")
		c.Readings = f.readingButtons(e)
	}
	return c
}

// An optionView is what can be chosen in the template "select".
type optionView struct {
	Value, Text string
	Chosen      bool
}

// A boxView is a box of the template "box".
type boxView struct {
	ID, Name, Value, Label, Hint string
	Checked                      bool
}

// checked is what was sent, or the given value.
func (f *pageData) checked(name string, value bool) bool {
	if len(f.request.posted) > 0 {
		sent, _ := f.request.posted.get(name)
		return sent != ""
	}
	return value
}

// A readingView is a button that says how an ambiguous amount is read.
type readingView struct{ Name, Value, Text string }

// readingButtons are the buttons for an amount that can be read in two ways. Each sends the
// form as it was sent: to be reviewed, or not.
func (f *pageData) readingButtons(e *apiError) (list []readingView) {
	name := readingField
	if _, review := f.request.posted.get(reviewField); review {
		name = reviewField
	}
	both, _ := e.context["readings"].([]string)
	for i, text := range f.readings(e) {
		list = append(list, readingView{name, e.field + "=" + both[i], text})
	}
	return list
}

// Focused is a control that the page begins with, unless it has faults.
func (f *pageData) Focused(c control) control {
	c.Focus = !f.Failed()
	return c
}

// Links are the links of the navigation.
func (f *pageData) Links() (template.HTML, error) {
	p := f.request.panel
	made, ok := p.links.Load(f.nav)
	if !ok {
		var b strings.Builder
		if err := theTemplates()[f.name].ExecuteTemplate(&b, "links", p.groups(f.nav)); err != nil {
			return "", err
		}
		made, _ = p.links.LoadOrStore(f.nav, template.HTML(b.String()))
	}
	return made.(template.HTML), nil
}

// Here is the name of the place of the navigation that the page is in; the organization's if
// it is in none.
func (f *pageData) Here() string {
	if f.nav.current < 0 {
		return f.Org.Name
	}
	return f.T(f.request.panel.places[f.nav.current].text)
}

// AmountField is the control of an amount in the organization's currency, as Field is.
func (f *pageData) AmountField(name, label string, value ...string) control {
	c := f.Field(name, label, "decimal", value...)
	c.Label = f.T(label, f.Currency())
	return c
}

// Typed reports whether something was typed into a field, or into a list.
func (f *pageData) Typed(field string) bool {
	return slices.ContainsFunc(f.request.posted, func(p pair) bool {
		return (p.name == field || strings.HasPrefix(p.name, field+"[")) && p.value != ""
	})
}

// Self is the path of the request, and Posted the fields that came with it.
func (f *pageData) Self() string { return f.request.r.URL.EscapedPath() }

func (f *pageData) Posted() []control { return sentFields(f.request.posted) }

// sentFields are the fields of the form that was sent, for controls that send them again.
func sentFields(posted object) (list []control) {
	for _, p := range posted {
		list = append(list, control{Name: p.name, Value: p.value})
	}
	return list
}

// A fileButton is a form that is answered by a file.
type fileButton struct {
	Page       *pageData
	Path, Text string
	Fields     []control
}

// File is the form for a file whose address would have a query: these are its fields.
func (f *pageData) File(address, text string) (fileButton, error) {
	at, err := url.Parse(address)
	if err != nil {
		return fileButton{}, err
	}
	b := fileButton{Page: f, Path: at.EscapedPath(), Text: f.T(text)}
	fields, _ := parseURLEncoded(at.RawQuery)
	for _, p := range fields {
		b.Fields = append(b.Fields, control{Name: p.name, Value: p.value})
	}
	return b, nil
}

// Who is who made a record, in words.
func (f prose) Who(by *createdBy) string {
	if by == nil {
		return ""
	}
	name := f.T("by." + by.Type)
	if by.Name != nil {
		name = *by.Name
	}
	if by.Actor != nil {
		name += " · " + *by.Actor
	}
	return name
}

// qrPicture returns a QR code of at most so many pixels; "" if the text is too long for one. label
// is what it is called to those who do not see it.
func qrPicture(text, label string, most int) template.HTML {
	code, ok := qr.Encode([]byte(text))
	if !ok {
		return ""
	}
	return template.HTML(code.SVG(label, most))
}

// panelQR is how wide a QR code of the panel is: it fits into a card on a screen 320 pixels wide.
const panelQR = 250
