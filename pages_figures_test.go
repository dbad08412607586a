package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

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
		for i, got := range []tile{g.amountTile("tile.net", "MXN", netOf, true, 1), g.countTile("tile.active", activeOf, -1), g.rateTile("tile.share", activeShareOf, 0)} {
			want := []tile{c.amount, c.count, c.rate}[i]
			if got.Name, got.Value = "", ""; got != want {
				t.Errorf("%s after %s: %+v, want %+v", c.now, c.before, got, want)
			}
		}
	}
}
