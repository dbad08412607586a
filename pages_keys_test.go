package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"sello/internal/disk"
	"sello/internal/logline"
)

// A desk is a member of an organization at the panel.
type desk struct {
	panelShop *panelShop
	as        role
}

func newDesk(s *shop) *desk { return &desk{newPanelShopOn(s), roleDeveloper} }

// get opens a page, with a token if it has a form.
func (d *desk) file(path string) *httptest.ResponseRecorder { return d.panelShop.file(d.as, path) }
func (d *desk) get(path string) *httptest.ResponseRecorder  { return d.panelShop.open(d.as, path) }

// post sends a form with a token of its own; fields are names and values by turns.
func (d *desk) post(path string, fields ...string) *httptest.ResponseRecorder {
	return d.postAs("", path, fields...)
}

func (d *desk) postAs(token, path string, fields ...string) *httptest.ResponseRecorder {
	form := url.Values{tokenField: {token}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return d.panelShop.post(d.as, path, form)
}

// call sends a request to the API with a key.
func (d *desk) call(key, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	d.panelShop.api.ServeHTTP(w, r)
	return w
}

func (d *desk) want(w *httptest.ResponseRecorder, status int, reason string) {
	d.panelShop.shop.Helper()
	if w.Code != status {
		d.panelShop.shop.Fatalf("%s: %d, want %d\n%s", reason, w.Code, status, w.Body)
	}
}

// shownKey is the text of the key that a page shows; "" without.
func shownKey(page string) string { return keyText.FindString(page) }

var keyText = regexp.MustCompile(keyPrefix + `[0-9A-Za-z]{49}`)

// makeKey makes a key by hand that may do all, and returns its text.
func (d *desk) makeKey(fields ...string) (text string, keyID string) {
	d.panelShop.shop.Helper()
	w := d.post(keysPath+"/nueva", append([]string{"name", "Caja", accessField, accessAll, expiresField, expiresNever}, fields...)...)
	d.want(w, http.StatusOK, "a new key")
	text = shownKey(w.Body.String())
	hash := keyHash(text)
	k, err := viewStore(d.panelShop.shop.Context(), d.panelShop.shop.engine.store, func(tx Tx) (*apiKey, error) { return keyByHash(tx, hash) })
	if err != nil || k == nil {
		d.panelShop.shop.Fatalf("the page shows no key: %v\n%s", err, w.Body)
	}
	return text, k.ID.String()
}

// TestKeysByForm checks what the form of a key refuses, and that the key is as the form
// says.
// Panel checks 43 and 46.
func TestKeysByForm(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	d := newDesk(s)
	good := []string{"name", "Caja", accessField, accessSome, scopeField + "points:read", "1", expiresField, "30"}
	for _, test := range []struct {
		field, value, at, reason string
	}{
		{accessField, "", accessField, "access is a question"},
		{accessField, "none", accessField, "an answer that there is not"},
		{scopeField + "points:read", "", accessField, "no scope would be all of them"},
		{"name", " ", "name", "no name"},
		{"rateLimit", "0", "rateLimit", "0 would be the usual limit"},
		{"dailyLimit", "0", "dailyLimit", "0 would be no limit"},
		{"monthlyLimit", "1.5", "monthlyLimit", "a part of a request"},
		{"dailyLimit", "-3", "dailyLimit", "a negative limit"},
		{"maxPointsPerDay", "0", "maxPointsPerDay", "0 would be no limit"},
		{"ipWhitelist", "10.0.0.1\nes-mía", "ipWhitelist", "no address"},
		{expiresField, "", expiresField, "never is an answer, too"},
		{expiresField, expiresKept, expiresField, "a new key has no end to keep"},
		{expiresField, expiresDate, dateField, "no date"},
	} {
		w := d.post(keysPath+"/nueva", append(slices.Clone(good), test.field, test.value)...)
		if page := w.Body.String(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(page, `<a href="#`+controlID(test.at)+`">`) {
			t.Errorf("%s: %d, want a fault of %s\n%s", test.reason, w.Code, test.at, page)
		}
	}
	if keys, err := s.admin().listKeys(t.Context(), orgRequest{"cafe-luna"}); err != nil || len(keys) != 0 {
		t.Fatalf("%v, %v: a form that was refused made a key", keys, err)
	}

	_, keyID := d.makeKey(
		"name", "Caja centro", accessField, accessSome, scopeField+"points:read", "1", scopeField+"customers:write", "1", expiresField, expiresDate, dateField, "2026-12-31",
		"rateLimit", "600", "dailyLimit", "10,000", "monthlyLimit", "200000", "ipWhitelist", "10.0.0.0/8\r\n 192.0.2.7 ", "maxPointsPerOperation", "12.5", "maxPointsPerDay", "1,000", "noProof", "1")
	got, err := s.admin().listKeys(t.Context(), orgRequest{"cafe-luna"})
	s.ok(err)
	daily, monthly, once, perDay := 10_000, 200_000, dec("12.5"), dec("1000")
	want := []listedKey{{
		Name: "Caja centro", Scopes: []string{"customers:write", "points:read"}, RateLimit: 600, DailyLimit: &daily, MonthlyLimit: &monthly,
		IPWhitelist: []string{"10.0.0.0/8", "192.0.2.7"}, CreatedAt: s.clock, MaxPointsPerOperation: &once, MaxPointsPerDay: &perDay, NoProof: true,
		ID: got[0].ID, Last4: got[0].Last4, ExpiresAt: instantOf(time.Date(2027, 1, 1, 6, 0, 0, 0, time.UTC)) - 1,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the key is not as the form says (-want +got):\n%s", diff)
	}

	// The form of a change begins with what the key is like: sent as it is, it changes nothing.
	entries := len(s.audited(auditFilter{}))
	page := d.get(keysPath + "/" + keyID + "/cambiar").Body.String()
	d.want(d.post(keysPath+"/"+keyID+"/cambiar", fieldsOf(page)...), http.StatusSeeOther, "a change of nothing")
	again, err := s.admin().listKeys(t.Context(), orgRequest{"cafe-luna"})
	s.ok(err)
	if diff := cmp.Diff(got, again); diff != "" || len(s.audited(auditFilter{})) != entries {
		t.Errorf("a change of nothing changed something:\n%s", diff)
	}
	d.want(d.post(keysPath+"/"+keyID+"/cambiar", append(fieldsOf(page), "rateLimit", "", "ipWhitelist", "", expiresField, expiresNever)...), http.StatusSeeOther, "a change")
	again, err = s.admin().listKeys(t.Context(), orgRequest{"cafe-luna"})
	s.ok(err)
	want[0].RateLimit, want[0].IPWhitelist, want[0].ExpiresAt = defaultRateLimit, []string{}, 0
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("a change (-want +got):\n%s", diff)
	}
}

// fieldsOf are the fields that a browser would send of a page's form for a key.
func fieldsOf(page string) (fields []string) {
	unescape := strings.NewReplacer("&#43;", "+", "&#34;", `"`, "&amp;", "&").Replace
	for _, input := range regexp.MustCompile(`<(input|textarea)[^>]*name="([^"]+)"([^>]*)>([^<]*)`).FindAllStringSubmatch(page, -1) {
		name, rest := input[2], input[0]
		value := ""
		if m := regexp.MustCompile(`value="([^"]*)"`).FindStringSubmatch(rest); m != nil {
			value = unescape(m[1])
		} else if input[1] == "textarea" {
			value = unescape(input[4])
		}
		box := strings.Contains(rest, `type="radio"`) || strings.Contains(rest, `type="checkbox"`)
		if !strings.HasPrefix(name, "_") && (!box || strings.Contains(rest, " checked")) {
			fields = append(fields, name, value)
		}
	}
	return fields
}

// TestKeyShownOnce checks that the text of a key is in one response alone, and neither in the
// file nor in the log.
// Panel check 44.
func TestKeyShownOnce(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "sello.db")
	store, err := openBolt(db, disk.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := newShopOn(t, store, "2026-03-02T10:00:00Z")
	s.apply(setup{}.document())
	d := newDesk(s)
	var log bytes.Buffer
	d.panelShop.api.log, d.panelShop.api.lines = slog.New(slog.NewJSONHandler(&log, nil)), logline.NewWriter(&log)

	fields := []string{"name", "Caja", accessField, accessAll, expiresField, expiresNever}
	first := d.postAs("TOKEN-of-this-form", keysPath+"/nueva", fields...)
	d.want(first, http.StatusOK, "a new key")
	key := shownKey(first.Body.String())
	if strings.Count(first.Body.String(), key) != 1 || first.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("the key is there %d times; Cache-Control: %s", strings.Count(first.Body.String(), key), first.Header().Get("Cache-Control"))
	}
	again := d.postAs("TOKEN-of-this-form", keysPath+"/nueva", fields...)
	d.want(again, http.StatusSeeOther, "the same form again")
	after := d.get(again.Header().Get("Location"))
	if d.want(after, http.StatusOK, "where it leads"); !strings.Contains(after.Body.String(), tr(speaking("es"), "key.again")) {
		t.Errorf("the page does not say that the key was made:\n%s", after.Body)
	}
	path, _, _ := strings.Cut(again.Header().Get("Location"), "?")
	d.want(d.call(key, "GET", "/api/v1/customers", ""), http.StatusOK, "the key at work")
	rotated := d.postAs("token-to-rotate-it", path+"/renovar", "overlap", "1h")
	d.want(rotated, http.StatusOK, "a key rotated")
	next := shownKey(rotated.Body.String())
	if next == "" || next == key || strings.Contains(rotated.Body.String(), key) {
		t.Errorf("rotated: %q", next)
	}
	for _, w := range []*httptest.ResponseRecorder{
		again, after, d.postAs("token-to-rotate-it", path+"/renovar", "overlap", "1h"), d.get(keysPath), d.get(path), d.get(path + "/revocar"), d.get(path + "/renovar"), d.get(requestsPath),
	} {
		all := w.Body.String() + fmt.Sprint(w.Header())
		if strings.Contains(all, key[len(keyPrefix):]) || strings.Contains(all, next[len(keyPrefix):]) {
			t.Errorf("a key is shown again:\n%s", all)
		}
	}
	d.panelShop.api.lines.Close()
	keys := secrets{}
	keys.plantKey("key", key)
	keys.plantKey("rotated key", next)
	for _, fault := range append(keys.misplaced(t, keptFiles(db)), keys.tells(log.String())...) {
		t.Errorf("in a file or the log: %s", fault)
	}
	if len(holding(t, keptFiles(db), `"last4":"`+key[len(key)-4:])) == 0 || !strings.Contains(log.String(), "/panel/desarrollo/claves/nueva") {
		t.Error("what is kept of the key is not found, so nothing is")
	}
}

// TestKeyScopes checks that a key made by hand opens the endpoints of its scopes and no
// others, at once, and none after it is revoked.
// Panel check 45.
func TestKeyScopes(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	d := newDesk(s)
	for _, scope := range scopes {
		key, keyID := d.makeKey(accessField, accessSome, scopeField+scope, "1")
		for _, r := range d.panelShop.api.routes() {
			if r.scope == "" {
				continue
			}
			method, path, _ := strings.Cut(r.pattern, " ")
			path = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, id{9}.String())
			body := map[bool]string{true: "{}"}[writes(method)]
			w := d.call(key, method, path, body)
			if refused := strings.Contains(w.Body.String(), `"scope_required"`); refused == (r.scope == scope) {
				t.Errorf("a key with %s alone at %s: %d %s", scope, r.pattern, w.Code, w.Body)
			}
		}
		d.want(d.post(keysPath+"/"+keyID+"/revocar", "name", "Otra"), http.StatusUnprocessableEntity, "another name")
		d.want(d.call(key, "GET", "/api/v1/customers", ""), map[bool]int{true: 200, false: 403}[scope == "customers:read"], "not revoked")
		d.want(d.post(keysPath+"/"+keyID+"/revocar", "name", "Caja"), http.StatusSeeOther, "revoked")
		s.pass(time.Minute) // a source may be refused so often
		d.panelShop.tokens[d.as] = must(s, func(t *txn) (string, error) {
			return t.people.startSession(d.panelShop.users[d.as], sessionFull, &arrival{})
		})
		d.want(d.call(key, "GET", "/api/v1/customers", ""), http.StatusUnauthorized, "after it was revoked")
	}
}

