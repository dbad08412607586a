package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const testPIN = "739164"

// TestPINRules: a PIN has six digits, and is none of the first that somebody would try.
func TestPINRules(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pin    string
		want   error
		reason string
	}{
		{testPIN, nil, "six digits"},
		{"000124", nil, "a zero three times, and more"},
		{"123489", nil, "a run of four, and more"},
		{"", errPINDigits, "nothing"},
		{"73916", errPINDigits, "five digits"},
		{"7391640", errPINDigits, "seven"},
		{"73916a", errPINDigits, "a letter"},
		{"-73916", errPINDigits, "a sign"},
		{"٧٣٩١٦٤", errPINDigits, "digits of another script"},
		{"777777", errPINTrivial, "one digit"},
		{"000000", errPINTrivial, "zeros"},
		{"212121", errPINTrivial, "two digits by turns"},
		{"739739", errPINTrivial, "three digits twice"},
		{"111222", errPINTrivial, "two digits, three times each"},
		{"123456", errPINTrivial, "up"},
		{"654321", errPINTrivial, "down"},
		{"012345", errPINTrivial, "up from zero"},
		{"567890", errPINTrivial, "up to ten"},
		{"098765", errPINTrivial, "down from ten"},
		{"147258", errPINTrivial, "columns of the keypad"},
	} {
		if err := checkPIN(test.pin); err != test.want {
			t.Errorf("%s: %q is %v, want %v", test.reason, test.pin, err, test.want)
		}
	}
}

// A lockShop is a formWorld whose owner's session has testPIN.
type lockShop struct {
	*formWorld
	t *testing.T
}

func newLockShop(t *testing.T) *lockShop {
	s := &lockShop{newFormWorld(t), t}
	s.havePIN()
	return s
}

// havePIN gives the owner's session testPIN.
func (w *formWorld) havePIN() {
	w.panelShop.shop.Helper()
	h, err := newPIN(testPIN, w.panelShop.shop.engine.seed())
	w.panelShop.shop.ok(err)
	m := w.panelShop.shop.member(w.panelShop.tokens[roleOwner])
	w.panelShop.shop.ok(tryBy(w.panelShop.shop, m, func(t *txn) error { return t.people.choosePIN(m, w.panelShop.panel.sessionLimits, h, false) }))
}

// beLocked locks the owner's session.
func (w *formWorld) beLocked() {
	w.panelShop.shop.Helper()
	m := w.panelShop.shop.member(w.panelShop.tokens[roleOwner])
	w.panelShop.shop.ok(tryBy(w.panelShop.shop, m, func(t *txn) error { return t.people.lock(m, w.panelShop.panel.sessionLimits) }))
}

// want checks an answer's status and where it leads, and returns its page.
func (s *lockShop) want(what string, w *httptest.ResponseRecorder, status int, where string) string {
	s.t.Helper()
	if w.Code != status || w.Header().Get("Location") != where {
		s.t.Fatalf("%s: %d %q, want %d %q\n%s", what, w.Code, w.Header().Get("Location"), status, where, w.Body)
	}
	return w.Body.String()
}

func (s *lockShop) get(path string) *httptest.ResponseRecorder {
	return s.panelShop.get(roleOwner, s.filled(path))
}

// post sends a form with names and values by turns.
func (s *lockShop) post(path string, pairs ...string) *httptest.ResponseRecorder {
	return s.panelShop.post(roleOwner, s.filled(path), s.fields(&goodForm{post: pairs}))
}

// stored is the owner's session as it is kept; nil if it has ended.
func (s *lockShop) stored() *session {
	return ask(s.panelShop.shop, func(t *txn) (*session, error) {
		return get[session](t.Tx, sessionKey(tokenHash(s.panelShop.tokens[roleOwner])))
	})
}

