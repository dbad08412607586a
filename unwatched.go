package main

import (
	"net"
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
	reads, writes deadline
	watching      bool
}

// Read may return nothing and no error, as an io.Reader may at any time.
func (c *unwatchedConn) Read(b []byte) (int, error) {
	if c.watching && len(b) == 1 {
		return 0, nil
	}
	if err := c.reads.set(c.Conn.SetReadDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *unwatchedConn) Write(b []byte) (int, error) {
	if err := c.writes.set(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// SetReadDeadline is for what is read after it. Only one that is over already
// is for whoever is reading: net/http interrupts its watch with that, and then
// watching stays what it is, since the watch may just be looking at it.
func (c *unwatchedConn) SetReadDeadline(t time.Time) error {
	c.reads.want = t
	if isOver(t) {
		return c.reads.set(c.Conn.SetReadDeadline)
	}
	c.watching = t.IsZero()
	return nil
}

// SetWriteDeadline is for what is written after it.
func (c *unwatchedConn) SetWriteDeadline(t time.Time) error {
	c.writes.want = t
	if isOver(t) {
		return c.writes.set(c.Conn.SetWriteDeadline)
	}
	return nil
}

func (c *unwatchedConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// CloseWrite is that of a TCP connection, which net/http looks for.
func (c *unwatchedConn) CloseWrite() error { return closeWrite(c.Conn) }

func isOver(t time.Time) bool { return !t.IsZero() && time.Until(t) <= 0 }

// A deadline is one that is wanted and the one that there is.
type deadline struct{ want, have time.Time }

// earlier is by how much a deadline may come too soon. So one that moves on with
// each request need not be set for each.
const earlier = 500 * time.Millisecond

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
