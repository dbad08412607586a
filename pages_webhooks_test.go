package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sello/internal/logline"
	"sello/internal/webhook"
)

const oneWebhook = `"webhooks":[{"key":"crm","url":"https://crm.example.com/a?token=sesamo","events":["points.*","customer.created"],"status":"Active"}]`

// reviewed sends a form of the configuration to be reviewed, and returns the page and the form
// that applies it.
func (d *desk) reviewed(page, path string, fields url.Values) (*httptest.ResponseRecorder, url.Values) {
	d.panelShop.shop.Helper()
	if fields.Get(etagField) == "" {
		fields.Set(etagField, d.panelShop.stamp(d.as, page))
	}
	w := d.panelShop.post(d.as, path, fields)
	if found := digestForm.FindStringSubmatch(w.Body.String()); w.Code == http.StatusOK && found != nil {
		fields.Set(reviewedField, found[1])
	}
	return w, fields
}

// applies reviews a form and applies it; it returns where the form leads.
func (d *desk) applies(page, path string, fields url.Values) string {
	d.panelShop.shop.Helper()
	w, fields := d.reviewed(page, path, fields)
	d.want(w, http.StatusOK, "the review of "+path)
	w = d.panelShop.post(d.as, path, fields)
	d.want(w, http.StatusSeeOther, path)
	return w.Header().Get("Location")
}

// withoutWebhooks is the organization's document but for its webhooks.
func (d *desk) withoutWebhooks() string {
	var tree docTree
	d.panelShop.shop.ok(json.Unmarshal(d.panelShop.shop.exportedDocument(), &tree))
	delete(tree, "webhooks")
	raw, err := json.Marshal(tree)
	d.panelShop.shop.ok(err)
	return string(raw)
}

// changeLists are the lists of changes in a page.
var changeLists = regexp.MustCompile(`(?s)<ul class="diff">.*?</ul>`)

