package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestCreateKey shows what keys cannot be.
func TestCreateKey(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	for _, test := range []struct {
		reason string
		in     keyRequest
		field  string // at fault; "": none
	}{
		{"a name is enough", keyRequest{Name: "POS"}, ""},
		{"every scope", keyRequest{Name: "POS", Scopes: scopes}, ""},
		{"limits and whitelist", keyRequest{Name: "POS", RateLimit: 1, DailyLimit: 1, MonthlyLimit: 1, IPWhitelist: []string{"10.0.0.0/8", "::1"}}, ""},
		{"a date that is not over", keyRequest{Name: "POS", Expires: "2026-03-02"}, ""},
		{"no name", keyRequest{}, "name"},
		{"a name of spaces", keyRequest{Name: "  "}, "name"},
		{"a name too long", keyRequest{Name: strings.Repeat("x", 101)}, "name"},
		{"a scope that is none", keyRequest{Name: "POS", Scopes: []string{"points:read", "points:all"}}, "scopes"},
		{"a limit below zero", keyRequest{Name: "POS", RateLimit: -1}, "rateLimit"},
		{"a daily limit below zero", keyRequest{Name: "POS", DailyLimit: -1}, "dailyLimit"},
		{"a monthly limit below zero", keyRequest{Name: "POS", MonthlyLimit: -1}, "monthlyLimit"},
		{"an address that is none", keyRequest{Name: "POS", IPWhitelist: []string{"10.0.0.0/8", "10.0.0"}}, "ipWhitelist"},
		{"a date that is over", keyRequest{Name: "POS", Expires: "2026-03-01"}, "expires"},
		{"now", keyRequest{Name: "POS", Expires: "2026-03-02T10:00:00Z"}, "expires"},
		{"a date that is none", keyRequest{Name: "POS", Expires: "soon"}, "expires"},
		{"a purse", keyRequest{Name: "POS", MaxPointsPerOperation: 1, MaxPointsPerDay: 1}, ""},
		{"a purse of less than nothing", keyRequest{Name: "POS", MaxPointsPerDay: -1}, "maxPointsPerDay"},
		{"an operation below zero", keyRequest{Name: "POS", MaxPointsPerOperation: -1}, "maxPointsPerOperation"},
	} {
		_, err := do(s, func(t *txn) (any, error) {
			_, _, err := t.keys.create(test.in)
			return nil, err
		})
		fault, refused := errors.AsType[*operatorError](err)
		if refused != (test.field != "") || refused && fault.field != test.field || !refused && err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
	keys := ask(s, func(t *txn) ([]*apiKey, error) { return t.keys.list() })
	if len(keys) != 5 || !slices.IsSortedFunc(keys, func(a, b *apiKey) int { return strings.Compare(a.ID.String(), b.ID.String()) }) {
		t.Errorf("%d keys are listed, want 5, oldest first", len(keys))
	}

	k, text := s.newKey(keyRequest{})
	if k.Last4 != text[len(text)-4:] {
		t.Errorf("shows %s of %s", k.Last4, text)
	}
	for _, e := range s.entries() {
		if bytes.Contains(e.Value, []byte(text[len(keyPrefix):])) || bytes.Contains(e.Key, []byte(text[len(keyPrefix):])) {
			t.Errorf("the key's text is kept at %x", e.Key)
		}
	}
	first := must(s, func(t *txn) (*apiKey, error) { return t.keys.revoke(k.ID.String()) })
	s.pass(time.Hour)
	if again := must(s, func(t *txn) (*apiKey, error) { return t.keys.revoke(k.ID.String()) }); again.RevokedAt != first.RevokedAt {
		t.Errorf("revoked at %s, and again at %s", first.RevokedAt, again.RevokedAt)
	}
	for _, none := range []string{"", "x", (id{1}).String(), strings.ToUpper(k.ID.String())} {
		if _, err := do(s, func(t *txn) (*apiKey, error) { return t.keys.revoke(none) }); err == nil {
			t.Errorf("revoked %q", none)
		}
	}
}

// TestChangeKey: a change is of the fields that are given, holds from the next request
// on, and is whole or not at all.
func TestChangeKey(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-03-02T10:00:00Z"})
	k, text := s.newKey(keyRequest{Scopes: []string{"points:read"}, DailyLimit: 5, IPWhitelist: []string{"10.0.0.0/8"}, MaxPointsPerDay: dec("7.5")})
	change := func(in keyRequest, given ...string) (*apiKey, error) {
		return do(s, func(t *txn) (*apiKey, error) {
			return t.keys.change(keyChange{keyRequest: in, ID: k.ID.String(), Given: given})
		})
	}
	seen := func() *apiKey {
		c, err := s.engine.authenticate(t.Context(), text, from(netip.MustParseAddr("10.1.2.3")), s.clock)
		s.ok(err)
		return c.key
	}
	seen() // so that it is kept
	for _, test := range []struct {
		reason string
		in     keyRequest
		given  string
		want   func(k *apiKey)
	}{
		{"a limit", keyRequest{DailyLimit: 9}, "dailyLimit", func(k *apiKey) { k.DailyLimit = 9 }},
		{"what is not given stays", keyRequest{Name: "x", RateLimit: 1}, "rateLimit", func(k *apiKey) { k.RateLimit = 1 }},
		{"cleared", keyRequest{}, "rateLimit dailyLimit scopes maxPointsPerDay", func(k *apiKey) {
			k.RateLimit, k.DailyLimit, k.Scopes, k.MaxPointsPerDay = defaultRateLimit, 0, nil, 0
		}},
		{"a purse", keyRequest{MaxPointsPerOperation: 3}, "maxPointsPerOperation", func(k *apiKey) { k.MaxPointsPerOperation = 3 }},
		{"name and end", keyRequest{Name: " Caja 2 ", Expires: "2026-03-03T00:00:00Z"}, "name expires", func(k *apiKey) {
			k.Name, k.ExpiresAt = "Caja 2", s.clock.add(14*time.Hour)
		}},
		{"without end", keyRequest{}, "expires", func(k *apiKey) { k.ExpiresAt = 0 }},
		{"nothing else", keyRequest{}, "expires", func(*apiKey) {}},
	} {
		want := *seen()
		test.want(&want)
		_, err := change(test.in, strings.Fields(test.given)...)
		s.ok(err)
		if got := seen(); !reflect.DeepEqual(got, &want) {
			t.Errorf("%s: %+v, want %+v", test.reason, got, &want)
		}
	}

	before := s.entries()
	for reason, in := range map[string]keyChange{
		"nobody's":         {ID: (id{1}).String(), Given: []string{"dailyLimit"}},
		"its text":         {ID: text, Given: []string{"dailyLimit"}},
		"a bad field":      {keyRequest: keyRequest{DailyLimit: 4, Scopes: []string{"todo"}}, ID: k.ID.String(), Given: []string{"dailyLimit", "scopes"}},
		"no name":          {ID: k.ID.String(), Given: []string{"name"}},
		"no field":         {ID: k.ID.String(), Given: []string{"purse"}},
		"a date in past":   {keyRequest: keyRequest{Expires: "2026-03-01"}, ID: k.ID.String(), Given: []string{"expires"}},
		"a limit below 0":  {keyRequest: keyRequest{RateLimit: -1}, ID: k.ID.String(), Given: []string{"rateLimit"}},
		"a source that is": {keyRequest: keyRequest{IPWhitelist: []string{"casa"}}, ID: k.ID.String(), Given: []string{"ipWhitelist"}},
	} {
		if _, err := do(s, func(t *txn) (*apiKey, error) { return t.keys.change(in) }); err == nil || strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", reason, err)
		}
	}
	same(t, "refused changes", s.entries(), before)
	must(s, func(t *txn) (*apiKey, error) { return t.keys.revoke(k.ID.String()) })
	if _, err := change(keyRequest{DailyLimit: 1}, "dailyLimit"); err == nil {
		t.Error("a revoked key was changed")
	}
}