// TestDevelopmentAudit checks that each form leaves one entry, made by the member: a rotation
// one of each key, a test of a webhook none, since it changes nothing.
func TestDevelopmentAudit(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{also: `"webhooks":[{"key":"crm","url":"http://127.0.0.1:1/x","events":["customer.*"],"status":"Active"}]`})
	s.customer("ana")
	d := newDesk(s)
	_, keyID := d.makeKey()
	hook, key := webhooksPath+"/crm", keysPath+"/"+keyID
	forms := map[string]struct {
		path   string
		fields []string
		status int
		wants  []string
	}{
		keysPath + "/nueva":        {keysPath + "/nueva", []string{"name", "B", accessField, accessAll, expiresField, "90"}, 200, []string{auditKeyCreated}},
		keyPath + "/cambiar":       {key + "/cambiar", []string{"name", "C", accessField, accessAll, expiresField, "90"}, 303, []string{auditKeyChanged}},
		keyPath + "/renovar":       {key + "/renovar", []string{"overlap", "168h"}, 200, []string{auditKeyCreated, auditKeyRotated}},
		keyPath + "/revocar":       {key + "/revocar", []string{"name", "C"}, 303, []string{auditKeyRevoked}},
		webhookPath + "/secreto":   {hook + "/secreto", nil, 200, []string{auditWebhookSecret}},
		webhookPath + "/continuar": {hook + "/continuar", nil, 303, []string{auditWebhookResumed}},
		webhookPath + "/repetir":   {hook + "/repetir", []string{"from", "1"}, 303, []string{auditWebhookReplayed}},
		webhookPath + "/prueba":    {hook + "/prueba", nil, 200, []string{auditWebhookTested}},
	}
	for _, f := range slices.Concat(keyFormArea().forms, webhookArea().forms) {
		test, known := forms[f.path]
		if !known {
			t.Errorf("no test of %s", f.path)
			continue
		}
		before := must(s, func(t *txn) (uint64, error) { n, err := t.count(); return n.Audit, err })
		d.want(d.post(test.path, test.fields...), test.status, f.path)
		entries := ask(s, func(t *txn) (list []*auditEntry, err error) {
			list, _, err = t.audit.entries(auditFilter{to: never}, page{1, 10})
			return list, err
		})
		entries = slices.DeleteFunc(entries, func(e *auditEntry) bool { return e.Seq <= before })
		var got []string
		for _, e := range entries {
			if got = append(got, e.Action); e.By.Type != byUser || e.RequestID == "" {
				t.Errorf("%s: %+v", f.path, e)
			}
		}
		if !slices.Equal(got, test.wants) {
			t.Errorf("%s: entries %v, want %v", f.path, got, test.wants)
		}
	}
}

