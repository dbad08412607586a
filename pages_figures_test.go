package main

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sello/internal/chart"
	"sello/internal/sheet"
)

// newFigureShop is a shop with 75 days of sales, and a reward and a key that need
// attention.
func newFigureShop(t testing.TB) *panelShop {
	s := newPanelShop(t, setup{
		at: "2026-01-05T16:00:00Z",
		program: `"currency":"Lunas","rules":[{"key":"base","name":"1 por 10","per":{"amount":10,"points":1}}],
			"tiers":[{"name":"Bronce","threshold":0},{"name":"Plata","threshold":200},{"name":"Oro","threshold":600},{"name":"=<b>Fundadores</b>","threshold":9000}]`,
		also: `"rewards":[{"key":"taza","program":"club","name":"Taza de barro","pointsCost":50,"status":"Active","stock":4},
			{"key":"pan","program":"club","name":"Pan dulce","pointsCost":90,"status":"Active","stock":40},
			{"key":"pin","program":"club","name":"Pin","pointsCost":20,"status":"Active","stock":0},
			{"key":"gorra","program":"club","name":"Gorra","pointsCost":20,"status":"Inactive","stock":1}]`,
	})
	random := rand.New(rand.NewPCG(1, 2))
	var people []id
	for d := range 75 {
		if d%6 == 0 {
			people = append(people, s.shop.customer(fmt.Sprintf("c%d", d)))
		}
		for range 1 + random.IntN(4) {
			bought := s.shop.buy(people[random.IntN(len(people))], fmt.Sprintf("%d.%02d", 20+random.IntN(400), random.IntN(100)))
			if random.IntN(9) == 0 {
				s.shop.bring(bought, "15.5")
			}
		}
		if d%7 == 3 {
			s.shop.deduct(people[0], "5")
		}
		s.shop.pass(24 * time.Hour)
	}
	for _, r := range roles { // their sessions have ended
		s.tokens[r] = must(s.shop, func(t *txn) (string, error) { return t.people.startSession(s.users[r], sessionFull, &arrival{}) })
	}
	s.shop.newKey(keyRequest{Expires: "2026-03-30"})
	s.shop.newKey(keyRequest{Expires: "2026-09-30", DailyLimit: 500, MonthlyLimit: 10_000})
	return s
}

// statistics asks the API.
func (s *panelShop) statistics(query string) (found statisticsShape) {
	_, key := s.shop.newKey(keyRequest{})
	r := httptest.NewRequest("GET", "/api/v1/statistics"+query, nil)
	r.Header.Set("Authorization", "Bearer "+key)
	s.shop.ok(json.Unmarshal(answerTo(s.api, r).Body.Bytes(), &found))
	return found
}

// tablesIn returns the figures of a page's charts by id: the rows of each table.
func tablesIn(page string) map[string][][]string {
	tables := map[string][][]string{}
	for _, f := range regexp.MustCompile(`(?s)<figure class="card" id="(\w+)">(.*?)</figure>`).FindAllStringSubmatch(page, -1) {
		for _, row := range regexp.MustCompile(`<tr><th scope=row>(.*)`).FindAllStringSubmatch(f[2], -1) {
			tables[f[1]] = append(tables[f[1]], strings.Split(row[1], "<td>"))
		}
	}
	return tables
}

