package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"

	"sello/internal/reference"
)

// The reference of the API (contract §17): openapi.json, and the page that is made from it.
// Both name the server as the client called it.

//go:embed openapi.json
var openAPI []byte

// referenceWords are what the page says beside the text of openapi.json.
var referenceWords = reference.Words{
	Lang: "es", Contents: "Contenido", Parameters: "Parámetros", Body: "Cuerpo", Answers: "Respuestas", Schemas: "Esquemas",
	Name: "Nombre", Type: "Tipo", About: "Descripción", Required: "obligatorio", Optional: "puede faltar", Example: "Ejemplo",
	Or: "o", ListOf: "lista de", AtLeast: "al menos", AtMost: "como máximo", Above: "mayor a", Default: "por omisión", Characters: "caracteres",
}

// A madeReference is what a server's references are made from.
type madeReference struct {
	compact []byte
	page    *reference.Page
}

// theReference is that of all servers but sandboxes.
var theReference = sync.OnceValue(func() *madeReference { return referenceFrom(openAPI) })

func referenceFrom(text []byte) *madeReference {
	var b bytes.Buffer
	err := json.Compact(&b, text)
	r := new(madeReference)
	if err == nil {
		r.page, err = reference.New(text, referenceWords)
	}
	if err != nil {
		panic(err) // tests make the reference
	}
	b.WriteByte('\n')
	r.compact = b.Bytes()
	return r
}

// A prepared response is the same for everybody who asks under one name of the server.
type prepared struct {
	contentType   string
	plain, zipped representation // zipped without body: not worth it
}

// A representation is a body with its strong ETag: gzip has other bytes than plain text, and
// so another tag (RFC 9110, 8.8.3).
type representation struct {
	body []byte
	etag string
}

func representationOf(body []byte) representation { return representation{body, etagOf(body)} }

func prepare(contentType string, text []byte) *prepared {
	return &prepared{contentType, representationOf(text), representationOf(zipped(text, gzip.BestCompression))}
}

func zipped(text []byte, level int) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, level)
	z.Write(text)
	z.Close()
	return b.Bytes()
}

func etagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// respond sets the headers of the response and returns its status and body: gzip if the client
// accepts it; 304 if it already has it.
func (p *prepared) respond(h http.Header, r *http.Request) (status int, body []byte) {
	h.Set("Vary", "Accept-Encoding, Host")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", p.contentType)
	if strings.HasPrefix(p.contentType, "text/html") {
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	}
	chosen, packed := p.plain, p.zipped.body != nil && takesGzip(r.Header["Accept-Encoding"])
	if packed {
		chosen = p.zipped
	}
	h.Set("ETag", chosen.etag)
	if namesETag(r.Header["If-None-Match"], chosen.etag) {
		return http.StatusNotModified, nil
	}
	if packed {
		h.Set("Content-Encoding", "gzip")
	}
	return http.StatusOK, chosen.body
}

// manyNames is under how many names of the server the reference is kept.
const manyNames = 16

// references are the reference of the API under each name that the server was called by.
type references struct {
	mu     sync.Mutex
	byBase map[string]*referencesOf
	own    *madeReference // nil: theReference
}

type referencesOf struct{ openAPI, page *prepared }

// of returns the reference for a server at base, such as https://example.com. Clients choose
// the names: past manyNames of them the oldest are made again when asked for.
func (l *references) of(base string) *referencesOf {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.byBase[base]; r != nil {
		return r
	}
	if l.byBase == nil || len(l.byBase) == manyNames {
		l.byBase = map[string]*referencesOf{}
	}
	made := l.own
	if made == nil {
		made = theReference()
	}
	url, _ := json.Marshal(base)
	named := bytes.Replace(made.compact, []byte(`"servers":[{"url":"/"}]`), []byte(`"servers":[{"url":`+string(url)+`}]`), 1)
	r := &referencesOf{prepare("application/json", named), prepare("text/html; charset=utf-8", made.page.For(base))}
	l.byBase[base] = r
	return r
}

// isHost reports whether a Host header has only what names, addresses and ports are made of.
func isHost(host string) bool {
	return host != "" && len(host) <= 255 && strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789-.:[]") == ""
}

// hostOf is the Host header without its port; "" if it is none.
func hostOf(r *http.Request) string {
	if !isHost(r.Host) {
		return ""
	}
	if name, _, err := net.SplitHostPort(r.Host); err == nil {
		return name
	}
	return strings.Trim(r.Host, "[]")
}

// namesETag reports whether If-None-Match names an ETag, weakly compared (RFC 9110, 13.1.2).
func namesETag(header []string, etag string) bool {
	for _, line := range header {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimPrefix(strings.Trim(one, " \t"), "W/"); one == "*" || one == etag {
				return true
			}
		}
	}
	return false
}

// takesGzip reports whether an Accept-Encoding allows gzip. A weight of 0 forbids it.
func takesGzip(header []string) bool {
	for _, line := range header {
		for one := range strings.SplitSeq(line, ",") {
			coding, weight, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(one), " ", ""), ";")
			if coding == "gzip" {
				return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
			}
		}
	}
	return false
}
