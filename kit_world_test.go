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
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"sello/internal/wallclock"
)

// A world is a server with its store and its clock, and the test's state. Its steps
// run one after the other: a request is answered before the next step begins.
type world struct {
	*testing.T
	store  *faultyStore
	clock  time.Time     // the true time
	wrong  time.Duration // how far the machine's clock is ahead of it
	slept  time.Duration
	synced bool // whether the kernel says that its clock is synchronized
	engine *engine
	api    *api
	admin  *admin
	addr   string
	conn   net.Conn // nil if it has to be opened
	reader *bufio.Reader

	seed  string         // for the step's ids and keys: its deed and how often that occurred
	seeds int            // how many seeds the step has made
	deeds map[string]int // how often each step occurred

	as     string
	lets   []string
	repeat int
	names  map[string]string // what $name stands for; $key.luna is the text of an API key
	keys   map[string]id

	// What responses show. A member's value is true once a response had that member.
	showLimits bool
	members    map[string]bool // named by `show`; nil if all are shown
	also       map[string]bool // named by `also`
	whole      bool

	watch func(s step, o outcome, body []byte) // sees every response whole; may be nil
}

func newWorld(t *testing.T, s Store) *world {
	w := &world{
		T: t, store: &faultyStore{Store: s}, clock: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		deeds: map[string]int{}, names: map[string]string{}, keys: map[string]id{},
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

// start makes a new server, whose only state is the store.
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

func (m worldMachine) Read() wallclock.Reading {
	awake, _ := m.Awake()
	return wallclock.Reading{Wall: m.w.clock.Add(m.w.wrong), Even: awake - m.w.slept}
}

func (m worldMachine) Awake() (time.Duration, bool)    { return m.w.clock.Sub(time.Unix(0, 0)), true }
func (m worldMachine) Synchronized() (yes, known bool) { return m.w.synced, true }

func (w *world) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(w.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// verify fails the test for every problem that `sello verify` finds.
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
	var text strings.Builder
	changed := false
	w.members, w.showLimits = nil, false
	for _, s := range readSteps(w.T, file) {
		got := w.step(s)
		text.WriteString(s.before + got)
		if got == s.want {
			continue
		}
		if changed = true; !update {
			w.Errorf("%s:\n%s\n(-want +got)\n%s", file, s.text, diff.Diff(strings.Split(s.want, "\n"), strings.Split(got, "\n")))
		}
	}
	w.allSeen("show", w.members)
	if changed && update && !w.Failed() {
		w.must(os.WriteFile(file, []byte(strings.TrimSpace(text.String())+"\n"), 0o644))
	}
}

// step runs one step and returns its response as the transcript shows it.
func (w *world) step(s step) (shown string) {
	deed := s.deed()
	w.deeds[deed]++
	w.seed, w.seeds = fmt.Sprint(deed, w.deeds[deed]), 0
	w.lets, w.repeat, w.also, w.whole = nil, 1, map[string]bool{}, false
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
			members["ETag"] = res.Header.Get("ETag")
			name, member, _ := strings.Cut(let, " = ")
			w.name(name, fmt.Sprint(members[member]))
		}
		o := w.outcome(res, body)
		if w.watch != nil {
			w.watch(s, o, body)
		}
		if n+1 < w.repeat && res.StatusCode >= 300 {
			w.Errorf("%s\nrequest %d:\n%s", s.text, n+1, o.text())
		}
		if o = w.shown(o); s.isRow {
			shown = o.row()
		} else {
			shown = o.text()
		}
	}
	w.allSeen("also", w.also)
	return shown
}

// allSeen requires that every member that a directive names was in a response,
// so that none is misspelt.
func (w *world) allSeen(directive string, members map[string]bool) {
	w.Helper()
	for name, seen := range members {
		if !seen {
			w.Errorf("%s %s: no response has this member", directive, name)
		}
	}
}

// direct follows one directive.
func (w *world) direct(line string) {
	verb, rest, _ := strings.Cut(w.expand(line), " ")
	if !w.prepare(verb, rest) && !w.setClocks(verb, rest) && !w.administer(verb, rest) {
		w.Fatalf("unknown directive: %s", line)
	}
}

