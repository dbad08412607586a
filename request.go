package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
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
	"time"
)

// The way of a request, in the order of contract §3:
//
//	route → request id → key → limits → scope → media type and size → JSON →
//	fields (the handler's first half) → one transaction (its second half) →
//	encode → write → one line in the log
//
// serve owns it all, so that a handler is a few lines: it reads its fields
// and returns what is to be done in the transaction.

// maxBody bounds a request's body, in bytes.
const maxBody = 1 << 20

// api serves the public API.
type api struct {
	engine  *engine
	limiter *limiter
	trusted []netip.Prefix // proxies whose X-Forwarded-For is believed
	log     *slog.Logger
	mux     *http.ServeMux
}

func newAPI(e *engine, trusted []netip.Prefix, log *slog.Logger) *api {
	a := &api{engine: e, limiter: newLimiter(), trusted: trusted, log: log, mux: http.NewServeMux()}
	for _, r := range a.routes() {
		a.mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) {
			w.(*exchange).serve(r, req)
		})
	}
	return a
}

// A route is one endpoint.
type route struct {
	pattern string // as http.ServeMux takes it
	scope   string // "" for what needs no key
	handle  func(*request) (action, error)
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
}

// pathID is an id in the path; the zero id, which nothing has, if it is none.
func (r *request) pathID(name string) id {
	u, _ := parseID(r.PathValue(name))
	return u
}

