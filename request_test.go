package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
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

// TestLogLine compares the line of a request with what slog writes.
func TestLogLine(t *testing.T) {
	t.Parallel()
	histories(t, 300, func(t *testing.T, rnd *rand.Rand) {
		x := &exchange{
			status: 100 + rnd.IntN(500), route: pick(rnd, "", "/livez", "/api/v1/customers/{customerId}"), key: pick(rnd, "", id{1}.String()),
			organization: pick(rnd, "", "cafe-luna"), code: pick(rnd, "", "internal"),
		}
		var requestID []byte
		for range 1 + rnd.IntN(128) {
			requestID = append(requestID, byte(' '+rnd.IntN(95)))
		}
		x.requestID[0] = string(requestID)
		x.started = time.UnixMicro(rnd.Int64N(1 << 50))
		took := time.Duration(rnd.Int64N(pick[int64](rnd, 2, 1e4, 1e7, 1e11)))
		ended := x.started.Add(took)
		r := &http.Request{Method: pick(rnd, "GET", "POST", "SECRETO\n")}

		want := []slog.Attr{
			slog.String("requestId", x.requestID[0]), slog.String("method", knownMethod(r.Method)), slog.Int("status", x.status),
			slog.Float64("ms", float64(took.Microseconds())/1000),
		}
		for _, a := range []slog.Attr{
			slog.String("route", x.route), slog.String("key", x.key), slog.String("organization", x.organization), slog.String("code", x.code),
		} {
			if a.Value.String() != "" {
				want = append(want, a)
			}
		}
		record := slog.NewRecord(ended, slog.LevelInfo, "request", 0)
		record.AddAttrs(want...)
		var line bytes.Buffer
		if err := slog.NewJSONHandler(&line, nil).Handle(context.Background(), record); err != nil {
			t.Fatal(err)
		}
		if got := string(x.appendLogLine(nil, r, ended)); got != line.String() {
			t.Fatalf("got %swant %s", got, &line)
		}
	})
}

// TestLogFlags checks which lines are written.
func TestLogFlags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from   int
		status []int
	}{{0, []int{200, 404, 503}}, {http.StatusInternalServerError, []int{503}}, {unlogged, nil}} {
		var log strings.Builder
		lines := logline.NewWriter(&log)
		a := newAPIOf(newEngine(newMemStore(), time.Now, cryptoSeed))
		a.lines, a.loggedFrom = lines, test.from
		a.ServeHTTP(httptest.NewRecorder(), newRequest("GET", "/livez", "", ""))
		a.ServeHTTP(httptest.NewRecorder(), newRequest("GET", "/nada", "", ""))
		a.engine.store.refusing.Store(true)
		a.ServeHTTP(httptest.NewRecorder(), newRequest("GET", "/readyz", "", ""))
		lines.Close()
		var got []int
		for line := range strings.Lines(log.String()) {
			var l struct{ Status int }
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			got = append(got, l.Status)
		}
		if !slices.Equal(got, test.status) {
			t.Errorf("from %d: lines of %v, want %v", test.from, got, test.status)
		}
	}
	s := newTill(t)
	for _, line := range []string{"serve -log-level debug", "serve -log-level INFO", "serve -log-requests no", "serve -log-requests=true"} {
		if code, _, errs := s.run(line); code != 2 || !strings.Contains(errs, "-"+strings.Fields(strings.ReplaceAll(line, "=", " "))[1][1:]) {
			t.Errorf("sello %s: exit %d, %s", line, code, errs)
		}
	}
}

