package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Tenants: what belongs to another organization is not there (spec: What the
// service does; contract §1, §3). Every route is asked for everything in
// every place where a request names something, under every kind of key.
//
// Every request begins with the same store, clock, limits and seed, so that
// two answers which may not differ are compared to the byte, and so is what is
// stored after them. A check collects its flaws; a control puts one fault into
// the server and wants the check to see it.

// The organizations: two alike but for their slugs and ids, each with customers
// and a reward that the other has not; and one of which nothing is known.
const (
	here    = "norte" // who asks
	there   = "oeste"
	nowhere = "nadie"
	planOff = "plano" // lost its access to the API
)

// A row is a request that the API knows, as transcripts have it. {kind} is a
// place: what stands there is something of the caller's.
type row struct {
	text string
	want int    // status, where all is the caller's own
	code string // of that, if it is an error

	// Where the caller's own is refused for a field, nothing is looked for:
	// contract §3 has fields before existence.
	fields bool
	once   bool // a second time it would be answered otherwise
}

var rows = []row{
	{text: `GET /api/v1/customers`, want: 200},
	{text: `GET /api/v1/customers?search={name}`, want: 200},
	{text: `GET /api/v1/customers?search={email}&limit=1`, want: 200},
	{text: `GET /api/v1/customers?search={phone}`, want: 200},
	{text: `GET /api/v1/customers/lookup?email={email}`, want: 200},
	{text: `GET /api/v1/customers/lookup?phone={phone}`, want: 200},
	{text: `GET /api/v1/customers/lookup?email={email}&phone={phone2}`, want: 200},
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

	{text: `GET /api/v1/points/customers/{customer}/balance`, want: 200},
	{text: `GET /api/v1/points/customers/{customer}/balance?loyaltyProgramId={sellos}`, want: 200},
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
	{text: `GET /api/v1/redemptions/{redemption}`, want: 200},
	{text: `POST /api/v1/redemptions/{redemption}/cancel
Idempotency-Key: {retry}`, want: 200, once: true},
	{text: `POST /api/v1/redemptions/{cancelled}/cancel
Idempotency-Key: {retry}`, want: 409, code: "redemption_not_cancellable"},

	{text: `GET /api/v1/segments`, want: 200},
	{text: `GET /api/v1/segments/{vip}`, want: 200},
	{text: `GET /api/v1/loyalty/programs`, want: 200},
	{text: `GET /api/v1/loyalty/programs/{club}`, want: 200},
	{text: `GET /api/v1/statistics`, want: 200},
	{text: `GET /api/v1/statistics?loyaltyProgramId={sellos}`, want: 200},
	{text: `GET /api/v1/organization`, want: 200},
	{text: `GET /api/v1/openapi.json`, want: 200},
	{text: `GET /livez`, want: 200},
	{text: `GET /readyz`, want: 200},
}

// notFound is what is said of an id that is nobody's, by the kind of its place.
// The other kinds are no ids: they find something or nothing.
var notFound = map[string]string{
	"customer": "customer_not_found", "inactive": "customer_not_found", "solo": "customer_not_found", "pair": "customer_not_found",
	"sale": "transaction_not_found", "return": "transaction_not_found",
	"redemption": "redemption_not_found", "cancelled": "redemption_not_found",
	"espresso": "reward_not_found", "termo": "reward_not_found", "yate": "reward_not_found",
	"vip": "segment_not_found", "club": "program_not_found", "sellos": "program_not_found",
}

// A place is where a request names something.
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

// fill makes the request with a value in each place.
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

// A street is the world with those organizations.
type street struct {
	*world
	past    *pastStore
	begin   memTx        // what each request begins with
	handler http.Handler // the API, or one with a fault
	wire    bool         // requests go to the API over a connection
	spent   id           // the API key whose minute is used up
	sending *testKey     // with which the request is sent
	routes  []*route
}

// A pastStore is a store in memory that can be set back. Requests come in
// turn.
type pastStore struct{ state atomic.Pointer[memTx] }

func (s *pastStore) View(_ context.Context, fn func(Tx) error) error { return fn(*s.state.Load()) }

func (s *pastStore) Update(_ context.Context, fn func(Tx) error) error {
	after := newOverlay(*s.state.Load())
	if err := fn(after); err != nil {
		return err
	}
	next := make(memTx, 0, len(*s.state.Load())+len(after.writes))
	for e, err := range after.Scan(nil, nil, false) {
		if err != nil {
			return err
		}
		next = append(next, e)
	}
	s.state.Store(&next)
	return nil
}

func (s *pastStore) Close() error { return nil }

const streetDocument = `{"organization": {"slug": "%[1]s", "name": "Café Gemelo", "plan": {"name": "Pro", "apiAccess": true},
	"profile": {"country": "MX"}, "settings": {"timezone": "America/Mexico_City", "currency": "MXN"}},
"programs": [
	{"key": "club", "name": "Club", "default": true, "tiers": [{"name": "Bronce", "threshold": 0}, {"name": "Plata", "threshold": 100}],
	 "rules": [{"key": "base", "name": "1 por $10", "per": {"amount": 10, "points": 1}}, {"key": "hola", "name": "Hola", "on": "Signup", "points": 50}]},
	{"key": "sellos", "name": "Sellos"}],
"rewards": [
	{"key": "espresso", "program": "club", "name": "Espresso", "pointsCost": 1},
	{"key": "termo", "program": "club", "name": "Termo", "pointsCost": 1, "stock": 0},
	{"key": "yate", "program": "club", "name": "Yate", "pointsCost": 99999},
	{"key": "gorra", "program": "club", "name": "Gorra %[1]s", "pointsCost": 5}],
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
{"email": "EMAIL", "phoneNumber": "PHONE", "firstName": "Sola", "lastName": "ORG"}

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
POST /api/v1/rewards/redeem
{"customerId": "$ORG.customer", "productId": "$ORG.espresso", "comment": "ORG"}

let ORG.cancelled = id
POST /api/v1/rewards/redeem
{"customerId": "$ORG.customer", "productId": "$ORG.espresso"}

status ORG $ORG.inactive Inactive`

func newStreet(t *testing.T) *street {
	past := new(pastStore)
	past.state.Store(new(memTx))
	s := &street{world: newWorld(t, past), past: past}
	s.handler = s.api
	for _, r := range s.api.routes() {
		s.routes = append(s.routes, &r)
	}
	for _, org := range []string{here, there, planOff} {
		s.seed, s.seeds = org, 0
		s.apply(fmt.Appendf(nil, streetDocument, org))
		s.direct("key " + org + " " + org)
		s.as = org
		if org == planOff {
			continue
		}
		life := strings.NewReplacer("ORG", org, "EMAIL", s.value(org, "email"), "PHONE2", s.value(org, "phone2"), "PHONE", s.value(org, "phone"))
		for text := range strings.SplitSeq(strings.TrimSpace(life.Replace(streetLife)), "\n\n") {
			if got := s.step(newStep(text)); got != "" && !strings.HasPrefix(got, "=> 201") {
				t.Fatalf("%s\n%s", text, got)
			}
		}
		// What is retried is remembered.
		for i := range rows {
			if !strings.HasPrefix(rows[i].text, "POST") || rows[i].once {
				continue
			}
			s.seed, s.seeds = org+strconv.Itoa(i), 0
			q := rows[i].fill(s.values(i, func(int, place) string { return org }))
			if res, body := s.world.send(q); res.StatusCode >= 300 && rows[i].want < 300 {
				t.Fatalf("%s\n%s", q.text, body)
			}
		}
	}
	s.begin = *past.state.Load()
	return s
}

// value is what an organization has of a kind; here and there have ids too.
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
	}
	if org == nowhere {
		return s.unknown(kind)
	}
	v, ok := s.names[org+"."+kind]
	if !ok {
		s.Fatalf("%s has no %s", org, kind)
	}
	return v
}

