// Package gate bounds how many connections of a listener are open, in all and per source.
package gate

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// A Gate is a listener whose connections are within bounds. No source may hold more than are still
// free, so that a few sources cannot take all.
type Gate struct {
	*net.TCPListener
	Rules
	log       *slog.Logger
	answering chan struct{} // one element for each refusal being answered

	mu       sync.Mutex
	open     int
	bySource map[netip.Addr]int // all above 0; a carrier's too
	refused  int                // since the last log line
	turned   uint64             // refused in all
	logged   time.Time
}

// Rules say which connections are let in, and what becomes of others.
type Rules struct {
	Most, MostPerSource int
	Carriers            []netip.Prefix              // peers that bring others' requests; only Most bounds them
	SourceOf            func(netip.Addr) netip.Addr // what counts as one source
	Refuse              func(*net.TCPConn)          // answers a connection that is refused, and closes it
}

// MaxAnswering is how many refusals are answered at a time.
const MaxAnswering = 64

// refusalsLogTime is how often the log says how many there were.
const refusalsLogTime = 10 * time.Second

// New returns a listener that keeps to rules.
func New(l *net.TCPListener, rules Rules, log *slog.Logger) *Gate {
	return &Gate{TCPListener: l, Rules: rules, log: log, answering: make(chan struct{}, MaxAnswering), bySource: map[netip.Addr]int{}}
}

// Accept returns the next connection that is within the bounds.
func (g *Gate) Accept() (net.Conn, error) {
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
func (g *Gate) admit(peer net.Addr) (source netip.Addr, ok bool) {
	if tcp, is := peer.(*net.TCPAddr); is { // else the peer has gone already
		source = tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	carrier := slices.ContainsFunc(g.Carriers, func(n netip.Prefix) bool { return n.Contains(source) })
	source = g.SourceOf(source)
	g.mu.Lock()
	defer g.mu.Unlock()
	if free := g.Most - g.open; free <= 0 || !carrier && g.bySource[source] >= min(g.MostPerSource, free) {
		return source, false
	}
	g.open++
	g.bySource[source]++
	return source, true
}

func (g *Gate) leave(source netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.bySource[source]--; g.bySource[source] == 0 {
		delete(g.bySource, source)
	}
}

// refuse ends a connection. It answers up to MaxAnswering refusals at a time. More than that
// are hardly all clients: their connections are closed without an answer.
func (g *Gate) refuse(c *net.TCPConn) {
	g.count()
	select {
	case g.answering <- struct{}{}:
		go func() {
			defer func() { <-g.answering }()
			g.Refuse(c)
		}()
	default:
		c.SetLinger(0)
		c.Close()
	}
}

// count counts a refusal. It logs the count at most once every refusalsLogTime.
func (g *Gate) count() {
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

// Counts returns how many connections are open, and how many were refused.
func (g *Gate) Counts() (open int, refused uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open, g.turned
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
