package main

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
)

// A panelAddress is the one address of the panel. The name of its cookie, whether that goes
// over TLS alone, and the hosts that it answers follow from it, never from a request. The
// zero address is that of this machine, at any port.
type panelAddress struct{ url *url.URL }

// origin is what browsers call the address; "" of the zero address.
func (a panelAddress) origin() string {
	if a.url == nil {
		return ""
	}
	return a.url.Scheme + "://" + a.url.Host
}

// allows reports whether a Host header is the panel's. A name that leads to this machine, of
// another site, would make that site's pages this one's (DNS rebinding).
func (a panelAddress) allows(host string) bool {
	if a.url != nil {
		return host == a.url.Host
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	addr, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && addr.IsLoopback()
}

// isSecure reports whether browsers reach the panel by TLS.
func (a panelAddress) isSecure() bool { return a.url != nil && a.url.Scheme == "https" }

// isPlain reports whether the panel is reached without TLS, and not from this machine alone.
func (a panelAddress) isPlain() bool {
	return a.url != nil && !a.isSecure() && !panelAddress{}.allows(a.url.Host)
}

// cookieName is the name of the session's cookie. Browsers take the longer name by TLS alone,
// from this host alone.
func (a panelAddress) cookieName() string {
	if a.isSecure() {
		return "__Host-sello"
	}
	return "sello"
}

// cookie is the session's cookie with a token; "" ends it.
func (a panelAddress) cookie(token string) *http.Cookie {
	c := &http.Cookie{Name: a.cookieName(), Value: token, Path: "/", Secure: a.isSecure(), HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if token == "" {
		c.MaxAge = -1
	}
	return c
}

// sentToken is the token of the session that a request came with; "" without.
func (a panelAddress) sentToken(r *http.Request) string {
	c, err := r.Cookie(a.cookieName())
	if err != nil {
		return ""
	}
	return c.Value
}
