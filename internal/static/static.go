// Package static answers requests with texts that are the same for everybody: made once, with an
// ETag, and with gzip for clients that accept it.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"strings"
)

// A Content is a text as it is sent.
type Content struct {
	Header        http.Header // of each response, beside those that depend on the request
	plain, zipped representation
}

// A representation is a body with its strong ETag: gzip has other bytes than plain text, and
// so another tag (RFC 9110, 8.8.3).
type representation struct {
	body []byte
	etag string
}

func representationOf(body []byte) representation {
	sum := sha256.Sum256(body)
	return representation{body, `"` + hex.EncodeToString(sum[:12]) + `"`}
}

// New returns a content of a type such as text/css.
func New(contentType string, text []byte) *Content {
	c := NewPlain(contentType, text)
	c.zipped = representationOf(Gzip(text, gzip.BestCompression))
	return c
}

// NewPlain returns a content that is never sent as gzip, as if it is not worth it.
func NewPlain(contentType string, text []byte) *Content {
	return &Content{plain: representationOf(text), Header: http.Header{
		"Content-Type": {contentType}, "Vary": {"Accept-Encoding"}, "X-Content-Type-Options": {"nosniff"},
	}}
}

// Respond sets the headers of the response to a GET or HEAD, and returns its status and body: gzip
// if the client accepts it; 304 if it already has it.
func (c *Content) Respond(h http.Header, r *http.Request) (status int, body []byte) {
	maps.Copy(h, c.Header)
	chosen, packed := c.plain, c.zipped.body != nil && AcceptsGzip(r.Header)
	if packed {
		chosen = c.zipped
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

// Gzip packs a text, at a level of compress/gzip.
func Gzip(text []byte, level int) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, level)
	z.Write(text)
	z.Close()
	return b.Bytes()
}

// AcceptsGzip reports whether a request's Accept-Encoding allows gzip. A weight of 0 forbids it.
func AcceptsGzip(h http.Header) bool {
	for _, line := range h["Accept-Encoding"] {
		for one := range strings.SplitSeq(line, ",") {
			coding, weight, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(one), " ", ""), ";")
			if coding == "gzip" {
				return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
			}
		}
	}
	return false
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