// TestRotateKey: the new key is like the old one, which ends after the overlap.
func TestRotateKey(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-03-02T10:00:00Z"})
	source := from(netip.MustParseAddr("203.0.113.5"))
	works := func(text string) bool {
		_, err := s.engine.authenticate(t.Context(), text, source, s.clock)
		return err == nil
	}
	type rotated struct {
		k, old *apiKey
		text   string
	}
	rotate := func(given id, overlap time.Duration) (rotated, error) {
		return do(s, func(t *txn) (r rotated, err error) {
			r.k, r.text, r.old, err = t.keys.rotate(given.String(), overlap)
			return r, err
		})
	}
	k, text := s.newKey(keyRequest{Scopes: []string{"points:write"}, RateLimit: 7, MaxPointsPerDay: 5, Expires: "2026-03-10"})
	first, err := rotate(k.ID, 24*time.Hour)
	s.ok(err)
	want := *k
	want.ID, want.Last4, want.CreatedAt, want.Purse = first.k.ID, first.text[len(first.text)-4:], s.clock, k.ID
	want.idText, first.k.idText = "", ""
	want.networks, first.k.networks = nil, nil
	if !reflect.DeepEqual(first.k, &want) || first.k.ID == k.ID {
		t.Errorf("%+v, want %+v", first.k, &want)
	}
	if !works(text) || !works(first.text) || text == first.text {
		t.Error("both work for a while")
	}
	second, err := rotate(first.k.ID, 30*oneDay)
	s.ok(err)
	if second.k.Purse != k.ID || second.old.ExpiresAt != k.ExpiresAt {
		t.Errorf("purse %v, want that of the first key; ends %v, want no later than it would have", second.k.Purse, second.old.ExpiresAt)
	}
	s.pass(24*time.Hour - time.Millisecond)
	if !works(text) {
		t.Error("it ended before the overlap was over")
	}
	s.pass(time.Millisecond)
	if works(text) || !works(first.text) {
		t.Error("the overlap is over, of the first one alone")
	}
	before := s.entries()
	if _, err := rotate(k.ID, time.Hour); err == nil {
		t.Error("a key that has expired was rotated")
	}
	if _, err := rotate(second.k.ID, -1); err == nil {
		t.Error("an overlap below zero")
	}
	same(t, "refused rotations", s.entries(), before)
	third, err := rotate(second.k.ID, 0)
	s.ok(err)
	if works(second.text) || !works(third.text) {
		t.Error("without an overlap the old key ends at once")
	}
	must(s, func(t *txn) (*apiKey, error) { return t.keys.revoke(third.k.ID.String()) })
	if _, err := rotate(third.k.ID, time.Hour); err == nil {
		t.Error("a revoked key was rotated")
	}
	free, _ := s.newKey(keyRequest{})
	s.apply(bytes.Replace(setup{}.document(), []byte(`"apiAccess":true`), []byte(`"apiAccess":false`), 1))
	if _, err := rotate(free.ID, time.Hour); err == nil {
		t.Error("rotated where the plan has no keys")
	}
}

