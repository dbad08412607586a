package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// A client is one HTTP/1.1 connection that is kept open. It does as little as it
// can, so that the server is what is measured: it writes a prepared request and
// reads the status, the Content-Length and the body of the answer.
type client struct {
	conn net.Conn
	in   []byte // bytes read
	used int    // how many of them belong to answers already returned
}

// connectionTimeout ends a run whose server no longer answers.
const connectionTimeout = time.Hour

func dial(addr string) (*client, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(connectionTimeout))
	return &client{conn: conn, in: make([]byte, 0, 4<<10)}, nil
}

func (c *client) Close() error { return c.conn.Close() }

// closeAfter closes the connection when ctx ends, so that nothing waits for it.
func (c *client) closeAfter(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { c.conn.Close() })
}

// do sends a request and returns the answer. The body is valid until the next call.
func (c *client) do(request []byte) (status int, body []byte, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, nil, err
	}
	c.in = c.in[:copy(c.in[:cap(c.in)], c.in[c.used:])]
	c.used = 0
	head := -1
	for {
		if head = bytes.Index(c.in, []byte("\r\n\r\n")); head >= 0 {
			break
		}
		if err := c.fill(); err != nil {
			return 0, nil, err
		}
	}
	status, length, err := parseHead(c.in[:head+2])
	if err != nil {
		return 0, nil, err
	}
	head += 4
	for len(c.in) < head+length {
		if err := c.fill(); err != nil {
			return 0, nil, err
		}
	}
	c.used = head + length
	return status, c.in[head:c.used], nil
}

// expect is do with an error for any status but the given one.
func (c *client) expect(request []byte, status int) (body []byte, err error) {
	got, body, err := c.do(request)
	if err == nil && got != status {
		err = &unexpected{got, string(body)}
	}
	return body, err
}

// unexpected is an answer with a wrong status.
type unexpected struct {
	status int
	body   string
}

func (u *unexpected) Error() string { return fmt.Sprintf("answer %d: %.300s", u.status, u.body) }

func (c *client) fill() error {
	if len(c.in) == cap(c.in) {
		c.in = append(c.in, 0)[:len(c.in)]
	}
	n, err := c.conn.Read(c.in[len(c.in):cap(c.in)])
	c.in = c.in[:len(c.in)+n]
	if n > 0 {
		return nil
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

var errAnswer = errors.New("not an answer this program can read")

// parseHead parses the status and the length of the body. Both servers answer with a
// Content-Length, spelled as net/http spells it.
func parseHead(head []byte) (status, length int, err error) {
	if len(head) < 12 || !bytes.HasPrefix(head, []byte("HTTP/1.1 ")) {
		return 0, 0, fmt.Errorf("%w: %.40q", errAnswer, head)
	}
	for _, digit := range head[9:12] {
		status = 10*status + int(digit-'0')
	}
	const name = "\r\nContent-Length: "
	i := bytes.Index(head, []byte(name))
	if i < 0 {
		return 0, 0, fmt.Errorf("%w: no Content-Length in %q", errAnswer, head)
	}
	digits, _, _ := bytes.Cut(head[i+len(name):], []byte("\r"))
	length, err = strconv.Atoi(string(digits))
	return status, length, err
}
