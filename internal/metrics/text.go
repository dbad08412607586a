package metrics

import (
	"math"
	"net/http"
	"strconv"
	"strings"
)

// The text format, version 0.0.4:
// https://prometheus.io/docs/instrumenting/exposition_formats/

// ContentType is that of the text.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Text returns all series with a value, in the order in which their families were
// registered.
func (r *Registry) Text() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fn := range r.before {
		fn()
	}
	b := make([]byte, 0, 64<<10)
	for _, f := range r.families {
		begin := len(b)
		b = appendHead(b, f)
		head := len(b)
		for _, s := range f.series {
			b = s.source.lines(b, f.name, s.labels)
		}
		if len(b) == head {
			b = b[:begin]
		}
	}
	return b
}

// ServeHTTP answers GET and HEAD with Text.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	text := r.Text()
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.Header().Set("Cache-Control", "no-store")
	if req.Method == http.MethodGet {
		w.Write(text) // fails if the reader has gone
	}
}

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func appendHead(b []byte, f *family) []byte {
	b = append(append(append(b, "# HELP "...), f.name...), ' ')
	b = append(b, escapeHelp.Replace(strings.ToValidUTF8(f.help, "\uFFFD"))...)
	b = append(append(append(b, "\n# TYPE "...), f.name...), ' ')
	return append(append(b, f.kind...), '\n')
}

// appendLabel appends one label to others.
func appendLabel(b []byte, name, value string) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	b = append(append(b, name...), '=', '"')
	return append(append(b, escapeLabel.Replace(strings.ToValidUTF8(value, "\uFFFD"))...), '"')
}

func appendSample(b []byte, name, suffix, labels string, value float64) []byte {
	b = append(append(b, name...), suffix...)
	if labels != "" {
		b = append(append(append(b, '{'), labels...), '}')
	}
	return append(appendValue(append(b, ' '), value), '\n')
}

// appendHistogram appends the lines of a histogram. There is one count more than bounds,
// for what lies above all of them.
func appendHistogram(b []byte, name, labels string, bounds []float64, counts []uint64, sum float64) []byte {
	var all uint64
	var with []byte
	for i, n := range counts {
		all += n
		bound := math.Inf(1)
		if i < len(bounds) {
			bound = bounds[i]
		}
		with = append(with[:0], labels...)
		with = appendLabel(with, "le", string(appendValue(nil, bound)))
		b = appendSample(b, name, "_bucket", string(with), float64(all))
	}
	b = appendSample(b, name, "_sum", labels, sum)
	return appendSample(b, name, "_count", labels, float64(all))
}

// appendValue appends a number, whole ones without an exponent.
func appendValue(b []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(b, "+Inf"...)
	case math.IsInf(v, -1):
		return append(b, "-Inf"...)
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}
