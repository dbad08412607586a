package main

import (
	"net/http"
	"strings"
)

// ETags. A client sends one back as If-Match, so that it does not overwrite what others
// have changed meanwhile (contract §12).

// A tagged is the body of a 200 with an ETag.
type tagged struct {
	body any
	etag string
}

// tagOf is the ETag of what an action returned; "" without.
func tagOf(v any) string {
	tagged, _ := v.(tagged)
	return tagged.etag
}

// ifMatch returns a function that reports whether a resource with an ETag meets If-Match;
// nil without that header. Comparison is strong: a weak tag never matches.
func ifMatch(h http.Header) func(etag string) bool {
	given := h["If-Match"]
	if len(given) == 0 {
		return nil
	}
	return func(etag string) bool {
		for _, line := range given {
			for one := range strings.SplitSeq(line, ",") {
				if one = strings.Trim(one, " \t"); one == "*" || one == etag {
					return true
				}
			}
		}
		return false
	}
}
