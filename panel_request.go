package main

import (
	"crypto/rand"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"sello/internal/texts"
	"sello/internal/throttle"
)

// What the panel is made of (pages, forms, places of the navigation), one request of it, and which
// places a member may open.

type panel struct {
	api           *api
	address       panelAddress
	sessionLimits sessionLimits
	assets        *panelAssets
	protect       http.CrossOriginProtection
	hsts          bool                                // pages tell browsers to use TLS alone
	asked         throttle.Buckets[[32]byte, instant] // requests of each session
	mux           *http.ServeMux
	pages         map[string]*panelPage
	forms         map[string]*panelForm
	places        []panelPlace
	texts         texts.Table
	counts        segmentCounts
	links         sync.Map      // template.HTML of each navigation
	random        func() string // makes tokens of forms
	hooks         *deliverer    // of the server; nil: there is none, as in tests
	server        *panelServer  // nil: there is none, as in most tests
}

// templates are the pages by name, each with the layout.
type templates map[string]*template.Template

type panelPage struct {
	path     string // as http.ServeMux takes it
	need     permission
	template string // the name of a file in panel/, without its ending
	show     pageFunc
}

// A pageFunc makes the view of a page.
type pageFunc = func(*panelRequest) (view any, fill fillFunc)

// A fillFunc completes a view in a View of the organization; nil: it is complete.
type fillFunc func(*txn) error

// A panelPlace is a line of the navigation.
type panelPlace struct {
	path string
	need permission
	text string // its name
	part bool   // also for who has the permission in part

	group string // the name of its group; "" of the first one
}

// A panelMap is what a panel has: its pages, its forms, the navigation in order, and all texts.
type panelMap struct {
	pages  []panelPage
	forms  []panelForm
	places []panelPlace
	texts  texts.Table
}

type panelArea struct {
	pages []panelPage
	forms []panelForm
}

// A panelForm is what a POST does.
type panelForm struct {
	path    string // as http.ServeMux takes it
	need    permission
	from    string // the path of the page that has the form; the names in it are also in path
	members []formMember
	handle  func(*request) action
	run     func(*panelRequest) error // does all by itself, in place of handle and what follows; the form needs no token
	most    int64                     // bytes; 0: maxForm
	action  string                    // of the audit log's entry, where the domain writes none for that
	about   string                    // the name in path of what that entry is about; "": what was made
	labels  string                    // the names of its controls' texts begin so; "": with "field"
	proof   bool                      // it needs the password to have been given lately
	file    bool                      // its answer is a file, which leaves an entry

	// guard says what a role that has the permission in part may do.
	guard func(*panelRequest, *txn) error
	// prepare completes what was posted, before it is read.
	prepare func(*panelRequest)

	// shows returns what the form's page shows of what the form would do, when that is reviewed: of
	// what its action returned. nil: it shows nothing of that.
	shows func(done any) any

	// done returns where a success leads, by the id of what the action returned.
	done func(v *panelRequest, id string) string
	// forms says that this page has forms: the way there brings their token, so that the page
	// need not lead to itself.
	forms bool
	// shown, if not nil, is shown at once in place of that, the first time only: what is
	// shown once is nowhere in the store.
	shown *panelPage
}

// A formMember is a member of the body that a form becomes.
type formMember struct {
	name string
	kind memberKind
	of   []formMember // of an element, if kind is listMember
	must bool         // the panel asks for it, though the API does not

	// value is the value of a fixedMember, and the name in the path of a pathMember that is
	// called otherwise there.
	value string

	make func(v *panelRequest, name string) string // of a madeMember: its value; "" leaves it out
}

type memberKind int

const (
	textMember   memberKind = iota // a string; absent if it is blank
	patchMember                    // a string; null if it is blank
	amountMember                   // a number as people write it
	pathMember                     // a string from the path
	fixedMember                    // the same string always
	checkMember                    // true if the box is checked
	madeMember                     // what make makes of the field of that name
	listMember                     // objects: name[0].member, name[1].member …; rows without any value are left out
)

