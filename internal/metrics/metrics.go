// Package metrics counts, and writes what was counted in the text format of Prometheus.
// Counting takes no lock: a Counter takes one atomic addition, a Histogram two.
//
//	r := new(metrics.Registry)
//	sold := r.Counter("shop_sales_total", "Sales.", "till", "2")
//	sold.Inc()
//	http.Handle("/metrics", r)
//
// Series are registered before they are counted in, with all their labels. So their number
// is known beforehand, and nothing that comes from outside can add to it.
package metrics

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Registry is a list of series. Register all of them before it is first read. The
// methods that register one take pairs of a label's name and its value. They panic if a
// name is malformed, or if a series is registered twice.
type Registry struct {
	mu       sync.Mutex // one reader at a time: the functions share what before has read
	before   []func()
	families []*family
}

// A family is the series of one name.
type family struct {
	name, help, kind string
	series           []series
}

type series struct {
	labels string // as they are written between the braces
	source source
}

// A source appends the lines of a series; none, if it has no value now.
type source interface {
	lines(b []byte, name, labels string) []byte
}

// Before has fn called before each reading. The functions of series that are read after
// it may use what it found. Neither may register anything.
func (r *Registry) Before(fn func()) { r.before = append(r.before, fn) }

// Counter registers a counter, whose name ends with _total.
func (r *Registry) Counter(name, help string, labels ...string) *Counter {
	c := new(Counter)
	r.add("counter", name, help, labels, c)
	return c
}

// CounterFunc registers a counter that is kept elsewhere. While value returns NaN, there
// is no such series.
func (r *Registry) CounterFunc(name, help string, value func() float64, labels ...string) {
	r.add("counter", name, help, labels, valueFunc(value))
}

// Gauge registers a value that may also fall. While value returns NaN, there is no such
// series.
func (r *Registry) Gauge(name, help string, value func() float64, labels ...string) {
	r.add("gauge", name, help, labels, valueFunc(value))
}

// Histogram registers a histogram of durations, whose name ends with _seconds. The bounds
// ascend.
func (r *Registry) Histogram(name, help string, bounds []time.Duration, labels ...string) *Histogram {
	h := &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
	r.add("histogram", name, help, labels, h)
	return h
}

var (
	nameForm  = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	labelForm = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

func (r *Registry) add(kind, name, help string, labels []string, s source) {
	if !nameForm.MatchString(name) || len(labels)%2 != 0 {
		panic(fmt.Sprintf("metrics: %q with %q", name, labels))
	}
	var b []byte
	for i := 0; i < len(labels); i += 2 {
		if !labelForm.MatchString(labels[i]) || strings.HasPrefix(labels[i], "__") || labels[i] == "le" {
			panic(fmt.Sprintf("metrics: %s: label %q", name, labels[i]))
		}
		b = appendLabel(b, labels[i], labels[i+1])
	}
	text := string(b)
	for _, f := range r.families {
		if f.name != name {
			continue
		}
		if f.kind != kind || f.help != help {
			panic(fmt.Sprintf("metrics: %s is two things", name))
		}
		for _, other := range f.series {
			if other.labels == text {
				panic(fmt.Sprintf("metrics: %s{%s} is registered twice", name, text))
			}
		}
		f.series = append(f.series, series{text, s})
		return
	}
	r.families = append(r.families, &family{name, help, kind, []series{{text, s}}})
}

// A Counter counts events.
type Counter struct {
	n        atomic.Uint64
	whenUsed bool
}

// WhenUsed leaves the counter out until it has counted something, and returns it.
func (c *Counter) WhenUsed() *Counter {
	c.whenUsed = true
	return c
}

func (c *Counter) Inc()          { c.n.Add(1) }
func (c *Counter) Value() uint64 { return c.n.Load() }

func (c *Counter) lines(b []byte, name, labels string) []byte {
	n := c.n.Load()
	if n == 0 && c.whenUsed {
		return b
	}
	return appendSample(b, name, "", labels, float64(n))
}

type valueFunc func() float64

func (f valueFunc) lines(b []byte, name, labels string) []byte {
	v := f()
	if math.IsNaN(v) {
		return b
	}
	return appendSample(b, name, "", labels, v)
}

// A Histogram counts durations by how long they are.
type Histogram struct {
	bounds   []time.Duration
	counts   []atomic.Uint64 // up to each bound and above the one before; the last: above all
	sum      atomic.Int64    // nanoseconds
	whenUsed bool
}

// WhenUsed leaves the histogram out until it has counted something, and returns it.
func (h *Histogram) WhenUsed() *Histogram {
	h.whenUsed = true
	return h
}

// Observe counts a duration. One below 0, which a clock that was set back may give, is 0.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < len(h.bounds) && d > h.bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

// Count returns how many durations were counted.
func (h *Histogram) Count() (n uint64) {
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}

func (h *Histogram) lines(b []byte, name, labels string) []byte {
	counts := make([]uint64, len(h.counts))
	used := false
	for i := range h.counts {
		counts[i] = h.counts[i].Load()
		used = used || counts[i] > 0
	}
	if h.whenUsed && !used {
		return b
	}
	bounds := make([]float64, len(h.bounds))
	for i, bound := range h.bounds {
		bounds[i] = bound.Seconds()
	}
	return appendHistogram(b, name, labels, bounds, counts, time.Duration(h.sum.Load()).Seconds())
}