// TestDevelopmentRoles checks every page and form of the area with every role, in the own
// organization and with what another one has, against the table of permissions.
func TestDevelopmentRoles(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newShop(t, setup{also: `"webhooks":[{"key":"crm","url":"http://127.0.0.1:1/x","events":["customer.*"],"status":"Active"}]`})
	s.apply(bytes.ReplaceAll(setup{also: `"webhooks":[{"key":"ajeno","url":"http://127.0.0.1:1/x","events":["customer.*"],"status":"Active"}]`}.document(), []byte("cafe-luna"), []byte("otra")))
	foreign, err := s.admin().createKey(t.Context(), keyRequest{Org: "otra", Name: "Caja"})
	s.ok(err)
	d := newDesk(s)
	_, keyID := d.makeKey()
	fill := func(path, key, hook string) string {
		return strings.NewReplacer("{"+keyIDParam+"}", key, "{hook}", hook).Replace(path)
	}
	const absent = "01a20a21-8b3f-72ed-a232-dcd01b102200"
	answer := func(send func(path string, _ ...string) *httptest.ResponseRecorder, path, key, hook string) string {
		w := send(fill(path, key, hook), "name", "x")
		return fmt.Sprint(w.Code, " ", strings.NewReplacer(key, "ID", hook, "HOOK").Replace(formToken.ReplaceAllString(w.Body.String(), "")))
	}
	get := func(path string, _ ...string) *httptest.ResponseRecorder { return d.get(path) }
	for _, r := range roles {
		d.as = r
		for _, p := range slices.Concat(developmentArea().pages, keyArea().pages, keyFormArea().pages, requestArea().pages, webhookArea().pages, webhookEditArea().pages) {
			w, allowed := d.get(fill(p.path, keyID, "crm")), r.may(p.need) != grantNone
			if want := map[bool][]int{true: {200, 303}, false: {403}}[allowed]; !slices.Contains(want, w.Code) {
				t.Errorf("%s opens %s: %d, want %v", r, p.path, w.Code, want)
			}
			if strings.Contains(p.path, "{") && answer(get, p.path, foreign.ID.String(), "ajeno") != answer(get, p.path, absent, "ninguno") {
				t.Errorf("%s: %s tells a foreign id from an absent one", r, p.path)
			}
		}
		for _, f := range slices.Concat(keyFormArea().forms, webhookArea().forms, webhookEditArea().forms) {
			got, want := answer(d.post, f.path, foreign.ID.String(), "ajeno"), answer(d.post, f.path, absent, "ninguno")
			if strings.Contains(f.path, "{") && got != want {
				t.Errorf("%s: %s tells a foreign id from an absent one:\n%s\n%s", r, f.path, got, want)
			}
			if allowed := r.may(f.need) != grantNone; allowed == strings.HasPrefix(got, "403") {
				t.Errorf("%s sends %s: %s", r, f.path, got)
			}
		}
	}
	if keys, err := s.admin().listKeys(t.Context(), orgRequest{"otra"}); err != nil || len(keys) != 1 || keys[0].RevokedAt != 0 {
		t.Errorf("%v %v", keys, err)
	}
}

