package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sello/internal/wallclock/wallclocktest"
	"sello/internal/webhook"
)

const withWebhooks = `"webhooks":[{"key":"crm","url":"https://crm.example.com/hook","events":["points.*","customer.created"]},
	{"key":"slow","url":"https://slow.example.com/","events":["*"]}]`

// TestWebhookDocument: what is told of wrong webhooks.
func TestWebhookDocument(t *testing.T) {
	t.Parallel()
	const good = `{"key":"crm","url":"https://crm.example.com/hook?a=1","events":["points.*"]}`
	for hooks, want := range map[string]string{
		good: "",
		`{"key":"crm","url":"http://localhost:9000/","events":["*"]}`:                      "",
		`{"key":"crm","url":"http://10.1.2.3/","events":["*"]}`:                            "",
		`{"key":"crm","url":"http://[::1]:80/","events":["*"],"status":"Inactive"}`:        "",
		`{"key":"crm","url":"http://crm.example.com/","events":["*"]}`:                     "webhooks[0].url: debe ser una URL https",
		`{"key":"crm","url":"http://1.1.1.1/","events":["*"]}`:                             "webhooks[0].url: debe ser una URL https",
		`{"key":"crm","url":"https://ana:secreto@crm.example.com/","events":["*"]}`:        "webhooks[0].url: debe ser una URL https",
		`{"key":"crm","url":"https://crm.example.com/#a","events":["*"]}`:                  "webhooks[0].url: debe ser una URL https",
		`{"key":"crm","url":"ftp://crm.example.com/","events":["*"]}`:                      "webhooks[0].url: debe ser una URL https",
		`{"key":"crm","url":"crm.example.com","events":["*"]}`:                             "webhooks[0].url: debe ser una URL https",
		`{"key":"crm","url":"https://:443/","events":["*"]}`:                               "webhooks[0].url: debe ser una URL https",
		`{"key":"crm","events":["*"]}`:                                                     "webhooks[0].url",
		`{"key":"crm","url":"https://crm.example.com/"}`:                                   "webhooks[0].events: hace falta al menos uno",
		`{"key":"crm","url":"https://crm.example.com/","events":["points.sold"]}`:          `webhooks[0].events[0]: no es ningún tipo de evento: "points.sold"`,
		`{"key":"crm","url":"https://crm.example.com/","events":["*"],"status":"Activo"}`:  "webhooks[0].status",
		`{"key":"CRM","url":"https://crm.example.com/","events":["*"]}`:                    "webhooks[0].key",
		`{"key":"crm","url":"https://crm.example.com/","events":["*"],"secret":"whsec_a"}`: "webhooks[0].secret: campo desconocido",
		good + "," + good:                   `webhooks[1].key: "crm" está repetida`,
		strings.Repeat(good+",", 10) + good: "webhooks: no puede haber más de 10",
	} {
		_, problems := readDocument(setup{also: `"webhooks":[` + hooks + `]`}.document())
		if got := strings.Join(problems, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", hooks, got, want)
		}
	}
}

// TestWebhookState: what follows from an attempt.
func TestWebhookState(t *testing.T) {
	t.Parallel()
	fails := &webhook.Outcome{Status: 500, Err: errors.New("status 500")}
	s := webhookState{Sent: 5}
	now := instant(1_000_000)
	first := now
	var waits []time.Duration
	for s.Paused == 0 {
		s = s.after(delivered{5, fails}, now)
		if s.Sent != 5 || s.Failing != first || s.Why != "HTTP 500" {
			t.Fatalf("%+v", s)
		}
		if s.Paused == 0 {
			waits = append(waits, s.Next.sub(now))
			now = s.Next
		}
	}
	if !slices.IsSorted(waits) || waits[0] != 5*time.Second || now-first < givesUp || s.Paused-first > givesUp+4*60*60*1000 {
		t.Errorf("paused after %v, waits %v", (s.Paused - first), waits)
	}
	after := s.after(delivered{7, nil}, now)
	same(t, "after a success", after, webhookState{Sent: 7})
	if gone := (&webhookState{}).after(delivered{0, &webhook.Outcome{Status: 410, Err: errors.New("gone")}}, 7); gone.Paused != 7 {
		t.Errorf("410: %+v", gone)
	}
	if busy := (&webhookState{}).after(delivered{0, &webhook.Outcome{Status: 503, Err: errors.New("busy"), After: time.Hour}}, 7); busy.Next != instant(7).add(time.Hour) {
		t.Errorf("Retry-After: %+v", busy)
	}
	part := (&webhookState{Sent: 1, Failing: 1, Failed: 9}).after(delivered{3, fails}, 50)
	if part.Sent != 3 || part.Failing != 50 || part.Failed != 1 {
		t.Errorf("one went through, the next one did not: %+v", part)
	}
}

