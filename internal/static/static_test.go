package static

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// respond asks for a content, with pairs of a header's name and its value.
func respond(c *Content, headers ...string) (int, http.Header, []byte) {
	r, h := httptest.NewRequest("GET", "/", nil), http.Header{}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	status, body := c.Respond(h, r)
	return status, h, body
}

// TestRespond: each encoding has an ETag of its own, and only that one makes a 304. What is
// packed is the same text.
func TestRespond(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("a{}\n"), 100)
	c := New("text/css", text)
	c.Header.Set("Cache-Control", "no-cache")
	_, h, _ := respond(c)
	plainTag := h.Get("ETag")
	_, h, _ = respond(c, "Accept-Encoding", "gzip")
	packedTag := h.Get("ETag")
	if plainTag == packedTag {
		t.Error("gzip and plain text have one strong ETag")
	}
	for accept, packed := range map[string]bool{"": false, "gzip, br": true, "br;q=1, GZIP ; q=0.5": true, "br": false, "gzip;q=0": false, "gzip;q=0.0": false} {
		own, other := plainTag, packedTag
		if packed {
			own, other = packedTag, plainTag
		}
		status, h, body := respond(c, "Accept-Encoding", accept)
		if (h.Get("Content-Encoding") == "gzip") != packed || status != http.StatusOK || h.Get("ETag") != own ||
			h.Get("Content-Type") != "text/css" || h.Get("Vary") != "Accept-Encoding" || h.Get("Cache-Control") != "no-cache" {
			t.Errorf("for %q: %d %v", accept, status, h)
		}
		if packed {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(z); err != nil {
				t.Errorf("unpacked: %v", err)
			}
		}
		if !bytes.Equal(body, text) {
			t.Errorf("for %q: %d bytes", accept, len(body))
		}
		for tag, want := range map[string]int{own: http.StatusNotModified, `"x", W/` + own: http.StatusNotModified, "*": http.StatusNotModified, other: http.StatusOK, "": http.StatusOK} {
			status, h, body := respond(c, "Accept-Encoding", accept, "If-None-Match", tag)
			if status != want || (len(body) == 0) != (want == http.StatusNotModified) || h.Get("ETag") != own {
				t.Errorf("for %q with %s: %d, %d bytes, %v", accept, tag, status, len(body), h)
			}
		}
	}
	if _, h, body := respond(NewPlain("text/css", text), "Accept-Encoding", "gzip"); h.Get("Content-Encoding") != "" || !bytes.Equal(body, text) {
		t.Errorf("what is never packed: %v", h)
	}
}
