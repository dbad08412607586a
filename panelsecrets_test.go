package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sello/internal/disk"
)

// What the panel shows once, or is given in confidence, is nowhere else: neither in a later
// page nor in a second answer to the same form, in the log, the audit log or a file.

// A keeper gathers secrets, and looks for them in all that is said and written after.
type keeper struct {
	*formWorld
	file    *boltStore
	secrets map[string]keptSecret
	log     bytes.Buffer
}

// A keptSecret is a text with where it may be.
type keptSecret struct {
	text   string
	stored bool // in the file, which has to know it
	form   bool // in the page with the form it was posted from, which has to send it again
}

func newKeeper(t *testing.T, db string) *keeper {
	store, err := openBolt(db, disk.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	base := newShopOn(t, store, "2026-03-02T10:00:00Z")
	base.apply(formSetup.document())
	k := &keeper{formWorld: newFormWorldOn(newPanelShopOn(base)), file: store, secrets: map[string]keptSecret{}}
	k.panelShop.shop.engine.log = slog.New(slog.NewJSONHandler(&k.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	k.panelShop.api.log, k.panelShop.api.lines = k.panelShop.shop.engine.log, &lineWriter{out: &k.log}
	return k
}

// learn takes a secret out of a page, by a pattern with one group.
func (k *keeper) learn(name, page, pattern string, s keptSecret) string {
	k.panelShop.shop.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(page)
	if found == nil {
		k.panelShop.shop.Fatalf("no %s in\n%s", name, page)
	}
	s.text = found[1]
	k.secrets[name] = s
	return s.text
}

// tells names a secret that a text holds, and what it is allowed to hold is not.
func (k *keeper) tells(text string, allowed func(keptSecret) bool) (names []string) {
	for name, s := range k.secrets {
		if !allowed(s) && strings.Contains(text, s.text) {
			names = append(names, name)
		}
	}
	return names
}

// formOnce posts a form as the owner, and again: the second answer must not show what the
// first one did.
func (k *keeper) formOnce(path string, fields url.Values, learn func(page string)) {
	k.panelShop.shop.Helper()
	if fields.Get(tokenField) == "" {
		fields.Set(tokenField, k.panelShop.panel.random())
	}
	first := k.panelShop.post(roleOwner, path, fields)
	if first.Code != http.StatusOK && first.Code != http.StatusSeeOther {
		k.panelShop.shop.Fatalf("POST %s: %d\n%s", path, first.Code, mainOf(first.Body.String()))
	}
	if learn != nil {
		learn(first.Body.String())
	}
	again := k.panelShop.post(roleOwner, path, fields)
	if names := k.tells(fmt.Sprint(again.Header(), again.Body), func(keptSecret) bool { return false }); len(names) > 0 || again.Code != http.StatusSeeOther {
		k.panelShop.shop.Errorf("POST %s again: %d tells %s", path, again.Code, names)
	}
}

// gather makes something of each kind that is secret.
func (k *keeper) gather() {
	k.secrets["password"] = keptSecret{text: testPassword}
	b := k.panelShop.browser()
	in := b.send("POST", "/panel/entrar", url.Values{"email": {"owner@example.com"}, "password": {testPassword}})
	b.want(http.StatusSeeOther, "/panel", in)
	for _, c := range b.set {
		k.secrets["token of "+c.Name] = keptSecret{text: c.Value}
	}
	k.panelShop.tokens[roleOwner] = b.cookies["sello"]
	b.send("POST", "/panel/entrar", url.Values{"email": {"owner@example.com"}, "password": {"una clave mala y larga"}})
	k.secrets["wrong password"] = keptSecret{text: "una clave mala y larga"}

	link := keptSecret{}
	k.formOnce("/panel/equipo/nuevo", url.Values{"email": {"mar@example.com"}, "role": {"cashier"}}, func(page string) {
		k.learn("invitation", page, `/panel/invitacion/(\w+)`, link)
	})
	k.formOnce("/panel/equipo/"+k.panelShop.users[roleCashier].String()+"/enlace", url.Values{}, func(page string) { k.learn("link for a password", page, `/panel/invitacion/(\w+)`, link) })
	k.formOnce(keysPath+"/nueva", url.Values{"name": {"Caja"}, "access": {"all"}, "expires": {"never"}}, func(page string) { k.learn("key", page, keyPrefix+`([0-9A-Za-z]{49})`, keptSecret{}) })
	k.formOnce(keysPath+"/"+k.names["keyId"]+"/renovar", url.Values{"overlap": {"1h"}}, func(page string) { k.learn("renewed key", page, keyPrefix+`([0-9A-Za-z]{49})`, keptSecret{}) })
	k.formOnce(webhooksPath+"/crm/secreto", url.Values{}, func(page string) {
		text := k.learn("webhook's secret", page, `whsec_([0-9A-Za-z+/&#;=]{20,})`, keptSecret{})
		raw, err := base64.StdEncoding.DecodeString(strings.NewReplacer("&#43;", "+", "&#34;", "").Replace(text))
		k.panelShop.shop.ok(err)
		k.secrets["webhook's secret as it is kept"] = keptSecret{text: string(raw), stored: true}
	})
	page := k.panelShop.open(roleOwner, "/panel/cuenta/segundo-factor").Body.String()
	k.learn("second factor in fours", page, `<dd><code>([A-Z2-7-]+)<`, keptSecret{form: true})
	secret := k.learn("second factor", page, `secret=(\w+)`, keptSecret{form: true})
	raw, err := codeBase32.DecodeString(secret)
	k.panelShop.shop.ok(err)
	k.secrets["second factor as it is kept"] = keptSecret{text: string(raw), stored: true}
	code := hotp(raw, uint64(k.panelShop.shop.clock/totpStep), totpDigits)
	k.formOnce("/panel/cuenta/segundo-factor", url.Values{tokenField: {hidden(page).Get(tokenField)}, "factorCode": {code}}, k.learnCodes)
	for name, s := range k.secrets {
		if !strings.HasPrefix(name, "recovery code ") {
			continue
		}
		renew := func() *httptest.ResponseRecorder {
			return k.panelShop.post(roleOwner, "/panel/cuenta/segundo-factor/codigos", url.Values{"factorCode": {s.text}})
		}
		k.learnCodes(renew().Body.String())
		again := renew()
		if names := k.tells(again.Body.String(), func(keptSecret) bool { return false }); len(names) > 0 || again.Code != http.StatusUnprocessableEntity {
			k.panelShop.shop.Errorf("a recovery code again: %d tells %s", again.Code, names)
		}
		break
	}
	k.secrets["PIN"], k.secrets["wrong PIN"] = keptSecret{text: testPIN}, keptSecret{text: "480215"}
	k.panelShop.post(roleOwner, pinPath, url.Values{"pin": {testPIN}, "pinAgain": {testPIN}})
	for _, fields := range []url.Values{{"dropPin": {"480215"}}, {"dropPin": {"480215"}, "pin": {testPIN}}} {
		if w := k.panelShop.post(roleOwner, pinPath+"/quitar", fields); w.Code != http.StatusUnprocessableEntity {
			k.panelShop.shop.Errorf("a wrong PIN: %d", w.Code)
		}
	}
	k.panelShop.post(roleOwner, lockPath, url.Values{})
	if w := k.panelShop.post(roleOwner, unlockPath, url.Values{"pin": {testPIN}}); w.Code != http.StatusSeeOther {
		k.panelShop.shop.Errorf("the PIN: %d", w.Code)
	}
	k.secrets["token of a form"] = keptSecret{text: "TOKENofASaleThatIsNotKept"}
	k.panelShop.post(roleOwner, "/panel/caja/"+k.names["customerId"]+"/venta", url.Values{tokenField: {"TOKENofASaleThatIsNotKept"}, "totalAmount": {"10"}})
}

func (k *keeper) learnCodes(page string) {
	codes := regexp.MustCompile(`<li><code>([A-Z0-9-]+)<`).FindAllStringSubmatch(page, -1)
	if len(codes) != recoveryCodes {
		k.panelShop.shop.Fatalf("%d recovery codes in\n%s", len(codes), page)
	}
	for i, code := range codes {
		name := fmt.Sprint("recovery code ", len(k.secrets), i)
		k.secrets[name] = keptSecret{text: code[1]}
		k.secrets[name+" without dashes"] = keptSecret{text: strings.ReplaceAll(code[1], "-", "")}
	}
}

// TestPanelSecrets: what the panel shows once is in that answer alone. Passwords, tokens,
// invitations, recovery codes and keys are stored hashed, and nothing of them all is in the log,
// which has all levels here.
// Panel check 44.
func TestPanelSecrets(t *testing.T) {
	t.Parallel()
	skipQuick(t)
	db := filepath.Join(t.TempDir(), "sello.db")
	k := newKeeper(t, db)
	k.gather()
	nowhere := func(keptSecret) bool { return false }
	for _, p := range panelPages() {
		if p.need == operates {
			continue // TestOperatorSeesNoCustomers
		}
		for _, as := range []role{roleOwner, roleDeveloper} {
			answer := k.panelShop.open(as, k.filled(p.path)+"?creada=1&hecho=1&estado=&f=TOKENofAnotherPage")
			if names := k.tells(fmt.Sprint(answer.Header(), answer.Body), nowhere); len(names) > 0 {
				t.Errorf("GET %s tells %s\n%s", p.path, names, answer.Body)
			}
		}
	}
	k.refusedForms()
	k.panelShop.api.lines.close()
	if names := k.tells(k.log.String(), nowhere); len(names) > 0 {
		t.Errorf("the log tells %s", names)
	}
	for _, e := range k.panelShop.shop.entries() {
		allowed := func(s keptSecret) bool { return s.stored && strings.IndexByte("HU", e.Key[0]) >= 0 }
		if names := k.tells(string(e.Key)+"\x00"+string(e.Value), allowed); len(names) > 0 {
			t.Errorf("%q tells %s", e.Key, names)
		}
	}
	_, err := k.file.backup(t.Context(), db+".backup")
	k.panelShop.shop.ok(err)
	for name, s := range k.secrets {
		if found := holding(t, keptFiles(db), s.text); (len(found) > 0) != s.stored {
			t.Errorf("%s is in %v, which should be %t", name, found, s.stored)
		}
	}
	if log := k.log.String(); !strings.Contains(log, "/panel/desarrollo/claves/nueva") || len(holding(t, keptFiles(db), "mar@example.com")) < 2 {
		t.Error("what is there is not found, so nothing is")
	}
}

// refusedForms posts forms that are refused with secrets in them: their pages do not send them
// back.
func (k *keeper) refusedForms() {
	k.panelShop.shop.Helper()
	for path, fields := range map[string]url.Values{
		"/panel/cuenta/clave":                   {"old": {testPassword}, "password": {"corta"}},
		"/panel/entrar":                         {"email": {"owner@example.com"}, "password": {"una clave mala y larga"}},
		"/panel/confirmar":                      {"password": {"una clave mala y larga"}},
		pinPath:                                 {"oldPin": {"480215"}, "pin": {testPIN}, "pinAgain": {testPIN}},
		"/panel/invitacion/" + k.names["token"]: {"name": {""}, "password": {testPassword}},
	} {
		as := roleOwner
		if path == "/panel/entrar" { // which leads on who is logged in
			as = ""
		}
		answer := k.panelShop.post(as, path, fields)
		if names := k.tells(answer.Body.String(), func(keptSecret) bool { return false }); answer.Code < 400 || len(names) > 0 {
			k.panelShop.shop.Errorf("POST %s: %d tells %s", path, answer.Code, names)
		}
	}
	for path, fields := range map[string]url.Values{ // a session that has ended keeps what was typed
		"/panel/cuenta/clave":          {"old": {testPassword}, "password": {"corta"}},
		"/panel/confirmar":             {"password": {testPassword}},
		"/panel/cuenta/segundo-factor": {"factorCode": {"123456"}},
		unlockPath:                     {"pin": {testPIN}},
		pinPath:                        {"pin": {testPIN}, "pinAgain": {testPIN}},
	} {
		answer := k.panelShop.post("", path, fields)
		if names := k.tells(answer.Body.String(), func(keptSecret) bool { return false }); len(names) > 0 {
			k.panelShop.shop.Errorf("POST %s without a session: %d tells %s", path, answer.Code, names)
		}
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range k.secrets {
			if !yield(name) {
				return
			}
		}
	})
	if len(names) < 30 {
		k.panelShop.shop.Errorf("only %s", names)
	}
}
