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
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	sent    int          // requests
	spent   id           // the API key whose minute is used up
	first   seed         // of unknown ids
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
	var next memTx
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
	return newMint(instantOf(s.clock), s.first).id().derive(kind).String()
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
}

// ask sends a request to the street as it began.
func (s *street) ask(q step) result {
	s.past.state.Store(&s.begin)
	s.seed, s.seeds = "ask", 0
	return s.then(q)
}

// then sends a request to the street as it is, with all limits fresh.
func (s *street) then(q step) result {
	s.sent++
	s.api.limiter = newLimiter()
	if s.spent != (id{}) {
		s.must(s.api.limiter.take(s.Context(), s.past, &apiKey{ID: s.spent, RateLimit: 1}, instantOf(s.clock), new(allowance)))
	}
	q.key = cmp.Or(q.key, here)
	if s.wire {
		res, body := s.world.send(q)
		res.Header.Del("Date") // net/http's own, by the wall clock
		return result{res.StatusCode, res.Header, string(body), *s.past.state.Load()}
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
	return result{w.Code, header, w.Body.String(), *s.past.state.Load()}
}

// owner is whose an entry of the store is; 0 for what all share. It fails for
// a table that model.go does not draw.
func owner(e Entry) (uint32, error) {
	k := e.Key
	switch k[0] {
	case 'v', 'u': // usage is written by the limiter, for none of these requests
		return 0, nil
	case 'o':
		switch k[1] {
		case 'c':
			return binary.BigEndian.Uint32(k[2:]), nil
		case 's':
			return uint32(uintIn(e.Value)), nil
		}
		return 0, nil
	case 'a':
		key, err := parseAPIKey(e.Value)
		if err != nil {
			return 0, err
		}
		return key.Org, nil
	case 'd':
		return binary.BigEndian.Uint32(k[9:]), nil
	case 'p':
		return binary.BigEndian.Uint32(k[len(k)-4:]), nil
	}
	if !strings.ContainsRune("cmtriIqknlTRwxsghejfyzb", rune(k[0])) {
		return 0, fmt.Errorf("table %q: whose is it?", k[0])
	}
	return binary.BigEndian.Uint32(k[1:]), nil
}

// others are the entries that do not belong to who asks.
func (s *street) others(state memTx) (list memTx) {
	for _, e := range state {
		org, err := owner(e)
		s.must(err)
		if org != 1 {
			list = append(list, e)
		}
	}
	return list
}

func sameEntries(a, b memTx) bool {
	return slices.EqualFunc(a, b, func(a, b Entry) bool { return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) })
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
	if !sameEntries(m.begin, got.state) {
		if got.status >= 300 || q.method != "POST" || strings.Contains(q.target, "dryRun=true") {
			m.note(name, want, got, flawStored)
		}
		if !sameEntries(m.others(m.begin), m.others(got.state)) {
			m.note(name, want, got, flawOthers)
		}
	}
	if m.leaks(q, got) {
		m.note(name, want, got, flawLeak)
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
	m.Logf("%d cells, %d requests", m.cells, m.sent)
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
	for _, in := range documentedInputs(pattern) {
		if in == "email" || in == "phone" || in == "phoneNumber" || in == "search" || in == "Idempotency-Key" || strings.HasSuffix(in, "Id") {
			list = append(list, in)
		}
	}
	return list
}

// documentedInputs are all parameters, but those of the path, and fields.
func documentedInputs(pattern string) (list []string) {
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
	method, path, _ := strings.Cut(pattern, " ")
	op := doc.Paths[path][strings.ToLower(method)]
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
	return append(list, slices.Sorted(maps.Keys(schema.Properties))...)
}

// TestForeignIDs asks for what is the other organization's, unknown and
// malformed, in every place of every row, one at a time and all at once.
func TestForeignIDs(t *testing.T) {
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
		leaky := newEngine(leakyStore{s.past}, func() time.Time { return s.clock }, func() seed { return seed{1} })
		s.handler = newAPI(leaky, nil, slog.New(slog.DiscardHandler))
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
	m.cell(r.text+method+": own", q, own, own)
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
		m.cell(name(nowhere), q, want, unknown)

		q, foreign := ask(only(n, there))
		if code == "" {
			foreign = m.renamed(foreign, p.kind)
		}
		m.cell(name(there), q, want, foreign)
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
			m.cell(name(there+"'s "+kind), q, want, got)
			if code != theirs {
				q, got = with(m.value(here, kind))
				m.cell(name("own "+kind), q, want, got)
			}
		}
		flipped, _ := parseID(m.value(there, p.kind))
		for bit := range 128 {
			other := flipped
			other[bit/8] ^= 1 << (bit % 8)
			q, got := with(other.String())
			m.cell(name(fmt.Sprint("bit ", bit)), q, want, got)
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
				m.cell(name(org+", "+bad.name), q, want, got)
			}
		}
	}
	if len(places) == 0 {
		return
	}
	name := r.text + method + ": all "
	q, unknown := ask(all(nowhere))
	m.cell(name+nowhere, q, unknown, unknown)
	if !r.fields && slices.ContainsFunc(places, func(p place) bool { return notFound[p.kind] != "" }) && unknown.status != http.StatusNotFound {
		m.note(name+nowhere, result{status: http.StatusNotFound}, unknown, flawStatus)
	}
	q, foreign := ask(all(there))
	for _, p := range places {
		if notFound[p.kind] == "" {
			foreign = m.renamed(foreign, p.kind)
		}
	}
	m.cell(name+there, q, unknown, foreign)
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

var _ = path.Clean
var _ netip.Addr
