package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/localcall"
)

// serveLocally starts a server without a log on a free port.
func serveLocally(t *testing.T, h http.HandlerFunc) (server *http.Server, addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server = newServer(h, slog.New(slog.DiscardHandler))
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return server, listener.Addr().String()
}

// TestServerTimeouts: internal/unwatched takes a read without a deadline for net/http's own.
func TestServerTimeouts(t *testing.T) {
	t.Parallel()
	if s := newServer(nil, slog.New(slog.DiscardHandler)); min(s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout) <= 0 {
		t.Errorf("%+v", s)
	}
}

// TestStopUnread stops a server with a client that does not read its answer. The client
// is cut off when the timeout is over.
func TestStopUnread(t *testing.T) {
	var log bytes.Buffer
	writing := make(chan struct{})
	server, addr := serveLocally(t, func(w http.ResponseWriter, _ *http.Request) {
		close(writing)
		for err := error(nil); err == nil; { // more than any buffer holds
			_, err = w.Write(make([]byte, 1<<20))
		}
	})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-writing
	began := time.Now()
	shutDown(slog.New(slog.NewTextHandler(&log, nil)), 100*time.Millisecond, server)
	if took := time.Since(began); took < 100*time.Millisecond || took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if !strings.Contains(log.String(), "connections cut off") {
		t.Error(log.String())
	}
}

// TestSocketNames finds the socket of a server by each name of its file, for a short path
// and for one too long for a socket.
func TestSocketNames(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("making a link needs a right")
	}
	s := newTill(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	deep := filepath.Join(s.dir, strings.Repeat("d", 60), strings.Repeat("e", 60))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(s.dir, "a.db"), filepath.Join(deep, "b.db")} {
		s.env["SELLO_DB"] = file
		s.ok("apply -", string(demoDocument))
		server, _ := s.start("serve")
		link := filepath.Join(s.dir, "link-"+filepath.Base(file))
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{file, link} {
			s.ok("export -org cafe-luna -db " + name) // fails if it does not reach the server
		}
		socket, err := localcall.Path(file)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(socket)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", socket, info, err)
		}
		if dir, _ := os.Stat(filepath.Dir(socket)); filepath.Dir(socket) != filepath.Dir(file) && dir.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v", socket, dir.Mode())
		}
		server.stop()
	}
}

// TestServeNowhere checks that a server that cannot listen creates no file.
func TestServeNowhere(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := newTill(t)
	if code, _, errs := s.run("serve -addr " + taken.Addr().String()); code != 1 || !strings.Contains(errs, "no se puede escuchar en") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, err := os.Stat(s.env["SELLO_DB"]); !os.IsNotExist(err) {
		t.Errorf("there is a file: %v", err)
	}
}

// TestDemoLeavesAlone starts the demo again on its file, whose sample was changed meanwhile.
// The demo adds a key and changes nothing else.
func TestDemoLeavesAlone(t *testing.T) {
	skipShort(t)
	s := newTill(t)
	first, out := s.start("demo -json")
	if err := json.NewDecoder(out).Decode(new(demoStarted)); err != nil {
		t.Fatal(err)
	}
	first.stop()
	s.ok("apply -", strings.Replace(string(demoDocument), `"Café Luna"`, `"Café Sol"`, 1))
	before := s.ok("export -org cafe-luna")
	server, out := s.start("demo -json")
	var started demoStarted
	if err := json.NewDecoder(out).Decode(&started); err != nil {
		t.Fatal(err)
	}
	if started.Base != server.base || started.ExpiresAt == 0 {
		t.Errorf("%+v, served at %s", started, server.base)
	}
	if _, body := server.get("/customers", started.Key); !madeUpTotal.MatchString(body) {
		t.Errorf("other customers: %s", body)
	}
	if after := s.ok("export -org cafe-luna"); after != before {
		t.Errorf("the configuration became %s", after)
	}
}

