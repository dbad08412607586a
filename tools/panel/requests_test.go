package panel

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
)

// TestCrossSite: a page of another site, to which the cookie is not sent, and one of another
// origin of the same site, to which it is, send the forms of the panel. None changes anything.
// Those without the cookie fail alike: the quick form sends every eighth of them.
// Panel check 13.
func TestCrossSite(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	forms := s.look("owner").forms
	if len(forms) < 3 {
		t.Fatalf("only %d forms", len(forms))
	}
	before := s.store()
	for _, from := range []struct {
		name, host string
		every      int // form is sent
		refused    []int64
	}{
		{"site", "otro.test", 8, []int64{http.StatusUnauthorized, http.StatusForbidden}},
		{"origin", "127.0.0.1", 1, []int64{http.StatusForbidden}},
	} {
		t.Run(from.name, func(t *testing.T) {
			base := site(t, from.host, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,">`)
				if i, err := strconv.Atoi(r.URL.RawQuery); err == nil {
					f := forms[i].with("totalAmount", "150")
					fmt.Fprintf(w, `<form method="post" action="%s">`, html.EscapeString(s.Base+f.path))
					for name := range f.with("_org", "cafe-luna").fields {
						fmt.Fprintf(w, `<input name="%s" value="%s">`, html.EscapeString(name), html.EscapeString(f.fields.Get(name)))
					}
					fmt.Fprint(w, `<button>Gana un premio</button></form>`)
				}
			})
			p := open(t, base)
			p.silent = true
			p.setCookieOf(s.Base, cookieName(s.Base), s.token("owner"))
			for i, f := range forms {
				if !long() && i%from.every != 0 {
					continue
				}
				p.visit(fmt.Sprintf("/?%d", i)).load(func() { p.click("button") })
				if !contains(from.refused, p.status) {
					t.Errorf("%s: %d, want %v", f.path, p.status, from.refused)
				}
			}
		})
	}
	if after := s.store(); after != before {
		t.Error("something has changed")
	}
	if a := s.post("owner", s.saleForm("owner", s.customer("María"), "150")); a.Status != http.StatusSeeOther {
		t.Errorf("the panel's own page: %d\n%s", a.Status, a.Body)
	}
}

// TestNoOrigin: a request with the cookie that does not say where it comes from is refused.
// Panel check 15.
func TestNoOrigin(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	customer := s.customer("María")
	n := len(s.sales("limit=100"))
	for _, test := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"neither", []string{"Accept", "*/*"}, http.StatusForbidden},
		{"null", []string{"Origin", "null"}, http.StatusForbidden},
		{"another origin", []string{"Origin", "http://127.0.0.1:1"}, http.StatusForbidden},
		{"cross-site", []string{"Origin", s.Base, "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"same-site", []string{"Origin", s.Base, "Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		{"origin", []string{"Origin", s.Base}, http.StatusSeeOther},
		{"fetch metadata", []string{"Sec-Fetch-Site", "same-origin"}, http.StatusSeeOther},
	} {
		if a := s.post("owner", s.saleForm("owner", customer, "150"), test.headers...); a.Status != test.want {
			t.Errorf("%s: %d, want %d", test.name, a.Status, test.want)
		}
		if test.want == http.StatusSeeOther {
			n++
		}
		if got := len(s.sales("limit=100")); got != n {
			t.Errorf("%s: %d sales, want %d", test.name, got, n)
		}
	}
}

// TestHost: the panel answers under its own name only, the API under any.
// Panel check 16.
func TestHost(t *testing.T) {
	t.Parallel()
	s := inStock(t)
	for _, path := range []string{"/panel", "/panel/caja", "/panel/nada", "/panel/s/x/panel.css"} {
		if a := s.send("owner", "GET", path, nil, "Host", "evil.test"); a.Status != http.StatusMisdirectedRequest {
			t.Errorf("%s of another host: %d", path, a.Status)
		}
	}
	if a := s.send("", "GET", "/api/v1/customers", nil, "Host", "evil.test", "Authorization", "Bearer "+s.Key); a.Status != http.StatusOK {
		t.Errorf("the API by another name: %d", a.Status)
	}
	for _, host := range []string{"localhost", "127.0.0.1", "[::1]"} {
		host += s.Base[strings.LastIndex(s.Base, ":"):]
		if a := s.send("owner", "GET", "/panel/caja", nil, "Host", host); a.Status != http.StatusOK {
			t.Errorf("%s: %d", host, a.Status)
		}
	}
}

