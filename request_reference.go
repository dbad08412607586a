package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"

	"sello/internal/reference"
	"sello/internal/static"
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

// theReference is the reference of all servers except sandboxes.
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

// manyNames is under how many names of the server the reference is kept.
const manyNames = 16

// references are the reference of the API under each name that the server was called by.
type references struct {
	mu     sync.Mutex
	byBase map[string]*referencesOf
	own    *madeReference // nil: theReference
}

type referencesOf struct{ openAPI, page *static.Content }

// referenceContent returns a content that names the server.
func referenceContent(contentType string, text []byte) *static.Content {
	c := static.New(contentType, text)
	c.Header.Set("Vary", "Accept-Encoding, Host")
	c.Header.Set("Cache-Control", "no-cache")
	return c
}

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
	r := &referencesOf{referenceContent("application/json", named), referenceContent("text/html; charset=utf-8", made.page.For(base))}
	r.page.Header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
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
	return withoutPort(r.Host)
}

// withoutPort is a name or an address without the port, and without an address's brackets.
func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
