package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"sello/internal/chart"
	"sello/internal/static"
	"sello/internal/texts"
)

// The site is the pages that customers open on their phones (contract §25): no session, no script,
// nothing from elsewhere, and one page for every address that opens nothing.
//
//	/t/{token}            a card
//	/t/{token}.json       the same figures, for a shop's own page
//	/t/{token}/estado     the statement of a month
//	/u/{slug}             a form to join, whose answer is a page /t/{token}
//	/c/{ticket}           a ticket, and a form to add it to a card
//	/card-{hash}.css      the one stylesheet, with the organization's colour
//
// It answers on a host of its own, whose name is never the panel's: a page of one cannot be taken
// for a page of the other, and no cookie goes to both. Only demo and sandbox have it beside the
// panel. An address has a card's token, so that the log and the metrics have the route alone. The one
// cookie is the card that a browser opened last, for the pages of tickets.

type site struct {
	api   *api
	joins sourceLimits // forms to join that were taken

	protect http.CrossOriginProtection // of the forms
	host    string                     // the name that it answers, without the port; "": any
	beside  bool                       // the panel and the API answer what is none of its paths
	mux     *http.ServeMux
}

// sitePaths are what the site's paths begin with.
var sitePaths = []string{"/t/", "/u/", claimPath, siteStylePrefix}

// page registers a page. show returns its view.
func (s *site) page(pattern string, show func(*siteRequest) (*sitePage, error)) {
	_, route, _ := strings.Cut(pattern, " ")
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v := w.(*exchange).asPage.(*siteRequest)
		v.r, v.exchange.route = r, route
		page, err := show(v)
		if err == nil && page != nil {
			err = v.render(page)
		}
		if err != nil {
			v.fail(err)
		}
	})
}

// answers reports whether a request that came to the API's address is the site's.
func (s *site) answers(r *http.Request) bool {
	if !s.beside {
		return hostName(r.Host) == s.host
	}
	for _, prefix := range sitePaths {
		if strings.HasPrefix(r.URL.Path, prefix) {
			return true
		}
	}
	return false
}

// byName gives what comes to the cards' name to own, and all else to other.
func (s *site) byName(own, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hostName(r.Host) == s.host {
			own.ServeHTTP(w, r)
			return
		}
		other.ServeHTTP(w, r)
	})
}

// hostName is a host without its port and the dot that may end it, in lower case.
func hostName(host string) string {
	return strings.TrimSuffix(strings.ToLower(withoutPort(host)), ".")
}

// ServeHTTP is for an address of the site's own.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.api.answer(w, r, s.serve) }

func (s *site) serve(x *exchange, r *http.Request) {
	v := &siteRequest{exchange: x, site: s, r: r}
	x.asPage = v
	for _, one := range siteHeaders {
		x.Header()[one[0]] = []string{one[1]}
	}
	if style := styleAt(r.URL.Path); style != nil && !writes(r.Method) {
		v.status, v.body = style.Respond(x.Header(), r)
		x.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		v.send()
		return
	}
	if !isClean(r.URL.Path) {
		x.fail(newError(codeRouteNotFound))
		return
	}
	s.mux.ServeHTTP(x, r)
}

// siteHeaders are those of every answer. A page loads its stylesheet and nothing else, nobody
// may frame it, and where a link leads learns no address.
var siteHeaders = [...][2]string{
	{"Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"},
	{"Referrer-Policy", "no-referrer"}, {"X-Robots-Tag", "noindex"}, {"X-Content-Type-Options", "nosniff"},
}

// A siteRequest is one request of the site and its response.
type siteRequest struct {
	*exchange
	site *site
	r    *http.Request // with the values of its path

	status int
	body   []byte
	asJSON bool // it is told of errors as a client of the API is
}

// send writes the response with its length, as the panel does.
func (v *siteRequest) send() {
	v.exchange.status = v.status
	v.Header()["Content-Length"] = []string{strconv.Itoa(len(v.body))}
	v.ResponseWriter.WriteHeader(v.status)
	v.ResponseWriter.Write(v.body)
}

// codeCardNotFound answers every address that opens no card, whatever was wrong with it.
var codeCardNotFound = errorCode{"card_not_found", http.StatusNotFound, "Esta tarjeta ya no vale"}

// codeJoinsMany refuses a form to join of a source that has sent too many.
var codeJoinsMany = errorCode{"joins_many", http.StatusTooManyRequests, "Inténtalo más tarde"}

// missed counts an address that opens nothing among what its source is refused for. The error says
// that there were too many. What is good is answered all the same.
func (v *siteRequest) missed() error {
	now := v.request.now
	if wait := v.api.refused.take(sourceAddress(v.r, v.api.trusted), now); wait > 0 {
		return rateLimited(codeRateLimitSource, maxRefusals, "minute", now+wait, now)
	}
	return newError(codeCardNotFound)
}

