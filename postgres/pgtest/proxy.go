package pgtest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Fault is what happens to the connection that a COMMIT comes on.
type Fault struct {
	At    Point
	End   End
	Delay time.Duration // before the COMMIT is passed on, or the fault happens
}

// A Point is how far a COMMIT comes.
type Point int

const (
	Nowhere Point = iota // no fault
	Before               // it does not reach the server; what was sent before it does
	Inside               // half of its message reaches the server
	Sent                 // all of it reaches the server; the client is cut off while the server may still be at work
	After                // the server has answered; the answer does not reach the client
)

// An End is how a connection ends.
type End int

const (
	Reset End = iota // the client gets RST; so does the server, but for Sent
	Close            // FIN
	Hole             // both connections stay, and nothing passes any more
)

// A Proxy passes PostgreSQL's protocol on, message by message, without TLS.
type Proxy struct {
	listener net.Listener
	dsn      *url.URL
	fault    func(commit int) Fault
	latency  atomic.Int64
	frozen   sync.RWMutex

	asking  sync.Mutex // for one fault at a time, so that they are asked for in order
	commits atomic.Int32

	mu     sync.Mutex
	links  map[*link]bool
	closed bool
	thaw   func()
}

// NewProxy starts a proxy in front of the server that a DSN names, by one host and over TCP. It
// ends with the test. fault is asked about each COMMIT, in the order in which they come, the first
// being 1; nil means no faults.
func NewProxy(t testing.TB, dsn string, fault func(commit int) Fault) *Proxy {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, dsn: u, fault: fault, links: map[*link]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(client.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Thaw()
		p.Cut()
		running.Wait()
	})
	return p
}

// DSN is the DSN that goes through the proxy.
func (p *Proxy) DSN() string {
	u := *p.dsn
	u.Host = p.listener.Addr().String()
	values := u.Query()
	values.Set("sslmode", "disable")
	u.RawQuery = string(bytes.ReplaceAll([]byte(values.Encode()), []byte("+"), []byte("%20")))
	return u.String()
}

// Commits is how many COMMITs have come.
func (p *Proxy) Commits() int { return int(p.commits.Load()) }

// Latency makes each trip to the server take d longer.
func (p *Proxy) Latency(d time.Duration) { p.latency.Store(int64(d)) }

// Cut resets all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.end(Reset)
	}
}

// Freeze lets nothing pass, on new connections neither, until Thaw: a network that loses all
// packets for a while.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thaw == nil {
		p.frozen.Lock()
		p.thaw = p.frozen.Unlock
	}
}

// Thaw ends what Freeze began, and lets pass what has come since.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thaw != nil {
		p.thaw()
		p.thaw = nil
	}
}

func (p *Proxy) next() Fault {
	p.asking.Lock()
	defer p.asking.Unlock()
	n := p.commits.Add(1)
	if p.fault == nil {
		return Fault{}
	}
	return p.fault(int(n))
}

