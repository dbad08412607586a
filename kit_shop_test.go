package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sello/internal/disk/disktest"
	"sello/internal/ordered/orderedtest"
	"sello/internal/processtest"
)

// What most tests share: a shop and its API.

// Helpers of the tests of the libraries, under short names.
var (
	histories     = orderedtest.Histories
	moreHistories = orderedtest.MoreHistories
	repeats       = orderedtest.Rounds
	sized         = orderedtest.Sized
	mustPut       = orderedtest.MustPut[Tx]
	contents      = orderedtest.Contents
	stored        = orderedtest.Stored[Tx]
	checkContents = orderedtest.CheckContents[Tx]
	readFile      = disktest.ReadFile
	writeFile     = disktest.WriteFile
	listDir       = disktest.ListDir
)

// A shop is an engine on a store in memory, with one organization and a clock that the
// test sets. When the test ends, the whole store is verified.
type shop struct {
	testing.TB
	engine *engine
	org    uint32
	clock  instant
	ids    atomic.Uint64 // counts seeds, so that no two are equal
}

// bareTestTxn returns a transaction of an organization outside any shop.
func bareTestTxn(tx Tx, org uint32) *txn { return bareTxn(tx, org, newMint(0, seed{}), creator{}) }

// A setup describes the organization of a shop.
type setup struct {
	zone    string // America/Mexico_City if it is empty
	at      string // when the shop opens, like 2026-03-02T10:00:00Z, which is a Monday
	program string // members of the program's document, beside its key and name
	also    string // members of the document beside organization and programs

	settings string // members of the organization's settings, beside those that are required
}

// document returns the setup as a document for `sello apply`.
func (s setup) document() []byte {
	zone := s.zone
	if zone == "" {
		zone = "America/Mexico_City"
	}
	for _, part := range []*string{&s.program, &s.also, &s.settings} {
		if *part != "" {
			*part = "," + *part
		}
	}
	return fmt.Appendf(nil, `{"organization":{"slug":"cafe-luna","name":"Café Luna","plan":{"name":"Pro","apiAccess":true},
		"profile":{"country":"MX"},"settings":{"timezone":%q,"currency":"MXN"%s}},
		"programs":[{"key":"club","name":"Club Luna"%s}]%s}`, zone, s.settings, s.program, s.also)
}

func newShop(t testing.TB, with setup) *shop {
	t.Helper()
	if with.at == "" {
		with.at = "2026-03-02T10:00:00Z"
	}
	s := newEmptyShop(t, with.at)
	s.apply(with.document())
	t.Cleanup(s.verified)
	return s
}

// newEmptyShop returns a shop without an organization.
func newEmptyShop(t testing.TB, at string) *shop {
	store := runTwice(newMemStore()) // finds an Update that does something else when run again
	t.Cleanup(func() { store.Close() })
	return newShopOn(t, store, at)
}

// newShopOn returns a shop on a store, with the organization that the store has, if any.
func newShopOn(t testing.TB, store Store, at string) *shop {
	s := &shop{TB: t, org: 1}
	s.setClock(at)
	s.engine = newEngine(store, func() time.Time { return s.clock.time() }, func() seed {
		var random seed
		binary.BigEndian.PutUint64(random[:], s.ids.Add(1))
		return random
	})
	s.ok(s.engine.open(s.Context()))
	return s
}

// newServers returns one shop twice: on two servers that share a database.
func newServers(t testing.TB, with setup) [2]*shop {
	t.Helper()
	if with.at == "" {
		with.at = "2026-03-02T10:00:00Z"
	}
	var shops [2]*shop
	for i, store := range newSharedMem(2) {
		t.Cleanup(func() { store.Close() })
		shops[i] = newShopOn(t, store, with.at)
		shops[i].ids.Add(uint64(i) << 32) // other ids than the other's
		if i == 0 {
			shops[i].apply(with.document())
		}
		t.Cleanup(shops[i].verified)
	}
	return shops
}

// ok ends the test if err is not nil.
func (s *shop) ok(err error) {
	if err != nil {
		s.Helper()
		s.Fatal(err)
	}
}

