package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"
)

// The steps of a request, in the order of contract §3:
//
//	route → request id → key → limits → scope → the clock, for a write → media type
//	and size → JSON → fields (the handler's first half) → one transaction (its second
//	half) → encode → write → one line in the log
//
// serve owns all of them. A handler is a few lines: it reads its fields and returns the
// action to run in the transaction.

// maxBody bounds a request's body, in bytes.
const maxBody = 1 << 20

// api serves the public API.
type api struct {
	engine  *engine
	limiter *limiter
	refused sourceLimits   // requests refused for their key
	probes  sourceLimits   // reads of the store by /readyz
	unready atomic.Bool    // whether the last probe failed
	trusted []netip.Prefix // proxies whose X-Forwarded-For is believed

	reading, parsing, bodies, answers *room // for large requests

	log   *slog.Logger
	lines *lineWriter // one log line for each request; nil: none is written
	mux   *http.ServeMux

	references references
	secure     bool // clients speak TLS with this process

	requestIDs atomic.Uint64 // made so far
	idPrefix   string        // random start of every id
}

// A route is one endpoint.
type route struct {
	pattern string // as http.ServeMux takes it
	scope   string // "" if no key is needed
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
	now     instant
	body    []byte // of a POST
	fields  fields // of the body
	query   query
	retries []retryKey // keys that the answer to a POST is kept and looked up under
	actor   string     // of X-Actor; "" without
	dryRun  bool       // of a POST: its action changes nothing
	more    int        // of a POST: how many requests it counts as beside the first
	large   bool       // of a GET: the answer may be large, or take much reading
}

// pathID returns an id of the path; the zero id, which nothing has, if it is malformed.
func (r *request) pathID(name string) id {
	u, _ := parseID(r.PathValue(name))
	return u
}

// An exchange is one request and its response.
type exchange struct {
	http.ResponseWriter
	api     *api
	started time.Time
	request request

	scope     string
	admitted  version   // of the settings, at the latest when the key was read
	noQuery   fault     // of the query, if there is none in the URL
	requestID [1]string // as a header value
	allowance allowance
	share     share
	rest      *partedBody // nil: the body is one part
	status    int

	// For the log; "" if unknown.
	route, key, organization, code string
}

// Header values shared by many responses. They must not be changed.
var (
	noStore  = []string{"no-store"}
	jsonType = []string{"application/json"}
)

// newExchange begins the response to a request.
func (a *api) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	started, clock := a.engine.clock.read()
	x := &exchange{ResponseWriter: w, api: a, started: started.wall, request: request{Request: r, now: instantOf(clock.moment(started))}}
	x.request.query.fault = &x.noQuery
	x.requestID[0] = a.requestID(r)
	h := w.Header()
	h["X-Request-Id"] = x.requestID[:]
	h["Cache-Control"] = noStore
	return x
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := a.newExchange(w, r)
	// After a body of unstated length, the start of the next request cannot be trusted.
	// The same goes for HTTP/1.0, where net/http silently ignores a Transfer-Encoding.
	if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
		w.Header().Set("Connection", "close")
	}
	defer x.finish(r)
	if r.ProtoMajor != 1 { // net/http lets the preface of HTTP/2 through
		x.fail(newError(codeBadRequest))
		return
	}
	if !strings.HasPrefix(r.URL.Path, "/") || path.Clean(r.URL.Path) != r.URL.Path {
		x.fail(newError(codeRouteNotFound)) // else ServeMux would redirect
		return
	}
	a.mux.ServeHTTP(x, r)
}

// requestID returns the caller's own id if it is 1 to 128 printable ASCII characters,
// else a new one. New ids are unique, not secret.
func (a *api) requestID(r *http.Request) string {
	if given := r.Header["X-Request-Id"]; len(given) > 0 && given[0] != "" && len(given[0]) <= 128 && isPrintable(given[0]) {
		return given[0]
	}
	var b [26]byte
	n := copy(b[:], a.idPrefix)
	for i, count := len(b)-1, a.requestIDs.Add(1); i >= n; i, count = i-1, count>>5 {
		b[i] = base32[count&31]
	}
	return string(b[:])
}

