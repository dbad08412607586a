package main

import (
	"cmp"
	"net/http"
	"path"
	"strings"
	"time"

	"sello/internal/static"
)

// The steps of a request, in the order of contract §3:
//
//	route → request id → key → limits → scope → the clock, for a write → media type
//	and size → JSON → fields (the handler's first half) → one transaction (its second
//	half) → encode → write → one line in the log
//
// serve owns all of them. A handler is a few lines: it reads its fields and returns the
// action to run in the transaction.

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	status, body, err := x.answer(rt, r)
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
	if req.apart && err == nil {
		v, err := act(nil)
		return encodeReply(v, http.StatusOK, err)
	}
	return x.commit(req, act)
}

// writes reports whether requests of a method write: all but GET and HEAD do.
func writes(method string) bool { return method != http.MethodGet && method != http.MethodHead }

// readFields runs the first half of a handler. err is the first fault of the request.
func (x *exchange) readFields(rt *route, req *request) (act action, err error) {
	if lines := req.Header["Prefer"]; len(lines) > 0 && prefersStrict(lines) {
		req.strict = true
		req.fields.beStrict()
		req.query.beStrict()
		x.Header()["Preference-Applied"] = isStrict
	}
	act = rt.handle(req)
	// Who asks for a rehearsal of what has none must not get the act itself (contract §31).
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

// takeMore counts a request that is many in one as all of them. If a limit does not
// allow that, it counts as none.
func (x *exchange) takeMore(req *request) error {
	err := x.api.limiter.takeMore(req.key, int(req.more), req.now, &x.allowance)
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

// read runs the action of a GET.
func (x *exchange) read(req *request, act action) (int, []byte, error) {
	if req.cfg == nil { // a route without a key has no organization to read
		v, err := act(nil)
		if p, ok := v.(*static.Content); ok {
			status, body := p.Respond(x.Header(), req.Request)
			return status, body, nil
		}
		return encodeReply(v, http.StatusOK, err)
	}
	if req.wait > 0 {
		return x.readWhenEvents(req, act)
	}
	if req.large {
		return x.readLarge(req, act)
	}
	return x.readSmall(req, act)
}

// After the first new event, a request that waits gathers events for eventsDelay before it
// answers. Every eventsPoll it looks for events that another process wrote.
const (
	eventsDelay = 50 * time.Millisecond
	eventsPoll  = time.Second
)

// readWhenEvents runs the action until it finds events, has skipped as many as it may, or the
// request has waited long enough.
func (x *exchange) readWhenEvents(req *request, act action) (status int, body []byte, err error) {
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
		if status, body, err = x.readLarge(req, look); err != nil || found {
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

func (x *exchange) readSmall(req *request, act action) (int, []byte, error) {
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

// readLarge runs the action of a large GET.
func (x *exchange) readLarge(req *request, act action) (status int, body []byte, err error) {
	if err := x.beginWork(x.api.reading); err != nil {
		return 0, nil, err
	}
	defer x.endWork()
	status, body, err = x.readSmall(req, act)
	if len(body) > smallAnswer {
		x.held.answer, err = x.api.answers.Take(x.context(), unitsOf(len(body)), answerWait)
	}
	return status, body, err
}

// An answer is the outcome of a POST.
type answer struct {
	status   int
	body     []byte
	replayed bool
	etag     string // "" without
	value    any    // what the action returned; nil if it was not run
}

// commit runs the action of a POST, or finds the answer that the request got before. An
// answer it returns is on disk.
func (x *exchange) commit(req *request, act action) (int, []byte, error) {
	if req.dryRun {
		return x.rehearse(req, act)
	}
	given, err := write(x.context(), x.api.engine, req.cfg.Number, x.request.now, func(t *txn) (answer, error) {
		if err := x.writesAs(t); err != nil {
			return answer{}, err
		}
		if err := t.inTime(); err != nil {
			return answer{}, err
		}
		return once(t, req.retries, act)
	})
	return x.give(given, err)
}

// once runs an action and keeps its answer, or finds the answer that is kept under one of the
// keys.
func once(t *txn, retries []retryKey, act action) (answer, error) {
	i, first, err := t.replays.first(retries)
	if err != nil {
		return answer{}, err
	}
	if first != nil {
		status := cmp.Or(retries[i].status, first.Status)
		// A retry of this request may carry that key alone.
		for _, other := range retries[:i] {
			if err := t.replays.keep([]retryKey{other}, status, first.Body); err != nil {
				return answer{}, err
			}
		}
		return answer{status: status, body: first.Body, replayed: true}, nil
	}
	v, err := act(t)
	status, body, err := encodeReply(v, http.StatusCreated, err)
	if err != nil {
		return answer{}, err
	}
	return answer{status, body, isRepeated(v), tagOf(v), v}, t.replays.keep(retries, status, body)
}

// rehearse returns what a POST would answer, and writes nothing. It ignores the
// Idempotency-Key, which belongs to the request without dryRun.
func (x *exchange) rehearse(req *request, act action) (int, []byte, error) {
	retries := req.retries[len(req.Header["Idempotency-Key"]):]
	given, err := rehearse(x.context(), x.api.engine, req.cfg.Number, x.request.now, func(t *txn) (answer, error) {
		if err := x.writesAs(t); err != nil {
			return answer{}, err
		}
		_, first, err := t.replays.first(retries)
		if err != nil {
			return answer{}, err
		}
		if first != nil {
			return answer{status: http.StatusOK, body: first.Body, replayed: true}, nil
		}
		v, err := act(t)
		status, body, err := encodeReply(v, http.StatusOK, err)
		return answer{status, body, isRepeated(v), tagOf(v), v}, err
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