// want ends the test unless err has the code; "" stands for no error.
func (s *shop) want(err error, code string) {
	s.Helper()
	if got := codeOf(err); got != code {
		s.Fatalf("got %q (%v), want %q", got, err, code)
	}
}

// codeOf returns the code of an apiError, and the text of any other error.
func codeOf(err error) string {
	var e *apiError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.code.name
	}
	return err.Error()
}

// setClock sets the clock to a moment in RFC 3339.
func (s *shop) setClock(at string) {
	t, err := time.Parse(time.RFC3339, at)
	s.ok(err)
	s.clock = instantOf(t)
}

func (s *shop) pass(d time.Duration) { s.clock = s.clock.add(d) }

const oneDay = 24 * time.Hour

func (s *shop) admin() *admin {
	return &admin{engine: s.engine, flush: func(context.Context) error { return nil }}
}

func (s *shop) apply(document []byte) *applied {
	s.Helper()
	done, err := s.admin().apply(s.Context(), applyRequest{Document: document})
	s.ok(err)
	return done
}

// do runs fn in a writing transaction of the organization, ask in a reading one.

func do[T any](s *shop, fn func(*txn) (T, error)) (T, error) {
	return write(s.Context(), s.engine, s.org, s.clock, fn)
}

func ask[T any](s *shop, fn func(*txn) (T, error)) T {
	s.Helper()
	v, err := read(s.Context(), s.engine, s.org, s.clock, fn)
	s.ok(err)
	return v
}

// must is do for an fn that has to succeed.
func must[T any](s *shop, fn func(*txn) (T, error)) T {
	s.Helper()
	v, err := do(s, fn)
	s.ok(err)
	return v
}

// swept runs the sweep, which writes down what is due.
func (s *shop) swept() {
	s.Helper()
	s.ok(s.engine.sweep(s.Context()))
}

// verified fails the test if `sello verify` would report a problem.
func (s *shop) verified() {
	s.Helper()
	report, err := s.verify()
	s.ok(err)
	for _, p := range report.Problems {
		s.Error("verify: " + p)
	}
	faults, err := viewStore(context.Background(), s.engine.store, func(tx Tx) ([]string, error) { return s.told(tx, s.org) })
	s.ok(err)
	for _, f := range faults {
		s.Error("events: " + f)
	}
}

func (s *shop) verify() (*verification, error) {
	return viewStore(context.Background(), s.engine.store, func(tx Tx) (*verification, error) { return verifyWith(s.engine.sizes, tx, s.clock, nil) })
}

// customer enrols a customer with a name.
func (s *shop) customer(name string) id {
	s.Helper()
	return must(s, func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{FirstName: name, Email: name + "@example.com"})
		if err != nil {
			return id{}, err
		}
		return c.ID, nil
	})
}

// A standing is the state of a customer's account in its program.
type standing struct {
	Balance, Pending, Lifetime decimal
	Held                       decimal
	Expiring                   []expiring
	Figure                     decimal // the one that decides the tier
	Tier                       string
}

func (s *shop) standing(cust id) standing {
	s.Helper()
	listed := ask(s, func(t *txn) (customerItem, error) {
		items, err := newCustomerItems(t, []id{cust, cust})
		if err != nil {
			return customerItem{}, err
		}
		return items[1], nil
	})
	now := ask(s, func(t *txn) (standing, error) {
		_, a, err := accountOf(t, cust)
		if err != nil {
			return standing{}, err
		}
		list, err := t.points.expiring(a)
		current, _ := a.tier()
		return standing{a.Balance, a.Pending, a.Lifetime, a.held(), list, a.figure(), current.name()}, err
	})
	if !reflect.DeepEqual(listed.TierName, orNull(now.Tier)) {
		s.Errorf("the list has another tier than %q", now.Tier)
	}
	return now
}

// accountOf returns a customer with its account in its own program.
func accountOf(t *txn, cust id) (*customer, *account, error) {
	c, err := t.customers.get(cust)
	if err != nil {
		return nil, nil, err
	}
	a, err := t.points.account(c, t.cfg.programNumber(c.Program))
	return c, a, err
}