// unknown is a well-formed id of nobody's, another one for each kind.
func (s *street) unknown(kind string) string {
	return newMint(instantOf(s.clock), seed{}).id().derive(kind).String()
}

// values are those of the organizations that of names, for each place of a row.
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

// only is here everywhere but in place n.
func only(n int, org string) func(int, place) string {
	return func(at int, _ place) string {
		if at == n {
			return org
		}
		return here
	}
}

// A result is an answer with what is stored after it.
type result struct {
	status int
	header http.Header
	body   string
	state  memTx
	used   []id // API keys whose limits it counted against
}

// ask sends a request to the street as it began.
func (s *street) ask(q step) result {
	s.past.state.Store(&s.begin)
	s.seed, s.seeds = "ask", 0
	return s.then(q)
}

// then sends a request to the street as it is, with all limits fresh.
func (s *street) then(q step) result {
	s.api.limiter = newLimiter()
	s.api.refused.recent, s.api.refused.before = nil, nil
	if s.spent != (id{}) {
		s.must(s.api.limiter.take(s.Context(), s.past, &apiKey{ID: s.spent, RateLimit: 1}, instantOf(s.clock), new(allowance)))
	}
	q.key = cmp.Or(q.key, here)
	if s.wire {
		res, body := s.world.send(q)
		res.Header.Del("Date") // net/http's own, by the wall clock
		return result{res.StatusCode, res.Header, string(body), *s.past.state.Load(), s.used()}
	}
	r := httptest.NewRequest(q.method, q.target, strings.NewReader(q.body))
	r.RemoteAddr = "127.0.0.1:4711"
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("X-Request-Id", "req-1")
	if q.key != "nobody" {
		r.Header.Set("Authorization", "Bearer "+s.names["key."+q.key])
	}
	for _, line := range q.headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	header := http.Header{} // as it goes out
	for name, values := range w.Header() {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return result{w.Code, header, w.Body.String(), *s.past.state.Load(), s.used()}
}

func (s *street) used() []id {
	s.api.limiter.mu.Lock()
	defer s.api.limiter.mu.Unlock()
	return slices.Collect(maps.Keys(s.api.limiter.keys))
}

// owner is whose an entry of the store is; 0 for what all share. It fails for
// a table that model.go does not declare.
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
	return 0, nil // usage is written by the limiter, for none of these requests
}

// changed yields what one state has and the other has not, or has otherwise.
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

// isOthers tells whether an entry does not belong to who asks.
func (s *street) isOthers(e Entry) bool {
	org, err := owner(e)
	s.must(err)
	return org != 1
}

// Checks.

// Ways in which a result can be wrong.
const (
	flawStatus = "status"
	flawHeader = "headers"
	flawBody   = "body"
	flawStored = "stored bytes" // of the caller's
	flawOthers = "stored bytes of others"
	flawLeak   = "a leak"
	flawLimits = "limits of others"
)

// answerFlaws are those of two answers.
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

