package main

import (
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// What was typed when a session ended, or when the password was to be given again, is not
// lost: the page that comes first shows it and carries it along, and it is done as soon as that page
// has its answer (contract §31).

// A logInView is the page for logging in.
type logInView struct {
	Nobody   bool     // there is no user
	Commands []string // that let the first one in; nil: there is no organization either
	To       string   // where it leads
	Ended    bool     // a session that was there has ended
	Lost     bool     // what was sent is not kept
	Kept     *keptForm
}

// A keptForm is a form that was sent too late.
type keptForm struct {
	Path   string
	Fields []control
	form   *panelForm
}

// keptPath and keptField are the names under which a log-in carries such a form along.
const (
	keptPath  = "_again"
	keptField = "again."
)

// keepForm is the form that was just sent, of so many bytes at most, or the one that came with
// it; nil where it holds a secret, or does not come from a page of this address.
func (v *panelRequest) keepForm(most int64) *keptForm {
	if v.r.Method != http.MethodPost || v.posted == nil && v.receive(most) != nil {
		return nil
	}
	if kept := v.keptForm(); kept != nil {
		return kept
	}
	if v.hasSecret() {
		return nil
	}
	return &keptForm{v.r.URL.EscapedPath(), v.sentFields(), v.panel.forms[v.route]}
}

// keptForm is the form that came with the one that was sent; nil: none.
func (v *panelRequest) keptForm() *keptForm {
	to := v.typedText(keptPath)
	at, err := url.ParseRequestURI(to)
	if err != nil || at.Scheme != "" || at.Host != "" || at.RawQuery != "" || path.Clean(at.Path) != at.Path {
		return nil
	}
	_, pattern := v.panel.mux.Handler(&http.Request{Method: http.MethodPost, URL: at})
	pattern, is := strings.CutPrefix(pattern, "POST ")
	if !is || slices.Contains(carriers, pattern) {
		return nil
	}
	kept := &keptForm{Path: to, form: v.panel.forms[pattern]}
	for _, p := range v.posted {
		if name, of := strings.CutPrefix(p.name, keptField); of && !slices.Contains(secretFields, name) {
			kept.Fields = append(kept.Fields, control{Name: name, Value: p.value})
		}
	}
	return kept
}

// carriers are the forms that carry others along, and are not carried.
var carriers = []string{"/panel/entrar", "/panel/entrar/codigo", provePath, unlockPath}

// sendKept does what a kept form says, as if its page had sent it now.
func (v *panelRequest) sendKept(kept *keptForm) error {
	to, err := url.ParseRequestURI(kept.Path)
	if err != nil {
		return err
	}
	var fields []string
	for _, c := range kept.Fields { // in the order in which they came: it counts for a retry
		fields = append(fields, url.QueryEscape(c.Name)+"="+url.QueryEscape(c.Value))
	}
	body := strings.Join(fields, "&")
	r := v.r.Clone(v.r.Context())
	r.URL, r.RequestURI, r.Body, r.ContentLength = to, kept.Path, io.NopCloser(strings.NewReader(body)), int64(len(body))
	v.exchange.panelRequest = &panelRequest{exchange: v.exchange, panel: v.panel, r: r, lang: v.lang, status: http.StatusOK, carried: true}
	v.panel.mux.ServeHTTP(v.exchange, r)
	return nil
}

// askLogIn shows the page for logging in, in place of what a form would have done, and says
// whether that is lost. It reports whether a form was sent.
func (v *panelRequest) askLogIn() bool {
	view := &logInView{Ended: true, Kept: v.keepForm(maxForm), To: v.typedText("ir")}
	view.Lost = view.Kept == nil && view.To == ""
	return v.r.Method == http.MethodPost && v.showFirst(codeLogInRequired, "login", view)
}

// A lockView asks for the PIN.
type lockView struct {
	To   string // where it leads
	Kept *keptForm
	Lost bool // what was sent is not kept
}

// askPIN shows the page of a locked session, in place of what was asked for.
func (v *panelRequest) askPIN() bool {
	view := &lockView{Kept: v.keepForm(mostCarried), To: v.typedText("ir")}
	if v.r.Method != http.MethodPost {
		view.To = v.r.URL.RequestURI()
	}
	view.Lost = view.Kept == nil && view.To == ""
	return v.showFirst(codeSessionLocked, "lock", view)
}

// showFirst shows a page in place of what was asked for.
func (v *panelRequest) showFirst(why errorCode, name string, view any) bool {
	v.posted, v.faults, v.status, v.code = nil, nil, why.status, why.name
	return v.render(name, view) == nil
}
