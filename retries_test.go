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
	"path/filepath"
	"reflect"
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

// TestReplays keeps answers at random moments and looks for them at others. An
// answer is found for 24 hours and no longer, whether or not the sweep has run,
// and only by its own organization.
func TestReplays(t *testing.T) {
	t.Parallel()
	histories(t, 40, func(t *testing.T, rnd *rand.Rand) {
		s := newShop(t, setup{})
		s.apply(bytes.Replace(setup{}.document(), []byte("cafe-luna"), []byte("tienda"), 1))
		type kept struct {
			at      instant
			request [16]byte
			body    string
		}
		answers := map[[17]byte]kept{} // by organization and name
		var all []kept
		for n := range 60 {
			s.pass(time.Duration(rnd.Int64N(int64(pick(rnd, time.Minute, 7*time.Hour, 30*time.Hour)))))
			if len(all) > 0 && rnd.IntN(3) == 0 { // 1 ms before, at or after the end of an answer
				s.clock = max(s.clock, pick(rnd, all...).at+24*3600*1000+instant(rnd.IntN(3)-1))
			}
			if rnd.IntN(5) == 0 {
				s.swept()
			}
			s.org = 1 + uint32(rnd.IntN(2))
			k := retryKey{name: [16]byte{byte(rnd.IntN(4))}, request: [16]byte{9, byte(rnd.IntN(2))}}
			who := [17]byte(append([]byte{byte(s.org)}, k.name[:]...))
			got, err := do(s, func(t *txn) (*replay, error) {
				r, err := t.replays.find(k)
				if r != nil || err != nil {
					return r, err
				}
				return nil, t.replays.keep([]retryKey{k}, 201, fmt.Appendf(nil, "answer %d", n))
			})
			switch first := answers[who]; {
			case first.body == "" || s.clock >= first.at+24*3600*1000:
				if got != nil || err != nil {
					t.Fatalf("at %s: got %v (%v), want nothing", s.clock, got, err)
				}
				answers[who] = kept{s.clock, k.request, fmt.Sprint("answer ", n)}
				all = append(all, answers[who])
			case first.request != k.request:
				if codeOf(err) != "idempotency_key_reused" {
					t.Fatalf("at %s: got %v (%v), want idempotency_key_reused", s.clock, got, err)
				}
			case err != nil || got == nil || string(got.Body) != first.body || got.Status != 201:
				t.Fatalf("at %s: got %v (%v), want %q of %s", s.clock, got, err, first.body, first.at)
			}
		}
		s.org = 1
		s.pass(48 * time.Hour)
		s.swept()
		for _, e := range s.entries() {
			if table := tableName(e.Key); table == "i" || table == "I1" {
				t.Fatalf("a replay is left after the sweep: %x", e.Key)
			}
		}
	})
}

// TestReplaySlices opens slices for 2²⁷ replays within five hours. Slices fill
// up, and grow so that there are never more than 350.
func TestReplaySlices(t *testing.T) {
	t.Parallel()
	l := new(replaySlices)
	const step = 1 << 13
	for n := uint64(1); n < 1<<27; n += step {
		before := len(l.List)
		s, isNew := l.open(n, instant(n/step)*1000)
		if isNew != (len(l.List) > before) || s != l.List[len(l.List)-1] || s.First > n {
			t.Fatalf("%d goes to %v, new is %t", n, s, isNew)
		}
		if len(l.List) > 350 {
			t.Fatalf("%d slices of %d replays", len(l.List), n)
		}
		if size := n - s.First; size >= sliceNames && size > n/64 {
			t.Fatalf("a slice of %d of %d replays", size, n)
		}
	}
	if len(l.List) < 10 {
		t.Fatalf("%d slices", len(l.List))
	}
}

