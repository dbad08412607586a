package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

var (
	fixedHeaders  = map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"}
	shownHeaders  = []string{"Allow", "Idempotency-Replayed", "Retry-After", "WWW-Authenticate"}
	limitHeaders  = []string{"RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	madeRequestID = regexp.MustCompile(`^[A-Z2-7]{26}$`)
	// What is refused before it counts has no limits to tell of.
	beforeLimits = []string{
		"bad_request", "expectation_failed", "headers_too_large", "route_not_found", "method_not_allowed",
		"api_key_required", "api_key_invalid", "api_key_expired", "plan_without_api", "ip_not_allowed", "rate_limit_source",
	}
)

// faultsOf says what is wrong with a response that no response may have wrong.
func faultsOf(s step, res *http.Response, body []byte, requestID string) (faults []string) {
	require := func(ok bool, fault string) {
		if !ok {
			faults = append(faults, fault)
		}
	}
	known := http.Header{"Content-Length": nil, "Date": nil, "X-Request-Id": nil}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(fixedHeaders)), shownHeaders, limitHeaders) {
		known[http.CanonicalHeaderKey(name)] = nil
	}
	for name, values := range res.Header {
		_, ok := known[name]
		require(ok && len(values) == 1, "a header too many")
	}
	for name, value := range fixedHeaders {
		require(res.Header.Get(name) == value, name)
	}
	id := res.Header.Get("X-Request-Id")
	require(id == requestID || madeRequestID.MatchString(id), "X-Request-Id")
	if s.method == "HEAD" {
		require(len(body) == 0 && res.ContentLength > 0, "length")
		return faults
	}
	var compact bytes.Buffer
	json.Compact(&compact, body)
	require(res.ContentLength == int64(len(body)), "Content-Length")
	require(string(body) == compact.String()+"\n", "not compact JSON and a newline")
	var e errorBody
	if res.StatusCode >= 400 {
		require(json.Unmarshal(body, &e) == nil && e.StatusCode == res.StatusCode && e.RequestID == id && e.Message != "", "error body")
	}
	if !slices.Contains([]string{"internal", "unavailable"}, e.Code) {
		limited := strings.Contains(s.target, "/api/") && s.target != "/api/v1/openapi.json" && !slices.Contains(beforeLimits, e.Code)
		require(limited == (res.Header.Get("RateLimit") != ""), "RateLimit")
	}
	return faults
}

// show is a response as transcripts show it.
func (w *world) show(res *http.Response, body []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "=> %d\n", res.StatusCode)
	shown := shownHeaders
	if w.showLimits {
		shown = slices.Concat(shownHeaders, limitHeaders)
	}
	for _, name := range shown {
		if value := res.Header.Get(name); value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	if res.Close {
		fmt.Fprintf(&b, "Connection: close\n")
	}
	// Names in the place of values; where two have one value, the first.
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(w.names)) {
		pairs = append(pairs, w.names[name], "$"+name)
	}
	if id := res.Header.Get("X-Request-Id"); madeRequestID.MatchString(id) {
		fmt.Fprintf(&b, "X-Request-Id: <new>\n")
		pairs = append(pairs, id, "<new>")
	}
	layout(&b, strings.NewReplacer(pairs...).Replace(strings.TrimSpace(string(body))), "")
	return strings.TrimSpace(b.String())
}

// layout writes compact JSON for people: a value that fits into the line as it
// is, any other with each of its members on a line.
func layout(b *strings.Builder, value, indent string) {
	const width = 150
	if len(indent)+len(value) <= width || !strings.ContainsAny(value[:1], "{[") {
		b.WriteString(value)
		return
	}
	b.WriteString(value[:1])
	depth, start, quoted := 0, 1, false
	for i := 1; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			b.WriteString("\n" + indent + "  ")
			member := value[start:i]
			if end := strings.Index(member, `":`) + 2; value[0] == '{' {
				b.WriteString(member[:end] + " ")
				member = member[end:]
			}
			layout(b, member, indent+"  ")
			if start = i + 1; c == ',' {
				b.WriteString(",")
			}
		}
	}
	b.WriteString("\n" + indent + value[len(value)-1:])
}
