package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"math"
	"os"
	"slices"
)

// plot draws how cost grows with the number of customers, from the figures of a run
// with -sizes. Throughput is at the left, latency at the right.
func plot(name, from string) error {
	if from == "" {
		return errors.New("-plot: -from names the figures of a run with -sizes")
	}
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if len(r.Sizes) == 0 {
		return fmt.Errorf("%s: there is nothing of a run with -sizes", from)
	}
	for _, s := range r.Sizes {
		for _, figures := range []map[string]float64{s.PerSecond, s.Millis} {
			if len(figures) == 0 {
				return fmt.Errorf("%s: %d customers have no figures", from, s.Customers)
			}
			for name, v := range figures {
				if !(v > 0 && v < math.MaxFloat64 && s.Customers > 0) {
					return fmt.Errorf("%s: %s of %d customers is %v", from, name, s.Customers, v)
				}
			}
		}
	}
	slices.SortFunc(r.Sizes, func(a, b sizeReport) int { return int(min(max(a.Customers-b.Customers, -1), 1)) })
	return os.WriteFile(name, drawSizes(r.Sizes), 0o644)
}

func drawSizes(sizes []sizeReport) []byte {
	throughput := chart{title: "Requests per second, 64 connections", left: 80, unit: func(v float64) string { return count(v) }}
	latency := chart{title: "Median latency on one connection", left: 700, log: true, unit: func(v float64) string { return fmt.Sprintf("%.4g ms", v) }}
	for _, s := range sizes {
		for name, v := range s.PerSecond {
			throughput.point(name, float64(s.Customers), v)
		}
		for name, v := range s.Millis {
			latency.point(name, float64(s.Customers), v)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1340 %.0f" font-family="sans-serif" font-size="12">`+"\n", plotTop+plotHeight+60)
	fmt.Fprintln(&b, `<rect width="100%" height="100%" fill="white"/>`)
	throughput.draw(&b)
	latency.draw(&b)
	fmt.Fprintln(&b, `</svg>`)
	return b.Bytes()
}

// The layout of a chart, in the units of the drawing.
const (
	plotTop    = 50.0
	plotWidth  = 380.0
	plotHeight = 340.0
	labelStep  = 15.0 // least distance between the names of two lines
)

// A chart has the number of customers on its horizontal axis, on a logarithmic
// scale.
type chart struct {
	title string
	left  float64
	log   bool // the vertical axis is logarithmic too
	unit  func(float64) string
	lines map[string][][2]float64
}

func (c *chart) point(line string, x, y float64) {
	if c.lines == nil {
		c.lines = map[string][][2]float64{}
	}
	c.lines[line] = append(c.lines[line], [2]float64{x, y})
}

var lineColours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b8860b", "#000000", "#7f3c8d", "#888888", "#a52a2a"}

func (c *chart) draw(b *bytes.Buffer) {
	names := slices.Sorted(maps.Keys(c.lines))
	lowX, highX, lowY, highY := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, n := range names {
		for _, p := range c.lines[n] {
			lowX, highX, lowY, highY = min(lowX, p[0]), max(highX, p[0]), min(lowY, p[1]), max(highY, p[1])
		}
	}
	firstX, lastX := math.Floor(math.Log10(lowX)), math.Ceil(math.Log10(highX))
	lastX = max(lastX, firstX+1)
	x := func(v float64) float64 { return c.left + (math.Log10(v)-firstX)/(lastX-firstX)*plotWidth }
	var marks []float64
	var y func(float64) float64
	if c.log {
		first, last := math.Floor(math.Log10(lowY)), math.Ceil(math.Log10(highY))
		last = max(last, first+1)
		y = func(v float64) float64 { return plotTop + (last-math.Log10(v))/(last-first)*plotHeight }
		for e := first; e <= last; e++ {
			marks = append(marks, math.Pow(10, e))
			if last-first <= 2 && e < last {
				marks = append(marks, 2*math.Pow(10, e), 5*math.Pow(10, e))
			}
		}
	} else {
		step := niceStep(highY / 6)
		top := math.Ceil(highY/step) * step
		y = func(v float64) float64 { return plotTop + (1-v/top)*plotHeight }
		for v := 0.0; v <= top+step/2; v += step {
			marks = append(marks, v)
		}
	}
	text := func(x, y float64, anchor, style, s string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>`+"\n", x, y, anchor, style, html.EscapeString(s))
	}
	line := func(x1, y1, x2, y2 float64, colour string) {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
	}
	bottom := plotTop + plotHeight
	text(c.left, plotTop-20, "start", `font-size="15" font-weight="bold"`, c.title)
	for _, v := range marks {
		line(c.left, y(v), c.left+plotWidth, y(v), "#dddddd")
		text(c.left-6, y(v)+4, "end", "", c.unit(v))
	}
	for e := firstX; e <= lastX; e++ {
		at := x(math.Pow(10, e))
		line(at, plotTop, at, bottom, "#dddddd")
		text(at, bottom+18, "middle", "", count(math.Pow(10, e)))
	}
	line(c.left, bottom, c.left+plotWidth, bottom, "#333333")
	line(c.left, plotTop, c.left, bottom, "#333333")
	text(c.left+plotWidth/2, bottom+40, "middle", "", "customers")

	// Put each name at the end of its line, apart from the others.
	end := func(n string) [2]float64 { p := c.lines[n]; return p[len(p)-1] }
	byHeight := slices.SortedFunc(slices.Values(names), func(p, q string) int { return int(math.Copysign(1, y(end(p)[1])-y(end(q)[1]))) })
	labels := make([]float64, len(byHeight))
	for i, n := range byHeight {
		labels[i] = y(end(n)[1]) + 4
		if i > 0 {
			labels[i] = max(labels[i], labels[i-1]+labelStep)
		}
	}
	for i, limit := len(labels)-1, bottom; i >= 0; i, limit = i-1, limit-labelStep {
		labels[i] = min(labels[i], limit)
	}
	for i, n := range byHeight {
		colour := lineColours[slices.Index(names, n)%len(lineColours)]
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, colour)
		for _, p := range c.lines[n] {
			fmt.Fprintf(b, "%.1f,%.1f ", x(p[0]), y(p[1]))
		}
		fmt.Fprintln(b, `"/>`)
		for _, p := range c.lines[n] {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(p[0]), y(p[1]), colour)
		}
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="2 2"/>`+"\n",
			x(end(n)[0]), y(end(n)[1]), c.left+plotWidth+10, labels[i]-4, colour)
		text(c.left+plotWidth+14, labels[i], "start", `fill="`+colour+`"`, n)
	}
}

// niceStep returns the least number ≥ v that is 1, 2 or 5 times a power of ten.
func niceStep(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(max(v, 1e-9))))
	for _, n := range []float64{1, 2, 5} {
		if n*unit >= v {
			return n * unit
		}
	}
	return 10 * unit
}