// TestDropReplays drops a stale slice seven entries at a time. The other slice
// stays whole.
func TestDropReplays(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	keep := func(n byte) {
		must(s, func(t *txn) (any, error) {
			return nil, t.replays.keep([]retryKey{{name: [16]byte{n}, request: [16]byte{1}}, {name: [16]byte{n, 1}}}, 201, []byte("{}"))
		})
	}
	for n := range byte(25) {
		keep(n)
	}
	s.pass((sliceTime + replayTime) * time.Millisecond)
	keep(99)
	for rounds := 0; ; rounds++ {
		now := s.clock
		left := must(s, func(t *txn) (bool, error) {
			stale, err := findStaleSlice(t.Tx, t.replays.slices, now)
			if err != nil || stale == nil {
				return false, err
			}
			return true, stale.drop(t.Tx, 7)
		})
		if !left {
			if rounds != 11 { // 50 names and 25 replays
				t.Errorf("%d rounds", rounds)
			}
			break
		}
	}
	have := map[string]int{}
	for _, e := range s.entries() {
		have[tableName(e.Key)]++
	}
	if have["i"] != 1 || have["I1"] != 2 {
		t.Errorf("%d replays and %d names are left, want 1 and 2", have["i"], have["I1"])
	}
	for _, name := range [][16]byte{{99}, {99, 1}} {
		if ask(s, func(t *txn) (*replay, error) { return t.replays.find(retryKey{name: name, request: [16]byte{1}}) }) == nil {
			t.Errorf("%x is gone", name)
		}
	}
}

// TestRetryKeys shows which requests get the same name, and which the same digest.
func TestRetryKeys(t *testing.T) {
	t.Parallel()
	of := func(header, method, target, body string) retryKey {
		return idempotencyKey(header, httptest.NewRequest(method, target, nil), []byte(body))
	}
	first := of("k", "POST", "/a", `{"x":1}`)
	for _, test := range []struct {
		reason                string
		other                 retryKey
		sameName, sameRequest bool
	}{
		{"the same", of("k", "POST", "/a", `{"x":1}`), true, true},
		{"another key", of("l", "POST", "/a", `{"x":1}`), false, true},
		{"another method", of("k", "PUT", "/a", `{"x":1}`), true, false},
		{"another path", of("k", "POST", "/b", `{"x":1}`), true, false},
		{"another query", of("k", "POST", "/a?dryRun=true", `{"x":1}`), true, false},
		{"another body", of("k", "POST", "/a", `{"x":2}`), true, false},
		{"another space in the body", of("k", "POST", "/a", `{"x": 1}`), true, false},
		{"the end of the path at the beginning of the body", of("k", "POST", "/", `a{"x":1}`), true, false},
		{"an externalId of the same text", externalRetryKey("k", []byte(`{"x":1}`)), false, false},
	} {
		if test.other.name == first.name != test.sameName || test.other.request == first.request != test.sameRequest {
			t.Errorf("%s: same name is %t, same request is %t", test.reason, test.other.name == first.name, test.other.request == first.request)
		}
	}
	if externalRetryKey("a", []byte("b")).name == externalRetryKey("ab", nil).name {
		t.Error("an externalId and a body are one text")
	}
}

// TestTwins sends a request many times at once. It is applied once, and all
// get the same answer.
func TestTwins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newMemStore())
	w.play(filepath.Join("testdata", "world", "world.txt"), false)
	clock := w.clock
	a := newAPIOf(newEngine(w.store, func() time.Time { return clock }, cryptoSeed))
	for _, test := range []struct {
		reason, target, retryKey, body string
		again                          int // status of a replay
	}{
		{"the same Idempotency-Key", "/api/v1/points/customers/$maria/add", "k-1", `{"amount": 10}`, http.StatusCreated},
		{"the same externalId", "/api/v1/transactions", "", `{"customerId": "$maria", "totalAmount": 100, "externalId": "P"}`, http.StatusOK},
	} {
		t.Run(test.reason, func(t *testing.T) {
			wantOneApplied(t, 50, test.again, func() *httptest.ResponseRecorder {
				return answerTo(a, newPost(w.expand(test.target), w.expand("$key.luna"), test.retryKey, w.expand(test.body)))
			})
		})
	}
	w.verify()
}

// TestPackedAnswers packs every transcript, and unpacks it to the same bytes.
func TestPackedAnswers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text := []byte(readText(t, name))
		if got, err := packedWords.Unpack(packedWords.Pack(nil, text)); !bytes.Equal(got, text) || err != nil {
			t.Errorf("%s became %.60q (%v)", name, got, err)
		}
	}
}

// TestPackedMembers: every member of an answer to a POST is a word, so that keeping the
// answer costs a byte for it.
func TestPackedMembers(t *testing.T) {
	t.Parallel()
	for _, shape := range []any{movementShape{}, usedLot{}, saleShape{}, saleRedemption{}, redemptionShape{}, customerDetail{}, createdBy{}, item{}, ruleShare{}, effect{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(shape)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && len(packedWords.Pack(nil, []byte(name))) > 1 {
				t.Errorf("%T: %s is no word", shape, name)
			}
		}
	}
}

