package main

import (
	"context"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"sello/internal/logline"
	"sello/internal/ring"
	"sello/internal/semaphore"
)

// One request of the API and its response: what a handler sees of it (request), what the way of a
// request keeps of it (exchange), and what an action may return, with status, ETag or in parts. The
// last requests of each organization stay in memory for the panel.

// api serves the public API.
type api struct {
	engine  *engine
	limiter *limiter
	logins  *logins        // of the panel
	refused sourceLimits   // requests refused for their key
	probes  sourceLimits   // reads of the store by /readyz
	unready atomic.Bool    // whether the last probe failed
	trusted []netip.Prefix // proxies whose X-Forwarded-For is believed

	reading, parsing, bodies, answers *semaphore.Semaphore // for large requests

	log        *slog.Logger
	lines      *logline.Writer // one log line for each request; nil: none is written
	loggedFrom int             // lowest status of the requests that have a line
	counts     *requestCounts  // nil: requests are not counted
	faults     atomic.Uint64   // requests answered with a status of 500 or more
	mux        *http.ServeMux

	stopping chan struct{} // closed when the server stops: nobody waits for events any more

	mode       []string                           // Sello-Mode of every answer; nil: none
	more       []route                            // that only a sandbox has
	enter      func(*http.Request) (leave func()) // a sandbox's: waits while it begins anew; else nil
	references references
	secure     bool // clients speak TLS with this process

	// panel answers the requests of paths under /panel; nil: there is none.
	panel interface {
		serve(*exchange, *http.Request)
	}
	// site answers the requests of customers, as it tells; nil: there is none, or it has an address of
	// its own.
	site interface {
		answers(*http.Request) bool
		serve(*exchange, *http.Request)
	}
	requests *ring.Log[uint32, loggedRequest] // by the number of the organization, for the panel; nil without

	requestIDs atomic.Uint64 // made so far
	idPrefix   string        // random start of every id
}

// A route is one endpoint.
type route struct {
	pattern string // as http.ServeMux takes it
	scope   string // that a key needs, or several with blanks between them; "" if no key is needed
	handle  func(*request) action
}

// An action is the work of a request after its fields are read: in a View for GET, in
// an Update for POST. It returns the response's body, with status 200 for GET and 201
// for POST, or a reply to choose another status.
type action func(*txn) (any, error)

// A request is what a handler sees of an HTTP request.
type request struct {
	caller
	*http.Request
	now       instant
	body      []byte      // of a POST
	fields    fieldReader // of the body
	query     query
	retries   []retryKey // keys that the answer to a POST is kept and looked up under
	actor     string     // of X-Actor; "" without
	more      int32      // of a POST: how many requests it counts as beside the first
	dryRun    bool       // of a POST: its action changes nothing
	rehearses bool       // of a POST: its route has a dry run
	large     bool       // of a GET: the answer may be large, or take much reading
	strict    bool       // Prefer: handling=strict
	apart     bool       // of a POST: its action has transactions of its own
	wait      uint8      // of a GET /events: for how many seconds it may wait for one
}

// pathID returns an id of the path; the zero id, which nothing has, if it is malformed.
func (r *request) pathID(name string) id { return pathIDOf(r.Request, name) }

func pathIDOf(r *http.Request, name string) id {
	u, _ := parseID(r.PathValue(name))
	return u
}

// An exchange is one request and its response.
type exchange struct {
	http.ResponseWriter
	api     *api
	started time.Time
	request request

	number    int // of the route in api.routes; -1: none
	scope     string
	admitted  version         // of the settings, at the latest when the key was read
	caught    context.Context // of the store's catchUp, as long as nothing waits; nil: none
	noQuery   fault           // of the query, if there is none in the URL
	requestID [1]string       // as a header value
	idGiven   bool            // the client sent it
	allowance allowance
	held      heldUnits
	rest      *partedBody              // nil: the body is one part
	asPage    interface{ fail(error) } // a request for a page, of the panel or of customers; nil: it is the API's
	status    int

	// For the log; "" if unknown.
	route, key, user, organization, code string
}

// Header values shared by many responses. They must not be changed.
var (
	noStore  = []string{"no-store"}
	jsonType = []string{"application/json"}
	isStrict = []string{"handling=strict"}
)

