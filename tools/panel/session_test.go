package panel

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// logIn fills in the log-in's page and sends it.
func (p *tab) logIn(role string) *tab {
	p.t.Helper()
	p.fill("input[name=email]", role+"@example.com").fill("input[name=password]", password)
	return p.load(func() { p.click("main form button") })
}

// logOut presses the button of the navigation.
func (p *tab) logOut() *tab {
	p.t.Helper()
	return p.load(func() { p.click(".side form[action='/panel/salir'] button") })
}

// secureShop is a shop whose panel is behind a proxy with TLS, as tienda.test.
func secureShop(t *testing.T) *shop {
	t.Helper()
	var target atomic.Pointer[url.URL]
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target.Load())
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(proxy.Close)
	s := newShop(t, "-panel", named(proxy.URL, "tienda.test"))
	u, err := url.Parse(s.Base)
	if err != nil {
		t.Fatal(err)
	}
	target.Store(u)
	return s
}

// TestCookies: over HTTPS the session's only cookie is __Host-sello, and on loopback sello; no
// script sees them.
// Panel check 5.
func TestCookies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		shop   func(*testing.T) *shop
		cookie string
		secure bool
	}{
		{"https", secureShop, "__Host-sello", true},
		{"loopback", func(t *testing.T) *shop { return newShop(t) }, "sello", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := test.shop(t)
			s.token("owner")
			p := open(t, s.Panel)
			p.visit("/panel/entrar").logIn("owner")
			if p.address() != "/panel" {
				t.Fatalf("the log-in leads to %s", p.address())
			}
			host, _ := url.Parse(s.Panel)
			for _, c := range p.cookies() {
				session := c.Name == test.cookie
				if !session && c.Name != test.cookie+"-device" || c.Secure != test.secure || !c.HTTPOnly || c.SameSite != "Lax" || c.Path != "/" || c.Domain != host.Hostname() {
					t.Errorf("a cookie: %+v", c)
				}
				if session && !c.Session {
					t.Errorf("the session's cookie outlives the browser: %+v", c)
				}
			}
			var seen string
			p.eval(`document.cookie`, &seen)
			if seen != "" || len(p.cookies()) != 2 {
				t.Errorf("%d cookies; scripts see %q", len(p.cookies()), seen)
			}
		})
	}
}

// TestLogOutBack: after the log-out Back shows no data, with scripts and without, and what is
// asked for next is the log-in.
// Panel check 7.
func TestLogOutBack(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.token("owner")
	for _, settings := range [][]setting{nil, {noScripts}} {
		p := open(t, s.Panel, settings...)
		p.visit("/panel/entrar").logIn("owner")
		p.visit("/panel/clientes")
		if !strings.Contains(p.text("main"), "Bronce") {
			t.Fatalf("no data to begin with: %s", p.text("main"))
		}
		p.logOut().back()
		if strings.Contains(p.text("body"), "Bronce") {
			t.Errorf("Back shows %s: %s", p.address(), p.text("body"))
		}
		if p.visit("/panel/clientes"); !strings.HasPrefix(p.address(), "/panel/entrar") {
			t.Errorf("after the log-out there is %s", p.address())
		}
	}
}

// TestLogOutTwoTabs: a form that is sent after the log-out in another tab is kept over the
// log-in, which shows it and stores it, once.
// Panel check 8.
func TestLogOutTwoTabs(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	customer := s.customer("María")
	s.token("owner")
	before := len(s.sales("limit=100"))
	p := open(t, s.Panel)
	p.visit("/panel/entrar").logIn("owner")
	p.visit("/panel/caja/"+customer).fill(amountField, "150").fill("#c-externalId", "T-8")
	p.beside().visit("/panel").logOut()
	p.load(func() { p.click(sellButton) })
	if p.status != http.StatusUnauthorized || len(s.sales("limit=100")) != before {
		t.Fatalf("%d: %s", p.status, p.text("main"))
	}
	if text := p.text("main"); !strings.Contains(text, "150") || !strings.Contains(text, "T-8") {
		t.Errorf("the log-in says %s", text)
	}
	p.logIn("owner")
	if note := p.text("[role=status]"); !strings.Contains(note, "150.00") {
		t.Errorf("%s says %q", p.address(), note)
	}
	p.reload()
	if got := s.sales("limit=100"); len(got) != before+1 || got[0].ExternalID != "T-8" {
		t.Errorf("%d sales: %+v", len(got)-before, got)
	}
}
