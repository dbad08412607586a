package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"sello/internal/disk"
)

// Hostile requests: testdata/hostile/*.txt has requests, each with the answer that the
// contract and RFC 9112 ask for. TestHostile sends them, byte for byte, to a server
// like that of `sello serve`. A case is
//
//	NAME | ANSWER
//	> GET /livez HTTP/1.1
//	> Host: sello.test
//	>
//
// Each line of the request ends in CRLF on the wire, unless it ends in a backslash.
// Cases that differ in one place are a table: the word each, a request with $case in
// it, and lines
//
//	NAME | CASE | ANSWER
//
// $maria, $(a*9) and $(ff) are as in the transcripts, ⏎ is a CRLF and $length the
// length of the body. A line < means that the client then closes its side.
//
// An ANSWER is a status, the code of an error, field=, allow= and id= (the id of the
// request, or new). There is a comma between several responses; 100 is an interim
// one. The last word may say what becomes of the connection, which otherwise goes on:
//
//	close   it ends, and the response says so
//	gone    it ends, and no response says so
//	none    it ends without a further response

type hostileCase struct {
	group, name, request, answer string
	halfClose                    bool
}

// hostileCases reads the cases of all groups.
func hostileCases(t *testing.T) (cases []hostileCase) {
	files, err := filepath.Glob(filepath.Join("testdata", "hostile", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	names := map[string]bool{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		group := strings.TrimSuffix(filepath.Base(file), ".txt")
		var template string
		into := &template
		for line := range strings.Lines(string(raw)) {
			line = strings.TrimSuffix(line, "\n")
			first, last := strings.Index(line, " | "), strings.LastIndex(line, " | ")
			switch {
			case line == "" || line[0] == '#':
			case line == "each":
				template = ""
				into = &template
			case line[0] == '>':
				text, open := strings.CutSuffix(strings.TrimPrefix(line[1:], " "), `\`)
				if *into += text; !open {
					*into += "\r\n"
				}
			case line == "<":
				cases[len(cases)-1].halfClose = true
			case first < 0:
				t.Fatalf("%s: %q", file, line)
			default:
				c := hostileCase{group: group, name: line[:first], answer: line[last+3:]}
				if names[group+c.name] {
					t.Errorf("%s: two cases are called %s", file, c.name)
				}
				names[group+c.name] = true
				if first < last {
					c.request = strings.ReplaceAll(template, "$case", line[first+3:last])
				}
				cases = append(cases, c)
				into = &cases[len(cases)-1].request
			}
		}
	}
	return cases
}

// A target is a server that hostile requests are sent to.
type target struct {
	world *world
	addr  string
	// The connection on which alive asks; nil before the first time.
	probe  net.Conn
	reader *bufio.Reader
}

// newTarget serves a world. wrap, if not nil, wraps the world's handler. A loose
// server is without request_connections.go.
func newTarget(w *world, wrap func(http.Handler) http.Handler, loose bool) *target {
	var handler http.Handler = w.api
	if wrap != nil {
		handler = wrap(handler)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	h := &target{world: w, addr: listener.Addr().String()}
	if !loose {
		listener = w.api.connections(listener)
	}
	server := newServer(handler, w.log())
	go server.Serve(listener)
	w.Cleanup(func() {
		if h.probe != nil {
			h.probe.Close()
		}
		server.Close()
	})
	return h
}

// newHostileWorld returns the world of the transcripts with the keys that the cases
// use.
func newHostileWorld(t *testing.T) *world {
	w := newWorld(t, newMemStore())
	w.play(filepath.Join("testdata", "world", "world.txt"), false)
	for _, line := range []string{
		`key hostile cafe-luna {"rateLimit": 1000000}`, `key narrow cafe-luna {"scopes": ["points:read"]}`,
		`key elsewhere cafe-luna {"ipWhitelist": ["192.0.2.1"]}`, `key revoked cafe-luna`, `revoke revoked`,
	} {
		w.direct(line)
	}
	return w
}

// bytesOf returns a request as it goes over the wire.
func (w *world) bytesOf(request string) string {
	const length = "⏎length" // in no request
	raw := w.expand(strings.ReplaceAll(request, "$length", length))
	_, body, _ := strings.Cut(raw, "\r\n\r\n")
	raw = strings.ReplaceAll(raw, length, strconv.Itoa(len(body)))
	return strings.ReplaceAll(raw, "⏎", "\r\n")
}

// ioTimeout bounds how long a case may wait for the server.
const ioTimeout = 20 * time.Second

// check sends one case and returns what is wrong with the outcome.
func (h *target) check(c hostileCase) (faults []string) {
	h.world.Helper()
	require := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	before := h.digest()
	raw := h.world.bytesOf(c.request)
	conn, err := net.Dial("tcp", h.addr)
	h.world.must(err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(ioTimeout))
	go func() { // the server may answer before it has read all
		io.WriteString(conn, raw)
		if c.halfClose {
			conn.(*net.TCPConn).CloseWrite()
		}
	}()

	reader := bufio.NewReader(conn)
	answers := strings.Split(h.world.expand(c.answer), ", ")
	words := strings.Fields(answers[len(answers)-1])
	end := words[len(words)-1]
	switch end {
	case "none":
		answers = answers[:len(answers)-1]
	case "close", "gone":
		answers[len(answers)-1] = strings.Join(words[:len(words)-1], " ")
	default:
		end = "open"
	}
	faults, created, goesOn := h.checkAnswers(raw, answers, end == "close", conn, reader)
	if !goesOn {
		return faults
	}
	if end == "open" {
		// The connection answers another request, so nothing of this one is left in it.
		require(askAlive(conn, reader) == nil, "the connection does not go on")
	} else {
		left, err := io.ReadAll(reader)
		require(len(left) == 0 && !errors.Is(err, os.ErrDeadlineExceeded), "the connection does not end: %q %v", left, err)
	}
	require(h.alive(), "the server does not live")
	after := h.digest()
	require((before != after) == created, "the store has changed: %v", before != after)
	return faults
}

// checkAnswers reads the answers to a request and returns what is wrong with them.
// created reports whether a 201 was expected, goesOn whether the connection is as
// expected after each answer.
func (h *target) checkAnswers(raw string, answers []string, closes bool, conn net.Conn, reader *bufio.Reader) (faults []string, created, goesOn bool) {
	method, rest, _ := strings.Cut(raw, " ")
	path, _, _ := strings.Cut(rest, " ")
	for i, answer := range answers {
		fault := func(what string, args ...any) {
			faults = append(faults, fmt.Sprintf("answer %d: ", i+1)+fmt.Sprintf(what, args...))
		}
		words := strings.Fields(answer)
		created = created || words[0] == "201"
		res, body, err := readAnswer(reader, method)
		if err != nil {
			fault("%v", err)
			return faults, created, false
		}
		if res.StatusCode != 100 {
			for _, f := range faultsOf(step{method: method, target: path}, res, body, res.Header.Get("X-Request-Id")) {
				fault("%s: %v %s", f, res.Header, body)
			}
		}
		for _, f := range answerFaults(words, res, body, method) {
			fault("%s: %v %s", f, res.Header, body)
		}
		if res.Close != (closes && i == len(answers)-1) {
			fault("the client is told %v of the connection's end", res.Close)
			conn.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, reader) // or the rest would be carried out during the next case
			return faults, created, false
		}
		method, path = "POST", "/api/" // of the requests after the first
	}
	return faults, created, true
}

var answerHead = regexp.MustCompile(`^HTTP/1\.[01] [1-5][0-9]{2} [A-Z][A-Za-z -]*\r\n([A-Z][A-Za-z-]*: [ -~]*\r\n)*\r\n$`)

// readAnswer reads a response and is strict about its form.
func readAnswer(r *bufio.Reader, method string) (*http.Response, []byte, error) {
	var head strings.Builder
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		line, err := r.ReadString('\n')
		if head.WriteString(line); err != nil {
			return nil, nil, fmt.Errorf("%w after %q", err, head.String())
		}
	}
	if !answerHead.MatchString(head.String()) {
		return nil, nil, fmt.Errorf("no head of a response: %q", head.String())
	}
	res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(head.String())), &http.Request{Method: method})
	if err != nil || res.StatusCode == 100 {
		return res, nil, err
	}
	if res.Close {
		res.Header.Del("Connection") // http.ReadResponse leaves it in for HTTP/1.0
	}
	if method == "HEAD" {
		return res, nil, nil
	}
	if res.ContentLength < 0 {
		return nil, nil, fmt.Errorf("no Content-Length: %q", head.String())
	}
	body := make([]byte, res.ContentLength)
	_, err = io.ReadFull(r, body)
	return res, body, err
}

// answerFaults returns how a response differs from the words of an answer.
func answerFaults(words []string, res *http.Response, body []byte, method string) (faults []string) {
	require := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	require(res.StatusCode < 500, "a fault of ours: %d", res.StatusCode)
	want := readAnswerWords(words)
	require(strconv.Itoa(res.StatusCode) == want.status, "want %s, got %d", want.status, res.StatusCode)
	allow := strings.ReplaceAll(want.named["allow"], ",", ", ")
	require(res.Header.Get("Allow") == allow, "want Allow: %s", allow)
	require((res.Header.Get("WWW-Authenticate") != "") == (res.StatusCode == 401), "WWW-Authenticate")
	given := res.Header.Get("X-Request-Id")
	switch id := want.named["id"]; id {
	case "", "new":
		require(madeRequestID.MatchString(given) || res.StatusCode == 100, "the request id is %s", given)
	default:
		require(given == id, "the request id is %s", given)
	}
	if res.StatusCode < 400 || method == "HEAD" {
		return faults
	}
	// The body has only members of an error, and the status and text of errorTable.
	var e errorBody
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	require(d.Decode(&e) == nil, "no error body")
	require(e.Code == want.code, "want %s, got %s", want.code, e.Code)
	require(e.Field == want.named["field"], "want field %q, got %q", want.named["field"], e.Field)
	row := errorTable[e.Code]
	require(e.StatusCode == row.status && res.StatusCode == row.status, "status of the table: %d", row.status)
	switch e.Code {
	case "invalid_field": // a text of its own, which names the field
		require(e.Message != "" && strings.HasPrefix(e.Message, e.Field), "message")
	case "too_precise", "too_large":
		require(e.Message == e.Field+row.message, "message")
	case "scope_required":
		require(strings.HasPrefix(e.Message, row.message), "message")
	default:
		require(e.Message == row.message, "message")
	}
	return faults
}

const aliveRequest = "GET /livez HTTP/1.1\r\nHost: sello.test\r\nX-Request-Id: alive\r\n\r\n"

// askAlive asks on a connection whether the server is alive.
func askAlive(conn net.Conn, r *bufio.Reader) error {
	if _, err := io.WriteString(conn, aliveRequest); err != nil {
		return err
	}
	res, body, err := readAnswer(r, "GET")
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("X-Request-Id") != "alive" || string(body) != `{"status":"ok"}`+"\n" {
		return fmt.Errorf("%d %v %s", res.StatusCode, res.Header, body)
	}
	return nil
}

// alive reports whether the server is alive. It asks on h.probe, or on a new
// connection if that fails.
func (h *target) alive() bool {
	for range 2 {
		if h.probe != nil {
			h.probe.SetDeadline(time.Now().Add(ioTimeout))
			if askAlive(h.probe, h.reader) == nil {
				return true
			}
			h.probe.Close()
		}
		conn, err := net.Dial("tcp", h.addr)
		h.world.must(err)
		h.probe, h.reader = conn, bufio.NewReader(conn)
	}
	return false
}

// digest returns a hash of the store, without the usage of keys.
func (h *target) digest() (sum [sha256.Size]byte) {
	hash := sha256.New()
	h.world.must(h.world.store.Store.View(context.Background(), func(tx Tx) error {
		for e, err := range tx.Scan(newKey(0), nil, false) {
			if err != nil {
				return err
			}
			if e.Key[0] == 'u' {
				continue
			}
			for _, part := range [][]byte{e.Key, e.Value} {
				hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
				hash.Write(part)
			}
		}
		return nil
	}))
	hash.Sum(sum[:0])
	return sum
}

func TestHostile(t *testing.T) {
	w := newHostileWorld(t)
	h := newTarget(w, nil, false)
	cases := hostileCases(t)
	for _, c := range cases {
		for _, fault := range h.check(c) {
			t.Errorf("%s: %s: %s", c.group, c.name, fault)
		}
	}
	if len(cases) < 300 {
		t.Errorf("%d cases are too few", len(cases))
	}
	t.Logf("%d cases", len(cases))
	w.verify()
}

// An answerer passes each status that the handler writes through before, which may
// also change the headers.
type answerer struct {
	http.ResponseWriter
	before func(h http.Header, status int) int
}

func (a answerer) WriteHeader(status int) {
	a.ResponseWriter.WriteHeader(a.before(a.Header(), status))
}

// TestHostileNotices runs check on servers that are each loose in one way. It must
// find a fault in every case that such a server gets wrong.
func TestHostileNotices(t *testing.T) {
	w := newHostileWorld(t)
	// on changes the request, after the response.
	on := func(change func(*http.Request)) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				change(r)
				next.ServeHTTP(rw, r)
			})
		}
	}
	after := func(before func(http.Header, int) int) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { next.ServeHTTP(answerer{rw, before}, r) })
		}
	}
	writes := uint64(0)
	for _, loose := range []struct {
		name  string
		wrap  func(http.Handler) http.Handler
		cases []string // nil: those that net/http refuses
		all   bool     // all answers of the server are wrong
	}{
		{"net/http refuses by itself", nil, nil, false},
		{"encoding/json", on(func(r *http.Request) {
			var v any
			if json.NewDecoder(r.Body).Decode(&v) == nil {
				body, _ := json.Marshal(v)
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
		}), []string{
			"json: two amounts", "json: two amounts, one escaped", "json: another object", "json: a letter after it", "json: Latin-1",
			"json: a high surrogate alone", "json: two names within", "numbers: more than one by less than a float tells",
		}, false},
		{"http.ServeMux", func(next http.Handler) http.Handler {
			mux := http.NewServeMux()
			for _, r := range w.api.routes() {
				mux.Handle(r.pattern, next)
			}
			return mux
		}, []string{
			"paths: two slashes", "paths: one dot", "paths: two dots, escaped", "paths: dots to a route", "paths: the root",
			"methods: DELETE", "methods: POST to what is read", "methods: OPTIONS of all",
		}, false},
		{"url.ParseQuery", on(func(r *http.Request) {
			given := r.URL.Query()
			for name, values := range given {
				given[name] = values[:1]
			}
			r.URL.RawQuery = given.Encode()
		}), []string{
			"query: page twice", "query: a semicolon", "query: a bad escape", "query: an escape cut off", "query: dryRun both ways",
		}, false},
		{"the first of each header", on(func(r *http.Request) {
			for name, values := range r.Header {
				r.Header[name] = values[:1]
			}
		}), []string{
			"headers: two keys", "headers: two bearers", "headers: twice", "headers: gzip in a second header", "headers: two keys for one",
		}, false},
		{"paths without their NULs", on(func(r *http.Request) { r.URL.Path = strings.ReplaceAll(r.URL.Path, "\x00", "") }), []string{
			"paths: an escaped NUL after it", "paths: a NUL after a route",
		}, false},
		{"a connection that goes on", after(func(h http.Header, status int) int {
			h.Del("Connection")
			return status
		}), []string{
			"framing: after chunks", "framing: after both lengths, the longer meant", "framing: after HTTP/1.0 in chunks",
			"framing: after HTTP/1.0 that would go on", "framing: chunks",
		}, false},
		{"a write of what is refused", on(func(*http.Request) {
			writes++
			w.must(w.store.Update(context.Background(), func(tx Tx) error { return tx.Put(newKey('!').u64(writes), []byte("x")) }))
		}), []string{"headers: none", "numbers: zero", "paths: the root", "query: a semicolon", "methods: TRACE"}, true},
		{"a fault of the server", after(func(_ http.Header, status int) int { return max(status, 500) }), []string{
			"numbers: zero", "paths: the root", "headers: a request id",
		}, true},
		{"a name of the server", after(func(h http.Header, status int) int {
			h.Set("Server", "Go")
			return status
		}), []string{"numbers: zero", "paths: the root", "headers: a request id"}, true},
		{"another request id", on(func(r *http.Request) { r.Header.Del("X-Request-Id") }), []string{"headers: a request id"}, true},
		{"no answer", on(func(*http.Request) { panic(http.ErrAbortHandler) }), []string{"headers: a request id", "numbers: zero"}, true},
	} {
		t.Run(loose.name, func(t *testing.T) {
			h := newTarget(w, loose.wrap, loose.wrap == nil)
			checked := 0
			for _, c := range hostileCases(t) {
				name := c.group + ": " + c.name
				if name == "headers: a bearer" && (len(h.check(c)) > 0) != loose.all {
					t.Errorf("%s: all wrong? %v", name, !loose.all)
				}
				byItself := strings.HasSuffix(c.answer, " close") && name != "framing: after the preface of HTTP/2" &&
					slices.ContainsFunc([]string{"bad_request", "expectation_failed", "headers_too_large"}, func(code string) bool {
						return strings.Contains(c.answer, code)
					})
				if loose.cases == nil && !byItself || loose.cases != nil && !slices.Contains(loose.cases, name) {
					continue
				}
				if checked++; len(h.check(c)) == 0 {
					t.Errorf("%s: nothing is noticed", name)
				}
			}
			if checked == 0 || checked < len(loose.cases) {
				t.Errorf("%d cases of %q", checked, loose.cases)
			}
		})
	}
}

var updateGolden = flag.Bool("update", false, "rewrite the responses in testdata/golden that changed")

// A goldenBackend is a kind of store that transcripts are played on.
type goldenBackend struct {
	name string
	open func(*testing.T) Store
}

// TestGolden plays every transcript on every backend.
func TestGolden(t *testing.T) {
	backends := []goldenBackend{
		{"mem", func(*testing.T) Store { return parted(newMemStore()) }},
		{"bolt twice", func(t *testing.T) Store {
			s, err := openBolt(filepath.Join(t.TempDir(), "sello.db"), disk.Options{NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			return runTwice(s)
		}},
	}
	if testing.Short() {
		backends = backends[:1]
	}
	playGolden(t, backends)
}

// playGolden plays every transcript on each of the backends. It also checks what the transcripts
// leave out: openapi.json describes each whole response, and all backends give the same
// one.
func playGolden(t *testing.T, backends []goldenBackend) {
	described := readAPIDoc(t)
	all := agreement{first: map[string][]string{}}
	for _, file := range goldenFiles(t) {
		for i, backend := range backends {
			if t.Failed() && *updateGolden {
				return
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+backend.name, func(t *testing.T) {
				if !*updateGolden {
					t.Parallel()
				}
				w := newWorld(t, backend.open(t))
				var responses []string
				doc := apiDoc{Paths: described.Paths, Components: described.Components, used: map[string]bool{}}
				w.watch = func(s step, o outcome, body []byte) {
					responses = append(responses, fmt.Sprintln(s.text, o.status, o.headers, o.body))
					if i > 0 {
						return
					}
					if err := doc.describes(w.route(s), s.method, o.status, body); err != nil {
						t.Errorf("%s:\n%s\n%v", file, s.text, err)
					}
				}
				w.play(filepath.Join("testdata", "world", "world.txt"), *updateGolden && i == 0)
				w.play(file, *updateGolden && i == 0)
				w.verify()
				if d := all.differs(file, responses); d != "" {
					t.Errorf("%s: not what another backend answers:\n%s", file, d)
				}
			})
		}
	}
}

// An agreement compares the whole responses of the backends.
type agreement struct {
	mu    sync.Mutex
	first map[string][]string // by transcript: the responses of the first backend
}

func (a *agreement) differs(file string, responses []string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, ok := a.first[file]
	if !ok {
		a.first[file] = responses
	} else if !slices.Equal(first, responses) {
		return diff.Diff(first, responses)
	}
	return ""
}

func goldenFiles(t *testing.T) []string {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	return files
}

// goldenResponses yields every step of every transcript that has a response, with its
// status and, for an error, its body.
func goldenResponses(t *testing.T) iter.Seq2[step, errorBody] {
	return func(yield func(step, errorBody) bool) {
		for _, file := range goldenFiles(t) {
			for _, s := range readSteps(t, file) {
				status, body := s.outcome()
				e := errorBody{StatusCode: status}
				if status >= 400 {
					json.Unmarshal([]byte(body), &e)
				}
				if s.want != "" && !yield(s, e) {
					return
				}
			}
		}
	}
}

// TestGoldenErrors compares the transcripts with errorTable. They show every row of it,
// and no error that differs from its row.
func TestGoldenErrors(t *testing.T) {
	seen := map[string]bool{}
	for s, e := range goldenResponses(t) {
		if e.StatusCode < 400 || e.Code == "" && s.method == "HEAD" {
			continue
		}
		seen[e.Code] = true
		row, ok := errorTable[e.Code]
		message := row.message
		switch e.Code {
		case "invalid_field":
			message = e.Message
		case "scope_required":
			message += strings.TrimPrefix(e.Message, message)
		case "events_gone":
			if e.Message == eventsToCome {
				message = e.Message
			}
		case "occurred_at_invalid": // the days are those of the settings
			if strings.HasPrefix(e.Message, "occurredAt no puede ser ") {
				message = e.Message
			}
		case "points_payment_too_small", "points_payment_too_large", "points_payment_step", "hold_exceeded": // N is a number
			if numberForm := regexp.MustCompile(` [0-9.]+`); numberForm.ReplaceAllString(e.Message, " N") == message {
				message = e.Message
			}
		case "too_precise", "too_large":
			message = e.Field + message
		case "unknown_field":
			message = e.Field + message
			if suggestion := strings.TrimPrefix(e.Message, message); regexp.MustCompile(`^ \(¿\w+\?\)$`).MatchString(suggestion) {
				message += suggestion
			}
		}
		if !ok || e.StatusCode != row.status || e.Message != message {
			t.Errorf("%s\n%s\nis not the row %v", s.text, s.want, row)
		}
	}
	for code := range errorTable {
		if !seen[code] && code != codeHTTPSRequired.name { // TestTLS shows that one
			t.Errorf("no transcript shows %s", code)
		}
	}
}

// TestGoldenRoutes checks that the transcripts show every route: with a success, with a
// whole response, and refused for lack of its scope.
func TestGoldenRoutes(t *testing.T) {
	a := newAPI(nil, nil, nil)
	seen := map[string]bool{}
	for s, e := range goldenResponses(t) {
		target, err := url.Parse(s.target)
		if err != nil {
			continue
		}
		_, pattern := a.mux.Handler(&http.Request{Method: s.method, URL: target})
		if e.StatusCode < 300 {
			_, body := s.outcome()
			seen[pattern] = true
			seen[pattern+" whole"] = seen[pattern+" whole"] || isWhole(body)
		} else if e.Code == "scope_required" {
			seen[pattern+" without "+strings.TrimPrefix(e.Message, errorTable[e.Code].message)] = true
		}
	}
	for _, r := range a.routes() {
		if r.pattern == "GET /api/v1/openapi.json" || r.pattern == "GET /docs" {
			continue // TestReference reads them; their ETags change with each word
		}
		if !seen[r.pattern] {
			t.Errorf("no transcript shows success of %s", r.pattern)
		}
		if !seen[r.pattern+" whole"] {
			t.Errorf("no transcript shows a whole response of %s", r.pattern)
		}
		for scope := range strings.FieldsSeq(r.scope) {
			if !seen[r.pattern+" without "+scope] {
				t.Errorf("no transcript shows that %s needs %s", r.pattern, scope)
			}
		}
	}
}

// isWhole reports whether a body shows a shape with all its members. A body with … is not
// JSON, and an empty list shows no shape.
func isWhole(body string) bool {
	var v any
	if json.Unmarshal([]byte(body), &v) != nil {
		return false
	}
	if members, ok := v.(map[string]any); ok && members["data"] != nil {
		v = members["data"]
	}
	list, ok := v.([]any)
	return v != nil && (!ok || len(list) > 0)
}

// TestPart checks which members part leaves out, and that … stands in their place.
func TestPart(t *testing.T) {
	for _, test := range []struct{ reason, body, names, want string }{
		{"some of an object", `{"a":1,"b":"{,\"}","c":null}`, "c b", `{"b":"{,\"}","c":null,…}`},
		{"all of it", `{"a":1,"b":2}`, "a b", `{"a":1,"b":2}`},
		{"none of it", `{"a":1}`, "b", `{…}`},
		{"deeper, with what encloses it", `{"a":{"b":{"c":1,"d":2}},"e":[3]}`, "c", `{"a":{"b":{"c":1,…}},…}`},
		{"the whole of a named object", `{"a":{"b":1},"c":[{"b":2}]}`, "a", `{"a":{"b":1},…}`},
		{"each element of a list", `[{"a":1,"b":2},{"b":3}]`, "a", `[{"a":1,…},{…}]`},
		{"the rows of a list, always", `{"data":[{"a":1}],"meta":{"total":1}}`, "b", `{"data":[{…}],…}`},
		{"no rows", `{"data":[],"meta":{"total":0}}`, "total", `{"data":[],"meta":{"total":0}}`},
		{"what is not an object", `null`, "a", `null`},
	} {
		got, _ := part(test.body, func(name string) bool { return slices.Contains(strings.Fields(test.names), name) })
		if got != test.want {
			t.Errorf("%s: %s, not %s", test.reason, got, test.want)
		}
		if whole := got == test.body && test.body != "null" && !strings.Contains(test.body, "[]"); isWhole(got) != whole {
			t.Errorf("%s: is %s whole? %v", test.reason, got, !whole)
		}
	}
}