// restart serves the shop's store anew.
func (s *lockShop) restart() {
	e := newEngine(s.panelShop.shop.engine.store.Store, func() time.Time { return s.panelShop.shop.clock.time() }, cryptoSeed)
	s.panelShop.api = newAPIOf(e)
	s.panelShop.panel = thePanel(s.panelShop.api, panelAddress{}, e.sessionLimits)
	s.panelShop.api.panel = s.panelShop.panel
}

// TestLockEnds: a session with a PIN lasts 14 hours, one without 12. It locks after 10 minutes,
// or after the idle limit if that is shorter, and waits for its PIN until it ends.
func TestLockEnds(t *testing.T) {
	t.Parallel()
	began := instantOf(time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC))
	usual, short := usualSessionLimits(), usualSessionLimits()
	short.idle = 5 * time.Minute
	pin := passwordHash{Iterations: 1}
	for _, test := range []struct {
		reason       string
		ends         sessionLimits
		pin          passwordHash
		by           instant // hand, since when
		seen, now    time.Duration
		locked, over bool
	}{
		{"in use", usual, pin, 0, time.Hour, time.Hour + lockAfter - time.Millisecond, false, false},
		{"idle", usual, pin, 0, time.Hour, time.Hour + lockAfter, true, false},
		{"locked by hand, and seen", usual, pin, began, time.Hour, time.Hour, true, false},
		{"idle without a PIN", usual, passwordHash{}, 0, time.Hour, 3*time.Hour - time.Millisecond, false, false},
		{"idle too long without a PIN", usual, passwordHash{}, 0, time.Hour, 3 * time.Hour, false, true},
		{"locked for long", usual, pin, 0, time.Hour, 14*time.Hour - time.Millisecond, true, false},
		{"14 hours, in use", usual, pin, 0, 14 * time.Hour, 14 * time.Hour, false, true},
		{"14 hours, locked", usual, pin, began, time.Hour, 14 * time.Hour, true, true},
		{"12 hours without a PIN", usual, passwordHash{}, 0, 12 * time.Hour, 12 * time.Hour, false, true},
		{"a short idle limit, in use", short, pin, 0, time.Hour, time.Hour + 5*time.Minute - time.Millisecond, false, false},
		{"a short idle limit", short, pin, 0, time.Hour, time.Hour + 5*time.Minute, true, false},
	} {
		s := &session{CreatedAt: began, SeenAt: began.add(test.seen), Kind: sessionFull, PIN: test.pin, LockedAt: test.by}
		now := began.add(test.now)
		if got := [2]bool{test.ends.locked(s, [32]byte{}, now), test.ends.over(s, [32]byte{}, now)}; got != [2]bool{test.locked, test.over} {
			t.Errorf("%s: locked and over %v", test.reason, got)
		}
	}
}

// anyHidden is also what was typed into the form that was just sent.
var anyHidden = regexp.MustCompile(`<input type="hidden"[^>]*>|<dl class="facts">.*?</dl>`)

// checkLockPage checks that an answer is the page of a locked session, and shows nothing else but
// what came with its request.
func (s *lockShop) checkLockPage(what string, w *httptest.ResponseRecorder) {
	s.t.Helper()
	shown := anyHidden.ReplaceAllString(w.Body.String(), "")
	if w.Code != http.StatusUnauthorized || !strings.Contains(shown, "<h1>¿Quién eres?</h1>") || !strings.Contains(shown, "La sesión de Owner está bloqueada") {
		s.t.Errorf("%s: %d\n%s", what, w.Code, shown)
	}
	for _, theirs := range []string{"Ana", "García", "87654321", "8765 4321", "luz", "Luz", s.names["customerId"], "<nav", "Espresso"} {
		if strings.Contains(shown, theirs) {
			s.t.Errorf("%s shows %s\n%s", what, theirs, shown)
		}
	}
	if missing := missingHeaders(w.Header()); missing != "" {
		s.t.Errorf("%s: no %s", what, missing)
	}
}

