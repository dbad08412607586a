package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
)

// The way of a request, in the order of contract §3:
//
//	route → request id → key → limits → scope → the clock, of a write → media type
//	and size → JSON → fields (the handler's first half) → one transaction (its second
//	half) → encode → write → one line in the log
//
// serve owns it all, so that a handler is a few lines: it reads its fields
// and returns what is to be done in the transaction.

// maxBody bounds a request's body, in bytes.
const maxBody = 1 << 20

// api serves the public API.
type api struct {
	engine  *engine
	limiter *limiter
	refused sourceLimits   // requests, for their key
	probes  sourceLimits   // of the store, for /readyz
	unready atomic.Bool    // as the last of them found
	trusted []netip.Prefix // proxies whose X-Forwarded-For is believed

	reading, parsing, bodies, answers *room // for large requests

	log   *slog.Logger
	lines *lineWriter // for a line of each request; nil: nobody wants them
	mux   *http.ServeMux

	requestIDs atomic.Uint64 // made so far
	idPrefix   string        // of them all, random
}

// A route is one endpoint.
type route struct {
	pattern string // as http.ServeMux takes it
	scope   string // "" for what needs no key
	handle  func(*request) action
}

// An action is what a request does once its fields are read: in a View for
// GET, in an Update for POST. It returns the response's body, or a reply to
// choose the status too; else GET answers 200 and POST 201.
type action func(*txn) (any, error)

type reply struct {
	status int
	body   any
}

// A request is what a handler sees of one.
type request struct {
	caller
	*http.Request
	now     instant
	body    []byte // of a POST
	fields  fields // of the body
	query   query
	retries []retryKey // under which the answer to a POST is kept and looked for
	dryRun  bool       // of a POST: its action changes nothing
	large   bool       // of a GET: its answer may be, or much has to be read for it
}

// pathID is an id in the path; the zero id, which nothing has, if it is none.
func (r *request) pathID(name string) id {
	u, _ := parseID(r.PathValue(name))
	return u
}

// An exchange is one request on its way and the response to it.
type exchange struct {
	http.ResponseWriter
	api     *api
	started time.Time
	request request

	noQuery   fault     // of a request without parameters
	requestID [1]string // as a header holds it
	allowance allowance
	share     share
	status    int

	// For the log; "" what is not known.
	route, key, organization, code string
}

// Values of headers that are the same in many responses. They are shared, and
// nobody changes them.
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
	// A body of unstated length is no basis for a next request. Neither is
	// HTTP/1.0, of which net/http passes over a Transfer-Encoding without a word.
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

// requestID is the caller's own, if it is 1 to 128 printable ASCII
// characters, or a new one. New ones are different, not secret.
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

// base32 are the digits of rand.Text.
const base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// finish answers for a panic and writes the log line.
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

// knownMethod keeps what a client made up out of the log.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return m
	}
	return "other"
}

// appendLogLine appends the line that a request leaves in the log: JSON as a
// slog.JSONHandler writes it, without what is not known.
func (x *exchange) appendLogLine(b []byte, r *http.Request, ended time.Time) []byte {
	b = ended.AppendFormat(append(b, `{"time":"`...), time.RFC3339Nano)
	b = appendJSONString(append(b, `","level":"INFO","msg":"request","requestId":`...), x.requestID[0])
	b = append(append(b, `,"method":"`...), knownMethod(r.Method)...)
	b = strconv.AppendInt(append(b, `","status":`...), int64(x.status), 10)
	b = decimal(ended.Sub(x.started).Microseconds() * (decimalOne / 1000)).append(append(b, `,"ms":`...))
	for _, known := range [...]struct{ name, value string }{ // nothing in them has to be escaped
		{`,"route":"`, x.route}, {`,"key":"`, x.key}, {`,"organization":"`, x.organization}, {`,"code":"`, x.code},
	} {
		if known.value != "" {
			b = append(append(append(b, known.name...), known.value...), '"')
		}
	}
	return append(b, '}', '\n')
}

// serve takes a request with a route all the way.
func (x *exchange) serve(rt *route, r *http.Request) {
	status, body, err := x.answer(rt, r)
	if err != nil {
		x.fail(err)
		return
	}
	x.write(status, body)
}

