package main

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 1 << 20

// bodyOptional reports whether the endpoint needs nothing from its body.
func (r *request) bodyOptional() bool {
	return slices.Contains([]string{"cancel", "capture", "release", "reset"}, path.Base(r.Pattern))
}

// maxMembers bounds the members and elements of the request's body.
func (r *request) maxMembers() int {
	if strings.HasSuffix(r.Pattern, "/batch") {
		return maxBatchMembers
	}
	return maxMembers
}

// isJSON reports whether the body is declared as JSON in UTF-8, not compressed.
func isJSON(h http.Header) bool {
	types, encodings := h["Content-Type"], h["Content-Encoding"]
	if len(types) != 1 || len(encodings) > 1 {
		return false
	}
	if len(encodings) == 1 && encodings[0] != "" && !strings.EqualFold(encodings[0], "identity") {
		return false
	}
	if types[0] == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(types[0])
	charset, given := params["charset"]
	return err == nil && media == "application/json" && (!given || strings.EqualFold(charset, "utf-8"))
}

// readBody reads the body of a POST and splits it into its members. A POST that needs
// nothing from its body may come without one.
func (x *exchange) readBody(req *request) error {
	if req.ContentLength == 0 && req.bodyOptional() {
		req.fields = newFields(nil)
		return x.readRetryKey(req)
	}
	if !isJSON(req.Header) {
		return newError(codeUnsupportedMediaType)
	}
	if req.ContentLength > maxBody { // refused before the client is told to continue
		return newError(codeBodyTooLarge)
	}
	body, err := x.takeBody(req)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return newError(codeBodyTooLarge)
	}
	if errors.Is(err, errUnavailable) {
		return err
	}
	if err != nil {
		return newError(codeInvalidJSON)
	}
	members, fault := parseObjectOf(body, req.maxMembers())
	if fault != nil {
		return newError(codeInvalidJSON).with("reason", fault.reason).with("line", fault.line).with("column", fault.column)
	}
	req.body, req.fields = body, newFields(members)
	return x.readRetryKey(req)
}

// takeBody reads a whole body. It takes units for a large one only after the first
// smallBody bytes have come, so that a client that sends nothing holds no units.
func (x *exchange) takeBody(req *request) ([]byte, error) {
	from := http.MaxBytesReader(x.ResponseWriter, req.Body, maxBody)
	if req.ContentLength >= 0 && req.ContentLength <= smallBody {
		return io.ReadAll(from)
	}
	body, err := io.ReadAll(io.LimitReader(from, smallBody))
	if err != nil || len(body) < smallBody {
		return body, err
	}
	length := maxBody
	if req.ContentLength > 0 {
		length = int(req.ContentLength)
	}
	if x.held.body, err = x.api.bodies.Take(x.context(), unitsOf(length), semaphoreWait); err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(body)
	if req.ContentLength > 0 {
		b.Grow(length - len(body) + bytes.MinRead)
	}
	if _, err = b.ReadFrom(from); err != nil {
		return nil, err
	}
	return b.Bytes(), x.beginWork(x.api.parsing)
}

// readRetryKey reads the Idempotency-Key (contract §6).
func (x *exchange) readRetryKey(req *request) error {
	given := req.Header["Idempotency-Key"]
	if len(given) == 0 || req.Method != http.MethodPost {
		return nil
	}
	if len(given) > 1 || given[0] == "" || len(given[0]) > 255 || !isPrintable(given[0]) {
		return invalidField("Idempotency-Key", "debe tener de 1 a 255 caracteres ASCII imprimibles")
	}
	req.retries = append(req.retries, idempotencyKey(given[0], req.Request, req.body))
	return nil
}

// readActor takes X-Actor: who uses the key (contract §16).
func (r *request) readActor() error {
	given := r.Header["X-Actor"]
	if len(given) == 0 {
		return nil
	}
	if len(given) > 1 {
		return invalidField("X-Actor", "se envió dos veces")
	}
	r.actor = trimBlanks(given[0])
	if !utf8.ValidString(r.actor) || utf8.RuneCountInString(r.actor) > maxActor || strings.ContainsFunc(r.actor, unicode.IsControl) {
		return invalidField("X-Actor", "debe tener como máximo 100 caracteres UTF-8, sin caracteres de control")
	}
	return nil
}
