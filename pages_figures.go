package main

import (
	"bytes"
	"encoding/csv"
	"html/template"
	"math/big"
	"slices"
	"strings"
	"time"

	"sello/internal/chart"
	"sello/internal/sheet"
	"sello/internal/texts"
)

// Figures of the panel: what the API's statistics say, as tiles, charts and tables.

// A panelChart is a figure of a page, for the template "chart". Its table has what the picture
// shows, and more.
type panelChart struct {
	ID      string // of the figure; the ids of its parts begin with it
	Title   string
	Picture template.HTML // "": there is no picture and no table, and Note says why
	Note    string
	Key     []chartKey
	Table   chartTable
	CSV     string // where the table can be had as CSV; "" if it would be empty
}

// A chartKey says what the marks of a class stand for.
type chartKey struct{ Class, Name string }

// A chartTable is a table whose first column names the row.
type chartTable struct {
	Columns []string
	Rows    [][]chartCell
}

// A chartCell is a text for people, and the same for programs.
type chartCell struct{ Text, Raw string }

// csv returns the table for programs, as a file that a spreadsheet may open.
func (t *chartTable) csv() ([]byte, error) {
	rows := [][]string{t.Columns}
	for _, cells := range t.Rows {
		row := []string{}
		for _, c := range cells {
			row = append(row, c.Raw)
		}
		sheet.Guard(row)
		rows = append(rows, row)
	}
	b := bytes.NewBufferString(sheet.MarkUTF8)
	err := csv.NewWriter(b).WriteAll(rows)
	return b.Bytes(), err
}

// figures makes charts and tiles from statistics, and from the statistics of as many days before.
type figures struct {
	*format
	lang          texts.Language
	found, before *statisticsShape // before is nil if there can be none
	points        string           // the name of the program's points
	pays          bool             // they pay for purchases
	query         string           // of the page, for the links to CSV
}

func (g *figures) T(name string, args ...any) string { return tr(g.lang, name, args...) }

// A measure is one column of a table of periods and, with a class, one series of its
// picture.
type measure struct {
	text   string
	value  func(*periodShape) decimal
	money  bool
	class  string
	beside bool
	down   bool // drawn below zero
}

func count(n uint64) decimal { return decimal(n) * decimalOne }

func (p *periodShape) net() decimal { return p.SalesAmount - p.ReturnsAmount }

// used are the points that are gone.
func (p *periodShape) used() decimal { return p.PointsRedeemed + p.PointsExpired + p.PointsReversed }

// The figures of each chart over time.
var (
	salesFigures = []measure{
		{text: "figure.sold", value: func(p *periodShape) decimal { return p.SalesAmount }, money: true, class: "bar"},
		{text: "figure.returned", value: func(p *periodShape) decimal { return p.ReturnsAmount }, money: true, class: "bar2", down: true},
		{text: "figure.net", value: (*periodShape).net, money: true, class: "line"},
		{text: "figure.purchases", value: func(p *periodShape) decimal { return count(p.Purchases) }},
		{text: "figure.returns", value: func(p *periodShape) decimal { return count(p.Returns) }},
	}
	pointsFigures = []measure{
		{text: "figure.issued", value: func(p *periodShape) decimal { return p.PointsIssued }, class: "bar"},
		{text: "figure.used", value: (*periodShape).used, class: "bar2", beside: true},
		{text: "figure.redeemed", value: func(p *periodShape) decimal { return p.PointsRedeemed }},
		{text: "figure.expired", value: func(p *periodShape) decimal { return p.PointsExpired }},
		{text: "figure.reversed", value: func(p *periodShape) decimal { return p.PointsReversed }},
	}
	owedFigures = []measure{
		{text: "figure.owed", value: func(p *periodShape) decimal { return p.PointsOutstanding }, class: "line"},
	}
	customerFigures = []measure{
		{text: "figure.new", value: func(p *periodShape) decimal { return count(p.NewCustomers) }, class: "bar"},
		{text: "figure.active", value: func(p *periodShape) decimal { return count(p.ActiveCustomers) }, class: "line"},
		{text: "figure.customers", value: func(p *periodShape) decimal { return count(p.Customers) }},
	}
)

// Where points pay for purchases, two of the tables have one more column.
var (
	amountPaid = measure{text: "figure.paid", value: amountPaidOf, money: true}
	pointsPaid = measure{text: "figure.paid.points", value: pointsPaidOf}
)

// withPaid adds a column of what points paid, if they do.
func (g *figures) withPaid(list []measure, paid measure) []measure {
	if g.pays {
		list = append(slices.Clip(list), paid)
	}
	return list
}