// wantStanding compares a customer's standing with figures: "balance pending lifetime".
func (s *shop) wantStanding(cust id, figures, reason string) {
	s.Helper()
	now := s.standing(cust)
	if got := fmt.Sprint(now.Balance, " ", now.Pending, " ", now.Lifetime); got != figures {
		s.Fatalf("balance, pending, lifetime are %s, want %s: %s", got, figures, reason)
	}
}

func (s *shop) wantTier(cust id, name, reason string) {
	s.Helper()
	if got := s.standing(cust).Tier; got != name {
		s.Fatalf("tier is %q, want %q: %s", got, name, reason)
	}
}

// add and deduct change the customer's points.

func (s *shop) add(cust id, amount string, expires instant) {
	s.Helper()
	_, err := s.move(cust, &movement{Amount: dec(amount), Category: categoryBonus, Expires: expires})
	s.ok(err)
}

func (s *shop) deduct(cust id, amount string) (movementShape, error) {
	return s.move(cust, &movement{Amount: -dec(amount), Category: categoryAdjustment})
}

// move credits m, or debits it if its amount is below zero, in the customer's
// own program.
func (s *shop) move(cust id, m *movement) (movementShape, error) {
	return do(s, func(t *txn) (movementShape, error) {
		given, move := *m, t.points.credit
		if m.Amount < 0 {
			given.Amount, move = -m.Amount, t.points.debit
		}
		c, err := t.customers.get(cust)
		if err != nil {
			return movementShape{}, err
		}
		shape, err := movePoints(t, cust, &t.cfg.programNumber(c.Program).ID, &given, move)
		if err != nil {
			return movementShape{}, err
		}
		return shape, nil
	})
}

// hold sets points aside.
func (s *shop) hold(cust id, amount string, seconds int, comment string) id {
	s.Helper()
	return must(s, func(t *txn) (id, error) {
		h, err := t.points.place(newHold{Customer: cust, Amount: dec(amount), Seconds: seconds, Comment: comment})
		if err != nil {
			return id{}, err
		}
		return h.ID, nil
	})
}

// sell registers a sale: a purchase, unless in.Type says that it is a return.
func (s *shop) sell(in newSale) (*sale, error) {
	if in.Type == "" {
		in.Type = typePurchase
	}
	return do(s, func(t *txn) (*sale, error) {
		sold, _, err := t.sales.register(in)
		return sold, err
	})
}

func (s *shop) buy(cust id, total string, items ...item) *sale {
	s.Helper()
	sold, err := s.sell(newSale{Customer: cust, Total: dec(total), Items: items})
	s.ok(err)
	return sold
}

// bring returns a part of a purchase, worth total.
func (s *shop) bring(purchase *sale, total string, items ...item) *sale {
	s.Helper()
	brought, err := s.tryBring(purchase, total, items...)
	s.ok(err)
	return brought
}

func (s *shop) tryBring(purchase *sale, total string, items ...item) (*sale, error) {
	return s.sell(newSale{Type: typeReturn, Customer: purchase.Customer, Total: dec(total), Original: &purchase.ID, Items: items})
}

// ledger lists the customer's movements, oldest first.
func (s *shop) ledger(cust id) []*movement {
	s.Helper()
	list := ask(s, func(t *txn) ([]*movement, error) {
		c, err := t.customers.get(cust)
		if err != nil {
			return nil, err
		}
		list, _, err := t.points.listMovements(c, t.cfg.programNumber(c.Program), page{1, 1 << 20}, nil)
		return list, err
	})
	slices.Reverse(list)
	return list
}

// dec parses a decimal.
func dec(s string) decimal {
	d, err := parseDecimal(s)
	if err != nil {
		panic(err)
	}
	return d
}

func ptr[T any](v T) *T { return &v }

// newAPIOf returns the API of an engine, without a log.
func newAPIOf(e *engine) *api { return newAPI(e, nil, slog.New(slog.DiscardHandler)) }

