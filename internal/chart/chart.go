// Package chart draws figures as SVG, and finds the colours with which a chosen one can be read.
package chart

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// Charts are SVG that the server draws. Colours come from classes of the page: bar, bar2,
// line, dot, grid, axis, track, over and halo. A picture has no viewBox: it takes the width that
// there is and keeps its height, so that its text has one size on every screen. Horizontal
// positions are therefore in percent, and only the marks are stretched.
//
// This file makes template.HTML. Every text in it is escaped.

// A Figure is a number in ten-thousandths.
type Figure int64

// one is the figure 1.
const one = 10_000

// MostPoints is how many points of time a picture has at most.
const MostPoints = 400

// A Plot is figures over time on one axis.
type Plot struct {
	ID, Title, Desc string
	Units           [3]string // of the axis: as it is, in thousands, in millions
	Labels          []string  // of the points, for the axis
	Series          []Series
	Whole           bool // the figures are counts: the axis has no fractions
	Level           bool // the axis may begin above zero, as for what rises and falls a little
	Open            bool // the last period is not over: the lines to it are dashed
}

// A Series is the figures of one kind, one for each point.
type Series struct {
	Class  string // bar and bar2 are columns, line is a line
	Beside bool   // its columns stand beside those of the series before, not in their place
	Values []Figure
}

// The picture of a plot, in pixels. Above the marks is the unit, below are the labels.
const (
	plotHeight = 220
	plotTop    = 24
	marksHigh  = 170
	slotWide   = 10 // of one point, before the marks are stretched
	leastSlots = 7  // fewer columns would be slabs
)

// Draw returns the picture; "" if there are no points, or too many to tell apart. number
// spells the whole figures of the axis.
func (p *Plot) Draw(number func(Figure) string) template.HTML {
	n := len(p.Labels)
	if n == 0 || n > MostPoints {
		return ""
	}
	axis := p.axis()
	b := &strings.Builder{}
	b.WriteString(`<div class="plot">`)
	axis.writeScale(b, number)
	svgOpen(b, p.ID, p.Title, p.Desc, plotHeight)
	svgText(b, svgLabel{x: "0", y: 11, text: p.Units[axis.thousands]})
	axis.writeGrid(b)
	slots := max(n, leastSlots)
	before := (slots - n) * slotWide / 2
	fmt.Fprintf(b, `<svg y="%d" width="100%%" height="%d" viewBox="0 0 %d %d" preserveAspectRatio="none" overflow="visible">`, plotTop, marksHigh, slots*slotWide, marksHigh)
	columns := 1
	for _, s := range p.Series {
		if s.Beside {
			columns++
		}
	}
	column := 0
	for _, s := range p.Series {
		if s.Class == "line" {
			s.writeLine(b, axis, before, p.Open)
			continue
		}
		if s.Beside {
			column++
		}
		const gap = 1 // between columns, on either side of a point's
		wide := float64(slotWide-2*gap) / float64(columns)
		s.writeColumns(b, axis, float64(before+gap)+wide*float64(column), wide)
	}
	b.WriteString(`</svg>`)
	center := func(i int) float64 {
		return 100 * (float64(before) + slotWide*(float64(i)+.5)) / float64(slots*slotWide)
	}
	p.writeDots(b, axis, center(n-1))
	p.writeLabels(b, center)
	b.WriteString(`</svg></div>`)
	return template.HTML(b.String())
}

// writeColumns writes the columns of a series as one path. What is not zero is at least a
// pixel high.
func (s *Series) writeColumns(b *strings.Builder, axis plotAxis, left, wide float64) {
	zero := axis.height(0)
	fmt.Fprintf(b, `<path class="%s" vector-effect="non-scaling-stroke" d="`, s.Class)
	for i, v := range s.Values {
		y := axis.height(v)
		switch {
		case v == 0:
			continue
		case v > 0:
			y = min(y, zero-1)
		default:
			y = max(y, zero+1)
		}
		x := left + float64(i*slotWide)
		fmt.Fprintf(b, "M%s %sV%sH%sV%sz", svgNumber(x), svgNumber(zero), svgNumber(y), svgNumber(x+wide), svgNumber(zero))
	}
	b.WriteString(`"/>`)
}

// writeLine writes a line, and a wider one under it that parts it from columns. Its way to a last
// point that is open is dashed.
func (s *Series) writeLine(b *strings.Builder, axis plotAxis, before int, open bool) {
	points := make([]string, len(s.Values))
	for i, v := range s.Values {
		points[i] = fmt.Sprintf("%d,%s", before+i*slotWide+slotWide/2, svgNumber(axis.height(v)))
	}
	write := func(class, dashes string, points []string) {
		fmt.Fprintf(b, `<polyline class="%s" fill="none" vector-effect="non-scaling-stroke"%s points="%s"/>`, class, dashes, strings.Join(points, " "))
	}
	write("halo", "", points)
	last := len(points) - 1
	if !open || last == 0 {
		write(s.Class, "", points)
		return
	}
	write(s.Class, "", points[:last])
	write(s.Class, ` stroke-dasharray="3 4"`, points[last-1:])
}

