package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
)

// Golden transcripts: what clients send and what they get, in
// testdata/golden/*.txt. `go test -run TestGolden -update` rewrites the
// responses that changed, and nothing else.
//
// A transcript is a list of steps with a blank line between them. A step is a
// few comments and directives, and at most one request with its response:
//
//	# A purchase says what it earned.
//	let sale = id
//	POST /api/v1/transactions as pos
//	Idempotency-Key: k-1
//	{"customerId": "$maria", "totalAmount": 150}
//	=> 201
//	Idempotency-Replayed: true
//	{...}
//
// `as` names the API key that is sent, `nobody` none; without it, it is that
// of the last directive `as`. A request has the header X-Request-Id: req-1 and,
// with a body, Content-Type: application/json, unless it gives them itself; the
// value `-` sends none. Peer is no header but the address that it comes from.
//
// In a request $name is a value that has a name, $(a*9) stands for aaaaaaaaa
// and $(ff) for the byte of that number. Responses show named values by their
// names and a long body on several lines; what came was JSON without white
// space and ended in a newline, and faultsOf found nothing wrong with it.
//
// Directives:
//
//	as KEY                 send this key from here on
//	let NAME = MEMBER      name a member of the next response
//	repeat N               send the next request so often, all but the last get 2xx
//	show limits            show the RateLimit headers from here on
//	clock TIME, clock +1h  let time pass; d, h, m, s and ms
//	machine TIME           set the machine's clock to what it is not; machine right
//	                       sets it right, machine synchronized (unsynchronized) is
//	                       what its kernel says of it
//	suspend +10h           let the machine sleep
//	accept                 sello clock accept
//	verify                 sello verify, as after each transcript
//	apply FILE             apply a document; what it makes is then called
//	                       $espresso, $club, $club.currency, $club.base (a rule)
//	                       if it is Café Luna's, $otra.espresso if it is Otra's
//	change ORG PATH = JSON apply ORG's document with this change; PATH is of
//	                       names, keys and places in lists; + appends
//	key NAME ORG {...}     make an API key with these settings
//	revoke NAME            revoke an API key of Café Luna
//	status ORG ID STATUS   make a customer Active or Inactive
//	refuse ADDRESS         refuse an address's keys until it may not try another
//	sweep                  run the sweep
//	restart                start the server anew on the same store
//	store FAULT            let the store fail from here on, as faultyStore says
//
// testdata/world/world.txt is run before each transcript; after it the whole
// store is verified. New ids and keys depend on the step alone, not on those
// before it.

// A step is one paragraph of a transcript.
type step struct {
	text           string // all but the response
	directives     []string
	method, target string // "" if there is no request
	key            string // "" for that of the last `as`
	headers        []string
	body           string
	want           string // the response
}

func readSteps(t testing.TB, file string) []step {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for paragraph := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
		steps = append(steps, newStep(paragraph))
	}
	return steps
}

var (
	requestLine = regexp.MustCompile(`^([A-Z]+) (\S+)(?: as (\S+))?$`)
	headerLine  = regexp.MustCompile(`^[A-Za-z-]+: `)
)

func newStep(paragraph string) step {
	var s step
	var before, body []string
	lines := strings.Split(paragraph, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "=> ") {
			s.want = strings.Join(lines[i:], "\n")
			break
		}
		before = append(before, line)
		switch m := requestLine.FindStringSubmatch(line); {
		case s.method != "" && len(body) == 0 && headerLine.MatchString(line):
			s.headers = append(s.headers, line)
		case s.method != "":
			body = append(body, line)
		case m != nil:
			s.method, s.target, s.key = m[1], m[2], m[3]
		case line != "" && !strings.HasPrefix(line, "#"):
			s.directives = append(s.directives, line)
		}
	}
	s.text, s.body = strings.Join(before, "\n"), strings.Join(body, "\n")
	return s
}

// A world is a server with its store and its clock, and what is known of it.
// Everything in it happens in turn: a request is answered before the next
// step begins.
type world struct {
	*testing.T
	store  *faultyStore
	clock  time.Time     // what time it is
	wrong  time.Duration // by how much the machine's clock is ahead of it
	slept  time.Duration
	synced bool // what the machine's kernel says
	engine *engine
	api    *api
	admin  *admin
	addr   string
	conn   net.Conn // nil: to be opened
	reader *bufio.Reader

	seed  string         // of the step's ids and keys: its text and how often that occurred
	seeds int            // made in the step
	texts map[string]int // how often each step's text occurred

	as         string
	lets       []string
	repeat     int
	showLimits bool
	names      map[string]string // what $name stands for; $key.luna is the text of an API key
	keys       map[string]id
}

