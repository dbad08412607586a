package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// assetOf asks for a path of the panel's files.
func assetOf(path string, headers ...string) (int, http.Header, []byte, bool) {
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	h := http.Header{}
	status, body, ok := thePanelAssets().respond(h, r)
	return status, h, body, ok
}

// TestPanelAssets checks what is served under the panel's paths of files: how it is kept and
// packed, and that nothing else is there.
func TestPanelAssets(t *testing.T) {
	t.Parallel()
	assets, brown := thePanelAssets(), "#5B3A29"
	paths := map[string]string{
		assets.path("panel.css"): "text/css; charset=utf-8",
		assets.path("panel.js"):  "text/javascript; charset=utf-8",
		brandPath(&brown):        "text/css; charset=utf-8",
	}
	for path, contentType := range paths {
		status, h, plain, ok := assetOf(path)
		if !ok || status != http.StatusOK || len(plain) == 0 || h.Get("Content-Type") != contentType || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Cache-Control") != "public, max-age=31536000, immutable" || h.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %v %d, %d bytes, %v", path, ok, status, len(plain), h)
		}
		if status, _, body, _ := assetOf(path, "If-None-Match", h.Get("ETag")); status != http.StatusNotModified || len(body) != 0 {
			t.Errorf("%s again: %d, %d bytes", path, status, len(body))
		}
		_, h, packed, _ := assetOf(path, "Accept-Encoding", "gzip, br")
		if strings.HasPrefix(path, panelBrandPrefix) {
			if h.Get("Content-Encoding") != "" || !bytes.Equal(packed, plain) {
				t.Errorf("%s is packed", path)
			}
			continue
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil || h.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %v %v", path, err, h)
		}
		if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, plain) {
			t.Errorf("%s unpacked: %v, %d bytes", path, err, len(text))
		}
	}
	for _, path := range []string{
		"/panel/s/000000000000/panel.css", strings.Replace(assets.path("panel.css"), "panel.css", "panel.js", 1), assets.path("panel.css") + "/", "/panel/s/", "/panel/s/panel.css",
		"/panel/marca/5B3A29.css", "/panel/marca/5b3a2.css", "/panel/marca/5b3a291.css", "/panel/marca/5b3a29", "/panel/marca/.css", "/panel/marca/red.css", "/panel/marca/+b3a29.css",
		"/panel/marca/5b3a29.css.css", "/panel/marca/0x3a29.css", "/panel/marca/5b3_29.css",
	} {
		if status, h, _, ok := assetOf(path); ok || len(h) != 0 {
			t.Errorf("%s: %d %v", path, status, h)
		}
	}
	if got := brandPath(nil); got != "" {
		t.Errorf("the colour of who chose none is at %s", got)
	}
}

// TestPanelWeight holds the files of the panel to what a first visit may weigh, and to what a
// connection can carry: request_connections.go would take a line that ends in CR LF for a refusal.
func TestPanelWeight(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int{"panel.css": 25 << 10, "panel.js": 6_000} {
		text := panelFile(name)
		if len(text) > most {
			t.Errorf("%s has %d bytes; at most %d", name, len(text), most)
		}
		if bytes.ContainsRune(text, '\r') {
			t.Errorf("%s has a CR", name)
		}
	}
	for _, word := range []string{"eval", "innerHTML", "Function(", "document.write", "onclick", ".style", "http:", "https:"} {
		if bytes.Contains(panelFile("panel.js"), []byte(word)) {
			t.Errorf("panel.js says %q, which the Content-Security-Policy forbids or should", word)
		}
	}
	if !bytes.Contains(panelFile("panel.js"), []byte("'"+pollHeader+"'")) {
		t.Error("panel.js does not say that it polls")
	}
	for _, word := range []string{"url(", "@import", "@font-face"} {
		if bytes.Contains(panelFile("panel.css"), []byte(word)) {
			t.Errorf("panel.css says %q: one more request", word)
		}
	}
}
