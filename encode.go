package main

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// encode returns a response's body: JSON without HTML escapes, with a newline at its end.
func encode(v any) ([]byte, error) {
	if a, ok := v.(jsonAppender); ok {
		return append(a.appendJSON(make([]byte, 0, 640)), '\n'), nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// A jsonAppender appends its own JSON to b, byte for byte what encode would write
// for it by reflection. The most frequent answers implement it.
type jsonAppender interface {
	appendJSON(b []byte) []byte
}

// appendJSONList appends a list; nil is null.
func appendJSONList[T jsonAppender](b []byte, list []T) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = v.appendJSON(b)
	}
	return append(b, ']')
}

func appendJSONID(b []byte, v *id) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	return v.appendJSON(b)
}

func appendJSONText(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return appendJSONString(b, *s)
}

// appendJSONString quotes a text as encoding/json does. A text with anything to
// escape is left to encoding/json itself.
func appendJSONString(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == '"' || c == '\\' {
				return appendEscaped(b, s)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return appendEscaped(b, s)
		}
		i += size
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendEscaped(b []byte, s string) []byte {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.Encode(s) // a string and a buffer in memory cannot fail
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