// A receiver takes what is sent to a host of the fake network, in its transport's stead.
type receiver struct {
	mu     sync.Mutex
	got    map[string][]got // by host
	answer func(host string) (int, time.Duration)
}

type got struct {
	id, signature, timestamp string
	body                     webhookEvent
	raw                      string
}

func (r *receiver) RoundTrip(q *http.Request) (*http.Response, error) {
	raw, _ := io.ReadAll(q.Body)
	status, takes := r.answer(q.URL.Host)
	select {
	case <-time.After(takes):
	case <-q.Context().Done():
		return nil, q.Context().Err()
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	g := got{id: q.Header.Get("webhook-id"), signature: q.Header.Get("webhook-signature"), timestamp: q.Header.Get("webhook-timestamp"), raw: string(raw)}
	json.Unmarshal(raw, &g.body)
	if status < 300 {
		r.mu.Lock()
		r.got[q.URL.Host] = append(r.got[q.URL.Host], g)
		r.mu.Unlock()
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: q}, nil
}

func (r *receiver) sequences(host string) (list []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.got[host] {
		list = append(list, g.body.Sequence)
	}
	return list
}

// hookedShop returns a shop in a synctest bubble, whose clock is the bubble's, and a deliverer
// that sends to a receiver.
func hookedShop(t *testing.T, answer func(host string) (int, time.Duration)) (*shop, *deliverer, *receiver) {
	s := newEmptyShop(t, "2000-01-01T00:00:00Z")
	s.engine = newEngine(s.engine.store.Store, time.Now, s.engine.seed)
	s.clock = instantOf(time.Now())
	s.apply(setup{also: withWebhooks}.document())
	r := &receiver{got: map[string][]got{}, answer: answer}
	d := newDeliverer(s.engine, nil, slog.New(slog.DiscardHandler))
	d.client = &http.Client{Transport: r}
	return s, d, r
}

// wants lists the events that a webhook of the shop asks for.
func (s *shop) wants(hook string) (list []uint64) {
	return ask(s, func(t *txn) (list []uint64, err error) {
		for e, err := range t.feed.from(1) {
			if err != nil {
				return nil, err
			}
			if t.cfg.webhook(hook).wants(e.Kind) {
				list = append(list, e.Seq)
			}
		}
		return list, nil
	})
}

// TestWebhookDown: a receiver that is down for two hours gets all, in order and with the same
// ids, and another one that hangs holds it up as little as anybody who writes.
func TestWebhookDown(t *testing.T) {
	skipQuick(t)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, d, r := hookedShop(t, func(host string) (int, time.Duration) {
			switch {
			case host == "slow.example.com":
				return 200, time.Minute // nobody waits so long
			case time.Since(began) < 2*time.Hour:
				return []int{0, 500, 307, 404}[int(time.Since(began).Minutes())%4], time.Second
			}
			return 200, 10 * time.Millisecond
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { d.run(ctx); close(ended) }()
		for _, hook := range []string{"crm", "slow"} {
			if _, err := s.admin().newWebhookSecret(ctx, webhookRequest{"cafe-luna", hook, 0}); err != nil {
				t.Fatal(err)
			}
		}
		var c id
		for i := range 130 {
			s.clock = instantOf(time.Now())
			if i%20 == 0 {
				c = s.customer(fmt.Sprint("c", i))
			}
			s.buy(c, "100")
			time.Sleep(time.Minute)
		}
		if got := r.sequences("crm.example.com"); len(got) > 0 && time.Since(began) < 2*time.Hour {
			t.Errorf("delivered while it was down: %v", got)
		}
		time.Sleep(5 * time.Hour) // for the next attempt
		want := s.wants("crm")
		same(t, "what was delivered", r.sequences("crm.example.com"), want)
		list, err := s.admin().listWebhooks(ctx, orgRequest{"cafe-luna"})
		s.ok(err)
		if list[0].Failing != 0 || list[1].Failing == 0 || !strings.Contains(list[1].Why, whyTimeout) {
			t.Errorf("%+v", list)
		}
		stop()
		<-ended
		s.verified()
		s.engine.store.Close()
	})
}

// TestWebhookPaused: after three days of failures a webhook is paused, until it is resumed.
// Events that are kept no longer by then are lost, and told.
func TestWebhookPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 500
		var mu sync.Mutex
		tries := 0
		s, d, r := hookedShop(t, func(host string) (int, time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if host == "crm.example.com" {
				tries++
			}
			return status, time.Millisecond
		})
		d.poll, d.hooksPoll = 30*time.Second, 30*time.Second
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { d.run(ctx); close(ended) }()
		a := s.admin()
		_, err := a.newWebhookSecret(ctx, webhookRequest{"cafe-luna", "crm", 0})
		s.ok(err)
		s.customer("ana")
		time.Sleep(givesUp*time.Millisecond + longestWait/4)
		list, err := a.listWebhooks(ctx, orgRequest{"cafe-luna"})
		s.ok(err)
		mu.Lock()
		before := tries
		if list[0].Paused == 0 || list[0].Why != "HTTP 500" || before < 10 || before > 40 {
			t.Errorf("%+v after %d attempts", list[0], before)
		}
		status = 200
		mu.Unlock()
		time.Sleep(24 * time.Hour)
		mu.Lock()
		if tries != before {
			t.Errorf("%d attempts while it was paused", tries-before)
		}
		mu.Unlock()
		_, err = a.resumeWebhook(ctx, webhookRequest{"cafe-luna", "crm", 0})
		s.ok(err)
		time.Sleep(time.Minute)
		want := s.wants("crm")
		same(t, "after it was resumed", r.sequences("crm.example.com"), want)

		_, err = a.replayWebhook(ctx, webhookRequest{"cafe-luna", "crm", want[0]})
		s.ok(err)
		time.Sleep(time.Minute)
		same(t, "after a replay", r.sequences("crm.example.com"), append(slices.Clone(want), want...))
		ids := map[uint64]string{}
		for _, g := range r.got["crm.example.com"] {
			if first := ids[g.body.Sequence]; first != "" && first != g.id {
				t.Errorf("event %d was %s and is %s", g.body.Sequence, first, g.id)
			}
			ids[g.body.Sequence] = g.id
		}
		if _, err := a.replayWebhook(ctx, webhookRequest{"cafe-luna", "crm", 99}); err == nil {
			t.Error("replayed from an event that there is not")
		}
		stop()
		<-ended
		s.engine.store.Close()
	})
}

