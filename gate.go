package main

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"sello/internal/gate"
)

// Default bounds of connections. One address may carry every till of a chain, each with
// a few connections.
const (
	defaultMaxConns          = 4096
	defaultMaxConnsPerSource = 512
)

// reservedFiles are file descriptors kept for everything but bounded connections: the
// store, which does not survive failing to open a file, the socket, and refusals.
const reservedFiles = gate.MaxAnswering + 64

// loopback are this machine's own addresses: those of a proxy that carries everybody,
// or of the operator.
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
	lastWrite(c, lastAnswer(e.code.status, h, body, now), end, maxBody)
}

// pathIn returns the path that a request line asks for; "" if it is not whole.
func pathIn(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(" "))
	if end := bytes.IndexAny(rest, " ?"); end >= 0 {
		return string(rest[:end])
	}
	return ""
}
