package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// FuzzHandler sends any request to the API, and FuzzWire any bytes on a
// connection. Each input starts from the same image, so one input alone
// reproduces a failure.

// An image is the state of the transcripts' world at one moment.
type image struct {
	state  memTx
	now    time.Time
	names  map[string]string // values of a transcript's $name
	expand *strings.Replacer
}

func newImage(t *testing.T) *image {
	store := newMemStore()
	w := newWorld(t, store)
	w.play(filepath.Join("testdata", "world", "world.txt"), false)
	for _, request := range []string{
		"let sale = id\nPOST /api/v1/transactions as luna\n" +
			`{"customerId": "$maria", "totalAmount": 5000, "externalId": "T-1", "items": [{"sku": "A", "price": 2500, "quantity": 2}]}`,
		"let canje = id\nPOST /api/v1/rewards/redeem as luna\n" + `{"customerId": "$maria", "productId": "$espresso"}`,
	} {
		if shown := w.step(newStep(request)); !strings.HasPrefix(shown, "=> 201") {
			t.Fatal(shown)
		}
	}
	var pairs []string
	longestFirst := func(a, b string) int { return len(b) - len(a) }
	for _, name := range slices.SortedFunc(maps.Keys(w.names), longestFirst) {
		pairs = append(pairs, "$"+name, w.names[name])
	}
	return &image{store.(*memStore).entries(), w.clock, w.names, strings.NewReplacer(pairs...)}
}

// open returns a server that starts from the image. Its writes do not change
// the image.
func (im *image) open(t *testing.T) (*memStore, *api) {
	store := newMemStore().(*memStore)
	t.Cleanup(func() { store.Close() })
	store.state.Store(&memPages{im.state})
	seeds := 0
	e := newEngine(store, func() time.Time { return im.now }, func() seed {
		seeds++
		return sha256.Sum256(fmt.Append(nil, seeds))
	})
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	return store, newAPI(e, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, log)
}

// senders are the owners of the API key of a request; "" sends no key.
var senders = []string{"", "luna", "otra", "doble", "sinapi"}

// slugOf returns the slug of the organization that a named value belongs to.
func slugOf(name string) string {
	switch {
	case strings.HasPrefix(name, "key."):
		return "nobody's to see"
	case strings.HasPrefix(name, "otra"):
		return "otra"
	case strings.HasPrefix(name, "doble"), name == "marta":
		return "doble"
	case strings.HasPrefix(name, "sin-api"):
		return "sinapi"
	}
	return "luna"
}

// compose returns a request. It adds the headers that headers leaves out.
func (im *image) compose(sender uint8, method, target, headers, body string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: sello.test\r\n", method, target)
	if key := senders[int(sender)%len(senders)]; key != "" {
		fmt.Fprintf(&b, "X-API-Key: $key.%s\r\n", key)
	}
	for line := range strings.Lines(headers) {
		fmt.Fprintf(&b, "%s\r\n", strings.TrimRight(line, "\r\n"))
	}
	body = im.expand.Replace(body)
	given := strings.ToLower("\n" + headers)
	if body != "" && !strings.Contains(given, "\ncontent-type:") {
		b.WriteString("Content-Type: application/json\r\n")
	}
	if !strings.Contains(given, "\ncontent-length:") && !strings.Contains(given, "\ntransfer-encoding:") {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	return im.expand.Replace(b.String()) + "\r\n" + body
}

// A dealing is one request, its response, and the store on either side of it.
type dealing struct {
	raw           string
	request       *http.Request
	response      *http.Response
	body          []byte
	before, after memTx
}

// deal calls the handler without a network. It returns nil if net/http cannot
// read raw as a request.
func (im *image) deal(store *memStore, a *api, raw string) *dealing {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		return nil
	}
	r.RemoteAddr = "192.0.2.1:1234"
	d := &dealing{raw: raw, request: r, before: store.entries()}
	recorder := httptest.NewRecorder()
	a.ServeHTTP(recorder, r)
	d.response, d.body, d.after = recorder.Result(), recorder.Body.Bytes(), store.entries()
	canonical := http.Header{} // as a client reads it
	for name, values := range d.response.Header {
		if name != "Connection" {
			canonical[http.CanonicalHeaderKey(name)] = values
		}
	}
	d.response.Header = canonical
	if d.response.ContentLength < 0 {
		d.response.ContentLength = int64(len(d.body)) // as net/http will set it
	}
	if r.Method == "HEAD" {
		d.body = nil
	}
	return d
}