// fetched asks for a path as a client that called the server by host does.
func fetched(a *api, path, host string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	r.Host = host
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

// TestReference checks openapi.json and /docs: they name the server as it was called, and are
// packed for clients that accept gzip.
func TestReference(t *testing.T) {
	t.Parallel()
	a := newWorld(t, newMemStore()).api
	for path, contentType := range map[string]string{"/api/v1/openapi.json": "application/json", "/docs": "text/html; charset=utf-8"} {
		plain := fetched(a, path, "tienda.mx:8080")
		h := plain.Header()
		if plain.Code != http.StatusOK || h.Get("Content-Type") != contentType || h.Get("Vary") != "Accept-Encoding, Host" || h.Get("Cache-Control") != "no-cache" ||
			(h.Get("Content-Security-Policy") != "") != (path == "/docs") || !bytes.Contains(plain.Body.Bytes(), []byte("http://tienda.mx:8080")) {
			t.Errorf("%s: %d %v", path, plain.Code, h)
		}
		etag := h.Get("ETag")
		if same := fetched(a, path, "tienda.mx:8080", "If-None-Match", `"x", W/`+etag); same.Code != http.StatusNotModified || same.Body.Len() != 0 || same.Header().Get("ETag") != etag {
			t.Errorf("%s again: %d, %d bytes", path, same.Code, same.Body.Len())
		}
		if other := fetched(a, path, "otra.mx", "If-None-Match", etag); other.Code != http.StatusOK || !bytes.Contains(other.Body.Bytes(), []byte("http://otra.mx")) {
			t.Errorf("%s by another name: %d", path, other.Code)
		}
		packed := fetched(a, path, "tienda.mx:8080", "Accept-Encoding", "gzip")
		if z, err := gzip.NewReader(packed.Body); err != nil || packed.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s is not packed: %v, %v", path, err, packed.Header())
		} else if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain.Body.Bytes()) {
			t.Errorf("%s unpacked: %d bytes, %v", path, len(got), err)
		}
	}
	var d struct{ Servers []struct{ URL string } }
	if err := json.Unmarshal(fetched(a, "/api/v1/openapi.json", "tienda.mx").Body.Bytes(), &d); err != nil || len(d.Servers) != 1 || d.Servers[0].URL != "http://tienda.mx" {
		t.Errorf("servers: %v, %v", d, err)
	}
}

// TestReferenceBase checks what the reference calls the server. A Host that is none
// never comes back.
func TestReferenceBase(t *testing.T) {
	t.Parallel()
	skipShort(t)
	a := newWorld(t, newMemStore()).api
	for _, test := range []struct {
		host, proto     string
		trusted, secure bool
		want            string
	}{
		{"tienda.mx", "", false, false, "http://tienda.mx"},
		{"tienda.mx", "", false, true, "https://tienda.mx"},
		{"tienda.mx", "https", false, false, "http://tienda.mx"},
		{"tienda.mx", "https", true, false, "https://tienda.mx"},
		{"tienda.mx", "javascript", true, false, "http://tienda.mx"},
		{"[2001:db8::1]:8080", "", false, false, "http://[2001:db8::1]:8080"},
		{`"><script>`, "", false, false, "http://localhost"},
		{"", "", false, false, "http://localhost"},
		{strings.Repeat("x", 300), "", false, false, "http://localhost"},
	} {
		if a.trusted, a.secure = nil, test.secure; test.trusted {
			a.trusted = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} // of httptest's requests
		}
		r := httptest.NewRequest("GET", "/docs", nil)
		r.Host = test.host
		if test.proto != "" {
			r.Header.Set("X-Forwarded-Proto", test.proto)
		}
		if got := a.baseOf(r); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
	for i := range 3 * manyNames { // a client that invents names does not fill the memory
		fetched(a, "/docs", "n"+strings.Repeat("x", i)+".mx")
	}
	if n := len(a.references.byBase); n > manyNames {
		t.Errorf("%d names are kept", n)
	}
}

// TestReferenceHolds checks that the page has every route and code of openapi.json, and
// nothing that a browser would fetch or run.
func TestReferenceHolds(t *testing.T) {
	t.Parallel()
	a := newWorld(t, newMemStore()).api
	page := fetched(a, "/docs", "tienda.mx").Body.String()
	for _, r := range a.routes() {
		if !strings.Contains(page, ">"+r.pattern+"<") {
			t.Errorf("no %s", r.pattern)
		}
	}
	for code := range errorTable {
		if !strings.Contains(page, "<code>"+code+"</code>") {
			t.Errorf("no %s", code)
		}
	}
	for _, part := range []string{"<script", "<link", "<img", "src=", "@import", "url(", "<no value>", "ZgotmplZ", "base.invalid"} {
		if strings.Contains(page, part) {
			t.Errorf("the page has %s", part)
		}
	}
}