func (g *figures) sales() *panelChart {
	return g.overTime("ventas", "figure.sales", g.currency, g.withPaid(salesFigures, amountPaid), false)
}

func (g *figures) movedPoints() *panelChart {
	return g.overTime("puntos", "figure.points", g.points, g.withPaid(pointsFigures, pointsPaid), false)
}

func (g *figures) owed() *panelChart {
	return g.overTime("deuda", "figure.debt", g.points, owedFigures, true)
}

func (g *figures) customers() *panelChart {
	return g.overTime("clientes", "figure.people", g.T("figure.people.unit"), customerFigures, false)
}

// overTime returns the chart of figures by period.
func (g *figures) overTime(id, title, unit string, list []measure, level bool) *panelChart {
	c := &panelChart{ID: id, Title: g.T(title) + " " + g.T("figure.by."+g.found.GroupBy), CSV: "/panel/estadisticas/csv/" + id + g.query}
	p := chart.Plot{ID: id, Title: c.Title, Units: g.units(unit), Level: level, Whole: id == "clientes", Open: !level && dayNamed(g.found.To) >= g.today()}
	c.Table.Columns = []string{g.T("figure.period." + g.found.GroupBy)}
	blank := true
	for _, f := range list {
		c.Table.Columns = append(c.Table.Columns, g.T(f.text))
		if f.class == "" {
			continue
		}
		s := chart.Series{Class: f.class, Beside: f.beside}
		for i := range g.found.Periods {
			v := f.value(&g.found.Periods[i])
			if f.down {
				v = -v
			}
			s.Values = append(s.Values, chart.Figure(v))
		}
		p.Series = append(p.Series, s)
		c.Key = append(c.Key, chartKey{f.class, g.T(f.text)})
	}
	for i := range g.found.Periods {
		period := &g.found.Periods[i]
		p.Labels = append(p.Labels, g.periodLabel(period, false))
		row := []chartCell{{g.periodLabel(period, true), period.From}}
		for _, f := range list {
			v := f.value(period)
			blank = blank && v == 0
			row = append(row, chartCell{g.write(f, v), v.String()})
		}
		c.Table.Rows = append(c.Table.Rows, row)
	}
	if len(c.Key) == 1 {
		c.Key = nil
	}
	switch {
	case blank:
		c.Note, c.CSV = g.T("figure.none."+id), ""
	case len(p.Labels) > chart.MostPoints:
		c.Note = g.T("figure.many")
	default:
		p.Desc = g.describe(list[0], p.Labels)
		if p.Open {
			p.Desc += " " + g.T("figure.desc.open")
		}
		c.Picture = p.Draw(wholeFigures(g.format))
	}
	return c
}

// wholeFigures spells the figures of an axis.
func wholeFigures(f *format) func(chart.Figure) string {
	return func(v chart.Figure) string { return f.Number(decimal(v)) }
}

func (g *figures) write(f measure, d decimal) string {
	if f.money {
		return g.Money(d)
	}
	return g.Number(d)
}

// describe returns the sentence that stands for a picture: what, from when to when, the
// highest and the last.
func (g *figures) describe(f measure, labels []string) string {
	highest, last := 0, len(labels)-1
	for i := range labels {
		if f.value(&g.found.Periods[i]) > f.value(&g.found.Periods[highest]) {
			highest = i
		}
	}
	at := func(i int) string { return g.write(f, f.value(&g.found.Periods[i])) }
	return g.T("figure.desc", g.T(f.text), g.LongDay(dayNamed(g.found.From)), g.LongDay(dayNamed(g.found.To)), at(highest), labels[highest], at(last))
}

func (g *figures) days() int { return int(dayNamed(g.found.To)-dayNamed(g.found.From)) + 1 }

// units are the names of a unit and of a thousand and a million of it.
func (g *figures) units(unit string) [3]string {
	return [3]string{unit, g.T("figure.thousands", unit), g.T("figure.millions", unit)}
}

// dayNamed returns the day of a date in a response of the API.
func dayNamed(date string) day {
	t, _ := time.Parse(time.DateOnly, date)
	return dayOn(t.Date())
}

// periodLabel names a period: shortly, or with both of its ends.
func (g *figures) periodLabel(p *periodShape, whole bool) string {
	from, to := dayNamed(p.From), dayNamed(p.To)
	switch {
	case g.found.GroupBy == groupMonth:
		return g.Month(from)
	case whole:
		return g.Days(from, to)
	}
	return g.Day(from)
}

