//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sello/internal/disk"
	"sello/internal/logline"
	"sello/internal/throttle"
)

// Benchmarks of the steps of every request. The most frequent requests are also
// measured over HTTP on loopback, beside a no-op: a handler that only answers with a
// body of the same size.

// BenchmarkGetBalance measures one request at 64 connections. It also reports how many
// allocations the server makes beyond the no-op's, and its CPU time as a multiple of the
// no-op's.
func BenchmarkGetBalance(b *testing.B) {
	s := newHotServer(b)
	s.versusNoop(b, fmt.Sprintf("GET /api/v1/points/customers/%s/balance HTTP/1.1\r\n"+
		"Host: localhost\r\nAuthorization: Bearer %s\r\n\r\n", s.customer, s.key), http.StatusOK)
}

// BenchmarkAddPoints does the same for points/add of one customer. Its store does not
// sync, so the disk plays no part.
func BenchmarkAddPoints(b *testing.B) {
	s := newHotServer(b)
	body := `{"amount":10,"category":"Bonus","comment":"gracias"}`
	s.versusNoop(b, fmt.Sprintf("POST /api/v1/points/customers/%s/add HTTP/1.1\r\n"+
		"Host: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		s.customer, s.key, len(body), body), http.StatusCreated)
}

// A hotServer is an API with one organization and one customer.
type hotServer struct {
	engine   *engine
	handler  http.Handler
	key      string
	customer id
}

func newHotServer(b *testing.B) *hotServer {
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	store, err := openBolt(filepath.Join(b.TempDir(), "sello.db"), disk.Options{NoSync: true})
	must(err)
	b.Cleanup(func() { must(store.Close()) })
	log, err := os.Create(filepath.Join(b.TempDir(), "log"))
	must(err)
	b.Cleanup(func() { log.Close() })

	e := newEngine(store, time.Now, cryptoSeed)
	must(e.open(b.Context()))
	a := &admin{engine: e}
	_, err = a.apply(b.Context(), applyRequest{Document: demoDocument})
	must(err)
	k, err := a.createKey(b.Context(), keyRequest{Org: "cafe-luna", Name: "hot", RateLimit: 1e9})
	must(err)
	public := newAPIOf(e)
	public.lines = logline.NewWriter(log)
	s := &hotServer{engine: e, handler: public, key: k.Key}
	s.customer, err = write(b.Context(), e, 1, instantOf(time.Now()), func(t *txn) (id, error) {
		c, _, err := t.customers.enrol(enrolment{FirstName: "María", LastName: "García", Email: "maria@example.com", Phone: "+525512345678"})
		if err != nil {
			return id{}, err
		}
		return c.ID, nil
	})
	must(err)
	return s
}

// versusNoop sends a request b.N times to s and as often to the no-op, in alternating
// rounds.
func (s *hotServer) versusNoop(b *testing.B, request string, status int) {
	body := s.once(b, request, status)
	noop := http.NewServeMux() // routes as the API does
	noop.HandleFunc("/api/v1/points/customers/{id}/{what}", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Write(body)
	})
	own, bound := newHotLoad(b, s.handler, request), newHotLoad(b, noop, request)
	const rounds = 8
	for i := range rounds {
		n := (b.N + i) / rounds
		bound.run(b, n)
		b.StartTimer()
		own.run(b, n)
		b.StopTimer()
	}
	each := func(v int64) float64 { return float64(v) / float64(b.N) }
	b.ReportMetric(each(own.allocs-bound.allocs), "own-allocs/op")
	b.ReportMetric(float64(own.cpu)/float64(bound.cpu), "×noop")
	b.ReportMetric(each(int64(own.cpu)), "cpu-ns/op")
	b.ReportMetric(each(int64(bound.cpu)), "noop-cpu-ns/op")
	b.ReportMetric(float64(bound.wall)/float64(own.wall), "noop-throughput")
}

// once sends a request and returns the body of the answer.
func (s *hotServer) once(b *testing.B, request string, status int) []byte {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(request)))
	if err != nil {
		b.Fatal(err)
	}
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, r)
	if answer.Code != status {
		b.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	return answer.Body.Bytes()
}