// faults returns the faults of an answer that no request excuses.
func (im *image) faults(d *dealing) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	given := d.request.Header.Get("X-Request-Id")
	faults = faultsOf(step{method: d.request.Method, target: d.request.URL.Path}, d.response, d.body, given)
	status := d.response.StatusCode
	changed := !sameEntries(d.before, d.after)
	switch {
	case status >= 500:
		fault("status %d", status)
	case status >= 400:
		if changed {
			fault("%d, and the store has changed", status)
		}
		var e errorBody
		if json.Unmarshal(d.body, &e); len(d.body) > 0 && (errorTable[e.Code].status != status || !strings.Contains(e.Message, errorTable[e.Code].message)) {
			fault("%d is not the status or %q not the text of %q", status, e.Message, e.Code)
		}
	case changed && d.request.Method != "POST" && d.request.Method != "PATCH":
		fault("a %s has changed the store", d.request.Method)
	case changed && d.response.Header.Get("Idempotency-Replayed") != "" && len(d.after)-len(d.before) > 3:
		fault("a replay has written more than under which key it is known, too")
	case changed && d.request.URL.Query().Get("dryRun") == "true" && strings.HasSuffix(d.request.URL.Path, "/transactions"):
		fault("a dry run has changed the store")
	}
	return append(faults, im.leaks(d.raw, fmt.Sprint(d.response.Header, string(d.body)))...)
}

// unsound returns what verify finds wrong in the state after a request.
func (im *image) unsound(state memTx) (faults []string) {
	if sameEntries(im.state, state) {
		return nil
	}
	report, err := verify(state, instantOf(im.now), nil)
	if err != nil {
		return []string{err.Error()}
	}
	return report.Problems
}

// leaks names the values of other organizations that an answer contains.
func (im *image) leaks(request, answer string) (faults []string) {
	for name, value := range im.names {
		key := "$key." + slugOf(name)
		if strings.Contains(answer, value) && !strings.Contains(request, value) && !strings.Contains(request, im.expand.Replace(key)) {
			faults = append(faults, "the answer has $"+name)
		}
	}
	return faults
}

func sameEntries(a, b memTx) bool {
	return slices.EqualFunc(a, b, func(a, b Entry) bool { return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) })
}

// twinFaults returns the forbidden differences between the first and second
// answers to a request.
func twinFaults(first, second *dealing) (faults []string) {
	one, two := first.response.StatusCode, second.response.StatusCode
	kept := len(first.request.Header["Idempotency-Key"]) > 0 && first.request.URL.Query().Get("dryRun") == ""
	switch {
	case two == http.StatusTooManyRequests:
	case one >= 400 && two != one:
		faults = append(faults, fmt.Sprintf("%d, and then %d", one, two))
	case one >= 400:
	case first.request.Header.Get("If-Match") != "" && two == http.StatusPreconditionFailed: // the first request changed the ETag
	case first.request.Method != "POST" && !bytes.Equal(first.body, second.body):
		faults = append(faults, "a read gives something else the second time")
	case first.request.Method != "POST" || !kept:
	case !bytes.Equal(first.body, second.body):
		faults = append(faults, "the same Idempotency-Key gets another answer")
	case second.response.Header.Get("Idempotency-Replayed") != "true" || !sameEntries(second.before, second.after):
		faults = append(faults, "the same Idempotency-Key is applied again")
	}
	return faults
}

// goldenSeeds calls add with each request of the transcripts.
func goldenSeeds(f *testing.F, add func(sender uint8, method, target, headers, body string)) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	seen := map[string]int{}
	for _, file := range files {
		as := "luna"
		for _, s := range readSteps(f, file) {
			for _, d := range s.directives {
				if name, ok := strings.CutPrefix(d, "as "); ok {
					as = name
				}
			}
			path, query, _ := strings.Cut(s.target, "?")
			kind := fmt.Sprint(s.method, path, len(strings.Split(query, "&")), strings.Count(s.body, `":`), len(s.headers))
			if seen[kind]++; s.method == "" || seen[kind] > 1 || len(s.body) > 1000 || strings.Contains(s.target+s.body, "$(") {
				continue
			}
			key := as
			if s.key != "" {
				key = s.key
			}
			sender := max(0, slices.Index(senders, key))
			add(uint8(sender), s.method, s.target, strings.Join(s.headers, "\n"), s.body)
		}
	}
}

