package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/gate"
	"sello/internal/lastword"
)

// Tests of more connections than the server accepts. TestOverloadLong measures
// what overload costs in time and memory.

// TestGate fills a server with connections. Those within the bounds must be served
// and the next refused with a reason. A connection that ends must make room.
func TestGate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                string
		most, mostPerSource int
		carriers            []netip.Prefix
		want                int // connections that are served, of 12
	}{
		{"per source", 100, 5, nil, 5},
		{"in all", 10, 100, nil, 5}, // half: a source gets no more than are left free
		{"a carrier", 8, 2, loopback[:], 8},
		{"without bounds", 1000, 1000, nil, 12}, // the control: only the bounds refuse
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := serveGate(t, test.most, test.mostPerSource, test.carriers, nil)
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
			for status := 0; status != http.StatusOK; { // until the server has noticed
				conn, res := askNew(t, g.Addr().String())
				if status = res.StatusCode; status != http.StatusOK {
					conn.Close()
				}
			}
		})
	}
}

// serveGate serves a handler that answers 200, behind a gate.
func serveGate(t *testing.T, most, mostPerSource int, carriers []netip.Prefix, page func(http.Header) []byte) *gate.Gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	g := newGate(l.(*net.TCPListener), most, mostPerSource, carriers, page, log)
	server := newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), log)
	go server.Serve(g)
	t.Cleanup(func() { server.Close() })
	return g
}