// A servedShop is a shop with its API and a key for it.
type servedShop struct {
	shop *shop
	api  *api
	key  string
}

func (s *shop) served() *servedShop {
	s.Helper()
	_, key := s.newKey(keyRequest{RateLimit: 10_000})
	return &servedShop{s, newAPIOf(s.engine), key}
}

func (s *servedShop) get(path string) *httptest.ResponseRecorder {
	return answerTo(s.api, newRequest("GET", path, s.key, ""))
}

func (s *servedShop) post(path, retryKey, body string) *httptest.ResponseRecorder {
	return answerTo(s.api, newPost(path, s.key, retryKey, body))
}

// newRequest returns a request with an API key and a JSON body. Either is left out if it
// is "".
func newRequest(method, target, key, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if key != "" {
		r.Header.Set("X-API-Key", key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// newPost returns a POST with an Idempotency-Key, unless that is "".
func newPost(target, key, retryKey, body string) *http.Request {
	r := newRequest("POST", target, key, body)
	if retryKey != "" {
		r.Header.Set("Idempotency-Key", retryKey)
	}
	return r
}

// answerTo returns a handler's answer to a request.
func answerTo(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// skipShort skips a test that takes long if -short is set.
func skipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short")
	}
}

// skipQuick is skipShort for a test that the race detector has to see: .ci/run gives it -short too.
func skipQuick(t testing.TB) {
	t.Helper()
	if !processtest.RaceDetector {
		skipShort(t)
	}
}

// skipRace skips a test of one goroutine that takes long with the race detector, which has
// nothing to see there.
func skipRace(t testing.TB) {
	t.Helper()
	if processtest.RaceDetector {
		t.Skip("one goroutine: not with -race")
	}
}

// skipUsual skips what only the long form does: controls, which break the server on purpose to
// see that a test would notice.
func skipUsual(t testing.TB) {
	t.Helper()
	if !orderedtest.Long() {
		t.Skip("only with SELLO_TEST_LONG=1")
	}
}

// pick returns one of the choices at random.
func pick[T any](rnd *rand.Rand, choices ...T) T { return choices[rnd.IntN(len(choices))] }

// same ends the test if two values differ. what names them.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: (-got +want)\n%s", what, cmp.Diff(got, want))
	}
}

// entries returns all entries of the shop's store, in order.
func (s *shop) entries() memTx {
	all, err := viewStore(s.Context(), s.engine.store, func(tx Tx) (memTx, error) {
		var all memTx
		for e, err := range tx.Scan([]byte{0}, nil, false) {
			if err != nil {
				return nil, err
			}
			all = append(all, Entry{Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value)})
		}
		return all, nil
	})
	s.ok(err)
	return all
}

// newKey makes an API key and returns its text.
func (s *shop) newKey(in keyRequest) (*apiKey, string) {
	s.Helper()
	in.Name = "test"
	type created struct {
		key  *apiKey
		text string
	}
	c := must(s, func(t *txn) (created, error) {
		k, text, err := t.keys.create(in)
		return created{k, text}, err
	})
	return c.key, c.text
}

func from(source netip.Addr) func() netip.Addr { return func() netip.Addr { return source } }

// wantOneApplied sends a request n times at once. One is applied, with 201. The others
// are replays of its answer, with the status again.
func wantOneApplied(t *testing.T, n, again int, send func() *httptest.ResponseRecorder) {
	t.Helper()
	answers := make([]*httptest.ResponseRecorder, n)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() { answers[i] = send() })
	}
	wait.Wait()
	first := 0
	for _, answer := range answers {
		want := again
		if !replayed(answer) {
			first++
			want = http.StatusCreated
		}
		if answer.Code != want || answer.Body.String() != answers[0].Body.String() {
			t.Errorf("got %d %s", answer.Code, answer.Body)
		}
	}
	if first != 1 {
		t.Errorf("%d of %d twins were carried out", first, n)
	}
}

func replayed(w *httptest.ResponseRecorder) bool {
	return w.Header().Get("Idempotency-Replayed") == "true"
}