// A matrix is what a check has looked at and found.
type matrix struct {
	*street
	cells int
	flaws map[string][]string // by cell
	order []string            // its keys
	text  map[string]string   // of the first flaw of a cell
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

// cell compares an answer to the one it must be like, and what is stored with
// what may be: nothing changes for others, and nothing at all where nothing
// was to be done.
func (m *matrix) cell(name string, q step, want, got result) {
	m.cells++
	m.note(name, want, got, answerFlaws(want, got)...)
	writes := changed(m.begin, got.state)
	if len(writes) > 0 && (got.status >= 300 || q.method != "POST" || strings.Contains(q.target, "dryRun=true")) {
		m.note(name, want, got, flawStored)
	}
	if slices.ContainsFunc(writes, m.isOthers) {
		m.note(name, want, got, flawOthers)
	}
}

// foreignCell is cell for what may lead to something of the other's.
func (m *matrix) foreignCell(name string, q step, want, got result) {
	m.cell(name, q, want, got)
	if m.leaks(q, got) {
		m.note(name, want, got, flawLeak)
	}
	if slices.ContainsFunc(got.used, func(u id) bool { return u != m.keys[here] }) {
		m.note(name, want, got, flawLimits)
	}
}

// leaks tells whether an answer has something in it that is the other
// organization's and that the request did not say.
func (m *matrix) leaks(q step, got result) bool {
	shown := got.body + fmt.Sprint(got.header)
	asked, _ := url.PathUnescape(q.target)
	asked += strings.Join(q.headers, "\n") + q.body
	for name, value := range m.names {
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

// report fails the test for what was found.
func (m *matrix) report() {
	m.Helper()
	for _, cell := range m.order[:min(len(m.order), 20)] {
		m.Errorf("%s\n%v\n%s", cell, m.flaws[cell], m.text[cell])
	}
	if len(m.order) > 20 {
		m.Errorf("and %d more", len(m.order)-20)
	}
	m.Logf("%d cells", m.cells)
}

// has tells whether a cell was found to have one of the flaws, or any if none
// is named.
func (m *matrix) has(cell string, flaws ...string) bool {
	found := m.flaws[cell]
	return len(found) > 0 && (len(flaws) == 0 || slices.ContainsFunc(flaws, func(f string) bool { return slices.Contains(found, f) }))
}

// refusal is what contract §2 says of an error that has no figures.
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

// TestTenantRows finds every route in the rows, and in a place everything that
// the API takes to find something by.
func TestTenantRows(t *testing.T) {
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

// inputsOf are the parameters and fields of a route by which something is
// found, as openapi.json has them.
func inputsOf(pattern string) (list []string) {
	for _, in := range documentedInputs()[pattern] {
		if in == "email" || in == "phone" || in == "phoneNumber" || in == "search" || in == "Idempotency-Key" || strings.HasSuffix(in, "Id") {
			list = append(list, in)
		}
	}
	return list
}

// documentedInputs are all parameters, but those of the path, and fields, by
// route.
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

// TestForeignIDs asks for what is the other organization's, unknown and
// malformed, in every place of every row, one at a time and all at once.
func TestForeignIDs(t *testing.T) {
	t.Parallel()
	s := newStreet(t)
	s.wire = true
	s.foreignIDs(true).report()
	s.wire = false

	places := 0
	for i := range rows {
		places += len(rows[i].places())
	}
	t.Logf("%d rows, %d places", len(rows), places)

	// Each fault must show in every place in which another organization's is
	// named.
	t.Run("control", func(t *testing.T) {
		for _, fault := range []struct {
			name  string
			flaws []string // one of these is found
			ids   bool     // only in places for ids
			wrong http.Handler
		}{
			{"whose it is does not matter", nil, false, s.swap()},
			{"counted against the other's limits", []string{flawLimits}, true, s.swap()},
			{"forbidden", []string{flawStatus}, true, s.spoil(func(w *httptest.ResponseRecorder) { w.Code = 403 })},
			{"a header", []string{flawHeader}, true, s.spoil(func(w *httptest.ResponseRecorder) { w.Header().Set("X-Owner", "other") })},
			{"a header's value", []string{flawHeader}, true, s.spoil(func(w *httptest.ResponseRecorder) { w.Header()["X-RateLimit-Remaining"] = []string{"298"} })},
			{"a header less", []string{flawHeader}, true, s.spoil(func(w *httptest.ResponseRecorder) { w.Header().Del("Cache-Control") })},
			{"a body", []string{flawBody}, true, s.spoil(func(w *httptest.ResponseRecorder) { w.Body.WriteByte(' ') })},
			{"the other's name", []string{flawLeak}, false, s.spoil(func(w *httptest.ResponseRecorder) { w.Header().Set("X-Request-Id", s.names[there]) })},
			{"writing to the other", []string{flawOthers}, true, s.spoil(func(*httptest.ResponseRecorder) { s.touch(2) })},
			{"writing to the caller's", []string{flawStored}, true, s.spoil(func(*httptest.ResponseRecorder) { s.touch(1) })},
			{"writing to what all share", []string{flawOthers}, true, s.spoil(func(*httptest.ResponseRecorder) {
				s.must(s.past.Update(s.Context(), func(tx Tx) error { return tx.Put(newKey('v'), nil) }))
			})},
		} {
			s.handler = fault.wrong
			m := s.foreignIDs(false)
			for i := range rows {
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

		// Records that turn up under the keys of another organization.
		s.handler = newAPI(s.leaky(), nil, slog.New(slog.DiscardHandler))
		m := s.foreignIDs(false)
		for _, text := range []string{
			"GET /api/v1/customers/{customer}", "POST /api/v1/points/customers/{customer}/add", "GET /api/v1/transactions/{sale}",
			"GET /api/v1/redemptions/{redemption}", "GET /api/v1/customers/lookup?email={email}", "GET /api/v1/transactions?customerId={customer}",
		} {
			i := slices.IndexFunc(rows, func(r row) bool { return strings.HasPrefix(r.text, text) })
			if cell := cellName(i, 0, rows[i].places()[0], there); !m.has(cell) {
				t.Errorf("records under another's keys: nothing was found in %s", cell)
			}
		}
		s.handler = s.api
	})
}

func cellName(row, n int, p place, what string) string {
	return fmt.Sprintf("%s\nplace %d {%s}: %s", rows[row].text, n+1, p.kind, what)
}

// foreignIDs checks all rows; malformed ids too, and HEAD, if thorough.
func (s *street) foreignIDs(thorough bool) *matrix {
	m := s.newMatrix()
	for i := range rows {
		m.foreignRow(i, "", thorough)
		if thorough && strings.HasPrefix(rows[i].text, "GET") {
			m.foreignRow(i, "HEAD", false)
		}
	}
	return m
}

func (m *matrix) foreignRow(i int, method string, thorough bool) {
	r, places := &rows[i], rows[i].places()
	fill := func(values []string) step {
		q := r.fill(values)
		q.method = cmp.Or(method, q.method)
		return q
	}
	ask := func(of func(int, place) string) (step, result) {
		q := fill(m.values(i, of))
		return q, m.ask(q)
	}
	q, own := ask(all(here))
	m.foreignCell(r.text+method+": own", q, own, own)
	var e errorBody
	if own.status >= 400 {
		json.Unmarshal([]byte(own.body), &e)
	}
	if own.status != r.want || method == "" && e.Code != r.code {
		m.note(r.text+method+": own", result{status: r.want, body: r.code}, own, flawStatus)
	}
	for n, p := range places {
		name := func(what string) string { return cellName(i, n, p, what+method) }
		q, unknown := ask(only(n, nowhere))
		code := notFound[p.kind]
		want := unknown
		switch {
		case p.kind == "retry" || r.fields:
			want = own
		case code != "":
			want = m.refusal(code, "")
			if method != "" {
				want.body = unknown.body
			}
		}
		m.foreignCell(name(nowhere), q, want, unknown)

		q, foreign := ask(only(n, there))
		if code == "" {
			foreign = m.renamed(foreign, p.kind)
		}
		m.foreignCell(name(there), q, want, foreign)
		if code == "" || !thorough {
			continue
		}
		with := func(value string) (step, result) {
			values := m.values(i, all(here))
			values[n] = value
			q := fill(values)
			return q, m.ask(q)
		}
		for kind, theirs := range notFound {
			q, got := with(m.value(there, kind))
			m.foreignCell(name(there+"'s "+kind), q, want, got)
			if code != theirs {
				q, got = with(m.value(here, kind))
				m.foreignCell(name("own "+kind), q, want, got)
			}
		}
		flipped, _ := parseID(m.value(there, p.kind))
		for bit := 0; bit < 128; bit += 9 {
			other := flipped
			other[bit/8] ^= 1 << (bit % 8)
			q, got := with(other.String())
			m.foreignCell(name(fmt.Sprint("bit ", bit)), q, want, got)
		}
		for _, bad := range malformations {
			want := want
			if bad.noRoute && p.inPath {
				want = m.refusal("route_not_found", "")
			}
			for _, org := range []string{nowhere, there, here} {
				if bad.spaces && org == here && !p.inPath {
					continue // texts are trimmed (contract §1)
				}
				q, got := with(bad.spell(m.value(org, p.kind)))
				m.foreignCell(name(org+", "+bad.name), q, want, got)
			}
		}
	}
	if len(places) == 0 {
		return
	}
	name := r.text + method + ": all "
	q, unknown := ask(all(nowhere))
	m.foreignCell(name+nowhere, q, unknown, unknown)
	if !r.fields && slices.ContainsFunc(places, func(p place) bool { return notFound[p.kind] != "" }) && unknown.status != http.StatusNotFound {
		m.note(name+nowhere, result{status: http.StatusNotFound}, unknown, flawStatus)
	}
	q, foreign := ask(all(there))
	for _, p := range places {
		if notFound[p.kind] == "" {
			foreign = m.renamed(foreign, p.kind)
		}
	}
	m.foreignCell(name+there, q, unknown, foreign)
}

// renamed is an answer that repeats what it was asked for, as it would be if
// that had been nobody's.
func (s *street) renamed(got result, kind string) result {
	if kind != "retry" {
		got.body = strings.ReplaceAll(got.body, s.value(there, kind), s.value(nowhere, kind))
	}
	return got
}

// malformations are spellings that are nobody's id (contract §1).
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

// Servers with a fault.

// foreign tells whether a request names something of the other organization.
func (s *street) foreign(r *http.Request) bool {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	asked, _ := url.QueryUnescape(r.URL.RequestURI())
	asked += string(body) + r.Header.Get("Idempotency-Key")
	for name, value := range s.names {
		if strings.HasPrefix(name, there+".") && strings.Contains(asked, value) {
			return true
		}
	}
	return strings.Contains(asked, there) || strings.Contains(asked, s.value(there, "phone")[1:]) || strings.Contains(asked, s.value(there, "phone2")[1:])
}

// swap serves a request for the organization whose things it names.
func (s *street) swap() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.foreign(r) {
			r.Header.Set("Authorization", "Bearer "+s.names["key."+there])
		}
		s.api.ServeHTTP(w, r)
	})
}

// spoil changes the answer to what names something of the other organization.
func (s *street) spoil(change func(*httptest.ResponseRecorder)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		spoilt := httptest.NewRecorder()
		foreign := s.foreign(r)
		s.api.ServeHTTP(spoilt, r)
		if foreign {
			change(spoilt)
		}
		maps.Copy(w.Header(), spoilt.Header())
		w.WriteHeader(spoilt.Code)
		w.Write(spoilt.Body.Bytes())
	})
}

// touch writes one byte more to an organization's counters.
func (s *street) touch(org uint32) {
	s.must(s.past.Update(s.Context(), func(tx Tx) error {
		value, _, err := tx.Get(orgKey('n', org))
		if err != nil {
			return err
		}
		return tx.Put(orgKey('n', org), append(slices.Clone(value), 0))
	}))
}

// A leakyStore finds for the first organization what the second has, where it
// has nothing itself.
type leakyStore struct{ Store }

func (s leakyStore) View(ctx context.Context, fn func(Tx) error) error {
	return s.Store.View(ctx, func(tx Tx) error { return fn(leakyTx{tx}) })
}

func (s leakyStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.Store.Update(ctx, func(tx Tx) error { return fn(leakyTx{tx}) })
}

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

// Keys.

// keyChecks are what a key can be refused for, in the order of contract §3.
var keyChecks = []string{
	"api_key_required", "api_key_invalid", "api_key_expired", "plan_without_api", "ip_not_allowed", "rate_limit_minute", "scope_required",
}

// A testKey is sent in headers of its own and refused for the first of its
// faults; for lacking a scope only where another one is needed.
type testKey struct {
	name    string
	headers []string
	faults  []string // of keyChecks, but the last
	scopes  []string // none: all
	id      id       // if it has one
}

// refused is what the key is refused for on a route; "" if it is not.
func (k *testKey) refused(scope string) string {
	if scope == "" {
		return "" // the route needs no key
	}
	for _, code := range keyChecks {
		if slices.Contains(k.faults, code) || code == "scope_required" && len(k.scopes) > 0 && !slices.Contains(k.scopes, scope) {
			return code
		}
	}
	return ""
}

// testKeys makes a key of every kind: with each set of faults, with each scope
// alone and each scope missing, and texts that are no key.
func (s *street) testKeys() (list []*testKey) {
	s.past.state.Store(&s.begin)
	s.seed, s.seeds = "keys", 0
	made := func(org, name string, faults, scopes []string) {
		in := keyRequest{Org: org, Name: "test", Scopes: scopes}
		if slices.Contains(faults, "plan_without_api") {
			in.Org = planOff
		}
		if slices.Contains(faults, "api_key_expired") {
			in.Expires = instantOf(s.clock.Add(time.Second)).String()
		}
		if slices.Contains(faults, "ip_not_allowed") {
			in.IPWhitelist = []string{"192.0.2.1", "2001:db8::/32"}
		}
		if slices.Contains(faults, "rate_limit_minute") {
			in.RateLimit = 1
		}
		k, err := s.admin.createKey(s.Context(), in)
		s.must(err)
		if slices.Contains(faults, "api_key_invalid") {
			_, err := s.admin.revokeKey(s.Context(), revokeRequest{in.Org, k.ID.String()})
			s.must(err)
		}
		// What a client says of its source is not believed.
		list = append(list, &testKey{name, []string{"Authorization: Bearer " + k.Key, "X-Forwarded-For: 192.0.2.1"}, faults, scopes, k.ID})
	}
	for set := range 1 << 5 {
		var faults []string
		for i, code := range keyChecks[1:6] {
			if set>>i&1 == 1 {
				faults = append(faults, code)
			}
		}
		made(here, fmt.Sprint(faults), faults, nil)
		made(here, fmt.Sprint(faults, " and scope"), faults, []string{"organization:read"})
		made(here, fmt.Sprint(faults, " and another scope"), faults, []string{"segments:read"})
	}
	for _, scope := range scopes {
		made(here, scope, nil, []string{scope})
		made(here, "all but "+scope, nil, slices.DeleteFunc(slices.Clone(scopes), func(other string) bool { return other == scope }))
	}
	s.direct("change " + planOff + " organization.plan.apiAccess = false")
	s.clock = s.clock.Add(2 * time.Second)
	s.begin = *s.past.state.Load()

	text := s.names["key."+here]
	digits := text[len(keyPrefix):]
	sum := digits[keyRandom:]
	other := byte('0')
	if sum[0] == other {
		other++
	}
	mine := list[0].id.String()
	for name, headers := range map[string][]string{
		"no key":            nil,
		"an empty key":      {"X-API-Key: "},
		"another scheme":    {"Authorization: Basic " + text},
		"a scheme alone":    {"Authorization: Bearer"},
		"no scheme":         {"Authorization: " + text},
		"a cookie":          {"Cookie: api_key=" + text},
		"a header of a kin": {"X-Auth-Token: " + text, "Api-Key: " + text, "Proxy-Authorization: Bearer " + text},
	} {
		list = append(list, &testKey{name: name, headers: headers, faults: keyChecks[:1]})
	}
	for name, sent := range map[string]string{
		"unknown":          newAPIKey([32]byte{1}),
		"a wrong sum":      keyPrefix + digits[:keyRandom] + string(other) + sum[1:],
		"a wrong digit":    keyPrefix + "!" + digits[1:],
		"too short":        text[:len(text)-1],
		"too long":         text + "0",
		"without a sum":    text[:len(text)-keyChecksum],
		"without a prefix": digits,
		"another prefix":   "luna_" + digits,
		"upper case":       strings.ToUpper(text),
		"twice":            text + "," + text,
		"two":              text + " " + text,
		"the key's id":     mine,
		"an organization":  s.names[here],
		"a slug":           here,
		"a hash":           fmt.Sprintf("%x", keyHash(text)),
		"long":             strings.Repeat(text, 100),
		"not ASCII":        strings.Replace(text, "_", "＿", 1),
	} {
		list = append(list,
			&testKey{name: name, headers: []string{"Authorization: Bearer " + sent}, faults: keyChecks[1:2]},
			&testKey{name: name + ", X-API-Key", headers: []string{"X-API-Key: " + sent}, faults: keyChecks[1:2]})
	}
	theirs := s.names["key."+there]
	return append(list,
		&testKey{name: "two organizations' keys", headers: []string{"Authorization: Bearer " + text, "X-API-Key: " + theirs}, faults: keyChecks[1:2]},
		&testKey{name: "X-API-Key", headers: []string{"X-API-Key: " + text}},
		&testKey{name: "in both headers", headers: []string{"Authorization: bearer " + text, "X-API-Key: " + text}})
}

// TestTenantKeys sends every row under every key, with the caller's own, the
// other organization's, unknown and malformed ids, and so that all is wrong
// that comes after the key. A key that is refused is refused alike whatever it
// asks for, for the reason that contract §3 has first.
func TestTenantKeys(t *testing.T) {
	t.Parallel()
	s := newStreet(t)
	keys := s.testKeys()
	list := map[string]int{} // the row of each route that has the most places
	for i := range rows {
		pattern := s.routeOf(i).pattern
		if other, ok := list[pattern]; !ok || len(rows[i].places()) > len(rows[other].places()) {
			list[pattern] = i
		}
	}
	few := slices.Sorted(maps.Values(list))
	m := s.newMatrix()
	for _, i := range few {
		m.keyRow(i, keys, "")
	}
	m.report()
	t.Logf("%d routes, %d keys", len(few), len(keys))

	t.Run("control", func(t *testing.T) {
		for _, code := range keyChecks {
			// The server overlooks what it should refuse the key for.
			s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, pattern := s.api.mux.Handler(r)
				if s.sending.refused(s.scopeOf(pattern)) == code {
					r.Header.Del("X-Api-Key")
					r.Header.Set("Authorization", "Bearer "+s.names["key."+here])
				}
				s.api.ServeHTTP(w, r)
			})
			s.wantKeyFlaws("overlooking "+code, keys, few, "own", func(refused string) bool { return refused == code })
		}

		// The server looks for what is asked for before it looks at the key.
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.foreign(r) {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			s.api.ServeHTTP(w, r)
		})
		var named []int
		for _, i := range few {
			if len(rows[i].places()) > 0 {
				named = append(named, i)
			}
		}
		s.wantKeyFlaws("existence first", keys, named, there, func(refused string) bool { return refused != "" })

		// Another organization's key opens what is its own.
		s.handler = s.api
		stranger := &testKey{name: "stranger", headers: []string{"Authorization: Bearer " + s.names["key."+there]}}
		m := s.newMatrix()
		for _, i := range named {
			m.keyRow(i, []*testKey{stranger}, there)
			if cell := keyCell(i, stranger, there); notFound[rows[i].places()[0].kind] != "" && !m.has(cell) {
				t.Error("a stranger's key: nothing was found in ", cell)
			}
		}
	})
}

