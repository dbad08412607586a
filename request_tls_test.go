package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sello/internal/cert"
	"sello/internal/cert/certtest"
)

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