// FuzzHandler makes up requests and sends each twice. Nothing may end in a
// panic or a 5xx; an error has the body of the contract and changes nothing;
// reads change nothing; a retry gets the first answer again; no answer shows
// another organization's data; and the store verifies afterwards.
func FuzzHandler(f *testing.F) {
	goldenSeeds(f, func(sender uint8, method, target, headers, body string) { f.Add(sender, method, target, headers, body) })
	f.Add(uint8(1), "POST", "/api/v1/transactions", "Idempotency-Key: k", `{"customerId":"$maria","totalAmount":1e2,"type":"Return","originalTransactionId":"$sale"}`)
	f.Add(uint8(1), "POST", "/api/v1/transactions", "Idempotency-Key: k", `{"customerId":"$maria","totalAmount":10,"externalId":"T-2"}`)
	f.Add(uint8(1), "POST", "/api/v1/redemptions/$canje/cancel", "Idempotency-Key: k", "")
	f.Add(uint8(1), "POST", "/api/v1/redemptions/use", "Idempotency-Key: k", `{"code":"aaaa aaaa","transactionId":"$sale"}`)
	f.Add(uint8(1), "GET", "/api/v1/transactions/$sale", "", "")
	f.Add(uint8(2), "GET", "/api/v1/transactions/$sale", "", "")
	var im *image
	f.Fuzz(func(t *testing.T, sender uint8, method, target, headers, body string) {
		if im == nil {
			im = newImage(t)
		}
		raw := im.compose(sender, method, target, headers, body)
		store, a := im.open(t)
		first := im.deal(store, a, raw)
		if first == nil {
			return
		}
		second := im.deal(store, a, raw)
		if faults := slices.Concat(im.faults(first), im.faults(second), twinFaults(first, second), im.unsound(second.after)); len(faults) > 0 {
			t.Errorf("%q\nfaults %q\n%d %v %s\nthen %d %s", raw, faults,
				first.response.StatusCode, first.response.Header, first.body, second.response.StatusCode, second.body)
		}
	})
}

// TestHandlerFaults: FuzzHandler's checks find the faults that they look for.
func TestHandlerFaults(t *testing.T) {
	t.Parallel()
	im := newImage(t)
	get := im.compose(1, "GET", "/api/v1/customers/$maria", "X-Request-Id: r", "")
	post := im.compose(1, "POST", "/api/v1/points/customers/$maria/deduct", "X-Request-Id: r\nIdempotency-Key: k", `{"amount":1}`)
	refused := im.compose(1, "GET", "/api/v1/customers/$otraMaria", "X-Request-Id: r", "")
	entry := func(state memTx, key, value string) memTx {
		o := newOverlay(state)
		o.write([]byte(key), []byte(value))
		return slices.Collect(func(yield func(Entry) bool) {
			for e := range o.Scan(nil, nil, false) {
				yield(e)
			}
		})
	}
	for _, test := range []struct {
		reason, raw string
		spoil       func(d *dealing)
	}{
		{"", get, func(*dealing) {}},
		{"", post, func(*dealing) {}},
		{"", refused, func(*dealing) {}},
		{"a 5xx", get, func(d *dealing) { d.response.StatusCode = 500 }},
		{"another status than the code's", refused, func(d *dealing) { d.response.StatusCode = 400 }},
		{"no error body", refused, func(d *dealing) { d.body = []byte("404 page not found\n") }},
		{"no JSON", get, func(d *dealing) { d.body = []byte("hello") }},
		{"a header too many", get, func(d *dealing) { d.response.Header.Set("Server", "sello") }},
		{"an error with a trace", refused, func(d *dealing) { d.after = entry(d.after, "y", "1") }},
		{"a read that writes", get, func(d *dealing) { d.after = entry(d.after, "y", "1") }},
		{"a write that does not add up", post, func(d *dealing) { d.after = d.after[:len(d.after)-1] }},
		{"somebody else's customer", get, func(d *dealing) {
			d.body = bytes.ReplaceAll(d.body, []byte(im.names["maria"]), []byte(im.names["otraMaria"]))
		}},
		{"a key", get, func(d *dealing) {
			d.body = bytes.ReplaceAll(d.body, []byte("maria@example.com"), []byte(im.names["key.otra"]))
		}},
	} {
		store, a := im.open(t)
		d := im.deal(store, a, test.raw)
		test.spoil(d)
		d.response.ContentLength = int64(len(d.body))
		if faults := slices.Concat(im.faults(d), im.unsound(d.after)); (len(faults) == 0) != (test.reason == "") {
			t.Errorf("%q: faults %q\n%d %s", test.reason, faults, d.response.StatusCode, d.body)
		}
	}
	store, a := im.open(t)
	first := im.deal(store, a, post)
	if faults := twinFaults(first, im.deal(store, a, post)); len(faults) > 0 {
		t.Errorf("a replay: %q", faults)
	}
	other := im.deal(store, a, strings.Replace(post, "Idempotency-Key: k", "Idempotency-Key: l", 1))
	if faults := twinFaults(first, other); len(faults) == 0 {
		t.Error("a retry that was applied twice is not found")
	}
}

