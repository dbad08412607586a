package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	fixedHeaders  = map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"}
	shownHeaders  = []string{"Allow", "ETag", "Idempotency-Replayed", "Preference-Applied", "Retry-After", "WWW-Authenticate"}
	limitHeaders  = []string{"RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	madeRequestID = regexp.MustCompile(`^[A-Z2-7]{26}$`)
	// Errors of requests that are refused before they count against a limit.
	beforeLimits = []string{
		"bad_request", "expectation_failed", "headers_too_large", "https_required", "route_not_found", "method_not_allowed",
		"api_key_required", "api_key_invalid", "api_key_expired", "plan_without_api", "ip_not_allowed", "rate_limit_source",
	}
)

// faultsOf returns what is wrong with a response by the rules that hold for
// every response.
func faultsOf(s step, res *http.Response, body []byte, requestID string) (faults []string) {
	require := func(ok bool, fault string) {
		if !ok {
			faults = append(faults, fault)
		}
	}
	if slices.Contains(preparedTargets, s.target) && res.StatusCode == http.StatusOK { // TestReference looks at these
		return nil
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
	require((res.Header.Get("WWW-Authenticate") == "Bearer") == (res.StatusCode == http.StatusUnauthorized), "WWW-Authenticate")
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
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		require(d.Decode(&e) == nil && e.StatusCode == res.StatusCode && e.RequestID == id && e.Message != "", "error body")
	}
	if !slices.Contains([]string{"internal", "unavailable"}, e.Code) {
		limited := strings.Contains(s.target, "/api/") && !slices.Contains(preparedTargets, s.target) && !slices.Contains(beforeLimits, e.Code)
		require(limited == (res.Header.Get("RateLimit") != ""), "RateLimit")
	}
	return faults
}

// preparedTargets are answered with what was prepared before (request_reference.go).
var preparedTargets = []string{"/api/v1/openapi.json", "/docs"}

// An outcome is a response in which names replace the values they stand for.
type outcome struct {
	status  int
	headers []string // as lines
	body    string   // compact
}

func (w *world) outcome(res *http.Response, body []byte) outcome {
	o := outcome{status: res.StatusCode}
	shown := shownHeaders
	if w.showLimits {
		shown = slices.Concat(shownHeaders, limitHeaders)
	}
	for _, name := range shown {
		if value := res.Header.Get(name); value != "" {
			o.headers = append(o.headers, name+": "+value)
		}
	}
	if res.Close {
		o.headers = append(o.headers, "Connection: close")
	}
	// If two names have the same value, the first in alphabetical order replaces it.
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(w.names)) {
		pairs = append(pairs, w.names[name], "$"+name)
	}
	if id := res.Header.Get("X-Request-Id"); madeRequestID.MatchString(id) {
		o.headers = append(o.headers, "X-Request-Id: <new>")
		pairs = append(pairs, id, "<new>")
	}
	o.body = strings.NewReplacer(pairs...).Replace(strings.TrimSpace(string(body)))
	return o
}

// text returns the response as a step shows it.
func (o outcome) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "=> %d\n", o.status)
	for _, line := range o.headers {
		b.WriteString(line + "\n")
	}
	layout(&b, o.body, "")
	return strings.TrimSpace(b.String())
}

// row returns the response as a row of a table shows it, without WWW-Authenticate:
// it follows from the status, which faultsOf checks.
func (o outcome) row() string {
	words, rest := []string{strconv.Itoa(o.status)}, []string{o.body}
	if o.status >= 400 && o.body != "" {
		var e struct {
			errorBody
			Context json.RawMessage `json:"context"`
		}
		json.Unmarshal([]byte(o.body), &e)
		words, rest = append(words, e.Code), []string{e.Message}
		if e.Field != "" {
			words = append(words, "field="+e.Field)
		}
		if e.Context != nil {
			rest = append(rest, string(e.Context))
		}
	}
	for _, line := range o.headers {
		switch name, value, _ := strings.Cut(line, ": "); name {
		case "WWW-Authenticate":
		case "Connection":
			words = append(words, "close")
		case "X-Request-Id":
			words = append(words, "id=new")
		default:
			words = append(words, strings.ToLower(name)+"="+strings.ReplaceAll(value, " ", ""))
		}
	}
	return strings.TrimSuffix(strings.Join(slices.Concat([]string{strings.Join(words, " ")}, rest), " | "), " | ")
}

// shown removes from a success the members that no directive asks for.
func (w *world) shown(o outcome) outcome {
	if w.members == nil || w.whole || o.status >= 300 || o.body == "" {
		return o
	}
	o.body, _ = part(o.body, func(name string) bool {
		_, always := w.members[name]
		_, also := w.also[name]
		if always {
			w.members[name] = true
		}
		if also {
			w.also[name] = true
		}
		return always || also
	})
	return o
}

// part keeps only the named members of compact JSON and the members that contain one.
// createdBy and programs have member names in common with the objects around them, so they
// are kept only if they are named themselves; data is always kept. part reports whether any member is left.
func part(value string, named func(string) bool) (left string, found bool) {
	var kept []string
	switch value[0] {
	case '{':
		all := true
		for _, member := range elements(value) {
			name, inner, _ := strings.Cut(member[1:], `":`)
			if named(name) {
				kept, found = append(kept, member), true
			} else if inner, ok := part(inner, named); name != "createdBy" && name != "programs" && ok || name == "data" {
				kept, found = append(kept, `"`+name+`":`+inner), true
			} else {
				all = false
			}
		}
		if !all {
			kept = append(kept, "…")
		}
		return "{" + strings.Join(kept, ",") + "}", found
	case '[':
		for _, element := range elements(value) {
			inner, ok := part(element, named)
			kept, found = append(kept, inner), found || ok
		}
		return "[" + strings.Join(kept, ",") + "]", found
	}
	return value, false
}

// layout formats compact JSON for reading: a value that fits on the line stays as it
// is; any other has each of its members on its own line.
func layout(b *strings.Builder, value, indent string) {
	const width = 150
	if len(indent)+len(value) <= width || !strings.ContainsAny(value[:1], "{[") {
		b.WriteString(value)
		return
	}
	b.WriteString(value[:1])
	for i, element := range elements(value) {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n" + indent + "  ")
		if end := strings.Index(element, `":`) + 2; value[0] == '{' && element[0] == '"' {
			b.WriteString(element[:end] + " ")
			element = element[end:]
		}
		layout(b, element, indent+"  ")
	}
	b.WriteString("\n" + indent + value[len(value)-1:])
}

// elements returns the members of an object or the elements of a list as compact JSON.
func elements(value string) (list []string) {
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
			if start < i {
				list = append(list, value[start:i])
			}
			start = i + 1
		}
	}
	return list
}
