package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

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
