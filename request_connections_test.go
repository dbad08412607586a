package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/cert"
	"sello/internal/cert/certtest"
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

// issue writes a new certificate for 127.0.0.1 with its key into files, and adds it to pool.
func issue(t *testing.T, certFile, keyFile, name string, pool *x509.CertPool) {
	t.Helper()
	pool.AddCert(certtest.Issue(t, certFile, keyFile, name, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)))
}

// secureClient trusts a pool and speaks HTTP/2 if the server does.
func secureClient(pool *x509.CertPool, most uint16) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MaxVersion: most}, ForceAttemptHTTP2: true, DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// TestTLS serves HTTPS: TLS 1.2 at least, HTTP/1.1 alone, a renewed certificate at the next
// connection, and a clear answer to plain HTTP.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	certFile, keyFile := filepath.Join(s.dir, "cert.pem"), filepath.Join(s.dir, "key.pem")
	pool := x509.NewCertPool()
	issue(t, certFile, keyFile, "first", pool)
	r, _ := s.start("serve -tls-cert " + certFile + " -tls-key " + keyFile)
	address := strings.TrimSuffix(strings.TrimPrefix(r.base, "http://"), "/api/v1")

	served := func() string {
		t.Helper()
		res, err := secureClient(pool, 0).Get("https://" + address + "/livez")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK || res.ProtoMajor != 1 || res.TLS.Version < tls.VersionTLS12 {
			t.Errorf("%d, %s, TLS %x", res.StatusCode, res.Proto, res.TLS.Version)
		}
		return res.TLS.PeerCertificates[0].Subject.CommonName
	}
	if got := served(); got != "first" {
		t.Errorf("the certificate of %s", got)
	}
	if _, err := secureClient(pool, tls.VersionTLS11).Get("https://" + address + "/livez"); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	writeFile(t, keyFile, []byte("half of a key"))
	if got := served(); got != "first" {
		t.Errorf("with half of a key: the certificate of %s", got)
	}
	issue(t, certFile, keyFile, "second", pool)
	if got := served(); got != "second" {
		t.Errorf("renewed: the certificate of %s", got)
	}
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	if got := served(); got != "second" {
		t.Errorf("without files: the certificate of %s", got)
	}
	if status, body := r.get("/customers", "sello_x"); status != http.StatusForbidden || !strings.Contains(body, `"https_required"`) {
		t.Errorf("plain HTTP: %d %s", status, body)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{`"msg":"certificate not renewed"`, `"msg":"certificate renewed"`} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("no %s in the log:\n%s", want, r.log)
		}
	}
}