func newWorld(t *testing.T, s Store) *world {
	w := &world{
		T: t, store: &faultyStore{Store: s}, clock: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		texts: map[string]int{}, names: map[string]string{}, keys: map[string]id{},
	}
	w.start()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	w.addr = listener.Addr().String()
	server := newServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if peer := r.Header.Get("Peer"); peer != "" {
			r.RemoteAddr = peer
		}
		w.api.ServeHTTP(rw, r)
	}), w.log())
	go server.Serve(w.api.connections(listener))
	t.Cleanup(func() {
		w.hangUp()
		server.Close()
		w.must(s.Close())
	})
	return w
}

// start makes a server that knows nothing but what is in the store.
func (w *world) start() {
	w.engine = newEngineBy(newWallClock(worldMachine{w}), w.store, func() seed {
		w.seeds++
		return sha256.Sum256(fmt.Appendf(nil, "%s %d", w.seed, w.seeds))
	})
	w.must(w.engine.open(w.Context()))
	w.api = newAPI(w.engine, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, w.log())
	w.admin = &admin{engine: w.engine, flush: flushOf(w.api)}
}

// A worldMachine's clock is right until a transcript sets it wrong.
type worldMachine struct{ w *world }

func (m worldMachine) read() reading {
	awake, _ := m.awake()
	return reading{m.w.clock.Add(m.w.wrong), awake - m.w.slept}
}

func (m worldMachine) awake() (time.Duration, bool)    { return m.w.clock.Sub(time.Unix(0, 0)), true }
func (m worldMachine) synchronized() (yes, known bool) { return m.w.synced, true }