// TestPanelOff: a server that other machines reach serves no panel unless it is told the
// panel's address. The log says so, unless -panel off did.
func TestPanelOff(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		addr, panel string
		told        bool
	}{
		{"0.0.0.0:0", "", true},
		{"127.0.0.1:0", "", false},
		{"0.0.0.0:0", "off", false},
		{"0.0.0.0:0", "https://puntos.example.mx", false},
	} {
		t.Run(test.addr+" "+test.panel, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", test.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			var log bytes.Buffer
			c := &invocation{panel: test.panel, panelIdle: usualSessionLimits().idle, panelLongest: usualSessionLimits().longest}
			if err := c.checkPanel(); err != nil {
				t.Fatal(err)
			}
			s := &service{api: newWorld(t, newMemStore()).api, listener: l, log: slog.New(slog.NewJSONHandler(&log, nil))}
			s.openPanel(c)
			if told := strings.Contains(log.String(), `"msg":"panel off"`) && strings.Contains(log.String(), "-panel https://"); told != test.told {
				t.Errorf("told: %t, want %t: %s", told, test.told, log.String())
			}
		})
	}
}

// TestStoreAnswers: the server is healthy unless its store hangs.
func TestStoreAnswers(t *testing.T) {
	t.Parallel()
	hung := hungStore{newMemStore(), make(chan struct{})}
	defer close(hung.release)
	for want, store := range map[bool]Store{false: hung, true: newMemStore()} {
		a := newAPIOf(newEngine(store, time.Now, cryptoSeed))
		if got := a.storeAnswers(t.Context(), 20*time.Millisecond); got != want {
			t.Errorf("the store answers: %t, want %t", got, want)
		}
	}
}

// TestServeNotifies: the server says that it is ready once it answers, gives signs of life,
// and says that it stops.
func TestServeNotifies(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "s")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { socket.Close() })
	told := func() string {
		b := make([]byte, 100)
		n, err := socket.Read(b)
		if err != nil {
			t.Error(err)
		}
		return string(b[:n])
	}
	s := newTill(t)
	s.env["NOTIFY_SOCKET"], s.env["WATCHDOG_USEC"] = name, "20000000"
	r, _ := s.start("serve")
	first := []string{told(), told()}
	slices.Sort(first)
	if !slices.Equal(first, []string{"READY=1", "WATCHDOG=1"}) {
		t.Errorf("told %q", first)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if got := told(); got != "STOPPING=1" {
		t.Errorf("at the end: %q", got)
	}
}

// visit opens a page of an address with a Host header, and returns its status and body.
func (r *running) visit(addr, host, path string, headers ...string) (int, string) {
	r.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	req.Host = host
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return r.answer(http.DefaultTransport.RoundTrip(req)) // no redirect is followed
}

// addr is the address of the API.
func (r *running) addr() string {
	return strings.TrimSuffix(strings.TrimPrefix(r.base, "http://"), "/api/v1")
}

// enrolled makes a customer and returns the path of what is the customer's.
func (r *running) enrolled(key, body string) string {
	r.Helper()
	status, answer := r.send(http.MethodPost, "/customers", key, body)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(answer), &made); err != nil || status != http.StatusCreated {
		r.Fatalf("%d %s", status, answer)
	}
	return "/customers/" + made.ID
}

// issued gives a customer a card and returns its token.
func (r *running) issued(customer, key string) string {
	r.Helper()
	status, answer := r.send(http.MethodPost, customer+"/card", key, "")
	var made struct{ URL string }
	if err := json.Unmarshal([]byte(answer), &made); err != nil || status != http.StatusCreated {
		r.Fatalf("%d %s", status, answer)
	}
	token, ok := strings.CutPrefix(made.URL, cardsBase+"/t/")
	if !ok || len(token) != tokenLength {
		r.Fatalf("the address of a card is %s", made.URL)
	}
	return token
}

