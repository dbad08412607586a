package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// A wireTap is a connection that records the calls of its methods.
type wireTap struct {
	net.Conn
	written bytes.Buffer
	done    []string
	unread  io.Reader
}

func (w *wireTap) Write(b []byte) (int, error) {
	w.done = append(w.done, "write")
	return w.written.Write(b)
}

func (w *wireTap) Read(b []byte) (int, error) {
	w.done = append(w.done, "read")
	return w.unread.Read(b)
}

func (w *wireTap) CloseWrite() error {
	w.done = append(w.done, "close")
	return nil
}

func (w *wireTap) SetReadDeadline(time.Time) error { return nil }

func newWire(t *testing.T, unread string) (*wireTap, *refusingConn) {
	w := &wireTap{unread: strings.NewReader(unread)}
	return w, &refusingConn{Conn: w, api: newWorld(t, newMemStore()).api}
}

// TestRefusal checks that our refusal replaces net/http's, in however many pieces
// that is written. Then what the client still sends is read, so that the answer is
// not lost.
func TestRefusal(t *testing.T) {
	t.Parallel()
	const plain = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	for theirs, want := range map[string]string{
		"HTTP/1.1 400 Bad Request" + plain + "400 Bad Request":                                         "400 bad_request",
		"HTTP/1.1 400 Bad Request: malformed Host header" + plain + "400 Bad Request: malformed":       "400 bad_request",
		"HTTP/1.1 431 Request Header Fields Too Large" + plain + "431":                                 "431 headers_too_large",
		"HTTP/1.1 501 Not Implemented" + plain + "Unsupported transfer encoding":                       "400 bad_request",
		"HTTP/1.1 505 HTTP Version Not Supported: x" + plain + "505":                                   "400 bad_request",
		"HTTP/1.0 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 0\r\nDate: x\r\n\r\n": "417 expectation_failed",
		"HTTP/1.1 500 Whatever Comes Next\r\n\r\n<html>":                                               "400 bad_request",
	} {
		w, c := newWire(t, strings.Repeat("x", 3*lingerBytes))
		for i, text := range []string{theirs, "more of it", "HTTP/1.1 200 OK\r\n\r\n"} {
			if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%s: write %d: %d, %v", want, i, n, err)
			}
		}
		left, _ := io.ReadAll(w.unread)
		if w.done = slices.Compact(w.done); !slices.Equal(w.done, []string{"write", "close", "read"}) || len(left) < lingerBytes {
			t.Errorf("%s: %q, %d bytes not read", want, w.done, len(left))
		}
		res, err := http.ReadResponse(bufio.NewReader(&w.written), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		var e errorBody
		json.Unmarshal(body, &e)
		if got := fmt.Sprint(res.StatusCode, " ", e.Code); got != want || !res.Close || res.Header.Get("Date") == "" {
			t.Errorf("%q: got %s %v %s, want %s", theirs, got, res.Header, body, want)
		}
		for _, fault := range faultsOf(step{}, res, body, "") {
			t.Errorf("%s: %s: %v %s", want, fault, res.Header, body)
		}
	}
}

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
		w, c := newWire(t, "")
		c.Write([]byte(ours))
		if got := w.written.String(); got != ours || c.refused {
			t.Errorf("%q became %q", ours, got)
		}
	}
	_, c := newWire(t, "")
	c.Conn = discarding{}
	answer := []byte("HTTP/1.1 404 Not Found\r\nCache-Control: no-store\r\nX-Request-Id: a\r\n\r\n" + strings.Repeat("x", 4000))
	if n := testing.AllocsPerRun(100, func() { c.Write(answer) }); n != 0 {
		t.Errorf("a write costs %v allocations", n)
	}
	if err := c.CloseWrite(); err != nil { // the connection has no CloseWrite of its own
		t.Error(err)
	}
}

type discarding struct{ net.Conn }

func (discarding) Write(b []byte) (int, error) { return len(b), nil }

// TestRefusalServed checks that `sello serve` refuses in this way, and logs each
// refusal like any request, without text that the client sent.
func TestRefusalServed(t *testing.T) {
	t.Parallel()
	server, _ := newTill(t).start("serve")
	addr := strings.TrimSuffix(strings.TrimPrefix(server.base, "http://"), "/api/v1")
	var want, got []string
	for _, request := range []string{"GET /secreto\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nExpect: secreto\r\n\r\n", "GET / HTTP/1.1\r\nSecreto : x\r\n\r\n"} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(ioTimeout))
		io.WriteString(conn, request)
		answer, err := io.ReadAll(conn)
		conn.Close()
		_, body, _ := strings.Cut(string(answer), "\r\n\r\n")
		var e errorBody
		if err := errors.Join(err, json.Unmarshal([]byte(body), &e)); err != nil {
			t.Fatalf("%q: %v: %s", request, err, answer)
		}
		want = append(want, fmt.Sprint(e.RequestID, " ", e.StatusCode, " ", e.Code))
	}
	server.stop()
	for line := range strings.Lines(server.log.String()) {
		var l struct {
			Msg, RequestID, Method, Code string
			Status                       int
		}
		if json.Unmarshal([]byte(line), &l); l.Msg == "request" && l.Method == "other" {
			got = append(got, fmt.Sprint(l.RequestID, " ", l.Status, " ", l.Code))
		}
	}
	if !slices.Equal(got, want) || strings.Contains(strings.ToLower(server.log.String()), "secreto") {
		t.Errorf("answered %q, logged %s", want, server.log)
	}
}
