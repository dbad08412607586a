// Package unwatched keeps net/http from reading in the background and from setting deadlines that
// change nothing.
//
// While a handler runs, net/http reads from the connection in the background, to end the request's
// context when the client goes. The read costs each request a system call and two goroutines that
// wait for each other. Besides, net/http sets new deadlines at each step of a request, eight timers
// in all. It has no setting against either, so the connection avoids both. It is for servers that
// finish what they have begun, and that set all four timeouts of http.Server.
package unwatched

import (
	"net"
	"sync"
	"time"

	"sello/internal/lastword"
)

// New returns a listener for an http.Server, whose requests' contexts then do not end when the
// client goes.
func New(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// A conn answers net/http's background read at once with nothing, and sets
// only deadlines that differ. It knows the background read by two things: it is of one
// byte, and no read deadline is set. So the server must set a deadline for every other read.
type conn struct {
	net.Conn
	writes deadline

	mu       sync.Mutex // for the fields below: the background read has its own goroutine
	reads    deadline
	watching bool
}

// Read returns 0 and no error for the background read, as an io.Reader may at any time.
func (c *conn) Read(b []byte) (int, error) {
	if watch, err := c.read(b); watch || err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// read reports whether a read into b is the background read. For any other read it
// sets the deadline.
func (c *conn) read(b []byte) (watch bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watching && len(b) == 1 {
		return true, nil
	}
	return false, c.reads.set(c.Conn.SetReadDeadline)
}

func (c *conn) Write(b []byte) (int, error) {
	if err := c.writes.set(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// SetReadDeadline keeps the deadline for the next read. net/http interrupts its
// background read by a deadline in the past. That one is ignored: the read does not wait, and
// may not have begun.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watching && !t.IsZero() && time.Until(t) <= 0 {
		return nil
	}
	c.reads.want, c.watching = t, t.IsZero()
	return nil
}

// SetWriteDeadline keeps the deadline for the next write.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writes.want = t
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads.want, c.writes.want, c.watching = t, t, false
	return nil
}

// CloseWrite is the method of a TCP connection that net/http looks for.
func (c *conn) CloseWrite() error { return lastword.CloseWrite(c.Conn) }

// A deadline is the one that net/http wants, and the one that is set.
type deadline struct{ want, have time.Time }

// earlier is how much too soon a deadline may come: much less than any timeout. So a
// deadline that moves on with each request need not be set for each.
const earlier = 100 * time.Millisecond

// set sets the wanted deadline if it differs by enough.
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