// TestWebhookRotation: for a day after a new secret, both sign.
func TestWebhookRotation(t *testing.T) {
	skipQuick(t)
	synctest.Test(t, func(t *testing.T) {
		s, d, r := hookedShop(t, func(string) (int, time.Duration) { return 200, time.Millisecond })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { d.run(ctx); close(ended) }()
		a := s.admin()
		secret := func() []byte {
			shown, err := a.newWebhookSecret(ctx, webhookRequest{"cafe-luna", "crm", 0})
			s.ok(err)
			raw, err := webhook.ParseSecret(shown.Secret)
			s.ok(err)
			return raw
		}
		s.customer("before") // waits for a secret
		time.Sleep(time.Minute)
		if n := len(r.sequences("crm.example.com")); n != 0 {
			t.Errorf("%d events were sent unsigned", n)
		}
		check := func(what string, secrets ...[]byte) {
			t.Helper()
			time.Sleep(time.Minute)
			r.mu.Lock()
			defer r.mu.Unlock()
			g := r.got["crm.example.com"][len(r.got["crm.example.com"])-1]
			var unix int64
			fmt.Sscan(g.timestamp, &unix)
			if want := webhook.Sign(secrets, g.id, time.Unix(unix, 0), []byte(g.raw)); g.signature != want {
				t.Errorf("%s: %s, want %s", what, g.signature, want)
			}
		}
		one := secret()
		check("the first secret", one)
		two := secret()
		s.customer("during")
		check("during the rotation", two, one)
		three := secret()
		s.customer("again")
		check("a second rotation ends the oldest", three, two)
		time.Sleep(25 * time.Hour)
		s.customer("after")
		check("a day later", three)
		stop()
		<-ended
		s.engine.store.Close()
	})
}

