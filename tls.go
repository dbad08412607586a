package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// TLS for those who run sello without a proxy before it.
//
// It carries HTTP/1.1 alone. A till sends one request at a time and gains nothing from
// HTTP/2. The frames of HTTP/2 would also pass by what bounds and refuses requests here
// (refusals.go, internal/unwatched), and its streams have been the cheapest way to attack servers
// (rapid resets, endless headers).

// A certificate is a pair of PEM files. It is read anew when either changes: a renewal
// needs no restart. A pair that is valid now is never given up for one that is not.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate // that is served
	newest  *tls.Certificate // that the files had last
	read    pairState        // when newest was read, or could not be
	told    string           // what the log said last of current's time; "" for nothing
	toldAt  time.Time
}

const (
	certificateLook    = time.Hour           // between looks at the files, where nobody connects
	certificateAgain   = 24 * time.Hour      // between two warnings
	certificateWarning = 14 * 24 * time.Hour // before the end
)

// A pairState tells whether the files of a certificate have changed.
type pairState [2]struct {
	changed time.Time
	size    int64
}

// openCertificate reads the files for the first time, and logs if their certificate is not
// valid at now, or not for long.
func openCertificate(certFile, keyFile string, now time.Time, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.renew(now); err != nil {
		return nil, fmt.Errorf("-tls-cert y -tls-key: %w", err)
	}
	c.warn(now)
	return c, nil
}

// renew reads the files if they have changed, and takes their pair, unless it is not valid
// and the current one is. Such a pair is taken once it is valid, or the current one is not.
func (c *certificate) renew(now time.Time) error {
	err := c.readFiles()
	if c.current == nil || outOfDate(c.newest.Leaf, now) == "" || outOfDate(c.current.Leaf, now) != "" {
		c.current = c.newest
	}
	return err
}

// readFiles sets newest if the files have changed. On an error newest stays.
func (c *certificate) readFiles() error {
	state, err := c.state()
	if state == c.read && c.newest != nil {
		return nil
	}
	c.read = state
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err == nil {
		c.newest = &pair
	}
	return err
}

// state is zero where the files cannot be looked at.
func (c *certificate) state() (pairState, error) {
	var state pairState
	for i, name := range [2]string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return pairState{}, err
		}
		state[i].changed, state[i].size = info.ModTime(), info.Size()
	}
	return state, nil
}

// outOfDate says why clients refuse a certificate at now; "" if its time is no reason to.
func outOfDate(cert *x509.Certificate, now time.Time) string {
	switch {
	case now.Before(cert.NotBefore):
		return "certificate not valid yet"
	case now.After(cert.NotAfter):
		return "certificate expired"
	}
	return ""
}

// endsSoon reports whether a certificate ends within certificateWarning, or, of one that
// lasts for days only, within the last third of its time.
func endsSoon(cert *x509.Certificate, now time.Time) bool {
	return now.After(cert.NotAfter.Add(-min(certificateWarning, cert.NotAfter.Sub(cert.NotBefore)/3)))
}

// look returns the pair to serve. While the files cannot be read, or do not fit together as
// halfway through a renewal, it is that of before. look logs what has changed.
func (c *certificate) look(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, seen := c.current, c.newest
	err := c.renew(now)
	switch {
	case err != nil:
		c.log.Warn("certificate not renewed", "cause", err.Error())
	case c.current != was:
		c.log.Info("certificate renewed", "until", c.current.Leaf.NotAfter)
		c.told = ""
	case c.newest != seen:
		c.log.Warn("certificate not renewed", "cause", outOfDate(c.newest.Leaf, now)+": the valid one of before stays",
			"from", c.newest.Leaf.NotBefore, "until", c.newest.Leaf.NotAfter)
	}
	c.warn(now)
	return c.current
}

// warn logs that the current certificate is not valid, or not for long: at once, and then
// every certificateAgain.
func (c *certificate) warn(now time.Time) {
	cert := c.current.Leaf
	text := outOfDate(cert, now)
	if text == "" && endsSoon(cert, now) {
		text = "certificate expires soon"
	}
	if text != "" && (text != c.told || now.Sub(c.toldAt) >= certificateAgain) {
		c.log.Warn(text, "file", c.certFile, "from", cert.NotBefore, "until", cert.NotAfter)
		c.toldAt = now
	}
	c.told = text
}

// watch looks at the files until ctx ends.
func (c *certificate) watch(ctx context.Context) {
	every(ctx, certificateLook, func() { c.look(time.Now()) })
}

// encrypted wraps the listener of the public API for TLS.
func (c *certificate) encrypted(l net.Listener, a *api) net.Listener {
	return tlsListener{l, a, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.look(time.Now()), nil },
	}}
}

type tlsListener struct {
	net.Listener
	api    *api
	config *tls.Config
}

func (l tlsListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tlsConn{tls.Server(c, l.config), l.api}, nil
}

// A tlsConn shakes hands with the first read, within that read's deadline. It tells a
// client that speaks plain HTTP so.
type tlsConn struct {
	*tls.Conn
	api *api
}

func (c *tlsConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if bad, ok := err.(tls.RecordHeaderError); ok && bad.Conn != nil && isHTTP(bad.RecordHeader) {
		until := time.Now().Add(lingerTime)
		bad.Conn.SetDeadline(until)
		lastWrite(bad.Conn, c.api.refusal(codeHTTPSRequired), until, lingerBytes)
	}
	return n, err
}

// isHTTP reports whether the first bytes of a connection begin a request of HTTP/1.
func isHTTP(head [5]byte) bool {
	return slices.ContainsFunc([]string{"GET /", "POST ", "PATCH", "HEAD ", "PUT /", "DELET", "OPTIO"}, func(method string) bool {
		return method == string(head[:])
	})
}

// Bounds of connections to -http-redirect, which end after one request.
const (
	redirectConns          = 256
	redirectConnsPerSource = 32
)

// redirects returns the handler of -http-redirect. It sends browsers to the panel's address
// (origin) where that is known, or else to the port of the API. What carries a key or would change something is refused instead: redirected, it
// would go on sending its key for all to read, and nobody would notice.
func (a *api) redirects(port int, origin string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		target, ok := httpsURL(r, port)
		if origin != "" {
			target, ok = origin, true
		}
		path := r.URL.EscapedPath()
		if ok = ok && strings.HasPrefix(path, "/"); r.URL.RawQuery != "" {
			path += "?" + r.URL.RawQuery
		}
		if target += path; ok && reads && r.Header.Get("Authorization") == "" && r.Header.Get("X-Api-Key") == "" {
			w.Header().Set("Location", target)
			w.WriteHeader(http.StatusPermanentRedirect)
			return
		}
		x := a.newExchange(w, r)
		x.fail(newError(codeHTTPSRequired))
		x.finish(r)
	})
}

// httpsURL is the request's scheme and host over TLS.
func httpsURL(r *http.Request, port int) (string, bool) {
	host := hostOf(r)
	switch {
	case host == "":
		return "", false
	case port != 443:
		host = net.JoinHostPort(host, strconv.Itoa(port))
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return "https://" + host, true
}