// discard is a ResponseWriter that drops the body.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// newEngine makes an engine that takes the time from the function now and trusts it.
func newEngine(s Store, now func() time.Time, newSeed func() seed) *engine {
	return newEngineBy(heldClock(now), s, newSeed)
}

var (
	fixedHeaders  = map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"}
	shownHeaders  = []string{"Allow", "ETag", "Idempotency-Replayed", "Preference-Applied", "Retry-After", "WWW-Authenticate"}
	limitHeaders  = []string{"RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	madeRequestID = regexp.MustCompile(`^[A-Z2-7]{26}$`)
	// Errors of requests that are refused before they count against a limit.
	beforeLimits = []string{
		"bad_request", "expectation_failed", "headers_too_large", "https_required", "route_not_found", "method_not_allowed",
		"api_key_required", "api_key_invalid", "api_key_expired", "plan_without_api", "ip_not_allowed", "rate_limit_source",
	}
)

// faultsOf returns what is wrong with a response by the rules that hold for
// every response.
func faultsOf(s step, res *http.Response, body []byte, requestID string) (faults []string) {
	require := func(ok bool, fault string) {
		if !ok {
			faults = append(faults, fault)
		}
	}
	if slices.Contains(preparedTargets, s.target) && res.StatusCode == http.StatusOK { // TestReference looks at these
		return nil
	}
	known := http.Header{"Content-Length": nil, "Date": nil, "X-Request-Id": nil}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(fixedHeaders)), shownHeaders, limitHeaders) {
		known[http.CanonicalHeaderKey(name)] = nil
	}
	for name, values := range res.Header {
		_, ok := known[name]
		require(ok && len(values) == 1, "a header too many")
	}
	for name, value := range fixedHeaders {
		require(res.Header.Get(name) == value, name)
	}
	require((res.Header.Get("WWW-Authenticate") == "Bearer") == (res.StatusCode == http.StatusUnauthorized), "WWW-Authenticate")
	id := res.Header.Get("X-Request-Id")
	require(id == requestID || madeRequestID.MatchString(id), "X-Request-Id")
	if s.method == "HEAD" {
		require(len(body) == 0 && res.ContentLength > 0, "length")
		return faults
	}
	var compact bytes.Buffer
	json.Compact(&compact, body)
	require(res.ContentLength == int64(len(body)), "Content-Length")
	require(string(body) == compact.String()+"\n", "not compact JSON and a newline")
	var e errorBody
	if res.StatusCode >= 400 {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		require(d.Decode(&e) == nil && e.StatusCode == res.StatusCode && e.RequestID == id && e.Message != "", "error body")
	}
	if !slices.Contains([]string{"internal", "unavailable"}, e.Code) {
		limited := strings.Contains(s.target, "/api/") && !slices.Contains(preparedTargets, s.target) && !slices.Contains(beforeLimits, e.Code)
		require(limited == (res.Header.Get("RateLimit") != ""), "RateLimit")
	}
	return faults
}

// preparedTargets are answered with what was prepared before (request_reference.go).
var preparedTargets = []string{"/api/v1/openapi.json", "/docs"}

// An outcome is a response in which names replace the values they stand for.
type outcome struct {
	status  int
	headers []string // as lines
	body    string   // compact
}

func (w *world) outcome(res *http.Response, body []byte) outcome {
	o := outcome{status: res.StatusCode}
	shown := shownHeaders
	if w.showLimits {
		shown = slices.Concat(shownHeaders, limitHeaders)
	}
	for _, name := range shown {
		if value := res.Header.Get(name); value != "" {
			o.headers = append(o.headers, name+": "+value)
		}
	}
	if res.Close {
		o.headers = append(o.headers, "Connection: close")
	}
	// If two names have the same value, the first in alphabetical order replaces it.
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(w.names)) {
		pairs = append(pairs, w.names[name], "$"+name)
	}
	if id := res.Header.Get("X-Request-Id"); madeRequestID.MatchString(id) {
		o.headers = append(o.headers, "X-Request-Id: <new>")
		pairs = append(pairs, id, "<new>")
	}
	o.body = strings.NewReplacer(pairs...).Replace(strings.TrimSpace(string(body)))
	return o
}