// wantKeyFlaws fails the test where the matrix finds nothing in a cell of a key
// that is refused for what counts.
func (s *street) wantKeyFlaws(fault string, keys []*testKey, rows []int, variant string, counts func(refused string) bool) {
	s.Helper()
	m, n := s.newMatrix(), 0
	for _, i := range rows {
		scope := s.routeOf(i).scope
		refused := slices.DeleteFunc(slices.Clone(keys), func(k *testKey) bool { return !counts(k.refused(scope)) })
		m.keyRow(i, refused, variant)
		for _, k := range refused {
			n++
			if cell := keyCell(i, k, variant); !m.has(cell) {
				s.Errorf("%s: nothing was found in %s", fault, cell)
			}
		}
	}
	if n == 0 {
		s.Errorf("%s: nothing was looked at", fault)
	}
}

func keyCell(row int, k *testKey, variant string) string {
	return fmt.Sprintf("%s\n%s, key: %s", rows[row].text, variant, k.name)
}

// keyRow sends a row under each of the keys, in all variants or the one that is
// named.
func (m *matrix) keyRow(i int, keys []*testKey, only string) {
	scope := m.routeOf(i).scope
	variants := map[string]step{"own": rows[i].fill(m.values(i, all(here)))}
	if len(rows[i].places()) > 0 {
		for _, org := range []string{there, nowhere} {
			variants[org] = rows[i].fill(m.values(i, all(org)))
		}
		malformed := m.values(i, all(here))
		for n, p := range rows[i].places() {
			if notFound[p.kind] != "" {
				malformed[n] = "x"
			}
		}
		variants["malformed"] = rows[i].fill(malformed)
	}
	if strings.HasPrefix(rows[i].text, "POST") {
		wrong := variants[there]
		wrong.headers, wrong.body = []string{"Content-Type: text/plain", "Idempotency-Key: "}, "{"
		variants["wrong"] = wrong
	}
	for variant, q := range variants {
		if only != "" && variant != only {
			continue
		}
		m.sending = new(testKey)
		base := m.ask(q)
		for _, k := range keys {
			want := base
			switch code := k.refused(scope); code {
			case "":
			case "scope_required":
				want = m.refusal(code, scope)
			case "rate_limit_minute":
				want = m.limited()
			default:
				want = m.refusal(code, "")
			}
			q := q
			q.key, q.headers = "nobody", slices.Concat(q.headers, k.headers)
			m.sending = k
			if slices.Contains(k.faults, "rate_limit_minute") {
				m.spent = k.id
			}
			m.cell(keyCell(i, k, variant), q, want, m.ask(q))
			m.spent = id{}
		}
	}
}