// finish gives back room, answers a request that panicked and writes the log line.
func (x *exchange) finish(r *http.Request) {
	x.giveBack()
	if p := recover(); p != nil {
		if p == http.ErrAbortHandler {
			panic(p)
		}
		x.api.log.Error("panic", "requestId", x.requestID[0], "cause", fmt.Sprint(p), "stack", string(debug.Stack()))
		if x.status == 0 {
			x.fail(newError(codeInternal))
		}
	}
	if x.api.lines != nil {
		var line [512]byte
		x.api.lines.add(x.appendLogLine(line[:0], r, x.api.engine.clock.machine.read().wall))
	}
}

// appendLogLine appends the log line of a request: JSON as slog.JSONHandler writes it,
// without the values that are unknown.
func (x *exchange) appendLogLine(b []byte, r *http.Request, ended time.Time) []byte {
	b = ended.AppendFormat(append(b, `{"time":"`...), time.RFC3339Nano)
	b = appendJSONString(append(b, `","level":"INFO","msg":"request","requestId":`...), x.requestID[0])
	b = append(append(b, `,"method":"`...), knownMethod(r.Method)...)
	b = strconv.AppendInt(append(b, `","status":`...), int64(x.status), 10)
	b = decimal(ended.Sub(x.started).Microseconds() * (decimalOne / 1000)).append(append(b, `,"ms":`...))
	for _, known := range [...]struct{ name, value string }{ // no value needs escaping
		{`,"route":"`, x.route}, {`,"key":"`, x.key}, {`,"organization":"`, x.organization}, {`,"code":"`, x.code},
	} {
		if known.value != "" {
			b = append(append(append(b, known.name...), known.value...), '"')
		}
	}
	return append(b, '}', '\n')
}

// serve answers a request that has a route.
func (x *exchange) serve(rt *route, r *http.Request) {
	status, body, err := x.answer(rt, r)
	if err != nil {
		x.fail(err)
		return
	}
	x.write(status, body)
	if x.rest == nil {
		return
	}
	if err := x.rest.write(x.context(), x.ResponseWriter); err != nil { // the status is sent: end the connection before the body ends
		x.api.log.Error("cut off", "requestId", x.requestID[0], "cause", err.Error())
		panic(http.ErrAbortHandler)
	}
}

// answer returns the response that serve writes.
func (x *exchange) answer(rt *route, r *http.Request) (status int, body []byte, err error) {
	req := &x.request
	req.Request = r
	if rt.scope != "" {
		if req.caller, err = x.admit(rt, r); err != nil {
			return 0, nil, err
		}
	}
	if writes(r.Method) {
		if _, err := x.api.engine.clock.forWriting(); err != nil {
			return 0, nil, err
		}
		if err := x.readBody(req); err != nil {
			return 0, nil, err
		}
		if err := req.readActor(); err != nil {
			return 0, nil, err
		}
		// A slow body takes its time. The request happens once the body is complete.
		if req.now, err = x.api.engine.clock.forWriting(); err != nil {
			return 0, nil, err
		}
	}
	if r.URL.RawQuery != "" {
		if req.query, err = parseQuery(r.URL.RawQuery); err != nil {
			return 0, nil, err
		}
	}
	act := rt.handle(req)
	err = firstFault(req.fields.input, req.query.input)
	if !writes(r.Method) {
		if err != nil {
			return 0, nil, err
		}
		return x.read(req, act)
	}
	if err != nil && len(req.retries) == 0 {
		return 0, nil, err
	}
	if err == nil && req.more > 0 {
		if err := x.takeMore(req); err != nil {
			return 0, nil, err
		}
	}
	if err != nil {
		// The fields may have been valid when the same request came first, such as a
		// moment that was still ahead. That answer stands.
		fault := err
		act = func(*txn) (any, error) { return nil, fault }
	}
	x.endWork()
	return x.commit(req, act)
}

// writes reports whether requests of a method write: all but GET and HEAD do.
func writes(method string) bool { return method != http.MethodGet && method != http.MethodHead }

// firstFault returns the first fault in what a handler read, the body before the query.
func firstFault(inputs ...input) error {
	for _, in := range inputs {
		if in.fault != nil && in.err != nil {
			return in.err
		}
	}
	return nil
}

// context returns the context of a request's work. It is not the request's own, which
// net/http ends when the client closes its side of the connection (but see
// unwatched.go). Such a client may still wait for its answer, and a write once begun is
// finished even if the client has gone.
func (x *exchange) context() context.Context { return context.Background() }

