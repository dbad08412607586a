package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Load that the server cannot carry, from clients that mean well and others.
// What it costs in time and memory is measured by TestOverloadLong.

// TestGate fills a server with connections: those within the bounds are
// served, the next one is told why not, and one that ends makes room.
func TestGate(t *testing.T) {
	for _, test := range []struct {
		name                string
		most, mostPerSource int
		carriers            []netip.Prefix
		want                int // connections that are served, of 12
	}{
		{"per source", 100, 5, nil, 5},
		{"in all", 10, 100, nil, 5}, // half: no source has more than are free
		{"a carrier", 8, 2, loopback[:], 8},
		{"without bounds", 1000, 1000, nil, 12}, // control: it is the bounds that refuse
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := serveGate(t, test.most, test.mostPerSource, test.carriers)
			var open []net.Conn
			refused := 0
			for range 12 {
				conn, res := askNew(t, g.Addr().String())
				switch res.StatusCode {
				case http.StatusOK:
					open = append(open, conn)
				case http.StatusServiceUnavailable:
					refused++
				default:
					t.Fatal(res.Status)
				}
			}
			if len(open) != test.want || refused != 12-test.want {
				t.Fatalf("%d were served and %d refused, want %d served", len(open), refused, test.want)
			}
			open[0].Close()
			for status := 0; status != http.StatusOK; { // until it has noticed
				conn, res := askNew(t, g.Addr().String())
				if status = res.StatusCode; status != http.StatusOK {
					conn.Close()
				}
			}
		})
	}
}

// serveGate serves a handler that is content, behind a gate.
func serveGate(t *testing.T, most, mostPerSource int, carriers []netip.Prefix) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	g := newGate(l.(*net.TCPListener), most, mostPerSource, carriers, log)
	server := newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), log)
	go server.Serve(g)
	t.Cleanup(func() { server.Close() })
	return g
}

// askNew makes a request on a new connection, and checks a refusal.
func askNew(t *testing.T, host string) (net.Conn, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode == http.StatusServiceUnavailable {
		var e errorBody
		if err := json.Unmarshal(body, &e); err != nil || e.Code != "unavailable" || e.StatusCode != res.StatusCode || !res.Close ||
			e.Message != codeUnavailable.message || e.RequestID != res.Header.Get("X-Request-Id") ||
			!madeRequestID.MatchString(e.RequestID) || res.Header.Get("Retry-After") != "1" || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("refused with %v %s", res.Header, body)
		}
	}
	return conn, res
}

// TestGateFlood makes more connections than can be refused with words: they
// are closed, and nobody else notices.
func TestGateFlood(t *testing.T) {
	g := serveGate(t, 100, 1, nil)
	good, _ := askNew(t, g.Addr().String())
	var silent []net.Conn
	for range maxUshers + 20 {
		conn, err := net.Dial("tcp", g.Addr().String())
		if err != nil {
			continue // it was closed sooner than that
		}
		defer conn.Close()
		silent = append(silent, conn)
	}
	closed := make(chan bool)
	for _, conn := range silent {
		go func() {
			conn.SetDeadline(time.Now().Add(time.Minute))
			_, err := conn.Read(make([]byte, 1))
			closed <- err != nil
		}()
	}
	for range silent {
		if !<-closed {
			t.Error("a client that asked nothing got an answer")
		}
	}
	if len(silent) < maxUshers {
		t.Errorf("%d connections were made", len(silent))
	}
	fmt.Fprint(good, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(good), nil); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the connection within the bounds: %v, %v", res, err)
	}
}

