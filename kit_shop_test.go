package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
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