// fail shows an error. All that is not found is one page, equal in bytes.
func (v *siteRequest) fail(err error) {
	e := v.note(err)
	v.status = e.code.status
	v.Header()["X-Content-Type-Options"] = []string{"nosniff"} // which goes with ServeMux's own text
	if v.asJSON {
		v.Header()["Content-Type"] = jsonType
		if v.body, err = encode(e.body(v.requestID[0])); err == nil {
			v.send()
			return
		}
	}
	title, text := "site.fault", "site.fault.text"
	switch v.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		if title, text = "site.gone", "site.gone.text"; strings.HasPrefix(v.r.URL.Path, claimPath) {
			title, text = "site.ticket.gone", "site.ticket.gone.text"
		}
	case http.StatusTooManyRequests:
		if title, text = "site.often", "site.often.text"; e.code == codeJoinsMany {
			title, text = "site.later", "site.later.text"
		}
	}
	es, en := allTexts().In("es"), allTexts().In("en")
	if err := v.render(&sitePage{
		Language: es, Title: tr(es, title), CSS: stylePath(nil), template: "gone",
		View: goneView{tr(es, title), tr(es, text), tr(en, title), tr(en, text)},
	}); err != nil {
		v.api.log.Error("failed", "requestId", v.requestID[0], "cause", err.Error())
	}
}

// A goneView is a page that says in both languages why there is nothing to see.
type goneView struct{ Title, Text, TitleEN, TextEN string }

// A sitePage is what the layout shows around a view.
type sitePage struct {
	Language texts.Language
	Title    string
	CSS      string // the path of the stylesheet
	Org      string
	Refresh  int // seconds after which the browser asks again; 0: it does not
	View     any
	template string // the name of a file in site/, without its ending
}

// T is a text in the page's language.
func (p *sitePage) T(name string, args ...any) string { return tr(p.Language, name, args...) }

// Lang is the code of the page's language.
func (p *sitePage) Lang() string { return p.Language.Code }

// Mark is the initial that stands for the organization's logo, which would come from elsewhere.
func (p *sitePage) Mark() string { return orgView{Name: p.Org}.Mark() }

//go:embed site/*.html site/site.css
var siteFiles embed.FS

var siteTemplates = sync.OnceValue(func() templates {
	all := templates{}
	layout := template.Must(template.ParseFS(siteFiles, "site/layout.html"))
	for _, name := range []string{"card", "statement", "join", "ticket", "gone"} {
		all[name] = template.Must(template.Must(layout.Clone()).ParseFS(siteFiles, "site/"+name+".html"))
	}
	return all
})

// render shows a page, which is made whole before anything of it is sent.
func (v *siteRequest) render(p *sitePage) error {
	var b bytes.Buffer
	b.Grow(16 << 10)
	if err := siteTemplates()[p.template].ExecuteTemplate(&b, "layout", p); err != nil {
		return fmt.Errorf("template %s: %w", p.template, err)
	}
	if v.status == 0 {
		v.status = http.StatusOK
	}
	v.Header()["Content-Type"] = htmlType
	if p.Refresh > 0 {
		v.Header()["Refresh"] = []string{strconv.Itoa(p.Refresh)}
	}
	v.body = b.Bytes()
	v.send()
	return nil
}

// The stylesheet is one file: what is the same for all, and the organization's colour. Its address
// changes with both, so that browsers keep it for good.
//
//	/card-{start of the SHA-256 of what is the same}{colour}.css
const siteStylePrefix = "/card-"

// siteStyle is what is the same for all, and what its addresses begin with.
var siteStyle = sync.OnceValue(func() (s struct {
	text   []byte
	prefix string
}) {
	text, err := siteFiles.ReadFile("site/site.css")
	if err != nil {
		panic(err) // the binary holds it
	}
	sum := sha256.Sum256(text)
	s.text, s.prefix = text, siteStylePrefix+hex.EncodeToString(sum[:6])
	return s
})

// stylePath is the path of the stylesheet with a colour such as #5B3A29; nil: with sello's.
func stylePath(primary *string) string {
	path := siteStyle().prefix
	if c, ok := brandColor(primary); ok {
		path += c.String()[1:]
	}
	return path + ".css"
}

// styleAt is the stylesheet of a path; nil if there is none.
func styleAt(path string) *static.Content {
	rest, ours := strings.CutPrefix(path, siteStyle().prefix)
	name, isStyle := strings.CutSuffix(rest, ".css")
	c, ok := chart.ParseColor(name)
	if !ours || !isStyle || name != "" && !ok {
		return nil
	}
	text := siteStyle().text
	if ok {
		text = append(bytes.Clone(text), chart.Stylesheet(c)...)
	}
	return static.NewPlain(stylesheetType, text)
}
