package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sello/internal/semaphore"
)

// TestSemaphore posts bodies that get stuck half-way. As many are held as there are units for;
// the others are refused in time. A small body needs no units, and neither does a large one of
// which fewer than smallBody bytes have come.
func TestSemaphore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason    string
		units     int
		wantHeld  int64
		wantBusy  int
		sendsOnly int // bytes before it gets stuck
	}{
		{"room for two", 4, 2, 4, smallBody + 1000},
		{"a client that sends too little takes no room", 4, 0, 0, smallBody - 1},
		{"control: room for all", 1000, 6, 0, smallBody + 1000},
	} {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSemaphoreShop(t)
				s.servedShop.api.bodies = newSemaphore(test.units)
				s.servedShop.api.parsing = newSemaphore(100)
				release := make(chan struct{})
				var held atomic.Int64
				codes := make(chan int, 6)
				for range cap(codes) {
					body := &stuckBody{
						body:      strings.NewReader(fmt.Sprintf(`{"amount":1,"x":%q}`, strings.Repeat("x", 2*semaphoreUnit-100))),
						sendsOnly: test.sendsOnly, held: &held, release: release,
					}
					go func() { codes <- s.addPoints(body.body.Len(), body).Code }()
				}
				time.Sleep(semaphoreWait / 2)
				if w := s.addPoints(12, strings.NewReader(`{"amount":1}`)); w.Code != http.StatusCreated {
					t.Errorf("a small body meanwhile: %d", w.Code)
				}
				time.Sleep(semaphoreWait)
				synctest.Wait()
				if busy := len(codes); busy != test.wantBusy || held.Load() != test.wantHeld {
					t.Errorf("%d are held and %d refused, want %d and %d", held.Load(), busy, test.wantHeld, test.wantBusy)
				}
				for range len(codes) {
					if code := <-codes; code != http.StatusServiceUnavailable {
						t.Errorf("%d", code)
					}
				}
				close(release)
				for range cap(codes) - test.wantBusy {
					if code := <-codes; code != http.StatusCreated {
						t.Errorf("after it went on: %d", code)
					}
				}
				s.empty()
			})
		})
	}
}

// A stuckBody sends sendsOnly bytes, then waits for release before it sends the rest.
type stuckBody struct {
	body            *strings.Reader
	sendsOnly, sent int
	stuck           bool
	held            *atomic.Int64 // how many bodies have got units and are stuck
	release         <-chan struct{}
}

func (b *stuckBody) Read(p []byte) (int, error) {
	if b.sent >= b.sendsOnly && !b.stuck {
		b.stuck = true
		if b.sent > smallBody {
			b.held.Add(1)
		}
		<-b.release
	}
	if !b.stuck {
		p = p[:min(len(p), b.sendsOnly-b.sent)]
	}
	n, err := b.body.Read(p)
	b.sent += n
	return n, err
}

// TestSemaphoreForReads leaves no units for large answers, then none for lists. Those are
// refused in time. Small requests are answered.
func TestSemaphoreForReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSemaphoreShop(t)
		for range 100 {
			s.servedShop.shop.add(s.ana, "1", 0)
		}
		ledger := "/api/v1/points/customers/" + s.ana.String() + "/movements?limit="
		balance := "/api/v1/points/customers/" + s.ana.String() + "/balance"
		want := func(path string, status int, why string) {
			t.Helper()
			w := s.servedShop.get(path)
			if w.Code != status || status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") != "1" {
				t.Errorf("%s: %d %v, want %d: %s", path, w.Code, w.Header(), status, why)
			}
			s.empty()
		}
		if w := s.servedShop.get(ledger + "100"); w.Code != http.StatusOK || w.Body.Len() <= smallAnswer {
			t.Fatalf("%d, %d bytes", w.Code, w.Body.Len())
		}
		s.servedShop.api.answers = newSemaphore(0)
		want(ledger+"100", http.StatusServiceUnavailable, "no room for the answer")
		want(ledger+"10", http.StatusOK, "a short answer")
		s.servedShop.api.reading = newSemaphore(0)
		for _, large := range []string{ledger + "1", "/api/v1/customers", "/api/v1/statistics"} {
			want(large, http.StatusServiceUnavailable, "no processor for lists")
		}
		want(balance, http.StatusOK, "a small request")
		want("/livez", http.StatusOK, "health")
		want("/readyz", http.StatusOK, "health")
	})
}

// A semaphoreShop is a shop with an API and a customer.
type semaphoreShop struct {
	servedShop *servedShop
	ana        id
}

func newSemaphoreShop(t *testing.T) *semaphoreShop {
	s := &semaphoreShop{servedShop: newShop(t, setup{}).served()}
	s.ana = s.servedShop.shop.customer("ana")
	return s
}

// addPoints posts a body of size bytes that adds points.
func (s *semaphoreShop) addPoints(size int, body io.Reader) *httptest.ResponseRecorder {
	r := newRequest("POST", "/api/v1/points/customers/"+s.ana.String()+"/add", s.servedShop.key, "{}")
	r.Body, r.ContentLength = io.NopCloser(body), int64(size)
	return answerTo(s.servedShop.api, r)
}

// empty checks that all units were given back.
func (s *semaphoreShop) empty() {
	s.servedShop.shop.Helper()
	for _, r := range []*semaphore.Semaphore{s.servedShop.api.reading, s.servedShop.api.parsing, s.servedShop.api.bodies, s.servedShop.api.answers} {
		if n := r.Taken(); n != 0 {
			s.servedShop.shop.Errorf("%d units or turns are still taken", n)
		}
	}
}
