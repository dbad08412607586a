package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestPanelUnknown checks that the panel has an HTML page for what is not there, also where a
// path is not as ServeMux would have it.
// Panel check 22.
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

// A failingStore fails to read while there is an error.
type failingStore struct {
	Store
	err error
}

func (s *failingStore) View(ctx context.Context, fn func(Tx) error) error {
	if s.err != nil {
		return s.err
	}
	return s.Store.View(ctx, fn)
}

// TestPanelFailing: where the server fails, has no time, or has been asked too much, the answer
// is a page with the headers of all others, and says nothing of the cause.
// Panel check 19.
func TestPanelFailing(t *testing.T) {
	t.Parallel()
	s := newPanelShop(t, panelSetup)
	want := http.Header{"Cache-Control": {"no-store"}, "Content-Type": {"text/html; charset=utf-8"}}
	setPanelHeaders(want, false)
	store := &failingStore{Store: s.shop.engine.store.Store}
	s.shop.engine.store.Store = store
	defer func() { s.shop.engine.store.Store = store.Store }()
	for _, test := range []struct {
		err    error
		status int
	}{
		{nil, http.StatusOK}, {errors.New("the disk says /var/lib"), http.StatusInternalServerError}, {errUnavailable, http.StatusServiceUnavailable}, {nil, http.StatusTooManyRequests},
	} {
		store.err = test.err
		answers := map[string]*httptest.ResponseRecorder{"page": s.get(roleOwner, "/panel/cuenta/sesiones?f=TOKEN0123456789A")}
		for n := 0; test.status == http.StatusTooManyRequests && answers["page"].Code == http.StatusOK && n <= askedBurst; n++ {
			answers["page"] = s.get(roleOwner, "/panel/cuenta/sesiones?f=TOKEN0123456789A")
		}
		if test.status != http.StatusOK {
			answers["form"] = s.post(roleOwner, "/panel/cuenta", url.Values{"name": {"Ana"}})
		}
		for what, w := range answers {
			if w.Code != test.status || strings.Contains(w.Body.String(), "/var/lib") || !strings.Contains(w.Body.String(), "<html lang=") {
				t.Errorf("%s: %d, want %d\n%s", what, w.Code, test.status, w.Body)
			}
			for name := range want {
				if got := w.Header().Get(name); got != want.Get(name) {
					t.Errorf("%s, %d: %s is %q, want %q", what, w.Code, name, got, want.Get(name))
				}
			}
			if w.Header().Get("X-Request-Id") == "" {
				t.Errorf("%s, %d: no X-Request-Id", what, w.Code)
			}
		}
	}
}