// TestWebhookAddress: of a webhook's URL only scheme and host are in what stays, or is read by more
// people than may edit it. What an older sello wrote into the audit log is shown so too. The
// document and the form have it whole.
func TestWebhookAddress(t *testing.T) {
	t.Parallel()
	d := newDesk(newShop(t, setup{}))
	s, log := d.panelShop.shop, new(bytes.Buffer)
	lines := logline.NewWriter(log)
	s.engine.log = slog.New(slog.NewJSONHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d.as = roleOwner
	served := s.served()
	served.api.log, served.api.lines = s.engine.log, lines
	cut := func(what, text string, want ...string) {
		t.Helper()
		if strings.Contains(text, "SESAMO") {
			t.Errorf("%s has the whole URL:\n%s", what, text)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s has not %q:\n%s", what, w, text)
			}
		}
	}
	document := func(url string) []byte {
		return []byte(strings.ReplaceAll(strings.Replace(oneWebhook, "https://crm.example.com/a?token=sesamo", url, 1), `"key":"crm"`, `"key":"hook"`))
	}
	applied := func(webhooks, want string) {
		t.Helper()
		var out bytes.Buffer
		done := s.apply([]byte(setup{also: webhooks}.document()))
		showApplied(&out, done)
		told, err := encode(done)
		s.ok(err)
		cut("sello apply", out.String()+string(told), want)
	}
	const host, first, second = "https://hooks.example.com:8443", "https://hooks.example.com:8443/SESAMO1?token=SESAMO2", "https://hooks.example.com:8443/SESAMO3?token=SESAMO4"
	applied(string(document(first)), "+ webhooks[hook].url: "+host+"\n")
	edit := webhooksPath + "/hook/cambiar"
	w, _ := d.reviewed(edit, edit, url.Values{"url": {second}, "events[0]": {"*"}, "status": {"Active"}})
	if page := w.Body.String(); !strings.Contains(page, `value="`+second+`"`) {
		t.Errorf("the form has not the whole URL:\n%s", mainOf(page))
	}
	rest := tr(speaking("es"), "webhook.url.rest", host)
	cut("the review", strings.Join(changeLists.FindAllString(w.Body.String(), -1), ""), rest)
	applied(string(document(second)), "~ webhooks[hook].url: "+host+" → "+host+"\n")
	hooks := must(s, func(t *txn) ([]listedWebhook, error) { return t.webhooks.list() })
	listed, err := encode(hooks)
	s.ok(err)
	cut("sello webhook list", string(listed), `"`+host+`"`)
	cut("the list of webhooks", d.get(webhooksPath).Body.String(), host+"</p>")
	if text := string(s.exportedDocument()); !strings.Contains(text, second) {
		t.Errorf("the document has not the whole URL: %s", text)
	}
	applied(`"webhooks":[]`, "- webhooks[hook].url: "+host+"\n")
	cut("the audit log as it is stored", strings.Join(s.audited(auditFilter{action: auditConfigurationApplied}), "\n"), host)
	must(s, func(t *txn) (any, error) { // as before
		return nil, t.audit.note(auditConfigurationApplied, t.cfg.ID.String(), []change{{"webhooks[hook].url", first, second}})
	})
	cut("GET /audit", served.get("/api/v1/audit").Body.String(), `"before":"`+host+`","after":"`+host+`"`, `"before":"`+host+`","after":null`)
	cut("GET /events", served.get("/api/v1/events").Body.String(), "configuration.applied")
	cut("the page of the audit log", d.get(auditPath).Body.String(), rest)
	cut("its CSV", d.file(auditPath+"/exportar?kind=All").Body.String(), `"""`+host+`""","""`+host+`"""`)
	entries, err := s.admin().audit(s.Context(), auditRequest{Org: "cafe-luna", Limit: 10})
	s.ok(err)
	told, err := encode(entries)
	s.ok(err)
	cut("sello audit", string(told), host)
	for _, of := range []string{"antes=1&despues=2", "antes=2&despues=3", "antes=3&despues=4", "antes=4&despues=2"} {
		lists := changeLists.FindAllString(d.get(versionsPath+"/comparar?"+of).Body.String(), -1)
		cut("versions "+of, strings.Join(lists, ""), host)
	}
	lines.Close() // it writes from a goroutine of its own
	cut("the log", log.String(), "/api/v1/audit")
	s.verified()
}