// TestCertificateEnd starts a server with an expired certificate: the log warns, and the
// figures have the end of the certificate that is served.
func TestCertificateEnd(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	certFile, keyFile := filepath.Join(s.dir, "cert.pem"), filepath.Join(s.dir, "key.pem")
	old := certtest.Issue(t, certFile, keyFile, "old", time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	r, _ := s.start("serve -metrics :0 -tls-cert " + certFile + " -tls-key " + keyFile)
	end := func() float64 {
		t.Helper()
		res, err := http.Get("http://" + r.metrics + metricsPath)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return figuresOf(t, string(text))["sello_tls_certificate_expiry_timestamp_seconds"]
	}
	if got := end(); got != float64(old.NotAfter.Unix()) {
		t.Errorf("the certificate ends at %f, and the figure is of %s", got, old.NotAfter)
	}
	renewed := certtest.Issue(t, certFile, keyFile, "new", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if got := end(); got != float64(renewed.NotAfter.Unix()) {
		t.Errorf("renewed: it ends at %f, and the figure is of %s", got, renewed.NotAfter)
	}
	r.stop()
	began, _, _ := strings.Cut(r.log.String(), `"msg":"serving"`)
	if !strings.Contains(began, `"level":"WARN","msg":"certificate expired","file":`) {
		t.Errorf("the log does not warn before it serves:\n%s", r.log)
	}
}

// TestTLSHostile sends what is not TLS, or stops within it, to a server of HTTPS. Each
// connection ends within its time, and the server goes on.
func TestTLSHostile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool := x509.NewCertPool()
	issue(t, certFile, keyFile, "shop", pool)
	pair, err := cert.Open(certFile, keyFile, time.Now(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a := newWorld(t, newMemStore()).api
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(a, slog.New(slog.DiscardHandler))
	server.ReadHeaderTimeout = time.Second
	go server.Serve(a.connections(a.encrypted(l, pair)))
	defer server.Close()
	hello := []byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}
	for name, sent := range map[string][]byte{
		"nothing":                  nil,
		"half of a hello":          hello,
		"a huge record":            append([]byte{22, 3, 1, 255, 255}, make([]byte, 70_000)...),
		"zeros":                    make([]byte, 4096),
		"the preface of HTTP/2":    []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
		"plain HTTP":               []byte("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"),
		"SSH":                      []byte("SSH-2.0-OpenSSH_9.6\r\n"),
		"an alert":                 {21, 3, 1, 0, 2, 1, 0},
		"TLS 1.3 data at once":     append([]byte{23, 3, 3, 0, 32}, make([]byte, 32)...),
		"a record that is too old": {22, 2, 0, 0, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(forever))
			c.Write(sent)
			answer, err := io.ReadAll(c)
			if e, ok := err.(net.Error); ok && e.Timeout() {
				t.Error("the connection stays open")
			}
			if strings.HasPrefix(string(sent), "GET") != bytes.HasPrefix(answer, []byte("HTTP/1.1 403")) {
				t.Errorf("answered %q", answer)
			}
		})
	}
	res, err := secureClient(pool, 0).Get("https://" + l.Addr().String() + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}

// TestRedirect checks what -http-redirect answers. A key is never sent on.
func TestRedirect(t *testing.T) {
	t.Parallel()
	h := newWorld(t, newMemStore()).api.redirects(8443, "")
	for _, test := range []struct {
		method, host, target, key string
		want                      string // Location; "" if refused
	}{
		{"GET", "tienda.mx", "/panel?x=1", "", "https://tienda.mx:8443/panel?x=1"},
		{"HEAD", "tienda.mx:80", "/", "", "https://tienda.mx:8443/"},
		{"GET", "[2001:db8::1]:80", "/", "", "https://[2001:db8::1]:8443/"},
		{"GET", "tienda.mx", "/api/v1/customers", "X-API-Key", ""},
		{"GET", "tienda.mx", "/api/v1/customers", "Authorization", ""},
		{"POST", "tienda.mx", "/api/v1/customers", "", ""},
		{"GET", "tienda.mx/otra@", "/", "", ""},
		{"GET", "", "/", "", ""},
	} {
		req := httptest.NewRequest(test.method, test.target, nil)
		if req.Host = test.host; test.key != "" {
			req.Header.Set(test.key, "x")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		status := http.StatusPermanentRedirect
		if test.want == "" {
			status = http.StatusForbidden
		}
		if w.Code != status || w.Header().Get("Location") != test.want || w.Header().Get("Connection") != "close" {
			t.Errorf("%s %s%s: %d %v", test.method, test.host, test.target, w.Code, w.Header())
		}
	}
	known := newWorld(t, newMemStore()).api.redirects(8443, "https://puntos.tienda.mx")
	for _, host := range []string{"tienda.mx", "puntos.tienda.mx:80", "evil.test/@"} {
		req := httptest.NewRequest("GET", "/panel/clientes%2F?x=1", nil)
		req.Host = host
		w := httptest.NewRecorder()
		known.ServeHTTP(w, req)
		if got := w.Header().Get("Location"); got != "https://puntos.tienda.mx/panel/clientes%2F?x=1" {
			t.Errorf("%s is sent to %s", host, got)
		}
	}
	a := newWorld(t, newMemStore()).api
	cards := (&site{api: a, host: cardsHost}).byName(a.redirects(8443, cardsBase), a.redirects(8443, "https://puntos.tienda.mx"))
	for host, want := range map[string]string{"Club.test:80": cardsBase, "tienda.mx": "https://puntos.tienda.mx", "x.club.test": "https://puntos.tienda.mx"} {
		req := httptest.NewRequest("GET", "/t/x", nil)
		req.Host = host
		if got := answerTo(cards, req).Header().Get("Location"); got != want+"/t/x" {
			t.Errorf("%s is sent to %s", host, got)
		}
	}
	for port, want := range map[int]string{443: "https://[::1]", 8443: "https://[::1]:8443"} {
		req := httptest.NewRequest("GET", "/x", nil)
		req.Host = "[::1]"
		if got, _ := httpsURL(req, port); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestTLSFlags checks which flags go together, and that unusable files are told.
func TestTLSFlags(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.env["HOME"] = s.dir
	for line, want := range map[string]string{
		"serve -tls-cert x":                "-tls-cert y -tls-key van juntas",
		"serve -http-redirect 127.0.0.1:0": "-http-redirect va con -tls-cert y -tls-key",
		"serve -tls-cert x.pem -tls-key y": "x.pem",
	} {
		if code, _, errs := s.run(line); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("sello %s: exit %d, %s", line, code, errs)
		}
	}
	if left := listDir(t, s.env["SELLO_DB"]); left != "" {
		t.Errorf("left behind: %s", left)
	}
}
