package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"sello/internal/chart"
	"sello/internal/gate"
	"sello/internal/host"
	"sello/internal/static"
)

// The panel's address and what follows from it; what the panel knows of its server, with the tasks
// that it may start there; and the stylesheet and script that pages load.

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
	name := withoutPort(host)
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
	a, err = addressFlag{"-panel", "https://puntos.example.mx o http://192.168.1.10:8080, u off", "el panel está siempre en /panel"}.parse(text)
	return a, err == nil, err
}

// An addressFlag is a flag that says at which address browsers open pages: what it looks like, and
// where the pages are there.
type addressFlag struct{ name, form, place string }

func (f addressFlag) parse(text string) (panelAddress, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Port() == "" && strings.HasSuffix(u.Host, ":"):
		err = usageErrorf("%s debe tener la forma %s: %q", f.name, f.form, text)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Path != "" && u.Path != "/":
		err = usageErrorf("%s no lleva ruta, parámetros ni usuario: %s: %q", f.name, f.place, text)
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > 0x7e }):
		err = usageErrorf("%s va en la forma xn-- de un nombre con letras que no son ASCII: %q", f.name, text)
	}
	if err != nil {
		return panelAddress{}, err
	}
	u.Host, u.Path = strings.ToLower(u.Host), ""
	if usual := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; u.Port() != "" {
		u.Host = strings.TrimSuffix(u.Host, usual)
	}
	return panelAddress{u}, nil
}

// What the panel knows of the server that it runs in, and what it may start there.

// Actions of the audit log, of the organization that the operator is in.
const (
	auditVerifyStarted = "verify.started"
)

// A panelServer is what serve.go gives the panel. The figures are those of -metrics, from the
// same sources.
type panelServer struct {
	store    openedStore
	gate     *gate.Gate
	space    *host.Space // of the file
	hooks    *deliverer
	plan     *backupPlan // nil for a database, which PostgreSQL backs up
	build    buildInfo
	started  instant
	address  string         // that it listens at
	name     string         // of the file, with its whole path, or of the database
	sweepLag func() float64 // in seconds; NaN if it is not known

	check      func(context.Context, verifyRequest, *verifyProgress) (*verification, error)
	background func(func(context.Context)) // runs work until the server stops, which ends its context

	copying  panelTask[struct{}, *backedUp]
	checking panelTask[verifyProgress, *verification]
}

// A panelTask is work that may outlast a request, such as a backup. It runs in the background, once
// at a time, and ends with the server. The result of its last run is kept in memory until the next
// run ends, or the process.
type panelTask[P, R any] struct {
	mu      sync.Mutex
	running taskRun[P, R]
	last    taskRun[P, R]
}

// A taskRun is one run of a task; without Progress it is none.
type taskRun[P, R any] struct {
	Progress     *P
	Began, Ended instant
	Result       R
	Err          error
}

// begin claims the task. ok is false if it runs already.
func (k *panelTask[P, R]) begin(now instant) (progress *P, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running.Progress != nil {
		return nil, false
	}
	k.running = taskRun[P, R]{Progress: new(P), Began: now}
	return k.running.Progress, true
}

// end gives the claim back, with the result of the run.
func (k *panelTask[P, R]) end(now instant, result R, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.running = k.running, taskRun[P, R]{}
	k.last.Ended, k.last.Result, k.last.Err = now, result, err
}

// drop gives the claim back: nothing was done.
func (k *panelTask[P, R]) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running = taskRun[P, R]{}
}

// runs returns the run that is under way, and the last one that ended; each without a
// progress if there is none.
func (k *panelTask[P, R]) runs() (running, last taskRun[P, R]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running, k.last
}

// What pages of the panel load: a stylesheet, a script, and the colour of the organization.
// Their addresses change with their contents, so that browsers keep them for good. They need
// no session.
//
//	/panel/s/{start of its SHA-256}/panel.css
//	/panel/marca/{colour}.css

//go:embed panel/panel.css panel/panel.js
var panelFiles embed.FS

const (
	panelAssetPrefix = "/panel/s/"
	panelBrandPrefix = "/panel/marca/"
)

// panelAssets are the files of the panel by their paths.
type panelAssets struct {
	byPath map[string]*static.Content
	paths  map[string]string // by name, such as panel.css
}

var thePanelAssets = sync.OnceValue(func() *panelAssets {
	a := &panelAssets{map[string]*static.Content{}, map[string]string{}}
	for name, contentType := range map[string]string{"panel.css": stylesheetType, "panel.js": "text/javascript; charset=utf-8"} {
		text := panelFile(name)
		sum := sha256.Sum256(text)
		path := panelAssetPrefix + hex.EncodeToString(sum[:6]) + "/" + name
		a.byPath[path], a.paths[name] = static.New(contentType, text), path
	}
	return a
})

const stylesheetType = "text/css; charset=utf-8"

func panelFile(name string) []byte {
	text, err := panelFiles.ReadFile("panel/" + name)
	if err != nil {
		panic(err) // the binary holds all that is named here
	}
	return text
}

// path returns the path of a file by its name; "" if there is none.
func (a *panelAssets) path(name string) string { return a.paths[name] }

// brandPath returns the path of the stylesheet of a colour such as #5B3A29; nil: of an
// organization that has chosen none, whose colour is in panel.css.
func brandPath(primary *string) string {
	if c, ok := brandColor(primary); ok {
		return panelBrandPrefix + c.String()[1:] + ".css"
	}
	return ""
}

// brandColor is a colour such as #5B3A29; ok is false of nil.
func brandColor(primary *string) (c chart.Color, ok bool) {
	return chart.ParseColor(strings.ToLower(strings.TrimPrefix(textOr(primary, ""), "#")))
}

// respond sets the headers of the response to a GET or HEAD, and returns its status and body.
// ok is false for a path that no file has.
func (a *panelAssets) respond(h http.Header, r *http.Request) (status int, body []byte, ok bool) {
	p := a.byPath[r.URL.Path]
	if hex, isBrand := strings.CutPrefix(r.URL.Path, panelBrandPrefix); isBrand {
		if c, valid := chart.ParseColor(strings.TrimSuffix(hex, ".css")); valid && strings.HasSuffix(hex, ".css") {
			p = static.NewPlain(stylesheetType, chart.Stylesheet(c))
		}
	}
	if p == nil {
		return 0, nil, false
	}
	status, body = p.Respond(h, r)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	return status, body, true
}