// TestLockRoutes: whatever a locked session opens or sends, it gets the page that asks for the
// PIN, and changes nothing. It can be unlocked and logged out, and has the stylesheet.
func TestLockRoutes(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	if page := s.want("unlocked", s.get("/panel/clientes"), http.StatusOK, ""); !strings.Contains(page, "García") {
		t.Fatal("what must not be shown is not there")
	}
	s.beLocked()
	before := s.panelShop.shop.entries()
	open := map[string]bool{lockPath: true, unlockPath: true, outPath: true}
	for _, p := range panelPages() {
		if !open[p.path] {
			s.checkLockPage("GET "+p.path, s.get(p.path))
		}
	}
	for _, path := range []string{"/panel/nada", "/panel//caja", "/panel/caja?q=garcia"} {
		s.checkLockPage("GET "+path, s.get(path))
	}
	for _, f := range panelForms() {
		if g := goodForms[f.path]; !open[f.path] {
			s.checkLockPage("POST "+f.path, s.panelShop.post(roleOwner, s.filled(f.path), s.fields(&g)))
		}
	}
	same(t, "the store after all of them", s.panelShop.shop.entries(), before)
	if w := s.get(s.panelShop.panel.assets.path("panel.css")); w.Code != http.StatusOK {
		t.Errorf("the stylesheet: %d", w.Code)
	}
	page := s.want("the lock's page", s.get(unlockPath+"?ir=/panel/ventas"), http.StatusOK, "")
	if hidden(page).Get("ir") != "/panel/ventas" || !strings.Contains(page, `inputmode="numeric"`) || !strings.Contains(page, `autocomplete="off"`) {
		t.Errorf("the lock's page is\n%s", page)
	}
	s.want("log-out", s.post(outPath), http.StatusSeeOther, "/panel")
	if s.stored() != nil {
		t.Error("a locked session cannot be logged out")
	}
}

// TestLockIdle: after ten minutes without a request a session is locked. Its page, a wrong PIN
// and a page that reloads itself do not count. It stays locked over a restart, and the PIN leads back.
func TestLockIdle(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	pass := s.panelShop.shop.pass
	for range 3 {
		pass(lockAfter - time.Millisecond)
		s.want("in use", s.get("/panel/clientes"), http.StatusOK, "")
	}
	pass(lockAfter / 2)
	s.want("polling", s.panelShop.send(roleOwner, "GET", "/panel/clientes", nil, pollHeader, "1"), http.StatusOK, "")
	pass(lockAfter / 2)
	const was = "/panel/caja?q=garcia"
	page := s.want("idle", s.get(was), http.StatusUnauthorized, "")
	for range 3 {
		pass(time.Minute)
		s.checkLockPage("after a request", s.get(was))
	}
	s.restart()
	s.checkLockPage("after a restart", s.get(was))
	fields := hidden(page)
	if fields.Get("ir") != was {
		t.Errorf("it leads to %q", fields.Get("ir"))
	}
	pass(2 * time.Hour) // a session without a PIN would have ended
	fields.Set("pin", testPIN)
	s.want("the PIN", s.panelShop.post(roleOwner, unlockPath, fields), http.StatusSeeOther, was)
	pass(lockAfter - time.Millisecond)
	s.want("unlocked", s.get("/panel/clientes"), http.StatusOK, "")
	s.want("unlocked twice", s.panelShop.post(roleOwner, unlockPath, fields), http.StatusSeeOther, was)
}