// TestStatisticsPaid: what points paid stands on the pages where they pay, or paid, and nowhere else.
func TestStatisticsPaid(t *testing.T) {
	t.Parallel()
	without := paySetup
	without.program = strings.Replace(without.program, `"payment":{"points":10,"amount":1,"minPoints":50,"maxPercent":50},`, "", 1)
	of := newPanelShop(t, paySetup)
	ana := of.shop.customer("ana")
	of.shop.buy(ana, "2000")
	check := func(reason string, s *panelShop, home, statistics []string) {
		t.Helper()
		s.wants(reason, s.open(roleOwner, "/panel").Body.String(), home...)
		s.wants(reason, s.open(roleOwner, "/panel/estadisticas").Body.String(), statistics...)
	}
	check("none", newPanelShop(t, without), []string{"!Pagado con puntos"}, []string{"!Pagado con puntos", "!Puntos que pagaron"})
	check("not yet", of, []string{"<span>Pagado con puntos, MXN</span><b>0.00</b>"}, []string{"<span>Pagado con puntos, MXN</span><b>0.00</b>", "<span>Puntos que pagaron, Lunas</span><b>0</b>"})
	sold, err := of.shop.sell(newSale{Customer: ana, Total: dec("350"), Pay: &newPayment{Points: dec("170")}})
	of.shop.ok(err)
	of.shop.bring(sold, "175")
	of.shop.apply(without.document())
	paid := "<span>Pagado con puntos, MXN</span><b>8.50</b>"
	check("not any more", of, []string{paid}, []string{paid, "<span>Puntos que pagaron, Lunas</span><b>85</b>", "<th scope=\"col\">Pagado con puntos</th>"})
	for figure, want := range map[string]string{"ventas": ",8.5\n", "puntos": ",85\n"} {
		if file := of.file(roleOwner, "/panel/estadisticas/csv/"+figure).Body.String(); !strings.Contains(file, want) {
			t.Errorf("%s: %s", figure, file)
		}
	}
}

// TestStatisticsPage: the tables and the files of all charts have the figures of the API.
// Panel check 63.
func TestStatisticsPage(t *testing.T) {
	t.Parallel()
	s := newFigureShop(t)
	for _, query := range []string{"", "?from=2026-01-10&to=2026-03-15&groupBy=week", "?from=2025-03-01&to=2026-03-20&groupBy=month"} {
		w := s.get(roleViewer, "/panel/estadisticas"+query)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", query, w.Code, w.Body)
		}
		// The last day is not over, but what is owed is what it is.
		if today := query == ""; strings.Contains(w.Body.String(), "El último periodo no ha terminado.") != today || strings.Count(w.Body.String(), "stroke-dasharray") > 2 {
			t.Errorf("%q: dashed %d times", query, strings.Count(w.Body.String(), "stroke-dasharray"))
		}
		found := s.statistics(query)
		tables := tablesIn(w.Body.String())
		f := newFormat(t, "MX", "es", "MXN")
		for id, row := range map[string]func(*periodShape) []string{
			"ventas": func(p *periodShape) []string {
				return []string{f.Money(p.SalesAmount), f.Money(p.ReturnsAmount), f.Money(p.SalesAmount - p.ReturnsAmount), f.Count(p.Purchases), f.Count(p.Returns)}
			},
			"puntos": func(p *periodShape) []string {
				return []string{f.Number(p.PointsIssued), f.Number(p.PointsRedeemed + p.PointsExpired + p.PointsReversed), f.Number(p.PointsRedeemed), f.Number(p.PointsExpired), f.Number(p.PointsReversed)}
			},
			"deuda": func(p *periodShape) []string { return []string{f.Number(p.PointsOutstanding)} },
			"clientes": func(p *periodShape) []string {
				return []string{f.Count(p.NewCustomers), f.Count(p.ActiveCustomers), f.Count(p.Customers)}
			},
		} {
			if len(tables[id]) != len(found.Periods) {
				t.Fatalf("%s%s: %d rows for %d periods", id, query, len(tables[id]), len(found.Periods))
			}
			file := s.file(roleViewer, "/panel/estadisticas/csv/"+id+query)
			text, marked := strings.CutPrefix(file.Body.String(), sheet.MarkUTF8)
			lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
			if !marked {
				t.Errorf("%s%s: no byte order mark", id, query)
			}
			if err != nil || len(lines) != len(found.Periods)+1 {
				t.Fatalf("%s%s: %d lines, %v", id, query, len(lines), err)
			}
			for i := range found.Periods {
				want := strings.Join(row(&found.Periods[i]), " ")
				if got := strings.Join(tables[id][i][1:], " "); got != want {
					t.Errorf("%s%s: row %d is %s, want %s", id, query, i, got, want)
				}
				plain := strings.Join(lines[i+1], " ")
				if want := found.Periods[i].From; !strings.HasPrefix(plain, want+" ") {
					t.Errorf("%s%s: line %d is %s", id, query, i, plain)
				}
				for n, cell := range lines[i+1][1:] {
					if d, err := parseDecimal(cell); err != nil || f.Number(d) != row(&found.Periods[i])[n] && f.Money(d) != row(&found.Periods[i])[n] {
						t.Errorf("%s%s: line %d has %s, want %s", id, query, i, cell, row(&found.Periods[i])[n])
					}
				}
			}
		}
	}
}

