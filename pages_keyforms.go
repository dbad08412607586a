package main

import (
	"cmp"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How keys are made, changed, renewed and revoked by hand, and the last requests of keys. The forms
// become the requests that the commands make, and the domain checks them (keys.go).

// What the form of a key asks beside the fields of a keyRequest.
const (
	accessField  = "access" // accessAll or accessSome: an empty list of scopes opens everything
	accessAll    = "all"
	accessSome   = "some"
	expiresField = "expires" // days from today, or one of these
	expiresKept  = "kept"
	expiresDate  = "date"
	expiresNever = "never"
	dateField    = "expiresOn"
)

// expiryDays are the answers that are days from today.
var expiryDays = []string{"30", "90", "365"}

// overlaps are for how long a key that was renewed goes on; the first is the usual one.
var overlaps = []string{"24h", "1h", "168h"}

// Errors of these forms.
var (
	codeScopesNone = errorCode{"scopes_none", http.StatusBadRequest, ""}
	codeNotWhole   = errorCode{"limit_not_whole", http.StatusBadRequest, ""}
	codeOtherName  = errorCode{"other_name", http.StatusBadRequest, ""}
	codeKeyRevoked = errorCode{"key_revoked", http.StatusConflict, ""}
	codeKeyExpired = errorCode{"key_expired", http.StatusConflict, ""}
)

// maxList bounds the text of a list of addresses, in characters.
const maxList = 4000

func keyFormArea() panelArea {
	made := &panelPage{keysPath + "/nueva", "keys:manage", "key-made", nil}
	again := func(_ *panelRequest, id string) string { return keysPath + "/" + id + "?" + madeParam + "=1" }
	back := func(v *panelRequest, _ string) string { return keysPath + "/" + v.r.PathValue(keyIDParam) }
	members := keyMembers()
	all := []panelForm{
		{path: keysPath + "/nueva", from: keysPath + "/nueva", members: members, handle: createKeyByForm, done: again, shown: made},
		{path: keyPath + "/cambiar", from: keyPath + "/cambiar", members: members, handle: changeKeyByForm, done: back},
		{path: keyPath + "/renovar", from: keyPath + "/renovar", members: []formMember{{name: "overlap"}}, handle: rotateKeyByForm, done: again, shown: made},
		{path: keyPath + "/revocar", from: keyPath + "/revocar", members: []formMember{{name: "name", must: true}}, handle: revokeKeyByForm, done: back},
	}
	for i := range all {
		all[i].need, all[i].proof = "keys:manage", true
	}
	return panelArea{[]panelPage{
		{keysPath + "/nueva", "keys:manage", "key-new", onPlan(withProof(newKeyPage))},
		{keyPath + "/cambiar", "keys:manage", "key-change", onPlan(withProof(changeKeyPage))},
	}, all}
}

func keyMembers() []formMember {
	members := []formMember{
		{name: "name", must: true}, {name: accessField}, {name: expiresField}, {name: dateField}, {name: "ipWhitelist"},
		{name: "rateLimit", kind: amountMember}, {name: "dailyLimit", kind: amountMember}, {name: "monthlyLimit", kind: amountMember},
		{name: "maxPointsPerOperation", kind: amountMember}, {name: "maxPointsPerDay", kind: amountMember},
		{name: "noProof", kind: checkMember},
	}
	for _, scope := range scopes {
		members = append(members, formMember{name: scopeField + scope, kind: checkMember})
	}
	return members
}

// keyRequest reads what a key is to be like. kept says that the date of its end stays.
func (r *request) keyRequest() (in keyRequest, kept bool) {
	in.Name, _ = r.fields.rawText("name")
	in.Scopes = r.scopesOfForm()
	in.RateLimit, in.DailyLimit, in.MonthlyLimit = r.wholeNumber("rateLimit"), r.wholeNumber("dailyLimit"), r.wholeNumber("monthlyLimit")
	in.MaxPointsPerOperation, in.MaxPointsPerDay = r.pointsLimit("maxPointsPerOperation"), r.pointsLimit("maxPointsPerDay")
	if text, given := r.fields.text("ipWhitelist", maxList); given {
		in.IPWhitelist = strings.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == ',' || c == ' ' || c == '\t' })
	}
	in.NoProof = r.fields.literal("noProof") == "true"
	in.Expires, kept = r.expiryOfForm()
	return in, kept
}

// scopesOfForm reads the answer to what a key may do. None checked is a fault: without scopes
// a key may do everything.
func (r *request) scopesOfForm() (list []string) {
	access, _ := r.fields.text(accessField, 10)
	for _, scope := range scopes {
		if r.fields.literal(scopeField+scope) == "true" {
			list = append(list, scope)
		}
	}
	switch {
	case access == accessAll:
		return nil
	case access != accessSome:
		r.fields.fail(newError(codeRefused).on(accessField))
	case len(list) == 0:
		r.fields.fail(newError(codeScopesNone).on(accessField))
	}
	return list
}