// admit checks what precedes the content of a request: its key, its source, its limits
// and its scope.
func (x *exchange) admit(rt *route, r *http.Request) (caller, error) {
	sent, fault := sentKey(r.Header)
	if fault != nil {
		return caller{}, x.refuse(r, fault)
	}
	x.scope, x.admitted = rt.scope, x.api.engine.store.version()
	c, err := x.api.engine.authenticate(x.context(), sent, x.source, x.request.now)
	if c.key != nil {
		x.key = c.key.idText
	}
	if err != nil {
		return c, x.refuse(r, err)
	}
	x.organization = c.cfg.Organization.Slug
	err = x.api.limiter.take(x.context(), x.api.engine.store, c.key, x.request.now, &x.allowance)
	if len(x.allowance.quotas) > 0 {
		x.allowance.setHeaders(x.Header(), x.request.now)
	}
	if err != nil {
		return c, err
	}
	return c, c.key.mayUse(rt.scope)
}

// source is the address that the request comes from.
func (x *exchange) source() netip.Addr { return sourceAddress(x.request.Request, x.api.trusted) }

// takeMore counts a request that is many in one as all of them. If a limit does not
// allow that, it counts as none.
func (x *exchange) takeMore(req *request) error {
	err := x.api.limiter.takeMore(req.key, req.more, req.now, &x.allowance)
	x.allowance.setHeaders(x.Header(), req.now)
	return err
}

// refuse counts a 401 against the request's source. A source with too many gets 429
// instead. Its requests with a good key are not affected.
func (x *exchange) refuse(r *http.Request, err error) error {
	if publicError(err).code.status != http.StatusUnauthorized {
		return err
	}
	if wait := x.api.refused.take(sourceAddress(r, x.api.trusted), x.request.now); wait > 0 {
		return rateLimited(codeRateLimitSource, maxRefusals, "minute", x.request.now+wait, x.request.now)
	}
	return err
}

// readBody reads the body of a POST and splits it into its members. A POST that takes
// nothing from its body may come without one.
func (x *exchange) readBody(req *request) error {
	if req.ContentLength == 0 && req.bodyOptional() {
		req.fields = newFields(nil)
		return x.readRetryKey(req)
	}
	if !isJSON(req.Header) {
		return newError(codeUnsupportedMediaType)
	}
	if req.ContentLength > maxBody { // refused before the client is told to continue
		return newError(codeBodyTooLarge)
	}
	body, err := x.takeBody(req)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return newError(codeBodyTooLarge)
	}
	if errors.Is(err, errUnavailable) {
		return err
	}
	if err != nil {
		return newError(codeInvalidJSON)
	}
	members, fault := parseObjectOf(body, req.maxMembers())
	if fault != nil {
		return newError(codeInvalidJSON).with("reason", fault.reason).with("line", fault.line).with("column", fault.column)
	}
	req.body, req.fields = body, newFields(members)
	return x.readRetryKey(req)
}

// bodyOptional reports whether the endpoint takes nothing from its body.
func (r *request) bodyOptional() bool { return strings.HasSuffix(r.Pattern, "/cancel") }

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

// readRetryKey reads the Idempotency-Key (contract §6).
func (x *exchange) readRetryKey(req *request) error {
	given := req.Header["Idempotency-Key"]
	if len(given) == 0 || req.Method != http.MethodPost {
		return nil
	}
	if len(given) > 1 || given[0] == "" || len(given[0]) > 255 || !isPrintable(given[0]) {
		return invalidField("Idempotency-Key", "Idempotency-Key debe tener de 1 a 255 caracteres ASCII imprimibles")
	}
	req.retries = append(req.retries, idempotencyKey(given[0], req.Request, req.body))
	return nil
}

// readActor takes X-Actor: who uses the key (contract §16).
func (r *request) readActor() error {
	given := r.Header["X-Actor"]
	if len(given) == 0 {
		return nil
	}
	if len(given) > 1 {
		return invalidField("X-Actor", "X-Actor se envió dos veces")
	}
	r.actor = trimBlanks(given[0])
	if !utf8.ValidString(r.actor) || utf8.RuneCountInString(r.actor) > maxActor || strings.ContainsFunc(r.actor, unicode.IsControl) {
		return invalidField("X-Actor", "X-Actor debe tener como máximo 100 caracteres UTF-8, sin caracteres de control")
	}
	return nil
}