// text returns the response as a step shows it.
func (o outcome) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "=> %d\n", o.status)
	for _, line := range o.headers {
		b.WriteString(line + "\n")
	}
	layout(&b, o.body, "")
	return strings.TrimSpace(b.String())
}

// row returns the response as a row of a table shows it, without WWW-Authenticate:
// it follows from the status, which faultsOf checks.
func (o outcome) row() string {
	words, rest := []string{strconv.Itoa(o.status)}, []string{o.body}
	if o.status >= 400 && o.body != "" {
		var e struct {
			errorBody
			Context json.RawMessage `json:"context"`
		}
		json.Unmarshal([]byte(o.body), &e)
		words, rest = append(words, e.Code), []string{e.Message}
		if e.Field != "" {
			words = append(words, "field="+e.Field)
		}
		if e.Context != nil {
			rest = append(rest, string(e.Context))
		}
	}
	for _, line := range o.headers {
		switch name, value, _ := strings.Cut(line, ": "); name {
		case "WWW-Authenticate":
		case "Connection":
			words = append(words, "close")
		case "X-Request-Id":
			words = append(words, "id=new")
		default:
			words = append(words, strings.ToLower(name)+"="+strings.ReplaceAll(value, " ", ""))
		}
	}
	return strings.TrimSuffix(strings.Join(slices.Concat([]string{strings.Join(words, " ")}, rest), " | "), " | ")
}

// shown removes from a success the members that no directive asks for.
func (w *world) shown(o outcome) outcome {
	if w.members == nil || w.whole || o.status >= 300 || o.body == "" {
		return o
	}
	o.body, _ = part(o.body, func(name string) bool {
		_, always := w.members[name]
		_, also := w.also[name]
		if always {
			w.members[name] = true
		}
		if also {
			w.also[name] = true
		}
		return always || also
	})
	return o
}

// part keeps only the named members of compact JSON and the members that contain one.
// createdBy and programs have member names in common with the objects around them, so they
// are kept only if they are named themselves; data is always kept. part reports whether any member is left.
func part(value string, named func(string) bool) (left string, found bool) {
	var kept []string
	switch value[0] {
	case '{':
		all := true
		for _, member := range elements(value) {
			name, inner, _ := strings.Cut(member[1:], `":`)
			if named(name) {
				kept, found = append(kept, member), true
			} else if inner, ok := part(inner, named); name != "createdBy" && name != "programs" && ok || name == "data" {
				kept, found = append(kept, `"`+name+`":`+inner), true
			} else {
				all = false
			}
		}
		if !all {
			kept = append(kept, "…")
		}
		return "{" + strings.Join(kept, ",") + "}", found
	case '[':
		for _, element := range elements(value) {
			inner, ok := part(element, named)
			kept, found = append(kept, inner), found || ok
		}
		return "[" + strings.Join(kept, ",") + "]", found
	}
	return value, false
}

// layout formats compact JSON for reading: a value that fits on the line stays as it
// is; any other has each of its members on its own line.
func layout(b *strings.Builder, value, indent string) {
	const width = 150
	if len(indent)+len(value) <= width || !strings.ContainsAny(value[:1], "{[") {
		b.WriteString(value)
		return
	}
	b.WriteString(value[:1])
	for i, element := range elements(value) {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n" + indent + "  ")
		if end := strings.Index(element, `":`) + 2; value[0] == '{' && element[0] == '"' {
			b.WriteString(element[:end] + " ")
			element = element[end:]
		}
		layout(b, element, indent+"  ")
	}
	b.WriteString("\n" + indent + value[len(value)-1:])
}

// elements returns the members of an object or the elements of a list as compact JSON.
func elements(value string) (list []string) {
	depth, start, quoted := 0, 1, false
	for i := 1; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			if start < i {
				list = append(list, value[start:i])
			}
			start = i + 1
		}
	}
	return list
}