// TestCardsServed: cards answer at their name, which has nothing else, or at an address of their
// own whatever the name is, and the API and the panel have none.
func TestCardsServed(t *testing.T) {
	t.Parallel()
	const gone, noRoute, opens = "Esta tarjeta ya no vale", "route_not_found", "Muéstralo en caja"
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	key, _ := s.key("-name todas")

	r, _ := s.start("serve -cards " + cardsBase)
	ana := r.enrolled(key, `{"email":"ana@example.com"}`)
	card := "/t/" + r.issued(ana, key)
	if r.cards != "" {
		t.Errorf("cards listen at %s", r.cards)
	}
	r.wantVisit(r.addr(), "/panel", http.StatusSeeOther, "", "127.0.0.1", "localhost:8080")
	r.wantVisit(r.addr(), "/api/v1/customers", http.StatusUnauthorized, "", "127.0.0.1", "x.club.test")
	r.wantVisit(r.addr(), card, http.StatusNotFound, noRoute, "127.0.0.1", "localhost", "puntos.test", "club.test.evil.test", "xclub.test")
	for _, host := range []string{cardsHost, "CLUB.test", "Club.Test:8443"} {
		r.wantVisit(r.addr(), card, http.StatusOK, opens, host)
		for _, path := range []string{"/", "/panel", "/panel/login", "/api/v1/customers", "/livez", "/t/x"} {
			r.wantVisit(r.addr(), path, http.StatusNotFound, gone, host)
		}
	}
	s.stopped(r, false)

	r, _ = s.start("serve -cards " + cardsBase) // again
	r.wantVisit(r.addr(), card, http.StatusOK, opens, cardsHost)
	s.stopped(r, false)

	r, _ = s.start("serve -cards-addr 127.0.0.1:0 -cards " + cardsBase)
	for _, host := range []string{cardsHost, "127.0.0.1", "localhost:1", "puntos.test"} {
		r.wantVisit(r.cards, card, http.StatusOK, opens, host)
		r.wantVisit(r.cards, "/panel", http.StatusNotFound, gone, host)
		r.wantVisit(r.cards, "/api/v1/customers", http.StatusNotFound, gone, host)
		r.wantVisit(r.addr(), card, http.StatusNotFound, noRoute, host)
	}
	own := r.cards
	s.stopped(r, false)
	if conn, err := net.DialTimeout("tcp", own, time.Second); err == nil {
		conn.Close()
		t.Error("the listener of -cards-addr is open after the server's end")
	}

	r, _ = s.start("serve -cards http://192.168.1.10:8090")
	r.wantVisit(r.addr(), card, http.StatusOK, opens, "192.168.1.10:8090")
	s.stopped(r, true)
	r, _ = s.start("serve -cards http://127.0.0.1:8090 -cards-addr 127.0.0.1:0")
	s.stopped(r, false)

	r, _ = s.start("serve")
	r.wantVisit(r.addr(), card, http.StatusNotFound, noRoute, cardsHost, "127.0.0.1")
	if status, answer := r.send(http.MethodPost, ana+"/card", key, ""); status != http.StatusBadRequest || !strings.Contains(answer, `"cards_disabled"`) {
		t.Errorf("issued without -cards: %d %s", status, answer)
	}
	if status, answer := r.send(http.MethodPost, ana+"/card/revoke", key, ""); status != http.StatusOK {
		t.Errorf("revoked without -cards: %d %s", status, answer)
	}
	s.stopped(r, false)
	r, _ = s.start("serve -cards " + cardsBase)
	r.wantVisit(r.addr(), card, http.StatusNotFound, gone, cardsHost)
	s.stopped(r, false)
}

// wantVisit opens a path of an address by each of its names.
func (r *running) wantVisit(addr, path string, status int, text string, hosts ...string) {
	r.Helper()
	for _, host := range hosts {
		if got, body := r.visit(addr, host, path); got != status || !strings.Contains(body, text) {
			r.Errorf("GET %s of %q at %s: %d, want %d and %q\n%s", path, host, addr, got, status, text, body)
		}
	}
}

// stopped stops a server whose log warns, or does not, of cards without TLS.
func (s *till) stopped(r *running, warns bool) {
	s.Helper()
	if code := r.stop(); code != 0 || strings.Contains(r.log.String(), `"msg":"cards without TLS"`) != warns {
		s.Errorf("exit %d, want a warning: %t\n%s", code, warns, r.log)
	}
}
