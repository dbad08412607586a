package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sello/internal/logline"
)

// A readerFunc is a function that serves as an io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestSlowBody sends a body that takes ten seconds. The points are added at the moment
// when the body is complete, not when the request began.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newMemStore())
	w.play(filepath.Join("testdata", "world", "world.txt"), false)
	body := strings.NewReader(`{"amount": 10}`)
	r := newRequest("POST", w.expand("/api/v1/points/customers/$maria/add"), w.expand("$key.luna"), "{}")
	r.ContentLength = -1
	r.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
		if body.Len() > 0 {
			w.clock = w.clock.Add(5 * time.Second)
		}
		return body.Read(p[:min(len(p), 7)])
	}))
	want := fmt.Sprintf(`"createdAt":"%s"`, instantOf(w.clock.Add(10*time.Second)))
	answer := answerTo(w.api, r)
	if answer.Code != http.StatusCreated || !strings.Contains(answer.Body.String(), want) {
		t.Errorf("got %d %s, want %s", answer.Code, answer.Body, want)
	}
	w.verify()
}

// TestExpectContinue checks that a request whose Content-Length is too large is refused
// before the client is told to send the body.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newMemStore())
	w.play(filepath.Join("testdata", "world", "world.txt"), false)
	for size, want := range map[int]string{maxBody + 1: "HTTP/1.1 413 ", maxBody: "HTTP/1.1 100 "} {
		conn, err := net.Dial("tcp", w.addr)
		w.must(err)
		fmt.Fprintf(conn, "POST /api/v1/customers HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
			w.expand("$key.luna"), size)
		if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(line, want) {
			t.Errorf("%d bytes: got %q, %v; want %s", size, line, err, want)
		}
		conn.Close()
	}
}

// TestLogMethod checks that the log calls an unknown method "other".
func TestLogMethod(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	lines := logline.NewWriter(&log)
	defer lines.Close()
	a := newAPIOf(newEngine(newMemStore(), time.Now, cryptoSeed))
	a.lines = lines
	for _, method := range []string{"DELETE", "SECRETO"} {
		a.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "/livez", nil))
	}
	lines.Flush()
	if text := log.String(); !strings.Contains(text, `"method":"DELETE"`) || !strings.Contains(text, `"method":"other"`) || strings.Contains(text, "SECRETO") {
		t.Error(text)
	}
}

// TestHungStore checks that a server is not ready while its disk does not answer.
func TestHungStore(t *testing.T) {
	t.Parallel()
	hung := hungStore{newMemStore(), make(chan struct{})}
	defer close(hung.release)
	a := newAPIOf(newEngine(hung, time.Now, cryptoSeed))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	answer := answerTo(a, newRequest("GET", "/readyz", "", "").WithContext(ctx))
	if answer.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

// TestReadyAgain checks that a server is not ready after its store refused a write. It
// tries by itself whether writes succeed again, and stores nothing by that.
func TestReadyAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := newMemStore()
		defer mem.Close()
		var fault atomic.Pointer[error] // of writes; nil: they succeed
		full := guardedStore{mem, func() error {
			if err := fault.Load(); err != nil {
				return *err
			}
			return nil
		}}
		e := newEngine(full, time.Now, cryptoSeed)
		if err := e.open(t.Context()); err != nil {
			t.Fatal(err)
		}
		a := newAPIOf(e)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go a.keepHouse(ctx)
		ready := func() int { return answerTo(a, newRequest("GET", "/readyz", "", "")).Code }
		write := func() error { return e.store.Update(ctx, func(tx Tx) error { return tx.Put([]byte("x"), nil) }) }
		nothing := func() error { return e.store.Update(ctx, func(tx Tx) error { return nil }) }
		want := func(status int, reason string) {
			t.Helper()
			if got := ready(); got != status {
				t.Errorf("%s: %d, want %d", reason, got, status)
			}
		}

		want(http.StatusOK, "a new server")
		fault.Store(&errUnavailable)
		want(http.StatusOK, "nobody has written")
		if write() == nil {
			t.Fatal("the store is not full")
		}
		want(http.StatusServiceUnavailable, "a write was refused")
		time.Sleep(7 * flushInterval / 2) // between two tries, so that none runs beside the next steps
		want(http.StatusServiceUnavailable, "it is full still")
		fault.Store(nil)
		nothing()
		want(http.StatusServiceUnavailable, "who writes nothing tells nothing")
		before := stored(t, mem)
		time.Sleep(flushInterval + time.Millisecond)
		want(http.StatusOK, "there is space again")
		same(t, "what is in the store", stored(t, mem), before)
		e.store.Update(ctx, func(tx Tx) error { return newError(codeCustomerNotFound) })
		want(http.StatusOK, "an update failed for another reason")
		fault.Store(&errBusy)
		if write() == nil {
			t.Fatal("the store is not busy")
		}
		want(http.StatusOK, "too many are waiting")
	})
}

type hungStore struct {
	Store
	release chan struct{}
}

func (s hungStore) View(context.Context, func(Tx) error) error {
	<-s.release
	return io.EOF
}

// TestHalfClosed checks that a client that has closed its side of the connection still
// gets its answer. Closing it ends the request's context.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newMemStore())
	w.play(filepath.Join("testdata", "world", "world.txt"), false)
	closed, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.store.View(closed, func(Tx) error { return nil }); err == nil {
		t.Fatal("the store takes no notice of a context")
	}
	for request, want := range map[string]int{
		"GET /readyz": http.StatusOK, "GET /api/v1/customers": http.StatusOK,
		"POST /api/v1/points/customers/$maria/add": http.StatusCreated,
		"POST /api/v1/transactions?dryRun=true":    http.StatusOK,
	} {
		method, target, _ := strings.Cut(w.expand(request), " ")
		r := newRequest(method, target, w.expand("$key.luna"), w.expand(`{"amount":1,"customerId":"$maria","totalAmount":1}`))
		answer := answerTo(w.api, r.WithContext(closed))
		if answer.Code != want {
			t.Errorf("%s: %d %s", request, answer.Code, answer.Body)
		}
	}
}
