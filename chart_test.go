package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// someFigures returns n figures that go up and down between two, the same each time.
func someFigures(n int, low, high decimal) []decimal {
	random := rand.New(rand.NewPCG(3, 1))
	list := make([]decimal, n)
	for i := range list {
		list[i] = low + decimal(random.Int64N(int64(high-low+1)))/decimalOne*decimalOne
	}
	return list
}

// dayLabels returns the labels of n days from 24 October on.
func dayLabels(f *format, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = f.Day(dayOn(2026, 10, 24) + day(i))
	}
	return list
}

func moneyUnits(currency string) [3]string {
	return [3]string{currency, "miles de " + currency, "millones de " + currency}
}

// chartCases are pictures by the headings of their golden file.
func chartCases(t testing.TB) map[string]template.HTML {
	mx, co := newFormat(t, "MX", "es", "MXN"), newFormat(t, "CO", "es", "COP")
	sold := someFigures(30, 6000*decimalOne, 28000*decimalOne)
	back, net := make([]decimal, len(sold)), make([]decimal, len(sold))
	for i := range sold {
		if i%3 == 1 {
			back[i] = -sold[i] / 9
		}
		net[i] = sold[i] + back[i]
	}
	sales := func(n int, factor decimal) *plot {
		scaled := func(list []decimal) []decimal {
			list = append([]decimal{}, list[:n]...)
			for i := range list {
				list[i] *= factor
			}
			return list
		}
		return &plot{id: "ventas", title: "Ventas por día", desc: "Ventas, del 24 de octubre al 22 de noviembre.", units: moneyUnits("MXN"), labels: dayLabels(mx, n), series: []plotSeries{
			{class: "bar", values: scaled(sold)}, {class: "bar2", values: scaled(back)}, {class: "line", values: scaled(net)},
		}}
	}
	one := func(class string, whole, level bool, values ...decimal) *plot {
		return &plot{id: "uno", title: "Clientes", desc: "Clientes.", units: [3]string{"", "miles", "millones"}, labels: dayLabels(mx, len(values)), series: []plotSeries{{class: class, values: values}}, whole: whole, level: level}
	}
	hostile := one("bar", true, false, decimalOne)
	hostile.id, hostile.title, hostile.desc = `"><script>`, `<script>alert('título')</script>`, "\u202eabc & \"def\""
	hostile.labels[0], hostile.units[0] = `<b onclick="x">`, "</text>\u200f"
	worst := sales(30, 1)
	for i := range worst.series[0].values {
		worst.series[0].values[i] = 0
		worst.series[1].values[i] *= 8
		worst.series[2].values[i] = worst.series[1].values[i]
	}
	huge := sales(30, 1)
	for _, s := range huge.series {
		for i := range s.values {
			s.values[i] *= 3_000_000
		}
	}
	huge.series[0].values[7] = maxDecimal
	return map[string]template.HTML{
		"sales":        sales(30, 1).draw(mx),
		"week":         sales(7, 1).draw(mx),
		"one":          sales(1, 1).draw(mx),
		"zero":         sales(30, 0).draw(mx),
		"negative":     worst.draw(mx),
		"huge":         huge.draw(co),
		"one-line":     one("line", false, true, 61_240*decimalOne).draw(mx),
		"flat-line":    one("line", false, true, someFigures(12, 500*decimalOne, 500*decimalOne)...).draw(mx),
		"owed":         one("line", false, true, someFigures(30, 60_950*decimalOne, 62_300*decimalOne)...).draw(mx),
		"small":        one("bar", false, false, 1, 2, 0, 3, 5, -1, 2, 9).draw(mx),
		"hostile":      hostile.draw(mx),
		"hostile-bars": (&barChart{`"`, "<i>", "&", []barRow{{"<script>\u202eאבג", "1 < 2", 1, 0}, {strings.Repeat("W", 100), "3", 3, 0}}}).draw(),
		"points": (&plot{id: "puntos", title: "Puntos por semana", desc: "Puntos.", units: [3]string{"Lunas", "miles de Lunas", "millones de Lunas"}, labels: dayLabels(mx, 13), series: []plotSeries{
			{class: "bar", values: someFigures(13, 200*decimalOne, 900*decimalOne)}, {class: "bar2", beside: true, values: someFigures(13, 10*decimalOne, 500*decimalOne)},
		}}).draw(mx),
		"customers": (&plot{id: "clientes", title: "Clientes", desc: "Clientes.", labels: dayLabels(mx, 30), whole: true, series: []plotSeries{
			{class: "bar", values: someFigures(30, 0, 4*decimalOne)}, {class: "line", values: someFigures(30, 10*decimalOne, 60*decimalOne)},
		}}).draw(mx),
		"tiers":  (&barChart{"niveles", "Clientes por nivel", "Bronce 1,204, Plata 318, Oro 57, Fundadores 0.", []barRow{{"Bronce", "1,204", 1204, 0}, {"Plata", "318", 318, 0}, {"Oro", "57", 57, 0}, {"Fundadores", "0", 0, 0}}}).draw(),
		"meters": (&barChart{"claves", "Solicitudes de hoy", "POS centro 4,100 de 5,000.", []barRow{{"POS centro", "4,100 de 5,000", 4100, 5000}, {"Tienda en línea", "5,000 de 5,000", 5000, 5000}, {"Una clave de nombre muy largo para este ancho", "0 de 1", 0, 1}}}).draw(),
		"open": (&plot{id: "clientes", title: "Clientes", desc: "Clientes.", labels: dayLabels(mx, 12), whole: true, open: true, series: []plotSeries{
			{class: "bar", values: someFigures(12, 0, 4*decimalOne)}, {class: "line", values: append(someFigures(11, 10*decimalOne, 60*decimalOne), 0)},
		}}).draw(mx),
		"empty": one("bar", true, false).draw(mx) + (&barChart{}).draw(),
	}
}