// requestID returns the caller's own id if it is 1 to 128 printable ASCII characters,
// else a new one. New ids are unique, not secret.
func (a *api) requestID(r *http.Request) (text string, given bool) {
	if sent := r.Header["X-Request-Id"]; len(sent) > 0 && sent[0] != "" && len(sent[0]) <= 128 && isPrintable(sent[0]) {
		return sent[0], true
	}
	var b [26]byte
	n := copy(b[:], a.idPrefix)
	for i, count := len(b)-1, a.requestIDs.Add(1); i >= n; i, count = i-1, count>>5 {
		b[i] = base32Digits[count&31]
	}
	return string(b[:]), false
}

// auditID is the request's id as the audit log keeps it. An id that the client chose is marked
// by its beginning, which no id of the server's own has.
func (x *exchange) auditID() string {
	if x.idGiven {
		return clientsWord + x.requestID[0]
	}
	return x.requestID[0]
}

const clientsWord = "client:"

// unmarked returns the request's id from an auditID.
func unmarked(id string) string { return strings.TrimPrefix(id, clientsWord) }

// context returns the context of a request's work. It is not the request's own, which
// net/http ends when the client closes its side of the connection (but see
// internal/unwatched). Such a client may still wait for its answer, and a write once begun is
// finished even if the client has gone.
//
// Once the request is admitted, it is a context of the store's catchUp.
func (x *exchange) context() context.Context {
	if x.caught != nil {
		return x.caught
	}
	return context.Background()
}

// source is the address that the request comes from.
func (x *exchange) source() netip.Addr { return sourceAddress(x.request.Request, x.api.trusted) }

// appendLogLine appends the log line of a request: JSON as slog.JSONHandler writes it,
// without the values that are unknown.
func (x *exchange) appendLogLine(b []byte, r *http.Request, ended time.Time) []byte {
	b = ended.AppendFormat(append(b, `{"time":"`...), time.RFC3339Nano)
	b = appendJSONString(append(b, `","level":"INFO","msg":"request","requestId":`...), x.requestID[0])
	b = append(append(b, `,"method":"`...), knownMethod(r.Method)...)
	b = strconv.AppendInt(append(b, `","status":`...), int64(x.status), 10)
	b = decimal(ended.Sub(x.started).Microseconds() * (decimalOne / 1000)).append(append(b, `,"ms":`...))
	for _, known := range [...]struct{ name, value string }{ // no value needs escaping
		{`,"route":"`, x.route}, {`,"key":"`, x.key}, {`,"user":"`, x.user}, {`,"organization":"`, x.organization}, {`,"code":"`, x.code},
	} {
		if known.value != "" {
			b = append(append(append(b, known.name...), known.value...), '"')
		}
	}
	return append(b, '}', '\n')
}

// heldUnits are the units that one request holds of each semaphore.
type heldUnits struct {
	work         *semaphore.Semaphore // of processors: it holds one unit; nil: none
	body, answer int                  // units
}

// beginWork waits for a processor's unit. endWork gives it back; calling it again does
// nothing.
func (x *exchange) beginWork(s *semaphore.Semaphore) error {
	_, err := s.Take(x.context(), 1, semaphoreWait)
	if err == nil {
		x.held.work = s
	}
	return err
}

func (x *exchange) endWork() {
	if x.held.work != nil {
		x.held.work.Give(1)
		x.held.work = nil
	}
}

func (x *exchange) giveBack() {
	x.endWork()
	x.api.bodies.Give(x.held.body)
	x.giveAnswer()
}

func (x *exchange) giveAnswer() {
	x.api.answers.Give(x.held.answer)
	x.held.answer = 0
}

// base32Digits are the digits of rand.Text.
const base32Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// A loggedRequest is one of the last requests of an organization's API keys, for the developers
// of clients. One process keeps them in memory, from its start, and only if it serves the panel. Of
// what a client sends it holds only the request's id: no address, query or body, and no text of a
// key. It takes 64 bytes, and the text of its id, which has 128 at most.
type loggedRequest struct {
	At        instant
	Key       id
	RequestID string
	Code      string // of the error; "" without
	micros    uint32 // that it took
	route     int16  // its number in api.routes
	Status    uint16
}

