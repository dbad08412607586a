package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sello/internal/static"
)

// The steps of a request, in the order of contract §3:
//
//	route → request id → key → limits → scope → the clock, for a write → media type
//	and size → JSON → fields (the handler's first half) → one transaction (its second
//	half) → encode → write → one line in the log
//
// This file is that way, from ServeHTTP to the last byte, and every step stands after the one
// that calls it. read… is the half that reads what the client sent, run… the half that has the
// transaction. A handler is a few lines of each: it reads its fields and returns the action to
// run.

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.answer(w, r, a.dispatch) }

// answer makes the exchange of a request and has it served.
func (a *api) answer(w http.ResponseWriter, r *http.Request, serve func(*exchange, *http.Request)) {
	if a.enter != nil {
		defer a.enter(r)()
	}
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
	serve(x, r)
}

// dispatch gives a request to who answers it.
func (a *api) dispatch(x *exchange, r *http.Request) {
	if a.site != nil && a.site.answers(r) {
		a.site.serve(x, r)
		return
	}
	if a.panel != nil && (isPanelPath(r.URL.Path) || isBrowserAtRoot(r)) {
		a.panel.serve(x, r)
		return
	}
	if !isClean(r.URL.Path) {
		x.fail(newError(codeRouteNotFound))
		return
	}
	a.mux.ServeHTTP(x, r)
}

// newExchange begins the response to a request.
func (a *api) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	started, clock := a.engine.clock.Read()
	x := &exchange{ResponseWriter: w, api: a, number: -1, started: started.Wall, request: request{Request: r, now: instantOf(clock.Moment(started))}}
	x.request.query.fault = &x.noQuery
	x.requestID[0], x.idGiven = a.requestID(r)
	h := w.Header()
	h["X-Request-Id"] = x.requestID[:]
	h["Cache-Control"] = noStore
	if a.mode != nil {
		h["Sello-Mode"] = a.mode
	}
	return x
}

// isClean reports whether ServeMux would take a path as it is, rather than redirect to another.
func isClean(p string) bool { return strings.HasPrefix(p, "/") && path.Clean(p) == p }

// isPanelPath reports whether a path is the panel's.
func isPanelPath(path string) bool {
	rest, is := strings.CutPrefix(path, "/panel")
	return is && (rest == "" || rest[0] == '/')
}