func BenchmarkPack(b *testing.B) {
	text := []byte(`{"id":"019cd8e7-dd00-72da-bd9e-adffd988eb98","customerId":"019cadfd-8900-7627-a5a1-aa830dbcfd32",` +
		`"loyaltyProgramId":"019cadfd-8900-7be5-98fb-5201a15efc6a","currencyId":"019cadfd-8900-7e81-b7e0-49f7831e2028","type":"Credit",` +
		`"category":"Bonus","amount":100,"comment":null,"availableFrom":null,"expiresAt":"2027-04-01T05:59:59.999Z","balance":420,` +
		`"transactionId":null,"redemptionId":null,"createdAt":"2026-03-10T18:00:00.000Z","lots":null}` + "\n")
	packed := make([]byte, 0, len(text))
	b.ReportAllocs()
	for b.Loop() {
		packed = packedWords.Pack(packed[:0], text)
	}
	b.ReportMetric(float64(len(text)), "text-B")
	b.ReportMetric(float64(len(packed)), "packed-B")
}

// TestReplayFilter keeps names in slice after slice and makes the filter after each.
// It must have every name of the slices before the last, and look-ups must use it.
func TestReplayFilter(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	rnd := rand.New(rand.NewPCG(1, 2))
	find := s.hasName
	var names [][16]byte
	for slice := range 4 {
		s.pass((sliceTime + 1) * time.Millisecond)
		for range 500 {
			names = append(names, randomName(rnd))
		}
		s.ok(s.keepNames(nil, names[500*slice:]...))
		if err := s.engine.filterReplays(t.Context()); err != nil {
			t.Fatal(err)
		}
		f := s.engine.replayFilter(s.org)
		if slice == 0 {
			if f != nil {
				t.Error("a filter of a slice that gets more")
			}
			continue
		}
		if f == nil || f.names != 500*slice {
			t.Fatalf("after %d slices: %+v", slice, f)
		}
		for i, name := range names {
			if i < 500*slice && f.words.lacks(name) {
				t.Fatalf("the filter lacks name %d", i)
			}
		}
	}
	if !find(names[0]) || !find(names[1999]) || find(randomName(rnd)) {
		t.Error("kept names are not found, or others are")
	}
	s.engine.filters.Store(&map[uint32]*replayFilter{s.org: {until: lastSlice(s), words: make(nameSet, leastFilter)}})
	if find(names[0]) || !find(names[1999]) {
		t.Error("an empty filter changes nothing: it is not asked, or for names that it does not know of")
	}
}

// TestNameSetFull fills a set with as many names as it should take. Its false-positive
// rate must be at most 1 in 100.
func TestNameSetFull(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	words := make(nameSet, 1000)
	for range namesPerWord * len(words) {
		name := randomName(rnd)
		words.add(name[:])
	}
	wrong := 0
	for range 100_000 {
		if !words.lacks(randomName(rnd)) {
			wrong++
		}
	}
	if wrong > 1000 {
		t.Errorf("a full filter has %d of 100000 names that were not put in", wrong)
	}
}

// TestReplayFilterFull leaves no room for a filter as large as it should be. The
// filter gets too full but stays in use, and is made anew when most of its names
// are dropped.
func TestReplayFilterFull(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	rnd := rand.New(rand.NewPCG(3, 4))
	var had *replayFilter
	var list []replaySlice
	const each = 7_500 // names of a slice
	var names [][16]byte
	for slice := range 5 {
		if slice == 4 {
			list = list[3:]
		}
		list = append(list, replaySlice{uint64(1 + slice*each), s.clock})
		for range each {
			names = append(names, randomName(rnd))
		}
		must(s, func(t *txn) (any, error) {
			for _, name := range names[slice*each:] {
				if err := t.Put(t.replays.nameKey(list[len(list)-1], name), []byte{0}); err != nil {
					return nil, err
				}
			}
			return nil, t.put(orgKey('I', t.org), &replaySlices{list})
		})
		f := ask(s, func(t *txn) (*replayFilter, error) { return filterOf(t.Tx, t.replays.slices, t.org, had, leastFilter) })
		if slice == 0 {
			continue
		}
		from, wrong := 0, 0
		if slice == 4 {
			from = 3 * each
		}
		for _, name := range names[from : slice*each] {
			if f.words.lacks(name) {
				t.Fatalf("after %d slices the filter lacks a name", slice)
			}
		}
		for _, name := range names[slice*each:] {
			if !f.words.lacks(name) {
				wrong++
			}
		}
		want := []int{0, each, 2 * each, 3 * each, each}[slice]
		if f.names != want || len(f.words) != leastFilter || wrong > each/8 {
			t.Errorf("after %d slices: %d names in %d words, %d of %d others", slice, f.names, len(f.words), wrong, each)
		}
		had = f
	}
	if f := ask(s, func(t *txn) (*replayFilter, error) {
		return filterOf(t.Tx, t.replays.slices, t.org, nil, leastFilter-1)
	}); f != nil {
		t.Error("a filter where there is no room for the least")
	}
}

