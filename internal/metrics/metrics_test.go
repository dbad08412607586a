package metrics

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestText shows every kind of series as it is written.
func TestText(t *testing.T) {
	t.Parallel()
	r := new(Registry)
	level, known := 1.5, false
	r.Counter("a_total", "Things.", "kind", "plain").Inc()
	r.Counter("a_total", "Things.", "kind", `a "b" \c`+"\nd\xff{}")
	r.Counter("a_total", "Things.", "kind", "unused").WhenUsed()
	r.Gauge("b", "With \\ and\na second line.", func() float64 { return level })
	r.Gauge("c", "Left out whole.", func() float64 { return math.NaN() })
	r.Gauge("d", "In part.", func() float64 { return math.Inf(-1) }, "x", "1")
	r.Gauge("d", "In part.", func() float64 {
		if known {
			return 1e15
		}
		return math.NaN()
	}, "x", "2")
	h := r.Histogram("e_seconds", "Times.", []time.Duration{time.Microsecond, time.Second}, "route", "/{id}")
	for _, d := range []time.Duration{0, time.Microsecond, time.Microsecond + 1, time.Second, time.Minute, -time.Hour} {
		h.Observe(d)
	}
	r.Histogram("f_seconds", "Never.", []time.Duration{time.Second}).WhenUsed()
	r.Before(func() { known = true })
	const want = `# HELP a_total Things.
# TYPE a_total counter
a_total{kind="plain"} 1
a_total{kind="a \"b\" \\c\nd` + "\uFFFD" + `{}"} 0
# HELP b With \\ and\na second line.
# TYPE b gauge
b 1.5
# HELP d In part.
# TYPE d gauge
d{x="1"} -Inf
d{x="2"} 1000000000000000
# HELP e_seconds Times.
# TYPE e_seconds histogram
e_seconds_bucket{route="/{id}",le="1e-06"} 3
e_seconds_bucket{route="/{id}",le="1"} 5
e_seconds_bucket{route="/{id}",le="+Inf"} 6
e_seconds_sum{route="/{id}"} 61.000002001
e_seconds_count{route="/{id}"} 6
`
	if got := string(r.Text()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if h.Count() != 6 {
		t.Errorf("%d durations", h.Count())
	}
}

// TestRegistry checks which series are refused.
func TestRegistry(t *testing.T) {
	t.Parallel()
	one := func() float64 { return 1 }
	odd := []string{"b", "1", "c"}
	for reason, register := range map[string]func(*Registry){
		"a name with a dash":      func(r *Registry) { r.Gauge("a-b", "", one) },
		"a name with a digit":     func(r *Registry) { r.Gauge("1a", "", one) },
		"a label with a colon":    func(r *Registry) { r.Gauge("a", "", one, "b:c", "") },
		"a label of Prometheus":   func(r *Registry) { r.Gauge("a", "", one, "__b", "") },
		"a histogram's own label": func(r *Registry) { r.Gauge("a", "", one, "le", "1") },
		"a label without a value": func(r *Registry) { r.Gauge("a", "", one, odd...) },
		"the same series twice": func(r *Registry) {
			r.Gauge("a", "", one, "b", "1")
			r.Gauge("a", "", one, "b", "1")
		},
		"two kinds": func(r *Registry) {
			r.Gauge("a", "", one, "b", "1")
			r.Counter("a", "", "b", "2")
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken", reason)
				}
			}()
			register(new(Registry))
		}()
	}
}

// TestServe asks for the text over HTTP.
func TestServe(t *testing.T) {
	t.Parallel()
	r := new(Registry)
	r.Counter("a_total", "Things.")
	server := httptest.NewServer(r)
	defer server.Close()
	text := string(r.Text())
	for _, test := range []struct {
		method string
		status int
		body   string
	}{{"GET", 200, text}, {"HEAD", 200, ""}, {"POST", 405, "method not allowed\n"}} {
		req, _ := http.NewRequest(test.method, server.URL, nil)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != test.status || string(body) != test.body {
			t.Errorf("%s: %d %q", test.method, res.StatusCode, body)
		}
		if test.status == 200 && (res.Header.Get("Content-Type") != ContentType || res.ContentLength != int64(len(text))) {
			t.Errorf("%s: %v, %d bytes", test.method, res.Header, res.ContentLength)
		}
	}
}

// TestWhileCounting reads while others count. No histogram contradicts itself, and none
// goes back.
func TestWhileCounting(t *testing.T) {
	t.Parallel()
	r := new(Registry)
	c := r.Counter("a_total", "Things.")
	h := r.Histogram("b_seconds", "Times.", []time.Duration{1, 2, 3})
	var counting, reading sync.WaitGroup
	for range 4 {
		counting.Go(func() {
			for i := range 2000 {
				c.Inc()
				h.Observe(time.Duration(i % 6))
			}
		})
	}
	var mu sync.Mutex
	var texts []string
	for range 2 {
		reading.Go(func() {
			for range 50 {
				text := string(r.Text())
				mu.Lock()
				texts = append(texts, text)
				mu.Unlock()
			}
		})
	}
	reading.Wait()
	counting.Wait()
	all, count := regexp.MustCompile(`le="\+Inf"} (\d+)`), regexp.MustCompile(`b_seconds_count (\d+)`)
	for _, text := range texts {
		if a, b := all.FindStringSubmatch(text)[1], count.FindStringSubmatch(text)[1]; a != b {
			t.Fatalf("%s in all buckets, %s in all", a, b)
		}
	}
	if text := string(r.Text()); !strings.Contains(text, "a_total 8000\n") || !strings.Contains(text, "b_seconds_count 8000\n") {
		t.Error(text)
	}
}

// TestRuntime checks that this release of Go knows all that is asked of it, and that the
// figures are of this process.
func TestRuntime(t *testing.T) {
	t.Parallel()
	r := new(Registry)
	r.Runtime()
	r.Process()
	text := string(r.Text())
	for _, f := range r.families {
		switch f.name {
		case "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds":
			continue // as the system tells
		}
		if !strings.Contains(text, "# TYPE "+f.name+" ") {
			t.Errorf("%s has no value", f.name)
		}
	}
	if !regexp.MustCompile(`(?m)^go_goroutines [1-9]`).MatchString(text) {
		t.Error(text)
	}
}

// TestCoarser counts the runtime's buckets into fewer ones.
func TestCoarser(t *testing.T) {
	t.Parallel()
	counts, sum := coarser(&metrics.Float64Histogram{
		Counts:  []uint64{1, 2, 4, 8, 16},
		Buckets: []float64{math.Inf(-1), 0, 1, 3, 4, math.Inf(1)},
	}, []float64{1, 2, 4})
	if want := []uint64{3, 0, 12, 16}; len(counts) != 4 || counts[0] != want[0] || counts[1] != want[1] || counts[2] != want[2] || counts[3] != want[3] {
		t.Errorf("%v, want %v", counts, want)
	}
	if sum != 0*1+0.5*2+2*4+3.5*8+4*16 {
		t.Errorf("sum %v", sum)
	}
}
