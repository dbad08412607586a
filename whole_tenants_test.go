package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
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
	"profile": {"country": "MX"}, "settings": {"timezone": "America/Mexico_City", "currency": "MXN", "externalIds": "Unique", "tickets": {"days": 30, "maxPerCustomerPerDay": 9}}},
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

let ORG.ticket = id
let ORG.unclaimed = code
POST /api/v1/tickets
{"externalId": "K-ORG", "totalAmount": 5}

status ORG $ORG.inactive Inactive`

func newStreet(t *testing.T) *street {
	past := new(pastStore)
	past.state.Store(new(memTx))
	s := &street{world: newWorld(t, past), past: past}
	s.world.api.engine.cardsAt = cardsBase
	s.handler = s.world.api
	for _, r := range s.world.api.routes() {
		s.routes = append(s.routes, &r)
	}
	for number, org := range []string{here, there, planOff} {
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
		code, err := write(t.Context(), s.world.engine, uint32(number+1), instantOf(s.world.engine.now()), func(t *txn) (string, error) {
			token, err := t.cards.prepare(preEnrolment{FirstName: org, Phone: s.value(org, "phone")[:10] + "77"})
			if err != nil {
				return "", err
			}
			p, err := joinByToken(t.Tx, token, t.now)
			return p.Code, err
		})
		s.world.must(err)
		s.world.name(org+".join", code)
		signed, err := write(t.Context(), s.world.engine, uint32(number+1), instantOf(s.world.engine.now()), func(t *txn) (string, error) {
			k, _, err := t.keys.create(keyRequest{Name: "signs"})
			if err != nil {
				return "", err
			}
			k, secret, err := t.keys.ticketSecret(k.ID.String(), false)
			return signer{k.TicketNumber, secret}.ticket("Z-"+org, "7", t.now), err
		})
		s.world.must(err)
		s.world.name(org+".signed", signed)
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
	case "billed": // the externalId of a ticket
		return "K-" + org
	case "subject": // of an entry of the audit log; it is not looked for elsewhere
		kind = "cancelled"
	case "member":
		return "M-" + org
	case "memberCode":
		return s.memberCode(org)
	}
	switch {
	case org == nowhere && kind == "unclaimed":
		return "T-0000-0000-00"
	case org == nowhere:
		return s.unknown(kind)
	}
	v, ok := s.world.names[org+"."+kind]
	if !ok {
		s.world.Fatalf("%s has no %s", org, kind)
	}
	return v
}

// memberCode returns the code of an organization's customer; of nowhere one that is nobody's.
func (s *street) memberCode(org string) string {
	if org == nowhere {
		return "M-0000-0000"
	}
	number, err := viewStore(s.world.Context(), s.world.engine.store, func(tx Tx) (uint32, error) { return organizationNumber(tx, org) })
	if err != nil {
		s.world.Fatal(err)
	}
	cust, _ := toID(s.value(org, "customer"))
	code, err := read(s.world.Context(), s.world.engine, number, instantOf(s.world.clock), func(t *txn) (string, error) {
		c, err := t.customers.get(cust)
		if err != nil {
			return "", err
		}
		return textOr(t.customers.memberCode(c), ""), nil
	})
	if err != nil {
		s.world.Fatal(err)
	}
	return code
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
	case of == tableJoins:
		p, err := decodeEntry[preEnrolment](e)
		if err != nil {
			return 0, err
		}
		return p.Org, nil
	case of == tableTicketCodes:
		return uint32In(e.Value), nil
	case of == tableTicketSigners:
		d, err := decodeEntry[ticketSigner](e)
		if err != nil {
			return 0, err
		}
		return d.Org, nil
	case of == tableCards:
		d, err := decodeEntry[card](e)
		if err != nil {
			return 0, err
		}
		return d.Org, nil
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

// TestForeignIDs fills the places of every row with values that are the other
// organization's, unknown or malformed. It fills one place at a time, and all at once.
func TestForeignIDs(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newStreet(t)
	s.wire = true
	s.foreignIDs(true, everyRow).report()
	s.wire = false

	places := 0
	for i := range rows {
		places += len(rows[i].places())
	}
	t.Logf("%d rows, %d places", len(rows), places)
	t.Run("control", s.foreignControls)
}

// everyRow chooses all rows. someRows chooses a quarter of them, another one for each fault:
// with -histories 4 and more, it chooses all.
func everyRow(int) bool { return true }

func someRows(fault int) func(int) bool {
	return func(row int) bool { return *moreHistories >= 4 || row%4 == fault%4 }
}

// foreignControls puts one fault after the other into the server. foreignIDs must find
// each, in every place that names something of the other organization.
func (s *street) foreignControls(t *testing.T) {
	skipUsual(t)
	spoil := s.spoil
	for nth, fault := range []struct {
		name  string
		flaws []string // one of these must be found; nil: any
		ids   bool     // only in places for ids
		wrong http.Handler
	}{
		{"whose it is does not matter", nil, false, s.swap()},
		{"counted against the other's limits", []string{flawLimits}, true, s.swap()},
		{"forbidden", []string{flawStatus}, true, spoil(func(w *httptest.ResponseRecorder) { w.Code = 403 })},
		{"a header", []string{flawHeader}, true, spoil(func(w *httptest.ResponseRecorder) { w.Header().Set("X-Owner", "other") })},
		{"a header's value", []string{flawHeader}, true, spoil(func(w *httptest.ResponseRecorder) { w.Header()["X-RateLimit-Remaining"] = []string{"298"} })},
		{"a header less", []string{flawHeader}, true, spoil(func(w *httptest.ResponseRecorder) { w.Header().Del("Cache-Control") })},
		{"a body", []string{flawBody}, true, spoil(func(w *httptest.ResponseRecorder) { w.Body.WriteByte(' ') })},
		{"the other's name", []string{flawLeak}, false, spoil(func(w *httptest.ResponseRecorder) { w.Header().Set("X-Request-Id", s.world.names[there]) })},
		{"writing to the other", []string{flawOthers}, true, spoil(func(*httptest.ResponseRecorder) { s.touch(2) })},
		{"writing to the caller's", []string{flawStored}, true, spoil(func(*httptest.ResponseRecorder) { s.touch(1) })},
		{"writing to what all share", []string{flawOthers}, true, spoil(func(*httptest.ResponseRecorder) {
			s.world.must(s.past.Update(s.world.Context(), func(tx Tx) error { return tx.Put(newKey('v'), nil) }))
		})},
	} {
		s.handler = fault.wrong
		chosen := someRows(nth)
		m := s.foreignIDs(false, chosen)
		for i := range rows {
			if !chosen(i) {
				continue
			}
			for n, p := range rows[i].places() {
				if fault.ids && notFound[p.kind] == "" || rows[i].fields && fault.flaws == nil && p.inPath {
					continue
				}
				if cell := cellName(i, n, p, there); !m.has(cell, fault.flaws...) {
					t.Errorf("%s: nothing was found in %s: %v", fault.name, cell, m.flaws[cell])
				}
			}
		}
	}

	// The store finds the other organization's records under the caller's keys.
	s.handler = newAPIOf(s.leaky())
	m := s.foreignIDs(false, everyRow)
	for _, text := range []string{
		"GET /api/v1/customers/{customer}", "POST /api/v1/points/customers/{customer}/add", "GET /api/v1/transactions/{sale}",
		"GET /api/v1/redemptions/{redemption}", "GET /api/v1/customers/lookup?email={email}", "GET /api/v1/transactions?customerId={customer}",
	} {
		i := slices.IndexFunc(rows, func(r row) bool { return strings.HasPrefix(r.text, text) })
		if cell := cellName(i, 0, rows[i].places()[0], there); !m.has(cell) {
			t.Errorf("records under another's keys: nothing was found in %s", cell)
		}
	}
	s.handler = s.world.api
}

func cellName(row, n int, p place, what string) string {
	return fmt.Sprintf("%s\nplace %d {%s}: %s", rows[row].text, n+1, p.kind, what)
}

// foreignIDs checks the chosen rows. If thorough, it also tries other ids, malformed ones and
// HEAD.
func (s *street) foreignIDs(thorough bool, chosen func(row int) bool) *matrix {
	m := s.newMatrix()
	for i := range rows {
		if !chosen(i) {
			continue
		}
		(&foreignRow{m, i, ""}).check(thorough)
		if thorough && strings.HasPrefix(rows[i].text, "GET") {
			(&foreignRow{m, i, "HEAD"}).check(false)
		}
	}
	return m
}

// A foreignRow sends one row with values of others in its places.
type foreignRow struct {
	*matrix
	row    int
	method string // in place of the row's own, unless it is ""
}

// send sends the row with a value in each place.
func (f *foreignRow) send(values []string) (step, result) {
	q := rows[f.row].fill(values)
	q.method = cmp.Or(f.method, q.method)
	return q, f.ask(q)
}

// sendOf is send with values of organizations; of returns the organization for each
// place.
func (f *foreignRow) sendOf(of func(int, place) string) (step, result) {
	return f.send(f.values(f.row, of))
}

func (f *foreignRow) check(thorough bool) {
	r := &rows[f.row]
	q, own := f.sendOf(all(here))
	f.foreignCell(r.text+f.method+": own", q, own, own)
	var e errorBody
	if own.status >= 400 {
		json.Unmarshal([]byte(own.body), &e)
	}
	if own.status != r.want || f.method == "" && e.Code != r.code {
		f.note(r.text+f.method+": own", result{status: r.want, body: r.code}, own, flawStatus)
	}
	for n, p := range r.places() {
		want := f.place(n, p, own)
		if thorough && notFound[p.kind] != "" {
			f.otherIDs(n, p, want)
			f.malformed(n, p, want)
		}
	}
	f.everywhere()
}

// place puts an unknown value and one of the other organization into one place. It
// returns the expected answer.
func (f *foreignRow) place(n int, p place, own result) (want result) {
	code := notFound[p.kind]
	q, unknown := f.sendOf(only(n, nowhere))
	want = unknown
	switch {
	case p.kind == "retry" || rows[f.row].fields:
		want = own
	case rows[f.row].within:
		if !strings.Contains(unknown.body, `"error":{"statusCode":404,"code":"`+code+`"`) {
			f.note(cellName(f.row, n, p, nowhere), result{body: code}, unknown, flawBody)
		}
	case code != "":
		want = f.refusal(code, "")
		if f.method != "" {
			want.body = unknown.body
		}
	}
	f.foreignCell(cellName(f.row, n, p, nowhere+f.method), q, want, unknown)

	q, foreign := f.sendOf(only(n, there))
	if code == "" {
		foreign = f.renamed(foreign, p.kind)
	}
	f.foreignCell(cellName(f.row, n, p, there+f.method), q, want, foreign)
	return want
}

// with sends the row with a value in one place. what names the cell.
func (f *foreignRow) with(n int, p place, what, value string, want result) {
	values := f.values(f.row, all(here))
	values[n] = value
	q, got := f.send(values)
	f.foreignCell(cellName(f.row, n, p, what+f.method), q, want, got)
}

// otherIDs tries the other organization's ids of every kind, own ids of other kinds, and
// ids that differ in one bit.
func (f *foreignRow) otherIDs(n int, p place, want result) {
	for kind, theirs := range notFound {
		f.with(n, p, there+"'s "+kind, f.value(there, kind), want)
		if notFound[p.kind] != theirs {
			f.with(n, p, "own "+kind, f.value(here, kind), want)
		}
	}
	flipped, _ := parseID(f.value(there, p.kind))
	for bit := 0; bit < 128; bit += 9 {
		other := flipped
		other[bit/8] ^= 1 << (bit % 8)
		f.with(n, p, fmt.Sprint("bit ", bit), other.String(), want)
	}
}

func (f *foreignRow) malformed(n int, p place, want result) {
	for _, bad := range malformations {
		want := want
		if bad.noRoute && p.inPath {
			want = f.refusal("route_not_found", "")
		}
		for _, org := range []string{nowhere, there, here} {
			if bad.spaces && org == here && !p.inPath {
				continue // texts are trimmed (contract §1)
			}
			f.with(n, p, org+", "+bad.name, bad.spell(f.value(org, p.kind)), want)
		}
	}
}

// everywhere fills all places at once, first with unknown values, then with foreign ones.
func (f *foreignRow) everywhere() {
	r, places := &rows[f.row], rows[f.row].places()
	if len(places) == 0 {
		return
	}
	name := r.text + f.method + ": all "
	q, unknown := f.sendOf(all(nowhere))
	f.foreignCell(name+nowhere, q, unknown, unknown)
	if !r.fields && !r.within && slices.ContainsFunc(places, func(p place) bool { return notFound[p.kind] != "" }) && unknown.status != http.StatusNotFound {
		f.note(name+nowhere, result{status: http.StatusNotFound}, unknown, flawStatus)
	}
	q, foreign := f.sendOf(all(there))
	for _, p := range places {
		if notFound[p.kind] == "" {
			foreign = f.renamed(foreign, p.kind)
		}
	}
	f.foreignCell(name+there, q, unknown, foreign)
}

// renamed returns an answer as it would be for an unknown value: it replaces the other
// organization's value, which an answer may repeat.
func (s *street) renamed(got result, kind string) result {
	if kind != "retry" {
		got.body = strings.ReplaceAll(got.body, s.value(there, kind), s.value(nowhere, kind))
	}
	return got
}

// malformations are spellings that no id has (contract §1).
var malformations = []struct {
	name    string
	noRoute bool // in a path it leads to no route
	spaces  bool
	spell   func(string) string
}{
	{name: "upper case", spell: strings.ToUpper},
	{name: "in braces", spell: func(u string) string { return "{" + u + "}" }},
	{name: "without dashes", spell: func(u string) string { return strings.ReplaceAll(u, "-", "") }},
	{name: "as a URN", spell: func(u string) string { return "urn:uuid:" + u }},
	{name: "cut short", spell: func(u string) string { return u[:35] }},
	{name: "one digit more", spell: func(u string) string { return u + "0" }},
	{name: "twice", spell: func(u string) string { return u + "," + u }},
	{name: "NUL behind", spell: func(u string) string { return u + "\x00" }},
	{name: "another path", spell: func(u string) string { return u + "/x" }},
	{name: "quoted", spell: func(u string) string { return `"` + u + `"` }},
	{name: "SQL", spell: func(u string) string { return u + "' OR '1'='1" }},
	{name: "a star", spell: func(string) string { return "*" }},
	{name: "a word", spell: func(string) string { return "null" }},
	{name: "a number", spell: func(string) string { return "0" }},
	{name: "the zero id", spell: func(string) string { return "00000000-0000-0000-0000-000000000000" }},
	{name: "not ASCII", spell: func(u string) string { return strings.ReplaceAll(u, "0", "０") + "ñ" }},
	{name: "long", spell: func(u string) string { return strings.Repeat(u, 20) }},
	{name: "spaces", spaces: true, spell: func(u string) string { return " " + u + " " }},
	{name: "a folder up", noRoute: true, spell: func(u string) string { return "../" + u }},
	{name: "a slash behind", noRoute: true, spell: func(u string) string { return u + "/" }},
}

// foreign reports whether a request names something of the other organization.
func (s *street) foreign(r *http.Request) bool {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	asked, _ := url.QueryUnescape(r.URL.RequestURI())
	asked += string(body) + r.Header.Get("Idempotency-Key")
	for name, value := range s.world.names {
		if strings.HasPrefix(name, there+".") && strings.Contains(asked, value) {
			return true
		}
	}
	return strings.Contains(asked, there) || strings.Contains(asked, s.value(there, "phone")[1:]) || strings.Contains(asked, s.value(there, "phone2")[1:])
}

// swap returns a faulty server: it serves a request that names something of the other
// organization as that organization's own.
func (s *street) swap() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.foreign(r) {
			r.Header.Set("Authorization", "Bearer "+s.world.names["key."+there])
		}
		s.world.api.ServeHTTP(w, r)
	})
}

// spoil returns a faulty server: it changes the answer to a request that names something
// of the other organization.
func (s *street) spoil(change func(*httptest.ResponseRecorder)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		spoilt := httptest.NewRecorder()
		foreign := s.foreign(r)
		s.world.api.ServeHTTP(spoilt, r)
		if foreign {
			change(spoilt)
		}
		maps.Copy(w.Header(), spoilt.Header())
		w.WriteHeader(spoilt.Code)
		w.Write(spoilt.Body.Bytes())
	})
}

// touch appends a byte to an organization's counters.
func (s *street) touch(org uint32) {
	s.world.must(s.past.Update(s.world.Context(), func(tx Tx) error {
		value, _, err := tx.Get(orgKey('n', org))
		if err != nil {
			return err
		}
		return tx.Put(orgKey('n', org), append(slices.Clone(value), 0))
	}))
}

// A leakyTx returns the second organization's value for a key of the first that has none.
type leakyTx struct{ Tx }

func (t leakyTx) Get(k []byte) ([]byte, bool, error) {
	value, ok, err := t.Tx.Get(k)
	if org, problem := owner(Entry{Key: k}); err == nil && !ok && problem == nil && org == 1 {
		k = slices.Clone(k)
		at := 1
		if k[0] == 'p' {
			at = len(k) - 4
		}
		binary.BigEndian.PutUint32(k[at:], 2)
		return t.Tx.Get(k)
	}
	return value, ok, err
}

// leaky returns an engine on a store whose transactions are leakyTx.
func (s *street) leaky() *engine {
	leak := func(tx Tx) Tx { return leakyTx{tx} }
	return newEngine(wrappedStore{s.past, leak, leak}, func() time.Time { return s.world.clock }, func() seed {
		s.world.seeds++
		return seed{byte(s.world.seeds)}
	})
}

// known are enrolments with contact data that either the other organization or
// nobody knows already.
var known = []string{
	`{"email": "{email}"}`,
	`{"phoneNumber": "{phone}"}`,
	`{"email": "{email}", "phoneNumber": "{phone}"}`,
	`{"email": "{email}", "phoneNumber": "{phone2}"}`, // two customers of the other organization
	`{"email": "{email}", "firstName": "Eva", "lastName": "Luz"}`,
	`{"email": "new@example.com", "phoneNumber": "{phone2}", "firstName": "Eva"}`,
	`{"email": "{email}", "phoneNumber": "+525512349999"}`,
	`{"email": "beto@example.com", "phoneNumber": "{phone}"}`, // a customer of the caller's, who gets the phone
}

// afterwards are the later requests whose answers could show that somebody else
// knows a new customer.
var afterwards = []string{
	`POST /api/v1/customers
{"email": "{email}"}`,
	`POST /api/v1/customers
{"phoneNumber": "{phone}"}`,
	`GET /api/v1/customers/lookup?email={email}`,
	`GET /api/v1/customers/lookup?phone={phone}`,
	`GET /api/v1/customers/lookup?phone={phone2}`,
	`GET /api/v1/customers/{new}`,
	`PATCH /api/v1/customers/{new}
{"phoneNumber": "{phone2}"}`,
	`GET /api/v1/customers/{new}`,
	`GET /api/v1/customers`,
	`GET /api/v1/customers?search={email}`,
	`GET /api/v1/customers?search={phone}`,
	`GET /api/v1/customers?search={name}`,
	`GET /api/v1/customers?search=Sola`,
	`POST /api/v1/transactions
{"customerId": "{new}", "totalAmount": 200, "externalId": "N"}`,
	`POST /api/v1/transactions
{"customerId": "{new}", "totalAmount": 10, "type": "Return", "externalId": "S-{name}"}`,
	`POST /api/v1/points/customers/{new}/add
{"amount": 5, "loyaltyProgramId": "{club}"}`,
	`POST /api/v1/rewards/redeem
{"customerId": "{new}", "productId": "{espresso}"}`,
	`GET /api/v1/points/customers/{new}/balance`,
	`GET /api/v1/points/customers/{new}/movements`,
	`GET /api/v1/transactions?customerId={new}`,
	`GET /api/v1/transactions?search={email}`,
	`GET /api/v1/transactions?search={phone}`,
	`GET /api/v1/redemptions`,
	`GET /api/v1/redemptions?customerId={new}`,
	`GET /api/v1/rewards?customerId={new}`,
	`GET /api/v1/statistics`,
}

// TestKnownElsewhere enrols somebody whom the other organization knows and
// somebody whom nobody knows. All answers from then on are the same.
func TestKnownElsewhere(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newStreet(t)
	s.knownElsewhere().report()
	s.world.verify()

	t.Run("control", func(t *testing.T) {
		for _, fault := range []struct {
			name  string
			flaws []string
			wrong func(w *httptest.ResponseRecorder)
		}{
			{"200 for a person that there is", []string{flawStatus}, func(w *httptest.ResponseRecorder) { w.Code = 200 }},
			{"a header", []string{flawHeader}, func(w *httptest.ResponseRecorder) { w.Header().Set("X-Linked", "1") }},
			{"the name that another organization was told", []string{flawBody, flawLeak}, func(w *httptest.ResponseRecorder) {
				w.Body = bytes.NewBufferString(strings.Replace(w.Body.String(), `"lastName":null`, `"lastName":"oeste"`, 1))
			}},
			{"when another organization was told", []string{flawBody}, func(w *httptest.ResponseRecorder) {
				w.Body = bytes.NewBufferString(strings.Replace(w.Body.String(), "T10:00:00", "T09:00:00", 1))
			}},
			{"writing to the other", []string{flawOthers}, func(*httptest.ResponseRecorder) { s.touch(2) }},
		} {
			s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next := http.Handler(s.world.api)
				if r.Method == "POST" && strings.HasSuffix(r.URL.Path, "/customers") {
					next = s.spoil(fault.wrong)
				}
				next.ServeHTTP(w, r)
			})
			m := s.knownElsewhere()
			if first := known[0] + "\nPOST /api/v1/customers"; !m.has(first, fault.flaws...) {
				t.Errorf("%s: nothing was found: %v", fault.name, m.flaws[first])
			}
		}

		// The server treats the other organization's customers as the caller's.
		s.handler = newAPIOf(s.leaky())
		if m := s.knownElsewhere(); !m.has(known[0]+"\nPOST /api/v1/customers", flawStatus) || !m.has(known[0]+"\nPOST /api/v1/customers", flawLeak) {
			t.Error("identities under another's keys: nothing was found")
		}
		s.handler = s.world.api
	})
}

func (s *street) knownElsewhere() *matrix {
	m := s.newMatrix()
	for _, body := range known {
		wanted := s.enrolled(body, nowhere)
		for n, got := range s.enrolled(body, there) {
			for _, kind := range []string{"email", "phone", "phone2", "name"} {
				got.result.body = strings.ReplaceAll(got.result.body, s.value(there, kind), s.value(nowhere, kind))
			}
			for _, r := range []result{wanted[n].result, got.result} {
				maskTag(r.header)
			}
			m.cells++
			name := body + "\n" + got.name
			m.note(name, wanted[n].result, got.result, answerFlaws(wanted[n].result, got.result)...)
			if m.leaks(got.step, got.result) {
				m.note(name, wanted[n].result, got.result, flawLeak)
			}
			if slices.ContainsFunc(changed(m.begin, got.state), m.isOthers) {
				m.note(name, wanted[n].result, got.result, flawOthers)
			}
		}
	}
	return m
}

// An exchanged is one request of a conversation and its result.
type exchanged struct {
	step
	result
	name string
}

// enrolled enrols a customer with an organization's contact data and then sends
// the requests of afterwards.
func (s *street) enrolled(body, org string) (list []exchanged) {
	s.past.state.Store(&s.begin)
	var created struct{ ID string }
	for n, text := range append([]string{"POST /api/v1/customers\n" + body}, afterwards...) {
		r := row{text: text}
		var values []string
		for _, p := range r.places() {
			switch p.kind {
			case "new":
				values = append(values, created.ID)
			case "club", "espresso":
				values = append(values, s.value(here, p.kind))
			default:
				values = append(values, s.value(org, p.kind))
			}
		}
		q := r.fill(values)
		s.world.seed, s.world.seeds = text, 0
		got := s.then(q)
		if n == 0 {
			s.world.must(json.Unmarshal([]byte(got.body), &created))
			text, _, _ = strings.Cut(text, "\n")
		}
		list = append(list, exchanged{q, got, text})
	}
	return list
}

// A row is a request to the API, written as in transcripts. Each {kind} is a place, to be
// filled with a value of that kind.
type row struct {
	text string
	want int    // status, if every place has a value of the caller's own
	code string // of that answer, if it is an error

	// The request is refused for a field, so no id is looked up: contract §3
	// checks fields before existence.
	fields bool
	once   bool // a second request gets another answer, or others do after it
	within bool // an error is within an answer of 200
}

var rows = []row{
	{text: `GET /api/v1/customers`, want: 200},
	{text: `GET /api/v1/customers?search={name}`, want: 200},
	{text: `GET /api/v1/customers?search={email}&limit=1`, want: 200},
	{text: `GET /api/v1/customers?search={phone}`, want: 200},
	{text: `GET /api/v1/customers?after=&limit=2`, want: 200},
	{text: `GET /api/v1/customers?after=AQAAAAAAAAAB&status=Active&updatedSince=2020-01-01`, want: 200},
	{text: `GET /api/v1/customers/lookup?email={email}`, want: 200},
	{text: `GET /api/v1/customers/lookup?phone={phone}`, want: 200},
	{text: `GET /api/v1/customers/lookup?email={email}&phone={phone2}`, want: 200},
	{text: `GET /api/v1/customers/lookup?code={memberCode}`, want: 200},
	{text: `GET /api/v1/customers/{customer}`, want: 200},
	{text: `GET /api/v1/customers/{inactive}`, want: 200},
	{text: `POST /api/v1/customers
Idempotency-Key: {retry}
{"email": "{email}"}`, want: 200},
	{text: `POST /api/v1/customers
Idempotency-Key: {retry}
{"phoneNumber": "{phone}", "firstName": "Eva"}`, want: 200},
	{text: `POST /api/v1/customers
Idempotency-Key: {retry}
{"email": "{email}", "phoneNumber": "{phone}", "lastName": "Luz"}`, want: 200},
	{text: `POST /api/v1/customers
{"email": "{email}", "phoneNumber": "{phone2}"}`, want: 409, code: "identity_conflict"},
	{text: `POST /api/v1/customers
{"email": "neu@example.com", "externalId": "{member}"}`, want: 409, code: "external_id_taken"},
	{text: `GET /api/v1/customers?status=Inactive`, want: 200},
	{text: `GET /api/v1/customers?search={name}&status=Active`, want: 200},
	{text: `GET /api/v1/customers/lookup?externalId={member}`, want: 200},
	{text: `PATCH /api/v1/customers/{customer}
{"firstName": "Eva", "birthDate": "1990-02-28", "attributes": {"a": 1}}`, want: 200},
	{text: `PATCH /api/v1/customers/{inactive}
{"status": "Active"}`, want: 200},
	{text: `PATCH /api/v1/customers/{customer}
{"email": "{email}"}`, want: 409, code: "identity_conflict"},
	{text: `PATCH /api/v1/customers/{customer}
{"phoneNumber": "{phone}"}`, want: 409, code: "identity_conflict"},
	{text: `PATCH /api/v1/customers/{customer}
{"externalId": "{member}"}`, want: 409, code: "external_id_taken"},
	{text: `PATCH /api/v1/customers/{customer}
If-Match: "0"
{"firstName": "Eva"}`, want: 412, code: "precondition_failed"},
	{text: `POST /api/v1/customers/{customer}/merge
Idempotency-Key: {retry}
{"from": "{inactive}"}`, want: 200, once: true},
	{text: `POST /api/v1/customers/{customer}/merge?dryRun=true
{"from": "{solo}"}`, want: 200},
	{text: `POST /api/v1/customers/{pair}/merge
{"from": "{customer}"}`, want: 200, once: true},
	{text: `GET /api/v1/customers/{customer}/export`, want: 200},
	{text: `POST /api/v1/customers
{"joinCode": "{join}", "card": true}`, want: 201, once: true},
	{text: `POST /api/v1/customers/{customer}/card
Idempotency-Key: {retry}
{"expiresInDays": 30}`, want: 201},
	{text: `POST /api/v1/customers/{inactive}/card`, want: 400, code: "customer_inactive"},
	{text: `POST /api/v1/customers/{customer}/card/revoke
Idempotency-Key: {retry}`, want: 200},
	{text: `POST /api/v1/customers/{customer}/erase
{"confirm": "erase"}`, want: 400, code: "invalid_field", fields: true},
	{text: `POST /api/v1/customers/{customer}/erase
Idempotency-Key: {retry}
{"confirm": "ERASE"}`, want: 200, once: true},

	{text: `GET /api/v1/points/customers/{customer}/balance`, want: 200},
	{text: `GET /api/v1/points/customers/{customer}/balance?loyaltyProgramId={sellos}`, want: 200},
	{text: `GET /api/v1/points/customers/{customer}/balance?loyaltyProgramId={sellos}&asOf=2026-01-01`, want: 200},
	{text: `GET /api/v1/customers/{customer}/statement?month=2026-01&loyaltyProgramId={sellos}`, want: 200},
	{text: `GET /api/v1/points/customers/{customer}/movements`, want: 200},
	{text: `GET /api/v1/points/customers/{customer}/movements?loyaltyProgramId={club}&type=Credit`, want: 200},
	{text: `POST /api/v1/points/customers/{customer}/add
Idempotency-Key: {retry}
{"amount": 5, "loyaltyProgramId": "{club}"}`, want: 201},
	{text: `POST /api/v1/points/customers/{customer}/add
{"amount": 5}`, want: 400, code: "program_required", fields: true},
	{text: `POST /api/v1/points/customers/{inactive}/add
{"amount": 5, "loyaltyProgramId": "{club}"}`, want: 400, code: "customer_inactive"},
	{text: `POST /api/v1/points/customers/{customer}/deduct
Idempotency-Key: {retry}
{"amount": 5, "loyaltyProgramId": "{club}"}`, want: 201},
	{text: `POST /api/v1/points/customers/{customer}/deduct
{"amount": 99999, "loyaltyProgramId": "{club}"}`, want: 400, code: "insufficient_balance"},
	{text: `POST /api/v1/points/customers/{customer}/add
{"amount": 5, "loyaltyProgramId": "{club}", "reference": "R-1"}`, want: 201, once: true},
	{text: `POST /api/v1/points/batch
{"movements": [{"customerId": "{customer}", "type": "Credit", "amount": 5, "loyaltyProgramId": "{club}"}]}`, want: 200, within: true},
	{text: `POST /api/v1/points/batch
Idempotency-Key: {retry}
{"movements": []}`, want: 400, code: "invalid_field", fields: true},
	{text: `GET /api/v1/points/customers/{customer}/holds`, want: 200},
	{text: `POST /api/v1/points/customers/{customer}/holds
Idempotency-Key: {retry}
{"amount": 5, "loyaltyProgramId": "{club}"}`, want: 201},
	{text: `POST /api/v1/points/customers/{inactive}/holds
{"amount": 5}`, want: 400, code: "customer_inactive"},
	{text: `GET /api/v1/points/holds/{hold}`, want: 200},
	{text: `POST /api/v1/points/holds/{hold}/capture
Idempotency-Key: {retry}
{"amount": 2}`, want: 200, once: true},
	{text: `POST /api/v1/points/holds/{hold}/capture
{"amount": 6}`, want: 400, code: "hold_exceeded"},
	{text: `POST /api/v1/points/holds/{hold}/release
Idempotency-Key: {retry}`, want: 200, once: true},

	{text: `GET /api/v1/tickets`, want: 200},
	{text: `POST /api/v1/tickets
{"externalId": "{billed}", "totalAmount": 5}`, want: 200, once: true},
	{text: `GET /api/v1/tickets?externalId={billed}`, want: 200},
	{text: `GET /api/v1/tickets/{ticket}`, want: 200},
	{text: `POST /api/v1/tickets
Idempotency-Key: {retry}
{"externalId": "K-new", "totalAmount": 5}`, want: 200},
	{text: `POST /api/v1/tickets/claim
Idempotency-Key: {retry}
{"ticket": "{unclaimed}", "customerId": "{customer}"}`, want: 201, once: true},
	{text: `POST /api/v1/tickets/claim
{"ticket": "{signed}", "customerId": "{customer}"}`, want: 201, once: true},
	{text: `POST /api/v1/tickets/cancel
Idempotency-Key: {retry}
{"externalId": "{billed}"}`, want: 200, once: true},
	{text: `POST /api/v1/tickets/cancel
{"ticket": "{unclaimed}"}`, want: 200, once: true},

	{text: `GET /api/v1/transactions`, want: 200},
	{text: `GET /api/v1/transactions?customerId={customer}`, want: 200},
	{text: `GET /api/v1/transactions?customerId={customer}&externalId={external}`, want: 200},
	{text: `GET /api/v1/transactions?customerId={customer}&search={name}`, want: 200},
	{text: `GET /api/v1/transactions?externalId={external}`, want: 200},
	{text: `GET /api/v1/transactions?search={email}`, want: 200},
	{text: `GET /api/v1/transactions?search={name}&type=Purchase&from=2026-11-01`, want: 200},
	{text: `GET /api/v1/transactions/{sale}`, want: 200},
	{text: `GET /api/v1/transactions/{return}`, want: 200},
	{text: `POST /api/v1/transactions
Idempotency-Key: {retry}
{"customerId": "{customer}", "totalAmount": 20, "items": [{"sku": "A", "price": 10, "quantity": 2}]}`, want: 201},
	{text: `POST /api/v1/transactions
{"customerId": "{customer}", "totalAmount": 20, "pay": {"hold": "{hold}"}}`, want: 201, once: true},
	{text: `POST /api/v1/transactions
Idempotency-Key: {retry}
{"customerId": "{customer}", "totalAmount": 30, "externalId": "{external}"}`, want: 200}, // again: the same sale (contract §6)
	{text: `POST /api/v1/transactions
Idempotency-Key: {retry}
{"customerId": "{customer}", "totalAmount": 1, "type": "Return", "originalTransactionId": "{sale}"}`, want: 201},
	{text: `POST /api/v1/transactions
Idempotency-Key: {retry}
{"customerId": "{customer}", "totalAmount": 1, "type": "Return", "externalId": "{external}"}`, want: 201},
	{text: `POST /api/v1/transactions
{"customerId": "{customer}", "totalAmount": 99999, "type": "Return", "originalTransactionId": "{sale}"}`, want: 400, code: "return_exceeds_purchase"},
	{text: `POST /api/v1/transactions
{"customerId": "{inactive}", "totalAmount": 1}`, want: 400, code: "customer_inactive"},
	{text: `POST /api/v1/transactions/batch
{"transactions": [{"customerId": "{customer}", "totalAmount": 20}]}`, want: 200, within: true},
	{text: `POST /api/v1/transactions/batch
Idempotency-Key: {retry}
{"transactions": []}`, want: 400, code: "invalid_field", fields: true},
	{text: `POST /api/v1/transactions/batch
{"transactions": [{"customerId": "{customer}", "totalAmount": 1, "type": "Return", "originalTransactionId": "{sale}"}]}`, want: 200, within: true},
	{text: `POST /api/v1/transactions?dryRun=true
{"customerId": "{customer}", "totalAmount": 1, "type": "Return", "originalTransactionId": "{sale}"}`, want: 200},

	{text: `GET /api/v1/rewards`, want: 200},
	{text: `GET /api/v1/rewards?customerId={customer}`, want: 200},
	{text: `GET /api/v1/rewards?search={name}`, want: 200},
	{text: `GET /api/v1/rewards/{espresso}`, want: 200},
	{text: `POST /api/v1/rewards/redeem
Idempotency-Key: {retry}
{"customerId": "{customer}", "productId": "{espresso}"}`, want: 201},
	{text: `POST /api/v1/rewards/redeem
{"customerId": "{customer}", "productId": "{termo}"}`, want: 409, code: "reward_out_of_stock"},
	{text: `POST /api/v1/rewards/redeem
{"customerId": "{customer}", "productId": "{yate}"}`, want: 400, code: "insufficient_balance"},
	{text: `POST /api/v1/rewards/redeem
{"customerId": "{inactive}", "productId": "{espresso}"}`, want: 400, code: "customer_inactive"},
	{text: `GET /api/v1/redemptions`, want: 200},
	{text: `GET /api/v1/redemptions?customerId={customer}&productId={espresso}`, want: 200},
	{text: `GET /api/v1/redemptions?productId={vale}&status=Issued&from=2026-11-01`, want: 200},
	{text: `GET /api/v1/redemptions?code={code}`, want: 200},
	{text: `GET /api/v1/redemptions/{redemption}`, want: 200},
	{text: `POST /api/v1/redemptions/use
Idempotency-Key: {retry}
{"code": "{code}", "transactionId": "{sale}"}`, want: 200, once: true},
	{text: `POST /api/v1/redemptions/use
{"code": "{done}"}`, want: 409, code: "redemption_already_used"},
	{text: `POST /api/v1/redemptions/{redemption}/cancel
Idempotency-Key: {retry}`, want: 200, once: true},
	{text: `POST /api/v1/redemptions/{cancelled}/cancel
Idempotency-Key: {retry}`, want: 409, code: "redemption_not_cancellable"},

	{text: `GET /api/v1/segments`, want: 200},
	{text: `GET /api/v1/segments/{vip}`, want: 200},
	{text: `GET /api/v1/segments/{vip}/customers?limit=1`, want: 200},
	{text: `GET /api/v1/segments/{vip}/customers?after=AQAAAAAAAAAB`, want: 200},
	{text: `GET /api/v1/loyalty/programs`, want: 200},
	{text: `GET /api/v1/loyalty/programs/{club}`, want: 200},
	{text: `GET /api/v1/statistics`, want: 200},
	{text: `GET /api/v1/statistics?loyaltyProgramId={sellos}`, want: 200},
	{text: `GET /api/v1/organization`, want: 200},
	{text: `GET /api/v1/audit`, want: 200},
	{text: `GET /api/v1/audit?subject={subject}&action=redemption.cancelled`, want: 200},
	{text: `GET /api/v1/audit?actor={name}`, want: 200},
	{text: `GET /api/v1/openapi.json`, want: 200},
	{text: `GET /docs`, want: 200},
	{text: `GET /api/v1/events`, want: 200},
	{text: `GET /api/v1/events?after=1&type=customer.*`, want: 200},
	{text: `GET /livez`, want: 200},
	{text: `GET /readyz`, want: 200},
}

// notFound is the error for an id that does not exist, by the kind of its place. The
// other kinds are not ids: they find something or nothing.
var notFound = map[string]string{
	"customer": "customer_not_found", "inactive": "customer_not_found", "solo": "customer_not_found", "pair": "customer_not_found",
	"sale": "transaction_not_found", "return": "transaction_not_found",
	"hold":       "hold_not_found",
	"redemption": "redemption_not_found", "cancelled": "redemption_not_found",
	"espresso": "reward_not_found", "termo": "reward_not_found", "yate": "reward_not_found", "vale": "reward_not_found",
	"vip": "segment_not_found", "club": "program_not_found", "sellos": "program_not_found",
}

// A place is a part of a request that names something.
type place struct {
	kind   string
	inPath bool
}

var placeForm = regexp.MustCompile(`\{(\w+)\}`)

func (r *row) places() (list []place) {
	query := strings.IndexAny(r.text+"?\n", "?\n")
	for _, at := range placeForm.FindAllStringSubmatchIndex(r.text, -1) {
		list = append(list, place{r.text[at[2]:at[3]], at[0] < query})
	}
	return list
}

// fill returns the request with a value in each place.
func (r *row) fill(values []string) step {
	head, rest, more := strings.Cut(r.text, "\n")
	next := func(string) string {
		v := values[0]
		values = values[1:]
		return v
	}
	head = placeForm.ReplaceAllStringFunc(head, func(m string) string {
		return strings.ReplaceAll(url.QueryEscape(next(m)), "+", "%20")
	})
	rest = placeForm.ReplaceAllStringFunc(rest, func(m string) string {
		literal, _ := json.Marshal(next(m))
		return string(literal[1 : len(literal)-1])
	})
	if more {
		head += "\n" + rest
	}
	return newStep(head)
}

// TestTenantRows checks that the rows have every route, and a place for every input by
// which the route finds something.
func TestTenantRows(t *testing.T) {
	t.Parallel()
	for _, missing := range missingRows(newAPI(nil, nil, nil).routes(), rows) {
		t.Error("no row has ", missing)
	}

	t.Run("control", func(t *testing.T) {
		routes := newAPI(nil, nil, nil).routes()
		also := append(slices.Clone(routes), route{pattern: "GET /api/v1/new/{newId}"})
		if got := missingRows(also, rows); !slices.Contains(got, "GET /api/v1/new/{newId}") {
			t.Error("a route without a row was not missed")
		}
		for _, gone := range []string{"{sale}", "{retry}", "customerId={", `"productId": "{`, "email={", "search={"} {
			less := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return strings.Contains(r.text, gone) })
			if len(missingRows(routes, less)) == 0 {
				t.Errorf("without %s nothing was missed", gone)
			}
		}
	})
}