// limited is the answer to a key of one request a minute that has just used it.
func (s *street) limited() result {
	want := s.refusal("rate_limit_minute", "")
	want.body = strings.Replace(want.body, "}", fmt.Sprintf(`,"context":{"limit":1,"resetAt":%q,"window":"minute"}}`, instantOf(s.clock.Add(time.Minute))), 1)
	maps.Copy(want.header, http.Header{
		"Ratelimit-Policy": {`"minute";q=1;w=60`}, "Ratelimit": {`"minute";r=0;t=60`}, "X-Ratelimit-Limit": {"1"},
		"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"60"}, "Retry-After": {"60"},
	})
	return want
}

// routeOf is the route that a row leads to.
func (s *street) routeOf(row int) *route {
	q := rows[row].fill(s.values(row, all(here)))
	u, err := url.Parse(q.target)
	s.must(err)
	_, pattern := s.api.mux.Handler(&http.Request{Method: q.method, URL: u})
	return find(s.routes, func(r *route) bool { return r.pattern == pattern })
}

func (s *street) scopeOf(pattern string) string {
	return find(s.routes, func(r *route) bool { return r.pattern == pattern }).scope
}

// A person known elsewhere.

// known are enrolments with contact data of which the other organization, or
// nobody, knows the same.
var known = []string{
	`{"email": "{email}"}`,
	`{"phoneNumber": "{phone}"}`,
	`{"email": "{email}", "phoneNumber": "{phone}"}`,
	`{"email": "{email}", "phoneNumber": "{phone2}"}`, // two persons there
	`{"email": "{email}", "firstName": "Eva", "lastName": "Luz"}`,
	`{"email": "new@example.com", "phoneNumber": "{phone2}", "firstName": "Eva"}`,
	`{"email": "{email}", "phoneNumber": "+525512349999"}`,
	`{"email": "beto@example.com", "phoneNumber": "{phone}"}`, // a customer here, whose phone it becomes
}

