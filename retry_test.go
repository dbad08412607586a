package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/ordered"
)

// Retries (contract §6) of a write whose outcome is unknown. TestTwins and
// TestRetriesDoNotCreditTwice have parallel twins, audit's TestTwinsAcrossKills has them
// across kill -9, and testdata/golden/idempotency.txt has what a client sees.

// TestAnswerAndEffectAreOne fails each kind of write once before it is stored
// and once after: the effect and the answer that is kept for retries are then
// both there or both not, and a retry settles it.
func TestAnswerAndEffectAreOne(t *testing.T) {
	for _, test := range []struct {
		name  string
		split bool // the control: answers are stored in a transaction of their own
	}{{"in one transaction", false}, {"in two, which is to be noticed", true}} {
		t.Run(test.name, func(t *testing.T) {
			faults, wrong := 0, 0
			for _, fault := range []storeFault{failBefore, failAfter} {
				if test.split && fault == failAfter {
					continue // of the second transaction: all is there
				}
				var mu sync.Mutex
				var next []storeFault // of the Updates to come
				flaky := newFlaky(newMemStore(), func() storeFault {
					mu.Lock()
					defer mu.Unlock()
					if len(next) == 0 {
						return noFault
					}
					f := next[0]
					next = next[1:]
					return f
				})
				store := flaky
				if test.split {
					store = &splitStore{flaky}
				}
				w := newWorld(t, flaky)
				w.play(filepath.Join("testdata", "world", "world.txt"), false)
				clock := w.clock
				handler := newAPI(newEngine(store, func() time.Time { return clock }, cryptoSeed), nil, slog.New(slog.DiscardHandler))
				for i, kind := range everyWrite {
					path, body := w.expand(kind.path), w.expand(kind.body)
					key := fmt.Sprintf("k-%d-%d", fault, i)
					before := tablesOf(t, flaky)
					mu.Lock()
					if next = []storeFault{fault}; test.split {
						next = []storeFault{noFault, fault}
					}
					mu.Unlock()
					faults++
					first := send(handler, w.expand("$key.luna"), key, path, body)
					if first.Code != http.StatusServiceUnavailable || first.Header().Get("Retry-After") == "" {
						t.Errorf("%s: %d %s", kind.name, first.Code, first.Body)
					}
					after := tablesOf(t, flaky)
					stored, effect := whatChanged(before, after)
					if want := fault == failAfter; stored != want || effect != want && !test.split {
						t.Errorf("%s, fault %d: the answer is there: %t, the effect: %t", kind.name, fault, stored, effect)
					}
					if stored != effect {
						wrong++
					}
					retry := send(handler, w.expand("$key.luna"), key, path, body)
					if retry.Code >= 300 && !test.split || (retry.Header().Get("Idempotency-Replayed") == "true") != stored {
						t.Errorf("%s, fault %d: a retry gets %d %s", kind.name, fault, retry.Code, retry.Body)
					}
					kind.learn(w, retry)
					if test.split {
						continue
					}
					settled := tablesOf(t, flaky)
					again := send(handler, w.expand("$key.luna"), key, path, body)
					if again.Code != retry.Code || again.Body.String() != retry.Body.String() || again.Header().Get("Idempotency-Replayed") != "true" {
						t.Errorf("%s: one more retry gets %d %s", kind.name, again.Code, again.Body)
					}
					if !maps.Equal(tablesOf(t, flaky), settled) {
						t.Errorf("%s: one more retry has changed something", kind.name)
					}
				}
				w.verify()
			}
			if want := map[bool]int{false: 0, true: faults}[test.split]; wrong != want {
				t.Errorf("of %d faults %d left an effect without its answer, want %d", faults, wrong, want)
			}
		})
	}
}

// everyWrite is one of each kind of write that a client can make; learn names
// what the next ones need.
var everyWrite = []struct {
	name, path, body string
	learn            func(*world, *httptest.ResponseRecorder)
}{
	{"enrol", "/api/v1/customers", `{"email":"eva@example.com"}`, nothing},
	{"add", "/api/v1/points/customers/$maria/add", `{"amount":300}`, nothing},
	{"deduct", "/api/v1/points/customers/$maria/deduct", `{"amount":20}`, nothing},
	{"sale", "/api/v1/transactions", `{"customerId":"$maria","totalAmount":100}`, nothing},
	{"return", "/api/v1/transactions", `{"customerId":"$maria","totalAmount":10,"type":"Return"}`, nothing},
	{"redeem", "/api/v1/rewards/redeem", `{"customerId":"$maria","productId":"$espresso"}`, func(w *world, r *httptest.ResponseRecorder) {
		var made struct{ ID string }
		json.Unmarshal(r.Body.Bytes(), &made)
		w.name("redemption", made.ID)
	}},
	{"cancel", "/api/v1/redemptions/$redemption/cancel", `{}`, nothing},
}

func nothing(*world, *httptest.ResponseRecorder) {}

func send(h http.Handler, apiKey, key, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("X-API-Key", apiKey)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// tablesOf is all that the store holds but for use of API keys.
func tablesOf(t *testing.T, s Store) (all map[string]string) {
	t.Helper()
	err := s.View(t.Context(), func(tx Tx) error {
		all = contents(t, tx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(all, func(k, _ string) bool { return tableName([]byte(k)) == "u" })
	return all
}

// whatChanged reports whether an answer was kept between two states, and whether
// anything else has changed but the totals, which count answers too.
func whatChanged(before, after map[string]string) (answer, effect bool) {
	for k, v := range after {
		if old, ok := before[k]; ok && old == v {
			continue
		}
		switch tableName([]byte(k)) {
		case "i", "I", "I1":
			answer = true
		case "n":
		default:
			effect = true
		}
	}
	for k := range before {
		if _, ok := after[k]; !ok {
			effect = true
		}
	}
	return answer, effect
}

// A splitStore stores what is kept for retries after the rest, in a
// transaction of its own.
type splitStore struct{ Store }

func (s *splitStore) Update(ctx context.Context, fn func(Tx) error) error {
	var mu sync.Mutex
	var later []ordered.Change
	err := s.Store.Update(ctx, func(tx Tx) error {
		mu.Lock()
		defer mu.Unlock()
		later = nil
		return fn(splitTx{tx, &later})
	})
	mu.Lock()
	defer mu.Unlock()
	if err != nil || len(later) == 0 {
		return err
	}
	return s.Store.Update(ctx, func(tx Tx) error {
		for _, e := range later {
			if err := tx.Put([]byte(e.Key), e.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

type splitTx struct {
	Tx
	later *[]ordered.Change
}

func (tx splitTx) Put(key, value []byte) error {
	if key[0] == 'i' || key[0] == 'I' {
		*tx.later = append(*tx.later, ordered.Change{Key: string(key), Value: slices.Clone(value)})
		return nil
	}
	return tx.Tx.Put(key, value)
}