// TestGateShares lets sources come and go at random and holds what is let in
// against the bounds. At the end nothing is left of them.
func TestGateShares(t *testing.T) {
	const most, mostPerSource = 60, 20
	type faults struct{ most, source, newcomer int }
	play := func(g *gate, rnd *rand.Rand) (f faults) {
		open := map[string]int{}
		all := 0
		for range 5000 {
			peer := &net.TCPAddr{IP: net.IPv4(203, 0, 113, byte(rnd.IntN(9))), Port: 1}
			if n := open[peer.String()]; n > 0 && rnd.IntN(3) == 0 {
				g.leave(sourceOf(peer.AddrPort().Addr()))
				open[peer.String()]--
				all--
				continue
			}
			if _, ok := g.admit(peer); ok {
				open[peer.String()]++
				all++
			} else if all < most && open[peer.String()] == 0 {
				f.newcomer++
			}
			f.most += max(0, all-most)
			f.source += max(0, open[peer.String()]-mostPerSource)
		}
		for peer, n := range open {
			for range n {
				g.leave(sourceOf(netip.MustParseAddrPort(peer).Addr()))
			}
		}
		return f
	}
	histories(t, 20, func(t *testing.T, rnd *rand.Rand) {
		g := newGate(nil, most, mostPerSource, nil, nil)
		if f := play(g, rnd); f != (faults{}) {
			t.Errorf("beyond the bounds, or against a newcomer: %+v", f)
		}
		if g.open != 0 || len(g.bySource) != 0 {
			t.Errorf("%d open, %v", g.open, g.bySource)
		}
		if f := play(newGate(nil, 1000, 1000, nil, nil), rnd); f.most == 0 || f.source == 0 {
			t.Errorf("control: no bounds, and nothing is seen: %+v", f)
		}
	})
	g := newGate(nil, 100, 2, nil, nil)
	for i, test := range []struct {
		peer string
		want bool
	}{
		{"[2001:db8::1]:1", true}, {"[2001:db8::2]:1", true}, {"[2001:db8::3]:1", false}, {"[2001:db8:0:1::1]:1", true},
		{"203.0.113.1:1", true}, {"[::ffff:203.0.113.1]:1", true}, {"203.0.113.1:2", false}, {"203.0.113.2:1", true},
	} {
		if _, ok := g.admit(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(test.peer))); ok != test.want {
			t.Errorf("%d: %s was let in: %t", i, test.peer, ok)
		}
	}
}

// TestServeBounds finds the flags in effect: the loopback is bounded in all,
// not as one source.
func TestServeBounds(t *testing.T) {
	s := newTill(t)
	for _, flags := range []string{"-max-conns 0", "-max-conns-per-source -1"} {
		if code, _, errs := s.run("serve " + flags); code != 2 || !strings.Contains(errs, "mayores a 0") {
			t.Errorf("%s: exit %d: %s", flags, code, errs)
		}
	}
	server, _ := s.start("serve -max-conns 3 -max-conns-per-source 1")
	host := strings.TrimSuffix(strings.TrimPrefix(server.base, "http://"), "/api/v1")
	for i := range 5 {
		if _, res := askNew(t, host); (res.StatusCode == http.StatusOK) != (i < 3) {
			t.Errorf("connection %d: %s", i+1, res.Status)
		}
	}
}