// TestHomePage: who may see figures gets those of the last 30 days with what needs
// attention, the others what they are here for.
func TestHomePage(t *testing.T) {
	t.Parallel()
	s := newFigureShop(t)
	for as, want := range map[role]string{roleCashier: "/panel/caja", "": "/panel/entrar"} {
		if w := s.get(as, "/panel"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("%q: %d %s, want %s", as, w.Code, w.Header().Get("Location"), want)
		}
	}
	all := []string{"Pin: no queda ninguna", "Taza de barro: quedan 4", "«test» vence en 9 días"}
	for as, want := range map[role][]string{roleOwner: all, roleAdmin: all, roleManager: all[:2], roleViewer: all[:2]} {
		page := s.get(as, "/panel").Body.String()
		var got []string
		for _, m := range regexp.MustCompile(`tag warn">\w+</span></td><td><a href="[^"]+">([^<]*)<`).FindAllStringSubmatch(page, -1) {
			got = append(got, m[1])
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s looks at %q, want %q", as, got, want)
		}
	}
	page := s.get(roleViewer, "/panel").Body.String()
	total := s.statistics("").Total
	f := newFormat(t, "MX", "es", "MXN")
	for _, want := range []string{f.Money(total.SalesAmount - total.ReturnsAmount), f.Count(total.ActiveCustomers), f.Number(total.PointsOutstanding), f.Percent(*total.RedemptionRate)} {
		if !strings.Contains(page, "<b>"+want+"</b>") {
			t.Errorf("no tile has %s", want)
		}
	}
	if strings.Contains(page, "<b>Fundadores") || !strings.Contains(page, "=&lt;b&gt;Fundadores&lt;/b&gt;") {
		t.Error("the name of a tier is markup")
	}
}