// writesAs names the caller as who makes what the transaction writes. The body may have
// taken long to come: it fails if the key no longer admits the request.
func (x *exchange) writesAs(t *txn) error {
	c, err := x.callerNow(t)
	if err != nil {
		return err
	}
	t.by, t.byKey, t.requestID = creator{byKey, c.key.ID, x.request.actor}, c.key, x.requestID[0]
	return nil
}

// callerNow returns the caller as the transaction sees it, and checks it again. It reads
// the key only if settings have changed since the request was admitted.
func (x *exchange) callerNow(t *txn) (caller, error) {
	c := x.request.caller
	if v := x.api.engine.store.version(); v == unsettled || v != x.admitted {
		k, err := keyByHash(t.Tx, c.hash)
		if err == nil && k == nil {
			err = newError(codeAPIKeyInvalid)
		}
		if err != nil {
			return c, err
		}
		c.key, c.cfg = k, t.cfg
	}
	err := c.check(x.source, t.now)
	if err == nil {
		err = c.key.mayUse(x.scope)
	}
	return c, err
}

// read runs the action of a GET.
func (x *exchange) read(req *request, act action) (int, []byte, error) {
	if req.key == nil { // a route without a key has no organization to read
		v, err := act(nil)
		if p, ok := v.(*prepared); ok {
			status, body := p.respond(x.Header(), req.Request)
			return status, body, nil
		}
		return encodeReply(v, http.StatusOK, err)
	}
	if req.large {
		return x.readLarge(req, act)
	}
	return x.readSmall(req, act)
}

func (x *exchange) readSmall(req *request, act action) (int, []byte, error) {
	v, err := read(x.context(), x.api.engine, req.key.Org, x.request.now, act)
	if err == nil {
		x.setTag(tagOf(v))
	}
	if all, ok := v.(parts); ok && err == nil {
		x.rest = &partedBody{parts: all, engine: x.api.engine, org: req.key.Org, now: x.request.now, room: x.api.reading}
		first, err := x.rest.read(x.context())
		return http.StatusOK, first, err
	}
	return encodeReply(v, http.StatusOK, err)
}

// A share is what one request holds of each room.
type share struct {
	work         *room // where it holds one unit; nil: nowhere
	body, answer int   // units
}

// beginWork waits for a processor. endWork gives it back; calling it again does
// nothing.
func (x *exchange) beginWork(r *room) error {
	_, err := r.take(x.context(), 1, patience)
	if err == nil {
		x.share.work = r
	}
	return err
}

func (x *exchange) endWork() {
	if x.share.work != nil {
		x.share.work.give(1)
		x.share.work = nil
	}
}

func (x *exchange) giveBack() {
	x.endWork()
	x.api.bodies.give(x.share.body)
	x.api.answers.give(x.share.answer)
}

// takeBody reads a whole body. It takes room for a large one only after the first
// smallBody bytes have come, so that a client that sends nothing holds no room.
func (x *exchange) takeBody(req *request) ([]byte, error) {
	from := http.MaxBytesReader(x.ResponseWriter, req.Body, maxBody)
	if req.ContentLength >= 0 && req.ContentLength <= smallBody {
		return io.ReadAll(from)
	}
	body, err := io.ReadAll(io.LimitReader(from, smallBody))
	if err != nil || len(body) < smallBody {
		return body, err
	}
	length := maxBody
	if req.ContentLength > 0 {
		length = int(req.ContentLength)
	}
	if x.share.body, err = x.api.bodies.take(x.context(), unitsOf(length), patience); err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(body)
	if req.ContentLength > 0 {
		b.Grow(length - len(body) + bytes.MinRead)
	}
	if _, err = b.ReadFrom(from); err != nil {
		return nil, err
	}
	return b.Bytes(), x.beginWork(x.api.parsing)
}

// readLarge runs the action of a large GET.
func (x *exchange) readLarge(req *request, act action) (status int, body []byte, err error) {
	if err := x.beginWork(x.api.reading); err != nil {
		return 0, nil, err
	}
	defer x.endWork()
	status, body, err = x.readSmall(req, act)
	if len(body) > smallAnswer {
		x.share.answer, err = x.api.answers.take(x.context(), unitsOf(len(body)), answerPatience)
	}
	return status, body, err
}

// An answer is the outcome of a POST.
type answer struct {
	status   int
	body     []byte
	replayed bool
	etag     string // "" without
}