var formToken = regexp.MustCompile(`name="_token" value="[^"]*"`)

// TestPlanWithoutAPI: in a plan without API access nobody but an operator finds the area, and it
// is in nobody else's menu. For an operator it explains itself and offers no form.
// Panel check 49.
func TestPlanWithoutAPI(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	d := newDesk(s)
	_, keyID := d.makeKey()
	pages := slices.Concat(developmentArea().pages, keyArea().pages, keyFormArea().pages, requestArea().pages, webhookArea().pages, webhookEditArea().pages)
	forms := slices.Concat(keyFormArea().forms, webhookArea().forms, webhookEditArea().forms)
	named := strings.NewReplacer("{"+keyIDParam+"}", keyID, "{hook}", "x")
	menu := func(as role) bool {
		return strings.Contains(d.panelShop.open(as, "/panel/cuenta").Body.String(), `href="`+developmentPath+`"`)
	}
	if w := d.get(keysPath); w.Code != http.StatusOK || !menu(roleDeveloper) || !menu(roleOwner) {
		t.Errorf("with API access: %d, menu %t", w.Code, menu(roleDeveloper))
	}
	s.apply(bytes.Replace(setup{}.document(), []byte(`"apiAccess":true`), []byte(`"apiAccess":false`), 1))
	for _, as := range []role{roleDeveloper, roleOwner, roleCashier} {
		for _, p := range pages {
			if w := d.panelShop.get(as, named.Replace(p.path)); w.Code != http.StatusNotFound {
				t.Errorf("%s as %s: %d %s", p.path, as, w.Code, w.Header().Get("Location"))
			}
		}
		for _, f := range forms {
			if w := d.panelShop.post(as, named.Replace(f.path), url.Values{"name": {"Caja"}}); w.Code != http.StatusNotFound {
				t.Errorf("POST %s as %s: %d", f.path, as, w.Code)
			}
		}
		if menu(as) {
			t.Errorf("the menu of %s has the area", as)
		}
		if at, w := "/panel", d.panelShop.get(as, "/panel"); w.Code == http.StatusSeeOther {
			if at = w.Header().Get("Location"); d.panelShop.get(as, at).Code != http.StatusOK {
				t.Errorf("the home page leads %s to %s", as, at)
			}
		}
	}
	if w := d.panelShop.get(roleOwner, auditPath); w.Code != http.StatusOK || strings.Contains(w.Body.String(), developmentPath) {
		t.Errorf("the audit log leads to the area: %d", w.Code)
	}

	d.panelShop.operates(roleOwner)
	if d.as = roleOwner; !menu(roleOwner) {
		t.Error("the operator's menu does not have the area")
	}
	for _, p := range pages {
		w := d.get(named.Replace(p.path))
		if p.path == developmentPath {
			main := mainOf(w.Body.String())
			if w.Code != 200 || strings.Contains(main, "<form") || !strings.Contains(main, tr(speaking("es"), "plan.none", "Pro")) {
				t.Errorf("%s: %d\n%s", p.path, w.Code, main)
			}
		} else if to := w.Header().Get("Location"); w.Code != 303 || to != developmentPath {
			t.Errorf("%s: %d %s", p.path, w.Code, to)
		}
	}
	d.post(keysPath+"/nueva", "name", "Caja", accessField, accessAll, expiresField, "90")
	if keys, err := s.admin().listKeys(t.Context(), orgRequest{"cafe-luna"}); err != nil || len(keys) != 1 {
		t.Errorf("a key without API access: %d keys, %v", len(keys), err)
	}
}