// TestWebhookFollows: a webhook begins with its apply, and its state goes with it.
func TestWebhookFollows(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	s.customer("ana")
	before := s.feed(0)
	s.apply(setup{also: withWebhooks}.document())
	list, err := s.admin().listWebhooks(s.Context(), orgRequest{"cafe-luna"})
	s.ok(err)
	if len(list) != 2 || list[0].Sent != uint64(len(before)) || list[0].HasSecret {
		t.Errorf("%+v", list)
	}
	_, err = s.admin().newWebhookSecret(s.Context(), webhookRequest{"cafe-luna", "crm", 0})
	s.ok(err)
	s.apply(setup{}.document()) // leaves them as they are
	list, err = s.admin().listWebhooks(s.Context(), orgRequest{"cafe-luna"})
	s.ok(err)
	if len(list) != 2 || !list[0].HasSecret {
		t.Errorf("%+v", list)
	}
	s.apply(setup{also: `"webhooks":[]`}.document())
	s.apply(setup{also: withWebhooks}.document())
	list, err = s.admin().listWebhooks(s.Context(), orgRequest{"cafe-luna"})
	s.ok(err)
	if len(list) != 2 || list[0].HasSecret {
		t.Errorf("a removed webhook kept its secret: %+v", list)
	}
	if _, err := s.admin().newWebhookSecret(s.Context(), webhookRequest{"cafe-luna", "erp", 0}); err == nil || !strings.Contains(err.Error(), "hay: crm, slow") {
		t.Error(err)
	}
}

// TestWebhookCommands runs the commands beside a real server and a real receiver.
func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	got := make(chan string, 100)
	receives := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	}))
	defer receives.Close()
	s := newTill(t)
	document := strings.Replace(string(demoDocument), "{", fmt.Sprintf(`{"webhooks":[{"key":"crm","url":%q,"events":["configuration.*"]}],`, receives.URL), 1)
	s.ok("apply -", document)
	if out := s.ok("webhook list"); !strings.Contains(out, "sin secreto: sello webhook secret crm") {
		t.Error(out)
	}
	if code, _, errs := s.run("webhook test crm"); code != 1 || !strings.Contains(errs, "no tiene secreto") {
		t.Errorf("%d %s", code, errs)
	}
	if out := s.ok("webhook secret crm"); !strings.HasPrefix(out, "whsec_") {
		t.Error(out)
	}
	if code, _, errs := s.run("webhook test crm"); code != 1 || !strings.Contains(errs, "la dirección no es pública; quien opera el servidor puede permitirla con -webhook-allow") {
		t.Errorf("%d %s", code, errs)
	}
	r, _ := s.start("serve -webhook-allow 127.0.0.0/8")
	if out := s.ok("webhook test crm"); out != "entregado: HTTP 200\n" {
		t.Error(out)
	}
	seen := map[string]bool{}
	for !seen["webhook.test"] || !seen["configuration.applied"] {
		var e webhookEvent
		if err := json.Unmarshal([]byte(<-got), &e); err != nil {
			t.Fatal(err)
		}
		seen[e.Type] = true
	}
	if code, _, errs := s.run("webhook replay crm"); code != 2 || !strings.Contains(errs, "falta -from") {
		t.Errorf("%d %s", code, errs)
	}
	s.ok("webhook replay crm -from 1")
	<-got
	s.ok("webhook resume crm")
	if out := s.ok("webhook list -json"); !strings.Contains(out, `"hasSecret": true`) || strings.Contains(out, "whsec_") {
		t.Error(out)
	}
	if out := s.ok("audit"); !strings.Contains(out, "webhook.secret") || !strings.Contains(out, "webhook.replayed") || strings.Contains(out, "whsec_") {
		t.Error(out)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, r.log)
	}
	if log := r.log.String(); strings.Contains(log, "whsec_") {
		t.Error(log)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "sello.db")); err != nil {
		t.Error(err)
	}
}