// wholeNumber reads a number above zero without decimals; 0 where none is given, or something
// else is, which is a fault.
func (r *request) wholeNumber(name string) int {
	literal := r.fields.literal(name)
	if literal == "" {
		return 0
	}
	d, err := parseDecimal(literal)
	if whole := d / decimalOne; err == nil && d > 0 && d%decimalOne == 0 && whole <= math.MaxInt32 {
		return int(whole)
	}
	r.fields.fail(newError(codeNotWhole).on(name))
	return 0
}

func (r *request) pointsLimit(name string) decimal {
	if r.fields.literal(name) == "" {
		return 0
	}
	return r.above0(name, codeAmountInvalid)
}

// expiryOfForm reads when a key ends: "" for never.
func (r *request) expiryOfForm() (date string, kept bool) {
	answer, _ := r.fields.text(expiresField, 10)
	switch {
	case answer == expiresNever:
		return "", false
	case answer == expiresKept:
		return "", true
	case answer == expiresDate:
		date, given := r.fields.text(dateField, 100)
		if !given {
			r.fields.fail(newError(codeRefused).on(dateField))
		}
		return date, false
	case slices.Contains(expiryDays, answer):
		days, _ := strconv.Atoi(answer)
		return (dayOf(r.now, r.cfg.zone) + day(days)).String(), false
	}
	r.fields.fail(newError(codeRefused).on(expiresField))
	return "", false
}

// A madeKeyView is the only page that has the text of a key.
type madeKeyView struct {
	createdKey
	Previous *listedKey // that it takes the place of; nil: none
}

func createKeyByForm(r *request) action {
	in, kept := r.keyRequest()
	if kept { // a new key has no end yet
		r.fields.fail(newError(codeRefused).on(expiresField))
	}
	return func(t *txn) (any, error) {
		k, text, err := t.keys.create(in)
		if err != nil {
			return nil, inForm(err)
		}
		return &madeKeyView{createdKey{newListedKey(k, 0), text}, nil}, nil
	}
}

// keyInUse finds a key that a form is about, unless somebody has revoked it meanwhile.
func keyInUse(t *txn, keyID string) (*apiKey, error) {
	k, _, err := t.keys.own(keyID, "")
	if err != nil {
		return nil, notKey(err)
	}
	if k.RevokedAt != 0 {
		return nil, newError(codeKeyRevoked)
	}
	return k, nil
}

func changeKeyByForm(r *request) action {
	in, kept := r.keyRequest()
	change := keyChange{in, r.pathID(keyIDParam).String(), slices.Clone(keyFields)}
	if kept {
		change.Given = slices.DeleteFunc(change.Given, func(field string) bool { return field == "expires" })
	}
	return func(t *txn) (any, error) {
		if _, err := keyInUse(t, change.ID); err != nil {
			return nil, err
		}
		k, err := t.keys.change(change)
		if err != nil {
			return nil, inForm(err)
		}
		return listKey(t, k)
	}
}

func rotateKeyByForm(r *request) action {
	given, present := r.fields.text("overlap", 10)
	overlap, _ := time.ParseDuration(choice(r.fields.input, given, present, "overlap", codeRefused, overlaps))
	keyID := r.pathID(keyIDParam).String()
	return func(t *txn) (any, error) {
		if k, err := keyInUse(t, keyID); err != nil {
			return nil, err
		} else if k.state(t.now) == keyExpired {
			return nil, newError(codeKeyExpired)
		}
		k, text, old, err := t.keys.rotate(keyID, overlap)
		if err != nil {
			return nil, inForm(err)
		}
		previous, err := listKey(t, old)
		return &madeKeyView{createdKey{newListedKey(k, 0), text}, &previous}, err
	}
}

func revokeKeyByForm(r *request) action {
	name, _ := r.fields.text("name", anyLength)
	keyID := r.pathID(keyIDParam).String()
	return func(t *txn) (any, error) {
		k, _, err := t.keys.own(keyID, "")
		if err != nil {
			return nil, notKey(err)
		}
		if name != k.Name {
			return nil, newError(codeOtherName).on("name")
		}
		if k, err = t.keys.revoke(keyID); err != nil {
			return nil, inForm(err)
		}
		return listKey(t, k)
	}
}

// What the forms begin with.

type keyAnswers struct {
	Preset  string // "" without
	Presets []navItem
	Name    string
	Access  string // "" leaves the question open
	Scopes  []string
	Expires string
	Kept    bool // the date of its end may stay

	RateLimit, DailyLimit, MonthlyLimit    string
	MaxPointsPerOperation, MaxPointsPerDay string
	IPs                                    string
	NoProof                                bool
}

// NoProofBox says whether the key spends points without the customer's card.
func (a *keyAnswers) NoProofBox(f *pageData) boxView {
	return boxView{ID: controlID("noProof"), Name: "noProof", Value: "1", Label: f.T("key.noproof"), Hint: f.T("key.noproof.hint"), Checked: f.checked("noProof", a.NoProof)}
}