// TestWebhookByHand: a developer, who may not change the configuration, makes a webhook, its
// secret, changes it and removes it. Whatever else the form has, nothing else changes.
func TestWebhookByHand(t *testing.T) {
	t.Parallel()
	d := newDesk(newShop(t, setup{also: oneWebhook}))
	if roleDeveloper.may("config:write") != grantNone {
		t.Fatal("developers may change the configuration")
	}
	rest := d.withoutWebhooks()
	forged := func(more ...string) url.Values {
		v := url.Values{"name": {"Robo"}, "organization.name": {"Robo"}, "rewards": {"x"}, "webhooks[0].url": {"https://evil.example.com/"}, "document": {`{}`}, "id": {"x"}, "secret": {"x"}}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}
	boxes := func(patterns ...string) (pairs []string) {
		for _, p := range patterns {
			pairs = append(pairs, fmt.Sprintf("events[%d]", slices.Index(eventPatterns, p)), p)
		}
		return pairs
	}
	to := d.applies(newWebhookPath, newWebhookPath, forged(slices.Concat([]string{"key", "nuevo", "url", "https://erp.example.com/", "status", "Active"}, boxes("*", "tier.changed"))...))
	if to != webhooksPath+"?nuevo=nuevo" {
		t.Errorf("made, it leads to %s", to)
	}
	if page := d.get(to).Body.String(); !strings.Contains(page, tr(speaking("es"), "hooks.next", "nuevo")) || !strings.Contains(page, `action="`+webhooksPath+`/nuevo/secreto"`) {
		t.Errorf("nothing leads to its secret:\n%s", mainOf(page))
	}
	if page := d.post(webhooksPath + "/nuevo/secreto").Body.String(); !strings.Contains(page, "whsec_") {
		t.Errorf("no secret:\n%s", mainOf(page))
	}
	if page := d.get(to).Body.String(); strings.Contains(page, tr(speaking("es"), "hooks.next", "nuevo")) {
		t.Error("it has its secret, and the page asks for one")
	}
	change, crm := webhooksPath+"/nuevo/cambiar", webhooksPath+"/crm/cambiar"
	d.applies(change, change, forged("key", "otro", "url", "https://erp.example.com/2", "status", "Inactive", "events[0]", "*"))
	d.applies(crm, crm, forged(slices.Concat([]string{"url", "https://crm.example.com/b"}, boxes("customer.created", "points.*", "tier.*"))...))
	same(t, "the webhooks", d.panelShop.shop.config().document().Webhooks, []webhookDoc{
		{"crm", "https://crm.example.com/b", []string{"points.*", "customer.created", "tier.*"}, statusActive},
		{"nuevo", "https://erp.example.com/2", []string{"*"}, statusInactive},
	})
	if secrets := ask(d.panelShop.shop, func(t *txn) (int, error) { _, s, err := t.webhooks.get("nuevo"); return len(s.Secrets), err }); secrets != 1 {
		t.Errorf("%d secrets after a change", secrets)
	}
	w, _ := d.reviewed(change, webhooksPath+"/nuevo/quitar", forged())
	if page := mainText(w.Body.String()); !strings.Contains(page, tr(speaking("es"), "webhook.removing")) || !strings.Contains(page, "Inactivo") || strings.Contains(page, "Archivada") {
		t.Error(page)
	}
	d.applies(change, webhooksPath+"/nuevo/quitar", forged())
	if hooks := d.panelShop.shop.config().Webhooks; len(hooks) != 1 || hooks[0].Key != "crm" {
		t.Errorf("%+v", hooks)
	}
	same(t, "the rest of the document", d.withoutWebhooks(), rest)
}

// TestWebhookFormFaults: what is wrong is told at its control, in both languages.
func TestWebhookFormFaults(t *testing.T) {
	t.Parallel()
	d := newDesk(newShop(t, setup{also: oneWebhook}))
	const crm = webhooksPath + "/crm/cambiar"
	good := func(name, value string) url.Values {
		v := url.Values{"key": {"erp"}, "url": {"https://erp.example.com/"}, "status": {"Active"}, "events[0]": {"*"}}
		v.Set(name, value)
		return v
	}
	before := string(d.panelShop.shop.exportedDocument())
	for _, test := range []struct {
		reason, page string
		fields       url.Values
		control      string
		es, en       string
	}{
		{"no key", newWebhookPath, good("key", ""), "key", "falta", "it is missing"},
		{"a key that is there", newWebhookPath, good("key", "crm"), "key", `"crm" está repetida`, `"crm" is there twice`},
		{"a key with a blank", newWebhookPath, good("key", "a b"), "key", "debe tener de 1 a 50", "it must have 1 to 50"},
		{"no address", newWebhookPath, good("url", ""), "url", "falta", "it is missing"},
		{"an address without TLS", crm, good("url", "http://crm.example.com/"), "url", "debe ser una URL https", "it must be an https URL"},
		{"no event", crm, url.Values{"url": {"https://a.example.com/"}}, "events", "hace falta al menos uno", "at least one is needed"},
		{"an event that there is not", crm, good("events[7]", "points.sold"), "events", `no es ningún tipo de evento: "points.sold"`, `there is no type of event "points.sold"`},
		{"a status that there is not", crm, good("status", "Paused"), "status", tr(speaking("es"), "wrong.choice"), tr(speaking("en"), "wrong.choice")},
	} {
		for lang, want := range map[string]string{"es": test.es, "en": test.en} {
			d.panelShop.speaks(roleDeveloper, lang)
			test.fields.Del(tokenField)
			w, _ := d.reviewed(test.page, test.page, test.fields)
			page := html.UnescapeString(w.Body.String())
			for _, text := range []string{`id="c-` + test.control + `"`, `id="c-` + test.control + `-fault"`, `href="#c-` + test.control + `"`, want} {
				if w.Code != http.StatusUnprocessableEntity || !strings.Contains(page, text) {
					t.Errorf("%s, %s: %d, without %s\n%s", test.reason, lang, w.Code, text, mainOf(page))
				}
			}
		}
	}
	for i := range maxWebhooks - 1 {
		d.applies(newWebhookPath, newWebhookPath, good("key", fmt.Sprint("k", i)))
	}
	d.panelShop.speaks(roleDeveloper, "en")
	if w, _ := d.reviewed(newWebhookPath, newWebhookPath, good("key", "more")); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "there cannot be more than 10") {
		t.Errorf("one too many: %d\n%s", w.Code, mainOf(w.Body.String()))
	}
	if w := d.post(newWebhookPath, "key", "erp", "url", "https://erp.example.com/", "events[0]", "*"); w.Code != http.StatusConflict {
		t.Errorf("without a stamp: %d", w.Code)
	}
	if before == string(d.panelShop.shop.exportedDocument()) {
		t.Error("the good forms did nothing")
	}
}