// prepare follows a directive about the next request, or about what is shown of
// responses. It reports whether verb is one.
func (w *world) prepare(verb, rest string) bool {
	switch verb {
	case "as":
		w.as = rest
	case "let":
		w.lets = append(w.lets, rest)
	case "repeat":
		w.repeat, _ = strconv.Atoi(rest)
	case "show":
		w.allSeen(verb, w.members)
		w.members = map[string]bool{}
		switch rest {
		case "all":
			w.members = nil
		case "nothing":
		default:
			for name := range strings.FieldsSeq(rest) {
				w.members[name] = false
			}
		}
	case "also":
		for name := range strings.FieldsSeq(rest) {
			w.also[name] = false
		}
	case "whole":
		w.whole = true
	case "headers":
		w.showLimits = true
	default:
		return false
	}
	return true
}

// setClocks follows a directive about the time. It reports whether verb is one.
func (w *world) setClocks(verb, rest string) bool {
	switch verb {
	case "clock":
		w.clock = w.moved(w.clock, rest)
		w.must(w.engine.correctClock(w.Context())) // as the server does every second
	case "machine":
		w.setMachine(rest)
	case "suspend":
		before := w.clock
		w.clock = w.moved(before, rest)
		w.slept += w.clock.Sub(before)
	case "accept":
		_, err := w.admin.acceptClock(w.Context(), struct{}{})
		w.must(err)
	default:
		return false
	}
	return true
}

// administer follows a directive for the server's operator, or about the store.
// It reports whether verb is one.
func (w *world) administer(verb, rest string) bool {
	args := strings.SplitN(rest, " ", 3)
	switch verb {
	case "verify":
		w.verify()
	case "apply":
		raw, err := os.ReadFile(filepath.Join("testdata", "world", rest))
		w.must(err)
		w.apply(raw)
	case "change":
		org, err := w.admin.organization(w.Context(), args[0])
		w.must(err)
		doc, err := read(w.Context(), w.engine, org, 0, func(t *txn) (*document, error) { return t.cfg.document(), nil })
		w.must(err)
		raw, err := json.Marshal(doc)
		w.must(err)
		path, value, _ := strings.Cut(args[1]+" "+args[2], " = ")
		w.apply(with(raw, strings.Split(path, "."), json.RawMessage(value)))
	case "status":
		w.setStatus(args[0], args[1], args[2])
	case "refuse":
		source := netip.MustParseAddr(rest)
		for w.api.refused.take(source, instantOf(w.clock)) == 0 {
		}
	case "mergeable":
		var err error
		w.engine.sizes.merged, err = strconv.ParseUint(rest, 10, 64)
		w.must(err)
	case "sweep":
		w.must(w.engine.sweep(w.Context()))
	case "restart":
		w.must(w.api.limiter.flush(w.Context(), w.store))
		w.start()
	case "store":
		w.store.fault = rest
	case "cards":
		w.api.engine.cardsAt = rest
	default:
		return w.manageKeys(verb, rest, args)
	}
	return true
}

// manageKeys follows a directive about API keys. It reports whether verb is one.
func (w *world) manageKeys(verb, rest string, args []string) bool {
	ctx := withOperator(w.Context(), "luis")
	switch verb {
	case "key":
		in := keyRequest{Org: args[1], Name: args[0]}
		if len(args) == 3 {
			w.must(json.Unmarshal([]byte(args[2]), &in))
		}
		k, err := w.admin.createKey(w.Context(), in)
		w.must(err)
		w.keys[args[0]] = k.ID
		w.name("key."+args[0], k.Key)
	case "rekey":
		var given map[string]any
		in := keyChange{ID: w.keys[args[0]].String()}
		settings := []byte(strings.TrimPrefix(rest, args[0]))
		w.must(json.Unmarshal(settings, &given))
		w.must(json.Unmarshal(settings, &in))
		in.Org, in.Given = "cafe-luna", slices.Sorted(maps.Keys(given))
		_, err := w.admin.changeKey(ctx, in)
		w.must(err)
	case "rotate":
		overlap, err := time.ParseDuration(args[2][1:])
		w.must(err)
		k, err := w.admin.rotateKey(ctx, rotateRequest{"cafe-luna", w.keys[args[0]].String(), overlap})
		w.must(err)
		w.keys[args[1]] = k.ID
		w.name("key."+args[1], k.Key)
	case "revoke":
		_, err := w.admin.revokeKey(w.Context(), revokeRequest{"cafe-luna", w.keys[rest].String()})
		w.must(err)
	default:
		return false
	}
	return true
}

