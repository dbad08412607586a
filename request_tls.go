package main

import (
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sello/internal/cert"
	"sello/internal/lastword"
)

// TLS of the public API, for whoever runs sello without a proxy before it. A plain request to a TLS
// server is answered with an error that says so.
//
// It carries HTTP/1.1 alone. A till sends one request at a time and gains nothing from
// HTTP/2. The frames of HTTP/2 would also pass by what bounds and refuses requests here
// (request_connections.go, internal/unwatched), and its streams have been the cheapest way to
// attack servers (rapid resets, endless headers).

// encrypted wraps the listener of the public API for TLS.
func (a *api) encrypted(l net.Listener, pair *cert.Pair) net.Listener {
	return lastword.TLS(l, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Look(time.Now()), nil },
	}, func() []byte { return a.refusal(codeHTTPSRequired) })
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
