package metrics

import (
	"math"
	"runtime"
	"runtime/metrics"
	"time"
)

// The names are those of Prometheus's own client for Go, which dashboards know.

// Runtime registers figures of Go's runtime.
func (r *Registry) Runtime() {
	single := []struct{ kind, source, name, help string }{
		{"gauge", "/sched/goroutines:goroutines", "go_goroutines", "Goroutines."},
		{"gauge", "/sched/gomaxprocs:threads", "go_sched_gomaxprocs_threads", "Threads that may run Go code at a time."},
		{"gauge", "/memory/classes/heap/objects:bytes", "go_memory_classes_heap_objects_bytes", "Memory of live objects and of dead ones that are not swept yet."},
		{"gauge", "/memory/classes/total:bytes", "go_memory_classes_total_bytes", "Memory that the runtime has mapped."},
		{"gauge", "/memory/classes/heap/released:bytes", "go_memory_classes_heap_released_bytes", "Memory that the runtime has mapped and given back to the system."},
		{"gauge", "/gc/heap/goal:bytes", "go_gc_heap_goal_bytes", "Size of the heap at which the next collection ends."},
		{"gauge", "/gc/gomemlimit:bytes", "go_gc_gomemlimit_bytes", "Memory that the runtime tries to stay within."},
		{"counter", "/gc/heap/allocs:bytes", "go_gc_heap_allocs_bytes_total", "Memory allocated on the heap."},
		{"counter", "/gc/cycles/total:gc-cycles", "go_gc_cycles_total_gc_cycles_total", "Garbage collections completed."},
		{"counter", "/sync/mutex/wait/total:seconds", "go_sync_mutex_wait_total_seconds_total", "Time that goroutines were blocked on mutexes."},
	}
	read := make([]metrics.Sample, len(single), len(single)+1)
	for i, s := range single {
		read[i].Name = s.source
		value := func() float64 { return number(read[i].Value) }
		if s.kind == "counter" {
			r.CounterFunc(s.name, s.help, value)
		} else {
			r.Gauge(s.name, s.help, value)
		}
	}
	read = append(read, metrics.Sample{Name: "/sched/pauses/total/gc:seconds"})
	r.add("histogram", "go_sched_pauses_total_gc_seconds", "Pauses of all goroutines for garbage collections. The sum is estimated from finer buckets.",
		nil, &runtimeHistogram{&read[len(single)], pauseBounds})
	r.Gauge("go_info", "The release of Go, in a label.", func() float64 { return 1 }, "version", runtime.Version())
	r.Before(func() { metrics.Read(read) })
}

// number returns NaN for what this release of Go does not know.
func number(v metrics.Value) float64 {
	switch v.Kind() {
	case metrics.KindUint64:
		return float64(v.Uint64())
	case metrics.KindFloat64:
		return v.Float64()
	}
	return math.NaN()
}

var pauseBounds = []float64{1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 0.1, 1}

// A runtimeHistogram has fewer buckets than the runtime's.
type runtimeHistogram struct {
	sample *metrics.Sample
	bounds []float64
}

func (h *runtimeHistogram) lines(b []byte, name, labels string) []byte {
	if h.sample.Value.Kind() != metrics.KindFloat64Histogram {
		return b
	}
	counts, sum := coarser(h.sample.Value.Float64Histogram(), h.bounds)
	return appendHistogram(b, name, labels, h.bounds, counts, sum)
}

// coarser counts into buckets up to each of the bounds, and one above all. A bucket of h
// across a bound is counted above it. The sum takes each for the middle of its bucket.
func coarser(h *metrics.Float64Histogram, bounds []float64) (counts []uint64, sum float64) {
	counts = make([]uint64, len(bounds)+1)
	for i, n := range h.Counts {
		from, to := h.Buckets[i], h.Buckets[i+1]
		at := 0
		for at < len(bounds) && to > bounds[at] {
			at++
		}
		counts[at] += n
		switch {
		case n == 0:
		case math.IsInf(from, -1):
			sum += float64(n) * max(to, 0)
		case math.IsInf(to, 1):
			sum += float64(n) * from
		default:
			sum += float64(n) * (from + to) / 2
		}
	}
	return counts, sum
}

// Process registers figures of this process, as far as the system tells them. The
// process is taken to have started now.
func (r *Registry) Process() {
	started := float64(time.Now().UnixMilli()) / 1000
	r.Gauge("process_start_time_seconds", "When the process started, in seconds since 1970.", func() float64 { return started })
	r.CounterFunc("process_cpu_seconds_total", "User and system time of the process.", processTime)
	r.Gauge("process_resident_memory_bytes", "Memory of the process that is in RAM, the pages of mapped files among it.", residentMemory)
	r.Gauge("process_open_fds", "Open file descriptors.", openFiles)
	r.Gauge("process_max_fds", "File descriptors that may be open.", maxFiles)
}