// setStatus gives a customer a status.
func (w *world) setStatus(slug, customer, status string) {
	org, err := w.admin.organization(w.Context(), slug)
	w.must(err)
	_, err = write(w.Context(), w.engine, org, instantOf(w.clock), func(t *txn) (any, error) {
		cust, _ := parseID(customer)
		c, err := t.customers.get(cust)
		if err != nil {
			return nil, err
		}
		after := *c
		after.Status = status
		return nil, t.customers.change(c, &after)
	})
	w.must(err)
}

// moved returns a clock as a directive sets it: at a time, or later by a duration.
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

// expand replaces each $name, $(a*9) and $(ff) by what it stands for.
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

// name gives a value its name. The test fails if the name already has another value.
func (w *world) name(name, value string) {
	if old, ok := w.names[name]; ok && old != value {
		w.Fatalf("$%s is %s and cannot be %s", name, old, value)
	}
	w.names[name] = value
}

// send makes the request of a step, byte for byte, and checks the response.
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

// route returns the pattern of the route that serves a step's request, or "".
func (w *world) route(s step) string {
	target, _, _ := strings.Cut(s.target, "?")
	r, err := http.NewRequest(s.method, target, nil)
	if err != nil || path.Clean(target) != target {
		return ""
	}
	_, pattern := w.api.mux.Handler(r)
	return pattern
}

func (w *world) hangUp() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

// A faultyStore fails as its fault says:
//
//	unavailable  it answers nothing
//	full         it takes no writes
//	unsure       it takes writes and reports that it may not have
//	broken       it fails with an unknown error
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

// Golden transcripts show what clients send and what they get:
// testdata/golden/*.txt. `go test -run TestGolden -update` rewrites the
// responses that changed, and nothing else.
//
// A transcript is a list of steps with a blank line between them. A step has a
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
// `as` names the API key to send; `nobody` sends none. Without it, the key is
// that of the last directive `as`. A request has the header X-Request-Id: req-1
// and, with a body, Content-Type: application/json, unless it gives them itself.
// The value `-` leaves a header out. Peer stands for the address that the request
// comes from.
//
// In a request $name stands for a value that has a name, $(a*9) for aaaaaaaaa
// and $(ff) for the byte ff. Responses show the names of such values, and a long
// body on several lines. On the wire a body is JSON without white space and ends
// in a newline; faultsOf checks every response, whole.
//
// After `show`, the body of a success has only the members that matter, with
// the objects and lists around them; … stands for those left out of an object.
// The list `data` always shows its rows. Errors are always whole.
//
// Requests that differ in one place are a table: a step in which $case marks the
// place, and one row for each request, with what stands there and the answer.
//
//	POST /api/v1/points/customers/$maria/add
//	{"amount": $case}
//	=> each
//	0 | 400 amount_invalid field=amount | amount debe ser mayor a 0
//	5 | 201 | {"balance":55,…}
//
// An answer begins with words, as in testdata/hostile: the status, the code of
// an error, field=, allow=, id=new, close, other headers in lower case. Then
// comes the body of a success, or the message of an error and its context.
//
// Directives:
//
//	as KEY                 send this key from here on
//	let NAME = MEMBER      name a member of the next response, or its ETag
//	repeat N               send the next request N times; all but the last must succeed
//	show MEMBER…           from here on show only these members; `show all` shows
//	                       all again, `show nothing` none
//	also MEMBER…           show these too in the responses of this step
//	whole                  show the responses of this step whole
//	headers limits         show the RateLimit headers from here on
//	clock TIME, clock +1h  let time pass; d, h, m, s and ms
//	machine TIME           set the machine's clock wrong, to this time
//	machine right          set it right
//	machine synchronized   let the kernel say that its clock is synchronized;
//	                       `machine unsynchronized` takes that back
//	suspend +10h           let the machine sleep
//	accept                 sello clock accept
//	verify                 sello verify, as after each transcript
//	apply FILE             apply a document; what it makes is then called
//	                       $espresso, $club, $club.currency, $club.base (a rule)
//	                       if it is Café Luna's, $otra.espresso if it is Otra's
//	change ORG PATH = JSON apply ORG's document with this change; PATH consists of
//	                       names, keys and places in lists; + appends
//	key NAME ORG {...}     make an API key with these settings
//	rekey NAME {...}       change these settings of an API key of Café Luna
//	rotate NAME NEW +24h   make NEW in the place of NAME, which ends so much later
//	revoke NAME            revoke an API key of Café Luna
//	status ORG ID STATUS   give a customer a status
//	refuse ADDRESS         refuse keys from an address until it may not try another
//	mergeable N            refuse to merge customers with more than N records
//	sweep                  run the sweep
//	restart                start the server anew on the same store
//	cards URL              serve cards at the address; without one, no longer
//	cards URL              serve cards at an address; without one, no longer
//	store FAULT            let the store fail from here on, as faultyStore says
//
// testdata/world/world.txt is run before each transcript; after it the whole
// store is verified. `show` and `headers` hold to the end of their file. New ids
// and keys depend on what the step does, not on the steps before it.