// A listeningStore is a Store that records the keys and values it is called with.
type listeningStore struct {
	Store
	mu    sync.Mutex
	asked [][]byte
}

type listeningTx struct {
	Tx
	store *listeningStore
}

func (s *listeningStore) View(ctx context.Context, fn func(Tx) error) error {
	return s.Store.View(ctx, func(tx Tx) error { return fn(listeningTx{tx, s}) })
}

func (s *listeningStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.Store.Update(ctx, func(tx Tx) error { return fn(listeningTx{tx, s}) })
}

func (s *listeningStore) hear(keys ...[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		s.asked = append(s.asked, bytes.Clone(k))
	}
}

func (t listeningTx) Get(key []byte) ([]byte, bool, error) { t.store.hear(key); return t.Tx.Get(key) }
func (t listeningTx) Put(key, value []byte) error {
	t.store.hear(key, value)
	return t.Tx.Put(key, value)
}
func (t listeningTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	t.store.hear(lo, hi)
	return t.Tx.Scan(lo, hi, reverse)
}

// tells returns a part of an API key's text that the store heard, or "". hashed
// reports whether the store was asked for the key's hash.
func (s *listeningStore) tells(text string) (part string, hashed bool) {
	hash := keyHash(text)
	for _, k := range s.asked {
		hashed = hashed || bytes.Equal(k, keyHashKey(hash))
		for i := len(keyPrefix); i+8 <= len(text); i++ {
			if bytes.Contains(k, []byte(text[i:i+8])) {
				part = text[i : i+8]
			}
		}
	}
	return part, hashed
}

