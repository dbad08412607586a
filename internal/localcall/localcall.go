// Package localcall has commands call a server that has a file open, over a socket beside the
// file. Only the server's own user may connect. A call is an operation's name and JSON, and so is
// its reply.
package localcall

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sello/internal/host"
)

// A TooLongError says that the path is too long for a socket, and that the user has no directory
// for another one.
type TooLongError struct{ Path string }

func (e *TooLongError) Error() string { return e.Path + ": too long for a socket" }

// Path returns the path where a server that has the file open listens for
// commands. It is the same for every name of the file. A path too long for a socket
// is replaced by one in the user's own directory, which both sides find and where
// nobody else can listen.
func Path(file string) (string, error) {
	const longest = 100 // systems allow 104 to 108
	p, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(p); err == nil { // it fails while there is no file
		p = real
	}
	if p += ".sock"; len(p) <= longest {
		return p, nil
	}
	home, err := os.UserCacheDir()
	if err != nil {
		return "", &TooLongError{p}
	}
	h := sha256.Sum256([]byte(p))
	return filepath.Join(home, "sello", hex.EncodeToString(h[:8])+".sock"), nil
}

// Listen opens the socket for the owner of the process only. The caller holds
// the file's lock, so a socket that is already there belongs to no running server.
func Listen(file string) (net.Listener, error) {
	p, err := Path(file)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// Some systems create the socket's file with the socket's own mode, so that it is
	// never open to others. On the rest it has the umask's mode until Chmod below.
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(host.MakePrivate)
	}}
	l, err := private.Listen(context.Background(), "unix", p)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(p, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// A Reply is what an operation returned: a result or an error.
type Reply struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"` // its text: its type is lost
	Code   string          `json:"code,omitempty"`  // of the kind of error
}

// Handler returns what serves calls, each by run, which gets who calls. known is false if there is
// no such operation.
func Handler(run func(ctx context.Context, user, name string, in []byte) (answer Reply, known bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, known := run(r.Context(), r.Header.Get("X-Actor"), r.URL.Path[1:], raw)
		if !known {
			http.NotFound(w, r)
			return
		}
		reply := json.NewEncoder(w)
		reply.SetEscapeHTML(false) // a result is shown as it is
		reply.Encode(answer)
	})
}

// A Client calls a server.
type Client struct{ http *http.Client }

// Reach returns a client of the server that has the file open, or nil if no server accepts on the
// socket.
func Reach(file string) *Client {
	p, err := Path(file)
	if err != nil {
		return nil // a server could not listen either
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "unix", p)
	}
	probe, err := dial(context.Background(), "", "")
	if err != nil {
		return nil
	}
	probe.Close()
	return &Client{&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Errors of Call.
var (
	ErrEnded   = errors.New("the server ended before it replied")
	ErrUnknown = errors.New("the server does not know the operation")
)

// Call has the server run an operation for a user.
func (c *Client) Call(ctx context.Context, user, name string, in any) (answer Reply, err error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return answer, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sello/"+name, bytes.NewReader(raw))
	if err != nil {
		return answer, err
	}
	req.Header.Set("X-Actor", user)
	res, err := c.http.Do(req)
	if err != nil {
		return answer, cmp.Or(ctx.Err(), ErrEnded)
	}
	defer res.Body.Close()
	if json.NewDecoder(res.Body).Decode(&answer) != nil {
		return Reply{}, ErrUnknown
	}
	return answer, nil
}