// TestWebhookTakenOut: a delivery that began before its webhook was taken out and put back does
// not bring back what was then: how far it had come, and its secret.
func TestWebhookTakenOut(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: withWebhooks})
	a, h := s.admin(), hookOf{1, "crm"}
	secret := func() {
		_, err := a.newWebhookSecret(s.Context(), webhookRequest{"cafe-luna", h.hook, 0})
		s.ok(err)
	}
	state := func() *webhookState {
		return ask(s, func(t *txn) (*webhookState, error) {
			_, state, err := t.webhooks.get(h.hook)
			return state, err
		})
	}
	secret()
	s.customer("ana")
	d := newDeliverer(s.engine, nil, slog.New(slog.DiscardHandler))
	r, err := d.look(s.Context(), h)
	s.ok(err)
	if r.silent || len(r.list) == 0 {
		t.Fatalf("%+v", r)
	}
	s.apply(setup{also: `"webhooks":[]`}.document())
	s.apply(setup{also: withWebhooks}.document())
	secret()
	want := state()
	s.ok(d.store(s.Context(), h, &r, delivered{upto: r.upto}))
	same(t, "the state", state(), want)
}

// TestWebhookID: after a restore an event has another id than the lost one of its number.
func TestWebhookID(t *testing.T) {
	t.Parallel()
	s := newEmptyShop(t, "2026-03-02T10:00:00Z")
	s.apply(setup{also: withWebhooks}.document())
	s.customer("ana")
	last := uint64(len(s.feed(0)))
	idOf := func() string {
		return ask(s, func(t *txn) (string, error) {
			list, _, err := t.webhooks.pendingEvents(t.cfg.webhook("slow"), last-1, 1)
			if err != nil {
				return "", err
			}
			return list[0].id, nil
		})
	}
	lost := idOf()
	s.ok(s.engine.store.Update(s.Context(), func(tx Tx) error {
		return put(tx, eventKey(1, last), &eventRecord{s.clock + 1, []event{{Kind: eventCustomerCreated, Refs: [4]uint64{1}}}})
	}))
	if idOf() == lost {
		t.Errorf("both are %s", lost)
	}
}

