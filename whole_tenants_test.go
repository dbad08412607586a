package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Tenants: for a caller, another organization's data does not exist (spec: What
// the service does; contract §1, §3). The tests try every route with ids of every
// organization wherever a request names something, under every kind of key.
//
// Every request begins with the same store, clock, limits and seed. Two answers
// that must be equal are compared byte by byte, and so are the stores after them.
// A check collects flaws. A control puts one fault into the server and expects
// the check to find it.

// The organizations. here and there differ only in slugs and ids, and each has
// customers and a reward that the other lacks. nowhere does not exist.
const (
	here    = "norte" // the caller's
	there   = "oeste"
	nowhere = "nadie"
	planOff = "plano" // lost its access to the API
)

// A street is a world with these organizations.
type street struct {
	world   *world
	past    *pastStore
	begin   memTx        // what each request begins with
	handler http.Handler // the API, or one with a fault
	wire    bool         // requests go to the API over a connection
	spent   id           // the API key whose minute is used up
	sending *testKey     // the key that the request is sent with
	routes  []*route
}

const streetDocument = `{"organization": {"slug": "%[1]s", "name": "Café Gemelo", "plan": {"name": "Pro", "apiAccess": true},
	"profile": {"country": "MX"}, "settings": {"timezone": "America/Mexico_City", "currency": "MXN"}},
"programs": [
	{"key": "club", "name": "Club", "default": true, "payment": {"points": 10, "amount": 1}, "tiers": [{"name": "Bronce", "threshold": 0}, {"name": "Plata", "threshold": 100}],
	 "rules": [{"key": "base", "name": "1 por $10", "per": {"amount": 10, "points": 1}}, {"key": "hola", "name": "Hola", "on": "Signup", "points": 50}]},
	{"key": "sellos", "name": "Sellos"}],
"rewards": [
	{"key": "espresso", "program": "club", "name": "Espresso", "pointsCost": 1},
	{"key": "termo", "program": "club", "name": "Termo", "pointsCost": 1, "stock": 0},
	{"key": "yate", "program": "club", "name": "Yate", "pointsCost": 99999},
	{"key": "gorra", "program": "club", "name": "Gorra %[1]s", "pointsCost": 5},
	{"key": "vale", "program": "club", "name": "Vale", "pointsCost": 2, "fulfilment": "Voucher", "validDays": 30, "effect": {"type": "Amount", "amount": 50}}],
"segments": [{"key": "vip", "name": "VIP", "priority": 1, "isActive": true, "rule": {"field": "totalSpent", "op": ">", "value": 100}}]}`

const streetLife = `
let ORG.customer = id
POST /api/v1/customers
{"email": "ana@example.com", "phoneNumber": "+525512345678", "firstName": "Ana", "lastName": "Núñez"}

let ORG.inactive = id
POST /api/v1/customers
{"email": "beto@example.com", "firstName": "Beto"}

let ORG.solo = id
POST /api/v1/customers
{"email": "EMAIL", "phoneNumber": "PHONE", "firstName": "Sola", "lastName": "ORG", "externalId": "M-ORG"}

let ORG.pair = id
POST /api/v1/customers
{"email": "par.EMAIL", "phoneNumber": "PHONE2", "firstName": "Par", "lastName": "ORG"}

POST /api/v1/points/customers/$ORG.customer/add
{"amount": 1000, "loyaltyProgramId": "$ORG.club", "comment": "ORG"}

let ORG.sale = id
POST /api/v1/transactions
{"customerId": "$ORG.customer", "totalAmount": 500, "items": [{"sku": "A", "price": 100, "quantity": 5}], "comment": "ORG"}

let ORG.return = id
POST /api/v1/transactions
{"customerId": "$ORG.customer", "totalAmount": 100, "type": "Return", "originalTransactionId": "$ORG.sale"}

POST /api/v1/transactions
{"customerId": "$ORG.solo", "totalAmount": 70, "externalId": "S-ORG"}

let ORG.redemption = id
let ORG.done = code
POST /api/v1/rewards/redeem
{"customerId": "$ORG.customer", "productId": "$ORG.espresso", "comment": "ORG"}

let ORG.code = code
POST /api/v1/rewards/redeem
{"customerId": "$ORG.customer", "productId": "$ORG.vale"}

let ORG.spare = code
POST /api/v1/rewards/redeem
{"customerId": "$ORG.customer", "productId": "$ORG.vale"}

let ORG.cancelled = id
POST /api/v1/rewards/redeem
{"customerId": "$ORG.customer", "productId": "$ORG.espresso"}

let ORG.hold = id
POST /api/v1/points/customers/$ORG.customer/holds
{"amount": 5, "loyaltyProgramId": "$ORG.club"}

status ORG $ORG.inactive Inactive`