// writeDots marks the last point of each line, which would be unseen if it were the only
// one.
func (p *Plot) writeDots(b *strings.Builder, axis plotAxis, x float64) {
	for _, s := range p.Series {
		if s.Class == "line" {
			fmt.Fprintf(b, `<circle class="dot" cx="%s%%" cy="%s" r="3.5"/>`, svgNumber(x), svgNumber(plotTop+axis.height(s.Values[len(s.Values)-1])))
		}
	}
}

// writeLabels writes as many labels below the points as fit on the narrowest screen.
func (p *Plot) writeLabels(b *strings.Builder, center func(int) float64) {
	const narrowest, apart = 215, 6 // pixels
	longest := 0
	for _, label := range p.Labels {
		longest = max(longest, textWidth(label))
	}
	last := len(p.Labels) - 1
	labels := min(last+1, max(2, narrowest/(longest+apart)))
	for k := range labels {
		i := 0
		if labels > 1 {
			i = (k*last + (labels-1)/2) / (labels - 1)
		}
		label := svgLabel{x: svgNumber(center(i)) + "%", y: plotHeight - 8, anchor: "middle", text: p.Labels[i]}
		if last > leastSlots && i == 0 {
			label.x, label.anchor = "0", ""
		} else if last > leastSlots && i == last {
			label.x, label.anchor = "100%", "end"
		}
		svgText(b, label)
	}
}

// A plotAxis is a vertical axis with round numbers.
type plotAxis struct {
	low, high Figure // its ends
	first     Figure // the lowest round number
	step      Figure // between two round numbers
	steps     int
	thousands int // its numbers are in units of 1000 to the power of this
}

// axis returns an axis with all figures of a plot, and with zero but for a level far above
// it.
func (p *Plot) axis() plotAxis {
	var low, high Figure
	for i, s := range p.Series {
		if i == 0 && p.Level {
			low, high = slices.Min(s.Values), slices.Max(s.Values)
		}
		low, high = min(low, slices.Min(s.Values)), max(high, slices.Max(s.Values))
	}
	if low < high/2 || low == high {
		low, high = min(low, 0), max(high, 0)
	}
	a := niceAxis(low, high, p.Whole)
	if low < 0 { // the columns end here: no room below them
		for a.low = low; a.first < low; a.steps-- {
			a.first += a.step
		}
	}
	greatest := max(high, -low)
	for _, thousands := range []int{2, 1} {
		unit := axisUnits[thousands]
		if greatest >= 100*unit && a.step%(unit/10) == 0 {
			a.thousands = thousands
			break
		}
	}
	return a
}

// axisUnits are 1, 1000 and 1,000,000.
var axisUnits = [3]Figure{one, 1000 * one, 1_000_000 * one}

// niceAxis returns the axis with the least steps of 1, 2 or 5 times a power of ten that
// has at most 5 of them between two figures. Where both are zero, it goes to 1.
func niceAxis(low, high Figure, whole bool) plotAxis {
	const most = 5
	step, factors := Figure(1), [3]Figure{2, 5, 10}
	if low == high {
		high, whole = high+one, true
	}
	if whole {
		step = one
	}
	for base := step; ; base *= 10 {
		for _, factor := range factors {
			from, to := floorTo(low, step), -floorTo(-high, step)
			if n := (to - from) / step; n <= most {
				return plotAxis{low: from, high: to, first: from, step: step, steps: int(n)}
			}
			step = base * factor
		}
	}
}

// floorTo returns the greatest multiple of step that is not above d.
func floorTo(d, step Figure) Figure {
	if rest := d % step; rest < 0 {
		return d - rest - step
	} else {
		return d - rest
	}
}

// height returns how far below the top of the axis a figure is, in pixels.
func (a plotAxis) height(d Figure) float64 {
	return marksHigh * float64(a.high-d) / float64(a.high-a.low)
}

// tick returns a round number of the axis.
func (a plotAxis) tick(i int) Figure { return a.first + Figure(i)*a.step }

