package main

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"sello/internal/cert"
	"sello/internal/gate"
	"sello/internal/lastword"
)

// net/http answers what it does not understand as an HTTP request by itself, before any
// handler: as plain text or without a body, and sometimes with a 5xx for a client's
// fault. Contract §2 wants every error in one form. The only hook is the connection:
// what net/http writes there passes through internal/lastword, and our refusal replaces its own.
// Ours has a new request id, since the headers were not read or cannot be trusted.
//
//	400 bad_request         malformed in any way; a version or Transfer-Encoding not known
//	417 expectation_failed  an Expect other than 100-continue
//	431 headers_too_large   request line and headers of more than maxHeader
//
// RFC 9110 asks for 505 for the version, and RFC 9112 for 501 for the Transfer-Encoding.
// Both would tell clients to retry and operators that sello is at fault.
//
// Here are also the bounds of connections, and the answer to a connection that is refused.

// refusalOf returns what replaces net/http's refusal with a status.
func (a *api) refusalOf(status string) []byte {
	switch status {
	case "417":
		return a.refusal(codeExpectationFailed)
	case "431":
		return a.refusal(codeHeadersTooLarge)
	}
	return a.refusal(codeBadRequest)
}

// refusal returns the response to a request that could not be read, and logs it.
func (a *api) refusal(code errorCode) []byte {
	answer := &refusalWriter{header: http.Header{}}
	nothing := new(http.Request)
	x := a.newExchange(answer, nothing)
	x.fail(newError(code))
	x.finish(nothing)
	return lastword.Response(x.status, answer.header, answer.body.Bytes(), x.started)
}

// A refusalWriter holds a response.
type refusalWriter struct {
	header http.Header
	body   bytes.Buffer
}

func (w *refusalWriter) Header() http.Header            { return w.header }
func (w *refusalWriter) WriteHeader(int)                {}
func (w *refusalWriter) Write(text []byte) (int, error) { return w.body.Write(text) }

// Default bounds of connections. One address may carry every till of a chain, each with
// a few connections.
const (
	defaultMaxConns          = 4096
	defaultMaxConnsPerSource = 512
)

// reservedFiles are file descriptors kept for everything but bounded connections: the
// store, which does not survive failing to open a file, the socket, and refusals.
const reservedFiles = gate.MaxAnswering + 64

// loopback are this machine's own addresses: a proxy that carries everybody has one, or the
// operator.
var loopback = [...]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// refusalTime is how long the answer to a refused connection may take.
const refusalTime = time.Second

// newGate bounds the connections of a listener. page makes the answer to a refused request for the
// panel, and sets its headers; nil: it gets JSON.
func newGate(l *net.TCPListener, most, mostPerSource int, carriers []netip.Prefix, page func(http.Header) []byte, log *slog.Logger) *gate.Gate {
	refuse := func(c *net.TCPConn) { answerRefusal(c, page) }
	return gate.New(l, gate.Rules{Most: most, MostPerSource: mostPerSource, Carriers: carriers, SourceOf: sourceOf, Refuse: refuse}, log)
}

// answerRefusal answers the first request of a connection with 503, like any other error, and
// closes the connection. It waits for the request, since many clients take an earlier
// answer for a fault. It then waits for the client to close, since closing with unread
// bytes could make the client lose the answer. A request for a page of the panel gets a page.
// With -tls-cert the gate is below TLS: it cannot read the request, nor the client its answer.
func answerRefusal(c *net.TCPConn, page func(http.Header) []byte) {
	defer c.Close()
	now := time.Now()
	end := now.Add(refusalTime)
	c.SetDeadline(end)
	asked := make([]byte, 512)
	n, err := c.Read(asked)
	if err != nil {
		return
	}
	e, requestID := publicError(errUnavailable), rand.Text()
	body, _ := encode(e.body(requestID))
	h := e.headers.Clone()
	h["Content-Type"], h["Cache-Control"] = jsonType, noStore
	h.Set("X-Request-Id", requestID)
	if page != nil && isPanelPath(pathIn(asked[:n])) {
		body = page(h)
	}
	lastword.Write(c, lastword.Response(e.code.status, h, body, now), end, maxBody)
}

// pathIn returns the path that a request line asks for; "" if it is not whole.
func pathIn(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(" "))
	if end := bytes.IndexAny(rest, " ?"); end >= 0 {
		return string(rest[:end])
	}
	return ""
}

// TLS of the public API, for whoever runs sello without a proxy before it. A plain request to a TLS
// server is answered with an error that says so.
//
// It carries HTTP/1.1 alone. A till sends one request at a time and gains nothing from
// HTTP/2. The frames of HTTP/2 would also pass by what bounds and refuses requests here
// (request_connections.go, internal/unwatched), and its streams have been the cheapest way to
// attack servers (rapid resets, endless headers).

// encrypted wraps the listener of the public API for TLS.
func (a *api) encrypted(l net.Listener, pair *cert.Pair) net.Listener {
	return lastword.TLS(l, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Look(time.Now()), nil },
	}, func() []byte { return a.refusal(codeHTTPSRequired) })
}

// Bounds of connections to -http-redirect, which end after one request.
const (
	redirectConns          = 256
	redirectConnsPerSource = 32
)

// redirects returns the handler of -http-redirect. It sends browsers to the panel's address
// (origin) where that is known, or else to the port of the API. What carries a key or would change something is refused instead: redirected, it
// would go on sending its key for all to read, and nobody would notice.
func (a *api) redirects(port int, origin string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		target, ok := httpsURL(r, port)
		if origin != "" {
			target, ok = origin, true
		}
		path := r.URL.EscapedPath()
		if ok = ok && strings.HasPrefix(path, "/"); r.URL.RawQuery != "" {
			path += "?" + r.URL.RawQuery
		}
		if target += path; ok && reads && r.Header.Get("Authorization") == "" && r.Header.Get("X-Api-Key") == "" {
			w.Header().Set("Location", target)
			w.WriteHeader(http.StatusPermanentRedirect)
			return
		}
		x := a.newExchange(w, r)
		x.fail(newError(codeHTTPSRequired))
		x.finish(r)
	})
}

// httpsURL is the request's scheme and host over TLS.
func httpsURL(r *http.Request, port int) (string, bool) {
	host := hostOf(r)
	switch {
	case host == "":
		return "", false
	case port != 443:
		host = net.JoinHostPort(host, strconv.Itoa(port))
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return "https://" + host, true
}