func newStreet(t *testing.T) *street {
	past := new(pastStore)
	past.state.Store(new(memTx))
	s := &street{world: newWorld(t, past), past: past}
	s.handler = s.world.api
	for _, r := range s.world.api.routes() {
		s.routes = append(s.routes, &r)
	}
	for _, org := range []string{here, there, planOff} {
		s.world.seed, s.world.seeds = org, 0
		s.world.apply(fmt.Appendf(nil, streetDocument, org))
		s.world.direct("key " + org + " " + org)
		s.world.as = org
		if org == planOff {
			continue
		}
		life := strings.NewReplacer("ORG", org, "EMAIL", s.value(org, "email"), "PHONE2", s.value(org, "phone2"), "PHONE", s.value(org, "phone"))
		for text := range strings.SplitSeq(strings.TrimSpace(life.Replace(streetLife)), "\n\n") {
			if got := s.world.step(newStep(text)); got != "" && !strings.HasPrefix(got, "=> 201") {
				t.Fatalf("%s\n%s", text, got)
			}
		}
		// What is retried is remembered.
		for i := range rows {
			if !strings.HasPrefix(rows[i].text, "POST") || rows[i].once {
				continue
			}
			s.world.seed, s.world.seeds = org+strconv.Itoa(i), 0
			q := rows[i].fill(s.values(i, func(int, place) string { return org }))
			if res, body := s.world.send(q); res.StatusCode >= 300 && rows[i].want < 300 {
				t.Fatalf("%s\n%s", q.text, body)
			}
		}
	}
	s.begin = *past.state.Load()
	return s
}

// value returns an organization's value of a kind. nowhere gets unknown ids.
func (s *street) value(org, kind string) string {
	last := map[string]string{here: "1", there: "2", nowhere: "3"}[org]
	switch kind {
	case "name":
		return org
	case "email":
		return "sola." + org + "@example.com"
	case "phone":
		return "+52551234000" + last
	case "phone2":
		return "+52551234001" + last
	case "external":
		return "T-" + org
	case "subject": // of an entry of the audit log; it is not looked for elsewhere
		kind = "cancelled"
	case "member":
		return "M-" + org
	}
	if org == nowhere {
		return s.unknown(kind)
	}
	v, ok := s.world.names[org+"."+kind]
	if !ok {
		s.world.Fatalf("%s has no %s", org, kind)
	}
	return v
}

// unknown returns a well-formed id that nothing has, a different one for each kind.
func (s *street) unknown(kind string) string {
	return newMint(instantOf(s.world.clock), seed{}).id().derive(kind).String()
}

// values returns a value for each place of a row; of names its organization.
func (s *street) values(row int, of func(n int, p place) string) (list []string) {
	for n, p := range rows[row].places() {
		org := of(n, p)
		if p.kind == "retry" { // which was used, if not here; rows sent while the street is made use their own
			if org == here && s.begin != nil {
				list = append(list, "new")
			} else {
				list = append(list, fmt.Sprintf("used-%s-%d", org, row))
			}
			continue
		}
		list = append(list, s.value(org, p.kind))
	}
	return list
}

func all(org string) func(int, place) string { return func(int, place) string { return org } }

// only names org for place n and here for all other places.
func only(n int, org string) func(int, place) string {
	return func(at int, _ place) string {
		if at == n {
			return org
		}
		return here
	}
}

// A result is an answer and the state of the store after it.
type result struct {
	status int
	header http.Header
	body   string
	state  memTx
	used   []id // API keys whose limits it counted against
}

// ask resets the store to its initial state and sends a request.
func (s *street) ask(q step) result {
	s.past.state.Store(&s.begin)
	s.world.seed, s.world.seeds = "ask", 0
	return s.then(q)
}

