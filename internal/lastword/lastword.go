// Package lastword ends connections with an answer of our own, where net/http would answer by
// itself in its own words, or a client speaks plain HTTP to a server of TLS.
package lastword

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

// Refusing returns a listener whose connections refuse by answer, in place of net/http's refusal
// with a status, such as "400". Any other response has a header X-Request-Id.
func Refusing(l net.Listener, answer func(status string) []byte) net.Listener {
	return refusingListener{l, answer}
}

type refusingListener struct {
	net.Listener
	answer func(status string) []byte
}

func (l refusingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Refuse(c, l.answer), nil
}

// Refuse returns one connection as those of Refusing are.
func Refuse(c net.Conn, answer func(status string) []byte) net.Conn {
	return &refusingConn{Conn: c, answer: answer}
}

// A refusingConn is a connection of net/http, which writes to it from one
// goroutine at a time.
type refusingConn struct {
	net.Conn
	answer  func(status string) []byte
	refused bool // the refusal is written, and nothing more will be
}

// LingerBytes is how much is still read from a refused client. Closing while the
// client still sends could make it lose the answer.
const LingerBytes = 256 << 10

const lingerTime = 500 * time.Millisecond // for how long

func (c *refusingConn) Write(b []byte) (int, error) {
	if !c.refused && !isRefusal(b) {
		return c.Conn.Write(b)
	}
	if c.refused { // the rest of net/http's text
		return len(b), nil
	}
	c.refused = true
	return len(b), Write(c.Conn, c.answer(string(b[len("HTTP/1.1 "):][:3])), time.Now().Add(lingerTime), LingerBytes)
}

// Write writes the last answer of a connection, then reads and discards what still
// comes: until a moment, or up to most bytes. The caller closes c.
func Write(c net.Conn, answer []byte, until time.Time, most int64) error {
	if _, err := c.Write(answer); err != nil {
		return err
	}
	CloseWrite(c)
	c.SetReadDeadline(until)
	io.CopyN(io.Discard, c, most)
	return nil
}

// Response returns the bytes of a response, with a Date, that closes the connection.
func Response(status int, h http.Header, body []byte, now time.Time) []byte {
	h.Set("Date", now.UTC().Format(http.TimeFormat))
	var b bytes.Buffer
	(&http.Response{
		ProtoMajor: 1, ProtoMinor: 1, StatusCode: status, Header: h, Close: true,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}).Write(&b)
	return b.Bytes()
}

// CloseWrite is the method of a TCP connection that net/http looks for.
func (c *refusingConn) CloseWrite() error { return CloseWrite(c.Conn) }

// CloseWrite tells the other side that nothing more comes, where the connection can.
func CloseWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

var (
	statusLine      = []byte("HTTP/1.") // and a digit, a space and three digits
	endOfLine       = []byte("\r\n")
	requestIDHeader = []byte("\r\nX-Request-Id: ")
)

// isRefusal reports whether b is an error that net/http answers by itself. Any other
// response has its whole head, with a request id, in its first write. A write that
// begins within a body is JSON, which has no end of line.
func isRefusal(b []byte) bool {
	const code = len("HTTP/1.1 ")
	return len(b) > code && (b[code] == '4' || b[code] == '5') && bytes.HasPrefix(b, statusLine) &&
		bytes.Contains(b, endOfLine) && !bytes.Contains(b, requestIDHeader)
}

// TLS returns a listener whose connections speak TLS, and answer plain HTTP by plain.
func TLS(l net.Listener, config *tls.Config, plain func() []byte) net.Listener {
	return tlsListener{l, config, plain}
}

type tlsListener struct {
	net.Listener
	config *tls.Config
	plain  func() []byte
}

func (l tlsListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tlsConn{tls.Server(c, l.config), l.plain}, nil
}

// A tlsConn shakes hands with the first read, within that read's deadline. It tells a
// client that speaks plain HTTP so.
type tlsConn struct {
	*tls.Conn
	plain func() []byte
}

func (c *tlsConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if bad, ok := err.(tls.RecordHeaderError); ok && bad.Conn != nil && isHTTP(bad.RecordHeader) {
		until := time.Now().Add(lingerTime)
		bad.Conn.SetDeadline(until)
		Write(bad.Conn, c.plain(), until, LingerBytes)
	}
	return n, err
}

// isHTTP reports whether the first bytes of a connection begin a request of HTTP/1.
func isHTTP(head [5]byte) bool {
	return slices.ContainsFunc([]string{"GET /", "POST ", "PATCH", "HEAD ", "PUT /", "DELET", "OPTIO"}, func(method string) bool {
		return method == string(head[:])
	})
}