// keyPresets are keys that are often made.
var keyPresets = []struct {
	name   string // as the query and the text have it
	scopes []string
}{
	{"caja", []string{"customers:read", "customers:write", "points:read", "transactions:read", "transactions:write", "rewards:read", "rewards:write"}},
	{"tienda", []string{
		"customers:read", "customers:write", "points:read", "transactions:read", "transactions:write", "rewards:read", "rewards:write",
		"segments:read", "loyalty:read", "organization:read",
	}},
	{"lectura", slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !strings.HasSuffix(s, ":read") })},
}

func newKeyPage(v *panelRequest) (any, fillFunc) {
	a := &keyAnswers{Preset: v.param("modelo"), Expires: expiryDays[len(expiryDays)-1]}
	for _, p := range keyPresets {
		if p.name == a.Preset {
			a.Access, a.Scopes = accessSome, p.scopes
		}
		a.Presets = append(a.Presets, navItem{keysPath + "/nueva?modelo=" + p.name, "preset." + p.name, p.name == a.Preset})
	}
	a.typedScopes(v.posted)
	return a, nil
}

// A changeKeyView is a key with the answers that its form begins with.
type changeKeyView struct {
	*keyView
	Asked *keyAnswers
}

// changeKeyPage is the form with what the key is now.
func changeKeyPage(v *panelRequest) (any, fillFunc) {
	view, fill := oneKeyPage(v)
	of := view.(*keyView)
	asked := &changeKeyView{keyView: of}
	return asked, func(t *txn) error {
		if err := fill(t); err != nil {
			return err
		}
		k, f := &of.listedKey, v.format()
		a := &keyAnswers{
			Name: k.Name, Access: accessAll, Scopes: k.Scopes, Expires: expiresNever, IPs: strings.Join(k.IPWhitelist, "\n"),
			RateLimit: f.Number(decimalOf(k.RateLimit)), DailyLimit: wholeText(f, k.DailyLimit), MonthlyLimit: wholeText(f, k.MonthlyLimit),
			MaxPointsPerOperation: f.Decimal(k.MaxPointsPerOperation), MaxPointsPerDay: f.Decimal(k.MaxPointsPerDay), NoProof: k.NoProof,
		}
		if len(k.Scopes) > 0 {
			a.Access = accessSome
		}
		if a.Kept = k.ExpiresAt != 0; a.Kept {
			a.Expires = expiresKept
		}
		a.typedScopes(v.posted)
		asked.Asked = a
		return nil
	}
}

// wholeText writes a limit as the form reads it; "" for none.
func wholeText(f *format, n *int) string {
	if n == nil {
		return ""
	}
	return f.Number(decimalOf(*n))
}

// typedScopes takes the boxes that were checked, if the form was sent.
func (a *keyAnswers) typedScopes(posted object) {
	if posted == nil {
		return
	}
	a.Scopes = nil
	for _, scope := range scopes {
		if _, checked := posted.get(scopeField + scope); checked {
			a.Scopes = append(a.Scopes, scope)
		}
	}
}

func (a *keyAnswers) ScopeRows(f *pageData) []scopeRow { return scopeRows(f, a.Scopes) }

// ExpiryChoice is the question when a key ends.
func (a *keyAnswers) ExpiryChoice(f *pageData) choiceView {
	var answers []string
	if a.Kept {
		answers = append(answers, expiresKept)
	}
	return f.Choice(expiresField, "key.expires", a.Expires, slices.Concat(answers, expiryDays, []string{expiresDate, expiresNever})...)
}

// OverlapChoice is the question for how long a key goes on that is renewed.
func (f *pageData) OverlapChoice() choiceView {
	return f.Choice("overlap", "key.overlap", overlaps[0], overlaps...)
}

// Try is a command line to try a new key with; "" if it opens no list.
func (f *pageData) Try(granted []string) string { return curlOf(f.request.api, f.request.r, granted) }

// The last requests of the organization's keys (request_exchange.go), and how to mend what was
// refused.

const requestsOnPage = 50

type requestsView struct {
	Key    string
	Class  string
	Code   string
	ID     string
	Keys   []choiceItem
	Codes  []choiceItem // that the log has
	Total  int          // that were found
	Logged int          // that are in the log
	Rows   []requestRow
	Groups []errorGroup

	Pager pagerView
}

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
	return panelArea{pages: []panelPage{{requestsPath, "requests:read", "requests", onPlan(requestsPage)}}}
}

func requestsPage(v *panelRequest) (any, fillFunc) {
	view := &requestsView{Key: v.param("clave"), Class: v.param("estado"), Code: v.param("codigo"), ID: v.param("solicitud")}
	all := v.api.requests.Of(v.member.org)
	view.Logged, view.Keys, view.Codes = len(all), []choiceItem{{"", tr(v.lang, "all.f")}}, []choiceItem{{"", tr(v.lang, "all")}}
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

// shows reports whether the page's filters choose a request.
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
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		w.Codes = append(w.Codes, choiceItem{code, code})
	}
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

// path is the list with its filters, of the requests that failed with a code.
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