// TestKeysByHash checks that an API key is looked up by its hash. No part of its
// text reaches the store, neither when it is made nor when it is used.
func TestKeysByHash(t *testing.T) {
	s := &listeningStore{Store: newMemStore()}
	defer s.Close()
	e := newEngine(s, time.Now, cryptoSeed)
	a := &admin{engine: e}
	if err := e.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.apply(t.Context(), applyRequest{Document: demoDocument}); err != nil {
		t.Fatal(err)
	}
	k, err := a.createKey(t.Context(), keyRequest{Org: "cafe-luna", Name: "POS"})
	if err != nil {
		t.Fatal(err)
	}
	if part, _ := s.tells(k.Key); part != "" {
		t.Errorf("making it, the store heard %q", part)
	}
	for text, code := range map[string]string{k.Key: "", newAPIKey([32]byte{7}): "api_key_invalid"} {
		s.asked = nil
		if _, err := e.authenticate(t.Context(), text, nil, instantOf(time.Now())); codeOf(err) != code {
			t.Errorf("got %v, want %q", err, code)
		}
		if part, hashed := s.tells(text); part != "" || !hashed && code == "" { // an unknown key may be refused without a look-up
			t.Errorf("the store heard %q; asked for its hash: %v", part, hashed)
		}
	}
	s.asked = nil
	if _, err := e.authenticate(t.Context(), "sello_nada", nil, 0); codeOf(err) != "api_key_invalid" || s.asked != nil {
		t.Errorf("what is no key: %v, looked for %q", err, s.asked)
	}
	// Control: the store hears a look-up by the text.
	s.View(t.Context(), func(tx Tx) error { tx.Get([]byte("a" + k.Key)); return nil })
	if part, hashed := s.tells(k.Key); part == "" || hashed {
		t.Error("a look-up by the text is not heard")
	}
}

// A counter is where the shop's API is asked.
type shopCounter struct {
	shop    *shop
	handler http.Handler
}

func (s *shop) counter() *shopCounter {
	return &shopCounter{s, newAPI(s.engine, nil, slog.New(slog.DiscardHandler))}
}