// TestStatisticsFile: a cell that a spreadsheet would run is guarded, a chart that is none
// is not found, and a span without end is refused.
func TestStatisticsFile(t *testing.T) {
	t.Parallel()
	s := newFigureShop(t)
	w := s.file(roleManager, "/panel/estadisticas/csv/niveles?to=2026-03-01")
	if got, want := w.Header().Get("Content-Disposition"), `attachment; filename="niveles-2026-01-31-2026-03-01.csv"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !strings.Contains(w.Body.String(), "\n'=<b>Fundadores</b>,0\n") {
		t.Errorf("a formula in\n%s", w.Body)
	}
	for path, want := range map[string]int{"otra": 404, "ventas?from=2026-03-01&to=2026-02-01": 422} {
		if w := s.file(roleManager, "/panel/estadisticas/csv/"+path); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	if w := s.get(roleManager, "/panel/estadisticas?from=2026-03-01&to=2026-02-01"); w.Code != 422 || !strings.Contains(w.Body.String(), "Debe ser una fecha y no pasar de la otra") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestStatisticsKeys: who may see keys sees what they have used of their limits.
func TestStatisticsKeys(t *testing.T) {
	t.Parallel()
	s := newFigureShop(t)
	s.shop.pass(time.Minute)
	_, key := s.shop.newKey(keyRequest{DailyLimit: 4})
	for range 3 {
		r := httptest.NewRequest("GET", "/api/v1/statistics", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		answerTo(s.api, r)
	}
	s.shop.ok(s.api.limiter.flush(t.Context(), s.shop.engine.store))
	for as, want := range map[role]string{roleOwner: "[[test, hoy (UTC) 0 500] [test, este mes (UTC) 0 10,000] [test, hoy (UTC) 3 4]]", roleManager: "[]"} {
		if got := fmt.Sprint(tablesIn(s.get(as, "/panel/estadisticas").Body.String())["claves"]); got != want {
			t.Errorf("%s sees %s, want %s", as, got, want)
		}
	}
	if w := s.file(roleViewer, "/panel/estadisticas/csv/claves"); w.Code != http.StatusNotFound {
		t.Errorf("the file of a viewer: %d", w.Code)
	}
}

// TestStatisticsLong: more points than a picture has are in the file alone.
func TestStatisticsLong(t *testing.T) {
	t.Parallel()
	s := newFigureShop(t)
	const query = "?from=2023-01-01&to=2026-03-20"
	page := s.get(roleViewer, "/panel/estadisticas"+query).Body.String()
	if len(tablesIn(page)["ventas"]) != 0 || !strings.Contains(page, "Son más de 400 puntos") || len(page) > 20_000 {
		t.Errorf("%d bytes:\n%.2000s", len(page), page)
	}
	if got := strings.Count(s.file(roleViewer, "/panel/estadisticas/csv/ventas"+query).Body.String(), "\n"); got != 1176 {
		t.Errorf("%d lines", got)
	}
}

// TestTiles: the change of a figure in words, and whether that is good.
func TestTiles(t *testing.T) {
	t.Parallel()
	f := newFormat(t, "MX", "es", "MXN")
	amounts := func(sold string) *statisticsShape {
		return &statisticsShape{From: "2026-11-01", To: "2026-11-10", Total: periodShape{SalesAmount: dec(sold), ActiveCustomers: uint64(dec(sold) / decimalOne), Customers: 1000}}
	}
	for _, c := range []struct {
		now, before string
		amount      tile // a share, where more is good
		count       tile // a number, where more is bad
		rate        tile // where more is neither
	}{
		{"150", "100", tile{Arrow: "▲", Change: "50% más", Class: "up"}, tile{Arrow: "▲", Change: "50 más", Class: "down"}, tile{Arrow: "▲", Change: "antes 10%"}},
		{"75", "100", tile{Arrow: "▼", Change: "25% menos", Class: "down"}, tile{Arrow: "▼", Change: "25 menos", Class: "up"}, tile{Arrow: "▼", Change: "antes 10%"}},
		{"100", "100", tile{Change: "igual"}, tile{Change: "igual"}, tile{Change: "igual"}},
		{"100", "0", tile{Arrow: "▲", Change: "antes 0.00", Class: "up"}, tile{Arrow: "▲", Change: "100 más", Class: "down"}, tile{Arrow: "▲", Change: "antes 0%"}},
		{"0", "100", tile{Arrow: "▼", Change: "100% menos", Class: "down"}, tile{Arrow: "▼", Change: "100 menos", Class: "up"}, tile{Arrow: "▼", Change: "antes 10%"}},
		{"0", "0", tile{Change: "igual"}, tile{Change: "igual"}, tile{Change: "igual"}},
	} {
		g := figures{format: f, lang: speaking("es"), found: amounts(c.now), before: amounts(c.before)}
		for i, got := range []tile{g.amountTile("tile.net", "MXN", (*periodShape).net, true, 1), g.countTile("tile.active", activeOf, -1), g.rateTile("tile.share", activeShareOf, 0)} {
			want := []tile{c.amount, c.count, c.rate}[i]
			if got.Name, got.Value = "", ""; got != want {
				t.Errorf("%s after %s: %+v, want %+v", c.now, c.before, got, want)
			}
		}
	}
}

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