// TestLockByHand: the button of the till asks for a PIN first, and locks. Afterwards it locks
// at once, also after a restart.
func TestLockByHand(t *testing.T) {
	t.Parallel()
	s := &lockShop{newFormWorld(t), t}
	at := s.filled("/panel/caja/{customerId}")
	page := s.panelShop.open(roleOwner, at).Body.String()
	if !strings.Contains(page, `action="/panel/bloquear"`) {
		t.Errorf("there is no button\n%s", page)
	}
	const till = "/panel/caja"
	to := withQuery(pinPath, []pair{{lockField, "1"}})
	s.want("without a PIN", s.post(lockPath), http.StatusSeeOther, to)
	fields := hidden(s.want("a PIN", s.get(to), http.StatusOK, ""))
	for _, test := range []struct{ pin, again, want string }{
		{"123456", "123456", "de los primeros que alguien probaría"},
		{"73916", "73916", "tiene 6 dígitos"},
		{testPIN, "739165", "No es el mismo PIN"},
	} {
		fields.Set("pin", test.pin)
		fields.Set("pinAgain", test.again)
		page := s.want(test.pin, s.panelShop.post(roleOwner, pinPath, fields), http.StatusUnprocessableEntity, "")
		if !strings.Contains(page, test.want) || strings.Contains(page, test.pin) || hidden(page).Get(lockField) != "1" {
			t.Errorf("%s: the page is\n%s", test.pin, page)
		}
	}
	fields.Set("pin", testPIN)
	fields.Set("pinAgain", testPIN)
	s.want("chosen", s.panelShop.post(roleOwner, pinPath, fields), http.StatusSeeOther, till)
	s.checkLockPage("chosen", s.get(at))
	s.want("unlocked", s.post(unlockPath, "pin", testPIN, "ir", at), http.StatusSeeOther, at)
	s.want("locked", s.post(lockPath), http.StatusSeeOther, till)
	s.want("locked twice", s.post(lockPath), http.StatusSeeOther, till)
	s.restart()
	s.checkLockPage("locked, after a restart", s.get(at))
	s.panelShop.speaks(roleOwner, "en")
	if page := s.get(at).Body.String(); !strings.Contains(page, "Who are you?") || !strings.Contains(page, "Log in with another account") {
		t.Errorf("in English:\n%s", page)
	}
}

// TestLockKeepsForm: a sale that is sent to a locked till is kept over a wrong PIN and the
// right one, and is stored once.
func TestLockKeepsForm(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	s.panelShop.shop.pass(lockAfter)
	sales := func() uint64 { return ask(s.panelShop.shop, (*txn).count).Sales }
	had := sales()
	sale := s.filled("/panel/caja/{customerId}/venta")
	w := s.post(sale, "totalAmount", "1,234.50")
	s.checkLockPage("a sale", w)
	fields := hidden(w.Body.String())
	fields.Set("pin", "480215")
	fields = hidden(s.want("a wrong PIN", s.panelShop.post(roleOwner, unlockPath, fields), http.StatusUnprocessableEntity, ""))
	if fields.Get(keptField+"totalAmount") != "1,234.50" || fields.Get("pin") != "" {
		t.Errorf("kept after a wrong PIN: %v", fields)
	}
	fields.Set("pin", testPIN)
	if w := s.panelShop.post(roleOwner, unlockPath, fields); w.Code != http.StatusSeeOther || sales() != had+1 {
		t.Errorf("the PIN: %d, %d sales", w.Code, sales())
	}
	again := url.Values{"totalAmount": {"1,234.50"}, orgField: {fields.Get(keptField + orgField)}, tokenField: {fields.Get(keptField + tokenField)}}
	if w := s.panelShop.post(roleOwner, sale, again); w.Code != http.StatusSeeOther {
		t.Errorf("sent again: %d\n%s", w.Code, w.Body)
	}
	if sales() != had+1 {
		t.Errorf("%d sales, want %d", sales(), had+1)
	}
}

