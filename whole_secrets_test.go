package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/disk"
	"sello/internal/logline"
	"sello/internal/totp"
)

// What clients send stays out of the log, and keys stay out of the store's files.
// No text that a client sends can forge a line of the log. What the panel shows once, or
// is given in confidence, is nowhere else: neither in a later page nor in a second answer
// to the same form, in the log, the audit log or a file.

// secrets are the texts that were planted, by names.
type secrets map[string]secret

type secret struct {
	text   string
	stored bool // in the file, which has to know it
}

func (s secrets) plant(name, text string) {
	if text == "" {
		panic("no " + name)
	}
	s[name] = secret{text: text}
}

// plantKey plants the text of an API key, and parts of it.
func (s secrets) plantKey(name, text string) {
	for i, part := range []string{text, text[len(keyPrefix):], text[len(keyPrefix) : len(keyPrefix)+keyRandom], text[:30]} {
		s.plant(fmt.Sprint(name, " ", i), part)
	}
}

// unstored are those that no file may hold.
func (s secrets) unstored() secrets {
	s = maps.Clone(s)
	maps.DeleteFunc(s, func(_ string, one secret) bool { return one.stored })
	return s
}

// tells names those that a text holds, in capitals or not.
func (s secrets) tells(text string) (names []string) {
	lower := strings.ToLower(text)
	for name, one := range s {
		if strings.Contains(text, one.text) || strings.Contains(lower, strings.ToLower(one.text)) {
			names = append(names, name)
		}
	}
	return names
}

// misplaced names those that are in a file and should not be, or the other way round.
func (s secrets) misplaced(t *testing.T, files []string) (faults []string) {
	for name, one := range s {
		if found := holding(t, files, one.text); (len(found) > 0) != one.stored {
			faults = append(faults, fmt.Sprintf("%s is in %v, which should be %t", name, found, one.stored))
		}
	}
	return faults
}

// nasties are texts that may end a line of a log, or begin something else, for a
// reader of the log.
var nasties = []string{"\r\n", "\n", "\r", "\x1b[31m", "\u2028", "\u2029", "\u0085", "\x00", `"},{"msg":"`, `\n`}

// A secretRequest is a request as it goes over the wire.
type secretRequest struct {
	raw   string
	ended bool // raw may be no valid request; run closes its side after it
}

// A smuggler makes requests with marks in them.
type smuggler struct {
	key, customer string
	secrets       secrets
	requests      []secretRequest
}

// mark returns a new unique text. The test searches the log for it.
func (m *smuggler) mark() string { return m.plant(fmt.Sprintf("marca%04dx", len(m.secrets))) }

// plant takes a text for a secret, as it is and as a password of HTTP's. Files may hold it.
func (m *smuggler) plant(text string) string {
	m.secrets[text] = secret{text, true}
	m.secrets[text+", encoded"] = secret{base64.StdEncoding.EncodeToString([]byte("u:" + text)), true}
	return text
}

