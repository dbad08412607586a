package panel

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// What people do with forms, and what pages are on paper.

// TestFaultSummary: points by hand without a reason come back with a title that says so, with
// the focus in the summary, whose link leads to the field, and with what was typed.
// Panel check 37.
func TestFaultSummary(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	customer := s.customer("María")
	for _, settings := range [][]setting{nil, {noScripts}} {
		p := s.as("manager", settings...)
		p.visit("/panel/clientes/"+customer+"/puntos").fill("#c-amount", "12.5").load(func() { p.click("button[formaction$='/puntos/dar']") })
		var title, amount string
		p.eval(`document.title`, &title)
		p.eval(`document.querySelector('#c-amount').value`, &amount)
		if p.status != http.StatusUnprocessableEntity || !strings.HasPrefix(title, "Error:") || amount != "12.5" {
			t.Errorf("%d, %q, and the amount is %q", p.status, title, amount)
		}
		var inSummary bool
		p.eval(`document.activeElement.closest('.faults') !== null`, &inSummary)
		if !inSummary {
			t.Errorf("the focus is on %s", p.focus())
		}
		p.click(".faults a")
		if p.focus() != "textarea#c-comment" {
			t.Errorf("the summary's link leads to %s", p.focus())
		}
		p.fill("#c-comment", "Por la espera").load(func() { p.click("button[formaction$='/puntos/dar']") })
		if p.status != http.StatusOK || p.has(".faults") {
			t.Errorf("with a reason: %d %s", p.status, p.text("main"))
		}
	}
}

// TestCommentLines: a comment of two lines is shown on two.
// Panel check 41.
func TestCommentLines(t *testing.T) {
	t.Parallel()
	s := inStock(t)
	p := s.as("owner")
	p.visit("/panel/ventas/" + stocked.sale)
	var lines int
	p.eval(`(e => { const r = document.createRange(); r.selectNodeContents(e); return new Set(Array.from(r.getClientRects()).map(one => one.top)).size })(
		Array.from(document.querySelectorAll('main dd')).find(e => e.textContent.includes('Dos líneas')))`, &lines)
	if lines != 2 {
		t.Errorf("the comment is on %d lines", lines)
	}
}

// fillKey fills in the form of a new key.
func (p *tab) fillKey(name string) *tab {
	p.t.Helper()
	p.visit("/panel/desarrollo/claves/nueva").fill("#c-name", name)
	p.eval(`document.querySelector('input[name=access][value=all]').click(); document.querySelector('input[name=expires][value="30"]').click()`, nil)
	return p.load(func() { p.click("main form button.primary") })
}

// TestCopy: the button beside a new key puts exactly the key on the clipboard, also on plain
// HTTP, where browsers have none for scripts, and says so.
// Panel check 47.
func TestCopy(t *testing.T) {
	// Not in parallel: the clipboard is the browser's.
	for _, name := range []string{"127.0.0.1", "tienda.test"} {
		t.Run(name, func(t *testing.T) {
			port := freePort(t)
			base := "http://" + name + ":" + port
			s := newShop(t, "-addr", "127.0.0.1:"+port, "-panel", base)
			p := s.at(base, "owner")
			p.fillKey("Caja")
			var key, pasted string
			p.eval(`document.querySelector('#key-text').value`, &key)
			if !strings.HasPrefix(key, "sello_") {
				t.Fatalf("no key in %s", p.text("main"))
			}
			p.click("[data-copy]")
			var said string
			p.eval(`new Promise(done => {
				const button = document.querySelector('[data-copy]'), until = Date.now() + 10000
				const look = () => button.innerText === button.dataset.done || Date.now() > until ? done(button.innerText) : setTimeout(look, 20)
				look()
			})`, &said)
			if said != "Copiado" {
				t.Errorf("the button says %q", said)
			}
			reader := open(t, site(t, "127.0.0.1", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.Write([]byte(`<!doctype html><link rel="icon" href="data:,">`))
			}))
			reader.silent = true
			reader.visit("/")
			callBrowser(reader, browser.SetPermission, browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: "clipboard-read"}, Setting: browser.PermissionSettingGranted,
				BrowserContextID: chromedp.FromContext(reader.ctx).BrowserContextID})
			reader.eval(`navigator.clipboard.readText()`, &pasted)
			if pasted != key {
				t.Errorf("the clipboard has %q, not %q", pasted, key)
			}
		})
	}
}

