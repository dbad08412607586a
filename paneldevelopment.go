package main

import (
	"errors"
	"html/template"
	"net/http"
	"regexp"
	"strings"
)

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
		{referencePath, "keys:manage", "reference", referencePage},
	}}
}

// developmentTabs are the pages of the area.
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
	if !v.planHasAPI() {
		return redirection{developmentPath}, nil
	}
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

// An answerItem is an answer with its button.
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

// A whenView is a moment, and how long ago it is.
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
