package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sello/internal/disk"
)

// What clients send stays out of the log, and keys stay out of the store's files.
// No text that a client sends can forge a line of the log.

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
	marks         []string
	requests      []secretRequest
}

// mark returns a new unique text. The test searches the log for it.
func (m *smuggler) mark() string {
	m.marks = append(m.marks, fmt.Sprintf("marca%04dx", len(m.marks)))
	return m.marks[len(m.marks)-1]
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
	m.marks = append(m.marks, "5587650001", "5587650002")
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
		m.send("POST", customers, `{"firstName":`+quoted+`,"email":"n`+fmt.Sprint(len(m.marks))+`@example.com"}`)
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
	m.marks = append(m.marks, m.key, m.key[len(keyPrefix):len(m.key)-keyChecksum])
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
	lower := strings.ToLower(log)
	for _, mark := range m.marks {
		if strings.Contains(lower, strings.ToLower(mark)) {
			faults = append(faults, fmt.Sprintf("%q is in the log", mark))
		}
		if encoded := base64.StdEncoding.EncodeToString([]byte("u:" + mark)); strings.Contains(log, encoded) {
			faults = append(faults, fmt.Sprintf("%q is in the log, encoded", mark))
		}
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
	m := &smuggler{key: key, customer: ana.ID}
	m.everything()
	m.run(t, strings.TrimSuffix(strings.TrimPrefix(r.base, "http://"), "/api/v1"))

	list := s.ok("key list -org cafe-luna") + s.ok("key list -org cafe-luna -json")
	check := func(when string) {
		t.Helper()
		files := keptFiles(s.env["SELLO_DB"])
		if len(holding(t, files, `"last4":"`+key[len(key)-4:])) == 0 {
			t.Errorf("%s: what is kept of the key is not found, so nothing is", when)
		}
		for _, k := range []string{key, old} {
			for _, part := range []string{k, k[len(keyPrefix):], k[len(keyPrefix) : len(keyPrefix)+keyRandom], k[:30]} {
				if names := holding(t, files, part); names != nil {
					t.Errorf("%s: a key is in %s", when, names)
				}
				if strings.Contains(list, part) {
					t.Errorf("a key is in the list of keys")
				}
			}
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
		t.Logf("%d requests, %d marks; %d of %d that are well-formed have a line", len(m.requests), len(m.marks), n, all)
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
			m := &smuggler{key: newAPIKey([32]byte{1}), customer: id{1}.String()}
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

// A listeningStore is a Store that records the keys and values it is called with.
type listeningStore struct {
	Store
	mu    sync.Mutex
	asked [][]byte
}

type listeningTx struct {
	Tx
	store *listeningStore
}

func (s *listeningStore) View(ctx context.Context, fn func(Tx) error) error {
	return s.Store.View(ctx, func(tx Tx) error { return fn(listeningTx{tx, s}) })
}

func (s *listeningStore) Update(ctx context.Context, fn func(Tx) error) error {
	return s.Store.Update(ctx, func(tx Tx) error { return fn(listeningTx{tx, s}) })
}

func (s *listeningStore) hear(keys ...[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		s.asked = append(s.asked, bytes.Clone(k))
	}
}

func (t listeningTx) Get(key []byte) ([]byte, bool, error) { t.store.hear(key); return t.Tx.Get(key) }
func (t listeningTx) Put(key, value []byte) error {
	t.store.hear(key, value)
	return t.Tx.Put(key, value)
}
func (t listeningTx) Scan(lo, hi []byte, reverse bool) iter.Seq2[Entry, error] {
	t.store.hear(lo, hi)
	return t.Tx.Scan(lo, hi, reverse)
}

// tells returns a part of an API key's text that the store heard, or "". hashed
// reports whether the store was asked for the key's hash.
func (s *listeningStore) tells(text string) (part string, hashed bool) {
	hash := keyHash(text)
	for _, k := range s.asked {
		hashed = hashed || bytes.Equal(k, keyHashKey(hash))
		for i := len(keyPrefix); i+8 <= len(text); i++ {
			if bytes.Contains(k, []byte(text[i:i+8])) {
				part = text[i : i+8]
			}
		}
	}
	return part, hashed
}

// TestKeysByHash checks that an API key is looked up by its hash. No part of its
// text reaches the store, neither when it is made nor when it is used.
func TestKeysByHash(t *testing.T) {
	s := &listeningStore{Store: newMemStore()}
	defer s.Close()
	e := newEngine(s, time.Now, cryptoSeed)
	a := &admin{engine: e}
	if err := e.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.apply(t.Context(), applyRequest{Document: demoDocument}); err != nil {
		t.Fatal(err)
	}
	k, err := a.createKey(t.Context(), keyRequest{Org: "cafe-luna", Name: "POS"})
	if err != nil {
		t.Fatal(err)
	}
	if part, _ := s.tells(k.Key); part != "" {
		t.Errorf("making it, the store heard %q", part)
	}
	for text, code := range map[string]string{k.Key: "", newAPIKey([32]byte{7}): "api_key_invalid"} {
		s.asked = nil
		if _, err := e.authenticate(t.Context(), text, nil, instantOf(time.Now())); codeOf(err) != code {
			t.Errorf("got %v, want %q", err, code)
		}
		if part, hashed := s.tells(text); part != "" || !hashed && code == "" { // an unknown key may be refused without a look-up
			t.Errorf("the store heard %q; asked for its hash: %v", part, hashed)
		}
	}
	s.asked = nil
	if _, err := e.authenticate(t.Context(), "sello_nada", nil, 0); codeOf(err) != "api_key_invalid" || s.asked != nil {
		t.Errorf("what is no key: %v, looked for %q", err, s.asked)
	}
	// Control: the store hears a look-up by the text.
	s.View(t.Context(), func(tx Tx) error { tx.Get([]byte("a" + k.Key)); return nil })
	if part, hashed := s.tells(k.Key); part == "" || hashed {
		t.Error("a look-up by the text is not heard")
	}
}