// TestLockKeepsMore: a voucher that was to be used and a long document are kept, also by the page
// of another organization. Of what cannot be kept the page says so, and an invitation is found
// again.
func TestLockKeepsMore(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	s.beLocked()
	fields := hidden(s.post("/panel/caja/{customerId}/canje/{redemptionId}/uso", "code", "{code}").Body.String())
	if got, want := fields.Get(keptField+"code"), s.filled("{code}"); got != want {
		t.Errorf("of a voucher %q is kept, want %q", got, want)
	}
	long := strings.Repeat(`{"a":1} `, maxForm/8)
	w := s.post("/panel/configuracion/documento", "document", long)
	if fields = hidden(w.Body.String()); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "Lo que enviaste no se guardó") {
		t.Fatalf("a long document: %d, %.2000s", w.Code, w.Body)
	}
	fields.Set(orgField, "otra")
	fields.Set("pin", testPIN)
	if w := s.panelShop.post(roleOwner, unlockPath, fields); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "<nav") { // it says no version
		t.Errorf("unlocked: %d %.2000s", w.Code, w.Body)
	}
	s.beLocked()
	if w := s.post("/panel/cuenta/contrasena", "old", testPassword, "password", testPassword); !strings.Contains(w.Body.String(), "Lo que enviaste no se guardó.") {
		t.Errorf("a password: %s", w.Body)
	}
	fields = hidden(s.post(provePath, "password", testPassword, keptPath, s.filled("/panel/caja/{customerId}/venta"), keptField+"totalAmount", "70", keptField+"password", testPassword).Body.String())
	if fields.Get(keptField+"totalAmount") != "70" || strings.Contains(fmt.Sprint(fields), testPassword) {
		t.Errorf("of a form with a password, what it carries is not kept alone: %v", fields)
	}
	page := s.want("the proof of a page", s.post(provePath, "password", testPassword, "ir", "/panel/claves/nueva"), http.StatusUnauthorized, "")
	if hidden(page).Get("ir") != "/panel/claves/nueva" || strings.Contains(page, "no se guardó") {
		t.Errorf("locked where the password was to be given, the page is\n%s", page)
	}
	fields = hidden(s.get("/panel/invitacion/abc").Body.String())
	fields.Set("pin", testPIN)
	s.want("an invitation", s.panelShop.post(roleOwner, unlockPath, fields), http.StatusSeeOther, "/panel/invitacion/abc")

	// The session ends over a long document: somebody who is not logged in may not send as much.
	s.beLocked()
	fields = hidden(s.post("/panel/configuracion/documento", "document", long).Body.String())
	for i := range pinTries {
		fields.Set("pin", fmt.Sprint("48021", i))
		page = s.panelShop.post(roleOwner, unlockPath, fields).Body.String()
	}
	if !strings.Contains(page, "<h1>Entrar</h1>") || hidden(page).Has(keptPath) || !strings.Contains(page, "Lo que enviaste no se guardó.") {
		t.Errorf("the page after the last PIN is\n%.2000s", page)
	}
}

// TestLockTries: after five wrong PINs in a row the session ends, also with a restart in
// between, and the log tells of it. What was kept goes on to the log-in.
func TestLockTries(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	s.beLocked()
	sale := s.filled("/panel/caja/{customerId}/venta")
	fields := hidden(s.post(sale, "totalAmount", "70").Body.String())
	try := func(pin string) *httptest.ResponseRecorder {
		fields.Set("pin", pin)
		return s.panelShop.post(roleOwner, unlockPath, fields)
	}
	for i := range pinTries - 1 {
		s.want("wrong", try(fmt.Sprint("48021", i)), http.StatusUnprocessableEntity, "")
	}
	if w := try(testPIN); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), sale+"/") {
		t.Errorf("right: %d %s", w.Code, w.Header().Get("Location"))
	}
	s.beLocked()
	for i := range pinTries - 1 { // counted anew
		if page := s.want("wrong", try(fmt.Sprint("48021", i)), http.StatusUnprocessableEntity, ""); !strings.Contains(page, "El PIN no es correcto") {
			t.Errorf("the page is\n%s", page)
		}
		s.restart()
	}
	w := try("480219")
	page := s.want("the last", w, http.StatusUnauthorized, "")
	if kept := hidden(page); !strings.Contains(page, "<h1>Entrar</h1>") || kept.Get(keptPath) != sale || kept.Get(keptField+"totalAmount") != "70" {
		t.Errorf("the page after the last is\n%s", page)
	}
	if c := w.Result().Cookies(); len(c) != 1 || c[0].MaxAge >= 0 || s.stored() != nil {
		t.Errorf("the session is not over: %v", c)
	}
	after := s.want("the right one afterwards", try(testPIN), http.StatusUnauthorized, "")
	if kept := hidden(after); kept.Get(keptPath) != sale || kept.Get(keptField+"totalAmount") != "70" || strings.Contains(after, testPIN) {
		t.Errorf("where the session ended elsewhere the form is lost, or the PIN is shown\n%s", after)
	}
	s.want("a page", s.get("/panel/clientes"), http.StatusSeeOther, withQuery("/panel/entrar", []pair{{"ir", "/panel/clientes"}}))
	s.panelShop.shop.ok(s.panelShop.api.logins.flush(t.Context(), s.panelShop.shop.clock, true))
	for action, want := range map[string]string{auditSessionEnded: "User  session.ended []", auditSessionRefused: "tries"} {
		if got := s.panelShop.shop.audited(auditFilter{action: action}); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("the log has %v, want %s", got, want)
		}
	}
}