// TestPrint: on paper the page of recovery codes has nothing but the codes.
// Panel check 69.
func TestPrint(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := s.as("owner")
	p.visit("/panel/cuenta/segundo-factor")
	var secret string
	p.eval(`document.querySelector('a[href^="otpauth:"]').href`, &secret)
	_, secret, _ = strings.Cut(secret, "secret=")
	secret, _, _ = strings.Cut(secret, "&")
	p.fill("input[name=factorCode]", codeOf(secret, 0)).load(func() { p.click("main form button.primary") })
	var codes []string
	p.eval(`Array.from(document.querySelectorAll('.codes code')).map(e => e.innerText)`, &codes)
	if len(codes) < 8 {
		t.Fatalf("codes: %q in %s", codes, p.text("main"))
	}
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	var shown string
	p.eval(`document.body.innerText`, &shown)
	if got, want := strings.Join(strings.Fields(shown), " "), strings.Join(codes, " "); got != want {
		t.Errorf("the paper has %q, want %q", got, want)
	}
	var seen []string // what is drawn without a text
	p.eval(`Array.from(document.querySelectorAll('body *')).filter(e => !e.closest('.codes') && !e.querySelector('.codes') && e.checkVisibility() && e.getClientRects().length > 0).map(e => e.outerHTML.slice(0, 80))`, &seen)
	for _, what := range seen {
		t.Errorf("the paper has %s", what)
	}
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: ""})
	if p.visit("/panel/clientes"); !strings.Contains(p.text("main"), "Bronce") {
		t.Error("no list of customers")
	}
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	if p.eval(`document.body.innerText`, &shown); !strings.Contains(shown, "Bronce") {
		t.Errorf("another page is empty on paper: %s", shown)
	}
}

// TestWithoutScripts: invitation, a key made and revoked, a reward changed, a return, and the
// log-out work without scripts.
// Panel checks 2 and 68.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	customer := s.customer("María")
	link := s.invite("owner")
	p := open(t, s.Panel, noScripts)
	for range 2 {
		p.visit(link)
	}
	p.fill("input[name=name]", "Ana").fill("input[name=password]", password).load(func() { p.click("main form button") })
	if p.address() != "/panel" {
		t.Fatalf("the invitation leads to %s\n%s", p.address(), p.text("main"))
	}
	if again := open(t, s.Panel, noScripts).visit(link); again.status != http.StatusConflict || again.has("main form") {
		t.Errorf("a spent invitation: %d %s", again.status, again.text("main"))
	}

	p.fillKey("Caja")
	key := ""
	if p.eval(`document.querySelector('#key-text').value`, &key); s.sendKey(key) != http.StatusOK {
		t.Errorf("the key does not open the API: %q", key)
	}
	p.load(func() { p.click("main a.primary") })
	p.load(func() { p.click("main a[href$='/revocar']") })
	p.fill("#c-name", "Caja").load(func() { p.click("main form button") })
	if got := s.sendKey(key); got != http.StatusUnauthorized {
		t.Errorf("revoked, it is answered with %d", got)
	}

	p.visit("/panel/recompensas").load(func() { p.click("main a[href^='/panel/recompensas/']:not([href$='/nueva'])") })
	p.fill("#c-pointsCost", "77").load(func() { p.click("main form button.primary") })
	if !p.has("ins") {
		t.Fatalf("no review of the reward: %s", p.text("main"))
	}
	p.load(func() { p.click(".review button.primary") })
	var rewards listed[struct{ PointsCost float64 }]
	s.api("GET", "/rewards", "", &rewards)
	found := false
	for _, r := range rewards.Data {
		found = found || r.PointsCost == 77
	}
	if !found {
		t.Errorf("the reward is not changed: %+v", rewards)
	}

	p.sell(customer, "150", func() { p.click(sellButton) })
	sold := s.sales("limit=1")[0]
	p.visit("/panel/ventas/" + sold.ID + "/devolucion").load(func() { p.click("main form button.primary") })
	p.load(func() { p.click("main form button.primary") })
	if last := s.sales("limit=1")[0]; last.Type != "Return" || last.TotalAmount != 150 {
		t.Errorf("the return is %+v\n%s", last, p.text("main"))
	}
	p.logOut()
	if p.visit("/panel/ventas"); !strings.HasPrefix(p.address(), "/panel/entrar") {
		t.Errorf("logged out, there is %s", p.address())
	}
}

// sendKey is how the API answers to a key.
func (s *shop) sendKey(key string) int {
	s.t.Helper()
	return s.send("", "GET", "/api/v1/customers", nil, "Authorization", "Bearer "+key).Status
}