// TestRequestsPage checks that a refused request is found by its id, with its error and how
// to mend it, and without what was sent.
// Panel check 48.
func TestRequestsPage(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	d := newDesk(s)
	key, keyID := d.makeKey("name", "Caja centro", accessField, accessSome, scopeField+"customers:read", "1")
	d.want(d.call(key, "GET", "/api/v1/customers/+525587650001", ""), 404, "nobody")
	refused := d.call(key, "POST", "/api/v1/customers", `{"firstName":"Secreta"}`)
	d.want(refused, 403, "a scope that the key lacks")
	d.call("sello_otra", "GET", "/api/v1/customers", "")
	requestID := refused.Header().Get("X-Request-Id")

	all := d.get(requestsPath).Body.String()
	found := d.get(requestsPath + "?solicitud=" + requestID).Body.String()
	for _, page := range []string{all, found} {
		for _, want := range []string{requestID, "scope_required", "Caja centro", "POST /customers", tr(speaking("es"), "mend.scope_required")} {
			if !strings.Contains(page, want) {
				t.Errorf("%q is not on the page\n%s", want, page)
			}
		}
		for _, secret := range []string{key, key[len(keyPrefix):], "5587650001", "Secreta", "sello_otra"} {
			if strings.Contains(page, secret) {
				t.Errorf("%q is on the page", secret)
			}
		}
	}
	if !strings.Contains(all, "customer_not_found") || strings.Count(all, "<tr>")-1 != 2 || strings.Count(found, "<tr>")-1 != 1 {
		t.Errorf("two requests had a key, and one has the id:\n%s\n%s", all, found)
	}
	for query, want := range map[string]int{"?estado=4xx": 2, "?estado=2xx": 0, "?codigo=scope_required": 1, "?clave=" + keyID: 2, "?clave=" + keyID + "&codigo=scope_required&estado=4xx": 1, "?clave=x": 0, "?pagina=99": 2} {
		if got := strings.Count(d.get(requestsPath+query).Body.String(), "<tr>"); got != want+min(want, 1) {
			t.Errorf("%s: %d rows, want %d and the head", query, got, want)
		}
	}
}