// A pipeListener accepts one connection, the one in conns.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { close(l.done); return nil }

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// FuzzWire sends any bytes to the real server and then waits until it hangs up.
// Time is simulated, so the server's timeouts take no time. Each answer is the
// API's; there are no more answers than requests; and the store verifies.
func FuzzWire(f *testing.F) {
	const get, key = "GET /api/v1/customers HTTP/1.1\r\nHost: h\r\n", "X-API-Key: $key.luna\r\n"
	const post = "POST /api/v1/points/customers/$maria/add HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n" + key
	for _, seed := range []string{
		"", "\r\n", "GET", get, get + "\r\n", get + key + "\r\n", get + key + "\r\n" + get + key + "Connection: close\r\n\r\n" + get + "\r\n",
		post + "Content-Length: 12\r\n\r\n" + `{"amount":1}`,
		post + "Content-Length: 13\r\n\r\n" + `{"amount":1}`, // one byte is missing
		post + "Content-Length: 11\r\n\r\n" + `{"amount":1}`, // one byte belongs to the next request
		post + "Transfer-Encoding: chunked\r\n\r\n" + "c\r\n" + `{"amount":1}` + "\r\n0\r\n\r\n",
		post + "Transfer-Encoding: chunked\r\n\r\n" + "fffffffffffffffff\r\n" + `{"amount":1}`,
		post + "Content-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n" + "c\r\n" + `{"amount":1}` + "\r\n0\r\n\r\n" + get + key + "\r\n",
		post + "Content-Length: 12\r\nContent-Length: 13\r\n\r\n" + `{"amount":1}`,
		post + "Expect: 100-continue\r\nContent-Length: 12\r\n\r\n" + `{"amount":1}`,
		post + "Expect: wonders\r\nContent-Length: 12\r\n\r\n" + `{"amount":1}`,
		post + "Idempotency-Key: k\r\nContent-Length: 12\r\n\r\n" + `{"amount":1}` + post + "Idempotency-Key: k\r\nContent-Length: 12\r\n\r\n" + `{"amount":2}`,
		"HEAD /api/v1/customers HTTP/1.1\r\nHost: h\r\n" + key + "\r\n", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"0 * HTTP/1.1\nTransfer-Encoding:0\n\n", "GET /livez HTTP/1.0\r\n\r\n", "GET /livez HTTP/0.9\r\n\r\n", "GET /livez HTTP/1.1\r\n\r\n", "GET //livez HTTP/1.1\r\nHost: h\r\n\r\n", "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET http://else/livez HTTP/1.1\r\nHost: h\r\n\r\n", "GET /livez HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", "GET /livez HTTP/1.1\r\nHost: h\r\nX : a\r\n\r\n",
		"GET /\x00 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /%00%2f..%2f HTTP/1.1\r\nHost: h\r\n\r\n", "\x16\x03\x01\x00\xa5\x01", strings.Repeat("GET /livez HTTP/1.1\r\nHost: h\r\n\r\n", 10),
		"GET /livez HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 33<<10) + "\r\n\r\n",
	} {
		f.Add(seed)
	}
	var im *image
	f.Fuzz(func(t *testing.T, text string) {
		if im == nil {
			im = newImage(t)
		}
		raw := im.expand.Replace(text)
		synctest.Test(t, func(t *testing.T) {
			store, a := im.open(t)
			answers := onWire(newServer(a, a.log), a, raw)
			if faults := im.wireFaults(raw, answers, store.entries()); len(faults) > 0 {
				t.Errorf("%q\nfaults %q\n%s", raw, faults, answers)
			}
		})
	})
}

