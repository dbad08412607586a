package main

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Default bounds of connections. One address may carry every till of a chain, each with
// a few connections.
const (
	defaultMaxConns          = 4096
	defaultMaxConnsPerSource = 512
)

// reservedFiles are file descriptors kept for everything but bounded connections: the
// store, which does not survive failing to open a file, the socket, and refusals.
const reservedFiles = maxAnswering + 64

// loopback are this machine's own addresses: those of a proxy that carries everybody,
// or of the operator.
var loopback = [...]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// A gate is a listener that bounds how many connections are open, in all and per
// source. No source may hold more than are still free, so that a few sources cannot
// take all.
type gate struct {
	*net.TCPListener
	most, mostPerSource int
	carriers            []netip.Prefix // peers that bring others' requests; only most bounds them
	log                 *slog.Logger
	answering           chan struct{}            // one element for each refusal being answered
	page                func(http.Header) []byte // makes the answer to a refused request for the panel, and sets its headers; nil: it gets JSON

	mu       sync.Mutex
	open     int
	bySource map[netip.Addr]int // all above 0; a carrier's too
	refused  int                // since the last log line
	turned   uint64             // refused in all
	logged   time.Time
}

// How many refusals are answered at a time, how long each answer may take, and how often the
// log says how many there were.
const (
	maxAnswering    = 64
	refusalTime     = time.Second
	refusalsLogTime = 10 * time.Second
)

func newGate(l *net.TCPListener, most, mostPerSource int, carriers []netip.Prefix, log *slog.Logger) *gate {
	return &gate{
		TCPListener: l, most: most, mostPerSource: mostPerSource, carriers: carriers, log: log,
		answering: make(chan struct{}, maxAnswering), bySource: map[netip.Addr]int{},
	}
}

// Accept returns the next connection that is within the bounds.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.AcceptTCP()
		if err != nil {
			return nil, err
		}
		if source, ok := g.admit(c.RemoteAddr()); ok {
			return &admitted{TCPConn: c, leave: sync.OnceFunc(func() { g.leave(source) })}, nil
		}
		g.refuse(c)
	}
}

// admit counts a connection that is within the bounds, and reports whether it is.
func (g *gate) admit(peer net.Addr) (source netip.Addr, ok bool) {
	if tcp, is := peer.(*net.TCPAddr); is { // else the peer has gone already
		source = plainAddr(tcp.AddrPort().Addr())
	}
	carrier := inNetworks(g.carriers, source)
	source = sourceOf(source)
	g.mu.Lock()
	defer g.mu.Unlock()
	if free := g.most - g.open; free <= 0 || !carrier && g.bySource[source] >= min(g.mostPerSource, free) {
		return source, false
	}
	g.open++
	g.bySource[source]++
	return source, true
}

func (g *gate) leave(source netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.bySource[source]--; g.bySource[source] == 0 {
		delete(g.bySource, source)
	}
}

// refuse ends a connection. It answers up to maxAnswering refusals at a time. More than that
// are hardly all clients: their connections are closed without an answer.
func (g *gate) refuse(c *net.TCPConn) {
	g.count()
	select {
	case g.answering <- struct{}{}:
		go func() {
			defer func() { <-g.answering }()
			g.answerRefusal(c)
		}()
	default:
		c.SetLinger(0)
		c.Close()
	}
}

// count counts a refusal. It logs the count at most once every refusalsLogTime.
func (g *gate) count() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused++
	g.turned++
	if time.Since(g.logged) < refusalsLogTime {
		return
	}
	g.log.Warn("connections refused", "count", g.refused, "open", g.open)
	g.refused, g.logged = 0, time.Now()
}

// counts returns how many connections are open, and how many were refused.
func (g *gate) counts() (open int, refused uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open, g.turned
}

// answerRefusal answers the first request of a connection with 503, like any other error, and
// closes the connection. It waits for the request, since many clients take an earlier
// answer for a fault. It then waits for the client to close, since closing with unread
// bytes could make the client lose the answer. A request for a page of the panel gets a page.
// With -tls-cert the gate is below TLS: it cannot read the request, nor the client its answer.
func (g *gate) answerRefusal(c *net.TCPConn) {
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
	if g.page != nil && isPanelPath(pathIn(asked[:n])) {
		body = g.page(h)
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

// An admitted connection is counted until it is closed.
type admitted struct {
	*net.TCPConn // with all its methods, which net/http looks for
	leave        func()
}

func (c *admitted) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}