// writeScale writes the numbers of the axis as a picture of its own, as wide as they are.
func (a plotAxis) writeScale(b *strings.Builder, number func(Figure) string) {
	wide := 0
	texts := make([]string, a.steps+1)
	for i := range texts {
		texts[i] = number(a.tick(i) / (axisUnits[a.thousands] / one))
		wide = max(wide, textWidth(texts[i]))
	}
	fmt.Fprintf(b, `<svg class="scale" width="%d" height="%d" aria-hidden="true" focusable="false">`, wide, plotHeight)
	for i, text := range texts {
		svgText(b, svgLabel{x: fmt.Sprint(wide), y: plotTop + a.height(a.tick(i)) + 4, anchor: "end", text: text})
	}
	b.WriteString(`</svg>`)
}

func (a plotAxis) writeGrid(b *strings.Builder) {
	for i := range a.steps + 1 {
		class := "grid"
		if a.tick(i) == 0 {
			class = "axis"
		}
		y := svgNumber(plotTop + a.height(a.tick(i)))
		fmt.Fprintf(b, `<line class="%s" x2="100%%" y1="%s" y2="%s"/>`, class, y, y)
	}
}

// Horizontal bars, and meters.

// A Row is a bar with its name and figure above it.
type Row struct {
	Name, Figure string
	Value        uint64
	Limit        uint64 // the whole of a meter; 0: a bar, drawn against the longest
}

// The rows of bars, in pixels.
const (
	barRowHigh = 44
	barHigh    = 10
)

// A Bars is bars below each other.
type Bars struct {
	ID, Title, Desc string
	Rows            []Row
}

// Draw returns the picture; "" without rows. Beyond MostPoints, rows are in the table only.
func (c *Bars) Draw() template.HTML {
	if len(c.Rows) == 0 {
		return ""
	}
	rows := c.Rows[:min(len(c.Rows), MostPoints)]
	longest := uint64(1)
	for _, row := range rows {
		longest = max(longest, row.Value)
	}
	b := &strings.Builder{}
	b.WriteString(`<div class="plot">`)
	svgOpen(b, c.ID, c.Title, c.Desc, len(rows)*barRowHigh-barRowHigh/4)
	for i, row := range rows {
		y := float64(i * barRowHigh)
		svgText(b, svgLabel{x: "0", y: y + 12, text: shortened(row.Name, 240-textWidth(row.Figure))})
		svgText(b, svgLabel{x: "100%", y: y + 12, anchor: "end", text: row.Figure})
		class, whole := "bar", longest
		if row.Limit > 0 {
			whole = row.Limit
			if row.Value >= whole {
				class = "over"
			}
			fmt.Fprintf(b, `<rect class="track" y="%s" width="100%%" height="%d" rx="3"/>`, svgNumber(y+20), barHigh)
		}
		if share := min(1, float64(row.Value)/float64(whole)); share > 0 {
			fmt.Fprintf(b, `<rect class="%s" y="%s" width="%s%%" height="%d" rx="3"/>`, class, svgNumber(y+20), svgNumber(max(1, 100*share)), barHigh)
		}
	}
	b.WriteString(`</svg></div>`)
	return template.HTML(b.String())
}

// shortened returns a name, or so much of its beginning as is not wider than most pixels.
func shortened(name string, most int) string {
	if textWidth(name) <= most {
		return name
	}
	wide := textWidth("…")
	for i, r := range name {
		if wide += textWidth(string(r)); wide > most {
			return name[:i] + "…"
		}
	}
	return name
}

// textWidth is how wide a text is in a picture at most, in pixels, in the usual fonts.
func textWidth(text string) (wide int) {
	for _, r := range text {
		switch {
		case r < 0x2000 && r != 'W' && r != 'M' && r != '@' && r != '%':
			wide += 7
		default:
			wide += 12
		}
	}
	return wide
}

// Markup.

// svgOpen begins a picture as wide as its place, with its name and description.
func svgOpen(b *strings.Builder, id, title, desc string, high int) {
	id, title, desc = template.HTMLEscapeString(id), template.HTMLEscapeString(title), template.HTMLEscapeString(desc)
	fmt.Fprintf(b, `<svg role="img" width="100%%" height="%d" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, high, id, id, id, title, id, desc)
}

// An svgLabel is a line of text.
type svgLabel struct {
	x      string // pixels or percent, never a text of somebody
	y      float64
	anchor string // start if it is ""
	text   string
}

// svgText writes a line of text, escaped.
func svgText(b *strings.Builder, l svgLabel) {
	fmt.Fprintf(b, `<text x="%s" y="%s" font-size="11"`, l.x, svgNumber(l.y))
	if l.anchor != "" {
		fmt.Fprintf(b, ` text-anchor="%s"`, l.anchor)
	}
	fmt.Fprintf(b, `>%s</text>`, template.HTMLEscapeString(l.text))
}

// svgNumber writes a number with at most one decimal place.
func svgNumber(x float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0") }