// isBrowserAtRoot reports whether somebody typed the server's address into a browser, who wants
// the panel. To a client of the API, / is a path that does not exist.
func isBrowserAtRoot(r *http.Request) bool {
	return r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// serve answers a request that has a route.
func (x *exchange) serve(rt *route, r *http.Request) {
	status, body, err := x.run(rt, r)
	if err != nil {
		x.fail(err)
		return
	}
	x.write(status, body)
	if x.rest == nil {
		return
	}
	x.caught = nil                                                      // the client may take its time
	if err := x.rest.write(x.context(), x.ResponseWriter); err != nil { // the status is sent: end the connection before the body ends
		x.api.log.Error("cut off", "requestId", x.requestID[0], "cause", err.Error())
		panic(http.ErrAbortHandler)
	}
}

// run returns the response that serve writes: what is read of the request first, then the
// transaction.
func (x *exchange) run(rt *route, r *http.Request) (status int, body []byte, err error) {
	req := &x.request
	req.Request = r
	if rt.scope != "" {
		if req.caller, err = x.admit(rt, r); err != nil {
			return 0, nil, err
		}
	}
	if writes(r.Method) {
		if _, err := x.api.engine.momentToWrite(); err != nil {
			return 0, nil, err
		}
		if err := x.readBody(req); err != nil {
			return 0, nil, err
		}
		if err := req.readActor(); err != nil {
			return 0, nil, err
		}
		// A slow body takes its time. The request happens once the body is complete.
		if req.now, err = x.api.engine.momentToWrite(); err != nil {
			return 0, nil, err
		}
	}
	if r.URL.RawQuery != "" {
		if req.query, err = parseQuery(r.URL.RawQuery); err != nil {
			return 0, nil, err
		}
	}
	act, err := x.readFields(rt, req)
	if !writes(r.Method) {
		if err != nil {
			return 0, nil, err
		}
		return x.runRead(req, act)
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
	if req.apart && err == nil {
		v, err := act(nil)
		return encodeReply(v, http.StatusOK, err)
	}
	return x.runWrite(req, act)
}

// writes reports whether requests of a method write: all but GET and HEAD do.
func writes(method string) bool { return method != http.MethodGet && method != http.MethodHead }

// admit checks what precedes the content of a request: its key, its source, its limits
// and its scope.
func (x *exchange) admit(rt *route, r *http.Request) (caller, error) {
	sent, fault := sentKey(r.Header)
	if fault != nil {
		return caller{}, x.refuse(r, fault)
	}
	// What the request is admitted by, and what it reads, is as of a moment after it came.
	var err error
	if x.caught, err = x.api.engine.store.catchUp(x.context(), x.api.engine.likelyPart(sent)...); err != nil {
		return caller{}, err
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

// takeMore counts a request that is many in one as all of them. If a limit does not
// allow that, it counts as none.
func (x *exchange) takeMore(req *request) error {
	err := x.api.limiter.takeMore(req.key, int(req.more), req.now, &x.allowance)
	x.allowance.setHeaders(x.Header(), req.now)
	return err
}

// readBody reads the body of a POST and splits it into its members. A POST that needs
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

// takeBody reads a whole body. It takes units for a large one only after the first
// smallBody bytes have come, so that a client that sends nothing holds no units.
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
	if x.held.body, err = x.api.bodies.Take(x.context(), unitsOf(length), semaphoreWait); err != nil {
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

// readRetryKey reads the Idempotency-Key (contract §6).
func (x *exchange) readRetryKey(req *request) error {
	given := req.Header["Idempotency-Key"]
	if len(given) == 0 || req.Method != http.MethodPost {
		return nil
	}
	if len(given) > 1 || given[0] == "" || len(given[0]) > 255 || !isPrintable(given[0]) {
		return invalidField("Idempotency-Key", "debe tener de 1 a 255 caracteres ASCII imprimibles")
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
		return invalidField("X-Actor", "se envió dos veces")
	}
	r.actor = trimBlanks(given[0])
	if !utf8.ValidString(r.actor) || utf8.RuneCountInString(r.actor) > maxActor || strings.ContainsFunc(r.actor, unicode.IsControl) {
		return invalidField("X-Actor", "debe tener como máximo 100 caracteres UTF-8, sin caracteres de control")
	}
	return nil
}

// readFields runs the first half of a handler. err is the first fault of the request.
func (x *exchange) readFields(rt *route, req *request) (act action, err error) {
	if lines := req.Header["Prefer"]; len(lines) > 0 && prefersStrict(lines) {
		req.strict = true
		req.fields.beStrict()
		req.query.beStrict()
		x.Header()["Preference-Applied"] = isStrict
	}
	act = rt.handle(req)
	// A rehearsal asked of a route that has none must not become the act itself (contract §31).
	if asked, _ := req.query.object.get("dryRun"); writes(req.Method) && !req.rehearses && asked != "" && asked != "false" {
		return act, newError(codeDryRunUnavailable).on("dryRun")
	}
	return act, req.firstFault(maxFaults)
}

// firstFault returns the first fault in what a handler read, the body before the query. If
// the request is strict, the fault has up to most others beside it.
func (r *request) firstFault(most int) error {
	if r.strict {
		return strictFault(most, r.fields.collected(), r.query.collected())
	}
	for _, in := range [...]input{r.fields.input, r.query.input} {
		if in.fault != nil && in.err != nil {
			return in.err
		}
	}
	return nil
}

// runRead runs the action of a GET.
func (x *exchange) runRead(req *request, act action) (int, []byte, error) {
	if req.cfg == nil { // a route without a key has no organization to read
		v, err := act(nil)
		if p, ok := v.(*static.Content); ok {
			status, body := p.Respond(x.Header(), req.Request)
			return status, body, nil
		}
		return encodeReply(v, http.StatusOK, err)
	}
	if req.wait > 0 {
		return x.runUntilEvents(req, act)
	}
	if req.large {
		return x.runLarge(req, act)
	}
	return x.runSmall(req, act)
}

// After the first new event, a request that waits gathers events for eventsDelay before it
// answers. Every eventsPoll it looks for events that another process wrote.
const (
	eventsDelay = 50 * time.Millisecond
	eventsPoll  = time.Second
)

// runUntilEvents runs the action until it finds events, has skipped as many as it may, or the
// request has waited long enough.
func (x *exchange) runUntilEvents(req *request, act action) (status int, body []byte, err error) {
	waited := time.After(time.Duration(req.wait) * time.Second)
	for {
		woken := x.api.engine.store.eventWaiters.wait(req.cfg.Number)
		found, last := false, false
		look := func(t *txn) (any, error) {
			v, err := act(t)
			if list, ok := v.(eventList); ok {
				n, err := t.count()
				if err != nil {
					return nil, err
				}
				found = len(list.Data) > 0 || list.Next < n.Events
			}
			return v, err
		}
		if status, body, err = x.runLarge(req, look); err != nil || found {
			return status, body, err
		}
		x.giveAnswer()
		select {
		case <-woken:
			time.Sleep(eventsDelay)
		case <-time.After(eventsPoll):
		case <-waited:
			last = true
		case <-x.api.stopping:
			last = true
		}
		if last {
			return status, body, err
		}
		req.now = instantOf(x.api.engine.now()) // what comes is shown as it is then
		x.caught = nil
	}
}

// runLarge runs the action of a large GET.
func (x *exchange) runLarge(req *request, act action) (status int, body []byte, err error) {
	if err := x.beginWork(x.api.reading); err != nil {
		return 0, nil, err
	}
	defer x.endWork()
	status, body, err = x.runSmall(req, act)
	if len(body) > smallAnswer {
		x.held.answer, err = x.api.answers.Take(x.context(), unitsOf(len(body)), answerWait)
	}
	return status, body, err
}

func (x *exchange) runSmall(req *request, act action) (int, []byte, error) {
	v, err := read(x.context(), x.api.engine, req.cfg.Number, x.request.now, act)
	if err == nil {
		x.setTag(tagOf(v))
	}
	if all, ok := v.(bodyParts); ok && err == nil {
		x.rest = &partedBody{rest: all, engine: x.api.engine, org: req.cfg.Number, now: x.request.now, processors: x.api.reading}
		first, err := x.rest.read(x.context())
		return http.StatusOK, first, err
	}
	return encodeReply(v, http.StatusOK, err)
}

// A posted is the outcome of a POST.
type posted struct {
	status   int
	body     []byte
	replayed bool
	etag     string // "" without
	value    any    // what the action returned; nil if it was not run
}

// runWrite runs the action of a POST, or finds the answer that the request got before. An
// answer it returns is on disk.
func (x *exchange) runWrite(req *request, act action) (int, []byte, error) {
	if req.dryRun {
		return x.runDryRun(req, act)
	}
	given, err := write(x.context(), x.api.engine, req.cfg.Number, x.request.now, func(t *txn) (posted, error) {
		if err := x.writesAs(t); err != nil {
			return posted{}, err
		}
		if err := t.inTime(); err != nil {
			return posted{}, err
		}
		return runOnce(t, req.retries, act)
	})
	return x.reply(given, err)
}

// runOnce runs an action and keeps its answer, or finds the answer that is kept under one of the
// keys.
func runOnce(t *txn, retries []retryKey, act action) (posted, error) {
	i, first, err := t.replays.first(retries)
	if err != nil {
		return posted{}, err
	}
	if first != nil {
		status := cmp.Or(retries[i].status, first.Status)
		// A retry of this request may carry that key alone.
		for _, other := range retries[:i] {
			if err := t.replays.keep([]retryKey{other}, status, first.Body); err != nil {
				return posted{}, err
			}
		}
		return posted{status: status, body: first.Body, replayed: true}, nil
	}
	v, err := act(t)
	status, body, err := encodeReply(v, http.StatusCreated, err)
	if err != nil {
		return posted{}, err
	}
	return posted{status, body, isRepeated(v), tagOf(v), v}, t.replays.keep(retries, status, body)
}

// runDryRun returns what a POST would answer, and writes nothing. It ignores the
// Idempotency-Key, which belongs to the request without dryRun.
func (x *exchange) runDryRun(req *request, act action) (int, []byte, error) {
	retries := req.retries[len(req.Header["Idempotency-Key"]):]
	given, err := rehearse(x.context(), x.api.engine, req.cfg.Number, x.request.now, func(t *txn) (posted, error) {
		if err := x.writesAs(t); err != nil {
			return posted{}, err
		}
		_, first, err := t.replays.first(retries)
		if err != nil {
			return posted{}, err
		}
		if first != nil {
			return posted{status: http.StatusOK, body: first.Body, replayed: true}, nil
		}
		v, err := act(t)
		status, body, err := encodeReply(v, http.StatusOK, err)
		return posted{status, body, isRepeated(v), tagOf(v), v}, err
	})
	return x.reply(given, err)
}

// writesAs names the caller as who makes what the transaction writes. The body may have
// taken long to come: it fails if the key no longer admits the request.
func (x *exchange) writesAs(t *txn) error {
	c, err := x.callerNow(t)
	if err != nil {
		return err
	}
	t.by, t.byKey, t.requestID = creator{byKey, c.key.ID, x.request.actor}, c.key, x.auditID()
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

// reply returns an answer. It marks one that was replayed in the headers.
func (x *exchange) reply(a posted, err error) (int, []byte, error) {
	if a.replayed {
		x.Header()["Idempotency-Replayed"] = []string{"true"}
	}
	if err == nil {
		x.setTag(a.etag)
	}
	return a.status, a.body, err
}

func encodeReply(v any, status int, err error) (int, []byte, error) {
	if err != nil {
		return 0, nil, err
	}
	switch r := v.(type) {
	case reply:
		v, status = r.body, r.status
	case tagged:
		v, status = r.body, http.StatusOK
	case repeated:
		v, status = r.body, http.StatusOK
	}
	body, err := encode(v)
	return status, body, err
}

func (x *exchange) setTag(etag string) {
	if etag != "" {
		x.Header()["Etag"] = []string{etag}
	}
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
	if len(body) >= netHTTPBuffer && (x.rest == nil || x.rest.rest == nil) {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	x.ResponseWriter.WriteHeader(status)
	x.ResponseWriter.Write(body) // fails if the client has gone, which is no error here
}

// fail answers with an error. The client gets only what publicError lets through; the
// cause of a 5xx is logged.
func (x *exchange) fail(err error) {
	if x.asPage != nil {
		x.asPage.fail(err)
		return
	}
	e := x.note(err)
	if e.code.status == http.StatusUnauthorized {
		x.Header()["WWW-Authenticate"] = []string{"Bearer"}
	}
	body, err := encode(e.body(x.requestID[0]))
	if err != nil {
		x.api.log.Error("failed", "requestId", x.requestID[0], "cause", err.Error())
	}
	x.write(e.code.status, body)
}

// note returns the client's error for an error. It counts it, sets its headers, and logs the
// cause of a 5xx.
func (x *exchange) note(err error) *apiError {
	e := publicError(err)
	x.code = e.code.name
	if x.api.counts != nil {
		x.api.counts.failed(e.code, err)
	}
	// What /readyz says, and of the clock, is an apiError. It was logged once, where it was found.
	if _, logged := errors.AsType[*apiError](err); e.code.status >= 500 && !logged {
		x.api.log.Error("failed", "requestId", x.requestID[0], "cause", err.Error())
	}
	for name, values := range e.headers {
		x.Header()[name] = values
	}
	return e
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

// finish gives back units, answers a request that panicked, counts the request, keeps it for
// the panel and writes the log line.
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
	if x.status >= http.StatusInternalServerError {
		x.api.faults.Add(1)
	}
	logged := x.api.lines != nil && x.status >= x.api.loggedFrom
	kept := x.api.requests != nil && x.request.key != nil && x.request.cfg != nil
	if !logged && !kept && x.api.counts == nil {
		return
	}
	ended := x.api.engine.clock.Machine.Read().Wall
	if x.api.counts != nil {
		x.api.counts.answered(x.number, r.Method, x.status, ended.Sub(x.started))
	}
	if kept {
		x.api.requests.Add(x.request.cfg.Number, loggedRequest{
			At: x.request.now, Key: x.request.key.ID, RequestID: x.requestID[0], Code: x.code,
			micros: uint32(min(ended.Sub(x.started).Microseconds(), math.MaxUint32)), route: int16(x.number), Status: uint16(x.status),
		})
	}
	if logged {
		var line [512]byte
		x.api.lines.Add(x.appendLogLine(line[:0], r, ended))
	}
}
