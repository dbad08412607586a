package panel

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// What the panel relies on in a browser, tried on small pages rather than on the panel: where
// sources disagree, or Chromium changes, these fail first and say what has changed.

// site serves a handler on loopback under a name: "127.0.0.1", or one under .test, which a
// browser does not trust as loopback. It returns the base of its addresses.
func site(t *testing.T, name string, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return named(server.URL, name)
}

// secureSite is the same over TLS.
func secureSite(t *testing.T, name string, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return named(server.URL, name)
}

// named returns an address of loopback under another name of the host.
func named(base, name string) string {
	u, err := url.Parse(base)
	if err != nil {
		panic(err)
	}
	return u.Scheme + "://" + net.JoinHostPort(name, u.Port())
}

// TestPlatformCookies: Chromium keeps a __Host- cookie on HTTPS and on loopback, not on plain
// HTTP elsewhere. So the name of the panel's cookie follows the address it is given, and
// __Host- is for HTTPS only: other browsers refuse it on loopback too.
func TestPlatformCookies(t *testing.T) {
	t.Parallel()
	set := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "__Host-a=1; Path=/; Secure; HttpOnly; SameSite=Lax")
		w.Header().Add("Set-Cookie", "b=1; Path=/; HttpOnly; SameSite=Lax")
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,">`)
	}
	for _, test := range []struct{ name, base, want string }{
		{"loopback", site(t, "127.0.0.1", set), "__Host-a b"},
		{"plain", site(t, "tienda.test", set), "b"},
		{"https", secureSite(t, "tienda.test", set), "__Host-a b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := open(t, test.base)
			p.silent = true
			p.visit("/")
			var kept []string
			for _, c := range p.cookies() {
				kept = append(kept, c.Name)
			}
			if got := strings.Join(sorted(kept), " "); got != test.want {
				t.Errorf("kept %q, want %q", got, test.want)
			}
		})
	}
}

// A visitor is what a server saw of the requests to a page.
type visitor struct {
	mu   sync.Mutex
	seen []string
}

func (v *visitor) saw(r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = append(v.seen, fmt.Sprintf("%s %s origin=%s site=%s", r.Method, r.URL.Path, r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")))
}

func (v *visitor) all() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.seen...)
}

// TestPlatformOrigin: what a browser says of where a form comes from. Under same-origin, a
// plain address that is not loopback gets an Origin and no Sec-Fetch-Site; under no-referrer
// it would get the Origin null. A reload of what a POST answered sends the POST again, as
// same-origin.
func TestPlatformOrigin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, host, policy string
		secure             bool
		want               string // with ORIGIN for the page's own
	}{
		{"loopback", "127.0.0.1", "same-origin", false, "origin=ORIGIN site=same-origin"},
		{"plain", "tienda.test", "same-origin", false, "origin=ORIGIN site="},
		{"plain without referrer", "tienda.test", "no-referrer", false, "origin=null site="},
		{"https", "tienda.test", "same-origin", true, "origin=ORIGIN site=same-origin"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := &visitor{}
			serve := site
			if test.secure {
				serve = secureSite
			}
			base := serve(t, test.host, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == "POST" {
					v.saw(r)
				}
				w.Header().Set("Referrer-Policy", test.policy)
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><form method="post" action="/sent"><button>Enviar</button></form>`)
			})
			p := open(t, base)
			p.silent = true
			p.visit("/").load(func() { p.click("button") }).reload()
			want := "POST /sent " + strings.ReplaceAll(test.want, "ORIGIN", base)
			if got := v.all(); len(got) != 2 || got[0] != want || got[1] != want {
				t.Errorf("sent and sent again: %q, want twice %q", got, want)
			}
		})
	}
}

// TestPlatformBack: after a page is left by a log-out that ends a cookie, Back asks the server
// again for a page under no-store, whether or not the page reloads itself when it is shown
// from the browser's memory.
func TestPlatformBack(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"", `<script>addEventListener('pageshow', e => { if (e.persisted) location.reload() })</script>`} {
		t.Run(fmt.Sprintf("script %t", script != ""), func(t *testing.T) {
			p := open(t, site(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "no-store")
				w.Header().Set("Content-Type", "text/html")
				icon := `<!doctype html><link rel="icon" href="data:,">`
				_, err := r.Cookie("sello")
				switch {
				case r.URL.Path == "/in":
					http.SetCookie(w, &http.Cookie{Name: "sello", Value: "1", Path: "/", HttpOnly: true})
					fmt.Fprint(w, icon+"in")
				case r.URL.Path == "/out":
					http.SetCookie(w, &http.Cookie{Name: "sello", Path: "/", HttpOnly: true, MaxAge: -1})
					fmt.Fprint(w, icon+"out")
				case err == nil:
					fmt.Fprint(w, icon+"<p>secret</p>"+script)
				default:
					fmt.Fprint(w, icon+"<p>log in</p>")
				}
			}))
			p.visit("/in").visit("/data")
			if p.text("p") != "secret" {
				t.Fatalf("logged in: %q", p.text("body"))
			}
			p.visit("/out").back()
			if got := p.text("p"); got != "log in" {
				t.Errorf("Back shows %q", got)
			}
		})
	}
}

// TestPlatformAxe: the protocol runs axe in a page whose Content-Security-Policy allows no
// script of that kind, and axe finds what is wrong there.
func TestPlatformAxe(t *testing.T) {
	t.Parallel()
	p := open(t, site(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><html lang="es"><title>x</title><link rel="icon" href="data:,"><main><h1>x</h1><input></main>`)
	}))
	if found := strings.Join(p.visit("/").axe(), "\n"); !strings.Contains(found, "label") {
		t.Errorf("axe found no field without a label: %q", found)
	}
}