// An exchange is one request on its way and the response to it.
type exchange struct {
	http.ResponseWriter
	api       *api
	requestID string
	started   time.Time
	now       instant

	status int
	logged []slog.Attr
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := a.engine.now()
	x := &exchange{ResponseWriter: w, api: a, requestID: requestID(r), started: started, now: instantOf(started)}
	h := w.Header()
	h["X-Request-Id"] = []string{x.requestID}
	h["Cache-Control"] = []string{"no-store"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	if len(r.TransferEncoding) > 0 {
		h.Set("Connection", "close") // a body of unstated length is no basis for a next request
	}
	defer x.finish(r)
	if !strings.HasPrefix(r.URL.Path, "/") || path.Clean(r.URL.Path) != r.URL.Path {
		x.fail(newError("route_not_found")) // else ServeMux would redirect
		return
	}
	a.mux.ServeHTTP(x, r)
}

// requestID is the caller's own, if it is 1 to 128 printable ASCII
// characters, or a new one.
func requestID(r *http.Request) string {
	if given := r.Header.Get("X-Request-Id"); given != "" && len(given) <= 128 && isPrintable(given) {
		return given
	}
	return newRequestID()
}

func newRequestID() string { return rand.Text() }

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// finish answers for a panic and writes the log line.
func (x *exchange) finish(r *http.Request) {
	if p := recover(); p != nil {
		if p == http.ErrAbortHandler {
			panic(p)
		}
		x.api.log.Error("panic", "requestId", x.requestID, "cause", fmt.Sprint(p), "stack", string(debug.Stack()))
		if x.status == 0 {
			x.fail(newError("internal"))
		}
	}
	attrs := append([]slog.Attr{
		slog.String("requestId", x.requestID),
		slog.String("method", knownMethod(r.Method)),
		slog.Int("status", x.status),
		slog.Float64("ms", float64(x.api.engine.now().Sub(x.started).Microseconds())/1000),
	}, x.logged...)
	x.api.log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelInfo, "request", attrs...)
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

// serve takes a request with a route all the way.
func (x *exchange) serve(rt route, r *http.Request) {
	_, pattern, _ := strings.Cut(rt.pattern, " ")
	x.logged = append(x.logged, slog.String("route", pattern))
	status, body, err := x.answer(rt, r)
	if err != nil {
		x.fail(err)
		return
	}
	x.write(status, body)
}

// answer is serve without the writing.
func (x *exchange) answer(rt route, r *http.Request) (status int, body []byte, err error) {
	req := &request{Request: r, now: x.now}
	if rt.scope != "" {
		if req.caller, err = x.admit(rt, r); err != nil {
			return 0, nil, err
		}
	}
	if r.Method == http.MethodPost {
		if err := x.readBody(req); err != nil {
			return 0, nil, err
		}
		// A slow body took its time: what happens, happens now.
		x.now = instantOf(x.api.engine.now())
		req.now = x.now
	}
	if req.query, err = parseQuery(r.URL.RawQuery); err != nil {
		return 0, nil, err
	}
	act, err := rt.handle(req)
	if err == nil {
		err = firstFault(req.fields.input, req.query.input)
	}
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

// admit does all that comes before a request's own content: its key, where it
// comes from, its limits and its scope.
func (x *exchange) admit(rt route, r *http.Request) (caller, error) {
	sent, fault := sentKey(r.Header)
	if fault != nil {
		return caller{}, fault
	}
	c, err := x.api.engine.authenticate(r.Context(), sent, sourceAddress(r, x.api.trusted), x.now)
	if c.key != nil {
		x.logged = append(x.logged, slog.String("key", c.key.ID.String()))
	}
	if err != nil {
		return c, err
	}
	x.logged = append(x.logged, slog.String("organization", c.cfg.Organization.Slug))
	quotas, err := x.api.limiter.take(r.Context(), x.api.engine.store, c.key, x.now)
	if quotas != nil {
		setLimitHeaders(x.Header(), quotas, x.now)
	}
	if err != nil {
		return c, err
	}
	if !c.key.allows(rt.scope) {
		e := newError("scope_required")
		e.message += rt.scope
		return c, e
	}
	return c, nil
}

// readBody takes in the body of a POST and splits it into its members. A
// POST that needs no body may come without one.
func (x *exchange) readBody(req *request) error {
	if req.ContentLength == 0 && req.bodyOptional() {
		req.fields = newFields(nil)
		return x.readRetryKey(req)
	}
	if !isJSON(req.Header) {
		return newError("unsupported_media_type")
	}
	if req.ContentLength > maxBody { // told before the client is asked to go on
		return newError("body_too_large")
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.ResponseWriter, req.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return newError("body_too_large")
	}
	if err != nil {
		return newError("invalid_json")
	}
	members, ok := parseObject(body)
	if !ok {
		return newError("invalid_json")
	}
	req.body, req.fields = body, newFields(members)
	return x.readRetryKey(req)
}

// bodyOptional tells whether the endpoint takes nothing from its body.
func (r *request) bodyOptional() bool { return strings.HasSuffix(r.Pattern, "/cancel") }

// isJSON tells whether the body is declared as JSON in UTF-8, not compressed.
func isJSON(h http.Header) bool {
	types, encoding := h["Content-Type"], h.Get("Content-Encoding")
	if len(types) != 1 || encoding != "" && !strings.EqualFold(encoding, "identity") {
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
	v, err := read(req.Context(), x.api.engine, req.key.Org, x.now, act)
	return encodeReply(v, http.StatusOK, err)
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
	// Once begun, a write is finished even if its client has gone.
	ctx := context.WithoutCancel(req.Context())
	given, err := write(ctx, x.api.engine, req.key.Org, x.now, func(t *txn) (answer, error) {
		i, first, err := t.firstReplay(req.retries)
		if err != nil {
			return answer{}, err
		}
		if first != nil {
			status := cmp.Or(req.retries[i].status, first.Status)
			for _, other := range req.retries[:i] { // a retry of this one may know it by that key alone
				if err := t.keepReplay(other, status, first.Body); err != nil {
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
		for _, k := range req.retries {
			if err := t.keepReplay(k, status, body); err != nil {
				return answer{}, err
			}
		}
		return answer{status, body, false}, nil
	})
	return x.give(given, err)
}

// rehearse tells what a POST would answer, and writes nothing. An
// Idempotency-Key says nothing here: it belongs to a request that says
// nothing of a dry run.
func (x *exchange) rehearse(req *request, act action) (int, []byte, error) {
	retries := req.retries[len(req.Header["Idempotency-Key"]):]
	given, err := rehearse(req.Context(), x.api.engine, req.key.Org, x.now, func(t *txn) (answer, error) {
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
	body, err := encode(v)
	return status, body, err
}

// encode writes a response's body: JSON as it reads best, with a line end.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// errorBody is what every error looks like (contract §2).
type errorBody struct {
	StatusCode int            `json:"statusCode"`
	Code       string         `json:"code"`
	Message    string         `json:"message"`
	RequestID  string         `json:"requestId"`
	Field      string         `json:"field,omitempty"`
	Context    map[string]any `json:"context,omitempty"`
}

// WriteHeader and Write are called by ServeMux alone, where it finds no route:
// with 404 or, the Allow header set, 405. Its text gives way to our own.

func (x *exchange) WriteHeader(status int) {
	if status == http.StatusMethodNotAllowed {
		x.fail(newError("method_not_allowed"))
	} else {
		x.fail(newError("route_not_found"))
	}
}

func (x *exchange) Write(text []byte) (int, error) { return len(text), nil }

// fail answers with an error. Only what publicError lets through is told; the
// cause of anything else is logged.
func (x *exchange) fail(err error) {
	e := publicError(err)
	x.logged = append(x.logged, slog.String("code", e.code))
	if e.status >= 500 && !errors.Is(err, context.Canceled) { // a client that has gone is no failure
		x.api.log.Error("failed", "requestId", x.requestID, "cause", err.Error())
	}
	for name, values := range e.headers {
		x.Header()[name] = values
	}
	if e.status == http.StatusUnauthorized {
		x.Header()["WWW-Authenticate"] = []string{"Bearer"}
	}
	body, err := encode(errorBody{e.status, e.code, e.message, x.requestID, e.field, e.context})
	if err != nil {
		x.api.log.Error("failed", "requestId", x.requestID, "cause", err.Error())
	}
	x.write(e.status, body)
}

func (x *exchange) write(status int, body []byte) {
	x.status = status
	h := x.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	x.ResponseWriter.WriteHeader(status)
	x.ResponseWriter.Write(body) // a client that has gone is no fault of ours
}