// TestFrame: another page that frames the panel shows nothing of it.
// Panel check 17.
func TestFrame(t *testing.T) {
	t.Parallel()
	s := inStock(t)
	base := site(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,"><iframe src="%s/panel/caja"></iframe>`, s.Base)
	})
	p := open(t, base)
	p.silent = true
	p.setCookieOf(s.Base, cookieName(s.Base), s.token("owner"))
	p.visit("/")
	frames := call(p, page.GetFrameTree, cdp.Empty{}).FrameTree.ChildFrames
	if len(frames) != 1 || !strings.HasPrefix(frames[0].Frame.URL, "chrome-error:") {
		for _, f := range frames {
			t.Errorf("the frame shows %s", f.Frame.URL)
		}
	}
}

// TestInjected: what somebody managed to put into a page as markup does nothing.
// Panel check 18.
func TestInjected(t *testing.T) {
	t.Parallel()
	p := inStock(t).as("owner")
	p.visit("/panel/clientes")
	p.silent = true
	p.eval(`document.querySelector('h1').innerHTML = '<b id="x" style="position:fixed" onclick="window.hit = 1">x</b>'
		const script = document.createElement('script')
		script.textContent = 'window.hit = 2'
		document.body.append(script)
		document.getElementById('x').click()`, nil)
	var got struct {
		Hit      int
		Position string
	}
	p.eval(`({hit: window.hit || 0, position: getComputedStyle(document.getElementById('x')).position})`, &got)
	if got.Hit != 0 || got.Position != "static" {
		t.Errorf("%+v", got)
	}
	if violations := strings.Count(strings.Join(p.wrongs(), "\n"), "Content Security Policy"); violations < 3 {
		t.Errorf("%d violations are reported: %v", violations, p.wrongs())
	}
}

// TestHeaders: every answer of the panel, whatever its status, has the headers that protect
// it, and is HTML; the API's are JSON.
// Panel checks 19 and 22.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	customer := s.customer("María")
	sale := func(pairs ...string) form { return s.saleForm("owner", customer, "150").with(pairs...) }
	own := []string{"Origin", s.Base, "Sec-Fetch-Site", "same-origin"}
	done := sale()
	s.post("owner", done)
	for _, test := range []struct {
		name string
		want int
		got  answer
	}{
		{"page", 200, s.send("owner", "GET", "/panel/clientes", nil)},
		{"first page", 200, s.send("owner", "GET", "/panel", nil)},
		{"first page of a cashier", 303, s.send("cashier", "GET", "/panel", nil)},
		{"sale", 303, s.post("owner", sale())},
		{"form without a session", 401, s.post("", sale())},
		{"form of another origin", 403, s.post("owner", sale(), "Origin", "http://evil.test", "Sec-Fetch-Site", "cross-site")},
		{"page without permission", 403, s.send("developer", "GET", "/panel/clientes", nil)},
		{"no such page", 404, s.send("owner", "GET", "/panel/nada", nil)},
		{"no such page, without a session", 404, s.send("", "GET", "/panel/nada", nil)},
		{"slash", 404, s.send("owner", "GET", "/panel/clientes/", nil)},
		{"no such customer", 404, s.send("owner", "GET", "/panel/clientes/"+strings.Repeat("0", 8)+"-0000-7000-8000-000000000000", nil)},
		{"method", 404, s.send("owner", "DELETE", "/panel/clientes", nil, own...)},
		{"form of a page without one", 404, s.send("owner", "POST", "/panel/clientes", url.Values{}, own...)},
		{"another organization", 409, s.post("owner", sale("_org", "otra"))},
		{"same form, other fields", 409, s.post("owner", done.with("totalAmount", "151"))},
		{"too large", 413, s.post("owner", sale("comment", strings.Repeat("x", 100<<10)))},
		{"JSON", 415, s.send("owner", "POST", sale().path, url.Values{}, append(own, "Content-Type", "application/json")...)},
		{"another host", 421, s.send("owner", "GET", "/panel", nil, "Host", "evil.test")},
		{"no amount", 422, s.post("owner", sale("totalAmount", ""))},
	} {
		if test.got.Status != test.want {
			t.Errorf("%s: %d, want %d\n%.500s", test.name, test.got.Status, test.want, test.got.Body)
		}
		h := test.got.Header
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Permissions-Policy": "camera=(), microphone=(), geolocation=()", "Strict-Transport-Security": "",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s: %q, want %q", test.name, name, got, want)
			}
		}
		if h.Get("X-Request-Id") == "" {
			t.Errorf("%s: no X-Request-Id", test.name)
		}
		if test.want != http.StatusSeeOther && h.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %s\n%.300s", test.name, h.Get("Content-Type"), test.got.Body)
		}
	}
	for _, path := range []string{"/api/v1/nada", "/nada", "/api/v1/customers", "/panelx"} {
		if got := s.send("", "GET", path, nil).Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func contains(list []int64, n int64) bool {
	for _, one := range list {
		if one == n {
			return true
		}
	}
	return false
}