// afterwards is all that may be asked of a new customer and could tell.
var afterwards = []string{
	`POST /api/v1/customers
{"email": "{email}"}`,
	`POST /api/v1/customers
{"phoneNumber": "{phone}"}`,
	`GET /api/v1/customers/lookup?email={email}`,
	`GET /api/v1/customers/lookup?phone={phone}`,
	`GET /api/v1/customers/lookup?phone={phone2}`,
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
	`GET /api/v1/rewards?customerId={new}`,
	`GET /api/v1/statistics`,
}

// TestKnownElsewhere enrols somebody whom the other organization knows and
// somebody whom nobody knows. All answers from then on are the same.
func TestKnownElsewhere(t *testing.T) {
	s := newStreet(t)
	s.knownElsewhere().report()
	s.verify()

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
				next := http.Handler(s.api)
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

		// Who is known there is a customer here.
		s.handler = newAPI(s.leaky(), nil, slog.New(slog.DiscardHandler))
		if m := s.knownElsewhere(); !m.has(known[0]+"\nPOST /api/v1/customers", flawStatus) || !m.has(known[0]+"\nPOST /api/v1/customers", flawLeak) {
			t.Error("identities under another's keys: nothing was found")
		}
		s.handler = s.api
	})
}

// leaky is an engine on a store that mixes up whose records are whose.
func (s *street) leaky() *engine {
	return newEngine(leakyStore{s.past}, func() time.Time { return s.clock }, func() seed {
		s.seeds++
		return seed{byte(s.seeds)}
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

// enrolled enrols a customer with contact data of an organization's and asks
// all that may be asked then.
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
		s.seed, s.seeds = text, 0
		got := s.then(q)
		if n == 0 {
			s.must(json.Unmarshal([]byte(got.body), &created))
			text, _, _ = strings.Cut(text, "\n")
		}
		list = append(list, exchanged{q, got, text})
	}
	return list
}

// Mass assignment.

// bases are requests with every field that their routes take.
var bases = []row{
	{text: `POST /api/v1/customers
{"email": "new@example.com", "phoneNumber": "+525512349999", "firstName": "Eva", "lastName": "Luz"}`},
	{text: `POST /api/v1/points/customers/{customer}/add
{"amount": 5, "category": "Campaign", "comment": "c", "loyaltyProgramId": "{club}", "expiresAt": "2027-01-01"}`},
	{text: `POST /api/v1/points/customers/{customer}/deduct
{"amount": 5, "category": "Fee", "comment": "c", "loyaltyProgramId": "{club}"}`},
	{text: `POST /api/v1/transactions
{"customerId": "{customer}", "totalAmount": 20, "type": "Purchase", "items": [{"sku": "A", "price": 10, "quantity": 2}], "externalId": "E", "comment": "c"}`},
	{text: `POST /api/v1/transactions
{"customerId": "{customer}", "totalAmount": 100, "type": "Return", "items": [{"sku": "A", "price": 100, "quantity": 1}], "comment": "c", "originalTransactionId": "{sale}"}`},
	{text: `POST /api/v1/rewards/redeem
{"customerId": "{customer}", "productId": "{espresso}", "comment": "c"}`},
	{text: `POST /api/v1/redemptions/{redemption}/cancel
{}`},
}

// hostile is a value of each field that changes what happens, as JSON.
func (s *street) hostile(field string) string {
	id := func(kind string) string { return strconv.Quote(s.value(here, kind)) }
	values := map[string]string{
		"email": `"h@example.com"`, "phoneNumber": `"+525512348888"`, "firstName": `"H"`, "lastName": `"H"`,
		"amount": `7`, "category": `"Adjustment"`, "comment": `"h"`, "loyaltyProgramId": id("sellos"), "expiresAt": `"2028-01-01"`,
		"customerId": id("solo"), "totalAmount": `7`, "type": `"Return"`, "items": `[{"sku": "H", "price": 1, "quantity": 1}]`,
		"externalId": `"H"`, "originalTransactionId": id("return"), "productId": id("gorra"),
		"sku": `"H"`, "price": `7`, "quantity": `1.5`,
	}
	if values[field] == "" {
		s.Fatalf("no hostile value of %s", field)
	}
	return values[field]
}

// spellings are names that are not the field's, though a loose reader may take
// them for it.
func spellings(field string) []string {
	snake := regexp.MustCompile(`[A-Z]`).ReplaceAllStringFunc(field, func(c string) string { return "_" + strings.ToLower(c) })
	list := []string{
		strings.ToUpper(field), strings.ToLower(field), strings.ToUpper(field[:1]) + field[1:], snake, strings.ReplaceAll(snake, "_", "-"),
		field[:len(field)-1] + strings.ToUpper(field[len(field)-1:]),
		strings.NewReplacer("s", "ſ", "k", "\u212a").Replace(field), // which encoding/json takes for s and k
		" " + field, field + " ", field + "\x00", field + "[]", field + "[0]", "_" + field, "$" + field, "data." + field, "customer[" + field + "]",
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(v string) bool { return v == field })
}

// unasked are names that clients try: all that the API's answers have, and
// what other systems have.
func unasked() []string {
	list := []string{
		"organizationId", "organization_id", "organization", "orgId", "org", "tenantId", "tenant", "slug", "plan", "scopes", "scope", "role", "isAdmin",
		"person", "personId", "userId", "number", "program", "seq", "now", "date", "timestamp", "deletedAt", "expired", "points", "multiplier",
		"earned", "reversed", "cost", "price", "discount", "shortfall", "dry_run", "dryRun", "_id", "_method", "__proto__", "constructor", "prototype",
		"Balance", "BALANCE", "Status", "STATUS", "ID", "Id", "Source", "CreatedAt", "created_at", "OrganizationID",
	}
	var doc apiDoc
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		panic(err)
	}
	for _, schema := range doc.Components.Schemas {
		list = append(list, slices.Collect(maps.Keys(schema.Properties))...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// write spells an object as JSON.
func (o object) write() string {
	var parts []string
	for _, p := range o {
		name, _ := json.Marshal(p.name)
		parts = append(parts, string(name)+":"+p.value)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (o object) without(name string) object {
	return slices.DeleteFunc(slices.Clone(o), func(p pair) bool { return p.name == name })
}

// TestMassAssignment sends what no route takes, and what it takes by names
// that are not its own. Answers and all that is stored stay the same.
func TestMassAssignment(t *testing.T) {
	t.Parallel()
	s := newStreet(t)
	covered := map[string]object{}
	for i := range bases {
		q, members := s.base(i)
		pattern := s.patternOf(q)
		if got := s.ask(q); got.status >= 300 {
			t.Errorf("%s\n%s", bases[i].text, got.body)
		}
		covered[pattern] = append(covered[pattern], members...)
	}
	for _, r := range s.routes {
		if !strings.HasPrefix(r.pattern, "POST") {
			continue
		}
		members, ok := covered[r.pattern]
		if !ok {
			t.Error("no request for ", r.pattern)
		}
		for _, name := range documentedInputs()[r.pattern] {
			if _, ok := members.get(name); !ok && name != "Idempotency-Key" && name != "dryRun" {
				t.Errorf("no request for %s has %s", r.pattern, name)
			}
		}
	}
	s.massAssignment(true, true).report()
	s.otherWays(append(spellings("loyaltyProgramId"), unasked()...)).report()
	s.otherWays(slices.Concat(spellings("customerId"), spellings("search"), spellings("dryRun"))).report()

	t.Run("control", func(t *testing.T) {
		defer func() { s.handler = s.api }()
		// By its own name each field is taken.
		for i := range bases {
			q, members := s.base(i)
			base := s.ask(q)
			for n, p := range members {
				with := slices.Clone(members)
				with[n].value = s.hostile(p.name)
				if strings.Contains(q.body, `"Return"`) && p.name == "type" {
					with[n].value = `"Purchase"`
				}
				q.body = with.write()
				if got := s.ask(q); len(answerFlaws(base, got)) == 0 && len(s.effects(base, got)) == 0 {
					t.Errorf("%s\n%s: its hostile value changes nothing", bases[i].text, p.name)
				}
			}
		}

		// A reader that is loose with names.
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, pattern := s.api.mux.Handler(r)
			if members, fault := parseObject(body); fault == nil {
				body = []byte(loose(members, documentedInputs()[pattern]).write())
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			s.api.ServeHTTP(w, r)
		})
		m := s.massAssignment(true, false)
		for i := range bases {
			_, members := s.base(i)
			for _, p := range members {
				for _, name := range spellings(p.name) {
					loosely := strings.EqualFold(name, p.name) && !(p.name == "type" && strings.Contains(bases[i].text, `"Return"`))
					if cell := massCell(i, "also", name); loosely && !m.has(cell, flawStatus, flawBody, flawStored) {
						t.Errorf("a loose reader: nothing was found in %s", cell)
					}
				}
			}
		}

		// A server that takes what it is given.
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			given, _ := parseObject(body)
			_, pattern := s.api.mux.Handler(r)
			spoilt := httptest.NewRecorder()
			s.api.ServeHTTP(spoilt, r)
			maps.Copy(w.Header(), spoilt.Header())
			w.WriteHeader(spoilt.Code)
			shown, _ := parseObject(spoilt.Body.Bytes())
			for i, p := range shown {
				if value, ok := given.get(p.name); ok && !slices.Contains(documentedInputs()[pattern], p.name) {
					shown[i].value = value
				}
			}
			if _, ok := given.get("organizationId"); ok {
				s.touch(2)
			}
			if _, ok := given.get("points"); ok {
				s.touch(1)
			}
			io.WriteString(w, shown.write()+"\n")
		})
		m = s.massAssignment(false, true)
		for i := range bases {
			q, _ := s.base(i)
			shown, _ := parseObject([]byte(s.ask(q).body))
			for _, p := range shown {
				if cell := massCell(i, "unasked", p.name); !slices.Contains(documentedInputs()[s.patternOf(q)], p.name) && !m.has(cell, flawBody) {
					t.Errorf("a generous server: nothing was found in %s", cell)
				}
			}
			if cell := massCell(i, "unasked", "organizationId"); !m.has(cell, flawOthers) {
				t.Errorf("writing to the other: nothing was found in %s", cell)
			}
			if cell := massCell(i, "unasked", "points"); !m.has(cell, flawStored) {
				t.Errorf("writing to the caller's: nothing was found in %s", cell)
			}
		}

		// A server that takes the organization from a header, or a parameter by
		// any spelling.
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Organization-Id") != "" {
				r.Header.Set("Authorization", "Bearer "+s.names["key."+there])
			}
			r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "CUSTOMERID=", "customerId=", 1)
			s.api.ServeHTTP(w, r)
		})
		m = s.otherWays(spellings("customerId"))
		for _, r := range s.routes {
			if r.scope != "" && !m.has(r.pattern+", X-Organization-Id") {
				t.Errorf("another's number: nothing was found in %s", r.pattern)
			}
		}
		if !m.has("GET /api/v1/transactions, CUSTOMERID") || !m.has("GET /api/v1/rewards, CUSTOMERID") {
			t.Error("a loose reader of parameters: nothing was found")
		}
	})
}