// ask sends a request with a key. Headers are names and values.
func (c *shopCounter) ask(key, method, path, body string, headers ...string) (status int, answer map[string]any) {
	c.shop.Helper()
	r := httptest.NewRequest(method, "/api/v1"+path, strings.NewReader(body))
	r.Header.Set("X-API-Key", key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	c.shop.ok(json.Unmarshal(w.Body.Bytes(), &answer))
	return w.Code, answer
}

// TestPurse: what a purse counts, and until when.
func TestPurse(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-03-02T23:59:59Z", program: `"default":true,"rules":[` + onePer1 + `]},{"key":"two","name":"Two"`})
	c := s.counter()
	ana := s.customer("ana").String()
	programs := ask(s, func(t *txn) ([2]id, error) { return [2]id{t.cfg.Programs[0].ID, t.cfg.Programs[1].ID}, nil })
	k, text := s.newKey(keyRequest{MaxPointsPerOperation: dec("60"), MaxPointsPerDay: dec("100")})
	_, free := s.newKey(keyRequest{})
	give := func(key string, program int, amount string, headers ...string) string {
		t.Helper()
		status, answer := c.ask(key, "POST", "/points/customers/"+ana+"/add", fmt.Sprintf(`{"amount":%s,"loyaltyProgramId":%q}`, amount, programs[program]), headers...)
		if status == http.StatusCreated {
			return "given"
		}
		context, _ := answer["context"].(map[string]any)
		return fmt.Sprint(status, " ", answer["code"], " ", context["limit"], " ", context["used"], " ", context["resetAt"])
	}
	const over = "403 points_budget_exceeded "
	for _, step := range []struct {
		reason string
		do     func() string
		want   string
	}{
		{"more than one add may give", func() string { return give(text, 0, "60.0001") }, over + "60 0 <nil>"},
		{"just that", func() string { return give(text, 0, "60", "Idempotency-Key", "k") }, "given"},
		{"again, which gives nothing", func() string { return give(text, 0, "60", "Idempotency-Key", "k") }, "given"},
		{"more than is left, in another program", func() string { return give(text, 1, "40.0001") }, over + "100 60 2026-03-03T00:00:00.000Z"},
		{"a sale does not count", func() string {
			status, _ := c.ask(text, "POST", "/transactions", `{"customerId":"`+ana+`","totalAmount":500}`)
			return fmt.Sprint(status)
		}, "201"},
		{"what is refused does not count", func() string { return give(text, 1, "39.9999") }, "given"},
		{"the last ten-thousandth", func() string { return give(text, 0, "0.0001") }, "given"},
		{"nothing is left", func() string { return give(text, 0, "0.0001") }, over + "100 100 2026-03-03T00:00:00.000Z"},
		{"a deduction is not bounded", func() string {
			status, _ := c.ask(text, "POST", "/points/customers/"+ana+"/deduct", fmt.Sprintf(`{"amount":500,"loyaltyProgramId":%q}`, programs[0]))
			return fmt.Sprint(status)
		}, "201"},
		{"another key has no purse", func() string { return give(free, 0, "5000") }, "given"},
		{"a rotated key has the same purse", func() string {
			old := k.ID.String()
			k = must(s, func(t *txn) (k *apiKey, err error) {
				k, text, _, err = t.keys.rotate(old, time.Hour)
				return k, err
			})
			return give(text, 0, "1")
		}, over + "100 100 2026-03-03T00:00:00.000Z"},
		{"a customer who is not there comes first", func() string {
			status, answer := c.ask(text, "POST", "/points/customers/x/add", fmt.Sprintf(`{"amount":1,"loyaltyProgramId":%q}`, programs[0]))
			return fmt.Sprint(status, answer["code"])
		}, "404customer_not_found"},
		{"the last millisecond of the day", func() string { s.pass(999 * time.Millisecond); return give(text, 0, "1") }, over + "100 100 2026-03-03T00:00:00.000Z"},
		{"another day", func() string { s.pass(time.Millisecond); return give(text, 0, "60") }, "given"},
		{"a lower limit than was given", func() string {
			must(s, func(t *txn) (*apiKey, error) {
				return t.keys.change(keyChange{keyRequest: keyRequest{MaxPointsPerDay: dec("50")}, ID: k.ID.String(), Given: []string{"maxPointsPerDay"}})
			})
			return give(text, 0, "1")
		}, over + "50 60 2026-03-04T00:00:00.000Z"},
	} {
		if got := step.do(); got != step.want {
			t.Fatalf("%s: %s, want %s", step.reason, got, step.want)
		}
	}
}

// TestPurseHistories holds purses against a tiny model of them.
func TestPurseHistories(t *testing.T) {
	t.Parallel()
	histories(t, 60, func(t *testing.T, rnd *rand.Rand) {
		s := newShop(t, setup{at: "2026-03-02T10:00:00Z"})
		c := s.counter()
		ana := s.customer("ana").String()
		type model struct {
			id        id
			text      string
			each, day int64 // limits in ten-thousandths; 0: none
			purse     int
		}
		var keys []*model
		given := map[int]map[int64]int64{} // by purse and day
		counted := map[int]bool{}          // purses that a key had a limit by day in
		amount := func() int64 { return pick(rnd, rnd.Int64N(20)+1, (rnd.Int64N(9)+1)*10_000, rnd.Int64N(50_000)+1) }
		limit := func() int64 { return pick(rnd, 0, amount(), 4*amount()) }
		for range 80 {
			today := int64(s.clock) / 86_400_000
			switch kind := rnd.IntN(10); {
			case kind == 0 || len(keys) == 0:
				m := &model{each: limit(), day: limit(), purse: len(keys)}
				k, text := s.newKey(keyRequest{MaxPointsPerOperation: decimal(m.each), MaxPointsPerDay: decimal(m.day)})
				m.id, m.text = k.ID, text
				keys, given[m.purse], counted[m.purse] = append(keys, m), map[int64]int64{}, m.day != 0
			case kind == 1:
				old := pick(rnd, keys...)
				next := *old
				next.id = must(s, func(t *txn) (id, error) {
					k, text, _, err := t.keys.rotate(old.id.String(), 1000*time.Hour)
					next.text = text
					return k.ID, err
				})
				keys = append(keys, &next)
			case kind == 2:
				m := pick(rnd, keys...)
				m.each, m.day = limit(), limit()
				counted[m.purse] = counted[m.purse] || m.day != 0
				must(s, func(t *txn) (*apiKey, error) {
					return t.keys.change(keyChange{
						keyRequest{MaxPointsPerOperation: decimal(m.each), MaxPointsPerDay: decimal(m.day)}, m.id.String(),
						[]string{"maxPointsPerOperation", "maxPointsPerDay"},
					})
				})
			case kind == 3:
				s.pass(pick(rnd, time.Second, time.Hour, 7*time.Hour))
			default:
				m, points := pick(rnd, keys...), amount()
				may := (m.each == 0 || points <= m.each) && (m.day == 0 || given[m.purse][today]+points <= m.day)
				status, answer := c.ask(m.text, "POST", "/points/customers/"+ana+"/add", `{"amount":`+decimal(points).String()+`}`)
				if may != (status == http.StatusCreated) || !may && answer["code"] != "points_budget_exceeded" {
					t.Fatalf("%v of %+v, with %d given today: %d %v", decimal(points), *m, given[m.purse][today], status, answer)
				}
				if may && counted[m.purse] {
					given[m.purse][today] += points
				}
			}
		}
	})
}

// TestNoPurseNoWrite: an add of a key without a purse, or with a limit for each add
// alone, writes nothing more.
func TestNoPurseNoWrite(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	c := s.counter()
	ana := s.customer("ana").String()
	for _, in := range []keyRequest{{}, {MaxPointsPerOperation: dec("5")}} {
		_, text := s.newKey(in)
		if status, answer := c.ask(text, "POST", "/points/customers/"+ana+"/add", `{"amount":5}`); status != http.StatusCreated {
			t.Fatal(status, answer)
		}
	}
	for _, e := range s.entries() {
		if e.Key[0] == 'P' {
			t.Errorf("entry %x", e.Key)
		}
	}
}

// TestPurseAfterWrongClock: a clock that was ahead gives no fresh day when it is set right.
func TestPurseAfterWrongClock(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-03-02T10:00:00Z", program: `"rules":[` + onePer1 + `]`})
	c := s.counter()
	ana := s.customer("ana").String()
	_, key := s.newKey(keyRequest{MaxPointsPerDay: dec("100")})
	for _, step := range []struct {
		clock, amount string
		want          int
	}{
		{"2026-03-02T10:00:00Z", "100", http.StatusCreated},
		{"2026-03-20T10:00:00Z", "40", http.StatusCreated},
		{"2026-03-02T11:00:00Z", "0.0001", http.StatusForbidden},
		{"2026-03-20T11:00:00Z", "61", http.StatusForbidden},
		{"2026-03-20T11:00:00Z", "60", http.StatusCreated},
	} {
		s.setClock(step.clock)
		if status, answer := c.ask(key, "POST", "/points/customers/"+ana+"/add", `{"amount":`+step.amount+`}`); status != step.want {
			t.Errorf("%s on %s: %d %v, want %d", step.amount, step.clock, status, answer, step.want)
		}
	}
}

// TestPurseCounts: a purse counts from when one of its keys first has a limit by day, all
// that its keys give.
func TestPurseCounts(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2026-03-02T10:00:00Z"})
	c := s.counter()
	ana := s.customer("ana").String()
	old, oldText := s.newKey(keyRequest{})
	var newer *apiKey
	newerText := must(s, func(t *txn) (text string, err error) {
		newer, text, _, err = t.keys.rotate(old.ID.String(), time.Hour)
		return text, err
	})
	limit := func(k *apiKey, points string) {
		t.Helper()
		must(s, func(t *txn) (*apiKey, error) {
			return t.keys.change(keyChange{keyRequest: keyRequest{MaxPointsPerDay: dec(points)}, ID: k.ID.String(), Given: []string{"maxPointsPerDay"}})
		})
	}
	give := func(text, amount string, want int) {
		t.Helper()
		if status, answer := c.ask(text, "POST", "/points/customers/"+ana+"/add", `{"amount":`+amount+`}`); status != want {
			t.Fatalf("%s: %d %v, want %d", amount, status, answer, want)
		}
	}
	give(oldText, "500", http.StatusCreated)
	limit(newer, "100")
	give(newerText, "10", http.StatusCreated) // the 500 came before the limit
	give(oldText, "90", http.StatusCreated)   // has no limit, but the purse counts
	give(newerText, "0.0001", http.StatusForbidden)
	limit(newer, "0")
	give(newerText, "50", http.StatusCreated)
	limit(newer, "150.5")
	give(newerText, "0.5001", http.StatusForbidden) // the 50 count
	give(newerText, "0.5", http.StatusCreated)
	for range 3 { // together beyond the range of points
		for _, path := range []string{"/add", "/deduct"} {
			body := `{"amount":40000000000,"category":"Adjustment"}`
			if status, answer := c.ask(oldText, "POST", "/points/customers/"+ana+path, body); status != http.StatusCreated {
				t.Fatal(status, answer)
			}
		}
	}
	give(newerText, "0.0001", http.StatusForbidden)
}

// TestMemberPurse: a member gives by hand up to the member's limit, whatever else gives points.
// Others set the limit, each change leaves an entry, and what came before it counts.
func TestMemberPurse(t *testing.T) {
	t.Parallel()
	s := newPeopleShop(t)
	one, team := "/panel/clientes/"+s.shop.customer("ana").String(), "/panel/equipo/"
	manager := team + s.users[roleManager].String()
	give := func(as role, amount string) (int, string) {
		w := s.post(as, one+"/puntos/dar", url.Values{"amount": {amount}, "comment": {"por la espera"}})
		return w.Code, w.Body.String()
	}
	limit := func(as role, of role, most string, want int) {
		t.Helper()
		if w := s.post(as, team+s.users[of].String()+"/limite", url.Values{"maxPointsPerDay": {most}}); w.Code != want {
			t.Fatalf("%s limits %s to %q: %d, want %d\n%s", as, of, most, w.Code, want, w.Body)
		}
	}
	gives := func(as role, amount string, want int) string {
		t.Helper()
		code, body := give(as, amount)
		if code != want {
			t.Fatalf("%s gives %s: %d, want %d\n%s", as, amount, code, want, body)
		}
		return body
	}
	gives(roleManager, "30", http.StatusSeeOther)
	limit(roleManager, roleManager, "1", http.StatusForbidden)
	limit(roleAdmin, roleOwner, "1", http.StatusForbidden)
	limit(roleAdmin, roleAdmin, "1", http.StatusForbidden)
	limit(roleAdmin, roleManager, "-1", http.StatusUnprocessableEntity)
	limit(roleAdmin, roleManager, "100", http.StatusSeeOther)
	entries := s.shop.audited(auditFilter{})
	if last := entries[len(entries)-1]; last != `User  user.changed [{"field":"maxPointsPerDay","before":null,"after":100}]` {
		t.Errorf("the entry is %s", last)
	}
	limit(roleAdmin, roleManager, "100", http.StatusSeeOther)
	if again := s.shop.audited(auditFilter{}); len(again) != len(entries) {
		t.Errorf("the same limit leaves %s", again[len(again)-1])
	}
	if page := s.open(roleOwner, manager).Body.String(); !strings.Contains(page, "<dd>30 / 100</dd>") || !strings.Contains(page, `value="100"`) {
		t.Errorf("the page of the manager is\n%s", page)
	}
	if page := s.open(roleManager, one+"/puntos").Body.String(); !strings.Contains(page, "Hoy puedes dar todavía 70.") {
		t.Errorf("the form is\n%s", page)
	}
	told := gives(roleManager, "70.0001", http.StatusForbidden)
	for _, text := range []string{"Puntos que puedes dar a mano al día: 100. Hoy ya diste: 30.", "por la espera", `value="70.0001"`} {
		if !strings.Contains(told, text) {
			t.Errorf("no %q in\n%s", text, told)
		}
	}
	gives(roleManager, "70", http.StatusSeeOther)
	gives(roleManager, "0.0001", http.StatusForbidden)
	gives(roleAdmin, "5000", http.StatusSeeOther) // has no limit
	if w := s.post(roleManager, one+"/puntos/quitar", url.Values{"amount": {"500"}, "comment": {"error"}}); w.Code != http.StatusSeeOther {
		t.Errorf("taking points: %d", w.Code)
	}
	s.shop.pass(24 * time.Hour)
	s.tokens[roleManager] = must(s.shop, func(t *txn) (string, error) {
		return t.people.startSession(s.users[roleManager], sessionFull, &arrival{})
	})
	gives(roleManager, "100", http.StatusSeeOther)
	must(s.shop, func(t *txn) (any, error) { return nil, t.people.removeMember(nil, s.users[roleManager]) })
	for _, e := range s.shop.entries() {
		if e.Key[0] == 'P' && id(e.Key[5:21]) == s.users[roleManager] {
			t.Errorf("%x is left of a member that is gone", e.Key)
		}
	}
}

// TestPurseOfTwoServers: a purse that two servers count at once is counted exactly.
func TestPurseOfTwoServers(t *testing.T) {
	t.Parallel()
	shops := newServers(t, setup{program: `"default":true`})
	ana := shops[0].customer("ana").String()
	k, text := shops[0].newKey(keyRequest{MaxPointsPerDay: dec("100")})
	program := ask(shops[0], func(t *txn) (id, error) { return t.cfg.Programs[0].ID, nil })
	var statuses [2]map[int]int
	var both sync.WaitGroup
	for i, s := range shops {
		statuses[i] = map[int]int{}
		c := s.counter()
		both.Go(func() {
			for range 15 {
				status, _ := c.ask(text, "POST", "/points/customers/"+ana+"/add", fmt.Sprintf(`{"amount":7,"loyaltyProgramId":%q}`, program))
				statuses[i][status]++
			}
		})
	}
	both.Wait()
	if given := statuses[0][http.StatusCreated] + statuses[1][http.StatusCreated]; given != 14 {
		t.Errorf("%d times 7 points are given of 100: %v", given, statuses)
	}
	if p := ask(shops[1], func(t *txn) (*purse, error) { return t.keys.purseToday(k.purse()) }); p.Given != dec("98") {
		t.Errorf("%s are counted", p.Given)
	}
}