// A hotLoad sends one request to one handler many times. Its client is another process,
// so all CPU time of this process is the server's.
type hotLoad struct {
	in     io.Writer
	out    *bufio.Reader
	allocs int64
	cpu    time.Duration
	wall   time.Duration
}

func newHotLoad(b *testing.B, h http.Handler, request string) *hotLoad {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	if a, ok := h.(*api); ok {
		listener = a.connections(listener)
	}
	server := newServer(h, slog.New(slog.DiscardHandler))
	go server.Serve(listener)
	client := exec.Command(os.Args[0], "-test.run=^TestHotClient$")
	client.Env = append(os.Environ(), "HOT_ADDR="+listener.Addr().String(), "HOT_REQUEST="+request)
	client.Stderr = os.Stderr
	in, err := client.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := client.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := client.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		client.Wait()
		server.Close()
	})
	l := &hotLoad{in: in, out: bufio.NewReader(out)}
	l.send(b, 1000) // to warm up
	return l
}

func (l *hotLoad) run(b *testing.B, n int) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, wall := cpuTime(), time.Now()
	l.send(b, n)
	l.wall += time.Since(wall)
	l.cpu += cpuTime() - cpu
	runtime.ReadMemStats(&after)
	l.allocs += int64(after.Mallocs - before.Mallocs)
}