// TestWebhookTwoEditors: who changes a webhook second is told, sees both versions, and undoes
// nothing. Warnings about what a developer may not see are not shown to one.
func TestWebhookTwoEditors(t *testing.T) {
	t.Parallel()
	d := newDesk(newShop(t, setup{also: oneWebhook, program: `"rules":[{"key":"over","name":"Over","points":1,"until":"2020-01-01"}]`}))
	const crm = webhooksPath + "/crm/cambiar"
	w, mine := d.reviewed(crm, crm, url.Values{"url": {"https://mine.example.com/"}, "events[0]": {"*"}})
	if strings.Contains(w.Body.String(), "Over") || strings.Contains(w.Body.String(), "over") {
		t.Errorf("a developer sees a rule:\n%s", mainOf(w.Body.String()))
	}
	owner := &desk{d.panelShop, roleOwner}
	w, theirs := owner.reviewed(crm, crm, url.Values{"url": {"https://theirs.example.com/"}, "events[0]": {"*"}})
	if !strings.Contains(w.Body.String(), "Regla over") {
		t.Errorf("an owner does not see the warning:\n%s", mainOf(w.Body.String()))
	}
	d.want(d.panelShop.post(roleOwner, crm, theirs), http.StatusSeeOther, "the first one")
	stored := string(d.panelShop.shop.exportedDocument())
	w = d.panelShop.post(roleDeveloper, crm, mine)
	body := w.Body.String()
	for _, want := range []string{`https://theirs.example.com</del>`, `https://mine.example.com</ins>`, `value="https://mine.example.com/"`} {
		if w.Code != http.StatusConflict || !strings.Contains(body, want) {
			t.Errorf("%d, without %s\n%s", w.Code, want, mainOf(body))
		}
	}
	if strings.Contains(body, "over") {
		t.Error("a developer sees a rule in the conflict")
	}
	same(t, "the document", string(d.panelShop.shop.exportedDocument()), stored)
	mine.Set(etagField, html.UnescapeString(stampForm.FindStringSubmatch(body)[1]))
	mine.Del(tokenField)
	d.applies(crm, crm, mine)
	if got := d.panelShop.shop.config().webhook("crm").URL; got != "https://mine.example.com/" {
		t.Error(got)
	}
}