// send adds a request. Each header is a whole line.
func (m *smuggler) send(method, target, body string, headers ...string) {
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: pedido-%d\r\n", method, target, len(m.requests))
	if len(headers) == 0 {
		headers = []string{"X-API-Key: " + m.key}
	}
	for _, h := range headers {
		text += h + "\r\n"
	}
	if body != "" {
		if !strings.Contains(text, "Content-Type") {
			text += "Content-Type: application/json\r\n"
		}
		text += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	m.requests = append(m.requests, secretRequest{raw: text + "\r\n" + body})
}

// broken adds bytes that may be no valid request.
func (m *smuggler) broken(raw string) {
	m.requests = append(m.requests, secretRequest{raw: raw, ended: true})
}

// everything puts a mark, and each nasty text, wherever a client can put one.
func (m *smuggler) everything() {
	key := "X-API-Key: " + m.key
	const api = "/api/v1"
	customers, add := api+"/customers", api+"/points/customers/"+m.customer+"/add"
	for _, header := range []string{
		"X-API-Key: %s", "X-API-Key: sello_%s", "Authorization: Bearer %s", "Authorization: Bearer sello_%s", "Authorization: %s",
		"Authorization: Bearer", "X-Api-Key: %s\r\nAuthorization: Bearer otra",
	} {
		if strings.Contains(header, "%s") {
			header = fmt.Sprintf(header, m.mark())
		}
		m.send("GET", customers, "", header)
	}
	m.send("GET", customers, "", "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("u:"+m.mark())))
	for _, name := range []string{"api_key", "key", "token", "X-API-Key", "Authorization", "search"} {
		m.send("GET", customers+"?"+name+"="+m.key, "", key)
		m.send("GET", customers+"?"+name+"="+m.mark(), "", key)
		m.send("GET", customers+"?"+name+"="+m.mark(), "", "X-Nobody: 1")
	}
	m.send("POST", customers, fmt.Sprintf(`{"email":"%s@example.com","phoneNumber":"+525587650001","firstName":"%s","lastName":"%s"}`, m.mark(), m.mark(), m.mark()))
	m.send("PATCH", customers+"/"+m.customer, fmt.Sprintf(`{"lastName":"%s","externalId":"%s","attributes":{"%s":"%s"}}`, m.mark(), m.mark(), m.mark(), m.mark()), key, "If-Match: *")
	m.send("PATCH", customers+"/"+m.customer, fmt.Sprintf(`{"birthDate":"%s","attributes":{"a":["%s"]}}`, m.mark(), m.mark()))
	m.send("PATCH", customers+"/"+m.customer, `{}`, key, "If-Match: "+m.mark())
	m.send("GET", customers+"/lookup?externalId="+m.mark(), "")
	m.plant("5587650001")
	m.plant("5587650002")
	m.send("GET", customers+"/lookup?phoneNumber=%2B525587650001", "")
	m.send("GET", customers+"/lookup?phoneNumber=%2B525587650002"+"&email="+m.mark()+"@example.com", "")
	m.send("GET", customers+"/lookup?email="+m.mark(), "")
	m.send("GET", customers+"?search="+m.mark(), "")
	m.send("GET", customers+"?page="+m.mark(), "")
	m.send("POST", add, fmt.Sprintf(`{"amount":1,"category":"Bonus","comment":"%s"}`, m.mark()), key, "Idempotency-Key: "+m.mark())
	m.send("POST", add, fmt.Sprintf(`{"amount":1,"category":"%s"}`, m.mark()))
	m.send("POST", add, fmt.Sprintf(`{"amount":"%s"}`, m.mark()))
	m.send("POST", add, m.mark())
	m.send("POST", add, `{"amount":1`+m.mark())
	m.send("POST", add, m.mark(), key, "Content-Type: text/"+m.mark())
	m.send("POST", add, `{"amount":1}`, key, "Idempotency-Key: "+strings.Repeat(m.mark(), 40))
	m.send("POST", api+"/transactions", fmt.Sprintf(`{"customerId":"%s","totalAmount":10,"externalId":"%s","comment":"%s","items":[{"sku":"%s","price":10,"quantity":1}]}`, m.customer, m.mark(), m.mark(), m.mark()))
	m.send("POST", api+"/transactions", fmt.Sprintf(`{"customerId":"%s","totalAmount":-1}`, m.mark()))
	m.send("POST", api+"/transactions", fmt.Sprintf(`{"customerId":"%s","totalAmount":10,"type":"Return","originalTransactionId":"%s"}`, m.customer, m.mark()))
	m.send("POST", api+"/rewards/redeem", fmt.Sprintf(`{"customerId":"%s","productId":"%s","comment":"%s"}`, m.customer, m.mark(), m.mark()))
	m.send("GET", api+"/transactions?externalId="+m.mark()+"&search="+m.mark(), "")
	m.send("GET", customers+"/"+m.mark(), "")
	m.send("GET", api+"/"+m.mark(), "")
	m.send("GET", "/"+m.mark()+"/../x", "")
	m.send("GET", "//"+m.mark(), "")
	m.send("GET", "http://"+m.mark()+"/api/v1/customers", "")
	m.send(strings.ToUpper(m.mark()), customers, "")
	m.send("GET", customers, "", key, "User-Agent: "+m.mark(), "Referer: http://"+m.mark(), "Cookie: a="+m.mark(), "X-Forwarded-For: "+m.mark(), "X-"+m.mark()+": 1", "Accept: "+m.mark())
	m.send("GET", customers, "", key, "Transfer-Encoding: "+m.mark())
	m.send("POST", add, "", key, "Content-Length: "+m.mark())
	m.send("POST", add, "", key, "Expect: "+m.mark())

	for _, nasty := range nasties {
		escaped := strings.NewReplacer("\r", "%0D", "\n", "%0A", "\x1b", "%1B", "\u2028", "%E2%80%A8", "\u2029", "%E2%80%A9", "\u0085", "%C2%85", "\x00", "%00", `"`, "%22", `\`, "%5C").Replace(nasty)
		inJSON, _ := json.Marshal(nasty + m.mark() + nasty)
		quoted := string(inJSON)
		m.send("GET", customers+"/"+escaped+m.mark(), "")
		m.send("GET", customers+"?search="+escaped+m.mark(), "")
		m.send("GET", api+"/"+escaped+m.mark(), "")
		m.send("POST", add, `{"amount":1,"category":"Bonus","comment":`+quoted+`}`)
		m.send("POST", add, `{"amount":1,"category":`+quoted+`}`)
		m.send("POST", add, `{`+quoted+`:1}`)
		m.send("POST", add, nasty+m.mark())
		m.send("POST", customers, `{"firstName":`+quoted+`,"email":"n`+fmt.Sprint(len(m.secrets))+`@example.com"}`)
		m.send("POST", api+"/transactions", fmt.Sprintf(`{"customerId":"%s","totalAmount":10,"externalId":%s}`, m.customer, quoted))
		for _, header := range []string{"X-API-Key", "Authorization: Bearer", "Idempotency-Key", "User-Agent", "X-Request-Id", "Content-Type", "X-Forwarded-For"} {
			colon := ": "
			if strings.Contains(header, ":") {
				colon = " "
			}
			before, after := m.mark(), m.mark()
			if header == "X-Request-Id" && isPrintable(nasty) { // the log holds a printable one, rightly
				before, after = "a", "b"
			}
			// A server may read this as one header, as several or as none.
			m.broken("POST " + add + " HTTP/1.1\r\nHost: localhost\r\n" + header + colon + before + nasty + after + "\r\n" + key + "\r\nContent-Length: 12\r\n\r\n" + `{"amount":1}`)
		}
		m.broken("GET /" + nasty + m.mark() + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
		m.broken(m.mark() + nasty + " / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		m.broken("GET / HTTP/1.1\r\nHost: " + nasty + m.mark() + "\r\n\r\n")
	}
	m.broken("GET / " + m.mark() + "/9.9\r\n\r\n")
	m.broken("GET / HTTP/1.1\r\n" + m.mark() + "\r\n\r\n")
	m.broken("GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat(m.mark(), 5000) + "\r\n\r\n")
	m.broken("\x16\x03\x01" + m.mark())
	m.plant(m.key)
	m.secrets.plantKey("key", m.key)
}

// run sends everything to a server, each on a connection of its own.
func (m *smuggler) run(t *testing.T, addr string) {
	t.Helper()
	for _, r := range m.requests {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(30 * time.Second))
		io.WriteString(conn, r.raw)
		if r.ended {
			conn.(*net.TCPConn).CloseWrite()
		}
		http.ReadResponse(bufio.NewReader(conn), nil) // any answer will do
		conn.Close()
	}
}

// faultsInLog returns what is wrong with the log of a server that got the requests.
func (m *smuggler) faultsInLog(log string) (faults []string) {
	seen := map[string]int{}
	for line := range strings.Lines(log) {
		var members map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		if err := d.Decode(&members); err != nil || d.More() || !strings.HasSuffix(line, "\n") {
			faults = append(faults, fmt.Sprintf("no JSON line: %q", line))
		}
		if members["msg"] == "request" {
			seen[fmt.Sprint(members["requestId"])]++
		}
		if strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\r\n\x1b\x00\u2028\u2029\u0085") {
			faults = append(faults, fmt.Sprintf("raw control characters: %q", line))
		}
	}
	for _, name := range m.secrets.tells(log) {
		faults = append(faults, name+" is in the log")
	}
	for i, r := range m.requests {
		if n := seen[fmt.Sprintf("pedido-%d", i)]; !r.ended && n > 1 {
			faults = append(faults, fmt.Sprintf("request %d has %d lines", i, n))
		}
	}
	return faults
}

// logged returns how many of the requests have a line in the log.
func (m *smuggler) logged(log string) (n int) {
	for i := range m.requests {
		if strings.Contains(log, fmt.Sprintf(`"requestId":"pedido-%d"`, i)) {
			n++
		}
	}
	return n
}

// keptFiles returns the names of a store's files: the database, its two journals
// and its backup.
func keptFiles(db string) []string {
	journal := disk.JournalNames(db)
	return []string{db, journal[0], journal[1], db + ".backup"}
}

// holding returns the names of the files that hold a text. It skips missing files.
func holding(t *testing.T, files []string, text string) (names []string) {
	t.Helper()
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(text)) {
			names = append(names, name)
		}
	}
	return names
}

func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	old, _ := s.key("-name antes -rate-limit 1000000") // this one is written to the file
	r, _ := s.start("serve")
	key, keyID := s.key("-name secreta -rate-limit 1000000") // this one to the journal
	status, body := r.send(http.MethodPost, "/customers", old, `{"email":"ana@example.com"}`)
	var ana struct{ ID string }
	if err := json.Unmarshal([]byte(body), &ana); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	m := &smuggler{key: key, customer: ana.ID, secrets: secrets{}}
	m.secrets.plantKey("old key", old)
	m.everything()
	m.run(t, strings.TrimSuffix(strings.TrimPrefix(r.base, "http://"), "/api/v1"))

	list := s.ok("key list -org cafe-luna") + s.ok("key list -org cafe-luna -json")
	check := func(when string) {
		t.Helper()
		files := keptFiles(s.env["SELLO_DB"])
		if len(holding(t, files, `"last4":"`+key[len(key)-4:])) == 0 {
			t.Errorf("%s: what is kept of the key is not found, so nothing is", when)
		}
		for _, fault := range append(m.secrets.unstored().misplaced(t, files), m.secrets.tells(list)...) {
			t.Errorf("%s: in a file or the list of keys: %s", when, fault)
		}
	}
	s.ok("backup " + s.env["SELLO_DB"] + ".backup")
	check("running")
	if !strings.Contains(list, keyID) {
		t.Errorf("the key is not in the list:\n%s", list)
	}
	r.wantStatus(http.StatusOK, "/customers", key, "after all this")
	if code := r.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	check("stopped")
	for _, fault := range m.faultsInLog(r.log.String()) {
		t.Error(fault)
	}
	all := 0
	for _, each := range m.requests {
		if !each.ended {
			all++
		}
	}
	if n := m.logged(r.log.String()); n < all*9/10 { // net/http refuses some before we see them
		t.Errorf("%d of %d requests have a line", n, all)
	} else {
		t.Logf("%d requests, %d secrets; %d of %d that are well-formed have a line", len(m.requests), len(m.secrets), n, all)
	}

	// Control: holding finds a key in a file.
	leaky := s.file("leaky.db", "…"+key+"…")
	if holding(t, []string{leaky}, key) == nil {
		t.Error("a key in a file is not found")
	}
}

// TestSecretsControl checks that faultsInLog catches logs with secrets or forged lines.
func TestSecretsControl(t *testing.T) {
	skipShort(t)
	for name, logIt := range map[string]func(w io.Writer, r *http.Request){
		"path": func(w io.Writer, r *http.Request) {
			slog.New(slog.NewJSONHandler(w, nil)).Info("x", "path", r.URL.Path)
		},
		"query": func(w io.Writer, r *http.Request) {
			slog.New(slog.NewJSONHandler(w, nil)).Info("x", "q", r.URL.RawQuery)
		},
		"key": func(w io.Writer, r *http.Request) {
			slog.New(slog.NewJSONHandler(w, nil)).Info("x", "k", r.Header["X-Api-Key"])
		},
		"basic": func(w io.Writer, r *http.Request) {
			slog.New(slog.NewJSONHandler(w, nil)).Info("x", "k", r.Header["Authorization"])
		},
		"agent": func(w io.Writer, r *http.Request) {
			slog.New(slog.NewJSONHandler(w, nil)).Info("x", "k", r.UserAgent())
		},
		"method": func(w io.Writer, r *http.Request) { slog.New(slog.NewJSONHandler(w, nil)).Info("x", "m", r.Method) },
		"body": func(w io.Writer, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			slog.New(slog.NewJSONHandler(w, nil)).Info("x", "b", string(b))
		},
		"retries": func(w io.Writer, r *http.Request) {
			slog.New(slog.NewJSONHandler(w, nil)).Info("x", "k", r.Header["Idempotency-Key"])
		},
		"line by hand": func(w io.Writer, r *http.Request) { fmt.Fprintf(w, "{\"msg\":\"%q\"}\n", r.FormValue("search")) },
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var log bytes.Buffer
			_, addr := serveLocally(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				logIt(&log, r)
			})
			m := &smuggler{key: newAPIKey([32]byte{1}), customer: id{1}.String(), secrets: secrets{}}
			m.everything()
			m.run(t, addr)
			mu.Lock()
			defer mu.Unlock()
			if m.faultsInLog(log.String()) == nil {
				t.Errorf("not caught:\n%s", &log)
			}
		})
	}
}

