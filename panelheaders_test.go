package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestPanelUnknown checks that the panel has an HTML page for what is not there, also where a
// path is not as ServeMux would have it.
func TestPanelUnknown(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	for _, path := range []string{"/panel/nada", "/panel/clientes/", "/panel//clientes", "/panel/./caja", "/panel/caja/../clientes"} {
		for _, as := range []role{"", roleOwner} {
			w := s.get(as, path)
			if w.Code != http.StatusNotFound || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || w.Header().Get("Content-Security-Policy") == "" {
				t.Errorf("%s as %q: %d %v", path, as, w.Code, w.Header())
			}
		}
	}
	if w := s.get(roleOwner, "/nada/"); w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("beside the panel: %v", w.Header())
	}
}

// TestPanelAtRoot: who types the server's address into a browser comes to the panel. A client of
// the API, and a server without a panel, have nothing at /.
func TestPanelAtRoot(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, tt := range []struct {
		method, accept string
		panel          bool
		status         int
	}{
		{"GET", browser, true, http.StatusSeeOther}, {"HEAD", browser, true, http.StatusSeeOther},
		{"POST", browser, true, http.StatusNotFound}, {"GET", "*/*", true, http.StatusNotFound},
		{"GET", "application/json", true, http.StatusNotFound}, {"GET", "", true, http.StatusNotFound},
		{"GET", browser, false, http.StatusNotFound},
	} {
		if s.api.panel = nil; tt.panel {
			s.api.panel = s.panel
		}
		r := httptest.NewRequest(tt.method, "/", nil)
		r.Host = "localhost"
		r.Header.Set("Accept", tt.accept)
		w := httptest.NewRecorder()
		s.api.ServeHTTP(w, r)
		to := w.Header().Get("Location")
		if w.Code != tt.status || (to == "/panel") != (tt.status == http.StatusSeeOther) {
			t.Errorf("%+v: %d, to %q", tt, w.Code, to)
		}
	}
}

// TestPanelHSTS: pages tell browsers to stay with TLS where the server is told to say so.
func TestPanelHSTS(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	for _, on := range []bool{false, true} {
		s.panel.hsts = on
		if got := s.get(roleOwner, "/panel").Header().Get("Strict-Transport-Security"); (got == "max-age=31536000") != on {
			t.Errorf("%v: %q", on, got)
		}
	}
}

// TestPanelPlainHeaders checks that the policy of openers goes only where browsers follow it.
func TestPanelPlainHeaders(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"": "same-origin", "https://tienda.test": "same-origin", "http://127.0.0.1:8080": "same-origin", "http://tienda.test": ""} {
		var at panelAddress
		if address != "" {
			at.url, _ = url.Parse(address)
		}
		h := http.Header{}
		setPanelHeaders(h, at.isPlain())
		if got := h.Get("Cross-Origin-Opener-Policy"); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
