package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A floodedShop is a shop that counts the accesses to its store.
type floodedShop struct {
	servedShop *servedShop
	reached    *countedStore
	made       byte // how many keys nobodys has returned
}

func newFloodedShop(t *testing.T) *floodedShop {
	store := &countedStore{Store: newMemStore()}
	t.Cleanup(func() { store.Close() })
	s := newShopOn(t, store, "2026-11-20T10:00:00Z")
	s.apply(demoDocument)
	return &floodedShop{servedShop: s.served(), reached: store}
}

func (s *floodedShop) accesses() int64 { return s.reached.views.Load() + s.reached.updates.Load() }

func (s *floodedShop) ask(peer, path, key string) *httptest.ResponseRecorder {
	r := newRequest("GET", path, key, "")
	r.RemoteAddr = peer + ":1"
	return answerTo(s.servedShop.api, r)
}

// flood sends a thousand requests from one source, each with an API key that the function
// key returns. It counts the answers by status, and the accesses to the store.
func (s *floodedShop) flood(peer, path string, key func() string) (statuses map[int]int, accesses int64) {
	statuses = map[int]int{}
	before := s.accesses()
	for range 1000 {
		w := s.ask(peer, path, key())
		statuses[w.Code]++
		if w.Code == http.StatusTooManyRequests && (w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"rate_limit_source"`)) {
			s.servedShop.shop.Fatalf("%v %s", w.Header(), w.Body)
		}
	}
	return statuses, s.accesses() - before
}

// nobodys returns another well-formed key that was never created.
func (s *floodedShop) nobodys() string {
	s.made++
	return newAPIKey([32]byte{2, s.made})
}

// TestFloods sends a thousand requests without a good key from one source. None reaches
// the store. Those to a route get 429 after the first few. A good key from the same
// source is not affected, nor is another source.
func TestFloods(t *testing.T) {
	t.Parallel()
	const home, away, path = "203.0.113.1", "203.0.113.2", "/api/v1/segments"
	s := newFloodedShop(t)
	s.ask(away, path, newAPIKey([32]byte{1})) // loads the index of keys
	for _, test := range []struct {
		reason string
		path   string
		key    func() string
		want   map[int]int
	}{
		{"no key", path, func() string { return "" }, map[int]int{401: maxRefusals, 429: 1000 - maxRefusals}},
		{"no form", path, func() string { return "sello_x" }, map[int]int{401: maxRefusals, 429: 1000 - maxRefusals}},
		{"nobody's", path, s.nobodys, map[int]int{401: maxRefusals, 429: 1000 - maxRefusals}},
		{"no route", "/api/v1/none", s.nobodys, map[int]int{404: 1000}},
	} {
		s.servedShop.api.refused = newSourceLimits(maxRefusals, refusalEvery)
		statuses, accesses := s.flood(home, test.path, test.key)
		if fmt.Sprint(statuses) != fmt.Sprint(test.want) || accesses != 0 {
			t.Errorf("%s: %v and %d accesses to the store, want %v and none", test.reason, statuses, accesses, test.want)
		}
	}
	s.flood(home, path, s.nobodys)
	for range 400 {
		if w := s.ask(home, path, s.servedShop.key); w.Code != http.StatusOK {
			t.Fatalf("a good key from the source of the flood: %d", w.Code)
		}
	}
	_, later := s.servedShop.shop.newKey(keyRequest{})
	if w := s.ask(home, path, later); w.Code != http.StatusOK {
		t.Errorf("a key that was made meanwhile: %d", w.Code)
	}
	if w := s.ask(away, path, ""); w.Code != http.StatusUnauthorized {
		t.Errorf("another source: %d", w.Code)
	}
	if statuses, accesses := s.flood(home, "/readyz", func() string { return "" }); statuses[200] != 1000 || accesses != maxRefusals {
		t.Errorf("/readyz: %v and %d accesses, want %d", statuses, accesses, maxRefusals)
	}

	// Control: without the index and the limits every request reaches the store.
	forgetful := func() string {
		keys := &s.servedShop.shop.engine.store.keys
		keys.mu.Lock()
		keys.whole = false
		keys.mu.Unlock()
		s.servedShop.api.refused = newSourceLimits(maxRefusals, refusalEvery)
		return s.nobodys()
	}
	if statuses, accesses := s.flood(home, path, forgetful); statuses[401] != 1000 || accesses != 1000 {
		t.Errorf("control: %v and %d accesses", statuses, accesses)
	}
}

// TestKeyIndexDamaged uses a store that cannot list its keys. A key that exists is found
// all the same, and one that does not is refused.
func TestKeyIndexDamaged(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	_, text := s.newKey(keyRequest{})
	noLists := func(tx Tx) Tx { return brokenTx{Tx: tx, scan: func([]byte) error { return errOnFire }} }
	damaged := newEngine(wrappedStore{Store: s.engine.store.Store, view: noLists}, s.engine.now, s.engine.seed)
	_, err := damaged.authenticate(t.Context(), text, nil, s.clock)
	s.want(err, "")
	_, err = damaged.authenticate(t.Context(), newAPIKey([32]byte{1}), nil, s.clock)
	s.want(err, "api_key_invalid")
}
