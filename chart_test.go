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

	"sello/internal/chart"
)

// someFigures returns n figures that go up and down between two, the same each time.
func someFigures(n int, low, high chart.Figure) []chart.Figure {
	random := rand.New(rand.NewPCG(3, 1))
	list := make([]chart.Figure, n)
	for i := range list {
		list[i] = low + chart.Figure(random.Int64N(int64(high-low+1)))/decimalOne*decimalOne
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
	back, net := make([]chart.Figure, len(sold)), make([]chart.Figure, len(sold))
	for i := range sold {
		if i%3 == 1 {
			back[i] = -sold[i] / 9
		}
		net[i] = sold[i] + back[i]
	}
	sales := func(n int, factor chart.Figure) *chart.Plot {
		scaled := func(list []chart.Figure) []chart.Figure {
			list = append([]chart.Figure{}, list[:n]...)
			for i := range list {
				list[i] *= factor
			}
			return list
		}
		return &chart.Plot{ID: "ventas", Title: "Ventas por día", Desc: "Ventas, del 24 de octubre al 22 de noviembre.", Units: moneyUnits("MXN"), Labels: dayLabels(mx, n), Series: []chart.Series{
			{Class: "bar", Values: scaled(sold)}, {Class: "bar2", Values: scaled(back)}, {Class: "line", Values: scaled(net)},
		}}
	}
	one := func(class string, whole, level bool, values ...chart.Figure) *chart.Plot {
		return &chart.Plot{ID: "uno", Title: "Clientes", Desc: "Clientes.", Units: [3]string{"", "miles", "millones"}, Labels: dayLabels(mx, len(values)), Series: []chart.Series{{Class: class, Values: values}}, Whole: whole, Level: level}
	}
	hostile := one("bar", true, false, decimalOne)
	hostile.ID, hostile.Title, hostile.Desc = `"><script>`, `<script>alert('título')</script>`, "\u202eabc & \"def\""
	hostile.Labels[0], hostile.Units[0] = `<b onclick="x">`, "</text>\u200f"
	worst := sales(30, 1)
	for i := range worst.Series[0].Values {
		worst.Series[0].Values[i] = 0
		worst.Series[1].Values[i] *= 8
		worst.Series[2].Values[i] = worst.Series[1].Values[i]
	}
	huge := sales(30, 1)
	for _, s := range huge.Series {
		for i := range s.Values {
			s.Values[i] *= 3_000_000
		}
	}
	huge.Series[0].Values[7] = chart.Figure(maxDecimal)
	return map[string]template.HTML{
		"sales":        sales(30, 1).Draw(wholeFigures(mx)),
		"week":         sales(7, 1).Draw(wholeFigures(mx)),
		"one":          sales(1, 1).Draw(wholeFigures(mx)),
		"zero":         sales(30, 0).Draw(wholeFigures(mx)),
		"negative":     worst.Draw(wholeFigures(mx)),
		"huge":         huge.Draw(wholeFigures(co)),
		"one-line":     one("line", false, true, 61_240*decimalOne).Draw(wholeFigures(mx)),
		"flat-line":    one("line", false, true, someFigures(12, 500*decimalOne, 500*decimalOne)...).Draw(wholeFigures(mx)),
		"owed":         one("line", false, true, someFigures(30, 60_950*decimalOne, 62_300*decimalOne)...).Draw(wholeFigures(mx)),
		"small":        one("bar", false, false, 1, 2, 0, 3, 5, -1, 2, 9).Draw(wholeFigures(mx)),
		"hostile":      hostile.Draw(wholeFigures(mx)),
		"hostile-bars": (&chart.Bars{ID: `"`, Title: "<i>", Desc: "&", Rows: []chart.Row{{Name: "<script>\u202eאבג", Figure: "1 < 2", Value: 1}, {Name: strings.Repeat("W", 100), Figure: "3", Value: 3}}}).Draw(),
		"points": (&chart.Plot{ID: "puntos", Title: "Puntos por semana", Desc: "Puntos.", Units: [3]string{"Lunas", "miles de Lunas", "millones de Lunas"}, Labels: dayLabels(mx, 13), Series: []chart.Series{
			{Class: "bar", Values: someFigures(13, 200*decimalOne, 900*decimalOne)}, {Class: "bar2", Beside: true, Values: someFigures(13, 10*decimalOne, 500*decimalOne)},
		}}).Draw(wholeFigures(mx)),
		"customers": (&chart.Plot{ID: "clientes", Title: "Clientes", Desc: "Clientes.", Labels: dayLabels(mx, 30), Whole: true, Series: []chart.Series{
			{Class: "bar", Values: someFigures(30, 0, 4*decimalOne)}, {Class: "line", Values: someFigures(30, 10*decimalOne, 60*decimalOne)},
		}}).Draw(wholeFigures(mx)),
		"tiers":  (&chart.Bars{ID: "niveles", Title: "Clientes por nivel", Desc: "Bronce 1,204, Plata 318, Oro 57, Fundadores 0.", Rows: []chart.Row{{Name: "Bronce", Figure: "1,204", Value: 1204}, {Name: "Plata", Figure: "318", Value: 318}, {Name: "Oro", Figure: "57", Value: 57}, {Name: "Fundadores", Figure: "0", Value: 0}}}).Draw(),
		"meters": (&chart.Bars{ID: "claves", Title: "Solicitudes de hoy", Desc: "POS centro 4,100 de 5,000.", Rows: []chart.Row{{Name: "POS centro", Figure: "4,100 de 5,000", Value: 4100, Limit: 5000}, {Name: "Tienda en línea", Figure: "5,000 de 5,000", Value: 5000, Limit: 5000}, {Name: "Una clave de nombre muy largo para este ancho", Figure: "0 de 1", Value: 0, Limit: 1}}}).Draw(),
		"open": (&chart.Plot{ID: "clientes", Title: "Clientes", Desc: "Clientes.", Labels: dayLabels(mx, 12), Whole: true, Open: true, Series: []chart.Series{
			{Class: "bar", Values: someFigures(12, 0, 4*decimalOne)}, {Class: "line", Values: append(someFigures(11, 10*decimalOne, 60*decimalOne), 0)},
		}}).Draw(wholeFigures(mx)),
		"empty": one("bar", true, false).Draw(wholeFigures(mx)) + (&chart.Bars{}).Draw(),
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
	of := func(n int) *chart.Plot {
		list := someFigures(n, -chart.Figure(maxDecimal)/2, chart.Figure(maxDecimal)/2)
		return &chart.Plot{Labels: dayLabels(f, n), Series: []chart.Series{{Class: "bar", Values: list}, {Class: "bar2", Values: list}, {Class: "line", Values: list}}}
	}
	if got := len(of(chart.MostPoints).Draw(wholeFigures(f))); got == 0 || got > 40_000 {
		t.Errorf("%d bytes for %d points", got, chart.MostPoints)
	}
	if got := of(chart.MostPoints + 1).Draw(wholeFigures(f)); got != "" {
		t.Errorf("%d points are drawn", chart.MostPoints+1)
	}
}