// A keeper gathers secrets, and looks for them in all that is said and written after.
type keeper struct {
	*formWorld
	file    *boltStore
	secrets secrets
	code    string // a recovery code that was not used
	log     bytes.Buffer
}

func newKeeper(t *testing.T, db string) *keeper {
	store, err := openBolt(db, disk.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	base := newShopOn(t, store, "2026-03-02T10:00:00Z")
	base.apply(formSetup.document())
	k := &keeper{formWorld: newFormWorldOn(newPanelShopOn(base)), file: store, secrets: secrets{}}
	k.panelShop.shop.engine.log = slog.New(slog.NewJSONHandler(&k.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	k.panelShop.api.log, k.panelShop.api.lines = k.panelShop.shop.engine.log, logline.NewWriter(&k.log)
	return k
}

// learn takes a secret out of a page, by a pattern with one group.
func (k *keeper) learn(name, page, pattern string) string {
	k.panelShop.shop.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(page)
	if found == nil {
		k.panelShop.shop.Fatalf("no %s in\n%s", name, page)
	}
	k.secrets.plant(name, found[1])
	return found[1]
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
	if names := k.secrets.tells(fmt.Sprint(again.Header(), again.Body)); len(names) > 0 || again.Code != http.StatusSeeOther {
		k.panelShop.shop.Errorf("POST %s again: %d tells %s", path, again.Code, names)
	}
}

// gather makes something of each kind that is secret.
func (k *keeper) gather() {
	k.secrets.plant("password", testPassword)
	b := k.panelShop.browser()
	in := b.send("POST", "/panel/entrar", url.Values{"email": {"owner@example.com"}, "password": {testPassword}})
	b.want(http.StatusSeeOther, "/panel", in)
	for _, c := range b.set {
		k.secrets.plant("token of "+c.Name, c.Value)
	}
	k.panelShop.tokens[roleOwner] = b.cookies["sello"]
	b.send("POST", "/panel/entrar", url.Values{"email": {"owner@example.com"}, "password": {"una clave mala y larga"}})
	k.secrets.plant("wrong password", "una clave mala y larga")

	k.formOnce("/panel/equipo/nuevo", url.Values{"email": {"mar@example.com"}, "role": {"cashier"}}, func(page string) {
		k.learn("invitation", page, `/panel/invitacion/(\w+)`)
	})
	k.formOnce("/panel/equipo/"+k.panelShop.users[roleCashier].String()+"/enlace", url.Values{}, func(page string) { k.learn("link for a password", page, `/panel/invitacion/(\w+)`) })
	k.formOnce(keysPath+"/nueva", url.Values{"name": {"Caja"}, "access": {"all"}, "expires": {"never"}}, func(page string) { k.learn("key", page, keyPrefix+`([0-9A-Za-z]{49})`) })
	k.formOnce(keysPath+"/"+k.names["keyId"]+"/renovar", url.Values{"overlap": {"1h"}}, func(page string) { k.learn("renewed key", page, keyPrefix+`([0-9A-Za-z]{49})`) })
	k.formOnce(webhooksPath+"/crm/secreto", url.Values{}, func(page string) {
		text := k.learn("webhook's secret", page, `whsec_([0-9A-Za-z+/&#;=]{20,})`)
		raw, err := base64.StdEncoding.DecodeString(strings.NewReplacer("&#43;", "+", "&#34;", "").Replace(text))
		k.panelShop.shop.ok(err)
		k.secrets["webhook's secret as it is kept"] = secret{string(raw), true}
	})
	page := k.panelShop.open(roleOwner, "/panel/cuenta/segundo-factor").Body.String()
	k.learn("second factor in fours", page, `<dd><code>([A-Z2-7-]+)<`)
	text := k.learn("second factor", page, `secret=(\w+)`)
	raw, err := totp.Base32.DecodeString(text)
	k.panelShop.shop.ok(err)
	k.secrets["second factor as it is kept"] = secret{string(raw), true}
	code := totp.Code(raw, int64(k.panelShop.shop.clock))
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
		if names := k.secrets.tells(again.Body.String()); len(names) > 0 || again.Code != http.StatusUnprocessableEntity {
			k.panelShop.shop.Errorf("a recovery code again: %d tells %s", again.Code, names)
		}
		break
	}
	k.logIns()
	k.secrets.plant("PIN", testPIN)
	k.secrets.plant("wrong PIN", "480215")
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
	k.secrets.plant("token of a form", "TOKENofASaleThatIsNotKept")
	k.panelShop.post(roleOwner, "/panel/caja/"+k.names["customerId"]+"/venta", url.Values{tokenField: {"TOKENofASaleThatIsNotKept"}, "totalAmount": {"10"}})
}

// logIns uses the links and a recovery code.
func (k *keeper) logIns() {
	s, l := k.panelShop.shop, k.panelShop.api.logins
	in, err := l.accept(s.Context(), &acceptance{Token: k.secrets["invitation"].text, Name: "Mar Gil", Password: testPassword}, s.clock)
	s.ok(err)
	_, err = l.accept(s.Context(), &acceptance{Token: k.secrets["link for a password"].text, Password: "otro tren azul 9"}, s.clock)
	s.ok(err)
	half, err := l.logIn(s.Context(), &logIn{Email: "owner@example.com", Password: testPassword}, s.clock)
	s.ok(err)
	whole, err := l.logInCode(s.Context(), &codeGiven{Half: half.Token, Code: k.code}, s.clock)
	s.ok(err)
	for i, text := range []string{in.Token, in.Device, "otro tren azul 9", half.Token, whole.Token, whole.Device} {
		k.secrets.plant(fmt.Sprint("log-in ", i), text)
	}
	s.ok(l.flush(s.Context(), s.clock, true))
}

func (k *keeper) learnCodes(page string) {
	codes := regexp.MustCompile(`<li><code>([A-Z0-9-]+)<`).FindAllStringSubmatch(page, -1)
	if len(codes) != recoveryCodes {
		k.panelShop.shop.Fatalf("%d recovery codes in\n%s", len(codes), page)
	}
	k.code = codes[0][1]
	for i, code := range codes {
		name := fmt.Sprint("recovery code ", len(k.secrets), i)
		k.secrets.plant(name, code[1])
		k.secrets.plant(name+" without dashes", strings.ReplaceAll(code[1], "-", ""))
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
	for _, p := range panelPages() {
		if p.need == operates {
			continue // TestOperatorSeesNoCustomers
		}
		for _, as := range []role{roleOwner, roleDeveloper} {
			answer := k.panelShop.open(as, k.filled(p.path)+"?creada=1&hecho=1&estado=&f=TOKENofAnotherPage")
			if names := k.secrets.tells(fmt.Sprint(answer.Header(), answer.Body)); len(names) > 0 {
				t.Errorf("GET %s tells %s\n%s", p.path, names, answer.Body)
			}
		}
	}
	k.refusedForms()
	k.panelShop.api.lines.Close()
	if names := k.secrets.tells(k.log.String()); len(names) > 0 {
		t.Errorf("the log tells %s", names)
	}
	audited, control, found := 0, secrets{"control": {text: "mar@example.com"}}, 0
	for _, e := range k.panelShop.shop.entries() {
		planted := k.secrets
		if strings.IndexByte("HU", e.Key[0]) >= 0 { // second factors and webhooks' secrets
			planted = planted.unstored()
		}
		text := string(e.Key) + "\x00" + string(e.Value)
		if names := planted.tells(text); len(names) > 0 {
			t.Errorf("%q tells %s", e.Key, names)
		}
		found += len(control.tells(text))
		if e.Key[0] == 'A' {
			audited++
		}
	}
	if audited < 7 || found == 0 {
		t.Errorf("%d entries of the audit log were looked at, and what is stored was found %d times", audited, found)
	}
	_, err := k.file.backup(t.Context(), db+".backup")
	k.panelShop.shop.ok(err)
	for _, fault := range k.secrets.misplaced(t, keptFiles(db)) {
		t.Error(fault)
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
		if names := k.secrets.tells(answer.Body.String()); answer.Code < 400 || len(names) > 0 {
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
		if names := k.secrets.tells(answer.Body.String()); len(names) > 0 {
			k.panelShop.shop.Errorf("POST %s without a session: %d tells %s", path, answer.Code, names)
		}
	}
	if len(k.secrets) < 30 {
		k.panelShop.shop.Errorf("only %v", k.secrets)
	}
}

// A cardKeeper visits cards, and looks for their tokens in all that is said and written.
type cardKeeper struct {
	*running
	tokens, names secrets // names are of the customer; files have them
	ours          map[string]int
}

// visits opens cards, and addresses much like theirs, 1,000 times. Each is of the route that it is
// counted for; "" is none of them.
func (k *cardKeeper) visits(good, ended string) {
	k.Helper()
	const card, estado = "/t/{token}", "/t/{token}/estado"
	unknown := strings.Repeat("A", tokenLength)
	kinds := []struct{ path, route string }{
		{"/t/" + good, card}, {"/t/" + good + ".json", card + ".json"}, {"/t/" + good + "/estado", estado}, {"/t/" + good + "/estado?mes=2026-01&t=" + good, estado},
		{"/t/" + good + "?" + good + "=" + good, card}, {"/t/" + ended, card}, {"/t/" + unknown, card}, {"/t/" + unknown + ".json", card + ".json"},
		{"/t/x" + good, card}, {"/t/" + good + "x", card}, {"/t/" + strings.ToLower(good), card}, {"/t/%0A" + good + "%22%2C", card},
		{"/t/x" + good + ".json", card + ".json"}, {"/t/" + good + "x/estado", estado}, {"/t/" + good + ".json.json", card + ".json"},
		{"/t/" + good + "/otra", ""}, {"//t/" + good, ""}, {"/t/../" + good, ""}, {"/" + good, ""}, {"/card-" + good + ".css", ""},
	}
	for i := range 1000 {
		one := kinds[i%len(kinds)]
		k.visit(k.addr(), cardsHost, one.path, "Referer", cardsBase+"/t/"+good, "User-Agent", good, "X-Request-Id", fmt.Sprint("visita-", i), "Cookie", "sello="+good)
		k.ours[one.route]++
	}
}

// TestCardSecrets: the token of a card is in no log, figure, list or file, and the customer's name
// and contact are in none of them but the files.
func TestCardSecrets(t *testing.T) {
	t.Parallel()
	skipShort(t)
	s := newTill(t)
	s.ok("apply -", string(demoDocument))
	key, _ := s.key("-name todas -rate-limit 1000000")
	r, _ := s.start("serve -metrics 127.0.0.1:0 -log-requests all -cards " + cardsBase)
	k := &cardKeeper{r, secrets{}, secrets{}, map[string]int{}}
	for name, text := range map[string]string{"first": "Xochiquetzalli", "last": "Tlacaelelton", "email": "oculta.xochi@example.com", "phone": "5599998888"} {
		k.names.plant(name, text)
	}
	ana := r.enrolled(key, `{"firstName":"Xochiquetzalli","lastName":"Tlacaelelton","email":"oculta.xochi@example.com","phoneNumber":"5599998888"}`)
	ended := r.issued(ana, key)
	good := r.issued(ana, key)
	for name, token := range map[string]string{"ended": ended, "good": good} {
		k.tokens.plant(name, token)
		k.tokens.plant(name+", its beginning", token[:13])
		k.tokens.plant(name+", its end", token[13:])
	}
	r.wantVisit(r.addr(), "/t/"+good, http.StatusOK, "Xochiquetzalli", cardsHost) // or there is nothing to find
	k.ours["/t/{token}"]++
	k.visits(good, ended)
	_, figures := r.visit(r.metrics, r.metrics, "/metrics")
	k.silent("the figures", figures, "sello_http_requests_total")
	_, entries := r.get("/audit?limit=100", key)
	k.silent("GET /audit", entries, auditCardIssued)
	_, events := r.get("/events?limit=100", key)
	k.silent("GET /events", ofCards(t, events), "customer.card_issued")
	for _, name := range k.tokens.tells(events) {
		t.Errorf("GET /events has it: %s", name)
	}
	s.ok("backup " + s.env["SELLO_DB"] + ".backup")
	k.unwritten("running")
	if code := r.stop(); code != 0 {
		t.Errorf("exit %d", code)
	}
	k.unwritten("stopped")
	k.silent("the log", r.log.String(), `"visita-999"`)
	counts := map[string]int{}
	for line := range strings.Lines(r.log.String()) {
		var of struct{ Msg, Route, RequestID string }
		if err := json.Unmarshal([]byte(line), &of); err != nil {
			t.Errorf("no JSON line: %q", line)
		}
		if strings.HasPrefix(of.Route, "/t/") || strings.HasPrefix(of.RequestID, "visita-") {
			counts[of.Route]++
		}
	}
	same(t, "lines by route", counts, k.ours)

	// Control: what is put into a file is found, in any letter case.
	k.file("sello.db.leak", "…"+strings.ToLower(good)+"…")
	if faults := k.tokens.written(t, k.env["SELLO_DB"]); len(faults) != 3 {
		t.Errorf("of the token in a file are found %q", faults)
	}
}

// ofCards are the events of cards in a list of events; that of an enrolment has the customer's names.
func ofCards(t *testing.T, list string) (of string) {
	t.Helper()
	var events struct{ Data []json.RawMessage }
	if err := json.Unmarshal([]byte(list), &events); err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Data {
		if strings.Contains(string(event), "customer.card_") {
			of += string(event) + "\n"
		}
	}
	return of
}

// silent checks that a text tells nothing, and that it is the one that was meant.
func (k *cardKeeper) silent(what, text, has string) {
	k.Helper()
	if !strings.Contains(text, has) {
		k.Errorf("%s has no %s:\n%.2000s", what, has, text)
	}
	for _, name := range append(k.tokens.tells(text), k.names.tells(text)...) {
		k.Errorf("%s has it: %s", what, name)
	}
}

// unwritten checks that no file has a token. The customer's names, which the files have, show that
// they were searched.
func (k *cardKeeper) unwritten(when string) {
	k.Helper()
	if got := k.names.written(k.T, k.env["SELLO_DB"]); len(got) < len(k.names) {
		k.Errorf("%s: of the names are found %q alone", when, got)
	}
	for _, fault := range k.tokens.written(k.T, k.env["SELLO_DB"]) {
		k.Errorf("%s: in a file: %s", when, fault)
	}
}

// written names the secrets that a file has whose name begins with a path, and the file.
func (s secrets) written(t *testing.T, path string) (list []string) {
	names, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range names {
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue // the socket
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range s.tells(string(b)) {
			list = append(list, filepath.Base(file)+": "+name)
		}
	}
	return list
}
