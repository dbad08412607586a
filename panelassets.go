package main

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"

	"sello/internal/chart"
	"sello/internal/static"
)

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
	if primary != nil {
		if c, ok := chart.ParseColor(strings.ToLower(strings.TrimPrefix(*primary, "#"))); ok {
			return panelBrandPrefix + c.String()[1:] + ".css"
		}
	}
	return ""
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