// A panelRequest is one request of the panel and its response.
type panelRequest struct {
	*exchange
	panel  *panel
	r      *http.Request // with the values of its path
	need   permission
	page   *panelPage // the page that is opened, or that has the form that was sent
	member *member    // nil: nobody is logged in
	cfg    *config    // of the member's organization; nil without one
	lang   texts.Language
	shops  []shopItem // the member's organizations, if they are several

	carried  bool   // what was sent was kept, and comes by another page's form
	labels   string // of the form that was sent
	posted   object // the fields of the form that was sent; nil: none was
	reviewed any    // what the form would do that was sent to be rehearsed; nil: none was
	confirms string // what stands for that and for the fields of the form
	token    string // of the forms of the page
	kept     bool   // what was posted may be shown again: it has no password
	leadsTo  string // the page that a page leads to, as its fillFunc found; "": it is shown
	faults   []*apiError
	status   int // of the page
}

type shopItem struct {
	Slug, Name string
	Role       role
	Current    bool
}

// shopsOf lists the member's organizations; none if there is one alone.
func (v *panelRequest) shopsOf(settings version, tx Tx) (list []shopItem, err error) {
	orgs, err := organizationsOf(tx, v.member.user.ID)
	if err != nil || len(orgs) < 2 {
		return nil, err
	}
	for _, org := range orgs {
		m, err := membershipIn(tx, org, v.member.user.ID)
		if err != nil || m == nil {
			return nil, err
		}
		cfg, err := v.api.engine.config(settings, tx, org)
		if err != nil {
			return nil, err
		}
		if m.Disabled == 0 {
			list = append(list, shopItem{cfg.Organization.Slug, cfg.Organization.Name, m.Role, org == v.member.org})
		}
	}
	return list, nil
}

func (v *panelRequest) allow() error {
	switch {
	case v.member != nil && v.member.locked && !slices.Contains(openLocked, v.route):
		return newError(codeSessionLocked)
	case v.need == everyone:
		return nil
	case v.member == nil:
		return newError(codeLogInRequired)
	case v.member.lacksFactor && !v.isOwn():
		return newError(codeFactorRequired)
	case !v.hasPlace(v.route):
		return newError(codeRouteNotFound)
	case v.need != anyone && !v.may(v.need):
		return newError(codePermissionRequired).with("permission", string(v.need))
	case ofTickets(v.route) && v.cfg.tickets() == nil:
		return newError(codeRouteNotFound)
	}
	return nil
}

// hasPlace reports whether there is such a page for the member. Without API access in the plan
// the developers' area is there for operators alone (contract §19).
func (v *panelRequest) hasPlace(route string) bool {
	return v.planHasAPI() || v.may(operates) || route != developmentPath && !strings.HasPrefix(route, developmentPath+"/")
}

const (
	newTicketPath = "/panel/caja/ticket"
	ticketsPath   = "/panel/ventas/tickets"
	ticketPath    = "/panel/tickets/{ticketId}"
)

// ofTickets reports whether a route is there only for an organization that has tickets.
func ofTickets(route string) bool {
	return route == newTicketPath || route == ticketsPath || strings.HasPrefix(route, ticketPath)
}

// opens reports whether the member may open a place.
func (v *panelRequest) opens(place panelPlace) bool {
	return v.sees(place.need, place.part) && v.hasPlace(place.path)
}

// planHasAPI reports whether the plan of the member's organization has API access.
func (v *panelRequest) planHasAPI() bool { return v.cfg != nil && v.cfg.Organization.Plan.APIAccess }

// onPlan leads from a page of the developers' area to the area's first page, unless the plan has API access.
func onPlan(show pageFunc) pageFunc {
	return func(v *panelRequest) (any, fillFunc) {
		if !v.planHasAPI() {
			return redirection{developmentPath}, nil
		}
		return show(v)
	}
}

const developmentPath = "/panel/desarrollo"

// codeFactorRequired leads to where a second factor is set up.
var codeFactorRequired = errorCode{"second_factor_required", http.StatusForbidden, ""}

// codeSessionLocked asks for the session's PIN.
var codeSessionLocked = errorCode{"session_locked", http.StatusUnauthorized, ""}

const (
	provePath  = "/panel/confirmar"
	factorPath = "/panel/cuenta/segundo-factor"
	pinPath    = "/panel/cuenta/pin"
	lockPath   = "/panel/bloquear" // locks
	unlockPath = "/panel/bloqueo"  // is where a locked session waits
	outPath    = "/panel/salir"
)

// openLocked are the routes that a locked session has.
var openLocked = []string{unlockPath, lockPath, outPath}

