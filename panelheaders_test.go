package main

import (
	"net/http"
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