// then sends a request to the store in its present state, with fresh limits.
func (s *street) then(q step) result {
	s.world.api.limiter = newLimiter()
	s.world.api.refused.buckets.Fill()
	if s.spent != (id{}) {
		s.world.must(s.world.api.limiter.take(s.world.Context(), s.past, &apiKey{ID: s.spent, RateLimit: 1}, instantOf(s.world.clock), new(allowance)))
	}
	q.key = cmp.Or(q.key, here)
	if s.wire {
		res, body := s.world.send(q)
		res.Header.Del("Date") // net/http's own, by the wall clock
		if q.method == "PATCH" {
			maskTag(res.Header)
		}
		return result{res.StatusCode, res.Header, string(body), *s.past.state.Load(), s.used()}
	}
	r := httptest.NewRequest(q.method, q.target, strings.NewReader(q.body))
	r.RemoteAddr = "127.0.0.1:4711"
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("X-Request-Id", "req-1")
	if q.key != "nobody" {
		r.Header.Set("Authorization", "Bearer "+s.world.names["key."+q.key])
	}
	for _, line := range q.headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	header := http.Header{} // with canonical names, as net/http sends it
	for name, values := range w.Header() {
		header[http.CanonicalHeaderKey(name)] = values
	}
	if q.method == "PATCH" {
		maskTag(header)
	}
	return result{w.Code, header, w.Body.String(), *s.past.state.Load(), s.used()}
}

// maskTag hides an ETag, for answers whose ETag depends on the request.
func maskTag(h http.Header) {
	if h.Get("Etag") != "" {
		h.Set("Etag", "masked")
	}
}

func (s *street) used() []id {
	s.world.api.limiter.mu.Lock()
	defer s.world.api.limiter.mu.Unlock()
	return slices.Collect(maps.Keys(s.world.api.limiter.keys))
}

// owner returns the organization that an entry of the store belongs to, or 0 for
// a shared entry. It fails for a table that model.go does not declare.
func owner(e Entry) (uint32, error) {
	of, ok := tableOf(e.Key)
	if !ok {
		return 0, fmt.Errorf("key %x is of no table", e.Key)
	}
	switch at := of.org(); {
	case of == tableSlugs:
		return uint32(uintIn(e.Value)), nil
	case of == tableAPIKeys:
		key, err := parseAPIKey(e.Value)
		if err != nil {
			return 0, err
		}
		return key.Org, nil
	case at > 0:
		return uint32In(e.Key[at:]), nil
	case at < 0:
		return uint32In(e.Key[len(e.Key)+at:]), nil
	}
	return 0, nil // the limiter writes usage, but not for these requests
}

// changed returns the entries that only one state has, and both versions of an
// entry whose value differs.
func changed(a, b memTx) (list []Entry) {
	for len(a) > 0 && len(b) > 0 {
		switch c := bytes.Compare(a[0].Key, b[0].Key); {
		case c < 0:
			list, a = append(list, a[0]), a[1:]
		case c > 0:
			list, b = append(list, b[0]), b[1:]
		default:
			if !bytes.Equal(a[0].Value, b[0].Value) {
				list = append(list, a[0], b[0])
			}
			a, b = a[1:], b[1:]
		}
	}
	return append(append(list, a...), b...)
}

// isOthers reports whether an entry does not belong to the caller's organization.
func (s *street) isOthers(e Entry) bool {
	org, err := owner(e)
	s.world.must(err)
	return org != 1
}

// Checks.

// Ways in which a result can be wrong.
const (
	flawStatus = "status"
	flawHeader = "headers"
	flawBody   = "body"
	flawStored = "stored bytes" // of the caller's organization
	flawOthers = "stored bytes of others"
	flawLeak   = "a leak"
	flawLimits = "limits of others"
)

// answerFlaws returns how an answer differs from the one wanted.
func answerFlaws(want, got result) (flaws []string) {
	if want.status != got.status {
		flaws = append(flaws, flawStatus)
	}
	if !maps.EqualFunc(want.header, got.header, slices.Equal[[]string]) {
		flaws = append(flaws, flawHeader)
	}
	if want.body != got.body {
		flaws = append(flaws, flawBody)
	}
	return flaws
}

// A matrix holds the cells that a check compared and the flaws it found.
type matrix struct {
	*street
	cells int
	flaws map[string][]string // by cell
	order []string            // the keys of flaws, as found
	text  map[string]string   // describes the first flaw of a cell
}

func (s *street) newMatrix() *matrix {
	return &matrix{street: s, flaws: map[string][]string{}, text: map[string]string{}}
}

func (m *matrix) note(cell string, want, got result, flaws ...string) {
	if len(flaws) == 0 {
		return
	}
	if m.flaws[cell] == nil {
		m.order = append(m.order, cell)
		m.text[cell] = fmt.Sprintf("got  %d %v %swant %d %v %s", got.status, got.header, got.body, want.status, want.header, want.body)
	}
	m.flaws[cell] = append(m.flaws[cell], flaws...)
}