// isOwn reports whether the page or form is of the member's own account and session, and of
// no organization's.
func (v *panelRequest) isOwn() bool {
	return strings.HasPrefix(v.route, "/panel/cuenta") || slices.Contains([]string{provePath, lockPath, unlockPath, "/panel/organizacion", outPath}, v.route)
}

// may reports whether the member has a permission, be it in part.
func (v *panelRequest) may(p permission) bool {
	if p == operates {
		return v.member != nil && v.member.user.Operator
	}
	return v.member != nil && v.member.role.may(p) != grantNone
}

// sees reports whether the member has a permission; part: be it in part.
func (v *panelRequest) sees(p permission, part bool) bool {
	if p == operates {
		return v.may(p)
	}
	g := v.member.role.may(p)
	return p == anyone || g == grantAll || part && g == grantSome
}

// mayAll is an error unless the member has a permission without bounds.
func (m *member) mayAll(p permission) error {
	if m.role.may(p) == grantAll {
		return nil
	}
	return newError(codePermissionRequired).with("permission", string(p))
}

// A redirection is a view that is another page.
type redirection struct{ to string }

// A download is a view that is a file.
type download struct {
	name, media string
	body        []byte
	data        string // that of the organization it holds, for the audit log; "": none
}

// fill runs a fillFunc in a View. It may add to what it fills, so it must not run twice.
func (v *panelRequest) fill(fill fillFunc) error {
	if fill == nil {
		return nil
	}
	if err := v.beginWork(v.api.reading); err != nil { // as a large GET of the API
		return err
	}
	defer v.endWork()
	_, err := readOnce(v.context(), v.api.engine, v.member.org, v.request.now, func(t *txn) (struct{}, error) {
		return struct{}{}, fill(t)
	})
	return err
}

// ask is a request of the API that a page makes: the handler's action with the query's
// parameters. Faults of what people typed are told on the page.
func (v *panelRequest) ask(handle func(*request) action, params ...pair) action {
	req := v.request
	req.Request = v.r
	req.query = query{input{new(fault), sent{object: givenParams(params)}}}
	act := handle(&req)
	if err := req.query.err; err != nil {
		v.faults = append(v.faults, publicError(err).with(askedContext, true))
		return func(*txn) (any, error) { return nil, nil }
	}
	return act
}

// lines are the rows of a page, one of each element. One that cannot be shown, as its record or
// one that it names is damaged or gone, is left out and logged: the others are still shown.
func lines[T, R any](v *panelRequest, list []T, line func(T) (R, error)) (rows []R, err error) {
	for _, each := range list {
		switch row, err := line(each); {
		case err == nil:
			rows = append(rows, row)
		case !v.leavesOut(err):
			return nil, err
		}
	}
	return rows, nil
}

// leavesOut reports whether an error is of one line of a page alone, and logs it.
func (v *panelRequest) leavesOut(err error) bool {
	e, known := errors.AsType[*apiError](err)
	if !isDamaged(err) && (!known || e.code.status != http.StatusNotFound) {
		return false
	}
	v.api.log.Error("line left out", "requestId", v.requestID[0], "path", v.route, "cause", err.Error())
	return true
}

// param is a parameter of the page's query; params are the named ones that have a value, for ask.
func (v *panelRequest) param(name string) string {
	if v.posted != nil { // the page of a form has no query
		return ""
	}
	value, _ := v.request.query.get(name)
	return value
}

func (v *panelRequest) params(names ...string) (list []pair) {
	for _, name := range names {
		if value := v.param(name); value != "" {
			list = append(list, pair{name, value})
		}
	}
	return list
}

// givenParams drops the parameters without a value.
func givenParams(params []pair) (list object) {
	for _, p := range params {
		if p.value != "" {
			list = append(list, p)
		}
	}
	return list
}

