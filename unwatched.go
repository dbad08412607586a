package main

import (
	"net"
	"sync"
	"time"
)

// While a handler runs, net/http reads on from its connection, to end the
// request's context when the client goes. Nothing here asks for that: what was
// begun is finished (see exchange.context). But it costs each request a read that
// the system turns down and two goroutines that wait for one another; and that
// each request has its own deadlines, a new one from step to step, costs it eight
// timers. There is no setting against either, so it is done to the connection.

// unwatched gives the connections of a listener to net/http as unwatchedConns.
type unwatched struct{ net.Listener }

func (l unwatched) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &unwatchedConn{Conn: c}, nil
}

// An unwatchedConn has not heard from its client whenever net/http watches it,
// and sets deadlines when they matter. It wants net/http to have a timeout for all
// it reads, so that whatever it reads without one is watching: a byte, after
// the request.
type unwatchedConn struct {
	net.Conn
	writes deadline

	mu       sync.Mutex // of what follows: the watch has its own goroutine
	reads    deadline
	watching bool
}

// Read may return nothing and no error, as an io.Reader may at any time.
func (c *unwatchedConn) Read(b []byte) (int, error) {
	if watch, err := c.read(b); watch || err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// read tells whether a read into b is the watch, and else sets its deadline.
func (c *unwatchedConn) read(b []byte) (watch bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watching && len(b) == 1 {
		return true, nil
	}
	return false, c.reads.set(c.Conn.SetReadDeadline)
}

func (c *unwatchedConn) Write(b []byte) (int, error) {
	if err := c.writes.set(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// SetReadDeadline is for what is read after it. The one by which net/http
// interrupts its watch is over already: the watch does not wait, and may not
// have begun.
func (c *unwatchedConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watching && !t.IsZero() && time.Until(t) <= 0 {
		return nil
	}
	c.reads.want, c.watching = t, t.IsZero()
	return nil
}

// SetWriteDeadline is for what is written after it.
func (c *unwatchedConn) SetWriteDeadline(t time.Time) error {
	c.writes.want = t
	return nil
}

func (c *unwatchedConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads.want, c.writes.want, c.watching = t, t, false
	return nil
}

// CloseWrite is that of a TCP connection, which net/http looks for.
func (c *unwatchedConn) CloseWrite() error { return closeWrite(c.Conn) }

// A deadline is one that is wanted and the one that there is.
type deadline struct{ want, have time.Time }

// earlier is by how much a deadline may come too soon, much less than any of
// them takes. So one that moves on with each request need not be set for each.
const earlier = 100 * time.Millisecond

// set makes there be the deadline that is wanted.
func (d *deadline) set(on func(time.Time) error) error {
	if d.want == d.have {
		return nil
	}
	if late := d.want.Sub(d.have); !d.want.IsZero() && !d.have.IsZero() && 0 <= late && late < earlier {
		return nil
	}
	d.have = d.want
	return on(d.want)
}
