package unwatched

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A countedPipe is the server's side of a connection in memory. It counts reads, reads of
// one byte, and deadlines that are set.
type countedPipe struct {
	net.Conn
	reads, ofOne, deadlines atomic.Int64
}

func (c *countedPipe) Read(b []byte) (int, error) {
	c.reads.Add(1)
	if len(b) == 1 {
		c.ofOne.Add(1)
	}
	return c.Conn.Read(b)
}

func (c *countedPipe) SetReadDeadline(t time.Time) error {
	c.deadlines.Add(1)
	return c.Conn.SetReadDeadline(t)
}

func (c *countedPipe) SetWriteDeadline(t time.Time) error {
	c.deadlines.Add(1)
	return c.Conn.SetWriteDeadline(t)
}

// A pipeListener accepts the connection in it.
type pipeListener chan net.Conn

func (l pipeListener) Accept() (net.Conn, error) {
	if c := <-l; c != nil {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l pipeListener) Close() error   { close(l); return nil }
func (l pipeListener) Addr() net.Addr { return new(net.TCPAddr) }

// served runs fn in a synctest bubble, with a connection to a server. The handler reads the body and answers with the Text header, padded to as
// many bytes as the path says.
func served(t *testing.T, wrap func(net.Listener) net.Listener, fn func(net.Conn, *countedPipe)) {
	synctest.Test(t, func(t *testing.T) {
		client, inner := net.Pipe()
		counted := &countedPipe{Conn: inner}
		l := make(pipeListener, 1)
		l <- counted
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				panic(http.ErrAbortHandler)
			}
			var size int
			fmt.Sscanf(r.URL.Path, "/%d", &size)
			if r.Header.Get("Text") != "at once" {
				time.Sleep(time.Millisecond) // so that net/http's background read begins
			}
			fmt.Fprintf(w, "%*s", size, r.Header.Get("Text"))
		}), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
			ErrorLog: log.New(io.Discard, "", 0)}
		go server.Serve(wrap(l))
		fn(client, counted)
		client.Close()
		server.Close()
	})
}

func watched(l net.Listener) net.Listener { return l }

// TestTimeouts checks that a client that is too slow is cut off when it would be
// without unwatched, or a little earlier.
func TestTimeouts(t *testing.T) {
	const get = "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, c := range map[string]struct {
		answered int    // requests answered at first, a second apart
		sent     string // after those
		unread   bool
	}{
		"nothing":                {},
		"nothing more":           {answered: 3},
		"a part of the headers":  {answered: 3, sent: get[:20]},
		"a part of the first":    {sent: get[:20]},
		"a part of a body":       {answered: 3, sent: "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n1"},
		"an answer not read":     {sent: strings.Replace(get, "/1", "/1000000", 1), unread: true},
		"a later one that is so": {answered: 3, sent: strings.Replace(get, "/1", "/1000000", 1), unread: true},
	} {
		t.Run(name, func(t *testing.T) {
			until := func(wrap func(net.Listener) net.Listener) (end time.Duration) {
				served(t, wrap, func(conn net.Conn, _ *countedPipe) {
					from := bufio.NewReader(conn)
					for range c.answered {
						time.Sleep(time.Second)
						io.WriteString(conn, get)
						res, err := http.ReadResponse(from, nil)
						if err != nil {
							t.Fatal(err)
						}
						io.Copy(io.Discard, res.Body)
					}
					begin := time.Now()
					io.WriteString(conn, c.sent)
					if c.unread {
						time.Sleep(time.Hour)
						n, err := io.Copy(io.Discard, from)
						if n > 8<<10 || err != nil {
							t.Errorf("after an hour: %d bytes, %v", n, err)
						}
						return
					}
					if said, err := io.ReadAll(from); len(said) > 0 && !strings.HasPrefix(string(said), "HTTP/1.1 4") || err != nil {
						t.Errorf("%q, %v", said, err)
					}
					end = time.Since(begin)
				})
				return end
			}
			before, after := until(watched), until(New)
			if after > before || after < before-earlier || !c.unread && after < time.Second {
				t.Errorf("cut off after %v, without unwatched after %v", after, before)
			}
		})
	}
}

// TestRequests checks that requests are read in whatever pieces they come, and
// that each takes one read and hardly ever a deadline.
func TestRequests(t *testing.T) {
	t.Parallel()
	request := func(text string) string {
		return "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nText: " + text + "\r\n\r\nabc"
	}
	const many = 100
	counts := func(wrap func(net.Listener) net.Listener, text string) (reads, deadlines int64) {
		served(t, wrap, func(conn net.Conn, counted *countedPipe) {
			from := bufio.NewReader(conn)
			answers := func(texts ...string) {
				for _, want := range texts {
					res, err := http.ReadResponse(from, nil)
					if err != nil {
						t.Fatalf("%.20q: %v", want, err)
					}
					if got, err := io.ReadAll(res.Body); string(got) != want || err != nil {
						t.Errorf("got %.20q, %v, want %.20q", got, err, want)
					}
				}
			}
			for range many {
				io.WriteString(conn, request(text))
				answers(text)
			}
			reads, deadlines = counted.reads.Load(), counted.deadlines.Load()
			go io.WriteString(conn, request("one")+request("two")) // pipelined
			answers("one", "two")
			go func() {
				for _, b := range []byte(request("slow")) {
					conn.Write([]byte{b})
				}
			}()
			answers("slow")
			text = strings.Repeat("x", 5000)
			go func() {
				all := request(text)
				most := strings.Index(all, "Text:") + 4095 // of the line, one byte less than net/http's buffer holds
				io.WriteString(conn, all[:most])
				io.WriteString(conn, all[most:])
			}()
			answers(text)
			if counted.ofOne.Load() == 0 {
				t.Error("no read of one byte was needed")
			}
		})
		return reads, deadlines
	}
	for _, text := range []string{"at once", "later"} {
		if reads, deadlines := counts(New, text); reads > many+1 || deadlines > 8 {
			t.Errorf("%d requests answered %s took %d reads and %d deadlines", many, text, reads, deadlines)
		}
		if reads, deadlines := counts(watched, text); reads < 3*many/2 || deadlines < 5*many {
			t.Errorf("without unwatched %d requests take %d reads and %d deadlines: it is of no use any more", many, reads, deadlines)
		}
	}
}