// TestFillingSlice checks that the filter of a slice that is being filled has all of
// its names, even if the transaction that began the slice, or another, failed.
func TestFillingSlice(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	s := newShop(t, setup{})
	rnd := rand.New(rand.NewPCG(5, 6))
	failed := errors.New("failed")
	keep := func(result error, names ...[16]byte) {
		t.Helper()
		if err := s.keepNames(result, names...); err != result {
			t.Fatal(err)
		}
	}
	some := func(n int) (names [][16]byte) {
		for range n {
			names = append(names, randomName(rnd))
		}
		return names
	}
	known := func() nameSet { return s.engine.slices.fillingNames(s.org, lastSlice(s)) }
	names := some(sliceNames)
	keep(nil, names...)
	if known() != nil {
		t.Error("the first slice of all has names that are known")
	}
	lost := some(3)
	keep(failed, lost...) // the first of them begins a slice, which is rolled back
	more := some(30)
	for _, name := range more {
		keep(nil, name)
	}
	keep(failed, some(1)...)
	set := known()
	if set == nil {
		t.Fatal("a slice that follows a full one has no names that are known")
	}
	for _, name := range append(names[:100:100], more...) {
		if !s.hasName(name) {
			t.Fatal("a name is not found")
		}
	}
	for _, name := range append(some(100), lost...) {
		if s.hasName(name) {
			t.Fatal("a name that was not kept is found")
		}
	}
	if set.lacks(more[0]) || !set.lacks(some(1)[0]) {
		t.Error("the set does not tell names that it has from others")
	}
	// Look-ups use the set: once emptied it hides its names, and no others.
	clear(set)
	if s.hasName(more[0]) || !s.hasName(names[0]) {
		t.Error("the set is not asked, or for names of another slice")
	}
	// Another server may have written more names. They are looked up again.
	s.engine.store.othersWrote(1, false)
	if known() != nil || !s.hasName(more[0]) {
		t.Error("names are known although others have written")
	}
	// The slice of another organization may take its place.
	s.engine.slices.beginFilling(s.org+fillingSlices, lastSlice(s), sliceNames)
	last := some(1)
	keep(nil, last...)
	if known() != nil || !s.hasName(more[0]) || !s.hasName(last[0]) {
		t.Error("names of one organization are known of another")
	}
}

// keepNames keeps an answer under each name, in a transaction that returns result.
func (s *shop) keepNames(result error, names ...[16]byte) error {
	_, err := do(s, func(t *txn) (any, error) {
		for _, name := range names {
			if err := t.replays.keep([]retryKey{{name: name, request: name}}, 201, []byte("{}")); err != nil {
				return nil, err
			}
		}
		return nil, result
	})
	return err
}

// hasName reports whether a retry with that name gets an answer.
func (s *shop) hasName(name [16]byte) bool {
	s.Helper()
	return ask(s, func(t *txn) (*replay, error) { return t.replays.find(retryKey{name: name, request: name}) }) != nil
}

func randomName(rnd *rand.Rand) (name [16]byte) {
	binary.LittleEndian.PutUint64(name[:], rnd.Uint64())
	binary.LittleEndian.PutUint64(name[8:], rnd.Uint64())
	return name
}

// lastSlice returns the first number of the last slice.
func lastSlice(s *shop) uint64 {
	l := ask(s, func(t *txn) (*replaySlices, error) { return t.replays.list() })
	return l.List[len(l.List)-1].First
}