func (w *world) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(w.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// verify proves the store whole.
func (w *world) verify() {
	w.store.fault = ""
	report, err := w.admin.verify(w.Context(), verifyRequest{})
	w.must(err)
	for _, problem := range report.Problems {
		w.Error(problem)
	}
}

// play runs the steps of a file and compares, or updates, the responses.
func (w *world) play(file string, update bool) {
	var text []string
	changed := false
	for _, s := range readSteps(w.T, file) {
		got := w.step(s)
		text = append(text, strings.TrimSpace(s.text+"\n"+got))
		if got == s.want {
			continue
		}
		if changed = true; !update {
			w.Errorf("%s:\n%s\n(-want +got)\n%s", file, s.text, diff.Diff(strings.Split(s.want, "\n"), strings.Split(got, "\n")))
		}
	}
	if changed && update && !w.Failed() {
		w.must(os.WriteFile(file, []byte(strings.Join(text, "\n\n")+"\n"), 0o644))
	}
}

// step runs one step and returns its response as transcripts show it.
func (w *world) step(s step) (shown string) {
	w.texts[s.text]++
	w.seed, w.seeds = fmt.Sprint(s.text, w.texts[s.text]), 0
	w.lets, w.repeat = nil, 1
	for _, d := range s.directives {
		w.direct(d)
	}
	if s.method == "" {
		return ""
	}
	for n := range w.repeat {
		res, body := w.send(s)
		for _, let := range w.lets {
			var members map[string]any
			w.must(json.Unmarshal(body, &members))
			name, member, _ := strings.Cut(let, " = ")
			w.name(name, fmt.Sprint(members[member]))
		}
		if shown = w.show(res, body); n+1 < w.repeat && res.StatusCode >= 300 {
			w.Errorf("%s\nrequest %d:\n%s", s.text, n+1, shown)
		}
	}
	return shown
}

// direct follows one directive.
func (w *world) direct(line string) {
	verb, rest, _ := strings.Cut(w.expand(line), " ")
	args := strings.SplitN(rest, " ", 3)
	switch verb {
	case "as":
		w.as = rest
	case "let":
		w.lets = append(w.lets, rest)
	case "repeat":
		w.repeat, _ = strconv.Atoi(rest)
	case "show":
		w.showLimits = true
	case "clock":
		w.clock = w.moved(w.clock, rest)
		w.must(w.engine.correctClock(w.Context())) // as the server does every second
	case "machine":
		w.setMachine(rest)
	case "suspend":
		before := w.clock
		w.clock = w.moved(before, rest)
		w.slept += w.clock.Sub(before)
	case "verify":
		w.verify()
	case "accept":
		_, err := w.admin.acceptClock(w.Context(), struct{}{})
		w.must(err)
	case "apply":
		raw, err := os.ReadFile(filepath.Join("testdata", "world", rest))
		w.must(err)
		w.apply(raw)
	case "change":
		doc, err := w.admin.export(w.Context(), orgRequest{args[0]})
		w.must(err)
		raw, err := json.Marshal(doc)
		w.must(err)
		path, value, _ := strings.Cut(args[1]+" "+args[2], " = ")
		w.apply(with(raw, strings.Split(path, "."), json.RawMessage(value)))
	case "key":
		in := keyRequest{Org: args[1], Name: args[0]}
		if len(args) == 3 {
			w.must(json.Unmarshal([]byte(args[2]), &in))
		}
		k, err := w.admin.createKey(w.Context(), in)
		w.must(err)
		w.keys[args[0]] = k.ID
		w.name("key."+args[0], k.Key)
	case "revoke":
		_, err := w.admin.revokeKey(w.Context(), revokeRequest{"cafe-luna", w.keys[rest].String()})
		w.must(err)
	case "status":
		org, err := w.admin.organization(w.Context(), args[0])
		w.must(err)
		_, err = write(w.Context(), w.engine, org, instantOf(w.clock), func(t *txn) (any, error) {
			cust, _ := parseID(args[1])
			c, err := t.customer(cust)
			if err != nil {
				return nil, err
			}
			c.Status = args[2]
			return nil, t.saveCustomer(c)
		})
		w.must(err)
	case "refuse":
		source := netip.MustParseAddr(rest)
		for w.api.refused.take(source, instantOf(w.clock)) == 0 {
		}
	case "sweep":
		w.must(w.engine.sweep(w.Context()))
	case "restart":
		w.must(w.api.limiter.flush(w.Context(), w.store))
		w.start()
	case "store":
		w.store.fault = rest
	default:
		w.Fatalf("unknown directive: %s", line)
	}
}

// moved is what `clock` makes of a clock.
func (w *world) moved(clock time.Time, to string) time.Time {
	by, relative := strings.CutPrefix(to, "+")
	if days, ok := strings.CutSuffix(by, "d"); ok && relative {
		n, err := strconv.Atoi(days)
		w.must(err)
		return clock.AddDate(0, 0, n)
	}
	if relative {
		d, err := time.ParseDuration(by)
		w.must(err)
		return clock.Add(d)
	}
	t, err := time.Parse(time.RFC3339, to)
	w.must(err)
	return t
}

// setMachine sets the machine's clock, or what its kernel says of it.
func (w *world) setMachine(to string) {
	switch to {
	case "synchronized", "unsynchronized":
		w.synced = to == "synchronized"
	case "right":
		w.wrong = 0
	default:
		t, err := time.Parse(time.RFC3339, to)
		w.must(err)
		w.wrong = t.Sub(w.clock)
	}
}

// apply applies a document and names what it made.
func (w *world) apply(raw []byte) {
	result, err := w.admin.apply(w.Context(), applyRequest{Document: raw})
	w.must(err)
	org, err := w.admin.organization(w.Context(), result.Organization)
	w.must(err)
	cfg, err := read(w.Context(), w.engine, org, 0, func(t *txn) (*config, error) { return t.cfg, nil })
	w.must(err)
	name := func(name string, u id) {
		if result.Organization != "cafe-luna" {
			name = result.Organization + "." + name
		}
		w.name(name, u.String())
	}
	w.name(result.Organization, cfg.ID.String())
	for _, p := range cfg.Programs {
		name(p.Key, p.ID)
		name(p.Key+".currency", p.currencyID())
		for i := range p.Rules {
			name(p.Key+"."+p.Rules[i].Key, p.ruleID(&p.Rules[i]))
		}
	}
	for _, r := range cfg.Rewards {
		name(r.Key, r.ID)
	}
	for _, s := range cfg.Segments {
		name(s.Key, s.ID)
	}
}

// with puts a value into a document.
func with(raw json.RawMessage, path []string, value json.RawMessage) json.RawMessage {
	if len(path) == 0 {
		return value
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		members[path[0]] = with(members[path[0]], path[1:], value)
		raw, _ = json.Marshal(members)
		return raw
	}
	var list []json.RawMessage
	json.Unmarshal(raw, &list)
	if path[0] == "+" {
		list = append(list, value)
	}
	for i, element := range list {
		var e struct{ Key, Name string }
		json.Unmarshal(element, &e)
		if slices.Contains([]string{e.Key, e.Name, strconv.Itoa(i)}, path[0]) {
			list[i] = with(element, path[1:], value)
		}
	}
	raw, _ = json.Marshal(list)
	return raw
}

var (
	filler    = regexp.MustCompile(`\$\((.+?)\*([0-9]+)\)`)
	byteValue = regexp.MustCompile(`\$\([0-9a-f]{2}\)`)
	nameForm  = regexp.MustCompile(`\$[a-zA-Z][\w-]*(\.[a-z][\w-]*)*`)
)

// expand puts in what $ stands for.
func (w *world) expand(text string) string {
	text = filler.ReplaceAllStringFunc(text, func(m string) string {
		part := filler.FindStringSubmatch(m)
		n, _ := strconv.Atoi(part[2])
		return strings.Repeat(part[1], n)
	})
	text = byteValue.ReplaceAllStringFunc(text, func(m string) string {
		b, _ := strconv.ParseUint(m[2:4], 16, 8)
		return string([]byte{byte(b)})
	})
	return nameForm.ReplaceAllStringFunc(text, func(m string) string {
		value, ok := w.names[m[1:]]
		if !ok {
			w.Fatalf("nothing is called %s", m)
		}
		return value
	})
}

// name gives a value its name, for good.
func (w *world) name(name, value string) {
	if old, ok := w.names[name]; ok && old != value {
		w.Fatalf("$%s is %s and cannot be %s", name, old, value)
	}
	w.names[name] = value
}

// send makes one request, to the byte as the step says.
func (w *world) send(s step) (*http.Response, []byte) {
	var b bytes.Buffer
	given := http.Header{}
	header := func(name, value string) {
		if given.Add(name, value); value != "-" {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	usual := func(name, value string) {
		if given.Get(name) == "" {
			header(name, value)
		}
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: sello.test\r\n", s.method, w.expand(s.target))
	for _, line := range s.headers {
		name, value, _ := strings.Cut(w.expand(line), ": ")
		header(name, value)
	}
	usual("X-Request-Id", "req-1")
	if key := cmp.Or(s.key, w.as); key != "nobody" {
		header("Authorization", "Bearer "+w.expand("$key."+key))
	}
	body := w.expand(s.body)
	if body != "" {
		usual("Content-Type", "application/json")
	}
	if given.Get("Transfer-Encoding") == "chunked" {
		body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	} else if body != "" || s.method == "POST" {
		header("Content-Length", strconv.Itoa(len(body)))
	}
	b.WriteString("\r\n" + body)

	if w.conn == nil {
		var err error
		w.conn, err = net.Dial("tcp", w.addr)
		w.must(err)
		w.reader = bufio.NewReader(w.conn)
	}
	_, err := w.conn.Write(b.Bytes())
	w.must(err)
	res, err := http.ReadResponse(w.reader, &http.Request{Method: s.method})
	w.must(err)
	answer, err := io.ReadAll(res.Body)
	w.must(err)
	if res.Close {
		w.hangUp()
	}
	for _, fault := range faultsOf(s, res, answer, given.Get("X-Request-Id")) {
		w.Errorf("%s\n%s: %v %s", s.text, fault, res.Header, answer)
	}
	return res, answer
}

func (w *world) hangUp() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

var (
	fixedHeaders  = map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"}
	shownHeaders  = []string{"Allow", "Idempotency-Replayed", "Retry-After", "WWW-Authenticate"}
	limitHeaders  = []string{"RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	madeRequestID = regexp.MustCompile(`^[A-Z2-7]{26}$`)
	// What is refused before it counts has no limits to tell of.
	beforeLimits = []string{
		"bad_request", "expectation_failed", "headers_too_large", "route_not_found", "method_not_allowed",
		"api_key_required", "api_key_invalid", "api_key_expired", "plan_without_api", "ip_not_allowed", "rate_limit_source",
	}
)

// faultsOf says what is wrong with a response that no response may have wrong.
func faultsOf(s step, res *http.Response, body []byte, requestID string) (faults []string) {
	require := func(ok bool, fault string) {
		if !ok {
			faults = append(faults, fault)
		}
	}
	known := http.Header{"Content-Length": nil, "Date": nil, "X-Request-Id": nil}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(fixedHeaders)), shownHeaders, limitHeaders) {
		known[http.CanonicalHeaderKey(name)] = nil
	}
	for name, values := range res.Header {
		_, ok := known[name]
		require(ok && len(values) == 1, "a header too many")
	}
	for name, value := range fixedHeaders {
		require(res.Header.Get(name) == value, name)
	}
	id := res.Header.Get("X-Request-Id")
	require(id == requestID || madeRequestID.MatchString(id), "X-Request-Id")
	if s.method == "HEAD" {
		require(len(body) == 0 && res.ContentLength > 0, "length")
		return faults
	}
	var compact bytes.Buffer
	json.Compact(&compact, body)
	require(res.ContentLength == int64(len(body)), "Content-Length")
	require(string(body) == compact.String()+"\n", "not compact JSON and a newline")
	var e errorBody
	if res.StatusCode >= 400 {
		require(json.Unmarshal(body, &e) == nil && e.StatusCode == res.StatusCode && e.RequestID == id && e.Message != "", "error body")
	}
	if !slices.Contains([]string{"internal", "unavailable"}, e.Code) {
		limited := strings.Contains(s.target, "/api/") && s.target != "/api/v1/openapi.json" && !slices.Contains(beforeLimits, e.Code)
		require(limited == (res.Header.Get("RateLimit") != ""), "RateLimit")
	}
	return faults
}

// show is a response as transcripts show it.
func (w *world) show(res *http.Response, body []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "=> %d\n", res.StatusCode)
	shown := shownHeaders
	if w.showLimits {
		shown = slices.Concat(shownHeaders, limitHeaders)
	}
	for _, name := range shown {
		if value := res.Header.Get(name); value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	if res.Close {
		fmt.Fprintf(&b, "Connection: close\n")
	}
	// Names in the place of values; where two have one value, the first.
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(w.names)) {
		pairs = append(pairs, w.names[name], "$"+name)
	}
	if id := res.Header.Get("X-Request-Id"); madeRequestID.MatchString(id) {
		fmt.Fprintf(&b, "X-Request-Id: <new>\n")
		pairs = append(pairs, id, "<new>")
	}
	layout(&b, strings.NewReplacer(pairs...).Replace(strings.TrimSpace(string(body))), "")
	return strings.TrimSpace(b.String())
}

// layout writes compact JSON for people: a value that fits into the line as it
// is, any other with each of its members on a line.
func layout(b *strings.Builder, value, indent string) {
	const width = 150
	if len(indent)+len(value) <= width || !strings.ContainsAny(value[:1], "{[") {
		b.WriteString(value)
		return
	}
	b.WriteString(value[:1])
	depth, start, quoted := 0, 1, false
	for i := 1; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			b.WriteString("\n" + indent + "  ")
			member := value[start:i]
			if end := strings.Index(member, `":`) + 2; value[0] == '{' {
				b.WriteString(member[:end] + " ")
				member = member[end:]
			}
			layout(b, member, indent+"  ")
			if start = i + 1; c == ',' {
				b.WriteString(",")
			}
		}
	}
	b.WriteString("\n" + indent + value[len(value)-1:])
}

// A faultyStore fails as its fault says:
//
//	unavailable  it answers nothing
//	full         it takes no writes
//	unsure       it takes writes and says that it may not have
//	broken       it fails in a way that nobody has thought of
//	panicking    its writes panic
type faultyStore struct {
	Store
	fault string
}

var errOnFire = errors.New("the disk is on fire")

func (s *faultyStore) View(ctx context.Context, fn func(Tx) error) error {
	switch s.fault {
	case "unavailable":
		return errUnavailable
	case "broken":
		return errOnFire
	}
	return s.Store.View(ctx, fn)
}

func (s *faultyStore) Update(ctx context.Context, fn func(Tx) error) error {
	switch s.fault {
	case "unavailable", "full":
		return errUnavailable
	case "broken":
		return errOnFire
	case "unsure":
		return errors.Join(s.Store.Update(ctx, fn), errUnavailable)
	case "panicking":
		return s.Store.Update(ctx, func(Tx) error { panic(errOnFire) })
	}
	return s.Store.Update(ctx, fn)
}
