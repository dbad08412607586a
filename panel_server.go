package main

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
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
	if err != nil { // without a port
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
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

// parsePanelAddress reads the address of the panel. on is false for off; "" is the zero
// address. The port that its scheme has anyway is left out, as browsers do.
func parsePanelAddress(text string) (a panelAddress, on bool, err error) {
	switch text {
	case "off":
		return a, false, nil
	case "":
		return a, true, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Port() == "" && strings.HasSuffix(u.Host, ":"):
		err = usageErrorf("-panel debe tener la forma https://puntos.example.mx o http://192.168.1.10:8080, u off: %q", text)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Path != "" && u.Path != "/":
		err = usageErrorf("-panel no lleva ruta, parámetros ni usuario: el panel está siempre en /panel: %q", text)
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > 0x7e }):
		err = usageErrorf("-panel va en la forma xn-- de un nombre con letras que no son ASCII: %q", text)
	}
	if err != nil {
		return panelAddress{}, false, err
	}
	u.Host, u.Path = strings.ToLower(u.Host), ""
	if usual := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; u.Port() != "" {
		u.Host = strings.TrimSuffix(u.Host, usual)
	}
	return panelAddress{u}, true, nil
}