// TestSourceLimits shows when a source has to wait and that the memory of
// sources is bounded.
func TestSourceLimits(t *testing.T) {
	now := instantOf(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	home, away := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2")
	var l sourceLimits
	takes := func(source netip.Addr, at instant) (n int, wait instant) {
		for n < 10_000 {
			if wait = l.take(source, at); wait > 0 {
				break
			}
			n++
		}
		return n, wait
	}
	for _, test := range []struct {
		reason string
		source netip.Addr
		after  instant
		want   int
	}{
		{"a new one", home, 0, maxRefusals},
		{"at once", home, 0, 0},
		{"another", away, 0, maxRefusals},
		{"a moment before the next", home, refusalEvery - 1, 0},
		{"the next", home, 1, 1},
		{"five in a second", home, 1000, 5},
		{"a minute", home, minuteMillis, maxRefusals},
		{"no more than that is saved up", home, 10 * minuteMillis, maxRefusals},
		{"the clock was set back by an hour", home, -60 * minuteMillis, maxRefusals},
	} {
		now += test.after
		if n, wait := takes(test.source, now); n != test.want || wait < 1 || wait > refusalEvery {
			t.Errorf("%s: %d, then wait %d ms; want %d", test.reason, n, wait, test.want)
		}
	}
	for i := range uint32(5 * maxSources) {
		l.take(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
		if n := len(l.recent) + len(l.before); n > 2*maxSources {
			t.Fatalf("%d sources are remembered", n)
		}
	}
	if n, _ := takes(netip.AddrFrom4([4]byte{10, byte((5*maxSources - 1) >> 16), byte((5*maxSources - 1) >> 8 & 255), byte((5*maxSources - 1) & 255)}), now); n != maxRefusals-1 {
		t.Errorf("the last one may %d more", n)
	}
}

// An accessedStore counts all that reaches it.
type accessedStore struct {
	Store
	n atomic.Int64
}

func (s *accessedStore) View(ctx context.Context, fn func(Tx) error) error {
	s.n.Add(1)
	return s.Store.View(ctx, fn)
}

func (s *accessedStore) Update(ctx context.Context, fn func(Tx) error) error {
	s.n.Add(1)
	return s.Store.Update(ctx, fn)
}

// TestFloods sends a thousand requests of every kind that shows no good key,
// from one source. None of them reaches the store, all but a few are 429, and
// neither a good key from there nor another source notices.
func TestFloods(t *testing.T) {
	store := &accessedStore{Store: newMemStore()}
	defer store.Close()
	clock := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	e := newEngine(store, func() time.Time { return clock }, cryptoSeed)
	a := newAPI(e, nil, slog.New(slog.DiscardHandler))
	adm := &admin{engine: e, flush: flushOf(a)}
	if err := e.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.apply(t.Context(), applyRequest{Document: demoDocument}); err != nil {
		t.Fatal(err)
	}
	newKey := func() string {
		k, err := adm.createKey(t.Context(), keyRequest{Org: "cafe-luna", Name: "k", RateLimit: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		return k.Key
	}
	ask := func(peer, path, key string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		r.RemoteAddr = peer + ":1"
		if key != "" {
			r.Header.Set("X-API-Key", key)
		}
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w
	}
	const home, away = "203.0.113.1", "203.0.113.2"
	const path = "/api/v1/segments"
	good := newKey()
	ask(away, path, newAPIKey([32]byte{1})) // so that all keys are known
	made := byte(0)
	flood := func(path string, key func() string) (statuses map[int]int, accesses int64) {
		statuses = map[int]int{}
		before := store.n.Load()
		for range 1000 {
			w := ask(home, path, key())
			statuses[w.Code]++
			if w.Code == http.StatusTooManyRequests && (w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"rate_limit_source"`)) {
				t.Fatalf("%v %s", w.Header(), w.Body)
			}
		}
		return statuses, store.n.Load() - before
	}
	nobodys := func() string { made++; return newAPIKey([32]byte{2, made, byte(len(good))}) }
	for _, test := range []struct {
		reason string
		path   string
		key    func() string
		want   map[int]int
	}{
		{"no key", path, func() string { return "" }, map[int]int{401: maxRefusals, 429: 1000 - maxRefusals}},
		{"no form", path, func() string { return "sello_x" }, map[int]int{401: maxRefusals, 429: 1000 - maxRefusals}},
		{"nobody's", path, nobodys, map[int]int{401: maxRefusals, 429: 1000 - maxRefusals}},
		{"no route", "/api/v1/none", nobodys, map[int]int{404: 1000}},
	} {
		a.refused = sourceLimits{}
		statuses, accesses := flood(test.path, test.key)
		if fmt.Sprint(statuses) != fmt.Sprint(test.want) || accesses != 0 {
			t.Errorf("%s: %v and %d accesses to the store, want %v and none", test.reason, statuses, accesses, test.want)
		}
	}
	flood(path, nobodys)
	for range 400 {
		if w := ask(home, path, good); w.Code != http.StatusOK {
			t.Fatalf("a good key from the source of the flood: %d", w.Code)
		}
	}
	if w := ask(home, path, newKey()); w.Code != http.StatusOK {
		t.Errorf("one that was made meanwhile: %d", w.Code)
	}
	if w := ask(away, path, ""); w.Code != http.StatusUnauthorized {
		t.Errorf("another source: %d", w.Code)
	}
	if statuses, accesses := flood("/readyz", func() string { return "" }); statuses[200] != 1000 || accesses != maxRefusals {
		t.Errorf("/readyz: %v and %d accesses, want %d", statuses, accesses, maxRefusals)
	}

	// Controls: without the index and without the limits it shows.
	forgetful := func() string {
		e.store.keys.mu.Lock()
		e.store.keys.whole = false
		e.store.keys.mu.Unlock()
		a.refused = sourceLimits{}
		return nobodys()
	}
	if statuses, accesses := flood(path, forgetful); statuses[401] != 1000 || accesses != 1000 {
		t.Errorf("control: %v and %d accesses", statuses, accesses)
	}
}

// TestKeyIndexDamaged cannot read all keys: those that can be read are good.
func TestKeyIndexDamaged(t *testing.T) {
	s := newShop(t, setup{})
	_, text := s.newKey(keyRequest{})
	damaged := newEngine(noScans{s.store.Store}, s.now, s.seed)
	_, err := damaged.authenticate(t.Context(), text, nil, s.clock)
	s.want(err, "")
	_, err = damaged.authenticate(t.Context(), newAPIKey([32]byte{1}), nil, s.clock)
	s.want(err, "api_key_invalid")
}

// noScans is a store in which no list can be read.
type noScans struct{ Store }

func (s noScans) View(ctx context.Context, fn func(Tx) error) error {
	return s.Store.View(ctx, func(tx Tx) error { return fn(noScansTx{tx}) })
}

type noScansTx struct{ Tx }

func (noScansTx) Scan(_, _ []byte, _ bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) { yield(Entry{}, errOnFire) }
}

// TestRoom posts bodies that get stuck half-way: as many are held as there is
// room for, the others are refused in time, and those that are small, or send
// nothing, have nothing to do with it.
func TestRoom(t *testing.T) {
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
				s := newRoomShop(t)
				s.api.bodies = newRoom(test.units)
				s.api.parsing = newRoom(100)
				release := make(chan struct{})
				var held atomic.Int64
				codes := make(chan int, 6)
				for range cap(codes) {
					go func() {
						body := strings.NewReader(fmt.Sprintf(`{"amount":1,"x":%q}`, strings.Repeat("x", 2*roomUnit-100)))
						size, sent, stuck := body.Len(), 0, false
						w := s.post(size, readerFunc(func(p []byte) (int, error) {
							if sent >= test.sendsOnly && !stuck {
								stuck = true
								if sent > smallBody {
									held.Add(1)
								}
								<-release
							}
							if !stuck {
								p = p[:min(len(p), test.sendsOnly-sent)]
							}
							n, err := body.Read(p)
							sent += n
							return n, err
						}))
						codes <- w.Code
					}()
				}
				time.Sleep(patience / 2)
				if w := s.post(12, strings.NewReader(`{"amount":1}`)); w.Code != http.StatusCreated {
					t.Errorf("a small body meanwhile: %d", w.Code)
				}
				time.Sleep(patience)
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

// TestRoomForReads has no room for large requests: lists are refused in time,
// and small requests are not. Answers wait for room as well.
func TestRoomForReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRoomShop(t)
		for range 100 {
			s.add(s.ana, "1", 0)
		}
		ledger := "/api/v1/points/customers/" + s.ana.String() + "/movements?limit="
		balance := "/api/v1/points/customers/" + s.ana.String() + "/balance"
		want := func(path string, status int, why string) {
			t.Helper()
			w := s.get(path)
			if w.Code != status || status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") != "1" {
				t.Errorf("%s: %d %v, want %d: %s", path, w.Code, w.Header(), status, why)
			}
			s.empty()
		}
		if w := s.get(ledger + "100"); w.Code != http.StatusOK || w.Body.Len() <= smallAnswer {
			t.Fatalf("%d, %d bytes", w.Code, w.Body.Len())
		}
		s.api.answers = newRoom(0)
		want(ledger+"100", http.StatusServiceUnavailable, "no room for the answer")
		want(ledger+"10", http.StatusOK, "a short answer")
		s.api.reading = newRoom(0)
		for _, large := range []string{ledger + "1", "/api/v1/customers", "/api/v1/statistics"} {
			want(large, http.StatusServiceUnavailable, "no processor for lists")
		}
		want(balance, http.StatusOK, "a small request")
		want("/livez", http.StatusOK, "health")
		want("/readyz", http.StatusOK, "health")
	})
}

// A roomShop is a shop with an API and a customer.
type roomShop struct {
	*shop
	api *api
	key string
	ana id
}

func newRoomShop(t *testing.T) *roomShop {
	s := &roomShop{shop: newShop(t, setup{})}
	_, s.key = s.newKey(keyRequest{RateLimit: 10_000})
	s.api = newAPI(s.engine, nil, slog.New(slog.DiscardHandler))
	s.ana = s.customer("ana")
	return s
}

func (s *roomShop) get(path string) *httptest.ResponseRecorder {
	return s.send(httptest.NewRequest("GET", path, nil))
}

func (s *roomShop) post(size int, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/api/v1/points/customers/"+s.ana.String()+"/add", body)
	r.Header["Content-Type"], r.ContentLength = jsonType, int64(size)
	return s.send(r)
}

func (s *roomShop) send(r *http.Request) *httptest.ResponseRecorder {
	r.Header.Set("X-API-Key", s.key)
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	return w
}

// empty holds that nobody has kept any room.
func (s *roomShop) empty() {
	s.Helper()
	for _, r := range []*room{s.api.reading, s.api.parsing, s.api.bodies, s.api.answers} {
		if len(r.taken)+len(r.turn) > 0 {
			s.Errorf("%d units and %d turns are still taken", len(r.taken), len(r.turn))
		}
	}
}
