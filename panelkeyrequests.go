package main

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The last requests of the organization's keys (request_exchange.go), and how to mend what was
// refused.

// requestsOnPage is how many requests a page of the list has.
const requestsOnPage = 50

// A requestsView is a page of the last requests.
type requestsView struct {
	Key    string
	Class  string
	Code   string
	ID     string
	Keys   []choiceItem
	Codes  []string // that the log has
	Total  int      // that were found
	Logged int      // that are in the log
	Rows   []requestRow
	Groups []errorGroup

	Pager pagerView
}

// A requestRow is a request in the list.
type requestRow struct {
	loggedRequest
	Route   string // in short; "" without
	KeyName string
	Millis  decimal
}

// An errorGroup is an error of the found requests, with how often it came.
type errorGroup struct {
	Code   string
	Status uint16
	Count  int
	Last   instant
	Path   string // to these requests
}

func requestArea() panelArea {
	return panelArea{pages: []panelPage{{requestsPath, "requests:read", "requests", requestsPage}}}
}

func requestsPage(v *panelRequest) (any, fillFunc) {
	if !v.planHasAPI() {
		return redirection{developmentPath}, nil
	}
	view := &requestsView{Key: v.param("clave"), Class: v.param("estado"), Code: v.param("codigo"), ID: v.param("solicitud")}
	all := v.api.requests.Of(v.member.org)
	view.Logged = len(all)
	return view, func(t *txn) error {
		keys, err := t.keys.list()
		if err != nil {
			return err
		}
		names := map[id]string{}
		for _, k := range keys {
			names[k.ID] = k.Name
			view.Keys = append(view.Keys, choiceItem{k.ID.String(), k.Name + " …" + k.Last4})
		}
		found := slices.DeleteFunc(slices.Clone(all), func(r loggedRequest) bool { return !view.shows(r) })
		view.group(all, found)
		view.cut(v, found, names)
		return nil
	}
}

// shows reports whether a request is among those asked for.
func (w *requestsView) shows(r loggedRequest) bool {
	return (w.Key == "" || r.Key.String() == w.Key) && (w.Class == "" || strconv.Itoa(int(r.Status))[:1]+"xx" == w.Class) &&
		(w.Code == "" || r.Code == w.Code) && (w.ID == "" || r.RequestID == w.ID || r.RequestID == unmarked(w.ID))
}

// group counts the errors of the requests that were found, the most frequent first.
func (w *requestsView) group(all, found []loggedRequest) {
	codes := map[string]bool{}
	for _, r := range all {
		if r.Code != "" {
			codes[r.Code] = true
		}
	}
	w.Codes = slices.Sorted(maps.Keys(codes))
	groups := map[string]*errorGroup{}
	for _, r := range found { // newest first
		if r.Code == "" {
			continue
		}
		g := groups[r.Code]
		if g == nil {
			g = &errorGroup{Code: r.Code, Status: r.Status, Last: r.At, Path: w.path(r.Code, 1)}
			groups[r.Code] = g
		}
		g.Count++
	}
	for _, g := range groups {
		w.Groups = append(w.Groups, *g)
	}
	slices.SortFunc(w.Groups, func(a, b errorGroup) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Code, b.Code)) })
}

// cut takes the page that was asked for.
func (w *requestsView) cut(v *panelRequest, found []loggedRequest, names map[id]string) {
	routes := v.api.routes()
	w.Total = len(found)
	last := max((len(found)+requestsOnPage-1)/requestsOnPage, 1)
	page, _ := strconv.Atoi(v.param("pagina"))
	page = min(max(page, 1), last)
	for _, r := range found[(page-1)*requestsOnPage : min(page*requestsOnPage, len(found))] {
		row := requestRow{loggedRequest: r, KeyName: names[r.Key], Millis: decimal(r.micros) * (decimalOne / 1000)}
		if r.route >= 0 {
			row.Route = shortRoute(routes[r.route].pattern)
		}
		w.Rows = append(w.Rows, row)
	}
	w.Pager = pagerView{Page: uint64(page), Pages: uint64(last)}
	if page > 1 {
		w.Pager.Previous = w.path(w.Code, page-1)
	}
	if page < last {
		w.Pager.Next = w.path(w.Code, page+1)
	}
}

// path is the list with its filters, and those of a code.
func (w *requestsView) path(code string, page int) string {
	params := givenParams([]pair{{"clave", w.Key}, {"estado", w.Class}, {"codigo", code}, {"solicitud", w.ID}})
	if page > 1 {
		params = append(params, pair{"pagina", strconv.Itoa(page)})
	}
	return withQuery(requestsPath, params)
}

// Filtered reports whether some requests are left out.
func (w *requestsView) Filtered() bool { return w.Key+w.Class+w.Code+w.ID != "" }

// What templates ask for.

// KeyChoices and CodeChoices are what the list can be narrowed to.
func (w *requestsView) KeyChoices(f *pageData) []choiceItem {
	return append([]choiceItem{{"", f.T("all.f")}}, w.Keys...)
}

func (w *requestsView) CodeChoices(f *pageData) []choiceItem {
	list := []choiceItem{{"", f.T("all")}}
	for _, code := range w.Codes {
		list = append(list, choiceItem{code, code})
	}
	return list
}

// Mend says how to mend what caused an error.
func (f prose) Mend(code string) string {
	if name := "mend." + code; f.Lang.Has(name) {
		return f.T(name)
	}
	return ""
}

// Class is the class of the tag of its status.
func (r requestRow) Class() string {
	switch {
	case r.Status >= 500:
		return "bad"
	case r.Status >= 400:
		return "warn"
	}
	return ""
}