// TestChartGolden compares pictures with testdata/chart.html, which a browser shows as the
// panel does. go test -run TestChartGolden -update . writes it anew.
func TestChartGolden(t *testing.T) {
	t.Parallel()
	const file = "testdata/chart.html"
	golden, err := os.ReadFile(file)
	if err != nil && !*updateGolden {
		t.Fatal(err)
	}
	cases := chartCases(t)
	page := "<!doctype html>\n<html lang=\"es\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>chart</title><link rel=\"stylesheet\" href=\"../panel/panel.css\">\n<main>\n"
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		figure := fmt.Sprintf("<h2>%s</h2>\n<figure class=\"card\">\n%s\n</figure>\n", name, strings.NewReplacer("><", ">\n<").Replace(string(cases[name])))
		if !*updateGolden && !strings.Contains(string(golden), figure) {
			t.Errorf("%s differs", name)
		}
		page += figure
	}
	page += "</main></html>\n"
	if *updateGolden {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(golden) != page {
		t.Errorf("%s differs; -update writes it anew", file)
	}
	if cases["empty"] != "" {
		t.Errorf("nothing is drawn as %s", cases["empty"])
	}
}

// TestChartMarkup: a picture is well-formed XML of the elements and attributes that it
// needs, with one name and one description, whatever the texts in it.
// Panel check 63.
func TestChartMarkup(t *testing.T) {
	t.Parallel()
	elements := regexp.MustCompile(`^(div|svg|title|desc|text|line|path|polyline|circle|rect)$`)
	for name, picture := range chartCases(t) {
		count := map[string]int{}
		d := xml.NewDecoder(strings.NewReader(string(picture)))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			element, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			count[element.Name.Local]++
			if !elements.MatchString(element.Name.Local) {
				t.Errorf("%s: element %s", name, element.Name.Local)
			}
			for _, a := range element.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" || a.Name.Local == "href" {
					t.Errorf("%s: attribute %s", name, a.Name.Local)
				}
			}
		}
		if picture != "" && (count["title"] != 1 || count["desc"] != 1) {
			t.Errorf("%s: %d names, %d descriptions", name, count["title"], count["desc"])
		}
	}
}

// TestChartSize: a picture has at most 400 points, and is then not above 40 KB.
func TestChartSize(t *testing.T) {
	t.Parallel()
	f := newFormat(t, "MX", "es", "MXN")
	of := func(n int) *plot {
		list := someFigures(n, -maxDecimal/2, maxDecimal/2)
		return &plot{labels: dayLabels(f, n), series: []plotSeries{{class: "bar", values: list}, {class: "bar2", values: list}, {class: "line", values: list}}}
	}
	if got := len(of(mostPoints).draw(f)); got == 0 || got > 40_000 {
		t.Errorf("%d bytes for %d points", got, mostPoints)
	}
	if got := of(mostPoints + 1).draw(f); got != "" {
		t.Errorf("%d points are drawn", mostPoints+1)
	}
}

// TestNiceAxis: an axis has all figures in it, at most 5 steps, each 1, 2 or 5 times a
// power of ten, and none to spare.
func TestNiceAxis(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 2))
	round := regexp.MustCompile(`^(1|2|5)0*$`)
	for range 50_000 {
		low := decimal(random.Int64N(int64(maxDecimal)>>random.IntN(49))) * decimal(random.IntN(3)-1)
		high := low + decimal(random.Int64N(int64(maxDecimal)>>random.IntN(49)))
		whole := random.IntN(2) == 0
		a := niceAxis(low, high, whole)
		top := a.high
		switch {
		case a.low > low || top < high || a.tick(0) != a.low || a.tick(a.steps) != top:
			t.Fatalf("%v to %v: axis from %v to %v", low, high, a.low, top)
		case low-a.low >= a.step || top-high >= a.step && high > low:
			t.Fatalf("%v to %v: axis from %v to %v by %v has room to spare", low, high, a.low, top, a.step)
		case a.steps < 1 || a.steps > 5 || !round.MatchString(fmt.Sprint(int64(a.step))):
			t.Fatalf("%v to %v: %d steps of %v", low, high, a.steps, a.step)
		case whole && a.step%decimalOne != 0:
			t.Fatalf("%v to %v: whole numbers by %v", low, high, a.step)
		}
	}
}
