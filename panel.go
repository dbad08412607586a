package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"sello/internal/texts"
)

// The panel is the dashboard that the binary serves under /panel: pages that the server
// makes, and forms. A form does what a request of the API does: its fields become the
// members of a body, and the same handler reads them and returns the same action. So no
// rule, limit or message is written twice. A page shows what actions find, all in one View.
//
// The way of a request of the panel:
//
//	route → request id → host → session → permission → (POST: the clock → origin → form →
//	organization and token) → the API's handler → one transaction, with its entry in the
//	audit log → page or redirect → one line in the log
//
// GET shows, POST changes. A POST that succeeds ends in a redirect to a page; one that
// fails shows its page again with what was typed.

func newPanel(a *api, address panelAddress, limits sessionLimits, m panelMap) *panel {
	p := &panel{api: a, address: address, sessionLimits: limits, assets: thePanelAssets(), mux: http.NewServeMux(), pages: map[string]*panelPage{}, forms: map[string]*panelForm{}, places: m.places, texts: m.texts, random: randomToken}
	p.asked.Burst, p.asked.Every = askedBurst, askedEvery
	a.requests = newRequestLog()
	for _, each := range m.pages {
		p.pages[each.path] = &each
		p.mux.HandleFunc("GET "+each.path, func(w http.ResponseWriter, r *http.Request) {
			v := w.(*exchange).asPage.(*panelRequest)
			v.route, v.need, v.page, v.r = each.path, each.need, &each, r
			v.answer(v.open)
		})
	}
	for _, each := range m.forms {
		p.forms[each.path] = &each
		p.mux.HandleFunc("POST "+each.path, func(w http.ResponseWriter, r *http.Request) {
			v := w.(*exchange).asPage.(*panelRequest)
			v.route, v.need, v.page, v.r = each.path, each.need, p.pages[each.from], r
			v.answer(func() error { return v.submit(&each) })
		})
	}
	p.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.(*exchange).asPage.(*panelRequest).redirect("/panel")
	})
	p.mux.HandleFunc("/panel/", noPage)
	return p
}

func noPage(w http.ResponseWriter, r *http.Request) {
	v := w.(*exchange).asPage.(*panelRequest)
	v.need, v.r = everyone, r
	v.answer(func() error { return newError(codeRouteNotFound) })
}

func (p *panel) serve(x *exchange, r *http.Request) {
	v := &panelRequest{exchange: x, panel: p, r: r, lang: p.texts.In(texts.Accepted(r.Header.Get("Accept-Language"))), status: http.StatusOK}
	x.asPage = v
	setPanelHeaders(x.Header(), p.address.isPlain())
	if !p.address.allows(r.Host) {
		x.fail(newError(codeWrongHost))
		return
	}
	if p.hsts {
		x.Header()["Strict-Transport-Security"] = hstsYear
	}
	if status, body, ok := p.assets.respond(x.Header(), r); ok {
		v.status = status
		v.send(body)
		return
	}
	if !isClean(r.URL.Path) {
		noPage(x, r)
		return
	}
	p.mux.ServeHTTP(x, r)
}