// tiers is the chart of customers by tier, now. Where several programs have tiers, each
// is named after its program.
func (g *figures) tiers(cfg *config) *panelChart {
	c := &panelChart{ID: "niveles", Title: g.T("figure.tiers"), CSV: "/panel/estadisticas/csv/niveles" + g.query}
	c.Table.Columns = []string{g.T("figure.tier"), g.T("figure.customers")}
	bars := chart.Bars{ID: c.ID, Title: c.Title}
	several := slices.ContainsFunc(g.found.Total.CustomersByTier, func(n tierCount) bool {
		return n.LoyaltyProgramID != g.found.Total.CustomersByTier[0].LoyaltyProgramID
	})
	var said []string
	for _, n := range g.found.Total.CustomersByTier {
		name, figure := n.TierName, g.Count(n.Customers)
		if several {
			name += " · " + cfg.program(n.LoyaltyProgramID).Name
		}
		bars.Rows = append(bars.Rows, chart.Row{Name: name, Figure: figure, Value: n.Customers})
		c.Table.Rows = append(c.Table.Rows, []chartCell{{name, name}, {figure, count(n.Customers).String()}})
		said = append(said, name+" "+figure)
	}
	return g.drawn(c, &bars, said)
}

// drawn completes a chart of bars; said are its bars in words.
func (g *figures) drawn(c *panelChart, bars *chart.Bars, said []string) *panelChart {
	bars.Desc = firstFew(said)
	if c.Picture = bars.Draw(); c.Picture == "" {
		c.Note, c.CSV = g.T("figure.none."+c.ID), ""
	}
	return c
}

// A keyUse is how many requests a key has made in a window, and how many it may make there.
type keyUse struct {
	name   string
	window string // the name of a text
	used   uint64
	limit  int // 0: none
}

// keys is the chart of what keys have used of their limits, now.
func (g *figures) keys(list []keyUse) *panelChart {
	c := &panelChart{ID: "claves", Title: g.T("figure.keys"), CSV: "/panel/estadisticas/csv/claves"}
	c.Table.Columns = []string{g.T("figure.key"), g.T("figure.used"), g.T("figure.limit")}
	bars := chart.Bars{ID: c.ID, Title: c.Title}
	var said []string
	for _, k := range list {
		if k.limit == 0 {
			continue
		}
		name, limit := g.T(k.window, k.name), uint64(k.limit)
		text := g.T("figure.of", g.Count(k.used), g.Count(limit))
		bars.Rows = append(bars.Rows, chart.Row{Name: name, Figure: text, Value: k.used, Limit: limit})
		c.Table.Rows = append(c.Table.Rows, []chartCell{{name, name}, {g.Count(k.used), count(k.used).String()}, {g.Count(limit), count(limit).String()}})
		said = append(said, name+": "+text)
	}
	return g.drawn(c, &bars, said)
}

// firstFew is a sentence of the first of many parts.
func firstFew(parts []string) string {
	const few = 6
	if len(parts) > few {
		parts = append(slices.Clip(parts[:few]), "…")
	}
	return strings.Join(parts, "; ") + "."
}

// Tiles.

// A tile is a figure with its change since as many days before.
type tile struct {
	Name, Value string
	Arrow       string // "▲", "▼" or ""
	Change      string // in words; "" if nothing is known of before
	Class       string // up for the better, down for the worse
	Path        string // where more of it is; "": nowhere
}

// changed completes a tile: by is how much more there is, which is good (1), bad (-1) or
// neither (0).
func (t tile) changed(by decimal, good int, words string) tile {
	t.Change = words
	switch {
	case by > 0:
		t.Arrow = "▲"
	case by < 0:
		t.Arrow, good = "▼", -good
	default:
		return t
	}
	switch good {
	case 1:
		t.Class = "up"
	case -1:
		t.Class = "down"
	}
	return t
}

// amountTile is a figure whose change is a share of what it was.
func (g *figures) amountTile(name, unit string, of func(*periodShape) decimal, money bool, good int) tile {
	now := of(&g.found.Total)
	t := tile{Name: g.T(name), Value: g.write(measure{money: money}, now)}
	if unit != "" {
		t.Name += ", " + unit
	}
	if g.before == nil {
		return t
	}
	was := of(&g.before.Total)
	rate, ok := growth(now, was)
	switch {
	case now == was:
		return t.changed(0, good, g.T("change.same"))
	case !ok:
		return t.changed(now-was, good, g.T("change.was", g.write(measure{money: money}, was)))
	}
	return t.changed(rate, good, g.moreOrLess(rate, g.Percent(max(rate, -rate))))
}