// answer is serve without the writing.
func (x *exchange) answer(rt *route, r *http.Request) (status int, body []byte, err error) {
	req := &x.request
	req.Request = r
	if rt.scope != "" {
		if req.caller, err = x.admit(rt, r); err != nil {
			return 0, nil, err
		}
	}
	if r.Method == http.MethodPost {
		if _, err := x.api.engine.clock.forWriting(); err != nil {
			return 0, nil, err
		}
		if err := x.readBody(req); err != nil {
			return 0, nil, err
		}
		// A slow body took its time: what happens, happens now.
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
	if r.Method != http.MethodPost {
		if err != nil {
			return 0, nil, err
		}
		return x.read(req, act)
	}
	if err != nil && len(req.retries) == 0 {
		return 0, nil, err
	}
	if err != nil {
		// The same request may have been answered before its fields went out
		// of date; then that answer stands.
		fault := err
		act = func(*txn) (any, error) { return nil, fault }
	}
	x.endWork()
	return x.commit(req, act)
}

// firstFault is the first fault of what a handler read, body before query.
func firstFault(inputs ...input) error {
	for _, in := range inputs {
		if in.fault != nil && in.err != nil {
			return in.err
		}
	}
	return nil
}

// context is what a request's work is done in. It is not that of the request,
// which is for net/http to end when the client closes its side of the connection
// (but see unwatched.go): such a client may well wait for its answer, and a write
// once begun is finished even if it has gone.
func (x *exchange) context() context.Context { return context.Background() }

// admit does all that comes before a request's own content: its key, where it
// comes from, its limits and its scope.
func (x *exchange) admit(rt *route, r *http.Request) (caller, error) {
	sent, fault := sentKey(r.Header)
	if fault != nil {
		return caller{}, x.refuse(r, fault)
	}
	source := func() netip.Addr { return sourceAddress(r, x.api.trusted) }
	c, err := x.api.engine.authenticate(x.context(), sent, source, x.request.now)
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
	if !c.key.allows(rt.scope) {
		e := newError(codeScopeRequired)
		e.message += rt.scope
		return c, e
	}
	return c, nil
}

// refuse counts a 401 against the request's source. One that had too many gets
// 429 in its place; a good key from there is none the worse for it.
func (x *exchange) refuse(r *http.Request, err error) error {
	if publicError(err).code.status != http.StatusUnauthorized {
		return err
	}
	if wait := x.api.refused.take(sourceAddress(r, x.api.trusted), x.request.now); wait > 0 {
		return rateLimited(codeRateLimitSource, maxRefusals, "minute", x.request.now+wait, x.request.now)
	}
	return err
}

// readBody takes in the body of a POST and splits it into its members. A
// POST that needs no body may come without one.
func (x *exchange) readBody(req *request) error {
	if req.ContentLength == 0 && req.bodyOptional() {
		req.fields = newFields(nil)
		return x.readRetryKey(req)
	}
	if !isJSON(req.Header) {
		return newError(codeUnsupportedMediaType)
	}
	if req.ContentLength > maxBody { // told before the client is asked to go on
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
	members, fault := parseObject(body)
	if fault != nil {
		return newError(codeInvalidJSON).with("reason", fault.reason).with("line", fault.line).with("column", fault.column)
	}
	req.body, req.fields = body, newFields(members)
	return x.readRetryKey(req)
}

// bodyOptional tells whether the endpoint takes nothing from its body.
func (r *request) bodyOptional() bool { return strings.HasSuffix(r.Pattern, "/cancel") }

// isJSON tells whether the body is declared as JSON in UTF-8, not compressed.
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

// readRetryKey takes the Idempotency-Key (contract §6).
func (x *exchange) readRetryKey(req *request) error {
	given := req.Header["Idempotency-Key"]
	if len(given) == 0 {
		return nil
	}
	if len(given) > 1 || given[0] == "" || len(given[0]) > 255 || !isPrintable(given[0]) {
		return invalidField("Idempotency-Key", "Idempotency-Key debe tener de 1 a 255 caracteres ASCII imprimibles")
	}
	req.retries = append(req.retries, idempotencyKey(given[0], req.Request, req.body))
	return nil
}

// read runs the action of a GET.
func (x *exchange) read(req *request, act action) (int, []byte, error) {
	if req.key == nil { // a route without a key has no organization to read
		v, err := act(nil)
		return encodeReply(v, http.StatusOK, err)
	}
	if req.large {
		return x.readLarge(req, act)
	}
	return x.readSmall(req, act)
}

func (x *exchange) readSmall(req *request, act action) (int, []byte, error) {
	v, err := read(x.context(), x.api.engine, req.key.Org, x.request.now, act)
	return encodeReply(v, http.StatusOK, err)
}

// A share is what one request has of each room.
type share struct {
	work         *room // one unit of it; nil: none
	body, answer int   // units
}

// beginWork waits for a processor; endWork, which may be called again, lets it
// go.
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

// takeBody reads a body whole. Of a large one it first reads as much as a small
// one has, so that a client that sends nothing takes no room from others.
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
}

// commit runs the action of a POST, or finds the answer that it was given
// before. What is answered is on disk.
func (x *exchange) commit(req *request, act action) (int, []byte, error) {
	if req.dryRun {
		return x.rehearse(req, act)
	}
	given, err := write(x.context(), x.api.engine, req.key.Org, x.request.now, func(t *txn) (answer, error) {
		if err := t.inTime(); err != nil {
			return answer{}, err
		}
		i, first, err := t.firstReplay(req.retries)
		if err != nil {
			return answer{}, err
		}
		if first != nil {
			status := cmp.Or(req.retries[i].status, first.Status)
			for _, other := range req.retries[:i] { // a retry of this one may know it by that key alone
				if err := t.keepReplay([]retryKey{other}, status, first.Body); err != nil {
					return answer{}, err
				}
			}
			return answer{status, first.Body, true}, nil
		}
		v, err := act(t)
		status, body, err := encodeReply(v, http.StatusCreated, err)
		if err != nil {
			return answer{}, err
		}
		return answer{status, body, false}, t.keepReplay(req.retries, status, body)
	})
	return x.give(given, err)
}

// rehearse tells what a POST would answer, and writes nothing. An
// Idempotency-Key says nothing here: it belongs to a request that says
// nothing of a dry run.
func (x *exchange) rehearse(req *request, act action) (int, []byte, error) {
	retries := req.retries[len(req.Header["Idempotency-Key"]):]
	given, err := rehearse(x.context(), x.api.engine, req.key.Org, x.request.now, func(t *txn) (answer, error) {
		_, first, err := t.firstReplay(retries)
		if err != nil {
			return answer{}, err
		}
		if first != nil {
			return answer{http.StatusOK, first.Body, true}, nil
		}
		v, err := act(t)
		status, body, err := encodeReply(v, http.StatusOK, err)
		return answer{status, body, false}, err
	})
	return x.give(given, err)
}

// give says of an answer whether it is the one that was given before.
func (x *exchange) give(a answer, err error) (int, []byte, error) {
	if a.replayed {
		x.Header()["Idempotency-Replayed"] = []string{"true"}
	}
	return a.status, a.body, err
}

func encodeReply(v any, status int, err error) (int, []byte, error) {
	if err != nil {
		return 0, nil, err
	}
	if r, ok := v.(reply); ok {
		v, status = r.body, r.status
	}
	if text, ok := v.(json.RawMessage); ok { // shared by all who ask for it
		return status, text, nil
	}
	body, err := encode(v)
	return status, body, err
}

// WriteHeader and Write are called by ServeMux alone, where it finds no route:
// with 404 or, the Allow header set, 405. Its text gives way to our own.

func (x *exchange) WriteHeader(status int) {
	delete(x.Header(), "X-Content-Type-Options") // which came with the text
	if status == http.StatusMethodNotAllowed {
		x.fail(newError(codeMethodNotAllowed))
	} else {
		x.fail(newError(codeRouteNotFound))
	}
}

func (x *exchange) Write(text []byte) (int, error) { return len(text), nil }

// fail answers with an error. Only what publicError lets through is told; the
// cause of anything else is logged.
func (x *exchange) fail(err error) {
	e := publicError(err)
	x.code = e.code.name
	if e.code.status >= 500 && e.code != codeClockUnsafe { // of which one line tells for all
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

// netHTTPBuffer is how many bytes of a body net/http keeps back: what is
// shorter gets its Content-Length there.
const netHTTPBuffer = 2048

func (x *exchange) write(status int, body []byte) {
	x.status = status
	h := x.Header()
	h["Content-Type"] = jsonType
	if len(body) >= netHTTPBuffer {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	x.ResponseWriter.WriteHeader(status)
	x.ResponseWriter.Write(body) // a client that has gone is no fault of ours
}