// serve passes one client's connection on until either side ends it.
func (p *Proxy) serve(client *net.TCPConn) {
	dialed, err := net.Dial("tcp", p.dsn.Host)
	if err != nil {
		client.Close()
		return
	}
	l := &link{p: p, client: client, server: dialed.(*net.TCPConn), prepared: statements{}, answered: make(chan struct{}), closed: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = true
	if p.closed {
		l.end(Reset)
	}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(l.up)
	both.Go(l.down)
	both.Wait()
	<-l.closed
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// A link is a client's connection and its own to the server.
type link struct {
	p              *Proxy
	client, server *net.TCPConn
	prepared       statements
	closing        sync.Once
	closed         chan struct{}

	mu       sync.Mutex
	held     bool          // nothing goes to the client any more
	hole     bool          // neither side learns of the other's end
	asked    int           // requests that the server answers with ReadyForQuery
	ready    int           // those that it has answered
	awaited  int           // the request that holds the COMMIT; 0: not known yet
	answered chan struct{} // closed once that one is answered
}

// end ends both connections, once. A hole leaves them to Cut.
func (l *link) end(how End) {
	if how == Hole {
		l.hold(true)
		return
	}
	l.closing.Do(func() {
		for _, conn := range []*net.TCPConn{l.client, l.server} {
			if how == Reset {
				conn.SetLinger(0)
			}
			conn.Close()
		}
		close(l.closed)
	})
}

// hold drops the server's answers from now on.
func (l *link) hold(hole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.hole = true, hole
}

// leave ends the client's connection alone. The server's bytes are on their way: a reset would
// take back those that it has not read. It is told that nothing more comes, and may finish.
func (l *link) leave(how End) {
	if how == Hole {
		l.hold(true)
		return
	}
	if how == Reset {
		l.client.SetLinger(0)
	}
	l.client.Close()
	l.server.CloseWrite()
}

// up passes messages to the server.
func (l *link) up() {
	r, w := bufio.NewReader(l.client), bufio.NewWriter(l.server)
	if !l.startup(r, w) {
		l.end(Close)
		return
	}
	var fault Fault
	for {
		message, err := readMessage(r)
		if err != nil {
			l.end(Close)
			return
		}
		if l.prepared.commits(message) && fault.At == Nowhere {
			fault = l.p.next()
			if fault.Delay > 0 && l.flush(w) {
				time.Sleep(fault.Delay)
			}
			switch fault.At {
			case Before, Inside:
				if fault.At == Inside {
					w.Write(message[:len(message)/2])
				}
				l.flush(w)
				l.end(fault.End)
				return
			case Sent, After:
				l.hold(false)
			}
		}
		last := l.count(message[0], fault.At)
		if strings.IndexByte("SQFp", message[0]) >= 0 { // what the client waits for an answer to
			time.Sleep(time.Duration(l.p.latency.Load()))
		}
		w.Write(message)
		if (last || r.Buffered() == 0) && !l.flush(w) {
			l.end(Close)
			return
		}
		if !last {
			continue
		}
		if fault.At == Sent {
			l.leave(fault.End)
			return
		}
		select {
		case <-l.answered:
			l.end(fault.End)
		case <-l.closed:
		}
		return
	}
}

// startup passes on the first message, which has no type. TLS and GSSAPI are refused here.
func (l *link) startup(r *bufio.Reader, w *bufio.Writer) bool {
	for {
		length, err := r.Peek(8)
		if err != nil {
			return false
		}
		n, code := binary.BigEndian.Uint32(length), binary.BigEndian.Uint32(length[4:])
		if n < 8 || n > 10000 { // PostgreSQL's own limit
			return false
		}
		message := make([]byte, n)
		if _, err := io.ReadFull(r, message); err != nil {
			return false
		}
		if code == 80877103 || code == 80877104 { // SSLRequest, GSSENCRequest
			if _, err := l.client.Write([]byte("N")); err != nil {
				return false
			}
			continue
		}
		l.count('S', Nowhere) // it is answered like a Sync
		time.Sleep(time.Duration(l.p.latency.Load()))
		w.Write(message)
		return l.flush(w)
	}
}

// count counts a request that ends in ReadyForQuery, and reports whether it ends the one that a
// fault is for.
func (l *link) count(kind byte, at Point) (last bool) {
	if kind != 'S' && kind != 'Q' && kind != 'F' { // Sync, Query, FunctionCall
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if at == Nowhere {
		return false
	}
	l.awaited = l.asked
	return true
}

// flush sends what was gathered, unless the proxy is frozen.
func (l *link) flush(w *bufio.Writer) bool {
	l.p.frozen.RLock()
	defer l.p.frozen.RUnlock()
	return w.Flush() == nil
}

// down passes messages to the client.
func (l *link) down() {
	r, w := bufio.NewReader(l.server), bufio.NewWriter(l.client)
	for {
		message, err := readMessage(r)
		if err != nil {
			break
		}
		l.mu.Lock()
		if message[0] == 'Z' { // ReadyForQuery
			if l.ready++; l.ready == l.awaited {
				close(l.answered)
			}
		}
		held := l.held
		l.mu.Unlock()
		if held {
			continue
		}
		w.Write(message)
		if r.Buffered() > 0 {
			continue
		}
		l.p.frozen.RLock()
		err = w.Flush()
		l.p.frozen.RUnlock()
		if err != nil {
			break
		}
	}
	l.mu.Lock()
	hole := l.hole
	l.mu.Unlock()
	if !hole {
		l.end(Close)
	}
}

// readMessage reads a message whole: a byte for its kind, four for its length without that byte.
func readMessage(r io.Reader) ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n < 4 || n > 1<<30 {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}
	message := make([]byte, 1+n)
	copy(message, head[:])
	_, err := io.ReadFull(r, message[5:])
	return message, err
}

// statements are the names of the prepared statements that commit.
type statements map[string]bool

var commitText = regexp.MustCompile(`(?i)\bcommit\b`)

// commits reports whether a client's message executes a COMMIT. A statement is prepared once and
// bound for each execution, so it counts when it is bound.
func (s statements) commits(message []byte) bool {
	first, rest, _ := bytes.Cut(message[5:], []byte{0})
	second, _, _ := bytes.Cut(rest, []byte{0})
	switch message[0] {
	case 'Q': // Query: the text
		return commitText.Match(first)
	case 'P': // Parse: the statement's name, the text
		s[string(first)] = commitText.Match(second)
	case 'B': // Bind: the portal's name, the statement's
		return s[string(second)]
	}
	return false
}