// A step is one paragraph of a transcript, or one row of a table.
type step struct {
	before         string // the file's text before the response
	text           string // the step without its response
	directives     []string
	method, target string // "" if there is no request
	key            string // "" for that of the last `as`
	headers        []string
	body           string
	isRow          bool
	want           string // the response
}

func readSteps(t testing.TB, file string) []step {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for paragraph := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
		if table, rows, ok := strings.Cut(paragraph, "\n=> each\n"); ok {
			steps = append(steps, newRows(table, strings.Split(rows, "\n"))...)
		} else {
			steps = append(steps, newStep(paragraph))
		}
	}
	return steps
}

// newRows returns the steps of a table. `also` and `whole` hold for all of them,
// the other directives belong to the first.
func newRows(table string, rows []string) (steps []step) {
	for i, row := range rows {
		here, want, _ := strings.Cut(row, " | ")
		s := newStep(strings.ReplaceAll(table, "$case", here))
		s.isRow, s.want = true, want
		s.before = "\n" + here + " | "
		if i == 0 {
			s.before = "\n\n" + table + "\n=> each" + s.before
		} else {
			s.directives = slices.DeleteFunc(s.directives, func(d string) bool { return d != "whole" && !strings.HasPrefix(d, "also ") })
		}
		steps = append(steps, s)
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
	if s.before = "\n\n" + s.text; s.method != "" {
		s.before += "\n"
	}
	return s
}

// deed returns what a step does, without its comments and the directives that only
// choose what to show. New ids and keys derive from it, so they stay the same when a
// comment changes.
func (s step) deed() string {
	acts := slices.DeleteFunc(slices.Clone(s.directives), func(d string) bool {
		verb, _, _ := strings.Cut(d, " ")
		return slices.Contains([]string{"show", "also", "whole", "headers"}, verb)
	})
	return strings.Join(slices.Concat(acts, []string{s.method, s.target, s.key}, s.headers, []string{s.body}), "\n")
}

// outcome returns the status of the response in the transcript, and the part of the
// body that the transcript shows.
func (s step) outcome() (status int, body string) {
	if s.isRow {
		words, body, _ := strings.Cut(s.want, " | ")
		a := readAnswerWords(strings.Fields(words))
		status, _ := strconv.Atoi(a.status)
		if status >= 400 && a.code != "" {
			message, _, _ := strings.Cut(body, " | ")
			e, _ := json.Marshal(errorBody{StatusCode: status, Code: a.code, Message: message, Field: a.named["field"]})
			body = string(e)
		}
		return status, body
	}
	lines := strings.Split(s.want, "\n")
	status, _ = strconv.Atoi(strings.TrimPrefix(lines[0], "=> "))
	for lines = lines[1:]; len(lines) > 0 && headerLine.MatchString(lines[0]); {
		lines = lines[1:]
	}
	return status, strings.Join(lines, "\n")
}

// answerWords are the words that describe a response in a table, such as
// `400 invalid_field field=page`.
type answerWords struct {
	status, code string
	named        map[string]string
}

func readAnswerWords(words []string) answerWords {
	a := answerWords{status: words[0], named: map[string]string{}}
	for _, word := range words[1:] {
		if name, value, ok := strings.Cut(word, "="); ok {
			a.named[name] = value
		} else if word != "close" {
			a.code = word
		}
	}
	return a
}