func (l *hotLoad) send(b *testing.B, n int) {
	fmt.Fprintln(l.in, n)
	if line, err := l.out.ReadString('\n'); line != "done\n" {
		b.Fatalf("client: %q, %v", line, err)
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestHotClient is the client process of a hotLoad. For each number n that it reads, it
// sends n requests over 64 connections.
func TestHotClient(t *testing.T) {
	addr, request := os.Getenv("HOT_ADDR"), []byte(os.Getenv("HOT_REQUEST"))
	if addr == "" {
		t.Skip("for benchmarks")
	}
	const connections = 64
	turns := make(chan int)
	var sent sync.WaitGroup
	for range connections {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			var buf [8 << 10]byte
			for n := range turns {
				for range n {
					exchangeBytes(conn, request, buf[:])
				}
				sent.Done()
			}
		}()
	}
	for {
		var n int
		if _, err := fmt.Scanln(&n); err != nil {
			return
		}
		sent.Add(connections)
		for i := range connections {
			turns <- (n + i) / connections
		}
		sent.Wait()
		fmt.Println("done")
	}
}

// exchangeBytes sends a request and reads the answer, whose end it knows from
// Content-Length.
func exchangeBytes(conn net.Conn, request, buf []byte) {
	if _, err := conn.Write(request); err != nil {
		panic(err)
	}
	for have, want := 0, -1; have != want; {
		n, err := conn.Read(buf[have:])
		if err != nil {
			panic(err)
		}
		have += n
		head, _, ok := bytes.Cut(buf[:have], []byte("\r\n\r\n"))
		if want < 0 && ok {
			_, length, _ := bytes.Cut(head, []byte("Content-Length: "))
			length, _, _ = bytes.Cut(length, []byte("\r"))
			size, err := strconv.Atoi(string(length))
			if err != nil {
				panic(err)
			}
			want = len(head) + 4 + size
		}
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	s := newHotServer(b)
	now := instantOf(time.Now())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.engine.authenticate(b.Context(), s.key, nil, now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLimiterTake(b *testing.B) {
	s := newHotServer(b)
	l, k, now := newLimiter(), &apiKey{ID: id{1}, RateLimit: 1e9, DailyLimit: 1e9}, instantOf(time.Now())
	var a allowance
	h := http.Header{}
	b.ReportAllocs()
	for i := instant(0); b.Loop(); i++ {
		at := now + i/30 // thirty a millisecond
		if err := l.take(b.Context(), s.engine.store, k, at, &a); err != nil {
			b.Fatal(err)
		}
		a.setHeaders(h, at)
	}
}

func BenchmarkEncodeBalance(b *testing.B) {
	v := balance{
		ID: id{1}, CustomerID: id{2}, CurrencyID: id{3}, Balance: 1_234_5000, LifetimePoints: new(decimal(99_0000)), AsOf: 1_790_000_000_123,
		ExpiringPoints: []expiring{{10_0000, 1_800_000_000_000}, {20_0000, 1_810_000_000_000}},
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encode(v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLogLine(b *testing.B) {
	a := newAPIOf(newEngine(newMemStore(), time.Now, cryptoSeed))
	a.lines = logline.NewWriter(io.Discard)
	x := &exchange{
		api: a, started: time.Now(), status: 200, route: "/api/v1/points/customers/{customerId}/balance",
		key: (id{1}).String(), organization: "cafe-luna",
	}
	x.requestID[0] = "FIURQX7GAAAAAAAAAAAAAAAAAA"
	r := httptest.NewRequest("GET", "/", nil)
	b.ReportAllocs()
	for b.Loop() {
		x.finish(r)
	}
}

// BenchmarkServeBalance measures a GET of a balance without net/http's share.
func BenchmarkServeBalance(b *testing.B) {
	s := newHotServer(b)
	r := httptest.NewRequest("GET", fmt.Sprintf("/api/v1/points/customers/%s/balance", s.customer), nil)
	r.Header.Set("Authorization", "Bearer "+s.key)
	b.ReportAllocs()
	for b.Loop() {
		s.handler.ServeHTTP(discard{http.Header{}}, r)
	}
}

// BenchmarkPanelList measures the list of customers of the panel, and the request of the API
// that has the same rows, without net/http's share.
func BenchmarkPanelList(b *testing.B) {
	s := newPanelShop(b, setup{})
	must(s.shop, func(t *txn) (any, error) {
		for i := range 1000 {
			if _, _, err := t.customers.enrol(enrolment{FirstName: "María", LastName: "García", Email: fmt.Sprintf("maria%d@example.com", i), Phone: fmt.Sprintf("+5255%08d", 12340000+i)}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	s.panel.asked = throttle.Buckets[[32]byte, instant]{Burst: 1 << 30, Every: 1}
	_, key := s.shop.newKey(keyRequest{RateLimit: 1e9})
	for _, side := range []string{"api", "panel"} {
		b.Run(side, func(b *testing.B) {
			r := httptest.NewRequest("GET", panelBase+"/panel/clientes", nil)
			if side == "api" {
				r = httptest.NewRequest("GET", panelBase+"/api/v1/customers?limit=20", nil)
				r.Header.Set("Authorization", "Bearer "+key)
			} else {
				r.AddCookie(&http.Cookie{Name: s.panel.address.cookieName(), Value: s.tokens[roleOwner]})
			}
			b.ReportAllocs()
			for b.Loop() {
				s.api.ServeHTTP(discard{http.Header{}}, r)
			}
			if w := answerTo(s.api, r); w.Code != 200 {
				b.Fatal(w.Code, w.Body)
			}
		})
	}
}

// BenchmarkServeAdd measures a POST of points/add, with an Idempotency-Key, without
// net/http's share.
func BenchmarkServeAdd(b *testing.B) {
	s := newHotServer(b)
	target := fmt.Sprintf("/api/v1/points/customers/%s/add", s.customer)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r := httptest.NewRequest("POST", target, strings.NewReader(`{"amount":10,"category":"Bonus","comment":"gracias"}`))
		r.Header.Set("Authorization", "Bearer "+s.key)
		r.Header["Content-Type"] = jsonType
		r.Header["Idempotency-Key"] = []string{strconv.Itoa(i)}
		s.handler.ServeHTTP(discard{http.Header{}}, r)
	}
}