// askFor makes a request, such as "GET /livez", on a new connection.
func askFor(t *testing.T, host, line string) (net.Conn, *http.Response, []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprint(conn, line+" HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return conn, res, body
}

// askNew makes a request on a new connection. If it is refused, askNew checks how.
func askNew(t *testing.T, host string) (net.Conn, *http.Response) {
	t.Helper()
	conn, res, body := askFor(t, host, "GET /livez")
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

// TestGatePage: where there is no room, the panel answers with a page, and the API with JSON.
// Panel check 22.
func TestGatePage(t *testing.T) {
	t.Parallel()
	g := serveGate(t, 0, 0, nil, fullPage(allTexts()))
	for _, test := range []struct {
		line string
		page bool
	}{
		{"GET /panel", true}, {"POST /panel/entrar", true}, {"GET /panel/caja?q=5587654321", true},
		{"GET /", false}, {"GET /panelx", false}, {"GET /api/v1/organization?de=/panel", false},
	} {
		_, res, body := askFor(t, g.Addr().String(), test.line)
		page := strings.Contains(string(body), tr(speaking("es"), "error.full")) && strings.Contains(string(body), tr(speaking("en"), "error.full")) &&
			res.Header.Get("Content-Type") == htmlType[0] && missingHeaders(res.Header) == ""
		if res.StatusCode != http.StatusServiceUnavailable || page != test.page || !page && !json.Valid(body) {
			t.Errorf("%s: %s %v\n%s", test.line, res.Status, res.Header, body)
		}
	}
}

// TestGateFlood makes more connections than can be refused with an answer. They
// must be closed, and an earlier connection must still be served.
func TestGateFlood(t *testing.T) {
	t.Parallel()
	g := serveGate(t, 100, 1, nil, nil)
	good, _ := askNew(t, g.Addr().String())
	var silent []net.Conn
	for range gate.MaxAnswering + 20 {
		conn, err := net.Dial("tcp", g.Addr().String())
		if err != nil {
			continue // it was closed before Dial returned
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
	if len(silent) < gate.MaxAnswering {
		t.Errorf("%d connections were made", len(silent))
	}
	fmt.Fprint(good, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(good), nil); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the connection within the bounds: %v, %v", res, err)
	}
}

// TestGateSources: one subscriber of IPv6 is one source.
func TestGateSources(t *testing.T) {
	t.Parallel()
	of := newGate(nil, 1, 1, nil, nil, nil).SourceOf
	one := of(netip.MustParseAddr("2001:db8::1"))
	if of(netip.MustParseAddr("2001:db8::2")) != one || of(netip.MustParseAddr("2001:db8:0:1::1")) == one {
		t.Error(one)
	}
}

// TestServeBounds checks that the flags take effect. Connections from the loopback
// are bounded in total, not per source.
func TestServeBounds(t *testing.T) {
	t.Parallel()
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

// A wireTap is a connection that records the calls of its methods.
type wireTap struct {
	net.Conn
	written bytes.Buffer
	done    []string
	unread  io.Reader
}

func (w *wireTap) Write(b []byte) (int, error) {
	w.done = append(w.done, "write")
	return w.written.Write(b)
}

func (w *wireTap) Read(b []byte) (int, error) {
	w.done = append(w.done, "read")
	return w.unread.Read(b)
}

func (w *wireTap) CloseWrite() error {
	w.done = append(w.done, "close")
	return nil
}

func (w *wireTap) SetReadDeadline(time.Time) error { return nil }

func newWire(t *testing.T, unread string) (*wireTap, net.Conn) {
	w := &wireTap{unread: strings.NewReader(unread)}
	return w, lastword.Refuse(w, newWorld(t, newMemStore()).api.refusalOf)
}

// TestRefusal checks that our refusal replaces net/http's, in however many pieces
// that is written. Then what the client still sends is read, so that the answer is
// not lost.
func TestRefusal(t *testing.T) {
	t.Parallel()
	const plain = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	for theirs, want := range map[string]string{
		"HTTP/1.1 400 Bad Request" + plain + "400 Bad Request":                                         "400 bad_request",
		"HTTP/1.1 400 Bad Request: malformed Host header" + plain + "400 Bad Request: malformed":       "400 bad_request",
		"HTTP/1.1 431 Request Header Fields Too Large" + plain + "431":                                 "431 headers_too_large",
		"HTTP/1.1 501 Not Implemented" + plain + "Unsupported transfer encoding":                       "400 bad_request",
		"HTTP/1.1 505 HTTP Version Not Supported: x" + plain + "505":                                   "400 bad_request",
		"HTTP/1.0 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 0\r\nDate: x\r\n\r\n": "417 expectation_failed",
		"HTTP/1.1 500 Whatever Comes Next\r\n\r\n<html>":                                               "400 bad_request",
	} {
		w, c := newWire(t, strings.Repeat("x", 3*lastword.LingerBytes))
		for i, text := range []string{theirs, "more of it", "HTTP/1.1 200 OK\r\n\r\n"} {
			if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%s: write %d: %d, %v", want, i, n, err)
			}
		}
		left, _ := io.ReadAll(w.unread)
		if w.done = slices.Compact(w.done); !slices.Equal(w.done, []string{"write", "close", "read"}) || len(left) < lastword.LingerBytes {
			t.Errorf("%s: %q, %d bytes not read", want, w.done, len(left))
		}
		res, err := http.ReadResponse(bufio.NewReader(&w.written), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		var e errorBody
		json.Unmarshal(body, &e)
		if got := fmt.Sprint(res.StatusCode, " ", e.Code); got != want || !res.Close || res.Header.Get("Date") == "" {
			t.Errorf("%q: got %s %v %s, want %s", theirs, got, res.Header, body, want)
		}
		for _, fault := range faultsOf(step{}, res, body, "") {
			t.Errorf("%s: %s: %v %s", want, fault, res.Header, body)
		}
	}
}

// TestRefusalServed checks that `sello serve` refuses in this way, and logs each
// refusal like any request, without text that the client sent.
func TestRefusalServed(t *testing.T) {
	t.Parallel()
	server, _ := newTill(t).start("serve")
	addr := strings.TrimSuffix(strings.TrimPrefix(server.base, "http://"), "/api/v1")
	var want, got []string
	for _, request := range []string{"GET /secreto\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nExpect: secreto\r\n\r\n", "GET / HTTP/1.1\r\nSecreto : x\r\n\r\n"} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(ioTimeout))
		io.WriteString(conn, request)
		answer, err := io.ReadAll(conn)
		conn.Close()
		_, body, _ := strings.Cut(string(answer), "\r\n\r\n")
		var e errorBody
		if err := errors.Join(err, json.Unmarshal([]byte(body), &e)); err != nil {
			t.Fatalf("%q: %v: %s", request, err, answer)
		}
		want = append(want, fmt.Sprint(e.RequestID, " ", e.StatusCode, " ", e.Code))
	}
	server.stop()
	for line := range strings.Lines(server.log.String()) {
		var l struct {
			Msg, RequestID, Method, Code string
			Status                       int
		}
		if json.Unmarshal([]byte(line), &l); l.Msg == "request" && l.Method == "other" {
			got = append(got, fmt.Sprint(l.RequestID, " ", l.Status, " ", l.Code))
		}
	}
	if !slices.Equal(got, want) || strings.Contains(strings.ToLower(server.log.String()), "secreto") {
		t.Errorf("answered %q, logged %s", want, server.log)
	}
}
