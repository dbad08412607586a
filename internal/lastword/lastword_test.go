package lastword

import (
	"net"
	"strings"
	"testing"
)

// TestNoRefusal checks that our own answers, or parts of them, pass unchanged and
// without an allocation.
func TestNoRefusal(t *testing.T) {
	for _, ours := range []string{
		"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nX-Request-Id: a\r\n\r\n{}",
		"HTTP/1.1 404 Not Found\r\nCache-Control: no-store\r\nX-Request-Id: a\r\n\r\n{}",
		"HTTP/1.0 503 Service Unavailable\r\nCache-Control: no-store\r\nX-Request-Id: a\r\n\r\n{}",
		"HTTP/1.1 100 Continue\r\n\r\n",
		`HTTP/1.1 400 Bad Request\r\n\r\n","comment":"`, // a client's text at the start of a write; JSON has no line ends
		"HTTP/1.1 417 Expectation Failed\n",
		"HTTP/1.1 4", "", "4",
	} {
		w := new(written)
		c := &refusingConn{Conn: w}
		c.Write([]byte(ours))
		if got := w.String(); got != ours || c.refused {
			t.Errorf("%q became %q", ours, got)
		}
	}
	c := &refusingConn{Conn: discarding{}}
	answer := []byte("HTTP/1.1 404 Not Found\r\nCache-Control: no-store\r\nX-Request-Id: a\r\n\r\n" + strings.Repeat("x", 4000))
	if n := testing.AllocsPerRun(100, func() { c.Write(answer) }); n != 0 {
		t.Errorf("a write costs %v allocations", n)
	}
	if err := c.CloseWrite(); err != nil { // the connection has no CloseWrite of its own
		t.Error(err)
	}
}

// written is a connection that records what is written.
type written struct {
	net.Conn
	strings.Builder
}

func (w *written) Write(b []byte) (int, error) { return w.Builder.Write(b) }

type discarding struct{ net.Conn }

func (discarding) Write(b []byte) (int, error) { return len(b), nil }