func missingRows(routes []route, rows []row) (missing []string) {
	a := newAPI(nil, nil, nil)
	byPattern := map[string][]string{}
	for _, r := range rows {
		head, _, _ := strings.Cut(placeForm.ReplaceAllString(r.text, "x"), "\n")
		method, target, _ := strings.Cut(head, " ")
		u, _ := url.Parse(target)
		_, pattern := a.mux.Handler(&http.Request{Method: method, URL: u})
		byPattern[pattern] = append(byPattern[pattern], r.text)
	}
	names := func(text, name string) bool {
		return strings.Contains(text, name+"={") || strings.Contains(text, `"`+name+`": "{`) || strings.Contains(text, name+": {")
	}
	for _, r := range routes {
		texts := byPattern[r.pattern]
		if len(texts) == 0 {
			missing = append(missing, r.pattern)
			continue
		}
		inPath := strings.Count(r.pattern, "{")
		if !slices.ContainsFunc(texts, func(text string) bool {
			path, _, _ := strings.Cut(strings.SplitN(text, "\n", 2)[0], "?")
			return strings.Count(path, "{") == inPath
		}) {
			missing = append(missing, r.pattern+", its path")
		}
		for _, input := range inputsOf(r.pattern) {
			if !slices.ContainsFunc(texts, func(text string) bool { return names(text, input) }) {
				missing = append(missing, r.pattern+", "+input)
			}
		}
	}
	return missing
}

