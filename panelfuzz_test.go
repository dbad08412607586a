package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzForm posts any text to any route of the panel, as anybody.

// A formImage is the state of a formWorld that each input starts from.
type formImage struct {
	world  *formWorld
	state  memTx
	routes []panelForm
}

// formSenders are who sends a form; "" sends no session, and "half" one without its second
// factor.
var formSenders = append(slices.Clone(roles), "", "half")

func newFormImage(t testing.TB) *formImage {
	w := newFormWorld(t)
	w.haveFactor()
	w.panelShop.tokens["half"] = must(w.panelShop.shop, func(t *txn) (string, error) {
		return t.people.startSession(w.panelShop.users[roleOwner], sessionHalf, &arrival{})
	})
	return &formImage{w, w.panelShop.shop.entries(), panelForms()}
}

// post sends a text to a route, on a store of its own. The store is returned as it is then.
func (im *formImage) post(t testing.TB, route, sender uint8, text string) (*panelForm, *httptest.ResponseRecorder, memTx) {
	store := newMemStore().(*memStore)
	t.Cleanup(func() { store.Close() })
	store.state.Store(&memPages{im.state})
	seeds := 0
	e := newEngine(store, func() time.Time { return im.world.panelShop.shop.clock.time() }, func() seed {
		seeds++
		return sha256.Sum256(fmt.Append(nil, seeds))
	})
	a := newAPIOf(e)
	a.trusted = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	a.logins.iterations = 2
	p := thePanel(a, panelAddress{}, e.sessionLimits)
	p.server = im.world.panelShop.panel.server
	a.panel = p
	f := &im.routes[int(route)%len(im.routes)]
	r := httptest.NewRequest("POST", panelBase+im.world.filled(f.path), strings.NewReader(text))
	if token := im.world.panelShop.tokens[formSenders[int(sender)%len(formSenders)]]; token != "" {
		r.AddCookie(&http.Cookie{Name: "sello", Value: token})
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", panelBase)
	w := answerTo(a, r)
	return f, w, store.entries()
}

// faults are what is wrong with an answer, whatever was posted.
func (im *formImage) faults(f *panelForm, w *httptest.ResponseRecorder, after memTx) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	changed := strings.Trim(lettersChanged(im.state, after), map[bool]string{true: "S"}[f.path == "/panel/entrar/codigo"]) // which counts its tries
	switch {
	case w.Code >= 500:
		fault("status %d", w.Code)
	case w.Code >= 400 && changed != "":
		fault("%d, and entries of %q have changed", w.Code, changed)
	case w.Code == http.StatusSeeOther && !strings.HasPrefix(w.Header().Get("Location"), "/panel"):
		fault("leads to %q", w.Header().Get("Location"))
	case w.Code == http.StatusOK && strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment"):
	case w.Code != http.StatusSeeOther && w.Header().Get("Content-Type") != htmlType[0]:
		fault("is %q", w.Header().Get("Content-Type"))
	case w.Code != http.StatusSeeOther && !strings.HasSuffix(w.Body.String(), "</html>\n"):
		fault("is cut off")
	}
	if missing := missingHeaders(w.Header()); missing != "" {
		fault("has no %s", missing)
	}
	if changed != "" {
		if report, err := verify(after, im.world.panelShop.shop.clock, nil); err != nil || len(report.Problems) > 0 {
			fault("verify: %v %v", err, report)
		}
	}
	return faults
}

// missingHeaders names a header of every page that is missing; "" if none is.
func missingHeaders(h http.Header) string {
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": "camera=()", "X-Request-Id": "",
	} {
		if got := h.Get(name); got == "" || !strings.HasPrefix(got, want) {
			return name
		}
	}
	return ""
}

// seeds calls add with forms that do something, and some that do not.
func (im *formImage) seeds(add func(route, sender uint8, text string)) {
	w := im.world
	common := url.Values{orgField: {"cafe-luna"}, tokenField: {"TOKEN0123456789A"}, etagField: {w.panelShop.stamp(roleOwner, "/panel/configuracion")}}
	for i, f := range im.routes {
		g := goodForms[f.path]
		fields := w.fields(&g)
		for name := range common {
			fields.Set(name, common.Get(name))
		}
		sender := uint8(slices.Index(formSenders, role(strings.TrimSuffix(string(g.as), "nobody"))))
		if g.as == "" {
			sender = 0
		}
		if f.path == "/panel/clientes/{customerId}/editar" {
			fields.Del(etagField)
		}
		if isReviewed(&f) {
			_, fields = w.panelShop.reviewed("/panel/configuracion", w.filled(f.path), fields)
		}
		add(uint8(i), sender, fields.Encode())
		add(uint8(i), uint8(i), fields.Encode())
		add(uint8(i), 0, "")
		wrong := common.Encode()
		for name := range fields {
			if !strings.HasPrefix(name, "_") {
				wrong += "&" + url.QueryEscape(name) + "=%00%FF%27%22%3C" + strings.Repeat("x", 300)
			}
		}
		add(uint8(i), 0, wrong)
	}
	for _, text := range []string{"%", "a=1&a=2", "=", "_org", "_token=%zz", strings.Repeat("a=1&", 5000), "\x00", `{"a":1}`, common.Encode() + "&items[99].sku=a&items[-1].sku=b&items[1e9].sku=c"} {
		add(1, 0, text)
	}
}

func FuzzForm(f *testing.F) {
	im := newFormImage(f)
	im.seeds(func(route, sender uint8, text string) { f.Add(route, sender, text) })
	f.Fuzz(func(t *testing.T, route, sender uint8, text string) {
		form, answer, after := im.post(t, route, sender, text)
		for _, fault := range im.faults(form, answer, after) {
			t.Errorf("POST %s as %q with %q: %s\n%s", form.path, formSenders[int(sender)%len(formSenders)], text, fault, answer.Body)
		}
	})
}

// TestFuzzFormSeeds: of the seeds that should do something all do, so that FuzzForm begins
// with each form at work.
func TestFuzzFormSeeds(t *testing.T) {
	t.Parallel()
	im := newFormImage(t)
	did, n := map[string]bool{}, 0
	im.seeds(func(route, sender uint8, text string) {
		if n++; n%4 != 1 || n > 4*len(im.routes) {
			return
		}
		f, w, after := im.post(t, route, sender, text)
		did[f.path] = w.Code < 400 && lettersChanged(im.state, after) != ""
	})
	for _, f := range im.routes {
		if g := goodForms[f.path]; !did[f.path] && g.silent == "" && g.prepare == nil {
			t.Errorf("the seed of %s does nothing", f.path)
		}
	}
}