// commit runs the action of a POST, or finds the answer that the request got before. An
// answer it returns is on disk.
func (x *exchange) commit(req *request, act action) (int, []byte, error) {
	if req.dryRun {
		return x.rehearse(req, act)
	}
	given, err := write(x.context(), x.api.engine, req.key.Org, x.request.now, func(t *txn) (answer, error) {
		if err := x.writesAs(t); err != nil {
			return answer{}, err
		}
		if err := t.inTime(); err != nil {
			return answer{}, err
		}
		i, first, err := t.firstReplay(req.retries)
		if err != nil {
			return answer{}, err
		}
		if first != nil {
			status := cmp.Or(req.retries[i].status, first.Status)
			// A retry of this request may carry that key alone.
			for _, other := range req.retries[:i] {
				if err := t.keepReplay([]retryKey{other}, status, first.Body); err != nil {
					return answer{}, err
				}
			}
			return answer{status, first.Body, true, ""}, nil
		}
		v, err := act(t)
		status, body, err := encodeReply(v, http.StatusCreated, err)
		if err != nil {
			return answer{}, err
		}
		return answer{status, body, isRepeated(v), tagOf(v)}, t.keepReplay(req.retries, status, body)
	})
	return x.give(given, err)
}

// rehearse returns what a POST would answer, and writes nothing. It ignores the
// Idempotency-Key, which belongs to the request without dryRun.
func (x *exchange) rehearse(req *request, act action) (int, []byte, error) {
	retries := req.retries[len(req.Header["Idempotency-Key"]):]
	given, err := rehearse(x.context(), x.api.engine, req.key.Org, x.request.now, func(t *txn) (answer, error) {
		if err := x.writesAs(t); err != nil {
			return answer{}, err
		}
		_, first, err := t.firstReplay(retries)
		if err != nil {
			return answer{}, err
		}
		if first != nil {
			return answer{http.StatusOK, first.Body, true, ""}, nil
		}
		v, err := act(t)
		status, body, err := encodeReply(v, http.StatusOK, err)
		return answer{status, body, isRepeated(v), tagOf(v)}, err
	})
	return x.give(given, err)
}

// give returns an answer. It marks one that was replayed in the headers.
func (x *exchange) give(a answer, err error) (int, []byte, error) {
	if a.replayed {
		x.Header()["Idempotency-Replayed"] = []string{"true"}
	}
	if err == nil {
		x.setTag(a.etag)
	}
	return a.status, a.body, err
}

func (x *exchange) setTag(etag string) {
	if etag != "" {
		x.Header()["Etag"] = []string{etag}
	}
}

// Only ServeMux calls WriteHeader and Write, when it finds no route: with 404, or with
// 405 and the Allow header. Our error replaces its text.

func (x *exchange) WriteHeader(status int) {
	delete(x.Header(), "X-Content-Type-Options") // these two are of ServeMux's text
	delete(x.Header(), "Content-Type")
	if status == http.StatusMethodNotAllowed {
		x.fail(newError(codeMethodNotAllowed))
	} else {
		x.fail(newError(codeRouteNotFound))
	}
}

func (x *exchange) Write(text []byte) (int, error) { return len(text), nil }

// fail answers with an error. The client gets only what publicError lets through; the
// cause of a 5xx is logged.
func (x *exchange) fail(err error) {
	e := publicError(err)
	x.code = e.code.name
	if e.code.status >= 500 && e.code != codeClockUnsafe { // the clock logs it once for all
		x.api.log.Error("failed", "requestId", x.requestID[0], "cause", err.Error())
	}
	for name, values := range e.headers {
		x.Header()[name] = values
	}
	if e.code.status == http.StatusUnauthorized {
		x.Header()["WWW-Authenticate"] = []string{"Bearer"}
	}
	body, err := encode(errorBody{e.code.status, e.code.name, e.message, x.requestID[0], e.field, e.context})
	if err != nil {
		x.api.log.Error("failed", "requestId", x.requestID[0], "cause", err.Error())
	}
	x.write(e.code.status, body)
}

// netHTTPBuffer is how many bytes of a body net/http buffers. It sets the
// Content-Length of a shorter body itself.
const netHTTPBuffer = 2048

func (x *exchange) write(status int, body []byte) {
	x.status = status
	h := x.Header()
	if h["Content-Type"] == nil {
		h["Content-Type"] = jsonType
	}
	if len(body) >= netHTTPBuffer && (x.rest == nil || x.rest.ended) {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	x.ResponseWriter.WriteHeader(status)
	x.ResponseWriter.Write(body) // fails if the client has gone, which is no error here
}
