package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

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
