package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"time"
)

// What is no HTTP request that net/http understands never reaches a handler:
// net/http refuses it in words of its own, as plain text or with no body, at
// times with a 5xx for what the client did wrong. Contract §2 wants every error
// in one form. There is no hook for that but the connection: what net/http
// writes there passes through here, and a refusal gives way to ours. Ours has
// a new request id, since the headers were not read or are not to be trusted.
//
//	400 bad_request         malformed in any way; a version or Transfer-Encoding not known
//	417 expectation_failed  an Expect other than 100-continue
//	431 headers_too_large   request line and headers of more than maxHeader
//
// RFC 9110 has 505 for the version, and RFC 9112 501 for the Transfer-Encoding.
// Both would tell clients to try again and operators that sello is at fault.

// refusing makes the connections of a listener refuse in our words.
func (a *api) refusing(l net.Listener) net.Listener { return refusingListener{l, a} }

type refusingListener struct {
	net.Listener
	api *api
}

func (l refusingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &refusingConn{Conn: c, api: l.api}, nil
}

// A refusingConn is a connection of net/http, which writes to it from one
// goroutine at a time.
type refusingConn struct {
	net.Conn
	api     *api
	refused bool // nothing more is written
}

// How long, and how many bytes, a refused client is still listened to. To close
// at once while it sends would take the answer away from it.
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)

func (c *refusingConn) Write(b []byte) (int, error) {
	if !c.refused && !isRefusal(b) {
		return c.Conn.Write(b)
	}
	if c.refused { // the rest of net/http's text
		return len(b), nil
	}
	c.refused = true
	return len(b), lastWrite(c.Conn, c.api.refusal(b), time.Now().Add(lingerTime), lingerBytes)
}

// lastWrite writes what ends a connection, and then listens for a while to what
// still comes, up to so many bytes. The caller closes it.
func lastWrite(c net.Conn, answer []byte, until time.Time, most int64) error {
	if _, err := c.Write(answer); err != nil {
		return err
	}
	closeWrite(c)
	c.SetReadDeadline(until)
	io.CopyN(io.Discard, c, most)
	return nil
}

// lastAnswer spells a response after which the connection is closed. It adds the
// Date.
func lastAnswer(status int, h http.Header, body []byte, now time.Time) []byte {
	h.Set("Date", now.UTC().Format(http.TimeFormat))
	var b bytes.Buffer
	(&http.Response{
		ProtoMajor: 1, ProtoMinor: 1, StatusCode: status, Header: h, Close: true,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}).Write(&b)
	return b.Bytes()
}

// CloseWrite is that of a TCP connection, which net/http looks for.
func (c *refusingConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite tells the other side that nothing more comes.
func closeWrite(c net.Conn) error {
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

// isRefusal tells whether a write is an error that net/http answers by itself.
// The head of any other response has a request id and is in its first write;
// where a write begins within a body, that is JSON, which has no end of line.
func isRefusal(b []byte) bool {
	const code = len("HTTP/1.1 ")
	return len(b) > code && (b[code] == '4' || b[code] == '5') && bytes.HasPrefix(b, statusLine) &&
		bytes.Contains(b, endOfLine) && !bytes.Contains(b, requestIDHeader)
}

// refusal is the response that takes the place of net/http's, and its line in
// the log.
func (a *api) refusal(theirs []byte) []byte {
	code := codeBadRequest
	switch string(theirs[len("HTTP/1.1 "):][:3]) {
	case "417":
		code = codeExpectationFailed
	case "431":
		code = codeHeadersTooLarge
	}
	answer := &refusalWriter{header: http.Header{}}
	nothing := new(http.Request) // is known of it
	x := a.newExchange(answer, nothing)
	x.fail(newError(code))
	x.finish(nothing)
	return lastAnswer(x.status, answer.header, answer.body.Bytes(), x.started)
}

// A refusalWriter holds a response.
type refusalWriter struct {
	header http.Header
	body   bytes.Buffer
}

func (w *refusalWriter) Header() http.Header            { return w.header }
func (w *refusalWriter) WriteHeader(int)                {}
func (w *refusalWriter) Write(text []byte) (int, error) { return w.body.Write(text) }
