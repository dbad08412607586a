//go:build postgres && unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sello/internal/processtest"
	"sello/postgres/pgtest"
)

// Server processes on one database, which are killed and stopped.

// A market is three servers on one database, each a process of its own. The till's commands open
// the same database beside them.
type market struct {
	*till
	flags  []string
	stands [3]stand
	client http.Client

	mu       sync.Mutex
	last     time.Time     // when an add was answered
	longest  time.Duration // between two of those
	slowest  time.Duration // answer of a server that was running all the while
	restarts time.Duration // the longest that a server took to serve again, from its kill
	kills    int
	replayed int // answers to adds that had been done, unanswered
}

// A stand is one of the servers.
type stand struct {
	process *processtest.Process // of the test's goroutine
	base    string               // what the API's URLs begin with
	stops   int                  // how often it was stopped and woken; odd: it is stopped
	ctx     context.Context      // of its requests: clients that it leaves waiting turn to another one
	leave   context.CancelFunc
}

// patience is how long clients wait for a server that was stopped.
const patience = 300 * time.Millisecond

func newMarket(t *testing.T, document []byte, flags ...string) *market {
	s := &market{till: newTill(t), flags: flags}
	s.env["SELLO_DB"] = pgtest.DSN(t)
	s.ok("apply -", string(document))
	s.client.Transport = &http.Transport{MaxIdleConnsPerHost: 16}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(s.client.CloseIdleConnections)
	for i := range s.stands {
		s.open(i)
	}
	return s
}

