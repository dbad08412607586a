package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A report holds the measurements of a run.
type report struct {
	When     time.Time         `json:"when"`
	Command  string            `json:"command"`
	Machine  map[string]string `json:"machine"`
	Short    bool              `json:"short"` // small data and short rounds: not the real run
	Rounds   int               `json:"rounds"`
	Span     float64           `json:"seconds"` // of a round
	Datasets []datasetReport   `json:"datasets"`
	Rows     []row             `json:"rows"`
	Sizes    []sizeReport      `json:"sizes,omitempty"`
}

type datasetReport struct {
	Customers int64    `json:"customers"`
	FileBytes int64    `json:"fileBytes"`
	Progress  progress `json:"progress"`
}

// A row is one target and its measurement.
type row struct {
	ID     string         `json:"id"`
	Work   string         `json:"work"`
	Target string         `json:"target"`
	Figure string         `json:"figure"`
	Met    verdict        `json:"met"`
	Note   string         `json:"note,omitempty"`
	Values map[string]any `json:"values,omitempty"`
}

// A verdict says whether a target was met. A verdict in brackets was reached with
// less data or in less time than the target asks for.
type verdict string

const (
	met         verdict = "met"
	missed      verdict = "missed"
	notMeasured verdict = "not measured"
	told        verdict = "told" // there is no target
)

func verdictOf(ok bool) verdict {
	if ok {
		return met
	}
	return missed
}

// only puts a verdict in brackets unless the measurement was as the target asks.
func (v verdict) only(asAsked bool) verdict {
	if asAsked || v == notMeasured || v == told {
		return v
	}
	return "(" + v + ")"
}

// order lists the targets in the order of the table.
var order = []string{"1", "2", "3", "4", "4b", "5", "6", "7", "8", "9", "10", "10b", "11", "12", "13", "14", "15", "16"}

// postgresOrder lists those of -postgres.
var postgresOrder = []string{"p1", "p2", "p3", "p4", "p5", "p6", "p7"}

func (r *report) print(w io.Writer) {
	all := append(order[:len(order):len(order)], postgresOrder...)
	slices.SortStableFunc(r.Rows, func(a, b row) int { return slices.Index(all, a.ID) - slices.Index(all, b.ID) })
	if r.Short {
		fmt.Fprintln(w, "SHORT RUN: small data and short rounds; these are not the figures of the targets.")
	}
	var about []string
	for _, name := range []string{"cpu", "cpus", "memory", "kernel", "fileSystem", "postgres", "go", "platform"} {
		if v := r.Machine[name]; v != "" {
			about = append(about, name+" "+v)
		}
	}
	fmt.Fprintln(w, strings.Join(about, ", "))
	if len(r.Rows) > 0 {
		r.printRows(w)
	}
	if len(r.Sizes) > 0 {
		r.printSizes(w)
	}
}

func (r *report) printRows(w io.Writer) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "#\twork\ttarget\tfigure\tmet")
	for _, x := range r.Rows {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\n", x.ID, x.Work, x.Target, x.Figure, x.Met)
	}
	tab.Flush()
	for _, x := range r.Rows {
		if x.Note != "" {
			fmt.Fprintf(w, "%-3s %s\n", x.ID, x.Note)
		}
	}
	if slices.ContainsFunc(r.Rows, func(x row) bool { return strings.HasPrefix(string(x.Met), "(") }) {
		fmt.Fprintln(w, "In brackets: reached on less data, or in less time, than the target asks for.")
	}
}

func (r *report) printSizes(w io.Writer) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, value func(sizeReport) string) {
		fmt.Fprint(tab, name, "\t")
		for _, s := range r.Sizes {
			fmt.Fprint(tab, value(s), "\t")
		}
		fmt.Fprintln(tab)
	}
	line("customers", func(s sizeReport) string { return count(s.Customers) })
	line("file", func(s sizeReport) string { return megabytes(s.FileBytes) })
	for _, name := range slices.Sorted(maps.Keys(r.Sizes[0].PerSecond)) {
		line(name+", per second", func(s sizeReport) string { return count(s.PerSecond[name]) })
	}
	for _, name := range slices.Sorted(maps.Keys(r.Sizes[0].Millis)) {
		line(name+", ms", func(s sizeReport) string { return fmt.Sprintf("%.3f", s.Millis[name]) })
	}
	tab.Flush()
}

func (r *report) write(name string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(raw, '\n'), 0o644)
}

// figures rounds numbers for JSON, which has null for NaN and infinities.
func figures(list []float64) []any {
	out := make([]any, len(list))
	for i, v := range list {
		if out[i] = round(v, 4); math.IsNaN(v) || math.IsInf(v, 0) {
			out[i] = nil
		}
	}
	return out
}

func round(v float64, places int) float64 {
	unit := math.Pow(10, float64(places))
	return math.Round(v*unit) / unit
}

// count returns a number with commas between its thousands.
func count[N int | int64 | float64](n N) string {
	digits := fmt.Sprintf("%.0f", float64(n))
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.3g ms", float64(d.Microseconds())/1000)
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/(1<<20)) }

// A watch prints the progress of a long task at intervals.
type watch struct {
	what        string
	total, from int64
	begin, last time.Time
	out         io.Writer
	turn        chan struct{} // holds one token
}

const watchInterval = 2 * time.Second

func (b *bench) watch(what string, total, from int64) *watch {
	now := time.Now()
	w := &watch{what, total, from, now, now, b.out, make(chan struct{}, 1)}
	w.turn <- struct{}{}
	return w
}

func (w *watch) at(n int64) {
	select {
	case <-w.turn:
		defer func() { w.turn <- struct{}{} }()
	default:
		return
	}
	now := time.Now()
	if now.Sub(w.last) < watchInterval && n < w.total {
		return
	}
	w.last = now
	rate := float64(n-w.from) / now.Sub(w.begin).Seconds()
	left := time.Duration(float64(w.total-n) / rate * float64(time.Second)).Round(time.Second)
	fmt.Fprintf(w.out, "%s: %s of %s, %s/s, %v to go\n", w.what, count(n), count(w.total), count(rate), left)
}