// growth is the change as a share of what was. ok is false if it is more than ten times that: such
// a figure tells people nothing.
func growth(now, was decimal) (rate decimal, ok bool) {
	rate, ok = ratio(now-was, max(was, -was))
	return rate, ok && max(rate, -rate) <= 10_0000
}

// countTile is a figure whose change is a number.
func (g *figures) countTile(name string, of func(*periodShape) decimal, good int) tile {
	now := of(&g.found.Total)
	t := tile{Name: g.T(name), Value: g.Number(now)}
	if g.before == nil {
		return t
	}
	by := now - of(&g.before.Total)
	return t.changed(by, good, g.moreOrLess(by, g.Number(max(by, -by))))
}

// rateTile is a share, whose change is told by what it was.
func (g *figures) rateTile(name string, of func(*periodShape) (decimal, bool), good int) tile {
	t := tile{Name: g.T(name), Value: "–"}
	now, ok := of(&g.found.Total)
	if ok {
		t.Value = g.Percent(now)
	}
	if g.before == nil || !ok {
		return t
	}
	was, ok := of(&g.before.Total)
	if !ok {
		return t
	}
	if g.Percent(was) == t.Value {
		return t.changed(0, good, g.T("change.same"))
	}
	return t.changed(now-was, good, g.T("change.was", g.Percent(was)))
}

func (g *figures) moreOrLess(by decimal, text string) string {
	switch {
	case by > 0:
		return g.T("change.more", text)
	case by < 0:
		return g.T("change.less", text)
	}
	return g.T("change.same")
}

// ratio returns a/b; ok is false if there is none, or none in range.
func ratio(a, b decimal) (decimal, bool) {
	if b == 0 {
		return 0, false
	}
	return roundRat(new(big.Rat).Quo(a.rat(), b.rat()), decimalPlaces, roundHalfUp)
}

func activeOf(p *periodShape) decimal { return count(p.ActiveCustomers) }
func newOf(p *periodShape) decimal    { return count(p.NewCustomers) }
func owedOf(p *periodShape) decimal   { return p.PointsOutstanding }

func amountPaidOf(p *periodShape) decimal { return p.AmountPaid }
func pointsPaidOf(p *periodShape) decimal { return p.PointsPaid }

// averageOf is what a purchase comes to, to the hundredth.
func averageOf(p *periodShape) decimal {
	if p.Purchases == 0 {
		return 0
	}
	average, _ := roundRat(new(big.Rat).Quo(p.SalesAmount.rat(), count(p.Purchases).rat()), 2, roundHalfUp) // not above an amount
	return average
}

func redeemedOf(p *periodShape) (decimal, bool) {
	if p.RedemptionRate == nil {
		return 0, false
	}
	return *p.RedemptionRate, true
}

func returnedOf(p *periodShape) (decimal, bool) { return ratio(p.ReturnsAmount, p.SalesAmount) }

func activeShareOf(p *periodShape) (decimal, bool) {
	return ratio(count(p.ActiveCustomers), count(p.Customers))
}

// growsNet reports whether the net sales can be told as a share more or less than before.
func (g *figures) growsNet() bool {
	if g.before == nil {
		return false
	}
	_, ok := growth(g.found.Total.net(), g.before.Total.net())
	return ok
}

// mainTiles are the tiles of the home page, allTiles all that there are. The first tile says
// what changes are against.
func (g *figures) mainTiles() []tile {
	net := g.amountTile("tile.net", g.currency, (*periodShape).net, true, 1)
	if g.growsNet() {
		net.Change = counted(g.lang, "change.since", g.Count(uint64(g.days())), net.Change)
	}
	return []tile{
		net,
		g.countTile("tile.active", activeOf, 1),
		g.amountTile("tile.owed", g.points, owedOf, false, 0),
		g.rateTile("tile.redeemed", redeemedOf, 1),
	}
}

func (g *figures) paidTile() tile {
	return g.amountTile(amountPaid.text, g.currency, amountPaidOf, true, 0)
}

func (g *figures) allTiles() []tile {
	list := append(g.mainTiles(),
		g.amountTile("tile.average", g.currency, averageOf, true, 1),
		g.countTile("tile.new", newOf, 1),
		g.rateTile("tile.returned", returnedOf, -1),
		g.rateTile("tile.share", activeShareOf, 1),
	)
	if g.pays {
		list = append(list, g.paidTile(), g.amountTile(pointsPaid.text, g.points, pointsPaidOf, false, 0))
	}
	return list
}