// open starts a server.
func (s *market) open(i int) {
	s.Helper()
	cmd := selloCommand(s, append([]string{"serve"}, s.flags...)...)
	cmd.Env = append(cmd.Env, "SELLO_DB="+s.env["SELLO_DB"])
	process, err := processtest.Start(s, cmd)
	if err != nil {
		s.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &s.stands[i]
	one.process, one.base = process, process.Base
	one.ctx, one.leave = context.WithCancel(s.Context())
}

// kill kills a server and starts it again at once.
func (s *market) kill(i int) {
	s.Helper()
	began := time.Now()
	s.stands[i].process.Kill()
	s.open(i)
	s.kills++
	s.restarts = max(s.restarts, time.Since(began))
}

// stop stops a server for so long, as a machine that is suspended.
func (s *market) stop(i int, length time.Duration) {
	s.signal(i, syscall.SIGSTOP)
	time.Sleep(min(length, patience))
	if length > patience {
		s.stands[i].leave()
		time.Sleep(length - patience)
		s.mu.Lock()
		s.stands[i].ctx, s.stands[i].leave = context.WithCancel(s.Context())
		s.mu.Unlock()
	}
	s.signal(i, syscall.SIGCONT)
}

func (s *market) signal(i int, signal syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stands[i].process.Process.Signal(signal); err != nil {
		s.Error(err)
	}
	s.stands[i].stops++
}

func (s *market) stand(i int) stand {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stands[i]
}

// send sends a request to one of the servers and returns its status and body: 503 where there was
// no answer.
func (s *market) send(server int, key, method, path, retry, body string) (int, string) {
	before := s.stand(server)
	req, err := http.NewRequestWithContext(before.ctx, method, before.base+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("X-API-Key", key)
	req.Header.Set("Content-Type", "application/json")
	if retry != "" {
		req.Header.Set("Idempotency-Key", retry)
	}
	began := time.Now()
	status, text := http.StatusServiceUnavailable, []byte(nil)
	res, err := s.client.Do(req)
	if err == nil {
		status = res.StatusCode
		text, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	if err != nil {
		status, text = http.StatusServiceUnavailable, []byte(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if before.stops%2 == 0 && before.stops == s.stands[server].stops {
		s.slowest = max(s.slowest, now.Sub(began))
	}
	if err == nil && res.Header.Get("Idempotency-Replayed") == "true" {
		s.replayed++
	}
	if status < 300 && method == http.MethodPost {
		if !s.last.IsZero() {
			s.longest = max(s.longest, now.Sub(s.last))
		}
		s.last = now
	}
	return status, string(text)
}

// adders are clients of the servers.
func (s *market) adders() *adders {
	s.Helper()
	key, _ := s.key("-name x -rate-limit 10000000")
	a := newAdders(s.T, []string{key}, s.send, func() error {
		if code, out, errs := s.run("verify"); code != 0 {
			return fmt.Errorf("verify: exit %d\n%s%s", code, out, errs)
		}
		return nil
	})
	s.last = time.Time{}
	return a
}

// closed ends the servers, which must have run without a fault. They may have answered 503.
func (s *market) closed() {
	s.Helper()
	for i := range s.stands {
		p := s.stands[i].process
		code, faults := p.Stop(), ""
		for line := range strings.Lines(p.Log.String()) {
			if strings.Contains(line, `"level":"ERROR"`) && !strings.Contains(line, "unavailable") {
				faults += line
			}
		}
		if code != 0 || faults != "" {
			s.Errorf("server %d ended with %d\n%s", i, code, faults)
		}
	}
}

// TestPostgresKills kills servers while clients add points by any of them. No add is lost, none is
// done twice, and a server that was killed serves again at once.
func TestPostgresKills(t *testing.T) {
	seed := rand.Uint64N(1_000_000)
	s := newMarket(t, rushShop.document())
	faults := s.adders().run(seed, time.Duration(sized(150, 4))*time.Second, 12, func(rnd *rand.Rand) {
		first := rnd.IntN(3)
		s.kill(first)
		if rnd.IntN(4) == 0 {
			s.kill((first + 1) % 3)
		}
	})
	t.Logf("seed %d: %d kills, %d replays, no answer for %v at most, %v until a killed server served", seed, s.kills, s.replayed, s.longest, s.restarts)
	if len(faults) > 0 {
		t.Errorf("seed %d: %q", seed, faults)
	}
	if s.kills == 0 || s.restarts > 5*time.Second {
		t.Errorf("%d kills, %v until a killed server served", s.kills, s.restarts)
	}
	s.closed()
}

// TestPostgresKillsControl: clients that send an add again as another one do it twice, and the same
// test notices.
func TestPostgresKillsControl(t *testing.T) {
	skipUsual(t)
	s := newMarket(t, rushShop.document())
	a := s.adders()
	a.keyless = true
	if faults := a.run(1, 20*time.Second, 12, func(rnd *rand.Rand) { s.kill(rnd.IntN(3)) }); len(faults) == 0 {
		t.Errorf("adds that were sent again without their key were not noticed by %d kills", s.kills)
	} else {
		t.Logf("%d kills: %q", s.kills, faults)
	}
}

// TestPostgresStops stops a server under load, as a machine that is suspended: the others go on, and
// what it does when it wakes is right.
func TestPostgresStops(t *testing.T) {
	seed := rand.Uint64N(1_000_000)
	s := newMarket(t, rushShop.document())
	stops := 0
	faults := s.adders().run(seed, time.Duration(sized(150, 4))*time.Second, 12, func(rnd *rand.Rand) {
		for range rnd.IntN(20) { // at many moments of a commit
			s.stop(rnd.IntN(3), time.Duration(1+rnd.IntN(30))*time.Millisecond)
			time.Sleep(time.Duration(rnd.IntN(10)) * time.Millisecond)
			stops++
		}
		s.stop(rnd.IntN(3), time.Duration(sized(8000, 1000)+rnd.IntN(sized(4000, 500)))*time.Millisecond)
		stops++
	})
	t.Logf("seed %d: %d stops, %d replays, no answer for %v at most, %v for an answer of a running server", seed, stops, s.replayed, s.longest, s.slowest)
	if len(faults) > 0 {
		t.Errorf("seed %d: %q", seed, faults)
	}
	if s.slowest > 2*time.Second || s.longest > 2*time.Second {
		t.Errorf("seed %d: a server that was stopped held up the others", seed)
	}
	s.closed()
}

// TestPostgresWebhooks kills one server after another while all write events: each webhook gets all
// of its events, in order. What comes again comes from a round whose end was not stored.
func TestPostgresWebhooks(t *testing.T) {
	t.Parallel() // it waits for leases to end
	seed := rand.Uint64N(1_000_000)
	var mu sync.Mutex
	got := map[string][]uint64{} // by webhook
	var last time.Time
	var pause time.Duration
	receives := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e webhookEvent
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); r.URL.Path == "/crm" {
			if !last.IsZero() {
				pause = max(pause, now.Sub(last))
			}
			last = now
		}
		got[r.URL.Path[1:]] = append(got[r.URL.Path[1:]], e.Sequence)
	}))
	defer receives.Close()
	hooks := fmt.Sprintf(`"webhooks":[{"key":"crm","url":"%s/crm","events":["points.*"]},{"key":"all","url":"%[1]s/all","events":["*"]}]`, receives.URL)
	with := rushShop
	with.also += "," + hooks
	s := newMarket(t, with.document(), "-webhook-allow", "127.0.0.1/32")
	for _, hook := range []string{"crm", "all"} {
		s.ok("webhook secret " + hook)
	}
	a := s.adders()
	next, stops := 0, 0
	faults := a.run(seed, time.Duration(sized(120, 4))*time.Second, 2, func(rnd *rand.Rand) {
		s.kill(next % 3) // in a round one of them has the lease
		next++
		if sized(1, 0) == 1 && next%3 == 0 {
			s.stop(rnd.IntN(3), time.Duration(rnd.IntN(15))*time.Second) // its lease may end meanwhile
			stops++
		}
	})
	if len(faults) > 0 {
		t.Errorf("seed %d: %q", seed, faults)
	}
	shop := newShopOn(t, openTestPostgres(t, s.env["SELLO_DB"]), time.Now().Format(time.RFC3339))
	defer shop.engine.store.Close()
	shop.verified()
	for _, hook := range []string{"crm", "all"} {
		want, came := shop.wants(hook), 0
		var first []uint64
		for end := time.Now().Add(2 * time.Minute); len(first) < len(want) && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			mu.Lock()
			list := slices.Clone(got[hook])
			mu.Unlock()
			seen := map[uint64]bool{}
			first, came = nil, len(list)
			for _, n := range list {
				if !seen[n] {
					first = append(first, n)
				}
				seen[n] = true
			}
		}
		same(t, fmt.Sprintf("seed %d: first deliveries to %s", seed, hook), first, want)
		t.Logf("seed %d: %s got %d events, %d of them again", seed, hook, came, came-len(want))
		if came-len(want) > roundEvents*(s.kills+stops) {
			t.Errorf("seed %d: more came again than rounds had", seed)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("seed %d: %d kills and %d stops, no delivery for %v at most", seed, s.kills, stops, pause)
	if len(got) != 2 || pause > 20*time.Second {
		t.Errorf("seed %d: %d webhooks, no delivery for %v", seed, len(got), pause)
	}
	s.closed()
}

// TestPostgresCommands: what a command does beside servers holds on all of them in the next request.
func TestPostgresCommands(t *testing.T) {
	const origin = "http://127.0.0.1:8080"
	document := string(setup{also: `"rewards":[{"key":"taza","program":"club","name":"Taza","pointsCost":1}]`}.document())
	s := newMarket(t, []byte(document), "-panel", origin)
	page := func(server int, method, path, cookie string, fields url.Values) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, strings.TrimSuffix(s.stands[server].base, "/api/v1")+path, strings.NewReader(fields.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = strings.TrimPrefix(origin, "http://")
		req.Header.Set("Cookie", cookie)
		if method == http.MethodPost {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Origin", origin)
		}
		res, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return res
	}
	everywhere := func(want int, where, why string, send func(server int) (int, string)) {
		t.Helper()
		for i := range s.stands {
			if status, answer := send(i); status != want || !strings.Contains(answer, where) {
				t.Errorf("%s: server %d: %d %s", why, i, status, answer)
			}
		}
	}
	ana := ""
	for i := range sized(20, 3) {
		key, id := s.key("-name x")
		rewards := func(server int) (int, string) { return s.send(server, key, "GET", "/rewards", "", "") }
		everywhere(200, `"Taza"`, "a key that was made", rewards)
		document = strings.Replace(document, fmt.Sprintf(`"pointsCost":%d}`, i+1), fmt.Sprintf(`"pointsCost":%d}`, i+2), 1)
		s.ok("apply -", document)
		everywhere(200, fmt.Sprintf(`"pointsCost":%d,`, i+2), "a document that was applied", func(server int) (int, string) {
			status, answer := rewards(server)
			return status, strings.Join(strings.Fields(answer), "")
		})
		if out := s.ok("migrate"); !strings.HasSuffix(out, fmt.Sprintf(": ya es del esquema %d\n", schemaVersion)) {
			t.Error(out)
		}
		s.ok("key revoke " + id)
		everywhere(401, "", "a key that was revoked", rewards)

		if ana == "" {
			link := regexp.MustCompile(`/panel/invitacion/\w+`).FindString(s.ok("user invite -email ana@ejemplo.mx -role admin -panel " + origin))
			if in := page(i%3, "POST", link, "", url.Values{"name": {"Ana"}, "password": {testPassword}}); in.StatusCode != http.StatusSeeOther {
				t.Fatalf("%s: %d", link, in.StatusCode)
			}
		} else {
			s.ok("user enable ana@ejemplo.mx")
		}
		in := page(i%3, "POST", "/panel/entrar", "", url.Values{"email": {"ana@ejemplo.mx"}, "password": {testPassword}})
		for _, c := range in.Cookies() {
			if c.Name == "sello" {
				ana = c.Name + "=" + c.Value
			}
		}
		home := func(server int) (int, string) {
			res := page(server, "GET", "/panel/ventas", ana, nil)
			return res.StatusCode, res.Header.Get("Location")
		}
		everywhere(200, "", "a member", home)
		s.ok("user disable ana@ejemplo.mx")
		everywhere(303, "/panel/entrar?ir=", "a user who was disabled", home)
	}
	s.ok("verify")
	s.closed()
}

// TestPostgresPanel: the requests of a browser go to any of three servers, as if there were one.
func TestPostgresPanel(t *testing.T) {
	var panels []*panelShop
	for i, store := range servers(t, 3) {
		t.Cleanup(func() { store.Close() })
		p := newPanelOn(newShopOn(t, store, "2026-03-02T10:00:00Z"))
		p.takesPeople()
		p.made = i * 1000
		p.shop.ids.Store(uint64(i) << 40) // other ids than the others'
		if panels = append(panels, p); i == 0 {
			p.shop.apply(panelSetup.document())
		}
	}
	pass := func(d time.Duration) {
		for _, p := range panels {
			p.shop.pass(d)
		}
	}
	const email, sent = "ana@ejemplo.mx", http.StatusSeeOther
	panels[0].shop.person(email, roleOwner)
	b := panels[0].browser()
	on := func(server int) *browser { b.panelShop = panels[server]; return b }
	logIn := url.Values{"email": {email}, "password": {testPassword}}
	luz := "/panel/caja/" + panels[1].shop.customer("luz").String()
	path := luz + "/venta"
	sales := func() int { return int(ask(panels[2].shop, (*txn).count).Sales) }

	// A form that one server made goes to the second, and again to the third.
	b.want(sent, "/panel", on(0).send("POST", "/panel/entrar", logIn))
	page := b.want(http.StatusOK, "", panelFollow(on(0), luz))
	fields := hidden(page)
	fields.Set("totalAmount", "100")
	w := on(1).send("POST", path, fields)
	where := w.Header().Get("Location")
	b.want(sent, where, w)
	b.want(sent, where, on(2).send("POST", path, fields))
	same(t, "sales", sales(), 1)

	// A log-out holds on the others.
	b.want(http.StatusOK, "", on(0).send("GET", "/panel/ventas", nil))
	cookie := b.cookies["sello"]
	b.want(sent, "/panel", on(2).send("POST", "/panel/salir", url.Values{orgField: {"cafe-luna"}}))
	b.cookies["sello"] = cookie
	for i := range panels {
		b.want(sent, "/panel/entrar?ir=%2Fpanel%2Fventas", on(i).send("GET", "/panel/ventas", nil))
	}

	// A form is kept over a log-in.
	b.want(sent, "/panel", on(1).send("POST", "/panel/entrar", logIn))
	pass(3 * time.Hour)
	fields = url.Values{orgField: {"cafe-luna"}, tokenField: {"TOKEN0123456789A"}, "totalAmount": {"70"}}
	fields = hidden(b.want(http.StatusUnauthorized, "", on(0).send("POST", path, fields), "La sesión terminó"))
	fields.Set("email", email)
	fields.Set("password", testPassword)
	if w := on(1).send("POST", "/panel/entrar", fields); w.Code != sent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	same(t, "sales", sales(), 2)

	// The password that one server asks for is given to the second, and holds on the third.
	pass(proofHolds)
	key := url.Values{orgField: {"cafe-luna"}, tokenField: {"TOKEN0123456789B"}, "name": {"Caja 2"}, accessField: {accessAll}, expiresField: {expiresNever}}
	fields = hidden(b.want(http.StatusForbidden, "", on(0).send("POST", keysPath+"/nueva", key), "contraseña otra vez"))
	fields.Set("password", testPassword)
	b.want(http.StatusOK, "", on(1).send("POST", provePath, fields), "Caja 2")

	// A second factor is shown by one server and set up on the second; its code opens one session.
	page = b.want(http.StatusOK, "", panelFollow(on(2), factorPath))
	fields = hidden(page)
	fields.Set("factorCode", b.shownCode(page))
	page = b.want(http.StatusOK, "", on(0).send("POST", factorPath, fields), "Códigos de recuperación")
	code := url.Values{"factorCode": {regexp.MustCompile(`<code>([A-Z2-7-]+)`).FindStringSubmatch(page)[1]}}
	for _, want := range []int{sent, http.StatusUnprocessableEntity} {
		b = panels[0].browser()
		b.want(sent, "/panel/entrar/codigo?ir=%2Fpanel", on(1).send("POST", "/panel/entrar", logIn))
		b.want(sent, "/panel/entrar?ir=%2Fpanel%2Fventas", on(2).send("GET", "/panel/ventas", nil))
		if w := on(0).send("POST", "/panel/entrar/codigo", code); w.Code != want {
			t.Errorf("%d, want %d: %s", w.Code, want, w.Body)
		}
	}
	panels[1].shop.verified()
}

// panelFollow opens a page, and follows to it with a token.
func panelFollow(b *browser, path string) *httptest.ResponseRecorder {
	w := b.send("GET", path, nil)
	for w.Code == http.StatusSeeOther && strings.Contains(w.Header().Get("Location"), tokenParam+"=") {
		w = b.send("GET", w.Header().Get("Location"), nil)
	}
	return w
}