// setPanelHeaders sets the headers of every page. Everything comes from this server, and
// nothing in a page is script or style. Referrers stay on, since without them browsers
// send no origin with a form. On a plain address browsers would ignore the policy of openers,
// and complain of it on each page.
func setPanelHeaders(h http.Header, plain bool) {
	for _, one := range [...][2]string{
		{"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
		{"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"}, {"Cross-Origin-Resource-Policy", "same-origin"},
		{"Permissions-Policy", "camera=(), microphone=(), geolocation=()"},
	} {
		h[http.CanonicalHeaderKey(one[0])] = []string{one[1]}
	}
	if plain {
		delete(h, "Cross-Origin-Opener-Policy")
	}
}

// fullPage is the page of a server that accepts no more connections. It is in both languages: the
// headers that tell which one is wanted may not be read.
func fullPage(texts texts.Table) func(http.Header) []byte {
	const page = `<!DOCTYPE html><html lang="es"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>sello</title><p>%s</p><p lang="en">%s</p></html>`
	body := fmt.Appendf(nil, page, tr(texts.In("es"), "error.full"), tr(texts.In("en"), "error.full"))
	return func(h http.Header) []byte {
		setPanelHeaders(h, false)
		h["Content-Type"] = htmlType
		return body
	}
}

// hstsYear tells browsers to use TLS alone for this host for a year.
var hstsYear = []string{"max-age=31536000"}

// A session may open askedBurst pages and forms at once, and one more each askedEvery, which
// is at most 600 in any minute: a browser that runs wild, or somebody with its cookie, must
// not be what the tills wait for.
const (
	askedBurst = 300
	askedEvery = 200 // milliseconds
)

// answer runs the steps that pages and forms share, and then what follows.
func (v *panelRequest) answer(then func() error) {
	err := v.identify()
	if err == nil {
		err = v.allow()
	}
	if err == nil {
		err = then()
	}
	switch {
	case err == nil:
	case errors.Is(err, newError(codeLogInRequired)) && v.askLogIn():
	case errors.Is(err, newError(codePasswordRequired)) && v.askProof():
	case errors.Is(err, newError(codeSessionLocked)) && v.askPIN():
	case errors.Is(err, newError(codeFactorRequired)):
		v.redirect(factorPath)
	default:
		v.fail(err)
	}
}

// pollHeader is in the GETs that a page's script makes by itself: they are no sign that somebody
// is there. Forging it only lets one's own session end sooner.
const pollHeader = "Sello-Poll"

// identify finds who the session belongs to.
func (v *panelRequest) identify() error {
	token := v.panel.address.sentToken(v.r)
	if token == "" {
		return nil
	}
	e := v.api.engine
	settings := e.store.version()
	return e.store.ViewOnce(v.context(), func(tx Tx) (err error) { // it counts
		if v.member, err = memberByToken(tx, token, v.request.now, v.panel.sessionLimits); err != nil || v.member == nil {
			return err
		}
		v.user = v.member.user.ID.String()
		if wait := v.panel.asked.Take(v.member.hash, v.request.now); wait > 0 {
			v.member = nil // the page of the error has nothing of theirs
			return newError(codeAskedTooMuch).with("seconds", decimalOf(int(secondsOf(wait)))).retryAfter(wait)
		}
		polls := v.r.Method == http.MethodGet && v.r.Header.Get(pollHeader) != ""
		if !v.member.locked && !polls {
			v.panel.sessionLimits.seen.see(v.member, v.request.now)
		}
		if v.member.org != 0 {
			if v.cfg, err = e.config(settings, tx, v.member.org); err != nil {
				return err
			}
			if v.member.lacksFactor, err = lacksFactor(tx, v.member, v.cfg); err != nil {
				return err
			}
			v.organization = v.cfg.Organization.Slug
			v.request.caller = caller{user: v.member, cfg: v.cfg}
			if v.shops, err = v.shopsOf(settings, tx); err != nil {
				return err
			}
		}
		v.lang.Code = languageOf(v.member, v.cfg, v.r)
		return nil
	})
}

func (v *panelRequest) open() error {
	query, err := parseQuery(v.r.URL.RawQuery)
	if err != nil {
		return err
	}
	v.request.Request, v.request.query = v.r, query
	view, fill := v.page.show(v)
	if err := v.fill(fill); err != nil {
		return err
	}
	switch view := view.(type) {
	case redirection:
		return v.redirect(view.to)
	case *download:
		return v.sendFile(view)
	}
	if v.leadsTo != "" {
		return v.redirect(v.leadsTo)
	}
	if len(v.faults) > 0 && v.status == http.StatusOK { // of its query
		v.status = http.StatusUnprocessableEntity
	}
	return v.render(v.page.template, view)
}

// What was typed when a session ended, or when the password was to be given again, is not
// lost: the page that comes first shows it and carries it along, and it is done as soon as that page
// has its answer (contract §31).

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
	return &keptForm{v.r.URL.EscapedPath(), sentFields(v.posted), v.panel.forms[v.route]}
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
	v.exchange.asPage = &panelRequest{exchange: v.exchange, panel: v.panel, r: r, lang: v.lang, status: http.StatusOK, carried: true}
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

// Some pages and forms need the password once more, unless it was given in the last ten
// minutes: a session that is left open must not be enough to make people, keys and secrets,
// to change the configuration, or to carry data away. A page with a form to fill in asks
// before it shows the form, except where the form is reviewed first. A form that comes without
// the password is kept, and shown once it is given.

type proveView struct {
	To    string // where it leads
	Ready bool   // that is a file, which can be had now: browsers save it and stay on the page
	Kept  *keptForm
}

// withProof is withForms for a page that leads to the one that asks for the password, unless it was
// given lately. The page of a form that was sent is shown in any case, with what was typed.
func withProof(show pageFunc) pageFunc {
	return func(v *panelRequest) (any, fillFunc) {
		if v.posted == nil && !v.member.hasProved(v.request.now) {
			return redirection{withQuery(provePath, []pair{{"ir", v.r.URL.RequestURI()}})}, nil
		}
		return withForms(show)(v)
	}
}

// askProof asks for the password in place of what a form would have done. It reports whether
// there was anything to keep.
func (v *panelRequest) askProof() bool {
	kept := v.keepForm(mostCarried)
	return kept != nil && v.showFirst(codePasswordRequired, "prove", &proveView{Kept: kept})
}

// fileForm is a form that is answered by a file with data of the organization. Its fields are what a
// page's query is. It is no page, since it leaves an entry in the audit log, which a link on another
// site must not (contract §31).
func fileForm(path string, need permission, from string, show func(*panelRequest) (*download, fillFunc)) panelForm {
	return panelForm{path: path, need: need, from: from, proof: true, file: true, run: func(v *panelRequest) error {
		if v.carried {
			return v.offerFile()
		}
		v.request.Request, v.request.query = v.r, query{input{new(fault), sent{object: v.posted}}}
		v.posted = nil
		file, fill := show(v)
		if err := v.fill(fill); err != nil {
			return err
		}
		if err := v.change(func(t *txn) error { return t.audit.note(auditDataExported, file.data, nil) }); err != nil {
			return err
		}
		return v.sendFile(file)
	}}
}

// offerFile shows the form that has a file, where another form has carried it: browsers that save a file
// stay on the page that asked for something else.
func (v *panelRequest) offerFile() error {
	view := &proveView{Ready: true, Kept: v.keepForm(maxForm)}
	v.posted = nil
	return v.render("prove", view)
}
