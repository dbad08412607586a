package main

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net/netip"
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