// cell compares an answer with the one wanted, and checks the store. No request
// changes entries of others. A refused request, a read or a dry run changes none.
func (m *matrix) cell(name string, q step, want, got result) {
	m.cells++
	m.note(name, want, got, answerFlaws(want, got)...)
	writes := changed(m.begin, got.state)
	refused := got.status >= 300 || strings.Contains(got.body, `"results":[{"status":4`)
	if len(writes) > 0 && (refused || q.method != "POST" && q.method != "PATCH" || strings.Contains(q.target, "dryRun=true")) {
		m.note(name, want, got, flawStored)
	}
	if slices.ContainsFunc(writes, m.isOthers) {
		m.note(name, want, got, flawOthers)
	}
}

// foreignCell is cell for a request that may name the other organization's data.
// It also looks for leaks and for limits charged to another key.
func (m *matrix) foreignCell(name string, q step, want, got result) {
	m.cell(name, q, want, got)
	if m.leaks(q, got) {
		m.note(name, want, got, flawLeak)
	}
	if slices.ContainsFunc(got.used, func(u id) bool { return u != m.world.keys[here] }) {
		m.note(name, want, got, flawLimits)
	}
}

// leaks reports whether an answer holds a value of the other organization that
// the request did not contain.
func (m *matrix) leaks(q step, got result) bool {
	shown := got.body + fmt.Sprint(got.header)
	asked, _ := url.PathUnescape(q.target)
	asked += strings.Join(q.headers, "\n") + q.body
	for name, value := range m.world.names {
		if strings.HasPrefix(name, there) && strings.Contains(shown, value) && !strings.Contains(asked, value) {
			return true
		}
	}
	for _, kind := range []string{"name", "phone", "phone2"} {
		value := m.value(there, kind)
		if strings.Contains(shown, value) && !strings.Contains(asked, value) {
			return true
		}
	}
	return false
}

// report fails the test if there are flaws, and prints the first 20 cells.
func (m *matrix) report() {
	m.world.Helper()
	for _, cell := range m.order[:min(len(m.order), 20)] {
		m.world.Errorf("%s\n%v\n%s", cell, m.flaws[cell], m.text[cell])
	}
	if len(m.order) > 20 {
		m.world.Errorf("and %d more", len(m.order)-20)
	}
	m.world.Logf("%d cells", m.cells)
}

// has reports whether a cell has one of the flaws, or any flaw if none is named.
func (m *matrix) has(cell string, flaws ...string) bool {
	found := m.flaws[cell]
	return len(found) > 0 && (len(flaws) == 0 || slices.ContainsFunc(flaws, func(f string) bool { return slices.Contains(found, f) }))
}

// refusal returns the answer for an error without context (contract §2).
func (s *street) refusal(code, message string) result {
	e := errorTable[code]
	want := result{status: e.status, header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}, "X-Request-Id": {"req-1"}}}
	want.body = fmt.Sprintf(`{"statusCode":%d,"code":%q,"message":%q,"requestId":"req-1"}`+"\n", e.status, code, e.message+message)
	if e.status == http.StatusUnauthorized {
		want.header["Www-Authenticate"] = []string{"Bearer"}
	}
	if !slices.Contains(beforeLimits, code) { // the first request of its minute
		want.header["Ratelimit-Policy"] = []string{`"minute";q=300;w=60`}
		want.header["Ratelimit"] = []string{`"minute";r=299;t=60`}
		want.header["X-Ratelimit-Limit"] = []string{"300"}
		want.header["X-Ratelimit-Remaining"] = []string{"299"}
		want.header["X-Ratelimit-Reset"] = []string{"60"}
	}
	if s.wire {
		want.header["Content-Length"] = []string{strconv.Itoa(len(want.body))}
	}
	return want
}

// Servers with a fault.

// Keys.

// routeOf returns the route that serves a row.
func (s *street) routeOf(row int) *route {
	q := rows[row].fill(s.values(row, all(here)))
	u, err := url.Parse(q.target)
	s.world.must(err)
	_, pattern := s.world.api.mux.Handler(&http.Request{Method: q.method, URL: u})
	return find(s.routes, func(r *route) bool { return r.pattern == pattern })
}

func (s *street) scopeOf(pattern string) string {
	return find(s.routes, func(r *route) bool { return r.pattern == pattern }).scope
}

// A person known elsewhere.

// Mass assignment.

func (s *street) patternOf(q step) string {
	u, err := url.Parse(q.target)
	s.world.must(err)
	_, pattern := s.world.api.mux.Handler(&http.Request{Method: q.method, URL: u})
	return pattern
}