// TestLockTriesTogether: tries that come at once are counted one by one.
func TestLockTriesTogether(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	s.beLocked()
	var together sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for i := range 4 * pinTries {
		together.Go(func() {
			fields := url.Values{orgField: {"cafe-luna"}, "pin": {fmt.Sprint(480210 + i)}}
			w := s.panelShop.send(roleOwner, "POST", unlockPath, fields)
			mu.Lock()
			defer mu.Unlock()
			answers[w.Code]++
		})
	}
	together.Wait()
	same(t, "answers", answers, map[int]int{http.StatusUnprocessableEntity: pinTries - 1, http.StatusUnauthorized: 3*pinTries + 1})
	if s.stored() != nil {
		t.Error("the session goes on")
	}
}

// TestLockPINChanged: whoever finds the till open can neither change nor remove a PIN without
// it: five wrong ones end the session there, too.
func TestLockPINChanged(t *testing.T) {
	t.Parallel()
	s := newLockShop(t)
	is := func(pin string) bool {
		right, err := s.stored().PIN.matches(pin)
		return err == nil && right
	}
	const next = "805317"
	s.want("without the old one", s.post(pinPath, "pin", next, "pinAgain", next), http.StatusUnprocessableEntity, "")
	s.want("with a wrong one", s.post(pinPath, "oldPin", "480215", "pin", next, "pinAgain", next), http.StatusUnprocessableEntity, "")
	s.want("removed with a wrong one", s.post(pinPath+"/quitar", "dropPin", "480215"), http.StatusUnprocessableEntity, "")
	if !is(testPIN) || s.stored().Tries != 3 {
		t.Errorf("another PIN, or %d tries", s.stored().Tries)
	}
	s.want("changed", s.post(pinPath, "oldPin", testPIN, "pin", next, "pinAgain", next), http.StatusSeeOther, "/panel/cuenta")
	if !is(next) || s.stored().Tries != 0 {
		t.Errorf("not the new PIN, or %d tries", s.stored().Tries)
	}
	if page := s.panelShop.open(roleOwner, "/panel/cuenta").Body.String(); !strings.Contains(page, "Esta sesión tiene PIN") {
		t.Errorf("the account is\n%s", page)
	}
	s.want("removed", s.post(pinPath+"/quitar", "dropPin", next), http.StatusSeeOther, "/panel/cuenta")
	if s.stored().hasPIN() {
		t.Error("there is a PIN")
	}
	s.havePIN()
	for range pinTries - 1 {
		s.want("wrong", s.post(pinPath+"/quitar", "dropPin", "480215"), http.StatusUnprocessableEntity, "")
	}
	s.want("the last", s.post(pinPath, "oldPin", "480215", "pin", next, "pinAgain", next), http.StatusUnauthorized, "")
	if s.stored() != nil {
		t.Error("the session goes on")
	}
}
