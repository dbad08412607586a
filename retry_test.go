package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/internal/ordered"
)

// Retries (contract §6) where they are hardest: of a write whose outcome is
// unknown, across kill -9, and across organizations. TestTwins and
// TestRetriesDoNotCreditTwice have parallel twins of a server that lives on,
// testdata/golden/idempotency.txt what a client sees.

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
		x := numbersKept(w.T, r.Body.Bytes())
		w.name("redemption", fmt.Sprint(x["id"]))
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

// changed tells whether an answer was kept between two states, and whether
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

// TestTwinsAcrossKills sends the same requests with the same key many times at
// once, in two organizations, kills the server meanwhile and sends them again
// to the next: each organization carries them out once, and all its answers
// are one, byte for byte.
func TestTwinsAcrossKills(t *testing.T) {
	t.Parallel()
	seed := newCrashSeed(t)
	v := newVictim(t, seed, builtBinary(t, "."))
	v.ok("apply -", strings.Replace(victimDocument, "cafe-luna", "tienda", 1))
	made := numbersKept(t, []byte(v.ok("key create -json -org tienda -name b -rate-limit 1000000000")))
	shops := []*twinShop{{victim: v, apiKey: v.key}, {victim: v, apiKey: made["key"].(string)}}
	for _, s := range shops {
		first := s.twins(1, "enrol", "/customers", `{"email":"ana@example.com"}`, func() {})
		if first[0].status != http.StatusCreated {
			t.Fatal(first)
		}
		s.customer = numbersKept(t, []byte(first[0].body))["id"].(string)
	}
	if shops[0].customer == shops[1].customer {
		t.Error("two organizations have one customer")
	}

	const twins, rounds = 200, 3 // in each organization, before the kill and as many after it
	const body = `{"amount":7.5}`
	for round := range rounds {
		key := fmt.Sprint("round ", round)
		// Both organizations enrol by the same bytes: but for whose key it is, it is one request.
		newcomer := fmt.Sprintf(`{"email":"new%d@example.com"}`, round)
		type outcome struct{ adds, enrolments []twinAnswer }
		got := make([]outcome, len(shops))
		all := func(n int, whenAnswered func()) {
			var wait sync.WaitGroup
			for i, s := range shops {
				var adds, enrolments []twinAnswer
				wait.Go(func() {
					var both sync.WaitGroup
					both.Go(func() { adds = s.twins(n, key, s.addPath(), body, whenAnswered) })
					both.Go(func() { enrolments = s.twins(n/4, key+" new", "/customers", newcomer, whenAnswered) })
					both.Wait()
					got[i].adds, got[i].enrolments = append(got[i].adds, adds...), append(got[i].enrolments, enrolments...)
				})
			}
			wait.Wait()
		}
		before := []int{shops[0].entries(), shops[1].entries()}
		server := v.server
		last := 1 + v.rng.Int64N(twins) // the answer that comes when it is killed
		var answered atomic.Int64
		whenAnswered := func() {
			if answered.Add(1) == last {
				server.Process.Kill()
			}
		}
		all(twins, whenAnswered)
		if server.kill(); answered.Load() < last {
			t.Errorf("%d answers came of %d", answered.Load(), last)
		}
		v.start()
		all(twins, func() {})
		t.Logf("killed at the answer %d of %d; %d came", last, 2*(twins+twins/4), answered.Load())
		for i, s := range shops {
			if err := errors.Join(oneAnswer(got[i].adds), oneAnswer(got[i].enrolments)); err != nil {
				t.Errorf("organization %d: %v", i+1, err)
			}
			if n := s.entries() - before[i]; n != 1 {
				t.Errorf("organization %d: %d twins were carried out %d times", i+1, 2*twins, n)
			}
		}
		if err := oneAnswer(append(got[0].enrolments, got[1].enrolments...)); err == nil {
			t.Error("two organizations share an answer")
		}
	}

	t.Run("twins without a key, which is to be noticed", func(t *testing.T) {
		s := shops[0]
		before := s.entries()
		answers := s.twins(10, "", s.addPath(), body, func() {})
		if n := s.entries() - before; n != 10 || oneAnswer(answers) == nil {
			t.Errorf("they were carried out %d times, and their answers are taken for one", n)
		}
	})
	v.wantStopped()
}

// A twinShop is one organization of a victim.
type twinShop struct {
	*victim
	apiKey, customer string
}

func (s *twinShop) addPath() string { return "/points/customers/" + s.customer + "/add" }

// entries is how long the customer's ledger is.
func (s *twinShop) entries() int {
	s.Helper()
	req, err := http.NewRequest(http.MethodGet, s.server.base+"/points/customers/"+s.customer+"/movements?limit=1", nil)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("X-API-Key", s.apiKey)
	a := askTwin(http.DefaultClient, req)
	if a.err != nil || a.status != http.StatusOK {
		s.Fatal(a)
	}
	meta := numbersKept(s.T, []byte(a.body))["meta"].(map[string]any)
	var n int
	fmt.Sscan(fmt.Sprint(meta["total"]), &n)
	return n
}

// A twinAnswer is what one of many twins got; err if nothing.
type twinAnswer struct {
	status   int
	body     string
	replayed bool
	err      error
}

// twins sends one request many times at once; without an Idempotency-Key if
// that is "".
func (s *twinShop) twins(n int, key, path, body string, whenAnswered func()) []twinAnswer {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	answers := make([]twinAnswer, n)
	base := s.server.base
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() {
			req, err := http.NewRequest(http.MethodPost, base+path, strings.NewReader(body))
			if err != nil {
				answers[i].err = err
				return
			}
			req.GetBody = nil // sent once
			req.Header.Set("X-API-Key", s.apiKey)
			req.Header.Set("Content-Type", "application/json")
			if key != "" {
				req.Header.Set("Idempotency-Key", key)
			}
			if answers[i] = askTwin(client, req); answers[i].err == nil {
				whenAnswered()
			}
		})
	}
	wait.Wait()
	return answers
}

func askTwin(client *http.Client, req *http.Request) (a twinAnswer) {
	res, err := client.Do(req)
	if err != nil {
		a.err = err
		return a
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return twinAnswer{res.StatusCode, string(text), res.Header.Get("Idempotency-Replayed") == "true", err}
}

// oneAnswer is nil if all who got an answer got the same, one of them at most as
// the first. 503 is no answer.
func oneAnswer(answers []twinAnswer) error {
	var first *twinAnswer
	fresh := 0
	for i := range answers {
		a := &answers[i]
		if a.err != nil || a.status == http.StatusServiceUnavailable {
			continue
		}
		if !a.replayed {
			fresh++
		}
		if first == nil {
			first = a
		}
		if a.status != http.StatusCreated || a.body != first.body {
			return fmt.Errorf("one got %d %s, another %d %s", first.status, first.body, a.status, a.body)
		}
	}
	if first == nil || fresh > 1 {
		return fmt.Errorf("%d answers of %d are the first", fresh, len(answers))
	}
	return nil
}
