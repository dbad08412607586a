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