func (s *street) patternOf(q step) string {
	u, err := url.Parse(q.target)
	s.must(err)
	_, pattern := s.api.mux.Handler(&http.Request{Method: q.method, URL: u})
	return pattern
}

// base is a request of bases and the members of its body.
func (s *street) base(i int) (step, object) {
	var values []string
	for _, p := range bases[i].places() {
		values = append(values, s.value(here, p.kind))
	}
	q := bases[i].fill(values)
	members, fault := parseObject([]byte(q.body))
	if fault != nil {
		s.Fatalf("%s is no object", q.body)
	}
	return q, members
}

func massCell(base int, how, name string) string {
	return fmt.Sprintf("%s\n%s %q", bases[base].text, how, name)
}

// effects are the entries in which what two requests have stored differs, but
// for what a retry is known by.
func (s *street) effects(a, b result) []Entry {
	return slices.DeleteFunc(changed(a.state, b.state), func(e Entry) bool { return e.Key[0] == 'i' || e.Key[0] == 'I' })
}

// massAssignment sends each base with names that it does not take: those like
// its own, and all others.
func (s *street) massAssignment(alike, others bool) *matrix {
	m := s.newMatrix()
	for i := range bases {
		q, members := m.base(i)
		send := func(o object) result {
			q.body = o.write()
			return m.ask(q)
		}
		check := func(name string, want, got result) {
			m.cells++
			m.note(name, want, got, answerFlaws(want, got)...)
			if effects := m.effects(want, got); slices.ContainsFunc(effects, m.isOthers) {
				m.note(name, want, got, flawOthers)
			} else if len(effects) > 0 {
				m.note(name, want, got, flawStored)
			}
		}
		base := send(members)
		for n, p := range members {
			if !alike {
				break
			}
			without := send(members.without(p.name))
			for _, name := range spellings(p.name) {
				other := pair{name, m.hostile(p.name)}
				check(massCell(i, "also", name), base, send(append(slices.Clone(members), other)))
				check(massCell(i, "before", name), base, send(append(object{other}, members...)))
				check(massCell(i, "instead", name), without, send(slices.Insert(members.without(p.name), n, other)))
			}
			if p.name == "items" {
				m.massItems(i, members, base, check, send)
			}
		}
		if !others {
			continue
		}
		inputs := documentedInputs()[m.patternOf(q)]
		everything := slices.Clone(members)
		for _, name := range unasked() {
			if _, ok := members.get(name); ok || slices.Contains(inputs, name) && name != "dryRun" {
				continue
			}
			for _, value := range []string{"999999", strconv.Quote(m.value(there, "customer")), `{"id": [true]}`} {
				check(massCell(i, "unasked", name), base, send(append(slices.Clone(members), pair{name, value})))
			}
			everything = append(everything, pair{name, "999999"})
		}
		check(massCell(i, "all that is", "unasked"), base, send(everything))
	}
	return m
}