// withQuery is a path with parameters; of several with one name, only the last.
func withQuery(path string, params []pair) string {
	q := url.Values{}
	for _, p := range params {
		q.Set(p.name, p.value)
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return path
}

// resultOf is what an action returned, without ETag or status; zero if it returned nothing.
func resultOf[T any](t *txn, act action) (result T, err error) {
	v, err := act(t)
	if err != nil {
		return result, err
	}
	result, _ = bodyIn(v).(T)
	return result, nil
}

// bodyIn is the body in what an action returned.
func bodyIn(v any) any {
	switch r := v.(type) {
	case tagged:
		return r.body
	case reply:
		return r.body
	case repeated:
		return r.body
	}
	return v
}

// tokenField and orgField are in every form; tokenParam is the token in a query. A form with
// reviewField is rehearsed, and its page shows what it would do; what was reviewed is in
// reviewedField. etagField is the ETag of
// what a form changes.
const (
	tokenField    = "_token"
	orgField      = "_org"
	reviewField   = "_review"
	reviewedField = "_reviewed"
	etagField     = "_etag"
	tokenParam    = "f"
)

// readingField is the button that says how an ambiguous amount is read: "name=literal". The
// buttons of a form that is reviewed are called reviewField.
const readingField = "_reading"

func randomToken() string { return rand.Text() }

// isToken reports whether a text can be a token of a form.
func isToken(text string) bool {
	return len(text) >= 16 && len(text) <= 64 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// needToken returns the token of the page's forms. A page that is opened without one leads
// to itself with one: ok is false then.
func (v *panelRequest) needToken() (to redirection, ok bool) {
	if v.token != "" {
		return to, true
	}
	q := v.r.URL.Query()
	if v.token = q.Get(tokenParam); isToken(v.token) {
		return to, true
	}
	q.Set(tokenParam, v.panel.random())
	return redirection{v.r.URL.EscapedPath() + "?" + q.Encode()}, false
}

// withForms is for a page with forms: it needs their token.
func withForms(show pageFunc) pageFunc {
	return func(v *panelRequest) (any, fillFunc) {
		if to, ok := v.needToken(); !ok {
			return to, nil
		}
		return show(v)
	}
}

// withToken puts the token of its forms into the address of a page.
func withToken(path, token string) string {
	mark := "?"
	if strings.Contains(path, mark) {
		mark = "&"
	}
	return path + mark + tokenParam + "=" + token
}

// format is how the page writes and reads numbers and dates.
func (v *panelRequest) format() *format {
	f := &format{language: v.lang.Code, zone: time.UTC}
	if v.cfg != nil {
		f = formatOf(v.cfg, v.lang.Code)
	}
	f.now = v.request.now
	return f
}

// secretFields are never sent back to a browser.
var secretFields = []string{"password", "old", "factorCode", "dropCode", "pin", "pinAgain", "oldPin", "dropPin"}

// hasSecret reports whether the form that was sent has one of the secretFields.
func (v *panelRequest) hasSecret() bool {
	return slices.ContainsFunc(v.posted, func(p pair) bool { return slices.Contains(secretFields, p.name) })
}

// typedText is a field of the form that was sent, as it was typed.
func (v *panelRequest) typedText(name string) string {
	text, _ := v.posted.get(name)
	return text
}

func (v *panelRequest) drop(name string) {
	v.posted = slices.DeleteFunc(v.posted, func(p pair) bool { return p.name == name })
}

// A navigation is which places a member may open, and which one a page is in. Its links are
// the same for all who have the same one: they are rendered once.
type navigation struct {
	lang    string
	open    uint64 // bit n: place n
	current int    // the index of a place; -1: the page is in none
}

func (v *panelRequest) navigation() navigation {
	n := navigation{lang: v.lang.Code, current: -1}
	if v.member == nil || v.member.lacksFactor {
		return n
	}
	for i, place := range v.panel.places {
		if v.opens(place) {
			n.open |= 1 << i
			if v.route == place.path || place.path != "/panel" && strings.HasPrefix(v.route, place.path+"/") {
				n.current = i
			}
		}
	}
	return n
}

// A navGroup is a part of the links; the first one has no name.
type navGroup struct {
	Name  string
	Items []navItem
}

type navItem struct {
	Path, Text string
	Current    bool
}

// groups are the links of a navigation.
func (p *panel) groups(n navigation) (list []navGroup) {
	lang := p.texts.In(n.lang)
	for i, place := range p.places {
		if n.open&(1<<i) == 0 {
			continue
		}
		name := ""
		if place.group != "" {
			name = tr(lang, place.group)
		}
		if of := len(list); of == 0 || list[of-1].Name != name {
			list = append(list, navGroup{Name: name})
		}
		group := &list[len(list)-1]
		group.Items = append(group.Items, navItem{place.path, tr(lang, place.text), i == n.current})
	}
	return list
}