// inputsOf returns the parameters and fields by which a route finds something, as
// openapi.json has them.
func inputsOf(pattern string) (list []string) {
	for _, in := range documentedInputs()[pattern] {
		if in == "email" || in == "phone" || in == "phoneNumber" || in == "search" || in == "Idempotency-Key" || strings.HasSuffix(in, "Id") {
			list = append(list, in)
		}
	}
	return list
}

// documentedInputs returns the parameters and fields of each route, without those of the
// path and X-Request-Id.
var documentedInputs = sync.OnceValue(func() map[string][]string {
	type parameter struct {
		Ref      string `json:"$ref"`
		Name, In string
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters  []parameter
			RequestBody struct {
				Content map[string]struct{ Schema docSchema }
			}
		}
		Components struct {
			Parameters map[string]parameter
			Schemas    map[string]*docSchema
		}
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		panic(err)
	}
	inputs := map[string][]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			var list []string
			for _, p := range op.Parameters {
				if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
					p = doc.Components.Parameters[name]
				}
				if p.In != "path" && p.Name != "X-Request-Id" {
					list = append(list, p.Name)
				}
			}
			schema := op.RequestBody.Content["application/json"].Schema
			if name, ok := strings.CutPrefix(schema.Ref, "#/components/schemas/"); ok {
				schema = *doc.Components.Schemas[name]
			}
			inputs[strings.ToUpper(method)+" "+path] = append(list, slices.Sorted(maps.Keys(schema.Properties))...)
		}
	}
	return inputs
})
