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
// TestRetriesDoNotCreditTwice test parallel twins, audit's TestTwinsAcrossKills tests them
// across kill -9, and testdata/golden/idempotency.txt shows what a client sees.

// TestAnswerAndEffectAreOne fails each kind of write once before it is stored and once
// after. The store then has both the effect and the answer kept for retries, or neither.
// A retry succeeds in both cases.
func TestAnswerAndEffectAreOne(t *testing.T) {
	for _, test := range []struct {
		name  string
		split bool // the control: answers are stored in a transaction of their own
	}{{"in one transaction", false}, {"in two, which is to be noticed", true}} {
		t.Run(test.name, func(t *testing.T) {
			faults, wrong := 0, 0
			for _, fault := range []storeFault{failBefore, failAfter} {
				if test.split && fault == failAfter {
					continue // both transactions are stored: nothing is missing
				}
				r := newRetries(t, fault, test.split)
				for _, kind := range everyWrite {
					faults++
					if !r.atOnce(kind) {
						wrong++
					}
				}
				r.world.verify()
			}
			if want := map[bool]int{false: 0, true: faults}[test.split]; wrong != want {
				t.Errorf("of %d faults %d left an effect without its answer, want %d", faults, wrong, want)
			}
		})
	}
}

// retries is a world whose API writes to a failing store.
type retries struct {
	world   *world
	flaky   Store
	handler http.Handler
	fault   storeFault
	split   bool

	mu   sync.Mutex
	next []storeFault // faults of the next Updates, in order
}

func newRetries(t *testing.T, fault storeFault, split bool) *retries {
	t.Helper()
	r := &retries{fault: fault, split: split}
	r.flaky = newFlaky(newMemStore(), func() storeFault {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.next) == 0 {
			return noFault
		}
		f := r.next[0]
		r.next = r.next[1:]
		return f
	})
	store := r.flaky
	if split {
		store = &splitStore{r.flaky}
	}
	r.world = newWorld(t, r.flaky)
	r.world.play(filepath.Join("testdata", "world", "world.txt"), false)
	r.world.direct(`change cafe-luna rewards.+ = {"key": "vale", "program": "club", "name": "Vale", "pointsCost": 1, "fulfilment": "Voucher"}`)
	clock := r.world.clock
	r.handler = newAPI(newEngine(store, func() time.Time { return clock }, cryptoSeed), nil, slog.New(slog.DiscardHandler))
	return r
}

// atOnce sends a write whose Update fails, and retries it. It reports whether the failed
// write stored both its answer and its effect, or neither.
func (r *retries) atOnce(kind writeKind) bool {
	r.world.Helper()
	path, body := r.world.expand(kind.path), r.world.expand(kind.body)
	key := fmt.Sprintf("k-%d-%s", r.fault, kind.name)
	before := tablesOf(r.world.T, r.flaky)
	r.mu.Lock()
	if r.next = []storeFault{r.fault}; r.split {
		r.next = []storeFault{noFault, r.fault}
	}
	r.mu.Unlock()
	first := send(r.handler, r.world.expand("$key.luna"), key, path, body)
	if first.Code != http.StatusServiceUnavailable || first.Header().Get("Retry-After") == "" {
		r.world.Errorf("%s: %d %s", kind.name, first.Code, first.Body)
	}
	stored, effect := whatChanged(before, tablesOf(r.world.T, r.flaky))
	if want := r.fault == failAfter; stored != want || effect != want && !r.split {
		r.world.Errorf("%s, fault %d: the answer is there: %t, the effect: %t", kind.name, r.fault, stored, effect)
	}
	retry := send(r.handler, r.world.expand("$key.luna"), key, path, body)
	if retry.Code >= 300 && !r.split || (retry.Header().Get("Idempotency-Replayed") == "true") != stored {
		r.world.Errorf("%s, fault %d: a retry gets %d %s", kind.name, r.fault, retry.Code, retry.Body)
	}
	kind.learn(r.world, retry)
	if r.split {
		return stored == effect
	}
	settled := tablesOf(r.world.T, r.flaky)
	again := send(r.handler, r.world.expand("$key.luna"), key, path, body)
	if again.Code != retry.Code || again.Body.String() != retry.Body.String() || again.Header().Get("Idempotency-Replayed") != "true" {
		r.world.Errorf("%s: one more retry gets %d %s", kind.name, again.Code, again.Body)
	}
	if !maps.Equal(tablesOf(r.world.T, r.flaky), settled) {
		r.world.Errorf("%s: one more retry has changed something", kind.name)
	}
	return stored == effect
}

// A writeKind is a write that a client can make. learn names what later writes need.
type writeKind struct {
	name, path, body string
	learn            func(*world, *httptest.ResponseRecorder)
}

// everyWrite has one write of each kind.
var everyWrite = []writeKind{
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
	{"redeem a voucher", "/api/v1/rewards/redeem", `{"customerId":"$maria","productId":"$vale"}`, func(w *world, r *httptest.ResponseRecorder) {
		var made struct{ Code string }
		json.Unmarshal(r.Body.Bytes(), &made)
		w.name("code", made.Code)
	}},
	{"use", "/api/v1/redemptions/use", `{"code":"$code"}`, nothing},
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

// tablesOf returns all that the store holds, without the usage of API keys.
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

// whatChanged reports whether an answer was added between two states, and whether
// anything else changed. It ignores totals, since they count answers too.
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

// A splitStore stores the answers kept for retries in a second transaction.
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
