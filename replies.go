package main

import (
	"net/http"
	"strings"
)

// What an action may return besides the body itself.

// A reply is a body with a status.
type reply struct {
	status int
	body   any
}

// A repeated is the body of a 200 to a POST that changes nothing, since the same was done
// before.
type repeated struct{ body any }

func isRepeated(v any) bool {
	_, is := v.(repeated)
	return is
}

func encodeReply(v any, status int, err error) (int, []byte, error) {
	if err != nil {
		return 0, nil, err
	}
	switch r := v.(type) {
	case reply:
		v, status = r.body, r.status
	case tagged:
		v, status = r.body, http.StatusOK
	case repeated:
		v, status = r.body, http.StatusOK
	}
	body, err := encode(v)
	return status, body, err
}

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