// refusalCodes are the error codes for input that net/http refuses as a request.
var refusalCodes = []string{"bad_request", "expectation_failed", "headers_too_large"}

// onWire sends raw to the server on one connection, and returns all that the
// server answers until it hangs up.
func onWire(server *http.Server, a *api, raw string) []byte {
	l := &pipeListener{make(chan net.Conn, 1), make(chan struct{})}
	client, far := net.Pipe()
	l.conns <- far
	go server.Serve(a.connections(l))
	go io.WriteString(client, raw)
	answers, _ := io.ReadAll(client)
	client.Close()
	server.Close()
	return answers
}

// wireFaults returns what is wrong with the answers to raw.
func (im *image) wireFaults(raw string, answers []byte, after memTx) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	var requests []*http.Request // those that net/http can read
	whole := 0                   // how many of them have all of their body
	for in := bufio.NewReader(strings.NewReader(raw)); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			break
		}
		requests = append(requests, r)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			break
		}
		whole++
	}
	n := 0
	for in := bufio.NewReader(bytes.NewReader(answers)); ; n++ {
		if _, err := in.Peek(1); err != nil {
			break
		}
		asked := &http.Request{Method: "GET", URL: nil}
		if n < len(requests) {
			asked = requests[n]
		}
		res, err := http.ReadResponse(in, asked)
		if err != nil {
			fault("answer %d cannot be read: %v", n+1, err)
			return faults
		}
		body, err := io.ReadAll(res.Body)
		if !res.ProtoAtLeast(1, 1) || res.Close {
			res.Header.Del("Connection") // http.ReadResponse keeps it for HTTP/1.0
		}
		if asked.Method == http.MethodHead && res.Close {
			io.CopyN(io.Discard, in, res.ContentLength) // a refusal before the request is read ignores HEAD
		}
		var told errorBody
		json.Unmarshal(body, &told) // stays zero if the body is no error
		switch {
		case err != nil:
			fault("answer %d ends early: %v", n+1, err)
		case res.StatusCode == http.StatusContinue:
			n--
		case res.Close && slices.Contains(refusalCodes, told.Code):
			faults = append(faults, faultsOf(step{method: asked.Method, target: "/"}, res, body, "")...)
		case res.StatusCode >= 500:
			fault("answer %d is %d", n+1, res.StatusCode)
		case n >= len(requests):
			fault("an answer to no request")
		default:
			given := asked.Header.Get("X-Request-Id")
			faults = append(faults, faultsOf(step{method: asked.Method, target: asked.URL.Path}, res, body, given)...)
		}
	}
	if whole > 0 && n == 0 {
		fault("no answer")
	}
	if len(requests) == 0 && !sameEntries(im.state, after) {
		fault("no request, and the store has changed")
	}
	return slices.Concat(faults, im.unsound(after), im.leaks(raw, string(answers)))
}

// TestWireFaults: FuzzWire's checks find the faults that they look for.
func TestWireFaults(t *testing.T) {
	t.Parallel()
	im := newImage(t)
	raw := im.expand.Replace("GET /livez HTTP/1.1\r\nHost: h\r\n\r\nGET /api/v1/customers HTTP/1.1\r\nHost: h\r\nX-API-Key: $key.luna\r\n\r\n")
	for _, test := range []struct {
		reason string
		wrap   func(a http.Handler) http.HandlerFunc
	}{
		{"", func(a http.Handler) http.HandlerFunc { return a.ServeHTTP }},
		{"a panic", func(http.Handler) http.HandlerFunc { return func(http.ResponseWriter, *http.Request) { panic("oh") } }},
		{"text", func(http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Request-Id", "1") // without it, the answer would be replaced as net/http's own
				http.NotFound(w, r)
			}
		}},
		{"a 502", func(http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Request-Id", "1")
				w.WriteHeader(502)
			}
		}},
		{"a leak", func(a http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("X-API-Key", im.names["key.otra"])
				a.ServeHTTP(w, r)
			}
		}},
		{"an answer cut off", func(http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "9") }
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, a := im.open(t)
				answers := onWire(newServer(test.wrap(a), slog.New(slog.DiscardHandler)), a, raw)
				faults := im.wireFaults(raw, answers, store.entries())
				if (len(faults) == 0) != (test.reason == "") {
					t.Errorf("faults %q in %s", faults, answers)
				}
			})
		})
	}
}