// massItems does the same inside the items of a sale.
func (m *matrix) massItems(i int, members object, base result, check func(string, result, result), send func(object) result) {
	items, _ := members.get("items")
	inner, _ := parseObject([]byte(items[1 : len(items)-1]))
	with := func(o object) object {
		other := slices.Clone(members)
		at := slices.IndexFunc(other, func(p pair) bool { return p.name == "items" })
		other[at].value = "[" + o.write() + "]"
		return other
	}
	for _, p := range inner {
		without := send(with(inner.without(p.name)))
		for _, name := range spellings(p.name) {
			other := pair{name, m.hostile(p.name)}
			check(massCell(i, "in items also", name), base, send(with(append(slices.Clone(inner), other))))
			check(massCell(i, "in items instead", name), without, send(with(append(inner.without(p.name), other))))
		}
	}
	for _, name := range []string{"id", "points", "returned", "discount", "total", "amount", "customerId"} {
		check(massCell(i, "in items", name), base, send(with(append(slices.Clone(inner), pair{name, "999"}))))
	}
}

// loose gives members the names of fields that they are like, as encoding/json
// does: the last one wins.
func loose(members object, fields []string) (read object) {
	for _, p := range members {
		for _, field := range fields {
			if strings.EqualFold(p.name, field) {
				p.name = field
			}
		}
		read = append(read.without(p.name), p)
	}
	return read
}

// otherWays sends parameters that no route takes, by their names, and headers.
func (s *street) otherWays(parameters []string) *matrix {
	m := s.newMatrix()
	seen := map[string]bool{}
	for i := range rows {
		r := s.routeOf(i)
		if seen[r.pattern] || rows[i].want >= 300 {
			continue
		}
		seen[r.pattern] = true
		q := rows[i].fill(s.values(i, all(here)))
		q.headers = nil // no Idempotency-Key: it would make the target part of what is stored
		base := s.ask(q)
		check := func(name string, q step) {
			m.cells++
			got := m.ask(q)
			name = r.pattern + ", " + name
			m.note(name, base, got, answerFlaws(base, got)...)
			if len(changed(base.state, got.state)) > 0 {
				m.note(name, base, got, flawStored)
			}
		}
		for _, name := range parameters {
			if slices.Contains(documentedInputs()[r.pattern], name) && (q.method == "GET" || name == "dryRun") || r.scope == "" {
				continue
			}
			other := q
			separator := "?"
			if strings.Contains(q.target, "?") {
				separator = "&"
			}
			other.target += separator + url.QueryEscape(name) + "=" + m.value(there, "customer")
			check(name, other)
		}
		for name, value := range map[string]string{
			"X-Organization-Id": m.names[there], "X-Organization": there, "X-Org-Id": "2", "X-Tenant-Id": m.names[there], "Organization": there,
			"X-Forwarded-Host": there + ".example.com", "X-Forwarded-User": there, "X-Original-Url": "/api/v1/customers/" + m.value(there, "customer"),
			"X-Rewrite-Url": "/api/v1/customers/" + m.value(there, "customer"), "X-Http-Method-Override": "GET", "X-Method-Override": "DELETE",
			"X-Customer-Id": m.value(there, "customer"), "Cookie": "org=" + there + "; key=" + m.names["key."+there], "Forwarded": "host=" + there,
			"X-User-Id": m.value(there, "customer"), "X-Scopes": "admin", "Origin": "https://" + there + ".example.com",
		} {
			other := q
			other.headers = []string{name + ": " + value}
			check(name, other)
		}
	}
	return m
}