// TestLoggedRequest: a request in the log is small.
func TestLoggedRequest(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(loggedRequest{}); size > 64 {
		t.Errorf("a request takes %d bytes", size)
	}
}

// TestRequestLogAllocates checks that the log costs a request no allocation.
func TestRequestLogAllocates(t *testing.T) {
	skipRace(t) // which allocates by chance
	s := newShop(t, setup{}).served()
	r := httptest.NewRequest("GET", fmt.Sprintf("/api/v1/points/customers/%s/balance", s.shop.customer("ana")), nil)
	r.Header.Set("Authorization", "Bearer "+s.key)
	serve := func() { s.api.ServeHTTP(discard{http.Header{}}, r) }
	without := testing.AllocsPerRun(500, serve)
	s.api.requests = newRequestLog()
	if with := testing.AllocsPerRun(500, serve); with > without {
		t.Errorf("%v allocations, %v without the log", with, without)
	}
	if n := len(s.api.requests.Of(s.shop.org)); n < 500 {
		t.Errorf("%d requests in the log", n)
	}
}

// TestMending checks that every error of the API has its mending, and nothing else has.
func TestMending(t *testing.T) {
	t.Parallel()
	for name := range errorTable {
		if !hasText("mend." + name) {
			t.Errorf("no row says how to mend %s", name)
		}
	}
	for name := range allTexts() {
		code, of := strings.CutPrefix(name, "mend.")
		if _, ok := errorTable[code]; of && !ok {
			t.Errorf("%s: there is no such error", name)
		}
	}
}

// TestReferencePage checks that the panel shows the whole reference, for this address.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	d := newDesk(s)
	page := d.get(referencePath).Body.String()
	var all struct {
		Paths map[string]map[string]json.RawMessage
	}
	s.ok(json.Unmarshal(openAPI, &all))
	for path := range all.Paths {
		if !strings.Contains(page, panelBase+path) {
			t.Errorf("no curl line for %s", path)
		}
	}
	if strings.Contains(page, "<style") || strings.Count(page, "<main") != 1 || strings.Count(page, "<h1") != 1 {
		t.Error("the page has parts of another page")
	}
	packed := d.panelShop.send(d.as, "GET", referencePath, nil, "Accept-Encoding", "gzip")
	if n := packed.Body.Len(); packed.Header().Get("Content-Encoding") != "gzip" || n > 65_000 {
		t.Errorf("with gzip %d bytes: %v", n, packed.Header())
	}
	z, err := gzip.NewReader(packed.Body)
	s.ok(err)
	text, err := io.ReadAll(z)
	s.ok(err)
	if string(text) != page {
		t.Error("with gzip the page is another one")
	}
	if other := d.panelShop.send(d.as, "GET", keysPath, nil, "Accept-Encoding", "gzip"); other.Header().Get("Content-Encoding") != "" {
		t.Error("a page with what is secret is compressed")
	}
}