// TestWebhookDeliveries: the page of a webhook's last deliveries tells of each how it went, and
// has nothing of the address nor of what was sent.
func TestWebhookDeliveries(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(500)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(int(status.Load()))
		io.WriteString(w, "cuerpo")
	}))
	t.Cleanup(receiver.Close)
	s := newShop(t, setup{program: `"rules":[` + onePer1 + `]`, also: strings.Replace(oneWebhook, "https://crm.example.com", receiver.URL, 1)})
	ana := s.customer("ana")
	d, page, hook := newDesk(s), webhooksPath+"/crm/entregas", hookOf{s.org, "crm"}
	shows := func(reason string, texts ...string) {
		t.Helper()
		w := d.get(page)
		text := mainText(w.Body.String())
		for _, want := range texts {
			if without, no := strings.CutPrefix(want, "!"); strings.Contains(text, without) == no {
				t.Errorf("%s: %q\n%s", reason, want, text)
			}
		}
		for _, secret := range []string{"sesamo", "127.0.0.1", "cuerpo", "ana@example.com"} {
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s: the page has %q", reason, secret)
			}
		}
	}
	shows("a server that does not remember", tr(speaking("es"), "deliveries.unknown"), tr(speaking("es"), "deliveries.none"))
	sender := newDeliverer(s.engine, loopback[:], slog.New(slog.DiscardHandler))
	d.panelShop.panel.hooks = sender
	must(s, func(t *txn) ([]byte, error) { return t.webhooks.newSecret("crm") })
	shows("before the first", tr(speaking("es"), "deliveries.none"), "de este servidor desde que arrancó")
	round := func() {
		t.Helper()
		_, err := sender.round(t.Context(), hook, sender.turnOf(hook))
		s.ok(err)
	}
	round()
	shows("a failure", "customer.created número 2", "HTTP 500", tr(speaking("es"), "hook.next"), "!HTTP 204")
	status.Store(204)
	s.pass(6 * time.Second)
	round()
	s.buy(ana, "100")
	round()
	d.want(d.post(webhooksPath+"/crm/prueba"), http.StatusOK, "a test")
	shows("after it", "webhook.test HTTP 204", "points.added número", "HTTP 500", "!"+tr(speaking("es"), "hook.next"))
	receiver.Close()
	d.want(d.post(webhooksPath+"/crm/prueba"), http.StatusOK, "a test that fails")
	shows("no connection", tr(speaking("es"), "hook.why.no_connection"))
	ended, stop := context.WithCancel(t.Context())
	stop()
	before := len(sender.last(hook))
	sender.attempt(ended, hook, &webhook.Message{URL: receiver.URL, ID: "x", Secrets: [][]byte{{1}}}, delivery{})
	if got := len(sender.last(hook)); got != before {
		t.Errorf("what the end of the process cut off is a delivery: %d", got)
	}
	if w := d.get(webhooksPath + "/nada/entregas"); w.Code != http.StatusNotFound {
		t.Errorf("of no webhook: %d", w.Code)
	}
}

// TestKeptDeliveries: the last twenty of each webhook are kept, the newest first. None is kept of
// a webhook that was removed, even if it had only been tested.
func TestKeptDeliveries(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: `"webhooks":[{"key":"b","url":"http://127.0.0.1:1/x","events":["*"]}]`})
	d := newDeliverer(s.engine, nil, slog.New(slog.DiscardHandler))
	a, b := hookOf{1, "a"}, hookOf{1, "b"}
	for n := range uint64(keptAttempts + 5) {
		d.keep(a, delivery{Seq: n})
	}
	d.keep(b, delivery{Seq: 7})
	list := d.last(a)
	if len(list) != keptAttempts || list[0].Seq != keptAttempts+4 || list[keptAttempts-1].Seq != 5 || len(d.last(b)) != 1 {
		t.Errorf("%+v", list)
	}
	d.note(a, hookLate{paused: true})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.run(ctx) })
	for begun := time.Now(); len(d.last(a)) != 0 && time.Since(begun) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	stop()
	running.Wait()
	if paused, _ := d.lateness(); len(d.tried) != 1 || len(d.last(b)) != 1 || paused != 0 {
		t.Errorf("it was not forgotten, or another one was: %v, %d paused", d.tried, paused)
	}
}