// At most loggedOrganizations have a log, of at most loggedRequests: 12.3 MB in all, if every
// client sends the longest ids. These are the organizations that sent a request last.
const (
	loggedRequests      = 1000
	loggedOrganizations = 64
)

func newRequestLog() *ring.Log[uint32, loggedRequest] {
	return ring.New[uint32, loggedRequest](loggedOrganizations, loggedRequests)
}

// maxBody bounds a request's body, in bytes.
const maxBody = 1 << 20

// bodyOptional reports whether the endpoint needs nothing from its body.
func (r *request) bodyOptional() bool {
	return slices.Contains([]string{"cancel", "capture", "card", "release", "reset", "revoke"}, path.Base(r.Pattern))
}

// maxMembers bounds the members and elements of the request's body.
func (r *request) maxMembers() int {
	if strings.HasSuffix(r.Pattern, "/batch") {
		return maxBatchMembers
	}
	return maxMembers
}

// isJSON reports whether the body is declared as JSON in UTF-8, not compressed.
func isJSON(h http.Header) bool {
	types, encodings := h["Content-Type"], h["Content-Encoding"]
	if len(types) != 1 || len(encodings) > 1 {
		return false
	}
	if len(encodings) == 1 && encodings[0] != "" && !strings.EqualFold(encodings[0], "identity") {
		return false
	}
	if types[0] == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(types[0])
	charset, given := params["charset"]
	return err == nil && media == "application/json" && (!given || strings.EqualFold(charset, "utf-8"))
}

// What an action may return besides the body itself.

// A reply is a body with a status.
type reply struct {
	status int
	body   any
}

// okReply is a 200 to a POST, which else is answered with 201.
func okReply(body any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return reply{http.StatusOK, body}, nil
}

// A repeated is the body of a 200 to a POST that changes nothing, since the same was done
// before.
type repeated struct{ body any }

func isRepeated(v any) bool {
	_, is := v.(repeated)
	return is
}

// ETags. A client sends one back as If-Match, so that it does not overwrite what others
// have changed meanwhile (contract §12).

// A tagged is the body of a 200 with an ETag.
type tagged struct {
	body any
	etag string
}

// tagOf is the ETag of what an action returned; "" without.
func tagOf(v any) string {
	tagged, _ := v.(tagged)
	return tagged.etag
}

// ifMatch returns a function that reports whether a resource with an ETag meets If-Match;
// nil without that header. Comparison is strong: a weak tag never matches.
func ifMatch(h http.Header) func(etag string) bool {
	given := h["If-Match"]
	if len(given) == 0 {
		return nil
	}
	return func(etag string) bool {
		for _, line := range given {
			for one := range strings.SplitSeq(line, ",") {
				if one = strings.Trim(one, " \t"); one == "*" || one == etag {
					return true
				}
			}
		}
		return false
	}
}

// bodyParts are the body of a 200 that may be too long for memory. next appends the next part,
// in a View of its own, and returns what comes after it; nil if that was the last. So no View
// waits for a slow reader. It leaves its receiver as it was, since a View may run again.
type bodyParts interface {
	next(t *txn, b []byte) (part []byte, rest bodyParts, err error)
}

// partTime is how long a client may take to read a part.
const partTime = 30 * time.Second

// A partedBody is a body in parts that is being sent.
type partedBody struct {
	rest       bodyParts // nil: there are no more parts
	engine     *engine
	org        uint32
	now        instant
	processors *semaphore.Semaphore
}

// read returns the next part.
func (p *partedBody) read(ctx context.Context) ([]byte, error) {
	if _, err := p.processors.Take(ctx, 1, semaphoreWait); err != nil {
		return nil, err
	}
	defer p.processors.Give(1)
	type step struct {
		part []byte
		rest bodyParts
	}
	done, err := read(ctx, p.engine, p.org, p.now, func(t *txn) (s step, err error) {
		s.part, s.rest, err = p.rest.next(t, nil)
		return s, err
	})
	if err == nil {
		p.rest = done.rest
	}
	return done.part, err
}

// write writes the parts that are left.
func (p *partedBody) write(ctx context.Context, w http.ResponseWriter) error {
	c := http.NewResponseController(w)
	for p.rest != nil {
		part, err := p.read(ctx)
		if err != nil {
			return err
		}
		c.SetWriteDeadline(time.Now().Add(partTime)) // a recorder of tests has none
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