// TestWebhookClock: while the clock is unsafe nothing is sent or stored, and a moment from when
// it was wrong keeps nobody waiting for long.
func TestWebhookClock(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{at: "2027-03-01T12:00:00Z", also: withWebhooks})
	h := hookOf{1, "crm"}
	_, err := s.admin().newWebhookSecret(s.Context(), webhookRequest{"cafe-luna", h.hook, 0})
	s.ok(err)
	s.customer("ana")
	m := &wallclocktest.Machine{Wall: s.clock.time()}
	s.engine = newEngineBy(newWallClock(m), s.engine.store, s.engine.seed)
	s.ok(s.engine.open(s.Context()))
	m.Pass(time.Minute)
	s.engine.now()
	r := &receiver{got: map[string][]got{}, answer: func(string) (int, time.Duration) { return 200, 0 }}
	d := newDeliverer(s.engine, nil, slog.New(slog.DiscardHandler))
	d.client = &http.Client{Transport: r}
	m.Wall = m.Wall.AddDate(9, 0, 0)
	before := stored(t, s.engine.store)
	wait, err := d.round(s.Context(), h, d.turnOf(h))
	s.ok(err)
	if sent := r.sequences("crm.example.com"); wait == 0 || sent != nil {
		t.Errorf("sent %v, waits %v", sent, wait)
	}
	same(t, "the store", stored(t, s.engine.store), before)
	m.Wall = m.Wall.AddDate(-9, 0, 0)
	s.ok(s.engine.store.Update(s.Context(), func(tx Tx) error {
		state, err := get[webhookState](tx, webhookKey(h.org, h.hook))
		if err != nil {
			return err
		}
		state.Next = s.clock.add(365 * oneDay)
		return put(tx, webhookKey(h.org, h.hook), state)
	}))
	_, err = d.round(s.Context(), h, d.turnOf(h))
	s.ok(err)
	if sent := r.sequences("crm.example.com"); len(sent) != 1 {
		t.Errorf("sent %v", sent)
	}
}

// TestWebhookTurns: however many receivers hang, one that takes what it gets is not held up.
// One that was not tried for long is not paused for the time before.
func TestWebhookTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, r := hookedShop(t, func(host string) (int, time.Duration) {
			if host == "slow.example.com" {
				return 200, time.Minute // nobody waits so long
			}
			return 200, time.Millisecond
		})
		d.turn, d.again = make(chan struct{}, 1), make(chan struct{}, 1)
		serve := func() (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { d.run(ctx); close(ended) }()
			return func() { cancel(); <-ended }
		}
		stop := serve()
		for _, hook := range []string{"crm", "slow"} {
			_, err := s.admin().newWebhookSecret(t.Context(), webhookRequest{"cafe-luna", hook, 0})
			s.ok(err)
		}
		s.customer("ana")
		time.Sleep(time.Minute) // slow has failed, and hangs most of the time
		d.again <- struct{}{}   // as if another one hung too
		s.customer("eva")
		time.Sleep(5 * time.Second)
		same(t, "what crm got", r.sequences("crm.example.com"), s.wants("crm"))
		<-d.again
		stop()

		time.Sleep(5 * 24 * time.Hour)
		stop = serve()
		time.Sleep(time.Second)
		if paused, lag := d.lateness(); paused != 0 || lag < 5*24*time.Hour {
			t.Errorf("after a stop, before the next attempt: %d paused, %v late", paused, lag)
		}
		time.Sleep(time.Hour)
		list, err := s.admin().listWebhooks(t.Context(), orgRequest{"cafe-luna"})
		s.ok(err)
		if slow := list[1]; slow.Paused != 0 || slow.Failed < 3 {
			t.Errorf("an hour after a stop of five days: %+v", slow)
		}
		stop()
		s.engine.store.Close()
	})
}

// TestWebhookNextTry: the list says in how long a delivery is tried again, to the second.
func TestWebhookNextTry(t *testing.T) {
	const now = instant(1_800_000_000_000)
	for after, want := range map[time.Duration]string{
		-time.Second: "ahora", 0: "ahora", time.Millisecond: "en 1 s", 30 * time.Second: "en 30 s", 99 * time.Second: "en 99 s",
		2 * time.Minute: "en 2 min", 30 * time.Minute: "en 30 min", 4 * time.Hour: "en 4 h",
	} {
		l := listedWebhook{HasSecret: true}
		l.Key = "crm"
		l.Status, l.Failing, l.Why, l.Next = statusActive, now, "no_connection", now.add(after)
		if got := l.stateText(now); got != "falla desde 2027-01-15T08:00Z (no hubo conexión); próximo intento "+want {
			t.Errorf("%s: %s, want %s", after, got, want)
		}
	}
}