// TestWebhooksPage checks what the page tells of each webhook, and that a secret is shown
// once.
func TestWebhooksPage(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	s := newShop(t, setup{also: `"webhooks":[{"key":"crm","url":"` + receiver.URL + `","events":["customer.*"],"status":"Active"}]`})
	s.customer("ana")
	d := newDesk(s)
	d.panelShop.panel.hooks = newDeliverer(s.engine, loopback[:], slog.New(slog.DiscardHandler))
	has := func(w *httptest.ResponseRecorder, text, reason string) {
		t.Helper()
		if !strings.Contains(w.Body.String(), text) {
			t.Errorf("%s: %q is missing\n%s", reason, text, w.Body)
		}
	}
	has(d.get(webhooksPath), tr(speaking("es"), "hook.secretless"), "a new webhook")
	d.want(d.post(webhooksPath+"/crm/prueba"), 422, "a test without a secret")
	made := d.postAs("token-of-the-secret", webhooksPath+"/crm/secreto")
	secret := regexp.MustCompile(`whsec_[^"]+`).FindString(made.Body.String())
	if d.want(made, 200, "a secret"); secret == "" {
		t.Fatalf("no secret\n%s", made.Body)
	}
	again := d.postAs("token-of-the-secret", webhooksPath+"/crm/secreto")
	d.want(again, 303, "the same form again")
	after := d.get(again.Header().Get("Location"))
	has(after, tr(speaking("es"), "hooks.made"), "where it leads")
	for _, w := range []*httptest.ResponseRecorder{again, after, d.get(webhooksPath)} {
		if strings.Contains(w.Body.String(), secret) {
			t.Error("the secret is shown again")
		}
	}
	has(d.post(webhooksPath+"/crm/prueba"), tr(speaking("es"), "hook.test.ok", "crm", "200"), "a test")
	d.want(d.post(webhooksPath+"/crm/repetir", "from", "99"), 422, "an event that there is not")
	d.want(d.post(webhooksPath+"/crm/repetir", "from", "x"), 422, "no event")
	d.want(d.post(webhooksPath+"/crm/repetir", "from", "1"), 303, "all events again")
	if sent := ask(s, func(t *txn) (uint64, error) { _, state, err := t.webhooks.get("crm"); return state.Sent, err }); sent != 0 {
		t.Errorf("sent up to %d, want 0", sent)
	}
}

// TestKeyFormsTooLate: a form of a key that was revoked meanwhile, or has expired, says so in the
// page's language.
func TestKeyFormsTooLate(t *testing.T) {
	t.Parallel()
	s := newShop(t, setup{})
	d := newDesk(s)
	_, revoked := d.makeKey()
	d.want(d.post(keysPath+"/"+revoked+"/revocar", "name", "Caja"), http.StatusSeeOther, "revoking")
	_, expired := d.makeKey()
	must(s, func(t *txn) (any, error) { _, _, _, err := t.keys.rotate(expired, 0); return nil, err })
	change := []string{"name", "C", accessField, accessAll, expiresField, expiresNever}
	for _, test := range []struct {
		path, error string
		fields      []string
	}{
		{revoked + "/cambiar", "error.key_revoked", change},
		{revoked + "/renovar", "error.key_revoked", []string{"overlap", "1h"}},
		{expired + "/renovar", "error.key_expired", []string{"overlap", "1h"}},
	} {
		for _, lang := range []string{"es", "en"} {
			d.panelShop.speaks(roleDeveloper, lang)
			w := d.post(keysPath+"/"+test.path, test.fields...)
			if want := tr(speaking(lang), test.error); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s, %s: %d, want %q\n%s", test.path, lang, w.Code, want, mainOf(w.Body.String()))
			}
		}
	}
}
